#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# topology: own
# Steps that the server refuses in the middle, or could: see refused.py.

load ../helpers/server

@test "refused: another type, a full memory, a missing right: a step has changed nothing" {
	PYTHONPATH=$root/tests/helpers PYTHONDONTWRITEBYTECODE=1 run python3 \
		"$BATS_TEST_DIRNAME/refused.py" "$D/redis.sock" "$root/common/queue"
	assert_success
	assert_output --regexp '^[0-9]{4,5} steps in trouble, 0 wrong$'
}
