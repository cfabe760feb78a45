#!/usr/bin/env python3
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
"""link.py PORT [SECONDS [N]]: passes on what comes to a free port of this host,
which it prints, to that one, or the socket of that name, and back, all of it
that much later, but for the first N pieces each way.  What it has when it is killed is lost, as on a network."""
import collections
import os
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../faults")

import proxy    # noqa: E402

there, seconds, at_once = sys.argv[1], *map(float, (sys.argv[2:] + ["0", "0"])[:2])
pieces = collections.Counter()


class Far(proxy.Proxy):
    def forward(self, link, up, data, dst):
        pieces[link, up] += 1
        time.sleep(seconds if pieces[link, up] > at_once else 0)
        dst.sendall(data)
        return True


print(Far(0, there if "/" in there else int(there)).listener.getsockname()[1], flush=True)
signal.pause()
