#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# topology: own
# The ack of a message of a group brings the next one, if a claim would take nothing else:
# in order, counted, under the lease, and given back or found again as what is claimed.

load ../helpers/server
load ../helpers/consume
load ../helpers/steps

beat=rmq::connection::c-111111::heartbeat
info=rmq::connection::c-111111::info

teardown() {
	[ "$D" = "$FILE_D" ] || server_stop
	redis config set maxmemory 0 >/dev/null
	redis acl deluser weak >/dev/null
	common_teardown
}

# begins [OPTION...]: c-111111 has the first of three messages of a group; with --jsonl, those
# that are on stdin.
begins() {
	redis flushall >/dev/null
	if [ "${1-}" = --jsonl ]; then
		run_mq 0 mq-publish -q --jsonl q
	else
		run_mq 0 mq-publish -q -g g "$@" q 1 2 3
	fi
	redis lmove "${q}ready" "$u" right left >/dev/null
	redis set "$beat" 1 >/dev/null
}

# ack: the oldest that c-111111 has; what it has brought, or the reply.
ack() {
	local reply
	reply=$(step ack_next "$keys $u rmq::queues $beat ${q}paused $info" \
		"$(redis-cli -s "$D/redis.sock" --no-raw lindex "$u" -1) q")
	echo "${reply##* }"
}

# state: payloads in unacked and ready, the newest first, how many are delayed, and claimed.
state() {
	local list
	for list in "$u" "${q}ready"; do
		redis lrange "$list" 0 -1 | tr -d '\0' | grep -av '{'
		echo /
	done >"$T/state"
	echo "$(cat "$T/state")" "$(redis zcard "${q}delayed")" / "$(redis hget "$info" claimed:q)" | xargs
}

holder() {
	redis hvals "${q}locks" | cut -c 1-32
}

id_of_first() {
	redis lindex "$1" -1 | grep -ao '"Mq-Id":\["[^"]*' | cut -c 11-
}

@test "ack next: it is claimed, holds the group, and is counted" {
	begins
	assert_equal "$(state)" "1 / / 2 /"
	assert_equal "$(ack)" 2
	assert_equal "$(state)" "2 / / 1 / 1"
	assert_equal "$(holder)" "$(id_of_first "$u")"
	# Also while memory is full.
	redis config set maxmemory 1 >/dev/null
	assert_equal "$(ack)" 3
	assert_equal "$(state)" "3 / / 0 / 2"
	assert_equal "$(ack)" 1
	assert_equal "$(state)" "/ / 0 / 2"
	assert_equal "$(locks)" 0
}

@test "ack next: where a claim would take none, or another one, it is the queue's" {
	local how want
	while IFS='|' read -r how want; do
		begins
		eval "$how" >/dev/null
		assert_equal "$how: $(ack)" "$how: 1"
		assert_equal "$how: $(state)" "$how: $want"
	done <<-'E'
		redis del "$beat"|/ 2 / 1 /
		redis set "${q}paused" 1|/ 2 / 1 /
		redis lpush "${q}ready" other|/ 2 other / 1 /
		redis zadd "${q}priority" -5 x|/ 2 / 1 /
		redis set "${q}clock" 1|/ 2 / 1 /
		redis zadd "${q}delayed" 1 x|/ 2 / 2 /
		redis hset "${q}locks" s "2 2"|/ 3 2 / 0 /
		redis hset "${q}locks" "$(redis hkeys "${q}locks")" "other 1"|/ / 2 /
		redis del "${q}locks"|/ / 2 /
	E
}

