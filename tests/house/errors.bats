#!/usr/bin/env bats
# Each message about a wrong command line, wrong input or a wrong setup, once.
# topology: own

# shellcheck disable=SC2154 # run_mq sets them

load ../helpers/common

setup_file() {
	server_start
}

teardown_file() {
	server_stop
}

setup() {
	local tool

	common_setup
	export HOME=$T
	unset XDG_CONFIG_HOME
	"$BUILD/mq-publish" -q waiting a
	for tool in publish consume stats clean pause purge return set lease; do
		eval "mq-$tool() { run_mq \"\$want\" mq-$tool \"\$@\"; }"
	done
}

teardown() {
	common_teardown
}

# Reads a table: exit status | command | first line of the standard error.  "..." stands
# for its beginning.  Behind it, mq-publish may count what it accepted: nothing.
messages() {
	local want command message

	while IFS='|' read -r want command message; do
		want=${want% } message=${message# }
		eval "$command" </dev/null
		case $message in
		...*) [[ ${stderr_lines[0]} == *"${message#...}" ]] || assert_equal "${stderr_lines[0]}" "$message" ;;
		*) assert_equal "${stderr_lines[0]}" "$message" ;;
		esac
		[ "${#stderr_lines[@]}" = 1 ] ||
			assert_equal "${stderr_lines[*]:1}" "mq-publish: 0 messages accepted"
	done
}

@test "errors: all tools: the command line" {
	messages <<-'END'
		64 | mq-pause --nope q | mq-pause: --nope: unknown option (try --help)
		64 | mq-pause -Z q | mq-pause: -Z: unknown option (try --help)
		64 | mq-stats --url | mq-stats: --url: needs an argument (try --help)
		64 | mq-publish -d | mq-publish: -d: needs an argument (try --help)
		64 | mq-pause --resume=1 q | mq-pause: --resume: takes no argument (try --help)
		64 | mq-publish --pr 1 q a | mq-publish: --pr: ambiguous: --print-acl or --priority
		64 | mq-stats --help=some | mq-stats: --help: some: must be all, or left out
		64 | mq-stats -L rabbit | mq-stats: -L: rabbit: must be rmq or rsmq
		64 | mq-return -n x q | mq-return: -n: x: must be a number, at least 1
		64 | mq-return --limit 0 q | mq-return: --limit: 0: must be a number, at least 1
		64 | mq-publish -p 101 q a | mq-publish: -p: 101: must be a number from -100 to 100
		64 | mq-publish -d soon q a | mq-publish: -d: soon: not a duration (500ms, 10s, 5m, 1h30m, 1d, 1w)
		64 | mq-publish --delay=soon q a | mq-publish: --delay: soon: not a duration (500ms, 10s, 5m, 1h30m, 1d, 1w)
		64 | mq-return --rate fast q | mq-return: --rate: fast: not a rate such as 10, 10/s, 90/m or 5/h:20
		64 | mq-stats -l -0 --list ready q | mq-stats: --lines and --null cannot be used together
	END
}

