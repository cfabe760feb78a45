#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# layouts: rmq rsmq
# topology: own
# A server that answers nonsense: no tool takes it for something else, or goes on for ever.

load ../helpers/server

: "${LAYOUT:=rmq}"

setup() {
	load "../helpers/layout-$LAYOUT"
	export MQ_LAYOUT=$LAYOUT
	common_setup
	"$BUILD/mq-publish" -q q 1 2 3
}

# answers COMMAND REPLY: as helpers/answers.py has it; the tools ask there from now on.
answers() {
	[ -z "${relay-}" ] || kill "$relay"
	rm -f "$T/socket"
	python3 "$root/tests/helpers/answers.py" "$T/socket" "$D/redis.sock" "$@" 3>&- 2>/dev/null &
	relay=$!
	eventually 10 [ -S "$T/socket" ]
	MQ_URL=unix://$T/socket
}

@test "nonsense: the time" {
	local time
	for time in '*2 $-1 $-1 ' '*2 *0 *0 ' '*2 :1 :2 ' '*0 ' '*2 $20 99999999999999999999 $1 0 '; do
		answers time "$time"
		seq 2 | run_mq 0 mq-publish -l q
		run_mq 0 mq-publish -d 1h q x
	done
}

@test "nonsense: a script that answers nothing" {
	answers evalsha,eval '$-1 '
	run_mq 69 mq-publish -l -p 5 --max-length 9 q <<<1
	assert_regex "$stderr" "^mq-publish: $MQ_URL: unexpected reply"
}

@test "nonsense: messages that are none" {
	local held
	for held in '*5 :0 :1 $-1 $1 x :2 ' '*2 :0 *2 :1 :2 ' '*0 ' '*1 *0 ' '*6 :1 :0 :1 :1 :7 *0 '; do
		answers exec,evalsha,eval "$held"
		start_mq mq-consume --no-clean -l q
		eventually 10 grep -q 'unexpected reply' "$T/err"
		kill "$pid" 2>/dev/null || true
		status=0
		wait "$pid" || status=$?
		[[ $status = 69 || $status = 143 ]]
	done
}

has_said_something() {
	[ -s "$T/out" ] || [ -s "$T/err" ]
}

@test "nonsense: answers that nobody waits for, and messages of no channel" {
	local word extra
	extra='*3 $7 message $20 __redis__:invalidate '
	for word in client subscribe exec,evalsha,eval,ping; do
		for reply in %% "%$extra*1 :7 " "$extra*2 *0 \$-1 %" "%*3 \$9 subscribe \$1 x :1 " '>2 +a +b %'; do
			answers "$word" "$reply"
			start_mq mq-consume --no-clean -l q r
			eventually 10 has_said_something
			kill "$pid" 2>/dev/null || true
			status=0
			wait "$pid" || status=$?
			[[ $status = 69 || $status = 143 ]] || fail "$word: $reply: $status"
			"$BUILD/mq-publish" -q -u "unix://$D/redis.sock" q 1
		done
	done
}
