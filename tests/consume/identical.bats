# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# layouts: rmq rsmq
# Messages with the same bytes, which no server tells apart, are each done or
# left: see identical.py.
#
# SEED=N repeats a test's random choices; RUNS=N makes it longer.

load ../helpers/server

: "${LAYOUT:=rmq}"

setup() {
	common_setup
	export BUILD MQ_LAYOUT=$LAYOUT
	export PYTHONPATH=$root/tests/helpers PYTHONDONTWRITEBYTECODE=1
	seed=${SEED:-$((RANDOM * 32768 + RANDOM))}
}

# left_as_it_was MODE...
left_as_it_was() {
	local mode
	for mode; do
		run timeout -k 5 300 python3 "$BATS_TEST_DIRNAME/identical.py" \
			"$mode" "$seed" "${RUNS:-6}"
		echo "$output"
		grep -v ': rejected: err$' "$D/consume.err" || true
		assert_success
	done
}

@test "identical: a killed consumer leaves what was not done, and nothing else" {
	no_cluster "its program speaks to one server"
	left_as_it_was fork batch stream
}

@test "identical: so does one that loses its connection" {
	no_cluster "its program speaks to one server"
	left_as_it_was cut-fork cut-batch cut-stream
}
