#!/usr/bin/env python3
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
"""Whether the tests see a break: breaks one line at a time, and lists those that they did not see.

    mutants.py BUILD SEED N DIR...   N breaks in the .c and .lua files of DIRs (or files)

Works on a copy of the tree.  Each break is built, and the tests that reach the line (see
reach.py) are run, the quickest first, until one fails or does not end.  What does not build
is left out.  A break that SEED and N have chosen is the same each time.

LIMIT= is what one break may take, 90 s; those not decided by then are listed, too.
What fails without a break does not count.
"""
import contextlib
import glob
import os
import random
import re
import shutil
import subprocess
import sys
import time

import reach

LIMIT = float(os.environ.get("LIMIT") or 90)

# --- how lines can be broken: (pattern, what to put there) ---

BY_ONE = [(r" (<=?|>=?) ", {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}),
          (r"(?<![\w.%'\"])(\d+)(?![\w.x%])", lambda n: str(int(n) + 1)),
          (r"\b(true|false)\b", {"true": "false", "false": "true"})]
C = [(r"(?:\} else |\b)(?:if|while) \((.*)\)(?= \{$|$)", lambda c: f"!({c})"),
     (r"(==|!=)", {"==": "!=", "!=": "=="}), (r"(&&|\|\|)", {"&&": "||", "||": "&&"}), *BY_ONE]
LUA = [(r"\b(?:if|elseif|while) (.*) (?:then|do)$", lambda c: f"not ({c})"),
       (r"(==|~=)", {"==": "~=", "~=": "=="}), (r"\b(and|or)\b", {"and": "or", "or": "and"}), *BY_ONE]

# A C statement begins behind these, and these are no declarations.
C_BEFORE = re.compile(r"([;{}:]|\belse|\bdo)$|^\s*(\} else )?(if|for|while|\w+_FOREACH\w*) ?\(.*\)$")
C_STATEMENT = re.compile(r"\t+(break|continue|[*(]*[\w.>\[\]-]+( [-+*/|&^]?= |\+\+|--|\()|\+\+|--).*;$")
C_EARLY = re.compile(r"\t+(return|if|for|while|switch|\w+_FOREACH\w*)\b")
LUA_OPEN = re.compile(r"(\b(and|or|not)|[=,({+*/<>-]|\.\.)$")
LUA_GOES_ON = re.compile(r"\s*(and|or|then|do|[]).+*/<>=:}-]|\.\.)( |$|\W)")
LUA_STATEMENT = re.compile(r"\s*(return\b|break\b|[\w.\[\]]+( = |\()|[\w.\[\], ]+ = )")
LUA_NO_STATEMENT = re.compile(r"\s*(local|if|for|while|repeat|until|end|else|elseif|function)\b")


def blank(line):
    """Without what is in strings, and as long."""
    return re.sub(r"(\"(\\.|[^\"\\])*\"|'(\\.|[^'\\])*')", lambda m: m[0][0] + "_" * (len(m[0]) - 2) + m[0][0], line)


def is_balanced(line):
    return all(line.count(a) == line.count(b) for a, b in ("()", "{}", "[]"))


def swapped(line, patterns):
    bare = blank(line)
    for pattern, new in patterns:
        for m in re.finditer(pattern, bare):
            a, b = m.span(1)
            if is_balanced(bare[a:b]):
                yield line[:a] + (new[line[a:b]] if isinstance(new, dict) else new(line[a:b])) + line[b:]


def code_before(lines, i, comment):
    return next((line.rstrip() for line in reversed(lines[:i]) if line.strip() and not comment(line)), "")


def is_c_comment(line):
    return line.lstrip().startswith(("/*", "*", "//")) or line.rstrip().endswith("*/")


def is_lua_comment(line):
    return line.lstrip().startswith("--")


def function_type(lines, i):
    """The line with the type of what the function returns that line i is in, or None."""
    begin = next((k for k in range(i, 0, -1) if lines[k].startswith(("{", "}"))), 0)
    if not lines[begin].startswith("{"):
        return None
    return next((lines[k] for k in range(begin, 0, -1) if re.match(r"\w[\w *]*$", lines[k])), None)


def c_changes(lines, i):
    line = lines[i]
    kind = function_type(lines, i)
    if is_c_comment(line) or line.startswith("#") and not re.match(r"#define \w+\s+\W*\d", line):
        return
    yield from swapped(line, C)
    before, tabs = code_before(lines, i, is_c_comment), re.match(r"\t*", line)[0]
    if kind and C_BEFORE.search(before):
        if C_STATEMENT.match(line) and is_balanced(blank(line)):
            yield tabs + ";"
        if before.endswith((";", "{", "}")) and line.strip() != "return;" \
                and (C_STATEMENT.match(line) or C_EARLY.match(line)):
            yield f"{tabs}return{'' if kind.endswith('void') else ' 0'}; {line.strip()}"


def lua_changes(lines, i):
    line = lines[i]
    if is_lua_comment(line):
        return
    yield from swapped(line, LUA)
    before = code_before(lines, i, is_lua_comment)
    after = next((a for a in lines[i + 1:] if a.strip() and not is_lua_comment(a)), "")
    if LUA_OPEN.search(before) or LUA_GOES_ON.match(line) or re.match(r"\s*(end|else|elseif|until)\b", line):
        return
    space = re.match(r" *", line)[0]
    if LUA_STATEMENT.match(line) and not LUA_NO_STATEMENT.match(line) and is_balanced(blank(line)) \
            and not LUA_GOES_ON.match(after) and not LUA_OPEN.search(line):
        yield space + "do end"
    if not line.startswith("local"):
        yield f"{space}do return end {line.lstrip()}"


