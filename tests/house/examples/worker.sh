#!/bin/sh
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# A worker: mq-consume -j4 files -- ./worker.sh
# The payload is the path of a file, whose lines it counts.  Verbs go to descriptor 3;
# no payload goes there, as a newline in it would begin another verb.
path=$(cat)
echo "run counting" >&3
if [ ! -e "$path" ]; then
	echo "err no such file"		# rejected, with this reason
elif ! lines=$(wc -l <"$path"); then
	echo "err cannot be read"
elif [ ! -s "$path" ]; then
	echo "resend 60-still empty"	# again, in a minute
else
	echo "done $lines lines"
fi >&3
