#!/bin/sh
# What the build, the tools and the tests need from the system:
#   deps.sh --check SET...     lists what is missing and fails if anything is
#   deps.sh --install SET...   installs it with apt-get, when allowed to
#   deps.sh --npm DIR          puts the rsmq of npm into DIR, unless it is there
# Sets: build tls run test metrics proxy jobs html deb browser node bench fuzz memcheck lint.  CC, CPPFLAGS and
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
	deb) echo debhelper dpkg-dev lintian libssl-dev ;;
	browser) echo chromium ;;
	node) echo nodejs npm php-cli ;;
	fuzz) echo clang libclang-rt-dev ;;
	memcheck) echo valgrind ;;
	bench) echo python3 procps ;;
	lint) echo python3 clang-format clang-tidy cppcheck shellcheck mandoc \
		aspell aspell-en ;;
	*) echo "deps.sh: $1: no such set" >&2; exit 64 ;;
	esac
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

mode=$1
shift
if [ "$mode" = --npm ]; then
	install_rsmq "$1"
	exit
fi
want=$(missing "$@")
[ -n "$want" ] || exit 0
if [ "$mode" = --install ] && can_install; then
	install && want=$(missing "$@")
	[ -n "$want" ] || exit 0
fi
{
	echo "These packages (Debian's names) are missing:"
	echo "$want" | sed 's/^/    /'
	echo "Install them, for example: apt-get install" $want
} >&2
exit 78
