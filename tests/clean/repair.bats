#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-clean and what messages ask for: locks of messages that are nowhere, turns
# that nobody gives, messages that are too late, and the order of what comes
# back from dead consumers.

load ../helpers/server
load ../helpers/go

q='rmq::queue::[q]'
go=rmq::connection::go-111111

publish() {
	"$BUILD/mq-publish" "$@"
}

# A Go program that lives, and what it does.
go_joins() {
	go_connect go-111111
	go_consume go-111111 q
}

go_claims() {
	redis rpoplpush "$q::ready" "$go::queue::[q]::unacked" >/dev/null
}

go_acks() {
	redis lpop "$go::queue::[q]::unacked" >/dev/null
}

# repaired N [EXPIRED]: what a round says it did; a dry run says so first, and
# changes nothing.
repaired() {
	local before want="\"locks\":$1,"
	before=$(redis debug digest)
	run_mq 0 mq-clean --json --dry-run
	assert_regex "$output" "\"expired\":${2-0},.*$want"
	assert_equal "$(redis debug digest)" "$before"
	run_mq 0 mq-clean --json
	assert_regex "$output" "\"expired\":${2-0},.*$want"
	assert_equal "$stderr" ""
	run_mq 0 mq-clean --json
	assert_regex "$output" '"expired":0,.*"locks":0,'
}

locks() {
	redis hkeys "$q::locks" | sort | cut -c1-8 | xargs
}

# What is claimed now, in this order.
drained() {
	"$BUILD/mq-consume" --drain --no-clean -l q | xargs
}

reasons() {
	"$BUILD/mq-stats" --list rejected --jsonl q | jq -r .reason | sort | uniq -c | xargs
}

@test "repair: a group whose message a Go program acked, rejected or purged goes on" {
	publish -g a q a1 a2 a3
	publish -g b q b1 b2 b3
	go_joins
	go_claims
	go_acks
	assert_equal "$(held q)" "1 4 0 0"
	repaired 1
	assert_equal "$(held q)" "2 3 0 0"
	go_claims
	redis rpoplpush "$go::queue::[q]::unacked" "$q::rejected" >/dev/null
	repaired 1
	# Now a2 and b2.
	redis del "$q::ready" >/dev/null
	repaired 2
	assert_equal "$(drained)" "a3 b3"
	assert_equal "$(locks)" ""
}

@test "repair: so it does beside mq-consume, without mq-clean, and a key is free" {
	no_cluster "there only mq-clean repairs locks"
	publish -g a -k key q a1
	publish -g a q a2
	publish -g b -k other q b1
	publish -g b q b2
	go_joins
	go_claims
	go_acks
	go_claims
	# It goes on after somebody has cleaned it away.
	redis srem rmq::connections go-111111 >/dev/null
	redis del $go::queues >/dev/null
	start_mq mq-consume other -- true
	eventually 10 eval '[ "$(redis llen "$q::ready") $(locks | wc -w)" = "1 3" ]'
	# Nobody looks again so soon.
	((30000 >= $(redis pttl "$q::checked") && $(redis pttl "$q::checked") > 0))
	stop_mq
	redis del "$q::checked" >/dev/null
	go_acks
	start_mq mq-consume other -- true
	eventually 10 eval '[ "$(redis llen "$q::ready") $(redis hlen "$q::locks")" = "2 2" ]'
	stop_mq
	assert_equal "$(drained)" "a2 b2"
	assert_equal "$(locks)" ""
}

@test "repair: where all keys may not be looked through, no lock is let go of" {
	publish -g a q a1
	publish -g a q a2
	go_joins
	go_claims
	redis srem rmq::connections go-111111 >/dev/null
	redis del $go::queues >/dev/null
	redis acl setuser app reset on '>pw' '~*' '&*' +@all -scan >/dev/null
	run env MQ_URL="$(url_as app:pw)" "$BUILD/mq-clean" --json
	assert_regex "$output" '"locks":0,'
	redis config resetstat >/dev/null
	MQ_URL=$(url_as app:pw) start_mq mq-consume other -- true
	eventually 10 eval 'redis info commandstats | grep -q "^cmdstat_hscan:"'
	tick
	stop_mq
	assert_equal "$(held q)" "0 1 1 0"
	redis acl deluser app >/dev/null
}

