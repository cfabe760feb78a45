#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-stats for programs: --json, --prometheus, --check.
# needs: metrics

load ../helpers/server
load ../helpers/wire
load go

setup() {
	common_setup
	hostile=$'a"b\\c\nd\te{}|=\xff\xc2\x9b\'é'
}

# Queues and connections as a Go program leaves them.
go_system() {
	go_publish jobs j1 j2 j3
	redis lpush "rmq::queue::[jobs]::rejected" r1 r2 >/dev/null
	go_consume web-111111 jobs a b
	redis lpush "rmq::connection::web-111111::queue::[jobs]::unacked" \
		u1 >/dev/null
	go_open idle
	go_connect old-222222 jobs idle
	redis del rmq::connection::old-222222::heartbeat >/dev/null
	redis lpush "rmq::connection::old-222222::queue::[jobs]::unacked" \
		u2 u3 >/dev/null
}

# What only our tools write.
own_keys() {
	local q="rmq::queue::[jobs]"

	redis hset "$q::counters" published 1000 runs 90 done 70 failed 7 expired 4 \
		retried 13 crashed 3 lease_lost 2 replaced 6 dropped 8 run_ms 123456 \
		run_0 10 run_1 1 run_14 5 run_15 4 >/dev/null
	redis zadd "$q::delayed" 4102444800000 later \
		$(($(date +%s) * 1000 - 500000)) due >/dev/null
	redis set "$q::paused" 1 >/dev/null
	redis set "rmq::queue::[idle]::paused" 1 PX 600000 >/dev/null
	redis hset rmq::connection::web-111111::info host web1 pid 4711 >/dev/null
}

# json EXPRESSION...: of the value v, as JSON, one a line.
# On a cluster it also says which node has what.
json() {
	python3 -IS -c 'import json, sys
v = json.loads(sys.stdin.buffer.read().decode("utf-8"),
    object_hook=lambda o: {k: o[k] for k in o if k != "node"})
for e in sys.argv[1:]:
    print(json.dumps(eval(e), sort_keys=True))' "$@" <<<"$output"
}

# --- JSON -----------------------------------------------------------------------

@test "json: of a Go system, all of it" {
	go_system
	run_mq 0 mq-stats --json
	assert_equal "${#lines[@]}" 1
	assert_equal "$(json 'list(v)')" '["time_ms", "queues", "left_alone", "maxmemory_policy", "totals"]'
	assert_equal "$(json 'abs(v["time_ms"] / 1000 - __import__("time").time()) < 60')" true
	assert_equal "$(json 'v["queues"]')" "$(python3 -IS -c '
import json
def queue(name, ready, unacked, rejected, consumers):
	return dict(name=name, known=True, minutes=[], hours=[], ready=ready, delayed=0, in_line=0,
	    unacked=unacked, rejected=rejected, consumers=consumers, dead_consumers=0,
	    oldest_age_s=None, last_done_ms=None, next_due_ms=None, tick=None, paused=False,
	    paused_until_ms=None, all_paused=False, in_per_s=None, out_per_s=None, counters=None)
print(json.dumps([queue("idle", 0, 0, 0, 0), queue("jobs", 3, 3, 2, 2)],
    sort_keys=True))')"
	assert_equal "$(json 'v["totals"]')" '{"consumers": 2, "dead_consumers": 0, "delayed": 0, "in_per_s": null, "oldest_age_s": null, "out_per_s": null, "ready": 3, "rejected": 2, "unacked": 3}'
}

