#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What a message tells of the runs that failed, and the pipe that a script's
# standard error is.

load ../helpers/server
load ../helpers/consume

teardown() {
	exec 8>&-
	common_teardown
}

# The elements on stdin: their history, one failure a line, without the host and the time,
# and before a payload that is given, which is one line.  Fails when those are not what
# they should be.
failures() {
	HOST=$(hostname) python3 -c 'import json, os, sys, time
lines = sys.stdin.buffer.read().split(b"\n")
for i in range(0, len(lines) - 1 if sys.argv[1:] else 1, 2):
	for text in json.loads(lines[i][5:])["Mq-History"]:
		f = json.loads(text)
		assert f.pop("host") == os.environ["HOST"], text
		assert 0 <= time.time() * 1000 - f.pop("at_ms") < 60000, text
		print(json.dumps(f, ensure_ascii=False), *([" | " + lines[i + 1].decode()] if sys.argv[1:] else []), sep="")' "$@"
}

# become: each line on stdin is "FAILURE | PROGRAM"; messages of these programs, which the
# shell runs, are rejected, and have that one failure.
become() {
	local rows
	mapfile -t rows
	printf '%s\n' "${rows[@]#* | }" | "$BUILD/mq-publish" -l q
	run_mq 1 mq-consume -n "${#rows[@]}" q -- sh
	assert_equal "$(redis lrange 'rmq::queue::[q]::rejected' 0 -1 | failures all)" \
		"$(printf '%s\n' "${rows[@]}" | tac)"
}

# members STATE: what else the header of the only one has.
members() {
	element q "$1" | head -n 1 | tail -c +6 | jq -r 'keys | join(" ")'
}

# unread ARGUMENT...: mq-consume, whose standard error has to wait, until read_all puts it
# into $T/all.
unread() {
	[ -e "$T/pipe" ] || mkfifo "$T/pipe"
	exec 8<>"$T/pipe"
	"$BUILD/mq-consume" "$@" 2>"$T/pipe" 3>&- 8>&- &
	pid=$!
}

# And waits for mq-consume, $pid, to end.
read_all() {
	exec 7<"$T/pipe"
	timeout 180 cat <&7 8>&- >"$T/all" &
	exec 7<&- 8>&-
	wait "$pid" || [ $? = 1 ]
	wait
}

# --- what is recorded ------------------------------------------------------------

@test "history: text, status or signal, and stderr" {
	become <<'.'
{"attempt": 1, "status": 0, "text": "no good", "stderr": "one\ntwo"} | echo one >&2; echo out; echo err no good >&3; echo two >&2
{"attempt": 1, "status": 3, "text": "last"} | echo err first >&3; echo run last >&3; exit 3
{"attempt": 1, "status": 0, "text": "err"} | echo err >&3
{"attempt": 1, "status": 3, "text": "why (exit status 3)", "stderr": "why"} | echo why >&2; exit 3
{"attempt": 1, "status": 4, "text": "exit status 4 after done"} | echo done >&3; exit 4
{"attempt": 1, "status": 76, "text": "half (exit status 76)"} | echo run half >&3; exit 76
{"attempt": 1, "status": 0, "text": "half (unknown verb runs)"} | echo runs half >&3
{"attempt": 1, "signal": "SEGV", "text": "oh (killed by SIGSEGV)", "stderr": "oh"} | echo oh >&2; kill -SEGV $$
{"attempt": 1, "signal": "40", "text": "killed by signal 40"} | kill -40 $$
{"attempt": 1, "status": 1, "text": "bye (exit status 1)", "stderr": "bye"} | echo bye >&2; exec 2>&-; sleep 0.1; exit 1
{"attempt": 1, "status": 1, "text": "exit status 1"} | exit 1
{"attempt": 1, "status": 1, "text": "exit status 1"} | echo >&2; exit 1
{"attempt": 1, "status": 1, "text": "a?b??c? (exit status 1)", "stderr": "a?b??c\u001b[31m\u0007"} | printf "a\0b\377\376c\033[31m\007\r\n\n" >&2; exit 1
{"attempt": 1, "status": 0, "text": "a?b?\u001b[1m"} | printf "err a\0b\377\033[1m\n" >&3
.
	assert_equal "$output" out
}

