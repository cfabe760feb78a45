#!/usr/bin/env python3
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The same work on one server and on a cluster of three masters, in turn: one queue, as
# the rate of the cluster in parts of that of the one server; then six queues at once on
# each, with what the nodes pay for a message.  No row may have sent a command to a node
# that does not have the queue.
#
#   MQ_BUILD=build    the tools that are measured
#   ROUNDS=5          how often each
import os
import statistics
import sys

from fleetlib import DIR, HERE, ROUNDS, ended, lines, start, tool

sys.path.insert(0, HERE + "/../faults")

import takeover             # noqa: E402
from takeover import call, free_ports, until    # noqa: E402

MANY, FEW = 1000000, 4000
ECHO = "while IFS= read -r line; do echo done; done >&3"


class Servers(takeover.Nodes):
    def __init__(self, cluster):
        super().__init__("%s/%d" % (DIR, cluster))
        for port in free_ports(3 if cluster else 1):
            self.run(port, "--port", str(port), "--cluster-enabled", "yes" if cluster else "no")
        if cluster:
            url = self.cluster()
            until(lambda: all(b"cluster_state:ok" in call(p, "CLUSTER", "INFO")
                              for p in self.nodes), "a cluster")
        else:
            until(lambda: call(port, "PING"), "a server")
            url = "redis://127.0.0.1:%d" % port
        self.environment = dict(os.environ, MQ_URL=url)

    def facts(self, section, *names):
        sums = []
        for port in self.nodes:
            info = call(port, "INFO", section).decode().split("\r\n")
            facts = dict(line.split(":", 1) for line in info if ":" in line)
            sums.append([facts.get(n, "") for n in names])
        return sums

    def cpu(self):
        return [float(u) + float(s)
                for u, s in self.facts("cpu", "used_cpu_user", "used_cpu_sys")]

    def moved(self):
        return sum(int(e.split("=")[1].split(",")[0])
                   for e, in self.facts("errorstats", "errorstat_MOVED") if e)


def one_queue(s):
    def publish(n):
        return tool(s, "mq-publish", "-l", "q", stdin=lines(n)).wall

    def drain(*args):
        return tool(s, "mq-consume", "--drain", *args).wall

    times = {"publish": publish(MANY), "print": drain("-l", "q")}
    publish(MANY // 4)
    times["stream"] = drain("-l", "--stream", "q", "--", "sh", "-c", ECHO)
    publish(FEW)
    times["fork -j2"] = drain("-j2", "q", "--", "/bin/true")
    return times


def six_queues(s):
    queues, before = ["q%d" % i for i in range(6)], s.cpu()
    given = DIR + "/given"
    with open(given, "wb") as f:
        f.write(lines(MANY // 3))
    for command in (["mq-publish", "-l"], ["mq-consume", "--drain", "-l"]):
        running = [start(s, *command, q, stdin=open(given)) for q in queues]
        for p in running:
            ended(p, 0)
    return [(b - a) * 1e6 / (MANY * 2) for a, b in zip(before, s.cpu())]


def main():
    servers, rounds = [], []
    try:
        for cluster in False, True:
            servers.append(Servers(cluster))
        one, cluster = servers
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
        for s in servers:
            s.close()


if __name__ == "__main__":
    takeover.LIMIT = 30
    main()
