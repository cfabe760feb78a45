#!/usr/bin/env bats
# What a script says and how it ends decide what becomes of its message: the
# table of RQ's verdicts, with mq-consume and a real server, looked up in the
# raw keys.

# run_mq sets stderr; each test is a subshell of its own.
# shellcheck disable=SC2030,SC2031,SC2154

load ../helpers/common

setup_file() {
	server_start
	# Not a wrapper that takes its time.
	PYTHON=$(python3 -c 'import sys; print(sys.executable)')
	PERL=$(command -v perl)
	BASH_PATH=$(command -v bash)
	export PYTHON PERL BASH_PATH
}

teardown_file() {
	server_stop
}

setup() {
	common_setup
	payload='the payload'
}

teardown() {
	common_teardown
}

# A clean server, and its time in ms.
fresh() {
	redis flushall >/dev/null
	redis eval 'local t = redis.call("TIME")
		return t[1] * 1000 + math.floor(t[2] / 1000)' 0
}

# What has become of the message $id with $payload, settled after the time in
# $before, in words:  "acked", "rejected RUNS: REASON", "ready RUNS: REASON",
# "delayed SECONDS RUNS: REASON".
found() {
	redis eval 'local n, q = redis.call, "rmq::queue::[q]::"
		for _, k in ipairs(n("KEYS", "*::unacked")) do
			return n("LLEN", k) .. " unacked"
		end
		local ready, rejected = n("LRANGE", q .. "ready", 0, -1), n("LRANGE", q .. "rejected", 0, -1)
		local delayed = n("ZRANGE", q .. "delayed", 0, -1, "WITHSCORES")
		local count = #ready + #rejected + #delayed / 2
		if count == 0 then
			return "acked"
		elseif count > 1 then
			return count .. " messages"
		end
		local state = ready[1] and "ready" or rejected[1] and "rejected" or "delayed"
		local e = ready[1] or rejected[1] or delayed[1]:sub(33)
		local json, payload = e:match("^\255%z\190\190J([^\n]*)\n(.*)$")
		local h = cjson.decode(json)
		if payload ~= ARGV[2] then
			return state .. ", and another payload: " .. payload
		elseif h["Mq-Id"][1] ~= ARGV[1] then
			return state .. ", and another id"
		end
		if state == "delayed" then
			-- By what the message says itself.  By the server, it was
			-- settled between before and now.
			local t, at = n("TIME"), 0
			for _, failure in ipairs(h["Mq-History"]) do
				at = math.max(at, cjson.decode(failure).at_ms)
			end
			local ms = h["Mq-Due"][1] - at
			local settled = delayed[2] - ms
			state = state .. " " .. string.format("%.15g", ms / 1000)
			if settled < tonumber(ARGV[3])
				or settled > t[1] * 1000 + t[2] / 1000 then
				state = state .. ", due at another time"
			end
		end
		local function first(name)
			return h[name] and h[name][1] or "none"
		end
		return state .. " " .. first("Mq-Attempt") .. ": " .. first("Mq-Error")' \
		0 "$id" "$payload" "${before:-0}"
}

now_ms() {
	redis eval 'local t = redis.call("TIME")
		return t[1] * 1000 + math.floor(t[2] / 1000)' 0
}

publish() {
	run_mq 0 mq-publish -i "$@" q "$payload"
	id=$output
}

# judged WANT [OPTION...]: publishes one message, runs $T/s for it once, and
# compares what became of it.
judged() {
	local want=$1 got before
	shift
	before=$(fresh)
	publish
	run_mq 0 mq-consume -n 1 "$@" q -- "$T/s"
	got=$(found)
	if [ "$got" != "$want" ]; then
		echo "wanted: $want"
		echo "   got: $got"
		echo "stderr: $stderr"
		cat "$T/s"
		return 1
	fi
}

# said WANT LINE...: like judged, for a script that says these lines.
said() {
	local want=$1
	shift
	{
		echo "cat >&3 <<'.'"
		printf '%s\n' "$@"
		echo .
	} | script s
	judged "$want"
}

# does LANGUAGE ACTION...: an executable script that does it.  Actions are
# "say LINE", "exit N", "kill SIGNAL".
does() {
	local a language=$1
	shift
	{
		case $language in
		python) echo 'import os, signal, sys' ;;
		perl) echo 'use IO::Handle; open(my $rq, ">&=", $ENV{RQ_PIPE}) or die; $rq->autoflush(1);' ;;
		esac
		for a; do
			case $language,$a in
			sh,say*) echo "echo '${a#say }' >&3" ;;
			bash,say*) echo "echo '${a#say }' >&\$RQ_WRITE" ;;
			python,say*) echo "os.write(int(os.environ['RQ_WRITE']), b'${a#say }\\n')" ;;
			perl,say*) echo "print \$rq '${a#say }', \"\\n\";" ;;
			*sh,kill*) echo "kill -${a#kill } \$\$" ;;
			python,kill*) echo "os.kill(os.getpid(), signal.SIG${a#kill })" ;;
			perl,kill*) echo "kill '${a#kill }', \$\$;" ;;
			python,exit*) echo "sys.exit(${a#exit })" ;;
			*,exit*) echo "$a;" ;;
			esac
		done
	} | case $language in
	sh) script s ;;
	bash) script s "$BASH_PATH" ;;
	python) script s "$PYTHON" ;;
	perl) script s "$PERL" ;;
	esac
}

# row LANGUAGE WANT ACTION...
row() {
	local language=$1 want=$2
	shift 2
	echo "# $language: $*"
	does "$language" "$@"
	judged "$want"
}