@test "history: resend and exit status 75 record, and say until when" {
	local at due score
	run_mq 0 mq-publish q x
	run_mq 75 mq-consume -n 1 q -- sh -c 'echo soon >&2; echo "resend 0-soon" >&3'
	assert_equal "$(element q ready | failures)" \
		'{"attempt": 1, "status": 0, "text": "0-soon", "stderr": "soon"}'
	assert_equal "$(members ready)" "Mq-Attempt Mq-Error Mq-History Mq-Id"
	run_mq 75 mq-consume -n 1 --backoff 70s..70s q -- sh -c 'exit 75'
	assert_equal "$(element q delayed | failures | tail -n 1)" \
		'{"attempt": 2, "status": 75, "text": "exit status 75"}'
	due=$(element q delayed | header Mq-Due)
	at=$(element q delayed | head -n 1 | tail -c +6 | jq -r '.["Mq-History"][1] | fromjson | .at_ms')
	assert_equal "$due" $((at + 70000))
	# The server's clock is this machine's.
	score=$(redis zrange "rmq::queue::[q]::delayed" 0 0 withscores | tail -n 1)
	((score - due >= -1 && score - due < 5000))
}

@test "history: nothing of a run that went well, or was ended to stop" {
	run_mq 0 mq-publish q x
	start_mq mq-consume -v --grace 0s q -- sh -c 'echo warning >&2; exec sleep 60'
	eventually 10 grep -q warning "$T/err"
	stop_mq
	assert_equal "$(held q) $(members ready)" "1 0 0 0 Mq-Id"
	# What is written until the end is not lost, by processes left behind, too.
	run_mq 0 mq-consume -n 1 q -- sh -c '
		(trap "" HUP; echo from behind >&2; echo >"$T/wrote"; exec sleep 5) &
		until [ -e "$T/wrote" ]; do sleep 0.01; done'
	assert_equal "$stderr" "from behind"
	assert_equal "$(held q)" "0 0 0 0"
}

@test "history: fifteen are kept, the last ones" {
	run_mq 0 mq-publish q x
	run_mq 1 mq-consume -n 18 --attempts 18 q -- sh -c '
		echo "try $MQ_ATTEMPT" >&2; echo "resend 0-$MQ_ATTEMPT" >&3'
	assert_equal "$(element q rejected | failures)" \
		"$(for i in {4..17}; do
			echo "{\"attempt\": $i, \"status\": 0, \"text\": \"0-$i\", \"stderr\": \"try $i\"}"
		done
		echo '{"attempt": 18, "status": 0, "text": "attempts exhausted: 0-18", "stderr": "try 18"}')"
}

@test "history: the scripts do not find it in their environment" {
	run_mq 0 mq-publish q x
	run_mq 75 mq-consume -n 2 q -- sh -c 'env >"$T/env"; echo resend 0-why >&3'
	assert_equal "$(grep -c HISTORY "$T/env")" 0
	assert_equal "$(grep '^MQ_HEADER_MQ_ERROR=' "$T/env")" MQ_HEADER_MQ_ERROR=0-why
	# Not even when somebody has made it larger than a variable can be.
	printf '\377\0\276\276J{"Mq-History":["%s"]}\nx' \
		"$(head -c 140000 /dev/zero | tr '\0' x)" | redis -x lpush "rmq::queue::[other]::ready"
	run_mq 0 mq-consume -n 1 other -- cat
	assert_output x
}

