#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# topology: own
# Steps on the server in the layout of RSMQ, each with its keys and arguments: what each
# changes, up to which bound, and what it leaves alone.

# shellcheck disable=SC1010

load ../helpers/server
load ../helpers/steps

# put ID SCORE BODY [RUNS]: a message, and the first receive of one that had runs.
put() {
	redis zadd z "$2" "$1" >/dev/null
	redis hset h "$1" "$3" ${4+"$1:rc" "$4" "$1:fr" 5} >/dev/null
}

# hidden ID [SET]: for how many times 100 s nobody can receive it.
hidden() {
	redis eval 'local t = redis.call("TIME")
		return math.floor((redis.call("ZSCORE", KEYS[1], ARGV[1]) / 1000 - t[1]) / 100 + 0.5)' 1 "${2:-z}" "$1"
}

# fields KEY: of a hash, sorted.
fields() {
	redis hgetall "$1" | xargs -rn 2 | sort | xargs
}

# of_members SET: with their scores.
of_members() {
	redis zrange "$1" 0 -1 withscores | xargs
}

@test "rsmq-steps: a lease begins for the shortest vt of what is consumed, but 3 s" {
	local all="lease connections names h1 h2 h3 c1 c2 holders1 holders2"
	redis hset h1 vt 50 >/dev/null
	redis hset h2 vt 20 >/dev/null
	redis hset h3 vt 10 >/dev/null
	redis hset lease old 1 >/dev/null
	redis hset c1 attempts 3 >/dev/null
	assert_equal "$(step rsmq/join "$all" "me host 7 4 '' 2 5 '' q1 q2 q3")" 20000
	assert_equal "$(fields lease)" 'host host lease 20000 pid 7 queues [q1,q2] slots 4'
	[ "$(redis pttl lease)" -gt 10000 ]
	assert_equal "$(of_members connections) $(redis exists names)" "me 1 0"
	assert_equal "$(redis --raw hget holders1 me), $(redis --raw hget holders2 me)" "me, me"
	redis del holders2 >/dev/null
	redis hset holders2 dead x dead2 x >/dev/null
	assert_equal "$(redis hget c1 attempts) $(redis hget c2 attempts)" "5 5"
	redis hset c1 attempts 9 >/dev/null
	redis hset h2 vt 2 >/dev/null
	assert_equal "$(step rsmq/join "$all" "me host 7 4 '' 2 5 '' q1 q2 q3")" 3000
	assert_equal "$(redis hget c1 attempts)" 9
	# By receipt, as long as was asked for.
	assert_equal "$(step rsmq/join "$all" "me host 7 4 1234 2 5 '' q1 q2 q3")" 1234
	assert_equal "$(redis hget lease receipts)" 1
	assert_equal "$(redis --raw hgetall holders2 | xargs)" "me me"
}

@test "rsmq-steps: a queue is made where that is asked for, and holes are filled" {
	redis hset h1 vt 7 >/dev/null
	assert_equal "$(step rsmq/join "lease connections names h1 h2 c1 c2 holders1 holders2" "me host 7 4 '' 2 5 '' q1 q2")" 7000
	assert_equal "$(redis exists h2 c2)" 0
	step rsmq/join "lease connections names h1 h2 c1 c2 holders1 holders2" "me host 7 4 '' 2 5 1 q1 q2"
	assert_equal "$(redis hmget h1 vt delay maxsize | xargs) $(redis hmget h2 vt delay maxsize | xargs)" \
		"7 0 65536 30 0 65536"
	assert_equal "$(redis smembers names | sort | xargs) $(redis hget c2 attempts)" "q1 q2 5"
}

