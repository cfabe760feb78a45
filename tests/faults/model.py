# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What may be true of messages at any moment, and what has become of each.
#
#   Model(layout, log, refused)  log: what the scripts have recorded; refused: rights
#                            may be missing
#   tried(names)             these are going to be published
#   told(ids, who, joins)    a publisher was told that these are accepted; joins: or
#                            that others are, in their place
#   alike                    those that only their number tells, which have
#                            neither an id nor a payload of their own
#   purge(id)                this one may vanish from now on
#   reports                  of the consumers, see reports.py
#   look(world)              one look at all: adds to wrong what is
#   settle()                 in the end: numbers for the table
#   history(id)              what was seen of one, as lines
import collections
import json
import os
import re
import threading
import time

import places
import reports

# The names of messages that there are several of begin with it, and, of those that
# end in any way, with the other.
ALIKE, TWIN = "=", "=="
# These are alone in their queue, where no operator is, and that they are pushed to.
TWINS, PUSHED = "t", "u"
# The names of messages of groups, and the queue that they have.
LINE, LINES = "L", "g"

# The names of members of batches and of their followers, behind which is the batch; their queue,
# where no operator is; and how many members of a batch, and messages of the queue, run at a time.
MEMBER, FOLLOWER, BATCHES, SLOTS, SHARED = "M", "N", "b", 3, 5

# The queue that hears of each end (mq-consume --notify), and that nobody consumes.
NOTIFIED = "ends"

# The last tick that a message waits for.
TICKS = 12

# A key that nobody had the right to release: see mq-layout(7).
HELD = re.compile(r"key lock without a message: .* queued of \w+: .*, unacked of ")

VERDICTS = ("done", "err", "again", "killed", "pushed")


class Notified(places.View):
    """A look at the layout of rmq, with the notices of what has ended."""

    def __init__(self, reply):
        super().__init__(reply)
        notices = [json.loads(m.payload) for m in self.of(NOTIFIED)]
        self.done = collections.Counter(
            n["id"] for n in notices if n["state"] == "done")
        self.messages = [m for m in self.messages if m.queue != NOTIFIED]
        self.by_id = collections.defaultdict(list)
        for m in self.messages:
            self.by_id[m.id].append(m)
            if m.queue == PUSHED:
                m.place = "pushed"

    def laws(self, accepted=(), ended=()):
        return super().laws(accepted, ended) + [
            "%d notices that it is done: %s" % (n, id)
            for id, n in self.done.items() if n > 1] + [
            "a notice that it is done, but it is there: " + id
            for id in self.done if id in self.by_id] + [
            "%d messages of %s at once" % (self.held[BATCHES], BATCHES)
            ] * (self.held[BATCHES] > SHARED)

    def pushed(self):
        return self.count(PUSHED)

    def untold(self, accepted, purged):
        return ["gone without a notice: " + id for id in accepted
                if id not in self.by_id and id not in purged
                and id not in self.done]


class Rsmq:
    """A look at the layout of RSMQ; Notified is that of the other."""

    class Message:
        def __init__(self, id, queue, place, body):
            self.id, self.queue, self.place = id, queue, place
            self.payload = body

        def __str__(self):
            return "%s (%s, %s of %s)" % (self.id,
                self.payload[:30].decode(errors="replace"), self.place, self.queue)

    def __init__(self, reply):
        us = int(reply[0][0]) * 1000000 + int(reply[0][1])
        keys = {k.decode(): v for k, v in reply[1:]}
        held = {id.decode() for k, v in keys.items() if ":Xheld:" in k
                for id in v[::2]}
        self.messages, self.half = [], []
        for queue in [q.decode() for q in keys.get("rsmq:QUEUES", [])]:
            self.add(queue, keys, held, us / 1000)
        self.by_id = collections.defaultdict(list)
        for m in self.messages:
            self.by_id[m.id].append(m)

    def add(self, queue, keys, held, now):
        fields = {k.decode(): v
                  for k, v in places.pairs(keys.get("rsmq:%s:Q" % queue, []))}
        bodies = {k for k in fields if re.fullmatch(r"\w{32}", k)}
        for id, score in places.pairs(keys.get("rsmq:" + queue, [])):
            id = id.decode()
            if id not in bodies:
                self.half.append("no body: %s of %s" % (id, queue))
            bodies.discard(id)
            place = ("rejected" if queue.endswith("-rejected") else
                     "ready" if float(score) <= now else
                     "unacked" if id in held else "delayed")
            self.messages.append(
                self.Message(id, queue, place, fields.get(id, b"")))
        self.half += ["a body alone: %s of %s" % (id, queue) for id in bodies]

    def untold(self, accepted, purged):
        """There are no notices."""
        return []

    def pushed(self):
        return 0

    def laws(self, accepted, ended):
        wrong = list(self.half)
        wrong += ["twice: " + " and ".join(map(str, where))
                  for where in self.by_id.values() if len(where) > 1]
        return wrong + ["lost: " + id for id in accepted
                        if id not in self.by_id and id not in ended]


