#!/usr/bin/env python3
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
"""Arrows between folders that point up, and rings of files, by includes and by the symbols of what BUILD holds: arrows.py BUILD"""
import glob, os, re, subprocess, sys

build = sys.argv[1]
COMMON = ["base", "message", "redis", "queue", "process"]
BELOW = {f"common/{f}": {f"common/{b}" for b in COMMON[: COMMON.index(f)]} for f in COMMON}
BELOW["common/process"] = {"common/base"}
BELOW["common/queue"] |= {"common/queue/rmq", "common/queue/rsmq"}
for layout in "rmq", "rsmq":
    BELOW[f"common/queue/{layout}"] = {"common/queue"} | BELOW["common/queue"] - {"common/queue/rmq", "common/queue/rsmq"}
BELOW["cmd/shared"] = {f"common/{f}" for f in COMMON}
TOOL = BELOW["cmd/shared"] | {"cmd/shared"}
GENERATED = {"common/lua.c": "common/queue/lua.c", "cmd/page.c": "cmd/mq-stats/page.c", "scripts.h": "common/queue/scripts.h"}
# What of the floor below the queues is none of a tool's business.
REPLIES = re.compile(r"common/redis/(ask|command|reply)\.")


def folder(path):
    parts = os.path.splitext(path)[0].split("/")
    return next((f for f in ("/".join(parts[:3]), "/".join(parts[:2])) if f in BELOW), "/".join(parts[:2]))


arrows = {path: {} for top in ("cmd", "common") for path in glob.glob(f"{top}/**/*.[ch]", recursive=True)}
for path in list(arrows):
    for name in re.findall(r'^#include "([^"]+)"', open(path).read(), re.M):
        places = [os.path.join(os.path.dirname(path), name), f"common/{name}", f"cmd/{name}"]
        arrows[path][next((p for p in places if os.path.exists(p)), GENERATED.get(name, name))] = "includes it"
owners, wanted = {}, []
objects = glob.glob(f"{build}/common/**/*.o", recursive=True) + glob.glob(f"{build}/cmd/**/*.o", recursive=True)
for line in subprocess.run(["nm", "-gPA", *objects], capture_output=True, text=True, check=True).stdout.splitlines():
    path, symbol, kind = re.sub(r"\.o:", ".c", os.path.relpath(line, build), count=1).split()[:3]
    path = GENERATED.get(path, path)
    if os.path.exists(path) or path in GENERATED.values():
        wanted.append((path, symbol)) if kind in "Uw" else owners.setdefault(symbol, []).append(path)
for path, symbol in wanted:
    for owner in owners.get(symbol, []):
        if folder(owner) == folder(path) or not owner.startswith("cmd/mq-"):
            arrows.setdefault(path, {})[owner] = symbol
bad = [f"{path} -> {to}: {why}" for path in arrows for to, why in arrows[path].items()
       if folder(path) != folder(to) and folder(to) not in BELOW.get(folder(path), TOOL)
       or path.startswith("cmd/") and REPLIES.match(to)]


def reach(path, seen):
    for to in arrows.get(path, {}):
        if to not in seen:
            seen.add(to)
            reach(to, seen)
    return seen


sys.setrecursionlimit(10000)
reached = {path: reach(path, set()) for path in arrows}
bad += [f"{path} -> {to}: a ring ({why})" for path in arrows for to, why in arrows[path].items()
        if path in reached.get(to, ())]
print("\n".join(bad))
