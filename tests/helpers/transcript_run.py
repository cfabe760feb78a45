# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
"""One scenario at work: see transcript.py."""
import asyncio
import glob
import hashlib
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time


class Scripts:
    """The Lua scripts of a build, from the lua.c that it was made of."""

    def __init__(self, build):
        self.texts, self.names = {}, {}
        for file in glob.glob(build + "/lua*.c"):
            arrays = re.findall(r"char (\w+)\[\] = \{(.*?)\}", open(file).read(), re.S)
            for name, array in arrays:
                text = bytes(int(n, 16) for n in re.findall(r"0x(\w\w)", array))
                self.texts[name] = text
                self.names[text.decode()] = name
                self.names[hashlib.sha1(text).hexdigest()] = name
        if not self.texts:
            sys.exit("%s: no lua.c there" % build)

    def load(self, sock):
        subprocess.run(["redis-cli", "-s", sock, "--pipe"], check=True,
            stdout=subprocess.DEVNULL,
            input=b"".join(b"*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%d\r\n%s\r\n" % (len(t), t)
                           for t in self.texts.values()))


class Connection:
    """What one client has said: a list of commands, each a list of words."""

    def __init__(self, pid, parent):
        self.pid, self.parent, self.open = pid, parent, True
        self.commands, self.rest = [], b""

    def feed(self, data):
        self.rest += data
        while (command := self.next()) is not None:
            self.commands.append(command)

    def next(self):
        head, _, rest = self.rest.partition(b"\r\n")
        words = []
        for _ in range(int(head[1:] or 0) if rest else 0):
            size, mark, rest = rest.partition(b"\r\n")
            n = int(size[1:]) if mark else 0
            if not mark or len(rest) < n + 2:
                return None
            words.append(rest[:n].decode(errors="backslashreplace"))
            rest = rest[n + 2:]
        if not words:
            return None
        self.rest = rest
        return words


class Recorder:
    """A proxy in front of a server."""

    def __init__(self, sock, server):
        self.server, self.connections, self.lose = server, [], None
        self.loop = asyncio.new_event_loop()
        self.loop.run_until_complete(asyncio.start_unix_server(self.serve, sock))
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    async def serve(self, reader, writer):
        peer = writer.get_extra_info("socket").getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        pid = struct.unpack("3i", peer)[0]
        with open("/proc/%d/stat" % pid) as stat:
            connection = Connection(pid, int(stat.read().rpartition(")")[2].split()[1]))
        self.connections.append(connection)
        from_server, to_server = await asyncio.open_unix_connection(self.server)

        def asked(data):
            connection.feed(data)
            return True

        def answered(data):
            if not self.lose or not any(map(self.lose, connection.commands)):
                return True
            self.lose = None
            return False
        await asyncio.gather(self.pump(reader, to_server, asked),
                             self.pump(from_server, writer, answered))
        connection.open = False

    async def pump(self, reader, writer, may_pass):
        try:
            while (data := await reader.read(1 << 16)) and may_pass(data):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()


