#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# layouts: rmq rsmq
# Many queues are known, and many connections are listed: what is done with one queue
# costs the server as many commands as without them.

load ../helpers/server

: "${LAYOUT:=rmq}"

setup() {
	load "../helpers/layout-$LAYOUT"
	export MQ_LAYOUT=$LAYOUT
	common_setup
	redis flushall >/dev/null
}

know() {
	local set=rmq::queues

	[ "$LAYOUT" = rmq ] || set=rsmq:QUEUES
	# shellcheck disable=SC2046 # words
	redis sadd $set $(seq -f 'queue-%.0f' "$1") >/dev/null
}

# commands_of STATUS TOOL ARGS...: sets $sent.
commands_of() {
	redis config resetstat >/dev/null
	run_mq "$@"
	sent=$(redis info commandstats | tr -d '\r' |
		awk -F'[=,]' '/^cmdstat_/ && !/^cmdstat_config/ { n += $2 } END { print n }')
}

# Prints how many commands each takes.
count_all() {
	run_mq 0 mq-publish q 1 2 3 4 5
	while read -r name status args; do
		# shellcheck disable=SC2086 # words
		commands_of "$status" $args
		echo "$name $sent"
	done <<-'END'
		publish 0 mq-publish q 6
		stats 0 mq-stats q
		check 0 mq-stats --check ready=100,age=1h q
		list 0 mq-stats --list ready q
		lease 0 mq-lease --for 1h q
		consume 0 mq-consume -q --no-clean -n 1 q
		return 1 mq-return q
		purge 0 mq-purge --force --ready q
	END
	# Rounds of rsmq look at each queue.
	[ "${1-}" != clean ] || [ "$LAYOUT" = rsmq ] || {
		commands_of 0 mq-clean
		echo "clean $sent"
	}
}

# not_dearer MORE: by so many commands at most.  A round of cleaning notes how queues are:
# one EXISTS for 25, and a step of five commands for each of those where it finds any, which
# is sent again where the server does not know the script yet.
not_dearer() {
	paste "$T/few" "$T/many"
	paste "$T/few" "$T/many" |
		awk -v more="$1" '$4 > $2 + more + ($1 == "clean" ? 210 : 0) { exit 1 }'
}

@test "known: 2000 other queues cost one queue nothing" {
	no_cluster "it counts the commands of one server"
	count_all clean | grep -v '^\$' >"$T/few"
	redis flushall >/dev/null
	know 2000
	count_all clean | grep -v '^\$' >"$T/many"
	# A wait of another length, and a tick, are some commands.
	not_dearer 12
}

@test "known: all of many names are found, each once" {
	know 2000
	run_mq 0 mq-stats --json
	assert_equal "$(jq '.queues | length' <<<"$output")" 2000
	assert_equal "$(jq -r '.queues[].name' <<<"$output" | sort -u | wc -l)" 2000
}

@test "known: 500 dead connections cost one queue a few commands" {
	no_cluster "it counts the commands of one server"
	[ "$LAYOUT" = rmq ] || skip "connections of rsmq are leases"
	count_all | grep -v '^\$' >"$T/few"
	redis flushall >/dev/null
	for i in $(seq 500); do
		printf '%s\n' "SADD rmq::connections dead-$i" \
			"SADD rmq::connection::dead-$i::queues other" \
			"SADD rmq::connection::dead-$i::queue::[other]::consumers c"
	done | redis --pipe >/dev/null
	count_all | grep -v '^\$' >"$T/many"
	not_dearer 25
	# Those that have something of the queue are found among them.
	redis lpush 'rmq::connection::dead-77::queue::[q]::unacked' x >/dev/null
	redis sadd 'rmq::connection::dead-77::queues' q >/dev/null
	redis sadd 'rmq::connection::dead-78::queue::{q}::consumers' c >/dev/null
	redis sadd 'rmq::connection::dead-78::queues' q >/dev/null
	run_mq 0 mq-stats --json q
	assert_equal "$(jq '.queues[0].unacked' <<<"$output")" 2
	run_mq 0 mq-stats q
	assert_regex "$stderr" "1 connection.*cluster layout"
	commands_of 0 mq-stats --list unacked q
	assert_output --partial dead-77
	# Each connection is asked who has it, but not each for its messages.
	[ "$sent" -lt 1700 ]
	# mq-clean returns it; the queue has no other trace of the dead.
	run_mq 0 mq-clean
	run_mq 0 mq-stats --json q
	assert_equal "$(jq '.queues[0] | .ready, .unacked' <<<"$output" | paste -sd' ')" "1 1"
}

# list_consumers N: so many consumers of ours are alive, and consume another queue.  They are
# listed as a real one has listed itself.
list_consumers() {
	local now

	now=$(redis time | head -n 1)
	for i in $(seq "$1"); do
		printf '%s\n' "SET rmq::connection::ours-$i::heartbeat 1 EX 60" \
			"SADD rmq::connections ours-$i" \
			"SADD rmq::connection::ours-$i::queues other" \
			"SADD rmq::connection::ours-$i::queue::[other]::consumers c" \
			"HSET rmq::queue::[other]::holders ours-$i \"ours-$i\"" \
			"ZADD rmq::holders $(((now + 59) * 1000)) ours-$i"
	done | redis --pipe >/dev/null
}

