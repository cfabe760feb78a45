# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-publish --attach: files that belong to a message, from the publisher to its end.
# topologies: cluster
load ../helpers/server

setup() {
	common_setup
	export TMPDIR=$T/tmp
	mkdir "$TMPDIR"
	head -c 2500000 /dev/urandom >"$T/big"
	echo 'small one' >"$T/small"
	: >"$T/empty"
	# Says what it got.
	script files <<-'E'
		[ "$(stat -c %a "$MQ_ATTACH_DIR")" = 700 ] || exit 1
		(cd "$MQ_ATTACH_DIR" && sha256sum -- *)
	E
}

publish() {
	run_mq 0 mq-publish "$@"
}

consume() {
	run_mq 0/1 mq-consume --drain "$@"
}

# keys [WHAT]: those of attachments.
keys() {
	redis --raw keys "mq::attach::*${1-}" | sort
}

# No file is left, here or at the server.
nothing_left() {
	[ -z "$(keys)$(ls -A "$TMPDIR")" ]
}

# end_well QUEUE NAME: a worker finds small under that name, and then nothing is left.
end_well() {
	consume "$1" -- "$T/files"
	assert_line "$(sha256sum <"$T/small" | cut -d' ' -f1)  $2"
	eventually 10 nothing_left
}

# the set of the only message with attachments
set_id() {
	keys ::refs | sed 's/.*{\(.*\)}.*/\1/'
}

# ttls: of all keys but the list of sets, each once.
ttls() {
	local key
	for key in $(keys | grep -v ::sets); do
		redis --raw ttl "$key"
	done | sort -u
}

stays() {
	[ "$(ttls)" = -1 ]
}

# All expire within an hour.
expires() {
	local ttl
	for ttl in $(ttls); do
		((ttl > 3500 && ttl <= 3600)) || return 1
	done
}

# The references are an hour old.
age() {
	local key id
	for key in $(keys ::refs); do
		for id in $(redis --raw hkeys "$key"); do
			redis hset "$key" "$id" "$(($(date +%s%3N) - 3600001))" >/dev/null
		done
	done
}

@test "attach: a worker finds the files as they were, on a full server, too" {
	local long
	printf -v long %0255d 1
	publish --attach big="$T/big" --attach "a b=$T/small" --attach "$long=$T/empty" q <<<payload
	# No command is longer than a chunk.
	assert_equal "$(keys | grep -cE '::[0-9]+$')" 4
	stays
	redis config set maxmemory 1 >/dev/null
	run_mq 0 mq-consume -n 1 q -- "$T/files"
	redis config set maxmemory 0 >/dev/null
	assert_line "$(sha256sum <"$T/big" | cut -d' ' -f1)  big"
	assert_line "$(sha256sum <"$T/small" | cut -d' ' -f1)  a b"
	assert_line "$(sha256sum <"$T/empty" | cut -d' ' -f1)  $long"
	eventually 10 nothing_left
}

@test "attach: a command that cannot be started once the files are here: 78" {
	script none /no/such/interpreter </dev/null
	publish --attach a="$T/small" q x
	for status in 126 127; do
		run_mq 75 mq-consume -n 1 --backoff 0..0 q -- sh -c "exit $status"
	done
	before=$(redis lrange 'rmq::queue::[q]::ready' 0 -1)
	run_mq 78 mq-consume -n 1 q -- "$T/none"
	assert_equal "$stderr" "mq-consume: $T/none: No such file or directory; stopping, the message is returned"
	assert_equal "$(redis lrange 'rmq::queue::[q]::ready' 0 -1)" "$before"
	stays
	consume q -- "$T/files"
	eventually 10 nothing_left
}

