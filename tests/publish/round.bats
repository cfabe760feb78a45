#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# One message to a queue that is known takes two rounds: what a publisher has to know, and
# the message.  What is refused in the first is not published.
#
# layouts: rmq

load ../helpers/server
load ../helpers/layout-rmq

setup() {
	common_setup
	redis flushall >/dev/null
	redis sadd rmq::queues q >/dev/null
	url=$(url_as)
}

# The commands that clients have sent, as the server has seen them.
watch_commands() {
	no_cluster "there are rounds with two nodes"
	redis-cli -s "$D/redis.sock" monitor >"$T/monitor" 3>&- &
	monitor=$!
	eventually 10 grep -q OK "$T/monitor"
}

commands() {
	redis ping end >/dev/null
	eventually 10 grep -q '"ping" "end"' "$T/monitor"
	kill "$monitor"
	grep -v -e ' lua\]' -e '"ping"' -e '"quit"' "$T/monitor" |
		perl -ne 'print lc "$1 " if /\] "(\w+)"/'
}

@test "round: one message, two rounds" {
	no_sentinel "the role of the server is asked for first"
	local rounds="hello client time sismember hexists evalsha multi lpush eval exec unlink "

	# The server knows the script of the questions from then on.
	run_mq 0 mq-publish other zero
	watch_commands
	run_mq 0 mq-publish -i q one
	run_mq 0 mq-publish --raw q two
	run_mq 0 mq-publish --existing q < <(printf three)
	assert_equal "$(commands)" "$rounds$rounds$rounds"
	assert_equal "$("$BUILD/mq-consume" -q -l --drain q)" $'one\ntwo\nthree'
	assert_equal "$(redis hget "rmq::queue::[q]::counters" published)" 3
	assert_equal "$(redis keys '*publisher*')" ""
}

@test "round: a queue that is not known is made" {
	run_mq 0 mq-publish -v new one
	assert_equal "${stderr_lines[0]}" "mq-publish: new: made a new queue"
	assert_equal "$(redis smembers rmq::queues | sort | xargs)" "new q"
	held_is new "1 0 0 0"
	assert_equal "$(redis hget "rmq::queue::[new]::counters" published)" 1
	assert_equal "$(redis keys '*publisher*')" ""
	run_mq 1 mq-publish --existing none one
	assert_equal "$(redis exists "rmq::queue::[none]::ready")" 0
}

@test "round: a database that is refused, or another one" {
	local db='?db='
	no_cluster "few clusters have databases"
	[ "${TOPOLOGY-}" != sentinel ] || db=/
	run_mq 0 mq-publish -u "$url${db}3" q one
	held_is q "0 0 0 0"
	assert_equal "$(redis -n 3 llen "rmq::queue::[q]::ready")" 1
	run_mq 78 mq-publish -u "$url${db}99" q one
	redis acl setuser some reset on '>pw' '~*' '&*' +@all -select >/dev/null
	run_mq 77 mq-publish -u "$(url_as some:pw)${db}3" q one
	held_is q "0 0 0 0"
	assert_equal "$(redis -n 3 llen "rmq::queue::[q]::ready")" 1
}

@test "round: a password that is refused is none of the default user" {
	run_mq 77 mq-publish -u "$(url_as some:bad)" q one
	held_is q "0 0 0 0"
}

@test "round: a user without a right has what the others have" {
	local rule

	# Without these, plain messages are published nevertheless.
	for rule in -eval -hset -pexpire -hincrby "-client|setname" -hello \
		"resetkeys ~*ready ~rmq::queues"; do
		redis del "rmq::queue::[q]::ready" >/dev/null
		# shellcheck disable=SC2086 # several rules
		redis acl setuser some reset on '>pw' '~*' '&*' +@all $rule \
			>/dev/null || continue
		run_mq 0 mq-publish -u "$(url_as some:pw)" q one
		held_is q "1 0 0 0"
	done
	for rule in -lpush "resetkeys ~rmq::queues"; do
		redis del "rmq::queue::[q]::ready" >/dev/null
		# shellcheck disable=SC2086 # several rules
		redis acl setuser some reset on '>pw' '~*' '&*' +@all $rule \
			>/dev/null
		run_mq 77 mq-publish -u "$(url_as some:pw)" q one
		held_is q "0 0 0 0"
	done
}

@test "round: something else under a key" {
	redis set "rmq::queue::[q]::ready" mine >/dev/null
	run_mq 76 mq-publish q one
	assert_regex "$stderr" "the key rmq::queue::.q.::ready holds"
	redis del "rmq::queue::[q]::ready" >/dev/null
	redis set "rmq::queue::[q]::counters" mine >/dev/null
	run_mq 0 mq-publish q one
	held_is q "1 0 0 0"
}

@test "round: a full memory, and a replica" {
	redis config set maxmemory 1 >/dev/null
	run_mq 75 mq-publish q one
	assert_equal "${stderr_lines[-1]}" "mq-publish: 0 messages accepted"
	redis config set maxmemory 0 >/dev/null
	held_is q "0 0 0 0"
	redis replicaof 127.0.0.1 1 >/dev/null
	redis config set replica-serve-stale-data yes >/dev/null
	run ! mq-publish -u "$url" q one
	redis replicaof no one >/dev/null
	held_is q "0 0 0 0"
}
