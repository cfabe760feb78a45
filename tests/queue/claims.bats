#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# topology: own
# Steps of claims, and of the roles of those who wait: how much is claimed, in which order,
# and who is called.

load ../helpers/server
load ../helpers/steps

# claim MAX BYTES [NAME WHY TRACKED [SPARE]]: of q; the time is left out.
claim() {
	step claim "$keys $u beat ${q}paused ${q}rate info watch idle" \
		"$1 $2 '${RATE-}' '${BURST-}' q '${3-}' '${4-}' '${5-}' ${6-}" | sed -E 's/ [0-9]{13}\b//'
}

@test "claims: a claim takes the oldest, so many, or about so many bytes" {
	redis set beat 1 >/dev/null
	redis lpush "${q}ready" a b c dd ee f g h i j k l >/dev/null
	assert_equal "$(claim 2 1000)" "-1 0 0 a b"
	assert_equal "$(claim 9 2)" "-1 0 0 c dd"
	assert_equal "$(claim 5 1000)" "-1 0 0 ee f g h i"
	has "$u" i h g f ee dd c b a
	assert_equal "$(redis hget info claimed:q)" 9
	assert_equal "$(claim 0 1000)" "-1 0 0"
	assert_equal "$(claim 4 1000)" "-1 0 0 j k l"
	# A cleaner may have been there.
	redis del beat >/dev/null
	redis lpush "${q}ready" z >/dev/null
	assert_equal "$(claim 4 1000)" 0
	has "${q}ready" z
}

@test "claims: a claim that cannot be counted moves nothing" {
	redis mset beat 1 info x >/dev/null
	redis lpush "${q}ready" a >/dev/null
	assert_regex "$(claim 1 1000)" ^WRONGTYPE
	has "${q}ready" a
	assert_equal "$(redis exists "$u")" 0
}

@test "claims: a claim takes high priorities, then what is ready or due, then low ones" {
	redis set beat 1 >/dev/null
	redis zadd "${q}priority" -3 "$(timed a high)" 3 "$(timed b low)" >/dev/null
	redis zadd "${q}delayed" 1 "$(timed a due)" 9999999999999 "$(timed b later)" >/dev/null
	redis lpush "${q}ready" first >/dev/null
	assert_regex "$(claim 1 1000)" "^[0-9]+ 0 0 high\$"
	assert_regex "$(claim 2 1000)" "^[0-9]+ 0 0 first due\$"
	redis lpush "${q}ready" second >/dev/null
	assert_regex "$(claim 9 1000)" "^[0-9]+ 0 0 second low\$"
	assert_equal "$(redis zcard "${q}delayed")" 1
}

@test "claims: of what is due, a claim copies no more than there is room for" {
	redis set beat 1 >/dev/null
	redis zadd "${q}delayed" 1 "$(timed a aaaaa)" 2 "$(timed b bbbbb)" >/dev/null
	assert_regex "$(claim 9 1000 '' '' '' 4)" "no room to copy"
	assert_equal "$(redis exists "$u")" 0
	assert_equal "$(claim 9 1000 '' '' '' 5)" "0 0 0 aaaaa"
	assert_equal "$(claim 9 1000 '' '' '' 5)" "-1 0 0 bbbbb"
	# Beside others, each goes to ready first, with its 32 bytes.
	redis zadd "${q}delayed" 1 "$(timed a aaaaa)" >/dev/null
	redis lpush "${q}ready" x >/dev/null
	assert_equal "$(claim 9 1000 '' '' '' 36)" "0 0 0 x"
	redis lpush "${q}ready" x >/dev/null
	assert_equal "$(claim 9 1000 '' '' '' 37)" "-1 0 0 x aaaaa"
}

@test "claims: of a shared rate, a claim takes what has gathered" {
	redis set beat 1 >/dev/null
	redis lpush "${q}ready" a b c d e >/dev/null
	local RATE=0.001 BURST=3
	assert_regex "$(claim 2 1000)" "^-1 0 0 a b\$"
	assert_regex "$(claim 9 1000)" "^[0-9]{6} 0 0 c\$"
	assert_regex "$(claim 9 1000)" "^[0-9]{6} 0 0\$"
	# No more gathers than that, however long nobody comes.
	redis hset "${q}rate" us 1 >/dev/null
	assert_regex "$(claim 1 1000)" "^-1 0 0 d\$"
	[[ $(redis hget "${q}rate" tokens) == 2.0* ]]
	[ "$(redis pttl "${q}rate")" -gt 900000 ]
}

