# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# crowd.py SECONDS LAYOUT N LATE: N consumers wait, and messages come one by one,
# while those that matter for the next one are killed or stopped: the one on
# watch, the one that is woken next, any.  No message may wait longer than LATE
# seconds for a living idle consumer, and each must be run.  At the end nine of
# ten are killed at once; then a message may wait for a heartbeat of one that is
# left.  Prints a line, and exits 1 with what was wrong.
#
# What is '' is 20 seconds, the layout of rmq, 100 consumers, 2 seconds.  A message
# that a killed consumer had claimed waits for a cleaner, and may come late.
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import world

PREFIX = {"rmq": "rmq::queue::[q]::", "rsmq": "rsmq:q:X"}
WORKER = 'read -r x; echo "$x $(date +%s.%N)" >>"$LOG"'
STOPPED = 3    # seconds: longer than any message may wait
HEARTBEAT = 16    # seconds between two of an idle consumer, at most


class Crowd:
    def __init__(self, layout, n, build):
        self.D, self.build = tempfile.mkdtemp(prefix="mq."), build
        self.world = world.World(self.D, layout, ("q",))
        self.keys, self.n, self.serial = PREFIX[layout], n, 0
        self.log, self.tags = self.D + "/log", {}
        self.sent, self.excused = {}, set()
        self.asleep, self.counts = [], dict(kill=0, stop=0)
        open(self.log, "w").close()
        self.world.start()

    def tool(self, name, *args):
        return subprocess.Popen(
            [self.build + "/" + name, "-u", self.world.url(False, ""), *args],
            env=dict(os.environ, LOG=self.log), stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def fill(self):
        while len(self.tags) < self.n:
            tag = "c%d" % self.serial
            self.serial += 1
            self.tags[tag] = self.tool("mq-consume", "--no-clean", "--tag", tag,
                                       "q", "--", "sh", "-c", WORKER)

    def publish(self, name):
        self.sent[name] = time.time()
        if self.tool("mq-publish", "q", name).wait() != 0:
            raise RuntimeError("%s was not accepted" % name)
        self.sent[name] = time.time()

    def started(self):
        first = {}
        with open(self.log) as f:
            for line in f:
                name, at = line.split()
                first.setdefault(name, float(at))
        return first

    def chosen(self, which):
        """The tag of a consumer in that role."""
        name = None
        if which == "watch":
            name = self.world.call("GET", self.keys + "watch")
        elif which == "next":
            name = (self.world.call("ZRANGE", self.keys + "idle", 0, 0) or [None])[0]
        tag = name.decode().rsplit("-", 1)[0] if name else None
        return tag if tag in self.tags else random.choice(list(self.tags))

    def kill(self, tag):
        process = self.tags.pop(tag)
        process.kill()
        process.wait()
        self.excuse(tag)
        self.world.doom(tag)
        self.world.reap()
        self.tool("mq-clean").wait()
        self.counts["kill"] += 1

    def stop(self, tag):
        """A message that it has claimed waits for it."""
        pid = self.tags[tag].pid
        os.kill(pid, signal.SIGSTOP)
        self.asleep.append((time.time() + STOPPED, pid))
        time.sleep(0.05)
        self.excuse(tag)
        self.counts["stop"] += 1

    def excuse(self, tag):
        if self.world.of_tags({tag}) > 0:
            self.excused |= set(self.sent) - set(self.started())

    def wake_up(self, all=False):
        for end, pid in list(self.asleep):
            if all or time.time() >= end:
                os.kill(pid, signal.SIGCONT)
                self.asleep.remove((end, pid))

    def disturb(self):
        tag = self.chosen(random.choice(("watch", "next", "any")))
        if any(pid == self.tags[tag].pid for _, pid in self.asleep):
            return
        if random.random() < 0.5:
            self.kill(tag)
            self.fill()
        else:
            self.stop(tag)

    def rest(self):
        """All are idle, but the one on watch."""
        end = time.time() + world.LIMIT
        while (self.world.call("ZCARD", self.keys + "idle") < self.n - 1 and
               time.time() < end):
            time.sleep(0.1)

    def run(self, seconds):
        self.fill()
        self.rest()
        end = time.time() + seconds
        while time.time() < end:
            self.wake_up()
            if random.random() < 0.6:
                self.disturb()
            self.publish("m%d" % len(self.sent))
            time.sleep(random.choice((0, 0.02, 0.5)))
        self.run_out()

    def run_out(self):
        end = time.time() + world.LIMIT
        while len(self.started()) < len(self.sent) and time.time() < end:
            self.wake_up()
            time.sleep(0.1)

    def kill_most(self):
        """How long a message waits then."""
        self.wake_up(all=True)
        self.rest()
        doomed = [self.chosen("watch")]
        doomed += random.sample(sorted(set(self.tags) - set(doomed)),
                                self.n * 9 // 10 - 1)
        for tag in doomed:
            self.tags[tag].kill()
        self.publish("survivors")
        for tag in doomed:
            self.tags.pop(tag).wait()
        self.run_out()
        return (self.started().get("survivors", time.time()) -
                self.sent.pop("survivors"))

    def close(self):
        self.wake_up(all=True)
        for process in self.tags.values():
            process.kill()
            process.wait()
        self.world.kill()
        shutil.rmtree(self.D, ignore_errors=True)


def main():
    build, seconds, layout, n, late = world.begin(20.0, "rmq", 100, 2.0)
    crowd = Crowd(layout, n, build)
    try:
        crowd.run(seconds)
        survived = crowd.kill_most()
        first = crowd.started()
        waits = {m: first[m] - at for m, at in crowd.sent.items() if m in first}
        fair = [w for m, w in waits.items() if m not in crowd.excused]
        print("%s: %d consumers, %d messages, %d kills, %d stops: "
              "the longest wait %.2f s, %d excused; with a tenth left %.2f s" %
              (layout, n, len(crowd.sent), crowd.counts["kill"],
               crowd.counts["stop"], max(fair), len(crowd.excused),
               survived))
        lost = set(crowd.sent) - set(first)
        if lost or max(fair) > late:
            print("WRONG: never run: %s" % " ".join(sorted(lost)) if lost else
                  "WRONG: a message waited longer than %g s" % late)
            sys.exit(1)
        if survived > HEARTBEAT + late:
            print("WRONG: a message waited longer than a heartbeat")
            sys.exit(1)
    finally:
        crowd.close()


if __name__ == "__main__":
    main()
