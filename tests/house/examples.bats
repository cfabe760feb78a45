#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Every command of README and of the EXAMPLES of each page is run as it stands
# there, and does what is said of it.
#
# A branch below is for what ends in another way than well, or has done something that can be
# looked at:
#
#   ends STATUS      it ends by itself; $output and $stderr are what it printed
#   leaves HAS...    it ends well, or as mq-consume then ends
#   refused HAS...   it ends well, and the next time as a duplicate, with 1
#   gives TEXT HAS...   it ends with 0, and has printed that
#   line RE HAS...   and a line like that; shows TEXT: that, and more
#   tells RE HAS...  it ends with 0, and says such a thing somewhere
#   serves CMD...    it runs until CMD is true, and ends by SIGTERM
#
# HAS are queues, each with its "ready delayed unacked rejected", on the server $URL if that is set.
#
# Paths and servers that a test cannot have are replaced: see in_the_sandbox.

# run_mq sets output and stderr; T and D are of common.bash; pid is for stop_mq.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154

load ../helpers/server
load ../helpers/wire

setup_file() {
	# --durable needs one that keeps what it has confirmed.
	server_start --appendonly yes --appendfsync always
	replica_beside
}

setup() {
	common_setup
	# No configuration of the person who runs the tests.
	export HOME=$T USER=${USER:-somebody} PATH=$T/bin:$BUILD:$PATH
	local db='?db='
	[ "${TOPOLOGY-}" != sentinel ] || db=/
	export NEW=$MQ_URL${db}1 FAR=$MQ_URL${db}2
	# Few clusters have databases.
	[ "${TOPOLOGY-}" != cluster ] || NEW=private:$T/new FAR=private:$T/far
	unset XDG_CONFIG_HOME XDG_STATE_HOME URL
	mkdir -p "$T/bin"
	# A word that the shell tells apart from others must not be in one of them.
	[[ $T != *[[:space:]]* ]]
	cd "$T" || return
}

teardown() {
	local sock

	while IFS= read -r -d '' sock; do
		redis-cli -s "$sock" shutdown nosave >/dev/null 2>&1 || true
	done < <(find "$T" -name redis.sock -print0)
	redis acl deluser app >/dev/null 2>&1 || true
	cd / || return
	common_teardown
}

# --- what there is --------------------------------------------------------------

# The commands of README, a NUL behind each.  A line that ends in a backslash
# goes on in the next.
readme_commands() {
	perl -0777 -ne 'while (/^    (?:\$ )((?:.*\\\n)*.*)\n/mg) {
		(my $c = $1) =~ s/^    //mg; print "$c\0" }' "$root/README.md"
	grep -E '^    make ' "$root/README.md" | sed 's/^    //' | tr '\n' '\0'
}

examples() {
	sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE ALSO/p' "$root/man/$1"
}

# The commands of a page; a block of lines is one, unless it is a script that
# has a name.
page_commands() {
	examples "$1" | perl -0777 -ne 'while (/^\.Dl \$ (.*)\n|^\.Bd -literal.*\n(?!#!)((?:.*\n)*?)\.Ed/mg) {
		my $c = defined $1 ? $1 : $2; $c =~ s/\\e/\\/g; print "$c\0" }'
}

