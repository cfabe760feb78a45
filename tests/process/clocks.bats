#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Clocks that jump by a day while something waits: ours, not that of the server.
# When that jumps, all leases end at once.

load ../helpers/server

setup() {
	# It has to come first, too, and cannot.
	[[ $BUILD != *address* ]] || skip "not with this sanitizer"
	common_setup
	lib=$(find /usr/lib -name libfaketime.so.1 | head -n 1)
	[ -n "$lib" ]
	jump +0d
}

# What the faked programs believe from now on.
jump() {
	echo "$1" >"$T/clock.new"
	mv "$T/clock.new" "$T/clock"
}

# start_faked TOOL ARGS...: as start_mq, with a clock that jump sets.  The
# steady clocks are the kernel's own, as they are when somebody sets the time.
start_faked() {
	local tool=$1
	shift
	FAKETIME_TIMESTAMP_FILE=$T/clock FAKETIME_NO_CACHE=1 \
		FAKETIME_DONT_FAKE_MONOTONIC=1 DONT_FAKE_MONOTONIC=1 LD_PRELOAD=$lib \
		"$BUILD/$tool" "$@" <"${input:-/dev/null}" \
		>"$T/out" 2>"$T/err" 3>&- 9>&- &
	pid=$!
}

# The ticks of the processor that it has used.
used() {
	local stat
	stat=$(<"/proc/$pid/stat")
	# shellcheck disable=SC2086 # its fields
	set -- ${stat##*) }
	echo $((${12} + ${13}))
}

says() {
	grep -q "$1" "$T/$2"
}

@test "clocks: it is believed" {
	jump -1d
	start_faked mq-consume --log-dir "$T/log" q -- echo ran
	run_mq 0 mq-publish q x
	eventually 10 says '^ran' log/q.log
	assert_regex "$(head -n 1 "$T/log/q.log")" "^--- $(date -d yesterday +%Y-%m-%d)T"
	stop_mq
}

@test "clocks: scripts go on, leases too, and what is due is run" {
	local day beats
	script hold <<'.'
read -r what
echo "$what" >>"$T/began"
until [ -e "$T/go.$what" ]; do perl -e 'select undef, undef, undef, 0.02'; done
echo "$what" >>"$T/ended"
.
	redis sadd rmq::queues q >/dev/null
	start_faked mq-consume -j 2 --timeout 1h --idle 1h --rate 1000/s q -- "$T/hold"
	for day in +1d -1d +0d; do
		touch "$T/go.late$day"
		run_mq 0 mq-publish -d 1500ms q "late$day"
		run_mq 0 mq-publish q "hold$day"
		eventually 10 says "hold$day" began
		jump "$day"
		heartbeat
		heartbeat
		eventually 10 says "late$day" ended
		beats=$(used)
		touch "$T/go.hold$day"
		eventually 10 says "hold$day" ended
		heartbeat
		((beats < 200))
	done
	stop_mq
	[ "$status" = 143 ]
	assert_equal "$(cat "$T/err")" ""
	held_is q "0 0 0 0"
}

@test "clocks: a batch that gathers, and a retry after a while" {
	start_faked mq-consume --batch 10 --batch-wait 2s q -- \
		sh -c 'cat >>"$T/batches"; [ -e "$T/twice" ] || { >"$T/twice"; exit 75; }'
	eventually 10 joined
	run_mq 0 mq-publish q one
	jump -1d
	eventually 10 says one batches
	jump +1d
	eventually 10 held_is q "0 0 0 0"
	assert_equal "$(cat "$T/batches")" $'one\none'
	stop_mq
}

@test "clocks: mq-publish waits as long as it was told, and stamps with the server's time" {
	mkfifo "$T/in"
	exec 9<>"$T/in"
	input=$T/in start_faked mq-publish -i -l -e 1h q
	echo one >&9
	eventually 10 held_is q "1 0 0 0"
	jump -1d
	echo two >&9
	eventually 10 held_is q "2 0 0 0"
	jump +1d
	echo three >&9
	exec 9>&-
	wait "$pid"
	# Their ids say so, in base 36: they are no hour apart.
	[ "$(wc -l <"$T/out")" = 3 ]
	perl -ne 'my $t = 0; $t = $t * 36 + index("0123456789abcdefghijklmnopqrstuvwxyz", $_)
		for split //, substr($_, 0, 10);
		$first //= $t; exit 1 if abs($t - $first) > 3600e6' "$T/out"
	prints $'one\ntwo\nthree' mq-consume -l -n 3 q
	start_faked mq-publish --wait=2s q four
	jump +1d
	ends_within 60
	[ "$status" = 75 ]
}

@test "clocks: those who look" {
	run_mq 0 mq-publish q one
	for day in +1d -1d; do
		jump "$day"
		start_faked mq-stats q
		wait "$pid"
		assert_regex "$(awk 'NR == 2 {print $7}' "$T/out")" '^[0-9]+s$'
	done
	start_faked mq-clean --interval 1s
	jump -1d
	redis zadd "rmq::queue::[q]::delayed" 1 \
		"$(printf '%032d' 7)two" >/dev/null
	eventually 10 held_is q "2 0 0 0"
	stop_mq
}

# consume NAME OPTION...: one of several consumers, with its own errors.
consume() {
	"$BUILD/mq-consume" --prefetch 0 "${@:2}" q -- "$T/hold" \
		>/dev/null 2>"$T/$1.err" 3>&- &
	pids+=($!)
}

lines_are() {
	[ "$(sort "$T/$1" 2>/dev/null)" = "$2" ]
}

# What is left when the server's clock has jumped, or it was stopped for so long.
leases_end() {
	redis eval 'for _, c in ipairs(redis.call("SMEMBERS", "rmq::connections")) do
		redis.call("DEL", "rmq::connection::" .. c .. "::heartbeat") end' 0 >/dev/null
}

ran_again() {
	local name
	for name in "$@"; do
		eventually 10 says 'lease lost' "$name.err"
		: >"$T/$name.err"
	done
}

# have_reported [N]: so many consumers, 2 unless said, have a lease under a new name.
have_reported() {
	[ "$(redis --raw eval 'local n = 0
		for _, c in ipairs(redis.call("SMEMBERS", "rmq::connections")) do
			n = n + redis.call("HEXISTS", "rmq::connection::" .. c .. "::info", "lapsed")
		end
		return n' 0)" -ge "${1:-2}" ]
}

@test "clocks: the server's jumps: only a consumer that really died is charged" {
	no_cluster "there are several clocks"
	local pids=() dead
	script hold <<'.'
read -r what
echo "$what $MQ_ATTEMPT" >>"$T/ran"
until [ -e "$T/go" ]; do perl -e 'select undef, undef, undef, 0.02'; done
.
	consume dead --no-clean
	run_mq 0 mq-publish q dead
	eventually 10 lines_are ran "dead 1"
	dead=$(connections)
	kill -KILL "${pids[0]}"
	wait "${pids[0]}" || true
	# Some time ago.
	redis expire "rmq::connection::$dead::info" 3570 >/dev/null
	# No cleaner comes in the second before anybody has said what happened.
	consume a --no-clean
	consume b --no-clean
	run_mq 0 mq-publish q a b
	eventually 10 lines_are ran $'a 1\nb 1\ndead 1'
	: >"$T/ran"
	leases_end
	ran_again a b
	eventually 10 have_reported
	run_mq 0 mq-clean
	eventually 10 held_is q "1 0 2 0"
	touch "$T/go"
	eventually 10 lines_are ran $'a 1\nb 1\ndead 2'
	eventually 10 held_is q "0 0 0 0"
	# One that is alone on the server.
	rm "$T/go"
	kill -TERM "${pids[1]}"
	wait "${pids[1]}" || true
	: >"$T/ran"
	run_mq 0 mq-publish q alone
	eventually 10 lines_are ran "alone 1"
	leases_end
	ran_again b
	eventually 10 have_reported 1
	run_mq 0 mq-clean
	eventually 10 lines_are ran $'alone 1\nalone 1'
	# And one that dies alone.
	kill -KILL "${pids[2]}"
	wait "${pids[2]}" || true
	leases_end
	touch "$T/go"
	# A consumer that ends may end its own round before that has counted.
	run_mq 0 mq-clean
	run_mq 0 mq-consume --drain q -- "$T/hold"
	eventually 10 lines_are ran $'alone 1\nalone 1\nalone 2'
	assert_equal "$(redis hget 'rmq::queue::[q]::counters' crashed)" 2
}
