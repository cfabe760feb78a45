# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The faults.  Each is a function of a round: it does one thing at a random
# moment, and undoes it after a while.
#
#   KINDS        their names, in the order of the table
#   inject(round, kind)  raises what went wrong with it
import os
import re
import signal
import time

import places
import world


def wait(round, least, most):
    time.sleep(round.r.uniform(least, most))


def choose(round, *kinds):
    tools = round.cast.living(*kinds)
    return round.r.choice(tools) if tools else None


def send(pid, how):
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        pass


# --- processes ---

def none(round):
    pass


def kill_consumer(round):
    tool = choose(round, "consumer")
    if tool:
        tool.kill()
        round.kills += 1


def kill_script(round):
    """What its consumer holds may have been done, and is run again."""
    tool = choose(round, "consumer")
    for pid in tool.children()[:2] if tool else []:
        round.held(tool)
        send(pid, signal.SIGKILL)
        round.kills += 1


def kill_other(round):
    tool = choose(round, "publisher", "cleaner", "operator")
    if tool:
        tool.kill()
        round.kills += 1


def terminate(round):
    """They give back what they have, and end what runs."""
    tool = choose(round, "consumer", "publisher")
    if tool:
        tool.kill(signal.SIGTERM)


def stop(round):
    """Anybody, the server, too; for less than a lease."""
    tool = choose(round)
    pid = round.r.choice([round.world.redis.pid] + [tool.p.pid] * 3 if tool
                         else [round.world.redis.pid])
    send(pid, signal.SIGSTOP)
    wait(round, 0.05, 0.4)
    send(pid, signal.SIGCONT)


def taken_for_dead(round):
    """It is stopped for longer than its lease; others get what it had."""
    tags = [t for t, tool in round.cast.consumers.items() if tool.p.poll() is None]
    if not tags:
        return
    tag = round.r.choice(tags)
    pid = round.cast.consumers[tag].p.pid
    send(pid, signal.SIGSTOP)
    try:
        until_stopped(pid)
        round.world.take_for_dead(tag)
        wait(round, 0.05, 0.3)
    finally:
        send(pid, signal.SIGCONT)


def until_stopped(pid):
    for _ in range(500):
        if world.state_of(pid) in "TZ":
            return
        time.sleep(0.01)


# --- the server ---

def restart(end):
    def once(round):
        with round.restarting:
            end(round.world)
            wait(round, 0, 0.2)
            round.world.start()
    return once


def kill_server(round):
    restart(world.World.kill)(round)
    round.kills += 1


def client_kill(round, all=0.3):
    call, r = round.world.call, round.r
    if r.random() < all:
        call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        return
    ids = [line.split()[0][3:] for line in call("CLIENT", "LIST").decode().splitlines()]
    for id in r.sample(ids, min(3, len(ids))):
        call("CLIENT", "KILL", "ID", id)


def client_pause(round):
    ms = round.r.randrange(50, 500)
    round.world.call("CLIENT", "PAUSE", ms, round.r.choice(("ALL", "WRITE")))
    time.sleep(ms / 1000)


def debug_sleep(round):
    round.world.call("DEBUG", "SLEEP", "%.2f" % round.r.uniform(0.05, 0.5))


def flushing(fault=None):
    """Once, or again and again: what is sent meanwhile is carried out or not."""
    def during(round):
        end = time.monotonic() + round.r.choice((0, round.r.uniform(0.2, 1)))
        pause = round.r.choice((0.004, 0.04))
        while True:
            round.world.call("SCRIPT", "FLUSH")
            if fault:
                wait(round, 0, 0.06)
                fault(round, 0.7)
            wait(round, 0, pause)
            if time.monotonic() > end:
                break
    return during


def setting(name, bad, good):
    def during(round):
        round.world.call("CONFIG", "SET", name, bad)
        wait(round, 0.05, 0.4)
        # Whoever has restarted it meanwhile has done so, too.
        round.world.call("CONFIG", "SET", name, good)
    return during


def misconf(round):
    """A save fails, because a directory is in its way."""
    call, name = round.world.call, round.world.D + "/dump.rdb"
    if os.path.isfile(name):
        os.unlink(name)
    os.makedirs(name, exist_ok=True)
    try:
        call("CONFIG", "SET", "save", "3600 100000000")
        call("BGSAVE")
        until_saved(call)
        wait(round, 0.05, 0.4)
    finally:
        call("CONFIG", "SET", "save", "")
        os.rmdir(name)


