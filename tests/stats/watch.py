# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
"""Runs a program on a terminal and a script that looks at it; see watch.bats."""
import fcntl, os, pty, re, select, signal, struct, subprocess, sys, termios, time


class Terminal:
    """As much of a terminal as mq-stats uses."""

    def __init__(self, lines, columns):
        self.size(lines, columns)
        self.seen = b""
        self.rest = b""
        self.alternate, self.cursor, self.wrap = False, True, True
        self.x = self.y = 0
        self.whole = False  # nothing is missing of what is being drawn
        self.screens = {False: {}, True: {}}

    def size(self, lines, columns):
        self.lines, self.columns = lines, columns

    def text(self, which=None):
        cells = self.screens[self.alternate if which is None else which]
        return ["".join(cells.get((y, x), " ") for x in range(self.columns))
                .rstrip() for y in range(self.lines)]

    def put(self, c):
        cells = self.screens[self.alternate]
        self.whole = False
        if c == "\n":
            self.y += 1
            assert self.y < self.lines, "the screen scrolled"
        elif c == "\r":
            self.x = 0
        else:
            assert c >= " " and c != "\x7f", "control character %r" % c
            if self.x < self.columns:
                cells[self.y, self.x] = c
                self.x += 1

    def escape(self, args, letter):
        cells = self.screens[self.alternate]
        self.whole = letter == "J"
        if letter == "H":
            self.x = self.y = 0
        elif letter == "K":
            for x in range(self.x, 1000):
                cells.pop((self.y, x), None)
        elif letter == "J":
            for y, x in list(cells):
                if y > self.y or (y == self.y and x >= self.x):
                    del cells[y, x]
        elif args == "?1049":
            self.alternate = letter == "h"
            if self.alternate:
                self.screens[True] = {}
                self.x = self.y = 0
        elif args == "?25":
            self.cursor = letter == "h"
        elif args == "?7":
            self.wrap = letter == "h"
        else:
            assert letter == "m", "escape %r %r" % (args, letter)

    def feed(self, data):
        self.seen += data
        text = (self.rest + data).decode("utf-8", "surrogateescape")
        while text:
            m = re.match(r"\x1b\[([?0-9;]*)([A-Za-z])", text)
            if m:
                self.escape(m.group(1), m.group(2))
                text = text[m.end():]
            elif text[0] == "\x1b" and len(text) < 10:
                break
            elif "\udc80" <= text[0] and len(text) < 4:
                break
            else:
                self.put(text[0])
                text = text[1:]
        self.rest = text.encode("utf-8", "surrogateescape")


def pump(seconds=0.02):
    if select.select([fd], [], [], seconds)[0]:
        try:
            terminal.feed(os.read(fd, 65536))
        except OSError:
            time.sleep(seconds)


def eventually(true, seconds=40):
    end = time.time() + seconds
    while not true():
        assert time.time() < end, "never came true: %r" % terminal.text()
        pump()


def see(text):
    eventually(lambda: terminal.alternate and terminal.whole and
               any(text in line for line in terminal.text()))
    return terminal.text()


def press(keys):
    os.write(fd, keys.encode())


def resize(lines, columns):
    terminal.size(lines, columns)
    terminal.screens[True] = {}
    fcntl.ioctl(fd, termios.TIOCSWINSZ,
                struct.pack("HHHH", lines, columns, 0, 0))


def kill(number):
    os.kill(pid, number)


def redis(words):
    return subprocess.run(["redis-cli", "-s", os.environ["D"] + "/redis.sock"]
                          + words.split(), stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def stopped():
    eventually(lambda: open("/proc/%d/stat" % pid).read()
               .rsplit(")", 1)[1].split()[0] == "T")


def sane():
    return termios.tcgetattr(slave) == before


def end():
    eventually(lambda: select.select([from_leader], [], [], 0)[0])
    pump()
    status = int(os.read(from_leader, 100))
    if os.WIFSIGNALED(status):
        return 128 + os.WTERMSIG(status)
    return os.WEXITSTATUS(status)


def lead():
    """What a shell does: a session, and a job in its foreground."""
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(slave, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        for n in 0, 1, 2:
            os.dup2(slave, n)
        os.closerange(3, 100)
        os.execv(sys.argv[2], sys.argv[2:])
    os.write(to_driver, b"%d\n" % job)
    os.write(to_driver, b"%d\n" % os.waitpid(job, 0)[1])
    # With its leader, a session would lose its terminal.
    signal.pause()


terminal = Terminal(12, 80)
fd, slave = pty.openpty()
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 80, 0, 0))
before = termios.tcgetattr(slave)
from_leader, to_driver = os.pipe()
began = time.time()
leader = os.fork()
if leader == 0:
    lead()
pid = int(os.read(from_leader, 100).split()[0])
to_kill = [pid, leader]
try:
    exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"))
finally:
    for p in to_kill:
        try:
            os.kill(p, signal.SIGKILL)
        except ProcessLookupError:
            pass
