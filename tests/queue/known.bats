#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# layouts: rmq rsmq
# A queue is deleted while programs have it open: whatever comes into it after
# that is in a queue that is known.

# shellcheck disable=SC1010

load ../helpers/server

: "${LAYOUT:=rmq}"

setup() {
	load "../helpers/layout-$LAYOUT"
	export MQ_LAYOUT=$LAYOUT
	common_setup
}

teardown() {
	exec 5>&-
	common_teardown
}

delete() {
	run_mq 0 mq-purge -f --delete-queue "$1"
	! is_known "$1" || return 1
}

is_known() {
	case $LAYOUT in
	rmq) [ "$(redis sismember rmq::queues "$1")" = 1 ] ;;
	rsmq) [ "$(redis sismember rsmq:QUEUES "$1")" = 1 ] ;;
	esac
}

# has QUEUE STATE: what mq-stats shows of it, of all that are known.
has() {
	# On a cluster a queue of RSMQ has its namespace.
	"$BUILD/mq-stats" | awk -v q="$1" '{sub(/^{rsmq}:/, "", $1)} $1 == q {print $2, $3, $4, $5}' |
		grep -qx "$2"
}

# On a cluster the names of all queues are on another node, and mq-clean lists a queue
# again that was deleted while somebody had it open.
list_again() {
	[ "${TOPOLOGY-}" != cluster ] || [ "$LAYOUT" != rmq ] || "$BUILD/mq-clean" -q
}

@test "known: a publisher that is open goes on" {
	local how want
	redis acl setuser app reset on '>pw' allkeys +@all -eval >/dev/null
	# The last one may not mark what it sends.
	for how in -l -lp5 -ld1h "-lu$(url_as app:pw)"; do
		# There is only a script.
		[[ $LAYOUT$how != rsmq-lu* ]] || continue
		case $LAYOUT$how in
		*d1h) want="0 1 0 0" ;;
		*) want="1 0 0 0" ;;
		esac
		# It reads what is written to descriptor 5.
		rm -f "$T/lines"
		mkfifo "$T/lines"
		"$BUILD/mq-publish" "$how" q <"$T/lines" 3>&- 2>"$T/err" &
		pid=$!
		exec 5>"$T/lines"
		echo before >&5
		eventually 10 has q "$want"
		delete q
		echo after >&5
		eventually 10 eval 'list_again; has q "$want"'
		exec 5>&-
		wait "$pid"
		delete q
	done
}

@test "known: a push and a return to a queue that was deleted meanwhile" {
	"$BUILD/mq-publish" other x
	"$BUILD/mq-purge" -f --all other
	run_mq 0 mq-publish -l q < <(seq 3)
	# shellcheck disable=SC2016 # for the worker
	start_mq mq-consume --push other -n 3 q -- sh -c '
		echo "$$" >"$T/runs"; until [ -e "$T/go" ]; do sleep 0.01; done
		rm "$T/go"; echo push >&3'
	for i in 1 2 3; do
		eventually 10 [ -s "$T/runs" ]
		: >"$T/runs"
		is_known other && delete other
		touch "$T/go"
		eventually 10 has other "1 0 0 0"
	done
	wait "$pid"

	run_mq 0 mq-publish -l q < <(seq 30)
	run_mq 1 mq-consume --drain q -- false
	for how in '' '--match .'; do
		# shellcheck disable=SC2086 # none, or two words
		start_mq mq-return -n 15 --rate 3/s $how --to other q
		eventually 10 is_known other
		# It may be there again before anybody could look.
		run_mq 0 mq-purge -f --delete-queue other
		wait "$pid"
		is_known other
	done
}

@test "known: what a consumer gives back, when a Go program has destroyed it" {
	[ "$LAYOUT" = rmq ] || skip "there are no Go programs"
	local end
	for end in 'exit 1' 'exit 75'; do
		"$BUILD/mq-publish" q x
		start_mq mq-consume -n 1 q -- sh -c "
			touch '$T/runs'; until [ -e '$T/go' ]; do sleep 0.01; done
			$end"
		eventually 10 [ -e "$T/runs" ]
		redis srem rmq::queues q >/dev/null
		touch "$T/go"
		wait "$pid" || [ $? = "${end#exit }" ]
		list_again
		is_known q
		rm "$T/go" "$T/runs"
	done
}

# What programs leave that make a queue known only when they open it; of a
# connection that lives, and of one that nobody knows.
go_leaves() {
	redis lpush 'rmq::queue::[ready]::ready' x >/dev/null
	redis lpush 'rmq::queue::[rejected]::rejected' x >/dev/null
	redis zadd 'rmq::queue::[delayed]::delayed' 9e12 "$(printf %032d 1)x" >/dev/null
	redis zadd 'rmq::queue::[priority]::priority' 1 "$(printf %032d 1)x" >/dev/null
	redis sadd rmq::connections go-AAAAAA >/dev/null
	redis set rmq::connection::go-AAAAAA::heartbeat 1 EX 60 >/dev/null
	redis lpush 'rmq::connection::go-AAAAAA::queue::[unacked]::unacked' x >/dev/null
	redis lpush 'rmq::connection::go-BBBBBB::queue::[dead]::unacked' x >/dev/null
	# The same queue once more, something that is none, and no names of ours.
	redis lpush 'rmq::queue::[ready]::rejected' x >/dev/null
	redis set 'rmq::queue::[text]::ready' x >/dev/null
	redis lpush 'rmq::queue::[a]b]::ready' x >/dev/null
	redis lpush 'rmq::connection::go-AAAAAA::queue::[a]b]::unacked' x >/dev/null
}

all_known() {
	[ "$(redis smembers rmq::queues | grep -vx q | sort | xargs)" = \
		"dead delayed priority ready rejected unacked" ]
}

@test "known: mq-clean lists queues again, whatever state their messages are in" {
	[ "$LAYOUT" = rmq ] || skip "queue and messages are one key"
	local before option
	go_leaves
	before=$(redis debug digest)
	for option in --dry-run -q; do
		run_mq 0 mq-clean --json "$option"
		assert_regex "$output" '"returned":1,.*"adopted":3,"orphans":0,'
		[ "$option" = -q ] || assert_equal "$(redis debug digest)" "$before"
	done
	all_known
	run_mq 0 mq-clean --json
	assert_regex "$output" '"returned":0,.*"adopted":0,"orphans":0,'
}

@test "known: so does mq-consume, some keys in a round, and on from there" {
	[ "$LAYOUT" = rmq ] || skip "queue and messages are one key"
	no_cluster "there only mq-clean looks through all keys"
	redis eval 'for i = 1, 30000 do redis.call("SET", "rmq::x" .. i, "") end' 0 \
		>/dev/null
	go_leaves
	# Each that is about to be found dead makes for a round.
	for i in 1 2 3 4 5 6 7 8; do
		redis set "rmq::connection::dead-$i::heartbeat" 1 PX "$((i * 500))" >/dev/null
		redis sadd rmq::connections "dead-$i" >/dev/null
	done
	start_mq mq-consume q -- true
	eventually 10 all_known
	stop_mq
}