class Run:
    """One scenario: its directory, its server, its processes."""

    def __init__(self, build, scripts, layout):
        self.build, self.scripts, self.layout = build, scripts, layout
        self.rsmq = layout == "rsmq"
        self.dir = tempfile.mkdtemp(prefix="mq.")
        self.direct = self.dir + "/redis.sock"
        self.log, self.tools = [], []
        self.env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": self.dir,
                    "TZ": "UTC", "MQ_URL": "unix://%s/mq.sock" % self.dir, "MQ_LAYOUT": layout}

    def __enter__(self):
        self.server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket",
            self.direct, "--dir", self.dir, "--save", "",
            "--appendonly", "yes", "--appendfsync", "always"],
            stdout=subprocess.DEVNULL)
        self.wait(lambda: self.redis("ping") == "PONG")
        self.scripts.load(self.direct)
        self.recorder = Recorder(self.dir + "/mq.sock", self.direct)
        return self

    def __exit__(self, *_):
        for _, process in self.tools:
            if process.poll() is None:
                process.kill()
        self.server.kill()
        self.server.wait()
        shutil.rmtree(self.dir)

    def redis(self, *args):
        return subprocess.run(["redis-cli", "-s", self.direct, *args],
                              capture_output=True, text=True).stdout.strip()

    def wait(self, condition):
        end = time.monotonic() + 180
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError("\n".join(
                    self.log + [self.printed(p, "err") for _, p in self.tools]))
            time.sleep(0.01)

    def start(self, tool, *args, stdin=subprocess.DEVNULL, stdout=None):
        """A tool in the background."""
        tool = "mq-" + tool
        number = 1 + sum(name.startswith(tool + ".") for name, _ in self.tools)
        name = "%s.%d" % (tool, number)
        out, err = (open("%s/%s.%s" % (self.dir, name, s), "wb") for s in ("out", "err"))
        process = subprocess.Popen([os.path.join(self.build, tool), *args], env=self.env,
                                   cwd=self.dir, stdin=stdin, stdout=stdout or out, stderr=err)
        process.name = name
        self.tools.append((name, process))
        self.log.append("%s: %s %s" % (name, tool, " ".join(map(shown, args))))
        return process

    def end(self, process, sig=None):
        """Ends it, or waits for its end, and notes what came of it."""
        if sig:
            process.send_signal(sig)
        process.wait(60)
        self.log.append("%s: status %d" % (process.name, process.returncode))
        for stream in "out", "err":
            text = self.printed(process, stream)
            self.log += ["%s: %s: %s" % (process.name, stream, lasting(line))
                         for line in text.splitlines()]
        return self.printed(process)

    def printed(self, process, stream="out"):
        with open("%s/%s.%s" % (self.dir, process.name, stream), errors="backslashreplace") as f:
            return f.read()

    def mq(self, tool, *args, input=None):
        """A tool from its start to its end; what it printed."""
        with tempfile.TemporaryFile() as stdin:
            stdin.write((input or "").encode())
            stdin.seek(0)
            return self.end(self.start(tool, *args, stdin=stdin))

    def script(self, text):
        """An executable script, which finds the payload in $x."""
        path = "%s/script%d" % (self.dir, len(glob.glob(self.dir + "/script*")))
        with open(path, "w") as f:
            f.write("#!/bin/sh\n%s\n" % text)
        os.chmod(path, 0o700)
        return path

    def name(self, words):
        """That of the script that is called, or ''."""
        return self.scripts.names.get(words[1], "") if words[0].startswith("EVAL") else ""

    def running(self):
        """A consumer has told what it runs."""
        return self.redis("keys", "rsmq::running:*" if self.rsmq else "*::running")

    def known(self, queue):
        return self.redis("hexists", "rsmq:%s:Q" % queue, "vt") == "1" if self.rsmq else \
            self.redis("sismember", "rmq::queues", queue) == "1"

    def touch(self, name):
        open(self.dir + "/" + name, "w").close()

    def there(self, name):
        return glob.glob(self.dir + "/" + name)

    def forget(self, name):
        for file in self.there(name):
            os.unlink(file)

    def held(self):
        """How many messages consumers have."""
        pattern, size = ("*:Xheld:*", "hlen") if self.rsmq else ("*::unacked", "llen")
        return sum(int(self.redis(size, key)) for key in self.redis("keys", pattern).split())

    def expire(self):
        """The leases of all connections are over."""
        for key in self.redis("keys", "rsmq:q:Xheld:*").split():
            for id in self.redis("hkeys", key).split():
                self.redis("zadd", "rsmq:q", "XX", "1", id)
            self.redis("del", key)
        leases = "rsmq::connection:*" if self.rsmq else "*::heartbeat"
        for key in self.redis("keys", leases).split():
            self.redis("del", key)


def shown(word):
    return word if re.fullmatch(r"[\w@%+=:,./\[\]{}()*<>-]+", word) else repr(word)


def lasting(line):
    """A line of output without how long things took, and how wide that is."""
    for pattern, mask in (
            (r'(data-l="(?:oldest|for|latest|rejected|pid|age|newest)" data-v=)"\d+">[^<]*', r'\1"<n>"><n>'),
            (r"\b\d+\.\d+s?\b", "<n>"),
            (r'("(?:runs|lease_ms)":|_bucket\{.*\} )\d+', r"\1<n>"),
            (r"\b\d+(ms|[smhd])\b", "<age>"),
            (r"  +", "  ")):
        line = re.sub(pattern, mask, line)
    return line.replace("\0", "\\0")
