#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# topology: own
# Steps of walks through the messages at one place, and of those that move or drop them:
# where they go on when others were there meanwhile, and how far they go.

# shellcheck disable=SC1003

load ../helpers/server
load ../helpers/steps

# walk FROM ANCHOR: at most two of ready behind these; 9 are left.
walk() {
	step walk "$keys" "ready '2 9 $1 0 0 ' $2 0 2 1000 ''"
}

@test "walks: a walk goes on at its anchor, wherever that is now" {
	redis lpush "${q}ready" a b c d e f >/dev/null
	assert_equal "$(step walk "$keys" "ready '' '' 0 2 1000 ''")" "2 4 2 2 0  0 2 1 1 a b"
	assert_equal "$(step walk "$keys" "ready '' '' 3 2 1000 ''")" "2 1 5 2 0  0 2 1 1 d e"
	assert_equal "$(walk 2 b)" "2 2 4 2 0  0 2 1 1 c d"
	# Others have taken the oldest.
	redis rpop "${q}ready" >/dev/null
	assert_equal "$(walk 2 b)" "2 2 3 2 0  0 2 1 1 c d"
	assert_equal "$(walk 4 d)" "2 0 5 2 0  0 2 1 1 e f"
	# They have brought some there.
	redis rpush "${q}ready" z y x >/dev/null
	assert_equal "$(walk 2 b)" "2 2 6 2 0  0 2 1 1 c d"
	# It has gone: the walk begins anew.
	assert_equal "$(walk 2 gone)" "2 6 2 2 0  0 2 1 1 x y"
	# Of those that are equal, the nearest one to the right.
	redis del "${q}ready" >/dev/null
	redis lpush "${q}ready" a b a b c d >/dev/null
	assert_equal "$(walk 5 b)" "2 0 6 2 0  0 2 1 1 c d"
	assert_equal "$(walk 3 b)" "2 2 4 2 0  0 2 1 1 a b"
	# Of two that were left, no more; and none of what has come since.
	assert_equal "$(step walk "$keys" "ready '2 1 2 0 0 ' b 0 2 1000 ''")" "2 0 3 1 0  0 1 1 1 a"
	assert_equal "$(step walk "$keys" "ready '2 0 2 0 0 ' b 0 2 1000 ''")" "3 0 0 0 0  b 0 0 2"
}

# walk_timed FROM ANCHOR SCORE: at most two of those that are not in line.
walk_timed() {
	step walk "$keys" "line '2 9 $1 0 0 $3' '$2' 0 2 1000 ''" |
		sed -E 's/(.)\1{30}x/\1:/g'
}

@test "walks: a walk through a set goes on behind its anchor, or where that would be" {
	local line=$((1 << 52))
	redis zadd "${q}delayed" 10 "$(timed a A)" 20 "$(timed b B)" 20 "$(timed c C)" \
		30 "$(timed d D)" 30 "$(timed e E)" 40 "$(timed f F)" $line "$(timed g G)" >/dev/null
	assert_equal "$(step walk "$keys" "line '' '' 0 2 1000 ''" | cut -c -26)" "1 0 1 1 0 4503599627370496"
	assert_equal "$(walk_timed 0 '' '')" "2 4 2 2 0 20 0 2 1 2 a:A 10 b:B 20"
	assert_equal "$(walk_timed 3 "$(timed c C)" 20)" "2 1 5 2 0 30 0 2 1 2 d:D 30 e:E 30"
	assert_equal "$(walk_timed 5 "$(timed e E)" 30)" "2 0 6 1 0 40 0 1 0 2 f:F 40"
	# Others took one before it.
	redis zrem "${q}delayed" "$(timed b B)" >/dev/null
	assert_equal "$(walk_timed 3 "$(timed c C)" 20)" "2 1 4 2 0 30 0 2 1 2 d:D 30 e:E 30"
	# It has gone, or another score.
	assert_equal "$(walk_timed 4 "$(timed d A)" 30)" "2 1 4 2 0 30 0 2 1 2 d:D 30 e:E 30"
	assert_equal "$(walk_timed 4 "$(timed f F)" 30)" "2 0 5 1 0 40 0 1 0 2 f:F 40"
}

# chosen PLACE HOW WALK ANCHOR MEMBER...: moves those.
chosen() {
	step move "$keys $keys rmq::queues ${q}rejected" "$1 $2 999 9999 '$3' $4 ${*:5}"
}

