#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The example mq-webhook, which posts what --notify publishes to a real HTTP server.

# run_mq sets output and stderr; each test is a subshell of its own.
# shellcheck disable=SC2030,SC2031,SC2154

load ../helpers/server

setup() {
	common_setup
	webhook=$BATS_TEST_DIRNAME/examples/mq-webhook
	python3 "$BATS_TEST_DIRNAME/webhook.py" "$T/posts" >"$T/port" 3>&- &
	http=$!
	eventually 10 test -s "$T/port"
	url=http://127.0.0.1:$(cat "$T/port")
}

teardown() {
	kill "$http"
	common_teardown
}

# One notice, of $id.
notice() {
	redis flushall >/dev/null
	: >"$T/posts"
	run_mq 0 mq-publish -i q x
	id=$output
	run_mq 0 mq-consume --drain -q --notify ends q -- true
}

# posts PATH [N]: it is posted there, in so many runs.
posts() {
	run_mq 0/1/75 mq-consume -q -n "${2:-1}" --backoff 0s..0s --attempts 3 ends -- \
		"$webhook" "$url/$1"
}

@test "webhook: 2xx is done; the server has the JSON" {
	notice
	posts 204
	assert_equal "$(held ends)" "0 0 0 0"
	run cat "$T/posts"
	assert_regex "$output" '^/204 application/json [A-Za-z0-9]{32} \{'
	assert_regex "$output" "\"id\":\"$id\",\"queue\":\"q\",\"state\":\"done\""
}

@test "webhook: what else is tried again, always with the same key, or rejected" {
	local path runs posts state error
	export WEBHOOK_TIME=1

	while read -r path runs posts state; do
		notice
		posts "$path" "$runs"
		assert_equal "$path: $(wc -l <"$T/posts") $(held ends)" "$path: $posts $state"
		(($(cut -d' ' -f3 "$T/posts" | sort -u | wc -l) <= 1))
	done <<-'END'
		then/500 2 2 0 0 0 0
		503 3 3 0 0 0 1
		302 1 1 0 0 0 1
		hang 1 1 1 0 0 0
		404 1 1 0 0 0 1
	END
	assert_equal "$(element ends rejected | header Mq-Error)" "HTTP 404"
	notice
	run_mq 75 mq-consume -q -n 1 --backoff 0s..0s ends -- "$webhook" http://127.0.0.1:1/
	assert_equal "$(held ends)" "1 0 0 0"
}

# rests COMMAND...: it cannot post, and uses up no attempt of what is there.
rests() {
	redis flushall >/dev/null
	seq 13 | "$BUILD/mq-publish" -l ends
	run_mq 75 mq-consume -q -n 13 --attempts 2 --backoff 1h..1h ends -- "$@"
	assert_regex "$stderr" 'exit status 126 for 10 messages in a row; resting'
	assert_equal "$(held ends)" "0 13 0 0"
}

@test "webhook: a wrong URL, and no curl, use up no attempts; the notices stay" {
	rests "$webhook" file:///etc/passwd
	rests "$webhook"
	rests env PATH=/nowhere /bin/sh "$webhook" "$url/200"
}
