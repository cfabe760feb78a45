#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Descriptors 0, 1 and 2 that are closed, or cannot be written to.  A tool whose
# results nobody would get does nothing; one that needs none of them works as
# usual, and no connection gets such a number.
#
# layouts: rmq rsmq

load ../helpers/server
load "../helpers/layout-${LAYOUT:-rmq}"

# q has one message that is handed out, $id with $receipt, one rejected, one
# delayed, and two that are ready; it can be had again.
some_of_each() {
	run_mq 0 mq-publish q leased
	run_mq 0 mq-lease --for 1h --jsonl q
	id=$(sed 's/.*{"id":"\([^"]*\)".*/\1/' <<<"$output")
	receipt=$(sed 's/.*"receipt":"\([^"]*\)".*/\1/' <<<"$output")
	run_mq 0 mq-publish q rejected
	run_mq 1 mq-consume --no-clean -n 1 q -- false
	run_mq 0 mq-publish -d 1h q delayed
	run_mq 0 mq-publish q a b
	held_is q "2 1 1 1"
	redis save >/dev/null
	digest=$(redis debug digest)
}

again() {
	redis debug reload nosave >/dev/null
}

# without FDS TOOL ARGS...: with these closed, "x" on standard input; what it
# writes is in $T/out and $T/err.  Sets status.
without() {
	local fds=$1 tool=$2 closed=''
	shift 2
	[[ $fds != *0* ]] || closed+=' <&-'
	[[ $fds != *1* ]] || closed+=' >&-'
	[[ $fds != *2* ]] || closed+=' 2>&-'
	status=0
	echo x >"$T/in"
	echo "# without $fds: $tool $*"
	eval 'timeout -k 5 180 "$BUILD/$tool" "$@" <"$T/in" >"$T/out" 2>"$T/err" 3>&-'"$closed" ||
		status=$?
	echo "# $status, $(held q), $(cat "$T/err")"
}

# refused FDS TOOL ARGS...: it says so, and changes nothing.
refused() {
	again
	without "$@"
	assert_equal "$status" 74
	assert_equal "$(redis debug digest)" "$digest"
	assert_equal "$(cat "$T/out")" ""
	[[ $1 = *2* ]] || grep -qx 'mq-[a-z]*: standard \(in\|out\)put: not open for .*ing; nothing was done' "$T/err"
	(($(wc -l <"$T/err") <= 1))
}

# mode NEEDS STATUS HELD TOOL ARGS...: it needs stdin (i), stdout (o), both, or
# none (-); the rest is what it does if it has them.
mode() {
	local needs=$1 usual=$2 then=$3 fds
	shift 3
	for fds in 0 1 2 012; do
		case $fds$needs in
		*0*i* | *1*o*) refused "$fds" "$@" ;;
		*)
			again
			without "$fds" "$@"
			assert_equal "$status $(held q)" "$usual $then"
			[[ $needs != *o* ]] || [ -s "$T/out" ]
			;;
		esac
	done
}

@test "closed: mq-publish" {
	some_of_each
	mode - 0 "3 1 1 1" mq-publish q x
	mode i 0 "3 1 1 1" mq-publish q
	mode i 0 "3 1 1 1" mq-publish -l q
	mode i 0 "3 1 1 1" mq-publish --raw -0 q
	mode i 65 "2 1 1 1" mq-publish --jsonl q
	mode o 0 "3 1 1 1" mq-publish -i q x
	mode io 0 "3 1 1 1" mq-publish -il q
	mode - 64 "2 1 1 1" mq-publish
	if [ "${LAYOUT:-rmq}" = rmq ]; then
		mode - 0 "2 1 1 1" mq-publish --tick 5 q
		refused 1 mq-publish --wait=10ms q x
		refused 012 mq-publish --wait=10ms q x
	else
		mode - 0 "2 1 1 1" mq-set q vt=1m
	fi
}

@test "closed: mq-consume" {
	some_of_each
	mode o 0 "0 1 1 1" mq-consume --no-clean --idle 0 -l q
	mode o 0 "1 1 1 1" mq-consume --no-clean -n 1 q
	mode o 0 "1 1 1 1" mq-consume --no-clean -n 1 --at-most-once q
}

@test "closed: mq-lease" {
	some_of_each
	mode o 0 "1 1 2 1" mq-lease --for 1m --jsonl q
	mode - 0 "2 1 0 1" mq-lease --ack "$receipt" q
	mode - 0 "2 1 0 2" mq-lease --reject "$receipt" q
	mode - 0 "3 1 0 1" mq-lease --return "$receipt" q
	mode - 0 "2 1 1 1" mq-lease --extend "$receipt" --for 1h q
}

@test "closed: mq-consume with a command, which can write" {
	some_of_each
	script note <<-'.'
		set -e
		cat
		echo
		echo to stderr >&2
		echo "done" >&3
	.
	script notes <<-'.'
		set -e
		while read -r line; do
			echo "$line"
			echo to stderr >&2
			echo "done" >&3
		done
	.
	mode - 0 "1 1 1 1" mq-consume --no-clean -n 1 q -- "$T/note"
	mode - 0 "0 1 1 1" mq-consume --no-clean -n 2 --batch 2 q -- "$T/note"
	mode - 0 "0 1 1 1" mq-consume --no-clean -n 2 --stream q -- "$T/notes"
	mode - 0 "1 1 1 1" mq-consume --no-clean -n 1 --log-dir "$T/log" q -- "$T/note"
	assert_equal "$(cat "$T"/log/*q.log | grep -c '^a$')" 4
}

