#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-return: on queues as a Go program leaves them, and on our own.

load ../helpers/server
load ../helpers/go
load ../helpers/wire

# What Go leaves behind: raw elements in a list, and a known queue.
go_rejected() {
	redis sadd rmq::queues "$1" >/dev/null
	redis lpush "rmq::queue::[$1]::rejected" "${@:2}" >/dev/null
}

# returns TEXT ARG...: mq-return ends with 0, and has printed that.
returns() {
	run_mq 0 mq-return "${@:2}"
	assert_output "$1"
}

@test "return: what Go rejected is ready again, in order, behind what waits" {
	go_rejected jobs a b c d e f
	redis lpush "rmq::queue::[jobs]::ready" x y >/dev/null
	returns "1 message returned" -n 1 jobs
	returns '{"queue":"jobs","returned":2,"dry_run":false}' --limit 2 --to other --json jobs
	returns "3 messages returned" jobs
	assert_equal "$stderr" ""
	assert_equal "$(list jobs ready | xargs) / $(list other ready | xargs)" "x y a d e f / b c"
	# Where queues are on different nodes, that they have come is noted for a while.
	assert_equal "$(redis keys '*' | grep -v '::incoming$' | sort)" \
		$'rmq::queue::[jobs]::ready\nrmq::queue::[other]::ready\nrmq::queues'
	assert_equal "$(redis smembers rmq::queues | sort)" $'jobs\nother'
}

@test "return: nothing there: 1, and nothing changes" {
	redis sadd rmq::queues jobs >/dev/null
	digest >"$T/before"
	run_mq 1 mq-return jobs
	assert_output "0 messages returned"
	run_mq 1 mq-return --json jobs
	assert_output '{"queue":"jobs","returned":0,"dry_run":false}'
	tells 1 "" mq-return --to other jobs
	tells 1 "mq-return: nonesuch: no such queue" mq-return nonesuch
	assert_equal "$(digest)" "$(cat "$T/before")"
}

@test "return: several queues, each with its number; --limit is for all" {
	go_rejected jobs a b c
	go_rejected mails d e
	run_mq 0 mq-return --dry-run jobs mails nonesuch
	assert_output $'jobs: 3 messages would be returned\nmails: 2 messages would be returned\nnonesuch: 0 messages would be returned'
	assert_equal "$stderr" "mq-return: nonesuch: no such queue"
	returns $'jobs: 3 messages returned\nmails: 1 message returned' -n 4 jobs mails
	run_mq 0 mq-return --json --to jobs jobs mails
	assert_output $'{"queue":"jobs","returned":0,"dry_run":false}\n{"queue":"mails","returned":1,"dry_run":false}'
	assert_equal "$(list jobs ready)" $'a\nb\nc\ne'
	run_mq 1 mq-return jobs mails
	run_mq 0 mq-return -q --clone --from ready jobs mails
	assert_equal "${#lines[@]}" 5
	assert_equal "$(held jobs)" "8 0 0 0"
}

@test "return: attempts begin anew, all else stays" {
	local them='
head = b"\xff\0\xbe\xbe\x4a"
def them(n):
    return [
        head + b"{\"Mq-Id\":[\"%s\"],\"Mq-Attempt\":[\"%d\"],\"Mq-Error\":[\"no \\\"Mq-Attempt\\\":[\\\"7\\\"]\"]}\npay\"Mq-Attempt\":[\"9\"]" % (b"x" * 32, n),
        head + b"{ \"Mq-Attempt\":[\"%d\" ] }\nbody" % n,
        head + b"{\"X\":[\"y\"]}\n\"Mq-Attempt\":[\"3\"]",
        head + b"{\"Mq-Attempt\":[\"3\"]} no end",
        b"\"Mq-Attempt\":[\"3\"]\n"]
'
	py "$them"'fill("jobs", "rejected", [e.replace(b"\":[\"2", b"\" : [ \"2") for e in them(2)])'
	returns "5 messages returned" jobs
	py "$them"'want(read("jobs", "ready"), them(0))'
	# With a filter it is another way.
	redis del "rmq::queue::[jobs]::ready" >/dev/null
	py "$them"'fill("jobs", "rejected", them(4))'
	returns "5 messages returned" --match . jobs
	py "$them"'
got = read("jobs", "ready")
want([b"\"Mq-Attempt\":[\"0\"" in e for e in got], [True, True, False, False, False])
want(got[2:], them(0)[2:])'
}

