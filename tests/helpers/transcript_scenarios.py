"""The scenarios of transcript.py: each is a function of a Run; see there.

Its name is in the transcript, so it stays.  What could happen in one order or
another has to be waited for, or to be left out.
"""
import re
import signal
import time

SCENARIOS = {}


def scenario(layouts=("rmq", "rsmq"), ticking=False):
    """ticking: it lasts long enough for all that is said once a second."""
    def add(f):
        for layout in layouts:
            SCENARIOS["%s/%s" % (layout, f.__name__)] = (f, layout, ticking)
        return f
    return add


# Does with its first run what the payload says.
OBEY = """[ "$MQ_ATTEMPT" = 1 ] || exit 0
x=$(cat)
case $x in exit*) exit ${x#exit };; *) printf '%s\\n' "$x" >&3;; esac"""
# Runs until there is a file go.PAYLOAD.
WAIT = """x=$(cat); echo "run at $x" >&3; : >up.$x
until [ -e go.$x ]; do sleep .02; done
[ "$x" != bad ] || exit 1; echo done >&3"""
ONE_BY_ONE = ("--prefetch", "0", "--no-clean")


@scenario()
def publish_framings(r):
    r.mq("publish", "q", "a", "b", "c")
    r.mq("publish", "q", input="all of\nit")
    r.mq("publish", "-l", "q", input="x\ny\n")
    r.mq("publish", "-0", "q", input="x\0y\0")
    r.mq("publish", "--netstring", "q", input="1:x,2:yy,")
    r.mq("publish", "--jsonl", "q", input='{"payload":"x"}\n'
         '{"payload":"y","headers":{"X-A":["b"]},"priority":3}\n')
    r.mq("publish", "-i", "-H", "X-A: b", "-P", "1=one", "q", "x")
    r.mq("publish", "--raw", "-l", "q", input="x\ny\n")
    r.mq("publish", "--existing", "q", "x")
    r.mq("publish", "--existing", "unknown", "x")


@scenario()
def publish_later(r):
    r.mq("publish", "-d", "1h", "q", "a", "b")
    r.mq("publish", "--at", "2099-01-01T00:00:00Z", "-p", "5", "q", "x")
    r.mq("publish", "-e", "1h", "q", "x")
    r.mq("publish", "-e", "1h", "-d", "1m", "q", "x")
    r.mq("publish", "-l", "-d", "1h", "q", input="x\ny\n")


@scenario()
def publish_attributes(r):
    r.mq("publish", "-p", "7", "q", "a", "b")
    r.mq("publish", "-k", "key", "q", "a")
    r.mq("publish", "-k", "key", "q", "b")
    r.mq("publish", "-k", "other", "--unique", "queued", "q", "a", "b")
    r.mq("publish", "-k", "third", "--unique", "1h", "q", "a")
    r.mq("publish", "-g", "group", "q", "a", "b")
    r.mq("publish", "--from-tick", "3", "--until-tick", "5", "q", "x")
    r.mq("publish", "--tick", "4", "q")
    r.mq("publish", "--tick", "3", "q")
    r.mq("publish", "--max-length", "3:5", "-l", "q", input="a\nb\nc\nd\n")
    r.mq("publish", "--max-delayed", "1", "-d", "1h", "q", "a", "b")
    r.mq("consume", *ONE_BY_ONE, "--drain", "q", "--", "true")


@scenario(layouts=["rsmq"])
def publish_rsmq(r):
    r.mq("publish", "--vt", "10s", "--maxsize", "2000", "q", "x")
    r.mq("set", "q", "vt=20", "delay=1", "maxsize=-1", "attempts=3")
    r.mq("publish", "--realtime", "q", "x")


@scenario()
def publish_durable(r):
    r.mq("publish", "--durable", "q", "a", "b")
    r.mq("publish", "--durable", "-d", "1h", "q", "a")


@scenario()
def publish_wait(r):
    c = r.start("consume", *ONE_BY_ONE, "q", "--", r.script(OBEY))
    r.wait(lambda: r.known("q"))
    r.mq("publish", "--wait", "q", "done well")
    r.mq("publish", "--wait", "-i", "q", "err bad")
    r.mq("publish", "--wait=10ms", "-d", "1h", "q", "x")
    r.end(c, signal.SIGTERM)


@scenario()
def publish_batches(r):
    r.mq("publish", "-l", "q", input="".join("%d\n" % n for n in range(5000)))
    r.mq("publish", "-l", "-p", "1", "q", input="".join("%d\n" % n for n in range(3000)))


@scenario()
def publish_again(r):
    """The reply is lost: what was accepted is known by a mark."""
    r.recorder.lose = lambda words: words[0] == "EXEC" or "publish" in r.name(words)
    r.mq("publish", "q", "a", "b")
    r.recorder.lose = lambda words: "publish" in r.name(words)
    r.mq("publish", "-p", "1", "-l", "q", input="a\nb\n")


@scenario()
def cold_scripts(r):
    r.redis("script", "flush")
    r.mq("publish", "-p", "1", "q", "a")
    r.mq("consume", *ONE_BY_ONE, "-n", "1", "q", "--", "false")
    r.mq("return", "q")
    r.mq("stats", "q")
    r.mq("clean")


