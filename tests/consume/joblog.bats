#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-consume --joblog: a line for each run that ended.
# needs: jobs

load ../helpers/server

setup() {
	common_setup
	log=$T/log
}

titles=$'Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\t#\tQueue\tId\tAttempt\tSlot\tVerdict\tText'

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
	# The last one runs twice; one that expires never does.
	script work <<'.'
case $MQ_ATTEMPT$(cat) in
1done) echo 'done well' >&3 ;;
1silent) ;;
1err) echo 'err no such user' >&3 ;;
1exit) echo 'from stderr' >&2; exit 3 ;;
1kill) kill -SEGV $$ ;;
1push) echo 'push there' >&3 ;;
1again) perl -e "select undef, undef, undef, 0.3"; exit 75 ;;
esac
.
	"$BUILD/mq-publish" -q -e 1ms q late
	tick
	id=$("$BUILD/mq-publish" -i q done)
	"$BUILD/mq-publish" -q q silent err exit kill push again
	run_mq 1 mq-consume -q --push p -n 8 --backoff 1ms..1ms --joblog "$log" q -- "$T/work"
	run -0 head -n 1 "$log"
	assert_output "$titles"
	# What is not done is a failure, whatever the status of the process.
	run -0 columns 1 5 6 7 8 10 11 13 14 15 16
	assert_output '1|0|0|0|0|#|q|1|1|done|well
2|0|0|0|0|#|q|1|1|done|-
3|0|0|1|0|#|q|1|1|rejected|no such user
4|0|0|3|0|#|q|1|1|rejected|from stderr (exit status 3)
5|0|0|0|11|#|q|1|1|rejected|killed by SIGSEGV
6|0|0|0|0|#|q|1|1|pushed|there
7|0|0|75|0|#|q|1|1|retried|exit status 75
8|0|0|0|0|#|q|2|1|done|-'
	run -0 columns 2 9 12
	assert_line -n 0 "$(hostname)|$T/work|$id"
	# Unix time, and seconds.
	run -0 columns 3 4
	assert_line -n 0 --regexp '^[0-9]{10}\.[0-9]{3}\|0\.[0-9]{3}$'
	((${lines[0]%%.*} >= $(date +%s) - 600))
	awk -F '\t' '$7 == 75 && ($4 < 0.3 || $4 > 100) {exit 1}' "$log"
}

@test "joblog: whatever a text holds, a line stays a line" {
	"$BUILD/mq-publish" -q q 1 2
	"$BUILD/mq-publish" -q --raw 'a queue\' raw
	run_mq 1 mq-consume -q --drain --joblog "$log" q 'a queue\' -- \
		perl -e 'open my $f, ">&=3"; print $f "err a\tb\e[31m\xff\\ \xe2\x82\xac \xe2\x80\xae\n"'
	lines_are 4
	awk -F '\t' 'NF != 16 {exit 1}' "$log"
	run -0 columns 11 16
	assert_line -n 2 'a queue\\|a\tb\033[31m\377\\ € \342\200\256'
	refute_output --partial $'\e'
}

@test "joblog: many consumers share a file, which has one first line; slots from 1" {
	local i all=()
	"$BUILD/mq-publish" -q -l q < <(seq 400)
	for i in {1..8}; do
		"$BUILD/mq-consume" -j 2 --drain --joblog "$log" q -- true 3>&- &
		all+=($!)
	done
	wait "${all[@]}"
	lines_are 401
	assert_equal "$(grep -nFx "$titles" "$log")" "1:$titles"
	assert_equal "$(awk -F '\t' 'NF == 16' "$log" | wc -l)" 401
	assert_equal "$(columns 12 | sort -u | wc -l)" 400
	assert_equal "$(columns 1)" "$(seq 400)"
	assert_equal "$(columns 14 | sort -u | xargs)" "1 2"
}

@test "joblog: each message of a batch and of a stream has a line; its worker has no status yet" {
	"$BUILD/mq-publish" -q q a b c
	run_mq 1 mq-consume -q --batch 3 --drain --joblog "$log" q -- \
		sh -c 'printf "err #2 bad\ndone rest\n" >&3'
	run -0 columns 1 7 14 15 16
	assert_output '1|0|1|done|rest
2|1|1|rejected|bad
3|0|1|done|rest'
	assert_equal "$(columns 4 | sort -u | wc -l)" 1
	rm "$log"
	"$BUILD/mq-publish" -q q a b c d
	run_mq 1 mq-consume -q --stream --drain --joblog "$log" q -- perl -e '
		open my $f, ">&=3"; $f->autoflush(1);
		while (<STDIN>) { chomp; exit 3 if $_ eq "d"; print $f ($_ eq "b" ? "err" : "done") . " $_\n" }'
	run -0 columns 7 14 15 16
	assert_output '0|1|done|a
1|1|rejected|b
0|1|done|c
3|1|rejected|exit status 3'
}

