#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What somebody who means harm has put into a queue, or beside a file, does
# nothing.  (What belongs to one tool or one file is tested with that.)

load ../helpers/server
load ../helpers/wire

# --- terminals ------------------------------------------------------------------

# Sets the title, rings, clears, and the same with C1 bytes and as UTF-8.
evil=$'\e]0;x\a\e[2J\x9b2J\xc2\x9b2J\r\b\x7f'

# harmless TEXT ARG...: it shows something with TEXT, and nothing that drives the
# terminal but our own colours.
harmless() {
	local text=$1

	shift
	echo "\$ $*"
	WIDTH=200 on_terminal $'n\n' "$BUILD/$1" "${@:2}" | tr -d '\r' >"$T/shown" || true
	cat -v "$T/shown"
	grep -qF -- "$text" "$T/shown"
	python3 - "$T/shown" <<-'END'
		import re, sys
		shown = open(sys.argv[1], "rb").read()
		shown = re.sub(rb"\x1b\[[0-9;]*m", b"", shown)
		text = shown.decode("utf-8")    # no bytes that are none
		bad = re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
		sys.exit("bad: %r" % bad if bad else 0)
	END
}

# json TEXT: as a string of JSON.
json() {
	python3 -c 'import json, os, sys
print(json.dumps(os.fsencode(sys.argv[1]).decode("latin-1")))' "$1"
}

@test "security: what is in messages does not drive a terminal" {
	local id history key=rmq::queue::[q]::rejected

	run_mq 0 mq-publish -i q x
	id=$output
	redis del 'rmq::queue::[q]::ready' >/dev/null
	history=$(json "{\"at_ms\":1,\"attempt\":1,\"host\":$(json "h$evil"),\"text\":$(json "t$evil"),\"stderr\":$(json "s$evil")}")
	printf '\xff\0\xbe\xbeJ{"Mq-Id":["%s"],"Mq-Error":[%s],"Mq-History":[%s],"X-Y":[%s]}\n%s' \
		"$id" "$(json "e$evil")" "$history" "$(json "v$evil")" "payload$evil" |
		redis -x lpush "$key" >/dev/null
	harmless payload mq-stats --id "$id" q
	harmless payload mq-stats --list rejected q
	harmless payload mq-stats --list rejected -l q
	harmless 1 mq-purge --rejected q
	harmless 1 mq-return --dry-run -v q
	redis lpush 'rmq::queue::[q]::ready' "payload$evil" >/dev/null
	harmless payload mq-lease --for 1m --jsonl q
	redis lpush 'rmq::queue::[q]::ready' "payload$evil" >/dev/null
	harmless payload mq-consume -n 1 q
	redis lpush 'rmq::queue::[q]::ready' "payload$evil" >/dev/null
	harmless payload mq-consume -l -n 1 q
}

@test "security: nor does what scripts say" {
	printf '%s' "$evil" >"$T/evil"
	script s <<'.'
cat >/dev/null
echo "err said $(cat "$T/evil")" >&3
.
	run_mq 0 mq-publish q x
	harmless said mq-consume -v -n 1 q -- "$T/s"
	harmless said mq-stats --list rejected q
	run_mq 0 mq-publish q x
	(until redis exists 'rmq::queue::[r]::ready' | grep -q 1; do :; done
	"$BUILD/mq-consume" -q -n 1 r -- "$T/s") 3>&- &
	harmless said mq-publish --wait r x
	wait "$!" || [ $? = 1 ]
}

@test "security: nor what connections say of themselves, nor what runs there" {
	local c=$'c\e]0;x\a-abcdef'

	redis sadd rmq::queues q >/dev/null
	redis sadd rmq::connections "$c" >/dev/null
	redis set "rmq::connection::$c::heartbeat" 1 ex 60 >/dev/null
	redis sadd "rmq::connection::$c::queues" q >/dev/null
	redis hset "rmq::connection::$c::info" host "host$evil" pid 1 slots 1 \
		>/dev/null
	redis set "rmq::connection::$c::running" \
		"[{\"queue\":\"q\",\"id\":$(json "i$evil"),\"attempt\":1,\"pid\":1,\"script\":$(json "script$evil"),\"started_ms\":1,\"text\":$(json "text$evil")}]" \
		>/dev/null
	harmless host mq-stats --connections
	harmless script mq-stats --running
	redis del "rmq::connection::$c::heartbeat" >/dev/null
	redis lpush "rmq::connection::$c::queue::[q]::unacked" x >/dev/null
	harmless 'dead connection' mq-clean -v
}

@test "security: nor what the server says of a payload" {
	server_start --rename-command LPUSH ''
	harmless 'the server has no LPUSH' mq-publish --raw q "payload$evil"
	server_stop
}

# --- files ------------------------------------------------------------------------

@test "security: a pipe in the place of a log holds nobody up" {
	mkdir "$T/log"
	mkfifo "$T/log/q.log"
	run_mq 0 mq-publish q x
	run_mq 74 mq-consume -n 1 --log-dir "$T/log" q -- echo hello
	assert_regex "$stderr" "^mq-consume: $T/log/q.log: "
	# Not with a reader, either, who would get all of it.
	exec 5<>"$T/log/q.log"
	run_mq 74 mq-consume -n 1 --log-dir "$T/log" q -- echo hello
	exec 5>&-
	held_is q "1 0 0 0"
}

@test "security: a link in the place of a file of the private server is refused" {
	local file

	mkdir -p "$T/state/mq"
	chmod 700 "$T/state/mq"
	echo mine >"$T/mine"
	unset MQ_URL
	for file in lock redis.log; do
		ln -s "$T/mine" "$T/state/mq/$file"
		XDG_STATE_HOME=$T/state XDG_CONFIG_HOME=$T/none run_mq 74 mq-publish q x
		assert_equal "$stderr" "mq-publish: $T/state/mq/$file: Too many levels of symbolic links"
		assert_equal "$(cat "$T/mine")" mine
		[ ! -e "$T/state/mq/redis.sock" ]
		rm "$T/state/mq/$file"
	done
}

# --- secrets ----------------------------------------------------------------------

core_limit() {
	awk '/^Max core/ { print $5 }' "/proc/$1/limits"
}

@test "security: who knows a password leaves no core dump, but scripts may" {
	local before=1048576 url

	# The sanitizer would set it, too.
	export ASAN_OPTIONS=$ASAN_OPTIONS:disable_coredump=0
	redis acl setuser alice on '>s3cr3t' allkeys allchannels +@all >/dev/null
	ulimit -S -c 1024 || before=$(core_limit self)
	for url in "$(url_as alice:s3cr3t)" "$MQ_URL"; do
		run_mq 0 mq-publish q x
		script s <<'.'
awk '/^Max core/ { print $5 }' /proc/self/limits >"$T/script"
awk '/^Max core/ { print $5 }' "/proc/$PPID/limits" >"$T/parent"
.
		MQ_URL=$url run_mq 0 mq-consume -n 1 q -- "$T/s"
		assert_equal "$(cat "$T/script")" "$before"
		if [ "$url" = "$MQ_URL" ]; then
			assert_equal "$(cat "$T/parent")" "$before"
		else
			assert_equal "$(cat "$T/parent")" 0
		fi
	done
}
