# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-publish --wait and mq-consume --keep: how a message ended, for those who
# wait and those who ask later.
load ../helpers/server

setup_file() {
	server_start --appendonly yes --appendfsync always
}

setup() {
	common_setup
	script works <<-'E'
		echo "done $(cat) is fine" >&3
	E
	script fails <<-'E'
		echo "err $(cat) is bad" >&3
	E
}

# await ARGS...: mq-publish in the background, until it waits; its pid in $waiter.
await() {
	"$BUILD/mq-publish" "$@" >"$T/wait.out" 2>"$T/wait.err" 3>&- &
	waiter=$!
	eventually 5 waiting
}

# ended STATUS OUTPUT: it ends so.
ended() {
	local status=0
	wait "$waiter" || status=$?
	[ "$status" = "$1" ] && [ "$(cat "$T/wait.out")" = "$2" ] || {
		echo "status $status"
		cat "$T/wait.out" "$T/wait.err"
		return 1
	}
}

waiting() {
	redis client list | grep -q 'cmd=blmove'
}

# The id of the only message there.
only_id() {
	element "$1" "${2:-ready}" | header Mq-Id
}

consume_one() {
	run_mq 0/1 mq-consume -n1 "$@"
}

@test "wait: how it ended, with the last text; what is printed has none" {
	local status text runs
	while IFS='|' read -r status text runs; do
		await --wait=300s q it
		eval "$runs"
		ended "$status" "$text"
		((status == 0)) && [ ! -s "$T/wait.err" ] || grep -q ": rejected: $text$" "$T/wait.err"
	done <<-'E'
		0|it is fine|consume_one q -- "$T/works"
		1|it is bad|consume_one q -- "$T/fails"
		0||prints it mq-consume -n 1 q
		0|it is fine|consume_one --push next q -- sh -c "echo push >&3"; eventually 5 waiting; consume_one next -- "$T/works"
	E
}

@test "wait: a message that ends before anybody waits for it" {
	start_mq mq-consume q -- "$T/works"
	for n in 1 2 3 4 5 6 7 8 9 10; do
		run_mq 0 mq-publish --wait=300s q "$n"
		[ "$output" = "$n is fine" ]
	done
	stop_mq
}

@test "wait: only so long, and the message stays" {
	run_mq 75 mq-publish --wait=100ms q it
	[ "$stderr" = 'mq-publish: q: 1 of 1 message not ended in time' ]
	held_is q '1 0 0 0'
	run_mq 75 mq-publish -q --wait=0 q it
	[ -z "$stderr" ]
	held_is q '2 0 0 0'
}

@test "wait: many, the worst of them, and -i tells which is which" {
	start_mq mq-consume -j4 q -- "$T/works"
	run_mq 0 mq-publish --wait=300s -l q < <(seq 50)
	[ "$output" = "$(seq -f '%g is fine' 50)" ]
	run_mq 0 mq-publish -i --wait=300s q one two
	[ "${#lines[@]}" = 4 ]
	[ "${lines[2]}" = "${lines[0]} done one is fine" ]
	[ "${lines[3]}" = "${lines[1]} done two is fine" ]
	# Delayed, with headers of its own, and from JSON.
	prints 'it is fine' mq-publish --wait=300s -d 50ms -H 'X-A: b' q it
	run_mq 0 mq-publish --wait=300s --jsonl q <<<'{"payload":"p","headers":{"X-B":"Mq-Reply-To"}}'
	assert_output --regexp '^\{"id":"[^"]+","state":"done","text":"p is fine","status":0,'
	stop_mq
	script some <<-'E'
		p=$(cat)
		[ "$p" = 2 ] && echo "err no 2" >&3 || echo "done $p" >&3
	E
	start_mq mq-consume q -- "$T/some"
	run_mq 1 mq-publish --wait=300s q 1 2 3
	[ "$output" = $'1\nno 2\n3' ]
	stop_mq
}

@test "wait: a retry is no end" {
	script second <<-'E'
		[ "$MQ_ATTEMPT" = 2 ] && echo "done at last" >&3 || exit 75
	E
	start_mq mq-consume --backoff 50ms..50ms q -- "$T/second"
	run_mq 0 mq-publish --wait=300s q it
	[ "$output" = 'at last' ]
	stop_mq
}

