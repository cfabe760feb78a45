#!/usr/bin/env bats
# The units of systemd that make install puts beside the tools, as systemd reads them.
# topology: own

load ../helpers/common

setup_file() {
	TREE=$(own_dir)
	export TREE
	# Nothing of the make that runs the tests.
	unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
	make -s -o all -C "$root" B="$BUILD" PREFIX="$TREE" install >/dev/null
}

teardown_file() {
	rm -rf "$TREE"
}

@test "services: systemd understands the units, and finds what they start" {
	cd "$TREE/lib/systemd/system"
	run systemd-analyze verify --man=no mq-consume@q.service mq-clean.timer mq-clean.service \
		mq-stats.socket mq-stats@1.service mq-publish.socket mq-publish@1.service
	assert_success
	assert_output ""
	run ! grep -r '@BINDIR@' .
}

@test "services: they may do no more than they need" {
	local unit
	cd "$TREE/lib/systemd/system"
	for unit in *.service; do
		run systemd-analyze security --offline=true --threshold=20 --no-pager "$unit"
		assert_success
	done
}

@test "services: logs are rotated, and opened anew" {
	grep -q '^/var/log/mq/\*\.log {' "$TREE/etc/logrotate.d/mq-tools"
	grep -q -- '--signal=HUP' "$TREE/etc/logrotate.d/mq-tools"
	grep -qx 'u _mq - .* /var/lib/mq' "$TREE/lib/sysusers.d/mq-tools.conf"
	grep -qx 'd /etc/mq 0750 root _mq' "$TREE/lib/tmpfiles.d/mq-tools.conf"
}
