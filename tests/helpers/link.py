#!/usr/bin/env python3
"""link.py PORT [SECONDS [N]]: passes on what comes to a free port of this host,
which it prints, to that one, or the socket of that name, and back, all of it
that much later, but for the first N pieces each way.  What it has when it is killed is lost, as on a network."""
import socket
import sys
import threading
import time

there_is = sys.argv[1]
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 0
at_once = int(sys.argv[3]) if len(sys.argv) > 3 else 0


def connect():
    if "/" not in there_is:
        return socket.create_connection(("127.0.0.1", int(there_is)))
    there = socket.socket(socket.AF_UNIX)
    there.connect(there_is)
    return there


def pump(one, other):
    n = 0
    try:
        while data := one.recv(65536):
            n += 1
            time.sleep(seconds if n > at_once else 0)
            other.sendall(data)
    except OSError:
        pass
    for s in (one, other):
        s.close()


listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
while True:
    here = listener.accept()[0]
    there = connect()
    for ways in ((here, there), (there, here)):
        threading.Thread(target=pump, args=ways, daemon=True).start()
