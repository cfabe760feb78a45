#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# layouts: rmq rsmq
# Which of many consumers hears of a message, and what they cost while they wait.

load ../helpers/server
load ../helpers/consume

: "${LAYOUT:=rmq}"

setup() {
	load "../helpers/layout-$LAYOUT"
	export MQ_LAYOUT=$LAYOUT
	common_setup
	pids=()
	# Says which consumer runs which message.
	printf '%s\n' 'read -r x' 'echo "$PPID $x" >>"$T/who"' | script note
	# The same, and stays until $T/go is there.
	script stay <<'S'
read -r x
echo "$PPID $x" >>"$T/who"
until [ -e "$T/go" ]; do sleep 0.05; done
S
	touch "$T/who"
	known q
	known a
}

teardown() {
	kill -CONT "${pids[@]}" 2>/dev/null || true
	common_teardown
}

# All of the fleet end.
dismiss() {
	kill "${pids[@]}"
	wait
	pids=()
}

# of_queue Q NAME: a key of ours.
of_queue() {
	if [ "$LAYOUT" = rmq ]; then
		echo "rmq::queue::[$1]::$2"
	else
		echo "rsmq:$1:X$2"
	fi
}

# fleet N ARGS...: so many consumers, none of which cleans.
fleet() {
	local i n=$1
	shift
	for ((i = 0; i < n; i++)); do
		"$BUILD/mq-consume" --no-clean "$@" >>"$T/out" 2>>"$T/err" 3>&- &
		pids+=($!)
	done
}

watching() {
	redis --raw get "$(of_queue q watch)"
}

# at_rest N [Q]: one is on watch, and so many are idle.
at_rest() {
	[ "$(redis eval 'return redis.call("EXISTS", KEYS[1]) .. " " .. redis.call("ZCARD", KEYS[2])' \
		2 "$(of_queue "${2-q}" watch)" "$(of_queue "${2-q}" idle)")" = "1 $1" ]
}

# fleet_at_rest N ARGS...: and one is on watch, the others are idle.
fleet_at_rest() {
	fleet "$@"
	eventually 20 at_rest $(($1 - 1))
}

pid_of() {
	if [ "$LAYOUT" = rmq ]; then
		redis --raw hget "rmq::connection::$1::info" pid
	else
		redis --raw hget "rsmq::connection:$1" pid
	fi
}

# calls_below N: so few since the last CONFIG RESETSTAT; else says which.
calls_below() {
	(($(calls) < $1)) || {
		redis info commandstats | sort -t= -k2nr | head -20
		return 1
	}
}

# soon N: as many runs, long before a watch lapses, which is after 300 s.
soon() {
	eventually 10 lines_reach "$T/who" "$1"
}

@test "wake: a message wakes one consumer of many" {
	local n
	fleet 20 q -- "$T/note"
	# Each claim looks for a pause.  Those that look from time to time may come between.
	for n in {1..10}; do
		eventually 20 at_rest 19
		redis config resetstat >/dev/null
		run_mq 0 mq-publish q 1
		eventually 10 lines_reach "$T/who" "$n"
		eventually 10 at_rest 19
		(($(calls pttl) > 8)) || return 0
	done
	false
}

@test "wake: messages one after the other go to one consumer after the other" {
	local n
	fleet_at_rest 6 q -- "$T/note"
	for n in 1 2 3 4 5 6; do
		run_mq 0 mq-publish q "$n"
		eventually 10 lines_reach "$T/who" "$n"
		eventually 10 at_rest 5
	done
	(($(busy_ones) >= 4))
}

# How many consumers have run something.
busy_ones() {
	cut -d ' ' -f 1 "$T/who" | sort -u | wc -l
}

@test "wake: many messages at once keep all consumers busy, and so does the end of a pause" {
	fleet_at_rest 20 -j 1 q -- "$T/stay"
	run_mq 0 mq-pause q
	seq 20 | run_mq 0 mq-publish -l q
	eventually 10 at_rest 19
	run_mq 0 mq-pause --resume q
	eventually 5 lines_reach "$T/who" 20
	assert_equal "$(busy_ones)" 20
	touch "$T/go"
	eventually 10 at_rest 19
	rm "$T/go"
	seq 20 | run_mq 0 mq-publish -l q
	eventually 5 lines_reach "$T/who" 40
	assert_equal "$(tail -n 20 "$T/who" | cut -d ' ' -f 1 | sort -u | wc -l)" 20
	touch "$T/go"
}

