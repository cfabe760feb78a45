#!/usr/bin/env bats
# What runs: the record that a consumer keeps while it has long runs.

load ../helpers/server

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
	record | perl -MJSON::PP -e 'my $v = decode_json(<STDIN>)->[shift]{+shift};
		utf8::encode($v); print $v' "$@"
}

field_is() {
	[ "$(field "$1" "$2" 2>/dev/null)" = "$3" ]
}

runs_are() {
	[ "$(record | grep -o '"id"' | wc -l)" = "$1" ]
}

# A run of x, which is told; with options of its consumer.
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

@test "running: a long run is told, with all there is to know" {
	local id before after started

	run_mq 0 mq-publish -i jobs/1 x
	id=$output
	echo 'step 1 of 3' >"$T/say"
	before=$(date +%s%3N)
	start_mq mq-consume jobs/1 -- "$T/work"
	eventually 10 test -s "$T/pid.x"
	after=$(date +%s%3N)
	eventually 5 there
	assert_equal "$(field 0 id)" "$id"
	assert_equal "$(field 0 queue)" jobs/1
	assert_equal "$(field 0 attempt)" 1
	assert_equal "$(field 0 pid)" "$(cat "$T/pid.x")"
	assert_equal "$(field 0 script)" "$T/work"
	assert_equal "$(field 0 text)" "step 1 of 3"
	started=$(field 0 started_ms)
	((started >= before - 5 && started <= after + 5))
	ttl=$(redis ttl "rmq::connection::$(connections)::running")
	((ttl > 20 && ttl <= 60))
	# It follows what the script says, and stays otherwise the same.
	echo 'step 2 of 3' >"$T/say"
	eventually 3 field_is 0 text "step 2 of 3"
	assert_equal "$(field 0 started_ms)" "$started"
	# It ends with the run.
	end_run
}

@test "running: nothing for short runs" {
	start_mq mq-consume jobs -- true
	eventually 5 joined
	tick
	tick
	redis config resetstat >/dev/null
	for _ in 1 2 3 4 5 6; do
		run_mq 0 mq-publish jobs x
		eventually 5 held_is jobs "0 0 0 0"
		assert there 0
	done
	tick
	assert_equal "$(redis info commandstats | grep -cE 'cmdstat_(set|del):')" 0
	stop_mq
}

@test "running: told again only when something has changed" {
	long_run
	tick
	redis config resetstat >/dev/null
	tick
	tick
	assert_equal "$(redis info commandstats | grep -c 'cmdstat_set:')" 0
	# But kept, as the lease is.
	redis expire "rmq::connection::$(connections)::running" 20 >/dev/null
	eventually 5 ttl_above 30 "rmq::connection::$(connections)::running"
	touch "$T/go"
	stop_mq
}

@test "running: several slots and queues, and a later attempt" {
	run_mq 0 mq-publish a 1
	run_mq 0 mq-publish b 2
	run_mq 75 mq-consume -n 1 b -- sh -c 'echo resend 0-x >&3'
	start_mq mq-consume -j 3 a b -- "$T/work"
	eventually 10 runs_are 2
	assert_equal "$(field 0 queue) $(field 0 attempt)" "a 1"
	assert_equal "$(field 1 queue) $(field 1 attempt)" "b 2"
	touch "$T/go.1"
	eventually 5 runs_are 1
	assert_equal "$(field 0 queue)" b
	assert_equal "$(field 0 pid)" "$(cat "$T/pid.2")"
	end_run
}

@test "running: texts that are no text, and long ones" {
	run_mq 0 mq-publish jobs x
	printf 'a\377"\\\033[31m<b>\n' >"$T/say"
	start_mq mq-consume jobs -- "$T/work"
	eventually 10 field_is 0 text $'a?"\\\e[31m<b>'
	# 1 + 511 * 2 bytes are 1023; the next character does not fit.
	perl -e 'print "x", "\xc3\xbc" x 1000, "\n"' >"$T/say"
	eventually 5 field_is 0 text "x$(perl -e 'print "\xc3\xbc" x 511')"
	touch "$T/go"
	stop_mq
}

@test "running: the record goes with the consumer" {
	long_run --grace 0s
	stop_mq
	assert_equal "$(redis keys 'rmq::connection*')" ""
	assert_equal "$(held jobs)" "1 0 0 0"
}

@test "running: told again after a reconnect, and to an empty server" {
	long_run
	c=$(connections)
	before=$(record)
	redis del "rmq::connection::$c::running" >/dev/null
	redis client kill type normal skipme yes >/dev/null
	eventually 10 there
	assert_equal "$(connections)" "$c"
	assert_equal "$(record)" "$before"
	end_run
}

@test "running: a run that ends while the connection is lost" {
	long_run
	key="rmq::connection::$(connections)::running"
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
	long_run
	c=$(connections)
	first=$(cat "$T/pid.x")
	redis del "rmq::connection::$c::heartbeat" >/dev/null
	eventually 25 other_name "$c"
	# The message comes back, and its second run is told; nobody has crashed.
	eventually 20 another_runs "$first"
	assert_equal "$(field 0 pid)" "$(cat "$T/pid.x")"
	assert_equal "$(field 0 attempt)" 1
	end_run
}

another_runs() {
	there && [ "$(field 0 pid)" != "$1" ]
}

other_name() {
	local now
	now=$(connections)
	[ -n "$now" ] && [[ $now != *"$1"* ]]
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

@test "running: printing tells nothing" {
	mkfifo "$T/pipe"
	exec 8<>"$T/pipe"
	head -c 200000 /dev/zero | run_mq 0 mq-publish jobs
	"$BUILD/mq-consume" jobs >"$T/pipe" 2>"$T/err" 8>&- 3>&- &
	pid=$!
	eventually 10 held_is jobs "0 0 1 0"
	tick
	tick
	assert there 0
	stop_mq
}
