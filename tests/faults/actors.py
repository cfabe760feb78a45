# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Those who use the queues in a round, all at once: publishers, consumers of
# each kind, cleaners and operators.
#
#   Cast(world, model, build, seed)
#   begin()        the threads; they go on until over is set
#   tend()         buries consumers that have ended, and starts others
#   living(kinds)  processes of these kinds, as Tool
#   dismiss()      the consumers are told to end
#   drain()        what is left is worked off; False when it cannot be
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import model as models
from publishers import Publishers

LIMIT = 120      # seconds, for what never takes so long
CONSUMERS = ("one", "one", "batch", "stream", "stream")
# What a tool may end with while something is wrong with the server.
TROUBLE = {"mq-publish": {0, 1, 69, 75}, "mq-consume": {69, 75},
           "mq-clean": {0, 69, 75}, "others": {0, 1, 69, 75}}
# Who has the rights that the tool prints; the others have all.
USERS = {"mq-publish": "publisher", "mq-consume": "consumer"}


class Tool:
    def __init__(self, kind, args, env, out, err, stdin=subprocess.DEVNULL):
        self.kind, self.args, self.killed = kind, args, False
        self.bereft = False    # a script of it was killed
        self.p = subprocess.Popen(args, env=env, stdin=stdin, stdout=out,
                                  stderr=err)

    def kill(self, how=signal.SIGKILL):
        self.killed = True
        self.p.send_signal(how)

    def children(self):
        try:
            with open("/proc/%d/task/%d/children" % (self.p.pid, self.p.pid)) as f:
                return [int(pid) for pid in f.read().split()]
        except OSError:
            return []

    def status(self):
        """Its exit status, or None when it was killed on purpose."""
        ours = (-signal.SIGKILL, -signal.SIGTERM)
        return None if self.killed and self.p.returncode in ours else self.p.returncode


