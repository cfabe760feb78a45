# between.py HERE THERE [WORD COMMAND]...: passes requests on to a server, on unix
# sockets.  Before the first one with a WORD in it, the COMMAND of the shell is run; the
# server has carried out all that came before.
import fcntl
import socket
import struct
import subprocess
import sys
import termios
import threading
import time

here, there, *rest = sys.argv[1:]
before = dict(zip((word.encode() for word in rest[::2]), rest[1::2]))


def request(f):
    """One, as bytes; b"" at the end."""
    head = f.readline()
    whole = [head]
    for _ in range(int(head[1:] or 0)):
        length = f.readline()
        whole += [length, f.read(int(length[1:]) + 2)]
    return b"".join(whole)


def wait_until_read(server):
    """What the server reads it carries out before it listens to others."""
    left = True
    while left:
        time.sleep(0.001)
        left, = struct.unpack("i", fcntl.ioctl(server, termios.TIOCOUTQ, bytes(4)))


def up(client, server):
    f = client.makefile("rb")
    while data := request(f):
        for word in [word for word in before if word in data]:
            wait_until_read(server)
            subprocess.run(before.pop(word), shell=True, check=True,
                           stdout=subprocess.DEVNULL)
        server.sendall(data)


def down(client, server):
    while data := server.recv(65536):
        client.sendall(data)


def pump(way, *link):
    try:
        way(*link)
    except OSError:
        pass
    for s in link:
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


listener = socket.socket(socket.AF_UNIX)
listener.bind(here)
listener.listen(8)
while True:
    client, _ = listener.accept()
    server = socket.socket(socket.AF_UNIX)
    server.connect(there)
    for way in (up, down):
        threading.Thread(target=pump, args=(way, client, server),
                         daemon=True).start()
