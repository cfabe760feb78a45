#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# layouts: rmq rsmq
# topologies: cluster
# --list done and --list ended: what has ended, as long as --keep keeps it.

# What a pattern with groups does, no expansion of the shell does.
# shellcheck disable=SC1010,SC2001,SC2016

load ../helpers/server
load ../helpers/consume

: "${LAYOUT:=rmq}"

setup() {
	export LAYOUT MQ_LAYOUT=$LAYOUT TZ=UTC
	common_setup
	index='rmq::queue::[q]::ended'
	[ "${TOPOLOGY-}" != cluster ] || index='rmq::queue::{q}::ended'
	[ "$LAYOUT" = rmq ] || [[ $BATS_TEST_DESCRIPTION == *rsmq* ]] || skip "the layout has no results"
}

# consumed N ARGS...: N messages are published and consumed, with the text of $text.
consumed() {
	local n=$1
	shift
	seq "$n" | "$BUILD/mq-publish" -q -i -l q >"$T/ids"
	run_mq 0/1/75 mq-consume -q --drain "$@"
}

ids() {
	"$BUILD/mq-stats" --list "${@:-done}" --jsonl q 2>/dev/null |
		sed 's/.*"id":"\([^"]*\)".*/\1/'
}

@test "ended: on rsmq it is refused" {
	[ "$LAYOUT" = rsmq ] || skip "it holds"
	run_mq 64 mq-stats --list "done" q
	assert_regex "$stderr" "^mq-stats: --list done"
}

@test "ended: what is done, the newest first; all ended ones, with their state" {
	consumed 1 --keep 1h q -- sh -c 'echo said; sleep 0.1'
	a=$(cat "$T/ids")
	consumed 1 --keep 1h q -- sh -c 'echo "no luck" >&2; exit 3'
	b=$(cat "$T/ids")
	consumed 1 --keep 1h q -- sh -c 'echo "done with it" >&3'
	c=$(cat "$T/ids")
	assert_equal "$(ids)" "$c"$'\n'"$a"
	assert_equal "$(ids ended)" "$c"$'\n'"$b"$'\n'"$a"
	run_mq 0 mq-stats --list "done" q
	assert_equal "${#lines[@]}" 3
	assert_regex "${lines[0]}" '^FINISHED +ID +EXIT  SECONDS  ATTEMPTS  HOST +TEXT$'
	assert_regex "${lines[2]}" "^[0-9]{2}-[0-9]{2} [0-9:]{8}  $a     0      0\.[1-9]         1  [^ ]+ +"
	run_mq 0 mq-stats --list ended q
	assert_regex "${lines[2]}" "  $b  rejected     3 .*no luck"
	run_mq 0 mq-stats --list "done" --jsonl --id "$a" q
	assert_regex "$output" '^\{"id":"'"$a"'","queue":"q","state":"done",.*"status":0,"seconds":0\.[1-9][0-9]*,"attempts":1,"host":"[^"]+","finished_ms":[0-9]{13}\}$'
	run_mq 0 mq-stats --list "done" --json q
	python3 -c 'import json, sys; assert len(json.load(sys.stdin)) == 2' <<<"$output"
}

