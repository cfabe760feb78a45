# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# identical.py MODE FIRST-SEED RUNS: messages with the same bytes are consumed,
# end in a random order, and their consumer is killed at a random moment.  What
# is left is what was not done, byte for byte.  Each run prints one line; the
# first bad one ends the program with status 1.
#
# MODE is fork, batch or stream; cut-fork and so on put the consumer behind a slow link,
# and end its connections now and then, and before some of them the server forgets its
# scripts.  $BUILD has the tools, $D the server,
# $MQ_LAYOUT says which keys it has.
import collections
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

import places

D, BUILD, LAYOUT = os.environ["D"], os.environ["BUILD"], os.environ["MQ_LAYOUT"]
SOCK = D + "/redis.sock"
PAYLOADS = (b"x", b"y", b"x y", b"z" * 300)

# Brings what it has been given here, and hears how each is to end.
WORK = r"""#!/usr/bin/perl
use Socket;
socket(my $desk, PF_UNIX, SOCK_STREAM, 0) or die;
connect($desk, sockaddr_un($ENV{DESK})) or die;
open(my $verbs, '>&=', 3) or die;
sub bring {
	syswrite $desk, @_ . "\n" . join('', map { "$_\n" } @_);
	for (1 .. @_) {
		my $verb = <$desk> // exit 0;
		chomp $verb;
		syswrite $verbs, $ARGV[0] eq 'batch' ? "$verb #$_\n" : "$verb\n";
	}
}
if ($ARGV[0] eq 'stream') { while (<STDIN>) { chomp; bring($_) } }
elsif ($ARGV[0] eq 'batch') { chomp(my @all = <STDIN>); bring(@all) }
else { bring(scalar <STDIN>) }
"""


class Desk:
    """Where the workers wait."""

    def __init__(self, path):
        self.path = path
        self.lock, self.waiting = threading.Condition(), []
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.bind(path)
        self.sock.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            conn, _ = self.sock.accept()
            threading.Thread(target=self.hear, args=(conn,), daemon=True).start()

    def hear(self, conn):
        f = conn.makefile("rb")
        while True:
            try:
                n = f.readline()
                lines = [f.readline()[:-1] for _ in range(int(n or 0))]
            except OSError:
                n, lines = b"", []
            with self.lock:
                self.waiting = [w for w in self.waiting if w[0] is not conn]
                if lines:
                    self.waiting.append((conn, lines))
                self.lock.notify_all()
            if not n:
                return

    def take(self, r, limit):
        """One that waits; None: there is none for so many seconds."""
        with self.lock:
            self.lock.wait_for(lambda: self.waiting, limit)
            if not self.waiting:
                return None
            return self.waiting.pop(r.randrange(len(self.waiting)))


