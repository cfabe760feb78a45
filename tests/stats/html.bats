#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# mq-stats --html: the page, in a browser.
#
# needs: browser

load ../helpers/server

setup_file() {
	server_start
	# For a person to look at.
	export SHOTS=${TMPDIR:-/tmp}/mq-screenshots
	mkdir -p "$SHOTS"
}

setup() {
	common_setup
	page=$T/page.html
	chromium=(chromium --headless --no-sandbox --disable-gpu
		--hide-scrollbars --no-first-run --disable-dev-shm-usage
		"--user-data-dir=$T/chrome")
}

# Its own home, so that nothing of the user's has a say.
browser() {
	HOME=$T timeout -k 5 180 "${chromium[@]}" "$@" 2>"$T/browser.err"
}

# dom FILE[#FRAGMENT] [OPTION...]: the document once its scripts have run.
dom() {
	browser --virtual-time-budget=1000 "${@:2}" --dump-dom "file://$1"
}

# Adds a script to the page, which then has to allow it.
with_script() {
	sed "s|\"default-src 'none';[^\"]*\"|\"default-src 'self' 'unsafe-inline'\"|
		s|</body>|<script>$1</script>&|" "$page" >"$T/scripted.new"
	mv "$T/scripted.new" "$T/scripted.html"
}

# What the page shows without JavaScript: its text, without the data and the script.
as_text() {
	sed -n '/<main>/,/<.main>/{s/<[^>]*>//g; s/&#60;/</g; s/&#62;/>/g; s/&#34;/"/g; s/&#38;/\&/g; p}'
}

# in_order SECTION: the first cells of its rows, one a line.
in_order() {
	python3 -IS -c '
import sys
from html.parser import HTMLParser
class Page(HTMLParser):
	table = cell = False
	def handle_starttag(self, tag, attrs):
		if tag == "section":
			self.table = ("id", sys.argv[1]) in attrs
		if tag == "tfoot":
			self.table = False
		if self.table and tag == "th" and ("scope", "row") in attrs:
			self.cell, self.text = True, ""
	def handle_endtag(self, tag):
		if tag == "th" and self.cell:
			self.cell = False
			print(self.text)
	def handle_data(self, data):
		if self.cell:
			self.text += data
Page().feed(sys.stdin.read())' "$1"
}

hostile=(
	'<script>document.title="pwned"</script>'
	'"><img src=x onerror=document.title=1>'
	"'</td></table><svg/onload=document.title=2>"
	'--></style></script><h1>x</h1>'
	'&lt;b&gt; &amp;'
	$'a\u202ecod\e[2J\x01\xff\u200b'
	'javascript:alert(1)'
)

# Everything that there can be on a page, with names of the worst kind.
fill() {
	local q

	for q in "${hostile[@]}"; do
		redis sadd rmq::queues "$q" >/dev/null
		redis lpush "rmq::queue::[$q]::rejected" "of Go" >/dev/null
		printf '\377\0\276\276J{"Mq-Error":["%s"],"Mq-Id":["0123456789012345678901234567890%d"]}\nx' \
			"${q//[\"$'\x01\e']/}" "$((n++ % 10))" |
			redis -x lpush "rmq::queue::[$q]::rejected" >/dev/null
		redis set "rmq::connection::$q::heartbeat" 1 EX 60 >/dev/null
		redis sadd rmq::connections "$q" >/dev/null
		redis sadd "rmq::connection::$q::queues" "$q" >/dev/null
		python3 -IS -c 'import json, sys
q = sys.argv[1].encode(errors="surrogateescape").decode(errors="replace")
print(json.dumps([{"queue": q, "id": q, "attempt": 1, "pid": 7,
    "script": q, "started_ms": 1, "text": q}]), end="")' "$q" |
			redis -x set "rmq::connection::$q::running" >/dev/null
		redis hset "rmq::connection::$q::info" host "$q" pid 7 >/dev/null
	done
}

