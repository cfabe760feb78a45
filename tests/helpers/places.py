# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Where every message of a server is, in one look that no other client can come
# between, and the laws that must hold in any such look.
#
#   look(server)           a View of all its queues
#   View.laws(accepted)    what is wrong with it: a list of texts, or []
#   server.call(args...)   one command and its reply
#
#   python3 tests/helpers/places.py    prints what $D's server holds, and what is wrong
import collections
import contextlib
import hashlib
import json
import os
import re
import sys
import time

import resp
from resp import Refused

LOOK = """
local out, call = { redis.call('TIME') }, redis.call
for _, k in ipairs(call('KEYS', '*')) do
  local kind = call('TYPE', k).ok
  local v
  if kind == 'list' then v = call('LRANGE', k, 0, -1)
  elseif kind == 'zset' then v = call('ZRANGE', k, 0, -1, 'WITHSCORES')
  elseif kind == 'hash' then v = call('HGETALL', k)
  elseif kind == 'set' then v = call('SMEMBERS', k)
  else v = { call('GET', k) } end
  out[#out + 1] = { k, v }
end
return out
"""
AT_TICK, IN_LINE = 2.0 ** 50, 2.0 ** 52
OUT_OF_LINE = ("ready", "priority", "time", "tick", "unacked")


def call(path, *args, limit=60):
    """Until the server has answered, but for so many seconds at most."""
    end = time.monotonic() + limit
    while True:
        try:
            with contextlib.closing(resp.at(path, 20)) as server:
                return server.call(*args)
        except (OSError, Refused) as e:
            if isinstance(e, Refused) and "LOADING" not in str(e):
                raise
            if time.monotonic() > end:
                raise
            time.sleep(0.005)


class Message:
    def __init__(self, element, queue, place, score=0.0):
        self.element, self.queue = element, queue
        self.place, self.score = place, score
        self.headers, self.payload = {}, element
        if element[:5] == b"\xff\x00\xbe\xbeJ":
            head, self.payload = element[5:].split(b"\n", 1)
            self.headers = json.loads(head)
        self.id = self.header("Id")
        self.group, self.key = self.header("Group"), self.header("Key")
        self.unique = self.header("Unique") or "done"

    def header(self, name):
        return self.headers.get("Mq-" + name, [None])[0]

    def line(self):
        return hashlib.sha1(self.group.encode()).hexdigest()[:13]

    def __str__(self):
        return "%s (%s, %s of %s)" % (self.id,
            self.payload[:30].decode(errors="replace"), self.place, self.queue)


def pairs(flat):
    return list(zip(flat[::2], flat[1::2]))


