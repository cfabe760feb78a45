#!/bin/bash
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The scenarios of transcript.py with every tool under memcheck: fails when that finds an error or
# memory that was lost, or a tool ends in another way than it does by itself.
#   valgrind.sh DIR [REGEX]     where the tools are; some of the scenarios
set -u

dir=$(cd "$1" && pwd) || exit 64
T=$(mktemp -d "${TMPDIR:-/tmp}/mq.XXXXXX")
trap 'rm -rf "$T"' EXIT
mkdir "$T/build" "$T/logs"
ln -s "$dir/lua.c" "$T/build"
# memmove is the same function there where both are checked; ASan tells overlaps, too.
printf '%s\n' '{' known Memcheck:Overlap fun:__memcpy_chk '}' >"$T/known"
for tool in "$dir"/mq-*; do
	[[ -f $tool && -x $tool ]] || continue
	cat >"$T/build/${tool##*/}" <<-END
		#!/bin/sh
		exec valgrind -q --leak-check=full --errors-for-leak-kinds=definite \
			--show-leak-kinds=definite --error-exitcode=99 --child-silent-after-fork=yes \
			--suppressions='$T/known' --log-file='$T/logs/${tool##*/}.%p' '$tool' "\$@"
	END
	chmod +x "$T/build/${tool##*/}"
done

# statuses BUILD: what was run, and how it ended.
statuses() {
	python3 "$(dirname "$0")/helpers/transcript.py" --only "${2-}" "$1" |
		grep -aE '^(==== |mq-[a-z]+\.[0-9]+: (mq-|status ))'
}

statuses "$dir" "${2-}" >"$T/alone"
statuses "$T/build" "${2-}" >"$T/checked"
# What it says of itself is no finding: it does not know all system calls.
wrong=0
grep -q . "$T/checked" || wrong=1
diff "$T/alone" "$T/checked" || wrong=1
! grep -v '^--[0-9]*-- ' "$T"/logs/* || wrong=1
echo "valgrind: $(grep -c ': status ' "$T/checked") runs, with$([ "$wrong" != 0 ] || echo out) findings"
exit "$wrong"
