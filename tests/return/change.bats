#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-return: what waits gets another priority, time or queue.

load ../helpers/server
load ../helpers/wire

returns() {
	run_mq 0 mq-return "${@:2}"
	assert_output "$1"
}

# ready_are PAYLOAD...: what is claimable, in the order of claims.
ready_are() {
	run_mq 0 mq-stats --list ready -l jobs
	assert_equal "$(xargs <<<"$output")" "$*"
}

locks() {
	redis hgetall 'rmq::queue::[jobs]::locks'
}

@test "change: --priority of what is ready, behind others of its priority" {
	"$BUILD/mq-publish" jobs a b c
	"$BUILD/mq-publish" -p 5 jobs high
	"$BUILD/mq-publish" -p -5 jobs low
	returns "1 message changed" --from ready --priority 5 --match b jobs
	ready_are high b a c low
	returns '{"queue":"jobs","changed":2,"dry_run":true}' --from ready -p 0 --dry-run --json --match '[bw]' jobs
	ready_are high b a c low
	returns "2 messages changed" --from ready -p 0 --match '[bw]' jobs
	ready_are high a c b low
	# What has that priority already stays as it is.
	tells 1 "" mq-return --from ready -p 0 --match '^[abc]$' jobs
	returns "4 messages changed" --from ready -p 7 --not --match '^b$' jobs
	returns "1 message changed" --from ready -p 7 jobs
	run_mq 0 mq-stats --list ready --jsonl jobs
	assert_equal "$(grep -c '"priority":7' <<<"$output")" 5
	assert_equal "$(redis llen 'rmq::queue::[jobs]::ready')" 0
}

@test "change: raw messages of Go: a priority gives them a header, a time does not" {
	py 'fill("jobs", "ready", [b"a", b"b", b"\xff\0\xbe\xbe\x4anone", b"c"])'
	returns "1 message changed" --from ready -p 3 -n 1 --match a jobs
	py 'e = call("ZRANGE", key("jobs", "priority"), 0, -1)[0]
want(e[32:], b"\xff\0\xbe\xbe\x4a{\"Mq-Priority\":[\"3\"]}\na")'
	returns "1 message changed" --from ready -d 1h --match '^c' jobs
	py 'want(call("ZRANGE", key("jobs", "delayed"), 0, -1)[0][32:], b"c")'
	returns "1 message changed" --from delayed -d 0 jobs
	py 'want(read("jobs", "ready"), [b"b", b"\xff\0\xbe\xbe\x4anone", b"c"])'
	assert_equal "$(held jobs)" "3 0 0 0"
	# A header that nobody can read stays as it is.
	returns "1 message changed" --from ready -p 3 --match none jobs
	py 'want(read("jobs", "ready"), [b"b", b"c", b"\xff\0\xbe\xbe\x4anone"])'
}

@test "change: --delay and --at of what is ready, delayed or rejected; all get it once" {
	local i
	for i in 1 2 3; do
		"$BUILD/mq-publish" -d ${i}h jobs "$i"
	done
	"$BUILD/mq-publish" jobs r
	returns "3 messages changed" --from delayed --at @4102444800 jobs
	assert_equal "$(redis zcount 'rmq::queue::[jobs]::delayed' 4102444800000 4102444800000)" 3
	tells 1 "" mq-return --from delayed --at @4102444800 jobs
	returns "1 message changed" --from ready -d 90m jobs
	assert_equal "$(held jobs)" "0 4 0 0"
	# Into the middle of a long set: each goes once, and none is left out.
	redis flushall >/dev/null
	seq 3000 | "$BUILD/mq-publish" --raw -l -d 1h jobs
	seq 3001 6000 | "$BUILD/mq-publish" --raw -l -d 3h jobs
	returns "6000 messages changed" --from delayed -d 2h jobs
	assert_equal "$(redis zrange 'rmq::queue::[jobs]::delayed' 0 -1 withscores | sed -n 'n;p' | sort -u | wc -l)" 1
	returns "10 messages changed" --from delayed -d 0 -n 10 jobs
	assert_equal "$(held jobs)" "10 5990 0 0"
	py 'fill("jobs", "rejected", [b"x"])'
	returns "1 message returned" -d 1h jobs
	assert_equal "$(held jobs)" "10 5991 0 0"
}

