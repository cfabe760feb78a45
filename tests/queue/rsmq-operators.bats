#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Stats, return, purge and clean in the layout of RSMQ.  What
# programs of RSMQ do is done here by node.bash.

# shellcheck disable=SC2016

load ../helpers/server
load ../helpers/node

setup() {
	export MQ_LAYOUT=rsmq
	common_setup
}

# json EXPRESSION: of jq, about each object that the output has, one a line.
json() {
	jq -c "$1" <<<"$output"
}

# says EXPRESSION VALUE TOOL...: that is what the tool says.
says() {
	run_mq 0 "${@:3}"
	assert_equal "$(json "$1")" "$2"
}

# cleans EXPRESSION VALUE [OPTION...]: a dry run says that, and then mq-clean.
cleans() {
	local before
	before=$(redis debug digest)
	says "$1" "$2" mq-clean --dry-run --json "${@:3}"
	assert_equal "$(redis debug digest)" "$before"
	says "$1" "$2" mq-clean --json "${@:3}"
}

ids() {
	redis --raw zrange "rsmq:$1" 0 -1
}

@test "rsmq publish: the same id again, and one of another form in a copy" {
	run_mq 0 mq-publish -i jobs a
	same='{"payload":"b","headers":{"Mq-Id":"'$output'"}}'
	run_mq 1 mq-publish --jsonl jobs <<<"$same"
	assert_equal "$stderr" "mq-publish: jobs: not published: another message has its id"
	run_mq 65 mq-publish --jsonl jobs <<<"${same/Id\":\"/Id\":\"-}"
	assert_regex "$stderr" '^mq-publish: record 1: Mq-Id: not an id'
	node_create theirs
	redis zadd rsmq:theirs 1 short-id >/dev/null
	redis hset rsmq:theirs:Q short-id c >/dev/null
	run_mq 0 mq-stats --list ready --jsonl theirs
	run_mq 0 mq-publish --jsonl jobs <<<"$output"
	state_is jobs "2 0 0 0 0"
}

@test "rsmq stats: what waits is told from what node has in hand; the attributes" {
	node_create jobs 7
	node_send jobs one 5000
	node_send jobs two 4000
	node_send jobs later 0 60000
	[[ $(node_receive jobs) == *"one 1" ]]
	# Of a port with milliseconds.
	redis hset rsmq:jobs:Q created 1795207725596 modified 1795207725596 >/dev/null
	run_mq 0 mq-stats jobs
	assert_line --regexp '^jobs +1 +1 +1 +0 +0 +[4-9]s'
	assert_output --partial "vt 7 s, delay 0 s, maxsize 65536; 3 sent, 1 received"
	says '.queues[0] | [.known, .ready, .delayed, .unacked, .rejected]' '[true,1,1,1,0]' mq-stats --json jobs
	[ "$(json '.queues[0].oldest_age_s >= 4 and .queues[0].oldest_age_s < 10')" = true ]
	[ "$(json '.queues[0].next_due_ms - .time_ms > 50000 and .queues[0].next_due_ms - .time_ms <= 60000')" = true ]
	assert_equal "$(json '.queues[0].attributes | [.vt, .delay, .maxsize, .totalsent, .totalrecv, .created, .modified]')" \
		'[7,0,65536,3,1,1795207725,1795207725]'
}

@test "rsmq stats: something else under a queue's key: 76 at the end, the others are shown" {
	local key
	for key in '' :Q -rejected :Xcounters; do
		run_mq 0 mq-publish jobs a
		run_mq 0 mq-publish other a
		redis del "rsmq:jobs$key" >/dev/null
		redis sadd "rsmq:jobs$key" mine >/dev/null
		run_mq 76 mq-stats
		assert_line --regexp '^jobs +\? +\? +\? +\? +\? +\?'
		assert_line --regexp '^other +1 +0 +0 +0 '
		assert_regex "$stderr" "[ :]jobs$key: the key holds another type\$"
		run_mq 0 mq-stats other
		redis flushall >/dev/null
	done
}

