#!/usr/bin/env python3
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
"""cut.py THERE HERE [SEED CUTS]: a network in front of a server, on unix sockets; see
faults/proxy.py.  On USR1, the connections end for the client, and not for the server.
With a seed, now and then a step reaches the server, and its answer reaches nobody; each
time, the file CUTS gets a line."""
import os
import random
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../faults")

import proxy    # noqa: E402


class Network(proxy.Proxy):
    until_cut = 5

    def next_cut(self, data):
        if len(sys.argv) < 5 or (b"EVAL" not in data and b"LREM" not in data):
            return None
        with self.lock:
            self.until_cut -= 1
            if self.until_cut > 0:
                return None
            self.until_cut = random.randint(1, 20)
        with open(sys.argv[4], "a") as f:
            f.write("cut\n")
        return "reply"


random.seed(int((sys.argv + ["0"])[3]))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
network = Network(sys.argv[2], sys.argv[1])
while signal.sigwait([signal.SIGUSR1]):
    network.vanish("client")
