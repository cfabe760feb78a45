#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The connection of a publisher breaks, at any moment: it goes on, and whatever
# the server has done already, each message is there once.  Of several batches under
# way, whatever the server says of one, the messages stay in the order of publishing.
#
# layouts: rmq rsmq

load ../helpers/server
load feed
load "../helpers/layout-${LAYOUT:-rmq}"

# Each kind of batch; KEY stands for a key of its own.
few=("" "-p 3" "--max-length 1000000")
[ "${LAYOUT:-rmq}" = rsmq ] || few+=("-g group")
ways=("${few[@]}" "--raw" "-d 5ms")
[ "${LAYOUT:-rmq}" = rsmq ] || ways+=("-k KEY" "-e 1h"
	"-k KEY --unique queued --coalesce" "-k KEY --replace")
orders=("${few[@]}")
[ "${LAYOUT:-rmq}" = rsmq ] || orders+=("-e 1h" "-e 1h -p 5")

setup_file() {
	server_start
	FILE_D=$D
	export FILE_D PYTHONDONTWRITEBYTECODE=1
	# The server knows the script: no answer is only that it does not.
	"$BUILD/mq-publish" -p 3 q first
}

setup() {
	common_setup
	far=0
}

# network FAULT...: a network with these faults, at $url; see resume.py.
network() {
	no_cluster "the network stands before one server"
	far=$((far + 1))
	python3 -S "$BATS_TEST_DIRNAME/resume.py" "$T/s$far" "$D/redis.sock" "$@" \
		3>&- &
	network=$!
	url=unix://$T/s$far
	eventually 10 listens_at "$T/s$far"
}

# What is late comes.
let_go() {
	kill -USR1 "$network"
	eventually 10 test -e "$T/s$far.gone"
}

# No message waits for its time any more; in line they have no time.
all_due() {
	[ "$(redis eval 'local t, n = redis.call("TIME"), 0
		for _, key in ipairs({"rmq::queue::[q]::delayed", "rsmq:q"}) do
			n = n + redis.call("ZCOUNT", key,
				"(" .. t[1] * 1000 + math.floor(t[2] / 1000), 2 ^ 52 - 1)
		end
		return n' 0)" = 0 ]
}

# All payloads, each on a line, in the order of their claims.
taken() {
	eventually 5 all_due
	"$BUILD/mq-consume" -q -l --drain q
}

marks() {
	redis keys '*publisher*'
}

# way OPTIONS WORD: its options, with a key of its own, and with -i where that
# can be.
way() {
	echo "$([[ $1 == *--raw* ]] || echo -i) ${1/KEY/$2}"
}

# cut HOW WAY...: one message, whose connection is cut so, in each way.
cut() {
	local n=0 how=$1 way

	shift
	redis flushall >/dev/null
	for way; do
		n=$((n + 1))
		network "$how:needle$n"
		# shellcheck disable=SC2046 # several options
		run_mq 0 mq-publish -u "$url" $(way "$way" "$n") q "needle$n"
		assert_regex "$stderr" '^mq-publish: .*; reconnecting$'
		[[ $way == *--raw* ]] || assert_equal "${#lines[@]}" 1
		assert_equal "$(taken)" "needle$n"
		assert_equal "$(marks)" ""
	done
	assert_equal "$(published)" "$n"
}

@test "resume: cut before the server has it, or the reply comes, or in the middle of one" {
	cut before "${few[@]}"
	cut half "${few[@]}"
	cut reply "${ways[@]}"
	cut "half reply" "${few[@]}"
}

# late WAY NUMBER: one whose first try arrives late.
late() {
	network "late:needle$2"
	[ "$1" != unknown ] || redis flushall >/dev/null
	# shellcheck disable=SC2046 # several options
	run_mq 0 mq-publish -q -u "$url" $(way "${1#unknown}" "$2") q "needle$2"
	let_go
	assert_equal "$(taken)" "needle$2"
}

@test "resume: what arrives late changes nothing, nor when the queue was not known" {
	local n=0 way

	for way in "${ways[@]}" unknown; do
		n=$((n + 1))
		late "$way" "$n"
	done
}

# --- many ------------------------------------------------------------------------

# many N DO OPTION...: N messages, slowly, while DO is done again and again, and
# each is there once, in the order of publishing, with an id.
many() {
	local n=$1 do=$2 ids=-i

	shift 2
	[[ $* != *--raw* ]] || ids=
	seq "$n" | perl -ne '$| = 1; print; if ($. % 200 == 0) {
		select undef, undef, undef, 0.03 }' |
		"$BUILD/mq-publish" -q $ids -l "$@" q >"$T/out" 2>"$T/err" 3>&- &
	pid=$!
	eventually 10 is_at_work "$pid"
	until gone "$pid"; do
		"$do" >/dev/null 2>&1
	done
	wait "$pid" || { cat "$T/err"; return 1; }
	[ -z "$ids" ] || assert_equal "$(sort -u "$T/out" | wc -l)" "$n"
	[ -z "$ids" ] || assert_equal "$(wc -l <"$T/out")" "$n"
	# The last connection may have ended when nobody needed it any more.
	[ -z "$(marks)" ] || assert [ "$(redis ttl "$(marks)")" -gt 0 ]
	redis del "$(marks)" >/dev/null
	taken >"$T/taken"
	cmp "$T/taken" <(seq "$n")
}

