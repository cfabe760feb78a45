#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# A cluster of three masters without replicas, of which one has rmq::queues and nothing
# else: what goes on while that node is away.
# topology: own

load ../helpers/common
load ../helpers/cluster
export NODE_TIMEOUT=2000

# The names of the queues are on node 2.
NAMES=2

setup_file() {
	local i rest
	cluster_start
	rest=$({ seq 10923 16383; } | grep -vx "$(node 0 cluster keyslot rmq::queues)")
	for i in 2 1 0; do
		# shellcheck disable=SC2086 # Each is an argument.
		node "$i" cluster delslots $rest >/dev/null
	done
	# shellcheck disable=SC2086
	node 0 cluster addslots $rest >/dev/null
	node 0 cluster bumpepoch >/dev/null
	eventually 30 slots_agreed
}

slots_agreed() {
	local i
	for i in 0 1 2; do
		[ "$(owner_of 16383 "$i")$(owner_of 10923 "$i")" = 00 ] &&
			node "$i" cluster info | grep -q cluster_state:ok || return 1
	done
}

setup() {
	cluster_empty
}

# names_away HOW: killed or stopped.
names_away() {
	if [ "$1" = killed ]; then
		node_kill "$NAMES"
	else
		kill -STOP "$(cat "$C/$NAMES/pid")"
	fi
}

is_listed() {
	[ "$(cluster sismember rmq::queues "$1")" = 1 ]
}

@test "names: published, and consumed, without the names of the queues" {
	why="node 127.0.0.1:$((CLUSTER_PORT + NAMES)): Connection refused"
	run_mq 0 mq-publish "$Q" x
	names_away killed
	run_mq 0 mq-publish "$Q" y
	assert_equal "$stderr" ""
	run_mq 0 mq-publish "$Q-new" z
	assert_equal "$stderr" "mq-publish: $Q-new: not listed yet: $why"
	run_mq 0 mq-publish -q "$Q-quiet" z
	assert_equal "$stderr" ""
	run_mq 69 mq-publish --existing "$Q-none" z
	assert_equal "${stderr%%$'\n'*}" "mq-publish: $Q-none: $MQ_URL: $why"
	run_mq 0 mq-consume -n 3 -l "$Q" "$Q-new"
	assert_output "$(printf '%s\n' x y z)"
}

# Published as a Go program does it, which asks nobody.
push() {
	cluster lpush "rmq::queue::{$1}::ready" "$2" >/dev/null
}

@test "names: a consumer goes on when the names go" {
	local how
	for how in killed stopped; do
		run_mq 0 mq-publish "$Q-$how" x
		start_mq mq-consume -l "$Q-$how"
		eventually 10 lines_reach "$T/out" 1
		names_away "$how"
		run_mq 0 mq-publish "$Q-$how" y
		eventually 10 lines_reach "$T/out" 2
		assert_equal "$(cat "$T/err")" ""
		stop_mq
		assert_equal "$status" 143
		cluster_mend
	done
}

@test "names: whoever comes first lists a queue that could not be listed" {
	local who
	names_away killed
	start_mq mq-consume -l "$Q-consumed"
	for who in published cleaned; do
		run_mq 0 mq-publish "$Q-$who" x
	done
	eventually 10 grep -q "$Q-consumed: not listed yet: node 127" "$T/err"
	push "$Q-consumed" x
	eventually 10 lines_reach "$T/out" 1
	stop_mq
	push "$Q-consumed" x
	cluster_mend
	assert_equal "$(cluster smembers rmq::queues)" ""
	run_mq 0 mq-publish "$Q-published" x
	run_mq 0 mq-consume -n 1 "$Q-consumed"
	assert_equal "$(cluster smembers rmq::queues | sort)" \
		"$(printf '%s\n' "$Q-consumed" "$Q-published")"
	run_mq 0 mq-clean
	is_listed "$Q-cleaned"
}

@test "names: operators work on queues that answer" {
	local q=$Q why
	why="not listed yet: node 127.0.0.1:$((CLUSTER_PORT + NAMES)): Connection refused"
	run_mq 0 mq-publish "$q" a b c d e
	"$BUILD/mq-consume" -n 4 "$q" -- false || true
	run_mq 0 mq-publish -d 1ms "$q-due" x
	names_away killed

	run_mq 0 mq-pause "$q"
	run_mq 0 mq-pause --resume "$q"
	run_mq 69 mq-pause "$q-none"
	run_mq 0 mq-set "$q" attempts=3
	run_mq 0 mq-set "$q"
	assert_output "attempts=3"
	run_mq 0 mq-set --create "$q-set" attempts=3
	assert_equal "$stderr" "mq-set: $q-set: $why"
	run_mq 0 mq-return -n 1 "$q"
	run_mq 0 mq-return -n 1 --to "$q-to" "$q"
	assert_output "1 message returned"
	assert_equal "$stderr" "mq-return: $q-to: $why"
	assert_equal "$(cluster llen "rmq::queue::{$q-to}::ready")" 1
	assert_equal "$(cluster hlen "rmq::queue::{$q}::outgoing")" 0
	run_mq 1 mq-return "$q-none"
	run_mq 0 mq-purge --force -n 1 --rejected "$q"
	run_mq 69 mq-purge --force --delete-queue "$q"
	run_mq 69 mq-clean
	assert_output --partial "1 due"
	run_mq 69 mq-stats "$q"
	assert_line --regexp "^$q +2 +0 +0 +1 "
	run_mq 0 mq-consume --drain "$q" -- true
	run_mq 0 mq-lease --for 1m "$q-due"
	assert_output --partial '"payload":"x"'
}

