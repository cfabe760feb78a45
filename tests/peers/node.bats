#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The layout of RSMQ, with the rsmq of npm on the other side: whatever one side
# puts in, the other one gets out, and each counts what the other one does.  The
# cases are those of rsmq's own tests, and the traps of its code.
#
# needs: node

load ../helpers/server

setup_file() {
	"$root/tests/deps.sh" --npm "$root/build/node"
	server_start
	export NODE_PATH=$root/build/node/node_modules RSMQ_SOCKET=$D/redis.sock
	mkfifo "$D/ask" "$D/answer"
	node "$BATS_TEST_DIRNAME/rsmq.js" serve "$D/ask" "$D/answer" 3>&- &
	echo $! >"$D/node.pid"
}

teardown_file() {
	[ ! -e "$D/node.pid" ] || kill "$(<"$D/node.pid")"
	server_stop
}

setup() {
	no_cluster "npm's rsmq passes times as keys, and a cluster refuses that"
	common_setup
	exec {ask}<>"$D/ask" {answer}<>"$D/answer"
	unset RSMQ_NS RSMQ_REALTIME
	export MQ_LAYOUT=rsmq
}

# A process of its own, for what takes long, or is not one line of text.
node_rsmq() {
	timeout -k 5 180 node "$BATS_TEST_DIRNAME/rsmq.js" "$@"
}

# ask_node METHOD...: one operation; sets status and output.
ask_node() {
	local IFS=$'\t'
	printf '%s\n' "${RSMQ_NS-}$IFS${RSMQ_REALTIME-}$IFS$*" >&"$ask"
	IFS=' ' read -rt 180 -u "$answer" status output
}

# run_node STATUS METHOD...
run_node() {
	ask_node "${@:2}" || return
	if [ "$status" != "$1" ]; then
		echo "rsmq.js ${*:2}: exit status $status, not $1: $output"
		return 1
	fi
}

# says WHAT METHOD...: what node's operation returns.
says() {
	run_node 0 "${@:2}" && assert_equal "$output" "$1"
}