is_at_work() {
	[ -n "$(marks)" ] || gone "$1"
}

for_a_while() {
	read -rt "0.0$1" <> <(:) || true
}

set_free() {
	redis script flush
	redis client kill type normal
	for_a_while 3
}

@test "resume: CLIENT KILL again and again" {
	local way

	for way in "${few[@]}"; do
		# shellcheck disable=SC2086 # several options
		many 3000 set_free $way
	done
}

@test "resume: a network that breaks again and again" {
	local way

	for way in "${few[@]}"; do
		network often:publisher
		# shellcheck disable=SC2086 # several options
		many 3000 for_a_while -u "$url" $way
		kill "$network"
	done
}

published() {
	redis --raw hget "$(keys_at_rest | grep counters)" published
}

# It stays until the publisher has got on.
crash() {
	local before

	server_kill
	server_run --appendonly yes --appendfsync always
	before=$(published)
	until gone "$pid" || [ "$(published)" != "$before" ]; do
		for_a_while 2
	done
	for_a_while 9
}

@test "resume: a server that is killed and comes back with everything" {
	local way

	server_start --appendonly yes --appendfsync always
	for way in "${few[@]}"; do
		# shellcheck disable=SC2086 # several options
		many 6000 crash $way
	done
}

# --- several batches under way -----------------------------------------------------

# in_order STATUS: $T/lines is published in this way, and what is there is its beginning.
in_order() {
	# shellcheck disable=SC2086 # several options
	run_mq "$1" mq-publish -u "$url" $way -l q <"$T/lines"
	taken >"$T/taken"
	head -n "$(wc -l <"$T/taken")" "$T/lines" | cmp - "$T/taken"
	kill "$network"
}

@test "resume: the server forgets its scripts again and again: all in order" {
	local way n faults cli="redis-cli -s $D/redis.sock"

	seq -f 'm%05g' 9000 >"$T/lines"
	for way in "${orders[@]}"; do
		faults=()
		for n in 2 4 6 8; do
			faults+=("do:m0${n}000:$cli script flush"
				"do:m0${n}700:$BUILD/mq-publish -q $way other x")
		done
		network "${faults[@]}" "do:m09000:$cli client kill type normal skipme yes"
		in_order 0
		cmp "$T/lines" "$T/taken"
	done
}