class View:
    def __init__(self, reply):
        self.us = int(reply[0][0]) * 1000000 + int(reply[0][1])
        self.keys = sorted(k.decode() for k, _ in reply[1:])
        self.messages, self.locks, self.clock = [], {}, {}
        self.held = collections.Counter()    # by queue, for connections that are alive
        for key, value in reply[1:]:
            key = key.decode()
            ours = re.match(r"rmq::queue::\[(.*?)\]::(\w+)$", key)
            if ours:
                self.add(ours.group(1), ours.group(2), value)
            held = re.search(r"^(.*)::queue::\[(.*?)\]::unacked$", key)
            if held:
                self.add(held.group(2), "unacked", value)
                if held.group(1) + "::heartbeat" in self.keys:
                    self.held[held.group(2)] += len(value)
        self.by_id = collections.defaultdict(list)
        for m in self.messages:
            self.by_id[m.id].append(m)

    def add(self, queue, what, value):
        if what in ("ready", "rejected", "unacked"):
            self.messages += [Message(e, queue, what) for e in reversed(value)]
        elif what == "priority":
            self.messages += [Message(e[32:], queue, what, float(s))
                              for e, s in pairs(value)]
        elif what == "delayed":
            for e, s in pairs(value):
                s = float(s)
                self.messages.append(Message(e[32:], queue,
                    "line" if s >= IN_LINE else
                    "tick" if s >= AT_TICK else "time", s))
        elif what == "locks":
            self.locks[queue] = {k.decode(): v.decode() for k, v in pairs(value)}
        elif what == "clock":
            self.clock[queue] = int(value[0])

    def of(self, queue, *places):
        return [m for m in self.messages
                if m.queue == queue and (not places or m.place in places)]

    def count(self, queue, *places):
        return len(self.of(queue, *places))

    def laws(self, accepted=(), ended=()):
        """accepted: ids that were accepted before; ended: those that a script
        has recorded, or that somebody may have removed, by now."""
        wrong = []
        for id, where in self.by_id.items():
            if id is not None and len(where) > 1:
                wrong.append("twice: " + " and ".join(map(str, where)))
        for id in accepted:
            if id not in self.by_id and id not in ended:
                wrong.append("lost: " + id)
        queues = set(self.locks) | {m.queue for m in self.messages}
        for queue in sorted(queues):
            locks = dict(self.locks.get(queue, {}))
            wrong += self.groups(queue, locks)
            wrong += self.key_locks(queue, locks)
            wrong += self.members(queue, locks)
            wrong += ["what is %s: %s of %s" % (k, v, queue)
                      for k, v in locks.items() if k not in "etETs"]
        return wrong

    def groups(self, queue, locks):
        """Takes the locks that it knows."""
        wrong, out, line = [], {}, {}
        for m in self.of(queue):
            if m.group is None or m.id is None:
                continue
            if m.place in OUT_OF_LINE:
                out.setdefault(m.line(), []).append(m)
            elif m.place == "line":
                line.setdefault(m.line(), []).append(m)
                if m.score != IN_LINE + int(m.line(), 16):
                    wrong.append("in the line of another group: %s" % m)
        for group in set(out) | set(line):
            # A slot has two hex digits more; see group-slots.
            slots = [k for k in locks if re.fullmatch("g" + group + "(..)?", k)]
            holders = sorted(locks.pop(k).split(" ")[0] for k in slots)
            first = out.get(group, [])
            if sorted(m.id for m in first) != holders or not holders:
                wrong.append("%s holds group %s of %s, but out of line: %s" % (
                    " ".join(holders) or None, group, queue,
                    ", ".join(map(str, first)) or "none"))
        for lock in [k for k in locks if k[0] == "g"]:
            wrong.append("group lock without a group: %s %s of %s" % (
                lock, locks.pop(lock), queue))
        return wrong

    def key_locks(self, queue, locks):
        wrong = []
        for lock in [k for k in locks if k[0] == "k"]:
            holder, how = locks.pop(lock).split(" ")[:2]
            where = [m for m in self.by_id.get(holder, [])
                     if m.queue == queue and m.key == lock[1:]
                     and (m.place in OUT_OF_LINE and m.place != "unacked"
                          or m.place == "line"
                          or m.place == "unacked" and how == "done")]
            if how in ("queued", "done") and not where:
                wrong.append("key lock without a message: %s %s %s of %s: %s" % (
                    lock, holder, how, queue,
                    ", ".join(map(str, self.by_id.get(holder, []))) or "gone"))
        return wrong

    def members(self, queue, locks):
        """Takes the marks of open members of batches."""
        open = {locks.pop(k).split(" ")[0] for k in list(locks) if k[0] == "m"}
        there = {m.id for m in self.of(queue)
                 if m.id and m.place != "rejected" and m.header("Batch")}
        return ["open in a batch of %s, but not there: %s" % (queue, id)
                for id in open - there] + [
            "there, but not open in its batch of %s: %s" % (queue, id)
            for id in there - open]


def look(server):
    return View(server.call("EVAL", LOOK, 0))


if __name__ == "__main__":
    view = look(resp.at(os.environ["D"] + "/redis.sock"))
    for m in view.messages:
        print(m)
    print(view.locks)
    wrong = view.laws()
    print("\n".join(wrong))
    sys.exit(bool(wrong))
