# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The keys of RSMQ for tests of both layouts: see layout-rmq.bash.

load ../helpers/node

export MQ_LAYOUT=rsmq
crash_costs_ahead=1
asks_held=messages
stolen=1

held() {
	redis --raw eval 'local n, q = redis.call, KEYS[1]
		local time = n("TIME")
		local now = math.floor(time[1] * 1000 + time[2] / 1000)
		local at = string.format("%.0f", now)
		local unacked, delayed = 0, 0
		-- Nobody has received it since it was put back.
		local function waits(id)
			local run = n("HMGET", q .. ":Q", id .. ":rc", id .. ":fr")
			return n("HGET", q .. ":Xagain", id) ==
			    (run[1] or "") .. " " .. (run[2] or "")
		end
		for _, id in ipairs(n("ZRANGEBYSCORE", q, "(" .. at, "+inf")) do
			if n("HEXISTS", q .. ":Q", id .. ":rc") == 1 and
			    not waits(id) then
				unacked = unacked + 1
			else
				delayed = delayed + 1
			end
		end
		return n("ZCOUNT", q, "-inf", at) .. " " .. delayed .. " " ..
			unacked .. " " .. n("ZCARD", q .. "-rejected")' 1 "rsmq:$1"
}

connections() {
	local all

	all=$(redis --raw zrange rsmq::connections 0 -1)
	[ -z "$all" ] || printf '%s\n' "$all"
}

heartbeat() {
	local c

	c=$(connections)
	lease_ages "$c"
	eventually 5 lease_is_young "$c"
}

is_live() {
	[ "$(redis exists "rsmq::connection:$1")" = 1 ]
}

holds() {
	redis hlen "rsmq:q:Xheld:$1"
}

held_by_nobody() {
	[ "$(redis keys '*:Xheld:*')" = "" ]
}

lasting() {
	local key

	for key in $(redis keys "*:$1"); do
		[ "$(redis ttl "$key")" != -1 ] || echo "$key"
	done
}

keys_at_rest() {
	printf '%s\n' rsmq:QUEUES rsmq:q:Q rsmq:q:Xcounters
}

reason() {
	local id

	id=$(redis --raw zrange rsmq:q-rejected "$(($1 - 1))" "$(($1 - 1))")
	redis --raw hget rsmq:q-rejected:X "$id" |
		perl -ne '/"Mq-Error":\["((?:[^"\\]++|\\.)*)"/ and print $1'
}

# All that lives as long as the lease ends with it.
expire() {
	redis eval 'local n = redis.call
		local time = n("TIME")
		local now = string.format("%.0f", math.floor(time[1] * 1000 + time[2] / 1000))
		for _, id in ipairs(n("HKEYS", KEYS[2])) do
			n("ZADD", KEYS[1], "XX", now, id)
		end
		n("DEL", KEYS[2], KEYS[3])' 3 rsmq:q "rsmq:q:Xheld:$1" \
		"rsmq::connection:$1" >/dev/null
}

give_away() {
	expire "$1"
	redis zrem rsmq::connections "$1" >/dev/null
}

# Of 30 seconds.
lease_ages() {
	redis expire "rsmq::connection:$1" 15 >/dev/null
}

lease_is_young() {
	ttl_above 25 "rsmq::connection:$1"
}

known() {
	node_create "$1"
}

any_length() {
	node_create "$1" 30 -1
}

peer_sends() {
	local id now

	now=$(now_ms)
	id=$(node_id "$now")
	printf '%s\n' "hset rsmq:q:Q vt 30 delay 0 maxsize 65536" \
		"zadd rsmq:q $now $id" "hset rsmq:q:Q $id $1"
}

peer_takes() {
	local got

	got=$(node_receive q)
	echo "$got" >>"$T/peer"
	cut -d ' ' -f 2 <<<"$got"
}

# Nobody has received them since.
peer_has() {
	local id rc n=0

	while read -r id _ rc; do
		[ "$(redis hget rsmq:q:Q "$id:rc")" = "$rc" ] && n=$((n + 1))
	done <"$T/peer"
	[ "$n" = "$1" ]
}

peer_steals() {
	local id

	for id in $(redis --raw zrange rsmq:q 0 -1); do
		[ "$(redis --raw hget rsmq:q:Q "$id")" != "$1" ] ||
			eventually 5 steals "$id"
	done
}

# A renewal of the lease between the two hides it again.
steals() {
	redis zadd rsmq:q XX 1 "$1" >/dev/null
	node_receive q 600000 | grep -q "^$1 "
}

claims_unseen() {
	local id now

	now=$(now_ms)
	id=$(node_id "$now")
	printf '%s\n' multi "zadd rsmq:q $((now + 30000)) $id" \
		"hset rsmq:q:Q $id $2 $id:rc 1 $id:fr $now" \
		"hset rsmq:q:Xheld:$1 $id 1" exec | redis >/dev/null
}
