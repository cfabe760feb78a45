#!/usr/bin/env bats
# The Makefile builds again what has changed, and nothing else, and make demo runs; and deps.sh asks
# for what is missing, and for no more.
# topology: own

# Each test is a subshell of its own.
# shellcheck disable=SC2030,SC2031

load ../helpers/common

setup() {
	T=$(own_dir)
	cd "$T" || return
	# Nothing of the make that runs the tests.
	unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES CC CFLAGS CPPFLAGS LDFLAGS \
		LDLIBS VERSION SANITIZE WERROR TESTS STATIC
}

teardown() {
	cd / || return
	rm -rf "$T"
}

# --- make -----------------------------------------------------------------------

own_tree() {
	mkdir tests
	cp "$root/Makefile" .
	cp "$root/tests/deps.sh" tests
}

# Few sources, in the folders of the real ones; the compiler is real.
small_tree() {
	own_tree
	mkdir -p cmd/shared common/{base,message,redis} common/queue/rmq/lua
	cp "$root/common/queue/"embed.{sh,awk} common/queue
	echo 'extern int mq_header; int mq_header = 1;' >common/message/headers.c
	touch common/message/headers.h
	echo 'return 1' >common/queue/rmq/lua/ack.lua
	echo 'struct mq_script { const char *sha, *text, *keys[4];
		int fewest_keys, most_keys, fewest_args, most_args, has_list; };' >common/redis/command.h
	echo 'extern int mq_url;' >common/redis/url.h
	printf '#include "redis/url.h"\nint mq_url = 1;\n' >common/redis/url.c
	echo 'extern int mq_option; int mq_option = 1;' >cmd/shared/option.c
	printf '#include <stdio.h>\n#include "redis/url.h"
int main(void) { puts("mq-tools " MQ_VERSION); return !mq_url; }\n' >cmd/mq-pause.c
}

make_pause() {
	run make build/mq-pause CFLAGS=-O0 "$@"
	assert_success
}

# Whether the last make compiled or linked all of these, and nothing else.
made() {
	assert_equal "$(sed -n 's|.* -o build/\([^ ]*\).*|\1|p' <<<"$output" | sort | xargs)" "$*"
}

all=(cmd/mq-pause.o cmd/shared/option.o common/lua.o common/message/headers.o common/redis/url.o mq-pause)

@test "make: other flags, another version, and other sources are built again" {
	small_tree
	make_pause
	made "${all[@]}"
	make_pause
	made
	make_pause CPPFLAGS=-DX
	made "${all[@]}"
	make_pause VERSION=9.9
	made "${all[@]}"
	assert_equal "$(build/mq-pause)" "mq-tools 9.9"
	make_pause VERSION=9.9 LDFLAGS=-Wl,-s
	made "${all[@]}"
	make_pause VERSION=9.9 LDFLAGS=-Wl,-s
	made

	# A header, for those that include it.
	touch common/redis/url.h
	make_pause VERSION=9.9 LDFLAGS=-Wl,-s
	made cmd/mq-pause.o common/redis/url.o mq-pause

	# A new file and its end.
	echo 'extern int mq_one_more; int mq_one_more = 1;' >common/base/one-more.c
	make_pause VERSION=9.9 LDFLAGS=-Wl,-s
	made common/base/one-more.o common/lua.o mq-pause
	ar t build/common/libmq.a | grep -qx one-more.o
	rm common/base/one-more.c
	make_pause VERSION=9.9 LDFLAGS=-Wl,-s
	made common/lua.o mq-pause
	refute grep -x one-more.o <(ar t build/common/libmq.a)

	# So for scripts.
	cp common/queue/rmq/lua/{ack,one_more}.lua
	make_pause VERSION=9.9 LDFLAGS=-Wl,-s
	grep -q one_more build/lua.c
	rm common/queue/rmq/lua/one_more.lua
	make_pause VERSION=9.9 LDFLAGS=-Wl,-s
	refute grep -q one_more build/lua.c
}

# What a make would do itself, and let others do.
would() {
	make -n "$@" 2>&1 | grep -E '^(make|(MQ_BUILD=.* )?tests/)'
}

