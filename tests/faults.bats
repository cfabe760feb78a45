#!/usr/bin/env bats
# A short run of `make faults`: faults of every kind while everybody is at work,
# and no accepted message is lost.  See faults/faults.py.
#
# SEED=N repeats a run's random moments as far as that is possible; RUNS=N makes
# it longer.

load helpers

setup() {
	export BUILD PYTHONDONTWRITEBYTECODE=1
	seed=${SEED:-$((RANDOM * 32768 + RANDOM))}
}

# faults LAYOUT RUNS
faults() {
	run timeout -k 10 900 python3 "$BATS_TEST_DIRNAME/faults/faults.py" \
		"$seed" "${RUNS:-$2}" "$1"
	echo "$output"
	assert_success
	assert_line "nothing lost"
}

@test "faults: nothing is lost, whatever happens" {
	faults rmq 10
}

@test "faults: nothing is lost in the layout of RSMQ" {
	faults rsmq 5
}
