# delivery.py SCENARIO FIRST-SEED RUNS: publishers, consumers and operators at
# work, while consumers and the server are killed at random moments.  All the
# time, and at the end, the laws of places.py must hold.  Each run prints one
# line; the first one that is bad ends it, with what was wrong, and status 1.
#
# $BUILD has the tools; $D is a directory for the server.
import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time

import places
import scenarios

D, BUILD = os.environ["D"], os.environ["BUILD"]
SOCK, LOG = D + "/redis.sock", D + "/log"
QUEUES = ("q", "p1", "p2")
env = dict(os.environ, MQ_URL="unix://" + SOCK)

# A worker: says when it begins and how it ends, and when another one of its
# group is at work at the same time.
WORK = r"""#!/usr/bin/perl
use Fcntl ':flock';
open my $log, '>>', $ENV{LOG} or die;
sub note { syswrite $log, "@_\n" }
my ($name, $group, $act, $ms) = split ' ', <STDIN>;
my $lock;
if ($group ne '-') {
	open $lock, '>', "$ENV{D}/group.$group" or die;
	note("overlap", $ENV{MQ_ID}, $group, $name) unless flock $lock, LOCK_EX | LOCK_NB;
}
note("start", $ENV{MQ_ID}, $group, $name);
select undef, undef, undef, $ms / 1000;
exit 75 if $act =~ /^retry(\d)/ && $ENV{MQ_ATTEMPT} <= $1;
if ($act eq 'push') { syswrite STDOUT, ''; open my $v, '>&=', 3; syswrite $v, "push\n"; exit 0 }
if ($act eq 'fail') { note("fail", $ENV{MQ_ID}, $group, $name); exit 1 }
note("done", $ENV{MQ_ID}, $group, $name);
"""


