#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# layouts: rmq rsmq
# topologies: cluster
# A server that runs a long script of somebody answers all others with BUSY.  What is
# answered so was not done: the tools wait and say it again.

load ../helpers/server

: "${LAYOUT:=rmq}"

setup_file() {
	server_start --lua-time-limit 5
}

setup() {
	load "../helpers/layout-$LAYOUT"
	export MQ_LAYOUT=$LAYOUT
	common_setup
}

teardown() {
	: >"$T/stop"
	common_teardown
}

is() {
	[ "$LAYOUT" = "$1" ]
}

servers() {
	[ "${TOPOLOGY-}" = cluster ] && echo 0 1 2 || echo 0
}

# at N ARGS...
at() {
	if [ "${TOPOLOGY-}" = cluster ]; then
		at_node "$@"
	else
		redis "${@:2}"
	fi
}

# Each of them.
are_busy() {
	local i

	for i in $(servers); do
		at "$i" ping 2>&1 | grep -q '^BUSY' || return 1
	done
}

# long_script N: each counts to N.
long_script() {
	local i

	for i in $(servers); do
		at "$i" eval "for i = 1, $1 do end" 0 >/dev/null 2>&1 &
	done
	wait
}

# Those that run now.
end_scripts() {
	local i

	for i in $(servers); do
		at "$i" script kill >/dev/null 2>&1 || true
	done
}

# meanwhile STATUS TOOL...: it begins while the server is busy.
meanwhile() {
	long_script 1e15 3>&- &
	eventually 10 are_busy
	{ read -rt 0.3 <> <(:) || true; end_scripts; } 3>&- &
	run_mq "$@"
	wait
}

# often: it is busy again and again, until the file is there.
often() {
	local i

	until [ -e "$T/stop" ]; do
		for i in 1 2 3; do
			long_script 1000000
			read -rt "0.0$((RANDOM % 4 + 1))" <> <(:) || true
		done
	done 3>&- &
}

@test "busy: each tool waits, and does all that it was asked for" {
	is rmq || run_mq 0 mq-set -q --create q attempts=5
	meanwhile 0 mq-publish q 1 2 3
	meanwhile 0 mq-publish -d 1h q later
	if is rmq; then
		meanwhile 0 mq-publish -g a q 4
		meanwhile 0 mq-publish -k a q 5
		meanwhile 1 mq-publish -k a q 5
		meanwhile 0 mq-publish --attach a="$BATS_TEST_FILENAME" other 1
	fi
	meanwhile 0 mq-stats q
	meanwhile 0 mq-stats --json --connections
	meanwhile 0 mq-stats --list ready q
	meanwhile 0 mq-stats --check ready=100 q
	meanwhile 0 mq-set q attempts=3
	meanwhile 0 mq-pause q
	meanwhile 0 mq-pause --resume q
	meanwhile 0 mq-clean
	meanwhile 1 mq-consume -n 1 --attempts 1 q -- false
	meanwhile 0 mq-return q
	meanwhile 0 mq-lease --for 1m q
	meanwhile 0 mq-lease --ack "$(sed 's/.*"receipt":"\([^"]*\)".*/\1/' <<<"$output")" q
	meanwhile 0 mq-purge --force -n 1 --ready q
	meanwhile 0 mq-consume -q --drain q -- true
	assert_equal "$(held q)" "0 1 0 0"
}

@test "busy: all is published once, and each message runs once" {
	often
	seq 6000 | run_mq 0 mq-publish -q -l q
	seq 6001 7000 | run_mq 0 mq-publish -q -d 1ms -l q
	run_mq 0 mq-consume -q --drain -l q
	assert_equal "$(sort -n <<<"$output" | md5sum)" "$(seq 7000 | md5sum)"
	seq 300 | run_mq 0 mq-publish -q -l q
	run_mq 0 mq-consume -q --drain -j 4 q -- sh -c 'echo "$(cat)"'
	assert_equal "$(sort -n <<<"$output" | md5sum)" "$(seq 300 | md5sum)"
	: >"$T/stop"
	eventually 10 held_is q "0 0 0 0"
}

@test "busy: a group keeps its order" {
	is rmq || skip "the layout has no groups"
	often
	seq 6000 | run_mq 0 mq-publish -q -l -g a q
	: >"$T/stop"
	run_mq 0 mq-consume -q --drain -l q
	assert_equal "$(md5sum <<<"$output")" "$(seq 6000 | md5sum)"
}

@test "busy: a consumer goes on, and ends well" {
	start_mq mq-consume --prefetch 50 q -- cat
	eventually 10 connections
	often
	for i in 1 2 3; do
		seq 100 | run_mq 0 mq-publish -q -l q
	done
	eventually 60 held_is q "0 0 0 0"
	eventually 10 eval '[ "$(grep -o . "$T/out" | wc -l)" = $((3 * 192)) ]'
	stop_mq TERM 143
	: >"$T/stop"
	eventually 10 held_by_nobody
}
