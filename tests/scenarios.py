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
    operate = ()  # commands of operators
    ticks = 0
    kills = True
    caps = None    # (low, high): never more claimable ones


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


ALL = {
    "priorities": Priorities,
    "delays": Delays,
    "keys": Keys,
    "groups": Groups,
    "ticks": Ticks,
}