@test "wait: on a terminal, nothing drives it" {
	script evil <<-'E'
		printf 'done \033[31mred\n' >&3
	E
	start_mq mq-consume q -- "$T/evil"
	run command script -qec "$BUILD/mq-publish --wait=300s q it" /dev/null
	[[ $output == *'\033[31mred'* ]]
	run_mq 0 mq-publish --wait=300s q it
	[ "$output" = $'\033[31mred' ]
	stop_mq
}

@test "wait: a signal ends it" {
	await --wait q it
	kill -TERM "$waiter"
	ended 143 ''
	held_is q '1 0 0 0'
}

@test "wait: the server goes away and comes back" {
	await --wait=300s q it
	for _ in 1 2 3; do
		server_kill
		server_run --appendonly yes --appendfsync always
		eventually 10 waiting
	done
	consume_one q -- "$T/works"
	ended 0 'it is fine'
	[ "$(grep -c reconnecting "$T/wait.err")" = 1 ]
}

@test "wait: it ends while the connection is lost" {
	await --wait=300s q it
	kill -STOP "$waiter"
	redis client kill type normal skipme yes >/dev/null
	consume_one q -- "$T/works"
	kill -CONT "$waiter"
	ended 0 'it is fine'
}

@test "wait: the server stays away" {
	await --wait=10s q it
	server_kill
	ended 75 ''
	server_run --appendonly yes --appendfsync always
}

@test "wait: a full server lets nobody wait, but tells" {
	await --wait=300s q it
	redis config set maxmemory 1 >/dev/null
	redis client kill type normal skipme yes >/dev/null
	consume_one q -- "$T/works"
	redis config set maxmemory 0 >/dev/null
	ended 0 'it is fine'
}

@test "wait: its consumer is killed, and another one has it, or none may any more" {
	local attempts
	for attempts in 15 1; do
		await --wait=300s q it
		start_mq mq-consume --no-clean --attempts "$attempts" q -- sleep 60
		eventually 5 held_is q '0 0 1 0'
		dies
		run_mq 0 mq-clean
		[ "$attempts" = 1 ] || consume_one q -- "$T/works"
		[ "$attempts" = 1 ] || ended 0 'it is fine'
	done
	held_is q '0 0 0 1'
	ended 1 'attempts exhausted: its consumer died while it ran'
}

@test "keep: a result can be read for so long, and mq-stats --id tells it" {
	id=$("$BUILD/mq-publish" -i q it)
	consume_one --keep 10m q -- "$T/works"
	key="rmq::queue::[q]::result::$id"
	[ "$(redis llen "$key")" = 1 ]
	ttl=$(redis pttl "$key")
	((ttl > 500000 && ttl <= 600000))
	redis lindex "$key" 0 | grep -q "^{\"id\":\"$id\",\"state\":\"done\",\"text\":\"it is fine\",\"status\":0,\"seconds\":[0-9.]*,\"attempts\":1,\"host\":\"[^\"]*\",\"finished_ms\":[0-9]*}$"
	run_mq 0 mq-stats --id "$id"
	[ "${lines[0]}" = "id          $id" ]
	[ "${lines[1]}" = 'queue       q' ]
	[ "${lines[2]}" = 'state       done' ]
	[[ $output == *$'\nattempts    1\n'* ]]
	[ "${lines[-2]}" = 'status      0' ]
	[ "${lines[-1]}" = 'text        it is fine' ]
	run_mq 0 mq-stats --json --id "$id" q
	[[ $output == "{\"id\":\"$id\",\"queue\":\"q\",\"state\":\"done\",\"text\":\"it is fine\","* ]]
	run_mq 1 mq-stats --id "$(tr 0-9a-zA-Z 1-9a-zA-Z0 <<<"$id")"
	redis del "$key" >/dev/null
	run_mq 1 mq-stats --id "$id"
	id=$("$BUILD/mq-publish" -i q it)
	consume_one --keep 10m q -- sh -c 'kill -SEGV $$'
	[[ $(redis lindex "rmq::queue::[q]::result::$id" 0) =~ '"state":"rejected",'.*'"signal":"SEGV","seconds":'[0-9.]+',"attempts":1,' ]]
	[[ $BASH_REMATCH != *'"status"'* ]]
}

