#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What runs out for real: descriptors, processes, memory, the size of files; and
# scripts that write, or leave behind, more than anybody wants.

# shellcheck disable=SC2016

load ../helpers/server

setup_file() {
	server_start --unixsocketperm 777
}

setup() {
	common_setup
	# brood N [setsid]: so many that do nothing for two minutes at most, in the group of
	# the caller, or each in a session of its own.
	script brood <<'.'
n=$1
while [ "$n" -gt 0 ]; do
	$2 sleep 120 &
	echo $! >>"$T/brood.pids"
	n=$((n - 1))
done
.
}

says() {
	grep -q "$1" "$T/err"
}

lines_are() {
	[ "$(wc -l <"$2")" = "$1" ]
}

# PID has its user by now.
is_sleep() {
	[ "$(ps -o comm= -p "$1")" = sleep ]
}

# --- descriptors -----------------------------------------------------------------

@test "exhaust: fewer descriptors than slots: fewer at a time, and nothing lost" {
	run_mq 0 mq-publish q {1..12}
	(
		ulimit -n 24
		exec "$BUILD/mq-consume" -j 12 -n 12 --attempts 1 q -- sh -c '
			perl -e "select undef, undef, undef, 0.1"
			echo "$(cat)" >>"$T/ran"' >"$T/out" 2>"$T/err" 3>&-
	)
	assert_equal "$(sort -n "$T/ran" | xargs)" "$(echo {1..12})"
	says 'Too many open files; trying again'
	held_is q "0 0 0 0"
}

@test "exhaust: too few descriptors to begin: one line, and nothing touched" {
	local n
	run_mq 0 mq-publish q one
	for n in 5 6; do
		status=0
		(
			ulimit -n "$n"
			# The search for leaks needs descriptors itself.
			export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
			exec timeout 120 "$BUILD/mq-consume" -n 1 q -- true
		) >"$T/out" 2>"$T/err" 3>&- 4>&- || status=$?
		echo "# $n: $status, $(cat "$T/err")"
		[ "$status" = 75 ]
		lines_are 1 "$T/err"
	done
	held_is q "1 0 0 0"
	assert_equal "$(connections)" ""
}

# --- processes ---------------------------------------------------------------------

@test "exhaust: no process more for this user: waits, says so once, then runs it" {
	local as=() can=2 other
	# root has no such limit; whoever has this number has nothing yet.
	[ "$(id -u)" != 0 ] ||
		as=(setpriv --reuid $((61000 + RANDOM % 4000)) --clear-groups)
	chmod 755 "$D" "$T"
	cp "$BUILD/mq-consume" "$T/"
	run_mq 0 mq-publish q one
	cd /
	"${as[@]}" sleep 1000 3>&- &
	other=$!
	eventually 10 is_sleep "$other"
	[ "$(id -u)" = 0 ] || can=$(($(ps -Lu "$(id -u)" -o lwp= | wc -l) - 3))
	"${as[@]}" prlimit --nproc="$can:" "$T/mq-consume" -n 1 \
		--attempts 1 q -- true >"$T/out" 2>"$T/err" 3>&- &
	pid=$!
	eventually 10 says 'Resource temporarily unavailable; trying again'
	tick
	tick
	held_is q "0 0 1 0"
	lines_are 1 "$T/err"
	if [ "$(id -u)" = 0 ]; then
		kill "$other"
	else
		prlimit --pid "$pid" --nproc="$((can + 1000)):"
	fi
	wait "$pid"
	lines_are 1 "$T/err"
	held_is q "0 0 0 0"
}

# --- memory, and files ----------------------------------------------------------------

