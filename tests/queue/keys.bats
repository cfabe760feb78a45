#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-publish -k: a message with a key that is taken is a duplicate.

# shellcheck disable=SC1003,SC1010

load ../helpers/server

duplicate() {
	tells 1 "mq-publish: q: not published: another message has its key" mq-publish "$@"
	assert_equal "$output" ""
}

@test "keys: a duplicate changes nothing, and exits 1" {
	local before
	run_mq 0 mq-publish -k a q one
	before=$(redis debug digest)
	duplicate -k a q two
	duplicate -k a q <<<two
	duplicate -k a -d 10s q two
	duplicate -k a --unique queued -p 5 -g x q two
	# With -q, the status only.
	run_mq 1 mq-publish -q -k a q two
	assert_equal "$output$stderr" ""
	run_mq 1 mq-publish -q -k a -l q <<<two
	assert_equal "$output$stderr" ""
	assert_equal "$(redis debug digest)" "$before"
	assert_equal "$(counts published)" 1
	run_mq 0 mq-publish -k b q three
	run_mq 0 mq-publish -k a other four
	assert_equal "$(held q)" "2 0 0 0"
	assert_equal "$(held other)" "1 0 0 0"
}

@test "keys: under a framing they are counted, and -i prints the ids of the others" {
	seq 1 2500 | awk '{printf "{\"payload\":\"%d\",\"headers\":{\"Mq-Key\":\"%d\"}}\n", $1, $1 % 2000}
		$1 % 500 == 0 {print "{\"payload\":\"none\"}"}' >"$T/records"
	tells 1 "mq-publish: 2005 messages accepted, 500 duplicates" mq-publish -i --jsonl q <"$T/records"
	assert_equal "$(counts published)" 2005
	"$BUILD/mq-consume" --drain --jsonl q >"$T/out"
	assert_equal "$output" \
		"$(sed 's/.*"Mq-Id":\["\([^"]*\).*/\1/' "$T/out")"
	assert_equal "$(grep -o '"payload":".*"' "$T/out" | cut -d'"' -f4 | grep -v none | xargs)" \
		"$(seq 2000 | xargs)"
	assert_equal "$(locks)" 0
	tells 1 "mq-publish: 1 message accepted, 1 duplicate" mq-publish -k a q x y
	tells 1 "mq-publish: 0 messages accepted, 3 duplicates" mq-publish -v -k a q x y z
	run_mq 1 mq-publish -i -k a q x
	assert_equal "$output" ""
}

@test "keys: --unique queued: free when it is started" {
	script again <<-S
		"$BUILD/mq-publish" -k a --unique queued q second
	S
	run_mq 0 mq-publish -k a --unique queued q first
	duplicate -k a --unique queued q x
	run_mq 0 mq-consume -n 1 q -- "$T/again"
	assert_equal "$(held q)" "1 0 0 0"
	duplicate -k a q x
	assert_equal "$(drained)" second
	assert_equal "$(locks)" 0
}

@test "keys: --unique done, the default: free when it has ended" {
	local unique
	script again <<-S
		echo "run \$("$BUILD/mq-publish" -k a q second 2>&1)" >&3
		read -r payload
		case \$payload in
		good) echo done >&3 ;;
		*) echo err >&3 ;;
		esac
	S
	for unique in '' '--unique done'; do
		# shellcheck disable=SC2086
		run_mq 0 mq-publish -k a $unique q good
		run_mq 0 mq-consume -n 1 q -- "$T/again"
		assert_equal "$(held q)" "0 0 0 0"
		assert_equal "$(locks)" 0
		run_mq 0 mq-publish -k a q bad
		run_mq 1 mq-consume -n 1 q -- "$T/again"
		assert_equal "$(held q)" "0 0 0 1"
		assert_equal "$(locks)" 0
		redis del 'rmq::queue::[q]::rejected' >/dev/null
	done
}

