# How long other clients wait while an operator is at work (see waits.c); a
# part of run.sh.  What counts is by how much the longest wait is longer than
# that of the same round on an idle server.  The machine is then as busy as the
# work makes it, which is no fault of the server's: so the work is done on
# another server as well, and what is left of the difference is for comparison.
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run.sh

main='' other=''

# waited CASE COUNT LIST COMMAND...: with so many messages in LIST.
waited() {
	case=$1 count=$2 list=$3
	shift 3
	for sock in "$other" "$main"; do
		redis del "$key" "$rejected" >/dev/null
		put "$count" "$list"
		MQ_URL="unix://$sock" "$bin/waits" "$main" "$@" >"$D/waits" ||
			die "$case: failed"
		if [ "$sock" = "$main" ]; then
			cat "$D/waits" >>"$D/$case.waits"
		else
			cat "$D/waits" >>"$D/$case-other.waits"
		fi
	done
}

# matched LEFT MOVED: what a filtered return has left, and moved.
matched() {
	expect "$1" "$rejected"
	expect "$2" "$key"
}

waits_round() {
	"$bin/waits" "$main" sleep 1 >>"$D/idle.waits" || die "idle: failed"
	waited purge 1000000 "$key" mq-purge -q --ready --force "$queue"
	expect 0 "$key"
	waited return 1000000 "$rejected" mq-return -q "$queue"
	matched 0 1000000
	waited match-few 100000 "$rejected" \
		mq-return -q --match '[13579] *$' "$queue"
	matched 50000 50000
	waited match 1000000 "$rejected" \
		mq-return -q --match '[13579] *$' "$queue"
	matched 500000 500000
	waited list 1000000 "$key" mq-stats -q --list ready -l "$queue"
	expect 1000000 "$key"
}

# more CASE OTHER-CASE COLUMN: how much longer a wait was, in milliseconds.
more() {
	paste "$D/$1.waits" "$D/$2.waits" |
		awk -v c="$3" '{print ($c - $(c + 2)) / 1e6}' | middle
}

# wait_row WHAT OURS OTHER CASE OTHER-CASE COLUMN WANTED
wait_row() {
	ms=$(more "$4" "$5" "$6")
	row "$1" "$2" "$3" "${ms%% *}" " ms" "${ms#* }" "$7"
}

# wait_rows WORK CASE
wait_rows() {
	wait_row "wait, $1" "the longest" "no work" "$2" idle 1 "<= 10"
	wait_row "" "p99.9" "no work" "$2" idle 2 "<= 10"
	wait_row "" "the longest" "work on another server" "$2" "$2-other" 1 "-"
}

bench_waits() {
	main=$sock
	start_server other
	other=$sock sock=$main
	flush
	rounds waits_round
	sock=$main
	export MQ_URL="unix://$main"
	idle=$(awk '{print $1 / 1e6}' "$D/idle.waits" | middle)
	row "wait, no work" "the longest" "-" "${idle%% *}" " ms" "${idle#* }" "-"
	wait_rows "purge of 1 M" purge
	wait_rows "return of 1 M" return
	wait_rows "--match in 100,000" match-few
	wait_rows "--match in 1 M" match
	wait_rows "list of 1 M" list
}
