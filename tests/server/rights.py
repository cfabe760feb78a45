# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Each option of each tool, and what pages combine, under the rights that --print-acl
# prints for the same command line: the exit status is the expected one, and the server
# has refused nothing.  And each rule that is printed lets something pass that no other
# one does, in some row: MONITOR of all nodes writes to $T/monitor what the rows come to.
# With BEFORE=FILE, the rights are those of the table in that file, and only statuses count.
import fnmatch
import functools
import hashlib
import os
import re
import shlex
import subprocess
import sys
import time

from wire import *

build, layout, T, admin, user = (
    os.environ[name] for name in ("BUILD", "LAYOUT", "T", "MQ_URL", "USER_URL"))
rmq, topology = layout == "rmq", os.environ.get("TOPOLOGY", "")
before = os.environ.get("BEFORE")
# Where --spool and --flush look.
os.environ["XDG_STATE_HOME"] = T + "/state"

# tool, options that this is for, in this layout only (rmq or rsmq), exit statuses, and
# the arguments, with <INPUT.  Words like @this are those of world().  With a "!", the
# rights are those for all queues: what looks around is refused elsewhere.  Options share a
# row where the rules are the same without them, and none hides what another one asks.
ROWS = r"""
publish - * 0 q <x
publish lines,ids,header,existing,verbose * 0 -l -i -H A:b --existing -v q <1\n2
publish null,quiet,url,layout * 0 -0 -q -u @U -L @L q <1
publish netstring,raw,new * 0 --netstring --raw --new made <1:a,
publish jsonl * 0 --jsonl q <{"payload":"a","headers":{"A":["b"]}}
publish jsonl rmq 1 --jsonl q <{"payload":"a","headers":{"Mq-Key":["key"],"Mq-Group":["a"]}}
publish delay * 0 -d 1h q <x
publish at * 0 --at tomorrow q <x
publish expires * 0 -e 1h q <x
publish timeout,attempts * 0 --timeout 5s --attempts 3 q <x
publish priority * 0 -p 5 q <x
publish key rmq 1 -k key q <x
publish unique rmq 0 -k new --unique 1h -d 1h q <x
publish unique rmq 0 -k new --unique queued q <x
publish coalesce rmq 0 -k other --unique queued --coalesce q <x
publish coalesce rmq 0 -k late --unique queued --coalesce q <x
publish key rmq 0 -k old --unique 1h -d 1h q <x
publish replace rmq 0 -k latest --replace q <x
publish spool * 0 --spool q <x
publish flush * 0 --flush
publish batch rmq 0 --batch b m <x
publish batch,null rmq 0 -0 --batch c m <x
publish after,after-ok,to rmq 0 --after b --after-ok --to p m <x
publish group rmq 0 -g a --max-length 99 q <x
publish from-tick rmq 0 --from-tick 9 q <x
publish until-tick rmq 0 --until-tick 9 q <x
publish tick rmq 0 --tick 7 q
publish max-length * 75 --max-length 1 q <x
publish max-delayed * 75 --max-delayed 1 -d 1h q <x
publish realtime rsmq 0 --realtime q <x
publish vt rsmq 0 --vt 5s new <x
publish maxsize rsmq 0 --maxsize 5000 new <x
publish param rmq 0 -P 1=b q <x
publish attach rmq 0 --attach a=@T/file q <x
publish attach rmq 1 --attach a=@T/file -k key q <x
publish attach rmq 75 --attach a=@T/file --wait=10ms -g a q <x
publish durable * 0 --durable q <x
publish wait rmq 75 --wait=10ms q <x
publish wait rmq 75 --wait=10ms -k new -i q <x
publish existing * 1 --existing none <x
publish http,host * 0 --http --host a q <POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx
publish http rmq 0 --http q <POST / HTTP/1.0\r\nMq-Key: key\r\nMq-Group: a\r\nContent-Length: 1\r\n\r\nx
consume - * 0 -n 1 q
consume drain * 0,1 --drain d
consume drain rmq! 0,75 --drain big -- sh -c 'exit 75'
consume drain rmq! 1 --drain big -- false
consume grace *! -15 --grace=0 --prefetch 4 --no-clean q -- sleep 99
set - rmq 0 f keep-rejected=1
consume limit rmq 0 -n 1 f -- true
consume drain * 0,1 --drain -j 3 d -- false
consume slots,prefetch,rate * 0 -j 2 --prefetch 5 --rate 100/s -n 3 q -- true
consume replace rmq 0 -I @ -n 1 q -- echo @
consume limit * 0 -n 1 q -- sh -c 'echo run x >&3'
consume limit * 0,75 -n 1 q -- sh -c 'exit 75'
consume limit * 0,75 -n 1 q -- sh -c 'echo dup 0-x-q >&3; echo pause 1 >&3'
consume limit * 0 --no-clean -n 2 s -- true
consume idle *! 0 --idle 10ms empty
consume idle rsmq 0 --idle 10ms s
consume timeout * 0,1 --timeout 10ms -n 1 q -- sleep 60
consume attempts * 0,1 --attempts 1 -n 1 q -- sh -c 'exit 75'
consume backoff * 0,75 --backoff 1s..2s -n 1 q -- sh -c 'exit 75'
consume retry-on * 0,75 --retry-on err -n 1 q -- false
consume push * 0 --push p -n 1 q -- sh -c 'echo push >&3'
consume notify rmq 0 --notify p -n 1 q -- true
consume notify rmq 0,1 --notify p --push empty --keep 1h -n 1 q -- false
consume rate-shared * 0 --rate-shared 100/s -n 2 q -- true
consume rest * 0,1 --rest 1ms..2ms -n 2 q -- false
consume batch,batch-wait * 0 --batch 3 --batch-wait 10ms -n 3 q -- cat
consume stream,window * 0 --stream --window 2 -n 3 q -- sh -c 'while read x; do echo done >&3; done'
consume strict,grace * 0,1 --strict --grace 1s -n 1 q -- true
consume rq,work-dir,log-dir,joblog,output * 0,1 --rq --work-dir @T --log-dir @T --joblog @T/jobs --output lines -n 1 q -- echo x
consume tag,no-clean,lines,verbose * 0 --tag x --no-clean -l -v -n 1 q
consume keep rmq 0 --keep 1h -n 1 q -- true
consume result rmq 0 --result stdout --keep 1h -n 1 q -- echo x
consume halt * 0 --halt 2 -n 1 q -- echo x
consume output-keep * 0 --output-keep 4K -n 1 q -- echo x
consume existing * 1 --existing none
consume new * 0,1 --new --drain d
consume at-most-once * 0 --at-most-once -n 2 q
consume null,quiet,url,layout * 0 -0 -q -u @U -L @L -n 1 q
consume netstring * 0 --netstring -n 1 q
consume jsonl * 0 --jsonl -n 1 q d
lease for * 0 --for 1m q
lease limit,attempts,tag,jsonl,verbose * 0 --for 1m -n 20 --attempts 1 --tag x --jsonl -v q
lease idle * 1 --for 1m --idle 10ms empty
lease existing * 1 --for 1m --existing none
lease new * 1 --for 1m --new none
lease ack * 0 --ack @receipt q
lease ack rmq 0 --ack @held g
lease for * 0 --for 1m s
lease ack * 0 --ack @shared s
lease reject * 0 --reject @receipt q
lease reject rmq 0 --reject @held g
lease extend * 0 --extend @receipt --for 2m q
lease extend rmq 0 --extend @held --for 2m g
lease extend * 0 --extend @receipt --for 0 q
lease return * 0 --return @receipt q
lease return rmq 0 --return @held g
lease ack rsmq 0 --ack @named many
lease ack rmq 0 --ack @large large
lease text * 0 --ack @receipt --text well q
lease text * 0 --reject @receipt --text bad q
lease keep rmq 0 --ack @receipt --keep 1h q
lease quiet,url,layout * 0 -q -u @U -L @L --for 1m q
stats - * 0
stats - * 0 q
stats - * 0 s
stats connections * 0 --connections q
stats json * 0 --json
stats json * 0 --json q
stats prometheus * 0 --prometheus
stats check * 2 --check ready=1 q
stats sort,reverse,nonempty,limit,verbose * 0 --sort ready --reverse --nonempty -n 1 -v
stats watch * -15 --watch=1s q
stats html * 0 --html q
stats refresh * 0 --html --refresh 5
stats http,host,payloads * 0 --http --host a --payloads q <GET /queue/q HTTP/1.0\r\n\r\n
stats http * 0 --http <GET /metrics HTTP/1.0\r\n\r\n
stats http * 0 --http <GET /message/@id HTTP/1.0\r\n\r\n
stats running * 0,1 --running
stats server * 0,64 --server
stats id * 0 --id @id
stats output,follow * 0 --id @rejected --output --follow
stats result rmq 1 --id @rejected --result
stats output * 0 --http --output <GET /message/@rejected HTTP/1.0\r\n\r\n
stats id * 1 --id @none q
stats batch rmq 0 --batch b m
stats list * 0 --list ready q
stats list * 0 --list delayed q
stats list * 0 --list rejected q
stats list * 0 --list unacked q
stats list rmq 0,1 --list ended q
stats list * 0 --list delayed --match . --offset 900 many
stats list * 0 --list delayed --offset 900 many
stats reasons * 0 --reasons q
stats match,not,key,newest,lines * 0 --list ready --match . --not --key zz --newest -l q
stats reason,since,stderr,header * 0 --list rejected --reason . --since 1h --not --stderr zz --not --header A=b q
stats spool * 1 --spool
stats older-than * 1 --list rejected --older-than 1h q
stats offset,null * 0 --list ready --offset 1 -0 q
stats netstring * 0 --list ready --netstring q
stats jsonl * 0 --list ready --jsonl q
stats quiet,url,layout * 0 -q -u @U -L @L
set - rmq 0 d keep-rejected=1h:1
clean - * 0
clean attempts,json * 0 --attempts 1 --json
clean interval * -15 --interval 1d
clean dry-run,verbose * 0 --dry-run -v
clean quiet,url,layout * 0 -q -u @U -L @L
return - * 0 q
return from * 0 --from delayed --match . many
return - rmq 0 big
return clone * 0 --clone q
return clone,from * 0 --clone --from ready q
return clone,from * 0 --clone --from unacked q
return from * 0 --from delayed q
return from rmq 0 --from unacked:@dead q
return to * 0 --to p q
return existing * 0,1 --existing --to p q
return delay rmq 0 --delay 1h q
return delay,from rmq 0 --from ready --delay 1h q
return at,from rmq 0 --from delayed --at tomorrow q
return priority,from rmq 0 --from ready --priority 5 q
return priority,from rmq 0 --from delayed --priority 5 q
return new * 0,1 --new --to p q
return clone rmq 0 --clone --from ready f
return clone,to * 0,64 --clone --from ready --to p q
return running,id * 1 --running --id @rejected q
return running,id * 75 --running --id @running q
return match,reason,since,not,stderr,header * 0 --match . --reason . --since 1h --not --stderr zz --not --header A=b q
return older-than * 1 --older-than 1h q
return key rmq 1 --key zz q
return batch rmq 0 --batch b m
return id * 0 --id @rejected q
return limit,rate,json,verbose * 0 -n 1 --rate 100/s --json -v q
return dry-run * 0 --dry-run q
return quiet,url,layout * 0 -q -u @U -L @L q
purge ready,force * 0 --ready -f q
purge rejected * 0 --rejected -f q
purge delayed * 0 --delayed -f q
purge delayed * 0 --delayed -f -n 1 many
purge delayed * 0 --delayed -f --match . -n 900 many
purge all * 0 --all -f q
purge all rmq! 0 --all -f f
purge delete-queue * 0 --delete-queue -f old
purge delete-queue * 0 --delete-queue -f d
purge delete-queue * 75 --delete-queue -f q
purge running,id * 1 --running --id @rejected q
purge running,id * 75 --running --id @running q
purge match * 0 --ready --match . -f q
purge match * 0 --delayed --match . -f q
purge reason,since,not,stderr,header * 0 --rejected --reason . --since 1h --not --stderr zz --not --header A=b -f q
purge older-than * 1 --rejected --older-than 1h -f q
purge batch rmq 0 --ready --batch b -f m
purge key rmq 0 --ready --key key -f q
purge id * 0 --rejected --id @rejected -f q
purge limit * 0 -n 1 --ready -f q
purge limit * 0 -n 1 --delayed -f q
purge dry-run,verbose * 0 --all --dry-run -v q
purge quiet,url,layout * 0 -q -u @U -L @L --all -f q
purge json * 0 --all --json -f q
pause - * 0 q
pause for,verbose * 0 --for 1m -v q
pause resume * 0 --resume paused
pause all,for * 0 --all --for 1m
pause all,resume * 1 --all --resume
pause quiet,url,layout * 0 -q -u @U -L @L q
set - * 0 q
set - * 0 q attempts=3 backoff= rate=5/s
set - rmq 0 q group-slots=2
set - * 0 q slots-shared=2
set - * 0 q slots-shared=
set create * 0 --create new attempts=3
set existing,verbose * 0 --existing -v q attempts=3
set new * 0 --new newer attempts=3
set json,quiet,url,layout * 0 --json -q -u @U -L @L q
"""
QUEUES = "big d empty f g gone large late m many old p paused q s".split()
# What says something about the tool, and asks no server.
WITHOUT = {"help", "version", "print-acl"}

