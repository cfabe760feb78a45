#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# topologies: cluster
# Payloads that nobody should queue, but that are lossless, bit by bit.

load ../helpers/server
load ../helpers/consume

setup() {
	common_setup
	seeded
	head -c 3000000 /dev/urandom >"$T/large"
}

@test "large: claimed in order among small ones, bit by bit" {
	local i
	for i in 1 2 3; do
		printf '7:small %s,3000000:' $i
		cat "$T/large"
		printf ,
	done >"$T/want"
	seq 100 | awk '{printf "%d:%s,", length($0), $0}' >>"$T/want"
	"$BUILD/mq-publish" --netstring q <"$T/want"
	"$BUILD/mq-consume" --drain --netstring q | cmp - "$T/want"
	assert_equal "$(held q)" "0 0 0 0"
}

@test "large: published, retried, rejected, returned and pushed, bit by bit" {
	local options
	for options in "" "-p 5" "-d 1ms" "-g a" "-k a" "-e 1h" --raw; do
		# shellcheck disable=SC2086 # two words
		"$BUILD/mq-publish" $options q <"$T/large"
		run_mq 1 mq-consume --drain --backoff 1ms..1ms --attempts 2 q -- \
			sh -c 'cmp - "$T/large" || exit 9; exit 75'
		assert_equal "$(held q)" "0 0 0 1"
		run_mq 0 mq-return q
		run_mq 0 mq-consume -n 1 --push other q -- sh -c 'echo push >&3'
		run_mq 0 mq-consume -n 1 other -- cmp - "$T/large"
		assert_equal "$(held q) $(held other)" "0 0 0 0 0 0 0 0"
	done
}

@test "large: several at once, equal ones, in any order, none lost or doubled" {
	local i
	for i in 1 2 3 4 5 6; do
		"$BUILD/mq-publish" -H "N: $i" q <"$T/large"
		"$BUILD/mq-publish" --raw q <"$T/large"
		"$BUILD/mq-publish" q small
	done
	# Every other run fails, and the last ones end first.
	script judge /bin/bash <<-'END'
		sleep 0.$((RANDOM % 3))
		((RANDOM % 2)) || { echo resend >&3; exit; }
		[ "$MQ_HEADER_N" != 4 ] || exit 1
	END
	run_mq 1 mq-consume --drain -j 4 --attempts 1000 q -- "$T/judge"
	assert_equal "$(held q) $(element q rejected | header N)" "0 0 0 1 4"
}

@test "large: due, and the consumer killed at any time: none is lost" {
	local i c
	for i in 1 2 3 4 5 6; do
		"$BUILD/mq-publish" -H "N: $i" -d 1ms q <"$T/large"
	done
	for _ in {1..10}; do
		timeout -s KILL 0.0$((RANDOM % 90 + 10)) \
			"$BUILD/mq-consume" --no-clean --attempts 1000 q -- sleep 100 || true
		for c in $(connections); do
			redis del "rmq::connection::${c}::heartbeat" >/dev/null
		done
		"$BUILD/mq-clean" -q
	done
	"$BUILD/mq-consume" --drain --attempts 1000 q -- sh -c \
		'cmp - "$T/large" && echo "$MQ_HEADER_N"' | sort >"$T/got"
	assert_equal "$(tr -d '\n' <"$T/got")" 123456
	assert_equal "$(held q)" "0 0 0 0"
}

# lose_connection USER: a consumer that runs a message loses its connection, and goes on.
lose_connection() {
	"$BUILD/mq-publish" q <"$T/large"
	start_mq mq-consume -v -n 1 "${@:2}" q -- \
		sh -c 'until [ -e "$T/go" ]; do sleep 0.05; done; cmp - "$T/large"'
	eventually 10 held_is q "0 0 1 0"
	redis config resetstat >/dev/null
	redis client kill type normal user "$1" >/dev/null
	eventually 10 grep -q 'connected as' "$T/err"
	[ "$1" != default ] || eventually 10 eval '[ "$(calls exec)" -gt 0 ]'
	calls exec >"$T/exec"
	touch "$T/go"
	wait "$pid"
	assert_equal "$(held q)" "0 0 0 0"
}

@test "large: after a lost connection, no script copies what is held; without the right, one does" {
	lose_connection default
	rm "$T/go"
	no_sentinel "the sentinel beside it needs rights, too"
	redis acl setuser plain on nopass '~*' '&*' +@all -multi -exec >/dev/null
	lose_connection plain -u "$(url_as plain:x)"
	assert_equal "$(cat "$T/exec")" 0
	redis acl deluser plain >/dev/null
}

@test "large: a terminal gets a note of --attach, once" {
	{ printf 17000000:; head -c 17000000 /dev/zero; printf ,; } >"$T/one"
	script publish <<-END
		cat $T/one $T/one | '$BUILD/mq-publish' --netstring "\$@" q
		echo 1 | '$BUILD/mq-publish' "\$@" q
	END
	timeout 120 script -qec "$T/publish" /dev/null | tr -d '\r' >"$T/screen"
	assert_equal "$(grep -vE 'made a new queue|what this server loses' "$T/screen")" \
		"mq-publish: record 1: a payload of 16 MiB keeps the server busy; --attach sends it as a file"
	timeout 120 script -qec "$T/publish -q" /dev/null >"$T/screen"
	timeout 120 "$T/publish" 2>>"$T/screen"
	assert_equal "$(cat "$T/screen")" ""
}
