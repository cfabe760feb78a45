#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-publish -k KEY --replace: the latest message with a key is the one that runs.

load ../helpers/server
load ../helpers/consume
load ../helpers/go

replaced() {
	run_mq 0 mq-publish -v -k a --replace q "$@"
	assert_equal "$stderr" "mq-publish: 1 message accepted, 1 replaced"
}

# The number of locks and marks.
fields() {
	redis hlen 'rmq::queue::[q]::locks'
}

# commands COMMAND...: how many the server ran for it, in scripts, too.
commands() {
	redis config resetstat >/dev/null
	"$@"
	redis info commandstats | awk -F'[=,]' '/^cmdstat/ {n += $2} END {print n}'
}

# steps_of COMMAND...: how many scripts the server ran for it.
steps_of() {
	redis config resetstat >/dev/null
	"$BUILD/$1" "${@:2}" >/dev/null
	redis info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\),.*/\1/p'
}

# burst QUEUE N: 1 to N with a key, each of which replaces the one before.
burst() {
	local i
	for ((i = 1; i <= $2; i++)); do
		echo "{\"payload\":\"$i\",\"headers\":{\"Mq-Key\":[\"b\"],\"Mq-Unique\":[\"queued\"]}}"
	done | run_mq 0 mq-publish -q --jsonl --replace "$1"
}

# A Go program has a message that a newer one has replaced.
go_has_stale() {
	first
	replaced second
	go_connect go-111111
	go_consume go-111111 q
	redis rpoplpush "rmq::queue::[q]::ready" "$(unacked go-111111 q)" >/dev/null
}

# first [OPTION...]: a message that waits with the key.
first() {
	run_mq 0 mq-publish -q -k a --replace "$@" q first
}

@test "replace: of a message that is ready, the latest runs, and the others are gone" {
	first
	replaced second
	replaced third
	assert_equal "$(held q)" "3 0 0 0"
	assert_equal "$(counts published replaced)" "3 2"
	assert_equal "$(drained)" third
	assert_equal "$(held q)" "0 0 0 0"
	assert_equal "$(fields)" 0
}

@test "replace: a message that is stale is dropped after the newer one has ended, too" {
	first
	run_mq 0 mq-publish -q -k a --replace -p 9 q urgent
	run_mq 0 mq-consume -q -n 1 q -- sh -c 'cat; echo' 
	assert_output urgent
	assert_equal "$(held q)" "1 0 0 0"
	assert_equal "$(fields)" 1
	run_mq 0 mq-publish -q q other
	assert_equal "$(drained)" other
	assert_equal "$(fields)" 0
}

@test "replace: -k KEY --replace -d 30s is a debounce" {
	local i
	for i in {1..9}; do
		run_mq 0 mq-publish -q -k a --replace -d 30s q "$i"
	done
	assert_equal "$(held q)" "0 1 0 0"
	assert_equal "$(counts replaced)" 8
	assert_equal "$(payloads delayed)" 9
	# A limit does not count the one that leaves.
	run_mq 0 mq-publish -q -k a --replace -d 30s --max-delayed 1 q last
	run_mq 0 mq-publish -q -k a --replace q now
	assert_equal "$(drained)" now
	assert_equal "$(fields)" 0
}

@test "replace: a message that has begun, or keeps its key longer, is left alone" {
	script again <<-S
		"$BUILD/mq-publish" -q -k a --replace q second
	S
	first
	run_mq 0 mq-consume -n 1 q -- "$T/again"
	assert_equal "$(drained)" second
	run_mq 0 mq-publish -q -k a q until-done
	tells 1 "mq-publish: q: not published: another message has its key" \
		mq-publish -k a --replace q x
	assert_equal "$(drained)" until-done
}

@test "replace: a claim of stale messages only goes on to the next, with -n 1 and mq-lease" {
	local n
	burst q 150
	assert_equal "$(counts published replaced)" "150 149"
	run_mq 0 mq-consume -q -n 1 q -- sh -c 'cat; echo'
	assert_output 150
	first
	run_mq 0 mq-publish -q -k a --replace -p -9 q low
	run_mq 0 mq-lease --for 1m q
	assert_output --partial low
	burst r 250
	run_mq 0 mq-publish -q t x
	# No claim drops more than about a hundred, whatever else the server has to do.
	n=$(steps_of mq-lease --for 1m t)
	assert_equal "$(($(steps_of mq-lease --for 1m r) - n))" 2
	run_mq 0 mq-stats --list unacked -l r
	assert_output --partial 250
}

@test "replace: mq-lease does not ask again and again for what has no slot" {
	run_mq 0 mq-set --new q slots-shared=1
	run_mq 0 mq-publish -q q held
	run_mq 0 mq-lease --for 1m q
	run_mq 0 mq-publish -q -d 1ms q due
	run_mq 0 mq-publish -q --from-tick 1 q ticks
	run_mq 0 mq-publish --tick 1 q
	run timeout 20 "$BUILD/mq-lease" --for 1m q
	assert_failure 1
}

