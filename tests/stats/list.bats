#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-stats --list, --running and --id: single messages, looked at without a
# trace.

load ../helpers/server
load ../helpers/wire
load go

setup() {
	common_setup
	export TZ=UTC
	rejected='rmq::queue::[jobs]::rejected'
}

# on_terminal COLUMNS ARGS...: mq-stats with a terminal of that width; nothing that it
# writes is a control character, or no UTF-8.
on_terminal() {
	run clean_terminal "$@"
}

clean_terminal() {
	set -o pipefail
	terminal "$@" |
		perl -CS -Mwarnings=FATAL,utf8 -pe 'die "control" if /[^\n\P{Cc}]/'
}

# --- the list -------------------------------------------------------------------

@test "list: ready messages of Go and of us, and unacked ones, and whose they are" {
	local old new

	old=$(stamp 7205 1)
	new=$(stamp 130 2)
	go_publish jobs one two three
	has jobs ready '{"Mq-Id":["'"$old"'"],"Mq-Attempt":["3"]}' first
	has jobs ready '{"Mq-Id":["'"$new"'"]}' second
	unchanged 0 --list ready jobs
	assert_output "\
ID                                 AGE  ATTEMPTS  PAYLOAD
-                                    -         0  one
-                                    -         0  two
-                                    -         0  three
$old    2h         3  first
$new    2m         0  second"
	assert_equal "$stderr" ""
	go_fetch web-aB3dE6 jobs 1
	go_fetch a-very-long-tag-Zz9Yy8 jobs 2
	unchanged 0 --list unacked jobs
	assert_equal "$(sort <<<"$output")" "\
-                                    -         0  web-aB3dE6          one
-                                    -         0  …y-long-tag-Zz9Yy8  three
-                                    -         0  …y-long-tag-Zz9Yy8  two
ID                                 AGE  ATTEMPTS  CONNECTION          PAYLOAD"
}

@test "list: delayed messages, the first to fall due first" {
	local now

	now=$(redis --raw time | head -n 1)
	go_open jobs
	redis zadd 'rmq::queue::[jobs]::delayed' "$((now + 7230))000" \
		"$(printf '%032d' 1)later" "$((now + 150))000" \
		"$(printf '%032d' 2)soon" 1000 "$(printf '%032d' 3)past" >/dev/null
	unchanged 0 --list delayed jobs
	assert_output "\
ID                                 AGE  ATTEMPTS  DUE  PAYLOAD
-                                    -         0  now  past
-                                    -         0  2m   soon
-                                    -         0  2h   later"
}

@test "list: rejected messages, and why" {
	local a b now

	a=$(stamp 9000 1)
	b=$(stamp 9000 2)
	now=$(date +%s)
	has jobs rejected '{"Mq-Id":["'"$a"'"],"Mq-Attempt":["2"],"Mq-Error":["no such user"],"Mq-History":["{\"at_ms\":'$((now - 7300))'000,\"attempt\":1}","{\"at_ms\":'$((now - 190))'000,\"attempt\":2}"]}' alice
	has jobs rejected '{"Mq-Id":["'"$b"'"],"Mq-Error":["a reason that is longer than there is room for it"]}' bob
	redis lpush "$rejected" 'as Go rejects' >/dev/null
	printf '\377\0\276\276Jno json\nx' | redis -x lpush "$rejected" >/dev/null
	unchanged 0 --list rejected jobs
	assert_output "\
ID                                 AGE  ATTEMPTS  REASON              PAYLOAD
$a    3m         2  no such user        alice
$b     -         0  a reason that is …  bob
-                                    -         0  -                   as Go rej…
-                                    -         0  bad header: heade…  \377\0\27…"
	on_terminal 104 --list rejected jobs
	assert_output "\
ID                                 AGE  ATTEMPTS  REASON                                    PAYLOAD
$a    3m         2  no such user                              alice
$b     -         0  a reason that is longer than there is r…  bob
-                                    -         0  -                                         as Go rejec…
-                                    -         0  bad header: header is not JSON            \377\0\276\…"
}

