#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Why messages were rejected: what is recorded, chosen by, and put into groups.
#
# layouts: rmq rsmq

# shellcheck disable=SC2016

load ../helpers/server
load "../helpers/layout-${LAYOUT:-rmq}"

setup() {
	common_setup
	known q
}

# The reasons of what is rejected, the oldest first.
reasons() {
	"$BUILD/mq-stats" --list rejected --jsonl q |
		perl -MJSON::PP -ne 'print decode_json($_)->{reason} // "-", "\n"'
}

# rejects REASON SCRIPT [OPTION...]: the script rejects the only message.
rejects() {
	local want=$1 text=$2
	shift 2
	run_mq 0 mq-publish q x
	run_mq 1 mq-consume -n 1 "$@" q -- sh -c "$text"
	assert_equal "$(reasons)" "$want"
	run_mq 0 mq-purge --rejected --force q
}

# fails REASON TEXT [TEXT...]: messages that fail with the script of TEXT each.
fails() {
	printf '%s\n' "$@" | run_mq 0 mq-publish -l q
	"$BUILD/mq-consume" -q --drain q -- sh 2>"$T/err" || [ $? = 1 ]
}

@test "reasons: the last text, else the last line of stderr, and how it ended" {
	local full='printf "gzip: a\ngzip: No space left on device\n" >&2;'
	rejects "gzip: No space left on device (exit status 1)" "$full exit 1"
	rejects "gzip: No space left on device (killed by SIGTERM)" "$full kill \$\$"
	rejects "half (exit status 1)" "$full echo run half >&3; exit 1"
	rejects "gzip: No space left on device" "$full echo err >&3"
	rejects "no user" "$full echo err no user >&3; exit 1"
	rejects "gzip: No space left on device (exit status 2 after done)" "$full echo done >&3; exit 2"
	rejects "gzip: No space left on device (no final verb)" "$full" --strict
	rejects "gzip: No space left on device (timed out)" "$full exec sleep 99" --timeout 3s
	rejects "attempts exhausted: gzip: No space left on device (exit status 75)" \
		"$full exit 75" --attempts 1
	rejects "attempts exhausted: gzip: No space left on device (exit status 1)" \
		"$full exit 1" --attempts 1 --retry-on err
	rejects "attempts exhausted: gzip: No space left on device" \
		"$full echo resend 60 >&3" --attempts 1
	rejects "attempts exhausted: 60-later" "$full echo resend 60-later >&3" --attempts 1
	rejects "attempts exhausted" "echo resend 60 >&3" --attempts 1
	# What a log gets is stderr, too.
	rejects "gzip: No space left on device (exit status 1)" "$full exit 1" --log-dir "$T"
	# As much as a pipe holds, at the very end.
	rejects "the end (exit status 1)" \
		'perl -e "print STDERR q(x) x 60000, qq(\nthe end\n)"; exit 1'
}

@test "reasons: of a batch, and of a stream" {
	rejects "oh (exit status 1)" "echo oh >&2; exit 1" --batch 5
	rejects "oh" "echo oh >&2; echo err '#1' >&3" --batch 5
	rejects "x (exit status 1)" "echo oh >&2; echo run '#1' x >&3; exit 1" --batch 5
	rejects "attempts exhausted: oh (killed by SIGKILL)" \
		'echo oh >&2; kill -KILL $$' --batch 5 --attempts 1
	rejects "oh" "read -r x; echo oh >&2; echo err >&3" --stream
	rejects "no" "read -r x; echo oh >&2; echo err no >&3" --stream
	rejects "oh (exit status 3)" "read -r x; echo oh >&2; exit 3" --stream
	rejects "oh (timed out)" "read -r x; echo oh >&2; exec sleep 99" --stream --timeout 3s
	rejects "attempts exhausted: oh (worker ended without a verb)" \
		"read -r x; echo oh >&2" --stream --attempts 1
}

@test "reasons: nothing that drives a terminal, and no end that is cut off" {
	rejects "red? text (exit status 1)" \
		'printf "\033[1;31mred\007\033[0m\ttext\033[K\r\n\n" >&2; exit 1'
	rejects "$(printf '%0200d' 0) (exit status 1)" 'printf "%0300d\n" 0 >&2; exit 1'
	rejects "attempts exhausted: $(printf '%0988d' 0) (exit status 1)" \
		'printf "run %02000d\n" 0 >&3; exit 1' --attempts 1 --retry-on err
}

