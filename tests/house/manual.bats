# The manual as HTML: make html.
# topology: own

# shellcheck disable=SC2154
load ../helpers/common

setup_file() {
	D=$(own_dir)
	export D
	make -s -C "$root" B="$D" html >/dev/null
}

teardown_file() {
	rm -rf "$D"
}

@test "manual: each link leads somewhere, and each page is listed" {
	python3 - "$D/html" "$root/man" <<-'.'
		import os, re, sys
		html, man = sys.argv[1:]
		text = {f: open(os.path.join(html, f)).read() for f in os.listdir(html)}
		ids = {f: re.findall('id="([^"]*)"', t) for f, t in text.items()}
		wrong = [(f, id) for f in ids for id in set(ids[f]) if ids[f].count(id) > 1]
		for f, t in text.items():
		    for link in re.findall('href="([^"]*)"', t):
		        page, _, anchor = link.partition("#")
		        if not page.startswith("https:") and (page and page not in text or
		                anchor and anchor not in ids[page or f]):
		            wrong.append((f, link))
		wrong += [p for p in os.listdir(man) if re.search("[.][17]$", p)
		          and 'href="%s.html"' % p not in text["index.html"]]
		sys.exit(str(wrong) if wrong else 0)
	.
}

@test "manual: the index knows each option, verb and variable" {
	local tool word
	index() {
		sed -n "s|.*<dt>$1</dt><dd>\(.*\)</dd>|\1|p" "$D/html/index.html"
	}
	for tool in publish consume lease stats return purge pause set clean; do
		while read -r word; do
			index "$word" | grep -q "mq-$tool.1.html#" || {
				echo "mq-$tool $word"
				return 1
			}
		done < <("$BUILD/mq-$tool" --help=all | grep -oE '^ +(-[^ ,]+, )?--?[^] ,=[]+' |
			grep -oE -- '--?[A-Za-z0-9][-a-z]*')
	done
	for word in err "done" resend dup push pause run relayed MQ_ID RQ_COUNT; do
		index "$word" | grep -q mq-worker.7.html#
	done
	index MQ_URL | grep -q mq.7.html#
}

@test "manual: README's picture is of a real run" {
	mkdir "$D/pictures"
	PATH=/usr/bin:/bin python3 - "$root/man/pictures/make.py" "$BUILD" "$D/pictures" <<-'.'
		import runpy, shutil, sys
		shutil.which = lambda name: None
		runpy.run_path(sys.argv[1])["main"](*sys.argv[2:])
	.
	python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' "$D/pictures/terminal.svg"
	# The same but for ids and ages.
	for svg in "$D/pictures/terminal.svg" "$root/man/pictures/terminal.svg"; do
		sed -E 's/<[^>]*>//g; s/[0-9A-Za-z]{32}/ID/g; s/[0-9]+s/Ns/g' "$svg"
	done >"$D/both"
	[ "$(sort -u "$D/both" | wc -l)" -lt "$(($(wc -l <"$D/both") / 2 + 1))" ]
	(($(cat "$root"/man/pictures/* | wc -c) < 400000))
}
