#!/usr/bin/env bats
# The rules of simqueue (mev-share-node), with a queue's clock for its blocks:
# what its own tests ask for, said anew for our tools.  Where a worker's error
# lost a message there, it ends in rejected here.

load ../helpers/server

setup() {
	common_setup
	touch "$T/runs"
	# Notes each run, and at which block.
	script work <<-'END'
		read -r x
		echo "$x" >>"$T/runs"
		exit "${CODE:-0}"
	END
	# The same, for a message that is done when it has run $CALLS times.
	script again <<-'END'
		read -r x
		echo "$x" >>"$T/runs"
		if [ "$(grep -c . "$T/runs")" -lt "$CALLS" ]; then
			echo "resend tick" >&3
		else
			echo done >&3
		fi
	END
}

publish() {
	run_mq 0 mq-publish "$@"
}

block() {
	run_mq 0 mq-publish --tick "$1" q
}

work() {
	run_mq 0/1/75 mq-consume --drain --backoff 0s..0s "$@"
}

runs() {
	paste -sd ' ' "$T/runs"
}

@test "simqueue: one item is processed once" {
	block 4
	publish --from-tick 5 --until-tick 5 q item
	work q -- "$T/work"
	assert_equal "$(runs)" ""
	block 5
	work q -- "$T/work"
	work q -- "$T/work"
	assert_equal "$(runs)" item
	assert_equal "$(held q)" "0 0 0 0"
}

@test "simqueue: ten equal payloads and ten workers: each once" {
	local i pids=()

	block 5
	for i in {1..10}; do
		publish --from-tick 5 q same
	done
	for i in {1..10}; do
		timeout 180 "$BUILD/mq-consume" --drain q -- "$T/work" 3>&- &
		pids+=($!)
	done
	wait "${pids[@]}"
	assert_equal "$(sort "$T/runs" | uniq -c | xargs)" "10 same"
	assert_equal "$(held q)" "0 0 0 0"
}

@test "simqueue: a stale item never runs, a newer one does" {
	block 4
	publish --from-tick 4 --until-tick 4 q stale
	publish --from-tick 6 --until-tick 6 q newer
	block 6
	work q -- "$T/work"
	assert_equal "$(runs)" newer
	assert_equal "$(element q rejected | header Mq-Error)" \
		"stale: tick 4 is over"
}

@test "simqueue: an item that is stale when it comes is not accepted" {
	block 4
	run_mq 1 mq-publish --until-tick 3 q stale
	assert_equal "$(held q)" "0 0 0 0"
	publish --until-tick 4 q last
}

@test "simqueue: an item whose first block is over runs at the next" {
	block 4
	publish --from-tick 3 --until-tick 5 q rolled
	block 5
	work q -- "$T/work"
	assert_equal "$(runs)" rolled
}

@test "simqueue: limits for low and high, ready and future, 3 4 1 2" {
	local caps=(--max-length 3:4 --max-delayed 1:2)

	block 1
	for i in 1 2 3; do
		publish "${caps[@]}" q "$i"
	done
	run_mq 75 mq-publish "${caps[@]}" q 4
	publish "${caps[@]}" -p 1 q high
	run_mq 75 mq-publish "${caps[@]}" -p 1 q high
	publish "${caps[@]}" --from-tick 2 q future
	run_mq 75 mq-publish "${caps[@]}" --from-tick 2 q future
	publish "${caps[@]}" --from-tick 2 -p 1 q future-high
	run_mq 75 mq-publish "${caps[@]}" --from-tick 2 -p 1 q future-high
	assert_equal "$(redis llen 'rmq::queue::[q]::ready')" 3
	assert_equal "$(redis zcard 'rmq::queue::[q]::priority')" 1
	assert_equal "$(redis zcard 'rmq::queue::[q]::delayed')" 2
	# What is returned is never refused.
	CODE=75 work --attempts 2 -n 1 q -- "$T/work"
	assert_equal "$(redis eval 'return redis.call("LLEN", KEYS[1]) +
		redis.call("ZCARD", KEYS[2])' 2 'rmq::queue::[q]::ready' \
		'rmq::queue::[q]::priority')" 4
}

@test "simqueue: block, then priority, then fewer retries, then age" {
	publish --from-tick 2 q b2
	publish --from-tick 1 -p -1 q low
	publish --from-tick 1 -p 1 q high
	publish --from-tick 1 -p 1 q high-later
	publish q untimed
	block 2
	# The first one is tried again, behind those of its priority.
	CODE=75 work -n 1 q -- "$T/work"
	work q -- "$T/work"
	assert_equal "$(runs)" "high high-later high low b2 untimed"
}

@test "simqueue: a healthy worker finishes what a failing one gives back" {
	local i

	script fails <<-'END'
		echo hit >>"$T/hits"
		exit 75
	END
	start_mq mq-consume --attempts 1000 --backoff 20ms..20ms q -- "$T/fails"
	for i in {1..10}; do
		publish --from-tick 0 q "$i"
	done
	eventually 10 test -s "$T/hits"
	timeout 180 "$BUILD/mq-consume" --attempts 1000 --idle 30s q -- "$T/work" 3>&- &
	eventually 20 drained
	stop_mq
	assert_equal "$(sort -n "$T/runs" | xargs)" "1 2 3 4 5 6 7 8 9 10"
}

drained() {
	[ "$(sort -u "$T/runs" | wc -l)" = 10 ]
}

@test "simqueue: an error that stays ends after exactly so many runs" {
	block 1
	publish --from-tick 1 q item
	CODE=75 work --attempts 3 q -- "$T/work"
	assert_equal "$(runs)" "item item item"
	assert_equal "$(held q)" "0 0 0 1"
}

@test "simqueue: next block: two failures, then success" {
	local b

	block 7
	publish --from-tick 7 --until-tick 30 q item
	export CALLS=3
	for b in 7 8 9 10; do
		block "$b"
		work q -- "$T/again"
		work q -- "$T/again"
		echo "$b" >>"$T/blocks"
		paste -sd ' ' <(grep -c . "$T/runs") >>"$T/count"
	done
	# Once a block, and not after the success.
	assert_equal "$(xargs <"$T/count")" "1 2 3 3"
	assert_equal "$(held q)" "0 0 0 0"
}

@test "simqueue: next block: given up after exactly three" {
	local b

	publish --from-tick 1 --until-tick 30 q item
	export CALLS=100
	for b in 1 2 3 4 5; do
		block "$b"
		work --attempts 3 q -- "$T/again"
	done
	assert_equal "$(runs)" "item item item"
	assert_equal "$(element q rejected | header Mq-Attempt)" 3
}

@test "simqueue: every block until the last one" {
	local b

	publish --from-tick 3 --until-tick 5 q item
	export CALLS=100
	for b in 2 3 4 5 6 7; do
		block "$b"
		work q -- "$T/again"
	done
	assert_equal "$(runs)" "item item item"
	assert_equal "$(held q)" "0 0 0 1"
}

@test "simqueue: what cannot be helped runs exactly once" {
	local b

	publish --from-tick 22 --until-tick 25 q item
	for b in 22 23 24 25; do
		block "$b"
		CODE=1 work q -- "$T/work"
	done
	assert_equal "$(runs)" item
	assert_equal "$(held q)" "0 0 0 1"
}
