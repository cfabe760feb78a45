# The operators' tools against the way of a Go program (see peer.c), and by
# themselves on long queues; a part of run.sh.
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run.sh

rejected="rmq::queue::[$queue]::rejected"
connections=2000
sizes="10000 100000 1000000"

# --- setting up ---------------------------------------------------------------

# put COUNT LIST: makes it a list of so many messages of 100 bytes.  (DEL frees
# at once, so that nothing of it is left to do when something is measured.)
put() {
	[ "$(redis exists "lines:$1")" = 1 ] ||
		redis -e eval 'for i = 1, tonumber(ARGV[1]), 100 do
			local some = {}
			for j = i, i + 99 do
				some[#some + 1] = j .. (" "):rep(100 - #tostring(j))
			end
			redis.call("LPUSH", KEYS[1], unpack(some))
		end' 1 "lines:$1" "$1" >/dev/null
	redis sadd rmq::queues "$queue" >/dev/null
	redis del "$2" >/dev/null
	[ "$(redis copy "lines:$1" "$2")" = 1 ] || die "cannot fill $2"
}

# connect COUNT QUEUES UNACKED SECONDS: connections as a Go program writes
# them, with one queue and one consumer each, of so many queues in turn; live
# for so long, or dead.
connect() {
	redis -e eval 'for i = 1, tonumber(ARGV[1]) do
		local name = string.format("bench-%06d", i)
		local queue = string.format("queue-%d", i % tonumber(ARGV[2]))
		local key = "rmq::connection::" .. name
		local both = key .. "::queue::[" .. queue .. "]::"
		redis.call("SADD", "rmq::queues", queue)
		redis.call("SADD", "rmq::connections", name)
		redis.call("SADD", key .. "::queues", queue)
		redis.call("SADD", both .. "consumers", "tag-" .. name)
		for j = 1, tonumber(ARGV[3]) do
			redis.call("LPUSH", both .. "unacked",
				string.format("%-10d", j) .. (" "):rep(90))
		end
		if ARGV[4] ~= "0" then
			redis.call("SET", key .. "::heartbeat", 1, "EX", ARGV[4])
		end
	end' 0 "$@" >/dev/null
}

# peer CASE WORK...: the same done by a Go program, timed.
peer() {
	case=$1
	shift
	timed "$case-peer" "$bin/peer" "$sock" "$@"
}

# --- against round trips ------------------------------------------------------

return_round() {
	for who in timed peer; do
		put 100000 "$rejected"
		redis del "$key" >/dev/null
		if [ $who = timed ]; then
			timed return mq-return -q "$queue"
		else
			peer return return "$queue"
		fi
		expect 100000 "$key"
		expect 0 "$rejected"
	done
}

bench_return() {
	flush
	rounds return_round
	compare "return 100,000 rejected" "mq-return Q" \
		"RPOPLPUSH, 1 a round trip" return return-peer ">= 20"
}

purge_round() {
	put 1000000 "$key"
	timed purge mq-purge -q --ready --force "$queue"
	expect 0 "$key"
	put 1000000 "$key"
	peer purge purge "$queue"
	expect 0 "$key"
}

bench_purge() {
	flush
	rounds purge_round
	compare "purge 1,000,000 ready" "mq-purge --ready Q" \
		"LTRIM, 100 a round trip" purge purge-peer ">= 12"
}

# Each queue has had 100 of the connections.
cleaned() {
	expect 500 "rmq::queue::[queue-0]::ready"
	expect 500 "rmq::queue::[queue-19]::ready"
	[ "$(redis exists rmq::connections)" = 0 ] ||
		die "$case: connections are left"
}

clean_round() {
	flush
	connect $connections 20 5 0
	timed clean mq-clean -q
	cleaned
	flush
	connect $connections 20 5 0
	peer clean clean
	cleaned
}

bench_clean() {
	rounds clean_round
	compare "clean 2,000 connections" "mq-clean" "a round trip per key" \
		clean clean-peer ">= 15"
}

stats_round() {
	timed stats mq-stats -q
	peer stats stats
}

bench_stats() {
	flush
	connect $connections $connections 1 3600
	[ "$(mq-stats | wc -l)" -ge $connections ] ||
		die "mq-stats: too few lines"
	rounds stats_round
	compare "stats of 2,000 queues" "mq-stats" "a round trip per key" \
		stats stats-peer ">= 12"
}

# --- long queues --------------------------------------------------------------

scale_round() {
	for n in $sizes; do
		redis del "$key" >/dev/null
		put "$n" "$rejected"
		timed "return-$n" mq-return -q "$queue"
		expect "$n" "$key"
		put "$n" "$key"
		timed "list-$n" mq-stats -q --list ready -l "$queue"
		timed "purge-$n" mq-purge -q --ready --force "$queue"
		expect 0 "$key"
	done
}

# grown CASE SIZE SMALL: its time by ten times that of a tenth of the messages.
grown() {
	paste "$D/$1-$2.times" "$D/$1-$3.times" |
		awk '{print $1 / $3 / 10}' | middle
}

# scale CASE COMMAND: how its time grows with the queue.
scale() {
	small=
	for n in $sizes; do
		if [ -n "$small" ]; then
			times=$(grown "$1" "$n" "$small")
			row "$1, $n messages" "$2" "10 x the time of $small" \
				"${times%% *}" "" "${times#* }" "<= 1.2"
		fi
		small=$n
	done
}

bench_scale() {
	flush
	put 1000000 "$key"
	[ "$(mq-stats -q --list ready -l "$queue" | wc -l)" = 1000000 ] ||
		die "mq-stats --list: not all messages"
	timed table mq-stats -q
	rounds scale_round
	flush
	connect 1 1 0 0
	put 1000000 "rmq::connection::bench-000001::queue::[queue-0]::unacked"
	timed clean-long mq-clean -q
	expect 1000000 "rmq::queue::[queue-0]::ready"
	scale return mq-return
	scale list "--list"
	scale purge mq-purge
	memory "peak memory, 1 M messages" mq-return return-1000000 16
	memory "" mq-purge purge-1000000 16
	memory "" mq-clean clean-long 16
	memory "" mq-stats table 16
	memory "" "mq-stats --list ready -l" list-1000000 16
}
