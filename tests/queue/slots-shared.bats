#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# layouts: rmq rsmq
# topologies: cluster
# mq-set Q slots-shared=N: up to N messages of a queue at a time, over all consumers.

load ../helpers/server
load ../helpers/consume
load "../helpers/layout-${LAYOUT:-rmq}"

setup() {
	common_setup
	work_on_hold
	run_mq 0 mq-set --new q slots-shared=2
	others=()
}

teardown() {
	((${#others[@]} == 0)) || kill -9 "${others[@]}" 2>/dev/null || true
	common_teardown
}

# One more consumer; $other.
other() {
	"$BUILD/mq-consume" "$@" -- "$T/work" 2>>"$T/err.others" 3>&- &
	other=$!
	others+=("$other")
}

# The most that ran at once, by their own log.
most() {
	awk '{ n += $2 == "begins" ? 1 : -1; if (n > m) m = n } END { print m + 0 }' "$T/log"
}

# run_is "N of M": what mq-stats notes.
run_is() {
	"$BUILD/mq-stats" q | grep -q " $1 run\$"
}

@test "slots-shared: never more than N over all consumers, and N if there are so many" {
	run_mq 0 mq-publish q 1 2 3 4 5 6 7 8 9
	start_mq mq-consume -j 3 q -- "$T/work"
	for _ in 1 2 3 4; do other -j 3 q; done
	eventually 10 has_begun 2
	eventually 10 run_is "2 of 2"
	assert_equal "$(held q)" "7 0 2 0"
	eventually 10 "$BUILD/mq-stats" --running q
	run_mq 0 mq-stats --running q
	assert_regex "$stderr" ': 2 of 2 run$'
	run_mq 0 mq-stats --json q
	assert_output --partial '"slots_taken":2,"slots_shared":2'
	run_mq 0 mq-stats --prometheus q
	assert_line --regexp '^mq_slots_taken\{queue="[^"]*q"\} 2$'
	rm "$T/hold"
	eventually 20 held_is q "0 0 0 0"
	assert_equal "$(most)" 2
	assert_equal "$(begun)" 9
	eventually 10 run_is "0 of 2"
}

@test "slots-shared: each end frees a slot for any consumer" {
	run_mq 0 mq-publish q 1 2 3 4 5 6
	echo 1 >"$T/status.1"
	echo 75 >"$T/status.2"
	start_mq mq-consume --backoff 1h..1h -n 1 q -- "$T/work"
	eventually 10 has_begun 1
	other --backoff 1h..1h -n 1 q
	eventually 10 has_begun 2
	other q
	# The first two end; the third has not been called for, and gets both slots one after the other.
	touch "$T/go.1"
	eventually 10 has_begun 3
	touch "$T/go.2" "$T/go.3" "$T/go.4" "$T/go.5" "$T/go.6"
	eventually 10 held_is q "0 1 0 1"
	assert_equal "$(most)" 2
}

@test "slots-shared: a slot is for a message that runs, not for one that is claimed ahead" {
	rm "$T/hold"
	start_mq mq-consume q -- "$T/work"
	other q
	# So short that many would be claimed ahead.
	seq 100 200 | run_mq 0 mq-publish -l q
	eventually 20 held_is q "0 0 0 0"
	touch "$T/hold"
	: >"$T/log"
	run_mq 0 mq-publish q 1 2 3 4
	eventually 10 has_begun 2
	eventually 10 run_is "2 of 2"
}

@test "slots-shared: nothing is claimed ahead, batches and streams count messages" {
	run_mq 0 mq-publish q 1 2 3 4 5
	start_mq mq-consume -j 1 --prefetch 10 q -- "$T/work"
	eventually 10 has_begun 1
	eventually 10 run_is "2 of 2"
	assert_equal "$(held q)" "3 0 2 0"
	touch "$T/go.1" "$T/go.2" "$T/go.3" "$T/go.4" "$T/go.5"
	eventually 10 held_is q "0 0 0 0"
	stop_mq
	run_mq 0 mq-publish q a b c d e
	script count <<-'S'
		wc -l >>"$T/counts"
	S
	run_mq 0 mq-consume --drain --batch 5 -l q -- "$T/count"
	assert_equal "$(sort -n "$T/counts" | tail -n 1)" 2
	run_mq 0 mq-publish q a b c d e
	run_mq 0 mq-consume --drain --stream --window 5 -l q -- sh -c 'while read -r x; do echo "$x"; echo done >&3; done'
	assert_equal "$output" $'a\nb\nc\nd\ne'
	run_mq 0 mq-publish q a b c d e
	run_mq 0 mq-consume --drain -l q
	assert_equal "$output" $'a\nb\nc\nd\ne'
	assert_equal "$(held q)" "0 0 0 0"
}

@test "slots-shared: a consumer that is full of another queue gives its slots to others" {
	run_mq 0 mq-set q slots-shared=1
	run_mq 0 mq-publish --new p p1 p2
	run_mq 0 mq-publish q 1 2
	run_mq 0 mq-pause p
	start_mq mq-consume -j 1 p q -- "$T/work"
	eventually 10 has_begun 1
	other q
	run_mq 0 mq-pause --resume p
	# The first goes on with p; the slot of q is the other's.
	touch "$T/go.1"
	eventually 10 has_begun 3
	assert_equal "$(sort "$T/log" | xargs)" "1 begins 1 ends 2 begins p1 begins"
}

@test "slots-shared: a stopping consumer gives up each slot as its messages end" {
	run_mq 0 mq-publish q 1 2 3 4
	start_mq mq-consume -j 2 q -- "$T/work"
	eventually 10 has_begun 2
	other q
	kill "$pid"
	touch "$T/go.1"
	eventually 10 has_begun 3
	assert_equal "$(most)" 2
	touch "$T/go.2"
	stop_mq TERM 143
	rm "$T/hold"
	eventually 10 held_is q "0 0 0 0"
	assert_equal "$(most)" 2
}

@test "slots-shared: one that was killed counts until its lease is over" {
	run_mq 0 mq-publish q 1 2 3 4
	start_mq mq-consume --no-clean -j 2 q -- "$T/work"
	eventually 10 has_begun 2
	c=$(connections)
	other --no-clean q
	stop_mq KILL
	# The other one looks, and gets nothing.
	run_mq 1 mq-lease --for 1m q
	assert_equal "$(begun)" 2
	expire "$c"
	eventually 20 has_begun 3
	run_mq 0 mq-clean -q
	eventually 10 run_is "1 of 2"
	rm "$T/hold"
	eventually 20 held_is q "0 0 0 0"
}

@test "slots-shared: mq-lease counts, and gives slots back" {
	run_mq 0 mq-publish q 1 2 3 4
	run_mq 0 mq-lease --for 1h -n 3 q
	assert_equal "$(wc -l <<<"$output")" 2
	one=$(sed -nE '1s/.*"receipt":"([^"]*)".*/\1/p' <<<"$output")
	two=$(sed -nE '2s/.*"receipt":"([^"]*)".*/\1/p' <<<"$output")
	run_mq 1 mq-lease --for 1h q
	start_mq mq-consume -j 4 q -- "$T/work"
	eventually 10 run_is "2 of 2"
	assert_equal "$(begun)" 0
	run_mq 0 mq-lease --ack "$one" q
	eventually 10 has_begun 1
	run_mq 0 mq-lease --return "$two" q
	eventually 10 has_begun 2
	assert_equal "$(held q)" "1 0 2 0"
	rm "$T/hold"
	eventually 10 held_is q "0 0 0 0"
	assert_equal "$(most)" 2
}

@test "slots-shared: raised, lowered and removed while messages run" {
	run_mq 0 mq-publish q 1 2 3 4 5 6 7 8
	start_mq mq-consume -j 8 q -- "$T/work"
	eventually 10 has_begun 2
	run_mq 0 mq-set q slots-shared=4
	eventually 10 has_begun 4
	# Nobody is stopped; nothing starts until fewer than that run.
	run_mq 0 mq-set q slots-shared=1
	touch "$T/go.1" "$T/go.2" "$T/go.3"
	eventually 10 held_is q "4 0 1 0"
	run_mq 0 mq-set q slots-shared=
	eventually 10 has_begun 8
	run_mq 0 mq-stats q
	refute_output --partial ' run'
	# Those that run count as soon as there is a limit.
	run_mq 0 mq-set q slots-shared=3
	eventually 10 run_is "5 of 3"
	rm "$T/hold"
	eventually 10 held_is q "0 0 0 0"
	run_mq 0 mq-set q
	assert_line "slots-shared=3"
	run_mq 64 mq-set q slots-shared=0
	assert_output ""
	assert_equal "$stderr" "mq-set: slots-shared=0: must be a number from 1 to 100000"
}

@test "slots-shared: --drain waits for the slots of others" {
	run_mq 0 mq-publish q 1 2 3 4
	start_mq mq-consume -j 2 q -- "$T/work"
	eventually 10 has_begun 2
	other -q --drain q
	rm "$T/hold"
	wait "$other"
	eventually 10 held_is q "0 0 0 0"
	assert_equal "$(most)" 2
}
