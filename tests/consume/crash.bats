#!/usr/bin/env bats
# Crashes: of the consumer, of the server, of the connection between them, at
# any moment.  What was accepted is processed, and what runs twice is bounded
# by what was in flight.
#
# layouts: rmq rsmq
#
# SEED=N repeats a run's random moments as far as that is possible.

load ../helpers/server
load "../helpers/layout-${LAYOUT:-rmq}"

setup_file() {
	server_start
	FILE_D=$D
	export FILE_D
}

setup() {
	common_setup
	seed=${SEED:-$$}
	echo "seed $seed"
	RANDOM=$seed
	: >"$T/results"
	: >"$T/taken"
	write_scripts
}

teardown() {
	if [ "$D" != "$FILE_D" ]; then
		server_pid | xargs kill -CONT 2>/dev/null || true
		server_stop
	else
		redis config set maxmemory 0 >/dev/null
		redis config set min-replicas-to-write 0 >/dev/null
	fi
	common_teardown
}

write_scripts() {
	# note: one line for each message, in one write.
	printf '%s\n' '#!/bin/sh' 'read -r x' 'echo "$x" >>"$T/results"' >"$T/note"
	# hold: says that it has the message, goes on only when told to, and
	# ends as told.
	printf '%s\n' '#!/bin/sh' 'read -r x' 'echo $$ >>"$T/taken"' \
		'until [ -s "$T/go" ]; do sleep 0.02; done' \
		'echo "$x" >>"$T/results"' 'read -r status <"$T/go"' 'exit "$status"' >"$T/hold"
	chmod +x "$T/note" "$T/hold"
}

# A server of this test's own, which can be killed and started again.
own_server() {
	D=$(own_dir)
	server_run "$@"
}

# --- looking -----------------------------------------------------------------

results() {
	lines_of "$T/results"
}

lines_of() {
	local all
	mapfile -t all <"$1"
	echo "${#all[@]}"
}

results_reach() {
	[ "$(results)" -ge "$1" ]
}

taken_reach() {
	[ "$(lines_of "$T/taken")" -ge "$1" ]
}

holds_nothing() {
	[ "$(holds "$1")" = 0 ]
}

holds_above() {
	[ "$(holds "$2")" -gt "$1" ]
}

one_consumer() {
	[ "$(connections | grep -c .)" = 1 ]
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

proc_state() {
	[[ $(<"/proc/$1/stat") =~ \)\ (.) ]] && [ "${BASH_REMATCH[1]}" = "$2" ]
}

# each_once FILE: $T/results has every line of FILE, and no line twice.
each_once() {
	sort "$1" >"$T/want"
	sort "$T/results" >"$T/got"
	echo "lost: $(comm -23 "$T/want" <(uniq "$T/got") | wc -l)," \
		"twice: $(uniq -d "$T/got" | wc -l)"
	cmp "$T/want" "$T/got"
}

# --- what others do ----------------------------------------------------------

join_and_take() {
	start_mq mq-consume "$@"
	eventually 10 taken_reach 1
	c=$(connections)
}

stop_consumer() {
	kill -STOP "$pid"
	eventually 5 proc_state "$pid" T
}

# --- the consumer dies --------------------------------------------------------

@test "crash: a consumer that is killed again and again loses nothing" {
	local goal in_flight=0 total=900

	seq "$total" | run_mq 0 mq-publish -l q
	seq "$total" >"$T/all"
	for _ in 1 2 3 4 5 6; do
		goal=$(($(results) + RANDOM % 120 + 1))
		start_mq mq-consume -j 4 q -- "$T/note"
		eventually 60 results_reach "$goal"
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
	assert_equal "$(redis keys '*' | sort)" "$(keys_at_rest)"
}

@test "crash: the scripts of a killed consumer die with it" {
	seq 3 | run_mq 0 mq-publish -l q
	start_mq mq-consume -j 3 q -- "$T/hold"
	eventually 10 taken_reach 3
	stop_mq KILL
	for p in $(cat "$T/taken"); do
		eventually 5 gone "$p"
	done
	assert_equal "$(results)" 0
}

