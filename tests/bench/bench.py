#!/usr/bin/env python3
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Compares the tools with others that do the same, and prints a table.  What
# counts is the ratio: how many times as fast as the other one, for memory and
# latency how many times as much.  Both sides run in turn, ROUNDS times; a
# ratio is the median of those of the rounds, from .. to the extremes.  A ratio
# that falls short is marked, and does not fail: the machine may be busy.
#
#   ROUNDS=5       how often each
#   BENCH_ONLY=    some of the parts, as PARTS at the end has them, and by itself
#                  cluster: see cluster.py; or fleet, which takes half an hour
#   BENCH_LONG=1   more messages as well: up to 10,000,000
#   BENCH_SCALE=1  0.01 is a hundredth of them, to see that all parts work
#   FLEET_ONLY=wake,idle    some of the rows of fleet, by the word before the colon
#   FLEET_MESSAGES=, FLEET_N= and others change its sizes; see number()
import os
import statistics
import subprocess
import sys
import time

import fleet_crowd
import fleet_store
import fleet_work
from fleetlib import (BUILD, DIR, HERE, QUEUE, READY, REJECTED, Server, Waiting, compiled,
                      end, judged, own_cpu, rounds, start)

os.environ.update(LC_ALL="C", PATH=BUILD + ":" + os.environ["PATH"])
LONG = bool(os.environ.get("BENCH_LONG"))
SCALE = float(os.environ.get("BENCH_SCALE") or 1)
HOME = "rmq::queue::[%s]::" % QUEUE


