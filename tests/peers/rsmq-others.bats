#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The layout of RSMQ beside programs that delete, send badly, and make ids of
# their own.  What those do is done here by node.bash.

# shellcheck disable=SC1010,SC2016

load ../helpers/server
load ../helpers/node

setup() {
	export MQ_LAYOUT=rsmq
	common_setup
}

ids() {
	redis --raw zrange "rsmq:$1" 0 -1
}

# run_until_told VERBS: a script that runs until $T/go is there.
run_until_told() {
	script hold <<-END
		echo "\$MQ_ID" >>"\$T/started"
		until [ -e "\$T/go" ]; do sleep 0.05; done
		$1
	END
}

# counted QUEUE FIELD...
counted() {
	redis --raw hmget "rsmq:$1:Xcounters" "${@:2}" | paste -sd' '
}

# --- what somebody deletes -----------------------------------------------------

@test "rsmq others: a message that is deleted while it runs is gone, whatever its verdict" {
	redis config resetstat >/dev/null
	for verdict in 'echo err no >&3' 'echo resend 60 >&3' 'echo push >&3' 'exit 1' 'exit 0'; do
		redis flushall >/dev/null
		rm -f "$T/started" "$T/go"
		run_until_told "$verdict"
		node_create q
		id=$(node_send q a)
		start_mq mq-consume -v --push other -n 1 q -- "$T/hold"
		eventually 10 test -s "$T/started"
		c=$(redis --raw zrange rsmq::connections 0 -1)
		node_delete q "$id"
		: >"$T/go"
		wait "$pid"
		grep -q "q: $id: gone: the message was deleted" "$T/err"
		run ! grep -E "^mq-consume: q: $id: (rejected|again in|pushed|done)|lease lost:|reconnecting" "$T/err"
		grep -q "0 done, 0 rejected, 0 to be tried again, 0 returned, 0 leases lost" "$T/err"
		assert_equal "$(counted q done failed retried lease_lost)" '   '
		assert_equal "$(redis --raw exists rsmq:q rsmq:q-rejected rsmq:other)" 0
	done
}

@test "rsmq others: nor does its consumer reconnect, kill the script, or start what is deleted" {
	run_until_told 'echo done >&3'
	node_create q
	one=$(node_send q one 3000)
	two=$(node_send q two 2000)
	node_send q three 1000
	start_mq mq-consume -v --prefetch 2 q -- "$T/hold"
	eventually 10 test -s "$T/started"
	all_held() { [ "$(redis hlen "rsmq:q:Xheld:$c")" = "$1" ]; }
	c=$(redis --raw zrange rsmq::connections 0 -1)
	eventually 10 all_held 3
	node_delete q "$one"
	node_delete q "$two"
	eventually 10 all_held 1
	# The next look finds nothing that is to be compared.
	before=$(redis --raw hget "rsmq::connection:$c" lease)
	redis expire "rsmq::connection:$c" 10 >/dev/null
	renewed() { (($(redis ttl "rsmq::connection:$c") > 20)); }
	eventually 5 renewed
	redis expire "rsmq::connection:$c" 10 >/dev/null
	eventually 5 renewed
	: >"$T/go"
	eventually 10 state_is q "0 0 0 0 1"
	stop_mq
	assert_equal "$before" 30000
	assert_equal "$(wc -l <"$T/started")" 2
	run ! grep -q "$two" "$T/started"
	grep -q "q: $one: gone: the message was deleted" "$T/err"
	run ! grep -E 'lease lost|reconnecting' "$T/err"
	assert_equal "$(grep -c 'connected as' "$T/err")" 0
	assert_equal "$(counted q done lease_lost)" '1 '
}

