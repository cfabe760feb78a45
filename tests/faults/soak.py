# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# soak.py MINUTES SEED LAYOUT: one consumer of each kind (fork, batch, stream)
# lives all the time, at 80 % of the speed that they reach together, while
# faults of any kind come every few seconds and companions of theirs are killed.
# None of what was accepted may be lost, and neither memory nor descriptors may
# grow.  Prints a line a minute, and a table; exits 1 with what was wrong.
import collections
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import world
import actors
import inject
import places
import proxy

HOWS = {"fork": ["-j", "2"], "batch": ["--batch", "50", "--batch-wait", "20ms", "-l"],
        "stream": ["--stream"]}
SHARE = 0.8      # of full speed
CALIBRATE = 20   # seconds
CHUNK = 10       # seconds that a publisher lives
PADDING = "x" * 100
# Each appends the numbers that it was given to $LOG.$HOW, then says so.
WORKERS = {"fork": "#!/bin/sh\nread -r n x\necho \"$n\" >>\"$LOG.fork\"\n",
    "batch": """#!/usr/bin/perl
open my $log, '>>', "$ENV{LOG}.batch" or die;
syswrite $log, join '', map { /^(\\d+)/ ? "$1\\n" : die } <STDIN>;
""",
    "stream": """#!/usr/bin/perl
open my $log, '>>', "$ENV{LOG}.stream" or die;
open my $fd3, '>&=', 3 or die;
while (<STDIN>) {
	/^(\\d+)/ or die;
	syswrite $log, "$1\\n";
	syswrite $fd3, "done\\n";
}
"""}
# What may grow by so much, of the first quarter: the allocator has its ways.
GROWTH, GROWTH_KB, GROWTH_FDS = 1.1, 512, 8


class Line:
    """One queue: its messages are numbers, and each knows what became of it."""

    def __init__(self, how, log):
        self.how, self.log, self.read_to = how, log, 0
        self.rate, self.next = 0, 0
        self.counts = bytearray()    # runs, by number
        self.done = 0                # of all
        self.chunks = []             # (first, end, how many were accepted)
        self.rejected = set()        # whose script was killed
        open(log, "w").close()

    def read_log(self):
        with open(self.log, "rb") as f:
            f.seek(self.read_to)
            text = f.read()
        text = text[:text.rfind(b"\n") + 1]
        self.read_to += len(text)
        for n in map(int, text.split()):
            self.counts[n] += 1
            self.done += 1

    def lost(self):
        there = self.counts[:]
        for n in self.rejected:
            there[n] = 1
        return sum(max(0, told - sum(map(bool, there[first:end])))
                   for first, end, told in self.chunks)

    def accepted(self):
        return sum(told for _, _, told in self.chunks)

    def repeated(self):
        return sum(n - 1 for n in self.counts if n > 1)


