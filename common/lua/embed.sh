#!/bin/sh
# Prints a C file with the text and the SHA-1 of each Lua script named.  A line
# "-- include NAME" stands for lib/NAME.lua.  The comments stay here: the server
# has no use for them.  As numbers, since C strings may be only so long.
set -eu
lib=$(dirname "$0")/lib
printf '#include "script.h"\n'
for f; do
	name=$(basename "$f" .lua)
	text=$(while IFS= read -r line; do
		case $line in
		"-- include "*) cat "$lib/${line##* }.lua" ;;
		*) printf '%s\n' "$line" ;;
		esac
	done <"$f" | sed '/^ *--/d; /^ *$/d')
	printf '\nstatic const char %s[] = {' "$name"
	printf '%s\n' "$text" | od -An -v -tx1 | sed 's/ \(..\)/0x\1,/g'
	printf '0};\n\nconst struct mq_script mq_script_%s = {\n' "$name"
	printf '\t.sha = "%s",\n\t.text = %s,\n};\n' \
		"$(printf '%s\n' "$text" | sha1sum | cut -c1-40)" "$name"
done
