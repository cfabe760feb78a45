#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The examples for who runs the tools: alert rules, a check, a timer, a crontab; and
# the workers in five languages.
# needs: metrics node

# run_mq sets output and stderr; each test is a subshell of its own.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

load ../helpers/server

setup() {
	common_setup
	examples=$BATS_TEST_DIRNAME/examples
	export PATH=$BUILD:$PATH
}

@test "monitoring: the alert rules fire, and only when they should" {
	run promtool test rules "$BATS_TEST_DIRNAME/alerts.yml"
	echo "$output"
	assert_success
	# Each rule has a test, and a part of mq-production(7).
	sed -n 's/.*- alert: //p' "$examples/mq.rules.yml" >"$T/alerts"
	while read -r alert; do
		grep -q "alertname: $alert\$" "$BATS_TEST_DIRNAME/alerts.yml"
		grep -qE "^\.Ss .*\<$alert\>" "$root/man/mq-production.7"
	done <"$T/alerts"
	assert [ "$(wc -l <"$T/alerts")" -ge 8 ]
}

@test "monitoring: the alert rules ask for metrics that there are" {
	run_mq 0 mq-publish -q jobs x
	run_mq 0 mq-consume -q -n 1 jobs -- true
	run_mq 0 mq-publish -q jobs x
	mq-stats --prometheus >"$T/metrics"
	grep -oE '\b(mq|rmq)_[a-z_]+' "$examples/mq.rules.yml" | sort -u >"$T/asked"
	assert [ "$(wc -l <"$T/asked")" -ge 9 ]
	while read -r name; do
		grep -q "^${name}[ {]" "$T/metrics"
	done <"$T/asked"
}

# nagios: the command with the arguments of the service, as Nagios puts them together.
nagios() {
	local line arguments
	line=$(sed -n 's/^[[:space:]]*command_line[[:space:]]*//p' "$examples/mq-nagios.cfg")
	IFS='!' read -ra arguments < <(sed -n 's/^[[:space:]]*check_command[[:space:]]*//p' \
		"$examples/mq-nagios.cfg")
	line=${line//\$ARG1\$/${arguments[1]}}
	line=${line//\$ARG2\$/${arguments[2]}}
	run -"$1" sh -c "${line/\/usr\/bin/$BUILD}" 3>&-
	assert [ "${#lines[@]}" = 1 ]
}

@test "monitoring: the command for Nagios says OK, WARNING, CRITICAL, UNKNOWN" {
	nagios 3
	run_mq 0 mq-publish -q mails x
	nagios 2
	start_mq mq-consume --grace 0s mails -- sleep 99
	eventually 10 sh -c 'mq-stats --running mails >/dev/null'
	nagios 0
	stop_mq
	run_mq 1 mq-consume -q -n 1 mails -- false
	start_mq mq-consume mails -- true
	eventually 10 sh -c 'mq-stats mails | awk "NR == 2 && \$6 == 1 {found = 1} END {exit !found}"'
	nagios 1
	stop_mq
}

@test "monitoring: systemd understands the timer of the textfile collector" {
	mkdir "$T/units"
	sed 's|/var/lib/prometheus/node-exporter|/tmp|' "$examples/mq-textfile.service" \
		>"$T/units/mq-textfile.service"
	cp "$examples/mq-textfile.timer" "$T/units"
	cd "$T/units"
	run systemd-analyze verify --man=no ./mq-textfile.service ./mq-textfile.timer
	assert_success
	assert_output ""
}

@test "monitoring: the textfile is there when it is whole, and an old one stays" {
	local line
	line=$(sed -n "s/^ExecStart=//p" "$examples/mq-textfile.service")
	cd "$T"
	run_mq 0 mq-publish -q jobs x
	run -0 sh -c "$line" 3>&-
	assert_output ""
	promtool check metrics <mq.prom
	cp -p mq.prom before
	MQ_URL=redis://127.0.0.1:1 run -69 sh -c "$line" 3>&-
	cmp mq.prom before
}

# cron: the jobs of the crontab, as cron runs them.
cron() {
	local line
	while IFS= read -r line; do
		[[ $line =~ ^([^ ]+\ ){4}[^[:space:]]+$'\t'(.*)$ ]]
		line=${BASH_REMATCH[2]//\\%/%}
		[[ ${BASH_REMATCH[2]//\\%/} != *%* ]]
		run env -i HOME="$T" MQ_URL="$MQ_URL" PATH="$BUILD:/usr/bin:/bin" sh -c "$line" 3>&-
		[ "$status" = 0 ] || echo "status $status: $line"
		printf '%s' "$output"
	done < <(grep -v -e '^#' -e '^$' -e '^PATH=' "$examples/mq.crontab")
}

@test "monitoring: the crontab prints what is wrong, and puts one report" {
	run_mq 0 mq-publish -q jobs x
	[[ $(cron) == *CRITICAL*jobs* ]]
	start_mq mq-consume --grace 0s jobs -- sleep 99
	eventually 10 sh -c 'mq-stats --running jobs >/dev/null'
	[ -z "$(cron)" ]
	stop_mq
	assert_equal "$(held jobs)" "2 0 0 0"
}

# works WORKER: it judges a file with lines, one without, and none.
works() {
	local q=${1#worker.}
	printf 'a\nb\nc\n' >"$T/three lines"
	: >"$T/empty"
	run_mq 0 mq-publish -q "$q" "$T/three lines" "$T/empty" "$T/none"
	run_mq 1 mq-consume --drain --joblog "$T/log" "$q" -- "$examples/$1"
	assert_equal "$(held "$q")" "0 1 0 1"
	grep -q $'done\t3 lines' "$T/log"
	mq-stats --list delayed --jsonl "$q" | grep -q still\ empty
	element "$q" rejected | header Mq-Error | grep -qE 'file|cannot|ENOENT'
	# A payload cannot speak.
	run_mq 0 mq-publish -q "$q-evil" $'/x\ndone\n'
	run_mq 1 mq-consume -q --drain "$q-evil" -- "$examples/$1"
	assert_equal "$(held "$q-evil")" "0 0 0 1"
}

@test "monitoring: the workers in sh, awk, Python, Perl and node" {
	local worker
	for worker in sh awk py pl js; do
		works "worker.$worker"
	done
}
