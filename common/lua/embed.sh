#!/bin/sh
# Prints a C file with the text and the SHA-1 of each Lua script named.  A line
# "-- include NAME" stands for lib/NAME.lua, which may include others.  The
# comments stay here: the server has no use for them.  As numbers, since C
# strings may be only so long.
#
# With -t, prints the text of one script as it is.
set -eu
lib=$(dirname "$0")/lib

text() {
	while IFS= read -r line; do
		case $line in
		"-- include "*) text "$lib/${line##* }.lua" ;;
		*) printf '%s\n' "$line" ;;
		esac
	done <"$1"
}

if [ "$1" = -t ]; then
	text "$2"
	exit
fi
printf '#include "script.h"\n'
for f; do
	name=$(basename "$f" .lua)
	text=$(text "$f" | sed '/^ *--/d; /^ *$/d')
	printf '\nstatic const char %s[] = {' "$name"
	printf '%s\n' "$text" | od -An -v -tx1 | sed 's/ \(..\)/0x\1,/g'
	printf '0};\n\nconst struct mq_script mq_script_%s = {\n' "$name"
	printf '\t.sha = "%s",\n\t.text = %s,\n};\n' \
		"$(printf '%s\n' "$text" | sha1sum | cut -c1-40)" "$name"
done
