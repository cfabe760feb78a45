#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What a script finds when it is started, and what is done with it: its input,
# descriptors, signals, environment and directories.

load ../helpers/server

teardown() {
	local file
	# What a broken --timeout leaves.
	for file in "$T"/child*; do
		[ ! -e "$file" ] || kill -KILL "$(cat "$file")" 2>/dev/null || true
	done
	common_teardown
}

# put [QUEUE]: stdin becomes a ready message, byte for byte.
# shellcheck disable=SC2120 # mostly it is q
put() {
	redis -x lpush "rmq::queue::[${1:-q}]::ready" >/dev/null
}

# put_header JSON [PAYLOAD]
put_header() {
	printf '\377\0\276\276J%s\n%s' "$1" "${2-x}" | put
}

# Whether it has ended; somebody else may be about to reap it.
ended() {
	[[ $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) =~ ^(Z|$) ]]
}

# --- the payload -----------------------------------------------------------------

@test "worker: the payload is on stdin, with all its bytes" {
	local name
	perl -e 'print map(chr, 0..255), "\0\0\n\n\r\n\xff\0\xbe\xbeJ"' >"$T/bytes"
	: >"$T/empty"
	head -c 1048576 /dev/urandom >"$T/large"
	perl -e 'print map(chr, reverse 0..255)' >"$T/raw"
	for name in bytes empty large; do
		run_mq 0 mq-publish -P 1="$name" q <"$T/$name"
	done
	put <"$T/raw"
	run_mq 0 mq-consume -n 4 q -- sh -c 'cat >"$T/got.${RQ_PARAM1:-raw}"'
	for name in bytes empty large raw; do
		cmp "$T/$name" "$T/got.$name"
	done
	held_is q "0 0 0 0"
}

@test "worker: the payload can be read twice, and what is written to it stays in that run" {
	run_mq 0 mq-publish q "again and "
	run_mq 0 mq-consume -n 2 q -- perl -e '
		local $/; print scalar <STDIN>;
		seek(STDIN, 0, 0) or die;
		print scalar <STDIN>, -s STDIN, "\n";
		open(my $w, "+<&=", 0); seek($w, 0, 0); syswrite $w, "spoilt!";
		exit if $ENV{RQ_COUNT};
		open(my $rq, ">&=", 3); print $rq "resend 0\n"'
	assert_output $'again and again and 10\nagain and again and 10'
}

@test "worker: a script that does not read its payload" {
	head -c 1048576 /dev/zero | run_mq 0 mq-publish q
	run_mq 0 mq-publish q next
	head -c 1048576 /dev/zero | run_mq 0 mq-publish -P 1=ignored q
	run_mq 0 mq-consume -n 3 q -- sh -c '[ "$RQ_PARAM1" ] || head -c 4 | tr "\0" z'
	assert_output zzzznext
	held_is q "0 0 0 0"
}

# --- descriptors -------------------------------------------------------------------

@test "worker: a folder in PATH that has the name of the command is passed over" {
	mkdir -p "$T/first/cat"
	put <<<x
	PATH=$T/first:$PATH run_mq 0 mq-consume -q -n 1 q -- cat
	assert_output x
}

@test "worker: descriptors that mq-consume inherited do not get through; it may have none" {
	echo secret >"$T/secret"
	run_mq 0 mq-publish q x
	run_mq 0 mq-consume -n 1 q -- \
		sh -c 'ls /proc/$$/fd; readlink /proc/$$/fd/3 /proc/$$/fd/4' \
		3<"$T/secret" 4<"$T/secret" 5<"$T/secret" 7<"$T/secret" \
		50<"$T/secret" 200<"$T/secret"
	assert_output --partial $'0\n1\n2\n3\n4\npipe:['
	refute_output --partial secret
	run_mq 0 mq-publish q x
	"$BUILD/mq-consume" -n 1 q -- perl -e '
		my @open = grep { -e "/proc/self/fd/$_" } 0..300;
		open(my $f, ">", "$ENV{T}/fds"); print $f "@open ", <STDIN>' \
		<&- >&- 2>&- 3>&- 4>&-
	assert_equal "$(cat "$T/fds")" "0 1 2 3 4 x"
	held_is q "0 0 0 0"
}

