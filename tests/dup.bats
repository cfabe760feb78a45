#!/usr/bin/env bats
# The verb dup, with RQ's replies: to queues of our own server and of others.

# run_mq sets stderr; each test is a subshell of its own.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers

setup_file() {
	server_start
	FAR=$(own_dir)
	export FAR
	far_run
}

teardown_file() {
	far shutdown nosave >/dev/null 2>&1 || true
	rm -rf "$FAR"
	server_stop
}

setup() {
	common_setup
	[ "$(far ping 2>/dev/null)" = PONG ] || far_run
	far flushall >/dev/null
	far_url=unix://$FAR/far.sock
}

teardown() {
	common_teardown
}

# Another server.
far() {
	redis-cli -s "$FAR/far.sock" "$@"
}

far_run() {
	redis-server --port 0 --unixsocket "$FAR/far.sock" --dir "$FAR" \
		--save '' --appendonly no --pidfile "$FAR/far.pid" \
		--enable-debug-command yes \
		--daemonize yes --logfile "$FAR/far.log" >/dev/null
	eventually 10 far_answers
}

far_answers() {
	[ "$(far ping 2>/dev/null)" = PONG ]
}

# known QUEUE...
known() {
	redis sadd rmq::queues "$@" >/dev/null
}

# A script that asks for these dups one by one, writes the answers to
# $T/answers, and is done.
asks() {
	{
		local d
		for d; do
			printf "printf '%%s\\\\n' 'dup %s' >&3\n" "$d"
			# shellcheck disable=SC2016
			echo 'IFS= read -r x <&4; echo "$x" >>"$T/answers"'
		done
		echo 'echo done >&3'
	} | script s "$(command -v bash)"
}

# Runs one message through $T/s.
run_one() {
	run_mq 0 mq-publish -i q "${payload-the payload}"
	id=$output
	run_mq 0 mq-consume -n 1 "$@" q -- "$T/s"
	assert_equal "$(held q)" "0 0 0 0"
}

# answered LINE...: the answers; ID stands for an id, which goes to ids[].
answered() {
	local got
	ids=()
	mapfile -t got <"$T/answers"
	assert_equal "${#got[@]}" $#
	for line in "${got[@]}"; do
		if [[ $line =~ ^ok\ [0-9a-z]{10}[0-9A-Za-z]{22}$ ]]; then
			ids+=("${line#ok }")
			line="ok ID"
		fi
		assert_equal "$line" "$1"
		shift
	done
}

@test "dup: to another queue, and the script goes on" {
	known other-queue
	asks 0-X-other-queue
	run_mq 0 mq-publish -i -H 'X-Trace: 17' -P 1=one -P 4=four q 'the payload'
	id=$output
	run_mq 0 mq-consume -n 1 q -- "$T/s"
	answered "ok ID"
	assert_equal "$(held q)" "0 0 0 0"
	assert_equal "$(held other-queue)" "1 0 0 0"
	assert_equal "$(element other-queue ready | tail -n +2)" 'the payload'
	assert_equal "$(element other-queue ready | header Mq-Id)" "${ids[0]}"
	assert_not_equal "${ids[0]}" "$id"
	assert_equal "$(element other-queue ready | header X-Trace)" 17
	assert_equal "$(element other-queue ready | header Mq-Param1)" one
	assert_equal "$(element other-queue ready | header Mq-Param4)" four
	assert_equal "$(redis hget 'rmq::queue::[other-queue]::counters' published)" 1
}

@test "dup: DUE is when it is ready" {
	known other
	asks 30-X-other 1_0-X-other 1.9-X-other soon-X-other -5-X-other
	run_one
	# As Ruby splits it, the last one is for the queue X-other.
	answered "ok ID" "ok ID" "ok ID" "ok ID" \
		"fail couldn't connect to queue - X-other"
	assert_equal "$(held other)" "1 3 0 0"
	redis eval 'local t, due = redis.call("TIME"), {}
		local now = t[1] * 1000 + math.floor(t[2] / 1000)
		local d = redis.call("ZRANGE", KEYS[1], 0, -1, "WITHSCORES")
		for i = 2, 6, 2 do
			due[i / 2] = math.ceil((d[i] - now) / 1000)
		end
		return table.concat(due, " ")' 1 'rmq::queue::[other]::delayed' >"$T/due"
	assert_regex "$(cat "$T/due")" '^(0|1) (9|10) (29|30)$'
	local due score
	due=$(element other delayed 2 | header Mq-Due)
	score=$(redis zrange 'rmq::queue::[other]::delayed' 2 2 withscores | tail -n 1)
	((due - score < 1000 && score - due < 1000))
}

@test "dup: no such queue, no name of a queue, and no dup at all" {
	asks 0-X-nope_this_q_does_not_exist 0-X-a::b 0-X-[x] 0-X- 0-X nonsense '' \
		"0-X-$(printf 'x%.0s' {1..4090})" "0-X-$(printf 'x%.0s' {1..600})"
	run_one
	answered "fail couldn't connect to queue - nope_this_q_does_not_exist" \
		"fail couldn't connect to queue - a::b" \
		"fail couldn't connect to queue - [x]" \
		"fail couldn't connect to queue - " \
		"fail dup failed - dup is followed by DUE-X-DEST" \
		"fail dup failed - dup is followed by DUE-X-DEST" \
		"fail dup failed - dup is followed by DUE-X-DEST" \
		"fail dup failed - the line is too long" \
		"fail couldn't connect to queue - $(printf 'x%.0s' {1..600})"
}

