# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# A real cluster of nodes on 127.0.0.1.  Load it behind common.bash.
#
#   cluster_start [N]       three masters, and N replicas of each (0); sets CLUSTER_URL;
#                           one that is silent for $NODE_TIMEOUT ms is lost to the others,
#                           by default for longer than a busy machine lets it wait
#   replicas_known          each node says that all masters have a replica, which takes a
#                           while: one that has replicated nothing is not listed
#   cluster_stop            and its end
#   node I ARGS...          redis-cli on node I, from 0
#   cluster ARGS...         redis-cli that follows its slots
#   slot_of Q               the slot of a queue
#   owner_of SLOT           the number of the node that has it
#   slot_begin SLOT TO      begins to move a slot to node TO
#   slot_keys SLOT TO       moves its keys there
#   slot_end SLOT TO        and is done
#   slot_move SLOT TO       all three, or by the server's own command where it has one
#   node_kill I             SIGKILL
#   other_than I            the number of another master
#   number_on I KEY...      the first number that, in place of %, puts all these keys on
#                           node I, with the slots that cluster_start has given it
#   queue_on I              a queue of it
#   replica_of I            the number of its replica
#   owner_of_key KEY        the node that had it then
#   go_connection C Q...    one of a Go program, dead, with a message m of each queue
#   alive C                 it has a heartbeat
#   refusals_come           whether a command was refused because a slot moves
#   as_app RULE...          the user app may do that, everywhere, and MQ_URL is as it
#
# A file of tests has three masters with a replica each, and for each test MQ_URL, a
# directory T of its own, and the name Q of a queue, unless it defines setup() and so on
# behind it.  common_setup() would clean one server.

setup_file() {
	cluster_start 1
}

teardown_file() {
	cluster_stop
}

setup() {
	cluster_setup
}

cluster_setup() {
	T=$(own_dir)
	Q=q$BATS_TEST_NUMBER
	pid=
	export T MQ_URL=$CLUSTER_URL
}

# Empty nodes, which go on when one is lost.
cluster_empty() {
	local i
	cluster_setup
	for i in 0 1 2; do
		node "$i" flushall >/dev/null
		node "$i" config set cluster-require-full-coverage no >/dev/null
		node "$i" config resetstat >/dev/null
	done
}

# All nodes are back.
cluster_mend() {
	local i
	for ((i = 0; i < CLUSTER_NODES; i++)); do
		kill -CONT "$(cat "$C/$i/pid")" 2>/dev/null || true
	done
	for ((i = 0; i < CLUSTER_NODES; i++)); do
		node "$i" ping >/dev/null 2>&1 || node_run "$i"
	done
	eventually 60 cluster_ready $((CLUSTER_NODES / 3 - 1))
}

