#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# A server that sentinels name: each tool finds the master, and finds the next one when
# that is gone; what replicas had confirmed is there.
# topology: own

load ../helpers/server
load ../helpers/sentinel
load ../publish/feed

setup_file() {
	family_start
	FAMILY=$MQ_URL
	export FAMILY
}

teardown_file() {
	family_stop
}

setup() {
	export MQ_URL=$FAMILY
	T=$(own_dir)
	export T
	family_mend
	redis flushall >/dev/null
}

port_of() {
	cat "$D/$1/port"
}

# Numbers from 1 on, a few at a time, until there is $T/enough; $T/sent has the last.
series() {
	local n=0
	until [ -e "$T/enough" ]; do
		for _ in {1..20}; do
			echo $((++n))
		done
		echo "$n" >"$T/sent"
		read -rt 0.01 <> <(:) || true
	done
}

# says N TEXT: so often.
says() {
	[ "$(grep -c "$2" "$T/err")" = "$1" ]
}

sent() {
	local n=0
	[ ! -e "$T/sent" ] || read -r n <"$T/sent" || true
	((${n:-0} >= $1))
}

# All payloads of the queue, sorted as numbers.
payloads() {
	local s
	for s in ready unacked delayed rejected; do
		"$BUILD/mq-stats" --list "$s" -l "$1"
	done | sort -n
}

printed_all() {
	(($(wc -l <"$T/out") >= $1)) && [ "$(sort -nu "$T/out" | wc -l)" = "$1" ]
}

# stale_sentinel PORT FILE [NAME]: a sentinel that names that server until there is the
# file, and then the one in it; its own port is in $T/NAME, which is stale.  It tells of a
# change once there is $T/NAME.news.  The replicas are those in $T/NAME.replicas, a line
# "PORT FLAGS" for each; $T/NAME.asked has a line for each question about them.
stale_sentinel() {
	local own=$T/${3-stale}
	python3 - "$1" "$2" "$own" 3>&- <<-'.' &
		import os, socketserver, sys, time
		port, file, own = sys.argv[1:]

		class Client(socketserver.StreamRequestHandler):
		    def say(self, *words):
		        self.wfile.write(b"*%d\r\n" % len(words) + b"".join(
		            b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words))

		    def handle(self):
		        what = b""
		        for line in self.rfile:
		            if line.strip() == b"HELLO":
		                self.wfile.write(b"-ERR none\r\n")
		            elif line.strip() == b"replicas":
		                what = b"replicas"
		            elif line.strip() == b"m" and what:
		                what = self.replicas()
		            elif line.strip() == b"m":
		                self.say("127.0.0.1", open(file).read().strip()
		                         if os.path.exists(file) else port)
		            elif line.strip() == b"+switch-master":
		                self.wfile.write(b"*3\r\n$9\r\nsubscribe\r\n"
		                                 b"$14\r\n+switch-master\r\n:1\r\n")
		                self.news()

		    def replicas(self):
		        with open(own + ".replicas") as f:
		            all = [line.split() for line in f]
		        self.wfile.write(b"*%d\r\n" % len(all))
		        for p, flags in all:
		            self.say("ip", "127.0.0.1", "port", p, "flags", flags)
		        with open(own + ".asked", "a") as f:
		            print(file=f)

		    def news(self):
		        while not os.path.exists(own + ".news"):
		            time.sleep(0.01)
		        os.unlink(own + ".news")
		        for name in "other", "m":
		            self.say("message", "+switch-master", name + " a 1 b 2")

		class Sentinel(socketserver.ThreadingTCPServer):
		    daemon_threads = True

		with Sentinel(("127.0.0.1", 0), Client) as s:
		    with open(own + ".new", "w") as f:
		        print(s.server_address[1], file=f)
		    os.rename(own + ".new", own)
		    s.serve_forever()
	.
	eventually 10 test -e "$own"
	export MQ_URL="redis-sentinel://127.0.0.1:$(cat "$own")/m"
}

# replicas NAME FLAGS FLAGS FLAGS: of both replicas, and of one that is cut off.
replicas() {
	printf '%s %s\n' "$(replica)" "$2" "$(replica 2)" "$3" 1 "$4" >"$T/new"
	mv "$T/new" "$T/$1.replicas"
}

