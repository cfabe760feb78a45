#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# "Moving a queue" of mq-sizing(7): publisher and consumers at work, the relay killed, and no
# message is lost or left behind.
# layouts: rmq rsmq

load ../helpers/server
load ../helpers/consume
load "../helpers/layout-${LAYOUT:-rmq}"

setup_file() {
	server_start
	far_start
}

teardown_file() {
	far_stop
	server_stop
}

setup() {
	common_setup
	no_cluster "the other server is one"
	far flushall >/dev/null
	export OLD=$MQ_URL NEW=$far_url PATH=$BUILD:$PATH
}

# commands_of [WORD]: the commands of the page that have it, a NUL behind each
commands_of() {
	perl -0777 -ne 'my ($part) = /^\.Ss Moving a queue\n(.*?)^\.S[hs] /ms;
		while ($part =~ /^\.Bd .*\n((?:.*\n)*?)\.Ed/mg) {
			for (split /^\$ /m, $1) { print "$_\0" if /\S/ && /\Q'"${1-}"'/ }
		}' "$root/man/mq-sizing.7"
}

# consumer NAME URL OPTIONS...: notes each payload in $T/NAME when it is done
consumer() {
	# shellcheck disable=SC2016 # a script
	"$BUILD/mq-consume" -q -u "$2" "${@:3}" q -- \
		sh -c 'read -r p; echo "$p" >>"$T/$0"' "$1" 3>&- &
	consumers+=($!)
}

# relay OPTIONS...: the command of the page, in a session of its own.
relay() {
	local command
	IFS= read -rd '' command < <(commands_of --batch)
	setsid sh -c "exec ${command/mq-consume/mq-consume --tag relay -q $*}" \
		>>"$T/relay" 2>&1 3>&- &
	relay=$!
	eventually 10 has_group "$relay"
}

has_group() {
	kill -0 -- "-$1" 2>/dev/null
}

relay_dies() {
	local name

	kill -KILL -- "-$relay"
	wait "$relay" 2>/dev/null || true
	for name in $(connections | grep '^relay'); do
		expire "$name"
	done
}

# publisher FROM TO: one by one, at the server that $T/url names at the time
publisher() {
	local n
	for ((n = $1; n <= $2; n++)); do
		"$BUILD/mq-publish" -q -u "$(cat "$T/url")" q "message $n" || echo "failed $n"
		echo "$n" >"$T/published"
	done >>"$T/failed" 2>&1 3>&-
}

published() {
	local n
	read -r n <"$T/published" && ((n >= $1))
}

# What moves besides what is ready.
the_other_commands() {
	local command

	cd "$T" || return
	while IFS= read -rd '' command; do
		echo "$command"
		case $command in
		*--batch* | *--delete-queue*) ;;
		*) sh -c "$command" || [ $? = 1 ] ;;
		esac
	done < <(commands_of)
}

# has URL STATE: q there, as "[ready,delayed,unacked,rejected]"
has() {
	[ "$("$BUILD/mq-stats" -u "$1" --json q |
		jq -c '.queues[0] | [.ready, .delayed, .unacked, .rejected]')" = "$2" ]
}

has_nothing() {
	has "$1" "[0,0,0,0]"
}

# With rsmq, the new server refuses what a killed relay has published, and the next one takes again,
# while that is there: then it is rejected at the old server, and returned as the page says.
both_have_nothing() {
	"$BUILD/mq-return" -q -u "$OLD" q || [ $? = 1 ]
	has_nothing "$OLD" && has_nothing "$NEW"
}

@test "move: publisher and consumers at work, the relay killed: all is done, nothing is left" {
	local n consumers=() publisher rate relay

	touch "$T/old" "$T/new"
	echo "$OLD" >"$T/url"
	echo 0 >"$T/published"
	seq -f 'message %g' 1 1400 | run_mq 0 mq-publish -q -u "$OLD" -l q
	# However slow the machine is, there is something left when a relay dies.
	consumer old "$OLD" --rate 20/s
	consumer new "$NEW"
	publisher 1401 1500 &
	publisher=$!
	relay --rate 100/s
	eventually 30 published 1420
	# The publisher is not there yet: these have come by the relay.
	eventually 30 lines_reach "$T/new" 20
	echo "$NEW" >"$T/url"
	for rate in "--rate 100/s" ""; do
		n=$(lines_of "$T/new")
		relay_dies
		run ! has_nothing "$OLD"
		relay "$rate"
		eventually 60 lines_reach "$T/new" $((n + 20))
	done
	wait "$publisher"
	assert_equal "$(cat "$T/failed")" ""
	eventually 60 both_have_nothing
	kill "${consumers[@]}" "$relay"
	wait "${consumers[@]}" "$relay" || true
	diff <(sort -u "$T/old" "$T/new") <(seq -f 'message %g' 1 1500 | sort)
	n=$(($(lines_of "$T/old") + $(lines_of "$T/new") - 1500))
	echo "$(lines_of "$T/old") old, $(lines_of "$T/new") new, $n twice"
	# What its four slots had in hand each time, and had done in the milliseconds before.
	((n <= 2 * 25))
}

@test "move: settings, ids, headers, delayed and rejected ones come along" {
	local id relay due

	run_mq 0 mq-set -q -u "$OLD" --new q timeout=7s attempts=5
	id=$("$BUILD/mq-publish" -q -i -u "$OLD" -H 'X-Trace: 7' q first)
	run_mq 1 mq-consume -q -u "$OLD" -n1 q -- false
	"$BUILD/mq-publish" -q -u "$OLD" -d 1h q later
	due=$("$BUILD/mq-stats" -u "$OLD" --list delayed --jsonl q | jq .due_ms)
	relay
	the_other_commands
	eventually 30 has_nothing "$OLD"
	kill "$relay"
	wait "$relay" || true
	run_mq 0 mq-purge -u "$OLD" -f --delete-queue q
	run_mq 0 mq-set -u "$NEW" q
	assert_line attempts=5
	assert_line timeout=7s
	# shellcheck disable=SC2016 # a script
	run_mq 0 mq-consume -q -u "$NEW" --drain q -- sh -c 'echo "$MQ_ID $MQ_HEADER_X_TRACE $(cat)"'
	assert_output "$id 7 first"
	run bash -c "'$BUILD/mq-stats' -u '$NEW' --list delayed --jsonl q | jq -c '[.payload, .due_ms]'"
	assert_output "[\"later\",$due]"
}

@test "move: a message that the new server refuses is kept at the old one" {
	local relay

	[ "${LAYOUT:-rmq}" = rmq ] || skip "rsmq has no keys"
	"$BUILD/mq-publish" -q -u "$NEW" -k k q first
	"$BUILD/mq-publish" -q -u "$NEW" -k l q next
	"$BUILD/mq-publish" -q -u "$OLD" -k k q second
	"$BUILD/mq-publish" -q -u "$OLD" q third
	"$BUILD/mq-publish" -q -u "$OLD" -d 1h -k l q later
	the_other_commands
	relay
	eventually 60 has "$OLD" '[0,1,0,1]'
	kill "$relay"
	wait "$relay" || true
	run_mq 0 mq-stats -u "$OLD" --reasons q
	assert_output --partial "another message has its key"
	run_mq 0 mq-consume -u "$NEW" --drain -l q
	assert_output $'first\nnext\nthird'
}
