#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# layouts: rmq rsmq
# topologies: cluster
# --output-keep: the output of runs at the server; mq-stats --id ID --output, and what follows.

load ../helpers/server
load ../helpers/consume

load "../helpers/layout-${LAYOUT:-rmq}"

: "${LAYOUT:=rmq}"

setup() {
	export LAYOUT MQ_LAYOUT=$LAYOUT
	common_setup
	[ "${TOPOLOGY-}" = cluster ] || redis config set maxmemory 0 >/dev/null
	# Writes until there is $T/go, a line each time that there is $T/say.
	script talk <<-'.'
		echo begun
		until [ -e "$T/go" ]; do
			if [ -e "$T/say" ]; then mv "$T/say" "$T/said"; cat "$T/said"; fi
			sleep 0.05
		done
		echo over >&2
		exit 3
	.
}

# The key with the output of message $1 of the queue q.
output_key() {
	case $LAYOUT-${TOPOLOGY-} in
	rmq-cluster) echo "rmq::queue::{q}::output::$1" ;;
	rmq-*) echo "rmq::queue::[q]::output::$1" ;;
	rsmq-cluster) echo "{rsmq}:q:Xoutput::$1" ;;
	*) echo "rsmq:q:Xoutput::$1" ;;
	esac
}

publish() {
	run_mq 0 mq-publish -i q "$@"
	id=$output
}

has() {
	[[ $("$BUILD/mq-stats" --id "$id" --output 2>/dev/null) == *"$1"* ]]
}

followed() {
	[[ $(cat "$T/followed" 2>/dev/null) == *"$1"* ]]
}

follow() {
	"$BUILD/mq-stats" --id "$id" --output --follow >"$T/followed" 2>"$T/follow.err" 3>&- &
	follower=$!
}

# Begun, and nothing has changed for half a second.
stands_still() {
	local before
	before=$(state "$1")
	[ "$before" != "0 100 0 0 0" ] && sleep 0.5 && [ "$(state "$1")" = "$before" ]
}

@test "output-keep: both outputs and the end, in order, raw; a time to live; an attempt behind the other" {
	publish x
	run_mq 0/75 mq-consume -n 1 --output-keep 64K:1h q -- \
		sh -c 'printf "one\033[1m\n"; exit 75'
	assert_equal "$output" $'one\033[1m'
	ttl=$(redis pttl "$(output_key "$id")")
	((ttl > 3500000 && ttl <= 3600000))
	run_mq 0/75 mq-consume -n 1 --output-keep 64K q -- sh -c 'echo two >&2'
	ttl=$(redis pttl "$(output_key "$id")")
	((ttl > 86300000 && ttl <= 86400000))
	prints $'one\033[1m\ntwo' mq-stats --id "$id" --output
	prints $'one\033[1m\ntwo' mq-stats --id "$id" --output --follow q
	assert_equal "$stderr" ""
}

@test "output-keep: nothing is kept without output, without the option, or of an unknown id" {
	publish x
	run_mq 0 mq-consume -n 1 --output-keep 4K q -- true
	tells 1 "mq-stats: $id: no output is kept (mq-consume --output-keep)" mq-stats --id "$id" --output
	publish x
	run_mq 0 mq-consume -n 1 q -- echo x
	run_mq 1 mq-stats --id "$id" --output --follow
	run_mq 1 mq-stats -q --id "$(printf '%032d' 7)" --output
	assert_equal "$stderr" ""
}

@test "output-keep: what is refused" {
	tells 64 "mq-consume: --output-keep cannot be used with --stream" \
		mq-consume --output-keep 4K --stream q -- cat
	tells 64 "mq-consume: --output-keep needs a COMMAND; add -- COMMAND" mq-consume --output-keep 4K q
	for size in 4095 17M 99999999999999999999 1K; do
		tells 64 "mq-consume: --output-keep: $size: SIZE must be from 4K to 16M" \
			mq-consume --output-keep "$size" q -- cat
	done
	for size in x 4KB '' :1d -4K; do
		tells 64 "mq-consume: --output-keep: $size: not of the form SIZE[:DUR], as in 64K:1d" \
			mq-consume --output-keep="$size" q -- cat
	done
	for dur in 999ms 31d; do
		tells 64 "mq-consume: --output-keep: 4K:$dur: DUR must be from 1s to 30d" \
			mq-consume --output-keep "4K:$dur" q -- cat
	done
	tells 64 "mq-stats: --output needs --id or --http" mq-stats --output
	tells 64 "mq-stats: --follow needs --id and --output" mq-stats --id "$(printf '%032d' 7)" --follow
	tells 64 "mq-stats: --output and --json cannot be used together" mq-stats --id "$(printf '%032d' 7)" --output --json
}