@test "dup: to its own queue" {
	known q
	# shellcheck disable=SC2016
	script s "$(command -v bash)" <<'.'
cat >>"$T/ran"
[ "$RQ_COUNT$MQ_PARAM1" = 0first ] || { echo done >&3; exit; }
echo "dup 0-X-q" >&3
read -r x <&4
echo "$x" >>"$T/answers"
echo done >&3
.
	run_mq 0 mq-publish -P 1=first q one
	run_mq 0 mq-consume -n 3 -j 2 --idle 5s q -- "$T/s"
	answered "ok ID" "ok ID" "ok ID"
}

@test "dup: a paused queue takes it" {
	known other
	run_mq 0 mq-pause other
	asks 0-X-other
	run_one
	answered "ok ID"
	assert_equal "$(held other)" "1 0 0 0"
}

@test "dup: after done, and by a script that does not read" {
	known other
	printf '%s\n' 'done first' 'dup 0-X-other' 'dup 1-X-nope' 'dup 0-X-other' |
		sed "s/.*/echo '&' >\&3/" | script s
	run_one -v
	assert_equal "$(held other)" "2 0 0 0"
	assert_regex "$stderr" "dup to nope: fail couldn't connect to queue - nope"
	# What was said last is shown.
	assert_regex "$stderr" 'done: 0-X-other'
	# With a closed descriptor 4, and without an end of the line.
	redis flushall >/dev/null
	known other
	echo 'exec 4<&-; printf "dup 0-X-other\ndone\ndup 0-X-other" >&3' | script s
	run_one
	assert_equal "$(held other)" "2 0 0 0"
}

@test "dup: answers come in the order of the requests" {
	known a b
	# shellcheck disable=SC2016
	script s "$(command -v bash)" <<'.'
printf 'dup 0-X-%s\n' a nope1 b nope2 bad/../name a >&3
for i in 1 2 3 4 5 6; do
	read -r -u 4 x
	echo "$x" >>"$T/answers"
done
echo done >&3
.
	run_one
	answered "ok ID" "fail couldn't connect to queue - nope1" "ok ID" \
		"fail couldn't connect to queue - nope2" \
		"fail couldn't connect to queue - bad/../name" "ok ID"
	assert_equal "$(element a ready -1 | header Mq-Id)" "${ids[0]}"
	assert_equal "$(element b ready | header Mq-Id)" "${ids[1]}"
	assert_equal "$(element a ready 0 | header Mq-Id)" "${ids[2]}"
}

@test "dup: one that never reads holds nothing up" {
	known other
	# More answers than the pipe and what is kept behind it.
	script s "$(command -v perl)" <<'.'
open(my $rq, ">&=", 3) or die;
for (1 .. 10000) { print $rq "dup 0-X-nope\n" }
print $rq "dup 0-X-other\n" for 1 .. 3;
print $rq "done\n";
.
	run_one
	assert_equal "$(held other)" "3 0 0 0"
	# One that reads after all finds what the pipe held, then the end.
	script s "$(command -v perl)" <<'.'
open(my $rq, ">&=", 3) or die;
$rq->autoflush(1);
for (1 .. 10000) { print $rq "dup 0-X-nope\n" }
open(my $answers, "<&=", 4) or die;
my ($n, $bad) = (0, 0);
while (<$answers>) { $n++; $bad++ if $_ ne "fail couldn't connect to queue - nope\n" && !eof }
print $rq $n > 100 && $n < 5000 && !$bad ? "done\n" : "err $n $bad\n";
.
	run_one
}

@test "dup: what of a message is copied" {
	known other
	asks 0-X-other 0-X-other
	head -c 100000 /dev/urandom >"$T/payload"
	printf 'a\0b' >>"$T/payload"
	run_mq 0 mq-publish -i -k key -g group -p 7 q <"$T/payload"
	id=$output
	redis eval 'local e = redis.call("ZRANGE", KEYS[1], 0, 0)[1]
		redis.call("DEL", KEYS[1])
		local head, rest = e:sub(33):match("^(.-)(\n.*)$")
		head = head:gsub("}$", "," .. ARGV[1] .. "}")
		redis.call("LPUSH", KEYS[2], head .. rest)' 2 \
		'rmq::queue::[q]::priority' 'rmq::queue::[q]::ready' \
		'"Mq-Attempt":["3"],"Mq-Error":["bad"],"Mq-History":["{}"],"Mq-Due":["5"],"Mq-Reply-To":["x"],"X":["a","b"]'
	run_mq 0 mq-consume -n 1 q -- "$T/s"
	answered "ok ID" "ok ID"
	local i e
	# The second of the group stands in line.
	redis zrange 'rmq::queue::[other]::priority' 0 0 | tail -c +33 >"$T/e0"
	element other delayed >"$T/e1"
	for i in 0 1; do
		run python3 -c 'import json, sys
h = json.loads(sys.stdin.buffer.readline()[5:])
print(h.pop("Mq-Id")[0], h.pop("Mq-Orig-Id")[0], json.dumps(h, sort_keys=True))' <"$T/e$i"
		assert_output "${ids[i]} http://$(hostname)/q/q/$id {\"Mq-Group\": [\"group\"], \"Mq-Priority\": [\"7\"], \"X\": [\"a\", \"b\"]}"
		tail -n +2 "$T/e$i" | head -c 100003 | cmp - "$T/payload"
	done
}

@test "dup: of a message without headers has none" {
	known other
	asks 0-X-other 20-X-other
	run_mq 0 mq-publish --raw q 'bare'
	run_mq 0 mq-consume -n 1 q -- "$T/s"
	answered "ok ID" "ok ID"
	assert_equal "$(element other ready)" bare
	assert_equal "$(element other delayed)" bare
}