@test "worker: several scripts at a time do not get each other's pipes" {
	run_mq 0 mq-publish q 1 2 3 4
	run_mq 0 mq-consume -j 4 -n 4 q -- perl -e '
		open(my $here, ">", "$ENV{T}/here." . <STDIN>);
		close $here;
		select undef, undef, undef, 0.01
			until 4 == grep { -e "$ENV{T}/here.$_" } 1..4;
		my @open = grep { -e "/proc/self/fd/$_" } 0..300;
		print "@open ", readlink("/proc/self/fd/3"), "\n"'
	assert_equal "$(sed 's/pipe.*//' <<<"$output" | sort | uniq -c | xargs)" "4 0 1 2 3 4"
	assert_equal "$(sort -u <<<"$output" | wc -l)" 4
}

@test "worker: descriptors block, and 4 is as new for each script, whatever the last one did" {
	run_mq 0 mq-publish q flags bytes flags end
	run_mq 0 mq-consume -j 1 -n 4 q -- perl -MFcntl -e '
		my @fds = map { open(my $f, "<&=", $_); $f } 0, 3, 4;
		my @flags = map fcntl($_, F_GETFL, 0), @fds;
		my $bytes = pack("i", 0);
		ioctl($fds[2], 0x541B, $bytes);	# FIONREAD
		print +(map $_ & O_NONBLOCK ? "no " : "ok ", @flags), unpack("i", $bytes), "\n";
		my $what = <STDIN>;
		fcntl($fds[2], F_SETFL, $flags[2] | O_NONBLOCK) if $what eq "flags";
		if ($what eq "bytes") {
			open(my $w, ">", "/proc/self/fd/4");
			syswrite($w, "ok junk\n");
		}'
	assert_output $'ok ok ok 0\nok ok ok 0\nok ok ok 0\nok ok ok 0'
}

@test "worker: a process left behind finds the end of descriptor 4" {
	local what
	script s <<'S'
read -r what
case $what in
leave) (cat <&4 >"$T/stolen"; echo over >"$T/over") & ;;
close) (cat <&4 >"$T/stolen"; echo over >"$T/over") 3>&- & ;;
ask)
	until [ -e "$T/over" ]; do sleep 0.02; done
	echo "dup 3600-X-q" >&3
	read -r answer <&4
	echo "$answer"
	;;
esac
S
	for what in leave close; do
		rm -f "$T/over"
		printf '%s\n' $what | put
		echo ask | put
		run_mq 0 mq-consume -j 1 -n 2 q -- "$T/s"
		assert_output --regexp '^ok [A-Za-z0-9]+$'
		assert_equal "$(cat "$T/stolen")" ""
	done
}