# hears NAME: somebody waits under this name.
hears() {
	redis subscribe "mq::wake::$1" >"$T/$1" 3>&- &
	eventually 10 grep -q "^1$" "$T/$1"
}

# about_300_s KEY...
about_300_s() {
	local key
	for key; do
		(($(redis pttl "$key") > 290000 && $(redis pttl "$key") <= 300000)) || return 1
	done
}

@test "claims: one watches, others are idle, and a dead one is replaced after a look" {
	redis set beat 1 >/dev/null
	assert_equal "$(claim 1 99 me own '')" "-1 12 0"
	assert_equal "$(redis exists watch idle)" 0
	assert_equal "$(claim 1 99 me called 1)" "-1 4 0"
	assert_equal "$(redis get watch)" me
	about_300_s watch
	assert_equal "$(claim 1 99 other called 1)" "-1 8 0"
	about_300_s idle
	assert_equal "$(redis get watch) $(redis zrange idle 0 -1)" "me other"
	# A watch is renewed by claims of its own, and not by those that others cause.
	redis pexpire watch 5000 >/dev/null
	claim 1 99 me called 1
	[ "$(redis pttl watch)" -le 5000 ]
	claim 1 99 me own 1
	about_300_s watch
	# Those that nobody hears are dead, and go.
	redis zadd idle 1 gone "$(($(date +%s) * 1000 + 60000))" dead >/dev/null
	assert_equal "$(claim 1 99 other look 1)" "-1 4 0"
	assert_equal "$(redis get watch) $(redis exists idle)" "other 0"
	hears other
	assert_equal "$(claim 1 99 me look 1)" "-1 8 0"
	# Those that have not claimed for half an hour go.
	redis zadd idle "$(($(date +%s) * 1000 - 1805000))" gone \
		"$(($(date +%s) * 1000 - 1790000))" late >/dev/null
	assert_equal "$(claim 1 99 me called 1)" "-1 8 0"
	assert_equal "$(redis zrange idle 0 -1 | xargs)" "late me"
}

@test "claims: who takes a message leaves the watch to the next, or calls others" {
	local since=$(($(date +%s) * 1000 - 60000))
	redis mset beat 1 watch me >/dev/null
	hears b
	hears c
	redis zadd idle $since dead $((since + 1)) b $((since + 2)) c >/dev/null
	redis lpush "${q}ready" x >/dev/null
	assert_equal "$(claim 2 99 me called 1)" "-1 8 0 x"
	assert_equal "$(redis exists watch)" 0
	assert_equal "$(redis zrange idle 0 -1 | xargs)" "c me"
	eventually 10 grep -q idle "$T/b"
	# Without room, for one message one is called; none is left to be called then.
	redis set watch me >/dev/null
	redis lpush "${q}ready" y z >/dev/null
	assert_equal "$(claim 1 99 me called 1)" "-1 0 0 y"
	assert_equal "$(redis exists watch idle)" 0
	eventually 10 grep -q idle "$T/c"
	assert_equal "$(claim 1 99 me called 1)" "-1 12 0 z"
}

@test "claims: who may not say which role it has, has none" {
	redis set beat 1 >/dev/null
	redis acl setuser weak reset on nopass '~*' '&*' +@all -psetex >/dev/null
	assert_equal "$(AS=weak claim 1 99 me called 1)" "-1 0 0"
	assert_equal "$(redis exists watch)" 0
	redis set watch other >/dev/null
	redis acl setuser weak +psetex -zadd >/dev/null
	assert_equal "$(AS=weak claim 1 99 me called 1)" "-1 0 0"
	redis acl setuser weak +zadd >/dev/null
	assert_equal "$(AS=weak claim 1 99 me called 1)" "-1 8 0"
}
