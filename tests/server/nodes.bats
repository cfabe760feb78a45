#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# A cluster of three masters, as the tools see it that wait for their answers.
# What a Go program would do is done by redis-cli with the keys of its cluster form.
# topology: own

load ../helpers/common
load ../helpers/cluster

@test "nodes: a Go program's messages are seen, peeked at, returned, and waited behind" {
	cluster sadd rmq::queues "$Q" >/dev/null
	cluster lpush "rmq::queue::{$Q}::ready" a b c >/dev/null
	cluster lpush "rmq::queue::{$Q}::rejected" d e >/dev/null
	go_connection conn-x "$Q"
	alive conn-x
	run_mq 0 mq-publish "$Q-2" x
	run_mq 0 mq-publish "$Q-3" x
	# All queues, of all nodes.
	run_mq 0 mq-stats
	assert_line --regexp "^$Q +3 "
	assert_line --regexp "^$Q-2 +1 "
	assert_line --regexp "^$Q-3 +1 "
	assert_equal "$(state "$Q")" "3 0 1 2 1"
	run_mq 0 mq-stats --list ready -l "$Q"
	assert_equal "$output" "a
b
c"
	run_mq 0 mq-stats --list unacked -l "$Q"
	assert_equal "$output" m
	run_mq 0 mq-stats --connections
	assert_line --regexp "^conn-x .*"
	run_mq 0 mq-return "$Q"
	assert_equal "$(state "$Q")" "5 0 1 0 1"
	cluster srem rmq::connections conn-x >/dev/null
	# Nobody lists it any more, and it is found nevertheless.
	assert_equal "$(state "$Q")" "5 0 1 0 1"
	run_mq 75 mq-publish --wait=1s "$Q" x
}

# publisher [OPTION...]: one whose lines come by descriptor 5.
publisher() {
	mkfifo "$T/in"
	"$BUILD/mq-publish" "$@" -l "$Q" <"$T/in" 2>"$T/err" 3>&- &
	pid=$!
	exec 5>"$T/in"
}

publisher_ends() {
	exec 5>&-
	wait "$pid"
	rm "$T/in"
}

# moved_under [OPTION...]: publishes so while the slot moves on and on; all is in order.
moved_under() {
	local slot n
	slot=$(slot_of "$Q")
	publisher "$@"
	for n in 0 1 2 3; do
		seq $((n * 10000 + 1)) $((n * 10000 + 10000)) >&5 &
		slot_move "$slot" "$(other_than "$(owner_of "$slot")")"
		wait $!
	done
	publisher_ends
	in_order
}

# The nodes of a busy machine may be of two minds about the slot for longer than mq-stats waits.
in_order() {
	local MQ_URL=$CLUSTER_URL
	eventually 20 all_listed
	run_mq 0 mq-purge --force --delete-queue "$Q"
}

all_listed() {
	local state
	for state in ready delayed; do
		"$BUILD/mq-stats" -q --list "$state" -l "$Q" || true
	done >"$T/got"
	seq 40000 | cmp - "$T/got"
}

# Refused while the slot is in two places, a batch waits, and those behind it do.
@test "nodes: while their slot moves messages stay in order, each once" {
	moved_under
	moved_under -g group
	moved_under -e 1h
}

# moved_at_once [OPTION...]: so many batches as can be are under way to a slot that has
# moved; without keys it does so in one step.
moved_at_once() {
	local slot from to id
	slot=$(slot_of "$Q")
	from=$(owner_of "$slot")
	to=$(other_than "$from")
	publisher "$@"
	echo first >&5
	eventually 10 state_is "$Q" "1 0 0 0 0"
	node "$from" cluster getkeysinslot "$slot" 100 |
		xargs -d '\n' redis-cli -p $((CLUSTER_PORT + from)) del >/dev/null
	node "$from" client pause 60000 write >/dev/null
	seq 40000 >&5 &
	eventually 10 somebody_waits "$from"
	# Valkey lets no slot go while writes wait, or before a replica has heard of it.  In one
	# piece: who waits comes behind all.
	id=$(node "$to" cluster myid)
	node "$to" cluster setslot "$slot" node "$id" >/dev/null
	env printf '%s\r\n' 'CLIENT KILL TYPE replica' 'CLIENT UNPAUSE' \
		"CLUSTER SETSLOT $slot NODE $id" \
		>"/dev/tcp/127.0.0.1/$((CLUSTER_PORT + from))"
	slot_end "$slot" "$to"
	wait $!
	publisher_ends
	in_order
}

somebody_waits() {
	node "$1" client list | grep -q ' flags=b '
}

# in_turns N: as many messages for later as for now, in turns.
in_turns() {
	seq "$1" | awk -v due="$(($(date +%s) + 3600))" '{
		printf "{\"queue\":\"q\",\"payload\":\"%d\",\"due_ms\":%d%03d}\n", $1, due + $1 / 1000, $1 % 1000
		printf "{\"queue\":\"q\",\"payload\":\"%d\"}\n", $1 }'
}