# Between two lines a thousand apart is more than sockets hold, so the server has read the
# first when the second comes.
@test "resume: memory that is short for a while: the first ones are accepted" {
	local way n behind cli="redis-cli -s $D/redis.sock"

	seq -f "m%05g$(printf '%0394d' 0)" 9000 >"$T/lines"
	for way in "${orders[@]}"; do
		network "do:m03000:$cli config set maxmemory 1" "do:m03300:$cli config set maxmemory 0"
		# shellcheck disable=SC2086 # several options
		run_mq 75 mq-publish -u "$url" $way -l q <"$T/lines"
		taken >"$T/taken"
		kill "$network"
		redis config set maxmemory 0 >/dev/null
		assert_regex "${stderr_lines[-1]}" \
			'^mq-publish: ([0-9]+) messages accepted(, and ([0-9]+) behind those that were refused)?$'
		n=${BASH_REMATCH[1]} behind=${BASH_REMATCH[3]:-0}
		assert [ "$n" -gt 1000 ]
		assert [ "$n" -lt 3000 ]
		assert_equal "$(wc -l <"$T/taken")" "$((n + behind))"
		cmp <(head -n "$n" "$T/lines") <(head -n "$n" "$T/taken")
		# Without a script, a batch behind the refused one is accepted.
		[[ ${LAYOUT:-rmq} = rmq && -z ${way#-p 3} ]] || [ "$behind" = 0 ]
	done
}

# --- verdicts ----------------------------------------------------------------------

@test "resume: the verdicts are those of the first time" {
	[ "${LAYOUT:-rmq}" = rmq ] || skip "RSMQ has no keys"
	network "reply:needle"
	run_mq 1 mq-publish -u "$url" -i --jsonl q <<-'END'
		{"payload": "needle", "headers": {"Mq-Key": ["k"]}}
		{"payload": "b", "headers": {"Mq-Key": ["k"]}}
		{"payload": "c", "headers": {"Mq-Key": ["l"]}}
	END
	assert_equal "${stderr_lines[1]}" \
		"mq-publish: 2 messages accepted, 1 duplicate"
	assert_equal "${#lines[@]}" 2
	assert_equal "$(taken)" $'needle\nc'
}

@test "resume: a queue that became full with the lost answer" {
	network "reply:needle"
	run_mq 75 mq-publish -u "$url" --max-length 2 q needle b c
	assert_regex "$stderr" 'mq-publish: q: the queue is full
mq-publish: 2 messages accepted$'
	assert_equal "$(taken)" $'needle\nb'
}

# --- the beginning -----------------------------------------------------------------

@test "resume: cut behind so many bytes, from the first one on: each is there, once" {
	local n i=0 way

	network "after:$T/cut"
	for way in "" -l "-l -p 3"; do
		for n in $(seq 0 17 640) 14 15 16; do
			i=$((i + 1))
			echo "$n" >"$T/cut"
			# shellcheck disable=SC2086 # several options
			run_mq 0 mq-publish -u "$url" $way q <<<"needle$i"
			assert [ ! -e "$T/cut" ]
			[ -z "$stderr" ] || assert_regex "$stderr" '^mq-publish: [^;]*; reconnecting$'
		done
	done
	redis script flush >/dev/null
	assert_equal "$(taken | grep -c .) $(published)" "$i $i"
	kill "$network"
}

# --- too long -----------------------------------------------------------------------

# too_long WORDS TIMES LIMIT...: the second of three is beyond such a limit of the server;
# it is sent so often, and the others are there.
too_long() {
	local way words=$1 times=$2 cuts

	server_start "${@:3}"
	printf '%s\n' a "$(head -c 1500000 /dev/zero | tr '\0' x)" b >"$T/lines"
	[ "${LAYOUT:-rmq}" = rmq ] || run_mq 0 mq-set -q --create q maxsize=-1
	for way in "${few[@]}" --raw; do
		redis config resetstat >/dev/null
		# shellcheck disable=SC2086 # several options
		run_mq 65 mq-publish -q $way -l q <"$T/lines"
		assert_regex "${stderr_lines[0]}" "^mq-publish: record 2: [^ ]*: $words(; --attach sends it as a file)?$"
		assert_equal "${stderr_lines[1]}" "mq-publish: 2 messages accepted, 1 too long"
		assert_equal "$(taken)" $'a\nb'
	done
	cuts=$(cat "$D"/redis.log "$D"/?/redis.log 2>/dev/null | grep -ci 'query buffer' || true)
	assert [ "$cuts" = $((times * (${#few[@]} + 1))) ]
}

@test "resume: a message beyond the limit of a value: 65 at once, the others are sent" {
	too_long 'ERR Protocol error: invalid bulk length' 0 --proto-max-bulk-len 1mb
}

@test "resume: a message at which the server ends the connection twice: the same" {
	too_long '.*, twice at this message, which may be too long for it' 2 --client-query-buffer-limit 1mb
}

@test "resume: who leaves no marks learns of a message that is too long, too" {
	[ "${LAYOUT:-rmq}" = rmq ] || skip "RSMQ has no plain messages"
	no_cluster "the user is one server's"
	server_start --proto-max-bulk-len 1mb
	url=$MQ_URL
	user -eval -client
	head -c 1500000 /dev/zero | run_mq 65 mq-publish -q -u "$as" q
	run_mq 0 mq-publish -q -u "$as" q b
	assert_equal "$(taken)" b
}

# --- where it cannot ----------------------------------------------------------------

# user RULE...: one who may all but that; their URL on the network is $as.  A
# part of a command cannot be taken away in Redis 6.2, only be given.
user() {
	redis acl setuser some reset on '>pw' '~*' '&*' +@all "$@" >/dev/null
	as=unix://some:pw@${url#unix://}
}

@test "resume: who may not end connections cannot know of plain messages" {
	local rule

	[ "${LAYOUT:-rmq}" = rmq ] || skip "RSMQ has no plain messages"
	for rule in '+client|list +client|setname' '+client|kill +client|setname' \
		'+client|kill +client|list' ''; do
		redis flushall >/dev/null
		network "late:needle"
		# shellcheck disable=SC2086 # several rules
		user -client $rule
		run_mq 69 mq-publish -u "$as" q needle other
		assert_regex "$stderr" \
			'mq-publish: 0 messages accepted, and up to 2 more$'
		let_go
		assert_equal "$(taken)" $'needle\nother'
	done
}

@test "resume: who may not end connections: what scripts publish is safe" {
	local rule

	for rule in '+client|list +client|setname' '+client|kill +client|list'; do
		redis flushall >/dev/null
		network "late:needle"
		# shellcheck disable=SC2086 # several rules
		user -client $rule
		run_mq 0 mq-publish -u "$as" -p 3 q needle
		let_go
		assert_equal "$(taken)" needle
		# What comes even later finds the mark.
		assert [ "$(redis ttl "$(marks)")" -gt 500 ]
		assert [ "$(redis ttl "$(marks)")" -le 600 ]
	done
}

@test "resume: without a right to the marks, plain messages are as ever" {
	local rule

	[ "${LAYOUT:-rmq}" = rmq ] || skip "RSMQ has no plain messages"
	for rule in -eval -multi -hset -pexpire \
		"resetkeys ~*ready ~rmq::queues"; do
		redis flushall >/dev/null
		network "reply:needle"
		# shellcheck disable=SC2086 # several rules
		user $rule
		run_mq 0 mq-publish -i -u "$as" -l q < <(seq 5000)
		assert_equal "${#lines[@]} $stderr" "5000 "
		taken | cmp - <(seq 5000)
		feed -l -u "$as" q
		echo first >&5
		eventually 10 held_is q "1 0 0 0"
		echo needle >&5
		close_feed 69
		assert_equal "$(tail -n 1 "$T/err")" \
			"mq-publish: 1 message accepted, and up to 1 more"
		assert_equal "$(taken)" $'first\nneedle'
	done
}

@test "resume: a server that comes back without its data: 75, and told" {
	server_start
	feed -i -l q
	seq 10 >&5
	eventually 10 held_is q "10 0 0 0"
	server_kill
	server_run
	# It may have ended before: SIGPIPE is not for us.
	(echo 11 >&5) || true
	close_feed 75
	assert_equal "$(tail -n 2 "$T/err" | sed "s/{rsmq}://")" \
"mq-publish: q: the server has come back without what it had accepted: up to 10 messages are lost
mq-publish: 0 messages accepted"
	assert_equal "$(wc -l <"$T/out")" 10
	assert_equal "$(held q)" "0 0 0 0"
}

@test "resume: a signal while it connects again" {
	server_start
	network
	feed -l q
	seq 10 >&5
	eventually 10 held_is q "10 0 0 0"
	server_kill
	seq 11 12 >&5
	eventually 10 grep -q reconnecting "$T/err"
	kill "$pid"
	close_feed 143
	assert_equal "$(tail -n 2 "$T/err")" "mq-publish: interrupted
mq-publish: 10 messages accepted, and up to 2 more"
	server_run
}

# A server looks at the rights of each command once more at EXEC.
@test "resume: a right that is revoked within a transaction" {
	[ "${LAYOUT:-rmq}" = rmq ] || skip "RSMQ has scripts only"
	local fault
	for fault in '' reply:EXEC; do
		redis acl setuser app reset on '>pw' '~*' '&*' +@all >/dev/null
		network "do:EXEC:redis-cli -s $D/redis.sock acl setuser app -lpush" ${fault:+"$fault"}
		# Too long for a script.
		head -c 100000 /dev/zero >"$T/large"
		run_mq 77 mq-publish -u "unix://app:pw@${url#unix://}" q <"$T/large"
		assert_regex "$stderr" "NOPERM.*"$'\n'"mq-publish: 0 messages accepted"
		assert_equal "$(redis llen 'rmq::queue::[q]::ready')" 0
	done
}
