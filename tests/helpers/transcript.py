#!/usr/bin/env python3
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
"""What the tools say to the server, to compare two builds.

    transcript.py BUILD                     print the transcript of a build
    transcript.py --diff BUILD1 BUILD2      the differences; status 1 if any
        --only REGEX                        of some scenarios: LAYOUT/NAME

A change that only moves code must not change a single command.  This runs a
fixed set of scenarios against a redis-server of its own, through a proxy that
notes the commands of each connection: unlike MONITOR on a Unix socket, it can
tell the connections apart, and it knows the process behind each.  The transcript
has the command lines, what they print, their exit status, and the commands of
each connection in their order.

What differs from run to run is masked: ids and names by numbers in order of
appearance, times and sizes by words; scripts have their names instead of their
SHA-1.  What depends on the pace of the machine is reduced in settle_down(): what
is said once a second, or asked again and again, is there once for a connection,
and what is counted is summed up.  The scenarios do the rest: what would race is
done one by one.
"""
import argparse
import collections
import difflib
import hashlib
import os
import re
import socket
import sys

sys.dont_write_bytecode = True
from transcript_run import Run, Scripts, shown  # noqa: E402
from transcript_scenarios import SCENARIOS  # noqa: E402

# ---- From what was said to what can be compared

# Said once a second, or to look for what is due: a short run may say it or not.
TICK = re.compile(r"P?EXPIRE \S+(:heartbeat|:info|running\S*) |DEL \S+running|"
                  r"[LH]LEN \S+(:unacked|:Xheld:\S+)$|EVALSHA rsmq_renew |"
                  r"EVALSHA (rsmq_)?claim .* 0 1048576 ")
# Asked again and again, when something may have come.
POLL = re.compile(r"(EVALSHA (rsmq_)?claim|PING|INFO|TIME)\b")
# The child that cleans asks this of each list of messages that it finds: whether
# its parent has one at that moment depends on when the parent claims.
FOUND = re.compile(r"SISMEMBER \S+:queues ")


class Mask:
    """Replaces what differs from run to run, ids and names by numbers."""

    def __init__(self, run):
        self.dir, self.seen = run.dir, {}

    def number(self, match):
        kind, token = match[1] or "", match[2]
        return "%s<%d>" % (kind, self.seen.setdefault(token, len(self.seen) + 1))

    def __call__(self, text):
        text = text.replace(self.dir, "<dir>")
        for pattern, mask in (
                (r"\b((?:mq-\w+|tagged)[-:])(\w{32}|\w{16}|\w{6})\b(?!-)", self.number),
                (r"(?<![A-Za-z0-9])()([A-Za-z0-9]{32})(?![A-Za-z0-9])", self.number),
                (r"\b1[789]\d{8}(\.\d+|\d{3}|\d{6})?\b", "<time>"),
                (r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?", "<date>"),
                (r"\b%s\b" % re.escape(socket.gethostname()), "<host>"),
                (r"<host> +\d+\b", "<host> <pid>"),
                (r"\b(pid[ \"=:>]+)\d+", r"\1<pid>"),
                (r"REDIRECT \d+", "REDIRECT <client>")):
            text = re.sub(pattern, mask, text)
        return text


def settle_down(commands, mask, ticking, child):
    """The lines of a connection without what depends on the pace."""
    lines, seen, ticks, counts = [], set(), set(), {}
    for words in commands:
        if words[1:2] == ["count"]:
            keys = int(words[2]) + 3
            line = " ".join(words[:keys])
            counts.setdefault(line, collections.Counter()).update(
                {name: int(n) for name, n in zip(words[keys::2], words[keys + 1::2])})
            lines = [l for l in lines if l != line]
        else:
            line = mask(" ".join(map(shown, words)))
        # How many it claims goes by what has ended meanwhile.
        said = re.sub(r"(claim .*) \d+ 1048576 ", r"\1", line)
        if TICK.match(line):
            ticks.add(line)
        elif child and FOUND.match(line):
            continue
        elif said not in seen or not (child or POLL.match(line)):
            lines.append(line)
        seen.add(said)
    for line, counter in counts.items():
        lines[lines.index(line)] = " ".join([line] + ["%s %d" % (name, n)
            for name, n in sorted(counter.items()) if not name.startswith("run_")])
    if child:
        lines.sort()  # it looks after all consumers, in no order
    return lines + ["now and then: " + line for line in sorted(ticks) if ticking]


def short(line):
    if len(line) <= 3000:
        return line
    return "%s... %s" % (line[:1000], hashlib.sha1(line.encode()).hexdigest())


def transcript(run, ticking):
    mask, names = Mask(run), run.scripts.names
    out = [mask(line) for line in run.log]
    for name, process in run.tools:
        mine = [c for c in run.recorder.connections if process.pid in (c.pid, c.parent)]
        for i, c in enumerate(mine, 1):
            role = [w[2].partition(":")[0] for w in c.commands if w[:2] == ["CLIENT", "SETNAME"]]
            child = c.pid != process.pid
            out.append(mask("-- %s, connection %d%s%s" % (name, i,
                ", as " + role[0] if role else "", ", of a child" if child else "")))
            commands = [[names.get(w, w) if j in (1, 2) else w for j, w in enumerate(words)]
                        for words in c.commands]
            commands = [[mask(w) for w in words] for words in commands]
            out += map(short, settle_down(commands, mask, ticking, child))
    return out


def transcripts(build, only):
    scripts = Scripts(build)
    for name, (f, layout, ticking) in SCENARIOS.items():
        if re.search(only, name):
            with Run(build, scripts, layout) as run:
                f(run)
                run.wait(lambda: not any(c.open for c in run.recorder.connections))
                yield name, transcript(run, ticking)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--diff", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("builds", nargs="*")
    args = parser.parse_args()
    if len(args.builds) != 1 + args.diff:
        parser.error("which build?")
    every = [transcripts(os.path.abspath(b), args.only) for b in args.builds]
    differ = False
    for (name, lines), *others in zip(*every):
        if not args.diff:
            print("==== %s" % name, *lines, sep="\n", flush=True)
        for _, other in others:
            for line in difflib.unified_diff(lines, other, name + " " + args.builds[0],
                                             name + " " + args.builds[1], lineterm=""):
                print(line, flush=True)
                differ = True
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
