# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# With TOPOLOGY=cluster, the server of the tests is a cluster of three masters, and
# what common.bash says of it is about all of them.  Loaded by common.bash.
#
#   redis ARGS...     a command of a key goes to the key's node, one without keys to all
#                     of them, and the replies are put together.  Tests write keys as on
#                     one server, rmq::queue::[Q]::x; these go to rmq::queue::{Q}::x.
#   at_node N ARGS    redis-cli at the Nth node, from 0; its folder is $D/N
#   server_pid        the processes of all
#
# The heartbeat of a connection outlasts its leases; so when a test deletes the one, the
# others are gone, too.  Users of these tests may ask for the slots.

CLUSTER_SLOTS=(0-5460 5461-10922 10923-16383)

server_run() {
	local i base
	if [ ! -e "$D/port" ]; then
		read -r base _ < <(free_ports 3)
		echo "$base" >"$D/port"
	fi
	for i in 0 1 2; do
		[ -d "$D/$i" ] || node_configure "$i"
		# shellcheck disable=SC2046 # two words
		redis-server --port "$(node_port "$i")" --bind 127.0.0.1 --dir "$D/$i" \
			--unixsocket "$D/$i/redis.sock" --cluster-enabled yes \
			--save '' --appendonly no $(debug_allowed) --daemonize yes \
			--pidfile "$D/$i/redis.pid" --logfile "$D/$i/redis.log" \
			"$@" >/dev/null
	done
	eventually 20 server_answers || {
		cat "$D"/?/redis.log >&2
		return 1
	}
	server_url
}

# Nodes that know each other from the start are a cluster two seconds later, and
# redis-cli --cluster create takes twice that.
node_configure() {
	local j base

	base=$(cat "$D/port")
	mkdir "$D/$1"
	for j in 0 1 2; do
		printf '%040x 127.0.0.1:%d@%d %smaster - 0 0 %d connected %s\n' \
			$((j + 1)) $((base + j)) $((base + j + 10000)) \
			"$([ "$j" != "$1" ] || echo myself,)" $((j + 1)) \
			"${CLUSTER_SLOTS[j]}"
	done >"$D/$1/nodes.conf"
	echo vars currentEpoch 3 lastVoteEpoch 0 >>"$D/$1/nodes.conf"
}

node_port() {
	echo $(($(cat "$D/port") + $1))
}

at_node() {
	redis-cli -p "$(node_port "$1")" "${@:2}"
}

redis_at() {
	echo "-c -p $(node_port "$(node_of_key '{q}')")"
}

# RSMQ has to be in one slot.
url_as() {
	local ns=

	[ "${LAYOUT:-${MQ_LAYOUT-}}" != rsmq ] || ns='?ns={rsmq}'
	echo "redis-cluster://${1:+$1@}127.0.0.1:$(node_port 0),127.0.0.1:$(node_port 1)$ns"
}

# The tools name queues of that namespace with it.
short_names() {
	local -n text

	[ "${MQ_LAYOUT-}" = rsmq ] || return 0
	for text in output stderr lines stderr_lines; do
		# What follows the namespace of a URL is no name.
		text=("${text[@]//ns=\{rsmq\}:/$'\1'}")
		text=("${text[@]//\{rsmq\}:/}")
		text=("${text[@]//$'\1'/ns=\{rsmq\}:}")
	done
}

server_answers() {
	local i

	for i in 0 1 2; do
		at_node "$i" cluster info 2>/dev/null | grep -q cluster_state:ok || return 1
	done
}

server_pid() {
	cat "$D"/?/redis.pid
}

server_stop() {
	local p

	for p in $(server_pid 2>/dev/null); do
		kill -KILL "$p" 2>/dev/null || true
	done
	[ -z "${D-}" ] || rm -rf "$D"
}

# to_cluster ARG: sets $word.  A name may be any bytes.
to_cluster() {
	local LC_ALL=C

	word=$1
	while [[ $word == *::queue::* ]] &&
		[[ $word =~ ^(.*::queue::)\\?\[(.*)\](::.*)$ ||
			$word =~ ^(.*::queue::)\\?\[([^]]*)\](.*)$ ]]; do
		word="${BASH_REMATCH[1]}{${BASH_REMATCH[2]%\\}}${BASH_REMATCH[3]}"
	done
	# What is left is in a name.
	[[ $word != *"::queue::{"* ]] || word=${word//::queue::[/::queue::\{}
	case $word in
	rsmq:*) word="{rsmq}:${word#rsmq:}" ;;
	'~rsmq:'*) word="~{rsmq}:${word#'~rsmq:'}" ;;
	esac
}

text_to_cluster() {
	sed -E 's/(::queue::)\[([^]" ]*)\]/\1{\2}/g; s/(^| )"?rsmq:/\1{rsmq}:/g'
}

text_from_cluster() {
	sed -E 's/(::queue::)\{(.*)\}(::|$)/\1[\2]\3/; s/^\{rsmq\}:/rsmq:/'
}

