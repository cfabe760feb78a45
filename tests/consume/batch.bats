#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-consume --batch: several messages for one script, and what it may say of
# all of them or of one.  Faults are in batch-faults.bats.

load ../helpers/server
load ../helpers/consume

setup() {
	common_setup
	# One line a batch: its queue, how many, and what it has.
	script note <<'S'
echo "$MQ_QUEUE $MQ_BATCH: $(paste -s -d ' ' -)" >>"$T/batches"
S
	# The same, and says what stands in $T/say.
	script says <<'S'
echo "$MQ_QUEUE $MQ_BATCH: $(paste -s -d ' ' -)" >>"$T/batches"
cat "$T/say" >&3
exit "$(cat "$T/status" 2>/dev/null || echo 0)"
S
	# The same, and ends when there is $T/go.
	script hold <<'S'
echo "$MQ_QUEUE $MQ_BATCH: $(paste -s -d ' ' -)" >>"$T/batches"
until [ -e "$T/go" ]; do sleep 0.02; done
S
	touch "$T/batches"
}

batches_are() {
	assert_equal "$(<"$T/batches")" "$(printf '%s\n' "$@")"
}

# Payload, attempts and reason of what is rejected, by payload.
rejected() {
	"$BUILD/mq-stats" --list rejected --jsonl q |
		jq -r '"\(.payload) \(.headers["Mq-Attempt"][0]) \(.headers["Mq-Error"][0])"' | sort
}

# What has become of each message, by payload: its state, of those that are delayed for how
# many seconds, and the reason of the rejected ones.
four_fates() {
	{
		fates | sed -E 's/^rejected [0-9]+: (.*) \| (\w+) \| .*/\2 \1/
			s/^(delayed [0-9.]+) .* \| (\w+) \| .*/\2 \1/'
		[ "$(held next)" = "0 0 0 0" ] ||
			"$BUILD/mq-stats" --list ready -l next | sed 's/$/ pushed/'
	} | sort -n
}