@test "joblog: a run that is broken off is returned, and a lease that is lost" {
	"$BUILD/mq-publish" -q q a
	start_mq mq-consume --no-clean --grace 0s --joblog "$log" q -- \
		sh -c 'touch "$T/runs"; exec sleep 1000'
	eventually 20 test -e "$T/runs"
	stop_mq
	run -0 columns 7 8 13 15
	assert_output '0|15|1|returned'
	held_is q "1 0 0 0"
	[ "${TOPOLOGY-}" != cluster ] || return 0
	rm "$T/runs"
	start_mq mq-consume --no-clean --joblog "$log" q -- sh -c 'touch "$T/runs"; exec sleep 1000'
	eventually 20 test -e "$T/runs"
	redis del "rmq::connection::$(connections)::heartbeat" >/dev/null
	eventually 60 lines_are 3
	assert_equal "$(columns 7 8 13 15 | tail -n 1)" '0|9|1|lost'
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

@test "joblog: a full disk is said once, and loses no message; what it cannot be" {
	"$BUILD/mq-publish" -q q a b c
	run_mq 0 mq-consume --drain --joblog /dev/full q -- cat
	assert_output abc
	[ "$stderr" = "mq-consume: /dev/full: No space left on device; lines of the job log are lost" ]
	"$BUILD/mq-publish" -q q a
	run_mq 74 mq-consume --joblog "$T" q -- true
	[ "$stderr" = "mq-consume: --joblog: $T: Is a directory" ]
	run_mq 74 mq-consume --joblog "$T/none/log" q -- true
	[ "$stderr" = "mq-consume: --joblog: $T/none/log: No such file or directory" ]
	ln -s "$T/elsewhere" "$T/link"
	run_mq 74 mq-consume --joblog "$T/link" q -- true
	assert_regex "$stderr" "^mq-consume: --joblog: $T/link: (Too many levels of symbolic links|Symbolic link loop)\$"
	[ ! -e "$T/elsewhere" ]
	mkfifo "$T/fifo"
	run_mq 74 mq-consume --joblog "$T/fifo" q -- true
	held_is q "1 0 0 0"
	# The links of the system to our own descriptors are followed.
	run_mq 0 mq-consume --drain --joblog /dev/stderr q -- true
	assert_regex "$stderr" $'\tdone\t-$'
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
	assert_equal "$(awk -F '\t' '{print NF}' <<<"$output")" 16
	assert_equal "$(grep -c lost "$T/err")" 1
}

# again OPTION COMMAND ARGUMENT...: GNU parallel goes on with the log.
again() {
	HOME=$T run -0 parallel --will-cite -j 1 "$1" --joblog "$log" "${@:2}"
}

@test "joblog: parallel runs again what has failed" {
	script work <<'.'
read -r x
[ "$x" = done ] || echo "err \$(touch $T/evil); touch $T/evil" >&3
.
	"$BUILD/mq-publish" -q q done bad done bad
	run_mq 1 mq-consume -q -n 4 --joblog "$log" q -- "$T/work" "it's" $'a\\b\n' '' '#'
	# By the place of the message.
	cp "$log" "$T/copy"
	again --resume-failed echo ::: a b c d
	assert_output "b
d"
	again --resume-failed echo ::: a b c d e
	assert_output "e"
	# By its id; what parallel adds to the log is counted, too.
	columns 12 | head -n 4 >"$T/ids"
	log=$T/copy
	again --resume-failed "$BUILD/mq-return" -q --id {} q :::: "$T/ids"
	held_is q "2 0 0 0"
	run_mq 0 mq-consume -q -n 2 --joblog "$log" q -- cat
	assert_equal "$(columns 1 7 | tail -n 2)" "7|0
8|0"
	# Our columns are never words of the command.
	"$BUILD/mq-publish" -q q bad
	log=$T/third
	run_mq 1 mq-consume -q -n 1 --joblog "$log" q -- "$T/work" "it's" '#' $'a\tb'
	printf '%s\n' '#!/bin/sh' 'printf "<%s>" "$@"' >"$T/work"
	again --retry-failed
	assert_output "<it's><#><a b>"
	assert [ ! -e "$T/evil" ]
}
