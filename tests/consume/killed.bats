#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# topologies: cluster
# A consumer that was killed, on this host: its messages do not wait for the end of its lease.
# But those of a process that lives, or of which this host cannot tell, do.

load ../helpers/server
load ../helpers/consume
load ../helpers/go

setup() {
	common_setup
	pids=()
	: >"$T/runs"
	: >"$T/both"
	# Says so if an earlier run of its message still goes on, and ends when it may.
	script work <<-'.'
		read -r x
		while read -r y _ before; do
			[ "$y" != "$x" ] ||
				! grep -s '^State:.[^ZX]' "/proc/$before/status" >>"$T/both"
		done <"$T/runs"
		echo "$x $MQ_ATTEMPT $$" >>"$T/runs"
		until [ -e "$T/go" ]; do sleep 0.02; done
	.
}

teardown() {
	[ ${#pids[@]} = 0 ] || kill -KILL "${pids[@]}" 2>/dev/null || true
	common_teardown
}

# begin ARG...: a consumer; sets pid, and c to its connection.  Its session is its own: what other
# tests leave behind in that of all could be of its workers.
begin() {
	local before
	before=$(connections)
	setsid "$BUILD/mq-consume" "$@" >"$T/out" 2>"$T/err" 3>&- &
	pid=$!
	pids+=("$pid")
	eventually 10 has_joined
}

has_joined() {
	c=$(connections | grep -vxF "${before:-none at all}") &&
		[ -n "$(redis hget "rmq::connection::$c::info" pid)" ]
}

# holds_all N: so many messages of q are claimed.
holds_all() {
	[ "$(redis llen "$(unacked "$c")")" = "$1" ]
}

# begin_with N [OPTION...]: a consumer that runs the first of N messages, and has the others, too.
begin_with() {
	seq "$1" | run_mq 0 mq-publish -l q
	begin --prefetch 9 -q "${@:2}" q -- "$T/work"
	eventually 10 holds_all "$1"
	eventually 10 lines_reach "$T/runs" 1
}

kill_it() {
	kill -KILL "$pid"
	killed_at=${EPOCHREALTIME/./}
	wait "$pid" || true
}

# within S: so few seconds after the kill, when the lease would have lasted for a minute.
within() {
	local ms=$(((${EPOCHREALTIME/./} - killed_at) / 1000))
	echo "$ms ms from kill to here"
	((ms < $1 * 1000))
}

# The messages in the order in which their runs began, each with its attempt.
runs() {
	cut -d ' ' -f 1,2 "$T/runs" | paste -s -d , -
}

is_listed() {
	connections | grep -qxF "$1"
}

# The heartbeat is that of a consumer that may live.
lease_lasts() {
	[ "$(redis pttl "rmq::connection::$1::heartbeat")" -gt 20000 ]
}

# finish: the work ends; nothing is left, and nothing was at two places.
finish() {
	touch "$T/go"
	eventually 20 held_is q "0 0 0 0"
	assert_equal "$(cat "$T/both")" ""
}

# cleans C M: mq-clean finds that many dead connections, and returns that many messages.
cleans() {
	run_mq 0 mq-clean
	assert_output --regexp "^$1 dead connections?, $2 messages? returned, 0 rejected"
}

@test "killed: a consumer that comes back has its messages at once" {
	begin_with 5
	kill_it
	is_listed "$c"
	lease_lasts "$c"
	begin --prefetch 9 q -- "$T/work"
	eventually 20 lines_reach "$T/runs" 2
	within 20
	assert_equal "$(grep -c '1 dead connection cleaned up: 5 messages returned, 0 rejected' "$T/err")" 1
	finish
	assert_equal "$(runs)" "1 1,1 2,2 1,3 1,4 1,5 1"
	assert_equal "$(connections)" "$c"
	assert_equal "$(counts crashed)" 1
}

@test "killed: whether it was in charge of cleaning, or another one is" {
	local other
	begin other -- true
	other=$c
	begin_with 2
	kill_it
	begin q -- "$T/work"
	eventually 20 lines_reach "$T/runs" 2
	within 20
	finish
	assert_equal "$(runs)" "1 1,1 2,2 1"
	is_listed "$other"
}

@test "killed: a round of any consumer of the host finds it" {
	local dead
	# The next round is when this one's heartbeat ends.
	go_connect web-aB3dE6
	redis expire rmq::connection::web-aB3dE6::heartbeat 15 >/dev/null
	begin other -- true
	eventually 10 eval '[ -n "$(redis get rmq::cleaning)" ]'
	begin_with 3
	dead=$c
	kill_it
	eventually 40 held_is q "3 0 0 0"
	lease_lasts web-aB3dE6 && return 1
	run ! is_listed "$dead"
	within 45
}

@test "killed: mq-clean finds it, and a dry run says so" {
	begin_with 5 -j 2
	kill_it
	run_mq 0 mq-clean --dry-run
	assert_output --partial "dry run: 1 dead connection, 5 messages returned, 0 rejected"
	lease_lasts "$c"
	holds_all 5
	cleans 1 5
	assert_equal "$(held q)" "5 0 0 0"
	assert_equal "$(connections)" ""
	assert_equal "$(redis keys 'rmq::connection::*')" ""
	assert_equal "$(attempts_of ready)" 2
	assert_equal "$(payloads ready)" "1 2 3 4 5"
	cleans 0 0
}

@test "killed: its last attempt is used up as by any crash" {
	begin_with 2 --attempts 1
	kill_it
	run_mq 0 mq-clean
	assert_output --partial "1 dead connection, 1 message returned, 1 rejected"
	assert_equal "$(held q)" "1 0 0 1"
}

@test "killed: a consumer without messages is forgotten, too" {
	begin q -- true
	kill_it
	cleans 1 0
	assert_equal "$(connections)" ""
}

@test "killed: a stopped consumer is not" {
	begin_with 3
	kill -STOP "$pid"
	eventually 5 proc_state "$pid" T
	cleans 0 0
	kill -CONT "$pid"
	holds_all 3
	finish
	assert_equal "$(runs)" "1 1,2 1,3 1"
	assert_equal "$(connections)" "$c"
}

@test "killed: a process that has ended, and waits for its parent" {
	seq 3 | run_mq 0 mq-publish -l q
	# A parent that never waits for it.
	setsid perl -e 'my $p = fork // die; exec @ARGV or die if !$p; print "$p\n"; close STDOUT;
		sleep' "$BUILD/mq-consume" -q q -- "$T/work" >"$T/child" 2>"$T/err" 3>&- &
	pids+=("$!")
	eventually 10 lines_reach "$T/runs" 1
	eventually 10 lines_reach "$T/child" 1
	kill -KILL "$(cat "$T/child")"
	eventually 5 proc_state "$(cat "$T/child")" Z
	run_mq 0 mq-clean
	assert_output --regexp '^1 dead connection, [1-3] messages? returned'
	assert_equal "$(held q)" "3 0 0 0"
}

# forged SED: a connection with a message and an info as that of the consumer, but for its
# process, of which SED makes another.
forged() {
	redis del "$(unacked x-AAAAAA r)" >/dev/null
	go_connect x-AAAAAA
	go_consume x-AAAAAA r
	go_holds x-AAAAAA r m
	redis hset rmq::connection::x-AAAAAA::info host h pid 1 slots 1 \
		process "$(sed -E "$1" <<<"$process")" >/dev/null
}

# stays: mq-clean leaves it alone.
stays() {
	cleans 0 0
	is_listed x-AAAAAA
	assert_equal "$(held r)" "0 0 1 0"
	redis expire rmq::connection::x-AAAAAA::heartbeat 60 >/dev/null
}

@test "killed: which process it was is told by boot, namespaces, user, pid and start" {
	local process
	begin q -- true
	process=$(redis hget "rmq::connection::$c::info" process)
	# The fields: boot, namespaces of pids and of time, user, session, group, pid, start.
	assert_regex "$process" '^[0-9a-f-]{36}(:[0-9]+){7}$'
	forged ''
	stays
	# Another boot, so another host, or this one before.
	forged 's/^./x/; s/[0-9]+$/1/'
	stays
	forged 's/^([^:]+:)/\19/; s/[0-9]+$/1/'
	stays
	forged 's/^([^:]+:[^:]+:)/\19/; s/[0-9]+$/1/'
	stays
	# A text that says nothing.
	forged 's/:[0-9]+$//'
	stays
	forged 's/:[0-9]+:[0-9]+$/:-1:1/'
	stays
	forged 's/$/:1/'
	stays
	# The same, as a Go program has it, or an older version.
	forged ''
	redis hdel rmq::connection::x-AAAAAA::info process >/dev/null
	stays
	redis del rmq::connection::x-AAAAAA::info >/dev/null
	stays
	# A pid that another process has got later.
	forged "s/[0-9]+\$/$((${process##*:} - 1))/"
	cleans 1 1
	assert_equal "$(held r)" "1 0 0 0"
	assert_equal "$(connections)" "$c"
}

@test "killed: another user of this host cannot tell" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	begin_with 3
	chmod -R a+rX "$D"
	chmod a+rwx "$D"/redis.sock "$D"/*/redis.sock 2>/dev/null || true
	kill_it
	run setpriv --reuid 65534 --clear-groups "$BUILD/mq-clean"
	assert_success
	assert_output --partial "0 dead connections, 0 messages returned"
	cleans 1 3
}

@test "killed: a consumer in another container of this host cannot be told" {
	local inside
	[ "$(id -u)" = 0 ] || skip "needs root"
	seq 3 | run_mq 0 mq-publish -l q
	# The first process outlives it, as in a container with an init.
	unshare --pid --fork --kill-child --mount-proc sh -c '
		"$@" & echo; wait; exec sleep 300' sh "$BUILD/mq-consume" --prefetch 9 -q q \
		-- "$T/work" >"$T/out" 2>"$T/err" 3>&- &
	pids+=("$!")
	eventually 10 lines_reach "$T/runs" 1
	c=$(connections)
	eventually 10 holds_all 3
	inside=$(pgrep -f "^$BUILD/mq-consume --prefetch 9 -q q -- $T/work")
	kill -KILL "$inside"
	eventually 5 gone "$inside"
	cleans 0 0
	is_listed "$c"
	holds_all 3
	# A lease that is over is over for everybody.
	redis del "rmq::connection::$c::heartbeat" >/dev/null
	[ "${TOPOLOGY-}" != cluster ] || redis del "rmq::connection::$c::queue::{q}::lease" >/dev/null
	cleans 1 3
}

@test "killed: what a worker has left behind in its group goes on alone" {
	local left
	script parent <<-'.'
		read -r x
		sleep 300 &
		echo "$x $MQ_ATTEMPT $!" >>"$T/runs"
		wait
	.
	run_mq 0 mq-publish q 1
	begin q -- "$T/parent"
	eventually 10 lines_reach "$T/runs" 1
	read -r _ _ left <"$T/runs"
	kill_it
	cleans 0 0
	begin q -- "$T/work"
	cleans 0 0
	# The one that has come back has looked in vain, and looks again.
	tick
	tick
	assert_equal "$(held q)" "0 0 1 0"
	kill "$left"
	killed_at=${EPOCHREALTIME/./}
	eventually 20 lines_reach "$T/runs" 2
	within 20
	assert_equal "$(tail -n 1 "$T/runs" | cut -d ' ' -f 1,2)" "1 2"
	finish
}

@test "killed: a lease by receipt does not end with mq-lease" {
	run_mq 0 mq-publish q 1
	run_mq 0 mq-lease --for 1m q
	cleans 0 0
	assert_equal "$(held q)" "0 0 1 0"
}

@test "killed: many cleaners at once, and many killed" {
	local i j all=()
	seq 60 | run_mq 0 mq-publish -l q
	for i in 1 2 3 4; do
		begin -j 2 --prefetch 9 -q q -- "$T/work"
		all+=("$pid")
		eventually 10 eval 'lines_reach "$T/runs" $((2 * i))'
	done
	kill -KILL "${all[@]}"
	killed_at=${EPOCHREALTIME/./}
	wait "${all[@]}" || true
	: >"$T/runs"
	for j in 1 2 3; do
		"$BUILD/mq-clean" -q 3>&- &
	done
	begin -j 2 q -- "$T/work"
	eventually 20 eval '[ "$(connections)" = "$c" ]'
	within 20
	finish
	cut -d ' ' -f 1 "$T/runs" | sort -n | cmp - <(seq 60)
}
