#!/usr/bin/env python3
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
"""Instructions of tool and server a message, beside those of a commit that is recorded here.

    costs.py BUILD [MODE...]     of all modes, or of those that are named

Each mode runs on a server of its own, under callgrind, as its tool does.  What the server does
for the set-up of a mode, and to start, is taken off.  Counts differ by some parts in a hundred
from run to run where timers have a say; times do not count at all.  Processes that a consumer
starts are not counted.  BASE= names another commit.
"""
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

BASE = os.environ.get("BASE") or "27f43b1"
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CALLGRIND = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]

# Mode: (messages, set-up, tool and options, standard input).
LINES = {n: "".join(f"{i}\n" for i in range(n)) for n in (100, 1000)}
KEYS = "".join('{"payload":"%d","headers":{"Mq-Key":["%d"]}}\n' % (i, i) for i in range(1000))
FILL, FEW = ("mq-publish -q -l q", LINES[1000]), ("mq-publish -q -l q", LINES[100])
REJECTED = [FEW, ("mq-consume -q --drain q -- false", "")]
QUEUES = [(f"mq-publish -q q{i} x", "") for i in range(100)]
STREAM = "mq-consume -q --drain --stream"
ANSWERS = "sh -c 'while read -r x; do echo done >&3; done'"
MODES = {
    "publish": (1000, [], "mq-publish -q -l q", LINES[1000]),
    "publish -p": (1000, [], "mq-publish -q -p 5 -l q", LINES[1000]),
    "publish -d": (1000, [], "mq-publish -q -d 1h -l q", LINES[1000]),
    "publish -k": (1000, [], "mq-publish -q --jsonl q", KEYS),
    "publish -g": (1000, [], "mq-publish -q -g g -l q", LINES[1000]),
    "publish --raw": (1000, [], "mq-publish -q --raw -l q", LINES[1000]),
    "print": (1000, [FILL], "mq-consume -q --drain -l q", ""),
    "fork -j1": (100, [FEW], "mq-consume -q --drain q -- true", ""),
    "fork -j4": (100, [FEW], "mq-consume -q --drain -j4 q -- true", ""),
    "batch": (1000, [FILL], "mq-consume -q --drain --batch 100 q -- true", ""),
    "stream -j1": (1000, [FILL], STREAM + " q -- " + ANSWERS, ""),
    "stream -j4": (1000, [FILL], STREAM + " -j4 q -- " + ANSWERS, ""),
    "retry": (100, [FEW], "mq-consume -q --drain --backoff 1h..1h q -- sh -c 'exit 75'", ""),
    "reject": (100, [FEW], "mq-consume -q --drain q -- false", ""),
    "return": (100, REJECTED, "mq-return -q q", ""),
    "purge": (1000, [FILL], "mq-purge -q --force --ready q", ""),
    "stats of 1": (1, [FEW], "mq-stats q", ""),
    "stats of 100": (100, QUEUES, "mq-stats", ""),
    "clean": (1, [FEW], "mq-clean -q", ""),
}


def collected(log):
    with open(log, errors="replace") as f:
        found = re.search(r"Collected : (\d+)", f.read())
    if not found:
        sys.exit("costs.py: callgrind has counted nothing: " + log)
    return int(found[1])


def run(command, text, environment, log=None):
    """One tool, counted if there is a log."""
    tool, *rest = shlex.split(command)
    argv = (CALLGRIND + ["--log-file=" + log] if log else []) + [environment["TOOLS"] + "/" + tool, *rest]
    done = subprocess.run(argv, input=text, text=True, env=environment, check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    # Messages were rejected or sent back, as was asked for.
    if done.returncode not in (0, 1, 75):
        sys.exit(f"costs.py: {command}: status {done.returncode}: {done.stderr.strip()}")


def measure(tools, setup, command, text):
    """The instructions of the server and, if there is a command, of its tool."""
    top = tempfile.mkdtemp(prefix="mq-")
    sock = top + "/s"
    server = subprocess.Popen(CALLGRIND + ["--log-file=" + top + "/server", "redis-server", "--port", "0",
                              "--unixsocket", sock, "--dir", top, "--save", "", "--hz", "1"], stdout=subprocess.DEVNULL)
    environment = dict(os.environ, MQ_URL="unix://" + sock, TOOLS=tools)
    try:
        while not os.path.exists(sock):
            if server.poll() is not None:
                sys.exit("costs.py: redis-server does not start under callgrind")
            time.sleep(0.1)
        for step in setup:
            run(*step, environment)
        if command:
            run(command, text, environment, top + "/tool")
        subprocess.run(["redis-cli", "-s", sock, "shutdown", "nosave"], check=True)
        server.wait()
        return collected(top + "/server"), collected(top + "/tool") if command else 0
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(top, ignore_errors=True)


def a_message(tools, mode):
    n, setup, command, text = MODES[mode]
    before, _ = measure(tools, setup, None, None)
    server, tool = measure(tools, setup, command, text)
    return tool / n, (server - before) / n


def build_of(commit, top):
    archive = subprocess.run(["git", "-C", ROOT, "archive", commit], check=True, stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", top], input=archive.stdout, check=True)
    subprocess.run(["make", "-s", "-C", top, "all"], check=True, stdout=subprocess.DEVNULL)
    return top + "/build"


def main(build, modes):
    top = tempfile.mkdtemp(prefix="mq-")
    try:
        old = build_of(BASE, top)
        print(f"{'thousands a message':<15}{'tool':>9}{BASE:>10}{'':>7}{'server':>10}{BASE:>10}")
        for mode in modes or MODES:
            then, now = a_message(old, mode), a_message(build, mode)
            cells = [f"{n / 1000:10.1f}{t / 1000:10.1f}{n / t if t > 0 else 0:6.2f}x" for n, t in zip(now, then)]
            print(f"{mode:<14}" + "".join(cells), flush=True)
    finally:
        shutil.rmtree(top, ignore_errors=True)


if __name__ == "__main__":
    if len(sys.argv) < 2 or any(m not in MODES for m in sys.argv[2:]):
        sys.exit(__doc__)
    main(os.path.abspath(sys.argv[1]), sys.argv[2:])
