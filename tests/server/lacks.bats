#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# layouts: rmq rsmq
# Servers that lack a command, or room for an answer, as rented and hardened ones do, and users
# that lack a channel.

load ../helpers/server

: "${LAYOUT:=rmq}"

setup() {
	load "../helpers/layout-$LAYOUT"
	export MQ_LAYOUT=$LAYOUT
	common_setup
}

# lacks COMMAND...: a server without them.
lacks() {
	local c args=()
	for c; do
		args+=(--rename-command "$c" '')
	done
	server_start "${args[@]}"
}

consume() {
	run_mq "$1" mq-consume "${@:2}" --drain -l q
}

@test "lacks: EVAL, or a command of a script: 78, and the line has no Lua" {
	lacks EVAL
	consume 78 --new
	assert_equal "$stderr" "mq-consume: q: $MQ_URL: the server has no EVAL"
	server_stop
	lacks TIME
	if [ "$LAYOUT" = rmq ]; then
		run_mq 0 mq-publish q 1
		consume 78
		assert_equal "$stderr" "mq-consume: $MQ_URL: the server has no command of a script; mq-stats --server names it"
	else
		run_mq 78 mq-publish q 1
		assert_regex "$stderr" "the server has no command of a script; mq-stats --server names it"
	fi
}

@test "lacks: SCAN: 78 of mq-clean" {
	[ "$LAYOUT" = rmq ] || skip "mq-clean reads no keys there"
	lacks SCAN
	run_mq 78 mq-clean
	assert_equal "$stderr" "mq-clean: $MQ_URL: the server has no SCAN"
}

@test "lacks: what can be done without is" {
	local c
	for c in SUBSCRIBE PUBLISH CLIENT SSCAN INFO HELLO MULTI; do
		lacks "$c"
		run_mq 0 mq-publish -q q 1
		consume 0
		assert_equal "$c $output" "$c 1"
		[ "$c" != SUBSCRIBE ] || assert_equal "$stderr" \
			"mq-consume: $MQ_URL: SUBSCRIBE: the server has no SUBSCRIBE; checking for messages once a second instead"
		server_stop
	done
}

@test "lacks: mq-stats --server says what is missing" {
	lacks EVAL SUBSCRIBE
	run_mq 0 mq-stats --server
	assert_output --partial "the server lacks commands that the tools use: eval subscribe"
}

# --- channels ------------------------------------------------------------------------

# As Redis 7 makes each new user.
channelless() {
	redis acl setuser app on '>pw' '~*' resetchannels +@all >/dev/null
}

@test "lacks: a user without channels looks once a second" {
	channelless
	run_mq 0 mq-publish -q q 1
	MQ_URL=$(url_as app:pw) consume 0
	assert_output 1
	assert_equal "$(wc -l <<<"$stderr")" 1
	assert_regex "$stderr" ": (SUBSCRIBE|PUBLISH): NOPERM .*; checking for messages once a second instead$"
}

@test "lacks: so does one who loses them, beside others who have them" {
	redis acl setuser app on '>pw' '~*' '&*' +@all >/dev/null
	MQ_URL=$(url_as app:pw) start_mq mq-consume --no-clean --new -l q
	eventually 10 joined
	run_mq 0 mq-publish q 1
	eventually 10 grep -qx 1 "$T/out"
	channelless
	eventually 10 grep -q 'checking for messages once a second instead' "$T/err"
	run_mq 0 mq-publish q 2
	eventually 10 grep -qx 2 "$T/out"
	stop_mq TERM 143
	assert_equal "$(grep -c 'checking for messages' "$T/err")" 1
}

# --- room for an answer ----------------------------------------------------------------

@test "lacks: a message that is too large for an answer is told, and the others run" {
	local c
	server_start --client-output-buffer-limit 'normal 1mb 0 0'
	any_length q
	head -c 3000000 /dev/zero | "$BUILD/mq-publish" -qi q >"$T/id"
	run_mq 0 mq-publish q small
	start_mq mq-consume --no-clean --attempts 1 q -- cat
	eventually 30 grep -q small "$T/out"
	assert_equal "$(grep -c "q: message $(cat "$T/id"): the server ends each connection" "$T/err")" 1
	c=$(sed -n 's/^mq-consume: \(.*\): lease lost: .*/\1/p' "$T/err")
	assert_equal "$(holds "$c")" 1
	stop_mq TERM 143
	# As after a death of it.
	expire "$c"
	run_mq 0 mq-clean
	eventually 10 held_is q "0 0 0 1"
}

@test "lacks: to print, too, an attempt is charged for a message that the server does not get through" {
	[ "$LAYOUT" = rmq ] || skip "each receive is charged there"
	server_start --client-output-buffer-limit 'normal 1mb 0 0'
	any_length q
	head -c 3000000 /dev/zero | run_mq 0 mq-publish -q q
	start_mq mq-consume --no-clean -l q
	# At first many are claimed together, and nobody knows which one it was.
	eventually 30 leases_lost 1
	expire "$(connections_lost)"
	run_mq 0 mq-clean
	eventually 30 leases_lost 2
	run_mq 0 mq-publish q small
	eventually 30 grep -qx small "$T/out"
	stop_mq TERM 143
	expire "$(connections_lost | tail -n 1)"
	run_mq 0 mq-clean --attempts 1
	eventually 10 held_is q "0 0 0 1"
}

connections_lost() {
	sed -n 's/^mq-consume: \(.*\): lease lost: its messages.*/\1/p' "$T/err"
}

leases_lost() {
	(($(connections_lost | wc -l) == $1))
}
