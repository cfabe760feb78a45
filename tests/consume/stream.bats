#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# --stream: workers that stay, and are fed messages.

load ../helpers/server
load ../helpers/consume

setup() {
	common_setup
	: >"$T/got"
	: >"$T/starts"
	# obey: does what the lines tell it to, one after the other; "a; b" is
	# two things.  Whatever it does not know it says on descriptor 3.
	script obey "$(command -v perl)" <<'.'
use IO::Handle;
use Time::HiRes 'time';
sub note {
	open $file{$_[0]}, '>>', "$ENV{T}/$_[0]" unless $file{$_[0]};
	syswrite $file{$_[0]}, "$_[1]\n";
}
open V, '>&=3';
open A, '<&=4';
V->autoflush(1);
STDERR->autoflush(1);
note('starts', $$);
$SIG{TERM} = sub { note('got', 'TERM'); exit 0 } if -e "$ENV{T}/trap";
while (<STDIN>) {
	chomp;
	note('got', $_);
	for (split /; /) {
		if (/^exit (\d+)/) { exit $1 }
		elsif (/^kill (\w+)/) { kill $1, $$; sleep 9 }
		elsif (/^sleep (\S+)/) { select undef, undef, undef, $1 }
		elsif (/^warn (.*)/) { print STDERR "$1\n" }
		elsif (/^wait (\S+)/) { select undef, undef, undef, .02 until -e "$ENV{T}/$1" }
		elsif (/^hear/) { my $t = time; $_ = <A>; chomp; note('heard', $_); note('waits', time - $t) }
		elsif (/^\d+$/) { print V "done\n" }
		else { print V "$_\n" }
	}
}
note('got', 'end') if -e "$ENV{T}/ends";
.
}

# consume STATUS [OPTION...]: q, by $T/obey.
consume() {
	local want=$1
	shift
	run_mq "$want" mq-consume --stream "$@" q -- "$T/obey"
}

got_is() {
	assert_equal "$(cat "$T/got")" "$(printf '%s\n' "$@")"
}

starts() {
	wc -l <"$T/starts"
}

window_above() {
	[ "$(held q | cut -d' ' -f3)" -gt "$1" ]
}

window_below() {
	[ "$(held q | cut -d' ' -f3)" -lt "$1" ]
}

running_shows() {
	"$BUILD/mq-stats" --running --json | grep -q "$1"
}

# reason N: why the Nth rejected one was, the oldest first.
reason() {
	element q rejected "$((-$1))" | header Mq-Error
}

# --- what goes in ------------------------------------------------------------

@test "stream: one worker has all messages, in order, and all are done" {
	seq 3000 | run_mq 0 mq-publish -l q
	# Nor does --drain end it between two claims.
	consume 0 --drain --window 10
	assert_equal "$(starts)" 1
	seq 3000 | cmp - "$T/got"
	assert_equal "$(held q)" "0 0 0 0"
}

@test "stream: the framings, with payloads of all kinds, empty ones, too" {
	local framing worker='cat >"$T/in"; printf "done\n%.0s" 1 2 3 4 5 >&3'
	perl -e 'print length, ":$_," for "a\nb\0c\r\n", "", "short", join("", map chr, 0 .. 255),
		join "", map chr rand 256, 1 .. 3000000' >"$T/sent"
	for framing in --netstring --jsonl; do
		run_mq 0 mq-publish --netstring q <"$T/sent"
		run_mq 0 mq-consume -n 5 --stream --window 9 $framing q -- sh -c "$worker"
		run_mq 0 mq-publish $framing r <"$T/in"
		"$BUILD/mq-consume" --drain --netstring r | cmp - "$T/sent"
	done
	assert_equal "$(jq -r '"\(.queue) \(.attempt) \(.id == .headers["Mq-Id"][0])"' "$T/in" |
		uniq -c | xargs)" "5 q 1 true"
	run_mq 0 mq-publish q $'a\nb' '' c '' ''
	run_mq 0 mq-consume -n 5 --stream --window 9 -0 q -- sh -c "$worker"
	printf 'a\nb\0\0c\0\0\0' | cmp - "$T/in"
	publish '' 1 '' 2 ''
	run_mq 0 mq-consume -n 5 --stream --window 9 q -- sh -c "$worker"
	printf '\n1\n\n2\n\n' | cmp - "$T/in"
	assert_equal "$(held q)" "0 0 0 0"
}

