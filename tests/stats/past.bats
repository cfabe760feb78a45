#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# layouts: rmq rsmq
# topologies: cluster
# What rounds of cleaning note of queues, and what mq-stats makes of it.

# shellcheck disable=SC2030,SC2031 # each test is a subshell of its own

load ../helpers/server

: "${LAYOUT:=rmq}"

setup() {
	export LAYOUT MQ_LAYOUT=$LAYOUT
	common_setup
}

# past KIND QUEUE: the key.
past() {
	local ns=rsmq

	if [ "$LAYOUT" = rsmq ]; then
		[ "${TOPOLOGY-}" != cluster ] || ns={rsmq}
		echo "$ns:$2:X$1"
	elif [ "${TOPOLOGY-}" = cluster ]; then
		echo "rmq::queue::{$2}::$1"
	else
		echo "rmq::queue::[$2]::$1"
	fi
}

# notes QUEUE JQ-FILTER: of its object in --json.
notes() {
	"$BUILD/mq-stats" --json "$1" | jq -c ".queues[0] | $2"
}

# noted KIND QUEUE SECONDS NUMBERS: as if it had been, so many seconds ago.
noted() {
	local unit=60 slots=60 at

	[ "$1" = minutes ] || unit=3600 slots=48
	at=$(($(redis --raw time | head -n 1) - $3))
	redis hset "$(past "$1" "$2")" $((at / unit % slots)) "$at $4" >/dev/null
}

@test "past: a round notes each queue, and of two in a minute one is left" {
	"$BUILD/mq-publish" -q q a b c
	"$BUILD/mq-publish" -q -d 1h later x
	"$BUILD/mq-clean" -q --dry-run
	assert_equal "$(notes q '[.minutes, .hours]')" "[[],[]]"
	"$BUILD/mq-clean" -q
	"$BUILD/mq-consume" -q -n 1 q >/dev/null
	"$BUILD/mq-clean" -q
	assert_equal "$(notes q '[.minutes[-1], .hours[-1]][] | [.ready, .delayed, .unacked,
		.rejected]')" $'[2,0,0,0]\n[2,0,0,0]'
	assert_equal "$(notes later '.hours[-1] | [.ready, .delayed, .consumers]')" "[0,1,0]"
	# The clock may have been at the end of a minute.
	[ "$(notes q '.minutes | length')" -le 2 ]
	run notes q '(.minutes[-1].time_ms / 1000 - now) | fabs < 60'
	assert_output true
	for kind in "minutes 3660 3720" "hours 176400 180000"; do
		read -r kind least most <<<"$kind"
		ttl=$(redis ttl "$(past "$kind" q)")
		((ttl > least && ttl <= most)) || fail "$kind: $ttl"
	done
	# All of a server's are too many for one object.
	assert_equal "$("$BUILD/mq-stats" --json | jq '.queues[] | select(.name == "q").minutes | length > 0')" true
	redis sadd rmq::queues many-{1..100} >/dev/null
	[ "${LAYOUT-}" = rsmq ] || assert_equal "$("$BUILD/mq-stats" --json | jq -c '.queues[0].minutes')" null
}

@test "past: a consumer's round notes it, and a queue that goes leaves nothing" {
	"$BUILD/mq-publish" -q q a
	"$BUILD/mq-consume" -q --idle 10ms q >/dev/null
	assert_equal "$(notes q '.minutes[-1] | [.ready, .consumers]')" "[0,1]"
	"$BUILD/mq-clean" -q
	"$BUILD/mq-purge" -q -f --delete-queue q
	assert_equal "$(redis exists "$(past minutes q)")$(redis exists "$(past hours q)")" 00
}

@test "past: a note as others have it, and what is none" {
	"$BUILD/mq-publish" -q q a
	noted minutes q 300 "1 0 0 0 0 5 100 50"
	noted minutes q 240 "7 -1 0 0 0 65 160 80"
	noted minutes q 60 "3 0 0 0 2 0 -1 80 1 2 later"
	noted minutes q 3780 "9 9 9 9 9 9 9 9"
	noted hours q 7000 "5 0 0 0 0 0 -1 -1"
	assert_equal "$(notes q '.minutes[] | [.ready, .delayed, .consumers, .oldest_age_s,
		.published, .ended]')" "[1,0,0,5,100,50]
[7,null,0,65,160,80]
[3,0,2,0,null,80]"
	assert_equal "$(notes q '.hours | map(.ready)')" "[5]"
	# What others have put there is no harm, nor what is of another type.
	redis hset "$(past hours q)" x "" y "-- 1 2" z 99999999999999999999999 >/dev/null
	redis del "$(past minutes q)" >/dev/null
	redis set "$(past minutes q)" x >/dev/null
	"$BUILD/mq-clean" -q
	assert_equal "$(notes q '[.minutes, (.hours | length)]')" "[[],1]"
}
