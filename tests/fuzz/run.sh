#!/bin/bash
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Runs the fuzz targets named, or all, for so many seconds together (-s, 60), or on so
# many inputs each (-n), starting from what is in corpus/; new inputs go to a scratch
# directory.  TAP.  SEED=N tries the same inputs again, as far as the time goes.
# A finding fails, and its input stays where the diagnostics say.
set -u

cd "$(dirname "$0")/../.." || exit 70
build=./build-fuzz
seconds=60
inputs=
case ${1-} in
-s) seconds=$2 && shift 2 ;;
-n) inputs=$2 && shift 2 ;;
esac
if [ $# = 0 ]; then
	for source in tests/fuzz/*.c; do
		set -- "$@" "$(basename "$source" .c)"
	done
fi
each=$((seconds / $#))
[ "$each" -gt 0 ] || each=1 # none is without end for libFuzzer
limit=(-max_total_time="$each" -timeout=20)
[ -z "$inputs" ] || limit=(-runs="$inputs")
scratch=$(mktemp -d "${TMPDIR:-/tmp}/mq.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# fuzz TARGET: as long as it is its turn.
fuzz() {
	mkdir -p "$scratch/$1" "$build/found"
	"$build/fuzz/$1" "${limit[@]}" -seed="${SEED:-0}" -max_len=4096 \
		-artifact_prefix="$build/found/$1-" -print_final_stats=1 \
		"$scratch/$1" "tests/fuzz/corpus/$1" >"$scratch/log" 2>&1
}

status=0
n=0
echo "1..$#"
for target; do
	n=$((n + 1))
	if fuzz "$target"; then
		runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$scratch/log")
		echo "ok $n - $target: $runs inputs"
	else
		status=1
		echo "not ok $n - $target: its input is in $build/found"
		grep -av '^#[0-9]' "$scratch/log" | tail -n 60 | sed 's/^/# /'
	fi
done
exit $status
