#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-publish --max-length and --max-delayed: a queue that is full takes no more.

# shellcheck disable=SC1010

load ../helpers/server

# full N ARGS...: the queue is, and N were accepted before.
full() {
	local n=$1 s=s
	shift
	[ "$n" != 1 ] || s=
	run_mq 75 mq-publish "$@"
	assert_equal "$stderr" "mq-publish: q: the queue is full
mq-publish: $n message$s accepted"
}

@test "caps: the first N are accepted, in order, over batches" {
	seq 1 5000 >"$T/in"
	full 3500 --max-length 3500 -i -l q <"$T/in"
	assert_equal "$(wc -l <<<"$output")" 3500
	assert_equal "$(held q)" "3500 0 0 0"
	assert_equal "$(counts published)" 3500
	run "$BUILD/mq-consume" --drain -l q
	assert_output "$(seq 1 3500)"
	full 0 --max-length 0 q x
	run_mq 0 mq-publish --max-length 1 q x
	full 0 --max-length 1 q y
	run_mq 0 mq-publish q z
	full 0 --max-length 2 q y
	assert_equal "$(counts published)" 3502
	# The input is not read to its end.
	full 8 --max-length 10 -l q < <(yes)
}

@test "caps: 8 publishers at once never overshoot" {
	local i sum
	for i in 1 2 3 4 5 6 7 8; do
		{
			status=0
			seq 1 3000 | "$BUILD/mq-publish" --max-length 10000 \
				-l q 2>"$T/err.$i" || status=$?
			echo "$status" >"$T/status.$i"
		} 3>&- &
	done
	while [ -n "$(jobs -r)" ]; do
		i=$(redis llen 'rmq::queue::[q]::ready')
		((i <= 10000))
	done
	assert_equal "$(held q)" "10000 0 0 0"
	sum=$(sed -n 's/.*: \([0-9]*\) messages\{0,1\} accepted$/\1/p' \
		"$T"/err.* | awk '{n += $1} END {print n}')
	i=$(grep -lx 0 "$T"/status.* | wc -l)
	assert_equal $((sum + 3000 * i)) 10000
	run grep -Lxe 0 -e 75 "$T"/status.*
	assert_output ""
	assert_equal "$(counts published)" 10000
}

@test "caps: the rules of simqueue: ready 3 and 4, later 1 and 2" {
	caps=(--max-length "3:4" --max-delayed "1:2")
	run_mq 0 mq-publish --tick 1 q
	run_mq 1 mq-publish "${caps[@]}" --until-tick 0 q stale
	run_mq 0 mq-publish "${caps[@]}" --from-tick 0 q 1 2 3
	full 0 "${caps[@]}" --from-tick 1 q low
	full 0 "${caps[@]}" q low
	full 0 "${caps[@]}" -p -5 q low
	run_mq 0 mq-publish "${caps[@]}" -p 1 --from-tick 1 q high
	full 0 "${caps[@]}" -p 1 q high
	run_mq 0 mq-publish "${caps[@]}" --from-tick 2 q low
	full 0 "${caps[@]}" --from-tick 2 q low
	full 0 "${caps[@]}" -d 1h q low
	run_mq 0 mq-publish "${caps[@]}" -p 100 -d 1h q high
	full 0 "${caps[@]}" -p 100 --from-tick 2 q high
	full 0 "${caps[@]}" -p 100 q high
	assert_equal "$(redis zcard 'rmq::queue::[q]::priority')" 4
	assert_equal "$(redis zcard 'rmq::queue::[q]::delayed')" 2
	assert_equal "$(counts published)" 6
}

@test "caps: a limit of one kind is none of the other; those in line count as ready" {
	run_mq 0 mq-publish --max-length 1 -d 1h q 1 2 3
	run_mq 0 mq-publish --max-delayed 1 q 1 2 3
	full 0 --max-delayed 3 -d 1h q x
	full 0 --max-length 3 q x
	assert_equal "$(held q)" "3 3 0 0"
	redis flushall >/dev/null
	full 3 --max-length 3 -g a q 1 2 3 4
	full 0 --max-length 3 q x
	full 0 --max-length 3 -g a -d 1h q x
	run_mq 0 mq-publish --max-length 3 --max-delayed 1 -d 1h q y
	assert_equal "$(held q)" "1 3 0 0"
}

@test "caps: at the first that does not fit it ends, and all numbers are told" {
	full 2 --max-length 2:9 --jsonl q <<-'E'
		{"payload":"1"}
		{"payload":"2"}
		{"payload":"3"}
		{"payload":"4","headers":{"Mq-Priority":"1"}}
	E
	assert_equal "$(held q)" "2 0 0 0"
	full 2 --raw --max-length 4 q a b c
	prints $'1\n2\na\nb' mq-consume --drain -l q
	run_mq 75 mq-publish --max-length 2 --jsonl q <<-'E'
		{"payload":"1","headers":{"Mq-Key":"a"}}
		{"payload":"2","headers":{"Mq-Key":"a"}}
		{"payload":"3"}
		{"payload":"4"}
	E
	assert_equal "$stderr" "mq-publish: q: the queue is full
mq-publish: 2 messages accepted, 1 duplicate"
	# A key is not taken by what does not fit.
	full 0 --max-length 2 -k b q x
	run_mq 0 mq-publish -k b q x
}

@test "caps: what comes back is never refused" {
	script later /bin/bash <<-'S'
		while [ ! -e "$T/go" ]; do read -rt 0.02 x <"$T/never"; done
		echo resend 0 >&3
	S
	mkfifo "$T/never"
	exec 6<>"$T/never"
	run_mq 0 mq-publish --max-length 1 q one
	start_mq mq-consume -n 1 q -- "$T/later"
	eventually 10 held_is q "0 0 1 0"
	run_mq 0 mq-publish --max-length 1 q two
	touch "$T/go"
	eventually 10 gone "$pid"
	eventually 5 eval '"$BUILD/mq-clean" -q; held_is q "2 0 0 0"'
	exec 6>&-
	full 0 --max-length 2 q three
}

@test "caps: what is no limit is refused" {
	local arg
	for arg in '' -1 x 1.5 5: :5 5:4 5:x 5:6:7 99999999999999999999; do
		run_mq 64 mq-publish "--max-length=$arg" q x
		run_mq 64 mq-publish "--max-delayed=$arg" q x
		assert_regex "$stderr" '^mq-publish: --max-delayed: '
	done
	assert_equal "$(redis dbsize)" 0
}