asked() {
	[ "$(wc -l <"$T/$1.asked")" -gt "$2" ]
}

# replica [N]: the port of the first one, or the second.
replica() {
	local n m
	m=$(master)
	for n in 1 2 3; do
		[ "$(port_of "n$n")" = "$m" ] || port_of "n$n"
	done | sed -n "${1-1}p"
}

# --- finding it -----------------------------------------------------------------

@test "sentinel: every tool finds the master, and calls it by its URL" {
	run_mq 0 mq-publish -i q a b c
	run_mq 0 mq-publish --durable -v q d
	assert_equal "$stderr" "mq-publish: 1 message accepted, on 2 replicas"
	run_mq 0 mq-stats --list ready -l q
	assert_output $'a\nb\nc\nd'
	run_mq 1 mq-consume -n 1 q -- false
	run_mq 0 mq-return q
	run_mq 0 mq-lease --for 1m -n 1 --jsonl q
	run_mq 0 mq-pause q
	run_mq 0 mq-pause --resume q
	run_mq 0 mq-clean
	run_mq 0 mq-purge --force --all q
	run_mq 1 mq-stats --list ready q
	assert_equal "$stderr" "mq-stats: q: no message is ready"
	run_mq 0 mq-publish "q" x -u "redis-sentinel://127.0.0.1:$(port_of s2)/m/3"
	assert_equal "$(redis -n 3 llen 'rmq::queue::[q]::ready')" 1
}

@test "sentinel: some of them are dead, or hang; all are" {
	local none
	none=$(free_ports 1)
	MQ_URL=redis-sentinel://127.0.0.1:$none,127.0.0.1:$(port_of s3)/m run_mq 0 mq-publish q x
	kill -STOP "$(cat "$D/s1/pid")"
	run_mq 0 mq-publish q x
	run_mq 0 mq-consume --drain q -- true
	kill -CONT "$(cat "$D/s1/pid")"
	MQ_URL=redis-sentinel://127.0.0.1:$none/m
	run_mq 69 mq-publish q x
	assert_equal "$stderr" "mq-publish: $MQ_URL: no sentinel answers: redis://127.0.0.1:$none: Connection refused"
	run_mq 69 mq-consume q
	assert_equal "$stderr" "mq-consume: $MQ_URL: no sentinel answers: redis://127.0.0.1:$none: Connection refused"
}

@test "sentinel: a master that nobody knows, and what is no sentinel: 78" {
	local url
	url=redis-sentinel://127.0.0.1:$(port_of s1),127.0.0.1:$(port_of s2)/other
	run_mq 78 mq-stats -u "$url"
	assert_equal "$stderr" "mq-stats: $url: sentinel redis://127.0.0.1:$(port_of s1): no master has the name other"
	url=redis-sentinel://127.0.0.1:$(master)/m
	run_mq 78 mq-stats -u "$url"
	assert_regex "$stderr" "^mq-stats: $url: sentinel redis://127.0.0.1:$(master): the server has no SENTINEL$"
}

far_has_two() {
	[ "$(redis -n 3 llen 'rmq::queue::[far]::ready')" = 2 ]
}