@test "html: an empty server, a queue that there is not" {
	run_mq 0 mq-stats --html
	assert_line '<!DOCTYPE html>'
	assert_line '<p class="note">There is no queue yet.</p>'
	# No head stands over nothing.
	assert_equal "$(grep -A 1 '<section.* hidden>' <<<"$output" | grep -c '<h2>')" \
		"$(grep -c '<h2>' <<<"$output")"
	assert_line '</html>'
	run_mq 1 mq-stats --html nonesuch
	assert_line '<p class="note">nonesuch: no such queue</p>'
	assert_equal "$stderr" "mq-stats: nonesuch: no such queue"
}

@test "html: what Go wrote, number by number" {
	redis sadd rmq::queues jobs mails >/dev/null
	redis lpush 'rmq::queue::[jobs]::ready' {1..1234} >/dev/null
	redis lpush 'rmq::queue::[jobs]::rejected' a b >/dev/null
	redis set rmq::connection::web-aB3dE6::heartbeat 1 EX 60 >/dev/null
	redis sadd rmq::connections web-aB3dE6 old-Zz9Yy8 >/dev/null
	redis sadd rmq::connection::web-aB3dE6::queues jobs mails >/dev/null
	redis sadd rmq::connection::old-Zz9Yy8::queues jobs >/dev/null
	redis sadd 'rmq::connection::web-aB3dE6::queue::[jobs]::consumers' \
		x y >/dev/null
	redis lpush 'rmq::connection::old-Zz9Yy8::queue::[jobs]::unacked' \
		1 2 3 >/dev/null
	"$BUILD/mq-pause" mails
	local before
	before=$(redis --raw debug digest)
	run_mq 0 mq-stats --html
	assert_equal "$(redis --raw debug digest)" "$before"
	run as_text <<<"$output"
	assert_line --regexp '^jobs +1234 +0 +3 +2 +2 +\? +- +-$'
	assert_line --regexp '^mails +0 +0 +0 +0 +0 +- +- +- +paused$'
	assert_line --regexp '^TOTAL +1234 +0 +3 +2 +'
	# Of a cluster, with nodes.
	assert_line --regexp '^web-aB3dE6 +live +([^ ]+:[0-9]+ +)?- +- +jobs +([^ ]+:[0-9]+ +)?0 +2$'
	assert_line --regexp '^old-Zz9Yy8 +dead +([^ ]+:[0-9]+ +)?- +- +jobs +([^ ]+:[0-9]+ +)?3 +0$'
	assert_line --regexp '^jobs +2 +- +- +-$'
	run_mq 0 mq-stats --html mails
	refute_line --partial jobs
}

@test "html: reasons in groups, of the newest messages" {
	local i

	redis sadd rmq::queues jobs few >/dev/null
	redis eval '
		local function add(n, header)
			for i = 1, n do
				redis.call("LPUSH", KEYS[1], "\255\0\190\190J" .. header .. "\nx")
			end
		end
		add(700, "{\"Mq-Error\":[\"old\"]}")
		add(990, "{\"Mq-Error\":[\"no such user\"]}")
		add(10, "{\"Mq-Error\":[\"timeout\"],\"Mq-History\":[\"{\\\"at_ms\\\":1795207725000}\"]}")' \
		1 'rmq::queue::[jobs]::rejected' >/dev/null
	for i in {a..m}; do
		printf '\377\0\276\276J{"Mq-Error":["reason %s 7"]}\nx' "$i" |
			redis -x lpush 'rmq::queue::[few]::rejected' >/dev/null
	done
	run_mq 0 mq-stats --html jobs
	run as_text <<<"$output"
	assert_line --regexp '^jobs +990 +- +- +no such user$'
	assert_line --regexp '^jobs +10 +[0-9]+[smhd] +[0-9]+[smhd] +timeout$'
	refute_line --regexp ' old$'
	assert_line 'jobs: only the newest 1000 of 1700 rejected messages were looked at.'
	"$BUILD/mq-stats" --html few >"$page"
	run as_text <"$page"
	assert_line --regexp '^few +3 +- +- +\(other reasons\)$'
	assert_equal "$(grep -c ' reason [a-m] N$' <<<"$output")" 10
	assert_line --regexp '^few +- +- +0 +reason m 7$'
	# The script has the same.
	dom "$page" >"$T/dom"
	run in_order reasons <"$T/dom"
	assert_equal "${#lines[@]}" 11
	run in_order newest <"$T/dom"
	assert_equal "${#lines[@]}" 5
	grep -q '<td class="n" data-l="count">3</td>.*data-l="reason">(other reasons)</td>' "$T/dom"
}

