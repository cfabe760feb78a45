#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-consume as a whole: printing, claiming, ending, signals, and the keys that
# show that it is there.  See verdict.bats and worker.bats for its scripts.

load ../helpers/server
load ../helpers/consume

teardown() {
	redis acl setuser default '+@all' >/dev/null
	common_teardown
}

# A script that says in $T/started.PAYLOAD that it runs, and ends when there is
# a file $T/go.PAYLOAD, or $T/go.
waiting_script() {
	script wait "$(command -v perl)" <<'.'
my ($n, $t) = (<STDIN>, $ENV{T});
open my $f, '>', "$t/pid.$n"; print $f "$$\n"; close $f;
rename "$t/pid.$n", "$t/started.$n";
select undef, undef, undef, 0.01 until -e "$t/go.$n" || -e "$t/go";
open $f, '>>', "$t/ended"; print $f "$n\n";
.
}

started() {
	[ -e "$T/started.$1" ]
}

says() {
	grep -q "$1" "$T/err"
}

# woken ACT DONE [BEFORE]: what ACT brings about is DONE long before the next tick of the
# only consumer, three times in a row: by its ticks alone, each would be a second behind
# the one before.  All are given to eval.
woken() {
	local began quick=0
	for _ in {1..100}; do
		eval "${3-}"
		began=${EPOCHREALTIME/./}
		eval "$1"
		eventually 10 eval "$2"
		quick=$((${EPOCHREALTIME/./} - began < 800000 ? quick + 1 : 0))
		((quick < 3)) || return 0
	done
	echo "never before the next tick: $2" >&2
	return 1
}

# --- printing --------------------------------------------------------------------

@test "consume: prints payloads as they are, and -l, -0 and --netstring" {
	perl -e 'print map(chr, 0..255)' >"$T/bytes"
	run_mq 0 mq-publish q <"$T/bytes"
	run_mq 0 mq-publish q "" "no newline" $'two\nlines\n'
	"$BUILD/mq-consume" -n 4 q >"$T/got"
	{ cat "$T/bytes"; printf 'no newlinetwo\nlines\n'; } | cmp - "$T/got"
	held_is q "0 0 0 0"
	run_mq 0 mq-publish q one "" $'t\nwo'
	"$BUILD/mq-consume" --drain -l q | cmp - <(printf 'one\n\nt\nwo\n')
	run_mq 0 mq-publish q one "" $'t\nwo' two
	"$BUILD/mq-consume" -n 3 -0 q | cmp - <(printf 'one\0\0t\nwo\0')
	run_mq 0 mq-publish q "" $'t\nwo'
	"$BUILD/mq-consume" -n 3 --netstring q | cmp - <(printf '3:two,0:,4:t\nwo,')
}

@test "consume: --jsonl" {
	run_mq 0 mq-publish -i -H 'X-A: ü' q $'a "b"\n'
	id=$output
	prints '{"id":"'"$id"'","queue":"q","attempt":1,"headers":{"Mq-Id":["'"$id"'"],"X-A":["ü"]},"payload":"a \"b\"\n"}' \
		mq-consume --drain --jsonl q
	# Bytes that are no text.
	id=$(printf 'a\377\0b' | "$BUILD/mq-publish" -i q)
	prints '{"id":"'"$id"'","queue":"q","attempt":1,"headers":{"Mq-Id":["'"$id"'"]},"payload_base64":"Yf8AYg=="}' \
		mq-consume --drain --jsonl q
	# No headers, and a later attempt.
	run_mq 0 mq-publish --raw q x
	run_mq 0 mq-consume --drain --jsonl q
	assert_regex "$output" '^\{"id":"[0-9a-zA-Z]{32}","queue":"q","attempt":1,"payload":"x"\}$'
	run_mq 0 mq-publish q x
	run_mq 75 mq-consume -n 1 q -- sh -c 'echo resend 0-x >&3'
	run_mq 0 mq-consume --drain --jsonl q
	assert_output --regexp '"attempt":2,.*"Mq-Attempt":\["1"\]'
}