# attributes QUEUE: what node says, but for the times.
attributes() {
	local status output
	ask_node getQueueAttributes qname="$1"
	[[ $output =~ \"created\":[0-9]+,\"modified\":[0-9]+, ]]
	echo "${output/"${BASH_REMATCH[0]}"/}"
}

attributes_are() {
	[ "$(attributes "$1")" = "$2" ]
}

# What is there of a queue, ids and times being alike.
shape() {
	{
		redis zrange "rsmq:$1" 0 -1
		redis hgetall "rsmq:$1:Q"
	} | sed -E 's/[0-9a-z]{10}[A-Za-z0-9]{22}/ID/; s/^[0-9]{10}([0-9]{3})?$/TIME/'
}

# first_id QUEUE [INDEX]
first_id() {
	redis zrange "rsmq:$1" "${2:-0}" "${2:-0}"
}

# --- what node sends ----------------------------------------------------------

# snippet PAGE: the program that the page begins with.
snippet() {
	sed -n '/^\.Bd -literal$/,/^\.Ed/p' "$root/man/$1" |
		sed -n '/^\.Ed/q;/^\./!p'
}

@test "the program of mq-rsmq(7) publishes, and consumes" {
	snippet mq-rsmq.7 | sed 's/{host: .*})/{path: process.env.RSMQ_SOCKET})/' >"$T/p.js"
	assert_equal "$(timeout 60 node "$T/p.js")" hello
	run_mq 0 mq-publish jobs first
	assert_equal "$(timeout 60 node "$T/p.js")" first
	prints hello mq-consume -n 1 jobs
}

@test "the program of mq-go(7) is one" {
	snippet mq-go.7 >"$T/main.go"
	grep -q StopAllConsuming "$T/main.go"
	! command -v gofmt || gofmt -e "$T/main.go" >/dev/null
}

@test "node sends, a script gets it, and nothing is left" {
	run_node 0 createQueue qname=q
	run_node 0 sendMessage qname=q message='hällo 世界'
	id=${output//\"/}
	script run <<'END'
cat >"$T/payload"
echo "$MQ_ID $MQ_ATTEMPT $MQ_QUEUE" >"$T/env"
echo done >&3
END
	run_mq 0 mq-consume -n1 q -- "$T/run"
	assert_equal "$(cat "$T/payload")" 'hällo 世界'
	assert_equal "$(cat "$T/env")" "$id 1 q"
	assert_equal "$(redis exists rsmq:q)" 0
	assert_equal "$(redis hkeys rsmq:q:Q | sort | tr '\n' ' ')" \
		"created delay maxsize modified totalrecv totalsent vt "
	assert_equal "$(attributes q)" \
		'{"vt":30,"delay":0,"maxsize":65536,"totalrecv":1,"totalsent":1,"msgs":0,"hiddenmsgs":0}'
}

@test "a message in our hands is hidden from node, and counted, for longer than the visibility timeout" {
	run_node 0 createQueue qname=q vt=1
	run_node 0 sendMessage qname=q message=a
	script long <<'END'
: >"$T/started"
sleep 3
echo x >>"$T/runs"
END
	start_mq mq-consume -n1 q -- "$T/long"
	eventually 10 test -e "$T/started"
	id=$(first_id q)
	assert_equal "$(redis hget rsmq:q:Q "$id:rc")" 1
	(($(redis hget rsmq:q:Q "$id:fr") > 1700000000000))
	while ! gone "$pid"; do
		says '{}' receiveMessage qname=q
		read -rt 0.2 <> <(:) || true
	done
	wait "$pid"
	assert_equal "$(cat "$T/runs")" x
	assert_equal "$(attributes q)" \
		'{"vt":1,"delay":0,"maxsize":65536,"totalrecv":1,"totalsent":1,"msgs":0,"hiddenmsgs":0}'
}

@test "a delayed message of node is not ours before it is due" {
	run_node 0 createQueue qname=q delay=60
	run_node 0 sendMessage qname=q message=a
	run_node 0 sendMessage qname=q message=b delay=0
	prints b mq-consume -l -n1 q
	prints '' mq-consume -l --drain q
	# As if the time had passed.
	redis zadd rsmq:q 1 "$(redis zrange rsmq:q 0 0)" >/dev/null
	prints a mq-consume -l -n1 q
	run_mq 0 mq-stats --json q
}

# --- what we send -------------------------------------------------------------

@test "we send, node receives, deletes, pops, and changes the visibility" {
	run_mq 0 mq-publish -i q 'hällo'
	id=$output
	says 'hällo' receiveMessage.message qname=q
	says 1 deleteMessage qname=q id="$id"
	assert_equal "$(redis exists rsmq:q)" 0
	assert_equal "$(redis hkeys rsmq:q:Q | grep -c "$id" || true)" 0
	run_mq 0 mq-publish q a b
	says a popMessage.message qname=q
	says b popMessage.message qname=q
	says '{}' popMessage qname=q
	run_mq 0 mq-publish -i q a
	id=$output
	says 1 changeMessageVisibility qname=q id="$id" vt=60
	prints '' mq-consume --drain q
	run_node 0 changeMessageVisibility qname=q id="$id" vt=0
	prints a mq-consume --drain q
}

@test "node's sent time is in our id, and its rc and fr go on with ours" {
	before=$(date +%s%3N)
	run_mq 0 mq-publish q a
	run_node 0 receiveMessage.sent qname=q
	((${output%.*} >= before - 1 && ${output%.*} <= $(date +%s%3N)))
	fr=$(redis hget rsmq:q:Q "$(first_id q):fr")
	run_node 0 changeMessageVisibility qname=q id="$(first_id q)" vt=0
	script again <<'END'
echo "$MQ_ATTEMPT" >"$T/attempt"
echo resend 0 >&3
END
	run_mq 75 mq-consume -n1 q -- "$T/again"
	assert_equal "$(cat "$T/attempt")" 2
	run_node 0 receiveMessage qname=q
	[[ $output == *'"rc":3,"fr":'"$fr"* ]]
}

@test "a rejected message is in a queue that node can read, without its reason" {
	run_mq 0 mq-publish -i q a
	id=$output
	script bad <<<'echo err no such user >&3'
	run_mq 1 mq-consume -q -n1 q -- "$T/bad"
	run_node 0 listQueues
	[[ $output == *'"q-rejected"'* ]]
	run_node 0 receiveMessage qname=q-rejected
	[[ $output == *"\"id\":\"$id\",\"message\":\"a\",\"rc\":1,"* ]]
	run_mq 0 mq-stats --list rejected --jsonl q
	[[ $output == *'no such user'* ]]
}

@test "headers are ours, and node sees the message alone" {
	run_mq 0 mq-publish -H 'Colour: red' -P 1=x q a
	says a receiveMessage.message qname=q
	run_node 0 changeMessageVisibility qname=q id="$(first_id q)" vt=0
	script show <<'END'
echo "$MQ_HEADER_COLOUR $RQ_PARAM1" >"$T/headers"
END
	run_mq 0 mq-consume -n1 q -- "$T/show"
	assert_equal "$(cat "$T/headers")" "red x"
	assert_equal "$(redis exists rsmq:q:X)" 0
}

# --- by id --------------------------------------------------------------------

@test "by its id, the visibility of a message that node holds can be changed, and it can be deleted" {
	run_node 0 createQueue qname=q
	run_node 0 sendMessage qname=q message=a
	run_node 0 receiveMessage.id qname=q
	id=$output
	run_mq 0 mq-lease --extend "$id" --for 1h q
	(($(redis zscore rsmq:q "$id") > $(date +%s%3N) + 3500000))
	run_mq 0 mq-lease --extend "$id" --for 1ms q
	received() { ask_node receiveMessage.id qname=q && [ "$output" = "$id" ]; }
	eventually 5 received
	run_mq 0 mq-lease --ack "$id" q
	assert_equal "$(redis exists rsmq:q)" 0
	run_mq 1 mq-lease --ack "$id" q
	says 0 deleteMessage qname=q id="$id"
	# What we have handed out is node's to delete.
	run_mq 0 mq-publish q a
	run_mq 0 mq-lease --for 1m --jsonl q
	id=$(first_id q)
	[[ $output == *"$id"* ]]
	says 1 deleteMessage qname=q id="$id"
	run_mq 1 mq-lease --ack "$id" q
}

@test "by its id, a message can be deleted that nobody has received, or delayed" {
	run_node 0 createQueue qname=q
	for delay in 0 60; do
		run_node 0 sendMessage qname=q message=a delay=$delay
		run_mq 0 mq-lease --ack "${output//\"/}" q
		assert_equal "$(redis exists rsmq:q)" 0
	done
	assert_equal "$(redis hlen rsmq:q:Q)" 6
	run_node 0 sendMessage qname=q message=a
	id=${output//\"/}
	run_mq 0 mq-lease --extend "$id" --for 1h q
	run_mq 0 mq-stats --json q
	[[ $output == *'"ready":0,"delayed":1,"unacked":0,'* ]]
	says '{}' receiveMessage qname=q
	run_mq 0 mq-lease --reject "$id" --text "not wanted" q
	says "$id" receiveMessage.id qname=q-rejected
	assert_equal "$(redis keys 'rsmq:q:X*held*')$(redis exists rsmq::connections)" 0
}

# --- the same numbers ---------------------------------------------------------

@test "node says the same of a queue after our steps as after its own" {
	run_node 0 createQueue qname=node vt=60
	run_mq 0 mq-publish -l --vt 60 ours </dev/null
	for m in a b c d; do
		run_node 0 sendMessage qname=node message=$m
		run_mq 0 mq-publish ours $m
	done
	run_node 0 sendMessage qname=node message=late delay=60
	run_mq 0 mq-publish -d 60 ours late
	# Received and deleted; received and kept; popped.
	run_node 0 receiveMessage.id qname=node
	run_node 0 deleteMessage qname=node id="$output"
	run_mq 0 mq-consume -n1 ours -- true
	run_node 0 receiveMessage.id qname=node
	run_mq 0 mq-lease -n1 --for 60s --jsonl ours
	run_node 0 popMessage qname=node
	run_mq 0 mq-consume -n1 --at-most-once ours
	run_node 0 setQueueAttributes qname=node delay=3 maxsize=2048
	run_mq 0 mq-set ours delay=3 maxsize=2048
	want='{"vt":60,"delay":3,"maxsize":2048,"totalrecv":3,"totalsent":5,"msgs":3,"hiddenmsgs":2}'
	# A visible one counts as hidden in the second in which it came.
	eventually 5 attributes_are node "$want"
	eventually 5 attributes_are ours "$want"
	assert_equal "$(shape ours)" "$(shape node)"
}

# --- queues and their attributes ----------------------------------------------

@test "a queue that we make is one for node, with its defaults or ours" {
	run_mq 0 mq-publish usual a
	run_node 1 createQueue qname=usual
	assert_output '{"error":"queueExists"}'
	run_mq 0 mq-publish --vt 10m --maxsize -1 other a
	says 600 getQueueAttributes.vt qname=other
	says -1 getQueueAttributes.maxsize qname=other
	run_node 0 listQueues
	[[ $output == '["usual","other"]' || $output == '["other","usual"]' ]]
	# Made already: they do not change any more.
	run_mq 0 mq-publish --vt 5 usual a
	says 30 getQueueAttributes.vt qname=usual
}

@test "attributes are changed as node changes them" {
	run_node 0 createQueue qname=q
	redis hset rsmq:q:Q modified 1 >/dev/null
	run_mq 0 mq-set q vt=1234 delay=7 maxsize=2000
	assert_equal "$(attributes q)" \
		'{"vt":1234,"delay":7,"maxsize":2000,"totalrecv":0,"totalsent":0,"msgs":0,"hiddenmsgs":0}'
	(($(redis hget rsmq:q:Q modified) > 1700000000))
	run_mq 0 mq-set q maxsize=-1
	says -1 getQueueAttributes.maxsize qname=q
	run_mq 1 mq-set none vt=1
	assert_equal "$stderr" "mq-set: none: no such queue"
	assert_equal "$(redis exists rsmq:none:Q)" 0
}

@test "attributes that node would refuse are refused" {
	for wrong in vt=-1 vt=10000000 vt=x vt= vt=1.5 delay=-1 delay=10000000 \
		maxsize=1023 maxsize=65537 maxsize=0 maxsize=-2 maxsize=x \
		colour=red '' v; do
		run_mq 64 mq-set q "$wrong"
	done
	run_mq 64 mq-publish --vt 10000000 q a
	run_mq 64 mq-publish --maxsize 1023 q a
	assert_equal "$(redis dbsize)" 0
	run_mq 1 mq-set q vt=9999999 delay=0 maxsize=1024
}

@test "a message that says when goes before the delay of its queue" {
	run_node 0 createQueue qname=q delay=60
	run_mq 0 mq-publish q later
	run_mq 0 mq-publish -d 0 q now
	says now popMessage.message qname=q
	says '{}' popMessage qname=q
}

# --- how long, and what -------------------------------------------------------

@test "maxsize counts units of UTF-16" {
	run_mq 0 mq-publish --maxsize 1024 q "$(printf 'é%.0s' {1..1024})"
	run_mq 0 mq-publish q "$(printf '汉%.0s' {1..1024})"
	run_mq 0 mq-publish q "$(printf '😀%.0s' {1..512})"
	run_mq 65 mq-publish q "$(printf '😀%.0s' {1..513})"
	assert_equal "$stderr" \
		"mq-publish: q: not published: it is longer than the queue's maxsize"
	run_mq 65 mq-publish q "$(printf '%01025d' 0)"
	run_mq 0 mq-publish q ''
	run_mq 65 mq-publish q a "$(printf '%01025d' 0)" b
	assert_equal "$stderr" "mq-publish: 2 messages accepted, 1 too long"
	says 6 getQueueAttributes.totalsent qname=q
}

@test "without a maxsize, messages of more than 64k go both ways" {
	head -c 200000 /dev/zero | tr '\0' x >"$T/big"
	run_mq 65 mq-publish q <"$T/big"
	run_mq 0 mq-publish --maxsize -1 any <"$T/big"
	run_node 0 popMessage.message qname=any
	assert_equal "${#output}" 200000
	node_rsmq sendMessage qname=any message=- <"$T/big"
	"$BUILD/mq-consume" -n1 any >"$T/got"
	cmp "$T/big" "$T/got"
}

@test "what is not UTF-8 is refused without --raw, and NUL is not" {
	printf 'a\377b' >"$T/bytes"
	run_mq 65 mq-publish q <"$T/bytes"
	[[ $stderr == *"record 1: not UTF-8; --raw publishes it"* ]]
	printf 'good\nba\355\240\200d\n' >"$T/lines"
	run_mq 65 mq-publish -l q <"$T/lines"
	[[ $stderr == *"record 2: not UTF-8"*"1 message accepted" ]]
	says good popMessage.message qname=q
	run_mq 0 mq-publish -i --raw q <"$T/bytes"
	assert_equal "${#output}" 32
	"$BUILD/mq-consume" -n1 q >"$T/got"
	cmp "$T/bytes" "$T/got"
	printf 'a\0b' >"$T/nul"
	run_mq 0 mq-publish q <"$T/nul"
	node_rsmq popMessage.message qname=q >"$T/got"
	printf 'a\0b\n' | cmp - "$T/got"
}

@test "1000 ids are 32 characters, and all different" {
	seq 1000 | "$BUILD/mq-publish" -l -i q >"$T/ids"
	assert_equal "$(grep -cE '^[0-9a-z]{10}[A-Za-z0-9]{22}$' "$T/ids")" 1000
	assert_equal "$(sort -u "$T/ids" | wc -l)" 1000
	# They sort as they were sent, in the set as well.
	sort -c "$T/ids"
	redis zrange rsmq:q 0 -1 | cmp - "$T/ids"
}

@test "a queue is kept from growing, by those who look" {
	run_node 0 createQueue qname=q
	run_node 0 sendMessage qname=q message=a
	run_mq 75 mq-publish --max-length 3 -l q <<<$'b\nc\nd\ne'
	[[ $stderr == *"2 messages accepted" ]]
	run_mq 0 mq-publish -p 1 --max-length 3:4 q f
	run_mq 75 mq-publish -p 1 --max-length 3:4 q g
	run_mq 0 mq-publish -d 1h --max-length 1 --max-delayed 1 q h
	run_mq 75 mq-publish -d 1h --max-delayed 1 q i
	says 5 getQueueAttributes.msgs qname=q
}

# --- real time ----------------------------------------------------------------

@test "--realtime tells how many there are, as node does" {
	run_mq 0 mq-publish -l q </dev/null
	node_rsmq listen q 4 >"$T/told" 2>"$T/listening" &
	eventually 10 grep -q listening "$T/listening"
	run_mq 0 mq-publish q silent
	run_mq 0 mq-publish --realtime q a
	run_mq 0 mq-publish --realtime -d 60 q late
	run_mq 0 mq-publish --realtime -l q <<<$'b\nc'
	wait
	assert_equal "$(tr '\n' ' ' <"$T/told")" "2 3 4 5 "
	run_mq 0 mq-consume -q --drain q
	# Node's own news do us no harm.
	export RSMQ_REALTIME=1
	start_mq mq-consume -l -n2 q
	run_node 0 sendMessage qname=q message=a
	run_node 0 sendMessage qname=q message=b
	wait "$pid"
	assert_equal "$(cat "$T/out")" $'a\nb'
}

# --- namespaces ---------------------------------------------------------------

@test "a namespace in the URL is node's ns" {
	export MQ_URL="unix://$D/redis.sock?layout=rsmq&ns=a:b" RSMQ_NS=a:b
	unset MQ_LAYOUT
	run_mq 0 mq-publish q a
	says '["q"]' listQueues
	says a popMessage.message qname=q
	run_node 0 sendMessage qname=q message=b
	prints b mq-consume -n1 q
	assert_equal "$(redis keys 'rsmq:*')" ""
	# As outputs name it, it can be given back.
	run_mq 0 mq-stats a:b:q
	run_mq 64 mq-stats c:q
	run_mq 0 mq-stats
	[[ $output == *a:b:q* ]]
	# Another one is apart.
	RSMQ_NS=other run_node 0 createQueue qname=q
	RSMQ_NS=other run_node 0 sendMessage qname=q message=theirs
	run_mq 0 mq-stats
	[[ $output != *other* ]]
	prints '' mq-consume --drain q
	prints theirs mq-consume -u "unix://$D/redis.sock?layout=rsmq&ns=other" --drain q
}

# --- what it cannot carry -----------------------------------------------------

@test "a record that RSMQ cannot carry is refused in one line" {
	run_mq 65 mq-publish --jsonl q <<<'{"payload":"a","headers":{"Mq-Key":["x"]}}'
	[[ $stderr == *"record 1: the layout rsmq has no Mq-Key"* ]]
	run_mq 65 mq-publish --jsonl q <<<'{"payload":"a","headers":{"Mq-Priority":["-1"]}}'
	[[ $stderr == *"record 1: its priority is below 0"* ]]
}

@test "the verb resend tick is a retry, as there are no ticks" {
	run_mq 0 mq-publish q a
	script tick <<<'echo resend tick >&3'
	run_mq 75 mq-consume --backoff 1m..1m -n1 q -- "$T/tick"
	score=$(redis zscore rsmq:q "$(first_id q)")
	((score > $(date +%s%3N) + 10000))
}

# --- which layout -------------------------------------------------------------

@test "duplicates go to queues of the same namespace, and of another layout" {
	run_mq 0 mq-publish there x
	run_mq 0 mq-publish -L rmq far x
	run_mq 0 mq-publish q a
	redis del rsmq:there >/dev/null
	script dup <<END
echo "dup 0-x-there" >&3
read -r one <&4
echo "dup 0-x-unix://$D/redis.sock?layout=rmq&queue=far" >&3
read -r two <&4
echo "dup 0-x-unix://$D/redis.sock?layout=rabbit&queue=far" >&3
read -r three <&4
printf '%s\n' "\$one" "\$two" "\$three" >"$T/answers"
END
	run_mq 0 mq-consume -q -n1 q -- "$T/dup"
	run cat "$T/answers"
	assert_line -n 0 --regexp '^ok [0-9a-zA-Z]{32}$'
	assert_line -n 1 --regexp '^ok [0-9a-zA-Z]{32}$'
	assert_line -n 2 --partial "its layout is neither rmq nor rsmq"
	says a popMessage.message qname=there
	prints $'x\na' mq-consume -L rmq -n2 -l far
}
