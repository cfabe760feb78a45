# What delivery.py can do; see there.


class Scenario:
    """What is published, and what else is done meanwhile."""
    publishers, consumers, invocations = 2, 3, 9
    batch = 5    # messages that one publishes at most
    queue = "q"
    acts = ["ok"] * 8 + ["retry1", "fail"]
    group = False  # messages of groups
    ordered = True  # nothing comes back into a group's line
    options = staticmethod(lambda r: [])  # of one mq-publish
    consume = ()  # more options of mq-consume
    pushed = None  # a queue that is drained at the end, too
    operate = ()  # commands of operators
    ticks = 0
    kills = ("server", "consumer", "consumer")
    caps = None    # never more claimable ones, and delayed ones


class Priorities(Scenario):
    options = staticmethod(lambda r: ["-p", str(r.choice((-7, 0, 0, 3, 100)))])


class Delays(Scenario):
    options = staticmethod(lambda r: r.choice(([],
        ["-d", "%dms" % r.randrange(1, 300)],
        ["-d", "%dms" % r.randrange(1, 300), "-p", "5"])))


class Keys(Scenario):
    batch, invocations = 2, 25
    options = staticmethod(lambda r: ["-k", "key %d" % r.randrange(6),
        "--unique", r.choice(("queued", "done", "40ms"))]
        + r.choice(([], ["-d", "%dms" % r.randrange(1, 100)], ["-p", "2"])))


class Groups(Scenario):
    group = True
    acts = ["ok"] * 6 + ["retry1", "retry2", "fail"]
    options = staticmethod(lambda r: r.choice(([], [], ["-p", "4"],
        ["-d", "%dms" % r.randrange(1, 150)])))


class Ticks(Scenario):
    ticks = 12
    options = staticmethod(lambda r: r.choice(([],
        ["--from-tick", str(r.randint(1, 12))],
        ["--from-tick", str(r.randint(1, 12)), "-p", str(r.choice((-1, 1)))],
        ["--from-tick", "2", "--until-tick", "6"])))


class Caps(Scenario):
    publishers, invocations = 8, 7
    # A consumer that dies gives back what it has, which no cap may refuse.
    kills = ("server",)
    acts = ["ok"]
    consume = ("--prefetch", "0")
    caps = (12, 8)
    options = staticmethod(lambda r: r.choice((
        ["--max-length", "8:12"], ["--max-length", "8:12", "-p", "5"],
        ["--max-delayed", "5:8", "-d", "%dms" % r.randrange(150, 300)],
        ["--max-delayed", "5:8", "-d", "%dms" % r.randrange(150, 300),
         "-p", "1"])))


class Expiry(Scenario):
    acts = ["ok"] * 4 + ["retry1"]
    options = staticmethod(lambda r: r.choice(([],
        ["-e", "%dms" % r.randrange(1, 60)],
        ["-e", "%dms" % r.randrange(1, 60), "-p", "3"],
        ["-e", "30ms", "-k", "key %d" % r.randrange(3)])))


def some_id(run, r):
    return r.choice(run.accepted or ["0" * 32])


def purge_one(run, r):
    id = some_id(run, r)
    run.gone.add(id)
    run.tool("mq-purge", "--force", "--all", "--id", id, run.s.queue)


def purge_some(run, r):
    if r.random() < 0.2:
        run.purge(r.choice(("--ready", "--delayed", "--rejected", "--all")),
                  *r.choice(((), ("-n", "3"), ("--match", "[AB].*[13579] "))))


def return_some(run, r):
    run.tool("mq-return", *r.choice(((), ("-n", "2"),
        ("--from", "delayed", "-n", "2"), ("--id", some_id(run, r)),
        ("--match", "[02468] "))), run.s.queue)


def clean(run, r):
    run.tool("mq-clean", "-q")


class Operators(Scenario):
    group, ordered = True, False
    operate = (purge_one, purge_one, purge_some, return_some, return_some, clean)
    acts = ["ok"] * 5 + ["retry1", "fail"]
    options = staticmethod(lambda r: r.choice(([], [], ["-p", "4"],
        ["-k", "key %d" % r.randrange(5), "--unique",
         r.choice(("queued", "done", "40ms"))],
        ["-d", "%dms" % r.randrange(1, 150)], ["-e", "50ms"])))


class Push(Scenario):
    acts = ["ok"] * 3 + ["push"] * 3 + ["fail", "retry1"]
    consume, pushed = ("--push", "p1"), "p1"
    ordered = False  # a group goes on in each of the two queues
    group = True
    options = staticmethod(lambda r: r.choice(([], ["-p", "4"],
        ["-k", "key %d" % r.randrange(5)])))


ALL = {
    "push": Push,
    "caps": Caps,
    "expiry": Expiry,
    "operators": Operators,
    "priorities": Priorities,
    "delays": Delays,
    "keys": Keys,
    "groups": Groups,
    "ticks": Ticks,
}