@test "consume: a slow reader does not stop the heartbeat" {
	perl -e 'print "x" x 1000, "\n" for 1 .. 300' | run_mq 0 mq-publish -l q
	mkfifo "$T/pipe"
	exec 8<>"$T/pipe"
	"$BUILD/mq-consume" -l q >"$T/pipe" 2>"$T/err" 3>&- 8>&- &
	pid=$!
	eventually 10 joined
	heartbeat
	heartbeat
	# Nobody reads: claimed, and not acked.
	[ "$(redis llen "$(redis keys '*unacked')")" -gt 10 ]
	head -n 300 <&8 | uniq -c | awk '{print $1, length($2)}' >"$T/got"
	assert_equal "$(cat "$T/got")" "300 1000"
	eventually 10 held_is q "0 0 0 0"
	stop_mq TERM 143
	exec 8>&-
}

# --- how much, and until when ------------------------------------------------------

@test "consume: -n ends after so many messages; --drain leaves what is delayed" {
	run_mq 0 mq-publish q 1 2 3 4 5
	prints $'1\n2' mq-consume -n 2 -l q
	run_mq 0 mq-consume -j 3 -n 2 q -- cat
	assert_equal "$(held q) $(payloads ready)" "1 0 0 0 5"
	prints 5 mq-consume --drain -l q
	# At once when there is nothing.
	prints "" mq-consume --drain q
	run_mq 0 mq-publish -d 1h q later
	prints "" mq-consume --drain q -- cat
	# But what is due.
	run_mq 0 mq-publish -d 1ms q due
	prints due mq-consume --drain -l q
	assert_equal "$(held q)" "0 1 0 0"
}

@test "consume: --drain waits for messages in flight at others" {
	waiting_script
	run_mq 0 mq-publish q 1
	start_mq mq-consume q -- "$T/wait"
	eventually 10 started 1
	(
		"$BUILD/mq-consume" --drain q -- cat 3>&-
		[ -e "$T/ended" ] && echo >"$T/in.order"
		echo >"$T/drained"
	) &
	eventually 10 joined 2
	# It has looked, more than once, and did not end.
	looks=$(calls evalsha)
	eventually 10 eval '(($(calls evalsha) > looks + 2))'
	[ ! -e "$T/drained" ]
	echo >"$T/go"
	eventually 10 test -e "$T/drained"
	[ -e "$T/in.order" ]
	stop_mq
}

@test "consume: --idle" {
	run_mq 0 mq-publish q 1 2
	start=$(date +%s%3N)
	run_mq 0 mq-consume --idle 300ms -l q
	assert_output $'1\n2'
	(($(date +%s%3N) - start >= 300))
	waiting_script
	run_mq 0 mq-publish q 3
	start_mq mq-consume --idle 100ms q -- "$T/wait"
	eventually 10 started 3
	# A run is not idleness.
	tick
	run ! gone "$pid"
	echo >"$T/go"
	wait "$pid"
	held_is q "0 0 0 0"
}

# went STATUS PAYLOAD... -- OPTION...: how a consumer that runs the payloads ends.
went() {
	local want=$1 payloads=()
	shift
	while [ "$1" != -- ]; do
		payloads+=("$1")
		shift
	done
	redis flushall >/dev/null
	run_mq 0 mq-publish q "${payloads[@]}"
	run_mq "$want" mq-consume -q --backoff 1ms..1ms "${@:2}" q -- sh
}

