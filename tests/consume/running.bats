#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What runs: the record that a consumer keeps while it has long runs.

load ../helpers/server
load ../helpers/consume

setup() {
	common_setup
	redis config set maxmemory 0 >/dev/null
	redis acl setuser default '+@all' >/dev/null
	# Says what stands in $T/say, and again when that changes; ends when
	# there is $T/go.PAYLOAD, or $T/go.
	script work "$(command -v perl)" <<'.'
my ($n, $t, $last) = (<STDIN>, $ENV{T}, '');
open V, '>&=3'; select V; $| = 1;
open my $f, '>', "$t/pid.$n"; print $f "$$\n"; close $f;
until (-e "$t/go.$n" || -e "$t/go") {
	my $now = '';
	if (open my $say, '<', "$t/say") { $now = <$say> // '' }
	# Whole lines: a file that is written anew is empty first.
	print "run $now" if $now =~ /\n/ && $now ne $last;
	$last = $now;
	select undef, undef, undef, 0.02;
}
print "done\n";
.
}

record() {
	redis get "rmq::connection::$(connections)::running"
}

there() {
	[ "$(redis exists "rmq::connection::$(connections)::running")" = "${1:-1}" ]
}

# field N NAME: of the Nth run.
field() {
	record | jq -rj ".[$1].$2" 2>/dev/null
}

field_is() {
	[ "$(field "$1" "$2")" = "$3" ]
}

# silent COMMAND...: meanwhile the consumer writes and removes no record.  A heartbeat is
# a SET, too, and may come between, but not every time.
silent() {
	for _ in {1..5}; do
		redis config resetstat >/dev/null
		"$@"
		(($(calls 'set|del') > 0)) || return 0
	done
	return 1
}

ticks() {
	tick
	tick
}

short_runs() {
	for _ in {1..6}; do
		run_mq 0 mq-publish jobs x
		eventually 5 held_is jobs "0 0 0 0"
		assert there 0
	done
	tick
}

# A run of x, which is told; with options of its consumer.
# shellcheck disable=SC2120 # not all tests give any
long_run() {
	run_mq 0 mq-publish jobs x
	start_mq mq-consume "$@" jobs -- "$T/work"
	eventually 10 there
}

end_run() {
	touch "$T/go"
	eventually 5 there 0
	stop_mq
}

@test "running: long runs are told, with all there is to know" {
	local id before after started
	run_mq 0 mq-publish -i jobs/1 x
	id=$output
	run_mq 0 mq-publish b 2
	run_mq 75 mq-consume -n 1 b -- sh -c 'echo resend 0-x >&3'
	printf 'a\377"\\\033[31m<b>\n' >"$T/say"
	before=$(date +%s%3N)
	start_mq mq-consume -j 3 jobs/1 b -- "$T/work"
	eventually 10 test -s "$T/pid.x"
	after=$(date +%s%3N)
	eventually 10 field_is 0 text $'a?"\\\e[31m<b>'
	eventually 10 field_is 1 text $'a?"\\\e[31m<b>'
	assert_equal "$(field 0 id) $(field 0 queue) $(field 0 attempt) $(field 0 pid) $(field 0 script)" \
		"$id jobs/1 1 $(cat "$T/pid.x") $T/work"
	assert_equal "$(field 1 queue) $(field 1 attempt)" "b 2"
	started=$(field 0 started_ms)
	((started >= before - 5 && started <= after + 5))
	ttl=$(redis ttl "rmq::connection::$(connections)::running")
	((ttl > 20 && ttl <= 60))
	# It follows what the script says, and stays otherwise the same.
	# 1 + 511 * 2 bytes are 1023; the next character does not fit.
	perl -e 'print "x", "\xc3\xbc" x 1000, "\n"' >"$T/say"
	eventually 5 field_is 0 text "x$(perl -e 'print "\xc3\xbc" x 511')"
	assert_equal "$(field 0 started_ms)" "$started"
	# It ends with the run, and with the consumer.
	touch "$T/go.x"
	eventually 5 field_is 0 queue b
	assert_equal "$(field 0 pid) $(field 1 pid)" "$(cat "$T/pid.2") null"
	kill -INT "$pid"
	stop_mq INT
	assert_equal "$(redis keys 'rmq::connection*')" ""
	assert_equal "$(held b)" "1 0 0 0"
}

@test "running: nothing for short runs, nor for printing" {
	start_mq mq-consume jobs -- true
	eventually 5 joined
	tick
	tick
	silent short_runs
	stop_mq
	mkfifo "$T/pipe"
	exec 8<>"$T/pipe"
	head -c 200000 /dev/zero | run_mq 0 mq-publish jobs
	"$BUILD/mq-consume" --grace 0 jobs >"$T/pipe" 2>"$T/err" 8>&- 3>&- &
	pid=$!
	eventually 10 held_is jobs "0 0 1 0"
	tick
	tick
	assert there 0
	stop_mq
}

@test "running: told again only when something has changed" {
	# shellcheck disable=SC2119
	long_run
	tick
	silent ticks
	# But kept, as the lease is.
	redis expire "rmq::connection::$(connections)::running" 20 >/dev/null
	eventually 5 ttl_above 30 "rmq::connection::$(connections)::running"
	end_run
}

@test "running: told again after a reconnect, and gone after one when the run has ended" {
	local before key
	# shellcheck disable=SC2119
	long_run
	c=$(connections)
	key="rmq::connection::$c::running"
	before=$(record)
	redis del "$key" >/dev/null
	redis client kill type normal skipme yes >/dev/null
	eventually 10 there
	assert_equal "$(connections) $(record)" "$c $before"
	redis client pause 300 >/dev/null
	touch "$T/go"
	redis client kill type normal skipme yes >/dev/null
	eventually 10 there 0
	# Nor does one that the server still has stay.
	redis set "$key" '[]' EX 60 >/dev/null
	redis client kill type normal skipme yes >/dev/null
	eventually 10 there 0
	stop_mq
}

@test "running: a new name has its own record, of its own runs" {
	local first
	# shellcheck disable=SC2119
	long_run
	c=$(connections)
	first=$(cat "$T/pid.x")
	redis del "rmq::connection::$c::heartbeat" >/dev/null
	eventually 25 eval '[[ -n $(connections) && $(connections) != *"$c"* ]]'
	# The message comes back, and its second run is told; nobody has crashed.
	eventually 20 eval '[[ $(field 0 pid) =~ ^[0-9]+$ && $(field 0 pid) != "$first" ]]'
	assert_equal "$(field 0 pid)" "$(cat "$T/pid.x")"
	assert_equal "$(field 0 attempt)" 1
	end_run
}

@test "running: --wait on a terminal shows how far the run is, and erases that" {
	load ../helpers/wire
	echo '40% of a film' >"$T/say"
	start_mq mq-consume jobs -- "$T/work"
	{ sleep 4 && echo '80% of a film' >"$T/say" && sleep 3 && touch "$T/go"; } 3>&- &
	on_terminal "" "$BUILD/mq-publish" --wait=20s jobs x >"$T/screen" 3>&-
	grep -q '40% of a film \[##*\.' "$T/screen" || fail "$(cat "$T/screen")"
	grep -q '80% of a film \[##*\.' "$T/screen" || fail "$(cat "$T/screen")"
	run bash -c "tr '\\r' '\\n' <'$T/screen' | grep -A 1 '\[#' | tail -n 1 | tr -d ' '"
	assert_output ""
	stop_mq
}

@test "running: --wait on a terminal, without the right to read what runs, shows nothing" {
	load ../helpers/wire
	echo '40% of a film' >"$T/say"
	start_mq mq-consume jobs -- "$T/work"
	redis acl setuser waits reset on '>pw' '~*' '&*' '+@all' -smembers -sscan >/dev/null
	{ sleep 4 && touch "$T/go"; } 3>&- &
	on_terminal "" "$BUILD/mq-publish" -u "$(url_as waits:pw)" --wait=20s jobs x \
		>"$T/screen" 3>&-
	redis acl deluser waits >/dev/null
	run ! grep '40%' "$T/screen"
	run ! grep -i 'perm' "$T/screen"
	stop_mq
}

@test "running: a full memory, no permission: told when it can be" {
	redis sadd rmq::queues jobs >/dev/null
	start_mq mq-consume jobs -- "$T/work"
	# Before the run is a long one.
	for _ in {1..20}; do
		run_mq 0 mq-publish jobs x
		eventually 10 test -s "$T/pid.x"
		redis config set maxmemory 1 >/dev/null
		! there 0 || break
		redis config set maxmemory 0 >/dev/null
		touch "$T/go"
		eventually 10 held_is jobs "0 0 0 0"
		rm "$T/go" "$T/pid.x"
	done
	tick
	tick
	assert there 0
	redis config set maxmemory 0 >/dev/null
	eventually 5 there
	redis acl setuser default -set >/dev/null
	echo new >"$T/say"
	tick
	tick
	assert field_is 0 text ""
	redis acl setuser default +set >/dev/null
	eventually 5 field_is 0 text new
	touch "$T/go"
	eventually 5 held_is jobs "0 0 0 0"
	stop_mq
	assert_equal "$(cat "$T/err")" ""
}
