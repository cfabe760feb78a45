# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# layouts: rmq rsmq
# The names of queues on the command line: new ones, mistyped ones, those that a
# user may not use, and a command with no "--" before it.

# run_mq sets output and stderr; each test is a subshell of its own.
# shellcheck disable=SC2030,SC2031,SC2034,SC2086,SC2154

load ../helpers/server
load ../helpers/wire

: "${LAYOUT:=rmq}"

setup() {
	load "../helpers/layout-$LAYOUT"
	export MQ_LAYOUT=$LAYOUT
	common_setup
	cd "$T" || return
}

teardown() {
	cd / || return
	common_teardown
}

# The names of all queues, in a line.
queues() {
	local key=rmq::queues
	[ "$LAYOUT" = rmq ] || key=rsmq:QUEUES
	redis smembers $key | sort | xargs
}

other_layout() {
	if [ "$LAYOUT" = rmq ]; then echo rsmq; else echo rmq; fi
}

# terminal COMMAND...: what it writes to a terminal, stderr included.
terminal() {
	WIDTH=200 on_terminal '' "$@" </dev/null | tr -d '\r'
}

# --- a forgotten "--" ------------------------------------------------------------

@test "operands: a command among the queues is refused, and told how it was meant" {
	local line
	script worker.sh <<<cat
	echo >text
	run_mq 0 mq-publish jobs a b
	while IFS='|' read -r given meant; do
		eval "run_mq 64 mq-consume --drain $given"
		assert_equal "$stderr" "mq-consume: $(eval "printf '%s\n' $given" | sed -n "${meant%% *}p"): a command, not a queue; put -- before it: $BUILD/mq-consume --drain ${meant#* }"
	done <<-'END'
		jobs ./worker.sh|2 jobs -- ./worker.sh
		jobs gzip -l|2 jobs -- gzip -l
		-l jobs gzip 'a b'|3 -l jobs -- gzip 'a b'
		jobs 'gzip -9'|2 jobs -- 'gzip -9'
		jobs worker.sh|2 jobs -- ./worker.sh
		jobs 'worker.sh -9'|2 jobs -- './worker.sh -9'
		jobs ./text|2 jobs -- ./text
		jobs ../none|2 jobs -- ../none
		jobs /no/such/file|2 jobs -- /no/such/file
	END
	# The queues come first.
	for given in ./worker.sh './worker.sh jobs'; do
		eval "run_mq 64 mq-consume --drain $given"
		[ "$LAYOUT" = rsmq ] ||
			assert_equal "$stderr" "mq-consume: ./worker.sh: a command, not a queue; write QUEUE -- COMMAND"
	done
	# Text that would drive a terminal does not.
	run_mq 64 mq-consume --drain jobs $'./\e[2J'
	assert_equal "$stderr" "mq-consume: ./\\033[2J: a command, not a queue; put -- before it: $BUILD/mq-consume --drain jobs -- './\\033[2J'"
	run_mq 0 mq-stats --list ready jobs
	assert_equal "$(held jobs)" "2 0 0 0"
	assert_equal "$(queues)" jobs
	run_mq 0 mq-consume --drain jobs -- ./worker.sh
	assert_equal "$(held jobs)" "0 0 0 0"
}

@test "operands: queues that have the names of commands" {
	script worker <<<cat
	run_mq 0 mq-publish jobs a
	run_mq 0 mq-publish ls b
	prints $'a\nb' mq-consume -l --drain jobs ls
	# The first one is a queue, and what has no file of its name.
	run_mq 0 mq-consume --drain sort
	run_mq 0 mq-consume --drain jobs unheard-of
	# With a command, no other can be meant.
	run_mq 0 mq-consume --drain jobs gzip -- cat
	[ "$LAYOUT" = rmq ] || return 0
	# A queue that an earlier slip has left is no better than the next one.
	redis sadd rmq::queues ./worker /jobs >/dev/null
	run_mq 64 mq-consume --drain jobs ./worker
	run_mq 0 mq-consume --drain jobs /jobs
}

