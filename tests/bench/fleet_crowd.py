# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Rows of fleet, see bench.py: many consumers, many queues, many clients.
import threading
import time

from fleetlib import (QUEUE, READY, Server, lines, median, number, numbers,
                      ratio, rounds, row, start, stop_all, tool, until, value)


# --- wake: what one message costs, with N consumers idle ------------------------

def blmove(server):
    """The floor: one client with a blocking command, and its ack."""
    try:
        with server.another() as client:
            while True:
                message = client.call("BLMOVE", READY, "held", "RIGHT",
                                      "LEFT", 0)
                client.call("LREM", "held", -1, message)
    except (OSError, RuntimeError):
        pass    # The server has been stopped.


def crowd(server, n, queues=(QUEUE,)):
    """So many idle consumers of these queues."""
    consumers = []
    while len(consumers) < n:
        consumers += [start(server, "mq-consume", "-q", *queues)
                      for _ in range(min(50, n - len(consumers)))]
        until(lambda: server.connections() >= len(consumers), "consumers")
    return consumers


def dismissed(servers, crowds):
    for some in crowds:
        stop_all(some)
    for server in servers.values():
        server.stop()


def pushed(server, messages, every):
    for i in range(messages):
        tool(server, "redis-cli", "-s", server.socket, "lpush", READY,
             "message %d" % i)
        time.sleep(every)
    until(lambda: server.count() == 0 and server.held() == 0, "messages", 0.1)


def wake():
    sizes = numbers("N", "1,50,200,1000")
    messages = number("MESSAGES", 100)
    servers = {n: Server("wake%d" % n) for n in [0] + sizes}
    threading.Thread(target=blmove, args=(servers[0],), daemon=True).start()
    crowds = [crowd(servers[n], n) for n in sizes]
    every = {n: 0.03 for n in servers}
    time.sleep(5)
    for n in sizes:
        # A server that is full would wake fewer.
        before = servers[n].cpu()
        pushed(servers[n], 3, 0.3)
        every[n] = max(0.03, (servers[n].cpu() - before) / 3)

    def sample():
        idle = {n: (servers[n].cpu(), time.monotonic()) for n in servers}
        time.sleep(4)
        us = {}
        for n, server in servers.items():
            cpu, now = server.cpu(), time.monotonic()
            idling = (cpu - idle[n][0]) / (now - idle[n][1])
            began = time.monotonic()
            pushed(server, messages, every[n])
            took = time.monotonic() - began
            us[n] = (server.cpu() - cpu - idling * took) / messages * 1e6
        return us

    samples = rounds(sample)
    for n in sizes:
        if n == 1:
            ratio("wake: N = 1, us a message, BLMOVE", samples, 1, 0, "<= 2.5")
        else:
            ratio("wake: N = %d, us a message, N = 1" % n, samples, n,
                  sizes[0], "<= 1.5")
    dismissed(servers, crowds)


# --- idle: what those cost that have nothing to do --------------------------------

def idle():
    n, seconds = number("CONSUMERS", 1000), number("SECONDS", 12)
    queues = ["queue-%d" % i for i in range(number("QUEUES", 1000))]
    kinds = {"floor": (0, ()), "%d consumers" % n: (n, (QUEUE,)),
             "1 of %d queues" % len(queues): (1, queues),
             "5 of %d queues" % len(queues): (5, queues)}
    servers = {kind: Server("idle%d" % i) for i, kind in enumerate(kinds)}
    crowds = [crowd(servers[kind], n, queues)
              for kind, (n, queues) in kinds.items()]
    time.sleep(5)

    def sample():
        before = {k: (s.cpu(), s.commands(), time.monotonic())
                  for k, s in servers.items()}
        time.sleep(seconds)
        found = {}
        for kind, server in servers.items():
            cpu, commands, began = before[kind]
            took = time.monotonic() - began
            found[kind] = (server.cpu() - cpu) / took * 100
            found[kind, "commands"] = (server.commands() - commands) / took
        return found

    samples = rounds(sample)
    for kind in list(kinds)[1:]:
        value("idle: %s, %% CPU" % kind, samples, kind, "<= 0.8", "floor")
        value("idle: %s, commands/s" % kind, samples, (kind, "commands"),
              "<= 300" if len(kinds[kind][1]) == 1 else "<= 500")
    dismissed(servers, crowds)


