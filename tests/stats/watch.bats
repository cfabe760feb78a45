#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-stats --watch, on a terminal and off one.

load ../helpers/server

# on_terminal ARG... <SCRIPT: mq-stats on a terminal of 12 lines and 80 columns.
# The script is Python, with
#   see(TEXT)      waits until the screen shows it, and returns the screen's lines
#   press(KEYS), resize(LINES, COLUMNS), kill(SIGNAL), redis(WORDS)
#   end()          waits for the end; the status, as a shell has it
#   sane()         whether the terminal is as it was
on_terminal() {
	cat >"$T/script.py"
	TERM=xterm timeout -k 5 180 python3 -S "$BATS_TEST_DIRNAME/watch.py" \
		"$T/script.py" "$BUILD/mq-stats" "$@"
}

# shows ARG... <SCRIPT: it was good.
shows() {
	run on_terminal "$@"
	assert_output ""
	assert_success
}

@test "watch: draws the table again, in place, and q ends it cleanly" {
	no_cluster "its URL is too long for this terminal"
	redis sadd rmq::queues jobs >/dev/null
	shows --watch=0.2 jobs <<-'END'
		lines = see("jobs       0 ")
		assert lines[0].startswith("20") and " every 0.2s " in lines[0], lines
		assert lines[0].endswith("(?: keys)"), lines
		assert lines[1] == "" and lines[2].startswith("QUEUE  READY"), lines
		assert lines[4:] == [""] * 8, lines
		redis("lpush rmq::queue::[jobs]::ready a b c")
		lines = see("jobs       3 ")
		assert sum("jobs" in l for l in lines) == 1, lines
		assert terminal.alternate and not terminal.cursor and not terminal.wrap
		assert not sane()
		press("x")
		press("q")
		assert end() == 0
		assert sane() and not terminal.alternate
		assert terminal.cursor and terminal.wrap
		assert terminal.text(False) == [""] * 12, terminal.text(False)
	END
}

@test "watch: keys sort, reverse, and say which they are" {
	redis sadd rmq::queues a b >/dev/null
	redis lpush 'rmq::queue::[b]::ready' 1 2 >/dev/null
	redis lpush 'rmq::queue::[a]::rejected' 1 >/dev/null
	shows --watch=1h <<-'END'
		lines = see("TOTAL")
		assert lines[1] == "" and lines[3].startswith("a "), lines
		press(">")
		see("by name")
		press(">")
		lines = see("by ready")
		assert lines[3].startswith("b "), lines
		press("R")
		lines = see("by ready, reversed")
		assert lines[3].startswith("a "), lines
		press("R<<")
		see("TOTAL")
		press("<")
		see("by out")
		press("?")
		lines = see("q: quit")
		assert "< >: sort" in lines[1], lines
		press("q")
		assert end() == 0
	END
}

@test "watch: a sparkline of the last hour has the room that is left, and gaps" {
	local ago locale
	local now=$(redis --raw time | head -n 1)

	redis sadd rmq::queues q none >/dev/null
	redis lpush 'rmq::queue::[q]::ready' 1 2 3 >/dev/null
	for ago in '450 1' '150 7' '90 0'; do
		redis hset 'rmq::queue::[q]::minutes' $(((now - ${ago% *}) / 60 % 60)) \
			"$((now - ${ago% *})) ${ago#* } 0 0 0 0 0 0 0" >/dev/null
	done
	for locale in C.UTF-8 C; do
		LC_ALL=$locale LINE=$([ $locale = C ] && echo '.    #_-' || echo '▂    █▁▄') \
			shows --watch=1h <<-'END'
			import os
			line = os.environ["LINE"]
			see("LAST HOUR")
			resize(12, 79)
			assert not any("LAST" in l for l in see("OUT/S")), terminal.text()
			resize(12, 200)
			lines = see("LAST HOUR")
			assert [l.endswith(" " * 50 + line) for l in lines[2:6]] == [False, False, True, False], lines
			assert lines[3].split() == ["none"] + ["0"] * 5 + ["-"] * 3, lines
			press("q")
			assert end() == 0
		END
	done
}

