#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-publish: what arrives in the queue, byte for byte, and what is said when
# it does not.

load ../helpers/server
load feed

# --- looking into the queue ----------------------------------------------------

key() {
	echo "rmq::queue::[$1]::${2:-ready}"
}

count() {
	redis llen "rmq::queue::[$1]::ready"
}

count_is() {
	[ "$(count "$1")" = "$2" ]
}

count_above() {
	[ "$(count "$1")" -gt "$2" ]
}

delayed() {
	redis zcard "rmq::queue::[$1]::delayed"
}

delayed_is() {
	[ "$(delayed "$1")" = "$2" ]
}

# raw_element Q [INDEX]: its bytes; by default those of the oldest.
raw_element() {
	redis --raw lindex "$(key "$1")" "${2:--1}" | head -c -1
}

payload() {
	raw_element "$@" | tail -n +2
}

# The JSON of its header.
header_json() {
	raw_element "$@" | head -n 1 | tail -c +6
}

# The user's headers in a form that does not depend on their order.
headers() {
	header_json "$@" | python3 -IS -c 'import json, sys
h = json.load(sys.stdin)
del h["Mq-Id"]
print(json.dumps(h, sort_keys=True, ensure_ascii=False))'
}

# All payloads, oldest first.
payloads() {
	redis eval 'local p, all = {}, redis.call("LRANGE", KEYS[1], 0, -1)
		for i = #all, 1, -1 do
			p[#p + 1] = all[i]:match("\n(.*)")
		end
		return table.concat(p, "\n")' 1 "rmq::queue::[$1]::ready"
}

payloads_are() {
	[ "$(payloads "$1")" = "$2" ]
}

# The member of the delayed messages that falls due first: its bytes.
member() {
	redis --raw zrange "$(key "$1" delayed)" 0 0 | head -c -1
}

# scores Q: that of the delayed message that falls due last.
scores() {
	redis eval 'return redis.call("ZRANGE", KEYS[1], -1, -1, "WITHSCORES")[2]' 1 \
		"rmq::queue::[$1]::delayed"
}

later_than() {
	[ "$(now_ms)" -gt "$1" ]
}

# --- running the tool ----------------------------------------------------------

# The numbers of the last line on stderr.
accepted() {
	sed -nE '$s/^mq-publish: ([0-9]+) messages? accepted.*/\1/p' \
		"$T/err"
}

# Those that were accepted behind others that were refused, as memory may be free again.
behind() {
	sed -nE '$s/.* and ([0-9]+) behind those .*/\1/p;$s/.* accepted$/0/p' "$T/err"
}

# And how many more it may have been.
unsure() {
	sed -nE '$s/.* up to ([0-9]+) more$/\1/p;$s/.* accepted$/0/p' "$T/err"
}

without_sanitizer() {
	if nm -D "$BUILD/mq-publish" 2>/dev/null | grep -q __asan_init; then
		skip "a sanitizer needs memory of its own"
	fi
}

# --- messages ------------------------------------------------------------------

@test "publish: each operand is a message, the right end the oldest, and stdin is left alone" {
	run_mq 0 mq-publish jobs one 'two words' three <<<four
	assert_equal "$output$stderr" ""
	assert_equal "$(payloads jobs)" $'one\ntwo words\nthree'
	assert_equal "$(payload jobs -1)" one
	run_mq 0 mq-publish operands $(seq 1500)
	payloads operands | cmp - <(seq 1500)
	# Options stand anywhere in front of --.
	run_mq 0 mq-publish mixed one -H 'A: b' two
	assert_equal "$(payloads mixed)" $'one\ntwo'
	assert_equal "$(headers mixed)" '{"A": ["b"]}'
	run_mq 0 mq-publish -- other -x --help -
	assert_equal "$(payloads other)" $'-x\n--help\n-'
	run_mq 0 mq-publish third -- -l
	assert_equal "$(payloads third)" -l
	run_mq 0 mq-publish -- -q x
	assert_equal "$(payloads -q)" x
}

@test "publish: without operands all of stdin is one; the element, byte for byte" {
	printf 'one\000two\n\n' >"$T/in"
	run_mq 0 mq-publish -i jobs <"$T/in"
	assert_regex "$output" '^[0-9a-z]{10}[A-Za-z0-9]{22}$'
	printf '\377\000\276\276\112{"Mq-Id":["%s"]}\n' "$output" | cat - "$T/in" >"$T/want"
	raw_element jobs | cmp - "$T/want"
	run_mq 0 mq-publish --raw bare <"$T/in"
	raw_element bare | cmp - "$T/in"
	run_mq 0 mq-publish --raw empty </dev/null
	assert_equal "$(count jobs) $(count empty) $(raw_element empty | wc -c)" "1 1 0"
}

@test "publish: nothing but ready, the counters and rmq::queues is written, for no message that alone" {
	run_mq 0 mq-publish -l none </dev/null
	assert_equal "$(redis keys '*') $(redis smembers rmq::queues)" "rmq::queues none"
	run_mq 0 mq-publish jobs one
	run_mq 0 mq-publish other two
	assert_equal "$(redis keys '*' | sort)" \
		"$(printf '%s\n' "$(key jobs)" "$(key other)" rmq::queues \
			'rmq::queue::[jobs]::counters' \
			'rmq::queue::[other]::counters' | sort)"
	assert_equal "$(redis smembers rmq::queues | sort | xargs)" 'jobs none other'
}

# arrives FILE [OPTION...]: what is in $T/FILE is, from stdin in the form that the options
# say.
arrives() {
	run_mq 0 mq-publish "${@:2}" q
	payload q 0 | cmp - "$T/$1"
}

@test "publish: every byte value survives, whichever way it comes" {
	local all

	all=$(printf '\\%03o' {0..255})
	# shellcheck disable=SC2059
	printf "$all" >"$T/all"
	assert_equal "$(wc -c <"$T/all")" 256
	arrives all <"$T/all"
	arrives all --netstring < <(printf '256:' && cat "$T/all" && printf ,)
	arrives all --jsonl < <(printf '{"payload_base64":"%s"}' "$(base64 -w0 "$T/all")")
	tr -d '\n' <"$T/all" >"$T/line"
	arrives line -l <"$T/line"
	tail -c +2 "$T/all" >"$T/operand"
	run_mq 0 mq-publish q "$(cat "$T/operand")"
	payload q 0 | cmp - "$T/operand"
}

@test "publish: every size from 0 to 64 MiB" {
	local size

	for size in 0 1 2 65535 65536 65537 262144 1000003 67108864; do
		head -c "$size" /dev/urandom >"$T/want"
		arrives want <"$T/want"
	done
	# From a pipe its length is not known before.
	head -c 1000003 "$T/want" >"$T/some"
	arrives some < <(cat "$T/some")
}

@test "publish: --ids prints the id of each message, in their order" {
	local id=0123456789ABCDEFGHIJKLMNOPQRSTUV

	run_mq 0 mq-publish --ids -l jobs < <(seq 1000)
	assert_equal "${#lines[@]}" 1000
	assert_equal "$(grep -cvxE '[0-9a-z]{10}[A-Za-z0-9]{22}' <<<"$output")" 0
	assert_equal "$(sort -u <<<"$output" | wc -l)" 1000
	redis --raw lrange "$(key jobs)" 0 -1 | sed -n '1~2p' | tac |
		LC_ALL=C sed -E 's/.*\["(.*)"\].*/\1/' >"$T/want"
	assert_equal "$output" "$(cat "$T/want")"
	# One that has an id keeps it.
	run_mq 0 mq-publish -i --jsonl mine <<-END
		{"payload": "x", "headers": {"Mq-Id": ["$id"], "A": "b"}}
		{"payload": "y", "headers": {"A": "b"}}
	END
	assert_equal "${lines[0]}" "$id"
	assert_regex "$(header_json mine -1)" "\"Mq-Id\":\\[\"$id\"\\]"
	assert_regex "$(header_json mine -2)" "\"Mq-Id\":\\[\"${lines[1]}\"\\]"
}

# --- headers and parameters ----------------------------------------------------

@test "publish: -H and -P: names become canonical, values are trimmed, repeated ones are a list" {
	local args want

	while IFS='|' read -r args want; do
		redis flushall >/dev/null
		eval "run_mq 0 mq-publish $args"
		assert_equal "$args: $(headers jobs -1)" "$args: $want"
		assert_equal "$args: $(headers jobs 0)" "$args: $want"
	done <<-'END'
		-H 'x-trace-ID:  a b ' --header=CONTENT-type:é -H 'Empty:' jobs x|{"Content-Type": ["é"], "Empty": [""], "X-Trace-Id": ["a b"]}
		-H 'tag: b' -H 'Tag: a' -H 'TAG: b' jobs x y|{"Tag": ["b", "a", "b"]}
		-P 1=a -P 2= -P '3= b=c ' --param 4=d -P 1=e jobs x|{"Mq-Param1": ["e"], "Mq-Param2": [""], "Mq-Param3": [" b=c "], "Mq-Param4": ["d"]}
		--jsonl -H 'A: 2' -H 'B: 3' jobs <<<'{"payload": "x", "headers": {"A": "1"}}'|{"A": ["1", "2"], "B": ["3"]}
	END
}

# --- later ---------------------------------------------------------------------

# due_of QUEUE [INDEX]: what a delayed message says about it.
due_of() {
	element "$1" delayed "${2:-0}" | header Mq-Due
}

@test "publish: -d: 32 bytes and the element, due by the server's clock" {
	local before after score due

	before=$(now_ms)
	run_mq 0 mq-publish -i -d 90s jobs 'some payload'
	after=$(now_ms)
	due=$(due_of jobs)
	assert [ "$due" -ge $((before + 90000)) ]
	assert [ "$due" -le $((after + 90000)) ]
	assert_equal "$(count jobs)" 0
	assert_equal "$(delayed jobs)" 1
	assert_equal "$(redis smembers rmq::queues)" jobs
	printf '\377\000\276\276\112{"Mq-Id":["%s"],"Mq-Due":["%s"]}\nsome payload' \
		"$output" "$due" >"$T/want"
	member jobs | tail -c +33 | cmp - "$T/want"
	score=$(scores jobs)
	assert [ "$score" -ge $((before + 90000)) ]
	assert [ "$score" -le $((after + 90000)) ]
}

@test "publish: Mq-Due: the time of the score, whatever the form" {
	local line
	run_mq 0 mq-publish --at 4102444800 jobs x
	assert_equal "$(due_of jobs)" 4102444800000
	run_mq 0 mq-publish --at 9999-01-01T00:00:00Z far x
	assert_equal "$(due_of far)" "$(scores far)"
	for line in '{"payload":"x","headers":{"A":"b"}}' '{"payload":"x"}' \
		'{"payload":"x","headers":{"Mq-Due":"1","Mq-Id":"'"$(printf '%032d' 0)"'"}}'; do
		redis flushall >/dev/null
		run_mq 0 mq-publish --at 4102444800.5 --jsonl jobs <<<"$line"
		assert_equal "$(scores jobs)" 4102444800500
		assert_equal "$(due_of jobs)" 4102444800500
	done
	redis flushall >/dev/null
	before=$(now_ms)
	run_mq 0 mq-publish -d 1d -P 1=1234567890123 -H 'A: 1' --jsonl jobs <<<"$line"
	assert [ "$(due_of jobs)" -ge $((before + 86400000)) ]
	assert [ "$(scores jobs)" -ge "$(due_of jobs)" ]
	assert [ "$(scores jobs)" -le $(($(now_ms) + 86400000)) ]
	assert_equal "$(element jobs delayed | header Mq-Param1)" 1234567890123
}

@test "publish: Mq-Due: not when it is ready at once, and never --raw; equal ones stay apart" {
	run_mq 0 mq-publish -d 0s jobs x
	run_mq 0 mq-publish --at @1 jobs x
	run_mq 0 mq-publish jobs x
	run_mq 0 mq-publish --jsonl jobs <<<'{"payload":"x","headers":{"A":"b"}}'
	assert_equal "$(redis lrange "$(key jobs)" 0 -1 | grep -ac Mq-Due)" 0
	run_mq 0 mq-publish --raw -d 1h bare same same
	run_mq 0 mq-publish --raw -d 1h bare same
	assert_equal "$(delayed bare)" 3
	member bare | tail -c +33 | cmp - <(printf same)
}

@test "publish: Mq-Due and ids of a slow stream have the time of each message" {
	local first
	feed -l -d 1h jobs
	echo one >&5
	eventually 10 delayed_is jobs 1
	first=$(now_ms)
	eventually 5 later_than $((first + 50))
	echo two >&5
	eventually 10 delayed_is jobs 2
	close_feed
	assert [ "$(due_of jobs 0)" -le $((first + 3600000)) ]
	assert [ "$(due_of jobs 1)" -gt $((first + 3600000)) ]
	assert [ "$(scores jobs)" -ge "$(due_of jobs 1)" ]
	assert [ "$(scores jobs)" -le $(($(now_ms) + 3600000)) ]
}

# --- in order, with a script or without ---------------------------------------------

calls() {
	redis info commandstats | sed -n "s/^cmdstat_$1:calls=\([0-9]*\),.*/\1/p"
}

# A transaction asks for the rights, and each batch without a script is one.
@test "publish: without a script, unless the server has to find out more" {
	local how

	for how in "-p 5" "-p -5" "-p 0" "-d 1h" "-d 1h -p 5" "--from-tick 0 -p 5" \
		"--at 2100-01-01T00:00Z"; do
		redis flushall >/dev/null
		redis config resetstat >/dev/null
		# shellcheck disable=SC2086 # two words
		run_mq 0 mq-publish $how -l jobs < <(seq 100)
		assert_equal "$how: $(calls exec)" "$how: 2"
	done
	for how in "-e 1h" "-k a" "-g a" "--from-tick 1" "--until-tick 5 -p 5" \
		"--max-length 1000 -p 5" \
		"--at @$(($(date +%s) + 50))"; do
		redis config resetstat >/dev/null
		# shellcheck disable=SC2086 # two words
		run_mq 0 mq-publish $how jobs x
		assert_equal "$how: $(calls exec)" "$how: 1"
	done
}

@test "publish: messages of one priority or tick stay in order, with and without" {
	local i how limit

	for how in "-p 5" "-p -5" "--from-tick 0 -p 5"; do
		for i in {1..8}; do
			limit=
			((i % 2)) || limit="--max-length 5000"
			# shellcheck disable=SC2086 # two words
			seq $((i * 100)) $((i * 100 + 99)) |
				"$BUILD/mq-publish" $how $limit -l jobs
		done
		"$BUILD/mq-consume" --drain -l jobs | cmp - <(seq 100 899)
	done
}

# --- streams -------------------------------------------------------------------

@test "publish: from a slow pipe messages appear while the writer pauses, in each framing" {
	local framing first appear rest all want

	while IFS='|' read -r framing first appear rest all want; do
		redis flushall >/dev/null
		feed -i "$framing" jobs
		# shellcheck disable=SC2059
		printf "$first" >&5
		eventually 10 payloads_are jobs "${appear// /$'\n'}"
		eventually 10 lines_reach "$T/out" "$(wc -w <<<"$appear")"
		# It may have ended before the last line: SIGPIPE is not for us.
		# shellcheck disable=SC2059
		(printf "$rest" >&5) || true
		close_feed
		assert_equal "$(payloads jobs)" "${all// /$'\n'}"
		assert_equal "$status ${stderr//$'\n'/; }" "$want"
	done <<-'END'
		--lines|one\ntwo\nfo|one two|ur\n|one two four|0 
		--null|a\0b\n|a|c|a b c|0 
		--netstring|1:a,2:b|a|c,|a bc|0 
		--jsonl|{"payload": "a"}\n{"payl|a|oad": "b"}\nbad\n|a b|65 mq-publish: record 3: invalid JSON; mq-publish: 2 messages accepted
	END
}

@test "publish: an endless stream needs little memory" {
	local peak

	without_sanitizer
	feed -l jobs
	seq 1000000 >&5
	eventually 60 count_is jobs 1000000
	peak=$(awk '$1 == "VmHWM:" {print $2}' "/proc/$pid/status")
	close_feed
	assert_equal "$status$stderr" 0
	assert [ "$peak" -gt 500 ]
	assert [ "$peak" -lt $((16 * 1024)) ]
	assert_equal "$(payload jobs -1) $(payload jobs 0)" "1 1000000"
}

# peak_of COMMAND...: the most memory it had, in KiB.
peak_of() {
	python3 -IS -c 'import resource, subprocess, sys
subprocess.check_call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' "$@"
}

@test "publish: a huge message is in memory twice at most" {
	local size=$((64 * 1024 * 1024)) peak

	without_sanitizer
	truncate -s "$size" "$T/huge"
	peak=$(peak_of "$BUILD/mq-publish" jobs <"$T/huge")
	assert_equal "$(redis memory usage "$(key jobs)" samples 0 |
		awk -v n="$size" '{print ($1 > n)}')" 1
	assert [ "$peak" -gt $((size / 1024)) ]
	assert [ "$peak" -lt $((2 * size / 1024 + 16 * 1024)) ]
	# From a pipe, its length is not known before.
	redis flushall >/dev/null
	peak=$(peak_of "$BUILD/mq-publish" jobs < <(cat "$T/huge"))
	assert [ "$peak" -lt $((2 * size / 1024 + 16 * 1024)) ]
}

