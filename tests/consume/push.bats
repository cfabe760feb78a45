#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# topologies: cluster
# The verb push: from queue to queue, in one step, until somebody has done it.

load ../helpers/server

setup() {
	common_setup
	echo 'echo push "$(cat)" >&3' | script pushes
}

published() {
	[ "$(redis hget "rmq::queue::[$1]::counters" published)" = "$2" ]
}

@test "push: a chain of queues" {
	run_mq 0 mq-publish -i -H 'X-Trace: 7' incoming "the payload"
	id=$output
	run_mq 75 mq-consume -n 1 incoming -- sh -c 'echo resend 0-first >&3'
	assert_equal "$(element incoming ready | header Mq-Attempt)" 1
	run_mq 0 mq-consume -n 1 -v --push push1 incoming -- "$T/pushes"
	assert_regex "$stderr" "incoming: $id: pushed to push1: the payload"
	assert_equal "$(held incoming) $(held push1)" "0 0 0 0 1 0 0 0"
	# It is counted as done here, and as published there, and known at once.
	assert_equal "$(redis hmget 'rmq::queue::[incoming]::counters' runs done failed | xargs)" "2 1"
	# On a cluster nobody waits for an answer about that count.
	eventually 5 published push1 1
	assert_equal "$(redis sismember rmq::queues push1)" 1
	run_mq 0 mq-consume -n 1 --push push2 push1 -- "$T/pushes"
	assert_equal "$(held push1) $(held push2)" "0 0 0 0 1 0 0 0"
	# Attempts begin anew, and the rest is as it was.
	assert_regex "$(element push2 ready | tail -c +6 | head -n 1)" \
		"^\{\"Mq-Id\":\[\"$id\"\],\"X-Trace\":\[\"7\"\],\"Mq-Error\":\[\"0-first\"\],\"Mq-History\":\[[^]]*\]\}$"
	# Only a good exit pushes; the last one has none to push to.
	run_mq 75 mq-consume -n 1 --push p --retry-on err --backoff 0s..0s push2 -- \
		sh -c 'echo push x >&3; exit 3'
	run_mq 1 mq-consume -n 1 push2 -- "$T/pushes"
	assert_equal "$(held push2)" "0 0 0 1"
	assert_equal "$(element push2 rejected | header Mq-Error)" "the payload"
	assert_equal "$(element push2 rejected | header Mq-Attempt)" 2
	assert_equal "$(element push2 rejected | tail -n +2)" "the payload"
}

@test "push: a raw message stays raw, byte for byte" {
	printf 'a\0b\n\377c' | run_mq 0 mq-publish --raw q
	run_mq 0 mq-consume -n 1 --push p q -- sh -c 'echo push >&3'
	assert_equal "$(held q) $(held p)" "0 0 0 0 1 0 0 0"
	run_mq 0 mq-consume -n 1 --push p2 p -- sh -c 'echo push >&3'
	# A Go program has it.
	redis rpoplpush 'rmq::queue::[p2]::ready' \
		'rmq::connection::go-123456::queue::[p2]::unacked' >"$T/got"
	printf 'a\0b\n\377c\n' | cmp - "$T/got"
}

@test "push: a full server" {
	run_mq 0 mq-publish q x
	redis config set maxmemory 1 >/dev/null
	run_mq 0 mq-consume -n 1 --push p q -- "$T/pushes"
	redis config set maxmemory 0 >/dev/null
	# On a cluster it waits for the room on the other node.
	[ "${TOPOLOGY-}" != cluster ] || run_mq 0 mq-clean
	assert_equal "$(held q) $(held p)" "0 0 0 0 1 0 0 0"
}
