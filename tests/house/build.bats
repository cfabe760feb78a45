#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The Makefile builds again what has changed, and nothing else, and make demo runs; and deps.sh asks
# for what is missing, and for no more.
# topology: own
# needs: dist

# Each test is a subshell of its own.
# shellcheck disable=SC2030,SC2031

load ../helpers/common

setup() {
	T=$(own_dir)
	cd "$T" || return
	# Nothing of the make that runs the tests.
	unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES CC CFLAGS CPPFLAGS LDFLAGS \
		LDLIBS VERSION SANITIZE WERROR TESTS STATIC TLS SYSTEMD SYSUSERS PKG_CONFIG
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

# A pkg-config that knows all libraries, but these.
pkg_config_without() {
	mkdir -p bin
	cat >bin/pkg-config <<-END
		#!/bin/sh
		for word; do
			case \$word in
			${1:-nothing}*) exit 1 ;;
			--libs) libs=1 ;;
			-*) ;;
			*) [ -z "\$libs" ] || printf -- '-l%s ' "\$word" ;;
			esac
		done
	END
	chmod +x bin/pkg-config
	export PKG_CONFIG=$T/bin/pkg-config
}

# How the tool would be compiled and linked with these.
plan() {
	run make -n build/mq-pause "$@"
}

@test "make: TLS is yes, no, or as the libraries are" {
	local value
	small_tree
	pkg_config_without hiredis_ssl
	plan
	assert_success
	refute_output --partial MQ_TLS
	for value in auto no; do
		plan TLS=$value
		assert_success
		refute_output --partial MQ_TLS
	done
	run make -s build/mq-pause TLS=yes
	assert_failure
	assert_output --regexp '^Makefile:[0-9]+: \*\*\* TLS=yes: .*hiredis_ssl.*libssl.*Stop\.$'
	# What builds nothing can be done.
	run make -s clean TLS=yes
	assert_success

	pkg_config_without
	for value in yes auto; do
		plan TLS=$value
		assert_success
		assert_output --partial ' -DMQ_TLS '
		assert_output --partial ' -lhiredis_ssl -llibssl '
	done
	plan TLS=no
	assert_success
	refute_output --regexp 'MQ_TLS|hiredis_ssl|libssl|libcrypto'
	# The environment says it, too.
	TLS=no plan
	refute_output --partial MQ_TLS
}

@test "make: what TLS, SYSTEMD and SYSUSERS cannot be is an error" {
	local word
	small_tree
	for word in TLS=on TLS=1 SYSTEMD=auto SYSUSERS=0 "TLS=yes no"; do
		run make -s -n build/mq-pause "$word"
		assert_failure
		assert_output --regexp "^Makefile:[0-9]+: \*\*\* $word: not one of yes no( auto)?\.  Stop\.\$"
	done
}

# fortified LEVEL VARIABLE...: the tool is compiled with this level, and without a warning.
fortified() {
	local level=$1
	shift
	echo "# $*"
	cat >cmd/mq-pause.c <<-'END'
		#include <stdio.h>
		#ifndef _FORTIFY_SOURCE
		#define _FORTIFY_SOURCE none
		#endif
		#define STRING(x) #x
		#define VALUE(x) STRING(x)
		int main(void) { puts(VALUE(_FORTIFY_SOURCE)); return 0; }
	END
	touch cmd/mq-pause.c
	run make -s build/mq-pause WERROR=1 "$@"
	assert_success
	assert_output ""
	assert_equal "$(build/mq-pause)" "$level"
}