@test "attach: files that are missing, damaged, or under another name reject the message" {
	local break reason
	while IFS='|' read -r break reason; do
		redis flushall >/dev/null
		publish --attach a="$T/big" q x
		eval "redis ${break//KEY/mq::attach::{$(set_id)\}} >/dev/null"
		consume q -- "$T/files"
		[[ $stderr = *"rejected: attachments: $reason"* ]]
	done <<-'E'
		del 'KEY::1'|a is incomplete or damaged
		hset 'KEY::files' ../b "0 1 $(printf %064d 0)"|their list is damaged
		setrange 'KEY::1' 7 changed|a is incomplete or damaged
	E
	[ ! -e "$TMPDIR/b" ]
	redis del "mq::attach::{$(set_id)}::refs" >/dev/null
	run_mq 0 mq-return q
	consume q -- "$T/files"
	[[ $stderr = *"rejected: attachments: they are gone"* ]]
	eventually 10 is_empty "$TMPDIR"
}

@test "attach: they stay until the message is done" {
	publish --attach a="$T/small" q x
	run_mq 75 mq-consume -n 1 q -- sh -c 'echo resend 0 >&3'
	stays
	prints 'small one' mq-consume -n 1 q -- sh -c 'cat "$MQ_ATTACH_DIR/a"; exit 1'
	stays
	run_mq 0 mq-return q
	run_mq 0 mq-consume -n 1 --push p q -- sh -c 'echo push >&3'
	eventually 10 state_is p "1 0 0 0 0"
	eventually 10 is_empty "$TMPDIR"
	stays
	end_well p a
}

@test "attach: of duplicates, the last one takes them along; none goes where they are not" {
	publish to x
	run_mq 0 mq-consume -n 1 to
	publish --attach a="$T/small" q x
	run_mq 0 mq-consume -n 1 q -- sh -c "
		echo 'dup 0-X-to' >&3; read -r answer <&4; echo \"\$answer\"
		echo 'dup 0-X-$MQ_URL?queue=q' >&3; read -r answer <&4; echo \"\$answer\"; echo done >&3"
	[[ ${lines[0]} = "ok"* ]]
	[[ ${lines[1]} = "fail "* ]]
	eventually 10 is_empty "$TMPDIR"
	state_is to "1 0 0 0 0"
	eventually 10 eval '[ "$(redis hlen "$(keys ::refs)")" = 1 ]'
	stays
	end_well to a
}

@test "attach: a consumer that is killed loses none, and leaves none here" {
	publish --attach a="$T/small" q x
	start_mq mq-consume --tag one q -- sh -c 'echo >"$MQ_ATTACH_DIR/more"; mkdir "$MQ_ATTACH_DIR/d"; : >"$T/runs"; exec sleep 100'
	eventually 10 test -e "$T/runs"
	[ -n "$(ls -A "$TMPDIR")" ]
	stop_mq KILL
	eventually 10 is_empty "$TMPDIR"
	stays
	redis del "$(connections | sed 's/.*/rmq::connection::&::heartbeat/')" >/dev/null
	run_mq 0 mq-clean
	end_well q a
}

is_empty() {
	[ -z "$(ls -A "$1")" ]
}

# killed_at N COMMAND...: each of its processes dies before it sends the Nth time.
# False: none did.
killed_at() {
	strace -f -qq -o "$T/trace" -e trace=sendto,write \
		-e inject=sendto,write:signal=KILL:when="$1" "${@:2}" >/dev/null 2>&1 || true
	grep -q 'killed by SIGKILL' "$T/trace"
}

# A message that is there has its files; what else there is expires in an hour: what was
# never published at once, else when mq-clean has seen it.
sound() {
	redis --raw keys '*::ready' | grep -q . || {
		[ "$1" = published ] || expires
		age
		run_mq 0 mq-clean
		expires
	}
	run_mq 0 mq-consume --drain q -- "$T/files"
	[[ $stderr != *rejected* ]]
}

@test "attach: a publisher that is killed at any step" {
	no_cluster "its steps are the same, and take far longer"
	for ((n = 1; n < 60; n++)); do
		redis flushall >/dev/null
		killed_at "$n" "$BUILD/mq-publish" --attach a="$T/big" q x || break
		sound new
	done
	# It has sent, one by one, more than its chunks.
	((n > 8 && n < 60))
	stays
}

