#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-publish --spool and --flush: while the server is away, messages wait on this host's disk, and
# each comes once, in its order, whoever is killed.

load ../helpers/server
load feed

setup() {
	common_setup
	no_cluster "the socket of one server is renamed"
	export XDG_STATE_HOME=$T/state
	spool=$T/state/mq/spool
}

teardown() {
	back
	common_teardown
}

# The server is away for who does not know it yet; lost: for all.
away() {
	mv "$D/redis.sock" "$D/away"
}

lost() {
	redis client kill type normal skipme yes >/dev/null
	away
}

back() {
	[ ! -e "$D/away" ] || mv "$D/away" "$D/redis.sock"
}

# Lines of the program that are not about the server.
said() {
	sed '/: No such file or directory$/d; s/^mq-publish: //' <<<"$stderr"
}

files() {
	find "$spool" -type f ! -name lock -printf '%f\n' | sort
}

ready() {
	"$BUILD/mq-stats" --list ready -l "${1:-q}" | xargs
}

# flushes STATUS [WORDS]: a flush, and what it says.
flushes() {
	run_mq "$1" mq-publish --flush
	assert_equal "$(said)" "${2-}"
}

@test "spool: the server is away: status 0, one line, and the messages come later, in their order" {
	away
	run_mq 0 mq-publish -i --spool q a b
	assert_equal "${#lines[@]}" 2
	assert_equal "$(said)" "spooled: 2 messages"
	run_mq 0 mq-publish -l --spool q < <(printf 'c\nd\n')
	run_mq 0 mq-publish --spool q e
	assert_equal "$(said)" "spooled: 1 message"
	assert_equal "$(files | wc -l)" 4 # one with the state of the attempt
	assert_equal "$(find "$spool" -perm /077 | wc -l)" 0
	flushes 69
	back
	flushes 0 "flushed: 5 messages"
	assert_equal "$(ready)" "a b c d e"
	assert_equal "$(files)" ""
	assert_equal "$(redis keys '*publisher*')" ""
	flushes 0
}

@test "spool: the ids are those that were printed, and times count from then" {
	local id then_ms
	away
	id=$("$BUILD/mq-publish" -i --spool -H 'X-A: b' -p 3 -d 1h q a 2>/dev/null)
	then_ms=$(date +%s%3N)
	run_mq 0 mq-publish -q --spool -d 1s r soon
	back
	flushes 0 "flushed: 2 messages"
	run_mq 0 mq-stats --json --id "$id" q
	assert_equal "$(jq -r '.state + " " + (.priority | tostring) + " " + .headers["X-A"][0]' <<<"$output")" "delayed 3 b"
	(($(jq '.due_ms' <<<"$output") <= then_ms + 3600000))
}

@test "spool: a later --spool brings what waits before its own" {
	away
	run_mq 0 mq-publish -q --spool q 1
	run_mq 0 mq-publish -q --spool r 2
	back
	run_mq 0 mq-publish --spool q 3
	assert_equal "$stderr" ""
	assert_equal "$(ready) $(ready r)" "1 3 2"
	assert_equal "$(files)" ""
}

@test "spool: a connection that breaks under way: nothing is lost, and nothing comes twice" {
	feed -il --spool q
	seq 3000 >&5
	eventually 10 eval '[ "$(redis llen "rmq::queue::[q]::ready")" = 3000 ]'
	lost
	seq 3001 9000 >&5
	close_feed 0
	assert_equal "$stderr" "mq-publish: spooled: 6000 messages"
	back
	flushes 0 "flushed: 6000 messages"
	assert_equal "$(ready | md5sum)" "$(seq 9000 | xargs | md5sum)"
	run_mq 0 mq-stats --list ready --jsonl q
	assert_equal "$(jq -r .id <<<"$output" | md5sum)" "$(md5sum <"$T/out")"
}

