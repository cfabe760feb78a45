#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# layouts: rmq rsmq
# topologies: cluster
# topology: own
# What each mode costs the server, to the byte, is in costs.txt: whoever moves a number
# changes its line there, and says why.  A script that asks too much is slow, and nothing
# else shows that.

# Each test is a subshell of its own.
# shellcheck disable=SC2030,SC2031,SC2086,SC2154

load ../helpers/server

: "${LAYOUT:=rmq}"
export MQ_LAYOUT=$LAYOUT
section=${TOPOLOGY:-$LAYOUT}
sockets=redis.sock
[ "$section" != cluster ] || sockets='0/redis.sock 1/redis.sock 2/redis.sock'

# The server knows the scripts: their texts are no cost of a mode, and change often.
setup_file() {
	server_start
	cd "$D" || return
	PYTHONPATH=$root/tests/helpers PYTHONDONTWRITEBYTECODE=1 python3 -c '
import sys, transcript_run
scripts = transcript_run.Scripts(sys.argv[1])
for sock in sys.argv[2:]:
    scripts.load(sock)' "$BUILD" $sockets
	faketime=$(find /usr/lib -name libfaketime.so.1 | head -n 1)
	[ -n "$faketime" ] || return
	export faketime
	seq 1000 >"$D/1000"
	seq 100 >"$D/100"
	sed 's/.*/{"payload":"&","headers":{"Mq-Key":"&"}}/' "$D/1000" >"$D/keys"
}

setup() {
	common_setup
	: >"$T/differs"
	asking=(0 0 0)
	asked=0 look=(0 0 0)
	cost true
	asking=("${cost[@]}")
}

