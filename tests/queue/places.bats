#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# topologies: cluster
# The operators' tools and the places of delivery: what has a priority, waits
# for a tick or its group's turn, or holds a key is seen, moved and removed as
# any other message, and lets go of what it holds.

# Options are words, or none.
# shellcheck disable=SC2086

load ../helpers/server

setup() {
	common_setup
	q='rmq::queue::[q]'
}

# pub OPTION... PAYLOAD: publishes to q; its id in $id.
pub() {
	id=$("$BUILD/mq-publish" -i "${@:1:$#-1}" q "${@: -1}")
}

# places [QUEUE]: "list priority delayed rejected locks".
places() {
	local k="rmq::queue::[${1:-q}]"
	echo "$(redis llen "$k::ready") $(redis zcard "$k::priority")" \
		"$(redis zcard "$k::delayed") $(redis llen "$k::rejected")" \
		"$(redis hlen "$k::locks")"
}

# listed STATE [QUEUE]: the payloads, on one line.
listed() {
	"$BUILD/mq-stats" -q --list "$1" --lines "${2:-q}" | xargs
}

# lock FIELD: who holds it; g for the only group.
lock() {
	local field=$1
	[ "$field" != g ] || field=$(redis hkeys "$q::locks" | grep '^g')
	# Without the time when it was taken.
	redis hget "$q::locks" "$field" | sed 's/ [0-9]*$//'
}

# reject_all: everything that can be claimed is rejected.
reject_all() {
	run_mq 1 mq-consume --drain q -- sh -c 'echo "err no luck" >&3'
}

# What is left of q in the server, but for its counts.
kept() {
	redis keys "rmq::queue::*" | grep -v '::counters$'
}

@test "places: ready is the list and what has a priority, in the order of claiming" {
	local i
	for i in -5 0 7 100 -100 0 7; do
		pub -p "$i" "p$i"
	done
	run_mq 0 mq-publish --tick 3 q
	pub --from-tick 3 t3
	pub --from-tick 2 t2
	pub --from-tick 4 t4
	run_mq 0 mq-stats --json q
	assert_output --partial '"ready":9,"delayed":1,'
	assert_output --partial '"next_due_ms":null,"in_line":0,"tick":3,'
	run_mq 0 mq-stats q
	assert_line --regexp '^q +9 +1 +0 +0 +0 +[0-9]+s '
	assert_equal "$(listed ready)" "t2 t3 p100 p7 p7 p0 p0 p-5 p-100"
	# --offset and --limit go over all of it.
	prints $'t3\np100' mq-stats --list ready --lines --offset 1 -n 2 q
	prints $'p7\np0\np0\np-5' mq-stats --list ready --lines --offset 4 -n 4 q
	prints p-100 mq-stats --list ready --lines --offset 8 q
	run_mq 1 mq-stats --list ready --lines --offset 9 q
	prints $'t2\np-5' mq-stats --list ready --lines --match '[25]$' q
	assert_equal "$(drained)" "t2 t3 p100 p7 p7 p0 p0 p-5 p-100"
}

@test "places: what delayed messages wait for" {
	pub -d 90m -p 3 time
	pub --from-tick 12 tick
	pub -g a one
	pub -g a two
	run_mq 0 mq-stats --list delayed q
	assert_line --index 1 --regexp ' +0  1h       time$'
	assert_line --index 2 --regexp ' +0  tick 12  tick$'
	assert_line --index 3 --regexp ' +0  turn     two$'
	run_mq 0 mq-stats --list delayed --jsonl q
	assert_line --index 0 --regexp '"waits_for":"time","due_ms":[0-9]{13},"priority":3,'
	assert_line --index 1 --partial '"waits_for":"tick","tick":12,"from_tick":12,'
	assert_line --index 2 --partial '"waits_for":"turn","group":"a",'
	refute_line --index 1 --partial due_ms
	refute_line --index 2 --partial due_ms
	run_mq 0 mq-stats --json q
	assert_output --regexp '"ready":1,"delayed":3,.*"next_due_ms":[0-9]{13},"in_line":1,"tick":null,'
	# What waits for a turn or a tick is never due.
	run_mq 0 mq-purge -f --delayed --match time q
	run_mq 0 mq-consume -n 1 q
	run_mq 0 mq-purge -f --ready q
	run_mq 0 mq-stats q
	assert_line --regexp '^q +0 +1 +0 +0 +0 +- '
}

