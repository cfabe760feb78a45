#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What a script says and how it ends decide what becomes of its message: RQ's
# verdicts, with mq-consume and a real server, looked up in the raw keys.  The whole
# table of words and exit statuses is in tests/unit/test_verb.c.

load ../helpers/server
load ../helpers/consume

setup() {
	common_setup
	payload='the payload'
}

# ends FATE...: the exit status of a consumer whose messages have these.
ends() {
	case $* in
	*'rejected '*) echo 1 ;;
	*'delayed '* | *'ready '*) echo 75 ;;
	*) echo 0 ;;
	esac
}

# become OPERAND...: each line on stdin is "FATE | PAYLOAD"; publishes the payloads, lets
# `mq-consume q OPERAND...` run each once, and compares their fates.
become() {
	local i rows ids want=()
	mapfile -t rows
	mapfile -t ids < <(printf '%s\n' "${rows[@]#* | }" | "$BUILD/mq-publish" -i -l q)
	run_mq "$(ends "${rows[@]}")" mq-consume -n "${#rows[@]}" q "$@"
	for i in "${!rows[@]}"; do
		[[ ${rows[i]} == 'acked | '* ]] || want+=("${rows[i]} | ${ids[i]}")
	done
	assert_equal "$(fates)" "$(printf '%s\n' "${want[@]}" | sort)"
}

one() {
	run_mq 0 mq-publish -i "$@" q "$payload"
	id=$output
}

# The only message there is, $id, or was.
fate_is() {
	local expected="$1 | $payload | $id"
	[ "$1" != acked ] || expected=
	assert_equal "$(fates)" "$expected"
}

# judged FATE [OPTION...]: publishes a message, and runs $T/s for it once.
judged() {
	redis flushall >/dev/null
	one
	run_mq "$(ends "$1")" mq-consume -n 1 "${@:2}" q -- "$T/s"
	fate_is "$1"
}

# --- rows: a shell, or another interpreter, runs the payload ----------------------

@test "verdict: what is said and how it ends" {
	become --backoff 70s..70s -- sh <<'.'
acked | exit 0
acked | echo run one >&3; echo whatever x >&3; printf 'done two words' >&3
acked | echo done a >&3; echo err b >&3
acked | echo done >&3; exec 3>&- 4<&-
rejected 1: killed by SIGKILL | kill -KILL $$
rejected 1: größer ☃ | echo fails größer ☃ >&3; exit 3
rejected 1: a | echo err b >&3; echo done a >&3; kill -KILL $$
rejected 1: exit status 1 after done | echo done >&3; exec 3>&- 4<&-; exit 1
rejected 1: bad (unknown verb reject) | echo reject bad >&3
rejected 1: 0-x (exit status 77 after resend) | echo resend 0-x >&3; exit 77
rejected 1: to a human | exec 4<&-; echo push to a human >&3
rejected 1: err | echo err x >&3; echo pause 60 >&3
delayed 60 1: 90-c | echo resend 60-b >&3; echo resend 90-c >&3
delayed 315360000 1: 99999999999999999999-x | echo resend 99999999999999999999-x >&3
delayed 70 1: exit status 75 | exit 75
delayed 70 1: exit status 126 | exit 126
delayed 70 1: sh: 1: no-such-command-anywhere: not found (exit status 127) | no-such-command-anywhere
ready 1:  | echo resend >&3
ready 1: 0-x | echo pause 0-x >&3
rejected 1: exit status 1 after pause | echo pause 60 >&3; exit 1
.
	# Nothing that is no verdict pauses.
	paused_within -2 -2
}

@test "verdict: --strict makes silence an error, and nothing else" {
	become --strict --backoff 70s..70s -- sh <<'.'
rejected 1: no final verb | exit 0
rejected 1: no final verb | exec 3>&- 4<&-
acked | echo done >&3
rejected 1: exit status 4 | exit 4
delayed 60 1:  | echo resend 60 >&3
delayed 70 1: exit status 75 | exit 75
.
}

@test "verdict: -v shows the last text of a done, a child's, too" {
	publish 'echo done a >&3; echo run later >&3' 'echo done >&3' '(echo done by a child >&3) & wait'
	run_mq 0 mq-consume -v -n 3 q -- sh
	assert_regex "$stderr" "q: [^ ]*: done: later"
	assert_regex "$stderr" "q: [^ ]*: done$(printf '\n')"
	assert_regex "$stderr" "done: by a child"
}