# row WANT: "consumers unacked" of q, by mq-stats.
row() {
	run_mq 0 mq-stats --json q
	assert_equal "$(jq -r '.queues[0] | "\(.consumers) \(.unacked)"' <<<"$output")" "$1"
}

@test "known: 500 consumers of other queues cost mq-stats of a queue nothing" {
	local few
	no_cluster "a cluster asks each"
	[ "$LAYOUT" = rmq ] || skip "the keys are those of rmq"
	run_mq 0 mq-publish q 1 2 3
	start_mq mq-consume -j 2 --prefetch 1 --no-clean q -- sleep 60
	eventually 10 eval '[ "$(redis zcard rmq::holders)" = 1 ]'
	eventually 10 eval '[ "$(redis llen "$(redis --raw keys "*unacked")")" = 3 ]'
	c=$(connections)
	assert_equal "$(redis --raw hgetall 'rmq::queue::[q]::holders' | paste -sd' ')" \
		"$c $c"
	row "1 3"
	commands_of 0 mq-stats q
	few=$sent
	list_consumers 500
	row "1 3"
	# The consumer sends some of its own, at times.
	eventually 10 eval 'commands_of 0 mq-stats q && ((sent <= few + 2))'

	# With a connection of Go's, each is asked.
	redis set rmq::connection::go-AAAAAA::heartbeat 1 EX 60 >/dev/null
	redis sadd rmq::connection::go-AAAAAA::queues q >/dev/null
	redis sadd 'rmq::connection::go-AAAAAA::queue::[q]::consumers' g >/dev/null
	redis lpush 'rmq::connection::go-AAAAAA::queue::[q]::unacked' x >/dev/null
	redis sadd rmq::connections go-AAAAAA >/dev/null
	row "2 4"

	# So they are when Go's cleaner has unlisted one of ours that died: as many names are
	# left as leases.
	redis del rmq::connection::ours-7::heartbeat >/dev/null
	redis zadd rmq::holders 1 ours-7 >/dev/null
	redis srem rmq::connections ours-7 >/dev/null
	assert_equal "$(redis zcard rmq::holders)" "$(redis scard rmq::connections)"
	row "2 4"
	# Or one whose heartbeat was deleted, and that consumed this queue.
	redis hset 'rmq::queue::[q]::holders' ours-8 ours-8 >/dev/null
	redis zrem rmq::holders ours-7 >/dev/null
	redis del rmq::connection::ours-8::heartbeat >/dev/null
	redis srem rmq::connections ours-8 >/dev/null
	row "2 4"
	redis srem rmq::connections go-AAAAAA >/dev/null
	redis del 'rmq::connection::go-AAAAAA::queue::[q]::unacked' >/dev/null

	# A dead one that is still listed has messages.
	redis sadd rmq::connections ours-9 >/dev/null
	redis del rmq::connection::ours-9::heartbeat >/dev/null
	redis zadd rmq::holders 1 ours-9 >/dev/null
	redis sadd rmq::connection::ours-9::queues q >/dev/null
	redis lpush 'rmq::connection::ours-9::queue::[q]::unacked' x y >/dev/null
	row "1 5"
	run_mq 0 mq-clean
	row "1 3"
	stop_mq
	assert_equal "$(redis --raw hkeys 'rmq::queue::[q]::holders')" ours-8

	# The holders that no cleaner of ours has removed go when a consumer joins.
	# shellcheck disable=SC2046 # fields
	redis hset 'rmq::queue::[q]::holders' $(seq -f 'gone-%.0f x' 1500) >/dev/null
	run_mq 0 mq-consume -q --no-clean -n 3 q
	assert_equal "$(redis --raw hkeys 'rmq::queue::[q]::holders')" ours-8
	assert_equal "$(redis zscore rmq::holders ours-9)" ""
}

@test "known: a consumer with the rights of before is found as before" {
	no_cluster "a cluster asks each"
	[ "$LAYOUT" = rmq ] || skip "the keys are those of rmq"
	redis acl setuser old on '>pw' '+@all' '~rmq::queue*' '~rmq::connection*' '~rmq::paused' \
		'~rmq::cleaning' '&*' >/dev/null
	run_mq 0 mq-publish q 1 2 3
	MQ_URL=${MQ_URL/unix:\/\//unix://old:pw@} start_mq mq-consume -j 2 --prefetch 1 q -- sleep 60
	eventually 10 eval '[ "$(redis llen "$(redis --raw keys "*unacked")")" = 3 ]'
	assert_equal "$(redis exists rmq::holders)" 0
	row "1 3"
	heartbeat
	row "1 3"
	list_consumers 5
	row "1 3"
	MQ_URL=${MQ_URL/unix:\/\//unix://old:pw@} row "1 3"
	stop_mq
	row "0 0"
	redis acl deluser old >/dev/null
}