@test "watch: a queue is chosen, and opened: reasons, and messages" {
	run_mq 0 mq-publish -q a x
	run_mq 0 mq-publish -q b bad
	run_mq 1 mq-consume -q --drain --attempts 1 b -- sh -c 'echo "no disk 7" >&2; exit 1'
	run_mq 0 mq-publish -q -i b next
	NEXT=$output shows --watch=1h <<-'END'
		see("TOTAL")
		assert b"\x1b[7ma " in terminal.seen
		# An arrow, and no further than the last one.
		press("\x1b[B")
		eventually(lambda: b"\x1b[7mb " in terminal.seen)
		press("j")
		press("\n")
		resize(20, 80)
		lines = see("Enter, q: back")
		text = "\n".join(lines)
		assert re.search(r"^b +1 +0 +0 +1 ", text, re.M), lines
		assert re.search(r"^b +1 .* no disk N \(exit status 1\)$", text, re.M), lines
		# All of an id is there.
		assert re.search(r"^b {8,}\w{32} .* no disk 7", text, re.M), lines
		assert re.search("^b +ready +%s " % os.environ["NEXT"], text, re.M), lines
		press("x")
		for back in "\x1b", "q", "\r":
		    press(back)
		    see("TOTAL")
		    press("\n")
		    see("back")
		press("q")
		see("TOTAL")
		press("kk\n")
		assert re.search("^a +1 ", "\n".join(see("back")), re.M)
		press("qq")
		assert end() == 0
	END
}

@test "watch: p shows the command that pauses a queue, as a shell can take it" {
	redis sadd rmq::queues $'q\xff\'7%' $'r\e' -x >/dev/null
	redis set 'rmq::queue::[-x]::paused' 1 >/dev/null
	shows --watch=1h <<-'END'
		see("TOTAL")
		press("p")
		assert see("mq-pause")[1] == "mq-pause --resume -- -x"
		press("j")
		assert see("printf")[1] == r"""mq-pause "$(printf 'q\377\0477\045')""" + '"'
		press("j")
		assert see("must not")[1] == "a name must not contain control characters"
		press("q")
		assert end() == 0
	END
}

@test "watch: what grows has a mark; the chosen row is always there" {
	no_cluster "its program speaks to one server"
	local i

	for i in {10..39}; do
		redis sadd rmq::queues "job-$i" >/dev/null
	done
	shows --watch=0.3 <<-'END'
		see("23 more")
		press("j" * 20)
		lines = see("job-30")
		assert lines[9].startswith("job-30 ") and lines[10].startswith("23 more "), lines
		redis("lpush rmq::queue::[job-29]::ready a b c")
		assert re.search(r"^job-29 +3\+ ", "\n".join(see("3+")), re.M)
		see(" 3  ")
		press("q")
		assert end() == 0
	END
}

@test "watch: a terminal that is resized is filled anew at once" {
	local i

	for i in {1..30}; do
		redis sadd rmq::queues "$(printf 'a-queue-with-a-long-name-%02d' "$i")" \
			>/dev/null
	done
	shows --watch=1h <<-'END'
		lines = see("TOTAL")
		# Heading, blank, head, rows, what is hidden, total: twelve lines.
		assert lines[3].startswith("a-queue-with-a-"), lines
		assert lines[10].startswith("23 more ") and lines[11].startswith("TOTAL "), lines
		# Rates go first.
		assert lines[2].endswith("AGE") and "long-name-01 " in lines[3], lines
		resize(40, 120)
		lines = see("long-name-30")
		assert lines[32].startswith("a-queue-with-a-long-name-30  "), lines
		assert lines[33].startswith("TOTAL "), lines
		assert lines[34:] == [""] * 6, lines
		resize(6, 30)
		lines = see("29 more")
		assert lines[2].startswith("QUEUE"), lines
		assert lines[5].startswith("TOTAL"), lines
		resize(1, 5)
		see("20")
		resize(12, 80)
		lines = see("TOTAL")
		assert lines[10].startswith("23 more "), lines
		press("q")
		assert end() == 0
	END
}

