#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# topology: own
# Steps on the server, each with keys and arguments that programs give only when others
# were faster, or when the server refuses: what is not as expected changes nothing.

# shellcheck disable=SC1003

load ../helpers/server
load ../helpers/steps

@test "steps: a window that has other ends is not acked" {
	local keys_of
	for keys_of in "$u" "$u $keys"; do
		redis del "$u" >/dev/null
		redis lpush "$u" a b c d >/dev/null
		assert_equal "$(step ack "$keys_of" "3 a b")" 0
		assert_equal "$(step ack "$keys_of" "3 b c")" 0
		assert_equal "$(step ack "$keys_of" "5 a d")" 0
		has "$u" d c b a
		assert_equal "$(step ack "$keys_of" "3 a c mark 1 3")" 1
		has "$u" d b
		assert_equal "$(step ack "$keys_of" "2 b d keep 1")" 1
		has "$u" b
		assert_equal "$(step ack "$keys_of" "1 b b")" 1
		has "$u"
	done
}

@test "steps: equal messages are settled all, or none" {
	local keys_of="$u ${q}ready ${q}delayed ${q}rejected rmq::queues"
	redis lpush "$u" a b a >/dev/null
	assert_equal "$(step settle_equal "$keys_of" "ack a ack a ack a")" 0
	assert_equal "$(step settle_equal "$keys_of" "ack c ack a")" 0
	assert_equal "$(step settle_equal "$keys_of" "reject b B 1 0 x ack c")" 0
	has "$u" a b a
	assert_equal "$(redis exists "${q}rejected")" 0
	# The oldest of those that are equal goes, even if the server is full.
	redis config set maxmemory 1 >/dev/null
	assert_equal "$(step settle_equal "$keys_of" "ack a")" 1
	has "$u" a b
	assert_equal "$(step settle_equal "$keys_of" "front a '' 0 0 x reject b '' 0 0 x")" 1
	has "$u"
	has "${q}ready" a
	has "${q}rejected" b
	assert_equal "$(redis smembers rmq::queues)" q
}

@test "steps: equal messages stay where one of their places is refused" {
	local keys_of="$u ${q}ready ${q}delayed ${q}rejected rmq::queues" place
	for place in ready rejected delayed; do
		redis flushall >/dev/null
		redis lpush "$u" a a >/dev/null
		redis set "$q$place" x >/dev/null
		assert_regex "$(step settle_equal "$keys_of" \
			"ack a front a '' 0 0 x")" ^WRONGTYPE
		has "$u" a a
	done
}

# holding ID LETTER: a message of group g with a key, as in redis-cli.
holding() {
	message '"Mq-Id":["'"$(printf '%032d' "$1")"'"],"Mq-Group":["g'"$1"'"],"Mq-Key":["k'"$1"'"]'
}

@test "steps: what is acked of a window lets go, and nothing else" {
	local i groups=()
	for i in 1 2 3; do
		groups+=("g$(printf '%s' "g$i" | sha1sum | cut -c1-13)")
		redis hset "${q}locks" "${groups[-1]}" "$(printf '%032d' "$i") 1" \
			"kk$i" "$(printf '%032d' "$i") done 1" >/dev/null
	done
	echo "lpush $u $(holding 1) $(holding 2) $(holding 3)" | redis >/dev/null
	assert_equal "$(step ack "$u $keys" "3 $(holding 1) $(holding 3) mark 1 3")" 1
	assert_equal "$(redis hkeys "${q}locks" | sort | xargs)" "${groups[1]} kk2"
	assert_equal "$(redis llen "$u")" 1
	assert_equal "$(step ack "$u $keys" "1 $(holding 2) $(holding 2)")" 1
	assert_equal "$(redis exists "${q}locks" "$u")" 0
}

@test "steps: what is not the newest is not given back" {
	local all="$keys $u rmq::queues"
	redis lpush "$u" a b c d >/dev/null
	assert_equal "$(step give_back "$all" "2 d b")" 0
	assert_equal "$(step give_back "$all" "2 c b")" 0
	assert_equal "$(step give_back "$all" "3 d b c")" 0
	assert_equal "$(step give_back "$all" "3 d c a")" 0
	has "$u" d c b a
	assert_equal "$(step give_back "$all" "2 d c")" 2
	has "$u" b a
	has "${q}ready" d c
	assert_equal "$(redis smembers rmq::queues)" q
	assert_equal "$(step give_back "$all" "9")" 2
	has "${q}ready" d c b a
	redis del rmq::queues >/dev/null
	assert_equal "$(step give_back "$all" "9")" 0
	assert_equal "$(redis exists rmq::queues)" 0
}

