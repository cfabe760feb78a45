#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Where the server is, and how a tool gets in.
# topology: own

load ../helpers/server

secret=s3cr3t-Horse

setup_file() {
	port=$(free_ports 1)
	export port
	server_start --port "$port" --bind 127.0.0.1
	redis acl setuser alice on ">$secret" allkeys +@all >/dev/null
	redis acl setuser 'b@b:b' on '>p@:%/?#é' allkeys +@all >/dev/null
}

setup() {
	common_setup
	unset MQ_URL
	export HOME=$T/home XDG_CONFIG_HOME=$T/config XDG_STATE_HOME=$T/state
	mkdir -p "$HOME" "$XDG_CONFIG_HOME/mq"
	sock=$D/redis.sock
}

teardown() {
	exec 5>&-
	redis-cli -s "$T/state/mq/redis.sock" shutdown nosave \
		>/dev/null 2>&1 || true
	REDISCLI_AUTH=$secret redis config set requirepass '' >/dev/null 2>&1
	common_teardown
}

# arrived DB: a message did, in that database alone; then they are emptied.
arrived() {
	assert_equal "$(redis info keyspace | tr -d '\r' | grep -o '^db[0-9]*')" \
		"db$1"
	assert_equal "$(redis -n "$1" llen 'rmq::queue::[jobs]::ready')" 1
	redis flushall >/dev/null
}

private_arrived() {
	assert_equal "$(redis-cli -s "$T/state/mq/redis.sock" llen \
		'rmq::queue::[jobs]::ready')" "$1"
	assert_equal "$(redis dbsize)" 0
}

env_file() {
	cat >"$XDG_CONFIG_HOME/mq/env"
}

# with_env STATUS LINES: mq-publish ends so, with these in the file, as printf(1) has them.
with_env() {
	printf '%b\n' "$2" | env_file
	run_mq "$1" mq-publish jobs x
}

said() {
	assert_equal "$(wc -l <<<"$stderr")" 1
	assert_regex "$stderr" "^mq-publish: .*$1"
	assert_equal "$output" ""
}

silent_about() {
	if [[ $output$stderr == *"$1"* ]]; then
		echo "the secret was told: $output$stderr"
		return 1
	fi
}

# --- forms of the URL ----------------------------------------------------------

@test "server: a socket, a host and a port, a user and a password, and a database" {
	local url db

	ln -s "$sock" "$T/a b%?"
	while IFS='|' read -r url db; do
		run_mq 0 mq-publish -u "$url" jobs x
		arrived "$db"
	done <<-END
		unix://$sock|0
		unix://$sock?db=3|3
		unix://$sock?db=0|0
		unix://$T/a%20b%25%3f|0
		redis://127.0.0.1:$port|0
		redis://LocalHost:$port/|0
		redis://127.0.0.1:$port/7|7
		redis://alice:$secret@127.0.0.1:$port|0
		unix://alice:$secret@$sock?db=2|2
		redis://b%40b%3ab:p%40:%25%2F%3f%23é@127.0.0.1:$port|0
	END
	run_mq 77 mq-publish -u "redis://b%40b%3ab:p@127.0.0.1:$port" jobs x
	# The last one counts.
	run_mq 0 mq-publish -u "unix://$T/none" jobs --url "unix://$sock?db=5" x
	arrived 5
}

@test "server: an IPv6 address" {
	redis config set bind '127.0.0.1 ::1' >/dev/null 2>&1 ||
		skip "no IPv6 here, or none that Redis can be told of"
	run_mq 0 mq-publish -u "redis://[::1]:$port/2" jobs x
	arrived 2
	# With a zone: that of the loopback interface is 1 everywhere.
	run_mq 0 mq-publish -u "redis://[::1%251]:$port/3" jobs x
	arrived 3
	run_mq 69 mq-publish -u "redis://[fe80::1%25nosuch]:$port" jobs x
	said 'redis://\[fe80::1%25nosuch\]:[0-9]+: Name or service not known'
}

@test "server: not there: 69" {
	run_mq 69 mq-publish -u "redis://127.0.0.1:$(free_ports 1)" jobs x
	said 'redis://127.0.0.1:[0-9]+: Connection refused'
	run_mq 69 mq-publish -u "unix://$T/none" jobs x
	said "unix://$T/none: No such file or directory"
	# A socket whose server has died.
	python3 -c 'import socket, sys
socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$T/dead"
	run_mq 69 mq-publish -u "unix://$T/dead" jobs x
	said "unix://$T/dead: Connection refused"
	run_mq 69 mq-stats -u "unix://$T/dead"
	run_mq 69 mq-publish -u "redis://:$secret@127.0.0.1:$(free_ports 1)" jobs x
	silent_about "$secret"
}

