#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The private server: one per user, started by whichever tool comes first.
# topology: own

ready='rmq::queue::[jobs]::ready'
load ../helpers/common

setup() {
	unset MQ_URL
	# Short: the path of a unix socket has 107 bytes.
	STATE=$(mktemp -d -t mq.XXXXXX)
	export XDG_STATE_HOME=$STATE
	# No configuration of the person who runs the tests.
	export XDG_CONFIG_HOME=$STATE/config
	DIR=$STATE/mq
}

teardown() {
	local sock

	while IFS= read -r -d '' sock; do
		redis-cli -s "$sock" shutdown nosave >/dev/null 2>&1 || true
	done < <(find "$STATE" -name redis.sock -print0)
	rm -rf "$STATE"
}

cli() {
	redis-cli -s "$DIR/redis.sock" "$@"
}

config() {
	cli config get "$1" | sed -n 2p
}

server_pid() {
	cli info server | tr -d '\r' | sed -n 's/^process_id://p'
}

# How often a server was started: says Redis and Valkey alike.
starts() {
	grep -c ' is starting ' "$DIR/redis.log"
}

kill_server() {
	kill -KILL "$(server_pid)"
	eventually 10 server_is_gone
}

server_is_gone() {
	! cli ping >/dev/null 2>&1
}

# publish_at_once FROM TO: a publisher of each message at once; each must succeed.
publish_at_once() {
	local i pid pids=()

	for i in $(seq "$1" "$2"); do
		timeout 180 "$BUILD/mq-publish" jobs "m$i"$'\n' 3>&- &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid"
	done
}

# consumes N: the queue holds m1 to mN, each once, in whatever order.
consumes() {
	run_mq 0 mq-consume --drain jobs
	assert_equal "$(sort <<<"$output")" "$(seq -f 'm%g' "$1" | sort)"
}

@test "private: the first tool starts a server of this user alone, which loses nothing" {
	run_mq 0 mq-publish jobs $'m1\n'
	run_mq 0 mq-publish jobs $'m2\n'
	run_mq 0 mq-stats jobs
	consumes 2
	assert_equal "$(starts)" 1
	assert_equal "$(stat -c %a "$DIR" "$DIR/redis.sock" | xargs)" "700 600"
	assert_equal "$(find "$DIR" -type f -perm /077)" ""
	while IFS='|' read -r name value; do
		assert_equal "$name: $(config "$name")" "$name: $value"
	done <<-END
		port|0
		appendonly|yes
		appendfsync|always
		maxmemory-policy|noeviction
		save|
		dir|$DIR
	END
}

@test "private: where the server is, whose parents are made" {
	local how place

	cd "$STATE"
	while IFS='|' read -r how place; do
		eval "$how" run_mq 0 mq-publish jobs hello
		assert [ -S "$STATE/$place/redis.sock" ]
		MQ_URL= run_mq 0 mq-consume -u "private:$STATE/$place" --drain jobs
		assert_equal "$place: $output" "$place: hello"
	done <<-'END'
		MQ_URL=private:|mq
		XDG_STATE_HOME=$STATE/a/b|a/b/mq
		XDG_STATE_HOME= HOME=$STATE|.local/state/mq
		MQ_URL=private:$STATE/here|here
		MQ_URL=private:sub/there|sub/there
	END
	run_mq 0 mq-publish -u "private:$STATE/option" jobs hello
	assert [ -S "$STATE/option/redis.sock" ]
}

@test "private: twenty publishers at once get one server, and so they do when it was killed" {
	publish_at_once 1 20
	assert_equal "$(starts)" 1
	kill_server
	# What a dead one leaves is no obstacle.
	assert [ -S "$DIR/redis.sock" ]
	publish_at_once 21 40
	assert_equal "$(starts)" 2
	consumes 40
}

@test "private: the end of the file torn off in a crash is no obstacle" {
	run_mq 0 mq-publish jobs $'m1\n'
	run_mq 0 mq-publish other x
	kill_server
	truncate -s -3 "$(find "$DIR" -name '*.incr.aof' -o -name appendonly.aof)"
	consumes 1
}