@test "html: large rejected messages are read in bounds" {
	redis sadd rmq::queues jobs >/dev/null
	redis eval 'local big = string.rep("x", 1024 * 1024)
		for i = 1, 100 do
			redis.call("LPUSH", KEYS[1], big)
		end' 1 'rmq::queue::[jobs]::rejected' >/dev/null
	peak "$BUILD/mq-stats" --html
	echo "$peak KiB"
	[[ $BUILD == *address* ]] || ((peak < 16384))
	assert_line --regexp '^<p class="note">jobs: only the newest 6[0-9] of 100 rejected messages were looked at.</p>$'
}

@test "html: it needs nothing else, and shows no password" {
	fill
	redis config set requirepass s3cret >/dev/null
	REDISCLI_AUTH=s3cret "$BUILD/mq-stats" --html \
		-u "$(url_as :s3cret)" --refresh 7 >"$page"
	REDISCLI_AUTH=s3cret redis config set requirepass '' >/dev/null
	run grep -c s3cret "$page"
	assert_output 0
	run python3 -IS - "$page" "$root/cmd/mq-stats/page/page.js" <<'PYTHON'
import base64, hashlib, json, sys
from html.parser import HTMLParser
tags, seen = [], {}
class Page(HTMLParser):
	def handle_starttag(self, tag, attrs):
		tags.append(tag)
		for name, value in attrs:
			assert name in ("lang", "charset", "http-equiv", "content",
			    "name", "class", "id", "type", "data-refresh", "datetime", "hidden"), name
			if name == "http-equiv":
				seen[value] = dict(attrs)["content"]
	def handle_data(self, data):
		if tags[-1:] in (["script"], ["style"]) and data.strip():
			seen[tags[-1]] = seen.get(tags[-1], []) + [data]
page = open(sys.argv[1], "rb").read()
assert not any(c < 32 and c != 10 and c != 9 or c == 127 for c in page)
Page().feed(page.decode("utf-8"))
assert tags.count("script") == 2 and tags.count("style") == 1
assert set(tags) <= set("html head meta noscript title style body header h1 p time main section h2 small pre bdi footer script".split()), tags
assert seen["refresh"] == "7"
seen["style"], = seen["style"]
data, seen["script"] = seen["script"]
assert "<" not in data and len(json.loads(data)[0]["queues"]) == 7
assert seen["script"] == open(sys.argv[2]).read()
for word in ("url(", "@import", "//"):
	assert word not in seen["style"], word
policy = dict(p.strip().split(" ", 1) for p in seen["Content-Security-Policy"].split(";"))
for part in ("script", "style"):
	digest = hashlib.sha256(seen[part].encode()).digest()
	assert policy[part + "-src"] == "'sha256-%s'" % base64.b64encode(digest).decode()
assert policy["default-src"] == "'none'"
PYTHON
	assert_output ""
	assert_success
}

@test "html: in a browser no script of a name runs" {
	local i

	fill
	"$BUILD/mq-stats" --html >"$page"
	dom "$page" >"$T/dom"
	assert_equal "$(grep -o '<title>.*</title>' "$T/dom")" \
		"<title>Queues of ${MQ_URL}</title>"
	assert_equal "$(grep -c '<script' "$T/dom")" 2
	run grep -ciE '<(img|svg|iframe|object)' "$T/dom"
	assert_output 0
	# The page's own did.
	grep -q 'class="tools"' "$T/dom"
	run grep -c '<pre>' "$T/dom"
	assert_output 0
	run in_order queues <"$T/dom"
	for i in 0 1 2 3 4 6; do
		assert_line -- "${hostile[i]}"
	done
	# shellcheck disable=SC1003
	assert_line 'a\u{202e}cod\u{1b}[2J\u{1}\xff\u{200b}'
	# Even if one got onto the page, it would not run.
	sed -i 's|</main>|<script>document.title="pwned"</script><img src="x" onerror="document.title=1"><style>body{color:red}</style>&|' \
		"$page"
	dom "$page" >"$T/dom"
	assert_equal "$(grep -o '<title>.*</title>' "$T/dom")" \
		"<title>Queues of ${MQ_URL}</title>"
	grep -q 'class="tools"' "$T/dom"
}