@test "rsmq stats: all queues of the namespace, and no names that cannot be" {
	no_cluster "there a namespace without braces is refused"
	node_create a
	node_create b
	redis sadd rsmq:QUEUES ghost 'no queue' x:y >/dev/null
	redis hset other:c:Q vt 30 delay 0 maxsize 65536 >/dev/null
	redis sadd other:QUEUES c >/dev/null
	says '[.queues[].name]' '["a","b","ghost"]' mq-stats --json
	MQ_URL="$MQ_URL?ns=other" run_mq 0 mq-stats --json
	[ "$(json '[.queues[] | [.name, .known]]')" = '[["other:c",true]]' ]
}

@test "rsmq stats: what was rejected is counted once in the total" {
	node_create q
	node_send q one
	node_send q two
	run_mq 1 mq-consume -n 1 -q q -- false
	node_create orphan-rejected
	node_send orphan-rejected three
	run_mq 0 mq-stats
	assert_equal "$(awk '{print $1, $2, $3, $4, $5}' <<<"$output")" \
		$'QUEUE READY DELAYED UNACKED REJECTED\norphan-rejected 1 0 0 0\nq 1 0 0 1\nq-rejected 1 0 0 0\nTOTAL 2 0 0 1'
	says '.totals | [.ready, .rejected]' '[2,1]' mq-stats --json
}

@test "rsmq stats: thousands that wait or are in somebody's hands are counted to the end" {
	node_create jobs
	redis eval "local now = redis.call('TIME')[1] * 1000
		for i = 1, 7000 do
			local id = 'hocj1kxhku' .. string.format('%022d', i)
			redis.call('ZADD', 'rsmq:jobs', now + 600000 + i, id)
			redis.call('HSET', 'rsmq:jobs:Q', id, i)
			if i % 7 ~= 0 then
				redis.call('HSET', 'rsmq:jobs:Q', id .. ':rc', 1)
			end
		end" 0
	says '[.queues[0].ready, .queues[0].delayed, .queues[0].unacked]' '[0,1000,6000]' mq-stats --json jobs
	[ "$(json '(.queues[0].next_due_ms % 1000)')" = 7 ]
	run_mq 0 mq-stats --list delayed --jsonl jobs
	[ "${#lines[@]}" = 1000 ]
	run_mq 0 mq-stats --list unacked --jsonl jobs
	[ "${#lines[@]}" = 6000 ]
	[ "$(json .id | sort -u | wc -l)" = 6000 ]
}

@test "rsmq stats: a priority does not make a message old" {
	"$BUILD/mq-publish" -p 50 jobs high
	"$BUILD/mq-publish" jobs plain
	says '.queues[0].oldest_age_s >= 0 and .queues[0].oldest_age_s < 30' true mq-stats --json jobs
	run_mq 0 mq-stats --list ready --jsonl jobs
	[ "$(json .payload | head -n 1)" = '"high"' ]
}

@test "rsmq stats: --id finds what node has in hand, and what is rejected" {
	node_create jobs
	id=$(node_send jobs one)
	says '[.state, .payload]' '["ready","one"]' mq-stats --id "$id" --json
	node_receive jobs
	says '[.state, .payload, .connection]' '["unacked","one",null]' mq-stats --id "$id" --json
	redis zadd rsmq:jobs 1 "$id"
	run_mq 1 mq-consume -q -n 1 jobs -- false
	run_mq 0 mq-stats --id "$id" --json jobs
	[ "$(json '[.state, .queue, .reason]')" = '["rejected","jobs","exit status 1"]' ]
}

@test "rsmq stats: foreign ids, and messages with equal scores, are each seen once" {
	node_create jobs
	redis eval "for i = 1, 3000 do
			local id = i % 3 == 0 and 'short-' .. i or i % 3 == 1 and 'ÄÖ' .. i or 'z:' .. i
			redis.call('ZADD', 'rsmq:jobs', 5, id)
			redis.call('HSET', 'rsmq:jobs:Q', id, i)
		end" 0
	run_mq 0 mq-stats --list ready --jsonl jobs
	[ "${#lines[@]}" = 3000 ]
	[ "$(json .payload | sort -u | wc -l)" = 3000 ]
}