main_rows() {
	row "$1" acked "say done"
	row "$1" acked "say run one" "say done two" "exit 0"
	row "$1" acked "say relayed http://x/q/y/1"
	row "$1" acked "say done x" "say err b"
	row "$1" acked "say whatever x" "say done ok"
	row "$1" "rejected 1: by design" "say err by design" "exit 0"
	row "$1" "rejected 1: x" "say err x" "exit 3"
	row "$1" "rejected 1: x" "say err x" "kill KILL"
	row "$1" "rejected 1: a" "say err b" "say done a"
	row "$1" "rejected 1: exit status 1 after done" "say done" "exit 1"
	row "$1" "rejected 1: killed by SIGKILL after done" "say done" "kill KILL"
	row "$1" "rejected 1: halfway (no final verb)" "say run some" "say run halfway"
	row "$1" "rejected 1: killed by SIGTERM" "kill TERM"
	row "$1" "rejected 1: exit status 1" "exit 1"
	row "$1" "rejected 1: 0-x (exit status 77 after resend)" "say resend 0-x" "exit 77"
	row "$1" "delayed 5 1: 5-b" "say resend 5-b"
	row "$1" "ready 1: " "say resend 0"
	row "$1" acked "exit 0"
}

# --- the main rows, in four languages -----------------------------------------

@test "verdict: the main rows in sh" {
	main_rows sh
}

@test "verdict: the main rows in bash" {
	main_rows bash
}

@test "verdict: the main rows in Python" {
	main_rows python
}

@test "verdict: the main rows in Perl" {
	main_rows perl
}

# --- silence --------------------------------------------------------------------

@test "verdict: a silent script is judged by its exit status" {
	row sh acked "exit 0"
	row sh "rejected 1: exit status 2" "exit 2"
	row sh "rejected 1: exit status 64" "exit 64"
	row sh "rejected 1: exit status 255" "exit 255"
	row sh "rejected 1: killed by SIGKILL" "kill KILL"
	row sh "rejected 1: killed by SIGINT" "kill INT"
	row sh "rejected 1: killed by SIGHUP" "kill HUP"
	row sh "rejected 1: killed by SIGPIPE" "kill PIPE"
	row sh "rejected 1: killed by SIGUSR1" "kill USR1"
}

@test "verdict: a plain program needs no verbs" {
	publish
	run_mq 0 mq-consume -n 1 q -- cat
	assert_output "the payload"
	held_is q "0 0 0 0"
}

@test "verdict: --strict makes silence an error, and nothing else" {
	does sh "exit 0"
	judged "rejected 1: no final verb" --strict
	does sh "say done"
	judged acked --strict
	does sh "say run x"
	judged "rejected 1: x (no final verb)" --strict
	does sh "exit 4"
	judged "rejected 1: exit status 4" --strict
	does sh "say resend 3"
	judged "delayed 3 1: " --strict
	does sh "exit 75"
	judged "ready 1: exit status 75" --strict --backoff 0s..0s
}

# --- what counts among several verbs ----------------------------------------------

@test "verdict: the first final verb decides, the last text is shown" {
	said acked "done a" "resend 5-b"
	said "delayed 5 1: a" "resend 5-b" "done a"
	said "delayed 5 1: 9-c" "resend 5-b" "resend 9-c"
	said acked "done a" "err b"
	said "rejected 1: a" "err b" "done a"
	said "rejected 1: later" "err b" "run later"
	said acked "done" "run later"
	said "rejected 1: 5-x" "err" "resend 5-x"
	said "rejected 1: http://a/b" "fails" "relayed http://a/b"
}

@test "verdict: -v shows the last text of a done" {
	does sh "say done a" "say run later"
	judged acked -v
	assert_regex "$stderr" "q: $id: done: later"
	does sh "say done"
	judged acked -v
	assert_regex "$stderr" "q: $id: done$(printf '\n')"
}

@test "verdict: err, fail and fails are one" {
	said "rejected 1: x y" "err x y"
	said "rejected 1: x y" "fail x y"
	said "rejected 1: x y" "fails x y"
	said "rejected 1: err" "err"
	said "rejected 1: err" "fail"
}

@test "verdict: verbs are exact; what is no verb is progress" {
	said "rejected 1: x (no final verb)" "DONE x"
	said "rejected 1: x (no final verb)" "Done x"
	said "rejected 1: x (no final verb)" "donee x"
	said "rejected 1: x (no final verb)" "don x"
	said "rejected 1: x (no final verb)" "failed x"
	said "rejected 1: x (no final verb)" "ok x"
	said "rejected 1: no final verb" "hm"
	said "rejected 1: is well (no final verb)" "done: it" "all is well"
}

@test "verdict: who speaks has to finish, whatever the exit status" {
	row sh "rejected 1: x (exit status 3)" "say run x" "exit 3"
	row sh "rejected 1: x (exit status 75)" "say run x" "exit 75"
	row sh "rejected 1: x (exit status 126)" "say run x" "exit 126"
	row sh "rejected 1: x (exit status 127)" "say run x" "exit 127"
	row sh "rejected 1: x (killed by SIGKILL)" "say run x" "kill KILL"
}

@test "verdict: 75, 126 and 127 after a final verb are plain failures" {
	row sh "rejected 1: exit status 75 after done" "say done" "exit 75"
	row sh "rejected 1: exit status 126 after done" "say done" "exit 126"
	row sh "rejected 1: exit status 127 after resend" "say resend 1" "exit 127"
	row sh "rejected 1: x" "say err x" "exit 127"
}

@test "verdict: any exit status but 0 and any signal undo done, relayed and resend" {
	row sh "rejected 1: x (exit status 1 after done)" "say relayed x" "exit 1"
	row sh "rejected 1: exit status 255 after done" "say done" "exit 255"
	row sh "rejected 1: killed by SIGTERM after resend" "say resend 9" "kill TERM"
	row sh "rejected 1: killed by SIGSEGV after done" "say done" "kill SEGV"
}

