# The parsers on inputs that a fuzzer makes up from those in tests/fuzz/corpus,
# always the same ones; `make fuzz` does it for longer, and at random.
#
# needs: fuzz
# topology: own

load ../helpers/common

setup_file() {
	# Nothing to do when `make check` has done it.
	env -u MAKEFLAGS -u MAKELEVEL make -s -C "$root" fuzzers
}

fuzz() {
	SEED=1 run timeout -k 5 120 "$root/tests/fuzz/run.sh" -n 25000 "$1"
	assert_success
	assert_output --regexp "ok 1 - $1: 25000 "
}

@test "fuzz: every target has a test" {
	local source
	for source in "$root"/tests/fuzz/*.c; do
		source=${source##*/}
		grep -qx "	fuzz ${source%.c}" "$BATS_TEST_FILENAME"
	done
}

@test "fuzz: envelopes and headers" {
	fuzz envelope
}

@test "fuzz: framings" {
	fuzz frame
}

@test "fuzz: HTTP requests" {
	fuzz http
}

@test "fuzz: replies of a server" {
	fuzz reply
}

@test "fuzz: texts that others left in the server" {
	fuzz text
}

@test "fuzz: durations, times and rates" {
	fuzz time
}

@test "fuzz: URLs" {
	fuzz url
}

@test "fuzz: verbs" {
	fuzz verb
}