def scaled(n):
    return max(100, int(n * SCALE) // 100 * 100)


MANY, SOME, RUNS, SINGLES = scaled(1000000), scaled(100000), scaled(5000), scaled(300)
server = None       # that the tools are told of
measured = {}       # by case, of each round: nanoseconds, and KiB at the peak

# --- measuring ------------------------------------------------------------------


def run(program, *args, given=None):
    """What it prints."""
    return subprocess.run([program, *map(str, args)], env=server.environment, text=True,
                          stdin=given or subprocess.DEVNULL, check=True,
                          stdout=subprocess.PIPE).stdout


def timed(case, *command, given=None):
    """Adds its time and memory to those of a case; with a file on stdin."""
    said = run(compiled("measure"), *(("-i", given) if given else ()), *command)
    measured.setdefault(case, []).append([int(n) for n in said.split()])


def expect(n, key=READY):
    """Makes sure that the work has been done."""
    kind = "ZCARD" if server.call("TYPE", key) == b"zset" else "LLEN"
    if server.call(kind, key) != n:
        raise RuntimeError("%s has %s messages, not %d" % (key, server.call(kind, key), n))


def shell(text):
    return "sh", "-c", text


def publish_file(path, *options, times=1):
    for _ in range(times):
        with open(path) as f:
            run("mq-publish", "-q", *(options or ("-l",)), QUEUE, given=f)


def made(name, text):
    """The path of a file in the directory of this run; text may be many parts."""
    path = "%s/%s" % (DIR, name)
    if not os.path.exists(path):
        with open(path, "w") as f:
            f.writelines([text] if isinstance(text, str) else text)
        os.chmod(path, 0o755)
    return path


def lines(n=MANY):
    return made("lines-%d" % n, ("%-100d\n" % i for i in range(n)))


def script():
    return made("script", "#!/bin/sh\nread -r x\necho \"done $x\" >&3\n")


# --- the table ------------------------------------------------------------------

def line(*words):
    print("%-26s | %-24s | %-28s | %7s | %-12s | %-8s | %s" % words, flush=True)


def row(what, ours, other, values, wanted, form="%.2f"):
    x = statistics.median(values)
    line(what, ours, other, form % x, "%.2f..%.2f" % (min(values), max(values))
         if len(values) > 1 else "", wanted, judged(x, wanted))


def ratios(our, other, much=1):
    """The other's time by ours, round by round; ours is for so many times as much."""
    return [much * b[0] / a[0] for a, b in zip(measured[our], measured[other])]


def compare(what, ours, other, our_case, other_case, wanted="-", much=1):
    row(what, ours, other, ratios(our_case, other_case, much), wanted)


def peak(case):
    return max(kib for _, kib in measured[case])


def memory(what, ours, case, limit):
    row(what, ours, "-", [peak(case) * 0.001024], "<= %d" % limit, "%.1f MB")


# --- many messages --------------------------------------------------------------

def pushes(by):
    """The commands that push the lines, so many with each."""
    def parts():
        for first in range(0, MANY, by):
            yield "*%d\r\n$5\r\nLPUSH\r\n$%d\r\n%s\r\n" % (by + 2, len(READY), READY)
            yield "".join("$100\r\n%-100d\r\n" % i for i in range(first, first + by))
    return made("push%d" % by, parts())


def publish():
    cli = "redis-cli", "-s", server.socket, "--pipe"

    def one():
        for case, given, *command in (
                ("raw", lines(), "mq-publish", "--raw", "-l", QUEUE), ("push1", pushes(1), *cli),
                ("stamped", lines(), "mq-publish", "-l", QUEUE), ("push100", pushes(100), *cli)):
            server.flush()
            timed(case, *command, given=given)
            expect(MANY)

    rounds(one)
    server.flush()
    compare("publish %d lines" % MANY, "mq-publish --raw -l", "redis-cli --pipe, ready-made",
            "raw", "push1", ">= 1.6")
    compare("", "mq-publish --raw -l", "the same, 100 per command", "raw", "push100", ">= 0.7")
    compare("", "mq-publish -l (stamped)", "mq-publish --raw -l", "stamped", "raw", ">= 0.5")
    memory("peak memory", "mq-publish --raw -l", "raw", 16)
    memory("", "mq-publish -l", "stamped", 16)


def single():
    """One message a process, in a loop of a shell."""
    loop = "i=0; while [ $i -lt %d ]; do i=$((i + 1)); %%s || exit 1; done" % SINGLES

    def one():
        for case, command in (
                ("one", "mq-publish %s payload" % QUEUE),
                ("onecli", "printf payload | redis-cli -s %s -x lpush '%s'"
                 % (server.socket, READY)),
                ("onein", "printf payload | mq-publish %s" % QUEUE)):
            server.flush()
            timed(case, *shell(loop % command))
            expect(SINGLES)

    rounds(one)
    compare("publish 1, one process", "mq-publish Q payload", "printf | redis-cli -x lpush",
            "one", "onecli", ">= 2.0")
    compare("", "printf | mq-publish Q", "printf | redis-cli -x lpush", "onein", "onecli")


def consume(case, n, *args, times=1, given=None):
    """n lines wait, and are consumed."""
    server.flush()
    publish_file(given or lines(n), times=times)
    expect(n * times)
    timed(case, *args)
    expect(0)
    expect(0, REJECTED)


def print_():
    """Without a command, against moving a message from list to list."""
    pipe = shell("mq-consume -q --drain -l %s | cat" % QUEUE)

    def one():
        consume("print-pipe", MANY, *pipe)
        consume("print-null", MANY, "mq-consume", "-q", "--drain", "-l", QUEUE)
        consume("print-json", MANY, *shell("mq-consume -q --drain --jsonl %s | cat" % QUEUE))
        consume("print-pop", MANY, "redis-benchmark", "-s", server.socket, "-P", 100, "-c", 1,
                "-n", MANY, "-q", "RPOPLPUSH", READY, "popped")
        server.flush()

    rounds(one)
    compare("print %d messages" % MANY, "mq-consume -l | cat", "redis-benchmark RPOPLPUSH",
            "print-pipe", "print-pop", ">= 1.4")
    compare("", "mq-consume -l >/dev/null", "-P 100 -c 1", "print-null", "print-pop", ">= 1.4")
    compare("", "mq-consume --jsonl | cat", "the same", "print-json", "print-pop", ">= 0.8")
    memory("peak memory", "mq-consume -l | cat", "print-pipe", 8)
    if LONG:
        consume("print-long", MANY, *pipe, times=10)
        memory("peak memory, 10 M", "mq-consume -l | cat", "print-long", 8)


# --- workers --------------------------------------------------------------------

def run_():
    """One process a message."""
    numbers = made("numbers", ("%d\n" % i for i in range(1, RUNS + 1)))
    commands = (("true", "/bin/true", "run /bin/true"), ("script", script(), "run a script"))

    def one():
        for case, command, _ in commands:
            consume(case, RUNS, "mq-consume", "-q", "-j2", "--drain", QUEUE, "--", command,
                    given=numbers)
            timed(case + "-xargs", *shell("exec xargs -P2 -n1 %s 3>/dev/null" % command),
                  given=numbers)
            timed(case + "-spawn", *shell("exec %s %d 2 %s 3>/dev/null" % (
                compiled("spawn"), RUNS, command)))

    rounds(one)
    for case, _, what in commands:
        compare("%s %d times" % (what, RUNS), "mq-consume -j2", "xargs -P2 -n1",
                case, case + "-xargs", ">= 1.15" if case == "true" else ">= 1.0")
        compare("", "mq-consume -j2", "posix_spawn, 2 at a time", case, case + "-spawn",
                ">= 0.93" if case == "true" else ">= 0.9")
    memory("peak memory", "mq-consume -j2, true", "true", 16)
    memory("", "mq-consume -j2, script", "script", 16)


def many():
    """Several messages for one process: batches and streams, against one process a
    message and against what the server itself can move."""
    alone, crowd = scaled(2000), scaled(200000)
    stream = "--stream", QUEUE, "--"
    # Debian's awk reads in blocks without -W interactive; others ignore it.
    awk = made("awk", "#!/bin/sh\nexec awk -W interactive '{print \"done\"; fflush()}' >&3\n")
    moved = HOME + "moved"

    def taken(case, n, *args):
        consume(case, n, "mq-consume", "-q", "--drain", *args)

    def one():
        taken("alone", alone, "-j2", QUEUE, "--", script())
        taken("batch", crowd, "-j2", "--batch", 100, QUEUE, "--", script())
        taken("stream", crowd, *stream, compiled("answer"))
        consume("moved", crowd, "redis-benchmark", "-s", server.socket, "-q", "-P", 16, "-c", 1,
                "-n", crowd, "rpoplpush", READY, moved)
        expect(crowd, moved)
        taken("stream-awk", crowd, *stream, awk)

    rounds(one)
    much = crowd / alone
    compare("%d messages" % crowd, "--batch 100 -j2", "one process each, -j2",
            "batch", "alone", ">= 20", much)
    compare("", "--stream, C", "one process each, -j2", "stream", "alone", ">= 15", much)
    compare("", "--stream, awk", "one process each, -j2", "stream-awk", "alone", "-", much)
    compare("", "--stream, C", "redis-benchmark -P16", "stream", "moved", ">= 0.65")
    memory("peak memory", "--batch 100 -j2", "batch", 8)
    # It must not depend on how many messages there are.
    for n in SOME, MANY, *((10 * MANY,) if LONG else ()):
        taken("stream-%d" % n, n, *stream, compiled("answer"))
        memory("peak memory" if n == SOME else "", "--stream, %d" % n, "stream-%d" % n, 8)
    server.flush()


def memory_():
    server.flush()
    big, mib = DIR + "/big", 256
    with open(big, "wb") as f:
        f.truncate(mib << 20)
    for case, command, given in (
            ("big-file", ("mq-publish", "--raw", QUEUE), big),
            ("big-pipe", shell("cat %s | mq-publish --raw %s" % (big, QUEUE)), None)):
        timed(case, *command, given=given)
        expect(1)
        server.flush()
        row("peak memory, 256 MiB" if given else "",
            "mq-publish Q <file" if given else "cat file | mq-publish Q", "the payload",
            [peak(case) / (mib << 10)], "<= 2.1")
    os.unlink(big)
    if LONG:
        timed("long", *shell("cat %s | mq-publish -l %s" % (
            " ".join([lines()] * 10), QUEUE)))
        expect(10 * MANY)
        server.flush()
        memory("peak memory, 10 M lines", "mq-publish -l", "long", 16)


def idle():
    server.flush()
    consumer = start(server, "mq-consume", "-q", QUEUE, "--", "/bin/true")
    time.sleep(2)
    before = own_cpu(consumer.pid)
    time.sleep(10)
    row("CPU when idle, 10 s", "mq-consume", "-", [(own_cpu(consumer.pid) - before) * 10],
        "<= 0.5", "%.1f %%")
    end(consumer)


# --- operators, against the way of a Go program: a round trip for each key -------

PUT = """for i = 1, tonumber(ARGV[1]), 100 do
    local some = {}
    for j = i, i + 99 do
        some[#some + 1] = j .. (" "):rep(100 - #tostring(j))
    end
    redis.call("LPUSH", KEYS[1], unpack(some))
end"""
CONNECT = """for i = 1, tonumber(ARGV[1]) do
    local name = string.format("bench-%06d", i)
    local queue = string.format("queue-%d", i % tonumber(ARGV[2]))
    local key = "rmq::connection::" .. name
    local both = key .. "::queue::[" .. queue .. "]::"
    redis.call("SADD", "rmq::queues", queue)
    redis.call("SADD", "rmq::connections", name)
    redis.call("SADD", key .. "::queues", queue)
    redis.call("SADD", both .. "consumers", "tag-" .. name)
    for j = 1, tonumber(ARGV[3]) do
        redis.call("LPUSH", both .. "unacked", string.format("%-10d", j) .. (" "):rep(90))
    end
    if ARGV[4] ~= "0" then
        redis.call("SET", key .. "::heartbeat", 1, "EX", ARGV[4])
    end
end"""


def put(count, key):
    """Makes it a list of so many messages of 100 bytes.  (DEL frees at once, so that
    nothing of it is left to do when something is measured.)"""
    source = "lines:%d" % count
    if not server.call("EXISTS", source):
        server.call("EVAL", PUT, 1, source, count)
    server.call("SADD", "rmq::queues", QUEUE)
    server.call("DEL", key)
    server.call("COPY", source, key)


def connect(count, queues, unacked, seconds):
    """Connections as a Go program writes them, with one queue and one consumer each, of
    so many queues in turn; live for so long, or dead."""
    server.call("EVAL", CONNECT, 0, count, queues, unacked, seconds)


def operator(what, case, ours, other, prepare, command, trips, check, wanted):
    """A tool, and the commands of a Go program for the same, each after prepare()."""
    cli = "redis-cli", "-s", server.socket

    def one():
        for name, args, given in (case, command, None), (case + "-trips", cli, made(case, trips)):
            prepare()
            timed(name, *args, given=given)
            check()

    server.flush()
    rounds(one)
    compare(what, ours, other, case, case + "-trips", wanted)


def of_each(count, queues, *commands):
    """These for each of the connections that connect() makes."""
    return "".join("\n".join(commands).format(
        c="rmq::connection::bench-%06d" % i, name="bench-%06d" % i, q="queue-%d" % (i % queues))
        + "\n" for i in range(1, count + 1))


def return_():
    def prepare():
        put(SOME, REJECTED)
        server.call("DEL", READY)

    def check():
        expect(SOME)
        expect(0, REJECTED)

    operator("return %d rejected" % SOME, "return", "mq-return Q", "RPOPLPUSH, 1 a round trip",
             prepare, ("mq-return", "-q", QUEUE),
             "RPOPLPUSH %s %s\n" % (REJECTED, READY) * (SOME + 1), check, ">= 65")


def purge():
    operator("purge %d ready" % MANY, "purge", "mq-purge --ready Q", "LTRIM, 100 a round trip",
             lambda: put(MANY, READY), ("mq-purge", "-q", "--ready", "--force", QUEUE),
             "LTRIM %s 0 -101\n" % READY * (MANY // 100), lambda: expect(0), ">= 12")


def clean():
    count = scaled(2000)

    def prepare():
        server.flush()
        connect(count, 20, 5, 0)

    def check():
        """Each queue has had as many of the connections."""
        for i in 0, 19:
            expect(count // 20 * 5, "rmq::queue::[queue-%d]::ready" % i)
        if server.connections():
            raise RuntimeError("connections are left")

    back = ["RPOPLPUSH {c}::queue::[{q}]::unacked rmq::queue::[{q}]::ready"] * 6
    operator("clean %d connections" % count, "clean", "mq-clean", "a round trip per key",
             prepare, ("mq-clean", "-q"), of_each(
                 count, 20, "TTL {c}::heartbeat", "SMEMBERS {c}::queues", "SADD rmq::queues {q}",
                 *back, "DEL {c}::queue::[{q}]::unacked", "DEL {c}::queue::[{q}]::consumers",
                 "SREM {c}::queues {q}", "SREM rmq::connections {name}", "DEL {c}::queues"),
             check, ">= 25")


def stats():
    count = scaled(2000)

    def prepare():
        if not server.connections():
            connect(count, count, 1, 3600)
            if run("mq-stats").count("\n") < count:
                raise RuntimeError("mq-stats: too few lines")

    operator("stats of %d queues" % count, "stats", "mq-stats", "a round trip per key",
             prepare, ("mq-stats", "-q"), of_each(
                 count, count, "LLEN rmq::queue::[{q}]::ready", "LLEN rmq::queue::[{q}]::rejected",
                 "TTL {c}::heartbeat", "SMEMBERS {c}::queues",
                 "SMEMBERS {c}::queue::[{q}]::consumers", "LLEN {c}::queue::[{q}]::unacked"),
             lambda: None, ">= 80")


LIST = "mq-stats", "-q", "--list", "ready", "-l", QUEUE


def scale():
    """Long queues: ten times the messages in ten times the time."""
    sizes = [scaled(n) for n in (10000, 100000, 1000000)]

    def one():
        for n in sizes:
            server.call("DEL", READY)
            put(n, REJECTED)
            timed("return-%d" % n, "mq-return", "-q", QUEUE)
            expect(n)
            put(n, READY)
            timed("list-%d" % n, *LIST)
            timed("purge-%d" % n, "mq-purge", "-q", "--ready", "--force", QUEUE)
            expect(0)

    server.flush()
    put(MANY, READY)
    if run(*LIST).count("\n") != MANY:
        raise RuntimeError("mq-stats --list: not all messages")
    timed("table", "mq-stats", "-q")
    rounds(one)
    server.flush()
    connect(1, 1, 0, 0)
    put(MANY, "rmq::connection::bench-000001::queue::[queue-0]::unacked")
    timed("clean-long", "mq-clean", "-q")
    expect(MANY, "rmq::queue::[queue-0]::ready")
    for case, command in ("return", "mq-return"), ("list", "--list"), ("purge", "mq-purge"):
        for less, n in zip(sizes, sizes[1:]):
            row("%s, %d messages" % (case, n), command, "10 x the time of %d" % less,
                ratios("%s-%d" % (case, less), "%s-%d" % (case, n), 0.1), "<= 1.2")
    memory("peak memory, 1 M messages", "mq-return", "return-%d" % MANY, 16)
    for ours, case in (("mq-purge", "purge-%d" % MANY), ("mq-clean", "clean-long"),
                       ("mq-stats", "table"), ("mq-stats --list ready -l", "list-%d" % MANY)):
        memory("", ours, case, 16)


# --- how long others wait (see waits.py) -------------------------------------------
# What counts is by how much the longest wait is longer than that of the same round on
# an idle server.  The machine is then as busy as the work makes it, which is no fault of
# the server's: so the work is done on another server as well, and what is left of the
# difference is for comparison.

waited = {}     # by case, of each round: the longest wait and p99.9, in nanoseconds


def wait_for(case, *command, worker=None):
    with Waiting(server) as waiting:
        subprocess.run(list(map(str, command)), env=(worker or server).environment, check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    waited.setdefault(case, []).append([waiting.longest, waiting.most])


def wait_both(case, prepare, *command):
    """The work on another server, and on this."""
    global server
    this, other = server, Server("other")
    for at, name in (other, case + "-other"), (this, case):
        server = at
        prepare()
        server = this
        wait_for(name, *command, worker=at)
    other.stop()


def wait_rows(work, case):
    def more(base, column):
        return [(a[column] - b[column]) / 1e6 for a, b in zip(waited[case], waited[base])]

    row("wait, " + work, "the longest", "no work", more("idle", 0), "<= 10", "%.2f ms")
    row("", "p99.9", "no work", more("idle", 1), "<= 10", "%.2f ms")
    row("", "the longest", "work on another server", more(case + "-other", 0), "-", "%.2f ms")


def waits():
    works = (
        ("purge of 1 M", MANY, READY, 0, ("mq-purge", "-q", "--ready", "--force", QUEUE)),
        ("return of 1 M", MANY, REJECTED, MANY, ("mq-return", "-q", QUEUE)),
        ("--match in 100,000", SOME, REJECTED, SOME // 2,
         ("mq-return", "-q", "--match", "[13579] *$", QUEUE)),
        ("--match in 1 M", MANY, REJECTED, MANY // 2,
         ("mq-return", "-q", "--match", "[13579] *$", QUEUE)),
        ("list of 1 M", MANY, READY, MANY, LIST))

    def one():
        wait_for("idle", "sleep", 1)
        for work, count, key, ready, command in works:
            def prepare():
                server.call("DEL", READY, REJECTED)
                put(count, key)
            wait_both(work, prepare, *command)
            expect(ready)
            expect(count - ready if key == REJECTED else 0, REJECTED)

    waited.clear()
    server.flush()
    rounds(one)
    row("wait, no work", "the longest", "-", [w[0] / 1e6 for w in waited["idle"]], "-",
        "%.2f ms")
    for work in works:
        wait_rows(work[0], work[0])


def due():
    """A million delayed messages, which all fall due now."""
    def prepare():
        server.flush()
        publish_file(lines(SOME), "-d", "1ms", "-l", times=10)
        expect(10 * SOME, HOME + "delayed")

    def one():
        wait_for("idle", "sleep", 1)
        for case, *command in (("due-clean", "mq-clean", "-q"),
                               ("due-consume", "mq-consume", "-q", "--drain", QUEUE)):
            wait_both(case, prepare, *command)
            expect(0, HOME + "delayed")

    waited.clear()
    rounds(one)
    server.flush()
    wait_rows("1 M due, mq-clean", "due-clean")
    wait_rows("1 M due, mq-consume", "due-consume")


# --- how the time for each grows with their number: it should not -----------------

SPREAD = """for i = 1, tonumber(ARGV[1]) do
    local some, name = {}, "queue-" .. i
    for j = 1, tonumber(ARGV[2]) do
        some[j] = j .. (" "):rep(100 - #tostring(j))
    end
    redis.call("SADD", "rmq::queues", name)
    redis.call("LPUSH", "rmq::queue::[" .. name .. "]::ready", unpack(some))
end"""


def growth():
    fifo = DIR + "/fifo"
    os.mkfifo(fifo)

    def publishing(case, n):
        server.flush()
        timed(case, "mq-publish", "-l", QUEUE, given=lines(n))
        expect(n)

    def draining(*args):
        return lambda case, n: consume(case, n, "mq-consume", "-q", "--drain", *args)

    def spread(each, *command, behind=()):
        def one(case, n):
            server.flush()
            server.call("EVAL", SPREAD, 0, n, each)
            queues = ["queue-%d" % i for i in range(1, n + 1)]
            timed(case, *command, *(queues if "--drain" in command else ()), *behind)
            if "--drain" in command and server.call("KEYS", "*::ready"):
                raise RuntimeError("%s: some are left" % case)
        return one

    def slots(busy):
        """As many keep a slot busy, then 1000 more run."""
        def one(case, n):
            held = n - 1 if busy else 0
            given = made("slots-%d-%d" % (n, held), "".join(
                ["h%d\n" % i for i in range(held)] + ["%d\n" % i for i in range(999)] + ["r\n"]))
            consume(case, held + 1000, "mq-consume", "-q", "-j%d" % n, "--drain", QUEUE, "--",
                    compiled("hold", "-static"), fifo, given=given)
        return one

    # What, our command, how much more of it is done than the size says, what does it, sizes;
    # those in brackets take long.
    kinds = (
        ("publish, messages", "mq-publish -l", 0, publishing, (1000, 10000, 100000, 1000000), ()),
        ("print, messages", "mq-consume -l", 0, draining("-l", QUEUE),
         (1000, 10000, 100000), (1000000,)),
        ("run, messages", "mq-consume -j2", 0, draining("-j2", QUEUE, "--", "/bin/true"),
         (10, 100, 1000), (10000,)),
        ("batches, messages", "mq-consume --batch 100", 0,
         draining("-j2", "--batch", 100, QUEUE, "--", "/bin/true"),
         (1000, 10000, 100000), (1000000,)),
        ("stream, messages", "mq-consume --stream", 0,
         draining("--stream", QUEUE, "--", compiled("answer")),
         (1000, 10000, 100000), (1000000,)),
        ("print, queues of 100", "mq-consume -l", 0,
         spread(100, "mq-consume", "-q", "--drain", "-l"), (1, 10, 100, 1000), ()),
        ("run, queues of 2", "mq-consume -j2", 0,
         spread(2, "mq-consume", "-q", "-j2", "--drain", behind=("--", "/bin/true")),
         (1, 10, 100, 1000), ()),
        ("mq-stats, queues", "mq-stats", 0, spread(1, "mq-stats"), (1, 10, 100, 1000), ()),
        ("run, all slots but 1 busy", "mq-consume -j", 1000, slots(True), (1, 10, 100, 1000), ()),
        ("run, all slots idle", "mq-consume -j", 1000, slots(False), (1, 10, 100, 1000), ()))

    def sizes_of(sizes, long):
        sizes += long if LONG else ()
        return [n for n in sizes if n <= max(sizes[1], sizes[-1] * SCALE)]

    def one():
        for what, _, _, does, *sizes in kinds:
            for n in sizes_of(*sizes):
                does("%s-%d" % (what, n), n)

    rounds(one)
    server.flush()
    for what, command, more, _, *sizes in kinds:
        def each(n, than):
            return statistics.median(ratios("%s-%d" % (what, than), "%s-%d" % (what, n),
                                            (than + more) / (n + more)))
        sizes = sizes_of(*sizes)
        for i, n in enumerate(sizes[1:]):
            all, step = each(n, sizes[0]), each(n, sizes[i])
            line("" if i else what, "%s, %d" % (command, n),
                 "the time for each of %d" % sizes[0], "%.2f" % all,
                 "%.2f of %d" % (step, sizes[i]), "<= 1.2", judged(max(all, step), "<= 1.2"))


# --- the layout of RSMQ -----------------------------------------------------------

ONE_BY_ONE = """import subprocess, sys
p = subprocess.Popen(["mq-publish", "-i", "-l", sys.argv[1]],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
for line in open(sys.argv[2], "rb"):
    p.stdin.write(line)
    p.stdin.flush()
    assert len(p.stdout.readline()) == 33
p.stdin.close()
assert p.wait() == 0"""


def rsmq():
    """Against the rsmq of npm with 1 and with 100 messages in flight.  Node tells its time
    without what it takes to start; ours is the whole of it.  How many messages are in flight
    is the tools' own business, but for one row, where the next one goes in when the id of
    the last one has come out."""
    environment, key = server.environment, "rsmq:" + QUEUE

    def node(case, what, n, at_once):
        said = run("node", HERE + "/../peers/rsmq.js", "bench", what, QUEUE, n, at_once)
        measured.setdefault(case + "-node", []).append((float(said) * 1e9, 0))

    def fresh(given=None):
        server.flush()
        publish_file(given or "/dev/null")

    def one():
        fresh()
        timed("one-by-one", sys.executable, "-c", ONE_BY_ONE, QUEUE, lines(few))
        expect(few, key)
        for flight, n, at_once in ("1", few, 1), ("100", crowd, 100):
            fresh()
            timed("send-" + flight, "mq-publish", "-l", QUEUE, given=lines(n))
            expect(n, key)
            timed("receive-" + flight, "mq-consume", "-q", "-l", "--drain", QUEUE)
            fresh()
            node("send-" + flight, "send", n, at_once)
            expect(n, key)
            fresh(lines(n))
            node("receive-" + flight, "receive", n, at_once)
            if server.call("EXISTS", key):
                raise RuntimeError("rsmq: some are left")

    few, crowd = scaled(2000), scaled(20000)
    server.environment = dict(environment, MQ_LAYOUT="rsmq", RSMQ_SOCKET=server.socket,
                              NODE_PATH=HERE + "/../../build/node/node_modules")
    rounds(one)
    server.environment = environment
    server.flush()
    compare("RSMQ: send, 1 in flight", "mq-publish -l", "npm rsmq", "send-1", "send-1-node",
            ">= 100")
    compare("", "mq-publish -i, one by one", "npm rsmq", "one-by-one", "send-1-node")
    for flight in "1", "100":
        if flight == "100":
            compare("send, 100 in flight", "mq-publish -l", "npm rsmq", "send-100",
                    "send-100-node", ">= 6.5")
        compare("receive and delete, " + flight, "mq-consume -l", "npm rsmq",
                "receive-" + flight, "receive-%s-node" % flight, ">= 3.0")


# --- what a server pays for a thousand consumers and ten thousand queues ------------
# Each row is against a floor that is measured in the same run, in turn with it.  Figures are
# medians of the rounds, a ratio the median of the ratios of the rounds.  What counts is CPU
# wherever it can, of the server from INFO cpu, of a consumer without its children.

FLEET = {f.__name__: f for f in (
    fleet_crowd.wake, fleet_crowd.idle, fleet_work.stream, fleet_work.batch,
    fleet_work.forks, fleet_store.giveback, fleet_crowd.clean,
    fleet_store.group, fleet_store.options, fleet_store.memory, fleet_store.large,
    fleet_work.pickup, fleet_crowd.publishers, fleet_crowd.known,
    fleet_crowd.slots)}


def fleet():
    print("%-40s | %9s | %9s | %9s | %-9s |" %
          ("work", "ours", "floor", "result", "wanted"), flush=True)
    for name in os.environ.get("FLEET_ONLY", "").replace(",", " ").split() or FLEET:
        try:
            FLEET[name]()
        except RuntimeError as e:
            print("%s: %s" % (name, e), flush=True)


# --- all of them ------------------------------------------------------------------

PARTS = {f.__name__.rstrip("_"): f for f in (
    publish, single, print_, run_, many, memory_, idle, return_, purge, clean, stats,
    scale, waits, due, growth, rsmq)}


def main():
    global server
    if not os.access(BUILD + "/mq-publish", os.X_OK):
        sys.exit("bench: %s has no mq-publish" % BUILD)
    chosen = os.environ.get("BENCH_ONLY", "").split() or list(PARTS)
    # Their tables are their own, and so are their servers.
    if "cluster" in chosen:
        subprocess.run([sys.executable, "-B", HERE + "/cluster.py"], check=True)
    if "fleet" in chosen:
        fleet()
    chosen = [name for name in chosen if name not in ("cluster", "fleet")]
    for name in chosen:
        if name not in PARTS:
            sys.exit("bench: %s: no such part; there are %s" % (name, " ".join(PARTS)))
    if chosen:
        server = Server("redis")
        line("what", "ours", "the other", "ratio", "rounds", "wanted", "")
    for name in chosen:
        try:
            PARTS[name]()
        except (RuntimeError, subprocess.CalledProcessError) as e:
            sys.exit("bench: %s: %s" % (name, e))


if __name__ == "__main__":
    main()
