#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# topology: own
# Steps on the server by which cleaners, operators and statistics work: what each changes,
# up to which bound, and what it leaves alone.

# shellcheck disable=SC1010

load ../helpers/server
load ../helpers/steps

# bounds: the earliest expiry, the lowest last tick, and both of the walk under way.
bounds() {
	redis hmget "${q}locks" e t E T | sed 's/^$/-/' | xargs
}

@test "upkeep: no bound is lost between the beginning of a walk and its end" {
	redis hset "${q}locks" e 50 t 5 >/dev/null
	assert_equal "$(step repair "$keys" begin)" 1
	assert_equal "$(bounds)" "- - 50 5"
	# Something comes meanwhile, and the walk is broken off.
	redis hset "${q}locks" e 60 t 4 >/dev/null
	step repair "$keys" begin
	assert_equal "$(bounds)" "- - 50 4"
	redis hset "${q}locks" e 70 >/dev/null
	step repair "$keys" end
	assert_equal "$(bounds)" "70 - - -"
	step repair "$keys" end
	assert_equal "$(bounds)" "70 - - -"
}

@test "upkeep: a lock is let go of if it is still the same" {
	redis hset "${q}locks" ka one kb two g0123456789abc three >/dev/null
	assert_equal "$(step repair "$keys" "free 1 ka one kb two")" 2
	assert_equal "$(step repair "$keys" "free '' ka other kb two g0123456789abc three")" 2
	assert_equal "$(redis hgetall "${q}locks" | xargs)" "ka one"
}

# in_line GROUP CHARACTER: a message of this group stands in line.
in_line() {
	local line
	line=$(printf '%s' "$1" | sha1sum | cut -c1-13)
	redis eval 'redis.call("ZADD", KEYS[1], string.format("%.0f", 2^52 + tonumber(ARGV[1], 16)),
		ARGV[2] .. "\255\0\190\190J{\"Mq-Id\":[\"" .. ARGV[2] .. "\"],\"Mq-Group\":[\"" .. ARGV[3] .. "\"]}\n")' \
		1 "${q}delayed" "$line" "$(timed "$2" '')" "$1" >/dev/null
	echo "$line"
}

@test "upkeep: groups that nobody holds have their turn, one message each" {
	local a b
	a=$(in_line a a)
	in_line a b >/dev/null
	b=$(in_line b c)
	redis hset "${q}locks" "g$b" someone >/dev/null
	assert_regex "$(step census "$keys ${q}rejected" "delayed 0 '' 1 x")" " g$a .* g$a\$"
	assert_equal "$(step repair "$keys" "free 1 g$a '' g$b ''")" 1
	assert_equal "$(redis zcard "${q}delayed") $(redis hexists "${q}locks" "g$a")" "3 0"
	assert_equal "$(step repair "$keys" "free '' g$a '' g$b ''")" 1
	assert_equal "$(redis zcard "${q}delayed") $(redis llen "${q}ready")" "2 1"
	assert_regex "$(redis hget "${q}locks" "g$a")" "^$(timed a '') [0-9]{16}\$"
	assert_equal "$(step repair "$keys" "free '' g$a ''")" 0
}

@test "upkeep: a connection is forgotten when it has nothing" {
	local all="rmq::connections queues beat info runs"
	redis sadd rmq::connections c >/dev/null
	redis mset info 1 runs 1 >/dev/null
	redis set beat 1 ex 60 >/dev/null
	assert_equal "$(step unlist "$all" c)" 0
	redis del beat >/dev/null
	redis sadd queues q >/dev/null
	assert_equal "$(step unlist "$all" c)" 0
	assert_equal "$(redis exists info runs)" 2
	redis del queues >/dev/null
	assert_equal "$(step unlist "$all" c) $(step unlist "$all" c)" "1 0"
	assert_equal "$(redis exists info runs rmq::connections)" 0
}

