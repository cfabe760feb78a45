#!/bin/sh
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Spells what people read: pages, README, NEWS, and texts in the code, with aspell's
# British English (-ise) and the project's own words in tests/house/words.  Prints
# the words that neither knows, each with places, and fails if there are any.
# Abbreviations, and words with digits in them, are not spelt.
set -u

cd "$(dirname "$0")/../.." || exit 70
known=$(mktemp -d) || exit 70
trap 'rm -rf "$known"' EXIT

# Running text and headings, without examples and the names that other macros mark.
pages() {
	awk '/^\.Bd -literal/ { code = 1 }
		/^\.Ed/ { code = 0 }
		code { next }
		/^\.(Sh|Ss|Nd|Em|Sy|Dq|Sq|Pq) / {
			sub(/^[^ ]* /, "")
			gsub(/(^| )(Ar|Cm|Dq|Em|Fl|Ic|Nm|Ns|Pa|Ql|Tt|Xr) [^ ]*/, "")
			print
		}
		/^[^.]/' man/*.[17] | sed -E 's/\\f.|\\[&e]|\\\*?\(..|\\\*?\[[^]]*\]//g'
}

markdown() {
	# shellcheck disable=SC2016 # these are no expressions
	awk '/^```/ { code = !code } !code' README.md CONTRIBUTING.md NEWS |
		sed -E 's/`[^`]*`|\]\([^)]*\)//g'
}

# Help texts and messages: strings with a space, and no HTML.
strings() {
	find cmd common -name '*.c' -exec grep -hv '^#' {} + |
		grep -oE '"([^"\\]|\\.)*"' | grep '^"[^<>{]* [^<>]*$' |
		sed -E 's/\\[^"]/ /g; s/%[-+0-9.*]*[hlzj]*[a-z]/ /g'
}

# Without options, paths, names and the like, which are no words.
words() {
	sed -E 's,[^ ]*([][_=+|/{}$@%]|[a-z][.:][a-z])[^ ]*, ,g; s/(^|[^[:alnum:]])-+[a-z-]*/ /g'
}

{
	echo personal_ws-1.1 en 0
	cat tests/house/words
} >"$known/words"
unknown=$({ pages; markdown; strings; } | words |
	aspell list --lang=en_GB-ise --encoding=utf-8 --personal="$known/words") || exit 70
unknown=$(printf '%s\n' "$unknown" | grep -v '[A-Z].*[A-Z]' | sort -u)
[ -n "$unknown" ] || exit 0
for word in $unknown; do
	echo "$word: misspelt, or missing in tests/house/words"
	grep -rnw --include='*.[17c]' -e "$word" man cmd common README.md CONTRIBUTING.md NEWS | head -3
done
exit 1