@test "make: _FORTIFY_SOURCE is set where nobody has set it, and code is optimised" {
	local compiler
	small_tree
	compiler=$(command -v "${CC:-cc}")
	# A compiler that leaves it alone, and one that does not, whatever the system's does.
	mkdir -p bin
	printf '#!/bin/sh\nexec %s -U_FORTIFY_SOURCE "$@"\n' "$compiler" >bin/plain
	printf '#!/bin/sh\nexec %s -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=1 "$@"\n' "$compiler" >bin/hard
	chmod +x bin/*
	fortified 2 CC="$T/bin/plain"
	fortified 2 CC="$T/bin/plain" CFLAGS=-Og
	fortified none CC="$T/bin/plain" CFLAGS=-O0
	fortified none CC="$T/bin/plain" CFLAGS=
	fortified 1 CC="$T/bin/hard"
	fortified 1 CC="$T/bin/plain" CPPFLAGS=-D_FORTIFY_SOURCE=1
	fortified 1 CC="$T/bin/plain" CFLAGS="-O2 -D_FORTIFY_SOURCE=1"
	fortified 1 CC="$T/bin/plain" CFLAGS="-O2 -Wp,-U_FORTIFY_SOURCE,-D_FORTIFY_SOURCE=1"
	fortified none CC="$T/bin/plain" CPPFLAGS=-U_FORTIFY_SOURCE
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

# names SYSTEM SET...: what deps.sh prints.
names() {
	run "$root/tests/deps.sh" --print "$@"
}

@test "deps.sh: prints the packages of other distributions, and asks no package manager" {
	local sets system package
	sets=$(sed -n '/^packages() {/,/^}/s/^\t\([a-z]*\)) echo.*/\1/p' "$root/tests/deps.sh")
	(($(wc -w <<<"$sets") >= 13))
	mkdir bin
	for package in apt-get apt dnf yum rpm apk pacman sudo; do
		printf '#!/bin/sh\necho "%s" >>"%s"\n' "$package" "$T/ran" >"bin/$package"
	done
	chmod +x bin/*
	PATH=$T/bin:$PATH
	# shellcheck disable=SC2086 # words
	for system in debian fedora alpine arch; do
		names $system $sets
		assert_success
		# One a line, each once, all of them names.
		run ! grep -vxE '[A-Za-z0-9][A-Za-z0-9+._-]*' <<<"$output"
		names $system $sets
		assert_equal "$output" "$(sort -u <<<"$output")"
		((${#lines[@]} > 40))
	done
	names debian build
	assert_line libhiredis-dev
	names fedora build
	assert_equal "$(xargs <<<"$output")" \
		"gcc glibc-devel hiredis-devel jansson-devel libbsd-devel libev-devel libmd-devel make pkgconf-pkg-config"
	names alpine build tls
	assert_equal "$(xargs <<<"$output")" \
		"gcc hiredis-dev jansson-dev libbsd-dev libev-dev libmd-dev make musl-dev openssl openssl-dev pkgconf"
	names arch build run
	assert_equal "$(xargs <<<"$output")" \
		"gcc glibc hiredis jansson libbsd libev libmd make pkgconf valkey"
	[ ! -e ran ]
	for system in "" slackware; do
		names "$system" build
		[ "$status" = 64 ]
		assert_output --partial "debian, fedora, alpine or arch"
	done
	names fedora nonsense
	[ "$status" = 64 ]
	# Each name of another system is that of a package of ours.
	for package in $(sed -n '/^elsewhere() {/,/^}/s/^\t\t\([a-z0-9-]*\)\t.*/\1/p' "$root/tests/deps.sh"); do
		# shellcheck disable=SC2086
		names debian $sets
		assert_line "$package"
	done
}

@test "deps.sh: what is missing has the names of the system that it runs on" {
	local system command
	mkdir bin
	printf '#!/bin/sh\nexit 1\n' >bin/pkg-config
	chmod +x bin/pkg-config
	export PKG_CONFIG=$T/bin/pkg-config OS_RELEASE=$T/os-release
	while read -r system command; do
		printf 'NAME=x\n%b\n' "$system" >os-release
		run "$root/tests/deps.sh" --check build
		[ "$status" = 78 ]
		assert_output --regexp "$command .*jansson"
	done <<-'END'
		ID=debian apt-get install .*libhiredis-dev
		ID=ubuntu\nID_LIKE=debian apt-get install .*libhiredis-dev
		ID=nothing apt-get install .*libhiredis-dev
		ID=fedora dnf install .*hiredis-devel
		ID="rocky"\nID_LIKE="rhel\x20centos\x20fedora" dnf install .*hiredis-devel
		ID=alpine apk add .*hiredis-dev
		ID=arch pacman -S .*hiredis
		ID=manjaro\nID_LIKE=arch pacman -S .*hiredis
	END
	rm os-release
	run "$root/tests/deps.sh" --check build
	assert_output --partial "apt-get install"
}

