#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Messages that go from one queue of a cluster to another one, which is on another
# node: each is in one of the two, whatever is killed between the steps.
# topology: own

load ../helpers/common
load ../helpers/cluster

setup() {
	cluster_setup
	# Two nodes, and the set of names on the third.
	local queues
	queues=$(owner_of_key rmq::queues)
	FROM=$(queue_on $(((queues + 1) % 3)))
	TO=$(queue_on $(((queues + 2) % 3)))
}

# of QUEUE WHAT: a key of it.
of() {
	echo "rmq::queue::{$1}::$2"
}

# rejected N: raw messages 1 to N of FROM are rejected.
rejected() {
	seq "$1" | run_mq 0 mq-publish --raw -l "$FROM"
	cluster rename "$(of "$FROM" ready)" "$(of "$FROM" rejected)" >/dev/null
}

# payloads QUEUE STATE
payloads() {
	"$BUILD/mq-stats" --list "$2" -l "$1"
}

# The node of a queue.
node_of() {
	owner_of "$(slot_of "$1")"
}

# unless_hdel COMMAND...: what it leaves when it is killed before the last step.
unless_hdel() {
	local i
	i=$(node_of "$FROM")
	node "$i" acl setuser default -hdel >/dev/null
	"$@" || true
	node "$i" acl setuser default +hdel >/dev/null
}

@test "transfers: rejected messages go to a queue on another node, in order" {
	local before
	rejected 12000
	before=$(calls)
	run_mq 0 mq-return --to "$TO" -n 10000 "$FROM"
	assert_equal "$output" "10000 messages returned"
	# A step is for many at a time.
	[ $(($(calls) - before)) -lt 500 ]
	payloads "$TO" ready | cmp - <(seq 10000)
	payloads "$FROM" rejected | cmp - <(seq 10001 12000)
	run_mq 0 mq-return --to "$TO" --match '00$' "$FROM"
	payloads "$TO" ready | cmp - <(seq 10000; seq 10100 100 12000)
	assert_equal "$(cluster exists "$(of "$FROM" outgoing)")" 0
	assert_equal "$(cluster sismember rmq::queues "$TO")" 1
	assert_equal "$(cluster exists "$(of "$TO" none)")" 0
}

@test "transfers: unacked messages of a dead connection go to the front" {
	cluster lpush "rmq::connection::dead::queue::{$FROM}::unacked" a b c >/dev/null
	cluster sadd rmq::connections dead >/dev/null
	cluster sadd rmq::connection::dead::queues "$FROM" >/dev/null
	cluster set rmq::connection::dead::heartbeat 1 ex 60 >/dev/null
	run_mq 75 mq-return --from unacked:dead --to "$TO" "$FROM"
	assert_regex "$stderr" "dead: it is alive; stop it first"
	cluster del rmq::connection::dead::heartbeat >/dev/null
	cluster set "rmq::connection::dead::queue::{$FROM}::lease" 1 ex 60 >/dev/null
	run_mq 75 mq-return --from unacked:dead "$FROM"
	cluster del "rmq::connection::dead::queue::{$FROM}::lease" >/dev/null
	run_mq 0 mq-publish --raw "$TO" z
	run_mq 0 mq-return --from unacked:dead -n 2 --to "$TO" "$FROM"
	assert_equal "$(payloads "$TO" ready)" "b
c
z"
	run_mq 0 mq-return --from unacked:dead "$FROM"
	assert_equal "$(payloads "$FROM" ready)" a
	run_mq 0 mq-clean
}

@test "transfers: killed before the last step; a cleaner ends it, and nothing is doubled" {
	rejected 700
	unless_hdel "$BUILD/mq-return" --to "$TO" "$FROM" 2>"$T/err"
	assert_regex "$(cat "$T/err")" "hdel.*; mq-clean delivers what is on the way"
	assert_equal "$(state "$FROM")" "0 0 0 200 0"
	assert_equal "$(state "$TO")" "500 0 0 0 0"
	# An operator sees it.
	run_mq 0 mq-stats --json "$FROM"
	assert_equal "$(jq '.queues[0].leaving' <<<"$output")" 500
	run_mq 0 mq-stats "$FROM"
	assert_line --regexp "500 on the way to another queue"
	# The queue stays until then, and the target may have gone on meanwhile.
	run_mq 0 mq-purge --force --ready -n 100 "$TO"
	run_mq 0 mq-clean --json --dry-run
	assert_equal "$(jq .transferred <<<"$output")" 500
	run_mq 0 mq-clean --json
	assert_equal "$(jq .transferred <<<"$output")" 500
	assert_equal "$(state "$TO")" "400 0 0 0 0"
	assert_equal "$(cluster hlen "$(of "$FROM" outgoing)")" 0
	run_mq 0 mq-return --to "$TO" "$FROM"
	payloads "$TO" ready | cmp - <(seq 101 700)
}

