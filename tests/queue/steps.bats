#!/usr/bin/env bats
# Steps on the server, each with keys and arguments that programs give only when others
# were faster, or when the server refuses: what is not as expected changes nothing.

# Each test is a subshell of its own.
# shellcheck disable=SC2030,SC2031,SC2154

load ../helpers/common

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
	q='rmq::queue::[q]::'
	keys="${q}ready ${q}priority ${q}delayed ${q}locks ${q}clock ${q}result::"
	u="rmq::connection::c-111111::queue::[q]::unacked"
}

teardown() {
	redis config set maxmemory 0 >/dev/null
	common_teardown
}

# step SCRIPT "KEY..." "ARG...": its reply in one line; arguments are quoted as in
# redis-cli.
step() {
	[ -e "$D/$1" ] || redis script load "$(sh "$root/common/queue/embed.sh" -t \
		"$root/common/queue/rmq/lua/$1.lua")" >"$D/$1"
	redis <<<"evalsha $(<"$D/$1") $(wc -w <<<"$2") $2 $3" | tr '\0\n' '. ' | sed 's/ *$//'
}

# has LIST ELEMENT...: from its left end.
has() {
	assert_equal "$(redis lrange "$1" 0 -1 | xargs)" "${*:2}"
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

# message HEADERS: as in redis-cli.
message() {
	printf '"\\xff\\x00\\xbe\\xbe\\x4a{%s}\\n"' "${1//\"/\\\"}"
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
