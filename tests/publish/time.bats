#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-publish: when messages are ready, and until when they may be started.

load ../helpers/server
load feed

# The score of the last delayed message of q, unix ms.
due_ms() {
	redis zrange 'rmq::queue::[q]::delayed' -1 -1 withscores | tail -n 1
}

# at TIME: when that is, in seconds, as mq-publish has it.
at() {
	redis del 'rmq::queue::[q]::delayed' >/dev/null
	"$BUILD/mq-publish" --at "$1" q x || return
	due_ms | sed 's/\(...\)$/.\1/; s/\.000$//'
}

# as_date TIME: it is what date(1) says.  At midnight that may change.
as_date() {
	local before after got

	before=$(date -d "$1" +%s)
	got=$(at "$1")
	after=$(date -d "$1" +%s)
	echo "$1: $before, $got, $after"
	[ "$got" = "$before" ] || [ "$got" = "$after" ]
}

# in_ms MS TIME: it is so long after the server's clock.
in_ms() {
	local before after

	redis del 'rmq::queue::[q]::delayed' >/dev/null
	before=$(now_ms)
	run_mq 0 mq-publish --at "$2" q x
	after=$(now_ms)
	echo "$before + $1 <= $(due_ms) <= $after + $1"
	(($(due_ms) >= before + $1 && $(due_ms) <= after + $1))
}

@test "time: --at: days and dates in words, as date(1) has them" {
	local form zone

	for zone in UTC Europe/Berlin America/New_York; do
		export TZ=$zone
		for form in 'tomorrow 9:00' '9:00 tomorrow' 'next friday' \
			'friday 23:59:59 + 1 week' '2036-12-01 10:00' \
			'Dec 24 2036 18:00' '24 Dec 2036' '12/31/2036 6pm' \
			'Wed, 24 Dec 2036 18:00:00 +0100' \
			'2036-12-01T10:00+0100' '2036-12-01 10:00 EST' \
			'TZ="Asia/Tokyo" 2036-12-01 10:00' @4102444800; do
			as_date "$form"
		done
	done
}

@test "time: --at: from now on in words, by the server's clock" {
	local hour=3600000

	TZ=UTC
	export TZ
	in_ms $((2 * hour)) '2 hours'
	in_ms $((2 * hour)) '+2 hours'
	in_ms $((2 * hour)) 'now + 2 hours'
	in_ms $((24 * hour)) tomorrow
	in_ms $((7 * 24 * hour)) 'next week'
	in_ms $((70 * 60000)) '1 hour 10 minutes'
}

@test "time: --at: the clock of this machine does not matter" {
	no_static "faketime sets another clock"
	local day hour=3600000 skewed

	[[ $BUILD != *-address-* ]] || skip "not with this sanitizer"
	# It must not change the times of files that touch(1) is asked for.
	export NO_FAKE_STAT=1 TZ=UTC
	for skewed in '2019-05-05 10:00:00' '2041-05-05 10:00:00'; do
		[ "$(faketime "$skewed" date +%Y)" = "${skewed%%-*}" ]
		mkdir -p "$T/bin"
		printf '#!/bin/sh\nexec faketime "%s" "%s/mq-publish" "$@"\n' \
			"$skewed" "$BUILD" >"$T/bin/mq-publish"
		chmod +x "$T/bin/mq-publish"
		BUILD=$T/bin in_ms $((2 * hour)) '2 hours'
		BUILD=$T/bin in_ms $((24 * hour)) tomorrow
		BUILD=$T/bin as_date 'next friday'
		BUILD=$T/bin as_date 'tomorrow 9:00'
		day=$(BUILD=$T/bin at 0:00)
		assert_equal "$day" "$(date -d 'tomorrow 0:00' +%s)"
	done
}

@test "time: --at: a time of the day is the next one, however it is written" {
	local form day=86400 got

	export TZ=UTC
	for form in '9:05' 09:05 '9:05am' '9:05 AM' 09:05:00; do
		got=$(at "$form")
		assert_equal $((got % day)) $((9 * 3600 + 5 * 60))
		((got * 1000 > $(now_ms) && got * 1000 <= $(now_ms) + day * 1000))
	done
	while read -r form got; do
		assert_equal "$form: $(($(at $form) % day))" "$form: $got"
	done <<-END
		9pm $((21 * 3600))
		12am 0
		12pm $((12 * 3600))
		1700 $((17 * 3600))
		0005 300
	END
}

