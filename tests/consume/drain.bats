#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-consume --drain: its bar on a terminal, and what it waits for.

load ../helpers/server

setup() {
	common_setup
	export TERM=xterm
	# Runs for a third of a second.
	script work <<'.'
n=$(cat)
perl -e 'select undef, undef, undef, 0.3'
case $n in bad*) printf 'no\033[5m such\n' >&2; exit 1 ;; esac
.
}

# on_terminal COLUMNS COMMAND...: there, and it ends with $ends (0).  What the terminal got is
# in $T/seen, as a line for each carriage return, with "^[" for an escape.
on_terminal() {
	PYTHONPATH=$root/tests/helpers PYTHONDONTWRITEBYTECODE=1 python3 -c '
from wire import *
on_terminal("", sys.argv[2:], int(sys.argv[1]))' "$@" >"$T/raw" || [ $? = "${ends-0}" ]
	sed 's/\x1b/^[/g' "$T/raw" | tr '\r' '\n' >"$T/seen"
}

# drains COLUMNS ARGUMENT...: mq-consume on such a terminal.
drains() {
	on_terminal "$1" "$BUILD/mq-consume" "${@:2}"
}

seen() {
	grep -qE -e "$1" "$T/seen"
}

@test "drain: a bar has done, rejected, rate and time left, and fits" {
	local n
	"$BUILD/mq-publish" -q q 1 2 bad 4 5 6 7 8 9
	ends=1 drains 80 --drain q -- "$T/work"
	seen '^[0-9]+% [0-9]+ done, [01] rejected, [0-9.]+/(s|min), [0-9]+s left \[#+\.+\]\^\[\[K$'
	seen '^[0-9]+% [0-9]+ done, 1 rejected'
	# With a column to spare.
	awk '{sub(/\^\[\[K$/, "")} length > 79 && !/^(\^\[\[K)?mq-consume/ {exit 1}' "$T/seen"
	# At the end it is gone.
	assert_equal "$(tail -n 1 "$T/seen")" "^[[K"
	for n in 40 20 1; do
		"$BUILD/mq-publish" -q q 1 2 3 4
		drains "$n" --drain q -- "$T/work"
		awk -v n="$n" '{sub(/\^\[\[K$/, "")} length > n - 1 && length > 0 {exit 1}' "$T/seen"
		[ "$n" = 1 ] || seen '[0-9] done'
	done
}

@test "drain: lines begin where there is no bar any more" {
	# Unless the machine is too busy, the bar comes back between the script's line and ours.
	script slow <<'.'
"$T/work" || { perl -e 'select undef, undef, undef, 0.6'; exit 1; }
.
	"$BUILD/mq-publish" -q q 1 2 3 bad 4 5
	ends=1 drains 80 --drain q -- "$T/slow"
	seen '^\^\[\[Kno\^\[\[5m such$'
	seen '^(\^\[\[K)?mq-consume: q: .*: rejected: no'
	run -1 awk 'bar && /^mq-consume/ {found = 1}
		{bar = /done.*\^\[\[K$/} END {exit !found}' "$T/seen"
}

@test "drain: a script's line without an end is not drawn over" {
	"$BUILD/mq-publish" -q q 1
	drains 80 --drain q -- perl -e '$| = 1; print STDERR "part";
		select undef, undef, undef, 1.5; print STDERR " whole\n"; select undef, undef, undef, 0.8'
	assert_equal "$(grep -n 'part' "$T/seen" | head -n 1)" \
		"$(grep -n 'part whole$' "$T/seen")"
	seen 'done'
}

@test "drain: no bar on a dumb terminal, with -q, without --drain, for a short run" {
	local how
	for how in 'dumb --drain' ' --drain' 'xterm -q --drain' 'xterm -n 4'; do
		"$BUILD/mq-publish" -q q 1 2 bad 4
		# shellcheck disable=SC2086 # options
		TERM=${how%% *} ends=1 drains 80 ${how#* } q -- sh -c 'exec "$T/work" 2>/dev/null'
		assert_equal "$how: $(grep -v ': rejected: ' "$T/raw")" "$how: "
	done
}

@test "drain: payloads on the terminal are not drawn over; a pipe leaves room for the bar" {
	"$BUILD/mq-publish" -q q 1 2 3 4
	drains 80 --drain --rate 2/s q
	run -1 grep done "$T/seen"
	"$BUILD/mq-publish" -q q 1 2 3 4
	on_terminal 80 /bin/sh -c '"$1" --drain --rate 2/s q >"$2"' . "$BUILD/mq-consume" "$T/out"
	seen '[0-9] done'
	assert_equal "$(cat "$T/out")" 1234
	# Nothing of it off a terminal.
	"$BUILD/mq-publish" -q q 1 2 3 4
	run_mq 0 mq-consume --drain q -- "$T/work"
	assert_equal "$output$stderr" ""
}

# A consumer with a message, whose connection is in $name.
holder() {
	"$BUILD/mq-publish" -q q "$1"
	start_mq mq-consume --tag "$1" -n 1 q -- sh -c 'touch "$T/has.$(cat)"; exec sleep 1000'
	eventually 20 test -e "$T/has.$1"
	name=$(connections | grep "^$1-")
}

said() {
	grep -qxE -e "$1" "$T/said"
}

@test "drain: says whose lease it waits for, and how long" {
	local dead drain
	no_cluster "heartbeats of plain keys"
	holder live
	holder dead
	dead=$name
	stop_mq KILL
	# As if that was on another host.
	redis hdel "rmq::connection::$dead::info" process >/dev/null
	"$BUILD/mq-consume" --drain q -- true 2>"$T/said" 3>&- &
	drain=$!
	eventually 30 said "mq-consume: waiting for 1 message at $dead on $(hostname): that consumer does not renew its lease, which ends in [0-9]+s"
	redis del "rmq::connection::$dead::heartbeat" >/dev/null
	eventually 30 said "mq-consume: waiting for 1 message at $dead on $(hostname): the lease of that consumer is over; the next round of cleaning is within a minute"
	# Each is said once, and nothing of one that works.
	run -1 grep live "$T/said"
	assert_equal "$(grep -c waiting "$T/said")" 2
	kill -KILL "$drain"
}

@test "drain: a lease that is over is said at once; -q does not" {
	local dead loud quiet
	no_cluster "heartbeats of plain keys"
	holder dead
	dead=$name
	stop_mq KILL
	redis del "rmq::connection::$dead::heartbeat" >/dev/null
	"$BUILD/mq-consume" -q --drain --no-clean q -- true 2>"$T/quiet" 3>&- &
	quiet=$!
	"$BUILD/mq-consume" --drain --no-clean q -- true 2>"$T/said" 3>&- &
	loud=$!
	eventually 30 said "mq-consume: waiting for 1 message at $dead on $(hostname): the lease of that consumer is over; run mq-clean"
	assert_equal "$(cat "$T/quiet")" ""
	# Both end when it has.
	"$BUILD/mq-clean" -q
	wait "$loud" "$quiet"
	held_is q "0 0 0 0"
}
