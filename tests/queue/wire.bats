#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# On the wire: what a Go program built on rmq v5 does to the keys, done here
# step by step with redis-cli, on the same queues as our tools, both ways.

# Some functions are called by name, and the scripts expand what they are given.
# shellcheck disable=SC2016,SC2059,SC2086,SC2119,SC2120,SC2317

load ../helpers/server
load ../helpers/go

ready='rmq::queue::[q]::ready'
rejected='rmq::queue::[q]::rejected'

setup() {
	common_setup
	# hold: takes a message, says so, and goes on only when told to.
	script hold <<'END'
cat >/dev/null
echo "$MQ_ID" >>"$T/taken"
until [ -e "$T/go" ]; do sleep 0.02; done
END
	touch "$T/taken"
}

# go_publish Q: what is on stdin.
go_publish() {
	redis sadd rmq::queues "$1"
	redis -x lpush "rmq::queue::[$1]::ready"
}

# go_take C Q [FILE]: prefetch one message.
go_take() {
	redis --raw rpoplpush "rmq::queue::[$2]::ready" "$(unacked "$1" "$2")" |
		head -c -1 >"${3:-$T/element}"
}

# go_ack C Q FILE: how many were removed.
go_ack() {
	redis -x lrem "$(unacked "$1" "$2")" 1 <"$3"
}

# item KEY INDEX: the whole of it; -1 is the oldest.
item() {
	redis --raw lindex "$1" "$2" | head -c -1
}

# The payloads of a list, the oldest first, on one line.
payloads() {
	redis --raw eval 'local all, p = redis.call("LRANGE", KEYS[1], 0, -1), {}
		for i = #all, 1, -1 do
			p[#p + 1] = all[i]:match("^\255%z\190\190J[^\n]*\n(.*)") or all[i]
		end
		return table.concat(p, " ")' 1 "$1"
}

# keys [PATTERN]: without those that come and go with time, of long runs, of a round of
# cleaning, and of what rounds note by the minute and hour.
keys() {
	redis keys "${1:-*}" | grep -Ev '::(running|minutes|hours)$|^rmq::cleaning$' | sort
}

llen_is() {
	[ "$(redis llen "$1")" = "$2" ]
}

taken_are() {
	[ "$(wc -l <"$T/taken")" = "$1" ]
}

# Our round of cleaning, by a consumer of another queue.
clean_round() {
	start_mq mq-consume -v "$@" elsewhere -- true
	eventually 20 grep -q 'cleaned up' "$T/err"
	stop_mq
	sed 's/^mq-consume: //' "$T/err"
}

monitor() {
	no_cluster "the commands are those of several servers"
	# Not by way of the function redis: its shell is what would be killed.
	redis-cli -s "$D/redis.sock" monitor >"$T/monitor" 3>&- &
	eventually 10 grep -q OK "$T/monitor"
}

# ordered TEXT...: the first lines with these texts come in this order.
ordered() {
	local text n last=0
	for text; do
		n=$(grep -nF -- "$text" "$T/monitor" | head -n 1 | cut -d : -f 1)
		if [ -z "$n" ] || [ "$n" -le "$last" ]; then
			echo "not there, or too early: $text"
			cat "$T/monitor"
			return 1
		fi
		last=$n
	done
}

@test "wire: messages from Go, bare and with a header" {
	printf 'hello\n\xff\n' | go_publish q
	printf '\xff\x00\xbe\xbe\x4a{"X-Trace-Id":["a7"]}\nbo\ndy' | go_publish q
	prints $'none\na7' mq-consume -n 2 q -- \
		sh -c 'cat >>"$T/got"; echo "${MQ_HEADER_X_TRACE_ID-none}"'
	printf 'hello\n\xff\nbo\ndy' | cmp - "$T/got"
	assert_equal "$(state q)" "0 0 0 0 0"
}

@test "wire: headers that Go accepts are accepted" {
	local header
	for header in '{}' 'null' '{"a":null,"b":[]}' '{"A":["1","2"]}' \
		'{"a":["\ud800"]}' '{"\u0000":[]}' $'{"a\377":["\377"]}'; do
		printf '\xff\x00\xbe\xbe\x4a%s\nbody' "$header" | go_publish q
		prints body mq-consume -n 1 q
		assert_equal "$(state q)" "0 0 0 0 0"
	done
}

@test "wire: headers that Go refuses are rejected unseen and unchanged" {
	local bad
	for bad in '{"a":"x"}\nbody' '{"a":[1]}\nbody' '{"a"\nbody' '[]\nbody' \
		'{"A":["1"]}' ''; do
		redis flushall
		printf '\xff\x00\xbe\xbe\x4a'"$bad" >"$T/sent"
		go_publish q <"$T/sent"
		prints "" mq-consume --drain q -- sh -c 'echo ran'
		assert_equal "$(state q)" "0 0 0 1 0"
		item "$rejected" 0 | cmp - "$T/sent"
	done
}

@test "wire: what Go published first is consumed first, beside ours" {
	printf 1 | go_publish q
	run_mq 0 mq-publish q 2
	printf 3 | go_publish q
	run_mq 0 mq-publish --raw q 4
	prints $'1\n2\n3\n4' mq-consume --drain -l q
}

@test "wire: an ack removes the whole raw element, by LREM" {
	# Not as we would write it: spaces, an unusual name, no Mq-Id.
	printf '\xff\x00\xbe\xbe\x4a{ "x-y" : [ "\\u0041" ] }\nbody' | go_publish q
	monitor
	prints body mq-consume -n 1 q
	eventually 5 grep -q '"LREM"' "$T/monitor"
	# Valkey 8.1.1 prints quotes and backslashes as they are.
	run sed -n '/"LREM"/ {s/\\\(["\\]\)/\1/g; p}' "$T/monitor"
	assert_output --partial \
		'::queue::[q]::unacked" "-1" "\xff\x00\xbe\xbeJ{ "x-y" : [ "\u0041" ] }\nbody"'
	refute_output --partial lua
	assert_equal "$(state q)" "0 0 0 0 0"
}

@test "wire: Go consumes ours, the oldest first" {
	run_mq 0 mq-publish -i -H 'x-trace-id: a "b" \ é' -H 'X-Trace-Id: 2' q $'pay\nload'
	id=$output
	printf 'a\x00b' | run_mq 0 mq-publish --raw q
	assert_equal "$(redis smembers rmq::queues)" q
	go_connect go-AAAAAA
	go_consume go-AAAAAA q
	go_take go-AAAAAA q
	# As its http.Header reads it.
	python3 - "$T/element" "$id" <<'END'
import json, sys
h, _, payload = open(sys.argv[1], "rb").read().partition(b"\n")
assert h[:5] == b"\xff\0\xbe\xbe\x4a" and payload == b"pay\nload"
h = json.loads(h[5:])
assert h == {'X-Trace-Id': ['a "b" \\ é', '2'], 'Mq-Id': [sys.argv[2]]}, h
END
	assert_equal "$(state q)" "1 0 1 0 1"
	assert_equal "$(go_ack go-AAAAAA q "$T/element")" 1
	assert_equal "$(state q)" "1 0 0 0 1"
	go_take go-AAAAAA q
	printf 'a\x00b' | cmp - "$T/element"
}

@test "wire: Go reads what we have rejected" {
	run_mq 0 mq-publish -i -H 'X-A: 1' q body
	id=$output
	run_mq 1 mq-consume -n 1 q -- sh -c 'exit 3'
	item "$rejected" 0 >"$T/element"
	assert_equal "$(payloads "$rejected")" body
	assert_equal "$(for name in Mq-Id X-A Mq-Attempt Mq-Error; do
		header $name <"$T/element"
		echo
	done | paste -sd' ')" "$id 1 1 exit status 3"
}