# What Redis leaves of a transaction whose last command is not whole.
@test "private: what a crash took back does not come back at the next start" {
	run_mq 0 mq-publish jobs $'m1\n'
	kill_server
	printf '*1\r\n$5\r\nMULTI\r\n*2\r\n$3\r\nDEL\r\n$%s\r\n%s\r\n*1\r\n$4\r\nEX' \
		"${#ready}" "$ready" >>"$(find "$DIR" -name '*.incr.aof' -o -name appendonly.aof)"
	run_mq 0 mq-publish jobs $'m2\n'
	written_anew() {
		! grep -rq DEL "$DIR/appendonly"*
	}
	eventually 10 written_anew
	run_mq 0 mq-publish jobs $'m3\n'
	kill_server
	consumes 3
}

@test "private: a starter killed half-way is no obstacle" {
	local seconds

	for seconds in 0.001 0.002 0.003 0.005 0.008 0.012 0.02 0.03; do
		timeout -s KILL "$seconds" "$BUILD/mq-publish" other x 3>&- || true
		run_mq 0 mq-publish jobs $'m\n'
		kill_server
	done
	run_mq 0 mq-consume --drain jobs
	assert_equal "$(wc -l <<<"$output")" 8
}

@test "private: a server that cannot be found is a matter of setup" {
	local tool

	mkdir "$STATE/bin"
	for tool in bash cat date env head mkdir mktemp rm sh sleep tail timeout tr
	do
		ln -s "$(command -v "$tool")" "$STATE/bin/$tool"
	done
	PATH=$STATE/bin run_mq 78 mq-publish jobs x
	assert_regex "$stderr" 'redis-server, valkey-server: not found; install one '
	assert_regex "$stderr" 'name a server with -u or MQ_URL'
	# Any of the two will do.
	ln -s "$(command -v redis-server)" "$STATE/bin/valkey-server"
	PATH=$STATE/bin run_mq 0 mq-publish jobs x
}

@test "private: a directory of somebody else, or that others can write to, is refused" {
	local foreign=/usr mode

	if [ "$(id -u)" -eq 0 ]; then
		foreign=$STATE/foreign
		mkdir -m 755 "$foreign"
		chown 65534 "$foreign"
	fi
	run_mq 78 mq-publish -u "private:$foreign" jobs x
	assert_regex "$stderr" 'belongs to user [0-9]+, not to you'
	assert [ ! -e "$foreign/lock" ]
	mkdir "$DIR"
	ln -s "$DIR" "$STATE/link"
	for mode in 770 707 777; do
		chmod "$mode" "$DIR"
		for dir in "$DIR" "$STATE/link"; do
			run_mq 78 mq-publish -u "private:$dir" jobs x
			assert_regex "$stderr" 'others can write to it \(chmod 700 '
		done
		assert_equal "$(stat -c %a "$DIR")$(ls -A "$DIR")" "$mode"
	done
}

@test "private: an over-long path is refused before anything is made" {
	local long

	long=$STATE/$(printf '%0100d' 0)
	XDG_STATE_HOME=$long run_mq 78 mq-publish jobs x
	assert_regex "$stderr" 'choose a shorter directory'
	assert [ ! -e "$long" ]
}

@test "private: blanks and quotes in the path" {
	local odd="a b's \"c\""

	# Valkey 8.1.1 cannot read the quotes that it writes.
	[[ $(redis-server --version) != 'Valkey server v=8.1.'[01]' '* ]] || odd="a b's"
	XDG_STATE_HOME="$STATE/$odd" run_mq 0 mq-publish jobs x
	DIR="$STATE/$odd/mq"
	assert_equal "$(config dir)" "$DIR"
	assert_equal "$(starts)" 1
}

@test "private: when the start fails, the reason in the log is told" {
	run_mq 0 mq-publish jobs x
	kill_server
	printf 'this is no such file\n' | dd conv=notrunc status=none \
	    of="$(find "$DIR" -name '*.incr.aof' -o -name appendonly.aof)"
	run_mq 78 mq-publish jobs x
	assert_regex "$stderr" "private server in $DIR: did not start: "
	assert_regex "$stderr" 'Bad file format reading the append only file'
	assert_regex "$stderr" "; see $DIR/redis.log"
}

# --- what it does not have of its starter ------------------------------------------

