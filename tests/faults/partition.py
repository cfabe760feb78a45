# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What stands between the nodes of a cluster and all that connects to them, so that one
# node can be cut off: what comes from it or goes to it then waits, as on a network that
# loses packets for a while, and new connections get no answer.
#
#   Partition()
#   listen(at, to, bus)      what connects to port at is with the node at port to
#   cut(at, id, clients)     the node of that port and id; whether from its clients, too
#   join()                   and no more
import threading

import proxy

SENDER = slice(40, 80)    # of a message on the bus: the id of the node that sends it


class Port(proxy.Proxy):
    def __init__(self, network, at, to, bus):
        self.network, self.at, self.bus = network, at, bus
        super().__init__(at, to)

    def made(self, link):
        link.sender, link.replica = b"", False

    def forward(self, link, up, data, dst):
        """Its first bytes tell who has connected."""
        if up:
            if self.bus and not link.sender:
                link.sender = data[SENDER]
            link.replica = link.replica or b"REPLCONF" in data[:200]
        if self.is_cut(link):
            self.network.joined.wait()
        dst.sendall(data)
        return True

    def is_cut(self, link):
        at, id, clients = self.network.off
        if self.bus:
            return self.at == at + 10000 or link.sender == id
        return self.at == at and (link.replica or clients)


NOBODY = (-1, None, False)


class Partition:
    def __init__(self):
        self.off, self.joined = NOBODY, threading.Event()

    def listen(self, at, to, bus):
        Port(self, at, to, bus)

    def cut(self, at, id, clients):
        self.joined.clear()
        self.off = (at, id.encode(), clients)

    def join(self):
        self.off = NOBODY
        self.joined.set()