@test "wire: a message that Go's cleaner took away is not acked twice" {
	printf body | go_publish q
	start_mq mq-consume -v q -- "$T/hold"
	eventually 10 taken_are 1
	c=$(connections)
	redis rpoplpush "$(unacked "$c")" "$(unacked go-AAAAAA)"
	touch "$T/go"
	eventually 10 grep -q 'lease lost' "$T/err"
	stop_mq
	assert_equal "$(redis llen "$(unacked go-AAAAAA)")" 1
	assert_equal "$(state q)" "0 0 1 0 0"
}

@test "wire: joining, in the order that a cleaner needs, and the keys of a consumer at work" {
	no_cluster "it has leases there"
	seq 2 | run_mq 0 mq-publish -l q
	monitor
	start_mq mq-consume -j 2 --tag go.er q other -- "$T/hold"
	eventually 10 taken_are 2
	c=$(connections)
	assert_regex "$c" '^go\.er-[A-Za-z0-9]{6}$'
	name=$(redis smembers "rmq::connection::$c::queue::[q]::consumers")
	assert_regex "$name" '^go\.er-[A-Za-z0-9]{6}$'
	ordered \
		"\"SET\" \"rmq::connection::$c::heartbeat\" \"1\" \"EX\" \"60\"" \
		"\"SADD\" \"rmq::connections\" \"$c\"" \
		"\"SADD\" \"rmq::connection::$c::queues\" \"q\"" \
		"\"SADD\" \"rmq::connection::$c::queue::[q]::consumers\" \"$name\"" \
		"\"SADD\" \"rmq::queues\" \"q\"" \
		"\"$(unacked "$c")\" \"RIGHT\" \"LEFT\""
	[ "${TOPOLOGY-}" = cluster ] || assert_equal "$(keys '*::holders' | xargs)" \
		'rmq::holders rmq::queue::[other]::holders rmq::queue::[q]::holders'
	assert_equal "$(keys | grep -v '::holders$')" "$(sort <<-END
		rmq::connection::$c::heartbeat
		rmq::connection::$c::info
		rmq::connection::$c::queue::[other]::consumers
		rmq::connection::$c::queue::[q]::consumers
		rmq::connection::$c::queue::[q]::unacked
		rmq::connection::$c::queues
		rmq::connections
		rmq::queue::[q]::counters
		rmq::queues
	END
	)"
	assert_equal "$(redis smembers rmq::queues | sort | xargs)" "other q"
	assert_equal "$(redis get "rmq::connection::$c::heartbeat")" 1
	assert_equal \
		"$(redis smembers "rmq::connection::$c::queues" | sort | xargs)" \
		"other q"
	assert_equal "$(redis scard "rmq::connection::$c::queue::[q]::consumers")" 1
	assert_equal "$(redis hget "rmq::connection::$c::info" slots)" 2
	assert_equal "$(redis hget "rmq::connection::$c::info" pid)" "$pid"
	# What is in flight is there with the newest first, as with RPOPLPUSH.
	assert_equal "$(payloads "$(unacked "$c")")" "1 2"
	assert [ "$(redis ttl "rmq::connection::$c::heartbeat")" -gt 40 ]
	assert [ "$(redis ttl "rmq::connection::$c::heartbeat")" -le 60 ]
	assert [ "$(redis ttl "rmq::connection::$c::info")" -gt 60 ]
	for key in rmq::connections rmq::queues "rmq::connection::$c::queues" \
		"$(unacked "$c")" "rmq::connection::$c::queue::[q]::consumers"; do
		assert_equal "$key $(redis ttl "$key")" "$key -1"
	done
}

