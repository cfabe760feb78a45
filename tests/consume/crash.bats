#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Crashes: of the consumer, of the server, of the connection between them, at
# any moment.  What was accepted is processed, and what runs twice is bounded
# by what was in flight.
#
# layouts: rmq rsmq

load ../helpers/server
load ../helpers/consume
load "../helpers/layout-${LAYOUT:-rmq}"

setup() {
	common_setup
	seeded
	: >"$T/results"
	: >"$T/taken"
	# note: one line for each message, in one write.
	printf '%s\n' 'read -r x' 'echo "$x" >>"$T/results"' | script note
	# hold: says that it has the message, goes on only when told to, and
	# ends as told.
	script hold <<'.'
read -r x
echo $$ >>"$T/taken"
until [ -s "$T/go" ]; do sleep 0.02; done
echo "$x" >>"$T/results"
read -r status <"$T/go"
exit "$status"
.
}

teardown() {
	if [ "$D" != "$FILE_D" ]; then
		server_pid | xargs kill -CONT 2>/dev/null || true
		server_stop
	else
		redis config set min-replicas-to-write 0 >/dev/null
	fi
	common_teardown
}

# For the next row of a test.
begin_anew() {
	redis flushall >/dev/null
	: >"$T/results"
	: >"$T/taken"
	rm -f "$T/go"
}

results() {
	lines_of "$T/results"
}

await_consumer() {
	eventually 10 joined
	c=$(connections)
}

live_connection() {
	local c
	for c in $(connections); do
		if is_live "$c"; then
			echo "$c"
		fi
	done
}

# The one live connection is another than $1.
has_new_name() {
	local now
	now=$(live_connection)
	[ -n "$now" ] && [ "$now" != "$1" ]
}

# each_once FILE: $T/results has every line of FILE, and no line twice.
each_once() {
	sort "$1" >"$T/want"
	sort "$T/results" >"$T/got"
	echo "lost: $(comm -23 "$T/want" <(uniq "$T/got") | wc -l)," \
		"twice: $(uniq -d "$T/got" | wc -l)"
	cmp "$T/want" "$T/got"
}

join_and_take() {
	start_mq mq-consume "$@"
	eventually 10 lines_reach "$T/taken" 1
	c=$(connections)
}

# The only message.
take_body() {
	run_mq 0 mq-publish q body
	join_and_take "$@" q -- "$T/hold"
}

stop_consumer() {
	kill -STOP "$pid"
	eventually 5 proc_state "$pid" T
}

@test "crash: a consumer that is killed again and again loses nothing" {
	local goal in_flight=0 total=900
	seq "$total" | run_mq 0 mq-publish -l q
	seq "$total" >"$T/all"
	for _ in 1 2 3 4 5 6; do
		goal=$(($(results) + RANDOM % 120 + 1))
		start_mq mq-consume -j 4 q -- "$T/note"
		eventually 60 lines_reach "$T/results" "$goal"
		stop_mq KILL
		eventually 10 no_clients
		c=$(live_connection)
		in_flight=$((in_flight + $(holds "$c")))
		expire "$c"
	done
	timeout 400 "$BUILD/mq-consume" -j 4 --drain q -- "$T/note" 3>&-
	echo "$(results) runs, $in_flight were in flight"
	sort -u "$T/results" | comm -23 <(sort "$T/all") - >"$T/lost"
	assert_equal "$(wc -l <"$T/lost")" 0
	assert [ "$(($(results) - total))" -le "$in_flight" ]
	assert_equal "$(state q)" "0 0 0 0 0"
	# It may have ended before its first round of cleaning.
	run_mq 0 mq-clean -q
	# There what one had who was in charge, and is dead, lasts.
	[ "${TOPOLOGY-}" != cluster ] || redis del "${LAYOUT:-rmq}::cleaning" >/dev/null
	forget_past
	assert_equal "$(redis keys '*' | sort)" "$(keys_at_rest)"
}