@test "ack next: what asks for more has its turn as ever" {
	local one=$'{"payload":"1","headers":{"Mq-Group":["g"]}}\n' headers want
	# Of the second message.
	while IFS='|' read -r headers want; do
		begins --jsonl <<<"$one"'{"payload":"2","headers":{"Mq-Group":["g"],'"$headers"'}}'
		assert_equal "$headers: $(ack)" "$headers: 1"
		assert_equal "$headers: $(state)" "$headers: $want"
	done <<-'E'
		"Mq-Key":["k"]|/ 2 / 0 /
		"Mq-Batch":["b"]|/ 2 / 0 /
		"X":["\\"]|/ 2 / 0 /
		"Mq-Priority":["5"]|/ / 0 /
		"Mq-From-Tick":["5"]|/ / 1 /
		"Mq-Due":["9999999999999"]|/ / 1 /
	E
	# Of the first one.
	begins --jsonl < <(printf %s "${one/]/],\"Mq-Key\":[\"k\"]}" "$one")
	assert_equal "$(ack)" 1
	begins --batch b
	assert_equal "$(ack)" 1
	assert_regex "$("$BUILD/mq-stats" --batch b --json q)" '"done": ?1'
	# Of both, what asks for nothing.
	begins --jsonl < <(sed 's/.*/{"payload":"&","headers":{"Mq-Param1":["p"],"Mq-Group":["g"],"X":["Mq-Id"]}}/' <(seq 2))
	assert_equal "$(ack)" 2
}

@test "ack next: what is not there, or refused, changes nothing" {
	local right
	begins
	run step ack_next "$keys $u rmq::queues $beat ${q}paused $info" "other q"
	assert_output 0
	redis lset "$u" 0 changed >/dev/null
	assert_equal "$(step ack_next "$keys $u rmq::queues $beat ${q}paused $info" "$(message "$(
		redis lindex "$u" 0)") q")" 0
	assert_equal "$(redis hget "$info" claimed:q)" ""
	for right in lrem hincrby hset lpush zrem; do
		begins
		redis acl setuser weak reset on '>x' '~*' '&*' +@all "-$right" >/dev/null
		AS=weak assert_regex "$(AS=weak step ack_next \
			"$keys $u rmq::queues $beat ${q}paused $info" \
			"$(redis-cli -s "$D/redis.sock" --no-raw lindex "$u" -1) q")" NOPERM
		assert_equal "$right: $(state)" "$right: 1 / / 2 /"
	done
}

# --- consumers -------------------------------------------------------------------

# brought N: of N messages, most came with the ack of the one before.  A claim of one takes two
# LMOVE.
brought() {
	assert [ "$(calls lmove)" -lt "$1" ]
}

fill() {
	redis flushall >/dev/null
	seq "$1" | run_mq 0 mq-publish -q -l -g g q
	redis config resetstat >/dev/null
	: >"$T/log"
}

setup() {
	common_setup
	seeded
	printf '%s\n' 'read -r x' 'echo "$x" >>"$T/log"' 'eval "$AT"' | script note
	printf '%s\n' 'while read -r x; do echo "$x" >>"$T/log"; echo done >&3; done' | script feed
	export BUILD AT=
}

runs_of() {
	xargs <"$T/log"
}

@test "ack next: printed, run and streamed, in order, and counted" {
	local how
	for how in "-l q" "--stream q -- $T/feed" "q -- $T/note" "-l --at-most-once q" \
		"-j 4 --stream q -- $T/feed"; do
		fill 300
		# shellcheck disable=SC2086 # several
		timeout 60 "$BUILD/mq-consume" -q --drain $how >>"$T/log" 3>&-
		cmp "$T/log" <(seq 300)
		brought 300
		assert_equal "$(held q) $(locks)" "0 0 0 0 0"
	done
}

@test "ack next: no more than a limit or a rate allows" {
	fill 100
	run_mq 0 mq-consume -q -l -n 57 q
	assert_equal "$output" "$(seq 57)"
	assert_equal "$(held q)" "1 42 0 0"
	run_mq 0 mq-consume -q -n 20 q -- "$T/note"
	assert_equal "$(runs_of)" "$(seq 58 77 | xargs)"
	assert_equal "$(held q)" "1 22 0 0"
	# A shared rate is the claim's.
	redis config resetstat >/dev/null
	run_mq 0 mq-consume -q --drain -l --rate-shared 10000/s q
	assert_equal "$output" "$(seq 78 100)"
	assert_equal "$(calls lmove)" 46
}