@test "closed: mq-stats" {
	some_of_each
	for args in '' q --connections --json --prometheus --html '--check ready=100 q' \
		'--list ready q' '--list rejected --jsonl q' '--reasons q' "--id $id"; do
		# shellcheck disable=SC2086 # words
		mode o 0 "2 1 1 1" mq-stats $args
	done
	refused 1 mq-stats --watch
	refused 1 mq-stats --running
}

@test "closed: mq-return, mq-purge, mq-pause, mq-clean" {
	some_of_each
	mode o 0 "3 1 1 0" mq-return q
	mode o 0 "3 0 1 1" mq-return --json --from delayed q
	mode o 0 "2 1 1 1" mq-return --dry-run q
	mode o 0 "0 1 1 1" mq-purge --force --ready q
	mode o 0 "2 1 1 1" mq-purge --dry-run --json --all q
	mode - 64 "2 1 1 1" mq-purge --all q
	mode o 0 "2 1 1 1" mq-clean
	mode o 0 "2 1 1 1" mq-clean --dry-run
	mode o 0 "2 1 1 1" mq-clean -q --json
	mode - 0 "2 1 1 1" mq-clean -q
	mode - 0 "2 1 1 1" mq-pause q
	mode - 0 "2 1 1 1" mq-set q slots=2
	mode - 1 "2 1 1 1" mq-pause --resume q
}

@test "closed: help, version and rights of any tool" {
	some_of_each
	for tool in publish consume lease stats return purge pause clean; do
		for what in --help --version --print-acl; do
			mode o 0 "2 1 1 1" "mq-$tool" "$what" q
		done
	done
}

@test "closed: mq-purge asks nobody who would not see the question" {
	run_mq 0 mq-publish q a
	run python3 -c 'import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.close(2)
    os.execv(sys.argv[1], ["mq-purge", "--all", "q"])
os.write(fd, b"y\n")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))' "$BUILD/mq-purge"
	assert_equal "$status" 64
	held_is q "1 0 0 0"
}

# stand_in PID FD...: so does /dev/null.
stand_in() {
	local fd
	for fd in "${@:2}"; do
		[ "$(readlink "/proc/$1/fd/$fd")" = /dev/null ] || return 1
	done
}

@test "closed: no connection gets such a number" {
	run_mq 0 mq-publish other x
	mkfifo "$T/fifo"
	exec 8<>"$T/fifo"
	"$BUILD/mq-publish" -l q >&- 2>&- <"$T/fifo" 3>&- 8>&- &
	pid=$!
	eventually 10 known_queue q
	stand_in "$pid" 1 2
	exec 8>&-
	wait "$pid"
	"$BUILD/mq-clean" -q --interval 10ms >&- 2>&- <&- 3>&- &
	pid=$!
	eventually 10 stand_in "$pid" 0 1 2
	stop_mq
	script look <<-'.'
		readlink "/proc/$PPID/fd/"[012] >"$T/fds.new"
		mv "$T/fds.new" "$T/fds"
	.
	"$BUILD/mq-consume" -n 1 other -- "$T/look" >&- 2>&- <&- 3>&-
	assert_equal "$(cat "$T/fds")" $'/dev/null\n/dev/null\n/dev/null'
}

known_queue() {
	"$BUILD/mq-stats" --json | grep -Eq "\"(\{rsmq\}:)?$1\""
}

# full TOOL ARGS...: with a standard output that takes nothing.  Sets status.
full() {
	local tool=$1
	shift
	status=0
	echo "# $tool $*"
	timeout -k 5 180 "$BUILD/$tool" "$@" >/dev/full 2>"$T/err" <"$T/in" 3>&- || status=$?
	echo "# $status, $(held q), $(cat "$T/err")"
	assert_equal "$status" 74
	grep -q '^mq-[a-z]*: standard output: ' "$T/err"
}

@test "closed: a full disk as standard output: 74, and no message is lost" {
	some_of_each
	echo x >"$T/in"
	for args in "consume --no-clean --idle 0 -l" "consume --no-clean --drain -0" \
		"consume --no-clean -n 1 --jsonl" "lease --for 1m --jsonl"; do
		# shellcheck disable=SC2086 # words
		full mq-$args q
		held_is q "2 1 1 1"
	done
	# The first one only, as the page says.
	full mq-consume --no-clean --idle 0 --at-most-once -l q
	held_is q "1 1 1 1"
	again
	full mq-publish -i q x
	grep -q '1 message accepted' "$T/err"
	held_is q "3 1 1 1"
	full mq-publish -il q
	held_is q "4 1 1 1"
	full mq-return q
	held_is q "5 1 1 0"
	full mq-stats
	full mq-stats --list ready -l q
	full mq-clean
	held_is q "5 1 1 0"
	[ "${LAYOUT:-rmq}" = rmq ] || return 0
	start_mq mq-consume --no-clean q -- sh -c 'echo relayed told >&3'
	full mq-publish --wait=60s q x
	stop_mq
	held_is q "0 1 1 0"
}