class Alike:
    """Messages that nobody can tell apart: bags, by their name."""

    def __init__(self):
        self.tried, self.told = collections.Counter(), collections.Counter()
        self.done = collections.Counter()

    @staticmethod
    def there(view):
        names = (m.payload.split(b" ")[0].decode() for m in view.messages)
        return collections.Counter(n for n in names if n.startswith(ALIKE))

    def laws(self, told, there):
        """told: how many were accepted before that look."""
        wrong = ["lost: %s: of %d accepted, %d are there and %d done" % (
            n, told[n], there[n], self.done[n])
            for n in told if told[n] > there[n] + self.done[n]]
        return wrong + ["more than published: %s: of %d, %d are there" % (
            n, self.tried[n], there[n])
            for n in there if there[n] > self.tried[n]]

    def gone(self, view):
        """How many twins at most."""
        there = self.there(view)
        return sum(n - there[name] for name, n in self.tried.items()
                   if name.startswith(TWIN))

    def repeated(self, there):
        """Runs in vain, at least."""
        return sum(max(0, there[n] + self.done[n] - self.tried[n])
                   for n in self.tried)

    def count(self, view):
        """What has become of them, for the table."""
        there, pushed = self.there(view), view.pushed()
        gone = {n: self.told[n] - there[n] for n in self.told}
        lost = {n: max(0, gone[n] - self.done[n]) for n in gone}
        return collections.Counter(
            attempted=sum(self.tried.values()), accepted=sum(self.told.values()),
            rejected=sum(there.values()) - pushed, pushed=pushed, lost=sum(lost.values()),
            done=sum(max(0, gone[n] - lost[n]) for n in gone),
            repeated=self.repeated(there))