@test "verdict: more run lines than any pipe holds, and a text of the longest kind" {
	script s "$(command -v perl)" <<'.'
open(my $f, ">&=", 3);
print $f "run on and on and on\n" x 50000, "err \xc3\xa4", "\xe2\x98\x83" x 1000, "\n";
.
	# 1024 bytes, the last two of which are no character.
	judged "rejected 1: ä$(printf '☃%.0s' {1..340})??"
}

# --- resend ------------------------------------------------------------------------

@test "verdict: resend 0 goes to the end of the line" {
	run_mq 0 mq-publish q one two
	run_mq 75 mq-consume -n 1 q -- sh -c 'echo resend 0-x >&3'
	run_mq 0 mq-consume --drain -l q
	assert_output $'two\none'
}

@test "verdict: a due time is put on at the exit, not at the line" {
	mkfifo "$T/go"
	script s <<'.'
echo resend 5-x >&3
echo >"$T/said"
read -r _ <"$T/go"
.
	one
	start_mq mq-consume -n 1 q -- "$T/s"
	eventually 10 test -e "$T/said"
	# Said, but without effect so far.
	assert_equal "$(held q)" "0 0 1 0"
	assert_equal "$(redis lindex "$(redis keys '*unacked')" 0 | header Mq-Attempt)" ""
	echo >"$T/go"
	ends_with 75
	fate_is "delayed 5 1: 5-x"
}

@test "verdict: for RQ the limit stops only retries; the run itself always happens" {
	printf '\377\0\276\276J{"Mq-Attempt":["99"]}\nx' |
		redis -x lpush 'rmq::queue::[q]::ready'
	run_mq 0 mq-consume --rq --work-dir "$T/w" -n 1 q -- sh -c 'echo done >&3'
	held_is q "0 0 0 0"
}

# tick_of: of the one delayed message: its score, its tick and attempts.
tick_of() {
	redis eval 'local m = redis.call("ZRANGE", "rmq::queue::[q]::delayed", 0, 0, "WITHSCORES")
		local h = cjson.decode(m[1]:match("J([^\n]*)", 33))
		return string.format("%.15g %s %s", m[2] - 2 ^ 50, h["Mq-From-Tick"][1],
			h["Mq-Attempt"][1])' 0
}

# ticked N WANT: the clock is at N, unless that is "-"; then the message wants the next tick.
ticked() {
	[ "$1" = - ] || run_mq 0 mq-publish --tick "$1" q
	run_mq 75/1 mq-consume -n 1 --attempts 3 q -- sh -c 'echo resend tick-more to come >&3'
	[[ $2 == rejected* ]] && fate_is "$2" || assert_equal "$(tick_of)" "$2"
}

@test "verdict: resend tick waits for the next tick, and is an attempt" {
	run_mq 0 mq-publish --tick 41 q
	one
	ticked - "42 42 1"
	assert_equal "$(element q delayed | header Mq-Error)" "tick-more to come"
	run_mq 0 mq-consume --drain q -- true
	assert_equal "$(held q)" "0 1 0 0"
	ticked 42 "43 43 2"
	ticked 50 "rejected 3: attempts exhausted: tick-more to come"
	redis flushall >/dev/null
	# In a queue that never had one, for the first.
	one
	ticked - "1 1 1"
	redis flushall >/dev/null
	one --until-tick 4
	ticked 3 "4 4 1"
	ticked 4 "rejected 2: no next tick"
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
	one
	start_mq mq-consume -n 2 q -- "$T/s"
	eventually 10 test -e "$T/started"
	# Known or not yet, when it ends: the first tick has come.
	run_mq 0 mq-publish --tick 1 q
	echo >"$T/go"
	eventually 10 lines_reach "$T/runs" 1
	eventually 10 eval '[[ $(held q) != "0 0 1 0" ]]'
	run_mq 0 mq-publish --tick 2 q
	ends_with 0
	assert_equal "$(<"$T/runs")" $'1\n2'
	assert_equal "$(held q)" "0 0 0 0"
}

# --- pause ------------------------------------------------------------------------------

# paused_within LOW HIGH: milliseconds; -1 is for ever, and -2 not at all.
paused_within() {
	local ms
	ms=$(redis pttl 'rmq::queue::[q]::paused')
	echo "paused: $ms"
	((ms >= $1 && ms <= $2))
}

