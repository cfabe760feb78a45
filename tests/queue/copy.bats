# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Messages that go from one server to another: mq-stats --list or mq-consume,
# --jsonl, into mq-publish --jsonl.

load ../helpers/server

setup_file() {
	server_start
	OTHER=$(own_dir)
	export OTHER
	redis-server --port 0 --unixsocket "$OTHER/s" --dir "$OTHER" --save '' \
		--appendonly no --pidfile "$OTHER/pid" --daemonize yes \
		--logfile "$OTHER/log" >/dev/null
	eventually 10 other ping
}

teardown_file() {
	other shutdown nosave >/dev/null 2>&1 || true
	rm -rf "$OTHER"
	server_stop
}

setup() {
	common_setup
	other flushall >/dev/null
}

other() {
	redis-cli -s "$OTHER/s" "$@"
}

# copy STATE [OPTION...]: of q, to the other server.
copy() {
	"$BUILD/mq-stats" --list "$1" --jsonl q |
		"$BUILD/mq-publish" -u "unix://$OTHER/s" --jsonl "${@:2}" q
}

# content CLI WHAT...: all messages in these keys of q, as they are there; those
# of sorted sets without what makes them unique, and with their scores.
content() {
	local cli=$1 what
	shift
	for what; do
		case $what in
		ready | rejected | *unacked) "$cli" --no-raw lrange "rmq::queue::[q]::$what" 0 -1 ;;
		*) "$cli" --no-raw zrange "rmq::queue::[q]::$what" 0 -1 withscores |
			sed -E 's/^ *[0-9]+\) "[a-zA-Z0-9.]{32}/"/' ;;
		esac
	done
}

same() {
	content redis "$@" >"$T/here"
	content other "$@" >"$T/there"
	diff "$T/here" "$T/there"
}

# Messages of many kinds.
publish_kinds() {
	local p=("$BUILD/mq-publish" "$@" q)
	"${p[@]}" one '' $'two\nlines'
	perl -e 'print map(chr, 0..255)' | "${p[@]}"
	perl -e 'print "a\0b\0"' | "${p[@]}"
	head -c 200000 /dev/urandom | "${p[@]}"
	head -c 200000 /dev/zero | "${p[@]}"
}

@test "copy: ready messages, byte for byte, in their order" {
	publish_kinds
	publish_kinds --raw
	perl -e 'print "\xff\0\xbe\xbe\x4a{}\nlike a header"' | "$BUILD/mq-publish" q
	"$BUILD/mq-publish" -H 'X-A: 1' -H 'X-A: 2' -H 'X-B: ü' -P 1=a -P 4=d q 'with headers'
	redis -x lpush 'rmq::queue::[q]::ready' < <(printf '\377\0\276\276J{"A":null,"B":[],"C":["","<&>"]}\nGo') >/dev/null
	redis -x lpush 'rmq::queue::[q]::ready' < <(printf '\377\0\276\276Jbad\nheader') >/dev/null
	redis -x lpush 'rmq::queue::[q]::ready' < <(printf '\377\0\276\276Jno end') >/dev/null
	run copy ready
	assert_success
	assert_output ""
	# What had headers and no id has got one.
	other --no-raw lindex 'rmq::queue::[q]::ready' 2 |
		grep -qF '{\"A\":null,\"B\":[],\"C\":[\"\",\"<&>\"],\"Mq-Id\":[\"'
	redis lset 'rmq::queue::[q]::ready' 2 x >/dev/null
	other lset 'rmq::queue::[q]::ready' 2 x >/dev/null
	same ready
	assert_equal "$(redis llen 'rmq::queue::[q]::ready')" 19
}

@test "copy: priorities, groups, keys, expiry" {
	local i
	for i in 1 2 3; do
		"$BUILD/mq-publish" q plain$i
		"$BUILD/mq-publish" -p 5 q high$i higher$i
		"$BUILD/mq-publish" -p -5 q low$i
		"$BUILD/mq-publish" -g a q a$i
		"$BUILD/mq-publish" -g b -p 7 q b$i
		"$BUILD/mq-publish" -k k$i -e 1h q key$i
	done
	"$BUILD/mq-publish" -e 1ms q late
	run copy ready
	assert_success
	run copy delayed
	assert_success
	same ready priority delayed
	assert_equal "$(redis hkeys 'rmq::queue::[q]::locks' | sort)" \
		"$(other hkeys 'rmq::queue::[q]::locks' | sort)"
	# Run there, they come as they would have here.
	"$BUILD/mq-consume" -q --drain -l q >"$T/here" || [ $? = 1 ]
	"$BUILD/mq-consume" -q -u "unix://$OTHER/s" --drain -l q >"$T/there" || [ $? = 1 ]
	diff "$T/here" "$T/there"
	assert_equal "$(wc -l <"$T/here")" 21
}

@test "copy: delayed messages fall due at the same time" {
	publish_kinds -d 1h
	publish_kinds --raw -d 2h
	"$BUILD/mq-publish" --at 2099-01-01T00:00:00Z q far
	"$BUILD/mq-publish" -d 1h -g a q head
	"$BUILD/mq-publish" -d 2h -g a q 'in line'
	"$BUILD/mq-publish" -d 3h -p 3 -k k q wishes
	"$BUILD/mq-publish" --from-tick 7 q tick
	# One that failed, and is to be tried again.
	"$BUILD/mq-publish" q again
	"$BUILD/mq-consume" -q --drain q -- sh -c 'echo resend 5000-later >&3' || [ $? = 75 ]
	run copy delayed
	assert_success
	same ready priority delayed
	assert_equal "$(redis zcard 'rmq::queue::[q]::delayed')" 20
	assert_equal "$(element q delayed -1 | wc -c)" "$(other zrange 'rmq::queue::[q]::delayed' -1 -1 | tail -c +33 | wc -c)"
	# An option decides.
	other flushall >/dev/null
	run copy delayed -d 1d
	assert_equal "$(other zcount 'rmq::queue::[q]::delayed' "$(($(date +%s) + 86000))000" "$(($(date +%s) + 86500))000")" 19
}