# Needed when a connection was lost, or not written by MONITOR; and, by tool, while others
# are at work, by one that lives or is idle, in a long walk, or of a cleaner.  The rejected
# messages of RSMQ are a queue of their own, and nothing of mq-clean: no row of it is here.
UNSEEN = {
    "*": "+client|kill +client|list +config|get",
    "rmq": {
        "consume": "+hrandfield +pubsub|numsub +type +zrange +zremrangebyscore +zrevrangebyscore +zscore",
        "clean": "+type",
        "return": "+hrandfield +lmove +lpos +set +srem",
        "purge": "+lmove +lpos"},
    "rsmq": {
        "publish": "+hgetall &__redis__:invalidate &mq::wake::*",
        "consume": "+expire +hscan +pubsub|numsub +sscan +zrank +zremrangebyscore",
        "clean": "+del +hdel +hincrby +hset +hsetnx +persist +sadd +smembers +srem +zadd +zcount",
        "stats": "+hlen +smembers ~rsmq:QUEUES ~{rsmq}:QUEUES"},
    "": {}, "sentinel": {},
    "cluster": {tool: "+asking +wait +cluster|nodes " + rules for tool, rules in {
        "publish": "", "lease": "",
        "consume": "+hexists +rename +zrevrange",
        "stats": "~rmq::queue::[Q]::* ~rmq::connection::*::queue::[Q]::*",
        "clean": "+hkeys +hrandfield +set",
        "return": "+del +rpush ~rmq::connection::*::queue::[Q]::*",
        "purge": "+hrandfield +persist +sadd +set",
        "pause": "+exists", "set": "+exists"}.items()},
}