# cuts WORD OPTIONS...: the connection is cut in place of the reply to what has the word.
cuts() {
	# The server knows the scripts: no answer is only that it does not.
	run_mq 0 mq-publish -q -k x other x
	run_mq 0 mq-publish -q -L rsmq --max-length 9 other x
	python3 -S "$BATS_TEST_DIRNAME/resume.py" "$T/far" "$D/redis.sock" "reply:$1" 3>&- &
	network=$!
	eventually 10 listens_at "$T/far"
	run_mq 0 mq-publish -u "unix://$T/far" --spool "${@:2}"
}

@test "spool: the connection breaks when the server has done all: nothing comes twice, days later" {
	local way key
	for way in "" "-p 3" "-d 1ms" "-g group" "-k key --replace" "-L rsmq"; do
		redis flushall >/dev/null
		# shellcheck disable=SC2086 # several options
		cuts needle $way q needle
		assert_equal "$(said)" "spooled: 1 message"
		key=$(redis keys '*publisher*')
		(($(redis pttl "$key") > 29 * 24 * 3600 * 1000))
		# A flush that reads the marks and is killed then leaves them.
		run_mq 0 mq-publish -u "unix://$T/far" -L rmq --flush
		assert_equal "$way $(said)" "$way flushed: 1 message"
		assert_equal "$(redis keys '*publisher*')" ""
		[ "$way" = "-L rsmq" ] || eventually 5 eval '[ "$(redis zcount "rmq::queue::[q]::delayed" "($(date +%s%3N)" inf)" = 0 ]'
		# shellcheck disable=SC2046 # several options
		run_mq 0 mq-consume $([ "$way" != "-L rsmq" ] || echo "$way") -q -l --drain q
		assert_equal "$way $output" "$way needle"
		kill "$network"
		rm -f "$T/far"
	done
}

@test "spool: ... and when it has done some" {
	seq -f 'm%05g' 9000 >"$T/lines"
	cuts m09000 -il q <"$T/lines"
	assert_regex "$(said)" "^spooled: [0-9]+ messages$"
	(($(redis llen 'rmq::queue::[q]::ready') >= 1000))
	assert_equal "$(sort -u <<<"$output" | wc -l)" 9000
	run_mq 0 mq-publish -u "unix://$T/far" --flush
	"$BUILD/mq-consume" -q -l --drain q | cmp - "$T/lines"
	kill "$network"
}

@test "spool: --check spool=DUR: whether the server is there does not matter" {
	away
	run_mq 0 mq-stats --check spool=10m
	run_mq 0 mq-publish -q --spool q x
	run_mq 0 mq-stats --check spool=10m
	assert_regex "$output" "^MQ OK - spool [0-9.]+s \\|"
	sed -i 's/"since_ms":[0-9]*/"since_ms":1700000000000/' "$spool/$(files)"
	run_mq 2 mq-stats --check spool=10m
	assert_regex "$output" "^MQ CRITICAL - spool "
	run_mq 1 mq-stats --check spool=100d:9000d
	run_mq 2 mq-stats --check spool=10m,ready=5
	assert_regex "$output" "No such file or directory; spool "
	back
}

@test "spool: only for the server of the URL, and only for who can read it" {
	away
	run_mq 0 mq-publish -q --spool q here
	back
	run_mq 0 mq-publish -q -u "unix://$T/other.sock" --spool q there
	flushes 0 "flushed: 1 message"
	assert_equal "$(ready)" "here"
	assert_equal "$(files | grep -vc state)" 1
	chmod 777 "$spool"
	run_mq 74 mq-publish -u "unix://$T/other.sock" --spool q x
	assert_regex "$stderr" ": Operation not permitted"
}

@test "spool: a full queue: what has room comes, the rest stays, and nothing overtakes it" {
	away
	run_mq 0 mq-publish -ql --spool q < <(seq 5)
	run_mq 0 mq-publish -q --spool q 6
	back
	run_mq 0 mq-set --new q max-length=3
	flushes 75 "q: the queue is full
flushed: 3 messages"
	flushes 75 "q: the queue is full"
	assert_equal "$(redis keys '*publisher*')" ""
	run_mq 0 mq-publish --spool q 7
	assert_equal "$(said)" "spooled: 1 message"
	assert_equal "$(drained)" "1 2 3"
	flushes 75 "q: the queue is full
flushed: 3 messages"
	assert_equal "$(drained)" "4 5 6"
	flushes 0 "flushed: 1 message"
	assert_equal "$(ready) $(files)" "7 "
}