@test "upkeep: a connection leaves a queue that it holds nothing of" {
	local all="unacked consumers holders slots watch queues rmq::connections beat info"
	redis mset consumers 1 beat 1 info 1 >/dev/null
	redis sadd queues q r >/dev/null
	redis sadd rmq::connections c >/dev/null
	redis lpush unacked a >/dev/null
	redis hset holders c c d d >/dev/null
	redis zadd rmq::holders 1 c >/dev/null
	assert_equal "$(step leave "$all" "q c")" 0
	assert_equal "$(redis exists consumers)" 1
	redis del unacked >/dev/null
	assert_equal "$(step leave "$all" "q c")" 1
	assert_equal "$(redis smembers queues) $(redis exists consumers beat info rmq::connections)" "r 3"
	assert_equal "$(redis hkeys holders) $(redis exists rmq::holders)" "d 1"
	assert_equal "$(step leave "$all" "r c")" 1
	assert_equal "$(redis exists rmq::holders)" 0
	assert_equal "$(redis exists beat info rmq::connections)" 0
}

@test "upkeep: the rounds are one's who lives, until another may have them" {
	redis mset me 1 other 1 >/dev/null
	assert_equal "$(step /compete "round me" "5000 me")" 0
	assert_regex "$(step /compete "round other" "5000 other")" '^[45][0-9]{3}$'
	assert_equal "$(step /compete "round me" "9000 me")" 0
	[ "$(redis pttl round)" -gt 5000 ]
	redis del me >/dev/null
	assert_equal "$(step /compete "round other" "5000 other")" 0
	assert_equal "$(redis get round)" other
	# On a cluster, by names alone.
	assert_regex "$(step /compete round "5000 me former")" '^[45][0-9]{3}$'
	assert_equal "$(step /compete round "5000 me other")" 0
	assert_equal "$(redis get round)" me
}

@test "upkeep: the lease of a killed process ends, and of no other" {
	redis mset beat 1 >/dev/null
	assert_equal "$(step fence "beat info" boot:1:2)" 0
	redis hset info process boot:1:3 >/dev/null
	assert_equal "$(step fence "beat info" boot:1:2)" 0
	assert_equal "$(redis exists beat)" 1
	assert_equal "$(step fence "beat info" boot:1:3)" 1
	assert_equal "$(redis exists beat)" 0
	# Another cleaner was there.
	assert_equal "$(step fence "beat info" boot:1:3)" 1
}

# bury SLOTS [SHARE [FROM [DRY [NOTIFY [KEY... LISTENER]]]]]: a step of a cleaner with what
# connection c has of q; three runs are allowed.
bury() {
	step reclaim_dead "$keys rmq::queues rmq::connections u beat consumers holders slots queues form1 form2 \
		${q}rejected settings info runs ${*:6:$(($# > 6 ? $# - 6 : 0))}" \
		"q c '${4-}' ${2-1000} 3 ${3-0} $1 web1 '' '${5-}' ${7+${!#}}" | tr -cd ' -~'
}

# attempts LIST: those of its messages, from its left end.
attempts() {
	redis lrange "$1" 0 -1 | grep -ao '"Mq-Attempt":\["[0-9]*' | grep -o '[0-9]*$' | xargs
}

@test "upkeep: a dead connection's messages go back, and of it nothing is left" {
	redis lpush u 1 2 3 4 >/dev/null
	redis mset consumers 1 runs 1 form2 1 >/dev/null
	redis hset info slots 2 >/dev/null
	redis hset holders c c >/dev/null
	redis sadd queues q r >/dev/null
	redis sadd rmq::connections c >/dev/null
	redis set beat 1 px 60000 >/dev/null
	assert_equal "$(bury 0)" "-1 0 0 0 0 0 0"
	assert_equal "$(bury 0 1000 0 1)" "-1 0 0 0 0 0 0"
	redis del form2 >/dev/null
	# Its process has ended, and this is only to be told.
	assert_equal "$(bury 2 1000 0 killed)" "0 4 0 0 0 2 0"
	has u 4 3 2 1
	redis set form2 1 >/dev/null
	redis del beat >/dev/null
	assert_equal "$(bury 0)" "-2 0 0 0 0 0 0"
	redis del form2 >/dev/null
	assert_equal "$(bury 2 1000 0 1)" "0 4 0 0 0 2 0"
	has u 4 3 2 1
	assert_equal "$(redis exists consumers info) $(redis smembers rmq::queues)" "2 "
	# The two oldest may have been running.
	assert_equal "$(bury 2)" "0 4 2 0 0 2 0"
	assert_equal "$(redis lrange "${q}ready" 0 1 | xargs) $(attempts "${q}ready")" "4 3 1 1"
	assert_equal "$(redis exists u consumers) $(redis smembers queues)" "0 r"
	assert_equal "$(redis exists info runs holders) $(redis smembers rmq::queues)" "2 q"
	redis del queues >/dev/null
	redis set consumers 1 >/dev/null
	assert_equal "$(bury 2)" "0 0 0 0 1 0 0"
	assert_equal "$(redis exists consumers info runs rmq::connections)" 0
}