@test "consume: a consumer that ends by itself says how it went" {
	local late='[ "$MQ_ATTEMPT" = 2 ] || exit 75'
	went 0 true -- -n 1
	went 0 'echo push >&3' -- -n 1 --push p
	went 1 'exit 1' true -- -n 2
	went 1 'exit 1' true -- --drain
	went 1 'exit 1' -- --idle 100ms
	went 75 'exit 75' true -- -n 2
	went 75 'echo resend 3600 >&3' true -- --drain
	went 75 'echo resend 3600 >&3' -- --idle 100ms
	went 1 'exit 75' 'exit 1' -- -n 2
	went 1 'exit 75' -- -n 1 --attempts 1
	went 0 "$late" -- --idle 2s
	went 1 "$late; exit 1" -- --idle 2s
	went 75 "$late" 'echo resend 3600 >&3' -- --idle 2s
	# Of its own messages: the one that has been sent back was so by another.
	went 75 'echo resend 0 >&3' -- -n 1
	run_mq 0 mq-consume -n 1 q -- true
	# One that expires has no run; nor is it printed.
	run_mq 0 mq-publish -e 1ms q late
	run_mq 0 mq-publish q x
	tick
	run_mq 1 mq-consume -n 1 q
	assert_output x
	# A signal comes first.
	run_mq 0 mq-publish q x
	start_mq mq-consume --idle 1h q -- false
	eventually 10 held_is q "0 0 0 2"
	stop_mq TERM 143
}

@test "consume: several queues, the first one first" {
	run_mq 0 mq-publish low l1 l2
	run_mq 0 mq-publish high h1 h2
	run_mq 0 mq-publish mid m1
	prints $'high h1\nhigh h2\nmid m1\nlow l1\nlow l2' \
		mq-consume -n 5 high mid low -- sh -c 'echo "$MQ_QUEUE $(cat)"'
	# What comes meanwhile goes before what was there.
	run_mq 0 mq-publish low l1 l2
	prints $'l1\nh1\nl2' mq-consume -n 3 --prefetch 0 high low -- sh -c '
		n=$(cat); echo "$n"; [ "$n" != l1 ] || "$0" high h1' "$BUILD/mq-publish"
}

@test "consume: of many queues, only those are asked that may have more" {
	local queues
	no_cluster "there each look is a call for each queue"
	mapfile -t queues < <(seq -f q-%g 300)
	seq 60 | run_mq 0 mq-publish -l q-300
	redis config resetstat >/dev/null
	run_mq 0 mq-consume --drain --prefetch 0 "${queues[@]}" -- sh -c '
		[ "$(cat)" != 30 ] || echo x | "$0" q-7' "$BUILD/mq-publish"
	assert_equal "$(held q-300) $(held q-7)" "0 0 0 0 0 0 0 0"
	# Each of them for each message would be 18,000.
	(($(calls evalsha) < 9000))
}

@test "consume: -j 3 is three at a time, and not four" {
	waiting_script
	run_mq 0 mq-publish q 1 2 3 4 5 6
	start_mq mq-consume -j 3 -n 6 q -- "$T/wait"
	eventually 10 started 3
	eventually 10 started 2
	eventually 10 started 1
	# Those behind are left for others.
	tick
	assert_equal "$(held q)" "3 0 3 0"
	run ! started 4
	echo >"$T/go.2"
	eventually 10 started 4
	run ! started 5
	echo >"$T/go"
	wait "$pid"
	assert_equal "$(sort "$T/ended" | tr '\n' ' ')" "1 2 3 4 5 6 "
	held_is q "0 0 0 0"
}

@test "consume: an idle consumer of several queues wakes up for each, and for a Go peer" {
	local n=0 q
	start_mq mq-consume a b c -- sh -c 'echo "$MQ_QUEUE" >>"$T/runs"'
	eventually 10 joined
	: >"$T/runs"
	for q in c a b; do
		woken '"$BUILD/mq-publish" "$q" "$((++n))"' 'lines_reach "$T/runs" "$n"'
	done
	woken 'redis lpush "rmq::queue::[a]::ready" "$((++n))" >/dev/null' 'lines_reach "$T/runs" "$n"'
	assert_equal "$(uniq "$T/runs")" $'c\na\nb\na'
	stop_mq
}

