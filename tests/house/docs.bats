# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The manual, --help, the completion, NEWS and README say what is so.
# topology: own

# Each test is a subshell of its own.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154

load ../helpers/server

tools="mq-publish mq-consume mq-lease mq-stats mq-return mq-purge mq-pause mq-set mq-clean"

setup_file() {
	local tool
	server_start
	for tool in $tools; do
		options "$tool" >"$D/table.$tool"
	done
	make -s -C "$root" B="$D" html >/dev/null
	mkdir "$D/completions"
	cp "$BUILD/mq.bash" "$D/completions/mq-stats"
	sed "s|@COMPDIR@|$D/completions|" "$root/completions/mq.fish" >"$D/mq.fish"
	sed "s|@COMPDIR@|$D/completions|" "$root/completions/_mq" >"$D/_mq"
}

setup() {
	common_setup
	# No configuration of the person who runs the tests.
	export HOME=$T
	unset XDG_CONFIG_HOME XDG_STATE_HOME
	cd "$T" || return
}

teardown() {
	local sock

	while IFS= read -r -d '' sock; do
		redis-cli -s "$sock" shutdown nosave >/dev/null 2>&1 || true
	done < <(find "$T" -name redis.sock -print0)
	cd / || return
	common_teardown
}

# --- options ------------------------------------------------------------------