@test "wake: the consumer on watch is killed, or stopped, or the one that is woken" {
	local signal n=0
	fleet_at_rest 6 q -- "$T/note"
	for signal in KILL STOP; do
		kill -"$signal" "$(pid_of "$(watching)")"
		run_mq 0 mq-publish q "$signal"
		n=$((n + 1))
		soon "$n"
	done
	kill -STOP "$(pid_of "$(redis --raw zrange "$(of_queue q idle)" 0 0)")"
	run_mq 0 mq-publish q woken
	soon 3
	# The watch is in living hands again, for what is delayed, too.
	eventually 10 is_watched
	kill -KILL "$(pid_of "$(watching)")"
	run_mq 0 mq-publish -d 1s q later
	soon 4
	run_mq 0 mq-publish q last
	soon 5
}

@test "wake: many are killed at once, and no message comes" {
	local p n=0
	fleet_at_rest 8 q -- "$T/note"
	for p in "$(pid_of "$(watching)")" "${pids[@]:0:6}"; do
		[ "$p" != "${pids[7]}" ] || continue
		kill -KILL "$p" 2>/dev/null || true
		eventually 10 gone "$p"
	done
	for p in "${pids[@]}"; do
		gone "$p" || n=$((n + 1))
	done
	# Long before a watch lapses, one that lives has it, and no dead one is idle.
	eventually 25 living_at_rest "$((n - 1))"
}

is_watched() {
	local pid
	pid=$(pid_of "$(watching)") && [ -n "$pid" ] && [ -d "/proc/$pid" ]
}

living_at_rest() {
	at_rest "$1" && is_watched
}

@test "wake: who ends leaves the watch to another" {
	local signal first n=0
	fleet_at_rest 4 q -- "$T/note"
	for signal in TERM USR1; do
		first=$(watching)
		kill -"$signal" "$(pid_of "$first")"
		n=$((n + 1))
		eventually 10 at_rest "$((3 - n))"
		[ "$(watching)" != "$first" ]
		run_mq 0 mq-publish q "$n"
		eventually 10 lines_reach "$T/who" "$n"
		eventually 10 at_rest "$((3 - n))"
	done
}

@test "wake: keys that vanish, scripts and connections too" {
	local loss n=0
	fleet_at_rest 3 q -- "$T/note"
	for loss in "del $(of_queue q watch)" "del $(of_queue q idle)" \
		"script flush" "client kill type normal" "client kill type pubsub"; do
		# shellcheck disable=SC2086 # words
		redis $loss >/dev/null || true
		run_mq 0 mq-publish q "$((n += 1))"
		soon "$n"
		eventually 20 at_rest 2
	done
	redis flushall >/dev/null
	known q
	eventually 20 at_rest 2
	run_mq 0 mq-publish q last
	soon "$((n + 1))"
}


@test "wake: consumers that wait are silent" {
	local queues=() i
	fleet_at_rest 10 q -- "$T/note"
	# Until all have looked once.
	eventually 10 eval '(($(calls zcard) > 40))'
	redis config resetstat >/dev/null
	sleep 5
	# One EXISTS a look, and 6 commands every 8 seconds.
	calls_below 200
	dismiss
	for i in {1..200}; do
		known "q$i"
		queues+=("q$i")
	done
	fleet 1 "${queues[@]}" -- "$T/note"
	eventually 20 at_rest 0 q200
	# Until the first look at all of them is over, for three ticks: on a busy machine one
	# may fall between two of them.
	no_claims() {
		local n
		n=$(calls evalsha)
		tick
		tick
		tick
		[ "$(calls evalsha)" = "$n" ]
	}
	eventually 20 no_claims
	redis config resetstat >/dev/null
	sleep 5
	# On a cluster no command looks at many queues: the look at all may come just now.
	if [ "${TOPOLOGY-}" = cluster ]; then
		assert [ "$(calls evalsha)" -le 400 ]
	else
		calls_below 200
	fi
}

@test "wake: a user who may not call others looks once a second" {
	local rules
	read -ra rules < <("$BUILD/mq-consume" --print-acl q | sed 's/&mq::wake::[*]//')
	redis acl setuser old reset on '>pw' "${rules[@]}" >/dev/null
	MQ_URL=$(url_as old:pw) fleet 2 q -- "$T/note"
	eventually 10 eval '[ "$(grep -c "checking for messages once a second" "$T/err")" = 2 ]'
	run_mq 0 mq-publish q 1
	soon 1
	run_mq 0 mq-publish q 2
	soon 2
	assert_equal "$(grep -c 'checking for messages once a second' "$T/err")" 2
	assert_equal "$(redis exists "$(of_queue q watch)" "$(of_queue q idle)")" 0
	# All that is printed is enough for consumers that wake each other.
	dismiss
	read -ra rules < <("$BUILD/mq-consume" --print-acl q)
	redis acl setuser new reset on '>pw' "${rules[@]}" >/dev/null
	redis acl log reset >/dev/null
	MQ_URL=$(url_as new:pw) fleet 3 q -- "$T/note"
	eventually 10 at_rest 2
	run_mq 0 mq-publish q 3
	soon 3
	eventually 10 at_rest 2
	assert_equal "$(redis acl log)" ""
}
