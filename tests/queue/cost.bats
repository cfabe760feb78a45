#!/usr/bin/env bats
# How many commands options cost the server, which carries out those of scripts one
# by one: a script that asks too much is slow, and nothing else shows that.

load ../helpers/server

# commands: how many the server has carried out, those of scripts included.
commands() {
	redis info commandstats |
		sed -n 's/^cmdstat_.*:calls=\([0-9]*\),.*/\1/p' | awk '{ n += $1 } END { print n + 0 }'
}

# cost MAX COMMAND...: it takes the server so many commands at most.
cost() {
	local max=$1 before
	shift
	before=$(commands)
	"$@"
	echo "# $(($(commands) - before)) commands: $*" >&2
	(($(commands) - before <= max))
}

published() {
	seq 1000 | "$BUILD/mq-publish" "$@" -l q
}

drained() {
	"$BUILD/mq-consume" --drain -l q >"$T/got"
	sort -n "$T/got" | cmp - <(seq 1000)
	assert_equal "$(held q)" "0 0 0 0"
}

# Each message by itself: 2000 commands at least.
@test "cost: messages that ask for the same, published and claimed together" {
	local how
	for how in "-p 5" "-p -5" "-d 1ms" "-e 1h" "--from-tick 0" \
		"--max-length 5000"; do
		# shellcheck disable=SC2086 # two words
		cost 150 published $how
		cost 900 drained
		[ "$how" = "-d 1ms" ] || cmp "$T/got" <(seq 1000)
	done
}

# 26 a message; 39 when each claim is followed by one that finds nothing.
@test "cost: one group, one message at a time" {
	seq 200 | "$BUILD/mq-publish" --group g -l q
	cost 6000 "$BUILD/mq-consume" --drain -l q >"$T/got"
	cmp "$T/got" <(seq 200)
	assert_equal "$(held q)" "0 0 0 0"
}