# --- lines and their bytes ------------------------------------------------------

@test "verdict: blanks around verb and text, as awk splits" {
	said acked "  done   two words  "
	said "rejected 1: two words  " "  err   two words  "
	printf "printf 'err\\\\ttabbed\\\\n' >&3\n" | script s
	judged "rejected 1: tabbed"
	printf "printf '\\\\t err a\\\\tb\\\\n' >&3\n" | script s
	judged $'rejected 1: a\tb'
	printf "printf 'done\\\\r\\\\n' >&3\n" | script s
	judged acked
}

@test "verdict: lines of nothing are no lines" {
	said acked ""
	said acked "" "   "
	said "rejected 1: x" "err x" "" "  "
	said acked "done" ""
}

@test "verdict: the last line needs no newline" {
	echo 'printf "done nonewline" >&3' | script s
	judged acked
	echo 'printf "err nonewline" >&3' | script s
	judged "rejected 1: nonewline"
	echo 'printf "run x\nresend 4" >&3' | script s
	judged "delayed 4 1: "
	echo 'printf "run x\nd" >&3' | script s
	judged "rejected 1: no final verb"
}

@test "verdict: a line may come in pieces" {
	# Each piece is read by itself: the pipe is empty again before the next.
	script s "$PYTHON" <<'.'
import array, fcntl, os, sys, termios, time
left = array.array('i', [0])
for piece in (b'ru', b'n a', b'\ndo', b'n', b'e hal', b'ves'):
    os.write(3, piece)
    while True:
        fcntl.ioctl(3, termios.FIONREAD, left)
        if left[0] == 0:
            break
        time.sleep(0.001)
.
	judged acked -v
	assert_regex "$stderr" "done: halves"
}

@test "verdict: 20 kB of run lines before done" {
	echo 'i=0
	while [ $i -lt 500 ]; do echo "run line $i is about forty bytes long..."; i=$((i + 1)); done >&3
	echo done all >&3' | script s
	judged acked -v
	assert_regex "$stderr" "done: all"
}

@test "verdict: more run lines than any pipe holds, written at once" {
	script s "$PYTHON" <<'.'
import os
data = b'run on and on and on\n' * 50000 + b'err at last\n'
while data:
    data = data[os.write(3, data):]
.
	judged "rejected 1: at last"
}

@test "verdict: a verb across the 4096th byte" {
	script s "$PYTHON" <<'.'
import os
os.write(3, b'run ' + b'x' * 4088 + b'\ndo')
os.write(3, b'ne over\n')
.
	judged acked -v
	assert_regex "$stderr" "done: over"
}

@test "verdict: a line longer than any is cut, and the next one is whole" {
	script s "$PERL" <<'.'
open(my $f, '>&=', 3);
print $f "run ", "x" x 100000, "\nerr whole\n";
.
	judged "rejected 1: whole"
	script s "$PERL" <<'.'
open(my $f, '>&=', 3);
print $f "done ", "x" x 6000, "\n";
.
	judged acked
}

@test "verdict: a long reason is cut, not lost" {
	local reason
	script s "$PERL" <<'.'
open(my $f, '>&=', 3);
print $f "err ", "abcdefghij" x 1000, "\n";
.
	publish
	run_mq 0 mq-consume -n 1 q -- "$T/s"
	held_is q "0 0 0 1"
	reason=$(element q rejected | header Mq-Error)
	assert_equal "${#reason}" 1024
	assert_equal "${reason:0:20}" abcdefghijabcdefghij
	[ "$(element q rejected | tail -n +2)" = "$payload" ]
}

@test "verdict: a long reason in UTF-8 stays JSON when it is cut" {
	script s "$PERL" <<'.'
open(my $f, '>&=', 3);
print $f "err a", "\xc3\xa4" x 1000, "\n";
.
	publish
	run_mq 0 mq-consume -n 1 q -- "$T/s"
	element q rejected | tail -c +6 | head -n 1 | "$PYTHON" -c '
import json, sys
e = json.loads(sys.stdin.buffer.read().decode("utf-8"))["Mq-Error"][0]
assert e.startswith("a\xe4\xe4\xe4"), e
assert len(e.encode()) <= 1026, len(e.encode())
assert set(e[1:-1]) == {"\xe4"}, e'
}

@test "verdict: UTF-8 in a text is kept; other bytes do no harm" {
	said "rejected 1: größer ☃" "err größer ☃"
	echo 'printf "err a\377b\n" >&3' | script s
	judged "rejected 1: a?b"
}

@test "verdict: NUL and control bytes in a text" {
	echo 'printf "err a\000b\033[31mc\001\n" >&3' | script s
	judged $'rejected 1: a?b\033[31mc\001'
	# And none of them reaches the terminal.
	refute_regex "$stderr" $'\033'
	assert_regex "$stderr" 'rejected: a\?b.*31mc'
	echo 'printf "\000\n" >&3' | script s
	judged "rejected 1: no final verb"
	echo 'printf "done\000\n" >&3' | script s
	judged "rejected 1: no final verb"
	echo 'printf "err \"quoted\" back\\\\slash\n" >&3' | script s
	judged 'rejected 1: "quoted" back\slash'
}

# --- resend ------------------------------------------------------------------------

@test "verdict: resend reads DUE as RQ does" {
	said "delayed 2 1: " "resend 2"
	said "delayed 3 1: 3-because of-that" "resend 3-because of-that"
	said "delayed 1 1: 1.9-x" "resend 1.9-x"
	said "delayed 10 1: 1_0-x" "resend 1_0-x"
	said "ready 1: 0-x" "resend 0-x"
	said "ready 1: soon-please" "resend soon-please"
	said "ready 1: -5-neg" "resend -5-neg"
	said "delayed 86400 1: 86400-x" "resend 86400-x"
}