@test "rsmq-steps: a renewal keeps what the connection still has" {
	assert_equal "$(step rsmq/renew "lease z h x d held" "''")" 0
	redis hset lease lease 1000000 >/dev/null
	redis expire lease 9 >/dev/null
	put a 1 A 2
	put b 1 B 3
	redis hset held a 2 b 2 c 1 >/dev/null
	assert_equal "$(step rsmq/renew "lease z h x d held" "''")" 1000000
	assert_equal "$(hidden a) $(redis zscore z b) $(fields held)" "10 1 a 2"
	[ "$(redis ttl lease)" -gt 900 ]
	[ "$(redis ttl held)" -gt 900 ]
	assert_equal "$(step rsmq/renew "lease z h x d held" 2000000)" 2000000
	assert_equal "$(hidden a) $(redis hget lease lease)" "20 2000000"
}

# receive MAX BYTES: of z; the time is left out, and the signature.
receive() {
	step rsmq/claim "z h x d held lease paused rate later names watch idle" "$1 $2 '' '' q '' '' ''" |
		tr -cd ' -~' | sed -E 's/ [0-9]{13}\b//; s/[.]J//g'
}

@test "rsmq-steps: a claim receives the first, so many, or about so many bytes" {
	assert_equal "$(receive 1 9)" 0
	redis hset lease lease 1000000 >/dev/null
	assert_equal "$(receive 1 9)" "-1 0 -1"
	redis hset h vt 30 >/dev/null
	put a 1 A
	put b 2 B 1
	put c 3 CC
	put d 4 D
	redis hset x b '"K":["v"]' >/dev/null
	redis hset d b note >/dev/null
	assert_equal "$(receive 2 9)" '1000000 0 0 {"Mq-Id":["a"]} A {"Mq-Id":["b"],"Mq-Attempt":["1"],"K":["v"]} B'
	assert_equal "$(hidden a) $(hidden b) $(redis exists d)" "10 10 0"
	assert_equal "$(fields held)" "a 1 b 2"
	assert_equal "$(redis hmget h a:rc b:rc b:fr totalrecv | xargs)" "1 2 5 2"
	assert_regex "$(redis hget h a:fr)" '^[0-9]{13}$'
	[ "$(redis ttl held)" -gt 900 ]
	assert_regex "$(receive 9 1)" '^[0-9]{6,} 0 0 [{]"Mq-Id":."c".[}] CC$'
	assert_regex "$(receive 9 1)" '^[0-9]{6,} 0 0 [{]"Mq-Id":."d".[}] D$'
	assert_regex "$(receive 9 1)" '^[0-9]{6,} 0 0$'
}

@test "rsmq-steps: a member without a body has a minute" {
	redis hset lease lease 1000000 >/dev/null
	redis hset h vt 30 >/dev/null
	redis eval 'local t = redis.call("TIME")
		redis.call("ZADD", "z", t[1] .. "000", "young", (t[1] - 61) .. "000", "old")' 0 >/dev/null
	receive 9 9
	assert_equal "$(redis zrange z 0 -1)" young
	assert_equal "$(hidden young) $(redis hexists h young:fr) $(redis exists held)" "10 1 0"
}

@test "rsmq-steps: delayed messages with a priority take their place when they are due" {
	redis hset lease lease 1000000 >/dev/null
	put a 1 A
	put b 2 B
	put c 3 C
	redis hset x b '"Mq-Priority":["100"]' c '"Mq-Priority":["101"]' >/dev/null
	redis zadd later 2 b 3 c 1 gone 99999999999999 d >/dev/null
	assert_equal "$(receive 1 9)" '1000000 0 0 {"Mq-Id":["b"],"Mq-Priority":["100"]} B'
	assert_equal "$(redis zrange later 0 -1) $(redis zscore z c)" "d 3"
	# Not what was put elsewhere since.
	redis zadd later 9 c >/dev/null
	assert_regex "$(receive 1 9)" '^[0-9]{6,} 0 0 [{]"Mq-Id":."a".[}] A$'
	assert_equal "$(redis zscore z c)" 3
}

# end_stay VERB ID ARG...
end_stay() {
	step rsmq/settle "z h x d held later z2 h2 x2 d2 names" "$*"
}