@test "return: --match, --reason, --since and --id, all of which must match" {
	local now old id
	now=$(date +%s%3N)
	old=$((now - 7200000))
	id=$(printf '%032d' 7)
	py "
head = b'\xff\0\xbe\xbe\x4a'
def m(headers, payload):
    return head + headers + b'\n' + payload
fill('jobs', 'rejected', [
  b'apple',
  m(b'{\"Mq-Error\":[\"timed out\"],\"Mq-History\":[\"{\\\\\"at_ms\\\\\":$now}\"]}', b'apple 1'),
  m(b'{\"Mq-Error\":[\"timed out\"],\"Mq-History\":[\"{\\\\\"at_ms\\\\\":$old}\"]}', b'apple 2'),
  m(b'{\"Mq-Error\":[\"no route\"],\"Mq-Due\":[\"$now\"]}', b'apple 3'),
  m(b'{\"Mq-Id\":[\"$id\"]}', b'timed out'),
  m(b'{\"X\":[\"$id\"]}', b'plum'),
  m(b'no json', b'$id')])"
	digest >"$T/before"
	returns "4 messages would be returned" --dry-run --match '^apple( [0-9])?$' jobs
	returns "2 messages would be returned" --dry-run --reason 'tim.d' jobs
	returns "2 messages would be returned" --dry-run --since 1h jobs
	returns "3 messages would be returned" --dry-run --since 3h --reason . jobs
	returns "1 message would be returned" --dry-run --since 1h --reason tim jobs
	returns "1 message would be returned" --dry-run --match 'no json' jobs
	returns '{"queue":"jobs","returned":1,"dry_run":true}' --dry-run --json --id "$id" jobs
	run_mq 1 mq-return --dry-run --id "$id" --match plum jobs
	returns "7 messages would be returned" --dry-run jobs
	returns "3 messages would be returned" --dry-run -n 3 jobs
	assert_equal "$(digest)" "$(cat "$T/before")"
	returns "1 message returned" --id "$id" jobs
	py "want([e[-9:] for e in read('jobs', 'ready')], [b'timed out'])
"
	assert_equal "$(held jobs)" "1 0 0 6"
}

@test "return: 10,000 hostile messages, byte for byte, order kept" {
	py 'fill("jobs", "rejected", hostile(10000))'
	digest >"$T/before"
	run_mq 0 mq-return --dry-run --match '\\' jobs
	py 'print(sum(b"\\" in e for e in hostile(10000)))' >"$T/n"
	assert_output "$(cat "$T/n") messages would be returned"
	assert_equal "$(digest)" "$(cat "$T/before")"
	run_mq 0 mq-return --match '\\' jobs
	assert_output "$(cat "$T/n") messages returned"
	py '
all = hostile(10000)
want(read("jobs", "ready"), [e for e in all if b"\\" in e])
want(read("jobs", "rejected"), [e for e in all if b"\\" not in e])'
	# Bytes that are no text, over a NUL and a newline, in the rest.
	run_mq 0 mq-return --to bin --match $'(\xff|\xc3)[^a]*\\$' jobs
	py '
import re
rest = [e for e in hostile(10000) if b"\\" not in e]
hit = [e for e in rest if re.search(rb"(\xff|\xc3)[^a]*\$", e)]
want(read("bin", "ready"), hit)
keep = set(hit)
want(read("jobs", "rejected"), [e for e in rest if e not in keep])
print(len(hit))' >"$T/n"
	assert_output "$(cat "$T/n") messages returned"
	run_mq 0 mq-return --to rest jobs
	py '
import re
want(read("rest", "ready"), [e for e in hostile(10000) if b"\\" not in e
    and not re.search(rb"(\xff|\xc3)[^a]*\$", e)])'
	assert_equal "$(held jobs)" "$(py 'print(len([e for e in hostile(10000) if b"\\" in e]))') 0 0 0"
}

@test "return: equal messages, only as many as there are" {
	py 'fill("jobs", "rejected", [b"a", b"b", b"a", b"a", b"b"] * 1000)'
	returns "1500 messages returned" --match a -n 1500 jobs
	py '
want(read("jobs", "ready"), [b"a"] * 1500)
want(read("jobs", "rejected"), [b"b", b"b"] * 500 + [b"a", b"b", b"a", b"a", b"b"] * 500)'
}

