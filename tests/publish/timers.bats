#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The timers of mq-publish(1), with the very lines of the page: hosts that have
# the same one publish once.

load ../helpers/server

setup() {
	common_setup
	PATH=$BUILD:$PATH
	cd "$T" || return
}

teardown() {
	cd / || return
	common_teardown
}

# What the page shows, as a reader sees it.
shown() {
	mandoc -Tascii "$root/man/mq-service.7" | sed 's/.\x08//g' |
		sed -n '/^   Timers/,/^   Output/s/^ *//p'
}

# Lines of a crontab: the commands, as cron gives them to the shell: a percent
# sign ends them, unless there is a backslash before it.
cron_commands() {
	shown | grep -E '^[0-9*/,-]+( [0-9*/,-]+){4} ' | cut -d ' ' -f 6- |
		sed -E 's/([^\\])%.*/\1/; s/\\%/%/g'
}

unit_command() {
	shown | sed -n 's/^ExecStart=//p'
}

# on_hosts N COMMAND...: at once, with nothing else around; what each printed, and
# $statuses, sorted.
on_hosts() {
	local n=$1 i

	shift
	rm -f "$T"/status.*
	for i in $(seq "$n"); do
		{
			status=0
			env -i PATH="$PATH" MQ_URL="$MQ_URL" HOME="$T" "$@" \
				>"$T/out.$i" 2>&1 </dev/null || status=$?
			echo "$status" >"$T/status.$i"
		} 3>&- &
	done
	wait
	statuses=$(sort "$T"/status.* | xargs)
}

@test "timers: the crontab of the page: two hosts publish once, in silence" {
	local command commands want

	mapfile -t commands < <(cron_commands)
	assert_equal "${#commands[@]}" 2
	for command in "${commands[@]}"; do
		echo "$command"
		assert_regex "$command" '^mq-publish .*-k .*--unique '
		redis flushall >/dev/null
		for want in '0 1' '1 1' '1 1'; do
			on_hosts 2 sh -c "$command"
			assert_equal "$statuses$(cat "$T"/out.*)" "$want"
		done
		queue=$(redis smembers rmq::queues)
		assert_equal "$(held "$queue")" "1 0 0 0"
		# It has run, and a host that is late publishes no second one.
		run_mq 0 mq-consume --drain -l "$queue"
		assert_equal "$(wc -l <<<"$output")" 1
		on_hosts 1 sh -c "$command"
		assert_equal "$(held "$queue")" "0 0 0 0"
		# The next time, it publishes again.
		redis del "rmq::queue::[$queue]::locks" >/dev/null
		on_hosts 2 sh -c "$command"
		assert_equal "$statuses" "0 1"
	done
}

@test "timers: the crontab of the page: the key is free before the next run" {
	local line minute hour unique

	# Hourly and daily: the duration is shorter than that.
	while read -r line; do
		read -r minute hour _ <<<"$line"
		unique=$(sed -E 's/.*--unique ([0-9]+[mh]).*/\1/' <<<"$line")
		case $hour:$unique in
		\*:*m) ((${unique%m} < 60)) ;;
		[0-9]*:*h) ((${unique%h} < 24)) ;;
		*) fail "$line" ;;
		esac
		[[ $minute =~ ^[0-9]+$ ]]
	done < <(shown | grep -E '^[0-9]+ [0-9*]+ \* \* \* ')
}

@test "timers: the unit of the page: two hosts publish once, and none fails" {
	local command

	run unit_command
	assert_equal "${#lines[@]}" 1
	# systemd has no shell: words, and nothing that it would replace.
	refute_regex "$output" "[%\$\"'\\\\;]"
	read -ra command <<<"$output"
	for _ in 1 2 3; do
		on_hosts 2 "${command[@]}"
		run grep -Lxe 0 -e "$(shown |
			sed -n 's/^SuccessExitStatus=//p')" "$T"/status.*
		assert_output ""
		assert_equal "$(cat "$T"/out.*)" ""
	done
	assert_equal "$(held reports)" "1 0 0 0"
}

@test "timers: the units of the page are units" {
	local n

	shown | awk '/^\[Service\]/ {f = "mq.service"}
		/^\[Timer\]/ {f = "mq.timer"}
		/^\[|^[A-Za-z]+=/ {if (f) print > f}'
	sed -i "s|^ExecStart=mq-publish|ExecStart=$BUILD/mq-publish|" mq.service
	run systemd-analyze verify ./mq.service ./mq.timer
	assert_equal "$output" ""
}