@test "rsmq-steps: only what the connection still holds is settled" {
	put a 1 A 2
	put b 1 B 2
	redis hset held a 1 c 1 >/dev/null
	local verb
	for verb in ack reject front again push; do
		assert_equal "$(end_stay $verb a 0 '""' 0 r 1)" 0
		assert_equal "$(end_stay $verb b 0 '""' 0 r 1)" 0
	done
	assert_equal "$(of_members z) $(redis exists z2 h2)" "a 1 b 1 0"
	assert_equal "$(end_stay ack c 0 '""')" -1
	assert_equal "$(fields held)" "a 1"
	redis hset held a 2 >/dev/null
	assert_equal "$(end_stay ack a 0 '""')" 1
	assert_equal "$(of_members z) $(fields h) $(redis exists held)" "b 1 b B b:fr 5 b:rc 2 0"
}

@test "rsmq-steps: what waits on purpose is noted, what goes back has had no run" {
	put a 1 A 2
	put b 1 B 1
	redis hset held a 2 b 1 >/dev/null
	assert_equal "$(end_stay again a 1 '"\"K\":[\"v\"]"' 1000000)" 1
	assert_equal "$(hidden a) $(redis hget d a) $(redis hget x a)" '10 2 5 "K":["v"]'
	assert_equal "$(redis exists later)" 0
	assert_equal "$(end_stay front b 0 '""')" 1
	assert_equal "$(redis zscore z b) $(redis hmget h b:rc b:fr | xargs)" "0 "
	# Once more, with a priority, and then at once.
	redis hset held a 2 >/dev/null
	assert_equal "$(end_stay again a 1 '"\"Mq-Priority\":[\"3\"]"' 1000000)" 1
	assert_equal "$(redis zscore later a)" "$(redis zscore z a)"
	redis hset held a 2 >/dev/null
	assert_equal "$(end_stay again a 1 '""' 0)" 1
	assert_equal "$(hidden a) $(redis exists x)" "0 0"
	redis hset held a 2 >/dev/null
	assert_equal "$(end_stay front a 0 '""')" 1
	assert_equal "$(redis hmget h a:rc a:fr | xargs) $(redis zscore z a)" "1 5 0"
}

@test "rsmq-steps: what is pushed fits there, and has an id that is new there" {
	redis hset h vt 7 maxsize 99 >/dev/null
	put a 1 A 2
	put b 1 B 2
	redis hset held a 2 b 2 >/dev/null
	redis hset h2 maxsize 3 b other >/dev/null
	assert_equal "$(end_stay push a 0 '""' 0 r 4)" -2
	assert_equal "$(redis zcard z) $(redis exists z2) $(fields held)" "2 0 a 2 b 2"
	assert_equal "$(end_stay push a 0 '""' 0 r 3)" 1
	assert_equal "$(redis hmget h2 a vt maxsize delay totalsent | xargs)" "A 7 3 0 1"
	assert_equal "$(hidden a z2) $(redis smembers names) $(redis hexists h a)" "0 r 0"
	assert_equal "$(end_stay reject b 0 '""' 0 r)" 1
	assert_equal "$(redis hget h2 b) $(redis zcard z2) $(redis zcard z) $(redis exists held)" "other 2 0 0"
	assert_regex "$(redis hvals x2)" '^"Mq-Copy-Of":."b".$'
}

