#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# layouts: rmq rsmq
# topologies: cluster
# Stopping one running message from afar: mq-purge --running and mq-return --running.

load ../helpers/server
load "../helpers/layout-${LAYOUT:-rmq}"

setup() {
	common_setup
	works 'echo >"$T/termed"; exit 0'
}

# works TRAP: the script leaves its process, waits to be stopped, and does this then.
works() {
	script work <<.
trap '$1' TERM
sleep 1000 &
echo \$! >"\$T/child.new"
mv "\$T/child.new" "\$T/child"
while :; do wait; done
.
}

runs() {
	[ "$("$BUILD/mq-stats" --running --json 2>/dev/null | grep -o '"id"' | wc -l)" = "$1" ]
}

# The id of the only run.
run_id() {
	"$BUILD/mq-stats" --running --json | sed -E 's/.*"id":"([^"]*)".*/\1/'
}

attempt_is() {
	[[ $("$BUILD/mq-stats" --running --json) = *'"attempt":'$1,* ]]
}

# begin [OPTION...]: a message that runs, in $id.
begin() {
	run_mq 0 mq-publish jobs x
	start_mq mq-consume "$@" jobs -- "$T/work"
	eventually 10 test -s "$T/child"
	eventually 10 runs 1
	id=$(run_id)
}

request_key() {
	[ "$MQ_LAYOUT" = rsmq ] && echo rsmq:jobs:Xstop || echo 'rmq::queue::[jobs]::stop'
}

@test "stop: purge ends the process group and removes the message" {
	begin
	run_mq 0 mq-purge --running --id "$id" jobs
	assert_output "1 message purged"
	assert_equal "$stderr" ""
	assert test -e "$T/termed"
	eventually 5 gone "$(cat "$T/child")"
	assert_equal "$(held jobs)" "0 0 0 0"
	assert_equal "$(redis exists "$(request_key)")" 0
	stop_mq
	assert_regex "$(cat "$T/err")" "jobs: $id: purged: stopped by an operator"
	assert_regex "$("$BUILD/mq-stats" --json jobs)" '"done":0,.*"failed":0'
}

@test "stop: return makes it ready, and counts the attempt" {
	begin --attempts 2
	run_mq 0 mq-return --running --id "$id" jobs
	assert_output "1 message returned"
	eventually 10 attempt_is 2
	# That was the last one.
	run_mq 0 mq-return --running --id "$id" jobs
	assert_output "0 messages returned"
	assert_equal "$stderr" "mq-return: jobs: $id: rejected, as that was its last attempt"
	assert_equal "$(held jobs)" "0 0 0 1"
	run_mq 0 mq-stats --list rejected --json jobs
	assert_regex "$output" "attempts exhausted: stopped by an operator"
	stop_mq
}

@test "stop: a script that ignores TERM is killed after the grace time; without the right to wake" {
	works ''
	begin --grace 1s
	run_mq 0 mq-purge --running --id "$id" --json jobs
	assert_output '{"queue":"jobs","purged":1,"ready":0,"delayed":0,"rejected":0,"deleted":false,"dry_run":false,"running":1}'
	eventually 5 gone "$(cat "$T/child")"
	stop_mq
	rm "$T/child"
	# With the next renewal.
	redis acl setuser mute on '>word' allkeys resetchannels +@all -publish >/dev/null
	begin --grace 0s
	MQ_URL=$(url_as mute:word) run_mq 0 mq-purge --running --id "$id" jobs
	assert_output "1 message purged"
	redis acl deluser mute >/dev/null
	stop_mq
}

@test "stop: what a script says before the end stands" {
	works 'echo done >&3; exit 0'
	begin
	run_mq 1 mq-return --running --id "$id" jobs
	assert_equal "$stderr" "mq-return: jobs: $id: it had ended already"
	assert_equal "$(held jobs)" "0 0 0 0"
	stop_mq
}

@test "stop: a batch and a stream end, and the others go back without an attempt" {
	local how
	script work <<'.'
trap '' TERM
while read -r line; do [ "$line" != 3 ] || echo $$ >"$T/child"; done
sleep 1000
.
	for how in "--batch 3" "--stream --window 3"; do
		rm -f "$T/child"
		run_mq 0 mq-publish jobs 1 2 3
		# shellcheck disable=SC2086 # words
		start_mq mq-consume $how --lines --attempts 2 --grace 0s jobs -- "$T/work"
		eventually 10 test -s "$T/child"
		eventually 10 runs 1
		run_mq 0 mq-purge --running --id "$(run_id)" jobs
		assert_output "1 message purged"
		stop_mq
		run_mq 0 mq-consume --drain -l jobs
		assert_output $'2\n3'
	done
}

@test "stop: no answer: 75, and the request is withdrawn" {
	begin --grace 0s
	kill -STOP "$pid"
	run_mq 75 mq-purge --running --id "$id" jobs
	assert_regex "$stderr" "^mq-purge: jobs: $id: no answer from mq-consume-[^ ]+; the request is withdrawn$"
	assert_equal "$(redis exists "$(request_key)")" 0
	kill -CONT "$pid"
	assert test ! -e "$T/termed"
	stop_mq
}

@test "stop: a run that has ended, another message, and none" {
	local key other
	begin --grace 0s
	other=$(tr 0-9a-z 1-9a-z0 <<<"$id")
	run_mq 1 mq-purge --running --id "$other" jobs
	assert_equal "$stderr" "mq-purge: jobs: $other: not running; it may have ended already"
	run_mq 1 mq-purge --running --id "$id" nojobs
	assert_regex "$stderr" "nojobs"
	run_mq 0 mq-purge --running --dry-run --id "$id" jobs
	assert_output "1 message would be purged"
	# Its record says another attempt than it has.
	key=$([ "$MQ_LAYOUT" = rsmq ] && echo "rsmq::running:$(connections)" ||
		echo "rmq::connection::$(connections)::running")
	redis set "$key" "$(redis get "$key" | sed 's/"attempt":1/"attempt":7/')" >/dev/null
	run_mq 1 mq-return --running --id "$id" jobs
	assert_equal "$stderr" "mq-return: jobs: $id: it had ended already"
	# And as an older consumer writes it.
	redis set "$key" "$(redis get "$key" | sed 's/"grace_ms":[0-9]*,//')" >/dev/null
	run_mq 1 mq-return --running --id "$id" jobs
	assert_regex "$stderr" "cannot be stopped; the mq-consume of mq-consume-[^ ]+ is too old: stop process [0-9]+ on "
	assert test ! -e "$T/termed"
	stop_mq
}

@test "stop: what has no run of mq-consume is refused" {
	run_mq 0 mq-publish -i jobs x
	id=$output
	run_mq 0 mq-lease --for 60s jobs
	run_mq 1 mq-purge --running --id "$id" jobs
	assert_regex "$stderr" "jobs: $id: cannot be stopped; [^ ]+ has it, and runs no script of mq-consume with it$"
}

@test "stop: held the wrong way: 64" {
	local row
	while IFS='|' read -r row said; do
		# shellcheck disable=SC2086 # words
		run_mq 64 $row
		assert_regex "$stderr" "$said"
	done <<'.'
mq-purge --running jobs|--running: needs --id
mq-return --running jobs|--running: needs --id
mq-purge --running --id x a b|--running: needs exactly one queue
mq-purge --running --ready --id x a|--running and another state cannot be used together
mq-return --running --from delayed --id x a|--running and --from cannot be used together
mq-return --running --to b --id x a|--running and --to cannot be used together
mq-return --running --id x --reason y a|--running and --reason cannot be used together
.
}