# serve: $T by HTTP, at the address $site; requests are in $T/log.
serve() {
	cat >"$T/serve.py" <<-'END'
	import http.server, os, sys
	os.chdir(sys.argv[1])
	s = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
	print(s.server_port, flush=True)
	s.serve_forever()
	END
	python3 -IS "$T/serve.py" "$T" >"$T/port" 2>"$T/log" 3>&- &
	eventually 10 test -s "$T/port"
	site=http://127.0.0.1:$(cat "$T/port")
}

# frame WIDTH SRC EXPRESSION [ATTRIBUTE...]: a page so wide in a page, as browsers are not
# so narrow, and several take one browser; the expression is of its document d.
frame() {
	cat <<-END
	<iframe style="border:0" width="$1" height="1800" ${*:4}
	src="$2" onload='const d = contentDocument; document.title += "|" + ($3)'></iframe>
	END
}

# framed: what the expressions of the frames on stdin are, one a line, sorted.
framed() {
	{ echo '<body style="margin:0">' && cat; } >"$T/frames.html"
	browser --virtual-time-budget=2000 --dump-dom "$site/frames.html" |
		sed -n 's/<\/title>.*//; s/.*<title>//p' | tr '|' '\n' | sed 1d | sort
}

# some_queues: ready and rejected are 9 and 10, 1200 and 0, 20 and 3.
some_queues() {
	redis sadd rmq::queues job-10 job-9 mails >/dev/null
	redis lpush 'rmq::queue::[job-10]::ready' {1..9} >/dev/null
	redis lpush 'rmq::queue::[job-9]::ready' {1..1200} >/dev/null
	redis lpush 'rmq::queue::[mails]::ready' {1..20} >/dev/null
	redis lpush 'rmq::queue::[job-10]::rejected' {1..10} >/dev/null
	redis lpush 'rmq::queue::[mails]::rejected' {1..3} >/dev/null
	"$BUILD/mq-stats" --html "$@" >"$page"
}

@test "html: sorted as the fragment says, numbers as numbers" {
	local fragment order='Array.from(d.querySelectorAll("#queues tbody th"), (e) => e.textContent) + Array.from(d.querySelectorAll("[aria-sort]"), (e) => " " + e.textContent + " " + e.ariaSort)'

	some_queues
	serve
	run framed < <(for fragment in ready:desc,c-name:asc,nonesuch:asc rejected:asc queue:asc nonesuch:asc; do
		frame 500 "page.html#sort=$fragment" "$order"
	done)
	# The server's order, but that what nobody consumes comes first.
	assert_output "\
job-10,job-9,mails
job-9,job-10,mails queue ascending
job-9,mails,job-10 ready descending
job-9,mails,job-10 rejected ascending"
}

# Of scripts: the button with this text.
button='const button = (t) => Array.from(document.querySelectorAll("button")).find((b) => b.textContent === t);'

@test "html: sorted by clicks, and kept in the address" {
	some_queues
	with_script "$button"'button("ready").click(); document.title = location.hash; button("ready").focus(); button("ready").click(); document.title += " " + location.hash + " " + document.activeElement.textContent;'
	dom "$T/scripted.html" >"$T/dom"
	assert_equal "$(grep -o '<title>.*</title>' "$T/dom")" \
		"<title>#sort=ready:desc #sort=ready:asc ready</title>"
	run in_order queues <"$T/dom"
	assert_output $'job-10\nmails\njob-9'
}

