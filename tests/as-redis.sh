#!/bin/sh
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Lets the tests run with another server, which they know as redis-server:
#   as-redis.sh SERVER DIR     links in DIR; prints DIR, for the front of PATH
# SERVER is a redis-server or valkey-server of any version.  The programs beside it go
# along; those that are not there are the system's.
set -eu

server=$(command -v -- "$1") || {
	echo "as-redis.sh: $1: no such server" >&2
	exit 78
}
server=$(realpath -s -- "$server")
mkdir -p "$2"
dir=$(cd "$2" && pwd)
echo "$dir"
# Tests that run have these links open, and may call make.
case $server in
"$dir/redis-server" | "$(readlink "$dir/redis-server")") exit ;;
esac
rm -f "$dir"/redis-*
for name in cli benchmark; do
	for there in "${server%/*}/redis-$name" "${server%/*}/valkey-$name"; do
		[ ! -x "$there" ] || ln -sf "$there" "$dir/redis-$name"
	done
done
ln -s "$server" "$dir/redis-server"
