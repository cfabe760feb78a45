#!/usr/bin/env python3
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
"""Which test files reach which lines, of C and of Lua.

    reach.py run BUILD [TEST...]   runs test files (without any, all), on a build that
                                   notes what is reached, and writes the tables
    reach.py of BUILD FILE         prints the command that runs the quickest tests that
                                   reach FILE

BUILD/reach/table has a table for each test file, so that a file can be looked at again by
itself.  A table has the first lines of blocks: the lines up to the next block are reached
with it.  In C, the compiler calls helpers/reach.c in each block.  In Lua, a call before
each block writes to the server's log, which needs no rights and leaves no keys.

JOBS= files run at a time.
"""
import bisect
import concurrent.futures
import contextlib
import ctypes
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIMIT = 1200  # s, of one test file
TOLD_S = 8  # of CPU, for the tests that are told for a file

# Of Lua: a block begins behind these.
OPENS = re.compile(r"(\b(then|do|else|repeat)|\bfunction\b[^()]*\([^()]*\)|^\s*end)$")
CLOSES = re.compile(r"\s*((end|else|elseif|until)\b|[\])},])")
NOTE = ("local reached_ = {} local function reach_(at) if not reached_[at] then"
        " reached_[at] = true redis.log(redis.LOG_WARNING, 'reach ' .. at) end end")
# Keeps the log when the test removes its folder.
SERVER = """#!/bin/sh
for word; do
	[ "${last-}" != --logfile ] || log=$word
	last=$word
done
[ ! -f "$1" ] || log=$(sed -n 's/^logfile //p' "$1")
[ -z "${log-}" ] || { : >>"$log" && ln "$log" "%s/$$"; }
exec %s "$@"
"""


# --- running tests, also for mutants.py ---

started = set()    # the processes of jobs, which whoever has started them waits for
starting = threading.Lock()


