#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# topologies: cluster
# Which of the waiting messages comes next: the logical clock of a queue, --tick,
# --from-tick and --until-tick, and mq-publish -p.

load ../helpers/server

clock() {
	redis get 'rmq::queue::[q]::clock'
}

@test "ticks: --tick sets the clock, which never goes back" {
	mkfifo "$T/in"
	exec 5<>"$T/in"
	# It needs no input, and the queue exists from then on.
	run_mq 0 mq-publish --tick 7 q <&5
	exec 5>&-
	assert_equal "$output$stderr" ""
	assert_equal "$(clock) $(redis smembers rmq::queues)" "7 q"
	assert_equal "$(redis exists 'rmq::queue::[q]::counters')" 0
	run_mq 0 mq-publish --tick 7 q
	assert_equal "$output$stderr" ""
	tells 1 "mq-publish: q: --tick 6: the queue is at tick 7 already" mq-publish --tick 6 q
	assert_equal "$(clock)" 7
	run_mq 1 mq-publish --tick 0 q
	run_mq 0 mq-publish --tick 281474976710656 q
	assert_equal "$(clock)" 281474976710656
	run_mq 1 mq-publish --tick 8 q
	assert_regex "$stderr" 'the queue is at tick 281474976710656 already$'
}

@test "ticks: what does not go together" {
	local options
	for options in '--tick -1' '--tick 1.5' '--tick x' \
		'--tick 281474976710657' '--from-tick -1' '--until-tick x' \
		'--from-tick 3 --until-tick 2' '--raw --from-tick 1' \
		'--raw --until-tick 1' '--tick 1 -l' '--tick 1 -k a' \
		'--tick 1 -d 1s' '--tick 1 --at 12:00' '--tick 1 -e 1s' \
		'--tick 1 -i' '--tick 1 --raw' '--tick 1 --max-length 1' \
		'--tick 1 --max-delayed 1' '--tick 1 -H A:b' '--tick 1 -P 1=x'; do
		# shellcheck disable=SC2086
		run_mq 64 mq-publish $options q </dev/null
		assert_equal "$(wc -l <<<"$stderr")" 1
	done
	run_mq 64 mq-publish --tick 1 q payload
	assert_equal "$(redis dbsize)" 0
}

@test "ticks: a message does not run before its first tick" {
	run_mq 0 mq-publish --from-tick 2 q two
	run_mq 0 mq-publish --from-tick 1 q one
	run_mq 0 mq-publish q plain
	assert_equal "$(drained)" plain
	assert_equal "$(held q)" "0 2 0 0"
	run_mq 0 mq-publish --tick 1 q
	assert_equal "$(drained)" one
	run_mq 0 mq-publish --tick 9 q
	assert_equal "$(drained)" two
	# One that the clock has passed already counts.
	run_mq 0 mq-publish --from-tick 9 q now
	run_mq 0 mq-publish --from-tick 3 q earlier
	run_mq 0 mq-publish --from-tick 10 q next
	assert_equal "$(drained)" "earlier now"
	assert_equal "$(held q)" "0 1 0 0"
}

@test "ticks: a consumer that waits is told at once, of a priority, too" {
	local tick=5 p n=0
	start_mq mq-consume -l q
	eventually 10 eval '[ -n "$(redis smembers "rmq::connection::$(connections)::queues")" ]'
	run_mq 0 mq-publish --from-tick 5 q m5
	run_mq 0 mq-publish --tick 4 q
	run_mq 0 mq-publish q plain
	eventually 5 grep -qx plain "$T/out"
	promptly '"$BUILD/mq-publish" --tick "$tick" q' 'grep -qx "m$tick" "$T/out"' \
		'run_mq 0 mq-publish --from-tick $((++tick)) q "m$tick"'
	assert_equal "$(xargs <"$T/out")" "plain $(seq -s ' ' -f 'm%g' 5 "$tick")"
	for p in 5 -5 5 -5; do
		promptly '"$BUILD/mq-publish" -p "$p" q "p$((++n))"' \
			'grep -qx "p$n" "$T/out"'
	done
	stop_mq
}

@test "ticks: the order is tick, priority, fewer attempts, age" {
	script retry <<-'S'
		echo resend 0 >&3
	S
	run_mq 0 mq-publish --from-tick 2 -p 5 q tried
	run_mq 0 mq-publish -p 10 q retried-high
	run_mq 0 mq-publish --tick 2 q
	run_mq 75 mq-consume -n 2 q -- "$T/retry"
	run_mq 0 mq-publish -p 100 q plain-high
	run_mq 0 mq-publish q plain
	run_mq 0 mq-publish -p -10 -d 1ms q due-low
	run_mq 0 mq-publish --from-tick 3 -p 100 q three-high
	run_mq 0 mq-publish --from-tick 2 -p -1 q two-low
	run_mq 0 mq-publish --from-tick 2 -p 5 q two-a
	run_mq 0 mq-publish --from-tick 2 -p 5 q two-b
	run_mq 0 mq-publish --from-tick 2 q two-zero
	run_mq 0 mq-publish --from-tick 1 -p -100 q one-low
	run_mq 0 mq-publish --tick 3 q
	eventually 5 tried_is_due
	assert_equal "$(drained)" "one-low two-a two-b tried two-zero two-low three-high plain-high retried-high plain due-low"
	# Of several queues the first one comes first, whatever it has.
	run_mq 0 mq-publish -p 100 second s100
	run_mq 0 mq-publish second s0
	run_mq 0 mq-publish -p -100 q f-100
	run_mq 0 mq-publish q f0
	assert_equal "$(drained q second)" "f0 f-100 s100 s0"
}

