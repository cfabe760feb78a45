"""The scenarios of transcript.py in which mq-consume is stopped or disturbed."""
import signal

from transcript_scenarios import ONE_BY_ONE, OBEY, WAIT, scenario

AHEAD = ("--prefetch", "3", "--no-clean")
FOUR = ("a", "b", "c", "d")
FEED = """while IFS= read -r x; do : >up.$x; until [ -e go.$x ]; do sleep .02; done
echo "done $x" >&3; done"""
KINDS = {"fork": ((), WAIT), "batch": (("--batch", "2"), "cat >&2; : >up.a; sleep 60"),
         "stream": (("--stream", "--window", "2"), FEED)}

HELD = {"fork": 4, "batch": 4, "stream": 2}


def at_work(r, how, *more):
    """A consumer that runs a, and holds the rest."""
    options, script = KINDS[how]
    r.forget("up.*")
    r.mq("publish", "q", *FOUR)
    c = r.start("consume", *AHEAD, *options, *more, "q", "--", r.script(script))
    r.wait(lambda: r.there("up.a") and r.held() == HELD[how])
    return c


@scenario()
def stop_after_grace(r):
    for how in KINDS:
        r.end(at_work(r, how, "--grace", "100ms"), signal.SIGTERM)
        r.mq("stats", "--list", "ready", "-l", "q")
        r.mq("purge", "--force", "--all", "q")


@scenario()
def paused_at_work(r):
    """What is held goes back, what runs ends."""
    for how in "fork", "stream":
        c = at_work(r, how)
        r.mq("pause", "q")
        r.wait(lambda: r.held() <= (1 if how == "fork" else 2))
        r.touch("go.a")
        r.touch("go.b")
        r.wait(lambda: not r.held())
        r.end(c, signal.SIGTERM)
        r.forget("go.*")
        r.mq("pause", "--resume", "q")
        r.mq("purge", "--force", "--all", "q")


@scenario()
def purged_at_work(r):
    """A message that somebody has deleted is not settled."""
    ids = r.mq("publish", "-i", "q", "a", "b").split()
    c = r.start("consume", *AHEAD, "q", "--", r.script(WAIT))
    r.wait(lambda: r.there("up.a") and r.held() == 2)
    for id in ids:
        r.mq("purge", "--force", "--all", "--id", id, "q")
    r.touch("go.a")
    r.wait(lambda: r.there("up.b"))
    r.touch("go.b")
    r.wait(lambda: not r.held())
    r.end(c, signal.SIGTERM)


@scenario()
def wrong_keys(r):
    for key in "rmq::queue::[q]::rejected", "rsmq:q.rejected:Q", "rmq::queue::[q]::ready", "rsmq:q":
        r.mq("publish", "q", "err bad")
        r.redis("del", key)
        r.redis("set", key, "x")
        r.mq("consume", *ONE_BY_ONE, "--drain", "q", "--", r.script(OBEY))
        r.redis("flushall")
        r.scripts.load(r.direct)


@scenario()
def several_queues(r):
    """Earlier ones come first, and a claim asks one after the other."""
    for q in "one", "two", "three":
        r.mq("publish", "-l", q, input="a\nb\nc\n")
    r.mq("pause", "two")
    for how in ("-l",), ("-l", "--at-most-once"):
        r.mq("consume", *AHEAD, *how, "-n", "4", "one", "two", "three")
        r.mq("pause", "--resume", "two")


@scenario()
def many_at_once(r):
    """Acks go out together."""
    r.mq("publish", "-l", "q", input="".join("%d\n" % n for n in range(300)))
    r.mq("consume", "--no-clean", "-l", "-n", "300", "q")
    r.mq("publish", "-l", "q", input="".join("%d\n" % n for n in range(300)))
    r.mq("consume", "--no-clean", "--batch", "100", "--prefetch", "0", "-n", "300", "q",
         "--", "true")
    r.mq("publish", "-e", "1h", "-l", "q", input="a\n" * 3)
    r.mq("consume", *AHEAD, "-n", "3", "q", "--", "true")
    r.mq("stats", "--json", "q")