is_named() {
	redis client list | grep -q ' name=mq-consume:'
}

@test "server: one that is far away is waited for, as long as it answers" {
	"$root/tests/helpers/link.py" "$sock" 0.7 >"$T/port" 3>&- &
	link=$!
	eventually 10 [ -s "$T/port" ]
	run_mq 0 mq-publish -u "unix://$sock" q one two
	url=redis://127.0.0.1:$(cat "$T/port")
	start_mq mq-consume -v -n 1 -u "$url" q -- true
	eventually 10 is_named
	kill -STOP "$link"
	eventually 10 grep -q 'no answer while connecting' "$T/err"
	kill -CONT "$link"
	wait "$pid"
	redis script flush >/dev/null
	run_mq 0 mq-consume -v -n 1 -u "$url" q -- true
	assert_equal "$(grep -vE ': done$| 1 done' <<<"$stderr")" ""
}

# fake NAME PYTHON: a listener at $T/NAME, which does that with each connection c.
fake() {
	python3 -c "import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
while True:
	c = s.accept()[0]
	$2
	c.close()" "$T/$1" 3>&- &
	eventually 10 listens_at "$T/$1"
}

@test "server: one that hangs up, or is no Redis: 69" {
	fake rude pass
	fake web 'c.sendall(b"HTTP/1.1 400 Bad \033[31m\r\n\r\n"); c.recv(99)'
	for name in rude web; do
		run_mq 69 mq-publish -u "unix://$T/$name" jobs x
		# It has not got the message, so there is no count of those accepted.
		assert_regex "$stderr" "^mq-publish: unix://$T/$name: [^
]*$"
	done
}

# --- who has the say -----------------------------------------------------------

@test "server: -u before MQ_URL before the env file before the private one" {
	env_file <<<"MQ_URL=unix://$sock?db=3"
	MQ_URL="unix://$sock?db=2" run_mq 0 mq-publish -u "unix://$sock?db=1" \
		jobs x
	arrived 1
	MQ_URL="unix://$sock?db=2" run_mq 0 mq-publish jobs x
	arrived 2
	MQ_URL='' run_mq 0 mq-publish jobs x
	arrived 3
	assert [ ! -e "$T/state" ]
	# One without MQ_URL is as none.
	printf '#MQ_URL=garbage\nXMQ_URL=garbage\nMQ_LAYOUT= # none\n' | env_file
	run_mq 0 mq-publish jobs x
	private_arrived 1
	rm "$XDG_CONFIG_HOME/mq/env"
	# Without XDG_CONFIG_HOME, or with a relative one, it is below HOME.
	mkdir -p "$HOME/.config/mq"
	echo "MQ_URL=unix://$sock?db=6" >"$HOME/.config/mq/env"
	# To the private server, a password is nothing.
	REDISCLI_AUTH=$secret MQ_PASSWORD_FILE=$T/none run_mq 0 mq-publish jobs x
	private_arrived 2
	XDG_CONFIG_HOME=config run_mq 0 mq-publish jobs x
	arrived 6
	unset XDG_CONFIG_HOME
	run_mq 0 mq-publish jobs x
	arrived 6
}