@test "walks: of a set, those that are still there are moved" {
	redis zadd "${q}delayed" 20 "$(timed b B)" 20 "$(timed c C)" 30 "$(timed d D)" >/dev/null
	assert_equal "$(chosen delayed move '1 0 3 3 0 30' "$(timed d D)" \
		"$(timed b B)" "$(timed x X)" "$(timed c C)")" "2 3 1 0 3 3 0 30 0"
	has "${q}ready" C B
	assert_equal "$(redis smembers rmq::queues)" q
	assert_equal "$(chosen delayed drop '1 0 3 3 0 30' "$(timed d D)" "$(timed d D)")" "1 1 1 0 1 3 0 30 0"
	assert_equal "$(redis zcard "${q}delayed") $(redis llen "${q}ready")" "0 2"
}

@test "walks: of a list, those that are still there are moved, in their order" {
	redis lpush "${q}rejected" a b a c >/dev/null
	assert_equal "$(chosen rejected move '1 1 3 3 0 ' a a x a)" "2 3 1 1 1 1 0  b"
	has "${q}ready" a a
	has "${q}rejected" c b
	assert_equal "$(chosen rejected drop '1 1 1 1 0 ' b b)" "1 1 1 1 0 0 0"
	has "${q}rejected" c
	assert_equal "$(chosen rejected move '1 0 1 1 0 ' c x)" "0 1 1 0 1 1 0  0"
	# Nothing has changed when the removal is refused.
	redis acl setuser weak on nopass '~*' '&*' +@all -lrem >/dev/null
	assert_regex "$(AS=weak chosen rejected move '1 0 1 1 0 ' c c)" NOPERM
	has "${q}rejected" c
	has "${q}ready" a a
}

@test "walks: a step does what it has time for, and says how far it came" {
	local i wants=()
	for i in {100..299}; do
		wants+=("$(message "\"Mq-Priority\":[\"3\"],\"X\":[\"$i\"]")")
	done
	echo "lpush ${q}rejected ${wants[*]}" | redis >/dev/null
	assert_regex "$(chosen rejected move '1 0 200 200 0 ' "${wants[199]}" "${wants[@]}")" \
		"^154 154 1 0 46 46 0  0"
	assert_equal "$(redis zcard "${q}priority") $(redis llen "${q}rejected")" "154 46"
	assert_regex "$(redis lindex "${q}rejected" -1)" 254
}

# move FROM HOW MAX [KEY...]: about 1000 bytes.
move() {
	step move "$keys $keys rmq::queues ${*:4}" "$1 $2 $3 1000"
}

@test "walks: the next are moved or dropped, so many, from the end that is theirs" {
	redis zadd "${q}delayed" 1 "$(timed a 1)" 2 "$(timed a 2)" 3 "$(timed a 3)" 4 "$(timed a 4)" >/dev/null
	redis zadd "${q}priority" -1 "$(timed a high)" 1 "$(timed a low)" >/dev/null
	redis lpush "${q}ready" plain >/dev/null
	redis lpush rejected r1 r2 r3 >/dev/null
	redis lpush unacked u1 u2 u3 >/dev/null
	assert_equal "$(move delayed move 0) $(move ready move 0) $(move rejected move 0 rejected)" "4 3 3"
	# Somebody may depend on them.
	redis hset "${q}locks" e 1 >/dev/null
	assert_equal "$(move delayed drop 1)" 1
	assert_equal "$(redis zrange "${q}delayed" 0 -1 | cut -c 33- | xargs)" "2 3 4"
	redis zadd "${q}delayed" $((1 << 52)) "$(timed a 5)" >/dev/null
	assert_equal "$(move line purge 1)" 1
	assert_equal "$(redis zrange "${q}delayed" 0 -1 | cut -c 33- | xargs)" "2 3 4"
	assert_equal "$(move delayed move 1) $(move rejected move 2 rejected)" "1 2"
	has "${q}ready" r2 r1 2 plain
	has rejected r3
	# The newest first, to the front; not of a connection that lives.
	redis set beat 1 px 60000 >/dev/null
	assert_equal "$(move unacked move 2 unacked beat)" -1
	redis del beat >/dev/null
	assert_equal "$(move unacked move 2 unacked beat)" 2
	has unacked u1
	has "${q}ready" r2 r1 2 plain u3 u2
	assert_equal "$(move ready drop 2) $(redis zrange "${q}priority" 0 -1 | cut -c 33-)" "2 low"
	has "${q}ready" r2 r1 2 plain u3
	assert_equal "$(move ready drop 9) $(redis exists "${q}ready" "${q}priority")" "6 0"
	redis del "${q}locks" >/dev/null
	assert_equal "$(move delayed purge 1) $(redis exists "${q}delayed")" "2 0"
}