# held_by_c ATTEMPT...: such messages, the oldest first.
held_by_c() {
	local n
	redis del u "${q}ready" "${q}rejected" >/dev/null
	redis sadd queues q r >/dev/null
	for n; do
		echo "lpush u $(message "\"Mq-Attempt\":[\"$n\"]")"
	done | redis >/dev/null
}

@test "upkeep: of what may have been running, the exhausted is rejected, the oldest first" {
	held_by_c 2 0 3 1 2
	assert_equal "$(bury 4 1000 0 1)" "0 3 0 2 0 4 0"
	assert_equal "$(bury 4)" "0 3 4 2 0 2 0"
	assert_equal "$(attempts "${q}rejected") $(attempts "${q}ready")" "4 3 2 2 1"
	# In several steps, which know how many were looked at.
	held_by_c 0 2 1 2 9
	assert_equal "$(bury 5 1000 2 1)" "0 -2 0 2 0 5 0"
	assert_equal "$(bury 5 500 3)" "0 2 5 3 0 3 0"
	assert_equal "$(attempts "${q}rejected" | wc -w)" 3
}

@test "upkeep: a step that others wait for leaves a long list to one of its own" {
	held_by_c 0 0 0 0 0 0
	assert_equal "$(bury 1 9)" "6 0 0 0 0 0 1"
	assert_equal "$(bury 0 5)" "6 0 0 0 0 0 1"
	assert_equal "$(redis llen u)" 6
	assert_equal "$(bury 1 10)" "0 6 1 0 0 1 0"
	redis eval 'for i = 1, 1100 do redis.call("LPUSH", KEYS[1], i) end' 1 u
	assert_equal "$(bury 1)" "100 1000 0 0 0 0 1"
	assert_equal "$(redis lindex u -1)" 1
	assert_equal "$(bury 1)" "0 100 1 0 0 1 0"
	# 2 KiB for each of the share.
	redis eval 'for i = 1, 10 do redis.call("LPUSH", KEYS[1], ("x"):rep(262144)) end' 1 u
	assert_equal "$(bury 0)" "2 8 0 0 0 0 1"
	assert_equal "$(bury 2)" "0 2 2 0 0 2 0"
}

@test "upkeep: a rejection is told to a queue once its keys are given" {
	redis sadd rmq::connections c >/dev/null
	held_by_c 2
	assert_equal "$(bury 1 1000 0 '' hear)" hear
	redis hset settings notify other >/dev/null
	assert_equal "$(bury 1)" other
	assert_equal "$(redis llen u)" 1
	assert_equal "$(bury 1 1000 0 '' hear heard heard-n hear)" "0 0 1 1 0 0 0"
	assert_equal "$(redis lindex heard 0 | tr -d '\0' | tail -n 1 | jq -c '[.queue, .state, .attempts]')" \
		'["q","rejected",3]'
	held_by_c 2
	assert_equal "$(bury 1 1000 0 '' hear qx::outgoing none hear)" "0 0 1 1 0 0 0"
	assert_regex "$(redis hkeys qx::outgoing)" '^[0-9A-Za-z]{32}000001 push hear$'
	# A notice has none.
	redis lpush u "$(printf '\xff')" >/dev/null
	echo "lpush u $(message '"Mq-Attempt":["2"],"Mq-Notice":["x"]')" | redis >/dev/null
	redis del heard >/dev/null
	assert_equal "$(bury 2 1000 0 '' hear heard heard-n hear)" "0 1 2 1 0 1 0"
	assert_equal "$(redis exists heard)" 0
}

