#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-set: settings that live with the queue, and what consumers and publishers make of them.
# layouts: rmq rsmq

load ../helpers/server
load "../helpers/layout-${LAYOUT:-rmq}"

# Where the settings of a queue are.
key() {
	local q=$1
	if [ "$MQ_LAYOUT" = rsmq ]; then
		echo "rsmq:$q:Xsettings"
	elif [ "$TOPOLOGY" = cluster ]; then
		echo "rmq::queue::{$q}::settings"
	else
		echo "rmq::queue::[$q]::settings"
	fi
}

# has QUEUE "READY DELAYED UNACKED REJECTED"
has() {
	[ "$("$BUILD/mq-stats" "$1" | awk 'NR == 2 {print $2, $3, $4, $5}')" = "$2" ]
}

settings() {
	redis hgetall "$(key q)" | paste -sd' ' -
}

@test "set: what is set is shown, in a form that mq-set takes" {
	run_mq 0 mq-set -q --create q max-length=9:10 attempts=3 backoff=1s..1h30m retry-on=err \
		timeout=5m rate-shared=600/m:5 slots=4 push=broken
	run_mq 0 mq-set q
	assert_output "attempts=3
backoff=1s..1h30m
timeout=5m
retry-on=err
rate-shared=600/m:5
slots=4
push=broken
max-length=9:10${MQ_LAYOUT:+
vt=30s
delay=0s
maxsize=65536}"
	mapfile -t all <<<"$output"
	run_mq 0 mq-set -q --create other "${all[@]}"
	run_mq 0 mq-set other
	assert_equal "$output" "$(printf '%s\n' "${all[@]}")"
	run_mq 0 mq-set --json q
	assert_equal "$(jq -r '.backoff + .slots' <<<"$output")" 1s..1h30m4
	prints 4 mq-set q slots
	prints 600/m:5 mq-set q rate-shared
	prints 600/m:5 mq-set q rate
	[ -z "${MQ_LAYOUT-}" ] || prints 30s mq-set q vt
	run_mq 1 mq-set q keep
	assert_equal "$output$stderr" ""
	run_mq 0 mq-set q attempts= push=
	run_mq 0 mq-set q
	refute_line --regexp '^(attempts|push)='
	assert_line slots=4
	# It goes with its queue.
	run_mq 0 mq-purge --force --delete-queue -q q
	assert_equal "$(settings)" ""
}

@test "set: what others have written is shown fit for a terminal, and is no rule" {
	run_mq 0 mq-publish -q q x
	redis hset "$(key q)" attempts $'\e[5m' slots 4 push $'a\nb' odd 1
	run_mq 0 mq-set q
	refute_output --partial $'\e'
	run_mq 0 mq-consume --drain q -- sh -c 'cat; echo ":$MQ_ATTEMPTS"'
	assert_output "x:15"
	assert_equal "$(grep -c 'not valid here, ignored; see mq-set(1)$' <<<"$stderr")" 2
	[[ $stderr != *$'\e'* ]]
	# A number too high for mq-set is the highest.
	run_mq 64 mq-set q attempts=1000001
	redis hset "$(key q)" attempts 99999999999999999999 slots 18446744073709551617 >/dev/null
	run_mq 0 mq-publish -q q x
	run_mq 0 mq-consume --drain q -- sh -c 'echo "$MQ_ATTEMPTS"'
	assert_output 1000000
	refute_regex "$stderr" 'attempts|slots'
}