# --- slots: N consumers that share 4 slots ------------------------------------------

def slots():
    n, messages = number("SHARING", 100), number("MESSAGES", 400)
    servers = {kind: Server("slots-" + kind) for kind in ("one", "many")}
    work = QUEUE, "--", "sleep", "0.05"
    for server in servers.values():
        tool(server, "mq-set", "-q", "--new", QUEUE, "slots-shared=4")
    crowds = [[start(servers["one"], "mq-consume", "-q", "-j4", *work)],
              [start(servers["many"], "mq-consume", "-q", *work) for _ in range(n)]]
    until(lambda: servers["many"].connections() >= n, "consumers")
    time.sleep(5)

    def sample():
        found, idle = {}, {k: (s.cpu(), time.monotonic()) for k, s in servers.items()}
        time.sleep(4)
        for kind, server in servers.items():
            before, began = server.cpu(), time.monotonic()
            idling = (before - idle[kind][0]) / (began - idle[kind][1])
            tool(server, "mq-publish", "-q", "-l", QUEUE, stdin=lines(messages))
            until(lambda: server.count() == 0 and server.held() == 0, "messages", 0.02)
            found[kind, "s"] = took = time.monotonic() - began
            found[kind] = (server.cpu() - before - idling * took) / messages * 1e6
        return found

    samples = rounds(sample)
    ratio("slots: 4 of %d consumers, server us, one -j4" % n, samples, "many",
          "one", "<= 1.5")
    ratio("slots: 4 of %d consumers, time, one -j4" % n, samples, ("many", "s"),
          ("one", "s"), "<= 1.2")
    dismissed(servers, crowds)


# --- clean: who looks after 10,000 queues -------------------------------------------

def clean():
    """Commands of the server in two minutes, once, all at the same time."""
    queues, seconds = number("QUEUES", 10000), number("SECONDS", 120)
    kinds = {(1, 1): 0, (1, queues): 0, (5, 1): 0, (5, queues): 0}
    servers = {kind: Server("clean%d-%d" % kind) for kind in kinds}
    crowds = []
    for (consumers, known), server in servers.items():
        server.pipe([("SADD", "rmq::queues", "queue-%d" % i)
                     for i in range(known)])
        server.pipe([("LPUSH", "rmq::queue::[queue-%d]::ready" % i, "x")
                     for i in range(known)])
        crowds.append(crowd(server, consumers))
    time.sleep(5)
    before = {kind: server.commands() for kind, server in servers.items()}
    time.sleep(seconds)
    per_minute = {kind: (server.commands() - before[kind]) * 60 / seconds
                  for kind, server in servers.items()}
    one = per_minute[1, queues] - per_minute[1, 1]
    five = per_minute[5, queues] - per_minute[5, 1]
    row("clean: 1 consumer, commands/minute", one, queues, one / queues, "-")
    row("clean: 5 consumers, commands/minute", five, one, five / max(one, 1),
        "<= 1.3")
    row("clean: each of 5, commands/minute", five / 5, one, five / 5 /
        max(one, 1), "-")
    dismissed(servers, crowds)


# --- publishers: 200 at once, one message each ----------------------------------------

def publishers():
    n = number("PUBLISHERS", 200)
    server = Server("publishers")

    def us(*command):
        server.flush()
        before = server.cpu()
        some = [start(server, *command) for _ in range(n)]
        for process in some:
            process.wait()
        until(lambda: server.count() == n, "messages")
        stop_all(some)
        return (server.cpu() - before) / n * 1e6

    def sample():
        cli = "redis-cli", "-s", server.socket
        return {"mq": us("mq-publish", "-q", QUEUE, "payload"),
                "raw": us("mq-publish", "-q", "--raw", QUEUE, "payload"),
                "cli": us(*cli, "lpush", READY, "payload")}

    samples = rounds(sample)
    ratio("publishers: %d at once, us each" % n, samples, "mq", "cli",
          "<= 1.3")
    ratio("publishers: the same, --raw", samples, "raw", "cli", "-")
    server.stop()


# --- known: what is listed, and not in use ----------------------------------------------

