#!/bin/bash
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# ports.sh N: prints N ports in a row that nobody has, nor those 10000 above, where the
# nodes of a cluster talk to each other.
#
# The system gives none of them to a connection, and a counter hands each out once,
# whoever asks: between the choice and the server nobody else takes it.
set -eu

from=10000 upto=20000
counter=/tmp/mq-ports.$UID

taken() {
	{ : <>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null
}

# row_is_free FIRST: else FIRST could be $next.
row_is_free() {
	local p
	for ((p = $1; p < $1 + n; p++)); do
		next=$((p + 1))
		! taken "$p" && ! taken $((p + 10000)) || return 1
	done
}

n=$1
exec 9<>"$counter"
flock 9
read -r next <&9 || next=$((from + RANDOM % (upto - from)))
while
	first=$next
	((first >= from && first + n <= upto)) || first=$from
	! row_is_free "$first"
do :; done
echo "$next" >"$counter"
seq -s ' ' "$first" $((first + n - 1))