@test "operands: on a terminal, lines, and a hint" {
	run_mq 0 mq-publish jobs a b c d
	run terminal "$BUILD/mq-consume" -n 2 jobs
	short_names
	assert_output "mq-consume: messages printed here are removed from the queue; to keep them, use mq-stats --list ready QUEUE
a
b"
	run terminal "$BUILD/mq-consume" -q -0 -n 2 jobs
	assert_output 'c\0d\0'
	run_mq 0 mq-publish jobs a b
	prints ab mq-consume -n 2 jobs
	refute [ -n "$stderr" ]
	run_mq 0 mq-publish jobs a
	run terminal "$BUILD/mq-consume" -n 1 jobs -- cat
	assert_output a
}

# --- queues that there are not -------------------------------------------------------

@test "operands: a queue that there is not yet is told of once" {
	run_mq 0 mq-consume --drain typo
	assert_equal "$stderr" "mq-consume: typo: no such queue"
	run_mq 1 mq-lease --for 1m --jsonl typo
	assert_equal "$stderr" "mq-lease: typo: no such queue"
	assert_equal "$(queues)" ""
	run_mq 0 mq-consume -q --drain typo
	refute [ -n "$stderr" ]
	start_mq mq-consume -v -l -n 1 a b
	eventually 10 grep -q "mq-consume: \({rsmq}:\)*a: no such queue yet; waiting for it" "$T/err"
	eventually 10 eval '[ -n "$(connections)" ]'
	run_mq 0 mq-publish b 1
	wait "$pid"
	assert_equal "$(<"$T/out")" 1
	assert_equal "$(grep -c "no such queue yet" "$T/err")" 2
	assert_equal "$(queues)" "a b"
	run_mq 0 mq-publish a 1
	run_mq 0 mq-consume -v --drain --push later a -- sh -c 'echo push >&3'
	assert_equal "${stderr_lines[0]}" "mq-consume: later: no such queue yet; --push creates it"
	assert_equal "$(queues)" "a b later"
	assert_equal "$(held later)" "1 0 0 0"
	run_mq 0 mq-consume --drain --push later a -- cat
	refute [ -n "$stderr" ]
}

@test "operands: a queue with messages that is in no list is not unknown" {
	run_mq 0 mq-publish -d 1h q x
	redis srem rmq::queues q >/dev/null
	redis srem rsmq:QUEUES q >/dev/null
	run_mq 0 mq-consume --existing --drain q
	refute [ -n "$stderr" ]
	assert_equal "$(queues)" q
}

@test "operands: who makes a queue is told, if there is a person" {
	run_mq 0 mq-publish a 1
	refute [ -n "$stderr" ]
	run_mq 0 mq-publish -v b 1
	assert_equal "${stderr_lines[0]}" "mq-publish: b: made a new queue"
	if [ "${TOPOLOGY-}" != cluster ]; then
		run terminal "$BUILD/mq-publish" b 1
		assert_output --partial ": what this server loses is lost; mq-stats --server says how to keep it"
		redis config set appendonly yes >/dev/null
	fi
	run terminal "$BUILD/mq-publish" c 1
	short_names
	assert_output "mq-publish: c: made a new queue"
	run terminal "$BUILD/mq-publish" c 2
	refute_output
	run terminal "$BUILD/mq-publish" -q d 1
	refute_output
	run terminal "$BUILD/mq-publish" -d 1h e 1
	short_names
	assert_output "mq-publish: e: made a new queue"
	run terminal "$BUILD/mq-return" --from delayed --to f e
	short_names
	assert_line "mq-return: f: made a new queue"
	assert_equal "$(queues)" "a b c d e f"
}