@test "rsmq others: in a batch, and before a worker that stays, each is gone for itself" {
	local mode i sent

	# Both are to have it before it is deleted; of a stream, only the first.
	for mode in '--batch 4' --stream; do
		redis flushall >/dev/null
		rm -f "$T"/{in,go}
		node_create q
		for i in 1 2 3 4; do
			sent[i]=$(node_send q "m$i" $((9000 - i * 1000)))
		done
		script hold <<-'END'
			while read -r line; do
				echo "$line" >>"$T/in"
				[ -n "$MQ_BATCH" ] && [ "$line" != m4 ] && continue
				until [ -e "$T/go" ]; do sleep 0.05; done
				echo done >&3
			done
		END
		# shellcheck disable=SC2086 # two words
		start_mq mq-consume -v $mode --prefetch 4 -l q -- "$T/hold"
		eventually 10 grep -q "m${mode//[!0-9]/}" "$T/in"
		node_delete q "${sent[1]}"
		node_delete q "${sent[3]}"
		: >"$T/go"
		eventually 10 state_is q "0 0 0 0 1"
		stop_mq
		grep -q "${sent[1]}: gone: the message was deleted (done)" "$T/err"
		grep -q "${sent[2]}: done" "$T/err"
		grep -q "${sent[4]}: done" "$T/err"
		run ! grep -E "${sent[3]}: done|lease lost" "$T/err"
		assert_equal "$(counted q done lease_lost)" '2 '
	done
}

@test "rsmq others: a queue that is deleted is told, waited for, and not made again" {
	run_until_told 'echo done >&3'
	node_create q
	node_send q one
	start_mq mq-consume -v q -- "$T/hold"
	eventually 10 test -s "$T/started"
	# Node leaves our keys.
	printf '%s\n' multi 'del rsmq:q:Q rsmq:q rsmq:q:Xcounters' 'srem rsmq:QUEUES q' exec | redis >/dev/null
	: >"$T/go"
	eventually 10 grep -q 'q: the queue was deleted; waiting' "$T/err"
	# Not by a new connection to the server either.
	redis client kill type normal skipme yes >/dev/null
	eventually 10 grep -q 'connected as' "$T/err"
	joined() { (($(redis hlen "rsmq::connection:$(redis --raw zrange rsmq::connections 0 -1)") > 0)); }
	eventually 10 joined
	redis del rsmq::connections >/dev/null
	# It may have had a name before this one.
	redis eval 'for _, key in ipairs(redis.call("KEYS", "rsmq::connection:*")) do
		redis.call("DEL", key) end' 0 >/dev/null
	eventually 10 grep -q 'lease lost' "$T/err"
	eventually 10 joined
	# What tells who waits for the queue, and who consumes it, goes by itself.
	assert_equal "$(redis --raw keys 'rsmq:[qQ]*' | grep -Ev '^rsmq:q:X(watch|holders)$')" ""
	node_create q
	node_send q two
	eventually 10 state_is q "0 0 0 0 1"
	assert_equal "$(grep -c 'the queue was deleted' "$T/err")" 1
	stop_mq
}

# --- what is sent badly -----------------------------------------------------------

@test "rsmq others: a member whose body does not come goes while a consumer runs" {
	redis hset rsmq:q:Q vt 3 delay 0 maxsize 65536 >/dev/null
	redis sadd rsmq:QUEUES q >/dev/null
	now=$(now_ms)
	uuid=0192b7e4-8f3c-7a51-9d2e-3f6a1c0b5e77
	hex=f192b7e48f3c7a519d2e3f6a1c0b5e77
	redis zadd rsmq:q "$now" "$(node_id $((now - 120000)))" \
		"$now" "$(node_id "$now")" "$now" "$uuid" "$now" "$hex" >/dev/null
	start_mq mq-consume --no-clean q -- true
	members_are() { [ "$(redis zcard rsmq:q)" = "$1" ]; }
	eventually 10 members_are 3
	# One whose id tells nothing has a minute from its first receive on.
	seen() { [ "$(redis hmget rsmq:q:Q "$uuid:fr" "$hex:fr" | grep -c .)" = 2 ]; }
	eventually 10 seen
	redis hset rsmq:q:Q "$uuid:fr" $((now - 61000)) "$hex:fr" $((now - 61000)) >/dev/null
	redis zadd rsmq:q "$now" "$uuid" "$now" "$hex" >/dev/null
	eventually 10 members_are 1
	assert_equal "$(redis hexists rsmq:q:Q "$uuid:fr")" 0
	# The body of the young one comes.
	young=$(ids q)
	redis hset rsmq:q:Q "$young" late >/dev/null
	redis zadd rsmq:q 1 "$young" >/dev/null
	eventually 10 members_are 0
	stop_mq
	assert_equal "$(counted q done)" 1
}