@test "errors: all tools: the server" {
	messages <<-'END'
		78 | MQ_LAYOUT=rabbit mq-stats | mq-stats: MQ_LAYOUT: unknown layout rabbit; use rmq or rsmq
		78 | mq-stats -u redis://h?layout=rabbit | mq-stats: redis://h?layout=rabbit: unknown layout rabbit; use rmq or rsmq
		78 | mq-stats -u redis://h?ns=x | mq-stats: redis://h?ns=x: the layout rmq has no namespaces; remove ns=
		64 | mq-stats -u redis-cluster://h/3 | mq-stats: redis-cluster://h/3: a cluster has no databases; remove the number
		78 | mq-stats -u redis-cluster://h?layout=rsmq | mq-stats: redis-cluster://h?layout=rsmq: on a cluster, the layout rsmq needs a namespace in braces; add ?ns={rsmq}
		78 | mq-stats -u http://h | mq-stats: server URL: unknown scheme; use redis://, rediss://, unix://, redis-cluster://, redis-sentinel:// or private:
		78 | mq-stats -u redis://h:0 | mq-stats: server URL: port is not a number from 1 to 65535
		78 | mq-stats -u redis://h/x | mq-stats: server URL: database is not a number from 0 to 99999
		78 | mq-stats -u redis:// | mq-stats: server URL: no host
		78 | mq-stats -u redis://a_b%c/ | mq-stats: server URL: host has an invalid character
		78 | mq-stats -u redis://[::1 | mq-stats: server URL: host has [ but no ]
		78 | mq-stats -u redis://h?what=1 | mq-stats: server URL: unknown parameter; only layout and ns are known
		78 | mq-stats -u rediss://h?what=1 | mq-stats: server URL: unknown parameter; only layout, ns, cacert, cert, key, sni and insecure are known
		78 | mq-stats -u unix:///s?what=1 | mq-stats: server URL: unknown parameter; only db, layout and ns are known
		78 | mq-stats -u redis://h?ns= | mq-stats: server URL: a parameter without a value
		78 | mq-stats -u 'redis://h?ns=a&ns=b' | mq-stats: server URL: a parameter is given twice
		78 | mq-stats -u rediss://h?insecure=2 | mq-stats: server URL: insecure must be insecure=1
		78 | mq-stats -u unix:///$(printf %0200d 0) | mq-stats: server URL: path too long for a socket
		78 | mq-stats -u redis-sentinel://h | mq-stats: server URL: no master name
		78 | mq-stats -u private:/dev/null | mq-stats: /dev/null: not a directory
		78 | MQ_PASSWORD_FILE=/nonexistent mq-stats | mq-stats: MQ_PASSWORD_FILE: /nonexistent: No such file or directory
		78 | MQ_PASSWORD_FILE=/dev/null mq-stats | mq-stats: MQ_PASSWORD_FILE: /dev/null: empty
		69 | mq-stats -u redis://127.0.0.1:1 | mq-stats: redis://127.0.0.1:1: Connection refused
		78 | mq-stats -u redis://h]:1 | mq-stats: server URL: host has an invalid character
		78 | mq-stats -u redis://[::1]x | mq-stats: server URL: unexpected text between ] and the port
		78 | mq-stats -u redis://a:1:2 | mq-stats: server URL: more than one : in a host; an IPv6 address goes in []
		78 | mq-stats -u redis://[x] | mq-stats: server URL: no IPv6 address in []
		78 | mq-stats -u redis://%zz@h | mq-stats: server URL: % must be followed by two hex digits
		78 | mq-stats -u unix:///s?ns=a | mq-stats: unix:///s?ns=a: the layout rmq has no namespaces; remove ns=
		78 | mq-stats -u redis-sentinel://a:b:c/m | mq-stats: server URL: more than one : in a host; an IPv6 address goes in []
	END
}