@test "consume: a delayed message is run when it is due, by one that was idle" {
	local n=0
	start_mq mq-consume q -- sh -c 'date +%s%3N >>"$T/runs"'
	eventually 10 joined
	: >"$T/runs"
	woken 'before=$(date +%s%3N); "$BUILD/mq-publish" -d 300ms q "$((++n))"' 'lines_reach "$T/runs" "$n"'
	ran=$(tail -n 1 "$T/runs")
	echo "published after $before, ran $ran"
	((ran >= before + 300))
	eventually 5 held_is q "0 0 0 0"
	stop_mq
}

@test "consume: the keys of a connection are those of rmq, and go with it" {
	local name q
	start_mq mq-consume --tag worker a b -- cat
	eventually 10 joined
	tick
	name=$(connections)
	assert_regex "$name" '^worker-[A-Za-z0-9]{6}$'
	assert_equal "$(redis get "rmq::connection::$name::heartbeat")" 1
	ttl=$(redis ttl "rmq::connection::$name::heartbeat")
	((ttl > 40 && ttl <= 60))
	assert_equal "$(redis smembers "rmq::connection::$name::queues" | sort | xargs)" "a b"
	for q in a b; do
		assert_regex "$(redis smembers "rmq::connection::$name::queue::[$q]::consumers")" \
			'^worker-[A-Za-z0-9]{6}$'
	done
	assert_equal "$(redis smembers rmq::queues | sort | xargs)" "a b"
	stop_mq TERM 143
	# All of it is gone, and the queues are still known.
	forget_past
	assert_equal "$(redis keys '*' | sort)" rmq::queues
	# Without --tag the name says mq-consume, and no two are the same.
	run_mq 0 mq-publish q x y
	"$BUILD/mq-consume" --idle 2s q -- cat 3>&- &
	start_mq mq-consume --idle 2s q -- cat
	eventually 10 joined 2
	assert_equal "$(connections | grep -c '^mq-consume-[A-Za-z0-9]\{6\}$')" 2
	wait
	run_mq 0 mq-consume --drain -l q
	forget_past
	assert_equal "$(redis keys '*' | sort)" $'rmq::queue::[q]::counters\nrmq::queues'
}

# Most of it, and the words, are in house/messages.bats.
@test "consume: wrong usage is 64, and touches nothing" {
	local words
	run_mq 0 mq-publish q x
	for words in '-- cat' 'q -j' '--tag a::b q' '--strict q' '--timeout 1s q' '--push p q' \
		'--retry-on err q' '--rest 1s..5s q' '--notify a]b q -- true' '--push a]::b q -- true' \
		'--rate-shared 0/s q' '--prefetch -1 q' '--attempts 0 q -- true' '--idle -1s q' \
		'--grace 5y q -- true' '-n 99999999999999999999 q'; do
		# shellcheck disable=SC2086 # several words
		run_mq 64 mq-consume $words
		[[ $stderr == "mq-consume: "* ]] || fail "$words: $stderr"
	done
	held_is q "1 0 0 0"
	assert_equal "$(redis smembers rmq::queues)" q
}

@test "consume: options after the queue, and words that look like options after --" {
	run_mq 0 mq-publish q x
	run_mq 0 mq-consume q -n 1 --attempts 3 -- echo -n -l --drain -- x
	assert_output -- "-l --drain -- x"
}

@test "consume: -v sums up" {
	run_mq 0 mq-publish q 'done' err again
	run_mq 1 mq-consume -v -n 3 q -- sh -c '
		case $(cat) in
		err) echo err because >&3 ;;
		again) echo resend 60-later >&3 ;;
		esac'
	assert_equal "${stderr_lines[-1]}" \
		"mq-consume: 1 done, 1 rejected, 1 to be tried again, 0 returned, 0 leases lost"
	assert_equal "$(sed -nE 's/^mq-consume: q: [0-9a-zA-Z]{32}: //p' <<<"$stderr" | sort)" \
		$'again in 60.0 s: 60-later\ndone\nrejected: because'
}

