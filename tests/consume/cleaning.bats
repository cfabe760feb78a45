#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# One of all consumers of a server cleans, once a minute.
#
# layouts: rmq rsmq

load ../helpers/server
load ../helpers/consume
load "../helpers/layout-${LAYOUT:-rmq}"

setup() {
	common_setup
	pids=()
	key=${LAYOUT:-rmq}::cleaning
	own='rmq::queue::[q]::cleaning'
	[ "${LAYOUT:-rmq}" = rmq ] || own=rsmq:q:Xcleaning
}

teardown() {
	redis acl deluser app >/dev/null
	[ ${#pids[@]} = 0 ] || kill -KILL "${pids[@]}" 2>/dev/null || true
	common_teardown
}

# idle N: so many consumers, which have nothing to do.
idle() {
	for _ in $(seq "$1"); do
		start_mq mq-consume -q q -- true
		pids+=("$pid")
	done
}

# A round looks at some of all keys, once if they are few, and nothing else does; on a
# cluster it looks at the names of all connections.
rounds() {
	if [ "${TOPOLOGY-}" = cluster ]; then
		# One cleans, one is for the note of what was; and who starts looks for the killed.
		echo $((($(grep -ci '"sscan" "rmq::connections" "0"' "$T/monitor") -
			$(grep -ci '"scard" "rmq::connections"' "$T/monitor")) / 2))
	else
		calls scan
	fi
}

# The connection in charge.
charged() {
	redis get "$key" | sed 's/^r[a-z]*::connection:*//; s/::heartbeat$//'
}

# Its process.
in_charge() {
	local c
	c=$(charged)
	redis hget "rmq::connection::$c::info" pid | grep . ||
		redis hget "rsmq::connection:$c" pid
}

@test "cleaning: of five consumers, one has a round, and the others wait" {
	local dead
	[ "${LAYOUT:-rmq}" = rmq ] || skip "its rounds cannot be counted"
	redis config resetstat >/dev/null
	redis monitor >"$T/monitor" 3>&- &
	eventually 10 grep -q OK "$T/monitor"
	idle 5
	eventually 10 eval '[ "$(rounds)" = 1 ]'
	eventually 10 joined 5
	heartbeat_of_all
	assert_equal "$(rounds)" 1
	# One of the others, and of those that come, has the next one.
	dead=$(charged)
	kill -KILL "$(in_charge)"
	expire "$dead"
	# There it would last.
	[ "${TOPOLOGY-}" != cluster ] || redis del "$key" >/dev/null
	idle 4
	# Before that, eight can be listed of which one is dead.
	eventually 10 eval '! connections | grep -qxF "$dead"'
	eventually 10 joined 8
	heartbeat_of_all
	assert_equal "$(rounds)" 2
}

# All have beaten once more, so they have had some ticks.
heartbeat_of_all() {
	local c
	for c in $(connections); do
		lease_ages "$c"
	done
	for c in $(connections); do
		eventually 10 lease_is_young "$c"
	done
}

@test "cleaning: when the one in charge is killed, another one takes over; who ends leaves no key" {
	idle 1
	eventually 10 cleans 0
	# The round is over.
	heartbeat_of_all
	kill -KILL "${pids[0]}"
	redis pexpire "$key" 2000 >/dev/null
	idle 1
	eventually 20 cleans 1
	kill "${pids[1]}"
	wait "${pids[1]}" || true
	assert_equal "$(redis exists "$key")" 0
	run_mq 0 mq-consume --idle 0 --no-clean q -- true
	assert_equal "$(redis exists "$key")" 0
}

# cleans N: the Nth is in charge.
cleans() {
	[ "$(in_charge)" = "${pids[$1]}" ]
}

@test "cleaning: the key of a dead one is worth nothing" {
	no_cluster "there it lasts a minute"
	idle 1
	eventually 10 cleans 0
	kill -KILL "${pids[0]}"
	expire "$(connections)"
	idle 1
	eventually 10 cleans 1
}

# cleans N: the Nth is in charge.
cleans() {
	[ "$(in_charge)" = "${pids[$1]}" ]
}

# one_has_died [OPTION...]: a consumer has died with a message; sets c.
one_has_died() {
	run_mq 0 mq-publish q 1
	start_mq mq-consume -q --no-clean "$@" q -- sleep 100
	eventually 10 eval '[ "$(holds "$(connections)")" = 1 ]'
	c=$(connections)
	kill -KILL "$pid"
	expire "$c"
}

@test "cleaning: a message that others have used up is rejected, and not by the consumer that ends" {
	local c
	one_has_died --attempts 1
	run_mq 0 mq-consume --attempts 1 --drain q -- true
	assert_equal "$(held q)" "0 0 0 1"
}

@test "cleaning: mq-clean asks nobody" {
	local c
	one_has_died
	redis set "$key" somebody px 60000 >/dev/null
	run_mq 0 mq-clean -v
	assert_equal "$(connections)" ""
	assert_equal "$(redis get "$key")" somebody
}

@test "cleaning: who has rights for a queue only cleans that" {
	local c rules
	read -ra rules < <("$BUILD/mq-consume" --print-acl q)
	redis acl setuser app on '>secret' "${rules[@]}" >/dev/null
	one_has_died
	start_mq mq-consume -q -u "$(url_as app:secret)" q -- sleep 100
	pids+=("$pid")
	eventually 20 eval '[ "$(redis exists "$own" "$key")" = 1 ] && ! connections | grep -q "$c"'
	assert_equal "$(redis exists "$own")" 1
}
