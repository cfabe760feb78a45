# Rows of fleet.py: workers of all kinds, and printing.
import subprocess

from fleetlib import (QUEUE, READY, ROUNDS, Server, compiled, faster, found,
                      hiredis, number, ratio, rounds, tool, value)


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


def forked(server, n, j):
    s = drained(server, n, "-j%d" % j, QUEUE, "--", "/bin/true")
    bare = tool(None, compiled("spawn"), n, j, "/bin/true")
    s["bare"], s["bare own"] = bare.wall, bare.cpu / n * 1e6
    lines = b"".join(b"%d\n" % i for i in range(n))
    s["xargs"] = tool(None, "xargs", "-P%d" % j, "-n1", "/bin/true",
                      stdin=lines).wall
    return s


def fork16():
    n, server = number("FORKS", 5000), Server("fork16")
    samples = rounds(lambda: dict(forked(server, n, 16),
                                  moved=moved(server, n)))
    value("fork16: -j16, server us", samples, "server", "<= 3.3", "moved")
    faster("fork16: -j16, s, bare loop", samples, "wall", "bare", ">= 0.9")
    server.stop()


def fork():
    n, server = number("FORKS", 5000), Server("fork")
    samples = rounds(lambda: forked(server, n, 2), max(9, ROUNDS) if ROUNDS > 1 else 1)
    faster("fork: -j2, s, bare loop", samples, "wall", "bare", ">= 0.93")
    faster("fork: -j2, s, xargs", samples, "wall", "xargs", ">= 1.15")
    ratio("fork: consumer us, the loop's parent", samples, "own", "bare own",
          "<= 1.4")
    value("fork: server us", samples, "server", "<= 10")
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


# --- jsonl --------------------------------------------------------------------------------

def jsonl():
    n, server = number("PRINTS", 500000), Server("jsonl")

    def printed(framing, *options):
        server.flush()
        server.fill(n, "-l", *options)
        before = server.cpu()
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE,
                              stdout=subprocess.DEVNULL) as cat:
            run = tool(server, "mq-consume", "-q", "--drain", framing, QUEUE,
                       stdout=cat.stdin)
            cat.stdin.close()
        return {"wall": run.wall, "own": run.cpu / n * 1e6,
                "server": (server.cpu() - before) / n * 1e6}

    def popped():
        server.flush()
        server.fill(n)
        before = server.cpu()
        run = tool(None, "redis-benchmark", "-s", server.socket, "-P", 100,
                   "-c", 1, "-n", n, "-q", "RPOPLPUSH", READY, "popped")
        return {"wall": run.wall, "server": (server.cpu() - before) / n * 1e6}

    def sample():
        runs = {"stamped": printed("--jsonl"), "pop": popped(),
                "raw": printed("--jsonl", "--raw"), "lines": printed("-l")}
        return {(name, what): x for name, run in runs.items()
                for what, x in run.items()}

    samples = rounds(sample)
    for name, target in (("stamped", ">= 0.8"), ("raw", "-"), ("lines", "-")):
        faster("jsonl: %s, s, RPOPLPUSH -P 100" % name, samples,
               (name, "wall"), ("pop", "wall"), target)
        ratio("jsonl: %s, server us" % name, samples, (name, "server"),
              ("pop", "server"), "-")
        value("jsonl: %s, consumer us" % name, samples, (name, "own"), "-")
    server.stop()
