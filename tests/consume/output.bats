#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# --output: the output of runs at a time in lines, or in one piece a run.

load ../helpers/server

# Two runs at a time that write in turn: a half line each, then its rest.
take_turns() {
	mkfifo "$T/1" "$T/2"
	script turns <<-'END'
		n=$(cat)
		if [ "$n" = 1 ]; then
			printf 'first '
			echo >"$T/1"
			read -r _ <"$T/2"
			echo one
			echo error >&2
		else
			read -r _ <"$T/1"
			printf 'second '
			echo >"$T/2"
			echo two
			printf 'no newline'
		fi
	END
	run_mq 0 mq-publish -i q 1 2
	one=$(head -n 1 <<<"$output")
	two=$(tail -n 1 <<<"$output")
}

@test "output: lines: whole ones, with the id in front; runs: in one piece; live: as it comes" {
	take_turns
	run_mq 0 mq-consume -j 2 -n 2 --output lines q -- "$T/turns"
	assert_equal "$(sort <<<"$output")" "$(sort <<-END
		$one	first one
		$two	second two
		$two	no newline
	END
	)"
	assert_equal "$stderr" "$one	error"
	run_mq 0 mq-publish q 1 2
	run_mq 0 mq-consume -j 2 -n 2 --output=runs q -- "$T/turns"
	[ "$output" = $'first one\nsecond two\nno newline' ] ||
		[ "$output" = $'second two\nno newlinefirst one' ]
	assert_equal "$stderr" error
	for live in "" "--output live"; do
		run_mq 0 mq-publish q 1 2
		# shellcheck disable=SC2086 # two words, or none
		run_mq 0 mq-consume -j 2 -n 2 $live q -- "$T/turns"
		assert_regex "$output" '^first second (one.*two|two.*one)'
		assert_equal "$stderr" error
	done
}

@test "output: standard output and error that go to the same place stay in order" {
	local form
	for form in lines runs; do
		run_mq 0 mq-publish q x
		"$BUILD/mq-consume" -n 1 --output $form q -- perl -e '
			$| = 1;
			for (1..200) { print "out $_\n"; print STDERR "err $_\n" }' \
			>"$T/both" 2>&1
		sed 's/.*	//' "$T/both" >"$T/bare"
		cmp "$T/bare" <(for i in {1..200}; do echo "out $i"; echo "err $i"; done)
	done
}

@test "output: lines: more than memory should hold, bytes that are no text; the verdict's text" {
	perl -e 'print "x" x 300000, "\n", "y" x 300000; print map chr, 0..9' >"$T/long"
	run_mq 0 mq-publish -i q x
	TMPDIR=$T "$BUILD/mq-consume" -q -n 1 --output lines q -- \
		sh -c 'cat "$T/long"; echo because >&2; exit 1' >"$T/got" || [ $? = 1 ]
	sed "s/^/$output	/; \$a\\" "$T/long" >"$T/want"
	cmp "$T/want" "$T/got"
	assert_regex "$(element q rejected)" 'because \(exit status 1\)'
	refute_regex "$(element q rejected)" 'stderr[^}]*xxx'
}

@test "output: lines: one longer than 1 MB is cut" {
	run_mq 0 mq-publish -i q x
	"$BUILD/mq-consume" -n 1 --output lines q -- perl -e '
		print "x" x 2500000, "\nlast"' >"$T/got"
	assert_equal "$(cut -f 1 "$T/got" | uniq -c | xargs)" "4 $output"
	assert_equal "$(cut -f 2 "$T/got" | head -n 3 | tr -d '\n' | wc -c)" 2500000
	assert_equal "$(tail -n 1 "$T/got" | cut -f 2)" last
}

@test "output: runs: megabytes of several at a time, without a file that is left" {
	run_mq 0 mq-publish q a b c d
	mkdir "$T/tmp"
	TMPDIR=$T/tmp "$BUILD/mq-consume" -j 4 -n 4 --output runs q -- perl -e '
		my $c = <STDIN>; print "$c" x 1023, "\n" for 1..5000' |
		{
			# A reader that begins late.
			eventually 20 held_is q "0 0 0 0"
			cat
		} >"$T/got"
	assert_equal "$(uniq -c "$T/got" | awk '{ print $1, length($2) }' | uniq -c | xargs)" "4 5000 1023"
	assert_equal "$(ls -A "$T/tmp")" ""
	# No place for a file loses nothing: what follows comes as lines.
	run_mq 0 mq-publish -i q x
	id=$output
	TMPDIR=$T/none run_mq 0 mq-consume -n 1 --output runs q -- perl -e '
		print "x" x 99, "\n" for 1..10000'
	assert_equal "$(sed "s/^$id	//" <<<"$output" | sort | uniq -c | xargs)" "10000 $(printf 'x%.0s' {1..99})"
	assert_equal "$(tail -n 9000 <<<"$output" | grep -c "^$id	x*$")" 9000
	assert_equal "$stderr" "mq-consume: --output: temporary file: No such file or directory; output comes in lines"
}

@test "output: while nobody reads, no more runs start, and nothing is lost" {
	local form
	for form in lines runs; do
		seq 100 | "$BUILD/mq-publish" -l q
		mkfifo "$T/out.$form"
		"$BUILD/mq-consume" --drain --output $form q -- perl -e '
			my $n = <STDIN>; print "$n " x 2000, "\n" for 1..5' \
			>"$T/out.$form" 3>&- &
		pid=$!
		exec 9<"$T/out.$form"
		# It stands still: some are left, ready, or claimed ahead.
		eventually 30 stands
		[ "$before" != "0 0 0 0" ]
		cat <&9 >"$T/got"
		exec 9<&-
		wait "$pid"
		assert_equal "$(wc -l <"$T/got")" 500
		held_is q "0 0 0 0"
	done
}

