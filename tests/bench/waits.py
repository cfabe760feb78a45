# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
"""waits.py SOCKET: how long a client of that server waits for the answer to a cheap command, which
it asks once a millisecond, from now until a little after the end of standard input.  When an answer
takes longer, those that it could not ask for meanwhile count as well, as if each had been asked for
in time.  Prints the longest wait and the 99.9th percentile, in nanoseconds."""
import gc
import select
import sys
import time

sys.path.insert(0, sys.path[0] + "/../helpers")

import resp    # noqa: E402

EVERY_NS = 1000000
AROUND = 100    # so often at the end, too: memory is freed in the background

server, took, left = resp.at(sys.argv[1]), [], AROUND
gc.disable()
while left:
    asked = time.monotonic_ns()
    server.call("LLEN", "of-another-queue")
    took += range(time.monotonic_ns() - asked, 0, -EVERY_NS)
    left -= left < AROUND or select.select([0], [], [], 0)[0] == [0]
    time.sleep(max(0, asked + EVERY_NS - time.monotonic_ns()) / 1e9)
took.sort()
print(took[-1], took[(len(took) - 1) * 999 // 1000])
