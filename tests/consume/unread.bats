#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# layouts: rmq rsmq
# A run that fails while nobody reads the consumer's standard output is broken off, and
# has not failed.

load ../helpers/server
load "../helpers/layout-${LAYOUT:-rmq}"

setup() {
	common_setup
	told='mq-consume: standard output: nobody reads it any more; stopping, and returning what fails'
}

# unread KIND STATUS OPTION... q -- COMMAND...: a consumer with that status, whose standard
# output is of that kind, and has lost its reader.
unread() {
	status=0
	timeout 60 python3 -c '
import os, pty, socket, subprocess, sys
kinds = {"pipe": os.pipe, "terminal": pty.openpty,
    "socket": lambda: [s.detach() for s in socket.socketpair()]}
reader, writer = kinds[sys.argv[1]]()
os.close(reader)
sys.exit(subprocess.call(sys.argv[2:], stdout=writer, start_new_session=True))' \
		"$1" "$BUILD/mq-consume" --no-clean "${@:3}" 2>"$T/err" 3>&- || status=$?
	assert_equal "$status" "$2"
}

# The messages that come next, each with its attempt; none has left something.
next_are() {
	assert_equal "$(held q)" "$(wc -w <<<"$*" | awk '{ print $1 / 2 }') 0 0 0"
	prints "$(xargs -n 2 <<<"$*")" mq-consume --drain q -- \
		sh -c 'printf "%s %s\n" "$(cat)" "$MQ_ATTEMPT"'
}

@test "unread: a failed run is back in front, and counts no attempt; one that does well is done" {
	local how kind form
	for how in pipe socket terminal "pipe --output lines" "pipe --output runs" "pipe --retry-on err"; do
		read -r kind form <<<"$how"
		run_mq 0 mq-publish q 1 2 3
		# shellcheck disable=SC2086 # two words, or none
		unread "$kind" 74 --drain --attempts 1 $form q -- sh -c 'test "$(cat)" = 1'
		assert_equal "$(cat "$T/err")" "$told"
		next_are 2 1 3 1
	done
}

@test "unread: killed by SIGPIPE, Python's 1 and 120, a broken command, err, several at a time" {
	local worker
	# One more than the attempts, so that each goes back.
	run_mq 0 mq-publish q 1 2
	for worker in 'echo x' 'python3 -c "print(1, flush=True)" 2>&-' 'python3 -c "print(1)"' \
		'exit 75' 'exit 127' 'echo err no place >&3'; do
		unread pipe 74 --attempts 2 -j 2 q -- sh -c "$worker"
		assert_equal "$(grep -c 'nobody reads' "$T/err")" 1
	done
	assert_equal "$(held q)" "2 0 0 0"
	# Asked for by the worker.
	unread pipe 75 -n 1 q -- sh -c 'echo resend 60 >&3'
	assert_equal "$(held q)" "1 1 0 0"
}

@test "unread: of a batch, messages that have a verb keep it, and the others go back" {
	run_mq 0 mq-publish q 1 2 3
	unread pipe 74 --batch 3 --attempts 1 q -- \
		sh -c 'echo "done #2" >&3; echo "err #3 bad" >&3; echo x; exit 1'
	assert_equal "$(held q)" "1 0 0 1"
	assert_regex "$(cat "$T/err")" "^$told.*rejected: bad"
}

@test "unread: a worker that stays: dies, writes err, or dies between two messages" {
	local end
	for end in 'echo x' 'exit 1' 'echo err x >&3' 'echo done >&3; echo x'; do
		run_mq 0 mq-publish q 1 2 3
		unread pipe 74 --attempts 1 --stream -l --window 1 q -- bash -c '
			read -r n; echo done >&3
			read -r n; '"$end"
		assert_equal "$(cat "$T/err")" "$told"
		if [ "$end" = "${end#echo done}" ]; then next_are 2 1 3 1; else next_are 3 1; fi
	done
}

@test "unread: a full disk, a file, no descriptor, logs: then a failed run has failed" {
	run_mq 0 mq-publish q 1 2 3 4
	unread pipe 1 -n 1 --log-dir "$T" q -- sh -c 'echo x; exit 1'
	"$BUILD/mq-consume" -n 1 q -- sh -c 'echo x; exit 1' >"$T/out" && false
	"$BUILD/mq-consume" -n 1 q -- sh -c 'echo x; exit 1' >&- && false
	"$BUILD/mq-consume" -n 1 q -- sh -c 'echo x || exit 1' >/dev/full && false
	assert_equal "$(held q)" "0 0 0 4"
}
