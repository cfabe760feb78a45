#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# layouts: rmq rsmq
# A node of a cluster, as one server with all slots: every tool says so and
# ends.
# topology: own

load ../helpers/server

: "${LAYOUT:=rmq}"

setup_file() {
	start_node
	FILE_D=$D
	export FILE_D
}

# start_node [OPTION...]
start_node() {
	server_start --cluster-enabled yes --port "$(free_ports 1)" \
		--bind 127.0.0.1 "$@"
	seq 0 16383 | xargs redis-cli -s "$D/redis.sock" cluster addslots >/dev/null
	eventually 20 cluster_is_up
}

cluster_is_up() {
	redis cluster info | grep -q cluster_state:ok
}

setup() {
	export MQ_LAYOUT=$LAYOUT
	common_setup
	said="unix://$D/redis.sock: this server is a node of a cluster; use redis-cluster://HOST:PORT"
}

teardown() {
	[ "$D" = "$FILE_D" ] || server_stop
	common_teardown
}

@test "cluster: every tool ends with 78 and one line, and changes nothing" {
	while read -r tool args; do
		# shellcheck disable=SC2086 # several words
		run_mq 78 "$tool" $args
		assert_equal "$output" ""
		assert_equal "${stderr%$'\nmq-publish: 0 messages accepted'}" "$tool: $said"
	done <<-END
		mq-publish q x
		mq-publish -l -d 1h q
		mq-publish --durable q x
		mq-consume q
		mq-consume q r -- true
		mq-consume --drain q
		mq-lease --for 1m --jsonl q
		mq-consume --no-clean --drain q -- true
		mq-stats
		mq-stats q
		mq-stats --json q
		mq-stats --list ready q
		mq-stats --running
		mq-stats --watch q
		mq-clean
		mq-clean --interval 1s
		mq-return q
		mq-purge --force --all q
		mq-purge --force --delete-queue q
		mq-pause q
		mq-pause --resume q
	END
	assert_equal "$(redis keys '*')" ""
	run_mq 3 mq-stats --check ready=1 q
	assert_output --partial "$said"
}

@test "cluster: a database that a node does not have is no trouble that passes" {
	for tool in "mq-publish q x" "mq-consume q" mq-stats mq-clean; do
		# shellcheck disable=SC2086 # several words
		run_mq 78 $tool -u "unix://$D/redis.sock?db=3"
		# A node of Valkey 9 has databases.
		assert_regex "$stderr" "^${tool%% *}: unix://$D/redis.sock\?db=3: ERR (SELECT is not allowed in cluster mode|DB index is out of range)\$"
	done
}

# url_of_cluster DATABASE
url_of_cluster() {
	echo "redis-cluster://127.0.0.1:$(redis --raw config get port | tail -n 1)/$1?ns={rsmq}" |
		if [ "$LAYOUT" = rsmq ]; then cat; else sed 's/?.*//'; fi
}

@test "cluster: a database, where the nodes have it; else 78" {
	local url
	url=$(url_of_cluster 3)
	for tool in "mq-publish q x" "mq-consume q" mq-stats mq-clean; do
		# shellcheck disable=SC2086 # several words
		run_mq 78 $tool -u "$url"
		assert_regex "$stderr" "^${tool%% *}: (cleaning: )?redis://127.0.0.1:[0-9]+/3: ERR (SELECT is not allowed in cluster mode|DB index is out of range)"
	done
	[ -n "$(redis config get cluster-databases)" ] || skip "this server has no databases in a cluster"
	start_node --cluster-databases 4
	url=$(url_of_cluster 3)
	run_mq 0 mq-publish -q -u "$url" q a b
	start_mq mq-consume -u "$url" q -- sh -c 'cat >>"$T/ran"'
	eventually 20 grep -qx ab "$T/ran"
	run_mq 0 mq-publish -q -u "$url" q c
	eventually 20 grep -qx abc "$T/ran"
	stop_mq
	assert_equal "$(redis -n 0 dbsize)" 0
	run_mq 1 mq-stats -u "$(url_of_cluster 2)" q
	run_mq 0 mq-stats -u "$url" q
}

@test "cluster: so it is where nobody may ask, by the first refusal" {
	start_node --rename-command HELLO ""
	run_mq 78 mq-publish q x
	assert_regex "$stderr" "^mq-publish: .*unix://$D/redis.sock: CROSSSLOT"
	run_mq 78 mq-consume --no-clean q -- true
	assert_equal "${#stderr_lines[@]}" 1
	assert_regex "$stderr" "^mq-consume: .*unix://$D/redis.sock: CROSSSLOT"
}

@test "cluster: a consumer whose server has become a node ends, with all that runs" {
	server_start
	script work <<-'END'
		sleep 600 &
		echo $! >"$T/pid"
		wait
	END
	run_mq 0 mq-publish q x
	start_mq mq-consume --no-clean q -- "$T/work"
	eventually 10 [ -s "$T/pid" ]
	server_kill
	rm -f "$D/redis.sock"
	server_run --cluster-enabled yes --port "$(free_ports 1)" --bind 127.0.0.1
	ends_with 78
	grep -q ": unix://$D/redis.sock: this server is a node of a cluster" "$T/err"
	eventually 5 gone "$(cat "$T/pid")"
}