@test "upkeep: what cannot go where it belongs stays with the dead connection" {
	redis sadd queues q >/dev/null
	redis sadd rmq::connections c >/dev/null
	redis set "${q}priority" wrong >/dev/null
	echo "lpush u $(message '"Mq-Priority":["1"]')" plain | redis >/dev/null
	assert_regex "$(bury 0)" '^(ERR )?WRONGTYPE '
	assert_equal "$(redis llen u) $(redis lrange "${q}ready" 0 -1) $(redis smembers queues)" "1 plain q"
	redis del "${q}priority" >/dev/null
	assert_equal "$(bury 0)" "0 1 0 0 1 0 0"
	assert_equal "$(redis zcard "${q}priority")" 1
}

@test "upkeep: a purge counts what goes, unless somebody depends on it" {
	local place
	purge() {
		step move "$keys $keys rmq::queues$([ "$1" != rejected ] || echo " ${q}rejected")" \
			"$1 purge 1 1000"
	}
	redis lpush "${q}ready" a b >/dev/null
	redis lpush "${q}rejected" a b c >/dev/null
	redis zadd "${q}priority" 1 a >/dev/null
	redis zadd "${q}delayed" 1 a 2 b 3 c 4 d >/dev/null
	redis hset "${q}locks" e 1 >/dev/null
	# One at a time, as each is told.
	assert_equal "$(purge ready) $(purge delayed)" "1 1"
	redis del "${q}locks" >/dev/null
	redis set "${q}result::" 1 >/dev/null
	assert_equal "$(purge ready) $(purge rejected)" "1 3"
	redis del "${q}result::" >/dev/null
	assert_equal "$(purge ready) $(purge delayed)" "1 3"
	assert_equal "$(redis dbsize)" 0
	# Nothing is there to depend on.
	redis hset "${q}locks" e 1 >/dev/null
	for place in ready delayed rejected; do
		assert_equal "$(purge $place)" 0
	done
}

@test "upkeep: a queue is deleted when nobody uses it, and its connections are those" {
	local own="$keys ${q}rejected rate counters paused settings watch idle holders slots minutes hours ended form1 form2 out in"
	local c="beat queues consumers unacked form3 form4"
	delete() {
		step delete "${NAMES-rmq::queues} rmq::connections $own $c" "q $1 c"
	}
	redis sadd rmq::queues q r >/dev/null
	redis lpush "${q}ready" a b >/dev/null
	redis lpush "${q}rejected" a >/dev/null
	redis zadd "${q}priority" 1 a >/dev/null
	redis zadd "${q}delayed" 1 a 2 b >/dev/null
	redis mset rate 1 counters 1 settings 1 consumers 1 minutes 1 hours 1 >/dev/null
	redis set in 1 >/dev/null
	assert_equal "$(delete "''")" ""
	redis sadd rmq::connections other >/dev/null
	assert_equal "$(delete "''")" ""
	redis sadd rmq::connections c >/dev/null
	redis srem rmq::connections other >/dev/null
	# One that lives consumes it, by what it holds or by its list; one that is dead holds some.
	redis set beat 1 px 600000 >/dev/null
	redis sadd queues r >/dev/null
	redis del consumers >/dev/null
	redis lpush unacked u v >/dev/null
	assert_equal "$(delete "''")" "1 0 1 3 1 2 0 0"
	redis sadd consumers c1 c2 >/dev/null
	assert_equal "$(delete "''")" "2 0 1 3 1 2 0 0"
	redis del unacked >/dev/null
	assert_equal "$(delete 1)" "0 0 1 3 1 2 0 0"
	redis sadd queues q >/dev/null
	assert_equal "$(delete "''")" "2 0 1 3 1 2 0 0"
	redis lpush unacked u v >/dev/null
	redis del beat >/dev/null
	assert_equal "$(delete "''")" "0 2 1 3 1 2 0 0"
	redis del unacked >/dev/null
	# On a cluster: what is on its way, and the keys of its form.
	redis hset out f v >/dev/null
	assert_equal "$(delete "''") / $(delete 1)" "0 1 1 3 1 2 0 0 / 0 0 1 3 1 2 0 0"
	redis del out >/dev/null
	redis mset form1 1 form4 1 >/dev/null
	assert_equal "$(delete "''")" "0 0 1 3 1 2 0 2"
	redis del form1 form4 >/dev/null
	assert_equal "$(redis exists "${q}ready" rate counters settings consumers)" 5
	assert_equal "$(delete "''")" "0 0 1 3 1 2 0 0"
	assert_equal "$(redis keys '*' | sort | xargs)" "in queues rmq::connections rmq::queues"
	assert_equal "$(redis smembers queues) $(redis smembers rmq::queues)" "r r"
	[ "$(redis ttl in)" -gt 86000 ]
	# Where the names are elsewhere, a lease says who lives.
	redis set beat 1 px 600000 >/dev/null
	assert_equal "$(NAMES=q::none delete "''")" "1 0 0 0 0 0 0 0"
	redis del rmq::connections beat >/dev/null
	assert_equal "$(NAMES=q::none delete "''")" "0 0 0 0 0 0 0 0"
}

