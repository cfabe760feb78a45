#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-consume --batch when something breaks: the script, the consumer, the
# server, the lease, what the script says, its start.  Nothing is lost.
#
# layouts: rmq rsmq

load ../helpers/server
load ../helpers/consume
load "../helpers/layout-${LAYOUT:-rmq}"

setup() {
	common_setup
	touch "$T/results" "$T/batches"
	echo 'cat >>"$T/results"' | script note
	# Says which process has which batch, and ends as it is told.
	script hold <<'S'
echo "$$ $MQ_BATCH $(paste -s -d ' ' -)" >>"$T/batches"
until [ -e "$T/go" ]; do sleep 0.02; done
cat "$T/go" >&3
exit "$(cat "$T/status" 2>/dev/null || echo 0)"
S
}

teardown() {
	exec 7>&-
	[ "$D" = "$FILE_D" ] || server_stop
	common_teardown
}

# Payload and attempts of what is in a state, in its order.
attempts() {
	"$BUILD/mq-stats" --list "$1" --jsonl q |
		jq -r '"\(.payload):\(.headers["Mq-Attempt"][0] // 0)"' | xargs
}

# The process that has the first batch.
script_pid() {
	sed -n '1s/ .*//p' "$T/batches"
}

# all_done N: each of 1 to N is in the results, and nothing is left.
all_done() {
	seq "$1" | sort >"$T/want"
	sort -u "$T/results" | comm -23 "$T/want" - >"$T/lost"
	echo "lost: $(wc -l <"$T/lost"), runs: $(wc -l <"$T/results")"
	assert_equal "$(wc -l <"$T/lost")" 0
	assert_equal "$(held q)" "0 0 0 0"
}

@test "batch: the crash of a consumer is charged to all of a batch" {
	publish {1..12}
	start_mq mq-consume --batch 4 --prefetch 3 q -- "$T/hold"
	eventually 10 lines_reach "$T/batches" 1
	eventually 10 held_is q "5 0 7 0"
	stop_mq KILL
	expire "$(connections)"
	run_mq 0 mq-clean -q
	a=$crash_costs_ahead
	assert_equal "$(attempts ready | tr ' ' '\n' | sort -n | xargs)" \
		"1:1 2:1 3:1 4:1 5:$a 6:$a 7:$a 8:0 9:0 10:0 11:0 12:0"
	eventually 5 gone "$(script_pid)"
}

@test "batch: what ended while the server was away is settled by its verbs" {
	safe_server
	publish {1..5}
	start_mq mq-consume --batch 4 q -- "$T/hold"
	eventually 10 lines_reach "$T/batches" 1
	server_kill
	printf 'err #2 no\nresend #3 100\n' >"$T/go.new"
	mv "$T/go.new" "$T/go"
	eventually 5 gone "$(script_pid)"
	server_run "${safe[@]}"
	eventually 20 state_is q "0 1 0 2 1"
	stop_mq
	assert_equal "$(attempts delayed)" 3:1
	assert_regex "$(payloads rejected)" '2'
}

@test "batch: the grace is over: what was judged stands, the rest goes back" {
	local grace
	script stays <<'S'
[ "$1" = 50ms ] || trap '' TERM
printf 'done #1\nerr #3 bad\nresend #4 100\n' >&3
echo "$$ $MQ_BATCH" >>"$T/batches"
while :; do sleep 1; done
S
	for grace in 50ms 60s; do
		redis flushall >/dev/null
		: >"$T/batches"
		publish {1..9}
		start_mq mq-consume --batch 5 --prefetch 2 --grace $grace q -- "$T/stays" $grace
		eventually 10 lines_reach "$T/batches" 1
		eventually 10 held_is q "2 0 7 0"
		kill -INT "$pid"
		if [ $grace = 60s ]; then
			eventually 5 state_is q "4 0 5 0 1"
			kill -INT "$pid"
		fi
		ends_within 60
		assert_equal "$status" 130
		assert_equal "$(attempts ready)" '2:0 5:0 6:0 7:0 8:0 9:0'
		assert_equal "$(payloads rejected)" 3
		assert_equal "$(attempts delayed)" 4:1
	done
}