@test "list: nothing there, no such queue: 1 and one line" {
	go_publish jobs one
	unchanged 1 --list rejected jobs
	assert_equal "$output" ""
	assert_equal "$stderr" "mq-stats: jobs: no message is rejected"
	run_mq 1 mq-stats -q --list rejected jobs
	assert_equal "$output$stderr" ""
	run_mq 1 mq-stats --list ready nonesuch
	assert_equal "$output" ""
	assert_equal "$stderr" "mq-stats: nonesuch: no such queue"
	run_mq 1 mq-stats --list rejected --json jobs
	assert_equal "$output" "[]"
	run_mq 1 mq-stats --list ready --match nothing jobs
	assert_equal "$stderr" "mq-stats: jobs: none of 1 ready message matched"
	run_mq 1 mq-stats --list ready --offset 1 jobs
	assert_equal "$output" ""
}

@test "list: --limit and --offset, with and without a filter" {
	local state

	go_publish jobs a{1..9} b{1..9}
	prints $'a1\na2\na3' mq-stats --list ready -n 3 -l jobs
	prints $'a9\nb1' mq-stats --list ready --offset 8 --limit=2 -l jobs
	prints $'b8\nb9' mq-stats --list ready --offset 16 -l jobs
	prints $'b3\nb4' mq-stats --list ready --match '^b' --offset 2 -n 2 -l jobs
	run_mq 1 mq-stats --list ready --offset 18 -l jobs
	run_mq 1 mq-stats --list ready --offset 9223372036854775807 -l jobs
	go_fetch web-aB3dE6 jobs 4
	go_fetch web-Zz9Yy8 jobs 3
	for state in 2 5; do
		run_mq 0 mq-stats --list unacked --offset $state -l jobs
		assert_equal "${#lines[@]}" "$((7 - state))"
	done
	redis zadd 'rmq::queue::[jobs]::delayed' 1 "$(printf '%032d' 1)x" \
		2 "$(printf '%032d' 2)y" 3 "$(printf '%032d' 3)z" >/dev/null
	prints $'y\nz' mq-stats --list delayed --offset 1 -l jobs
}

@test "list: --match, --reason, --since" {
	local now

	now=$(date +%s)
	has jobs rejected '{"Mq-Error":["timeout after 3 s"],"Mq-History":["{\"at_ms\":'$((now - 7000))'000}"]}' alice
	has jobs rejected '{"Mq-Error":["no such user"],"Mq-History":["{\"at_ms\":'$((now - 60))'000}"]}' bob
	has jobs rejected '{"Mq-Error":["no such user"]}' carol
	unchanged 0 --list rejected --match 'a.*[el]$' -l jobs
	assert_output $'alice\ncarol'
	prints $'bob\ncarol' mq-stats --list rejected --reason '^no such' -l jobs
	prints bob mq-stats --list rejected --since 1h -l jobs
	prints alice mq-stats --list rejected --since 2h --reason timeout -l jobs
	run_mq 64 mq-stats --list rejected --match '(' jobs
	assert_equal "$output" ""
}

@test "list: framings, with bytes of any kind" {
	redis sadd rmq::queues jobs >/dev/null
	printf 'a\0b' | redis -x lpush 'rmq::queue::[jobs]::ready' >/dev/null
	printf '\377\n' | redis -x lpush 'rmq::queue::[jobs]::ready' >/dev/null
	redis lpush 'rmq::queue::[jobs]::ready' '' >/dev/null
	"$BUILD/mq-stats" --list ready -l jobs >"$T/lines"
	printf 'a\0b\n\377\n\n\n' | cmp - "$T/lines"
	"$BUILD/mq-stats" --list ready -0 jobs >"$T/null"
	printf 'a\0b\0\377\n\0\0' | cmp - "$T/null"
	"$BUILD/mq-stats" --list ready --netstring jobs >"$T/netstring"
	printf '3:a\0b,2:\377\n,0:,' | cmp - "$T/netstring"
	run_mq 0 mq-stats --list ready --jsonl jobs
	assert_output '{"queue":"jobs","state":"ready","attempts":0,"payload":"a\u0000b"}
{"queue":"jobs","state":"ready","attempts":0,"payload_base64":"/wo="}
{"queue":"jobs","state":"ready","attempts":0,"payload":""}'
	"$BUILD/mq-stats" --list ready --json jobs | python3 -IS -c '
import json, sys
assert [set(m) - {"queue", "state", "attempts"} for m in json.load(sys.stdin)] == [
	{"payload"}, {"payload_base64"}, {"payload"}]'
}

