#!/usr/bin/env bats
# mq-consume --joblog: a line for each run that ended.

# run_mq sets stderr; each test is a subshell of its own.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154

load ../helpers/common

setup_file() {
	server_start
}

teardown_file() {
	server_stop
}

setup() {
	common_setup
	log=$T/log
}

teardown() {
	common_teardown
}

titles=$'Endtime\tQueue\tId\tAttempt\tSlot\tHost\tJobRuntime\tExitval\tVerdict\tText'

# columns N...: of all lines but the first, with "|" between.
columns() {
	tail -n +2 "$log" | cut -f "$(IFS=,; echo "$*")" | tr '\t' '|'
}

lines() {
	wc -l <"$log"
}

lines_are() {
	[ "$(lines)" = "$1" ]
}

@test "joblog: columns, verdicts, statuses and the last text" {
	local id

	script work <<'.'
case $(cat) in
done) echo 'done well' >&3 ;;
silent) ;;
err) echo 'err no such user' >&3 ;;
exit) echo 'from stderr' >&2; exit 3 ;;
kill) kill -SEGV $$ ;;
again) exit 75 ;;
push) echo 'push there' >&3 ;;
esac
.
	id=$("$BUILD/mq-publish" -i q done)
	"$BUILD/mq-publish" -q q silent err exit kill again push
	run_mq 0 mq-consume -q --push p -n 7 --joblog "$log" q -- "$T/work"
	run -0 head -n 1 "$log"
	assert_output "$titles"
	run -0 columns 2 4 5 8 9 10
	assert_output 'q|1|1|0|done|well
q|1|1|0|done|-
q|1|1|0|rejected|no such user
q|1|1|3|rejected|from stderr (exit status 3)
q|1|1|SEGV|rejected|killed by SIGSEGV
q|1|1|75|retried|exit status 75
q|1|1|0|pushed|there'
	run -0 columns 3 6
	assert_line -n 0 "$id|$(hostname)"
	# Unix time, and seconds, as GNU parallel has them.
	run -0 columns 1 7
	assert_line -n 0 --regexp '^[0-9]{10}\.[0-9]{3}\|0\.[0-9]{3}$'
	((${lines[0]%%.*} >= $(date +%s) - 600))
}

@test "joblog: the attempt, and seconds of a run" {
	"$BUILD/mq-publish" -q q a
	run_mq 0 mq-consume --backoff 1ms..1ms -n 2 --joblog "$log" q -- \
		sh -c 'perl -e "select undef, undef, undef, 0.3"; [ "$MQ_ATTEMPT" = 2 ] || exit 75'
	run -0 columns 4 9
	assert_output '1|retried
2|done'
	awk -F '\t' 'NR > 1 && ($7 < 0.3 || $7 > 100) {exit 1}' "$log"
}

@test "joblog: slots are numbered from 1" {
	"$BUILD/mq-publish" -q q a b c
	# Each waits for the others.
	run_mq 0 mq-consume -j 3 -n 3 --joblog "$log" q -- sh -c '
		touch "$T/in.$(cat)"
		until [ -e "$T/in.a" ] && [ -e "$T/in.b" ] && [ -e "$T/in.c" ]; do :; done'
	run -0 columns 5
	assert_equal "$(sort -n <<<"$output" | tr '\n' ' ')" "1 2 3 "
}

@test "joblog: whatever a text holds, a line stays a line" {
	"$BUILD/mq-publish" -q q 1 2
	"$BUILD/mq-publish" -q --raw 'a queue\' raw
	run_mq 0 mq-consume -q --drain --joblog "$log" q 'a queue\' -- \
		perl -e 'open my $f, ">&=3"; print $f "err a\tb\e[31m\xff\\ \xe2\x82\xac \xe2\x80\xae\n"'
	lines_are 4
	awk -F '\t' 'NF != 10 {exit 1}' "$log"
	run -0 columns 2 10
	assert_line -n 2 'a queue\\|a\tb\033[31m\377\\ € \342\200\256'
	refute_output --partial $'\e'
}

@test "joblog: many consumers share a file, which has one first line" {
	local i all=()

	"$BUILD/mq-publish" -q -l q < <(seq 400)
	for i in {1..8}; do
		"$BUILD/mq-consume" --drain --joblog "$log" q -- true 3>&- &
		all+=($!)
	done
	wait "${all[@]}"
	lines_are 401
	assert_equal "$(grep -cFx "$titles" "$log")" 1
	run -0 head -n 1 "$log"
	assert_output "$titles"
	assert_equal "$(awk -F '\t' 'NF == 10' "$log" | wc -l)" 401
	assert_equal "$(columns 3 | sort -u | wc -l)" 400
}

@test "joblog: each message of a batch has a line" {
	script work <<'.'
cat >/dev/null
echo 'err #2 bad' >&3
echo 'done rest' >&3
.
	"$BUILD/mq-publish" -q q a b c
	run_mq 0 mq-consume -q --batch 3 --drain --joblog "$log" q -- "$T/work"
	run -0 columns 5 8 9 10
	assert_output '1|0|done|rest
1|0|rejected|bad
1|0|done|rest'
	assert_equal "$(columns 7 | sort -u | wc -l)" 1
}