@test "attach: a consumer and its processes that are killed at any step" {
	no_cluster "its steps are the same, and take far longer"
	for ((n = 1; n < 60; n++)); do
		redis flushall >/dev/null
		publish --attach a="$T/big" q x
		killed_at "$n" "$BUILD/mq-consume" --drain q -- "$T/files" || break
		for c in $(connections); do
			redis del "rmq::connection::${c}::heartbeat" >/dev/null
		done
		run_mq 0 mq-clean
		"$BUILD/mq-return" -q q || true
		sound published
	done
	((n > 8 && n < 60))
	eventually 10 is_empty "$TMPDIR"
}

# on_second_read COMMAND...: publishes a file, and runs the command when a part of it has
# been read.  Exit status, output.
on_second_read() {
	head -c 2500000 /dev/zero >"$T/file"
	: >"$T/trace"
	# The search for leaks cannot trace what is traced.
	ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 \
		strace -qq -o "$T/trace" -P "$T/file" -e trace=read -e inject=read:signal=STOP:when=2 \
		"$BUILD/mq-publish" --attach f="$T/file" q x 2>"$T/err" &
	tracer=$!
	eventually 10 grep -q 'stopped by SIGSTOP' "$T/trace"
	"$@"
	kill -CONT "$(pgrep -P "$tracer")"
	status=0
	wait "$tracer" || status=$?
}

write_there() {
	printf x | dd of="$T/file" conv=notrunc seek=1 status=none
}

write_and_hide() {
	touch -r "$T/file" "$T/times"
	write_there
	touch -r "$T/times" "$T/file"
}

@test "attach: a file that changes while it is read is not published" {
	for change in "truncate -s +1 $T/file" "truncate -s 2000000 $T/file" write_there \
		write_and_hide; do
		# shellcheck disable=SC2086 # these are words
		on_second_read $change
		assert_equal "$status $(head -n 1 "$T/err")" "75 mq-publish: --attach: f: the file changed while it was read; publish it again"
		nothing_left
	done
	on_second_read cat "$T/file" >/dev/null
	assert_equal "$status $(cat "$T/err")" "0 "
	# Their size says nothing.
	publish --attach a=/proc/self/status --attach b=<(cat "$T/small") p x
	consume p -- "$T/files"
	assert_line "$(sha256sum <"$T/small" | cut -d' ' -f1)  b"
}

@test "attach: a message whose files have expired is not published" {
	mkfifo "$T/fifo"
	start_mq mq-publish --attach a="$T/small" --attach f="$T/fifo" q x
	exec 7>"$T/fifo"
	eventually 10 eval '[ -n "$(keys ::0)" ]'
	# Those of one that is killed now would.
	expires
	redis del "$(keys ::0)" >/dev/null
	exec 7>&-
	ends_with 75
	assert_equal "$(head -n 1 "$T/err")" "mq-publish: $MQ_URL: attachments are gone; publish them again"
	expires
	state_is q "0 0 0 0 0"
}

@test "attach: a message that is refused leaves none" {
	publish -k key q x
	run_mq 1 mq-publish -k key --attach a="$T/small" q x
	nothing_left
	run_mq 0 mq-publish -k w --unique queued q x
	run_mq 0 mq-publish -k w --unique queued --coalesce --attach a="$T/small" q x
	nothing_left
	run_mq 75 mq-publish --max-length 1 --attach a="$T/small" q x
	nothing_left
}

@test "attach: if the connection breaks before the message is published, none is accepted" {
	no_cluster "which node has the connection differs"
	mkfifo "$T/f"
	exec 5<>"$T/f"
	start_mq mq-publish --attach "f=$T/f" q x 5>&-
	named() { redis client list | grep -q ' name=mq-publish:'; }
	eventually 20 named
	redis client kill type normal skipme yes >/dev/null
	echo a >&5
	exec 5>&-
	ends_with 69
	assert_regex "$(<"$T/err")" '^mq-publish: --attach: .*
mq-publish: 0 messages accepted$'
}

