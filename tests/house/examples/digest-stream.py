#!/usr/bin/env python3
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
"""The same as digest.sh, as a worker for mq-consume --stream --jsonl: it is
started once, and reads and compresses the files itself."""
import gzip
import hashlib
import json
import os
import sys


def digest(message):
    """Appends the line of a file; its size, and that when compressed."""
    with open(message["payload"], "rb") as file:
        data = file.read()
    small = len(gzip.compress(data, 6))
    line = (f"{message['id']} {hashlib.sha256(data).hexdigest()} "
            f"{len(data)} {small} {message['payload']}\n")
    with open(os.environ["RESULTS"], "a", encoding="utf-8") as results:
        results.write(line)
    return len(data), small


verbs = open(3, "w", buffering=1, encoding="utf-8")
for text in sys.stdin:
    message = json.loads(text)
    try:
        size, small = digest(message)
    except KeyError:
        verbs.write("err a path that is not UTF-8\n")
    except FileNotFoundError:
        verbs.write("err no such file\n")
    except OSError as error:
        verbs.write(f"resend 60-{error.strerror}\n")
    else:
        verbs.write(f"done {small} of {size} bytes\n")
