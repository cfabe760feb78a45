# Several messages for one process: batches and streams, against one process a
# message and against what the server itself can move; a part of run.sh.
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run.sh

alone=2000
crowd=200000
moved="rmq::queue::[$queue]::moved"

# sent COUNT: so many lines wait.
sent() {
	flush
	head -n "$1" "$D/lines" | mq-publish -q -l "$queue"
	expect "$1" "$key"
}

# taken CASE COUNT OPTION... -- COMMAND: they are consumed.
taken() {
	case=$1
	sent "$2"
	shift 2
	timed "$case" mq-consume -q --drain "$@"
	expect 0 "$key"
	expect 0 "rmq::queue::[$queue]::rejected"
}

many_round() {
	taken alone $alone -j2 "$queue" -- "$D/script"
	taken batch $crowd -j2 --batch 100 "$queue" -- "$D/script"
	taken stream $crowd --stream "$queue" -- "$bin/answer"
	case=moved
	sent $crowd
	timed moved redis-benchmark -s "$sock" -q -P 16 -c 1 -n $crowd \
		rpoplpush "$key" "$moved"
	expect $crowd "$moved"
	taken stream-awk $crowd --stream "$queue" -- "$D/awk"
}

# The peak must not depend on how many messages there are.
memory_of_stream() {
	for length in $1; do
		flush
		seq "$length" | mq-publish -q --raw -l "$queue"
		timed "stream-$length" mq-consume -q --drain --stream "$queue" -- \
			"$bin/answer"
		expect 0 "$key"
		memory "$2" "--stream, $length" "stream-$length" 8
		set -- "$1" ""
	done
}

bench_many() {
	[ -e "$D/lines" ] || make_lines
	# shellcheck disable=SC2016 # for the script
	printf '%s\n' '#!/bin/sh' 'read -r x' 'echo "done $x" >&3' >"$D/script"
	# Debian's awk reads in blocks without -W interactive; others ignore it.
	printf '%s\n' '#!/bin/sh' \
		'exec awk -W interactive '\''{print "done"; fflush()}'\'' >&3' \
		>"$D/awk"
	chmod +x "$D/script" "$D/awk"
	rounds many_round
	compare "$crowd messages" "--batch 100 -j2" "one process each, -j2" \
		batch alone ">= 20" $((crowd / alone))
	compare "" "--stream, C" "one process each, -j2" \
		stream alone ">= 15" $((crowd / alone))
	compare "" "--stream, awk" "one process each, -j2" \
		stream-awk alone "-" $((crowd / alone))
	compare "" "--stream, C" "redis-benchmark -P16" stream moved ">= 0.65"
	memory "peak memory" "--batch 100 -j2" batch 8
	memory_of_stream "100000 1000000 ${BENCH_LONG:+10000000}" "peak memory"
	flush
}
