#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-pause, and what mq-consume makes of it.

load ../helpers/server

setup() {
	common_setup
	redis config set maxmemory 0 >/dev/null
	# Says in $T/started that it runs; ends when there is $T/go.
	script work <<'.'
read -r n
echo "$n" >>"$T/started"
until [ -e "$T/go" ]; do
	sleep 0.05
done
echo "$n" >>"$T/ended"
.
	: >"$T/started"
	: >"$T/ended"
}

key='rmq::queue::[q]::paused'

started_are() {
	[ "$(xargs <"$T/started")" = "$*" ]
}

ended_are() {
	[ "$(xargs <"$T/ended")" = "$*" ]
}

# The payloads of raw messages that are ready, the next one first.
ready() {
	redis lrange "rmq::queue::[${1:-q}]::ready" 0 -1 | tac | sed 's/^0*//' |
		tr '\n' ' ' | sed 's/ $//'
}

says() {
	grep -qx "mq-consume: $1" "$T/err"
}

# Two more heartbeats: whatever was to be noticed has been.
two_ticks() {
	tick
	tick
}

# at_work N HELD [OPTION...]: of N messages a consumer runs one, and holds as many as that.
at_work() {
	seq "$1" | run_mq 0 mq-publish --raw -l q
	start_mq mq-consume "${@:3}" q -- "$T/work"
	eventually 10 held_is q "$2"
}

@test "pause: until resumed, and -v says so, on a full server, too" {
	redis sadd rmq::queues other >/dev/null
	run_mq 0 mq-publish q x
	run_mq 0 mq-pause q
	assert_equal "$output$stderr" ""
	assert_equal "$(redis get "$key") $(redis pttl "$key")" "1 -1"
	# The last one decides.
	run_mq 0 mq-pause --for 10m q
	ms=$(redis pttl "$key")
	((ms > 590000 && ms <= 600000))
	run_mq 0 mq-pause --for=61500ms q
	ms=$(redis pttl "$key")
	((ms > 30000 && ms <= 61500))
	run_mq 0 mq-pause q
	assert_equal "$(redis pttl "$key")" -1
	run_mq 0 mq-pause --resume q
	assert_equal "$output$stderr" ""
	assert_equal "$(redis exists "$key")" 0
	run_mq 0 mq-pause --for 100ms q
	eventually 5 eval '[ "$(redis exists "$key")" = 0 ]'
	assert_equal "$(held q)" "1 0 0 0"
	redis config set maxmemory 1 >/dev/null
	tells 0 $'mq-pause: q: paused\nmq-pause: other: paused' mq-pause -v q other
	tells 0 "mq-pause: q: paused for 1h" mq-pause -v --for 1h q
	tells 0 $'mq-pause: q: resumed\nmq-pause: other: resumed' mq-pause --verbose --resume q other
}

@test "pause: no such queue, or not paused: 1, and the others are done" {
	redis sadd rmq::queues q other >/dev/null
	run_mq 1 mq-pause nothing q nowhere other
	assert_equal "$stderr" "\
mq-pause: nothing: no such queue
mq-pause: nowhere: no such queue"
	assert_equal "$(redis keys '*' | sort | xargs)" \
		"rmq::queue::[other]::paused rmq::queue::[q]::paused rmq::queues"
	tells 1 "mq-pause: nothing: no such queue" mq-pause --resume nothing q
	assert_equal "$(redis exists "$key")" 0
	tells 1 "mq-pause: q: not paused" mq-pause --resume q other
	assert_equal "$(redis keys '*')" rmq::queues
}

