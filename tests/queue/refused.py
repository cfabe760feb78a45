# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Steps that the server refuses: each script with messages of many kinds, once for each of its keys
# with one of another type, once with full memory, and of some for a user without a right.  A refused
# step has changed nothing, or, of PARTLY, has left each message in one place.  With full memory, what
# makes room is not refused.
#
#   refused.py SOCKET FOLDER [WORDS]    FOLDER is common/queue; WORDS: only the steps of which
#                                       the script and its arguments begin so
import hashlib
import json
import re
import subprocess
import sys

import resp

server, folder, words = resp.at(sys.argv[1], 60), sys.argv[2], "".join(sys.argv[3:])

# --- messages ---

NAMES = ("ready", "priority", "delayed", "locks", "clock", "result::")
Q, R = ["rmq::queue::[q]::" + n for n in NAMES], ["rmq::queue::[r]::" + n for n in NAMES]
READY, PRIORITY, DELAYED, LOCKS, CLOCK, RESULT = Q
REJECTED, OUTGOING = "rmq::queue::[q]::rejected", "rmq::queue::[q]::outgoing"
Z, Z2 = ["z", "h", "x", "d"], ["z2", "h2", "x2", "d2"]
FAR, STAMP = 99999999999999, " 1" + "0" * 15
STALE = b"stale"


def ident(n):
    return "%032d" % n


def message(n, **options):
    head = {"Mq-Id": [ident(n)], **{"Mq-" + k.replace("_", "-"): [str(v)] for k, v in options.items()}}
    return b"\xff\x00\xbe\xbeJ" + json.dumps(head).encode() + b"\n"


def member(element):
    return b"n" * 32 + element


def in_line(element):
    return "ZADD", DELAYED, 2 ** 52 + int(hashlib.sha1(b"g").hexdigest()[:13], 16), member(element)


GROUP = ("HSET", LOCKS, "g" + hashlib.sha1(b"g").hexdigest()[:13], ident(1) + STAMP, "kk", ident(1) + " done" + STAMP)
TICK = ("SET", CLOCK, 1)
BATCH = (("HSET", RESULT + "batch:b", "total", 1, "open", 1, "released", 0),
         ("HSET", LOCKS, "m" + ident(1), ident(1) + " b" + STAMP))


def follower(**options):
    score = 2 ** 51 + int(hashlib.sha1(b"b").hexdigest()[:12], 16)
    return "ZADD", DELAYED, score, member(message(3, After="b", **options))


# An element, and what else is there.
KINDS = (
    (b"plain", ()),
    (b"long" * 2000, ()),
    (message(1, Priority=3), ()),
    (message(1, From_Tick=1), (TICK,)),
    (message(1, Group="g", Key="k"), (GROUP, in_line(message(2, Group="g")))),
    (message(1, Group="g", Key="k"), (GROUP, in_line(message(2, Group="g", Priority=3)))),
    (message(1, Group="g", Key="k"), (GROUP, in_line(message(2, Group="g", Due=FAR)))),
    (message(1, Group="g", Key="k"), (GROUP, TICK, in_line(message(2, Group="g", From_Tick=1)))),
    (message(1, Batch="b"), (*BATCH, follower())),
    (message(1, Batch="b"), (*BATCH, follower(Priority=3))),
    (message(1, Reply_To=ident(1)), (("SET", RESULT, 1),)),
)

# --- steps: what it is called, script, keys, arguments, what there is ---

# Many messages, one by one.
PARTLY = {"rmq/claim", "rmq/promote", "rmq/reclaim_dead", "rmq/repair", "rsmq/ack", "rsmq/claim"}
# Rights that a script does not ask for by need().
RIGHTS = {"rmq/claim": ("HDEL", "HINCRBY", "HMGET", "HSET", "LREM", "LTRIM", "ZREMRANGEBYRANK"), "rmq/give_back": ("HEXISTS", "LTRIM"),
          "rmq/reclaim_dead": ("LTRIM",), "set": ("HDEL", "HSET")}
