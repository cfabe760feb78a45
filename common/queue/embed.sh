#!/bin/sh
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# embed.sh LUA...: prints a C file with the text and the SHA-1 of each script; with -h in
# front a header that declares them; with -t the text of one script, with its comments.
#
# A line "-- include NAME" stands for lib/NAME.lua beside the script, or beside those of
# both layouts; that may include others.  LAYOUT/lua/NAME.lua becomes
# LAYOUT_script_NAME, lua/NAME.lua mq_script_NAME.
#
# The head of a script says what it takes, in this order, with further words in lines that
# begin with more blanks:
#
#	-- KEYS q:PLACES unacked known | [to:PLACES]
#	-- ARGV how element ms [receipt] id...
#	-- REPLY moved left first...
#	-- NEEDS LREM ZADD
#
# A word of KEYS is that of a key in C, as of rmq_keys() and rsmq_keys(), and its local
# variable in Lua; NAME=WORD has another variable, NAME=* a key that C makes by itself, and
# NAME:PLACES is a table of those of a queue.  Behind a | are keys of another queue or
# connection.  In brackets stands what may be missing, and C adds that itself; a list
# comes last.  In Lua first_NAME is the place of its first one in KEYS or ARGV; a list of
# several for each, (NAME NAME)..., has that of the first of them, and each_NAME of them.  Behind
# a | the words of a list are those of the keys of each owner.
# NAME in reply[NAME], in capitals, is the place of that in the reply.  NEEDS has the commands
# that must not be refused in the middle: where the body has need(), it asks for the right to
# run each of them.
#
# @OBEYED@ stands for a pattern of the headers that scripts obey, by the table of
# message/headers.c.
#
# C gets the keys as the words of mq_script.keys, one text for the keys of each owner, and
# struct LAYOUT_NAME_argv, with a member for each of ARGV but a list; see command.h.
set -eu

# Sets the layout and the name of a script, and what C calls it.
names() {
	name=$(basename "$1" .lua)
	case $1 in
	*/rmq/*) layout=rmq ;;
	*/rsmq/*) layout=rsmq ;;
	*) layout=mq ;;
	esac
	symbol=${layout}_script_$name
}

# part WANTED FILE: of a script, as embed.awk has it.
part() {
	awk -v wanted="$1" -v layout="$layout" -v name="$name" -v own="$(dirname "$2")/lib" \
		-v shared="$(dirname "$0")/lua/lib" -v message="$(dirname "$0")/../message" -f "$(dirname "$0")/embed.awk" "$2"
}

if [ "$1" = -t ]; then
	names "$2"
	part lua "$2"
	exit
fi
if [ "$1" = -h ]; then
	shift
	printf '#ifndef MQ_SCRIPTS_H\n#define MQ_SCRIPTS_H\n#include "redis/command.h"\n'
	for f; do
		names "$f"
		printf '\nextern const struct mq_script %s;\n' "$symbol"
		part header "$f"
	done
	printf '#endif\n'
	exit
fi
printf '#include "scripts.h"\n'
for f; do
	names "$f"
	# The server has no use for comments and indentation.
	text=$(part lua "$f" | sed 's/^ *//; /^--/d; /^$/d')
	# As numbers, since C strings may be only 4095 bytes long.
	printf '\nstatic const char %s_%s[] = {' "$layout" "$name"
	printf '%s\n' "$text" | od -An -v -tx1 | sed 's/ \(..\)/0x\1,/g'
	printf '0};\n\nconst struct mq_script %s = {\n' "$symbol"
	printf '\t.sha = "%s",\n\t.text = %s_%s,\n' \
		"$(printf '%s\n' "$text" | sha1sum | cut -c1-40)" "$layout" "$name"
	part c "$f"
	printf '};\n'
done
