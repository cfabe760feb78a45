#!/bin/sh
# Prints a C file with the text of each file named, page.css as page_css, and
# its SHA-256 in base64, by which the page allows it and nothing else.
set -eu
printf '#include "mq-stats/page/page.h"\n'
for f; do
	name=$(basename "$f" | tr . _)
	# Not as a string: those are at most 4095 bytes long in C11.
	printf '\nconst char %s[] = {\n' "$name"
	od -An -v -tu1 "$f" | sed 's/  *\([0-9]\)/ \1/g; s/[0-9][0-9]*/&,/g'
	printf '    0};\nconst char %s_sha256[] = "%s";\n' "$name" \
		"$(sha256sum "$f" | cut -c1-64 | tr a-f A-F |
			basenc --base16 -d | base64)"
done