@test "wire: after a graceful end nothing of the consumer is left" {
	printf '1\0002\xff\0003\0004\0005' | run_mq 0 mq-publish --raw -0 q
	start_mq mq-consume -j 1 --prefetch 3 q other -- "$T/hold"
	eventually 10 taken_are 1
	eventually 10 llen_is "$ready" 1
	c=$(connections)
	monitor
	kill -TERM "$pid"
	# What was not started is back in front at once.
	eventually 5 llen_is "$ready" 4
	touch "$T/go"
	ends_with 143
	assert_equal "$(keys)" "$(printf '%s\n' "$ready" rmq::queues \
		'rmq::queue::[q]::counters' | sort)"
	assert_equal "$(payloads "$ready")" $'2\xff 3 4 5'
	# Never listed without a heartbeat.
	heartbeat="\"DEL\" \"rmq::connection::$c::heartbeat\""
	eventually 5 grep -qF "$heartbeat" "$T/monitor"
	ordered "\"SREM\" \"rmq::connections\" \"$c\"" "$heartbeat"
}

@test "wire: Go's cleaner leaves a live consumer of ours alone, and gives back what a dead one had" {
	seq 5 | run_mq 0 mq-publish --raw -l q
	start_mq mq-consume -j 2 --prefetch 1 q -- "$T/hold"
	eventually 10 taken_are 2
	c=$(connections)
	eventually 10 llen_is "$(unacked "$c")" 3
	before=$(keys)
	go_clean
	assert_equal "$(keys)" "$before"
	assert_equal "$(payloads "$(unacked "$c")")" "1 2 3"
	redis expire "rmq::connection::$c::heartbeat" 20
	eventually 6 renewed "$c"
	# As a value that Go writes, and no other.
	assert_equal "$(redis get "rmq::connection::$c::heartbeat")" 1
	dies
	go_clean
	assert_equal "$(payloads "$ready" | xargs -n 1 | sort | xargs)" "1 2 3 4 5"
	[ "${TOPOLOGY-}" = cluster ] || {
		assert_equal "$(keys 'rmq::connection*')" "rmq::connection::$c::info"
		# Go does not know that one: it goes by itself.
		assert [ "$(redis ttl "rmq::connection::$c::info")" -gt 0 ]
	}
	run_mq 0 mq-consume --drain -l q
	assert_equal "$(sort <<<"$output")" "$(seq 5)"
}

