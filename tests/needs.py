#!/usr/bin/env python3
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
"""needs.py [FILE...]: which test files (all) need what a builder of packages may not give them.

  proc     they look at processes in /proc (bash needs /proc/self/fd for any of them)
  network  they fetch something
  npm      they install packages of npm
  preload  they put a library before those of a tool, which a static one does not load
  root     they enter namespaces: root, or a user whom the kernel lets make some

The signs are in the text of a file, of the functions of tests/helpers that it calls, and of the
programs that it runs."""
import glob
import os
import re
import sys

SIGNS = {
    "proc": r"/proc\b",
    "network": r'deps\.sh"? --npm',
    "npm": r'deps\.sh"? --npm',
    "preload": r"\bLD_PRELOAD=|exec faketime|env .*\bfaketime",
    "root": r"\bunshare\b",
}


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return re.sub(r"^\s*(#|//).*", "", file.read(), flags=re.M)


def names_with(sign):
    """A pattern for functions and programs of the tests that have the sign in them, or the name
    of one that has it."""
    parts = {}
    for path in glob.glob("tests/helpers/*.bash"):
        for name, body in re.findall(r"^(\w+)\(\) \{\n(.*?)^\}", read(path), re.M | re.S):
            parts[r"\b%s\b" % name] = body
    for path in glob.glob("tests/*/*.py") + glob.glob("tests/*/*.c"):
        name, kind = os.path.splitext(os.path.basename(path))
        parts[r"\b%s\%s\b|\b(import|from) %s\b" % (name, kind, name)] = read(path)
    found = set()
    pattern = re.compile(sign)
    while True:
        more = {name for name, body in parts.items() if pattern.search(body)} - found
        if not more:
            return re.compile("|".join(found) or r"(?!)")
        found |= more
        pattern = re.compile("|".join(more))


def main():
    files = sys.argv[1:] or sorted(glob.glob("tests/*/*.bats"))
    for need, sign in SIGNS.items():
        called = names_with(sign)
        found = [f for f in files if re.search(sign, read(f)) or called.search(read(f))]
        print(" ".join([need + ":"] + found))


main()
