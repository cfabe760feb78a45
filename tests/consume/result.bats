#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# topologies: cluster
# --result: standard output of a run as its result, for those who wait, and those who ask later.

load ../helpers/server
load ../helpers/consume

setup() {
	common_setup
	[ "${TOPOLOGY-}" = cluster ] || redis config set maxmemory 0 >/dev/null
}

# consumes OPTION... -- COMMAND...: of the queue q, whose output is the result.
consumes() {
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	start_mq mq-consume --result stdout "${options[@]}" q "$@"
}

# waits STATUS ARGS...: of mq-publish --wait, with its output in $T/got, byte for byte.
waits() {
	local want=$1 status=0
	shift
	"$BUILD/mq-publish" --wait=60s "$@" >"$T/got" 2>"$T/said" 3>&- || status=$?
	[ "$status" = "$want" ] || fail "$status: $(cat "$T/said")"
}

@test "result: bytes as they are, in the order of the input, and the outcome" {
	printf 'a\0b\377\n\303\251' >"$T/bytes"
	consumes -j4 -- sh -c 'read n; case $n in 1) sleep 0.5; cat "$T/bytes" ;; 2) echo two; exit 3 ;; *) echo "done said" >&3 ;; esac'
	waits 0 q 1
	cmp "$T/got" "$T/bytes"
	waits 1 -l q < <(printf '1\n2\n3\n')
	{ cat "$T/bytes" && echo two; } | cmp - "$T/got"
	grep -q ': rejected: exit status 3$' "$T/said" || fail "$(cat "$T/said")"
	# A result stands for the last text; -i has both.
	waits 0 -i q 3
	assert_regex "$(cat "$T/got")" '^[a-z2-7]{26,32} done said$|^[^ ]+ done said$'
	stop_mq
	# Nor is it anywhere else.
	assert_equal "$(cat "$T/out")" ""
}

@test "result: a line of JSON for each" {
	printf 'a\0b' >"$T/bytes"
	consumes -- sh -c 'read n; case $n in 1) echo one ;; 2) cat "$T/bytes"; exit 3 ;; *) kill -9 $$ ;; esac'
	waits 1 --jsonl q < <(printf '{"payload":"%s"}\n' 1 2 3)
	assert_equal "$(jq -c '[.state, .status, .signal, .result, .result_base64]' "$T/got")" \
		'["done",0,null,"one\n",null]
["rejected",3,null,null,"YQBi"]
["rejected",null,"KILL","",null]'
	assert_equal "$(jq -r .id "$T/got" | sort -u | wc -l)" 3
	stop_mq
}

@test "result: 1 MiB, and a flood is cut there, and said" {
	start_mq mq-consume --result stdout:1M q -- sh -c 'read n; head -c "$n" /dev/zero | tr "\0" z'
	waits 0 q 1048576
	assert_equal "$(wc -c <"$T/got") $(tr -d z <"$T/got" | wc -c)" "1048576 0"
	assert_equal "$(cat "$T/said")" ""
	waits 0 q 100000000
	assert_equal "$(wc -c <"$T/got")" 1048576
	assert_regex "$(cat "$T/said")" ': the result is cut after 1048576 bytes$'
	peak=$(awk '/VmHWM/ { print $2 }' "/proc/$pid/status")
	((peak < 60000)) || fail "$peak kB"
	stop_mq
	start_mq mq-consume --result stdout:3 --keep 1h q -- echo four
	waits 0 --jsonl q < <(echo '{"payload":""}')
	assert_equal "$(jq -c '[.result, .result_cut]' "$T/got")" '["fou",true]'
	stop_mq
}

@test "result: kept, it is read later; without, it says so" {
	local id
	printf 'a\0b\n' >"$T/bytes"
	start_mq mq-consume --result stdout --keep 1h q -- sh -c 'cat "$T/bytes"; exit "$(cat)"'
	run_mq 0 mq-publish -i q 2
	id=$output
	eventually 10 held_is q "0 0 0 1"
	run_mq 0 mq-purge --force --rejected q
	eventually 10 eval '"$BUILD/mq-stats" --id "$id" --result q >"$T/got" 2>/dev/null'
	cmp "$T/got" "$T/bytes"
	run_mq 0 mq-stats --id "$id" q
	assert_line --regexp '^result +4 bytes$'
	run_mq 0 mq-stats --json --id "$id" q
	assert_equal "$(jq -r .result_base64 <<<"$output")" "$(base64 <"$T/bytes")"
	stop_mq
	run_mq 0 mq-publish -i q 0
	id=$output
	run_mq 1 mq-stats --id "$id" --result q
	assert_equal "$stderr" "mq-stats: $id: has not ended, and has no result yet"
	run_mq 0 mq-consume -q --drain --keep 1h q -- true
	run_mq 1 mq-stats --id "$id" --result q
	assert_equal "$stderr" "mq-stats: $id: no result is kept (mq-consume --result)"
}