@test "json: what only our tools know" {
	go_system
	own_keys
	run_mq 0 mq-stats --json jobs idle
	assert_equal "$(json '[q["name"] for q in v["queues"]]' \
		'v["queues"][0]["delayed"]' '500 <= v["queues"][0]["oldest_age_s"] <= 560' \
		'v["queues"][0]["next_due_ms"] < v["time_ms"]' \
		'[(q["paused"], q["paused_until_ms"] is None) for q in v["queues"]]' \
		'540000 < v["queues"][1]["paused_until_ms"] - v["time_ms"] <= 600000' \
		'{k: n for k, n in v["queues"][0]["counters"].items() if k != "run_buckets"}' \
		'[b["up_to_s"] for b in v["queues"][0]["counters"]["run_buckets"]]' \
		'[b["runs"] for b in v["queues"][0]["counters"]["run_buckets"]]' \
		'v["queues"][1]["counters"]' '500 <= v["totals"]["oldest_age_s"] <= 560')" '["jobs", "idle"]
2
true
true
[[true, true], [true, false]]
true
{"attempts": 90, "crashed": 3, "done": 70, "dropped": 8, "expired": 4, "failed": 7, "lease_lost": 2, "published": 1000, "replaced": 6, "retried": 13, "run_s": 123.456}
[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, null]
[10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 4]
null
true'
}

@test "json: rates are numbers that people can read" {
	local now

	redis sadd rmq::queues jobs >/dev/null
	now=$(date +%s)
	redis hset "rmq::queue::[jobs]::counters" published 7 done 1 now_s "$now" \
		now_in 0 now_out 0 then_s 1 >/dev/null
	run_mq 0 mq-stats --json
	assert_regex "$output" '"in_per_s":0\.7,"out_per_s":0\.1[,}]'
}

@test "json: connections, when they are asked for" {
	go_system
	own_keys
	run_mq 0 mq-stats --json --connections
	assert_equal "$(json 'list(v)')" \
		'["time_ms", "queues", "connections", "left_alone", "maxmemory_policy", "totals"]'
	assert_equal "$(json '50000 < v["connections"][1].pop("lease_ms") <= 60000')" true
	assert_equal "$(json '[v["connections"][0], (v["connections"][1].pop("lease_ms"), v["connections"][1])[1]]')" \
		"$(python3 -IS -c '
import json
print(json.dumps([
    dict(name="old-222222", live=False, lease_ms=None, host=None, pid=None,
        queues=[dict(queue="idle", unacked=0, consumers=0),
            dict(queue="jobs", unacked=2, consumers=0)]),
    dict(name="web-111111", live=True, host="web1", pid=4711,
        queues=[dict(queue="jobs", unacked=1, consumers=2)])],
    sort_keys=True))')"
}

# names: those on stdin, in which \xNN is a byte, each with a line.
names() {
	perl -pe 's/\\x([0-9a-f]{2})/chr hex $1/ge' | LC_ALL=C sort
}

@test "names: two that differ are two everywhere, and can be typed back; a terminal is not driven" {
	local names=($'\xff' '\xff' '\x5cxff' '\xFF' $'\\x\xff' 'a\b' '\377' $'\x9b' $'\xc2\x9b' \
		$'a\a\x7f\u202e') shown
	go_open "${names[@]}"
	printf '%s\n' "${names[@]}" | LC_ALL=C sort >"$T/names"
	run_mq 0 mq-stats --json
	jq -r '.queues[].name' <<<"$output" | names | cmp - "$T/names"
	terminal 200 --json >"$T/tty"
	jq -r '.queues[].name' "$T/tty" | names | cmp - "$T/names"
	terminal 200 --prometheus >>"$T/tty"
	run ! grep -P '[^\n\P{Cc}]|\x{202e}' "$T/tty"
	"$BUILD/mq-stats" --prometheus | cat - "$T/tty" |
		sed -n 's/^rmq_ready{queue="\(.*\)"}.*/\1/p' | sed 's/\\\\/\\/g' | names | uniq -c |
		sed 's/^ *2 //' | cmp - "$T/names"
	for shown in $("$BUILD/mq-stats" | sed '1d;$d;s/ .*//'); do
		dash -c 'printf "%s\n" "$(printf %b "$1")"' . "$shown"
	done | LC_ALL=C sort | cmp - "$T/names"
	# Only such names are shown in another way.
	run_mq 0 mq-stats --json
	assert_equal "$(jq -r '.queues[].name' <<<"$output" | grep ^a.b)" 'a\b'
}

