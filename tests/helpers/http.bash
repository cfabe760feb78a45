# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# A listener in front of a tool with --http, and requests to it.
#
#   serve TOOL ARGS...      the tool answers at 127.0.0.1, port $port, until http_stop
#   serve_at ADDRESS TOOL ARGS...   the same elsewhere
#   get PATH [OPTION...]    asks with curl: sets $code; the answer is in $T/headers and
#                           $T/body
#   field NAME              of those headers; the name in small letters
#   wants CODE PATH [OPTION...]   get, which must have that code
#   raw CODE REQUEST [OPTION...]  sends just that, as printf(1) writes it, to mq-stats

serve() {
	port=$(free_ports 1)
	serve_at "127.0.0.1:$port" "$@"
}

serve_at() {
	local at=$1 tool=$2
	shift 2
	: >"$T/listener" # what the last one said
	systemd-socket-activate -E MQ_URL="$MQ_URL" -E MQ_LAYOUT="${MQ_LAYOUT-}" -E LC_ALL=C.UTF-8 \
		--accept --inetd -l "$at" "$BUILD/$tool" "$@" \
		>/dev/null 2>"$T/listener" 3>&- &
	listener=$!
	eventually 10 grep -q Listening "$T/listener"
}

http_stop() {
	[ -n "${listener-}" ] || return 0
	kill "$listener"
	wait "$listener" || true
	listener=
}

get() {
	local path=$1
	shift
	code=$(curl -s -m 120 -o "$T/body" -D "$T/headers" -w '%{http_code}' "$@" \
		"http://127.0.0.1:$port$path") || true
}

field() {
	sed -n "s/^$1: \(.*\)\r\$/\1/Ip" "$T/headers"
}

wants() {
	local want=$1
	shift
	get "$@"
	[ "$code" = "$want" ] || {
		echo "$1: $code, not $want"
		return 1
	}
}

raw() {
	local answer want=$1 request=$2
	shift 2
	# shellcheck disable=SC2059
	answer=$(printf "$request" | timeout 60 "$BUILD/mq-stats" --http "$@" | head -n 1)
	[[ $answer == "HTTP/1.1 $want "* ]] || {
		echo "$request: $answer"
		return 1
	}
}