# Those that it looks for by other means where the server cannot tell, as before Redis 7.
OLD_RIGHTS = {"rmq/census": ("LREM", "LSET"), "rmq/trim": ("LREM", "LSET", "LTRIM"),
              "rmq/move": ("HDEL", "HGET", "HSET", "LPUSH", "LREM", "LSET", "SET", "ZADD", "ZREM")}
CONNECTION = (("SADD", "rmq::connections", "c"), ("SADD", "queues", "q"), ("SET", "beat", 1))


def settlements(e, more):
    held = (("LPUSH", "u", "old", e, "new"), *more)
    yield "rmq/ack", ["u"], [3, "old", "new", "x" * 32, 2], held
    yield "rmq/ack", ["u", *Q], [3, "old", "new", "x" * 32, 2], held
    for how, ms, to in (("ack", 0, []), ("reject", 0, [REJECTED]), ("front", 0, []), ("again", 0, []),
                        ("again", 9000, []), ("push", 0, Q), ("push", 0, R), ("push", 0, [OUTGOING])):
        yield "rmq/settle", [*Q, "u", "known", *to], [how, e, "", 0, ms, member(b"")], held
    yield "rmq/give_back", [*Q, "u", "known"], [3], held
    for first, second in (("reject", "front"), ("front", "again"), ("again", "reject")):
        two = [(how, what, "", 0, 9000 if how == "again" else 0, member(b""))
               for how, what in ((first, e), (second, "old"))]
        yield "rmq/settle_equal", ["u", READY, DELAYED, REJECTED, "known"], ["ack", "new", *two[0], *two[1]], held
    yield "rmq/receipts", ["u", "info"], [3], held


def arrivals(e, more):
    room, there = [*Q, "counters", "known", "settings", "marks"], [m for m in more if m[1] == CLOCK]
    for when, ms in (("now", 0), ("in", 9000)):
        yield "rmq/publish", room, [when, ms, "", "", "", "", "", "", 1, 0, -1, member(e), member(b"z")], there
    yield "rmq/arrive", [*R, "incoming", "none"], ["q", "i1 rejected r", e, "i2 push r", e.replace(b"1", b"7")], []
    due = ("ZADD", DELAYED, 1, member(e), 2, b"m" + member(e)[1:], 3, member(b"z"))
    yield "rmq/promote", Q, [9], (due, *more)
    keys = [*Q, "u", "beat", "paused", "rate", "info", "watch", "idle"]
    for ready in ((), ("1", "2", "3", "4", "5")):
        yield "rmq/claim", keys, [9, 9999, 1, 9, "q", "", "", ""], (
            due, *CONNECTION, *([("LPUSH", READY, *ready)] if ready else ()), *more)
        yield "rmq/claim", [*keys, "slots", "settings"], [9, 9999, 1, 9, "q", "", "", "", "", "beat"], (
            due, *CONNECTION, ("HSET", "settings", "slots-shared", 3), ("HSET", "slots", "gone", 2),
            *([("LPUSH", READY, *ready)] if ready else ()), *more)


