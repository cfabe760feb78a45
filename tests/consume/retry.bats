#!/usr/bin/env bats
# --retry-on err: what failed is tried again after a backoff, as often as
# --attempts allows.

# run_mq sets stderr; each test is a subshell of its own.
# shellcheck disable=SC1010,SC2030,SC2031,SC2154

load ../helpers/common

setup_file() {
	server_start
}

teardown_file() {
	server_stop
}

setup() {
	common_setup
}

teardown() {
	common_teardown
}

now_ms() {
	redis eval 'local t = redis.call("TIME")
		return t[1] * 1000 + math.floor(t[2] / 1000)' 0
}

due_ms() {
	redis zrange 'rmq::queue::[q]::delayed' 0 0 withscores | tail -n 1
}

reason() {
	element q "$1" | header Mq-Error
}

# waits SCRIPT REASON: one run of it, and the message waits for the next.
waits() {
	local before after

	redis flushall >/dev/null
	run_mq 0 mq-publish q x
	before=$(now_ms)
	run_mq 0 mq-consume -n 1 --retry-on err --backoff 20s..1000s q -- \
		sh -c "$1"
	after=$(now_ms)
	assert_equal "$(held q)" "0 1 0 0"
	assert_equal "$(reason delayed)" "$2"
	assert_equal "$(element q delayed | header Mq-Attempt)" 1
	assert [ $(($(due_ms) - before)) -ge 20000 ]
	assert [ $(($(due_ms) - after)) -le 40000 ]
}

@test "retry: every failure is tried again after the backoff" {
	waits 'exit 1' "exit status 1"
	waits 'kill -SEGV $$' "killed by SIGSEGV"
	waits 'echo err no luck >&3' "no luck"
	waits 'echo done >&3; exit 3' "exit status 3 after done"
	waits 'echo run x >&3' "x (no final verb)"
	waits 'exit 75' "exit status 75"
}

@test "retry: a run that took too long, and one that was silent with --strict" {
	run_mq 0 mq-publish q x
	run_mq 0 mq-consume -n 1 --retry-on err --timeout 50ms q -- sleep 60
	assert_equal "$(held q)" "0 1 0 0"
	assert_equal "$(reason delayed)" "timed out"
	redis flushall >/dev/null
	run_mq 0 mq-publish q x
	run_mq 0 mq-consume -n 1 --retry-on err --strict q -- true
	assert_equal "$(reason delayed)" "no final verb"
}

@test "retry: without --retry-on they are rejected" {
	run_mq 0 mq-publish q x
	run_mq 0 mq-consume -n 1 q -- false
	assert_equal "$(held q)" "0 0 0 1"
}

@test "retry: in the end the attempts are exhausted" {
	run_mq 0 mq-publish q x
	run_mq 0 mq-consume --idle 2s --retry-on err --attempts 3 \
		--backoff 1ms..5ms q -- sh -c 'echo "$MQ_ATTEMPT" >>"$T/runs"
			echo "err bad $MQ_ATTEMPT" >&3'
	assert_equal "$(cat "$T/runs")" $'1\n2\n3'
	assert_equal "$(held q)" "0 0 0 1"
	assert_equal "$(reason rejected)" "attempts exhausted: bad 3"
	assert_equal "$(element q rejected | header Mq-Attempt)" 3
	assert_equal "$(redis hmget 'rmq::queue::[q]::counters' runs retried failed | xargs)" \
		"3 2 1"
	run_mq 0 mq-stats --id "$(element q rejected | header Mq-Id)" q
	assert_output --partial "bad 1"
	assert_output --partial "bad 2"
}

@test "retry: a failure of another consumer's making counts" {
	run_mq 0 mq-publish q x
	run_mq 0 mq-consume -n 1 q -- sh -c 'echo resend 0 >&3'
	run_mq 0 mq-consume -n 1 --retry-on err --attempts 2 q -- false
	assert_equal "$(held q)" "0 0 0 1"
	assert_equal "$(reason rejected)" "attempts exhausted: exit status 1"
}

@test "retry: what cannot run stops the consumer as before" {
	run_mq 0 mq-publish q x
	run_mq 78 mq-consume -n 1 --retry-on err q -- sh -c 'exit 127'
	assert_equal "$(held q)" "1 0 0 0"
}

@test "retry: many at once, all of them in the end, each with its own jitter" {
	seq 100 | run_mq 0 mq-publish -l q
	run_mq 0 mq-consume -n 100 -j 4 --retry-on err --backoff 10s..600s q -- false
	assert_equal "$(held q)" "0 100 0 0"
	redis zrange 'rmq::queue::[q]::delayed' 0 -1 withscores |
		grep -a '^[0-9]\{13\}$' | sort -n >"$T/due"
	# Spread over the ten seconds that the first backoff allows.
	assert [ $(($(tail -n 1 "$T/due") - $(head -n 1 "$T/due"))) -gt 5000 ]
}

@test "retry: wrong uses" {
	run_mq 64 mq-consume --retry-on all q -- true
	assert_equal "$stderr" "mq-consume: --retry-on: all: must be err"
	run_mq 64 mq-consume --retry-on err q
	run_mq 64 mq-consume --backoff 5s..1s q -- true
}
