#!/bin/sh
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Runs tests on another Debian:
#   debian.sh VERSION [-d DIR] [TEST...]      12 to 14; all tests if none is given
# Makes a bare Debian with debootstrap in DIR, which is used again the next time, or in
# a directory for this run only.  Builds a copy of the checkout there, as CI does, which
# installs what is missing.  Needs root, debootstrap, and a mirror: MIRROR=URL, else that
# of apt here, whose settings and certificates the copy has, too.
# REDIS_SERVER=NAME, valkey-server for example, is a package that is installed, too, and
# the server of the tests (redis-server); JOBS and LIMIT are as tests/run.sh has them.
# shellcheck disable=SC2016 # the shells in the tree expand
set -eu

usage() {
	echo "usage: debian.sh 12|13|14 [-d DIR] [TEST...]" >&2
	exit 64
}

case ${1-} in
12) suite=bookworm ;;
13) suite=trixie ;;
14) suite=forky ;;
*) usage ;;
esac
shift
dir=
while getopts d: option; do
	case $option in
	d) dir=$OPTARG ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))

checkout=$(cd "$(dirname "$0")/.." && pwd)
if [ -z "$dir" ]; then
	dir=$(mktemp -d)
	trap 'rm -rf --one-file-system "$dir"' EXIT
	trap 'exit 130' INT TERM
fi
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
: "${MIRROR:=$("$checkout/tests/deps.sh" --mirror)}"
if ! [ -e "$dir/.made" ]; then
	# A suite younger than debootstrap is made as sid is.
	debootstrap --variant=minbase "$suite" "$dir" \
		"${MIRROR:?apt has none here; give one: MIRROR=URL}" sid >&2
	touch "$dir/.made"
fi
cp /etc/resolv.conf "$dir/etc/resolv.conf"
apt-config dump Acquire >"$dir/etc/apt/apt.conf.d/as-here"
# A mirror may be behind in testing, whose release file is good for a week.
echo 'Acquire::Check-Valid-Until "false";' >>"$dir/etc/apt/apt.conf.d/as-here"
certificates=/etc/ssl/certs/ca-certificates.crt
[ ! -e "$certificates" ] || cp "$certificates" "$dir/root/certificates.crt"

# What was built there before stays.
mkdir -p "$dir/src"
find "$dir/src" -mindepth 1 -maxdepth 1 ! -name 'build*' -exec rm -rf {} +
git -C "$checkout" ls-files -coz --exclude-standard |
	tar -C "$checkout" --null --ignore-failed-read -cf - -T - |
	tar -C "$dir/src" -xf -

# The mounts and the processes in the tree end with the command.  Its process group is one
# of the tree, too, as tests of process groups want; and its root is that of the mounts, for
# those that enter mounts of their own.
unshare --mount --pid --fork --kill-child sh -c '
	mount --bind "$0" "$0" && mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" &&
		cd "$0" && pivot_root . mnt && umount -l mnt && exec setsid "$@"' "$dir" \
	/usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin \
	NODE_EXTRA_CA_CERTS=/root/certificates.crt ${JOBS+"JOBS=$JOBS"} ${LIMIT+"LIMIT=$LIMIT"} \
	REDIS_SERVER="${REDIS_SERVER:-redis-server}" sh -c '
	cd /src || exit
	for package in make "$REDIS_SERVER"; do
		command -v "$package" >/dev/null || {
			apt-get update -qq
			apt-get install -y -qq --no-install-recommends "$package" >/dev/null
		}
	done
	exec make check WERROR=1 TESTS="$*"' sh "$@" &
trap 'kill -KILL $!; exit 130' INT TERM
wait $!