@test "steps: whatever right is missing, what goes back is in one place" {
	local right member
	member=$(message '"Mq-Id":["'"$(timed m '')"'"],"Mq-Batch":["b"]')
	for right in get hget hset hdel hexists zadd lpush rpush rpop lmove; do
		redis flushall >/dev/null
		redis acl setuser weak reset on nopass '~*' '&*' +@all "-$right" >/dev/null
		echo "lpush $u $member" | redis >/dev/null
		AS=weak step give_back "$keys $u rmq::queues" 1 >/dev/null
		assert_equal "$right $(($(redis llen "$u") + $(redis llen "${q}ready")))" "$right 1"
	done
}

@test "steps: receipts are of so many, each for one message, and while the lease lives" {
	redis rpush "$u" c b b a >/dev/null
	assert_equal "$(step receipts "$u info" 3)" 0
	assert_equal "$(redis exists info)" 0
	redis set beat 1 ex 60 >/dev/null
	assert_equal "$(step receipts "$u info" 4)" 4
	assert_equal "$(step receipt "$u info beat" 1)" a
	assert_equal "$(step receipt "$u info beat" 3)" b
	assert_equal "$(step receipt "$u info beat" 4)" c
	assert_equal "$(step receipt "$u info beat" 5)" ""
	redis lrem "$u" 1 a >/dev/null
	assert_equal "$(step receipt "$u info beat" 1)" ""
	redis del beat >/dev/null
	assert_equal "$(step receipt "$u info beat" 4)" ""
	redis hset info claimed:q 7 claimed:r 8 >/dev/null
	assert_equal "$(step held "$u info" q)" "7 c b b"
}

@test "steps: what a new name takes over" {
	local all="from consumers lease info $u new"
	redis rpush from a >/dev/null
	redis hset info claimed:q 1 >/dev/null
	redis set consumers 1 >/dev/null
	assert_equal "$(step take_over "$all" old)" 0
	assert_equal "$(redis exists from info "$u" new consumers)" 3
	redis set lease 1 >/dev/null
	assert_equal "$(step take_over "$all" old)" 1
	has "$u" a
	assert_equal "$(redis exists from info lease consumers)" 0
	assert_equal "$(redis hmget new claimed:q was | xargs)" "1 old"
	[ "$(redis ttl new)" -gt 86000 ]
	# The answer was lost: the same again.
	assert_equal "$(step take_over "$all" old)" 1
	has "$u" a
}

@test "steps: a key of ours that is left of a queue or connection that nobody lists goes" {
	redis sadd known k >/dev/null
	redis set key x >/dev/null
	assert_equal "$(step orphan "known beat key" k)" 0
	redis set beat 1 ex 60 >/dev/null
	assert_equal "$(step orphan "known beat key" o)" 0
	redis del beat >/dev/null
	assert_equal "$(step orphan "known beat none key" "o 1")" 1
	assert_equal "$(redis exists key)" 1
	assert_equal "$(step orphan "known beat none key" o)" 1
	assert_equal "$(redis exists key)" 0
	assert_equal "$(step orphan "known beat none key" o)" 0
}

# settle HOW ELEMENT MS RECEIPT [KEY...]
settle() {
	step announce "$keys $u rmq::queues beat info none none ${*:5}" \
		"$1 $2 '' 0 $3 $(timed u '') $4 '' '' 0 '' ''"
}

@test "steps: a receipt is good once, and while its lease lives" {
	redis lpush "$u" a a >/dev/null
	redis hset info receipt:1 x receipt:2 y >/dev/null
	assert_equal "$(settle ack a 0 1)" 0
	redis set beat 1 ex 60 >/dev/null
	assert_equal "$(settle ack a 0 3) $(settle reject a 0 3 "${q}rejected")" "0 0"
	has "$u" a a
	assert_equal "$(settle ack a 0 1)" 1
	assert_equal "$(settle ack a 0 1)" 0
	has "$u" a
	assert_equal "$(settle reject a 0 2 "${q}rejected")" 1
	has "$u"
	has "${q}rejected" a
	assert_equal "$(redis exists info)" 0
	assert_equal "$(settle ack a 0 "''") $(settle again a 0 "''")" "0 0"
}

@test "steps: a message that ends goes to its place, the oldest of equal ones" {
	local ms
	redis lpush "$u" a b a c a d >/dev/null
	assert_equal "$(settle front a 0 "''")" 1
	has "$u" d a c a b
	assert_equal "$(settle again b 0 "''") $(settle again c 60000 "''")" "1 1"
	has "${q}ready" b a
	assert_equal "$(redis zrange "${q}delayed" 0 -1)" "$(timed u c)"
	ms=$(($(redis zscore "${q}delayed" "$(timed u c)") - $(date +%s)000))
	((ms > 30000 && ms <= 61000))
	assert_equal "$(settle push d 0 "''" r{1..6})" 1
	has r1 d
	has "$u" a a
	assert_equal "$(redis smembers rmq::queues)" q
}

