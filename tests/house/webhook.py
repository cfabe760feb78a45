# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
"""A server for webhook.bats: what it answers is in the path, and each request that it
has read goes to a file: "PATH KEY BODY" on a line.

usage: webhook.py FILE: prints its port."""

import http.server
import sys
import time


class Hook(http.server.BaseHTTPRequestHandler):
    """/CODE is answered with that, /then/CODE only the first time, /hang never."""

    seen = set()

    def log_message(self, *_):
        """Says nothing."""

    def do_POST(self):
        """Notes the request, then answers."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        key = self.headers["Idempotency-Key"]
        with open(sys.argv[1], "a", encoding="utf-8") as log:
            print(self.path, self.headers["Content-Type"], key, body, file=log)
        word = self.path.rsplit("/", maxsplit=1)[1]
        if word == "hang":
            time.sleep(3600)
        if self.path.startswith("/then/") and self.path in self.seen:
            word = "200"
        self.seen.add(self.path)
        self.send_response(int(word))
        self.end_headers()


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
