#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# layouts: rmq rsmq
# A server that drops keys when its memory is full: who says so, and who does
# not ask.

load ../helpers/server

: "${LAYOUT:=rmq}"

setup_file() {
	server_start --appendonly yes --appendfsync always
	replica_beside
}

setup() {
	export MQ_LAYOUT=$LAYOUT
	common_setup
	redis config set maxmemory-policy noeviction >/dev/null
}

@test "evict: --durable is 78, a consumer says so once, mq-stats always" {
	local policy

	for policy in allkeys-lru volatile-ttl; do
		run_mq 0 mq-publish q 1
		redis config set maxmemory-policy "$policy" >/dev/null
		run_mq 78 mq-publish --durable q 2
		assert_equal "$stderr" "mq-publish: $(url_as): cannot be durable: maxmemory-policy is $policy, so the server may drop what it has accepted: set it to noeviction
mq-publish: 0 messages accepted"
		run_mq 0 mq-stats q
		assert_line "maxmemory-policy is $policy: the server may drop queues or leases"
		run_mq 0 mq-stats --json q
		assert_regex "$output" "\"maxmemory_policy\":\"$policy\""
		run_mq 0 mq-stats --prometheus q
		assert_line "mq_evicts 1"
		start_mq mq-consume q -- true
		eventually 10 state_is q "0 0 0 0 1"
		# Not when it connects again, either.
		redis client kill type normal skipme yes >/dev/null
		eventually 10 grep -q reconnecting "$T/err"
		run_mq 0 mq-publish q 2
		eventually 10 state_is q "0 0 0 0 1"
		stop_mq
		assert_equal "$(grep maxmemory "$T/err")" "mq-consume: $(url_as): maxmemory-policy is $policy: when its memory is full, the server drops queues or leases; set it to noeviction"
		run_mq 0 mq-consume --drain -q q -- true
		assert_equal "$stderr" ""
		redis config set maxmemory-policy noeviction >/dev/null
	done
}

@test "evict: nobody says anything where nothing is dropped" {
	run_mq 0 mq-publish --durable q 1
	run_mq 0 mq-consume --drain q -- true
	assert_equal "$stderr" ""
	run_mq 0 mq-stats q
	assert_equal "$(grep maxmemory <<<"$output")$stderr" ""
	run_mq 0 mq-stats --json q
	assert_regex "$output" '"maxmemory_policy":"noeviction"'
	run_mq 0 mq-stats --prometheus q
	assert_line "mq_evicts 0"
}

@test "evict: plain publishing does not ask; who may not ask is told by --durable" {
	redis config set maxmemory-policy allkeys-lru >/dev/null
	redis acl setuser app reset on '>pw' allkeys allchannels +@all -info >/dev/null
	url=$(url_as app:pw)
	# A sentinel asks, too.
	redis acl setuser plain reset on '>pw' allkeys allchannels +@all -info -config >/dev/null
	redis acl log reset >/dev/null
	run_mq 0 mq-publish -u "$(url_as plain:pw)" q 1
	run_mq 0 mq-publish -u "$(url_as plain:pw)" -d 1h q 1
	assert_equal "$(redis acl log)" ""
	run_mq 77 mq-publish -u "$url" --durable q 1
	assert_regex "${stderr_lines[0]}" "--durable needs \+info\$"
	run_mq 0 mq-stats -u "$url" --json q
	assert_regex "$output" '"maxmemory_policy":null'
	run_mq 0 mq-stats -u "$url" --prometheus q
	refute_output --partial mq_evicts
	run_mq 0 mq-consume -u "$url" --drain -v q -- true
	assert_regex "$stderr" "INFO: NOPERM"
	run_mq 0 mq-publish q 1
	run_mq 0 mq-consume -u "$url" --drain q -- true
	assert_equal "$stderr" ""
}
