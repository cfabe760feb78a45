#!/bin/sh
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Prints, for mq.bash, the options of tools as these tell them: table.sh TOOL...
set -eu

# quote: a string in single quotes.  An argument that needs no '=' is marked 1.
for tool; do
	"$tool" --help=all | awk -v tool="${tool##*/}" '
		function quote(s) {
			gsub(/\047/, "\047\\\047\047", s)
			return "\047" s "\047"
		}
		function add(heads, about,  part, n, i, option, argument) {
			sub(/ +$/, "", heads)
			n = split(heads, part, ", ")
			argument = part[n] ~ /^ *-[^ ]+ / ? 1 : ""
			for (i = 1; i <= n; i++) {
				option = part[i]
				sub(/^ +/, "", option)
				sub(/[ [].*/, "", option)
				all = all (all == "" ? "" : " ") option
				printf "_mq_argument[%s]=%s _mq_about[%s]=%s\n",
					quote(tool ":" option), argument,
					quote(tool ":" option), quote(about)
			}
		}
		/^ +-/ {
			if (length($0) < 26 || substr($0, 25, 1) != " ")
				heads = $0
			else
				add(substr($0, 1, 25), substr($0, 26))
			next
		}
		heads != "" {
			sub(/^ +/, "")
			add(heads, $0)
			heads = ""
		}
		END { printf "_mq_all[%s]=%s\n", quote(tool), quote(all) }'
done