class Run:
    def __init__(self, mode, seed):
        self.cut, self.mode = mode.startswith("cut-"), mode.replace("cut-", "")
        self.r = random.Random(seed)
        # Its own: workers of another run may not have heard yet of their end.
        self.desk = Desk("%s/%s.%d" % (D, mode, seed))
        self.left = collections.Counter()
        self.done = 0

    def call(self, *args):
        return places.call(SOCK, *args)

    def tool(self, name, *args, **how):
        subprocess.run([BUILD + "/" + name, *args], env=ENV, check=True, **how)

    def publish(self):
        kinds = self.r.sample(PAYLOADS, self.r.randint(1, len(PAYLOADS)))
        lines = self.r.choices(kinds, k=self.r.randint(8, 60))
        raw = ["--raw"] if LAYOUT == "rmq" else []
        self.tool("mq-publish", *raw, "-l", "q", input=b"\n".join(lines))
        self.left.update(lines)

    def start(self):
        jobs = self.r.randint(2, 6)
        args = {"fork": ["--prefetch", str(self.r.randint(0, 20))],
                "batch": ["--batch", str(self.r.randint(2, 7)), "-l"],
                "stream": ["--stream", "-l"]}[self.mode]
        self.consumer = subprocess.Popen([BUILD + "/mq-consume", "-q",
            "--no-clean", "--attempts", "99", "-j", str(jobs), *args, "q", "--",
            D + "/work", self.mode], stdin=subprocess.DEVNULL,
            env=dict(ENV, DESK=self.desk.path, **(LINK if self.cut else {})),
            stderr=open(D + "/consume.err", "ab"))

    def end_some(self, limit=0.0):
        """One worker hears how its messages end."""
        worker = self.desk.take(self.r, limit)
        if worker is None:
            return False
        conn, lines = worker
        verbs = self.r.choices((b"done", b"err", b"resend 0"), (8, 1, 1),
            k=len(lines))
        for line, verb in zip(lines, verbs):
            self.left[line] -= verb == b"done"
            self.done += verb == b"done"
        conn.sendall(b"".join(v + b"\n" for v in verbs))
        return True

    def work(self):
        ends = self.r.randint(1, 2 * self.left.total())
        while ends > 0:
            # Many at once: they have ended when the consumer looks again.
            burst = self.r.choice((1, 1, 2, 5)) if not self.cut else 1
            if burst > 1:
                self.consumer.send_signal(signal.SIGSTOP)
            for _ in range(burst - 1):
                self.end_some()
            self.consumer.send_signal(signal.SIGCONT)
            ends -= burst
            if not self.end_some(0.5):
                return
            if self.cut and self.r.random() < 0.3:
                if self.r.random() < 0.5:
                    self.call("SCRIPT", "FLUSH")
                time.sleep(self.r.random() * 0.03)
                self.call("CLIENT", "KILL", "TYPE", "normal")

    def there(self):
        """All payloads of the server, wherever they are, at one moment."""
        found, held = collections.Counter(), dict(self.call("EVAL", places.LOOK, 0)[1:])
        for key, all in held.items():
            if key.endswith((b"]::ready", b"]::rejected", b"]::unacked")):
                found.update(places.Message(e, "q", "").payload for e in all)
            elif key.endswith(b"]::delayed"):
                found.update(places.Message(m[32:], "q", "").payload for m in all[::2])
            elif key in (b"rsmq:q", b"rsmq:q-rejected"):
                fields = held[key + b":Q"]
                bodies = dict(zip(fields[::2], fields[1::2]))
                found.update(bodies[i] for i in all[::2])
        return found

    def bury(self):
        self.consumer.kill()
        self.consumer.wait()
        if LAYOUT == "rmq":
            for c in self.call("SMEMBERS", "rmq::connections"):
                self.call("DEL", b"rmq::connection::" + c + b"::heartbeat")
        self.tool("mq-clean", "-q")

    def check(self):
        """What is wrong."""
        self.call("FLUSHALL")
        self.publish()
        self.start()
        self.work()
        end = time.monotonic() + 180
        while self.there() != self.left and time.monotonic() < end:
            time.sleep(0.01)
        if self.r.random() < 0.5:
            self.end_some()
            least = +self.left
        else:
            least = None
        code = self.consumer.poll()
        self.bury()
        there = self.there()
        if code is not None:
            return "the consumer has ended: %d" % code
        # The last ones may not have been told to the server.
        if least is None and there != self.left:
            return "left: %s, not %s" % (there, self.left)
        if least is not None and least - there:
            return "lost: %s" % (least - there)
        if LAYOUT == "rmq" and self.call("KEYS", "*::unacked"):
            return "some are unacked still"
        return ""


def main():
    mode, seed, runs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with open(D + "/work", "w") as f:
        f.write(WORK)
    os.chmod(D + "/work", 0o755)
    link = subprocess.Popen([sys.executable, places.__file__.replace(
        "places", "link"), SOCK, "0.01"], stdout=subprocess.PIPE, text=True)
    LINK["MQ_URL"] = "redis://127.0.0.1:" + link.stdout.readline().strip()
    try:
        runs_are_good(mode, seed, runs)
    finally:
        link.kill()


def runs_are_good(mode, seed, runs):
    for s in range(seed, seed + runs):
        run = Run(mode, s)
        try:
            wrong = run.check()
        finally:
            run.consumer.kill()
        print("%s seed %d: %d done, %d left%s" % (mode, s, run.done,
            run.left.total(), wrong and ": " + wrong), flush=True)
        if wrong:
            sys.exit(1)


ENV = dict(os.environ, MQ_URL="unix://" + SOCK)
LINK = {}
main()