# noted NAME LINE: whoever makes that queue says so, although nobody looks; LINE is the
# rest of it, or empty.
noted() {
	run_mq 0 mq-publish "$1" x
	assert_equal "$stderr" "${2:+mq-publish: $1: made a new queue; did you mean $2?}"
}

@test "operands: a name that is one slip away is noted, and no other" {
	run_mq 0 mq-publish --new mails x
	noted mials mails
	noted mail ""
	noted smails mails
	noted maiLs mails
	noted letters-7 ""
	noted letters-8 ""
	noted letters-17 ""
	noted letters-71 ""
	noted letter-17 letters-17
	noted other ""
	noted lsiam ""
	redis flushall >/dev/null
	run_mq 0 mq-publish --new mails x
	run_mq 0 mq-publish --new mailz x
	refute [ -n "$stderr" ]
	run_mq 0 mq-publish -q mailx x
	refute [ -n "$stderr" ]
	redis flushall >/dev/null
	run_mq 0 mq-publish --new mails x
	run_mq 1 mq-stats mailz
	assert_equal "$stderr" "mq-stats: mailz: no such queue; did you mean mails?"
	run_mq 1 mq-consume -q -n 1 --attempts 1 mails -- false
	run_mq 0 mq-return --to mailz mails
	assert_regex "$stderr" "mq-return: mailz: made a new queue; did you mean mails?"
	redis flushall >/dev/null
	run_mq 0 mq-publish --new mails x
	start_mq mq-consume -n 1 mialz mailz
	eventually 10 grep -q 'mailz: no such queue yet; waiting for it; did you mean mails?' "$T/err"
	stop_mq
	refute grep -q mialz "$T/err"
}

