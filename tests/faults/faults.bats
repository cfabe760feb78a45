#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# A short run of `make faults`: faults of every kind while everybody is at work,
# and no accepted message is lost.  See faults.py.
#
# SEED=N repeats a run's random moments as far as that is possible; RUNS=N makes
# it longer.
# topology: own

load ../helpers/common

setup() {
	export BUILD PYTHONDONTWRITEBYTECODE=1
	seed=${SEED:-$((RANDOM * 32768 + RANDOM))}
	T=$(own_dir)
}

teardown() {
	rm -rf "$T"
}

# driver NAME ARGS...: a program of this folder, which ends well
driver() {
	run timeout -k 10 2000 env TMPDIR="$T" python3 "$BATS_TEST_DIRNAME/$1.py" "${@:2}"
	echo "$output"
	assert_success
}

# faults LAYOUT RUNS
faults() {
	driver faults "$seed" "${RUNS:-$2}" "$1"
	assert_line "nothing lost"
}

@test "faults: nothing is lost, whatever happens" {
	faults rmq 8
}

# Each with priorities, delays, keys, groups, ticks, what expires, pushes, and operators.
@test "faults: nor when consumers and the server are killed, in rounds of their own" {
	local kind kinds=23
	for kind in 1 7; do
		seed=$((seed / kinds * kinds + kind)) faults rmq 1
		assert_line --regexp '^kill (consumer|redis) +1 +[0-9]+ +[1-9]'
	done
}

@test "faults: nothing is lost in the layout of RSMQ" {
	faults rsmq 4
}

# Longer than the two seconds that are promised, since the machine is busy, and less than
# the time between two heartbeats.
@test "faults: no message waits for those who were to hear of it" {
	driver crowd 10 rmq 50 15
	driver crowd 10 rsmq 50 15
}

# --- what looks for losses finds them -------------------------------------------

# spoilt LUA: a round without any fault, but somebody does this all the time.
spoilt() {
	TMPDIR=$T timeout -k 10 900 python3 \
		"$BATS_TEST_DIRNAME/faults.py" 0 1 rmq >"$T/said" 3>&- &
	while kill -0 "$!" 2>/dev/null; do
		redis-cli -s "$T"/mq.*/redis.sock eval "$1" 0 >/dev/null 2>&1 ||
			true
	done
	run wait "$!"
	cat "$T/said"
	assert_failure 1
	run cat "$T/said"
	assert_line "WRONG; again: make faults SEED=0 RUNS=1 LAYOUT=rmq"
}

@test "faults: a message that vanishes is found" {
	spoilt "redis.call('RPOP', 'rmq::queue::[q]::rejected')"
	assert_line --regexp '^lost: ([0-9A-Za-z]{32}$|=)'
}

@test "faults: a message in two places is found" {
	spoilt "local q = 'rmq::queue::[q]::'
		local m = redis.call('LINDEX', q .. 'rejected', 0)
		if m and redis.call('LLEN', q .. 'ready') == 0 then
			redis.call('LPUSH', q .. 'ready', m)
		end"
	assert_line --regexp '^twice: '
}

@test "faults: a twin that was reported as rejected, and vanishes, is found" {
	spoilt "redis.call('RPOP', 'rmq::queue::[t]::rejected')"
	assert_line --regexp '^reported as rejected, but it is not: |^lost: =='
}

@test "faults: a group whose last message comes first is found" {
	spoilt "local k = 'rmq::queue::[g]::delayed'
		local m = redis.call('ZRANGE', k, -1, -1, 'WITHSCORES')
		if m[1] and tonumber(m[2]) >= 2 ^ 52 then
			redis.call('ZREM', k, m[1])
			redis.call('ZADD', k, m[2], ('0'):rep(32) .. m[1]:sub(33))
		end"
	assert_line --regexp '^order: '
}

# --- the master changes --------------------------------------------------------------

@test "faults: nothing that WAIT has confirmed is lost in failovers" {
	driver failover "$seed" 4 rmq
	assert_line "nothing lost that was confirmed"
}

@test "faults: nor while the nodes of a cluster fail and slots move" {
	driver resharding "$seed" 4 rmq
	assert_line "nothing lost that was confirmed"
}
