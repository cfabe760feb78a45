#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# --stream: workers, consumers and servers that die, and workers that do not
# keep to the rules.  What was judged stands, and nothing is lost.
#
# layouts: rmq rsmq

load ../helpers/server
load ../helpers/consume
load "../helpers/layout-${LAYOUT:-rmq}"

setup() {
	common_setup
	seeded
	touch "$T/got" "$T/starts"
	# note: one line for each message, in one write, and then the verb.  The messages
	# of $ON it keeps, and says so in $T/on.
	script note "$(command -v perl)" <<'.'
open V, '>&=3'; select V; $| = 1;
open my $f, '>>', "$ENV{T}/got";
open my $s, '>>', "$ENV{T}/starts"; syswrite $s, "$$\n"; close $s;
while (<STDIN>) {
	if ($ENV{ON} && /^($ENV{ON})$/) { open my $o, '>>', "$ENV{T}/on"; syswrite $o, $_; sleep 1000 }
	syswrite $f, $_;
	print "done\n";
}
.
}

teardown() {
	if [ "$D" != "$FILE_D" ]; then
		server_pid | xargs kill -CONT 2>/dev/null || true
		server_stop
	fi
	common_teardown
}

got() {
	lines_of "$T/got"
}

# all_of N TWICE: each of 1..N was got, and so many at most were so again.
all_of() {
	sort -un "$T/got" | cmp - <(seq "$1")
	echo "$(got) of $1, at most $2 twice"
	[ $(($(got) - $1)) -le "$2" ]
}

# --- death -------------------------------------------------------------------

@test "stream fault: a killed worker's message is rejected, and no other" {
	seq 100 | run_mq 0 mq-publish -l q
	ON='10|30|50' start_mq mq-consume --stream --window 20 q -- "$T/note"
	for n in 10 30 50; do
		eventually 20 grep -qx "$n" "$T/on"
		kill -KILL "$(tail -n 1 "$T/starts")"
		eventually 5 lines_reach "$T/starts" $((n / 20 + 2))
	done
	eventually 20 held_is q "0 0 0 3"
	stop_mq
	for n in 1 2 3; do assert_equal "$(reason "$n")" "killed by SIGKILL"; done
	"$BUILD/mq-stats" --list rejected -l q | sort -n | cmp - "$T/on"
	cat "$T/on" "$T/got" | sort -n | cmp - <(seq 100)
}

@test "stream fault: the server dies and comes back, the worker goes on" {
	local n
	safe_server
	seq 3000 | run_mq 0 mq-publish -l q
	start_mq mq-consume --stream -j 2 --window 50 q -- "$T/note"
	for n in 300 1000 1700; do
		eventually 30 lines_reach "$T/got" $((n + RANDOM % 300))
		server_kill
		server_run "${safe[@]}"
	done
	eventually 60 held_is q "0 0 0 0"
	stop_mq
	# Those that were judged are not given to a worker again.
	all_of 3000 0
	assert_equal "$(lines_of "$T/starts")" 2
}

@test "stream fault: a lease that was lost: others have the messages" {
	local c taken
	script hold <<'.'
echo $$ >>"$T/starts"
while read -r x; do
	until [ -e "$T/go" ]; do sleep 0.02; done
	echo "$x" >>"$T/got"
	echo done >&3
done
.
	seq 8 | run_mq 0 mq-publish -l q
	start_mq mq-consume --stream --window 5 q -- "$T/hold"
	eventually 10 held_is q "3 0 5 0"
	c=$(connections)
	kill -STOP "$pid"
	expire "$c"
	run_mq 0 mq-clean
	assert_equal "$(held q)" "8 0 0 0"
	taken=$(peer_takes)
	touch "$T/go"
	kill -CONT "$pid"
	eventually 10 grep -q 'lease lost' "$T/err"
	eventually 10 held_is q "0 0 1 0"
	stop_mq
	# The worker may have noted some before it was killed.
	{ cat "$T/got"; echo "$taken"; } | sort -un | cmp - <(seq 8)
	assert peer_has 1
	assert_equal "$(held q)" "0 0 1 0"
}

# --- descriptors -------------------------------------------------------------

