# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The text of a Lua script, and what its head says of its interface; see embed.sh.
#
#	wanted=lua	the script, with its head's variables behind the head
#	wanted=header	declarations for C
#	wanted=c	members of its struct mq_script

BEGIN {
	places["rmq"] = "ready=ready priority=priority delayed=delayed locks=locks " \
		"clock=clock results=result::"
	places["rsmq"] = "z= h=:Q x=:X d=:Xagain"
}

function fail(why) {
	print "embed.sh: " layout " " name ": " why >"/dev/stderr"
	exit failed = 1
}

# A variable that has the nth of KEYS or ARGV, or a constant.
function add_local(variable, table, n) {
	if (table == "") {
		constants = constants (constants == "" ? "" : ",") variable
		numbers = numbers (numbers == "" ? "" : ",") n
		return
	}
	if (variables == "")
		first = n
	else if (n != last + 1)
		scattered = 1
	variables = variables (variables == "" ? "" : ",") variable
	values = values (values == "" ? "" : ",") table "[" n "]"
	last = n
}

# Ends the variables of a table, which may have more of them.
function end_locals(table, more) {
	if (variables != "" && !scattered && last > first)
		values = "unpack(" table \
			(more ? "," first "," last : first > 1 ? "," first : "") ")"
	if (variables != "")
		prelude = prelude "local " variables "=" values "\n"
	if (constants != "")
		prelude = prelude "local " constants "=" numbers "\n"
	variables = values = constants = numbers = ""
	scattered = 0
}