@test "spool: a full queue holds up no other one" {
	run_mq 0 mq-set --new q max-length=1
	run_mq 0 mq-publish -q q 0
	away
	run_mq 0 mq-publish -q --spool q 1
	run_mq 0 mq-publish -q --spool r 2
	run_mq 0 mq-publish -q --spool q 3
	back
	run_mq 0 mq-publish --spool r 4
	assert_equal "$stderr" ""
	assert_equal "$(ready) $(ready r)" "0 2 4"
	run_mq 0 mq-publish --spool q 5
	assert_equal "$(said)" "spooled: 1 message"
	run_mq 0 mq-set q max-length=100
	flushes 0 "flushed: 3 messages"
	assert_equal "$(ready)" "0 1 3 5"
}

@test "spool: what the server refuses for good is set aside, alone, and can be tried again" {
	local i name names
	run_mq 0 mq-set -L rsmq --create long maxsize=1024
	away
	run_mq 0 mq-publish -q --spool --after b q x
	run_mq 0 mq-publish -q --spool q y
	for i in {1..2500}; do
		((i % 1000 != 7)) || printf '%01500d\n' "$i"
		echo "$i"
	done >"$T/lines"
	run_mq 0 mq-publish -L rsmq -ql --spool long <"$T/lines"
	back
	flushes 65 "flushed: 2501 messages"
	assert_equal "$(ready)" y
	assert_equal "$("$BUILD/mq-stats" -L rsmq --list ready -l long | md5sum)" "$(seq 2500 | md5sum)"
	run_mq 0 mq-stats --spool --json
	assert_equal "$(jq -r '.[] | "\(.queue) \(.messages) \(.why)"' <<<"$output")" \
		"q 1 they wait for an unknown batch
long 3 too long"
	names=$(jq -r '.[].file' <<<"$output")
	run_mq 0 mq-publish -q --batch b q first
	run_mq 0 mq-set -L rsmq long maxsize=2048
	for name in $names; do
		mv "$spool/$name" "$spool/${name%.refused}"
	done
	run_mq 0 mq-publish -q --flush
	assert_equal "$(ready)" "y first"
	assert_equal "$("$BUILD/mq-stats" -L rsmq --list ready -l long | grep '^0' | sed 's/^0*//' | xargs)" "7 1007 2007"
	run_mq 1 mq-stats --spool
}

@test "spool: SIZE, and a full disk: nothing half is there" {
	away
	run_mq 0 mq-publish -q --spool=10K q < <(head -c 6000 /dev/zero)
	run_mq 75 mq-publish --spool=10K q < <(head -c 6000 /dev/zero)
	assert_regex "$stderr" "no room"
	assert_equal "$(files | grep -vc state)" 1
	back
	flushes 0 "flushed: 1 message"
	# A limit on files stands for the disk.
	away
	(
		ulimit -f 8
		run_mq 74 mq-publish -l --spool q < <(seq 5000)
		assert_regex "$stderr" "File too large"
	)
	assert_equal "$(files)" ""
}

@test "spool: two that flush at once, and fifty that publish" {
	local i all=()
	away
	for i in {1..20}; do
		run_mq 0 mq-publish -q --spool q "$i"
	done
	back
	for i in 1 2 3; do
		"$BUILD/mq-publish" -q --flush 3>&- &
		all+=($!)
	done
	for i in {1..10}; do
		"$BUILD/mq-publish" -q --spool r "$i" 3>&- &
		all+=($!)
	done
	for i in "${all[@]}"; do
		wait "$i"
	done
	assert_equal "$(ready)" "$(seq 20 | xargs)"
	assert_equal "$(ready r | tr ' ' '\n' | sort -n | xargs)" "$(seq 10 | xargs)"
	assert_equal "$(files)" ""
}