@test "rsmq-steps: at most 100 are given back, up to the first that is another's" {
	local all
	redis eval 'for i = 1, 101 do
			redis.call("ZADD", "z", 9, i)
			redis.call("HSET", "h", i, "A", i .. ":rc", 2)
			redis.call("HSET", "held", i, 2)
		end' 0 >/dev/null
	assert_equal "$(step rsmq/give_back "z h x d none" 1)" 0
	redis hset h 3:rc 3 >/dev/null
	assert_equal "$(step rsmq/give_back "z h x d held" "1 2 3 4")" 2
	assert_equal "$(redis hmget h 1:rc 2:rc 3:rc 4:rc | xargs) $(redis hlen held)" "1 1 3 2 99"
	assert_equal "$(step rsmq/give_back "z h x d held" 3)" 0
	redis hset h 3:rc 2 >/dev/null
	redis hset held 1 1 2 1 >/dev/null
	printf -v all '%s ' {1..101}
	assert_equal "$(step rsmq/give_back "z h x d held" "$all")" 100
	assert_equal "$(redis hkeys held)" 101
	# Without names, what another one has is forgotten, too.
	redis hset h 101:rc 7 >/dev/null
	assert_equal "$(step rsmq/give_back "z h x d held" "")" 1
	assert_equal "$(redis hget h 101:rc) $(redis exists held)" "7 0"
}

@test "rsmq-steps: of many, none is acked if one is another's, be it the first or the last" {
	local all other
	redis eval 'for i = 1, 1001 do
			redis.call("ZADD", "z", 9, i)
			redis.call("HSET", "h", i, "A", i .. ":rc", 2)
			redis.call("HSET", "held", i, 2)
		end' 0 >/dev/null
	printf -v all '%s ' {1..1001}
	for other in 1 500 501 1001; do
		redis hset h "$other:rc" 3 >/dev/null
		assert_equal "$(step rsmq/ack "z h x d held" "$all")" 0
		assert_equal "$(redis zcard z) $(redis hlen held)" "1001 1001"
		redis hset h "$other:rc" 2 >/dev/null
	done
	redis hset h 1:rc 3 >/dev/null
	assert_equal "$(step rsmq/ack "z h x d held" 1)" 0
	redis hset h 1:rc 2 >/dev/null
	assert_equal "$(step rsmq/ack "z h x d held" "$all")" 1
	assert_equal "$(redis exists z h held)" 0
}

@test "rsmq-steps: a receive is taken back if nothing has become of it" {
	put a 1 A 2
	assert_equal "$(step rsmq/lapsed "z h x d" "a 1") $(step rsmq/lapsed "z h x d" "b 1")" "0 0"
	redis zadd z 99999999999999 a >/dev/null
	assert_equal "$(step rsmq/lapsed "z h x d" "a 2")" 0
	redis zadd z 1 a >/dev/null
	assert_equal "$(step rsmq/lapsed "z h x d" "a 2")" 1
	assert_equal "$(redis hget h a:rc) $(step rsmq/lapsed "z h x d" "a 2")" "1 0"
}

# sweep SCORE ID MANY MOST OURS DRY
sweep() {
	step rsmq/sweep "z h x d counters later z2 h2 x2 d2 names" "$* r"
}

@test "rsmq-steps: a cleaner finds what has had its runs, or is late, and no more" {
	local later=99999999999999
	put a 1 A 3
	put b 2 B 2
	put c 3 C 3
	put d $later D 3
	put e $later E
	put f $later F 3
	redis hset d c "3 5" f "3 5" >/dev/null
	redis hset x b '"Mq-Expires":["1"]' d '"Mq-Expires":["1"]' e '"Mq-Expires":["1"]' \
		f '"Mq-Expires":["1"]' a '"Mq-Expires":["99999999999999"]' >/dev/null
	assert_equal "$(sweep '""' '""' 9 3 1 1)" "99999999999999 f 0 0 3 1"
	# No program of ours has ever counted anything: how often is nothing to us.
	redis del x >/dev/null
	assert_equal "$(sweep '""' '""' 9 3 '""' 1)" "99999999999999 f 0 0 0 0"
	redis hset counters attempts 2 >/dev/null
	assert_equal "$(sweep '""' '""' 9 3 '""' 1)" "99999999999999 f 0 0 0 2"
	assert_equal "$(sweep '""' '""' 2 3 1 1)" "2 b 4 0 0 2"
	assert_equal "$(sweep 2 b 2 3 1 1)" "99999999999999 d 2 0 0 0"
	assert_equal "$(sweep 1 gone 1 3 1 1)" "2 b 4 0 0 1"
	redis hset x a '"A/b":["\u00e9"],"E":[],"Mq-History":["x"]' b '"Mq-Expires":["1"],bad' >/dev/null
	assert_equal "$(sweep '""' '""' 9 3 1 '""')" "99999999999999 f 0 0 1 1"
	assert_equal "$(redis zrange z 0 -1 | xargs) $(redis zrange z2 0 -1 | xargs) $(redis smembers names)" \
		"c d e f a b r"
	assert_equal "$(redis hmget h2 a b a:rc | xargs) $(redis hexists x a)" "A B 0"
	assert_regex "$(redis hget x2 a)" '^"A/b":\["é"\],"E":\[\],"Mq-Error":\["attempts exhausted: its consumer died while it ran"\],"Mq-History":\["x","\{\\"at_ms\\":[0-9]{13},\\"attempt\\":3,\\"text\\":\\"attempts exhausted: its consumer died while it ran\\"\}"\]$'
	assert_equal "$(redis hget x2 b)" '"Mq-Error":["expired"]'
}