@test "stream fault: a worker that closes its standard input, or descriptor 3, and lives on" {
	publish 1 2 3
	# The second one stands in the pipe by then.
	start_mq mq-consume --stream --window 2 q -- sh -c \
		'read -r x; echo done >&3; sleep 0.1; exec 0<&-; echo $$ >>"$T/starts"; exec sleep 100'
	eventually 10 lines_reach "$T/starts" 1
	assert at_rest
	eventually 15 lines_reach "$T/starts" 2
	stop_mq KILL || true
	assert_regex "$(cat "$T/err")" "worker closed its standard input; restarting in 0.1 s"
	assert_regex "$(held q)" ' 0$'
	redis flushall >/dev/null
	publish 1 2
	start_mq mq-consume --stream --window 2 -n 2 q -- sh -c \
		'echo $$ >>"$T/starts"; read -r x; [ "$x" = 1 ] && { exec 3>&-; sleep 100; }; echo done >&3'
	eventually 5 lines_reach "$T/starts" 3
	assert at_rest
	ends_within 20
	assert_equal "$status $(held q)" "1 0 0 0 1"
	assert_equal "$(reason 1)" "worker closed its descriptor 3"
}

@test "stream fault: one that has read enough has its time for it" {
	seq 9 | run_mq 0 mq-publish -l q
	start_mq mq-consume --stream --window 3 q -- sh -c '
		read -r a; read -r b; read -r c; exec 0<&-
		for x in "$a" "$b" "$c"; do sleep 0.3; echo "$x" >>"$T/got"; echo done >&3; done'
	eventually 20 held_is q "0 0 0 0"
	stop_mq
	seq 9 | cmp - "$T/got"
	refute grep -q worker: "$T/err"
}

@test "stream fault: descriptor 4 closed, and dups all the same" {
	known other
	publish 1 2
	run_mq 0 mq-consume --stream -n 2 q -- sh -c \
		'exec 4<&-; while read -r x; do echo dup 0-x-other; echo done; done >&3'
	assert_equal "$(held other)" "2 0 0 0"
	assert_equal "$(held q)" "0 0 0 0"
}

@test "stream fault: a grandchild that keeps the pipes" {
	publish 1 2 3
	start_mq mq-consume --stream -n 3 q -- sh -c 'exec 5<&0
		read -r x; echo "$x" >>"$T/got"; echo done >&3
		sleep 1000 <&5 & echo $! >>"$T/children"'
	ends_within 15
	seq 3 | cmp - "$T/got"
	xargs kill <"$T/children" || true
	assert_equal "$(held q)" "0 0 0 0"
}

# --- words -------------------------------------------------------------------

