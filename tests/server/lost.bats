#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# A cluster of three masters without replicas: which node has what, and what the tools that
# look at everything show when a node is lost.
# topology: own

load ../helpers/common
load ../helpers/cluster
export NODE_TIMEOUT=2000

setup_file() {
	cluster_start
}

setup() {
	cluster_empty
}

at() {
	echo "127.0.0.1:$((CLUSTER_PORT + $1))"
}

# One that has neither of the sets of names.
other_node() {
	local i
	for i in 0 1 2; do
		[ "$i" = "$(owner_of_key rmq::queues)" ] ||
			[ "$i" = "$(owner_of_key rmq::connections)" ] || echo "$i"
	done
}

# connection_on NODE: a name whose own keys are there.
connection_on() {
	local n key=rmq::connection::c%
	n=$(number_on "$1" "$key::queues" "$key::heartbeat" "$key::info")
	echo "c$n"
}

@test "lost: --connections, --json and --prometheus tell the node" {
	local q c
	q=$(queue_on 0)
	c=$(connection_on 1)
	run_mq 0 mq-publish "$q" x
	go_connection "$c" "$q"
	alive "$c"
	run_mq 0 mq-stats --connections
	assert_line --regexp "^$c +live +$(at 1) +- +- +$q +$(at 0) +1 +1$"
	run_mq 0 mq-stats --connections --json
	assert_equal "$(jq -r '.queues[0].node, .connections[0].node,
		.connections[0].queues[0].node, has("lost_nodes")' <<<"$output")" \
		"$(printf '%s\n' "$(at 0)" "$(at 1)" "$(at 0)" false)"
	run_mq 0 mq-stats --prometheus
	assert_line "mq_queue_node{queue=\"$q\",node=\"$(at 0)\"} 1"
	assert_line "rmq_ready{queue=\"$q\"} 1"
	assert_line "mq_lost_nodes 0"
}

@test "lost: every command goes at once to the node that has the key, whose clock counts" {
	local i c
	for i in 0 1 2; do
		run_mq 0 mq-publish "$(queue_on "$i")" x
		run_mq 0 mq-publish -d 1h "$(queue_on "$i")" x
		c=$(connection_on "$i")
		go_connection "$c" "$(queue_on "$i")"
		alive "$c"
	done
	for i in 0 1 2; do
		node "$i" config resetstat >/dev/null
	done
	run_mq 0 mq-stats
	times_are_asked
	run_mq 0 mq-clean
	times_are_asked
	run_mq 0 mq-stats --connections "$(queue_on 1)"
	run_mq 0 mq-stats --running "$(queue_on 1)" || [ "$status" = 1 ]
	run_mq 0 mq-stats --json "$(queue_on 1)"
	assert_equal "$(jq '.queues[0] | .oldest_age_s >= 0 and .oldest_age_s < 60 and
		.next_due_ms > 0' <<<"$output")" true
	nobody_is_sent_elsewhere
}

nobody_is_sent_elsewhere() {
	for i in 0 1 2; do
		refute_regex "$(node "$i" info errorstats)" MOVED
	done
}

# times_are_asked: each node was asked for its time since it was last looked at.
times_are_asked() {
	nobody_is_sent_elsewhere
	for i in 0 1 2; do
		assert_regex "$(node "$i" info commandstats)" cmdstat_time:
		node "$i" config resetstat >/dev/null
	done
}

