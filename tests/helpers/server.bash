# A file of tests with one server, as common.bash has it, and nothing else to prepare:
# load this instead.  What a file defines behind it counts.

load ../helpers/common

setup_file() {
	server_start
}

teardown_file() {
	server_stop
}

setup() {
	common_setup
}

teardown() {
	common_teardown
}
