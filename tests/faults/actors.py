# Those who use the queues in a round, all at once: publishers, consumers of
# each kind, cleaners and operators.
#
#   Cast(world, model, build, seed)
#   begin()        the threads; they go on until over is set
#   tend()         buries consumers that have ended, and starts others
#   living(kinds)  processes of these kinds, as Tool
#   dismiss()      the consumers are told to end
#   drain()        what is left is worked off; False when it cannot be
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import model as models

LIMIT = 60       # seconds, for what never takes so long
CONSUMERS = ("one", "one", "batch", "stream", "stream")
PLANS = ("d", "d", "d", "D", "D", "rd", "RD", "rRd", "e", "E", "kd", "rkd")
# Of messages that are published again and again: of each the same bytes.  Most
# are short, and end together, but not in the order in which they began.
ALIKE = ("d 0", "d 1", "D 1", "d 2", "rd 1", "kd 1", "e 1")
# What a tool may end with while something is wrong with the server.
TROUBLE = {"mq-publish": {0, 1, 69, 75}, "mq-consume": {69, 75},
           "mq-clean": {0, 69, 75}, "others": {0, 1, 69, 75}}


class Tool:
    def __init__(self, kind, args, env, out, err, stdin=subprocess.DEVNULL):
        self.kind, self.args, self.killed = kind, args, False
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

    def name(self):
        return os.path.basename(self.args[0])

    def status(self):
        """Its exit status, or None when it was killed on purpose."""
        ours = (-signal.SIGKILL, -signal.SIGTERM)
        return None if self.killed and self.p.returncode in ours else self.p.returncode


