#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Node programs and ours work off one queue of RSMQ while both kinds are killed
# all the time: no message is lost.
#
# RSMQ_MESSAGES=N makes it shorter; SEED=N repeats the random moments as
# far as that is possible.
#
# needs: node

load ../helpers/server

setup_file() {
	"$root/tests/deps.sh" --npm "$root/build/node"
	server_start
}

setup() {
	no_cluster "npm's rsmq passes times as keys, and a cluster refuses that"
	common_setup
}

@test "three node workers and three of ours, killed again and again, lose nothing" {
	export BUILD NODE_PATH=$root/build/node/node_modules
	export PYTHONDONTWRITEBYTECODE=1
	run timeout -k 5 2300 python3 "$BATS_TEST_DIRNAME/node-kill.py" \
		"${RSMQ_MESSAGES:-50000}" "${SEED:-$RANDOM}"
	echo "$output"
	cat "$T/errors" >&2 || true
	assert_success
}
