# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Rows of fleet, see bench.py: what is given back, options of delivery, large payloads.
import json
import os
import signal
import time

from fleetlib import (DIR, QUEUE, READY, Server, Waiting, compiled, ended, lines,
                      number, ratio, rounds, row, start, tool, until, value)


# --- giveback: 100,000 held messages, and TERM --------------------------------------------

def giveback():
    # One less than the largest batch, so that it never is full.
    n = number("HELD", 100000) - 1
    main, other = Server("giveback"), Server("giveback-other")

    def given_back(server):
        """Others wait on the main server, wherever the work is done."""
        server.flush()
        server.fill(n)
        # A batch has no limit of bytes, as --prefetch has.
        consumer = start(server, "mq-consume", "-q", "--batch", n + 1,
                         "--batch-wait", "1h", QUEUE, "--", "cat")
        until(lambda: server.held() == n, "held messages", 0.05)
        time.sleep(1)
        server.slowest()
        before = server.cpu()
        with Waiting(main) as waiting:
            began = time.monotonic()
            consumer.terminate()
            until(lambda: server.held() == 0, "given back", 0.01)
            took = time.monotonic() - began
            ended(consumer, began, (0, 143, -signal.SIGTERM))
        return {"s": took, "wait": waiting.longest / 1e6,
                "cpu": server.cpu() - before, "slowest": server.slowest(),
                "left": n - server.count() + server.held()}

    def sample():
        s, busy = given_back(main), given_back(other)
        s["busy"] = busy["wait"]
        s["more"] = s["wait"] - busy["wait"]
        return s

    samples = rounds(sample)
    value("giveback: s for %d" % (n + 1), samples, "s", "<= 1")
    value("giveback: server CPU, s", samples, "cpu", "-")
    value("giveback: others' longest wait, ms", samples, "wait", "-", "busy")
    value("giveback: that, more than by load, ms", samples, "more", "<= 5")
    value("giveback: longest command, ms", samples, "slowest", "-")
    value("giveback: left over", samples, "left", "<= 0")
    main.stop()
    other.stop()


# --- group and options ------------------------------------------------------------------

def grouped(groups, n):
    return b"".join(b"%s\n" % json.dumps(
        {"payload": "%-100d" % i,
         "headers": {"Mq-Group": "group-%d" % (i % groups)}}).encode()
        for i in range(n))


STREAM = "--stream", "-j4", QUEUE, "--"


def consumed(server, n, lines, *options, consumer=(QUEUE,)):
    """Server us a message, of publishing and of consuming."""
    server.flush()
    before = server.cpu()
    tool(server, "mq-publish", "-q", *options, QUEUE, stdin=lines)
    middle = server.cpu()
    tool(server, "mq-consume", "-q", "--drain", *consumer)
    if server.call("DBSIZE") > 20 or server.held() or server.count():
        raise RuntimeError("%s: some are left" % (options,))
    return ((middle - before) / n * 1e6, (server.cpu() - middle) / n * 1e6)