teardown() {
	[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true
	[ "$CLUSTER_NODES" != 3 ] || cluster_mend
	rm -rf "$T"
}

cluster_start() {
	local replicas=${1:-0} i nodes=()
	C=$(own_dir)
	CLUSTER_NODES=$((3 * (replicas + 1)))
	read -r CLUSTER_PORT _ < <(free_ports "$CLUSTER_NODES")
	export C CLUSTER_NODES CLUSTER_PORT
	for ((i = 0; i < CLUSTER_NODES; i++)); do
		mkdir "$C/$i"
		node_run "$i"
		nodes+=("127.0.0.1:$((CLUSTER_PORT + i))")
	done
	redis-cli --cluster create "${nodes[@]}" --cluster-replicas "$replicas" \
		--cluster-yes >"$C/create.log" || {
		cat "$C/create.log"
		return 1
	}
	eventually 30 cluster_ready "$replicas"
	CLUSTER_URL=redis-cluster://127.0.0.1:$CLUSTER_PORT,127.0.0.1:$((CLUSTER_PORT + 1))
	export CLUSTER_URL
}

node_run() {
	redis-server --port $((CLUSTER_PORT + $1)) --bind 127.0.0.1 \
		--dir "$C/$1" --cluster-enabled yes --cluster-node-timeout "${NODE_TIMEOUT:-15000}" \
		--save '' --appendonly no --daemonize yes \
		--pidfile "$C/$1/pid" --logfile "$C/$1/log" >/dev/null
	eventually 10 [ -s "$C/$1/pid" ]
	eventually 10 node "$1" ping
}

# Every node knows that all is well, with all others, and the replicas are up to date.
cluster_ready() {
	local i nodes
	for ((i = 0; i < CLUSTER_NODES; i++)); do
		node "$i" cluster info | grep -q cluster_state:ok || return 1
		nodes=$(node "$i" cluster nodes)
		[[ $nodes != *fail* ]] || return 1
		[ "$(grep -c slave <<<"$nodes")" = $((3 * $1)) ] || return 1
	done
	for ((i = 0; i < CLUSTER_NODES; i++)); do
		! node "$i" info replication | grep -q master_link_status:down ||
			return 1
	done
}

replicas_known() {
	local i
	for ((i = 0; i < CLUSTER_NODES; i++)); do
		[ "$(node "$i" cluster slots | grep -xE '[0-9a-f]{40}' |
			sort -u | wc -l)" = "$CLUSTER_NODES" ] || return 1
	done
}

cluster_stop() {
	local i
	for ((i = 0; i < CLUSTER_NODES; i++)); do
		kill -KILL "$(cat "$C/$i/pid")" 2>/dev/null || true
	done
	rm -rf "$C"
}

node() {
	redis-cli -p $((CLUSTER_PORT + $1)) "${@:2}"
}

cluster() {
	redis-cli -c -p "$CLUSTER_PORT" "$@"
}

node_kill() {
	local p
	p=$(cat "$C/$1/pid")
	kill -KILL "$p"
	eventually 10 gone "$p"
}

slot_of() {
	node 0 cluster keyslot "{$1}"
}

owner_of() {
	node "${2:-0}" cluster nodes | awk -v slot="$1" -v base="$CLUSTER_PORT" '
		$3 ~ /master/ && $3 !~ /fail/ {
			for (i = 9; i <= NF; i++) {
				n = split($i, part, "-")
				if ($i !~ /\[/ && slot >= part[1] + 0 &&
				    slot <= part[n > 1 ? 2 : 1] + 0) {
					split($2, at, "[:@]")
					print at[2] - base
				}
			}
		}'
}

other_than() {
	echo $((($1 + 1) % 3))
}

number_on() {
	python3 -c 'import binascii, re, sys
node, *keys = sys.argv[1:]
def owner(key):
    slot = binascii.crc_hqx(re.sub(r".*\{(.*)\}.*", r"\1", key).encode(), 0) % 16384
    return (slot > 5460) + (slot > 10922)
print(next(n for n in range(10000)
           if all(owner(key.replace("%", str(n))) == int(node) for key in keys)))' "$@"
}

queue_on() {
	echo "$Q-$(number_on "$1" "{$Q-%}")"
}

replica_of() {
	node 0 cluster replicas "$(node "$1" cluster myid)" |
		awk -v base="$CLUSTER_PORT" '{ split($2, at, "[:@]"); print at[2] - base }'
}

owner_of_key() {
	local slot
	slot=$(node 0 cluster keyslot "$1")
	echo $((slot < 5461 ? 0 : slot < 10923 ? 1 : 2))
}

go_connection() {
	local q
	cluster sadd rmq::connections "$1" >/dev/null
	for q in "${@:2}"; do
		cluster sadd "rmq::connection::$1::queues" "$q" >/dev/null
		cluster sadd "rmq::connection::$1::queue::{$q}::consumers" x >/dev/null
		cluster lpush "rmq::connection::$1::queue::{$q}::unacked" m >/dev/null
	done
}

alive() {
	cluster set "rmq::connection::$1::heartbeat" 1 ex 600 >/dev/null
}

slot_begin() {
	local from
	from=$(owner_of "$1")
	node "$2" cluster setslot "$1" importing "$(node "$from" cluster myid)" >/dev/null
	node "$from" cluster setslot "$1" migrating "$(node "$2" cluster myid)" >/dev/null
}

slot_keys() {
	local from keys
	from=$(owner_of "$1")
	while keys=$(node "$from" cluster getkeysinslot "$1" 100) && [ -n "$keys" ]; do
		xargs -d '\n' redis-cli -p $((CLUSTER_PORT + from)) migrate 127.0.0.1 \
			$((CLUSTER_PORT + $2)) '' 0 5000 replace keys <<<"$keys" >/dev/null
	done
}

slot_end() {
	local from id
	from=$(owner_of "$1")
	id=$(node "$2" cluster myid)
	for i in "$2" "$from" 0 1 2; do
		node "$i" cluster setslot "$1" node "$id" >/dev/null
	done
}

slot_move() {
	local from has
	from=$(owner_of "$1")
	has=$(node "$from" cluster help)
	case $has in
	*MIGRATESLOTS*)
		node "$from" cluster migrateslots slotsrange "$1" "$1" \
			node "$(node "$2" cluster myid)" >/dev/null
		;;
	*"MIGRATION "*)
		node "$2" cluster migration import "$1" "$1" >/dev/null
		;;
	*)
		slot_begin "$@"
		slot_keys "$@"
		slot_end "$@"
		;;
	esac
	eventually 30 slot_is_at "$@"
}

slot_is_at() {
	local i
	for i in 0 1 2; do
		[ "$(owner_of "$1" "$i")" = "$2" ] || return 1
	done
}

refusals_come() {
	local i
	for i in 0 1 2; do
		if node "$i" info errorstats | grep -qE 'errorstat_(TRYAGAIN|ASK)'; then
			return
		fi
	done
	return 1
}

as_app() {
	local i
	for ((i = 0; i < CLUSTER_NODES; i++)); do
		node "$i" acl setuser app reset on '>pw' "$@" >/dev/null
	done
	MQ_URL=redis-cluster://app:pw@${CLUSTER_URL#*//}
}