@test "repair: a key whose message is nowhere is free again" {
	publish -k one q 1
	publish -k two q 2
	publish -k three --unique 1h q 3
	publish -k four --unique queued -d 1h q 4
	redis del "$q::ready" >/dev/null
	repaired 2
	assert_equal "$(locks)" "kfour kthree"
	publish -k one q 1
	run_mq 1 mq-publish -k three q 3
	run_mq 1 mq-publish -k four q 4
	# One that was kept for some time is swept.
	publish -k five --unique 1ms q 5
	mq_time_passes
	"$BUILD/mq-consume" --drain q >/dev/null
	repaired 0
	assert_equal "$(locks)" "kfour kthree"
}

mq_time_passes() {
	read -rt 0.02 <> <(:) || true
}

@test "repair: messages that are somewhere keep what they hold" {
	local i
	redis set rmq::connection::go-111111::heartbeat 1 EX 60 >/dev/null
	publish -g g1 -k k1 q r
	publish -g g2 -k k2 -p 5 q p
	publish -g g3 -k k3 -d 1h q d
	publish -g g4 -k k4 --from-tick 7 q t
	publish -g g1 -k k5 q l
	publish -g g5 -k k6 q u
	go_joins
	redis lmove "$q::ready" "$go::queue::[q]::unacked" left left >/dev/null
	redis debug digest >"$T/before"
	repaired 0
	forget_past
	assert_equal "$(redis debug digest)" "$(cat "$T/before")"
	assert_equal "$(redis hlen "$q::locks")" 11
}

@test "repair: locks that were deleted: turns are given, and locks taken again" {
	publish -g a q a1 a2
	publish -g b q b1 b2 b3
	redis del "$q::locks" >/dev/null
	# Those out of line take them.
	repaired 2
	assert_equal "$(redis hlen "$q::locks")" 2
	# Nobody is out of line, so those in front have their turn.
	redis del "$q::locks" "$q::ready" >/dev/null
	repaired 2
	assert_equal "$(drained)" "a2 b2 b3"
	assert_equal "$(locks)" ""
}

@test "repair: hundreds of groups and keys of messages that a purge dropped" {
	python3 -IS -c 'import json
for i in range(1, 451):
    for j in 1, 2:
        n = "%d-%d" % (i, j)
        print(json.dumps({"payload": n, "headers": {
            "Mq-Group": ["g%d" % i], "Mq-Key": ["k" + n]}}))' |
		publish --jsonl q
	assert_equal "$(held q)" "450 450 0 0"
	redis del "$q::ready" >/dev/null
	repaired 900
	assert_equal "$(held q)" "450 0 0 0"
	assert_equal "$(redis hlen "$q::locks")" 900
	assert_equal "$(drained)" "$(seq -f '%.0f-2' 450 | xargs)"
	assert_equal "$(locks)" ""
}

@test "repair: expired messages, and those whose last tick is over, go to rejected" {
	publish -e 1ms q ready
	publish -e 1ms -p 3 q priority
	publish --jsonl -d 1h q <<<'{"payload":"","headers":{"Mq-Expires":["5"]}}'
	publish -e 1ms -g a -k key q first
	publish -e 1h -g a q second
	publish -e 1ms -g a q third
	publish q plain
	mq_time_passes
	repaired 0 5
	assert_equal "$(reasons)" "5 expired"
	assert_equal "$(counts expired failed)" "5 5"
	assert_equal "$(held q)" "2 0 0 5"
	assert_equal "$(drained)" "plain second"
	run_mq 0 mq-publish -k key q again
	assert_equal "$(drained)" "again"
	publish --until-tick 3 q three
	publish --until-tick 5 q five
	publish --until-tick 3 --from-tick 2 -g a q two
	publish -g a q next
	repaired 0
	publish --tick 4 q
	repaired 0 2
	assert_equal "$(reasons)" "5 expired 2 stale: tick 3 is over"
	assert_equal "$(drained)" "five next"
}