@test "json: an empty server, hostile names, names that are no UTF-8, and an unknown queue" {
	run_mq 0 mq-stats --json --connections
	assert_equal "$(json '[v["queues"], v["connections"], v["totals"]["ready"]]')" \
		'[[], [], 0]'
	redis sadd rmq::queues "$hostile" >/dev/null
	redis sadd rmq::connections "$hostile" >/dev/null
	run_mq 0 mq-stats --json --connections
	assert_equal "${#lines[@]}" 1
	assert_equal "$(json '[v["queues"][0]["name"] == v["connections"][0]["name"] == "a\"b\\c\nd\te{}|=\\xff\u009b'"'"'é"]')" '[true]'
	run_mq 1 mq-stats --json nonesuch
	assert_equal "$(json '[v["queues"][0][k] for k in ("known", "ready", "counters")]')" \
		'[false, 0, null]'
	assert_equal "$stderr" "mq-stats: nonesuch: no such queue"
}

# --- Prometheus -------------------------------------------------------------------

promtool_likes() {
	run promtool check metrics <<<"$output"
	assert_output ""
	assert_success
}

# samples: what is no comment, of the output before promtool's.
# Those of queues.
samples() {
	grep -v -e '^#' -e '^mq_evicts ' -e '^mq_all_paused ' -e '^mq_queue_node' -e '^mq_lost_nodes' \
		<<<"$output" | sed 's/,node="[^"]*"//'
}

@test "prometheus: a Go system has rmqprom's five gauges and four more" {
	go_system
	run_mq 0 mq-stats --prometheus
	assert_equal "$(samples)" 'rmq_ready{queue="idle"} 0
rmq_ready{queue="jobs"} 3
rmq_rejected{queue="idle"} 0
rmq_rejected{queue="jobs"} 2
rmq_connection{queue="idle"} 0
rmq_connection{queue="jobs"} 1
rmq_consumer{queue="idle"} 0
rmq_consumer{queue="jobs"} 2
rmq_unacked{queue="idle"} 0
rmq_unacked{queue="jobs"} 3
mq_dead_consumers{queue="idle"} 0
mq_dead_consumers{queue="jobs"} 0
mq_delayed{queue="idle"} 0
mq_delayed{queue="jobs"} 0
mq_oldest_age_seconds{queue="idle"} 0
mq_paused{queue="idle"} 0
mq_paused{queue="jobs"} 0
mq_last_done_seconds{queue="idle"} 0
mq_last_done_seconds{queue="jobs"} 0'
	promtool_likes
}

@test "prometheus: what only our tools know" {
	local age

	go_system
	own_keys
	run_mq 0 mq-stats --prometheus jobs
	age=$(sed -n 's/^mq_oldest_age_seconds{queue="jobs"} //p' <<<"$output")
	assert [ "${age%.*}" -ge 500 ]
	assert [ "${age%.*}" -le 560 ]
	assert_equal "$(samples | grep -v age | tail -n +6)" \
		'mq_dead_consumers{queue="jobs"} 0
mq_delayed{queue="jobs"} 2
mq_paused{queue="jobs"} 1
mq_published_total{queue="jobs"} 1000
mq_attempts_total{queue="jobs"} 90
mq_done_total{queue="jobs"} 70
mq_failed_total{queue="jobs"} 7
mq_expired_total{queue="jobs"} 4
mq_retried_total{queue="jobs"} 13
mq_crashed_total{queue="jobs"} 3
mq_lease_lost_total{queue="jobs"} 2
mq_replaced_total{queue="jobs"} 6
mq_dropped_total{queue="jobs"} 8
'"$(for bucket in 0.005:10 {0.01,0.025,0.05,0.1,0.25,0.5,1,2.5,5,10,30,60,300}:11 1800:16 +Inf:20; do
		echo "mq_run_duration_seconds_bucket{queue=\"jobs\",le=\"${bucket%:*}\"} ${bucket#*:}"
	done)"'