# --- bad records ---------------------------------------------------------------

# bad_record N FRAMING: of what is on stdin the first N, a number each from 1, are
# accepted, and the next one is bad.
bad_record() {
	redis flushall >/dev/null
	run_mq 65 mq-publish -i "$2" jobs
	assert_equal "$(wc -l <<<"$stderr")" 2
	assert_regex "$stderr" "^mq-publish: record $(($1 + 1)): .*
mq-publish: $1 messages accepted\$"
	assert_equal "$(payloads jobs)" "$(seq "$1")"
	assert_equal "${#lines[@]}" "$1"
}

netstrings() {
	local i

	for ((i = 1; i <= $1; i++)); do
		printf '%d:%d,' "${#i}" "$i"
	done
}

json_lines() {
	seq -f '{"payload": "%g"}' "$1"
}

@test "publish: a bad record ends it; those before are accepted, and only they have ids" {
	local bad n

	# The whole lists are in unit/test_frame.c.
	for bad in x 1:a '9999999999:a,'; do
		bad_record 2 --netstring < <(netstrings 2 && printf %s "$bad")
	done
	for bad in x '' '{"payload": 1}' '{"payload": "a", "headers": {"A": ["b", 1]}}' \
		'{"payload": "\ud800"}'; do
		bad_record 2 --jsonl \
			< <(json_lines 2 && printf '%s\n{"payload": "4"}\n' "$bad")
	done
	for n in 0 1500; do
		bad_record $n --netstring < <(netstrings $n && echo xx)
		bad_record $n --jsonl < <(json_lines $n && echo xx)
	done
}