@test "rsmq stats: our consumer, its connection and what runs there" {
	node_create jobs
	id=$(node_send jobs one)
	script slow <<-'E'
		echo "run half way" >&3
		echo started >"$0.started"
		read -r _ <"$0.go"
		echo done >&3
	E
	mkfifo "$T/slow.go"
	start_mq mq-consume --tag me jobs -- "$T/slow"
	eventually 10 test -s "$T/slow.started"
	says '.connections | length' 1 mq-stats --connections --json jobs
	[ "$(json '[(.connections[0].queues[0].queue | sub("^.*:"; "")), .connections[0].queues[0].unacked, .connections[0].queues[0].consumers]')" = '["jobs",1,1]' ]
	run_mq 0 mq-stats --list unacked --jsonl jobs
	connection=$(json .connection | tr -d '"')
	[[ $connection == me-* ]]
	eventually 10 eval '"$BUILD/mq-stats" --running --json | grep -q "half way"'
	run_mq 75 mq-return --from "unacked:$connection" jobs
	echo >"$T/slow.go"
	eventually 10 state_is jobs "0 0 0 0 1"
	stop_mq
}

@test "rsmq return: rejected messages come back with their headers and begin anew" {
	run_mq 0 mq-publish -i -H 'X-Color: red' jobs one
	id=$output
	run_mq 1 mq-consume -q -n 1 jobs -- false
	[ "$(redis sismember rsmq:QUEUES jobs-rejected)" = 1 ]
	[ "$(redis hget rsmq:jobs-rejected:Q "$id")" = one ]
	prints '1 message would be returned' mq-return --dry-run jobs
	prints '1 message returned' mq-return jobs
	assert_equal "$(redis hget rsmq:jobs:Q "$id") $(redis hexists rsmq:jobs:Q "$id:rc")" "one 0"
	# It was not sent again.
	[ "$(redis hget rsmq:jobs:Q totalsent)" = 1 ]
	[ "$(redis hlen rsmq:jobs-rejected:X)" = 0 ]
	[ "$(redis hexists rsmq:jobs-rejected:Q "$id")" = 0 ]
	# A priority is honoured again.
	run_mq 0 mq-publish -p 9 jobs high
	run_mq 1 mq-consume -q -n 1 jobs -- false
	run_mq 0 mq-return jobs
	[[ $(node_receive jobs) == *" high 1" ]]
	run_mq 0 mq-consume -n 1 --jsonl jobs
	[ "$(json '[.attempt, .headers["X-Color"][0], .headers["Mq-Error"][0]]')" = '[1,"red","exit status 1"]' ]
	run_mq 1 mq-return jobs
}

@test "rsmq return: what node has put into NAME-rejected, into another queue" {
	node_create jobs-rejected
	node_send jobs-rejected a 3000 >/dev/null
	b=$(node_send jobs-rejected b 2000)
	node_receive jobs-rejected
	redis zadd rsmq:jobs-rejected 1 "$(ids jobs-rejected | tail -n 1)" >/dev/null
	prints '1 message returned' mq-return --id "$b" --to other jobs
	assert_equal "$(redis hget rsmq:other:Q "$b") $(redis hget rsmq:other:Q totalsent)" "b 1"
	prints '1 message returned' mq-return jobs
	assert_equal "$(redis hget rsmq:jobs:Q vt) $(redis sismember rsmq:QUEUES jobs)" "30 1"
	[[ $(node_receive jobs) == *" a 1" ]]
}