@test "crash: who ends when idle, however soon, has looked after the dead" {
	seq 3 | run_mq 0 mq-publish -l q
	join_and_take q -- "$T/hold"
	stop_mq KILL
	expire "$c"
	run_mq 0 mq-consume --idle 0 -q q -- "$T/note"
	each_once <(seq 3)
}

# --- the server dies ----------------------------------------------------------

@test "crash: a server that is killed again and again loses nothing accepted" {
	local goal
	safe_server
	seq 1000 >"$T/all"
	run_mq 0 mq-publish -l q <"$T/all"
	start_mq mq-consume -j 2 q -- "$T/note"
	await_consumer
	for _ in 1 2 3 4 5; do
		goal=$(($(results) + RANDOM % 120 + 1))
		eventually 30 lines_reach "$T/results" "$((goal < 1000 ? goal : 1000))"
		server_kill
		server_run "${safe[@]}"
	done
	eventually 60 state_is q "0 0 0 0 1"
	# The consumer lived on, so nothing had to run twice.
	each_once "$T/all"
	# It kept its name: its lease held.
	assert_equal "$(connections)" "$c"
	stop_mq TERM 143
}

@test "crash: data that vanishes with the server, or under a consumer, takes no later message" {
	own_server
	take_body -v
	server_kill
	server_run
	eventually 20 has_new_name "$c"
	eventually 5 gone "$(cat "$T/taken")"
	assert_equal "$(results) $(state q)" "0 0 0 0 0 1"
	c=$(connections)
	printf '%s\n' flushall "$(peer_sends later)" | redis
	eventually 10 has_new_name "$c"
	echo 0 >"$T/go"
	eventually 10 lines_reach "$T/results" 1
	eventually 10 state_is q "0 0 0 0 1"
	assert_equal "$(cat "$T/results")" later
	assert held_by_nobody
	stop_mq
	grep -q 'lease lost: others may get the message$' "$T/err"
	grep -q ' 1 done, .* 1 lease lost' "$T/err"
}

# --- the lease is lost --------------------------------------------------------

# lost_meanwhile STATUS: a stopped consumer's message is given away, and its script ends so;
# with "", it does not end.
lost_meanwhile() {
	begin_anew
	take_body -v
	stop_consumer
	give_away "$c"
	peer_takes
	if [ -n "$1" ]; then
		echo "$1" >"$T/go"
		eventually 5 proc_state "$(<"$T/taken")" Z
	fi
	kill -CONT "$pid"
	eventually 5 grep -q "$c: lease lost" "$T/err"
	eventually 5 gone "$(cat "$T/taken")"
	eventually 5 has_new_name "$c"
	assert peer_has 1
	assert_equal "status $1: $(held q)" "status $1: 0 0 1 0"
}

@test "crash: a stopped consumer whose message was given away kills its script, discards its end" {
	local status_now
	for status_now in "" 0 1 75; do
		lost_meanwhile "$status_now"
		echo 0 >"$T/go"
		run_mq 0 mq-publish q next
		eventually 10 grep -qx next "$T/results"
		eventually 10 held_is q "0 0 1 0"
		stop_mq
		assert peer_has 1
		assert_equal "$(grep -c . "$T/results")" "$([ -z "$status_now" ] && echo 1 || echo 2)"
		grep -q ' 1 done, 0 rejected, 0 to be tried again, 0 returned, 1 lease lost' "$T/err"
		# Whoever has cleaned does not know all of our keys; they go by themselves.
		run ! is_live "$c"
		assert_equal "$(lasting "$c")" ""
	done
}