@test "spool: the server cannot take messages now: they go to disk, and come later" {
	local what
	for what in "maxmemory 1" "min-replicas-to-write 1"; do
		redis flushall >/dev/null
		feed -il --spool q
		seq 3000 >&5
		eventually 10 eval '[ "$(redis llen "rmq::queue::[q]::ready")" = 3000 ]'
		# shellcheck disable=SC2086 # two words
		redis config set $what >/dev/null
		seq 3001 9000 >&5
		close_feed 0
		assert_equal "$stderr" "mq-publish: spooled: 6000 messages"
		run_mq 0 mq-publish --spool r x
		assert_equal "$stderr" "mq-publish: spooled: 1 message"
		run_mq 75 mq-publish --flush
		redis config set "${what% *}" 0 >/dev/null
		flushes 0 "flushed: 6001 messages"
		assert_equal "$(ready | md5sum)" "$(seq 9000 | xargs | md5sum)"
		run_mq 0 mq-stats --list ready --jsonl q
		assert_equal "$(jq -r .id <<<"$output" | md5sum)" "$(md5sum <"$T/out")"
	done
}

@test "spool: many at once, while the server is away" {
	local i all=()
	away
	for i in {1..8}; do
		for _ in {1..25}; do
			"$BUILD/mq-publish" -q --spool q x || echo "$?" >>"$T/failed"
		done 3>&- &
		all+=($!)
	done
	wait "${all[@]}"
	back
	[ ! -e "$T/failed" ]
	flushes 0 "flushed: 200 messages"
}

# A server that says nothing; $T/asked has a line for each connection.
silent() {
	python3 -S - "$T" 3>&- <<-'.' &
		import socket, sys
		folder, kept = sys.argv[1], []
		s = socket.socket(socket.AF_UNIX)
		s.bind(folder + "/silent")
		s.listen(64)
		while True:
		    kept.append(s.accept())
		    with open(folder + "/asked", "a") as f:
		        print(file=f)
	.
	network=$!
	eventually 10 [ -S "$T/silent" ]
	export MQ_URL=unix://$T/silent
}

@test "spool: a server that is silent: of many that begin, one waits for it" {
	local all=()
	silent
	run_mq 0 mq-publish --spool q 1
	assert_equal "$stderr" "mq-publish: spooled: 1 message"
	assert_equal "$(wc -l <"$T/asked")" 1
	for _ in {1..8}; do
		"$BUILD/mq-publish" -q --spool q 2 3>&- &
		all+=($!)
	done
	wait "${all[@]}"
	assert_equal "$(wc -l <"$T/asked")" 2
	run_mq 69 mq-publish --flush
	assert_regex "$stderr" "silent: no answer for too long$"
	run_mq 0 mq-stats --spool --json
	assert_equal "$(jq -r '[.[].messages] | add' <<<"$output") $(jq -r '.[0].why' <<<"$output")" \
		"9 unix://$T/silent: no answer for too long"
	kill "$network"
}

@test "spool: killed at any call, of writing or of bringing, each message comes once" {
	no_static "the calls are those of a library"
	local n how lib=$T/kill.so ended key ttl marks=0
	export ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
	cc -shared -fPIC -o "$lib" "$BATS_TEST_DIRNAME/kill.c" -ldl
	for how in before behind; do
		for ((n = 1; ; n++)); do
			redis flushall >/dev/null
			away
			seq 2500 | run_mq 0 mq-publish -ql --spool q
			run_mq 0 mq-publish -q --spool q last
			back
			ended=0
			KILL_AT=$n KILL_HOW=$how \
				LD_PRELOAD="$lib" \
				"$BUILD/mq-publish" -q --flush || ended=$?
			# The process that is killed publishes a file, or is its parent.
			[ "$ended" != 0 ] || break
			[[ $ended =~ ^(137|75)$ ]]
			# So may be the next one, which leaves the marks their life.
			KILL_AT=$n KILL_HOW=$how LD_PRELOAD="$lib" \
				"$BUILD/mq-publish" -q --flush || true
			for key in $(redis keys '*publisher*'); do
				ttl=$(redis pttl "$key")
				((ttl == -1 || ttl > 29 * 24 * 3600 * 1000))
				marks=$((marks + (ttl > 0)))
			done
			run_mq 0 mq-publish -q --flush
			assert_equal "$how $n $(ready | md5sum)" \
				"$how $n $( (seq 2500; echo last) | xargs | md5sum)"
			assert_equal "$(files)" ""
		done
		echo "$how: $n calls"
		((n > 12))
	done
	((marks > 2))
}