@test "sentinel: with a password of its own" {
	local port
	port=$(free_ports 1)
	sentinel_run "$D/own" "$port" "$(master)" 2 "requirepass secret"
	export MQ_URL=redis-sentinel://127.0.0.1:$port/m
	run_mq 77 mq-publish q x
	assert_regex "$stderr" "^mq-publish: $MQ_URL: sentinel redis://127.0.0.1:$port: NOAUTH"
	echo secret >"$T/password"
	MQ_SENTINEL_PASSWORD_FILE=$T/password run_mq 0 mq-publish q x
	MQ_SENTINEL_PASSWORD_FILE=$T/password run_mq 0 mq-consume -n 1 q -- true
	# A dup knows it, too, but tells it to no other sentinel.
	script dup <<-.
		echo "dup 0-0-redis-sentinel://127.0.0.1:$port/m/3?queue=far" >&3
		echo "dup 0-0-redis-sentinel://localhost:$port/m/3?queue=other" >&3
	.
	run_mq 0 mq-publish -u "redis://127.0.0.1:$(master)" q x
	run_mq 0 mq-publish -u "redis://127.0.0.1:$(master)/3" far x
	MQ_SENTINEL_PASSWORD_FILE=$T/password start_mq mq-consume q -- "$T/dup"
	eventually 10 grep -q "localhost:$port.*NOAUTH" "$T/err"
	eventually 10 far_has_two
	stop_mq
	mkdir -p "$T/mq"
	printf 'MQ_URL=%s\nMQ_SENTINEL_PASSWORD_FILE=%s\n' "$MQ_URL" "$T/password" >"$T/mq/env"
	unset MQ_URL
	XDG_CONFIG_HOME=$T run_mq 0 mq-stats
	MQ_URL=redis-sentinel://127.0.0.1:$port/m MQ_SENTINEL_PASSWORD_FILE=$T/none run_mq 78 mq-stats
	assert_equal "$stderr" "mq-stats: MQ_SENTINEL_PASSWORD_FILE: $T/none: No such file or directory"
	kill -KILL "$(cat "$D/own/pid")"
	rm -r "$D/own"
	MQ_URL=$FAMILY
	for n in 1 2 3; do
		at_port "$(port_of "s$n")" sentinel reset m >/dev/null
	done
}

@test "sentinel: a replica is not used, whoever names it" {
	stale_sentinel "$(replica)" "$T/found"
	run_mq 75 mq-publish q x
	assert_equal "$stderr" "mq-publish: $MQ_URL: this server is a replica"
	start_mq mq-publish q y
	tick
	master >"$T/found.new"
	mv "$T/found.new" "$T/found"
	wait "$pid"
	run_mq 0 mq-consume --drain -l q
	assert_output y
	run_mq 75 mq-publish -u "redis://127.0.0.1:$(replica)" q z
	assert_regex "$stderr" READONLY
	assert_equal "$(held q)" "0 0 0 0"
}

@test "sentinel: a consumer looks again when it hears of another master, or is sent to a replica" {
	stale_sentinel "$(master)" "$T/found"
	start_mq mq-consume -v -l q
	eventually 10 joined
	touch "$T/stale.news"
	eventually 10 grep -q "^mq-consume: $MQ_URL: the master has changed; reconnecting$" "$T/err"
	MQ_URL=$FAMILY run_mq 0 mq-publish q x
	eventually 20 grep -qx x "$T/out"
	touch "$T/stale.news"
	eventually 10 says 2 "the master has changed"
	replica >"$T/found.new"
	mv "$T/found.new" "$T/found"
	redis client kill type normal >/dev/null
	eventually 10 grep -q "this server is a replica" "$T/err"
	rm "$T/found"
	MQ_URL=$FAMILY run_mq 0 mq-publish q y
	eventually 20 grep -qx y "$T/out"
	stop_mq TERM 143
}

# --- the master changes ------------------------------------------------------------

# not_durable_yet NAME: that sentinel is asked again and again.
not_durable_yet() {
	eventually 10 asked "$1" "$(($(wc -l <"$T/$1.asked") + 2))"
	assert kill -0 "$pid"
}

@test "sentinel: a replica that one of them could make the master is waited for" {
	local url
	stale_sentinel "$(master)" "$T/found" a
	url=$MQ_URL
	stale_sentinel "$(master)" "$T/found" b
	touch "$T/a.asked" "$T/b.asked"
	replicas a s_down,slave slave slave
	replicas b slave slave slave,disconnected
	start_mq mq-publish -v --durable -u "${url%/m},127.0.0.1:$(cat "$T/b")/m" q x
	# As many are connected as answer, but they are others.
	not_durable_yet a
	# The sentinel that is not asked first would choose the one that is cut off.
	replicas a slave slave s_down,slave
	not_durable_yet b
	replicas b slave slave s_down,slave,promoted
	not_durable_yet b
	replicas b slave slave s_down,slave,disconnected
	wait "$pid"
	assert_equal "$(tail -n 1 "$T/err")" \
		"mq-publish: 1 message accepted, on 2 replicas"
}

