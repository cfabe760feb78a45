#!/bin/sh
# Compares the tools with others that do the same, and prints a table.  What
# counts is the ratio: how many times as fast as the other one, for memory and
# latency how many times as much.  Both sides run in turn, ROUNDS times; a
# ratio is the median of those of the rounds, from .. to the extremes.  A ratio
# that falls short is marked, and does not fail: the machine may be busy.
#
#   ROUNDS=5       how often each
#   BENCH_ONLY=    some of: publish single print run many pickup memory idle
#                  return purge clean stats scale waits options due growth rsmq
#                  and, by itself, cluster: see cluster.py; or fleet: see fleet.py,
#                  which takes half an hour
#   BENCH_LONG=1   more messages as well: up to 10,000,000
set -eu

cd "$(dirname "$0")/../.."
: "${MQ_BUILD:=build}" "${CC:=cc}" "${PKG_CONFIG:=pkg-config}" "${ROUNDS:=5}"
: "${BENCH_ONLY:=publish single print run many pickup memory idle return purge
	clean stats scale waits options due growth rsmq}" "${BENCH_LONG:=}"
case $MQ_BUILD in
/*) ;;
*) MQ_BUILD=$PWD/$MQ_BUILD ;;
esac
[ -x "$MQ_BUILD/mq-publish" ] || {
	echo "bench: $MQ_BUILD has no mq-publish" >&2
	exit 1
}
unset MQ_PASSWORD_FILE REDISCLI_AUTH MQ_LAYOUT
export LC_ALL=C MQ_BUILD CC ROUNDS
PATH=$MQ_BUILD:$PATH
bin=$MQ_BUILD/bench
queue=bench
key="rmq::queue::[$queue]::ready"
publishes=1000000
singles=300
runs=5000
big=$((256 * 1024))	# KiB
server='' consumer=''

die() {
	echo "bench: $*" >&2
	exit 1
}

clean_up() {
	for p in $consumer $server; do
		kill "$p" 2>/dev/null || true
		wait "$p" 2>/dev/null || true
	done
	rm -rf "$D"
}

# --- setting up ---------------------------------------------------------------

compile() {
	name=$1
	shift
	# shellcheck disable=SC2086 # CC may be more than one word
	$CC -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Wpedantic \
		-o "$bin/$name" "tests/bench/$name.c" "$@"
}

compile_all() {
	mkdir -p "$bin"
	compile measure
	compile spawn
	compile answer
	for prog in mark hold; do
		compile $prog -static 2>/dev/null || compile $prog
	done
	for prog in latency peer waits; do
		# shellcheck disable=SC2046 # several options
		compile $prog $("$PKG_CONFIG" --cflags --libs hiredis)
	done
}

# start_server NAME: starts one more, and talks to it from now on.
start_server() {
	sock=$D/$1.sock
	redis-server --port 0 --unixsocket "$sock" --dir "$D" --save '' \
		--appendonly no --logfile "$D/$1.log" &
	server="$server $!"
	tries=0
	until [ "$(redis ping 2>/dev/null)" = PONG ]; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] || die "redis-server does not answer: $(cat "$D/$1.log")"
		sleep 0.05
	done
	export MQ_URL="unix://$sock"
}

redis() {
	redis-cli -s "$sock" "$@"
}

flush() {
	[ "$(redis flushall)" = OK ] || die "flushall failed"
}

# Lines of 100 bytes, and the commands that push the same, by 1 and by 100.
make_lines() {
	python3 - "$D" "$key" $publishes <<'END'
import sys
dir, key, count = sys.argv[1], sys.argv[2].encode(), int(sys.argv[3])
line = lambda i: b"%-100d" % i
def push(first, n):
    return (b"*%d\r\n$5\r\nLPUSH\r\n$%d\r\n%s\r\n" % (n + 2, len(key), key) +
        b"".join(b"$100\r\n%s\r\n" % line(i) for i in range(first, first + n)))
with open(dir + "/lines", "wb") as f:
    f.writelines(line(i) + b"\n" for i in range(count))
for by in 1, 100:
    with open("%s/push%d" % (dir, by), "wb") as f:
        f.writelines(push(i, by) for i in range(0, count, by))
END
}

# --- many messages ------------------------------------------------------------

publish_round() {
	flush
	timed raw -i "$D/lines" mq-publish --raw -l $queue
	expect $publishes "$key"
	flush
	timed push1 -i "$D/push1" redis-cli -s "$sock" --pipe
	expect $publishes "$key"
	flush
	timed stamped -i "$D/lines" mq-publish -l $queue
	expect $publishes "$key"
	flush
	timed push100 -i "$D/push100" redis-cli -s "$sock" --pipe
	expect $publishes "$key"
}

bench_publish() {
	make_lines
	rounds publish_round
	flush
	compare "publish 1,000,000 lines" "mq-publish --raw -l" \
		"redis-cli --pipe, ready-made" raw push1 ">= 1.6"
	compare "" "mq-publish --raw -l" "the same, 100 per command" \
		raw push100 ">= 0.7"
	compare "" "mq-publish -l (stamped)" "mq-publish --raw -l" \
		stamped raw ">= 0.5"
	memory "peak memory" "mq-publish --raw -l" raw 16
	memory "" "mq-publish -l" stamped 16
}

# --- one message a process ----------------------------------------------------

# looped CASE SHELL-COMMAND: in a loop of a shell.
looped() {
	flush
	timed "$1" sh -c "i=0; while [ \$i -lt $singles ]; do
		i=\$((i + 1)); $2 || exit 1; done"
	expect $singles "$key"
}

single_round() {
	looped one "mq-publish $queue payload"
	looped onecli "printf payload | redis-cli -s $sock -x lpush '$key'"
	looped onein "printf payload | mq-publish $queue"
}

bench_single() {
	rounds single_round
	compare "publish 1, one process" "mq-publish Q payload" \
		"printf | redis-cli -x lpush" one onecli ">= 2.0"
	compare "" "printf | mq-publish Q" "printf | redis-cli -x lpush" \
		onein onecli "-"
}

# --- one process a message ----------------------------------------------------

# consumed CASE COMMAND
consumed() {
	flush
	mq-publish -q -l $queue <"$D/numbers"
	case=$1
	expect $runs "$key"
	timed "$1" mq-consume -q -j2 --drain $queue -- "$2"
	expect 0 "$key"
	expect 0 "rmq::queue::[$queue]::rejected"
}

run_round() {
	consumed true /bin/true
	timed true-xargs -i "$D/numbers" xargs -P2 -n1 /bin/true
	timed true-spawn "$bin/spawn" $runs 2 /bin/true
	consumed script "$D/script"
	timed script-xargs -i "$D/numbers" xargs -P2 -n1 "$D/script" 3>/dev/null
	timed script-spawn "$bin/spawn" $runs 2 "$D/script" 3>/dev/null
}

bench_run() {
	seq $runs >"$D/numbers"
	# shellcheck disable=SC2016 # for the script
	printf '%s\n' '#!/bin/sh' 'read -r x' 'echo "done $x" >&3' >"$D/script"
	chmod +x "$D/script"
	rounds run_round
	compare "run /bin/true 5,000 times" "mq-consume -j2" "xargs -P2 -n1" \
		true true-xargs ">= 1.0"
	compare "" "mq-consume -j2" "posix_spawn, 2 at a time" \
		true true-spawn ">= 0.9"
	compare "run a script 5,000 times" "mq-consume -j2" "xargs -P2 -n1" \
		script script-xargs ">= 1.0"
	compare "" "mq-consume -j2" "posix_spawn, 2 at a time" \
		script script-spawn ">= 0.9"
	memory "peak memory" "mq-consume -j2, true" true 16
	memory "" "mq-consume -j2, script" script 16
}

# --- from publish to start ----------------------------------------------------

pickup_round() {
	flush
	"$bin/latency" "$sock" "$key" 300 "$MQ_BUILD/mq-consume" -q $queue -- \
		"$bin/mark" >"$D/latency" || die "latency: failed"
	paste -s "$D/latency" >>"$D/pickup"
}

bench_pickup() {
	rounds pickup_round
	percentile 1 "latency, push to start" "idle mq-consume, p50"
	percentile 2 "" "idle mq-consume, p99"
}

# percentile COLUMN WHAT OURS
percentile() {
	# shellcheck disable=SC2046 # two words: the median and the range
	set -- "$2" "$3" $(awk -v p="$1" '{print $p / $(p + 2)}' "$D/pickup" | middle)
	row "$1" "$2" "posix_spawn to start" "$3" "" "$4" "-"
}

# --- memory -------------------------------------------------------------------

payload() {
	awk -v kib="$(peak_kib "$2")" -v big=$big \
		'BEGIN {printf "%.2f\n", kib / big}' >"$D/times"
	row "$1" "$3" "the payload" "$(cat "$D/times")" "" "" "<= 2.1"
}

bench_memory() {
	flush
	dd if=/dev/zero of="$D/big" bs=1024k count=$((big / 1024)) 2>/dev/null
	timed big-file -i "$D/big" mq-publish --raw $queue
	expect 1 "$key"
	flush
	timed big-pipe sh -c "cat $D/big | mq-publish --raw $queue"
	expect 1 "$key"
	flush
	rm "$D/big"
	payload "peak memory, 256 MiB" big-file "mq-publish Q <file"
	payload "" big-pipe "cat file | mq-publish Q"
	[ -n "$BENCH_LONG" ] || return 0
	[ -e "$D/lines" ] || make_lines
	l=$D/lines
	timed long sh -c "cat $l $l $l $l $l $l $l $l $l $l | mq-publish -l $queue"
	expect $((10 * publishes)) "$key"
	flush
	memory "peak memory, 10 M lines" "mq-publish -l" long 16
}

# --- idle ---------------------------------------------------------------------

# Its own ticks and those of children that have ended.
ticks() {
	sed 's/.*) //' "/proc/$consumer/stat" | awk '{print $12 + $13 + $14 + $15}'
}

bench_idle() {
	flush
	mq-consume -q $queue -- /bin/true &
	consumer=$!
	sleep 2
	before=$(ticks)
	sleep 10
	after=$(ticks)
	kill $consumer
	wait $consumer 2>/dev/null || true
	consumer=
	row "CPU when idle, 10 s" "mq-consume" "-" \
		"$(awk -v t=$((after - before)) -v hz="$(getconf CLK_TCK)" \
			'BEGIN {printf "%.1f", t * 10 / hz}')" " %" "" "<= 0.5"
}

# --- a thousand consumers -------------------------------------------------------

# Its table is its own, and so are its servers.
bench_cluster() {
	python3 -B tests/bench/cluster.py
}

bench_fleet() {
	python3 -B tests/bench/fleet.py
}

# shellcheck source=tests/bench/table.sh
. tests/bench/table.sh
# shellcheck source=tests/bench/operators.sh
. tests/bench/operators.sh
# shellcheck source=tests/bench/many.sh
. tests/bench/many.sh
# shellcheck source=tests/bench/waits.sh
. tests/bench/waits.sh
# shellcheck source=tests/bench/print.sh
. tests/bench/print.sh
# shellcheck source=tests/bench/delivery.sh
. tests/bench/delivery.sh
# shellcheck source=tests/bench/growth.sh
. tests/bench/growth.sh
# shellcheck source=tests/bench/rsmq.sh
. tests/bench/rsmq.sh

D=$(mktemp -d "${TMPDIR:-/tmp}/mq.XXXXXX")
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
compile_all
start_server redis
line what ours "the other" ratio rounds wanted ""
for part in $BENCH_ONLY; do
	"bench_$part"
done
