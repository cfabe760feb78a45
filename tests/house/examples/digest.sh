#!/bin/sh
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# A worker for mq-consume: the payload is the path of a file; one line with its
# SHA-256, its size and its compressed size goes to the file $RESULTS.
read -r path || [ -n "$path" ] || exit 65
[ -f "$path" ] || { echo "err no such file" >&3; exit; }
echo "run $path" >&3
if sum=$(sha256sum <"$path") && size=$(wc -c <"$path") &&
	small=$(gzip -c <"$path" | wc -c) &&
	printf '%s %s %d %d %s\n' "$MQ_ID" "${sum%% *}" "$size" "$small" \
		"$path" >>"$RESULTS"; then
	echo "done $small of $size bytes" >&3
else
	echo "resend 60" >&3
fi
