# resume.py HERE THERE FAULT...: a bad network in front of a server, on unix
# sockets; see faults/proxy.py.  Each FAULT is one of
#
#   HOW:WORD      the next request with this in it is cut so; HOW may be 'often':
#                 then in any way, and again and again
#
# USR1: what is late comes now; when it has, HERE.gone is there.
import os
import random
import signal
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(here) + "/faults")

import proxy    # noqa: E402

CUTS = ("before", "half", "reply", "reply", "half reply")


def main(here, there, *faults):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    cuts = [(how, word.encode()) for how, word in (fault.split(":", 1) for fault in faults)]
    far = proxy.Proxy(here, there, *(cut for cut in cuts if cut[0] != "often"))
    while often := [word for how, word in cuts if how == "often"]:
        far.cut(random.choice(CUTS), often[0])
        time.sleep(0.02)
        far.cuts.clear()
        time.sleep(random.random() * 0.1)
    signal.sigwait([signal.SIGUSR1])
    far.let_go()
    open(here + ".gone", "w").close()
    signal.sigwait([signal.SIGUSR1])


main(*sys.argv[1:])
