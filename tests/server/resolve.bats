#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Servers that are named: looking for their addresses blocks nothing, ends, and
# all of them are tried.  See resolver.c.  With RSMQ, as its lease is shorter.
# topology: own

load ../helpers/server
load ../helpers/layout-rsmq

setup_file() {
	PORT=$(free_ports 1)
	export PORT
	server_start --port "$PORT" --bind 127.0.0.1 -::1
	"${CC:-cc}" -O1 -D_GNU_SOURCE -Wall -Wextra -Werror -shared -fPIC \
		-o "$D/resolver.so" "$BATS_TEST_DIRNAME/resolver.c"
}

setup() {
	common_setup
	export RESOLVER=$T/resolver ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
	named=redis://mq.test:$PORT
	resolver 127.0.0.1
}

# resolver hang | again | full | ADDRESS... [hang]: from now on.
resolver() {
	echo "$*" >"$RESOLVER.new"
	mv "$RESOLVER.new" "$RESOLVER"
}

# by_name STATUS TOOL ARGS...: on the server that is named.
by_name() {
	LD_PRELOAD=$D/resolver.so MQ_URL=$named run_mq "$@"
}

start_by_name() {
	LD_PRELOAD=$D/resolver.so MQ_URL=$named start_mq "$@"
}

says() {
	grep -q "$1" "$T/err"
}

# The connections to the server break, and it can be reached all the same.
cut_off() {
	redis client kill type pubsub >/dev/null
	redis client kill type normal >/dev/null
}

# It writes its pid to $T/pid.PAYLOAD, and ends when there is $T/go.PAYLOAD.
waiting_script() {
	script wait <<-'.'
		n=$(cat)
		echo $$ >"$T/new.$n"
		mv "$T/new.$n" "$T/pid.$n"
		until [ -e "$T/go.$n" ]; do
			perl -e 'select undef, undef, undef, 0.01'
		done
		echo "$n" >>"$T/done"
	.
}

begun() {
	[ -e "$T/pid.$1" ]
}

@test "resolve: each address of a name is tried" {
	local addresses
	for addresses in 127.0.0.1 "127.0.0.2 127.0.0.3 127.0.0.1"; do
		resolver "$addresses"
		by_name 0 mq-publish q x
		by_name 0 mq-consume -n 1 q
		assert_output x
	done
	if grep -q '^0*1 ' /proc/net/if_inet6; then
		for addresses in ::1 "127.0.0.2 ::1" "::1 127.0.0.2"; do
			resolver "$addresses"
			by_name 0 mq-publish q x
			by_name 0 mq-consume -n 1 q -- cat
			assert_output x
		done
	fi
	resolver 127.0.0.2 127.0.0.3
	by_name 69 mq-publish q x
	assert_equal "$stderr" "mq-publish: $named: Connection refused"
	resolver again
	by_name 69 mq-stats
	assert_equal "$stderr" "mq-stats: $named: Temporary failure in name resolution"
	resolver ""
	by_name 69 mq-consume q
	assert_equal "$stderr" "mq-consume: $named: Name or service not known"
}

@test "resolve: a server that refuses is given up at once" {
	local begun=$SECONDS n
	resolver 127.0.0.2 127.0.0.3
	for n in {1..12}; do
		by_name 69 mq-publish q x
	done
	assert [ $((SECONDS - begun)) -lt 5 ]
}

@test "resolve: a node whose name nobody knows is found by its address" {
	local port

	port=$(free_ports 1)
	redis-server --port "$port" --bind 127.0.0.1 --dir "$T" --save '' \
		--cluster-enabled yes --cluster-announce-ip 127.0.0.1 \
		--unixsocket "$T/node.sock" >/dev/null 3>&- &
	pid=$!
	eventually 10 redis-cli -s "$T/node.sock" cluster addslotsrange 0 16383
	redis-cli -s "$T/node.sock" config set cluster-announce-hostname mq.test \
		cluster-preferred-endpoint-type hostname >"$T/told"
	grep -q OK "$T/told" || skip "needs Redis 7 or newer"
	resolver ""
	named="redis-cluster://127.0.0.1:$port?layout=rmq"
	eventually 20 by_name 0 mq-publish -L rmq q x
	by_name 0 mq-consume -L rmq -n 1 q
	assert_output x
	kill "$pid"
}

@test "resolve: a consumer that reconnects tries each, and finds a server that has moved" {
	start_by_name mq-consume -l q
	eventually 10 joined
	run_mq 0 mq-publish q before
	eventually 10 grep -qx before "$T/out"
	resolver 127.0.0.2
	cut_off
	eventually 10 says 'Connection refused; trying again'
	resolver 127.0.0.2 127.0.0.1
	run_mq 0 mq-publish q after
	eventually 20 grep -qx after "$T/out"
	stop_mq TERM 143
	# It had a name all the time.
	run ! says 'lease lost'
	assert_equal "$(grep -c 'trying again' "$T/err")" 1
}

