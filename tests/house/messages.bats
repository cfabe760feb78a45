#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What each tool says when it is held wrong: one line, the exit status, nothing changed.
# topology: own

# Each test is a subshell of its own.
# shellcheck disable=SC2030,SC2031,SC2154
load ../helpers/server

setup() {
	common_setup
	export HOME=$T
	unset XDG_CONFIG_HOME
	cd "$T" || return
}

teardown() {
	cd / || return
	common_teardown
}

# How often somebody has connected.
connected() {
	redis info stats | grep -oE '^total_connections_received:[0-9]+' | cut -d: -f2
}

# Rows of an exit status, a command line, "=>" and what stands behind the tool's name on
# standard error; TOO_LONG is a word of 300 characters.  That mq-publish has accepted
# nothing is left out.  Where all end with 64, the server has not been asked.
shows() {
	local rows keys before
	rows=$(cat)
	run_mq 0 mq-publish -q q a
	keys=$(redis --raw keys '*' | sort)
	before=$(connected)
	PATH=$BUILD:$PATH run timeout 300 bash -c '
		printf -v long %0300d 0
		while read -r want row; do
			row=${row//TOO_LONG/$long}
			[[ $row =~ mq-[a-z]+ ]]
			tool=$BASH_REMATCH
			status=0
			told=$(eval "${row% => *}" 2>&1 </dev/null) || status=$?
			told=${told%$'\''\n'\''"mq-publish: 0 messages accepted"}
			[ "$status $told" = "$want $tool: ${row##* => }" ] ||
				echo "$row: $status, $told"
		done' <<<"$rows" 3>&-
	assert_output ''
	assert_success
	# This question is one, too.
	grep -qv '^64' <<<"$rows" || assert_equal "$(($(connected) - before))" 1
	assert_equal "$(redis --raw keys '*' | sort)" "$keys"
	assert [ ! -e w ]
	held_is q "1 0 0 0"
}

@test "messages: options of any tool" {
	shows <<-'.'
		64 mq-pause --nope q => --nope: unknown option (try --help)
		64 mq-pause -Z q => -Z: unknown option (try --help)
		64 mq-stats --url => --url: needs an argument (try --help)
		64 mq-publish -d => -d: needs an argument (try --help)
		64 mq-pause --resume=1 q => --resume: takes no argument (try --help)
		64 mq-publish --pr 1 q a => --pr: ambiguous: --priority or --print-acl
		64 mq-stats --help=some => --help: some: must be all, or left out
		64 mq-stats -L rabbit => -L: rabbit: must be rmq or rsmq
		64 mq-return -n x q => -n: x: must be a number, at least 1
		64 mq-publish -d soon q a => -d: soon: not a duration (500ms, 10s, 5m, 1h30m, 1d, 1w)
		64 mq-return --rate fast q => --rate: fast: not a rate such as 10, 10/s, 90/m or 5/h:20
	.
}

@test "messages: servers" {
	shows <<-'.'
		78 MQ_LAYOUT=rabbit mq-stats => MQ_LAYOUT: unknown layout rabbit; use rmq or rsmq
		78 mq-stats -u 'redis://h?layout=rabbit' => redis://h?layout=rabbit: unknown layout rabbit; use rmq or rsmq
		78 mq-stats -L rmq -u 'redis://h?ns=x' => redis://h?ns=x: the layout rmq has no namespaces; remove ns=
		78 mq-stats -u 'redis-cluster://h?layout=rsmq' => redis-cluster://h?layout=rsmq: on a cluster, the layout rsmq needs a namespace in braces; add ?ns={rsmq}
		78 mq-stats -u redis://h/x => server URL: database is not a number from 0 to 99999
		78 mq-stats -u 'rediss://h?sni=.test' => server URL: sni must be a host name
		78 env -u MQ_URL -u XDG_STATE_HOME HOME=state mq-stats => no home directory: set HOME or XDG_STATE_HOME to an absolute path
		78 mq-stats -u private:/dev/null => /dev/null: not a directory
		78 MQ_PASSWORD_FILE=/nonexistent mq-stats => MQ_PASSWORD_FILE: /nonexistent: No such file or directory
		78 MQ_PASSWORD_FILE=/dev/null mq-stats => MQ_PASSWORD_FILE: /dev/null: empty
		69 mq-stats -u redis://127.0.0.1:1 => redis://127.0.0.1:1: Connection refused
		78 mq-stats -u 'unix:///s?ns=a' => unix:///s?ns=a: the layout rmq has no namespaces; remove ns=
	.
}

@test "messages: queues" {
	shows <<-'.'
		64 mq-publish '' a => : a name must not be empty
		64 mq-publish 'a[b' a => a[b: a name must not contain [ ] { } or ::
		64 mq-publish $'a\n' a => a\n: a name must not contain control characters
		64 mq-publish TOO_LONGTOO_LONG a => TOO_LONGTOO_LONG: a name has at most 512 bytes
		64 mq-publish -L rsmq a.b a => a.b: a name in RSMQ has only letters, digits, _ and -
		64 mq-publish -L rsmq TOO_LONG a => TOO_LONG: a name has at most 151 bytes (with -rejected, 160)
		64 mq-publish -L rsmq QUEUES a => QUEUES: RSMQ reserves this name
		64 mq-stats -L rsmq a: => a:: a name must not be empty
		64 mq-stats -L rsmq ä => ä: a name in RSMQ has only letters, digits, _ and -
		1 mq-pause nothing => nothing: no such queue
	.
}

@test "messages: filters" {
	shows <<-'.'
		64 mq-return --not --not --match a q => --not: given twice before one filter
		64 mq-return --header a q => --header: a: not of the form NAME=RE
		64 mq-return --id . q => --id: .: not an id (32 letters and digits)
		64 mq-return -L rsmq --id '?' q => --id: ?: not an id (letters, digits, : _ and -, at most 128)
	.
}

@test "messages: mq-consume" {
	shows <<-'.'
		64 mq-consume => no queue given (try --help)
		64 mq-consume q -- => --: needs a command after it
		64 mq-consume -j 0 q => -j: 0: must be a number from 1 to 1000
		64 mq-consume --batch 0 q -- cat => --batch: 0: must be a number from 1 to 100000
		64 mq-consume --batch 2 --stream q -- cat => --batch and --stream cannot be used together
		64 mq-consume --batch-wait 1s q -- cat => --batch-wait needs --batch
		64 mq-consume --batch-wait 0 --stream q -- cat => --batch-wait needs --batch
		64 mq-consume --batch 2 --batch-wait -1s q -- cat => --batch-wait: -1s: not a duration (500ms, 10s, 5m, 1h30m, 1d, 1w)
		64 mq-consume --window 5 q -- cat => --window needs --stream
		64 mq-consume --window 5 --batch 2 q -- cat => --window needs --stream
		64 mq-consume --stream --window 0 q -- cat => --window: 0: must be a number from 1 to 100000
		64 mq-consume --stream --window 100001 q -- cat => --window: 100001: must be a number from 1 to 100000
		64 mq-consume --batch 100001 q -- cat => --batch: 100001: must be a number from 1 to 100000
		64 mq-consume --backoff 5s q -- cat => --backoff: 5s: not of the form MIN..MAX
		64 mq-consume --backoff 5s..1s q -- cat => --backoff: 5s..1s: MIN is above MAX
		64 mq-consume --rest 1s q -- cat => --rest: 1s: not of the form MIN..MAX
		64 mq-consume --rest 9s..1s q -- cat => --rest: 9s..1s: MIN is above MAX
		64 mq-consume --retry-on ok q -- cat => --retry-on: ok: must be err
		64 mq-consume --output odd q -- cat => --output: odd: must be live, lines or runs
		64 mq-consume --tag TOO_LONG q => --tag: longer than 64 bytes
		64 mq-consume --rq q -- cat => --rq needs --work-dir
		64 mq-consume --rq --work-dir w --batch 2 q -- cat => --rq cannot be used with --batch or --stream
		64 mq-consume --at-most-once q -- cat => --at-most-once cannot be used with a COMMAND
		64 mq-consume -l q -- cat => --lines cannot be used with a COMMAND, except with --batch or --stream
		64 mq-consume --push q q -- cat => --push: q: this queue is being consumed; name another
		64 mq-consume --push p --notify p q -- cat => --push and --notify: both are p; name two queues
		64 mq-consume --notify q q -- cat => --notify: q: this queue is being consumed; name another
		78 mq-consume q -- no-such-command => no-such-command: command not found
		78 mq-consume q -- /etc => /etc: Is a directory
		64 mq-consume -I {} q -- cat => -I: {}: not in any argument of the COMMAND
		64 mq-consume -I {} --batch 2 q -- echo {} => -I cannot be used with --batch or --stream
		64 mq-consume 'a::b' => a::b: a name must not contain [ ] { } or ::
		64 mq-consume --output lines q => --output needs a COMMAND; add -- COMMAND
		64 mq-consume --log-dir w q => --log-dir needs a COMMAND; add -- COMMAND
		64 mq-consume --joblog w q => --joblog needs a COMMAND; add -- COMMAND
		64 mq-consume --batch 2 q => --batch needs a COMMAND; add -- COMMAND
		64 mq-consume --stream q => --stream needs a COMMAND; add -- COMMAND
		64 mq-consume --rq q => --rq needs a COMMAND; add -- COMMAND
		64 mq-consume --work-dir w --batch 2 q -- true => --work-dir cannot be used with --batch or --stream
		64 mq-consume --work-dir w --stream q -- true => --work-dir cannot be used with --batch or --stream
		64 mq-consume --stream --output runs q -- true => --output=runs cannot be used with --stream; use --output=lines
		64 mq-consume --jsonl q -- true => --jsonl cannot be used with a COMMAND, except with --batch or --stream
		64 mq-consume -I '' q -- echo => -I: must not be empty
		64 mq-consume q q => q: given twice
		64 mq-consume -L rsmq --notify r q -- true => --notify: the layout rsmq has no results
		64 mq-consume -L rsmq --keep 1m q -- true => --keep: the layout rsmq has no results
		64 mq-consume --tag cat -x q => -x: unknown option (try --help)
		64 mq-consume q not-a-program -x => -x: unknown option (try --help)
		64 mq-consume -x q -- sh => -x: unknown option (try --help)
		64 mq-consume help => help: no such queue; try --help, or --new for a queue of that name
	.
}

@test "messages: mq-publish" {
	shows <<-'.'
		64 mq-publish => no queue given (try --help)
		64 mq-publish -l q a b => --lines reads standard input; remove the operand a
		64 mq-publish --jsonl q a => --jsonl reads standard input; remove the operand a
		64 mq-publish --tick 5 q a => --tick publishes nothing; remove the messages and their options
		64 mq-publish --tick 5 -p 1 q => --tick publishes nothing; remove the messages and their options
		64 mq-publish --delay 5m --at 12:00 q a => --delay and --at cannot be used together
		64 mq-publish --at never q a => --at: never: not a time (RFC 3339, HH:MM, @SECONDS since 1970, or words of date(1))
		64 mq-publish -p 101 q a => -p: 101: must be a number from -100 to 100
		64 mq-publish --raw -H 'A: b' q a => --raw cannot be used with options that set headers
		64 mq-publish -H nonsense q a => -H: nonsense: no colon
		64 mq-publish -P 5=x q a => -P: 5=x: not of the form N=VALUE, N from 1 to 4
		64 mq-publish --attach f q a => --attach: f: not of the form NAME=FILE
		74 mq-publish --attach f=/no/such q a => --attach: /no/such: No such file or directory
		74 mq-publish --attach f=/etc q a => --attach: /etc: Is a directory
		64 mq-publish --attach f=/etc/passwd q a b => --attach needs exactly one message
		64 mq-publish --coalesce -k a q a => --coalesce needs --unique queued
		64 mq-publish --replace -k a --coalesce q a => --coalesce and --replace cannot be used together
		64 mq-publish --replace q a => --replace needs --key
		64 mq-publish --replace -k a --unique done q a => --replace needs --unique queued
		64 mq-publish --unique done q a => --unique needs --key
		64 mq-publish --spool=x q a => --spool: x: not a size (64K, 10M)
		64 mq-publish --flush q => --flush publishes what waits; remove the queue and --spool
		64 mq-publish -k a --unique odd q a => --unique: odd: not a duration (500ms, 10s, 5m, 1h30m, 1d, 1w)
		64 mq-publish --http q a => --http publishes the request body; remove the payload, the framing, --wait and --tick
		64 mq-publish --host a q a => --host needs --http
		64 mq-publish --vt 5m q a => --vt: the layout rmq has no attributes of queues
		64 mq-publish -e 0s q a => -e: 0s: must be greater than 0
		64 mq-publish -k '' q a => -k: must not be empty
		64 mq-publish -k a --unique 0 q a => --unique: 0: must be greater than 0
		64 mq-publish -H 'a b: c' q a => -H: a b: c: invalid character in the name
		64 mq-publish -H ': c' q a => -H: : c: the name is empty
		64 mq-publish -H $'a: \a' q a => -H: a: \a: the value holds a control character
		64 mq-publish -H $'a: \xff' q a => -H: a: \377: the value is not UTF-8
		64 mq-publish -H 'mq-id: a' q a => -H: Mq-Id: names that begin with Mq- are reserved
		64 mq-publish -P $'1=\xff' q a => -P: 1=\377: not UTF-8
		64 mq-publish --from-tick 3 --until-tick 2 q a => --from-tick 3 is greater than --until-tick 2
		64 mq-publish --attach a/=/dev/null q a => --attach: a/: a name must not contain a slash
		64 mq-publish --attach .a=/dev/null q a => --attach: .a: a name must not begin with a dot
		64 mq-publish --attach =/dev/null q a => --attach: : a name must not be empty
		64 mq-publish --attach a=/dev/null --attach a=/dev/null q a => --attach: a: given twice
		64 mq-publish --attach TOO_LONG=/dev/null q a => --attach: TOO_LONG: a name has at most 255 bytes
		64 mq-publish -L rsmq --attach a=/dev/null q a => --attach: the layout rsmq has no attachments
		64 mq-publish --vt 1ms -L rsmq q a => --vt: 1ms: not whole seconds, 9999999 of them at most
		64 mq-publish -L rsmq -d 116d q a => --delay: at most 9999999 seconds (115 days) with the layout rsmq
		64 mq-publish -L rsmq --at 2100-01-01T00:00:00Z q a => --at: at most 9999999 seconds (115 days) with the layout rsmq
		64 mq-publish --maxsize 1 -L rsmq q a => --maxsize: 1: must be a number from 1024 to 65536
		64 mq-publish -L rsmq --realtime -g x q a => --group: the layout rsmq has no groups
		64 mq-publish --realtime q a => --realtime: the layout rmq has no notifications of new messages
		64 mq-publish -L rsmq -k a q a => --key: the layout rsmq has no keys
		64 mq-publish -L rsmq --tick 1 q => --tick: the layout rsmq has no ticks
		64 mq-publish -L rsmq --wait q a => --wait: the layout rsmq has no results
		64 mq-publish -L rsmq --unique done -k x q a => --unique: the layout rsmq has no keys
		64 mq-publish -L rsmq --from-tick 1 q a => --from-tick: the layout rsmq has no ticks
		64 mq-publish -L rsmq --until-tick 1 q a => --until-tick: the layout rsmq has no ticks
		64 mq-publish --maxsize 1024 q a => --maxsize: the layout rmq has no attributes of queues
		64 mq-publish -L rsmq -p -1 q a => --priority: the layout rsmq has no priorities below 0
		64 mq-publish --raw --ids q a => --raw --ids: the layout rmq has no ids without headers
		65 mq-publish --jsonl q <<<'{}' => record 1: neither payload nor payload_base64
		65 mq-publish --jsonl q <<<'{"payload":"a","headers":{"Mq-Id":"a"}}' => record 1: Mq-Id: not an id (32 letters and digits)
		65 mq-publish --jsonl --raw q <<<'{"payload":"a","headers":{"A":"b"}}' => record 1: has headers, which --raw cannot carry
		65 mq-publish --netstring q <<<5:a => record 1: netstring: cut off after 2 of 5 bytes
		64 mq-publish --attempts 0 q x => --attempts: 0: must be a number from 1 to 1000000
		64 mq-publish --timeout 0 q x => --timeout: 0: must be greater than 0
		64 mq-publish --raw --timeout 1s q x => --raw cannot be used with options that set headers
		64 mq-publish --expries=1s q x => --expries: unknown option; did you mean --expires?
	.
}

@test "messages: mq-stats" {
	shows <<-'.'
		64 mq-stats --check odd=5 q => --check: odd: must be one of ready, delayed, unacked, rejected, age, consumers, done-within, spool
		64 mq-stats --check ready q => --check: ready: needs a limit: ready=N
		64 mq-stats --check ready=x q => --check: ready: x: must be a number from 0 to 2147483647
		64 mq-stats --check consumers=0 q => --check: consumers=0: never fails; use consumers=1 to require a consumer
		64 mq-stats --watch=5ms q => --watch: 5ms: must be at least 100 ms
		64 mq-stats --host a q => --host needs --http
		64 mq-stats --http --host http://a/ => --host: http://a/: must be a host name, without a port
		64 mq-stats --payloads q => --payloads needs --http
		64 mq-stats --refresh 5 q => --refresh needs --html or --http
		64 mq-stats --list odd q => --list: odd: must be ready, delayed, unacked, rejected, done or ended
		64 mq-stats --list ready => --list needs one queue (try --help)
		64 mq-stats --list ready q r => --list needs one queue (try --help)
		64 mq-stats --reasons => --reasons needs one queue (try --help)
		64 mq-stats --id nonsense => --id: nonsense: not an id (32 letters and digits)
		64 mq-stats --json --html => --html and --json cannot be used together
		64 mq-stats --sort odd q => --sort: odd: must be name, ready, delayed, unacked, rejected, consumers, age, in or out
		64 mq-stats --sort age --json q => --sort needs the table of queues, --watch, --html or --http
		64 mq-stats --newest q => --newest needs --list
		64 mq-stats --offset 5 q => --offset needs --list
		64 mq-stats --match x q => --match needs --list or --reasons
		64 mq-stats --list ready --running q => --list and --running cannot be used together
		64 mq-stats --json --prometheus => --json and --prometheus cannot be used together
		64 mq-stats --list ready --json -l q => --json and --lines cannot be used together
		64 mq-stats --jsonl q => --jsonl needs --list
		64 mq-stats --running -n 3 => --limit needs the table of queues, --watch, --html, --http, --list or --reasons
		64 mq-stats --watch --json => --watch and --json cannot be used together
		64 mq-stats --connections --prometheus => --connections and --prometheus cannot be used together
		64 mq-stats --server q => --server: takes no queue; remove q
		64 mq-stats -u redis-cluster://h --server => --server: not supported on a cluster; use redis-cli INFO on each node
		64 mq-stats --html --watch => --html and --watch cannot be used together
		64 mq-stats --server --connections => --server and --connections cannot be used together
		64 mq-stats --reasons --nonempty q => --nonempty needs the table of queues, --watch, --html or --http
		64 mq-stats --check age=x => --check: age: x: not a duration (500ms, 10s, 5m, 1h30m, 1d, 1w)
		64 mq-stats --check ready=1,ready=2 => --check: ready: given twice
		64 mq-stats --jon => --jon: unknown option; did you mean --json?
		64 mq-stats --TOO_LONG => --TOO_LONG: unknown option (try --help)
	.
}

@test "messages: mq-lease" {
	shows <<-'.'
		64 mq-lease q => no --for, --ack, --reject, --extend or --return given (try --help)
		64 mq-lease --for 5m q r => r: only one queue at a time
		64 mq-lease --ack x --reject y q => only one of --ack, --reject, --extend and --return is possible
		1 mq-lease --ack nonsense q => q: nonsense: not a receipt
		64 mq-lease --extend a.b q => --extend needs --for
		64 mq-lease --for 5m --tag TOO_LONG q => --tag: longer than 64 bytes
		64 mq-lease --for 5m => no queue given (try --help)
		64 mq-lease --for 0 q => --for: 0: must be greater than 0
		64 mq-lease --ack a.1 --for 1s q => --for cannot be used with --ack, --reject or --return
		64 mq-lease --return a.1 --text x q => --text needs --ack or --reject
		64 mq-lease --tag 'a[' --for 1m q => --tag: a[: a name must not contain [ ] { } or ::
		64 mq-lease -L rsmq --ack a.1 --keep 1m q => --keep: the layout rsmq has no results
	.
}

@test "messages: the others" {
	shows <<-'.'
		64 mq-clean q => q: unexpected operand; mq-clean takes none
		64 mq-clean --attempts 0 => --attempts: 0: must be a number from 1 to 1000000
		64 mq-clean --dry-run=1 => --dry-run: takes no argument (try --help)
		64 mq-clean --interval 0 => --interval: 0: must be greater than 0
		64 mq-pause => no queue given (try --help)
		64 mq-pause --for 10m --resume q => --for and --resume cannot be used together
		64 mq-purge q => no state given; use --ready, --rejected, --delayed, --all, --delete-queue or --running
		64 mq-purge --ready => no queue given (try --help)
		64 mq-purge --ready q => no terminal to ask for confirmation; use --force or --dry-run
		64 mq-purge --delete-queue -n 5 q => --delete-queue: cannot be used with a filter or --limit
		64 mq-purge --delete-queue --match x q => --delete-queue: cannot be used with a filter or --limit
		64 mq-purge --ready --match '(' q => --match: (: Unmatched ( or \\(
		64 mq-purge --force --ready --not q => --not: needs a filter after it, such as --match
		64 mq-return --from ready q => --from: ready: needs --clone
		64 mq-return --clone --from foo q => --from: foo: must be ready, delayed, unacked, unacked:CONNECTION or rejected
		64 mq-return => no queue given (try --help)
		64 mq-set => no queue given (try --help)
		64 mq-set attempts=3 q => attempts=3: name the queue before the settings
		64 mq-pause --for 0 q => --for: 0: must be greater than 0
		1 mq-pause --resume q => q: not paused
		64 mq-return --from foo q => --from: foo: must be rejected, delayed or unacked:CONNECTION
		64 mq-return --from unacked q => --from: unacked: needs --clone
		64 mq-return --from unacked: q => --from: unacked:: must be rejected, delayed or unacked:CONNECTION
		64 mq-return -u redis-cluster://h --clone --to r q => --clone: cannot copy to another queue on a cluster; remove --to
		64 mq-set q slots=1 slots=2 => slots: given twice
		64 mq-set q nope=1 => nope=1: no such setting; the settings are attempts backoff timeout retry-on rate-shared slots slots-shared push notify keep max-length group-slots keep-rejected
		64 mq-set q slots=0 => slots=0: must be a number from 1 to 1000
		64 mq-set q backoff=x => backoff=x: must be two durations, MIN..MAX, as 1s..10m
		64 mq-set q rate=x => rate=x: must be a rate, as 10/s or 600/m:5
		64 mq-set q retry-on=x => retry-on=x: must be err
		64 mq-set q attempts=x => attempts=x: must be a number of runs, from 1 to 1000000
		64 mq-set q keep=x => keep=x: must be a duration, as 1h
		64 mq-set q max-length=x => max-length=x: must be a number of messages, or two, N:HIGH
		64 mq-set q keep-rejected=5: => keep-rejected=5:: must be a duration, a number of messages, or both, as 30d:10000
		64 mq-set -L rsmq q keep-rejected=5 => keep-rejected: with the layout rsmq, rejected messages go to a queue of their own
		64 mq-set q 'push=a[' => a[: a name must not contain [ ] { } or ::
		64 mq-set q slot => slot: not of the form NAME=VALUE
		64 mq-set q timeout=soon => timeout=soon: must be a duration, as 5m
		64 mq-set q push=q => push=q: must be another queue
		64 mq-set --json q slots=1 => --json cannot be used with slots=1
		64 mq-set -L rsmq q notify=r => notify: the layout rsmq has no results
		64 mq-set q vt=5s => vt: the layout rmq has no attributes of queues
	.
}

@test "messages: a beginning of several options names them, and other mistakes themselves" {
	shows <<-'.'
		64 mq-consume --ba 3 q => --ba: ambiguous: --backoff, --batch or --batch-wait
		64 mq-purge --re q => --re: ambiguous: --ready, --rejected or --reason
		64 mq-pause --dr q => --dr: unknown option (try --help)
		64 mq-publish --ve q => --ve: ambiguous: --verbose or --version
		64 mq-clean --ve=secret => --ve: ambiguous: --verbose or --version
		64 mq-stats --j => --j: ambiguous: --json or --jsonl
		64 mq-stats --json=x => --json: takes no argument (try --help)
		64 mq-stats --quiet=secret => --quiet: takes no argument (try --help)
		64 mq-stats --url=redis://:secret@h -qZk => -Z: unknown option (try --help)
		64 mq-stats --nope=secret => --nope: unknown option (try --help)
	.
	# An exact one, and one that is meant by all that it can be, are none of it.
	run_mq 0 mq-consume --batch 3 --drain r -- true
	run_mq 0 mq-stats --conn --json
}

@test "messages: what is for receipts is an option of mq-lease alone" {
	local option
	for option in --lease --ack --reject --extend --return --text; do
		echo "64 mq-consume $option 1m --jsonl q => $option: unknown option (try --help)"
	done >rows
	shows <rows
}

@test "messages: two framings, whatever the tool" {
	local both tool
	while IFS=: read -r both names; do
		for tool in publish consume 'consume --batch 3' 'stats --list ready'; do
			echo "64 mq-$tool $both q => $names cannot be used together"
		done
	done >rows <<-'.'
		-l -0:--lines and --null
		-0l:--null and --lines
		--jsonl --netstring:--jsonl and --netstring
		-l -l --jsonl:--lines and --jsonl
	.
	shows <rows
	run_mq 0 mq-publish -l -l --lines q <<<x
	run_mq 0 mq-stats --list ready -0 --null q
}

@test "messages: a time where a queue is expected" {
	local time
	for time in 2s 0.5m 100ms; do
		printf "64 mq-pause %s => $time: use --for $time for a duration, or -- $time for a queue\n" \
			"jobs $time" "$time jobs"
	done >rows
	shows <rows
	# All of these are meant.
	run_mq 0 mq-publish -- 2s x
	run_mq 0 mq-publish 5 x
	run_mq 75 mq-publish --wait=100ms q x
	run_mq 75 mq-publish --wait=100ms 2s q
	timeout 180 "$BUILD/mq-publish" --wait -- 2s x &
	eventually 10 eval '[ "$(held 2s)" = "3 0 0 0" ]'
	run_mq 0 mq-consume -q --drain 2s -- true
	wait $!
	run_mq 0 mq-pause 5
	run_mq 0 mq-pause -- 2s
	run_mq 0 mq-pause --for 2s 5
	# --wait and --watch take a time that stands behind them, too.
	run_mq 75 mq-publish --wait 100ms q x
	run_mq 75 mq-publish q x --wait 100ms
	run_mq 64 mq-stats --watch 2h --json 5
}

@test "messages: one is not many" {
	run_mq 0 mq-publish q a
	run_mq 1 mq-stats --list ready --match nothing q
	assert_equal "$stderr" "mq-stats: q: none of 1 ready message matched"
	run_mq 1 mq-consume -q -n1 q -- false
	prints "1 message returned" mq-return q
	prints "1 message purged" mq-purge --force --ready q

	# What a dead consumer held.
	redis sadd rmq::connections dead-aaaaaa >/dev/null
	redis sadd 'rmq::connection::dead-aaaaaa::queues' q >/dev/null
	redis lpush 'rmq::connection::dead-aaaaaa::queue::[q]::unacked' x >/dev/null
	run_mq 0 mq-clean --dry-run
	assert_output --partial '1 dead connection, 1 message returned'
	start_mq mq-consume q -- true
	eventually 30 grep -q 'cleaned up' "$T/err"
	stop_mq
	grep -q '1 dead connection cleaned up: 1 message returned, 0 rejected$' "$T/err"
}
