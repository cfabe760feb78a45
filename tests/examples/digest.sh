#!/bin/sh
# A worker for mq-consume: the payload is the path of a file; one line with its
# SHA-256, its size and its compressed size goes to the file $RESULTS.
read -r path || [ -n "$path" ] || exit 65
echo "run $path" >&3
set -- "$(sha256sum <"$path")" "$(wc -c <"$path")" "$(gzip -c <"$path" | wc -c)" ||
	exit 75
printf '%s %s %d %d %s\n' "$MQ_ID" "${1%% *}" "$2" "$3" "$path" >>"$RESULTS"
echo "done $3 of $2 bytes" >&3