def at_all(*args):
    return [f.call(*args) for f in nodes]


def mq(tool, *args, url=admin, input=b"x"):
    """Returns the exit status and the output; what goes on is ended after a second."""
    p = subprocess.Popen([build + "/mq-" + tool, *args], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, MQ_URL=url))
    goes_on = any(a.startswith(("--watch", "--interval", "--grace=0")) for a in args)
    try:
        out, err = p.communicate(input, timeout=2 if goes_on else 300)
    except subprocess.TimeoutExpired:
        p.terminate()
        out, err = p.communicate()
    return p.returncode, out.decode(errors="replace"), err.decode(errors="replace")


def does(tool, *args, statuses=(0,)):
    status, out, err = mq(tool, *args)
    if status not in statuses:
        sys.exit("mq-%s %s: %d: %s" % (tool, " ".join(args), status, err))
    return out.strip()


def dead():
    """The name of a consumer that has died with five messages, of which two ran."""
    p = subprocess.Popen([build + "/mq-consume", "-q", "--tag", "dead", "-j", "2", "--prefetch",
        "3", "q", "--", "sh", "-c", "echo; exec sleep 600"], stdout=subprocess.PIPE)
    p.stdout.readline()
    p.stdout.readline()
    p.kill()
    p.wait()
    p.stdout.close()
    lease = "rmq::connection::dead*::heartbeat" if rmq else "*::connection:dead*"
    (f, key), = [(f, k) for f in nodes for k in f.call("KEYS", lease)]
    f.call("DEL", key)
    # On a cluster, each queue has a lease, too.
    for f in nodes:
        for more in f.call("KEYS", "*::dead*::queue::*::lease"):
            f.call("DEL", more)
    return re.search(r"dead[^:]*", key.decode()).group()


