#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# --rate, --rate-shared, --rest: never more than allowed, and all in the end.
#
# What a script notes of its start can only be later than it was allowed to
# start.  So with times taken from before the first consumer's start, there are
# never more than BURST + N * t, however slow this machine is.

load ../helpers/server
load ../helpers/consume

setup() {
	common_setup
	echo 'date +%s%N >>"$T/times"' | script note
	# What is there at once.
	date +%s%N >"$T/begin"
}

# never_more N BURST COUNT: $T/times has COUNT times, and as said above.
never_more() {
	assert_equal "$(wc -l <"$T/times")" "$3"
	sort -n "$T/times" | awk -v n="$1" -v burst="$2" -v begin="$(cat "$T/begin")" '
		{ t = ($1 - begin) / 1e9 }
		NR > burst + n * t { print "the " NR "th after " t " s"; bad = 1 }
		END { exit bad }'
}

# rated RATE BURST COUNT WORD...: as many messages were published; mq-consume with these
# words is held back.
rated() {
	date +%s%N >"$T/begin"
	: >"$T/times"
	run_mq 0 mq-consume -j 8 "${@:4}" -- "$T/note"
	never_more "$1" "$2" "$3"
	assert_equal "$(held q)" "0 0 0 0"
}

@test "rate: never more than the burst and the rate allow, and all are done" {
	publish {1..20}
	rated 20 5 20 --drain --rate 20/s:5 q
	# A burst of 1.
	publish {1..8}
	rated 10 1 8 -n 8 --rate 10/s q
	publish {1..10}
	rated 20 2 10 --prefetch 10 --drain --rate 20/s:2 q
	# Of several queues together.
	publish {1..5}
	run_mq 0 mq-publish other 1 2 3 4 5
	rated 20 2 10 -n 10 --rate 20/s:2 q other
	# What a script resends at once, too.
	run_mq 0 mq-publish q x
	echo 'date +%s%N >>"$T/times"; [ "$MQ_ATTEMPT" = 6 ] || echo resend 0 >&3' | script note
	rated 10 1 6 -n 6 --rate 10/s:1 q
	# And what is printed.
	publish {1..12}
	date +%s%N >"$T/begin"
	"$BUILD/mq-consume" -n 12 -l --rate 20/s:4 q |
		while read -r x; do
			date +%s%N
			echo "$x" >>"$T/got"
		done >"$T/times"
	never_more 20 4 12
	assert_equal "$(cat "$T/got")" "$(seq 12)"
}

@test "rate: what has to wait for it is not claimed" {
	seq 50 | run_mq 0 mq-publish -l q
	start_mq mq-consume -j 8 --rate 1/h:3 q -- "$T/note"
	eventually 10 held_is q "47 0 0 0"
	# The tick would claim, too.
	tick
	tick
	assert_equal "$(held q)" "47 0 0 0"
	assert_equal "$(wc -l <"$T/times")" 3
	# Another one can have it.
	run_mq 0 mq-consume -n 47 q -- true
	stop_mq
}

@test "rate: --drain does not wait for a token that nobody needs" {
	run_mq 0 mq-publish q a b
	run_mq 0 mq-consume --drain --rate 1/h:2 q -- true
	run_mq 0 mq-publish q a b
	run_mq 0 mq-consume --drain -l --rate 1/h:2 q
	assert_output $'a\nb'
}

@test "rate: shared by all consumers of a queue" {
	seq 20 | run_mq 0 mq-publish -l q
	date +%s%N >"$T/begin"
	for i in 1 2 3; do
		"$BUILD/mq-consume" -j 4 --drain --rate-shared 20/s:3 q -- \
			"$T/note" 2>>"$T/err" &
	done
	wait
	never_more 20 3 20
	assert_equal "$(held q)" "0 0 0 0"
}

@test "rate: shared, one account for each queue" {
	run_mq 0 mq-publish q a b c
	run_mq 0 mq-publish other a b c
	start_mq mq-consume -j 8 --rate-shared 1/h:2 q other -- "$T/note"
	eventually 10 lines_reach "$T/times" 4
	eventually 10 held_is q "1 0 0 0"
	eventually 10 held_is other "1 0 0 0"
	tick
	assert_equal "$(held q) $(held other)" "1 0 0 0 1 0 0 0"
	stop_mq
	# Whoever comes next finds it as it is.
	start_mq mq-consume --rate-shared 1/h:2 q -- "$T/note"
	eventually 10 joined
	tick
	assert_equal "$(held q)" "1 0 0 0"
	stop_mq
}

@test "rate: shared, waiting is no work for the server" {
	redis config resetstat >/dev/null
	run_mq 0 mq-consume --rate-shared 1/s --idle 2s q
	(($(calls evalsha) < 100))
}

@test "rate: shared, nothing is claimed ahead" {
	seq 20 | run_mq 0 mq-publish -l q
	mkfifo "$T/go"
	echo 'echo >>"$T/started"; read -r _ <>"$T/go"' | script s
	start_mq mq-consume -j 2 --rate-shared 1000/s:100 q -- "$T/s"
	eventually 10 lines_reach "$T/started" 2
	tick
	assert_equal "$(held q)" "18 0 2 0"
	stop_mq INT
}

# --- rests ------------------------------------------------------------------------

@test "rest: longer after each failure in a row, never shorter than the minimum" {
	publish {1..5}
	# At its end: the rest begins after that.
	echo 'date +%s%N >>"$T/times"; exit 1' | script s
	run_mq 1 mq-consume -n 5 --rest 200ms..1s q -- "$T/s"
	# Between start and next start: at least the least rests, 200, 225, 337
	# and 506 ms.
	awk 'BEGIN { split("0 200 224 336 500", least) }
		NR > 1 { print ($1 - last) / 1e6 }
		NR > 1 && ($1 - last) / 1e6 < least[NR] { bad = 1 }
		{ last = $1 }
		END { exit bad || NR != 5 }' "$T/times"
	assert_equal "$(held q)" "0 0 0 5"
}

@test "rest: a run that is done ends it, so does a resend; --drain does not wait for it" {
	publish {1..30}
	# A rest is 30 minutes at least, and would have been seen.
	run_mq 0 mq-consume -n 30 --rest 1h..1h q -- true
	run_mq 0 mq-publish q x
	run_mq 75 mq-consume -n 3 --rest 1h..1h q -- sh -c 'echo resend 0 >&3'
	run_mq 1 mq-consume --drain --rest 1h..1h q -- false
	assert_equal "$(held q)" "0 0 0 1"
}

@test "rest: it is the slot that rests, the others go on" {
	run_mq 0 mq-publish q bad
	publish {1..10}
	# A retry is a failure, too.
	echo 'read -r x; echo "$x" >>"$T/got"; [ "$x" != bad ] || exit 75' | script s
	start_mq mq-consume -j 2 --backoff 1h..1h --rest 1h..1h q -- "$T/s"
	eventually 10 lines_reach "$T/got" 11
	# And with both of them resting nothing is claimed, and what was is given back.
	run_mq 0 mq-publish q bad more and more
	eventually 10 held_is q "3 2 0 0"
	tick
	tick
	assert_equal "$(held q)" "3 2 0 0"
	stop_mq
	assert_equal "$(held q)" "3 2 0 0"
}
