# What the options of delivery cost against plain messages, and how long others
# wait when many messages fall due at once; a part of run.sh.
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run.sh

kinds="priority key group delay expires tick caps"
delivered=100000
home="rmq::queue::[$queue]"

# Lines, and JSON for messages with a key or a group of their own each, and for
# plain ones to compare those with.
make_messages() {
	[ ! -e "$D/some" ] || return 0
	python3 - "$D" $delivered <<'EOF'
import json, sys
dir, count = sys.argv[1], int(sys.argv[2])
kinds = {"json": lambda i: {"X-Key": "key-%d" % i},
         "key": lambda i: {"Mq-Key": "key-%d" % i},
         "group": lambda i: {"Mq-Group": "group-%d" % (i // 4)}}
for kind, headers in kinds.items():
    with open("%s/%s.json" % (dir, kind), "w") as f:
        for i in range(count):
            f.write(json.dumps(
                {"payload": "%-100d" % i, "headers": headers(i)}) + "\n")
with open(dir + "/some", "w") as f:
    f.writelines("%-100d\n" % i for i in range(count))
EOF
}

# publish_kind KIND DELAY: many messages of a kind, timed.
publish_kind() {
	kind=$1
	flush
	if [ -e "$D/$kind.json" ]; then
		timed "publish-$kind" -i "$D/$kind.json" \
			mq-publish --jsonl "$queue"
		return
	fi
	case $kind in
	plain) set -- ;;
	priority) set -- -p 5 ;;
	delay) set -- -d "$2" ;;
	expires) set -- -e 1h ;;
	tick) set -- --from-tick 0 ;;
	caps) set -- --max-length 1000000 ;;
	esac
	timed "publish-$kind" -i "$D/some" mq-publish "$@" -l "$queue"
}

# The plain messages that a kind is compared with.
base_of() {
	if [ -e "$D/$1.json" ]; then
		echo json
	else
		echo plain
	fi
}

used_memory() {
	redis info memory | sed -n 's/^used_memory:\([0-9]*\).*/\1/p'
}

# Bytes a message, behind the times of its publishing.
options_round() {
	for kind in plain json $kinds; do
		flush
		before=$(used_memory)
		publish_kind "$kind" 1ms
		echo $((($(used_memory) - before) / delivered)) >>"$D/$kind.bytes"
		timed "consume-$kind" mq-consume -q --drain "$queue"
		[ "$(redis exists "$home::ready" "$home::priority" \
			"$home::delayed")" = 0 ] || die "consume-$kind: some are left"
	done
}

bench_options() {
	make_messages
	rounds options_round
	what="publish $delivered"
	for kind in $kinds; do
		base=$(base_of "$kind")
		compare "$what" "$base" "$kind" "publish-$base" "publish-$kind" "-"
		what=
	done
	what="consume $delivered, print"
	for kind in $kinds; do
		base=$(base_of "$kind")
		compare "$what" "$base" "$kind" "consume-$base" "consume-$kind" "-"
		what=
	done
	what="bytes a message in Redis"
	for kind in $kinds; do
		base=$(base_of "$kind")
		bytes=$(paste "$D/$kind.bytes" "$D/$base.bytes" |
			awk '{print $1 / $2}' | middle)
		row "$what" "$kind" "$base" "${bytes%% *}" "" "${bytes#* }" "-"
		what=
	done
}

# --- all due at once ----------------------------------------------------------

# fall_due: a million delayed messages, which all fall due now.
fall_due() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		mq-publish -q -d 1ms -l "$queue" <"$D/some"
	done
	[ "$(redis zcard "$home::delayed")" = 1000000 ] ||
		die "not all messages are delayed"
}

# due_while CASE COMMAND...: as waited() in waits.sh.
due_while() {
	case=$1
	shift
	for sock in "$other" "$main"; do
		export MQ_URL="unix://$sock"
		flush
		fall_due
		"$bin/waits" "$main" "$@" >"$D/waits" || die "$case: failed"
		[ "$sock" = "$main" ] || case=$case-other
		cat "$D/waits" >>"$D/$case.waits"
		case=${case%-other}
		[ "$(redis exists "$home::delayed")" = 0 ] ||
			die "$case: some are still delayed"
	done
}

due_round() {
	"$bin/waits" "$main" sleep 1 >>"$D/idle.waits" || die "idle: failed"
	due_while due-clean mq-clean -q
	due_while due-consume mq-consume -q --drain "$queue"
}

bench_due() {
	make_messages
	main=$sock
	start_server due
	other=$sock sock=$main
	rounds due_round
	sock=$main
	export MQ_URL="unix://$main"
	flush
	wait_rows "1 M due, mq-clean" due-clean
	wait_rows "1 M due, mq-consume" due-consume
}