@test "set: attempts, backoff, retry-on and push, unless the consumer says otherwise" {
	script counts <<<'echo "$MQ_ATTEMPT/$MQ_ATTEMPTS" >>"$T/runs"; exit 1'
	run_mq 0 mq-set -q --create q attempts=2 backoff=0s..0s retry-on=err push=later
	run_mq 0 mq-publish -q q bad
	run_mq 1 mq-consume -q --drain q -- "$T/counts"
	has q "0 0 0 1"
	run_mq 0 mq-publish -q q bad
	run_mq 1 mq-consume -q --attempts 1 --drain q -- "$T/counts"
	assert_equal "$(paste -sd' ' - <"$T/runs")" "1/2 2/2 1/1"
	run_mq 0 mq-publish -q q on
	run_mq 0 mq-consume -q --drain q -- sh -c 'echo push >&3'
	has later "1 0 0 0"
	run_mq 0 mq-publish -q q on
	run_mq 0 mq-consume -q --drain --push elsewhere --new q -- sh -c 'echo push >&3'
	has elsewhere "1 0 0 0"
}

@test "set: a timeout and slots, and each queue its own" {
	mkdir "$T/runs"
	script wait <<'.'
touch "$T/runs/$MQ_QUEUE-$MQ_ID"
until [ -e "$T/go" ]; do perl -e 'select undef, undef, undef, 0.02'; done
.
	run_mq 0 mq-set -q --create q slots=1
	run_mq 0 mq-set -q --create r slots=3
	run_mq 0 mq-publish -q q 1 2 3
	run_mq 0 mq-publish -q r 1 2 3
	start_mq mq-consume q r -- "$T/wait"
	eventually 10 at_once 3
	assert_equal "$(ls "$T/runs" | grep -c q-)" 1
	touch "$T/go"
	eventually 10 has q "0 0 0 0"
	eventually 10 has r "0 0 0 0"
	stop_mq
	run_mq 0 mq-set -q q slots= timeout=100ms
	run_mq 0 mq-set -q r slots=
	run_mq 0 mq-publish -q q slow
	run_mq 0 mq-publish -q r slow
	run_mq 1 mq-consume -q -j2 --drain q r -- perl -e 'select undef, undef, undef, 0.6'
	has q "0 0 0 1"
	has r "0 0 0 0"
}

@test "set: a change reaches a consumer that is at work" {
	run_mq 0 mq-publish -q q 1
	start_mq mq-consume q -- sh -c 'cat >>"$T/got"; echo " $MQ_ATTEMPTS" >>"$T/got"'
	eventually 10 grep -qx '1 15' "$T/got"
	run_mq 0 mq-set q attempts=3
	# By the news of the change, with no other claim in between: nothing is polled.
	eventually 10 settings_seen 3
	run_mq 0 mq-set q attempts=
	eventually 10 settings_seen 15
	stop_mq
}

# settings_seen N: a message that is published now finds that many.
settings_seen() {
	"$BUILD/mq-publish" -q q m
	eventually 10 grep -q '^m' "$T/got"
	grep -qx "m $1" "$T/got" && return 0
	sed -i '/^m/d' "$T/got"
	return 1
}

# at_once N: so many have started, and wait for $T/go.
at_once() {
	[ "$(ls "$T/runs" | wc -l)" -eq "$1" ]
}

@test "set: slots grow and shrink while a consumer runs" {
	mkdir "$T/runs"
	script wait <<'.'
touch "$T/runs/$MQ_ID"
until [ -e "$T/go" ]; do perl -e 'select undef, undef, undef, 0.02'; done
rm "$T/runs/$MQ_ID"
.
	run_mq 0 mq-publish -q q 1 2 3 4 5 6 7 8
	start_mq mq-consume --prefetch 0 q -- "$T/wait"
	eventually 10 at_once 1
	run_mq 0 mq-set q slots=4
	eventually 10 at_once 4
	# The cleaner would count the crash of so many.
	[ "$MQ_LAYOUT" = rsmq ] ||
		eventually 10 eval '[ "$(redis hget "$(redis keys "rmq::connection::*::info" | grep -v ::queue::)" slots)" = 4 ]'
	run_mq 0 mq-set q slots=6
	eventually 10 at_once 6
	touch "$T/go"
	eventually 10 at_once 0
	stop_mq
	has q "0 0 0 0"
}

