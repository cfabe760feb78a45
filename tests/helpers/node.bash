# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What programs of RSMQ do, with the commands that npm rsmq sends, as MONITOR
# shows them; on a cluster, as one sends them that does not pass times as keys, which
# it would refuse.
#
#   now_ms                  the time, which is the server's
#   node_id MS              an id of a message sent then
#   node_create Q [VT [MAXSIZE]]
#   node_send Q BODY [AGE_MS [DELAY_MS]]
#                           prints the id
#   node_receive Q [VT_MS]  prints the id, the body, and how often
#   node_delete Q ID

now_ms() {
	local us=${EPOCHREALTIME/[.,]/}
	echo "${us%???}"
}

node_id() {
	local us=$(($1 * 1000 + RANDOM % 1000)) id='' digits=0123456789abcdefghijklmnopqrstuvwxyz
	while ((us > 0)); do
		id=${digits:us % 36:1}$id
		us=$((us / 36))
	done
	while ((${#id} < 32)); do
		id+=${digits:RANDOM % 36:1}
	done
	echo "$id"
}

node_create() {
	local s
	s=$(($(now_ms) / 1000))
	printf '%s\n' multi "hsetnx rsmq:$1:Q vt ${2:-30}" \
		"hsetnx rsmq:$1:Q delay 0" \
		"hsetnx rsmq:$1:Q maxsize ${3:-65536}" \
		"hsetnx rsmq:$1:Q created $s" "hsetnx rsmq:$1:Q modified $s" exec \
		"sadd rsmq:QUEUES $1" | redis >/dev/null
}

node_send() {
	local at id
	at=$(($(now_ms) - ${3:-0}))
	id=$(node_id "$at")
	printf '%s\n' multi "zadd rsmq:$1 $((at + ${4:-0})) $id" \
		"hset rsmq:$1:Q $id \"$2\"" "hincrby rsmq:$1:Q totalsent 1" exec |
		redis >/dev/null
	echo "$id"
}

node_receive() {
	local keys=3 now
	now=$(now_ms)
	[ "${TOPOLOGY-}" != cluster ] || keys=1
	redis --raw eval 'if #KEYS == 1 then
			KEYS[2], KEYS[3] = ARGV[1], ARGV[2]
		end
		local msg = redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", KEYS[2], "LIMIT", "0", "1")
		if #msg == 0 then
			return {}
		end
		redis.call("ZADD", KEYS[1], KEYS[3], msg[1])
		redis.call("HINCRBY", KEYS[1] .. ":Q", "totalrecv", 1)
		local mbody = redis.call("HGET", KEYS[1] .. ":Q", msg[1])
		local rc = redis.call("HINCRBY", KEYS[1] .. ":Q", msg[1] .. ":rc", 1)
		if rc==1 then
			redis.call("HSET", KEYS[1] .. ":Q", msg[1] .. ":fr", KEYS[2])
		end
		return {msg[1], mbody, rc}' "$keys" "rsmq:$1" "$now" $((now + ${2:-30000})) | paste -sd' '
}

node_delete() {
	printf '%s\n' multi "zrem rsmq:$1 $2" "hdel rsmq:$1:Q $2 $2:rc $2:fr" exec |
		redis >/dev/null
}