# A server whose memory is full for a moment refuses a batch, and takes those behind it.
@test "spool: a flush that was killed, and a batch between others was refused" {
	no_static "the calls are those of a library"
	local n lib=$T/kill.so ready='rmq::queue::[q]::ready' marks
	export ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
	cc -shared -fPIC -o "$lib" "$BATS_TEST_DIRNAME/kill.c" -ldl
	for ((n = 1; n < 99; n++)); do
		redis flushall >/dev/null
		away
		seq 2500 | run_mq 0 mq-publish -ql --spool q
		back
		KILL_AT=$n KILL_HOW=before LD_PRELOAD="$lib" "$BUILD/mq-publish" -q --flush || true
		marks=$(redis keys '*publisher*')
		[ "$(redis llen "$ready")" != 2500 ] || [ -z "$marks" ] || break
		run_mq 0 mq-publish -q --flush
	done
	# The second one of three.
	assert_equal "$(redis eval 'for i = 500, 1499 do redis.call("LSET", KEYS[1], i, "gone") end
		return redis.call("LREM", KEYS[1], 0, "gone")' 1 "$ready")" 1000
	assert_equal "$(redis hdel "$marks" 17)" 1
	# A full queue hides none of the marks behind.
	run_mq 0 mq-set q max-length=1600
	flushes 75 "q: the queue is full
flushed: 1600 messages"
	run_mq 0 mq-set q max-length=10000
	run_mq 0 mq-publish -q --flush
	assert_equal "$("$BUILD/mq-stats" --list ready -l q | sort -n | md5sum)" "$(seq 1 2500 | md5sum)"
}

# The memory is full, and connections are cut, for moments.
troubles() {
	rm -f "$T/troubles"
	python3 -S - "$D/redis.sock" "$T/troubles" 3>&- <<-'.' &
		import random, socket, sys, time
		s = socket.socket(socket.AF_UNIX)
		s.connect(sys.argv[1])
		server = s.makefile("rwb", buffering=0)
		def tell(command):
		    server.write(command + b"\r\n")
		    server.readline()
		open(sys.argv[2], "w")
		while True:
		    if random.random() < 0.7:
		        tell(b"config set maxmemory 1")
		        time.sleep(random.random() * 0.004)
		        tell(b"config set maxmemory 0")
		    else:
		        tell(b"client kill type normal skipme yes")
		    time.sleep(random.random() * 0.01)
	.
	troubles=$!
	eventually 10 [ -e "$T/troubles" ]
}

@test "spool: a server with troubles, and flushes that are killed: each message comes once" {
	local way flush n
	for way in "" "-p 3" "-L rsmq"; do
		redis flushall >/dev/null
		troubles
		# shellcheck disable=SC2086 # several options
		seq 60000 | run_mq 0 mq-publish $way -ql --spool q
		for ((n = 0; n < 100; n++)); do
			"$BUILD/mq-publish" -q --flush 2>/dev/null 3>&- &
			flush=$!
			if ((n % 2 == 0)); then
				read -rt "0.0$((RANDOM % 30 + 10))" <> <(:) || true
				pkill -KILL -P "$flush" || true
				kill -KILL "$flush" 2>/dev/null || true
			fi
			! wait "$flush" || break
		done
		((n > 0)) # They were met.
		kill "$troubles"
		wait "$troubles" || true
		redis config set maxmemory 0 >/dev/null
		run_mq 0 mq-publish -q --flush
		# shellcheck disable=SC2046 # several options
		assert_equal "$way $("$BUILD/mq-stats" $([ "$way" != "-L rsmq" ] || echo "$way") --list ready -l q | sort -n | md5sum)" \
			"$way $(seq 60000 | md5sum)"
	done
}

