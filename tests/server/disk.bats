#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The private server on a disk of its own that gets full: 8 MB, which only the
# mount namespace of the test can see.

# Options are words, or none.
# shellcheck disable=SC2016,SC2086

load ../helpers/common

setup() {
	unset MQ_URL
	T=$(own_dir)
	STATE=$T/state
	DIR=$STATE/mq
	export T XDG_STATE_HOME=$STATE XDG_CONFIG_HOME=$T/config
	mkdir -p "$STATE" "$T/bin"
	own=(-m)
	((EUID == 0)) || own+=(-r)
	unshare "${own[@]}" sh -c '
		mount -t tmpfs -o size=8m none "$1" && touch "$2" && exec sleep 600' \
		sh "$STATE" "$T/mounted" 3>&- &
	disk=$!
	eventually 10 [ -e "$T/mounted" ]
	enter=(nsenter -t "$disk" -m --wd=/)
	((EUID == 0)) || enter+=(-U --preserve-credentials)
	# The tools, on that disk.
	for tool in publish consume stats purge clean return; do
		cat >"$T/bin/mq-$tool" <<-END
			#!/bin/sh
			exec ${enter[@]} -- "$BUILD/mq-$tool" "\$@"
		END
		chmod +x "$T/bin/mq-$tool"
	done
	BUILD=$T/bin
}

teardown() {
	exec 5>&-
	cli shutdown nosave >/dev/null 2>&1 || true
	common_teardown
}

on_disk() {
	"${enter[@]}" -- "$@"
}

cli() {
	on_disk redis-cli -s "$DIR/redis.sock" "$@"
}

server_is_gone() {
	! cli ping >/dev/null 2>&1
}

# How often a server was started.
starts() {
	on_disk grep -c ' is starting ' "$DIR/redis.log"
}

# So much is free after it.
fill() {
	on_disk sh -c 'free=$(df --output=avail -B1 "$1" | tail -n 1)
		exec head -c "$((free - $2))" /dev/zero >"$1/filler"' sh "$STATE" "$1" ||
		[ "$1" = 0 ]
}

# Somebody who does not ask before.
write_too_much() {
	head -c 4000000 /dev/zero | cli -x set big >/dev/null 2>&1 || true
	eventually 10 server_is_gone
}

@test "disk: a message too large for it: 74, and nobody is disconnected" {
	run_mq 0 mq-publish -l jobs < <(seq 3)
	start_mq mq-consume -l jobs
	eventually 10 grep -qx 3 "$T/out"
	head -c 7500000 /dev/zero >"$T/large"
	run_mq 74 mq-publish jobs <"$T/large"
	assert_regex "$stderr" "^mq-publish: private server in $DIR: No space left on device: [0-9]+ KiB are free, and [0-9]+ KiB are needed
mq-publish: 0 messages accepted\$"
	# Those before it are accepted, and said so.
	run_mq 74 mq-publish --netstring jobs \
		< <(printf '1:4,7500000:'; cat "$T/large"; echo -n ,)
	assert_equal "${stderr_lines[1]}" "mq-publish: 1 message accepted"
	run_mq 0 mq-publish jobs 5
	eventually 10 grep -qx 5 "$T/out"
	stop_mq
	assert_equal "$(xargs <"$T/out")" "1 2 3 4 5"
	assert_equal "$(cat "$T/err")" ""
	assert_equal "$(starts)" 1
}

@test "disk: a server that could not write rests, and is told of" {
	run_mq 0 mq-publish -l jobs < <(seq 3)
	start_mq mq-consume -l jobs
	eventually 10 grep -qx 3 "$T/out"
	fill 2000000
	write_too_much
	# Everybody hears why, again and again, and nobody starts it.
	for _ in 1 2 3; do
		on_disk touch "$DIR/redis.log"
		run_mq 75 mq-publish jobs x
		assert_regex "$stderr" "^mq-publish: private server in $DIR: ended: it could not write to its disk; it is started again in 10 seconds; see $DIR/redis.log\$"
	done
	eventually 10 grep -q 'could not write to its disk' "$T/err"
	on_disk touch "$DIR/redis.log"
	assert_equal "$(starts)" 1
	on_disk touch -d '20 seconds ago' "$DIR/redis.log"
	run_mq 0 mq-publish jobs 4
	eventually 10 grep -qx 4 "$T/out"
	stop_mq
	assert_equal "$(xargs <"$T/out")" "1 2 3 4"
	# It said so once.
	assert_equal "$(grep -c 'could not write' "$T/err")" 1
	assert_equal "$(starts)" 2
}

