#!/usr/bin/env bats
# What RQ's own drivers (send_test_*) ask for, said anew for our tools: a
# message is sent, its script runs, and this is what has become of it.  The
# verdicts one by one are in consume/verdict.bats, dup in consume/dup.bats.

# shellcheck disable=SC2016

load ../helpers/server

setup() {
	common_setup
	# As RQ's test_script.sh: what it does is its first parameter.
	script test_script /bin/bash <<-'END'
		w() { echo "$1 $2" >&3; }
		echo "$RQ_PARAM1 $RQ_COUNT" >>"$T/runs"
		w run "just started"
		case $RQ_PARAM1 in
		done | slow) w run "a little"; w done "done sleeping" ;;
		err) w err "by design" ;;
		sneaky) w done "sneaky"; exit 1 ;;
		resend1) [ "$RQ_COUNT" -gt 0 ] || { w resend 0; exit 0; }
			w done "on the second run" ;;
		resend2) [ "$RQ_COUNT" -ge 6 ] || { w resend 0; exit 0; }
			w done "on the seventh run" ;;
		esac
	END
}

send() {
	run_mq 0 mq-publish -i -P "1=$1" "${@:2}" q ''
	id=$output
}

work() {
	run_mq 0/1 mq-consume -v --drain "$@" q -- "$T/test_script"
}

@test "rqcompat: send_test_done" {
	send done
	work
	assert_equal "$(held q)" "0 0 0 0"
	assert_equal "$(cat "$T/runs")" "done 0"
	assert_regex "$stderr" "$id.*done sleeping"
}

@test "rqcompat: send_test_err" {
	send err
	work
	assert_equal "$(held q)" "0 0 0 1"
	assert_equal "$(element q rejected | header Mq-Error)" "by design"
}

@test "rqcompat: send_test_sneaky: done, and then exit 1" {
	send sneaky
	work
	assert_equal "$(held q)" "0 0 0 1"
	assert_regex "$(element q rejected | header Mq-Error)" "exit status 1"
}

@test "rqcompat: send_test_resend: RQ_COUNT counts them" {
	send resend1
	work
	assert_equal "$(cat "$T/runs")" $'resend1 0\nresend1 1'
	send resend2
	work
	assert_equal "$(tail -n 1 "$T/runs")" "resend2 6"
	assert_equal "$(held q)" "0 0 0 0"
}

@test "rqcompat: test_web_max_count: three runs, then err" {
	send resend2
	work --attempts 3
	assert_equal "$(xargs <"$T/runs")" "resend2 0 resend2 1 resend2 2"
	assert_equal "$(element q rejected | header Mq-Error)" \
		"attempts exhausted"
}

@test "rqcompat: send_test_single_que: one that waits is enough" {
	send done -k single --unique queued
	run_mq 1 mq-publish -P 1=done -k single --unique queued q ''
	assert_equal "$(held q)" "1 0 0 0"
	work
	send done -k single --unique queued
}

@test "rqcompat: send_test_coalesce: those that wait for the same are one run" {
	local i

	# RQ lets them wait and absorbs them; here they are not accepted.
	send done -k a
	for i in 1 2 3; do
		run_mq 1 mq-publish -P 1=done -k a q ''
	done
	send done -k b
	work
	assert_equal "$(wc -l <"$T/runs")" 2
	# What failed lets go of it, too.
	send err -k a
	work
	send err -k a
}

@test "rqcompat: send_test_fast_collide: a hundred at once" {
	local i pids=()

	for i in {1..20}; do
		"$BUILD/mq-publish" -i -P 1=done q 1 2 3 4 5 >"$T/ids.$i" 3>&- &
		pids+=($!)
	done
	wait "${pids[@]}"
	assert_equal "$(cat "$T"/ids.* | sort -u | wc -l)" 100
	work -j 4
	assert_equal "$(grep -c '^done 0$' "$T/runs")" 100
}

@test "rqcompat: test_message_blocking: equal ones one by one, others overtake" {
	script block <<-'END'
		read -r x
		echo "start $x" >>"$T/log"
		case $x in A1) until [ -e "$T/unlock" ]; do sleep 0.02; done ;; esac
		echo "end $x" >>"$T/log"
	END
	run_mq 0 mq-publish -g a q A1
	run_mq 0 mq-publish -g a q A2
	run_mq 0 mq-publish -g b q B1
	start_mq mq-consume -j 3 q -- "$T/block"
	eventually 10 grep -qx 'end B1' "$T/log"
	run grep A2 "$T/log"
	assert_failure
	touch "$T/unlock"
	eventually 10 grep -qx 'end A2' "$T/log"
	stop_mq
	assert_equal "$(grep A "$T/log" | xargs)" "start A1 end A1 start A2 end A2"
}

@test "rqcompat: send_test_large: a parameter of 100 kB" {
	local large

	large=$(head -c 100000 /dev/zero | tr '\0' x)
	script size <<-'END'
		printf '%s' "$RQ_PARAM2" | wc -c >"$T/size"
	END
	run_mq 0 mq-publish -P "2=$large" q ''
	run_mq 0 mq-consume --drain q -- "$T/size"
	assert_equal "$(xargs <"$T/size")" 100000
}

@test "rqcompat: test_run_admin_pause: it takes messages, and runs none" {
	run_mq 0 mq-publish -l q </dev/null
	run_mq 0 mq-pause q
	send done
	start_mq mq-consume q -- "$T/test_script"
	eventually 10 consumed
	assert_equal "$(held q)" "1 0 0 0"
	run_mq 0 mq-pause --resume q
	eventually 10 test -s "$T/runs"
	stop_mq
}

consumed() {
	[ -n "$(redis smembers "rmq::connection::$(connections)::queues")" ]
}

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

@test "rqcompat: --rq: is for a command for each message, in a directory" {
	run_mq 64 mq-consume --rq q -- cat
	run_mq 64 mq-consume --rq --work-dir "$T/w" q
	run_mq 64 mq-consume --rq --work-dir "$T/w" --batch 3 q -- cat
}
