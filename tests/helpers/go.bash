# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What a Go program built on rmq v5 does to the keys, command by command.  Load it
# behind common.
#
#   unacked C [Q]          the list of what connection C has claimed; of q, if not said
#   go_connect C           it lives
#   go_consume C Q         and consumes a queue
#   go_holds C Q MSG...    and has claimed these, in this order
#   go_dies C              its heartbeat has expired
#   go_dead C Q [MSG...]   all of that
#   go_clean [C...]        its cleaner, one round, with these; all that are dead, if
#                          not said

unacked() {
	echo "rmq::connection::$1::queue::[${2:-q}]::unacked"
}

go_connect() {
	redis set "rmq::connection::$1::heartbeat" 1 EX 60 >/dev/null
	redis sadd rmq::connections "$1" >/dev/null
}

go_consume() {
	redis sadd rmq::queues "$2" >/dev/null
	redis sadd "rmq::connection::$1::queues" "$2" >/dev/null
	redis sadd "rmq::connection::$1::queue::[$2]::consumers" "tag-${1: -6}" >/dev/null
}

go_holds() {
	redis lpush "$(unacked "$1" "$2")" "${@:3}" >/dev/null
}

go_dies() {
	redis del "rmq::connection::$1::heartbeat" >/dev/null
}

go_dead() {
	go_connect "$1"
	go_consume "$1" "$2"
	[ $# = 2 ] || go_holds "$@"
	go_dies "$1"
}

go_clean() {
	local c q

	# shellcheck disable=SC2046 # names
	[ $# != 0 ] || set -- $(connections)
	for c; do
		[ "$(redis ttl "rmq::connection::$c::heartbeat")" -le 0 ] || continue
		for q in $(redis smembers "rmq::connection::$c::queues"); do
			redis sadd rmq::queues "$q" >/dev/null
			while [ -n "$(redis --raw rpoplpush "$(unacked "$c" "$q")" \
				"rmq::queue::[$q]::ready" | tr -d '\0')" ]; do
				:
			done
			printf '%s\n' "del $(unacked "$c" "$q")" \
				"del rmq::connection::$c::queue::[$q]::consumers" \
				"srem rmq::connection::$c::queues $q" | redis >/dev/null
		done
		printf '%s\n' "srem rmq::connections $c" \
			"del rmq::connection::$c::queues" | redis >/dev/null
	done
}
