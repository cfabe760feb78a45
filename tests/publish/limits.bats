#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Limits that a message brings along: how long a run may take, and how many there may be.  The
# consumer's own limits hold, too: the lower one counts.
# layouts: rmq rsmq

load ../helpers/server
load ../helpers/consume
load "../helpers/layout-${LAYOUT:-rmq}"

setup() {
	common_setup
	redis flushall >/dev/null
	: >"$T/runs"
	# fail: notes its attempt, and wants another.
	printf '%s\n' 'echo "$MQ_ATTEMPT" >>"$T/runs"' 'exit 75' | script fail
	printf '%s\n' 'exec sleep 60' | script hang
	# die: takes its consumer with it.
	printf '%s\n' 'echo x >>"$T/runs"' 'kill -9 $PPID' 'exec sleep 60' | script die
}

reasons() {
	"$BUILD/mq-stats" --list rejected --json q | jq -r '.[].reason' | sort | uniq -c | xargs
}

consume() {
	local status=$1
	shift
	run_mq "$status" mq-consume --backoff 0s..0s --no-clean --idle 1s "$@"
}

@test "limits: a run ends after the lower time of the message and its consumer" {
	run_mq 0 mq-publish --timeout 300ms --attempts 1 q x
	consume 1 q -- "$T/hang"
	run_mq 0 mq-publish --timeout 300ms --attempts 1 q x
	consume 1 --timeout 1h q -- "$T/hang"
	run_mq 0 mq-publish --timeout 1h --attempts 1 q x
	consume 1 --timeout 300ms q -- "$T/hang"
	assert_equal "$(reasons)" "3 timed out"
}

@test "limits: of a batch the shortest time counts, of a stream that of each message" {
	run_mq 0 mq-publish --attempts 1 q x
	run_mq 0 mq-publish --timeout 300ms --attempts 1 q x
	consume 1 --batch 2 q -- "$T/hang"
	assert_equal "$(reasons)" "2 timed out"
	redis flushall >/dev/null
	printf '%s\n' 'while read -r x; do sleep "$x"; echo done >&3; done' | script stream
	run_mq 0 mq-publish --timeout 20s q 0.4
	run_mq 0 mq-publish --timeout 300ms --attempts 1 q 60
	run_mq 0 mq-publish q 0
	consume 1 --stream q -- "$T/stream"
	assert_equal "$(reasons)" "1 timed out"
	assert_equal "$("$BUILD/mq-stats" --json q | jq '.queues[0].counters.done')" 2
}

@test "limits: a message has the lower number of runs" {
	run_mq 0 mq-publish --attempts 2 q x
	consume 1 q -- "$T/fail"
	assert_equal "$(xargs <"$T/runs")" "1 2"
	: >"$T/runs"
	run_mq 0 mq-publish --attempts 9 q x
	consume 1 --attempts 3 q -- "$T/fail"
	assert_equal "$(xargs <"$T/runs")" "1 2 3"
	# Settings of the queue are the operator's, too.
	: >"$T/runs"
	run_mq 0 mq-set q attempts=1
	run_mq 0 mq-publish --attempts 9 q x
	consume 1 q -- "$T/fail"
	assert_equal "$(xargs <"$T/runs")" 1
	assert_equal "$(reasons)" "3 attempts exhausted: exit status 75"
}

@test "limits: a consumer that dies has used up one of the runs" {
	run_mq 0 mq-publish --attempts 1 q x
	run_mq 0 mq-publish q y
	"$BUILD/mq-consume" --no-clean -n 1 q -- "$T/die" 3>&- || true
	for c in $(connections); do expire "$c"; done
	run_mq 0 mq-clean
	consume 0 q -- true
	assert_equal "$(cat "$T/runs")" x
	assert_regex "$(reasons)" '^1 attempts exhausted: its consumer died|^1 attempts exhausted$'
}

@test "limits: copies have them, and lines of JSON; what is no limit is refused" {
	run_mq 0 mq-publish --timeout 5m --attempts 3 q x
	"$BUILD/mq-stats" --list ready --jsonl q >"$T/copy"
	run_mq 0 mq-publish --jsonl r <"$T/copy"
	run_mq 0 mq-stats --list ready --json r
	assert_equal "$(jq -c '.[0] | [.attempts_max, .timeout_ms]' <<<"$output")" "[3,300000]"
	id=$(jq -r '.[0].id' <<<"$output")
	run_mq 0 mq-stats --id "$id" r
	assert_line --regexp '^attempts +0, at most 3$'
	assert_line --regexp '^timeout +5m$'
	for header in '"Mq-Attempts":"0"' '"Mq-Timeout":"-1"' '"Mq-Timeout":"5m"'; do
		run_mq 65 mq-publish --jsonl q <<<"{\"payload\":\"x\",\"headers\":{$header}}"
		assert_regex "$stderr" "Mq-Attempts and Mq-Timeout"
	done
	# From elsewhere: it has no effect.
	redis eval 'redis.call("LPUSH", KEYS[1], "\255\0\190\190J{\"Mq-Attempts\":[\"0\"],\"Mq-Timeout\":[\"x\"]}\nx")' \
		1 'rmq::queue::[s]::ready' >/dev/null
	[ "${LAYOUT:-rmq}" != rmq ] || run_mq 0 mq-consume -n 1 s -- true
}
