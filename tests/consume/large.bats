#!/usr/bin/env bats
# Messages from 1 MiB on: no script copies them.

# run_mq sets stderr; each test is a subshell of its own.
# shellcheck disable=SC2030,SC2031,SC2154

load ../helpers/common

setup_file() {
	server_start
}

teardown_file() {
	server_stop
}

setup() {
	common_setup
	head -c 3000000 /dev/urandom >"$T/large"
	redis config resetstat >/dev/null
}

teardown() {
	common_teardown
}

# calls COMMAND: how often it was called.
calls() {
	redis info commandstats | sed -n "s/^cmdstat_$1:calls=\([0-9]*\),.*/\1/p"
}

# no_traces: only what belongs there is left.
no_traces() {
	run redis keys '*::moving*'
	assert_output ''
}

@test "large: claimed in order among small ones, bit by bit" {
	local i

	for i in 1 2 3; do
		"$BUILD/mq-publish" q "small $i"
		"$BUILD/mq-publish" q <"$T/large"
	done
	seq 100 | "$BUILD/mq-publish" -l q
	{
		for i in 1 2 3; do
			printf '7:small %s,3000000:' $i
			cat "$T/large"
			printf ,
		done
		seq 100 | awk '{printf "%d:%s,", length($0), $0}'
	} >"$T/want"
	"$BUILD/mq-consume" --drain --netstring q >"$T/got"
	cmp "$T/got" "$T/want"
	assert_equal "$(held q)" "0 0 0 0"
	no_traces
	assert_equal "$(redis exists 'rmq::queue::[q]::large')" 0
}

@test "large: the only message moves with its list" {
	"$BUILD/mq-publish" q <"$T/large"
	run_mq 0 mq-consume -n 1 q -- cmp - "$T/large"
	assert_equal "$(held q)" "0 0 0 0"
	assert_equal "$(calls lindex)" 2 # one of them tries its right
	no_traces
}

@test "large: a peer's message is found out about" {
	redis sadd rmq::queues q >/dev/null
	redis -x lpush 'rmq::queue::[q]::ready' <"$T/large" >/dev/null
	redis -x lpush 'rmq::queue::[q]::ready' <"$T/large" >/dev/null
	run_mq 0 mq-consume -n 1 q -- cmp - "$T/large"
	assert_equal "$(redis exists 'rmq::queue::[q]::large')" 1
	run_mq 0 mq-consume -n 1 q -- cmp - "$T/large"
	assert_equal "$(held q)" "0 0 0 0"
	assert_equal "$(calls exec)" 1
}

@test "large: nothing is claimed from a paused queue" {
	"$BUILD/mq-publish" q <"$T/large"
	"$BUILD/mq-pause" -q q
	start_mq mq-consume q -- true
	eventually 10 grep -q 'q: paused' "$T/err"
	assert_equal "$(held q)" "1 0 0 0"
	"$BUILD/mq-pause" -q --resume q
	eventually 10 held_is q "0 0 0 0"
	stop_mq
	no_traces
}

@test "large: a consumer that dies leaves it to the others" {
	"$BUILD/mq-publish" q <"$T/large"
	"$BUILD/mq-publish" q next
	start_mq mq-consume --prefetch 0 q -- sleep 100
	eventually 10 held_is q "1 0 1 0"
	stop_mq KILL
	redis del "rmq::connection::$(connections)::heartbeat" >/dev/null
	run_mq 0 mq-clean
	run_mq 0 mq-consume -n 1 q -- cmp - "$T/large"
	assert_equal "$(held q)" "1 0 0 0"
}

@test "large: without the rights, or behind a key: as any other" {
	"$BUILD/mq-publish" -k a q <"$T/large"
	run_mq 0 mq-consume -n 1 q -- cmp - "$T/large"
	"$BUILD/mq-publish" q <"$T/large"
	redis acl setuser old on '>pw' '~*' '&*' +@all -rename >/dev/null
	MQ_URL=unix://old:pw@$D/redis.sock run_mq 0 mq-consume -n 1 q -- \
		cmp - "$T/large"
	assert_equal "$(held q)" "0 0 0 0"
	redis acl deluser old >/dev/null
}

@test "large: not faster than the rate" {
	local i

	for i in 1 2 3; do
		"$BUILD/mq-publish" q <"$T/large"
	done
	run_mq 0 mq-consume --rate-shared 5/s -n 3 q -- cmp - "$T/large"
	assert_equal "$(held q)" "0 0 0 0"
	no_traces
}
