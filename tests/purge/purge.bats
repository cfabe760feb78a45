#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# topologies: cluster
# mq-purge: on queues as a Go program leaves them, and on our own.

load ../helpers/server
load ../helpers/go
load ../helpers/wire

# A queue that Go programs used: 3 ready, 2 rejected.
go_queue() {
	redis sadd rmq::queues "$1" >/dev/null
	redis lpush "rmq::queue::[$1]::ready" a b c >/dev/null
	redis lpush "rmq::queue::[$1]::rejected" d e >/dev/null
}

# go_consumer CONNECTION QUEUE [UNACKED...]
go_consumer() {
	go_connect "$1"
	go_consume "$1" "$2"
	[ $# = 2 ] || go_holds "$@"
}

# purges TEXT ARG...: mq-purge ends with 0, and has printed that.
purges() {
	run_mq 0 mq-purge "${@:2}"
	assert_output "$1"
}

# answered STATUS ANSWER ARG...: on a terminal, it ends with that.
answered() {
	run on_terminal "$2" "$BUILD/mq-purge" "${@:3}"
	assert_equal "$status" "$1"
}

@test "purge: each state alone, and all, of a queue as Go leaves it" {
	go_queue jobs
	purges "3 messages purged" -f --ready jobs
	assert_equal "$stderr" ""
	assert_equal "$(held jobs)" "0 0 0 2"
	run_mq 0 mq-purge --force --rejected --json jobs
	says_purged 2 0 0 2 false false
	assert_equal "$(redis keys '*')" rmq::queues
	go_queue jobs
	"$BUILD/mq-publish" -d 1h jobs later
	purges "1 message purged" -f --delayed jobs
	"$BUILD/mq-publish" -d 1h jobs later
	go_consumer web-aaaaaa jobs held
	run_mq 0 mq-purge -f --all --json jobs
	says_purged 6 3 1 2 false false
	assert_equal "$(held jobs)" "0 0 1 0"
}

@test "purge: nothing there: 1" {
	redis sadd rmq::queues jobs >/dev/null
	digest >"$T/before"
	run_mq 1 mq-purge -f --all jobs
	assert_output "0 messages purged"
	run_mq 1 mq-purge -f --ready --match x jobs
	tells 1 "" mq-purge -f --rejected -n 3 jobs
	tells 1 "mq-purge: nonesuch: no such queue" mq-purge -f --all --json nonesuch
	says_purged 0 0 0 0 false false nonesuch
	assert_equal "$(digest)" "$(cat "$T/before")"
}

# says_purged N READY DELAYED REJECTED DELETED DRY_RUN [QUEUE]: in JSON.
says_purged() {
	assert_output "{\"queue\":\"${7-jobs}\",\"purged\":$1,\"ready\":$2,\"delayed\":$3,\"rejected\":$4,\"deleted\":$5,\"dry_run\":$6}"
}

@test "purge: --limit goes over all states, the oldest of each first" {
	go_queue jobs
	"$BUILD/mq-publish" --raw -d 1h jobs later
	purges "2 messages purged" -f --all -n 2 jobs
	assert_equal "$(list jobs ready)" c
	run_mq 0 mq-purge -f --all -n 3 --json jobs
	says_purged 3 1 1 1 false false
	assert_equal "$(list jobs rejected)" e
}

@test "purge: --dry-run is exact, asks nobody, and changes nothing" {
	go_queue jobs
	"$BUILD/mq-publish" --raw -d 1h jobs beta
	digest >"$T/before"
	purges "6 messages would be purged" --dry-run --all jobs
	run_mq 0 mq-purge --dry-run --all --match '[be]' --json jobs
	says_purged 3 1 1 1 false true
	purges "4 messages would be purged" --dry-run --all -n 4 jobs
	run_mq 0 mq-purge --dry-run --delete-queue --json jobs
	says_purged 6 3 1 2 false true
	assert_equal "$(digest)" "$(cat "$T/before")"
}

@test "purge: filters on all states; --older-than and --since are opposites" {
	local now day
	now=$(date +%s%3N)
	day=$((now - 86400000))
	py "
head = b'\xff\0\xbe\xbe\x4a'
for state in 'ready', 'rejected':
    fill('jobs', state, [
      head + b'{\"Mq-Due\":[\"$now\"]}\nyoung', head + b'{\"Mq-Due\":[\"$day\"]}\nold',
      b'undated', head + b'{\"Mq-Due\":[\"$day\"],\"Mq-Error\":[\"bad\"]}\nold bad'])"
	purges "4 messages would be purged" -f --all --older-than 1h --dry-run jobs
	purges "2 messages would be purged" -f --all --since 1h --dry-run jobs
	run_mq 1 mq-purge -f --all --since 1h --older-than 1h jobs
	purges "2 messages purged" -f --all --since 2d --older-than 1h --reason '^bad$' jobs
	purges "1 message purged" -f --rejected --older-than 1h jobs
	py "want([e.split(b'\n')[-1] for e in read('jobs', 'ready')], [b'young', b'old', b'undated'])
want([e.split(b'\n')[-1] for e in read('jobs', 'rejected')], [b'young', b'undated'])"
}

@test "purge: consumers take and publishers push meanwhile: the count is kept" {
	py 'fill("jobs", "ready", [b"x%d" % i for i in range(20000)])'
	py '
got = [call("RPOP", key("jobs", "ready")) for i in range(3000)]
open(os.environ["T"] + "/got", "wb").write(b"\n".join(g for g in got if g))' 3>&- &
	py '
for i in range(20000, 23000):
    call("LPUSH", key("jobs", "ready"), b"x%d" % i)' 3>&- &
	run_mq 0 mq-purge -f --ready --match '[37]$' jobs
	wait
	PURGED=${output%% *} py '
got = open(os.environ["T"] + "/got", "rb").read().split(b"\n")
rest = read("jobs", "ready")
want(len(got) + len(rest) + int(os.environ["PURGED"]), 23000)
want(sorted(rest, key=lambda e: int(e[1:])), rest)
want(len(set(got + rest)), len(got + rest))
# All that were there and nobody else took are gone.
want([e for e in rest if e[-1:] in b"37" and int(e[1:]) < 20000], [])
want([e for e in got + rest if e[-1:] not in b"37"].__len__(), 18400)'
}

@test "purge: INT: the exact count, and a new run goes on" {
	local n
	# Much to look at, so that the signal meets it half-way.
	for _ in {1..10}; do
		redis flushall >/dev/null
		py 'fill("jobs", "ready", [b"%d" % i + b"x" * 500 for i in range(100000)])'
		start_mq mq-purge -f --ready --match '^[0-9]*[05]x*$' jobs
		eventually 10 eval '(($(redis llen "rmq::queue::[jobs]::ready") < 100000))'
		kill -INT "$pid" 2>/dev/null || true
		ends_within 60
		[ "$status" = 0 ] || break
	done
	n=$((100000 - $(redis llen 'rmq::queue::[jobs]::ready')))
	assert_equal "$status" 130
	assert_equal "$(cat "$T/err")" "mq-purge: interrupted
mq-purge: $n messages purged"
	purges "$((20000 - n)) messages purged" -f --ready --match '^[0-9]*[05]x*$' jobs
	py 'want(read("jobs", "ready"), [b"%d" % i + b"x" * 500 for i in range(100000) if i % 5])'
}

@test "purge: on a terminal it asks, with the name and the counts" {
	local answer
	go_queue 'odd jobs'
	digest >"$T/before"
	for answer in $'n\n' $'\n' $'\x04' $'yesss\n' $'y y\n'; do
		answered 1 "$answer" --all 'odd jobs'
		assert_line --partial \
			'odd jobs: remove 3 ready, 0 delayed, 2 rejected? [y/N] '
		assert_line --partial 'mq-purge: nothing was removed'
	done
	assert_equal "$(digest)" "$(cat "$T/before")"
	run on_terminal $'n\n' "$BUILD/mq-purge" --delete-queue 'odd jobs'
	assert_line --partial 'odd jobs: delete the queue, with 3 ready, '
	run on_terminal $'n\n' "$BUILD/mq-purge" --ready --match b 'odd jobs'
	assert_line --partial 'odd jobs: remove 1 ready? [y/N] '
	answered 254 $'\x03' --all 'odd jobs'
	assert_equal "$(digest)" "$(cat "$T/before")"
	answered 0 $'y\n' --rejected 'odd jobs'
	assert_line --partial '2 messages purged'
	answered 0 $'YES\n' --delete-queue 'odd jobs'
	assert_equal "$(redis dbsize)" 0
}

# Not of how many, but how many; and what there is none of is not asked for.
@test "purge: of several queues it asks about each, before anything is removed" {
	redis sadd rmq::queues a b c >/dev/null
	redis lpush 'rmq::queue::[a]::ready' 1 2 >/dev/null
	redis lpush 'rmq::queue::[c]::rejected' 3 >/dev/null
	run on_terminal $'y\n' "$BUILD/mq-purge" --all a
	redis lpush 'rmq::queue::[a]::ready' 1 2 >/dev/null
	answered 1 $'n\n' --all a b c
	assert_output --partial 'a: remove 2 ready, 0 delayed, 0 rejected? [y/N] '
	assert_output --partial 'nothing was removed'
	assert_equal "$(held a) $(held c)" "2 0 0 0 0 0 0 1"
	purges $'a: 2 messages purged' --force -n 2 --all a b c
	run_mq 0 mq-purge --force --all --json a b c
	assert_equal "$(jq -c '[.queue, .purged]' <<<"$output" | xargs)" '[a,0] [b,0] [c,1]'
	run_mq 0 mq-purge --force --delete-queue a b nonesuch
	assert_output $'a: 0 messages purged, and the queue deleted\nb: 0 messages purged, and the queue deleted\nnonesuch: 0 messages purged'
	run_mq 1 mq-purge --force --all c nonesuch
}

# Lua passes 8,000 words on at most.
@test "purge: a queue beside thousands of connections is deleted" {
	redis eval 'for i = 1, 1500 do
		redis.call("SADD", "rmq::connections", "c" .. i)
		redis.call("SET", "rmq::connection::c" .. i .. "::heartbeat", 1, "EX", 60)
	end' 0 >/dev/null
	run_mq 0 mq-publish q x
	purges '1 message purged, and the queue deleted' --force --delete-queue q
}

@test "purge: it asks with the number that goes: filters, limits, delayed ones" {
	seq 20 | "$BUILD/mq-publish" -l jobs
	seq 15 | "$BUILD/mq-publish" -l -d 1h jobs
	"$BUILD/mq-publish" -g one jobs first second third
	digest >"$T/before"
	ask() {
		answered 1 $'n\n' "${@:2}" jobs
		assert_line --partial "jobs: remove $1? [y/N] "
		assert_equal "$(digest)" "$(cat "$T/before")"
	}
	ask '21 ready, 17 delayed, 0 rejected' --all
	ask '11 ready' --ready --match '^1'
	ask '11 ready, 7 delayed, 0 rejected' --all --match '^1'
	ask '5 ready, 0 delayed, 0 rejected' --all --match '^1' -n 5
	ask '7 ready' --ready -n 7
	ask '17 delayed' --delayed -n 70
	for args in '--rejected' '--ready --match x' '--delayed --reason y'; do
		# shellcheck disable=SC2086
		answered 1 $'y\n' $args jobs
		assert_equal "${output%$'\r'}" "0 messages purged"
		assert_equal "$(digest)" "$(cat "$T/before")"
	done
	answered 0 $'y\n' --all --match '^1' jobs
	assert_line --partial '18 messages purged'
	answered 1 $'y\n' --all nonesuch
	refute_line --partial '[y/N]'
}

@test "purge: --force and --dry-run do not ask, and hostile names do no harm" {
	go_queue $'j\u009bobs'
	run on_terminal '' "$BUILD/mq-purge" --dry-run --all $'j\u009bobs'
	assert_equal "${output%$'\r'}" '5 messages would be purged'
	run on_terminal $'n\n' "$BUILD/mq-purge" --all $'j\u009bobs'
	refute_line --partial $'\u009b'
	run on_terminal '' "$BUILD/mq-purge" -f --all $'j\u009bobs'
	assert_equal "${output%$'\r'}" '5 messages purged'
}

@test "purge: --delete-queue: the queue and all of its keys, nothing else's" {
	go_queue jobs
	go_queue keep
	"$BUILD/mq-publish" -d 1h jobs later
	redis set 'rmq::queue::[jobs]::paused' 1 >/dev/null
	redis hset 'rmq::queue::[jobs]::counters' failed 5 >/dev/null
	# A dead consumer of both, with nothing in its hands.
	go_consumer web-aaaaaa jobs
	go_consumer web-aaaaaa keep
	go_dies web-aaaaaa
	run_mq 0 mq-purge -f --delete-queue --json jobs
	says_purged 6 3 1 2 true false
	assert_equal "$(redis keys '*' | sort)" "$(sort <<-'END'
		rmq::queues
		rmq::queue::[keep]::ready
		rmq::queue::[keep]::rejected
		rmq::connections
		rmq::connection::web-aaaaaa::queues
		rmq::connection::web-aaaaaa::queue::[keep]::consumers
	END
	)"
	assert_equal "$(redis smembers rmq::queues)" keep
	assert_equal "$(redis smembers rmq::connection::web-aaaaaa::queues)" keep
	run_mq 1 mq-purge -f --delete-queue jobs
	assert_output "0 messages purged"
	run_mq 1 mq-purge -f --delete-queue --json jobs
	says_purged 0 0 0 0 false false
	run_mq 0 mq-purge -f --rejected --ready keep
	# An empty queue is something to delete, too.
	purges "0 messages would be purged, and the queue deleted" --dry-run --delete-queue keep
	purges "0 messages purged, and the queue deleted" -f --delete-queue keep
}

