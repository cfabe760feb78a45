#!/bin/bash
# Every tool in each of its main ways under memcheck, in both layouts: fails when
# that finds an error or memory that was lost, or a tool ends in another way than
# it should.  A server of its own.
#   valgrind.sh DIR     where the tools are
set -u

dir=$(cd "$1" && pwd) || exit 64
cd "$(dirname "$0")" || exit 70
T=$(mktemp -d "${TMPDIR:-/tmp}/mq.XXXXXX")
export MQ_URL=unix://$T/redis.sock
trap 'redis-cli -s "$T/redis.sock" shutdown nosave >/dev/null 2>&1; rm -rf "$T"' EXIT
failed=0 runs=0

redis-server --port 0 --unixsocket "$T/redis.sock" --dir "$T" --save '' \
	--appendonly yes --appendfsync always --daemonize yes \
	--logfile "$T/redis.log" >/dev/null
for ((i = 0; i < 200; i++)); do
	redis-cli -s "$T/redis.sock" ping >/dev/null 2>&1 && break
	read -rt 0.05 <> <(:)
done

# What it says of itself is no finding: it does not know all system calls.
findings() {
	sed -n '/^--[0-9]*-- /!p' "$T/log"
}

# run STATUS TOOL ARGS...
run() {
	local want=$1 tool=$2 status
	shift 2
	runs=$((runs + 1))
	timeout -k 10 180 valgrind -q --leak-check=full \
		--errors-for-leak-kinds=definite --show-leak-kinds=definite \
		--error-exitcode=99 --child-silent-after-fork=yes \
		--log-file="$T/log" "$dir/$tool" "$@" >"$T/out" 2>"$T/err"
	status=$?
	[ "$status" != "$want" ] || [ -n "$(findings)" ] || return 0
	failed=$((failed + 1))
	echo "$MQ_LAYOUT: $tool $*: status $status, not $want"
	cat "$T/err"
	findings
}

publish() {
	seq 200 | run 0 mq-publish -i --durable -l q
	run 0 mq-publish -H 'X-A: b' -P 1=x -d 1h q later
	sed 's/.*/{"payload":"&","headers":{"X-B":["c","d"]}}/' <(seq 5) |
		run 0 mq-publish --jsonl q
	echo '{"payload"' | run 65 mq-publish --jsonl q
	run 75 mq-publish --max-length 3 q x
	if [ "$MQ_LAYOUT" = rmq ]; then
		run 0 mq-publish -p 5 -g g -k key -e 1h q p
		run 1 mq-publish -k key q p
		run 0 mq-publish --tick 3 q
	else
		run 0 mq-set q vt=40s
	fi
}

consume() {
	run 0 mq-consume -n 20 -j 2 q -- sh -c 'cat >/dev/null
		echo "run x" >&3; echo "done y" >&3'
	run 0 mq-consume -n 5 q -- sh -c 'echo "err bad" >&3'
	run 0 mq-consume -n 3 --retry-on err --log-dir "$T/logs" q -- false
	run 0 mq-consume -n 30 --batch 10 -l q -- sh -c 'cat >/dev/null
		echo "err #2 no" >&3; echo done >&3'
	run 0 mq-consume -n 30 --stream -l q -- sh -c 'while read -r x; do
		echo done >&3; done'
	run 0 mq-consume -n 10 -l q
	run 0 mq-consume -n 3 --jsonl q
}

# settle STATUS LINE ARGS...: by the receipt in that line of $T/leased.
settle() {
	run "$1" mq-lease "$3" "$(sed -n "$2s/.*\"receipt\":\"\([^\"]*\)\".*/\1/p" "$T/leased")" \
		"${@:4}" q
}

lease() {
	run 0 mq-lease --for 1m -n 3 q
	cp "$T/out" "$T/leased"
	settle 0 1 --extend --for 2m
	settle 0 1 --ack --text well
	settle 1 1 --ack
	settle 0 2 --reject --text bad
	settle 0 3 --return
}

look() {
	local how

	for how in '' --json --prometheus --html --connections \
		'--list rejected --jsonl' '--list delayed' '--check ready=1000'; do
		# shellcheck disable=SC2086 # words
		run 0 mq-stats $how q
	done
	run 0 mq-clean
	run 0 mq-pause --for 1m q
	run 0 mq-pause --resume q
	run 0 mq-set q attempts=3 push=other
	run 0 mq-set q
	run 0 mq-set q attempts= push=
	run 0 mq-return --match . -n 2 q
	run 0 mq-return --from delayed q
	run 0 mq-purge --force --rejected q
	run 0 mq-purge --force --ready --match 1 q
	run 0 mq-purge --force --delete-queue q
}

mkdir "$T/logs"
for MQ_LAYOUT in rmq rsmq; do
	export MQ_LAYOUT
	publish
	consume
	lease
	look
done
echo "valgrind: $runs runs, $failed with findings"
[ "$failed" = 0 ]