# --- a server that does not take it --------------------------------------------

@test "publish: a server killed in the middle, and it is told to end: the count holds" {
	local low high found

	server_start --appendonly yes --appendfsync always
	feed -l jobs
	seq 100000000 >&5 2>/dev/null &
	exec 5>&-
	eventually 30 count_above jobs 50000
	server_kill
	kill "$pid"
	ended 143
	low=$(accepted)
	high=$((low + $(unsure)))
	server_run --appendonly yes --appendfsync always
	found=$(count jobs)
	assert [ "$low" -gt 0 ]
	assert [ "$found" -ge "$low" ]
	assert [ "$found" -le "$high" ]
	payloads jobs | cmp - <(seq "$found")
}

@test "publish: memory at its limit: 75, and the count is exact, of delayed messages, too" {
	local delay used n

	server_start
	redis config set maxmemory-policy noeviction >/dev/null
	for delay in 0s 1h; do
		redis config set maxmemory 0 >/dev/null
		redis flushall >/dev/null
		used=$(redis info memory | tr -d '\r' | sed -n 's/^used_memory://p')
		redis config set maxmemory $((used + 8000000)) >/dev/null
		feed -i -l -d "$delay" jobs
		seq 100000000 >&5 2>/dev/null &
		exec 5>&-
		ended 75
		assert_regex "$stderr" 'OOM '
		n=$(($(count jobs) + $(delayed jobs)))
		assert [ "$n" -gt 1000 ]
		assert_equal "$delay: $(($(accepted) + $(behind)))" "$delay: $n"
		assert_equal "$(sort -u "$T/out" | wc -l)" "$n"
	done
}