@test "stream: what the framing cannot carry is rejected, and says why" {
	publish 1
	printf 'a\nb' | run_mq 0 mq-publish q
	publish 2
	consume 1 --drain
	got_is 1 2
	assert_equal "$(reason 1)" "payload has more than one line, which --lines cannot carry"
	redis flushall >/dev/null
	printf 'a\0b' | run_mq 0 mq-publish q
	run_mq 1 mq-consume -n 1 --stream -0 q -- "$T/obey"
	assert_equal "$(reason 1)" "payload has a NUL byte, which --null cannot carry"
	assert_equal "$(held q)" "0 0 0 1"
}

# --- what comes out ----------------------------------------------------------

@test "stream: every final verb" {
	publish done 'done a text' relayed 'err bad' 'fail worse' fails \
		'resend 60-later' resend push 'push on' 'nothing; done'
	consume 1 -n 11 --push other
	assert_equal "$(starts)" 1
	assert_equal "$(held q)" "1 1 0 3"
	assert_equal "$(held other)" "2 0 0 0"
	assert_equal "$(reason 1) $(reason 2) $(reason 3)" "bad worse err"
	assert_equal "$(element q ready | header Mq-Attempt)" 1
	assert_equal "$(element q delayed | header Mq-Error)" 60-later
}

@test "stream: a result is waited for, pause, and each message counts as a run" {
	start_mq mq-consume --stream q -- "$T/obey"
	run_mq 0 mq-publish --wait=300s q 'done fine'
	run_mq 1 mq-publish --wait=300s q 'warn oops; err broken'
	assert_regex "$stderr" broken
	publish 'pause 60-not now' 2
	eventually 10 held_is q "1 1 0 1" || eventually 1 held_is q "0 1 0 1"
	stop_mq
	assert_equal "$(redis exists 'rmq::queue::[q]::paused')" 1
	assert_regex "$("$BUILD/mq-stats" --json q)" '"attempts": ?[34]\b'
}

@test "stream: --strict, --retry-on err, push without --push" {
	publish 'err no' 1 'push up'
	consume 1 -n 3 --strict --retry-on err --backoff 60s..60s
	assert_equal "$(held q)" "0 1 0 1"
	assert_equal "$(reason 1)" up
	assert_equal "$(element q delayed | header Mq-Error)" no
}

# --- dups --------------------------------------------------------------------

@test "stream: dup is answered, several at once, too, and verbs follow" {
	redis sadd rmq::queues other more >/dev/null
	publish 'dup 0-x-other; dup 0-x-nowhere; dup 0-x-more; done' \
		'dup 0-x-more; err no' 1 'hear; hear; hear; hear; done'
	consume 1 -n 4 --window 10
	assert_equal "$(cut -d' ' -f1 "$T/heard" | xargs)" "ok fail ok ok"
	assert_equal "$(held other) $(held more)" "1 0 0 0 2 0 0 0"
	assert_equal "$(payloads ready other)" \
		'dup 0-x-other; dup 0-x-nowhere; dup 0-x-more; done'
	assert_equal "$(held q)" "0 0 0 1"
	assert_equal "$(starts)" 1
}

@test "stream: no dup of a message that has not been read, which may be back" {
	redis sadd rmq::queues other >/dev/null
	script hasty <<'.'
perl -e 'vec($r, 0, 1) = 1; select $r, undef, undef, undef'
echo "dup 0-x-other" >&3
head -n 1 <&4 >"$T/answer"
while read -r x; do echo done >&3; done
.
	publish 1
	run_mq 0 mq-consume -n 1 --stream q -- "$T/hasty"
	assert_equal "$(cat "$T/answer")" \
		"fail dup failed - the worker has not read the message"
	assert_equal "$(held q) $(held other)" "0 0 0 0 0 0 0 0"
}

@test "stream: a worker that waits for its dups is not waited for, and heard after many" {
	redis sadd rmq::queues other >/dev/null
	for _ in {1..40}; do echo 'dup 0-x-other; hear; done'; done |
		run_mq 0 mq-publish -l q
	consume 0 -n 35 --window 1
	# By its timer, the consumer would see to each a second after the one before.
	[ "$(awk '$1 < 0.5' "$T/waits" | wc -l)" -ge 10 ]
	consume 0 -n 5 --window 1
	publish "$(printf 'dup 0-x-other; %.0s' {1..200})done" 'err last'
	consume 1 -n 2 --window 2
	assert_equal "$(held other)" "240 0 0 0"
	assert_equal "$(held q)" "0 0 0 1"
}

