#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What is counted: exact numbers in rmq::queue::[Q]::counters, and troubles of
# that key that nobody else notices.

# "done" is a field and a payload here.
# shellcheck disable=SC1010

load ../helpers/server

counters='rmq::queue::[q]::counters'

counts_are() {
	local want=$1
	shift
	[ "$(counts "$@")" = "$want" ]
}

outcomes() {
	counts published runs done failed retried lease_lost
}

# A user who may do everything but count.
no_counters() {
	redis acl setuser alice reset on '>pw' +@all '~rmq::queues' '~*ready' \
		'~*delayed' '~*priority' '~*locks' '~*clock' '~*result::' \
		'~*unacked' '~*rejected' '~*paused' '~*rate' '~*large' \
		'~*watch' '~*idle' '~*holders' '~*outgoing' '~*none' \
		'~rmq::connection*' '&*' >/dev/null
	export MQ_URL=$(url_as alice:pw)
}

@test "count: what is published, whatever the way" {
	run_mq 0 mq-publish q one
	assert_equal "$(counts published)" 1
	run_mq 0 mq-publish q two three
	run_mq 0 mq-publish --raw q <<<four
	assert_equal "$(counts published)" 4
	# Many batches under way.
	run_mq 0 mq-publish -i -l q < <(seq -f '%0999.0f' 30000)
	assert_equal "${#lines[@]}" 30000
	assert_equal "$(counts published)" 30004
	# The server has forgotten the script.
	redis script flush >/dev/null
	seq 2500 | run_mq 0 mq-publish -d 1h -l q
	run_mq 0 mq-publish -l q </dev/null
	assert_equal "$(redis hgetall "$counters" | xargs)" "published 32504"
	assert_equal "$(held q)" "30004 2500 0 0"
}

@test "count: no permission for the counters: all is as always, said once with -v" {
	no_counters
	run_mq 0 mq-publish -i q one two
	assert_equal "${#lines[@]} $stderr" "2 "
	tells 0 "mq-publish: 30000 messages accepted" mq-publish -v -l q < <(seq 30000)
	# What a script publishes, it counts in the same step.
	run_mq 77 mq-publish -k a --unique 1d q later
	assert_equal "$(held q)" "30002 0 0 0"
	run_mq 0 mq-purge --force --ready -n 30000 q
	tells 0 "" mq-consume --drain q -- true
	run_mq 0 mq-publish q a
	start_mq mq-consume -v q -- true
	eventually 10 grep -q 'counters' "$T/err"
	run_mq 0 mq-publish q b
	eventually 10 held_is q "0 0 0 0"
	stop_mq
	assert_equal "$(grep -c 'counters: .*key' "$T/err")" 1
	assert_equal "$(tail -n 1 "$T/err")" "mq-consume: 2 done, 0 rejected, 0 to be tried again, 0 returned, 0 leases lost"
	assert_equal "$(redis exists "$counters")" 0
}

@test "count: something else under the counters key: all is as always" {
	redis set "$counters" mine >/dev/null
	redis sadd rmq::queues q >/dev/null
	tells 0 "mq-publish: 2500 messages accepted" mq-publish -v -l q < <(seq 2500)
	assert_equal "$(held q)" "2500 0 0 0"
	run_mq 0 mq-purge --force -n 2498 --ready q
	tells 0 "" mq-consume --drain q -- true
	assert_equal "$(held q) $(redis get "$counters")" "0 0 0 0 mine"
}

@test "count: what is refused is not counted" {
	redis set 'rmq::queue::[q]::ready' mine >/dev/null
	run_mq 76 mq-publish q one two
	assert_equal "${stderr_lines[1]}" "mq-publish: 0 messages accepted"
	assert_equal "$(counts published)" -
	seq 30000 | run_mq 76 mq-publish -l q
	assert_equal "$(counts published)" -
	redis set 'rmq::queue::[q]::delayed' mine >/dev/null
	redis script flush >/dev/null
	run_mq 76 mq-publish -d 1h q one two
	assert_equal "$(counts published)" -
	redis del 'rmq::queue::[q]::ready' >/dev/null
	# Memory is full: neither message nor count go through.
	redis config set maxmemory 1 >/dev/null
	run_mq 75 mq-publish q one
	redis config set maxmemory 0 >/dev/null
	assert_equal "$(counts published)" -
	run_mq 0 mq-publish q one
	assert_equal "$(counts published)" 1
	# Nor without a right to the counters.
	redis flushall >/dev/null
	no_counters
	redis set 'rmq::queue::[q]::ready' mine >/dev/null
	run_mq 76 mq-publish q one
	assert_equal "$(redis exists "$counters")" 0
}

