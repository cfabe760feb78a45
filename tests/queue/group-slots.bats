#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# topologies: cluster
# mq-set Q group-slots=N: up to N messages of a group at a time, over all consumers.

load ../helpers/server
load ../helpers/consume

setup() {
	common_setup
	work_on_hold
	run_mq 0 mq-publish --new q x
	run_mq 0 mq-purge --force --ready q
}

@test "group-slots: N at a time over all consumers, in the order of publishing" {
	run_mq 0 mq-set q group-slots=3
	run_mq 0 mq-publish -g a q 1 2 3 4 5 6 7 8 9
	run_mq 0 mq-publish -g b q b1
	start_mq mq-consume -j 3 q -- "$T/work"
	"$BUILD/mq-consume" -j 3 q -- "$T/work" 3>&- &
	second=$!
	eventually 10 has_begun 4
	assert_equal "$(grep begins "$T/log" | sort | xargs)" "1 begins 2 begins 3 begins b1 begins"
	touch "$T/go.2"
	eventually 10 has_begun 5
	touch "$T/go.1" "$T/go.3"
	eventually 10 has_begun 7
	assert_equal "$(grep begins "$T/log" | tail -n 2 | sort | xargs)" "5 begins 6 begins"
	rm "$T/hold"
	eventually 10 held_is q "0 0 0 0"
	kill "$second"
	wait "$second" || true
	stop_mq
	# b1 is of another group.
	assert_equal "$(grep -v b1 "$T/log" | awk '{ n += $2 == "begins" ? 1 : -1; if (n > m) m = n }
		END { print m }')" 3
	assert_equal "$(locks)" 0
}

@test "group-slots: each end frees a place, a retry keeps it" {
	run_mq 0 mq-set q group-slots=2
	run_mq 0 mq-publish -g a q 1 2 3 4 5 6
	echo 1 >"$T/status.1"
	echo 75 >"$T/status.2"
	start_mq mq-consume -j 4 --backoff 1h..1h q -- "$T/work"
	eventually 10 has_begun 2
	# Rejected.
	touch "$T/go.1"
	eventually 10 has_begun 3
	# A retry in an hour blocks its place.
	touch "$T/go.2" "$T/go.3"
	eventually 10 has_begun 4
	assert_equal "$(held q)" "0 3 1 1"
	# Purged while it waits.
	run_mq 0 mq-purge --force --delayed q
	touch "$T/go.4"
	eventually 10 held_is q "0 0 0 1"
	stop_mq
	assert_equal "$(locks)" 0
	# Returned ones take places, or stand in line.
	run_mq 0 mq-publish -g a q 7 8
	run_mq 0 mq-return q
	assert_equal "$(held q)" "2 1 0 0"
	rm "$T/hold" "$T/status.1"
	run_mq 0 mq-consume --drain q -- "$T/work"
	assert_equal "$(tail -n 1 "$T/log")" "1 ends"
	assert_equal "$(locks)" 0
}

@test "group-slots: raised and lowered while messages run" {
	run_mq 0 mq-publish -g a q 1 2 3 4 5 6 7 8
	start_mq mq-consume -j 8 q -- "$T/work"
	eventually 10 has_begun 1
	run_mq 0 mq-set q group-slots=4
	touch "$T/go.1"
	eventually 10 has_begun 5
	# Nobody is stopped; nothing starts until fewer than that run.
	run_mq 0 mq-set q group-slots=2
	touch "$T/go.2" "$T/go.4"
	eventually 10 held_is q "0 3 2 0"
	touch "$T/go.3"
	eventually 10 has_begun 6
	run_mq 0 mq-set q group-slots=
	touch "$T/go.5"
	eventually 10 held_is q "0 2 1 0"
	rm "$T/hold"
	eventually 10 held_is q "0 0 0 0"
	assert_equal "$(grep begins "$T/log" | cut -d' ' -f1 | sort | xargs)" "1 2 3 4 5 6 7 8"
	stop_mq
	assert_equal "$(locks)" 0
	run_mq 1 mq-set q group-slots
}

