#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# -I: the payload is an argument.

load ../helpers/server

setup() {
	common_setup
	# Each argument on a line, in brackets, and the input at the end.
	script show <<-'END'
		printf '[%s]\n' "$@"
		wc -c
	END
}

reason_is() {
	run_mq 0 mq-stats --list rejected --jsonl q
	assert_output --partial "$1"
}

@test "arguments: each token in each argument, also within one, but not in the command's name" {
	printf 'printf "[%%s]\\n" "$@"\nwc -c' | script '{}'
	run_mq 0 mq-publish q 'a b'
	run_mq 0 mq-consume -n 1 -I {} q -- "$T/{}" {} x{}y{}{}z '' '{ }' -- '{}'
	assert_output '[a b]
[xa bya ba bz]
[]
[{ }]
[--]
[a b]
0'
	run_mq 0 mq-publish q one
	prints $'[one@]\n[{}]\n0' mq-consume -n 1 --replace=@@ q -- "$T/show" @@@ {}
	held_is q "0 0 0 0"
	# Verbs, retries and variables are as always.
	run_mq 0 mq-publish q x
	prints "x q" mq-consume -n 2 -I {} q -- sh -c '
		[ "$MQ_ATTEMPT" = 2 ] && echo "$1 $MQ_QUEUE" || echo resend >&3' sh {}
}

@test "arguments: no shell looks at a payload; one newline at the end is dropped, and no more" {
	local bad='$(touch '"$T"'/hacked) `id` ; * "x'"'"' \n {} %s &'
	run_mq 0 mq-publish q "$bad"
	prints "[$bad]"$'\n0' mq-consume -n 1 -I {} q -- "$T/show" {}
	[ ! -e "$T/hacked" ]
	run_mq 0 mq-publish q $'a\nb\n\n' $'\n' ''
	prints $'[a\nb\n]\n[.]\n0\n[]\n[.]\n0\n[]\n[.]\n0' mq-consume -n 3 -I {} q -- "$T/show" {} .
	# Bytes that are no text.
	perl -e 'print map chr, 1..255' >"$T/bytes"
	"$BUILD/mq-publish" q <"$T/bytes"
	"$BUILD/mq-consume" -n 1 -I {} q -- perl -e 'print $ARGV[0]' {} | cmp - "$T/bytes"
}

@test "arguments: what cannot be one is rejected, and says why" {
	local -a many
	printf 'a\0b' | run_mq 0 mq-publish q
	run_mq 0 mq-publish q good
	run_mq 1 mq-consume -n 2 -I {} q -- "$T/show" {}
	assert_output $'[good]\n0'
	reason_is 'its payload has a NUL byte, which no argument can have'
	perl -e 'print "x" x 131071, "\n"' | run_mq 0 mq-publish q
	prints 131071 mq-consume -n 1 -I {} q -- perl -e 'print length $ARGV[0]' {}
	perl -e 'print "x" x 131072' | run_mq 0 mq-publish q
	prints '' mq-consume -n 1 -I {} q -- perl -e 'print length $ARGV[0]' {}
	reason_is 'its payload is too long for an argument'
	# Or too long together.
	mapfile -t many < <(yes '{}{}{}{}{}{}{}{}' | head -n 5000)
	perl -e 'print "x" x 131071' | run_mq 0 mq-publish q
	perl -e 'print "x" x 16000' | run_mq 0 mq-publish q
	run_mq 0 mq-publish q good
	run_mq 1 mq-consume -n 2 -I {} q -- echo "${many[@]}"
	held_is q "1 0 0 4"
	reason_is 'its payload and headers are too long for a command'
	prints good mq-consume -n 1 -I {} q -- echo {}
}

@test "arguments: --running shows the command as it was given" {
	mkfifo "$T/go"
	run_mq 0 mq-publish q "$T/go"
	start_mq mq-consume -n 1 -I {} q -- sh -c 'read -r x <"$1"
		exit 0' sh {}
	running() {
		"$BUILD/mq-stats" --running --json q |
			grep -F "\"script\":\"sh -c 'read -r x <\\\"\$1\\\"   exit 0' sh '{}'\""
	}
	eventually 10 running
	echo >"$T/go"
	wait "$pid"
}
