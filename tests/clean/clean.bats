#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# topologies: cluster
# mq-clean: dead connections of Go programs and of ours, what is due, orphans.

load ../helpers/server
load ../helpers/go

ready='rmq::queue::[q]::ready'
rejected='rmq::queue::[q]::rejected'
delayed='rmq::queue::[q]::delayed'
counters='rmq::queue::[q]::counters'

teardown() {
	if [ "$D" != "$FILE_D" ]; then
		server_stop
	else
		redis config set maxmemory 0 >/dev/null
		redis acl deluser weak >/dev/null
	fi
	common_teardown
}

# go_cluster CONNECTION QUEUE MESSAGE...: a dead one that uses the keys for a
# cluster on this server.
go_cluster() {
	go_connect "$1"
	redis sadd rmq::queues "$2" >/dev/null
	redis sadd "rmq::connection::$1::queues" "$2" >/dev/null
	[ $# = 2 ] || redis lpush "rmq::connection::$1::queue::{$2}::unacked" \
		"${@:3}" >/dev/null
	go_dies "$1"
}

# ours CONNECTION SLOTS: it is a consumer of ours.
ours() {
	redis hset "rmq::connection::$1::info" host web1 pid 4711 slots "$2" \
		>/dev/null
	redis expire "rmq::connection::$1::info" 3600 >/dev/null
}

# The elements of a list, as they would be claimed.
line() {
	redis lrange "$1" 0 -1 | tac
}

keys() {
	forget_past
	redis keys '*' | sort
}

digest() {
	forget_past
	redis --raw debug digest
}

# cleaned CONNECTIONS RETURNED REJECTED DUE ADOPTED ORPHANS [EXPIRED [LOCKS]]:
# what one line says.  On a cluster no key is removed because nobody needs it.
cleaned() {
	local c=connections m=messages k=keys l=locks
	[ "${TOPOLOGY-}" != cluster ] || set -- "${@:1:5}" 0 "${@:7}"
	[ "$1" != 1 ] || c=connection
	[ "$2" != 1 ] || m=message
	[ "$6" != 1 ] || k=key
	[ "${8-0}" != 1 ] || l=lock
	echo "$1 dead $c, $2 $m returned, $3 rejected, $4 due," \
		"${7-0} expired, $5 adopted, $6 orphaned $k removed," \
		"${8-0} $l repaired"
}

# clean_says C R J D A O [E [L]]: first as a dry run, which must say the same and
# change nothing.
clean_says() {
	local before
	before=$(digest)
	reports "dry run: $(cleaned "$@")" --dry-run
	assert_equal "$stderr" ""
	assert_equal "$(digest)" "$before"
	reports "$(cleaned "$@")"
	assert_equal "$stderr" ""
}

# reports TEXT ARG...: mq-clean ends with 0, and has printed that.
reports() {
	run_mq 0 mq-clean "${@:2}"
	assert_output "$1"
}

@test "clean: an empty server, and dead connections of Go programs" {
	clean_says 0 0 0 0 0 0
	assert_equal "$(redis dbsize)" 0
	redis sadd rmq::queues q jobs idle >/dev/null
	redis lpush "$ready" r1 r2 >/dev/null
	go_dead web-aB3dE6 q m1 m2 m3
	go_consume web-aB3dE6 jobs
	go_holds web-aB3dE6 jobs j1 j2
	go_dead cron-Zz9Yy8 idle
	go_dead none-000000 q
	go_connect never-consumed
	go_dies never-consumed
	redis srem rmq::queues jobs >/dev/null
	clean_says 4 5 0 0 0 0
	# In front, and in their old order.
	assert_equal "$(line "$ready" | xargs)" "m1 m2 m3 r1 r2"
	assert_equal "$(line 'rmq::queue::[jobs]::ready' | xargs)" "j1 j2"
	assert_equal "$(keys)" "\
rmq::queue::[jobs]::ready
rmq::queue::[q]::ready
rmq::queues"
	assert_equal "$(redis smembers rmq::queues | sort | xargs)" "idle jobs q"
	clean_says 0 0 0 0 0 0
}

@test "clean: connections of Go programs with the keys for a cluster are left alone" {
	no_cluster "there is only that form"
	go_cluster cluster-111111 q m1 m2
	go_cluster stops-222222 jobs
	redis sadd 'rmq::connection::stops-222222::queue::{jobs}::consumers' c >/dev/null
	go_cluster only-333333 q m3
	go_consume only-333333 jobs
	go_holds only-333333 jobs plain
	go_dead gone-444444 q m4
	digest >"$T/before"
	reports "dry run: $(cleaned 1 2 0 0 0 0); 3 dead connections of Go programs left alone" --dry-run
	assert_equal "$(digest)" "$(cat "$T/before")"
	for i in 1 2; do
		run_mq 0 mq-clean --json
		assert_equal "$(jq -c .left_alone <<<"$output")" \
			'["cluster-111111","only-333333","stops-222222"]'
	done
	# Automatic cleaning, too.
	run_mq 0 mq-consume --drain -l q
	assert_output m4
	assert_equal "$(redis smembers rmq::connections | sort | xargs)" \
		"cluster-111111 only-333333 stops-222222"
	assert_equal "$(redis smembers rmq::connection::cluster-111111::queues)" q
	assert_equal "$(line 'rmq::connection::cluster-111111::queue::{q}::unacked' | xargs)" "m1 m2"
	assert_equal "$(redis smembers rmq::connection::stops-222222::queues)" jobs
	assert_equal "$(line 'rmq::connection::only-333333::queue::{q}::unacked')" m3
	# In the other direction the plain form is taken, as before.
	assert_equal "$(line 'rmq::queue::[jobs]::ready')" plain
}

@test "clean: a name with a NUL: its queue and connection are named, and left alone" {
	local on='' text
	[ "${TOPOLOGY-}" != cluster ] || on=' on a cluster'
	text="a name for which only Go programs find messages"
	go_dead go-dead01 q m
	printf '%s\n' 'SADD rmq::queues "a\x00b"' 'SADD rmq::connections "c\x00"' \
		'SADD rmq::connection::go-dead01::queues "a\x00b"' | redis >/dev/null
	run_mq 0 mq-clean --json
	assert_equal "$(jq -c '[.returned, .left_alone]' <<<"$output")" '[1,["c␀","go-dead01"]]'
	LC_ALL=C.UTF-8 run_mq 0 mq-clean
	assert_output --partial "; 2 dead connections of Go programs left alone"
	assert_equal "$stderr" "mq-clean: 'a␀b': $text$on"
	LC_ALL=C.UTF-8 run_mq 0 mq-stats
	assert_equal "$stderr" "$(printf "mq-stats: '%s': $text\n" a␀b c␀)"
	run_mq 0 mq-stats --json
	assert_equal "$(jq -c .queues_left_alone <<<"$output")" '["a␀b","c␀"]'
}

# goes_back CONNECTION FILE...: it holds these, and dies; they are the same when it is cleaned.
goes_back() {
	local f
	for f in "${@:2}"; do
		redis -x lpush "$(unacked "$1")" <"$T/$f" >/dev/null
	done
	go_dies "$1"
	clean_says 1 $(($# - 1)) 0 0 0 0
	for f in "${@:2}"; do
		redis --raw rpop "$ready" >"$T/got"
		(cat "$T/$f"; echo) | cmp - "$T/got"
	done
}

@test "clean: payloads are bytes, and what cannot be marked goes back as it is" {
	printf 'a\0b\n\xff\x00' >"$T/raw"
	printf '\xff\x00\xbe\xbe\x4a{"X-A":["1"]}\n\0payload\xfe' >"$T/headed"
	: >"$T/empty"
	go_connect web-111111
	go_consume web-111111 q
	goes_back web-111111 raw headed empty
	printf '\xff\x00\xbe\xbe\x4anothing' >"$T/1"
	printf '\xff\x00\xbe\xbe\x4a{nothing}\nx' >"$T/2"
	printf '\xff\x00\xbe\xbe\x4a{"X-A":["%0300000d"]}\ny' 0 >"$T/3"
	go_connect ours-111111
	go_consume ours-111111 q
	ours ours-111111 9
	goes_back ours-111111 1 2 3
	assert_equal "$(keys)" rmq::queues
}

@test "clean: the consumer was killed: what ran is charged, the rest is not" {
	script hold <<-'END'
		read -r x
		echo "$x" >>"$T/taken"
		exec sleep 100
	END
	seq 5 | run_mq 0 mq-publish -l q
	start_mq mq-consume --no-clean -j 2 --prefetch 3 q -- "$T/hold"
	eventually 10 held_is q "0 0 5 0"
	eventually 10 lines_reach "$T/taken" 2
	c=$(connections)
	tick
	stop_mq KILL
	# As if that was on another host.
	redis hdel "rmq::connection::$c::info" process >/dev/null
	clean_says 0 0 0 0 0 0
	redis set "rmq::connection::$c::running" '[]' >/dev/null
	go_dies "$c"
	clean_says 1 5 0 0 0 0
	for i in 1 2 3 4 5; do
		redis --raw rpop "$ready" >"$T/$i"
		assert_equal "$(tail -n 1 "$T/$i")" "$i"
	done
	for i in 1 2; do
		assert_equal "$(header Mq-Attempt <"$T/$i")" 1
		assert_equal "$(header Mq-Error <"$T/$i")" \
			"its consumer died while it ran"
		assert_regex "$(header Mq-History <"$T/$i" | tr -d '\134')" \
			'^\{"at_ms":[0-9]{13},"attempt":1,"host":"'"$(uname -n)"'","text":"its consumer died while it ran"\}$'
	done
	for i in 3 4 5; do
		assert_equal "$(header Mq-Attempt <"$T/$i")" ""
		assert_equal "$(header Mq-History <"$T/$i")" ""
	done
	assert_equal "$(redis keys "rmq::connection*")" ""
	assert_equal "$(redis hmget "$counters" crashed runs failed | xargs)" "2 2"
}

# A consumer that waits must know of the crash before it runs what was behind.
@test "clean: what ran comes back in front of the rest, not after it" {
	local waiter n
	for n in 3 400; do
		go_connect ours-111111
		go_consume ours-111111 q
		seq -f "LPUSH $(unacked ours-111111) m%.0f" "$n" |
			redis --pipe >/dev/null
		ours ours-111111 1
		go_dies ours-111111
		redis --raw brpop "$ready" 30 >"$T/front" 3>&- &
		waiter=$!
		eventually 10 eval 'redis info clients | grep -q "^blocked_clients:1"'
		reports "$(cleaned 1 "$n" 0 0 0 0)"
		wait "$waiter"
		assert_equal "$(tail -n 1 "$T/front")" m1
		grep -aq '"Mq-Attempt":\["1"\]' "$T/front"
		redis del "$ready" >/dev/null
	done
}

@test "clean: poison is rejected, what was behind it is not" {
	go_dead ours-111111 q
	# Two that have run often, one that has not, and one that did not run.
	for i in 14 15 3 14; do
		printf '\xff\0\xbe\xbeJ{"Mq-Attempt":["%s"]}\nm%s' $i $i |
			redis -x lpush "$(unacked ours-111111)" >/dev/null
	done
	ours ours-111111 3
	clean_says 1 2 2 0 0 0
	assert_equal "$(redis llen "$ready") $(redis llen "$rejected")" "2 2"
	# The newest end has the one that was claimed last.
	assert_equal "$(element q rejected 0 | header Mq-Attempt)" 16
	element q rejected -1 >"$T/r"
	assert_equal "$(header Mq-Attempt <"$T/r")" 15
	assert_equal "$(header Mq-Error <"$T/r")" \
		"attempts exhausted: its consumer died while it ran"
	assert_regex "$(header Mq-History <"$T/r" | tr -d '\134')" \
		'"host":"web1","text":"attempts exhausted: '
	assert_equal "$(element q ready -1 | header Mq-Attempt)" 4
	assert_equal "$(element q ready 0 | header Mq-Attempt)" 14
	assert_equal "$(redis hmget "$counters" crashed runs failed | xargs)" \
		"3 3 2"
}

@test "clean: a crash is charged by the limit of the consumer that died" {
	local i
	# attempts it allowed, and those that its message had had.
	for i in '2 1' '30 20' 'x 13' '0 14'; do
		go_dead "ours-${i% *}" q
		printf '\xff\0\xbe\xbeJ{"Mq-Attempt":["%s"]}\n%s' "${i#* }" "$i" |
			redis -x lpush "$(unacked "ours-${i% *}")" >/dev/null
		ours "ours-${i% *}" 1
		redis hset "rmq::connection::ours-${i% *}::info" attempts "${i% *}" >/dev/null
	done
	clean_says 4 2 2 0 0 0
	run_mq 0 mq-stats --list ready -l q
	assert_equal "$(sort <<<"$output")" $'30 20\nx 13'
	# Where it says nothing, mq-clean's own.
	go_dead ours-none q
	printf '\xff\0\xbe\xbeJ{"Mq-Attempt":["2"]}\nm' | redis -x lpush "$(unacked ours-none)" >/dev/null
	ours ours-none 1
	reports "dry run: $(cleaned 1 1 0 0 0 0)" --dry-run --attempts 4
	reports "$(cleaned 1 0 1 0 0 0)" --attempts 3
	assert_equal "$(element q rejected | header Mq-Attempt)" 3
	# Whoever cleans, and whatever queue that one has.  The dead one has not taken the
	# rounds, which a cluster would leave to it for a minute.
	start_mq mq-consume --no-clean --attempts 3 jobs -- sleep 1h
	run_mq 0 mq-publish jobs x
	eventually 10 held_is jobs "0 0 1 0"
	assert_equal "$(redis hget "rmq::connection::$(connections)::info" attempts)" 3
	dies
	run_mq 0 mq-consume --attempts 1 --idle 1ms other -- true
	held_is jobs "1 0 0 0"
	assert_equal "$(element jobs ready | header Mq-Attempt)" 1
}

@test "clean: more that ran than fit into one reply" {
	go_connect ours-111111
	go_consume ours-111111 q
	seq -f "LPUSH $(unacked ours-111111) m%.0f" 700 | redis --pipe >/dev/null
	ours ours-111111 180
	go_dies ours-111111
	clean_says 1 700 0 0 0 0
	redis lrange "$ready" 0 -1 | grep -a '^m[0-9]*$' | tac >"$T/got"
	cmp "$T/got" <(seq -f m%.0f 700)
	# The oldest 180 have a header now.
	assert_equal "$(redis lrange "$ready" 0 -1 | grep -ac Mq-Attempt)" 180
	element q ready -180 | grep -aq Mq-Attempt
	run ! grep -aq Mq-Attempt <<<"$(redis lindex "$ready" -181 | tr -d '\0')"
	assert_equal "$(redis hget "$counters" crashed)" 180
}

@test "clean: what is rejected keeps its order, too, over several replies, behind older ones" {
	go_connect ours-111111
	go_consume ours-111111 q
	redis lpush "$rejected" old >/dev/null
	redis eval 'for i = 1, 300 do
		redis.call("LPUSH", KEYS[1], "\255\0\190\190J{\"Mq-Attempt\":[\"" ..
			(i % 3 > 0 and 1 or 14) .. "\"],\"X\":[\"" .. ("x"):rep(200) ..
			"\"]}\nm" .. i)
	end' 1 "$(unacked ours-111111)"
	ours ours-111111 200
	go_dies ours-111111
	clean_says 1 234 66 0 0 0
	assert_equal "$(line "$rejected" | tr -d '\0' | grep -ao '^m.*\|^old' | xargs)" \
		"old $(seq -f m%.0f 3 3 198 | xargs)"
	assert_equal "$(line "$ready" | tr -d '\0' | grep -ao '^m.*' | xargs)" \
		"$(seq 300 | awk '$1 % 3 > 0 || $1 > 200 { print "m" $1 }' | xargs)"
	assert_equal "$(redis hmget "$counters" crashed failed | xargs)" "200 66"
}

@test "clean: headers, long ones too, survive, and so do the payloads" {
	local n
	go_connect ours-111111
	go_consume ours-111111 q
	ours ours-111111 9
	for n in 10 20000 200000; do
		printf '\xff\0\xbe\xbe\x4a{"X-A":["%0*d"]}\n\0%s\xff' $n 0 $n |
			redis -x lpush "$(unacked ours-111111)" >/dev/null
	done
	redis lpush "$(unacked ours-111111)" '' >/dev/null
	go_dies ours-111111
	clean_says 1 4 0 0 0 0
	for n in 10 20000 200000; do
		redis --raw rpop "$ready" >"$T/got"
		assert_equal "$(header X-A <"$T/got" | tr -d '\n' | wc -c)" $n
		assert_equal "$(header Mq-Attempt <"$T/got")" 1
		assert_equal "$(tail -n 1 "$T/got" | od -An -tx1)" \
			"$(printf '\0%s\xff\n' $n | od -An -tx1)"
	done
	redis --raw rpop "$ready" >"$T/got"
	assert_equal "$(header Mq-Attempt <"$T/got")" 1
	assert_regex "$(header Mq-Id <"$T/got")" '^[0-9a-z]{10}[0-9A-Za-z]{22}$'
	assert_equal "$(wc -l <"$T/got")" 2
}

# graveyard N: N dead connections, each with three messages in q; every third is
# ours and ran one of them.
graveyard() {
	local i
	for ((i = 0; i < $1; i++)); do
		echo "SADD rmq::connections go-$i"
		echo "SADD rmq::connection::go-$i::queues q"
		echo "SADD rmq::connection::go-$i::queue::[q]::consumers c"
		echo "LPUSH rmq::connection::go-$i::queue::[q]::unacked $i-1 $i-2 $i-3"
		((i % 3)) || echo "HSET rmq::connection::go-$i::info slots 1"
	done | redis --pipe >/dev/null
}

# buried N: all of them are there once, and nothing of the connections.
buried() {
	assert_equal "$(held q)" "$((3 * $1)) 0 0 0"
	redis lrange "$ready" 0 -1 | grep -a '^[0-9]*-[0-9]$' | sort >"$T/got"
	assert_equal "$(uniq "$T/got" | wc -l)" "$((3 * $1))"
	assert_equal "$(redis keys 'rmq::connection*')" ""
}

@test "clean: a cleaner that is killed anywhere leaves the rest to the next" {
	local i killed=0
	graveyard 900
	for i in 1 2 3 4 5 6 7 8 9; do
		timeout -s KILL "0.00$i" "$BUILD/mq-clean" >/dev/null || killed=$((killed + 1))
	done
	echo "$killed killed"
	run_mq 0 mq-clean
	buried 900
	# Charged once each.
	assert_equal "$(redis lrange "$ready" 0 -1 | grep -ac '"Mq-Attempt":\["1"\]')" \
		300
}

@test "clean: between any two steps a queue that has messages is listed" {
	# A user that may do less and less: each step that fails is one at which
	# a cleaner might have died.
	local verb
	for verb in lmove del srem ltrim sadd smembers hmget pttl llen; do
		redis flushall >/dev/null
		graveyard 6
		redis acl setuser weak reset on '>pw' allkeys '&*' +@all "-$verb" \
			>/dev/null
		run_mq 77 mq-clean -u "$(url_as weak:pw)"
		assert_regex "$stderr" "^mq-clean: .*(NOPERM|ACL failure|can't run this command)"
		# What is not back is still found.
		redis smembers rmq::connections >"$T/listed"
		for i in 0 1 2 3 4 5; do
			if [ "$(redis llen "$(unacked "go-$i")")" != 0 ]; then
				grep -qx "go-$i" "$T/listed"
				assert_equal "$(redis sismember \
					"rmq::connection::go-$i::queues" q)" 1
			fi
		done
		run_mq 0 mq-clean
		buried 6
	done
}

@test "clean: a user who may not touch some connections cleans the others" {
	graveyard 6
	go_dead secret-1 q hidden
	redis acl setuser weak reset on '>pw' +@all '&*' '~rmq::queue*' '~rmq::connections' \
		'~rmq::connection::go*' >/dev/null
	run_mq 0 mq-clean --json -u "$(url_as weak:pw)"
	assert_equal "$(jq .connections <<<"$output")" 6
	assert_equal "$(redis smembers rmq::connections)" secret-1
	assert_equal "$(redis lrange "$(unacked secret-1)" 0 -1)" hidden
	# Some of what they have are keys that it may not touch, either.
	redis flushall >/dev/null
	graveyard 3
	redis acl setuser weak '~*' >/dev/null
	redis acl setuser weak resetkeys '~rmq::queue*' '~rmq::connections' \
		'~rmq::connection::*::heartbeat' '~rmq::connection::*::info' \
		'~rmq::connection::*::queues' '~rmq::connection::go-1*' >/dev/null
	run_mq 0 mq-clean --json -u "$(url_as weak:pw)"
	assert_equal "$(jq .connections <<<"$output")" 1
	assert_equal "$(redis smembers rmq::connections | sort | xargs)" "go-0 go-2"
}

@test "clean: many cleaners at once" {
	local pids=() p
	graveyard 300
	for ((i = 0; i < 30; i++)); do
		"$BUILD/mq-clean" --json >"$T/out.$i" 2>"$T/err.$i" 3>&- &
		pids+=($!)
	done
	for p in "${pids[@]}"; do
		wait "$p"
	done
	assert_equal "$(cat "$T"/err.*)" ""
	# Nobody counts what another did.
	assert_equal "$(cat "$T"/out.* | jq -sc '[length, (map(.connections) | add),
		(map(.returned) | add), (map(.rejected + .due + .adopted + .orphans) | add)]')" \
		'[30,300,900,0]'
	buried 300
	assert_equal "$(redis lrange "$ready" 0 -1 | grep -ac '"Mq-Attempt":\["1"\]')" \
		100
	assert_equal "$(redis hget "$counters" crashed)" 100
}

@test "clean: beside Go's cleaner" {
	local i go
	graveyard 400
	redis smembers rmq::connections | sort >"$T/names"
	# shellcheck disable=SC2046 # names
	go_clean $(head -n 30 "$T/names") 3>&- &
	go=$!
	eventually 10 eval '(($(redis scard rmq::connections) < 400))'
	for i in 1 2 3 4; do
		timeout -s KILL 0.004 "$BUILD/mq-clean" >/dev/null || true
	done
	run_mq 0 mq-clean
	wait "$go"
	run_mq 0 mq-clean
	# Elsewhere it is removed with what nobody needs; there it only expires.
	[ "${TOPOLOGY-}" != cluster ] || for i in $(redis keys '*::info'); do
		redis del "$i" >/dev/null
	done
	buried 400
}

@test "clean: what is due becomes ready, the oldest due first" {
	redis sadd rmq::queues q other >/dev/null
	redis lpush "$ready" r1 >/dev/null
	redis zadd "$delayed" 3 "$(printf '%032d' 1)c" 1 "$(printf '%032d' 2)a" \
		2 "$(printf '%032d' 3)b" 9999999999999 "$(printf '%032d' 4)z" \
		>/dev/null
	printf '%032da\0b\n\xff' 5 | redis -x zadd "$delayed" 4 >/dev/null
	redis zadd 'rmq::queue::[other]::delayed' 9999999999999 \
		"$(printf '%032d' 4)z" >/dev/null
	clean_says 0 0 0 4 0 0
	redis --raw lpop "$ready" | cmp - <(printf 'a\0b\n\xff\n')
	assert_equal "$(line "$ready" | xargs)" "r1 a b c"
	assert_equal "$(held q) $(held other)" "4 1 0 0 0 1 0 0"
}

@test "clean: unacked lists that nobody lists are adopted and cleaned" {
	redis lpush "$ready" r1 >/dev/null
	go_holds lost-111111 q m1 m2
	go_holds lost-111111 jobs j1
	# It is listed, but not with this queue.
	go_dead half-222222 q m3
	go_holds half-222222 extra e1
	# Ours, with its info.
	go_holds ours-333333 mine o1 o2
	ours ours-333333 1
	# What a queue has that is only now known again is kept.
	redis hset 'rmq::queue::[jobs]::counters' runs 1 >/dev/null
	go_dead web-444444 mails m4
	redis srem rmq::queues mails >/dev/null
	redis set 'rmq::queue::[mails]::paused' 1 >/dev/null
	redis zadd 'rmq::queue::[mails]::delayed' 1 "$(printf '%032d' 1)m5" >/dev/null
	clean_says 5 8 0 1 4 0
	assert_equal "$(redis exists 'rmq::queue::[jobs]::counters' \
		'rmq::queue::[mails]::paused')" 2
	assert_equal "$(line "$ready" | xargs)" "m1 m2 m3 r1"
	assert_equal "$(element mine ready -1 | header Mq-Attempt)" 1
	assert_equal "$(redis lrange 'rmq::queue::[mine]::ready' 0 0)" o2
	assert_equal "$(redis smembers rmq::queues | sort | xargs)" \
		"extra jobs mails mine q"
	assert_equal "$(redis keys 'rmq::connection*')" ""
	clean_says 0 0 0 0 0 0
}

# A Go program that was stopped, cleaned, and goes on: it claims as before.
go_goes_on() {
	redis set "rmq::connection::$1::heartbeat" 1 EX 60 >/dev/null
	redis sadd rmq::queues q >/dev/null
	go_holds "$1" q "${@:2}"
}

@test "clean: a Go program that goes on after it was cleaned away is listed again" {
	go_goes_on zombie-111111 m1 m2
	go_connect half-222222
	go_consume half-222222 jobs
	go_holds half-222222 q m3
	clean_says 0 0 0 0 2 0
	assert_equal "$(redis smembers rmq::connections | sort | xargs)" \
		"half-222222 zombie-111111"
	assert_equal "$(redis smembers rmq::connection::half-222222::queues | sort | xargs)" \
		"jobs q"
	held_is q "0 0 3 0"
	clean_says 0 0 0 0 0 0
	# From now on all is as with any other.
	go_dies zombie-111111
	clean_says 1 2 0 0 0 0
	assert_equal "$(line "$ready" | xargs)" "m1 m2"
}

@test "clean: --drain waits for a Go program that goes on, and consumers list it" {
	go_goes_on zombie-111111 m1
	start_mq mq-consume --no-clean --drain -l q
	eventually 10 lists_again zombie-111111
	# It says nothing while it waits, and nothing says that it has looked once
	# more; but the list is what makes it wait.
	kill -0 "$pid"
	redis lrem "$(unacked zombie-111111)" 1 m1 >/dev/null
	ends_with 0
	# There only mq-clean and --drain look through all keys.
	[ "${TOPOLOGY-}" != cluster ] || return 0
	redis flushall >/dev/null
	go_goes_on zombie-222222 m1
	start_mq mq-consume jobs -- true
	eventually 10 lists_again zombie-222222
	stop_mq
	held_is q "0 0 1 0"
}

lists_again() {
	[ "$(redis sismember rmq::connections "$1")" = 1 ] &&
		[ "$(redis sismember "rmq::connection::$1::queues" q)" = 1 ]
}

@test "clean: keys of our own that nobody needs are removed" {
	no_cluster "keys that nobody needs are not removed there"
	redis sadd rmq::queues q >/dev/null
	redis hset "$counters" runs 1 >/dev/null
	redis set 'rmq::queue::[q]::paused' 1 >/dev/null
	redis hset 'rmq::queue::[gone]::counters' runs 1 >/dev/null
	redis set 'rmq::queue::[gone]::paused' 1 >/dev/null
	# Its messages are not given up, nor what belongs to it.
	redis zadd 'rmq::queue::[back]::delayed' 1 "$(printf '%032d' 1)m" \
		9999999999999 "$(printf '%032d' 2)later" >/dev/null
	redis hset 'rmq::queue::[back]::counters' runs 1 >/dev/null
	ours dead-111111 1
	redis set rmq::connection::dead-111111::running '[]' >/dev/null
	clean_says 0 0 0 1 0 4
	assert_equal "$(keys)" "\
rmq::queue::[back]::counters
rmq::queue::[back]::delayed
rmq::queue::[back]::ready
rmq::queue::[q]::counters
rmq::queue::[q]::paused
rmq::queues"
	assert_equal "$(redis smembers rmq::queues | sort | xargs)" "back q"
}

@test "clean: the living, those who just join, and keys that only look like these are left alone" {
	go_connect live-111111
	go_consume live-111111 q
	go_holds live-111111 q m1 m2
	go_connect ours-222222
	ours ours-222222 2
	go_consume ours-222222 q
	go_holds ours-222222 q m3
	redis set rmq::connection::ours-222222::running '[]' EX 60 >/dev/null
	# A heartbeat is there before anything else.
	redis set rmq::connection::join-333333::heartbeat 1 EX 60 >/dev/null
	ours join-333333 1
	while read -r command key; do
		redis "$command" "$key" x >/dev/null
	done <<-'E'
		lpush rmq::connection::::queue::[q]::unacked
		lpush rmq::connection::a::queue::[]::unacked
		lpush rmq::connection::a::queue::[b::queue::[c]::unacked
		lpush rmq::connection::a::queue::[q]::unacked2
		lpush rmq::connection::a::queue::[q]::ready
		lpush xrmq::connection::a::queue::[q]::unacked
		set rmq::connection::b::queue::[q]::unacked
		set rmq::connection::a::b::info
		set rmq::connection::::info
		set rmq::connection::a::information
		set rmq::queue::[a::b]::counters
		set rmq::queue::[]::counters
		set rmq::queue::[a]::paused2
		set rmq::queue::{a}::paused
		set rmq::queue::[z]::delayed
	E
	digest >"$T/before"
	clean_says 0 0 0 0 0 0
	assert_equal "$(digest)" "$(cat "$T/before")"
}

@test "clean: odd names of Go programs" {
	go_dead 'we b::[x]-111111' 'a b::c]' m1
	go_holds 'lo st::y-222222' 'd::e' m2
	clean_says 2 2 0 0 1 0
	assert_equal "$(keys)" "\
rmq::queue::[a b::c]]::ready
rmq::queue::[d::e]::ready
rmq::queues"
}

@test "clean: everything at once, and the dry run knows it" {
	redis script flush >/dev/null
	graveyard 130
	for ((i = 0; i < 70; i++)); do
		go_holds "lost-$i" q "$i-7"
		ours "gone-$i" 1
	done
	# Its heartbeat holds for a minute.
	go_connect live-111111
	go_consume live-111111 q
	go_holds live-111111 q l1
	redis hset 'rmq::queue::[gone]::counters' runs 1 >/dev/null
	redis zadd "$delayed" 1 "$(printf '%032d' 1)due" >/dev/null
	redis zadd 'rmq::queue::[back]::delayed' 1 "$(printf '%032d' 1)due" >/dev/null
	clean_says 200 460 0 2 70 71
	assert_equal "$(held q)" "461 0 1 0"
}

@test "clean: a full server does not keep messages from their queues" {
	graveyard 9
	go_holds lost-111111 q 9-1 9-2 9-3
	redis sadd rmq::queues q >/dev/null
	redis zadd "$delayed" 1 "$(printf '%032d' 1)10-1" 1 "$(printf '%032d' 2)10-2" \
		1 "$(printf '%032d' 3)10-3" >/dev/null
	redis config set maxmemory 1 >/dev/null
	clean_says 10 30 0 3 1 0
	buried 11
}

# stays_listed CONNECTION QUEUE N
stays_listed() {
	assert_equal "$(redis sismember rmq::connections "$1")" 1
	assert_equal "$(redis sismember "rmq::connection::$1::queues" "$2")" 1
	assert_equal "$(redis llen "$(unacked "$1" "$2")")" "$3"
}

@test "clean: something else under a queue's key: 76, and the others are cleaned" {
	local key before
	for key in ready rejected; do
		redis flushall >/dev/null
		go_dead web-111111 q m1 m2
		go_dead web-222222 jobs j1 j2
		go_consume web-111111 jobs
		go_holds web-111111 jobs j3
		ours web-111111 1
		redis set "rmq::queue::[q]::$key" mine >/dev/null
		before=$(digest)
		run_mq 76 mq-clean --dry-run
		assert_output "dry run: $(cleaned 1 3 0 0 0 0)"
		assert_equal "$(digest)" "$before"
		run_mq 76 mq-clean
		assert_output "$(cleaned 1 3 0 0 0 0)"
		assert_regex "$stderr" '^mq-clean: .*WRONGTYPE'
		assert_equal "$(wc -l <<<"$stderr")" 1
		stays_listed web-111111 q 2
		assert_equal "$(redis get "rmq::queue::[q]::$key")" mine
		redis del "rmq::queue::[q]::$key" >/dev/null
		clean_says 1 2 0 0 0 0
	done
}

@test "clean: something else under other keys: 76, and the connection stays" {
	local key
	for key in rmq::queues "$(unacked web-111111)" rmq::connection::web-111111::queues \
		rmq::connections; do
		redis flushall >/dev/null
		go_dead web-111111 q m1
		redis del "$key" >/dev/null
		redis set "$key" mine >/dev/null
		run_mq 76 mq-clean
		case $key in
		rmq::connections) continue ;;
		# On a cluster the queue becomes known after its messages are back.
		rmq::queues) stays_listed web-111111 q "$([ "${TOPOLOGY-}" != cluster ] && echo 1 || echo 0)" ;;
		esac
		assert_equal "$(redis sismember rmq::connections web-111111)" 1
	done
	assert_equal "$(redis get rmq::connections)" mine
}

@test "clean: memory is bounded, whatever the lengths" {
	[[ $BUILD != *address* ]] || skip "sanitizers need more"
	go_connect ours-111111
	go_consume ours-111111 q
	ours ours-111111 60
	head -c 1048576 /dev/zero | tr '\0' x >"$T/large"
	redis -r 40 -x lpush "$(unacked ours-111111)" <"$T/large" >/dev/null
	redis -r 40 -x lpush "$(unacked ours-222222)" <"$T/large" >/dev/null
	redis eval 'for i = 1, 200000 do redis.call("LPUSH", KEYS[1], "m" .. i) end' 1 \
		"$(unacked go-111111)" >/dev/null
	go_dies ours-111111
	peak "$BUILD/mq-clean"
	assert_line --index 0 "$(cleaned 3 200080 0 0 2 0)"
	assert [ "$peak" -lt 16384 ]
}

@test "clean: --json, -q; --interval goes on until TERM, and says only what it did" {
	graveyard 2
	reports '{"connections":2,"returned":6,"rejected":0,"due":0,"expired":0,"adopted":0,"orphans":0,"locks":0,"dropped":0,"left_alone":[],"dry_run":true}' --json --dry-run
	reports "" -q --dry-run
	reports '{"connections":2,"returned":6,"rejected":0,"due":0,"expired":0,"adopted":0,"orphans":0,"locks":0,"dropped":0,"left_alone":[],"dry_run":false}' --json -q
	redis del "$ready" >/dev/null
	start_mq mq-clean --interval 50ms
	graveyard 3
	eventually 10 held_is q "9 0 0 0"
	go_dead web-111111 q m1
	eventually 10 held_is q "10 0 0 0"
	eventually 5 grep -qx "$(cleaned 1 1 0 0 0 0)" "$T/out"
	# An idle round says nothing.
	redis config resetstat >/dev/null
	eventually 5 rounds_reach 4
	stop_mq TERM 143
	assert_equal "$(awk '{n += $4} END {print n}' "$T/out")" 10
	assert_equal "$(grep -c '^0 dead connections, 0 mess' "$T/out")" 0
	assert_equal "$(cat "$T/err")" ""
}

rounds_reach() {
	local n
	n=$(redis info commandstats | sed -n 's/^cmdstat_sscan:calls=\([0-9]*\),.*/\1/p')
	[ "${n:-0}" -ge "$1" ]
}

@test "clean: --interval with -v and --json tells each round, and ends in a long pause" {
	local how
	for how in "20ms -v" "20ms --json" "1h -v"; do
		# shellcheck disable=SC2086 # two words
		start_mq mq-clean --interval $how
		eventually 10 grep -qx -e "$(cleaned 0 0 0 0 0 0)" -e '.*"dry_run":false}' "$T/out"
		stop_mq TERM 143
	done
}

@test "clean: --interval outlives the server, and tells once" {
	D=$(own_dir)
	server_run
	start_mq mq-clean --interval 20ms -v
	eventually 10 grep -q . "$T/out"
	server_kill
	eventually 10 grep -q . "$T/err"
	server_run
	graveyard 2
	eventually 10 held_is q "6 0 0 0"
	eventually 10 grep -q 'working again' "$T/err"
	stop_mq TERM
	cat "$T/err"
	# A cluster's nodes do not die in one moment: some may be named before.
	assert_regex "$(grep -v ': node [0-9.:]*: [^;]*$' "$T/err")" \
		'^mq-clean: [^'$'\n'']*; trying again'$'\n''mq-clean: [^'$'\n'']*: working again$'
}