@test "rsmq return: what waits, and what is with no consumer of ours, as if not received" {
	node_create jobs
	node_send jobs a 3000
	node_send jobs b 2000
	first=$(node_receive jobs 9000000)
	node_receive jobs 9000000
	node_send jobs ours 1000
	run_mq 0 mq-lease --for 60s --jsonl jobs
	node_send jobs later 0 60000
	node_send jobs never 0 6000000
	prints '1 message returned' mq-return --from delayed --match later jobs
	state_is jobs "1 1 3 0 1"
	prints '1 message returned' mq-return --from delayed jobs
	state_is jobs "2 0 3 0 1"
	prints '2 messages would be returned' mq-return --dry-run --from unacked:- jobs
	prints '1 message returned' mq-return --from unacked:- -n 1 jobs
	state_is jobs "3 0 2 0 1"
	prints '1 message returned' mq-return --from unacked:- jobs
	state_is jobs "4 0 1 0 1"
	[ "$(node_receive jobs)" = "$first" ]
	[ "$(redis hexists rsmq:jobs:Q "$(ids jobs | tail -n 1):fr")" = 1 ]
}

@test "rsmq purge: messages go with all that is known of them, the queue stays" {
	node_create jobs
	redis hset rsmq:jobs:Q createdby somebody >/dev/null
	node_send jobs a
	node_send jobs b 0 60000
	node_send jobs c 9000
	node_receive jobs
	run_mq 0 mq-publish -H 'X-A: b' jobs d
	prints '2 messages purged' mq-purge --force --ready jobs
	state_is jobs "0 1 1 0 0"
	prints '1 message purged' mq-purge --force --all jobs
	[ "$(redis hlen rsmq:jobs:X)" = 0 ]
	[ "$(redis --raw hkeys rsmq:jobs:Q | sort | paste -sd' ')" = \
		"$(printf '%s\n' created createdby delay maxsize modified totalrecv totalsent vt "$(ids jobs){,:fr,:rc}" | while read -r k; do eval "printf '%s\n' $k"; done | sort | paste -sd' ')" ]
}

@test "rsmq purge: thousands, some of them by what they are" {
	node_create jobs
	redis eval "for i = 1, 5000 do
			local id = 'hocj1kxhku' .. string.format('%022d', i)
			redis.call('ZADD', 'rsmq:jobs', i, id)
			redis.call('HSET', 'rsmq:jobs:Q', id, i % 2 == 0 and 'even' or 'odd')
		end" 0
	prints '2500 messages purged' mq-purge --force --ready --match even jobs
	prints '2500 messages purged' mq-purge --force --ready jobs
	assert_equal "$(redis exists rsmq:jobs) $(redis hlen rsmq:jobs:Q)" "0 5"
}

@test "rsmq purge: the whole queue, but not under a consumer" {
	node_create jobs
	node_send jobs a
	run_mq 0 mq-publish -H 'X-A: b' jobs b
	run_mq 1 mq-consume -q -n 1 jobs -- false
	start_mq mq-consume --tag me jobs -- sleep 60
	eventually 10 state_is jobs "0 0 1 1 1"
	run_mq 75 mq-purge --force --delete-queue jobs
	stop_mq INT
	stop_mq INT || true
	eventually 10 state_is jobs "1 0 0 1 0"
	run_mq 0 mq-lease --for 1m jobs
	receipt=$(json .receipt)
	run_mq 75 mq-purge --force --delete-queue jobs
	assert_regex "$stderr" 'mq-lease until the lease mq-lease-[[:alnum:]]{6} ends, in [0-9]+ s; '
	run_mq 0 mq-lease --return "${receipt//\"/}" jobs
	prints '2 messages would be purged, and the queue deleted' mq-purge --force --delete-queue --dry-run jobs
	node_receive jobs
	run_mq 75 mq-purge --force --delete-queue jobs
	run_mq 0 mq-return --from unacked:- jobs
	prints '2 messages purged, and the queue deleted' mq-purge --force --delete-queue jobs
	[ "$(redis --raw keys '*' | grep -v '^rsmq::')" = '' ]
	run_mq 1 mq-purge --force --delete-queue jobs
}