@test "return: a message of 20 MB among small ones" {
	local them='
small = [b"s%d" % i for i in range(2000)]
big = [b"big" + b"\0\xff" * 10000000]
'
	py "$them"'fill("jobs", "rejected", small + big + small)'
	returns "1 message returned" --match '^big' jobs
	returns "222 messages returned" --match '^s19' jobs
	returns "3778 messages returned" jobs
	py "$them"'
hit = [e for e in small if e[:3] == b"s19"]
rest = [e for e in small if e[:3] != b"s19"]
want(read("jobs", "ready"), big + hit + hit + rest + rest)'
}

ready_above() {
	(($(redis llen 'rmq::queue::[jobs]::ready') > $1))
}

@test "return: --from delayed, those that fall due first" {
	"$BUILD/mq-publish" --raw -d 2h jobs second
	"$BUILD/mq-publish" --raw -d 1h jobs first
	"$BUILD/mq-publish" --raw -d 3h jobs third
	returns "3 messages would be returned" --from delayed --dry-run jobs
	returns "2 messages returned" --from delayed --match i jobs
	returns "1 message returned" --from delayed jobs
	assert_equal "$(list jobs ready)" $'first\nthird\nsecond'
	# Many, most of them due at once.
	redis flushall >/dev/null
	seq 5000 | "$BUILD/mq-publish" --raw -l -d 1h jobs
	returns "500 messages returned" --from delayed --match '7$' jobs
	assert_equal "$(list jobs ready | sort -n)" "$(seq 7 10 5000)"
	assert_equal "$(held jobs)" "500 4500 0 0"
	returns "4500 messages returned" --from delayed --to rest jobs
	assert_equal "$(list rest ready | sort -n)" "$(seq 5000 | grep -v '7$')"
}

@test "return: --from unacked: to the front, in order; with filters to the end" {
	go_connect web-aaaaaa
	go_consume web-aaaaaa jobs
	go_holds web-aaaaaa jobs a b c d e
	redis lpush "rmq::queue::[jobs]::ready" x >/dev/null
	digest >"$T/before"
	for opt in --dry-run --match=a --quiet; do
		run_mq 75 mq-return --from unacked:web-aaaaaa "$opt" jobs
		assert_equal "$stderr" \
			"mq-return: web-aaaaaa: it is alive; stop it first"
	done
	assert_equal "$(digest)" "$(cat "$T/before")"
	go_dies web-aaaaaa
	returns "1 message returned" --from unacked:web-aaaaaa --match b jobs
	returns "4 messages returned" --from unacked:web-aaaaaa jobs
	assert_equal "$(list jobs ready)" $'a\nc\nd\ne\nx\nb'
	run_mq 1 mq-return --from unacked:web-aaaaaa jobs
	run_mq 1 mq-return --from unacked:nonesuch jobs
}

# The count on stderr, and how many more there may be.
told() {
	sed -nE 's/^mq-return: ([0-9]+) messages? returned(, and up to ([0-9]+) more)?$/\1 \3/p' "$T/err"
}

@test "return: INT and TERM: the exact count, and a new run goes on" {
	local signal filter n
	for signal in INT TERM; do
		for filter in --match=. -q; do
			redis flushall >/dev/null
			py 'fill("jobs", "rejected", [b"%d" % i for i in range(20000)])'
			start_mq mq-return "$filter" --rate 5000 jobs
			eventually 10 ready_above 100
			stop_mq "$signal"
			assert_equal "$status" $((128 + $(kill -l $signal)))
			n=$(redis llen 'rmq::queue::[jobs]::ready')
			assert_equal "$(cat "$T/err")" "mq-return: interrupted
mq-return: $n messages returned"
			assert_equal "$(cat "$T/out")" ""
			returns "$((20000 - n)) messages returned" "$filter" jobs
			py 'want(read("jobs", "ready"), [b"%d" % i for i in range(20000)])'
		done
	done
}