def breaks(tree, dirs):
    """All lines that can be broken: (file, number, what it can become)."""
    files = {f for d in dirs for f in ([d] if os.path.isfile(f"{tree}/{d}") else
             (os.path.relpath(p, tree) for p in glob.glob(f"{tree}/{d}/**/*.*", recursive=True)))}
    for file in sorted(f for f in files if f.endswith((".c", ".lua"))):
        with open(f"{tree}/{file}") as f:
            lines = f.read().split("\n")
        for i, line in enumerate(lines):
            found = [new for new in (c_changes if file.endswith(".c") else lua_changes)(lines, i) if new != line]
            if line.strip() and found:
                yield file, i, found


# --- one break ---

@contextlib.contextmanager
def broken(path, i, new):
    with open(path) as f:
        text = f.read()
    lines = text.split("\n")
    lines[i] = new
    try:
        with open(path, "w") as f:
            f.write("\n".join(lines))
        yield
    finally:
        with open(path, "w") as f:
            f.write(text)


def builds(tree, row, left):
    """What a job needs; None: not in this time."""
    target = "all" if row["job"][1].endswith(".bats") else f"build/tests/{row['job'][0]}"
    try:
        return subprocess.run(["make", "-s", "--no-print-directory", target], cwd=tree, timeout=max(left, 1),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    except subprocess.TimeoutExpired:
        reach.end_descendants()
        return None


def sees(row, tree, scratch, seconds):
    """Why a job has failed; None if it passed, or 'time'."""
    end = time.monotonic() + seconds
    process = reach.start(row["job"], tree, tree + "/build", scratch)
    while True:
        status = process.poll()
        with open(scratch + "/out", errors="replace") as f:
            text = f.read()
        new = [name for name in reach.red(text) if name not in row["red"]]
        if new:
            return "does not compile" if "Error compiling script" in text else f"{row['job'][0]}: {new[0]}"
        if status is not None:
            return None if status in (0, 1) and "1.." in text else f"{row['job'][0]}: exit status {status}"
        if time.monotonic() > end:
            return "time"
        time.sleep(0.1)


def red_without(row, tree):
    """What fails of a job in the tree as it is: more may, where it is noted what is reached."""
    scratch = reach.scratch_dir()
    try:
        reach.start(row["job"], tree, tree + "/build", scratch).wait()
        with open(scratch + "/out", errors="replace") as f:
            return reach.red(f.read())
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def judge(tree, rows, end):
    """What became of a break: (seen, survived, undecided or skipped; why)."""
    for n, row in enumerate(rows):
        built = builds(tree, row, end - time.monotonic())
        if built is None:
            return "undecided", f"{n} of {len(rows)} test files passed, the build took long"
        if not built:
            return "skipped", "does not build"
        left, usual = end - time.monotonic(), 15 + 4 * row["wall"]
        if left < row["wall"]:
            return "undecided", f"{n} of {len(rows)} test files passed"
        scratch = reach.scratch_dir()
        try:
            why = sees(row, tree, scratch, min(left, usual))
        finally:
            reach.end_descendants()
            shutil.rmtree(scratch, ignore_errors=True)
        if why == "time" and left < usual:
            return "undecided", f"{n} of {len(rows)} test files passed, {row['job'][0]} took long"
        if why == "time":
            return "seen", f"{row['job'][0]} hangs"
        if why:
            return ("skipped" if why == "does not compile" else "seen"), why
    return "survived", f"{len(rows)} test files passed" if rows else "no test reaches it"


def main(build, seed, n, dirs):
    table = reach.read_table(build)
    if not table:
        sys.exit("mutants: no table of what tests reach: make reach, or for some tests make reach TESTS=...")
    print(f"SEED={seed} N={n}, of {len(table)} test files", flush=True)
    reach.adopt_orphans()
    top = reach.scratch_dir()
    tree, r, count, unseen = top + "/tree", random.Random(seed), {}, []
    try:
        shutil.copytree(reach.ROOT, tree, symlinks=True, ignore=shutil.ignore_patterns("build-*", "reach", "lint"))
        for row in table:
            row["red"] = row["red"] and red_without(row, tree)
        found = list(breaks(tree, dirs))
        r.shuffle(found)
        for file, i, news in found:
            if sum(v for k, v in count.items() if k != "skipped") >= n:
                break
            new, began = r.choice(news), time.monotonic()
            with open(f"{tree}/{file}") as f:
                old = f.read().split("\n")[i]
            with broken(f"{tree}/{file}", i, new):
                what, why = judge(tree, reach.reaching(table, file, i + 1), began + LIMIT)
            count[what] = count.get(what, 0) + 1
            said = f"{what}: {file}:{i + 1}: {why} ({time.monotonic() - began:.0f} s)\n  - {old.strip()}\n  + {new.strip()}"
            print(said, flush=True)
            if what in ("survived", "undecided"):
                unseen.append(said)
    finally:
        reach.end_descendants()
        shutil.rmtree(top, ignore_errors=True)
        if unseen:
            print("\nnot seen:", *unseen, sep="\n")
        print(", ".join(f"{count[what]} {what}" for what in sorted(count)), flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    main(os.path.abspath(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:])