@test "rsmq others: totals that are nonsense stop nothing, and no step is half done" {
	for nonsense in abc 9223372036854775807 1.5; do
		redis flushall >/dev/null
		for queue in q q-rejected other; do
			node_create "$queue"
			redis hset "rsmq:$queue:Q" totalsent "$nonsense" totalrecv "$nonsense" >/dev/null
		done
		run_mq 0 mq-publish q fails pushed stays
		run_mq 1 mq-consume -q -n 1 q -- sh -c 'exit 1'
		run_mq 0 mq-consume -q -n 1 --push other q -- sh -c 'echo push >&3'
		assert_equal "$(redis zcard rsmq:q) $(redis zcard rsmq:q-rejected) $(redis zcard rsmq:other)" '1 1 1'
		run_mq 0 mq-return q
		run_mq 0 mq-return --from delayed --to other q || true
		prints $'stays\nfails' mq-consume -l -n 2 q
		assert_equal "$(redis hget rsmq:q:Q totalsent)" "$nonsense"
		assert_equal "$(redis hlen rsmq:q:Q)" 7
	done
}

@test "rsmq others: receive counts that are nonsense are none" {
	node_create q
	for rc in abc 1e3 -5 inf 0x10; do
		id=$(node_send q a)
		redis hset rsmq:q:Q "$id:rc" "$rc" >/dev/null
		prints 1 mq-consume -n 1 q -- sh -c 'echo "$MQ_ATTEMPT"'
	done
	id=$(node_send q a)
	redis hset rsmq:q:Q "$id:rc" 1e3 >/dev/null
	run_mq 0 mq-lease --ack "$id" q
	assert_equal "$(redis hlen rsmq:q:Q)" 7
}

# --- ids of their own -----------------------------------------------------------

# send_as ID BODY [QUEUE]
send_as() {
	redis zadd "rsmq:${3:-q}" 1 "$1" >/dev/null
	redis hset "rsmq:${3:-q}:Q" "$1" "$2" >/dev/null
}

sha() {
	printf %s "$1" | sha1sum | head -c 32
}

@test "rsmq others: a message has the id that its sender gave it, or one made of that" {
	node_create q
	long=$(printf 'x%.0s' {1..129})
	for id in '' 0192b7e4-8f3c-7a51-9d2e-3f6a1c0b5e77 7 a_b:c -rf .. ../../up 'a b' ä \
		$'odd "id"\\\n\1' $'\xff\xfe' "$long"; do
		shown=$id
		[[ $id =~ ^[A-Za-z0-9_:][A-Za-z0-9_:-]{0,127}$ ]] || shown=$(sha "$id")
		send_as "$id" body
		# Each time, whatever becomes of it, and in whatever run.
		for verdict in 'resend 0' 'err no'; do
			run_mq 75/1 mq-consume -q --work-dir "$T" -n 1 q -- \
				sh -c 'echo "$MQ_ID $MQ_ATTEMPT"; echo "$0" >&3' "$verdict"
			assert_line --index 0 --regexp "^$shown [12]\$"
		done
		run_mq 0 mq-stats --list rejected q
		assert_line --partial "$shown"
		run_mq 0 mq-stats --id "$shown" q
		assert_line --partial "$shown"
		run_mq 0 mq-return --id "$shown" q
		assert_equal "$(redis --raw hget rsmq:q:Q "$id")" body
		run_mq 0 mq-lease --extend "$shown" --for 1m q
		run_mq 0 mq-lease --return "$shown" q
		run_mq 0 mq-lease --jsonl --for 1m q
		[[ $output == *"$shown"* ]]
		[ "$id" != ä ] || [[ $output == *'"Mq-Id":["ä"]'* ]]
		assert_equal "$(redis zcard rsmq:q) $(redis zcard rsmq:q-rejected)" '1 0'
		redis del rsmq:q rsmq:q:Q >/dev/null
		redis hset rsmq:q:Q vt 30 delay 0 maxsize 65536 >/dev/null
	done
	run_mq 64 mq-stats --id 'a b' q
	assert_equal "$stderr" \
		"mq-stats: --id: a b: not an id (letters, digits, : _ and -, at most 128)"
}

