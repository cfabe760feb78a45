#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Calls of the tools that fail, one after the other: no memory, no process, no
# descriptor; and calls that a signal interrupts.  Whatever it was, no message
# is lost, and no tool dies of a signal.  See fail.c.

load ../helpers/server

setup_file() {
	server_start
	"${CC:-cc}" -O1 -D_GNU_SOURCE -Wall -Wextra -Werror -shared -fPIC \
		-o "$D/fail.so" "$BATS_TEST_DIRNAME/fail.c"
}

setup() {
	case $BUILD in
	*address*) skip "the sanitizer has its own malloc" ;;
	esac
	common_setup
	# hiredis before 1.0 does not look at all that malloc returns.
	crashes=
	pkg-config --atleast-version 1.0 hiredis || crashes='|134|139'
}

# failing WHAT TOOL ARGS...: with these calls failing, an end by itself, and no
# more than two lines.  Sets status.
failing() {
	local what=$1 tool=$2
	shift 2
	status=0
	timeout -k 5 180 env FAIL="$what" \
		LD_PRELOAD="$D/fail.so" "$BUILD/$tool" "$@" \
		>"$T/out" 2>"$T/err" </dev/null 3>&- || status=$?
	echo "# $what $tool $*: $status, $(cat "$T/err")"
}

# ends STATUS...: one of them it was; those of a crash are known.  A node of a
# cluster is left out when there is no memory for it; hiredis, when getaddrinfo(3) has none,
# tries the other family of addresses, and reports that.
ends() {
	if [ "$status" = 69 ] &&
		grep -qi 'node .*\(out of memory\|Address family for hostname\)' "$T/err"; then
		return 0
	fi
	[[ "$(IFS='|'; echo "$*")$crashes" =~ (^|\|)$status(\||$) ]]
}

# queue STATE: q has four raw messages there, and nothing else is.
queue() {
	redis flushall >/dev/null
	redis sadd rmq::queues q >/dev/null
	redis lpush "$1" a b c d >/dev/null
	if [ "$1" = "$unacked" ]; then
		redis sadd rmq::connections dead-x >/dev/null
		redis sadd rmq::connection::dead-x::queues q >/dev/null
		redis sadd 'rmq::connection::dead-x::queue::[q]::consumers' c >/dev/null
	fi
	: >"$T/ran"
}

ready='rmq::queue::[q]::ready'
rejected='rmq::queue::[q]::rejected'
unacked='rmq::connection::dead-x::queue::[q]::unacked'

# All four are in the server, once, or have been run; none is rejected without
# a reason.
all_there() {
	local lists
	lists=$(redis eval 'local all = {}
		for _, k in ipairs(redis.call("KEYS", "*queue::?q?::*")) do
			if redis.call("TYPE", k).ok == "list" then
				for _, m in ipairs(redis.call("LRANGE", k, 0, -1)) do
					all[#all + 1] = m
				end
			end
		end
		return table.concat(all, "\n")' 0 | grep .)
	echo "# there: ${lists//$'\n'/ }; ran: $(tr '\n' ' ' <"$T/ran")"
	[ "$(sort <<<"$lists" | uniq -d)" = "" ]
	[ "$(sort -u - "$T/ran" <<<"$lists" | grep -x '[a-d]' | xargs)" = "a b c d" ]
}

# consumer WHAT OPTION...: two of the messages, by a script that writes down
# what it has had.
consumer() {
	local what=$1
	shift
	queue "$ready"
	case $* in
	*--stream*) set -- -n 2 "$@" q -- \
		sh -c 'while read -r m; do echo $m >>"$T/ran"; echo done >&3; done' ;;
	*) set -- -n 2 "$@" q -- sh -c 'cat >>"$T/ran"; echo >>"$T/ran"' ;;
	esac
	failing "$what" mq-consume "$@"
	all_there
	[ "$(redis llen "$rejected")" = 0 ]
}

# Two of them, each once.
has_run() {
	[ "$(grep -x '[a-d]' "$T/ran" | xargs)" = "a b" ]
}

# --- no memory -----------------------------------------------------------------

@test "failing: no memory for mq-publish: accepted or not, and the status says so" {
	local n fine=0

	# Until ten calls, in a row, were none any more.
	for ((n = 1; fine < 10 && n < 1000; n += 3)); do
		redis flushall >/dev/null
		failing "memory:$n" mq-publish -H 'A: b' q x
		ends 0 75
		((status != 0)) || [ "$(redis llen "$ready")" = 1 ]
		((status != 75)) || [ -s "$T/err" ]
		fine=$((status == 0 && $(stat -c %s "$T/err") == 0 ? fine + 1 : 0))
	done
	((fine == 10))
}

@test "failing: no memory for mq-consume: kept, and never judged by it" {
	for n in $(seq 2 7 380); do
		consumer "memory:$n"
		ends 0 75
	done
	for n in $(seq 60 23 380); do
		for mode in --batch=2 --stream; do
			consumer "memory:$n" $mode
			ends 0 75
		done
	done
}

