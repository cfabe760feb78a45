#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-stats: the table, for queues that a Go program made.

load ../helpers/server
load ../helpers/wire
load go

# go_reject CONNECTION QUEUE: the newest that it holds.
go_reject() {
	local p unacked="rmq::connection::$1::queue::[$2]::unacked"

	p=$(redis lindex "$unacked" 0)
	redis lpush "rmq::queue::[$2]::rejected" "$p" >/dev/null
	redis lrem "$unacked" 1 "$p" >/dev/null
}

# Two services with three queues between them; one queue more is unused.
go_services() {
	go_open idle
	go_publish jobs j{1..9}
	go_publish mails m{1..3}
	go_publish audit a1
	go_consume web-aB3dE6 jobs c-111111 c-222222
	go_consume web-aB3dE6 mails m-333333
	go_consume cron-Zz9Yy8 jobs c-444444
	go_fetch web-aB3dE6 jobs 3
	go_fetch cron-Zz9Yy8 jobs 2
	go_fetch web-aB3dE6 mails 2
	go_reject web-aB3dE6 jobs
	redis zadd "rmq::queue::[mails]::delayed" 4102444800000 later \
		$(($(date +%s) * 1000 - 330000)) due >/dev/null
}

# stamped QUEUE JSON [PAYLOAD]: a message with this header, as the newest one.
stamped() {
	has "$1" ready "$2" "${3-payload}"
}

# counters QUEUE FIELD VALUE...
counters() {
	redis hset "rmq::queue::[$1]::counters" "${@:2}" >/dev/null
}

# The cells behind CONSUMERS of the first row.
ages_and_rates() {
	awk 'NR == 2 {print $7, $8, $9}' <<<"$output"
}

@test "stats: an empty server: only the head of the table" {
	run_mq 0 mq-stats
	assert_output \
		"QUEUE  READY  DELAYED  UNACKED  REJECTED  CONSUMERS  AGE  IN/S  OUT/S"
	assert_equal "$stderr" ""
	assert_equal "$(redis dbsize)" 0
}

@test "stats: the queues of Go programs, all, some, in the order given, or unknown ones" {
	go_services
	unchanged 0
	assert_output "\
QUEUE  READY  DELAYED  UNACKED  REJECTED  CONSUMERS  AGE  IN/S  OUT/S
audit      1        0        0         0          0    ?     -      -
idle       0        0        0         0          0    -     -      -
jobs       4        0        4         1          3    ?     -      -
mails      1        2        2         0          1   5m     -      -
TOTAL      6        2        6         1          4   5m     -      -"
	assert_equal "$stderr" ""
	# One that is named twice counts once.
	unchanged 0 mails audit jobs audit
	assert_output "\
QUEUE  READY  DELAYED  UNACKED  REJECTED  CONSUMERS  AGE  IN/S  OUT/S
mails      1        2        2         0          1   5m     -      -
audit      1        0        0         0          0    ?     -      -
jobs       4        0        4         1          3    ?     -      -
audit      1        0        0         0          0    ?     -      -
TOTAL      6        2        6         1          4   5m     -      -"
	assert_equal "$stderr" ""
	unchanged 1 nothing jobs nowhere
	assert_equal "$stderr" "\
mq-stats: nothing: no such queue
mq-stats: nowhere: no such queue"
	assert_regex "$output" $'\njobs +4 +0 +4 +1 +3 +[?] +- +-(\n|$)'
}