# --- how a worker ends -------------------------------------------------------

@test "stream: what it was on follows from how it ended, and no other message" {
	local line state error options
	while IFS='|' read -r line state error options; do
		echo "$line"
		publish 1 2 "$line" 4 5
		# shellcheck disable=SC2086 # two words
		consume 1/75 -n 5 --window 5 --backoff 60s..60s $options
		assert_equal "$(held q)" "0 $([ "$state" = delayed ] && echo 1 0 0 || echo 0 0 1)"
		assert_equal "$(element q "$state" | header Mq-Error)" "$error"
		assert_equal "$(element q "$state" | header Mq-Attempt)" 1
		# One that ends well may not have been at it; then another one has it once more.
		[[ $error = *'without a verb'* ]] || assert_equal "$(starts)" 2
		assert_equal "$(uniq "$T/got")" "$(printf '%s\n' 1 2 "$line" 4 5)"
		: | tee "$T/got" >"$T/starts"
		redis flushall >/dev/null
	done <<'.'
exit 3|rejected|exit status 3
kill KILL|rejected|killed by SIGKILL
kill TERM|rejected|killed by SIGTERM
exit 75|delayed|exit status 75
exit 9|delayed|exit status 9|--retry-on err
run almost; exit 4|rejected|almost (exit status 4)
run halfway; exit 0|delayed|halfway (worker ended without a verb)
exit 0|delayed|worker ended without a verb
.
}

@test "stream: those behind are as they were, in order" {
	publish 1 'exit 3' a b c d
	cp "$T/obey" "$T/once"
	# The second one does not answer: TERM finds the rest.
	sed -i 's/^while/if (-s "$ENV{T}\/got") { sleep 1 while 1 }\n&/' "$T/once"
	start_mq mq-consume --stream --window 9 --grace 0s q -- "$T/once"
	eventually 10 held_is q "0 0 4 1"
	stop_mq
	assert_equal "$(held q)" "4 0 0 1"
	assert_equal "$(payloads ready)" "a b c d"
	assert_equal "$(attempts_of ready)" 0
}

@test "stream: exit 0 between messages is no verdict, and no attempt" {
	script three <<'.'
for i in 1 2 3; do
	read -r x || exit
	echo "$x" >>"$T/got"
	echo done >&3
done
read -r x
.
	publish {1..20}
	start_mq mq-consume --stream --window 5 q -- "$T/three"
	eventually 10 held_is q "0 0 0 0"
	stop_mq
	seq 20 | cmp - "$T/got"
	refute grep -q 'worker:' "$T/err"
}

@test "stream: a worker that never answers does not have a message for ever" {
	publish 1
	run_mq 1 mq-consume --drain --stream --attempts 3 --backoff 0s..0s q -- true
	assert_equal "$(held q)" "0 0 0 1"
	assert_equal "$(reason 1)" "attempts exhausted: worker ended without a verb"
	publish 1
	run_mq 1 mq-consume --drain --stream --window 9 --attempts 2 \
		--backoff 0s..0s q -- sh -c 'cat >/dev/null'
	assert_equal "$(held q)" "0 0 0 2"
}

@test "stream: a command that cannot run stops the consumer, 127 ten times are a broken one" {
	publish {1..12}
	script bad /nowhere </dev/null
	run_mq 78 mq-consume --stream -j 3 q -- "$T/bad"
	run_mq 78 mq-consume --stream q -- "$T/none"
	assert_equal "$(payloads ready) $(attempts_of ready)" "$(echo {1..12}) 0"
	run_mq 75 mq-consume --stream -j 12 -n 12 --backoff 10m..10m q -- sh -c 'exit 127'
	assert_equal "$(grep -c resting <<<"$stderr")" 1
	assert_equal "$(held q) $(attempts_of delayed)" "0 12 0 0 9"
}

@test "stream: the next one comes later and later, but soon for one that did something" {
	publish 1
	start_mq mq-consume --stream --attempts 99 --backoff 0s..0s q -- true
	eventually 10 grep -q '0.8 s' "$T/err"
	stop_mq
	assert_equal "$(sed -n 's/.*restarting in //p' "$T/err" | head -n 4 | xargs)" \
		"0.1 s 0.2 s 0.4 s 0.8 s"
	assert_equal "$(held q)" "1 0 0 0"
	for i in {1..10}; do echo "$i"; echo 'exit 1'; done |
		run_mq 0 mq-publish -l q
	consume 1 -n 21 --window 3
	assert_equal "$(held q) $(starts)" "0 0 0 10 10"
	assert_equal "$(grep -c 'restarting in 0.1 s' <<<"$stderr")" 10
}