@test "group-slots: raised for those who wait: the next round of cleaning starts them" {
	run_mq 0 mq-publish -g a q 1 2 3 4
	start_mq mq-consume --no-clean -j 4 q -- "$T/work"
	eventually 10 has_begun 1
	run_mq 0 mq-set q group-slots=3
	run_mq 0 mq-clean
	eventually 10 has_begun 3
	assert_equal "$(held q)" "0 1 3 0"
	rm "$T/hold"
	eventually 10 held_is q "0 0 0 0"
	stop_mq
}

@test "group-slots: an end that nobody tells leaves a lock, until the queue is cleaned" {
	no_cluster "it acks as a Go program does"
	run_mq 0 mq-set q group-slots=2
	run_mq 0 mq-publish -g a q 1 2 3 4
	start_mq mq-consume --no-clean -j 1 --prefetch 3 q -- "$T/work"
	eventually 10 held_is q "0 2 2 0"
	c=$(connections)
	# The second one goes as if its consumer were a Go program.
	redis rpoplpush "rmq::connection::$c::queue::[q]::unacked" aside >/dev/null
	redis lpop "rmq::connection::$c::queue::[q]::unacked" >/dev/null
	redis rpoplpush aside "rmq::connection::$c::queue::[q]::unacked" >/dev/null
	touch "$T/go.1"
	eventually 10 has_begun 2
	eventually 10 held_is q "0 1 1 0"
	run_mq 0 mq-clean
	run_mq 0 mq-clean
	eventually 10 held_is q "0 0 2 0"
	rm "$T/hold"
	eventually 10 held_is q "0 0 0 0"
	stop_mq
	assert_equal "$(locks)" 0
}

@test "group-slots: of many groups each message runs, and never too many; alone and in batches" {
	run_mq 0 mq-set q group-slots=3
	rm "$T/hold"
	script quick <<-'S'
		read -r p
		exec 9>>"$T/log"
		echo "$p begins" >&9
		sleep 0.0$((RANDOM % 4))
		echo "$p ends" >&9
	S
	for g in a b c d; do
		seq -f "$g.%.0f" 25 | run_mq 0 mq-publish -l -g $g q
	done
	for i in 1 2 3; do
		"$BUILD/mq-consume" -j 8 q -- "$T/quick" 3>&- &
	done 2>/dev/null
	run_mq 0 mq-consume -j 4 --drain q -- "$T/quick"
	kill $(jobs -p) 2>/dev/null || true
	wait
	for g in a b c d; do
		assert_equal "$(grep -c "^$g.* ends" "$T/log")" 25
		(($(grep "^$g" "$T/log" | awk '{ n += $2 == "begins" ? 1 : -1; if (n > m) m = n }
			END { print m }') <= 3))
	done
	assert_equal "$(locks)" 0
	# A batch has up to three of a group, which end together.
	for g in a b; do
		seq -f "$g.%.0f" 20 | run_mq 0 mq-publish -l -g $g q
	done
	run_mq 0 mq-consume --drain --batch 100 -l q -- sh -c 'sort >"$T/batch.$$"'
	assert_equal "$(cat "$T"/batch.* | wc -l)" 40
	assert_equal "$(cut -d. -f1 "$T"/batch.* | sort | uniq -c | xargs)" "20 a 20 b"
	(($(for f in "$T"/batch.*; do grep -c a. "$f"; done | sort -n | tail -n 1) <= 3))
	assert_equal "$(locks)" 0
}

@test "group-slots: what it must be" {
	for value in 0 33 x -1 1.5; do
		run_mq 64 mq-set q group-slots=$value
		assert_regex "$stderr" "group-slots=.*: must be a number from 1 to 32"
	done
	no_cluster "rsmq needs a namespace there"
	run_mq 64 mq-set -L rsmq q group-slots=2
	assert_regex "$stderr" "group-slots"
}