class Model:
    def __init__(self, layout, log, refused=False):
        self.refused = refused
        self.view = Rsmq if layout == "rsmq" else Notified
        self.log, self.read_to = log, 0
        self.reports = reports.Reports(os.path.dirname(log), TWINS)
        self.begun, self.lock = time.monotonic(), threading.Lock()
        self.attempted, self.accepted, self.purged = set(), {}, set()
        self.joined = set()    # by messages that were published later
        self.alike = Alike()
        self.runs = collections.defaultdict(list)    # id: verdicts, in order
        self.latest = collections.Counter()          # of a group: the number
        self.names = {}                              # of a payload: its id
        self.batches = {}    # those whose members were all accepted: how many
        self.running = collections.defaultdict(set)  # of a batch: the ids
        # What is wrong, unless the next look finds that one of these was rejected without
        # a word, as its consumers were killed: ids, or names.
        self.doubts = []
        self.places = collections.defaultdict(list)  # id: (when, where)
        self.wrong, self.lost, self.doubled, self.looks = [], set(), set(), 0
        open(log, "w").close()

    def tried(self, names):
        self.attempted.update(names)

    def told(self, ids, who, joins=False):
        for id in ids:
            if joins:
                self.joined.add(id)
            if id in self.accepted and id not in self.joined:
                self.say("told twice: " + id)
            self.accepted[id] = "%.3f accepted: %s" % (self.now(), who)

    def purge(self, id):
        self.purged.add(id)
        self.places[id].append((self.now(), "mq-purge"))

    def now(self):
        return time.monotonic() - self.begun

    def say(self, text):
        if text not in self.wrong:
            self.wrong.append(text)

    def look(self, world):
        with self.lock:
            accepted = list(self.accepted)    # before the look
            told = self.alike.told.copy()
            self.reports.read()
            view = self.view(world.look())
            doubts, self.doubts = self.doubts, []
            self.read_log()                   # and after it
            self.looks += 1
            self.note(view)
            rejected = {id for id, where in view.by_id.items()
                        if where[0].place == "rejected"}
            for text, some in doubts:
                if not {self.names.get(one, one) for one in some} & rejected:
                    self.say(text)
            ended = self.done() | self.purged
            for text in view.laws(accepted, ended):
                if not (self.refused and HELD.match(text)):
                    self.blame(text)
            for text in (view.untold(accepted, self.purged) +
                         self.alike.laws(told, self.alike.there(view)) +
                         self.reports.laws(view, self.alike.gone(view))):
                self.say(text)
            return view

    def blame(self, text):
        id = re.search(r"\w{32}", text)
        if text.startswith("lost: "):
            self.lost.add(id.group())
        elif text.startswith(("twice: ", "published twice: ")):
            self.doubled.add(id.group())
        self.say(text)

    def note(self, view):
        now = self.now()
        for id, where in view.by_id.items():
            if id is None:
                continue    # the rest of what is alike
            place = ", ".join("%s of %s" % (m.place, m.queue) for m in where)
            seen = self.places[id]
            if not seen or seen[-1][1] != place:
                seen.append((now, place))
            self.same(where[0].payload.split(b" ")[0].decode(), id)
        for id in self.places.keys() - view.by_id.keys():
            if self.places[id][-1][1] not in ("gone", "mq-purge"):
                self.places[id].append((now, "gone"))

    def same(self, name, id):
        """A payload was published once, by somebody."""
        if name in self.alike.tried:
            return
        if name not in self.attempted:
            self.say("nobody published %s: %s" % (name, id))
        if self.names.setdefault(name, id) != id:
            self.blame("published twice: %s as %s" % (id, self.names[name]))

    def read_log(self):
        with open(self.log, "rb") as f:
            f.seek(self.read_to)
            text = f.read()
        text = text[:text.rfind(b"\n") + 1]
        self.read_to += len(text)
        for line in text.decode().splitlines():
            id, attempt, verdict, name, tag = line.split()
            if name.startswith(MEMBER):
                self.member(id, name[1:].split(".")[0], verdict)
                if verdict == "begun":
                    continue
            if verdict not in VERDICTS:
                self.say("what is " + line)
            self.reports.ran(tag, id, verdict)
            if name in self.alike.tried:
                self.alike.done[name] += verdict == "done"
                continue
            if name.startswith(FOLLOWER) and not self.runs[id]:
                self.follows(name[1:])
            if name.startswith(LINE) and not self.runs[id]:
                self.in_order(*name[1:].split("."))
            self.runs[id].append("attempt %s of %s: %s" % (attempt, tag, verdict))
            self.same(name, id)

    def member(self, id, batch, verdict):
        """One whose consumer was killed has its slot until it runs again, or is rejected."""
        running = self.running[batch]
        if verdict != "begun":
            running.discard(id)
            return
        running.add(id)
        if len(running) > SLOTS:
            self.doubts.append(("%d of batch %s run at once: %s" % (
                len(running), batch, " ".join(running)), set(running)))

    def follows(self, batch):
        """A run of the follower comes behind the last member's."""
        for i in range(self.batches[batch]):
            name = "%s%s.%d" % (MEMBER, batch, i)
            runs = self.runs.get(self.names.get(name), ())
            if not any(run.endswith(("done", "err")) for run in runs):
                self.doubts.append(("the follower runs before " + name, {name}))

    def count_batches(self, world, view):
        """Each member has ended once, as it is."""
        for batch, n in self.batches.items():
            reply = world.call("HGETALL", "rmq::queue::[%s]::result::batch:%s" % (
                BATCHES, batch))
            counts = {k.decode(): int(v) for k, v in places.pairs(reply)}
            ids = [self.names.get("%s%s.%d" % (MEMBER, batch, i)) for i in range(n)]
            rejected = sum(id in view.by_id for id in ids)
            want = dict(total=n, open=0, done=n - rejected, rejected=rejected)
            if {k: counts.get(k, 0) for k in want} != want:
                self.say("batch %s: %s, but it has %s" % (batch, counts, want))

    def in_order(self, line, number):
        """Those of a group run one after the other, as they were published."""
        if int(number) < self.latest[line]:
            self.say("order: %s of group %s runs after %d" % (
                number, line, self.latest[line]))
        self.latest[line] = int(number)

    def done(self):
        return {id for id, runs in self.runs.items()
                if any(run.endswith("done") for run in runs)}

    def repeated(self):
        """Runs that ended after one that was done: all in vain."""
        n = 0
        for runs in self.runs.values():
            first = next((i for i, run in enumerate(runs)
                          if run.endswith("done")), len(runs))
            n += max(0, len(runs) - first - 1)
        return n

    def settle(self, view, in_flight):
        for text in self.reports.end():
            self.say(text)
        done = self.done()
        there = {id: where[0].place for id, where in view.by_id.items()}
        count = collections.Counter()
        for id in self.accepted:
            count["rejected" if there.get(id) == "rejected" else
                  "left" if id in there else
                  "done" if id in done else
                  "purged" if id in self.purged else "lost"] += 1
        count.update(attempted=len(self.attempted), accepted=len(self.accepted),
            doubled=len(self.doubled), repeated=self.repeated(),
            flying=in_flight)
        count["lost"] = len(self.lost | {
            id for id in self.accepted
            if id not in there and id not in done and id not in self.purged})
        count.update(self.alike.count(view))
        if count["repeated"] > in_flight:
            self.say("%d runs after done, but %d were in flight" % (
                count["repeated"], in_flight))
        return count

    def history(self, id):
        lines = [self.accepted.get(id, "nobody was told that it is accepted")]
        lines += ["%.3f %s" % p for p in self.places[id]]
        return [id] + ["  " + line for line in lines + self.runs[id]]
