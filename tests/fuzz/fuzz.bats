# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
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

@test "fuzz: each target, from envelope to verb" {
	local target
	for target in "$root"/tests/fuzz/*.c; do
		target=$(basename "$target" .c)
		# Of a processor's time, as others may have most of the processors.
		SEED=1 run bash -c 'ulimit -t 120 && exec "$@"' bash "$root/tests/fuzz/run.sh" -n 25000 "$target"
		assert_success
		assert_output --regexp "ok 1 - $target: 25000 "
	done
}
