#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# topologies: cluster
# mq-publish --batch and --after: the ends of a batch are counted, and its followers run after the
# last one.

load ../helpers/server
load ../helpers/consume

setup() {
	common_setup
	: >"$T/log"
	# Notes what runs, and ends as the file of its payload says.
	script work <<-'S'
		read -r p
		echo "$p" >>"$T/log"
		while [ -e "$T/hold.$p" ]; do sleep 0.02; done
		sleep 0.02
		exit "$(cat "$T/status.$p" 2>/dev/null || echo 0)"
	S
}

# The open members.
members() {
	redis hkeys "rmq::queue::[q]::locks" | grep -c '^m' || true
}

# The counts of batch $1, in the order of mq-stats: total open done rejected expired purged
# pushed unknown.  $2: the queue.
counts() {
	"$BUILD/mq-stats" --batch "$1" "${2:-q}" | awk '{ printf "%s%s", sep, $2; sep = " " }'
}

counts_are() {
	[ "$(counts "$1" "${3:-q}")" = "$2" ]
}

drain() {
	"$BUILD/mq-consume" --drain --backoff 1ms..1ms "$@" q -- "$T/work" 3>&- 2>/dev/null || true
}

@test "batches: each end counts in its batch, a retry does not" {
	run_mq 0 mq-publish --batch b q one two
	run_mq 0 mq-publish --batch b -e 1ms q late
	run_mq 0 mq-publish --batch b -d 1h q delayed
	run_mq 0 mq-publish --batch c q other
	run_mq 0 mq-publish q none
	assert_equal "$(counts b)" "4 4 0 0 0 0 0 0"
	echo 75 >"$T/status.one"
	timeout -k 1 2 "$BUILD/mq-consume" --backoff 1h..1h q -- "$T/work" 3>&- || true
	assert_equal "$(counts b)" "4 2 1 0 1 0 0 0"
	rm "$T/status.one"
	run_mq 0 mq-return --from delayed q
	echo 1 >"$T/status.delayed"
	drain
	assert_equal "$(counts b)" "4 0 2 1 1 0 0 0"
	assert_equal "$(counts c)" "1 0 1 0 0 0 0 0"
	run_mq 0 mq-stats --json --batch b q
	assert_equal "$(jq -c '[.batch, .queue, .total, .done]' <<<"$output")" '["b","q",4,2]'
	run_mq 1 mq-stats --batch nobody q
	assert_equal "$stderr" "mq-stats: q: no batch nobody"
	assert_equal "$(members) $(locks)" "0 0"
}

@test "batches: acks of a window count, too" {
	run_mq 0 mq-publish -l --batch b q < <(seq 200)
	assert_equal "$(drained | wc -w)" 200
	assert_equal "$(counts b)" "200 0 200 0 0 0 0 0"
	assert_equal "$(members) $(locks)" "0 0"
}

@test "batches: a rejected one that comes back is open again" {
	run_mq 0 mq-publish --batch b q one two
	echo 1 >"$T/status.one"
	drain
	assert_equal "$(counts b)" "2 0 1 1 0 0 0 0"
	run_mq 0 mq-return q
	assert_equal "$(counts b)" "2 1 1 0 0 0 0 0"
	rm "$T/status.one"
	drain
	assert_equal "$(counts b)" "2 0 2 0 0 0 0 0"
}

@test "batches: purged, pushed, and in another queue" {
	run_mq 0 mq-publish --batch b q one two three four
	run_mq 0 mq-purge --force --ready --limit 1 q
	run_mq 0 mq-publish --batch b -d 1h q delayed
	run_mq 0 mq-return --from delayed --to other q
	assert_equal "$(counts b)" "5 3 0 0 0 1 1 0"
	eventually 5 counts_are b "1 1 0 0 0 0 0 0" other
	script push <<-'S'
		read -r p
		echo push >&3
	S
	run_mq 0 mq-consume --push other -n 1 q -- "$T/push"
	assert_equal "$(counts b)" "5 2 0 0 0 1 2 0"
	eventually 5 counts_are b "2 2 0 0 0 0 0 0" other
	run_mq 0 mq-purge --force --batch b --all q
	assert_equal "$(counts b)" "5 0 0 0 0 3 2 0"
}