# publish WHEN MS LIMITS ALIKE JOIN ELEMENT...: LIMITS are four; each element has 32 bytes.
publish() {
	step publish "$keys counters rmq::queues settings none" "$1 $2 $3 '$4' '$5' '' 0 -1 ${*:6}"
}

@test "steps: as many are accepted as there is room for, by where they go" {
	local none="'' '' '' ''" x
	x=$(timed x)
	redis lpush "${q}ready" 1 2 >/dev/null
	assert_equal "$(publish now 0 "4 9 0 0" '' '' "${x}a" "${x}b" "${x}c")" aaf
	assert_equal "$(publish now 0 "4 9 0 0" '' '' "${x}c")" f
	assert_equal "$(publish in 60000 "0 0 1 9" '' '' "${x}d" "${x}e")" af
	assert_equal "$(publish at 99999999999999 "0 0 2 9" 1 '' "${x}d" "${x}e")" af
	assert_equal "$(publish at 1 "5 0 2 9" 1 '' "${x}f" "${x}g")" af
	assert_equal "$(publish now 0 "$none" '' '' "${x}g")" a
	has "${q}ready" g f b a 2 1
	redis hset settings max-length 7:8 >/dev/null
	assert_equal "$(publish now 0 "$none" '' '' "${x}h" "${x}i")" af
	assert_equal "$(redis hget counters published)" 7
}

@test "steps: a batch is published once, and behind the one before it" {
	local all="$keys counters rmq::queues settings marks" x
	x=$(timed x)
	marked() {
		step publish "$all" "now 0 '' '' '' '' '' '' $1 $2 $3 ${*:4}"
	}
	assert_equal "$(marked 3 5 2 "${x}a")" ""
	assert_equal "$(marked 2 2 -1 "${x}a" "${x}b")" aa
	assert_equal "$(marked 3 5 3 "${x}c")" ""
	assert_equal "$(marked 3 5 2 "${x}c")" a
	assert_equal "$(marked 3 5 2 "${x}c") $(marked 2 2 -1 "${x}a" "${x}b")" "a aa"
	assert_equal "$(marked 2 18 -1 "${x}d")" a
	has "${q}ready" d c b a
	assert_equal "$(marked 0 20 19 "${x}e")" ""
	assert_equal "$(marked 15 19 -1 "${x}e") $(marked 0 20 19 "${x}f")" "a a"
	[ "$(redis pttl marks)" -gt 590000 ]
}

# goes_to HEADERS: where a message with these is put; the score is told.
goes_to() {
	publish now 0 "'' '' '' ''" '' '' "$(message "$1" | sed "s/^\"/\"$(timed x)/")" >/dev/null
	redis eval 'local told = "nowhere"
		for i, k in ipairs(KEYS) do
			local kind = redis.call("TYPE", k).ok
			if kind == "list" then
				told = "ready"
			elseif kind == "zset" then
				told = k:match("%a+$") .. " " .. redis.call("ZRANGE", k, 0, 0, "WITHSCORES")[2]
			end
			redis.call("DEL", k)
		end
		return told' 3 "${q}ready" "${q}priority" "${q}delayed"
}

@test "steps: what a header must be to be an option" {
	local headers where
	while IFS=$'\t' read -r headers where; do
		assert_equal "$headers	$(goes_to "$headers")" "$headers	$where"
	done <<-'END'
		"A":["1"]	ready
		"Mq-Priority":["100"]	priority -100
		"Mq-Priority":["101"]	ready
		"Mq-Priority":["-100"]	priority 100
		"Mq-Priority":["-101"]	ready
		"Mq-Priority":["0"]	ready
		"Mq-Priority":["1.0"]	ready
		"Mq-Priority":["+1"]	ready
		"Mq-Priority":[1]	ready
		"Mq-Priority":[]	ready
		"Mq-Priority":["7","8"]	priority -7
		"Mq-Priority" : [ "7" ]	priority -7
		"A":["Mq-Priority"]	ready
		"Mq-From-Tick":["0"]	priority -4503599627370496
		"Mq-From-Tick":["281474976710656"]	delayed 1407374883553280
		"Mq-From-Tick":["281474976710657"]	ready
		"Mq-From-Tick":["-1"]	ready
		"A":["\\""],"Mq-Priority":["7"]	priority -7
		"Mq-Priority":["\\u0037"]	priority -7
		"A":["\\\\"],"Mq-Priority":[7]	ready
		"A":["\\ud800"],"Mq-Priority":["7"]	priority -7
		"A":["\\\\ud800"],"Mq-Priority":["7"]	priority -7
		"A":["\\udc00\\ud83d\\ude00"],"Mq-Priority":["7"]	priority -7
		"A":["\\x"],"Mq-Priority":["7"]	ready
	END
}