@test "crash: what a consumer claims before it knows of its death is not lost" {
	start_mq mq-consume -v -j 2 q -- "$T/hold"
	await_consumer
	# The first renewal may be due at any time, and tells it.
	[ "${LAYOUT:-rmq}" = rmq ] || heartbeat
	stop_consumer
	give_away "$c"
	seq 5 >"$T/all"
	run_mq 0 mq-publish -l q <"$T/all"
	kill -CONT "$pid"
	eventually 10 has_new_name "$c"
	echo 0 >"$T/go"
	eventually 10 lines_reach "$T/results" 5
	eventually 10 state_is q "0 0 0 0 1"
	# Nothing is where nobody will look for it.
	assert held_by_nobody
	each_once "$T/all"
	# Nor was it for a while: the old name has claimed none.
	run ! grep 'others may get the message' "$T/err"
	stop_mq
	# One that is given back: the first to ask is who has just died.
	begin_anew
	take_body -v
	stop_consumer
	give_away "$c"
	echo 0 >"$T/go"
	eventually 5 proc_state "$(cat "$T/taken")" Z
	kill -CONT "$pid"
	eventually 10 lines_reach "$T/results" 2
	eventually 10 state_is q "0 0 0 0 1"
	assert held_by_nobody
}

@test "crash: a lease that is over is not brought to life again" {
	start_mq mq-consume q -- "$T/note"
	await_consumer
	expire "$c"
	eventually 5 has_new_name "$c"
	run ! is_live "$c"
	# Its own round of cleaning finds the old name.
	eventually 10 joined
	assert_equal "$(redis keys "*$c*")" ""
}

# --- the connection breaks ----------------------------------------------------

@test "crash: no script copies what a consumer holds when it connects again" {
	no_cluster "there a script reads it"
	[ "${LAYOUT:-rmq}" = rmq ] || skip "rsmq holds ids"
	seq 3 | run_mq 0 mq-publish -l q
	start_mq mq-consume -j 3 -q q -- "$T/hold"
	eventually 10 state_is q "0 0 3 0 1"
	redis config resetstat
	# The connection for commands.
	redis client kill id "$(redis client list | grep -v ' name=sentinel' |
		sed -n 's/^id=\([0-9]*\) .* flags=[^ ]*t.*/\1/p' | head -n 1)"
	eventually 10 eval '[ "$(calls exec) $(calls lrange)" = "1 1" ]'
	echo 0 >"$T/go"
	eventually 10 state_is q "0 0 0 0 1"
}

# answers_lost [ARG...]: publishes $T/all with these, and lets it be consumed.
answers_lost() {
	touch "$T/cuts"
	cuttable "$seed" "$T/cuts"
	run_mq 0 mq-publish "$@" -l q <"$T/all"
	start_mq mq-consume -u "unix://$T/proxy.sock" -j 4 --prefetch 2 \
		q -- "$T/note"
	eventually 60 state_is q "0 0 0 0 1"
	echo "$(wc -l <"$T/cuts") cuts"
	assert [ "$(wc -l <"$T/cuts")" -ge 5 ]
	each_once "$T/all"
}


# cuttable [SEED CUTS]: connections to $T/proxy.sock lead to the server, and USR1 to $proxy
# cuts them; see cut.py.
cuttable() {
	python3 -S "$BATS_TEST_DIRNAME/cut.py" "$D/redis.sock" "$T/proxy.sock" "$@" 3>&- &
	proxy=$!
	eventually 10 listens_at "$T/proxy.sock"
}

@test "crash: what a lost connection has sent does not come later" {
	no_cluster "the proxy stands before one server"
	cuttable
	start_mq mq-consume -u "unix://$T/proxy.sock" q -- "$T/hold"
	eventually 10 new_main '*'
	old=$(mains)
	kill -USR1 "$proxy"
	eventually 10 grep -q reconnecting "$T/err"
	eventually 10 new_main "$old"
}

mains() {
	redis client list | sed -n 's/^id=\([0-9]*\) .* name=mq-consume:.*/\1/p'
}

# new_main OLD: there is one, and another one.
new_main() {
	local now
	now=$(mains)
	[[ $now =~ ^[0-9]+$ && $now != "$1" ]]
}

mains() {
	redis client list | sed -n 's/^id=\([0-9]*\) .* name=mq-consume:.*/\1/p'
}