@test "result: nobody wants it: as without the option; logs and kept output have it, too" {
	run_mq 0 mq-publish q x
	run_mq 0 mq-consume --drain --result stdout q -- echo shown
	assert_output shown
	mkdir "$T/log"
	run_mq 0 mq-publish q x
	run_mq 0 mq-consume --drain --result stdout --keep 1h --log-dir "$T/log" \
		--output-keep 4K q -- echo logged
	assert_output ""
	grep -qx logged "$T/log/q.log"
	run_mq 0 mq-publish q x
	run_mq 0 mq-consume --drain --result stdout --keep 1h --output lines q -- echo nowhere
	assert_output ""
}

@test "result: a killed consumer: that of the run that ends" {
	consumes -- sh -c 'echo "run $$"; [ -e "$T/go" ] || sleep 60'
	"$BUILD/mq-publish" --wait=60s q x >"$T/got" 2>"$T/said" 3>&- &
	local publisher=$!
	eventually 10 held_is q "0 0 1 0"
	dies
	touch "$T/go"
	run_mq 0 mq-clean
	consumes -- sh -c 'echo "run $$"'
	wait "$publisher"
	assert_equal "$(wc -l <"$T/got")" 1
	stop_mq
}

# One of the queue q runs until there is $T/go, and a publisher waits for its 60,000 bytes.
run_until_go() {
	consumes --keep 1h -- sh -c 'while [ ! -e "$T/go" ]; do sleep 0.05; done; head -c 60000 /dev/zero'
	"$BUILD/mq-publish" --wait=60s q x >"$T/got" 2>"$T/said" 3>&- &
	publisher=$!
	eventually 10 held_is q "0 0 1 0"
}

@test "result: while the memory is full, it comes all the same" {
	[ "${TOPOLOGY-}" != cluster ] || skip "its nodes keep their memory"
	run_until_go
	redis config set maxmemory 1 >/dev/null
	touch "$T/go"
	wait "$publisher"
	assert_equal "$(wc -c <"$T/got")" 60000
	# It still is full.
	run redis set x y
	assert_output --partial "OOM command not allowed"
	assert_equal "$(held q)" "0 0 0 0"
	redis config set maxmemory 0 >/dev/null
	stop_mq
}

@test "result: while the server refuses it, the message stays unacked, and both come later" {
	[ "${TOPOLOGY-}" != cluster ] || skip "users are those of one server"
	run_until_go
	redis acl setuser default -rpush >/dev/null
	touch "$T/go"
	eventually 10 grep -qE "rpush|can't run this command|NOPERM" "$T/err"
	assert_equal "$(held q)" "0 0 1 0"
	assert_equal "$(redis --scan --pattern '*result::?*')$(cat "$T/got")" ""
	redis acl setuser default +rpush >/dev/null
	wait "$publisher"
	assert_equal "$(wc -c <"$T/got")" 60000
	eventually 10 held_is q "0 0 0 0"
	stop_mq
}

@test "result: refused where it cannot be" {
	run_mq 64 mq-consume --result stdout q
	assert_equal "$stderr" "mq-consume: --result needs a COMMAND; add -- COMMAND"
	run_mq 64 mq-consume --result stdout --batch 2 q -- true
	assert_equal "$stderr" "mq-consume: --result cannot be used with --batch or --stream"
	run_mq 64 mq-consume --result stdout --stream q -- true
	assert_equal "$stderr" "mq-consume: --result cannot be used with --batch or --stream"
	for bad in stderr stdout:1x stdoutx stdout:1K: ; do
		run_mq 64 mq-consume --result "$bad" q -- true
		assert_equal "$stderr" "mq-consume: --result: $bad: not of the form stdout[:SIZE], as in stdout:64K"
	done
	for bad in '' 0 2M 1048577; do
		run_mq 64 mq-consume --result "stdout:$bad" q -- true
		assert_equal "$stderr" "mq-consume: --result: stdout:$bad: SIZE must be from 1 to 1M"
	done
	[ "${TOPOLOGY-}" != cluster ] || return 0
	run_mq 64 mq-consume -L rsmq --result stdout q -- true
	assert_equal "$stderr" "mq-consume: --result: the layout rsmq has no results"
}
