# What each tool says when it is held wrong: one line, the exit status, nothing changed.

# Each test is a subshell of its own.
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
	cd "$T" || return
}

teardown() {
	cd / || return
	common_teardown
}

# Rows of an exit status, a command line and what stands behind the tool's name on
# standard error, in pairs of lines; TOO_LONG is a word of 300 characters.
shows() {
	local want command text keys
	run_mq 0 mq-publish -q q a
	keys=$(redis --raw keys '*' | sort)
	while read -r want command && IFS= read -r text; do
		text=${text#"${text%%[![:space:]]*}"}
		run --separate-stderr timeout 20 env PATH="$BUILD:$PATH" \
			bash -c "${command//TOO_LONG/$(printf %0300d 0)}" </dev/null 3>&-
		[ "$status $output $stderr" = "$want  ${command%% *}: $text" ] || {
			echo "$command: $status, $output$stderr"
			return 1
		}
	done
	assert_equal "$(redis --raw keys '*' | sort)" "$keys"
	held_is q "1 0 0 0"
}

@test "messages: mq-consume" {
	shows <<-'.'
		64 mq-consume
			no queue given (try --help)
		64 mq-consume q --
			--: needs a command after it
		64 mq-consume -j 0 q
			-j: 0: must be a number from 1 to 1000
		64 mq-consume -j many q
			-j: many: must be a number from 1 to 1000
		64 mq-consume -n -1 q
			-n: -1: must be a number, at least 1
		64 mq-consume --batch 0 q -- cat
			--batch: 0: must be a number from 1 to 100000
		64 mq-consume --batch 2 --stream q -- cat
			--batch and --stream cannot be used together
		64 mq-consume --batch-wait 1s q -- cat
			--batch-wait needs --batch
		64 mq-consume --window 5 q -- cat
			--window needs --stream
		64 mq-consume --timeout 5x q -- cat
			--timeout: 5x: not a duration (500ms, 10s, 5m, 1h30m, 1d, 1w)
		64 mq-consume --backoff 5s q -- cat
			--backoff: 5s: not of the form MIN..MAX
		64 mq-consume --backoff 5s..1s q -- cat
			--backoff: 5s..1s: MIN is above MAX
		64 mq-consume --rest 1s q -- cat
			--rest: 1s: not of the form MIN..MAX
		64 mq-consume --rest 9s..1s q -- cat
			--rest: 9s..1s: MIN is above MAX
		64 mq-consume --retry-on ok q -- cat
			--retry-on: ok: must be err
		64 mq-consume --rate x q
			--rate: x: not a rate such as 10, 10/s, 90/m or 5/h:20
		64 mq-consume --output odd q -- cat
			--output: odd: must be live, lines or runs
		64 mq-consume --tag TOO_LONG q
			--tag: longer than 64 bytes
		64 mq-consume --rq q -- cat
			--rq needs --work-dir
		64 mq-consume --rq --work-dir w --batch 2 q -- cat
			--rq cannot be used with --batch or --stream
		64 mq-consume --at-most-once q -- cat
			--at-most-once cannot be used with a COMMAND
		64 mq-consume -l q -- cat
			--lines cannot be used with a COMMAND, except with --batch or --stream
		64 mq-consume --push q q -- cat
			--push: q: this queue is being consumed; name another
		64 mq-consume --push p --notify p q -- cat
			--push and --notify: both are p; name two queues
		64 mq-consume --notify q q -- cat
			--notify: q: this queue is being consumed; name another
		78 mq-consume q -- no-such-command
			no-such-command: command not found
		64 mq-consume q ./cat
			./cat: a command, not a queue; put -- before it: mq-consume q -- ./cat
		64 mq-consume -I {} q -- cat
			-I: {}: not in any argument of the COMMAND
		64 mq-consume -I {} --batch 2 q -- echo {}
			-I cannot be used with --batch or --stream
		64 mq-consume --no-such q
			--no-such: unknown option (try --help)
		64 mq-consume 'a::b'
			a::b: a name must not contain [ ] { } or ::
	.
}

@test "messages: mq-publish" {
	shows <<-'.'
		64 mq-publish
			no queue given (try --help)
		64 mq-publish -l q a
			--lines reads standard input; remove the operand a
		64 mq-publish -l -0 q
			--lines and --null cannot be used together
		64 mq-publish --tick 5 q a
			--tick publishes nothing; remove the messages and their options
		64 mq-publish --tick 5 -p 1 q
			--tick publishes nothing; remove the messages and their options
		64 mq-publish --delay 5m --at 12:00 q a
			--delay and --at cannot be used together
		64 mq-publish --delay x q a
			--delay: x: not a duration (500ms, 10s, 5m, 1h30m, 1d, 1w)
		64 mq-publish --at never q a
			--at: never: not a time (RFC 3339, HH:MM, unix seconds, or words of date(1))
		64 mq-publish -p 101 q a
			-p: 101: must be a number from -100 to 100
		64 mq-publish -p high q a
			-p: high: must be a number from -100 to 100
		64 mq-publish --raw -H 'A: b' q a
			--raw cannot be used with options that set headers
		64 mq-publish -H nonsense q a
			-H: nonsense: no colon
		64 mq-publish -P 5=x q a
			-P: 5=x: not of the form N=VALUE, N from 1 to 4
		64 mq-publish --attach f q a
			--attach: f: not of the form NAME=FILE
		74 mq-publish --attach f=/no/such q a
			--attach: /no/such: No such file or directory
		64 mq-publish --attach f=/etc/passwd q a b
			--attach needs exactly one message
		64 mq-publish --coalesce -k a q a
			--coalesce needs --unique queued
		64 mq-publish --unique done q a
			--unique needs --key
		64 mq-publish -k a --unique odd q a
			--unique: odd: not a duration (500ms, 10s, 5m, 1h30m, 1d, 1w)
		64 mq-publish --http q a
			--http publishes the request body; remove the payload, the framing, --wait and --tick
		64 mq-publish --vt 5m q a
			--vt: the layout rmq has no attributes of queues
		64 mq-publish -L odd q a
			-L: odd: must be rmq or rsmq
		78 mq-publish -u nonsense q a
			server URL: unknown scheme; use redis://, rediss://, unix://, redis-cluster://, redis-sentinel:// or private:
		78 mq-publish -u redis-sentinel://h q a
			server URL: no master name
		78 mq-publish -u redis://h:99999 q a
			server URL: port is not a number from 1 to 65535
		78 mq-publish -u 'redis://h?odd=1' q a
			server URL: unknown parameter; only layout and ns are known
	.
}

@test "messages: mq-stats" {
	shows <<-'.'
		64 mq-stats --check odd=5 q
			--check: odd: must be one of ready, delayed, unacked, rejected, age, consumers
		64 mq-stats --check ready q
			--check: ready: needs a limit: ready=N
		64 mq-stats --check ready=x q
			--check: ready: x: must be a number from 0 to 2147483647
		64 mq-stats --check consumers=0 q
			--check: consumers=0: never fails; use consumers=1 to require a consumer
		64 mq-stats --watch=5ms q
			--watch: 5ms: must be at least 100 ms
		64 mq-stats --payloads q
			--payloads needs --http
		64 mq-stats --refresh 5 q
			--refresh needs --html or --http
		64 mq-stats --list odd q
			--list: odd: must be ready, delayed, unacked or rejected
		64 mq-stats --list ready
			--list needs one queue (try --help)
		64 mq-stats --list ready q r
			--list needs one queue (try --help)
		64 mq-stats --reasons
			--reasons needs one queue (try --help)
		64 mq-stats --id nonsense
			--id: nonsense: not an id (32 letters and digits)
		64 mq-stats --json --html
			--html and --json cannot be used together
		64 mq-stats --sort odd q
			--sort: odd: must be name, ready, delayed, unacked, rejected, consumers, age, in or out
		64 mq-stats --sort age --json q
			--sort needs the table of queues, --watch, --html or --http
		64 mq-stats --newest q
			--newest needs --list
		64 mq-stats --offset 5 q
			--offset needs --list
		64 mq-stats --match x q
			--match needs --list or --reasons
	.
}

@test "messages: mq-lease" {
	shows <<-'.'
		64 mq-lease q
			no --for, --ack, --reject, --extend or --return given (try --help)
		64 mq-lease --for 5m q r
			r: only one queue at a time
		64 mq-lease --for 5x q
			--for: 5x: not a duration (500ms, 10s, 5m, 1h30m, 1d, 1w)
		64 mq-lease --ack x --reject y q
			only one of --ack, --reject, --extend and --return is possible
		1 mq-lease --ack nonsense q
			q: nonsense: not a receipt
		64 mq-lease --extend a.b q
			--extend needs --for
		64 mq-lease --for 5m --tag TOO_LONG q
			--tag: longer than 64 bytes
		64 mq-lease --for 5m
			no queue given (try --help)
	.
}

@test "messages: the others" {
	shows <<-'.'
		64 mq-clean q
			q: unexpected operand; mq-clean takes none
		64 mq-clean --attempts 0
			--attempts: 0: must be a number from 1 to 1000000
		64 mq-clean --interval 0
			--interval: 0: must be greater than 0
		64 mq-pause
			no queue given (try --help)
		64 mq-pause --for 10m --resume q
			--for and --resume cannot be used together
		64 mq-pause 10m q
			10m: use --for 10m for a duration, or -- 10m for a queue
		64 mq-pause --for x q
			--for: x: not a duration (500ms, 10s, 5m, 1h30m, 1d, 1w)
		64 mq-purge q
			no state given; use --ready, --rejected, --delayed, --all or --delete-queue
		64 mq-purge --ready
			no queue given (try --help)
		64 mq-purge --ready q r
			r: only one queue at a time
		64 mq-purge --ready q
			no terminal to ask for confirmation; use --force or --dry-run
		64 mq-purge --delete-queue -n 5 q
			--delete-queue: cannot be used with a filter or --limit
		64 mq-purge --delete-queue --match x q
			--delete-queue: cannot be used with a filter or --limit
		64 mq-purge --ready --match '(' q
			--match: (: Unmatched ( or \\(
		64 mq-purge --force --ready --not q
			--not: needs a filter after it, such as --match
		64 mq-return --from ready q
			--from: ready: needs --clone
		64 mq-return --clone --from foo q
			--from: foo: must be ready, delayed, unacked, unacked:CONNECTION or rejected
		64 mq-return q r
			r: only one queue at a time
		64 mq-return
			no queue given (try --help)
		64 mq-return --since x q
			--since: x: not a duration (500ms, 10s, 5m, 1h30m, 1d, 1w)
		64 mq-return --header A q
			--header: A: not of the form NAME=RE
		64 mq-return --rate 0 q
			--rate: 0: not a rate such as 10, 10/s, 90/m or 5/h:20
		64 mq-set
			no queue given (try --help)
		64 mq-set attempts=3 q
			attempts=3: name the queue before the settings
	.
}