@test "verdict: a bare resend is one right away" {
	said "ready 1: " "resend"
	said "ready 1: " "resend  "
}

@test "verdict: resend with a number beyond all time stays delayed" {
	said "delayed 315360000 1: 99999999999999999999-x" "resend 99999999999999999999-x"
}

@test "verdict: resend 0 goes to the end of the line" {
	run_mq 0 mq-publish q one two
	does sh "say resend 0-x"
	run_mq 0 mq-consume -n 1 q -- "$T/s"
	run_mq 0 mq-consume --drain -l q
	assert_output $'two\none'
}

@test "verdict: a message that is resent runs again when it is due" {
	script s <<'.'
echo "$RQ_COUNT $MQ_ATTEMPT" >>"$T/runs"
[ "$RQ_COUNT" -ge 1 ] && echo done >&3 || echo resend 1-x >&3
.
	publish
	start_mq mq-consume -n 2 q -- "$T/s"
	eventually 10 gone_after_exit
	assert_equal "$(cat "$T/runs")" $'0 1\n1 2'
	held_is q "0 0 0 0"
}

gone_after_exit() {
	[ -e "$T/runs" ] && [ "$(wc -l <"$T/runs")" = 2 ] && gone "$pid"
}

@test "verdict: a due time is put on at the exit, not at the line" {
	mkfifo "$T/go"
	script s <<'.'
echo resend 5-x >&3
echo >"$T/said"
read -r _ <"$T/go"
.
	publish
	start_mq mq-consume -n 1 q -- "$T/s"
	eventually 10 test -e "$T/said"
	# Said, but without effect so far.
	assert_equal "$(held q)" "0 0 1 0"
	assert_equal "$(redis lindex "$(redis keys '*unacked')" 0 | header Mq-Attempt)" ""
	assert_equal "$(redis exists 'rmq::queue::[q]::delayed')" 0
	before=$(now_ms)
	echo >"$T/go"
	wait "$pid"
	assert_equal "$(found)" "delayed 5 1: 5-x"
}

@test "verdict: --attempts 3 is three runs" {
	script s <<'.'
echo "$MQ_ATTEMPT" >>"$T/runs"
echo resend 0-nope >&3
.
	publish
	run_mq 0 mq-consume --attempts 3 --drain q -- "$T/s"
	assert_equal "$(cat "$T/runs")" $'1\n2\n3'
	assert_equal "$(found)" "rejected 3: attempts exhausted: 0-nope"
}

@test "verdict: --attempts counts exit 75, too, and runs by other consumers" {
	echo 'echo >>"$T/runs"; exit 75' | script s
	publish
	for _ in 1 2 3; do
		run_mq 0 mq-consume --attempts 3 --backoff 1ms..1ms -n 1 q -- "$T/s"
	done
	assert_equal "$(wc -l <"$T/runs")" 3
	assert_equal "$(found)" "rejected 3: attempts exhausted: exit status 75"
}

@test "verdict: --attempts 1 is one run" {
	echo 'echo >>"$T/runs"; echo resend 0 >&3' | script s
	judged "rejected 1: attempts exhausted" --attempts 1
	assert_equal "$(wc -l <"$T/runs")" 1
}

@test "verdict: fifteen attempts without --attempts" {
	echo 'echo >>"$T/runs"; echo resend >&3' | script s
	publish
	run_mq 0 mq-consume --drain q -- "$T/s"
	assert_equal "$(wc -l <"$T/runs")" 15
	assert_equal "$(found)" "rejected 15: attempts exhausted"
}

@test "verdict: the limit stops only retries; the run itself always happens" {
	printf '\377\0\276\276J{"Mq-Attempt":["99"]}\nx' |
		redis -x lpush 'rmq::queue::[q]::ready'
	does sh "say done"
	run_mq 0 mq-consume -n 1 q -- "$T/s"
	held_is q "0 0 0 0"
}

# --- push, without a queue to push to; push.bats has the rest ----------------------

@test "verdict: push without --push is a reject" {
	said "rejected 1: to a human" "push to a human"
	said "rejected 1: push" "push"
	said "rejected 1: later" "push" "run later"
	row sh "rejected 1: x (exit status 1 after push)" "say push x" "exit 1"
	row sh "rejected 1: x (killed by SIGTERM after push)" "say push x" "kill TERM"
	said "rejected 1: x (no final verb)" "pushed x"
}

# --- resend tick --------------------------------------------------------------------------

# Of the one delayed message: its score, from tick and attempts.
waits_for() {
	redis zrange 'rmq::queue::[q]::delayed' 0 0 withscores | tail -n 1
	printf '%s %s\n' "$(element q delayed | header Mq-From-Tick)" \
		"$(element q delayed | header Mq-Attempt)"
}

@test "verdict: resend tick waits for the next tick, and is an attempt" {
	does sh "say resend tick-more to come"
	run_mq 0 mq-publish --tick 41 q
	publish
	run_mq 0 mq-consume -n 1 q -- "$T/s"
	assert_equal "$(waits_for | xargs)" "$(((1 << 50) + 42)) 42 1"
	assert_equal "$(element q delayed | header Mq-Error)" "tick-more to come"
	run_mq 0 mq-consume --drain q -- true
	assert_equal "$(held q)" "0 1 0 0"
	run_mq 0 mq-publish --tick 42 q
	run_mq 0 mq-consume -n 1 q -- "$T/s"
	assert_equal "$(waits_for | xargs)" "$(((1 << 50) + 43)) 43 2"
	run_mq 0 mq-publish --tick 50 q
	run_mq 0 mq-consume -n 1 q -- "$T/s"
	assert_equal "$(waits_for | xargs)" "$(((1 << 50) + 51)) 51 3"
}