@test "stats: a connection that is not listed holds messages nevertheless" {
	no_cluster "the odd name has another form"
	go_services
	redis srem rmq::connections cron-Zz9Yy8 web-aB3dE6 >/dev/null
	redis del rmq::connection::{cron-Zz9Yy8,web-aB3dE6}::queues >/dev/null
	redis del 'rmq::connection::cron-Zz9Yy8::queue::[jobs]::consumers' >/dev/null
	redis lpush 'rmq::connection::a::queue::[b::queue::[jobs]::unacked' x >/dev/null
	before=$(redis --raw debug digest)
	run_mq 0 mq-stats jobs
	assert_equal "${lines[1]}" \
		"jobs       4        0        4         1          2    ?     -      -"
	run_mq 0 mq-stats --connections
	assert_output "\
CONNECTION   STATE  HOST  PID  QUEUE  UNACKED  CONSUMERS
cron-Zz9Yy8  live   -       -  jobs         2          0
web-aB3dE6   live   -       -  jobs         2          2
web-aB3dE6   live   -       -  mails        2          1"
	run_mq 0 mq-stats
	assert_regex "${lines[5]}" '^TOTAL +6 +2 +6 '
	assert_equal "$(redis --raw debug digest)" "$before"
	# A user who may not look through the keys sees the rest.
	redis acl setuser some on nopass '~*' +@all -scan >/dev/null
	run_mq 0 mq-stats -u "$(url_as some:x)" jobs
	redis acl deluser some >/dev/null
	assert_equal "${lines[1]}" \
		"jobs       4        0        0         1          0    ?     -      -"
}

@test "stats: connections with the keys for a cluster are told of, not counted" {
	no_cluster "there is only that form"
	go_services
	redis sadd rmq::connection::cron-Zz9Yy8::queues audit >/dev/null
	redis lpush 'rmq::connection::cron-Zz9Yy8::queue::{audit}::unacked' x >/dev/null
	run_mq 0 mq-stats audit
	assert_equal "$stderr" "mq-stats: 1 connection uses rmq's cluster layout; its messages are not counted"
	assert_equal "$(state audit 2>/dev/null)" "1 0 0 0 0"
	# A queue of which there is nothing but messages in that form.
	redis sadd rmq::queues published >/dev/null
	redis lpush 'rmq::queue::{published}::ready' x >/dev/null
	run_mq 0 mq-stats published
	assert_equal "$stderr" "mq-stats: published: its messages in rmq's cluster layout are not counted"
	run_mq 0 mq-stats
	assert_equal "$stderr" "mq-stats: 1 connection uses rmq's cluster layout; its messages are not counted
mq-stats: published: its messages in rmq's cluster layout are not counted"
	run_mq 0 mq-stats -q audit jobs
	assert_equal "$stderr" ""
	run_mq 0 mq-stats --json
	assert_equal "$stderr" ""
	assert_equal "$(jq -c .left_alone <<<"$output")" '["cron-Zz9Yy8"]'
	run_mq 0 mq-stats --json jobs
	assert_equal "$(jq -c .left_alone <<<"$output")" '[]'
}

@test "stats: sorted by the bytes of the name, and the columns are as wide as their numbers" {
	go_open b a B é a.1 a-1 10 9 ab z
	seq -f "LPUSH rmq::queue::[B]::ready %.0f" 123456 |
		redis --pipe >/dev/null
	run_mq 0 mq-stats
	assert_equal "$(awk 'NR > 1 {print $1}' <<<"$output")" \
		"$(printf '%s\n' 10 9 B a a-1 a.1 ab b z é TOTAL)"
	assert_equal "$(sed -n '1p;3,4p;$p' <<<"$output")" "\
QUEUE   READY  DELAYED  UNACKED  REJECTED  CONSUMERS  AGE  IN/S  OUT/S
9           0        0        0         0          0    -     -      -
B      123456        0        0         0          0    ?     -      -
TOTAL  123456        0        0         0          0    ?     -      -"
}

@test "stats: hostile names are shown in visible form, aligned" {
	go_open $'a\e[31mred' $'b\nc' $'d\te' $'f\xff' $'g\xc2\x9bh' 'back\slash' $'r\u202etl' plain \
		'北京' naïve $'na\u0069\u0308ve' "$(printf %01500d 0)"
	for LC_ALL in C.UTF-8 C; do
		run_mq 0 mq-stats
		assert_equal "${#lines[@]}" 14
		assert_equal "$(tr -d '\n' <<<"$output" | LC_ALL=C tr -cd \
			'\001-\037\177\233' | wc -c)" 0
		assert_line --partial 'r\342\200\256tl'
		# Every line is as wide as the head.
		assert_equal "$(widths <<<"$output" | sort -u)" "${#lines[0]}"
	done
}

