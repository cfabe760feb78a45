#!/usr/bin/env bats
# Messages from 1 MiB on: no script copies them.

# run_mq sets stderr; each test is a subshell of its own.
# shellcheck disable=SC2030,SC2031,SC2154

load ../helpers/common

setup_file() {
	server_start
}

teardown_file() {
	server_stop
}

setup() {
	common_setup
	head -c 3000000 /dev/urandom >"$T/large"
	redis config resetstat >/dev/null
}

teardown() {
	common_teardown
}

# calls COMMAND: how often it was called.
calls() {
	redis info commandstats | sed -n "s/^cmdstat_$1:calls=\([0-9]*\),.*/\1/p"
}

# steps COMMAND N [COMPARE]: so often it was called, by steps that have no payload in a
# script, of which a cluster has none: there scripts copy large messages.
steps() {
	if [ "${TOPOLOGY-}" = cluster ]; then
		assert_equal "$(calls "$1")" ""
	else
		assert [ "$(($(calls "$1") + 0))" "${3:--eq}" "$2" ]
	fi
}

# no_traces: only what belongs there is left.
no_traces() {
	run redis keys '*::moving*'
	assert_output ''
}

@test "large: claimed in order among small ones, bit by bit" {
	local i

	for i in 1 2 3; do
		"$BUILD/mq-publish" q "small $i"
		"$BUILD/mq-publish" q <"$T/large"
	done
	seq 100 | "$BUILD/mq-publish" -l q
	{
		for i in 1 2 3; do
			printf '7:small %s,3000000:' $i
			cat "$T/large"
			printf ,
		done
		seq 100 | awk '{printf "%d:%s,", length($0), $0}'
	} >"$T/want"
	"$BUILD/mq-consume" --drain --netstring q >"$T/got"
	cmp "$T/got" "$T/want"
	assert_equal "$(held q)" "0 0 0 0"
	no_traces
	# Where claims need it.
	[ "${TOPOLOGY-}" = cluster ] ||
		assert_equal "$(redis exists 'rmq::queue::[q]::large')" 0
}

@test "large: the only message moves with its list" {
	"$BUILD/mq-publish" q <"$T/large"
	run_mq 0 mq-consume -n 1 q -- cmp - "$T/large"
	assert_equal "$(held q)" "0 0 0 0"
	steps lindex 2 # one of them tries its right
	no_traces
}

@test "large: a peer's message is found out about" {
	redis sadd rmq::queues q >/dev/null
	redis -x lpush 'rmq::queue::[q]::ready' <"$T/large" >/dev/null
	redis -x lpush 'rmq::queue::[q]::ready' <"$T/large" >/dev/null
	run_mq 0 mq-consume -n 1 q -- cmp - "$T/large"
	assert_equal "$(redis exists 'rmq::queue::[q]::large')" 1
	run_mq 0 mq-consume -n 1 q -- cmp - "$T/large"
	assert_equal "$(held q)" "0 0 0 0"
	steps exec 3 # two of them try whether it works
}

@test "large: nothing is claimed from a paused queue" {
	"$BUILD/mq-publish" q <"$T/large"
	"$BUILD/mq-pause" -q q
	start_mq mq-consume q -- true
	eventually 10 grep -q 'q: paused' "$T/err"
	assert_equal "$(held q)" "1 0 0 0"
	"$BUILD/mq-pause" -q --resume q
	eventually 10 held_is q "0 0 0 0"
	stop_mq
	no_traces
}

@test "large: a consumer that dies leaves it to the others" {
	"$BUILD/mq-publish" q <"$T/large"
	"$BUILD/mq-publish" q next
	start_mq mq-consume --prefetch 0 q -- sleep 100
	eventually 10 held_is q "1 0 1 0"
	stop_mq KILL
	redis del "rmq::connection::$(connections)::heartbeat" >/dev/null
	run_mq 0 mq-clean
	run_mq 0 mq-consume -n 1 q -- cmp - "$T/large"
	assert_equal "$(held q)" "1 0 0 0"
}