@test "return: the server dies: what is certain, and how many more it may be" {
	local told n filter
	for filter in --match=. -q; do
		[ "$D" = "$FILE_D" ] || server_stop
		server_start --appendonly yes --appendfsync always
		py 'fill("jobs", "rejected", [b"%d" % i for i in range(20000)])'
		start_mq mq-return "$filter" --rate 5000 jobs
		eventually 10 ready_above 100
		server_kill
		ends_within 60
		assert_equal "$status" 69
		told=$(told)
		assert [ -n "$told" ]
		server_run --appendonly yes --appendfsync always
		n=$(redis llen 'rmq::queue::[jobs]::ready')
		echo "told $told, $n are"
		((n >= ${told% *} && n <= ${told% *} + ${told#* } + 0))
		assert_equal "$(redis llen 'rmq::queue::[jobs]::rejected')" $((20000 - n))
		run_mq 0 mq-return "$filter" jobs
		py 'want(read("jobs", "ready"), [b"%d" % i for i in range(20000)])'
	done
}

@test "return: --rate, evenly" {
	py 'fill("jobs", "rejected", [b"%d" % i for i in range(11)])'
	no_sooner 500 returns "11 messages returned" --rate 1200/m:1 jobs
}

@test "return: two at once, and others that reject and take: nothing lost" {
	py 'fill("jobs", "rejected", [b"%d" % i for i in range(20000)])'
	"$BUILD/mq-return" --match '[0-4]$' jobs >"$T/one" 3>&- &
	"$BUILD/mq-return" --match '[3-9]$' jobs >"$T/two" 3>&- &
	# Go rejects more, and returns some by itself.
	py '
for i in range(20000, 21000):
    call("LPUSH", key("jobs", "rejected"), b"%d" % i)
    if i % 2:
        call("RPOPLPUSH", key("jobs", "rejected"), key("jobs", "ready"))'
	wait
	run_mq 0 mq-return --match . jobs || true
	py 'want(sorted(read("jobs", "ready") + read("jobs", "rejected")), sorted(b"%d" % i for i in range(21000)))'
	assert_equal "$(redis llen 'rmq::queue::[jobs]::rejected')" 0
}

@test "return: it ends although all that it returns is rejected again" {
	seq 3000 | "$BUILD/mq-publish" --raw -l jobs
	redis rename 'rmq::queue::[jobs]::ready' 'rmq::queue::[jobs]::rejected' >/dev/null
	python3 -S -c '
from wire import *
while True:
    call("RPOPLPUSH", key("jobs", "ready"), key("jobs", "rejected"))' 3>&- &
	pid=$!
	# Slowly, so that each is rejected before the next one moves.
	returns "3000 messages returned" --match . --rate 5000 jobs
	eventually 10 eval '(($(redis llen "rmq::queue::[jobs]::rejected") > 2999))'
	returns "3000 messages returned" --rate 5000 jobs
	kill "$pid"
	wait "$pid" || true
	assert_equal "$(held jobs | awk '{print $1 + $4}')" 3000
}

@test "return: 40 MB of messages in 16 MB" {
	case $BUILD in *address*) skip "the sanitizer needs memory" ;; esac
	redis eval 'local t = {} for i = 1, 1000 do t[i] = ("x"):rep(200) .. i end
		for i = 1, 200 do redis.call("LPUSH", KEYS[1], unpack(t)) end
		return redis.call("LLEN", KEYS[1])' 1 'rmq::queue::[jobs]::rejected' >/dev/null
	for filter in --match=x7 -q; do
		peak "$BUILD/mq-return" "$filter" jobs
		((peak < 16384))
	done
	assert_equal "$(redis llen 'rmq::queue::[jobs]::ready')" 200000
}

@test "return: something else under a key: 76, and nothing changes" {
	local filter
	for filter in --match=. -q; do
		redis flushall >/dev/null
		go_rejected jobs a b c
		redis set 'rmq::queue::[jobs]::ready' mine >/dev/null
		digest >"$T/before"
		run_mq 76 mq-return "$filter" jobs
		assert_regex "$stderr" 'WRONGTYPE'
		assert_equal "$output" ""
		assert_equal "$(digest)" "$(cat "$T/before")"
		redis flushall >/dev/null
		redis set 'rmq::queue::[jobs]::rejected' mine >/dev/null
		run_mq 76 mq-return "$filter" jobs
	done
}

@test "return: forbidden commands: 77, and nothing changes" {
	local command filter
	for command in lpush lset lrem ltrim lrange eval; do
		redis flushall >/dev/null
		go_rejected jobs a b c
		digest >"$T/before"
		redis acl setuser some on '>pw' allkeys +@all "-$command" >/dev/null
		for filter in --match=b -q; do
			[[ $command$filter != l[sr]e[tm]-q ]] || continue
			run_mq 77 mq-return "$filter" -u "$(url_as some:pw)" jobs
			assert_equal "$output" ""
			assert_equal "$(digest)" "$(cat "$T/before")"
		done
		redis acl deluser some >/dev/null
		redis script flush >/dev/null
	done
}

@test "return: a full server does not refuse it" {
	local used
	go_rejected jobs a b c
	used=$(redis info memory | tr -d '\r' | sed -n 's/^used_memory://p')
	redis config set maxmemory "$((used / 2))" >/dev/null
	run_mq 0 mq-return -n 1 jobs
	run_mq 0 mq-return --match b jobs
	redis config set maxmemory 0 >/dev/null
	assert_equal "$(held jobs)" "2 0 0 1"
}

@test "return: a bar on a terminal for long work, and it goes away" {
	py 'fill("jobs", "rejected", [b"%d" % i for i in range(300)])'
	on_terminal '' "$BUILD/mq-return" --rate 200 jobs >"$T/out"
	grep -q '[0-9]%.*\[#*\.*\]' "$T/out"
	# Blanks over it, then the result.
	assert_equal "$(tr '\r' '\n' <"$T/out" | grep -v '^$' | tail -n 1)" \
		"300 messages returned"
	assert_equal "$(tr '\r' '\n' <"$T/out" | awk 'length > 39')" ""
	py 'fill("jobs", "rejected", [b"%d" % i for i in range(300)])'
	on_terminal '' "$BUILD/mq-return" -q --rate 200 jobs >"$T/out"
	assert_equal "$(tr -d '\r' <"$T/out")" "300 messages returned"
}

@test "return: --clone, a copy with a new id, from any state, and counted" {
	local id
	id=$("$BUILD/mq-publish" -i -k one -H 'Colour: red' jobs apple)
	"$BUILD/mq-publish" jobs pear
	tells 0 "mq-return: 2 messages cloned" mq-return --clone --from ready jobs
	copies=$output
	prints $'apple\npear\napple\npear' mq-stats --list ready -l jobs
	run_mq 0 mq-stats --list ready --jsonl jobs
	assert_equal "$(sed 's/{"id":"\([^"]*\)".*/\1/' <<<"$output" | tail -n 2)" "$copies"
	prints apple mq-stats --list ready -l --header Colour=red --not --id "$id" jobs
	prints apple mq-stats --list ready -l --key one jobs
	assert_equal "$(redis hget 'rmq::queue::[jobs]::counters' published)" 4
	"$BUILD/mq-purge" -f --ready jobs
	"$BUILD/mq-publish" -d 1h jobs late
	run_mq 0 mq-return --clone --from delayed --json jobs
	assert_output --regexp '^\{"queue":"jobs","cloned":1,"dry_run":false,"ids":\["[0-9A-Za-z]{32}"\],"in_line":0\}$'
	assert_equal "$(held jobs)" "1 1 0 0"
	# What a live consumer has.
	"$BUILD/mq-lease" --for 1h jobs >/dev/null
	tells 0 "mq-return: 1 message cloned" mq-return --clone --from unacked jobs
	assert_equal "$(held jobs)" "1 1 1 0"
	py 'fill("jobs", "rejected", [b"raw", b"bad"])'
	run_mq 0 mq-return -q --clone --match raw jobs
	assert_output --regexp '^[0-9A-Za-z]{32}$'
	assert_equal "$stderr" ""
	assert_equal "$(held jobs)" "2 1 1 2"
	returns "2 messages would be cloned" --clone --dry-run jobs
	run_mq 64 mq-return --from ready jobs
	assert_regex "$stderr" 'needs --clone$'
}

@test "return: --clone: a lost connection leaves one copy at most that is not told" {
	no_cluster "the gate stands before one server"
	no_sentinel "the gate stands before one server"
	run_mq 0 mq-publish jobs one two three four
	python3 -S "$root/tests/helpers/gate.py" "$T/gate" \
		"$D/redis.sock" three 3>&- &
	gate=$!
	eventually 20 listens_at "$T/gate"
	start_mq mq-return -u "unix://$T/gate" --clone --from ready jobs
	eventually 20 test -e "$T/gate.waits"
	kill -KILL "$gate"
	ends_within 60
	assert_equal "$status" 69
	assert_equal "$(tail -n 1 "$T/err")" "mq-return: 2 messages cloned, and up to 1 more"
	assert_equal "$(wc -l <"$T/out") $(held jobs)" "2 6 0 0 0"
}