# As sh(1) and systemd(1) have it; none of it is taken for a part of the URL.
@test "server: an env file: blanks, quotes, comments, long lines" {
	local line

	while IFS= read -r line; do
		echo "$line"
		with_env 0 "${line//HERE/unix:\/\/$sock?db=3}"
		assert_equal "$stderr" ""
		arrived 3
	done <<-'END'
		# MQ_URL=redis://x\n\nOTHER=1 # MQ_URL=x\nXMQ_URLS=2\nMQ_URL=HERE
		MQ_URL="HERE"
		MQ_URL='HERE'
		  export MQ_URL=HERE  \r
		MQ_URL=HERE # here
		MQ_URL=HERE\t#here
		MQ_URL = HERE
		MQ_URL\t=\t'HERE'\t # here
		\texport \tMQ_URL="HERE"
		MQ_URL="HERE" #MQ_
		MQ_URL='HERE'\r
		; MQ_URL=1\n#MQ_FOO\nMQ_URL=HERE\r\n
		MQ_URL=garbage\nMQ_LAYOUT=rsmq\nMQ_LAYOUT= rmq # not the other one\nMQ_URL = HERE
		MQ_URL=garbage\nMQ_URL=\nexport MQ_URL=HERE
		if true; then\nFOO='x\nMQ_URL=HERE\nfi
	END
	# The last line may be without its end.
	printf 'MQ_URL=garbage\nMQ_URL=unix://%s?db=3' "$sock" | env_file
	run_mq 0 mq-publish jobs x
	arrived 3
	# Longer than anything that a buffer may have been made for.
	with_env 0 "X=$(printf %05000d 1)MQ_URL=garbage\nMQ_URL=unix://$sock?db=3 # $(printf %05000d 2)"
	arrived 3
	# A double quote keeps a backslash but before some.
	redis acl setuser quoted on '>"\$`\x' '~*' '&*' +@all >/dev/null
	printf 'MQ_URL="unix://quoted:\\"\\\\\\$\\`\\x@%s?db=3"\n' "$sock" | env_file
	chmod 600 "$XDG_CONFIG_HOME/mq/env"
	run_mq 0 mq-publish jobs x
	arrived 3
	redis acl deluser quoted >/dev/null
}

