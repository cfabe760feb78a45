# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# A bad network between some of the tools and the server.
#
#   Proxy(here, there, *cuts)   listens on the one, connects to the other: each the path
#                        of a socket, or a port of this host; the cuts are there from the
#                        first connection on
#   cut(how, word)       the next request, with this in it, ends its connection:
#                        'before' it was sent, in the middle ('half'), or with
#                        its 'reply', of which half may come ('half reply');
#                        'late': before, for the client, and for the server it
#                        comes when it is let go
#   let_go()             what is late comes now
#   slow                 all comes so many seconds later
#   stall(ways)          holds what goes up (True) or down (False) from now on
#   lose(ways)           drops it; nobody is told
#   vanish(side)         the connections end on one side only: 'client', 'server'
#   heal()               all is well; connections that have lost something end
#
# For others who stand between: made(link) hears of a connection before anything comes,
# forward(link, up, data, dst) hands on what has come, or ends it by False, and
# ended(link) hears of its end.
import socket
import threading
import time


class Link:
    def __init__(self, client, server):
        self.client, self.server = client, server
        self.doomed = None      # how its next reply ends it
        self.spoilt = False     # something was lost
        self.held = b""         # what comes late
        for s in (client, server):
            if s.family == socket.AF_INET:
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def end(self):
        for s in (self.client, self.server):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def listening(at):
    if isinstance(at, int):
        return socket.create_server(("127.0.0.1", at))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(at)
    listener.listen(64)
    return listener


def connected(to):
    if isinstance(to, int):
        return socket.create_connection(("127.0.0.1", to))
    there = socket.socket(socket.AF_UNIX)
    there.connect(to)
    return there


class Proxy:
    def __init__(self, here, there, *cuts):
        self.there, self.lock = there, threading.Lock()
        self.links, self.cuts = set(), []
        self.gates = {True: threading.Event(), False: threading.Event()}
        self.losing, self.slow = set(), 0
        self.heal()
        for cut in cuts:
            self.cut(*cut)
        self.listener = listening(here)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                link = Link(client, connected(self.there))
                self.made(link)
            except OSError:
                client.close()
                continue
            with self.lock:
                self.links.add(link)
            ways = [threading.Thread(target=self.pump, args=(link, up),
                                     daemon=True) for up in (True, False)]
            for t in ways:
                t.start()
            threading.Thread(target=self.bury, args=(link, ways),
                             daemon=True).start()

    def bury(self, link, ways):
        for t in ways:
            t.join()
        link.client.close()
        link.server.close()
        with self.lock:
            self.links.discard(link)
        self.ended(link)

    def made(self, link):
        pass

    def ended(self, link):
        pass

    def pump(self, link, up):
        src, dst = ((link.client, link.server) if up
                    else (link.server, link.client))
        try:
            while True:
                data = src.recv(65536)
                if not data or not self.forward(link, up, data, dst):
                    break
        except OSError:
            pass
        # One that has vanished on one side stays on the other, for a while.
        if not link.spoilt:
            link.end()

    def forward(self, link, up, data, dst):
        if self.slow:
            time.sleep(self.slow)
        self.gates[up].wait()
        if up in self.losing or link.spoilt:
            link.spoilt = True
            return True
        if not up and link.doomed:
            if link.doomed == "half reply":
                dst.sendall(data[:len(data) // 2])
            return False
        how = self.next_cut(data) if up else None
        if how == "before":
            return False
        if how == "late":
            link.spoilt, link.held = True, data
            link.client.shutdown(socket.SHUT_RDWR)
            return True
        if how == "half":
            dst.sendall(data[:len(data) // 2])
            return False
        link.doomed = how
        dst.sendall(data)
        return True

    def next_cut(self, data):
        with self.lock:
            for how, word in self.cuts:
                if word in data:
                    self.cuts.remove((how, word))
                    return how
        return None

    def cut(self, how, word=b""):
        with self.lock:
            self.cuts.append((how, word))

    def let_go(self):
        with self.lock:
            late = [link for link in self.links if link.held]
        for link in late:
            try:
                link.server.sendall(link.held)
            except OSError:
                pass
            link.held = b""

    def stall(self, ways):
        for up in ways:
            self.gates[up].clear()

    def lose(self, ways):
        self.losing = set(ways)

    def vanish(self, side):
        with self.lock:
            links = list(self.links)
        for link in links:
            link.spoilt = True
            try:
                getattr(link, side).shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def heal(self):
        self.losing = set()
        with self.lock:
            self.cuts.clear()
            spoilt = [link for link in self.links if link.spoilt]
        for link in spoilt:
            link.end()
        for gate in self.gates.values():
            gate.set()

    def close(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self.heal()
        with self.lock:
            links = list(self.links)
        for link in links:
            link.end()
