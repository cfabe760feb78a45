#!/bin/sh
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# embed.sh CSS JS: prints a C file with the text of each file, page.css as page_css,
# and the policy that allows these two by their SHA-256, and nothing else.
set -eu

# The SHA-256 of a file as the policy has it.
hash() {
	printf "'sha256-%s'" "$(sha256sum "$1" | cut -c1-64 | tr a-f A-F |
		basenc --base16 -d | base64)"
}

printf '#include "mq-stats/stats.h"\n'
for f; do
	# Not as a string: those are at most 4095 bytes long in C11.
	printf '\nconst char %s[] = {\n' "$(basename "$f" | tr . _)"
	od -An -v -tu1 "$f" | sed 's/  *\([0-9]\)/ \1/g; s/[0-9][0-9]*/&,/g'
	printf '    0};\n'
done
printf '\nconst char page_policy[] =\n    "%s%s";\n' \
	"default-src 'none'; style-src $(hash "$1"); script-src $(hash "$2"); " \
	"connect-src 'self'; base-uri 'none'; form-action 'none'"