@test "operands: --existing and --new: the same in all tools" {
	local tool

	for tool in "mq-publish q x" "mq-consume --drain q" "mq-lease --for 1m q" \
		"mq-set q attempts=3" "mq-return q"; do
		run_mq 64 ${tool%% *} --existing --new ${tool#* }
		assert_regex "$stderr" "--existing and --new cannot be used together"
	done
	run_mq 0 mq-publish --new q x
	run_mq 1 mq-return --existing --to typo q
	assert_equal "$stderr" "mq-return: typo: no such queue"
	run_mq 1 mq-set --existing q push=typo
	assert_equal "$stderr" "mq-set: typo: no such queue"
	run_mq 1 mq-set r attempts=3
	run_mq 0 mq-set --create r attempts=3
	run_mq 0 mq-set --new s attempts=3 push=q
	assert_equal "$(queues)" "q r s"
}

@test "operands: --existing makes nothing, and takes nothing" {
	local args
	run_mq 0 mq-publish q 1 2
	redis --raw keys '*' | sort >"$T/before"
	while read -r args; do
		eval "run_mq 1 $args </dev/null"
		assert_regex "$stderr" '^mq-[a-z]*: typo: no such queue$'
		refute [ -n "$output" ]
	done <<-'END'
		mq-publish --existing typo x
		mq-publish --existing -d 1h typo x
		mq-publish --existing -l typo
		mq-consume --existing typo
		mq-consume --existing -l --drain q typo
		mq-consume --existing q typo -- cat
		mq-consume --existing --push typo q -- cat
		mq-lease --existing --for 1m --jsonl typo
	END
	redis --raw keys '*' | sort | diff "$T/before" -
	run_mq 0 mq-publish --existing q 3
	prints $'1\n2\n3' mq-consume --existing -l --drain q
}

@test "operands: a queue of the other layout" {
	no_cluster "only one of them can be there"
	local tool there="no such queue; the layout $(other_layout) has a queue of that name (-L $(other_layout))"
	MQ_LAYOUT=$(other_layout) run_mq 0 mq-publish q 1
	for tool in mq-stats "mq-stats --json" "mq-stats --list ready" "mq-stats --reasons" "mq-stats --running" \
		"mq-pause" "mq-return" "mq-purge --force --all" "mq-publish --existing" \
		"mq-consume --existing" "mq-lease --for 1m"; do
		run_mq 1 $tool q
		assert_equal "$stderr" "${tool%% *}: q: $there"
	done
	run_mq 3 mq-stats --check ready=1 q
	assert_output --partial "q: $there"
	run_mq 0 mq-consume --drain q
	assert_equal "$stderr" "mq-consume: q: $there"
	run_mq 0 mq-publish -v q 1
	assert_equal "${stderr_lines[0]}" \
		"mq-publish: q: made a new queue; the layout $(other_layout) has a queue of that name (-L $(other_layout))"
}

# --- who may not ---------------------------------------------------------------------

@test "operands: what is not permitted leaves nothing" {
	local args tool rules=()
	for tool in mq-publish mq-consume mq-return; do
		read -ra more < <("$BUILD/$tool" --print-acl q)
		rules+=("${more[@]}")
	done
	redis acl setuser app reset on '>pw' "${rules[@]}" >/dev/null
	run_mq 0 mq-publish q 1 2
	run_mq 0 mq-publish -d 1h q 3
	redis --raw keys '*' | sort >"$T/before"
	export MQ_URL=$(url_as app:pw)
	while read -r args; do
		[[ $args != *--tick* || $LAYOUT = rmq ]] || continue
		eval "run_mq 77 $args"
		assert_regex "$stderr" '^mq-(return|[a-z]*: typo): .*NOPERM.*; --print-acl prints the rights needed'
	done <<-'END'
		mq-publish typo x
		mq-publish -d 1h typo x
		mq-publish -p 5 typo x
		mq-publish --existing typo x
		mq-publish --tick 4 typo
		mq-consume typo
		mq-consume --drain typo q
		mq-consume --drain q typo -- cat
		mq-consume --push typo q -- cat
		mq-consume --batch 2 typo -- cat
		mq-lease --for 1m --jsonl typo
		mq-consume --at-most-once typo
		mq-return --to typo --from delayed q
	END
	redis --raw keys '*' | sort | diff "$T/before" -
	assert_equal "$(queues)" q
	assert_equal "$(held q)" "2 1 0 0"
	run_mq 0 mq-consume --drain q -- cat
	redis acl deluser app >/dev/null
	MQ_URL=$(url_as) run_mq 0 mq-purge --force --delete-queue q
}

@test "operands: nor does a command that is not permitted" {
	local lacks

	[[ $(redis-server --version) != *v=6.* ]] || skip "Redis 6.2 cannot tell what is permitted"
	run_mq 0 mq-publish q 1
	redis --raw keys '*' | sort >"$T/before"
	export MQ_URL=$(url_as app:pw)
	for lacks in sadd hset zadd evalsha; do
		redis acl setuser app reset on '>pw' '~*' '&*' +@all "-$lacks" >/dev/null
		run_mq 77 mq-consume --drain q new -- cat
		[ "$lacks" = hset ] || run_mq 77 mq-publish -p 3 new x
		[ "$lacks" = hset ] || run_mq 77 mq-publish -d 1h new x
		redis --raw keys '*' | sort | diff "$T/before" -
	done
	# Plain messages need no scripts.
	redis acl setuser app reset on '>pw' '~*' '&*' +@all -@scripting >/dev/null
	[ "$LAYOUT" = rsmq ] || run_mq 0 mq-publish new x
}

# --- what is no queue ------------------------------------------------------------------

# The keys of queue p or q with which a message can have to do.
keys_of() {
	if [ "$LAYOUT" = rmq ]; then
		printf "rmq::queue::[$1]::%s\n" ready priority delayed locks "${@:2}"
	else
		printf "rsmq:$1%s\n" '' :X "${@:2}"
	fi
}

rejected_key() {
	if [ "$LAYOUT" = rmq ]; then echo rejected; else echo -rejected; fi
}

@test "operands: a key that holds something else: 76 with its name, before all" {
	no_cluster "its messages name one server"
	local key
	run_mq 0 mq-publish later x
	run_mq 0 mq-consume -n 1 later
	while read -r key; do
		redis set "$key" x >/dev/null
		for args in 'consume --push later q -- cat' 'consume --drain q later' \
			'consume --drain later q -- cat' 'lease --for 1m --jsonl later'; do
			run_mq 76 mq-$args
			assert_equal "${stderr_lines[-1]}" "mq-${args%% *}: later: $MQ_URL: WRONGTYPE the key $key holds something else"
		done
		assert_equal "$(queues) $(connections)" "later "
		redis del "$key" >/dev/null
	done < <(keys_of later)
	redis set "$(keys_of new | head -n 1)" x >/dev/null
	run_mq 76 mq-publish new x
	run_mq 76 mq-publish -d 1h new x
	run_mq 76 mq-publish -p 3 new x
	assert_equal "$(queues)" later
	key=$(keys_of later "$(rejected_key)" | tail -n 1)
	redis set "$key" x >/dev/null
	run_mq 76 mq-consume --drain later
	assert_output ""
	assert_regex "$stderr" "WRONGTYPE the key .*$(rejected_key) holds something else"
}

# start_worker VERDICT OPTION...: a consumer of q whose script says that it runs, and ends so
# when it may go.
start_worker() {
	start_mq mq-consume "${@:2}" q -- sh -c "echo x >>'$T/runs'
		until [ -e '$T/go' ]; do sleep 0.05; done; $1"
	eventually 10 test -e "$T/runs"
}

# turns KEY VERDICT [OPTION...]: the key turns into something else while the
# message, published with the options, runs; then it is not.
turns() {
	local key=$1 verdict=$2
	run_mq 0 mq-publish "${@:3}" q x
	start_worker "$verdict" --backoff 1h..1h --push p
	redis set "$key" x >/dev/null
	touch "$T/go"
	ends_with 76
	assert_equal "$(grep -c "^mq-consume: \({rsmq}:\)*q: .*: returned: a key of .* has the wrong type" "$T/err")" 1
	refute grep -q 'trying again' "$T/err"
	redis del "$key" >/dev/null
	assert_equal "$(held q) $(connections)" "1 0 0 0 "
	rm "$T/go" "$T/runs"
	run_mq 0 mq-consume -n 1 q
}

# waits KEY: a push to a queue on another node is on its way until the key is what it
# was.
waits() {
	run_mq 0 mq-publish q x
	start_worker 'echo push >&3' --push p
	redis set "$1" x >/dev/null
	touch "$T/go"
	eventually 10 grep -q "^mq-consume: .*WRONGTYPE" "$T/err"
	redis del "$1" >/dev/null
	eventually 10 held_is p "1 0 0 0"
	assert_equal "$(grep -c WRONGTYPE "$T/err")" 1
	stop_mq
	rm "$T/go" "$T/runs"
	prints x mq-consume -n 1 p
}

@test "operands: a key that becomes something else: the message goes back, 76" {
	local key
	run_mq 0 mq-publish p x
	run_mq 0 mq-consume -n 1 p
	while read -r key; do
		if [ "${TOPOLOGY-} $LAYOUT" = "cluster rmq" ]; then
			waits "$key"
			continue
		fi
		turns "$key" 'echo push >&3'
		# There was nothing, and nothing is left.
		assert_equal "$(held p)" "0 0 0 0"
	done < <(keys_of p)
	turns "$(keys_of q "$(rejected_key)" | tail -n 1)" 'exit 1'
	if [ "$LAYOUT" = rmq ]; then
		turns 'rmq::queue::[q]::delayed' 'exit 75'
		turns 'rmq::queue::[q]::delayed' 'exit 75' -k k
		turns 'rmq::queue::[q]::delayed' 'exit 75' -g g
	else
		turns rsmq:q:Xagain 'exit 75'
		turns rsmq:q:X 'exit 1'
	fi
}

@test "operands: nor does a clock that becomes something else leave half a push" {
	[ "$LAYOUT" = rmq ] || return 0
	no_cluster "a push is on its way there until the clock is one again"
	run_mq 0 mq-publish --tick 1 q
	run_mq 0 mq-publish -g a --from-tick 1 q x
	run_mq 76 mq-consume --push p q -- sh -c "redis-cli -s '$D/redis.sock' \
		rpush 'rmq::queue::[p]::clock' x >/dev/null; echo push >&3"
	assert_equal "$(redis keys 'rmq::queue::\[p]*')" 'rmq::queue::[p]::clock'
	redis del 'rmq::queue::[p]::clock' >/dev/null
	prints x mq-consume -n 1 q
}

@test "operands: what holds keys becomes something else: no ack is half done" {
	[ "$LAYOUT" = rmq ] || return 0
	local i locks='rmq::queue::[q]::locks'
	for i in {1..6}; do run_mq 0 mq-publish -k "k$i" -g "g$i" q x; done
	start_worker : -v --no-clean -j 6
	eventually 10 lines_reach "$T/runs" 6
	redis rename "$locks" "$locks.kept" >/dev/null
	redis set "$locks" x >/dev/null
	touch "$T/go"
	eventually 10 grep -q WRONGTYPE "$T/err"
	assert_equal "$(held q)" "0 0 6 0"
	redis rename "$locks.kept" "$locks" >/dev/null
	eventually 10 held_is q "0 0 0 0"
	stop_mq || true
	grep -q ' 6 done, .* 0 leases lost' "$T/err"
	run_mq 0 mq-publish -k k1 q x
}

@test "operands: the next of a group has nowhere to go: no ack is half done" {
	[ "$LAYOUT" = rmq ] || return 0
	local ready='rmq::queue::[q]::ready'
	run_mq 0 mq-publish -g g q one two
	start_worker : -v --no-clean
	redis set "$ready" x >/dev/null
	touch "$T/go"
	eventually 10 grep -q WRONGTYPE "$T/err"
	assert_equal "$(redis llen "$(redis --raw keys '*unacked')")" 1
	redis del "$ready" >/dev/null
	eventually 10 eval '[ "$(redis --raw keys "*unacked")" = "" ]'
	stop_mq || true
	grep -q ' [12] done, .* 0 leases lost' "$T/err"
}

@test "operands: a right that is lost for a while is told of once" {
	local turn told='trying again' unacked=1
	script work <<-'END'
		payload=$(cat)
		[ "$payload" != push ] || echo push >&3
		echo "$payload" >>"$T/runs"
	END
	run_mq 0 mq-publish p x
	run_mq 0 mq-consume -n 1 p
	redis acl setuser app reset on '>pw' '~*' '&*' +@all >/dev/null
	MQ_URL=$(url_as app:pw) start_mq mq-consume --no-clean --push p q -- "$T/work"
	run_mq 0 mq-publish q first
	eventually 10 grep -q first "$T/runs"
	redis acl setuser app resetkeys '~*\[q\]*' '~*{q}*' '~rmq::queues' '~rmq::connection*' \
		'~rsmq:q*' '~rsmq:QUEUES' '~rsmq::*' >/dev/null
	run_mq 0 mq-publish q push
	# On a cluster the message is on its way to the other queue.
	[ "${TOPOLOGY-} $LAYOUT" != "cluster rmq" ] ||
		told='not permitted' unacked=0
	eventually 10 grep -q "$told" "$T/err"
	for turn in 1 2 3; do
		run_mq 0 mq-publish q "more $turn"
		eventually 10 grep -q "more $turn" "$T/runs"
		tick
	done
	assert_equal "$(grep -c "$told" "$T/err")" 1
	assert_equal "$(held q)" "0 0 $unacked 0"
	redis acl setuser app '~*' >/dev/null
	eventually 10 held_is p "1 0 0 0"
	stop_mq
}