@test "reasons: --stderr chooses by a line of the last run" {
	fails 'echo disk is full >&2; echo bye >&2; echo err one >&3' \
		'echo err disk is full >&3' 'echo bye disk >&2; exit 1'
	prints 'echo disk is full >&2; echo bye >&2; echo err one >&3' mq-stats --list rejected -l --stderr '^disk' q
	prints 'echo disk is full >&2; echo bye >&2; echo err one >&3' mq-stats --list rejected -l --stderr '^bye$' --reason one q
	run_mq 1 mq-stats --list rejected -l --stderr 'full.bye' q
	run_mq 1 mq-return --stderr nothing q
	run_mq 0 mq-return --dry-run --stderr disk q
	assert_equal "$(held q)" "0 0 0 3"
	run_mq 0 mq-return --stderr '^disk' q
	assert_equal "$(held q)" "1 0 0 2"
	run_mq 0 mq-purge --rejected --force --stderr disk q
	assert_equal "$(held q)" "1 0 0 1"
	run_mq 64 mq-return --stderr '(' q
	assert_regex "$stderr" '^mq-return: --stderr: \(: '
	run_mq 64 mq-stats --stderr x q
	assert_output ""
}

@test "reasons: --reasons puts them into groups, the largest first" {
	tells 1 "mq-stats: q: no message is rejected" mq-stats --reasons q
	run_mq 1 mq-stats --reasons nothing
	assert_regex "$stderr" 'no such queue'
	run_mq 64 mq-stats --reasons
	run_mq 64 mq-stats --reasons q r
	fails 'echo gzip: /data/17.log: full >&2; exit 1' 'echo gzip: /data/4711.log: full >&2; exit 1' \
		'echo gzip: /data/18.log: full >&2; exit 2' 'echo err >&3' \
		'echo err no user 550e8400-e29b-41d4-a716-446655440000 >&3' \
		'echo err no user 660e8400-e29b-41d4-a716-446655440fff >&3' \
		'echo err no user 7 >&3' 'kill -40 $$'
	run_mq 0 mq-stats --reasons q
	assert_line --index 0 --regexp '^COUNT +OLDEST +NEWEST +REASON$'
	assert_equal "$(tail -n +2 <<<"$output" | awk '{ $2 = $3 = ""; print }' | tr -s ' ' | sort)" \
		"1 err
1 gzip: /data/N.log: full (exit status 2)
1 killed by signal 40
1 no user N
2 gzip: /data/N.log: full (exit status 1)
2 no user ID"
	assert_equal "$(sed -n 's/^ *\(2\) .*/\1/p' <<<"$output" | wc -l)" 2
	assert_line --index 1 --regexp '^ +2 '
	assert_line --index 2 --regexp '^ +2 '
	run_mq 0 mq-stats --reasons -n 1 --reason gzip q
	assert_equal "${#lines[@]}" 2
	assert_line --index 1 --regexp ' gzip: /data/N.log: full \(exit status 1\)$'
	tells 1 "mq-stats: q: none of 8 rejected messages matched" mq-stats --reasons --stderr nothing q
	run_mq 0 mq-stats --reasons --json --match 4711 q
	assert_regex "$output" '^\{"queue":"q","reasons":\[\{"reason":"gzip: /data/N\.log: full \(exit status 1\)","count":1,"oldest_ms":([0-9]+),"newest_ms":([0-9]+),"newest_reason":"gzip: /data/4711\.log: full \(exit status 1\)","newest_id":"[0-9A-Za-z]{32}"\}\],"others":0\}$'
	assert_equal "$(held q)" "0 0 0 8"
}

@test "reasons: no more than a thousand are told apart" {
	seq 1001 2100 | run_mq 0 mq-publish -l q
	run_mq 1 mq-consume -q --stream --window 100 -n 1100 q -- \
		perl -ne 'BEGIN { open V, ">&3"; V->autoflush } tr/0-9/a-j/; print V "err $_"'
	run_mq 0 mq-stats --reasons q
	assert_equal "${#lines[@]}" 1002
	assert_line --index 1001 --regexp '^ +100 +- +- +\(other reasons\)$'
	run_mq 0 mq-stats --reasons --json -n 2 q
	assert_regex "$output" '"others":100\}$'
	assert_equal "$(grep -o '"count":1,' <<<"$output" | wc -l)" 2
}
