#!/usr/bin/env bats
# topology: own
# Steps of walks through the messages at one place, and of those that move or drop them:
# where they go on when others were there meanwhile, and how far they go.

# shellcheck disable=SC1003

load ../helpers/server
load ../helpers/steps

# walk FROM ANCHOR: at most two of ready behind these.
walk() {
	step walk "${q}ready" "read $1 $2 2 1000 ''"
}

@test "walks: a walk goes on at its anchor, wherever that is now" {
	redis lpush "${q}ready" a b c d e f >/dev/null
	assert_equal "$(walk 0 '""')" "0 2 4 0 a b"
	assert_equal "$(walk 2 b)" "2 2 2 0 c d"
	# Others have taken the oldest.
	redis rpop "${q}ready" >/dev/null
	assert_equal "$(walk 2 b)" "1 2 2 0 c d"
	assert_equal "$(walk 4 d)" "3 2 0 0 e f"
	# They have brought some there.
	redis rpush "${q}ready" z y x >/dev/null
	assert_equal "$(walk 2 b)" "4 2 2 0 c d"
	# It has gone: the walk begins anew.
	assert_equal "$(walk 2 gone)" "0 2 6 0 x y"
	# Of those that are equal, the nearest one to the right.
	redis del "${q}ready" >/dev/null
	redis lpush "${q}ready" a b a b c d >/dev/null
	assert_equal "$(walk 5 b)" "4 2 0 0 c d"
	assert_equal "$(walk 3 b)" "2 2 2 0 a b"
}

# walk_delayed FROM ANCHOR SCORE: at most two of those from 20 on, by the first of their bytes.
walk_delayed() {
	step walk "${q}delayed" "'read 20 +inf' $1 '$3 $2' 2 1000 ''" |
		sed -E 's/(.)\1{30}x/\1:/g'
}

@test "walks: a walk through a set goes on behind its anchor, or behind the score" {
	redis zadd "${q}delayed" 10 "$(timed a A)" 20 "$(timed b B)" 20 "$(timed c C)" \
		30 "$(timed d D)" 30 "$(timed e E)" 40 "$(timed f F)" >/dev/null
	assert_equal "$(walk_delayed 0 '' 0)" "0 2 3 20 c:C b:B 20 c:C 20"
	assert_equal "$(walk_delayed 2 "$(timed c C)" 20)" "2 2 1 30 e:E d:D 30 e:E 30"
	assert_equal "$(walk_delayed 4 "$(timed e E)" 30)" "4 1 0 40 f:F f:F 40"
	# Others took one before it.
	redis zrem "${q}delayed" "$(timed b B)" >/dev/null
	assert_equal "$(walk_delayed 2 "$(timed c C)" 20)" "1 2 1 30 e:E d:D 30 e:E 30"
	# It has gone, or another score: nothing of its score is left out.
	assert_equal "$(walk_delayed 2 "$(timed x X)" 30)" "1 2 1 30 e:E d:D 30 e:E 30"
	assert_equal "$(walk_delayed 2 "$(timed f F)" 30)" "1 2 1 30 e:E d:D 30 e:E 30"
}

@test "walks: of a set, those that are still there are moved, and the walk is behind fewer" {
	local all="${q}delayed $keys $keys rmq::queues"
	redis zadd "${q}delayed" 20 "$(timed b B)" 20 "$(timed c C)" 30 "$(timed d D)" >/dev/null
	assert_regex "$(step walk "$all" \
		"'take 20 +inf' 3 '30 $(timed d D)' move $(timed b B) $(timed x X) $(timed c C)")" \
		"^2 1 [0-9]+ 30 d{31}xD\$"
	has "${q}ready" C B
	assert_equal "$(redis smembers rmq::queues)" q
	assert_regex "$(step walk "$all" "'take 20 +inf' 1 '30 $(timed d D)' vanish $(timed d D)")" \
		"^1 0 [0-9]+\$"
	assert_equal "$(redis zcard "${q}delayed") $(redis llen "${q}ready")" "0 2"
}

@test "walks: of a list, those that are still there are moved, in their order" {
	local all="${q}rejected $keys $keys rmq::queues"
	redis lpush "${q}rejected" a b a c >/dev/null
	assert_regex "$(step walk "$all" "take 3 a move 3 mark a x a")" "^2 1 [0-9]+ b\$"
	has "${q}ready" a a
	has "${q}rejected" c b
	assert_regex "$(step walk "$all" "take 1 b vanish 1 mark b")" "^1 0 [0-9]+\$"
	has "${q}rejected" c
	assert_regex "$(step walk "$all" "take 1 c move 1 mark x")" "^0 1 0 0\$"
	# It changes its mind when the removal is refused.
	redis acl setuser weak on nopass '~*' '&*' +@all -lrem >/dev/null
	assert_regex "$(AS=weak step walk "$all" "take 1 c move 1 mark c")" NOPERM
	has "${q}rejected" c
	has "${q}ready" a a
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
	assert_equal "$(move delayed last 1)" 1
	assert_equal "$(redis zrange "${q}delayed" 0 -1 | cut -c 33- | xargs)" "2 3"
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
}

@test "walks: what cannot be put there stays where it is" {
	local wants
	wants=$(message '"Mq-Priority":["3"]')
	redis set "${q}priority" x >/dev/null
	echo "lpush ${q}rejected $wants" | redis >/dev/null
	echo "zadd ${q}delayed 5 \"$(timed a)${wants#?}" | redis >/dev/null
	assert_regex "$(step walk "${q}rejected $keys $keys rmq::queues" \
		"take 1 $wants move 1 mark $wants")" ^WRONGTYPE
	assert_regex "$(step walk "${q}delayed $keys $keys rmq::queues" \
		"'take 0 9' 1 '5 x' move \"$(timed a)${wants#?}")" ^WRONGTYPE
	assert_regex "$(move rejected move 9 "${q}rejected")" ^WRONGTYPE
	assert_regex "$(move delayed move 9)" ^WRONGTYPE
	assert_equal "$(redis llen "${q}rejected") $(redis zcard "${q}delayed")" "1 1"
	assert_equal "$(redis exists "${q}ready")" 0
	# Nor may one who may not put it there.
	redis del "${q}priority" >/dev/null
	redis acl setuser weak reset on nopass '~*' '&*' +@all -zadd >/dev/null
	assert_regex "$(AS=weak step walk "${q}rejected $keys $keys rmq::queues" \
		"take 1 $wants move 1 mark $wants")" ^NOPERM
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
	# Without one, it comes first.
	redis del "${q}rejected" >/dev/null
	echo "lpush ${q}ready $(message '"A":["1"],"Mq-Expires":["1"]')" | redis >/dev/null
	step census "$keys ${q}rejected" "ready 0 '' '' x"
	assert_equal "$(redis lindex "${q}rejected" 0 | tr -cd ' -~')" \
		'J{"Mq-Error":["expired"],"A":["1"],"Mq-Expires":["1"]}'
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

@test "walks: a walk brings what is behind it to the other end, and home again" {
	redis lpush "${q}ready" a b c d e f >/dev/null
	assert_equal "$(step rotate "${q}ready" "turn 1000 4 c 1")" "0 4"
	assert_equal "$(step rotate "${q}ready" "turn 1000 4 d 4")" "0 4"
	assert_equal "$(step rotate "${q}ready" "turn 1000 4 d 1")" "3 1 a"
	has "${q}ready" c b a f e d
	assert_equal "$(step rotate "${q}ready" "home 2 a")" "2 6"
	assert_equal "$(step rotate "${q}ready" "home 1000 a")" "1 6"
	has "${q}ready" f e d c b a
}