# The rows of options in the source: "--long short argument" a line; short is "." if there
# is none, argument no_argument or required_argument, or optional_argument: that is only
# given behind a '='.  Those that tools share are in cmd/shared, where the tool names them;
# NAME + N is without the first N rows.
options() {
	local source=("$root/cmd/$1".c "$root/cmd/$1"/{main,options}.c)
	perl -e 'my ($shared, $own) = @ARGV;
		my @tables = $own;
		while ($own =~ /\b(\w+_options)(?: \+ (\d))?, /g) {
			my $less = $2 // 0;
			my ($rows) = $shared =~ /^const struct mq_option $1\[\] = \{\n(.*?)^\};/ms or next;
			$rows =~ s/^.*?\n    (?=\{)//s for 1 .. $less;
			push @tables, $rows;
		}
		for (@tables) {
			while (/\{(?:0|\x27(.)\x27), "(--[a-z-]+)",\s+(NULL|MQ_FRAMING|"\[?)/g) {
				my $argument = $3 eq "NULL" || $3 eq "MQ_FRAMING" ? "no" : $3 eq "\"[" ? "optional" : "required";
				print "$2 ", defined $1 ? "-$1" : ".", " ${argument}_argument\n";
			}
		}' "$(cat "$root"/cmd/shared/*.c)" "$(cat "${source[@]}" 2>/dev/null)"
}

table() {
	cat "$D/table.$1"
}

# The same as a sorted list of options.
from_table() {
	tr ' ' '\n' <"$D/table.$1" | grep '^-' | sort
}

from_help() {
	"$BUILD/$1" --help=all | perl -ne 'next unless s/^ +(?=-)//;
		print "$1\n" while s/^[ ,]*(--[a-z][a-z-]+|-[A-Za-z0-9])(?=[[ ,]|$)//' | sort
}

@test "docs: mq-metrics(7) has all members and metrics of the fields" {
	local name missing=

	for name in $(sed 's/^.*[(\t][0-9], "\([a-z_]*\)".*/{"\1", KIND, "mq_\1_total"/' \
		"$root/cmd/mq-stats/fields.c" | grep -oE '\{"[a-z_]+", KIND|"r?mq_[a-z_]+"' |
		grep -oE '[a-z_]{2,}'); do
		grep -qw -- "$name" "$root/man/mq-metrics.7" || missing+=" $name"
	done
	assert_equal "$missing" ""
}

@test "docs: --help fits on a screen, and the ten options that matter are enough" {
	local tool

	for tool in $tools; do
		run "$BUILD/$tool" --help
		echo "$tool: ${#lines[@]} lines"
		(("$(wc -l <<<"$output")" <= 22))
		refute_line --regexp ".{80}"
		(("$(grep -c '^ \+-' <<<"$output")" <= 12))
		assert_line --partial "man $tool has more"
		assert_equal "$output" "$("$BUILD/$tool" -h)"
	done
}

# What stands as an item, "Fl x" or "Fl Fl long", in the lists of options.
from_page() {
	sed -n '/^\.Sh DESCRIPTION/,/^\.Sh E/p' "$root/man/$1.1" |
		grep '^\.It Fl ' | grep -oE 'Fl (Fl )?[A-Za-z0-9-]+' |
		sed 's/Fl Fl /--/; s/Fl /-/' | sort
}

from_completion() {
	complete_at "$1" - | sort
}

@test "docs: --help, the pages and the completion have the options that there are, no others" {
	local tool where

	for tool in $tools; do
		for where in help page completion; do
			assert_equal "$tool $where: $("from_$where" "$tool")" \
				"$tool $where: $(from_table "$tool")"
		done
	done
}

@test "docs: each synopsis has every option, and each item says whether it takes an argument" {
	local tool synopsis long short argument item items

	for tool in $tools; do
		synopsis=$(sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESCRIPTION/p' \
			"$root/man/$tool.1")
		items=$(grep '^\.It .*Fl Fl ' "$root/man/$tool.1")
		while read -r long short argument; do
			[ "$short" != . ] || short=$long
			[[ $synopsis =~ "Fl Fl ${short#--}" || $synopsis =~ Fl\ [A-Za-z0-9]*${short#-} ]] ||
				fail "$tool: $short"
			[[ $'\n'$items$'\n' =~ [^$'\n']*"Fl Fl ${long#--}"(' '[^$'\n']*)?$'\n' ]]
			item=${BASH_REMATCH[0]}
			case $argument in
			required*) assert_regex "$item" "Fl Fl ${long#--} Ar" ;;
			optional*) assert_regex "$item" "Fl Fl ${long#--} Ns Op = Ns (Ar|Cm)" ;;
			*) refute_regex "$item" ' Ar' ;;
			esac
		done < <(table "$tool")
	done
}

# --- pages --------------------------------------------------------------------

# What mandoc and groff make of each page: no warning, no line beyond 80 columns; and no
# enclosure that ends with its cell, as groff moves what ends it into the next one.
@test "docs: the pages can be read at 80 columns, with mandoc and groff" {
	local page

	run ! grep -nE '^[^"]* (Op|Pq|Dq|Bq|Sq|Ql|Qq) [^"]* Ta ' "$root"/man/*.[17]
	assert_output ""
	for page in "$root"/man/*.[17]; do
		mandoc -Tutf8 -Owidth=80 "$page" >"$T/mandoc"
		groff -mandoc -Tutf8 -rLL=80n -P-c -ww "$page" >"$T/groff" 2>"$T/warnings"
		run cat "$T/warnings"
		assert_output ""
		# A cell that goes on in another line, or a list that leaves no room for its text.
		run ! grep -E '^ {40}' "$T/groff"
		run python3 -c 'import re, sys
for name in sys.argv[1:]:
    for line in re.sub(".\b", "", open(name).read()).splitlines():
        if len(line) > 80: print(name, line)' "$T/mandoc" "$T/groff"
		assert_output ""
	done
}

# Shown at 80 columns: what a person reads before the first job.
@test "docs: the pages to begin with are short" {
	local page most

	while read -r page most; do
		run bash -c "mandoc -Tutf8 -Owidth=80 '$root/man/$page' | wc -l"
		((output <= most)) || fail "$page has $output lines, more than $most"
	done <<-'END'
		mq.7 300
		mq-worker.7 350
		mq-publish.1 400
		mq-consume.1 400
		mq-stats.1 400
	END
}

@test "docs: man -k finds the page for what a stranger calls it" {
	local word page

	while read -r word page; do
		run sed -n '/^\.Sh NAME/,/^\.Sh /{/^\.N[dm] /p}' "$root/man/$page"
		assert_output --regexp "\\b$word"
	done <<-'END'
		retry mq-return.1
		requeue mq-return.1
		schedule mq-publish.1
		cron mq-publish.1
		delete mq-purge.1
		cancel mq-purge.1
		queue mq.7
		worker mq-consume.1
		worker mq-worker.7
	END
}

@test "docs: the pages refer to pages of ours, and to sections, that exist" {
	local name section

	run ! grep -nE '[Ss]ections? [A-Z]{3}' "$root"/man/*.[17]
	while read -r name; do
		grep -qxF -e ".Ss $name" -e ".Sh $name" "$root"/man/*.[17] || fail "no section $name"
	done < <(grep -hE '^\.(It )?Sx ' "$root"/man/*.[17] | sed -E 's/^\.(It )?Sx //; s/ [.,;:)]+$//')
	while read -r _ name section _; do
		assert [ -e "$root/man/$name.$section" ]
	done < <(grep -hoE '^\.(It )?Xr mq[a-z-]* [0-9]' "$root"/man/*.[17] |
		sed 's/^\.It /./')
}

@test "docs: mq(7) has the exit statuses of common/base/exit.h, and the tools' pages no others" {
	local tool wanted

	wanted=$(grep -oE 'MQ_EXIT_[A-Z]+ = [0-9]+' "$root/common/base/exit.h" |
		awk '{print $3}' | sort -n)
	assert [ -n "$wanted" ]
	assert_equal "$(statuses mq.7)" "$wanted"
	for tool in $tools; do
		# 128 and the number of a signal are in it, too.
		run comm -13 <(sort <<<"$wanted") \
			<(statuses "$tool.1" | awk '$1 < 128' | sort)
		assert_output ""
	done
}

statuses() {
	sed -n '/^\.Sh EXIT STATUS/,/^\.Sh EXAMPLES/p' "$root/man/$1" |
		sed -nE 's/^\.It ([0-9]+)$/\1/p' | sort -n
}

@test "docs: the environment of a script is documented, and nothing else" {
	local name set documented

	"$BUILD/mq-publish" -P 1=x -H 'X-Trace-Id: 7' --attach a=/dev/null \
		-H 'Traceparent: 00-1-2-00' q ''
	set=$(env -i HOME="$HOME" MQ_URL="$MQ_URL" PATH="$PATH" \
		"$BUILD/mq-consume" --drain q -- env |
		sed -nE 's/^((MQ|RQ)_[A-Z0-9_]+|TRACEPARENT)=.*/\1/p' |
		grep -v '^MQ_URL$' |
		sed 's/^MQ_HEADER_.*/MQ_HEADER_NAME/' | sort -u)
	documented=$(sed -n '/^\.Ss Environment/,/^\.Ss Arguments/p' \
		"$root/man/mq-worker.7" | grep '^\.It Ev' |
		sed 's/PARAM1 No to Ev \([MR]Q\)_PARAM4/PARAM1 \1_PARAM2 \1_PARAM3 \1_PARAM4/' |
		grep -oE '\b((MQ|RQ)_[A-Z0-9_]+|TRACEPARENT)' | sort)
	assert_equal "$documented" "$set"
}

# of_message CONSUMER: what a script is told of a message, beyond what the
# page says of all.
of_message() {
	"$BUILD/mq-publish" -H 'X-Trace-Id: 7' q ''
	env -i PATH="$PATH" MQ_URL="$MQ_URL" "$BUILD/mq-consume" -n1 "$@" q -- \
		sh -c 'env; read -r n; echo done >&3' |
		grep -oE '^MQ_(ID|QUEUE|ATTEMPT|BATCH|HEADER_.*|PARAM.)=' |
		sort | xargs
}

@test "docs: the environment of a batch, and of a worker of a stream" {
	run of_message --batch 5
	assert_output "MQ_BATCH= MQ_QUEUE="
	run of_message --stream
	assert_output "MQ_QUEUE="
	run of_message -q --stream other
	assert_output ""
	run sed -n '/^\.Ss Batches/,/^\.Ss Streams/s/^\.It Ev //p' \
		"$root/man/mq-batch.7"
	assert_output MQ_BATCH
}

@test "docs: mq-worker(7) has the verbs that there are, and which are final" {
	local table finals

	table=$(sed -n '/^\.Ss Verbs/,/^\.El/p' "$root/man/mq-worker.7")
	finals=$(sed -nE 's/^ +\{"([a-z]+)", MQ_FINAL_.*/\1/p' \
		"$root/common/message/verb.c" | sort)
	assert [ -n "$finals" ]
	assert_equal "$(grep ' Ta yes Ta ' <<<"$table" |
		sed 's/ Ta .*//; s/^\.It Li //; s/ , / /' |
		grep -oE '(^| )[a-z]+' | tr -d ' ' | sort)" "$finals"
	assert_equal "$(grep ' Ta no Ta ' <<<"$table" |
		sed -E 's/^\.It Li ([a-z]+).*/\1/' | xargs)" "run dup"
}

@test "docs: each setting is in the help and the page of mq-set, and in the completion" {
	local name names

	names=$(sed -n 's/^    \[[A-Z_]*\] = {"\([a-z-]*\)",.*/\1/p' "$root/common/queue/settings.c"
		sed -n 's/^#define MQ_MAX_LENGTH "\(.*\)"/\1/p' "$root/common/queue/layout.h")
	assert_equal "$(wc -w <<<"$names")" \
		"$(grep -oP 'MQ_SETTINGS = \K\d+' "$root/common/queue/settings.h")"
	for name in $names; do
		"$BUILD/mq-set" --help | grep -q -- "\b$name=" || fail "--help: no $name"
		grep -q "^.It Cm $name Ns" "$root/man/mq-set.1" || fail "mq-set.1: no $name"
		grep -q "[{,]$name[,}]" "$root/completions/mq.bash" || fail "completion: no $name"
	done
}

@test "docs: mq-layout(7) and mq-rsmq(7) have every script and every header of ours" {
	local script header own page

	page=$(cat "$root/man/mq-layout.7" "$root/man/mq-rsmq.7")
	for script in "$root"/common/queue/{,rmq/,rsmq/}lua/*.lua; do
		[[ $script == */rsmq/* ]] && own=rsmq_ || own=
		script=$own${script##*/}
		[[ $page =~ "Li ${script%.lua}"( ,)?$'\n' ]] || fail "$script"
	done
	for header in $(grep -oE '"Mq-[A-Za-z-]+"' "$root/common/message/headers.h" |
		tr -d '"'); do
		[[ $page =~ "Li $header"(1 |$'\n') ]] || fail "$header"
	done
}

# --- completion ---------------------------------------------------------------

# What the completion calls, in a bash that has nothing of this one.
in_bash() {
	PATH=$BUILD:$PATH bash --norc -c 'source "$1/mq.bash"
		complete_words() {
			COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
			'"${breaks-}"'
			_mq "$1" "${@: -1}" "${@: -2:1}"
		}
		shift
		'"$1" bash "$BUILD" "${@:2}"
}

# complete_at TOOL WORD...: what the last word can become, one a line.
complete_at() {
	in_bash 'complete_words "$@"
		[ "${#COMPREPLY[@]}" = 0 ] || printf "%s\n" "${COMPREPLY[@]}"' "$@"
}

# completes WANT TOOL WORD...
completes() {
	run complete_at "${@:2}"
	assert_output -- "$1"
}

# completions: the same for each line of words on stdin, on a line.
completions() {
	in_bash 'while read -ra words; do
		complete_words "${words[@]}" </dev/null
		echo "${COMPREPLY[*]}"
	done'
}

@test "completion: loads, and registers the tools, in a bare bash" {
	local tool

	for tool in $tools; do
		run env -i PATH="$PATH" bash --norc --noprofile -uc \
			"source '$BUILD/mq.bash' && complete -p $tool"
		assert_success
		assert_output "complete -F _mq $tool"
	done
}

@test "completion: names of queues, as many as the tool takes" {
	"$BUILD/mq-publish" jobs x
	"$BUILD/mq-publish" joy x
	completes $'jobs\njoy' mq-publish jo
	completes "" mq-publish jobs jo
	completes joy mq-consume jobs jo
	completes joy mq-stats -v jobs ''
	# An argument may be in the same word as its option.
	completes joy mq-consume -j4 joy
	completes joy mq-consume --slots=4 joy
	completes joy mq-consume -vj 4 joy
	completes "" mq-consume -vj joy
}

@test "completion: options with an argument want that first, others do not" {
	local tool long short argument option want

	"$BUILD/mq-publish" jobs x
	for tool in $tools; do
		while read -r long short argument; do
			for option in "$long" "$short"; do
				[ "$option" = . ] || printf '%s\n' "$tool $option job"
			done
			if [[ $long =~ ^--(push|notify|to)$ ]]; then
				want=jobs
			elif [ "$argument" = required_argument ] || [ "$tool" = mq-clean ]; then
				want=
			else
				want=jobs
			fi
			printf "$tool %s $want\n" "$long" >&5
			[ "$short" = . ] || printf "$tool %s $want\n" "$short" >&5
		done < <(table "$tool")
	done >lines 5>want
	completions <lines | paste -d ' ' <(sed 's/ job$//' lines) - | diff want -
}

@test "completion: ids where one goes, of what runs or waits" {
	local ready running

	ready=$("$BUILD/mq-publish" -i jobs x)
	"$BUILD/mq-publish" other x
	completes "$ready" mq-stats --list ready jobs --id ''
	completes "" mq-return jobs --id ''
	start_mq mq-consume -q --grace 0s other -- sleep 100
	eventually 10 "$BUILD/mq-stats" --running
	running=$("$BUILD/mq-stats" --running --json | sed -E 's/.*"id":"([^"]*)".*/\1/')
	completes "$running" mq-purge --running --id ''
	completes "$running" mq-return --running other --id "${running:0:5}"
	completes "" mq-return --running jobs --id ''
	stop_mq
}

@test "completion: a colon and an equals sign, torn apart by bash" {
	local server breaks

	"$BUILD/mq-publish" jobs:fast:1 x
	"$BUILD/mq-publish" jobs:fast:2 x
	breaks='COMP_LINE="mq-stats jobs:fast:" COMP_POINT=19'
	completes $'1\n2' mq-stats jobs : fast :
	breaks='COMP_LINE="mq-stats jobs:fa" COMP_POINT=16'
	completes $'fast:1\nfast:2' mq-stats jobs : fa
	breaks='COMP_WORDBREAKS=" "'
	completes $'jobs:fast:1\njobs:fast:2' mq-stats jobs:fa
	breaks='COMP_LINE="mq-publish --url=pri" COMP_POINT=20'
	completes private: mq-publish --url = pri
	breaks="COMP_LINE='mq-stats -u $MQ_URL jobs:' COMP_POINT=99"
	server=${MQ_URL#unix:}
	unset MQ_URL
	completes $'fast:1\nfast:2' mq-stats -u unix : "$server" jobs :
}

@test "completion: all queues, but not the total; one named TOTAL, and some with odd names" {
	"$BUILD/mq-publish" TOTAL x
	completes TOTAL mq-stats ''
	"$BUILD/mq-publish" jobs x
	"$BUILD/mq-publish" 'odd 1 2 3 4 5 6s 0.1 0.2' x
	redis set 'rmq::queue::[jobs]::paused' 1 EX 100 >/dev/null
	"$BUILD/mq-publish" $'odd\xff' x
	completes $'TOTAL\njobs\nodd\\ 1\\ 2\\ 3\\ 4\\ 5\\ 6s\\ 0.1\\ 0.2' mq-consume ''
	completes 'odd 1 2 3 4 5 6s 0.1 0.2' mq-stats '"odd 1'
}

@test "completion: commands behind --, then files" {
	mkdir bin
	touch file-one
	completes basename mq-consume jobs -- basena
	completes /bin/basename mq-consume jobs -- /bin/basena
	completes file-one mq-consume jobs -- basename --drain file-
	completes "" mq-consume jobs -- basename --dra
}

@test "completion: options, directories, parameters, limits, units, URLs" {
	mkdir logs
	touch logfile
	completes --log-dir mq-consume --log
	completes "" mq-publish --log
	completes logs mq-consume --log-dir lo
	completes $'1=\n2=\n3=\n4=' mq-publish -P ''
	completes $'10ms\n10s\n10m\n10h\n10d' mq-publish -d 10
	completes "" mq-consume --timeout ''
	completes $'10ms\n10s\n10m\n10h\n10d' mq-pause --for 10
	completes "" mq-pause --for 10m od
	completes $'redis://\nrediss://' mq-stats -u red
	completes $'ready=\nrejected=' mq-stats --check re
	# What bash replaces is behind the '='.
	completes '5,age=' mq-stats --check ready=5,a
	completes "" mq-stats --check ready=5
}

@test "completion: the private server is asked if it runs, never started" {
	unset MQ_URL
	completes "" mq-stats ''
	assert [ ! -e "$HOME/.local" ]
	"$BUILD/mq-publish" jobs x
	completes jobs mq-stats ''
	redis-cli -s "$HOME/.local/state/mq/redis.sock" shutdown nosave
	# A socket that a killed server left over.
	python3 -c 'import socket, sys
socket.socket(socket.AF_UNIX).bind(sys.argv[1])' \
		"$HOME/.local/state/mq/redis.sock"
	MQ_URL=private: run complete_at mq-stats ''
	assert_output ""
	completes "" mq-stats -u "private:$T/other" ''
	assert [ ! -e "$T/other" ]
	run redis-cli -s "$HOME/.local/state/mq/redis.sock" ping
	assert_failure
}

@test "completion: the server of an env file; one that is not there is no error" {
	completes "" mq-stats -u "unix://$T/nothing" ''
	MQ_URL=nonsense completes "" mq-stats ''
	"$BUILD/mq-publish" jobs x
	mkdir -p .config/mq
	echo "export MQ_URL='$MQ_URL'" >.config/mq/env
	unset MQ_URL
	completes jobs mq-stats ''
}

# --- completion in zsh and fish, which ask the one for bash -----------------------

in_fish() {
	PATH=$BUILD:$PATH fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$D/mq.fish" "$1"
}

# What zsh makes of a line when TAB has been pressed.
in_zsh() {
	PATH=$BUILD:$PATH python3 - "$D" "$1" <<'.'
import os, pty, select, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "dumb"
    os.execvp("zsh", ["zsh", "-f", "-i"])
seen = b""
def until(what):
    global seen
    end = time.monotonic() + 60
    while what not in seen:
        if time.monotonic() > end:
            sys.exit("never came: %r in %r" % (what, seen))
        if select.select([fd], [], [], 1)[0]:
            seen += os.read(fd, 65536)
    seen = seen.split(what, 1)[1]
def say(text):
    os.write(fd, text.encode())
say("unsetopt zle prompt_cr prompt_sp; PS1=; fpath=(%s $fpath); autoload -U compinit; "
    "compinit -u -D; setopt zle no_beep no_list_ambiguous; print rea''dy\n" % sys.argv[1])
until(b"ready\r\n")
# The rest of the line shows what was inserted, once the shell gets it.
say("print -r -- '<'${(q)words} >/dev/null; done() { print -rl -- \"[$@]\" }; compdef -n _mq done 2>/dev/null\n")
say(sys.argv[2].replace("mq-", "noglob mq-", 0) + "\t\x01print -rl -- [ \x05 ]\n")
until(b"[\r\n")
end = time.monotonic() + 60
while b"\r\n]" not in seen and time.monotonic() < end:
    if select.select([fd], [], [], 1)[0]:
        seen += os.read(fd, 65536)
print(seen.split(b"\r\n]")[0].replace(b"\r\n", b" ").decode())
os.kill(pid, 9)
.
}

@test "shells: fish has options, with what they are for, and values" {
	run in_fish "mq-consume --log"
	assert_output $'--log-dir\toutput of the scripts to DIR/QUEUE.log'
	run in_fish "mq-consume --output "
	assert_output "lines
live
runs"
	run in_fish "mq-publish -d 5"
	assert_line 5m
}

@test "shells: zsh has options and values" {
	run in_zsh "mq-consume --log-d"
	assert_output "mq-consume --log-dir"
	run in_zsh "mq-consume --output li"
	assert_output --partial "mq-consume --output li"
	run in_zsh "mq-consume --retry-on e"
	assert_output "mq-consume --retry-on err"
}

@test "shells: names of queues, whatever is in them" {
	local odd='a b;touch $HOME/bad`touch bad`'
	"$BUILD/mq-publish" -q "$odd" x
	run in_fish "mq-stats a"
	assert_output --partial "$odd"
	run in_zsh "mq-stats a"
	assert_output "mq-stats $odd"
	[ ! -e "$T/bad" ]
}

@test "shells: settings, and ids of rejected messages" {
	local id
	id=$("$BUILD/mq-publish" -i q x)
	"$BUILD/mq-consume" -q --drain q -- false || true
	run in_fish "mq-set q gr"
	assert_output "group-slots="
	run in_zsh "mq-set q gr"
	assert_output "mq-set q group-slots="
	run in_fish "mq-return q --id "
	assert_output "$id"
}

@test "shells: no server: nothing, and at once" {
	export MQ_URL=unix://$T/none.sock
	run in_fish "mq-stats a"
	assert_output ""
	unset MQ_URL
	run in_fish "mq-stats a"
	assert_output ""
	# The private server was not started.
	[ ! -e "$T/.local/state/mq" ]
}

# --- the manual as HTML: make html ---------------------------------------------

@test "manual: each link leads somewhere, and each page is listed" {
	python3 - "$D/html" "$root/man" <<-'.'
		import os, re, sys
		html, man = sys.argv[1:]
		text = {f: open(os.path.join(html, f)).read() for f in os.listdir(html)}
		ids = {f: re.findall('id="([^"]*)"', t) for f, t in text.items()}
		wrong = [(f, id) for f in ids for id in set(ids[f]) if ids[f].count(id) > 1]
		for f, t in text.items():
		    for link in re.findall('href="([^"]*)"', t):
		        page, _, anchor = link.partition("#")
		        if not page.startswith("https:") and (page and page not in text or
		                anchor and anchor not in ids[page or f]):
		            wrong.append((f, link))
		wrong += [p for p in os.listdir(man) if re.search("[.][17]$", p)
		          and 'href="%s.html"' % p not in text["index.html"]]
		sys.exit(str(wrong) if wrong else 0)
	.
}

@test "manual: the index knows each option, verb and variable" {
	local tool word
	index() {
		sed -n "s|.*<dt>$1</dt><dd>\(.*\)</dd>|\1|p" "$D/html/index.html"
	}
	for tool in $tools; do
		while read -r word; do
			index "$word" | grep -q "$tool.1.html#" || fail "$tool $word"
		done < <("$BUILD/$tool" --help=all | grep -oE '^ +(-[^ ,]+, )?--?[^] ,=[]+' |
			grep -oE -- '--?[A-Za-z0-9][-a-z]*')
	done
	for word in err "done" resend dup push pause run relayed MQ_ID RQ_COUNT; do
		index "$word" | grep -q mq-worker.7.html#
	done
	index MQ_URL | grep -q mq.7.html#
}

@test "manual: README's picture is of a real run" {
	mkdir "$D/pictures"
	PATH=$(dirname "$(command -v redis-cli)"):/usr/bin:/bin python3 - "$root/man/pictures/make.py" "$BUILD" "$D/pictures" <<-'.'
		import runpy, shutil, sys
		shutil.which = lambda name: None
		runpy.run_path(sys.argv[1])["main"](*sys.argv[2:])
	.
	python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' "$D/pictures/terminal.svg"
	# The same but for ids and ages.
	for svg in "$D/pictures/terminal.svg" "$root/man/pictures/terminal.svg"; do
		sed -E 's/<[^>]*>//g; s/[0-9A-Za-z]{32}/ID/g; s/[0-9]+s/Ns/g' "$svg"
	done >"$D/both"
	[ "$(sort -u "$D/both" | wc -l)" -lt "$(($(wc -l <"$D/both") / 2 + 1))" ]
	(($(cat "$root"/man/pictures/* | wc -c) < 400000))
}

# --- README and NEWS ----------------------------------------------------------

# Words behind "make" in a block of commands, or in backquotes; prose such as
# "make sure" is not meant.
@test "docs: what README tells to make exists in the Makefile" {
	local target

	grep -oE '(^( {4}|\$ )|&& |`)(sudo )?make [a-z][a-z-]*' \
		"$root/README.md" | sed 's/.*make //' | sort -u >targets
	assert [ -s targets ]
	while read -r target; do
		grep -qE "^$target( |:)" "$root/Makefile" || fail "$target"
	done <targets
}

@test "docs: NEWS has the version that is built" {
	local version

	version=$(sed -n 's/^VERSION[[:space:]]*= *//p' "$root/Makefile")
	assert [ -n "$version" ]
	run grep -x "$version" "$root/NEWS"
	assert_success
	run_mq 0 mq-stats --version
	assert_equal "${lines[0]}" "mq-tools $version"
}

@test "docs: the steps of the ways in CONTRIBUTING are where it says" {
	local path step n=0

	while read -r path step _; do
		n=$((n + 1))
		case $step in
		*'()') grep -q "^${step%()}(" "$root/$path" ;;
		*) test -e "$root/$path" ;;
		esac || fail "$path: no $step"
	done < <(sed -n '/^## Four ways/,/^## Add/p' "$root/CONTRIBUTING.md" | grep '^    c')
	((n > 25))
}