def runs(connection, id):
    """As if it had a run, of which nobody answers."""
    cluster = len(nodes) > 1
    key = ("rmq::connection::%s::running" if rmq else "%s::running:%%s" % (
        "{rsmq}" if cluster else "rsmq")) % connection
    text = '[{"queue":"%s","id":"%s","attempt":1,"grace_ms":0}]' % (
        "{rsmq}:q" if cluster and not rmq else "q", id)
    call("SET", key, text)


def receipt(*args):
    return re.search('"receipt":"([^"]*)"', does("lease", "--for", "1h", *args)).group(1)


def world():
    """A bit of all that there can be, and the words that rows use."""
    w = {"T": T, "L": layout, "U": user}
    for queue in "empty", "p", "old", "paused":
        does("set", "-q", "--create", queue, "attempts=9")
    does("pause", "paused")
    does("set", "-q", "--create", "s", "slots-shared=2")
    does("publish", "s")
    w["shared"] = receipt("s")
    for _ in range(3):
        does("publish", "s")
    if rmq:
        does("publish", "-k", "held", "-g", "b", "g")
        does("publish", "-g", "b", "--from-tick", "2", "g")
        w["held"] = receipt("g")
        does("publish", "--batch", "b", "m")
        does("consume", "-n", "1", "--no-clean", "m", "--", "false", statuses=(1,))
        does("publish", "--batch", "b", "m")
    for options in [], [], [], ["-e", "1h"], ["-e", "1h"]:
        does("publish", *options, "q")
    w["dead"] = dead()
    does("publish", "q")
    does("consume", "-q", "-n", "1", "--no-clean", "--output-keep", "4K", "q", "--", "sh", "-c", "echo x; exit 1", statuses=(0, 1))
    rejected = does("stats", "--list", "rejected", "--jsonl", "q")
    w["rejected"] = re.search('"id":"([^"]*)"', rejected).group(1)
    does("publish", "q")
    w["receipt"] = receipt("q")
    w["running"] = "7" * 32
    runs(w["receipt"].rpartition(".")[0], w["running"])
    w["id"] = does("publish", "-i", "q")
    w["none"] = w["id"][:10] + "0" * 22
    for options in [], [], ["-d", "1h"], ["-d", "1h"], ["-d", "1ms"], ["-p", "5"]:
        does("publish", *options, "q")
    for options in [], [], ["-d", "1ms"], ["-p", "5"]:
        does("publish", *options, "d")
    mq("publish", "-q", "-l", "-d", "1h", "many", input=b"x\n" * 1500)
    if not rmq:
        # One that is known by a name, behind many.
        prefix = "{rsmq}" if len(nodes) > 1 else "rsmq"
        call("ZADD", prefix + ":many", round(time.time() + 7200) * 1000, "a b")
        call("HSET", prefix + ":many:Q", "a b", "x")
        w["named"] = hashlib.sha1(b"a b").hexdigest()[:32]
    # What no script copies.
    if rmq:
        for options in ["large"], ["big"], ["big"], ["-d", "1ms", "big"]:
            mq("publish", *options, input=b"0" * 1100000)
        does("consume", "-n", "1", "--no-clean", "big", "--", "false", statuses=(1,))
        w["large"] = receipt("large")
        attached()
        does("publish", "-k", "late", "--unique", "queued", "-d", "1h", "q")
        does("publish", "-k", "latest", "--unique", "queued", "--coalesce", "-g", "latest",
            "-d", "1h", "q")
        call("HSET", "rmq::queue::[q]::locks", "kold", "%032d 1 1" % 1)
        does("publish", "-k", "key", "-g", "a", "q")
        does("publish", "-k", "other", "--unique", "queued", "q")
        does("publish", "-g", "a", "q")
        does("publish", "--from-tick", "5", "q")
        does("publish", "--from-tick", "8", "q")
        does("publish", "--tick", "6", "q")
        does("publish", "--attach", "a=" + T + "/file", "f")
        does("publish", "--wait=1ms", "q", statuses=(75,))
        does("publish", "--wait=1ms", "-e", "1ms", "late", statuses=(1, 75))
        does("publish", "-e", "1ms", "-p", "7", "late")
    return w


