# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What a test of both layouts has to know of the keys: here those of rmq.  A
# file with the line "# layouts: rmq rsmq" is run once with each of them, and
# loads layout-$LAYOUT after common, whose held, connections and heartbeat are
# those of rmq.  The queue is q where none is named, C a connection.
#
#   is_live C            its lease holds
#   holds C              how many messages it has
#   held_by_nobody       there is no key for what a connection holds
#   lasting C            its keys that do not go by themselves
#   keys_at_rest         all keys when the work is done and nobody is there
#   reason N             why the Nth rejected message is there, as JSON has it
#   crash_costs_ahead    how many attempts a crash costs a message that was
#                        claimed and had not started: a number
#
#   expire C             its lease is over, as some time after its death
#   give_away C          and others have seen to its messages, too: they are
#                        ready
#   lease_ages C         a good part of the lease is over
#   lease_is_young C     it has been renewed since
#
#   known Q              there is such a queue
#   any_length Q         and it takes messages of any length
#   peer_sends BODY      prints the commands with which a program that is none of
#                        ours sends
#   peer_takes           it receives the next message, keeps it, and prints it
#   peer_has N           it still has so many
#   $asks_held           a word of the question what a connection holds
#   peer_steals BODY     it gets one that we hold, and still has $stolen of it
#   claims_unseen C BODY a message of another program is claimed for C, and the
#                        answer lost

crash_costs_ahead=0
asks_held=LRANGE
stolen=0

is_live() {
	[ "$(redis exists "rmq::connection::$1::heartbeat")" = 1 ]
}

unacked() {
	echo "rmq::connection::$1::queue::[q]::unacked"
}

holds() {
	redis llen "$(unacked "$1")"
}

held_by_nobody() {
	[ "$(redis keys '*unacked')" = "" ]
}

lasting() {
	local key

	for key in $(redis keys "rmq::connection::$1::*"); do
		[ "$(redis ttl "$key")" != -1 ] || echo "$key"
	done
}

keys_at_rest() {
	printf '%s\n' 'rmq::queue::[q]::counters' rmq::queues
}

reason() {
	element q rejected "$((-$1))" | header Mq-Error
}

expire() {
	redis del "rmq::connection::$1::heartbeat" >/dev/null
}

# As a Go peer's cleaner does it.
give_away() {
	expire "$1"
	while [ -n "$(redis rpoplpush "$(unacked "$1")" 'rmq::queue::[q]::ready')" ]; do :; done
	redis del "$(unacked "$1")" \
		"rmq::connection::$1::queue::[q]::consumers" \
		"rmq::connection::$1::queues" >/dev/null
	redis srem rmq::connections "$1" >/dev/null
}

lease_ages() {
	redis expire "rmq::connection::$1::heartbeat" 30 >/dev/null
}

lease_is_young() {
	ttl_above 50 "rmq::connection::$1::heartbeat"
}

known() {
	redis sadd rmq::queues "$1" >/dev/null
}

any_length() {
	known "$1"
}

peer_sends() {
	echo "lpush rmq::queue::[q]::ready $1"
}

peer_takes() {
	redis set rmq::connection::go-AAAAAA::heartbeat 1 EX 600 >/dev/null
	redis --raw rpoplpush 'rmq::queue::[q]::ready' "$(unacked go-AAAAAA)" |
		tail -n 1
}

peer_has() {
	[ "$(holds go-AAAAAA)" = "$1" ]
}

peer_steals() {
	redis --raw eval 'for _, e in ipairs(redis.call("LRANGE", KEYS[1], 0, -1)) do
			if e:match("[^\n]*$") == ARGV[1] then
				redis.call("LREM", KEYS[1], 1, e)
			end
		end' 1 "$(unacked "$(connections)")" "$1" >/dev/null
}

claims_unseen() {
	printf '%s\n' multi "$(peer_sends "$2")" \
		"rpoplpush rmq::queue::[q]::ready $(unacked "$1")" exec |
		redis >/dev/null
}
