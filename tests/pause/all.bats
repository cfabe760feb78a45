#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# layouts: rmq rsmq
# topologies: cluster
# mq-pause --all: everything, and what mq-consume makes of it.

load ../helpers/server
load "../helpers/layout-${LAYOUT:-rmq}"

teardown() {
	"$BUILD/mq-pause" --all --resume 2>/dev/null || true
	common_teardown
}

key() {
	[ "$MQ_LAYOUT" = rsmq ] && echo rsmq::paused || echo rmq::paused
}

says() {
	grep -qx "mq-consume: $1" "$T/err"
}

lines_are() {
	[ "$(xargs <"$T/out")" = "$*" ]
}

@test "pause --all: nothing is taken, also from queues made later, until it is resumed" {
	start_mq mq-consume -l a b
	run_mq 0 mq-publish a 1
	eventually 10 lines_are 1
	run_mq 0 mq-pause --all
	assert_equal "$output$stderr" ""
	assert_equal "$(redis pttl "$(key)")" -1
	eventually 10 says "all queues: paused"
	run_mq 0 mq-stats a
	assert_line --regexp '^a .* all queues paused$'
	run_mq 0 mq-stats --json a
	assert_regex "$output" '"all_paused":true'
	refute_output --partial all_paused_until_ms
	run_mq 0 mq-stats --prometheus a
	assert_line 'mq_all_paused 1'
	run_mq 0 mq-publish a 2
	run_mq 0 mq-publish b 3
	run_mq 0 mq-publish later 4
	# A consumer that starts now takes nothing either.
	run_mq 0 mq-consume -q -l --idle 1500ms later
	assert_output ""
	[ "$MQ_LAYOUT" = rsmq ] || run_mq 1 mq-lease --for 1m later
	assert_equal "$(held a) $(held b)" "1 0 0 0 1 0 0 0"
	run_mq 0 mq-pause --all --resume
	eventually 10 lines_are 1 2 3
	assert says "all queues: resumed"
	run_mq 0 mq-consume -q -l --drain later
	assert_output 4
	tells 1 "mq-pause: all queues: not paused" mq-pause --all --resume
	stop_mq
}

@test "pause --all: --for ends by itself, and a queue's own pause stays" {
	run_mq 0 mq-publish a 1
	run_mq 0 mq-publish b 2
	run_mq 0 mq-pause a
	tells 0 "mq-pause: all queues: paused for 6s" mq-pause -v --all --for 6s
	run_mq 0 mq-stats --json a
	assert_regex "$output" '"all_paused":true,"all_paused_until_ms":[0-9]{13},'
	start_mq mq-consume -l a b
	eventually 10 says "all queues: paused"
	eventually 10 eval '[ "$(redis exists "$(key)")" = 0 ]'
	eventually 10 lines_are 2
	assert_equal "$(held a)" "1 0 0 0"
	run_mq 0 mq-pause --resume a
	eventually 10 lines_are 2 1
	stop_mq
}

@test "pause --all: what has not started goes back, what runs ends" {
	script work <<'.'
read -r n
echo "$n" >"$T/started"
until [ -e "$T/go" ]; do sleep 0.02; done
.
	"$BUILD/mq-publish" -l a < <(seq 5)
	start_mq mq-consume --prefetch 4 a -- "$T/work"
	eventually 10 test -s "$T/started"
	run_mq 0 mq-pause --all
	eventually 10 held_is a "4 0 1 0"
	touch "$T/go"
	eventually 10 held_is a "4 0 0 0"
	tick
	assert_equal "$(held a)" "4 0 0 0"
	run_mq 0 mq-pause --all --resume
	eventually 10 held_is a "0 0 0 0"
	stop_mq
}

@test "pause --all: without the right to see it, a consumer goes on and says so once" {
	local rules
	IFS=' ' read -ra rules < <("$BUILD/mq-consume" --print-acl a)
	mapfile -t rules < <(printf '%s\n' "${rules[@]}" | grep -vxF -e "~$(key)" -e "~{rsmq}::paused")
	redis acl setuser some on '>pw' "${rules[@]}" >/dev/null
	run_mq 0 mq-pause --all
	run_mq 0 mq-publish a 1
	MQ_URL=$(url_as some:pw) start_mq mq-consume -l a
	eventually 10 lines_are 1
	tick
	assert_equal "$(grep -c "cannot see whether all queues are paused, and goes on" "$T/err")" 1
	stop_mq
	redis acl deluser some >/dev/null
}

@test "pause --all: held the wrong way: 64" {
	tells 64 "mq-pause: q: cannot be used with --all" mq-pause --all q
	run_mq 64 mq-pause --all --resume --for 1m
}