@test "batches: a follower runs once, after the last member" {
	run_mq 0 mq-publish --batch b q one two
	run_mq 0 mq-publish --batch c q three
	run_mq 0 mq-publish --after b,c -p 5 q follower
	run_mq 0 mq-publish --after b -g g q first second
	run_mq 0 mq-stats --list delayed q
	assert_equal "$(grep -c batch <<<"$output")" 3
	assert_equal "$(held q)" "3 3 0 0"
	drain
	assert_equal "$(tail -n 3 "$T/log" | sort | xargs)" "first follower second"
	assert_equal "$(wc -l <"$T/log")" 6
	assert_equal "$(members) $(locks)" "0 0"
}

@test "batches: nothing open, an empty batch, and one that nobody knows" {
	run_mq 1 mq-publish --after b q x
	assert_equal "$stderr" "mq-publish: q: not published: no batch b"
	run_mq 0 mq-publish -l --batch b q </dev/null
	run_mq 0 mq-publish --after b q x
	assert_equal "$(held q)" "1 0 0 0"
	run_mq 1 mq-publish --after b,c q y
	assert_equal "$(held q)" "1 0 0 0"
	assert_equal "$(element q ready | header Mq-Ended)" "b 0 0 0 0 0 0"
}

@test "batches: the next member after a release begins a new round" {
	run_mq 0 mq-publish --batch b q one
	run_mq 0 mq-publish --after b q follower
	drain
	run_mq 0 mq-publish --batch b q two three
	assert_equal "$(counts b)" "2 2 0 0 0 0 0 0"
	run_mq 0 mq-publish --after b q follower2
	drain
	assert_equal "$(xargs <"$T/log")" "one follower two three follower2"
}

@test "batches: a follower that expires, is purged, or is wanted now" {
	touch "$T/hold.one"
	run_mq 0 mq-publish --batch b q one
	run_mq 0 mq-publish --after b --batch d q follower
	run_mq 0 mq-publish --after d q last
	run_mq 0 mq-publish --after b q gone
	run_mq 0 mq-purge --force --delayed --match gone q
	assert_equal "$(held q)" "1 2 0 0"
	run_mq 0 mq-return --from delayed --match follower q
	assert_equal "$(held q)" "2 1 0 0"
	rm "$T/hold.one"
	drain
	assert_equal "$(xargs <"$T/log")" "one follower last"
}

@test "batches: --after-ok rejects a follower of rejected members, until these are done" {
	local way

	echo 1 >"$T/status.one"
	run_mq 0 mq-publish --batch b q one two
	run_mq 0 mq-publish --batch b -e 1ms q late
	run_mq 0 mq-publish --after b --after-ok q follower
	drain
	assert_equal "$(sort "$T/log" | xargs)" "one two"
	assert_equal "$(element q rejected | header Mq-Error)" "batch b: 2 of 3 rejected"
	# A follower alone is rejected again, however it is claimed.
	for way in "mq-consume --drain q" "mq-consume --stream --drain q -- cat" \
		"mq-consume --batch 2 --drain q -- cat" "mq-lease --for 1m q"; do
		run_mq 0 mq-return --match follower q
		run_mq 1 $way
		assert_output ""
		assert_equal "$(held q)" "0 0 0 3"
	done
	rm "$T/status.one"
	run_mq 0 mq-return --match 'one|late' q
	run_mq 0 mq-return --match follower q
	assert_equal "$(held q)" "2 1 0 0"
	run_mq 0 mq-purge --force --ready --match late q
	drain
	assert_equal "$(tail -n 1 "$T/log")" follower
	assert_equal "$(counts b)" "3 0 2 0 0 1 0 0"
}

@test "batches: --after-ok runs what is done, and what an operator releases" {
	echo 1 >"$T/status.bad"
	run_mq 0 mq-publish --batch b q bad
	run_mq 0 mq-publish --batch c q good
	run_mq 0 mq-publish --after c --after-ok q follower
	run_mq 0 mq-publish --after b,c --after-ok q forced
	drain
	assert_equal "$(element q rejected | header Mq-Error)" "batch b: 1 of 1 rejected"
	run_mq 0 mq-publish --batch c -d 1h q later
	run_mq 0 mq-return --match forced q
	run_mq 0 mq-return --from delayed --match forced q
	drain
	assert_equal "$(xargs <"$T/log")" "bad good follower forced"
	run_mq 64 mq-publish --after-ok q x
	assert_equal "$stderr" "mq-publish: --after-ok needs --after"
}

