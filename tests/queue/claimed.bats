#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# topologies: cluster
# What a connection has claimed is counted: by that, a consumer whose answer was lost
# knows which of the messages that it holds are new, equal ones or not.

load ../helpers/server

setup() {
	common_setup
	redis config set maxmemory 0 >/dev/null
	redis acl deluser app >/dev/null
	export T
	: >"$T/runs"
	script work <<-'END'
		echo run >>"$T/runs"
		while [ -e "$T/wait" ]; do perl -e 'select undef, undef, undef, 0.01'; done
	END
}

teardown() {
	rm -f "$T/wait"
	common_teardown
}

# claimed: how many the only connection has.
claimed() {
	redis hget "$(info)" claimed:q
}

info() {
	local key
	for key in $(redis keys '*::info'); do
		[ -z "$(redis hget "$key" claimed:q)" ] || echo "$key"
	done
}

claimed_is() {
	[ "$(claimed)" = "$1" ]
}

# may RULE...: what the tools may do from now on.
may() {
	redis acl setuser app reset on '>pw' '~*' '&*' +@all "$@" >/dev/null
	export MQ_URL=$(url_as app:pw)
}

# Others publish.
twins() {
	MQ_URL=$(url_as) run_mq 0 mq-publish --raw -l q < <(yes x | head -n "$1")
}

publish() {
	MQ_URL=$(url_as) run_mq 0 mq-publish "$@"
}

runs_are() {
	[ "$(wc -l <"$T/runs")" = "$1" ]
}

# With messages in its hands.  None runs twice then, and none is forgotten: N have run.
loses_none() {
	: >"$T/wait"
	twins 20
	eventually 20 held_is q "0 0 20 0"
	redis client kill type normal skipme yes >/dev/null
	redis client kill type pubsub >/dev/null
	eventually 20 grep -q reconnecting "$T/err"
	rm "$T/wait"
	eventually 30 held_is q "0 0 0 0"
	claimed_is "$1"
	stop_mq
	runs_are "$1"
}

@test "claimed: without the right to count nothing moves: 77" {
	twins 3
	publish -p 5 q high
	publish -d 1ms q due
	may -hincrby
	run_mq 77 mq-consume q -- "$T/work"
	assert_regex "$stderr" 'claim: .*(NOPERM|ACL failure|can.t run this command).*; --print-acl prints the rights needed'
	assert_equal "$(held q) $(redis zcard 'rmq::queue::[q]::priority')" "3 1 0 0 1"
	run_mq 77 mq-lease --for 1m q
	assert_equal "$(held q) $(redis zcard 'rmq::queue::[q]::priority')" "3 1 0 0 1"
	runs_are 0
}

@test "claimed: a right that is taken away is waited for, and nothing moves" {
	local right options plain due high
	# How many are published then: plain ones, due ones, and some with a priority.
	while IFS='|' read -r right options plain due high; do
		redis flushall >/dev/null
		: >"$T/runs"
		may
		# shellcheck disable=SC2086 # several
		start_mq mq-consume -v -j 4 --prefetch 20 $options q -- "$T/work"
		twins 1
		eventually 20 runs_are 1
		may "-$right"
		twins "$plain"
		publish -l -d 1s q < <(seq "$due")
		eventually 20 grep -qE "NOPERM|ACL failure|can't run this command" "$T/err"
		tick
		publish -l -p 5 q < <(seq "$high")
		tick
		assert_equal "$(held q) $(redis zcard 'rmq::queue::[q]::priority')" "$plain $due 0 0 $high"
		runs_are 1
		claimed_is 1
		may
		eventually 30 runs_are $((1 + plain + due + high))
		eventually 20 held_is q "0 0 0 0"
		claimed_is $((1 + plain + due + high))
		[ "$plain" != 50 ] || loses_none 71
		[ "$plain" = 50 ] || stop_mq
	done <<-'E'
		hincrby||50|0|0
		hincrby||0|15|5
		zremrangebyrank||0|10|10
		pexpire|--rate-shared 1000/s|10|0|0
	E
}

@test "claimed: a full memory: claims go on, and are counted" {
	twins 40
	publish -l -p 5 q < <(seq 10)
	publish -l -d 1s q < <(seq 10)
	redis config set maxmemory 1 >/dev/null
	start_mq mq-consume -v -j 4 --prefetch 20 q -- "$T/work"
	eventually 30 held_is q "0 0 0 0"
	claimed_is 60
	redis config set maxmemory 0 >/dev/null
	loses_none 80
}

@test "claimed: what is refused behind the first move leaves no number wrong" {
	twins 1
	start_mq mq-consume -v -j 8 --prefetch 20 q -- "$T/work"
	eventually 20 runs_are 1
	stop_mq
	: >"$T/runs"
	for right in lrange llen zcard; do
		may
		start_mq mq-consume -v -j 8 --prefetch 20 q -- "$T/work"
		twins 1
		eventually 20 runs_are 1
		may "-$right"
		twins 30
		eventually 30 runs_are 31
		eventually 20 held_is q "0 0 0 0"
		claimed_is 31
		may
		loses_none 51
		: >"$T/runs"
	done
}

@test "claimed: the number goes with the connection" {
	local ttl
	twins 3
	start_mq mq-consume q -- "$T/work"
	eventually 20 runs_are 3
	claimed_is 3
	# On a cluster, each queue has one.
	ttl=$(redis ttl "$(info)")
	((ttl > 0 && ttl <= 86400))
	stop_mq
	assert_equal "$(info)" ""
	# By receipt, too.
	twins 3
	publish -p 5 q high
	run_mq 0 mq-lease --for 1m -n 4 q
	assert_equal "${#lines[@]}" 4
	claimed_is 4
}
