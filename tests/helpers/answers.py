# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# answers.py SOCKET SERVER COMMAND[,...] REPLY: between clients and the server at a socket; the
# answer to each of these commands becomes REPLY, with \r\n for blanks, and where that has a %,
# the server's own.
import socketserver, socket, sys, threading

from resp import item

path, server, names, reply = sys.argv[1], *(a.encode() for a in sys.argv[2:])


class Client(socketserver.StreamRequestHandler):
    def handle(self):
        up = socket.socket(socket.AF_UNIX)
        up.connect(server)
        hit = []
        threading.Thread(target=self.back, args=(up, hit), daemon=True).start()
        try:
            while True:
                command = item(self.rfile)
                hit.append(command.lower().split(b"\r\n")[2] in names.split(b","))
                up.sendall(command)
        except OSError:
            up.close()

    def back(self, up, hit):
        f = up.makefile("rb")
        try:
            while True:
                own = item(f)
                if hit and hit.pop(0):
                    own = reply.replace(b" ", b"\r\n").replace(b"%", own)
                self.wfile.write(own)
        except (OSError, ValueError):
            self.request.close()


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 50


Server(path, Client).serve_forever()