@test "spool: killed while it spools: whole or not there" {
	no_static "the calls are those of a library"
	local n lib=$T/kill.so ended
	export ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
	cc -shared -fPIC -o "$lib" "$BATS_TEST_DIRNAME/kill.c" -ldl
	for ((n = 1; ; n++)); do
		redis flushall >/dev/null
		away
		ended=0
		seq 2500 | KILL_AT=$n KILL_HOW=before LD_PRELOAD="$lib" \
			"$BUILD/mq-publish" -ql --spool q || ended=$?
		back
		run_mq 0 mq-publish -q --flush
		[[ $(redis llen 'rmq::queue::[q]::ready') =~ ^(0|2500)$ ]]
		assert_equal "$(files)" ""
		[ "$ended" = 137 ] || break
	done
	echo "$n calls, status $ended"
	((n > 5))
	assert_equal "$(redis llen 'rmq::queue::[q]::ready')" 2500
}

@test "spool: a flush that began stays so, whatever ends the next one" {
	local name
	away
	run_mq 0 mq-publish -q --spool q x
	name=$(files)
	echo '{"begun_ms":1234}' >"$spool/$name.state"
	flushes 69
	assert_equal "$(jq .begun_ms "$spool/$name.state")" 1234
	back
}

@test "spool: a flush that was killed, and the server's marks are too old: set aside, whole" {
	local name
	away
	run_mq 0 mq-publish -q --spool q x
	run_mq 0 mq-publish -q --spool q y
	back
	name=$(files | grep -v state | head -n 1)
	echo '{"begun_ms":1000}' >"$spool/$name.state"
	flushes 65 "--flush: q: publishing it began 29 days ago: how far, the server has forgotten
flushed: 1 message"
	assert_equal "$(ready)" y
	run_mq 0 mq-stats --spool --json
	assert_equal "$(jq -r '.[] | .queue + " " + (.messages | tostring) + " " + .why' <<<"$output")" \
		"q 1 publishing it began 29 days ago: how far, the server has forgotten"
	# Whoever knows that they are not there names the file as before.
	name=$(jq -r '.[].file' <<<"$output")
	mv "$spool/$name" "$spool/${name%.refused}"
	flushes 0 "flushed: 1 message"
	assert_equal "$(ready)" "y x"
}

@test "spool: the clock is set back: files stay in their order" {
	no_static "faketime sets another clock"
	local lib
	[[ $BUILD != *-address-* ]] || skip "not with this sanitizer"
	lib=$(find /usr/lib -name libfaketime.so.1 | head -n 1)
	away
	run_mq 0 mq-publish -q --spool q 1
	LD_PRELOAD=$lib FAKETIME=-3d "$BUILD/mq-publish" -q --spool q 2
	LD_PRELOAD=$lib FAKETIME=+3d "$BUILD/mq-publish" -q --spool q 3
	run_mq 0 mq-publish -q --spool q 4
	back
	flushes 0 "flushed: 4 messages"
	assert_equal "$(ready)" "1 2 3 4"
}

@test "spool: killed while it is set aside: not published, and there once" {
	no_static "the calls are those of a library"
	local n name lib=$T/kill.so
	export ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
	cc -shared -fPIC -o "$lib" "$BATS_TEST_DIRNAME/kill.c" -ldl
	for ((n = 1; n < 16; n++)); do
		redis flushall >/dev/null
		rm -rf "$spool"
		away
		run_mq 0 mq-publish -q --spool q x
		back
		name=$(files | grep -v state)
		echo '{"begun_ms":1000}' >"$spool/$name.state"
		KILL_AT=$n KILL_HOW=before LD_PRELOAD="$lib" "$BUILD/mq-publish" -q --flush || true
		run_mq 0/65 mq-publish -q --flush
		assert_equal "$n $(redis exists 'rmq::queue::[q]::ready')" "$n 0"
		assert_equal "$n $(files | grep -c 'refused$')" "$n 1"
	done
}

@test "spool: the server comes back, and a message is set aside: all others come at once" {
	away
	(
		echo '{"payload":"a","headers":{"Mq-After":["nobody"]}}'
		seq -f '{"payload":"%g"}' 30000
	) >"$T/lines"
	run_mq 0 mq-publish -q --jsonl --spool q <"$T/lines"
	run_mq 0 mq-publish -q --spool r x
	flushes 69
	back
	flushes 65 "flushed: 30001 messages"
	assert_equal "$(ready r) $(ready | md5sum)" "x $(seq 30000 | xargs | md5sum)"
}