@test "rsmq others: an id of theirs is good for a relay, and for a receipt" {
	node_create q
	uuid=0192b7e4-8f3c-7a51-9d2e-3f6a1c0b5e77
	for _ in 1 2; do
		send_as $uuid body
		run_mq 0 mq-consume -q -n 1 q -- sh -c \
			"\"$BUILD/mq-publish\" -u '${MQ_URL%%\?*}' -L rmq -k \"\$MQ_ID\" --unique 1d inbox; [ \$? -le 1 ]"
	done
	assert_equal "$(redis llen 'rmq::queue::[inbox]::ready')" 1
	send_as $uuid body
	run_mq 0 mq-lease --extend $uuid --for 1h q
	run_mq 0 mq-lease --reject $uuid --text 'not wanted' q
	run_mq 0 mq-stats --list rejected q
	assert_line --partial 'not wanted'
	prints '1 message purged' mq-purge --rejected --force --id $uuid q
}

@test "rsmq others: where one of its id is, a message that comes gets another" {
	for id in "$(node_id "$(now_ms)")" 7 'a b'; do
		for verdict in push 'err no'; do
			redis flushall >/dev/null
			to=q-rejected
			[ "$verdict" != push ] || to=other
			node_create q
			node_create "$to"
			send_as "$id" here "$to"
			redis hset "rsmq:$to:Q" "$id:rc" 3 "$id:fr" 1 >/dev/null
			send_as "$id" comes
			run_mq 0/1 mq-consume -q -n 1 --push other q -- sh -c 'echo "$0" >&3' "$verdict"
			assert_equal "$(redis zcard "rsmq:$to") $(redis zcard rsmq:q)" '2 0'
			assert_equal "$(redis --raw hmget "rsmq:$to:Q" "$id" "$id:rc" | paste -sd' ')" 'here 3'
			new=$(ids "$to" | tail -n 1)
			[[ $new == "${id:0:10}"* ]]
			assert_equal "$(redis --raw hget "rsmq:$to:Q" "$new")" comes
			shown=$id
			[ "$id" != 'a b' ] || shown=$(sha "$id")
			[[ $(redis --raw hget "rsmq:$to:X" "$new") == *"\"Mq-Copy-Of\":[\"$shown\"]"* ]]
		done
	done
}

@test "rsmq others: a message that was rejected has had its attempts" {
	run_mq 0 mq-publish q a
	run_mq 1 mq-consume -q --backoff 0s..0s --attempts 3 -n 3 q -- sh -c 'exit 75'
	run_mq 0 mq-stats --list rejected --jsonl q
	[[ $output == *'"attempts":3'* ]]
	# Receives there are no runs.
	node_receive q-rejected
	run_mq 0 mq-stats --list rejected --jsonl q
	[[ $output == *'"attempts":3'* ]]
	run_mq 0 mq-stats --id "$(ids q-rejected)" q
	assert_line --regexp '[Aa]ttempts? +3'
	run_mq 0 mq-return q
	run_mq 0 mq-stats --list ready --jsonl q
	[[ $output == *'"attempts":0'* ]]
}

