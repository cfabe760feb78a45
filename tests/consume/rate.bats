#!/usr/bin/env bats
# --rate, --rate-shared, --rest: never more than allowed, and all in the end.
#
# What a script notes of its start can only be later than it was allowed to
# start.  So with times taken from before the first consumer's start, there are
# never more than BURST + N * t, however slow this machine is.

load ../helpers/server

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
	seq 20 | run_mq 0 mq-publish -l q
	rated 20 5 20 --drain --rate 20/s:5 q
	# A burst of 1.
	seq 8 | run_mq 0 mq-publish -l q
	rated 10 1 8 -n 8 --rate 10/s q
	seq 10 | run_mq 0 mq-publish -l q
	rated 20 2 10 --prefetch 10 --drain --rate 20/s:2 q
}

@test "rate: of several queues together" {
	seq 5 | run_mq 0 mq-publish -l q
	seq 5 | run_mq 0 mq-publish -l other
	rated 20 2 10 -n 10 --rate 20/s:2 q other
}

@test "rate: printing" {
	seq 12 | run_mq 0 mq-publish -l q
	date +%s%N >"$T/begin"
	"$BUILD/mq-consume" -n 12 -l --rate 20/s:4 q |
		while read -r x; do
			date +%s%N >>"$T/times"
			echo "$x" >>"$T/got"
		done
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

@test "rate: a script that resends at once is held back, too" {
	run_mq 0 mq-publish q x
	echo 'date +%s%N >>"$T/times"; [ "$MQ_ATTEMPT" = 6 ] || echo resend 0 >&3' | script s
	date +%s%N >"$T/begin"
	run_mq 0 mq-consume -n 6 --rate 10/s:1 q -- "$T/s"
	never_more 10 1 6
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
	(($(redis info commandstats |
		sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\),.*/\1/p') < 100))
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

# Times between starts, in ms, in order.
gaps() {
	awk 'NR > 1 { printf "%.0f\n", ($1 - last) / 1e6 } { last = $1 }' "$T/times"
}

@test "rest: longer after each failure in a row, never shorter than the minimum" {
	seq 5 | run_mq 0 mq-publish -l q
	# At its end: the rest begins after that.
	echo 'date +%s%N >>"$T/times"; exit 1' | script s
	run_mq 1 mq-consume -n 5 --rest 200ms..1s q -- "$T/s"
	gaps >"$T/gaps"
	cat "$T/gaps"
	# Between start and next start: at least the least rests, 200, 225, 337
	# and 506 ms.
	assert [ "$(sed -n 1p "$T/gaps")" -ge 200 ]
	assert [ "$(sed -n 2p "$T/gaps")" -ge 224 ]
	assert [ "$(sed -n 3p "$T/gaps")" -ge 336 ]
	assert [ "$(sed -n 4p "$T/gaps")" -ge 500 ]
	assert_equal "$(held q)" "0 0 0 5"
}

@test "rest: a run that is done ends it" {
	seq 30 | run_mq 0 mq-publish -l q
	# A rest is 30 minutes at least, and would have been seen.
	run_mq 0 mq-consume -n 30 --rest 1h..1h q -- true
	run_mq 0 mq-publish q x
	run_mq 1 mq-consume -n 1 --rest 1h..1h q -- false
}

@test "rest: it is the slot that rests, the others go on" {
	run_mq 0 mq-publish q bad
	seq 10 | run_mq 0 mq-publish -l q
	echo 'read -r x; echo "$x" >>"$T/got"; [ "$x" != bad ]' | script s
	start_mq mq-consume -j 2 --rest 1h..1h q -- "$T/s"
	eventually 10 lines_reach "$T/got" 11
	# And with both of them resting nothing is claimed.
	run_mq 0 mq-publish q bad
	eventually 10 held_is q "0 0 0 2"
	run_mq 0 mq-publish q more
	tick
	tick
	assert_equal "$(held q)" "1 0 0 2"
	stop_mq
	assert_equal "$(held q)" "1 0 0 2"
}

@test "rest: what was claimed ahead is given back" {
	run_mq 0 mq-publish q bad a b
	start_mq mq-consume --rest 1h..1h q -- false
	eventually 10 held_is q "2 0 0 1"
	stop_mq
}

@test "rest: a retry is a failure, a resend is none" {
	run_mq 0 mq-publish q x
	run_mq 75 mq-consume -n 3 --rest 1h..1h q -- sh -c 'echo resend 0 >&3'
	run_mq 0 mq-publish q y
	start_mq mq-consume --rest 1h..1h --backoff 1ms..1ms q -- \
		sh -c 'echo >>"$T/runs"; exit 75'
	eventually 10 lines_reach "$T/runs" 1
	tick
	assert_equal "$(wc -l <"$T/runs")" 1
	stop_mq
}

@test "rest: --drain does not wait for it" {
	run_mq 0 mq-publish q x
	run_mq 1 mq-consume --drain --rest 1h..1h q -- false
	assert_equal "$(held q)" "0 0 0 1"
}