@test "change: --priority keeps the time of what is delayed" {
	"$BUILD/mq-publish" -d 2s jobs late
	"$BUILD/mq-publish" -p 1 jobs now
	local before
	before=$(redis zrange 'rmq::queue::[jobs]::delayed' 0 -1 withscores | tail -n 1)
	returns "1 message changed" --from delayed -p 9 jobs
	assert_equal "$(redis zrange 'rmq::queue::[jobs]::delayed' 0 -1 withscores | tail -n 1)" "$before"
	sleep 2.1
	"$BUILD/mq-clean" -q
	ready_are late now
}

@test "change: attempts and history stay, but of rejected ones the attempts begin anew" {
	"$BUILD/mq-publish" jobs a
	run_mq 0 mq-consume --drain --attempts 2 --backoff 1h..1h jobs -- sh -c 'exit 75' || true
	run_mq 0 mq-return --from delayed -p 4 -d 0 jobs
	run_mq 0 mq-stats --list ready --jsonl jobs
	assert_regex "$output" '"attempts?":1'
	assert_regex "$output" '"history":\['
}

@test "change: a group keeps its order, its place in line and its lock; so does a batch" {
	local i
	for i in 1 2 3; do
		"$BUILD/mq-publish" -g g --batch b jobs "g$i"
	done
	"$BUILD/mq-publish" --after b jobs follows
	assert_equal "$(held jobs)" "1 3 0 0"
	local before
	before=$(locks | grep -v '^[0-9A-Za-z]\{32\} ')
	returns "3 messages changed" --from delayed -p 5 jobs
	returns "1 message changed" --from ready -p 6 jobs
	assert_equal "$(held jobs)" "0 3 0 0"
	assert_equal "$(locks | grep -v '^[0-9A-Za-z]\{32\} ')" "$before"
	returns "1 message changed" --from delayed -d 1s --match g2 jobs
	returns "1 message changed" --from ready -d 1s jobs
	assert_equal "$(held jobs)" "0 4 0 0"
	sleep 1.2
	assert_equal "$(drained jobs)" "g1 g2 g3 follows"
	run_mq 0 mq-stats --batch b jobs
	assert_regex "$output" 3
}

@test "change: a key stays, and records when its message is due" {
	"$BUILD/mq-publish" -k one --unique queued jobs a
	returns "1 message changed" --from ready --at @4102444800 jobs
	assert_regex "$(locks | tail -n 1)" ' 4102444800000$'
	run_mq 1 mq-publish -k one jobs b
	# Another message joins it, and makes it due.
	run_mq 0 mq-publish -k one --unique queued --coalesce jobs b
	"$BUILD/mq-clean" -q
	assert_equal "$(held jobs)" "1 0 0 0"
	returns "1 message changed" --from ready -d 1h jobs
	returns "1 message changed" --from delayed -d 0 jobs
	run_mq 1 mq-publish -k one jobs b
	run_mq 0 mq-consume --drain jobs -- true
	run_mq 0 mq-publish -k one jobs b
}

@test "change: --to from ready: key and batch end here, and go on there" {
	"$BUILD/mq-publish" -k one -g g jobs a
	"$BUILD/mq-publish" -g g jobs b
	"$BUILD/mq-publish" jobs c
	returns "2 messages returned" --from ready --to other -p 3 --delay 1h jobs
	assert_equal "$(held jobs) / $(held other)" "1 0 0 0 / 0 2 0 0"
	run_mq 0 mq-publish -k one jobs again
	run_mq 1 mq-publish -k one other again
	returns "2 messages returned" --from delayed --to jobs other
	# The first is in line now, and has its turn when the other one has left.
	returns "3 messages returned" --from ready --to other jobs
	returns "1 message returned" --from ready --to other jobs
	assert_equal "$(held jobs)" "0 0 0 0"
	assert_equal "$(redis zcard 'rmq::queue::[jobs]::priority')" 0
}

