# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# topologies: cluster
# mq-lease: messages by receipt, for shell loops.
load ../helpers/server

setup_file() {
	server_start --appendonly yes --appendfsync always
}

# take N [ARGS...]: hands out; what was printed in $T/got, the ids in ids[], the
# receipts in receipts[].
take() {
	local n=$1
	shift
	run_mq 0 mq-lease --for 1m --jsonl -n "$n" "$@" q
	printf '%s\n' "$output" >"$T/got"
	mapfile -t ids < <(sed 's/^{"id":"\([^"]*\)".*/\1/' "$T/got")
	mapfile -t receipts < <(sed 's/.*"receipt":"\([^"]*\)".*/\1/' "$T/got")
}

# Nothing of any connection is left.
no_connection() {
	[ -z "$(redis keys 'rmq::connection*')" ]
}

@test "receipt: handed out, also by a full server, and acked" {
	run_mq 0 mq-publish -H 'X-A: b' q one two three
	redis config set maxmemory 1 >/dev/null
	take 2
	redis config set maxmemory 0 >/dev/null
	[ "${#ids[@]}" = 2 ]
	grep -q '^{"id":"[^"]*","queue":"q","attempt":1,"receipt":"mq-lease-[A-Za-z0-9]*\.[12]","headers":{.*"X-A":\["b"\]},"payload":"one"}$' "$T/got"
	held_is q '1 0 2 0'
	run_mq 0 mq-lease --ack "${receipts[0]}" q
	[ -z "$output$stderr" ]
	held_is q '1 0 1 0'
	[ -n "$(connections)" ]
	run_mq 1 mq-lease --ack "${receipts[0]}" q
	[ "$stderr" = "mq-lease: q: ${receipts[0]}: its lease is over, or it is settled already" ]
	run_mq 1 mq-lease -q --ack "${receipts[0]}" q
	[ -z "$stderr" ]
	run_mq 0 mq-lease --ack "${receipts[1]}" q
	held_is q '1 0 0 0'
	no_connection
}

@test "receipt: nothing there, or paused; --idle waits for what comes then" {
	run_mq 1 mq-lease --for 1m --jsonl q
	assert_equal "$output$stderr" "mq-lease: q: no such queue"
	run_mq 1 mq-lease --for 1m --jsonl --idle 300ms q
	no_connection
	run_mq 0 mq-publish q x
	run_mq 0 mq-pause q
	run_mq 1 mq-lease --for 1m --jsonl q
	held_is q '1 0 0 0'
	run_mq 0 mq-pause --resume q
	run_mq 0 mq-consume -n 1 q
	run_mq 1 mq-lease --for 1m --jsonl q
	[ -z "$output$stderr" ]
	no_connection
	start_mq mq-lease --for 1m --jsonl --idle 60s q
	eventually 5 joined 1
	run_mq 0 mq-publish q late
	wait "$pid"
	grep -q '"payload":"late"' "$T/out"
	held_is q '0 0 1 0'
}

@test "receipt: nobody else has it while the lease lives, and it is extended" {
	no_cluster "its heartbeat lasts longer there"
	run_mq 0 mq-publish q one two
	take 2
	lease="rmq::connection::$(connections)::heartbeat"
	ttl=$(redis pttl "$lease")
	((ttl > 20000 && ttl <= 60500))
	for _ in 1 2 3; do
		run_mq 0 mq-clean
		prints '' mq-consume --idle 10ms q
	done
	held_is q '0 0 2 0'
	run_mq 0 mq-lease --extend "${receipts[1]}" --for 1h q
	ttl=$(redis pttl "$lease")
	((ttl > 3500000 && ttl <= 3600500))
	(($(redis pttl "rmq::connection::$(connections)::info") > ttl))
	run_mq 1 mq-lease --extend "${receipts[1]%.*}.3" --for 1h q
	run_mq 1 mq-lease --extend "x${receipts[1]}" --for 1h q
}

