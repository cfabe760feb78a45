# The main job of the README, on a small tree: with the real private server,
# a real SIGKILL, and the real 60 seconds until the lease has run out.
# topology: own

load ../helpers/common

setup() {
	T=$(own_dir)
	export T
}

teardown() {
	rm -rf "$T"
}

@test "demo: every file digested although the consumer is killed" {
	local i
	mkdir "$T/tree"
	for i in {1..300}; do
		seq "$i" $((i * 3)) >"$T/tree/file $i"
	done
	run timeout -k 5 600 "$root/tests/demo.sh" "$BUILD" "$T/tree"
	assert_success
	assert_line --regexp '^killed after [1-9][0-9]* results; it held [1-9]'
	assert_line --regexp '^published 300  results 300  lost 0  ran twice [0-9]+$'
}