@test "change: without a change, and where it does not hold: 64" {
	tells 64 "mq-return: --from: ready: needs --clone" mq-return --from ready jobs
	tells 64 "mq-return: --from: unacked: needs --clone" mq-return --from unacked -p 1 jobs
	tells 64 "mq-return: --to: jobs: must be another queue" mq-return --from ready --to jobs jobs
	tells 64 "mq-return: --delay and --at cannot be used together" mq-return --from ready -d 1s --at 12:00 jobs
	tells 64 "mq-return: --priority: not with --from unacked" mq-return --from unacked:x -p 1 jobs
	tells 64 "mq-return: --clone and --delay cannot be used together" mq-return --clone -d 1s jobs
	[ "${TOPOLOGY-}" = cluster ] || tells 64 "mq-return: --priority: the layout rsmq has no changes of messages" mq-return -L rsmq -p 1 jobs
	run_mq 64 mq-return --from ready --at 2h jobs
	assert_equal "$stderr" "mq-return: --at: 2h: not a time but a duration; use -d 2h"
	run_mq 64 mq-return --from ready --priority 101 jobs
	assert_equal "${stderr#*: }" "$("$BUILD/mq-publish" --priority 101 jobs x 2>&1 | sed 's/^[^:]*: //')"
	run_mq 64 mq-return --running --id "$(printf '%032d' 1)" -p 1 jobs
}

@test "change: racing with consumers: each runs once, none is lost" {
	seq 3000 | "$BUILD/mq-publish" -l jobs
	"$BUILD/mq-consume" --drain -l jobs >"$T/ran" 2>/dev/null 3>&- &
	pid=$!
	for i in 1 2 3; do
		"$BUILD/mq-return" --from ready -p "$i" jobs >/dev/null || true
		"$BUILD/mq-return" --from ready -d 10ms jobs >/dev/null || true
		"$BUILD/mq-return" --from delayed -d 0 jobs >/dev/null || true
	done
	wait "$pid" || true
	"$BUILD/mq-return" --from delayed jobs >/dev/null || true
	"$BUILD/mq-consume" --drain -l jobs >>"$T/ran" 2>/dev/null
	assert_equal "$(sort -n "$T/ran" | md5sum)" "$(seq 3000 | md5sum)"
}

@test "change: killed, and again: nothing is lost or doubled" {
	seq 20000 | "$BUILD/mq-publish" --raw -l jobs
	start_mq mq-return --from ready -p 5 --rate 20000 jobs
	eventually 10 eval '(($(redis zcard "rmq::queue::[jobs]::priority") > 100))'
	kill -KILL "$pid"
	wait "$pid" || true
	"$BUILD/mq-return" --from ready -p 5 jobs
	run_mq 0 mq-stats --list ready -l jobs
	assert_equal "$(sort -n <<<"$output" | md5sum)" "$(seq 20000 | md5sum)"
	assert_equal "$(redis llen 'rmq::queue::[jobs]::ready') $(redis zcard 'rmq::queue::[jobs]::priority')" "0 20000"
}

@test "change: a full server does not refuse it" {
	local used
	"$BUILD/mq-publish" jobs a b
	"$BUILD/mq-publish" -d 1h jobs c
	used=$(redis info memory | tr -d '\r' | sed -n 's/^used_memory://p')
	redis config set maxmemory "$((used / 2))" >/dev/null
	run_mq 0 mq-return --from ready -p 2 --match a jobs
	run_mq 0 mq-return --from ready -d 1h --match b jobs
	run_mq 0 mq-return --from delayed -p 2 jobs
	redis config set maxmemory 0 >/dev/null
	assert_equal "$(held jobs)" "0 2 0 0"
}
