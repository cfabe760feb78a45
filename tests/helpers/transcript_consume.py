"""The scenarios of transcript.py that are about mq-consume."""
import signal
import subprocess
import time

from transcript_scenarios import OBEY, ONE_BY_ONE, WAIT, scenario


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
