#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What programs may rely on, as "Versions" in mq-production(7) promises it: the members of JSON,
# metrics, options and exit statuses of this version are those that the file interface lists.
# topology: own

# Words of scripts, and members whose names the shell knows.
# shellcheck disable=SC1010,SC2001,SC2013,SC2016,SC2154
load ../helpers/server
load ../helpers/cluster
load ../stats/go

setup_file() {
	server_start
	export FILE_D=$D
	cluster_start
	T=$(own_dir)
	export T
	of_queues
	of_messages
	of_ends
	of_tools
	of_rsmq
	of_private
	of_cluster
	of_spool
	rm -rf "$T"
}

teardown_file() {
	cluster_stop
	server_stop
}

# shows COMMAND TOOL ARGS...: notes each line of JSON that the tool prints.
shows() {
	local label=$1
	shift
	run_mq 0/1/69/76 "$@"
	sed "s/^/$label\t/" <<<"$output" >>"$D/json"
}

measures() {
	run_mq 0/69/76 mq-stats --prometheus "$@"
	[ -n "$output" ]
	cat <<<"$output" >>"$D/metrics"
}

queues() {
	shows "mq-stats --json" mq-stats --json --connections "$@"
	measures "$@"
}

# What is known of queues, connections and the server.
of_queues() {
	local q="rmq::queue::[jobs]"
	redis hset "$q::counters" published 9 runs 8 done 7 failed 1 expired 1 retried 1 crashed 1 \
		lease_lost 1 replaced 1 dropped 1 run_ms 99 run_0 1 run_15 1 now_s "$(date +%s)" \
		now_in 0 now_out 0 then_s 1 done_s 1 >/dev/null
	run_mq 0 mq-publish -q jobs ready rejected
	run_mq 0 mq-publish -q -d 1h jobs later
	run_mq 0 mq-publish --tick 5 jobs
	run_mq 0 mq-set jobs slots-shared=4
	run_mq 1 mq-consume -q -n 1 jobs -- sh -c 'echo "no disk" >&2; exit 3'
	run_mq 0 mq-pause -q --for 1h jobs
	run_mq 0 mq-pause -q --for 1h --all
	shows "mq-clean --json" mq-clean --json
	redis set 'rmq::queue::[wrong]::ready' x >/dev/null
	go_open wrong $'odd\xff'
	go_consume idle wrong c
	# Names and keys that only Go programs find.
	printf '%s\n' 'SADD rmq::queues "a\x00b"' 'SADD rmq::connections "c\x00"' \
		'SADD rmq::connection::gone::queues audit' 'SADD rmq::connections gone' \
		'LPUSH rmq::connection::gone::queue::{audit}::unacked x' | redis >/dev/null
	queues
	queues jobs
	run_mq 0 mq-pause -q --resume --all
	run_mq 0 mq-pause -q --resume jobs
	shows "mq-stats --server --json" mq-stats --server --json
	shows "mq-stats --reasons --json" mq-stats --reasons --json jobs
	redis del 'rmq::queue::[wrong]::ready' >/dev/null
}

# shows_each STATE QUEUE: the list of its messages, and each message by itself.
shows_each() {
	shows "mq-stats --list --json" mq-stats --list "$@" --jsonl
	for id in $(jq -r .id <<<"$output"); do
		shows "mq-stats --id --json" mq-stats --id "$id" --json
	done
}

# Messages with all that they can have, in each state.
of_messages() {
	local id all=(-p 1 -e 1d --timeout 1h --attempts 3 -H 'X-A: 1')
	run_mq 0 mq-publish -q "${all[@]}" -g g -k k --unique 1h w $'\xff'
	run_mq 0 mq-publish -q -g g w turn
	run_mq 0 mq-publish -q --from-tick 6 --until-tick 9 w tick
	run_mq 0 mq-publish -q -d 1h w time
	run_mq 0 mq-publish -q --batch b w member
	run_mq 0 mq-publish -q --after b --after-ok --to x w follower
	shows "mq-stats --batch --json" mq-stats --batch b --json w
	for state in ready delayed; do
		shows_each "$state" w
	done
	shows_each rejected jobs
	script work <<-'END'
		echo "run 50% half" >&3
		sleep 1000
	END
	start_mq mq-consume -q --grace 0s w -- "$T/work"
	eventually 30 says_half
	shows "mq-stats --running --json" mq-stats --running --json
	queues w
	shows_each unacked w
	stop_mq
}

says_half() {
	"$BUILD/mq-stats" --running | grep -q half
}

