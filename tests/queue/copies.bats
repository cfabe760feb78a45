#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Messages with an id that another one has, and what their headers ask for when
# somebody else has written them: see "Messages" in mq-layout(7).

load ../helpers/server

setup() {
	common_setup
	id=hoe00000000000000000000000000001
	# Says when it begins and ends, and stays for a while.
	script work <<-'END'
		echo "begin $MQ_ID" >>"$T/log"
		sleep 0.2
		echo "end $MQ_ID ${MQ_HEADER_MQ_COPY_OF-original}" >>"$T/log"
	END
}

# message HEADER VALUE...: an element with $id
message() {
	printf '\377\0\276\276J{"Mq-Id":["%s"]' "$id"
	[ $# = 0 ] || printf ',"Mq-%s":["%s"]' "$@"
	printf '}\npayload'
}

# lies LIST HEADER VALUE...: such an element is there, whoever has put it there
lies() {
	message "${@:2}" | redis -x lpush "rmq::queue::[q]::$1" >/dev/null
	redis sadd rmq::queues q >/dev/null
}

# publish HEADER VALUE...: the same from a queue elsewhere, as --jsonl has it
publish() {
	local headers
	headers=$(printf ',"Mq-%s":["%s"]' "$@")
	echo "{\"queue\":\"x\",\"headers\":{\"Mq-Id\":[\"$id\"]$headers},\"payload\":\"payload\"}" |
		"$BUILD/mq-publish" --jsonl q
}

# ran_in_turn N: so many have run, one at a time, each under its own id, and the
# first one was no copy.
ran_in_turn() {
	cat "$T/log"
	assert_equal "$(grep -c begin "$T/log")" "$1"
	assert_equal "$(cut -d' ' -f1 "$T/log" | xargs -n 2 | sort -u)" 'begin end'
	assert_equal "$(grep begin "$T/log" | sort -u | wc -l)" "$1"
	assert_equal "$(awk '/end/ {print $3}' "$T/log" | sort | uniq -c | xargs)" \
		"$(($1 - 1)) $id 1 original"
}

@test "copies: one that is published stands in line behind its group" {
	publish Group g
	publish Group g
	publish Group g Priority 5
	assert_equal "$(held q)" '1 2 0 0'
	: >"$T/log"
	run_mq 0 mq-consume -j 4 --drain q -- "$T/work"
	ran_in_turn 3
	assert_equal "$(locks)" 0
}

@test "copies: one that is returned, pushed, or comes from elsewhere, as well" {
	# One by one and many, by a look at each and without.
	for how in "mq-return q" "mq-return --match payload q" "mq-return --to q p" \
		"mq-return --to q --match payload p" \
		"mq-return --from delayed --to q p" \
		"mq-return --from delayed --match payload --to q p" \
		"mq-consume -q --push q -n 1 p -- sh -c 'echo push >&3'"; do
		redis flushall >/dev/null
		: >"$T/log"
		publish Group g
		case $how in
		*delayed*)
			"$BUILD/mq-stats" --list ready --jsonl q |
				"$BUILD/mq-publish" --jsonl -d 1h p
			;;
		*consume*)
			"$BUILD/mq-stats" --list ready --jsonl q |
				"$BUILD/mq-publish" --jsonl p
			;;
		*" p")
			message Group g | redis -x lpush 'rmq::queue::[p]::rejected' >/dev/null
			;;
		*) lies rejected Group g ;;
		esac
		eval "run_mq 0 $how"
		run_mq 0 mq-consume -j 4 --drain q -- "$T/work"
		ran_in_turn 2
	done
}

@test "copies: a retry, a delay and a crash are of the same message" {
	publish Group g
	run_mq 75 mq-consume -n 1 q -- sh -c 'echo "resend 3600" >&3'
	run_mq 0 mq-return --from delayed q
	run_mq 75 mq-consume -n 1 q -- sh -c 'echo "resend 3600" >&3'
	run_mq 0 mq-return --from delayed --match payload q
	start_mq mq-consume q -- sleep 100
	eventually 10 held_is q '0 0 1 0'
	dies
	run_mq 0 mq-clean
	: >"$T/log"
	run_mq 0 mq-consume --drain q -- "$T/work"
	grep -q "end $id original" "$T/log"
	assert_equal "$(locks)" 0
}

