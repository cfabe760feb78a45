# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Rows of fleet, see bench.py: workers of all kinds.
import os
import select
import time

from fleetlib import (QUEUE, READY, Server, compiled, end, number, ratio, rounds, start, tool,
                      value)


def drained(server, n, *arguments):
    """Consumes n messages: what each costs the server and the consumer."""
    server.flush()
    server.fill(n)
    before = server.cpu()
    run = tool(server, "mq-consume", "-q", "--drain", *arguments)
    if server.count() != 0 or server.held() != 0:
        raise RuntimeError("%s: some are left" % (arguments,))
    return {"server": (server.cpu() - before) / n * 1e6, "own": run.cpu / n * 1e6,
            "rate": n / run.wall}


def moved(server, n):
    """The floor: pipelined LMOVE and LREM, us of the server a message."""
    server.flush()
    server.fill(n)
    before = server.cpu()
    for _ in range(0, n, 100):
        held = server.pipe([("LMOVE", READY, "held", "RIGHT", "LEFT")] * 100)
        server.pipe([("LREM", "held", -1, message) for message in held])
    return (server.cpu() - before) / n * 1e6


# --- stream, batch, fork with many slots --------------------------------------------

def fed(n, workers, window, each=1 << 30):
    return n / tool(None, compiled("feed"), n, workers, window, each,
                    compiled("answer")).wall


def stream():
    n, server = number("MESSAGES", 100000), Server("stream")

    def sample():
        s = {"floor": moved(server, n)}
        for j in 1, 2, 4, 8, 16:
            run = drained(server, n, "--stream", "-j%d" % j, QUEUE, "--",
                          compiled("answer"))
            s.update({(j, name): x for name, x in run.items()})
            s[j, "pipe"] = fed(n, j, 1)
            s[j, "wide"] = fed(n, j, 1000)
        return s

    samples = rounds(sample)
    for j in 1, 2, 4, 8, 16:
        value("stream -j%d: server us" % j, samples, (j, "server"), "<= 3.3",
              "floor")
        ratio("stream -j%d: rate, bare pipes" % j, samples, (j, "rate"),
              (j, "pipe"), ">= 0.9")
        ratio("stream -j%d: rate, pipes, window 1000" % j, samples,
              (j, "rate"), (j, "wide"), "-")
        value("stream -j%d: consumer us" % j, samples, (j, "own"), "-")
    server.stop()


def batch():
    n, server = number("MESSAGES", 100000), Server("batch")

    def sample():
        s = drained(server, n, "-j4", "--batch", 100, QUEUE, "--",
                    compiled("answer"))
        s["moved"] = moved(server, n)
        s["pipe"] = fed(n, 4, 100, 100)
        return s

    samples = rounds(sample)
    value("batch -j4: server us", samples, "server", "<= 3.3", "moved")
    ratio("batch -j4: rate, bare pipes", samples, "rate", "pipe", ">= 0.9")
    value("batch -j4: consumer us", samples, "own", "-")
    server.stop()


def forks():
    n, server = number("FORKS", 5000), Server("forks")

    def sample():
        s = {"moved": moved(server, n)}
        for j in 2, 16:
            run = drained(server, n, "-j%d" % j, QUEUE, "--", "/bin/true")
            bare = tool(None, compiled("spawn"), n, j, "/bin/true")
            s.update({(j, name): x for name, x in run.items()})
            s.update({(j, "bare"): n / bare.wall, (j, "bare own"): bare.cpu / n * 1e6})
        return s

    samples = rounds(sample)
    for j, rate, own in (2, ">= 0.92", "<= 1.45"), (16, ">= 0.9", "<= 1.4"):
        value("forks: -j%d, server us" % j, samples, (j, "server"), "<= 3.3", "moved")
        ratio("forks: -j%d, rate, bare loop" % j, samples, (j, "rate"), (j, "bare"), rate)
        ratio("forks: -j%d, own us, the loop's parent" % j, samples, (j, "own"),
              (j, "bare own"), own)
    server.stop()


# --- from push to start ----------------------------------------------------------------

def pickup():
    """From the push to the start of a program that says when that was (see mark.c), with an idle
    consumer, in turn with what starting the program itself takes."""
    server, mark = Server("pickup"), compiled("mark", "-static")
    marks, out = os.pipe()

    def ns(begin):
        time.sleep(0.005)    # the consumer is idle again
        began = time.monotonic_ns()
        begin()
        if not select.select([marks], [], [], 10)[0]:
            raise RuntimeError("pickup: no message was picked up")
        return int.from_bytes(os.read(marks, 8), "little") - began

    def spawn():
        return os.posix_spawn(mark, [mark], os.environ,
                              file_actions=[(os.POSIX_SPAWN_DUP2, out, 1)])

    def sample():
        server.flush()
        consumer, push = start(server, "mq-consume", "-q", QUEUE, "--", mark, stdout=out), []
        pids, bare = [], []
        # The first are not counted: the consumer has to come up, the caches to fill.
        for _ in range(310):
            push.append(ns(lambda: server.call("LPUSH", READY, "x")) / 1e3)
            bare.append(ns(lambda: pids.append(spawn())) / 1e3)
            os.waitpid(pids.pop(), 0)
        end(consumer)
        s = {}
        for name, us in ("", sorted(push[10:])), ("bare ", sorted(bare[10:])):
            s[name + "p50"], s[name + "p99"] = us[150], us[299 * 99 // 100]
        return s

    samples = rounds(sample)
    ratio("pickup: p50 us, bare spawn", samples, "p50", "bare p50", "<= 1.45")
    ratio("pickup: p99 us, bare spawn", samples, "p99", "bare p99", "-")
    server.stop()