class Cast(Publishers):
    def __init__(self, world, model, build, seed):
        self.world, self.model, self.build, self.seed = world, model, build, seed
        self.rmq = world.layout == "rmq"
        self.r = random.Random("cast %d" % seed)
        self.tools, self.consumers, self.tags = set(), {}, 0
        self.over, self.threads, self.tick = threading.Event(), [], 0
        self.lock = threading.Lock()
        self.stopped = 0        # runs, by operators
        self.refused = False    # NOPERM is among what may happen
        self.far = 0.5          # how many are behind the proxy
        # A copy: who edits it meanwhile makes an empty one, with which all is done.
        self.work = shutil.copy(os.path.dirname(os.path.abspath(__file__)) + "/worker",
                                world.D + "/worker")

    # --- processes ---

    def start(self, kind, r, tool, *args, **files):
        user = USERS.get(tool, "some") if r.random() < 0.5 else ""
        env = dict(os.environ, LOG=self.model.log, TAG=files.pop("tag", ""),
                   MQ_URL=self.world.url(r.random() < self.far, user))
        files.setdefault("out", subprocess.DEVNULL)
        err = files.pop("err", None) or open(self.world.D + "/stderr", "ab")
        made = Tool(kind, [self.build + "/" + tool, *map(str, args)], env,
                    err=err, **files)
        if err.name == self.world.D + "/stderr":
            err.close()
        with self.lock:
            self.tools.add(made)
        return made

    def end(self, tool, allowed=None):
        """Waits for it; what it ended with must be allowed."""
        try:
            tool.p.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.model.say("does not end: %s" % " ".join(tool.args))
            tool.kill()
            tool.p.wait()
        with self.lock:
            self.tools.discard(tool)
        if allowed is None:
            name = os.path.basename(tool.args[0])
            allowed = TROUBLE.get(name, TROUBLE["others"]) | ({77} if self.refused else set())
        if tool.status() not in {None, *allowed}:
            self.model.say("%s: ended with %d" % (" ".join(tool.args), tool.status()))
        return tool.status()

    def living(self, *kinds):
        with self.lock:
            return [t for t in self.tools
                    if t.p.poll() is None and (not kinds or t.kind in kinds)]

    def run(self, kind, r, tool, *args):
        """Its standard output."""
        with tempfile.TemporaryFile() as out:
            self.end(self.start(kind, r, tool, *args, out=out))
            out.seek(0)
            return out.read().decode()

    # --- consumers ---

    def consumer(self, how, twins=False, *more):
        """twins: for none but those.  Nobody hears of them: so another step acks them."""
        self.tags += 1
        tag, r = "c%d" % self.tags, self.r
        args = ["-v", "--tag", tag, "--attempts", 6, "--backoff", "1ms..20ms"]
        if twins:
            args += ["--push", models.PUSHED]
        elif self.rmq:
            args += ["--notify", models.NOTIFIED]
        if how == "one":
            # Else as the settings say.
            args += r.choice((["-j", r.choice((1, 2, 4, 8))], [])) if not twins else ["-j", 8]
            args += r.choice(([], ["--prefetch", r.randint(1, 6)], ["--no-clean"]))
        elif how == "batch":
            args += ["--batch", r.randint(2, 20), "--batch-wait", "5ms", "--jsonl"]
        else:
            args += ["--stream", "--jsonl", "-j", r.randint(1, 3)]
            args += r.choice(([], ["--window", r.randint(1, 50)]))
        with open("%s/said.%s" % (self.world.D, tag), "wb") as err:
            tool = self.start("consumer", r, "mq-consume", *args, *more,
                              *(models.TWINS if twins else self.queues(how)),
                              "--", self.work, how, err=err, tag=tag)
        tool.how, tool.twins = how, twins
        self.consumers[tag] = tool
        return tool

    def queues(self, how):
        """Others refuse messages with files."""
        return models.BATCHES * self.rmq + ("agqr" if how == "stream" else
            "qragf" if how == "one" and self.rmq else "qgra")

    def buried(self, tag):
        """Was it there until its end, and has said all?"""
        tool = self.consumers.pop(tag)
        if tool.p.returncode in (0, -signal.SIGTERM) and not tool.bereft:
            self.model.reports.whole.add(tag)
        self.world.doom(tag)
        for text in self.model.reports.ends(tag, tool.p.returncode):
            self.model.say(text)

    def tend(self, again=True):
        for tag, tool in list(self.consumers.items()):
            if tool.p.poll() is None:
                continue
            self.end(tool)
            self.buried(tag)
            if again:
                self.consumer(tool.how, tool.twins)

    def dismiss(self):
        for tool in self.consumers.values():
            tool.kill(signal.SIGTERM)
        for tag, tool in list(self.consumers.items()):
            self.end(tool)
            self.buried(tag)

    def left(self):
        return [m for m in self.model.look(self.world).messages
                if m.place not in ("rejected", "pushed")]

    def stuck(self, left):
        """Nothing has moved for a long time."""
        places = sorted(map(str, left))
        if places != self.places:
            self.places, self.moved = places, time.monotonic()
        return time.monotonic() - self.moved > LIMIT

    def drain(self):
        """By consumers that end by themselves, one kind after the other."""
        self.places = None
        if self.rmq:
            self.advance(self.r, models.TICKS)
        while not self.model.wrong:
            self.world.reap()
            left = self.left()
            if not left:
                return True
            if self.stuck(left):
                for m in left:
                    self.model.say("stuck: %s" % m)
                break
            self.run("cleaner", self.r, "mq-clean", "--attempts", 6)
            # The fast ones first; streams wait before they restart what was killed.
            for how, twins in itertools.product(("batch", "one", "stream"),
                                                {m.queue == models.TWINS for m in left}):
                self.wait_drained(self.consumer(how, twins, "--drain"))
                self.buried("c%d" % self.tags)
        return False

    def wait_drained(self, tool):
        """Others that died hold messages until their leases are over."""
        while tool.p.poll() is None and not self.stuck(self.left()):
            self.world.reap()
            time.sleep(0.05)
        if tool.p.poll() is None:
            tool.kill()
        self.end(tool, {0, 1, 75})

    # --- all others are threads ---

    def begin(self):
        if self.rmq:
            self.run("operator", self.r, "mq-set", "--new", models.BATCHES,
                     "group-slots=%d" % models.SLOTS, "slots-shared=%d" % models.SHARED)
        for how in CONSUMERS:
            self.consumer(how)
        for how in self.r.sample(CONSUMERS, 2) if self.rmq else ():
            self.consumer(how, twins=True)
        for f, n in ((self.publish, 3), (self.publish_alike, 1), (self.operate, 1),
                     (self.clean, 1), *((f, n * self.rmq) for f, n in (
                         (self.publish_files, 1), (self.publish_twins, 1),
                         (self.publish_line, 2), (self.publish_batch, 1)))):
            for i in range(n):
                r = random.Random("%s %d %d" % (f.__name__, i, self.seed))
                self.threads.append(threading.Thread(
                    target=self.guard, args=(f, r, chr(ord("A") + i))))
        for t in self.threads:
            t.start()

    def guard(self, f, r, name):
        count = 0
        while not self.over.is_set() and not self.model.wrong:
            try:
                count = f(r, name, count)
            except Exception as e:
                self.model.say("%s: %r" % (f.__name__, e))
            time.sleep(r.random() * 0.06)

    def join(self):
        self.over.set()
        for t in self.threads:
            t.join()

    def check_files(self):
        """Without their messages they last an hour once a cleaner has been there, which
        leaves alone what is younger than an hour."""
        if not self.rmq or self.model.wrong:
            return
        for refs in self.world.call("KEYS", "mq::attach::{*}::refs"):
            for id in self.world.call("HKEYS", refs):
                self.world.call("HSET", refs, id, "1")
        self.run("cleaner", self.r, "mq-clean", "--attempts", 6)
        left = self.model.look(self.world)
        for m in left.of("f"):
            if b'"Mq-Error":["attachments: ' in m.element:
                self.model.say("its files were gone: %s" % m)
        for key in self.world.call("KEYS", "mq::attach::{*"):
            refs = b"%s}::refs" % key.split(b"}")[0]
            if self.world.call("TTL", key) == -1 and not any(
                    id.decode() in left.by_id for id in self.world.call("HKEYS", refs)):
                self.model.say("a file for ever: " + key.decode())

    def clean(self, r, _, count):
        if r.random() < 0.5:
            self.run("cleaner", r, "mq-clean", "--attempts", 6)
            return count
        tool = self.start("cleaner", r, "mq-clean", "--attempts", 6,
                          "--interval", "50ms")
        end = time.monotonic() + r.random() * 0.5
        while tool.p.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        tool.kill(signal.SIGTERM)
        self.end(tool)
        return count

    def operate(self, r, _, count):
        queue, n = r.choice("qqqra"), r.randint(1, 9)
        what = r.choice(("return", "return", "return to", "pause", "stats",
                         "list", "purge", "set", "stop", "stop", "stop") +
                        ("unacked", "tick") * self.rmq)
        commands = {
            "return": [["mq-return", "-n", n, queue]],
            "return to": [["mq-return", "--to", r.choice("qr"), "-n", n, queue]],
            "pause": [["mq-pause", "--for", "%dms" % r.randrange(1, 200), queue],
                      ["mq-pause", "--resume", queue]],
            "set": [["mq-set", "--create", queue, r.choice(("slots=1", "slots=5", "slots=")),
                     r.choice(("rate=", "rate=500/s", "timeout=", "timeout=1m"))]],
            "stats": [["mq-stats", r.choice(("--json", "--prometheus"))]],
            "list": [["mq-stats", "--list", r.choice(
                ("ready", "delayed", "unacked", "rejected")), "--jsonl", queue]]}
        if what == "tick":
            self.tick += 1
            self.advance(r, min(self.tick, models.TICKS - 1))
        elif what == "stop":
            self.stop(r)
        elif what == "purge":
            self.purge(r, queue)
        elif what == "unacked":
            commands[what] = [["mq-return", "--from", "unacked:" + c.decode(), queue]
                              for c in self.world.call("SMEMBERS", "rmq::connections")[:3]]
        for command in commands.get(what, ()):
            self.run("operator", r, *command)
        return count

    def stop(self, r):
        """One that runs for long, if there is any; it may end before that."""
        runs = self.run("operator", r, "mq-stats", "--running", "--json")
        runs = [run for run in (json.loads(runs) if runs else ())
                if run["queue"] in "qr"]
        if not runs:
            return
        run, tool = r.choice(runs), r.choice(("mq-return", "mq-purge"))
        if tool == "mq-purge":
            self.model.purge(run["id"])
        said = self.run("operator", r, tool, "--running", "--id", run["id"], run["queue"])
        self.stopped += said.startswith("1 ")

    def advance(self, r, tick):
        for queue in "qr":
            self.run("operator", r, "mq-publish", "--tick", tick, queue)

    def purge(self, r, queue):
        """One that is chosen, of those that wait or are rejected: nothing else may vanish."""
        state = r.choice(("rejected", "rejected", "ready", "delayed"))
        listed = self.run("operator", r, "mq-stats", "--list", state, "--jsonl", queue)
        ids = [m["id"] for m in map(json.loads, listed.splitlines())
               if "id" in m and not m["payload"].startswith(models.ALIKE)]
        if ids:
            id = r.choice(ids)
            self.model.purge(id)
            self.run("operator", r, "mq-purge", "--force", "--all", "--id", id, queue)
