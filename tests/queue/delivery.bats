#!/usr/bin/env bats
# The end of work and of a group, and that what looks for faults finds them.  What is
# promised about delivery holds at every moment, whoever is killed: see tests/faults;
# helpers/places.py has what must hold.

load ../helpers/common

setup() {
	D=$(own_dir)
	T=$D
	export D T PYTHONDONTWRITEBYTECODE=1
}

teardown() {
	server_stop
}

# --- what looks for faults finds them -------------------------------------------

# wrong WORDS: the laws are broken, and that is what is said.
wrong() {
	run python3 "$root/tests/helpers/places.py"
	assert_failure
	assert_output --partial "$1"
}

right() {
	run python3 "$root/tests/helpers/places.py"
	assert_success
}

@test "delivery: what breaks a law is found" {
	local id ids lock locks='rmq::queue::[q]::locks' q='rmq::queue::[q]'

	no_cluster "what looks for faults looks at one server"
	server_run
	run_mq 0 mq-publish -i -g a q A1 A2 A3
	mapfile -t ids <<<"$output"
	run_mq 0 mq-publish -i -k k q K1
	id=$output
	right
	lock=$(redis hkeys "$locks" | grep ^g)

	# A lock without a message, of another message, and none.
	redis hset "$locks" kx "$id done"
	wrong "key lock without a message: kx"
	redis hdel "$locks" kx
	redis hset "$locks" g0123456789abc "$id"
	wrong "group lock without a group: g0123456789abc"
	redis hdel "$locks" g0123456789abc
	redis hset "$locks" "$lock" "${ids[1]}"
	wrong "${ids[1]} holds group"
	redis hdel "$locks" "$lock"
	wrong "None holds group"
	redis hset "$locks" "$lock" "${ids[0]}"
	right

	# A message in two places, and two of a group out of line.
	redis copy "$q::ready" "$q::rejected"
	wrong "twice: "
	redis del "$q::rejected"
	right
	redis eval 'local m = redis.call("ZPOPMIN", KEYS[1])[1]
		redis.call("LPUSH", KEYS[2], m:sub(33))' 2 "$q::delayed" "$q::ready"
	wrong "holds group"
}

# --- not before the end -----------------------------------------------------------

@test "delivery: --drain sees the next one of a group take its place" {
	server_run
	for _ in {1..5}; do
		seq 500 | run_mq 0 mq-publish -l -g g q
		run_mq 0 mq-consume --drain -l q
		assert_equal "$output" "$(seq 500)"
		assert_equal "$(state q)" "0 0 0 0 0"
	done
}

@test "delivery: what runs beyond its expiry keeps its group" {
	local locks='rmq::queue::[q]::locks'

	server_run
	script hold <<-'END'
		touch "$T/taken"
		until [ -e "$T/go" ]; do sleep 0.02; done
	END
	run_mq 0 mq-publish -g g -k k -e 8s q A1
	start_mq mq-consume -n 1 q -- "$T/hold"
	eventually 10 test -e "$T/taken"
	run_mq 0 mq-publish -d 8001ms q later
	eventually 10 due
	run_mq 0 mq-clean
	assert_equal "$(redis hkeys "$locks" | cut -c 1 | sort | grep -c '[gk]')" 2
	touch "$T/go"
	wait "$pid"
	assert_equal "$(redis hkeys "$locks" | grep -c '^[gk]')" 0
}

# What was delayed for longer than the other was to expire has come.
due() {
	[ "$(redis zcount 'rmq::queue::[q]::delayed' -inf \
		"$(redis eval 'local t = redis.call("TIME")
			return t[1] * 1000 + math.floor(t[2] / 1000)' 0)")" = 1 ]
}