@test "verdict: pause resends the message and pauses the queue, after the only attempt, too" {
	become -- sh <<<'delayed 60 1: 60-no disk | echo pause 60-no disk >&3'
	paused_within 20000 60000
	redis flushall >/dev/null
	become --attempts 1 -- sh <<<'rejected 1: attempts exhausted: 60-x | echo pause 60-x >&3'
	paused_within 20000 60000
}

# paused_before LOW HIGH OPTION...: the queue is already paused when the run ends that
# pauses it for a minute.
paused_before() {
	redis flushall
	rm -f "$T/started"
	one
	start_mq mq-consume -n 1 q -- "$T/s"
	eventually 10 test -e "$T/started"
	run_mq 0 mq-pause "${@:3}" q
	echo >"$T/go"
	ends_within 10
	assert_equal "$status" 75
	assert_equal "$(held q)" "0 1 0 0"
	paused_within "$1" "$2"
}

@test "verdict: a pause does not end a longer one, and makes a shorter one longer" {
	mkfifo "$T/go"
	script s <<'.'
echo pause 60 >&3
echo >"$T/started"
read -r _ <"$T/go"
.
	paused_before 3000000 3600000 --for 1h
	paused_before 20000 60000 --for 10s
	paused_before -1 -1
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
	assert_equal "$(<"$T/started")" one
	wait "$pid"
	assert_equal "$(tail -n +2 "$T/started" | sort)" $'one\nthree\ntwo'
	assert_regex "$(<"$T/err")" "q: paused.*q: resumed"
	assert_equal "$(held q)" "0 0 0 0"
}

@test "verdict: exit 75 is a retry after a backoff that doubles, at random" {
	local before
	redis eval 'for n = 0, 29 do
		redis.call("LPUSH", "rmq::queue::[q]::ready", "\255\0\190\190J{\"Mq-Attempt\":[\"" ..
			({0, 2, 10})[n % 3 + 1] .. "\"]}\n" .. n)
		end' 0
	before=$((${EPOCHREALTIME/./} / 1000))
	run_mq 75 mq-consume -j 4 -n 30 --backoff 10s..1000s q -- sh -c 'exit 75'
	# Ten messages of one moment do not come back in one moment.
	redis eval 'local out = {}
		local m = redis.call("ZRANGE", "rmq::queue::[q]::delayed", 0, -1, "WITHSCORES")
		for i = 1, #m, 2 do
			local h = cjson.decode(m[i]:match("J([^\n]*)", 33))
			out[#out + 1] = string.format("%s %d %s", h["Mq-Attempt"][1],
				m[i + 1] - ARGV[1], h["Mq-Error"][1])
		end
		return out' 0 "$before" | awk -v took="$((${EPOCHREALTIME/./} / 1000 + 1 - before))" '
		BEGIN { low[1] = 10000; low[3] = 40000; low[11] = 500000 }
		{ print }
		$2 < low[$1] || $2 > took + 2 * low[$1] || $3$4$5 != "exitstatus75" { bad = 1 }
		$1 == 3 { if (!first) first = $2; last = $2 }
		END { exit bad || NR != 30 || last - first <= 4000 }'
}

@test "verdict: --retry-on err: every failure is tried again after the backoff" {
	become --retry-on err --strict --backoff 20s..20s -- sh <<'.'
delayed 20 1: exit status 1 | exit 1
delayed 20 1: killed by SIGSEGV | kill -SEGV $$
delayed 20 1: no luck | echo err no luck >&3
delayed 20 1: exit status 3 after done | echo done >&3; exit 3
delayed 20 1: x (no final verb) | echo run x >&3
delayed 20 1: exit status 127 | exit 127
delayed 20 1: exit status 75 | exit 75
delayed 20 1: no final verb | exit 0
.
	redis flushall
	become --retry-on err --backoff 20s..20s --timeout 2s -- sh <<'.'
delayed 20 1: timed out | exec sleep 60
.
}

@test "verdict: --retry-on err: in the end the attempts are exhausted" {
	one
	# A failure of another consumer's making counts.
	run_mq 75 mq-consume -n 1 q -- sh -c 'echo resend 0-bad 1 >&3'
	run_mq 1 mq-consume --idle 2s --retry-on err --attempts 3 \
		--backoff 1ms..5ms q -- sh -c 'echo "$MQ_ATTEMPT" >>"$T/runs"
			echo "err bad $MQ_ATTEMPT" >&3'
	assert_equal "$(<"$T/runs")" $'2\n3'
	fate_is "rejected 3: attempts exhausted: bad 3"
	assert_equal "$(redis hmget 'rmq::queue::[q]::counters' runs retried failed | xargs)" \
		"3 2 1"
	run_mq 0 mq-stats --id "$id" q
	assert_output --partial "0-bad 1"
	assert_output --partial "bad 2"
}