@test "worker: a hundred runs leave no descriptor open" {
	seq 100 | run_mq 0 mq-publish -q -l q
	run_mq 0 mq-consume -j 2 -n 100 q -- sh -c '
		read -r x
		case $x in *0) set -- /proc/$PPID/fd/*; echo $# ;; esac'
	# The other slot may be about to start or to end a run.
	assert_equal "$(wc -l <<<"$output")" 10
	[ $(($(sort -n <<<"$output" | tail -n 1) - $(sort -n <<<"$output" | head -n 1))) -le 8 ]
}

# --- process and signals --------------------------------------------------------------

# default_signals COMMAND...: the script of a consumer that is started by the
# command finds no signal ignored, caught or blocked.
default_signals() {
	run_mq 0 mq-publish q x
	run --separate-stderr timeout -k 5 180 "$@" \
		"$BUILD/mq-consume" -n 1 q -- sed -n '/^Sig[IBC]/s/:.*\t/ /p' /proc/self/status
	assert_equal "$status" 0
	# 32 and 33 are the C library's own: it lets nobody set them, and old
	# makes leave them ignored.
	output=${output//0000000180000000/0000000000000000}
	assert_output $'SigBlk 0000000000000000\nSigIgn 0000000000000000\nSigCgt 0000000000000000'
	held_is q "0 0 0 0"
}

@test "worker: all signals at their default, whatever they were for mq-consume" {
	default_signals env
	default_signals nohup
	# Ignored.
	default_signals sh -c 'trap "" HUP INT QUIT TERM PIPE USR1 USR2 ALRM TSTP TTOU; exec "$@"' sh
	default_signals perl -e '$SIG{CHLD} = "IGNORE"; exec @ARGV'
	# Blocked.
	default_signals perl -MPOSIX -e '
		my $all = POSIX::SigSet->new; $all->fillset;
		sigprocmask(SIG_BLOCK, $all); exec @ARGV'
}

@test "worker: whoever else is its child is reaped, too, and no run is lost" {
	script s <<'.'
echo $$ >"$T/short"
read -r _ <"$T/hold"
.
	mkfifo "$T/hold"
	(
		sleep 0.1 &
		echo "$!" >"$T/other.new"
		mv "$T/other.new" "$T/other"
		exec "$BUILD/mq-consume" -n 1 q -- "$T/s" 2>"$T/err" 3>&-
	) &
	pid=$!
	eventually 10 test -e "$T/other"
	eventually 10 gone "$(cat "$T/other")"
	# One that lasts, and ends between the ticks.
	run_mq 0 mq-publish q x
	eventually 10 test -e "$T/short"
	tick
	echo >"$T/hold"
	wait "$pid"
	held_is q "0 0 0 0"
}

@test "worker: killed with mq-consume" {
	mkfifo "$T/hold"
	script s <<'.'
trap '' TERM INT HUP
echo $$ >"$T/pid.new"
mv "$T/pid.new" "$T/pid"
read -r _ <>"$T/hold"
.
	run_mq 0 mq-publish q x
	start_mq mq-consume q -- "$T/s"
	eventually 10 test -e "$T/pid"
	kill -KILL "$pid"
	wait "$pid" || true
	eventually 5 ended "$(cat "$T/pid")"
	# Nothing is lost: a cleaner finds it.
	held_is q "0 0 1 0"
}

# --- environment ----------------------------------------------------------------------

# var NAME: its value in $T/env.
var() {
	sed -nz "s/^$1=//p" "$T/env" | tr -d '\0'
}

names() {
	cut -zd= -f1 "$T/env" | tr '\0' '\n' | sort
}

# env_has NAME=VALUE..., env_lacks NAME...: in $T/env.
env_has() {
	local pair
	for pair; do
		# Not empty instead of missing.
		assert_equal "$(names | grep -x "${pair%%=*}")=$(var "${pair%%=*}")" "$pair"
	done
}

env_lacks() {
	local name
	for name; do
		run ! grep -qx "$name" <(names)
	done
}

@test "worker: exactly these variables, besides those of mq-consume" {
	run_mq 0 mq-publish q payload
	env -i HOME=/h WORD=kept MQ_URL="$MQ_URL" "$BUILD/mq-consume" -n 1 q -- \
		/usr/bin/env -0 >"$T/env"
	env_has WORD=kept HOME=/h
	# The id is the only header.
	env_has "MQ_HEADER_MQ_ID=$(var MQ_ID)" RQ_PARAM4=
	run names
	assert_equal "$(xargs <<<"$output")" "HOME $(echo MQ_{ATTEMPT,ATTEMPTS,HEADER_MQ_ID,ID} \
		MQ_PARAM{1..4} MQ_{QUEUE,READ,URL,WRITE} RQ_{COUNT,DEST,DEST_QUEUE,ENV} \
		RQ_{FULL_MSG_ID,HOST,MSG_DIR,MSG_ID,ORIG_MSG_ID} RQ_PARAM{1..4} \
		RQ_{PIPE,PORT,READ,REALSCRIPT,SCRIPT,VER,WRITE}) WORD"
}

@test "worker: MQ_* say what the message is, and RQ_* as RQ has them" {
	local host trace=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
	host=http://$(hostname)
	echo 'env -0 >"$T/env"' | script s
	ln -s s "$T/link"
	run_mq 0 mq-publish -i -H 'X-Trace-Id: a b' -H 'Lower: é' -H "traceparent: $trace" \
		-P 1=one -P 4='four five' q x
	id=$output
	cd "$T"
	run_mq 0 mq-consume -n 1 q -- "$T/link"
	env_has "MQ_ID=$id" MQ_QUEUE=q MQ_ATTEMPT=1 MQ_ATTEMPTS=15 MQ_WRITE=3 MQ_READ=4 \
		"MQ_HEADER_X_TRACE_ID=a b" MQ_HEADER_LOWER=é "MQ_HEADER_MQ_ID=$id" MQ_PARAM1=one \
		MQ_PARAM2= "MQ_PARAM4=four five" "TRACEPARENT=$trace"
	env_has RQ_VER=3.0.0 "RQ_SCRIPT=$T/link" "RQ_REALSCRIPT=$T/s" "RQ_HOST=$host/"
	assert_regex "$(var RQ_PORT)" '^[0-9]+$'
	env_has "RQ_DEST=$host/q/q/" RQ_DEST_QUEUE=q "RQ_MSG_ID=$id" "RQ_FULL_MSG_ID=$host/q/q/$id" \
		"RQ_ORIG_MSG_ID=$host/q/q/$id" "RQ_MSG_DIR=$T" RQ_PIPE=3 RQ_WRITE=3 RQ_READ=4 RQ_COUNT=0
	# Empty, not missing.
	env_has RQ_PARAM1=one RQ_PARAM2= RQ_PARAM3= "RQ_PARAM4=four five" RQ_ENV=production
	env_lacks RQ_FORCE_REMOTE
	# The next one has nothing of it; a name may be in small letters.
	put_header '{"traceparent":["lower"]}'
	run_mq 0 mq-consume -n 1 q -- "$T/s"
	env_has TRACEPARENT=lower RQ_PARAM1= MQ_PARAM4=
	env_lacks MQ_HEADER_X_TRACE_ID
}

@test "worker: RQ_COUNT from 0, MQ_ATTEMPT from 1, the id stays, a raw message's, too" {
	local form
	script s <<'.'
echo "$RQ_COUNT $MQ_ATTEMPT $MQ_ID"
[ "$RQ_COUNT" = 2 ] || echo resend 0 >&3
.
	for form in -i --raw; do
		run_mq 0 mq-publish $form q x
		id=$output
		run_mq 0 mq-consume -n 3 q -- "$T/s"
		[ $form = -i ] || id=${lines[0]#0 1 }
		assert_regex "$id" '^[0-9a-zA-Z]{32}$'
		assert_output "0 1 $id
1 2 $id
2 3 $id"
	done
}

@test "worker: what an outer consumer has set does not leak in" {
	export MQ_ID=stale MQ_QUEUE=stale MQ_ATTEMPT=77 MQ_HEADER_X=stale \
		MQ_HEADER_MQ_KEY=stale MQ_PARAM3=stale TRACEPARENT=stale \
		RQ_PARAM1=stale RQ_COUNT=77 RQ_FORCE_REMOTE=1 RQ_OTHER=stale \
		RQ_MSG_DIR=stale RQ_SCRIPT=stale RQ_ENV=staging
	run_mq 0 mq-publish q payload
	run_mq 0 mq-consume -n 1 q -- sh -c 'exec env -0 >"$T/env"'
	assert_equal "$(grep -cz stale "$T/env")" 0
	env_has RQ_COUNT=0 MQ_ATTEMPT=1
	# Each variable is there once.
	assert_equal "$(names | uniq -d)" ""
	env_lacks RQ_FORCE_REMOTE TRACEPARENT
	# The one that is the machine's, not the message's.
	env_has RQ_ENV=staging
}

@test "worker: no header becomes another variable, whatever is in its name and value" {
	put_header '{"LD_PRELOAD":["/evil"],"Path":["/evil"],"PATH":["/evil"],"":["/evil"],"X\nLD_PRELOAD=/evil\nY":["/evil"],"A=B":["/evil"],"IFS":["/evil"],"Mq-Id":["/evil"],"BASH_FUNC_cat%%":["() { /evil; }"],"ä":["/evil"]}'
	run_mq 0 mq-consume -n 1 q -- sh -c 'exec env -0 >"$T/env"'
	held_is q "0 0 0 0"
	env_lacks LD_PRELOAD
	env_has "PATH=$PATH"
	assert_equal "$(perl -0 -ne 'print "$1\n" if /^([^=]*)=.*\/evil/s' "$T/env" |
		grep -cv '^MQ_HEADER_[A-Z0-9_]*$')" 0
	assert_regex "$(var MQ_ID)" '^[0-9a-zA-Z]{32}$'
	env_has MQ_HEADER_LD_PRELOAD=/evil
	put_header '{"Lines":["a\nLD_PRELOAD=/evil\n"],"Quote":["\"'"'"'$(x)\\"],"Esc":["\u001b[31m"],"Mq-Param1":["p\nq"],"Many":["a","b","c"],"None":[],"Null":null,"Nul":["a\u0000b"],"Empty":[""]}'
	run_mq 0 mq-consume -n 1 q -- sh -c 'exec env -0 >"$T/env"'
	assert_equal "$(var MQ_HEADER_LINES; echo .)" $'a\nLD_PRELOAD=/evil\n.'
	env_has "MQ_HEADER_QUOTE=\"'\$(x)\\" MQ_HEADER_ESC=$'\033[31m' RQ_PARAM1=$'p\nq' \
		MQ_PARAM1=$'p\nq' "MQ_HEADER_MANY=a, b, c" MQ_HEADER_EMPTY=
	env_lacks MQ_HEADER_NONE MQ_HEADER_NULL MQ_HEADER_NUL LD_PRELOAD
	env_has "PATH=$PATH"
}

@test "worker: headers that fit into no environment: rejected, and on it goes" {
	# Linux takes strings of up to 128 KiB.
	local size
	for size in 200000 100000; do
		perl -e 'print "\xff\0\xbe\xbeJ{\"Large\":[\"", "x" x '$size', "\"]}\npayload"' | put
	done
	run_mq 1 mq-consume -n 2 q -- sh -c 'echo ${#MQ_HEADER_LARGE}'
	assert_output 100000
	assert_regex "$stderr" 'rejected: .*headers'
	assert_equal "$(held q)" "0 0 0 1"
	element q rejected >"$T/rejected"
	assert_regex "$(header Mq-Error <"$T/rejected")" 'headers.*environment'
	assert_equal "$(header Large <"$T/rejected" | wc -c)" 200000
	assert_equal "$(tail -n +2 "$T/rejected")" payload
}

# --- --work-dir --------------------------------------------------------------------

@test "worker: --work-dir is kept over attempts, and with files that a script leaves" {
	run_mq 0 mq-publish -i q x y
	ids=("${lines[@]}")
	script s <<'.'
case $RQ_COUNT$(cat) in
?y) echo y >result; exit 1 ;;
0x) echo remembered >state; echo resend 0 >&3 ;;
1x) cat state; exit 75 ;;
2x) cat state; rm state ;;
esac
.
	run_mq 1 mq-consume -n 3 --backoff 1ms..1ms --work-dir "$T/work" q -- "$T/s"
	assert_equal "$output $(cat "$T/work/${ids[0]}/state")" "remembered remembered"
	run_mq 0 mq-consume -n 1 --work-dir "$T/work" q -- "$T/s"
	assert_output remembered
	assert_equal "$(ls -A "$T/work")" "${ids[1]}"
	assert_equal "$(<"$T/work/${ids[1]}/result")" y
	held_is q "0 0 0 1"
}

@test "worker: --work-dir: an id cannot lead out of it; one that cannot be it: 78" {
	put_header '{"Mq-Id":["../../../../../../../../tmp/x/./."]}'
	put_header '{"Mq-Id":["../out"]}'
	run_mq 0 mq-consume -n 2 --work-dir "$T/work" q -- sh -c 'dirname "$PWD"; basename "$PWD"; echo >f'
	assert_equal "${lines[0]} ${lines[2]}" "$T/work $T/work"
	assert_regex "${lines[1]}" '^[0-9a-zA-Z]{32}$'
	assert_equal "$(find "$T/work" -name f | wc -l)" 2
	echo >"$T/file"
	run_mq 0 mq-publish q x
	run_mq 78 mq-consume --work-dir "$T/file" q -- cat
	run_mq 78 mq-consume --work-dir "$T/no/where" q -- cat
	held_is q "1 0 0 0"
}

@test "worker: --work-dir: a directory of its own, removed when it is empty" {
	local both
	echo 'pwd; echo "$RQ_MSG_DIR"; stat -c %a .; ls -A' | script s
	run_mq 0 mq-publish -i q x y
	both=("${lines[@]}")
	cd "$T"
	# A command that is named relatively is found. Without one, it is mq-consume's directory.
	run_mq 0 mq-consume -n 1 q -- ./s
	assert_equal "${lines[*]:0:2}" "$T $T"
	run_mq 0 mq-consume -n 1 --work-dir work q -- ./s
	assert_output "$T/work/${both[1]}"$'\n'"$T/work/${both[1]}"$'\n700'
	assert_equal "$(ls -A work)" ""
}

# --- --log-dir -----------------------------------------------------------------------

@test "worker: --log-dir: a line per run, and all that is written, is appended" {
	local n ids
	mkdir "$T/log"
	echo before >"$T/log/q.log"
	run_mq 0 mq-publish -i q one two
	ids=("${lines[@]}")
	for n in 1 2; do
		run_mq 0 mq-consume -n 1 --log-dir "$T/log" q -- \
			sh -c 'echo "out $(cat)"; echo "err" >&2; cat'
		assert_equal "$output$stderr" ""
	done
	assert_equal "$(sed -E 's/^(--- )[^ ]* /\1/; s/after [0-9]+\.[0-9]{3} s$/after T/' \
		"$T/log/q.log")" "before
--- ${ids[0]} attempt 1: sh -c 'echo "'"out $(cat)"; echo "err" >&2; cat'"'
out one
err
--- ${ids[0]} attempt 1: exit status 0 after T
--- ${ids[1]} attempt 1: sh -c 'echo "'"out $(cat)"; echo "err" >&2; cat'"'
out two
err
--- ${ids[1]} attempt 1: exit status 0 after T"
	assert_regex "$(sed -n 2p "$T/log/q.log")" \
		'^--- [0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[+-][0-9]{4} '
}

@test "worker: --log-dir: how each run ended, on a line of its own" {
	run_mq 0 mq-publish q fail kill slow
	run_mq 1 mq-consume -n 3 --timeout 4s --log-dir "$T/log" q -- sh -c '
		read -r what || :
		printf "begun $what"
		case $what in
		fail) exit 3 ;;
		kill) kill -KILL $$ ;;
		slow) exec sleep 99 ;;
		esac'
	assert_equal "$(sed -nE 's/^--- .* attempt 1: (.*) after [0-9.]+ s$/\1/p' "$T/log/q.log")" \
		$'exit status 3\nkilled by SIGKILL\ntimed out, killed by SIGTERM'
	assert_equal "$(grep -c '^begun' "$T/log/q.log")" 3
}

@test "worker: --log-dir: one file per queue, and no queue leads out of it" {
	local queue
	for queue in ../up .hidden a/b a%2Fb a.b; do
		"$BUILD/mq-publish" "$queue" x
	done
	run_mq 0 mq-consume --drain --log-dir "$T/log" ../up .hidden a/b a%2Fb a.b -- \
		sh -c 'echo "this is $MQ_QUEUE"'
	# The file's mode lets no others read.
	assert_equal "$(stat -c %a "$T/log/a.b.log")" 640
	assert_equal "$(cd "$T/log" && ls -A)" "%2E.%2Fup.log
%2Ehidden.log
a%252Fb.log
a%2Fb.log
a.b.log"
	assert_equal "$(grep -v '^---' "$T/log/a%2Fb.log")" "this is a/b"
	assert_equal "$(grep -v '^---' "$T/log/%2E.%2Fup.log")" "this is ../up"
	[ ! -e "$T/up.log" ]
}

@test "worker: --log-dir: HUP opens the files anew; a link is refused" {
	mkfifo "$T/go"
	script s <<'.'
echo "started $(cat)"
echo >"$T/started"
read -r _ <"$T/go"
echo ended
.
	run_mq 0 mq-publish q one two
	start_mq mq-consume -n 2 --log-dir "$T/log" q -- "$T/s"
	eventually 10 test -e "$T/started"
	rm "$T/started"
	mv "$T/log/q.log" "$T/log/q.log.1"
	kill -HUP "$pid"
	eventually 10 test -e "$T/log/q.log"
	# What a running script writes from then on is in the new one.
	echo >"$T/go"
	eventually 10 test -e "$T/started"
	echo >"$T/go"
	wait "$pid"
	assert_equal "$(grep -v '^---' "$T/log/q.log.1")" 'started one'
	assert_equal "$(grep -v '^---' "$T/log/q.log")" $'ended\nstarted two\nended'
	assert_equal "$(grep -c '^---' "$T/log/q.log")" 3
	ln -sf "$T/elsewhere" "$T/log/q.log"
	run_mq 0 mq-publish q x
	run_mq 74 mq-consume -n 1 --log-dir "$T/log" q -- echo hello
	assert_regex "$stderr" "^mq-consume: $T/log/q.log: "
	[ ! -e "$T/elsewhere" ]
	held_is q "1 0 0 0"
}

@test "worker: --timeout: TERM to the group, then KILL; a verdict given in time counts" {
	mkfifo "$T/hold"
	script s <<'.'
exec >"$T/output" 2>&1 # so that no child of it keeps the test waiting
what=$(cat)
hold() {
	read -r _ <>"$T/hold"
}
case $what in
ignores)
	trap '' TERM
	sh -c 'echo $$ >"$T/child"; read -r _ <>"$T/hold"' &
	echo $$ >"$T/parent"
	hold
	;;
obeys)
	sh -c 'echo $$ >"$T/child.obeys"; read -r _ <>"$T/hold"' &
	hold
	;;
resends) trap 'echo resend 100-x >&3; exit 0' TERM ;;
done) trap 'echo done >&3; exit 0' TERM ;;
errs) trap 'echo err my own reason >&3; exit 0' TERM ;;
fails) trap 'echo done >&3; exit 1' TERM ;;
silent) trap 'exit 0' TERM ;;
spoke) echo run halfway >&3 ;;
esac
hold &
wait
wait
.
	run_mq 0 mq-publish q ignores obeys resends 'done' errs fails silent spoke quick
	run_mq 1 mq-consume -j 9 -n 9 --timeout 8s q -- sh -c '
		case $(cat) in quick) exit ;; esac
		perl -e "seek STDIN, 0, 0"; exec "$T/s"'
	assert_equal "$(held q)" "0 1 0 6"
	assert_equal "$(element q delayed | tail -n +2)" resends
	redis eval 'local out = {}
		for _, e in ipairs(redis.call("LRANGE", "rmq::queue::[q]::rejected", 0, -1)) do
			local json, payload = e:match("J([^\n]*)\n(.*)")
			out[#out + 1] = payload .. ": " .. cjson.decode(json)["Mq-Error"][1]
		end
		return out' 0 >"$T/rejected"
	assert_equal "$(sort "$T/rejected")" "errs: my own reason
fails: timed out
ignores: timed out
obeys: timed out
silent: timed out
spoke: halfway (timed out)"
	# The last one to end was the one that had to be killed.
	assert_equal "$(head -n 1 "$T/rejected")" "ignores: timed out"
	for file in parent child child.obeys; do
		eventually 5 ended "$(<"$T/$file")"
	done
}

@test "worker: a bad header is rejected as it is, and on it goes" {
	# Two have no newline.
	redis eval 'for i, bad in ipairs(ARGV) do
			redis.call("LPUSH", "rmq::queue::[q]::ready",
				"\255\0\190\190J" .. bad .. "\npayload \0 bytes")
		end
		redis.call("LPUSH", "rmq::queue::[q]::ready", "\255\0\190\190Jno newline",
			"\255\0\190\190J")' 0 '{' '' '"x"' '{"a":[["b"]]}' $'{"a":["\1"]}' '{"a":["b"]} {}'
	redis lrange 'rmq::queue::[q]::ready' 0 -1 >"$T/ready"
	run_mq 0 mq-publish q good
	# None of these is a run.
	run_mq 1 mq-consume -n 1 q -- cat
	assert_output good
	assert_equal "$(grep -c 'rejected: bad header: ' <<<"$stderr")" 8
	assert_equal "$(held q)" "0 0 0 8"
	redis lrange 'rmq::queue::[q]::rejected' 0 -1 | cmp - "$T/ready"
}

@test "worker: more slots than descriptors, by the soft limit" {
	mkfifo "$T/hold"
	exec 8<>"$T/hold"
	run_mq 0 mq-publish q $(seq 100)
	(
		ulimit -Sn 64
		exec "$BUILD/mq-consume" -j 100 -n 100 q -- sh -c '
			ulimit -n; read -r _ <"$T/hold"' >"$T/out" 2>"$T/err" 3>&- 8>&-
	) &
	pid=$!
	# All at once, each with the limit that we were started with.
	eventually 10 limits_are "100 64"
	for _ in $(seq 100); do echo >&8; done
	exec 8>&-
	wait "$pid"
	assert_equal "$(cat "$T/err")" ""
	held_is q "0 0 0 0"
}

limits_are() {
	[ "$(sort "$T/out" | uniq -c | xargs)" = "$1" ]
}
