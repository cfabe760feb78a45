#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# How the tools end: as the first process of a container, which no signal ends
# unless it is caught, and when their terminal is closed.

load ../helpers/server

teardown() {
	exec 8>&-
	common_teardown
}

nobody_there() {
	[ "$(connections)" = "" ]
}

waiting_script() {
	mkfifo "$T/go"
	script wait <<-'.'
		echo >"$T/begun"
		read -r _ <"$T/go"
		cat >>"$T/ended"
	.
}

# --- the first process ---------------------------------------------------------------

# as_first TOOL ARGS...: in a namespace of its own, with $T/in as its input; its
# pid here in $pid, and in $outer whose status is its own.
as_first() {
	local tool=$1 as=()
	shift
	[ "$(id -u)" = 0 ] || as=(--user --map-root-user)
	[ -e "$T/in" ] || : >"$T/in"
	unshare "${as[@]}" --pid --fork --kill-child "$BUILD/$tool" "$@" \
		<"$T/in" >"$T/out" 2>"$T/err" 3>&- 8>&- &
	outer=$!
	eventually 10 has_child "$outer"
}

# Sets pid.
has_child() {
	pid=$(pgrep -P "$1") || gone "$1"
}

# ends_by SIGNAL STATUS: SIGNAL may come after the end.
ends_by() {
	kill -"$1" "$pid" || gone "$pid"
	status=0
	eventually 10 gone "$pid"
	wait "$outer" || status=$?
	cat "$T/err"
	assert_equal "$status" "$2"
}

@test "signals: mq-consume as the first process" {
	for how in "TERM 143" "INT 130" "HUP 129"; do
		as_first mq-consume -l q
		eventually 10 joined 1
		# shellcheck disable=SC2086 # two words
		ends_by $how
		nobody_there
	done
	# It lets a script end.
	waiting_script
	run_mq 0 mq-publish --raw q a b
	as_first mq-consume q -- "$T/wait"
	eventually 10 test -e "$T/begun"
	kill -TERM "$pid"
	eventually 10 grep -q 'waiting for 1 running message' "$T/err"
	echo >"$T/go"
	ends_by CONT 143
	assert_equal "$(cat "$T/ended")" a
	held_is q "1 0 0 0"
	# And it has an exit status of its own.
	as_first mq-consume -n 1 -l q
	eventually 10 gone "$pid"
	wait "$outer"
	assert_equal "$(cat "$T/out")" b
}

@test "signals: the other tools as the first process" {
	run_mq 0 mq-publish q x
	for tool in "mq-clean --json --interval 10ms" "mq-stats --watch"; do
		# shellcheck disable=SC2086 # words
		as_first $tool
		eventually 10 test -s "$T/out"
		ends_by TERM 143
	done
	rm "$T/in"
	mkfifo "$T/in"
	exec 8<>"$T/in"
	as_first mq-publish -il q
	echo one >&8
	eventually 10 test -s "$T/out"
	ends_by TERM 143
	grep -q '1 message accepted' "$T/err"
	held_is q "2 0 0 0"
	exec 8>&-
	rm "$T/in"

	run_mq 1 mq-consume -n 2 q -- false
	as_first mq-return --rate 0.01/s q
	eventually 10 held_is q "1 0 0 1"
	ends_by TERM 143
	grep -q '1 message returned' "$T/err"
}

# --- the terminal ----------------------------------------------------------------------

# on_terminal COMMAND...: until $T/close is closed, which is our descriptor 8.
on_terminal() {
	mkfifo "$T/close"
	exec 8<>"$T/close"
	python3 -c 'import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
open(sys.argv[1]).read()
os.close(fd)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) % 256)' \
		"$T/close" "$@" 3>&- 8>&- &
	pid=$!
	eventually 10 joined 1
}

close_terminal() {
	exec 8>&-
	rm "$T/close"
}

@test "signals: a consumer ends with its terminal" {
	for shell in "" "bash --norc -ic"; do
		for command in "-l q" "q -- true" "--log-dir $T/log q -- true"; do
			set -- "$BUILD/mq-consume"
			# shellcheck disable=SC2086 # words
			set -- "$@" $command
			# As a job of an interactive shell, too.
			# shellcheck disable=SC2086 # words
			[ -z "$shell" ] || set -- $shell "$* & wait"
			on_terminal "$@"
			close_terminal
			eventually 10 nobody_there
			wait "$pid" || true
		done
	done
}

@test "signals: when its terminal is closed, scripts may end" {
	waiting_script
	run_mq 0 mq-publish --raw q a
	on_terminal "$BUILD/mq-consume" q -- "$T/wait"
	eventually 10 test -e "$T/begun"
	close_terminal
	echo >"$T/go"
	eventually 10 nobody_there
	assert_equal "$(cat "$T/ended")" a
	held_is q "0 0 0 0"
	ends_within 60
	# As Python has it.
	assert_equal "$status" 255
}

@test "signals: HUP opens the logs anew while there is a terminal, and nohup is heeded" {
	on_terminal "$BUILD/mq-consume" --log-dir "$T/log" q -- echo
	rm "$T/log/q.log"
	kill -HUP "$(pgrep -P "$pid")"
	eventually 10 test -e "$T/log/q.log"
	joined 1
	close_terminal
	eventually 10 nobody_there
	wait "$pid" || true

	cd "$T"
	on_terminal nohup "$BUILD/mq-consume" -l q
	close_terminal
	run_mq 0 mq-publish q x
	eventually 10 held_is q "0 0 0 0"
	tick
	joined 1
	kill -TERM "$(pgrep -P "$pid")"
	eventually 10 nobody_there
}
