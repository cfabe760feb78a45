# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What all .bats files share.  Load it first, or server.bash, which is enough for most.
#
#   server_start [OPT…]   a private redis-server for this file (in setup_file)
#   server_stop           and its end (in teardown_file)
#   redis ARGS...         what redis-cli prints of it; short commands take no process
#   redis_at              options for redis-cli in a script: the server, or the node
#                         of queue q
#   sentinel_run DIR PORT MASTER QUORUM [LINE...]   a sentinel of the server at that port,
#                         with more lines in its file; its process is in DIR/pid
#   url_as [USER:PW]      where they find it as somebody else
#   no_cluster REASON     not with TOPOLOGY=cluster: in a test, or in setup_file
#   no_static REASON      not with static tools, which take no library of LD_PRELOAD
#   no_sentinel REASON    not with TOPOLOGY=sentinel
#   replica_beside        with TOPOLOGY=sentinel, a replica that the sentinel knows, and
#                         never makes the master
#   free_ports N          ports in a row, for servers and nodes of a cluster, that nobody
#                         else gets, as ports.sh says
#   at_port PORT ARGS...       redis-cli there
#   run_mq STATUS TOOL…   a tool, which must end with STATUS; sets $output and
#                         $stderr; what is on stdin reaches it
#   short_names           in $output and $stderr, queues without the namespace that
#                         RSMQ needs on a cluster; as run_mq does it
#   start_mq TOOL…        a tool in the background; its pid in $pid, its output
#                         in $T/out and $T/err
#   stop_mq [SIGNAL [STATUS]]   end it, and set $status, which must be that
#   dies                  a consumer, the only one: it is killed, and its lease is over
#   ends_with STATUS      it ends by itself, with that
#   listens_at SOCKET     whether connections are taken there
#   ends_within S         it ends by then, as eventually counts; sets $status
#   eventually S CMD…     until CMD succeeds, but at most S seconds, as long as
#                         they are on a machine that has other things to do, too
#   lines_reach FILE N    it has so many lines, or more
#   joined [N]            so many consumers are listed, one if not said
#   no_sooner MS CMD…     CMD, which takes that long at least
#   no_clients            nobody is connected, sentinels left aside
#   promptly DO UNTIL [UNDO]  without the help of a tick of the only consumer: DO,
#                         until UNTIL; with UNDO before another try.  All are
#                         given to eval
#   script NAME [INTERP]  an executable script $T/NAME, its text on stdin
#   held Q                what the raw keys hold: "ready delayed unacked rejected"
#   element Q STATE [N]   the Nth raw message there, and a newline
#   heartbeat             waits for the next heartbeat of the only connection,
#                         about 15 seconds without messages
#   tick                  lets a second go by, and with it what consumers do once
#                         a second
#   header NAME           the value of a header of the element on stdin, as JSON
#                         has it between the quotes
#   peak COMMAND…         it ends with 0; sets $output, and $peak, its memory in KiB
#
# $BUILD has the tools, $T is this test's own directory, $D this file's.

bats_require_minimum_version 1.5.0

# The tests see only what they set themselves.
unset MQ_URL MQ_PASSWORD_FILE REDISCLI_AUTH MQ_LAYOUT NO_COLOR REDIS_SERVER
export LC_ALL=C.UTF-8

