#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Messages that are too late: they are rejected with a reason instead of being
# run, they are counted, and it is no attempt.

# shellcheck disable=SC1010

load ../helpers/server

setup() {
	common_setup
	ready='rmq::queue::[q]::ready'
}

now_ms() {
	redis eval 'local t = redis.call("TIME")
		return t[1] * 1000 + math.floor(t[2] / 1000)' 0
}

# put HEADERS PAYLOAD: a message as anybody may have left it.
put() {
	printf '\377\0\276\276J{%s}\n%s' "$1" "$2" | redis -x lpush "$ready" >/dev/null
}

# put_expiring MS PAYLOAD: MS from now; below 0 before.
put_expiring() {
	put "\"Mq-Expires\":[\"$(($(now_ms) + $1))\"]" "$2"
}

reason() {
	element q rejected "${1:-0}" | header Mq-Error
}

@test "expire: a message whose time is over is rejected, and never run" {
	put_expiring -1000 late
	put_expiring 60000 early
	put '' none
	prints $'early\nnone' mq-consume --drain q -- sh -c 'cat; echo'
	assert_equal "$(held q)" "0 0 0 1"
	assert_equal "$(reason)" expired
	assert_equal "$(element q rejected | tail -n 1)" late
	assert_equal "$(element q rejected | header Mq-Attempt)" ""
	assert_equal "$(element q rejected | header Mq-History)" ""
	assert_regex "$stderr" '^mq-consume: q: [0-9A-Za-z]{32}: rejected: expired$'
	assert_equal "$(counts runs done failed expired)" "2 2 1 1"
	# The attempts that it has had stay.
	put "\"Mq-Attempt\":[\"3\"],\"Mq-Error\":[\"x\"],\"Mq-Expires\":[\"1\"]" a
	run_mq 1 mq-consume --drain q -- cat
	assert_equal "$(element q rejected | header Mq-Attempt) $(reason)" "3 expired"
	assert_equal "$(counts runs failed expired)" "2 2 2"
	# -n counts what has run, or was printed.
	put_expiring -1 late
	put '' one
	put_expiring -1 late
	put '' two
	prints one mq-consume -n 1 q -- cat
	assert_equal "$(held q)" "2 0 0 3"
	prints two mq-consume -n 1 -l q
	assert_equal "$(held q)" "0 0 0 4"
	# What is no time is no reason.
	for i in '"0"' '"-5"' '"soon"' '"99999999999999999999"' ''; do
		put "\"Mq-Expires\":[$i]" a
	done
	prints aaaaa mq-consume --drain q -- cat
	assert_equal "$(held q)" "0 0 0 4"
}

@test "expire: the time, or the last tick, is over while a message waits behind another" {
	mkfifo "$T/go"
	script s <<'.'
read -r x
echo "$x" >>"$T/started"
[ "$x" != first ] || read -r _ <"$T/go"
.
	run_mq 0 mq-publish q first
	run_mq 0 mq-publish -e 6s q second
	run_mq 0 mq-publish q third
	run_mq 0 mq-publish --until-tick 7 q fourth
	run_mq 0 mq-publish --until-tick 8 q fifth
	start_mq mq-consume --drain --prefetch 5 q -- "$T/s"
	eventually 10 lines_reach "$T/started" 1
	eventually 10 held_is q "0 0 5 0"
	run_mq 0 mq-publish --tick 8 q
	# It is told: more than two of the looks that are made anyhow.
	looks=$(looks)
	eventually 10 eval '(($(looks) >= looks + 3))'
	eventually 10 is_past "$(redis lindex "$(redis keys '*unacked')" 3 |
		header Mq-Expires)"
	echo >"$T/go"
	ends_within 10
	assert_equal "$status" 1
	assert_equal "$(xargs <"$T/started")" "first third fifth"
	assert_equal "$(held q)" "0 0 0 2"
	assert_equal "$(reason) $(reason 1)" "stale: tick 7 is over expired"
	assert_equal "$(counts runs done failed expired)" "3 3 2 2"
}

is_past() {
	[ "$(now_ms)" -gt "$1" ]
}

@test "stale: a message whose last tick is over is rejected, and never run" {
	run_mq 0 mq-publish --until-tick 3 q one
	run_mq 0 mq-publish --until-tick 4 q two
	# Each queue has a clock of its own.
	run_mq 0 mq-publish --until-tick 3 other three
	run_mq 0 mq-publish --tick 4 q
	prints twothree mq-consume --drain q other -- cat
	assert_equal "$(held q) $(held other)" "0 0 0 1 0 0 0 0"
	assert_equal "$(reason)" "stale: tick 3 is over"
	assert_equal "$(element q rejected | header Mq-Attempt)" ""
	assert_equal "$(counts runs done failed expired)" "1 1 1 1"
	# Printed neither.
	redis flushall >/dev/null
	run_mq 0 mq-publish --until-tick 3 q one
	run_mq 0 mq-publish --tick 4 q
	prints "" mq-consume --drain -l q
	assert_equal "$(reason)" "stale: tick 3 is over"
}

looks() {
	redis info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\).*/\1/p'
}

@test "expire: a late message lets go of its key and its group" {
	run_mq 0 mq-publish -e 1ms -k key -g group q one
	run_mq 0 mq-publish -g group q two
	run_mq 0 mq-publish --until-tick 1 -g group q three
	run_mq 0 mq-publish -g group q four
	run_mq 0 mq-publish --tick 2 q
	prints twofour mq-consume --drain q -- cat
	assert_equal "$(held q)" "0 0 0 2"
	# What is left is when to look.
	assert_equal "$(redis hkeys 'rmq::queue::[q]::locks' | grep '^[gk]')" ""
	run_mq 0 mq-publish -k key q again
}