@test "crash: who ends when idle, however soon, has looked after the dead" {
	seq 3 | run_mq 0 mq-publish -l q
	join_and_take q -- "$T/hold"
	stop_mq KILL
	expire "$c"
	run_mq 0 mq-consume --idle 0 -q q -- "$T/note"
	each_once <(seq 3)
}

@test "crash: a script killed by SIGKILL rejects its message, and it alone" {
	seq 9 | run_mq 0 mq-publish -l q
	cat >"$T/die" <<'END'
#!/bin/sh
read -r x
[ "$x" != 5 ] || kill -KILL $$
echo "$x" >>"$T/results"
END
	chmod +x "$T/die"
	run_mq 1 mq-consume -j 2 --drain q -- "$T/die"
	assert_regex "$stderr" 'rejected: killed by SIGKILL'
	assert_equal "$(state q)" "0 0 0 1 0"
	assert_equal "$(reason 1)" "killed by SIGKILL"
	seq 9 | grep -v 5 >"$T/all"
	each_once "$T/all"
}

# --- the server dies ----------------------------------------------------------

# Publishes batches until told to stop; what was accepted is in $T/accepted.
publish_on() {
	local b=0 n

	while [ ! -e "$T/stop" ]; do
		# Not too far ahead.
		results_reach "$(($(lines_of "$T/accepted") - 60))" || {
			read -rt 0.02 <> <(:) || true
			continue
		}
		b=$((b + 1))
		seq "$((b * 20 - 19))" "$((b * 20))" >"$T/batch"
		if "$BUILD/mq-publish" -l q <"$T/batch" 2>"$T/said"; then
			n=20
		else
			n=$(sed -n 's/^mq-publish: \([0-9]*\) messages acc.*/\1/p' \
				"$T/said")
		fi
		head -n "${n:-0}" "$T/batch" >>"$T/accepted"
	done
}

accepted_reach() {
	[ "$(lines_of "$T/accepted")" -ge "$1" ]
}

@test "crash: a server that is killed again and again loses nothing accepted" {
	local publisher options=(--appendonly yes --appendfsync always)

	own_server "${options[@]}"
	touch "$T/accepted"
	start_mq mq-consume -j 2 q -- "$T/note"
	eventually 10 one_consumer
	c=$(connections)
	publish_on 3>&- &
	publisher=$!
	for _ in 1 2 3 4 5; do
		eventually 30 accepted_reach \
			"$(($(wc -l <"$T/accepted") + RANDOM % 60 + 1))"
		eventually 30 results_reach "$(($(results) + RANDOM % 40 + 1))"
		server_kill
		server_run "${options[@]}"
	done
	eventually 30 accepted_reach "$(($(wc -l <"$T/accepted") + 40))"
	touch "$T/stop"
	wait "$publisher"
	eventually 60 state_is q "0 0 0 0 1"
	cat "$T/err"
	echo "$(wc -l <"$T/accepted") accepted, $(results) runs"
	sort "$T/accepted" >"$T/want"
	assert_equal "$(sort -u "$T/results" | comm -23 "$T/want" - | wc -l)" 0
	# The consumer lived on, so nothing had to run twice.
	assert_equal "$(sort "$T/results" | uniq -d | wc -l)" 0
	# It kept its name: its lease held.
	assert_equal "$(connections)" "$c"
	stop_mq
	assert_equal "$status" 143
}

@test "crash: a server that comes back empty is joined anew" {
	own_server
	start_mq mq-consume -v q -- "$T/note"
	eventually 10 one_consumer
	c=$(connections)
	run_mq 0 mq-publish q before
	eventually 10 results_reach 1
	server_kill
	server_run
	eventually 20 has_new_name "$c"
	run_mq 0 mq-publish q after
	eventually 10 results_reach 2
	assert_equal "$(tail -n 1 "$T/results")" after
	eventually 10 state_is q "0 0 0 0 1"
	grep -q 'lease lost' "$T/err"
	stop_mq
	assert_equal "$(redis keys '*' | sort)" "$(keys_at_rest)"
}