# sample: sets seen to the commands that the server has carried out, those of scripts
# included, and to the bytes that it has got and sent.
sample() {
	local sock n got sent
	seen=(0 0 0)
	for sock in $sockets; do
		read -r n got sent < <(redis-cli -s "$D/$sock" --raw eval '
			local n, bytes = 0, redis.call("INFO", "stats")
			for calls in redis.call("INFO", "commandstats"):gmatch("calls=(%d+)") do
				n = n + calls
			end
			return n .. " " .. bytes:match("total_net_input_bytes:(%d+)") .. " " ..
				bytes:match("total_net_output_bytes:(%d+)")' 0)
		((seen[0] += n, seen[1] += got, seen[2] += sent, 1))
	done
}

# cost COMMAND...: sets cost to what that does to the sample, without what a test has
# asked the server meanwhile, and what a look costs.
cost() {
	local i before
	sample
	before=("${seen[@]}")
	status=0
	"$@" >"$T/out" 2>"$T/err" || status=$?
	sample
	for i in 0 1 2; do
		cost[i]=$((seen[i] - before[i] - asking[i] - asked * look[i]))
	done
}

# row STATUS MODE N COMMAND...: N messages in that mode cost what the line of MODE says.
row() {
	local want=$1 mode=$2 n=$3
	shift 3
	cost "$@"
	[ "$status" = "$want" ] || {
		echo "$*: status $status, not $want"
		cat "$T/err"
		return 1
	}
	listed "$mode" "$n"
}

# listed MODE N: so it is with what cost has counted.
listed() {
	local mode="$section $1" name cells told=() i
	while IFS=: read -r name cells; do
		[ "$name" != "$mode" ] || read -ra told <<<"$cells"
	done <"$BATS_TEST_DIRNAME/costs.txt"
	for i in 0 1 2; do
		case ${told[i + 1]-} in
		'<'*) ((cost[i] >= ${told[i + 1]#<})) || cost[i]=${told[i + 1]} ;;
		esac
	done
	[ "${told[*]}" = "$2 ${cost[*]}" ] ||
		printf '%-30s %8s %9s %9s %9s\n' "$mode:" "$2" "${cost[@]}" >>"$T/differs"
}

# as_told: the lines of costs.txt that should be others.
as_told() {
	assert_equal "$(cat "$T/differs")" ""
}

is_rsmq() {
	[ "$LAYOUT" = rsmq ]
}

publish() {
	"$BUILD/mq-publish" -q "$@" -l q <"$D/1000"
}

# holds N: q has so many messages, and nobody anything else.
holds() {
	redis flushall >/dev/null
	"$BUILD/mq-publish" -q -l q <"$D/$1"
}

# A consumer renews its lease, writes down its counts, and asks for fewer messages at once
# when they take long.  Its clock goes a hundred times slower, so that however busy the
# machine is, nothing of that is counted with what a message costs.
consume() {
	LD_PRELOAD=$faketime FAKETIME='+0 x0.01' \
		ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 "$BUILD/mq-consume" -q "$@"
}

@test "costs: publishing" {
	local how ways=("-l" "-d 1h" "-e 1h")
	row 0 "publish one" 1 "$BUILD/mq-publish" -q q x
	is_rsmq || ways+=("--raw" "--max-length 5000")
	for how in "${ways[@]}"; do
		redis flushall >/dev/null
		row 0 "publish $how" 1000 publish $how
	done
	if ! is_rsmq; then
		redis flushall >/dev/null
		row 0 "publish -k" 1000 "$BUILD/mq-publish" -q --jsonl q <"$D/keys"
	fi
	redis config set appendfsync always >/dev/null
	redis config set appendonly yes >/dev/null
	row 0 "publish --durable" 1000 publish --durable
	redis config set appendonly no >/dev/null
	as_told
}

# Published and claimed together; one of a group at a time, with no claim between them
# that finds nothing.
@test "costs: what asks for a place in line" {
	local how
	! is_rsmq || skip "it has only one"
	for how in "-p 5" "-p -5" "--from-tick 0" "-g g"; do
		redis flushall >/dev/null
		row 0 "publish $how" 1000 publish $how
		row 0 "print $how" 1000 consume --drain -l q
		cmp "$T/out" "$D/1000"
	done
	as_told
}

# A worker for --stream that does every message.
answers() {
	script answers /usr/bin/perl <<-'END'
		open my $verbs, ">&=3"; $verbs->autoflush; print $verbs "done\n" while <STDIN>;
	END
}

@test "costs: consuming" {
	answers
	holds 1000
	row 0 "print" 1000 consume --drain -l q
	holds 100
	row 0 "fork -j1" 100 consume --drain q -- true
	holds 100
	row 0 "fork -j4" 100 consume --drain -j4 q -- true
	holds 1000
	row 0 "batch" 1000 consume --drain --batch 100 q -- true
	holds 1000
	row 0 "stream -j1" 1000 consume --drain --stream q -- "$T/answers"
	holds 1000
	row 0 "stream -j4" 1000 consume --drain --stream -j4 q -- "$T/answers"
	as_told
}

# Nothing ahead, and so little that goes by the pace.
@test "costs: consuming one by one" {
	local one=(--drain --prefetch 0 --no-clean)
	answers
	holds 100
	row 0 "fork, one by one" 100 consume "${one[@]}" q -- true
	holds 100
	row 0 "stream, one by one" 100 consume "${one[@]}" --stream --window 1 q -- "$T/answers"
	holds 1000
	row 0 "batch, one by one" 1000 consume "${one[@]}" --batch 100 q -- true
	as_told
}

# renewed N LEASE: until it has been renewed so many times; asked counts the looks.  If
# a look comes so late that it may have missed one, missed is set.
renewed() {
	local n=0 left now at=$SECONDS
	asked=1 missed=
	left=$(redis pttl "$2")
	until ((n == $1 || asked == 200)); do
		tick
		now=$(redis pttl "$2")
		((SECONDS - at < 6)) || missed=1
		((asked++, n += now > left, at = SECONDS, 1))
		left=$now
	done
	tick
}

@test "costs: waiting" {
	local lease
	no_cluster "consumers look at the nodes by the second"
	"$BUILD/mq-publish" -q q x
	start_mq mq-consume --no-clean q
	eventually 10 test -s "$T/out"
	lease=$(redis keys "$(is_rsmq && echo 'rsmq::connection:*' || echo '*::heartbeat')")
	cost redis pttl "$lease"
	look=("${cost[@]}")
	renewed 1 "$lease"
	while
		cost renewed 2 "$lease"
		[ -n "$missed" ]
	do
		:
	done
	listed "idle, 2 heartbeats" 0
	as_told
	stop_mq
}

@test "costs: other ends than done, and back" {
	holds 100
	row 75 "retry" 100 consume -n 100 --backoff 1h..1h q -- sh -c 'exit 75'
	row 0 "return --from delayed" 100 "$BUILD/mq-return" -q --from delayed q
	row 1 "reject" 100 consume -n 100 q -- false
	row 0 "return" 100 "$BUILD/mq-return" -q q
	row 0 "purge --match" 100 "$BUILD/mq-purge" -q --force --ready --match 7 q
	row 0 "purge" 81 "$BUILD/mq-purge" -q --force --all q
	as_told
}

# A hundred queues that have nothing, but that the layout tells them from none.
hundred_queues() {
	redis flushall >/dev/null
	for n in {1..100}; do
		if is_rsmq; then
			echo "hset rsmq:q$n:Q vt 30 delay 0 maxsize 65536 created 1 modified 1"
			echo "sadd rsmq:QUEUES q$n"
		else
			echo "sadd rmq::queues q$n"
		fi
	done | redis >/dev/null
}

# dead N: so many connections with one message each, whose consumers are gone.
dead() {
	redis flushall >/dev/null
	redis eval 'for i = 1, ARGV[1] do
		local c = "rmq::connection::c" .. i
		redis.call("SADD", "rmq::connections", "c" .. i)
		redis.call("SADD", c .. "::queues", "q")
		redis.call("LPUSH", c .. "::queue::[q]::unacked", i)
	end' 0 "$1" >/dev/null
}

@test "costs: looking" {
	holds 100
	row 0 "stats, 1 queue" 100 "$BUILD/mq-stats"
	row 0 "stats --list" 100 "$BUILD/mq-stats" --list ready -l q
	hundred_queues
	row 0 "stats, 100 queues" 0 "$BUILD/mq-stats"
	as_told
}

@test "costs: cleaning" {
	local n
	[ "$section" = rmq ] || skip "one script makes the dead there"
	row 0 "clean, nothing there" 0 "$BUILD/mq-clean" -q
	for n in 1 100; do
		dead "$n"
		row 0 "clean, $n dead" "$n" "$BUILD/mq-clean" -q
	done
	as_told
}