function is_list(word) {
	return word ~ /^\(/ || word ~ /\.\.\.$/
}

# A list that begins with an item, and has its first value at n.
function add_list(item, i, count, n,    word) {
	word = item[i]
	gsub(/[().]/, "", word)
	gsub(/[^a-z0-9]/, "_", word)
	if (("first_" word) in body)
		add_local("first_" word, "", n)
	if (("each_" word) in body)
		add_local("each_" word, "", count - i + 1)
}

# The places of a queue, from key number n on; how many.
function add_places(variable, missing, n,    i, count, part, table, pair) {
	count = split(places[layout], part, " ")
	if (count == 0)
		fail("no PLACES")
	for (i = 1; i <= count; i++) {
		split(part[i], pair, "=")
		table = table (i > 1 ? ", " : "") pair[1] " = KEYS[" n + i - 1 "]"
		if (!missing)
			words = words " " pair[2]
	}
	prelude = prelude "local " variable " = " (missing ? "KEYS[" n "] and " : "") \
		"{ " table " }\n"
	return count
}

function read_keys(    i, n, count, item, word, variable, missing, at) {
	n = 1
	count = split(head["KEYS"], item, " ")
	for (i = 1; i <= count; i++) {
		word = item[i]
		if (word == "|") {
			sections = sections "\"" substr(words, 2) "\", "
			words = ""
			continue
		}
		if (is_list(word)) {
			add_list(item, i, count, n)
			most_keys = 1000000
			if (item[i - 1] == "|")
				for (; i <= count; i++) {
					gsub(/[().]/, "", item[i])
					words = words " " item[i]
				}
			break
		}
		missing = gsub(/[][]/, "", word)
		if (word ~ /:PLACES$/) {
			sub(/:PLACES$/, "", word)
			at = n
			n += add_places(word, missing, n)
			if (!missing)
				fewest_keys += n - at
			continue
		}
		variable = word
		if ((at = index(word, "=")) > 0) {
			variable = substr(word, 1, at - 1)
			word = substr(word, at + 1)
		}
		sub(/^[A-Z]:/, "", variable)
		gsub(/[^a-z0-9]/, "_", variable)
		if (!missing && word != "*")
			words = words " " word
		fewest_keys += !missing
		add_local(variable, "KEYS", n)
		n++
	}
	sections = sections "\"" substr(words, 2) "\""
	if (most_keys == 0)
		most_keys = n - 1
	end_locals("KEYS", most_keys > n)
}

function read_args(    i, n, count, item, word, missing) {
	n = 1
	count = split(head["ARGV"], item, " ")
	for (i = 1; i <= count; i++) {
		word = item[i]
		if (is_list(word)) {
			add_list(item, i, count, n)
			has_list = 1
			break
		}
		missing = gsub(/[][]/, "", word)
		if (!missing && n > fewest_args + 1)
			fail(word " must be there, and one before it may be missing")
		fewest_args += !missing
		members = members (members == "" ? "" : ", ") word
		if (word in body)
			add_local(word, "ARGV", n)
		n++
	}
	most_args = n - 1
	end_locals("ARGV", has_list)
}

function read_reply(    i, count, item) {
	count = split(head["REPLY"], item, " ")
	for (i = 1; i <= count; i++) {
		gsub(/[][().]/, "", item[i])
		item[i] = toupper(item[i])
		if (item[i] in body)
			add_local(item[i], "", i)
		enumerators = enumerators (i > 1 ? ", " : "") \
			toupper(layout "_" name) "_" item[i]
	}
	end_locals()
}

# Reads the names of all headers, and in the order of their table which the scripts obey.
function read_headers(    path, line, part, i) {
	path = message "/headers.h"
	while ((getline line <path) > 0)
		if (split(line, part, /[ \t"]+/) > 2 && part[2] ~ /^MQ_HEADER_/)
			name_of[part[2]] = part[3]
	close(path)
	path = message "/headers.c"
	while ((getline line <path) > 0)
		if (line ~ /MQ_TRAIT_(OBEYED|ORDER)/ && split(line, part, /[{,]/) > 2)
			obeyed[++obeyed_count] = name_of[part[2]]
	close(path)
	for (i = 1; i <= obeyed_count; i++)
		is_obeyed[obeyed[i]] = 1
}

# A pattern for what follows "Mq- in the names of those that scripts obey: its first letters,
# with which no other name may begin.
function obeyed_pattern(    i, n, letter, letters, pattern) {
	read_headers()
	for (n = 4; n <= 6; n++) {
		letters = ""
		for (i = 1; i <= obeyed_count; i++) {
			letter = substr(obeyed[i], n, 1)
			if (!index(letters, letter))
				letters = letters letter
		}
		pattern = pattern "[" letters "]"
	}
	for (i in name_of)
		if (!(name_of[i] in is_obeyed) && substr(name_of[i], 4) ~ "^" pattern)
			fail("asking.lua takes " name_of[i] " for one that scripts obey")
	return pattern
}

# Adds a line behind the head, or those of the file that it names.
function add_line(line,    path, of, found) {
	if (line !~ /^-- include /) {
		if (line ~ /@OBEYED@/)
			sub(/@OBEYED@/, obeyed_pattern(), line)
		asks += sub(/need\(\)/, "need(KEYS[1], " needed() ")", line)
		code[++lines] = line
		return
	}
	path = own "/" substr(line, 12) ".lua"
	found = (getline of <path) > 0
	if (!found) {
		path = shared "/" substr(line, 12) ".lua"
		found = (getline of <path) > 0
	}
	if (!found)
		fail("no " path)
	do
		add_line(of)
	while ((getline of <path) > 0)
	close(path)
}

# The commands whose rights the script asks for, as arguments.
function needed(    commands) {
	commands = head["NEEDS"]
	gsub(/[A-Z]+/, "'&',", commands)
	return substr(commands, 1, length(commands) - 1)
}

# Holds the head against the body.
function check_needs(    i, count, item) {
	count = split(head["NEEDS"], item, " ")
	if ((count > 0) != (asks > 0))
		fail("NEEDS, and where the body asks: the one without the other")
	for (i = 1; i <= count; i++)
		if (!(item[i] in body))
			fail("NEEDS " item[i] ", which the body does not run")
}

# Adds n to how often the body has each word of these lines.
function count_words(from, to, n,    i, j, word, words) {
	for (i = from; i <= to; i++) {
		words = code[i] ~ /^ *--/ ? 0 : split(code[i], word, /[^A-Za-z0-9_]+/)
		for (j = 1; j <= words; j++)
			uses[word[j]] += n
	}
}

# Removes the functions of libraries that nothing calls: it takes the server time to define one.
function drop_unused(    i, n, f, name, from, to, depth, before, dropped) {
	for (i = 1; i <= lines; i++)
		if (code[i] ~ /^local function /) {
			name[++n] = code[i]
			gsub(/^local function |\(.*/, "", name[n])
			from[n] = i
			# A function may have those of a library in it.
			depth = 1
			for (to[n] = i + 1; depth > 0; to[n]++)
				depth += (code[to[n]] ~ /^local function /) - (code[to[n]] == "end")
			to[n]--
		}
	count_words(1, lines, 1)
	do {
		dropped = 0
		for (f = 1; f <= n; f++) {
			before = uses[name[f]]
			count_words(from[f], to[f], -1)
			if (before == 0 || uses[name[f]] > 0) {
				count_words(from[f], to[f], 1)
				continue
			}
			for (i = from[f]; i <= to[f]; i++)
				code[i] = "--"
			dropped = 1
		}
	} while (dropped)
}

# Takes the body as it is now, and which words it has.
function read_body(    i, word) {
	drop_unused()
	for (i = 1; i <= lines; i++)
		text = text code[i] "\n"
	for (word in uses)
		if (uses[word] > 0)
			body[word]
}

!behind && /^-- (KEYS|ARGV|REPLY|NEEDS) / {
	kind = $2
	head[kind] = substr($0, length(kind) + 5)
	comment = comment $0 "\n"
	next
}
!behind && /^--/ {
	if (kind != "" && /^--      *[^ ]/)
		head[kind] = head[kind] " " substr($0, 3)
	else
		kind = ""
	comment = comment $0 "\n"
	next
}
{
	behind = 1
	add_line($0)
}
END {
	if (failed)
		exit 1
	read_body()
	check_needs()
	read_keys()
	read_args()
	read_reply()
	if (wanted == "lua") {
		printf "%s%s%s", comment, prelude, text
	} else if (wanted == "header") {
		if (members != "")
			printf "struct %s_%s_argv {\n\tstruct mq_arg %s;\n};\n",
				layout, name, members
		if (enumerators != "")
			printf "enum {\n\t%s\n};\n", enumerators
	} else if ("KEYS" in head || "ARGV" in head) {
		printf "\t.keys = {%s},\n\t.fewest_keys = %d,\n\t.most_keys = %d,\n",
			sections, fewest_keys, most_keys
		printf "\t.fewest_args = %d,\n\t.most_args = %d,\n\t.has_list = %d,\n",
			fewest_args, most_args, has_list
	}
}