# limit WORDS SOFT: the server has this soft limit.
limit() {
	assert_regex "$(grep "^$1" "/proc/$(server_pid)/limits")" "^$1 +$2 "
}

@test "private: no limit of its starter, no priority, no signal, no environment, no file" {
	local p mask fd
	mkdir "$STATE/bin"
	cat >"$STATE/bin/redis-server" <<-.
		#!/bin/sh
		/usr/bin/env >"$STATE/env"
		PATH=\${PATH#*:} exec redis-server "\$@"
	.
	chmod +x "$STATE/bin/redis-server"
	(
		cd "$STATE"
		umask 0
		trap '' HUP USR1
		ulimit -S -n 64 -f 100 -t 5 -c unlimited -s 512
		# The sanitizer needs more than there is.
		[[ $BUILD == *address* ]] || ulimit -S -v 5000000
		PATH=$STATE/bin:$PATH LC_ALL=en_US.UTF-8 REDISCLI_AUTH=secret \
			chrt -b 0 ionice -c 3 choom -n 300 -- \
			taskset -c "$(first_cpu)" nice "$BUILD/mq-publish" jobs x 8>&1 | timeout 180 cat
	)
	# With the pipe's end in the server, cat would never have seen its end.
	p=$(server_pid)
	for fd in 0 1 2; do
		assert_equal "$(readlink "/proc/$p/fd/$fd")" /dev/null
	done
	limit 'Max open files' '[0-9]{4,}'
	limit 'Max file size' unlimited
	limit 'Max cpu time' unlimited
	limit 'Max address space' unlimited
	limit 'Max core file size' 0
	limit 'Max stack size' 8388608
	assert_equal "$(config maxclients)" 10000
	mask=$(sed -n 's/^Cpus_allowed_list:\s*//p' "/proc/$$/status")
	assert_equal "$(sed -n 's/^Cpus_allowed_list:\s*//p' "/proc/$p/status")" "$mask"
	# USR1 is 10, HUP Redis ignores itself.
	((!(0x$(sed -n 's/^SigIgn:\s*//p' "/proc/$p/status") & 1 << 9)))
	assert_equal "$(sed -n 's/^Umask:\s*//p' "/proc/$p/status")" 0077
	assert_equal "$(cat "/proc/$p/oom_score_adj")" 0
	assert_equal "$(ionice -p "$p")" "none: prio 0"
	assert_regex "$(chrt -p "$p")" SCHED_OTHER
	# Only who may set a priority can set it back.
	nice -n -1 true 2>/dev/null && assert_equal "$(ps -o ni= -p "$p" | xargs)" 0
	assert_equal "$(readlink "/proc/$p/cwd")" "$DIR"
	assert_equal "$(ps -o sid= -p "$p" | xargs)" "$p"
	assert_equal "$(sed 's/=.*//' "$STATE/env" | grep -vx 'PWD\|_\|SHLVL\|TZ' | sort | xargs)" \
		"HOME PATH"
}

first_cpu() {
	sed -n 's/^Cpus_allowed_list:\s*\([0-9]*\).*/\1/p' "/proc/$$/status"
}

@test "private: a limit of descriptors that cannot be lifted is not for everybody" {
	local as=()
	[ "$(id -u)" != 0 ] || as=(setpriv --bounding-set=-sys_resource --inh-caps=-sys_resource --)
	run --separate-stderr "${as[@]}" sh -c 'ulimit -n 64; "$0" jobs x' "$BUILD/mq-publish"
	assert_equal "$status" 78
	assert_regex "$stderr" "^mq-publish: private server in $DIR: not started: .* \\(ulimit -n\\)\$"
	assert [ ! -e "$DIR/redis.sock" ]
	# With a server that is there, it is nobody's matter.
	run_mq 0 mq-publish jobs x
	run -0 "${as[@]}" sh -c 'ulimit -n 64; "$0" jobs x' "$BUILD/mq-publish"
}

@test "private: a consumer that waits starts a crashed server, not one that was shut down" {
	local i

	"$BUILD/mq-publish" jobs m0
	"$BUILD/mq-consume" jobs >"$STATE/out" 2>"$STATE/err" 3>&- &
	CONSUMER=$!
	eventually 20 grep -q m0 "$STATE/out"
	kill -KILL "$(server_pid)"
	eventually 20 second_start
	# Nobody but the consumer can have done that; it goes on.
	"$BUILD/mq-publish" jobs m1
	eventually 30 grep -q m1 "$STATE/out"
	cli shutdown nosave >/dev/null 2>&1 || true
	eventually 10 server_is_gone
	# For many of its attempts to connect.
	for ((i = 0; i < 30; i++)); do
		server_is_gone
		read -rt 0.1 <> <(:) || true
	done
	assert_equal "$(starts)" 2
	# It had tried: what a crash leaves is enough.
	echo 1 >"$DIR/redis.pid"
	eventually 20 cli ping
	assert_equal "$(starts)" 3
	kill "$CONSUMER"
	wait "$CONSUMER" || true
}

second_start() {
	[[ $(starts) == 2 ]] && cli ping
}

# --- its operator -------------------------------------------------------------------

# Each command of the section, in its order, as the page has them.
@test "private: the commands of mq-server(7) limit, save, stop, restore and move it" {
	local root=$BATS_TEST_DIRNAME/../.. line n=0

	[[ $(redis-server --version) != *v=6.* ]] || skip "the log of Redis 6.2 is one file"
	unset XDG_STATE_HOME
	export HOME=$STATE
	DIR=$STATE/.local/state/mq
	"$BUILD/mq-publish" jobs first
	while IFS= read -r line; do
		n=$((n + 1))
		case $line in
		*shutdown*) "$BUILD/mq-publish" jobs second ;;
		'mv '*)
			run_mq 0 mq-stats --list ready -l jobs
			assert_output first
			cli shutdown
			eventually 10 server_is_gone
			;;
		esac
		bash -c "$line"
		case $line in
		*200mb*) assert_equal "$(config maxmemory)" 209715200 ;;
		*shutdown*) eventually 10 server_is_gone ;;
		esac
	done < <(sed -n '/^.Ss Running the private/,/^.Ss TLS/s/^.Dl \$ //p' "$root/man/mq-server.7")
	assert_equal "$n" 9
	run_mq 0 mq-stats --list ready -l jobs
	assert_output first
	run_mq 0 mq-stats --server
	assert_regex "$output" "directory +$(realpath "$STATE/other")"
}