@test "stream fault: lines come in pieces, the last without a newline" {
	script pieces "$(command -v perl)" <<'.'
open V, '>&=3'; select V; $| = 1;
while (<STDIN>) {
	for (/3/ ? 'done' : split //, "run a\nerr not $_") { print; select undef, undef, undef, .005 }
	exit if /3/;
}
.
	publish 1 2 3 4
	run_mq 1 mq-consume --stream --window 2 -n 4 q -- "$T/pieces"
	assert_equal "$(held q)" "0 0 0 3"
	assert_equal "$(reason 1),$(reason 2),$(reason 3)" "not 1,not 2,not 4"
}

@test "stream fault: garbage without an end costs no memory" {
	publish 1
	start_mq mq-consume --stream q -- sh -c 'echo $$ >>"$T/starts"; exec cat /dev/zero >&3'
	eventually 5 lines_reach "$T/starts" 1
	tick
	tick
	echo "peak $(peak) KiB"
	with_sanitizer || assert [ "$(peak)" -le 12000 ]
	# Others are not kept waiting.
	run_mq 0 mq-stats q
	stop_mq INT &
	eventually 5 grep -q stopping "$T/err"
	kill -INT "$pid"
	wait "$pid" || true
	assert_equal "$(held q)" "1 0 0 0"
}

@test "stream fault: answers without an end, and two for one" {
	publish 1 2 3 4 5
	run_mq 0 mq-consume --stream --window 2 -n 5 --attempts 1 q -- sh -c \
		'read -r x; echo $x >>"$T/got"; [ "$x" = 2 ] && exec yes done >&3; echo done >&3'
	# What stood in the pipe was not read, and so not judged.
	assert_equal "$(held q)" "0 0 0 0"
	sort -n "$T/got" | cmp - <(seq 5)
	assert_regex "$stderr" "worker wrote (more verdicts than it has messages|a verdict before reading the message)"
	: >"$T/got"
	publish 1 2 3
	run_mq 0 mq-consume --stream --window 1 -n 3 q -- sh -c \
		'while read -r x; do echo $x >>"$T/got"; printf "done\nerr too\n" >&3; done'
	assert_equal "$(held q)" "0 0 0 0"
	seq 3 | cmp - "$T/got"
}

@test "stream fault: an answer before anything was read" {
	local worker
	any_length q
	# It may end of itself, or say it in the middle of a message.
	for worker in 'echo done >&3; sleep 9' 'echo done >&3' \
		'head -c 100000 >/dev/null; echo done >&3; sleep 9'; do
		head -c 300000 /dev/zero | run_mq 0 mq-publish q
		run_mq 1 mq-consume --stream --netstring --window 1 -n 1 q -- sh -c "$worker"
		assert_equal "$(reason 1)" "worker wrote a verdict before reading the message"
		run_mq 0 mq-purge -q --rejected --force q
	done
	assert_equal "$(held q)" "0 0 0 0"
}

# --- silence -----------------------------------------------------------------

@test "stream fault: a worker that reads and never answers" {
	seq 1000 | run_mq 0 mq-publish -l q
	# Its end is waited for, and not the time of grace.
	start_mq mq-consume --stream -j 3 --window 10 --grace 1h q -- sh -c 'exec cat >/dev/null'
	eventually 10 held_is q "970 0 30 0"
	assert at_rest
	kill "$pid"
	ends_within 15
	assert_equal "$(held q)" "1000 0 0 0"
	seq 3 | run_mq 0 mq-publish -l r
	# Time enough for them to read, without which it goes back; they ignore TERM.
	run_mq 1 mq-consume --stream -j 3 -n 3 --window 1 --timeout 4s r -- \
		sh -c 'trap "" TERM; cat >/dev/null; while :; do sleep 0.1; done'
	assert_equal "$(held r)" "0 0 0 3"
}

@test "stream fault: a worker that does not read" {
	any_length q
	for i in 1 2 3 4 5 6 7 8; do perl -e 'print shift, "x" x 200000, "\n"' "$i"; done |
		run_mq 0 mq-publish -l q
	start_mq mq-consume --stream --window 8 q -- sleep 100
	some_unacked() { [ "$(held q | cut -d' ' -f3)" -gt 1 ]; }
	eventually 10 some_unacked
	assert at_rest
	# The one that it was on, and what it cannot have read.
	kill -INT "$pid"
	eventually 5 held_is q "7 0 1 0"
	stop_mq INT
	assert_equal "$("$BUILD/mq-stats" --list ready -l q | cut -c 1 | tr -d '\n')" 12345678
}

@test "stream fault: a slow worker and a large queue cost little memory" {
	! with_sanitizer || skip "sanitizers have memory of their own"
	any_length q
	head -c 750000 /dev/urandom | base64 -w 0 >"$T/line"
	echo >>"$T/line"
	for _ in $(seq 40); do cat "$T/line"; done | run_mq 0 mq-publish -l q
	seq 50000 | run_mq 0 mq-publish -l q
	start_mq mq-consume --stream -j 4 --window 1000 q -- sh -c \
		'while read -r x; do echo x >>"$T/got"; sleep 0.5; echo done >&3; done'
	eventually 10 lines_reach "$T/got" 4
	tick
	tick
	echo "peak $(peak) KiB, $(held q)"
	assert [ "$(peak)" -le 40000 ]
	stop_mq KILL || true
}

# Descriptors and KiB.
holds_open() {
	echo "$(find "/proc/$pid/fd" | wc -l) $(awk '/^VmRSS/ {print $2}' "/proc/$pid/status")"
}

@test "stream fault: hundreds of workers later, nothing is left open" {
	local before after
	! with_sanitizer || skip "the sanitizers look themselves"
	seq 600 | run_mq 0 mq-publish -l q
	start_mq mq-consume --stream -j 2 q -- sh -c \
		'read -r x; echo "$x" >>"$T/got"; echo done >&3'
	eventually 30 lines_reach "$T/got" 100
	before=$(holds_open)
	eventually 60 held_is q "0 0 0 0"
	after=$(holds_open)
	echo "$before: $after"
	((${after% *} <= ${before% *} + 8))
	((${after#* } <= ${before#* } + 600))
	all_of 600 0
	stop_mq
}

@test "stream fault: no processor for those that are idle, or wait to be restarted" {
	publish 1
	start_mq mq-consume --stream -j 4 q -- "$T/note"
	eventually 5 held_is q "0 0 0 0"
	assert at_rest
	stop_mq
	publish 2
	start_mq mq-consume --stream -j 4 --backoff 0s..0s --attempts 99 q -- false
	eventually 5 held_is q "0 0 0 1"
	publish 3 4 5 6
	assert at_rest
	stop_mq
}