# Go's cleaner takes a connection whose TTL is 0: for it, that is less than half a second.
@test "receipt: the lease ends when Go's cleaner may take it, half a second before its key" {
	local act lease before ends
	no_cluster "its heartbeat lasts longer there"
	run_mq 0 mq-publish q one
	take 1
	lease="rmq::connection::$(connections)::heartbeat"
	before=$(redis pttl "$lease")
	run_mq 0 mq-stats --json --connections q
	ends=$(jq '.connections[0].lease_ms' <<<"$output")
	((ends <= before - 500 && ends >= $(redis pttl "$lease") - 500))
	run_mq 75 mq-purge -f --delete-queue q
	assert_regex "$stderr" "^mq-purge: q: messages are handed out by mq-lease until the lease \
$(connections) ends, in (60|[345][0-9]) s; settle them, or wait\$"
	redis pexpire "$lease" 20000 >/dev/null
	run_mq 0 mq-clean
	held_is q '0 0 1 0'
	for act in --ack --return '--for 1h --extend'; do
		redis pexpire "$lease" 499 >/dev/null
		# shellcheck disable=SC2086
		run_mq 1 mq-lease $act "${receipts[0]}" q
	done
	[ "$(redis ttl "$lease")" -le 0 ]
	redis set "$lease" 1 px 499 >/dev/null
	run_mq 0 mq-clean
	held_is q '1 0 0 0'
	eventually 5 no_connection
}

@test "receipt: what is not settled comes back, and counts as an attempt" {
	run_mq 0 mq-publish q one two three
	take 2
	run_mq 0 mq-lease --ack "${receipts[1]}" q
	run_mq 0 mq-lease --extend "${receipts[0]}" --for 1ms q
	eventually 5 eval '[ "$(redis exists "rmq::connection::$(connections)::heartbeat")" = 0 ]'
	run_mq 0 mq-clean
	held_is q '2 0 0 0'
	no_connection
	run_mq 1 mq-lease --ack "${receipts[0]}" q
	take 2
	grep -q '"attempt":2,.*"payload":"one"' "$T/got"
	grep -q '"attempt":1,.*"payload":"three"' "$T/got"
}

@test "receipt: rejected, with a reason" {
	run_mq 0 mq-publish q one two
	take 2
	run_mq 0 mq-lease --reject "${receipts[0]}" --text 'no such user' q
	run_mq 0 mq-lease --reject "${receipts[1]}" q
	held_is q '0 0 0 2'
	no_connection
	[ "$(element q rejected -1 | header Mq-Error)" = 'no such user' ]
	[ "$(element q rejected -1 | header Mq-Attempt)" = 1 ]
	[ "$(element q rejected -1 | header Mq-Id)" = "${ids[0]}" ]
	element q rejected -1 | header Mq-History | grep -q 'no such user'
	[ "$(element q rejected 0 | header Mq-Error)" = 'rejected by receipt' ]
	[ "$(redis hget 'rmq::queue::[q]::counters' failed)" = 2 ]
}

@test "receipt: raw messages, with NUL, twice the same" {
	for _ in 1 2 3; do
		printf 'a\0b\177\302\233' | "$BUILD/mq-publish" --raw q
	done
	take 3
	run ! grep '"id"' "$T/got"
	# Nothing that could drive a terminal.
	grep -q '"payload":"a\\u0000b\\u007f\\u009b"' "$T/got"
	[ "$(printf '%s\n' "${receipts[@]}" | sort -u | wc -l)" = 3 ]
	run_mq 0 mq-lease --ack "${receipts[0]}" q
	run_mq 1 mq-lease --ack "${receipts[0]}" q
	held_is q '0 0 2 0'
	run_mq 0 mq-lease --reject "${receipts[2]}" q
	run_mq 1 mq-lease --reject "${receipts[2]}" q
	held_is q '0 0 1 1'
	id=$(element q rejected | header Mq-Id)
	[ "${#id}" = 32 ]
	# As it was: nothing had to be recorded on it.
	run_mq 0 mq-lease --return "${receipts[1]}" q
	held_is q '1 0 0 1'
	redis lindex 'rmq::queue::[q]::ready' 0 | cmp - <(printf 'a\0b\177\302\233\n')
	no_connection
}

@test "receipt: who waits is told, and --keep keeps it" {
	"$BUILD/mq-publish" --wait=300s q it >"$T/wait.out" 3>&- &
	waiter=$!
	eventually 5 held_is q '1 0 0 0'
	take 1
	run_mq 0 mq-lease --ack "${receipts[0]}" --text 'all of it' q
	wait "$waiter"
	[ "$(cat "$T/wait.out")" = 'all of it' ]
	run_mq 0 mq-publish q it
	take 1
	run_mq 0 mq-lease --keep 1m --reject "${receipts[0]}" --text bad q
	run_mq 0 mq-stats --id "${ids[0]}"
	[[ $output == *'state       rejected'* ]]
	redis lindex "rmq::queue::[q]::result::${ids[0]}" 0 | grep -q '"state":"rejected","text":"bad","attempts":1'
}