@test "html: filtered, and by a queue that is chosen" {
	local shown src

	some_queues
	with_script "$button"'const input = document.querySelector("input"); input.value = "JOB"; input.dispatchEvent(new Event("input")); button("job-10").click(); document.title = [location.hash, document.querySelector("#plots h2").textContent, document.querySelector("#plots dd").textContent, button("job-10").getAttribute("aria-pressed")].concat(Array.from(document.querySelectorAll("tbody th, section:not([hidden]) small"), (e) => e.textContent)).join("\|");'
	dom "$T/scripted.html" >"$T/dom"
	assert_equal "$(grep -o '<title>.*</title>' "$T/dom")" \
		"<title>#filter=JOB&amp;queue=job-10|job-10show all|9|true|2 of 3|job-10|job-9|1 of 2|job-10|5 of 8|job-10|job-10|job-10|job-10|job-10</title>"
	# The same from the address; of all queues, without it; where --http answers, there
	# are links to messages.
	serve
	sed 's|"id":null|"id":"a/b"|g; s|data-refresh="0"|& data-served|' "$page" >"$T/served.html"
	sed 's|"job-10"|"job\\\\x2d10"|g' "$T/served.html" >"$T/named.html"
	shown='[d.querySelectorAll("tbody tr").length, d.querySelector("#plots h2").firstChild.textContent, d.querySelector("#plots dd").textContent].concat(...new Set(Array.from(d.querySelectorAll("a"), (e) => e.getAttribute("href") + "=" + e.textContent))).join(" ")'
	run framed < <(for src in page.html#queue=mails page.html served.html#queue=job-10 named.html#queue=job%5Cx2d10; do
		frame 500 "$src" "$shown"
	done)
	assert_output "\
13 All queues 1,229
7 mails 20
9 job-10 9 #show=queue%2Fjob-10=messages #show=queue%2Fjob-10&amp;reason==- #show=message%2Fa%252Fb=a/b
9 job\\x2d10 9 #show=queue%2Fjob%252d10=messages #show=queue%2Fjob%252d10&amp;reason==- #show=message%2Fa%252Fb=a/b"
}

# Of scripts: the commands of all rows, one in each line of the title.
told='document.title = [...document.querySelectorAll(".do button:not([hidden])")].map((b) => { b.click(); return [...document.querySelectorAll("#commands code")].map((c) => c.textContent).join("\\n"); }).join("\\n");'

@test "html: commands name what the row is of, whatever it is called" {
	local q line names=("${hostile[@]}" "it's; rm -rf" -x '$(id) `id`' 'Grüße' plain
		$'a\xff\u202e%d\'\\0\u200b' $'-\xc2\x9b')

	for q in "${names[@]}"; do
		redis sadd rmq::queues "$q" >/dev/null
	done
	redis set 'rmq::queue::[plain]::paused' 1 >/dev/null
	"$BUILD/mq-stats" --html >"$page"
	with_script "$told"
	dom "$T/scripted.html" | python3 -IS -c '
import html, re, sys
print(html.unescape(re.search("<title>(.*?)</title>", sys.stdin.read(), re.S)[1]))' >"$T/commands"
	run cat "$T/commands"
	assert_line 'mq-pause --resume plain'
	assert_line 'mq-pause -- -x'
	assert_line "mq-pause 'it'\\''s; rm -rf'"
	assert_line "mq-pause 'Grüße'"
	assert_line 'mq-pause -- "$(printf '"'\\055\\302\\233')\""
	run ! grep -P '[\x00-\x08\x0b-\x1f\x7f]|\xe2\x80' "$T/commands"
	# Each shell has the names again; but no tool takes some control characters.
	for shell in bash dash; do
		while read -r line; do
			"$shell" -c "set -- $line"'; shift $(($# - 1)); printf "%s\0" "$1"'
		done <"$T/commands" | sort -z >"$T/found"
		printf '%s\0' "${names[@]}" | LC_ALL=C grep -zva '[[:cntrl:]]' | sort -z |
			cmp - "$T/found"
	done
}

@test "html: the commands do what they say" {
	local line

	printf 'a %s\n' 1 2 3 | run_mq 0 mq-publish -q -l jobs
	run_mq 1 mq-consume -q --drain --attempts 1 jobs -- sh -c 'echo "no disk (3)" >&2; exit 1'
	"$BUILD/mq-stats" --html >"$page"
	with_script "$told"
	dom "$T/scripted.html" | tr '\n' '|' | sed 's|.*<title>||; s|</title>.*||' |
		tr '|' '\n' >"$T/commands"
	assert_equal "$(grep -c . "$T/commands")" 11
	line=$(grep -m 1 -- '--id' "$T/commands")
	PATH=$BUILD:$PATH run eval "$line"
	assert_output "1 message returned"
	line=$(grep -- 'return --reason' "$T/commands")
	assert_equal "$line" "mq-return --reason '^no disk ..*. .exit status 1.' jobs"
	PATH=$BUILD:$PATH run eval "$line"
	assert_output "2 messages returned"
}

