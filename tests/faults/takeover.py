# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What the drivers share in which other nodes take over while publishers and consumers
# are at work: those, and the count.  Of the messages that --durable has confirmed, each
# must be done or still be there in the end; of the others it says how many are lost,
# since replication is asynchronous.
import collections
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import world
import places
import resp

LIMIT = 180   # seconds, for what never takes so long


def call(port, *args):
    server = resp.Connection(socket.create_connection(("127.0.0.1", port), 5))
    with contextlib.closing(server):
        return server.call(*args)


def until(true, what):
    """What can fail is tried again."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        try:
            if true():
                return
        except (OSError, places.Refused, ValueError):
            pass
        time.sleep(0.05)
    sys.exit("failover: never came true: " + what)


class Nodes:
    """Servers, each with a folder of its own."""

    def __init__(self, directory):
        self.D, self.nodes = directory, {}

    def run(self, port, *options):
        d = "%s/%d" % (self.D, port)
        os.makedirs(d, exist_ok=True)
        self.nodes[port] = subprocess.Popen(["redis-server", "--bind", "127.0.0.1",
            "--dir", d, "--save", "", "--logfile", d + "/log", *options])

    def cluster(self, *options):
        """Of all, when they answer; its URL."""
        until(lambda: all(call(p, "PING") for p in self.nodes), "nodes")
        at = ["127.0.0.1:%d" % p for p in self.nodes]
        subprocess.run(["redis-cli", "--cluster", "create", *at, *options, "--cluster-yes"],
                       check=True, stdout=subprocess.DEVNULL)
        return "redis-cluster://" + ",".join(at)

    def kill(self, port):
        self.nodes[port].kill()
        self.nodes[port].wait()

    def close(self):
        for port in self.nodes:
            self.kill(port)


def free_ports(n):
    """In a row; those 10000 above are free, too."""
    said = subprocess.check_output([os.path.dirname(places.__file__) + "/ports.sh", str(n)])
    return [int(port) for port in said.split()]


class Cast:
    """Publishers, each of one message at a time, and consumers."""

    def __init__(self, family, layout, build):
        self.build, self.over, self.threads = build, threading.Event(), []
        url = family.url + "?layout=" + layout
        if layout == "rsmq" and "cluster" in url:
            url += "&ns={rsmq}"
        self.env = dict(os.environ, MQ_URL=url, LOG=family.D + "/done")
        self.err = open(family.D + "/stderr", "ab")
        open(self.env["LOG"], "w").close()
        self.told = {"safe": set(), "plain": set()}
        self.tried = collections.Counter()
        # What comes to p is pushed to q.
        self.consumers = [
            self.consume("-j", "2", "--push", "q", "p", "--", "sh", "-c",
                "cat >/dev/null; echo push >&3"),
            self.consume("-j", "3", "q", "--", "sh", "-c", 'echo "$(cat)" >>"$LOG"'),
            self.consume("--stream", "-l", "q", "--", "sh", "-c",
                'while read -r n; do echo "$n" >>"$LOG"; echo done >&3; done')]
        for kind, options in (("safe", ["--durable"]), ("plain", [])):
            for i in range(2):
                t = threading.Thread(target=self.publish, args=(kind, i, options))
                self.threads.append(t)
                t.start()

    def consume(self, *args):
        return subprocess.Popen([self.build + "/mq-consume", "-q", *args],
                                env=self.env, stderr=self.err)

    def publish(self, kind, i, options):
        while not self.over.is_set():
            self.tried[kind] += 1
            name = "%s-%d-%d" % (kind, i, self.tried[kind])
            if subprocess.call([self.build + "/mq-publish", *options,
                                "p" if i else "q", name],
                               env=self.env, stderr=self.err) == 0:
                self.told[kind].add(name)
            time.sleep(0.005)

    def done(self):
        with open(self.env["LOG"]) as f:
            return collections.Counter(f.read().split())

    def drain(self):
        self.over.set()
        for t in self.threads:
            t.join()
        for p in self.consumers:
            if p.poll() is not None:
                sys.exit("failover: a consumer has ended with %d" % p.returncode)
        until(lambda: self.idle(), "all done")
        for p in self.consumers:
            p.send_signal(signal.SIGTERM)
            p.wait()

    def idle(self):
        said = subprocess.run([self.build + "/mq-stats", "--check",
            "ready=0,delayed=0,unacked=0", "p", "q"], env=self.env,
            stdout=subprocess.DEVNULL, stderr=self.err)
        return said.returncode == 0

    def rejected(self):
        said = [subprocess.run([self.build + "/mq-stats", "--list", "rejected", "-l", q],
            env=self.env, stdout=subprocess.PIPE, stderr=self.err, text=True).stdout
            for q in ("p", "q")]
        return set(" ".join(said).split())

    def close(self):
        self.over.set()
        for p in self.consumers:
            p.kill()
            p.wait()
        for t in self.threads:
            t.join()


def run(Family, seed, n, layout, build, directory):
    r = random.Random("failover %d" % seed)
    family, cast, times = Family(directory, r, layout), None, collections.Counter()
    try:
        cast = Cast(family, layout, build)
        for _ in range(n):
            time.sleep(r.uniform(0, 1))
            times[family.change()] += 1
        cast.drain()
        done, there = cast.done(), cast.rejected()
    finally:
        if cast:
            cast.close()
        family.close()
    lost = {k: sorted(v - there - done.keys()) for k, v in cast.told.items()}
    print(", ".join("%d %s" % (n, what) for what, n in sorted(times.items())))
    for kind in cast.told:
        again = sum(c - 1 for name, c in done.items() if name.startswith(kind))
        print("%-6s attempted %6d  accepted %6d  lost %4d  run again %4d" % (
            kind, cast.tried[kind], len(cast.told[kind]), len(lost[kind]), again))
    return lost["safe"]


def main(Family):
    build, seed, n, layout = world.begin(random.randrange(1 << 30), 20, "rmq")
    print("seed %d, %d times, %s" % (seed, n, layout), flush=True)
    directory = tempfile.mkdtemp(prefix="mq.")
    try:
        lost = run(Family, seed, n, layout, build, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if lost:
        print("WRONG: confirmed by WAIT, and lost: %s" % " ".join(lost[:20]))
        sys.exit(1)
    print("nothing lost that was confirmed")
