#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-publish --durable: what it promises outlives the server, and where that
# cannot be promised it says so.  What a version of Redis does not have (WAITAOF,
# before 7.2) is asked of the server that is there.

load ../helpers/common
load feed

setup() {
	T=$(own_dir)
	export T
	R=
}

teardown() {
	exec 5>&-
	servers_stop
	common_teardown
}

# --- servers -------------------------------------------------------------------

# with_replica [OPTION...]: a server, with more options, and one replica.
with_replica() {
	no_cluster "a cluster with replicas is in server/nodes.bats"
	port=$(free_ports 1)
	server_start --port "$port" --bind 127.0.0.1 \
		--repl-diskless-sync-delay 0 "$@"
	replica_of "$port"
}

# For the sentinel of TOPOLOGY=sentinel, a replica that is stopped is not down soon.
replica_of() {
	R=$(own_dir)
	[ "${TOPOLOGY-}" != sentinel ] || at_port "$(cat "$D/sentinel/port")" \
		sentinel set m down-after-milliseconds 300000 >/dev/null
	redis-server --port "$(free_ports 1)" --bind 127.0.0.1 \
		--unixsocket "$R/redis.sock" --dir "$R" --save '' \
		--replicaof 127.0.0.1 "$1" --pidfile "$R/redis.pid" --daemonize yes \
		--logfile "$R/redis.log" >/dev/null
	eventually 20 has_replica
}

servers_stop() {
	[ -z "$R" ] || {
		continue_replica 2>/dev/null || true
		at_replica shutdown nosave >/dev/null 2>&1 || true
		rm -rf "$R"
		R=
	}
	server_stop
}

has_replica() {
	redis info replication | grep -q 'state=online' || return 1
	[ "${TOPOLOGY-}" != sentinel ] || sentinel_has_replica
}

at_replica() {
	redis-cli -s "$R/redis.sock" "$@"
}

stop_replica() {
	kill -STOP "$(cat "$R/redis.pid")"
}

continue_replica() {
	kill -CONT "$(cat "$R/redis.pid")"
}

# The replica takes the place of its primary, which is dead: MQ_URL is that.
promote() {
	at_replica replicaof no one >/dev/null
	export MQ_URL=unix://$R/redis.sock
}

has_waitaof() {
	redis waitaof 0 0 0 | grep -q '^[0-9]'
}

# Which client waits for the disk or for replicas, and not only asked whether it may.
waiting_client() {
	redis client list | sed -n 's/^id=\([0-9]*\) .* flags=[^ ]*b.* cmd=wait.*/\1/p'
}

is_waiting() {
	[ -n "$(waiting_client)" ]
}

# The server answers it at once, as if its time were over.
end_wait() {
	eventually 20 is_waiting
	redis client unblock "$(waiting_client)" >/dev/null
}

# --- messages ------------------------------------------------------------------

# The payloads that are ready, in their order: ready LAYOUT Q.
ready() {
	"$BUILD/mq-stats" -L "$1" --list ready -l -n 100000 "$2"
}

has_lines() {
	[ "$(wc -l <"$T/out")" = "$1" ]
}

# refuses REGEX [ARGS...]: nothing is published, for this reason.
refuses() {
	local why=$1
	shift
	run_mq 78 mq-publish "$@" --durable q x
	assert_regex "$stderr" "^mq-publish: [^ ]*: $why
mq-publish: 0 messages accepted\$"
	assert_equal "$(redis dbsize)" 0
}

# --- the disk ------------------------------------------------------------------

@test "durable: neither a file nor a replica: 78, and nothing is published" {
	no_sentinel "the disk alone is no promise there: another server may become the master"
	server_start
	refuses 'cannot be durable: it has no append-only file and no replica: set appendonly to yes.*'
	MQ_LAYOUT=rsmq server_url
	refuses 'cannot be durable: .*' -L rsmq
	server_url
	run_mq 78 mq-publish -l --durable q </dev/null
	# Not where nothing is published, either.
	run_mq 64 mq-publish --durable --tick 3 q
}

@test "durable: appendfsync always: the messages outlive the server" {
	no_sentinel "the disk alone is no promise there: another server may become the master"
	local layout

	server_start --appendonly yes --appendfsync always
	for layout in rmq rsmq; do
		MQ_LAYOUT=$layout server_url
		run_mq 0 mq-publish -v -L "$layout" -l --durable q < <(seq 3000)
		assert_equal "${stderr_lines[-1]}" "mq-publish: 3000 messages accepted, on disk"
		server_kill
		MQ_LAYOUT=$layout server_run --appendonly yes --appendfsync always
		ready "$layout" q | cmp - <(seq 3000)
	done
}

@test "durable: appendfsync everysec: WAITAOF, or 78 where there is none" {
	no_sentinel "the disk alone is no promise there: another server may become the master"
	server_start --appendonly yes --appendfsync everysec
	if ! has_waitaof; then
		refuses 'cannot be durable: appendfsync is everysec: set it to always, .*'
		return
	fi
	run_mq 0 mq-publish -v -l --durable q < <(seq 3000)
	assert_equal "${stderr_lines[-1]}" "mq-publish: 3000 messages accepted, on disk"
	# One was to see whether there is one.
	redis info commandstats | grep -q 'cmdstat_waitaof:calls=[2-9]'
	server_kill
	server_run --appendonly yes --appendfsync everysec
	ready rmq q | cmp - <(seq 3000)
}

@test "durable: the private server always will do" {
	export XDG_STATE_HOME=$T
	run_mq 0 mq-publish -u private: --durable q x
	redis-cli -s "$T/mq/redis.sock" shutdown nosave || true
}

