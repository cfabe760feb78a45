#!/usr/bin/env python3
"""link.py PORT: passes on what comes to a free port of this host, which it
prints, to that one and back.  What it has when it is killed is lost, as on a
network."""
import socket
import sys
import threading


def pump(one, other):
    try:
        while data := one.recv(65536):
            other.sendall(data)
    except OSError:
        pass
    for s in (one, other):
        s.close()


listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
while True:
    here = listener.accept()[0]
    there = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
    for ways in ((here, there), (there, here)):
        threading.Thread(target=pump, args=ways, daemon=True).start()