@test "rsmq clean: nothing to do for what is whole, and nothing is changed" {
	node_create jobs
	node_send jobs a 900000
	node_send jobs b 900000 1800000
	node_send jobs c 900000
	node_receive jobs
	redis hset rsmq:jobs:Q createdby somebody >/dev/null
	before=$(redis debug digest)
	cleans '[.connections, .rejected, .adopted, .orphans, .expired]' '[0,0,0,0,0]'
	forget_past
	[ "$(redis debug digest)" = "$before" ]
}

@test "rsmq clean: a body that no member leads to is a message again" {
	node_create jobs
	id=$(node_send jobs lost 120000)
	young=$(node_send jobs young)
	redis del rsmq:jobs >/dev/null
	cleans .adopted 1
	[ "$(ids jobs)" = "$id" ]
	[ "$(redis hget rsmq:jobs:Q "$young")" = young ]
	[ "$(node_receive jobs)" = "$id lost 1" ]
}

@test "rsmq clean: what node leaves behind of ours, and counts of what is gone" {
	run_mq 0 mq-publish -i -H 'X-A: b' jobs one
	id=$output
	run_mq 0 mq-publish -i -H 'X-A: b' jobs stays
	node_receive jobs >/dev/null
	redis hset rsmq:jobs:Xagain "$id" '1 1' >/dev/null
	node_delete jobs "$id"
	redis hset rsmq:jobs:Q "$id:rc" 3 >/dev/null
	redis hset rsmq:jobs:Q "$id:fr" 3 >/dev/null
	says .orphans 4 mq-clean --json
	assert_equal "$(redis hlen rsmq:jobs:X) $(redis exists rsmq:jobs:Xagain)" "1 0"
	state_is jobs "1 0 0 0 0"
}

@test "rsmq clean: names and keys of queues that are not there, and queues that nobody lists" {
	node_create jobs
	node_send jobs a
	redis srem rsmq:QUEUES jobs >/dev/null
	redis sadd rsmq:QUEUES ghost >/dev/null
	redis hset rsmq:gone:X id '"A":["b"]' >/dev/null
	redis hset rsmq:gone:Xcounters runs 1 >/dev/null
	# Sent while node deleted the queue.
	node_send torn b >/dev/null
	# Of another namespace.
	redis zadd rsmq:ns:X 1 id >/dev/null
	redis zadd rsmq:ns:Q 1 id >/dev/null
	redis set rsmq:ns:Xrate text >/dev/null
	cleans '[.adopted, .orphans]' '[2,3]'
	[ "$(redis --raw smembers rsmq:QUEUES | sort | paste -sd' ')" = 'jobs torn' ]
	[ "$(redis --raw keys 'rsmq:gone*')" = '' ]
	[ "$(redis --raw keys 'rsmq:ns:*' | wc -l)" = 3 ]
	[[ $(node_receive torn) == *" b 1" ]]
	says '[.adopted, .orphans]' '[0,0]' mq-clean --json
}

@test "rsmq clean: what no consumer survives is rejected, with the reason" {
	run_mq 0 mq-publish -i -H 'X-A: b' jobs poison
	id=$output
	run_mq 0 mq-publish jobs good
	redis hset rsmq:jobs:Q "$id:rc" 3 "$id:fr" 1 >/dev/null
	says .rejected 0 mq-clean --attempts 4 --json
	cleans .rejected 1 --attempts 3
	state_is jobs "1 0 0 1 0"
	[ "$(redis hget rsmq:jobs-rejected:Q "$id")" = poison ]
	run_mq 0 mq-stats --list rejected --jsonl jobs
	[ "$(json .reason)" = '"attempts exhausted: its consumer died while it ran"' ]
	[ "$(json '.headers["X-A"][0]')" = '"b"' ]
	[ "$(redis hget rsmq:jobs:Xcounters crashed)" = 1 ]
	[ "$(redis hget rsmq:jobs:Xcounters failed)" = 1 ]
}