class Soak:
    """What inject.py takes for a round, and for its cast."""

    def __init__(self, minutes, seed, layout, build):
        self.minutes, self.r, self.build = minutes, random.Random(seed), build
        self.D = tempfile.mkdtemp(prefix="mq.")
        self.world = world.World(self.D, layout, tuple(HOWS))
        self.proxy = proxy.Proxy(self.world.far, self.world.sock)
        self.cast, self.restarting, self.denied = self, threading.Lock(), set()
        self.kills = self.times = self.tags = 0
        self.notes, self.wrong = collections.Counter(), []
        self.lines = {how: Line(how, self.D + "/log." + how) for how in HOWS}
        self.lasting, self.consumers = {}, {}
        self.companions, self.publishers = {}, {}
        self.samples = collections.defaultdict(list)
        self.over, self.threads = threading.Event(), []
        self.full = threading.Event()    # as fast as it goes
        self.full.set()

    # --- for inject.py ---

    def living(self, *kinds):
        tools = [*self.lasting.values(), *list(self.companions.values()),
                 *list(self.publishers.values())]
        return [t for t in tools
                if t.p.poll() is None and (not kinds or t.kind in kinds)]

    def held(self, tool):
        self.world.allow(tool.args[tool.args.index("--tag") + 1])

    def note(self, text):
        self.notes[text.split(":")[0]] += 1

    # --- processes ---

    def start(self, kind, tool, *args, **files):
        env = dict(os.environ, LOG=self.D + "/log",
                   MQ_URL=self.world.url(self.r.random() < 0.5,
                                         self.r.choice(("some", ""))))
        with open(self.D + "/stderr", "ab") as err:
            files.setdefault("err", err)
            return actors.Tool(kind, [self.build + "/" + tool, *args], env,
                               subprocess.DEVNULL, **files)

    def consumer(self, kind, how):
        self.tags += 1
        tag = "c%d" % self.tags
        tool = self.start(kind, "mq-consume", "-q", "--tag", tag, "--attempts", "1000",
            "--backoff", "1ms..20ms", *HOWS[how], how, "--", self.D + "/" + how)
        tool.tag = tag
        # Anew each time, for those who are looking through the old one.
        self.consumers = {**self.consumers, tag: tool}
        return tool

    def tend(self):
        """Companions die and are replaced; the others must live."""
        for how in HOWS:
            tool = self.companions.get(how)
            if tool is None or tool.p.poll() is not None:
                if tool:
                    self.world.doom(tool.tag)
                    self.consumers = {t: c for t, c in self.consumers.items()
                                      if t != tool.tag}
                self.companions[how] = self.consumer("consumer", how)
            if self.lasting[how].p.poll() is not None:
                self.wrong.append("%s has ended: %s" % (how, self.lasting[how].p.returncode))
                self.over.set()
        self.world.reap()
        self.tool("mq-clean", "-q", "--attempts", "1000")

    def tool(self, name, *args):
        url = self.world.url(False, "")
        return subprocess.run([self.build + "/" + name, *args],
            env=dict(os.environ, MQ_URL=url), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False).stdout

    # --- publishing ---

    def backlog(self, how):
        if self.world.layout == "rsmq":
            return self.world.call("ZCARD", "rsmq:" + how)
        return self.world.call("LLEN", "rmq::queue::[%s]::ready" % how)

    def find_rejected(self, line):
        said = self.tool("mq-stats", "--list", "rejected", "-l", line.how)
        line.rejected = {int(n) for n in re.findall(r"^(\d+) ", said, re.M)}

    def publish(self, line, feed):
        with tempfile.TemporaryFile() as err:
            tool = self.start("publisher", "mq-publish", "-l", line.how,
                              err=err, stdin=subprocess.PIPE)
            self.publishers[line.how] = tool
            first = line.next
            try:
                feed(line, tool)
                tool.p.stdin.close()
            except BrokenPipeError:
                pass
            status = tool.p.wait()
            err.seek(0)
            said = re.search(r"(\d+) messages? accepted", err.read().decode())
        told = (line.next - first if status == 0 else
                int(said.group(1)) if said else 0)
        line.chunks.append((first, line.next, told))
        if status not in (0, 69, 75, 77, -9, -15):
            self.wrong.append("mq-publish: %d" % status)

    def feed(self, line, tool):
        begin = time.monotonic()
        first = line.next
        while not self.over.is_set():
            now = time.monotonic() - begin
            if now > CHUNK or tool.p.poll() is not None:
                return
            if self.full.is_set():
                n = 2000 if self.backlog(line.how) < 20000 else 0
            else:
                n = max(0, int(line.rate * now) - (line.next - first))
            self.give(line, tool, n)
            time.sleep(0.02)

    def give(self, line, tool, n=100):
        line.counts.extend(bytes(n))
        line.next += n
        tool.p.stdin.write("".join("%d %s\n" % (i, PADDING) for i in
                           range(line.next - n, line.next)).encode())
        tool.p.stdin.flush()

    # --- measuring ---

    def sample(self, name):
        for how, tool in self.lasting.items():
            if tool.p.poll() is not None:
                continue    # tend() says so
            proc = "/proc/%d/" % tool.p.pid
            with open(proc + "status") as f:
                rss = int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))
            zombies = sum(1 for pid in tool.children() if world.state_of(pid) == "Z")
            self.samples[how].append((name, rss, len(os.listdir(proc + "fd")), zombies))

    def look(self):
        for line in self.lines.values():
            line.read_log()

    def grown(self, how):
        """In the last quarter, against the first one behind the warming up."""
        loaded = [s for s in self.samples[how] if s[0] == "loaded"]
        loaded = loaded[len(loaded) // 10:]
        quarter = max(1, len(loaded) // 4)
        first, last = loaded[:quarter], loaded[-quarter:]
        rss = [int(statistics.median(s[1] for s in part)) for part in (first, last)]
        fds = [max(s[2] for s in part) for part in (first, last)]
        idle = [s[2] for s in self.samples[how] if s[0] == "idle"]
        if rss[1] > rss[0] * GROWTH + GROWTH_KB:
            self.wrong.append("%s: memory grows" % how)
        if fds[1] > fds[0] + GROWTH_FDS or idle[-1] > idle[0]:
            self.wrong.append("%s: descriptors grow" % how)
        zombies = max(s[3] for s in loaded)
        return rss, fds, idle, zombies

    # --- all of it ---

    def loop(self, f, pause):
        def run():
            while not self.over.is_set():
                try:
                    f()
                except (OSError, places.Refused) as e:
                    self.note("driver: %s" % e)
                except Exception as e:
                    self.wrong.append("%s: %r" % (f, e))
                    self.over.set()
                self.over.wait(pause)
        thread = threading.Thread(target=run)
        self.threads.append(thread)
        thread.start()

    def disturb(self):
        self.over.wait(self.r.uniform(1, 5))
        if not self.over.is_set():
            inject.inject(self, inject.ALL)

    def kill_lasting_script(self):
        tool = self.r.choice(list(self.lasting.values()))
        for pid in tool.children()[:1]:
            self.held(tool)
            inject.send(pid, signal.SIGKILL)
            self.note("kill script of a lasting one")

    def calibrate(self):
        time.sleep(CALIBRATE / 2)
        self.look()
        before, begin = {h: l.done for h, l in self.lines.items()}, time.monotonic()
        time.sleep(CALIBRATE / 2)
        self.look()
        for how, line in self.lines.items():
            line.rate = SHARE * (line.done - before[how]) / (time.monotonic() - begin)
        self.full.clear()
        print("full speed: " + ", ".join("%s %.0f/s" % (how, line.rate / SHARE)
                                         for how, line in self.lines.items()))
        return sum(line.rate for line in self.lines.values()) / SHARE

    def until_drained(self):
        end = time.monotonic() + 2 * world.LIMIT
        while time.monotonic() < end:
            self.tend()
            time.sleep(1)
            if not any(map(self.backlog, HOWS)) and not self.world.of_tags(
                    {c.rsplit("-", 1)[0] for c in self.world.connections()}):
                return
        self.wrong.append("something is stuck")

    def run(self):
        for how, text in WORKERS.items():
            with open(self.D + "/" + how, "w") as f:
                f.write(text)
            os.chmod(self.D + "/" + how, 0o755)
        self.world.start()
        self.lasting = {how: self.consumer("lasting", how) for how in HOWS}
        # Their workers live as well, as they will in the end.
        for line in self.lines.values():
            self.publish(line, self.give)
        self.until_drained()
        self.sample("idle")
        for line in self.lines.values():
            self.loop(lambda line=line: self.publish(line, self.feed), 0)
        full = self.calibrate()
        self.loop(self.tend, 1)
        self.loop(self.disturb, 0)
        self.loop(self.kill_lasting_script, 7)
        self.soak(full)
        self.over.set()
        for t in self.threads:
            t.join()
        self.proxy.heal()
        self.until_drained()
        self.look()
        self.sample("idle")
        for line in self.lines.values():
            self.find_rejected(line)

    def soak(self, full):
        begin = time.monotonic()
        done = sum(line.done for line in self.lines.values())
        while not self.over.is_set():
            minute = (time.monotonic() - begin) / 60
            if minute >= self.minutes:
                return
            for _ in range(12):
                self.over.wait(min(5, self.minutes * 60 / 12))
                self.look()
                self.sample("loaded")
            now = sum(line.done for line in self.lines.values())
            took = time.monotonic() - begin
            print("%3d min: %d done, %.0f %% of full speed; %s KB" % (took / 60, now,
                100 * (now - done) / took / full, ", ".join(
                "%s %d" % (how, s[-1][1]) for how, s in self.samples.items())), flush=True)

    def report(self):
        print("\nfaults: " + ", ".join("%d %s" % (n, f) for f, n in
                                       self.notes.most_common()))
        print("%-8s%10s%10s%9s%6s%10s%18s%12s%10s%9s" % ("", "accepted", "runs",
            "rejected", "lost", "repeated", "KB first, last", "fds", "idle fds", "zombies"))
        for how, line in self.lines.items():
            rss, fds, idle, zombies = self.grown(how)
            print("%-8s%10d%10d%9d%6d%10d%10d%8d%8d%4d%6d%4d%9d" % (how, line.accepted(),
                line.done, len(line.rejected), line.lost(), line.repeated(), *rss, *fds, idle[0], idle[-1], zombies))
            if line.lost():
                self.wrong.append("%s: messages were lost" % how)
        repeated = sum(line.repeated() for line in self.lines.values())
        print("%d runs in vain, of %d in flight" % (repeated, self.world.in_flight))
        if repeated > self.world.in_flight:
            self.wrong.append("more runs in vain than were in flight")

    def close(self):
        self.over.set()
        if self.wrong:
            with open(self.D + "/stderr", errors="replace") as f:
                print("the tools said:\n  " + "  ".join(f.readlines()[-20:]))
        for tool in self.living():
            tool.kill()
            tool.p.wait()
        self.proxy.close()
        self.world.kill()
        shutil.rmtree(self.D, ignore_errors=True)


def main():
    build, minutes, seed, layout = world.begin(60.0, random.randrange(1 << 30), "rmq")
    print("seed %d, %g minutes, %s\n" % (seed, minutes, layout), flush=True)
    soak = Soak(minutes, seed, layout, build)
    try:
        soak.run()
        if not soak.wrong:
            soak.report()
    finally:
        soak.close()
    print("\n" + ("\n".join(soak.wrong[:20]) or "nothing lost, nothing grows"))
    sys.exit(bool(soak.wrong))


if __name__ == "__main__":
    main()
