#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Servers that take a connection and never answer, or never end their answer: a tool ends
# in time, and asks another host meanwhile.
# topology: own

load ../helpers/common
load ../helpers/cluster

setup_file() {
	cluster_start
	D=$(own_dir)
	export D
	server_run --port "$(free_ports 1)" --bind 127.0.0.1
	SENTINEL=$(free_ports 1)
	export SENTINEL
	sentinel_run "$D/sentinel" "$SENTINEL" "$(redis config get port | tail -n 1)" 1
	# shellcheck disable=SC2016 # it is Python's
	python3 - "$D" "$(redis config get port | tail -n 1)" 3>&- <<-'.' &
		import os, socketserver, sys, threading, time

		port = sys.argv[2].encode()
		answers = {"billion": (0, b"*1000000000\r\n"), "refuses": (1, b"-ERR no\r\n"),
		           "late": (1.5, b"*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%s\r\n" % (len(port), port))}

		class Client(socketserver.BaseRequestHandler):
		    def handle(self):
		        what = self.server.what
		        while what in ("drop", "line") or self.request.recv(65536):
		            while what == "line":
		                self.request.sendall(b"-" * 65536)
		            if what == "trickle":
		                self.request.sendall(b"*0\r\n")
		                self.request.recv(65536)
		                self.request.sendall(b"$400000\r\n")
		            while what == "trickle":
		                self.request.sendall(b"-")
		                time.sleep(0.05)
		            if what == "loading":
		                self.request.sendall(b"-LOADING\r\n")
		            if what in answers:
		                time.sleep(answers[what][0])
		                self.request.sendall(answers[what][1])
		            while what == "drop":
		                self.request.sendall(b"-")
		                time.sleep(0.5)

		def serve(cls, at, what):
		    server = cls(at, Client)
		    server.daemon_threads = True
		    server.what = what
		    threading.Thread(target=server.serve_forever).start()
		    return server.server_address

		d = sys.argv[1]
		tcp = socketserver.ThreadingTCPServer
		ports = [serve(tcp, ("127.0.0.1", 0), what)[1]
		         for what in ("silent", "drop", "billion", "refuses", "late",
		                      "line", "trickle", "loading")]
		serve(socketserver.ThreadingUnixStreamServer, d + "/silent", "silent")
		with open(d + "/new", "w") as f:
		    print(*ports, file=f)
		os.rename(d + "/new", d + "/ports")
	.
	echo $! >"$D/fake"
	eventually 10 [ -e "$D/ports" ]
}

teardown_file() {
	kill -KILL "$(cat "$D/fake")" "$(cat "$D/sentinel/pid")" "$(cat "$D/redis.pid")"
	rm -rf "$D"
	cluster_stop
}

setup() {
	T=$(own_dir)
	Q=q$BATS_TEST_NUMBER
	export T Q
	at=127.0.0.1
	read -r silent drop billion refuses late line trickle loading <"$D/ports"
	node=$at:$CLUSTER_PORT
	sentinel=$at:$SENTINEL
}

teardown() {
	kill -CONT "$(cat "$D/redis.pid")"
	common_teardown
}

# in_time STATUS TOOL ARGS...: long before a connection's patience ends.
in_time() {
	local want=$1 tool=$2
	shift 2
	status=0
	timeout 55 "$BUILD/$tool" "$@" >"$T/out" 2>"$T/err" || status=$?
	[ "$status" = "$want" ] || {
		echo "$tool $*: $status"
		cat "$T/err"
		return 1
	}
}

@test "deadlines: what never answers, or never ends its answer: 69" {
	local url pids=() p good=1
	kill -STOP "$(cat "$D/redis.pid")"
	for url in "redis://$at:$silent" "redis://:secret@$at:$silent" "redis://$at:$drop" \
		"redis://$at:$billion" "redis://$at:$line" "unix://$D/silent" "unix://$D/redis.sock" \
		"redis-cluster://$at:$silent,$at:$drop,$at:$billion" \
		"redis-sentinel://$at:$billion,$at:$silent,$at:$drop/m" \
		"redis-sentinel://$sentinel/m"; do
		for tool in "mq-publish $Q x" "mq-stats" "mq-consume --drain $Q"; do
			# shellcheck disable=SC2086 # words
			(
				T=$(mktemp -d "$T/XXXXXX")
				in_time 69 $tool -u "$url"
			) 3>&- &
			pids+=($!)
		done
	done
	for p in "${pids[@]}"; do
		wait "$p" || good=
	done
	[ -n "$good" ]
}

@test "deadlines: an answer that trickles, and one that is busy at each question: a minute" {
	local url pids=() p began=$SECONDS

	for url in "redis://$at:$trickle" "redis://$at:$loading"; do
		"$BUILD/mq-stats" --server -u "$url" >/dev/null 2>&1 3>&- &
		pids+=($!)
	done
	for p in "${pids[@]}"; do
		wait "$p" || [ $? != 0 ]
	done
	assert [ $((SECONDS - began)) -lt 100 ]
}

@test "deadlines: one that hangs holds up none of the others" {
	local url
	for url in "redis-cluster://$at:$silent,$at:$drop,$at:$billion,$node" \
		"redis-sentinel://$at:$billion,$at:$silent,$sentinel/m"; do
		in_time 0 mq-publish -u "$url" "$Q" x
		in_time 0 mq-consume -u "$url" --drain "$Q" -- true
	done
}

@test "deadlines: one that refuses while another is being asked" {
	in_time 0 mq-publish -u "redis-sentinel://$at:$refuses,$at:$late/m" "$Q" x
}

@test "deadlines: a consumer that connects again finds the host that answers" {
	MQ_URL=redis-cluster://$at:$silent,$node start_mq mq-consume -l "$Q"
	eventually 20 joined
	for i in 0 1 2; do
		node "$i" client kill type pubsub >/dev/null
		node "$i" client kill type normal >/dev/null
	done
	eventually 10 grep -q reconnecting "$T/err"
	run_mq 0 mq-publish -u "redis-cluster://$node" "$Q" x
	eventually 20 grep -qx x "$T/out"
	stop_mq TERM 143
}

joined() {
	[ "$(cluster smembers rmq::connections | grep -c .)" = 1 ]
}

@test "deadlines: they are those of a beginning; a connection has more patience" {
	local port
	port=$(redis config get port | tail -n 1)
	mkfifo "$T/in"
	"$BUILD/mq-publish" -u "redis://$at:$port" -l -v "$Q" <"$T/in" >"$T/sent" 2>&1 3>&- &
	pid=$!
	exec 8>"$T/in"
	echo a >&8
	eventually 10 has 1
	kill -STOP "$(cat "$D/redis.pid")"
	echo b >&8
	in_time 69 mq-stats -u "redis://$at:$port"
	assert_equal "$(cat "$T/err")" "mq-stats: redis://$at:$port: no answer for too long"
	kill -CONT "$(cat "$D/redis.pid")"
	exec 8>&-
	wait "$pid"
	assert_equal "$(tail -n +2 "$T/sent")" "mq-publish: 2 messages accepted"
}

@test "deadlines: a first message may come late" {
	local lib
	lib=$(find /usr/lib -name libfaketime.so.1 | head -n 1)
	{
		sleep 1
		echo late
	} | ASAN_OPTIONS=${ASAN_OPTIONS-}:verify_asan_link_order=0 LD_PRELOAD=$lib \
		FAKETIME='+0 x20' run_mq 0 mq-publish -u "unix://$D/redis.sock" "$Q"
}

has() {
	[ "$(redis llen "rmq::queue::[$Q]::ready")" = "$1" ]
}
