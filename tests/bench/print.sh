# Printing without a command, against moving a message from list to list; a part
# of run.sh.
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run.sh

# printed CASE ROUNDS COMMAND...: with so many times the lines in the queue.
printed() {
	case=$1
	times=$2
	shift 2
	flush
	for _ in $(seq "$times"); do
		mq-publish -q -l "$queue" <"$D/lines" || die "$case: mq-publish"
	done
	expect $((times * publishes)) "$key"
	timed "$case" "$@"
	expect 0 "$key"
	flush
}

print_round() {
	printed print-pipe 1 sh -c "mq-consume -q --drain -l $queue | cat"
	printed print-null 1 mq-consume -q --drain -l "$queue"
	printed print-json 1 sh -c "mq-consume -q --drain --jsonl $queue | cat"
	printed print-pop 1 redis-benchmark -s "$sock" -P 100 -c 1 -n "$publishes" -q \
		RPOPLPUSH "$key" popped
}

bench_print() {
	[ -e "$D/lines" ] || make_lines
	rounds print_round
	what="redis-benchmark RPOPLPUSH"
	compare "print 1,000,000 messages" "mq-consume -l | cat" "$what" \
		print-pipe print-pop ">= 0.5"
	compare "" "mq-consume -l >/dev/null" "-P 100 -c 1" print-null print-pop ">= 0.5"
	compare "" "mq-consume --jsonl | cat" "the same" print-json print-pop "-"
	memory "peak memory" "mq-consume -l | cat" print-pipe 8
	[ -n "$BENCH_LONG" ] || return 0
	printed print-long 10 sh -c "mq-consume -q --drain -l $queue | cat"
	memory "peak memory, 10 M" "mq-consume -l | cat" print-long 8
}
