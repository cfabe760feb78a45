#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What a consumer holds and has not started goes back: much of it at a time, in its
# old order, to the front.
#
# layouts: rmq rsmq

load ../helpers/server
load ../helpers/consume
load "../helpers/layout-${LAYOUT:-rmq}"

setup() {
	common_setup
	# Says that it runs; is done when it may be.
	script work "$(command -v perl)" <<'.'
open my $f, '>>', "$ENV{T}/started"; print $f <STDIN>; close $f;
select undef, undef, undef, 0.02 until -e "$ENV{T}/go";
.
	: >"$T/started"
}

N=10000

# hold_many [PUBLISH-OPTION...]: of the lines on stdin, one runs, and the others are held
# by connection $c.
hold_many() {
	run_mq 0 mq-publish -q -l "$@" q
	start_mq mq-consume --no-clean --prefetch "$N" q -- "$T/work"
	eventually 20 test -s "$T/started"
	eventually 20 in_hand "> N / 2"
	c=$(connections)
}

# in_hand COMPARISON: the only consumer has so many messages.
in_hand() {
	(($(holds "$(connections)") $1))
}

# What goes back does so in so many commands of the consumer since the last reset.
went_in() {
	(($(calls 'eval|evalsha|lrem|lpos') $1))
}

count_anew() {
	tick
	redis config resetstat >/dev/null
}

# What comes out is what is on stdin, in its order, and no more.
comes_out() {
	"$BUILD/mq-consume" -q --drain -l q </dev/null >"$T/out"
	cmp "$T/out" -
}

all_from() {
	comes_out < <(seq "$1" "$N")
}

# What is held goes back; then the run may end, and so does the consumer, which was asked to.
go_and_end() {
	eventually 20 in_hand "== 1"
	touch "$T/go"
	ends_within 60
}

# --- how many at a time -----------------------------------------------------------

@test "back: TERM, much that is held: few commands, the old order" {
	hold_many < <(seq "$N")
	count_anew
	kill "$pid"
	eventually 20 in_hand "== 1"
	went_in "< N / 50"
	go_and_end
	assert_equal "$status" 143
	all_from 2
}

@test "back: --batch that is not full" {
	seq "$N" | run_mq 0 mq-publish -q -l q
	start_mq mq-consume --no-clean --batch $((N + 1)) --batch-wait 1h q -- \
		"$T/work"
	eventually 20 in_hand "== N"
	count_anew
	stop_mq
	went_in "< N / 50"
	# 500 in one command take the server a millisecond; others have their turn then.
	went_in ">= N / 500"
	all_from 1
}

@test "back: large messages, about a megabyte at a time" {
	[ "${LAYOUT:-rmq}" = rmq ] || skip "only ids move in rsmq"
	printf '%0100000d\n' {1..60} >"$T/all"
	run_mq 0 mq-publish -q -l q <"$T/all"
	start_mq mq-consume --no-clean --batch 100 --batch-wait 1h q -- cat
	eventually 20 in_hand "== 60"
	count_anew
	stop_mq
	went_in ">= 6"
	comes_out <"$T/all"
}

@test "back: what was claimed ahead when runs become long" {
	script batch <<'.'
cat >/dev/null
echo >>"$T/started"
[ "$(wc -l <"$T/started")" = 1 ] || exec "$T/work" </dev/null
.
	# They are held for less than a second.
	for _ in {1..20}; do
		redis flushall >/dev/null
		: >"$T/started"
		seq "$N" | run_mq 0 mq-publish -q -l q
		start_mq mq-consume --no-clean --batch 3000 q -- "$T/batch"
		eventually 20 lines_reach "$T/started" 2
		in_hand "<= 3000" || break
		touch "$T/go"
		stop_mq
		rm "$T/go"
	done
	redis config resetstat >/dev/null
	eventually 20 in_hand "== 3000"
	went_in "< N / 50"
	touch "$T/go"
	stop_mq
	all_from 6001
}

