#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Tools that start while a master is being replaced: they wait for the next one.
# topology: own

load ../helpers/common
load ../helpers/cluster
load ../publish/feed
export NODE_TIMEOUT=2000

setup() {
	cluster_setup
	MQ_URL=redis-cluster://$(others 6)
	for i in 0 1 2 3 4 5; do
		node "$i" config set cluster-require-full-coverage no >/dev/null
	done
	eventually 20 replicas_known
	# Its node is not that of the names of all queues.
	Q=$(queue_on "$(other_than "$(owner_of_key rmq::queues)")")
	master=$(owner_of "$(slot_of "$Q")")
	replica=$(replica_of "$master")
}

# others BUT: the hosts of a URL.
others() {
	local i all=()
	for i in 0 1 2 3 4 5; do
		[ "$i" = "$1" ] || all+=("127.0.0.1:$((CLUSTER_PORT + i))")
	done
	(
		IFS=,
		echo "${all[*]}"
	)
}

teardown() {
	cluster_mend
	common_teardown
}

# meanwhile STATUS TOOL ARGS...: in the background; its name is that of its files in $T.
meanwhile() {
	local want=$1 tool=$2
	shift 2
	(
		status=0
		timeout 120 "$BUILD/$tool" "$@" >"$T/$tool.out" 2>"$T/$tool.err" || status=$?
		[ "$status" = "$want" ] || {
			echo "$tool: $status"
			cat "$T/$tool.err"
			exit 1
		}
	) 3>&- &
	tools+=($!)
}

all_end() {
	local p good=1
	for p in "${tools[@]}"; do
		wait "$p" || good=
	done
	[ -n "$good" ]
}

@test "failover: --durable asks again where its slot has moved" {
	mkfifo "$T/in"
	"$BUILD/mq-publish" --durable -i -l "$Q" <"$T/in" >"$T/out" 2>"$T/err" 3>&- &
	pid=$!
	exec 8>"$T/in"
	echo a >&8
	eventually 20 [ -s "$T/out" ]
	slot_move "$(slot_of "$Q")" "$(other_than "$master")"
	echo b >&8
	exec 8>&-
	status=0
	wait "$pid" || status=$?
	cat "$T/err"
	assert_equal "$status" 0
	assert_equal "$(wc -l <"$T/out")" 2
	assert_equal "$(state "$Q")" "2 0 0 0 0"
}

@test "failover: whatever starts meanwhile waits for the next master" {
	local tools=()
	run_mq 0 mq-publish "$Q" a b
	eventually 10 replicated 2
	MQ_URL=redis-cluster://$(others "$master")
	kill -KILL "$(cat "$C/$master/pid")"
	meanwhile 0 mq-publish "$Q" x
	meanwhile 0 mq-consume -n 1 "$Q"
	meanwhile 1 mq-return "$Q"
	meanwhile 0 mq-lease --for 1m "$Q"
	all_end
	[ -s "$T/mq-lease.out" ]
	[ -s "$T/mq-consume.out" ]
}

replicated() {
	[ "$(printf 'readonly\nllen rmq::queue::{%s}::ready\n' "$Q" |
		node "$replica" | tail -n 1)" = "$1" ]
}

# The dead node's replica stands still: nobody can take over, and nobody waits for ever.
@test "failover: that does not come: 75, and mq-stats after a moment; others do not wait" {
	local tools=() names
	run_mq 0 mq-publish "$Q" a
	MQ_URL=redis-cluster://$(others "$master")
	kill -STOP "$(cat "$C/$replica/pid")"
	kill -KILL "$(cat "$C/$master/pid")"
	meanwhile 75 mq-publish "$Q" x
	meanwhile 75 mq-return "$Q"
	meanwhile 3 mq-stats --check ready=1 "$Q"
	all_end
	assert_regex "$(cat "$T/mq-publish.err")" "127.0.0.1:$((CLUSTER_PORT + master)): Connection (refused|timed out)"
}

@test "failover: publishing does not wait for the node of all names" {
	local q=$Q
	names=$(owner_of "$(node 0 cluster keyslot rmq::queues)")
	MQ_URL=redis-cluster://$(others "$names")
	kill -STOP "$(cat "$C/$(replica_of "$names")/pid")"
	kill -KILL "$(cat "$C/$names/pid")"
	timeout 20 "$BUILD/mq-publish" "$q" x
	timeout 20 "$BUILD/mq-publish" "$q-{$q}" x || [ $? = 64 ]
}

@test "failover: without a replica nobody waits; --durable waits for one, then 75" {
	local tools=()
	MQ_URL=redis-cluster://$(others "$master")
	kill -KILL "$(cat "$C/$master/pid")"
	run_mq 0 mq-publish "$Q" x
	meanwhile 75 mq-publish --durable "$Q" y
	all_end
	assert_regex "$(cat "$T/mq-publish.err")" "not durable yet: its replica is not connected"
	meanwhile 0 mq-publish --durable "$Q" z
	node_run "$master"
	all_end
	# (Its number is that of the master now.)
	kill -KILL "$(cat "$C/$master/pid")"
	eventually 30 alone "$replica"
	MQ_URL=redis-cluster://$(others "$replica")
	node_kill "$replica"
	status=0
	timeout 20 "$BUILD/mq-publish" "$Q" x 2>"$T/err" || status=$?
	# Or the others have noticed before.
	assert_regex "$status $(<"$T/err")" '^69 .*(Connection refused|CLUSTERDOWN)'
}

# No replica of that node is in good order, whoever is asked.
alone() {
	local i
	for i in 0 1 2 3 4 5; do
		[ "$i" != "$1" ] && [ "$i" != "$master" ] || continue
		! node "$i" cluster slots | grep -A 7 "^$((CLUSTER_PORT + $1))$" |
			grep -qx $((CLUSTER_PORT + master)) || return 1
	done
}

@test "failover: --spool goes to disk at once, and each message comes once to the next master" {
	local other slot
	slot=$(slot_of "$Q")
	other=$(queue_on "$(other_than "$master")")
	export XDG_STATE_HOME=$T/state
	feed -l --spool "$Q"
	seq 3000 >&5
	eventually 10 replica_has 3000
	# No failover comes before the test is ready for it.
	kill -STOP "$(cat "$C/$replica/pid")"
	node_kill "$master"
	seq 3001 6000 >&5
	close_feed 0
	assert_equal "$stderr" "mq-publish: spooled: 3000 messages"
	# The other queue has its node, and waits for nobody.
	run --separate-stderr timeout 5 "$BUILD/mq-publish" --spool "$other" x
	assert_equal "$status" 0
	assert_equal "$stderr" ""
	run --separate-stderr timeout 5 "$BUILD/mq-publish" --spool "$Q" 6001
	assert_equal "$status" 0
	assert_equal "$stderr" "mq-publish: spooled: 1 message"
	kill -CONT "$(cat "$C/$replica/pid")"
	eventually 60 eval '[ "$(owner_of "$slot" "$replica")" = "$replica" ]'
	run_mq 0 mq-publish --flush
	assert_equal "$stderr" "mq-publish: flushed: 3001 messages"
	assert_equal "$("$BUILD/mq-stats" --list ready -l "$Q" | md5sum)" "$(seq 6001 | md5sum)"
	run_mq 0 mq-consume -l --drain "$other"
	assert_output x
}

replica_has() {
	[ "$(printf 'readonly\nllen rmq::queue::{%s}::ready\n' "$Q" |
		redis-cli -p $((CLUSTER_PORT + replica)) | tail -n 1)" = "$1" ]
}