# The scripts of a page: the last name in .Pa before each is its own.
make_scripts() {
	examples "$1" | perl -0777 -ne 'while (/^\.Bd -literal.*\n(#!(?:.*\n)*?)\.Ed/mg) {
		my ($text, $before) = ($1, $`);
		my ($name) = $before =~ /.*^\.Pa (\S+)/ms;
		$text =~ s/\\e/\\/g;
		open my $f, ">", $name or die; print $f $text; chmod 0755, $name }'
}

in_the_sandbox() {
	local text=$1

	text=${text//redis:\/\/far/\$FAR}
	text=${text//\/usr\/local\/bin/$BUILD}
	# Any port that is free.
	text=${text//--http=9780/--http=0}
	text=${text//-s redis.sock/-s $HOME/.local/state/mq/redis.sock}
	[[ -z ${ID-} ]] || text=${text// ID / $ID }
	[[ -z ${RECEIPT-} ]] || text=${text// RECEIPT / $RECEIPT }
	printf '%s' "$text"
}

# --- how they are run -----------------------------------------------------------

ends() {
	looked=1
	local want=$1

	run --separate-stderr timeout -k 5 180 bash -c "$(in_the_sandbox "$command")" \
		</dev/null 3>&-
	[ "$status" = "$want" ] || {
		echo "status $status: $output $stderr"
		return 1
	}
}

leaves() {
	local end=0 delayed rejected

	IFS=' ' read -r _ delayed _ rejected <<<"$2"
	if [[ $command == mq-consume* ]]; then
		((delayed == 0)) || end=75
		((rejected == 0)) || end=1
	fi
	ends $end
	has "$@"
}

refused() {
	ends 0
	ends 1
	has "$@"
}

gives() {
	ends 0
	assert_output "$1"
	has "${@:2}"
}

shows() {
	ends 0
	[[ $output == *"$1"* ]]
}

line() {
	ends 0
	assert_line --regexp "$1"
	has "${@:2}"
}

tells() {
	ends 0
	assert_regex "$output$stderr" "$1"
	has "${@:2}"
}

serves() {
	looked=1
	bash -c "exec $(in_the_sandbox "${command%&}")" >"$T/out" 2>"$T/err" 3>&- &
	pid=$!
	eventually 10 "$@" || {
		cat "$T/out" "$T/err"
		return 1
	}
	stop_mq TERM 143
}

# asks ANSWER: the command asks on a terminal.
asks() {
	looked=1
	run timeout 120 python3 -S -c 'from wire import *
on_terminal(sys.argv[1] + "\n", ["bash", "-c", sys.argv[2]])' "$1" "$(in_the_sandbox "$command")" 3>&-
	assert_success
}

# The lines of a crontab, as cron runs them.
cron() {
	looked=1
	local line text env=(HOME="$HOME" SHELL=/bin/sh PATH=/usr/bin:/bin)

	mkdir -p "$HOME/.config/mq"
	echo "MQ_URL=$MQ_URL" >"$HOME/.config/mq/env"
	while IFS= read -r line; do
		if [[ $line =~ ^[A-Z]+= ]]; then
			env+=("$line")
			continue
		fi
		[[ $line =~ ^([^ ]+ +){5}(.*)$ ]]
		text=${BASH_REMATCH[2]//\\%/%}
		# A bare percent sign would end the command.
		[[ ${BASH_REMATCH[2]//\\%/} != *%* ]]
		run env -i "${env[@]}" /bin/sh -c "$text" 3>&-
		echo "$output"
		assert_equal "$status" "${1:-0}"
		assert_output ""
	done < <(in_the_sandbox "$command")
	rm -r "$HOME/.config"
}

# Starts the command of a unit, as systemd finds it.
unit() {
	looked=1
	local line

	line=$(sed -n 's/^ExecStart=//p' <<<"$command")
	[ -n "$line" ]
	env -i HOME="$HOME" PATH="$BUILD:/usr/bin:/bin" MQ_URL="$MQ_URL" \
		/bin/sh -c "exec $line" 3>&- &
	pid=$!
}

has() {
	while (($#)); do
		[ "$("$BUILD/mq-stats" ${URL:+-u "$URL"} "$1" | awk 'NR == 2 {print $2, $3, $4, $5}')" = "$2" ] || return 1
		shift 2
	done
}

# Each command of a list: what a function says of it.
each() {
	local command MQ_URL=$MQ_URL

	while IFS= read -r -d '' command; do
		echo "\$ $command"
		# What mq(7) says of this layout on a cluster.
		MQ_URL=${MQ_URL%\?ns=*}
		[[ ${TOPOLOGY-} != cluster || $command != *'-L rsmq'* ]] ||
			MQ_URL+='?ns={rsmq}'
		# A page can be copied from: each command stands on one line of it.
		[[ -z $printed || $command == *$'\n'* ]] || grep -qFx "\$ $command" <<<"$printed"
		looked=
		! declare -F "$1" >/dev/null || "$1"
		[ -n "$looked" ] || any
		count=$((count + 1))
	done
}

# --- README ---------------------------------------------------------------------

# README's scripts, by the headings or words that they are behind.
readme_scripts() {
	sed -n '/^## A worker/,/^## /s/^    //p' "$root/README.md" >./compress
	chmod +x compress
	script call-api <<'.'
cat >>"$T/called"
.
	script first-stage <<'.'
echo push >&3
.
	script send <<'.'
cat >>"$T/sent"
.
	# Whatever asks for the server of the commands.
	printf '#!/bin/sh\nexec %s %s "$@"\n' "$(type -P redis-cli)" "$(redis_at)" >bin/redis-cli
	chmod +x bin/redis-cli
	echo 'dear Ann' >letter
	some_scripts
}

some_scripts() {
	script job <<<'exit 0'
	script refused <<'.'
echo connection refused >&2
exit 1
.
}

# Messages that have failed, as this tool and that script do it.
fail_with() {
	printf '%s\n' "${@:3}" | "$BUILD/mq-publish" -q -l "$1"
	"$BUILD/mq-consume" -q --drain --attempts 1 "$1" -- "$2" || [ $? = 1 ]
}

collects() {
	start_mq mq-consume --result stdout squares -- awk '{ print $1 ^ 2 }'
	gives $'1\n4\n9\n16'
	stop_mq
}

# Of a good one and a bad one, the second has a mail.
mails() {
	cp "$root/tests/house/examples/mq-mail" bin/
	script bin/sendmail <<<'cat >>mails'
	mq-publish -q bad x
	mq-consume -q --drain --notify ends bad -- false || [ $? = 1 ]
	serves has ends "0 0 0 0"
	assert_equal "$(grep -c '^Subject: ' mails)" 1
	grep -q '"queue":"bad","state":"rejected"' mails
}

readme() {
	case $command in
	'make demo '* | 'make check '* | 'make && make install PREFIX=/usr/local')
		# CI does these, which take long; here, only that they can be made.
		looked=1
		run bash -c "cd '$root' && ${command//make/make -n}"
		assert_success
		assert_output
		;;
	"printf '%s\n' logs/a.log logs/b.log logs/c.log | mq-publish -l logs") leaves logs "3 0 0 0" ;;
	'mq-consume -j4 --drain logs -- ./compress')
		leaves logs "0 0 0 1"
		assert_regex "$stderr" 'rejected: no such file$'
		gzip -t logs/a.log.gz logs/b.log.gz
		# gzip refuses a directory.
		mq-publish -q logs logs
		run_mq 75 mq-consume -q --drain logs -- ./compress
		mq-purge -q --force --delayed logs
		;;
	'mq-stats logs') line '^logs +0 +0 +0 +1 +0 ' ;;
	'mq-stats --reasons logs')
		ends 0
		assert_line --index 0 --regexp '^COUNT  OLDEST  NEWEST  REASON$'
		assert_line --index 1 --regexp '^ +1 +[0-9]s +[0-9]s  no such file$'
		;;
	"date >logs/c.log; mq-return --reason 'no such' logs") leaves logs "1 0 0 0" ;;
	'mq-consume -j4 logs -- ./compress &')
		serves has logs "0 0 0 0"
		gzip -t logs/c.log.gz
		;;
	"mq-publish --at 'tomorrow 9:00' mails <letter "*) leaves mails "0 1 0 0" ;;
	'mq-publish -p 10 jobs urgent '*) leaves jobs "1 0 0 0" ;;
	'mq-publish -k "$USER" rebuild now '*) refused rebuild "1 0 0 0" ;;
	'mq-publish -g account-17 ledger +5 '*)
		ends 0
		leaves ledger "1 1 0 0"
		;;
	'mq-publish -l --batch b parts '*)
		seq 3 >list
		leaves parts "3 1 0 0"
		"$BUILD/mq-consume" --drain parts >/dev/null
		has merge "1 0 0 0"
		;;
	'mq-publish --max-length 1000 jobs more '*) leaves jobs "2 0 0 0" ;;
	'mq-publish --durable jobs this '*) leaves jobs "3 0 0 0" ;;
	'mq-publish --spool jobs this '*) leaves jobs "4 0 0 0" ;;
	'mq-publish --wait=1m jobs this '*)
		"$BUILD/mq-consume" -n 5 jobs -- sh -c 'echo done well >&3' 2>"$T/err" 3>&- &
		gives well
		wait $!
		has jobs "0 0 0 0"
		;;
	"echo 'date >now' | mq-publish shell "*) leaves shell "1 0 0 0" ;;
	'mq-consume --drain shell -- sh') leaves shell "0 0 0 0" && test -s now ;;
	'seq 4 | mq-publish -l --wait squares '*) collects ;;
	'mq-consume --backoff 1m..1h ends -- mq-mail '*) mails ;;
	'mq-stats --id ID --output --follow '*)
		local jobs_id=$ID
		ID=$(mq-publish -i kept x)
		mq-consume -q --drain --output-keep 64K kept -- echo so far
		gives 'so far' kept "0 0 0 0"
		ID=$jobs_id
		;;
	'mq-consume -j4 --rate 10/s --retry-on err jobs -- ./call-api')
		mq-publish -q jobs a
		serves has jobs "0 0 0 0"
		assert_equal "$(cat "$T/called")" a
		;;
	'mq-consume --push later jobs -- ./first-stage '*)
		mq-publish -q jobs a
		serves has later "1 0 0 0"
		has jobs "0 0 0 0"
		fail_with jobs ./refused one two
		ID=$(rejected_id)
		;;
	'mq-stats --watch '*) serves grep -q '^jobs ' "$T/out" ;;
	'mq-stats --reasons jobs '*) line '^ +2 .*  connection refused \(exit status 1\)$' ;;
	'mq-stats --list rejected jobs '*)
		line 'connection refuse.* two$'
		;;
	'mq-pause jobs '* | 'mq-pause --all --for 10m '*)
		ends 0
		# The comment says how to go on.
		command=${command##*; }
		ends 0
		;;
	"mq-return --reason 'connection refused' --rate 50/s jobs") leaves jobs "2 0 0 0" ;;
	'mq-purge --rejected --older-than 30d jobs '*)
		old_message jobs
		fail_with jobs ./refused new
		has jobs "0 0 0 4"
		asks y
		assert_output --regexp '1 (rejected )?message'
		has jobs "0 0 0 3"
		;;
	'mq-stats --check '*) ends 2 ;;
	"mq-publish -L rsmq --vt 5m mails '"*)
		ends 0
		# For a program of node.
		assert_equal "$(redis hmget rsmq:mails:Q vt totalsent | xargs)" "300 1"
		;;
	'mq-consume -L rsmq mails -- ./send '*)
		serves test -s "$T/sent"
		assert_equal "$(cat "$T/sent")" '{"to":"bob"}'
		;;
	"redis-cli ACL SETUSER app on '>secret' "*)
		gives OK
		mq-publish -q jobs x
		MQ_URL=unix://$D/redis.sock run_mq 77 mq-stats -u "$(url_as app:wrong)" jobs
		;;
	esac
}

# What several pages show.
any() {
	case $command in
	'mq-stats --running'*)
		mq-publish -q jobs x
		start_mq mq-consume jobs -- sh -c 'echo run half of it >&3; exec sleep 99'
		eventually 10 shows 'half of it'
		stop_mq INT
		;;
	'mq-return --running --id ID jobs'*)
		hangs
		ends 0
		ends_within 10
		mq-purge -q --force --ready jobs
		;;
	'mq-stats --id ID'*)
		command=${command/ID/$ID}
		line 'connection refused'
		;;
	'mq-pause '[lm]*)
		ends 0
		mq-publish -q "${command##* }" x
		prints "" mq-consume -q --idle 100ms "${command##* }"
		;;
	'mq-pause --resume '[lm]*)
		ends 0
		run_mq 0 mq-consume -q --idle 1s "${command##* }"
		assert_output --partial x
		;;
	*) ends 0 ;;
	esac
}

rejected_id() {
	mq-stats --list rejected --jsonl -n 1 jobs | sed -E 's/^\{"id":"([^"]*)".*/\1/'
}

running_id() {
	mq-stats --running --json jobs | sed -E 's/.*"id":"([^"]*)".*/\1/'
}

# A message of jobs that an operator has to stop; $ID.
hangs() {
	mq-publish -q jobs hangs
	start_mq mq-consume -n 1 jobs -- sleep 99
	eventually 10 mq-stats --running jobs
	ID=$(running_id)
}

# A message that was rejected 31 days ago.
old_message() {
	printf '\377\0\276\276J{"Mq-Error":["x"],"Mq-History":["{\\"at_ms\\":%s}"]}\nold' \
		"$((($(date +%s) - 31 * 86400) * 1000))" |
		redis -x rpush "rmq::queue::[$1]::rejected" >/dev/null
}

@test "examples: README" {
	local count=0 printed=

	readme_scripts
	readme_commands >"$T/commands"
	each readme <"$T/commands"
	[ "$count" -ge 26 ]
}

# --- pages ----------------------------------------------------------------------

mq_publish() {
	case $command in
	'mq-publish greetings hello world') leaves greetings "2 0 0 0" ;;
	'mq-publish reports < /etc/os-release') leaves reports "1 0 0 0" ;;
	'mq-publish -l users < /etc/passwd') leaves users "$(wc -l </etc/passwd) 0 0 0" ;;
	"mq-consume -n 1 files -- sh -c 'wc -c \$MQ_ATTACH_DIR/*'") line "$(wc -c </etc/group) .*/g" ;;
	'find /etc -maxdepth 1 -type f -print0 | mq-publish -0 names')
		leaves names "$(find /etc -maxdepth 1 -type f | wc -l) 0 0 0"
		;;
	"mq-publish -d 1h reminders 'stretch your legs'") leaves reminders "0 1 0 0" ;;
	'mq-publish --at 04:00 backups /home') leaves backups "0 1 0 0" ;;
	'mq-consume --drain --jsonl orders | '*)
		mq-publish -q orders x
		leaves orders "0 0 0 0" archive "1 0 0 0"
		;;
	'mq-consume --drain --jsonl q | mq-publish -u $NEW --jsonl q')
		mq-publish -q q moved
		leaves q "0 0 0 0"
		URL=$NEW has q "1 0 0 0"
		;;
	esac
}

mq_delivery() {
	case $command in
	'mq-publish -v --durable orders '*' || echo not safe')
		gives ""
		assert_regex "$stderr" '1 message accepted, on '
		has orders "1 0 0 0"
		;;
	"mq-publish -k 'invoice 4711' --unique 1d invoices 4711") refused invoices "1 0 0 0" ;;
	'mq-stats --list ready --jsonl q | mq-publish -u $NEW --jsonl q')
		mq-publish -q q a b
		mq-publish -q -d 1h q later
		URL=$NEW leaves q "2 0 0 0"
		;;
	'mq-stats --list delayed --jsonl q | mq-publish -u $NEW --jsonl q')
		URL=$NEW leaves q "2 1 0 0"
		;;
	esac
}

mq_service() {
	case $command in
	*$'\n7 * * * * '*)
		cron
		cron 1
		has reports "1 0 0 0" backups "1 0 0 0"
		;;
	'[Service]'*nightly*)
		unit
		wait "$pid"
		unit
		status=0
		wait "$pid" || status=$?
		# A duplicate is no failure of the unit.
		grep -qx "SuccessExitStatus=$status" <<<"$command"
		has reports "2 0 0 0"
		;;
	'[Timer]'*)
		looked=1
		! type -P systemd-analyze >/dev/null ||
			systemd-analyze calendar "$(sed -n 's/^OnCalendar=//p' <<<"$command")"
		;;
	esac
}

mq_rsmq() {
	case $command in
	'mq-stats -L rsmq mails') line '^(\{rsmq\}:)?mails +1 +0 ' ;;
	esac
}

mq_server() {
	case $command in
	'mq-stats -u private:$HOME/queues greetings') line '^greetings +1 ' ;;
	esac
}

mq_http() {
	case $command in
	'mq-publish --http greetings <request') line '^HTTP/1.1 201 Created' greetings "1 0 0 0" ;;
	"printf 'GET /queues.json "*) line '"name":"greetings"' ;;
	'mq-stats --http=9780') serves grep -q 'serving http' "$T/err" ;;
	'./queues.cgi') line '^<!DOCTYPE html>' ;;
	esac
}

mq_metrics() {
	case $command in
	'mq-stats --json greetings '*) gives '"published":1' ;;
	'mq-stats --prometheus greetings '*) line '^rmq_ready\{queue="greetings"\} 1$' ;;
	esac
}

mq_consume() {
	case $command in
	'mq-consume -j4 thumbnails -- ./make-thumbnail')
		echo picture >cat.jpg
		mq-publish -q thumbnails cat.jpg nowhere.jpg
		serves has thumbnails "0 1 0 0"
		assert_equal "$(cat "$T/out")" "$(cksum cat.jpg)"
		# Before it is due again.
		mq-purge -q --force --delayed thumbnails
		;;
	'mq-consume -I {} thumbnails -- cksum -- {}')
		mq-publish -q thumbnails cat.jpg
		serves has thumbnails "0 0 0 0"
		assert_equal "$(cat "$T/out")" "$(cksum cat.jpg)"
		;;
	"mq-publish texts one 'two words'") leaves texts "2 0 0 0" ;;
	'mq-consume --drain texts -- wc -c')
		ends 0
		assert_equal "$output" $'3\n9'
		has texts "0 0 0 0"
		;;
	'mq-consume -l urls | head -n 1') gives http://b.example/ urls "1 0 0 0" ;;
	'mq-consume --drain -l urls | sort -u') gives http://a.example/ urls "0 0 0 0" ;;
	esac
}

mq_worker() {
	case $command in
	'mq-publish files /etc/group /etc/passwd') leaves files "2 0 0 0" ;;
	'mq-consume --drain files -- ./checksum') gives "$(cksum /etc/group /etc/passwd)" files "0 0 0 0" ;;
	'mq-consume --drain --work-dir work --log-dir log urls -- ./fetch')
		mkdir -p work log
		rmdir work log
		leaves urls "0 1 0 1"
		assert_equal "$(element urls rejected | header Mq-Error)" "nonsense: no URL"
		assert_equal "$(element urls delayed | header Mq-Error)" "60-busy"
		grep -q 'attempt 1: ' log/urls.log
		;;
	'mq-stats urls') line '^urls +0 +1 +0 +1 ' ;;
	esac
}

mq_lease() {
	case $command in
	'mq-lease --for 5m -n 2 jobs')
		tells '"payload":"one"\}.*"payload":"two"\}$' jobs "1 0 2 0"
		mapfile -t receipts < <(sed -E 's/.*"receipt":"([^"]*)".*/\1/' <<<"$output")
		RECEIPT=${receipts[0]}
		;;
	'mq-lease --extend RECEIPT --for 10m jobs') leaves jobs "1 0 2 0" ;;
	"mq-lease --ack RECEIPT --text '3 rows' jobs")
		leaves jobs "1 0 1 0"
		RECEIPT=${receipts[1]}
		;;
	'mq-lease --return RECEIPT jobs') leaves jobs "2 0 0 0" ;;
	'while mq-lease '*)
		script make-thumbnail <<<'exec cksum "$(cat)"'
		echo picture >cat.jpg
		mq-publish -q thumbnails cat.jpg nowhere.jpg cat.jpg
		ends 0
		assert_equal "$output" "$(cksum cat.jpg cat.jpg)"
		has thumbnails "0 0 0 1"
		assert_equal "$(element thumbnails rejected | tail -n 1)" nowhere.jpg
		;;
	esac
}

mq_stats() {
	case $command in
	'mq-stats thumbnails') line '^thumbnails +2 +0 +0 +0 ' ;;
	"mq-stats thumbnails | awk 'NR == 2 {print \$2}'") gives 2 ;;
	"mq-stats --prometheus | awk '/^rmq_rejected/ && \$NF > 0'")
		gives ""
		mq-publish -q bad x
		mq-consume -q --drain bad -- false || [ $? = 1 ]
		gives 'rmq_rejected{queue="bad"} 1'
		;;
	'mq-stats --check '*) ends 2 ;;
	'timeout 1 mq-stats --watch=0.5 || true')
		# A busy machine may need a good part of that second to start it.
		eventually 20 eval 'ends 0 && (($(grep -c ^QUEUE <<<"$output") >= 2))'
		;;
	'mq-stats --list ready -n 1 thumbnails') line 'cat\.jpg$' thumbnails "2 0 0 0" ;;
	'mq-stats --id $(mq-publish -i thumbnails owl.jpg)')
		line '^payload +owl\.jpg$'
		mq-purge -q --force --ready --match owl thumbnails
		;;
	esac
}

mq_clean() {
	case $command in
	'mq-clean --dry-run')
		dead
		tells '1 message' q "0 0 1 0"
		;;
	'mq-clean -q')
		gives ""
		assert_equal "$stderr" ""
		has q "1 0 0 0"
		;;
	'[Service]'*)
		unit
		redis zadd 'rmq::queue::[go]::delayed' 1 "$(printf '%032d' 1)late" >/dev/null
		redis sadd rmq::queues go >/dev/null
		eventually 20 has go "1 0 0 0"
		kill "$pid"
		wait "$pid" || true
		;;
	'mq-clean --json | tr '*)
		dead
		gives 1
		;;
	esac
}

# One more message, and a consumer that died while it ran.
dead() {
	redis flushall >/dev/null
	mq-publish -q q x
	start_mq mq-consume q -- sleep 99
	eventually 10 has q "0 0 1 0"
	dies
}

mq_tutorial() {
	case $command in
	'find logs '*) leaves logs "5 0 0 0" ;;
	'mq-consume -j4 --drain logs -- ./compress')
		leaves logs "0 0 0 0"
		assert_equal "$(printf '%s\n' logs/*.gz | wc -l)" 5
		;;
	'mq-consume --drain logs -- ./compress') leaves logs "0 0 0 1" ;;
	'mq-stats --reasons logs') line '^ +1 .* no such file$' ;;
	'mq-purge --force --rejected logs') leaves logs "0 0 0 0" ;;
	'mq-consume -j4 --attempts 5 '*)
		mq-publish -q logs logs/1.log
		serves has logs "0 0 0 0"
		;;
	'PATH='*)
		cron
		cron
		has night "1 0 0 0"
		;;
	'mq-set logs')
		gives "rate-shared=50/s
slots=4"
		;;
	'mq-consume --drain --jsonl logs |'*)
		mq-publish -q logs moved
		leaves logs "0 0 0 0"
		URL=$FAR has logs "1 0 0 0"
		;;
	esac
}

mq_set() {
	case $command in
	'mq-set mails')
		gives "attempts=5
backoff=10s..1h
rate-shared=20/s
max-length=100000"
		;;
	'mq-set --new news $(mq-set mails)')
		ends 0
		assert_equal "$(mq-set news)" "$(mq-set mails)"
		;;
	esac
}

mq_return() {
	case $command in
	"mq-consume --drain --attempts 1 conversions -- sh -c 'exit 1'")
		leaves conversions "0 0 0 2"
		;;
	"mq-return --match '^cat' --since 1d --dry-run conversions")
		tells '1 message' conversions "0 0 0 2"
		;;
	"mq-return --match '^cat' --since 1d conversions") leaves conversions "1 0 0 1" ;;
	'mq-return --rate 10/s conversions') leaves conversions "2 0 0 0" ;;
	esac
}

mq_purge() {
	case $command in
	'mq-purge --ready --match Bob --dry-run letters')
		tells '1 message' letters "2 0 0 0"
		;;
	'mq-purge --force --ready --match Bob letters') leaves letters "1 0 0 0" ;;
	*$'\n0 3 * * * mq-purge -f '*)
		old_message letters
		has letters "1 0 0 1"
		cron
		has letters "1 0 0 0"
		;;
	esac
}

mq() {
	case $command in
	'mq-stats') line '^greetings +2 ' ;;
	'mq-consume --drain -l greetings') gives $'hello\nworld' ;;
	'for q in mails archive; do '*) leaves mails "1 0 0 0" archive "1 0 0 0" ;;
	'mq-publish --wait first x && '*)
		mq-consume -q --keep 1m -n 1 first -- true &
		leaves second "1 0 0 0"
		wait $!
		;;
	'mq-publish -i -d 1h reminders tea')
		ends 0
		ID=$output
		;;
	'mq-purge --force --delayed --id ID reminders') leaves reminders "0 0 0 0" ;;
	'mq-consume --drain jobs -- ./test')
		script test <<<'! grep -q gfi'
		ID=$(mq-publish -i jobs cat.gfi)
		leaves jobs "0 0 0 1"
		;;
	'mq-stats --id ID jobs') shows rejected ;;
	'mq-stats --list rejected -l a | '*)
		mq-publish -q a cat.gfi
		mq-consume -q --drain a -- false || [ $? = 1 ]
		leaves b "1 0 0 0"
		assert_equal "$(mq-consume -n 1 b)" cat.gif
		;;
	'mq-stats --running jobs')
		mq-purge -q --force --all jobs
		mq-publish -q jobs "$T/cat.gif"
		start_mq mq-consume -n 1 -I {} jobs -- sh -c 'sleep 99; true' {}
		eventually 10 mq-stats --running jobs
		ends 0
		;;
	'mq-purge --running --id ID jobs')
		ID=$(running_id)
		ends 0
		ends_within 10
		has jobs "0 0 0 0"
		;;
	'echo MQ_URL=redis://localhost > ~/.config/mq/env')
		ends 0
		run mq-stats
		# There may be one.
		assert [ "$status" = 69 ] || assert [ "$status" = 0 ]
		rm "$HOME/.config/mq/env"
		;;
	esac
}

mq_layout() {
	case $command in
	*' lindex '*) shows '{"job":17}' ;;
	*' zcard '*) gives 1 ;;
	*' smembers rmq::connections')
		MQ_URL=private: start_mq mq-consume other -- true
		eventually 10 shows mq-consume-
		stop_mq
		;;
	esac
}

mq_rq() {
	case $command in
	'mq-consume --drain --rq '*)
		leaves q '0 0 0 0'
		[ -z "$(ls w)" ]
		;;
	esac
}

mq_production() {
	case $command in
	'mq-stats --server')
		# What the page says of a cluster.
		if [ "${TOPOLOGY-}" = cluster ]; then
			ends 64
		else
			ends 0
			assert_line --regexp '^memory '
		fi
		;;
	'mq-consume -j8 --drain jobs -- ./job') leaves jobs "0 0 0 0" ;;
	'mq-consume -j4 jobs -- ./job' | 'mq-consume -j1 --attempts 3 jobs -- ./job')
		mq-publish -q jobs x
		serves has jobs "0 0 0 0"
		;;
	'mq-stats jobs')
		mq-pause -q jobs
		line 'paused'
		;;
	'mq-clean --dry-run')
		dead
		tells '1 message'
		;;
	'mq-clean') leaves q "1 0 0 0" ;;
	'mq-stats --reasons jobs')
		fail_with jobs ./refused one two
		line '^ +2 .* connection refused'
		ID=$(rejected_id)
		;;
	'mq-stats --list rejected --newest jobs') line 'connection refuse' ;;
	"mq-return --reason 'refused' --dry-run jobs") leaves jobs "0 0 0 2" ;;
	"mq-return --reason 'refused' --rate 50/s jobs")
		leaves jobs "2 0 0 0"
		"$BUILD/mq-consume" -q --drain jobs -- false || [ $? = 1 ]
		;;
	'mq-purge --force --rejected jobs')
		leaves jobs "0 0 0 0"
		mq-publish -q --jsonl jobs <rejected.jsonl
		has jobs "2 0 0 0"
		mq-purge -q --force --ready jobs
		;;
	'mq-stats --prometheus') line '^rmq_ready\{queue="jobs"\} 0' ;;
	"printf 'GET /healthz "*)
		ends 0
		assert_line --index 0 --regexp '^HTTP/1.[01] 200 '
		;;
	'mq-stats --check done-within=26h backup')
		mq-publish -q backup x
		mq-consume -q --drain backup -- true
		ends 0
		fail_with backup ./refused y
		;;
	'mq-stats --check age=10m,rejected=0:100,consumers=1 jobs')
		ends 2
		start_mq mq-consume jobs -- ./job
		eventually 10 joined
		ends 0
		stop_mq
		;;
	esac
}

mq_recipes() {
	case $command in
	"printf '%s\n' 'date >d1'"*) leaves shell "2 0 0 0" ;;
	'mq-consume -j2 --drain shell -- sh')
		leaves shell "0 0 0 0"
		test -s d1 && test -s d2
		;;
	"printf '%s\0' cp"*)
		echo dear >'a letter'
		leaves argv "1 0 0 0"
		;;
	'mq-consume --drain argv '*)
		leaves argv "0 0 0 0"
		cmp 'a letter' copy
		;;
	*'export -p'*)
		touch 'a file of this directory'
		shows 'a file of this directory'
		;;
	'mq-publish -k nightly '*) refused backup "1 0 0 0" ;;
	'mq-publish site a b c') leaves site "3 0 0 0" ;;
	'mq-consume -j4 --drain site -- ./job') leaves site "0 0 0 0" ;;
	PATH=*'sync sync /srv'*)
		cron
		MQ_LAYOUT=rmq has sync "1 0 0 0"
		;;
	'mq-consume --retry-on err --backoff '*)
		script job <<<'exit 1'
		serves has sync "0 1 0 0"
		some_scripts
		;;
	'mq-publish --spool jobs nightly')
		leaves jobs "1 0 0 0"
		"$BUILD/mq-purge" -q --force --ready jobs
		;;
	'mq-publish --batch a parts A') leaves parts "1 0 0 0" ;;
	'mq-publish --after a --after-ok parts B')
		leaves parts "1 1 0 0"
		"$BUILD/mq-consume" --drain parts -- ./job
		;;
	'seq 5 | mq-publish -l --batch all parts') leaves parts "5 0 0 0" ;;
	'mq-publish --after all --wait parts end')
		start_mq mq-consume parts -- sh -c 'cat >>ran'
		ends 0
		stop_mq
		[[ $(cat ran) == 12345end ]]
		;;
	'seq 4 | mq-publish -l --wait squares') collects ;;
	'mq-consume -j4 --result stdout squares '*)
		mq-publish -q squares 7
		serves has squares "0 0 0 0"
		;;
	'mq-consume --notify ends jobs -- ./job')
		mq-publish -q jobs x
		serves has ends "1 0 0 0"
		;;
	'mq-consume --backoff 1m..1h ends -- mq-mail '*) mails ;;
	'for h in a b c; '*) leaves update-a "1 0 0 0" update-c "1 0 0 0" ;;
	'mq-consume --drain update-a -- ./job') leaves update-a "0 0 0 0" ;;
	'systemctl --user '*) looked=1 ;; # needs a session; mq-service(7) has the unit
	'mq-stats --running jobs')
		mq-publish -q jobs x
		start_mq mq-consume -n 1 jobs -- sh -c 'echo run half >&3; sleep 99; true'
		eventually 10 eval 'mq-stats --running jobs | grep -q half'
		shows half
		mq-purge -q --force --running --id "$(running_id)" jobs
		ends_within 10
		;;
	'mq-stats jobs | awk '*) gives 0 ;;
	'mq-publish -k idx '*) leaves index "0 1 0 0" ;;
	'n=$(mq-stats '*)
		mq-publish -q jobs 1 2 3
		leaves jobs "0 0 0 0"
		;;
	'mq-consume --drain jobs -- python3 '* | 'mq-consume --drain jobs -- node '* | \
		'mq-consume --drain jobs -- php '*)
		mq-publish -q jobs abc
		gives 3 jobs "0 0 0 0"
		;;
	'mq-consume --stream '*)
		printf 'abc\nde' | mq-publish -ql jobs
		gives $'3\n2' jobs "0 0 0 0"
		;;
	esac
}

# Each page on its own: what is done to its commands is in the function of its name.
@test "examples: all pages" {
	local page printed count all=0

	while read -ru 4 page; do
		echo "# $page"
		teardown
		setup
		some_scripts
		[[ $page != @(mq|mq-layout).7 ]] || unset MQ_URL
		printed=$(mandoc -Tutf8 "$root/man/$page" | sed 's/.\x08//g; s/^[[:blank:]]*//')
		make_scripts "$page"
		page_commands "$page" >"$T/commands"
		count=0 ID='' RECEIPT=''
		name=${page%.*}
		each "${name//-/_}" <"$T/commands"
		((count >= 2))
		all=$((all + count))
	done 4< <(cd "$root/man" && grep -l '^\.Sh EXAMPLES' -- *.[17])
	((all >= 185))
}

@test "examples: the script that mq-worker(7) begins with, and its verdicts" {
	sed -n '/^\.Sh DESCRIPTION/,/^\.Ed/p' "$root/man/mq-worker.7" |
		sed -n '/^#!/,/^\.Ed/{/^\.Ed/!p}' >first
	chmod +x first
	mq-publish -q first /etc/group /nowhere
	run_mq 75 mq-consume --drain first -- ./first
	assert_equal "$output" "$(cksum /etc/group)"
	has first "0 1 0 0"
}
