#!/bin/sh
# Prints a C file with the text and the SHA-1 of each Lua script named, or with -h a
# header that declares them.  A line "-- include NAME" stands for lib/NAME.lua beside the
# script, or beside those of both layouts; it may include others.  LAYOUT/lua/NAME.lua
# becomes LAYOUT_script_NAME, lua/NAME.lua mq_script_NAME.  The comments stay here: the
# server has no use for them.  As numbers, since C strings may be only so long.
#
# With -t, prints the text of one script as it is.
set -eu
shared=$(dirname "$0")/lua/lib

library() {
	if [ -e "$own/$1.lua" ]; then
		text "$own/$1.lua"
	else
		text "$shared/$1.lua"
	fi
}

text() {
	while IFS= read -r line; do
		case $line in
		"-- include "*) library "${line##* }" ;;
		*) printf '%s\n' "$line" ;;
		esac
	done <"$1"
}

names() {
	name=$(basename "$1" .lua)
	symbol=mq_script_$name
	case $1 in
	*/rmq/*) symbol=rmq_script_$name ;;
	*/rsmq/*) symbol=rsmq_script_$name name=rsmq_$name ;;
	esac
}

if [ "$1" = -t ]; then
	own=$(dirname "$2")/lib
	text "$2"
	exit
fi
if [ "$1" = -h ]; then
	shift
	printf '#ifndef MQ_SCRIPTS_H\n#define MQ_SCRIPTS_H\n#include "redis/command.h"\n'
	for f; do
		names "$f"
		printf 'extern const struct mq_script %s;\n' "$symbol"
	done
	printf '#endif\n'
	exit
fi
printf '#include "scripts.h"\n'
for f; do
	own=$(dirname "$f")/lib
	names "$f"
	text=$(text "$f" | sed '/^ *--/d; /^ *$/d')
	printf '\nstatic const char %s[] = {' "$name"
	printf '%s\n' "$text" | od -An -v -tx1 | sed 's/ \(..\)/0x\1,/g'
	printf '0};\n\nconst struct mq_script %s = {\n' "$symbol"
	printf '\t.sha = "%s",\n\t.text = %s,\n};\n' \
		"$(printf '%s\n' "$text" | sha1sum | cut -c1-40)" "$name"
done