@test "count: a connection that is lost behind the answer: all are accepted" {
	# Takes one publisher as far as its first batch.
	cat >"$T/server.py" <<'PY'
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen(1)
c, _ = s.accept()
data = b""
def until(word):
    global data
    while word not in data:
        data += c.recv(65536)
    data = data.split(word, 1)[1]
until(b"TIME\r\n")
until(b"ready\r\n")
c.sendall(b"-ERR no HELLO\r\n+OK\r\n*2\r\n$1\r\n1\r\n$1\r\n1\r\n:1\r\n" + 2 * b":0\r\n")
until(b"EXEC\r\n")
c.sendall(b"+OK\r\n" + 2 * b"+QUEUED\r\n" + b"*2\r\n:2\r\n:0\r\n")
c.close()
PY
	python3 "$T/server.py" "$T/s" 3>&- &
	eventually 10 listens_at "$T/s"
	tells 0 "mq-publish: 2 messages accepted" mq-publish -v -i -u "unix://$T/s" q one two
	assert_equal "${#lines[@]}" 2
}

# The payload says what to do.
outcome_script() {
	script work <<'.'
read -r what
case $what in
done) exit 0 ;;
err) exit 1 ;;
retry) exit 75 ;;
again) echo resend 0-once more >&3 ;;
wait) while :; do perl -e 'select undef, undef, undef, 0.01'; done ;;
esac
.
}

@test "count: each outcome of a run" {
	outcome_script
	run_mq 0 mq-publish q done done err done retry again err done
	run_mq 1 mq-consume --drain --attempts 3 --backoff 1h..1h q -- "$T/work"
	# "again" has three runs, the last of which rejects it.
	assert_equal "$(outcomes)" "8 10 4 3 3 -"
	assert_equal "$(held q)" "0 1 0 3"
	# A bad header is a failure without a run.
	printf '\377\000\276\276\112nothing' |
		redis -x lpush 'rmq::queue::[q]::ready' >/dev/null
	run_mq 1 mq-consume --drain q -- true
	assert_equal "$(outcomes)" "8 10 4 4 3 -"
}

@test "count: runs have a time, and buckets sum up to them" {
	run_mq 0 mq-publish q 0.3 0.3 0.02 0.02 0.02
	run_mq 0 mq-consume --drain q -- perl -e \
		'select undef, undef, undef, scalar <STDIN>'
	assert_equal "$(counts runs done)" "5 5"
	sum=0
	for i in {0..15}; do
		n=$(redis hget "$counters" "run_$i")
		sum=$((sum + ${n:-0}))
	done
	assert_equal "$sum" 5
	# None can be shorter than it slept.
	assert_equal "$(counts run_0 run_1)" "- -"
	long=0
	for i in {6..15}; do
		n=$(redis hget "$counters" "run_$i")
		long=$((long + ${n:-0}))
	done
	((long >= 2))
	ms=$(counts run_ms)
	((ms >= 660 && ms < 60000))
}

@test "count: printing: done, and no runs" {
	seq 1500 | run_mq 0 mq-publish -l q
	run_mq 0 mq-consume --drain -l q
	assert_equal "$(outcomes)" "1500 - 1500 - - -"
	assert_equal "$(redis hkeys "$counters" | sort | xargs)" \
		"done done_s now_in now_out now_s published then_in then_out then_s"
}

@test "count: what is returned at the end is a run, and no outcome" {
	outcome_script
	run_mq 0 mq-publish q wait done done
	start_mq mq-consume -v --prefetch 2 --grace 0s q -- "$T/work"
	eventually 10 held_is q "0 0 3 0"
	stop_mq
	assert_equal "$(outcomes)" "3 1 - - - -"
	grep -q ' 0 done, 0 rejected, 0 to be tried again, 3 returned, 0 leases lost' \
		"$T/err"
}

