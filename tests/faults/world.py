# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The server of a round, whoever is killed, and what expiry does on it.
#
#   begin(defaults...)          BUILD, and the words of the command line, which are these
#                               where they are ''
#   state_of(pid)               its letter in /proc, or Z if it has gone
#   World(directory, layout, queues)
#   start() kill() shutdown()   redis-server, on what is in the directory
#   call(args...)               one command and its reply, as soon as it can be
#   look()                      where everything is, in one step
#   doom(tag)                   its connections are to expire: it is dead
#   reap()                      they do; how many messages they held
import os
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../helpers")

import places    # noqa: E402

LIMIT = 120   # seconds, for what never takes so long


def terminated(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(143)


def begin(*defaults):
    for name in ("MQ_URL", "MQ_LAYOUT", "MQ_PASSWORD_FILE", "REDISCLI_AUTH"):
        os.environ.pop(name, None)
    signal.signal(signal.SIGTERM, terminated)
    return (os.path.abspath(os.environ["BUILD"]),
            *(type(d)(word or d) for word, d in zip(sys.argv[1:], defaults)))


def state_of(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


# How many messages these connections have, and by 'end' the end of their leases, of those that
# have one.  KEYS are the queues.
HELD = {"rmq": """
local n = 0
for i = 2, #ARGV do
  local c = 'rmq::connection::' .. ARGV[i] .. '::'
  if ARGV[1] ~= 'end' or redis.call('DEL', c .. 'heartbeat') == 1 then
    for _, q in ipairs(KEYS) do
      n = n + redis.call('LLEN', c .. 'queue::[' .. q .. ']::unacked')
    end
  end
end
return n
""", "rsmq": """
local n = 0
local t = redis.call('TIME')
local now = string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000))
local function end_lease(q, held)
  local ids = redis.call('HGETALL', held)
  for i = 1, #ids, 2 do
    if redis.call('HGET', 'rsmq:' .. q .. ':Q', ids[i] .. ':rc') == ids[i + 1] then
      redis.call('ZADD', 'rsmq:' .. q, 'XX', now, ids[i])
    end
  end
  redis.call('DEL', held)
end
for i = 2, #ARGV do
  for _, q in ipairs(KEYS) do
    local held = 'rsmq:' .. q .. ':Xheld:' .. ARGV[i]
    n = n + redis.call('HLEN', held)
    if ARGV[1] == 'end' then end_lease(q, held) end
  end
  if ARGV[1] == 'end' then redis.call('DEL', 'rsmq::connection:' .. ARGV[i]) end
end
return n
"""}
# Those that may be alive.
ALIVE = {"rmq": "rmq::connection::*::heartbeat", "rsmq": "rsmq::connection:*"}


# Redis 6.2 lets DEBUG be used in any case, and does not know the option.
DEBUG = [] if " v=6." in subprocess.check_output(
    ["redis-server", "--version"], text=True) else \
    ["--enable-debug-command", "yes"]


class World:
    def __init__(self, directory, layout, queues):
        self.D, self.layout, self.queues = directory, layout, queues
        self.sock, self.far = directory + "/redis.sock", directory + "/far.sock"
        self.redis, self.lock = None, threading.Lock()
        self.dead, self.in_flight, self.killed = set(), 0, False
        self.rights = {"some": ["~*", "&*", "+@all"]}

    def url(self, far, user):
        """far: through the proxy; user: one of those who may lose rights."""
        return "unix://%s%s?layout=%s" % (
            user + ":pw@" if user else "", self.far if far else self.sock,
            self.layout)

    # --- redis-server ---

    def start(self):
        # Not on the command line, where Valkey takes backslashes away.
        with open(self.D + "/users", "w") as f:
            f.write("user default on nopass ~* &* +@all\n")
            for user, rules in self.rights.items():
                f.write("user %s on >pw %s\n" % (user, " ".join(rules)))
        self.redis = subprocess.Popen(["redis-server", "--port", "0",
            "--unixsocket", self.sock, "--dir", self.D, "--save", "",
            "--appendonly", "yes", "--appendfsync", "always",
            *DEBUG, "--logfile", self.D + "/redis.log",
            "--aclfile", self.D + "/users"])
        self.call("PING")
        if self.killed:
            self.write_anew()

    def write_anew(self):
        """What mq-server(7) says to do after a crash: else the next start may carry out
        what this one took back."""
        self.call("BGREWRITEAOF")
        while any(b"aof_rewrite_%s:1" % x in self.call("INFO", "persistence")
                  for x in (b"in_progress", b"scheduled")):
            time.sleep(0.01)
        self.killed = False

    def kill(self):
        self.redis.kill()
        self.redis.wait()
        self.killed = True

    def shutdown(self):
        """Who kills clients at the same time may kill this one before it is heard."""
        end = time.monotonic() + LIMIT
        while self.redis.poll() is None and time.monotonic() < end:
            try:
                places.call(self.sock, "SHUTDOWN", "NOSAVE", limit=0)
            except OSError:
                pass
            try:
                self.redis.wait(2)
            except subprocess.TimeoutExpired:
                pass
        self.redis.wait(0)

    def call(self, *args):
        return places.call(self.sock, *args, limit=LIMIT)

    def look(self):
        return self.call("EVAL", places.LOOK, 0)

    # --- the lease of the dead ---

    def connections(self):
        """name of each that has a lease; the tag comes before the last dash"""
        kind, keys = self.layout, self.call("KEYS", ALIVE[self.layout])
        return [k.decode().split("::")[2] if kind == "rmq" else
                k.decode().split(":", 3)[3] for k in keys]

    def of_tags(self, tags, what="look"):
        """How many messages the connections of these have; by 'end' their leases are over."""
        names = [c for c in self.connections() if c.rsplit("-", 1)[0] in tags]
        return self.call("EVAL", HELD[self.layout], len(self.queues), *self.queues, what,
                         *names) if names else 0

    def doom(self, tag):
        with self.lock:
            self.dead.add(tag)

    def reap(self):
        """What they sent last may still be on its way: so again and again."""
        with self.lock:
            try:
                if self.dead:
                    self.in_flight += self.of_tags(self.dead, "end")
            except places.Refused:
                pass    # the server takes no writes now

    def allow(self, tag):
        """It lives on, but what it holds now may be run again."""
        with self.lock:
            self.in_flight += self.of_tags({tag})

    def take_for_dead(self, tag):
        """Now, and never mind that it lives."""
        with self.lock:
            self.in_flight += self.of_tags({tag}, "end")