def group():
    n, server = number("GROUPED", 4000), Server("group")

    def sample():
        s = {}
        for name, groups in ("one", 1), ("many", n // 4):
            lines = grouped(groups, n)
            s["publish " + name], s[name] = consumed(
                server, n, lines, "--jsonl",
                consumer=(*STREAM, compiled("answer")))
            _, s["print " + name] = consumed(server, n, lines, "--jsonl")
        return s

    samples = rounds(sample)
    for name, what, target in (("one", "one of %d" % n, "<= 60"),
                               ("many", "%d of 4" % (n // 4), "<= 18")):
        value("group: %s, stream -j4, server us" % what, samples, name, target)
        value("group: %s, print, server us" % what, samples, "print " + name,
              target)
        value("group: %s, publish, server us" % what, samples,
              "publish " + name, "-")
    server.stop()


KINDS = {"priority": ("-p", 5), "delay": ("-d", "1ms"), "expiry": ("-e", "1h"),
         "tick": ("--from-tick", 0)}


def bare_zadd(server, n):
    """Server us a message, as long as ours, of ZADD alone."""
    server.flush()
    members = [("-5", '%032d{"Mq-Id":["%032d"],"Mq-Priority":["5"]}%-106d' %
                (i, i, i)) for i in range(n)]
    before = server.cpu()
    server.pipe([("ZADD", "q", *sum(members[i:i + 250], ()))
                 for i in range(0, n, 250)])
    return (server.cpu() - before) / n * 1e6


def options():
    n, server = number("OPTIONS", 50000), Server("options")

    def sample():
        s = {}
        for kind, words in dict(KINDS, plain=()).items():
            s["publish", kind], s["consume", kind] = consumed(
                server, n, lines(n), *words, "-l")
        s["ZADD"] = bare_zadd(server, n)
        return s

    samples = rounds(sample)
    for verb, target in ("publish", "-"), ("consume", "<= 2"):
        for kind in KINDS:
            ratio("options: %s, %s, server us" % (kind, verb), samples,
                  (verb, kind), (verb, "plain"), target)
    # A set hashes all bytes of a member, and again when it grows.
    ratio("options: bare ZADD, server us", samples, "ZADD",
          ("publish", "plain"), "-")
    for kind in "priority", "delay", "tick":
        ratio("options: %s, publish, of bare ZADD" % kind, samples,
              ("publish", kind), "ZADD", "<= 1.15")
    server.stop()


# --- memory: what a message takes at the server --------------------------------------------

# With what a message waits; the ones behind have a key or a group of their own.
WITH = {"raw": ("--raw",), "id": (), "header": ("-H", "X-Trace: %020d" % 7), "delay": ("-d", "1d"),
        "priority": ("-p", 5), "key": "Mq-Key", "group": "Mq-Group"}
WITH_RSMQ = "id", "header", "delay"


def records(n, size, header=None):
    for i in range(n):
        text = "%-*d" % (size, i)
        yield "%s\n" % (json.dumps({"payload": text, "headers": {header: str(i)}})
                        if header else text)


def memory():
    """Bytes a message, payload included.  They depend on the server, and not on its load."""
    n, server = number("STORED", 100000), Server("memory")

    def used(size, how, then=()):
        server.flush()
        before = int(server.info("memory")["used_memory"])
        header, options = (how, ("--jsonl",)) if isinstance(how, str) else (None, (*how, "-l"))
        tool(server, "mq-publish", "-q", *options, QUEUE,
             stdin="".join(records(n, size, header)).encode())
        if then:
            tool(server, *then)
        return (int(server.info("memory")["used_memory"]) - before) / n

    keep = ("mq-consume", "-q", "--drain", "--stream", "--keep", "1h", QUEUE, "--",
            compiled("answer"))
    for layout, kinds in ("rmq", WITH), ("rsmq", WITH_RSMQ):
        server.environment["MQ_LAYOUT"] = layout
        for size in 100, 1024:
            for kind in kinds:
                x = used(size, WITH[kind])
                row("memory: %s, %d bytes, %s" % (layout, size, kind), x, "-", x, "-")
            if layout == "rmq":
                x = used(size, (), keep)
                row("memory: %s, %d bytes, kept" % (layout, size), x, "-", x, "-")
    server.stop()


# --- large: 100 MB --------------------------------------------------------------------------

# How the worker ends, once it is let go.
STATUS = {"ack": 0, "reject": 1, "retry": 75}


class Work:
    """Server CPU in ms, the longest wait of others, and peak memory in MB, of a
    step on one server."""

    def __init__(self, server):
        self.server, self.found = server, {}
        self.pid = server.process.pid

    def step(self, name, work):
        self.server.call("MEMORY", "PURGE")
        with open("/proc/%d/clear_refs" % self.pid, "w") as f:
            f.write("5")
        with Waiting(self.server) as waiting:
            before = self.server.cpu()
            work()
            self.found[name] = (self.server.cpu() - before) * 1e3
        self.found[name, "wait"] = waiting.longest / 1e6
        with open("/proc/%d/status" % self.pid) as f:
            peak = next(line for line in f if line.startswith("VmHWM"))
        self.found[name, "peak"] = int(peak.split()[1]) / 1024


def held_worker(work, kind):
    """Claims in one step, ends in another: the worker waits for both."""
    server = work.server
    begun, go = DIR + "/begun", DIR + "/go"
    for path in begun, go:
        if not os.path.exists(path):
            os.mkfifo(path)
    script = ": >%s; read -r x <%s; exit %d" % (begun, go, STATUS[kind])

    def claim():
        process = start(server, "mq-consume", "-q", "-n1", "--backoff",
                        "1h..1h", QUEUE, "--", "sh", "-c", script)
        open(begun).close()
        return process

    started = []
    work.step("claim", lambda: started.append(claim()))

    def finish():
        with open(go, "w") as f:
            f.write("\n")
        ended(started[0], time.monotonic(), (STATUS[kind],))

    work.step(kind, finish)


def large_sample(payload):
    found = {}
    options = {"plain": (), "expiry": ("-e", "1h"), "priority": ("-p", 5),
               "delay": ("-d", "1h"), "group": ("-g", "a")}
    for kind in STATUS:
        server = Server("large-" + kind)
        work = Work(server)
        work.step("LPUSH", lambda: server.call("LPUSH", READY, payload))
        server.flush()
        for name in options if kind == "ack" else ("plain",):
            server.flush()
            work.step("publish " + name, lambda: tool(
                server, "mq-publish", "-q", *options[name], QUEUE,
                stdin=payload))
        server.flush()
        tool(server, "mq-publish", "-q", QUEUE, stdin=payload)
        held_worker(work, kind)
        if kind == "reject":
            work.step("return", lambda: tool(server, "mq-return", QUEUE))
        if kind == "ack":
            tool(server, "mq-publish", "-q", "-d", "1ms", QUEUE,
                 stdin=payload)
            work.step("promote", lambda: tool(server, "mq-clean", "-q"))
            if server.count() != 1:
                raise RuntimeError("promote: not ready")
        found.update(work.found)
        server.stop()
    return found


def large():
    payload = os.urandom(1 << 20) * number("MB", 100)
    samples = rounds(lambda: large_sample(payload))
    names = [name for name in samples[0]
             if isinstance(name, str) and name != "LPUSH"]
    for name in names:
        # Scripts copy the payload.
        target = "-" if name in ("ack", "publish plain") else "<= 12"
        ratio("large: %s, server ms, LPUSH" % name, samples, name, "LPUSH",
              target)
        ratio("large: %s, peak MB, LPUSH" % name, samples, (name, "peak"),
              ("LPUSH", "peak"), "-" if target == "-" else "<= 5")
        ratio("large: %s, longest wait ms, LPUSH" % name, samples,
              (name, "wait"), ("LPUSH", "wait"), "-")