tried_is_due() {
	[ "$(redis eval 'local t = redis.call("TIME")
		return redis.call("ZCOUNT", KEYS[1], t[1] * 1000 + t[2] / 1000,
			"(" .. 2 ^ 50)' 1 'rmq::queue::[q]::delayed')" = 0 ]
}

@test "ticks: what is over already is not accepted" {
	run_mq 0 mq-publish --tick 5 q
	tells 1 "mq-publish: q: not published: its last tick is over" mq-publish --until-tick 4 q late
	run_mq 1 mq-publish -q -i --until-tick 4 q late
	assert_equal "$output$stderr" ""
	run_mq 0 mq-publish --until-tick 5 q now
	run_mq 0 mq-publish --from-tick 6 --until-tick 6 q next
	assert_equal "$(redis hget 'rmq::queue::[q]::counters' published)" 2
	assert_equal "$(drained)" now
	run_mq 0 mq-publish --tick 7 q
	assert_equal "$(held q)" "0 1 0 0"
	assert_equal "$(drained)" ""
	assert_equal "$(held q)" "0 0 0 1"
}

@test "ticks: under a framing, the late ones are counted" {
	run_mq 0 mq-publish --tick 5 q
	run_mq 1 mq-publish --jsonl q <<-'E'
		{"payload":"1"}
		{"payload":"2","headers":{"Mq-Until-Tick":"4"}}
		{"payload":"3","headers":{"Mq-Until-Tick":"5"}}
		{"payload":"4","headers":{"Mq-Key":"a","Mq-Until-Tick":"5"}}
		{"payload":"5","headers":{"Mq-Key":"a","Mq-Until-Tick":"5"}}
		{"payload":"6","headers":{"Mq-Key":"b","Mq-Until-Tick":"4"}}
	E
	assert_equal "$stderr" \
		"mq-publish: 3 messages accepted, 1 duplicate, 2 too late"
	# What was not accepted has taken no key.
	run_mq 0 mq-publish -k b q 7
	assert_equal "$(drained)" "1 3 4 7"
}

@test "priority: higher ones first, 0 in the middle, in order within one" {
	local p
	for p in 0 -100 7 100 -1 7 0 100 -100 1; do
		run_mq 0 mq-publish -p "$p" -- q "$p:a" "$p:b"
	done
	run_mq 0 mq-publish q plain
	assert_equal "$(state q)" "21 0 0 0 0"
	# 0 is the plain list, which any rmq program reads, and says so.
	assert_equal "$(redis llen 'rmq::queue::[q]::ready')" 5
	assert_equal "$(redis zcard 'rmq::queue::[q]::priority')" 16
	assert_equal "$(element q ready -1 | header Mq-Priority)" 0
	assert_equal "$(drained)" "$(echo 100:{a,b} 100:{a,b} 7:{a,b} 7:{a,b} 1:{a,b} \
		0:{a,b} 0:{a,b} plain -1:{a,b} -100:{a,b} -100:{a,b})"
	assert_equal "$(held q)" "0 0 0 0"
	assert_equal "$(redis exists 'rmq::queue::[q]::priority')" 0
}

@test "priority: what the record says, or the command line for all" {
	{
		echo '{"payload":"plain1"}'
		echo '{"payload":"plain2","headers":{"A":"b"}}'
		echo '{"payload":"low","headers":{"Mq-Priority":"-3"}}'
		echo '{"payload":"high","headers":{"Mq-Priority":["3"]}}'
		echo '{"payload":"plain3"}'
		echo '{"payload":"odd","headers":{"Mq-Priority":"101"}}'
	} >"$T/records"
	run_mq 0 mq-publish -v --jsonl q <"$T/records"
	assert_equal "${stderr_lines[-1]}" "mq-publish: 6 messages accepted"
	assert_equal "$(redis hget 'rmq::queue::[q]::counters' published)" 6
	assert_equal "$(drained)" "high plain1 plain2 plain3 odd low"
	run_mq 0 mq-publish -p 4 --jsonl q <"$T/records"
	assert_equal "$(drained)" "plain1 plain2 low high plain3 odd"
}
