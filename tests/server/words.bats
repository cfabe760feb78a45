#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What a server says before it ends a connection is read, and decides.
# topology: own

load ../helpers/common

setup_file() {
	D=$(own_dir)
	export D
	server_run --port "$(free_ports 1)" --bind 127.0.0.1 --maxclients 3
	TCP=redis://127.0.0.1:$(redis config get port | tail -n 1)
	export TCP
}

teardown_file() {
	server_stop
}

setup() {
	common_setup
	rest=()
}

teardown() {
	let_in
	redis config set requirepass '' >/dev/null
	common_teardown
}

# crowd N: so many clients come, and stay.
crowd() {
	local i

	for ((i = 0; i < $1; i++)); do
		exec {fd}<>"/dev/tcp/127.0.0.1/${TCP##*:}"
		printf '*1\r\n$4\r\nPING\r\n' >&"$fd"
		read -ru "$fd" _
		rest+=("$fd")
	done
}

let_in() {
	for fd in "${rest[@]}"; do
		exec {fd}>&-
	done
	rest=()
	eventually 10 no_clients
}

@test "words: no place for one more client: 75 in every tool, in the words of the server" {
	local url tool

	crowd 3
	for url in "$TCP" "$MQ_URL"; do
		for tool in "mq-publish q x" "mq-publish -l q" "mq-stats" "mq-stats --server" \
			"mq-consume q" "mq-clean" "mq-return q" "mq-purge --force --ready q" \
			"mq-pause q" "mq-set q attempts=3" "mq-lease --for 1m q"; do
			# shellcheck disable=SC2086 # words
			run_mq 75 $tool -u "$url" </dev/null
			assert_regex "${stderr_lines[0]}" \
				"^${tool%% *}: $url: ERR max number of clients reached$"
		done
	done
}

@test "words: a consumer without a place for its second or third connection: 75, if it is to end" {
	local url how places

	for places in 1 2; do
		crowd $((3 - places))
		for url in "$TCP" "$MQ_URL"; do
			for how in --drain "--drain --no-clean" "-n 1" "--idle 1h"; do
				# shellcheck disable=SC2086 # words
				run_mq 75 mq-consume -q -u "$url" $how q
				assert_equal "$stderr" "mq-consume: $url: ERR max number of clients reached"
			done
		done
		let_in
	done
}

# with_files N COMMAND...: with that many descriptors, and none of the test's.  The search
# for leaks needs some itself.
with_files() {
	local n=$1 fd
	shift

	(
		for fd in /proc/self/fd/*; do
			fd=${fd##*/}
			((fd < 3)) || eval "exec $fd>&-"
		done
		ulimit -n "$n"
		export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
		exec timeout 30 "$@"
	)
}

@test "words: a consumer with few descriptors, which is to end, ends" {
	local how n status

	script worker <<<'while read -r _; do echo done >&3; done'
	for how in "--drain q" "--idle 1ms q" "--drain q -- cat" "-n 1 q -- cat" \
		"--drain --stream -l q -- $T/worker"; do
		run_mq 0 mq-publish -q q x
		[[ $how == *" -- "* ]] || run_mq 0 mq-purge -q --force --all q
		for ((n = 7; n < 30; n++)); do
			status=0
			# shellcheck disable=SC2086 # words
			with_files "$n" "$BUILD/mq-consume" -q $how >"$T/out" 2>"$T/err" || status=$?
			[ "$status" != 0 ] || break
			assert_equal "$n $how $status" "$n $how 75"
			assert_regex "$(cat "$T/err")" '^mq-consume: .*: Too many open files$'
		done
		assert_equal "$how $((n > 7)) $status $(cat "$T/err")" "$how 1 0 "
	done
}

@test "words: a consumer without a place says so once, and goes on trying" {
	crowd 2
	start_mq mq-consume -l q
	eventually 10 grep -q 'max number' "$T/err"
	refusals
	refused=$n
	eventually 20 refused_again
	assert_equal "$(cat "$T/err")" \
		"mq-consume: $MQ_URL: ERR max number of clients reached; trying again"
	printf 'config set maxclients 9\r\n' >&"${rest[-1]}"
	eventually 20 joined
	stop_mq TERM 143
	redis config set maxclients 3 >/dev/null
}

@test "words: a consumer without a place to clean says so once, and goes on" {
	crowd 1
	start_mq mq-consume -q -l q
	eventually 10 grep -q 'max number' "$T/err"
	assert_equal "$(cat "$T/err")" \
		"mq-consume: $MQ_URL: ERR max number of clients reached; trying again"
	stop_mq TERM 143
}

# By a client of ours: there is no place for another one.
refusals() {
	local line

	printf '*2\r\n$4\r\nINFO\r\n$5\r\nstats\r\n' >&"${rest[-1]}"
	while read -ru "${rest[-1]}" line && [[ $line != $'\r' ]]; do
		[[ $line != rejected_connections:* ]] || n=${line//[!0-9]/}
	done
}

refused_again() {
	refusals
	((n > refused))
}

@test "words: a password that is not taken any more: one line with the server's name, also with -q" {
	redis config set requirepass old >/dev/null
	export REDISCLI_AUTH=old
	start_mq mq-consume -q q
	eventually 10 joined
	redis config set requirepass new >/dev/null
	REDISCLI_AUTH=new redis client kill type normal >/dev/null
	REDISCLI_AUTH=new redis client kill type pubsub >/dev/null
	export REDISCLI_AUTH=new
	eventually 20 tried_again
	assert_equal "$(cat "$T/err")" "mq-consume: $MQ_URL: WRONGPASS invalid username-password pair or user is disabled.; trying again"
	stop_mq TERM 143
}

# Each time with two connections.
tried_again() {
	(($(redis info errorstats | sed -n 's/.*WRONGPASS:count=\([0-9]*\).*/\1/p') > 6))
}