# refuse WORD N: as helpers/refuse.py has it, of the queue's node, which is at port $at.
refuse() {
	coproc python3 "$root/tests/helpers/refuse.py" \
		$((CLUSTER_PORT + $(owner_of "$(slot_of "$Q")"))) "$@" 3>&-
	relay=$!
	read -r at <&"${COPROC[0]}"
}

@test "nodes: a batch that waits has transactions behind it, which cannot wait" {
	refuse EVALSHA 3
	in_turns 100 >"$T/all"
	run_mq 0 mq-publish -q -u "redis-cluster://127.0.0.1:$at" --jsonl "$Q" <"$T/all"
	kill "$relay"
	assert_equal "$(state "$Q")" "100 100 0 0 0"
}

# What a consumer asks a node about itself goes nowhere else.
@test "nodes: a consumer whose node takes no CLIENT command looks once a second" {
	refuse CLIENT 1
	start_mq mq-consume -u "redis-cluster://127.0.0.1:$at" -l "$Q"
	eventually 10 grep -q 'once a second instead$' "$T/err"
	run_mq 0 mq-publish "$Q" x
	eventually 10 lines_reach "$T/out" 1
	stop_mq
	kill "$relay"
}

@test "nodes: messages stay in order when their slot has moved" {
	moved_at_once -g group
	moved_at_once -e 1h
	# Without a right to marks.
	as_app '~*' '&*' +@all -eval
	moved_at_once
}

@test "nodes: a special message waits until its slot has moved" {
	local slot to
	run_mq 0 mq-publish "$Q" plain
	slot=$(slot_of "$Q")
	to=$(other_than "$(owner_of "$slot")")
	slot_begin "$slot" "$to"
	start_mq mq-publish -p 1 "$Q" special
	eventually 5 refusals_come "$to"
	slot_keys "$slot" "$to"
	slot_end "$slot" "$to"
	ends_with 0
	assert_equal "$(state "$Q")" "2 0 0 0 0"
}

@test "nodes: a slot that never arrives is not waited for longer than a minute" {
	local slot to lib
	lib=$(find /usr/lib -name libfaketime.so.1 | head -n 1)
	run_mq 0 mq-publish "$Q" here
	slot=$(slot_of "$Q")
	to=$(other_than "$(owner_of "$slot")")
	slot_begin "$slot" "$to"
	slot_keys "$slot" "$to"
	# The keys that there are not may be here or there, for one of several keys.
	ASAN_OPTIONS=${ASAN_OPTIONS-}:verify_asan_link_order=0 LD_PRELOAD=$lib \
		FAKETIME='+0 x20' run_mq 69/75 mq-return "$Q"
	slot_end "$slot" "$to"
	assert_regex "$stderr" 'ASK|TRYAGAIN'
}

@test "nodes: one command on one key follows it while its slot moves" {
	local slot from to
	run_mq 0 mq-publish "$Q" here
	slot=$(slot_of "$Q")
	from=$(owner_of "$slot")
	to=$(other_than "$from")
	slot_begin "$slot" "$to"
	slot_keys "$slot" "$to"
	run_mq 0 mq-pause "$Q"
	assert_equal "$(node "$to" keys "*{$Q}::paused")" "rmq::queue::{$Q}::paused"
	slot_end "$slot" "$to"
	assert_equal "$(state "$Q")" "1 0 0 0 0"
}

@test "nodes: a server without cluster mode is none of a cluster" {
	server_start --port "$(free_ports 1)" --bind 127.0.0.1
	for tool in "mq-stats q" "mq-consume q"; do
		run_mq 78 ${tool%% *} -u "redis-cluster://127.0.0.1:$(redis config get port | tail -1)" ${tool#* }
		assert_regex "$stderr" "not a node of a cluster; use redis://"
	done
	server_stop
}

# The last one, as it costs a node.
@test "nodes: a master dies, its replica takes over: what was confirmed is there" {
	local slot owner
	run_mq 0 mq-publish "$Q" 0
	slot=$(slot_of "$Q")
	owner=$(owner_of "$slot")
	seq 100 | run_mq 0 mq-publish --durable -l "$Q"
	publisher
	echo 101 >&5
	eventually 10 state_is "$Q" "102 0 0 0 0"
	# WAIT is for what its own connection wrote.
	eventually 10 replica_has 102
	node_kill "$owner"
	seq 102 200 >&5
	publisher_ends
	MQ_URL=redis-cluster://127.0.0.1:$((CLUSTER_PORT + (owner + 1) % 3))
	# That node may hear of it last.
	eventually 20 listed
	seq 0 200 | cmp - "$T/got"
}

listed() {
	"$BUILD/mq-stats" --list ready -l "$Q" >"$T/got"
}

# replica_has N: a replica of the queue's master has so many messages.
replica_has() {
	local i
	for ((i = 3; i < CLUSTER_NODES; i++)); do
		if [ "$(printf 'readonly\nllen rmq::queue::{%s}::ready\n' "$Q" |
			node "$i" | tail -1)" = "$1" ]; then
			return
		fi
	done
	return 1
}