@test "list: --jsonl has all that is known, and can be published again" {
	local id

	id=$(stamp 60 1)
	has jobs rejected '{"Mq-Id":["'"$id"'"],"Mq-Attempt":["1"],"Mq-Error":["gone"],"Mq-History":["{\"at_ms\":1795207725000,\"attempt\":1,\"host\":\"web1\",\"status\":1,\"text\":\"gone\",\"stderr\":\"last words\"}"],"X-User":["7"]}' alice
	run_mq 0 mq-stats --list rejected --jsonl jobs
	assert_output '{"id":"'"$id"'","queue":"jobs","state":"rejected","attempts":1,"since_ms":1795207725000,"reason":"gone","history":[{"at_ms":1795207725000,"attempt":1,"host":"web1","status":1,"text":"gone","stderr":"last words"}],"headers":{"Mq-Id":["'"$id"'"],"Mq-Attempt":["1"],"Mq-Error":["gone"],"Mq-History":["{\"at_ms\":1795207725000,\"attempt\":1,\"host\":\"web1\",\"status\":1,\"text\":\"gone\",\"stderr\":\"last words\"}"],"X-User":["7"]},"payload":"alice"}'
	"$BUILD/mq-publish" --jsonl other <<<"$output"
	prints alice mq-stats --list ready -l other
}

@test "list: on a terminal nothing can drive it, whatever the framing" {
	local framing

	redis sadd rmq::queues jobs >/dev/null
	printf 'a\33[2J\0\302\233\177\7\xff\n\xe2\x80\xaex' |
		redis -x lpush "$rejected" >/dev/null
	has jobs rejected '{"Mq-Error":["\u001b]0;x\u0007\u009b"],"X":["\u007f\u009b"]}' "ok"
	for framing in '' -l -0 --netstring --jsonl --json; do
		on_terminal 100 --list rejected $framing jobs
		assert_success
		assert [ "${#lines[@]}" -ge 2 ]
	done
	on_terminal 100 --list rejected -l jobs
	assert_equal "${lines[0]%x}" 'a\033[2J\0\302\233\177\a\377\n\342\200\256'
	assert_equal "${lines[1]}" ok
	on_terminal 100 --list rejected --jsonl jobs
	assert_equal "$(python3 -IS -c 'import json, sys
print(ascii(json.loads(sys.argv[1])["reason"]))' "${lines[1]}")" \
		"'\\x1b]0;x\\x07\\x9b'"
}

@test "list: on a terminal a screenful, cut to its width" {
	go_publish jobs {1..50}
	redis lpush 'rmq::queue::[jobs]::ready' "$(printf '%0300d' 0)" >/dev/null
	on_terminal 80 --list ready jobs
	assert_success
	assert_equal "${#lines[@]}" 22
	assert_equal "${lines[20]}" \
		"-                                    -         0  20"
	assert_equal "${lines[21]}" \
		"mq-stats: jobs: only 20 ready messages shown; use --limit or --offset for more"
	on_terminal 80 --list ready --offset 40 -n 20 jobs
	assert_equal "${#lines[@]}" 12
	assert_equal "${lines[11]}" \
		"-                                    -         0  00000000000000000000000000000…"
	assert_equal "${#lines[11]}" 80
	on_terminal 80 --list ready -l jobs
	assert_equal "${#lines[@]}" 51
	run_mq 0 mq-stats --list ready jobs
	assert_equal "${#lines[@]}" 52
	assert_equal "${#lines[51]}" 80
}

