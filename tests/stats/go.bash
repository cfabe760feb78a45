# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What adjust/rmq writes, command by command, and messages of ours, by hand.  Load it
# behind server and wire.
#
#   go_open QUEUE...                   queues that are known
#   go_publish QUEUE PAYLOAD...        ready ones, the first is the oldest
#   go_connect CONNECTION QUEUE...     it is alive
#   go_consume CONNECTION QUEUE CONSUMER...
#   go_fetch CONNECTION QUEUE COUNT    so many it holds
#   stamp SECONDS [NUMBER]             an id of a message published so long ago
#   has QUEUE STATE HEADERS PAYLOAD    one more message there
#   unchanged STATUS ARG...            mq-stats, which must leave the data as they are
#   terminal COLUMNS ARG...            what mq-stats writes to one
#   widths                             how many columns each line on stdin takes

go_open() {
	redis sadd rmq::queues "$@" >/dev/null
}

go_publish() {
	go_open "$1"
	redis lpush "rmq::queue::[$1]::ready" "${@:2}" >/dev/null
}

go_connect() {
	redis set "rmq::connection::$1::heartbeat" 1 EX 60 >/dev/null
	redis sadd rmq::connections "$1" >/dev/null
	redis sadd "rmq::connection::$1::queues" "${@:2}" >/dev/null
}

go_consume() {
	go_connect "$1" "$2"
	redis sadd "rmq::connection::$1::queue::[$2]::consumers" "${@:3}" >/dev/null
}

go_fetch() {
	go_connect "$1" "$2"
	redis -r "$3" rpoplpush "rmq::queue::[$2]::ready" \
		"rmq::connection::$1::queue::[$2]::unacked" >/dev/null
}

stamp() {
	local us=$((${EPOCHREALTIME/./} - $1 * 1000000)) id='' i
	local digits=0123456789abcdefghijklmnopqrstuvwxyz

	for ((i = 0; i < 10; i++)); do
		id=${digits:us % 36:1}$id
		us=$((us / 36))
	done
	printf '%sx%021d' "$id" "${2-0}"
}

has() {
	go_open "$1"
	printf '\377\0\276\276J%s\n%s' "$3" "$4" |
		redis -x lpush "rmq::queue::[$1]::$2" >/dev/null
}

unchanged() {
	local before

	before=$(redis --raw debug digest)
	run_mq "$1" mq-stats "${@:2}"
	assert_equal "$(redis --raw debug digest)" "$before"
}

terminal() {
	python3 -S -c 'from wire import *
on_terminal("", sys.argv[2:], int(sys.argv[1]))' "$1" "$BUILD/mq-stats" "${@:2}" |
		tr -d '\r'
}

widths() {
	python3 -IS -c 'import sys, unicodedata
for line in sys.stdin.read().splitlines():
	print(sum(0 if unicodedata.category(c) in ("Mn", "Cf") else
	    1 + (unicodedata.east_asian_width(c) in "WF") for c in line))'
}
