#!/bin/sh
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Builds the tools as static binaries of musl, without TLS, and runs tests with them:
#   musl.sh [TEST...]     unit tests, and the tests that need no Debian, or TESTs
#   musl.sh -b            builds the tools only
# The tools are in build-musl/mq.  Their libraries are built once, in build-musl, from the
# source packages of the Debian that this machine runs, which apt-get fetches by a list of
# its own: MIRROR=URL, else that of apt here.  JOBS and LIMIT are as tests/run.sh has them.
# Not for CI: it takes minutes, and the tests run there with glibc.
set -eu

cd "$(dirname "$0")/.."
build_only=
case ${1-} in
-b) build_only=yes ;;
-*)
	echo "usage: musl.sh [-b | TEST...]" >&2
	exit 64
	;;
esac
root=$PWD/build-musl
libraries="libmd libbsd libev jansson hiredis cmocka"
# A library path of the user's has libraries of glibc.
unset CPATH C_INCLUDE_PATH LIBRARY_PATH
export PKG_CONFIG_LIBDIR="$root/lib/pkgconfig"

# Into the current directory.
fetch_sources() {
	: "${MIRROR:=$(../../tests/deps.sh --mirror)}"
	mkdir -p lists/partial
	echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
		"${MIRROR:?apt has none here; give one: MIRROR=URL}" \
		"$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release) main" >sources.list
	for command in update "source $libraries"; do
		# shellcheck disable=SC2086 # words
		apt-get -qq -o Dir::Etc::SourceList="$PWD/sources.list" -o Dir::Etc::SourceParts=- \
			-o Dir::State::Lists="$PWD/lists" -o Dir::Cache="$PWD" \
			-o APT::Sandbox::User= $command >/dev/null
	done
}

# build NAME: in the directory of its source.
build() {
	case $1 in
	libmd | libbsd | libev)
		./configure --host="$(uname -m)-linux-musl" --prefix="$root" --disable-shared &&
			make install
		;;
	jansson | cmocka)
		cmake -S . -B made -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$root" \
			-DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_POLICY_VERSION_MINIMUM=3.5 \
			-DBUILD_SHARED_LIBS=OFF -DWITH_STATIC_LIB=ON -DWITH_EXAMPLES=OFF \
			-DJANSSON_BUILD_DOCS=OFF -DJANSSON_EXAMPLES=OFF \
			-DJANSSON_WITHOUT_TESTS=ON &&
			make -C made install &&
			# The static one of cmocka has another name, and is not installed.
			find made -name 'libcmocka*.a' -exec cp {} "$root/lib/libcmocka.a" \;
		;;
	hiredis)
		make install PREFIX="$root" INCLUDE_PATH=include/hiredis
		;;
	esac
}

build_libraries() {
	rm -rf "$root"
	mkdir -p "$root/source" "$root/kernel"
	# Headers of Linux, which libbsd asks for, without those of glibc beside them.
	for folder in linux asm-generic "$(gcc -print-multiarch)/asm"; do
		ln -s "/usr/include/$folder" "$root/kernel/"
	done
	cd "$root/source"
	fetch_sources
	MAKEFLAGS=-j$(nproc)
	export MAKEFLAGS CC=musl-gcc CFLAGS=-O2 LDFLAGS="-L$root/lib" \
		CPPFLAGS="-I$root/include -isystem $root/kernel"
	for library in $libraries; do
		(cd "$library"-*/ && build "$library") >"$library.log" 2>&1 || {
			tail -n 20 "$library.log" >&2
			exit 1
		}
	done
	echo "$root" >"$root/made"
}

tests/deps.sh --install musl
# A copy of the checkout is no place for what knows its path.
[ "$(cat "$root/made" 2>/dev/null)" = "$root" ] || (build_libraries)
if [ -n "$build_only" ]; then
	set -- all
elif [ $# -gt 0 ]; then
	set -- check TESTS="$*"
else
	set -- check TESTS="$(printf 'tests/%s/*.bats ' \
		clean consume lease pause publish purge queue return set stats)"
fi
# muldefs: unit tests play functions of libraries, as they can with a shared one.
exec make -j"$(nproc)" B=build-musl/mq TLS=no WERROR=1 CC=musl-gcc \
	CPPFLAGS="-isystem $root/include" LDFLAGS="-static -Wl,-z,muldefs -L$root/lib" "$@"
