# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
"""The scenarios of transcript.py: each is a function of a Run; see there.

Its name is in the transcript, so it stays.  What could happen in one order or
another has to be waited for, or to be left out.
"""
import re
import signal
import subprocess
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
def settings(r):
    r.mq("publish", "q", "a")
    r.mq("set", "q", "attempts=3", "push=other")
    r.mq("set", "q")
    r.mq("consume", *ONE_BY_ONE, "-n", "1", "--log-dir", ".", "q", "--", "echo", "x")
    r.mq("set", "q", "attempts=", "push=")


@scenario()
def acl(r):
    for tool in "publish", "consume", "stats", "return", "purge", "pause", "clean":
        r.mq(tool, "--print-acl", *(["q"] if tool != "clean" else []))


# ---- mq-consume

@scenario()
def consume_verbs(r):
    for verb in ("done fine", "relayed", "err bad", "exit 3", "exit 75", "resend 0-again",
                 "resend 3600-later", "push on", "dup 0-X-other", "pause 3600-stop"):
        r.mq("publish", "-H", "X-A: b", "q", verb)
        r.mq("publish", "-q", "other", "x")
        runs = "2" if verb == "resend 0-again" else "1"
        r.mq("consume", *ONE_BY_ONE, "-n", runs, "--push", "p", "--backoff", "1h..1h", "q", "--",
             r.script(OBEY))
    r.mq("pause", "--resume", "q")
    r.mq("consume", *ONE_BY_ONE, "--drain", "q", "--", r.script(OBEY))
    r.mq("publish", "q", "done")
    r.mq("consume", *ONE_BY_ONE, "--drain", "--keep", "1h", "q", "--", r.script(OBEY))
    r.mq("consume", *ONE_BY_ONE, "--drain", "--existing", "q", "p", "other", "--", "true")


@scenario()
def consume_retries(r):
    r.mq("publish", "-i", "q", "a")
    for more in ("--retry-on", "err"), (), ("--strict",):
        r.mq("consume", *ONE_BY_ONE, "-n", "1", "--attempts", "3", "--backoff", "1h..1h", *more,
             "q", "--", r.script("echo oops >&2; exit 1") if more else r.script("exit 75"))
        r.mq("return", "--from", "delayed", "q")


@scenario()
def consume_slots(r):
    r.mq("publish", "q", "a", "b", "bad", "d")
    c = r.start("consume", "-j4", *ONE_BY_ONE, "q", "--", r.script(WAIT))
    for left, x in (3, "b"), (2, "bad"), (1, "a"), (0, "d"):
        r.wait(lambda: r.there("up." + x))
        r.touch("go." + x)
        r.wait(lambda: r.held() == left)
    r.end(c, signal.SIGTERM)


@scenario()
def consume_prefetch(r):
    r.mq("publish", "q", "a", "b", "c")
    c = r.start("consume", "--no-clean", "--prefetch", "2", "q", "--", r.script(WAIT))
    r.wait(lambda: r.there("up.a") and r.held() == 3)
    r.touch("go.a")
    r.wait(lambda: r.there("up.b") and r.held() == 2)
    c.send_signal(signal.SIGTERM)
    r.wait(lambda: r.held() == 1)
    r.touch("go.b")
    r.end(c)


@scenario()
def consume_batch(r):
    r.mq("publish", "-l", "q", input="a\nb\nc\nd\n")
    r.mq("consume", *ONE_BY_ONE, "--batch", "4", "-n", "4", "q", "--",
         r.script("cat >&2; echo 'err #1 bad' >&3; echo 'done #2 good' >&3"))
    r.mq("publish", "-l", "q", input="a\nb\n")
    r.mq("consume", *ONE_BY_ONE, "--batch", "9", "--batch-wait", "10ms", "--jsonl", "-n", "2",
         "q", "--", "false")


@scenario()
def consume_stream(r):
    script = r.script("""while IFS= read -r x; do
case $x in exit) exit 1;; esac; echo "$x" >&3; done""")
    for verb in "done a", "err bad", "resend 3600-later", "push on", "exit", "done b":
        r.mq("publish", "q", verb)
        r.mq("consume", "--no-clean", "--stream", "--window", "2", "--push", "p", "-n", "1", "q",
             "--", script)