@test "names: what is proved dead is given back, by mq-clean and by consumers" {
	run_mq 0 mq-publish "$Q" x
	go_connection a "$Q"
	names_away killed
	run_mq 69 mq-clean
	assert_output --partial "1 message returned"
	go_connection b "$Q"
	run_mq 0 mq-consume -n 3 -l "$Q"
	assert_equal "$(sort <<<"$output")" "$(printf '%s\n' m m x)"
	# To be forgotten when the names are back.
	assert_equal "$(cluster smembers rmq::connections | sort)" "$(printf '%s\n' a b)"
	cluster_mend
	run_mq 0 mq-clean
	assert_output --partial "2 dead connections, 0 messages returned"
}

@test "names: the layout rsmq asks its own node alone" {
	export MQ_URL="$MQ_URL?layout=rsmq&ns={rsmq}"
	run_mq 0 mq-publish "$Q" a b c
	assert_equal "$(cluster zcard "{rsmq}:$Q")" 3
	names_away killed
	run_mq 0 mq-publish "$Q-new" x
	assert_equal "$stderr" ""
	run_mq 0 mq-pause "$Q"
	run_mq 0 mq-pause --resume "$Q"
	run_mq 0 mq-set "$Q" attempts=3
	run_mq 0 mq-clean
	run_mq 0 mq-stats
	run_mq 0 mq-stats --connections
	run_mq 0 mq-consume -n 1 "$Q"
	assert_output a
	run_mq 1 mq-consume -q -n 1 "$Q" -- false
	run_mq 0 mq-return --to "$Q-new" "$Q"
	run_mq 0 mq-consume --drain "$Q" "$Q-new"
	assert_output cxb
	run_mq 0 mq-publish -d 1h "$Q-new" x
	run_mq 0 mq-purge --force --all "$Q-new"
	run_mq 1 mq-return "$Q"
	run_mq 0 mq-purge --force --delete-queue "$Q"
	run_mq 1 mq-pause "$Q"
	assert_equal "$stderr" "mq-pause: {rsmq}:$Q: no such queue"
}

@test "names: one that only Go programs can use is shown, noted, and cleaned around" {
	local q=$Q note="a name for which only Go programs find messages on a cluster"
	cluster sadd rmq::queues '' '}x' >/dev/null
	push '' m
	push '}x' m
	run_mq 0 mq-publish -d 1ms "$q" a
	go_connection c "$q"
	go_connection c '}x'
	cluster sadd rmq::connection::c::queues '' >/dev/null

	run_mq 0 mq-stats
	assert_line --regexp "^}x +1 +0 +1 +0 "
	assert_equal "$stderr" "$(printf "mq-stats: '%s': $note\n" '' '}x')"
	run_mq 0 mq-stats --connections --json
	assert_equal "$(jq -c '[.queues[] | [.name, .ready]]' <<<"$output")" \
		"[[\"\",1],[\"$q\",0],[\"}x\",1]]"
	assert_equal "$(jq -c .queues_left_alone <<<"$output")" '["","}x"]'
	run_mq 0 mq-stats --prometheus
	run_mq 0 mq-stats --html
	run_mq 0 mq-stats --check ready=9

	run_mq 0 mq-clean
	assert_equal "$stderr" "$(printf "mq-clean: '%s': $note\n" '' '}x')"
	assert_output --partial "0 dead connections, 1 message returned, 0 rejected, 1 due"
	assert_output --partial "; 1 dead connection of Go programs left alone"
	assert_equal "$(cluster smembers rmq::connections)" c
	cluster del 'rmq::connection::c::queue::{}x}::unacked' >/dev/null
	run_mq 0 mq-clean
	assert_output --partial "1 dead connection, 0 messages returned"
	refute_output --partial "left alone"
	assert_equal "$(cluster smembers rmq::connections)" ""
}

@test "names: keys of Go programs in the plain form are noted, and left alone" {
	run_mq 0 mq-publish "$Q-ours" x
	cluster sadd rmq::queues "$Q" >/dev/null
	cluster lpush "rmq::queue::[$Q]::ready" m >/dev/null
	cluster sadd rmq::connections plain >/dev/null
	cluster sadd rmq::connection::plain::queues "$Q" >/dev/null
	cluster lpush "rmq::connection::plain::queue::[$Q]::unacked" m >/dev/null

	run_mq 0 mq-stats
	assert_equal "$stderr" "mq-stats: 1 connection uses rmq's plain layout; its messages are not counted
mq-stats: $Q: its messages in rmq's plain layout are not counted"
	run_mq 0 mq-clean
	assert_output --partial "0 dead connections, 0 messages returned"
	assert_output --partial "; 1 dead connection of Go programs left alone"
	run_mq 76 mq-purge --force --delete-queue "$Q"
	assert_output ""
	assert_equal "$(cluster smembers rmq::connection::plain::queues)" "$Q"
	is_listed "$Q"
	cluster del "rmq::connection::plain::queue::[$Q]::unacked" >/dev/null
	run_mq 0 mq-clean
	assert_output --partial "1 dead connection, 0 messages returned"
	run_mq 76 mq-purge --force --delete-queue "$Q"
	cluster del "rmq::queue::[$Q]::ready" >/dev/null
	run_mq 0 mq-purge --force --delete-queue "$Q"
}