@test "make: REDIS_SERVER is what the tests know as redis-server" {
	own_tree
	cp "$root/tests/as-redis.sh" tests
	mkdir there
	touch there/valkey-server there/valkey-cli
	chmod +x there/*
	would demo REDIS_SERVER=there/valkey-server
	assert_equal "$(readlink build/server/redis-server)" "$T/there/valkey-server"
	assert_equal "$(readlink build/server/redis-cli)" "$T/there/valkey-cli"
	[ ! -e build/server/redis-benchmark ]
	run make -n demo REDIS_SERVER=nowhere
	assert_failure
	assert_output --partial "as-redis.sh: nowhere: no such server"
}

# --- deps.sh ----------------------------------------------------------------------

deps() {
	run "$root/tests/deps.sh" --check "$@"
	echo "$output"
}

@test "deps.sh: headers are where CPPFLAGS, CFLAGS or pkg-config say" {
	local compiler
	# A compiler to which nothing is installed but what it is told.
	compiler=$(command -v "${CC:-cc}")
	mkdir bin include
	printf '#!/bin/sh\nexec "%s" -nostdinc "$@"\n' "$compiler" >bin/cc
	chmod +x bin/cc
	touch include/stdio.h include/ev.h
	export CC=$T/bin/cc
	deps build
	[ "$status" = 78 ]
	assert_output --partial libev-dev
	for flags in CPPFLAGS CFLAGS; do
		(
			export $flags="-O2 -I$T/include"
			deps build
			[ "$status" = 0 ]
		)
	done
	printf '#!/bin/sh\n[ "$2" != libc ]\n' >bin/pkg-config
	chmod +x bin/pkg-config
	PKG_CONFIG=$T/bin/pkg-config deps build
	refute_output --partial libev-dev
}

@test "make check: a browser, node and clang are wanted by those tests alone that need them" {
	local file wanted

	for file in stats/html:browser peers/node:node peers/node-kill:node \
		fuzz/fuzz:fuzz stats/metrics:metrics publish/publish:; do
		wanted=${file#*:}
		would -C "$root" check TESTS="tests/${file%:*}.bats" >plan
		grep "deps.sh --install build run test *$" plan
		grep "deps.sh --install $wanted *||" plan
	done
	# Whoever calls them says so.
	for file in $(grep -lE 'chromium --|deps\.sh" --npm|make .* fuzzers' "$root"/tests/*/*.bats); do
		[ "$file" = "$BATS_TEST_FILENAME" ] || grep -q '^# needs: ' "$file"
	done
}

@test "make check: builds on all processors, lint is one of the tests, and CI runs it" {
	grep -q 'STATIC=1' "$root/.ci/run"
	would -C "$root" check STATIC=1 >plan
	grep "^make .*-j$(nproc) .*all" plan
	grep "deps.sh --install build .*lint" plan
	grep "tests/run.sh .*tests/lint.sh" plan
}

@test "make install: all tools, pages, completions and examples, and uninstall leaves nothing" {
	local tool examples=$T/root/usr/share/doc/mq-tools/examples
	make -s -o all -C "$root" B="$BUILD" DESTDIR="$T/root" PREFIX=/usr install >log
	for tool in "$T"/root/usr/bin/*; do
		"$tool" -V | grep -q '^mq-'
		[ -e "$T/root/usr/share/man/man1/${tool##*/}.1" ]
		[ -e "$T/root/usr/share/bash-completion/completions/${tool##*/}" ]
	done
	[ -x "$T/root/usr/bin/mq-consume" ]
	[ -e "$T/root/usr/share/man/man7/mq.7" ]
	[ -e "$T/root/usr/share/man/man7/mq-worker.7" ]
	diff -r "$root/tests/house/examples" "$examples"
	[ -x "$examples/worker.sh" ]
	[ ! -x "$examples/mq.rules.yml" ]
	make -s -C "$root" B="$BUILD" DESTDIR="$T/root" PREFIX=/usr uninstall >>log
	assert_equal "$(find "$T/root" ! -type d)" ""
	[ ! -e "$T/root/usr/share/doc/mq-tools" ]
}

@test "make install: systemd understands the units, which may do no more than they need" {
	local unit
	make -s -o all -C "$root" B="$BUILD" PREFIX="$T/tree" install >log
	cd "$T/tree/lib/systemd/system"
	# Distributions call the server differently; its clients start later, and end before it.
	assert_equal "$(grep -h ^After= mq-consume@.service mq-clean.service | uniq -c |
		sed 's/^ *2 After=network-online.target //')" \
		"valkey-server.service valkey.service redis-server.service redis.service"
	run systemd-analyze verify --man=no mq-consume@q.service mq-clean.timer mq-clean.service \
		mq-stats.socket mq-stats@1.service mq-publish.socket mq-publish@1.service
	assert_success
	assert_output ""
	run ! grep -r "@[A-Z]*@" .
	for unit in *.service; do
		run systemd-analyze security --offline=true --threshold=20 --no-pager "$unit"
		assert_success
	done
	# Logs are rotated, and opened anew.
	grep -q '^/var/log/mq/\*\.log {' "$T/tree/etc/logrotate.d/mq-tools"
	grep -q -- '--signal=HUP' "$T/tree/etc/logrotate.d/mq-tools"
	grep -qx 'u _mq - .* /var/lib/mq' "$T/tree/lib/sysusers.d/mq-tools.conf"
	grep -qx 'd /etc/mq 0750 root _mq' "$T/tree/lib/tmpfiles.d/mq-tools.conf"
}

# --- make demo -----------------------------------------------------------------------

# The main job of the README, on a small tree: with the real private server,
# a real SIGKILL, and the real 60 seconds until the lease has run out.
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