# The same number is ready as a second before.
stands() {
	local now
	now=$(held q)
	[ "$now" = "${before-}" ] && return
	before=$now
	sleep 1
	return 1
}

@test "output: a child that stays writes lines with the id" {
	mkfifo "$T/go"
	run_mq 0 mq-publish -i q x
	id=$output
	start_mq mq-consume --output runs q -- sh -c '
		(read -r _ <"$T/go"; echo later) & echo at once'
	eventually 10 grep -qx 'at once' "$T/out"
	held_is q "0 0 0 0"
	echo >"$T/go"
	eventually 10 grep -qx "$id	later" "$T/out"
	stop_mq
}

@test "output: a batch is one run, called by its first message, a worker by its process" {
	run_mq 0 mq-publish -i q 1 2 3
	id=${lines[0]}+2
	prints "$id	1
$id	2
$id	3" mq-consume --drain --batch 3 --output lines q -- cat
	run_mq 0 mq-publish q 1 2
	run_mq 0 mq-consume --drain --stream --output lines q -- sh -c '
		echo $$ >"$T/pid"
		while read -r n; do echo "n $n"; echo done >&3; done'
	assert_output "worker $(cat "$T/pid")	n 1
worker $(cat "$T/pid")	n 2"
}

@test "output: logs, too" {
	take_turns
	run_mq 0 mq-consume -j 2 -n 2 --output runs --log-dir "$T" q -- "$T/turns"
	assert_output ''
	sed -E 's/^--- [^ ]* /--- /; s/after .*/after/' "$T/q.log" | tr '\n' '|' >"$T/log"
	one="--- $one attempt 1: $T/turns|first one|error|--- $one attempt 1: exit status 0 after|"
	two="--- $two attempt 1: $T/turns|second two|no newline|--- $two attempt 1: exit status 0 after|"
	[ "$(<"$T/log")" = "$one$two" ] || assert_equal "$(<"$T/log")" "$two$one"
	rm "$T/q.log"
	run_mq 0 mq-publish -i q 3
	run_mq 0 mq-consume -n 1 --output lines --log-dir "$T" q -- sh -c 'echo a; printf b >&2'
	assert_equal "$(cut -f2- "$T/q.log" | grep -v ^---)" $'a\nb'
	assert_equal "$(grep -c '^---' "$T/q.log")" 2
}

@test "output: standard output whose reader has gone is told of, and loses no message" {
	run_mq 0 mq-publish q 1 2 3
	"$BUILD/mq-consume" --drain --output runs q -- sh -c 'cat; echo' 2>"$T/err" |
		true
	# The reader may have been there for the first ones.
	held_is q "0 0 0 0"
	[ ! -s "$T/err" ] || assert_equal "$(cat "$T/err")" \
		"mq-consume: standard output: Broken pipe; the output of workers is lost"
}

@test "output: a terminal gets no control bytes, and whole characters" {
	local form
	for form in lines runs; do
		run_mq 0 mq-publish q x
		python3 - "$BUILD/mq-consume" -q -n 1 --output $form q -- perl -e '
			$| = 1; print "\e[2Jh\xc3"; select undef, undef, undef, 0.1;
			print "\xa4llo\tx\n"' >"$T/got" <<-'END'
			import os, pty, sys
			os.environ["LC_ALL"] = "C.UTF-8"
			pty.spawn(sys.argv[1:])
		END
		assert_regex "$(cat "$T/got")" '\\033\[2Jhällo.x'
		refute_regex "$(cat "$T/got")" $'\e'
	done
}

@test "output: a terminal that stands still: a flood waits, other messages do not, nothing is lost" {
	local form
	mkfifo "$T/go"
	for form in live lines; do
		run_mq 0 mq-publish q flood {1..40}
		python3 - "$BUILD/mq-consume" -q -j 2 -n 41 --output $form q -- perl -e '
			my $m = <STDIN>;
			print STDERR "$m $_\n" for 1..($m eq "flood" ? 20000 : 10)' \
			3>&- <<-'END' &
			import os, pty, subprocess, sys
			T = os.environ["T"]
			reader, writer = pty.openpty()
			p = subprocess.Popen(sys.argv[1:], stdout=writer, stderr=writer)
			os.close(writer)
			open(T + "/go").close()
			with open(T + "/got", "wb") as got:
			    try:
			        while b := os.read(reader, 65536):
			            got.write(b)
			    except OSError:
			        pass
			sys.exit(p.wait())
		END
		pid=$!
		eventually 20 held_is q "0 0 1 0"
		: >"$T/go"
		wait "$pid"
		held_is q "0 0 0 0"
		tr -d '\r' <"$T/got" | sed 's/^[^	]*	//' >"$T/bare"
		assert_equal "$(wc -c <"$T/bare")" \
			"$( (for m in {1..40}; do printf "$m %s\n" {1..10}; done
				printf 'flood %s\n' {1..20000}) | wc -c)"
		[ $form = live ] || assert_equal "$(sort -u "$T/bare" | wc -l)" 20400
	done
}
