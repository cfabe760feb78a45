#!/usr/bin/env bats
# mq-stats: the table, for queues that a Go program made.

# run_mq sets output, lines and stderr; each test is a subshell of its own.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers

setup_file() {
	server_start
}

teardown_file() {
	server_stop
}

setup() {
	common_setup
}

teardown() {
	common_teardown
}

# What adjust/rmq writes, command by command.

go_open() {
	redis sadd rmq::queues "$1" >/dev/null
}

go_publish() {
	redis lpush "rmq::queue::[$1]::ready" "${@:2}" >/dev/null
}

go_connect() {
	redis set "rmq::connection::$1::heartbeat" 1 EX 60 >/dev/null
	redis sadd rmq::connections "$1" >/dev/null
}

# go_consume CONNECTION QUEUE CONSUMER...
go_consume() {
	redis sadd "rmq::connection::$1::queues" "$2" >/dev/null
	redis sadd "rmq::connection::$1::queue::[$2]::consumers" "${@:3}" \
		>/dev/null
}

# go_fetch CONNECTION QUEUE COUNT
go_fetch() {
	local i

	for ((i = 0; i < $3; i++)); do
		redis rpoplpush "rmq::queue::[$2]::ready" \
			"rmq::connection::$1::queue::[$2]::unacked" >/dev/null
	done
}

# go_reject CONNECTION QUEUE: the newest that it holds.
go_reject() {
	local p unacked="rmq::connection::$1::queue::[$2]::unacked"

	p=$(redis lindex "$unacked" 0)
	redis lpush "rmq::queue::[$2]::rejected" "$p" >/dev/null
	redis lrem "$unacked" 1 "$p" >/dev/null
}

# Two services with three queues between them; one queue more is unused.
go_services() {
	local q

	for q in mails jobs idle audit; do
		go_open "$q"
	done
	go_publish jobs j{1..9}
	go_publish mails m{1..3}
	go_publish audit a1
	go_connect web-aB3dE6
	go_connect cron-Zz9Yy8
	go_consume web-aB3dE6 jobs c-111111 c-222222
	go_consume web-aB3dE6 mails m-333333
	go_consume cron-Zz9Yy8 jobs c-444444
	go_fetch web-aB3dE6 jobs 3
	go_fetch cron-Zz9Yy8 jobs 2
	go_fetch web-aB3dE6 mails 2
	go_reject web-aB3dE6 jobs
	redis zadd "rmq::queue::[mails]::delayed" 4102444800000 later \
		1 due >/dev/null
}

# Every line of the table must be as wide as its head; %s is the width.
columns_are() {
	python3 -c '
import sys, unicodedata
def width(s):
	return sum(0 if unicodedata.category(c) in ("Mn", "Cf") else
	    2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in s)
widths = {width(l) for l in sys.stdin.read().splitlines()}
sys.exit(str(widths) if widths != {int(sys.argv[1])} else 0)' \
		"$1" <<<"$output"
}

@test "stats: an empty server: only the head of the table" {
	run_mq 0 mq-stats
	assert_output "QUEUE  READY  DELAYED  UNACKED  REJECTED  CONSUMERS"
	assert_equal "$stderr" ""
	assert_equal "$(redis dbsize)" 0
}

@test "stats: the queues of Go programs" {
	go_services
	run_mq 0 mq-stats
	assert_output "\
QUEUE  READY  DELAYED  UNACKED  REJECTED  CONSUMERS
audit      1        0        0         0          0
idle       0        0        0         0          0
jobs       4        0        4         1          3
mails      1        2        2         0          1"
	assert_equal "$stderr" ""
}

@test "stats: looking changes nothing" {
	go_services
	redis --raw debug digest >"$T/before"
	run_mq 0 mq-stats
	run_mq 0 mq-stats jobs mails
	run_mq 1 mq-stats nonesuch
	assert_equal "$(redis --raw debug digest)" "$(cat "$T/before")"
}

@test "stats: named queues, in the order given" {
	go_services
	run_mq 0 mq-stats mails audit jobs
	assert_output "\
QUEUE  READY  DELAYED  UNACKED  REJECTED  CONSUMERS
mails      1        2        2         0          1
audit      1        0        0         0          0
jobs       4        0        4         1          3"
	assert_equal "$stderr" ""
}

@test "stats: a queue that is named twice has two equal rows" {
	go_services
	run_mq 0 mq-stats jobs jobs
	assert_equal "${lines[1]}" "${lines[2]}"
	assert_equal "${lines[1]}" \
		"jobs       4        0        4         1          3"
}