@test "failing: no memory for the operators" {
	local state statuses args
	for n in $(seq 1 7 110); do
		while read -r state statuses args; do
			queue "${!state}"
			# shellcheck disable=SC2086 # words
			failing "memory:$n" $args
			all_there
			# shellcheck disable=SC2086 # words
			ends ${statuses//,/ }
		done <<-.
			rejected 0,75 mq-return q
			unacked 0,75 mq-clean
			ready 0,75 mq-stats --jsonl --list ready q
			ready 0,75 mq-stats --json
			ready 0,75 mq-lease --for 1m -n 4 q
			ready 0,75 mq-pause q
			ready 0,1,75 mq-purge --force --ready --id 0123456789abcdefghijklmnopqrstuv q
		.
	done
}

# --- no processes, no descriptors --------------------------------------------------

@test "failing: no process, no descriptor, once: tried again, and not an attempt" {
	local modes=(--no-clean --batch=2 --stream) n=0 what
	for what in process:{1,1,1,2} payload:{1,1} descriptor:{1..24..2}; do
		consumer "$what" "${modes[n++ % 3]}" --attempts 1
		[[ $status =~ ^(0|75)$ ]]
		((status == 75)) || has_run
	done
}

@test "failing: no process, no descriptor, for ever: told once, no attempt, no loop" {
	local fork=7 stream=10 what mode

	# Behind those of the connections: it asks a sentinel twice, and listens to it; a
	# cluster has several nodes.
	case ${TOPOLOGY-} in
	sentinel) fork=11 stream=14 ;;
	cluster) fork=16 stream=17 ;;
	esac
	while read -r what mode; do
		queue "$ready"
		FAIL=$what LD_PRELOAD=$D/fail.so "$BUILD/mq-consume" "$mode" \
			--attempts 1 -j 3 q -- true >"$T/out" 2>"$T/err" 3>&- &
		pid=$!
		eventually 10 grep -q 'trying again' "$T/err"
		eventually 10 has_slept 3
		stop_mq
		echo "# $what $mode: $status, $(cat "$T/err")"
		[ "$status" = 143 ]
		# Of a run, and of a look for what is left: each once.
		assert_equal "$(grep 'trying again' "$T/err" | sort | uniq -d)" ""
		assert_equal "$(redis lrange "$ready" 0 -1 | xargs)" "d c b a"
		assert_equal "$(connections)" ""
	done <<-.
		process:1+ --no-clean
		process:1+ --stream
		payload:1+ --batch=2
		descriptor:$fork+ --no-clean
		descriptor:$stream+ --stream
	.
}

# N seconds after its start, of which it has used few hundredths.
has_slept() {
	local stat
	(($(date +%s) - $(stat -c %Y "$T/out") >= $1)) || return 1
	stat=$(<"/proc/$pid/stat")
	# shellcheck disable=SC2086 # its fields
	set -- ${stat##*) }
	((${12} + ${13} < 50))
}

@test "failing: a full disk under --work-dir: tried again, and not an attempt" {
	mkdir "$T/work"
	consumer file:2 --work-dir "$T/work" --attempts 1
	[ "$status" = 0 ]
	has_run
	assert_equal "$(ls -A "$T/work")" ""
	assert_regex "$(cat "$T/err")" "^mq-consume: $T/work/.*: No space left on device"
}

@test "failing: no process for the private server: 75, and the next one has it" {
	export MQ_URL=private:$T/p
	failing process:1 mq-publish q x
	[ "$status" = 75 ]
	assert_equal "$(cat "$T/err")" \
		"mq-publish: redis-server: Resource temporarily unavailable"
	for n in {1..8}; do
		failing "descriptor:$n" mq-publish q x
		[[ $status =~ ^(0|74|75)$ ]]
		((status == 0)) || [ "$(wc -l <"$T/err")" = 1 ]
	done
	run_mq 0 mq-publish q x
	[ "$(redis-cli -s "$T/p/redis.sock" info clients | wc -l)" -gt 1 ]
	redis-cli -s "$T/p/redis.sock" shutdown nosave
}

# --- signals ------------------------------------------------------------------------

@test "failing: each third, or fifth, call is interrupted" {
	for n in 3 5; do
		for mode in --quiet --batch=2 --stream; do
			consumer "signal:*$n" "$mode"
			[ "$status" = 0 ]
			has_run
			assert_equal "$(connections)" ""
		done
		queue "$ready"
		failing "signal:*$n" mq-consume -l -n 4 q
		[ "$status" = 0 ]
		assert_equal "$(xargs <"$T/out")" "a b c d"
		for args in "publish -l q" "publish q e" "stats --json q" "purge --force --all q"; do
			# shellcheck disable=SC2086 # words
			failing "signal:*$n" mq-$args
			[ "$status" = 0 ]
		done
		assert_equal "$(cat "$T/err")" ""
		queue "$unacked"
		failing "signal:*$n" mq-clean
		[ "$status" = 0 ]
		assert_equal "$(redis llen "$ready")" 4
	done
}
