# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# failover.py SEED FAILOVERS LAYOUT: a master with two replicas and three sentinels;
# again and again another server becomes the master, by SENTINEL FAILOVER or as the
# master is killed, and then sometimes away for a minute; see takeover.py.  Prints what it
# counts, and exits 1 if a message is lost that must not be.
#
# What is '' is a random SEED, 20 failovers, and the layout of rmq.  BUILD has the tools.
import collections
import os
import subprocess
import time

import takeover
from takeover import call, free_ports, places, until

SENTINEL = """port %d
bind 127.0.0.1
dir %s
logfile %s/log
sentinel monitor m 127.0.0.1 %d 2
sentinel down-after-milliseconds m 700
sentinel failover-timeout m 4000
sentinel parallel-syncs m 2
"""


class Family(takeover.Nodes):
    def __init__(self, directory, r, _layout):
        super().__init__(directory)
        self.r, ports = r, free_ports(6)
        self.watchers = ports[3:]
        for port in ports[:3]:
            self.start(port, None if port == ports[0] else ports[0])
        until(lambda: self.in_step(ports[0]), "replicas in step")
        for port in self.watchers:
            d = "%s/%d" % (self.D, port)
            os.mkdir(d)
            with open(d + "/conf", "w") as f:
                f.write(SENTINEL % (port, d, d, ports[0]))
            self.nodes[port] = subprocess.Popen(["redis-server", d + "/conf", "--sentinel"])
            until(lambda: call(port, "PING"), "a sentinel")
            try:
                call(port, "SENTINEL", "DEBUG", "info-period", "500", "publish-period", "200")
            except places.Refused:
                pass    # Redis 6.2
        self.url = "redis-sentinel://%s/m" % ",".join(
            "127.0.0.1:%d" % p for p in self.watchers)
        until(self.whole, "all see each other")

    def start(self, port, of):
        self.run(port, "--port", str(port), "--repl-diskless-sync-delay", "0",
                 *(["--replicaof", "127.0.0.1", str(of)] if of else []))

    def masters(self):
        return [int(call(p, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "m")[1])
                for p in self.watchers]

    def master(self):
        return collections.Counter(self.masters()).most_common(1)[0][0]

    def in_step(self, port):
        return call(port, "INFO", "replication").count(b"state=online") == 2

    def whole(self):
        masters = self.masters()
        if len(set(masters)) > 1 or call(masters[0], "ROLE")[0] != b"master":
            return False
        for p in self.watchers:
            replicas = call(p, "SENTINEL", "REPLICAS", "m")
            flags = [dict(places.pairs(r))[b"flags"] for r in replicas]
            if flags != [b"slave", b"slave"]:
                return False
        return self.in_step(masters[0])

    def gone(self, before, asked):
        """A failover that is asked for may be given up, and is not begun again by itself."""
        if asked and self.masters()[0] == before:
            try:
                call(self.watchers[0], "SENTINEL", "FAILOVER", "m")
            except places.Refused:
                pass    # under way, or no replica is good enough yet
        return before not in self.masters()

    def change(self):
        before, kill = self.master(), self.r.random() < 0.5
        if kill:
            self.kill(before)
        until(lambda: self.gone(before, asked=not kill), "another master")
        away = kill and self.r.random() < 0.2
        if away:
            time.sleep(60)
        if kill:
            self.start(before, self.master())
        until(self.whole, "replicas in step")
        return "away" if away else "masters killed" if kill else "gentle failovers"


if __name__ == "__main__":
    takeover.main(Family)
