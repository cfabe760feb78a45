# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What some .bats files share: queues as bytes, on the server in $D.
#
#   call(args...)                   one command and its reply
#   fill(queue, state, elements)    pushes them, the oldest first
#   read(queue, state)              all that is there, the oldest first
#   hostile(n)                      payloads with what confuses programs
#   want(a, b)                      ends the test unless they are equal
#   on_terminal(input, args, columns)   runs a program on a terminal of its own, so
#                                   many columns wide, or $WIDTH, or 40; types input when
#                                   it asks; prints what there is to see, and ends with
#                                   its exit status
import binascii
import fcntl
import os
import pty
import random
import re
import socket
import struct
import sys
import termios

import resp

def connect():
    if os.environ.get("TOPOLOGY") == "cluster":
        base = int(open(os.environ["D"] + "/port").read())
        for i in range(3):
            yield resp.Connection(socket.create_connection(("127.0.0.1", base + i)))
        return
    yield resp.at(os.environ["D"] + "/redis.sock")


nodes = list(connect())


def node_of(key):
    """A cluster of the tests has a third of the slots on each node."""
    tag = re.search(rb"\{(.+?)\}", key)
    slot = binascii.crc_hqx(tag.group(1) if tag else key, 0) % 16384
    return nodes[(slot * len(nodes) + len(nodes) - 1) // 16384]


def call(*args):
    """The first argument is a key; all are written as on one server."""
    args = [a if isinstance(a, bytes) else str(a).encode() for a in args]
    if len(nodes) > 1:
        args = [re.sub(rb"^(rmq::.*?queue::)\[(.*)\]::", rb"\1{\2}::", a) for a in args]
    return node_of(args[1]).call(*args)


def key(queue, state):
    return b"rmq::queue::[%s]::%s" % (queue.encode(), state.encode())


def fill(queue, state, elements):
    call("SADD", "rmq::queues", queue)
    for i in range(0, len(elements), 500):
        call("LPUSH", key(queue, state), *elements[i:i + 500])


def read(queue, state):
    return call("LRANGE", key(queue, state), 0, -1)[::-1]


def hostile(n):
    pieces = [b"\\", b"[", b"]", b"(", b"*", b"\n", b"\0", b"\xff\xfe",
        b"\xc3", b"a.c", b"$", b"^", b"{2}", b"%s", b"\xff\0\xbe\xbe\x4a", b"-"]
    rng = random.Random(7)
    return [b"%d:" % i + b"".join(rng.choice(pieces)
        for _ in range(rng.randrange(12))) for i in range(n)]


def want(a, b):
    if a != b:
        sys.exit("%d elements, not %d, or others" % (len(a), len(b)))


def on_terminal(input, args, columns=int(os.environ.get("WIDTH", 40))):
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
        os.execvp(args[0], args)
    seen = b""
    while True:
        try:
            part = os.read(fd, 4096)
        except OSError:
            break
        if not part:
            break
        seen += part
        if input and b"? [y/N] " in seen:
            os.write(fd, input.encode())
            input = ""
    sys.stdout.buffer.write(seen)
    sys.stdout.flush()
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
