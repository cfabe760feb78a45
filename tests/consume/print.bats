# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-consume without a command: what is read of it is done, and nothing else.
#
# Lines of 1000 bytes fill a pipe with 65 of them, and 400 that have been read
# make mq-consume write that far ahead.

load ../helpers/server
load ../helpers/consume

# lines N: published raw, each of 1000 bytes with its newline.
lines() {
	seq -f '%0999.0f' "$1" | "$BUILD/mq-publish" -q --raw -l q
}

# What is ready, in its order.
ready_lines() {
	redis lrange 'rmq::queue::[q]::ready' 0 -1 | tac | sed 's/^0*//; /^$/d'
}

# ready_from N TO: exactly these are ready, in their order, and nothing else is
# anywhere.
ready_from() {
	ready_lines | cmp - <(seq "$1" "$2")
	assert_equal "$(held q)" "$(($2 - $1 + 1)) 0 0 0"
	assert_equal "$(redis keys 'rmq::connection*')" ""
}

# piped READER ARGUMENT...: what the shell makes of mq-consume's output; $status is that
# of mq-consume.
piped() {
	local reader=$1
	shift
	run --separate-stderr bash -c 'timeout 120 "$@" | '"$reader"'; exit ${PIPESTATUS[0]}' \
		. "$BUILD/mq-consume" "$@"
}

# into_pipe ARGS...: prints into a pipe, which is also our descriptor 8.
into_pipe() {
	mkfifo "$T/pipe"
	exec 8<>"$T/pipe"
	"$BUILD/mq-consume" "$@" >"$T/pipe" 2>"$T/err" 8>&- 3>&- &
	pid=$!
}

# into_file ARGS...: prints into $T/got, by a cat, which is $reader.
into_file() {
	rm -f "$T/pipe"
	mkfifo "$T/pipe"
	: >"$T/got"
	cat <"$T/pipe" >"$T/got" 3>&- &
	reader=$!
	"$BUILD/mq-consume" "$@" >"$T/pipe" 2>"$T/err" 3>&- &
	pid=$!
}

# both_ended: sets $status, of the consumer.
both_ended() {
	ends_within 60
	wait "$reader"
}

# take FIRST LAST: what is read next is these lines.
take() {
	timeout 120 head -c $((($2 - $1 + 1) * 1000)) <&8 | sed 's/^0*//' |
		cmp - <(seq "$1" "$2")
}

# The payload that comes next.
next() {
	redis lindex 'rmq::queue::[q]::ready' -1 | tail -n 1 | sed 's/^0*//'
}

in_hand() {
	test "$(held q | cut -d ' ' -f 3)" "$1" "$2"
}

# --- head -------------------------------------------------------------------------

@test "print: | head takes what it prints, of few messages and of many" {
	local n mode
	for n in 5 6 200 20000; do
		for mode in '' --drain '-n 300'; do
			redis flushall >/dev/null
			seq "$n" | "$BUILD/mq-publish" -q --raw -l q
			# shellcheck disable=SC2086 # a mode is an option or two
			piped 'head -n 5' -l $mode q
			assert_success
			assert_output "$(seq 5)"
			[ "$n" = 5 ] || ready_from 6 "$n"
			assert_equal "$(held q | cut -d ' ' -f 2-)" "0 0 0"
		done
	done
}

@test "print: | head of messages without a frame, and of large ones" {
	run_mq 0 mq-publish --raw q a b c d e
	piped 'head -c 3' q
	assert_output abc
	assert_equal "$(ready_lines | xargs)" "d e"
	redis flushall >/dev/null
	for i in 1 2 3 4; do
		head -c 300000 /dev/zero | tr '\0' "$i" | "$BUILD/mq-publish" --raw q
	done
	# Of the third one, only a part.
	piped 'head -c 700000 | wc -c' q
	assert_output 700000
	assert_equal "$(held q)" "2 0 0 0"
	assert_equal "$(ready_lines | head -c 3)" 333
}


@test "print: what is acked is read, whatever else the messages have, and if they are empty" {
	seq 300 | sed 's/.*/{"payload":"&","headers":{"X-A":"b","Mq-Key":"&","Mq-Group":"&"}}/' |
		"$BUILD/mq-publish" -q --jsonl q
	piped 'head -n 5' -l q
	assert_output "$(seq 5)"
	assert_equal "$(held q)" "295 0 0 0"
	assert_equal "$(redis hkeys 'rmq::queue::[q]::locks' | grep -c .)" 590
	piped 'sed "s/.*payload//" | tr -dc "0-9\n"' --drain --jsonl q
	assert_output "$(seq 6 300)"
	assert_equal "$(redis hlen 'rmq::queue::[q]::locks')" 0
	yes '' | head -n 3000 | "$BUILD/mq-publish" -q -l q
	piped 'wc -c' --drain q
	assert_output 0
	yes '' | head -n 3000 | "$BUILD/mq-publish" -q --raw -l q
	piped 'wc -c' --drain -0 q
	assert_output 3000
	assert_equal "$(held q)" "0 0 0 0"
}