@test "rsmq clean, return: what moves keeps its order, whatever its ids are" {
	seq 120 | run_mq 0 mq-publish -l jobs
	redis eval 'for i, id in ipairs(redis.call("ZRANGE", KEYS[1], 0, -1)) do
		redis.call("ZADD", KEYS[1], 1000 - i, id)
		redis.call("HSET", KEYS[1] .. ":Q", id .. ":rc", 15, id .. ":fr", 1)
	end' 1 rsmq:jobs
	cleans .rejected 120
	run_mq 0 mq-stats --list rejected -l jobs
	assert_equal "$output" "$(seq 120 -1 1)"
	prints '120 messages returned' mq-return jobs
	run_mq 0 mq-consume --drain -l jobs
	assert_equal "$output" "$(seq 120 -1 1)"
}

@test "rsmq clean: what is in hand, or waits on purpose, or is none of ours, is not rejected" {
	node_create theirs
	for ((i = 0; i < 20; i++)); do
		node_send theirs x >/dev/null
		node_receive theirs 0 >/dev/null
	done
	redis hset rsmq:theirs:Q "$(ids theirs | head -n 1):rc" 20 >/dev/null
	run_mq 0 mq-publish -i jobs held
	redis hset rsmq:jobs:Q "$output:rc" 20 >/dev/null
	node_receive jobs >/dev/null
	run_mq 0 mq-publish -i jobs waits
	redis hset rsmq:jobs:Q "$output:rc" 20 "$output:fr" 1 >/dev/null
	redis hset rsmq:jobs:Xagain "$output" '20 1' >/dev/null
	says .rejected 0 mq-clean --json
	state_is theirs "20 0 0 0 0"
}

@test "rsmq clean: a queue's messages have the runs that its consumers allow" {
	local q
	run_mq 0 mq-consume --attempts 30 --idle 1ms jobs -- true
	run_mq 0 mq-consume --attempts 3 --idle 1ms jobs few -- true
	for q in jobs few; do
		run_mq 0 mq-publish -i "$q" x
		redis hset "rsmq:$q:Q" "$output:rc" 20 >/dev/null
	done
	says .rejected 1 mq-clean --attempts 1 --json
	state_is jobs "1 0 0 0 0"
	state_is few "0 0 0 1 0"
}

@test "rsmq clean: dead connections are forgotten" {
	node_create jobs
	redis zadd rsmq::connections 0 dead >/dev/null
	start_mq mq-consume --tag me jobs -- true
	eventually 10 state_is jobs "0 0 0 0 1"
	says .connections 1 mq-clean --json
	[[ $(redis --raw zrange rsmq::connections 0 -1) == me-* ]]
	stop_mq
	[ "$(redis exists rsmq::connections)" = 0 ]
}

@test "rsmq clean: a consumer forgets the dead among the holders of its queue, in its namespace" {
	no_cluster "there a namespace without braces is refused"
	export MQ_URL="$MQ_URL?ns=shop"
	run_mq 0 mq-set -q --create q
	redis zadd shop::connections 1 dead >/dev/null
	redis hset shop:q:Xholders dead dead >/dev/null
	run_mq 0 mq-consume -q --idle 10ms q
	assert_equal "$(redis exists shop:q:Xholders)" 0
}

@test "rsmq clean: old members without a body go, whatever another queue is" {
	node_create aaa
	redis set rsmq:aaa text >/dev/null
	node_create jobs
	old=$(node_send jobs a 120000)
	young=$(node_send jobs b)
	redis hdel rsmq:jobs:Q "$old" "$young" >/dev/null
	node_receive jobs >/dev/null
	run_mq 76 mq-clean --json
	[ "$(json .orphans)" = 1 ]
	[ "$(ids jobs)" = "$young" ]
	[ "$(redis hexists rsmq:jobs:Q "$old:rc")" = 0 ]
}

# retried QUEUE [ARGS...]: one that waits for another run; id is set.
retried() {
	run_mq 0 mq-publish -i "${@:2}" "$1" a
	id=$output
	run_mq 75 mq-consume -q --attempts 2 -n 1 "$1" -- sh -c 'echo resend 3600 >&3'
	eventually 10 state_is "$1" "0 1 0 0 0"
}