# What the list has behind a need.
needy() {
	sed -n "s/^$1: //p" "$T/list" | tr ' ' '\n'
}

@test "make check: names the tests that need what a builder may not have" {
	local need file
	make -s -C "$root" check-needs >list
	assert_equal "$(sed 's/:.*//' list | xargs)" "proc network npm preload root"
	for need in proc network npm preload root; do
		for file in $(needy $need); do
			[ -e "$root/$file" ]
		done
	done
	# Those that have it in them, also by way of a helper or of a program beside them.
	for file in consume/worker consume/consume process/exhaust faults/faults; do
		needy proc | grep -qx "tests/$file.bats"
	done
	for file in peers/node peers/node-kill; do
		needy npm | grep -qx "tests/$file.bats"
		needy network | grep -qx "tests/$file.bats"
	done
	for file in publish/time server/resolve process/clocks; do
		needy preload | grep -qx "tests/$file.bats"
	done
	for file in server/disk process/signals; do
		needy root | grep -qx "tests/$file.bats"
	done
	run ! grep -E 'pause/pause|publish/replace|stats/past' list
	# Of some files, those; and make check begins with it.
	make -s -C "$root" check-needs TESTS="tests/server/disk.bats tests/pause/pause.bats" >list
	assert_equal "$(<list)" $'proc:\nnetwork:\nnpm:\npreload: tests/server/disk.bats\nroot: tests/server/disk.bats'
	make -n -C "$root" check 2>&1 | grep -n 'tests/needs.py\|tests/run.sh' | sort -n | head -n 1 |
		grep 'tests/needs.py'
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

# The system's own programs, which note that they ran; and a user who is root.
system_programs() {
	local program
	mkdir -p bin
	for program in systemd-sysusers systemd-tmpfiles systemctl useradd groupadd adduser addgroup \
		mandb makewhatis ldconfig chown getent update-rc.d rc-update udevadm; do
		printf '#!/bin/sh\necho "%s" >>"%s"\n' "$program" "$T/ran" >"bin/$program"
	done
	printf '#!/bin/sh\necho 0\n' >bin/id
	chmod +x bin/*
	PATH=$T/bin:$PATH
}

installs() {
	rm -rf ran tree
	make -s -o all -C "$root" B="$BUILD" install "$@" >log
	[ -x tree/bin/mq-consume ]
}

@test "make install: no program of the system runs under DESTDIR, or with SYSUSERS=no" {
	system_programs
	# As it is without a word.
	installs PREFIX="$T/tree"
	assert_equal "$(sort ran | xargs)" "systemd-sysusers systemd-tmpfiles"
	installs PREFIX="$T/tree" SYSUSERS=no
	[ ! -e ran ]
	[ -e tree/lib/sysusers.d/mq-tools.conf ]
	installs DESTDIR="$T/tree" PREFIX=
	[ ! -e ran ]
	installs DESTDIR="$T/tree" PREFIX= SYSUSERS=yes
	[ ! -e ran ]
	make -s -C "$root" B="$BUILD" DESTDIR="$T/tree" PREFIX= uninstall
	[ ! -e ran ]
}

@test "make install: SYSTEMD=no installs nothing of systemd" {
	system_programs
	installs PREFIX="$T/tree" SYSTEMD=no
	[ ! -e ran ]
	assert_equal "$(find tree -path '*systemd*' -o -path '*sysusers*' -o -path '*tmpfiles*' -o \
		-name '*.socket' -o -name '*.timer' -a ! -path '*/examples/*')" ""
	# All else is there.
	(cd tree && find . ! -type d | sort) >without
	installs PREFIX="$T/tree" SYSUSERS=no
	(cd tree && find . ! -type d | sort) >with
	assert_equal "$(comm -13 with without)" ""
	assert_equal "$(comm -23 with without | sed 's|[^/]*$||' | sort -u | xargs)" \
		"./lib/systemd/system/ ./lib/systemd/user/ ./lib/sysusers.d/ ./lib/tmpfiles.d/"
}

@test "make install: systemd understands the units, which may do no more than they need" {
	local unit
	make -s -o all -C "$root" B="$BUILD" PREFIX="$T/tree" SYSUSERS=no install >log
	cd "$T/tree/lib/systemd/system"
	# Distributions call the server differently; its clients start later, and end before it.
	assert_equal "$(grep -h ^After= mq-consume@.service mq-clean.service | uniq -c |
		sed 's/^ *2 After=network-online.target //')" \
		"valkey-server.service valkey.service redis-server.service redis.service"
	run systemd-analyze verify --man=no mq-consume@q.service mq-clean.timer mq-clean.service \
		mq-stats.socket mq-stats@1.service mq-publish.socket mq-publish@1.service
	assert_success
	assert_output ""
	run ! grep -r "@[A-Z]*@" . ../user
	XDG_RUNTIME_DIR=$T run systemd-analyze --user verify --man=no \
		"$PWD/../user/mq-flush.service" "$PWD/../user/mq-flush.timer"
	assert_success
	assert_output ""
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

# --- make dist ---------------------------------------------------------------------

dist() {
	run make -s -C "$@" dist VERSION=1.2
	assert_success
	assert_output ""
}

# commit DIR: a small checkout.
commit() {
	mkdir -p "$1/"{debian,.ci,cmd}
	cp "$root/Makefile" "$root/.gitattributes" "$1"
	touch "$1"/{debian/rules,.ci/run,cmd/tool.sh}
	chmod 755 "$1/cmd/tool.sh"
	git -C "$1" init -q
	git -C "$1" add .
	git -C "$1" -c user.name=x -c user.email=x@localhost commit -qm x
}

@test "make dist: the same bytes for anybody, with their sum; debian is not in them" {
	export GIT_CONFIG_NOSYSTEM=1 HOME=$T
	commit one
	dist one
	assert_equal "$(ls one)" "$(printf '%s\n' Makefile cmd debian mq-tools-1.2.tar.gz mq-tools-1.2.tar.gz.sha256)"
	(cd one && sha256sum --quiet -c mq-tools-1.2.tar.gz.sha256)
	assert_equal "$(tar -tzf one/mq-tools-1.2.tar.gz | sort | xargs)" \
		"mq-tools-1.2/ mq-tools-1.2/Makefile mq-tools-1.2/cmd/ mq-tools-1.2/cmd/tool.sh"
	# Another checkout, another person, another place, later; what is not committed is not in it.
	git clone -q one two
	touch -d @1 two/Makefile
	touch two/cmd/more
	git config --global tar.umask 077
	git config --global tar.tar.gz.command "gzip -1"
	(umask 077 && TZ=Asia/Tokyo LC_ALL=C dist two)
	cmp one/mq-tools-1.2.tar.gz two/mq-tools-1.2.tar.gz
}

@test "make dist: KEY signs, and no old signature is beside a new tarball" {
	export GNUPGHOME=$T/gpg HOME=$T
	mkdir -m 700 gpg
	commit one
	gpg --quiet --batch --passphrase '' --quick-generate-key 'x <x@localhost>' ed25519
	dist one KEY=x@localhost
	gpg --quiet --verify one/mq-tools-1.2.tar.gz.asc one/mq-tools-1.2.tar.gz
	run make -s -C one dist VERSION=1.2 KEY=nobody
	assert_failure
	[ ! -e one/mq-tools-1.2.tar.gz.asc ]
	dist one KEY=x@localhost
	dist one
	[ ! -e one/mq-tools-1.2.tar.gz.asc ]
	gpgconf --kill all
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