@test "walks: what cannot be put there stays where it is" {
	local wants
	wants=$(message '"Mq-Priority":["3"]')
	redis set "${q}priority" x >/dev/null
	echo "lpush ${q}rejected $wants" | redis >/dev/null
	echo "zadd ${q}delayed 5 \"$(timed a)${wants#?}" | redis >/dev/null
	assert_regex "$(step move "$keys $keys rmq::queues ${q}rejected" \
		"rejected move 9 999 '1 0 1 1 0 ' $wants $wants")" ^WRONGTYPE
	assert_regex "$(step move "$keys $keys rmq::queues" \
		"delayed move 9 999 '1 0 1 1 0 5' x \"$(timed a)${wants#?}")" ^WRONGTYPE
	assert_regex "$(move rejected move 9 "${q}rejected")" ^WRONGTYPE
	assert_regex "$(move delayed move 9)" ^WRONGTYPE
	assert_equal "$(redis llen "${q}rejected") $(redis zcard "${q}delayed")" "1 1"
	assert_equal "$(redis exists "${q}ready")" 0
	# Nor may one who may not put it there.
	redis del "${q}priority" >/dev/null
	redis acl setuser weak reset on nopass '~*' '&*' +@all -zadd >/dev/null
	assert_regex "$(AS=weak step move "$keys $keys rmq::queues ${q}rejected" \
		"rejected move 9 999 '1 0 1 1 0 ' $wants $wants")" ^NOPERM
	assert_regex "$(AS=weak move rejected move 9 "${q}rejected")" ^NOPERM
	assert_equal "$(redis llen "${q}rejected") $(redis exists "${q}ready" "${q}priority")" "1 0"
}

@test "walks: a census notes the bounds of those that stay, and says who may hold something" {
	local id=0123456789abcdef0123456789abcdef now
	now=$(redis eval 'return redis.call("TIME")[1] .. "000"' 0)
	echo "lpush ${q}ready $(message '"Mq-Expires":["'$((now + 70000))'"]') \
		$(message '"Mq-Expires":["'$((now + 60000))'"],"Mq-Until-Tick":["8"]') \
		$(message '"Mq-Until-Tick":["7"]') \
		$(message '"Mq-Id":["'$id'"],"Mq-Key":["k"]') \
		$(message '"Mq-Id":["'${id/0/a}'"],"Mq-Attach":["k"]') plain" | redis >/dev/null
	assert_regex "$(step census "$keys ${q}rejected" "ready 0 '' 1 x")" \
		"^0 0 0 6 [0-9a-f]{40} $id k ${id/0/a}\$"
	assert_equal "$(redis exists "${q}locks")" 0
	step census "$keys ${q}rejected" "ready 0 '' 0 x"
	assert_equal "$(redis hmget "${q}locks" e t | xargs)" "$((now + 60000)) 7"
	redis del "${q}locks" >/dev/null
	# The bounds of what is unacked are nobody's business, but its locks are.
	redis rename "${q}ready" "$u" >/dev/null
	assert_regex "$(step census "$keys ${q}rejected $u" "unacked 0 '' 0 x")" \
		"^0 0 0 6 [0-9a-f]{40} $id k ${id/0/a}\$"
	redis set "${q}clock" 9 >/dev/null
	assert_regex "$(step census "$keys ${q}rejected $u" "unacked 0 '' 0 x")" "^0 0 0 "
	assert_equal "$(redis llen "$u") $(redis exists "${q}locks")" "6 0"
	# The same that are ready are late.
	redis rename "$u" "${q}ready" >/dev/null
	assert_regex "$(step census "$keys ${q}rejected" "ready 0 '' 1 x")" "^0 2 0 6 "
	assert_regex "$(step census "$keys ${q}rejected" "ready 0 '' 0 x")" "^0 2 0 4 "
	assert_equal "$(redis llen "${q}ready") $(redis llen "${q}rejected")" "4 2"
	assert_equal "$(redis hmget "${q}locks" e t | xargs)" "$((now + 70000))"
}