class Cast:
    def __init__(self, world, model, build, seed):
        self.world, self.model, self.build, self.seed = world, model, build, seed
        self.rmq = world.layout == "rmq"
        self.r = random.Random("cast %d" % seed)
        self.tools, self.consumers, self.tags = set(), {}, 0
        self.over, self.threads = threading.Event(), []
        self.lock = threading.Lock()
        self.refused = False    # NOPERM is among what may happen
        self.far = 0.5          # how many are behind the proxy
        # A copy: who edits it meanwhile makes an empty one, with which all is done.
        self.work = shutil.copy(os.path.dirname(os.path.abspath(__file__)) + "/worker",
                                world.D + "/worker")

    # --- processes ---

    def start(self, kind, r, tool, *args, **files):
        env = dict(os.environ, LOG=self.model.log,
                   MQ_URL=self.world.url(r.random() < self.far, r.random() < 0.5))
        files.setdefault("out", subprocess.DEVNULL)
        err = files.pop("err", None) or open(self.world.D + "/stderr", "ab")
        made = Tool(kind, [self.build + "/" + tool, *map(str, args)], env,
                    err=err, **files)
        if err.name == self.world.D + "/stderr":
            err.close()
        with self.lock:
            self.tools.add(made)
        return made

    def end(self, tool):
        """Waits for it; what it ended with must be allowed."""
        try:
            tool.p.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.model.say("does not end: %s" % " ".join(tool.args))
            tool.kill()
            tool.p.wait()
        with self.lock:
            self.tools.discard(tool)
        self.judge(tool)
        return tool.status()

    def judge(self, tool):
        allowed = TROUBLE.get(tool.name(), TROUBLE["others"])
        if self.refused:
            allowed = allowed | {77}
        if tool.status() is not None and tool.status() not in allowed:
            self.model.say("%s: ended with %d" % (" ".join(tool.args), tool.status()))

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

    def consumer(self, how, *more):
        self.tags += 1
        tag = "c%d" % self.tags
        args = ["-q", "--tag", tag, "--attempts", 6, "--backoff", "1ms..20ms"]
        if self.rmq:
            args += ["--notify", models.NOTIFIED]
        r = self.r
        if how == "one":
            # Else as the settings say.
            args += r.choice((["-j", r.choice((1, 2, 4, 8))], []))
            args += r.choice(([], ["--prefetch", r.randint(1, 6)], ["--no-clean"]))
        elif how == "batch":
            args += ["--batch", r.randint(2, 20), "--batch-wait", "5ms", "--jsonl"]
        else:
            args += ["--stream", "--jsonl", "-j", r.randint(1, 3)]
            args += r.choice(([], ["--window", r.randint(1, 50)]))
        self.consumers[tag] = self.start("consumer", r, "mq-consume", *args, *more,
                                         *self.queues(how),
                                         "--", self.work, how)
        self.consumers[tag].how = how
        return self.consumers[tag]

    def queues(self, how):
        """Others refuse messages with files."""
        return "aqr" if how == "stream" else \
            "qraf" if how == "one" and self.rmq else "qra"

    def tend(self, again=True):
        for tag, tool in list(self.consumers.items()):
            if tool.p.poll() is None:
                continue
            self.end(tool)
            self.world.doom(tag)
            del self.consumers[tag]
            if again:
                self.consumer(tool.how)

    def dismiss(self):
        for tool in self.consumers.values():
            tool.kill(signal.SIGTERM)
        for tag, tool in self.consumers.items():
            try:
                tool.p.wait(LIMIT)
            except subprocess.TimeoutExpired:
                self.model.say("does not end on TERM: " + " ".join(tool.args))
                tool.kill()
                tool.p.wait()
            self.judge(tool)
            with self.lock:
                self.tools.discard(tool)
            self.world.doom(tag)
        self.consumers.clear()

    def drain(self):
        """By consumers that end by themselves, one kind after the other."""
        end = time.monotonic() + LIMIT
        while not self.model.wrong:
            self.world.reap()
            left = [m for m in self.model.look(self.world).messages
                    if m.place != "rejected"]
            if not left:
                return True
            if time.monotonic() > end:
                for m in left:
                    self.model.say("stuck: %s" % m)
                break
            self.run("cleaner", self.r, "mq-clean", "--attempts", 6)
            for how in ("one", "batch", "stream"):
                tag = "c%d" % (self.tags + 1)
                tool = self.consumer(how, "--drain")
                self.wait_drained(tool, end)
                self.world.doom(tag)
                del self.consumers[tag]
        return False

    def wait_drained(self, tool, end):
        """Others that died hold messages until their leases are over."""
        while tool.p.poll() is None and time.monotonic() < end:
            self.world.reap()
            time.sleep(0.02)
        if tool.p.poll() is None:
            tool.kill()
        tool.p.wait()
        with self.lock:
            self.tools.discard(tool)
        if tool.status() not in (None, 0):
            self.model.say("--drain ended with %d" % tool.status())

    # --- all others are threads ---

    def begin(self):
        for how in CONSUMERS:
            self.consumer(how)
        for f, n in ((self.publish, 3), (self.publish_alike, 2), (self.operate, 1),
                     (self.clean, 1), (self.publish_files, int(self.rmq))):
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

    def publish(self, r, who, count):
        names, lines, options, input = [], [], [], None
        for _ in range(r.choice((1, 2, 5, 12))):
            count += 1
            names.append("%s%d" % (who, count))
            lines.append("%s %s %d" % (names[-1], r.choice(PLANS), r.randrange(6)))
        if r.random() < 0.6:
            options = r.choice(self.options(r))
        how = r.choice(("operands", "lines", "jsonl"))
        if how == "lines":
            options, input = ["-l", *options], lines
        elif how == "jsonl":
            options, input = ["--jsonl", *options], [json.dumps(
                {"payload": line, "headers": {"X-Trace": "t"}}) for line in lines]
        self.model.tried(names)
        with tempfile.TemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
            tool = self.start("publisher", r, "mq-publish", "-i", *options,
                r.choice("qqqr"), *([] if input else lines), out=out, err=err,
                stdin=subprocess.PIPE if input else subprocess.DEVNULL)
            if input:
                self.feed(r, tool.p.stdin, input)
            status = self.end(tool)
            out.seek(0)
            err.seek(0)
            self.hear(tool, status, out.read().decode(), err.read().decode(), len(lines))
        return count

    def publish_alike(self, r, _, count):
        """With no header that could tell them apart, side by side in a queue."""
        some = r.sample(range(4) if r.random() < 0.7 else range(len(ALIKE)), 2)
        chosen = [r.choice(some) for _ in range(r.choice((5, 30, 100, 300)))]
        names = ["%s%d" % (models.ALIKE, i) for i in chosen]
        lines = ["%s %s" % (name, ALIKE[i]) for name, i in zip(names, chosen)]
        self.model.alike.tried.update(names)
        with tempfile.NamedTemporaryFile() as err:
            tool = self.start("publisher", r, "mq-publish", "--raw",
                *r.choice(([], [], ["-d", "%dms" % r.randrange(1, 200)])),
                "a", *lines, err=err)
            status = self.end(tool)
            err.seek(0)
            said = re.search(r"(\d+) messages? accepted", err.read().decode())
        accepted = len(names) if status == 0 else int(said.group(1)) if said else 0
        self.model.alike.told.update(names[:accepted])
        return count

    def publish_files(self, r, _, count):
        name = "F%d" % (count + 1)
        with tempfile.NamedTemporaryFile("w") as file, tempfile.TemporaryFile() as out:
            file.write(name)
            file.flush()
            self.model.tried([name])
            tool = self.start("publisher", r, "mq-publish", "-i", "--attach",
                "f=" + file.name, "f", "%s %s %d" % (
                    name, r.choice(PLANS), r.randrange(6)), out=out)
            self.end(tool)
            out.seek(0)
            self.model.told(out.read().decode().split(), "with a file")
        return count + 1

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

    def options(self, r):
        both = [["-d", "%dms" % r.randrange(1, 200)], ["-p", r.randint(1, 9)],
                ["-p", "3", "-d", "%dms" % r.randrange(1, 90)]]
        return both if not self.rmq else both + [
            ["-p", r.randint(-9, -1)], ["-g", "g%d" % r.randrange(3)],
            ["-g", "g%d" % r.randrange(3), "-d", "%dms" % r.randrange(1, 90)],
            ["-k", "k%d" % r.randrange(9), "--unique",
                r.choice(("queued", "done", "40ms"))],
            ["-k", "c%d" % r.randrange(9), "--unique", "queued", "--coalesce"]]

    def feed(self, r, pipe, lines):
        """A stream: with pauses."""
        try:
            with pipe:
                for line in lines:
                    pipe.write(line.encode() + b"\n")
                    if r.random() < 0.2:
                        pipe.flush()
                        time.sleep(r.random() * 0.03)
        except BrokenPipeError:
            pass

    def hear(self, tool, status, out, err, n):
        ids = re.findall(r"^(\w{32})\n", out, re.M)
        self.model.told(ids, " ".join(tool.args[1:-1])[:60],
                        "--coalesce" in tool.args)
        said = re.search(r"(\d+) messages? accepted(?:, (\d+) joined)?", err)
        if status == 0 and len(ids) != n:
            self.model.say("%d ids of %d messages, exit 0" % (len(ids), n))
        if said and sum(int(n or 0) for n in said.groups()) != len(ids):
            self.model.say("%d ids, but said: %s" % (len(ids), err))

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
                         "list", "purge", "set") + ("unacked",) * self.rmq)
        if what == "return":
            self.run("operator", r, "mq-return", "-n", n, queue)
        elif what == "return to":
            self.run("operator", r, "mq-return", "--to", r.choice("qr"), "-n", n, queue)
        elif what == "pause":
            self.run("operator", r, "mq-pause", "--for", "%dms" % r.randrange(1, 200), queue)
            self.run("operator", r, "mq-pause", "--resume", queue)
        elif what == "set":
            self.run("operator", r, "mq-set", "--create", queue,
                     r.choice(("slots=1", "slots=5", "slots=")),
                     r.choice(("rate=", "rate=500/s", "timeout=", "timeout=1m")))
        elif what == "stats":
            self.run("operator", r, "mq-stats", r.choice(("--json", "--prometheus")))
        elif what == "list":
            self.run("operator", r, "mq-stats", "--list", r.choice(
                ("ready", "delayed", "unacked", "rejected")), "--jsonl", queue)
        elif what == "unacked":
            for c in self.world.call("SMEMBERS", "rmq::connections")[:3]:
                self.run("operator", r, "mq-return", "--from",
                         "unacked:" + c.decode(), queue)
        else:
            self.purge(r, queue)
        return count

    def purge(self, r, queue):
        """One that is chosen: nothing else may vanish."""
        listed = self.run("operator", r, "mq-stats", "--list", "rejected", "--jsonl", queue)
        ids = [m["id"] for m in map(json.loads, listed.splitlines())
               if "id" in m and not m["payload"].startswith(models.ALIKE)]
        if ids:
            id = r.choice(ids)
            self.model.purge(id)
            self.run("operator", r, "mq-purge", "--force", "--rejected", "--id", id, queue)