# node_has QUEUE [ARGS...]: and then node receives it.
node_has() {
	retried "$@"
	redis zadd "rsmq:$1" -inf "$id" >/dev/null
	[ "$(node_receive "$1" 600000)" = "$id a 2" ]
}

@test "rsmq hands: what node receives after a retry of ours is in its hands, and nobody takes it" {
	node_has jobs
	state_is jobs "0 0 1 0 0"
	says '[.state, .attempts, .connection]' '["unacked",1,null]' mq-stats --id "$id" --json
	says '[.queues[0].delayed, .queues[0].next_due_ms]' '[0,null]' mq-stats --json jobs
	run_mq 1 mq-stats --list delayed jobs
	says .id "\"$id\"" mq-stats --list unacked --jsonl jobs
	# Changing how long does not change whose it is.
	redis zadd rsmq:jobs $(($(now_ms) + 9000000)) "$id" >/dev/null
	state_is jobs "0 0 1 0 0"
	run_mq 1 mq-return --dry-run --from delayed jobs
	run_mq 1 mq-return --from delayed jobs
	run_mq 1 mq-return --from delayed --match a jobs
	run_mq 1 mq-purge --force --delayed jobs
	run_mq 1 mq-purge --force --delayed --match a jobs
	run_mq 1 mq-purge --force --all jobs
	run_mq 75 mq-purge --force --delete-queue jobs
	state_is jobs "0 0 1 0 0"
	[ "$(redis hget rsmq:jobs:Q "$id")" = a ]
	prints '1 message returned' mq-return --from unacked:- jobs
	state_is jobs "1 0 0 0 0"
	[ "$(redis exists rsmq:jobs:Xagain)" = 0 ]
	[ "$(node_receive jobs)" = "$id a 2" ]
}

@test "rsmq hands: what waits does so until somebody receives it, whenever that may be" {
	retried jobs
	redis zadd rsmq:jobs $(($(now_ms) + 9000000)) "$id" >/dev/null
	state_is jobs "0 1 0 0 0"
	redis zadd rsmq:jobs 1 "$id" >/dev/null
	redis hset rsmq:jobs:Xcounters attempts 1 >/dev/null
	says .rejected 0 mq-clean --json
	node_receive jobs 0
	says .rejected 1 mq-clean --json
}

@test "rsmq hands: a cleaner does not reject what is too late while node has it" {
	node_has jobs -e 1h
	redis hset rsmq:jobs:X "$id" '"Mq-Expires":["1"]' >/dev/null
	says '[.rejected, .expired]' '[0,0]' mq-clean --json
	redis zadd rsmq:jobs 1 "$id" >/dev/null
	says '[.rejected, .expired]' '[0,1]' mq-clean --json
	says '[.payload, .reason]' '["a","expired"]' mq-stats --list rejected --jsonl jobs
}

@test "rsmq hands: a priority whose delay is over, and the run of a message that is taken by its id" {
	node_has jobs -p 5
	score=$(redis zscore rsmq:jobs "$id")
	redis zadd rsmq:jobs:Xlater 1 "$id" >/dev/null
	run_mq 0 mq-clean
	[ "$(redis zscore rsmq:jobs "$id") $(redis exists rsmq:jobs:Xlater)" = "$score 0" ]
	run_mq 0 mq-lease --reject "$id" --text no jobs
	says .attempts 2 mq-stats --list rejected --jsonl jobs
}

@test "rsmq hands: one of its id that comes when it is gone is another one" {
	retried jobs
	node_delete jobs "$id"
	run_mq 0 mq-publish --jsonl jobs <<<"{\"payload\":\"b\",\"headers\":{\"Mq-Id\":[\"$id\"]}}"
	[ "$(node_receive jobs)" = "$id b 1" ]
	state_is jobs "0 0 1 0 0"
}