@test "ack next: what comes meanwhile has its turn" {
	fill 200
	export AT='[ "$x" != 50 ] || { "$BUILD/mq-publish" -q q other; "$BUILD/mq-publish" -q -p 1 q first
		"$BUILD/mq-publish" -q -d 1ms q due; }'
	timeout 60 "$BUILD/mq-consume" -q --drain q -- "$T/note" 3>&-
	assert_equal "$(grep -xc '[0-9]*' "$T/log")" 200
	assert_equal "$(sed -n '/^50$/,/^5[3-9]$/p' "$T/log" | grep -c '[a-z]')" 3
}

@test "ack next: an earlier queue comes first" {
	fill 100
	run_mq 0 mq-publish -q early x
	run_mq 0 mq-consume -q --drain early -- "$T/note"
	export AT='[ "$x" != 30 ] || "$BUILD/mq-publish" -q early now'
	timeout 60 "$BUILD/mq-consume" -q --drain early q -- "$T/note" 3>&-
	assert_equal "$(sed -n '/^30$/,/^40$/p' "$T/log" | grep -c now)" 1
	assert_equal "$(wc -l <"$T/log")" 102
}

@test "ack next: a paused queue gives none; of all that are paused, it goes back" {
	local what
	export AT='[ "$x" != 9 ] || "$BUILD/mq-pause" -q $WHAT'
	for what in q --all; do
		fill 20
		WHAT=$what start_mq mq-consume -q q -- "$T/note"
		eventually 10 held_is q "1 10 0 0"
		tick
		assert_equal "$(runs_of)" "$(seq 9 | xargs)"
		run_mq 0 mq-pause --resume $what
		eventually 10 held_is q "0 0 0 0"
		assert_equal "$(runs_of)" "$(seq 20 | xargs)"
		stop_mq
	done
}

@test "ack next: who stops has none; two take turns" {
	fill 100
	export AT='[ "$x" != 9 ] || kill -TERM $PPID'
	start_mq mq-consume -q q -- "$T/note"
	ends_with 143
	assert_equal "$(held q)" "1 90 0 0"
	AT= start_mq mq-consume -q q -- "$T/note"
	AT= timeout 60 "$BUILD/mq-consume" -q --drain q -- "$T/note" 3>&-
	eventually 10 held_is q "0 0 0 0"
	cmp "$T/log" <(seq 100)
	stop_mq
}

@test "ack next: a consumer is killed: the one that it had runs again, the others once, in order" {
	fill 100
	export AT='[ "$x" != 50 ] || [ -e "$T/dead" ] || { touch "$T/dead"; kill -KILL $PPID; }'
	start_mq mq-consume -q q -- "$T/note"
	ends_with 137
	brought 50
	redis del "rmq::connection::$(connections)::heartbeat" >/dev/null
	timeout 60 "$BUILD/mq-consume" -q --drain q -- "$T/note" 3>&-
	assert_equal "$(runs_of)" "$( (seq 50; seq 50 100) | xargs)"
	assert_equal "$(held q) $(locks)" "0 0 0 0 0"
}

@test "ack next: lost answers: each runs once, in order" {
	fill 300
	touch "$T/cuts"
	python3 -S "$root/tests/consume/cut.py" "$D/redis.sock" "$T/proxy.sock" "$seed" "$T/cuts" 3>&- &
	eventually 10 listens_at "$T/proxy.sock"
	start_mq mq-consume -u "unix://$T/proxy.sock" q -- "$T/note"
	eventually 60 held_is q "0 0 0 0"
	assert [ "$(wc -l <"$T/cuts")" -ge 10 ]
	cmp "$T/log" <(seq 300)
	brought 300
	run ! grep 'lease lost' "$T/err"
	stop_mq
}

@test "ack next: a server is killed again and again: each runs once, in order" {
	local goal=0
	safe_server
	fill 400
	start_mq mq-consume -q q -- "$T/note"
	for _ in 1 2 3; do
		goal=$((goal + RANDOM % 60 + 20))
		eventually 30 lines_reach "$T/log" "$goal"
		server_kill
		server_run "${safe[@]}"
	done
	eventually 60 held_is q "0 0 0 0"
	cmp "$T/log" <(seq 400)
	stop_mq
}