@test "history: the end of stderr, and of a text, in whole characters" {
	local e100 x200
	e100=$(printf 'é%.0s' {1..100}) x200=$(printf 'x%.0s' {1..200})
	become <<.
{"attempt": 1, "status": 1, "text": "$e100 (exit status 1)", "stderr": "$(perl -e 'print "é" x 253, "12345"')"} | exec perl -e 'print STDERR "lost" x 1000, "é" x 9000, "12345\\n"; exit 1'
{"attempt": 1, "status": 1, "text": "$x200 (exit status 1)", "stderr": "$(printf 'x%.0s' {1..512})"} | exec perl -e '\$| = 1; for (1..3000) { print STDERR "x" } exit 1'
{"attempt": 1, "status": 0, "text": "$(printf 'x%.0s' {1..256})"} | exec perl -e 'open(my \$f, ">&=", 3); print \$f "err ", "x" x 5000'
.
}

@test "history: a message of a Go program keeps its headers, and is given back as it was" {
	printf '\377\0\276\276J{"X-A":["1","2"],"X-Null":null}\npay' |
		redis -x lpush 'rmq::queue::[q]::ready'
	run_mq 1 mq-consume -n 1 q -- sh -c 'printf "a\0b\377\376c\033[31m\007" >&2; exit 1'
	assert_equal "$(members rejected)" "Mq-Attempt Mq-Error Mq-History Mq-Id X-A X-Null"
	element q rejected | head -n 1 | grep -aFq '"X-A":["1","2"],"X-Null":null'
	element q rejected | head -n 1 | grep -aFq '\"stderr\":\"a?b??c\\u001B[31m\\u0007\"}'
	# Returned as Go does.
	redis rpoplpush "rmq::queue::[q]::rejected" "rmq::queue::[q]::ready" >/dev/null
	run_mq 1 mq-consume -n 1 q -- sh -c 'echo again >&2; exit 2'
	assert_equal "$(element q rejected | failures | tail -n 1)" \
		'{"attempt": 2, "status": 2, "text": "again (exit status 2)", "stderr": "again"}'
}

# --- the pipe ------------------------------------------------------------------------

@test "history: stderr is a pipe of each run, and blocks; all bytes go on to our own" {
	run_mq 0 mq-publish q x y z
	run_mq 0 mq-consume -n 2 q -- perl -MFcntl -e '
		print readlink("/proc/self/fd/2"), " ",
			fcntl(STDERR, F_GETFL, 0) & O_NONBLOCK ? "no" : "ok", "\n"'
	assert_regex "${lines[0]}${lines[1]}" '^pipe:\[[0-9]+\] okpipe:\[[0-9]+\] ok$'
	# Written by name, too.
	"$BUILD/mq-consume" -n 1 q -- sh -c 'printf "a\0b\377\376c\033[31m\007" >/dev/stderr' 2>"$T/err"
	cmp "$T/err" <(printf 'a\0b\377\376c\033[31m\007')
}

@test "history: what comes is copied at once, and in front of our own line" {
	mkfifo "$T/go"
	run_mq 0 mq-publish q x
	start_mq mq-consume -n 1 q -- sh -c 'printf now >&2; read -r _ <"$T/go"
		echo " later" >&2; exit 1'
	eventually 5 grep -q now "$T/err"
	[ "$(cat "$T/err")" = now ]
	echo >"$T/go"
	wait "$pid" || [ $? = 1 ]
	assert_regex "$(cat "$T/err")" $'^now later\nmq-consume: q: .*: rejected: now later \\(exit status 1\\)$'
	assert_equal "$(element q rejected | failures)" \
		'{"attempt": 1, "status": 1, "text": "now later (exit status 1)", "stderr": "now later"}'
}

@test "history: runs side by side keep their stderr apart" {
	run_mq 0 mq-publish q 1 2 3 4
	run_mq 1 mq-consume -j 4 -n 4 q -- perl -e '
		my $i = <STDIN>;
		open(my $here, ">", "$ENV{T}/here.$i");
		select undef, undef, undef, 0.01
			until 4 == grep { -e "$ENV{T}/here.$_" } 1..4;
		print STDERR "$i $_\n" for 1..300;
		exit $i'
	redis lrange 'rmq::queue::[q]::rejected' 0 -1 | failures all | sort >"$T/got"
	for i in 1 2 3 4; do
		grep -q "\"status\": $i,.*\"stderr\": \"[ 0-9]*\(.n$i [0-9]*\)*.n$i 300\"} | $i\$" "$T/got"
		assert_equal "$(grep -c "^$i " <<<"$stderr")" 300
	done
}

