#!/bin/sh
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Static checks: TAP, each with what it found before its result.  Any finding
# fails.  What takes long runs on all processors, and is kept: a file is looked at again
# when its text has changed.
# shellcheck disable=SC2317 # functions are called by check()
set -u

cd "$(dirname "$0")/.." || exit 70
n=0 failed=0
kept=${MQ_BUILD:-build}/lint

# check NAME COMMAND...
check() {
	name=$1 not=
	shift
	n=$((n + 1))
	"$@" || not="not " failed=1
	echo "${not}ok $n lint: $name"
}

# (__FILE__ is some string, as a version is.)
flags="-std=c11 -D_GNU_SOURCE -DLIBBSD_OPENBSD_VIS -DMQ_VERSION=__FILE__ -Icommon -Icmd -I${MQ_BUILD:-build}"
flags="$flags $(pkg-config --cflags hiredis libbsd-overlay jansson)"

# one FILE: looks at a file, unless the same text has passed before.  What it prints
# comes in one piece.
one() {
	# shellcheck disable=SC2086
	passed=$kept/tidy-$({ clang-tidy --version; cat .clang-tidy; echo "$flags"
		gcc $flags -E -dD "$1"; } | sha256sum | cut -d ' ' -f 1)
	[ ! -e "$passed" ] || return 0
	# shellcheck disable=SC2086
	out=$(clang-tidy --quiet "$1" -- $flags 2>/dev/null) || { printf '%s\n' "$out"; return 1; }
	: >"$passed"
}

headers() {
	make --no-print-directory -s hdr-check
}

tidy() {
	find cmd common tests/fuzz -name '*.c' -print0 |
		xargs -0 -P "$(nproc)" -n 1 -- tests/lint.sh tidy
}

format() {
	find cmd common tests -name '*.[ch]' -exec clang-format --dry-run -Werror {} +
}

scripts() {
	shellcheck -s sh completions/table.sh tests/deps.sh tests/lint.sh tests/debian.sh tests/musl.sh tests/as-redis.sh \
		common/queue/embed.sh cmd/mq-stats/page/embed.sh tests/house/*.sh tests/house/examples/*.sh \
		tests/house/examples/mq-webhook tests/house/examples/mq-consume.* &&
		shellcheck tests/run.sh tests/boot.sh tests/helpers/ports.sh tests/demo.sh tests/valgrind.sh tests/fuzz/run.sh \
			.ci/run completions/mq.bash &&
		shellcheck -s bash -e SC2154,SC2034,SC2030,SC2031 tests/helpers/*.bash
}

code() {
	find cmd common -name '*.[ch]' -o -name '*.lua'
}

# The floors, and no two files in a ring.  The objects tell who calls whom.
arrows() {
	! python3 tests/house/arrows.py "${MQ_BUILD:-build}" | grep .
}

# not FOLDER WORD...: the files of a folder hold none of these.
not() {
	folder=$1
	shift
	! grep -nrE --include='*.[ch]' "$(printf '%s|' "$@" | sed 's/|$//')" "$folder"
}

# What belongs on one floor: replies on the redis floor, keys in a layout, messages to
# people in cmd/.
floors() {
	not common/base hiredis redisReply && not common/message hiredis redisReply &&
		not common/process hiredis redisReply && not common/redis rmq:: &&
		not cmd '<hiredis' rmq:: &&
		not cmd redisReply 'struct mq_command' &&
		! grep -nr --include='*.c' 'mq_say(' common | grep -v '^common/base/say'
}

lengths() {
	! code | xargs wc -l | awk '$1 > 800 && $2 != "total" { print $2 ": " $1 " lines" }' |
		grep .
}

# A function of more than 60 lines is the option switch of a tool.
functions() {
	# shellcheck disable=SC2046
	awk '/^[a-z]/ { name = $0 } /^\{/ { start = FNR }
		/^\}$/ && FNR - start > 60 && name !~ /option/ { print FILENAME ": " name; bad = 1 }
		END { exit bad }' $(find cmd common -name '*.c')
}

# What a script takes and answers has names, from its head.
heads() {
	! find common -name '*.lua' -exec grep -nE '^[^-]*(ARGV|KEYS|reply)\[[0-9]' {} + | grep .
}

# The folder says already what begins a name.
names() {
	! code | sed -nE 's|.*/(mq-)?([a-z]+)/(.*/)?\2-[^/]*$|&|p' | grep .
}

# What Linux has and a libc may not is in one file.
doors() {
	! code | grep -v '^common/base/syscall.h$' |
		xargs grep -nE '\<syscall\(|include <(linux|asm|sys/syscall)' | grep .
}

comments() {
	python3 tests/house/comments.py cmd common
}

# Each file of code says whose it is, and on which terms.
licences() {
	! find .ci Makefile cmd common completions man tests -type f \( -name Makefile -o -name '*.[ch]' \
		-o -name '*.lua' -o -name '*.awk' -o -name '*.sh' -o -name '*.bash' -o -name '*.bats' \
		-o -name '*.py' -o -name '*.js' -o -name '*.css' -o -name '*.pl' -o -name '*.fish' \
		-o -name _mq -o -perm -u+x \) -exec awk '
		FNR == 1 { said = 0 }
		FNR < 3 && /Copyright .* SPDX-License-Identifier: ISC( \*\/)?$/ { said = 1 }
		FNR == 2 && !said { print FILENAME ": no licence at its head" }' {} + | grep .
}

# The files that CONTRIBUTING.md names are there.
links() {
	! grep -oE '(^|[ `])(cmd|common|completions|man|tests)/[a-z0-9_/.-]+' CONTRIBUTING.md |
		while read -r path; do
			[ -e "${path#\`}" ] || echo "CONTRIBUTING.md: $path"
		done | grep .
}

if [ $# = 2 ]; then
	one "$2"
	exit
fi
mkdir -p "$kept"
echo 1..17
check format format
check arrows arrows
check floors floors
check lengths lengths
check functions functions
check heads heads
check names names
check doors doors
check links links
check licences licences
check "comments stand alone" comments
check spelling tests/house/spelling.sh
check headers headers
check cppcheck cppcheck --quiet --error-exitcode=1 --inline-suppr \
	--enable=warning,performance,portability --std=c11 \
	--suppress=missingIncludeSystem -D_GNU_SOURCE -Icommon -Icmd -I"${MQ_BUILD:-build}" \
	'-DTAILQ_FOREACH(v,h,f)=while((v=tailq_next(h)))' \
	'-DSTAILQ_FOREACH(v,h,f)=while((v=tailq_next(h)))' \
	'-DLIST_FOREACH(v,h,f)=while((v=tailq_next(h)))' \
	'-DTAILQ_FOREACH_SAFE(v,h,f,n)=while((v=tailq_next(h)))' \
	'-DTAILQ_FOREACH_REVERSE_SAFE(v,h,t,f,n)=while((v=tailq_next(h)))' \
	'-Djson_object_foreach(o,k,v)=while(json_next(o,&k,&v))' \
	'-Djson_array_foreach(a,i,v)=while(json_next(a,&i,&v))' \
	'-Dtimespeccmp(a,b,op)=time_compare(a,b)' cmd common tests/fuzz
check shellcheck scripts
check mandoc mandoc -Tlint -Wwarning man/*.1 man/*.7
check clang-tidy tidy
exit $failed
