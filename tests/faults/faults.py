# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# faults.py SEED RUNS LAYOUT: rounds of publishers, consumers, cleaners and
# operators at work, in each of which one kind of fault comes again and again at
# random moments.  At any moment each accepted message must be in one place; in
# the end each must be done, rejected, or purged by whom it was told to.  Prints
# a table, and exits 1 with what was wrong.
#
# Round N of a SEED is the first one of the SEED + N.  What is '' is a random
# SEED, two rounds of each kind, and the layout of rmq.  BUILD has the tools.
import collections
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import world
import actors
import inject
import model
import proxy

COLUMNS = ("rounds", "times", "kills", "attempted", "accepted", "done",
           "rejected", "pushed", "purged", "stopped", "lost", "doubled", "repeated", "flying")
HEADS = dict(flying="in flight", doubled="duplicated")
QUEUES = ("q", "r", "a", "f", model.TWINS, model.LINES,
          model.BATCHES)
KILLS = ("kill consumer", "kill script", "kill others", "terminate")


class Round:
    def __init__(self, seed, layout, build):
        self.kind = inject.KINDS[seed % len(inject.KINDS)]
        self.seed, self.r = seed, random.Random("faults %d" % seed)
        self.D = tempfile.mkdtemp(prefix="mq.")
        self.world = world.World(self.D, layout, QUEUES)
        self.world.rights.update(self.printed(build))
        refused = self.kind in inject.MAY_REFUSE
        self.model = model.Model(layout, self.D + "/log", refused)
        self.proxy = proxy.Proxy(self.world.far, self.world.sock)
        self.cast = actors.Cast(self.world, self.model, build, seed)
        self.cast.refused, self.denied = refused, self.model.reports.denied
        self.proxy.slow = (self.r.choice((0, 0.02, 0.02))
                           if self.kind in inject.SLOW else 0)
        self.cast.far = 1 if self.kind in inject.NETWORK or self.proxy.slow else 0.5
        self.restarting = threading.Lock()
        self.times = self.kills = 0
        self.notes, self.over, self.threads = [], threading.Event(), []

    def printed(self, build):
        """What the tools say that their users need."""
        for tool, user in actors.USERS.items():
            options = []
            if tool == "mq-publish" and self.world.layout == "rmq":
                options = ["--attach", "f=/dev/null", "--key=k", "--wait", "--tick=1",
                           "--batch=b", "--after=b"]
            rules = subprocess.check_output([build + "/" + tool, "--print-acl", *options,
                "-L", self.world.layout, *QUEUES, model.PUSHED, model.NOTIFIED], text=True)
            yield user, rules.split()

    def note(self, text):
        self.notes.append("%.3f %s" % (self.model.now(), text))

    def held(self, tool):
        """What a consumer has now may be run again, though it lives on."""
        tool.bereft = True
        tag = tool.args[tool.args.index("--tag") + 1]
        self.world.allow(tag)

    def loop(self, f, pause):
        def run():
            while not self.over.is_set() and not self.model.wrong:
                try:
                    f()
                except Exception as e:
                    if not self.over.is_set():
                        self.model.say("%s: %r" % (f.__name__, e))
                time.sleep(pause)
        thread = threading.Thread(target=run)
        self.threads.append(thread)
        thread.start()
        return thread

    def look(self):
        self.model.look(self.world)

    def disturb(self):
        """Two at once, in the round of all kinds."""
        threads = [threading.Thread(target=self.disturb_once)
                   for _ in range(2 if self.kind == inject.ALL else 1)]
        self.threads += threads
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    def disturb_once(self):
        """Kills are soon over; what else there is lasts a while."""
        kills = self.kind in KILLS
        for _ in range(self.r.randint(15, 25) if kills else self.r.randint(4, 6)):
            time.sleep(self.r.uniform(0.01, 0.09 if kills else 0.15))
            if self.model.wrong or self.over.is_set():
                break
            try:
                inject.inject(self, self.kind)
            except Exception as e:
                self.model.say("%s: %r" % (self.kind, e))

    def run(self):
        self.world.start()
        self.cast.begin()
        loops = [self.loop(self.look, 0.01), self.loop(self.cast.tend, 0.01),
                 self.loop(self.world.reap, 0.02)]
        time.sleep(0.2)
        self.disturb()
        self.note("no more faults")
        self.proxy.slow = 0
        self.proxy.heal()
        self.cast.join()
        self.over.set()
        for t in loops:
            t.join()
        self.cast.tend(again=False)
        self.cast.dismiss()
        self.cast.drain()
        self.world.reap()
        self.cast.check_files()
        view = self.model.look(self.world)
        self.model.count_batches(self.world, view)
        count = self.model.settle(view, self.world.in_flight)
        count.update(rounds=1, times=self.times, kills=self.kills,
                     stopped=self.cast.stopped)
        return count

    def close(self):
        """Also in the middle of it: nobody may start anything any more."""
        self.over.set()
        self.cast.over.set()
        end = time.monotonic() + world.LIMIT
        while True:
            for tool in self.cast.living():
                tool.kill()
            working = [t for t in self.threads + self.cast.threads if t.is_alive()]
            if not working or time.monotonic() > end:
                break
            self.proxy.heal()
            working[0].join(0.1)
        for tool in list(self.cast.tools):
            tool.p.wait()
        self.proxy.close()
        if self.world.redis:
            self.world.kill()
        shutil.rmtree(self.D, ignore_errors=True)

    def complain(self):
        print("round of seed %d, %s:" % (self.seed, self.kind))
        wrong = self.model.wrong
        for text in wrong[:20]:
            print(text)
        if len(wrong) > 20:
            print("and %d more" % (len(wrong) - 20))
        ids = [id for text in wrong[:5] for id in text.replace(":", " ").split()
               if len(id) == 32][:5]
        for id in dict.fromkeys(ids):
            print("\n".join(self.model.history(id)))
        print("faults:\n  " + "\n  ".join(self.notes))
        try:
            with open(self.D + "/stderr", errors="replace") as f:
                print("the tools said:\n  " + "  ".join(list(f)[-20:]))
        except OSError:
            pass
        print("the consumers said:\n  " + "  ".join(self.model.reports.other[-20:]))
        print()


def table(rows):
    total = collections.Counter()
    widths = [max(6, len(HEADS.get(c, c))) for c in COLUMNS]

    def line(name, cells):
        print("%-16s" % name + "".join("%*s" % (w + 1, c) for w, c in zip(widths, cells)))
    line("fault", [HEADS.get(c, c) for c in COLUMNS])
    for kind in inject.KINDS:
        if kind in rows:
            line(kind, [rows[kind][c] for c in COLUMNS])
            total.update(rows[kind])
    line("total", [total[c] for c in COLUMNS])


def main():
    build, seed, runs, layout = world.begin(
        random.randrange(1 << 30), 2 * len(inject.KINDS), "rmq")
    if layout not in world.ALIVE:
        sys.exit("faults: no such layout: " + layout)
    print("seed %d, %d rounds, %s\n" % (seed, runs, layout), flush=True)
    rows, bad = collections.defaultdict(collections.Counter), None
    for n in range(runs):
        round = Round(seed + n, layout, build)
        try:
            rows[round.kind].update(round.run())
            if round.model.wrong:
                bad = seed + n
                round.complain()
                break
        finally:
            round.close()
    table(rows)
    if bad is not None:
        print("\nWRONG; again: make faults SEED=%d RUNS=1 LAYOUT=%s" % (bad, layout))
        sys.exit(1)
    print("\nnothing lost")


if __name__ == "__main__":
    main()