@test "copies: of a key, one is refused, and one that is returned has none" {
	publish Key k
	run publish Key k
	assert_failure 1
	lies rejected Key k
	run_mq 0 mq-return q
	assert_equal "$(held q)" '2 0 0 0'
	# The end of the copy leaves the key to the one that has it.
	run_mq 0 mq-consume -n 1 q -- true
	run_mq 0 mq-publish -k k q free
	run_mq 0 mq-consume -n 1 q -- true
	run_mq 1 mq-publish -k k q taken
}

@test "copies: none takes the place of another one in a tick" {
	# That waits for it, and that has come.
	for tick in 5 0; do
		redis flushall >/dev/null
		publish From-Tick $tick
		publish From-Tick $tick
		lies rejected From-Tick $tick
		run_mq 0 mq-return q
		run_mq 0 mq-publish --tick 5 q
		run_mq 0 mq-consume --drain --jsonl q
		assert_equal "$(wc -l <<<"$output")" 3
		assert_equal "$(grep -c "\"Mq-Copy-Of\":\[\"$id\"\]" <<<"$output")" 2
		assert_equal "$(grep -o '"id":"[^"]*"' <<<"$output" | sort -u | wc -l)" 3
	done
}

@test "copies: a header with blanks and backslashes is kept but for the id" {
	printf '\377\0\276\276J{"A":["\\"Mq-Id\\":[\\"%s\\"]"], "Mq-Id" : [ "%s" ], "Mq-Group": ["g"]}\nx' \
		"$id" "$id" | redis -x lpush 'rmq::queue::[q]::rejected' >/dev/null
	redis sadd rmq::queues q >/dev/null
	publish Group g
	run_mq 0 mq-return q
	element q delayed | head -n 1 >"$T/head"
	grep -qaF "{\"A\":[\"\\\"Mq-Id\\\":[\\\"$id\\\"]\"], \"Mq-Id\":[\"" "$T/head"
	grep -qaF "\" ],\"Mq-Copy-Of\":[\"$id\"], \"Mq-Group\": [\"g\"]}" "$T/head"
}

@test "keys: what is pushed takes its key in the other queue" {
	for how in queued "done"; do
		redis flushall >/dev/null
		run_mq 0 mq-publish -k k --unique $how q one
		run_mq 0 mq-consume -q -n 1 --push p q -- sh -c 'echo push >&3'
		run_mq 1 mq-publish -k k p two
		run_mq 0 mq-publish -k k q free
		prints one mq-consume -n 1 -l p
		assert_equal "$(locks p)" 0
	done
}

@test "keys: what is pushed goes on without a key that is taken there" {
	run_mq 0 mq-publish -k k q one
	run_mq 0 mq-publish -k k p two
	run_mq 0 mq-consume -q -n 1 --push p q -- sh -c 'echo push >&3'
	assert_equal "$(held p)" '2 0 0 0'
	assert_equal "$(locks q)$(locks p)" 01
	prints two mq-consume -n 1 -l p
	assert_equal "$(locks p)" 0
	# One that is kept for a time is so where it was published.
	run_mq 0 mq-publish -k t --unique 1h q three
	run_mq 0 mq-consume -q -n 1 --push p q -- sh -c 'echo push >&3'
	assert_equal "$(locks q)$(locks p)" 10
}

@test "keys: how long one is kept is said well, or is refused, or is as without" {
	for bad in forever 0 -5 1e3 inf nan 0x10 '' ' done' 'done ' 99999999999999999999; do
		run publish Key k Unique "$bad"
		assert_equal "$status" 65
		assert_line --partial 'record 1: Mq-Unique: not queued, done, or milliseconds'
		lies rejected Key "k$bad" Unique "$bad"
		run_mq 0 mq-return q
		redis hget 'rmq::queue::[q]::locks' "kk$bad" | grep -q "^$id done "
		run_mq 0 mq-consume -n 1 q -- true
		assert_equal "$(locks)" 0
	done
	publish Key k Unique 3600000
	assert_equal "$(locks)" 1
}

@test "copies: the end of one that is rejected is not that of its group" {
	for how in "mq-purge --force --rejected q" "mq-purge --force --rejected --match payload q" \
		"mq-return --to p q" "mq-return --to p --match payload q"; do
		redis flushall >/dev/null
		publish Group g
		run_mq 0 mq-publish -g g q next
		lies rejected Group g
		assert_equal "$(held q)" '1 1 0 1'
		# shellcheck disable=SC2086
		run_mq 0 $how
		assert_equal "$(held q)" '1 1 0 0'
	done
}