redis() {
	local options=() words=() word

	while [[ ${1-} == -* ]]; do
		options+=("$1")
		case $1 in
		-r | -i | -t | --user | --pass) options+=("$2") && shift ;;
		esac
		shift
	done
	for word; do
		# Rules that were printed for a cluster are as they have to be.
		[[ " $* " == *' +asking '* ]] || to_cluster "$word"
		words+=("$word")
	done
	set -- "${words[@]}"
	case ${1-},${2-} in
	, | --pipe,) redis_lines "${options[@]}" ;;
	[kK][eE][yY][sS],*)
		at_all "${options[@]}" "$@" | text_from_cluster | grep -v '^$' || true ;;
	dbsize,* | slowlog,len) at_all "${options[@]}" "$@" | awk '{n += $1} END {print n}' ;;
	info,*) at_all "${options[@]}" "$@" | add_info ;;
	acl,setuser) acl_setuser "$@" ;;
	debug,sleep | monitor,*) at_all_at_once "$@" ;;
	client,list) client_list ;;
	client,kill) client_kill "$@" ;;
	client,pause | client,unpause | slowlog,* | \
		acl,log | debug,digest) at_all "${options[@]}" "$@" ;;
	echo,* | flushall,* | flushdb,* | shutdown,* | save,* | config,* | acl,* | script,* | \
		debug,* | replicaof,*) at_all "${options[@]}" "$@" | merge_same ;;
	del,*::heartbeat) heartbeat_end "$@" ;;
	del,* | exists,* | unlink,*) each_key "$@" ;;
	eval,*) redis_eval "$@" ;;
	*) redis-cli -c -p "$(node_port 0)" "${options[@]}" "$@" ;;
	esac
}

# A script without keys names them, or looks for them on each node.
redis_eval() {
	local tag='::queue::([{][^}" ]*[}])'

	if [ "$3" != 0 ]; then
		redis-cli -c -p "$(node_port 0)" "${options[@]}" "$@"
	elif [[ $2 == *rsmq:* ]]; then
		at_node "$(node_of_key '{rsmq}')" "${options[@]}" "$1" \
			"${2//rsmq:/\{rsmq\}:}" "${@:3}"
	elif [[ $2 =~ $tag ]]; then
		at_node "$(node_of_key "${BASH_REMATCH[1]}")" "${options[@]}" "$@"
	elif [[ $2 == *'"KEYS"'* ]]; then
		at_all "${options[@]}" "$@" | grep -av '^$' || true
	else
		at_node 0 "${options[@]}" "$@"
	fi
}

# What all say in the same words they say once.
merge_same() {
	awk '!said[$0]++'
}

at_all() {
	local i

	for i in 0 1 2; do
		at_node "$i" "$@"
	done
}

# Rules that --print-acl has printed say what a cluster needs.
acl_setuser() {
	[[ " $* " == *' +asking '* ]] || set -- "$@" +cluster +asking
	at_all "${options[@]}" "$@" | merge_same
}

# An id says its node, too, with its last digit; who asks is one client.
client_list() {
	local i

	for i in 0 1 2; do
		at_node "$i" client list | sed "s/^id=[0-9]*/&$i/" |
			if [ "$i" = 0 ]; then cat; else grep -v 'cmd=client|list'; fi
	done
}

client_kill() {
	if [ "$3" = id ]; then
		at_node $(($4 % 10)) "${@:1:3}" $(($4 / 10)) "${@:5}"
	else
		at_all "$@"
	fi
}

at_all_at_once() {
	local i all=()

	for i in 0 1 2; do
		at_node "$i" "$@" &
		all+=($!)
	done
	wait "${all[@]}"
}

# Commands on stdin, where transactions are for one node.
redis_lines() {
	local options=() lines key

	for word; do
		[ "$word" = --pipe ] || options+=("$word")
	done
	lines=$(mktemp "$T/XXXXXX")
	text_to_cluster >"$lines"
	if grep -qx flushall "$lines"; then
		at_all flushall | merge_same
		sed -i /^flushall$/d "$lines"
	fi
	if grep -qix multi "$lines"; then
		key=$(grep -o '[^ "]*{[^} ]*}[^ "]*' "$lines" | head -n 1)
		at_node "$(node_of_key "$key")" "${options[@]}" <"$lines"
	else
		redis-cli -c -p "$(node_port 0)" "${options[@]}" <"$lines" |
			grep -av '^-> Redirected to slot' || true
	fi
	rm -f "$lines"
}

node_of_key() {
	echo $((($(at_node 0 cluster keyslot "$1") * 3 + 2) / 16384))
}

# del KEY...: they may be on several nodes.
each_key() {
	local key n=0

	for key in "${@:2}"; do
		n=$((n + $(redis-cli -c -p "$(node_port 0)" "$1" "$key")))
	done
	echo "$n"
}

heartbeat_end() {
	local key

	for key in $(at_all keys "${2%heartbeat}queue::*::lease"); do
		redis-cli -c -p "$(node_port 0)" del "$key" >/dev/null
	done
	each_key "$@"
}

# The sums of all numbers.
add_info() {
	tr -d '\r' | awk -F: '
		function add(old, new, i, n, o, x, y, sum) {
			if (new ~ /^[0-9.]+$/)
				return old + new
			if (old == "" || new !~ /=/)
				return new
			n = split(new, o, ",")
			split(old, x, ",")
			for (i = 1; i <= n; i++) {
				split(o[i], y, "=")
				sum = sum (i > 1 ? "," : "") y[1] "=" \
				    y[2] + substr(x[i], length(y[1]) + 2)
			}
			return sum
		}
		NF > 1 {
			if (!($1 in value))
				order[++keys] = $1
			value[$1] = add(value[$1], substr($0, length($1) + 2))
		}
		END {
			for (i = 1; i <= keys; i++)
				print order[i] ":" value[order[i]] "\r"
		}'
}

# All keys of a queue are on one node.
held() {
	at_node "$(node_of_key "{$1}")" eval 'local n = redis.call
		local unacked = 0
		for _, k in ipairs(n("KEYS", "*")) do
			if k:find("::queue::{" .. ARGV[1] .. "}::unacked", 1, true) then
				unacked = unacked + n("LLEN", k)
			end
		end
		local q = "rmq::queue::{" .. ARGV[1] .. "}::"
		return n("LLEN", q .. "ready") .. " " .. n("ZCARD", q .. "delayed") ..
			" " .. unacked .. " " .. n("LLEN", q .. "rejected")' 0 "$1"
}