mq_run_duration_seconds_sum{queue="jobs"} 123.456
mq_run_duration_seconds_count{queue="jobs"} 20'
	promtool_likes
}

@test "prometheus: each family has HELP and TYPE, also on an empty server" {
	run_mq 0 mq-stats --prometheus
	assert_equal "$(samples)" ""
	assert_equal "$(sed -n 's/^# TYPE //p' <<<"$output")" \
		"$(printf '%s gauge\n' rmq_ready rmq_rejected rmq_connection \
			rmq_consumer rmq_unacked mq_dead_consumers mq_delayed \
			mq_oldest_age_seconds mq_paused mq_slots_taken mq_slots_shared \
			mq_last_done_seconds
		printf '%s counter\n' mq_published_total mq_attempts_total \
			mq_done_total mq_failed_total mq_expired_total \
			mq_retried_total mq_crashed_total mq_lease_lost_total \
			mq_replaced_total mq_dropped_total
		echo mq_run_duration_seconds histogram
		printf '%s gauge\n' mq_all_paused mq_evicts)"
	assert_equal "$(sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' <<<"$output")" \
		"$(sed -n 's/^# HELP \([^ ]*\) [A-Z1].*\.$/\1/p' <<<"$output")"
	promtool_likes
}

@test "prometheus: hostile names are escaped, a queue named twice is there once" {
	redis sadd rmq::queues "$hostile" jobs >/dev/null
	redis hset "rmq::queue::[$hostile]::counters" published 1 >/dev/null
	run_mq 0 mq-stats --prometheus
	assert_line 'rmq_ready{queue="a\"b\\c\nd	e{}|=\\xff'$'\xc2\x9b\'''é"} 0'
	assert_line 'mq_published_total{queue="a\"b\\c\nd	e{}|=\\xff'$'\xc2\x9b\'''é"} 1'
	promtool_likes
	run_mq 0 mq-stats --prometheus jobs jobs
	assert_equal "$(grep -c '^rmq_ready' <<<"$output")" 1
	promtool_likes
}

# --- check ----------------------------------------------------------------------

# check STATUS LIMITS QUEUE... : the line is in $output.
check() {
	run_mq "$1" mq-stats --check "${@:2}"
	assert_equal "${#lines[@]}" 1
	assert_equal "$stderr" ""
}

@test "check: done-within: never, a moment ago, too long ago, and not known" {
	local counters='rmq::queue::[jobs]::counters' now
	run_mq 0 mq-publish jobs a b c
	check 1 done-within=26h jobs
	assert_output "MQ WARNING - jobs: done-within never | 'jobs_done-within'=U;;93600;0"
	run_mq 0 mq-stats --json jobs
	assert_equal "$(json '[v["queues"][0]["last_done_ms"]]')" '[null]'
	# A rejected message is not done.
	run_mq 1 mq-consume -q -n 1 --attempts 1 jobs -- false
	check 1 done-within=26h jobs
	run_mq 0 mq-consume -q -n 1 jobs -- true
	check 0 done-within=26h jobs
	run_mq 0 mq-stats --prometheus jobs
	now=$(sed -n 's/^mq_last_done_seconds{queue="jobs"} //p' <<<"$output")
	assert [ $(($(date +%s) - now)) -le 5 ]
	# 27 hours later: one that waits, too, makes a note.
	redis hset "$counters" done_s $((now - 97200)) >/dev/null
	check 2 done-within=1h:26h jobs
	assert_regex "$output" '^MQ CRITICAL - jobs: done-within 972[0-9][0-9](\.[0-9]+)?s \(more than 93600s\)'
	check 1 done-within=26h:99h jobs
	assert_regex "$output" '^MQ WARNING - jobs: done-within '
	# The ack of a lease counts, too.
	run_mq 0 mq-lease --for 1h --jsonl jobs
	run_mq 0 mq-lease --ack "$(jq -r .receipt <<<"$output")" jobs
	check 0 done-within=26h jobs
	# Older programs have counted, but not the time.
	redis hdel "$counters" done_s >/dev/null
	check 3 done-within=26h jobs
	assert_regex "$output" '^MQ UNKNOWN - jobs: done-within not known '
	run_mq 0 mq-stats --prometheus jobs
	refute_line --partial 'mq_last_done_seconds{'
	run_mq 64 mq-stats --sort done-within
}