@test "crash: a script whose message vanished with the server is stopped" {
	own_server
	run_mq 0 mq-publish q body
	join_and_take -v q -- "$T/hold"
	server_kill
	server_run
	eventually 20 has_new_name "$c"
	eventually 5 gone "$(cat "$T/taken")"
	assert_equal "$(results)" 0
	assert_equal "$(state q)" "0 0 0 0 1"
	stop_mq
	grep -q 'lease lost: others may get the message$' "$T/err"
	grep -q ' 0 done, .* 1 lease lost' "$T/err"
}

@test "crash: data that vanishes under a consumer does not take later messages" {
	start_mq mq-consume q -- "$T/hold"
	eventually 10 one_consumer
	c=$(connections)
	printf '%s\n' flushall "$(peer_sends later)" | redis
	eventually 10 has_new_name "$c"
	echo 0 >"$T/go"
	eventually 10 results_reach 1
	eventually 10 state_is q "0 0 0 0 1"
	assert_equal "$(cat "$T/results")" later
	assert held_by_nobody
}

@test "crash: the private server is brought back, and the work goes on" {
	no_cluster "that is one server"
	unset MQ_URL
	export XDG_STATE_HOME=$T/state XDG_CONFIG_HOME=$T/config
	D=$T/state/mq
	seq 20 | run_mq 0 mq-publish -l q
	start_mq mq-consume -n 100 q -- "$T/note"
	for goal in 20 60; do
		eventually 20 results_reach "$goal"
		c=$(connections)
		server_kill
		seq "$((goal + 1))" "$((goal + 40))" >"$T/more"
		# Nobody else starts it.
		eventually 20 server_answers
		eventually 20 is_live "$c"
		run_mq 0 mq-publish -l q <"$T/more"
	done
	wait "$pid"
	seq 100 >"$T/all"
	each_once "$T/all"
}

# --- the lease is lost --------------------------------------------------------

@test "crash: a stopped consumer kills the script whose message was given away" {
	run_mq 0 mq-publish q body
	join_and_take -v q -- "$T/hold"
	stop_consumer
	give_away "$c"
	peer_takes
	kill -CONT "$pid"
	eventually 5 grep -q "$c: lease lost" "$T/err"
	eventually 5 gone "$(cat "$T/taken")"
	eventually 5 has_new_name "$c"
	echo 0 >"$T/go"
	run_mq 0 mq-publish q next
	eventually 10 results_reach 1
	eventually 10 held_is q "0 0 1 0"
	assert_equal "$(cat "$T/results")" next
	assert peer_has 1
	stop_mq
	grep -q ' 1 done, 0 rejected, .* 0 returned, 1 lease lost' "$T/err"
	# Whoever has cleaned does not know all of our keys; they go by
	# themselves.
	run ! is_live "$c"
	assert_equal "$(lasting "$c")" ""
}

# verdict_is_discarded STATUS: the script ends while its consumer is stopped.
verdict_is_discarded() {
	run_mq 0 mq-publish q body
	join_and_take -v q -- "$T/hold"
	stop_consumer
	give_away "$c"
	peer_takes
	echo "$1" >"$T/go"
	eventually 5 proc_state "$(<"$T/taken")" Z
	kill -CONT "$pid"
	eventually 5 grep -q 'lease lost' "$T/err"
	eventually 5 has_new_name "$c"
	assert peer_has 1
	assert_equal "$(held q)" "0 0 1 0"
	echo 0 >"$T/go"
	run_mq 0 mq-publish q next
	eventually 10 results_reach 2
	stop_mq
	assert peer_has 1
	assert_equal "$(held q)" "0 0 1 0"
	grep -q ' 1 done, 0 rejected, 0 to be tried again, 0 returned, 1 lease lost' \
		"$T/err"
}

@test "crash: a stopped consumer's ack of a message given away is discarded" {
	verdict_is_discarded 0
}

@test "crash: a stopped consumer's reject of a message given away is discarded" {
	verdict_is_discarded 1
}

@test "crash: a stopped consumer's retry of a message given away is discarded" {
	verdict_is_discarded 75
}

