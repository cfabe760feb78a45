# Measuring, and the lines of the table; a part of run.sh.
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run.sh

# timed CASE [-i FILE] COMMAND...: adds its time and memory to those of CASE.
timed() {
	case=$1
	shift
	"$bin/measure" "$@" >>"$D/$case.times" || die "$case: failed"
}

# expect LENGTH LIST: makes sure that the work has been done.
expect() {
	n=$(redis llen "$2")
	[ "$n" = "$1" ] || die "$case: $2 has $n messages, not $1"
}

middle() {
	sort -n | awk '{v[NR] = $1} END {
		m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
		printf "%.2f %.2f..%.2f\n", m, v[1], v[NR]}'
}

# The other's time by ours, round by round; ours for so many times as much.
ratio() {
	paste "$D/$2.times" "$D/$1.times" |
		awk -v much="${3:-1}" '{print much * $1 / $3}' | middle
}

peak_kib() {
	awk '$2 > max {max = $2} END {print max}' "$D/$1.times"
}

# mark VALUE WANTED: ok or short; "-" when nothing is wanted.
mark() {
	echo "$1 $2" | awk '$2 == "-" {print "-"; exit}
		{print ($2 == ">=" ? $1 >= $3 : $1 <= $3) ? "ok" : "short"}'
}

line() {
	printf '%-26s | %-24s | %-28s | %7s | %-12s | %-8s | %s\n' "$@"
}

# row WHAT OURS OTHER VALUE UNIT FROM..TO WANTED
row() {
	line "$1" "$2" "$3" "$4$5" "$6" "$7" "$(mark "$4" "$7")"
}

# compare WHAT OURS OTHER OUR-CASE OTHER-CASE WANTED [TIMES-AS-MUCH]
compare() {
	# shellcheck disable=SC2046 # two words: the median and the range
	set -- "$1" "$2" "$3" "$6" $(ratio "$4" "$5" "${7:-1}")
	row "$1" "$2" "$3" "$5" "" "$6" "$4"
}

# memory WHAT OURS CASE LIMIT, in 1,000,000 bytes
memory() {
	row "$1" "$2" "-" "$(peak_kib "$3" | awk '{printf "%.1f", $1 * 0.001024}')" \
		" MB" "" "<= $4"
}

rounds() {
	i=0
	while [ $i -lt "$ROUNDS" ]; do
		i=$((i + 1))
		"$@"
	done
}
