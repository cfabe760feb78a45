#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# topologies: cluster
# mq-set keep-rejected: cleaners drop the rejected messages that are too old, or too many.

load ../helpers/server

list='rmq::queue::[q]::rejected'
# ELEMENT... in Lua: the last failure of a message was AGE seconds ago, by the server's clock.
# shellcheck disable=SC2016 # no variables
failed_lua='local now = redis.call("TIME")[1] * 1000
	for i = 2, #ARGV do
		redis.call("LPUSH", KEYS[1], "\255\0\190\190J{\"Mq-Id\":[\"" .. ("0"):rep(32)
			.. "\"],\"Mq-History\":[\"{\\\"at_ms\\\":5,\\\"attempt\\\":1}\",\"{\\\"at_ms\\\":"
			.. string.format("%.0f", now - 1000 * ARGV[1])
			.. ",\\\"attempt\\\":2,\\\"text\\\":\\\"\\\\\\\"at_ms\\\\\\\":7\\\"}\"]}\n" .. ARGV[i])
	end'

teardown() {
	redis acl deluser weak >/dev/null
	common_teardown
}

# failed AGE TEXT...: these were rejected, one after the other, that many seconds ago.
failed() {
	redis eval "$failed_lua" 1 "$list" "$@" >/dev/null
}

# By a Go program.
go_rejects() {
	redis lpush "$list" "$@" >/dev/null
}

# keeps VALUE: the setting of q.
keeps() {
	run_mq 0 mq-set -q --new q keep-rejected="$1"
}

# The payloads of the rejected messages, the oldest first.
left() {
	redis lrange "$list" 0 -1 | tr -d '\0' | grep -av Mq- | tac | xargs
}

left_is() {
	[ "$(left)" = "$1" ]
}

fewer() {
	(($(redis llen "$list") < $1))
}

# drops N LEFT [OPTION...]: a round, that a dry run foretells, drops so many.
drops() {
	local line before
	before=$(redis lrange "$list" 0 -1 | sha1sum)
	run_mq 0 mq-clean --json --dry-run "${@:3}"
	assert_equal "$(jq -c '[.dropped, .dry_run]' <<<"$output")" "[$1,true]"
	assert_equal "$(redis lrange "$list" 0 -1 | sha1sum)" "$before"
	run_mq 0 mq-clean "${@:3}"
	assert_equal "$stderr" ""
	line=$output
	assert_equal "$(sed -n 's/.* repaired, \([0-9]*\) dropped$/\1/p' <<<"$line")" "${1/#0/}"
	assert_equal "$(left)" "$2"
}

@test "keep-rejected: without it, and without a value that counts, all stay" {
	failed 99999999 old
	go_rejects go
	failed 1 new
	redis sadd rmq::queues q >/dev/null
	drops 0 "old go new"
	run_mq 0 mq-set q attempts=3
	drops 0 "old go new"
	# As another program may have written it.
	for value in 0 x 1d: :5 5:5 -1 1d:x "1d:5 " 1d:5:5 0s; do
		redis hset 'rmq::queue::[q]::settings' keep-rejected "$value" >/dev/null
		run_mq 0 mq-clean -q
		assert_equal "$(left)" "old go new"
		run_mq 64 mq-set q keep-rejected="$value"
		assert_equal "$stderr" "mq-set: keep-rejected=$value: must be a duration, a number of messages, or both, as 30d:10000"
	done
	assert_equal "$(counts dropped)" -
	run_mq 0 mq-set q keep-rejected=
	drops 0 "old go new"
}

@test "keep-rejected: a number keeps so many, of whatever kind" {
	failed 9 a b
	go_rejects c d
	failed 9 e
	keeps 5
	drops 0 "a b c d e"
	keeps 3
	drops 2 "c d e"
	assert_equal "$(counts dropped)" 2
	keeps 1
	drops 2 e
	assert_equal "$(counts dropped)" 4
	run_mq 0 mq-stats --json q
	assert_equal "$(jq .queues[0].counters.dropped <<<"$output")" 4
	run_mq 0 mq-stats --prometheus q
	assert_line 'mq_dropped_total{queue="q"} 4'
}

@test "keep-rejected: a duration counts from the last failure, of those that have one" {
	go_rejects go1
	failed 7200 a
	go_rejects go2 go3
	failed 7200 b c
	failed 1800 d
	# Where clocks differ, later.
	failed 7200 e
	go_rejects go4
	keeps 1h
	drops 3 "go1 go2 go3 d e go4"
	keeps 10m
	drops 2 "go1 go2 go3 go4"
	drops 0 "go1 go2 go3 go4"
}

@test "keep-rejected: both together" {
	failed 7200 a b
	go_rejects go
	failed 1800 c
	failed 60 d e
	keeps 1h:5
	drops 2 "go c d e"
	keeps 1h:2
	drops 2 "d e"
	keeps 30s:2
	drops 2 ""
}

