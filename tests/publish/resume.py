# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# resume.py HERE THERE FAULT...: a bad network in front of a server, on unix
# sockets; see faults/proxy.py.  Each FAULT is one of
#
#   HOW:WORD      the next request with this in it is cut so; HOW may be 'often':
#                 then in any way, and again and again
#   then:COMMAND  of the shell, when a reply is cut
#   after:FILE    the next connection, when the FILE is there, ends behind so many bytes as
#                 that says; the FILE is gone then
#   do:WORD:COMMAND   before the WORD is sent; the server has carried out all that came
#                 before
#
# USR1: what is late comes now; when it has, HERE.gone is there.
import fcntl
import os
import random
import signal
import struct
import subprocess
import sys
import termios
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(here) + "/faults")

import proxy    # noqa: E402

CUTS = ("before", "half", "reply", "reply", "half reply")


def do(command):
    subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)


def wait_until_read(server):
    """What the server reads it carries out before it listens to others."""
    left = True
    while left:
        time.sleep(0.001)
        left, = struct.unpack("i", fcntl.ioctl(server, termios.TIOCOUTQ, bytes(4)))


class Network(proxy.Proxy):
    def __init__(self, here, there, faults):
        self.before, self.then, self.last, self.after = {}, [], b"", None
        cuts = []
        for how, rest in (fault.split(":", 1) for fault in faults):
            if how == "then":
                self.then.append(rest)
            elif how == "after":
                self.after = rest
            elif how == "do":
                word, command = rest.split(":", 1)
                self.before[word.encode()] = command
            elif how != "often":
                cuts.append((how, rest.encode()))
        super().__init__(here, there, *cuts)

    def made(self, link):
        link.left = None
        if self.after and os.path.exists(self.after):
            with open(self.after) as f:
                link.left = int(f.read())
            os.unlink(self.after)

    def forward(self, link, up, data, dst):
        if up and link.left is not None:
            if len(data) >= link.left:
                dst.sendall(data[:link.left])
                return False
            link.left -= len(data)
        if up and self.before:
            # A word may come in two parts.
            for word in [w for w in self.before if w in self.last[-99:] + data]:
                at = max(data.find(word), 0)
                dst.sendall(data[:at])
                data = data[at:]
                wait_until_read(dst)
                do(self.before.pop(word))
            self.last = data
        if not up and link.doomed:
            for command in self.then:
                do(command)
        return super().forward(link, up, data, dst)


def main(here, there, *faults):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    far = Network(here, there, faults)
    while often := [fault[6:].encode() for fault in faults if fault.startswith("often:")]:
        far.cut(random.choice(CUTS), often[0])
        time.sleep(0.02)
        far.cuts.clear()
        time.sleep(random.random() * 0.1)
    signal.sigwait([signal.SIGUSR1])
    far.let_go()
    open(here + ".gone", "w").close()
    signal.sigwait([signal.SIGUSR1])


main(*sys.argv[1:])
