# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The workers that mq-batch(7) shows for --stream and --batch, with the very
# lines of the page.  What the options refuse is in messages.bats.

# run_mq sets output and stderr; each test is a subshell of its own.
# pid is for stop_mq.
# shellcheck disable=SC2030,SC2031,SC2034,SC2154

load ../helpers/server

setup() {
	common_setup
	PATH=$BUILD:$PATH
	cd "$T" || return
}

teardown() {
	cd / || return
	common_teardown
}

# The page, as a reader sees it.
shown() {
	mandoc -Tascii "$root/man/mq-batch.7" | sed 's/.\x08//g'
}

# shown_worker NAME: makes the script of this name, and sets command to the line
# that stands above it.
shown_worker() {
	local lines

	mapfile -t lines < <(shown | awk -v name=" $1" '
		inside && NF == 0 { exit }
		inside == 1 { match($0, /^ */); indent = RLENGTH; inside = 2 }
		inside { print substr($0, indent + 1) }
		/^ *mq-consume --(batch|stream)/ &&
		    substr($0, length($0) - length(name) + 1) == name {
			sub(/^ */, "")
			print
			inside = 1
		}')
	command=${lines[0]}
	assert_regex "$command" '^mq-consume --(batch|stream) '
	printf '%s\n' "${lines[@]:1}" >"$1"
	echo "\$ $command"
	cat "$1"
	# So that they can be read at a glance.
	assert [ "${#lines[@]}" -ge 3 ]
	assert [ "${#lines[@]}" -le 4 ]
}

# Starts it as the page has it.
start_shown() {
	bash -c "exec $command" >"$T/out" 2>"$T/err" 3>&- &
	pid=$!
}

# It ends as its input does.
end_shown() {
	kill "$pid"
	ends_within 15
	cat "$T/out" "$T/err"
	assert_equal "$status" 143
}

# sizes SCRIPT THREE NONE ODD: a worker of files, and what it says of three
# that are there.
sizes() {
	local i

	printf 'a\nbc\n' >three
	: >none
	echo x >'odd name '
	shown_worker "$1"
	start_shown
	# One at a time, and so with an answer before the next one comes.
	prints "$2" mq-publish --wait=120s files three
	run_mq 1 mq-publish --wait=120s files 'not here'
	assert_output "no file"
	prints "$3" mq-publish --wait=120s files none
	prints "$4" mq-publish --wait=120s files 'odd name '
	# Many at once.
	for i in $(seq 500); do
		echo three
		echo none
		((i % 100)) || echo "missing $i"
	done | mq-publish -l files
	eventually 30 held_is files "0 0 0 6"
	run_mq 0 mq-stats --list rejected --match 'missing' --jsonl files
	assert_equal "${#lines[@]}" 5
	run_mq 0 mq-stats --list rejected --match 'missing 300' --jsonl files
	assert_output --partial '"Mq-Error":["no file"]'
	end_shown
}

@test "loops: the stream workers of the page in sh, awk, Python and Perl" {
	local name three none odd

	while IFS='|' read -ru 4 name three none odd; do
		redis flushall
		sizes "$name" "$three" "$none" "$odd"
	done 4<<-'END'
		size.sh|5|0|2
		size.awk|2 lines|0 lines|1 lines
		size.py|||
		size.pl|5|0|2
	END
}

@test "loops: the stream worker of the page in other awks" {
	local awk

	mkdir bin
	for awk in gawk 'busybox awk' original-awk mawk; do
		type -P "${awk% *}" || continue
		redis flushall
		printf '#!/bin/sh\nexec %s "$@"\n' "$awk" >bin/awk
		chmod +x bin/awk
		PATH=$T/bin:$PATH sizes size.awk "2 lines" "0 lines" "1 lines"
	done
}

@test "loops: the batch worker of the page refuses single lines, and tries again what cannot be stored" {
	local i

	for i in $(seq 250); do
		((i % 50)) && echo "row $i" || echo "row"
	done | mq-publish -l rows
	mkdir rows.gz
	shown_worker load.sh
	start_shown
	eventually 20 some_delayed rows
	rmdir rows.gz
	eventually 20 held_is rows "0 0 0 5"
	assert_equal "$(gzip -dc rows.gz | sort)" "$(seq 250 | sed '/[05]0$/d; s/^/row /' | sort)"
	run_mq 0 mq-stats --list rejected --jsonl rows
	assert_equal "$(grep -c '"Mq-Error":\["two words, please"\]' <<<"$output")" 5
	assert_equal "$(grep -c '"payload":"row"' <<<"$output")" 5
	end_shown
}

# Each of them comes back at a time of its own.
some_delayed() {
	[ "$(held "$1" | cut -d ' ' -f 2)" -gt 0 ]
}

rows_of() {
	python3 -c '
import sqlite3
for row in sqlite3.connect("mail.db").execute("SELECT * FROM mail ORDER BY id"):
    print(*row)'
}

@test "loops: the batch worker of the page in Python stores each once" {
	local ids

	ids=$(printf '%s\n' "to all" 'a "b" \c' äö | mq-publish -i -l mail)
	redis eval 'return redis.call("SET", KEYS[2], redis.call("LINDEX", KEYS[1], -1))' \
		2 'rmq::queue::[mail]::ready' first
	shown_worker load.py
	start_shown
	# There is no table: all of them are tried again.
	eventually 20 some_delayed mail
	python3 -c '
import sqlite3
sqlite3.connect("mail.db").execute("CREATE TABLE mail (id PRIMARY KEY, text)")'
	eventually 20 held_is mail "0 0 0 0"
	run rows_of
	assert_output "$(paste -d ' ' <(echo "$ids") \
		<(printf '%s\n' "to all" 'a "b" \c' äö) | sort)"
	# One comes again, as after a crash.
	redis eval 'return redis.call("LPUSH", KEYS[1], redis.call("GET", KEYS[2]))' \
		2 'rmq::queue::[mail]::ready' first
	mq-publish --wait=120s mail last
	held_is mail "0 0 0 0"
	run rows_of
	assert_equal "${#lines[@]}" 4
	end_shown
}

# --- examples -----------------------------------------------------------------

# files QUEUE...: the paths of some, and of one that is not there, into each.
files() {
	local i queue

	mkdir dir
	for i in $(seq 30); do
		seq "$i" >"dir/file $i"
	done
	for queue; do
		printf '%s\n' dir/* dir/none | mq-publish -l "$queue"
	done
}

# What was found out about each file: but for its id, and its compressed size,
# since there is more than one way to do that.
results() {
	cut -d ' ' -f 2,3,5- "$RESULTS" | sort
}

@test "loops: the examples of a stream and of a batch do what that of single messages does" {
	export RESULTS=$T/results

	files docs more most
	run_mq 1 mq-consume -j2 --drain docs -- "$root/tests/house/examples/digest.sh"
	results >wanted
	assert_equal "$(wc -l <wanted)" 30
	rm "$RESULTS"
	run_mq 1 mq-consume -j2 --drain --stream --jsonl more -- \
		"$root/tests/house/examples/digest-stream.py"
	assert_regex "$stderr" 'rejected: no such file'
	held_is more "0 0 0 1"
	run diff <(results) wanted
	assert_output ""
	rm "$RESULTS"
	run_mq 1 mq-consume --drain --batch 20 most -- \
		"$root/tests/house/examples/digest-batch.sh"
	assert_regex "$stderr" 'rejected: no such file'
	held_is most "0 0 0 1"
	run sha256sum -c "$RESULTS"
	assert_success
	assert_equal "$(wc -l <"$RESULTS")" 30
}

# --- ends ---------------------------------------------------------------------

@test "loops: --strict is not for what a worker that ended well had not read" {
	seq 3 | mq-publish -l q
	script one <<-'E'
		read -r n && echo done >&3
	E
	run_mq 0 mq-consume --drain --stream --strict --window 3 q -- "$T/one"
	assert_equal "$stderr" ""
	held_is q "0 0 0 0"
}
