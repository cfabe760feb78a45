#!/bin/sh
# Prints a C file with the text and the SHA-1 of each Lua script named.  The
# comments stay here: the server has no use for them.
set -eu
printf '#include "script.h"\n'
for f; do
	name=$(basename "$f" .lua)
	text=$(sed '/^ *--/d; /^ *$/d' "$f")
	printf '\nconst struct mq_script mq_script_%s = {\n' "$name"
	printf '\t.sha = "%s",\n\t.text =\n' \
		"$(printf '%s\n' "$text" | sha1sum | cut -c1-40)"
	printf '%s\n' "$text" | sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/\t    "&\\n"/'
	printf '};\n'
done
