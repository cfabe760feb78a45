#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-consume on a cluster of three masters.  What a Go program would do is done by
# redis-cli with the keys of its cluster form.
# topology: own

load ../helpers/common
load ../helpers/cluster

# A script that appends its payload, a line, to $T/got.
note() {
	script note <<-'END'
		cat >>"$T/got"
	END
}

connection() {
	cluster smembers rmq::connections | head -1
}

# Of the only connection.
lease_key() {
	echo "rmq::connection::$(connection)::queue::{$Q}::lease"
}

has_joined() {
	[ -n "$(connection)" ] && [ "$(cluster exists "$(lease_key)")" = 1 ]
}

keys_of() {
	local i
	for i in 0 1 2; do
		node "$i" keys "*$1*"
	done | grep -v '^$' | sort
}

@test "cluster: queues on several nodes, one after the other, and no key is left" {
	local q queues=()
	for q in a b c d e f; do
		run_mq 0 mq-publish "$Q$q" "$q"
		queues+=("$Q$q")
	done
	run_mq 0 mq-consume --drain "${queues[@]}"
	assert_output "abcdef"
	assert_equal "$(keys_of connection)" ""
}

@test "cluster: a Go program's message wakes a consumer, whose lease ends before its heartbeat" {
	note
	start_mq mq-consume "$Q" -- "$T/note"
	eventually 10 has_joined
	for _ in {1..8}; do
		lease_is_above 0
	done
	eventually 10 is_on_watch
	cluster lpush "rmq::queue::{$Q}::ready" "from Go
" >/dev/null
	eventually 5 lines_reach "$T/got" 1
	stop_mq
	assert_equal "$(cat "$T/got")" "from Go"
	assert_equal "$(keys_of connection::)" ""
}

is_on_watch() {
	[ "$(cluster exists "rmq::queue::{$Q}::watch")" = 1 ]
}

nothing_left() {
	[ "$(state "$Q" | cut -d ' ' -f 1-4)" = "0 0 0 0" ]
}

# The one at work takes a new name, and what it had is run again.
@test "cluster: who has lost the lease of a queue claims nothing more" {
	local old
	# What runs under the old name is killed with it.
	script note <<-'END'
		until grep -q 'lease lost' "$T/err"; do sleep 0.02; done
		cat >>"$T/got"
	END
	start_mq mq-consume -v "$Q" -- "$T/note"
	eventually 10 has_joined
	old=$(connection)
	cluster del "$(lease_key)" >/dev/null
	run_mq 0 mq-publish "$Q" "late
"
	eventually 10 lines_reach "$T/got" 1
	assert_regex "$(cat "$T/err")" "$old: lease lost"
	eventually 5 nothing_left
	assert_equal "$(cat "$T/got")" late
	stop_mq
	grep -q ' 1 done, .* 0 leases lost' "$T/err"
	cluster del "rmq::connection::$old::heartbeat" >/dev/null
	run_mq 0 mq-clean
	assert_equal "$(keys_of "$old")" ""
}

@test "cluster: SIGKILL: what it held comes back when its leases are over" {
	start_mq mq-consume -j 3 "$Q" -- sleep 100
	seq 3 | run_mq 0 mq-publish -l "$Q"
	eventually 10 state_is "$Q" "0 0 3 0 1"
	kill -KILL "$pid"
	eventually 5 gone "$pid"
	# A Go program's heartbeat is looked at, but the lease decides.
	cluster set "$(lease_key)" 1 ex 100 >/dev/null
	cluster del "rmq::connection::$(connection)::heartbeat" >/dev/null
	run_mq 0 mq-clean
	assert_equal "$(state "$Q" | cut -d ' ' -f 1,3)" "0 3"
	cluster del "$(lease_key)" >/dev/null
	run_mq 0 mq-clean
	assert_equal "$(state "$Q")" "3 0 0 0 0"
	assert_equal "$(keys_of connection::)" ""
}

# Each once, in spite of all.
@test "cluster: a slot that moves while messages are consumed" {
	local slot n
	run_mq 0 mq-publish "$Q" 0
	slot=$(slot_of "$Q")
	start_mq mq-consume -l "$Q"
	for n in 0 1 2 3; do
		seq $((n * 20000 + 1)) $((n * 20000 + 20000)) |
			"$BUILD/mq-publish" -l "$Q" 3>&- &
		publisher=$!
		slot_move "$slot" "$(other_than "$(owner_of "$slot")")"
		wait "$publisher"
	done
	eventually 20 lines_reach "$T/out" 80001
	stop_mq
	seq 0 80000 | cmp - <(sort -n "$T/out")
	assert_equal "$(state "$Q")" "0 0 0 0 0"
	# No lease was lost.
	assert_equal "$(cat "$T/err")" ""
}