@test "lost: what a lost node has is not known, the rest is shown, and it is named" {
	local gone away here why c
	gone=$(other_node)
	away=$(queue_on "$gone")
	here=$(queue_on "$(owner_of_key rmq::queues)")
	run_mq 0 mq-publish "$away" x
	run_mq 0 mq-publish "$here" x y
	c=$(connection_on "$(owner_of_key rmq::queues)")
	go_connection "$c" "$here"
	alive "$c"
	node_kill "$gone"
	why="$MQ_URL: node $(at "$gone"): Connection refused"

	run_mq 69 mq-stats
	assert_equal "$stderr" "mq-stats: $why"
	assert_line --regexp "^$here +2 +0 +1 +0 +1 "
	assert_line --regexp "^$away( +[?]){6}"
	assert_line --regexp "^TOTAL( +[?]){6}"
	run_mq 69 mq-stats --json
	assert_equal "$(jq -c --arg q "$away" '.queues[] | select(.name == $q) |
		[.ready, .delayed, .unacked, .rejected, .consumers, .paused]' <<<"$output")" \
		"[null,null,null,null,null,null]"
	assert_equal "$(jq -c '.lost_nodes | length' <<<"$output")" 1
	run_mq 69 mq-stats --prometheus
	assert_line "rmq_ready{queue=\"$here\"} 2"
	refute_output --partial "rmq_ready{queue=\"$away\"}"
	assert_line "mq_lost_nodes 1"
	run_mq 69 mq-stats --html
	assert_output --partial "node $(at "$gone"): Connection refused"
	run_mq 69 mq-stats --list ready "$away"
	assert_equal "$output" ""
	run_mq 69 mq-stats "$away"
	assert_line --regexp "^$away( +[?]){6}"

	run_mq 3 mq-stats --check ready=9
	assert_output --partial "$away: ready not known; node $(at "$gone")"
	run_mq 3 mq-stats --check ready=9 "$away"
	assert_output --partial "UNKNOWN - $away: ready not known"
	run_mq 2 mq-stats --check ready=1 "$here" "$away"
	run_mq 0 mq-stats --check ready=9,unacked=9 "$here"
}

@test "lost: without a connection's node, nobody says what it holds" {
	local gone here c
	gone=$(other_node)
	here=$(queue_on "$(owner_of_key rmq::queues)")
	c=$(connection_on "$gone")
	run_mq 0 mq-publish "$here" x y
	go_connection "$c" "$here"
	alive "$c"
	node_kill "$gone"
	run_mq 69 mq-stats "$here"
	assert_line --regexp "^$here +2 +0 +[?] +0 +[?] "
	run_mq 3 mq-stats --check consumers=1 "$here"
	assert_output --partial "consumers not known"
	run_mq 0 mq-stats --check ready=9 "$here"
	run_mq 69 mq-stats --connections
	assert_line --regexp "^$c +[?] "
}

@test "lost: without the names of the queues, those with messages are found" {
	local gone here there
	gone=$(owner_of_key rmq::queues)
	here=$(queue_on "$(other_node)")
	there=$(queue_on "$(owner_of_key rmq::connections)")
	run_mq 0 mq-publish "$here" x
	run_mq 0 mq-publish -d 1h "$there" x
	node_kill "$gone"
	run_mq 69 mq-stats
	assert_line --regexp "^$here +1 "
	assert_line --regexp "^$there +0 +1 "
	assert_line --regexp "^TOTAL( +[?]){6}"
	run_mq 3 mq-stats --check ready=9
	run_mq 0 mq-stats --check ready=9 "$here"
}

@test "lost: mq-clean does what it can, and names the node" {
	local gone here away c names
	gone=$(other_node)
	names=$(owner_of_key rmq::connections)
	here=$(queue_on "$(owner_of_key rmq::queues)")
	away=$(queue_on "$gone")
	c=$(connection_on "$names")
	go_connection "$c" "$here" "$away"
	run_mq 0 mq-publish -d 1ms "$here" due
	node_kill "$gone"
	run_mq 69 mq-clean
	assert_equal "$stderr" "mq-clean: $MQ_URL: node $(at "$gone"): Connection refused"
	assert_output --partial "0 dead connections, 1 message returned, 0 rejected, 1 due"
	# For the queue that is away.
	assert_equal "$(node "$names" sismember rmq::connections "$c")" 1
	node_run "$gone"
	eventually 30 cluster_ready 0
	run_mq 0 mq-clean
	assert_output --partial "1 dead connection, 0 messages returned"
}
