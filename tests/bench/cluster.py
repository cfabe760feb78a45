#!/usr/bin/env python3
# The same work on one server and on a cluster of three masters, in turn: one queue, as
# the rate of the cluster in parts of that of the one server; then six queues at once on
# each, with what the nodes pay for a message.  No row may have sent a command to a node
# that does not have the queue.
#
#   MQ_BUILD=build    the tools that are measured
#   ROUNDS=5          how often each
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "faults"))

import takeover             # noqa: E402
from takeover import call, free_ports, until    # noqa: E402

BUILD = os.path.abspath(os.environ.get("MQ_BUILD") or "build")
ROUNDS = int(os.environ.get("ROUNDS") or 5)
MANY, FEW = 1000000, 4000
ECHO = "while IFS= read -r line; do echo done; done >&3"


class Servers(takeover.Nodes):
    def __init__(self, directory, cluster):
        super().__init__(directory)
        for port in free_ports(3 if cluster else 1):
            self.run(port, "--port", str(port), "--cluster-enabled", "yes" if cluster else "no")
        if cluster:
            self.url = self.cluster()
            until(lambda: all(b"cluster_state:ok" in call(p, "CLUSTER", "INFO")
                              for p in self.nodes), "a cluster")
        else:
            until(lambda: call(port, "PING"), "a server")
            self.url = "redis://127.0.0.1:%d" % port

    def tool(self, tool, *args, given=None, wait=True):
        p = subprocess.Popen([BUILD + "/" + tool, *args], text=True,
            env=dict(os.environ, MQ_URL=self.url), stdout=subprocess.DEVNULL,
            stdin=subprocess.PIPE if given else subprocess.DEVNULL)
        if given:
            p.stdin.write(given)
            p.stdin.close()
        if wait and p.wait() != 0:
            raise RuntimeError("%s ends with %d" % (tool, p.returncode))
        return p

    def facts(self, section, *names):
        sums = []
        for port in self.nodes:
            lines = call(port, "INFO", section).decode().split("\r\n")
            facts = dict(line.split(":", 1) for line in lines if ":" in line)
            sums.append([facts.get(n, "") for n in names])
        return sums

    def cpu(self):
        return [float(u) + float(s)
                for u, s in self.facts("cpu", "used_cpu_user", "used_cpu_sys")]

    def moved(self):
        return sum(int(e.split("=")[1].split(",")[0])
                   for e, in self.facts("errorstats", "errorstat_MOVED") if e)


def lines(n):
    return "".join("message number %d\n" % i for i in range(n))


def timed(f):
    began = time.monotonic()
    f()
    return time.monotonic() - began


def one_queue(s):
    times = {"publish": timed(lambda: s.tool("mq-publish", "-l", "q", given=lines(MANY))),
             "print": timed(lambda: s.tool("mq-consume", "--drain", "-l", "q"))}
    s.tool("mq-publish", "-l", "q", given=lines(MANY // 4))
    times["stream"] = timed(lambda: s.tool(
        "mq-consume", "--drain", "-l", "--stream", "q", "--", "sh", "-c", ECHO))
    s.tool("mq-publish", "-l", "q", given=lines(FEW))
    times["fork -j2"] = timed(lambda: s.tool(
        "mq-consume", "--drain", "-j2", "q", "--", "/bin/true"))
    return times


def six_queues(s):
    queues, before = ["q%d" % i for i in range(6)], s.cpu()
    for tool, *args in (["mq-publish", "-l"], ["mq-consume", "--drain", "-l"]):
        given = lines(MANY // 3) if tool == "mq-publish" else None
        running = [s.tool(tool, *args, q, given=given, wait=False) for q in queues]
        for p in running:
            p.wait()
    return [(b - a) * 1e6 / (MANY * 2) for a, b in zip(before, s.cpu())]


def main():
    directory = tempfile.mkdtemp(prefix="mq.")
    one, cluster, rounds = None, None, []
    try:
        one, cluster = Servers(directory, False), Servers(directory, True)
        for i in range(ROUNDS):
            pair = {}
            for s in (one, cluster) if i % 2 else (cluster, one):
                pair[s] = one_queue(s)
            rounds.append({k: pair[one][k] / pair[cluster][k] for k in pair[one]})
        for kind in rounds[0]:
            all = sorted(r[kind] for r in rounds)
            print("one queue, %-9s cluster / one server %5.2f  (%.2f .. %.2f), wanted 0.95" % (
                kind, statistics.median(all), all[0], all[-1]), flush=True)
        print("six queues, server us a message: one server %.2f, nodes %s" % (
            sum(six_queues(one)), " + ".join("%.2f" % n for n in six_queues(cluster))))
        print("commands to a node that has not the queue: %d" % cluster.moved())
    finally:
        for s in (one, cluster):
            if s:
                s.close()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    takeover.LIMIT = 30
    main()