@test "watch: signals end it, and the terminal is as it was" {
	local signal

	for signal in INT TERM HUP QUIT; do
		shows --watch=1h <<-END
			see("QUEUE")
			assert not sane()
			kill(signal.SIG$signal)
			assert end() == 128 + signal.SIG$signal
			assert sane() and not terminal.alternate
			assert terminal.cursor and terminal.wrap
		END
	done
	# The key, too.
	shows --watch=1h <<-'END'
		see("QUEUE")
		press("\x03")
		assert end() == 130 and sane() and not terminal.alternate
	END
}

@test "watch: stopped, the terminal is the shell's; continued, it is ours" {
	redis sadd rmq::queues jobs >/dev/null
	shows --watch=1h <<-'END'
		see("jobs")
		for again in 1, 2:
		    press("\x1a")
		    stopped()
		    eventually(lambda: not terminal.alternate)
		    assert sane() and terminal.cursor
		    kill(signal.SIGCONT)
		    eventually(lambda: terminal.alternate and not sane())
		    see("jobs")
		press("q")
		assert end() == 0 and sane() and not terminal.alternate
	END
}

@test "watch: rates are those of the interval" {
	no_cluster "its program speaks to one server"
	redis sadd rmq::queues jobs >/dev/null
	redis hset "rmq::queue::[jobs]::counters" published 5 done 1 >/dev/null
	shows --watch=0.5 jobs <<-'END'
		see("-      -")
		redis("hset rmq::queue::[jobs]::counters published 1000005 done 500001")
		def rates():
		    return [float(x.replace("-", "0")) for x in
		        terminal.text()[3].split()[7:9]]
		eventually(lambda: terminal.whole and rates()[0] > 0)
		into, out = rates()
		# Not of more time than has passed.
		assert into > 1000000 / (time.time() - began), terminal.text()
		assert abs(into / out - 2) < 0.01, terminal.text()
		see("0.0    0.0")
		press("q")
		assert end() == 0
	END
}

@test "watch: a server that goes away and comes back" {
	no_cluster "it starts one server"
	redis sadd rmq::queues jobs >/dev/null
	(
		server_start
		redis sadd rmq::queues jobs >/dev/null
		run on_terminal --watch=0.2 <<-'END'
			see("jobs       0 ")
			redis("shutdown nosave")
			lines = see("(trying again)")
			assert lines[1].startswith(os.environ["MQ_URL"] + ":"), lines
			assert lines[3].startswith("jobs       0 "), lines
			port = os.environ["D"] + "/port"
			port = open(port).read() if os.path.exists(port) else "0"
			server = subprocess.Popen(["redis-server", "--port", port.strip(),
			    "--bind", "127.0.0.1", "--unixsocket", os.environ["D"] + "/redis.sock",
			    "--dir", os.environ["D"], "--save", ""],
			    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
			    stderr=subprocess.DEVNULL)
			to_kill.append(server.pid)
			eventually(lambda: redis("sadd rmq::queues jobs mails"))
			lines = see("mails")
			assert lines[1] == "", lines
			press("q")
			assert end() == 0
			server.terminate()
			server.wait()
		END
		status_of_it=$status
		server_stop
		assert_output ""
		assert_equal "$status_of_it" 0
	)
}