@test "verdict: resend tick in a queue that never had a tick waits for the first" {
	does sh "say resend tick"
	publish
	run_mq 0 mq-consume -n 1 q -- "$T/s"
	assert_equal "$(waits_for | xargs)" "$(((1 << 50) + 1)) 1 1"
}

@test "verdict: resend tick when the tick has come meanwhile" {
	mkfifo "$T/go"
	script s <<'.'
if [ "$MQ_ATTEMPT" = 1 ]; then
	echo >"$T/started"
	read -r _ <"$T/go"
	echo resend tick >&3
fi
echo "$MQ_ATTEMPT" >>"$T/runs"
.
	publish
	start_mq mq-consume -n 2 q -- "$T/s"
	eventually 10 test -e "$T/started"
	# Known or not yet, when it ends: the first tick has come.
	run_mq 0 mq-publish --tick 1 q
	echo >"$T/go"
	eventually 10 settled_once
	run_mq 0 mq-publish --tick 2 q
	wait "$pid"
	assert_equal "$(cat "$T/runs")" $'1\n2'
	assert_equal "$(held q)" "0 0 0 0"
}

settled_once() {
	[ -e "$T/runs" ] && [ "$(redis llen "$(redis keys '*unacked')")" = 0 ] ||
		[ "$(wc -l <"$T/runs")" = 2 ]
}

@test "verdict: resend tick behind the last tick is rejected" {
	does sh "say resend tick-more"
	publish --until-tick 4
	run_mq 0 mq-publish --tick 3 q
	run_mq 0 mq-consume -n 1 q -- "$T/s"
	assert_equal "$(waits_for | xargs)" "$(((1 << 50) + 4)) 4 1"
	run_mq 0 mq-publish --tick 4 q
	run_mq 0 mq-consume -n 1 q -- "$T/s"
	assert_equal "$(found)" "rejected 2: no next tick"
}

@test "verdict: resend tick runs at most --attempts times" {
	does sh "say resend tick"
	publish
	run_mq 0 mq-consume --attempts 2 -n 1 q -- "$T/s"
	run_mq 0 mq-publish --tick 1 q
	run_mq 0 mq-consume --attempts 2 -n 1 q -- "$T/s"
	assert_equal "$(found)" "rejected 2: attempts exhausted"
	assert_equal "$(element q rejected | header Mq-From-Tick)" 1
}

# --- pause ------------------------------------------------------------------------------

paused_ms() {
	redis pttl 'rmq::queue::[q]::paused'
}

@test "verdict: pause resends the message and pauses the queue" {
	said "delayed 60 1: 60-no disk" "pause 60-no disk"
	assert [ "$(paused_ms)" -gt 20000 ]
	assert [ "$(paused_ms)" -le 60000 ]
	assert_equal "$(element q delayed | header Mq-Attempt)" 1
}

@test "verdict: a pause of nothing is a resend at once" {
	said "ready 1: " "pause"
	assert_equal "$(paused_ms)" -2
	said "ready 1: 0-x" "pause 0-x"
	assert_equal "$(paused_ms)" -2
	said "ready 1: soon" "pause soon"
	assert_equal "$(paused_ms)" -2
}

@test "verdict: only a good exit pauses" {
	row sh "rejected 1: exit status 1 after pause" "say pause 60" "exit 1"
	assert_equal "$(paused_ms)" -2
	said "rejected 1: err" "err x" "pause 60"
	assert_equal "$(paused_ms)" -2
}

@test "verdict: the last attempt pauses, too" {
	does sh "say pause 60-x"
	judged "rejected 1: attempts exhausted: 60-x" --attempts 1
	assert [ "$(paused_ms)" -gt 20000 ]
}

@test "verdict: a pause does not end a longer one, and makes a shorter one longer" {
	mkfifo "$T/go"
	script s <<'.'
echo pause 60 >&3
echo >"$T/started"
read -r _ <"$T/go"
.
	for before in 1h 10s forever; do
		fresh >/dev/null
		rm -f "$T/started"
		publish
		start_mq mq-consume -n 1 q -- "$T/s"
		eventually 10 test -e "$T/started"
		if [ "$before" = forever ]; then
			run_mq 0 mq-pause q
		else
			run_mq 0 mq-pause --for "$before" q
		fi
		echo >"$T/go"
		wait "$pid"
		assert_equal "$(held q)" "0 1 0 0"
		echo "$before: $(paused_ms)"
		case $before in
		1h) assert [ "$(paused_ms)" -gt 3000000 ] ;;
		10s) assert [ "$(paused_ms)" -gt 20000 ] ;;
		forever) assert_equal "$(paused_ms)" -1 ;;
		esac
	done
}

@test "verdict: pause gives back what was claimed ahead, and starts no more" {
	script s <<'.'
read -r x
echo "$x" >>"$T/started"
[ "$x" != one ] || [ "$MQ_ATTEMPT" != 1 ] || echo pause 4 >&3
.
	run_mq 0 mq-publish q one two three
	start_mq mq-consume --prefetch 5 -n 4 q -- "$T/s"
	eventually 10 held_is q "2 1 0 0"
	assert_equal "$(cat "$T/started")" one
	wait "$pid"
	assert_equal "$(tail -n +2 "$T/started" | sort)" $'one\nthree\ntwo'
	assert_regex "$(cat "$T/err")" "q: paused"
	assert_regex "$(cat "$T/err")" "q: resumed"
	assert_equal "$(held q)" "0 0 0 0"
}

# --- exit status 75 -----------------------------------------------------------------

