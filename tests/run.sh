#!/bin/sh
# Runs the unit tests named on the command line, then the .bats files in
# tests/ (or those in $TESTS), and ends with the line "N passed, N failed".
set -u

cd "$(dirname "$0")/.." || exit 70
: "${MQ_BUILD:=build}"
: "${TESTS:=tests/*.bats}"
: "${JOBS:=$(nproc)}"
export MQ_BUILD
log=$(mktemp)
trap 'rm -f "$log"' EXIT INT TERM

run() {
	"$@" 2>&1 | tee -a "$log"
}

for unit; do
	echo "# ${unit##*/}"
	CMOCKA_MESSAGE_OUTPUT=TAP run "$unit"
done
for file in $TESTS; do
	echo "# ${file##*/}"
	run bats --tap "$file"
done

passed=$(grep -c '^ok ' "$log")
failed=$(grep -c '^not ok ' "$log")
# A program that died, or ran no test, prints no result: it has failed, too.
plans=$(grep -c '^1\.\.[1-9]' "$log")
wanted=$(($# + $(for file in $TESTS; do echo "$file"; done | wc -l)))
[ "$plans" -ge "$wanted" ] || failed=$((failed + wanted - plans))
planned=$(sed -n 's/^1\.\.\([0-9]*\).*/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
[ "$planned" -le $((passed + failed)) ] || failed=$((planned - passed))
if [ "$failed" -gt 0 ]; then
	echo
	echo "failed:"
	grep '^not ok ' "$log"
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