def attached():
    """Of three sets, one is to expire, one not to, and one is gone."""
    for _ in range(3):
        does("publish", "--attach", "a=" + T + "/file", "gone")
    refs = [(f, key) for f in nodes for key in f.call("KEYS", "mq::attach::*::refs")]
    (f, key), gone, kept = refs
    f.call("DEL", key)
    gone[0].call("EXPIRE", gone[1], 3600)
    kept[0].call("HDEL", kept[1], *kept[0].call("HKEYS", kept[1]))
    kept[0].call("HSET", kept[1], "%032d" % 1, 1)


def save():
    return [(f, key, f.call("PTTL", key), f.call("DUMP", key))
        for f in nodes for key in f.call("KEYS", "*")]


def restore(keys, args):
    """What is much is there for the rows that name it, and for cleaners; for those that
    name many, there are no attachments, for which a purge looks at each message."""
    at_all("FLUSHALL")
    at_all("SCRIPT", "FLUSH")
    skipped = {b"big", b"large", b"many"} - {a.encode() for a in args} if args != "clean" else set()
    if "many" in args:
        skipped.add(b"mq::attach")
    for node in nodes:
        node.pipe([("RESTORE", key, max(ttl, 0), value) for f, key, ttl, value in keys
                   if f is node and not any(word in key for word in skipped)])