@test "history: --log-dir: stdout and stderr in their order, and stderr in the history" {
	run_mq 0 mq-publish q x
	run_mq 1 mq-consume -n 1 --log-dir "$T/log" q -- perl -e '
		for (1..2000) { syswrite STDOUT, "out $_\n"; syswrite STDERR, "err $_\n" }
		exit 1'
	grep -v '^---' "$T/log/q.log" | cmp - <(perl -e 'print "out $_\nerr $_\n" for 1..2000')
	refute_regex "$stderr" "err 1"
	assert_regex "$(element q rejected | failures)" 'out 2000\\nerr 2000"}$'
}

@test "history: --log-dir: a full disk is told, and keeps nobody" {
	[ -w /dev/full ] || skip "no /dev/full"
	run_mq 0 mq-publish q x y
	mkdir "$T/log"
	mknod "$T/log/q.log" c 1 7 2>/dev/null || skip "not allowed to mknod"
	run_mq 1 mq-consume -n 2 --log-dir "$T/log" q -- sh -c 'echo lost; exit 1'
	assert_equal "$(grep -c 'log/q.log: No space left on device; the output of workers is lost$' <<<"$stderr")" 1
	assert_equal "$(held q)" "0 0 0 2"
	assert_regex "$(element q rejected | failures)" '"stderr": "lost"'
}

@test "history: a process left behind goes on writing, and taints no other run" {
	mkfifo "$T/go"
	run_mq 0 mq-publish q 1 2 3
	start_mq mq-consume q -- sh -c '
		read -r n; echo "run $n" >&2
		[ "$n" != 1 ] || (
			read -r _ <"$T/go"
			echo "left behind" >&2 && echo "still here" >&2 && echo >"$T/wrote"
		) & exit 1'
	eventually 10 held_is q "0 0 0 3"
	run ! grep -q "left behind" "$T/err"
	echo >"$T/go"
	eventually 5 test -e "$T/wrote"
	eventually 5 grep -q "still here" "$T/err"
	run_mq 0 mq-publish q 4
	eventually 10 held_is q "0 0 0 4"
	stop_mq
	redis lrange 'rmq::queue::[q]::rejected' 0 -1 | failures all | grep -o 'stderr.*' |
		cmp - <(printf 'stderr": "run %s"} | %s\n' 4 4 3 3 2 2 1 1)
	assert_equal "$(grep -v '^mq-consume' "$T/err" | sort)" \
		$'left behind\nrun 1\nrun 2\nrun 3\nrun 4\nstill here'
}

@test "history: many left behind: only so many pipes are kept" {
	mkfifo "$T/hold"
	exec 8<>"$T/hold"
	run_mq 0 mq-publish q $(seq 100)
	start_mq mq-consume -j 2 q -- sh -c '
		(trap "" PIPE; exec 3>&-; read -r _ <"$T/hold"; echo alive >&2) & exit 1'
	eventually 20 held_is q "0 0 0 100"
	assert [ "$(find "/proc/$pid/fd" -lname 'pipe:*' | wc -l)" -le 80 ]
	# The youngest 64 can be heard still.
	for _ in $(seq 100); do echo >&8; done
	eventually 10 eval '[ "$(grep -c alive "$T/err")" = 64 ]'
	stop_mq TERM 143
}

# --- nobody reads ------------------------------------------------------------------------