# A message takes the place of one that is due later, of one that waits elsewhere, and of one that a
# newer one has replaced before; claims drop that one.
def replacing():
    newer = message(4, Key="k", Unique="queued", Group="g")
    old = message(1, Key="k", Unique="queued", Group="g", Batch="b", Reply_To=ident(1))
    more = (("HSET", LOCKS, "g" + hashlib.sha1(b"g").hexdigest()[:13], ident(1) + STAMP), *BATCH, follower(),
            ("SET", RESULT, 1), in_line(message(2, Group="g")))
    lock = ident(1) + " queued" + STAMP
    mark = ("HSET", LOCKS, "r" + ident(1), ident(1) + " " + ident(4) + STAMP)
    room = [*Q, "counters", "known", "settings", "marks"]
    for there in ((("ZADD", DELAYED, FAR, member(old)), ("HSET", LOCKS, "kk", lock + " %d" % FAR)),
                  (("LPUSH", READY, old), ("HSET", LOCKS, "kk", lock))):
        for when, ms in (("now", 0), ("in", 9000)):
            yield "rmq/publish", room, [when, ms, "", "", "", "", "", "replace", 1, 0, -1, member(newer)], (*there, *more)
    yield "rmq/claim", [*Q, "u", "beat", "paused", "rate", "info", "watch", "idle"], [9, 9999, 1, 9, "q", "", "", ""], (
        *CONNECTION, ("LPUSH", READY, "1", old + STALE, "2"), mark, *more)
    for how, to in (("move", R), ("drop", Q)):
        yield "rmq/move", [*Q, *to, "known"], ["ready", how, 9, 9999], (("LPUSH", READY, old), mark, *more)


def upkeep(e, more):
    late = e.replace(b"{", b'{"Mq-Expires": ["1"], ')
    for where, there in (("ready", ("LPUSH", READY, late)), ("delayed", ("ZADD", DELAYED, 1, member(late)))):
        yield "rmq/census", [*Q, REJECTED], [where, 0, "", "", "T" * 32, "1"], (there, *more)
    for slots, was in ((0, e), (2, e), (2, e.replace(b"{", b'{"Mq-Attempt": ["9"], '))):
        yield "rmq/reclaim_dead", [*Q, "known", "rmq::connections", "u", "beat", "consumers", "holders", "slots", "queues",
            "other", "others", REJECTED, "settings", "info", "runs"], ["q", "c", "", 999, 3, 0, slots, "", "", "", ""], (
                ("LPUSH", "u", "old", was), *CONNECTION[:2], *more)
    for place, lists in (("ready", []), ("rejected", [REJECTED]), ("unacked", ["u", "none"])):
        there = ("LPUSH", (lists or [READY])[0], e)
        for how, to in (("move", Q), ("move", R), ("drop", Q), ("move i %s r" % place, Q)):
            keys = [*Q, *to, OUTGOING if " " in how else "known", *lists]
            yield "rmq/move", keys, [place, how, 9, 9999], (there, *more)
            yield "rmq/move", keys, [place, how, 9, 9999, "%d 0 1 1 0 " % (1 + (place == "ready")), e, e], (there, *more)
    for how, to in (("move", Q), ("move", R), ("drop", Q)):
        yield "rmq/move", [*Q, *to, "known"], ["delayed", how, 9, 9999], (("ZADD", DELAYED, FAR, member(e)), *more)
    yield "rmq/move", [*Q, *Q, "known"], ["ready", "home", 9, 9999, "", "z"], (("LPUSH", READY, e, "z"), *more)
    for setting, ms, most, old in (("1d", 86400000, "", message(1, History='{"at_ms":5}')), ("2", "", 2, e)):
        yield "rmq/trim", [REJECTED, "settings", "counters"], [setting, ms, most, 0, ""], (
            ("HSET", "settings", "keep-rejected", setting), ("LPUSH", REJECTED, old, e, old, "new"), *more)
    yield "rmq/repair", Q, ["begin"], (("HSET", LOCKS, "e", 1),)
    yield "rmq/repair", Q, ["free", "", *(x for m in more if m[1] == LOCKS for x in m[2:])], more