@test "time: --at: what is over is no time in words, and else means now" {
	local form

	for form in 'yesterday' '2 hours ago' 'last monday' '2001-02-03 04:05 EST'; do
		run_mq 64 mq-publish --at "$form" q x
		assert_equal "$stderr" "mq-publish: --at: $form: that time is over"
	done
	assert_equal "$(held q)" "0 0 0 0"
	for form in @7 123456789 2001-02-03 2001-02-03T04:05:06Z; do
		run_mq 0 mq-publish --at "$form" q x
		assert_equal "$stderr" "mq-publish: --at: $form: that time is over; published at once"
	done
	run_mq 0 mq-publish -q --at @7 q x
	assert_equal "$stderr" ""
	for form in now '30 seconds ago' "$(date +%s)"; do
		run_mq 0 mq-publish --at "$form" q x
		assert_equal "$stderr" ""
	done
	# The rest does not say it again.
	printf '%s\n' '{"payload":"x","queue":"p","due_ms":5}' \
		'{"payload":"x","headers":{"Mq-Due":["5"]}}' >"$T/lines"
	run_mq 0 mq-publish --jsonl q <"$T/lines"
	assert_equal "$stderr" "mq-publish: record 1: its time is over; published at once"
	tail -n 1 "$T/lines" | run_mq 0 mq-publish --jsonl q
	run_mq 0 mq-publish -q --jsonl q <"$T/lines"
	assert_equal "$stderr" ""
	# The copy of one that was once delayed is not late.
	run_mq 0 mq-publish --jsonl q <<<'{"payload":"x","queue":"p","headers":{"Mq-Due":["5"]}}'
	assert_equal "$stderr" ""
	assert_equal "$(held q)" "14 0 0 0"
}

@test "time: --at: a duration is not a time" {
	local form

	for form in 2h 10m 5m 1d 1w 1h30m 500ms; do
		run_mq 64 mq-publish --at "$form" q x
		assert_equal "$stderr" "mq-publish: --at: $form: not a time but a duration; use -d $form"
	done
	assert_equal "$(redis dbsize)" 0
}

@test "time: --at: what is no time is said so, before anything happens" {
	local form long

	printf -v long '%0400d' 0
	for form in '' ' ' '   ' x noonish 'soon enough' 25:00 13pm 0am \
		2026-02-30 'Feb 30' --help -- 7 2500 20361224 12345678 1.5 \
		z '10 m' '9:00 B' 10z \
		"2036-12-01 $long" '$(date)' 'tomorrow; date' \
		'300000 years' '-3000 years'; do
		run_mq 64 mq-publish "--at=$form" q x </dev/null
		assert_equal "$(wc -l <<<"$stderr")" 1
		assert_regex "$stderr" '^mq-publish: --at: .*: not a time '
	done
	# Nor does it need a server to say so.
	MQ_URL=unix://$T/nothing run_mq 64 mq-publish --at nonsense q x
	assert_equal "$(redis dbsize)" 0
}

@test "time: --at: a machine without touch(1) still knows the plain forms" {
	mkdir "$T/empty"
	PATH=$T/empty run "$BUILD/mq-publish" --at 4102444800 q x
	assert_success
	PATH=$T/empty run "$BUILD/mq-publish" --at tomorrow q x
	assert_equal "$status" 64
	assert_equal "$(held q)" "0 1 0 0"
}

@test "time: words leave nothing behind, and take nothing from stdin" {
	run_mq 0 mq-publish --at 'tomorrow 9:00' -l q < <(printf 'a\nb\nc\n')
	assert_equal "$(held q)" "0 3 0 0"
	cd "$T"
	run_mq 0 mq-publish --at 'tomorrow 9:00' q x
	run ls -A "$T"
	assert_output ""
}

@test "time: -e: so long after publishing, or after it is ready; it goes before a record's" {
	local before after got line='{"payload":"y","headers":{"Mq-Expires":"4102444800000"}}'

	before=$(now_ms)
	run_mq 0 mq-publish -e 10m q x
	after=$(now_ms)
	got=$(element q ready | header Mq-Expires)
	((got >= before + 600000 && got <= after + 600000))
	run_mq 0 mq-publish --at 4102444800 -e 90s q x
	assert_equal "$(element q delayed | header Mq-Expires)" 4102444890000
	run_mq 0 mq-publish --at 4102444800 --expires 1.5s --jsonl q <<<"$line"
	assert_equal "$(element q delayed 1 | header Mq-Expires)" 4102444801500
	run_mq 0 mq-publish --jsonl q <<<"$line"
	assert_equal "$(element q ready | header Mq-Expires)" 4102444800000
}