# --- priorities, sizes, totals ----------------------------------------------------

@test "rsmq others: a priority counts when a delay is over, and at each attempt" {
	run_mq 0 mq-publish q ready
	run_mq 0 mq-publish -d 200ms q later-low
	run_mq 0 mq-publish -d 300ms -p 5 q later-high
	run_mq 0 mq-publish --vt 30 -p 7 q retried
	run_mq 75 mq-consume -q -n 1 q -- sh -c 'echo resend 1 >&3'
	all_due() { [ "$(redis zcount rsmq:q -inf "$(now_ms)")" = 4 ]; }
	eventually 5 all_due
	prints $'retried\nlater-high\nready\nlater-low' mq-consume -l -n 4 q
	assert_equal "$(redis --raw keys 'rsmq:q*' | sort | paste -sd' ')" 'rsmq:q:Q rsmq:q:Xcounters'
	# A queue's own delay is one, too; for node, by the cleaner.
	run_mq 0 mq-set q delay=1
	run_mq 0 mq-publish q low
	run_mq 0 mq-publish -p 1 q high
	both_due() { [ "$(redis zcount rsmq:q -inf "$(now_ms)")" = 2 ]; }
	eventually 5 both_due
	run_mq 0 mq-clean
	[[ $(node_receive q) == *" high 1" ]]
	# What is not started goes back to its place.
	run_mq 0 mq-publish -d 0s -p 9 q first
	run_mq 0 mq-publish -d 0s -p 8 q second
	hidden() { [ "$(redis hlen "rsmq:q:Xheld:$(redis --raw zrange rsmq::connections 0 -1)")" = 3 ]; }
	start_mq mq-consume --grace 0s --prefetch 5 q -- sleep 60
	eventually 10 hidden
	stop_mq
	mapfile -t first < <(ids q | head -n 2)
	assert_equal "$(redis --raw hmget rsmq:q:Q "${first[@]}" | paste -sd' ')" 'first second'
}

@test "rsmq others: what is too long for a queue is not moved there, and said so" {
	node_create small 30 1024
	fits=$(printf '😀%.0s' {1..512})
	long=$fits.
	run_mq 0 mq-publish q "$fits" "$long"
	run_mq 1 mq-consume -v -n 2 --push small q -- sh -c 'echo push >&3'
	[[ $stderr == *": rejected: push: too long for the queue small"* ]]
	assert_equal "$(redis zcard rsmq:small) $(redis zcard rsmq:q-rejected)" '1 1'
	assert_equal "$(counted q done failed) $(counted small published)" '1 1 1'
	run_mq 0 mq-stats --list rejected q
	assert_line --partial 'push: too long fo'
	run_mq 1 mq-return --to small q
	assert_output '0 messages returned'
	assert_equal "$stderr" "mq-return: small: 1 message stays: longer than its maxsize of 1024"
	run_mq 1 mq-return --dry-run --json --to small q
	[[ $output == *'"returned":0'*'"too_long":1'* ]]
	assert_equal "$(redis zcard rsmq:q-rejected)" 1
	# A new one takes what theirs does.
	run_mq 0 mq-publish --maxsize=-1 big "$(printf '%070000d' 0)"
	run_mq 1 mq-consume -q -n 1 big -- false
	run_mq 0 mq-return --to bigger big
	assert_equal "$(redis hget rsmq:bigger:Q maxsize)" -1
	# It was in this one before.
	run_mq 0 mq-set q maxsize=1024
	prints '1 message returned' mq-return q
}

@test "rsmq others: a name has room for that of its rejected ones" {
	name=$(printf '%0151d' 0)
	run_mq 0 mq-publish "$name" a
	run_mq 1 mq-consume -q -n 1 "$name" -- false
	run_mq 0 mq-stats "$name-rejected"
}
