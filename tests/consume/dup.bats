#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The verb dup, with RQ's replies: to queues of our own server and of others.

load ../helpers/server
load ../helpers/consume

setup_file() {
	server_start
	far_start
}

teardown_file() {
	far_stop
	server_stop
}

setup() {
	common_setup
	far_answers || far_run
	far flushall >/dev/null
	# These are known.
	redis sadd rmq::queues other a b >/dev/null
	far sadd rmq::queues other >/dev/null
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

# in_ms SECONDS MS: this is the time so long after something between before and
# after.
in_ms() {
	(($2 >= before + $1 * 1000 && $2 <= after + $1 * 1000))
}

@test "dup: DUE is when it is ready" {
	asks 30-X-other 1_0-X-other 1.9-X-other soon-X-other -5-X-other
	local before after i s
	before=$(date +%s%3N)
	run_one
	after=$(date +%s%3N)
	# As Ruby splits it, the last one is for the queue X-other.
	answered "ok ID" "ok ID" "ok ID" "ok ID" \
		"fail couldn't connect to queue - X-other"
	assert_equal "$(held other)" "1 3 0 0"
	for i in 0:1 1:10 2:30; do
		s=${i#*:}
		i=${i%:*}
		in_ms "$s" "$(element other delayed "$i" | header Mq-Due)"
		in_ms "$s" "$(redis zrange 'rmq::queue::[other]::delayed' \
			"$i" "$i" withscores | tail -n 1)"
	done
}

@test "dup: no such queue, no name of a queue, no dup at all, and answers in the order asked" {
	asks 0-X-a 0-X-nope_this_q_does_not_exist 0-X-a::b 0-X-[x] 0-X- 0-X nonsense '' 0-X-b \
		"0-X-$(printf 'x%.0s' {1..4090})" "0-X-$(printf 'x%.0s' {1..600})" 0-X-a
	# All are asked for before an answer is read.
	{ grep -v answers "$T/s"; grep answers "$T/s"; } >"$T/all" && cat "$T/all" >"$T/s"
	run_one
	answered "ok ID" "fail couldn't connect to queue - nope_this_q_does_not_exist" \
		"fail couldn't connect to queue - a::b" \
		"fail couldn't connect to queue - [x]" \
		"fail couldn't connect to queue - " \
		"fail dup failed - dup is followed by DUE-X-DEST" \
		"fail dup failed - dup is followed by DUE-X-DEST" \
		"fail dup failed - dup is followed by DUE-X-DEST" "ok ID" \
		"fail dup failed - line too long" \
		"fail couldn't connect to queue - $(printf 'x%.0s' {1..600})" "ok ID"
	assert_equal "$(element a ready -1 | header Mq-Id)" "${ids[0]}"
	assert_equal "$(element b ready | header Mq-Id)" "${ids[1]}"
	assert_equal "$(element a ready 0 | header Mq-Id)" "${ids[2]}"
}

@test "dup: to its own queue" {
	redis sadd rmq::queues q >/dev/null
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

@test "dup: after done, and by a script that does not read" {
	printf '%s\n' 'done first' 'dup 0-X-other' 'dup 1-X-nope' 'dup 0-X-other' |
		sed "s/.*/echo '&' >\&3/" | script s
	run_one -v
	assert_equal "$(held other)" "2 0 0 0"
	assert_regex "$stderr" "dup to nope: fail couldn't connect to queue - nope"
	# What was said last is shown.
	assert_regex "$stderr" 'done: 0-X-other'
	# With a closed descriptor 4, and without an end of the line.
	redis del 'rmq::queue::[other]::ready' >/dev/null
	# shellcheck disable=SC2028
	echo 'exec 4<&-; printf "dup 0-X-other\ndone\ndup 0-X-other" >&3' | script s
	run_one
	assert_equal "$(held other)" "2 0 0 0"
}

@test "dup: one that never reads holds nothing up" {
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

@test "dup: what of a message is copied, to a paused queue, too" {
	local i
	run_mq 0 mq-pause other
	asks 0-X-other 0-X-other
	head -c 100000 /dev/urandom >"$T/payload"
	printf 'a\0b' >>"$T/payload"
	run_mq 0 mq-publish -i -k key -g group -p 7 -P 1=one -P 4=four q <"$T/payload"
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
	assert_equal "$(held q)" "0 0 0 0"
	assert_equal "$(redis hget 'rmq::queue::[other]::counters' published)" 2
	# The second of the group stands in line.
	redis zrange 'rmq::queue::[other]::priority' 0 0 | tail -c +33 >"$T/e0"
	element other delayed >"$T/e1"
	for i in 0 1; do
		assert_equal "$(head -n 1 "$T/e$i" | tail -c +6 | jq -cS \
			'[.["Mq-Id", "Mq-Orig-Id"][0]] + [del(.["Mq-Id", "Mq-Orig-Id"])]')" \
			"[\"${ids[i]}\",\"http://$(hostname)/q/q/$id\","'{"Mq-Group":["group"],"Mq-Param1":["one"],"Mq-Param4":["four"],"Mq-Priority":["7"],"X":["a","b"]}]'
		tail -n +2 "$T/e$i" | head -c 100003 | cmp - "$T/payload"
	done
	# One without headers has none.
	asks 0-X-a 20-X-a
	run_mq 0 mq-publish --raw q 'bare'
	run_mq 0 mq-consume -n 1 q -- "$T/s"
	assert_equal "$(element a ready) $(element a delayed)" "bare bare"
}

# --- other servers ------------------------------------------------------------

@test "dup: to a queue of another server" {
	far sadd rmq::queues 'far queue' more >/dev/null
	far select 2 >/dev/null
	far -n 2 sadd rmq::queues two >/dev/null
	asks "0-X-$far_url?queue=far%20queue" "60-X-$far_url?queue=more" \
		"0-X-$far_url?db=2&queue=two" "0-X-$far_url?queue=nope" \
		"0-X-$far_url" "0-X-$far_url?queue=" "0-X-$far_url?queue=%zz"
	run_one
	answered "ok ID" "ok ID" "ok ID" \
		"fail couldn't connect to queue - $far_url?queue=nope" \
		"fail dup failed - the URL of a server is followed by ?queue=NAME" \
		"fail couldn't connect to queue - $far_url?queue=" \
		"fail dup failed - % must be followed by two hex digits"
	assert_equal "$(far lrange 'rmq::queue::[far queue]::ready' 0 -1 | tail -n +2)" 'the payload'
	assert_equal "$(far lindex 'rmq::queue::[far queue]::ready' 0 | header Mq-Id)" "${ids[0]}"
	assert_equal "$(far hget 'rmq::queue::[far queue]::counters' published)" 1
	assert_equal "$(far zcard 'rmq::queue::[more]::delayed')" 1
	assert_equal "$(far -n 2 llen 'rmq::queue::[two]::ready')" 1
	assert_equal "$(redis keys '*far queue*')" ""
}

@test "dup: to a queue of RSMQ, which must be able to carry it" {
	far hset rsmq:other:Q vt 30 delay 0 maxsize 65536 >/dev/null
	asks "0-X-$far_url?layout=rsmq&queue=other"
	run_mq 0 mq-publish -H 'X-Trace: 17' -k key -p 7 q 'the päyload'
	run_mq 0 mq-publish -g group q two
	run_mq 0 mq-publish --from-tick 0 q three
	run_mq 0 mq-publish --until-tick 9 q four
	run_mq 0 mq-publish -p -1 q five
	printf 'a\377b' | run_mq 0 mq-publish q
	printf '\355\240\200' | run_mq 0 mq-publish --raw q
	printf 'a\0b' | run_mq 0 mq-publish --raw q
	run_mq 0 mq-consume --drain q -- "$T/s"
	sort "$T/answers" >"$T/sorted"
	mv "$T/sorted" "$T/answers"
	answered "fail dup failed - its priority is below 0" \
		"fail dup failed - not UTF-8, as node takes it" \
		"fail dup failed - not UTF-8, as node takes it" \
		"fail dup failed - the layout rsmq has no Mq-From-Tick" \
		"fail dup failed - the layout rsmq has no Mq-Group" \
		"fail dup failed - the layout rsmq has no Mq-Until-Tick" \
		"ok ID" "ok ID"
	assert_equal "$(far --raw hmget rsmq:other:Q totalsent "${ids[0]}" "${ids[1]}" |
		sort | tr '\0' 0 | xargs)" "2 a0b the päyload"
	# As the key is not the duplicate's, neither is it in the way.
	run ! grep -q Mq-Key <(far --raw hvals rsmq:other:X)
	grep -q '"X-Trace":\["17"\]' <(far --raw hvals rsmq:other:X)
	assert_equal "$(held q)" "0 0 0 0"
	# What is in such a queue has somebody's word for it.
	far del rsmq:other rsmq:other:Q rsmq:other:X >/dev/null
	far hset rsmq:more:Q vt 30 delay 0 maxsize 65536 >/dev/null
	rm "$T/answers"
	asks "0-X-more"
	printf 'a\377b' | run_mq 0 mq-publish -u "$far_url?layout=rsmq" --raw other
	run_mq 0 mq-consume -u "$far_url?layout=rsmq" -n 1 other -- "$T/s"
	answered "ok ID"
	assert_equal "$(far --raw hget rsmq:more:Q "${ids[0]}" | od -An -tx1 | xargs)" "61 ff 62 0a"
}

@test "dup: servers that are not there, or none that we know" {
	asks "0-X-unix://$T/nope.sock?queue=q" "0-X-unix://$T/nope.sock?queue=q" \
		"0-X-redis://no-such-host.invalid?queue=q" \
		"0-X-redis://h:x?queue=q" "0-X-redis-cluster://h?queue=q"
	run_one
	run sed -E '3s/: [^:]*$/: WHY/' "$T/answers"
	assert_output "fail couldn't connect to queue - unix://$T/nope.sock?queue=q: No such file or directory
fail couldn't connect to queue - unix://$T/nope.sock?queue=q: No such file or directory
fail couldn't connect to queue - redis://no-such-host.invalid?queue=q: WHY
fail dup failed - port is not a number from 1 to 65535
fail couldn't connect to queue - redis-cluster://h?queue=q: dup to a cluster is not supported"
}

@test "dup: to more servers than 16, but not at once" {
	local i asked=() silent
	for i in {0..15}; do
		far -n "$i" sadd rmq::queues other >/dev/null
		asked+=("0-X-$far_url?db=$i&queue=other")
	done
	asks "${asked[@]}" "0-X-$far_url?db=1&layout=rmq&queue=other" \
		"0-X-$far_url?db=2&layout=rmq&queue=other" "${asked[0]}"
	run_one
	assert_equal "$(grep -c '^ok ' "$T/answers") $(wc -l <"$T/answers")" "19 19"
	assert_equal "$(far llen 'rmq::queue::[other]::ready')" 2
	assert_equal "$(far -n 2 llen 'rmq::queue::[other]::ready')" 2

	# All asked for at once, each begins in the answer to the one before.
	sed -i '/IFS/d' "$T/s"
	for i in {1..19}; do
		# shellcheck disable=SC2016
		echo 'IFS= read -r x <&4; echo "$x" >>"$T/answers"'
	done >>"$T/s"
	rm "$T/answers"
	run_one
	assert_equal "$(grep -c '^ok ' "$T/answers") $(wc -l <"$T/answers")" "19 19"

	# Nobody answers at any of 17.
	python3 -c '
import os, signal, socket
all = [socket.socket(socket.AF_UNIX) for i in range(17)]
for i, s in enumerate(all):
    s.bind(os.environ["T"] + "/silent%d.sock" % i)
    s.listen()
signal.pause()' 3>&- &
	silent=$!
	eventually 5 listens_at "$T/silent16.sock"
	rm "$T/answers"
	# shellcheck disable=SC2016
	script s "$(command -v bash)" <<'.'
read -r x
echo "dup 0-X-unix://$T/silent$x.sock?queue=q" >&3
read -r x <&4
echo "$x" >>"$T/answers"
.
	seq 0 16 | run_mq 0 mq-publish -l q
	start_mq mq-consume -n 17 -j 17 q -- "$T/s"
	eventually 5 test -s "$T/answers"
	assert_regex "$(cat "$T/answers")" \
		"^fail couldn't connect to queue - unix://$T/silent[0-9]+.sock\?queue=q: too many other servers at once\$"
	kill "$silent"
	ends_with 0
	assert_equal "$(grep -c '^fail ' "$T/answers")" 17
}

@test "dup: to a private server, which is started" {
	mkdir "$T/private"
	asks "0-X-private:$T/private?queue=other"
	# It must know the queue first; then it may sleep.
	run_mq 0 mq-publish -u "private:$T/private" other first
	redis-cli -s "$T/private/redis.sock" shutdown >/dev/null 2>&1 || true
	run_one
	answered "ok ID"
	assert_equal "$(redis-cli -s "$T/private/redis.sock" llen 'rmq::queue::[other]::ready')" 2
	redis-cli -s "$T/private/redis.sock" shutdown nosave >/dev/null 2>&1 || true
}

@test "dup: a password is used and never shown" {
	far config set requirepass 'geheim!' >/dev/null
	asks "0-X-unix://:geheim%21@$FAR/far.sock?queue=other" \
		"0-X-unix://:falsch@$FAR/far.sock?queue=other" \
		"0-X-unix://$FAR/far.sock?queue=other" \
		"0-X-http://me:geheim@host/q/other"
	sed -i 's/echo done/exit 3 #/' "$T/s"
	run_mq 0 mq-publish q 'the payload'
	run_mq 1 mq-consume -v -n 1 q -- "$T/s"
	far -a 'geheim!' --no-auth-warning config set requirepass '' >/dev/null
	answered "ok ID" \
		"fail couldn't connect to queue - $far_url?queue=other: WRONGPASS invalid username-password pair or user is disabled." \
		"fail couldn't connect to queue - $far_url?queue=other: NOAUTH Authentication required." \
		"fail dup failed - an http URL with a password cannot be passed on"
	assert_equal "$(held q)" "0 0 0 1"
	assert_equal "$(element q rejected | header Mq-Error)" \
		"0-X-http://me:***@host/q/other (exit status 3)"
	run grep -r 'geheim\|falsch' "$T/answers" <(printf '%s\n' "$stderr") <(element q rejected)
	assert_output ""
}

@test "dup: a server that says nothing is given up, and nothing waits for it" {
	asks "0-X-$far_url?queue=other"
	script s2 "$(command -v bash)" <<'.'
read -r x
[ "$x" = slow ] && exec "$T/s"
echo "dup 0-X-other" >&3
read -r x <&4
echo "quick: ${x%% *}" >>"$T/answers"
echo done >&3
.
	kill -STOP "$(cat "$FAR/far.pid")"
	run_mq 0 mq-publish q slow fast fast fast fast fast fast
	run_mq 0 mq-consume -j 2 -n 7 q -- "$T/s2"
	kill -CONT "$(cat "$FAR/far.pid")"
	# The first answer is not that of the first message.
	assert_equal "$(head -n 1 "$T/answers")" "quick: ok"
	assert_equal "$(grep -c "^quick: ok$" "$T/answers")" 6
	assert_equal "$(grep -v ^quick "$T/answers")" \
		"fail couldn't connect to queue - $far_url?queue=other: no answer"
	assert_equal "$(held q)" "0 0 0 0"
}

@test "dup: a message is settled when all that its script asked for is answered" {
	# shellcheck disable=SC2016
	echo 'echo "dup 0-X-$MQ_PARAM1" >&3; echo $$ >"$T/pid"; echo done >&3' | script s
	kill -STOP "$(cat "$FAR/far.pid")"
	run_mq 0 mq-publish -P "1=$far_url?queue=other" q x
	start_mq mq-consume -v -n 1 q -- "$T/s"
	eventually 5 test -s "$T/pid"
	eventually 5 gone "$(cat "$T/pid")"
	assert_equal "$(held q)" "0 0 1 0"
	kill -CONT "$(cat "$FAR/far.pid")"
	eventually 8 held_is q "0 0 0 0"
	wait "$pid"
	assert_equal "$(far llen 'rmq::queue::[other]::ready')" 1

	# Nobody waits for it after a second ^C, and it is told.
	rm "$T/pid"
	kill -STOP "$(cat "$FAR/far.pid")"
	run_mq 0 mq-publish -P "1=$far_url?queue=other" q x
	start_mq mq-consume q -- "$T/s"
	eventually 5 test -s "$T/pid"
	eventually 5 gone "$(cat "$T/pid")"
	kill -INT "$pid"
	eventually 5 grep -q stopping "$T/err"
	stop_mq INT
	kill -CONT "$(cat "$FAR/far.pid")"
	assert_equal "$status" 130
	assert_equal "$(held q)" "0 0 0 0"
	run cat "$T/err"
	assert_output --partial "dup to $far_url?queue=other: fail couldn't connect to queue - $far_url?queue=other: no answer"
}

# --- our server goes away -------------------------------------------------------

# ready_to_ask OPTION...: a script of a consumer with these, which asks when $T/go is there.
ready_to_ask() {
	# shellcheck disable=SC2016
	script s "$(command -v bash)" <<'.'
echo ready >"$T/ready"
until [ -e "$T/go" ]; do sleep 0.02; done
echo "dup 0-X-other" >&3
echo asked >"$T/asked"
read -r x <&4
echo "$x" >>"$T/answers"
echo done >&3
.
	redis sadd rmq::queues other >/dev/null
	run_mq 0 mq-publish q x
	start_mq mq-consume -n 1 "$@" q -- "$T/s"
	eventually 5 test -s "$T/ready"
}

@test "dup: a server that comes back in time is waited for" {
	safe_server
	ready_to_ask
	server_kill
	echo >"$T/go"
	eventually 5 test -s "$T/asked"
	server_run "${safe[@]}"
	wait "$pid"
	answered "ok ID"
	assert_equal "$(held other) $(held q)" "1 0 0 0 0 0 0 0"
}

@test "dup: a server that stays away is not waited for, nor one that dies in the middle" {
	ready_to_ask --grace 1s
	server_kill
	echo >"$T/go"
	eventually 15 test -s "$T/answers"
	assert_equal "$(cat "$T/answers")" "fail couldn't connect to queue - other"
	kill -KILL "$pid"
	server_run
}

@test "dup: a connection that breaks in the middle, and the truth about it" {
	# One that answers HELLO and SISMEMBER and dies of the rest.
	python3 -c '
import os, socket
s = socket.socket(socket.AF_UNIX)
s.bind(os.environ["T"] + "/half.sock")
s.listen()
c, _ = s.accept()
c.recv(4096)
c.send(b"-ERR no HELLO\r\n:1\r\n")
c.recv(4096)
c.close()' 3>&- &
	eventually 5 listens_at "$T/half.sock"
	asks "0-X-unix://$T/half.sock?queue=other"
	run_one
	answered "fail dup failed - the connection was lost; the duplicate may exist"
}

@test "dup: dup_relay, as RQ's test script does it" {
	# shellcheck disable=SC2016
	script s "$(command -v bash)" <<'.'
echo "dup 0-X-${RQ_HOST%/}/q/test_nop" >&3
read -u 4 dup_result
echo "$dup_result" >>"$T/answers"
echo done happy >&3
.
	run_one
	answered "fail couldn't connect to queue - relay"
	# With a relay, whose script is told where to.
	redis sadd rmq::queues relay >/dev/null
	rm "$T/answers"
	run_one
	answered "ok ID"
	assert_equal "${ids[0]}" "$(element relay ready | header Mq-Id)"
	# shellcheck disable=SC2016
	run_mq 0 mq-consume -n 1 relay -- sh -c 'echo "$RQ_DEST $RQ_DEST_QUEUE $RQ_ORIG_MSG_ID"
		echo relayed http://there/1 >&3'
	assert_output "http://$(hostname)/q/test_nop test_nop http://$(hostname)/q/q/$id"
}

@test "dup: many scripts at once" {
	# shellcheck disable=SC2016
	script s "$(command -v bash)" <<'.'
read -r x
echo "dup 0-X-a
dup 0-X-b" >&3
read -r a <&4
read -r b <&4
echo "$x ${a#ok } ${b#ok }" >>"$T/answers"
.
	seq 100 | run_mq 0 mq-publish -l q
	run_mq 0 mq-consume -j 8 --drain q -- "$T/s"
	assert_equal "$(held a)$(held b)" "100 0 0 0100 0 0 0"
	"$BUILD/mq-stats" --list ready --jsonl a | jq -r '"\(.payload) \(.id)"' | sort >"$T/a"
	cut -d ' ' -f 1,2 "$T/answers" | sort | cmp - "$T/a"
}