# --- descriptors ----------------------------------------------------------------------

@test "verdict: a grandchild that holds fd 3, in its own session, too, delays nobody, and is not heard" {
	# RQ freezes until it has gone.
	mkfifo "$T/hold"
	script s <<'.'
for as in "" setsid; do
	$as sh -c 'trap "" PIPE; echo >>"$T/there"; read -r _ <>"$T/hold"; echo done >&3
		echo >>"$T/said"' >/dev/null 2>&1 &
done
until [ "$(wc -l <"$T/there")" = 2 ]; do :; done 2>/dev/null
echo run x >&3
.
	judged "rejected 1: x (no final verb)" --strict
	printf '\n\n' >"$T/hold"
	eventually 10 lines_reach "$T/said" 2
	fate_is "rejected 1: x (no final verb)"
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
	for pid in $(<"$T/pids"); do
		eventually 10 gone "$pid"
	done
}

@test "verdict: done, and then still running, which costs nothing" {
	local end
	mkfifo "$T/go"
	script s <<'.'
echo done x >&3
exec 3>&- 4<&-
echo >"$T/said"
read -r code <"$T/go"
exit "$code"
.
	for end in '0 acked' '9 rejected 1: x (exit status 9 after done)'; do
		rm -f "$T/said"
		one
		start_mq mq-consume -n 1 q -- "$T/s"
		eventually 10 test -e "$T/said"
		# A loop on the end of the pipe would wake up all the time.
		at_rest
		assert_equal "$(held q)" "0 0 1 0"
		echo "${end%% *}" >"$T/go"
		ends_with "$(ends "$end")"
		fate_is "${end#* }"
	done
}

# --- scripts that cannot run --------------------------------------------------------

# broken_after N OPTION ...: a command that is broken after N messages of q.
broken_after() {
	local n=$1
	shift
	echo "$n" >"$T/left"
	run_mq 75 mq-consume --attempts 2 --backoff 10m..10m "$@" q -- sh -c '
		read -r left <"$T/left"
		echo "$((left - 1))" >"$T/left"
		[ "$left" -le 0 ] || exit 0
		exit 127'
}

@test "verdict: ten messages that the command cannot run count no attempt any more" {
	local said='exit status 127 for 10 messages in a row; resting, and counting no attempts'
	publish {1..40}
	broken_after 0 -n 9
	refute_regex "$stderr" resting
	broken_after 1 -n 10
	refute_regex "$stderr" resting
	broken_after 0 -n 12
	assert_regex "$stderr" "$said"
	assert_equal "$(grep -c resting <<<"$stderr")" 1
	assert_equal "$(redis zrange 'rmq::queue::[q]::delayed' 0 -1 | grep -c '"Mq-Attempt":\["0"')" 3
	assert_equal "$(redis zrange 'rmq::queue::[q]::delayed' 0 -1 | grep -c '"Mq-Attempt":\["1"')" 27
}

@test "verdict: one message that the command cannot run does not make the consumer rest" {
	run_mq 0 mq-publish q 'no-such-command-anywhere' 'echo x >>"$T/ran"'
	run_mq 1 mq-consume --idle 2s --backoff 1ms..1ms --attempts 12 q -- sh
	refute_regex "$stderr" resting
	assert_equal "$(held q)" "0 0 0 1"
	assert_regex "$(element q rejected | header Mq-Error)" \
		'^attempts exhausted: .*: not found \(exit status 127\)'
	assert_equal "$(cat "$T/ran")" x
}

@test "verdict: a script that cannot be run stops the consumer, and nothing is touched" {
	local bad before
	run_mq 0 mq-publish q one
	before=$(element q ready)
	echo 'exit 0' >"$T/plain"
	script s /no/such/interpreter </dev/null
	for bad in "$T/nothing" no-such-command-anywhere "$T/plain" "$T" "$T/s"; do
		run_mq 78 mq-consume q -- "$bad"
		assert_regex "$stderr" "^mq-consume: $bad: "
		assert_equal "$(held q) $(element q ready)" "1 0 0 0 $before"
	done
}

