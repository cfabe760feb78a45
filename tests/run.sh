#!/bin/bash
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Runs the programs named on the command line, which print TAP (unit tests, lint),
# then the .bats files of each folder here (or those in $TESTS), $JOBS of them at
# a time, since much of a test is waiting, and ends with the line "N passed, N
# failed".
#
# A file with the line "# layouts: A B" is run for each of them, as $LAYOUT.
#
# With TOPOLOGY=sentinel, the tools find the servers of the tests by a sentinel beside
# each; but files with the line "# topology: own" are about other ways to a server, and
# are left out.
#
# With TOPOLOGY=cluster, the server is a cluster of three masters.  A test that cannot
# be about one says so, and why: no_cluster.  A file with the line "# topologies: cluster"
# is run there, too, when TOPOLOGY is not set.
#
# A tool's tests are in the folder of its name.  The others:
#
#	queue		what the tools together make of a queue, and its keys
#	server		the way to a server, its rights and its limits
#	process		descriptors, signals, memory and clocks of any tool
#	peers		programs of others on the same queues
#	house		the command line, the pages, the build, the examples
#	unit		modules in C, without a server: the test plays their neighbours
#	fuzz		parsers on nonsense
#	faults		everybody at work while everything breaks
#	bench		how fast, beside other tools
#	helpers		what several of these share
#
# A file that does not end in $LIMIT seconds is ended, and has failed: time enough on a
# machine that is busy with other things.  At the end stand the ten files, and the ten
# tests, that took longest.
set -u

cd "$(dirname "$0")/.." || exit 70
: "${MQ_BUILD:=build}"
: "${TESTS:=tests/*/*.bats}"
: "${JOBS:=$((3 * $(nproc)))}"
: "${LIMIT:=7200}"
export MQ_BUILD
# Where it is a script of pyenv, each call is 17 processes.
if head -c 2 "$(command -v python3)" 2>/dev/null | grep -q '^#!'; then
	PATH=$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable))'):$PATH
fi
log=$(mktemp)
trap 'rm -f "$log" "$log".*' EXIT
trap 'kill $(jobs -p) 2>/dev/null; exit 1' INT TERM

# cpu FILE: the seconds of processors in what times wrote to it.
cpu() {
	sed -n '2s/[ms]/ /gp' "$1" | awk '{printf "%.0f", 60 * ($1 + $3) + $2 + $4}'
}

# run NAME COMMAND...: what it prints comes in one piece, when it has ended.
run() {
	local name=$1 own=$log.${1//[ \/]/.} began=$SECONDS status=0
	shift
	# In the background they are ignored, or by nohup, and the tests send them.
	timeout -k 10 "$LIMIT" env --default-signal=HUP,INT,QUIT,PIPE "$@" >"$own" 2>&1 ||
		status=$?
	case $status in
	124 | 137) echo "not ok $name: not at its end after $LIMIT s" >>"$own" ;;
	0) ;;
	# What a sanitizer has found at the end is no result of a test.
	*) grep -q '^not ok' "$own" || echo "not ok $name: exit status $status" >>"$own" ;;
	esac
	# Of the children of this shell: a pipe's has none.
	times >"$own.times"
	{
		flock 9
		{
			echo "# $name, $((SECONDS - began)) s, $(cpu "$own.times") s of CPU"
			cat "$own"
		} | tee -a "$log"
	} 9>"$log.lock"
	rm -f "$own" "$own.times"
}

running=0 wanted=0
start() {
	wanted=$((wanted + 1))
	((running < JOBS)) || { wait -n; running=$((running - 1)); }
	run "$@" &
	running=$((running + 1))
}

for unit; do
	CMOCKA_MESSAGE_OUTPUT=TAP start "${unit##*/}" "$unit"
done
for file in $TESTS; do
	[ -z "${TOPOLOGY-}" ] || ! grep -q '^# topology: own$' "$file" || continue
	name=${file#tests/}
	layouts=$(sed -n 's/^# layouts: //p' "$file")
	[ -n "$layouts" ] || start "$name" bats --tap -T "$file"
	for layout in $layouts; do
		start "$name $layout" env LAYOUT="$layout" bats --tap -T "$file"
	done
	for topology in $([ -n "${TOPOLOGY-}" ] || sed -n 's/^# topologies: //p' "$file"); do
		start "$name $topology" env TOPOLOGY="$topology" bats --tap -T "$file"
	done
done
wait

echo
echo "slowest:"
grep -E '^# .* s of CPU$' "$log" | sed 's/^# //' | sort -t, -k2nr | head
sed -nE 's/^(not )?ok [0-9]+ (.*) in ([0-9]+)ms.*/\3 ms, \2/p' "$log" | sort -nr | head

passed=$(grep -c '^ok ' "$log")
failed=$(grep -c '^not ok ' "$log")
# A program that died, or ran no test, prints no result: it has failed, too.
plans=$(grep -c '^1\.\.[1-9]' "$log")
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