@test "history: 100 MB to a reader that waits" {
	run_mq 0 mq-publish q flood
	unread -q -n 41 -j 2 q -- perl -e '
		exit unless <STDIN> eq "flood";
		print STDERR "0123456789abcde\n" x 4096 for 1..1600; exit 1'
	eventually 10 held_is q "0 0 1 0"
	# The heartbeat goes on, and so does the other slot.
	heartbeat
	run_mq 0 mq-publish q $(seq 40)
	eventually 10 held_is q "0 0 1 0"
	heartbeat
	read_all
	assert_equal "$(grep -v '^mq-consume' "$T/all" | wc -c)" 104857600
	assert_equal "$(grep -cvx -e 'mq-consume.*' -e 0123456789abcde "$T/all")" 0
	assert_regex "$(element q rejected | failures)" '"stderr": "(.n0123456789abcde){31}.n0123456789abcde"}$'
}

@test "history: our memory stays small while nobody reads, and our own lines do not keep us" {
	run_mq 0 mq-publish q $(seq 300)
	unread -n 300 -j 4 q -- perl -e 'print STDERR "0123456789abcde\n" x 2048; exit 1'
	# 300 times 32 KiB: all are judged, although nobody reads what they say.
	eventually 30 held_is q "0 0 0 300"
	with_sanitizer || assert [ "$(peak)" -lt 12000 ]
	read_all
	grep -q '^mq-consume: standard error took nothing for too long: [0-9]* bytes are lost$' "$T/all"
	rm "$T/pipe"
	mkfifo "$T/pipe"
	exec 8<>"$T/pipe"
	perl -e 'print "x" x 65536' >&8
	run_mq 0 mq-publish q {1..100}
	unread -n 100 q -- false
	eventually 20 held_is q "0 0 0 400"
	read_all
	assert_equal "$(grep -c 'rejected: exit status 1$' "$T/all")" 100
}

@test "history: a slow reader, and bytes are lost: the next run can write" {
	run_mq 0 mq-publish q $(seq 100) flood
	unread -n 101 q -- perl -e '
		exit 1 if print STDERR "0123456789abcde\n" x 2048 and <STDIN> ne "flood";
		print STDERR "0123456789abcde\n" x 65536; exit 1'
	eventually 30 held_is q "0 0 1 100"
	exec 7<"$T/pipe"
	timeout 60 perl -e 'select undef, undef, undef, 5e-4
		while sysread STDIN, $_, 4096 and print' <&7 3>&- 8>&- >"$T/all" &
	exec 7<&- 8>&-
	eventually 20 held_is q "0 0 0 101"
	wait "$pid" || [ $? = 1 ]
	wait
	grep -q 'took nothing for too long: [0-9]* bytes are lost$' "$T/all"
}

@test "history: nobody reads, and it is told to end" {
	run_mq 0 mq-publish q x
	unread q -- perl -e 'print STDERR "x" x 65536 for 1..100'
	eventually 10 held_is q "0 0 1 0"
	tick
	kill -TERM "$pid"
	tick
	kill -INT "$pid"
	eventually 10 held_is q "1 0 0 0"
	eventually 10 gone "$pid"
}

@test "history: the reader of stderr has gone" {
	run_mq 0 mq-publish q 1 2
	unread -n 2 q -- sh -c 'echo why >&2 && exit 3'
	exec 8>&-
	ends_with 1
	assert_equal "$(held q)" "0 0 0 2"
	assert_equal "$(element q rejected | failures)" \
		'{"attempt": 1, "status": 3, "text": "why (exit status 3)", "stderr": "why"}'
}

@test "history: stderr that others have set not to block" {
	mkfifo "$T/pipe"
	exec 8<>"$T/pipe"
	run_mq 0 mq-publish q x
	perl -MFcntl -e 'fcntl(STDERR, F_SETFL, O_WRONLY | O_NONBLOCK); exec @ARGV' \
		"$BUILD/mq-consume" -n 1 q -- perl -e 'print STDERR "0123456789abcde\n" x 65536' \
		2>"$T/pipe" 3>&- 8>&- &
	pid=$!
	eventually 10 held_is q "0 0 1 0"
	read_all
	assert_equal "$(wc -c <"$T/all")" 1048576
}