@test "attach: mq-clean sees a message wherever it is, and lets those of others expire" {
	publish --attach a="$T/small" -d 1h delayed x
	publish --attach a="$T/small" -p 5 priority x
	publish --attach a="$T/small" rejected x
	consume rejected -- false
	publish --attach a="$T/small" unacked x
	publish --attach go="$T/big" go x
	start_mq mq-consume unacked -- sh -c ': >"$T/runs"; exec sleep 100'
	eventually 10 test -e "$T/runs"
	# A Go program has acked it, or it may be about to be published.
	redis del "$(redis --raw keys 'rmq::queue::*go*::ready')" >/dev/null
	run_mq 0 mq-clean
	stays
	age
	run_mq 0 mq-clean --dry-run
	stays
	run_mq 0 mq-clean
	assert_equal "$(for key in $(keys ::files); do
		echo "$(redis --raw hkeys "$key") $(($(redis ttl "$key") > 0))"
	done | sort | xargs)" "a 0 a 0 a 0 a 0 go 1"
	for key in $(keys | grep -v ::sets); do
		(($(redis ttl "$key") < 0)) || redis del "$key" >/dev/null
	done
	stop_mq
	# One that was missed is seen by the next walk.
	all_expire
	run_mq 0 mq-clean
	stays
	all_expire
	run_mq 1 mq-consume -n 1 unacked -- sh -c 'exit 1'
	assert_equal "$(ttls | grep -c '^-1$')" 1
	# What has expired is forgotten.
	for key in $(keys | grep -v ::sets); do
		redis del "$key" >/dev/null
	done
	run_mq 0 mq-clean
	eventually 10 nothing_left
}

all_expire() {
	for key in $(keys | grep -v ::sets); do
		redis expire "$key" 3600 >/dev/null
	done
}

@test "attach: mq-purge removes them with the last message that has them" {
	publish --attach a="$T/big" q x
	publish --attach a="$T/small" q y
	publish --attach a="$T/small" -d 1h q z
	publish q plain
	publish --attach a="$T/small" stays x
	run_mq 0 mq-return --clone --from ready --match y q
	for row in "-n 1 --ready:3" "--match [yz] -n 1 --all:3" "--delayed:2"; do
		# shellcheck disable=SC2086 # these are words
		prints "1 message purged" mq-purge --force ${row%:*} q
		[ "$(keys ::refs | wc -l)-$(keys ::files | wc -l)" = "${row#*:}-${row#*:}" ]
		stays
	done
	# The clone is the last that has them.
	consume q -- sh -c 'cat "$MQ_ATTACH_DIR/a"; exit 1'
	assert_output "small one"
	publish q plain
	prints "3 messages purged" mq-purge --force --all q
	[ "$(keys ::refs | wc -l)" = 1 ]
	publish --attach a="$T/small" gone y
	prints "1 message purged, and the queue deleted" mq-purge --force --delete-queue gone
	end_well stays a
}

@test "attach: only a command for each message gets them" {
	publish --attach a="$T/small" q x
	for how in '' '-l' '--batch 2 -- cat' '--stream -- cat'; do
		# shellcheck disable=SC2086 # these are words
		run_mq 1 mq-consume --drain q $how
		[[ $stderr = *"rejected: attachments need a COMMAND for each message"* ]]
		run_mq 0 mq-return q
	done
	stays
}

@test "attach: neither side needs more memory for more" {
	[[ $BUILD != *address* ]] || skip "the sanitizer keeps what is freed"
	head -c 60000000 /dev/zero >"$T/huge"
	peak "$BUILD/mq-publish" --attach h="$T/huge" q x
	((peak < 40000))
	peak "$BUILD/mq-consume" -n 1 q -- sh -c 'cmp "$MQ_ATTACH_DIR/h" "$T/huge"'
	((peak < 40000))
	eventually 10 nothing_left
}