@test "upkeep: a pause is as long as the longest that was asked for" {
	assert_equal "$(step /pause p 50000) $(step /pause p 40000)" "1 0"
	[ "$(redis pttl p)" -gt 40000 ]
	assert_equal "$(step /pause p 90000)" 1
	[ "$(redis pttl p)" -gt 50000 ]
	redis persist p >/dev/null
	assert_equal "$(step /pause p 90000) $(redis pttl p)" "0 -1"
}

@test "upkeep: settings change together, even if the server is full" {
	redis config set maxmemory 1 >/dev/null
	redis hset s a 1 2>&1 | grep -q OOM
	redis config set maxmemory 0 >/dev/null
	redis hset s a 1 b 2 >/dev/null
	redis config set maxmemory 1 >/dev/null
	assert_equal "$(step /set s "a '' c 3 d 4")" 3
	redis config set maxmemory 0 >/dev/null
	assert_equal "$(redis hgetall s | xargs -n 2 | sort | xargs)" "b 2 c 3 d 4"
}

@test "upkeep: a set of attachments is noted for an hour, and stays while it is referred to" {
	local right
	assert_equal "$(step attach set "id ''") $(redis exists set)" "0 0"
	for right in hset expire; do
		redis acl setuser weak reset on nopass '~*' '&*' +@all "-$right" >/dev/null
		assert_regex "$(AS=weak step attach set "id new")" NOPERM
	done
	assert_equal "$(redis exists set)" 0
	assert_equal "$(step attach set "file new what")" 1
	assert_equal "$(redis hget set file)" what
	(($(redis ttl set) > 3500 && $(redis ttl set) <= 3600))
	redis acl setuser weak reset on nopass '~*' '&*' +@all -persist >/dev/null
	assert_regex "$(AS=weak step attach set "id ''")" NOPERM
	# Redis 6.2 cannot tell it before the first change.
	[[ $(redis-server --version) = *v=6.* ]] || assert_equal "$(redis hkeys set)" file
	assert_equal "$(step attach set "id ''") $(redis ttl set)" "1 -1"
	assert_regex "$(redis hget set id)" '^[0-9]{13}$'
	# A full server takes no new one, but keeps what it has.
	redis expire set 100 >/dev/null
	redis config set maxmemory 1 >/dev/null
	assert_regex "$(step attach set "other ''")" OOM
	assert_equal "$(step attach set "id ''")" 1
	redis config set maxmemory 0 >/dev/null
	assert_equal "$(redis ttl set) $(redis hexists set other)" "-1 0"
}