@test "server: an env file: what cannot be taken is an error, and where" {
	local line why only='only MQ_URL=, MQ_LAYOUT=, MQ_PASSWORD_FILE=, MQ_SENTINEL_PASSWORD_FILE= and REDISCLI_AUTH= can stand here'

	while IFS=@ read -r line why; do
		echo "$line"
		[[ $why == *:* ]] || why="FILE: line 2: $why"
		why=${why/#FILE/$XDG_CONFIG_HOME/mq/env}
		with_env 78 "\n${line/SOCKET/$sock}"
		assert_equal "$stderr" "mq-publish: ${why/ONLY/$only}"
		assert_equal "$(find "$T/state" 2>/dev/null)" ""
	done <<-'END'
		MQ_URL redis://secret@not NAME=VALUE
		MQ_URL: redis://secret@ONLY
		MQ_URL@not NAME=VALUE
		MQ_URL="redis://secret@the closing quote is missing
		MQ_URL='redis://secret' x@unexpected text after the closing quote
		MQ_URL="redis://"secret@unexpected text after the closing quote
		MQ_URL=redis://secret\\@a value must be on one line
		MQ_PASSWORD=secret@ONLY
		MQ_URI=secret@ONLY
		mq_url=secret@ONLY
		\0357\0273\0277MQ_URL=secret@ONLY
		set MQ_URL secret@ONLY
		MQ_URL=redis://x\0y@contains a NUL byte
		MQ_LAYOUT=rsmq@FILE: no MQ_URL= for its other lines (MQ_URL=private: is the private server)
		MQ_PASSWORD_FILE=/x@FILE: no MQ_URL= for its other lines (MQ_URL=private: is the private server)
		REDISCLI_AUTH=secret@FILE: no MQ_URL= for its other lines (MQ_URL=private: is the private server)
		MQ_URL=unix://SOCKET\nMQ_LAYOUT=rsmx@FILE: unknown layout rsmx; use rmq or rsmq
		MQ_URL=private:\nMQ_PASSWORD_FILE=x@private: the env file has a password, but a private server needs none
		MQ_URL=unix://SOCKET\nMQ_PASSWORD_FILE=/none@MQ_PASSWORD_FILE: /none: No such file or directory
	END
}

layout_of() {
	redis --raw keys '*' | grep -q '^rsmq:' && echo rsmq || echo rmq
	redis flushall >/dev/null
}

@test "server: an env file: the layout and the password of its server" {
	with_env 0 "MQ_URL=unix://$sock\nMQ_LAYOUT=rsmq"
	assert_equal "$(layout_of)" rsmq
	# The variable, the option and the URL are nearer; another server is another.
	while read -r nearer; do
		eval "$nearer jobs x"
		assert_equal "$nearer: $(layout_of)" "$nearer: rmq"
	done <<-'END'
		MQ_LAYOUT=rmq run_mq 0 mq-publish
		run_mq 0 mq-publish -L rmq
		run_mq 0 mq-publish -u "unix://$sock"
		MQ_URL=unix://$sock run_mq 0 mq-publish
		run_mq 0 mq-publish -u "unix://$sock?layout=rmq"
		MQ_LAYOUT=rsmq run_mq 0 mq-publish -u "unix://$sock?layout=rmq"
		MQ_LAYOUT=rsmq run_mq 0 mq-publish -L rmq -u "unix://$sock?layout=rsmq"
		MQ_LAYOUT=x run_mq 0 mq-publish -L rmq
		MQ_LAYOUT= run_mq 0 mq-publish -u "unix://$sock"
	END
	with_env 0 "MQ_URL=unix://$sock?layout=rmq\nMQ_LAYOUT=rsmq"
	assert_equal "$(layout_of)" rmq

	redis config set requirepass "$secret" >/dev/null
	(umask 077 && echo "$secret" >"$T/password")
	with_env 0 "MQ_URL=unix://$sock\nMQ_PASSWORD_FILE=$T/password"
	assert_equal "$stderr" ""
	printf 'MQ_URL=unix://%s\nREDISCLI_AUTH="%s"\n' "$sock" "$secret" | env_file
	chmod 600 "$XDG_CONFIG_HOME/mq/env"
	run_mq 0 mq-publish jobs x
	assert_equal "$stderr" ""
	REDISCLI_AUTH=wrong run_mq 77 mq-publish jobs x
	# It is not sent to others.
	run_mq 77 mq-publish -u "unix://$sock" jobs x
	said 'NOAUTH Authentication required'
}

@test "server: a file with a password that everybody can read is told of" {
	local file=$XDG_CONFIG_HOME/mq/env line

	told() {
		assert_equal "$stderr" \
			"mq-stats: $1: everybody can read the password in it; run chmod o-r on it"
	}
	redis config set requirepass "$secret" >/dev/null
	for line in "MQ_URL=unix://:$secret@$sock" \
		"MQ_URL=unix://$sock
		REDISCLI_AUTH=$secret"; do
		env_file <<<"$line"
		chmod 604 "$file"
		run_mq 0 mq-stats
		told "$file"
		run_mq 3 mq-stats --check ready=1
		told "$file"
		run_mq 0 mq-stats -q
		assert_equal "$stderr" ""
		chmod 640 "$file"
		run_mq 0 mq-stats
		assert_equal "$stderr" ""
	done
	echo "$secret" >"$T/password"
	chmod 644 "$T/password"
	printf 'MQ_URL=unix://%s\nMQ_PASSWORD_FILE=%s\n' "$sock" "$T/password" | env_file
	chmod 644 "$file"
	run_mq 0 mq-stats
	told "$T/password"
	MQ_URL=unix://$sock MQ_PASSWORD_FILE=$T/password run_mq 0 mq-stats
	told "$T/password"
	# One without a password may be read.
	REDISCLI_AUTH=$secret redis config set requirepass '' >/dev/null
	env_file <<<"MQ_URL=unix://$sock"
	run_mq 0 mq-stats
	assert_equal "$stderr" ""
}

@test "server: a bad URL in the env file, or one that cannot be read: 78, not another server" {
	with_env 78 "MQ_URL=garbage://u:$secret@h"
	said 'server URL: '
	silent_about "$secret"
	rm "$XDG_CONFIG_HOME/mq/env"
	mkdir "$XDG_CONFIG_HOME/mq/env"
	run_mq 78 mq-publish jobs x
	said "$XDG_CONFIG_HOME/mq/env: "
	assert [ ! -e "$T/state" ]
}

# --- passwords -----------------------------------------------------------------

@test "server: a password of the URL, else of a file, else of the environment; a wrong one is told nowhere" {
	local want how url tool

	redis config set requirepass "$secret" >/dev/null
	(umask 077 && printf '%s\r\nmore\n' "$secret" >"$T/lines" &&
		printf %s "$secret" >"$T/text" && echo wrong-Horse >"$T/wrong")
	while IFS='|' read -r want how url; do
		for tool in mq-publish mq-stats; do
			eval "$how run_mq $want $tool -v -u $url jobs" </dev/null
			silent_about "$secret"
			silent_about wrong-Horse
			[ "$want" = 0 ] || assert_regex "$stderr" "$tool: [^@]*: (NOAUTH|WRONGPASS)"
		done
	done <<-END
		77||unix://$sock
		77||unix://:wrong-Horse@$sock
		77||redis://alice:wrong-Horse@127.0.0.1:$port
		0||redis://:$secret@127.0.0.1:$port/1
		0||unix://:$secret@$sock?db=1
		0||redis://default:$secret@127.0.0.1:$port/1
		0|MQ_PASSWORD_FILE=$T/lines|unix://$sock
		0|MQ_PASSWORD_FILE=$T/text|unix://$sock
		0|MQ_PASSWORD_FILE=$T/text|unix://alice@$sock
		77|MQ_PASSWORD_FILE=$T/wrong|unix://$sock
		77|MQ_PASSWORD_FILE=$T/text|unix://:wrong-Horse@$sock
		0|REDISCLI_AUTH=wrong-Horse MQ_PASSWORD_FILE=$T/text|unix://$sock
		0|REDISCLI_AUTH=$secret|unix://$sock
		0|REDISCLI_AUTH=$secret|unix://alice@$sock
		77|REDISCLI_AUTH=|unix://$sock
		77|REDISCLI_AUTH=$secret|unix://:wrong-Horse@$sock
		0|REDISCLI_AUTH=wrong-Horse|unix://:$secret@$sock
	END
}

command_line() {
	tr '\0' ' ' <"/proc/$pid/cmdline"
}

wiped() {
	[[ $(command_line) == *'alice:*'* ]]
}

@test "server: a round of cleaning that cannot get in is told of with -v" {
	export MQ_URL=unix://$sock
	redis set rmq::connection::old-aaaaaa::heartbeat 1 px 2500 >/dev/null
	redis sadd rmq::connections old-aaaaaa >/dev/null
	start_mq mq-consume -v jobs -- true
	eventually 10 joined 2
	redis config set requirepass "$secret" >/dev/null
	eventually 30 grep -q 'NOAUTH Authentication required' "$T/err"
	stop_mq
}

@test "server: a consumer whose password is not taken any more says so, and goes on with it" {
	redis config set requirepass "$secret" >/dev/null
	export REDISCLI_AUTH=$secret
	MQ_URL=unix://:$secret@$sock start_mq mq-consume -v jobs -- true
	eventually 10 joined
	redis config set requirepass other >/dev/null
	REDISCLI_AUTH=other redis client kill type normal >/dev/null
	eventually 30 grep -q "^mq-consume: unix:.*: WRONGPASS" "$T/err"
	REDISCLI_AUTH=other redis config set requirepass "$secret" >/dev/null
	eventually 30 grep -q 'connected as' "$T/err"
	stop_mq
}

@test "server: a password on the command line is wiped before the server has answered" {
	local tool option

	fake mute 'import time; time.sleep(1000)'
	for tool in mq-publish mq-stats mq-consume; do
		for option in '-u ' -u '--url ' --url= --ur=; do
			# shellcheck disable=SC2086 # may be two words
			"$BUILD/$tool" jobs ${option}unix://alice:$secret@$T/mute \
				</dev/null >"$T/out" 2>&1 3>&- &
			pid=$!
			eventually 10 wiped
			[[ $(command_line) != *"$secret"* ]]
			kill -KILL "$pid"
			wait "$pid" || true
		done
	done
}

# info LINE...: what the server answers to INFO from now on.
info() {
	local text="$* " ends=$#
	rm -f "$T/socket"
	# A blank of the reply becomes the two bytes that end a line.
	python3 "$root/tests/helpers/answers.py" "$T/socket" "$sock" info \
		"\$$((${#text} + ends)) $text " 3>&- 2>/dev/null &
	eventually 10 [ -S "$T/socket" ]
	MQ_URL=unix://$T/socket run_mq 0 mq-stats --server
}

@test "server: mq-stats --server calls a Valkey by its name, its version and its programs" {
	# The version of Redis is that with which it is compatible.
	info redis_version:7.2.4 server_name:valkey valkey_version:8.1.1 process_id:77 aof_enabled:0
	assert_line --regexp '^version +valkey 8\.1\.1$'
	assert_line --regexp '^pid +77$'
	assert_line "  valkey-cli CONFIG SET appendonly yes"
	assert_line "  valkey-cli CONFIG REWRITE"
	refute_output --partial redis-cli
	info redis_version:8.0.2 process_id:78 aof_enabled:0
	assert_line --regexp '^version +redis 8\.0\.2$'
	assert_line "  redis-cli CONFIG REWRITE"
	refute_output --partial valkey
}
