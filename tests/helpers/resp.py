# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Commands to a server, and its replies.
#
#   Connection(sock)      call(args...), pipe(commands): the reply, or the replies; close()
#   at(path, timeout)     one to the socket of that name
#   Refused               what the server says of a command that it refuses
#   item(file)            the next command or reply, as bytes
import socket


def item(f):
    """One command or reply, as bytes."""
    line = f.readline()
    if not line.endswith(b"\r\n"):
        raise OSError("the end")
    n = int(line[1:-2]) if line[:1] in b"$*" else -1
    if line[:1] == b"$" and n >= 0:
        return line + f.read(n + 2)
    return line + b"".join(item(f) for _ in range(n))


class Refused(RuntimeError):
    pass


class Connection:
    def __init__(self, sock):
        self.sock, self.f = sock, sock.makefile("rwb")

    def close(self):
        self.f.close()
        self.sock.close()

    def whole(self, data):
        """A server that goes may leave a part of its reply."""
        if not data.endswith(b"\r\n"):
            raise OSError("the server has gone")
        return data[:-2]

    def reply(self):
        line = self.whole(self.f.readline())
        kind, n = line[:1], line[1:]
        if kind == b"$":
            return None if n == b"-1" else self.whole(self.f.read(int(n) + 2))
        if kind == b"*":
            return [self.reply() for _ in range(int(n))]
        if kind == b"-":
            raise Refused(line.decode())
        return int(n) if kind == b":" else n

    def pipe(self, commands):
        for args in commands:
            args = [a if isinstance(a, bytes) else str(a).encode() for a in args]
            self.f.write(b"*%d\r\n" % len(args))
            for a in args:
                self.f.write(b"$%d\r\n%s\r\n" % (len(a), a))
        self.f.flush()
        return [self.reply() for _ in commands]

    def call(self, *args):
        return self.pipe([args])[0]


def at(path, timeout=None):
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(timeout)
    sock.connect(path)
    return Connection(sock)