@test "transfers: killed behind the first step; the messages arrive" {
	local id=hoeyl48olib2Mfg1JRrFAUHs9dAMnOI0 i
	run_mq 0 mq-publish --raw "$FROM" here
	run_mq 0 mq-clean
	for i in 1 2 3; do
		cluster hset "$(of "$FROM" outgoing)" "${id}00000$i rejected $TO" "m$i" >/dev/null
	done
	run_mq 0 mq-clean --json
	assert_equal "$(jq .transferred <<<"$output")" 3
	assert_equal "$(payloads "$TO" ready)" "m1
m2
m3"
	assert_equal "$(cluster sismember rmq::queues "$TO")" 1
	# What a failover of the target has lost comes again.
	cluster hset "$(of "$FROM" outgoing)" "${id}000002 rejected $TO" m2 >/dev/null
	cluster del "$(of "$TO" ready)" "$(of "$TO" incoming)" >/dev/null
	run_mq 0 mq-clean
	assert_equal "$(payloads "$TO" ready)" m2
}

@test "transfers: two at a time, and a cleaner beside them" {
	rejected 10000
	"$BUILD/mq-return" --to "$TO" "$FROM" >"$T/1" 3>&- &
	pid=$!
	"$BUILD/mq-return" --to "$TO" "$FROM" >"$T/2" 3>&- &
	pid2=$!
	while kill -0 "$pid" 2>/dev/null; do
		"$BUILD/mq-clean" -q >/dev/null
	done
	wait "$pid" || true
	wait "$pid2" || true
	assert_equal "$(cat "$T/1" "$T/2" | awk '{ n += $1 } END { print n }')" 10000
	payloads "$TO" ready | sort -n | cmp - <(seq 10000)
}

@test "transfers: equal payloads stay as many as they are" {
	run_mq 0 mq-publish --raw "$FROM" $(yes same | head -1500)
	cluster rename "$(of "$FROM" ready)" "$(of "$FROM" rejected)" >/dev/null
	unless_hdel "$BUILD/mq-return" --to "$TO" "$FROM" 2>/dev/null
	run_mq 0 mq-return --to "$TO" "$FROM"
	assert_equal "$(state "$TO")" "1500 0 0 0 0"
	assert_equal "$(cluster hlen "$(of "$TO" incoming)")" 1500
	# A second time.
	cluster rename "$(of "$TO" ready)" "$(of "$TO" rejected)" >/dev/null
	run_mq 0 mq-return --to "$FROM" "$TO"
	assert_equal "$(state "$FROM")" "1500 0 0 0 0"
}

@test "transfers: marks go after a day, unless the message is under way still" {
	rejected 3
	unless_hdel "$BUILD/mq-return" --to "$TO" -n 1 "$FROM" 2>/dev/null
	run_mq 0 mq-return --to "$TO" --match 2 "$FROM"
	assert_equal "$(cluster hlen "$(of "$TO" incoming)")" 2
	rm -f "$T/fields"
	cluster hkeys "$(of "$TO" incoming)" >"$T/fields"
	while read -r field; do
		cluster hset "$(of "$TO" incoming)" "$field" "1000 $FROM" >/dev/null
	done <"$T/fields"
	unless_hdel "$BUILD/mq-clean" 2>/dev/null
	cluster hkeys "$(of "$TO" incoming)" >"$T/left"
	[ "$(wc -l <"$T/left")" -le 2 ]
	run_mq 0 mq-clean
	assert_equal "$(cluster hlen "$(of "$TO" incoming)")" 0
	payloads "$TO" ready | sort | cmp - <(seq 2)
}

@test "transfers: the target's slot is moving" {
	local slot to
	rejected 50
	run_mq 0 mq-publish --raw "$TO" 0
	slot=$(slot_of "$TO")
	to=$((($(owner_of "$slot") + 1) % 3))
	slot_begin "$slot" "$to"
	start_mq mq-return --to "$TO" "$FROM"
	eventually 5 refusals_come
	slot_keys "$slot" "$to"
	slot_end "$slot" "$to"
	ends_with 0
	payloads "$TO" ready | cmp - <(seq 0 50)
	slot_move "$slot" $(((to + 2) % 3))
}

@test "transfers: a target that refuses messages gets none" {
	rejected 5
	cluster hset "$(of "$TO" ready)" a b >/dev/null
	run_mq 76 mq-return --to "$TO" "$FROM"
	assert_equal "$(state "$FROM")" "0 0 0 5 0"
	cluster del "$(of "$TO" ready)" >/dev/null
	# shellcheck disable=SC2046 # several words
	as_app $("$BUILD/mq-return" --print-acl "$FROM")
	run_mq 77 mq-return --to "$TO" "$FROM"
	MQ_URL=$CLUSTER_URL
	assert_equal "$(state "$FROM")" "0 0 0 5 0"
	# shellcheck disable=SC2046 # several words
	as_app $("$BUILD/mq-return" --print-acl "$FROM" "$TO")
	run_mq 0 mq-return --to "$TO" "$FROM"
}

