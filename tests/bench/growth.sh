# How the time for each message, queue or slot grows with their number: it
# should not.  A part of run.sh.
#
# Each kind of growth is a function grow_KIND, which gets a size and times the
# case KIND-SIZE, and a line in growths(): the kind, what it is, the command,
# how much more of it is done than the size says, and the sizes.
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run.sh

growths() {
	cat <<END
publish|publish, messages|mq-publish -l|0|1000 10000 100000 1000000
print|print, messages|mq-consume -l|0|1000 10000 100000 ${BENCH_LONG:+1000000}
fork|run, messages|mq-consume -j2|0|10 100 1000 ${BENCH_LONG:+10000}
batch|batches, messages|mq-consume --batch 100|0|1000 10000 100000 ${BENCH_LONG:+1000000}
stream|stream, messages|mq-consume --stream|0|1000 10000 100000 ${BENCH_LONG:+1000000}
queues|print, queues of 100|mq-consume -l|0|1 10 100 1000
runs|run, queues of 2|mq-consume -j2|0|1 10 100 1000
stats|mq-stats, queues|mq-stats|0|1 10 100 1000
slots|run, all slots but 1 busy|mq-consume -j|1000|1 10 100 1000
idle|run, all slots idle|mq-consume -j|1000|1 10 100 1000
END
}

# --- the kinds ----------------------------------------------------------------

lines() {
	[ -e "$D/$1.lines" ] || seq -f '%-100.0f' "$1" >"$D/$1.lines"
}

grow_publish() {
	lines "$1"
	flush
	timed "publish-$1" -i "$D/$1.lines" mq-publish -l "$queue"
	expect "$1" "$key"
}

# drained KIND SIZE OPTION...: consumes so many messages.
drained() {
	case=$1-$2
	lines "$2"
	flush
	mq-publish -q -l "$queue" <"$D/$2.lines"
	shift 2
	timed "$case" mq-consume -q --drain "$@"
	expect 0 "$key"
}

grow_print() {
	drained print "$1" -l "$queue"
}

grow_fork() {
	drained fork "$1" -j2 "$queue" -- /bin/true
}

grow_batch() {
	drained batch "$1" -j2 --batch 100 "$queue" -- /bin/true
}

grow_stream() {
	drained stream "$1" --stream "$queue" -- "$bin/answer"
}

# spread QUEUES EACH: so many queues of so many messages.
spread() {
	flush
	redis -e eval 'for i = 1, tonumber(ARGV[1]) do
		local some, name = {}, "queue-" .. i
		for j = 1, tonumber(ARGV[2]) do
			some[j] = j .. (" "):rep(100 - #tostring(j))
		end
		redis.call("SADD", "rmq::queues", name)
		redis.call("LPUSH", "rmq::queue::[" .. name .. "]::ready",
			unpack(some))
	end' 0 "$1" "$2" >/dev/null
	# shellcheck disable=SC2046 # many names
	set -- $(seq -f 'queue-%g' "$1")
	queues=$*
}

# consumed_all CASE COMMAND...: consumes all those queues.
consumed_all() {
	timed "$@"
	[ -z "$(redis keys '*::ready')" ] || die "$case: some are left"
}

grow_queues() {
	spread "$1" 100
	# shellcheck disable=SC2086 # many names
	consumed_all "queues-$1" mq-consume -q --drain -l $queues
}

grow_runs() {
	spread "$1" 2
	# shellcheck disable=SC2086 # many names
	consumed_all "runs-$1" mq-consume -q -j2 --drain $queues -- /bin/true
}

grow_stats() {
	spread "$1" 1
	timed "stats-$1" mq-stats
}

# slots SIZE BUSY CASE: as many keep a slot busy, then 1000 more run.
slots() {
	flush
	[ -p "$D/fifo" ] || mkfifo "$D/fifo"
	{
		seq -f 'h%g' "$2"
		seq 999
		echo r
	} | mq-publish -q -l "$queue"
	timed "$3-$1" mq-consume -q "-j$1" --drain "$queue" -- \
		"$bin/hold" "$D/fifo"
	expect 0 "$key"
}

grow_slots() {
	slots "$1" $(($1 - 1)) slots
}

grow_idle() {
	slots "$1" 0 idle
}

# --- all of them --------------------------------------------------------------

growth_round() {
	growths | while IFS='|' read -r kind _ _ _ sizes; do
		for size in $sizes; do
			"grow_$kind" "$size" </dev/null
		done
	done
}

# each KIND SIZE OTHER-SIZE MORE: the time for each by that of another size.
each() {
	paste "$D/$1-$2.times" "$D/$1-$3.times" |
		awk -v n="$2" -v other="$3" -v more="$4" \
			'{print ($1 / (n + more)) / ($3 / (other + more))}' |
		middle | cut -d ' ' -f 1
}

worst() {
	printf '%s\n' "$@" | sort -n | tail -n 1
}

# growth KIND WHAT COMMAND MORE SIZE...
growth() {
	kind=$1 what=$2 command=$3 more=$4
	shift 4
	first=$1 before=$1
	shift
	for size in "$@"; do
		ratio=$(each "$kind" "$size" "$first" "$more")
		step=$(each "$kind" "$size" "$before" "$more")
		line "$what" "$command, $size" "the time for each of $first" \
			"$ratio" "$step of $before" "<= 1.2" \
			"$(mark "$(worst "$ratio" "$step")" "<= 1.2")"
		before=$size what=
	done
}

bench_growth() {
	rounds growth_round
	growths | while IFS='|' read -r kind what command more sizes; do
		# shellcheck disable=SC2086 # several sizes
		growth "$kind" "$what" "$command" "$more" $sizes
	done
	flush
}