@test "crash: answers lost on the way, to messages that are alike, too: nothing lost, nothing twice" {
	no_cluster "the proxy stands before one server"
	{ seq 200; yes $'a\nb' | head -n 300; } >"$T/all"
	# Some run while the end of an older one is told.
	sed -i 's/^read.*/&; sleep 0.0$(($$ % 3))/' "$T/note"
	answers_lost --raw
	run ! grep 'lease lost' "$T/err"
}

@test "crash: a message claimed for us without our knowledge is found and run" {
	start_mq mq-consume -j 2 q -- "$T/note"
	await_consumer
	claims_unseen "$c" ghost
	eventually 10 lines_reach "$T/results" 1
	eventually 5 state_is q "0 0 0 0 1"
	assert_equal "$(cat "$T/results") $(connections)" "ghost $c"
	stop_mq
	# A busy consumer finds it, too.
	begin_anew
	take_body -j 1
	claims_unseen "$c" ghost
	eventually 12 grep -q 'has unacked messages that this consumer does not have' "$T/err"
	echo 0 >"$T/go"
	eventually 10 state_is q "0 0 0 0 1"
	assert_equal "$(cat "$T/results")" $'body\nghost'
	assert_equal "$(connections)" "$c"
}

@test "crash: what is claimed while the server says what it holds is not lost" {
	no_cluster "the gate stands before one server"
	no_sentinel "the gate stands before one server"
	touch "$T/gate.waits"
	PYTHONDONTWRITEBYTECODE=1 python3 -S "$root/tests/helpers/gate.py" "$T/gate" \
		"$D/redis.sock" "$asks_held" 3>&- &
	eventually 10 listens_at "$T/gate"
	take_body -j 3 -u "unix://$T/gate"
	rm "$T/gate.waits"
	claims_unseen "$c" ghost
	eventually 10 test -e "$T/gate.waits"
	# Its claim is behind that question, and the consumer hears both answers together.
	run_mq 0 mq-publish q later
	sleep 0.3
	stop_consumer
	touch "$T/gate.open"
	eventually 5 eval '[ "$(holds "$c")" = 3 ]'
	sleep 0.2
	kill -CONT "$pid"
	eventually 10 lines_reach "$T/taken" 3
	echo 0 >"$T/go"
	eventually 10 state_is q "0 0 0 0 1"
	assert_equal "$(sort "$T/results" | xargs)" "body ghost later"
	run ! grep 'lease lost' "$T/err"
	assert_equal "$(connections)" "$c"
}

# Not the script that steals.
asks_what_it_holds() {
	grep -v ' lua\] ' "$T/seen" |
		grep -qE '"(LRANGE.*unacked" "0" "-1|EVALSHA.*held:[^ "]*)"$'
}

@test "crash: a message that is lost while its end is under way is not done" {
	no_cluster "the proxy stands before one server"
	"$root/tests/helpers/link.py" "$D/redis.sock" 0.7 >"$T/port" 3>&- &
	eventually 10 [ -s "$T/port" ]
	run_mq 0 mq-publish q body
	join_and_take -v -u "redis://127.0.0.1:$(cat "$T/port")" q -- "$T/hold"
	redis monitor >"$T/seen" 3>&- &
	eventually 10 [ -s "$T/seen" ]
	peer_steals body
	# Its end is sent while the answer comes that it is not ours any more.
	eventually 20 asks_what_it_holds
	echo 0 >"$T/go"
	eventually 20 grep -q 'lease lost: another consumer has the message' "$T/err"
	stop_mq
	grep -q ' 0 done, 0 rejected, .* 0 returned, 1 lease lost' "$T/err"
}

# --- the server is in trouble -------------------------------------------------

