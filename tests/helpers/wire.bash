# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Queues as bytes, and programs on a terminal: see wire.py.
#
#   py TEXT                     Python with the functions of wire.py
#   on_terminal INPUT COMMAND…  what there is to see; its status
#   list QUEUE STATE            raw messages, one a line, the oldest first
#   digest                      of all that the server has

export PYTHONPATH=$root/tests/helpers PYTHONDONTWRITEBYTECODE=1

py() {
	python3 -S -c "from wire import *
$1"
}

on_terminal() {
	python3 -S -c '
from wire import *
on_terminal(sys.argv[1], sys.argv[2:])' "$@"
}

list() {
	redis lrange "rmq::queue::[$1]::$2" 0 -1 | tac
}

digest() {
	redis debug digest
}
