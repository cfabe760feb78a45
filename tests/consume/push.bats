#!/usr/bin/env bats
# topologies: cluster
# The verb push: from queue to queue, in one step, until somebody has done it.

load ../helpers/server
load ../helpers/consume

setup() {
	common_setup
	seeded
	echo 'echo push "$(cat)" >&3' | script pushes
}

@test "push: a chain of queues" {
	run_mq 0 mq-publish -i -H 'X-Trace: 7' incoming "the payload"
	id=$output
	run_mq 75 mq-consume -n 1 incoming -- sh -c 'echo resend 0-first >&3'
	assert_equal "$(element incoming ready | header Mq-Attempt)" 1
	run_mq 0 mq-consume -n 1 -v --push push1 incoming -- "$T/pushes"
	assert_regex "$stderr" "incoming: $id: pushed to push1: the payload"
	assert_equal "$(held incoming) $(held push1)" "0 0 0 0 1 0 0 0"
	# It is counted as done here, and as published there, and known at once.
	assert_equal "$(redis hmget 'rmq::queue::[incoming]::counters' runs done failed | xargs)" "2 1"
	assert_equal "$(redis hget 'rmq::queue::[push1]::counters' published)" 1
	assert_equal "$(redis sismember rmq::queues push1)" 1
	run_mq 0 mq-consume -n 1 --push push2 push1 -- "$T/pushes"
	assert_equal "$(held push1) $(held push2)" "0 0 0 0 1 0 0 0"
	# Attempts begin anew, and the rest is as it was.
	assert_regex "$(element push2 ready | tail -c +6 | head -n 1)" \
		"^\{\"Mq-Id\":\[\"$id\"\],\"X-Trace\":\[\"7\"\],\"Mq-Error\":\[\"0-first\"\],\"Mq-History\":\[[^]]*\]\}$"
	# Only a good exit pushes; the last one has none to push to.
	run_mq 75 mq-consume -n 1 --push p --retry-on err --backoff 0s..0s push2 -- \
		sh -c 'echo push x >&3; exit 3'
	run_mq 1 mq-consume -n 1 push2 -- "$T/pushes"
	assert_equal "$(held push2)" "0 0 0 1"
	assert_equal "$(element push2 rejected | header Mq-Error)" "the payload"
	assert_equal "$(element push2 rejected | header Mq-Attempt)" 2
	assert_equal "$(element push2 rejected | tail -n +2)" "the payload"
}

@test "push: a raw message stays raw, byte for byte" {
	printf 'a\0b\n\377c' | run_mq 0 mq-publish --raw q
	run_mq 0 mq-consume -n 1 --push p q -- sh -c 'echo push >&3'
	assert_equal "$(held q) $(held p)" "0 0 0 0 1 0 0 0"
	run_mq 0 mq-consume -n 1 --push p2 p -- sh -c 'echo push >&3'
	# A Go program has it.
	redis rpoplpush 'rmq::queue::[p2]::ready' \
		'rmq::connection::go-123456::queue::[p2]::unacked' >"$T/got"
	printf 'a\0b\n\377c\n' | cmp - "$T/got"
}

@test "push: a full server" {
	run_mq 0 mq-publish q x
	redis config set maxmemory 1 >/dev/null
	run_mq 0 mq-consume -n 1 --push p q -- "$T/pushes"
	redis config set maxmemory 0 >/dev/null
	# On a cluster it waits for the room on the other node.
	[ "${TOPOLOGY-}" != cluster ] || run_mq 0 mq-clean
	assert_equal "$(held q) $(held p)" "0 0 0 0 1 0 0 0"
}

# --- crashes ------------------------------------------------------------------------

# Every payload of $T/want is in exactly one place of all queues, or was
# finished by somebody.
each_in_one_place() {
	redis eval 'local n, out = redis.call, {}
		local function add(e)
			out[#out + 1] = e:match("\n(.*)$") or e
		end
		for _, k in ipairs(n("KEYS", "*")) do
			local t = n("TYPE", k).ok
			if k:find("::ready$") or k:find("::rejected$") or k:find("::unacked$") then
				for _, e in ipairs(n("LRANGE", k, 0, -1)) do add(e) end
			elseif k:find("::delayed$") or k:find("::priority$") then
				for _, e in ipairs(n("ZRANGE", k, 0, -1)) do add(e:sub(33)) end
			end
		end
		return out' 0 | sort >"$T/got"
	cmp "$T/want" "$T/got"
}

# Consumers of three queues in a row, until they are killed.
consume_chain() {
	"$BUILD/mq-consume" -q -j 2 --push push1 incoming -- "$T/s" 2>>"$T/err" &
	"$BUILD/mq-consume" -q -j 2 --push push2 push1 -- "$T/s" 2>>"$T/err" &
	"$BUILD/mq-consume" -q -j 2 --attempts 100000 push2 -- "$T/last" 2>>"$T/err" &
	pids=$(jobs -p)
}

kill_all() {
	# shellcheck disable=SC2086
	kill -KILL $pids
	wait
}

# at_the_end TEST: of so many messages, which wait in the last queue.
at_the_end() {
	test "$(redis zcard 'rmq::queue::[push2]::delayed')" $1
}

write_chain_scripts() {
	# Now and then a retry comes between.
	script s <<'.'
read -r x
case $x$MQ_ATTEMPT in
*71 | *31) echo resend 0 >&3 ;;
*) echo push >&3 ;;
esac
.
	echo 'echo resend 1000 >&3' | script last
}

@test "push: consumers killed at any moment: each message is in one place" {
	local c
	write_chain_scripts
	seq 1000 1299 | tee "$T/want" | run_mq 0 mq-publish -l incoming
	for _ in {1..12}; do
		consume_chain
		eventually 10 eval '[[ "$(held push1) $(held push2)" != "0 0 0 0 0 0 0 0" ]]'
		read -rt "0.0$((RANDOM % 10))" <> <(:) || true
		kill_all
		# On a cluster what is on its way is in two.
		[ "${TOPOLOGY-}" = cluster ] || each_in_one_place
		# What the dead have left is given back.
		for c in $(connections); do
			redis del "rmq::connection::$c::heartbeat" >/dev/null
		done
		run_mq 0 mq-clean
		each_in_one_place
	done
	consume_chain
	eventually 60 at_the_end "= 300"
	kill_all
	each_in_one_place
}

@test "push: a server killed at any moment: each message is in one place" {
	safe_server
	write_chain_scripts
	seq 1000 1199 | tee "$T/want" | run_mq 0 mq-publish -l incoming
	consume_chain
	# A consumer whose server dies before it has joined ends: wait until each has worked.
	eventually 10 at_the_end "-gt 0"
	for _ in {1..12}; do
		read -rt "0.$((RANDOM % 3))$((RANDOM % 10))" <> <(:) || true
		server_kill
		server_run "${safe[@]}"
		[ "${TOPOLOGY-}" = cluster ] || each_in_one_place
	done
	eventually 60 at_the_end "= 200"
	kill_all
	each_in_one_place
}