@test "stats: a queue that does not exist: 1, and which one" {
	go_services
	run_mq 1 mq-stats nonesuch
	assert_equal "$stderr" "mq-stats: nonesuch: no such queue"
	run_mq 1 mq-stats nothing jobs nowhere
	assert_equal "$stderr" "\
mq-stats: nothing: no such queue
mq-stats: nowhere: no such queue"
	assert_regex "$output" $'\njobs +4 +0 +4 +1 +3(\n|$)'
}

@test "stats: a connection that is not listed, or another queue's, is not counted" {
	go_services
	redis srem rmq::connections cron-Zz9Yy8 >/dev/null
	run_mq 0 mq-stats jobs
	assert_equal "${lines[1]}" \
		"jobs       4        0        2         1          2"
}

@test "stats: a connection whose heartbeat has gone still holds its messages" {
	go_services
	redis del rmq::connection::web-aB3dE6::heartbeat >/dev/null
	run_mq 0 mq-stats jobs
	assert_equal "${lines[1]}" \
		"jobs       4        0        4         1          3"
}

@test "stats: sorted by the bytes of the name" {
	local q

	for q in b a B é a.1 a-1 10 9 ab z; do
		go_open "$q"
	done
	run_mq 0 mq-stats
	assert_equal "$(awk 'NR > 1 {print $1}' <<<"$output")" \
		"$(printf '%s\n' 10 9 B a a-1 a.1 ab b z é)"
}

@test "stats: the columns are as wide as their numbers" {
	local i

	go_open jobs
	go_open x
	seq -f "LPUSH rmq::queue::[jobs]::ready %.0f" 123456 |
		redis --pipe >/dev/null
	run_mq 0 mq-stats
	assert_output "\
QUEUE   READY  DELAYED  UNACKED  REJECTED  CONSUMERS
jobs   123456        0        0         0          0
x           0        0        0         0          0"
}

@test "stats: the columns stand below each other whatever the names" {
	local q

	for q in short '北京' naïve $'na\u0069\u0308ve' "$(printf '%0200d' 0)"; do
		go_open "$q"
	done
	run_mq 0 mq-stats
	assert_equal "${#lines[@]}" 6
	columns_are $((200 + 46))
}

@test "stats: names of more than a thousand columns" {
	go_open "$(printf '%01500d' 0)"
	go_open jobs
	run_mq 0 mq-stats
	columns_are $((1500 + 46))
}

@test "stats: hostile names are shown in visible form, aligned" {
	go_open $'a\e[31mred'
	go_open $'b\nc'
	go_open $'d\te'
	go_open $'f\xff'
	go_open $'g\xc2\x9bh'
	go_open 'back\slash'
	go_open $'r\u202etl'
	go_open plain
	for LC_ALL in C.UTF-8 C; do
		run_mq 0 mq-stats
		assert_equal "${#lines[@]}" 9
		assert_equal "$(tr -d '\n' <<<"$output" | LC_ALL=C tr -cd \
			'\001-\037\177\233' | wc -c)" 0
		columns_are "${#lines[0]}"
	done
}

@test "stats: something else under a queue's key: 76" {
	go_open jobs
	redis set "rmq::queue::[jobs]::ready" mine >/dev/null
	run_mq 76 mq-stats
	assert_equal "$output" ""
	assert_regex "$stderr" '^mq-stats: .*WRONGTYPE'
	redis flushall >/dev/null
	redis set rmq::queues mine >/dev/null
	run_mq 76 mq-stats
	run_mq 76 mq-stats jobs
}

@test "stats: no permission: 77" {
	redis acl setuser blind on '>pw' allkeys +@all -llen >/dev/null
	go_open jobs
	run_mq 77 mq-stats -u "unix://blind:pw@$D/redis.sock"
	assert_equal "$output" ""
	assert_regex "$stderr" '^mq-stats: .*NOPERM'
}

@test "stats: usage errors: 64, one line" {
	local args

	while read -r args; do
		eval "run_mq 64 mq-stats $args"
		assert_equal "$(wc -l <<<"$stderr")" 1
		assert_regex "$stderr" '^mq-stats: '
		assert_equal "$output" ""
	done <<-'END'
		-x
		--nonesuch
		''
		'a[b'
		jobs 'a::b'
		$'a\nb'
		jobs -u
	END
}

@test "stats: --help, --version, and a full stdout" {
	run_mq 0 mq-stats --help
	assert_regex "$output" '^usage: mq-stats '
	assert_equal "$stderr" ""
	run_mq 0 mq-stats -V
	assert_regex "$output" '^mq-tools [0-9]'
	run bash -c '"$1" 2>&1 >/dev/full' - "$BUILD/mq-stats"
	assert_equal "$status" 74
	assert_output "mq-stats: standard output: No space left on device"
}
