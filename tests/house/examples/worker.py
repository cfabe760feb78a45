#!/usr/bin/env python3
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
"""A worker: mq-consume -j4 files -- ./worker.py
The payload is the path of a file, whose lines it counts."""
import os
import sys

with open(3, "w", buffering=1, encoding="utf-8") as verbs:
    path = os.fsdecode(sys.stdin.buffer.read().rstrip(b"\n"))
    print("run counting", file=verbs)
    try:
        with open(path, "rb") as file:
            lines = sum(1 for line in file)
    except OSError as error:
        print("err", error.strerror, file=verbs)  # rejected, with this reason
    else:
        # Again, in a minute, while there is nothing in it.
        print(f"done {lines} lines" if lines else "resend 60-still empty", file=verbs)
