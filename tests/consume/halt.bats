#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# layouts: rmq rsmq
# topologies: cluster
# mq-consume --halt: after N messages rejected in a row it stops.

load ../helpers/server
load "../helpers/layout-${LAYOUT:-rmq}"

setup() {
	common_setup
	script work <<'.'
read -r word
echo "$word" >>"$T/ran"
case $word in
bad*) exit 1 ;;
again*) echo "resend 100" >&3 ;;
slow*)
	until [ -e "$T/go" ]; do perl -e 'select undef, undef, undef, 0.05'; done ;;
esac
.
}

ran() {
	tr '\n' ' ' <"$T/ran"
}

@test "halt: rejected ones in a row end it with 1; the rest stays, and none is lost" {
	"$BUILD/mq-publish" -q jobs bad1 ok1 bad2 again1 bad3 ok2 ok3
	run_mq 1 mq-consume --halt 2 --prefetch 5 jobs -- "$T/work"
	[[ $stderr == *"mq-consume: --halt 2: 2 messages rejected in a row; stopping after the running ones"* ]]
	assert_equal "$(ran)" "bad1 ok1 bad2 again1 bad3 "
	run_mq 0 mq-consume -n 2 jobs -- "$T/work"
	assert_equal "$(ran)" "bad1 ok1 bad2 again1 bad3 ok2 ok3 "
}

@test "halt: what runs is left to end, beyond --grace" {
	"$BUILD/mq-publish" -q jobs slow1 bad1 ok1
	"$BUILD/mq-consume" -j2 --halt 1 --grace 0s jobs -- "$T/work" 2>"$T/err" &
	consumer=$!
	eventually 5 grep -q halt "$T/err"
	perl -e 'select undef, undef, undef, 0.5'
	kill -0 "$consumer"
	touch "$T/go"
	status=0
	wait "$consumer" || status=$?
	assert_equal "$status" 1
	assert_equal "$(sort "$T/ran" | tr '\n' ' ')" "bad1 slow1 "
	run_mq 0 mq-consume -n 1 jobs -- "$T/work"
	grep -qx ok1 "$T/ran"
}

@test "halt: batch and stream; refused while printing" {
	script each <<'.'
n=0
while read -r word; do
	n=$((n + 1))
	echo "$word" >>"$T/ran"
	case $word in
	bad*) echo "err $1${1:+$n }no" >&3 ;;
	*) echo "done${1:+ $1$n}" >&3 ;;
	esac
done
.
	"$BUILD/mq-publish" -q jobs bad1 bad2 ok1 ok2
	run_mq 1 mq-consume --batch 2 --halt 2 jobs -- "$T/each" "#"
	assert_equal "$(ran)" "bad1 bad2 "
	"$BUILD/mq-publish" -q more bad3 ok3
	run_mq 1 mq-consume --stream --window 1 --halt 1 more -- "$T/each"
	assert_equal "$(ran)" "bad1 bad2 bad3 "
	run_mq 64 mq-consume --halt 1 jobs
	assert_equal "$stderr" "mq-consume: --halt needs a COMMAND; add -- COMMAND"
	run_mq 64 mq-consume --halt 0 jobs -- "$T/work"
}
