#!/usr/bin/env bats
# topologies: cluster
# mq-publish -p: which of the waiting messages comes next.

load ../helpers/server

# drained Q...: all payloads in the order in which they come, on one line.
drained() {
	"$BUILD/mq-consume" --drain -l "$@" | xargs
}

out_is() {
	[ "$(xargs <"$T/out")" = "$1" ]
}

@test "priority: higher ones first, 0 in the middle, in order within one" {
	local p
	for p in 0 -100 7 100 -1 7 0 100 -100 1; do
		run_mq 0 mq-publish -p "$p" -- q "$p:a" "$p:b"
	done
	run_mq 0 mq-publish q plain
	assert_equal "$(state q)" "21 0 0 0 0"
	assert_equal "$(redis llen 'rmq::queue::[q]::ready')" 5
	assert_equal "$(redis zcard 'rmq::queue::[q]::priority')" 16
	run drained q
	assert_output "$(echo 100:{a,b} 100:{a,b} 7:{a,b} 7:{a,b} 1:{a,b} \
		0:{a,b} 0:{a,b} plain -1:{a,b} -100:{a,b} -100:{a,b})"
	assert_equal "$(held q)" "0 0 0 0"
	assert_equal "$(redis exists 'rmq::queue::[q]::priority')" 0
	# 0 is the plain list, which any rmq program reads, and says so.
	run_mq 0 mq-publish -p 0 q x
	assert_equal "$(element q ready | header Mq-Priority)" 0
}

@test "priority: a consumer that waits is told at once" {
	local p n=0
	start_mq mq-consume -l q
	eventually 10 state_is q "0 0 0 0 1"
	for p in 5 -5 5 -5; do
		promptly '"$BUILD/mq-publish" -p "$p" q "m$((++n))"' \
			'grep -qx "m$n" "$T/out"'
	done
	stop_mq
}

@test "priority: of several queues the first one comes first, whatever it has" {
	run_mq 0 mq-publish -p 100 second s100
	run_mq 0 mq-publish second s0
	run_mq 0 mq-publish -p -100 first f-100
	run_mq 0 mq-publish first f0
	assert_equal "$(drained first second)" "f0 f-100 s100 s0"
}

@test "priority: a delayed message takes its place when it is due" {
	run_mq 0 mq-publish -p 10 -d 1ms q high
	run_mq 0 mq-publish -p -10 -d 1ms q low
	run_mq 0 mq-publish q plain
	eventually 5 due
	assert_equal "$(drained q)" "high plain low"
}

due() {
	[ "$(redis eval 'local t = redis.call("TIME")
		local now = t[1] * 1000 + t[2] / 1000
		return redis.call("ZCOUNT", KEYS[1], "-inf", "(" .. now)' 1 \
		'rmq::queue::[q]::delayed')" = 2 ]
}

@test "priority: it outlives a retry" {
	script later <<-'S'
		echo resend 0 >&3
	S
	run_mq 0 mq-publish -p 10 q high
	run_mq 75 mq-consume -n 1 q -- "$T/later"
	run_mq 0 mq-publish q plain
	eventually 5 first_due
	assert_equal "$(drained q)" "high plain"
}

first_due() {
	local ms
	ms=$(redis zrange 'rmq::queue::[q]::delayed' 0 0 withscores | tail -n 1)
	[ -z "$ms" ] || (($(redis time | head -n 1) * 1000 > ms))
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
	assert_equal "$(drained q)" "high plain1 plain2 plain3 odd low"
	run_mq 0 mq-publish -p 4 --jsonl q <"$T/records"
	assert_equal "$(drained q)" "plain1 plain2 low high plain3 odd"
}
