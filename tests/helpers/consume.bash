# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What several files about consumers share.  Load it behind server.
#
#   seeded                 prints a seed and begins with it; SEED=N repeats a run's random
#                          moments as far as that is possible
#   own_server [OPTION...] a server of this test's own, which can be killed and run again
#   safe_server            one that loses nothing by that: server_run "${safe[@]}" runs it again
#   publish LINE...        into q
#   payloads STATE [Q]     what is there, in its order, in one line
#   fates                  of each message of q that is not acked, "STATE RUNS: REASON |
#                          PAYLOAD | ID", where STATE is unacked, ready, rejected, or delayed
#                          and the seconds since its last run
#   attempts_of STATE      how many of these have had an attempt
#   lines_of FILE          how many
#   calls [COMMANDS]       how often the server was asked for these, a regular
#                          expression, by scripts, too
#   at_rest                two seconds of the consumer's, which cost it hardly anything
#   work_on_hold           makes $T/work, a script that notes in $T/log when a message begins and
#                          ends, ends as $T/status.PAYLOAD says, and not before $T/go.PAYLOAD
#                          is there, or $T/hold is gone
#   begun                  how many of its messages have begun;  has_begun N
#   peak                   the most memory that it ever had, in KiB
#   with_sanitizer         who has memory of its own
#   proc_state PID LETTER  whether it is in that state
#   far_start [OPTION...]  another server, in $FAR, whose URL is $far_url
#   far ARGS...            what redis-cli prints of it
#   far_run                runs it again;  far_stop   ends it

safe=(--appendonly yes --appendfsync always)

seeded() {
	seed=${SEED:-$$}
	echo "seed $seed"
	RANDOM=$seed
}

own_server() {
	# teardown() ends what is not the file's.
	FILE_D=${FILE_D-$D}
	D=$(own_dir)
	server_run "$@"
}

safe_server() {
	own_server "${safe[@]}"
}

publish() {
	printf '%s\n' "$@" | run_mq 0 mq-publish -q -l q
}

payloads() {
	"$BUILD/mq-stats" --list "$1" -l "${2-q}" | paste -s -d ' ' -
}

fates() {
	local state
	for state in unacked ready delayed rejected; do
		"$BUILD/mq-stats" --list $state --jsonl q 2>/dev/null | jq -r --arg state $state '
			def first(name): .headers[name][0] // "none";
			def due: if $state == "delayed" then " \(((first("Mq-Due") | tonumber) -
				([.headers["Mq-History"][] | fromjson.at_ms] | max)) / 1000)" else "" end;
			"\($state)\(due) \(first("Mq-Attempt")): \(first("Mq-Error")) | \(.payload) | \(.id)"'
	done | sort
}

attempts_of() {
	"$BUILD/mq-stats" --list "$1" --jsonl q | grep -c '"Mq-Attempt":\["[1-9]'
}

lines_of() {
	local all
	mapfile -t all <"$1"
	echo "${#all[@]}"
}

calls() {
	redis info commandstats |
		perl -ne 'BEGIN { $c = shift }
			/^cmdstat_(?:$c):calls=(\d+)/ and $n += $1;
			END { print $n + 0 }' "${1-\\S+?}"
}

# In ticks of 1/100 s.
cpu_ticks() {
	local stat
	read -ra stat <"/proc/$pid/stat"
	echo $((stat[13] + stat[14]))
}

at_rest() {
	local from
	from=$(cpu_ticks)
	tick
	tick
	from=$(($(cpu_ticks) - from))
	echo "$from ticks"
	((from <= 20))
}

peak() {
	awk '/^VmHWM/ {print $2}' "/proc/$pid/status"
}

with_sanitizer() {
	[[ $BUILD == *address* ]]
}

proc_state() {
	[[ $(<"/proc/$1/stat") =~ \)\ (.) ]] && [ "${BASH_REMATCH[1]}" = "$2" ]
}

far_start() {
	FAR=$(own_dir) far_options=$*
	far_url=unix://$FAR/far.sock
	export FAR far_url far_options
	far_run
}

far() {
	redis-cli -s "$FAR/far.sock" "$@"
}

far_run() {
	# shellcheck disable=SC2046,SC2086 # words
	redis-server --port 0 --unixsocket "$FAR/far.sock" --dir "$FAR" --save '' \
		--pidfile "$FAR/far.pid" $(debug_allowed) $far_options --daemonize yes \
		--logfile "$FAR/far.log" >/dev/null
	eventually 10 far_answers
}

far_answers() {
	[ "$(far ping 2>/dev/null)" = PONG ]
}

far_stop() {
	far shutdown nosave >/dev/null 2>&1 || true
	rm -rf "$FAR"
}

work_on_hold() {
	: >"$T/log"
	# Tells when a message begins and ends, and waits for its end to be allowed.
	script work <<-'S'
		read -r p
		echo "$p begins" >>"$T/log"
		while [ -e "$T/hold" ] && [ ! -e "$T/go.$p" ]; do sleep 0.02; done
		echo "$p ends" >>"$T/log"
		exit "$(cat "$T/status.$p" 2>/dev/null || echo 0)"
	S
	touch "$T/hold"
}

begun() {
	grep -c begins "$T/log" || true
}

has_begun() {
	[ "$(begun)" = "$1" ]
}
