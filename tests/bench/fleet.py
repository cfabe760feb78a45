#!/usr/bin/env python3
# What a server pays for a thousand consumers and ten thousand queues: the rows
# of a table, each against a floor that is measured in the same run, in turn
# with it.  Figures are medians of the rounds, a ratio the median of the ratios
# of the rounds.  The machine may be busy: what counts is CPU wherever it can,
# of the server from INFO cpu, of a consumer without its children.
#
#   MQ_BUILD=build       the tools that are measured
#   FLEET_ONLY=wake,idle some of the rows, by the word before the colon
#   ROUNDS=5             how often each
#   FLEET_MESSAGES=, FLEET_N= and others change sizes; see number()
import os
import sys
import time

import fleet_crowd
import fleet_store
import fleet_work
from fleetlib import BUILD

ROWS = {f.__name__: f for f in (
    fleet_crowd.wake, fleet_crowd.idle, fleet_work.stream, fleet_work.batch,
    fleet_work.fork16, fleet_store.giveback, fleet_crowd.clean,
    fleet_store.group, fleet_store.options, fleet_store.large,
    fleet_work.pickup, fleet_crowd.publishers, fleet_crowd.known)}


def main():
    if not os.access(BUILD + "/mq-consume", os.X_OK):
        sys.exit("fleet: %s has no mq-consume" % BUILD)
    chosen = os.environ.get("FLEET_ONLY", "").replace(",", " ").split()
    for name in chosen:
        if name not in ROWS:
            sys.exit("fleet: %s: no such row; there are %s" %
                     (name, " ".join(ROWS)))
    print("%-40s | %9s | %9s | %9s | %-9s |" %
          ("work", "ours", "floor", "result", "wanted"), flush=True)
    for name in chosen or ROWS:
        began = time.monotonic()
        try:
            ROWS[name]()
        except RuntimeError as e:
            print("%s: %s" % (name, e), flush=True)
        print("# %s: %.0f s" % (name, time.monotonic() - began),
              file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
