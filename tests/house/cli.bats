#!/usr/bin/env bats
# The command line of all tools: what is wrong with it, and what to write.
# topology: own

# run_mq sets output and stderr; each test is a subshell of its own.
# shellcheck disable=SC2030,SC2031,SC2154

load ../helpers/common

setup_file() {
	server_start
}

teardown_file() {
	server_stop
}

setup() {
	common_setup
	export HOME=$T
	unset XDG_CONFIG_HOME
	# Nothing of what is refused reaches the server.
	redis client kill type normal skipme yes >/dev/null
	before=$(redis info stats | grep ^total_connections_received)
}

teardown() {
	common_teardown
}

# refused MESSAGE TOOL ARGS...: 64, with this line, and the server never asked.
refused() {
	run_mq 64 "${@:2}" </dev/null
	assert_equal "$output" ""
	assert_equal "$stderr" "$2: $1"
}

untouched() {
	local n

	n=$(redis info stats | tr -d '\r' | sed -n 's/^total_connections_received://p')
	assert_equal "$((n - $(tr -dc 0-9 <<<"$before")))" 1
	assert_equal "$(redis dbsize)" 0
}

@test "cli: a beginning of several options names them, and other mistakes themselves" {
	refused '--ba: ambiguous: --backoff, --batch or --batch-wait' mq-consume --ba 3 q
	refused '--re: ambiguous: --reason, --ready or --rejected' mq-purge --re q
	refused '--dr: unknown option (try --help)' mq-pause --dr q
	refused '--ve: ambiguous: --verbose or --version' mq-publish --ve q
	refused '--ve: ambiguous: --verbose or --version' mq-clean --ve=secret
	refused '--ve: ambiguous: --verbose or --version' mq-return --ve q
	refused '--j: ambiguous: --json or --jsonl' mq-stats --j
	refused '--json: takes no argument (try --help)' mq-stats --json=x
	refused '--quiet: takes no argument (try --help)' mq-stats --quiet=secret
	refused '--url: needs an argument (try --help)' mq-stats --url
	refused '-u: needs an argument (try --help)' mq-stats -u
	# What stands before it is not what is wrong.
	refused '-Z: unknown option (try --help)' mq-stats --json -Zk
	refused '-Z: unknown option (try --help)' \
		mq-stats --url=redis://:secret@h -qZk
	refused '--nope: unknown option (try --help)' mq-stats --nope=secret
	untouched
	# An exact one, and one that is meant by all that it can be, are none of it.
	run_mq 0 mq-consume --batch 3 --drain q -- true
	run_mq 0 mq-stats --conn --json
}

@test "cli: two framings, whatever the tool" {
	local both names

	for both in '-l -0:--lines and --null' '-0l:--null and --lines' \
		'--jsonl --netstring:--jsonl and --netstring' '-l -l --jsonl:--lines and --jsonl'; do
		names="${both#*:} cannot be used together"
		both=${both%:*}
		# shellcheck disable=SC2086
		{
			refused "$names" mq-publish $both q
			refused "$names" mq-consume $both q
			refused "$names" mq-consume --batch 3 $both q -- true
			refused "$names" mq-stats --list ready $both q
		}
	done
	untouched
	run_mq 0 mq-publish -l -l --lines q <<<x
	run_mq 0 mq-stats --list ready -0 --null q
}

@test "cli: a time where a queue is expected" {
	local time option

	for time in 2s 5 0.5m 100ms; do
		for option in --wait --wai; do
			refused "--wait $time: write --wait=$time (or --wait -- $time, if that is a name)" \
				mq-publish $option $time q x
			refused "--wait $time: write --wait=$time (or --wait -- $time, if that is a name)" \
				mq-publish q $option $time
		done
	done
	for time in 2s 0.5m 100ms; do
		refused "$time: use --for $time for a duration, or -- $time for a queue" mq-pause jobs $time
		refused "$time: use --for $time for a duration, or -- $time for a queue" mq-pause $time jobs
	done
	untouched
	# All of these are meant.
	run_mq 0 mq-publish -- 2s x
	run_mq 0 mq-publish 5 x
	run_mq 75 mq-publish --wait=100ms q x
	run_mq 75 mq-publish --wait=100ms 2s q
	timeout 180 "$BUILD/mq-publish" --wait -- 2s x &
	eventually 10 eval '[ "$(held 2s)" = "3 0 0 0" ]'
	run_mq 0 mq-consume -q --drain 2s -- true
	wait $!
	run_mq 0 mq-pause 5
	run_mq 0 mq-pause -- 2s
	run_mq 0 mq-pause --for 2s 5
	# --watch takes a time that stands behind it, too.
	run_mq 64 mq-stats --watch 2h --json 5
}

@test "cli: what a value or an operand has to be" {
	refused '--lines reads standard input; remove the operand a' mq-publish -l q a b
	refused '--jsonl reads standard input; remove the operand a' mq-publish --jsonl q a
	refused '-e: 0s: must be greater than 0' mq-publish -e 0s q a
	refused '--unique: 0: must be greater than 0' mq-publish -k a --unique 0 q a
	refused '-k: must not be empty' mq-publish -k '' q a
	refused '-H: Mq-Id: names that begin with Mq- are reserved' \
		mq-publish -H 'mq-id: a' q a
	refused '--from-tick 3 is greater than --until-tick 2' \
		mq-publish --from-tick 3 --until-tick 2 q a
	refused '--for: 0: must be greater than 0' mq-lease --for 0 q
	refused 'no --for, --ack, --reject, --extend or --return given (try --help)' mq-lease q
	refused '--for cannot be used with --ack, --reject or --return' mq-lease --ack a.1 --for 1s q
	refused '--text needs --ack or --reject' mq-lease --return a.1 --text x q
	refused 'slots: given twice' mq-set q slots=1 slots=2
	untouched
	run_mq 65 mq-publish --jsonl q <<<x
	assert_regex "$stderr" '^mq-publish: record 1: invalid JSON'
	run_mq 65 mq-publish --jsonl q <<<'[]'
	assert_regex "$stderr" '^mq-publish: record 1: not a JSON object'
}

@test "cli: one is not many" {
	run_mq 0 mq-publish q a
	run_mq 1 mq-stats --list ready --match nothing q
	assert_equal "$stderr" "mq-stats: q: none of 1 ready message matched"
	run_mq 0 mq-consume -q -n1 q -- false
	run_mq 0 mq-return q
	assert_output "1 message returned"
	run_mq 0 mq-purge --force --ready q
	assert_output "1 message purged"

	# What a dead consumer held.
	redis sadd rmq::connections dead-aaaaaa >/dev/null
	redis sadd 'rmq::connection::dead-aaaaaa::queues' q >/dev/null
	redis lpush 'rmq::connection::dead-aaaaaa::queue::[q]::unacked' x >/dev/null
	run_mq 0 mq-clean --dry-run
	assert_output --partial '1 dead connection, 1 message returned'
	start_mq mq-consume q -- true
	eventually 30 grep -q 'cleaned up' "$T/err"
	stop_mq
	grep -q '1 dead connection cleaned up: 1 message returned, 0 rejected$' "$T/err"
}