@test "back: a pause, and what comes meanwhile is behind" {
	hold_many < <(seq "$N")
	count_anew
	run_mq 0 mq-pause q
	run_mq 0 mq-publish q last
	eventually 20 in_hand "== 1"
	went_in "< N / 50"
	run_mq 0 mq-pause --resume q
	# It claims again, and the same ones.
	eventually 20 in_hand "> N / 2"
	kill "$pid"
	go_and_end
	comes_out < <(seq 2 "$N"; echo last)
}

# --- what they are -------------------------------------------------------------------

@test "back: messages that are alike" {
	N=3000
	# Each thousand ends with an a.
	for _ in 1 2 3; do
		yes $'a\na\nb' | head -n 1000
	done >"$T/all"
	hold_many --raw <"$T/all"
	kill "$pid"
	go_and_end
	comes_out < <(tail -n +2 "$T/all")
}

@test "back: priorities; no attempt is counted" {
	N=2000
	seq 1001 2000 | run_mq 0 mq-publish -q -l q
	hold_many -p 5 < <(seq 1000)
	run_mq 0 mq-publish -q -p 5 q last
	kill "$pid"
	go_and_end
	run_mq 0 mq-consume -q --drain --jsonl q
	assert_equal "$(grep -c Mq-Attempt <<<"$output" || true)" 0
	cmp <(jq -r .payload <<<"$output") <(seq 2 1000; echo last; seq 1001 2000)
}

@test "back: keys and groups stay theirs" {
	[ "${LAYOUT:-rmq}" = rmq ] || skip "rsmq has none"
	N=1000
	seq "$N" | sed 's/.*/{"payload":"&","headers":{"Mq-Key":["k&"],"Mq-Unique":["queued"],"Mq-Group":["g&"]}}/' |
		run_mq 0 mq-publish -q --jsonl q
	hold_many </dev/null
	kill "$pid"
	eventually 20 in_hand "== 1"
	# What waits has its key again, what runs has not.
	run_mq 1 mq-publish -q -k k2 --unique queued q again
	run_mq 0 mq-publish -q -k k1 --unique queued q again
	go_and_end
	comes_out < <(seq 2 "$N"; echo again)
	assert_equal "$(redis hlen 'rmq::queue::[q]::locks')" 0
}

# --- troubles ----------------------------------------------------------------------

# A consumer ends, and has given back some of its many messages.
leave_half_way() {
	local left
	hold_many < <(seq "$N")
	left=$(holds "$c")
	kill "$pid"
	eventually 20 eval '(($(holds "$c") < left))'
}

@test "back: killed in the middle, nothing is lost or doubled" {
	leave_half_way
	kill -KILL "$pid"
	wait "$pid" || true
	expire "$c"
	run_mq 0 mq-clean -q
	run_mq 0 mq-consume -q --drain -l q
	# In rsmq, what a dead one had comes when its time is up.
	[ "${LAYOUT:-rmq}" = rmq ] || output=$(sort -n <<<"$output")
	cmp <(echo "$output") <(seq "$N")
}

@test "back: a connection that is lost in the middle; a full server" {
	leave_half_way
	redis client kill type normal skipme yes >/dev/null
	go_and_end
	all_from 2
	rm "$T/go"
	: >"$T/started"
	hold_many < <(seq "$N")
	redis config set maxmemory 1 >/dev/null
	kill "$pid"
	eventually 20 in_hand "== 1"
	redis config set maxmemory 0 >/dev/null
	go_and_end
	all_from 2
}

@test "back: what nobody knows of goes back when the consumer leaves" {
	[ "${LAYOUT:-rmq}" = rmq ] || skip "rmq's claims can be made by hand"
	local c
	seq "$N" | run_mq 0 mq-publish -q -l q
	start_mq mq-consume --no-clean q -- "$T/work"
	eventually 20 test -s "$T/started"
	c=$(connections)
	kill -STOP "$pid"
	redis eval 'for i = 1, 3000 do redis.call("LMOVE", KEYS[1], KEYS[2],
		"RIGHT", "LEFT") end' 2 'rmq::queue::[q]::ready' "$(unacked "$c")" \
		>/dev/null
	touch "$T/go"
	kill "$pid"
	kill -CONT "$pid"
	wait "$pid" || true
	assert_equal "$(redis exists "$(unacked "$c")")" 0
	assert_equal "$(connections)" ""
	all_from 2
}