@test "pause: nothing starts, what runs ends, and what was held is in front" {
	seq 6 | run_mq 0 mq-publish --raw -l q
	start_mq mq-consume --prefetch 3 q -- "$T/work"
	eventually 10 started_are 1
	eventually 10 held_is q "2 0 4 0"
	seq 7 8 | run_mq 0 mq-publish --raw -l q
	run_mq 0 mq-pause q
	eventually 10 held_is q "7 0 1 0"
	assert_equal "$(ready)" "2 3 4 5 6 7 8"
	assert says "q: paused"
	touch "$T/go"
	eventually 10 ended_are 1
	eventually 5 held_is q "7 0 0 0"
	two_ticks
	assert_equal "$(ready)" "2 3 4 5 6 7 8"
	run_mq 0 mq-pause --resume q
	eventually 10 ended_are 1 2 3 4 5 6 7 8
	eventually 10 held_is q "0 0 0 0"
	assert says "q: resumed"
	stop_mq
	assert_equal "$(xargs <"$T/started")" "1 2 3 4 5 6 7 8"
	assert_equal "$(grep -c 'paused\|resumed' "$T/err")" 2
}

@test "pause: the end of --for is noticed by itself" {
	seq 3 | run_mq 0 mq-publish --raw -l q
	start_mq mq-consume q -- "$T/work"
	eventually 10 started_are 1
	run_mq 0 mq-pause --for 10s q
	touch "$T/go"
	eventually 5 says "q: paused"
	assert started_are 1
	assert [ "$(redis exists "$key")" = 1 ]
	eventually 10 ended_are 1 2 3
	assert [ "$(redis exists "$key")" = 0 ]
	stop_mq
	assert says "q: resumed"
}

@test "pause: noticed and ended promptly, with or without room" {
	# One runs, one is held: no room.
	at_work 2 "0 0 2 0" --prefetch 1
	for _ in 1 2 3; do
		promptly '"$BUILD/mq-pause" q' 'held_is q "1 0 1 0"' \
			'run_mq 0 mq-pause --resume q; eventually 5 held_is q "0 0 2 0"'
		promptly '"$BUILD/mq-pause" --resume q' 'held_is q "0 0 2 0"' \
			'run_mq 0 mq-pause q; eventually 5 held_is q "1 0 1 0"'
	done
	touch "$T/go"
	eventually 5 ended_are 1 2
	stop_mq
}

@test "pause: looking costs little while there is other news all the time" {
	at_work 2 "0 0 2 0" --prefetch 1
	tick
	redis config resetstat >/dev/null
	yes "LPUSH rmq::queue::[q]::ready x" | head -n 2000 | redis >/dev/null
	calls=$(redis info commandstats |
		sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\),.*/\1/p')
	((${calls:-0} <= 30))
	stop_mq KILL
}

@test "pause: without CLIENT TRACKING: with the next tick" {
	redis acl setuser alice reset on '>pw' allkeys allchannels +@all \
		-client '+client|id' >/dev/null
	at_work 3 "0 0 3 0" -q -u "$(url_as alice:pw)" --prefetch 2
	run_mq 0 mq-pause q
	eventually 10 held_is q "2 0 1 0"
	touch "$T/go"
	run_mq 0 mq-pause --resume q
	eventually 5 ended_are 1 2 3
	stop_mq
	assert_equal "$(cat "$T/err")" ""
}

@test "pause: other queues of the same consumer go on" {
	seq 3 | run_mq 0 mq-publish --raw -l q
	seq 11 13 | run_mq 0 mq-publish --raw -l other
	start_mq mq-consume --prefetch 5 q other -- "$T/work"
	eventually 10 held_is q "0 0 3 0"
	eventually 10 held_is other "0 0 3 0"
	run_mq 0 mq-pause q
	eventually 10 held_is q "2 0 1 0"
	assert_equal "$(held other)" "0 0 3 0"
	touch "$T/go"
	eventually 10 ended_are 1 11 12 13
	run_mq 0 mq-publish --raw other 14
	eventually 10 ended_are 1 11 12 13 14
	assert_equal "$(ready)" "2 3"
	run_mq 0 mq-pause --resume q
	eventually 10 ended_are 1 11 12 13 14 2 3
	stop_mq
	assert_equal "$(grep 'paused\|resumed' "$T/err")" \
		$'mq-consume: q: paused\nmq-consume: q: resumed'
}