@test "keep-rejected: what has failed in time to come, or at no time, stops nothing" {
	failed -99999 future
	redis eval 'redis.call("LPUSH", KEYS[1],
		"\255\0\190\190J{\"Mq-History\":[\"{\\\"at_ms\\\":\\\"7\\\"}\"]}\ntext",
		"\255\0\190\190J{\"Mq-History\":[\"{}\"]}\nnone",
		"\255\0\190\190J{\"Mq-History\":[]}\nempty",
		"\255\0\190\190J{\"Mq-History\":[7]}\nnumber",
		"\255\0\190\190J{\"Mq-History\":[null]}\nnull",
		"\255\0\190\190J{\"Mq-History\":7}\nseven",
		"\255\0\190\190J{\"Mq-History\":[\"7\"]}\neight",
		"\255\0\190\190J{\"Mq-History\":[\"{\"]}\nbroken",
		"\255\0\190\190J{\"Mq-History\"\nwrong",
		"\255\0\190\190J{\"Mq-History\"")' 1 "$list" >/dev/null
	failed 7200 a
	keeps 1h
	drops 1 "future text none empty number null seven eight broken wrong"
}

@test "keep-rejected: whoever rejects a message, its failure has a time" {
	local receipt
	run_mq 0 mq-publish -q q consumed leased
	run_mq 1 mq-consume -q -n 1 q -- false
	run_mq 0 mq-lease --for 1m q
	receipt=$(jq -r .receipt <<<"$output")
	run_mq 0 mq-lease --reject "$receipt" q
	run_mq 0 mq-publish -q q crashed
	start_mq mq-consume --attempts 1 q -- sleep 99
	eventually 10 state_is q "0 0 1 2 1"
	dies
	run_mq 0 mq-clean -q
	assert_equal "$(state q)" "0 0 0 3 0"
	keeps 1h
	drops 0 "consumed leased crashed"
	keeps 1ms
	run_mq 0 mq-clean
	assert_output --partial ", 3 dropped"
	assert_equal "$(left)" ""
}

@test "keep-rejected: many, in small steps, and long ones" {
	local calls n
	# shellcheck disable=SC2016 # no variables
	redis eval 'for i = 1, 3000 do redis.call("LPUSH", KEYS[1], i % 3 == 0 and "go" or ARGV[1] .. i) end' \
		1 "$list" x >/dev/null
	mapfile -t n < <(seq 700)
	failed 7200 "${n[@]}"
	go_rejects go1
	failed 7200 "${n[@]}"
	failed 1 last
	keeps 1h
	run_mq 0 mq-clean
	assert_output --partial ", 1400 dropped"
	assert_equal "$(redis llen "$list")" 3002
	assert_equal "$(left | tr ' ' '\n' | tail -n 6 | xargs)" "go x2998 x2999 go go1 last"
	assert_equal "$(counts dropped)" 1400
	# Long ones, some at a time.
	redis del "$list" >/dev/null
	redis eval 'for i = 1, 18 do redis.call("LPUSH", KEYS[1], ARGV[1]:rep(300000)) end' \
		1 "$list" x >/dev/null
	go_rejects a
	redis config resetstat >/dev/null
	keeps 1
	run_mq 0 mq-clean
	assert_output --partial ", 18 dropped"
	# Each step drops at most about 1 MiB, with two commands.
	calls=$(redis info commandstats | sed -n 's/^cmdstat_ltrim:calls=\([0-9]*\).*/\1/p' | paste -sd+ | bc)
	((calls >= 10))
}

@test "keep-rejected: a walk passes 10,000 messages without a time, and no more" {
	# shellcheck disable=SC2016 # no variables
	redis eval 'for i = 1, 9999 do redis.call("LPUSH", KEYS[1], i) end' 1 "$list" >/dev/null
	failed 7200 a b
	go_rejects go
	failed 7200 c
	keeps 1h
	run_mq 0 mq-clean --json --dry-run
	assert_equal "$(jq .dropped <<<"$output")" 2
	run_mq 0 mq-clean
	assert_output --partial ", 2 dropped"
	run_mq 0 mq-clean
	refute_output --partial dropped
	keeps 1h:2
	run_mq 0 mq-clean --json --dry-run
	assert_equal "$(jq .dropped <<<"$output")" 10000
	run_mq 0 mq-clean
	assert_output --partial ", 10000 dropped"
	assert_equal "$(left)" go
}

@test "keep-rejected: a round ends with the setting under which it began" {
	local dropped n
	no_cluster "the proxy stands before one server"
	mapfile -t n < <(seq 3000)
	failed 7200 "${n[@]}"
	keeps 1h
	"$root/tests/helpers/link.py" "$D/redis.sock" 0.1 1 >"$T/port" 3>&- &
	eventually 10 [ -s "$T/port" ]
	start_mq mq-clean --json -u "redis://127.0.0.1:$(<"$T/port")"
	eventually 20 fewer 3000
	run_mq 0 mq-set q keep-rejected=
	ends_with 0
	dropped=$(jq .dropped "$T/out")
	((dropped > 0 && dropped < 3000))
	assert_equal "$(redis llen "$list") $(counts dropped)" "$((3000 - dropped)) $dropped"
	# Killed on the way: what is to stay stays, and the next one does the rest.
	failed 1 new
	keeps 1h
	start_mq mq-clean --json -u "redis://127.0.0.1:$(<"$T/port")"
	eventually 20 fewer $((3001 - dropped))
	stop_mq KILL
	(($(redis llen "$list") > 1000))
	run_mq 0 mq-clean
	assert_regex "$output" ', [0-9]+ dropped$'
	assert_equal "$(left) $(counts dropped)" "new 3000"
}