@test "wire: a dead Go consumer's messages go back in front, unchanged" {
	printf '\xff\x00\xbe\xbe\x4a{ "X-A" : ["1"] }\n1' | go_publish q
	printf '2\x00\xff' | go_publish q
	run_mq 0 mq-publish q 3
	printf 4 | go_publish q
	go_connect go-AAAAAA
	go_consume go-AAAAAA q
	for i in 1 2 3; do
		go_take go-AAAAAA q "$T/$i"
	done
	go_dies go-AAAAAA
	run clean_round
	assert_output --partial '1 dead connection cleaned up: 3 messages returned'
	assert_equal "$(redis llen "$ready")" 4
	for i in 1 2 3; do
		item "$ready" "-$i" | cmp - "$T/$i"
	done
	assert_equal "$(item "$ready" -4)" 4
	assert_equal "$(keys)" "$(printf '%s\n' "$ready" rmq::queues \
		'rmq::queue::[q]::counters' | sort)"
	assert_equal "$(redis smembers rmq::queues | sort | xargs)" "elsewhere q"
}

@test "wire: a consumer that only printed has no crash to be counted" {
	seq 3 | run_mq 0 mq-publish -l q
	mkfifo "$T/pipe"
	exec 7<>"$T/pipe"
	perl -e 'print "x" x 70000' | run_mq 0 mq-publish q
	"$BUILD/mq-consume" q >"$T/pipe" 2>"$T/err" 3>&- 7>&- &
	pid=$!
	timeout 180 head -c 3 <&7 | cmp - <(printf 123)
	# The pipe is full, and nobody reads on.
	eventually 10 state_is q "0 0 1 0 1"
	c=$(connections)
	item "$(unacked "$c")" 0 >"$T/want"
	dies
	exec 7>&-
	clean_round
	item "$ready" 0 | cmp - "$T/want"
}

@test "wire: --no-clean leaves dead consumers to others" {
	go_dead go-AAAAAA q 1
	run_mq 0 mq-consume --no-clean --idle 0 elsewhere -- true
	assert_equal "$(redis llen "$(unacked go-AAAAAA)")" 1
	# Who ends without it, however soon, has looked.
	run_mq 0 mq-consume --idle 0 elsewhere -- true
	assert_equal "$(payloads "$ready")" 1
}

renewed() {
	[ "$(redis ttl "rmq::connection::$1::heartbeat")" -gt 50 ]
}

@test "wire: a heartbeat that expires later is looked at then" {
	go_dead go-AAAAAA q 1
	redis set rmq::connection::go-AAAAAA::heartbeat 1 px 2500
	start_mq mq-consume -v elsewhere -- true
	eventually 15 grep -q 'cleaned up' "$T/err"
	assert_equal "$(payloads "$ready")" 1
}

# there_and_back FILE OPTION...: published, consumed and rejected, returned by
# hand, consumed: always the same bytes.
there_and_back() {
	local file=$1
	shift
	run_mq 0 mq-publish "$@" q <"$file"
	rm -f "$T/got"
	run_mq 1 mq-consume -n 1 q -- sh -c 'cat >"$T/got"; exit 1'
	cmp "$file" "$T/got"
	rm "$T/got"
	assert_equal "$(state q)" "0 0 0 1 0"
	redis rpoplpush "$rejected" "$ready" >/dev/null
	run_mq 0 mq-consume -n 1 q -- sh -c 'cat >"$T/got"'
	cmp "$file" "$T/got"
	assert_equal "$(state q)" "0 0 0 0 0"
}

@test "wire: bytes, there and back" {
	local byte options
	perl -e 'print map { chr } 0 .. 255, reverse 0 .. 255' >"$T/every"
	head -c 65536 /dev/urandom >"$T/many"
	: >"$T/none"
	for byte in '\x00' '\n' '\xff' 'x'; do
		printf "$byte" >"$T/one ${byte#?}"
	done
	for options in '' --raw "-p 9"; do
		for file in "$T"/{every,many,none,one*}; do
			there_and_back "$file" $options
		done
	done
	head -c 67108864 /dev/urandom >"$T/large"
	there_and_back "$T/large"
	# What looks like a header.
	for byte in '{"X-A":["1"]}\nbody' ''; do
		printf '\xff\x00\xbe\xbe\x4a'"$byte" >"$T/in"
		there_and_back "$T/in"
	done
}

@test "wire: of two identical bare messages one is Go's, or one is acked and one rejected" {
	printf twin | go_publish q
	printf twin | go_publish q
	printf twin | go_publish q
	go_connect go-AAAAAA
	go_consume go-AAAAAA q
	go_take go-AAAAAA q
	run_mq 1 mq-consume -n 2 -j 2 q -- \
		sh -c 'if mkdir "$T/first"; then exit 3; else exit 0; fi'
	assert_equal "$(redis llen "$(unacked go-AAAAAA)")" 1
	assert_equal "$(go_ack go-AAAAAA q "$T/element")" 1
	assert_equal "$(state q)" "0 0 0 1 1"
	assert_equal "$(payloads "$rejected")" twin
}