@test "large: without the rights, or behind a key: as any other" {
	"$BUILD/mq-publish" -k a q <"$T/large"
	run_mq 0 mq-consume -n 1 q -- cmp - "$T/large"
	"$BUILD/mq-publish" q <"$T/large"
	redis acl setuser old on '>pw' '~*' '&*' +@all -rename >/dev/null
	MQ_URL=$(url_as old:pw) run_mq 0 mq-consume -n 1 q -- \
		cmp - "$T/large"
	assert_equal "$(held q)" "0 0 0 0"
	redis acl deluser old >/dev/null
}

# as_old TOOL ARGUMENT...: by a user with the rights of an earlier version.
as_old() {
	MQ_URL=$(url_as old:pw) "$BUILD/$1" "${@:2}"
}

@test "large: without the rights to move it: whole, or refused" {
	local deny

	for deny in -rename '-del -zrem' -zscore -multi '-multi -exec' \
		'-multi -rename -zscore' -lset -linsert; do
		redis flushall >/dev/null
		# Several words.
		# shellcheck disable=SC2086
		redis acl setuser old reset on '>pw' '~*' '&*' +@all $deny \
			>/dev/null
		"$BUILD/mq-publish" q <"$T/large"
		as_old mq-consume --idle 100ms q -- \
			sh -c 'echo resend 1000 >&3' || true
		if [ "$deny" = '-del -zrem' ]; then
			assert_equal "$(held q)" "1 0 0 0"
			payload ready
		else
			assert_equal "$(held q)" "0 1 0 0"
			payload delayed
		fi
		no_traces
		redis flushall >/dev/null
		if as_old mq-publish -d 1h q <"$T/large"; then
			assert_equal "$(held q)" "0 1 0 0"
			payload delayed
		else
			assert_equal "$(held q)" "0 0 0 0"
		fi
		no_traces
	done
	redis acl deluser old >/dev/null
}

@test "large: published with a wish, without the rights to do so in one piece" {
	local deny wish

	for deny in -multi -exec '-multi -rename' '-multi -linsert -lrem' \
		'-multi -zadd'; do
		# Several words.
		# shellcheck disable=SC2086
		redis acl setuser old reset on '>pw' '~*' '&*' +@all $deny \
			>/dev/null
		for wish in '-e 1h' '-d 1h' '-p 5'; do
			redis flushall >/dev/null
			# shellcheck disable=SC2086
			if as_old mq-publish $wish q <"$T/large"; then
				"$BUILD/mq-return" -q --from delayed q || true
				run_mq 0 mq-consume -n 1 q -- cmp - "$T/large"
			else
				assert_equal "$deny" '-multi -zadd'
				assert_equal "$(held q)" "0 0 0 0"
				assert_equal "$(redis zcard \
					'rmq::queue::[q]::priority')" 0
			fi
			no_traces
		done
	done
	redis acl deluser old >/dev/null
}

@test "large: returned or due, without the rights to do so in one piece" {
	redis acl setuser old reset on '>pw' '~*' '&*' +@all -multi >/dev/null
	"$BUILD/mq-publish" q <"$T/large"
	run_mq 0 mq-consume -n 1 q -- false
	run as_old mq-return q
	assert_success
	assert_output "1 message returned"
	payload ready
	redis flushall >/dev/null
	redis acl setuser old reset on '>pw' '~*' '&*' +@all -zremrangebyrank \
		>/dev/null
	"$BUILD/mq-publish" -d 1h q <"$T/large"
	redis --raw zrange 'rmq::queue::[q]::delayed' 0 0 | head -c -1 |
		redis -x zadd 'rmq::queue::[q]::delayed' 1 >/dev/null
	as_old mq-clean || true
	assert_equal "$(held q)" "0 1 0 0"
	redis acl deluser old >/dev/null
}

@test "large: not faster than the rate" {
	local i

	for i in 1 2 3; do
		"$BUILD/mq-publish" q <"$T/large"
	done
	run_mq 0 mq-consume --rate-shared 5/s -n 3 q -- cmp - "$T/large"
	assert_equal "$(held q)" "0 0 0 0"
	no_traces
}

# payload STATE: that of the message is the one that was sent.
payload() {
	element q "$1" | tail -n +2 | head -c 3000000 | cmp - "$T/large"
}

