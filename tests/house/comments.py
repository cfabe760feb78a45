#!/usr/bin/env python3
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
"""Comments of C and Lua that need the code beside them to be understood: comments.py FOLDER...

A comment's subject is a noun of the code.  Refused are openings with a pronoun, a What or Who
clause, or "Of"; and "so many" and "so long" anywhere."""
import os, re, sys

C = re.compile(r"""(?P<text>/\*.*?\*/|//[^\n]*)|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""", re.S)
LUA = re.compile(r"""(?P<text>(?:^[ \t]*--[^\n]*\n)+|--[^\n]*)|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""", re.M)
ALONE = r"it|its|itself|he|his|him|she|her|they|their|theirs|them|ones|others|what(?:ever)?|who(?:m|se|ever)?|of"
# These are pronouns, unless a noun follows.
PRONOUNS = r"this|that|these|those|one|some|both|all|none|each|any|many|more|another|the (?:same|one|other|others)"
FOLLOWING = (r"of|that|which|who|whose|with|without|for|in|on|at|by|from|to|as|than|but|and|or|not|is|are|was|were|has|have|had|"
             r"may|can|must|will|would|should|does|do|did|goes?|comes?|gets?|takes?|needs?|begins?|starts?|ends?|lets?|makes?")
OPENING = re.compile(rf"(?:{ALONE})\b(?!\()|(?:{PRONOUNS})(?:\W*$|[.,:;)]|\s+(?:{FOLLOWING})\b)", re.I)
ANYWHERE = re.compile(r"\bso\s+(?:many|long)\b", re.I)


def comments(path):
    """Line and words of each comment."""
    # The line of the licence is no part of the comment below it.
    source = re.sub(r"\A.*SPDX-License.*", "", open(path, encoding="utf-8").read())
    for match in (LUA if path.endswith(".lua") else C).finditer(source):
        if match["text"]:
            text = re.sub(r"(?m)^[ \t]*(?:/\*+|\*/|\*|//|--+)|\*/$|-{3,}", " ", match["text"])
            yield source.count("\n", 0, match.start()) + 1, " ".join(text.split())


bad = False
for top in sys.argv[1:]:
    for folder, _, names in sorted(os.walk(top)):
        for path in sorted(f"{folder}/{name}" for name in names if name.endswith((".c", ".h", ".lua"))):
            for line, text in comments(path):
                if found := OPENING.match(text) or ANYWHERE.search(text):
                    bad = True
                    print(f"{path}:{line}: {text[max(0, found.start() - 40):][:100]}")
sys.exit(bad)