@test "errors: all tools: queues" {
	messages <<-'END'
		64 | mq-publish | mq-publish: no queue given (try --help)
		64 | mq-publish '' a | mq-publish: : a name must not be empty
		64 | mq-publish 'a[b' a | mq-publish: a[b: a name must not contain [ ] { } or ::
		64 | mq-publish $'a\n' a | mq-publish: a\n: a name must not contain control characters
		64 | mq-publish $(printf %0513d 0) a | ...: a name has at most 512 bytes
		64 | mq-publish -L rsmq '' a | mq-publish: : a name must not be empty
		64 | mq-publish -L rsmq a.b a | mq-publish: a.b: a name in RSMQ has only letters, digits, _ and -
		64 | mq-publish -L rsmq $(printf %0152d 0) a | ...: a name has at most 151 bytes (with -rejected, 160)
		64 | mq-publish -L rsmq QUEUES a | mq-publish: QUEUES: RSMQ reserves this name
		64 | mq-pause | mq-pause: no queue given (try --help)
		1 | mq-pause nothing | mq-pause: nothing: no such queue
		64 | mq-return | mq-return: no queue given (try --help)
		64 | mq-return q r | mq-return: r: only one queue at a time
		64 | mq-purge | mq-purge: no queue given (try --help)
		64 | mq-purge q r | mq-purge: r: only one queue at a time
		64 | mq-lease --for 1m | mq-lease: no queue given (try --help)
		64 | mq-lease --for 1m q r | mq-lease: r: only one queue at a time
		64 | mq-set | mq-set: no queue given (try --help)
		64 | mq-consume | mq-consume: no queue given (try --help)
	END
}

@test "errors: filters" {
	messages <<-'END'
		64 | mq-return --not q | mq-return: --not: needs a filter after it, such as --match
		64 | mq-return --not --not --match a q | mq-return: --not: given twice before one filter
		64 | mq-return --header a q | mq-return: --header: a: not of the form NAME=RE
		64 | mq-return --since soon q | mq-return: --since: soon: not a duration (500ms, 10s, 5m, 1h30m, 1d, 1w)
		64 | mq-return --id . q | mq-return: --id: .: not an id (32 letters and digits)
		64 | mq-return -L rsmq --id '?' q | mq-return: --id: ?: not an id (letters, digits, : _ and -, at most 128)
	END
}

@test "errors: mq-clean" {
	messages <<-'END'
		64 | mq-clean q | mq-clean: q: unexpected operand; mq-clean takes none
		64 | mq-clean --interval 0 | mq-clean: --interval: 0: must be greater than 0
		64 | mq-clean --interval soon | mq-clean: --interval: soon: not a duration (500ms, 10s, 5m, 1h30m, 1d, 1w)
		64 | mq-clean --attempts 0 | mq-clean: --attempts: 0: must be a number from 1 to 1000000
	END
}

@test "errors: mq-pause" {
	messages <<-'END'
		64 | mq-pause --for 0 q | mq-pause: --for: 0: must be greater than 0
		64 | mq-pause --for soon q | mq-pause: --for: soon: not a duration (500ms, 10s, 5m, 1h30m, 1d, 1w)
		64 | mq-pause --for 1m --resume q | mq-pause: --for and --resume cannot be used together
		64 | mq-pause q 10m | mq-pause: 10m: use --for 10m for a duration, or -- 10m for a queue
		1 | mq-pause --resume waiting | mq-pause: waiting: not paused
	END
}

@test "errors: mq-purge" {
	messages <<-'END'
		64 | mq-purge -f q | mq-purge: no state given; use --ready, --rejected, --delayed, --all or --delete-queue
		64 | mq-purge --ready q | mq-purge: no terminal to ask for confirmation; use --force or --dry-run
		64 | mq-purge --delete-queue --ready -n 1 q | mq-purge: --delete-queue: cannot be used with a filter or --limit
		64 | mq-purge --delete-queue --match a q | mq-purge: --delete-queue: cannot be used with a filter or --limit
	END
}

@test "errors: mq-return" {
	messages <<-'END'
		64 | mq-return --from foo q | mq-return: --from: foo: must be rejected, delayed or unacked:CONNECTION
		64 | mq-return --clone --from foo q | mq-return: --from: foo: must be ready, delayed, unacked, unacked:CONNECTION or rejected
		64 | mq-return --from ready q | mq-return: --from: ready: needs --clone
		64 | mq-return --from unacked q | mq-return: --from: unacked: needs --clone
		64 | mq-return --from unacked: q | mq-return: --from: unacked:: must be rejected, delayed or unacked:CONNECTION
		64 | mq-return -u redis-cluster://h --clone --to r q | mq-return: --clone: cannot copy to another queue on a cluster; remove --to
	END
}

@test "errors: mq-set" {
	messages <<-'END'
		64 | mq-set q slots=1 slots=2 | mq-set: slots: given twice
		64 | mq-set q nope=1 | mq-set: nope=1: no such setting; the settings are attempts backoff timeout retry-on rate slots push notify keep max-length
		64 | mq-set q slots=0 | mq-set: slots=0: must be a number from 1 to 1000
		64 | mq-set q backoff=x | mq-set: backoff=x: must be two durations, MIN..MAX, as 1s..10m
		64 | mq-set q rate=x | mq-set: rate=x: must be a rate, as 10/s or 600/m:5
		64 | mq-set q retry-on=x | mq-set: retry-on=x: must be err
		64 | mq-set q attempts=x | mq-set: attempts=x: must be a number of runs, from 1 to 1000000
		64 | mq-set q keep=x | mq-set: keep=x: must be a duration, as 1h
		64 | mq-set q max-length=x | mq-set: max-length=x: must be a number of messages, or two, N:HIGH
		64 | mq-set q 'push=a[' | mq-set: a[: a name must not contain [ ] { } or ::
		64 | mq-set q slots | mq-set: slots: not of the form NAME=VALUE
		64 | mq-set q timeout=soon | mq-set: timeout=soon: must be a duration, as 5m
		64 | mq-set slots=1 q | mq-set: slots=1: name the queue before the settings
		64 | mq-set q push=q | mq-set: push=q: must be another queue
		64 | mq-set --json q slots=1 | mq-set: --json cannot be used with slots=1
		64 | mq-set -L rsmq q notify=r | mq-set: notify: the layout rsmq has no results
		64 | mq-set q vt=5s | mq-set: vt: the layout rmq has no attributes of queues
		1 | mq-set nothing | mq-set: nothing: no such queue
	END
}

@test "errors: mq-lease" {
	messages <<-'END'
		64 | mq-lease q | mq-lease: no --for, --ack, --reject, --extend or --return given (try --help)
		64 | mq-lease --for 0 q | mq-lease: --for: 0: must be greater than 0
		64 | mq-lease --ack a.1 --reject a.1 q | mq-lease: only one of --ack, --reject, --extend and --return is possible
		64 | mq-lease --ack a.1 --for 1s q | mq-lease: --for cannot be used with --ack, --reject or --return
		64 | mq-lease --extend a.1 q | mq-lease: --extend needs --for
		64 | mq-lease --return a.1 --text x q | mq-lease: --text needs --ack or --reject
		1 | mq-lease --ack x q | mq-lease: q: x: not a receipt
		64 | mq-lease --tag $(printf %0100d 0) --for 1m q | mq-lease: --tag: longer than 64 bytes
		64 | mq-lease --tag 'a[' --for 1m q | mq-lease: --tag: a[: a name must not contain [ ] { } or ::
		1 | mq-lease --existing --for 1m nothing | mq-lease: nothing: no such queue
		64 | mq-lease -L rsmq --ack a.1 --keep 1m q | mq-lease: --keep: the layout rsmq has no results
	END
}

@test "errors: mq-publish" {
	messages <<-'END'
		64 | mq-publish -e 0s q a | mq-publish: -e: 0s: must be greater than 0
		64 | mq-publish -k '' q a | mq-publish: -k: must not be empty
		64 | mq-publish --unique 1m q a | mq-publish: --unique needs --key
		64 | mq-publish -k a --unique 0 q a | mq-publish: --unique: 0: must be greater than 0
		64 | mq-publish -H x q a | mq-publish: -H: x: no colon
		64 | mq-publish -H 'a b: c' q a | mq-publish: -H: a b: c: invalid character in the name
		64 | mq-publish -H ': c' q a | mq-publish: -H: : c: the name is empty
		64 | mq-publish -H $'a: \a' q a | mq-publish: -H: a: \a: the value holds a control character
		64 | mq-publish -H $'a: \xff' q a | mq-publish: -H: a: \377: the value is not UTF-8
		64 | mq-publish -H 'mq-id: a' q a | mq-publish: -H: Mq-Id: names that begin with Mq- are reserved
		64 | mq-publish --param 5=a q a | mq-publish: --param: 5=a: not of the form N=VALUE, N from 1 to 4
		64 | mq-publish -P a q a | mq-publish: -P: a: not of the form N=VALUE, N from 1 to 4
		64 | mq-publish --from-tick 3 --until-tick 2 q a | mq-publish: --from-tick 3 is greater than --until-tick 2
		64 | mq-publish --delay 1s --at 09:00 q a | mq-publish: --delay and --at cannot be used together
		64 | mq-publish --at never q a | mq-publish: --at: never: not a time (RFC 3339, HH:MM, unix seconds, or words of date(1))
		64 | mq-publish --raw -H 'a: b' q a | mq-publish: --raw cannot be used with options that set headers
		64 | mq-publish --attach a q a | mq-publish: --attach: a: not of the form NAME=FILE
		64 | mq-publish --attach a/=/dev/null q a | mq-publish: --attach: a/: a name must not contain a slash
		64 | mq-publish --attach .a=/dev/null q a | mq-publish: --attach: .a: a name must not begin with a dot
		74 | mq-publish --attach a=/nonexistent q a | mq-publish: --attach: /nonexistent: No such file or directory
		64 | mq-publish --attach =/dev/null q a | mq-publish: --attach: : a name must not be empty
		64 | mq-publish --attach a=/dev/null --attach a=/dev/null q a | mq-publish: --attach: a: given twice
		64 | mq-publish --attach a=/dev/null q a b | mq-publish: --attach needs exactly one message
		64 | mq-publish --attach $(printf %0256d 0)=/dev/null q a | ...: a name has at most 255 bytes
		64 | mq-publish -L rsmq --attach a=/dev/null q a | mq-publish: --attach: the layout rsmq has no attachments
		64 | mq-publish --coalesce -k a q a | mq-publish: --coalesce needs --unique queued
		64 | mq-publish --tick 3 q a | mq-publish: --tick publishes nothing; remove the messages and their options
		64 | mq-publish --http q a | mq-publish: --http publishes the request body; remove the payload, the framing, --wait and --tick
		64 | mq-publish -l q a | mq-publish: --lines reads standard input; remove the operand a
		64 | mq-publish --vt 1ms -L rsmq q a | mq-publish: --vt: 1ms: not whole seconds, 9999999 of them at most
		64 | mq-publish --vt 5s q a | mq-publish: --vt: the layout rmq has no attributes of queues
		64 | mq-publish --maxsize 1 -L rsmq q a | mq-publish: --maxsize: 1: must be a number from 1024 to 65536
		64 | mq-publish -L rsmq --realtime -g x q a | mq-publish: --group: the layout rsmq has no groups
		64 | mq-publish --realtime q a | mq-publish: --realtime: the layout rmq has no notifications of new messages
		64 | mq-publish -L rsmq -k a q a | mq-publish: --key: the layout rsmq has no keys
		64 | mq-publish -L rsmq -g a q a | mq-publish: --group: the layout rsmq has no groups
		64 | mq-publish -L rsmq --tick 1 q | mq-publish: --tick: the layout rsmq has no ticks
		64 | mq-publish -L rsmq --wait q a | mq-publish: --wait: the layout rsmq has no results
		64 | mq-publish -L rsmq -p -1 q a | mq-publish: --priority: the layout rsmq has no priorities below 0
		64 | mq-publish --raw --ids q a | mq-publish: --raw --ids: the layout rmq has no ids without headers
		65 | mq-publish -L rsmq q $'\xff' | mq-publish: record 1: not UTF-8; --raw publishes it
		65 | mq-publish --jsonl q <<<x | mq-publish: record 1: invalid JSON
		65 | mq-publish --jsonl q <<<[] | mq-publish: record 1: not a JSON object
		65 | mq-publish --jsonl q <<<'{}' | mq-publish: record 1: neither payload nor payload_base64
		65 | mq-publish --jsonl q <<<'{"payload":1}' | mq-publish: record 1: payload is not a string
		65 | mq-publish --jsonl q <<<'{"payload":"a","payload_base64":""}' | mq-publish: record 1: both payload and payload_base64
		65 | mq-publish --jsonl q <<<'{"payload_base64":"x"}' | mq-publish: record 1: payload_base64 is not base64
		65 | mq-publish --jsonl q <<<'{"payload":"a","headers":1}' | mq-publish: record 1: headers is not an object
		65 | mq-publish --jsonl q <<<'{"payload":"a","headers":{"A":1}}' | mq-publish: record 1: a header is neither a string nor a list of strings
		65 | mq-publish --jsonl --raw q <<<'{"payload":"a","headers":{"A":"b"}}' | mq-publish: record 1: has headers, which --raw cannot carry
		65 | mq-publish --netstring q <<<x | mq-publish: record 1: netstring: length is not a number
		65 | mq-publish --netstring q <<<01:a | mq-publish: record 1: netstring: length has a leading zero
		65 | mq-publish --netstring q <<<12345678901: | mq-publish: record 1: netstring: length has more than 10 digits
		65 | mq-publish --netstring q <<<1:abc | mq-publish: record 1: netstring: no comma after its payload (length 1)
		65 | mq-publish --netstring q <<<5:a | mq-publish: record 1: netstring: cut off after 2 of 5 bytes
		64 | mq-publish --wait --durable --raw q a | mq-publish: --raw cannot be used with options that set headers
		64 | mq-publish --wait --raw q a | mq-publish: --raw cannot be used with options that set headers
		64 | mq-publish --lines --null q | mq-publish: --lines and --null cannot be used together
	END
}

@test "errors: mq-consume" {
	messages <<-'END'
		64 | mq-consume q -- | mq-consume: --: needs a command after it
		64 | mq-consume -j 0 q -- true | mq-consume: -j: 0: must be a number from 1 to 1000
		64 | mq-consume --backoff 1s q -- true | mq-consume: --backoff: 1s: not of the form MIN..MAX
		64 | mq-consume --backoff 2s..1s q -- true | mq-consume: --backoff: 2s..1s: MIN is above MAX
		64 | mq-consume --retry-on all q -- true | mq-consume: --retry-on: all: must be err
		64 | mq-consume --tag $(printf %0100d 0) q -- true | mq-consume: --tag: longer than 64 bytes
		64 | mq-consume --tag 'a[' q -- true | mq-consume: --tag: a[: a name must not contain [ ] { } or ::
		64 | mq-consume --output groups q -- true | mq-consume: --output: groups: must be live, lines or runs
		64 | mq-consume --output lines q | mq-consume: --output needs a COMMAND; add -- COMMAND
		64 | mq-consume --log-dir $T q | mq-consume: --log-dir needs a COMMAND; add -- COMMAND
		64 | mq-consume --joblog $T/log q | mq-consume: --joblog needs a COMMAND; add -- COMMAND
		64 | mq-consume --batch 2 q | mq-consume: --batch needs a COMMAND; add -- COMMAND
		64 | mq-consume --stream q | mq-consume: --stream needs a COMMAND; add -- COMMAND
		64 | mq-consume --rq q | mq-consume: --rq needs a COMMAND; add -- COMMAND
		64 | mq-consume --rq q -- true | mq-consume: --rq needs --work-dir
		64 | mq-consume --rq --work-dir $T --batch 2 q -- true | mq-consume: --rq cannot be used with --batch or --stream
		64 | mq-consume --work-dir $T --batch 2 q -- true | mq-consume: --work-dir cannot be used with --batch or --stream
		64 | mq-consume --batch 2 --stream q -- true | mq-consume: --batch and --stream cannot be used together
		64 | mq-consume --batch-wait 1s q -- true | mq-consume: --batch-wait needs --batch
		64 | mq-consume --window 2 q -- true | mq-consume: --window needs --stream
		64 | mq-consume --stream --output runs q -- true | mq-consume: --output=runs cannot be used with --stream; use --output=lines
		64 | mq-consume --at-most-once q -- true | mq-consume: --at-most-once cannot be used with a COMMAND
		64 | mq-consume -l q -- true | mq-consume: --lines cannot be used with a COMMAND, except with --batch or --stream
		64 | mq-consume --jsonl q -- true | mq-consume: --jsonl cannot be used with a COMMAND, except with --batch or --stream
		64 | mq-consume -I {} --batch 2 q -- echo {} | mq-consume: -I cannot be used with --batch or --stream
		64 | mq-consume -I '' q -- echo | mq-consume: -I: must not be empty
		64 | mq-consume -I {} q -- echo | mq-consume: -I: {}: not in any argument of the COMMAND
		64 | mq-consume q q | mq-consume: q: given twice
		64 | mq-consume --push q q -- true | mq-consume: --push: q: this queue is being consumed; name another
		64 | mq-consume --notify q q -- true | mq-consume: --notify: q: this queue is being consumed; name another
		64 | mq-consume --push r --notify r q -- true | mq-consume: --push and --notify: both are r; name two queues
		64 | mq-consume -L rsmq --notify r q -- true | mq-consume: --notify: the layout rsmq has no results
		64 | mq-consume -L rsmq --keep 1m q -- true | mq-consume: --keep: the layout rsmq has no results
		64 | mq-consume /bin/true | mq-consume: /bin/true: a command, not a queue; write QUEUE -- COMMAND
		1 | mq-consume --existing nothing | mq-consume: nothing: no such queue
		64 | mq-consume -n 0 q | mq-consume: -n: 0: must be a number, at least 1
	END
}

@test "errors: mq-stats" {
	messages <<-'END'
		64 | mq-stats --list done q | mq-stats: --list: done: must be ready, delayed, unacked or rejected
		64 | mq-stats --list ready | mq-stats: --list needs one queue (try --help)
		64 | mq-stats --reasons q r | mq-stats: --reasons needs one queue (try --help)
		64 | mq-stats --list ready --running q | mq-stats: --list and --running cannot be used together
		64 | mq-stats --json --prometheus | mq-stats: --json and --prometheus cannot be used together
		64 | mq-stats --list ready --json -l q | mq-stats: --json and --lines cannot be used together
		64 | mq-stats --jsonl q | mq-stats: --jsonl needs --list
		64 | mq-stats --offset 1 q | mq-stats: --offset needs --list
		64 | mq-stats --newest q | mq-stats: --newest needs --list
		64 | mq-stats --match a | mq-stats: --match needs --list or --reasons
		64 | mq-stats --sort size | mq-stats: --sort: size: must be name, ready, delayed, unacked, rejected, consumers, age, in or out
		64 | mq-stats --json --sort age | mq-stats: --sort needs the table of queues, --watch, --html or --http
		64 | mq-stats --running -n 3 | mq-stats: --limit needs the table of queues, --watch, --html, --http, --list or --reasons
		64 | mq-stats --watch=1ms | mq-stats: --watch: 1ms: must be at least 100 ms
		64 | mq-stats --watch --json | mq-stats: --watch and --json cannot be used together
		64 | mq-stats --connections --prometheus | mq-stats: --connections and --prometheus cannot be used together
		64 | mq-stats --html --json | mq-stats: --html and --json cannot be used together
		64 | mq-stats --refresh 5 | mq-stats: --refresh needs --html or --http
		64 | mq-stats --payloads q | mq-stats: --payloads needs --http
		64 | mq-stats --server q | mq-stats: --server: takes no queue; remove q
		64 | mq-stats -u redis-cluster://h --server | mq-stats: --server: not supported on a cluster; use redis-cli INFO on each node
		1 | mq-stats --list rejected waiting | mq-stats: waiting: no message is rejected
		1 | mq-stats --running | mq-stats: no script is running
		1 | mq-stats --id 00000000000000000000000000000000 | mq-stats: 00000000000000000000000000000000: no such message
		64 | mq-stats --html --watch | mq-stats: --html and --watch cannot be used together
		64 | mq-stats --server --connections | mq-stats: --server and --connections cannot be used together
		64 | mq-stats --reasons --nonempty q | mq-stats: --nonempty needs the table of queues, --watch, --html or --http
		1 | mq-stats waiting nothing | mq-stats: nothing: no such queue
	END
}

@test "errors: mq-stats --check" {
	messages <<-'END'
		64 | mq-stats --check size=1 | mq-stats: --check: size: must be one of ready, delayed, unacked, rejected, age, consumers
		64 | mq-stats --check ready | mq-stats: --check: ready: needs a limit: ready=N
		64 | mq-stats --check ready=x | mq-stats: --check: ready: x: must be a number from 0 to 2147483647
		64 | mq-stats --check age=x | mq-stats: --check: age: x: not a duration (500ms, 10s, 5m, 1h30m, 1d, 1w)
		64 | mq-stats --check ready=1,ready=2 | mq-stats: --check: ready: given twice
		64 | mq-stats --check consumers=0 | mq-stats: --check: consumers=0: never fails; use consumers=1 to require a consumer
	END
}
