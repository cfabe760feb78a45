# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
"""Compares what programs can see of the tools with the list in the file interface.

interface.py LIST VERSION KIND <WHAT    a line for each difference; exit status 1 if there is one

KIND is a word at the head of lines of the list, and WHAT is, for
  json      lines of a command, a tab, and JSON that it has printed
  metric    what mq-stats --prometheus has printed
  option    what TOOL --help=all has printed, behind a line with the name of each tool
  status    lines of C: NAME = NUMBER
"""
import json
import re
import sys

NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", dict: "object",
         list: "array"}
# Objects whose members users name.
OF_USERS = ("headers",)


def members(value, path, seen):
    """Notes the types of a value, and of what is in it, by path; null is no type."""
    types = seen.setdefault(path, set())
    if value is not None:
        types.add(NAMES[type(value)])
    if isinstance(value, list):
        for item in value:
            members(item, path + "[]", seen)
    elif isinstance(value, dict) and path.rsplit(".", 1)[-1] not in OF_USERS:
        for name, item in value.items():
            members(item, path + "." + name if path else name, seen)


def of_json(lines):
    """TOOL OPTIONS: MEMBER TYPE"""
    commands = {}
    for line in lines:
        command, text = line.split("\t", 1)
        members(json.loads(text), "", commands.setdefault(command, {}))
    for command, seen in commands.items():
        for path, types in seen.items():
            if path.strip("[]"):
                yield "%s: %s %s" % (command, path, " or ".join(sorted(types)) or "null")


def of_metric(lines):
    """NAME TYPE LABEL..."""
    types, labels = {}, {}
    for line in lines:
        if line.startswith("# TYPE "):
            _, _, name, types[name] = line.split()
        elif not line.startswith("#"):
            name = re.match("[a-z_]+", line).group()
            while name not in types:
                name = name.rsplit("_", 1)[0]
            found = re.findall('[{,]([a-z]+)="', line)
            labels[name] = sorted(set(labels.get(name, [])) | set(found))
    for name in types:
        yield " ".join([name, types[name]] + labels.get(name, ["without a value"]))


def of_option(lines):
    """TOOL OPTION, and ARG or [ARG] if it takes one"""
    for line in lines:
        if not line.startswith(" ") and line.startswith("mq-"):
            tool = line
            continue
        if not re.match(" +-", line):
            continue
        head = line if line[24:25] not in ("", " ") else line[:24]
        found = re.findall(r"(?:^ +|, )(--?[A-Za-z0-9][a-z-]*)(\[=| |=)?", head.rstrip())
        argument = {"[=": " [ARG]", " ": " ARG", "=": " ARG", "": ""}[found[-1][1]]
        for option, _ in found:
            optional = argument == " [ARG]" and not option.startswith("--")
            yield "%s %s%s" % (tool, option, "" if optional else argument)


def of_status(lines):
    """NUMBER NAME"""
    for line in lines:
        for name, number in re.findall(r"MQ_EXIT_([A-Z]+) = (\d+)", line):
            yield "%s %s" % (number, name)


def main(path, version, kind):
    listed = [line.rstrip("\n") for line in open(path) if re.match(kind + " ", line)]
    found = {"%s %s" % (kind, line) for line in
             globals()["of_" + kind](sys.stdin.read().splitlines())}
    wrong = ["twice in the list: " + line for line in set(listed) if listed.count(line) > 1]
    wrong += ["is gone, or is something else now: " + line for line in set(listed) - found]
    wrong += ["add below [%s] to tests/house/interface: %s" % (version, line)
              for line in found - set(listed)]
    wrong += ["has never had a value: " + line for line in found if line.endswith(" null")]
    print("\n".join(sorted(wrong)))
    return len(wrong) > 0 or not found


sys.exit(main(*sys.argv[1:]))