# --- ages and rates -----------------------------------------------------------

@test "stats: AGE is how long the oldest ready message has been claimable" {
	local age shown

	go_open jobs
	while read -r age shown; do
		redis del "rmq::queue::[jobs]::ready" >/dev/null
		stamped jobs "{\"Mq-Id\":[\"$(stamp "$age")\"]}"
		stamped jobs "{\"Mq-Id\":[\"$(stamp 1)\"]}"
		run_mq 0 mq-stats
		assert_equal "$(ages_and_rates)" "$shown - -"
	done <<-'END'
		-100 0s
		90 1m
		3550 59m
		3700 1h
		86300 23h
		90000 1d
		9000000 104d
	END
	# One that was delayed is as old as its due time.
	redis del "rmq::queue::[jobs]::ready" >/dev/null
	stamped jobs "{\"Mq-Id\":[\"$(stamp 90000)\"],\"Mq-Due\":[\"$(($(date +%s) - 130))000\"]}"
	run_mq 0 mq-stats jobs
	assert_equal "$(ages_and_rates)" "2m - -"
}

@test "stats: what is due already is claimable, what is not is not" {
	local now

	go_open jobs
	now=$(date +%s)
	redis zadd "rmq::queue::[jobs]::delayed" $((now + 500))000 x >/dev/null
	run_mq 0 mq-stats jobs
	assert_equal "$(ages_and_rates)" "- - -"
	# The one that is claimable longer.
	redis zadd "rmq::queue::[jobs]::delayed" $((now - 200))000 y >/dev/null
	stamped jobs "{\"Mq-Id\":[\"$(stamp 100)\"]}"
	run_mq 0 mq-stats jobs
	assert_equal "$(ages_and_rates)" "3m - -"
	redis rpop "rmq::queue::[jobs]::ready" >/dev/null
	stamped jobs "{\"Mq-Id\":[\"$(stamp 4000)\"]}"
	run_mq 0 mq-stats jobs
	assert_equal "$(ages_and_rates)" "1h - -"
	# Scores that are no times.
	redis zadd "rmq::queue::[jobs]::delayed" -inf z >/dev/null
	run_mq 0 mq-stats jobs
	assert_regex "$(ages_and_rates)" '^[0-9]{5}d - -$'
	redis zrem "rmq::queue::[jobs]::delayed" z y x >/dev/null
	redis zadd "rmq::queue::[jobs]::delayed" inf z >/dev/null
	run_mq 0 mq-stats jobs
	assert_equal "$(ages_and_rates)" "1h - -"
}

@test "stats: headers that do not tell the age, or are none" {
	local header

	go_open jobs
	for header in '{}' null '{"Mq-Id":["short"]}' '{"X-Trace":["1"]}' '{' \
		"$(printf '{"A":["%070000d"],"Mq-Id":["%s"]}' 0 "$(stamp 90)")"; do
		redis del "rmq::queue::[jobs]::ready" >/dev/null
		stamped jobs "$header"
		run_mq 0 mq-stats jobs
		assert_equal "$(ages_and_rates)" "? - -"
	done
	redis del "rmq::queue::[jobs]::ready" >/dev/null
	printf '\xff\0\xbe\xbeJ{"no end":[]}' |
		redis -x lpush "rmq::queue::[jobs]::ready" >/dev/null
	run_mq 0 mq-stats jobs
	assert_equal "$(ages_and_rates)" "? - -"
	go_publish jobs ''
	redis rpop "rmq::queue::[jobs]::ready" >/dev/null
	run_mq 0 mq-stats jobs
	assert_equal "$(ages_and_rates)" "? - -"
}