@test "transfers: a target without memory takes nothing, a source without it gives" {
	local node
	rejected 700
	node=$(node_of "$TO")
	node "$node" config set maxmemory 1 >/dev/null
	run_mq 75 mq-return --to "$TO" "$FROM"
	node "$node" config set maxmemory 0 >/dev/null
	assert_regex "$stderr" "OOM|memory"
	assert_equal "$(state "$FROM")" "0 0 0 700 0"
	node=$(node_of "$FROM")
	node "$node" config set maxmemory 1 >/dev/null
	run_mq 0 mq-return --to "$TO" "$FROM"
	node "$node" config set maxmemory 0 >/dev/null
	payloads "$TO" ready | cmp - <(seq 700)
}

# The calls of all nodes that come from clients.
calls() {
	local i
	for i in 0 1 2; do
		node "$i" info commandstats |
			grep -E 'cmdstat_(evalsha|sadd|wait|hdel|eval):' | sed -n 's/.*calls=\([0-9]*\).*/\1/p'
	done | awk '{ n += $1 } END { print n }'
}

@test "transfers: a queue from which messages are under way is not deleted before" {
	rejected 2
	unless_hdel "$BUILD/mq-return" --to "$TO" -n 1 "$FROM" 2>/dev/null
	run_mq 0 mq-purge --force --delete-queue "$FROM"
	assert_equal "$output" "1 message purged, and the queue deleted"
	assert_equal "$(state "$TO")" "1 0 0 0 0"
	# One that cannot arrive.
	rejected 1
	cluster del "$(of "$TO" ready)" >/dev/null
	cluster rename "$(of "$FROM" rejected)" "$(of "$FROM" x)" >/dev/null
	cluster hset "$(of "$FROM" outgoing)" "$(printf '%038d' 7) rejected $TO" m >/dev/null
	cluster set "$(of "$TO" ready)" text >/dev/null
	run_mq 75 mq-purge --force --delete-queue "$FROM"
	assert_equal "$(cluster hlen "$(of "$FROM" outgoing)")" 1
	assert_equal "$(cluster sismember rmq::queues "$FROM")" 1
	cluster del "$(of "$TO" ready)" >/dev/null
	run_mq 0 mq-clean
	assert_equal "$(payloads "$TO" ready)" m
}

@test "transfers: a queue that is published to while it is deleted is there again" {
	local i=0 n
	mkfifo "$T/in"
	"$BUILD/mq-publish" -l --raw "$FROM" <"$T/in" 3>&- &
	pid=$!
	exec 5>"$T/in"
	seq 20000 >&5 &
	while ((i++ < 20)); do
		"$BUILD/mq-purge" --force --delete-queue "$FROM" || true
	done >"$T/purged" 2>/dev/null
	wait $!
	exec 5>&-
	wait "$pid"
	n=$(awk '{ n += $1 } END { print n + 0 }' "$T/purged")
	assert_equal "$(($(cluster llen "$(of "$FROM" ready)") + n))" 20000
}

# The last ones, as they cost nodes.
@test "transfers: what no replica has confirmed stays at the source" {
	local node replica
	eventually 30 replicas_known
	rejected 5
	node=$(node_of "$TO")
	replica=$(replica_of "$node")
	kill -STOP "$(cat "$C/$replica/pid")"
	run_mq 75 mq-return --to "$TO" "$FROM"
	kill -CONT "$(cat "$C/$replica/pid")"
	assert_regex "$stderr" "no replica of its node has confirmed.*mq-clean"
	assert_equal "$(cluster hlen "$(of "$FROM" outgoing)")" 5
	eventually 30 cluster_ready 1
	run_mq 0 mq-clean
	assert_equal "$(cluster hlen "$(of "$FROM" outgoing)")" 0
	payloads "$TO" ready | cmp - <(seq 5)
}

@test "transfers: the target's master dies in the middle, its replica takes over" {
	local node
	rejected 30000
	node=$(node_of "$TO")
	"$BUILD/mq-return" --to "$TO" "$FROM" >"$T/out" 2>"$T/err" 3>&- &
	pid=$!
	eventually 10 some_came
	node_kill "$node"
	wait "$pid" || true
	MQ_URL=redis-cluster://127.0.0.1:$((CLUSTER_PORT + (node + 1) % 3))
	CLUSTER_PORT=$((CLUSTER_PORT + (node + 1) % 3))
	eventually 30 cluster_is_ok
	"$BUILD/mq-clean"
	"$BUILD/mq-return" --to "$TO" "$FROM" || true
	payloads "$TO" ready | sort -n | cmp - <(seq 30000)
}

some_came() {
	[ "$(cluster llen "$(of "$TO" ready)")" -gt 1000 ]
}

cluster_is_ok() {
	node 0 cluster info | grep -q cluster_state:ok &&
		"$BUILD/mq-stats" "$TO" >/dev/null 2>&1
}