@test "joblog: each message of a stream has a line; its worker has no status yet" {
	"$BUILD/mq-publish" -q q a b c d
	run_mq 0 mq-consume -q --stream --drain --joblog "$log" q -- perl -e '
		open my $f, ">&=3"; $f->autoflush(1);
		while (<STDIN>) { chomp; exit 3 if $_ eq "d"; print $f ($_ eq "b" ? "err" : "done") . " $_\n" }'
	run -0 columns 5 8 9 10
	assert_output '1|-|done|a
1|-|rejected|b
1|-|done|c
1|3|rejected|exit status 3'
}

@test "joblog: a run that is broken off is returned" {
	"$BUILD/mq-publish" -q q a
	start_mq mq-consume --grace 0s --joblog "$log" q -- sh -c 'touch "$T/runs"; exec sleep 1000'
	eventually 20 test -e "$T/runs"
	stop_mq
	run -0 columns 4 8 9
	assert_output '1|TERM|returned'
	run_mq 78 mq-consume --joblog "$log" q -- sh -c 'exit 127'
	run -0 columns 4 8 9
	assert_line -n 1 '1|127|returned'
	held_is q "1 0 0 0"
}

@test "joblog: what never ran has no line" {
	"$BUILD/mq-publish" -q -e 1ms q late
	tick
	"$BUILD/mq-publish" -q q good
	run_mq 0 mq-consume -q --drain --joblog "$log" q -- true
	run -0 columns 9
	assert_output "done"
}

@test "joblog: a lease that is lost" {
	no_cluster "heartbeats of plain keys"
	"$BUILD/mq-publish" -q q a
	start_mq mq-consume --no-clean --joblog "$log" q -- sh -c 'touch "$T/runs"; exec sleep 1000'
	eventually 20 test -e "$T/runs"
	redis del "rmq::connection::$(connections)::heartbeat" >/dev/null
	eventually 60 lines_are 2
	run -0 columns 4 8 9
	assert_output '1|KILL|lost'
	stop_mq
}

@test "joblog: HUP opens it anew" {
	"$BUILD/mq-publish" -q q a
	start_mq mq-consume --joblog "$log" q -- true
	eventually 20 lines_are 2
	mv "$log" "$log.1"
	kill -HUP "$pid"
	eventually 20 test -s "$log"
	"$BUILD/mq-publish" -q q b
	eventually 20 lines_are 2
	assert_equal "$(wc -l <"$log.1")" 2
	run -0 head -n 1 "$log"
	assert_output "$titles"
	# A file that cannot be opened any more: the old one is written.
	mv "$log" "$log.2"
	mkdir "$log"
	kill -HUP "$pid"
	eventually 20 grep -qxF "mq-consume: $log: Is a directory; going on with the old file" "$T/err"
	"$BUILD/mq-publish" -q q c
	log=$log.2
	eventually 20 lines_are 3
	stop_mq
}

@test "joblog: a full disk is said once, and loses no message" {
	"$BUILD/mq-publish" -q q a b c
	run_mq 0 mq-consume --drain --joblog /dev/full q -- cat
	assert_output abc
	[ "$stderr" = "mq-consume: /dev/full: No space left on device; lines of the job log are lost" ]
	held_is q "0 0 0 0"
}

@test "joblog: after a line that was cut, the next one is whole" {
	local n

	"$BUILD/mq-publish" -q q a
	run_mq 0 mq-consume --drain --joblog "$log" q -- true
	n=$(stat -c %s "$log")
	"$BUILD/mq-publish" -q q b
	prlimit --fsize=$((n + 20)):unlimited "$BUILD/mq-consume" \
		--joblog "$log" q -- true 2>"$T/err" 3>&- &
	pid=$!
	eventually 20 grep -q 'lines of the job log are lost' "$T/err"
	assert_equal "$(stat -c %s "$log")" $((n + 20))
	prlimit --fsize=unlimited --pid "$pid"
	"$BUILD/mq-publish" -q q c
	eventually 20 lines_are 4
	stop_mq
	run -0 tail -n 1 "$log"
	assert_equal "$(awk -F '\t' '{print NF}' <<<"$output")" 10
	assert_equal "$(grep -c lost "$T/err")" 1
}

@test "joblog: what it cannot be" {
	run_mq 64 mq-consume --joblog "$log" q
	assert_regex "$stderr" '--joblog needs a COMMAND; add -- COMMAND'
	"$BUILD/mq-publish" -q q a
	run_mq 74 mq-consume --joblog "$T" q -- true
	[ "$stderr" = "mq-consume: --joblog: $T: Is a directory" ]
	run_mq 74 mq-consume --joblog "$T/none/log" q -- true
	[ "$stderr" = "mq-consume: --joblog: $T/none/log: No such file or directory" ]
	mkfifo "$T/fifo"
	run_mq 74 mq-consume --joblog "$T/fifo" q -- true
	held_is q "1 0 0 0"
}