@test "stats: the payload of the oldest message stays where it is" {
	go_open jobs
	stamped jobs "{\"Mq-Id\":[\"$(stamp 90)\"]}" \
		"$(head -c 3000000 /dev/zero | tr '\0' x)"
	redis config resetstat >/dev/null
	run_mq 0 mq-stats jobs
	assert_equal "$(ages_and_rates)" "1m - -"
	assert [ "$(redis info stats | tr -d '\r' |
		sed -n 's/^total_net_output_bytes://p')" -lt 500000 ]
}

@test "stats: a server that knows none of our scripts" {
	local i

	go_open q{1..120}
	for i in {1..120}; do
		stamped "q$i" "{\"Mq-Id\":[\"$(stamp 5400)\"]}"
	done
	redis script flush >/dev/null
	run_mq 0 mq-stats
	assert_equal "$(awk '$7 == "1h"' <<<"$output" | wc -l)" 121
}

# rated RATES [FIELD VALUE]...: IN/S and OUT/S of jobs with these counters as well, whose
# times are so many seconds ago.
rated() {
	local want=$1 fields=()
	shift
	while (($# > 0)); do
		[[ $1 != *_s || ! $2 =~ ^[0-9]+$ ]] || set -- "$1" $(($(date +%s) - $2)) "${@:3}"
		fields+=("$1" "$2")
		shift 2
	done
	counters jobs "${fields[@]}"
	run_mq 0 mq-stats jobs
	assert_regex "$(ages_and_rates)" "^- $want\$"
}

@test "stats: rates are of the last minute" {
	go_open jobs
	# 100 and 10 in half a minute, 350 and 440 in the minute before; some
	# seconds later when it is asked.
	rated '4\.[0-6] 3\.[0-9]' published 900 done 400 failed 50 now_s 30 now_in 800 now_out 440 \
		then_s 90 then_in 450 then_out 0
	# All of it was more than half a minute ago.
	rated '1\.[01] 0\.1' now_s 95 then_s 160
	# 25 minutes ago, and whatever was published since: nobody knows when.
	rated '- 0\.0' done 400000 now_s 1500 then_s 1560
	run_mq 0 mq-stats --json jobs
	assert_regex "$output" '"in_per_s":null,"out_per_s":0\.0,'
	# Nothing was.
	rated '0\.0 0\.0' published 800
	# The minute before was long, as only publishers counted in it.
	rated '(5\.0|4\.[0-9]|3\.[5-9]) 0\.[3-5]' published 900 done 400 now_s 20 then_s 1500
	# A burst of 300 and 30 after a day of silence, which was not slow.
	rated '30 3\.0' published 300 done 30 failed 0 now_s 0 now_in 0 now_out 0 then_s 86400 \
		then_in 0 then_out 0
}

@test "stats: rates that are not known" {
	go_open jobs
	# Only a publisher has counted.
	rated '- -' published 900
	# The first counts of all, just now.
	rated '- -' now_s 0 now_in 900 now_out 0 then_s 0 then_in 0 then_out 0
	# Half a minute later: the 900 may have come half a minute ago, too.
	rated '- 1\.[1-5]' now_s 30 then_s 30 done 45
	# So may those that came in an hour without a consumer.
	rated '- 1\.[1-5]' then_s 3600 then_in 100
	rated '0\.0 1\.[1-5]' then_in 900
	# A minute after it, they do not count any more.
	rated '0\.0 [^ ]*' now_s 61 then_s 61
	# Go programs publish, so it is not nothing.
	redis hdel 'rmq::queue::[jobs]::counters' published >/dev/null
	rated '- 1\.[1-5]' now_s 30 then_s 30 then_in 0 now_in 0
	# Nonsense.
	rated '- -' published nine done -5 now_s later
	# Counted backwards: somebody has begun anew.
	rated '- -' published 1 now_in 900 now_s 30
}

@test "stats: the total has the oldest age and the sum of the rates" {
	local now

	go_open a b c
	stamped a "{\"Mq-Id\":[\"$(stamp 90)\"]}"
	stamped b "{\"Mq-Id\":[\"$(stamp 190)\"]}"
	go_publish c raw
	now=$(date +%s)
	counters a published 40 done 0 now_s "$now" now_in 0 now_out 0 \
		then_s 1 then_in 0 then_out 0
	counters c published 20 done 10 now_s "$now" now_in 0 now_out 0 \
		then_s 1 then_in 0 then_out 0
	run_mq 0 mq-stats
	assert_output "\
QUEUE  READY  DELAYED  UNACKED  REJECTED  CONSUMERS  AGE  IN/S  OUT/S
a          1        0        0         0          0   1m   4.0    0.0
b          1        0        0         0          0   3m     -      -
c          1        0        0         0          0    ?   2.0    1.0
TOTAL      3        0        0         0          0   3m   6.0    1.0"
}

@test "stats: a paused queue has a note" {
	go_open jobs mails rest
	redis set "rmq::queue::[jobs]::paused" 1 >/dev/null
	redis set "rmq::queue::[mails]::paused" 1 EX 3601 >/dev/null
	run_mq 0 mq-stats
	assert_output "\
QUEUE  READY  DELAYED  UNACKED  REJECTED  CONSUMERS  AGE  IN/S  OUT/S  NOTE
jobs       0        0        0         0          0    -     -      -  paused
mails      0        0        0         0          0    -     -      -  paused for 1h
rest       0        0        0         0          0    -     -      -
TOTAL      0        0        0         0          0    -     -      -"
	# Beside other keys of ours, too.
	counters jobs published 1
	redis zadd "rmq::queue::[jobs]::delayed" 4102444800000 x >/dev/null
	run_mq 0 mq-stats jobs
	assert_equal "${lines[1]}" \
		"jobs       0        1        0         0          0    -     -      -  paused"
}

# connections_are TEXT: of mq-stats, which on a cluster has columns with nodes, of 15
# characters, too.
connections_are() {
	if [ "${TOPOLOGY-}" = cluster ]; then
		output=$(sed -E 's/  (HEARTBEAT ON   |QUEUE ON       |127[.0-9]+:[0-9]+| {15})//g' \
			<<<"$output")
	fi
	assert_output "$1"
}

# --- connections --------------------------------------------------------------

@test "stats --connections: live and dead ones, and those that consume nothing" {
	go_services
	redis sadd rmq::connections old-000000 >/dev/null
	redis hset rmq::connection::web-aB3dE6::info host web1 pid 4711 >/dev/null
	redis del rmq::connection::cron-Zz9Yy8::heartbeat >/dev/null
	run_mq 0 mq-stats --connections
	connections_are "\
CONNECTION   STATE  HOST   PID  QUEUE  UNACKED  CONSUMERS
cron-Zz9Yy8  dead   -        -  jobs         2          1
old-000000   dead   -        -  -            -          -
web-aB3dE6   live   web1  4711  jobs         2          2
web-aB3dE6   live   web1  4711  mails        2          1"
	assert_equal "$stderr" ""
	run_mq 0 mq-stats --connections mails idle
	connections_are "\
CONNECTION  STATE  HOST   PID  QUEUE  UNACKED  CONSUMERS
web-aB3dE6  live   web1  4711  mails        2          1"
	run_mq 1 mq-stats --connections nonesuch
	connections_are \
		"CONNECTION  STATE  HOST  PID  QUEUE  UNACKED  CONSUMERS"
	assert_equal "$stderr" "mq-stats: nonesuch: no such queue"
	# A queue that is not listed any more.
	redis srem rmq::queues jobs >/dev/null
	run_mq 0 mq-stats --connections
	assert_line --regexp '^cron-Zz9Yy8 +dead .*jobs .* 2 +1$'
}

# --- on a terminal --------------------------------------------------------------

@test "stats: colours on a terminal, unless they are not wanted" {
	local plain

	go_open bad jobs
	redis lpush "rmq::queue::[bad]::rejected" x >/dev/null
	redis set "rmq::queue::[jobs]::paused" 1 >/dev/null
	plain="\
QUEUE  READY  DELAYED  UNACKED  REJECTED  CONSUMERS  AGE  IN/S  OUT/S  NOTE
bad        0        0        0         1          0    -     -      -
jobs       0        0        0         0          0    -     -      -  paused
TOTAL      0        0        0         1          0    -     -      -"
	run_mq 0 mq-stats
	assert_output "$plain"
	TERM=xterm run terminal 100
	assert_equal "$(sed 's/\x1b\[[0-9]*m//g' <<<"$output")" "$plain"
	assert_equal "${lines[0]}" $'\e[1m'"${plain%%$'\n'*}"$'\e[0m'
	assert_equal "${lines[1]}" \
		$'bad        0        0        0         \e[31m1\e[0m          0    -     -      -'
	assert_equal "${lines[2]}" \
		$'\e[33mjobs\e[0m       0        0        0         0          0    -     -      -  \e[33mpaused\e[0m'
	NO_COLOR=1 TERM=xterm run terminal 100
	assert_output "$plain"
	NO_COLOR='' TERM=dumb run terminal 100
	assert_output "$plain"
}

@test "stats: long names are cut to a terminal's width, and only there" {
	export TERM=dumb
	go_open a-name-that-is-far-too-long-for-a-terminal 北京北京北京北京北京北京北京北京
	run terminal 80
	assert_output "\
QUEUE                          READY  DELAYED  UNACKED  REJECTED  CONSUMERS  AGE
a-name-that-is-far-too-long-…      0        0        0         0          0    -
北京北京北京北京北京北京北京…      0        0        0         0          0    -
TOTAL                              0        0        0         0          0    -"
	# Rates go first, and what tells most stays.
	redis set "rmq::queue::[a-name-that-is-far-too-long-for-a-terminal]::paused" 1 >/dev/null
	run terminal 40
	assert_line --regexp '^QUEUE +READY  REJECTED  AGE  NOTE$'
	assert_line --regexp '^a-name-t.*… +0 +0 +- +paused$'
	redis del "rmq::queue::[a-name-that-is-far-too-long-for-a-terminal]::paused" >/dev/null
	run terminal 200
	assert_line --regexp '^a-name-that-is-far-too-long-for-a-terminal +0'
	LC_ALL=C run terminal 80
	assert_line --regexp '^a-name-that-is-far-too-long-~ +0'
	run_mq 0 mq-stats
	assert_line --regexp '^a-name-that-is-far-too-long-for-a-terminal +0'
	# There is an end to cutting.
	run terminal 20
	assert_line --regexp '^a-name-…  +0'
	run terminal 40 --connections
	assert_output 'CONNECTION  STATE  HOST  PID  QUEUE  UNACKED  CONSUMERS'
}

# --- errors ---------------------------------------------------------------------

# wrong KEY: it hides nothing else, in whatever form.
wrong() {
	local says word=$1
	[ "${TOPOLOGY-}" != cluster ] || to_cluster "$1"
	says="$word: the key holds another type"
	run_mq 76 mq-stats
	assert_line --regexp '^jobs +\? +\? +\? +\? +\? +\?'
	assert_line --regexp '^other +1 +0 +0 +0 '
	assert_equal "${stderr#mq-stats: *: }" "$says"
	run_mq 76 mq-stats --json
	assert_equal "$(jq -c '[.wrong_keys[0], .totals.ready, (.queues[] | .name, .ready, .counters.published)]' <<<"$output")" \
		"$(printf '["%s",null,"jobs",null,null,"other",1,1]' "$word")"
	run_mq 76 mq-stats --prometheus
	assert_equal "$(grep ^rmq_ready <<<"$output")" 'rmq_ready{queue="other"} 1'
	run_mq 76 mq-stats --html
	assert_line "<p class=\"note\">$says</p>"
	run_mq 3 mq-stats --check ready=5
	assert_regex "$output" '^MQ UNKNOWN - jobs: ready not known; '"${says//[^a-z: ]/.}"' \|.*_ready.=U'
	run_mq 76 mq-stats jobs
	run_mq 0 mq-stats other
	run_mq 0 mq-stats --check ready=5 other
	start_mq mq-stats --watch=1s
	eventually 5 grep -q "^other" "$T/out"
	stop_mq TERM || true
}

@test "stats: something else under a queue's key: 76 at the end, the others are shown" {
	local key
	for key in ready counters delayed; do
		run_mq 0 mq-publish jobs x
		run_mq 0 mq-publish other x
		redis del "rmq::queue::[jobs]::$key" >/dev/null
		redis sadd "rmq::queue::[jobs]::$key" mine >/dev/null
		wrong "rmq::queue::[jobs]::$key"
		redis flushall >/dev/null
	done
	# Of a connection; of one, what it consumes is not known.
	run_mq 0 mq-publish jobs x
	run_mq 0 mq-publish other x
	go_consume go-111111 jobs c-111111
	key="rmq::connection::go-111111::queue::[jobs]::unacked"
	redis set "$key" mine >/dev/null
	wrong "$key"
	redis set rmq::connection::go-111111::queues mine >/dev/null
	run_mq 76 mq-stats --connections
	assert_line --regexp '^go-111111 +live '
	redis flushall >/dev/null
	redis set rmq::queues mine >/dev/null
	run_mq 76 mq-stats
	run_mq 76 mq-stats jobs
}

@test "stats: wrong usage: 64, one line; house/messages.bats has the others" {
	local args
	for args in 'jobs -u' '--prometheus --check=ready=1' '--watch=1 --check ready=1' \
		'--connections --check ready=1' '--watch=soon' --check '--check ready=' \
		'--check consumers=2:0' '--check age=5m,consumers=0' '--check ready=-1' '--check ready=1:' '--check ready=1:2:3' '--check ready=1,' \
		'--http --json' '--http --list ready q' '--list ready --since x q'; do
		# shellcheck disable=SC2086 # several words
		run_mq 64 mq-stats $args
		assert_equal "$args: $output$(wc -l <<<"$stderr")" "$args: 1"
	done
}

# --- order ------------------------------------------------------------------------

@test "stats: --sort, --reverse, --nonempty and -n, with the rest as one line" {
	printf '%s\n' 1 2 3 | "$BUILD/mq-publish" -l b
	printf '%s\n' 1 | "$BUILD/mq-publish" -l a
	printf '%s\n' 1 2 | "$BUILD/mq-publish" -l c
	"$BUILD/mq-publish" d 1
	"$BUILD/mq-purge" -f --ready d >/dev/null
	names() {
		"$BUILD/mq-stats" "$@" | awk 'NR > 1 { print $1 }' | tr '\n' ' '
	}
	assert_equal "$(names --sort ready)" "b c a d TOTAL "
	assert_equal "$(names --sort ready --reverse)" "d a c b TOTAL "
	assert_equal "$(names --sort name)" "a b c d TOTAL "
	assert_equal "$(names --reverse --nonempty)" "c b a TOTAL "
	assert_equal "$(names --sort age --nonempty c a)" "a c TOTAL "
	run_mq 0 mq-stats --sort ready -n 1
	assert_regex "${lines[1]}" '^b +3 '
	assert_regex "${lines[2]}" '^3 more +3 '
	assert_regex "${lines[3]}" '^TOTAL +6 '
	run_mq 0 mq-stats --sort ready -n 2 --nonempty --html
	assert_line --regexp '^<bdi [^>]*>1 more</bdi> +<bdi [^>]*>1</bdi>'
	assert_equal "$(sed -n 's|.*id="data">.\({.*}\),.*|\1|p' <<<"$output" | jq -c '[.queues[].name, .others.queues, .others.ready, .totals.ready]')" \
		'["b","c",1,1,6]'
	run_mq 64 mq-stats --sort size
	assert_equal "$stderr" "mq-stats: --sort: size: must be name, ready, delayed, unacked, rejected, consumers, age, in or out"
}