@test "set: a rate is for all consumers of the queue together" {
	run_mq 0 mq-set -q --create q rate=1/h:3
	run_mq 0 mq-publish -q q 1 2 3 4 5 6
	start_mq mq-consume q -- true
	eventually 10 has q "3 0 0 0"
	run_mq 0 mq-set q rate=
	eventually 10 has q "0 0 0 0"
	stop_mq
}

@test "set: max-length holds publishers of any kind" {
	run_mq 0 mq-set -q --create q max-length=3
	run_mq 75 mq-publish q 1 2 3 4 5
	assert_equal "$stderr" "mq-publish: q: the queue is full
mq-publish: 3 messages accepted"
	run_mq 75 mq-publish -q q 4
	run_mq 75 mq-publish -q -p 5 q 4
	# An option of its own says otherwise.
	run_mq 0 mq-publish -q --max-length 4 q 4
	has q "4 0 0 0"
	# What waits for a time is not there yet.
	run_mq 0 mq-publish -q -d 1h q later
	run_mq 0 mq-set q max-length=3:5
	run_mq 0 mq-publish -q -p 5 q high
	run_mq 75 mq-publish -q -p 5 q high
	run_mq 0 mq-set q max-length=
	run_mq 0 mq-publish -q q 6
}

@test "set: a publisher that has begun before hears of max-length" {
	mkfifo "$T/in"
	exec 8<>"$T/in"
	"$BUILD/mq-publish" -l q <"$T/in" 2>"$T/err" 3>&- 8>&- &
	pid=$!
	echo 1 >&8
	eventually 10 has q "1 0 0 0"
	run_mq 0 mq-set q max-length=2
	# The answer to this one says it.
	echo 2 >&8
	eventually 10 has q "2 0 0 0"
	echo 3 >&8
	exec 8>&-
	ends_within 60
	assert_equal "$status" 75
	has q "2 0 0 0"
}

@test "set: notify and keep" {
	[ "$MQ_LAYOUT" != rsmq ] || skip "there are no results"
	run_mq 0 mq-set -q --create q notify=ends keep=1h
	id=$("$BUILD/mq-publish" -i q m)
	run_mq 0 mq-consume -q --drain q -- true
	run_mq 0 mq-consume -n1 ends
	assert_equal "$(jq -r '.id + .state' <<<"$output")" "${id}done"
	run_mq 0 mq-stats --id "$id" --json
	assert_equal "$(jq -r .state <<<"$output")" "done"
	# And of one whose consumers die.
	run_mq 0 mq-set q attempts=1
	id=$("$BUILD/mq-publish" -i q m)
	script die <<<'kill -9 $PPID; exec sleep 60'
	start_mq mq-consume q -- "$T/die"
	wait "$pid" || true
	redis del $(redis keys 'rmq::connection::*::heartbeat') >/dev/null
	run_mq 0 mq-clean
	has q "0 0 0 1"
	run_mq 0 mq-consume -n1 ends
	assert_equal "$(jq -r '.id + .state' <<<"$output")" "${id}rejected"
	has ends "0 0 0 0"
	# Attempts count for mq-lease, too.
	run_mq 0 mq-publish -q q m
	run_mq 0 mq-lease --for 1h -q q
	redis del $(redis keys 'rmq::connection::*::heartbeat') >/dev/null
	run_mq 0 mq-clean
	has q "0 0 0 2"
}

@test "set: what is pushed goes where the setting says at that moment" {
	run_mq 0 mq-set -q --create q push=first
	mkdir "$T/runs"
	script push <<'.'
touch "$T/runs/$MQ_ID"
until [ -e "$T/go" ]; do perl -e 'select undef, undef, undef, 0.02'; done
echo push >&3
.
	run_mq 0 mq-publish -q q a b
	start_mq mq-consume q -- "$T/push"
	eventually 10 at_once 1
	run_mq 0 mq-set -q q push=second slots=2
	# So the consumer knows the change.
	eventually 10 at_once 2
	touch "$T/go"
	eventually 10 has second "2 0 0 0"
	has first "0 0 0 0"
	stop_mq
}
