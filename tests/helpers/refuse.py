# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# refuse.py PORT WORD N: between clients and the node of a cluster at that port of this host, in
# whose place it stands, at the port that it prints.  Every N-th command with this word is
# refused with TRYAGAIN.
import itertools, socket, socketserver, sys

from resp import item

there, word, n = int(sys.argv[1]), sys.argv[2].encode(), int(sys.argv[3])
seen = itertools.count(1)


class Client(socketserver.StreamRequestHandler):
    def handle(self):
        up = socket.create_connection(("127.0.0.1", there))
        f = up.makefile("rb")
        try:
            while True:
                command = item(self.rfile)
                if command.split(b"\r\n")[2] == word and next(seen) % n == 0:
                    self.wfile.write(b"-TRYAGAIN Multiple keys request during rehashing\r\n")
                    continue
                up.sendall(command)
                self.wfile.write(item(f).replace(b":%d\r\n" % there, b":%d\r\n" % here))
        except OSError:
            up.close()


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


server = Server(("127.0.0.1", 0), Client)
here = server.server_address[1]
print(here, flush=True)
server.serve_forever()