@test "crash: an ack, a reject or a retry that is refused is tried again" {
	local verdict then said
	while IFS='|' read -r verdict then said; do
		begin_anew
		# The retry is still delayed when the tool has ended, on any machine.
		take_body -v --backoff 1h..1h
		redis config set min-replicas-to-write 1
		echo "$verdict" >"$T/go"
		eventually 10 gone "$(cat "$T/taken")"
		eventually 10 grep -q 'NOREPLICAS.*; trying again' "$T/err"
		assert_equal "$(held q)" "0 0 1 0"
		redis config set min-replicas-to-write 0
		eventually 10 eval '[ "$(holds "$c")" = 0 ]'
		# Once, under its old name, and without another run.
		assert_equal "$(results)" 1
		assert_equal "$(connections)" "$c"
		stop_mq
		assert_equal "status $verdict: $(state q)" "status $verdict: $then"
		grep -q " $said, 0 returned, 0 leases lost" "$T/err"
	done <<-'.'
		0|0 0 0 0 0|1 done, 0 rejected, 0 to be tried again
		1|0 0 0 1 0|0 done, 1 rejected, 0 to be tried again
		75|0 1 0 0 0|0 done, 0 rejected, 1 to be tried again
	.
}

@test "crash: TERM while the server does not answer, or is gone: it ends, and says so" {
	local idle how
	for how in stopped killed; do
		own_server
		begin_anew
		"$BUILD/mq-consume" --grace 1s other -- "$T/note" 2>"$T/idle" 3>&- &
		idle=$!
		await_consumer
		seq 3 | run_mq 0 mq-publish -l q
		start_mq mq-consume -j 2 --prefetch 1 --grace 1s q -- "$T/hold"
		eventually 10 lines_reach "$T/taken" 2
		eventually 5 held_is q "0 0 3 0"
		c=$(connections | grep -vxF "$c")
		if [ $how = stopped ]; then
			server_pid | xargs kill -STOP
		else
			server_kill
		fi
		kill -TERM "$pid" "$idle"
		ends_with 143
		grep -q "3 messages could not be settled; they stay unacked at $c" "$T/err"
		for p in $(cat "$T/taken"); do
			assert gone "$p"
		done
		pid=$idle ends_with 143
		[ $how = stopped ] || continue
		server_pid | xargs kill -CONT
		eventually 5 no_clients
		# Given back as its last words, or still held: never gone.
		read -r r _ u _ <<<"$(state q)"
		assert_equal "$((r + u))" 3
		server_stop
	done
}

sockets_are() {
	[ "$(find "/proc/$pid/fd" -lname 'socket:*' 2>/dev/null | wc -l)" = "$1" ]
}

@test "crash: TERM while it connects again: nothing of it stays" {
	no_cluster "the proxy stands before one server"
	own_server
	cuttable
	start_mq mq-consume -u "unix://$T/proxy.sock" q -- "$T/note"
	await_consumer
	eventually 10 sockets_are 2
	server_pid | xargs kill -STOP
	kill -USR1 "$proxy"
	eventually 10 grep -q reconnecting "$T/err"
	# Connected, and without an answer.
	eventually 10 sockets_are 2
	kill -TERM "$pid"
	eventually 10 not_pending "$pid"
	server_pid | xargs kill -CONT
	ends_with 143
	assert_equal "$(connections)" ""
	assert_equal "$(lasting "$c")" ""
}

# Its signals have been taken.
not_pending() {
	! grep -Eq '^(Sig|Shd)Pnd:.*[1-9a-f]' "/proc/$1/status"
}

# The next runs are not started where the ends of others are looked for.
@test "crash: a long row of short runs keeps neither heartbeat nor acks waiting" {
	local name
	seq 12000 | "$BUILD/mq-publish" -l q
	start_mq mq-consume -q -j8 --prefetch 12000 q -- true
	eventually 10 joined
	name=$(connections)
	eventually 10 eval '(($(holds "$name") > 5000))'
	lease_ages "$name"
	eventually 10 lease_is_young "$name"
	(($(holds "$name") > 0))
	stop_mq TERM 143
}