@test "verdict: a script that is removed, or stops being executable, while the consumer runs" {
	local end
	for end in 'rm "$0"' 'chmod a-x "$0"'; do
		run_mq 0 mq-publish q one two three
		echo "$end" | script s
		run_mq 78 mq-consume q -- "$T/s"
		# The first is done, the others are as they were.
		run_mq 0 mq-consume --drain --jsonl q
		assert_equal "$end: $(grep -oE '"attempt":[0-9]+|"payload":"[a-z]+"' <<<"$output" | xargs)" \
			"$end: attempt:1 payload:two attempt:1 payload:three"
	done
}

# says TEXT COMMAND [ARG...]: run once, it says err TEXT.
says() {
	redis flushall
	one
	run_mq 1 mq-consume -n 1 q -- "${@:2}"
	fate_is "rejected 1: $1"
}

@test "verdict: what \$0, its arguments and RQ_SCRIPT are" {
	mkdir "$T/a dir"
	echo 'echo "err $0 $#<$1><$2><$3> $RQ_SCRIPT $RQ_REALSCRIPT" >&3' | script "a dir/my script"
	ln -s "a dir/my script" "$T/link"
	says "$T/a dir/my script 3<one><><-x> $T/a dir/my script $T/a dir/my script" \
		"$T/a dir/my script" one "" -x
	# Behind a link, $0 is the script itself.
	says "$T/a dir/my script 0<><><> $T/link $T/a dir/my script" "$T/link"
	# A name in PATH, and a relative path.
	PATH=$T:$PATH says "$T/a dir/my script 0<><><> $T/link $T/a dir/my script" link
	cd "$T"
	run_mq 0 mq-publish q again
	run_mq 1 mq-consume -n 1 q -- ./link
	assert_regex "$(element q rejected | header Mq-Error)" " 0<><><> $T/(\./)?link "
	# Without #!, it is run by the shell.
	echo 'echo "err $0 $# $1" >&3' >"$T/plain"
	chmod +x "$T/plain"
	says "$T/plain 1 a b" "$T/plain" "a b"
}

@test "verdict: a link that is moved between two runs is honoured" {
	local n
	for n in 1 2; do
		mkdir "$T/$n"
		echo "echo $n"' >>"$T/runs"; ln -sfn 2 "$T/current"' | script $n/run
	done
	ln -s 1 "$T/current"
	publish one two
	run_mq 0 mq-consume -n 2 q -- "$T/current/run"
	assert_equal "$(<"$T/runs")" $'1\n2'
}

@test "verdict: a message with all its attempts behind it is rejected without a run" {
	local how
	script runs <<'.'
while read -r line || [ -n "$line" ]; do
	touch "$T/ran"
	echo done >&3
done
.
	for how in "" "--batch 2 -l" "--stream -l"; do
		run_mq 0 mq-publish q x
		run_mq 75 mq-consume -q -n 1 --backoff 0s..0s q -- sh -c 'exit 75'
		# shellcheck disable=SC2086 # words
		run_mq 1 mq-consume --drain --attempts 1 $how q -- "$T/runs"
		assert_regex "${stderr_lines[0]}" "rejected: attempts exhausted: exit status 75$"
		assert_equal "$(element q rejected | header Mq-Attempt)" 1
		assert_equal "$(element q rejected | header Mq-Error)" "attempts exhausted: exit status 75"
		assert [ ! -e "$T/ran" ]
	done
	# To be printed, a message needs no attempt.
	run_mq 0 mq-publish q x
	run_mq 75 mq-consume -q -n 1 --backoff 0s..0s q -- sh -c 'exit 75'
	prints x mq-consume -q --drain --attempts 1 q
}

@test "verdict: a count of attempts beyond all bounds is one past the last attempt" {
	local n
	for n in 1000000 9223372036854775807 18446744073709551616 "$(printf '9%.0s' {1..400})"; do
		printf '\377\0\276\276J{"Mq-Attempt":["%s"]}\nx' "$n" |
			redis -x lpush 'rmq::queue::[q]::ready' >/dev/null
		run_mq 1 mq-consume -q --drain --attempts 1000000 q -- touch "$T/ran"
		assert_equal "$(element q rejected | header Mq-Error)" "attempts exhausted"
	done
	assert [ ! -e "$T/ran" ]
	run_mq 0 mq-return -q q
	run_mq 1 mq-consume -q --drain --attempts 1 q -- sh -c 'exit 75'
	assert_equal "$(held q)" "0 0 0 4"
}
