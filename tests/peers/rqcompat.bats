#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What scripts that were written for RQ find.  The verdicts of RQ's own drivers
# (send_test_*) are in consume/verdict.bats, dup in consume/dup.bats.

# shellcheck disable=SC2016

load ../helpers/server

# --- --rq -----------------------------------------------------------------------

# rq ARGS...: as RQ would run the script, here through a link to it.
rq() {
	mkdir -p "$T/queue"
	ln -sf "$T/relay" "$T/run"
	run_mq 0/1 mq-consume --drain --rq --work-dir "$T/queue" "$@"
}

@test "rqcompat: --rq: a script finds its message, its files, and itself" {
	echo 'a file' >"$T/file"
	script relay /bin/bash <<-'END'
		[ "$PWD" = "$RQ_MSG_DIR" ] || exit 1
		cat ../attach/one
		ls ../attach ..
		echo "$RQ_SCRIPT $RQ_REALSCRIPT $# $RQ_COUNT"
		cat ../msg; echo
		if [ -e relay_id ]; then rm relay_id; echo "relayed there" >&3; else
			: >relay_id; echo resend 0 >&3; fi
	END
	run_mq 0 mq-publish -i -P 1='two "words"' --attach one="$T/file" q ''
	id=$output
	rq q -- bash -lc "$T/run"
	assert_line --index 0 'a file'
	assert_line "$T/run $T/relay 0 0"
	assert_equal "$(sed -n '/^{/{p;q}' <<<"$output" | python3 -c '
import json, sys
v = json.load(sys.stdin)
print(v["msg_id"], v["param1"], v["count"], v["max_count"], "param2" in v, v["due"] > 1)
print(v["dest"], v["orig_msg_id"].endswith("/q/q/" + v["msg_id"]))')" \
		"$id two \"words\" 0 15 False True"$'\nq True'
	# The second run had the directory of the first.
	assert_equal "$(held q)" "0 0 0 0"
	[ -z "$(ls "$T/queue")" ]
}

@test "rqcompat: --rq: dup is answered with a full id, silence is an error" {
	run_mq 0 mq-publish other ''
	run_mq 0 mq-publish q ''
	script relay /bin/bash <<-'END'
		echo dup 0-X-other >&3
		read -r -u 4 answer
		echo "done $answer" >&3
	END
	rq -v q -- "$T/run"
	assert_regex "$stderr" "done: ok http://$(uname -n)/q/other/[0-9A-Za-z]{32}"
	script relay <<-'END'
		exit 0
	END
	run_mq 0 mq-publish q ''
	rq q -- "$T/run"
	assert_equal "$(held q)" "0 0 0 1"
	# Those of a rejected message stay.
	[ -e "$T/queue/$(element q rejected | header Mq-Id)/msg" ]
}

@test "rqcompat: --rq: no verb is err whatever the exit status, and the consumer goes on" {
	script relay <<-'END'
		[ ! -e ../attach ] || exit 1
		sed 's/.*"dest": *"\([^"]*\)".*/\1/' ../msg
		echo
		exit "$RQ_PARAM1"
	END
	for i in 127 126 75; do
		run_mq 0 mq-publish -P "1=$i" q ''
	done
	run_mq 0 mq-publish --jsonl q \
		<<<'{"payload":"","headers":{"Mq-Param1":"0","Mq-Dest":"http://h:1/q/x"}}'
	mkdir -p "$T/queue"
	run --separate-stderr "$BUILD/mq-consume" --drain --rq --strict \
		--work-dir "$T/queue" q -- "$T/relay"
	assert_output $'q\nq\nq\nhttp://h:1/q/x'
	assert_equal "$(held q)" "0 0 0 4"
	assert_equal "$(element q rejected | header Mq-Error)" "no final verb"
	assert_equal "$(grep -c 'rejected: exit status [17]' <<<"$stderr")" 3
}