# viewed FRAGMENT [OPTION...]: what mq-stats --http shows there.
viewed() {
	start_mq mq-stats --http=0 "${@:2}"
	eventually 10 grep -q serving "$T/err"
	browser --virtual-time-budget=3000 --dump-dom \
		"$(sed 's|.*serving ||' "$T/err")#show=$1" | sed -n '/id="view"/,$p'
	stop_mq TERM 143
}

@test "html: an id leads to its message, a reason to its messages" {
	local id evil='<img src=x onerror=document.title=1>'

	run_mq 0 mq-publish -q -H 'Kind: re<port' -i jobs $'pay<load\e'
	id=$output
	run_mq 1 mq-consume -q --drain --attempts 1 jobs -- \
		sh -c 'printf "$0\n\033[2J\342\200\256" >&2; exit 1' "$evil"
	run viewed "message%2F$id" --payloads
	assert_output --partial "<td class=\"t\">rejected</td>"
	assert_output --partial 're&lt;port'
	assert_output --partial '<pre class="card t">pay&lt;load\u{1b}</pre>'
	assert_output --partial '&lt;img src=x onerror=document.title=1&gt;'
	assert_output --partial '\u{1b}[2J\u{202e}'
	refute_output --partial '<img'
	assert_output --partial "<code>mq-return --id $id jobs</code>"
	# Without --payloads, there is none; what is not there is said.
	run viewed "message%2F$id"
	assert_output --partial 're&lt;port'
	refute_output --partial 'pay&lt;load'
	run_mq 0 mq-publish -q -i $'j\xff\\x41' x
	run viewed "message%2F$output"
	assert_output --partial " \"\$(printf 'j\\377\\134x41')\"</code>"
	run viewed message%2Fnone
	assert_output --partial 'It is not there any more.'
	run viewed "queue%2Fjobs"
	assert_output --partial ">$id</a>"
	run viewed "queue%2Fjobs&reason=other"
	refute_output --partial "$id</a>"
	# Nothing but these is asked for.
	run viewed "..%2Fmetrics"
	assert_output --partial 'id="view" hidden'
}

runs_half() {
	"$BUILD/mq-stats" --running 2>/dev/null | grep -q half
}

@test "html: a message that runs has a bar; a result and the end of the output are as they were written" {
	local id

	run_mq 0 mq-publish -i jobs x
	id=$output
	run_mq 0 mq-consume -n 1 --keep 1h --result stdout --output-keep 4K jobs -- printf 'one\n\ttwo\n'
	run viewed "message%2F$id" --payloads --output
	assert_output --partial $'<h3>Result</h3><pre class="card t">one\n\ttwo\n</pre>'
	assert_output --partial $'<h3>End of the output</h3><pre class="card t">one\n\ttwo\n</pre>'
	run_mq 0 mq-publish -i jobs x
	id=$output
	mkfifo "$T/fifo"
	"$BUILD/mq-consume" -q -n 1 jobs -- \
		sh -c 'echo "run 40% half" >&3; read -r x <"$0"' "$T/fifo" 3>&- &
	eventually 10 runs_half
	run viewed "message%2F$id"
	echo >"$T/fifo"
	wait
	assert_output --partial '<progress max="100" value="40"></progress>40% half'
	refute_output --partial '<td class="t">percent</td>'
}

# Whether the page that stays has reported this last.
reported() {
	[[ $(grep -oE 'GET /report.[^ ]*' "$T/log" | tail -n 1) == *\?$1 ]]
}

# What the page shows now: when it was loaded, what has the focus, the ready messages
# of mails, lines in its row and in the plots, and how the last refresh went.
tell='const since = Date.now(); setInterval(() => fetch("/report?" + [since, document.activeElement.textContent, document.querySelector("#queues tbody tr:last-child td").textContent, document.querySelectorAll("#queues tbody tr:last-child path").length, document.querySelectorAll("#plots path").length, document.querySelector(".state").textContent].join("/")), 200);'

