# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# What the consumers of a round have said of messages (-v), beside what their
# scripts have recorded and where the messages are.
#
#   Reports(directory, twins)    that has said.TAG, the standard error of each;
#                        twins: a queue where only consumers move messages
#   read()               what is new there
#   ran(tag, id, verdict)    the script of that consumer has recorded it
#   whole                tags of consumers that said all until they ended well
#   denied               tags of those that were refused something
#   laws(view, gone)     what was read is true of a look that came later; gone: of
#                        twins, how many may be done
#   end()                all runs were reported as what they were
#   other                lines that are of no message
import collections
import glob
import re

LINE = re.compile(r"mq-\w+: (\w+): (\w{32}): (done|rejected|pushed|again|lease lost|gone)")
REFUSED = re.compile("NOPERM|can't run this command|can't access")
NOPERM = 77
# What is reported of a run.
WORDS = {"done": "done", "err": "rejected", "pushed": "pushed"}


class Reports:
    def __init__(self, directory, twins):
        self.directory, self.twins = directory, twins
        self.read_to = collections.Counter()
        self.runs, self.said = collections.Counter(), collections.Counter()
        self.ids = collections.defaultdict(set)    # (queue, word): of whom
        self.counts = collections.Counter()        # (queue, word)
        self.whole, self.denied, self.other = set(), set(), []

    def read(self):
        for name in glob.glob(self.directory + "/said.*"):
            with open(name, "rb") as f:
                f.seek(self.read_to[name])
                text = f.read()
            text = text[:text.rfind(b"\n") + 1]
            self.read_to[name] += len(text)
            for line in text.decode(errors="replace").splitlines():
                self.hear(name.rsplit(".", 1)[1], line)

    def hear(self, tag, line):
        said = LINE.match(line)
        if said is None:
            self.other.append("%s: %s\n" % (tag, line))
            return
        queue, id, word = said.groups()
        self.said[tag, id, word] += 1
        self.ids[queue, word].add(id)
        self.counts[queue, word] += 1

    def ran(self, tag, id, verdict):
        self.runs[tag, id, verdict] += 1

    def laws(self, view, gone):
        there = {m.id: m for m in view.messages if m.place == "rejected"}
        wrong = ["reported as done, but it is there: %s" % id
                 for (_, word), ids in self.ids.items() if word == "done"
                 for id in ids & view.by_id.keys()]
        wrong += ["reported as rejected, but it is not: %s" % id
                  for id in self.ids[self.twins, "rejected"] - there.keys()]
        for word, n in (("done", gone), ("pushed", view.pushed())):
            told = self.counts[self.twins, word]
            if told > n:
                wrong.append("%d twins reported as %s, but %d are" % (told, word, n))
        return wrong

    def unsaid(self):
        """Who met a missing right complains; all are waiting for it when it comes back."""
        said = {line.split(":")[0] for line in self.other if REFUSED.search(line)}
        return ["%s: was refused something, but said nothing" % tag
                for tag in (self.denied & self.whole) - said]

    def ends(self, tag, status):
        if status == NOPERM and any(key[0] == tag for key in self.runs):
            return ["%s: had run messages, but ended for a missing right" % tag]
        return []

    def end(self):
        wrong = ["%s: %s reported as %s, but did not run so" % key
                 for key, n in self.said.items() if key[2] in ("done", "pushed")
                 and n > self.runs[key]]
        for (tag, id, verdict), n in self.runs.items():
            word = WORDS.get(verdict)
            if word and tag in self.whole and n > sum(
                    self.said[tag, id, w] for w in (word, "lease lost", "gone")):
                wrong.append("%s: %s ran as %s, but this was not reported" % (
                    tag, id, verdict))
        return wrong + self.unsaid()