# element adds a line end.
length_of() {
	element q "$1" | tail -n +2 | wc -c
}

# settled_apart N: so many settlements have been done without the payload in a script.
settled_apart() {
	steps linsert "$1"
	no_traces
}

@test "large: rejected, and returned in front, to the end, to another queue" {
	"$BUILD/mq-publish" -H 'A: b' q <"$T/large"
	run_mq 0 mq-consume -n 1 q -- sh -c 'echo err a reason >&3'
	assert_equal "$(held q)" "0 0 0 1"
	settled_apart 1
	assert_equal "$(element q rejected | header Mq-Error)" "a reason"
	assert_equal "$(element q rejected | header A)" b
	payload rejected
	assert_equal "$(length_of rejected)" 3000001

	"$BUILD/mq-return" -q q
	"$BUILD/mq-publish" q other
	run_mq 0 mq-consume -n 1 q -- sh -c 'echo resend >&3'
	assert_equal "$(held q)" "2 0 0 0"
	settled_apart 3
	assert_equal "$(element q ready | header Mq-Attempt)" 1
	payload ready
	run_mq 0 mq-consume -n 1 q
	assert_output other
	"$BUILD/mq-consume" q -- sh -c 'exit 127' || true
	assert_equal "$(held q)" "1 0 0 0"
	settled_apart 4
	payload ready
	run_mq 0 mq-consume -n 1 --push other q -- sh -c 'echo push >&3'
	assert_equal "$(held q)" "0 0 0 0"
	assert_equal "$(held other)" "1 0 0 0"
	run_mq 0 mq-consume -n 1 other -- cmp - "$T/large"
	no_traces
}

@test "large: retried after a delay" {
	local before after

	"$BUILD/mq-publish" q <"$T/large"
	"$BUILD/mq-publish" -d 1h q other
	before=$(date +%s%3N)
	run_mq 0 mq-consume -n 1 q -- sh -c 'echo resend 1000 >&3'
	after=$(date +%s%3N)
	assert_equal "$(held q)" "0 2 0 0"
	settled_apart 0
	steps rename 6
	run redis --raw zrange 'rmq::queue::[q]::delayed' 0 0 withscores
	assert [ "${lines[-1]}" -ge $((before + 1000000)) ]
	assert [ "${lines[-1]}" -le $((after + 1000000)) ]
	assert_equal "$(element q delayed | header Mq-Attempt)" 1
	payload delayed
	run_mq 0 mq-return -q --from delayed -n 1 q
	run_mq 0 mq-consume -n 1 q -- cmp - "$T/large"
	assert_equal "$(held q)" "0 1 0 0"
}

@test "large: several at once, equal ones, in any order, none lost or doubled" {
	local i

	for i in 1 2 3 4 5 6; do
		"$BUILD/mq-publish" -H "N: $i" q <"$T/large"
		"$BUILD/mq-publish" --raw q <"$T/large"
		"$BUILD/mq-publish" q small
	done
	# Every other run fails, and the last ones end first.
	script judge <<-'END'
		sleep 0.$((RANDOM % 3))
		[ $(($(date +%N | cut -c 9) % 2)) = 0 ] && exit 0
		echo resend >&3
	END
	sed -i '1s/sh/bash/' "$T/judge"
	run_mq 0 mq-consume --drain -j 4 --attempts 1000 q -- "$T/judge"
	assert_equal "$(held q)" "0 0 0 0"
	steps linsert 0 -gt
	no_traces

	for i in 1 2 3 4; do
		"$BUILD/mq-publish" -H "N: $i" q <"$T/large"
		"$BUILD/mq-publish" --raw q <"$T/large"
	done
	run_mq 0 mq-consume --drain -j 4 --attempts 1 q -- false
	assert_equal "$(held q)" "0 0 0 8"
	for i in 0 1 2 3 4 5 6 7; do
		element q rejected $i | header N
		echo
	done | sort | tr -d '\n' >"$T/got"
	assert_equal "$(cat "$T/got")" 1234
}

