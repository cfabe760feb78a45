# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The publishers of a round: some of a Cast, see actors.py.
#
#   Publishers     each method is a step of a thread: it publishes something and
#                  tells the model; count is what it returned the last time
import json
import re
import subprocess
import tempfile
import time

import model as models

PLANS = ("d", "d", "d", "D", "D", "rd", "RD", "rRd", "e", "E", "kd", "rkd")
# Now and then one that hangs for so long that an operator may stop it.
HANGS = "hd"
# Of messages that are published again and again: of each the same bytes.  Most
# are short, and end together, but not in the order in which they began.
ALIKE = ("d 0", "d 1", "D 1", "d 2", "rd 1", "kd 1", "e 1")
# Of those, too, but each may end in any way.
TWINS = ("x 0", "x 2", "x 20")


class Publishers:
    def publish(self, r, who, count):
        names, lines, options, input = [], [], [], None
        for _ in range(r.choice((1, 2, 5, 12))):
            count += 1
            names.append("%s%d" % (who, count))
            plan = HANGS if r.random() < 0.02 else r.choice(PLANS)
            lines.append("%s %s %d" % (names[-1], plan, r.randrange(6)))
        if r.random() < 0.6:
            options = r.choice(self.options(r))
        how = r.choice(("operands", "lines", "jsonl"))
        if how == "lines":
            options, input = ["-l", *options], lines
        elif how == "jsonl":
            options, input = ["--jsonl", *options], [json.dumps(
                {"payload": line, "headers": {"X-Trace": "t"}}) for line in lines]
        self.model.tried(names)
        self.stream(r, input, options, r.choice("qqqr"), *([] if input else lines))
        return count

    def published(self, r, *args, input=None):
        """The tool, its exit status, and what it said."""
        with tempfile.TemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
            tool = self.start("publisher", r, "mq-publish", *args, out=out, err=err,
                              stdin=subprocess.PIPE if input else subprocess.DEVNULL)
            if input:
                self.feed(r, tool.p.stdin, input)
            status = self.end(tool)
            out.seek(0)
            err.seek(0)
            return tool, status, out.read().decode(), err.read().decode()

    def stream(self, r, input, options, queue, *operands):
        tool, status, out, err = self.published(r, "-i", *options, queue, *operands, input=input)
        self.hear(tool, status, out, err, len(input or operands))
        return status

    def publish_alike(self, r, _, count):
        """With no header that could tell them apart, side by side in a queue."""
        some = r.sample(range(4) if r.random() < 0.7 else range(len(ALIKE)), 2)
        chosen = [r.choice(some) for _ in range(r.choice((5, 30, 100)))]
        self.publish_raw(r, "a", [("%s%d" % (models.ALIKE, i), ALIKE[i]) for i in chosen],
            *r.choice(([], [], ["-d", "%dms" % r.randrange(1, 200)])))
        return count

    def publish_twins(self, r, _, count):
        """Many at once, of which one is rejected while another one is done."""
        i, n = r.randrange(len(TWINS)), r.choice((5, 30, 60))
        self.publish_raw(r, models.TWINS, [("%s%d" % (models.TWIN, i), TWINS[i])] * n)
        return count

    def publish_raw(self, r, queue, messages, *options):
        names = [name for name, _ in messages]
        self.model.alike.tried.update(names)
        _, status, _, err = self.published(r, "--raw", *options, queue, *map(" ".join, messages))
        said = re.search(r"(\d+) messages? accepted", err)
        accepted = len(names) if status == 0 else int(said.group(1)) if said else 0
        self.model.alike.told.update(names[:accepted])

    def publish_line(self, r, who, count):
        """A group of its own: whoever was killed may have sent more, which is late."""
        n, long = r.choice(((30, 0), (24, 16000)))    # of these, 4 are a batch
        names = ["%s%s%d.%d" % (models.LINE, who, count, i) for i in range(n)]
        self.model.tried(names)
        self.stream(r, ["%s %s %s" % (name, r.choice(("d 0", "d 1", "D 0", "rd 0")),
                                      "x" * long) for name in names],
            ["-l", "-g", "%s%d" % (who, count)], models.LINES)
        return count + 1

    def publish_batch(self, r, who, count):
        """Members, some at a time, and once all are there the follower."""
        batch, n = "%s%d" % (who, count), r.randrange(1, 12)
        names = ["%s%s.%d" % (models.MEMBER, batch, i) for i in range(n)]
        self.model.tried(names)
        limits = r.choice(([], ["--timeout", "1m"], ["--attempts", 4]))
        if self.stream(r, ["%s %s %d" % (name, r.choice(PLANS), r.randrange(6))
                           for name in names],
                       ["-l", "--batch", batch, "-g", batch, *limits], models.BATCHES) == 0:
            self.model.batches[batch] = n
            name = models.FOLLOWER + batch
            self.model.tried([name])
            self.stream(r, None, ["--after", batch], models.BATCHES, name + " d 0")
        return count + 1

    def publish_files(self, r, _, count):
        name = "F%d" % (count + 1)
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(name)
            file.flush()
            self.model.tried([name])
            _, _, out, _ = self.published(r, "-i", "--attach", "f=" + file.name, "f",
                "%s %s %d" % (name, r.choice(PLANS), r.randrange(6)))
        self.model.told(out.split(), "with a file")
        return count + 1

    def options(self, r):
        both = [["-d", "%dms" % r.randrange(1, 200)], ["-p", r.randint(1, 9)],
                ["-p", "3", "-d", "%dms" % r.randrange(1, 90)]]
        return both if not self.rmq else both + [
            ["-p", r.randint(-9, -1)], ["-g", "g%d" % r.randrange(3)],
            ["-g", "g%d" % r.randrange(3), "-d", "%dms" % r.randrange(1, 90)],
            ["-k", "k%d" % r.randrange(9), "--unique",
                r.choice(("queued", "done", "40ms"))],
            ["-k", "c%d" % r.randrange(9), "--unique", "queued", "--coalesce"],
            ["-e", "%dms" % r.randrange(1, 60), "-p", "3"],
            ["-e", "30ms", "-k", "k%d" % r.randrange(3)],
            ["--from-tick", r.randint(1, models.TICKS)],
            ["--from-tick", r.randint(1, models.TICKS), "-p", r.choice((-1, 1))],
            ["--from-tick", "2", "--until-tick", "6"]]

    def feed(self, r, pipe, lines):
        """With pauses; what is long is sent faster than it is answered."""
        try:
            with pipe:
                for line in lines:
                    pipe.write(line.encode() + b"\n")
                    if r.random() < 0.2 and len(line) < 1000:
                        pipe.flush()
                        time.sleep(r.random() * 0.03)
        except BrokenPipeError:
            pass

    def hear(self, tool, status, out, err, n):
        ids = re.findall(r"^(\w{32})\n", out, re.M)
        self.model.told(ids, " ".join(tool.args[1:-1])[:60],
                        "--coalesce" in tool.args)
        said = re.search(r"(\d+) messages? accepted(?:, (\d+) joined)?", err)
        if status == 0 and len(ids) != n:
            self.model.say("%d ids of %d messages, exit 0" % (len(ids), n))
        if said and sum(int(n or 0) for n in said.groups()) != len(ids):
            self.model.say("%d ids, but said: %s" % (len(ids), err))