@test "places: --id finds them, and says what they ask for" {
	pub -p -7 -k 'the key' --unique 10s -e 1h low
	run_mq 0 mq-stats --id "$id"
	assert_line "state       ready"
	assert_line "priority    -7"
	assert_line "key         the key (10000 ms)"
	assert_line --regexp '^expires     20.* \(in [0-9]+m\)$'
	pub --from-tick 3 --until-tick 5 tick
	run_mq 0 mq-stats --id "$id"
	assert_line "waits for   tick 3"
	assert_line "from tick   3"
	assert_line "until tick  5"
	pub -g a one
	pub -g a two
	run_mq 0 mq-stats --id "$id"
	assert_line "waits for   its group's turn"
	assert_line "group       a"
	run_mq 0 mq-stats --id "$id" --json
	assert_output --partial '"state":"delayed","attempts":0,'
	assert_output --partial '"waits_for":"turn","group":"a"'
}

@test "places: the age is that of the oldest, which may have a low priority" {
	local old
	# An hour ago it was put in order.
	old=$(($(date +%s) - 3600))
	redis sadd rmq::queues q >/dev/null
	redis zadd "$q::priority" 9 "n${old}000000000001000000000x" \
		8 "n$((old + 3000))000000000001000000000y" >/dev/null
	pub -p 5 young
	pub young
	run_mq 0 mq-stats q
	assert_line --regexp '^q +4 +0 +0 +0 +0 +1h '
	redis zadd "$q::priority" -9 \
		"f$((10000000000 - old + 3600))000000000000000000000z" >/dev/null
	run_mq 0 mq-stats q
	assert_line --regexp '^q +5 +0 +0 +0 +0 +2h '
	run_mq 2 mq-stats --check age=1h q
}

@test "places: --drain waits for priorities, due ticks and those in line" {
	pub -p 5 high
	pub --from-tick 2 tick
	pub -g a one
	pub -g a two
	pub -g a three
	assert_equal "$(drained)" "high one two three"
	run_mq 0 mq-publish --tick 2 q
	assert_equal "$(drained)" "tick"
	# The holder waits for its time; nothing else is to be done.
	pub -g a -d 1h one
	pub -g a two
	prints "" mq-consume --drain q
	assert_equal "$(places)" "0 0 2 0 1"
}

@test "places: a consumer that stops gives everything back to its place" {
	local i
	for i in 0 0 5 5 -5; do
		pub -p "$i" -k "k$((++n))" --unique queued "p$i-$n"
	done
	pub -g a g1
	pub -g a g2
	start_mq mq-consume -j 1 --prefetch 9 --grace 100ms q -- sleep 60
	eventually 10 held_is q "0 1 6 0"
	stop_mq TERM
	assert_equal "$(places)" "3 3 1 0 6"
	assert_equal "$(listed ready)" "p5-3 p5-4 p0-1 p0-2 g1 p-5-5"
	assert_equal "$(drained)" "p5-3 p5-4 p0-1 p0-2 g1 p-5-5 g2"
	assert_equal "$(places)" "0 0 0 0 0"
}

@test "places: rejected messages come back to their priority and tick" {
	local how
	run_mq 0 mq-publish --tick 1 q
	for how in '' '--match .'; do
		pub -p 5 high1
		pub plain
		pub -p -5 low
		pub --from-tick 1 tick
		pub -p 5 high2
		reject_all
		assert_equal "$(places)" "0 0 0 5 0"
		prints "5 messages returned" mq-return $how q
		assert_equal "$(places)" "1 4 0 0 0"
		assert_equal "$(drained)" "tick high1 high2 plain low"
	done
}

@test "places: a returned message takes its key again if it is free, and stands in line" {
	local how first
	for how in '' '--match .'; do
		pub -k a first
		first=$id
		reject_all
		assert_equal "$(lock ka)" ""
		run_mq 0 mq-return $how q
		assert_equal "$(lock ka)" "$first done"
		run_mq 1 mq-publish -k a q again
		reject_all
		pub -k a second
		prints "1 message returned" mq-return $how q
		assert_equal "$(lock ka)" "$id done"
		assert_equal "$(drained)" "second first"
		assert_equal "$(places)" "0 0 0 0 0"
		# Its group is busy.
		pub -g a one
		reject_all
		pub -g a two
		pub -g a three
		prints "1 message returned" mq-return $how q
		assert_equal "$(places)" "1 0 2 0 1"
		assert_equal "$(lock g)" "$("$BUILD/mq-stats" --list ready --jsonl q |
			grep -o '"id":"[^"]*' | cut -c7-)"
		assert_equal "$(drained)" "two three one"
		assert_equal "$(places)" "0 0 0 0 0"
	done
}