@test "batches: --to lets a follower go on to another queue, however it is claimed" {
	local way n=0

	for way in "mq-consume --drain q -- $T/work" "mq-consume --drain q" \
		"mq-consume --stream --drain q -- cat" "mq-lease --for 1m q"; do
		n=$((n + 1))
		run_mq 0 mq-publish -l --batch b q </dev/null
		run_mq 0 mq-publish --after b --after-ok --to next -k k -H 'X: 1' q go
		"$BUILD"/$way 3>&- || true
		eventually 5 held_is next "$n 0 0 0"
	done
	assert_equal "$(held q) $(wc -c <"$T/log")" "0 0 0 0 0"
	element next ready >"$T/element"
	assert_equal "$(tail -n 1 "$T/element")" go
	assert_equal "$(header X <"$T/element") $(header Mq-Ended <"$T/element")" "1 b 0 0 0 0 0 0"
	run grep -cE 'Mq-(After|To)' "$T/element"
	assert_output 0
	assert_equal "$(locks) $(locks next)" "0 1"
	run_mq 64 mq-publish --to next q x
	assert_equal "$stderr" "mq-publish: --to needs --after"
	run_mq 64 mq-publish --after b --to 'a]b' q x
}

@test "batches: --to the own queue, with a wait, and to a queue that cannot be used" {
	run_mq 0 mq-publish -l --batch b q </dev/null
	run_mq 0 mq-publish --after b --to q q own
	drain
	assert_equal "$(cat "$T/log")" own
	(exec "$BUILD/mq-consume" -n 1 next -- sh -c 'echo done well >&3') 3>&- &
	"$BUILD/mq-consume" --idle 2s q -- "$T/work" 3>&- 2>/dev/null &
	run_mq 0 mq-publish --wait=10s --after b --to next q go
	assert_output well
	wait
	printf '%s\n' '{"payload":"x","headers":{"Mq-After":["b"],"Mq-To":["a]b"]}}' >"$T/line"
	run_mq 65 mq-publish --jsonl q <"$T/line"
	# On a cluster the follower waits in outgoing.
	[ "${TOPOLOGY:-}" != cluster ] || return 0
	redis set 'rmq::queue::[bad]::ready' x >/dev/null
	run_mq 0 mq-publish --after b --to bad q go
	run_mq 0 mq-publish q other
	drain
	assert_equal "$(xargs <"$T/log")" "own other"
	assert_equal "$(held q)" "0 0 0 1"
	assert_regex "$(element q rejected | header Mq-Error)" '^push: bad: .*WRONGTYPE'
	redis del 'rmq::queue::[bad]::ready' >/dev/null
	run_mq 0 mq-return q
	drain
	assert_equal "$(held bad)" "1 0 0 0"
}

@test "batches: mq-stats --id says what a message waits for, or belongs to" {
	local id
	run_mq 0 mq-publish -l --batch a q </dev/null
	run_mq 0 mq-publish --batch b -d 1h q one two
	run_mq 0 mq-publish -i --after a,b --to next q follower
	id=$output
	run_mq 0 mq-return --from delayed --limit 1 q
	drain
	run_mq 0 mq-stats --id "$id" q
	assert_line --regexp '^waits for  *batch a,b \(1 of 2 open\)$'
	assert_line --regexp '^to  *next$'
	run_mq 0 mq-stats --json --id "$id"
	assert_equal "$(jq -c '[.waits_for, .after, .awaited, .awaited_open, .awaited_total]' \
		<<<"$output")" '["batch","a,b","a,b",1,2]'
	redis del 'rmq::queue::[q]::result::batch:'{a,b} >/dev/null
	run_mq 0 mq-stats --id "$id" q
	assert_line --regexp '^waits for  *a batch$'
	run_mq 0 mq-publish -i --batch b q member
	run_mq 0 mq-stats --id "$output" q
	assert_line --regexp '^batch  *b$'
}