@test "print: a bad header among them is rejected, the others are printed" {
	local element
	for element in a '\377\0\276\276J{"Mq-Id":["x"]' b '\377\0\276\276Jno end' c \
		'\377\0\276\276J{"Mq-Id":["0000000000000000000000000000000x"]}'; do
		# shellcheck disable=SC2059 # bytes
		printf "$element" | redis -x lpush 'rmq::queue::[q]::ready' >/dev/null
	done
	piped cat --drain -l q
	assert_output $'a\nb\nc'
	assert_equal "$(held q)" "0 0 0 3"
}

# --- readers that fail ------------------------------------------------------------

@test "print: a reader that closes at once, or goes away while there is nothing, ends it" {
	redis sadd rmq::queues q >/dev/null
	piped 'sleep 0.3' -l q
	assert_success
	lines 3000
	piped true -l q
	assert_success
	assert_output ""
	ready_from 1 3000
}

@test "print: a reader that is killed: what it has taken is done, all else is back" {
	cat >"$T/reader" <<-'EOF'
		import os, sys
		out, left = open(sys.argv[1], "wb", 0), int(sys.argv[2])
		while left > 0:
		    data = os.read(0, min(left, 30011))
		    out.write(data)
		    left -= len(data)
		os.kill(os.getpid(), 9)
	EOF
	lines 3000
	# In a line, in the beginning and at full speed.
	piped "python3 $T/reader $T/got 12345" -l q
	head -n 12 "$T/got" | sed 's/^0*//' | cmp - <(seq 12)
	ready_from 13 3000
	piped "python3 $T/reader $T/got 1500001" -l q
	head -n 1500 "$T/got" | sed 's/^0*//' | cmp - <(seq 13 1512)
	ready_from 1513 3000
}

@test "print: a reader that never reads: --drain does not end, costs little, loses nothing" {
	lines 500
	into_pipe --drain -l q
	eventually 10 in_hand -gt 10
	tick
	# Twenty looks a second, and the heartbeats.
	wakes_less_than 50
	run ! gone "$pid"
	exec 8>&-
	wait "$pid"
	ready_from 1 500
}

# wakes_less_than N: times a second.
wakes_less_than() {
	local since=${EPOCHREALTIME/./} stat=/proc/$pid/status before
	before=$(awk '/^voluntary/ {print $2}' "$stat")
	tick
	tick
	((($(awk '/^voluntary/ {print $2}' "$stat") - before) * 1000000 < $1 * (${EPOCHREALTIME/./} - since)))
}

@test "print: nothing is looked at when everything has been read" {
	seq 40 | "$BUILD/mq-publish" -l q
	into_pipe -l q
	timeout 120 head -c 111 <&8 | cmp - <(seq 40)
	eventually 5 held_is q "0 0 0 0"
	tick
	wakes_less_than 16
	stop_mq
}

# --- the end ------------------------------------------------------------------------

@test "print: TERM: what is in the pipe is waited for, at most for --grace, the rest is back at once" {
	lines 600
	into_pipe -l q
	take 1 400
	eventually 10 in_hand -eq 200
	kill -TERM "$pid"
	# About 65 lines, with the one that has begun.
	eventually 5 in_hand -le 67
	run ! gone "$pid"
	first=$(next)
	take 401 $((first - 1))
	ends_with 143
	((first > 450))
	ready_from "$first" 600
	# And nobody reads.
	rm "$T/pipe"
	into_pipe --grace 300ms -l q
	eventually 10 in_hand -gt 10
	stop_mq TERM 143
	ready_from "$first" 600
	assert_equal "$(cat "$T/err")" ""
}

@test "print: TERM in the middle of a message, and then its reader goes: an end at once" {
	local try since took
	for try in {1..30}; do
		head -c 200000 /dev/zero | run_mq 0 mq-publish --raw q
		into_pipe q
		head -c 1 <&8 >/dev/null
		kill -TERM "$pid"
		# The next tick is a second away.
		tick
		since=$(date +%s%3N)
		exec 8<&-
		wait "$pid" || true
		took=$(($(date +%s%3N) - since))
		assert_equal "$(held q)" "1 0 0 0"
		[ "$took" -ge 500 ] || return 0
		rm "$T/pipe"
		redis flushall >/dev/null
	done
	echo "it took $took ms" >&2
	return 1
}