@test "pause: -n counts what was run, and waits for the rest" {
	at_work 5 "2 0 3 0" -n 3 --prefetch 5
	run_mq 0 mq-pause q
	eventually 10 held_is q "4 0 1 0"
	touch "$T/go"
	eventually 10 ended_are 1
	two_ticks
	run_mq 0 mq-pause --resume q
	wait "$pid"
	assert_equal "$(xargs <"$T/ended")" "1 2 3"
	assert_equal "$(ready)" "4 5"
}

@test "pause: --drain waits for a paused queue's messages" {
	seq 2 | run_mq 0 mq-publish --raw -l q
	run_mq 0 mq-pause q
	touch "$T/go"
	start_mq mq-consume --drain q -- "$T/work"
	eventually 10 says "q: paused"
	two_ticks
	two_ticks
	assert kill -0 "$pid"
	run_mq 0 mq-pause --resume q
	wait "$pid"
	assert_equal "$(xargs <"$T/ended")" "1 2"
	# An empty one is drained, paused or not, and --idle ends all the same.
	run_mq 0 mq-pause q
	run_mq 0 mq-consume --drain q -- "$T/work"
	run_mq 0 mq-publish --raw q 1
	run_mq 0 mq-consume -q --idle 1500ms q -- "$T/work"
	assert_equal "$(ready)" 1
}

@test "pause: after USR1, what is held of a paused queue goes back, too" {
	at_work 4 "1 0 3 0" --prefetch 2
	kill -USR1 "$pid"
	run_mq 0 mq-pause q
	eventually 10 held_is q "3 0 1 0"
	touch "$T/go"
	run_mq 0 mq-pause --resume q
	eventually 5 ended_are 1
	two_ticks
	assert_equal "$(ready)" "2 3 4"
	stop_mq
}

@test "pause: a connection that is lost meanwhile" {
	at_work 4 "1 0 3 0" --prefetch 2
	printf '%s\n' MULTI "SET $key 1" "CLIENT KILL TYPE normal SKIPME yes" \
		EXEC | redis >/dev/null
	eventually 5 held_is q "3 0 1 0"
	assert_equal "$(ready)" "2 3 4"
	touch "$T/go"
	eventually 5 ended_are 1
	redis client kill type normal skipme yes >/dev/null
	redis del "$key" >/dev/null
	eventually 10 ended_are 1 2 3 4
	stop_mq
}

in_hand() {
	test "$(held "$1" | cut -d ' ' -f 3)" "$2" "$3"
}

@test "pause: what waits to be printed goes back, what has begun, or is of other queues, is ended" {
	seq -f '%0999.0f' 500 | run_mq 0 mq-publish --raw -l q
	seq -f '%0998.0fb' 200 | run_mq 0 mq-publish --raw -l other
	# Into a pipe, so that it writes ahead of what is read.
	mkfifo "$T/pipe"
	exec 8<>"$T/pipe"
	"$BUILD/mq-consume" -l q other >"$T/pipe" 2>"$T/err" 8>&- 3>&- &
	pid=$!
	timeout 120 head -c 400000 <&8 | sed 's/^0*//' | cmp - <(seq 400)
	# 64 KiB are in the pipe; hundreds of messages wait.
	eventually 10 in_hand q -eq 100
	eventually 10 in_hand other -eq 200
	run_mq 0 mq-pause q
	eventually 10 in_hand q -le 67
	assert_equal "$(held other)" "0 0 200 0"
	first=$(ready)
	first=${first%% *}
	assert_equal "$(ready)" "$(seq -s ' ' "$first" 500)"
	# What is read now is what had begun, whole.
	timeout 120 head -c $(((first - 401) * 1000)) <&8 | sed 's/^0*//' |
		cmp - <(seq 401 $((first - 1)))
	timeout 120 head -c 200000 <&8 | sed 's/^0*//' | cmp - <(seq -f %.0fb 200)
	eventually 5 held_is other "0 0 0 0"
	eventually 10 in_hand q -eq 0
	run_mq 0 mq-pause --resume q
	timeout 120 head -c $(((501 - first) * 1000)) <&8 | sed 's/^0*//' |
		cmp - <(seq "$first" 500)
	eventually 5 held_is q "0 0 0 0"
	stop_mq
}