# become [OPTION...]: each line on stdin is "FATE; FATE; FATE; FATE | PROGRAM": four
# messages in one batch, for which the shell runs that program.
become() {
	local rows fates want=() i j
	mapfile -t rows
	script row <<'S'
read -r first
[ "$MQ_BATCH $((first % 4))" = "4 1" ] || exit 9
. "$T/row.$((first / 4))"
S
	for i in "${!rows[@]}"; do
		echo "${rows[i]#* | }" >"$T/row.$i"
		IFS=';' read -ra fates <<<"${rows[i]%% | *}"
		for j in 0 1 2 3; do
			[ "${fates[j]# }" = acked ] || want+=("$((4 * i + j + 1)) ${fates[j]# }")
		done
	done
	seq $((4 * ${#rows[@]})) | run_mq 0 mq-publish -q -l q
	run_mq 0/1/75 mq-consume --batch 4 -n $((4 * ${#rows[@]})) --backoff 1h..1h "$@" q -- "$T/row"
	assert_equal "$(four_fates)" "$(printf '%s\n' "${want[@]}")"
	redis flushall >/dev/null
}

# --- what a script gets -------------------------------------------------------

@test "batch: up to N messages of one queue, in their order" {
	publish {1..25}
	seq 1 3 | run_mq 0 mq-publish -l p
	run_mq 0 mq-consume --batch 10 --drain q p -- "$T/note"
	# p may have its turn while the answer to a claim of q is on its way.
	sort -s -k 1,1r "$T/batches" >"$T/sorted"
	mv "$T/sorted" "$T/batches"
	batches_are 'q 10: 1 2 3 4 5 6 7 8 9 10' \
		'q 10: 11 12 13 14 15 16 17 18 19 20' \
		'q 5: 21 22 23 24 25' 'p 3: 1 2 3'
	assert_equal "$(held q) $(held p)" "0 0 0 0 0 0 0 0"
	assert_equal "$(redis hget 'rmq::queue::[q]::counters' done)" 25
	assert_equal "$(redis hget 'rmq::queue::[q]::counters' runs)" 3
}

@test "batch: one message is a batch, too" {
	publish 1 2
	echo 'done #1 fine' >"$T/say"
	run_mq 0 mq-consume -v --batch 1 --drain q -- "$T/says"
	batches_are 'q 1: 1' 'q 1: 2'
	assert_equal "$(grep -c 'done: fine' <<<"$stderr")" 2
}

@test "batch: the environment is that of all, not of one" {
	local line
	run_mq 0 mq-publish -H 'X-Test: 1' -H 'traceparent: t' -P 1=one q a b
	export MQ_ID=outer MQ_BATCH=outer MQ_ATTEMPT=outer MQ_HEADER_X=outer
	run_mq 0 mq-consume --batch 5 --drain --attempts 7 q -- env
	for line in MQ_BATCH=2 MQ_QUEUE=q MQ_ATTEMPTS=7 MQ_WRITE=3 MQ_READ=4 RQ_WRITE=3 RQ_READ=4 \
		RQ_PIPE=3 "RQ_SCRIPT=$(command -v env)"; do
		assert_line "$line"
	done
	assert_line --partial RQ_HOST=http:
	assert_line --partial RQ_VER=
	refute_line --regexp '^(MQ_ID|MQ_ATTEMPT|MQ_PARAM.|MQ_HEADER_[^=]*|TRACEPARENT)='
	refute_line --regexp '^RQ_(MSG_ID|FULL_MSG_ID|ORIG_MSG_ID|COUNT|PARAM.|DEST.*)='
	# Without --batch, it is not there, whoever set it.
	run_mq 0 mq-publish q a
	run_mq 0 mq-consume --drain q -- env
	refute_line --partial MQ_BATCH=
}

@test "batch: payloads are bit-exact, empty ones and all bytes" {
	perl -e 'print length, ":$_," for "", join("", map chr, 0 .. 255), "\n", "\0", "1:a,", "\r\n", "",
		map { join "", map chr rand 256, 1 .. rand 3000 } 1 .. 50' >"$T/sent"
	run_mq 0 mq-publish -q --netstring q <"$T/sent"
	run_mq 0 mq-consume --batch 20 --netstring --drain q -- sh -c 'cat >>"$T/got"'
	cmp "$T/sent" "$T/got"
	run_mq 0 mq-publish -q --netstring q <"$T/sent"
	run_mq 0 mq-consume --batch 20 --jsonl --drain q -- sh -c 'cat >>"$T/json"'
	"$BUILD/mq-publish" -q --jsonl r <"$T/json"
	"$BUILD/mq-consume" --drain --netstring r | cmp "$T/sent"
	# Lines and NULs carry empty ones.
	run_mq 0 mq-publish -q q '' a '' '' b ''
	run_mq 0 mq-consume --batch 9 --drain q -- od -An -c
	assert_equal "$(tr -d ' \n' <<<"$output")" '\na\n\n\nb\n\n'
	run_mq 0 mq-publish -q q '' a $'x\ny' ''
	run_mq 0 mq-consume --batch 9 -0 --drain q -- od -An -c
	assert_equal "$(tr -d ' \n' <<<"$output")" '\0a\0x\ny\0\0'
}

@test "batch: what the framing cannot carry is rejected, the others run" {
	run_mq 0 mq-publish -q q a $'two\nlines' b $'\n' c
	run_mq 1 mq-consume --batch 5 --drain q -- "$T/note"
	batches_are 'q 3: a b c'
	assert_regex "$stderr" 'more than one line, which --lines cannot carry'
	assert_equal "$(held q)" "0 0 0 2"
	element q rejected | header Mq-Error | grep -q 'more than one line'
	printf 'a\0b:c' | run_mq 0 mq-publish -q q
	run_mq 0 mq-publish -q q d
	run_mq 1 mq-consume --batch 4 -0 --drain q -- sh -c 'echo "$MQ_BATCH: $(tr "\0" " ")"'
	assert_output '1: d '
	assert_regex "$stderr" 'a NUL byte, which --null cannot carry'
	# The numbers are those of what is there.
	run_mq 0 mq-purge -q --all --force q
	run_mq 0 mq-publish -q q $'x\ny' a b c
	echo 'err #2 no' >"$T/say"
	run_mq 1 mq-consume --batch 4 --drain q -- "$T/says"
	assert_regex "$(payloads rejected q)" '(^| )b$'
	# Nothing but such: no script runs.
	run_mq 0 mq-publish -q q $'x\ny' $'x\nz'
	: >"$T/batches"
	run_mq 1 mq-consume --batch 4 --drain q -- "$T/note"
	assert_equal "$(cat "$T/batches")" ''
}

@test "batch: bad headers and expired messages do not count" {
	printf '\377\0\276\276J{bad\nx' | redis -x lpush 'rmq::queue::[q]::ready'
	run_mq 0 mq-publish -q q a
	run_mq 0 mq-publish -q -e 1ms q late
	run_mq 0 mq-publish -q q b
	tick
	run_mq 1 mq-consume --batch 4 --drain q -- "$T/note"
	batches_are 'q 2: a b'
	assert_equal "$(held q)" "0 0 0 2"
}

# --- what it says -------------------------------------------------------------

@test "batch: a verb for all" {
	become --push next <<'.'
acked; acked; acked; acked | echo done >&3
acked; acked; acked; acked | true
no good; no good; no good; no good | echo err no good >&3
delayed 100; delayed 100; delayed 100; delayed 100 | echo resend 100-later >&3
pushed; pushed; pushed; pushed | echo push on >&3
acked; acked; acked; acked | echo relayed >&3
.
	become <<<'on; on; on; on | echo push on >&3'
}

@test "batch: a verb for one, and the rest follows" {
	# The plain verb is for what is left, before and after.
	become --push next <<'.'
acked; bad; acked; acked | echo 'err #2 bad' >&3
err; err; acked; err | printf 'done #3 fine\nerr\n' >&3
err; err; acked; err | printf 'err\ndone #3 fine\n' >&3
pushed; delayed 100; no; acked | printf 'push #1\nresend #2 100\nerr #3 no\n' >&3
acked; acked; acked; delayed 100 | printf 'run #1 half\nrun #2 half\ndone #1\nresend #4 100' >&3
acked; acked; acked; acked | printf 'run half\ndone #1\ndone #2\n' >&3
.
	# The rest was silent.
	become --strict <<'.'
acked; acked; half (no final verb); half (no final verb) | printf 'run half\ndone #1\ndone #2\n' >&3
acked; acked; no final verb; no final verb | printf 'done #1\ndone #2\n' >&3
.
	publish {1..4}
	echo 'pause #4 50' >"$T/say"
	run_mq 75 mq-consume --batch 4 -n 4 q -- "$T/says"
	assert_equal "$(four_fates)" "4 delayed 50"
	assert [ "$(redis pttl 'rmq::queue::[q]::paused')" -gt 40000 ]
}

@test "batch: what was judged stands, whatever the exit status" {
	become <<'.'
acked; bad; exit status 1; exit status 1 | printf 'done #1\nerr #2 bad\n' >&3; exit 1
acked; delayed 50; exit status 3 after done; exit status 3 after done | printf 'done #1\nresend #2 50\ndone\n' >&3; exit 3
acked; delayed 3600; delayed 3600; delayed 3600 | echo 'done #1' >&3; exit 75
.
	become --retry-on err <<'.'
acked; delayed 3600; delayed 3600; delayed 3600 | printf 'done #1\nerr #4 bad\n' >&3; exit 75
.
}

@test "batch: a number that there is not makes the rest an error" {
	local n why='a verb names no message of the batch'
	for n in '#5' '#0' '#' '#x'; do
		printf "%s\n" "$why; acked; $why; $why | printf 'done #2 fine\\ndone $n\\ndone\\n' >&3"
	done >"$T/rows"
	echo "acked; acked; acked; acked | for n in 1 2 3 4 5; do echo \"done #\$n\"; done >&3" >>"$T/rows"
	become <"$T/rows"
}

@test "batch: a command that cannot be started stops the consumer; ten runs of 127 are a broken one" {
	publish {1..24}
	script none /no/such/interpreter </dev/null
	run_mq 78 mq-consume --batch 10 --prefetch 15 q -- "$T/none"
	assert_regex "$stderr" 'No such file.*stopping, the messages are returned'
	assert_equal "$(payloads ready)" "$(echo {1..24})"
	assert_equal "$(connections)" ''
	run_mq 75 mq-consume --batch 2 -n 24 --backoff 10m..10m q -- sh -c 'exit 127'
	assert_equal "$(grep -c resting <<<"$stderr")" 1
	assert_equal "$(attempts_of delayed)" 18
}

@test "batch: killed by a signal, all of it is tried again, but for an err" {
	become <<'.'
delayed 3600; bad; delayed 3600; delayed 3600 | printf 'done #1\nerr #2 bad\nresend #3 100\ndone\n' >&3; kill -SEGV $$
.
	# Their attempts count, and they are told.
	publish 5 6
	run_mq 1 mq-consume -v --batch 4 -n 4 --attempts 2 --backoff 0..0 q -- sh -c 'kill -KILL $$'
	assert_equal "$(rejected)" \
		$'5 2 attempts exhausted: killed by SIGKILL\n6 2 attempts exhausted: killed by SIGKILL'
	assert_equal "$(grep -c 'again in .*: killed by SIGKILL' <<<"$stderr")" 2
}

@test "batch: a dup names its message" {
	redis sadd rmq::queues other >/dev/null
	run_mq 0 mq-publish -q q a b c
	script asks /bin/bash <<'S'
verb=$1
for d in "${@:2}"; do
	echo "dup $d" >&3
	read -r answer <&4
	echo "$answer" >>"$T/answers"
done
echo "$verb" >&3
S
	run_mq 1 mq-consume --batch 4 --drain q -- "$T/asks" 'err #3 no' '#2 0-x-other' 0-x-other \
		'#4 0-x-other' '#3 0-x-nowhere' '#1x 0-x-other'
	run cat "$T/answers"
	assert_line -n 0 -e '^ok [0-9A-Za-z]{32}$'
	assert_line -n 1 'fail dup failed - message number missing: dup #N ...'
	assert_line -n 2 'fail dup failed - no message has that number'
	assert_line -n 3 -e "^fail couldn't connect to queue - nowhere"
	assert_line -n 4 'fail dup failed - no message has that number'
	assert_equal "$(payloads ready other)" b
	# In a batch of one there is only one.
	run_mq 0 mq-publish -q q d
	: >"$T/answers"
	run_mq 0 mq-consume --batch 4 --drain q -- "$T/asks" 'done #1' 0-x-other '#1 0-x-other' \
		'#2 0-x-other'
	assert_equal "$(cut -d ' ' -f 1 "$T/answers" | paste -s -d ' ' -)" 'ok ok fail'
	assert_equal "$(payloads ready other)" 'b d d'
}

# --- waiting for company ------------------------------------------------------

@test "batch-wait: the first message waits for others, until it is full" {
	start_mq mq-consume --batch 3 --batch-wait 1h q -- "$T/note"
	publish 1
	eventually 5 state_is q "0 0 1 0 1"
	publish 2
	eventually 5 state_is q "0 0 2 0 1"
	assert_equal "$(cat "$T/batches")" ''
	publish {3..7}
	eventually 5 lines_reach "$T/batches" 2
	eventually 5 state_is q "0 0 1 0 1"
	batches_are 'q 3: 1 2 3' 'q 3: 4 5 6'
	# What it holds goes back.
	stop_mq
	assert_equal "$(payloads ready q)" 7
}

@test "batch-wait: not without the option, nor longer than it says after the first" {
	local before
	start_mq mq-consume --batch 100 q -- "$T/note"
	eventually 5 joined
	publish 1
	eventually 5 lines_reach "$T/batches" 1
	stop_mq
	before=${EPOCHREALTIME/./}
	start_mq mq-consume --batch 100 --batch-wait 6s q -- "$T/note"
	publish 1
	eventually 5 state_is q "0 0 1 0 1"
	publish 2
	eventually 5 lines_reach "$T/batches" 2
	assert [ $((${EPOCHREALTIME/./} - before)) -ge 6000000 ]
	batches_are 'q 1: 1' 'q 2: 1 2'
	stop_mq
}

@test "batch-wait: it ends when nothing more comes" {
	publish {1..5}
	run_mq 0 mq-consume --batch 3 --batch-wait 1h --drain q p -- "$T/note"
	batches_are 'q 3: 1 2 3' 'q 2: 4 5'
	publish {1..5}
	: >"$T/batches"
	run_mq 0 mq-consume --batch 3 --batch-wait 1h -n 4 q -- "$T/note"
	batches_are 'q 3: 1 2 3' 'q 1: 4'
	assert_equal "$(payloads ready q)" 5
	# And what comes later is not waited for with --drain.
	publish 1
	run_mq 0 mq-publish -q -d 1h q later
	: >"$T/batches"
	run_mq 0 mq-consume --batch 3 --batch-wait 1h --drain q -- "$T/note"
	batches_are 'q 2: 5 1'
}

# Whether no tick came between USR1 and the start of what waited.
usr1_ends_it() {
	local beat
	: >"$T/batches"
	publish 1
	start_mq mq-consume --batch 3 --batch-wait 1h q -- "$T/note"
	eventually 5 state_is q "0 0 1 0 1"
	beat=rmq::connection::$(connections)::heartbeat
	tick
	redis expire "$beat" 30 >/dev/null
	kill -USR1 "$pid"
	eventually 5 lines_reach "$T/batches" 1
	eventually 5 state_is q "0 0 0 0 1"
	! ttl_above 30 "$beat"
}

@test "batch-wait: USR1 ends it at once" {
	for _ in {1..20}; do
		if usr1_ends_it; then
			stop_mq
			return 0
		fi
		stop_mq
	done
	false
}

@test "batch-wait: a queue that waits does not keep another one" {
	start_mq mq-consume --batch 3 --batch-wait 1h q p -- "$T/note"
	publish {1..2}
	eventually 5 state_is q "0 0 2 0 1"
	seq 1 10 | run_mq 0 mq-publish -l p
	eventually 5 lines_reach "$T/batches" 3
	publish 3
	eventually 5 lines_reach "$T/batches" 4
	batches_are 'p 3: 1 2 3' 'p 3: 4 5 6' 'p 3: 7 8 9' 'q 3: 1 2 3'
	stop_mq
	assert_equal "$(held p)" "1 0 0 0"
}

@test "batch-wait: whose time is over has its turn, though others are full" {
	publish 1
	seq 1 40 | run_mq 0 mq-publish -l p
	# Time enough for the first batch of p to begin.
	start_mq mq-consume --batch 4 --batch-wait 3s q p -- "$T/hold"
	eventually 10 lines_reach "$T/batches" 1
	tick
	tick
	tick
	touch "$T/go"
	eventually 10 lines_reach "$T/batches" 2
	# Of those that follow, none may write meanwhile.
	stop_mq KILL
	sed -i '3,$d' "$T/batches"
	batches_are 'p 4: 1 2 3 4' 'q 1: 1'
}

# --- with other options -------------------------------------------------------

@test "batch: --rate counts messages, and a batch starts whole" {
	publish {1..60}
	# 60 at 40/s, the last 20 not waited for.
	no_sooner 800 run_mq 0 mq-consume --batch 20 --rate 40/s --drain q -- "$T/note"
	assert_equal "$(wc -l <"$T/batches")" 3
	# With a wait, it fills it.
	: >"$T/batches"
	publish {1..45}
	no_sooner 850 run_mq 0 mq-consume --batch 15 --batch-wait 1h --rate 30/s -n 45 q -- "$T/note"
	assert_equal "$(cut -d : -f 1 "$T/batches" | uniq -c | xargs)" '3 q 15'
	: >"$T/batches"
	publish {1..40}
	no_sooner 1400 run_mq 0 mq-consume --batch 10 --rate-shared 20/s:10 --drain q -- "$T/note"
	assert_equal "$(cut -d : -f 2 "$T/batches" | xargs)" "$(seq 40 | xargs)"
}

@test "batch: --rest counts a batch once" {
	publish {1..6}
	echo 'err' >"$T/say"
	no_sooner 400 run_mq 1 mq-consume --batch 2 --rest 200ms..200ms --drain q -- "$T/says"
	assert_equal "$(held q)" "0 0 0 6"
	# One good message in it is enough.
	publish {7..12}
	printf 'done #1\nerr\n' >"$T/say"
	run_mq 1 mq-consume --batch 2 --rest 1h..1h --drain q -- "$T/says"
}

@test "batch: --attempts, --backoff and --retry-on err, for each message" {
	publish {1..3}
	printf 'err #2 bad\n' >"$T/say"
	run_mq 1 mq-consume --batch 3 -n 5 --retry-on err \
		--attempts 3 --backoff 10ms..20ms -v q -- "$T/says"
	# It came back alone, as number 1.
	batches_are 'q 3: 1 2 3' 'q 1: 2' 'q 1: 2'
	assert_equal "$(rejected)" \
		'2 3 attempts exhausted: #2 bad'
	run_mq 0 mq-purge -q --all --force q
	publish {1..2}
	: >"$T/say"
	echo 75 >"$T/status"
	run_mq 1 mq-consume --batch 3 -n 4 --attempts 2 --backoff 10ms..20ms \
		q -- "$T/says"
	assert_equal "$(rejected)" \
		"$(printf '%d 2 attempts exhausted: exit status 75\n' 1 2)"
}

@test "batch: --log-dir, and stderr in the history of each" {
	local n
	publish {1..3}
	script loud <<'S'
echo to stdout
echo to stderr >&2
echo 'done #1' >&3
exit 4
S
	run_mq 1 mq-consume --batch 3 --log-dir "$T" --drain q -- "$T/loud"
	run sed -E 's/^--- .* batch/--- batch/; s/after .*/after/' "$T/q.log"
	assert_output "--- batch of 3: $T/loud
to stdout
to stderr
--- batch of 3: exit status 4 after"
	publish 1 2
	run_mq 1 mq-consume --batch 3 --drain q -- "$T/loud"
	assert_equal "$(grep -c '^to stderr' <<<"$stderr")" 1
	for n in 0 1 2; do
		assert_regex "$(element q rejected $n)" 'to stderr'
		assert_regex "$(element q rejected $n)" 'exit status 4'
	done
}

@test "batch: what became of each is told to who waits, and kept" {
	local n
	for n in 1 2 3; do
		"$BUILD/mq-publish" --wait=300s q $n >"$T/wait.$n" 2>"$T/why.$n" \
			3>&- &
		eventually 5 held_is q "$n 0 0 0"
	done
	run_mq 0 mq-publish -i q 4
	id=$output
	printf 'done #1 fine\nerr #2 bad\ndone\n' >"$T/say"
	run_mq 1 mq-consume --batch 4 --drain --keep 1h -v q -- "$T/says"
	run_mq 0 mq-stats --id "$id"
	assert_regex "$output" 'done'
	wait
	assert_equal "$(cat "$T/wait.1")" fine
	assert_equal "$(cat "$T/wait.2")" bad
	grep -q 'rejected: bad' "$T/why.2"
}

@test "batch: keys are held until their message is settled" {
	run_mq 0 mq-publish -q -k a --unique done q a
	run_mq 0 mq-publish -q -k b --unique done q b
	printf 'err #1 no\nresend #2 0\n' >"$T/say"
	run_mq 1 mq-consume --batch 2 -n 2 q -- "$T/says"
	run_mq 1 mq-publish -k b --unique done q b
	run_mq 0 mq-consume --batch 2 -n 1 q -- "$T/note"
	run_mq 0 mq-publish -k b --unique done q b
}

@test "batch: -n takes exactly so many, whatever else" {
	for args in '' '-j 4' '--prefetch 50' '--batch-wait 1h' \
		'-j 3 --prefetch 7 --batch-wait 10ms'; do
		redis flushall >/dev/null
		: >"$T/batches"
		publish {1..100}
		# shellcheck disable=SC2086 # several words
		run_mq 0 mq-consume --batch 8 -n 27 $args q -- "$T/note"
		assert_equal "$(cut -d : -f 2 "$T/batches" | tr ' ' '\n' |
			sort -n | xargs)" "$(seq 27 | xargs)"
		assert_equal "$(payloads ready q)" "$(seq 28 100 | xargs)"
	done
}

@test "batch: several at once, each of its own" {
	publish {1..600}
	run_mq 0 mq-consume --batch 30 -j 4 --drain q -- "$T/note"
	assert_equal "$(cut -d : -f 2 "$T/batches" | tr ' ' '\n' | sort -n |
		xargs)" "$(seq 600 | xargs)"
	publish {1..40}
	start_mq mq-consume --batch 10 -j 3 --prefetch 5 q -- "$T/hold"
	eventually 5 state_is q "5 0 35 0 1"
	kill -INT "$pid"
	eventually 5 state_is q "10 0 30 0 1"
	stop_mq INT 130
	assert_equal "$(held q)" "40 0 0 0"
}

@test "batch: 30,000 messages in one, among large ones, which takes several claims" {
	perl -e 'print $_ % 10 x 300000, "\n" for 1 .. 10; print "$_\n" for 11 .. 30000' |
		run_mq 0 mq-publish -q -l q
	script many /usr/bin/perl <<'S'
my ($n, $ok) = (0, 1);
open(my $say, ">&=", 3) or die;
while (<STDIN>) {
	$n++;
	print $say $n % 3 ? "done #$n\n" : "push #$n\n" if $n % 2;
	$ok = 0 if $_ ne ($n <= 10 ? $n % 10 x 300000 : $n) . "\n";
}
open(my $out, ">>", "$ENV{T}/batches") or die;
print $out "$ENV{MQ_BATCH} $n $ok\n";
S
	run_mq 0 mq-consume --batch 100000 --push next --drain q -- "$T/many"
	batches_are '30000 30000 1'
	assert_equal "$(held q)" "0 0 0 0"
	assert_equal "$(redis llen 'rmq::queue::[next]::ready')" 5000
	assert_equal "$(redis hget 'rmq::queue::[q]::counters' done)" 30000
}