@test "output-keep: followed from the first line to the end" {
	publish x
	start_mq mq-consume -n 1 --output-keep 64K q -- "$T/talk"
	eventually 10 has begun
	follow
	eventually 5 followed begun
	echo more >"$T/say"
	eventually 5 followed more
	kill -0 "$follower"
	touch "$T/go"
	status=0
	wait "$follower" || status=$?
	assert_equal "$status" 0
	assert_equal "$(cat "$T/followed")" $'begun\nmore\nover'
	ends_with 1
}

@test "output-keep: a terminal that follows sees lines as they come, escaped, and how the run ends" {
	publish x
	start_mq mq-consume -n 1 --output-keep 64K q -- "$T/talk"
	eventually 10 has begun
	python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' \
		"$BUILD/mq-stats" --id "$id" --output --follow </dev/null >"$T/followed" 3>&- &
	follower=$!
	eventually 5 followed begun
	printf 'a\033[31mred\xff\303\251\n' >"$T/say"
	eventually 5 followed red
	touch "$T/go"
	wait "$follower"
	ends_with 1
	grep -q "mq-stats: $id: attempt 1, pid [0-9]* on " "$T/followed"
	grep -q "mq-stats: $id: exit status 3" "$T/followed"
	grep -qF 'a\033[31mred' "$T/followed"
	run ! grep -q $'\033\[31m' "$T/followed"
}

@test "output-keep: a consumer that is killed while it is followed" {
	publish x
	start_mq mq-consume -n 1 --output-keep 64K q -- "$T/talk"
	eventually 10 has begun
	follow
	eventually 5 followed begun
	stop_mq KILL
	if [ "${TOPOLOGY-}" = cluster ] && [ "$LAYOUT" = rmq ]; then
		redis del "rmq::connection::$(connections)::queue::{q}::lease" >/dev/null
	else
		expire "$(connections)"
	fi
	eventually 10 gone "$follower"
	status=0
	wait "$follower" || status=$?
	assert_equal "$status" 1
	assert_equal "$(cat "$T/follow.err")" "mq-stats: $id: its consumer is gone"
}