@test "watch: connections, colours, and hostile names" {
	redis sadd rmq::queues $'q\e[2J\n' >/dev/null
	redis sadd rmq::connections $'c\e]0;x\a' >/dev/null
	shows --watch=0.2 --connections <<-'END'
		lines = see("dead")
		assert re.match(r"c\\033\]0;x\\a  dead   (127\S+  )?-", lines[3]), lines
		press("q")
		assert end() == 0
	END
	shows --watch 0.2 <<-'END'
		see(r"q\033[2J\n")
		assert b"\x1b[1mQUEUE" in terminal.seen
		press("q")
		assert end() == 0
	END
	NO_COLOR=1 shows --watch 0.2 <<-'END'
		see("QUEUE")
		assert b"\x1b[1m" not in terminal.seen
		press("q")
		assert end() == 0
	END
}

@test "watch: what runs, with a bar for a text that begins with a percentage" {
	redis sadd rmq::queues jobs >/dev/null
	redis sadd rmq::connections c-1 >/dev/null
	redis set rmq::connection::c-1::heartbeat 1 EX 60 >/dev/null
	shows --running --watch=0.2 <<-'END'
		def said(text):
		    redis("set rmq::connection::c-1::running "
		        '[{"queue":"jobs","id":"x1","pid":7,"script":"./job","text":"' + text + '"}]')
		see("QUEUE  ID")
		said("40%,")
		lines = see("./job   40%,")
		said("40%")
		lines = see("[####......] 40%")
		assert lines[2].startswith("QUEUE  ID  ATTEMPT"), lines
		press("j")
		press("\n")
		said("100%")
		see("[##########] 100%")
		press("q")
		assert end() == 0 and sane()
	END
}

@test "watch: off a terminal, one table after the other" {
	redis sadd rmq::queues jobs >/dev/null
	start_mq mq-stats --watch=0.1 jobs
	eventually 10 tables_are 2
	redis lpush "rmq::queue::[jobs]::ready" a >/dev/null
	eventually 10 grep -q '^jobs       1 ' "$T/out"
	stop_mq TERM
	assert_equal "$status" 143
	run head -n 4 "$T/out"
	assert_output "\
QUEUE  READY  DELAYED  UNACKED  REJECTED  CONSUMERS  AGE  IN/S  OUT/S
jobs       0        0        0         0          0    -     -      -

QUEUE  READY  DELAYED  UNACKED  REJECTED  CONSUMERS  AGE  IN/S  OUT/S"
	assert_equal "$(cat "$T/err")" ""
	assert_equal "$(LC_ALL=C tr -cd '\033\r' <"$T/out" | wc -c)" 0
}

tables_are() {
	[ "$(grep -c '^QUEUE' "$T/out")" -ge "$1" ]
}

@test "watch: a terminal that cannot be drawn on has one table after the other" {
	redis sadd rmq::queues jobs >/dev/null
	run env TERM=dumb timeout -k 5 180 python3 -IS -c '
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
	os.execv(sys.argv[1], sys.argv[1:])
out = b""
while out.count(b"jobs ") < 3:
	out += os.read(fd, 65536)
os.kill(pid, 15)
assert b"\x1b" not in out, out' "$BUILD/mq-stats" --watch=0.1
	assert_output ""
	assert_success
}

@test "watch: a number behind --watch is the interval, other words are queues" {
	redis sadd rmq::queues 5 >/dev/null
	start_mq mq-stats jobs --watch 0.1 mails
	eventually 10 tables_are 2
	stop_mq TERM
	assert_equal "$(sed -n '2,4p' "$T/out" | awk '{print $1}' | xargs)" \
		"jobs mails TOTAL"
	start_mq mq-stats --watch -- 5
	eventually 10 tables_are 1
	stop_mq TERM
	assert_equal "$(sed -n 2p "$T/out" | awk '{print $1}')" 5
}

@test "watch: no server at the beginning: 69; a reader that is gone: 74" {
	run_mq 69 mq-stats --watch -u "unix://$T/nothing"
	assert_equal "$stderr" \
		"mq-stats: unix://$T/nothing: No such file or directory"
	run bash -c 'set -o pipefail; timeout 120 "$1" --watch=0.1 | head -n 1' \
		- "$BUILD/mq-stats"
	assert_equal "$status" 74
}