@test "crash: what a consumer claims before it knows of its death is not lost" {
	start_mq mq-consume -v -j 2 q -- "$T/hold"
	eventually 10 one_consumer
	c=$(connections)
	# The first renewal may be due at any time, and tells it.
	[ "${LAYOUT:-rmq}" = rmq ] || heartbeat
	stop_consumer
	give_away "$c"
	seq 5 >"$T/all"
	run_mq 0 mq-publish -l q <"$T/all"
	kill -CONT "$pid"
	eventually 10 has_new_name "$c"
	echo 0 >"$T/go"
	eventually 10 results_reach 5
	eventually 10 state_is q "0 0 0 0 1"
	# Nothing is where nobody will look for it.
	assert held_by_nobody
	each_once "$T/all"
	# Nor was it for a while: the old name has claimed none.
	run ! grep 'others may get the message' "$T/err"
}

@test "crash: a message given back is not lost by the one that lost it" {
	# It is ready again, and the first to ask is who has just died.
	run_mq 0 mq-publish q body
	join_and_take -v q -- "$T/hold"
	stop_consumer
	give_away "$c"
	echo 0 >"$T/go"
	eventually 5 proc_state "$(cat "$T/taken")" Z
	kill -CONT "$pid"
	eventually 10 results_reach 2
	eventually 10 state_is q "0 0 0 0 1"
	eventually 10 has_new_name "$c"
	assert held_by_nobody
}

@test "crash: a lease that is over is not brought to life again" {
	start_mq mq-consume q -- "$T/note"
	eventually 10 one_consumer
	c=$(connections)
	expire "$c"
	eventually 5 has_new_name "$c"
	run ! is_live "$c"
	# Its own round of cleaning finds the old name.
	eventually 10 one_consumer
	assert_equal "$(redis keys "*$c*")" ""
}

# --- the connection breaks ----------------------------------------------------

# client_id FLAG: P the connection that listens, t the one for commands.
client_id() {
	redis client list | grep -v ' name=sentinel' |
		sed -n "s/^id=\([0-9]*\) .* flags=[^ ]*$1.*/\1/p" | head -n 1
}

@test "crash: connections cut again and again: nothing lost, nothing twice" {
	local flag goal cuts=0 total=700

	# Who cuts there is slower beside the runs.
	[ "${TOPOLOGY-}" != cluster ] || total=3000
	seq "$total" >"$T/all"
	run_mq 0 mq-publish -l q <"$T/all"
	start_mq mq-consume -j 4 q -- "$T/note"
	while [ "$(held q)" != "0 0 0 0" ]; do
		goal=$(($(results) + RANDOM % 60))
		[ "$goal" -le $((total - 20)) ] || break
		eventually 20 results_reach "$goal"
		flag=t
		[ $((RANDOM % 2)) = 0 ] || flag=P
		if redis client kill id "$(client_id "$flag")" | grep -q 1; then
			cuts=$((cuts + 1))
		fi
	done
	eventually 60 state_is q "0 0 0 0 1"
	echo "$cuts cuts"
	assert [ "$cuts" -ge 5 ]
	each_once "$T/all"
}

told_by_transaction() {
	redis info commandstats >"$T/stats"
	grep -q '^cmdstat_exec:calls=1,' "$T/stats" &&
		grep -q '^cmdstat_lrange:calls=1,' "$T/stats"
}

@test "crash: no script copies what a consumer holds when it connects again" {
	no_cluster "there a script reads it"
	[ "${LAYOUT:-rmq}" = rmq ] || skip "rsmq holds ids"
	seq 3 | run_mq 0 mq-publish -l q
	start_mq mq-consume -j 3 -q q -- "$T/hold"
	eventually 10 state_is q "0 0 3 0 1"
	redis config resetstat
	redis client kill id "$(client_id t)"
	eventually 10 told_by_transaction
	echo 0 >"$T/go"
	eventually 10 state_is q "0 0 0 0 1"
}