@test "private: mq-stats --server, its face" {
	local most
	run_mq 0 mq-stats --server
	assert_regex "$output" "pid +$(server_pid)"
	assert_regex "$output" 'version +(redis|valkey) [0-9]'
	assert_regex "$output" 'policy +noeviction'
	assert_regex "$output" 'kept +each write, synced always'
	assert_regex "$output" 'memory .* of any size'
	refute_output --partial WARNING
	most=$(cli info memory | tr -d '\r' | sed -n 's/^used_memory://p')
	cli config set maxmemory "$most"
	run_mq 75 mq-publish jobs x
	assert_regex "$stderr" '(^mq-publish: |: )private: OOM '
	cli config set maxmemory-policy allkeys-lru
	cli config set appendonly no
	run_mq 0 mq-stats --server
	assert_regex "$output" 'WARNING +memory is nearly full'
	assert_regex "$output" 'WARNING +maxmemory-policy is allkeys-lru'
	assert_regex "$output" 'WARNING +nothing is kept on disk'
	eval "$(grep -o ' CONFIG .*' <<<"$output" | head -n 1 | sed 's/^ /cli /')"
	run_mq 0 mq-stats --server
	refute_regex "$output" 'WARNING +nothing|To mend'
	cli config set appendonly no
	cli config set save '3600 1'
	run_mq 0 mq-stats --server
	assert_regex "$output" 'WARNING +snapshots alone are kept: if the server is killed'
	assert_line --regexp '^  (redis|valkey)-cli CONFIG REWRITE$'
	run_mq 0 mq-stats --server --json
	assert_equal "$(python3 -c 'import json,sys; v = json.load(sys.stdin); print(v["pid"], v["maxmemory"], len(v["warnings"]))' <<<"$output")" \
		"$(server_pid) $most 3"
	cli acl setuser default -info -config
	run_mq 0 mq-stats --server
	assert_regex "$output" '^server '
}
