# The layout of RSMQ against the rsmq of npm with 1 and with 100 messages in
# flight; a part of run.sh.  Node tells its time without what it takes to start;
# ours is the whole of it.  How many messages are in flight is the tools' own
# business, but for one row, where the next one goes in when the id of the last
# one has come out.
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run.sh

# node_timed CASE WHAT COUNT IN-FLIGHT
node_timed() {
	RSMQ_SOCKET=$sock NODE_PATH=build/node/node_modules \
		node tests/peers/rsmq.js bench "$2" "$queue" "$3" "$4" >"$D/node" ||
		die "$1: failed"
	awk '{printf "%.0f 0\n", $1 * 1e9}' "$D/node" >>"$D/$1.times"
}

# holds COUNT: makes sure that the queue does.
holds() {
	n=$(redis zcard "rsmq:$queue")
	[ "$n" = "$1" ] || die "rsmq: $n messages, not $1"
}

make_queue() {
	flush
	mq-publish -l "$queue" </dev/null
}

one_by_one() {
	timed one-by-one python3 -c 'import subprocess, sys
p = subprocess.Popen(["mq-publish", "-i", "-l", sys.argv[1]],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
for line in open(sys.argv[2], "rb"):
    p.stdin.write(line)
    p.stdin.flush()
    assert len(p.stdout.readline()) == 33
p.stdin.close()
assert p.wait() == 0' "$queue" "$D/few"
}

rsmq_round() {
	make_queue
	one_by_one
	holds "$few"
	make_queue
	timed one-send -i "$D/few" mq-publish -l "$queue"
	holds "$few"
	make_queue
	node_timed one-send-node send "$few" 1
	holds "$few"
	timed one-receive mq-consume -q -l --drain "$queue"
	holds 0
	make_queue
	mq-publish -l "$queue" <"$D/few"
	node_timed one-receive-node receive "$few" 1
	holds 0
	make_queue
	timed send -i "$D/many" mq-publish -l "$queue"
	holds "$many"
	make_queue
	node_timed send-node send "$many" 100
	holds "$many"
	timed receive mq-consume -q -l --drain "$queue"
	holds 0
	mq-publish -l "$queue" <"$D/many"
	node_timed receive-node receive "$many" 100
	holds 0
}

bench_rsmq() {
	few=2000 many=20000
	seq -f '%0100g' "$few" >"$D/few"
	seq -f '%0100g' "$many" >"$D/many"
	export MQ_LAYOUT=rsmq
	rounds rsmq_round
	unset MQ_LAYOUT
	flush
	compare "RSMQ: send, 1 in flight" "mq-publish -l" "npm rsmq" \
		one-send one-send-node ">= 3.0"
	compare "" "mq-publish -i, one by one" "npm rsmq" \
		one-by-one one-send-node "-"
	compare "receive and delete, 1" "mq-consume -l" "npm rsmq" \
		one-receive one-receive-node ">= 3.0"
	compare "send, 100 in flight" "mq-publish -l" "npm rsmq" \
		send send-node ">= 3.0"
	compare "receive and delete, 100" "mq-consume -l" "npm rsmq" \
		receive receive-node ">= 3.0"
}