@test "stream: --timeout is for one message, and those behind go back" {
	publish 'sleep 2.1; done' 'sleep 2.1; done' 'sleep 2.1; done' 'sleep 600; done' 5
	consume 1 -n 5 --window 5 --timeout 6s
	assert_equal "$(held q)" "0 0 0 1"
	assert_equal "$(reason 1)" "timed out"
	assert_equal "$(tail -n 1 "$T/got")" 5
	assert_equal "$(starts)" 2
	assert_regex "$stderr" "worker: timed out; restarting"
}

# --- how many ----------------------------------------------------------------

@test "stream: --window, and one at first without" {
	script hoard <<'.'
while read -r x; do echo "$x" >>"$T/got"; done
.
	seq 20 | run_mq 0 mq-publish -l q
	start_mq mq-consume --stream --window 7 -j 2 q -- "$T/hoard"
	eventually 10 lines_reach "$T/got" 14
	eventually 10 held_is q "6 0 14 0"
	stop_mq
	# They had an end of file, and said nothing.
	assert_equal "$(wc -l <"$T/got")" 14
	: >"$T/got"
	redis flushall >/dev/null
	seq 20 | run_mq 0 mq-publish -l q
	start_mq mq-consume --stream q -- "$T/hoard"
	eventually 10 held_is q "19 0 1 0"
	tick
	assert_equal "$(wc -l <"$T/got")" 1
	stop_mq KILL || true
}

@test "stream: the window follows the pace" {
	script slow <<'.'
while read -r x; do sleep 0.1; echo "$x" >>"$T/got"; echo done >&3; done
.
	seq 60 | run_mq 0 mq-publish -l q
	start_mq mq-consume --stream q -- "$T/slow"
	eventually 10 lines_reach "$T/got" 20
	eventually 10 window_below 6
	stop_mq
	seq 100000 | run_mq 0 mq-publish -l q
	start_mq mq-consume --stream --no-clean q -- perl -e \
		'open V, ">&=3"; select V; $| = 1; while (<STDIN>) { print "done\n" }'
	eventually 20 window_above 20
	stop_mq
}

@test "stream: what waits for a worker that does not go on goes back" {
	{ seq 2000; echo 'wait go; done'; seq 8000; } | run_mq 0 mq-publish --raw -l q
	start_mq mq-consume --stream q -- "$T/obey"
	eventually 30 grep -q wait "$T/got"
	eventually 10 rest_is_back
	touch "$T/go"
	eventually 30 lines_reach "$T/got" 10001
	stop_mq
	{ seq 2000; echo 'wait go; done'; seq 8000; } | cmp - "$T/got"
}

# The rest is for others, in its order.
rest_is_back() {
	local first
	window_below 1001 || return 1
	"$BUILD/mq-stats" --list ready -l q >"$T/ready"
	first=$(head -n 1 "$T/ready")
	held_is q "$((8001 - first)) 0 $first 0" && cmp "$T/ready" <(seq "$first" 8000)
}

@test "stream: -j spreads them over fast and slow workers" {
	for i in $(seq 40); do echo 'sleep 0.05; done'; done | run_mq 0 mq-publish -l q
	publish 'wait go; done' 'wait go; done'
	seq 1000 | run_mq 0 mq-publish -l q
	start_mq mq-consume --stream -j 8 q -- "$T/obey"
	eventually 20 held_is q "0 0 2 0"
	assert_equal "$(starts)" 8
	touch "$T/go"
	eventually 10 held_is q "0 0 0 0"
	stop_mq
	assert_equal "$(sort -un "$T/got" | grep -c '^[0-9]*$')" 1000
	assert_equal "$(wc -l <"$T/got")" 1042
}

@test "stream: --jsonl tells the queue and the attempt" {
	run_mq 0 mq-publish a x
	run_mq 0 mq-publish -H 'X-Y: z' b y
	run_mq 0 mq-consume -n 3 --stream --jsonl --window 1 a b -- sh -c '
		while read -r x; do
			echo "$x" >>"$T/got"
			case $x in *\"a\",\"attempt\":1,*) echo resend 0 ;; *) echo done ;; esac >&3
		done'
	assert_equal "$(jq -r '"\(.queue) \(.attempt) \(.payload) \(.headers["X-Y"][0])"' "$T/got" | sort)" \
		$'a 1 x null\na 2 x null\nb 1 y z'
}

