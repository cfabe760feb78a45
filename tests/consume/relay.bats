#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The relay of mq-rq.7): each message arrives once at the other server,
# whatever is killed in between: consumers, the script, either server.

load ../helpers/server
load ../helpers/consume

setup_file() {
	server_start "${safe[@]}"
	far_start "${safe[@]}"
}

teardown_file() {
	far_stop
	server_stop
}

setup() {
	common_setup
	far flushall >/dev/null
}

# The command of the relay, out of the manual.
relay_script() {
	sed -n "/^mq-consume .* outbox -- sh -c '\$/,/^\\.Ed/p" "$root/man/mq-rq.7" |
		sed -e '1d' -e '/^\.Ed/d' -e "s/'\$//" -e "s,URL,$far_url," \
			-e 's/QUEUE/inbox/' -e 's/\\e/\\/g'
}

# relay N: the Nth consumer, in the background; its pid in relays[N].
relay() {
	PATH=$BUILD:$PATH "$BUILD/mq-consume" --tag "relay$1" -j 4 --retry-on err \
		--attempts 9999 --backoff 50ms..300ms -q outbox -- sh -c "$(relay_script)" \
		>>"$T/out" 2>>"$T/err" 3>&- &
	relays[$1]=$!
}

# A script of one of the consumers, or what it runs.
a_script() {
	local -a pids
	mapfile -t pids < <(pgrep -P "$1"; pgrep -P "$(pgrep -d , -P "$1")")
	[ ${#pids[@]} -gt 0 ] && echo "${pids[RANDOM % ${#pids[@]}]}"
}

# Kills one thing, and starts it again.
kill_something() {
	local n=$((RANDOM % 2)) p
	case $((RANDOM % 5)) in
	0)
		kill -KILL "${relays[n]}" || true
		wait "${relays[n]}" 2>/dev/null || true
		relay "$n"
		;;
	1 | 2)
		if p=$(a_script "${relays[n]}"); then
			kill -KILL "$p" 2>/dev/null || true
		fi
		;;
	3)
		server_kill
		server_run "${safe[@]}"
		;;
	4)
		p=$(cat "$FAR/far.pid")
		kill -KILL "$p"
		eventually 10 gone "$p"
		far_run
		;;
	esac
}

# What the dead ones had is given back without waiting for a minute; as a service manager
# does, those are started again whose server died before they had joined.
all_there() {
	local n name
	for n in 0 1; do
		! gone "${relays[n]}" || relay "$n"
	done
	for name in $(connections); do
		redis hget "rmq::connection::$name::info" pid >"$T/pid"
		gone "$(cat "$T/pid")" && redis del "rmq::connection::$name::heartbeat" >/dev/null
	done
	timeout -k 5 180 "$BUILD/mq-clean" -q --attempts 9999 || echo "mq-clean: $?"
	held_is outbox "0 0 0 0"
}

stop_relays() {
	kill "${relays[@]}" || true
	eventually 90 gone "${relays[0]}"
	eventually 90 gone "${relays[1]}"
	wait "${relays[@]}" || true
}

@test "relay: each message arrives once, whatever is killed" {
	local round _ count=60
	declare -a relays
	seeded
	[ -n "$(relay_script)" ]
	for ((round = 1; round <= ${ROUNDS:-7}; round++)); do
		echo "round $round"
		seq -f "message $round.%g" "$count" >"$T/sent"
		run_mq 0 mq-publish -l outbox <"$T/sent"
		relay 0
		relay 1
		for _ in {1..8}; do
			read -rt "0.0$((RANDOM % 9 + 1))" <> <(:) || true
			kill_something
		done
		eventually 60 all_there
		stop_relays
		run_mq 0 mq-consume -u "$far_url" --drain -l inbox
		diff <(sort -V <<<"$output") "$T/sent"
		assert_equal "$(far llen 'rmq::queue::[inbox]::ready')" 0
	done
}