def in_rsmq(extra):
    there = (("HSET", "h", "vt", 7, "delay", 0, "maxsize", 99, "a", "A", "a:rc", 2, "a:fr", 5, "b", "B"),
             ("ZADD", "z", FAR, "a", 1, "b"), ("HSET", "held", "a", 2), ("HSET", "lease", "lease", 5000),
             ("HSET", "d", "a", "1 5"), *([("HSET", "x", "a", extra, "b", extra)] if extra else ()))
    for how, ms, to in (("ack", 0, []), ("front", 0, []), ("again", 0, []), ("again", 9000, []),
                        ("reject", 0, [*Z2, "names"]), ("push", 0, [*Z2, "names"])):
        yield "rsmq/settle", [*Z, "held", "later", *to], [how, "a", 0, "", ms, "r" if to else "", 1], there
    yield "rsmq/ack", [*Z, "held"], ["a"], there
    yield "rsmq/give_back", [*Z, "held"], ["a"], there
    yield "rsmq/claim", [*Z, "held", "lease", "paused", "rate", "later", "names", "watch", "idle"], [
        9, 999, 1, 9, "q", "", "", ""], (*there, ("ZADD", "later", 1, "b"))
    for how, to in (("move", Z2), ("fresh", Z), ("drop", Z)):
        yield "rsmq/move", [*Z, *to, "names"], ["delayed", how, "r", 9, 999, 0, FAR, "a"], there
    yield "rsmq/sweep", [*Z, "counters", "later", *Z2, "names"], ["", "", 9, 1, 1, "", "r"], (*there, ("HSET", "h", "b:rc", 9))
    yield "rsmq/lapsed", Z, ["b", 3], (*there, ("HSET", "h", "b:rc", 3))
    yield "rsmq/publish", [*Z, "names", "counters", "later", "settings"], [
        "q", "in", 9000, "", "", "", "", "", 1, "", 0, -1, "c", 1, 3, extra, "C"], there


def others():
    yield "set", ["settings", LOCKS], ["group-slots", 5], ()
    yield "set", ["settings"], ["max-length", 5], ()
    yield "set", ["settings", LOCKS], ["group-slots", 5, "rate", ""], (("HSET", "settings", "rate", 5),)
    yield "pause", ["paused"], [9000], ()
    yield "count", ["counters"], ["published", 1], ()
    yield "compete", ["key", "lease"], [9000, "me"], ()
    yield "write_when_full", ["key"], ["SET", 1], ()


def steps():
    for e, more in KINDS:
        for f in settlements, arrivals, upkeep:
            yield from f(e, more)
    for extra in "", '"Mq-Priority":["3"]':
        yield from in_rsmq(extra)
    yield from replacing()
    yield from others()


# --- what a refusal may leave ---

TYPE, FULL, RIGHT, OLD_RIGHT = "another type:", "full memory", "without the right to", "on Redis 6, without the right to"

# These bring something, or make a longer copy; what others do makes room, or keeps places.
MAY_BE_FULL = {"rmq/publish", "rmq/arrive", "rsmq/publish"}
MOVES = re.compile("rmq/move .*move|rsmq/move .*(move|fresh)")

LOOK = """local out, keys = {}, redis.call('KEYS', '*')
table.sort(keys)
for _, key in ipairs(keys) do
  local kind, values = redis.call('TYPE', key).ok, {}
  if kind == 'list' then values = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'zset' then values = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'hash' then values = redis.call('HGETALL', key)
  elseif kind == 'set' then values = redis.call('SMEMBERS', key)
  else values = { redis.call('GET', key) } end
  out[#out + 1] = { key, kind, values }
end
return out"""


def pipe(commands):
    """Replies, of which some may be errors."""
    for args in commands:
        args = [a if isinstance(a, bytes) else str(a).encode() for a in args]
        server.f.write(b"*%d\r\n" % len(args) + b"".join(b"$%d\r\n%s\r\n" % (len(a), a) for a in args))
    server.f.flush()
    return [reply() for _ in commands]


def reply():
    try:
        return server.reply()
    except resp.Refused as e:
        return e


def script(name):
    path = "%s/%slua/%s.lua" % (folder, name.rpartition("/")[0] + "/" * ("/" in name), name.rpartition("/")[2])
    text = subprocess.run(["sh", folder + "/embed.sh", "-t", path], check=True, capture_output=True, text=True).stdout
    return [server.call("SCRIPT", "LOAD", t) for t in (text, text.replace("redis.acl_check_cmd", "nil"))]