@test "stream: --rate, --rate-shared, and --rest after a failure" {
	seq 12 | run_mq 0 mq-publish -l q
	no_sooner 950 consume 0 -n 12 --rate 10/s:2 --window 100
	seq 12 | cmp - "$T/got"
	seq 8 | run_mq 0 mq-publish -l q
	no_sooner 550 consume 0 -n 8 --rate-shared 10/s:2
	assert_equal "$(held q)" "0 0 0 0"
	publish 'err 1' 'err 2' 'err 3' 4
	no_sooner 600 consume 1 -n 4 --rest 200ms..200ms
	assert_equal "$(held q)" "0 0 0 3"
}

# --- what it writes ----------------------------------------------------------

@test "stream: each message has its own errors in its history" {
	publish 'warn one; err a' 'warn two; done' 'warn three; err b' 'err c' 'warn five; exit 7'
	consume 1 -n 5 --window 1
	run_mq 0 mq-stats --list rejected --jsonl q
	assert_equal "$(jq -r '.headers["Mq-History"][0] | fromjson | "\(.text): \(.stderr)"' \
		<<<"$output" | sort)" $'a: one\nb: three\nc: null\nfive (exit status 7): five'
}

@test "stream: --log-dir" {
	publish 'warn to the log; done' 'err x'
	consume 1 -n 2 --log-dir "$T/logs"
	assert_regex "$(cat "$T/logs/q.log")" "^--- [^ ]* worker [0-9]+: $T/obey
to the log
--- [^ ]* worker [0-9]+: exit status 0 after [0-9.]+ s$"
}

@test "stream: mq-stats --running shows the message a worker is on" {
	publish 1 'run step 2; wait go; done' 3
	start_mq mq-consume --stream --window 3 q -- "$T/obey"
	eventually 10 running_shows 'step 2'
	run_mq 0 mq-stats --running --json
	id=$(redis lindex "rmq::connection::$(connections)::queue::[q]::unacked" -1 | header Mq-Id)
	assert_regex "$output" "$id"
	touch "$T/go"
	eventually 10 held_is q "0 0 0 0"
	over() { ! running_shows obey; }
	eventually 5 over
	stop_mq
}

# watch Q WORKER [OPTION...]: the queue has two messages, and a consumer whose worker does
# that; what it writes is in $T/Q.
watch() {
	printf '1\n2\n' | "$BUILD/mq-publish" -l "$1"
	"$BUILD/mq-consume" --stream "${@:3}" "$1" -- \
		sh -c "echo \$\$ >>\"\$T/$1.starts\"; $2" 2>"$T/$1" 3>&- &
}

# silent Q TEXT: that is what is said first of the first worker.
silent() {
	local said
	said=$(grep -m 1 ': worker ' "$T/$1") && [[ $said == \
		"mq-consume: $(command -v sh): worker $(head -n 1 "$T/$1.starts") $2 for "[0-9]* ]]
}

@test "stream: a silent worker is told of by name, once" {
	# Half of the time is silence; the third buffers its verbs.
	watch mute 'exec cat >/dev/null' --window 2 --timeout 12s
	watch deaf 'exec sleep 99' --window 2 --timeout 12s
	watch buffers "exec perl -ne 'BEGIN { open V, q(>&3) } print V qq(done\n)'" \
		--window 2 --timeout 12s
	# Not each second, and with -q not at all.
	watch once 'cat >/dev/null; sleep 99' -n 1 --timeout 12s
	watch quiet 'cat >/dev/null; sleep 99' -q -n 1 --timeout 8s
	watch untimed 'exec cat >/dev/null'
	eventually 10 silent deaf "has read nothing"
	eventually 10 silent mute "has read 2 messages and written no verb"
	eventually 10 silent buffers "has read 2 messages and written no verb"
	eventually 20 grep -q 'rejected: timed out' "$T/once"
	assert_equal "$(grep -c ': worker [0-9]' "$T/once")" 1
	eventually 20 grep -qE 'verb for [1-9][0-9] s; each message needs a verb on descriptor 3, flushed at once$' "$T/untimed"
	eventually 20 held_is quiet "1 0 0 1"
	assert_equal "$(cat "$T/quiet")" ""
}