# retried ATTEMPTS LOW HIGH: messages that ran so often before exit with 75
# again, with --backoff 10s..1000s, and fall due LOW to HIGH seconds later.
retried() {
	local i before after due
	before=$(fresh)
	for i in {1..20}; do
		redis eval 'redis.call("LPUSH", "rmq::queue::[q]::ready",
			"\255\0\190\190J{\"Mq-Attempt\":[\"" .. ARGV[1] .. "\"]}\n" .. ARGV[2])' \
			0 "$1" "$i" >/dev/null
	done
	run_mq 0 mq-consume -j 4 -n 20 --backoff 10s..1000s q -- sh -c 'exit 75'
	after=$(now_ms)
	assert_equal "$(held q)" "0 20 0 0"
	assert_equal "$(element q delayed | header Mq-Attempt)" $(($1 + 1))
	assert_equal "$(element q delayed | header Mq-Error)" "exit status 75"
	redis zrange 'rmq::queue::[q]::delayed' 0 -1 withscores |
		grep -a '^[0-9]\{13\}$' >"$T/due"
	assert_equal "$(wc -l <"$T/due")" 20
	while read -r due; do
		echo "attempt $1: due in $((due - before)) ms"
		((due - before >= $2 * 1000 && due - after <= $3 * 1000))
	done <"$T/due"
}

@test "verdict: exit 75 is a retry after a backoff, never below its minimum" {
	retried 0 10 20
}

@test "verdict: the backoff doubles with each attempt, up to its maximum" {
	retried 1 20 40
	retried 2 40 80
	retried 3 80 160
	retried 10 500 1000
}

@test "verdict: the backoff is jittered" {
	retried 2 40 80
	# Twenty messages of one moment do not come back in one moment.
	[ "$(sort -n "$T/due" | tail -n 1)" -gt $(($(sort -n "$T/due" | head -n 1) + 4000)) ]
}

@test "verdict: a backoff of one length has no jitter" {
	does sh "exit 75"
	judged "delayed 7 1: exit status 75" --backoff 7s..7s
}

@test "verdict: a backoff of nothing" {
	does sh "exit 75"
	judged "ready 1: exit status 75" --backoff 0s..0s
}

# --- no state leaks into another run -----------------------------------------------

@test "verdict: what a run said after its final verb does not judge the next" {
	# RQ keeps the done for the second run, and makes its err a done.
	script s <<'.'
case $RQ_COUNT in
0) printf 'resend 0-b\ndone a\n' >&3 ;;
*) echo err really >&3 ;;
esac
.
	publish
	run_mq 0 mq-consume -n 2 q -- "$T/s"
	assert_equal "$(found)" "rejected 2: really"
}

@test "verdict: two resends in one run are one" {
	script s <<'.'
echo >>"$T/runs"
case $RQ_COUNT in
0) printf 'resend 0-a\nresend 0-b\n' >&3 ;;
*) echo done >&3 ;;
esac
.
	publish
	run_mq 0 mq-consume --drain q -- "$T/s"
	assert_equal "$(wc -l <"$T/runs")" 2
	held_is q "0 0 0 0"
}

@test "verdict: neither err nor half a line reach the next message" {
	script s <<'.'
case $(cat) in
one) printf 'err x\ndo' >&3 ;;
two) echo ne >&3 ;;
three) exit 0 ;;
esac
.
	run_mq 0 mq-publish q one two three
	run_mq 0 mq-consume -n 3 q -- "$T/s"
	assert_equal "$(held q)" "0 0 0 2"
	# "do" is a line of its own, the last of the first run.
	assert_equal "$(element q rejected 1 | header Mq-Error)" "err"
	assert_equal "$(element q rejected 0 | header Mq-Error)" "no final verb"
}

@test "verdict: the reason of an earlier run goes with the next one's" {
	script s <<'.'
case $RQ_COUNT in
0) echo resend 0-first >&3 ;;
1) echo err second >&3 ;;
esac
.
	publish
	run_mq 0 mq-consume -n 1 q -- "$T/s"
	assert_equal "$(found)" "ready 1: 0-first"
	run_mq 0 mq-consume -n 1 q -- "$T/s"
	assert_equal "$(found)" "rejected 2: second"
}

# --- descriptors ----------------------------------------------------------------------

@test "verdict: a grandchild that holds fd 3 delays nobody" {
	# RQ freezes until it has gone.
	mkfifo "$T/hold"
	script s <<'.'
(read -r _ <>"$T/hold") >/dev/null 2>&1 &
echo $! >>"$T/grandchildren"
echo done >&3
.
	run_mq 0 mq-publish q one two three
	run_mq 0 mq-consume -n 3 q -- "$T/s"
	held_is q "0 0 0 0"
	# They were there all the time.
	assert_equal "$(wc -l <"$T/grandchildren")" 3
	while read -r child; do
		kill -KILL "$child"
	done <"$T/grandchildren"
}

@test "verdict: a grandchild in a session of its own delays nobody, either" {
	mkfifo "$T/hold"
	script s <<'.'
setsid sh -c 'echo $$ >"$T/grandchild"; read -r _ <>"$T/hold"' >/dev/null 2>&1 &
until [ -s "$T/grandchild" ]; do :; done
echo err x >&3
.
	judged "rejected 1: x"
	kill -KILL "$(cat "$T/grandchild")"
}

@test "verdict: what a grandchild says while the script lives counts" {
	script s <<'.'
(echo done by a child >&3) &
wait
.
	judged acked -v
	assert_regex "$stderr" "done: by a child"
}

@test "verdict: what a grandchild says after the script's exit does not" {
	mkfifo "$T/hold"
	script s <<'.'
(trap '' PIPE; read -r _ <>"$T/hold"; echo done >&3; echo >"$T/said") >/dev/null 2>&1 &
echo $! >"$T/grandchild"
echo run x >&3
.
	judged "rejected 1: x (no final verb)"
	echo >"$T/hold"
	eventually 10 test -e "$T/said"
	assert_equal "$(found)" "rejected 1: x (no final verb)"
}

