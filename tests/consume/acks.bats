#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# layouts: rmq rsmq
# Messages of several workers end in another order than they were claimed in:
# they are acked together all the same, and the others stay as they are.

load ../helpers/server

: "${LAYOUT:=rmq}"
load ../helpers/consume
load "../helpers/layout-$LAYOUT"

setup() {
	common_setup
	export MQ_LAYOUT=$LAYOUT
	any_length q
	: >"$T/did"
	# Notes what it has done, and then says so.  "wait FILE" waits for $T/FILE,
	# "nap" for up to 2 ms.
	script work "$(command -v perl)" <<'.'
open V, '>&=3';
open F, '>>', "$ENV{T}/did";
while ($ARGV[0] eq 'fast' && sysread STDIN, $_, 65536) {
	syswrite F, $_;
	syswrite V, "done\n" x tr/\n//;
}
while (<STDIN>) {
	select undef, undef, undef, .02 until !/^wait (\w+)/ || -e "$ENV{T}/$1";
	select undef, undef, undef, rand .002 if /nap/;
	syswrite F, $_;
	syswrite V, "done\n";
}
.
}

teardown() {
	redis config set maxmemory 0 >/dev/null
	common_teardown
}

# Those of $T/all that have not been done, in their order.
undone() {
	awk 'NR == FNR {did[$0] = 1; next} !($0 in did)' "$T/did" "$T/all"
}

# Everything was done, or is with the N messages that stay.
only_left() {
	local left
	mapfile -t left < <(undone)
	((${#left[@]} <= $1)) && [ "$(held q)" = "0 0 ${#left[@]} 0" ]
}

# The consumer is killed, and its messages go back.
crash() {
	stop_mq KILL || true
	expire "$(connections)"
	run_mq 0 mq-clean -q
	"$BUILD/mq-stats" --list ready -l q >"$T/ready"
	# RSMQ has an order for those that were received at once only.
	[ "$LAYOUT" = rmq ] || sort -V -o "$T/ready" "$T/ready"
}

@test "acks: of eight workers, together" {
	seq 6000 | run_mq 0 mq-publish -l q
	redis config resetstat >/dev/null
	run_mq 0 mq-consume --stream -j 8 --drain -l q -- "$T/work" fast
	assert_equal "$stderr" ""
	sort -n "$T/did" | cmp - <(seq 6000)
	assert_equal "$(held q)" "0 0 0 0"
	[ "$(calls 'lrem|evalsha|eval')" -lt 3600 ]
}

@test "acks: around one that takes long, with a full server, or without a right, too" {
	local how
	{ echo wait go; seq 3000; } >"$T/all"
	for how in full mute; do
		: >"$T/did"
		rm -f "$T/go"
		run_mq 0 mq-publish -l q <"$T/all"
		if [ $how = full ]; then
			redis config set maxmemory 1 >/dev/null
		else
			# RSMQ has no lists.
			[ "$LAYOUT" = rmq ] || continue
			redis acl setuser some on '>pw' allkeys allchannels +@all -rpush >/dev/null
			MQ_URL=$(url_as some:pw)
		fi
		redis config resetstat >/dev/null
		start_mq mq-consume --stream -j 2 -l q -- "$T/work"
		eventually 60 only_left 1
		assert_equal "$(undone)" "wait go"
		[ $how = mute ] || [ "$(calls 'lrem|evalsha|eval')" -lt 2400 ]
		touch "$T/go"
		eventually 20 only_left 0
		stop_mq
		redis config set maxmemory 0 >/dev/null
		assert_equal "$(wc -l <"$T/did")" 3001
	done
	# Redis 6.2 does not name it.
	[ "$LAYOUT" = rsmq ] || grep -q -e rpush -e "can't run this command" "$T/err"
	redis acl deluser some >/dev/null
}

@test "acks: those between them stay, in their order" {
	local i
	for i in {1..3}; do
		echo "wait go$i"
		seq "${i}0001" "${i}0600"
	done >"$T/all"
	run_mq 0 mq-publish -l q <"$T/all"
	start_mq mq-consume --stream -j 4 --window 200 -l q -- "$T/work"
	eventually 60 only_left 600
	touch "$T/go2"
	eventually 60 only_left 400
	crash
	[ "$(wc -l <"$T/ready")" -ge 2 ]
	cmp "$T/ready" <(undone | if [ "$LAYOUT" = rmq ]; then cat; else sort -V; fi)
}

@test "acks: with a run for each message, a killed consumer repeats twice its slots at most" {
	local jobs
	for jobs in 2 4; do
		redis flushall >/dev/null
		any_length q
		: >"$T/did"
		seq 300 | sed "s/^/$jobs /" | run_mq 0 mq-publish -l q
		start_mq mq-consume --prefetch 50 -j "$jobs" q -- sh -c 'read -r x; echo "$x" >>"$T/did"'
		eventually 30 lines_reach "$T/did" 130
		crash
		# What is there again, and has run.
		[ "$(wc -l <"$T/ready")" -ge 50 ]
		sort "$T/did" | comm -12 - <(sort "$T/ready") >"$T/twice"
		[ "$(wc -l <"$T/twice")" -le $((2 * jobs)) ]
	done
}

@test "acks: with a run for each message, none starts while none can be settled" {
	no_cluster "the link leads to one server"
	seq 40 | run_mq 0 mq-publish -l q
	"$root/tests/helpers/link.py" "$D/redis.sock" >"$T/port" &
	eventually 10 test -s "$T/port"
	start_mq mq-consume -u "redis://127.0.0.1:$(cat "$T/port")" --prefetch 30 -j 2 q -- \
		sh -c 'echo "$MQ_ID" >>"$T/did"; until [ -e "$T/go" ]; do sleep 0.02; done'
	eventually 10 lines_reach "$T/did" 2
	kill %1
	eventually 10 grep -q reconnecting "$T/err"
	touch "$T/go"
	# These end; of the others, which took milliseconds, none begins.
	eventually 10 eval '! pgrep -f "until [[] -e $T/go" >/dev/null && ! pgrep -P "$pid" sh >/dev/null'
	run ! eventually 1 lines_reach "$T/did" 3
	stop_mq KILL
}

@test "acks: what they held is free: of those that are done only" {
	[ "$LAYOUT" = rmq ] || skip "RSMQ has no keys and groups"
	{
		echo '{"payload":"wait go","headers":{"Mq-Key":["k0"]}}'
		seq 3000 | sed 's/.*/{"payload":"&","headers":{"Mq-Key":["k&"]}}/'
		seq 300 | sed 's/.*/{"payload":"g&","headers":{"Mq-Group":["g&"]}}/'
	} | run_mq 0 mq-publish --jsonl q
	start_mq mq-consume --stream -j 4 -l q -- "$T/work"
	eventually 60 held_is q "0 0 1 0"
	assert_equal "$(redis hkeys 'rmq::queue::[q]::locks' | grep -c k)" 1
	touch "$T/go"
	eventually 20 held_is q "0 0 0 0"
	stop_mq
	assert_equal "$(redis hkeys 'rmq::queue::[q]::locks' | grep -c k)" 0
	assert_equal "$(sort -u "$T/did" | wc -l)" 3301
}