# answers_lost [ARG...]: publishes $T/all with these, and lets it be consumed.
answers_lost() {
	cat >"$T/proxy" <<'END'
# Between a client and the server: now and then a request reaches the server,
# and its answer reaches nobody.
import os, random, selectors, socket, sys
server, here, seed, cuts = sys.argv[1:]
random.seed(int(seed))
until_cut = 5
sel = selectors.DefaultSelector()
listener = socket.socket(socket.AF_UNIX)
listener.bind(here)
listener.listen(9)
sel.register(listener, selectors.EVENT_READ, None)

def drop(s):
    for x in (s, peer.pop(s, None)):
        if x is not None:
            peer.pop(x, None)
            doomed.discard(x)
            sel.unregister(x)
            x.close()

peer, doomed = {}, set()
while True:
    for key, _ in sel.select():
        s = key.fileobj
        if s is listener:
            a, _ = listener.accept()
            b = socket.socket(socket.AF_UNIX)
            try:
                b.connect(server)
            except OSError:
                a.close()
                continue
            peer[a], peer[b] = b, a
            sel.register(a, selectors.EVENT_READ, 'client')
            sel.register(b, selectors.EVENT_READ, 'server')
            continue
        if s not in peer:
            continue
        try:
            data = s.recv(1 << 16)
            if data and s in doomed:
                with open(cuts, 'a') as f:
                    f.write('cut\n')
                data = b''
            if data:
                peer[s].sendall(data)
        except OSError:
            data = b''
        if not data:
            drop(s)
        elif key.data == 'client' and (b'EVAL' in data or b'LREM' in data):
            until_cut -= 1
            if until_cut == 0:
                doomed.add(peer[s])
                until_cut = random.randint(1, 20)
END
	touch "$T/cuts"
	python3 "$T/proxy" "$D/redis.sock" "$T/proxy.sock" "$seed" "$T/cuts" \
		3>&- &
	eventually 10 listens_at "$T/proxy.sock"
	run_mq 0 mq-publish "$@" -l q <"$T/all"
	start_mq mq-consume -u "unix://$T/proxy.sock" -j 4 --prefetch 2 \
		q -- "$T/note"
	eventually 60 state_is q "0 0 0 0 1"
	echo "$(wc -l <"$T/cuts") cuts"
	assert [ "$(wc -l <"$T/cuts")" -ge 5 ]
	each_once "$T/all"
}

@test "crash: answers lost on the way: nothing lost, nothing twice" {
	no_cluster "the proxy stands before one server"
	seq 500 >"$T/all"
	answers_lost
}

# Connections to $T/proxy.sock lead to the server, and USR1 to $proxy cuts them.
cuttable() {
	"$root/tests/consume/cut.py" "$D/redis.sock" "$T/proxy.sock" 3>&- &
	proxy=$!
	eventually 10 listens_at "$T/proxy.sock"
}

@test "crash: what a lost connection has sent does not come later" {
	no_cluster "the proxy stands before one server"
	cuttable
	start_mq mq-consume -u "unix://$T/proxy.sock" q -- "$T/hold"
	eventually 10 mains_are 1
	old=$(mains)
	kill -USR1 "$proxy"
	eventually 10 grep -q reconnecting "$T/err"
	new_main() { [ "$(mains)" != "$old" ] && mains_are 1; }
	eventually 10 new_main
}

mains() {
	redis client list | sed -n 's/^id=\([0-9]*\) .* name=mq-consume:.*/\1/p'
}

mains_are() {
	[ "$(mains | wc -l)" = "$1" ]
}

@test "crash: answers lost on the way to messages that are alike" {
	no_cluster "the proxy stands before one server"
	yes $'a\nb' | head -n 300 >"$T/all"
	# Some run while the end of an older one is told.
	sed -i 's/^read.*/&; sleep 0.0$(($$ % 3))/' "$T/note"
	answers_lost --raw
	run ! grep 'lease lost' "$T/err"
}

@test "crash: a message claimed for us without our knowledge is found and run" {
	start_mq mq-consume -j 2 q -- "$T/note"
	eventually 10 one_consumer
	c=$(connections)
	claims_unseen "$c" ghost
	eventually 10 results_reach 1
	eventually 5 state_is q "0 0 0 0 1"
	assert_equal "$(cat "$T/results")" ghost
	assert_equal "$(connections)" "$c"
}