def until_saved(call):
    end = time.monotonic() + world.LIMIT
    while time.monotonic() < end:
        said = call("INFO", "persistence")
        if b"rdb_bgsave_in_progress:0" in said:
            if b"rdb_last_bgsave_status:err" in said:
                return
            break
        time.sleep(0.01)
    raise OSError("the save did not fail")


def loading(round):
    """A server that is ended while it reloads can be seen empty: not both."""
    with round.restarting:
        reload(round)


def reload(round):
    """What is loaded slowly is in another database."""
    call = round.world.call
    lua = ("redis.call('SELECT', 1) for i = 1, 150 do "
           "redis.call('SET', 'b' .. i, ('x'):rep(2000)) end")
    call("EVAL", lua, 0)
    call("CONFIG", "SET", "loading-process-events-interval-bytes", 1024)
    call("CONFIG", "SET", "key-load-delay", round.r.randrange(300, 3000))
    try:
        call("DEBUG", "RELOAD")
    finally:
        call("CONFIG", "SET", "key-load-delay", 0)


COMMANDS = """del exists expire get hdel hexists hget hincrby hkeys hlen hmget
    hrandfield hset hsetnx lindex llen lmove lpos lpush lrange lrem ltrim persist
    pexpire pttl rpop rpush sadd scard set sismember smembers smismember srem time
    zadd zcard zcount zrange zrangebyscore zrank zrem zremrangebyrank zscore
    """.split()


def noperm(round):
    """Whole steps, or a command in the middle of a script: see mq-layout(7)."""
    lost = round.r.choice((["-@all"], ["-evalsha", "-eval"], ["-evalsha", "-eval",
        "-lpush"], ["resetkeys"], ["-@read"], *[["-" + c] for c in COMMANDS] * 2))
    rights = round.world.rights
    users = round.r.choice((list(rights), [round.r.choice(list(rights))]))
    for user in users:
        round.world.call("ACL", "SETUSER", user, *lost)
    round.note("revoked: %s of %s" % (" ".join(lost), " ".join(users)))
    wait(round, 0.05, 0.4)
    round.denied |= denied(round.world)
    for user in users:
        round.world.call("ACL", "SETUSER", user, *rights[user])


def denied(server):
    """The tags of the consumers that have met a missing right."""
    return {tag.decode() for entry in server.call("ACL", "LOG", 128)
            for tag in re.findall(rb" name=(c\d+)-", dict(places.pairs(entry))[b"client-info"])}


# --- the network ---

def cut(round):
    for _ in range(round.r.randint(3, 12)):
        round.proxy.cut(round.r.choice(("before", "half", "reply", "reply",
                                        "half reply")))
        wait(round, 0, 0.03)


def half_open(round):
    if round.r.random() < 0.5:
        round.proxy.vanish(round.r.choice(("client", "server")))
    else:
        round.proxy.lose(ways(round))
    wait(round, 0.05, 0.4)
    round.proxy.heal()


def stall(round):
    round.proxy.stall(ways(round))
    wait(round, 0.05, 0.5)
    round.proxy.heal()


def ways(round):
    return round.r.choice(((True,), (False,), (True, False)))


FAULTS = {
    "none": none,
    "kill consumer": kill_consumer,
    "kill script": kill_script,
    "kill others": kill_other,
    "terminate": terminate,
    "stop, continue": stop,
    "taken for dead": taken_for_dead,
    "kill redis": kill_server,
    "shutdown nosave": restart(world.World.shutdown),
    "client kill": client_kill,
    "client pause": client_pause,
    "debug sleep": debug_sleep,
    "script flush": flushing(),
    "flush, kill": flushing(client_kill),
    "cut": cut,
    "half-open": half_open,
    "stall": stall,
    "maxmemory": setting("maxmemory", "1", "0"),
    "misconf": misconf,
    "noreplicas": setting("min-replicas-to-write", "1", "0"),
    "loading": loading,
    "noperm": noperm,
}
ALL = "all of them"
KINDS = [*FAULTS, ALL]
MAY_REFUSE = ("noperm", ALL)
NETWORK = ("cut", "half-open", "stall")
# With much under way, where the network is slow.
SLOW = ("client kill", "script flush", "flush, kill", "noperm")


def inject(round, kind):
    one = round.r.choice(list(FAULTS)[1:]) if kind == ALL else kind
    try:
        FAULTS[one](round)
    except (OSError, places.Refused) as e:
        # Two faults at once can be in each other's way.
        if kind != ALL:
            raise
        round.note("%s: %s" % (one, e))
        return
    round.note(one)
    round.times += 1
