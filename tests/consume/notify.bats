#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-consume --notify: how each message has ended, as a message of another queue.

load ../helpers/server
load ../helpers/consume

# notices: each on a line, in the order of the ends, without times.
notices() {
	"$BUILD/mq-consume" -q --drain -l ends |
		sed -E 's/,"host":"[^"]*"//; s/,"finished_ms":[0-9]+//'
}

@test "notify: done, rejected and pushed, each once, to one who waits for it" {
	local -a ids
	run_mq 0 mq-publish -i q yes no on
	ids=("${lines[@]}")
	start_mq mq-consume -n 3 ends -- sh -c 'echo "$MQ_HEADER_MQ_NOTICE $(cat)"'
	script works <<-'E'
		case $(cat) in
		yes) echo done fine >&3 ;;
		no) echo err bad >&3 ;;
		on) echo push >&3 ;;
		esac
	E
	run_mq 1 mq-consume --drain -q --notify ends --push p q -- "$T/works"
	ends_with 0
	assert_equal "$(held q) $(held p) $(held ends)" "0 0 0 1 1 0 0 0 0 0 0 0"
	run sed -E 's/,"host":"[^"]*"//; s/,"finished_ms":[0-9]+//; s/,"seconds":[0-9.]+,/,"seconds":S,/' "$T/out"
	assert_line 'q {"id":"'"${ids[0]}"'","queue":"q","state":"done","text":"fine","status":0,"seconds":S,"attempts":1}'
	assert_line 'q {"id":"'"${ids[1]}"'","queue":"q","state":"rejected","text":"bad","status":0,"seconds":S,"attempts":1}'
	assert_line 'q {"id":"'"${ids[2]}"'","queue":"q","state":"pushed","seconds":S,"attempts":1,"to":"p"}'
	assert_equal "${#lines[@]}" 3
}

@test "notify: while a right is missing for it, the message has not ended either" {
	[[ $(redis-server --version) != *v=6.* ]] || skip "Redis 6.2 cannot tell what is permitted"
	redis acl setuser some reset on '>pw' allkeys allchannels +@all >/dev/null
	run_mq 0 mq-publish q x
	start_mq mq-consume -u "$(url_as some:pw)" --keep 1h --notify ends q -- \
		sh -c 'until [ -e "$T/go" ]; do sleep 0.05; done'
	eventually 10 held_is q "0 0 1 0"
	redis acl setuser some -del >/dev/null
	touch "$T/go"
	eventually 10 grep -q "NOPERM.*'del'" "$T/err"
	assert_equal "$(held q) $(held ends)" "0 0 1 0 0 0 0 0"
	redis acl setuser some +del >/dev/null
	eventually 10 held_is ends "1 0 0 0"
	assert_equal "$(held q)" "0 0 0 0"
	# Without the lease, nobody hears of an end that does not count.
	rm "$T/go"
	run_mq 0 mq-publish q x
	eventually 10 held_is q "0 0 1 0"
	redis eval 'for _, k in ipairs(redis.call("KEYS", "*unacked")) do
		redis.call("DEL", k) end' 0 >/dev/null
	: >"$T/go"
	eventually 10 grep -q 'lease lost' "$T/err"
	stop_mq
	assert_equal "$(held ends)" "1 0 0 0"
	redis acl deluser some >/dev/null
}

@test "notify: printed messages, raw ones, many; batches, streams, with keys and groups" {
	seq 100 | run_mq 0 mq-publish -l q
	run_mq 0 mq-publish --raw q raw
	run_mq 0 mq-consume --drain -q -l --notify ends q
	assert_equal "$(held ends)" "101 0 0 0"
	# On a cluster, what arrives from another queue is not counted.
	[ "${TOPOLOGY-}" = cluster ] ||
		assert_equal "$(redis hget 'rmq::queue::[ends]::counters' published)" 101
	run notices
	assert_equal "$(grep -c '"state":"done"' <<<"$output")" 101
	publish {1..20}
	run_mq 0 mq-publish -k a -g b q one
	run_mq 0 mq-consume --drain -q --batch 5 --notify ends q -- cat
	assert_equal "$(held ends)" "21 0 0 0"
	publish {1..20}
	run_mq 0 mq-publish -k a -g b q one
	run_mq 0 mq-consume --drain -q --stream --keep 1h --notify ends q -- \
		sh -c 'while read -r line; do echo "done $line" >&3; done'
	assert_equal "$(held ends) $(redis hlen 'rmq::queue::[q]::locks')" "42 0 0 0 0"
	# A notice notifies nobody.
	run_mq 0 mq-consume --drain -q --notify q ends -- true
	assert_equal "$(held ends) $(held q)" "0 0 0 0 0 0 0 0"
}

