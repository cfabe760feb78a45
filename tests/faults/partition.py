# What stands between the nodes of a cluster and all that connects to them, so that one
# node can be cut off: what comes from it or goes to it then waits, as on a network that
# loses packets for a while, and new connections get no answer.
#
#   Partition()
#   listen(at, to, bus)      what connects to port at is with the node at port to
#   cut(at, id, clients)     the node of that port and id; whether from its clients, too
#   join()                   and no more
import asyncio
import threading

SENDER = slice(40, 80)    # of a message on the bus: the id of the node that sends it


class Link:
    def __init__(self, at, bus):
        self.at, self.bus, self.sender, self.replica = at, bus, b"", False

    def learn(self, data):
        """From the first bytes of whoever connects."""
        if self.bus and not self.sender:
            self.sender = data[SENDER]
        self.replica = self.replica or b"REPLCONF" in data[:200]


class Partition:
    def __init__(self):
        self.loop, self.joined = asyncio.new_event_loop(), asyncio.Event()
        self.at, self.id, self.clients = None, None, False
        self.joined.set()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def listen(self, at, to, bus):
        async def accept(reader, writer):
            await self.connect(Link(at, bus), to, reader, writer)
        self.run(asyncio.start_server(accept, "127.0.0.1", at))

    async def connect(self, link, to, reader, writer):
        first = await reader.read(65536)
        link.learn(first)
        await self.pass_through(link)
        try:
            there = await asyncio.open_connection("127.0.0.1", to)
        except OSError:
            writer.close()
            return
        there[1].write(first)
        await asyncio.gather(self.pump(link, reader, there[1], True),
                             self.pump(link, there[0], writer, False))

    async def pump(self, link, reader, writer, learns):
        try:
            while data := await reader.read(65536):
                if learns:
                    link.learn(data)
                await self.pass_through(link)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()

    async def pass_through(self, link):
        if self.is_cut(link):
            await self.joined.wait()

    def is_cut(self, link):
        if self.at is None:
            return False
        if link.bus:
            return link.at == self.at + 10000 or link.sender == self.id
        return link.at == self.at and (link.replica or self.clients)

    async def change(self, at, id, clients):
        self.at, self.id, self.clients = at, id, clients
        self.joined.clear() if at else self.joined.set()

    def cut(self, at, id, clients):
        self.run(self.change(at, id.encode(), clients))

    def join(self):
        self.run(self.change(None, None, False))
