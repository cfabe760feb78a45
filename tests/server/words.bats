#!/usr/bin/env bats
# What a server says before it ends a connection is read, and decides.
# topology: own

load ../helpers/common

setup_file() {
	D=$(own_dir)
	export D
	server_run --port "$(free_ports 1)" --bind 127.0.0.1 --maxclients 3
	TCP=redis://127.0.0.1:$(redis config get port | tail -n 1)
	export TCP
}

teardown_file() {
	server_stop
}

setup() {
	common_setup
	rest=()
}

teardown() {
	let_in
	redis config set requirepass '' >/dev/null
	common_teardown
}

# crowd N: so many clients come, and stay.
crowd() {
	local i

	for ((i = 0; i < $1; i++)); do
		exec {fd}<>"/dev/tcp/127.0.0.1/${TCP##*:}"
		printf '*1\r\n$4\r\nPING\r\n' >&"$fd"
		read -ru "$fd" _
		rest+=("$fd")
	done
}

let_in() {
	for fd in "${rest[@]}"; do
		exec {fd}>&-
	done
	rest=()
	eventually 10 no_clients
}

@test "words: no place for one more client: 75 in every tool, in the words of the server" {
	local url tool

	crowd 3
	for url in "$TCP" "$MQ_URL"; do
		for tool in "mq-publish q x" "mq-publish -l q" "mq-stats" "mq-stats --server" \
			"mq-consume q" "mq-clean" "mq-return q" "mq-purge --force --ready q" \
			"mq-pause q" "mq-set q attempts=3" "mq-lease --for 1m q"; do
			# shellcheck disable=SC2086 # words
			run_mq 75 $tool -u "$url" </dev/null
			assert_regex "${stderr_lines[0]}" \
				"^${tool%% *}: $url: ERR max number of clients reached$"
		done
	done
}