@test "list: one line a message, of 80 columns, whatever is in it" {
	local c=rmq::connection::漢漢漢漢漢漢漢漢漢漢漢漢-aB3dE6 id many='' state text width

	redis sadd rmq::queues jobs >/dev/null
	id=$(stamp 60 1)
	printf -v many '漢%.0s' {1..100}
	for text in "$many" $'e\u0301\u0301\u0301a b' $'tab\tline\nend' \
		"$(printf '\033[31m%.0s' {1..40})" "$(printf '\377%.0s' {1..60})" plain ''; do
		for state in ready rejected; do
			has jobs $state '{"Mq-Id":["'"$id"'"],"Mq-Error":["'"$(
				tr -d '\377\033\n\t' <<<"$text")"'"]}' "$text"
			redis lpush "rmq::queue::[jobs]::$state" "$text" >/dev/null
		done
	done
	redis zadd 'rmq::queue::[jobs]::delayed' 99999999999999 \
		"$(printf '%032d' 1)$many" >/dev/null
	go_connect ${c#rmq::connection::} jobs
	redis rpush "$c::queue::[jobs]::unacked" "$many" >/dev/null
	for state in ready:14 rejected:14 delayed:1 unacked:1; do
		run_mq 0 mq-stats --list ${state%:*} jobs
		assert_equal "${#lines[@]}" $((1 + ${state#*:}))
		echo "$output" >"$T/80.$state"
		for width in 40 80 120; do
			on_terminal $width --list ${state%:*} jobs
			assert_equal "${#lines[@]}" $((1 + ${state#*:}))
			echo "$output" >"$T/$((width < 80 ? 80 : width)).$state.$width"
		done
	done
	for width in 80 120; do
		(($(cat "$T"/$width.* | widths | sort -n | tail -n 1) <= width))
	done
}

@test "list: 100,000 messages, and large ones, in bounded memory" {
	local small

	seq 100000 | "$BUILD/mq-publish" -l jobs
	"$BUILD/mq-stats" --list ready -l jobs | cmp - <(seq 100000)
	"$BUILD/mq-stats" --list ready -l --match '^9999.$' jobs |
		cmp - <(seq 99990 99999)
	prints $'99999\n100000' mq-stats --list ready -l --offset 99998 jobs
	redis config set proto-max-bulk-len 512mb >/dev/null
	for _ in 1 2 3 4 5 6; do
		head -c 4000000 /dev/zero | "$BUILD/mq-publish" large
	done
	peak "$BUILD/mq-stats" --list ready jobs
	small=$peak
	echo "small ones: $small KiB"
	[[ $BUILD == *address* ]] || ((small < 16384))
	peak "$BUILD/mq-stats" --list ready large
	echo "large ones: $peak KiB"
	# Two copies of one of them, and the reader's buffer, which may have doubled; all
	# six would be 24,000 KiB.
	[[ $BUILD == *address* ]] || ((peak - small < 16384))
}

@test "list: --newest, with filters, --offset and --limit" {
	local i

	for ((i = 1; i <= 45; i++)); do echo "m$i"; done | "$BUILD/mq-publish" -l jobs
	run_mq 0 mq-stats --list ready -l --newest jobs
	assert_equal "$(head -n 2 <<<"$output" | tr '\n' ' ')" "m45 m44 "
	assert_equal "$(wc -l <<<"$output")" 20
	prints $'m43\nm42\nm41' mq-stats --list ready -l --newest -n 3 --offset 2 jobs
	prints $'m43\nm39' mq-stats --list ready -l --newest -n 2 --match 3 jobs
	run_mq 0 mq-stats --list ready -l --newest -n 100 jobs
	assert_equal "$(wc -l <<<"$output")" 45
	"$BUILD/mq-consume" --drain jobs -- false 2>/dev/null || true
	prints $'m45\nm44' mq-stats --list rejected -l --newest -n 2 jobs
}

@test "list: --not, --header, --key, --older-than and --id are filters, too" {
	"$BUILD/mq-publish" -k one -H "Colour: red" jobs apple
	"$BUILD/mq-publish" -k two -H "Colour: green" jobs pear
	"$BUILD/mq-publish" -H "Colour: red" jobs plum
	local id
	id=$("$BUILD/mq-publish" -i jobs fig)
	prints $'apple\nplum' mq-stats --list ready -l --header 'Colour=^r' jobs
	prints $'pear\nfig' mq-stats --list ready -l --not --header Colour=red jobs
	prints pear mq-stats --list ready -l --key two jobs
	prints apple mq-stats --list ready -l --header Colour=. --not --key two --not --match lum jobs
	prints fig mq-stats --list ready -l --id "$id" jobs
	prints $'pear\nplum' mq-stats --list ready -l --not --id "$id" --match '^p' jobs
	run_mq 1 mq-stats -q --list ready --older-than 1h jobs
	prints fig mq-stats --list ready -l --not --older-than 1h --match fig jobs
	run_mq 0 mq-purge -f --ready --not --key one jobs
	assert_output "3 messages purged"
}

# --- what runs ------------------------------------------------------------------

# runs CONNECTION HOST JSON: as a consumer tells it.
runs() {
	go_connect "$1" jobs
	redis hset "rmq::connection::$1::info" host "$2" >/dev/null
	redis set "rmq::connection::$1::running" "$3" EX 60 >/dev/null
}

# run_json QUEUE ID ATTEMPT PID SECONDS SCRIPT TEXT
run_json() {
	printf '{"queue":"%s","id":"%s","attempt":%d,"pid":%d,"started_ms":%d,"script":"%s","text":"%s"}' \
		"$1" "$2" "$3" "$4" "$((($(date +%s) - $5) * 1000))" "$6" "$7"
}

@test "running: scripts of all connections, or of some queues" {
	local a b

	a=$(stamp 0 1)
	b=$(stamp 0 2)
	redis sadd rmq::queues jobs mails idle >/dev/null
	runs c-111111 web1 "[$(run_json mails "$a" 2 4711 300 /srv/mail 'sending 3 of 9')]"
	runs c-222222 db2 "[$(run_json jobs "$b" 1 22 4000 ./job '\u001b[2J')]"
	unchanged 0 --running
	assert_regex "${lines[0]}" '^QUEUE  ID {32}ATTEMPT  HOST   PID  SECONDS  SCRIPT     TEXT$'
	assert_regex "${lines[1]}" "^jobs   $b        1  db2     22     40[0-9][0-9]  ./job      \\\\033\[2J\$"
	assert_regex "${lines[2]}" "^mails  $a        2  web1  4711      3[0-9][0-9]  /srv/mail  sending 3 of 9\$"
	assert_equal "${#lines[@]}" 3
	run_mq 0 mq-stats --running mails
	assert_equal "${#lines[@]}" 2
	assert_regex "${lines[1]}" "^mails "
	run_mq 1 mq-stats --running idle
	assert_equal "$output" ""
	assert_equal "$stderr" "mq-stats: no script is running"
	run_mq 1 mq-stats --running mails nonesuch
	assert_equal "$stderr" "mq-stats: nonesuch: no such queue"
	run_mq 0 mq-stats --running --json jobs
	assert_regex "$output" '^\[\{"queue":"jobs","id":"'"$b"'","attempt":1,"host":"db2","pid":22,"connection":"c-222222","started_ms":[0-9]+,"script":"./job","seconds":400[0-9],"text":"\\u001[bB]\[2J"\}\]$'
}

@test "running: a text that begins with a percentage has a bar, and JSON the number" {
	redis sadd rmq::queues jobs >/dev/null
	runs c-111111 web1 "[$(run_json jobs "$(stamp 0 1)" 1 7 90 ./job '47% of a film'),$(
		run_json jobs "$(stamp 0 2)" 1 8 90 ./job '100%'),$(
		run_json jobs "$(stamp 0 3)" 1 9 90 ./job '47 of 50')]"
	unchanged 0 --running
	assert_regex "${lines[1]}" ' ./job   \[####\.{6}\] 47% of a film$'
	assert_regex "${lines[2]}" ' ./job   \[#{10}\] 100%$'
	assert_regex "${lines[3]}" ' ./job   47 of 50$'
	run_mq 0 mq-stats --running --json
	assert_equal "$(jq -c '[.[] | .percent, .text]' <<<"$output")" \
		'[47,"47% of a film",100,"100%",null,"47 of 50"]'
	run_mq 0 mq-stats --html
	assert_line --regexp '\[####\.{6}\] 47% of a film'
}

@test "running: a script that mq-consume runs, with what it said last" {
	local p

	script worker <<-'END'
	echo "run page 3 of 200" >&3
	read -r _ <"$T/go"
	END
	mkfifo "$T/go"
	p=$("$BUILD/mq-publish" -i jobs payload)
	start_mq mq-consume -n 1 jobs -- "$T/worker"
	eventually 10 told
	run_mq 0 mq-stats --running jobs
	assert_regex "${lines[1]}" "^jobs   $p        1  [^ ]+ +[0-9]+ +[0-9]+  $T/worker  page 3 of 200\$"
	run_mq 0 mq-stats --id "$p"
	assert_line --regexp "^running     attempt 1 for [0-9]+ s, pid [0-9]+ on $(uname -n): $T/worker: page 3 of 200\$"
	assert_line "state       unacked"
	stop_mq KILL
}

told() {
	"$BUILD/mq-stats" --running 2>/dev/null | grep -q 'page 3 of 200'
}

# --- one message ----------------------------------------------------------------

@test "id: the whole of a rejected message" {
	local id

	id=$(stamp 3605 1)
	# In front of it, one whose payload mentions it.
	has other ready '{"Mq-Id":["'"$(stamp 0 2)"'"]}' "about $id"
	has jobs rejected '{"Mq-Id":["'"$id"'"],"Mq-Attempt":["2"],"Mq-Error":["no such user"],"Mq-History":["{\"at_ms\":1795207725000,\"attempt\":1,\"host\":\"web1\",\"signal\":\"SEGV\",\"stderr\":\"one\\ntwo\\u001b[2J\"}","{\"at_ms\":1795207785000,\"attempt\":2,\"host\":\"web2\",\"status\":3,\"text\":\"no such user\"}"],"X-User":["7","8"]}' $'alice\e[2J'
	unchanged 0 --id "$id"
	assert_output --regexp "^id          $id
queue       jobs
state       rejected
published   20[0-9T:-]*\+00:00 \(1h ago\)
since       2026-11-20T20:49:45\+00:00 \([0-9]+[smhd] ago\)
attempts    2
reason      no such user
header      X-User: 7
header      X-User: 8
size        9
payload     alice\\\\033\[2J
attempt 1   2026-11-20T20:48:45\+00:00  web1  signal SEGV
  stderr    one
  stderr    two\\\\033\[2J
attempt 2   2026-11-20T20:49:45\+00:00  web2  exit 3: no such user\$"
	run_mq 0 mq-stats --id "$id" --json jobs
	assert_output --regexp '^\{"id":"'"$id"'","queue":"jobs","state":"rejected","attempts":2,"since_ms":1795207785000,"reason":"no such user","history":\[\{"at_ms":1795207725000.*\],"published_ms":[0-9]{13},"headers":\{"X-User":\["7","8"\]\},"size":9,"payload":"alice\\u001[bB]\[2J"\}$'
	unchanged 1 --id "$id" other
	assert_equal "$output$stderr" "mq-stats: $id: no such message"
	run_mq 1 mq-stats -q --id "$id" other
	assert_equal "$stderr" ""
	run_mq 1 mq-stats --id "$id" nonesuch
	assert_equal "$stderr" "mq-stats: nonesuch: no such queue"
}

@test "id: in each state" {
	local id c

	redis sadd rmq::queues aaa zzz >/dev/null
	id=$("$BUILD/mq-publish" -i -d 90m jobs hello)
	seq 3000 | "$BUILD/mq-publish" -l jobs
	unchanged 0 --id "$id"
	assert_line "state       delayed"
	assert_line --regexp '^due         20.* \(in 1h\)$'
	id=$("$BUILD/mq-publish" -i jobs hello)
	unchanged 0 --id "$id"
	assert_line "state       ready"
	assert_line "payload     hello"
	seq 10 | "$BUILD/mq-publish" -l jobs
	go_fetch web-aB3dE6 jobs 3001
	unchanged 0 --id "$id"
	assert_line "state       unacked"
	assert_line "connection  web-aB3dE6"
	refute_line --regexp '^running'
	run_mq 0 mq-stats --id "$id" --json
	assert_output --partial '"state":"unacked","attempts":0,'
	assert_output --partial '"connection":"web-aB3dE6"'
}

@test "id: one that came without an id, and runs" {
	local id

	id=$(stamp 0 7)
	go_publish jobs bare
	go_fetch c-111111 jobs 1
	runs c-111111 web1 "[$(run_json jobs "$id" 1 4711 5 ./job halfway)]"
	run_mq 0 mq-stats --id "$id"
	assert_output --regexp "^id          $id
queue       jobs
state       unacked
connection  c-111111
running     attempt 1 for [0-9]+ s, pid 4711 on web1: ./job: halfway\$"
	run_mq 0 mq-stats --id "$id" --json
	assert_output --partial '"state":"unacked","connection":"c-111111","running":{"queue":"jobs"'
}