@test "repair: many expired ones between others stay in order, and no bound is lost" {
	python3 -IS -c 'import json
for i in range(1, 1501):
    headers = {"Mq-Error": ["a \"]\\", "b"]}
    if i % 3 == 0:
        headers["Mq-Expires"] = ["5" if i % 2 else "9999999999999"]
    print(json.dumps({"payload": str(i), "headers": headers}))' >"$T/messages"
	publish --jsonl -d 1ms q <"$T/messages"
	mq_time_passes
	run_mq 0 mq-clean --json
	assert_regex "$output" '"due":1500,"expired":250,'
	assert_equal "$(reasons)" "250 expired"
	assert_equal "$(redis hget "$q::locks" e)" 9999999999999
	assert_equal "$(drained)" "$(seq 1500 | awk '$1 % 6 != 3' | xargs)"
}

@test "repair: what expired in each place is rejected in the order in which it would have been claimed" {
	local at
	seq -f p%.0f 200 | publish -l -p 3 -e 1ms q
	publish -e 1ms q r1 r2
	# Far in the future, and the later ones first.
	for at in 3 2 1; do
		publish --jsonl -d "${at}h" q <<<"{\"payload\":\"d$at\",\"headers\":{\"Mq-Expires\":[\"5\"]}}"
	done
	mq_time_passes
	repaired 0 205
	assert_equal "$(redis --raw lrange "$q::rejected" 0 -1 | tac | tr -d '\0' | grep -ao '^[prd][0-9]*$' | xargs)" \
		"$(seq -f p%.0f 200 | xargs) r1 r2 d1 d2 d3"
}

# crash COMMAND...: a consumer that is killed when it runs; its lease is over.
crash() {
	"$BUILD/mq-consume" --no-clean "$@" q -- sh -c 'cat >>"$T/ran"; echo >>"$T/ran"
		exec sleep 100' 3>&- &
	pid=$!
	eventually 10 test -s "$T/ran"
	dies
	rm "$T/ran"
}

@test "repair: what a dead consumer had comes back before its equals" {
	publish -p 5 q p1 p2 p3
	publish -p -5 q m1
	publish q r1 r2
	publish --from-tick 1 q t1
	publish --tick 1 q
	crash --prefetch 10
	assert_equal "$(redis zcard "$q::priority") $(redis llen "$q::ready")" "0 0"
	publish -p 5 q p4
	publish q r3
	run_mq 0 mq-clean --json
	assert_regex "$output" '"returned":7,'
	assert_equal "$(drained)" "t1 p1 p2 p3 p4 r1 r2 r3 m1"
}

@test "repair: groups and keys of a dead consumer, exactly once and in order" {
	local i
	for ((i = 1; i <= 5; i++)); do
		publish -g a -k "a$i" q "a$i"
		publish -g b -k "b$i" --unique queued q "b$i"
	done
	# shellcheck disable=SC2034
	for round in 1 2 3 4; do
		crash -j 2
		# b1 was started, so its key was free; it takes it again.
		run_mq 0 mq-clean -q
		assert_equal "$(held q)" "2 8 0 0"
		assert_equal "$(redis hlen "$q::locks")" 12
		run_mq 1 mq-publish -k b1 q dup
		run_mq 1 mq-publish -k a1 q dup
	done
	repaired 0
	assert_equal "$(drained)" "a1 b1 a2 b2 a3 b3 a4 b4 a5 b5"
	assert_equal "$(locks)" ""
}

@test "repair: what crashed too often lets go; a key that another one took is not taken back" {
	publish -g a -k x q one
	publish -g a q two
	crash --attempts 1
	run_mq 0 mq-clean --json
	assert_regex "$output" '"rejected":1,'
	assert_equal "$(held q)" "1 0 0 1"
	publish -k x q three
	assert_equal "$(drained)" "two three"
	assert_equal "$(locks)" ""
	publish -k x --unique queued q one
	crash
	publish -k x --unique queued q two
	run_mq 0 mq-clean -q
	assert_equal "$(drained)" "one two"
	assert_equal "$(locks)" ""
}

