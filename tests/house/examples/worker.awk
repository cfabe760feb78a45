#!/usr/bin/awk -f
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# A worker: mq-consume -j4 files -- ./worker.awk
# The payload is the path of a file, whose lines it counts.
{ path = path (NR > 1 ? "\n" : "") $0 }
END {
	verbs = "/dev/fd/3"
	print "run counting" >verbs
	while ((got = (getline line <path)) > 0)
		lines++
	if (got < 0)
		print "err cannot be read" >verbs	# rejected, with this reason
	else if (!lines)
		print "resend 60-still empty" >verbs	# again, in a minute
	else
		print "done " lines " lines" >verbs
}
