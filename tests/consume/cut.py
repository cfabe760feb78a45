#!/usr/bin/env python3
"""cut.py SERVER HERE: passes on what comes to the socket HERE to that of a server, and
back.  On USR1, the connections end for the client, and not for the server."""
import signal, socket, sys, threading
server, here = sys.argv[1:]
links = []
def pump(a, b, link):
    try:
        while data := a.recv(65536):
            b.sendall(data)
    except OSError:
        pass
    if link not in cut:
        a.close()
        b.close()
cut = []
def end(*_):
    for link in list(links):
        cut.append(link)
        links.remove(link)
        if link[0].fileno() != -1:
            link[0].shutdown(socket.SHUT_RDWR)
signal.signal(signal.SIGUSR1, end)
listener = socket.socket(socket.AF_UNIX)
listener.bind(here)
listener.listen(9)
while True:
    a, _ = listener.accept()
    b = socket.socket(socket.AF_UNIX)
    b.connect(server)
    link = (a, b)
    links.append(link)
    for ways in ((a, b), (b, a)):
        threading.Thread(target=pump, args=(*ways, link), daemon=True).start()