@test "publish: the key turns into something else in the middle: 76" {
	feed -l jobs
	seq 10 >&5
	eventually 10 count_is jobs 10
	redis rename "$(key jobs)" kept >/dev/null
	redis set "$(key jobs)" mine >/dev/null
	echo 11 >&5
	ended 76
	assert_equal "$(accepted)" 10
}

# --- signals -------------------------------------------------------------------

# Like feed, but notes the signal that the tool died of, not only 128 + n.
feed_watched() {
	rm -f "$T"/*
	mkfifo "$T/in"
	python3 -IS -c 'import subprocess, sys
def note(name, n):
	with open(sys.argv[1] + name, "w") as f:
		print(n, file=f)
p = subprocess.Popen(sys.argv[2:])
note("/pid", p.pid)
note("/signal", -p.wait())' "$T" "$BUILD/mq-publish" "$@" <"$T/in" >"$T/out" 2>"$T/err" 3>&- &
	pid=$!
	exec 5>"$T/in"
	eventually 10 test -s "$T/pid"
}

@test "publish: a signal while waiting for input: dies of it, count right" {
	local sig

	for sig in INT TERM; do
		redis flushall >/dev/null
		feed_watched -l jobs
		seq 10 >&5
		printf unfinished >&5
		eventually 10 count_is jobs 10
		kill -"$sig" "$(cat "$T/pid")"
		ended
		assert_equal "$(cat "$T/signal")" "$(kill -l "$sig")"
		assert_equal "$stderr" 'mq-publish: interrupted
mq-publish: 10 messages accepted'
		assert_equal "$(payloads jobs)" "$(seq 10)"
	done
	# In the middle of one message: nothing of it.
	feed -- other
	head -c 300000 /dev/zero >&5
	kill "$pid"
	ended
	assert_equal "$status $(accepted) $(count other)" "143 0 0"
}

@test "publish: a signal in the middle of a stream: the count holds" {
	local sig low found

	for sig in INT TERM; do
		redis flushall >/dev/null
		feed_watched -i -l jobs
		seq 100000000 >&5 2>/dev/null &
		exec 5>&-
		eventually 30 count_above jobs 3000
		kill -"$sig" "$(cat "$T/pid")"
		ended
		# The server may still work on what was sent.
		eventually 30 no_clients
		assert_equal "$(cat "$T/signal")" "$(kill -l "$sig")"
		low=$(accepted)
		found=$(count jobs)
		assert [ "$found" -ge "$low" ]
		assert [ "$found" -le $((low + $(unsure))) ]
		assert_equal "$(wc -l <"$T/out")" "$low"
		payloads jobs | cmp - <(seq "$found")
	done
}

asleep_with_socket() {
	grep -q '^State:.*S' "/proc/$1/status" &&
		find "/proc/$1/fd" -lname 'socket:*' 2>/dev/null | grep -q .
}

# signal_ends SIGNAL PID: sent again, as long as it is there.
signal_ends() {
	kill -"$1" "$2" 2>/dev/null || true
	gone "$2"
}

@test "publish: a signal while the server hangs ends it soon" {
	local hung ends=

	server_start
	hung=$(server_pid)
	xargs kill -STOP <<<"$hung"
	start_mq mq-publish jobs x
	eventually 10 asleep_with_socket "$pid"
	# Whatever comes of the test, the server must be able to end.
	! eventually 5 signal_ends TERM "$pid" || ends=1
	xargs kill -CONT <<<"$hung"
	[ -n "$ends" ]
	ended 143
}

@test "publish: a signal while it waits for the server's answer is not lost" {
	local low

	feed -l jobs
	echo 1 >&5
	eventually 10 count_is jobs 1
	redis client pause 20000 write >/dev/null
	echo 2 >&5
	eventually 10 asleep_with_socket "$pid"
	eventually 10 blocked_client
	kill -TERM "$pid"
	ended 143
	low=$(accepted)
	assert [ "$low" -ge 1 ]
	assert [ $((low + $(unsure))) -eq 2 ]
	redis client unpause >/dev/null
}

# A client waits for the end of the pause.
blocked_client() {
	redis info clients | grep -q '^blocked_clients:[1-9]'
}

# --- the command line ----------------------------------------------------------

@test "publish: what can be a queue's name is one" {
	local name

	for name in 'a:b' ':' ' ' 'a b' 'é' $'\xff' '*' '%s%n' \
		"$(printf '%0512d' 0)"; do
		run_mq 0 mq-publish "$name" x
		assert_equal "$(count "$name")" 1
	done
	assert_equal "$(redis scard rmq::queues)" 9
}

@test "publish: hostile text is told in visible form" {
	local bad=$'\e[2J\a\n\xc2\x9b\xff' args

	redis set "$(key $'x\xc2\x9b')" mine >/dev/null
	while read -r args; do
		for LC_ALL in C C.UTF-8; do
			eval "run --separate-stderr \"\$BUILD/mq-publish\" $args"
			assert_failure
			assert [ -n "$stderr" ]
			assert_equal "$(LC_ALL=C tr -cd '\001-\011\013-\037\177\233' \
				<<<"$stderr" | wc -c)" 0
			assert_equal "$(grep -vc '^mq-publish: ' <<<"$stderr")" 0
		done
	done <<-'END'
		"$bad" x
		-u "$bad" jobs x
		-u "unix:///$bad" jobs x
		-u $'unix:///no/such\xc2\x9b' jobs x
		--at "$bad" jobs x
		-d "$bad" jobs x
		-H "$bad" jobs x
		-P "$bad" jobs x
		"--$bad" jobs x
		"-$bad" jobs x
		-l jobs "$bad"
		$'x\xc2\x9b' x
	END
}

@test "publish: a terminal is asked for the payload" {
	mkfifo "$T/keys"
	timeout 120 script -qec "'$BUILD/mq-publish' q" /dev/null <"$T/keys" >"$T/screen" 3>&- &
	pid=$!
	exec 5>"$T/keys"
	eventually 10 grep -q 'mq-publish: reading from the terminal; end with ^D' "$T/screen"
	printf 'a\n\004' >&5
	wait "$pid"
	exec 5>&-
	assert_equal "$(redis llen 'rmq::queue::[q]::ready')" 1
}