@test "large: a target that holds something else gets nothing" {
	"$BUILD/mq-publish" q <"$T/large"
	redis set 'rmq::queue::[q]::rejected' x >/dev/null
	"$BUILD/mq-consume" -n 1 --attempts 1 q -- false 2>"$T/err" || true
	assert_equal "$(redis llen 'rmq::queue::[q]::ready')" 1
	payload ready
	assert_equal "$(redis get 'rmq::queue::[q]::rejected')" x
	no_traces
}

@test "large: what somebody has taken away is not rejected" {
	"$BUILD/mq-publish" q <"$T/large"
	start_mq mq-consume --no-clean -n 1 q -- sleep 100
	eventually 10 held_is q "0 0 1 0"
	stop_mq KILL
	"$BUILD/mq-publish" q <"$T/large"
	script steal <<-END
		redis-cli $(redis_at) eval 'for _, k in ipairs(
			redis.call("keys", "*::unacked")) do redis.call("del", k) end' 0
		exit 1
	END
	redis del "rmq::connection::$(connections)::heartbeat" >/dev/null
	run_mq 0 mq-clean
	run_mq 0 mq-consume -n 1 --attempts 1 q -- "$T/steal"
	[[ $stderr == *'lease lost'* ]]
	assert_equal "$(held q)" "1 0 0 0"
	no_traces
}

@test "large: returned, its attempts begin anew" {
	local i

	for i in 1 2; do
		"$BUILD/mq-publish" q <"$T/large"
		run_mq 0 mq-consume -n 1 q -- sh -c 'echo resend >&3'
		run_mq 0 mq-consume -n 1 q -- false
		"$BUILD/mq-publish" q small
		run_mq 0 mq-consume -n 1 q -- false
	done
	redis -x lpush 'rmq::queue::[q]::rejected' <"$T/large" >/dev/null
	assert_equal "$(held q)" "0 0 0 5"
	redis config resetstat >/dev/null
	run_mq 0 mq-return q
	assert_output '5 messages returned'
	assert_equal "$(held q)" "5 0 0 0"
	# No script has read those that came first in their step.
	steps linsert 2 -ge
	assert_equal "$(element q ready -1 | header Mq-Attempt)" 0
	[[ $(element q ready -1 | header Mq-Error) == 'exit status 1' ]]
	for i in 1 2; do
		run_mq 0 mq-consume -n 1 q -- cmp - "$T/large"
		run_mq 0 mq-consume -n 1 q
		assert_output small
	done
	run_mq 0 mq-consume -n 1 q -- cmp - "$T/large"
	assert_equal "$(held q)" "0 0 0 0"
}

@test "large: one that asks for more is returned as any other" {
	"$BUILD/mq-publish" -p 5 q <"$T/large"
	run_mq 0 mq-consume -n 1 q -- false
	run_mq 0 mq-return q
	assert_equal "$(redis zcard 'rmq::queue::[q]::priority')" 1
	run_mq 0 mq-consume -n 1 q -- cmp - "$T/large"
}

@test "large: a cleaner makes it ready when it is due" {
	"$BUILD/mq-publish" -d 1ms q <"$T/large"
	"$BUILD/mq-publish" -d 1ms q small
	"$BUILD/mq-publish" -d 1h q later
	redis config resetstat >/dev/null
	run_mq 0 mq-clean
	assert_equal "$(held q)" "2 1 0 0"
	steps linsert 1
	run_mq 0 mq-consume -n 1 q -- cmp - "$T/large"
	run_mq 0 mq-consume -n 1 q
	assert_output small
}

@test "large: published with a wish" {
	"$BUILD/mq-publish" -k a q <"$T/large"
	steps linsert 1
	run_mq 1 mq-publish -k a q <"$T/large"
	assert_equal "$(held q)" "1 0 0 0"
	run_mq 75 mq-publish --max-length 1 q <"$T/large"
	assert_equal "$(held q)" "1 0 0 0"
	"$BUILD/mq-publish" -e 1h -H 'A: b' q <"$T/large"
	payload ready
	assert_equal "$(element q ready | header A)" b
	run_mq 0 mq-consume -n 1 q -- cmp - "$T/large"
	run_mq 0 mq-consume -n 1 q -- cmp - "$T/large"
	assert_equal "$(held q)" "0 0 0 0"
	# Its key is free again.
	"$BUILD/mq-publish" -k a q small
	assert_equal "$(held q)" "1 0 0 0"
	no_traces
}