@test "keep-rejected: batches, keys and groups stay as they are, attachments go" {
	echo file >"$T/file"
	run_mq 0 mq-publish -q -k key --unique 1h --batch b -g g --attach f="$T/file" q old
	run_mq 0 mq-publish -q --batch b -g g q new
	run_mq 1 mq-consume -q --drain q -- false
	run_mq 0 mq-stats --json --batch b q
	assert_equal "$(jq -c '[.total, .rejected, .open]' <<<"$output")" "[2,2,0]"
	keeps 1
	drops 1 new
	run_mq 0 mq-stats --json --batch b q
	assert_equal "$(jq -c '[.total, .rejected, .open]' <<<"$output")" "[2,2,0]"
	run_mq 0 mq-clean
	run_mq 0 mq-stats --list rejected -l q
	assert_output new
	# The attachments go as those of a message that a Go program has purged.
	for set in $(redis --raw smembers mq::attach::sets); do
		redis hset "mq::attach::{$set}::refs" "$(redis hkeys "mq::attach::{$set}::refs")" 1 >/dev/null
	done
	[ -n "$set" ]
	run_mq 0 mq-clean --json
	assert_equal "$(jq .orphans <<<"$output")" 1
	(($(redis ttl "mq::attach::{$set}::files") > 0))
	run_mq 0 mq-return -q q
	run_mq 0 mq-consume -l --drain q
	assert_output new
}

@test "keep-rejected: the server's clock counts, and a full server drops, too" {
	no_static "faketime sets another clock"
	[[ $BUILD != *-address-* ]] || skip "not with this sanitizer"
	failed 7200 a
	go_rejects go
	failed 7200 b
	failed 1800 c
	keeps 1h
	for offset in +90d -90d; do
		run env NO_FAKE_STAT=1 faketime -f "$offset" "$BUILD/mq-clean" --json --dry-run
		assert_success
		assert_equal "$(jq .dropped <<<"$output")" 2
	done
	redis config set maxmemory 1 >/dev/null
	run_mq 0/75 mq-clean --json
	redis config set maxmemory 0 >/dev/null
	assert_equal "$(left)" "go c"
}

@test "keep-rejected: without a right nothing is dropped, and that is said" {
	failed 7200 a
	go_rejects go
	failed 7200 b
	keeps 1h
	for right in lrem lset ltrim; do
		redis acl setuser weak reset on '>pw' '~*' '&*' +@all "-$right" >/dev/null
		run_mq 77 mq-clean -u "$(url_as weak:pw)"
		assert_regex "$stderr" '; --print-acl prints the rights needed$'
		assert_equal "$(left)" "a go b"
	done
	# The right to count is missing: the messages matter more.
	redis acl setuser weak reset on '>pw' '~*' '&*' +@all -hincrby >/dev/null
	run_mq 0 mq-clean -u "$(url_as weak:pw)"
	assert_equal "$(left)" "go"
	# A key of another program.
	redis del 'rmq::queue::[q]::settings' >/dev/null
	redis set 'rmq::queue::[q]::settings' x >/dev/null
	failed 7200 c
	run_mq 76 mq-clean
	assert_equal "$(left)" "go c"
}

@test "keep-rejected: a consumer drops those of its own queues, once a minute" {
	local other others='rmq::queue::[other]::rejected'
	run_mq 0 mq-set -q --new other keep-rejected=1
	redis lpush "$others" o1 o2 >/dev/null
	go_rejects a b c
	keeps 1
	run_mq 0 mq-publish -q q x
	start_mq mq-consume q -- true
	eventually 10 left_is c
	assert_equal "$(redis lrange "$others" 0 -1 | xargs)" "o2 o1"
	# Also one that leaves the rounds to another consumer.
	run_mq 0 mq-publish -q other x
	"$BUILD/mq-consume" other -- true 2>"$T/other" 3>&- &
	other=$!
	list=$others eventually 10 fewer 2
	kill "$other"
	wait "$other" || true
	stop_mq
	assert_equal "$(counts dropped)" 2
	# None with --no-clean, and none of a queue whose setting is gone.
	go_rejects d e
	run_mq 0 mq-publish -q q x
	run_mq 0 mq-consume --no-clean --drain q -- true
	run_mq 0 mq-set q keep-rejected=
	run_mq 0 mq-publish -q q x
	run_mq 0 mq-consume --drain q -- true
	assert_equal "$(left)" "c d e"
}

@test "keep-rejected: not with RSMQ" {
	no_cluster "its URL would need a namespace"
	run_mq 64 mq-set -L rsmq --new q keep-rejected=5
	assert_equal "$stderr" "mq-set: keep-rejected: with the layout rsmq, rejected messages go to a queue of their own"
}