@test "output-keep: a flood: the last SIZE, a gap that is told, bounded memory" {
	local want got
	publish x
	"$BUILD/mq-consume" -n 1 --output-keep 64K q -- sh -c '
		seq 1 2000000; sleep 1.2; echo last' >/dev/null
	got=$(redis memory usage "$(output_key "$id")")
	[ "$got" -lt 120000 ]
	run_mq 0 mq-stats --id "$id" --output
	assert_equal "$(tail -n 2 <<<"$output")" $'2000000\nlast'
	grep -q "$id: [0-9]* bytes are left out here" <<<"$stderr"
	[ ${#output} -le 65536 ]
	[ ${#output} -gt 30000 ]
	# Nothing is lost unsaid.
	want=$({ seq 1 2000000; echo last; } | wc -c)
	got=$(grep -o '[0-9]* bytes' <<<"$stderr" | awk '{n += $1} END {print n}')
	[ "$got" -gt 0 ]
	[ $((got + ${#output} + 1)) -le "$want" ]
}

@test "output-keep: a flood reaches standard output whole and in order, also through a reader that waits" {
	seq 1 3000000 >"$T/flood"
	publish x
	"$BUILD/mq-consume" -n 1 --output-keep 4K q -- cat "$T/flood" >"$T/copied"
	cmp "$T/flood" "$T/copied"
	run_mq 0 mq-stats --id "$id" --output
	assert_equal "$(tail -n 1 <<<"$output")" 3000000
	publish x
	"$BUILD/mq-consume" -n 1 --output-keep 16M q -- cat "$T/flood" |
		perl -e 'while (sysread STDIN, $_, 5000) { print; select undef, undef, undef, 1e-5 }' >"$T/copied"
	cmp "$T/flood" "$T/copied"
}

@test "output-keep: nobody reads standard output: no byte of short runs is lost, and further ones wait" {
	seq 100 | "$BUILD/mq-publish" -q -l q
	mkfifo "$T/pipe"
	exec 8<>"$T/pipe"
	"$BUILD/mq-consume" -q -n 100 -j 2 --output-keep 4K q -- \
		perl -e 'print "0123456789abcde\n" x 2048' >"$T/pipe" 3>&- 8>&- &
	pid=$!
	eventually 20 stands_still q
	exec 7<"$T/pipe"
	timeout 60 cat <&7 8>&- >"$T/all" &
	exec 7<&- 8>&-
	wait "$pid"
	wait
	assert_equal "$(sort "$T/all" | uniq -c | awk '{ print $1, $2 }')" "204800 0123456789abcde"
}

@test "output-keep: the cap holds over many entries, and characters stay whole" {
	publish x
	run_mq 0 mq-consume -n 1 --output-keep 4K q -- sh -c '
		for i in 1 2 3; do
			yes é | head -n 800 | tr -d "\n"; sleep 1.1
		done'
	run_mq 0 mq-stats --id "$id" --output
	assert_equal "${output//é/}" ""
	[ "$(printf %s "$output" | wc -c)" -le 4096 ]
}

@test "output-keep: a batch: under the id of its first message" {
	publish a b
	first=${lines[0]} second=${lines[1]}
	run_mq 0 mq-consume -n 2 --batch 2 --output-keep 4K q -- cat
	prints $'a\nb' mq-stats --id "$first" --output
	run_mq 1 mq-stats --id "$second" --output
}

@test "output-keep: a server that is full or refuses: the run does not notice; one line with -v" {
	no_cluster "it has no single memory limit"
	publish x
	start_mq mq-consume -v -n 1 --output-keep 64K q -- "$T/talk"
	eventually 10 has begun
	redis acl setuser default -xadd >/dev/null
	echo more >"$T/say"
	eventually 5 grep -q "output is not kept" "$T/err"
	for i in 1 2 3; do
		echo "more $i" >"$T/say"
		sleep 0.6
	done
	touch "$T/go"
	ends_with 1
	redis acl setuser default +xadd >/dev/null
	assert_equal "$(grep -c "output is not kept" "$T/err")" 1
	grep -q "more 3" "$T/out"
	assert_equal "$(state q)" "0 0 0 1 0"
}

@test "output-keep: a server that is away comes back: what came meanwhile is kept, too" {
	no_cluster "one server is stopped"
	publish x
	start_mq mq-consume -n 1 --output-keep 64K q -- "$T/talk"
	eventually 10 has begun
	server_pid | xargs kill -STOP
	echo meanwhile >"$T/say"
	sleep 2
	server_pid | xargs kill -CONT
	eventually 10 has meanwhile
	touch "$T/go"
	ends_with 1
	eventually 5 has over
}

@test "output-keep: the page of a message has the end, if it is asked for" {
	publish x
	run_mq 0/1 mq-consume -n 1 --output-keep 64K q -- sh -c '
		seq 1 2000; printf "\033[1mbold\n"; exit 1'
	run_mq 0 mq-stats --http --output <<<"GET /message/$id HTTP/1.0"$'\r\n\r'
	page=$(tail -n 1 <<<"$output" | python3 -c 'import json, sys; print(json.load(sys.stdin)["output"])')
	assert_equal "$(tail -n 2 <<<"$page")" $'2000\n\\033[1mbold'
	((${#page} <= 4100 && ${#page} > 4000))
	run_mq 0 mq-stats --http <<<"GET /message/$id HTTP/1.0"$'\r\n\r'
	refute_output --partial '"output"'
}

@test "output-keep: the page of a message that has left nothing else" {
	publish x
	run_mq 0 mq-consume -n 1 --output-keep 64K q -- echo said
	run_mq 0 mq-stats --http --output <<<"GET /message/$id HTTP/1.0"$'\r\n\r'
	assert_output --partial "HTTP/1.1 200"
	assert_equal "$(tail -n 1 <<<"$output" | jq -c)" "{\"id\":\"$id\",\"output\":\"said\\n\"}"
	run_mq 0 mq-stats --http <<<"GET /message/$id HTTP/1.0"$'\r\n\r'
	assert_output --partial "HTTP/1.1 404"
	publish y
	run_mq 0 mq-consume -n 1 q -- echo said
	run_mq 0 mq-stats --http --output <<<"GET /message/$id HTTP/1.0"$'\r\n\r'
	assert_output --partial "HTTP/1.1 404"
}

@test "output-keep: with a log, and with whole runs, the output goes there as well" {
	publish x
	run_mq 0 mq-consume -n 1 --output-keep 4K --log-dir "$T" q -- sh -c 'echo out; sleep 0.1; echo err >&2'
	prints $'out\nerr' mq-stats --id "$id" --output
	grep -q '^out$' "$T/q.log"
	grep -q '^err$' "$T/q.log"
	publish x
	run_mq 0 mq-consume -n 1 --output-keep 4K --output runs q -- echo out
	assert_equal "$output" out
	prints out mq-stats --id "$id" --output
}

@test "output-keep: a queue that is deleted, and a round of cleaning, leave what is kept to its time" {
	publish x
	run_mq 0 mq-consume -n 1 --output-keep 4K q -- echo out
	run_mq 0 mq-clean
	has out
	run_mq 0 mq-purge --delete-queue --force q
	run_mq 0 mq-clean
	ttl=$(redis pttl "$(output_key "$id")")
	((ttl == -2 || ttl > 0))
}