@test "cluster: a slot that moves while everybody sleeps" {
	local slot
	note
	run_mq 0 mq-publish "$Q" "before
"
	slot=$(slot_of "$Q")
	start_mq mq-consume "$Q" -- "$T/note"
	eventually 10 lines_reach "$T/got" 1
	eventually 10 is_on_watch
	slot_move "$slot" "$(other_than "$(owner_of "$slot")")"
	run_mq 0 mq-publish "$Q" "after
"
	eventually 10 lines_reach "$T/got" 2
	stop_mq
}

# One command on one key goes to the node that gets the slot.
@test "cluster: what ends while its slot is on the way is acked" {
	local slot to
	script until_go <<<'while ! [ -e "$T/go" ]; do sleep 0.05; done'
	run_mq 0 mq-publish "$Q" x
	slot=$(slot_of "$Q")
	to=$(other_than "$(owner_of "$slot")")
	start_mq mq-consume "$Q" -- "$T/until_go"
	eventually 10 state_is "$Q" "0 0 1 0 1"
	slot_begin "$slot" "$to"
	slot_keys "$slot" "$to"
	assert_regex "$(node "$to" keys '*')" "unacked"
	touch "$T/go"
	eventually 10 nothing_unacked "$to"
	slot_end "$slot" "$to"
	stop_mq
	assert_equal "$(state "$Q")" "0 0 0 0 0"
}

nothing_unacked() {
	! node "$1" keys '*' | grep -q "{$Q}::unacked"
}

# A message of a script that is refused whole waits until its slot has moved.
@test "cluster: a slot that is in two places" {
	local slot to
	note
	seq 3 | run_mq 0 mq-publish -p 1 -l "$Q"
	slot=$(slot_of "$Q")
	to=$(other_than "$(owner_of "$slot")")
	slot_begin "$slot" "$to"
	start_mq mq-consume -l "$Q"
	eventually 10 refusals_come
	slot_keys "$slot" "$to"
	slot_end "$slot" "$to"
	eventually 10 lines_reach "$T/out" 3
	stop_mq
	assert_equal "$(cat "$T/out")" "1
2
3"
}

# lease_is_above MS: that of the queue, which ends ten seconds before the heartbeat.
lease_is_above() {
	local lease heart
	lease=$(cluster pttl "$(lease_key)")
	heart=$(cluster pttl "rmq::connection::$(connection)::heartbeat")
	((lease > $1 && lease + 10000 < heart))
}

# What is done to receipts is in lease/receipt.bats.
@test "cluster: handed out by receipt, for as long as its own lease lives" {
	local receipt
	run_mq 0 mq-publish "$Q" x
	run_mq 0 mq-lease --for 2m "$Q"
	receipt=$(jq -r .receipt <<<"$output")
	lease_is_above 60000
	run_mq 0 mq-lease --extend "$receipt" --for 1h "$Q"
	lease_is_above 3000000
	# Its lease is over, and then its heartbeat.
	cluster del "$(lease_key)" >/dev/null
	run_mq 1 mq-lease --ack "$receipt" "$Q"
	cluster del "rmq::connection::$(connection)::heartbeat" >/dev/null
	run_mq 0 mq-clean
	assert_equal "$(state "$Q")" "1 0 0 0 0"
	# The last receipt ends the connection.
	run_mq 0 mq-lease --for 2m "$Q"
	run_mq 0 mq-lease --return "$(jq -r .receipt <<<"$output")" "$Q"
	assert_equal "$(state "$Q")" "1 0 0 0 0"
	assert_equal "$(keys_of connection::)" ""
}

@test "cluster: --drain finds what a connection holds that nobody lists" {
	run_mq 0 mq-publish "$Q" one
	cluster lpush "rmq::connection::gone::queue::{$Q}::unacked" two >/dev/null
	run_mq 0 mq-consume --drain "$Q"
	assert_output "onetwo"
	assert_equal "$(keys_of gone)" ""
}

@test "cluster: a consumer that starts claims nothing before it knows whether all is paused" {
	local slot q pids=()
	slot=$(node 0 cluster keyslot rmq::paused)
	slot_move "$slot" 0
	q=$(queue_on 1)
	run_mq 0 mq-publish "$q" 1
	run_mq 0 mq-pause --all
	node 0 client pause 3000 all >/dev/null
	# Some names of connections have keys of that node, and these consumers wait for it.
	for _ in {1..8}; do
		timeout 60 "$BUILD/mq-consume" --no-clean -l "$q" >>"$T/out" 2>>"$T/err" 3>&- &
		pids+=($!)
	done
	eventually 20 has_a_connection
	node 0 ping >/dev/null
	eventually 10 is_asked
	tick
	assert_equal "$(cat "$T/out")" ""
	run_mq 0 mq-pause --all --resume
	eventually 10 grep -qx 1 "$T/out"
	kill "${pids[@]}"
	wait "${pids[@]}" || true
	slot_move "$slot" 2
}

has_a_connection() {
	[ -n "$(node 1 smembers rmq::connections)" ]
}

is_asked() {
	node 0 info commandstats | grep -q '^cmdstat_pttl:'
}