def messages(look):
    """How often each is there: by its id, or by its bytes."""
    found = []
    for key, kind, values in look:
        if kind == b"list" and not key.startswith(RESULT.encode()):
            found += values
        elif kind == b"zset" and key.startswith(b"rmq::"):
            found += (v[32:] for v in values[::2])
        elif kind == b"zset" and key[:1] == b"z":
            found += values[::2]
        elif key == OUTGOING.encode() and kind == b"hash":
            found += values[1::2]
    return sorted(m.group() if (m := re.search(rb"0{20}\d+", e)) else e.split(b"\n")[-1][-9:] for e in found
                  if not e.endswith(STALE))


def half_gone(before, after):
    """A message has left, and its batch still has it."""
    was, now = repr(before), repr(after)
    return STALE.decode() in was and STALE.decode() not in now and "m" + ident(1) in now


def held(look):
    return [values for key, _, values in look if key == b"u"]


def without_stamps(look):
    """A lock may be written anew before its message moves."""
    return re.sub(r"\b\d{16}\b", "-", repr(look))


def attempt(setup, keys, args, look, sha, trouble):
    """What was there, the reply, and what is there."""
    kind, what = trouble
    begin, end = (), ()
    if kind == TYPE:
        begin = ("DEL", what), ("LPUSH" if what in (CLOCK, R[4]) else "SET", what, "x")
    elif kind in (RIGHT, OLD_RIGHT):
        begin = ("ACL", "SETUSER", "weak", "reset", "on", "nopass", "~*", "&*", "+@all", "-" + what.lower()),
        end = ("AUTH", "weak", "x"),
    else:
        end = ("CONFIG", "SET", "maxmemory", 1),
    first = [("FLUSHALL",), *setup, *begin]
    got = pipe([*first, ("EVALSHA", look, 0), *end, ("EVALSHA", sha, len(keys), *keys, *args),
                ("AUTH", "default", "x"), ("CONFIG", "SET", "maxmemory", 0), ("EVALSHA", look, 0)])
    return got[len(first)], got[-4], got[-1]


def judge(name, title, kind, before, answer, after):
    if name == "rmq/claim" and messages(before) != messages(after):
        return "has lost or doubled a message"
    if half_gone(before, after):
        return "has not told the batch"
    if not isinstance(answer, resp.Refused):
        return None
    if kind == FULL and name not in MAY_BE_FULL and not MOVES.match(title):
        return "is refused"
    if name not in PARTLY:
        return without_stamps(before) != without_stamps(after) and "has changed something"
    if name == "rmq/claim" and held(before) != held(after):
        return "has claimed"
    lost = messages(before) != messages(after) and name != "rsmq/ack"
    return lost and "has lost or doubled a message"


look, shas, n, bad = server.call("SCRIPT", "LOAD", LOOK), {}, 0, 0
for name, keys, args, setup in steps():
    title = "%s %s" % (name, " ".join(str(a)[:60] for a in args))
    if not title.startswith(words):
        continue
    if name not in shas:
        shas[name] = script(name)
    # A census loses the count of a batch that it cannot write, and a queue may be made but not listed.
    touched = dict.fromkeys((*keys, *(c[1] for c in setup if name != "rmq/census")))
    for trouble in (*((TYPE, k) for k in touched if k != "names"), (FULL, ""),
                    *((RIGHT, r) for r in RIGHTS.get(name, ())), *((OLD_RIGHT, r) for r in OLD_RIGHTS.get(name, ()))):
        told = attempt(setup, keys, args, look, shas[name][trouble[0] == OLD_RIGHT], trouble)
        why = judge(name, title, trouble[0], *told)
        n += 1
        if why:
            bad += 1
            print("%s; %s %s: %s (%s)" % (title, *trouble, why, told[1]))
print("%d steps in trouble, %d wrong" % (n, bad))
