# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
"""gate.py HERE THERE WORD: passes on what comes to the socket HERE to that of a server,
and back.  The first request with WORD in it waits: HERE.waits is there then, and when
HERE.open is there, too, the request goes on."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../faults")

import proxy    # noqa: E402

here, there, word = sys.argv[1:]


class Gate(proxy.Proxy):
    def forward(self, link, up, data, dst):
        if up and word.encode() in data and not os.path.exists(here + ".waits"):
            open(here + ".waits", "w").close()
            while not os.path.exists(here + ".open"):
                time.sleep(0.01)
        return super().forward(link, up, data, dst)


gate = Gate(here, there)
signal.pause()