def adopt_orphans():
    """Processes that their parents leave become children of this one, which ends all at its end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    threading.Thread(target=reap_orphans, daemon=True).start()


def reap_orphans():
    """A server that a test has killed is gone, as if init had adopted it."""
    while True:
        time.sleep(0.02)
        for pid in children(os.getpid()):
            with starting, contextlib.suppress(ProcessLookupError, ChildProcessError):
                if pid not in started and os.getpgid(pid) != os.getpgrp():
                    os.waitpid(pid, os.WNOHANG)


def children(pid):
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(path) as f:
                found += [int(word) for word in f.read().split()]
        except OSError:
            pass
    return found


def descendants(pid):
    return [d for child in children(pid) for d in (child, *descendants(child))]


def end_descendants():
    """Ends all that was started, daemons included; needs adopt_orphans()."""
    while pids := descendants(os.getpid()):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        time.sleep(0.02)


def jobs(tests, units):
    """As tests/run.sh runs them: (name, file, what is set for it)."""
    yield from ((os.path.basename(unit), unit, {"CMOCKA_MESSAGE_OUTPUT": "TAP"}) for unit in units)
    for file in tests:
        with open(os.path.join(ROOT, file)) as f:
            said = dict(re.findall(r"^# (layouts|topologies): (.*)", f.read(), re.M))
        name = file.removeprefix("tests/")
        if "layouts" not in said:
            yield name, file, {}
        for key, names in said.items():
            for word in names.split():
                yield f"{name} {word}", file, {"LAYOUT" if key == "layouts" else "TOPOLOGY": word}


def start(job, tree, build, scratch, **more):
    """A job of a tree, with what it prints in scratch/out."""
    name, file, own = job
    command = [os.path.join(build, "tests", name)] if name == os.path.basename(file) else ["bats", "--tap", "-T", file]
    with open(scratch + "/out", "w") as out, starting:
        process = subprocess.Popen(
            ["env", "--default-signal=HUP,INT,QUIT,PIPE", *command], cwd=tree,
            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
            env={**os.environ, "MQ_BUILD": build, "TMPDIR": scratch, **own, **more})
        started.add(process.pid)
    return process


def red(text):
    """The names of what failed."""
    return re.findall(r"^not ok \d+ (?:- )?(.*?)(?: in \d+ms)?$", text, re.M)


def scratch_dir():
    """For all users, and with a short name, as sockets are there."""
    path = tempfile.mkdtemp(prefix="mqr.", dir="/tmp")
    os.chmod(path, 0o1777)
    return path


# --- the build that notes ---

def probed(name, text):
    """Lua with a call in each block, each line where it was."""
    lines, before = text.split("\n"), None
    for i, line in enumerate(lines):
        if not line.strip() or line.lstrip().startswith("--"):
            continue
        if (before is None or OPENS.search(before)) and not CLOSES.match(line):
            lines[i] = f"reach_'{name}:{i + 1}' {line.lstrip()}"
        before = line
    if "/lib/" not in name:
        lines[lines.index("")] = NOTE  # behind the head, which embed.awk reads
    return "\n".join(lines)


def write_if_new(path, data):
    """What has not changed is not built again."""
    try:
        with open(path, "rb") as f:
            if f.read() == data:
                return
    except OSError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def build_tree(tree):
    wanted = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, wanted):
        source, copy = os.path.join(ROOT, name), os.path.join(tree, name)
        if os.path.exists(source):
            with open(source, "rb") as f:
                data = f.read()
            if name.endswith(".lua"):
                data = probed(name, data.decode()).encode()
            write_if_new(copy, data)
            shutil.copymode(source, copy)
    for top in "cmd", "common":
        for path in glob.glob(f"{tree}/{top}/**/*.*", recursive=True):
            if os.path.relpath(path, tree) not in wanted:
                os.remove(path)
    note = os.path.join(os.path.dirname(tree), "reach.o")
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-c", "-o", note, "tests/helpers/reach.c"], cwd=tree, check=True)
    units = [f"build/tests/{os.path.basename(c)[:-2]}" for c in glob.glob(tree + "/tests/unit/*.c")]
    subprocess.run(["make", "-s", "--no-print-directory", f"-j{os.environ.get('JOBS', os.cpu_count())}",
                    "CFLAGS=-O0 -g -fsanitize-coverage=trace-pc", f"LDLIBS={note}", "all", *units], cwd=tree, check=True)


def link_build(tree, where):
    """The programs under other names, as each writes beside itself what it reached."""
    os.makedirs(where + "/tests")
    for path in glob.glob(tree + "/build/*") + glob.glob(tree + "/build/tests/test_*"):
        copy = os.path.join(where, os.path.relpath(path, tree + "/build"))
        if os.path.isfile(path):
            os.link(path, copy)
            if os.access(path, os.X_OK):
                open(copy + ".reach", "w").close()
                os.chmod(copy + ".reach", 0o666)
        elif not os.path.exists(copy):
            os.symlink(path, copy)


# --- what was reached ---

known = {}  # program: {offset: "file:line"}
known_lock = threading.Lock()


def lines_of(program, tree, offsets):
    with known_lock:
        have = known.setdefault(os.path.basename(program), {})
        new = [o for o in offsets if o not in have]
        # The offset is behind the call.
        said = subprocess.run(["addr2line", "-e", program], input="".join(f"{o - 1:#x}\n" for o in new),
                              capture_output=True, text=True, check=True).stdout.split("\n") if new else []
        have.update(zip(new, (os.path.relpath(s.split(" ")[0], tree) for s in said)))
        return {have[o] for o in offsets}


def collect(tree, where, logs):
    places = set()
    for path in glob.glob(where + "/**/*.reach", recursive=True):
        with open(path, "rb") as f:
            offsets = [m.start() for m in re.finditer(b"\1", f.read())]
        places |= lines_of(path.removesuffix(".reach"), tree, offsets)
    told = subprocess.run("cat ./* 2>/dev/null | grep -aoE 'reach [^ ]+[.]lua:[0-9]+$' | sort -u", shell=True, cwd=logs,
                          capture_output=True, text=True).stdout
    places |= {line.split()[1] for line in told.splitlines()}
    lines = {}
    for place in places:
        file, _, line = place.partition(":")
        if re.match("(cmd|common)/", file) and line.isdigit():
            lines.setdefault(file, []).append(int(line))
    return {file: sorted(lines[file]) for file in sorted(lines)}


def run_noting(job, tree, scratch):
    """Runs a job until its end: what it took, what failed, and what was reached."""
    where, logs, began = scratch + "/build", scratch + "/logs", time.monotonic()
    os.makedirs(scratch + "/bin")
    os.mkdir(logs)
    link_build(tree, where)
    with open(scratch + "/bin/redis-server", "w") as f:
        f.write(SERVER % (logs, shutil.which("redis-server")))
    os.chmod(f.name, 0o755)
    process = start(job, tree, where, scratch, PATH=f"{scratch}/bin:{os.environ['PATH']}")
    timer = threading.Timer(LIMIT, os.killpg, (process.pid, signal.SIGKILL))
    timer.start()
    _, process.returncode, used = os.wait4(process.pid, 0)
    timer.cancel()
    with open(scratch + "/out", errors="replace") as f:
        said = f.read()
    return {"job": job, "wall": round(time.monotonic() - began, 1), "cpu": round(used.ru_utime + used.ru_stime, 1),
            "red": red(said), "lines": collect(tree, where, logs)}


def look_at(job, tree, table):
    scratch = scratch_dir()
    try:
        row = run_noting(job, tree, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    with open(os.path.join(table, job[0].replace("/", "-")) + ".json", "w") as f:
        json.dump(row, f, separators=(",", ":"))
    print(f"{job[0]}: {row['wall']} s, {row['cpu']} s of CPU, {sum(map(len, row['lines'].values()))} blocks"
          + "".join(f"\n  failed: {name}" for name in row["red"]), flush=True)


def run(build, tests):
    tree, table = f"{build}/reach/tree", f"{build}/reach/table"
    os.makedirs(table, exist_ok=True)
    build_tree(tree)
    units = [] if tests else sorted(p for p in glob.glob(tree + "/build/tests/test_*") if os.access(p, os.X_OK))
    tests = tests or sorted(os.path.relpath(t, ROOT) for t in glob.glob(ROOT + "/tests/*/*.bats"))
    units += [t for t in tests if not t.endswith(".bats")]
    adopt_orphans()
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", os.cpu_count()))) as pool:
        try:
            list(pool.map(lambda job: look_at(job, tree, table),
                          jobs([t for t in tests if t.endswith(".bats")], units)))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            end_descendants()


# --- the tables ---

def read_table(build):
    rows = []
    for path in glob.glob(f"{build}/reach/table/*.json"):
        with open(path) as f:
            rows.append(json.load(f))
    return sorted(rows, key=lambda row: row["wall"])


def reaching(rows, file, line):
    """Those that reach a line, the quickest first: a line is in the block before it."""
    blocks = sorted({b for row in rows for b in row["lines"].get(file, ())})
    at = bisect.bisect_right(blocks, line)
    return [row for row in rows if at and blocks[at - 1] in row["lines"].get(file, ())]


def tell(build, file):
    """Those that reach most that the others do not, for the time that they take."""
    rows, left, chosen, seconds = read_table(build), None, [], 0
    if not rows:
        sys.exit("reach: no table yet: make reach, or for some tests make reach TESTS=...")
    rows = [row for row in rows if file in row["lines"]]
    left = {b for row in rows for b in row["lines"][file]}
    while left:
        row = max((row for row in rows if row not in chosen and seconds + row["cpu"] <= TOLD_S), default=None,
                  key=lambda row: len(left.intersection(row["lines"][file])) / (0.2 + row["cpu"]))
        if row is None or not left.intersection(row["lines"][file]):
            break
        chosen.append(row)
        seconds += row["cpu"]
        left.difference_update(row["lines"][file])
    if not chosen and not rows:
        sys.exit(f"reach: no test reaches {file}, as far as the table knows")
    files = list(dict.fromkeys(row["job"][1] for row in chosen or rows[:1]))
    units = " ".join(f"{os.path.relpath(build)}/tests/{os.path.basename(f)}" for f in files if not f.endswith(".bats"))
    tests = " ".join(f for f in files if f.endswith(".bats"))
    run_units = " && ".join(units.split()) if units and not tests else f"TESTS='{tests}' tests/run.sh {units}"
    print(f"make -s all {units} && {run_units}".replace("  ", " ").strip())


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"] and len(sys.argv) > 2:
        run(os.path.abspath(sys.argv[2]), sys.argv[3:])
    elif sys.argv[1:2] == ["of"] and len(sys.argv) == 4:
        tell(os.path.abspath(sys.argv[2]), sys.argv[3])
    else:
        sys.exit(__doc__)
