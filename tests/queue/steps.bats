#!/usr/bin/env bats
# Steps on the server, each with keys and arguments that programs give only when others
# were faster, or when the server refuses: what is not as expected changes nothing.

# Each test is a subshell of its own.
# shellcheck disable=SC1003,SC2030,SC2031,SC2154

load ../helpers/common
load ../helpers/steps

setup_file() {
	no_cluster "a step has the keys of one server"
	server_start
}

teardown_file() {
	redis config set maxmemory 0 >/dev/null
	server_stop
}

setup() {
	common_setup
	u="rmq::connection::c-111111::queue::[q]::unacked"
}

teardown() {
	redis config set maxmemory 0 >/dev/null
	common_teardown
}

# --- settlements -----------------------------------------------------------------

@test "steps: a window that has other ends is not acked" {
	local script keys_of
	for script in ack finish; do
		keys_of=$([ $script = ack ] || echo "$keys ")$u
		redis del "$u" >/dev/null
		redis lpush "$u" a b c d >/dev/null
		assert_equal "$(step $script "$keys_of" "3 a b")" 0
		assert_equal "$(step $script "$keys_of" "3 b c")" 0
		assert_equal "$(step $script "$keys_of" "5 a d")" 0
		has "$u" d c b a
		assert_equal "$(step $script "$keys_of" "3 a c mark 1 3")" 1
		has "$u" d b
		assert_equal "$(step $script "$keys_of" "2 b d keep 1")" 1
		has "$u" b
		assert_equal "$(step $script "$keys_of" "1 b b")" 1
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
	assert_equal "$(step finish "$keys $u" "3 $(holding 1) $(holding 3) mark 1 3")" 1
	assert_equal "$(redis hkeys "${q}locks" | sort | xargs)" "${groups[1]} kk2"
	assert_equal "$(redis llen "$u")" 1
	assert_equal "$(step finish "$keys $u" "1 $(holding 2) $(holding 2)")" 1
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

# --- walks -------------------------------------------------------------------------

# walk FROM ANCHOR: at most two of ready behind these.
walk() {
	step walk "${q}ready" "read $1 $2 2 1000 ''"
}

@test "steps: a walk goes on at its anchor, wherever that is now" {
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
	step walk_sorted "${q}delayed" "read 20 +inf $1 '$2' $3 2 1000 ''" |
		sed -E 's/(.)\1{30}x/\1:/g'
}

@test "steps: a walk through a set goes on behind its anchor, or behind the score" {
	redis zadd "${q}delayed" 10 "$(timed a A)" 20 "$(timed b B)" 20 "$(timed c C)" \
		30 "$(timed d D)" 30 "$(timed e E)" 40 "$(timed f F)" >/dev/null
	assert_equal "$(walk_delayed 0 '' 0)" "0 2 3 c:C 20 b:B 20 c:C 20"
	assert_equal "$(walk_delayed 2 "$(timed c C)" 20)" "2 2 1 e:E 30 d:D 30 e:E 30"
	assert_equal "$(walk_delayed 4 "$(timed e E)" 30)" "4 1 0 f:F 40 f:F 40"
	# Others took one before it.
	redis zrem "${q}delayed" "$(timed b B)" >/dev/null
	assert_equal "$(walk_delayed 2 "$(timed c C)" 20)" "1 2 1 e:E 30 d:D 30 e:E 30"
	# It has gone, or another score: nothing of its score is left out.
	assert_equal "$(walk_delayed 2 "$(timed x X)" 30)" "1 2 1 e:E 30 d:D 30 e:E 30"
	assert_equal "$(walk_delayed 2 "$(timed f F)" 30)" "1 2 1 e:E 30 d:D 30 e:E 30"
}

@test "steps: of a set, those that are still there are moved, and the walk is behind fewer" {
	local all="${q}delayed $keys $keys rmq::queues"
	redis zadd "${q}delayed" 20 "$(timed b B)" 20 "$(timed c C)" 30 "$(timed d D)" >/dev/null
	assert_regex "$(step walk_sorted "$all" \
		"take 20 +inf 3 $(timed d D) 30 move $(timed b B) $(timed x X) $(timed c C)")" \
		"^2 1 [0-9]+ d{31}xD 30\$"
	has "${q}ready" C B
	assert_equal "$(redis smembers rmq::queues)" q
	assert_regex "$(step walk_sorted "$all" "take 20 +inf 1 $(timed d D) 30 drop $(timed d D)")" \
		"^1 0 [0-9]+  0\$"
	assert_equal "$(redis zcard "${q}delayed") $(redis llen "${q}ready")" "0 2"
}

@test "steps: of a list, those that are still there are moved, in their order" {
	local all="${q}rejected $keys $keys rmq::queues"
	redis lpush "${q}rejected" a b a c >/dev/null
	assert_regex "$(step walk "$all" "take 3 a 3 mark move a x a")" "^2 1 b [0-9]+\$"
	has "${q}ready" a a
	has "${q}rejected" c b
	assert_regex "$(step walk "$all" "take 1 b 1 mark vanish b")" "^1 0  [0-9]+\$"
	has "${q}rejected" c
	assert_regex "$(step walk "$all" "take 1 c 1 mark move x")" "^0 1 0 0\$"
	# It changes its mind when the removal is refused.
	redis acl setuser weak on nopass '~*' '&*' +@all -lrem >/dev/null
	assert_regex "$(AS=weak step walk "$all" "take 1 c 1 mark move c")" NOPERM
	redis acl deluser weak >/dev/null
	has "${q}rejected" c
	has "${q}ready" a a
}

# move FROM HOW MAX [KEY...]: about 1000 bytes.
move() {
	step move "$keys $keys rmq::queues ${*:4}" "$1 $2 $3 1000"
}

@test "steps: the next are moved or dropped, so many, from the end that is theirs" {
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

@test "steps: what cannot be put there stays where it is" {
	local wants
	wants=$(message '"Mq-Priority":["3"]')
	redis set "${q}priority" x >/dev/null
	echo "lpush ${q}rejected $wants" | redis >/dev/null
	echo "zadd ${q}delayed 5 \"$(timed a)${wants#?}" | redis >/dev/null
	assert_regex "$(step walk "${q}rejected $keys $keys rmq::queues" \
		"take 1 $wants 1 mark move $wants")" ^WRONGTYPE
	assert_regex "$(step walk_sorted "${q}delayed $keys $keys rmq::queues" \
		"take 0 9 1 x 5 move \"$(timed a)${wants#?}")" ^WRONGTYPE
	assert_regex "$(move rejected move 9 "${q}rejected")" ^WRONGTYPE
	assert_regex "$(move delayed move 9)" ^WRONGTYPE
	assert_equal "$(redis llen "${q}rejected") $(redis zcard "${q}delayed")" "1 1"
	assert_equal "$(redis exists "${q}ready")" 0
	# Nor may one who may not put it there.
	redis del "${q}priority" >/dev/null
	redis acl setuser weak reset on nopass '~*' '&*' +@all -zadd >/dev/null
	assert_regex "$(AS=weak step walk "${q}rejected $keys $keys rmq::queues" \
		"take 1 $wants 1 mark move $wants")" ^NOPERM
	assert_regex "$(AS=weak move rejected move 9 "${q}rejected")" ^NOPERM
	redis acl deluser weak >/dev/null
	assert_equal "$(redis llen "${q}rejected") $(redis exists "${q}ready" "${q}priority")" "1 0"
}

@test "steps: a walk for late messages says which bounds those have that stay" {
	local id=0123456789abcdef0123456789abcdef now
	now=$(redis eval 'return redis.call("TIME")[1] .. "000"' 0)
	echo "lpush ${q}ready $(message '"Mq-Expires":["'$((now + 70000))'"]') \
		$(message '"Mq-Expires":["'$((now + 60000))'"],"Mq-Until-Tick":["8"]') \
		$(message '"Mq-Until-Tick":["7"]') \
		$(message '"Mq-Id":["'$id'"],"Mq-Key":["k"]') plain" | redis >/dev/null
	assert_regex "$(step check_locks "$keys ${q}rejected" "ready 0 '' 0 x")" \
		"^0 0 0 $((now + 60000)) 7 5 [0-9a-f]{40} $id\$"
	# The bounds of what is unacked are nobody's business, but its locks are.
	redis rename "${q}ready" "$u" >/dev/null
	assert_regex "$(step check_locks "$keys ${q}rejected $u" "unacked 0 '' 0 x")" \
		"^0 0 0   5 [0-9a-f]{40} $id\$"
	redis set "${q}clock" 9 >/dev/null
	assert_regex "$(step check_locks "$keys ${q}rejected $u" "unacked 0 '' 0 x")" "^0 0 0 "
	assert_equal "$(redis llen "$u")" 5
	# The same that are ready are late.
	redis rename "$u" "${q}ready" >/dev/null
	assert_regex "$(step check_locks "$keys ${q}rejected" "ready 0 '' 1 x")" "^0 2 0 $((now + 70000))  5 "
	assert_regex "$(step check_locks "$keys ${q}rejected" "ready 0 '' 0 x")" "^0 2 0 $((now + 70000))  3 "
	assert_equal "$(redis llen "${q}ready") $(redis llen "${q}rejected")" "3 2"
}

@test "steps: the reason of a late message takes the place of an earlier one" {
	local why
	for why in '' a ab 'a]' '\\"]' 'a\\\\' '[\\\\\\"],'; do
		redis del "${q}ready" "${q}rejected" >/dev/null
		echo "lpush ${q}ready $(message '"A":["1"],"Mq-Error":["'"$why"'"],"Mq-Expires":["1"]')" |
			redis >/dev/null
		step check_locks "$keys ${q}rejected" "ready 0 '' '' x"
		assert_equal "$(redis lindex "${q}rejected" 0 | tr -cd ' -~')" \
			'J{"A":["1"],"Mq-Error":["expired"],"Mq-Expires":["1"]}'
	done
	# Without one, it comes first.
	redis del "${q}rejected" >/dev/null
	echo "lpush ${q}ready $(message '"A":["1"],"Mq-Expires":["1"]')" | redis >/dev/null
	step check_locks "$keys ${q}rejected" "ready 0 '' '' x"
	assert_equal "$(redis lindex "${q}rejected" 0 | tr -cd ' -~')" \
		'J{"Mq-Error":["expired"],"A":["1"],"Mq-Expires":["1"]}'
}

@test "steps: the earliest expiry and the lowest last tick are noted, whoever comes later" {
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

# --- claims ------------------------------------------------------------------------

# claim MAX BYTES [NAME WHY TRACKED [SPARE]]: of q; the time is left out.
claim() {
	step claim "$keys $u beat ${q}paused ${q}rate info watch idle" \
		"$1 $2 '${RATE-}' '${BURST-}' q '${3-}' '${4-}' '${5-}' ${6-}" | sed -E 's/ [0-9]{13}\b//'
}

@test "steps: a claim takes the oldest, so many, or about so many bytes" {
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

@test "steps: a claim that cannot be counted moves nothing" {
	redis mset beat 1 info x >/dev/null
	redis lpush "${q}ready" a >/dev/null
	assert_regex "$(claim 1 1000)" ^WRONGTYPE
	has "${q}ready" a
	assert_equal "$(redis exists "$u")" 0
}

@test "steps: a claim takes high priorities, then what is ready or due, then low ones" {
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

@test "steps: of what is due, a claim copies no more than there is room for" {
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

@test "steps: of a shared rate, a claim takes what has gathered" {
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

# about_120_s KEY...
about_120_s() {
	local key
	for key; do
		(($(redis pttl "$key") > 110000 && $(redis pttl "$key") <= 120000)) || return 1
	done
}

@test "steps: one watches, others are idle, and a dead one is replaced after a look" {
	redis set beat 1 >/dev/null
	assert_equal "$(claim 1 99 me own '')" "-1 12 0"
	assert_equal "$(redis exists watch idle)" 0
	assert_equal "$(claim 1 99 me called 1)" "-1 4 0"
	assert_equal "$(redis get watch)" me
	about_120_s watch
	assert_equal "$(claim 1 99 other called 1)" "-1 8 0"
	about_120_s idle
	assert_equal "$(redis get watch) $(redis zrange idle 0 -1)" "me other"
	# A watch is renewed by claims of its own, and not by those that others cause.
	redis pexpire watch 5000 >/dev/null
	claim 1 99 me called 1
	[ "$(redis pttl watch)" -le 5000 ]
	claim 1 99 me own 1
	about_120_s watch
	# Those that nobody hears are dead, and go.
	redis zadd idle 1 gone "$(($(date +%s) * 1000 + 60000))" dead >/dev/null
	assert_equal "$(claim 1 99 other look 1)" "-1 4 0"
	assert_equal "$(redis get watch) $(redis exists idle)" "other 0"
	hears other
	assert_equal "$(claim 1 99 me look 1)" "-1 8 0"
	# Those that have not claimed for eight minutes go.
	redis zadd idle "$(($(date +%s) * 1000 - 485000))" gone \
		"$(($(date +%s) * 1000 - 470000))" late >/dev/null
	assert_equal "$(claim 1 99 me called 1)" "-1 8 0"
	assert_equal "$(redis zrange idle 0 -1 | xargs)" "late me"
}

@test "steps: who takes a message leaves the watch to the next, or calls others" {
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

@test "steps: who may not say which role it has, has none" {
	redis set beat 1 >/dev/null
	redis acl setuser weak reset on nopass '~*' '&*' +@all -psetex >/dev/null
	assert_equal "$(AS=weak claim 1 99 me called 1)" "-1 0 0"
	assert_equal "$(redis exists watch)" 0
	redis set watch other >/dev/null
	redis acl setuser weak +psetex -zadd >/dev/null
	assert_equal "$(AS=weak claim 1 99 me called 1)" "-1 0 0"
	redis acl setuser weak +zadd >/dev/null
	assert_equal "$(AS=weak claim 1 99 me called 1)" "-1 8 0"
	redis acl deluser weak >/dev/null
}

# --- connections -------------------------------------------------------------------

@test "steps: receipts are of so many, each for one message, and while the lease lives" {
	redis rpush "$u" c b b a >/dev/null
	assert_equal "$(step receipts "$u info" 3)" 0
	assert_equal "$(redis exists info)" 0
	redis set beat 1 >/dev/null
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

@test "steps: what nobody lists is listed again, or goes" {
	local all="$u rmq::connections queues"
	assert_equal "$(step adopt "$all" "c q")" 0
	redis lpush "$u" a >/dev/null
	assert_equal "$(step adopt "$all" "c q 1")" 1
	assert_equal "$(redis exists rmq::connections queues)" 0
	assert_equal "$(step adopt "$all" "c q")" 1
	assert_equal "$(redis smembers rmq::connections) $(redis smembers queues)" "c q"
	assert_equal "$(step adopt "$all" "c q")" 0
	redis srem queues q >/dev/null
	assert_equal "$(step adopt "$all" "c q 1")" 1

	redis sadd known k >/dev/null
	redis set key x >/dev/null
	assert_equal "$(step orphan "key known beat" "k connection")" 0
	assert_equal "$(step orphan "key known beat" "o messages")" 0
	redis set beat 1 >/dev/null
	assert_equal "$(step orphan "key known beat" "o connection")" 0
	assert_equal "$(step orphan "key known beat" "o held")" 0
	assert_equal "$(step orphan "key known beat" "o queue 1")" 1
	assert_equal "$(redis exists key)" 1
	assert_equal "$(step orphan "key known beat" "o queue")" 1
	assert_equal "$(redis exists key)" 0
	assert_equal "$(step orphan "$u known beat" "o messages 1")" 2
	assert_equal "$(redis sismember known o)" 0
	assert_equal "$(step orphan "$u known beat" "o messages")" 2
	assert_equal "$(redis sismember known o) $(redis exists "$u")" "1 1"
}

@test "steps: a walk brings what is behind it to the other end, and home again" {
	redis lpush "${q}ready" a b c d e f >/dev/null
	assert_equal "$(step rotate "${q}ready" "turn 1000 4 c 1")" "0 4"
	assert_equal "$(step rotate "${q}ready" "turn 1000 4 d 4")" "0 4"
	assert_equal "$(step rotate "${q}ready" "turn 1000 4 d 1")" "3 1 a"
	has "${q}ready" c b a f e d
	assert_equal "$(step rotate "${q}ready" "home 2 a")" "2 6"
	assert_equal "$(step rotate "${q}ready" "home 1000 a")" "1 6"
	has "${q}ready" f e d c b a
}

# --- one settlement, one publication --------------------------------------------------

# settle HOW ELEMENT MS RECEIPT [KEY...]
settle() {
	step settle "$keys $u rmq::queues ${*:5} beat info" "$1 $2 '' 0 $3 $(timed u '') $4"
}

@test "steps: a receipt is good once, and while its lease lives" {
	redis lpush "$u" a a >/dev/null
	redis hset info receipt:1 x receipt:2 y >/dev/null
	assert_equal "$(settle ack a 0 1)" 0
	redis set beat 1 >/dev/null
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