@test "verdict: fd 4 is a pipe that says nothing by itself" {
	script s "$PYTHON" <<'.'
import fcntl, os, select
blocks = not fcntl.fcntl(4, fcntl.F_GETFL) & os.O_NONBLOCK
os.write(3, b'err %d %d\n' % (blocks, len(select.select([4], [], [], 0.1)[0])))
.
	judged "rejected 1: 1 0"
}

@test "verdict: closing fd 3 and 4 early" {
	echo 'exec 3>&- 4<&-' | script s
	judged acked
	judged "rejected 1: no final verb" --strict
	echo 'exec 3>&- 4<&-; exit 5' | script s
	judged "rejected 1: exit status 5"
	echo 'echo done >&3; exec 3>&- 4<&-' | script s
	judged acked
	echo 'echo done >&3; exec 3>&- 4<&-; exit 1' | script s
	judged "rejected 1: exit status 1 after done"
	echo 'exec 4<&-; echo err x >&3' | script s
	judged "rejected 1: x"
}

@test "verdict: done, and then still running" {
	mkfifo "$T/go"
	script s <<'.'
echo done x >&3
exec 3>&- 4<&-
echo >"$T/said"
read -r code <"$T/go"
exit "$code"
.
	publish
	start_mq mq-consume -n 1 q -- "$T/s"
	eventually 10 test -e "$T/said"
	assert_equal "$(held q)" "0 0 1 0"
	echo 0 >"$T/go"
	wait "$pid"
	held_is q "0 0 0 0"
	rm "$T/said"
	publish
	start_mq mq-consume -n 1 q -- "$T/s"
	eventually 10 test -e "$T/said"
	echo 9 >"$T/go"
	wait "$pid"
	assert_equal "$(found)" "rejected 1: x (exit status 9 after done)"
}

@test "verdict: fd 3 closed early does not keep the consumer busy" {
	mkfifo "$T/go"
	script s <<'.'
exec 3>&- 4<&-
echo >"$T/said"
read -r _ <"$T/go"
.
	publish
	start_mq mq-consume -n 1 q -- "$T/s"
	eventually 10 test -e "$T/said"
	# A loop on the end of the pipe would wake up all the time.
	tick
	cpu=$(awk '{print $14 + $15}' "/proc/$pid/stat")
	tick
	tick
	(($(awk '{print $14 + $15}' "/proc/$pid/stat") - cpu < 20))
	echo >"$T/go"
	wait "$pid"
}

# --- scripts that cannot run --------------------------------------------------------

# unchanged: the ready list is as snapshot left it.
snapshot() {
	redis lrange 'rmq::queue::[q]::ready' 0 -1 >"$T/before"
}

unchanged() {
	redis lrange 'rmq::queue::[q]::ready' 0 -1 | cmp - "$T/before"
}

@test "verdict: exit 126 and 127 stop the consumer, and the queue stays as it is" {
	local code
	for code in 126 127; do
		redis flushall >/dev/null
		run_mq 0 mq-publish q one two three
		run_mq 0 mq-publish --raw q four
		snapshot
		echo "echo >>\"\$T/runs\"; exit $code" | script s
		rm -f "$T/runs"
		run_mq 78 mq-consume q -- "$T/s"
		assert_regex "$stderr" "exit status $code"
		assert_equal "$(wc -l <"$T/runs")" 1
		unchanged
		run_mq 78 mq-consume --prefetch 2 q -- "$T/s"
		unchanged
		# Two at a time come back in the order in which they ended.
		run_mq 78 mq-consume -j 2 --prefetch 2 q -- "$T/s"
		assert_equal "$(held q)" "4 0 0 0"
		assert_equal "$(sort <(redis lrange 'rmq::queue::[q]::ready' 0 -1))" \
			"$(sort "$T/before")"
	done
}

@test "verdict: a command that a shell does not find stops the consumer" {
	run_mq 0 mq-publish q one
	snapshot
	run_mq 78 mq-consume q -- sh -c 'no-such-command-anywhere'
	unchanged
}

@test "verdict: a script that is missing at the start: 78, and nothing is touched" {
	run_mq 0 mq-publish q one
	snapshot
	run_mq 78 mq-consume q -- "$T/nothing"
	assert_regex "$stderr" "^mq-consume: $T/nothing: No such file"
	run_mq 78 mq-consume q -- no-such-command-anywhere
	assert_regex "$stderr" "no-such-command-anywhere: .*not found"
	echo 'exit 0' >"$T/plain"
	run_mq 78 mq-consume q -- "$T/plain"
	run_mq 78 mq-consume q -- "$T"
	unchanged
	assert_equal "$(held q)" "1 0 0 0"
}

@test "verdict: an interpreter that is missing stops the consumer" {
	run_mq 0 mq-publish q one
	snapshot
	script s /no/such/interpreter </dev/null
	run_mq 78 mq-consume q -- "$T/s"
	unchanged
}

@test "verdict: a script that is removed while the consumer runs" {
	run_mq 0 mq-publish q one two three
	script s <<'.'
rm "$0"
echo done >&3
.
	run_mq 78 mq-consume q -- "$T/s"
	# The first is done, the others are as they were.
	run_mq 0 mq-consume --drain -l q
	assert_output $'two\nthree'
}

@test "verdict: a script that stops being executable while the consumer runs" {
	run_mq 0 mq-publish q one two
	script s <<'.'
chmod a-x "$0"
.
	run_mq 78 mq-consume q -- "$T/s"
	run_mq 0 mq-consume --drain --jsonl q
	assert_regex "$output" '"attempt":1.*"payload":"two"'
}

@test "verdict: a script without #! is run by the shell" {
	echo 'echo "err $0 $# $1" >&3' >"$T/s"
	chmod +x "$T/s"
	publish
	run_mq 0 mq-consume -n 1 q -- "$T/s" "a b"
	assert_equal "$(found)" "rejected 1: $T/s 1 a b"
}