@test "receipt: groups and keys are let go of" {
	run_mq 0 mq-publish -g G -k K q one
	run_mq 0 mq-publish -g G q two
	take 2
	[ "${#ids[@]}" = 1 ]
	run_mq 1 mq-publish -k K q three
	run_mq 0 mq-lease --ack "${receipts[0]}" q
	run_mq 0 mq-publish -k K q three
	take 2
	[ "${#ids[@]}" = 2 ]
	grep -q '"payload":"two"' "$T/got"
	for id in "${receipts[@]}"; do
		run_mq 0 mq-lease --ack "$id" q
	done
	[ "$(redis exists 'rmq::queue::[q]::locks')" = 0 ]
	held_is q '0 0 0 0'
}

@test "receipt: what is bad or too late is not handed out" {
	redis sadd rmq::queues q >/dev/null
	printf '\377\0\276\276Jno end' |
		redis -x lpush 'rmq::queue::[q]::ready' >/dev/null
	run_mq 0 mq-publish -e 1ms q late
	run_mq 0 mq-publish q good
	read -rt 0.02 <> <(:) || true
	take 3
	[ "${#ids[@]}" = 1 ]
	grep -q '"payload":"good"' "$T/got"
	held_is q '0 0 1 2'
	[[ $stderr == *'rejected: bad header'*'rejected: expired'* ]]
}

@test "receipt: what cannot be meant; house/messages.bats has more" {
	local args
	for args in '--for 1m -l q' '--for 1m -n 1001 q' '--for 1m --drain q' '--for 1m q -- cat' \
		'--extend a.1 --for 1m --text t q' '--for 1m --text t q'; do
		# shellcheck disable=SC2086 # several words
		run_mq 64 mq-lease $args
	done
}

# Each step of the clients, killed right behind it: the server holds them there.
@test "receipt: SIGKILL at any moment, nothing is lost, nothing is twice" {
	local i p id
	: >"$T/acked"
	seq 40 | "$BUILD/mq-publish" -l q
	for ((i = 0; i < 20; i++)); do
		: >"$T/o"
		"$BUILD/mq-lease" --for 1m --jsonl -n 2 q >"$T/o" 3>&- &
		p=$!
		read -rt "0.00$((RANDOM % 10))" <> <(:) || true
		kill -KILL "$p" 2>/dev/null || true
		wait "$p" || true
		id=$(sed -n '1s/.*"receipt":"\([^"]*\)".*/\1/p' "$T/o")
		[ -n "$id" ] || continue
		sed -n '1s/.*"payload":"\([0-9]*\)".*/\1/p' "$T/o" >>"$T/acked"
		"$BUILD/mq-lease" -q --ack "$id" q 3>&- &
		p=$!
		read -rt "0.00$((RANDOM % 10))" <> <(:) || true
		kill -KILL "$p" 2>/dev/null || true
		wait "$p" || true
	done
	# What the last of them sent may still be on its way.
	eventually 5 no_clients
	for k in $(connections); do
		redis del "rmq::connection::$k::heartbeat" >/dev/null
	done
	run_mq 0 mq-clean
	# One that had come no further than its heartbeat goes by itself.
	[ -z "$(connections)" ]
	[ -z "$(redis keys 'rmq::connection::*' | grep -v '::heartbeat$')" ]
	run_mq 0 mq-consume -l --drain q
	held_is q '0 0 0 0'
	# Each is there, once, or was to be acked.
	[ -z "$(printf '%s\n' "${lines[@]}" | sort | uniq -d)" ]
	printf '%s\n' "${lines[@]}" >"$T/left"
	assert_equal "$(sort -nu "$T/left" "$T/acked")" "$(seq 40)"
}

@test "receipt: the server is killed between any two steps" {
	run_mq 0 mq-publish q one two
	take 2
	after_a_crash '0 0 2 0'
	run_mq 0 mq-lease --ack "${receipts[0]}" q
	after_a_crash '0 0 1 0'
	(($(redis pttl "rmq::connection::$(connections)::heartbeat") > 0))
	run_mq 0 mq-lease --extend "${receipts[1]}" --for 2m q
	after_a_crash '0 0 1 0'
	run_mq 0 mq-lease --reject "${receipts[1]}" q
	after_a_crash '0 0 0 1'
	no_connection
}

# after_a_crash HELD: of the server, q has that.
after_a_crash() {
	server_kill
	server_run --appendonly yes --appendfsync always
	held_is q "$1"
}