@test "keep: nothing is told of what nobody asked for, nor where a header names another one" {
	run_mq 0 mq-publish q it
	run_mq 0 mq-publish --jsonl q <<<'{"payload":"p","headers":{"Mq-Reply-To":"0123456789abcdefghijklmnopqrstuv"}}'
	run_mq 0 mq-consume --drain q -- "$T/works"
	[ -z "$(redis keys '*result*')" ]
}

@test "keep: the longer time of what is kept and what is waited for" {
	run_mq 75 mq-publish --wait=1ms q it
	id=$(only_id q)
	consume_one --keep 1m q -- "$T/works"
	(($(redis pttl "rmq::queue::[q]::result::$id") > 3500000))
}

@test "wait: purged, alone, by what it is, or with all others" {
	local options purge
	while IFS='|' read -r options purge; do
		run_mq 0 mq-publish q other
		# shellcheck disable=SC2086 # several
		await --wait=300s $options q it
		# shellcheck disable=SC2086 # several
		run_mq 0 mq-purge --force $purge q
		ended 1 ''
		grep -q ': purged$' "$T/wait.err"
	done <<-'E'
		|--all
		-p 5 -g G|--match it --all
		|--delete-queue
	E
	await -i --wait=300s -d 1h q it
	run_mq 0 mq-purge --force --delayed --id "$(only_id q delayed)" q
	ended 1 "$(head -n 1 "$T/wait.out")"$'\n'"$(head -n 1 "$T/wait.out") purged"
}

@test "wait: a message that expires, whoever rejects it" {
	local who
	for who in 'mq-clean' 'mq-consume --drain q'; do
		redis flushall >/dev/null
		await --wait=300s -e 1ms q it
		# shellcheck disable=SC2086 # words
		run_mq 0/1 $who
		held_is q '0 0 0 1'
		ended 1 expired
		grep -q ': expired' "$T/wait.err"
	done
	run_mq 75 mq-publish -e 1ms --wait=10ms q late
	id=$(only_id q)
	run_mq 1 mq-consume --drain q
	redis lrange "rmq::queue::[q]::result::$id" 0 -1 | grep -q '"state":"expired","text":"expired","attempts":0'
}

@test "wait: pushed there and back again" {
	await --wait=300s q it
	kill -STOP "$waiter"
	for _ in 1 2; do
		consume_one --push next q -- sh -c 'echo push >&3'
		consume_one --push q next -- sh -c 'echo push >&3'
	done
	kill -CONT "$waiter"
	consume_one --push next q -- sh -c 'echo push >&3'
	consume_one next -- "$T/fails"
	ended 1 'it is bad'
}

# Consumers die at any moment, cleaners do what they left, and each of those
# who wait is told once, what became of its own message.
@test "wait: consumers are killed all the time" {
	local i round n
	for ((i = 0; i < 5; i++)); do
		"$BUILD/mq-publish" --wait=300s q "$i-"{1..10} \
			>"$T/wait.$i" 2>&1 3>&- &
		waiters[i]=$!
	done
	eventually 5 held_is q '50 0 0 0'
	for ((round = 0; round < 20; round++)); do
		start_mq mq-consume -j3 --no-clean q -- "$T/works"
		n=$((RANDOM % 30 + 10))
		read -rt "0.0$n" <> <(:) || true
		kill -KILL "$pid"
		wait "$pid" 2>/dev/null || true
		for c in $(connections); do
			redis del "rmq::connection::$c::heartbeat" >/dev/null
		done
		run_mq 0 mq-clean --attempts 1000
	done
	run_mq 0 mq-consume -j3 --drain --attempts 1000 q -- "$T/works"
	for ((i = 0; i < 5; i++)); do
		wait "${waiters[i]}"
		[ "$(cat "$T/wait.$i")" = "$(printf "$i-%d is fine\n" {1..10})" ]
	done
	held_is q '0 0 0 0'
}
