# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
"""
Workers of node and of ours on one queue of RSMQ, each killed again and again.

    node-kill.py MESSAGES SEED

Half of the messages are sent by node, half by mq-publish.  Each worker appends
the messages it has to a file of its own, and only then deletes them.  In the
end every message must be in some file, and nothing in the queue.  What was
appended and not deleted when its worker was killed is there twice.

The server is at $D/redis.sock; $BUILD has the tools, $NODE_PATH the module.
"""
import collections
import os
import random
import subprocess
import sys
import time

messages, seed = int(sys.argv[1]), int(sys.argv[2])
chance = random.Random(seed)
here = os.path.dirname(os.path.abspath(__file__))
D, T, build = os.environ["D"], os.environ["T"], os.environ["BUILD"]
env = dict(os.environ, MQ_URL="unix://%s/redis.sock?layout=rsmq" % D,
    RSMQ_SOCKET=D + "/redis.sock")
LIMIT = 120	# seconds in which nothing moves


def node(*args):
    return ["node", here + "/rsmq.js", *map(str, args)]


def mq(tool, *args):
    return [build + "/" + tool, *map(str, args)]


def redis(*args):
    return subprocess.check_output(["redis-cli", "-s", D + "/redis.sock",
        *args], text=True).strip()


FILES = ["%s/got.%d" % (T, n) for n in range(6)]
WORKERS = [
    *(node("work", "q", FILES[n]) for n in range(3)),
    mq("mq-consume", "-q", "-l", "q"),
    mq("mq-consume", "-q", "-l", "--prefetch", "20", "q"),
    mq("mq-consume", "-q", "-j4", "q", "--", "/bin/sh", "-c",
       "read -r x; echo \"$x\" >>" + FILES[5]),
]


def start(n):
    with open(FILES[n], "ab") as out, open(T + "/errors", "ab") as err:
        return subprocess.Popen(WORKERS[n], env=env, stdout=out, stderr=err,
            stdin=subprocess.DEVNULL)


half = messages // 2
subprocess.check_call(mq("mq-publish", "-l", "--vt", 2, "q"), env=env,
    stdin=subprocess.DEVNULL)
publishers = [
    subprocess.Popen(node("send", "q", 1, half), env=env),
    subprocess.Popen(["sh", "-c", "seq %d %d | %s -l q" %
        (half + 1, messages, build + "/mq-publish")], env=env),
]
workers, kills = [start(n) for n in range(6)], [0] * 6
moved, progress = time.monotonic(), None
ended = False
while not ended:
    time.sleep(chance.uniform(0.05, 0.4))
    for worker in workers:
        if worker.poll() is not None:
            sys.exit("%s ended by itself: %d" % (worker.args, worker.returncode))
    now = redis("hget", "rsmq:q:Q", "totalsent"), redis("zcard", "rsmq:q")
    if now != progress:
        moved, progress = time.monotonic(), now
    if time.monotonic() - moved > LIMIT:
        sys.exit("%s messages are left, and none went in %d s (seed %d)" %
            (now[1], LIMIT, seed))
    if all(p.poll() is not None for p in publishers):
        ended = redis("zcard", "rsmq:q") == "0"
    if not ended:
        n = chance.randrange(6)
        workers[n].kill()
        workers[n].wait()
        workers[n] = start(n)
        kills[n] += 1
for p in publishers:
    assert p.returncode == 0, p.args
for worker in workers:
    worker.terminate()
    worker.wait()

seen = collections.Counter()
for name in FILES:
    with open(name, "rb") as f:
        seen.update(f)
wanted = {b"%d\n" % n for n in range(1, messages + 1)}
lost = wanted - seen.keys()
# A line of a script may have been begun when that was killed.
odd = [line for line in seen if line not in wanted]
print("%d messages, kills %s, %d seen twice or more, %d rejected, %d lost" %
    (messages, kills, sum(n > 1 for n in seen.values()),
    int(redis("zcard", "rsmq:q-rejected")), len(lost)))
assert not lost, "lost (seed %d): %s" % (seed, sorted(lost)[:10])
assert not odd, odd[:10]
assert redis("zcard", "rsmq:q-rejected") == "0"
left = [field for field in redis("hkeys", "rsmq:q:Q").split()
    if len(field) >= 32]
assert not left, "fields without a message: %s" % left[:5]
assert redis("hget", "rsmq:q:Q", "totalsent") == str(messages)
assert sum(kills[:3]) > 0 and sum(kills[3:]) > 0
