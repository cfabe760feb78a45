#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-stats --http, behind a listener that hands over connections as inetd does.
# needs: metrics

load ../helpers/server
load ../helpers/http

teardown() {
	http_stop
	common_teardown
}

@test "http: the page, with its own policy" {
	run_mq 0 mq-publish -q q hello
	serve mq-stats --http --refresh 7
	wants 200 /
	grep -q '<!DOCTYPE html>' "$T/body"
	grep -q '^<body data-refresh="7" data-served>$' "$T/body"
	[ "$(field content-type)" = "text/html; charset=utf-8" ]
	[ "$(field content-length)" = "$(stat -c %s "$T/body")" ]
	[ "$(field connection)" = close ]
	[ "$(field cache-control)" = no-store ]
	[ "$(field x-content-type-options)" = nosniff ]
	[[ $(field content-security-policy) == "default-src 'none'; "*"script-src 'sha256-"*"frame-ancestors 'none'" ]]
	# It takes a query: some browsers add one to come past a cache.
	wants 200 '/?x=1'
}

@test "http: metrics, as Prometheus reads them" {
	run_mq 0 mq-publish -q $'q"\\<>\xff\xc3\xa9' a b
	serve mq-stats --http
	wants 200 /metrics
	[ "$(field content-type)" = "text/plain; version=0.0.4; charset=utf-8" ]
	promtool check metrics <"$T/body"
	grep -q '^rmq_ready{.*} 2$' "$T/body"
}

@test "http: all queues, and one whose name needs quoting" {
	run_mq 0 mq-publish -q 'a/b c' hello
	run_mq 0 mq-publish -q -d 1h 'a/b c' later
	serve mq-stats --http
	get /queues.json
	[ "$(jq -c '[.queues[] | .name, .ready, .delayed]' "$T/body")" = '["a/b c",1,1]' ]
	[ "$(field content-type)" = application/json ]
	for path in /queue/a%2Fb%20c /queue/a/b%20c; do
		wants 200 $path
		[ "$(jq -c '[.queue.name, .ready[0].size, .ready[0].payload, .delayed[0].state]' "$T/body")" = \
			'["a/b c",5,null,"delayed"]' ]
	done
	run ! grep -q hello "$T/body"
}

@test "http: a link leads to a queue whose name is shown in another way" {
	run_mq 0 mq-publish -q 'a\b' x
	run_mq 0 mq-publish -q $'a\xfe' x
	run_mq 0 mq-publish -q $'a\xff' x
	serve mq-stats --http
	for link in a%5Cb a%FE a%FF; do
		wants 200 "/queue/$link"
		jq -r .queue.name "$T/body"
	done >"$T/names"
	assert_equal "$(<"$T/names")" $'a\\b\na\\xfe\na\\xff'
}

@test "http: payloads only where they are wanted" {
	run_mq 0 mq-publish -q -i q hello
	id=$output
	printf '\377\000' | run_mq 0 mq-publish -q q
	head -c 70000 /dev/zero | run_mq 0 mq-publish -q q
	serve mq-stats --http --payloads
	get /queue/q
	[ "$(jq -c '[.ready[] | .size, .payload, .payload_base64]' "$T/body")" = \
		'[5,"hello",null,2,null,"/wA=",70000,null,null]' ]
	get /message/"$id"
	[ "$(jq -r '.payload' "$T/body")" = hello ]
	http_stop
	serve mq-stats --http
	get /message/"$id"
	[ "$(jq -c '[.id, .state, .size, has("payload")]' "$T/body")" = "[\"$id\",\"ready\",5,false]" ]
}

@test "http: why messages were rejected, with counts" {
	local i
	for i in 1 2 3; do
		echo "$i"
	done | run_mq 0 mq-publish -q -l q
	run_mq 1 mq-consume -q --drain q -- sh -c 'echo "no disk" >&2; exit 1'
	serve mq-stats --http
	get /queue/q
	[ "$(jq -c '[.reasons[0].count, .others, (.rejected | length), .queue.rejected]' "$T/body")" = '[3,0,3,3]' ]
	[ "$(jq -r '.rejected[2].history[0].stderr' "$T/body")" = "no disk" ]
}