@test "rsmq-steps: a cleaner rejects fifty messages in one step" {
	local i
	for i in $(seq 60); do
		put "$i" "$i" X 3
	done
	assert_equal "$(sweep '""' '""' 500 3 1 '""')" "50 50 10 0 0 50"
	assert_equal "$(sweep 50 50 500 3 1 '""')" "60 60 0 0 0 10"
	assert_equal "$(redis zcard z) $(redis zcard z2)" "0 60"
}

@test "rsmq-steps: a cleaner forgets members whose body does not come" {
	redis eval 'local t = redis.call("TIME")
		redis.call("ZADD", "z", (t[1] - 40) .. "000", "young", (t[1] - 61) .. "000", "old")' 0 >/dev/null
	assert_regex "$(sweep '""' '""' 9 3 1 1)" " 1 0 0\$"
	assert_equal "$(redis zcard z)" 2
	assert_regex "$(sweep '""' '""' 9 3 1 '""')" " 1 0 0\$"
	assert_equal "$(redis zrange z 0 -1)" young
}

@test "rsmq-steps: hidden ones wait, or are in somebody's hands" {
	local later=99999999999999 since
	since=$(date +%s)000
	put a "$since" A
	put b $later B
	put c $later C 1
	put e $later E 2
	redis hset d e "2 5" >/dev/null
	redis hset h vt 1 delay 2 maxsize 3 totalsent 4 totalrecv 5 created 6 modified 7 >/dev/null
	redis lpush other x >/dev/null
	redis zadd z2 1 x >/dev/null
	assert_equal "$(step rsmq/stats "z h x d z2 paused counters slots" "9 '' '' done")" \
		"2 1 $later 0 $later e 1 1 2 3 4 5 6 7 1 -2 -1 -1 $since"
	assert_equal "$(step rsmq/stats "z h x d z2 paused counters slots" "1 '' '' done")" \
		"1 0 $later 2 $later b 1 1 2 3 4 5 6 7 1 -2 -1 -1 $since"
	assert_equal "$(step rsmq/stats "z h x d" "9 $later b")" "1 1 $later 0 $later e 1"
	redis hset held c 1 >/dev/null
	assert_equal "$(step rsmq/stats "z h x d held" "9 '' ''")" "2 0 $later 0 $later e 1"
	redis hset held c 2 >/dev/null
	assert_equal "$(step rsmq/stats "z h x d held" "2 '' ''")" "1 1 $later 1 $later c 1"
}

