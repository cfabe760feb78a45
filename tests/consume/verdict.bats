#!/usr/bin/env bats
# What a script says and how it ends decide what becomes of its message: RQ's
# verdicts, with mq-consume and a real server, looked up in the raw keys.  The whole
# table of words and exit statuses is in tests/unit/test_verb.c.

load ../helpers/server

setup_file() {
	server_start
	# Not a wrapper that takes its time.
	PYTHON=$(python3 -c 'import sys; print(sys.executable)')
	export PYTHON
}

setup() {
	common_setup
	payload='the payload'
	before=$((${EPOCHREALTIME/./} / 1000))
}

# What has become of each message that is not acked, settled since $before:
# "STATE RUNS: REASON | PAYLOAD | ID", where STATE is rejected, ready, or delayed and
# the seconds.
fates() {
	redis eval 'local n, q, out = redis.call, "rmq::queue::[q]::", {}
		local t = n("TIME")
		local now = t[1] * 1000 + t[2] / 1000
		local function add(state, e, score)
			local json, payload = e:match("^\255%z\190\190J([^\n]*)\n(.*)$")
			local h = cjson.decode(json)
			local function first(name)
				return h[name] and h[name][1] or "none"
			end
			if score then
				-- The message says when its last run was.
				local at = 0
				for _, failure in ipairs(h["Mq-History"]) do
					at = math.max(at, cjson.decode(failure).at_ms)
				end
				local ms = h["Mq-Due"][1] - at
				local settled = score - ms
				state = state .. " " .. string.format("%.15g", ms / 1000)
				if settled < tonumber(ARGV[1]) or settled > now then
					state = state .. ", due at another time"
				end
			end
			out[#out + 1] = state .. " " .. first("Mq-Attempt") .. ": " ..
				first("Mq-Error") .. " | " .. payload .. " | " .. first("Mq-Id")
		end
		for _, k in ipairs(n("KEYS", "*::unacked")) do
			out[#out + 1] = n("LLEN", k) .. " unacked"
		end
		for _, state in ipairs({"ready", "rejected"}) do
			for _, e in ipairs(n("LRANGE", q .. state, 0, -1)) do
				add(state, e)
			end
		end
		local delayed = n("ZRANGE", q .. "delayed", 0, -1, "WITHSCORES")
		for i = 1, #delayed, 2 do
			add("delayed", delayed[i]:sub(33), delayed[i + 1])
		end
		table.sort(out)
		return table.concat(out, "\n")' 0 "$before"
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

publish() {
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
	publish
	run_mq "$(ends "$1")" mq-consume -n 1 "${@:2}" q -- "$T/s"
	fate_is "$1"
}

# --- rows: a shell, or another interpreter, runs the payload ----------------------

@test "verdict: what is said and how it ends, in sh" {
	become -- sh <<'.'
acked | exit 0
acked | echo done >&3
acked | echo run one >&3; echo whatever x >&3; echo done two words >&3
acked | echo done a >&3; echo err b >&3
acked | echo relayed http://x/q/y/1 >&3
acked | printf 'done nonewline' >&3
rejected 1: exit status 2 | exit 2
rejected 1: killed by SIGKILL | kill -KILL $$
rejected 1: by design | echo err by design >&3
rejected 1: größer ☃ | echo fails größer ☃ >&3; exit 3
rejected 1: a | echo err b >&3; echo done a >&3; kill -KILL $$
rejected 1: exit status 1 after done | echo done >&3; exit 1
rejected 1: killed by SIGTERM after done | echo done >&3; kill -TERM $$
rejected 1: exit status 127 after done | echo done >&3; exit 127
acked | echo run some >&3; echo run halfway >&3
rejected 1: exit status 3 | echo run >&3; exit 3
rejected 1: bad (unknown verb reject) | echo reject bad >&3
rejected 1: halfway (exit status 75 after unknown verb fial) | echo fial >&3; echo run halfway >&3; exit 75
rejected 1: 0-x (exit status 77 after resend) | echo resend 0-x >&3; exit 77
rejected 1: to a human | echo push to a human >&3
delayed 60 1: 90-c | echo resend 60-b >&3; echo resend 90-c >&3
delayed 120 1: 1_2_0-x | echo resend 1_2_0-x >&3
delayed 315360000 1: 99999999999999999999-x | echo resend 99999999999999999999-x >&3
ready 1: soon-please | echo resend soon-please >&3
ready 1:  | echo resend >&3
.
}

@test "verdict: --strict makes silence an error, and nothing else" {
	become --strict --backoff 70s..70s -- sh <<'.'
rejected 1: no final verb | exit 0
acked | echo done >&3
rejected 1: exit status 4 | exit 4
delayed 60 1:  | echo resend 60 >&3
delayed 70 1: exit status 75 | exit 75
.
}

@test "verdict: descriptors 3 and 4 are closed early" {
	become -- sh <<'.'
acked | exec 3>&- 4<&-
rejected 1: exit status 5 | exec 3>&- 4<&-; exit 5
acked | echo done >&3; exec 3>&- 4<&-
rejected 1: exit status 1 after done | echo done >&3; exec 3>&- 4<&-; exit 1
rejected 1: x | exec 4<&-; echo err x >&3
.
	redis flushall
	become --strict -- sh <<<'rejected 1: no final verb | exec 3>&- 4<&-'
}

@test "verdict: -v shows the last text of a done" {
	printf '%s\n' 'echo done a >&3; echo run later >&3' 'echo done >&3' |
		run_mq 0 mq-publish -l q
	run_mq 0 mq-consume -v -n 2 q -- sh
	assert_regex "$stderr" "q: [^ ]*: done: later"
	assert_regex "$stderr" "q: [^ ]*: done$(printf '\n')"
}

# --- lines and their bytes ------------------------------------------------------

@test "verdict: more run lines than any pipe holds, written at once" {
	script s "$PYTHON" <<'.'
import os
data = b'run on and on and on\n' * 50000 + b'err at last\n'
while data:
    data = data[os.write(3, data):]
.
	judged "rejected 1: at last"
}

@test "verdict: a long reason is cut to 1024 bytes, and stays UTF-8" {
	printf '%s\n' '"abcdefghij" x 1000' '"a", "\xc3\xa4" x 1000' |
		run_mq 0 mq-publish -l q
	run_mq 1 mq-consume -n 2 q -- perl -e 'open(F, ">&=", 3); print F "err ", eval <STDIN>'
	held_is q "0 0 0 2"
	redis --raw lrange 'rmq::queue::[q]::rejected' 0 -1 | "$PYTHON" -c '
import json, sys
lines = sys.stdin.buffer.read().split(b"\n")
wide, plain = (json.loads(lines[i][5:].decode("utf-8"))["Mq-Error"][0] for i in (0, 2))
assert plain == ("abcdefghij" * 103)[:1024], plain
assert wide.startswith("a\xe4\xe4\xe4"), wide
assert 1020 < len(wide.encode()) <= 1026, len(wide.encode())
assert set(wide[1:-1]) == {"\xe4"}, wide
assert lines[1].startswith(b"\"a\"") and lines[3].startswith(b"\"abc"), lines'
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
	publish
	start_mq mq-consume -n 1 q -- "$T/s"
	eventually 10 test -e "$T/said"
	# Said, but without effect so far.
	assert_equal "$(held q)" "0 0 1 0"
	assert_equal "$(redis lindex "$(redis keys '*unacked')" 0 | header Mq-Attempt)" ""
	assert_equal "$(redis exists 'rmq::queue::[q]::delayed')" 0
	before=$((${EPOCHREALTIME/./} / 1000))
	echo >"$T/go"
	ends_within 10
	assert_equal "$status" 75
	fate_is "delayed 5 1: 5-x"
}

@test "verdict: --attempts counts exit 75, too, and runs by other consumers" {
	publish
	for _ in 1 2 3; do
		run_mq 75/1 mq-consume --attempts 3 --backoff 0s..0s -n 1 q -- \
			sh -c 'echo >>"$T/runs"; exit 75'
	done
	assert_equal "$(wc -l <"$T/runs")" 3
	fate_is "rejected 3: attempts exhausted: exit status 75"
}

@test "verdict: the limit stops only retries; the run itself always happens" {
	printf '\377\0\276\276J{"Mq-Attempt":["99"]}\nx' |
		redis -x lpush 'rmq::queue::[q]::ready'
	run_mq 0 mq-consume -n 1 q -- sh -c 'echo done >&3'
	held_is q "0 0 0 0"
}

# --- resend tick --------------------------------------------------------------------------

# Of the one delayed message: its score, from tick and attempts.
waits_for() {
	redis eval 'local m = redis.call("ZRANGE", "rmq::queue::[q]::delayed", 0, 0, "WITHSCORES")
		local h = cjson.decode(m[1]:match("J([^\n]*)", 33))
		return string.format("%.15g %s %s", m[2] - 2 ^ 50, h["Mq-From-Tick"][1],
			h["Mq-Attempt"][1])' 0
}

resend_tick() {
	run_mq 75/1 mq-consume -n 1 "$@" q -- sh -c 'echo resend tick-more to come >&3'
}

@test "verdict: resend tick waits for the next tick, and is an attempt" {
	run_mq 0 mq-publish --tick 41 q
	publish
	resend_tick
	assert_equal "$(waits_for)" "42 42 1"
	assert_equal "$(element q delayed | header Mq-Error)" "tick-more to come"
	run_mq 0 mq-consume --drain q -- true
	assert_equal "$(held q)" "0 1 0 0"
	run_mq 0 mq-publish --tick 42 q
	resend_tick
	assert_equal "$(waits_for)" "43 43 2"
	run_mq 0 mq-publish --tick 50 q
	resend_tick
	assert_equal "$(waits_for)" "51 51 3"
}

@test "verdict: resend tick in a queue that never had a tick waits for the first" {
	publish
	resend_tick --attempts 2
	assert_equal "$(waits_for)" "1 1 1"
	# It runs at most --attempts times.
	run_mq 0 mq-publish --tick 1 q
	resend_tick --attempts 2
	fate_is "rejected 2: attempts exhausted: tick-more to come"
	assert_equal "$(element q rejected | header Mq-From-Tick)" 1
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
	assert_equal "$(<"$T/runs")" $'1\n2'
	assert_equal "$(held q)" "0 0 0 0"
}

settled_once() {
	[ -e "$T/runs" ] && [ "$(redis llen "$(redis keys '*unacked')")" = 0 ] ||
		[ "$(wc -l <"$T/runs")" = 2 ]
}

@test "verdict: resend tick behind the last tick is rejected" {
	publish --until-tick 4
	run_mq 0 mq-publish --tick 3 q
	resend_tick
	assert_equal "$(waits_for)" "4 4 1"
	run_mq 0 mq-publish --tick 4 q
	resend_tick
	fate_is "rejected 2: no next tick"
}

# --- pause ------------------------------------------------------------------------------

# paused_within LOW HIGH: milliseconds; -1 is for ever, and -2 not at all.
paused_within() {
	local ms
	ms=$(redis pttl 'rmq::queue::[q]::paused')
	echo "paused: $ms"
	((ms >= $1 && ms <= $2))
}

@test "verdict: pause resends the message and pauses the queue" {
	become -- sh <<<'delayed 60 1: 60-no disk | echo pause 60-no disk >&3'
	paused_within 20000 60000
}

@test "verdict: a pause of nothing, or with a bad exit, pauses nothing" {
	become -- sh <<'.'
ready 1:  | echo pause >&3
ready 1: 0-x | echo pause 0-x >&3
ready 1: soon | echo pause soon >&3
rejected 1: exit status 1 after pause | echo pause 60 >&3; exit 1
rejected 1: err | echo err x >&3; echo pause 60 >&3
.
	paused_within -2 -2
}

@test "verdict: the only attempt pauses, too" {
	become --attempts 1 -- sh <<'.'
rejected 1: attempts exhausted: 60-x | echo pause 60-x >&3
.
	paused_within 20000 60000
}

# paused_before LOW HIGH OPTION...: the queue is already paused when the run ends that
# pauses it for a minute.
paused_before() {
	redis flushall
	rm -f "$T/started"
	publish
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

# --- exit status 75 -----------------------------------------------------------------

@test "verdict: exit 75 is a retry after a backoff that doubles, at random" {
	local before after n=0
	local -A low=([1]=10 [3]=40 [11]=500) first last
	redis eval 'for n = 0, 29 do
		redis.call("LPUSH", "rmq::queue::[q]::ready", "\255\0\190\190J{\"Mq-Attempt\":[\"" ..
			({0, 2, 10})[n % 3 + 1] .. "\"]}\n" .. n)
		end' 0
	before=$((${EPOCHREALTIME/./} / 1000))
	run_mq 75 mq-consume -j 4 -n 30 --backoff 10s..1000s q -- sh -c 'exit 75'
	after=$((${EPOCHREALTIME/./} / 1000 + 1))
	while read -r attempt due error; do
		echo "attempt $attempt: due in $((due - before)) ms"
		assert_equal "$error" "exit status 75"
		((due - before >= low[$attempt] * 1000))
		((due - after <= low[$attempt] * 2000))
		: "${first[$attempt]:=$due}"
		last[$attempt]=$due
		n=$((n + 1))
	done < <(redis eval 'local out = {}
		local m = redis.call("ZRANGE", "rmq::queue::[q]::delayed", 0, -1, "WITHSCORES")
		for i = 1, #m, 2 do
			local h = cjson.decode(m[i]:match("J([^\n]*)", 33))
			out[#out + 1] = string.format("%s %d %s", h["Mq-Attempt"][1], m[i + 1],
				h["Mq-Error"][1])
		end
		return out' 0)
	assert_equal "$n" 30
	# Ten messages of one moment do not come back in one moment.
	((last[3] - first[3] > 4000))
}

# --- --retry-on err -----------------------------------------------------------------

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
	publish
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

@test "verdict: a grandchild that holds fd 3, or is in its own session, delays nobody" {
	# RQ freezes until it has gone.
	mkfifo "$T/hold"
	script s <<'.'
(echo $$ >>"$T/grandchildren"; read -r _ <>"$T/hold") >/dev/null 2>&1 &
setsid sh -c 'echo $$ >>"$T/grandchildren"; read -r _ <>"$T/hold"' >/dev/null 2>&1 &
until [ "$(wc -l <"$T/grandchildren")" = 2 ]; do :; done 2>/dev/null
echo err x >&3
.
	judged "rejected 1: x"
	# They wait still.
	printf '\n\n' >"$T/hold"
}

@test "verdict: what a grandchild says while the script lives counts" {
	echo '(echo done by a child >&3) & wait' | script s
	judged acked -v
	assert_regex "$stderr" "done: by a child"
}

@test "verdict: what a grandchild says after the script's exit does not" {
	mkfifo "$T/hold"
	script s <<'.'
(trap '' PIPE; read -r _ <>"$T/hold"; echo done >&3; echo >"$T/said") >/dev/null 2>&1 &
echo run x >&3
.
	judged "rejected 1: x (no final verb)" --strict
	echo >"$T/hold"
	eventually 10 test -e "$T/said"
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
	while read -r pid; do
		eventually 10 gone "$pid"
	done <"$T/pids"
}

@test "verdict: done, and then still running" {
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
		publish
		start_mq mq-consume -n 1 q -- "$T/s"
		eventually 10 test -e "$T/said"
		assert_equal "$(held q)" "0 0 1 0"
		echo "${end%% *}" >"$T/go"
		ends_within 10
		assert_equal "$status" "$(ends "$end")"
		fate_is "${end#* }"
	done
}

cpu_ticks() {
	local stat
	read -ra stat <"/proc/$pid/stat"
	echo $((stat[13] + stat[14]))
}

@test "verdict: fd 3 closed early does not keep the consumer busy" {
	local ticks
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
	ticks=$(cpu_ticks)
	tick
	tick
	(($(cpu_ticks) - ticks < 20))
	echo >"$T/go"
	wait "$pid"
}

# --- scripts that cannot run --------------------------------------------------------

ready() {
	redis lrange 'rmq::queue::[q]::ready' 0 -1
}

# stops_unchanged OPERAND...: `mq-consume q OPERAND...` ends with 78, and the queue is
# as it was.
stops_unchanged() {
	local was
	was=$(ready)
	run_mq 78 mq-consume "$@"
	assert_equal "$(ready)" "$was"
}

@test "verdict: exit 126 and 127 are tries like 75" {
	become --backoff 20s..20s -- sh <<'.'
delayed 20 1: exit status 126 | exit 126
delayed 20 1: sh: 1: no-such-command-anywhere: not found (exit status 127) | no-such-command-anywhere
delayed 20 1: x (exit status 126) | echo run x >&3; exit 126
.
	redis flushall
	run_mq 0 mq-publish q 'no-such-command-anywhere' 'echo x >>"$T/ran"'
	run_mq 1 mq-consume --idle 1s --backoff 1ms..1ms --attempts 3 q -- sh
	assert_equal "$(held q)" "0 0 0 1"
	assert_regex "$(element q rejected | header Mq-Error)" \
		'^attempts exhausted: .*: not found \(exit status 127\)'
	assert_equal "$(cat "$T/ran")" x
}

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
	seq 40 | run_mq 0 mq-publish -l q
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
	run_mq 0 mq-publish q a
	run_mq 1 mq-consume --idle 2s --backoff 1ms..1ms --attempts 12 q -- sh -c 'exit 126'
	refute_regex "$stderr" resting
	assert_equal "$(held q)" "0 0 0 1"
}

@test "verdict: a script that cannot be run stops the consumer, and nothing is touched" {
	run_mq 0 mq-publish q one
	stops_unchanged q -- "$T/nothing"
	assert_regex "$stderr" "^mq-consume: $T/nothing: No such file"
	stops_unchanged q -- no-such-command-anywhere
	assert_regex "$stderr" "no-such-command-anywhere: .*not found"
	echo 'exit 0' >"$T/plain"
	stops_unchanged q -- "$T/plain"
	stops_unchanged q -- "$T"
	script s /no/such/interpreter </dev/null
	stops_unchanged q -- "$T/s"
	assert_equal "$(held q)" "1 0 0 0"
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

# --- which script, by which name ------------------------------------------------------

# says TEXT COMMAND [ARG...]: run once, it says err TEXT.
says() {
	redis flushall
	publish
	run_mq 1 mq-consume -n 1 q -- "${@:2}"
	fate_is "rejected 1: $1"
}

@test "verdict: a script gets its own arguments, and no others" {
	echo 'echo "err $#<$1><$2><$3>" >&3' | script s
	says "3<one><><-x>" "$T/s" one "" -x
	says "0<><><>" "$T/s"
	# Without #!, it is run by the shell.
	echo 'echo "err $0 $# $1" >&3' >"$T/plain"
	chmod +x "$T/plain"
	says "$T/plain 1 a b" "$T/plain" "a b"
}

@test "verdict: what \$0 and RQ_SCRIPT are" {
	mkdir "$T/a dir"
	echo 'echo "err $0 $# $RQ_SCRIPT $RQ_REALSCRIPT" >&3' | script "a dir/my script"
	ln -s "a dir/my script" "$T/link"
	says "$T/a dir/my script 0 $T/a dir/my script $T/a dir/my script" "$T/a dir/my script"
	# Behind a link, $0 is the script itself.
	says "$T/a dir/my script 0 $T/link $T/a dir/my script" "$T/link"
	# A name in PATH, and a relative path.
	PATH=$T:$PATH says "$T/a dir/my script 0 $T/link $T/a dir/my script" link
	cd "$T"
	run_mq 0 mq-publish q again
	run_mq 1 mq-consume -n 1 q -- ./link
	assert_regex "$(element q rejected | header Mq-Error)" " 0 $T/(\./)?link "
}

@test "verdict: a link that is moved between two runs is honoured" {
	mkdir "$T/1" "$T/2"
	echo 'echo 1 >>"$T/runs"; ln -sfn 2 "$T/current"' | script 1/run
	script 2/run <<'.'
echo 2 >>"$T/runs"
ln -s new "$T/run.new"
mv "$T/run.new" "$0"
.
	echo 'echo new >>"$T/runs"' | script 2/new
	ln -s 1 "$T/current"
	run_mq 0 mq-publish q one two three
	# A release directory, and then the script itself.
	run_mq 0 mq-consume -n 3 q -- "$T/current/run"
	assert_equal "$(<"$T/runs")" $'1\n2\nnew'
}