@test "resolve: while it hangs, scripts end and TERM is heard" {
	waiting_script
	run_mq 0 mq-publish q a b
	start_by_name mq-consume -j 2 q -- "$T/wait"
	eventually 10 begun b
	resolver hang
	cut_off
	eventually 10 says 'reconnecting'
	: >"$T/go.a"
	# Not even a zombie is left.
	eventually 10 gone "$(cat "$T/pid.a")"
	kill -TERM "$pid"
	eventually 10 says 'waiting for 1 running message'
	: >"$T/go.b"
	eventually 10 gone "$(cat "$T/pid.b")"
	# What hangs does so for a while.
	resolver 127.0.0.1
	ends_with 143
	held_is q "0 0 0 0"
	assert_equal "$(sort "$T/done" | xargs)" "a b"
}

@test "resolve: while it hangs, --wait ends in time" {
	start_by_name mq-publish -L rmq --wait=8s r x
	eventually 10 blocked
	resolver hang
	cut_off
	ends_with 75
	says 'reconnecting$'
	says '1 of 1 message not ended in time$'
}

blocked() {
	redis info clients | grep -q '^blocked_clients:1'
}

@test "resolve: while it hangs, TERM ends a tool at once" {
	local tool
	resolver hang
	for tool in "publish q x" "consume q" "stats"; do
		rm -f "$RESOLVER.hangs"
		# shellcheck disable=SC2086 # words
		start_by_name mq-$tool
		eventually 10 [ -e "$RESOLVER.hangs" ]
		stop_mq
		assert_equal "$status" 143
		assert_equal "$(cat "$T/err")" ""
	done
}

@test "resolve: while a search for more addresses hangs, tools work, and end" {
	resolver 127.0.0.1 hang
	by_name 0 mq-publish q x
	by_name 0 mq-consume -n 1 -j 2 q -- cat
	assert_output x
	rm -f "$RESOLVER.hangs"
	start_by_name mq-consume q -- cat
	eventually 10 joined
	eventually 10 [ -e "$RESOLVER.hangs" ]
	cut_off
	run_mq 0 mq-publish q y
	eventually 20 grep -qx y "$T/out"
	stop_mq TERM 143
}

@test "resolve: where no search can begin, a tool says so: 75" {
	resolver full
	by_name 75 mq-publish q x
	assert_equal "$stderr" "mq-publish: $named: Resource temporarily unavailable"
}

@test "resolve: while it hangs, a duplicate is refused in time" {
	script dup <<-.
		echo "dup 0-X-$named?queue=other" >&3
		read -r answer <&4
		echo "\$answer" >"$T/answer"
		echo "done" >&3
	.
	run_mq 0 mq-publish q x
	resolver hang
	LD_PRELOAD=$D/resolver.so run_mq 0 mq-consume -n 1 q -- "$T/dup"
	assert_equal "$(cat "$T/answer")" \
		"fail couldn't connect to queue - $named?queue=other: no answer"
}

@test "resolve: when nothing answers, tools end, and scripts before the lease" {
	local c tool pids=()
	waiting_script
	run_mq 0 mq-publish q a b
	start_by_name mq-consume --no-clean q -- "$T/wait"
	eventually 10 begun a
	c=$(connections)
	resolver hang
	cut_off
	eventually 10 says 'reconnecting'
	for tool in "publish q x" "consume -n 1 q" "lease --for 1m --jsonl q" \
		"stats q" "return q" "purge --force --all q" "pause q" "clean"; do
		# shellcheck disable=SC2086 # words
		LD_PRELOAD=$D/resolver.so MQ_URL=$named timeout 100 "$BUILD"/mq-$tool \
			>"$T/${tool%% *}.out" 2>"$T/${#pids[@]}.err" 3>&- &
		pids+=($!)
	done
	eventually 30 says 'lease lost: no heartbeat got through'
	# Nobody can have had the message by then.
	is_live "$c"
	says 'lease lost: others may get the message'
	eventually 10 gone "$(cat "$T/pid.a")"
	for tool in "${!pids[@]}"; do
		status=0
		wait "${pids[tool]}" || status=$?
		cat "$T/$tool.err"
		assert_equal "$status" 69
		assert_equal "$(cut -d ' ' -f 2- "$T/$tool.err")" \
			"$named: its name could not be resolved in time"
	done
	stop_mq TERM 143
	expire "$c"
	run_mq 0 mq-clean
	run_mq 0 mq-consume --drain -l q
	assert_equal "$(sort <<<"$output")" $'a\nb'
}