root=${BATS_TEST_DIRNAME%/*/*}
BUILD=${MQ_BUILD:-build}
[[ $BUILD == /* ]] || BUILD=$root/$BUILD

# Their load.bash runs dirname for each of these, before each test.
for lib in /usr/lib/{bats/,}bats-{support,assert}/src/*.bash; do
	# shellcheck disable=SC1090
	[ ! -e "$lib" ] || . "$lib"
done

# The sanitizers must speak where the test can see it, and nowhere else.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=0:exitcode=99}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1:exitcode=99}

# A short path: the name of a socket has to fit into 107 bytes.
own_dir() {
	mktemp -d "${TMPDIR:-/tmp}/mq.XXXXXX"
}

server_start() {
	D=$(own_dir)
	export D
	server_run "$@"
}

# What lets DEBUG be used, which Redis 6.2 does in any case.
debug_allowed() {
	case $(redis-server --version) in
	*v=6.*) ;;
	*) echo --enable-debug-command yes ;;
	esac
}

# Starts the server on what is in $D, for the first time or again.
server_run() {
	# shellcheck disable=SC2046 # two words
	redis-server --port 0 --unixsocket "$D/redis.sock" --dir "$D" \
		--save '' --appendonly no $(debug_allowed) \
		--pidfile "$D/redis.pid" --daemonize yes \
		--logfile "$D/redis.log" $(on_port "$@") "$@" >/dev/null
	eventually 10 server_answers || {
		cat "$D/redis.log" >&2
		return 1
	}
	[ "${killed-}" != "$D" ] || write_anew
	[ "${TOPOLOGY-}" != sentinel ] || sentinel_beside
	server_url
}

# What mq-server(7) says to do after a crash: else the next start may carry out what
# this one took back.
write_anew() {
	killed=
	[ "$(redis config get appendonly | sed -n 2p)" = yes ] || return 0
	redis bgrewriteaof >/dev/null
	eventually 10 is_written_anew
}

is_written_anew() {
	[ "$(redis info persistence |
		grep -c '^aof_rewrite_\(in_progress\|scheduled\):0')" = 2 ]
}

server_url() {
	export MQ_URL="unix://$D/redis.sock"
	[ -z "${TOPOLOGY-}" ] || MQ_URL=$(url_as '')
}

# The tools find the server by a sentinel, which TOPOLOGY asks for, or at its socket.
url_as() {
	case ${TOPOLOGY-} in
	sentinel) echo "redis-sentinel://${1:+$1@}127.0.0.1:$(cat "$D/sentinel/port")/m" ;;
	*) echo "unix://${1:+$1@}$D/redis.sock" ;;
	esac
}

# Sentinels know servers by their ports, and bash cannot connect to a socket.
on_port() {
	[[ " $* " != *' --port '* || ${TOPOLOGY-} = sentinel ]] || return 0
	[ -e "$D/port" ] || free_ports 1 >"$D/port"
	echo "--port $(cat "$D/port") --bind 127.0.0.1"
}

# It goes on when the server is gone, and has nothing to put in its place.
sentinel_beside() {
	[ ! -e "$D/sentinel/port" ] || return 0
	sentinel_run "$D/sentinel" "$(free_ports 1)" \
		"$(redis config get port | tail -n 1)" 1
}

replica_beside() {
	[ "${TOPOLOGY-}" = sentinel ] || return 0
	mkdir "$D/replica"
	redis-server --port "$(free_ports 1)" --bind 127.0.0.1 --dir "$D/replica" \
		--replica-priority 0 --save '' --replicaof 127.0.0.1 "$(cat "$D/port")" --daemonize yes \
		--pidfile "$D/replica/pid" --logfile "$D/replica/log" >/dev/null 3>&-
	eventually 20 sentinel_has_replica
}

sentinel_has_replica() {
	at_port "$(cat "$D/sentinel/port")" sentinel replicas m | grep -qx slave
}

free_ports() {
	"$root/tests/helpers/ports.sh" "$1"
}

at_port() {
	redis-cli -p "$@"
}

# Sentinels that have just begun know each other late, but for these settings, which
# Redis 6.2 does not have.
sentinel_run() {
	local dir=$1 port=$2 master=$3 quorum=$4
	shift 4
	mkdir -p "$dir"
	{
		printf '%s\n' "port $port" "bind 127.0.0.1" "dir $dir" \
			"daemonize yes" "pidfile $dir/pid" "logfile $dir/log" \
			"sentinel monitor m 127.0.0.1 $master $quorum" \
			"sentinel down-after-milliseconds m 1500" \
			"sentinel failover-timeout m 4000" \
			"sentinel parallel-syncs m 2" "$@"
	} >"$dir/conf"
	redis-server "$dir/conf" --sentinel >/dev/null 3>&-
	echo "$port" >"$dir/port"
	eventually 10 listens "$port"
	at_port "$port" sentinel debug info-period 500 publish-period 200 \
		>/dev/null 2>&1 || true
}

# It may want a password.
listens() {
	at_port "$1" ping 2>/dev/null | grep -q -e PONG -e NOAUTH
}

server_answers() {
	[ "$(redis ping 2>/dev/null)" = PONG ]
}

server_pid() {
	cat "$D/redis.pid"
}

# SIGKILL, and wait until it has gone.
server_kill() {
	local p pids
	mapfile -t pids < <(server_pid)
	kill -KILL "${pids[@]}"
	for p in "${pids[@]}"; do
		eventually 10 gone "$p"
	done
	killed=$D
}

server_stop() {
	local p
	redis shutdown nosave >/dev/null 2>&1 || true
	for p in "${D-}"/{sentinel,replica}/pid; do
		[ ! -e "$p" ] || kill -KILL "$(cat "$p")"
	done
	[ -z "${D-}" ] || rm -rf "$D"
}

redis_at() {
	echo "-s $D/redis.sock"
}

redis() {
	local port fd

	[ "${1-}" != --raw ] || shift
	case ${1-} in
	acl | config | dbsize | debug | del | eval | exists | expire | flushall | get | \
		hdel | hexists | hget | hlen | hmget | hset | keys | lindex | llen | lmove | \
		lpop | lpush | lrem | persist | pexpire | ping | pttl | rename | rpop | rpoplpush | \
		rpush | sadd | scard | script | set | sismember | smembers | srem | time | ttl | \
		type | zadd | zcard | zrem | zscore)
		if [ -z "${REDISCLI_AUTH-}" ] && [ -e "$D/port" ] && read -r port <"$D/port" &&
			{ exec {fd}<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null; then
			redis_asked "$@"
			return
		fi
		;;
	esac
	redis-cli -s "$D/redis.sock" "$@"
}

# On connection $fd.  At its end it is gone from the server, too.
redis_asked() {
	local LC_ALL=C command arg status=0

	printf -v command '*%d\r\n' $#
	for arg; do
		printf -v arg '$%d\r\n%s\r\n' ${#arg} "$arg"
		command+=$arg
	done
	# shellcheck disable=SC2016 # no variables
	printf '%s*1\r\n$4\r\nquit\r\n' "$command" >&"$fd"
	redis_reply || status=1
	read -rd '' -u "$fd" arg || true
	exec {fd}>&-
	return "$status"
}

# As redis-cli prints it, byte by byte.
redis_reply() {
	local line n part

	IFS= read -ru "$fd" line || return 1
	line=${line%$'\r'}
	case $line in
	[+:]*) printf '%s\n' "${line:1}" ;;
	-*) printf '%s\n\n' "${line:1}" ;;
	'$-1' | '*-1' | '*0') echo ;;
	'*'*)
		for ((n = ${line:1}; n > 0; n--)); do
			redis_reply
		done
		;;
	'$'*)
		n=$((${line:1} + 2))
		# For bash, each byte is a call.
		if ((n > 1500)); then
			head -c "$((n - 2))" <&"$fd"
			echo
			read -ru "$fd" line
			return
		fi
		# Up to a zero byte, or to the end.
		while IFS= read -rd '' -n "$n" -u "$fd" part && ((n > ${#part})); do
			printf '%s\0' "$part"
			n=$((n - ${#part} - 1))
		done
		printf '%s\n' "${part%$'\r\n'}"
		;;
	esac
}

# The name is there before somebody listens.
listens_at() {
	grep -q " 00010000 .* $1\$" /proc/net/unix
}

gone() {
	! kill -0 "$1" 2>/dev/null
}

# A limit is for what never comes true; what may not take long says so itself.
eventually() {
	local end=$((SECONDS + 4 * $1)) nap nap_ms=20
	shift
	! "$@" || return 0
	# Nothing ever comes there.
	exec {nap}<> <(:)
	until "$@"; do
		if ((SECONDS >= end)); then
			echo "never came true: $*" >&2
			exec {nap}<&-
			return 1
		fi
		# Looking takes more of a processor than napping.
		read -rt "0.0$nap_ms" -u "$nap" || true
		((nap_ms >= 90)) || nap_ms=$((nap_ms + 10))
	done
	exec {nap}<&-
}

short_names() {
	:
}

run_mq() {
	local want=$1 tool=$2
	local err=${BATS_TEST_TMPDIR:-$BATS_FILE_TMPDIR}/stderr.$BASHPID
	shift 2
	echo "\$ $tool $*"
	status=0
	output=$(exec timeout -k 5 400 "$BUILD/$tool" "$@" 2>"$err") || status=$?
	read -rd '' stderr <"$err" || true
	IFS=$'\n' read -rd '' -a lines <<<"$output" || true
	IFS=$'\n' read -rd '' -a stderr_lines <<<"$stderr" || true
	short_names
	if [[ /$want/ != */$status/* ]]; then
		echo "exit status $status, not $want"
		echo "stdout: $output"
		echo "stderr: $stderr"
		return 1
	fi
}

start_mq() {
	local tool=$1
	shift
	# Before it runs: what one before has said is not this one's.
	: >"$T/out"
	: >"$T/err"
	"$BUILD/$tool" "$@" >"$T/out" 2>"$T/err" 3>&- &
	pid=$!
}

stop_mq() {
	kill -"${1:-TERM}" "$pid"
	status=0
	wait "$pid" || status=$?
	[ -z "${2-}" ] || assert_equal "$status" "$2"
}

dies() {
	stop_mq KILL
	redis del "rmq::connection::$(connections)::heartbeat" >/dev/null
}

ends_with() {
	status=0
	wait "$pid" || status=$?
	assert_equal "$status" "$1"
}

# Bash has waited for a child of its own as soon as that is dead.
ends_within() {
	eventually "$1" gone "$pid"
	status=0
	wait "$pid" || status=$?
}

# The state of a queue: "ready delayed unacked rejected consumers".
state() {
	local cells=()

	{ read -r _ && read -ra cells; } < <("$BUILD/mq-stats" "$1") || true
	echo "${cells[*]:1:5}"
}

state_is() {
	[ "$(state "$1")" = "$2" ]
}

script() {
	{
		printf '#!%s\n' "${2:-/bin/sh}"
		cat
	} >"$T/$1"
	chmod +x "$T/$1"
}

# forget_past: removes what rounds of cleaning have noted.
forget_past() {
	local key

	while read -r key; do
		redis del "$key" >/dev/null
	done < <(redis --raw keys '*' | grep -E ':X?(minutes|hours)$')
}

held() {
	redis eval 'local n = redis.call
		local unacked = 0
		for _, k in ipairs(n("KEYS", "*")) do
			if k:find("::queue::[" .. ARGV[1] .. "]::unacked", 1, true) then
				unacked = unacked + n("LLEN", k)
			end
		end
		local q = "rmq::queue::[" .. ARGV[1] .. "]::"
		return n("LLEN", q .. "ready") .. " " .. n("ZCARD", q .. "delayed") ..
			" " .. unacked .. " " .. n("LLEN", q .. "rejected")' 0 "$1"
}

held_is() {
	[ "$(held "$1")" = "$2" ]
}

heartbeat() {
	local key
	key=rmq::connection::$(connections)::heartbeat
	redis expire "$key" 30 >/dev/null
	eventually 5 ttl_above 30 "$key"
}

tick() {
	read -rt 1.2 <> <(:) || true
}

# promptly ACT DONE [BEFORE]: what ACT brings about is DONE sooner than any tick
# could see to it.  A busy machine may take longer, but not every time.
promptly() {
	local began end=$((SECONDS + 180))

	while
		began=${EPOCHREALTIME/./}
		eval "$1"
		eventually 10 eval "$2" || return 1
		((${EPOCHREALTIME/./} - began >= 900000))
	do
		if ((SECONDS >= end)); then
			echo "never before the next tick: $2" >&2
			return 1
		fi
		eval "${3-}"
	done
}

lines_reach() {
	local all
	[ -e "$1" ] && mapfile -t all <"$1" && ((${#all[@]} >= $2))
}

ttl_above() {
	(($(redis ttl "$2") > $1))
}

# element QUEUE STATE [INDEX]: -1 is the next one of a list.
element() {
	case $2 in
	delayed) redis zrange "rmq::queue::[$1]::delayed" "${3:-0}" "${3:-0}" |
		tail -c +33 ;;
	*) redis lindex "rmq::queue::[$1]::$2" "${3:-0}" ;;
	esac
}

header() {
	tail -c +6 | head -n 1 |
		perl -ne '/"\Q'"$1"'\E":\["((?:[^"\\]++|\\.)*)"/ and print $1'
}

peak() {
	run python3 -IS -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdin=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' "$@"
	assert_success
	peak=${lines[-1]}
}

# But the one that asks.
no_clients() {
	[ "$(redis client list | grep -vc ' name=sentinel')" = 1 ]
}

# The connections that are listed: one a line, and no line when there is none.
connections() {
	local all

	all=$(redis smembers rmq::connections)
	[ -z "$all" ] || printf '%s\n' "$all"
}

joined() {
	[ "$(connections | grep -c .)" = "${1:-1}" ]
}

no_sooner() {
	local from=${EPOCHREALTIME/./}
	"${@:2}"
	assert [ $((${EPOCHREALTIME/./} - from)) -ge "${1}000" ]
}

common_setup() {
	# The trap by which bats notes each command is not for those of helpers.
	set +T
	# Loading this file again for each test has unset it.
	[ -z "${D-}" ] || server_url
	T=$(own_dir)
	export T
	redis flushall >/dev/null
}

common_teardown() {
	local j
	# A function in the background is a shell, with a child.
	jobs -p >"$BATS_TEST_TMPDIR/jobs"
	while read -r j; do
		pkill -KILL -P "$j" || true
		kill -KILL "$j" 2>/dev/null || true
	done <"$BATS_TEST_TMPDIR/jobs"
	wait 2>/dev/null || true
	rm -rf "$T"
}

no_cluster() {
	[ "${TOPOLOGY-}" != cluster ] || skip "$1"
}

no_static() {
	ldd "$BUILD/mq-publish" >/dev/null 2>&1 || skip "$1"
}

no_sentinel() {
	[ "${TOPOLOGY-}" != sentinel ] || skip "$1"
}

[ "${TOPOLOGY-}" != cluster ] || load ../helpers/on-cluster