# --- replicas ------------------------------------------------------------------

@test "durable: a replica that takes over has the messages" {
	local layout

	for layout in rmq rsmq; do
		with_replica
		run_mq 0 mq-publish -v -L "$layout" -l --durable q < <(seq 3000)
		assert_equal "${stderr_lines[-1]}" \
			"mq-publish: 3000 messages accepted, on 1 replica"
		server_kill
		promote
		ready "$layout" q | cmp - <(seq 3000)
		servers_stop
	done
}

@test "durable: it waits for a replica that is behind, ids and all" {
	with_replica
	stop_replica
	feed -i -l --durable q
	echo 1 >&5
	# The input only pauses.
	eventually 20 is_waiting
	has_lines 0
	continue_replica
	eventually 20 has_lines 1
	close_feed 0
	assert_equal "$(wc -l <"$T/out")" 1
}

# unsafe STATUS WHY N: so it ends, and says that N messages are in the queue, but no more.
unsafe() {
	ended "$1"
	assert_regex "$stderr" "^mq-publish: $2
mq-publish: $3 messages? accepted, $3 of them in the queue but not known to be on 1 replica; published again without -k they come twice\$"
	has_lines 0
}

@test "durable: a replica that does not follow: 75, and what is in the queue; a signal while it waits" {
	with_replica
	stop_replica
	start_mq mq-publish -i --durable q 1 2 3
	end_wait
	unsafe 75 '[^ ]*: not durable yet: only on 0 of 1 replica' 3
	assert_equal "$(ready rmq q)" "$(seq 3)"
	start_mq mq-publish -i --durable q 4 5
	eventually 20 is_waiting
	kill "$pid"
	unsafe 143 interrupted 2
	# One that is no more will not, either.
	start_mq mq-publish --durable q 6
	eventually 20 is_waiting
	kill -KILL "$(cat "$R/redis.pid")"
	end_wait
	ended 75
}

@test "durable: the server is lost while it waits: 75" {
	with_replica
	stop_replica
	start_mq mq-publish -i --durable q 1
	eventually 20 is_waiting
	server_kill
	unsafe 75 '.*' 1
}

@test "durable: a connection that breaks, and the wait goes on on another one" {
	with_replica
	feed -i -l --durable q
	echo 1 >&5
	eventually 20 has_lines 1
	redis client kill type normal skipme yes >/dev/null
	stop_replica
	echo 2 >&5
	eventually 20 is_waiting
	has_lines 1
	continue_replica
	close_feed 0
	has_lines 2
	assert_equal "$(ready rmq q)" "$(seq 2)"
}

# network NAME [FAULT]: in front of the server, a network that loses the answer to the
# message "needle"; see resume.py.
network() {
	far=$T/$1
	PYTHONDONTWRITEBYTECODE=1 python3 -S "$BATS_TEST_DIRNAME/resume.py" \
		"$far" "$D/redis.sock" reply:needle "${@:2}" 3>&- &
	eventually 10 listens_at "$far"
}

# WAIT knows what its own connection has written; from Redis 7.2 on, nothing else.
@test "durable: what another connection has published is safe, or not said to be" {
	no_sentinel "the network stands before one server"
	local layout

	for layout in rmq rsmq; do
		with_replica
		stop_replica
		network "$layout"
		start_mq mq-publish -L "$layout" -u "unix://$far" -i --durable q needle
		eventually 20 is_waiting
		has_lines 0
		continue_replica
		ended 0
		assert_regex "$stderr" '; reconnecting$'
		has_lines 1
		# Where nothing can be written any more, nobody knows.
		stop_replica
		network "$layout-again" \
			"then:redis-cli -s $D/redis.sock config set min-replicas-to-write 2"
		start_mq mq-publish -L "$layout" -u "unix://$far" -i --durable q needle
		ended 75
		assert_regex "$stderr" 'NOREPLICAS .*
mq-publish: 1 message accepted, 1 of them in the queue but not known to be on 1 replica; .*$'
		has_lines 0
		servers_stop
	done
}

@test "durable: a duplicate is one of a message that is safe" {
	with_replica
	stop_replica
	run_mq 0 mq-publish -k key q x
	start_mq mq-publish -k key --durable q x
	eventually 20 is_waiting
	continue_replica
	ended 1
	run_mq 1 mq-publish -v -k key --durable q x
}

# --- a server that takes no more -----------------------------------------------

@test "durable: what was accepted before the server took no more is safe" {
	with_replica
	run_mq 75 mq-publish -l --durable --max-length 2 q < <(seq 4)
	assert_regex "$stderr" 'mq-publish: 2 messages accepted, on 1 replica$'
	redis flushall >/dev/null
	feed -i -l --durable q
	echo 1 >&5
	eventually 20 has_lines 1
	redis config set maxmemory-policy noeviction >/dev/null
	redis config set maxmemory 1 >/dev/null
	echo 2 >&5
	ended 75
	assert_regex "$stderr" ': OOM .*
mq-publish: 1 message accepted, on 1 replica$'
	# And one that cannot write.
	redis config set maxmemory 0 >/dev/null
	redis config set min-replicas-to-write 2 >/dev/null
	run_mq 75 mq-publish --durable q x
	assert_regex "$stderr" ': NOREPLICAS '
}

@test "durable: with --wait, the end of a message that is safe" {
	server_start --appendonly yes --appendfsync always
	replica_beside
	start_mq mq-consume q -- true
	run_mq 0 mq-publish --durable --wait=300s q x
	stop_mq
}