@test "batches: --wait on a terminal shows how far the batch is, and erases that" {
	load ../helpers/wire
	echo 1 >"$T/status.one"
	touch "$T/hold.two"
	run_mq 0 mq-publish --batch b q one two
	start_mq mq-consume q -- "$T/work"
	eventually 5 counts_are b "2 1 0 1 0 0 0 0"
	{ eventually 10 held_is q "0 1 1 1" && sleep 1.2 && rm "$T/hold.two"; } 3>&- &
	on_terminal "" "$BUILD/mq-publish" --wait=20s --after b q go >"$T/screen" 3>&-
	grep -q '1 of 2, 1 rejected \[#' "$T/screen" || fail "$(cat "$T/screen")"
	stop_mq
	# Blanks follow the last line of it.
	run bash -c "tr '\\r' '\\n' <'$T/screen' | grep -A 1 '\[#' | tail -n 1 | tr -d ' '"
	assert_output ""
	run_mq 0 mq-publish --batch b q two
	run_mq 75 mq-publish --wait=100ms --after b q go
	assert_equal "$stderr" "mq-publish: q: 1 of 1 message not ended in time"
}

@test "batches: the page shows those that are open" {
	run_mq 0 mq-publish --batch '<b>' q one two
	run_mq 0 mq-publish --batch over q x
	run_mq 0 mq-purge --force --ready --match x q
	run_mq 0 mq-purge --force --ready --match one q
	run_mq 0 mq-publish none x
	"$BUILD/mq-stats" --html >"$T/page"
	run sed -n '/^<section id="batches">$/,/^<.section>/s|<[^>]*>||gp' "$T/page"
	assert_line --regexp '^q  *&#60;b&#62;  *2  *1  *0  *0  *0  *1  *0  *0$'
	assert_equal "$(grep -o '"batches":\[[^]]*\]' "$T/page" | tr -d ' ')" \
		'"batches":[{"queue":"q","batch":"\u003cb>","total":2,"open":1,"done":0,"rejected":0,"expired":0,"purged":1,"pushed":0,"unknown":0}]'
	run_mq 0 mq-purge --force --all q
	"$BUILD/mq-stats" --html >"$T/page"
	grep -q '<section id="batches" hidden>' "$T/page"
}

@test "batches: lines of JSON, copies and requests are members, duplicates of an id, too" {
	run_mq 0 mq-publish --batch b q one
	run_mq 0 mq-stats --jsonl --list ready q
	run_mq 0 mq-publish --jsonl q <<<"$output"
	assert_equal "$(counts b)" "2 2 0 0 0 0 0 0"
	drain
	assert_equal "$(counts b)" "2 0 2 0 0 0 0 0"
	run_mq 65 mq-publish --jsonl q \
		<<<'{"payload":"x","headers":{"Mq-Batch":["a b"]}}'
	run_mq 64 mq-publish --batch a,b q x
	run_mq 64 mq-publish --after a,,b q x
	[ "${TOPOLOGY:-}" != cluster ] || return 0
	run_mq 64 mq-publish -L rsmq --batch b q x
	assert_equal "$stderr" "mq-publish: --batch: the layout rsmq has no batches"
}

@test "batches: consumers that are killed, each member counts once" {
	local round
	run_mq 0 mq-publish -l --batch b q < <(seq 60)
	run_mq 0 mq-publish --after b q follower
	for round in 1 2 3; do
		start_mq mq-consume -j 4 q -- "$T/work"
		eventually 10 lines_reach "$T/log" $((round * 10))
		dies
		run_mq 0 mq-clean
	done
	drain
	assert_equal "$(counts b)" "60 0 60 0 0 0 0 0"
	assert_equal "$(grep -c follower "$T/log")" 1
	assert_equal "$(tail -n 1 "$T/log")" follower
	assert_equal "$(members) $(locks)" "0 0"
}

@test "batches: an end that nobody counted, and counts that are gone" {
	run_mq 0 mq-publish --batch b q one two
	run_mq 0 mq-publish --after b q follower
	# As programs of other kinds end a message.
	redis rpop 'rmq::queue::[q]::ready' >/dev/null
	run_mq 0 mq-clean
	assert_equal "$(counts b)" "2 1 0 0 0 0 0 1"
	assert_equal "$(held q)" "1 1 0 0"
	redis rpop 'rmq::queue::[q]::ready' >/dev/null
	run_mq 0 mq-clean
	assert_equal "$(counts b)" "2 0 0 0 0 0 0 2"
	assert_equal "$(element q ready | header Mq-Ended)" "b 2 0 0 0 0 2"
	assert_equal "$(members) $(held q)" "0 1 0 0 0"
	run_mq 0 mq-publish --batch b q three
	run_mq 0 mq-publish --after b q follower2
	redis del 'rmq::queue::[q]::result::batch:b' >/dev/null
	run_mq 0 mq-clean
	assert_equal "$(held q)" "3 0 0 0"
	drain
	assert_equal "$(members)" 0
}