@test "stream: a worker that speaks, or is known to be slow, is not silent" {
	# Half of the time is silence, as long as no message is done.
	publish "$(printf 'sleep 0.8; run; %.0s' {1..8})done" 'sleep 6.5; done' 3
	consume 0 -n 3 --timeout 12s
	refute_regex "$stderr" ': worker'
	assert_equal "$(held q)" "0 0 0 0"
}

# --- the end -----------------------------------------------------------------

@test "stream: TERM returns what it cannot have read, and waits for the rest" {
	script obey2 <<'.'
while read -r x; do
	echo "$x" | cut -c 1-9 >>"$T/got"
	until [ -e "$T/go" ]; do sleep 0.02; done
	echo done >&3
done
echo end >>"$T/got"
.
	# A pipe takes one of them, and a part of the next.  All four are under way to the
	# worker, as no 256 KiB are unwritten: more would go back after a second.
	perl -e 'print $_, "x" x 80000, "\n" for 1 .. 4' | run_mq 0 mq-publish -l q
	start_mq mq-consume --stream --window 4 q -- "$T/obey2"
	eventually 10 lines_reach "$T/got" 1
	eventually 10 held_is q "0 0 4 0"
	tick
	kill -TERM "$pid"
	eventually 5 held_is q "2 0 2 0"
	assert_equal "$("$BUILD/mq-stats" --list ready -l q | cut -c 1 | xargs)" "3 4"
	touch "$T/go"
	wait "$pid" || status=$?
	assert_equal "$status" 143
	got_is 1xxxxxxxx 2xxxxxxxx end
	assert_equal "$(held q)" "2 0 0 0"
}

@test "stream: INT twice ends at once" {
	publish 'wait go; done' 2 3
	start_mq mq-consume --stream --window 3 q -- "$T/obey"
	eventually 10 lines_reach "$T/got" 1
	kill -INT "$pid"
	eventually 5 grep -q stopping "$T/err"
	stop_mq INT
	assert_equal "$status" 130
	assert_equal "$(payloads ready)" "wait go; done 2 3"
}

@test "stream: a worker can say the rest at its end; one that does not end is ended" {
	script ends "$(command -v perl)" <<'.'
open V, '>&=3'; select V; $| = 1;
while (<STDIN>) { $n++ }
print "done\n" x $n;
open my $f, '>>', "$ENV{T}/got"; print $f "$n\n";
.
	seq 40 | run_mq 0 mq-publish -l q
	run_mq 0 mq-consume -n 10 --stream --window 20 q -- "$T/ends"
	assert_equal "$(held q)" "30 0 0 0"
	run_mq 0 mq-consume --drain --stream --window 100 q -- "$T/ends"
	got_is 10 30
	publish 1
	run_mq 0 mq-consume -n 1 --stream --grace 300ms q -- sh -c \
		'read -r x; echo done >&3; sleep 100'
	assert_equal "$(held q)" "0 0 0 0"
}

@test "stream: -n, --drain and --idle wait for the end of the workers, and what went back is not counted" {
	local options
	touch "$T/ends"
	for options in "-n 3 -j 2" "--idle 200ms" "--drain -j 3"; do
		publish {1..9}
		# shellcheck disable=SC2086 # words
		consume 0 $options
		assert_equal "$(grep -c end "$T/got")" "$(starts)"
	done
	assert_equal "$(grep -c '^[0-9]' "$T/got")" 27
	assert_equal "$(held q)" "0 0 0 0"
	publish 1 'exit 3' 3 4 5 6 7
	: >"$T/got"
	rm "$T/ends"
	consume 1 -n 5 --window 5
	assert_equal "$(held q)" "2 0 0 1"
	got_is 1 'exit 3' 3 4 5
}

@test "stream: --drain waits for what comes back" {
	publish 1 'resend 0' 3
	run_mq 0 mq-consume --stream --drain --jsonl q -- sh -c 'while read -r x; do
		case $x in *\"attempt\":1,*resend*) echo resend 0 ;; *) echo done ;; esac >&3; done'
	assert_equal "$(held q)" "0 0 0 0"
	assert_equal "$(redis hmget 'rmq::queue::[q]::counters' runs done | xargs)" "4 3"
}

@test "stream: USR1 fetches no more, and ends the workers well" {
	touch "$T/ends"
	publish 1 2
	start_mq mq-consume --stream q -- "$T/obey"
	eventually 10 held_is q "0 0 0 0"
	kill -USR1 "$pid"
	eventually 5 grep -q end "$T/got"
	publish 3
	tick
	assert_equal "$(held q)" "1 0 0 0"
	stop_mq
}
