# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# layouts: rmq rsmq
# A receipt is for one lease of one message: what comes late changes nothing.

# The helpers use and set these.

load ../helpers/server

: "${LAYOUT:=rmq}"

setup() {
	load "../helpers/layout-$LAYOUT"
	export MQ_LAYOUT=$LAYOUT
	common_setup
}

# lease: sets $receipt
lease() {
	run_mq 0 mq-lease --for 1h --jsonl q
	receipt=$(sed 's/.*"receipt":"\([^"]*\)".*/\1/' <<<"$output")
}

# What the leases are, to compare.
now_is() {
	redis debug digest
}

all_are_late() {
	local before args
	before=$(now_is)
	for args in "--ack $1 q" "--reject $1 q" "--extend $1 --for 1m q" \
		"--extend $1 --for 0 q" "--return $1 q" "-q --ack $1 q"; do
		# shellcheck disable=SC2086
		run_mq 1 mq-lease $args
		assert_equal "$output" ""
		[[ $args == -q* ]] || assert_equal "$stderr" \
			"mq-lease: q: $1: its lease is over, or it is settled already"
		assert_equal "$(now_is)" "$before"
	done
}

# Of our own, of a uuid, and of a raw message.
publish_some() {
	run_mq 0 mq-publish q ours
	if [ "$LAYOUT" = rmq ]; then
		printf '\377\0\276\276J{"Mq-Id":["0192b7e4-8f3c-7a51"]}\nuuid' |
			redis -x lpush 'rmq::queue::[q]::ready' >/dev/null
		run_mq 0 mq-publish --raw q raw
	else
		redis zadd rsmq:q 7 0192b7e4-8f3c-7a51 >/dev/null
		redis hset rsmq:q:Q 0192b7e4-8f3c-7a51 uuid >/dev/null
	fi
}

@test "fence: a lease that has lapsed, before and after another one" {
	local late
	publish_some
	until [ "$(held q)" = '0 0 0 0' ]; do
		lease
		late=$receipt
		expire "$(connections)"
		all_are_late "$late"
		run_mq 0 mq-clean
		lease
		all_are_late "$late"
		# The other one is good, and once.
		run_mq 0 mq-lease --extend "$receipt" --for 2h q
		run_mq 0 mq-lease --ack "$receipt" q
		all_are_late "$receipt"
	done
}

@test "fence: given back at once, by --return and by --extend 0s, for each of several" {
	run_mq 0 mq-publish -l q < <(seq 3)
	run_mq 0 mq-lease --for 1h --jsonl -n 3 q
	mapfile -t receipts < <(sed 's/.*"receipt":"\([^"]*\)".*/\1/' <<<"$output")
	run_mq 0 mq-lease --extend "${receipts[1]}" --for 0s q
	assert_equal "$(held q)" '1 0 2 0'
	run_mq 0 mq-lease --return "${receipts[0]}" q
	assert_equal "$(held q)" '2 0 1 0'
	all_are_late "${receipts[0]}"
	# As if nobody had had them; the third is held still.
	run_mq 0 mq-consume --jsonl --idle 0 q
	assert_equal "$(grep -c '"attempt":1,.*"payload":"[12]"' <<<"$output")" 2
	all_are_late "${receipts[1]}"
	run_mq 0 mq-lease --reject "${receipts[2]}" --text why q
	assert_equal "$(held q)" '0 0 0 1'
	assert_equal "$(connections)" ''
}

# gate WORD: a server at $url, where the first request with this in it waits, and
# the lease of the only connection is over before it goes on.
gate() {
	no_cluster "the gate stands before one server"
	no_sentinel "the gate stands before one server"
	rm -f "$T"/gate*
	PYTHONDONTWRITEBYTECODE=1 python3 -S "$root/tests/helpers/gate.py" "$T/gate" \
		"$D/redis.sock" "$1" 3>&- &
	gate=$!
	eventually 10 listens_at "$T/gate"
	url=unix://$T/gate
}

lapses_at_gate() {
	eventually 10 test -e "$T/gate.waits"
	old=$(connections)
	expire "$old"
	"${@:-true}"
	before=$(now_is)
	touch "$T/gate.open"
	ends_within 60
	kill "$gate"
}

@test "fence: a lease that ends before the claim has none, and who waits gets another" {
	run_mq 0 mq-publish q it
	gate idle
	start_mq mq-lease -u "$url" --for 1h q
	lapses_at_gate
	assert_equal "$status" 75
	assert_equal "$(cat "$T/out" "$T/err")" \
		"mq-lease: q: the lease was over before a message could be taken; use a longer --for"
	assert_equal "$(held q)" '1 0 0 0'
	gate idle
	start_mq mq-lease -u "$url" --for 1h --jsonl --idle 60s q
	lapses_at_gate run_mq 0 mq-clean -q
	assert_equal "$status" 0
	receipt=$(sed 's/.*"receipt":"\([^"]*\)".*/\1/' "$T/out")
	[[ $receipt != "$old".* ]]
	run_mq 0 mq-lease --ack "$receipt" q
	assert_equal "$(held q)" '0 0 0 0'
}

@test "fence: a lease that ends while its message is being settled" {
	local act
	for act in "ack --ack" "reject --reject" "front --return"; do
		redis flushall >/dev/null
		run_mq 0 mq-publish q it
		lease
		gate $'\r\n'"${act% *}"$'\r\n'
		start_mq mq-lease -u "$url" "${act#* }" "$receipt" q
		lapses_at_gate
		assert_equal "$status" 1
		assert_equal "$(now_is)" "$before"
	done
}