@test "exhaust: no memory for a huge message: 75, and it stays what it was" {
	[[ $BUILD != *address* ]] || skip "the sanitizer needs memory"
	head -c 48000000 /dev/zero >"$T/huge"
	status=0
	(ulimit -v 40000; exec "$BUILD/mq-publish" q <"$T/huge") \
		2>"$T/err" || status=$?
	[ "$status" = 75 ]
	assert_equal "$(cat "$T/err")" "mq-publish: out of memory"
	held_is q "0 0 0 0"
	run_mq 0 mq-publish q <"$T/huge"
	status=0
	(ulimit -v 50000; exec timeout 120 "$BUILD/mq-consume" q -- true) \
		2>"$T/err" || status=$?
	[ "$status" = 75 ]
	assert_equal "$(cat "$T/err")" "mq-consume: out of memory"
	held_is q "0 0 1 0"
	redis del "rmq::connection::$(connections)::heartbeat" >/dev/null
	run_mq 0 mq-clean
	held_is q "1 0 0 0"
	prints 48000000 mq-consume -n 1 q -- wc -c
}

@test "exhaust: a payload beyond the limit of file sizes: 78, and it is returned" {
	run_mq 0 mq-publish q <"$(head -c 3000000 /dev/zero >"$T/large"; echo "$T/large")"
	status=0
	(ulimit -f 1000; exec "$BUILD/mq-consume" q -- true) 2>"$T/err" || status=$?
	[ "$status" = 78 ]
	lines_are 1 "$T/err"
	says ': File too large; stopping, the message is returned$'
	held_is q "1 0 0 0"
	run_mq 0 mq-consume -n 1 q -- sh -c 'ulimit -c; wc -c'
	assert_line 3000000
}

@test "exhaust: a log that cannot grow: told once, and the script's 100 MB go nowhere" {
	# The second writes the most memory that its consumer has ever had, in kB.
	run_mq 0 mq-publish q 'head -c 100000000 /dev/zero; echo >"$T/ended"' \
		'grep -h VmHWM "/proc/$PPID/status" >"$T/most"' \
		'trap "" XFSZ; trap >"$T/traps"'
	(
		ulimit -f 1000
		exec "$BUILD/mq-consume" -n 3 --log-dir "$T/log" q -- sh
	) >"$T/out" 2>"$T/err" 3>&-
	assert_equal "$(cat "$T/err")" \
		"mq-consume: $T/log/q.log: File too large; the output of workers is lost"
	[ -e "$T/ended" ]
	[[ $BUILD == *address* ]] || (($(awk '{print $2}' "$T/most") < 16384))
	held_is q "0 0 0 0"
}

# --- too many of them -----------------------------------------------------------------------

@test "exhaust: 1,100 grandchildren, some in sessions of their own: not waited for, none of ours" {
	local fds
	run_mq 0 mq-publish q 'echo $$ >"$T/group"; "$T/brood" 1000' '"$T/brood" 100 setsid' \
		'perl -e "select undef, undef, undef, 0.1"' \
		'ls "/proc/$PPID/fd" | wc -l >"$T/fds"
		ps -o stat= --ppid "$PPID" | grep -c Z >"$T/zombies"; :'
	"$BUILD/mq-consume" -n 4 q -- sh >"$T/out" 2>"$T/err" 3>&-
	(($(pgrep -c -g "$(cat "$T/group")") >= 1000))
	xargs kill -KILL <"$T/brood.pids"
	assert_equal "$(cat "$T/zombies")" 0
	# The pipes of the first two are still kept, since they hold them.
	fds=$(cat "$T/fds")
	((fds < 24))
	assert_equal "$(cat "$T/err")" ""
	held_is q "0 0 0 0"
}

@test "exhaust: 1,000 grandchildren, and --timeout ends them all" {
	run_mq 0 mq-publish q x
	run_mq 1 mq-consume -n 1 --timeout 5s q -- sh -c 'echo $$ >"$T/group"
		"$T/brood" 1000; sleep 100'
	assert_regex "$stderr" 'rejected: timed out'
	eventually 10 none_of "$(cat "$T/group")"
}

none_of() {
	! pgrep -g "$1" -r S,R,D >/dev/null
}
