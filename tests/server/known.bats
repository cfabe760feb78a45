#!/usr/bin/env bats
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