@test "keys: --unique DUR: free after that time, whatever has become of it" {
	run_mq 0 mq-publish -k a --unique 1h q one
	assert_equal "$(drained)" one
	duplicate -k a q two
	duplicate -k a --unique 1ms q two
	run_mq 0 mq-publish -k b --unique 200ms q one
	eventually 5 accepted -k b --unique 200ms q two
	assert_equal "$(drained)" "one two"
	# Whoever adds one forgets some others, whose time is over.
	for i in {1..24}; do
		run_mq 0 mq-publish -q -k "short-$i" --unique 1ms q x
	done
	assert [ "$(locks)" -lt 12 ]
}

accepted() {
	"$BUILD/mq-publish" -q "$@"
}

@test "keys: a retry keeps the key of 'done', and takes that of 'queued' again, if it is free" {
	script later <<-'S'
		echo resend 1000 >&3
	S
	run_mq 0 mq-publish -k a q one
	run_mq 75 mq-consume -n 1 q -- "$T/later"
	assert_equal "$(held q)" "0 1 0 0"
	duplicate -k a q two
	run_mq 0 mq-publish -k b --unique queued q one
	run_mq 75 mq-consume -n 1 q -- "$T/later"
	duplicate -k b q two
	assert_equal "$(held q)" "0 2 0 0"
	# race KEY MS: while one runs that comes back after that, another one takes its key.
	race() {
		script race <<-S
			"$BUILD/mq-publish" -k $1 --unique queued q second
			echo resend $2 >&3
		S
		run_mq 0 mq-publish -k "$1" --unique queued q first
		run_mq 75 mq-consume -n 1 q -- "$T/race"
		run drained
	}
	# It goes on without one that another message has now.
	race c 0
	assert_output "second first" || assert_output "first second"
	assert_equal "$(locks)" 2
	# Given back when that one has let go of it, it has it again.
	race d 1000
	run_mq 0 mq-return --from delayed q
	duplicate -k d q third
}

@test "keys: any text, and never two for one" {
	local key unique
	for key in ' ' '*' $'a\nb' $'a\tb' '"a\' 'ä' "$(printf '%01000d' 7)" \
		a 'a ' ' a' A; do
		run_mq 0 mq-publish -k "$key" q x
		duplicate -k "$key" q x
	done
	run_mq 64 mq-publish -k $'a\xff' q x
	assert_equal "$stderr" 'mq-publish: -k: a\M^?: not UTF-8' ||
		assert_regex "$stderr" 'not UTF-8$'
	run_mq 64 mq-publish -k '' q x
	run_mq 64 mq-publish -g $'a\xff' q x
	run_mq 64 mq-publish -g '' q x
	for unique in '' never -1s 0 0s Done 'done '; do
		run_mq 64 mq-publish -k a "--unique=$unique" q x
	done
	# shellcheck disable=SC2086 # two words
	for unique in '-k a' '-g a' '-p 1' --wait; do
		run_mq 64 mq-publish --raw $unique q x
	done
	assert_equal "$(held q)" "11 0 0 0"
}

@test "keys: what is wrong in the server is refused, with nothing published" {
	redis set 'rmq::queue::[q]::locks' x >/dev/null
	run_mq 76 mq-publish -k a q x
	assert_equal "$(held q)" "0 0 0 0"
	redis del 'rmq::queue::[q]::locks' >/dev/null
	# The count is not worth a message.
	redis set 'rmq::queue::[q]::counters' x >/dev/null
	run_mq 0 mq-publish -k a q x
	assert_equal "$(held q)" "1 0 0 0"
}

