# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# A master named m, with two replicas and three sentinels, on free ports of 127.0.0.1.
# Load it behind common.
#
#   family_start [OPTION...]   all six, with more options for the servers; sets MQ_URL;
#                              $D has a folder for each: n1 to n3, s1 to s3
#   family_stop
#   node_run N [OPTION...]     a server that has gone, again
#   master                     the port of the master, as the sentinels see it
#   redis ARGS...              redis-cli at the master
#   node_of PORT               the number of that server
#   kill_master                SIGKILL, and waits for another one
#   family_mend                starts who is dead, as a replica; waits until everybody
#                              sees everybody, and the replicas are in step

redis() {
	at_port "$(master)" "$@"
}

node_run() {
	local n=$1 dir=$D/n$1
	shift
	mkdir -p "$dir"
	# shellcheck disable=SC2046 # two words
	redis-server --port "$(cat "$dir/port")" --bind 127.0.0.1 --dir "$dir" \
		--save '' --appendonly no --repl-diskless-sync-delay 0 \
		--pidfile "$dir/pid" --daemonize yes --logfile "$dir/log" \
		$(debug_allowed) "$@" >/dev/null
	eventually 10 listens "$(cat "$dir/port")"
}

family_start() {
	local n p
	D=$(own_dir)
	export D
	read -ra p <<<"$(free_ports 6)"
	MQ_URL=redis-sentinel://127.0.0.1:${p[3]},127.0.0.1:${p[4]},127.0.0.1:${p[5]}/m
	export MQ_URL
	for n in 1 2 3; do
		mkdir "$D/n$n"
		echo "${p[n - 1]}" >"$D/n$n/port"
	done
	node_run 1 "$@"
	for n in 2 3; do
		node_run "$n" --replicaof 127.0.0.1 "${p[0]}" "$@"
	done
	eventually 20 in_step "${p[0]}"
	for n in 1 2 3; do
		sentinel_run "$D/s$n" "${p[n + 2]}" "${p[0]}" 2
	done
	eventually 30 family_whole
}

family_stop() {
	local f
	for f in "$D"/*/pid; do
		kill -KILL "$(cat "$f")" 2>/dev/null || true
	done
	rm -rf "$D"
}

# The word of the majority.
master() {
	local n
	for n in 1 2 3; do
		at_port "$(cat "$D/s$n/port")" sentinel get-master-addr-by-name m |
			tail -n 1
	done | sort | uniq -c | sort -n | awk 'END {print $2}'
}

node_of() {
	local n
	for n in 1 2 3; do
		[ "$(cat "$D/n$n/port")" != "$1" ] || echo "$n"
	done
}

in_step() {
	[ "$(at_port "$1" info replication | grep -c state=online)" = 2 ]
}

# sees SENTINEL MASTER
sees() {
	at_port "$1" sentinel master m | paste - - | awk -v port="$2" '
		$1 == "port" { n += $2 == port }
		$1 == "flags" { n += $2 == "master" }
		$1 == "num-slaves" { n += $2 == 2 }
		$1 == "num-other-sentinels" { n += $2 == 2 }
		END { exit n != 4 }' &&
		[ "$(at_port "$1" sentinel replicas m | grep -A 1 -x flags |
			grep -cx slave)" = 2 ]
}

family_whole() {
	local n m
	m=$(master)
	in_step "$m" || return 1
	for n in 1 2 3; do
		sees "$(cat "$D/s$n/port")" "$m" || return 1
	done
}

master_is_not() {
	local m
	m=$(master)
	[ "$m" != "$1" ] && [ "$(at_port "$m" role 2>/dev/null | head -n 1)" = master ]
}

kill_master() {
	local port
	port=$(master)
	kill -KILL "$(cat "$D/n$(node_of "$port")/pid")"
	eventually 30 master_is_not "$port"
}

family_mend() {
	local n
	for n in 1 2 3; do
		! gone "$(cat "$D/n$n/pid")" ||
			node_run "$n" --replicaof 127.0.0.1 "$(master)"
	done
	eventually 20 family_whole
}