@test "batch: nothing that it says counts when the lease is lost" {
	publish {1..5}
	start_mq mq-consume -v --batch 4 --batch-wait 10ms q -- "$T/hold"
	eventually 10 lines_reach "$T/batches" 1
	kill -STOP "$pid"
	c=$(connections)
	# A cleaner takes it for dead, and somebody else gets the messages.
	expire "$c"
	run_mq 0 mq-clean -q
	assert_equal "$(held q)" "5 0 0 0"
	echo 'err' >"$T/go"
	"$BUILD/mq-consume" -q --batch 5 --drain q -- "$T/note" 3>&-
	kill -CONT "$pid"
	eventually 10 grep -q 'lease lost' "$T/err"
	eventually 10 state_is q "0 0 0 0 1"
	stop_mq
	all_done 5
	assert_equal "$(wc -l <"$T/results")" 5
}

@test "batch: one message that vanishes does not charge the others" {
	publish {1..4}
	start_mq mq-consume -v --batch 4 q -- "$T/hold"
	eventually 10 lines_reach "$T/batches" 1
	# A cleaner of somebody else's who was wrong, say.
	peer_steals 3
	eventually 10 gone "$(script_pid)"
	eventually 10 lines_reach "$T/batches" 2
	assert_regex "$(tail -n 1 "$T/batches")" '^[0-9]+ 3 1 2 4$'
	assert_equal "$(held q)" "0 0 $((3 + stolen)) 0"
	echo 75 >"$T/status"
	touch "$T/go"
	eventually 10 held_is q "0 3 $stolen 0"
	stop_mq
	assert_equal "$(attempts delayed | tr ' ' '\n' | sort | xargs)" \
		'1:1 2:1 4:1'
	assert_regex "$(cat "$T/err")" 'lease lost: another consumer has'
}

@test "batch: a start that fails for a while is tried again" {
	publish {1..7}
	cp "$T/note" "$T/busy"
	exec 7>>"$T/busy"
	start_mq mq-consume --batch 3 --batch-wait 10ms q -- "$T/busy" 7>&-
	eventually 5 grep -q 'Text file busy; trying again' "$T/err"
	# Held, and none has an attempt more.
	eventually 5 held_is q "4 0 3 0"
	assert_equal "$(attempts ready)" '4:0 5:0 6:0 7:0'
	exec 7>&-
	eventually 10 lines_reach "$T/results" 7
	eventually 5 held_is q "0 0 0 0"
	stop_mq
	all_done 7
	assert_equal "$(cat "$T/results")" "$(seq 7)"
}

@test "batch: an environment that is too long is no fault of the messages" {
	export MQ_TEST_LONG1 MQ_TEST_LONG2 MQ_TEST_LONG3
	MQ_TEST_LONG1=$(head -c 120000 /dev/zero | tr '\0' x)
	MQ_TEST_LONG2=$MQ_TEST_LONG1 MQ_TEST_LONG3=$MQ_TEST_LONG1
	start_mq mq-consume --batch 4 --prefetch 3 --batch-wait 1h q -- "$T/note"
	# Not before it runs.
	eventually 5 joined
	prlimit --pid "$pid" --stack=1048576:8388608
	unset MQ_TEST_LONG1 MQ_TEST_LONG2 MQ_TEST_LONG3
	publish {1..9}
	ends_within 60
	assert_equal "$status" 78
	assert_regex "$(cat "$T/err")" "Argument list too long; stopping, the messages are returned"
	assert_equal "$(attempts ready)" '1:0 2:0 3:0 4:0 5:0 6:0 7:0 8:0 9:0'
	assert_equal "$(connections)" ''
}