@test "upkeep: what is claimable counts what is due and whose tick has come" {
	redis lpush "${q}ready" a >/dev/null
	redis zadd "${q}priority" 1 a 2 b >/dev/null
	redis eval 'local k, b = KEYS[1], 2^50
		for m, s in pairs({ past = 1, later = 1e14, now = b, tick = b + 3, next = b + 4, line = 2^52 }) do
			redis.call("ZADD", k, string.format("%.0f", s), m)
		end' 1 "${q}delayed" >/dev/null
	redis set "${q}clock" 3 >/dev/null
	redis lpush u2 a b >/dev/null
	assert_equal "$(step count_claimable "$keys u1 u2")" 8
	# Of what comes at a time, the first; and what is in line.
	assert_equal "$(stats)" "1 2 0 6 1 0 -1 -1 -2 0 3   1"
	redis zrem "${q}delayed" past now later >/dev/null
	assert_equal "$(stats)" "1 2 0 3 1 0 -1 -1 -2 0 3"
}

# stats [READY] [PRIORITY]
stats() {
	step stats "${1-${q}ready} rejected counters ${2-${q}priority} ${q}delayed ${q}clock paused slots" published
}

# Since when the oldest of a set has been there.
since() {
	stats none "$1" | cut -d' ' -f13
}

@test "upkeep: the oldest of a list by its header, of a set by its time" {
	redis lpush one plain >/dev/null
	echo "lpush two $(message '"A":["1"]') new" | redis >/dev/null
	redis eval 'redis.call("LPUSH", "three", "\255\0\190\190J" .. string.rep("x", 65530) .. "\n")
		redis.call("LPUSH", "four", "\255\0\190\190J" .. string.rep("x", 65531) .. "\n")' 0 >/dev/null
	redis lpop two >/dev/null
	redis set "${q}clock" 1 >/dev/null
	assert_equal "$(stats one | tr -cd ' -~')" "1 0 0 0 0 0 -1 -1 -2 0 1"
	assert_equal "$(stats two | tr -cd ' -~')" '1 0 0 0 0 0 -1 -1 -2 0 1 .J{"A":["1"]}'
	assert_equal "$(stats four | tr -cd ' -~')" "1 0 0 0 0 0 -1 -1 -2 0 1"
	[ "$(stats three | wc -c)" -gt 65530 ]
	redis zadd set 3 n0000000000007000000001000000000x 3 n0000000000009000000001000000000x \
		5 n0000000000008000000001000000000x >/dev/null
	assert_equal "$(since set)" "7"
	assert_equal "$(since none)" ""
	redis zadd set 9 "f9999999999994000000001000000000x" >/dev/null
	assert_equal "$(since set)" 6
	# Of a tick: with a time, or the id, which begins with one, in base 36.
	redis zadd timed 1 0990000n000000000000500000000000x >/dev/null
	redis zadd named 1 09900000000000668000000000000000x >/dev/null
	assert_equal "$(since timed) $(since named)" "5 8"
}

@test "upkeep: counts say what the minute before had" {
	local now=0
	# All in one second.
	until [ "$(date +%s)" = "$now" ]; do
		now=$(date +%s)
		redis del c >/dev/null
		redis hset c now_s "$((now - 59))" now_in 1 now_out 2 published 5 done 3 failed 1 >/dev/null
		assert_equal "$(step /count c "published 4 done 1")" 1
	done
	assert_equal "$(redis hmget c published done failed now_in then_s | xargs)" "9 4 1 1"
	redis hset c now_s "$(($(date +%s) - 60))" >/dev/null
	step /count c "failed 2"
	assert_equal "$(redis hmget c failed now_in now_out then_in then_out | xargs)" "3 9 5 1 2"
	assert_equal "$(step /count "d none" "published 4")" 0
	assert_equal "$(redis exists d)" 0
}

@test "upkeep: what is on its way is read in order, by its queue, so many" {
	redis hset out "$(printf 'a%.0s' {1..20})000002 push r" two "$(printf 'a%.0s' {1..20})000001 push q" one \
		"$(printf 'a%.0s' {1..20})000003 push q" three >/dev/null
	on_its_way() {
		step outgoing "out none" "$1" | sed -E 's/a{20}//g'
	}
	assert_equal "$(on_its_way "'' '' 9 99")" "000001 push q one 000002 push r two 000003 push q three"
	assert_equal "$(on_its_way "'' q 9 99")" "000001 push q one 000003 push q three"
	assert_equal "$(on_its_way "'' '' 2 99")" "000001 push q one 000002 push r two"
	assert_equal "$(on_its_way "'' '' 9 3")" "000001 push q one"
	assert_equal "$(on_its_way "\"$(printf 'a%.0s' {1..20})000001 push q\" '' 1 99")" "000002 push r two"
}