@test "batches: a queue that was deleted leaves nothing open behind" {
	run_mq 0 mq-publish --batch b q one two
	run_mq 0 mq-purge --force --delete-queue q
	run_mq 1 mq-publish --after b q x
	run_mq 0 mq-publish --batch b q three
	assert_equal "$(counts b)" "1 1 0 0 0 0 0 0"
}

@test "batches: ends by receipt, by an operator, past the attempts, and of a run stopped from afar" {
	local receipt id how
	run_mq 0 mq-publish --batch b q one two three
	run_mq 0 mq-publish --after b q follower
	for how in ack reject return; do
		receipt=$("$BUILD/mq-lease" --for 1m q | jq -r .receipt)
		run_mq 0 mq-lease "--$how" "$receipt" q
	done
	assert_equal "$(counts b)" "3 1 1 1 0 0 0 0"
	# It is killed with its consumer, and may not run again.
	touch "$T/hold.three"
	start_mq mq-consume --attempts 1 q -- "$T/work"
	eventually 5 grep -q three "$T/log"
	dies
	run_mq 0 mq-clean
	assert_equal "$(counts b) $(held q)" "3 0 1 2 0 0 0 0 1 0 0 2"
	run_mq 0 mq-return --match three q
	assert_equal "$(counts b)" "3 1 1 1 0 0 0 0"
	start_mq mq-consume q -- "$T/work"
	eventually 5 counts_are b "3 1 1 1 0 0 0 0"
	eventually 5 held_is q "0 0 1 1"
	eventually 10 "$BUILD/mq-stats" -q --running q >/dev/null
	id=$("$BUILD/mq-stats" --json --running q | jq -r '.[].id')
	run_mq 0 mq-purge -q --running --id "$id" q
	eventually 5 counts_are b "3 0 1 1 0 1 0 0"
	stop_mq
	assert_equal "$(grep -c follower "$T/log") $(members)" "1 0"
}

@test "batches: a deleted queue takes followers along, and another message with the id is a member" {
	run_mq 0 mq-publish --batch b q one
	run_mq 0 mq-publish --after b q follower
	run_mq 0 mq-purge --force --delete-queue q
	assert_equal "$(redis keys '*')" ""
	run_mq 0 mq-publish --batch b q one
	"$BUILD/mq-stats" --jsonl --list ready q >"$T/line"
	run_mq 0 mq-publish --jsonl q <"$T/line"
	assert_equal "$(counts b)" "2 2 0 0 0 0 0 0"
	drain
	assert_equal "$(counts b)" "2 0 2 0 0 0 0 0"
}

@test "batches: a publisher is killed, and what it has published counts" {
	local n
	seq 200000 >"$T/many"
	"$BUILD/mq-publish" -l --batch b q <"$T/many" 3>&- 2>/dev/null &
	pid=$!
	eventually 10 lists_reach q 1000
	kill -KILL "$pid"
	wait "$pid" || true
	n=$(redis llen 'rmq::queue::[q]::ready')
	assert_equal "$(counts b)" "$n $n 0 0 0 0 0 0"
	run_mq 0 mq-purge --force --ready q
	assert_equal "$(counts b) $(members)" "$n 0 0 0 0 $n 0 0 0"
}

lists_reach() {
	(($(redis llen "rmq::queue::[$1]::ready") >= $2))
}

@test "batches: cleaners are killed while they count what nobody has counted" {
	local i
	run_mq 0 mq-publish -l --batch b q < <(seq 3000)
	run_mq 0 mq-publish --after b q follower
	redis del 'rmq::queue::[q]::ready' >/dev/null
	for i in 1 2 3 4; do
		"$BUILD/mq-clean" 3>&- &
		sleep 0.0$i
		kill -KILL $! 2>/dev/null || true
		wait $! || true
	done
	run_mq 0 mq-clean
	run_mq 0 mq-clean
	assert_equal "$(counts b) $(members)" "3000 0 0 0 0 0 0 3000 0"
	assert_equal "$(held q)" "1 0 0 0"
}