@test "html: it is read again in place, and plots what has changed" {
	local now first

	some_queues --refresh 1
	with_script "$button$tell"'button("mails").focus();'
	now=$(redis time | head -n 1)
	serve
	# With a debugger it stays.
	HOME=$T timeout -k 5 180 "${chromium[@]}" --remote-debugging-port=0 \
		"$site/scripted.html#queue=mails" >/dev/null 2>&1 3>&- &
	pid=$!
	eventually 40 reported '*/mails/20/0/0/'
	first=$(grep -oE 'report.[0-9]*' "$T/log" | tail -n 1)
	eventually 5 eval '(($(redis time | head -n 1) > now))'
	redis lpush 'rmq::queue::[mails]::ready' {1..5} >/dev/null
	"$BUILD/mq-stats" --html --refresh 1 >"$page"
	with_script "$button$tell"
	# A line of the messages there are; those of ages and rates have no points.
	eventually 40 reported '*/mails/25/1/7/'
	# Something else does not replace it...
	echo "<h1>502</h1>" >"$T/scripted.html"
	eventually 40 reported '*/mails/25/1/7/not%20read%20since*something*'
	# ...and another version does.
	assert_equal "$(grep -oE 'report.[0-9]*' "$T/log" | tail -n 1)" "$first"
	sed "s|default-src 'none'|& |" "$page" >"$T/scripted.html"
	eventually 40 eval '(($(grep -cF "GET /scripted.html HTTP" "$T/log") >= 2))'
	kill "$pid"
	wait "$pid" || true
}

@test "html: plots begin where rounds of cleaning have noted, and break where none has" {
	local now note kind unit ago ready marks

	redis sadd rmq::queues mails >/dev/null
	now=$(redis --raw time | head -n 1)
	for note in 'minutes 60 450 1' 'minutes 60 150 7' 'minutes 60 90 0' 'hours 3600 90000 500' \
		'hours 3600 86400 40'; do
		read -r kind unit ago ready <<<"$note"
		redis hset "rmq::queue::[mails]::$kind" \
			$(((now - ago) / unit % (unit == 60 ? 60 : 48))) \
			"$((now - ago)) $ready 0 0 0 0 0 0 0" >/dev/null
	done
	some_queues
	serve
	# Moves and lines of its row, and of all queues.
	marks='["#queues tbody tr:last-child path", "#plots path"].map((p) => d.querySelector(p).getAttribute("d").replace(/[^ML]/g, "")).concat(d.querySelector("figcaption span").textContent).join(" ")'
	run framed < <(for note in queue=mails 'since=2d&queue=mails' ''; do
		frame 500 "page.html#$note" "$marks"
	done)
	assert_output "\
MLMMLL MLMMLL at most 500
MMLL MMLL at most 1,229
MMLL MMLL at most 20"
}

@test "html: without JavaScript" {
	some_queues --refresh 7
	serve
	run framed < <(frame 500 page.html '[d.querySelector("#queues pre").innerText.match(/^[a-z]\S+ +[0-9]+/gm), d.querySelector("noscript meta").content, d.querySelectorAll("button").length].join(" ")' \
		'sandbox="allow-same-origin"')
	assert_output --regexp "^job-10 +9,job-9 +1200,mails +20 7 0"
}

@test "html: nothing is wider than a phone, light and dark" {
	local mode width shot sums=()

	some_queues
	fill
	redis sadd rmq::queues "$(printf 'w%.0s' {1..512})" "サムネイル" >/dev/null
	"$BUILD/mq-publish" jobs hello
	"$BUILD/mq-stats" --html >"$page"
	serve
	run framed < <(for width in 320 768 1280; do
		frame $width page.html 'd.documentElement.scrollWidth + " " + Array.from(d.querySelectorAll(".card, figure")).filter((e) => e.scrollWidth > e.clientWidth).length'
	done)
	assert_output $'1280 0\n320 0\n768 0'
	for mode in light dark; do
		shot=$SHOTS/$mode.png
		rm -f "$shot"
		# shellcheck disable=SC2046
		browser $([ $mode = light ] || echo --force-dark-mode \
			--blink-settings=preferredColorScheme=0) \
			--window-size=2400,1800 --screenshot="$shot" "$site/frames.html" >/dev/null
		sums+=("$(sha256sum <"$shot")")
		(($(stat -c %s "$shot") > 20000))
	done
	[ "${sums[0]}" != "${sums[1]}" ]
}
