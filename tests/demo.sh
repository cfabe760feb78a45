#!/bin/bash
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The main job on real input: publish the path of every file under a
# directory, digest each of them by a script, kill the consumer in the middle,
# start it again, and prove that nothing was lost.
#
#   demo.sh BUILD [DIRECTORY]
set -u

build=$(cd "$1" && pwd)
tree=${2:-/usr/share/doc}
worker=$(cd "$(dirname "$0")" && pwd)/house/examples/digest.sh
slots=$(nproc)

dir=$(mktemp -d "${TMPDIR:-/tmp}/mq-demo.XXXXXX")
export XDG_STATE_HOME=$dir RESULTS=$dir/results
unset MQ_URL MQ_PASSWORD_FILE REDISCLI_AUTH
export XDG_CONFIG_HOME=$dir
consumer=
PATH=$build:$PATH

clean_up() {
	[ -z "$consumer" ] || kill -KILL "$consumer" 2>/dev/null
	redis-cli -s "$dir/mq/redis.sock" shutdown nosave >/dev/null 2>&1
	rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

die() {
	echo "demo: $*" >&2
	exit 1
}

show() {
	printf '\n$ %s\n' "$*"
}

results() {
	wc -l <"$RESULTS"
}

# The numbers of the queue's row: ready delayed unacked rejected consumers.
row() {
	mq-stats docs | awk 'NR == 2 {print $2, $3, $4, $5, $6}'
}

nap() {
	read -rt "$1" <> <(:) || true
}

: >"$RESULTS"
show "find $tree -type f -print0 | mq-publish -0 -i docs"
find "$tree" -type f -print0 | mq-publish -0 -i docs >"$dir/ids" ||
	die "publishing failed"
published=$(wc -l <"$dir/ids")
[ "$published" -gt 0 ] || die "$tree: no files"
mq-stats

show "mq-consume -j$slots docs -- digest.sh &      # and kill -KILL it at a third"
mq-consume -q -j"$slots" docs -- "$worker" &
consumer=$!
disown # so that the shell does not report its death
while [ "$(results)" -lt $((published / 3)) ] && kill -0 "$consumer" 2>/dev/null; do
	nap 0.1
done
kill -KILL "$consumer"
while kill -0 "$consumer" 2>/dev/null; do
	nap 0.01
done
consumer=
read -r _ _ unacked _ <<<"$(row)"
echo "killed after $(results) results; it held $unacked messages"
mq-stats

show "mq-consume -j$slots --drain docs -- digest.sh"
mq-consume -q -j"$slots" --drain docs -- "$worker" &
consumer=$!
said=
while kill -0 "$consumer" 2>/dev/null; do
	read -r ready _ unacked _ <<<"$(row)"
	if [ "${ready:-1}" = 0 ] && [ -z "$said" ] &&
		[ "$(results)" -ge $((published - unacked)) ]; then
		said=yes
		echo "waiting for the dead consumer's lease (60 s)"
	fi
	nap 0.2
done
wait "$consumer" || die "mq-consume failed"
consumer=
mq-stats

cut -d' ' -f1 "$RESULTS" | sort >"$dir/ran"
sort "$dir/ids" >"$dir/wanted"
lost=$(uniq "$dir/ran" | comm -23 "$dir/wanted" - | wc -l)
unknown=$(uniq "$dir/ran" | comm -13 "$dir/wanted" - | wc -l)
twice=$(uniq -d "$dir/ran" | wc -l)
distinct=$(uniq "$dir/ran" | wc -l)
printf '\npublished %d  results %d  lost %d  ran twice %d\n' \
	"$published" "$distinct" "$lost" "$twice"
if [ "$lost" != 0 ] || [ "$unknown" != 0 ] || [ "$distinct" != "$published" ]; then
	die "messages were lost"
fi
awk '{n += $3; c += $4} END {printf "%d bytes in all, %d compressed\n", n, c}' "$RESULTS"
