#!/bin/sh
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The SHA-256 of many files by one process, as a worker for mq-consume --batch:
# the payloads are paths, one a line; lines "SHA-256  PATH" go to the file
# $RESULTS in one step.
new=$(mktemp) || exit 75
trap 'rm -f "$new"' EXIT
k=0
while IFS= read -r path; do
	k=$((k + 1))
	if [ -f "$path" ]; then
		printf '%s\0' "$path"
	else
		echo "err #$k no such file" >&3
	fi
done | xargs -0 -r sha256sum -- >"$new" && cat "$new" >>"$RESULTS" || exit 75