@test "notify: a retry is no end; attempts that run out, and an expiry, are" {
	run_mq 0 mq-publish q x
	run_mq 75 mq-consume -n 1 -q --backoff 0s..0s --notify ends q -- sh -c 'exit 75'
	assert_equal "$(held ends)" "0 0 0 0"
	run_mq 1 mq-consume -n 1 -q --attempts 2 --notify ends q -- sh -c 'exit 75'
	run notices
	assert_regex "$output" '"state":"rejected".*attempts exhausted.*"attempts":2'
	run_mq 0 mq-publish -e 1ms q late
	read -rt 0.05 <> <(:) || true
	run_mq 1 mq-consume --drain -q --no-clean --notify ends q -- true
	run notices
	assert_regex "$output" '"state":"expired"'
}

@test "notify: a large message" {
	head -c 3000000 /dev/zero | run_mq 0 mq-publish q
	run_mq 1 mq-consume --drain -q --notify ends q -- sh -c 'echo err large >&3'
	assert_equal "$(held ends) $(held q)" "1 0 0 0 0 0 0 1"
	head -c 3000000 /dev/zero | run_mq 0 mq-publish q
	run_mq 0 mq-consume --drain -q --push p --notify ends q -- sh -c 'echo push >&3'
	assert_equal "$(held ends) $(held p)" "2 0 0 0 1 0 0 0"
}

@test "notify: refused at once" {
	[ "${TOPOLOGY-}" = cluster ] ||
		run_mq 64 mq-consume -L rsmq --notify p q -- true
	redis set 'rmq::queue::[ends]::ready' text >/dev/null
	run_mq 76 mq-consume --notify ends q -- true
	assert_regex "$stderr" ends
}

@test "notify: --existing, and a queue that is not there yet" {
	run_mq 0 mq-publish q x
	run_mq 1 mq-consume --existing --notify ends q -- true
	assert_equal "$stderr" "mq-consume: ends: no such queue"
	run_mq 0 mq-consume -v --drain --notify ends q -- true
	assert_equal "${stderr_lines[0]}" "mq-consume: ends: no such queue yet; --notify creates it"
	run_mq 0 mq-stats ends
}

@test "notify: killed at any time, each end that counts is told, and no other" {
	local i n=60
	seq $n | run_mq 0 mq-publish -l q
	for i in 1 2 3 4 5 6; do
		start_mq mq-consume -q -j 4 --attempts 99 --notify ends q -- sleep 0.02
		read -rt "0.$((1 + i % 3))" <> <(:) || true
		stop_mq KILL
		run_mq 0 mq-clean -q
	done
	run_mq 0 mq-consume -q -j 4 --drain --attempts 99 --notify ends q -- true
	run notices
	assert_equal "${#lines[@]}" "$n"
	assert_equal "$(grep -o '"id":"[^"]*"' <<<"$output" | sort -u | wc -l)" "$n"
}

# The leases of all that are dead are over.
lapse() {
	no_cluster "the keys of leases are on all nodes"
	redis eval 'for _, k in ipairs(redis.call("KEYS", "*::heartbeat")) do
		redis.call("DEL", k) end' 0 >/dev/null
}

@test "notify: a cleaner tells of the last crash that a message may have, and of no other" {
	local how
	run_mq 0 mq-publish -i q poison
	id=$output
	for how in 0 1; do
		rm -f "$T/runs"
		start_mq mq-consume -q --attempts 2 --notify ends q -- sh -c ': >"$T/runs"; exec sleep 600'
		eventually 10 test -e "$T/runs"
		stop_mq KILL
		assert_equal "$(held ends)" "0 0 0 0"
		[ $how = 0 ] || run_mq 0 mq-publish -q ends before
		lapse
		run_mq 0 mq-clean -q
		[ $how = 1 ] || assert_equal "$(held q) $(held ends)" "1 0 0 0 0 0 0 0"
	done
	assert_equal "$(held q) $(held ends)" "0 0 0 1 2 0 0 0"
	run notices
	assert_equal "${lines[0]}" before
	assert_regex "${lines[1]}" \
		'^\{"id":"'"$id"'","queue":"q","state":"rejected","text":"[^"]*","attempts":2\}$'
	run_mq 0 mq-clean -q
	assert_equal "$(held ends)" "0 0 0 0"
}

@test "notify: a dead consumer of Go's costs the queue of notices nothing" {
	no_cluster "Go has no connection there"
	run_mq 0 mq-set -q --create q notify=ends attempts=1
	run_mq 0 mq-publish ends kept
	redis sadd rmq::connections go-1 >/dev/null
	redis sadd rmq::connection::go-1::queues q >/dev/null
	redis sadd 'rmq::connection::go-1::queue::[q]::consumers' c >/dev/null
	redis lpush 'rmq::connection::go-1::queue::[q]::unacked' x >/dev/null
	run_mq 0 mq-clean -q
	run_mq 0 mq-clean -q
	assert_equal "$(redis sismember rmq::connections go-1)" 0
	assert_equal "$(held q) $(held ends)" "1 0 0 0 1 0 0 0"
}
