# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Headers as Go's library takes them: halves of surrogate pairs, bytes that are
# no UTF-8, NUL in names; and payloads that look like one.

load ../helpers/server

# odd ID MORE: a message as no Go program writes it, but any can read it.
odd() {
	printf '\xff\0\xbe\xbeJ{"Mq-Id":["%s"],"X-\\u0000Name":["\\u0000v"],"X-Path":["/a\\udcff\xff\\ud83d\\ude00"]%s}\npay\nload' \
		"$1" "$2" | redis -x lpush 'rmq::queue::[q]::ready' >/dev/null
}

id() {
	printf '%032d' "$1"
}

# The header of an element on stdin, in a form of its own.
decoded() {
	tail -c +6 | head -n 1 | python3 -c 'import json, sys
h = json.loads(sys.stdin.buffer.read().decode(errors="replace"))
print(sorted((n, v) for n, v in h.items() if n[:2] == "X-" or n == "Mq-Attempt"))'
}

@test "goheaders: such a message runs, and loses nothing that Go would keep" {
	odd "$(id 1)" ''
	element q ready >"$T/before"
	run_mq 75 mq-consume -n 1 --backoff 1h..1h q -- sh -c '
		[ "$(cat; echo .)" = "pay
load." ] && [ "$MQ_ID" = '"$(id 1)"' ] && exit 75'
	assert_equal "$(held q)" "0 1 0 0"
	run decoded < <(element q delayed)
	assert_output "[('Mq-Attempt', ['1']), ('X-\\x00Name', ['\\x00v']), ('X-Path', ['/a��😀'])]"
	run_mq 0 mq-stats --list delayed --jsonl q
	assert_output --partial '"X-\u0000Name":["\u0000v"]'
	# Copied by its line it has the same.
	"$BUILD/mq-stats" --list delayed --jsonl q | "$BUILD/mq-publish" --jsonl copy
	element copy delayed | decoded | grep -qF "('X-\\x00Name', ['\\x00v']), ('X-Path', ['/a��😀'])"
	# A consumer that only gives back changes no byte.
	odd "$(id 1)" ''
	start_mq mq-consume --grace 0 q -- sleep 100
	eventually 10 held_is q "0 1 1 0"
	stop_mq TERM
	element q ready | cmp - "$T/before"
}

@test "goheaders: groups, keys and priorities are those that are read" {
	local i more
	printf -v more '%b' ',"Mq-Group":["g\\ud800\xff"],"Mq-Key":["k\\\\\\ud83d\\ude00\xe2"],"Mq-Priority":["5"]'
	run_mq 0 mq-publish --jsonl q <<'.'
{"payload":"first","headers":{"Mq-Group":"g\ufffd\ufffd","Mq-Key":"k\\😀\ufffd"}}
.
	# mq-return brings two more.
	for i in 1 2; do
		odd "$(id $i)" "$more"
		redis lmove 'rmq::queue::[q]::ready' 'rmq::queue::[q]::rejected' LEFT LEFT >/dev/null
	done
	run_mq 0 mq-return q
	# All are of one group, which the first one has.
	assert_equal "$(held q)" "1 2 0 0"
	assert_equal "$(redis --raw hkeys 'rmq::queue::[q]::locks' | sort | sed 's/^g.*/g/')" $'g\nkk\\😀�'
	# One is tried again, with headers that are written anew, and lets go of them.
	run_mq 0 mq-consume -n 4 --backoff 0s..0s q -- sh -c '[ "$MQ_ATTEMPT$MQ_ID" != 1'"$(id 1)"' ] || exit 75'
	assert_equal "$(held q)" "0 0 0 0"
	run redis --raw hkeys 'rmq::queue::[q]::locks'
	refute_output --regexp '^[gk]'
}

@test "goheaders: --raw refuses what would be taken for a header" {
	local framing want start='\xff\0\xbe\xbeJ'
	# framing, input, how many were accepted before
	while IFS='|' read -r framing input want; do
		# shellcheck disable=SC2059,SC2086 # bytes, and maybe nothing
		run_mq 65 mq-publish --raw $framing q < <(printf "$input")
		assert_regex "$stderr" "^mq-publish: record $((want + 1)): begins like a header of rmq; publish it without --raw
mq-publish: $want messages? accepted$"
	done <<-END
		|$start{}\nx|0
		|$start|0
		-l|a\n${start}\nb\n|1
		--netstring|1:a,1:b,5:$start,|2
		--jsonl|{"payload":"a"}\n{"payload_base64":"/wC+vko="}\n|1
	END
	assert_equal "$(held q)" "4 0 0 0"
	# A shorter one, and any without --raw, is a payload.
	run_mq 0 mq-publish --raw r < <(printf '\xff\0\xbe\xbe')
	run_mq 0 mq-publish r < <(printf '\xff\0\xbe\xbeJ{}\nx')
	run_mq 0 mq-publish --jsonl r <<<'{"payload_base64":"/wC+vko="}'
	"$BUILD/mq-consume" --drain r | cmp - <(printf '\xff\0\xbe\xbe\xff\0\xbe\xbeJ{}\nx\xff\0\xbe\xbeJ')
	# RSMQ has its headers elsewhere.
	MQ_LAYOUT=rsmq server_url
	run_mq 0 mq-publish -L rsmq --raw q < <(printf '\xff\0\xbe\xbeJ{}\nx')
	"$BUILD/mq-consume" -L rsmq --drain q | cmp - <(printf '\xff\0\xbe\xbeJ{}\nx')
}