def refused():
    """But the key of those who clean everything, which a consumer asks for once."""
    log = [dict(zip(entry[::2], entry[1::2])) for node in at_all("ACL", "LOG") for entry in node]
    objects = {entry[b"object"].decode() for entry in log}
    return " ".join(sorted(o for o in objects if not o.endswith("::cleaning")))


def be_durable(yes):
    at_all("CONFIG", "SET", "appendonly", "yes" if yes else "no")
    at_all("CONFIG", "SET", "appendfsync", "always" if yes else "no")


def permit(rules):
    # Servers before 7.2 would refuse a rule with that.
    more = ["+waitaof"] if "+wait" in rules and at_all("COMMAND", "INFO", "WAITAOF")[0][0] else []
    # Valkey 9.1 has rights for databases, too.
    if b"databases" in call("ACL", "GETUSER", "default"):
        more += ["resetdbs", "db=0"]
    at_all("ACL", "SETUSER", "app", "reset", "on", ">pw", *rules, *more)
    at_all("ACL", "LOG", "RESET")


def letters_of(tool, args):
    """The letters in the table of earlier rights for a tool with these options, and those
    for its targets."""
    options = {a.partition("=")[0] for a in args}
    rows = [line.split() for line in earlier if re.match("[A-Z] ", line)]
    mine = {letter for letter, of, *asked in rows if of == tool
            and (not asked or any(o[0] != "!" and o in options for o in asked)
                 or asked[0][0] == "!" and not any(o[1:] in options for o in asked))}
    return mine - {"G"}, mine & {"G"}


def rights_before(tool, args):
    """What a tool printed with these options, for all queues that rows name, or for any."""
    cluster, own, others = topology == "cluster", *letters_of(tool, args)
    names, rules = [*QUEUES, "none", "made", "new", "newer"], []
    if not set(names) & set(args):
        names = ["*"]
    ns = "{rsmq}" if cluster else "rsmq"
    for rule, *letters in [line.split() for line in earlier if line[0] in "+~&r"]:
        letters = set(letters[not rmq])
        if letters & (own | others) and not letters & ({"S"} if cluster else {"M"}):
            if cluster:
                rule = re.sub(r"::(?:\\\[(.q)\]|\{(.q)\})::",
                    lambda m: "::{%s}::" % m[1] if m[1] else "::\\[%s]::" % m[2], rule)
            rules += [rule.replace("%q", name).replace("%n", ns) for name in names]
    return [*rules, *("+asking +cluster|slots +cluster|nodes".split() if cluster else ())]


def try_row(tool, queues, statuses, args, input):
    """What is wrong, if anything."""
    end = args.index("--") if "--" in args else len(args)
    status, rules, err = mq(tool, "--print-acl", *args[:end], *queues)
    if status != 0:
        return "--print-acl: " + err
    rules = rights_before(tool, args[:end]) if before else rules.split()
    permit(rules)
    printed.append((tool, rules))
    at_all("ECHO", "row %d" % len(printed))
    status, out, err = mq(tool, *args, url=user, input=input)
    at_all("ECHO", "own")
    if refused() and not before:
        return "refused: " + refused()
    if str(status) not in statuses:
        return "%d: %s" % (status, err)