@test "ended: filters, limits and framings" {
	consumed 30 --keep 1h -j1 q -- sh -c 'read -r n; echo "done n $n" >&3'
	assert_equal "$(ids | tac)" "$(cat "$T/ids")"
	run_mq 0 mq-stats --list "done" -n 2 --offset 1 --jsonl q
	assert_equal "$(sed 's/.*"id":"\([^"]*\)".*/\1/' <<<"$output")" "$(tail -n 3 "$T/ids" | head -n 2 | tac)"
	run_mq 0 mq-stats --list "done" --id "$(sed -n 7p "$T/ids")" q
	assert_equal "${#lines[@]}" 2
	prints "$("$BUILD/mq-stats" --list done -n1 -l q)" mq-stats --list ended -n1 --lines --since 1h q
	run_mq 0 mq-stats --list "done" --since 1d -n 40 q
	assert_equal "${#lines[@]}" 31
	tells 1 "mq-stats: q: none of 30 done messages matched" mq-stats --list "done" --older-than 1h q
	tells 1 "mq-stats: q: none of 30 done messages matched" mq-stats --list "done" --match nothing q
	run_mq 1 mq-stats --list "done" --json --match nothing q
	assert_equal "$output" "[]"
	for filter in --key --batch --stderr --header=A; do
		tells 64 "mq-stats: --list done takes only the filters --id, --match, --reason, --since and --older-than" \
			mq-stats --list "done" "${filter%%=*}" "${filter#--header=}=x" q
	done
}

@test "ended: without keep nothing is listed, also not for who waits, and one line says so" {
	"$BUILD/mq-consume" -q -n 1 q -- true 3>&- &
	run_mq 0 mq-publish -q --wait q x
	wait $!
	assert_equal "$(redis exists "$index")" 0
	tells 1 "mq-stats: q: no end is kept (mq-consume --keep, mq-set keep)" mq-stats --list "done" q
	tells 1 "mq-stats: nonesuch: no such queue" mq-stats --list "done" nonesuch
	run_mq 1 mq-stats -q --list "done" q
	assert_equal "$output$stderr" ""
}

@test "ended: the setting keep, and the ack of mq-lease" {
	run_mq 0 mq-publish -i q x y
	first=${lines[0]} second=${lines[1]}
	run_mq 0 mq-set q keep=1h
	run_mq 0 mq-consume -q -n 1 q -- true
	assert_equal "$(ids)" "$first"
	run_mq 0 mq-lease --for 1m q
	receipt=$(sed 's/.*"receipt":"\([^"]*\)".*/\1/' <<<"$output")
	run_mq 0 mq-lease --keep 1h --ack "$receipt" --text "by hand" q
	assert_equal "$(ids)" "$second"$'\n'"$first"
	prints "by hand" mq-stats --list "done" -n 1 -l q
}

@test "ended: the index lives as long as the longest of its results, and drops those that are over" {
	consumed 1 --keep 1h q -- true
	long=$(cat "$T/ids")
	consumed 1 --keep 1s q -- true
	short=$(cat "$T/ids")
	ttl_above 3000 "$index"
	assert_equal "$(ids)" "$long"$'\n'"$short"
	sleep 1.2
	assert_equal "$(ids)" "$long"
	assert_equal "$(redis zcard "$index")" 2
	consumed 1 --keep 2s q -- true
	assert_equal "$(redis zcard "$index")" 2
	ttl_above 3000 "$index"
}

@test "ended: a later run takes the place of the one before" {
	consumed 1 --keep 1h q -- false
	id=$(cat "$T/ids")
	run_mq 0 mq-return q
	sleep 0.01
	run_mq 0 mq-consume -q --keep 1h --drain q -- true
	assert_equal "$(redis zcard "$index")" 2
	assert_equal "$(ids ended)" "$id"
	run_mq 0 mq-stats --list ended --jsonl q
	assert_regex "$output" '"state":"done"'
}

@test "ended: rejected ones are among all, kept or not, by their last failure, each once" {
	consumed 1 --keep 1h q -- true
	a=$(cat "$T/ids")
	consumed 1 q -- sh -c 'echo "no luck" >&2; exit 3'
	b=$(cat "$T/ids")
	consumed 1 --keep 1h q -- true
	c=$(cat "$T/ids")
	consumed 1 --keep 1h q -- sh -c 'sleep 0.1; echo "nor here" >&2; exit 4'
	d=$(cat "$T/ids")
	assert_equal "$(ids ended)" "$d"$'\n'"$c"$'\n'"$b"$'\n'"$a"
	assert_equal "$(ids "done")" "$c"$'\n'"$a"
	assert_equal "$(ids ended -n 2 --offset 1)" "$c"$'\n'"$b"
	assert_equal "$(ids ended --id "$b")" "$b"
	assert_equal "$(ids ended --reason luck)" "$b"
	assert_equal "$(ids ended --older-than 1h)" ""
	run_mq 0 mq-stats --list ended q
	assert_regex "${lines[1]}" "  $d  rejected     4      0\.[1-9]         1  [^ ]+ +.*nor here"
	assert_regex "${lines[3]}" "^[0-9]{2}-[0-9]{2} [0-9:]{8}  $b  rejected     3        -         1  [^ ]+ +.*no luck"
	run_mq 0 mq-stats --list ended --jsonl --id "$b" q
	jq -e '.state == "rejected" and .queue == "q" and .status == 3 and .attempts == 1 and
		(.text | test("no luck")) and (.finished_ms / 1000 - now | fabs < 60)' <<<"$output"
	run_mq 0 mq-stats --list ended --json q
	assert_equal "$(jq length <<<"$output")" 4
	# Fails again: the last failure counts, and the end that was kept before does not.
	run_mq 0 mq-return --id "$d" q
	sleep 0.01
	run_mq 1 mq-consume -q --drain q -- sh -c 'exit 5'
	assert_equal "$(ids ended)" "$d"$'\n'"$c"$'\n'"$b"$'\n'"$a"
	run_mq 0 mq-stats --list ended -n 1 q
	assert_regex "${lines[1]}" "  $d  rejected     5        -         1 "
}

@test "ended: of many rejected ones the newest; one without a header is the last" {
	redis lpush "${index%ended}rejected" plain >/dev/null
	consumed 30 -j1 q -- sh -c 'read -r n; echo "n $n" >&2; exit 1'
	assert_equal "$(ids ended -n 3)" "$(tail -n 3 "$T/ids" | tac)"
	assert_equal "$(ids ended -n 3 --reason 'n 1')" "$(sed -n '17,19p' "$T/ids" | tac)"
	run_mq 0 mq-stats --list ended q
	assert_equal "${#lines[@]}" 32
	assert_regex "${lines[31]}" "^-  +-  +rejected     -"
	python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$BUILD/mq-stats" --list ended q </dev/null >"$T/shown"
	grep -q "mq-stats: q: only 20 ended messages shown; use --limit or --offset for more" "$T/shown"
	tells 1 "mq-stats: q: none of 31 ended messages matched" mq-stats --list ended --match nothing q
}

@test "ended: a consumer that is killed leaves none that has not ended" {
	run_mq 0 mq-publish -i q x y
	start_mq mq-consume -q -j1 --keep 1h q -- sh -c 'read -r p; [ "$p" = x ] || { touch "'"$T"'/runs"; sleep 60; }'
	eventually 10 test -e "$T/runs"
	eventually 5 test "$(redis zcard "$index")" = 1
	stop_mq KILL
	assert_equal "$(ids)" "${lines[0]}"
}

@test "ended: a server that is full" {
	no_cluster "it has no single memory limit"
	run_mq 0 mq-publish -i q x
	start_mq mq-consume -q -n 1 --keep 1h q -- sh -c 'until [ -e "'"$T"'/go" ]; do sleep 0.05; done'
	eventually 10 state_is q "0 0 1 0 1"
	redis config set maxmemory 1 maxmemory-policy noeviction >/dev/null
	touch "$T/go"
	ends_with 0
	redis config set maxmemory 0 >/dev/null
	assert_equal "$(ids)" "$output"
}

@test "ended: an index that is refused costs nothing but itself" {
	redis set "$index" other >/dev/null
	consumed 1 --keep 1h q -- true
	run_mq 0 mq-stats --id "$(cat "$T/ids")"
	redis del "$index" >/dev/null
	redis acl setuser some on '>pw' '~rmq::[^q]*' '~rmq::queues' \
		'~rmq::queue::?q?::[^e]*' '&*' +@all >/dev/null
	id=$("$BUILD/mq-publish" -i q x)
	run_mq 0 mq-consume -u "$(url_as some:pw)" -q -n 1 --keep 1h q -- true
	run_mq 0 mq-stats --id "$id"
	assert_equal "$(redis exists "$index")" 0
	redis acl deluser some >/dev/null
}

@test "ended: the last 20 of 100,000 are cheap" {
	no_cluster "commands are counted on one server"
	consumed 25 --keep 1h q -- true
	redis eval 'local t = redis.call("TIME")[1] * 1000
		for i = 1, 100000 do
			redis.call("ZADD", KEYS[1], t + i / 100, string.format("%013d%032d", t - 9e6 + i, i))
		end' 1 "$index" >/dev/null
	redis config resetstat >/dev/null
	run_mq 0 mq-stats --list "done" -n 20 q
	assert_equal "${#lines[@]}" 21
	n=$(redis info commandstats | sed -n 's/^cmdstat_[a-z|]*:calls=\([0-9]*\),.*/\1/p' | paste -sd+ | bc)
	((n < 60)) || { echo "$n commands"; false; }
}

@test "ended: a deleted queue takes the index along" {
	consumed 1 --keep 1h q -- true
	run_mq 0 mq-purge --delete-queue -f q || run_mq 0 mq-purge --delete-queue q
	assert_equal "$(redis exists "$index")" 0
}
