#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# A cluster of three masters without replicas, of which one goes away: what a consumer does
# whose queues are on others.
# topology: own

load ../helpers/common
load ../helpers/cluster
export NODE_TIMEOUT=2000

setup_file() {
	cluster_start
}

setup() {
	cluster_empty
	# The node that lists connections, and two others.
	C0=$(owner_of_key rmq::connections)
	C1=$(((C0 + 1) % 3)) C2=$(((C0 + 2) % 3))
	HERE=$(queue_on "$C1")
}

connections() {
	node "$C0" smembers rmq::connections
}

# consumer_on NODE ARGS...: a consumer whose heartbeat is there.
consumer_on() {
	while :; do
		start_mq mq-consume "${@:2}"
		eventually 20 joined 1
		[ "$(owner_of_key "rmq::connection::$(connections)::heartbeat")" != "$1" ] ||
			break
		stop_mq
		eventually 20 joined 0
	done
	old=$(connections)
}

# A run that says that it began, and ends when it may.
slow_script() {
	script slow <<-END
		read -r line
		echo "\$line" >>"$T/began"
		until [ -e "$T/go" ]; do sleep 0.1; done
		echo "\$line" >>"$T/done"
	END
}

another_name() {
	[ "$(connections | grep -vcx "$old")" = 1 ]
}

# goes_on: under another name, with the run that it had.
goes_on() {
	eventually 60 another_name
	run_mq 0 mq-publish "$HERE" two three
	touch "$T/go"
	eventually 60 lines_reach "$T/done" 3
	assert_equal "$(sort "$T/done")" "one
three
two"
	assert_equal "$(sort "$T/began")" "$(sort "$T/done")"
	refute grep -q "lease lost" "$T/err"
}

@test "away: without the node of its heartbeat, killed or stopped, a consumer goes on under another name" {
	local how
	for how in KILL STOP; do
		rm -f "$T"/*
		slow_script
		consumer_on "$C2" -j2 "$HERE" -- "$T/slow"
		run_mq 0 mq-publish "$HERE" one
		eventually 20 lines_reach "$T/began" 1
		kill -"$how" "$(cat "$C/$C2/pid")"
		goes_on
		# One that was stopped has the old heartbeat still.
		[ "$how" = KILL ] || continue
		assert_equal "$(node "$C1" keys "rmq::connection::$old::queue::*")" ""
		cluster_mend
		run_mq 0 mq-clean
		stop_mq TERM 143
		joined 0
		assert_equal "$(node "$C1" keys "rmq::connection*")" ""
	done
}

@test "away: of several queues, those whose nodes answer are served, and the other later" {
	local there
	there=$(queue_on "$C2")
	consumer_on "$C0" -l "$there" "$HERE"
	run_mq 0 mq-publish "$there" there
	eventually 20 grep -qx there "$T/out"
	node_kill "$C2"
	run_mq 0 mq-publish "$HERE" here
	eventually 60 grep -qx here "$T/out"
	node_run "$C2"
	eventually 60 cluster_ready 0
	run_mq 0 mq-publish "$there" back
	eventually 60 grep -qx back "$T/out"
	stop_mq TERM 143
	joined 0
}

@test "away: nobody claims who cannot be listed; who has joined goes on" {
	consumer_on "$C2" -l "$HERE"
	node_kill "$C0"
	run_mq 0 mq-publish "$HERE" one
	eventually 60 grep -qx one "$T/out"
	stop_mq
	run_mq 0 mq-publish "$HERE" two
	SECONDS=0
	run_mq 75 mq-consume -n1 "$HERE"
	((SECONDS >= 30))
	assert_equal "$output" ""
	[[ $stderr == *"no consumer can join: node 127.0.0.1:$((CLUSTER_PORT + C0)): "*"; trying again"* ]]
	start_mq mq-consume -l "$HERE"
	eventually 20 grep -q "no consumer can join" "$T/err"
	run_mq 69 mq-lease --for 1m "$HERE"
	node_run "$C0"
	eventually 60 cluster_ready 0
	eventually 60 grep -qx two "$T/out"
}

@test "away: mq-lease takes a name whose keys are on nodes that answer" {
	run_mq 0 mq-publish "$HERE" one two three four
	node_kill "$C2"
	for i in one two three four; do
		run_mq 0 mq-lease --for 1m "$HERE"
		assert_output --partial "$i"
	done
}