@test "verdict: a blank in the path of the script" {
	mkdir "$T/a dir"
	echo 'echo "err $0 $# $RQ_SCRIPT" >&3' | script "a dir/my script"
	publish
	run_mq 0 mq-consume -n 1 q -- "$T/a dir/my script"
	assert_equal "$(found)" "rejected 1: $T/a dir/my script 0 $T/a dir/my script"
}

@test "verdict: a script gets its own arguments, and no others" {
	echo 'echo "err $#<$1><$2><$3>" >&3' | script s
	publish
	run_mq 0 mq-consume -n 1 q -- "$T/s" one "" -x
	assert_equal "$(found)" "rejected 1: 3<one><><-x>"
	judged "rejected 1: 0<><><>"
}

@test "verdict: a relative path, and a name in PATH" {
	echo 'echo "err $RQ_SCRIPT" >&3' | script s
	publish
	cd "$T"
	run_mq 0 mq-consume -n 1 q -- ./s
	run_mq 0 mq-publish -i q "$payload"
	assert_regex "$(element q rejected | header Mq-Error)" "^$T/(\./)?s\$"
	redis flushall >/dev/null
	publish
	PATH=$T:$PATH run_mq 0 mq-consume -n 1 q -- s
	assert_equal "$(found)" "rejected 1: $T/s"
}

@test "verdict: behind a link \$0 is the script itself" {
	echo 'echo "err $0 $RQ_SCRIPT $RQ_REALSCRIPT" >&3' | script real
	ln -s real "$T/link"
	publish
	run_mq 0 mq-consume -n 1 q -- "$T/link"
	assert_equal "$(found)" "rejected 1: $T/real $T/link $T/real"
}

@test "verdict: a link that is moved between two runs is honoured" {
	script old <<'.'
echo old >>"$T/runs"
ln -sf new "$T/link.new"
mv "$T/link.new" "$T/link"
.
	echo 'echo new >>"$T/runs"' | script new
	ln -s old "$T/link"
	run_mq 0 mq-publish q one two three
	run_mq 0 mq-consume -n 3 q -- "$T/link"
	assert_equal "$(cat "$T/runs")" $'old\nnew\nnew'
}

@test "verdict: a release directory behind a link that is moved is honoured" {
	mkdir "$T/1" "$T/2"
	echo 'echo 1 >>"$T/runs"; ln -sfn 2 "$T/current"' | script 1/run
	echo 'echo 2 >>"$T/runs"' | script 2/run
	ln -s 1 "$T/current"
	run_mq 0 mq-publish q one two
	run_mq 0 mq-consume -n 2 q -- "$T/current/run"
	assert_equal "$(cat "$T/runs")" $'1\n2'
}

# --- old scripts, as they are ---------------------------------------------------------

# A worker in the manner of those that RQ shipped with.
old_script() {
	script s "$BASH_PATH" <<'.'
function write_status {
	echo "$1" "$2" >&"$RQ_WRITE"
}
echo "my pid is $$" >/dev/null
cd "$(dirname "$RQ_SCRIPT")" || exit 9
write_status 'run' "just started"
case $RQ_PARAM1 in
sneaky) write_status 'done' "sneaky"; exit 1 ;;
err) write_status 'err' "by design"; exit 0 ;;
resend1) [ "$RQ_COUNT" = 0 ] && write_status 'resend' "2" && exit 0 ;;
resend2) [ "$RQ_COUNT" -lt 6 ] && write_status 'resend' "0" && exit 0 ;;
esac
[ "$RQ_PARAM2" = err ] && write_status 'err' "by design" && exit 0
write_status 'run' "a little longer"
write_status 'done' "done sleeping"
.
}

@test "verdict: a worker written for RQ" {
	old_script
	publish -P 1=done
	run_mq 0 mq-consume -v -n 1 q -- "$T/s"
	assert_regex "$stderr" "done: done sleeping"
	assert_equal "$(found)" acked
	publish -P 1=err
	run_mq 0 mq-consume -n 1 q -- "$T/s"
	assert_equal "$(found)" "rejected 1: by design"
	redis flushall >/dev/null
	publish -P 2=err
	run_mq 0 mq-consume -n 1 q -- "$T/s"
	assert_equal "$(found)" "rejected 1: by design"
	redis flushall >/dev/null
	publish -P 1=sneaky
	run_mq 0 mq-consume -n 1 q -- "$T/s"
	assert_equal "$(found)" "rejected 1: sneaky (exit status 1 after done)"
}

@test "verdict: a worker written for RQ that asks to be run again" {
	old_script
	publish -P 1=resend1
	before=$(now_ms)
	run_mq 0 mq-consume -n 1 q -- "$T/s"
	assert_equal "$(found)" "delayed 2 1: "
	redis flushall >/dev/null
	publish -P 1=resend2
	run_mq 0 mq-consume -v --drain q -- "$T/s"
	assert_equal "$(found)" acked
	assert_equal "$(grep -c 'again in' <<<"$stderr")" 6
	publish -P 1=resend2
	run_mq 0 mq-consume --attempts 3 --drain q -- "$T/s"
	assert_equal "$(found)" "rejected 3: attempts exhausted"
}

@test "verdict: a grandchild that floods the pipe keeps nobody waiting" {
	run_mq 0 mq-publish q x y
	script s <<'.'
echo "done first" >&3
yes "run flood" >&3 2>/dev/null &
echo $! >>"$T/pids"
.
	run_mq 0 mq-consume -v -n 2 q -- "$T/s"
	held_is q "0 0 0 0"
	assert_regex "$stderr" '2 done, 0 rejected'
	# It writes to a pipe that nobody reads any more.
	for pid in $(cat "$T/pids"); do
		eventually 10 gone "$pid"
	done
}
