#!/usr/bin/env python3
# The pictures of README, of a real run:
#   make.py BUILD DIR
# DIR/terminal.svg is what the commands below print, on a private server that is gone
# afterwards; DIR/page.png the page of mq-stats, by chromium, if there is one.
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile

# That of README.
WORKER = """#!/bin/sh
# stdin: the path of a file
path=$(cat)
[ -e "$path" ] || { echo "err no such file" >&3; exit; }   # rejected
echo "run $path" >&3                                       # progress
gzip -kf "$path" || { echo "resend 60" >&3; exit; }        # in a minute
echo "done" >&3
"""

# Behind "!": not shown.
SESSION = """
! mkdir logs; for i in {a..x}; do date >logs/$i.log; done
printf '%s\\n' logs/{a..z}.log | mq-publish -l logs
cat compress
mq-consume -j4 --drain logs -- ./compress
mq-stats
mq-stats --reasons logs
! date >logs/y.log
mq-return --reason 'no such file' logs
mq-consume -j4 --drain logs -- ./compress
"""

# For the page: queues of all kinds, and a consumer at work.
PAGE = """
seq -f 'photo-%g.jpg' 4000 | mq-publish -q -l thumbnails
seq -f 'user-%g' 300 | mq-publish -q -d 2h -l reminders
for i in {1..40}; do echo $((RANDOM % 3)); done | mq-publish -q -l imports
mq-consume -q --drain imports -- sh -c 'read n; case $n in 0) ;; 1) echo "no column \\"price\\"" >&2; exit 1 ;; *) echo "connection refused" >&2; exit 1 ;; esac'
mq-consume -q -n 150 -j4 thumbnails -- true
mq-consume -q thumbnails -- sleep 20 & sleep 1; mq-stats --html >page.html; kill $!; wait
"""

COLUMNS, CHARACTER, LINE, MARGIN = 88, 8.43, 20, 18

SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="img">
<title>A session in a terminal</title>
<rect width="100%" height="100%" rx="8" fill="#14181d"/>
<g font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="14">
{lines}
</g>
</svg>
"""


def run(commands, directory, environment):
    """The session: pairs of a colour and a line."""
    for line in commands.strip().split("\n"):
        hidden = line.startswith("! ")
        done = subprocess.run(["bash", "-c", line[2:] if hidden else line],
                              cwd=directory, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if hidden:
            continue
        yield "#79c0ff", "$ " + line
        for out in done.stdout.expandtabs().splitlines():
            yield "#d8dee4", out[:COLUMNS]
        yield "", ""


def draw(session):
    lines = list(session)[:-1]
    rows = []
    for i, (colour, text) in enumerate(lines):
        if text:
            rows.append('<text x="%d" y="%d" fill="%s" textLength="%d">%s</text>' % (
                MARGIN, MARGIN + 14 + i * LINE, colour,
                round(len(text) * CHARACTER), html.escape(text, quote=False).replace(" ", "\u00a0")))
    return SVG.format(w=round(COLUMNS * CHARACTER) + 2 * MARGIN,
                      h=len(lines) * LINE + 2 * MARGIN, lines="\n".join(rows))


def photograph(page, picture):
    subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu",
                    "--hide-scrollbars", "--window-size=1000,900",
                    "--screenshot=" + picture, "file://" + page],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def main(build, out):
    build, out = os.path.abspath(build), os.path.abspath(out)
    directory = tempfile.mkdtemp(prefix="mq-")
    environment = {"HOME": directory, "LC_ALL": "C.UTF-8", "MQ_URL": "private:" + directory + "/mq",
                   "PATH": build + ":" + os.environ["PATH"]}
    try:
        with open(directory + "/compress", "w") as f:
            f.write(WORKER)
        os.chmod(directory + "/compress", 0o755)
        svg = draw(run(SESSION, directory, environment))
        with open(out + "/terminal.svg", "w") as f:
            f.write(re.sub(re.escape(directory), "/home/ann", svg))
        if shutil.which("chromium"):
            for _ in run(PAGE, directory, environment):
                pass
            photograph(directory + "/page.html", out + "/page.png")
    finally:
        subprocess.run(["redis-cli", "-s", directory + "/mq/redis.sock", "shutdown", "nosave"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
