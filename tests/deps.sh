#!/bin/sh
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What the build, the tools and the tests need from the system:
#   deps.sh --check SET...     lists what is missing and fails if anything is
#   deps.sh --install SET...   installs it with apt-get, when allowed to
#   deps.sh --print SYSTEM SET...   prints how debian, fedora, alpine or arch calls all of it
#   deps.sh --mirror           prints where apt gets the Debian of this machine from
#   deps.sh --npm DIR          puts the rsmq of npm into DIR, unless it is there
# Sets: build tls run test metrics proxy jobs html dist deb browser node bench fuzz memcheck lint musl.  CC, CPPFLAGS and
# CFLAGS say where the compiler looks, as for make.
# shellcheck disable=SC2086 # $want and the flags are lists of words
set -u

packages() {
	case $1 in
	build) echo gcc libc6-dev make pkg-config libhiredis-dev libbsd-dev \
		libev-dev libjansson-dev libmd-dev ;;
	tls) echo libssl-dev openssl ;;
	run) echo redis-server redis-tools ;;
	test) echo bats bats-assert bats-support libcmocka-dev python3 curl perl \
		procps util-linux groff-base mandoc bash-completion zsh fish faketime jq strace systemd ;;
	metrics) echo prometheus ;;
	proxy) echo nginx ;;
	jobs) echo parallel ;;
	html) echo mandoc ;;
	dist) echo git gpg gpg-agent ;;
	deb) echo debhelper dpkg-dev lintian libssl-dev ;;
	browser) echo chromium ;;
	node) echo nodejs npm php-cli ;;
	fuzz) echo clang libclang-rt-dev ;;
	memcheck) echo valgrind ;;
	bench) echo python3 procps ;;
	lint) echo python3 clang-format clang-tidy cppcheck shellcheck mandoc \
		aspell aspell-en ;;
	musl) echo gcc make pkg-config musl-tools linux-libc-dev cmake dpkg-dev ;;
	*) echo "deps.sh: $1: no such set" >&2; exit 64 ;;
	esac
}

# What Fedora, Alpine and Arch call it where that differs from Debian, with a comma between two
# packages; -: they have no such thing, or have it in another one of the same set.
elsewhere() {
	cat <<-'END'
		libc6-dev	glibc-devel	musl-dev	glibc
		pkg-config	pkgconf-pkg-config	pkgconf	pkgconf
		libhiredis-dev	hiredis-devel	hiredis-dev	hiredis
		libbsd-dev	libbsd-devel	libbsd-dev	libbsd
		libev-dev	libev-devel	libev-dev	libev
		libjansson-dev	jansson-devel	jansson-dev	jansson
		libmd-dev	libmd-devel	libmd-dev	libmd
		libssl-dev	openssl-devel	openssl-dev	-
		redis-server	valkey	valkey	valkey
		redis-tools	-	valkey-cli	-
		bats	bats	bats,bash,coreutils,findutils,gawk,grep,sed	bats
		libcmocka-dev	libcmocka-devel	cmocka-dev	cmocka
		python3	python3	python3	python
		perl	perl-interpreter,perl-JSON-PP	perl	perl
		procps	procps-ng	procps-ng	procps-ng
		util-linux	util-linux,util-linux-script	util-linux-misc,setpriv	util-linux
		groff-base	groff	groff	groff
		faketime	libfaketime	libfaketime	libfaketime
		systemd	systemd	-	systemd
		prometheus	golang-github-prometheus	prometheus	prometheus
		gpg	gnupg2	gnupg	gnupg
		gpg-agent	-	-	-
		debhelper	-	-	-
		dpkg-dev	-	-	-
		musl-tools	musl-gcc	musl-dev	musl
		linux-libc-dev	kernel-headers	linux-headers	linux-api-headers
		lintian	-	-	-
		npm	nodejs-npm	npm	npm
		php-cli	php-cli	php	php
		libclang-rt-dev	compiler-rt	compiler-rt	compiler-rt
		clang-format	clang-tools-extra	clang-extra-tools	clang
		clang-tidy	clang-tools-extra	clang-extra-tools	clang
		shellcheck	ShellCheck	shellcheck	shellcheck
	END
}

# names SYSTEM: of the packages on stdin, one a line.
names() {
	case $1 in
	debian) column=1 ;;
	fedora) column=2 ;;
	alpine) column=3 ;;
	arch) column=4 ;;
	*) echo "deps.sh: $1: not one of debian, fedora, alpine or arch" >&2; exit 64 ;;
	esac
	{ elsewhere && cat; } | awk -v column="$column" '
		NF > 1 { name[$1] = $column; next }
		{ print $1 in name ? name[$1] : $1 }' | tr ',' '\n' | grep -vx -e - | sort -u
}