@test "crash: a busy consumer finds such a message, too" {
	run_mq 0 mq-publish q body
	join_and_take -j 1 q -- "$T/hold"
	claims_unseen "$c" ghost
	eventually 12 grep -q 'has unacked messages that this consumer does not have' "$T/err"
	echo 0 >"$T/go"
	eventually 10 state_is q "0 0 0 0 1"
	assert_equal "$(cat "$T/results")" $'body\nghost'
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

@test "crash: SCRIPT FLUSH in the middle" {
	seq 400 >"$T/all"
	head -n 200 "$T/all" | run_mq 0 mq-publish -l q
	start_mq mq-consume -j 4 q -- "$T/note"
	for goal in 20 50 100 150; do
		eventually 20 results_reach "$goal"
		redis script flush
	done
	tail -n 200 "$T/all" | run_mq 0 mq-publish --delay 100ms -l q
	redis script flush
	eventually 30 results_reach 400
	eventually 10 state_is q "0 0 0 0 1"
	each_once "$T/all"
}

@test "crash: the server sleeps for two seconds in the middle" {
	seq 300 >"$T/all"
	run_mq 0 mq-publish -l q <"$T/all"
	start_mq mq-consume -j 4 q -- "$T/note"
	eventually 10 results_reach 100
	c=$(connections)
	redis debug sleep 2
	eventually 30 state_is q "0 0 0 0 1"
	each_once "$T/all"
	assert_equal "$(connections)" "$c"
	run ! grep 'lease lost' "$T/err"
}

# refused_for_a_while STATUS: the script ends so while the server takes no
# writes.
refused_for_a_while() {
	run_mq 0 mq-publish q body
	join_and_take -v q -- "$T/hold"
	redis config set min-replicas-to-write 1
	echo "$1" >"$T/go"
	eventually 10 gone "$(cat "$T/taken")"
	eventually 10 grep -q 'NOREPLICAS.*; trying again' "$T/err"
	assert_equal "$(held q)" "0 0 1 0"
	redis config set min-replicas-to-write 0
	eventually 10 holds_nothing "$c"
	# Once, under its old name, and without another run.
	assert_equal "$(results)" 1
	assert_equal "$(connections)" "$c"
	stop_mq
	grep -q ' 0 leases lost' "$T/err"
}

@test "crash: an ack that is refused is tried again" {
	refused_for_a_while 0
	assert_equal "$(state q)" "0 0 0 0 0"
	grep -q ' 1 done, 0 rejected, ' "$T/err"
}

@test "crash: a reject that is refused is tried again" {
	refused_for_a_while 1
	assert_equal "$(state q)" "0 0 0 1 0"
	grep -q ' 0 done, 1 rejected, ' "$T/err"
}

@test "crash: a retry that is refused is tried again" {
	refused_for_a_while 75
	assert_equal "$(state q)" "0 1 0 0 0"
	grep -q ' 0 done, 0 rejected, 1 to be tried again, ' "$T/err"
}

@test "crash: a message is returned although the server is full" {
	seq 2 | run_mq 0 mq-publish -l q
	start_mq mq-consume -j 1 --prefetch 1 --grace 0s q -- "$T/hold"
	eventually 10 taken_reach 1
	redis config set maxmemory 1
	stop_mq
	assert_equal "$(state q)" "2 0 0 0 0"
}

@test "crash: a reject on a full server is settled when there is room again" {
	run_mq 0 mq-publish q body
	join_and_take q -- "$T/hold"
	redis config set maxmemory 1
	echo 1 >"$T/go"
	eventually 10 results_reach 1
	redis config set maxmemory 0
	eventually 10 state_is q "0 0 0 1 1"
	assert_equal "$(results)" 1
	assert_equal "$(connections)" "$c"
}

@test "crash: TERM while the server does not answer: it ends, and says so" {
	local idle
	own_server
	"$BUILD/mq-consume" --grace 1s other -- "$T/note" 2>"$T/idle" 3>&- &
	idle=$!
	eventually 10 one_consumer
	c=$(connections)
	seq 2 | run_mq 0 mq-publish -l q
	start_mq mq-consume -j 2 --grace 1s q -- "$T/hold"
	eventually 10 taken_reach 2
	c=$(connections | grep -vxF "$c")
	server_pid | xargs kill -STOP
	kill -TERM "$pid" "$idle"
	ends_within 15
	assert_equal "$status" 143
	grep -q "2 messages could not be settled; they stay unacked at $c" \
		"$T/err"
	for p in $(cat "$T/taken"); do
		assert gone "$p"
	done
	pid=$idle ends_within 15
	assert_equal "$status" 143
	server_pid | xargs kill -CONT
	eventually 5 no_clients
	# Given back as its last words, or still held: never gone.
	read -r r _ u _ <<<"$(state q)"
	assert_equal "$((r + u))" 2
}

@test "crash: TERM while the server is gone: it ends, and says so" {
	own_server
	seq 2 | run_mq 0 mq-publish -l q
	start_mq mq-consume -j 1 --prefetch 1 --grace 1s q -- "$T/hold"
	eventually 10 taken_reach 1
	eventually 5 state_is q "0 0 2 0 1"
	server_kill
	kill -TERM "$pid"
	ends_within 15
	assert_equal "$status" 143
	grep -q '2 messages could not be settled; they stay unacked at ' "$T/err"
	assert gone "$(cat "$T/taken")"
}

sockets_are() {
	[ "$(find "/proc/$pid/fd" -lname 'socket:*' 2>/dev/null | wc -l)" = "$1" ]
}

@test "crash: TERM while it connects again: nothing of it stays" {
	no_cluster "the proxy stands before one server"
	own_server
	cuttable
	start_mq mq-consume -u "unix://$T/proxy.sock" q -- "$T/note"
	eventually 10 one_consumer
	c=$(connections)
	eventually 10 sockets_are 2
	server_pid | xargs kill -STOP
	kill -USR1 "$proxy"
	eventually 10 grep -q reconnecting "$T/err"
	# Connected, and without an answer.
	eventually 10 sockets_are 2
	kill -TERM "$pid"
	eventually 10 not_pending "$pid"
	server_pid | xargs kill -CONT
	ends_within 15
	assert_equal "$status" 143
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
	eventually 10 one_consumer
	name=$(connections)
	eventually 10 holds_above 5000 "$name"
	lease_ages "$name"
	eventually 10 lease_is_young "$name"
	assert holds_above 0 "$name"
	stop_mq TERM
	assert_equal "$status" 143
}

# Until the consumer has died, or the poison is rejected.
poison_round() {
	local name
	start_mq mq-consume -q --attempts 3 --prefetch 50 q -- "$T/s"
	eventually 10 died_or_done
	gone "$pid" || return 1
	wait "$pid" || true
	# The one before is there as well if its cleaning was cut short.
	for name in $(connections); do
		expire "$name"
	done
	# There that of the cleaner in charge lasts as long as the heartbeat would have.
	[ "${TOPOLOGY-}" != cluster ] || redis del "${LAYOUT:-rmq}::cleaning" >/dev/null
}

died_or_done() {
	gone "$pid" || state_is q "0 0 0 1 1"
}

@test "crash: a message that kills its consumer is charged for it, and stops" {
	local rounds=0
	script s <<'.'
read -r x
[ "$x" != kill ] || kill -KILL "$PPID"
echo "$x" >>"$T/ran"
.
	{
		seq 100
		echo kill
		seq 101 110
	} | "$BUILD/mq-publish" -l q
	while ((rounds < 8)) && poison_round; do
		rounds=$((rounds + 1))
	done
	eventually 10 state_is q "0 0 0 1 1"
	stop_mq TERM
	# The first time, it may not be the one that is charged; nor when an ack
	# before it was lost with its consumer.
	((rounds >= 3 && rounds <= 6))
	# Only that one is rejected, and everything else has run.
	assert_equal "$(reason 1)" \
		'attempts exhausted: its consumer died while it ran'
	assert_equal "$("$BUILD/mq-stats" --list rejected -l q)" kill
	assert_equal "$(grep -v kill "$T/ran" | sort -n | uniq | tr '\n' ' ')" "$(seq -s ' ' 110) "
}