@test "sentinel: --durable goes on when one of them names another master" {
	local url
	stale_sentinel "$(master)" "$T/found" a
	url=$MQ_URL
	stale_sentinel "$(master)" "$T/behind" b
	replicas a slave slave s_down,slave
	replicas b slave slave s_down,slave
	mkfifo "$T/in"
	"$BUILD/mq-publish" -i -l --durable -u "${url%/m},127.0.0.1:$(cat "$T/b")/m" q \
		<"$T/in" >"$T/out" 2>"$T/err" 3>&- &
	pid=$!
	exec 5>"$T/in"
	echo 1 >&5
	eventually 20 lines_reach "$T/out" 1
	replica >"$T/new"
	mv "$T/new" "$T/behind"
	echo 2 >&5
	eventually 20 grep -q "not durable yet: there is another master; reconnecting$" "$T/err"
	not_durable_yet a
	assert_equal "$(wc -l <"$T/out")" 1
	rm "$T/behind"
	eventually 20 lines_reach "$T/out" 2
	# It waits for the next line, and that it has lost a connection before is over.
	MQ_URL=$FAMILY redis client kill type normal >/dev/null
	echo 3 >&5
	eventually 20 lines_reach "$T/out" 3
	says 2 "reconnecting$"
	exec 5>&-
	wait "$pid"
	assert_equal "$(MQ_URL=$FAMILY payloads q)" $'1\n2\n3'
}

@test "sentinel: the master dies: what starts meanwhile waits for the next one" {
	run_mq 0 mq-publish q x
	eventually 10 replicas_have 1
	kill -KILL "$(cat "$D/n$(node_of "$(master)")/pid")"
	run_mq 0 mq-publish q y
	run_mq 0 mq-consume -n 2 -l q
	assert_output $'x\ny'
}

replicas_have() {
	local n
	for n in 1 2 3; do
		[ "$(at_port "$(port_of "n$n")" llen 'rmq::queue::[q]::ready')" = "$1" ] ||
			return 1
	done
}

@test "sentinel: the master dies: a publisher goes on at the next one" {
	series | "$BUILD/mq-publish" -l q 2>"$T/err" 3>&- &
	pid=$!
	eventually 20 sent 400
	kill_master
	touch "$T/enough"
	status=0
	wait "$pid" || status=$?
	cat "$T/err"
	assert_equal "$(payloads q | uniq -d)" ""
	# Replication is asynchronous: then it says what is lost.
	if [ "$status" = 0 ]; then
		assert_equal "$(payloads q)" "$(seq "$(cat "$T/sent")")"
	else
		assert_equal "$status" 75
		assert_regex "$(cat "$T/err")" 'come back without what it had accepted: up to [0-9]* message'
	fi
}

@test "sentinel: the master dies: --spool goes to disk at once, and each comes once to the next one" {
	local old
	export XDG_STATE_HOME=$T/state
	feed -l --spool q
	seq 3000 >&5
	eventually 10 replicas_have 3000
	old=$(master)
	# One sentinel alone cannot name another.
	kill -STOP "$(cat "$D/s2/pid")" "$(cat "$D/s3/pid")"
	kill -KILL "$(cat "$D/n$(node_of "$old")/pid")"
	seq 3001 6000 >&5
	close_feed 0
	assert_equal "$stderr" "mq-publish: spooled: 3000 messages"
	run --separate-stderr timeout 5 "$BUILD/mq-publish" --spool q 6001
	assert_equal "$status" 0
	assert_equal "$stderr" "mq-publish: spooled: 1 message"
	kill -CONT "$(cat "$D/s2/pid")" "$(cat "$D/s3/pid")"
	eventually 30 master_is_not "$old"
	run_mq 0 mq-publish --flush
	assert_equal "$stderr" "mq-publish: flushed: 3001 messages"
	assert_equal "$("$BUILD/mq-stats" --list ready -l q | md5sum)" "$(seq 6001 | md5sum)"
}

# Workers that are there when a master goes are in faults/faults.bats.
@test "sentinel: the master dies in the midst of printing: nothing is lost" {
	seq 20000 | "$BUILD/mq-publish" --durable -l q
	start_mq mq-consume --rate 8000/s -l q
	eventually 20 test -s "$T/out"
	kill_master
	eventually 20 printed_all 20000
	stop_mq
}