@test "replace: a consumer that waits goes on behind stale messages at once" {
	start_mq mq-consume -q s -- sh -c 'cat; echo'
	run_mq 0 mq-publish -q s begun
	eventually 10 grep -q begun "$T/out"
	kill -STOP "$pid"
	burst s 350
	kill -CONT "$pid"
	eventually 10 grep -qx 350 "$T/out"
	stop_mq
	assert_equal "$(xargs <"$T/out")" "begun 350"
}

@test "replace: a stale message that comes back from a dead consumer is dropped, too" {
	go_has_stale
	run_mq 0 mq-consume -q -n 1 q -- sh -c 'cat; echo'
	assert_output second
	redis del "rmq::connection::go-111111::heartbeat" >/dev/null
	run_mq 0 mq-clean -q
	assert_equal "$(held q)" "1 0 0 0"
	assert_equal "$(drained)" ""
	assert_equal "$(held q) $(fields)" "0 0 0 0 0"
}

@test "replace: of a stale message that a Go program has run, mq-clean removes the mark" {
	go_has_stale
	assert_equal "$(fields)" 2
	run_mq 0 mq-clean -q
	assert_equal "$(fields)" 2
	redis lpop "$(unacked go-111111 q)" >/dev/null
	run_mq 0 mq-clean -q
	assert_equal "$(fields)" 1
	assert_equal "$(drained)" second
}

@test "replace: --wait hears of it, the group goes on, and the batch counts it" {
	"$BUILD/mq-publish" -k a --replace --wait -d 1h q first >"$T/said" 2>&1 3>&- &
	local waiter=$!
	eventually 10 eval '[ "$(held q)" = "0 1 0 0" ]'
	run_mq 0 mq-publish -i -k a --replace q second
	wait $waiter || true
	grep -q "replaced by $output" "$T/said"
	assert_equal "$(drained)" second
	# One that holds the slot of its group, and is a member of a batch.
	run_mq 0 mq-publish -q -k b --replace -g g --batch b q one
	run_mq 0 mq-publish -q -k b --replace -p 1 q two
	run_mq 0 mq-publish -q -g g q three
	run_mq 0 mq-publish -q --after b q four
	assert_equal "$(drained)" "two three four"
	assert_equal "$(fields)" 0
}

# hears COMMAND...: whoever waits for a ready message that is replaced is told by which one, in the
# step of the command that drops it.
hears() {
	timeout 20 "$BUILD/mq-publish" -k a --replace --wait q first >"$T/said" 2>&1 3>&- &
	local waiter=$!
	eventually 10 eval '[ "$(held q)" = "1 0 0 0" ]'
	run_mq 0 mq-publish -i -k a --replace q second
	newer=$output
	"$@"
	wait $waiter || true
	grep -q "replaced by $newer" "$T/said"
}

@test "replace: --wait hears by which message, from the claim and from a return" {
	hears drained
	hears run_mq 0 mq-return -q --from ready --to other q
	assert_equal "$(counts published replaced)" "4 2"
}

@test "replace: it costs the same, however many are ready" {
	local n
	first
	n=$(commands replaced second)
	drained >/dev/null
	seq 20000 | run_mq 0 mq-publish -q -l q
	first
	seq 20000 | run_mq 0 mq-publish -q -l q
	assert_equal "$(commands replaced second)" "$n"
}

@test "replace: what was replaced goes to no other queue, and mq-clean keeps the mark" {
	first
	replaced second
	run_mq 0 mq-clean -q
	assert_equal "$(fields)" 2
	run_mq 0 mq-purge -q --force --all q
	assert_equal "$(fields)" 0
	run_mq 0 mq-publish -q -g g q holder
	first -g g
	run_mq 0 mq-publish -q -k a --replace -g g q second
	run_mq 0 mq-return -q --from delayed --to other q
	assert_equal "$(drained other)" second
	assert_equal "$(drained)" holder
	assert_equal "$(fields)" 0
	first
	replaced second
	run_mq 0 mq-purge -q --force --ready q
	assert_equal "$(fields)" 0
}

@test "replace: of fifty publishers against claims, no message runs that was replaced before" {
	local i all=()
	for i in {1..50}; do
		"$BUILD/mq-publish" -q -k a --replace q "$i" 3>&- &
		all+=($!)
	done
	"$BUILD/mq-consume" -q --drain q -- sh -c 'cat; echo' >"$T/one" 3>&-
	for i in "${all[@]}"; do
		wait "$i"
	done
	"$BUILD/mq-consume" -q --drain q -- sh -c 'cat; echo' >"$T/two" 3>&-
	assert_equal "$(($(cat "$T/one" "$T/two" | wc -l) + $(counts replaced)))" 50
	assert_equal "$(held q)" "0 0 0 0"
	assert_equal "$(fields)" 0
}

@test "replace: needs a key, and another --unique is refused" {
	tells 64 "mq-publish: --replace needs --key" mq-publish --replace q x
	tells 64 "mq-publish: --replace needs --unique queued" \
		mq-publish -k a --unique 'done' --replace q x
	tells 64 "mq-publish: --coalesce and --replace cannot be used together" \
		mq-publish -k a --unique queued --coalesce --replace q x
}