def run(row, words, keys):
    row = re.sub("@([a-zUTL]+)", lambda m: words.get(m.group(1), m.group()), row)
    row, _, input = row.partition(" <")
    tool, options, where, statuses, *args = shlex.split(row)
    queues = QUEUES if where.endswith("!") else []
    if where.strip("!") not in ("*", layout):
        return None
    # Older versions had no batches, no output at the server, and no slots-shared.
    if before and ({"batch", "after", "output-keep", "replace", "spool", "flush"} & set(options.split(","))
                   or (tool == "stats" and "--output" in args) or "s" in args):
        return None
    restore(keys, tool if tool == "clean" else args)
    if "durable" in options:
        be_durable(True)
    wrong = try_row(tool, queues, statuses.split(","), args, input.encode().decode("unicode_escape").encode())
    if "durable" in options:
        be_durable(False)
    return wrong and "mq-%s %s: %s" % (tool, " ".join(args), wrong)


def monitored():
    """The commands of each row, and their arguments: those of scripts, too."""
    at_all("ECHO", "end")
    row, last = None, 0
    commands, args = [set() for _ in printed], [set() for _ in printed]
    while last < len(nodes):
        with open(T + "/monitor", errors="replace") as f:
            last = f.read().count('"ECHO" "end"')
    # Each begins with its time, and several nodes may have written them.
    for line in sorted(open(T + "/monitor", errors="replace")):
        words = re.findall(r'"([^"\\]*(?:\\.[^"\\]*)*)"', line)
        if len(words) == 2 and words[0] == "ECHO":
            row = int(words[1][4:]) - 1 if words[1].startswith("row ") else None
        elif row is not None and words:
            name = words[0].lower()
            commands[row] |= {name, name + "|" + (words[1:] or [""])[0].lower()}
            # What is longer is a message, or a script.
            args[row].update(w for w in words[1:] if len(w) < 1000)
    return zip(printed, commands, args)


@functools.lru_cache(None)
def glob(rule):
    """A part in brackets stands for itself here, and so does a backslash."""
    return re.compile(fnmatch.translate(rule[1:].replace("\\[", "[[]")))


def is_needed(rule, rules, commands, args):
    if rule[0] == "+":
        return rule[1:] in commands
    others = [glob(r) for r in rules if r[0] == rule[0] and r != rule]
    return any(glob(rule).match(a) and not any(o.match(a) for o in others) for a in args)


def kind(rule):
    """The same for each queue; what is for all queues has none."""
    names = "|".join(QUEUES + ["none", "made", "new", "newer"])
    rule = re.sub(r"\\\[(%s)\]|\{(%s)\}" % (names, names), lambda m: "[Q]" if m[1] else "{Q}", rule)
    return re.sub(r"(rsmq}?):(%s)\b" % names, r"\1:Q", rule)


def superfluous():
    """Rules that no row needs, of each tool."""
    needed, all = {}, {}
    for (tool, rules), commands, args in monitored():
        mine, more = needed.setdefault(tool, set()), all.setdefault(tool, set())
        # What is for all queues is for each key, too.
        of_all = any(r.startswith(("~rmq::queue::\\[*", "~rmq::queue::{*", "~rsmq:*", "~{rsmq}:*"))
                     for r in rules)
        for rule in rules:
            if rule[0] == "+" or rule[0] in "~&" and not of_all:
                more.add(kind(rule))
                if kind(rule) not in mine and is_needed(rule, rules, commands, args):
                    mine.add(kind(rule))
    for tool in all:
        unseen = " ".join(UNSEEN[how].get(tool, "") for how in (layout, topology)).split()
        for rule in sorted(all[tool] - needed[tool] - {*unseen, *UNSEEN["*"].split()}):
            yield "mq-%s: no row needs %s" % (tool, rule)


def forgotten(rows):
    """Options that no row is for."""
    for tool in {row.split()[0] for row in rows}:
        had = {o for row in rows if row.split()[0] == tool for o in row.split()[1].split(",")}
        text = does(tool, "--help=all").split("\n\n", 1)[1]
        lines = [line for line in text.split("\n") if re.match(" +-", line)]
        there = {o for line in lines for o in re.findall(r"--([a-z][a-z-]*)", line[:55].split("  with ")[0])}
        for option in sorted(there - had - WITHOUT):
            yield "mq-%s --%s: has no row" % (tool, option)


rows = [row for row in ROWS.split("\n") if row]
open(T + "/file", "w").write("x")
earlier = open(before).read().split("\n")[:-1] if before else []
words = world()
keys = save()
printed = []
wrong = [run(row, words, keys) for row in rows]
if not before:
    wrong += [*forgotten(rows), *superfluous()]
print("\n".join(w for w in wrong if w))