@test "count: several queues, each for itself, and a full server" {
	run_mq 0 mq-publish q a b
	run_mq 0 mq-publish other c
	redis config set maxmemory 1 >/dev/null
	run_mq 0 mq-consume --drain -v q other nothing -- true
	redis config set maxmemory 0 >/dev/null
	assert_equal "$(outcomes)" "2 2 2 - - -"
	assert_equal "$(redis hmget 'rmq::queue::[other]::counters' published runs \
		done | xargs)" "1 1 1"
	assert_equal "$(redis exists 'rmq::queue::[nothing]::counters')" 0
	assert_equal "${stderr_lines[-1]}" "mq-consume: 3 done, 0 rejected, 0 to be tried again, 0 returned, 0 leases lost"
}

@test "count: told once a second while it goes on, not for each message" {
	redis config resetstat >/dev/null
	start_mq mq-consume q -- true
	eventually 10 connections
	seq 300 | run_mq 0 mq-publish -l q
	eventually 20 counts_are "300 300" runs done
	# Nothing has changed since: nothing is told.
	tick
	redis config resetstat >/dev/null
	tick
	assert_equal "$(redis info commandstats | grep -c hincrby)" 0
	stop_mq
	assert_equal "$(counts published runs done)" "300 300 300"
}

@test "count: rates have what was there a minute before" {
	run_mq 0 mq-publish q a b c
	run_mq 0 mq-consume --drain q -- true
	s=$(counts now_s)
	((s <= $(date +%s) && s > $(date +%s) - 60))
	assert_equal "$(counts then_s then_in then_out now_in now_out)" "$s 0 0 3 0"
	redis hincrby "$counters" now_s -70 >/dev/null
	run_mq 0 mq-publish q d
	run_mq 1 mq-consume --drain q -- false
	assert_equal "$(counts then_s then_in then_out now_in now_out)" \
		"$((s - 70)) 3 0 4 3"
	((s <= $(counts now_s)))
	assert_equal "$(outcomes)" "4 4 3 1 - -"
}

@test "count: a consumer that is killed keeps what it had told" {
	outcome_script
	run_mq 0 mq-publish q done done err
	start_mq mq-consume q -- "$T/work"
	eventually 10 counts_are "3 3 2 1" published runs done failed
	run_mq 0 mq-publish q wait
	eventually 10 held_is q "0 0 1 1"
	stop_mq KILL
	assert_equal "$(outcomes)" "4 3 2 1 - -"
}

@test "count: a lost lease" {
	outcome_script
	run_mq 0 mq-publish q wait
	start_mq mq-consume --no-clean q -- "$T/work"
	eventually 10 held_is q "0 0 1 0"
	redis del "rmq::connection::$(connections)::heartbeat" >/dev/null
	eventually 10 counts_are "1 1 -" runs lease_lost done
	stop_mq
	assert_equal "$(outcomes)" "1 1 - - - 1"
	assert_equal "$(tail -n 1 "$T/err")" "mq-consume: 0 done, 0 rejected, 0 to be tried again, 0 returned, 1 lease lost"
}

# What is on its way when the connection is lost may be forgotten: so all is told
# then, and one runs, which ends before there is a new connection, or behind that.
@test "count: while the connection is lost nothing is forgotten" {
	script hold <<'.'
read -r i
echo "$i" >>"$T/taken"
until [ -e "$T/go$i" ]; do sleep 0.02; done
.
	touch "$T/go0"
	run_mq 0 mq-publish q 0
	start_mq mq-consume q -- "$T/hold"
	for n in 1 2 3 4 5; do
		eventually 10 counts_are "$n $n $n" published runs done
		run_mq 0 mq-publish q "$n"
		eventually 10 grep -qx "$n" "$T/taken"
		redis client kill type normal skipme yes >/dev/null
		redis client kill type pubsub >/dev/null
		touch "$T/go$n"
	done
	eventually 10 counts_are "6 6 6" published runs done
	stop_mq
	assert_equal "$(outcomes)" "6 6 6 - - -"
}

@test "count: a server that comes back empty counts anew" {
	outcome_script
	run_mq 0 mq-publish q done done
	start_mq mq-consume q -- "$T/work"
	eventually 10 counts_are "2 2" runs done
	server_kill
	server_run
	run_mq 0 mq-publish q done
	eventually 20 counts_are "1 1 1" published runs done
	stop_mq
	assert_equal "$(outcomes)" "1 1 1 - - -"
}
