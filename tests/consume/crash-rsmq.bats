#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What befalls a consumer in the layout of RSMQ only: anybody can take a message
# from it, and a lease that is over gives its messages to everybody, with no
# cleaner.  The rest is in crash.bats.

load ../helpers/server
load ../helpers/layout-rsmq

setup() {
	common_setup
	# Says which process has the message, and ends as it is told.
	script hold <<'S'
read -r x
echo $$ >>"$T/taken"
until [ -e "$T/go" ]; do sleep 0.02; done
echo "$x" >>"$T/results"
exit "$(cat "$T/go")"
S
}

join_and_take() {
	start_mq mq-consume "$@"
	eventually 10 test -s "$T/taken"
	c=$(connections)
}

# A program that thinks that a minute is over.
node_snatches() {
	redis zadd rsmq:q xx 1 "$(redis --raw zrange rsmq:q 0 0)" >/dev/null
	assert_equal "$(peer_takes)" body
}

@test "crash rsmq: what another program receives while it runs is no more ours, however that ends" {
	local how
	# At first it does not end by itself.
	for how in "" 0 1 75; do
		echo "status $how"
		redis flushall >/dev/null
		rm -f "$T"/{taken,results,go}
		run_mq 0 mq-publish q body
		join_and_take -v q -- "$T/hold"
		[ -z "$how" ] || kill -STOP "$pid"
		node_snatches
		if [ -n "$how" ]; then
			echo "$how" >"$T/go"
			eventually 5 test -s "$T/results"
			kill -CONT "$pid"
		fi
		eventually 5 gone "$(cat "$T/taken")"
		eventually 5 grep -q 'lease lost: another consumer has the message now' "$T/err"
		# The lease of the connection is as good as before.
		assert_equal "$(connections)" "$c"
		[ -n "$how" ] || [ ! -e "$T/results" ]
		stop_mq
		assert peer_has 1
		assert_equal "$(held q)" "0 0 1 0"
		grep -q ' 0 done, 0 rejected, 0 to be tried again, 0 returned, 1 lease lost' "$T/err"
	done
}

@test "crash rsmq: a lease that is over by the clock gives its message to others" {
	node_create q 1
	run_mq 0 mq-publish q body
	join_and_take -v q -- "$T/hold"
	kill -STOP "$pid"
	"$BUILD/mq-consume" -q --no-clean -n 1 -l q >"$T/out2" 3>&-
	assert_equal "$(cat "$T/out2")" body
	echo 0 >"$T/go"
	eventually 5 test -s "$T/results"
	kill -CONT "$pid"
	eventually 5 grep -q "$c: lease lost" "$T/err"
	stop_mq
	assert_equal "$(held q)" "0 0 0 0"
	grep -q ' 0 done, .* 1 lease lost' "$T/err"
}

@test "crash rsmq: a lease that ends although nobody died is no attempt" {
	local i name
	script count <<'S'
read -r x
echo "$x $MQ_ATTEMPT" >>"$T/ran"
until [ -e "$T/go" ]; do sleep 0.02; done
S
	ran() {
		[ "$(sort "$T/ran" 2>/dev/null | xargs)" = "$1" ]
	}
	start_mq mq-consume -j 1 --prefetch 1 q -- "$T/count"
	run_mq 0 mq-publish q a b
	eventually 10 ran "a 1"
	for i in 2 3; do
		# As after a step of the server's clock.
		eventually 10 held_is q "0 0 2 0"
		name=$(connections)
		redis zrem rsmq::connections "$name" >/dev/null
		expire "$name"
		eventually 10 lost "$i"
		eventually 10 ran "$(yes 'a 1' | head -n "$i" | xargs)"
	done
	# Another one that has it by then keeps it, and is charged.
	eventually 10 held_is q "0 0 2 0"
	kill -STOP "$pid"
	expire "$(connections)"
	peer_takes >/dev/null
	kill -CONT "$pid"
	eventually 10 lost 4
	touch "$T/go"
	eventually 10 ran "a 1 a 1 a 1 b 1"
	stop_mq
	assert_equal "$(redis --raw hget rsmq:q:Q "$(redis --raw zrange rsmq:q 0 0):rc")" 2
}

lost() {
	[ "$(grep -c "the heartbeat had expired" "$T/err")" = "$(($1 - 1))" ]
}

@test "crash rsmq: a count of receives beyond all bounds is one past the last attempt" {
	local n id
	for n in 1000000 999999999999999 9223372036854775807 "$(printf '9%.0s' {1..400})"; do
		run_mq 0 mq-publish -i q body
		id=$output
		redis hset rsmq:q:Q "$id:rc" "$n" >/dev/null
		run_mq 0 mq-consume -q --drain --attempts 1000000 q -- touch "$T/ran"
		assert_equal "$(held q)" "0 0 0 1"
		run_mq 0 mq-purge -q --rejected --force q
		# To be printed, a message needs no attempt.
		run_mq 0 mq-publish -i q body
		redis hset rsmq:q:Q "$output:rc" "$n" >/dev/null
		prints body mq-consume --drain q
	done
	assert [ ! -e "$T/ran" ]
}
