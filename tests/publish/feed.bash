# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-publish in the background, and what is written to fd 5 is its input.  Load it behind
# common.
#
#   feed ARGS...          begins
#   ended [STATUS]        it ends by itself, with that; sets $status and $stderr
#   close_feed [STATUS]   so it does when its input has ended
#   now_ms                the server's clock

feed() {
	rm -f "$T/in"
	mkfifo "$T/in"
	"$BUILD/mq-publish" "$@" <"$T/in" >"$T/out" 2>"$T/err" 3>&- &
	pid=$!
	exec 5>"$T/in"
}

ended() {
	ends_within 60
	exec 5>&-
	stderr=$(cat "$T/err")
	assert_equal "$status" "${1-$status}"
}

close_feed() {
	exec 5>&-
	ended "$@"
}

now_ms() {
	redis eval 'local t = redis.call("TIME")
		return t[1] * 1000 + math.floor(t[2] / 1000)' 0
}