@test "purge: --delete-queue refuses while Go programs have it in a cluster's form" {
	no_cluster "that is the form of all keys there"
	local key
	for key in 'rmq::queue::{jobs}::ready' 'rmq::queue::{jobs}::rejected' \
	    'rmq::connection::web-aaaaaa::queue::{jobs}::unacked' \
	    'rmq::connection::web-aaaaaa::queue::{jobs}::consumers'; do
		redis flushall >/dev/null
		go_queue jobs
		go_consumer web-aaaaaa jobs
		go_dies web-aaaaaa
		redis lpush "$key" x >/dev/null
		before=$(digest)
		run_mq 76 mq-purge -f --delete-queue jobs
		assert_equal "$stderr" "mq-purge: jobs: Go programs have keys of this queue in rmq's cluster layout; destroy the queue with one of these programs first"
		assert_equal "$(digest)" "$before"
	done
}

@test "purge: --delete-queue refuses while consumers live" {
	go_queue jobs
	go_consumer web-aaaaaa jobs held
	go_consumer cron-bbbbbb jobs
	redis sadd 'rmq::connection::cron-bbbbbb::queue::[jobs]::consumers' c-2 >/dev/null
	go_consumer other-cccccc keep
	digest >"$T/before"
	for arg in --dry-run -f; do
		run_mq 75 mq-purge "$arg" --delete-queue jobs
		assert_equal "$stderr" "mq-purge: jobs: the queue has 3 consumers; stop them first"
		assert_equal "$output" ""
	done
	assert_equal "$(digest)" "$(cat "$T/before")"
	redis del rmq::connection::{cron-bbbbbb,web-aaaaaa}::heartbeat >/dev/null
	run_mq 75 mq-purge -f --delete-queue jobs
	assert_equal "$stderr" \
		"mq-purge: jobs: dead consumers hold 1 message; run mq-clean first"
	redis del 'rmq::connection::web-aaaaaa::queue::[jobs]::unacked' >/dev/null
	run_mq 0 mq-purge -f --delete-queue jobs
	assert_equal "$(redis smembers rmq::queues)" keep
	assert_equal "$(redis smembers rmq::connection::other-cccccc::queues)" keep
}

@test "purge: something else under a key: 76; forbidden: 77; nobody: 69" {
	go_queue jobs
	redis set 'rmq::queue::[jobs]::delayed' mine >/dev/null
	digest >"$T/before"
	run_mq 76 mq-purge -f --delayed jobs
	run_mq 76 mq-purge -f --delayed --match x jobs
	run_mq 76 mq-purge -f --delete-queue jobs
	redis acl setuser some on '>pw' allkeys +@all -eval >/dev/null
	redis script flush >/dev/null
	run_mq 77 mq-purge -f --ready -u "$(url_as some:pw)" jobs
	assert_equal "$(digest)" "$(cat "$T/before")"
	# What was done before is told.
	redis rename 'rmq::queue::[jobs]::delayed' 'rmq::queue::[jobs]::rejected' >/dev/null
	run_mq 76 mq-purge -f --ready --rejected jobs
	assert_equal "${stderr_lines[1]}" "mq-purge: 3 messages purged"
	run_mq 69 mq-purge -f --all -u "unix://$T/none" jobs
}