@test "large: published with a delay" {
	local before after

	"$BUILD/mq-publish" -d 2h q other
	redis script flush >/dev/null
	before=$(date +%s%3N)
	"$BUILD/mq-publish" -d 1h q <"$T/large"
	after=$(date +%s%3N)
	# No script reads it.
	assert_equal "$(calls rename)" ""
	assert_equal "$(held q)" "0 2 0 0"
	payload delayed
	run redis --raw zrange 'rmq::queue::[q]::delayed' 0 0 withscores
	assert [ "${lines[-1]}" -ge $((before + 3600000 - 10)) ]
	assert [ "${lines[-1]}" -le $((after + 3600000)) ]
	run_mq 0 mq-purge --force --delayed -n 1 q
	"$BUILD/mq-publish" -d 1h -e 9h q <"$T/large"
	steps rename 3
	payload delayed
	# A key that is taken; a time that is over; first, and last.
	"$BUILD/mq-publish" -k a -d 1h q <"$T/large"
	run_mq 1 mq-publish -k a -d 1h q <"$T/large"
	assert_equal "$(held q)" "0 3 0 0"
	"$BUILD/mq-publish" --at @1 q <"$T/large"
	assert_equal "$(held q)" "1 3 0 0"
	payload ready
	run_mq 0 mq-return -q --from delayed -n 1 q
	run_mq 0 mq-consume -n 1 q -- cmp - "$T/large"
	run_mq 0 mq-consume -n 1 q -- cmp - "$T/large"
	no_traces
}

