#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-publish --http, behind a listener that hands over connections as inetd does.

load ../helpers/server
load ../helpers/http

teardown() {
	http_stop
	common_teardown
}

# facts EXPRESSION: of the ready messages of q, as an array.
facts() {
	"$BUILD/mq-stats" --list ready --json q 2>/dev/null | jq -c "$1"
}

@test "post: the body is a message, byte for byte, and the answer its id" {
	serve mq-publish --http q
	printf 'a\0b\r\n\377' >"$T/payload"
	wants 201 / --data-binary @"$T/payload"
	[ "$(field content-type)" = "text/plain; charset=utf-8" ]
	[ "$(wc -c <"$T/body")" = 33 ]
	run_mq 0 mq-stats --id "$(<"$T/body")"
	[[ $output == *"queue       q"* ]]
	"$BUILD/mq-consume" -q -n 1 q >"$T/out"
	cmp "$T/out" "$T/payload"
}

@test "post: nothing, and megabytes" {
	serve mq-publish --http q
	wants 201 / -X POST -H 'Content-Length: 0'
	wants 411 / -X POST
	head -c 8388608 /dev/urandom >"$T/payload"
	wants 201 / --data-binary @"$T/payload"
	[ "$(facts 'length')" = 2 ]
	"$BUILD/mq-consume" -q -n 1 q
	"$BUILD/mq-consume" -q -n 1 q >"$T/out"
	cmp "$T/out" "$T/payload"
	echo >>"$T/payload"
	wants 413 / --data-binary @"$T/payload"
	wants 413 / --data-binary @"$T/payload" -H 'Expect:'
	[ "$(facts 'length')" = 0 ]
}

@test "post: headers are options" {
	serve mq-publish --http q
	wants 201 / -d x -H 'mq-key: k' -H 'Mq-Priority: 7' -H 'Mq-Param2: zwei; rm -rf *' \
		-H 'Mq-Header-X-Y: a: b' -H 'Traceparent: 00-1' -H 'Mq-Group: g' -H 'Mq-Expires: 1h'
	[ "$(facts '.[0] | [.key, .priority, .group, .headers["Mq-Param2"][0], .headers["X-Y"][0], .headers.Traceparent[0], .expires_ms > 0]')" = \
		'["k",7,"g","zwei; rm -rf *","a: b","00-1",true]' ]
	wants 409 / -d x -H 'Mq-Key: k'
	[[ $(<"$T/body") == "mq-publish: q: not published: another message has its key" ]]
	wants 201 / -d x -H 'Mq-Delay: 1h'
	[ "$("$BUILD/mq-stats" --json q | jq '.queues[0].delayed')" = 1 ]
}

@test "post: the command line holds, and a header wins" {
	serve mq-publish --http --host queues.example -p 3 -H 'A: 1' q
	wants 201 / -d x -H 'Host: queues.example'
	wants 201 / -d y -H 'Mq-Priority: 5' -H 'Mq-Header-B: 2' -H 'Mq-Header-B: 3'
	[ "$(facts '[.[] | .payload, .priority, .headers.A[0], .headers.B]')" = \
		'["y",5,"1",["2","3"],"x",3,"1",null]' ]
}

@test "post: mistakes publish nothing" {
	serve mq-publish --http q
	wants 400 / -d x -H 'Mq-Delay: soon'
	grep -q 'soon: not a duration' "$T/body"
	wants 400 / -d x -H 'Mq-Dely: 1s'
	grep -q 'Mq-Dely: not a header of these tools' "$T/body"
	wants 400 / -d x -H 'Mq-Delay: 1s' -H 'mq-delay: 1s'
	grep -qx 'mq-delay: given twice' "$T/body"
	wants 400 / -d x -H 'Mq-Header-: 1s'
	wants 400 / -d x -H 'Mq-Header-Mq-Id: 1'
	wants 400 / -d x -H 'Mq-Unique: queued'
	wants 400 / -d x -H 'Mq-Key;'
	wants 403 / -d x -H 'Origin: http://example.com'
	grep -q 'not from a browser' "$T/body"
	wants 421 / -d x -H 'Host: foreign.example'
	grep -q 'the host is not this machine' "$T/body"
	wants 501 / -d x -H 'Transfer-Encoding: chunked'
	wants 405 /
	[ "$(field allow)" = POST ]
	wants 405 / -X PUT -d x
	wants 417 / -d x -H 'Expect: more'
	[ "$("$BUILD/mq-stats" --json | jq -c '.queues')" = '[]' ]
}

@test "post: half a body is no message" {
	run_mq 0 mq-publish --http q < <(printf 'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf')
	[[ ${lines[0]} == "HTTP/1.1 400 "* ]]
	# Nor is what comes behind it.
	run_mq 0 mq-publish --http q < <(printf 'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbodyPOST / HTTP/1.1\r\n')
	[[ ${lines[0]} == "HTTP/1.1 201 "* ]]
	[ "$(facts '[.[].payload]')" = '["body"]' ]
}

@test "post: a full queue, one that is not there, a server that is down" {
	serve mq-publish --http --max-length 2 q
	wants 201 / -d x
	wants 201 / -d x
	wants 429 / -d x
	grep -q 'the queue is full' "$T/body"
	http_stop
	serve mq-publish --http --existing other
	wants 404 / -d x
	http_stop
	serve mq-publish --http -u "unix://$T/none.sock" q
	wants 503 / -d x
	[ "$(<"$T/body")" = "Service Unavailable" ]
	eventually 5 grep -q "No such file" "$T/listener"
}

@test "post: a hundred at once are a hundred messages" {
	local i
	serve mq-publish --http q
	for i in {1..100}; do
		printf 'url = "http://127.0.0.1:%s/"\ndata = "%s"\noutput = "%s/%s"\n' "$port" "$i" "$T" "$i"
		((i == 100)) || echo next
	done >"$T/urls"
	curl -sS --parallel --parallel-immediate --parallel-max 100 -m 120 -K "$T/urls"
	run_mq 0 mq-consume -q --drain -l q
	[ "$(sort -n <<<"$output")" = "$(seq 100)" ]
	[ "$(cat "$T"/[0-9]* | sort -u | wc -l)" = 100 ]
}
