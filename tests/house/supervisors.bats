#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The examples for runit and OpenRC: the same consumer as mq-consume@.service starts, from the same
# files, without systemd.
# topology: own

# run_mq sets output and stderr; each test is a subshell of its own.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

load ../helpers/common

setup() {
	T=$(own_dir)
	examples=$BATS_TEST_DIRNAME/examples
	export T HOME=$T XDG_STATE_HOME=$T/state XDG_CONFIG_HOME=$T/config
	unset MQ_URL MQ_LAYOUT
	mkdir -p "$T/bin" "$T/etc/consume" "$T/home" "$T/state" "$T/config"
	PATH=$T/bin:$BUILD:$PATH
	# Whoever becomes _mq stays who it is.
	printf '#!/bin/sh\n[ "$1 $2" = "-u _mq" ] || exit 111\nshift 2\nexec "$@"\n' >"$T/bin/chpst"
	printf '#!/bin/sh\ncat >>"%s"\necho "$PWD $HOME" >>"%s"\n' \
		"$T/payloads" "$T/where" >"$T/etc/consume/jobs"
	chmod +x "$T/bin/chpst" "$T/etc/consume/jobs"
	echo MQ_URL=private: >"$T/etc/env"
	cd "$T" || return
}

teardown() {
	[ -z "${service-}" ] || kill "$service" 2>/dev/null || true
	redis-cli -s "$T/state/mq/redis.sock" shutdown nosave >/dev/null 2>&1 || true
	common_teardown
}

# Installs an example as this file, its paths in the folder of the test.
put() {
	mkdir -p "${2%/*}"
	sed "s|/etc/mq/|$T/etc/|g; s|/var/lib/mq|$T/home|g; s|/usr/bin/|$BUILD/|g" "$examples/$1" >"$2"
	chmod +x "$2"
	run ! grep -nE '/etc/mq|/var/lib' "$2"
}

@test "supervisors: runit starts a consumer, ends it, and starts no broken one again" {
	put mq-consume.runit sv/mq-consume-jobs/run
	# As systemd reads it: words without quotes, and comments.
	printf '# the options\nOPTIONS=-j2 --attempts 3\n' >etc/consume/jobs.conf
	run_mq 0 mq-publish -q jobs one
	cd sv/mq-consume-jobs
	./run >"$T/log" 2>&1 3>&- &
	service=$!
	cd "$T"
	eventually 20 grep -q one payloads
	assert_equal "$(<where)" "$T/home $T/home"
	# It has become the consumer, which obeys the signals of sv.
	assert_equal "$(tr '\0' ' ' <"/proc/$service/cmdline")" \
		"mq-consume -j2 --attempts 3 jobs -- $T/etc/consume/jobs "
	kill -TERM "$service"
	run wait "$service"
	assert_equal "$(grep -c . payloads)" 1

	# Without options, and of a queue with a dash in its name.
	put mq-consume.runit sv/mq-consume-to-do/run
	cp etc/consume/jobs etc/consume/to-do
	printf '#!/bin/sh\nprintf "<%%s>" "$@"\n' >bin/mq-consume
	chmod +x bin/mq-consume
	cd sv/mq-consume-to-do
	run ./run
	assert_output "<to-do><--><$T/etc/consume/to-do>"

	# What runit runs when it has ended.
	printf '#!/bin/sh\necho "$@" >>"%s"\n' "$T/told" >"$T/bin/sv"
	chmod +x "$T/bin/sv"
	cp run finish
	for status in 0 1 75 70 -1; do
		./finish $status 0
	done
	[ ! -e "$T/told" ]
	./finish 64 0
	./finish 78 0
	assert_equal "$(<"$T/told")" $'down .\ndown .'
}

# What openrc-run makes of the script: it is read, and then the supervisor is started by eval.
# $1 is the service.
openrc() {
	cat >openrc-run <<-'END'
		RC_SVCNAME=$1
		. "$2"
		start_pre >pre
		eval set -- "$command" "$command_args"
		printf '%s\n' "$@" >argv
		for name in supervisor command_user directory umask respawn_delay respawn_max retry \
			required_files description; do
			eval "echo $name=\$$name"
		done
	END
	printf '#!/bin/sh\n' >bin/checkpath
	chmod +x bin/checkpath
	run sh -u openrc-run "$1" init.d/mq-consume
}

@test "supervisors: OpenRC gets the command line of the unit" {
	put mq-consume.openrc init.d/mq-consume
	assert_equal "$(head -n 1 "$examples/mq-consume.openrc")" "#!/sbin/openrc-run"
	run sh -n init.d/mq-consume
	assert_success
	printf '# the options\nOPTIONS=-j2 --attempts 3\n' >etc/consume/jobs.conf
	openrc mq-consume.jobs
	assert_success
	assert_equal "$(xargs <argv)" \
		"$BUILD/mq-consume -j2 --attempts 3 jobs -- $T/etc/consume/jobs"
	assert_line supervisor=supervise-daemon
	assert_line command_user=_mq
	assert_line "directory=$T/home"
	assert_line umask=0027
	assert_line "required_files=$T/etc/env $T/etc/consume/jobs"
	# As the unit has it.
	assert_line "respawn_delay=$(sed -n 's/^RestartSec=//p' "$root/cmd/services/mq-consume@.service")"
	assert_line respawn_max=0
	assert_line "retry=TERM/$(sed -n 's/^TimeoutStopSec=//p' "$root/cmd/services/mq-consume@.service")/KILL/5"
	rm etc/consume/jobs.conf
	openrc mq-consume.to-do
	assert_success
	assert_equal "$(xargs <argv)" "$BUILD/mq-consume to-do -- $T/etc/consume/to-do"
	# The command that it builds works.
	run_mq 0 mq-publish -q jobs one
	openrc mq-consume.jobs
	mapfile -t argv <argv
	run_mq 0 mq-consume --drain "${argv[@]:1}"
	assert_equal "$(<payloads)" one
}
