# Rows of fleet.py: workers of all kinds.
import subprocess

from fleetlib import (QUEUE, READY, Server, compiled, faster, found, hiredis, number,
                      ratio, rounds, tool, value)


def drained(server, n, *arguments, options=("-l",)):
    """Consumes n messages: what each costs the server and the consumer."""
    server.flush()
    server.fill(n, *options)
    before = server.cpu()
    run = tool(server, "mq-consume", "-q", "--drain", *arguments)
    if server.count() != 0 or server.held() != 0:
        raise RuntimeError("%s: some are left" % (arguments,))
    return {"server": (server.cpu() - before) / n * 1e6, "wall": run.wall,
            "own": run.cpu / n * 1e6, "rate": n / run.wall}


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


def fork16():
    n, server = number("FORKS", 5000), Server("fork16")

    def sample():
        s = drained(server, n, "-j16", QUEUE, "--", "/bin/true")
        bare = tool(None, compiled("spawn"), n, 16, "/bin/true")
        s.update({"bare": bare.wall, "bare own": bare.cpu / n * 1e6,
                  "moved": moved(server, n)})
        return s

    samples = rounds(sample)
    value("fork16: -j16, server us", samples, "server", "<= 3.3", "moved")
    faster("fork16: -j16, s, bare loop", samples, "wall", "bare", ">= 0.9")
    ratio("fork16: consumer us, the loop's parent", samples, "own", "bare own",
          "<= 1.4")
    server.stop()


# --- from push to start ----------------------------------------------------------------

def pickup():
    server = Server("pickup")
    latency = compiled("latency", *hiredis())

    def sample():
        server.flush()
        out = subprocess.run(
            [latency, server.socket, READY, "300", found("mq-consume"), "-q",
             QUEUE, "--", compiled("mark", "-static")],
            check=True, capture_output=True, env=server.environment).stdout
        us = [int(ns) / 1e3 for ns in out.split()]
        return dict(zip(("p50", "p99", "bare p50", "bare p99"), us))

    samples = rounds(sample)
    ratio("pickup: p50 us, bare spawn", samples, "p50", "bare p50", "<= 1.4")
    ratio("pickup: p99 us, bare spawn", samples, "p99", "bare p99", "-")
    server.stop()