@test "check: consumers that have died do not count, and are shown apart" {
	go_system
	go_consume cron-222222 jobs c-5
	check 0 consumers=3 jobs
	redis del rmq::connection::web-111111::heartbeat >/dev/null
	check 2 consumers=2 jobs
	assert_output "MQ CRITICAL - jobs: consumers 1 (fewer than 2) | 'jobs_consumers'=1;;2:;0"
	run_mq 0 mq-stats --json jobs
	assert_equal "$(json '[v["queues"][0]["consumers"], v["queues"][0]["dead_consumers"], v["totals"]["dead_consumers"], v["totals"]["unacked"]]')" '[1, 2, 2, 3]'
	run_mq 0 mq-stats --prometheus jobs
	assert_line 'rmq_consumer{queue="jobs"} 1'
	assert_line 'mq_dead_consumers{queue="jobs"} 2'
	run_mq 0 mq-stats --html jobs
	assert_output --partial '<bdi class="warn">2 dead consumers</bdi>'
	run_mq 0 mq-stats
	assert_regex "${lines[2]}" '^jobs .* 1 .* 2 dead consumers$'
	assert_regex "${lines[3]}" '^TOTAL .* 1 .* 2 dead consumers$'
	redis set 'rmq::queue::[jobs]::paused' 1 >/dev/null
	run_mq 0 mq-stats jobs
	assert_regex "${lines[1]}" 'paused, 2 dead consumers$'
}

@test "check: limits, at them and beyond; of several queues the worst, and what is not known" {
	local status args want

	go_system
	while IFS=@ read -r status args want; do
		# shellcheck disable=SC2086 # words
		check "$status" $args
		assert_equal "$args: $output" "$args: MQ $want"
	done <<-'END'
		0@ready=3 jobs@OK - jobs: ready 3 | 'jobs_ready'=3;;3;0
		2@ready=2 jobs@CRITICAL - jobs: ready 3 (more than 2) | 'jobs_ready'=3;;2;0
		1@ready=2:3 jobs@WARNING - jobs: ready 3 (more than 2) | 'jobs_ready'=3;2;3;0
		2@ready=1:2 jobs@CRITICAL - jobs: ready 3 (more than 2) | 'jobs_ready'=3;1;2;0
		0@consumers=2 jobs@OK - jobs: consumers 2 | 'jobs_consumers'=2;;2:;0
		2@consumers=3 jobs@CRITICAL - jobs: consumers 2 (fewer than 3) | 'jobs_consumers'=2;;3:;0
		1@consumers=3:1 jobs@WARNING - jobs: consumers 2 (fewer than 3) | 'jobs_consumers'=2;3:;1:;0
		2@unacked=2,rejected=2,delayed=0 jobs@CRITICAL - jobs: delayed 0, unacked 3 (more than 2), rejected 2 | 'jobs_delayed'=0;;0;0 'jobs_unacked'=3;;2;0 'jobs_rejected'=2;;2;0
		0@ready=5@OK - 2 queues | 'idle_ready'=0;;5;0 'jobs_ready'=3;;5;0
		2@ready=5,consumers=2:1@CRITICAL - idle: ready 0, consumers 0 (fewer than 1) | 'idle_ready'=0;;5;0 'idle_consumers'=0;2:;1:;0 'jobs_ready'=3;;5;0 'jobs_consumers'=2;2:;1:;0
		2@ready=2:9,consumers=2:1@CRITICAL - idle: ready 0, consumers 0 (fewer than 1); jobs: ready 3 (more than 2), consumers 2 | 'idle_ready'=0;2;9;0 'idle_consumers'=0;2:;1:;0 'jobs_ready'=3;2;9;0 'jobs_consumers'=2;2:;1:;0
		3@ready=9 nonesuch@UNKNOWN - nonesuch: no such queue
		3@ready=9 jobs nonesuch@UNKNOWN - nonesuch: no such queue | 'jobs_ready'=3;;9;0
		1@ready=2:9 nonesuch jobs@WARNING - nonesuch: no such queue; jobs: ready 3 (more than 2) | 'jobs_ready'=3;2;9;0
	END
	redis flushall >/dev/null
	check 3 ready=9
	assert_output "MQ UNKNOWN - no queues"
}