@test "spool: a message that is too long for the server is set aside, alone" {
	redis config set proto-max-bulk-len 1mb >/dev/null
	away
	(
		seq 3
		head -c 2000000 /dev/zero | tr '\0' x
		echo
		seq 4 6
	) >"$T/lines"
	run_mq 0 mq-publish -ql --spool q <"$T/lines"
	back
	run_mq 65 mq-publish -q --flush
	assert_equal "$(ready)" "1 2 3 4 5 6"
	run_mq 0 mq-stats --spool --json
	assert_equal "$(jq -r '.[] | "\(.messages) \(.why)"' <<<"$output")" "1 too long"
	redis config set proto-max-bulk-len 512mb >/dev/null
}

@test "spool: a damaged file is set aside, and the others come" {
	away
	run_mq 0 mq-publish -q --spool q 1
	run_mq 0 mq-publish -q --spool r 2
	back
	name=$(files | grep -v state | head -n 1)
	truncate -s -10 "$spool/$name"
	# The message is whole, and the end of the file is not.
	flushes 65 "--flush: $name.refused: damaged
flushed: 2 messages"
	assert_equal "$(ready) $(ready r)" "1 2"
	assert_equal "$(files | head -n 1)" "$name.refused"
	run_mq 0 mq-publish --spool q 3
	assert_equal "$stderr" ""
	# It is tried again, in vain: the message is there.
	mv "$spool/$name.refused" "$spool/$name"
	flushes 65 "--flush: $name.refused: damaged
flushed: 1 message"
	assert_equal "$(ready)" "1 3"
}

@test "spool: what cannot be spooled is refused" {
	local why='mq-publish: --spool cannot be used with --wait, --durable, --http, --tick, --raw, --attach, --coalesce or --existing'
	away
	tells 69 "mq-publish: --batch b: not begun: there is no message, and the server is away" \
		mq-publish --spool -l --batch b q </dev/null
	back
	tells 64 "$why" mq-publish --spool --wait q x
	tells 64 "$why" mq-publish --spool --durable q x
	tells 64 "$why" mq-publish --spool --attach "f=$0" q x
	tells 64 "mq-publish: --spool with --key needs --replace: nobody can tell whether another message has the key" \
		mq-publish --spool -k a q x
	tells 64 "mq-publish: --flush publishes what waits; remove the queue and --spool" \
		mq-publish --flush q
	tells 64 "mq-publish: --spool: 0: not a size (64K, 10M)" mq-publish --spool=0 q x
	away
	run_mq 65 mq-publish --spool --jsonl q < <(printf '%s\n' '{"payload":"a"}' '{"payload":"b","headers":{"Mq-Key":["k"]}}')
	assert_equal "$(said)" "record 2: Mq-Key with --spool needs --replace
0 messages accepted, 1 spooled"
	back
	run_mq 0 mq-publish -q --flush
	assert_equal "$(ready)" a
	redis acl setuser reads reset on '>pw' '~*' '+@read' >/dev/null
	run_mq 77 mq-publish -u "$(url_as reads:pw)" --spool q x
	assert_equal "$(redis acl deluser reads)" 1
	assert_equal "$(files)" ""
}

@test "spool: -k KEY --replace: the latest that waited is the one that runs" {
	away
	run_mq 0 mq-publish -q -k a --replace --spool q 1
	run_mq 0 mq-publish -q -k a --replace --spool q 2
	back
	run_mq 0 mq-publish -q --flush
	assert_equal "$(drained)" 2
}

@test "spool: batches, and what comes behind them" {
	away
	run_mq 0 mq-publish -ql --spool --batch b q < <(printf '1\n2\n')
	run_mq 0 mq-publish -q --spool --after b q 3
	back
	flushes 0 "flushed: 3 messages"
	assert_equal "$(ready)" "1 2"
	assert_equal "$(drained)" "1 2 3"
}