@test "consume: -q leaves out what passes, and rejected messages" {
	waiting_script
	run_mq 0 mq-publish q 1
	start_mq mq-consume -q q -- "$T/wait"
	eventually 10 started 1
	kill "$pid"
	echo >"$T/go"
	ends_with 143
	assert_equal "$(cat "$T/err")" ""
	run_mq 0 mq-publish q x
	run_mq 0 mq-publish -e 1ms q late
	tick
	run_mq 1 mq-consume -q --drain q -- false
	assert_equal "$stderr" ""
	held_is q "0 0 0 2"
	# What keeps the consumer from working is no passing trouble.
	run_mq 0 mq-publish q x
	script none /no/such/interpreter </dev/null
	run_mq 78 mq-consume -q q -- "$T/none"
	assert_regex "$stderr" 'stopping, the message is returned'
}

# --- signals --------------------------------------------------------------------------------

# Not just that status: a shell script around it must stop, too.
@test "consume: INT ends it by the signal" {
	perl -e '
		$SIG{INT} = "DEFAULT";
		my $pid = fork; exec @ARGV unless $pid;
		select undef, undef, undef, 0.02 until -e "$ENV{T}/joined";
		kill "INT", $pid; waitpid $pid, 0; exit(($? & 127) != 2)' \
		"$BUILD/mq-consume" other -- cat 3>&- &
	pid=$!
	eventually 10 joined
	touch "$T/joined"
	wait "$pid"
}

@test "consume: a second INT: the script is killed, its message returned as it was" {
	waiting_script
	run_mq 0 mq-publish q 1 2
	redis lrange 'rmq::queue::[q]::ready' 0 -1 >"$T/before"
	start_mq mq-consume q -- "$T/wait"
	eventually 10 started 1
	kill -INT "$pid"
	eventually 5 says stopping
	kill -INT "$pid"
	ends_with 130
	eventually 5 gone "$(cat "$T/started.1")"
	[ ! -e "$T/ended" ]
	redis lrange 'rmq::queue::[q]::ready' 0 -1 | cmp - "$T/before"
	assert_equal "$(held q)" "2 0 0 0"
	assert_equal "$(redis keys 'rmq::connection*')" ""
}

@test "consume: a script that cannot be killed does not keep the others" {
	script stray "$(command -v perl)" <<'.'
setpgrp(0, getpgrp(getppid)) if <STDIN> == 2;
open my $f, '>>', "$ENV{T}/got"; syswrite $f, "x\n";
sleep 60;
.
	seq 4 | run_mq 0 mq-publish -l q
	start_mq mq-consume -j 3 q -- "$T/stray"
	touch "$T/got"
	eventually 10 lines_reach "$T/got" 3
	kill -INT "$pid"
	eventually 5 grep -q stopping "$T/err"
	kill -INT "$pid"
	eventually 4 held_is q "3 0 1 0"
	assert_equal "$(payloads ready)" "1 3 4"
	stop_mq KILL
}

@test "consume: --grace over: TERM, then KILL; what did not say done goes back" {
	mkfifo "$T/hold"
	# Its children are not of its group, so that it is the script that has to be killed.
	script s <<'.'
n=$(cat)
case $n in
done) trap 'echo done >&3; exit 0' TERM ;;
deaf) trap 'echo "$n" >>"$T/termed"' TERM ;;
esac
echo $$ >"$T/pid.$n"
echo >"$T/started.$n"
while :; do
	read -r _ <>"$T/hold" &
	wait
