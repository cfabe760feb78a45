load helpers

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

@test "an empty server: only the head of the table" {
	run_mq 0 mq-stats
	assert_output "QUEUE  READY  DELAYED  UNACKED  REJECTED  CONSUMERS"
}