# leased QUEUE BODY...: by receipt, for an hour; ids are set, connection too.
leased() {
	node_create "$1"
	run_mq 0 mq-publish -i "$@"
	ids=("${lines[@]}")
	run_mq 0 mq-lease --for 1h --jsonl -n "${#ids[@]}" "$1"
	mapfile -t receipts < <(json .receipt | tr -d '"')
	connection=$(redis --raw zrange rsmq::connections 0 -1)
}

@test "rsmq hands: what node receives, or deletes, is not with the connection that had it before" {
	leased jobs a b c
	node_delete jobs "${ids[2]}"
	redis zadd rsmq:jobs 1 "${ids[0]}" >/dev/null
	[ "$(node_receive jobs 7200000)" = "${ids[0]} a 2" ]
	says '.connections[0].queues[0].unacked' 1 mq-stats --connections --json jobs
	run_mq 0 mq-stats --list unacked --jsonl jobs
	assert_equal "$(json '[.id, .connection]' | sort)" \
		"$(printf '%s\n' "[\"${ids[0]}\",null]" "[\"${ids[1]}\",\"$connection\"]" | sort)"
	prints '1 message would be returned' mq-return --dry-run --from unacked:- jobs
	prints '1 message would be returned' mq-return --dry-run --match . --from unacked:- jobs
	prints '1 message returned' mq-return --from unacked:- jobs
	state_is jobs "1 0 1 0 1"
	[ "$(node_receive jobs 600000)" = "${ids[0]} a 2" ]
	# Nor does it keep its connection when the last one has ended.
	run_mq 0 mq-lease --ack "${receipts[1]}" jobs
	[ "$(redis --raw keys 'rsmq:*:Xheld:*')$(redis exists rsmq::connections)" = 0 ]
}

@test "rsmq hands: nor is what a killed consumer had, and what a queue made anew has" {
	node_create jobs
	node_send jobs a >/dev/null
	start_mq mq-consume --tag me jobs -- sleep 60
	eventually 10 state_is jobs "0 0 1 0 1"
	stop_mq KILL || true
	connection=$(redis --raw zrange rsmq::connections 0 -1)
	redis del "rsmq::connection:$connection" >/dev/null
	redis zadd rsmq:jobs 1 "$(ids jobs)" >/dev/null
	[[ $(node_receive jobs 600000) == *" a 2" ]]
	[ "$(redis exists "rsmq:jobs:Xheld:$connection")" = 1 ]
	prints '1 message would be returned' mq-return --dry-run --from unacked:- jobs
	prints '1 message returned' mq-return --from unacked:- jobs
	redis del rsmq:jobs rsmq:jobs:Q >/dev/null
	node_create jobs
	node_send jobs b >/dev/null
	node_receive jobs 600000
	prints '1 message would be returned' mq-return --dry-run --from unacked:- jobs
}

@test "rsmq move: nothing is lost or doubled while node receives and deletes" {
	node_create jobs
	redis eval "for i = 1, 4000 do
			local id = 'hocj1kxhku' .. string.format('%022d', i)
			redis.call('ZADD', 'rsmq:jobs-rejected', i, id)
			redis.call('HSET', 'rsmq:jobs-rejected:Q', id, i)
		end
		redis.call('HSET', 'rsmq:jobs-rejected:Q', 'vt', 30, 'delay', 0, 'maxsize', 65536)" 0
	(while :; do node_receive jobs-rejected 100; done >/dev/null 2>&1) 3>&- &
	peer=$!
	run_mq 0 mq-return --match '[02468]$' jobs
	run_mq 0 mq-return jobs
	kill "$peer"
	wait "$peer" || true
	[ "$(($(redis zcard rsmq:jobs) + $(redis zcard rsmq:jobs-rejected)))" = 4000 ]
	[ "$({
		redis --raw hvals rsmq:jobs:Q
		# shellcheck disable=SC2046 # ids are words
		redis --raw hmget rsmq:jobs-rejected:Q $(ids jobs-rejected) none
	} | grep -E '^[0-9]+$' | sort -u | wc -l)" -ge 4000 ]
}