@test "places: --from delayed: now, whatever they wait for, but in line" {
	local how left
	for how in '' '--match .'; do
		pub -d 1h -p 5 time
		pub --from-tick 7 tick
		pub -d 1h --from-tick 7 both
		pub -d 1h -g a one
		pub -g a two
		pub -g a three
		prints "4 messages would be returned" mq-return --dry-run --from delayed $how q
		prints "4 messages returned" mq-return --from delayed $how q
		assert_equal "$stderr" "mq-return: q: 2 stay in line for their group"
		assert_equal "$(places)" "1 3 2 0 1"
		run_mq 1 mq-return --from delayed --json $how q
		assert_output '{"queue":"q","returned":0,"dry_run":false,"in_line":2}'
		# At an earlier tick it may be retried.
		run_mq 75 mq-consume -n 1 q -- sh -c 'echo "resend 0" >&3'
		left=$(drained)
		assert_equal "$(xargs -n1 <<<"$left" | sort | xargs)" \
			"both one three tick time two"
		assert_regex "$left" '^(both tick|tick both) time one two three$'
		assert_equal "$(places)" "0 0 0 0 0"
	done
}

@test "places: --to: the key, the line and the tick are of the other queue" {
	local how
	for how in '' '--match .'; do
		"$BUILD/mq-publish" -k k -g a other busy
		pub -k k -g a -d 1h one
		pub -g a two
		pub -g a three
		prints "3 messages returned" mq-return --from delayed --to other $how q
		assert_equal "$stderr" ""
		assert_equal "$(places)" "0 0 0 0 0"
		assert_equal "$(places other)" "1 0 3 0 2"
		assert_equal "$(drained other)" "busy one two three"
		assert_equal "$(places other)" "0 0 0 0 0"
		run_mq 0 mq-publish --tick 3 q
		pub --from-tick 3 tick
		reject_all
		run_mq 0 mq-return --to other $how q
		assert_equal "$(places other)" "0 0 1 0 0"
		run_mq 0 mq-purge -f --all other
	done
}

@test "places: what a dead connection holds goes back to the front" {
	local c i
	for i in 5 0 -5; do
		pub -p "$i" "a$i"
	done
	pub -g a one
	start_mq mq-consume -j 1 --prefetch 9 --no-clean q -- sleep 60
	eventually 10 held_is q "0 0 4 0"
	c=$(connections)
	dies
	for i in 5 0 -5; do
		pub -p "$i" "b$i"
	done
	pub -g a two
	run_mq 0 mq-return --from "unacked:$c" -n 1 q
	prints "3 messages returned" mq-return --from "unacked:$c" q
	assert_equal "$(listed ready)" "a5 b5 a0 one b0 a-5 b-5"
	assert_equal "$(drained)" "a5 b5 a0 one b0 a-5 b-5 two"
}

# A group with its holder ready, keys of all kinds, and priorities.
fill() {
	pub -g a one
	pub -g a -k g two
	pub -g a three
	pub -k q1 --unique queued kq
	pub -k d1 -p 5 kd
	pub -k t1 --unique 1h -d 1h kt
	pub -p -5 low
	pub plain
}

@test "places: purging lets go of keys and groups, and gives the next of a group its turn" {
	local how
	for how in '' '--match .'; do
		fill
		assert_equal "$(places)" "3 2 3 0 5"
		run_mq 0 mq-purge --dry-run --all --json $how q
		assert_output --partial '"purged":8,"ready":5,"delayed":3,'
		run_mq 0 mq-purge -f --all --json $how q
		assert_output --partial '"purged":8,"ready":5,"delayed":3,'
		assert_equal "$(kept)" ""
		# The next of a group, and no more.
		fill
		prints "5 messages purged" mq-purge -f --ready $how q
		assert_equal "$(listed ready)" two
		assert_equal "$(lock kq1)$(lock kd1)" ""
		assert_regex "$(lock kg)" ' done$'
		assert_regex "$(lock kt1)" ' [0-9]{13} [0-9]{16}$'
		assert_equal "$(places)" "1 0 2 0 3"
		prints "2 messages purged" mq-purge -f --delayed $how q
		assert_equal "$(places)" "1 0 0 0 2"
		run_mq 0 mq-purge -f --ready q
		redis hdel "$q::locks" kt1 >/dev/null
		assert_equal "$(kept)" ""
	done
	# Every key goes with the queue.
	fill
	pub --from-tick 4 tick
	run_mq 0 mq-publish --tick 4 q
	redis hset "$q::rate" tokens 1 us 1 >/dev/null
	run_mq 0 mq-purge -f --delete-queue --json q
	assert_output --partial '"deleted":true'
	assert_equal "$(redis dbsize)" 0
}

