#!/usr/bin/env python3
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The pictures of README, of a real run:
#   make.py BUILD DIR
# DIR/terminal.svg is what the commands below print, on a private server that is gone
# afterwards; DIR/page.png the page of mq-stats after three minutes, by chromium, if there
# is one.
import html
import http.server
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

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

# For the page, each for as long as the picture takes: photos come in waves, which four
# workers get through; a price list that misses a column, and a host that is down, fail;
# nobody sends the invoices.
PAGE = """
seq -f 'user-%g' 300 | mq-publish -q -l -d 2h reminders
seq -f "photo-%g.jpg" 40 | mq-publish -q -l thumbnails
while for i in {1..6}; do echo "photo-$i.jpg"; done; do sleep $((RANDOM % 6)).5; done | mq-publish -q -l thumbnails
mq-consume -q -j4 thumbnails -- sh -c 'echo "run resizing $(cat)" >&3; sleep 2'
while echo $((RANDOM % 9)); do sleep .8; done | mq-publish -q -l imports
mq-consume -q --attempts 2 --backoff 5s..1m imports -- sh -c 'read n; sleep .3; case $n in 0) echo "no column \\"price\\"" >&2; exit 1 ;; 1) echo "connection refused" >&2; exit 75 ;; esac'
while echo invoice; do sleep 3; done | mq-publish -q -l invoices
"""

# A sample of the plots each time, and how many there are.
EVERY_S, SAMPLES = 5, 36

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


def serve(environment, directory):
    """The page, for a browser whose clock stands still while it waits for an answer."""
    stats = subprocess.Popen(["mq-stats", "--http=0", "--refresh", str(EVERY_S)],
                             env=environment, stderr=subprocess.PIPE, text=True)
    site = stats.stderr.readline().split()[-1]

    class Slow(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            time.sleep(EVERY_S)
            with urllib.request.urlopen(site + self.path[1:]) as answer:
                page = answer.read().decode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page.replace(directory, "/home/ann").encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return stats, "http://127.0.0.1:%d/" % server.server_port


def photograph(environment, directory, picture):
    work = [subprocess.Popen(["bash", "-c", line], env=environment, cwd=directory,
                             stderr=subprocess.DEVNULL, start_new_session=True)
            for line in PAGE.strip().split("\n")]
    stats, site = serve(environment, directory)
    try:
        subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu",
                        "--hide-scrollbars", "--window-size=1200,1230",
                        "--user-data-dir=" + directory + "/browser",
                        "--virtual-time-budget=%d" % (EVERY_S * SAMPLES * 1000),
                        "--screenshot=" + picture, site],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    finally:
        stats.kill()
        for job in work:
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGTERM)
                job.wait()


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
            photograph(environment, directory, out + "/page.png")
    finally:
        subprocess.run(["redis-cli", "-s", directory + "/mq/redis.sock", "shutdown", "nosave"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