# How messages end: what is kept of them, what their publishers get, and notices.
of_ends() {
	run_mq 0 mq-publish -q ends "done" signal push status
	run_mq 1 mq-consume -q --drain --attempts 1 --keep 1h --result stdout:4 --notify notices \
		--push next ends -- sh -c 'read -r what; echo "$what said"; sleep 0.01
			case $what in
			signal) kill -KILL $$ ;;
			push) echo push >&3 ;;
			status) echo why >&2; exit 3 ;;
			esac'
	run_mq 0 mq-publish -q ends bytes
	run_mq 0 mq-consume -q --drain --keep 1h --result stdout ends -- printf '\377'
	shows "mq-stats --list ended --json" mq-stats --list ended --jsonl ends
	for id in $(jq -r .id <<<"$output"); do
		shows "mq-stats --id --json" mq-stats --id "$id" --json
	done
	run_mq 0 mq-consume --drain -l notices
	sed 's/^/mq-consume --notify\t/' <<<"$output" >>"$D/json"
	start_mq mq-consume -q -n 2 --attempts 1 --result stdout:1 waited -- sh -c '
		read -r what; sleep 0.01
		case $what in
		"done") echo text ;;
		signal) printf "\377\377"; kill -KILL $$ ;;
		esac'
	shows "mq-publish --wait --jsonl" mq-publish -q --wait --jsonl waited <<-'END'
		{"payload": "done"}
		{"payload": "signal"}
	END
	ends_within 30
}

# sets QUEUE [SCRIPT]: each setting of which --help has an example, to a value that it can have.
sets() {
	local name value
	for name in $("$BUILD/mq-set" --help | sed "${2-}" | grep -oE '(^|  | )[a-z][a-z-]*=[A-Z]' | tr -d ' =A-Z') retry-on; do
		for value in 1 2048 1h 1/s 1s..1h err; do
			! "$BUILD/mq-set" -q --new "$1" "$name=$value" 2>/dev/null || continue 2
		done
		fail "$name: no value"
	done
	shows "mq-set --json" mq-set --json "$1"
}

# What the tools take and change.
of_tools() {
	local id name
	run_mq 0 mq-publish -q t a b $'\xff'
	run_mq 0 mq-publish -q -d 1h t later
	shows mq-lease mq-lease --for 1m -n 3 t
	shows "mq-return --json" mq-return --json --from delayed t
	shows "mq-return --json" mq-return --json --from ready --priority 3 t
	shows "mq-return --json" mq-return --json --from ready --clone t
	shows "mq-purge --json" mq-purge --json --force --all t
	run_mq 0 mq-publish -q -H 'X-A: 1' t a $'\xff'
	shows "mq-consume --jsonl" mq-consume -q --drain --jsonl t
	start_mq mq-consume -q --grace 0s t -- sleep 1000
	id=$("$BUILD/mq-publish" -i t x)
	eventually 30 "$BUILD/mq-stats" --running t
	shows "mq-purge --json" mq-purge --json --force --running --id "$id" t
	stop_mq
	sets s '/^With -L/d'
}

# rsmq: what only its queues have.
of_rsmq() {
	local MQ_LAYOUT=rsmq
	export MQ_LAYOUT
	run_mq 0 mq-publish -q r "$(printf %01025d 1)"
	queues r
	run_mq 0 mq-publish -q --maxsize 1024 short x
	shows "mq-return --json" mq-return --json --from ready --to short r
	sets r '/^With -L/!d'
}

# The user's private server, whose disk the tools know.
of_private() {
	local MQ_URL=private:$T/private
	export MQ_URL
	run_mq 0 mq-publish -q p x
	shows "mq-stats --server --json" mq-stats --server --json
	redis-cli -s "$T/private/redis.sock" shutdown nosave
}

# A server that is away.
of_spool() {
	local MQ_URL=unix://$T/nowhere XDG_STATE_HOME=$T/state
	export MQ_URL XDG_STATE_HOME
	run_mq 0 mq-publish -q --spool q x
	run_mq 69 mq-publish --flush
	shows "mq-stats --spool --json" mq-stats --spool --json
}

# A cluster: where queues are, what is on the way between them, and a node that is lost.
of_cluster() {
	local MQ_URL=$CLUSTER_URL
	export MQ_URL
	run_mq 0 mq-publish -q q x
	go_connection c q
	alive c
	cluster hset 'rmq::queue::{q}::outgoing' "$(printf %038d 1) push other" x >/dev/null
	queues
	shows "mq-clean --json" mq-clean --json
	node_kill "$(other_than "$(owner_of_key rmq::queues)")"
	queues
}

@test "interface: JSON" {
	same json <"$D/json"
}

@test "interface: metrics" {
	same metric <"$D/metrics"
}

@test "interface: options" {
	for tool in "$BUILD"/mq-*; do
		echo "${tool##*/}"
		"$tool" --help=all
	done | same option
}

@test "interface: exit statuses" {
	same status <"$root/common/base/exit.h"
}

@test "interface: each member and metric is on a page; versions are in NEWS" {
	local version
	sed -nE 's/^json [^:]*: (.*[].])?([a-z_-]+)(\[\])* .*/\2/p; s/^metric ([a-z_]+) .*/\1/p' \
		"$root/tests/house/interface" | sort -u >"$T/words"
	[ "$(wc -l <"$T/words")" -gt 150 ]
	run comm -23 "$T/words" <(cat "$root"/man/*.[17] | grep -oE '[A-Za-z0-9_-]+' | sort -u)
	assert_output ""
	for version in $(sed -n 's/^\[\(.*\)\]$/\1/p' "$root/tests/house/interface"); do
		grep -qxF "$version" "$root/NEWS"
	done
}

same() {
	run python3 "$root/tests/house/interface.py" "$root/tests/house/interface" \
		"$(sed -n 's/^VERSION[[:space:]]*= *//p' "$root/Makefile")" "$1"
	assert_output ""
	assert_success
}