# take HOW ID SCORE...: to another queue.
take() {
	local how=$1 chosen=
	for ((shift = 2; shift <= $#; shift += 2)); do
		chosen+=" ${*:shift+1:1} ${*:shift:1}"
	done
	step rsmq/move "z h x d z2 h2 x2 d2 names" "ready $how r 9 1000 0$chosen" | cut -d' ' -f1
}

@test "rsmq-steps: messages go to another queue as they were, or as new ones" {
	redis hset h vt 7 maxsize 99 >/dev/null
	put a 1 A
	put b 2 B 3
	put c 3 C 3
	put d 4 D 3
	put e 5 E 3
	redis hset x b '"K":["v"]' e '"Mq-Priority":["2"]' >/dev/null
	redis hset h2 e other >/dev/null
	assert_equal "$(take move a 9 b 2)" 1
	assert_equal "$(redis hmget h2 b b:rc b:fr vt maxsize totalsent | xargs) $(redis hget x2 b)" \
		'B 3 5 7 99 1 "K":["v"]'
	assert_equal "$(take move a 1) $(redis hexists x2 a) $(redis hexists h2 a:rc)" "1 0 0"
	assert_equal "$(take fresh c 3) $(redis hexists h2 c:rc) $(redis hget h2 totalsent)" "1 0 3"
	assert_equal "$(take back d 4) $(redis hmget h2 d:rc totalsent | xargs)" "1 2 4"
	assert_equal "$(take home e 5) $(redis hget h2 e) $(redis hget h e)" "0 other E"
	redis hdel h2 e >/dev/null
	assert_equal "$(take home e 5) $(redis hmget h2 e totalsent | xargs)" "1 E 4"
	assert_equal "$(redis zcard z) $(redis hkeys h | sort | xargs) $(redis exists x)" "0 maxsize vt 0"
	assert_equal "$(redis zrange z2 0 0) $(redis smembers names)" "e r"
}

@test "rsmq-steps: messages become receivable where they are, or go" {
	local later=99999999999999
	put a $later A 3
	put b $later B 3
	put c $later C 3
	redis hset d a "3 5" >/dev/null
	release() {
		step rsmq/move "z h x d z h x d names" "delayed $1 q 9 1000 0 $later $2" | cut -d' ' -f1
	}
	assert_equal "$(release move a) $(hidden a) $(redis hget h a:rc) $(redis exists d)" "1 0 3 0"
	assert_equal "$(release fresh b) $(hidden b) $(redis hmget h b:rc b:fr | xargs)" "1 0 "
	assert_equal "$(release back c) $(redis zscore z c) $(redis hget h c:rc)" "1 0 2"
	put a $later A 3
	assert_equal "$(release drop a) $(redis zrange z 0 -1 | xargs)" "1 c b"
}

@test "rsmq-steps: a queue is deleted when nobody consumes it, and its connections are those" {
	local all="names connections z h x d counters paused rate later watch idle holders slots settings minutes hours \
		z2 h2 x2 d2 counters2 paused2 rate2 later2 watch2 idle2 holders2 slots2 settings2 minutes2 hours2"
	redis hset h vt 7 >/dev/null
	put a 1 A
	put b 99999999999999 B
	redis zadd z2 1 x >/dev/null
	redis sadd names q q2 r >/dev/null
	redis zadd connections 0 c >/dev/null
	redis hset lease queues '["q2","r"]' >/dev/null
	redis mset counters 1 counters2 1 settings2 1 hours 1 minutes2 1 >/dev/null
	assert_equal "$(step rsmq/delete "$all" "q q2 ''")" ""
	assert_equal "$(step rsmq/delete "$all lease" "q q2 '' other")" ""
	assert_equal "$(step rsmq/delete "$all lease" "q q2 '' c")" "1 1 1 1 1"
	redis hset lease queues '["r"]' >/dev/null
	assert_equal "$(step rsmq/delete "$all lease" "q q2 1 c")" "0 1 1 1 1"
	assert_equal "$(redis exists z h z2 counters counters2 settings2 hours minutes2) $(redis scard names)" "8 3"
	assert_equal "$(step rsmq/delete "$all lease" "q q2 '' c")" "0 1 1 1 1"
	assert_equal "$(redis exists z h z2 counters counters2 settings2 hours minutes2) $(redis smembers names)" "0 r"
}