@test "disk: no room at all: 74, and nothing starts before there is some" {
	run_mq 0 mq-publish -l jobs < <(seq 3)
	kill -KILL "$(cli info server | tr -d '\r' | sed -n 's/^process_id://p')"
	eventually 10 server_is_gone
	fill 0
	for args in "publish jobs x" "consume --drain jobs" "stats"; do
		run -74 --separate-stderr timeout 180 "$BUILD"/mq-$args
		assert_regex "$stderr" "private server in $DIR: not started: No space left on device: it needs 1024 KiB"
	done
	assert_equal "$(starts)" 1
	on_disk rm "$STATE/filler"
	run_mq 0 mq-consume --drain -l jobs
	assert_equal "$(xargs <<<"$output")" "1 2 3"
}

@test "disk: a publisher whose server ends for want of it sends the rest later" {
	mkfifo "$T/lines"
	"$BUILD/mq-publish" -l jobs <"$T/lines" 2>"$T/err" 3>&- &
	pid=$!
	exec 5>"$T/lines"
	echo 1 >&5
	eventually 10 state_is jobs "1 0 0 0 0"
	fill 2000000
	write_too_much
	echo 2 >&5
	eventually 10 grep -q reconnecting "$T/err"
	on_disk touch -d '20 seconds ago' "$DIR/redis.log"
	exec 5>&-
	wait "$pid"
	run_mq 0 mq-consume --drain -l jobs
	assert_equal "$(xargs <<<"$output")" "1 2"
	assert_equal "$(starts)" 2
}

# publish_large N [OPTION...]: messages of 60 kB, all different; 700 kB are free then.
publish_large() {
	local i

	for ((i = 0; i < $1; i++)); do
		printf '%060000d\n' "$i"
	done >"$T/large"
	run_mq 0 mq-publish -l "${@:2}" jobs <"$T/large"
	fill 700000
}

@test "disk: acks of large messages need no room" {
	run_mq 0 mq-publish --raw -l jobs < <(for _ in 1 2 3 4 5 6; do printf '%060000d\n' 7; done)
	publish_large 20
	run_mq 0 mq-consume --drain -j 3 jobs -- true
	assert_equal "$stderr" ""
	state_is jobs "0 0 0 0 0"
	assert_equal "$(starts)" 1
}

@test "disk: what has to be copied waits for room" {
	while IFS=: read -ru 4 how want left name option script; do
		publish_large 1 $how
		: >"$T/err"
		start_mq mq-consume -n 1 $option jobs -- sh -c "$script"
		eventually 10 grep -qE '(No space left on device: .* KiB are needed|no room to copy the next message); trying again$' "$T/err"
		on_disk rm "$STATE/filler"
		ended=0
		wait "$pid" || ended=$?
		assert_equal "$ended $(grep -c "trying again" "$T/err")" "$want 1"
		run_mq $((left == 0)) mq-purge --force --all "$name"
		assert_output -e "^$left messages? purged"
	done 4<<-'END'
		:75:1:jobs::exit 75
		:1:1:jobs::exit 1
		:0:1:done:--push done:echo push >&3
		-g a:0:0:jobs::true
		-p 5:0:0:jobs::true
		-d 1ms:0:0:jobs::true
	END
	assert_equal "$(starts)" 1
}

@test "disk: --drain waits a minute for room" {
	publish_large 2
	lib=$(find /usr/lib -name libfaketime.so.1 | head -n 1)
	ASAN_OPTIONS=${ASAN_OPTIONS-}:verify_asan_link_order=0 LD_PRELOAD=$lib \
		FAKETIME='+0 x20' run_mq 75 mq-consume --drain -j 1 --prefetch 1 jobs -- sh -c '
		[ "$(head -c 60000)" -eq 0 ] && exit 75'
	assert_regex "$stderr" "No space left on device"
	# One has gone back; the other is held until the lease is over.
	assert_equal "$(state jobs)" "1 0 1 0 1"
	cli del "$(cli keys '*heartbeat')" >/dev/null
	for args in clean "return --clone --from ready jobs"; do
		run_mq 74 mq-$args
		assert_regex "$stderr" "No space left on device"
	done
	on_disk rm "$STATE/filler"
	run_mq 0 mq-clean
	assert_equal "$(state jobs)" "2 0 0 0 0"
	assert_equal "$(starts)" 1
}