@test "places: a delayed group is purged whole, and the next one keeps the time it asked for" {
	local how
	for how in '' '--match .'; do
		pub -g a -d 1h one
		pub -g a two
		pub -g a three
		prints "3 messages purged" mq-purge -f --delayed $how q
		assert_equal "$(places)" "0 0 0 0 0"
	done
	pub -g a one
	pub -g a -d 1h two
	run_mq 0 mq-purge -f --ready q
	assert_equal "$(places)" "0 0 1 0 1"
	assert_regex "$(redis zrange "$q::delayed" 0 0 withscores | tail -n 1)" \
		'^[0-9]{13}$'
}

@test "places: purging one by one: of the holder, and of one in line" {
	local first second
	pub -g a one
	first=$id
	pub -g a -k k two
	second=$id
	pub -g a three
	prints "1 message purged" mq-purge -f --all --id "$second" q
	assert_equal "$(lock g) $(lock kk)" "$first "
	assert_equal "$(places)" "1 0 1 0 1"
	run_mq 0 mq-purge -f --all --id "$first" q
	assert_equal "$(lock g)" "$id"
	assert_equal "$(listed ready)" three
	run_mq 0 mq-purge -f --ready -n 1 q
	assert_equal "$(places)" "0 0 0 0 0"
}

@test "places: while one of the group is claimed, those in line are purged alone" {
	local holder
	pub -g a one
	holder=$id
	pub -g a two
	pub -g a three
	script hold <<'.'
until [ -e "$T/go" ]; do sleep 0.02; done
.
	start_mq mq-consume -n 1 q -- "$T/hold"
	eventually 10 held_is q "0 2 1 0"
	prints "2 messages purged" mq-purge -f --all q
	assert_equal "$(lock g)" "$holder"
	touch "$T/go"
	wait "$pid"
	assert_equal "$(places)" "0 0 0 0 0"
}

@test "places: rejected ones hold nothing; a key with a time stays" {
	pub -k k --unique 1h one
	reject_all
	assert_equal "$(places)" "0 0 0 1 1"
	prints "1 message purged" mq-purge -f --rejected q
	assert_regex "$(lock kk)" '^'"$id"' [0-9]{13}$'
	# What a Go program has rejected holds what it held, and nobody can tell
	# it from a copy of one that runs: a cleaner finds out.
	pub -k j -g a two
	redis lmove "$q::ready" "$q::rejected" right left >/dev/null
	pub -g a three
	run_mq 0 mq-purge -f --rejected q
	run_mq 0 mq-clean -q
	assert_equal "$(lock kj)" ""
	assert_equal "$(lock g)" "$id"
}

@test "places: thousands with groups, keys and priorities, in slices" {
	local i
	for i in 0 1 2 3 4 5; do
		seq $((i * 1000)) $((i * 1000 + 999)) |
			"$BUILD/mq-publish" -l -p $((i - 3)) -g "g$i" q
	done
	seq 3000 | "$BUILD/mq-publish" -l -p 4 q
	run_mq 0 mq-stats q
	assert_line --regexp '^q +3006 +5994 '
	prints "900 messages purged" mq-purge -f --all --match '5$' q
	redis config resetstat >/dev/null
	run_mq 0 mq-purge -f --delayed q
	run_mq 0 mq-purge -f --all q
	assert_equal "$(places)" "0 0 0 0 0"
	# No script takes more than some hundred of the 8100.
	[ "$(redis info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\).*/\1/p')" -ge 80 ]
}

@test "places: something else under a key of delivery: 76, and nothing is lost" {
	local key
	for key in priority locks delayed; do
		redis flushall >/dev/null
		pub plain
		pub -p 5 -k k high
		reject_all
		redis set "$q::$key" mine >/dev/null
		redis --raw debug digest >"$T/before"
		run_mq 76 mq-return q
		run_mq 76 mq-return --match . q
		redis --raw debug digest >"$T/after"
		[ "$(cat "$T/before")" = "$(cat "$T/after")" ] ||
			assert_equal "$(redis llen "$q::rejected") $(redis llen "$q::ready")" "1 1"
	done
}
