#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# topologies: cluster
# mq-publish -g: one message of a group at a time, in the order of publishing.

load ../helpers/server

log_has() {
	grep -qx "$1" "$T/log" 2>/dev/null
}

@test "groups: one at a time, whoever has it; others overtake" {
	# It tells when each message begins and ends: one line a step.
	script work <<-'S'
		read -r p
		echo "$p begins" >>"$T/log"
		while [ -e "$T/hold.$p" ]; do sleep 0.02; done
		echo "$p ends" >>"$T/log"
	S
	touch "$T/hold.a:1"
	run_mq 0 mq-publish -g a q a:1 a:2 a:3
	run_mq 0 mq-publish -g b q b:1 b:2
	run_mq 0 mq-publish q none:1
	"$BUILD/mq-consume" -j 2 -n 3 q -- "$T/work" 3>&- &
	start_mq mq-consume -j 2 q -- "$T/work"
	eventually 10 log_has "b:2 ends"
	eventually 10 log_has "none:1 ends"
	assert_equal "$(grep -c '^a:' "$T/log")" 1
	assert_equal "$(held q)" "0 2 1 0"
	rm "$T/hold.a:1"
	eventually 10 log_has "a:3 ends"
	eventually 10 held_is q "0 0 0 0"
	assert_equal "$(grep ^a: "$T/log" | xargs)" \
		"a:1 begins a:1 ends a:2 begins a:2 ends a:3 begins a:3 ends"
	assert_equal "$(grep ^b: "$T/log" | xargs)" "b:1 begins b:1 ends b:2 begins b:2 ends"
	assert_equal "$(locks)" 0
	stop_mq
}

@test "groups: those behind wait for one that waits, and for their own time" {
	run_mq 0 mq-publish -g a -d 1h q a:1
	run_mq 0 mq-publish -g b q b:1
	run_mq 0 mq-publish -g b -d 1h q b:2
	run_mq 0 mq-publish -l q < <(echo other)
	run_mq 0 mq-publish -g a q a:2
	run_mq 0 mq-publish -g b q b:3
	assert_equal "$(drained)" "b:1 other"
	assert_equal "$(held q)" "0 4 0 0"
}

@test "groups: a retry keeps its place in front, a rejected message makes room" {
	script work2 <<-'S'
		read -r p
		echo "$p" >>"$T/log"
		[ "$p" != a:1 ] || [ "${MQ_ATTEMPT:-1}" != 1 ] || exit 75
		[ "$p" != a:2 ]
	S
	run_mq 0 mq-publish -g a q a:1 a:2 a:3
	run_mq 1 mq-consume --backoff 50ms..50ms -n 4 q -- "$T/work2"
	assert_equal "$(xargs <"$T/log")" "a:1 a:1 a:2 a:3"
	assert_equal "$(held q)" "0 0 0 1"
	assert_equal "$(locks)" 0
}

@test "groups: of a pipe that goes on, each is there at once" {
	mkfifo "$T/in"
	"$BUILD/mq-publish" --jsonl q <"$T/in" 3>&- &
	exec 5>"$T/in"
	echo '{"payload":"plain"}' >&5
	eventually 5 held_is q "1 0 0 0"
	echo '{"payload":"a:1","headers":{"Mq-Group":"a"}}' >&5
	eventually 5 held_is q "2 0 0 0"
	echo '{"payload":"a:2","headers":{"Mq-Group":"a"}}' >&5
	eventually 5 held_is q "2 1 0 0"
	echo '{"payload":"plain"}' >&5
	eventually 5 held_is q "3 1 0 0"
	exec 5>&-
	wait
	assert_equal "$(drained)" "plain a:1 plain a:2"
}

@test "groups: any text; a group is one queue's own" {
	local group
	for group in ' ' $'a\nb' '*' 'ä'; do
		run_mq 0 mq-publish -g "$group" q 1 2
	done
	assert_equal "$(held q)" "4 4 0 0"
	run_mq 0 mq-publish -g '*' other 1
	assert_equal "$(held other)" "1 0 0 0"
	assert_equal "$(drained)" "1 1 1 1 2 2 2 2"
}