@test "print: a second INT waits for nobody" {
	lines 100
	into_pipe -l q
	eventually 10 in_hand -gt 10
	kill -INT "$pid"
	eventually 5 in_hand -eq 1
	kill -INT "$pid"
	eventually 3 gone "$pid"
	ready_from 1 100
}

@test "print: TERM in the middle, at full speed: nothing lost, nothing double" {
	local n
	for n in 100 2000 8000; do
		lines 12000
		into_file -l q
		eventually 20 got_lines "$n"
		kill -TERM "$pid"
		both_ended
		n=$(($(stat -c %s "$T/got") / 1000))
		sed 's/^0*//' "$T/got" | cmp - <(seq "$n")
		ready_from $((n + 1)) 12000
		redis flushall >/dev/null
	done
}

got_lines() {
	(($(stat -c %s "$T/got" 2>/dev/null || echo 0) >= $1 * 1000))
}

@test "print: SIGKILL in the middle: what was not read comes back" {
	lines 8000
	into_pipe -l q
	take 1 3000
	# Most of what was read is acked: not many come a second time.
	eventually 20 eval 'read -r ready _ unacked _ <<<"$(held q)"; ((ready + unacked <= 6000))'
	dies
	run_mq 0 mq-clean
	first=$(next)
	((first <= 3001 && first > 2000))
	ready_lines | cmp - <(seq "$first" 8000)
}

@test "print: the server is killed in the middle, and comes back" {
	local i
	safe_server
	lines 8000
	into_file --drain -l q
	for i in 1 2 3; do
		eventually 20 got_lines $((i * 1500))
		server_kill
		server_run "${safe[@]}"
	done
	both_ended
	assert_equal "$status" 0
	# None is missing; some may be there twice.
	sort -u "$T/got" | sed 's/^0*//' | cmp - <(seq 8000)
	(($(wc -l <"$T/got") < 8000 + 3 * 3000))
	assert_equal "$(held q)" "0 0 0 0"
}

# --- what else is there ------------------------------------------------------------

@test "print: a pipe that cannot be opened once more" {
	local as=()
	# Root without its capabilities.
	[ "$(id -u)" != 0 ] || as=(setpriv --bounding-set=-all --inh-caps=-all --)
	seq 5000 | "$BUILD/mq-publish" -q --raw -l q
	mkfifo "$T/pipe"
	exec 8<>"$T/pipe" 9>"$T/pipe"
	chmod 0 "$T/pipe"
	run ! "${as[@]}" sh -c ': >/proc/self/fd/9'
	"${as[@]}" "$BUILD/mq-consume" --drain -l q >&9 2>"$T/err" 8>&- 9>&- 3>&- &
	pid=$!
	exec 9>&-
	timeout 120 head -c 10 <&8 | cmp - <(seq 5)
	eventually 5 in_hand -gt 0
	timeout 120 head -c $(($(seq 5000 | wc -c) - 10)) <&8 | cmp - <(seq 6 5000)
	wait "$pid"
	exec 8>&-
	assert_equal "$(held q)" "0 0 0 0"
}

@test "print: others who write to the same pipe; a file and /dev/null take everything" {
	lines 100
	# Before it, and in between.
	run bash -c '{ echo first; timeout 120 "$0" -l q; } | head -n 6 | sed "s/^0*//"' "$BUILD/mq-consume"
	assert_output "first
$(seq 5)"
	assert_equal "$(next)" 6
	# In writes so small that they are not torn.
	run bash -c '{ while echo other; do :; done & timeout 120 "$0" -n 35 -l q; kill $!; } |
		grep -v other | sed "s/^0*//"' "$BUILD/mq-consume"
	assert_output "$(seq 6 40)"
	"$BUILD/mq-consume" -n 30 -l q >"$T/got"
	sed 's/^0*//' "$T/got" | cmp - <(seq 41 70)
	"$BUILD/mq-consume" -n 10 -l q >/dev/null
	ready_from 81 100
}

@test "print: tiny messages that nobody reads take little memory" {
	seq 150000 | "$BUILD/mq-publish" -q -l q
	into_pipe -l q
	timeout 120 head -c 400000 <&8 >/dev/null
	eventually 10 in_hand -gt 1000
	tick
	in_hand -lt 10000
	[[ $BUILD == *address* ]] ||
		(($(awk '/^RssAnon/ {print $2}' "/proc/$pid/status") < 5632))
	kill -KILL "$pid"
}