# Sets system, and the command that installs packages there.
find_system() {
	system=debian command="apt-get install"
	# shellcheck disable=SC1090,SC2154
	words=$(. "${OS_RELEASE:-/etc/os-release}" 2>/dev/null && echo "${ID-} ${ID_LIKE-}")
	for word in $words; do
		case $word in
		debian) ;;
		fedora) command="dnf install" ;;
		alpine) command="apk add" ;;
		arch) command="pacman -S" ;;
		*) continue ;;
		esac
		system=$word
		return
	done
}

program() {
	command -v "$1" >/dev/null
}

library() {
	"${PKG_CONFIG:-pkg-config}" --exists "$1" 2>/dev/null
}

header() {
	printf '#include <%s>\n' "$1" |
		${CC:-cc} ${CPPFLAGS-} ${CFLAGS-} -E - >/dev/null 2>&1
}

# Whether clang has libFuzzer.
fuzzer() {
	printf 'int LLVMFuzzerTestOneInput(const char *p, unsigned long n)
		{ return p == 0 && n > 0; }' |
		clang -fsanitize=fuzzer -xc -o /dev/null - >/dev/null 2>&1
}

# Whether what a package is for is here, however it was installed.
have() {
	case $1 in
	gcc) program ${CC:-cc} ;;
	libc6-dev) header stdio.h ;;
	linux-libc-dev) header linux/types.h ;;
	groff-base) program groff ;;
	pkg-config) program "${PKG_CONFIG:-pkg-config}" ;;
	libhiredis-dev) library hiredis ;;
	libbsd-dev) library libbsd-overlay ;;
	libmd-dev) library libmd ;;
	libev-dev) library libev || header ev.h ;;
	libjansson-dev) library jansson ;;
	libssl-dev) library libssl ;;
	libcmocka-dev) library cmocka ;;
	redis-tools) program redis-cli ;;
	debhelper) program dh ;;
	dpkg-dev) program dpkg-buildpackage ;;
	musl-tools) program musl-gcc ;;
	prometheus) program promtool ;;
	libclang-rt-dev) fuzzer ;;
	perl) perl -MJSON::PP -e 1 2>/dev/null ;; # not perl-base alone
	procps) program ps ;;
	util-linux) program script ;;
	systemd) program systemd-analyze ;;
	parallel) parallel --version 2>/dev/null | grep -q GNU ;; # not that of moreutils
	nodejs) program node ;;
	php-cli) program php ;;
	bats-assert | bats-support)
		[ -e "/usr/lib/bats/$1/load.bash" ] || [ -e "/usr/lib/$1/load.bash" ] ;;
	aspell-en) aspell dicts 2>/dev/null | grep -qx en_GB-ise ;;
	bash-completion) [ -e /usr/share/bash-completion/bash_completion ] ;;
	*) program "$1" ;;
	esac
}

missing() {
	for set; do
		for p in $(packages "$set"); do
			have "$p" || echo "$p"
		done
	done | sort -u
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

can_install() {
	program apt-get && { [ "$(id -u)" = 0 ] || program sudo; }
}

install() {
	echo "installing:" $want
	export DEBIAN_FRONTEND=noninteractive
	# A machine that runs no services by itself is left so: the tools
	# start the redis-server that they need.
	as_root apt-get update -qq
	# Somebody else may be installing, too.
	as_root apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends $want >/dev/null
}

# What we are compatible with; the tests and the benchmark speak with it.
RSMQ=0.12.4

install_rsmq() {
	there=$1/node_modules/rsmq/package.json
	if [ -e "$there" ] && grep -q "\"version\": \"$RSMQ\"" "$there"; then
		return 0
	fi
	mkdir -p "$1" &&
		npm install --silent --no-save --no-package-lock --no-audit \
			--no-fund --prefix "$1" "rsmq@$RSMQ" >/dev/null && return 0
	echo "deps.sh: npm cannot install rsmq $RSMQ into $1" >&2
	return 1
}

mirror() {
	# shellcheck disable=SC2016 # apt-get expands
	apt-get indextargets --format '$(RELEASE) $(REPO_URI)' | awk -v name="$(
		sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" '$1 == name { print $2; exit }'
}

mode=$1
shift
case $mode in
--mirror)
	mirror
	exit
	;;
--npm)
	install_rsmq "$1"
	exit
	;;
--print)
	system=$1
	shift
	packages=$(for set; do packages "$set" || exit; done) || exit
	printf '%s\n' $packages | names "$system"
	exit
	;;
esac
want=$(missing "$@")
[ -n "$want" ] || exit 0
if [ "$mode" = --install ] && can_install; then
	install && want=$(missing "$@")
	[ -n "$want" ] || exit 0
fi
find_system
there=$(echo "$want" | names "$system")
want=${there:-$want}
{
	echo "These packages (the names of $system) are missing:"
	echo "$want" | sed 's/^/    /'
	echo "Install them, for example: $command" $want
} >&2
exit 78
