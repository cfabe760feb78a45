#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What a service manager hears: the datagrams of sd_notify(3).

load ../helpers/server

# manager NAME: listens as a service manager, and writes each datagram to $T/heard as a
# line, with "|" for newlines.
manager() {
	rm -f "$T/listens" "$T/heard"
	python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1].replace("@", "\0", 1))
open(sys.argv[2] + "/listens", "w")
with open(sys.argv[2] + "/heard", "w", 1) as f:
    while True:
        f.write(s.recv(4096).decode().replace("\n", "|") + "\n")
' "$1" "$T" 3>&- &
	eventually 10 test -e "$T/listens"
	export NOTIFY_SOCKET=$1
}

heard() {
	grep -qxE -e "$1" "$T/heard"
}

@test "READY when joined, STATUS with counts, STOPPING at the end" {
	manager "$T/manager"
	start_mq mq-consume q -- sh -c '[ "$(cat)" != bad ]'
	eventually 20 heard 'READY=1\|STATUS=0 running, 0 done, 0 rejected, 0 to be tried again'
	"$BUILD/mq-publish" -q q good bad good
	eventually 20 heard 'STATUS=0 running, 2 done, 1 rejected, 0 to be tried again'
	stop_mq
	eventually 20 heard 'STOPPING=1'
	# Each is said once, in this order.
	assert_equal "$(grep -ohE 'READY|STOPPING' "$T/heard" | xargs)" "READY STOPPING"
	assert_equal "$(tail -n 1 "$T/heard")" STOPPING=1
}

@test "--drain and a command that cannot run are STOPPING, too" {
	manager "@mq-service-$$-$BATS_TEST_NUMBER"
	"$BUILD/mq-publish" -q q a
	run_mq 0 mq-consume --drain q -- true
	eventually 20 heard STOPPING=1
	"$BUILD/mq-publish" -q q a
	manager "@mq-service-$$-$BATS_TEST_NUMBER-2"
	script none /no/such/interpreter </dev/null
	run_mq 78 mq-consume q -- "$T/none"
	eventually 20 heard STOPPING=1
}

@test "READY waits for the server, STATUS tells when it is gone, WATCHDOG comes all the same" {
	local n
	no_cluster "one server is stopped"
	manager "$T/manager"
	export WATCHDOG_USEC=100000
	start_mq mq-consume q -- true
	eventually 20 heard 'READY=1.*'
	eventually 20 heard WATCHDOG=1
	server_kill
	eventually 20 heard 'STATUS=not connected'
	n=$(grep -c WATCHDOG "$T/heard")
	eventually 20 eval '(($(grep -c WATCHDOG "$T/heard") > n + 3))'
	server_run
	eventually 40 eval 'tail -n 1 <(grep -v WATCHDOG "$T/heard") | grep -q "STATUS=0 running"'
	assert_equal "$(grep -c READY "$T/heard")" 1
	stop_mq
}

@test "a watchdog for another process is not answered" {
	manager "$T/manager"
	export WATCHDOG_USEC=20000
	WATCHDOG_PID=$$ start_mq mq-consume q -- true
	eventually 20 heard 'READY=1.*'
	tick
	run -1 grep WATCHDOG "$T/heard"
	stop_mq
	manager "$T/manager2"
	# shellcheck disable=SC2016 # for bash
	bash -c 'WATCHDOG_PID=$$ exec "$@"' . "$BUILD/mq-consume" q -- true >"$T/out" 2>&1 3>&- &
	pid=$!
	eventually 20 heard WATCHDOG=1
	stop_mq
}

@test "workers, and a private server, inherit nothing of it" {
	local server how
	manager "$T/manager"
	export WATCHDOG_USEC=10000000 WATCHDOG_PID=1
	for how in -n1 --stream; do
		"$BUILD/mq-publish" -q q a
		run_mq 0 mq-consume --drain $how q -- sh -c 'env; read -r x; echo done >&3'
		assert_output --partial MQ_WRITE=3
		refute_output --partial NOTIFY_SOCKET
		refute_output --partial WATCHDOG
	done
	MQ_URL=private:$T/own run_mq 0 mq-consume --drain q -- true
	server=$(redis-cli -s "$T/own/redis.sock" info server |
		sed -n 's/^process_id:\([0-9]*\).*/\1/p')
	run -1 grep -z NOTIFY_SOCKET "/proc/$server/environ"
	redis-cli -s "$T/own/redis.sock" shutdown nosave
}

@test "a socket that cannot be used is said, and costs nothing" {
	local name
	"$BUILD/mq-publish" -q q a b c d
	for name in "" manager @ "/$(printf '%0200d' 0)"; do
		NOTIFY_SOCKET=$name run_mq 0 mq-consume -n1 q -- cat
		assert_regex "$output" '^[abcd]$'
		[ "$stderr" = "mq-consume: NOTIFY_SOCKET: $name: Invalid argument; the service manager is not notified" ]
	done
	"$BUILD/mq-publish" -q q e
	NOTIFY_SOCKET=$T/nobody WATCHDOG_USEC=1 run_mq 0 mq-consume -n1 q -- cat
	assert_output e
	[ "$stderr" = "mq-consume: NOTIFY_SOCKET: No such file or directory; the service manager is not notified" ]
}
