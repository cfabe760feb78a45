#!/bin/sh
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The manual as HTML:
#   html.sh DIR PAGE...
# Each page becomes DIR/NAME.SECTION.html, by mandoc, with links to the others; pages
# of other programs are linked to Debian's.  DIR/index.html lists the pages, and where
# each option, verb and variable of theirs is said.
set -eu

dir=$1
shift
man=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$dir"
cp "$man/manual.css" "$dir/manual.css"

head() {
	printf '%s\n' '<!DOCTYPE html>' '<html lang="en">' '<head>' '<meta charset="utf-8"/>' \
		'<meta name="viewport" content="width=device-width, initial-scale=1.0"/>' \
		'<link rel="stylesheet" href="manual.css"/>' '<title>mq-tools</title>' \
		'</head>' '<body class="index">' '<h1>mq-tools</h1>'
}

# One row of each page: its name, and what it is for.
pages() {
	echo '<h2 id="pages">Pages</h2>'
	echo '<table>'
	for page; do
		name=${page##*/}
		printf '<tr><td><a href="%s.html">%s(%s)</a></td><td>%s</td></tr>\n' "$name" \
			"${name%.*}" "${name##*.}" "$(sed -n 's/^\.Nd //p' "$page")"
	done
	echo '</table>'
}

# name, tab, page, tab, anchor: of each head of a list item, and of each row of a table,
# that has an anchor, the options, verbs and variables in it.
entries() {
	for page; do
		tr '\n' ' ' <"$dir/${page##*/}.html" | sed 's/<d*t[dr]* id="/\n&/g' |
			awk -v page="${page##*/}" '
			!/^<(dt|tr) id="/ { next }
			{
				code = /^<tr/ ? "<code class=\"Li\">" : "<code class=\"(Fl|Cm|Ev)\">"
				sub(/<\/(dt|td)>.*/, "")
				id = $0
				sub(/^<d?tr? id="/, "", id)
				sub(/".*/, "", id)
				while (match($0, code "[^<]*</code>")) {
					name = substr($0, RSTART, RLENGTH)
					gsub(/<[^>]*>/, "", name)
					if (name ~ /^--?[A-Za-z0-9]|^[A-Za-z_][A-Za-z0-9_]+$/)
						print name "\t" page "\t" id
					$0 = substr($0, RSTART + RLENGTH)
				}
			}'
	done
}

# Those of one name in one row.
index_of() {
	printf '<h2 id="%s">%s</h2>\n<dl>\n' "$1" "$2"
	awk -F '\t' '
	$1 "" != last "" {
		printf "%s<dt>%s</dt><dd>", last == "" ? "" : "</dd>\n", $1
		last = $1
		between = ""
	}
	!(($1, $2) in seen) {
		seen[$1, $2] = 1
		title = $2
		sub(/\.[0-9]$/, "", title)
		printf "%s<a href=\"%s.html#%s\">%s</a>", between, $2, $3, title
		between = ", "
	}
	END { print "</dd>" }'
	echo '</dl>'
}

# Of ours, a section "in mq-worker(7)" is one of that page; others have pages at Debian.
links() {
	sed -E 's!("Xr" href=")((m[^q]|[^m])[^"]*)\.html"!\1https://manpages.debian.org/\2"!g' |
		tr '\n' '\001' |
		sed -E 's!("Sx" href=")(#[^"]*">[^<]*</a>[^<]{1,24}<a class="Xr" href="(mq[^"]*)")!\1\3\2!g' |
		tr '\001' '\n'
}

for page; do
	mandoc -Thtml -O style=manual.css,toc,man=%N.%S.html "$page" |
		sed 's|^<body>$|&\n<nav><a href="index.html">mq-tools</a></nav>|' |
		links >"$dir/${page##*/}.html"
done
entries "$@" | LC_ALL=C sort -u >"$dir/.entries"
{
	head
	pages "$@"
	grep '^-' "$dir/.entries" | sed 's/^-*/&	/' | LC_ALL=C sort -s -t '	' -k2,2 | LC_ALL=C sort -s -t '	' -k2,2f |
		sed 's/	//' | index_of options Options
	grep '^[a-z]' "$dir/.entries" | index_of verbs 'Verbs, settings and words'
	grep '^[A-Z]' "$dir/.entries" | index_of variables 'Variables and names'
	printf '</body>\n</html>\n'
} >"$dir/index.html"
rm "$dir/.entries"