@test "keys: --coalesce joins the message that waits, until it is claimed" {
	local first
	run_mq 0 mq-publish -i -k a --unique queued --coalesce q one
	first=$output
	run_mq 0 mq-publish -v -i -k a --unique queued --coalesce q two
	assert_equal "$output" "$first"
	assert_equal "$stderr" "mq-publish: 0 messages accepted, 1 joined"
	assert_equal "$(counts published)" 1
	run_mq 0 mq-publish -k b --unique queued --coalesce q other
	assert_equal "$(drained)" "one other"
	assert_equal "$(locks)" 0
	run_mq 0 mq-publish -i -k a --unique queued --coalesce q three
	refute_output "$first"
	assert_equal "$(drained)" three
}

# due SECONDS: the only delayed message is due in so many, within a minute.
due() {
	local at
	at=$(redis --raw zrange 'rmq::queue::[q]::delayed' 0 -1 withscores | tail -n 1)
	at=$((at / 1000 - $(date +%s) - $1))
	[ "$at" -le 1 ] && [ "$at" -ge -60 ]
}

@test "keys: --coalesce: a delayed message is due at the earlier of the two" {
	local join=(-k a --unique queued --coalesce q x)
	run_mq 0 mq-publish -d 3h -k a --unique queued q one
	run_mq 0 mq-publish -d 2h "${join[@]}"
	due 7200
	run_mq 0 mq-publish -d 1d "${join[@]}"
	due 7200
	run_mq 0 mq-publish --at now+1hour "${join[@]}"
	due 3600
	run_mq 0 mq-publish "${join[@]}"
	run_mq 0 mq-publish "${join[@]}"
	assert_equal "$(drained)" one
	# One that waits for another attempt has its key again.
	run_mq 0 mq-publish -k a --unique queued q two
	run_mq 75 mq-consume -q -n 1 q -- sh -c 'echo resend 9000 >&3'
	assert_equal "$(held q)" "0 1 0 0"
	run_mq 0 mq-publish -d 1h "${join[@]}"
	due 3600
	run_mq 0 mq-publish "${join[@]}"
	assert_equal "$(drained)" two
}

@test "keys: --coalesce joins nothing that keeps its key longer, and takes no place" {
	run_mq 0 mq-publish -k a q until-done
	duplicate -k a --unique queued --coalesce q x
	run_mq 0 mq-publish -k b --unique queued q waits
	run_mq 0 mq-publish -k b --unique queued --coalesce --max-length 1 q x
	run_mq 75 mq-publish -k c --unique queued --coalesce --max-length 1 q x
	run_mq 64 mq-publish -k b --coalesce q x
	run_mq 64 mq-publish -k b --unique done --coalesce q x
	assert_equal "$(drained)" "until-done waits"
}

@test "keys: --coalesce with JSON, each line with a key of its own" {
	local i
	for i in 1 2 3 4 5 6; do
		printf '{"payload": "%s", "headers": {"Mq-Key": "k%s", "Mq-Unique": "queued"}}\n' \
			"$i" $((i % 2))
	done >"$T/lines"
	"$BUILD/mq-publish" -i --jsonl --coalesce q <"$T/lines" >"$T/ids"
	mapfile -t ids <"$T/ids"
	assert_equal "$(sort -u "$T/ids" | wc -l)" 2
	assert_equal "${ids[0]} ${ids[1]}" "${ids[4]} ${ids[5]}"
	assert_equal "$(drained)" "1 2"
}

@test "keys: fifty that coalesce and wait get one run, and all hear of its end" {
	local i waiters=()
	for i in {1..50}; do
		"$BUILD/mq-publish" -k a --unique queued --coalesce --wait=300s q "$i" \
			>"$T/said.$i" 2>&1 3>&- &
		waiters+=($!)
	done
	eventually 30 eval 'redis info clients | grep -q "^blocked_clients:50[^0-9]*$"'
	run_mq 0 mq-consume --drain q -- sh -c 'echo ran >>"$T/ran"; echo "done once" >&3'
	for i in "${waiters[@]}"; do
		wait "$i"
	done
	assert_equal "$(cat "$T/ran")" ran
	assert_equal "$(cat "$T"/said.* | sort | uniq -c | xargs)" "50 once"
}