@test "large: published with other wishes, it is where they lead" {
	local i

	"$BUILD/mq-publish" -p 5 q before
	"$BUILD/mq-publish" -p 5 -e 9h q <"$T/large"
	"$BUILD/mq-publish" -p 5 q behind
	assert_equal "$(redis zcard 'rmq::queue::[q]::priority')" 3
	steps rename 3 # one of them tries its right
	"$BUILD/mq-publish" -p -5 q last
	"$BUILD/mq-publish" -p -5 -e 9h q <"$T/large"
	"$BUILD/mq-publish" -p 6 -d 1h -e 9h q <"$T/large"
	assert_equal "$(redis zcard 'rmq::queue::[q]::priority')" 5
	assert_equal "$(held q)" "0 1 0 0"
	steps rename 9
	# No script reads these.
	"$BUILD/mq-publish" -p 7 q <"$T/large"
	"$BUILD/mq-publish" --from-tick 0 q <"$T/large"
	steps rename 9
	run_mq 0 mq-return -q --from delayed q
	"$BUILD/mq-consume" --drain --netstring q >"$T/got"
	{
		for i in 3000000 3000000 3000000 before 3000000 behind last 3000000; do
			if [ "$i" = 3000000 ]; then
				printf '3000000:'
				cat "$T/large"
			else
				printf '%d:%s' ${#i} "$i"
			fi
			printf ,
		done
	} >"$T/want"
	cmp "$T/got" "$T/want"
	run_mq 75 mq-publish -p 5 --max-length 0 q <"$T/large"
	"$BUILD/mq-publish" -g a q <"$T/large"
	"$BUILD/mq-publish" -g a q <"$T/large"
	assert_equal "$(held q)" "1 1 0 0"
	run_mq 0 mq-consume --drain q -- cmp - "$T/large"
	assert_equal "$(held q)" "0 0 0 0"
	no_traces
}

# due_soon FILE: publishes it with a delay that is over at once, in its turn.
due_soon() {
	"$BUILD/mq-publish" -d 1ms q <"$1"
}

@test "large: due, a claim makes it ready, and leaves it to the next one" {
	due_soon "$T/large"
	"$BUILD/mq-publish" q small
	due_soon "$T/large"
	"$BUILD/mq-publish" -d 1h q later
	redis config resetstat >/dev/null
	run_mq 0 mq-consume -n 1 --no-clean q
	assert_output small
	steps linsert 1
	run_mq 0 mq-consume -n 1 --no-clean q -- cmp - "$T/large"
	run_mq 0 mq-consume -n 1 --no-clean q -- cmp - "$T/large"
	steps linsert 2
	assert_equal "$(held q)" "0 1 0 0"
	no_traces
}

@test "large: due, and asking for more, it is where that leads" {
	"$BUILD/mq-publish" -p 5 -d 1ms q <"$T/large"
	"$BUILD/mq-publish" -k a -d 1ms q <"$T/large"
	"$BUILD/mq-publish" -g a -d 1ms q <"$T/large"
	run_mq 0 mq-consume -n 3 --no-clean q -- cmp - "$T/large"
	assert_equal "$(held q)" "0 0 0 0"
	no_traces
}

@test "large: while it waits, no claim reads it" {
	local word

	"$BUILD/mq-publish" -d 3s q <"$T/large"
	redis config resetstat >/dev/null
	for word in 1 2 3; do
		"$BUILD/mq-publish" q $word
		run_mq 0 mq-consume -n 1 --no-clean q
		assert_output $word
	done
	assert_equal "$(calls zrangebyscore)" ''
	assert_equal "$(redis exists 'rmq::queue::[q]::large')" 1
	# Nobody has told the next claim that it is large.
	redis del 'rmq::queue::[q]::large' >/dev/null
	"$BUILD/mq-publish" q 4
	run_mq 0 mq-consume -n 1 --no-clean q
	assert_equal "$(redis exists 'rmq::queue::[q]::large')" 1
	run_mq 0 mq-consume -n 1 --no-clean q -- cmp - "$T/large"
	steps linsert 1
	assert_equal "$(held q)" "0 0 0 0"
}

@test "large: due, without the rights to make it ready in one piece" {
	local deny

	for deny in -watch -linsert -multi -exec '-memory|usage' \
		'-watch -multi' -rename; do
		# Several words.
		# shellcheck disable=SC2086
		redis acl setuser old reset on '>pw' '~*' '&*' +@all $deny \
			>/dev/null
		due_soon "$T/large"
		due_soon "$T/large"
		MQ_URL=$(url_as old:pw) run_mq 0 mq-consume -n 2 \
			--no-clean q -- cmp - "$T/large"
		assert_equal "$(held q)" "0 0 0 0"
		no_traces
	done
	redis acl deluser old >/dev/null
}

@test "large: due, and the consumer killed at any time: none is lost" {
	local i

	for i in 1 2 3 4 5 6; do
		"$BUILD/mq-publish" -H "N: $i" -d 1ms q <"$T/large"
	done
	for i in 1 2 3 4 5 6 7 8 9 10; do
		timeout -s KILL 0.0$((RANDOM % 90 + 10)) \
			"$BUILD/mq-consume" --no-clean --attempts 1000 q -- \
			sleep 100 || true
		for c in $(connections); do
			redis del "rmq::connection::${c}::heartbeat" >/dev/null
		done
		"$BUILD/mq-clean" -q
	done
	no_traces
	"$BUILD/mq-consume" --drain --attempts 1000 q -- sh -c \
		'cmp - "$T/large" && echo "$MQ_HEADER_N"' | sort >"$T/got"
	assert_equal "$(tr -d '\n' <"$T/got")" 123456
	assert_equal "$(held q)" "0 0 0 0"
}

@test "large: what is rejected is the one that has left unacked" {
	local i list

	for i in 1 2 3; do
		"$BUILD/mq-publish" -H "N: $i" q <"$T/large"
	done
	script judge <<-'END'
		[ "$MQ_HEADER_N" != 2 ] && exec sleep 100
		until [ -e "$T/go" ]; do sleep 0.05; done
		exit 1
	END
	start_mq mq-consume -j 3 --attempts 1 --grace 0 q -- "$T/judge"
	eventually 20 held_is q "0 0 3 0"
	redis config resetstat >/dev/null
	touch "$T/go"
	eventually 20 held_is q "0 0 2 1"
	list=rmq::connection::$(connections)::queue::[q]::unacked
	assert_equal "$(redis lindex "$list" 0 | header N)" 3
	assert_equal "$(redis lindex "$list" 1 | header N)" 1
	assert_equal "$(element q rejected | header N)" 2
	steps lset 1
	stop_mq
}
