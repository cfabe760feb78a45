#!/usr/bin/env bats
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

@test "arguments: each token in each argument, also within one" {
	run_mq 0 mq-publish q 'a b'
	run_mq 0 mq-consume -n 1 -I {} q -- "$T/show" {} x{}y{}{}z '' '{ }' -- '{}'
	assert_output '[a b]
[xa bya ba bz]
[]
[{ }]
[--]
[a b]
0'
	held_is q "0 0 0 0"
}

@test "arguments: --replace with a token of several letters" {
	run_mq 0 mq-publish q one
	run_mq 0 mq-consume -n 1 --replace=@@ q -- "$T/show" @@@ {}
	assert_output $'[one@]\n[{}]\n0'
}

@test "arguments: no shell looks at a payload" {
	local bad='$(touch '"$T"'/hacked) `id` ; * "x'"'"' \n {} %s &'
	run_mq 0 mq-publish q "$bad"
	run_mq 0 mq-consume -n 1 -I {} q -- "$T/show" {}
	assert_output "[$bad]"$'\n0'
	[ ! -e "$T/hacked" ]
}

@test "arguments: one newline at the end is dropped, and no more" {
	printf 'a\nb\n\n' | run_mq 0 mq-publish q
	printf '\n' | run_mq 0 mq-publish q
	printf '' | run_mq 0 mq-publish q
	run_mq 0 mq-consume -n 3 -I {} q -- "$T/show" {} .
	assert_output $'[a\nb\n]\n[.]\n0\n[]\n[.]\n0\n[]\n[.]\n0'
}

@test "arguments: bytes that are no text" {
	perl -e 'print map chr, 1..255' >"$T/bytes"
	run_mq 0 mq-publish q <"$T/bytes"
	run_mq 0 mq-consume -n 1 -I {} q -- perl -e 'print $ARGV[0]' {} >"$T/got"
	"$BUILD/mq-publish" q <"$T/bytes"
	"$BUILD/mq-consume" -n 1 -I {} q -- perl -e 'print $ARGV[0]' {} >"$T/got"
	cmp "$T/bytes" "$T/got"
}

@test "arguments: the command's name stays" {
	printf 'echo {}-script' | script '{}'
	run_mq 0 mq-publish q true
	run_mq 0 mq-consume -n 1 -I {} q -- "$T/{}" {}
	assert_output '{}-script'
}

@test "arguments: a NUL byte rejects the message" {
	printf 'a\0b' | run_mq 0 mq-publish q
	run_mq 0 mq-publish q good
	run_mq 1 mq-consume -n 2 -I {} q -- "$T/show" {}
	assert_output $'[good]\n0'
	held_is q "0 0 0 1"
	reason_is 'its payload has a NUL byte, which no argument can have'
}

@test "arguments: the longest one, and one that is too long" {
	perl -e 'print "x" x 131071, "\n"' | run_mq 0 mq-publish q
	run_mq 0 mq-consume -n 1 -I {} q -- perl -e 'print length $ARGV[0]' {}
	assert_output 131071
	perl -e 'print "x" x 131072' | run_mq 0 mq-publish q
	run_mq 1 mq-consume -n 1 -I {} q -- perl -e 'print length $ARGV[0]' {}
	assert_output ''
	held_is q "0 0 0 1"
	reason_is 'its payload is too long for an argument'
}

@test "arguments: too long together" {
	local i
	local -a many=()
	for i in {1..5000}; do many+=({}{}{}{}{}{}{}{}); done
	perl -e 'print "x" x 131071' | run_mq 0 mq-publish q
	perl -e 'print "x" x 16000' | run_mq 0 mq-publish q
	run_mq 0 mq-publish q good
	run_mq 1 mq-consume -n 2 -I {} q -- echo "${many[@]}"
	held_is q "1 0 0 2"
	reason_is 'its payload and headers are too long for a command'
	run_mq 0 mq-consume -n 1 -I {} q -- echo {}
	assert_output good
}

@test "arguments: verbs, retries and the variables are as always" {
	run_mq 0 mq-publish q x
	run_mq 0 mq-consume -n 2 -I {} q -- sh -c '
		[ "$MQ_ATTEMPT" = 2 ] && echo "$1 $MQ_QUEUE" || echo resend >&3' sh {}
	assert_output "x q"
	held_is q "0 0 0 0"
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
