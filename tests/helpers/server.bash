# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# A file of tests with one server, as common.bash has it, and nothing else to prepare:
# load this instead.  What a file defines behind it counts.
#
#   prints TEXT TOOL...   the tool ends with 0, and has printed that
#   tells STATUS TEXT TOOL...   it ends with that, and this is on its stderr
#   drained [Q...]        what there is to claim, of q if not said, in that order
#   counts FIELD...       the numbers that are kept of q; "-" for one that is not there
#   locks [Q]             how many keys and groups somebody has

load ../helpers/common

setup_file() {
	server_start
	export FILE_D=$D
}

teardown_file() {
	server_stop
}

setup() {
	common_setup
}

teardown() {
	# A test may have a server of its own.
	[ "$D" = "${FILE_D-$D}" ] || server_stop
	common_teardown
}

prints() {
	run_mq 0/1 "${@:2}" && assert_equal "$output" "$1"
}

tells() {
	run_mq "$1" "${@:3}" && assert_equal "$stderr" "$2"
}

drained() {
	"$BUILD/mq-consume" --drain -l "${@:-q}" 2>/dev/null | xargs
}

counts() {
	redis hmget 'rmq::queue::[q]::counters' "$@" | sed 's/^$/-/' | xargs
}

locks() {
	redis hkeys "rmq::queue::[${1:-q}]::locks" | grep -c '^[kg]' || true
}