done
.
	run_mq 0 mq-publish q 'done' deaf plain
	start_mq mq-consume -j 3 --grace 100ms q -- "$T/s"
	for n in 'done' deaf plain; do eventually 10 started "$n"; done
	kill "$pid"
	ends_with 143
	assert_equal "$(cat "$T/termed")" deaf
	eventually 5 gone "$(cat "$T/pid.deaf")"
	assert_equal "$(held q) $(attempts_of ready)" "2 0 0 0 0"
	assert_equal "$("$BUILD/mq-stats" --list ready -l q | sort | xargs)" "deaf plain"
	assert_equal "$(redis keys 'rmq::connection*')" ""
}

@test "consume: USR1 stops the fetching only" {
	waiting_script
	run_mq 0 mq-publish q 1 2
	start_mq mq-consume --prefetch 1 q -- "$T/wait"
	eventually 10 started 1
	eventually 5 held_is q "0 0 2 0"
	kill -USR1 "$pid"
	# It has been heard when a later signal has had an effect, or a heartbeat.
	tick
	run_mq 0 mq-publish q 3
	echo >"$T/go"
	# What it had is run.
	eventually 10 held_is q "1 0 0 0"
	assert_equal "$(xargs <"$T/ended")" "1 2"
	tick
	tick
	held_is q "1 0 0 0"
	stop_mq TERM 143
}

# A job of a shell, which stops it.
job() {
	waiting_script
	run_mq 0 mq-publish q 1 2
	set -m
	start_mq mq-consume --prefetch 1 "$@" q -- "$T/wait"
	set +m
	eventually 10 started 1
	worker=$(<"$T/started.1")
	kill -TSTP "$pid"
	eventually 10 proc_state "$pid" T
	eventually 10 proc_state "$worker" T
}

@test "consume: ^Z stops the command, too, and fg goes on with it" {
	job
	kill -CONT "$pid"
	eventually 10 proc_state "$worker" S
	echo >"$T/go"
	eventually 10 held_is q "0 0 0 0"
	stop_mq
	assert_equal "$(cat "$T/err")" ""
	[ -e "$T/ended" ]
}

# One that goes on when its lease has lapsed.
lapsed_job() {
	local lib
	lib=$(find /usr/lib -name libfaketime.so.1 | head -n 1)
	# 20 seconds are over in one, and a busy machine still gets heartbeats through.
	LD_PRELOAD=$lib FAKETIME='+0 x20' \
		ASAN_OPTIONS=${ASAN_OPTIONS-}:verify_asan_link_order=0 job "$@"
	sleep 3.5
	kill -CONT "$pid"
}

@test "consume: a command that ^Z stopped until its lease lapsed is killed" {
	no_static "faketime makes the lease lapse"
	lapsed_job
	eventually 10 says 'lease lost: no heartbeat got through'
	eventually 10 gone "$worker"
	[ ! -e "$T/ended" ]
	stop_mq
}

@test "consume: what waits to be started is not, when a lease has lapsed meanwhile" {
	no_static "faketime makes the lease lapse"
	# The second message may start as soon as the consumer goes on.
	lapsed_job -j 2 --rate 1/m --joblog "$T/runs"
	eventually 10 says 'lease lost: no heartbeat got through'
	eventually 10 gone "$worker"
	stop_mq
	assert_equal "$(grep -c lost "$T/runs") $(lines_of "$T/runs")" "1 2"
}

@test "consume: many acks of what somebody else took away are told as lost" {
	# More than the pipe takes.
	printf '%0999d\n' {1..600} | "$BUILD/mq-publish" -l q
	mkfifo "$T/out"
	exec {slow}<>"$T/out"
	start_mq mq-consume -v -l q
	timeout 120 head -c 300000 <&"$slow" >/dev/null
	eventually 5 eval '[ "$(held q | cut -d " " -f 3)" -ge 100 ]'
	# As a cleaner would; but the lease still holds.
	redis del "$(redis --raw keys '*::unacked')" >/dev/null
	cat <&"$slow" >"$T/got" &
	cat=$!
	eventually 10 grep -q 'lease lost' "$T/err"
	kill "$cat"
	stop_mq TERM
}