@test "repair: what runs beyond its expiry keeps its group" {
	script hold <<-'END'
		touch "$T/taken"
		until [ -e "$T/go" ]; do sleep 0.02; done
	END
	publish -g g -k k -e 8s q A1
	start_mq mq-consume -n 1 q -- "$T/hold"
	eventually 10 test -e "$T/taken"
	# What was delayed for longer than the other was to expire has come.
	publish -d 8001ms q later
	eventually 10 is_due
	run_mq 0 mq-clean
	assert_equal "$(locks | tr ' ' '\n' | grep -c '^[gk]')" 2
	touch "$T/go"
	wait "$pid"
	assert_equal "$(locks | tr ' ' '\n' | grep -c '^[gk]')" 0
}

is_due() {
	[ "$(redis zcount "$q::delayed" -inf "$(redis eval 'local t = redis.call("TIME")
		return t[1] * 1000 + math.floor(t[2] / 1000)' 0)")" = 1 ]
}

@test "repair: what Go's cleaner puts into ready is consumed once, groups in order" {
	publish -p 5 -g a q a1
	publish -p 5 -g a q a2
	publish --from-tick 0 -g b q b1 b2
	crash -j 2
	go_clean
	assert_equal "$(held q)" "2 2 0 0"
	repaired 0
	drained >"$T/out"
	assert_equal "$(tr ' ' '\n' <"$T/out" | sort | xargs)" "a1 a2 b1 b2"
	assert_equal "$(grep -o 'a.' "$T/out" | xargs)" "a1 a2"
	assert_equal "$(locks)" ""
}

# clean_slowly RATE: mq-clean behind a link that takes 0.1 s for each answer, and
# to which time goes so much faster.
clean_slowly() {
	local lib
	lib=$(find /usr/lib -name libfaketime.so.1 | head -n 1)
	[ -n "$lib" ]
	# It has a second to connect, by its own clock, and not what is left of a former process
	# with its number that was killed.
	# shellcheck disable=SC2016
	run --separate-stderr env FAKETIME="+0 x$1" FAKETIME_START_AFTER_SECONDS=1 \
		bash -c 'rm -f /dev/shm/*faketime_*_$$; LD_PRELOAD=$1 exec "$2" --json -u "$3"' \
		bash "$lib" "$BUILD/mq-clean" "redis://127.0.0.1:$(cat "$T/port")"
	assert_success
}

@test "repair: on a slow link a proof takes as long as it takes, or is said to fail" {
	no_static "faketime makes the link slow"
	no_cluster "the proxy stands before one server"
	[[ $BUILD != *address* ]] || skip "not with this sanitizer"
	publish -k gone q x
	redis lpop "$q::ready" >/dev/null
	seq 1000 | publish -p 5 -l q
	"$root/tests/helpers/link.py" "$D/redis.sock" 0.2 1 >"$T/port" 3>&- &
	eventually 10 [ -s "$T/port" ]
	# 30 seconds for an answer, of which none may take 60.
	clean_slowly 75
	assert_regex "$output" '"locks":0,'
	assert_regex "$stderr" "^mq-clean: redis://127.0.0.1:[0-9]+: keys and groups of 1 queue not repaired: a consumer died meanwhile, or the connection was too slow; the next round tries again\$"
	assert_equal "$(locks)" kgone
	# 10 seconds for a step, and some 10 steps.
	clean_slowly 25
	assert_regex "$output" '"locks":1,'
	assert_equal "$stderr" ""
	assert_equal "$(locks)" ""
}

@test "repair: keys beside the messages of a queue that nobody knows" {
	publish --from-tick 9 -k held q later
	publish --tick 3 q
	publish -p 3 -g g p high
	publish -k kept --unique 1h gone x
	publish --tick 1 gone
	"$BUILD/mq-consume" --drain gone >/dev/null
	redis hset 'rmq::queue::[gone]::rate' tokens 1 us 1 >/dev/null
	publish -k ready r x
	redis del rmq::queues >/dev/null
	run_mq 0 mq-clean --json --dry-run
	run_mq 0 mq-clean --json
	assert_equal "$(redis smembers rmq::queues | sort | xargs)" "p q r"
	# There keys that nobody needs are not removed.
	[ "${TOPOLOGY-}" = cluster ] ||
		assert_equal "$(redis keys 'rmq::queue::?gone*')" ""
	# Its message holds it.
	assert_equal "$(redis hkeys 'rmq::queue::[r]::locks')" kready
	assert_equal "$(redis hkeys 'rmq::queue::[q]::locks')" kheld
}

@test "repair: a dry run counts messages whose tick has come" {
	publish --from-tick 2 q two
	publish --from-tick 4 q four
	publish --from-tick 3 -g g q three
	publish --tick 3 q
	run_mq 0 mq-clean --json --dry-run
	assert_regex "$output" '"due":2,'
	run_mq 0 mq-clean --json
	assert_regex "$output" '"due":2,'
	assert_equal "$(held q)" "0 1 0 0"
}

# What each group has said, in order, without what was tried again.
groups_in_order() {
	sort -s -k1,1 "$T/ran" | uniq | awk '$1 == g && $2 < n {exit 1} {g = $1; n = $2}'
}

@test "repair: a cleaner at work all the time lets go of nothing that is alive" {
	local clean pids=() i
	script work <<-'EOF'
		read -r line
		mkdir "$T/busy.${line% *}" || { echo "$line" >>"$T/twice"; exit 1; }
		echo "$line" >>"$T/ran"
		rmdir "$T/busy.${line% *}"
		[ "$((${line#* } % 3))" != 0 ] || [ "$MQ_ATTEMPT" -gt 2 ] || exit 75
	EOF
	for ((i = 1; i <= 15; i++)); do
		for g in a b c d; do
			echo "{\"payload\":\"$g $i\",\"headers\":{\"Mq-Group\":[\"$g\"],\"Mq-Key\":[\"$g$i\"]}}"
		done
	done | publish --jsonl q
	"$BUILD/mq-clean" --json --interval 1ms >"$T/clean" 2>"$T/clean.err" 3>&- &
	clean=$!
	for i in 1 2 3; do
		"$BUILD/mq-consume" -j 2 --no-clean --backoff 1ms..5ms q \
			-- "$T/work" 2>/dev/null 3>&- &
		pids+=($!)
	done
	eventually 60 held_is q "0 0 0 0"
	kill "${pids[@]}" "$clean"
	assert_equal "$(cat "$T/twice" 2>/dev/null)" ""
	assert_equal "$(held q)" "0 0 0 0"
	groups_in_order
	assert_equal "$(sort -u "$T/ran" | wc -l)" 60
	# Nothing was ever repaired.
	assert_equal "$(grep -v '"locks":0,' "$T/clean")" ""
	assert_equal "$(locks)" ""
}

# stirred: both locks are held by the same message, and written since $before.
stirred() {
	local after
	after=$(redis hvals "$q::locks" | sort)
	assert_equal "$(cut -c1-32 <<<"$after")" "$(cut -c1-32 <<<"$before")"
	assert_equal "$(comm -12 <(echo "$before") <(echo "$after"))" ""
	before=$after
}

@test "repair: locks of what goes back are written anew, so a walk that missed it sees it" {
	local before
	publish -g a -k x q one
	before=$(redis hvals "$q::locks" | sort)
	# A retry, at once and later.
	run_mq 75 mq-consume --no-clean -n 1 --backoff 0..0 q -- sh -c 'exit 75'
	stirred
	# A consumer that is told to end returns it.
	start_mq mq-consume --no-clean --grace 0 q -- sh -c 'exec sleep 100'
	eventually 10 held_is q "0 0 1 0"
	stop_mq TERM
	assert_equal "$(held q)" "1 0 0 0"
	stirred
	# One that dies.
	crash
	run_mq 0 mq-clean -q
	stirred
	run_mq 75 mq-consume --no-clean -n 1 --backoff 1h..1h q -- sh -c 'exit 75'
	assert_equal "$(held q)" "0 1 0 0"
	stirred
}