@test "check: the age of the oldest claimable message" {
	redis sadd rmq::queues jobs >/dev/null
	check 0 age=0 jobs
	assert_output "MQ OK - jobs: age 0s | 'jobs_age'=0s;;0;0"
	redis zadd "rmq::queue::[jobs]::delayed" \
		$(($(date +%s) * 1000 - 500000)) due >/dev/null
	check 0 age=1h jobs
	assert_regex "$output" "^MQ OK - jobs: age 5[0-9][0-9](\.[0-9]+)?s \| 'jobs_age'=5[0-9][0-9](\.[0-9]+)?s;;3600;0\$"
	check 1 age=2.5s:1h jobs
	assert_regex "$output" "^MQ WARNING - jobs: age 5[0-9.]+s \(more than 2\.5s\) \| 'jobs_age'=5[0-9.]+s;2\.5;3600;0\$"
	check 2 age=5m jobs
	# One that is not due does not count; one of which nobody knows does.
	redis del "rmq::queue::[jobs]::delayed" >/dev/null
	redis zadd "rmq::queue::[jobs]::delayed" 4102444800000 later >/dev/null
	check 0 age=0 jobs
	redis lpush "rmq::queue::[jobs]::ready" raw >/dev/null
	check 3 age=1h,ready=1 jobs
	assert_output "MQ UNKNOWN - jobs: ready 1, age not known | 'jobs_ready'=1;;1;0 'jobs_age'=U;;3600;0"
	check 2 age=1h,ready=0 jobs
}

@test "check: whatever goes wrong is unknown, in one line on stdout" {
	check 3 ready=1 -u "unix://$T/nothing"
	assert_output "MQ UNKNOWN - unix://$T/nothing: No such file or directory"
	check 3 ready=1 -u nonsense://x
	assert_regex "$output" '^MQ UNKNOWN - server URL: unknown scheme'
	MQ_PASSWORD_FILE=$T/no-file check 3 ready=1
	assert_regex "$output" '^MQ UNKNOWN - '
	redis acl setuser blind on '>pw' allkeys +@all -llen >/dev/null
	check 3 ready=1 jobs -u "$(url_as blind:pw)"
	assert_regex "$output" '^MQ UNKNOWN - .*NOPERM'
	redis set rmq::queues mine >/dev/null
	check 3 ready=1
	assert_regex "$output" '^MQ UNKNOWN - .*WRONGTYPE'
}

@test "check: hostile names cannot make perfdata, lines or labels" {
	redis sadd rmq::queues "$hostile" >/dev/null
	redis lpush "rmq::queue::[$hostile]::ready" x >/dev/null
	check 2 ready=0
	assert_equal "$(tr -cd '|' <<<"$output")" '|'
	assert_output "MQ CRITICAL - a\"b\\\\c\\nd\\te{}!=\\377\\302\\233'é: ready 1 (more than 0) | 'a\"b\\\\c\\nd\\te{}!_\\377\\302\\233''é_ready'=1;;0;0"
}
