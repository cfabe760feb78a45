#!/usr/bin/env bats
# Several batches are under way at a time.  Messages stay in the order of publishing,
# whatever the server says of one of the batches.
#
# layouts: rmq rsmq

load ../helpers/server
load "../helpers/layout-${LAYOUT:-rmq}"

# Those that a script publishes.
ways=("" "-p 5")
[ "${LAYOUT:-rmq}" = rsmq ] || ways=("-g group" "-e 1h" "-e 1h -p 5")

setup_file() {
	server_start
	export PYTHONDONTWRITEBYTECODE=1
}

setup() {
	common_setup
	no_cluster "the meddler stands before one server"
	cli="redis-cli -s $D/redis.sock"
	far=0
}

teardown() {
	[ -z "${meddler-}" ] || kill "$meddler" || true
	common_teardown
}

# meddle [WORD COMMAND]...: a way to the server, at $url; see between.py.
meddle() {
	far=$((far + 1))
	python3 -S "$BATS_TEST_DIRNAME/between.py" "$T/s$far" "$D/redis.sock" "$@" \
		3>&- &
	meddler=$!
	url=unix://$T/s$far
	eventually 10 listens_at "$T/s$far"
}

stop_meddling() {
	kill "$meddler"
	meddler=
}

# The lines m00001 and so on.
lines() {
	seq -f 'm%05g' "$1"
}

# Such lines of 400 bytes: between two of them a thousand apart is more than sockets hold, so
# the server has read the first when the second comes.
long_lines() {
	seq -f "m%05g$(printf '%0394d' 0)" "$1"
}

# All payloads, each on a line, in the order of their claims.
taken() {
	"$BUILD/mq-consume" -q -l --drain q
}

@test "order: it forgets it again and again" {
	local way n

	lines 9000 >"$T/lines"
	for way in "${ways[@]}"; do
		set --
		for n in 2 4 6 8; do
			set -- "$@" "m0${n}000" "$cli script flush" \
				"m0${n}700" "$BUILD/mq-publish -q $way other x"
		done
		meddle "$@" m09000 "$cli client kill type normal skipme yes"
		# shellcheck disable=SC2086 # several options
		run_mq 0 mq-publish -q -u "$url" $way -l q <"$T/lines"
		taken | cmp - "$T/lines"
		stop_meddling
	done
}

@test "order: memory that is short for a while: the first ones are accepted" {
	local way n

	long_lines 9000 >"$T/lines"
	for way in "${ways[@]}"; do
		meddle m03000 "$cli config set maxmemory 1" \
			m05000 "$cli config set maxmemory 0"
		# shellcheck disable=SC2086 # several options
		run_mq 75 mq-publish -u "$url" $way -l q <"$T/lines"
		taken >"$T/taken"
		n=$(wc -l <"$T/taken")
		assert [ "$n" -gt 1000 ]
		assert [ "$n" -lt 3000 ]
		assert_equal "${stderr_lines[-1]}" "mq-publish: $n messages accepted"
		long_lines "$n" | cmp - "$T/taken"
		stop_meddling
		redis config set maxmemory 0 >/dev/null
	done
}