@test "upkeep: an idle one is told what needs a claim" {
	local all="${q}ready ${q}priority ${q}delayed ${q}clock paused watch idle"
	look() {
		step look "$all" "me ${1-''}"
	}
	assert_equal "$(look)" 0
	redis set watch w >/dev/null
	assert_equal "$(look)" -1
	redis zadd "${q}delayed" 1e14 later >/dev/null
	assert_equal "$(look)" -1
	redis zadd "${q}delayed" 1 due >/dev/null
	assert_equal "$(look)" 0
	redis set paused 1 >/dev/null
	assert_equal "$(look)" -1
	redis del paused "${q}delayed" >/dev/null
	redis lpush "${q}ready" a >/dev/null
	assert_equal "$(look)" 0
	redis del "${q}ready" >/dev/null
	# Checked: the one on watch is dead.
	assert_equal "$(look 1)" 0
	redis subscribe mq::wake::w >"$T/w" 3>&- &
	eventually 10 grep -q '^1$' "$T/w"
	assert_equal "$(look 1)" 0
	redis zadd idle 1 me 2 other >/dev/null
	assert_equal "$(look 1) $(look)" "2 -1"
	redis zrem idle me >/dev/null
	assert_equal "$(look 1)" 0
}

@test "upkeep: who waits no more leaves the watch to the next" {
	redis subscribe mq::wake::b >"$T/b" 3>&- &
	eventually 10 grep -q '^1$' "$T/b"
	redis set watch other >/dev/null
	redis zadd idle 1 me 2 b >/dev/null
	assert_equal "$(step /pass "watch idle" me)" 0
	assert_equal "$(redis get watch) $(redis zrange idle 0 -1)" "other b"
	redis set watch me >/dev/null
	redis zadd idle 1 dead >/dev/null
	assert_equal "$(step /pass "watch idle" me)" 1
	assert_equal "$(redis exists watch idle)" 0
	eventually 10 grep -q idle "$T/b"
}

@test "upkeep: a batch is marked and counted where its command was not refused" {
	redis sadd rmq::queues q >/dev/null
	redis hset counters published 3 >/dev/null
	redis hset settings max-length 9 >/dev/null
	assert_equal "$(step mark "${q}ready counters marks rmq::queues settings" "3 4 600000 5 r lpush llen")" 1
	[ "$(redis pttl marks)" -gt 590000 ]
	redis del settings >/dev/null
	assert_equal "$(step mark "${q}ready counters marks rmq::queues settings" "4 9 600000 1 '' lpush llen")" 0
	assert_equal "$(redis hget counters published) $(redis hmget marks 3 4 | xargs)" "9 4 9"
	assert_equal "$(redis smembers rmq::queues | sort | xargs)" "q r"
	assert_regex "$(step mark "marks counters marks rmq::queues settings" "5 9 600000 1 '' lpush llen")" ^WRONGTYPE
	assert_equal "$(redis hexists marks 5)" 0
}

@test "upkeep: 250 that are due are made claimable at once, or 256 KiB" {
	redis eval 'for i = 1, 251 do redis.call("ZADD", KEYS[1], i, string.rep("x", 32) .. i) end' \
		1 "${q}delayed" >/dev/null
	assert_equal "$(step promote "$keys" 0) $(step promote "$keys" 250)" "251 250"
	assert_equal "$(redis lindex "${q}ready" -1) $(redis lindex "${q}ready" 0)" "1 250"
	assert_equal "$(step promote "$keys" 250)" 1
	redis eval 'for i = 1, 4 do redis.call("ZADD", KEYS[1], i, string.rep("x", 262144 / 2 + 32 - i % 2) .. i) end' \
		1 "${q}delayed" >/dev/null
	assert_equal "$(step promote "$keys" 250)" 3
	assert_equal "$(step promote "$keys" 250)" 1
}
