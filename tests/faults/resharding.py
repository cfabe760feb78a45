# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# resharding.py SEED TIMES LAYOUT: a cluster of three masters with a replica each; again
# and again a replica takes over, gently or not, a master is killed, stands still, is away
# for a minute with its replica, or is cut off from the others, with or without its clients,
# or a slot that is in use moves, key by key or, where the servers have a command for that,
# at once; see takeover.py.  Prints what it counts, and exits 1 if a
# message is lost that must not be.
#
# What is '' is a random SEED, 20 times, and the layout of rmq.  BUILD has the tools.
import signal
import time

import partition
import takeover
from takeover import call, free_ports, places, until

TAGS = {"rmq": ("p", "q"), "rsmq": ("rsmq",)}      # of the keys


class Family(takeover.Nodes):
    def __init__(self, directory, r, layout):
        super().__init__(directory)
        self.r, self.tags, free = r, TAGS[layout], free_ports(12)
        # Known by the ports at which the network has them.
        self.ports, self.own = free[:6], dict(zip(free[:6], free[6:]))
        self.network = partition.Partition()
        for port in self.ports:
            self.network.listen(port, self.own[port], bus=False)
            self.network.listen(port + 10000, self.own[port] + 10000, bus=True)
            self.start(port)
        self.url = self.cluster("--cluster-replicas", "1")
        until(self.whole, "a cluster")

    def start(self, port):
        self.run(port, "--port", str(self.own[port]), "--cluster-announce-port", str(port),
            "--cluster-announce-bus-port", str(port + 10000),
            "--cluster-announce-ip", "127.0.0.1",
            "--cluster-enabled", "yes", "--cluster-node-timeout", "1500",
            "--cluster-require-full-coverage", "no", "--repl-diskless-sync-delay", "0")

    def asked(self, *args):
        """The answer of the first that gives one."""
        for port in self.ports:
            try:
                return call(port, *args)
            except (OSError, places.Refused):
                pass
        raise OSError("no node answers")

    def table(self, port):
        """Of each node, as this one sees it: its port, flags, master, slots."""
        lines = call(port, "CLUSTER", "NODES").decode().splitlines()
        for id, where, flags, of, _, _, link, *slots in map(str.split, lines):
            yield id, int(where.split("@")[0].split(":")[1]), flags.split(","), of, slots

    def whole(self):
        for port in self.ports:
            if b"cluster_state:ok" not in call(port, "CLUSTER", "INFO"):
                return False
            nodes = list(self.table(port))
            flags = [f for n in nodes for f in n[2]]
            if len(nodes) != 6 or flags.count("slave") != 3 or "fail" in flags or "fail?" in flags:
                return False
            said = call(port, "INFO", "replication")
            if b"role:slave" in said and b"master_link_status:up" not in said:
                return False
            if b"role:master" in said and b"state=online" not in said:
                return False
        return True

    def slot(self):
        tag = "{%s}" % self.r.choice(self.tags)
        return int(call(self.ports[0], "CLUSTER", "KEYSLOT", tag))

    def owner(self, slot):
        for entry in self.asked("CLUSTER", "SLOTS"):
            if entry[0] <= slot <= entry[1]:
                return int(entry[2][1])
        raise OSError("nobody has the slot")

    def knows_owners(self):
        all = [[(e[0], e[1], e[2][1]) for e in call(p, "CLUSTER", "SLOTS")]
               for p in self.ports]
        return all.count(all[0]) == len(all)

    def replica(self, master):
        nodes = list(self.table(master))
        id = next(n[0] for n in nodes if n[1] == master)
        return next(n[1] for n in nodes if n[3] == id)

    def takes_over(self, how):
        before = self.owner(self.slot())
        heir = self.replica(before)

        def begun():    # it is given up after 5 s
            if b"role:master" in call(heir, "INFO", "replication"):
                return True
            call(heir, "CLUSTER", "FAILOVER", *how)
            time.sleep(0.2)
            return False
        until(begun, "a failover")

    def killed(self):
        before = self.owner(self.slot())
        heir = self.replica(before)
        self.kill(before)
        until(lambda: b"role:master" in call(heir, "INFO", "replication"), "a failover")
        self.start(before)

    def stopped(self):
        before = self.owner(self.slot())
        self.nodes[before].send_signal(signal.SIGSTOP)
        time.sleep(self.r.uniform(0.5, 5))
        self.nodes[before].send_signal(signal.SIGCONT)

    def away(self):
        before = self.owner(self.slot())
        both = [self.nodes[p] for p in (self.replica(before), before)]
        for node in both:
            node.send_signal(signal.SIGSTOP)
        time.sleep(60)
        for node in both:
            node.send_signal(signal.SIGCONT)

    def cut_off(self):
        before = self.owner(self.slot())
        heir = self.replica(before)
        id = next(n[0] for n in self.table(before) if n[1] == before)
        end = time.monotonic() + (30 if self.r.random() < 0.1 else 5)
        self.network.cut(before, id, clients=self.r.random() < 0.5)
        until(lambda: b"role:master" in call(heir, "INFO", "replication"), "a failover")
        time.sleep(max(0, end - time.monotonic()))
        self.network.join()

    def moved(self):
        slot = self.slot()
        masters = sorted({int(e[2][1]) for e in self.asked("CLUSTER", "SLOTS")})
        source = self.owner(slot)
        to = self.r.choice([m for m in masters if m != source])
        ids = {n[1]: n[0] for n in self.table(source)}
        if self.r.random() < 0.5 and self.moved_at_once(slot, source, to, ids[to]):
            return
        call(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source])
        call(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[to])
        while True:
            time.sleep(self.r.uniform(0, 0.05))
            keys = call(source, "CLUSTER", "GETKEYSINSLOT", slot, 3)
            if not keys:
                break
            call(source, "MIGRATE", "127.0.0.1", to, "", 0, 5000, "REPLACE", "KEYS", *keys)
        for port in (to, source, *masters):
            call(port, "CLUSTER", "SETSLOT", slot, "NODE", ids[to])

    def moved_at_once(self, slot, source, to, id):
        has = b" ".join(call(source, "CLUSTER", "HELP"))
        if b"MIGRATESLOTS" in has:      # of Valkey 9
            call(source, "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", id)
        elif b"MIGRATION " in has:      # of Redis 8.4
            call(to, "CLUSTER", "MIGRATION", "IMPORT", slot, slot)
        else:
            return False
        until(lambda: self.owner(slot) == to, "a slot that moves at once")
        return True

    def change(self):
        kind = self.r.choice(("gentle", "forced", "taken over", "killed", "stopped",
            "cut off", "cut off", "slots moved", "slots moved"))
        if self.r.random() < 0.1:
            kind = "away"
            self.away()
        elif kind == "killed":
            self.killed()
        elif kind == "stopped":
            self.stopped()
        elif kind == "cut off":
            self.cut_off()
        elif kind == "slots moved":
            for _ in range(3):
                until(self.knows_owners, "all know all owners")
                self.moved()
        else:
            self.takes_over({"gentle": [], "forced": ["FORCE"],
                "taken over": ["TAKEOVER"]}[kind])
        until(self.whole, "a whole cluster")
        return kind


if __name__ == "__main__":
    takeover.main(Family)