@test "copy: what was due long ago, or waits for a turn, is not ready too soon" {
	"$BUILD/mq-publish" -d 1h -g a q one
	"$BUILD/mq-publish" -d 2h -g a q two
	run copy delayed
	assert_success
	# The first one goes away: the next is due when it was here.
	"$BUILD/mq-purge" -u "unix://$OTHER/s" --delayed -n 1 --force q
	due=$(other zrange 'rmq::queue::[q]::delayed' 0 -1 withscores | tail -n 1)
	((due > ($(date +%s) + 7000) * 1000))
	redis flushall >/dev/null
	other flushall >/dev/null
	"$BUILD/mq-publish" -d 1ms q soon
	"$BUILD/mq-publish" -d 1ms --raw q soon-raw
	eventually 5 eval '[ "$("$BUILD/mq-stats" --list delayed q | grep -c " now ")" = 2 ]'
	run copy delayed
	assert_equal "$(other llen 'rmq::queue::[q]::ready')" 2
	"$BUILD/mq-consume" -u "unix://$OTHER/s" --drain -l q | cmp - <(printf 'soon\nsoon-raw\n')
}

@test "copy: rejected and unacked messages, with all that is known of them" {
	local key
	publish_kinds
	publish_kinds --raw
	"$BUILD/mq-lease" --for 1h --jsonl -n 8 q >"$T/leased"
	"$BUILD/mq-lease" --for 1h --jsonl -n 16 q >>"$T/leased"
	assert_equal "$(wc -l <"$T/leased")" 14
	run copy unacked
	assert_success
	for key in $(redis keys '*unacked' | sort); do
		redis --no-raw lrange "$key" 0 -1
	done | sed 's/^ *[0-9]*) //' | sort >"$T/here"
	content other ready | sed 's/^ *[0-9]*) //' | sort | diff "$T/here" -
	other flushall >/dev/null
	publish_kinds
	publish_kinds --raw
	"$BUILD/mq-consume" -q -n 14 q -- sh -c 'echo oops >&2; exit 3' || [ $? = 1 ]
	run copy rejected
	assert_success
	content redis rejected >"$T/here"
	content other ready | diff "$T/here" -
	run_mq 0 mq-stats -u "unix://$OTHER/s" --list ready -n 1 --jsonl q
	assert_output --partial '"attempts":1'
	assert_output --partial '"reason":"oops (exit status 3)"'
	assert_output --partial '"stderr":"oops"'
}

@test "copy: a move by mq-consume; to a server that is not there it moves nothing" {
	publish_kinds
	publish_kinds --raw
	run bash -c '"$0" --jsonl q | "$1" -u unix:///nowhere/s --jsonl q; echo "${PIPESTATUS[*]}"' \
		"$BUILD/mq-consume" "$BUILD/mq-publish"
	assert_line "0 69"
	content redis ready >"$T/here"
	assert_equal "$(held q)" "14 0 0 0"
	"$BUILD/mq-consume" --drain --jsonl q | "$BUILD/mq-publish" -u "unix://$OTHER/s" --jsonl q
	content other ready | diff "$T/here" -
	assert_equal "$(held q)" "0 0 0 0"
}

@test "copy: keys that others have: duplicates, and they are told" {
	seq 300 | sed 's/.*/{"payload":"&","headers":{"Mq-Key":["&"]}}/' |
		"$BUILD/mq-publish" --jsonl q
	"$BUILD/mq-publish" -u "unix://$OTHER/s" -k 17 q other
	run copy ready
	assert_equal "$status" 1
	assert_output "mq-publish: 299 messages accepted, 1 duplicate"
	run copy ready
	assert_equal "$status" 1
	assert_output "mq-publish: 0 messages accepted, 300 duplicates"
	assert_equal "$(other llen 'rmq::queue::[q]::ready')" 300
}

@test "copy: a raw message gets a header when an option asks for one" {
	"$BUILD/mq-publish" --raw q raw
	run copy ready -i
	assert_output --regexp '^[0-9a-zA-Z]{32}$'
	run copy ready -H 'X-A: b'
	run copy ready -p 3
	assert_equal "$(other lrange 'rmq::queue::[q]::ready' 0 -1 | grep -ac Mq-Id)" 2
	assert_equal "$(other zrange 'rmq::queue::[q]::priority' 0 -1 | grep -ac Mq-Priority)" 1
	# By hand, nothing says that it was raw.
	"$BUILD/mq-publish" --jsonl r <<<'{"payload":"x"}'
	element r ready | grep -qa Mq-Id
	"$BUILD/mq-publish" --jsonl r <<<'{"queue":"q","payload":"x"}'
	assert_equal "$(element r ready)" x
}

@test "copy: times that make no sense" {
	local due
	for due in 9999999999999999999 -1 '"x"' 1e300 null 4611686018427387904; do
		"$BUILD/mq-publish" --jsonl q <<<'{"queue":"q","due_ms":'"$due"',"payload":"x"}' || true
		"$BUILD/mq-publish" --jsonl q <<<'{"headers":{"Mq-Due":"'"${due//\"/}"'"},"payload":"x"}'
	done
	# At the end of the year 9999, at the latest.
	assert_equal "$(redis zrange 'rmq::queue::[q]::delayed' 0 -1 withscores | sed -n '/^[0-9]*$/p' | sort -u)" 253402300799999
	assert_equal "$(redis llen 'rmq::queue::[q]::ready')" 8
}
