# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Servers, clients, processes and the table of fleet, see bench.py.
#
#   Server(name)         a private redis-server: call, pipe, cpu, commands, fill
#   tool(server, ...)    runs a tool to its end; a Run: wall, own CPU
#   start(server, ...)   starts one that goes on, ended by stop_all()
#   Waiting(server)      how long another client waits meanwhile
#   rounds(f)            what f returns, a dict, ROUNDS times
#   ratio, value, row    lines of the table
import atexit
import collections
import contextlib
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE + "/../helpers")

import resp    # noqa: E402

BUILD = os.path.abspath(os.environ.get("MQ_BUILD", HERE + "/../../build"))
ROUNDS = int(os.environ.get("ROUNDS", "5"))
DIR = tempfile.mkdtemp(prefix="mq-fleet.")
ERRORS = DIR + "/stderr"
QUEUE = "bench"
READY = "rmq::queue::[%s]::ready" % QUEUE
REJECTED = "rmq::queue::[%s]::rejected" % QUEUE
LIMIT = 300     # seconds, for what never takes so long

processes = []


def number(name, default):
    """A size that the environment can change: FLEET_NAME."""
    return numbers(name, str(default))[0]


def numbers(name, default):
    return [int(n) for n in
            os.environ.get("FLEET_" + name, default).split(",")]


# --- servers ------------------------------------------------------------------

class Server:
    def __init__(self, name):
        self.socket = "%s/%s.sock" % (DIR, name)
        log = open("%s/%s.log" % (DIR, name), "w")
        # Consumers of a crowd connect all at once.
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket,
             "--dir", DIR, "--save", "", "--appendonly", "no",
             "--maxclients", "40000", "--slowlog-log-slower-than", "1000",
             "--slowlog-max-len", "1000"], stdout=log)
        processes.append(self.process)
        until(self.connect, "redis-server")
        self.environment = dict(os.environ, MQ_URL="unix://" + self.socket)
        for name in "MQ_LAYOUT", "MQ_PASSWORD_FILE", "REDISCLI_AUTH":
            self.environment.pop(name, None)

    def connect(self):
        try:
            self.client = resp.at(self.socket)
        except OSError:
            return False
        self.call, self.pipe = self.client.call, self.client.pipe
        return True

    def another(self):
        """One more connection to it."""
        return contextlib.closing(resp.at(self.socket))

    def info(self, section):
        lines = self.call("INFO", section).decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def cpu(self):
        """Seconds that it has used."""
        info = self.info("cpu")
        return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])

    def commands(self):
        return int(self.info("stats")["total_commands_processed"])

    def slowest(self):
        """The longest command since the last call, in ms: 0 below one."""
        entries = self.call("SLOWLOG", "GET", 1000)
        self.call("SLOWLOG", "RESET")
        return max((entry[2] for entry in entries), default=0) / 1e3

    def flush(self):
        self.call("FLUSHALL", "SYNC")

    def count(self, key=READY):
        return self.call("LLEN", key)

    def connections(self):
        return self.call("SCARD", "rmq::connections")

    def held(self):
        """Messages in the unacked lists of all connections, for few keys."""
        keys = self.call("KEYS", "rmq::connection::*::unacked")
        return sum(self.pipe([("LLEN", key) for key in keys]))

    def fill(self, n):
        tool(self, "mq-publish", "-q", "-l", QUEUE, stdin=lines(n))

    def stop(self):
        end(self.process)


def until(ready, what, every=0.005):
    deadline = time.monotonic() + LIMIT
    while not ready():
        if time.monotonic() > deadline:
            raise RuntimeError("%s: not in %d s" % (what, LIMIT))
        time.sleep(every)


# --- processes ----------------------------------------------------------------

# What a process has cost: wall and own CPU in seconds.
Run = collections.namedtuple("Run", "wall cpu")


def own_cpu(pid):
    """Without its children, to the nanosecond; of an ended process, too."""
    with open("/proc/%d/schedstat" % pid) as f:
        return int(f.read().split()[0]) / 1e9


def start(server, command, *args, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL):
    """The tools of the build under test come first."""
    path = os.path.join(BUILD, command)
    with open(ERRORS, "a") as errors:
        process = subprocess.Popen(
            [path if os.path.exists(path) else command, *map(str, args)], stdin=stdin,
            stdout=stdout, stderr=errors, env=server.environment if server else os.environ)
    processes.append(process)
    return process


def ended(process, began, statuses=(0,)):
    """Waits for a process, and reads what it used before it is reaped."""
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    wall = time.monotonic() - began
    cpu = own_cpu(process.pid)
    process.wait()
    processes.remove(process)
    if process.returncode not in statuses:
        with open(ERRORS) as errors:
            raise RuntimeError("%s: status %d: %s" % (
                process.args, process.returncode, errors.read()[-500:]))
    return Run(wall, cpu)


def lines(n):
    return b"".join(b"%-100d\n" % i for i in range(n))


def tool(server, command, *args, stdin=b""):
    with tempfile.TemporaryFile(dir=DIR) as f:
        f.write(stdin)
        f.seek(0)
        began = time.monotonic()
        return ended(start(server, command, *args, stdin=f), began)


def end(process):
    if process in processes:
        process.terminate()
        process.wait()
        processes.remove(process)


def stop_all(some):
    """All are told before one is waited for."""
    for process in some:
        process.terminate()
    for process in some:
        process.wait()
        processes.remove(process)


def compiled(name, *flags):
    """The path of a program of this folder."""
    path = "%s/%s" % (DIR, name)
    if not os.path.exists(path):
        subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-O2",
                        "-D_GNU_SOURCE", "-o", path,
                        "%s/%s.c" % (HERE, name), *flags], check=True)
    return path


class Waiting:
    """Another client of a server at work: its longest wait and the 99.9th percentile, ns."""

    def __init__(self, server):
        self.server = server

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, "-B", HERE + "/waits.py", self.server.socket],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        # It asks a hundred times before that.
        time.sleep(0.2)
        return self

    def __exit__(self, *_):
        self.longest, self.most = map(int, self.process.communicate()[0].split())


def clean_up():
    for process in list(processes):
        process.kill()
        process.wait()
    shutil.rmtree(DIR, ignore_errors=True)


atexit.register(clean_up)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

# --- the table ----------------------------------------------------------------


def rounds(f):
    return [f() for _ in range(ROUNDS)]


def median(samples, name):
    return statistics.median(s[name] for s in samples)


def judged(x, target):
    if target == "-":
        return "-"
    how, limit = target.split()
    return "ok" if (x <= float(limit) if how == "<=" else
                    x >= float(limit)) else "short"


def shown(x):
    if isinstance(x, str):
        return x
    return "%.0f" % x if abs(x) >= 1000 else "%.3g" % x


def row(name, ours, floor, x, target):
    print("%-40s | %9s | %9s | %9s | %-9s | %s" % (
        name, shown(ours), shown(floor), shown(x), target,
        judged(x, target) if not isinstance(x, str) else x), flush=True)


def ratio(name, samples, ours, floor, target):
    """Ours by the floor's, round by round; a rate has ours as the floor."""
    x = statistics.median(s[ours] / s[floor] for s in samples)
    row(name, median(samples, ours), median(samples, floor), x, target)


def value(name, samples, ours, target, floor=None):
    """A value that has a limit of its own, with the floor beside it."""
    x = median(samples, ours)
    row(name, x, median(samples, floor) if floor else "-", x, target)