@test "http: many messages are cut, the newest rejected are there" {
	no_cluster "the raw keys are written"
	seq 150 | sed 's/^/r/' >"$T/list"
	redis sadd rmq::queues q >/dev/null
	xargs redis-cli ${REDIS_AT-} -s "$D/redis.sock" lpush 'rmq::queue::[q]::rejected' <"$T/list" >/dev/null
	serve mq-stats --http --payloads
	get /queue/q
	[ "$(jq -c '[(.rejected | length), .rejected[0].payload, .rejected[-1].payload, .queue.rejected]' "$T/body")" = \
		'[100,"r51","r150",150]' ]
}

@test "http: health is that of the server, or what --check says" {
	run_mq 0 mq-publish -q q a b
	serve mq-stats --http
	wants 200 /healthz
	[ "$(<"$T/body")" = "MQ OK - the server answers" ]
	http_stop
	serve mq-stats --http --check ready=1:9
	wants 200 /healthz
	grep -q '^MQ WARNING' "$T/body"
	http_stop
	serve mq-stats --http --check ready=1
	wants 503 /healthz
	grep -q '^MQ CRITICAL - q: ready 2' "$T/body"
	wants 200 /metrics
}

@test "http: only the queues that are named" {
	run_mq 0 mq-publish -q q a
	run_mq 0 mq-publish -q -i other a
	serve mq-stats --http q
	get /queues.json
	[ "$(jq -c '[.queues[].name]' "$T/body")" = '["q"]' ]
	wants 404 /queue/other
	wants 404 /message/"$output"
	wants 200 /queue/q
}

@test "http: HEAD has the head of GET alone" {
	run_mq 0 mq-publish -q q a
	serve mq-stats --http
	wants 200 /queue/q -I
	[ "$(field content-length)" -gt 100 ]
	wants 404 /nothing -I
	run_mq 0 mq-stats --http < <(printf 'HEAD / HTTP/1.0\r\n\r\n')
	[[ ${lines[-2]} == 'Content-Security-Policy: '* ]]
}

@test "http: what is not there, not allowed, or no request" {
	serve mq-stats --http
	wants 404 /nothing
	wants 404 /queue/
	wants 404 /queue/q
	wants 404 /queues.json/
	wants 404 /message/
	wants 404 /message/hofb3c3j1udZbB7kfxWKy0l3exm4DLBY
	wants 400 /message/x
	wants 400 /queue/a%00
	wants 400 /%zz
	wants 405 /metrics -X POST -d x
	[ "$(field allow)" = "GET, HEAD" ]
	wants 405 / -X BREW
	wants 405 / -T "$T/headers"
	wants 414 "/$(head -c 5000 /dev/zero | tr '\0' a)"
	wants 431 / -H "A: $(head -c 17000 /dev/zero | tr '\0' a)"
	wants 501 / -H 'Transfer-Encoding: chunked'
	raw 505 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
	raw 400 'nonsense\r\n\r\n'
	raw 400 'GET / HTTP/1.1\r\n\r\n'
	raw 400 '\x16\x03\x01\x02\x00\n\n'
	raw 400 'GET / HTTP/1.1\r\nHost: a\r\n'
}

@test "http: a request for another host is misdirected" {
	local host
	for host in 127.0.0.1 127.0.0.1:9780 192.0.2.1 '[::1]:80' '[2001:db8::1]' localhost LocalHost.:9780 \
		"$(uname -n)" "$(uname -n | cut -d. -f1):80"; do
		raw 404 "GET /x HTTP/1.1\r\nHost: $host\r\n\r\n"
	done
	for host in foreign.example localhost.foreign.example 127.0.0.1.foreign.example '[foreign.example]' \
		'localhost:80:80' '127.0.0.1@foreign.example' '' '[' 'fe80::1' "$(uname -n)x" more.example other.example; do
		raw 421 "GET /x HTTP/1.1\r\nHost: $host\r\n\r\n"
	done
	raw 404 'GET /x HTTP/1.0\r\n\r\n'
	# The host of the target goes before the header.
	raw 404 'GET http://localhost:80/x HTTP/1.1\r\nHost: foreign.example\r\n\r\n'
	raw 421 'GET http://foreign.example/x HTTP/1.1\r\nHost: localhost\r\n\r\n'
	raw 421 'GET http://foreign.example HTTP/1.0\r\n\r\n'
	for host in More.example:443 other.example. localhost; do
		raw 404 "GET /x HTTP/1.1\r\nHost: $host\r\n\r\n" --host more.example --host other.example
	done
	raw 421 'GET /x HTTP/1.1\r\nHost: foreign.example\r\n\r\n' --host more.example
}

