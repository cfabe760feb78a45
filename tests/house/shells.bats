#!/usr/bin/env bats
# Completion in zsh and fish, which ask the one for bash; docs.bats has that one.

# Each test is a subshell of its own.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

load ../helpers/server

setup() {
	common_setup
	export HOME=$T PATH=$BUILD:$PATH
	cd "$T" || return
	mkdir "$T/completions"
	cp "$BUILD/mq.bash" "$T/completions/mq-stats"
	sed "s|@COMPDIR@|$T/completions|" "$root/completions/mq.fish" >"$T/mq.fish"
	sed "s|@COMPDIR@|$T/completions|" "$root/completions/_mq" >"$T/_mq"
}

teardown() {
	cd / || return
	common_teardown
}

in_fish() {
	fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$T/mq.fish" "$1"
}

# What zsh makes of a line when TAB has been pressed.
in_zsh() {
	python3 - "$T" "$1" <<'.'
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
	run in_fish "mq-set q sl"
	assert_output "slots="
	run in_zsh "mq-set q sl"
	assert_output "mq-set q slots="
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