@scenario()
def receipts(r):
    r.mq("publish", "-H", "X-A: b", "q", "one")
    r.mq("publish", "-l", "q", input="two\nthree\nfour\n")
    got = re.findall(r'"receipt":"([^"]*)"', r.mq("lease", "--for", "1m", "-n", "4", "q"))
    r.mq("lease", "--for", "1m", "-n", "1", "q")
    r.mq("lease", "--extend", got[0], "--for", "2m", "q")
    r.mq("stats", "--connections", "q")
    r.mq("lease", "--ack", got[0], "--text", "well", "--keep", "1h", "q")
    r.mq("lease", "--ack", got[0], "q")
    r.mq("lease", "--reject", got[1], "--text", "bad", "q")
    r.mq("lease", "--return", got[2], "q")
    r.mq("lease", "--extend", got[3], "--for", "0s", "q")
    r.mq("lease", "--for", "1m", "-n", "2", "--idle", "1s", "q")
    r.expire()
    r.mq("clean")


def fill(r):
    """Messages in all states, and a consumer that runs one."""
    r.mq("publish", "q", "err bad 1", "exit 4", "err bad 2", "err bad 2")
    r.mq("consume", *ONE_BY_ONE, "--drain", "q", "--", r.script("echo oops >&2;" + OBEY))
    r.mq("publish", "-d", "1h", "q", "late", "later")
    c = r.start("consume", *ONE_BY_ONE, "q", "--", r.script(WAIT))
    ids = r.mq("publish", "-i", "-p", "1", "q", "a").split()
    r.wait(lambda: r.there("up.a"))
    ids += r.mq("publish", "-i", "-H", "X-A: b", "q", "b", "c").split()
    r.wait(r.running)
    return c, ids


@scenario()
def stats_tables(r):
    c, ids = fill(r)
    r.mq("publish", "other", "x")
    for args in ((), ("q",), ("q", "unknown"), ("--json",), ("--connections",),
                 ("--connections", "--json", "q"), ("--prometheus",), ("--html",),
                 ("--html", "--refresh", "5", "q"), ("--running",), ("--running", "--json"),
                 ("--check", "ready=1:9,age=3600", "q"), ("--check", "rejected=2", "q"),
                 ("--id", ids[0]), ("--id", ids[2], "--json", "q"), ("--id", "unknown")):
        r.mq("stats", *args)
    r.touch("go.a")
    r.end(c, signal.SIGTERM)


@scenario()
def stats_lists(r):
    c, ids = fill(r)
    for state in "ready", "delayed", "unacked", "rejected":
        r.mq("stats", "--list", state, "q")
        r.mq("stats", "--list", state, "--jsonl", "q")
    for args in (("--list", "rejected", "--json", "--match", "bad"),
                 ("--list", "rejected", "-l", "--reason", "2$", "-n", "1"),
                 ("--list", "rejected", "-0", "--stderr", "oops", "--since", "1h"),
                 ("--list", "ready", "--netstring", "--offset", "1"), ("--reasons",),
                 ("--reasons", "--json", "-n", "1"), ("--reasons", "--match", "1$")):
        r.mq("stats", *args, "q")
    r.touch("go.a")
    r.end(c, signal.SIGTERM)


@scenario()
def returning(r):
    c, ids = fill(r)
    for args in (("--dry-run",), ("--match", "1$"), ("--reason", "bad", "-n", "1"),
                 ("--id", ids[1]), ("--to", "other", "--rate", "100/s"), (),
                 ("--from", "delayed", "-n", "1", "--json"), ("--from", "delayed")):
        r.mq("return", *args, "q")
    r.end(c, signal.SIGKILL)
    r.expire()
    if not r.rsmq:
        name = r.redis("smembers", "rmq::connections")
        r.mq("return", "--from", "unacked:" + name, "q")


@scenario()
def purging(r):
    c, ids = fill(r)
    r.touch("go.a")
    r.wait(lambda: r.there("up.b"))
    for args in (("--ready",), ("--force", "--dry-run", "--all"),
                 ("--force", "--rejected", "--match", "1$"), ("--force", "--all", "--id", ids[2]),
                 ("--force", "--rejected", "--reason", "bad", "-n", "1", "--json"),
                 ("--force", "--delayed", "--older-than", "1h"), ("--force", "--ready"),
                 ("--force", "--delayed"), ("--force", "--rejected"),
                 ("--force", "--delete-queue")):
        r.mq("purge", *args, "q")
    r.touch("go.b")
    r.end(c, signal.SIGTERM)
    r.mq("publish", "-d", "1h", "q", "x")
    r.mq("purge", "--force", "--all", "q")
    r.mq("publish", "-k", "key", "q", "x")
    r.mq("purge", "--force", "--delete-queue", "q")
    r.mq("purge", "--force", "--all", "q")


@scenario()
def pausing(r):
    r.mq("publish", "q", "a")
    r.mq("pause", "q")
    r.mq("pause", "--for", "1h", "q", "unknown")
    r.mq("stats")
    r.mq("publish", "q", "b")
    r.mq("consume", *ONE_BY_ONE, "--idle", "50ms", "q", "--", "true")
    r.mq("pause", "--resume", "q")
    r.mq("pause", "--resume", "q")


@scenario()
def cleaning(r):
    r.mq("clean")
    r.mq("publish", "-e", "1ms", "-d", "1ms", "q", "a")
    r.mq("publish", "-d", "1ms", "q", "b")
    r.mq("publish", "-k", "key", "-g", "group", "q", "c", "d")
    r.redis("srem", "rmq::queues", "q")
    r.redis("srem", "rsmq:QUEUES", "q")
    time.sleep(0.05)
    r.mq("clean", "--dry-run", "--json")
    r.mq("clean")
    r.mq("clean", "--json")
    r.redis("del", "rmq::queue::[q]::ready", "rsmq:q", "rsmq:q:Q")
    r.mq("clean")


@scenario()
def acl(r):
    for tool in "publish", "consume", "stats", "return", "purge", "pause", "clean":
        r.mq(tool, "--print-acl", *(["q"] if tool != "clean" else []))