@scenario()
def consume_dups(r):
    ask = """while IFS= read -r x; do
for to in other none a:b "$URL?queue=other" "$URL?queue=none"
do echo "dup 0-X-$to" >&3; head -n 1 <&4 >/dev/null; done
echo "dup 9-X-other" >&3; echo done >&3; done"""
    script = r.script("URL=unix://%s/mq.sock\n%s" % (r.dir, ask))
    r.mq("publish", "-q", "other", "x")
    for how in ("--stream",), ("--batch", "2"):
        r.mq("publish", "-H", "X-A: b", "q", "a")
        r.mq("consume", *ONE_BY_ONE, "-v", *how, "-n", "1", "q", "--", script)
    r.mq("publish", "-q", "q", "b")
    r.mq("consume", *ONE_BY_ONE, "-n", "1", "q", "--",
         r.script("echo 'dup 0-X-none' >&3; echo 'dup 0-X-unix:///nowhere?queue=x' >&3"))


@scenario()
def print_file(r):
    r.mq("publish", "-H", "X-A: b", "-p", "1", "q", "a", "b")
    r.mq("publish", "-l", "q", input="c\nd\n")
    r.mq("consume", "--no-clean", "--jsonl", "-n", "2", "q")
    r.mq("consume", "--no-clean", "--drain", "-l", "q")
    r.mq("publish", "-l", "q", input="c\nd\n")
    r.mq("consume", "--no-clean", "--drain", "-0", "--at-most-once", "--tag", "tagged", "q")
    r.mq("consume", "--no-clean", "--drain", "--netstring", "q")
    r.mq("consume", "--no-clean", "--existing", "unknown")


@scenario()
def print_pipe(r):
    r.mq("publish", "-l", "q", input="a\nb\nc\nd\n")
    c = r.start("consume", "--no-clean", "-l", "q", stdout=subprocess.PIPE)
    for left in 3, 2:
        c.stdout.read(2)
        r.wait(lambda: r.held() == left)
    c.stdout.close()
    r.end(c)
    r.mq("stats", "--list", "ready", "-l", "q")


@scenario(ticking=True)
def consume_long(r):
    """What is said once a second."""
    r.mq("publish", "q", "a", "b")
    c = r.start("consume", "--prefetch", "0", "--timeout", "1h", "q", "--", r.script(WAIT))
    r.wait(lambda: r.running())
    time.sleep(3)
    r.touch("go.a")
    r.wait(lambda: r.there("up.b"))
    r.touch("go.b")
    r.wait(lambda: not r.held())
    time.sleep(2.5)
    r.end(c, signal.SIGTERM)


@scenario()
def consume_timeout(r):
    r.mq("publish", "q", "a")
    r.mq("consume", *ONE_BY_ONE, "-n", "1", "--timeout", "50ms", "q", "--", "sleep", "9")


@scenario()
def consume_idle(r):
    r.mq("publish", "q", "a")
    r.mq("consume", *ONE_BY_ONE, "--idle", "50ms", "q", "r", "--", "true")


@scenario()
def consume_rates(r):
    r.mq("publish", "q", "a", "b", "c")
    r.mq("consume", *ONE_BY_ONE, "--rate", "50/s:1", "-n", "1", "q", "--", "true")
    r.mq("consume", *ONE_BY_ONE, "--rate-shared", "50/s:5", "-n", "2", "q", "--", "true")


@scenario()
def consume_reconnects(r):
    """The reply to a claim is lost, and then that to an outcome."""
    for lost in "claim", "settle":
        r.mq("publish", "-H", "X-A: b", "q", "a")
        r.recorder.lose = lambda words: lost in r.name(words)
        r.mq("consume", *ONE_BY_ONE, "-q", "-n", "1", "q", "--", "false")


@scenario()
def consumer_killed(r):
    r.mq("publish", "q", "a", "b")
    r.mq("publish", "-g", "group", "q", "c")
    for attempts in "2", "1":
        c = r.start("consume", *ONE_BY_ONE, "--attempts", attempts, "q", "--", r.script(WAIT))
        r.wait(lambda: r.there("up.*"))
        r.end(c, signal.SIGKILL)
        r.forget("up.*")
        r.expire()
        r.mq("clean", "--dry-run")
        r.mq("clean", "--json" if attempts == "2" else "-v")
    r.mq("stats", "q")


@scenario(ticking=True)
def consumer_cleans(r):
    r.mq("publish", "q", "a")
    c = r.start("consume", *ONE_BY_ONE, "q", "--", r.script(WAIT))
    r.wait(lambda: r.there("up.a"))
    r.end(c, signal.SIGKILL)
    r.expire()
    c = r.start("consume", "--prefetch", "0", "-v", "q", "--", r.script(WAIT))
    r.wait(lambda: "cleaned up" in r.printed(c, "err") or r.rsmq)
    r.touch("go.a")
    r.wait(lambda: ": done" in r.printed(c, "err"))
    time.sleep(3)
    r.end(c, signal.SIGTERM)


# ---- mq-consume is stopped or disturbed

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