class Run:
    def __init__(self, scenario, seed):
        self.s, self.r = scenario, random.Random(seed)
        self.seed, self.wrong = seed, []
        self.accepted, self.gone, self.views = [], set(), 0
        self.full = self.duplicates = self.kills = 0
        self.consumers, self.dead, self.tags = [], set(), 0
        self.over = threading.Event()
        self.accepting = threading.Lock()
        self.redis = None

    # --- the server ---

    def start_server(self):
        self.redis = subprocess.Popen(["redis-server", "--port", "0",
            "--unixsocket", SOCK, "--dir", D, "--save", "", "--appendonly",
            "yes", "--appendfsync", "always", "--logfile", D + "/redis.log"])
        self.call("PING")

    def call(self, *args):
        return places.call(SOCK, *args)

    def kill_server(self):
        self.redis.kill()
        self.redis.wait()
        self.start_server()

    # --- consumers ---

    def start_consumer(self):
        self.tags += 1
        tag = "c%d" % self.tags
        args = [BUILD + "/mq-consume", "-q", "--tag", tag, "--attempts", "8",
                "--backoff", "1ms..20ms", "-j", str(self.r.randint(1, 2)),
                "--prefetch", str(self.r.randint(0, 3)), *self.s.consume]
        self.consumers.append((tag, subprocess.Popen(
            args + [self.s.queue, "--", D + "/work"], env=env,
            stdin=subprocess.DEVNULL, stderr=open(D + "/consume.err", "a"))))

    def kill_consumer(self):
        tag, p = self.consumers.pop(self.r.randrange(len(self.consumers)))
        p.kill()
        p.wait()
        self.bury(tag)
        self.start_consumer()

    def tend(self):
        """Some have ended: those that never reached the server."""
        for tag, p in list(self.consumers):
            if p.poll() is not None:
                if p.returncode not in (69, 75):
                    self.wrong.append("%s ended: %d" % (tag, p.returncode))
                self.consumers.remove((tag, p))
                self.bury(tag)
                self.start_consumer()
        if any(c.rsplit(b"-", 1)[0].decode() in self.dead
               for c in self.call("SMEMBERS", "rmq::connections")):
            self.bury("")

    def bury(self, tag):
        """As 60 seconds later; what it sent last may still be on its way."""
        self.dead.add(tag)
        for key in self.call("KEYS", "rmq::connection::*::heartbeat"):
            c = key.split(b"::")[2]
            if c.rsplit(b"-", 1)[0].decode() in self.dead:
                self.call("DEL", key)
                if self.r.random() < 0.3:
                    self.go_clean(c)
        while self.tool("mq-clean", "-q").returncode in (69, 75):
            pass

    def go_clean(self, c):
        """As a Go program does it, one command after the other."""
        both = b"rmq::connection::%s::queue::[%s]::" % (c, self.s.queue.encode())
        while self.call("RPOPLPUSH", both + b"unacked",
                        "rmq::queue::[%s]::ready" % self.s.queue) is not None:
            pass
        self.call("DEL", both + b"unacked")
        self.call("DEL", both + b"consumers")
        self.call("SREM", b"rmq::connection::%s::queues" % c, self.s.queue)
        self.call("SREM", "rmq::connections", c)
        self.call("DEL", b"rmq::connection::%s::queues" % c)

    # --- those who publish and operate ---

    def tool(self, name, *args):
        return subprocess.run([BUILD + "/" + name, *args], env=env,
            stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=180)

    def publish(self, n):
        r, number = random.Random(self.seed * 100 + n), 0
        for _ in range(self.s.invocations):
            group = "%s%d" % (chr(65 + n), r.randrange(2)) if self.s.group else "-"
            options = self.s.options(r) + (["-g", group] if self.s.group else [])
            payloads = []
            for _ in range(r.randint(1, self.s.batch)):
                number += 1
                payloads.append("%s%d %s %s %d" % (chr(65 + n), number, group,
                    r.choice(self.s.acts), r.randrange(12)))
            with self.accepting if self.s.operate else contextlib.nullcontext():
                p = self.tool(
                    "mq-publish", "-i", *options, self.s.queue, *payloads)
                self.accepted += p.stdout.split()
            if p.returncode not in (0, 1, 69, 75):
                self.wrong.append("mq-publish: %d: %s" % (p.returncode, p.stderr))
            self.full += p.returncode == 75
            self.duplicates += p.returncode == 1
            time.sleep(r.random() * 0.05)

    def kill(self):
        for _ in range(3 if self.s.kills else 0):
            time.sleep(self.r.random() * 0.2)
            getattr(self, "kill_" + self.r.choice(self.s.kills))()
            self.kills += 1

    def operate(self):
        r = random.Random(self.seed + 1)
        while self.s.operate and not self.over.is_set():
            r.choice(self.s.operate)(self, r)
            time.sleep(r.random() * 0.03)

    def advance(self):
        r = random.Random(self.seed + 2)
        for tick in range(1, self.s.ticks + 1):
            time.sleep(r.random() * 1.2 / self.s.ticks)
            while self.tool("mq-publish", "--tick", str(tick),
                            self.s.queue).returncode in (69, 75):
                pass

    def purge(self, *args):
        """Of what has been accepted until now, anything may vanish."""
        with self.accepting:
            self.gone.update(self.accepted)
            self.tool("mq-purge", "--force", *args, self.s.queue)

    # --- looking ---

    def ended(self):
        with open(LOG) as f:
            return {line.split()[1] for line in f if line.startswith("done")}

    def look(self):
        accepted = list(self.accepted)
        gone = self.gone
        view = places.View(self.call("EVAL", places.LOOK, 0))
        self.views += 1
        ordered = self.s.group and self.s.ordered
        self.wrong += view.laws(accepted, self.ended() | gone, ordered)
        if self.s.caps:
            claimable = view.count(self.s.queue, "ready", "priority", "line")
            delayed = view.count(self.s.queue, "time", "tick")
            # What is due has made room for others, and goes where it likes.
            if delayed > self.s.caps[1] or claimable > sum(self.s.caps):
                self.wrong.append("%d claimable, %d delayed" % (
                    claimable, delayed))
        return view

    def watch(self):
        while not self.over.is_set() and not self.wrong:
            self.look()
            time.sleep(0.004)

    # --- all of it ---

    def all_joined(self):
        """So that each can leave: those who have lost the server come back."""
        end = time.monotonic() + 180
        while True:
            self.tend()
            joined = {c.rsplit(b"-", 1)[0].decode()
                      for c in self.call("SMEMBERS", "rmq::connections")
                      if self.call("EXISTS", b"rmq::connection::%s::queues" % c)}
            clients = self.call("CLIENT", "LIST").count(b"\n") - 1
            if (joined >= {tag for tag, _ in self.consumers}
                    and clients >= 2 * len(self.consumers)):
                return
            if time.monotonic() > end:
                self.wrong.append("a consumer has not come back")
                return
            time.sleep(0.02)

    def threads(self, *functions):
        def guard(f, *args):
            try:
                f(*args)
            except Exception as e:
                self.wrong.append("%s: %r" % (getattr(f, "__name__", f), e))
        made = [threading.Thread(target=guard, args=f) for f in functions]
        for t in made:
            t.start()
        return made

    def until_settled(self):
        end = time.monotonic() + 180
        while not self.wrong:
            self.tend()
            view = self.look()
            if not any(m.place != "rejected" and m.queue == self.s.queue
                       for m in view.messages):
                return
            if time.monotonic() > end:
                self.wrong += ["stuck: %s" % m for m in view.messages
                               if m.place != "rejected"]
            time.sleep(0.01)

    def run(self):
        open(LOG, "w").close()
        self.call("FLUSHALL")
        for _ in range(self.s.consumers):
            self.start_consumer()
        watchers = self.threads((self.watch,))
        workers = self.threads(*[(self.publish, n)
                                 for n in range(self.s.publishers)],
            (self.advance,), (self.kill,))
        operators = self.threads((self.operate,))
        for t in workers:
            t.join()
        self.over.set()
        for t in watchers + operators:
            t.join()
        self.until_settled()
        self.all_joined()
        for _, p in self.consumers:
            p.send_signal(signal.SIGTERM)
        for _, p in self.consumers:
            p.wait()
        if self.s.pushed:
            self.tool("mq-consume", "--drain", "--backoff", "1ms..5ms",
                      self.s.pushed, "--", D + "/work")
        if not self.wrong:
            self.at_end()
        return not self.wrong

    def at_end(self):
        view = self.look()
        for queue, locks in view.locks.items():
            self.wrong += ["%s is left of %s: %s" % (k, queue, v)
                for k, v in locks.items()
                if k[0] == "g" or k[0] == "k" and not v.split(" ")[1].isdigit()]
        known = {"rmq::queue::[%s]::%s" % (q, what) for q in QUEUES
                 for what in ("rejected", "counters", "clock", "locks",
                     "checked")}
        # Killed between the first two steps of joining, or while it waited for
        # messages or cleaned, or with the server that was told that it had ended:
        # these go by themselves.
        self.wrong += [k + " is left" for k in self.look().keys
                       if k not in known | {"rmq::queues", "rmq::cleaning"}
                       and not k.endswith(("::heartbeat", "]::watch", "]::idle"))
                       and "::publisher::" not in k]
        self.runs()

    def runs(self):
        last = {}
        for line in open(LOG):
            what, id, group, name = line.split()
            if what == "overlap":
                self.wrong.append(line)
            if what != "start" or group == "-" or not self.s.ordered:
                continue
            n = int(name[1:])
            if n < last.get(group, 0):
                self.wrong.append("%s ran after %d" % (name, last[group]))
            last[group] = n


def main():
    scenario = scenarios.ALL[sys.argv[1]]
    with open(D + "/work", "w") as f:
        f.write(WORK)
    os.chmod(D + "/work", 0o755)
    env.update(LOG=LOG, D=D)
    first, redis = int(sys.argv[2]), None
    for seed in range(first, first + int(sys.argv[3])):
        run = Run(scenario, seed)
        run.redis = redis
        if redis is None:
            run.start_server()
        begin = time.monotonic()
        good = run.run()
        redis = run.redis
        print("seed %d: %d accepted, %d done, %d kills, %d looks, %d duplicate,"
              " %d full, %.1f s" % (seed, len(run.accepted), len(run.ended()),
              run.kills, run.views, run.duplicates, run.full,
              time.monotonic() - begin))
        if not good:
            print("\n".join(run.wrong[:20]))
            break
    redis.kill()
    sys.exit(not good)


if __name__ == "__main__":
    main()