@test "walks: what is in line, or rejected, while nobody holds its group" {
	local id=0123456789abcdef0123456789abcdef
	local group='"Mq-Id":["'$id'"],"Mq-Group":["g"]'
	echo "zadd ${q}delayed 4503599627370501 \"$(timed a)plain\" 5 \"$(timed b)plain\"" | redis >/dev/null
	echo "lpush ${q}rejected $(message "$group")" | redis >/dev/null
	assert_regex "$(step census "$keys ${q}rejected" "delayed 0 '' 0 x")" \
		"^0 0 0 5 b{31}x g0000000000005\$"
	assert_regex "$(step census "$keys ${q}rejected" "rejected 0 '' 0 x")" \
		"^0 0 0 1 [0-9a-f]{40} $id\$"
	assert_equal "$(redis exists "${q}locks")" 0
	# A group with a turn has no value yet.
	assert_equal "$(step repair "$keys" "free 0 g0000000000005 x")" 0
	assert_equal "$(step repair "$keys" "free 1 g0000000000005 ''")" 1
	assert_equal "$(step repair "$keys" "free 0 g0000000000005 ''")" 1
	assert_equal "$(step repair "$keys" "free 0 g0000000000005 ''")" 0
	has "${q}ready" plain
}

@test "walks: the reason of a late message takes the place of an earlier one" {
	local why
	for why in '' a ab 'a]' '\\"]' 'a\\\\' '[\\\\\\"],'; do
		redis del "${q}ready" "${q}rejected" >/dev/null
		echo "lpush ${q}ready $(message '"A":["1"],"Mq-Error":["'"$why"'"],"Mq-Expires":["1"]')" |
			redis >/dev/null
		step census "$keys ${q}rejected" "ready 0 '' '' x"
		assert_equal "$(redis lindex "${q}rejected" 0 | tr -cd ' -~')" \
			'J{"A":["1"],"Mq-Error":["expired"],"Mq-Expires":["1"]}'
	done
	# The names of headers that are written anew are in order.
	redis del "${q}rejected" >/dev/null
	echo "lpush ${q}ready $(message '"A":["1"],"Mq-Expires":["1"]')" | redis >/dev/null
	step census "$keys ${q}rejected" "ready 0 '' '' x"
	assert_equal "$(redis lindex "${q}rejected" 0 | tr -cd ' -~')" \
		'J{"A":["1"],"Mq-Error":["expired"],"Mq-Expires":["1"]}'
	echo "lpush ${q}ready $(message '"A":1,"Mq-Expires":["1"]')" | redis >/dev/null
	step census "$keys ${q}rejected" "ready 0 '' '' x"
	assert_equal "$(redis lindex "${q}rejected" 0 | tr -cd ' -~')" 'J{"A":1,"Mq-Expires":["1"]}'
}

@test "walks: the earliest expiry and the lowest last tick are noted, whoever comes later" {
	local earliest
	run_mq 0 mq-publish -e 2h q a
	run_mq 0 mq-publish -e 1h q b
	earliest=$(redis hget "${q}locks" e)
	assert_equal "$earliest" "$(redis lindex "${q}ready" 0 | header Mq-Expires)"
	run_mq 0 mq-publish -e 3h q c
	assert_equal "$(redis hmget "${q}locks" e t | xargs)" "$earliest"
	run_mq 0 mq-publish --until-tick 8 q d
	run_mq 0 mq-publish --until-tick 5 q e
	run_mq 0 mq-publish --until-tick 6 q f
	assert_equal "$(redis hmget "${q}locks" e t | xargs)" "$earliest 5"
}

@test "walks: what is behind a walk is brought to the other end when it is much, and home again" {
	local from
	redis eval 'for i = 1, 11000 do redis.call("LPUSH", KEYS[1], i) end' 1 "${q}rejected" >/dev/null
	assert_equal "$(chosen rejected drop '1 5 10300 200 0 ' 10300 10250)" "0 0 1 5 9300 200 1  0 1"
	assert_equal "$(redis lindex "${q}rejected" 0) $(redis lindex "${q}rejected" -1)" "1000 1001"
	# Once it has begun, all but the last 1000 go there.
	for from in {9300..1300..-1000}; do
		assert_regex "$(chosen rejected drop "1 5 $from 200 1 " 10300 10250)" \
			"^0 0 1 5 $((from - 1000)) 200 1  0 "
	done
	assert_equal "$(chosen rejected drop '1 5 300 200 1 ' 10300 10250)" "1 1 1 5 299 199 1  0"
	while [ "$(redis lindex "${q}rejected" -1)" != 1 ]; do
		assert_regex "$(chosen rejected home '' 1)" "^[0-9]+ 10999\$"
	done
	assert_equal "$(redis lrange "${q}rejected" 0 -1 | md5sum)" \
		"$(seq 11000 -1 1 | grep -vx 10250 | md5sum)"
}