@test "http: names never become headers, and nothing of the answer is markup" {
	serve mq-stats --http
	wants 400 '/queue/a%0d%0aSet-Cookie:%20x=1%3Cscript%3E'
	run ! grep -i set-cookie "$T/headers"
	[ "$(field content-type)" = "text/plain; charset=utf-8" ]
	[ "$(<"$T/body")" = "mq-stats: a\\r\\nSet-Cookie: x=1<script>: a name must not contain control characters" ]
}

@test "http: a server that is down is 503, and the client is not told more" {
	serve mq-stats --http -u "unix://$T/none.sock"
	for path in / /metrics /queues.json /healthz /queue/q /message/hofb3c3j1udZbB7kfxWKy0l3exm4DLBY; do
		wants 503 $path
		[ "$(<"$T/body")" = "Service Unavailable" ]
	done
	eventually 5 grep -q "mq-stats: unix://$T/none.sock: No such file" "$T/listener"
}

@test "http: a slow client is not waited for, and others are served meanwhile" {
	serve mq-stats --http
	exec 8<>/dev/tcp/127.0.0.1/"$port"
	printf 'GET / HT' >&8
	wants 200 /healthz
	timeout 180 cat <&8 >"$T/slow"
	exec 8>&-
	grep -q '^HTTP/1.1 408 ' "$T/slow"
	# The head has 3 seconds in all.
	strace -o "$T/trace" true || skip "strace is not allowed"
	printf 'GET / HT' | ASAN_OPTIONS=detect_leaks=0 \
		strace -o "$T/trace" -e trace=poll,ppoll "$BUILD/mq-stats" --http >"$T/slow"
	head -n 1 "$T/trace" | grep -E ', (2[0-9]{3}|3000)\)|tv_sec=[23],'
}

@test "http: a client that says nothing, or leaves, is nothing" {
	run_mq 0 mq-stats --http </dev/null
	[ -z "$output$stderr" ]
	serve mq-stats --http
	exec 8<>/dev/tcp/127.0.0.1/"$port"
	exec 8>&-
	wants 200 /healthz
}

@test "http: as inetd has it, errors do not get between the lines of the answer" {
	python3 -IS - "$BUILD/mq-stats" "unix://$T/none.sock" >"$T/answer" <<-'PY'
		import socket, subprocess, sys
		ours, theirs = socket.socketpair()
		p = subprocess.Popen([sys.argv[1], "--http", "-u", sys.argv[2]],
		    stdin=theirs, stdout=theirs, stderr=theirs)
		theirs.close()
		ours.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
		ours.settimeout(120)
		while data := ours.recv(65536):
		    sys.stdout.write(data.decode())
		ours.close()
		sys.exit(p.wait())
	PY
	grep -q '^HTTP/1.1 503 ' "$T/answer"
	run ! grep mq-stats "$T/answer"
}

# Listens itself, at a port that the system picks: $port.
listening() {
	grep -q 'serving http' "$T/err"
}

@test "http: --http=PORT listens at 127.0.0.1, and serves many at a time" {
	local clients=() i

	run_mq 0 mq-publish -q q hello
	start_mq mq-stats --http=0 --payloads
	eventually 10 listening
	port=$(sed -E 's|.*http://127.0.0.1:([0-9]+)/$|\1|' "$T/err")
	wants 200 /
	wants 200 /queue/q
	grep -q hello "$T/body"
	# One that says nothing is in nobody's way.
	exec {idle}<>"/dev/tcp/127.0.0.1/$port"
	for i in {1..30}; do
		curl -sf -m 60 -o /dev/null "http://127.0.0.1:$port/healthz" &
		clients+=($!)
	done
	for i in "${clients[@]}"; do wait "$i"; done
	exec {idle}>&-
	run_mq 69 mq-stats --http="$port"
	assert_regex "$stderr" "^mq-stats: --http=$port: Address already in use$"
	stop_mq
	assert_equal "$status" 143
}

@test "http: the wrong port, or a terminal without one: 64" {
	run_mq 64 mq-stats --http=65536
	run python3 -c 'import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))' "$BUILD/mq-stats" --http
	assert_equal "$status" 64
	assert_output --partial "use --http=8080 to serve http://127.0.0.1:8080/"
}