def list_connections(server, n, alive):
    """So many connections, each of a queue of its own, dead but for some."""
    name = "rmq::connection::go-%d::"
    server.pipe([("SADD", "rmq::connections", "go-%d" % i) for i in range(n)])
    server.pipe([("SADD", name % i + "queues", "queue-%d" % (i % 10))
                 for i in range(n)])
    server.pipe([("SET", name % i + "heartbeat", 1) for i in range(alive)])


def list_consumers(server, n):
    """So many live consumers of other queues, as these tools join."""
    name = "rmq::connection::mq-%d::"
    later = int((time.time() + 3600) * 1000)
    server.pipe([("SADD", "rmq::connections", "mq-%d" % i) for i in range(n)])
    server.pipe([("SADD", name % i + "queues", "queue-%d" % (i % 10))
                 for i in range(n)])
    server.pipe([("SET", name % i + "heartbeat", 1) for i in range(n)])
    server.pipe([("ZADD", "rmq::holders", later, "mq-%d" % i)
                 for i in range(n)])


def listed(name, queues):
    """A server with so many queues."""
    server = Server(name)
    for first in range(0, queues, 10000):
        last = min(queues, first + 10000)
        server.call("SADD", "rmq::queues",
                    *("queue-%d" % i for i in range(first, last)))
    server.fill(1)
    server.call("DEL", READY)
    return server


def known():
    queues, connections = number("QUEUES", 1000000), number("LISTED", 5000)
    kinds = {"few": (10, 20), "queues": (queues, 20),
             "connections": (10, connections), "consumers": (10, connections)}
    servers = {kind: listed("known-" + kind, size[0])
               for kind, size in kinds.items()}
    crowds = [start(s, "mq-consume", "-q", "--no-clean", QUEUE)
              for s in servers.values()]
    time.sleep(3)
    dead = "rmq::connection::dead::"
    unacked = dead + "queue::[%s]::unacked" % QUEUE

    def ms(server, work):
        before = server.cpu()
        work()
        return (server.cpu() - before) * 1e3

    def claim(server):
        pushed(server, 20, 0.01)

    def one_dead(server):
        """The others that are dead hold nothing, and are gone at once."""
        server.call("SADD", "rmq::connections", "dead")
        server.call("SADD", dead + "queues", QUEUE)
        server.call("LPUSH", unacked, *("m%d" % i for i in range(100)))
        tool(server, "mq-clean", "-q")
        until(lambda: server.count() == 0, "reclaimed messages")

    def sample():
        found = {}
        for kind, server in servers.items():
            if kind == "consumers":
                list_consumers(server, kinds[kind][1])
            else:
                list_connections(server, kinds[kind][1], 10)
            found["stats", kind] = ms(server, lambda: tool(
                server, "mq-stats", QUEUE))
            server.call("LPUSH", "rmq::queue::[other]::ready", "x")
            found["start", kind] = ms(server, lambda: tool(
                server, "mq-consume", "-q", "--no-clean", "-n1", "other"))
            # Before it ends it has to know that nobody holds anything.
            found["drain", kind] = ms(server, lambda: tool(
                server, "mq-consume", "-q", "--no-clean", "--drain", QUEUE))
            found["claim of 20", kind] = ms(server, lambda: claim(server))
        for kind, server in servers.items():
            found["first clean", kind] = ms(server, lambda: one_dead(server))
            found["clean", kind] = ms(server, lambda: one_dead(server))
        return found

    samples = rounds(sample)
    for kind, what in (("queues", "%d queues" % queues),
                       ("connections", "%d connections" % connections)):
        for work in "stats", "start", "claim of 20", "clean", "drain":
            ratio("known: %s, %s, ms" % (what, work), samples, (work, kind),
                  (work, "few"), "-" if work == "drain" else "<= 1.5")
    ratio("known: %d consumers of these tools, stats, ms" % connections,
          samples, ("stats", "consumers"), ("stats", "few"), "<= 1.5")
    extra = (connections - 20) / 1e3
    dead_each = (median(samples, ("first clean", "connections")) -
                 median(samples, ("first clean", "few"))) / extra
    row("known: a dead connection more, clean, us", dead_each, "-", dead_each,
        "-")
    dismissed(servers, [crowds])
