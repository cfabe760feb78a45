# layouts: rmq rsmq
# What --print-acl prints is enough for all that a tool does, and none of it is
# too much: a tour through the tool by a user who has these rights only, while
# MONITOR writes down what it comes to.
#
# What the tests do themselves stands between the marks "own" and "tool" there.

load ../helpers/server

: "${LAYOUT:=rmq}"

setup() {
	load "../helpers/layout-$LAYOUT"
	export MQ_LAYOUT=$LAYOUT
	common_setup
	redis acl log reset >/dev/null
	redis script flush >/dev/null
	redis acl deluser app >/dev/null
	redis monitor >"$T/monitor" 3>&- &
	eventually 10 monitors_say '^OK$'
}

teardown() {
	[ -n "${BATS_TEST_COMPLETED-}" ] || redis acl log
	common_teardown
}

# rules TOOL [OPTION...] [QUEUE...]
rules() {
	"$BUILD/$1" --print-acl "${@:2}"
}

# may TOOL [OPTION...] QUEUE...: the user app may do that only.
may() {
	set -f
	# shellcheck disable=SC2046
	redis acl setuser app reset on '>pw' $(rules "$@") >/dev/null
	set +f
	rules "$@" >"$T/rules"
	export MQ_URL=$(url_as app:pw)
	redis echo tool >/dev/null
}

# monitors_say PATTERN: each node has one.
monitors_say() {
	[ "$(grep -c "$1" "$T/monitor")" = "$(server_pid | wc -w)" ]
}

# own COMMAND...: not by the user.
own() {
	redis echo own >/dev/null
	MQ_URL=$(url_as) "$@"
	redis echo tool >/dev/null
}

own_mq() {
	own "$BUILD/$@" >/dev/null
}

# But the key of those who clean everything, which a consumer asks for once.
nothing_refused() {
	redis --raw acl log | grep -A 1 '^object$' |
		grep -vE '^(object|--|(rmq|rsmq|\{rsmq\})::cleaning)$' >"$T/refused" || true
	assert_equal "$(cat "$T/refused")" ""
}

# all_needed [RULE...]: each rule lets something pass that no other one does; but
# for those that are needed only when others are at work at the same time, which
# may be the case.
all_needed() {
	redis echo end >/dev/null
	eventually 10 monitors_say '"echo" "end"'
	run python3 - "$T/rules" "$T/monitor" <<-'PY'
	import fnmatch, re, sys
	rules = open(sys.argv[1]).read().split()
	commands, args, told = set(), set(), True
	# Each begins with its time, and several nodes may have written them.
	for line in sorted(open(sys.argv[2], errors="replace")):
	    words = re.findall(r'"([^"\\]*(?:\\.[^"\\]*)*)"', line)
	    if len(words) == 2 and words[0] == "echo":
	        told = words[1] == "tool"
	    elif told and words:
	        name = words[0].lower()
	        commands.add(name)
	        commands.add(name + "|" + (words[1:] or [""])[0].lower())
	        # What is longer is a message, or a script.
	        args.update(w for w in words[1:] if len(w) < 1000)
	def glob(rule):
	    # A part in brackets stands for itself here, and so does a backslash.
	    return re.compile(fnmatch.translate(rule[1:].replace("\\[", "[[]")))
	globs = {r: glob(r) for r in rules if r[0] in "~&"}
	for r in rules:
	    if r[0] == "+" and r[1:] not in commands:
	        print(r)
	    elif r in globs and not any(
	            g.match(a) and not any(h.match(a) for s, h in globs.items() if s != r)
	            for a in args for g in [globs[r]]):
	        print(r)
	PY
	run comm -23 <(monitored <<<"$output" | sort) <(printf '%s\n' "$@" '' | of_cluster | sort)
	assert_output ""
}

# But what MONITOR of Redis 6.2 leaves out.
monitored() {
	case $(redis-server --version) in
	*v=6.*) grep -v -e '^+client|' -e '^+config|' || true ;;
	*) cat ;;
	esac
}

is() {
	[ "$LAYOUT" = "$1" ]
}

# The names of RSMQ's keys there.
of_cluster() {
	if [ "${TOPOLOGY-}" = cluster ]; then
		sed 's/^~rsmq:/~{rsmq}:/'
	else
		cat
	fi
}

# there RULE...: exceptions on a cluster.  No slot moves, no node is lost, and there are
# no replicas; nothing was on its way to another node when the tool came.
there() {
	[ "${TOPOLOGY-}" != cluster ] || printf '%s\n' +asking +wait '+cluster|nodes' "$@"
}

# A consumer that has died with N messages.
grave() {
	local c

	local held=(--prefetch "$(($1 - 1))")
	# Nothing is claimed ahead of a last attempt there.
	is rmq || held=(-j "$1")
	start_mq mq-consume --tag grave "${held[@]}" --attempts 1 q -- sleep 100
	eventually 10 unacked_are "$1"
	c=$(connections | grep grave)
	kill -KILL "$pid"
	wait "$pid" || true
	own expire "$c"
}

unacked_are() {
	[ "$(own held q | cut -d' ' -f3)" = "$1" ]
}

# The commands whose rights scripts ask for, by themselves or by the words of a probe.
asked_for() {
	local queue=$root/common/queue

	find "$queue" -name '*.lua' -exec cat {} + | tr '\n' ' ' |
		grep -o 'need([^()]*)' | grep -o "'[A-Z]\+'" | tr -d "'"
	grep -hv -e mq_command_plain -e LEFT "$queue"/*/session.c | grep -oE '"[A-Z ]+"' |
		tr -d '"' | xargs -n 1
}

# with_rights LUA LUA [ARG...]: in a script, before its functions for rights and behind.
with_rights() {
	redis eval "$1
		$(cat "$root/common/queue/lua/lib/rights.lua")
		$2" 0 "${@:3}"
}

@test "acl: scripts ask for a right by a command that is whole" {
	mapfile -t commands < <(asked_for | sort -u)
	[[ ${commands[*]} == *PUBLISH*SCARD*ZREVRANGE* ]]
	run with_rights '
		local server, asked = redis
		local redis = { acl_check_cmd = function(...) asked = { ... } end }' '
		local wrong = {}
		for i = 1, #ARGV do
			permits(ARGV[i], "key")
			local info = server.call("COMMAND", "INFO", ARGV[i])[1] or { 0, 0 }
			local arity, last = info[2], info[5]
			if #asked ~= arity and (arity >= 0 or #asked < -arity) or #asked <= last then
				wrong[#wrong + 1] = table.concat(asked, " ")
			end
		end
		return wrong' "${commands[@]}"
	assert_success
	assert_output ""
}

@test "acl: a server that does not answer about a right has no objection" {
	run with_rights 'local redis = { acl_check_cmd = error }' \
		'need("key", "SET") return "passes"'
	assert_output passes
}

@test "acl: a publisher" {
	if is rmq; then
		may mq-publish --key a --wait --tick 6 q
	else
		may mq-publish --realtime q
	fi
	run_mq 0 mq-publish q 1 2 3
	run_mq 0 mq-publish -d 1h q later
	run_mq 0 mq-publish --at 'tomorrow 9:00' -e 2d q later
	run_mq 0 mq-publish --at now -p 5 -i q now
	run_mq 75 mq-publish -p 5 --max-length 1:1 --max-delayed 1 q full
	if is rmq; then
		run_mq 0 mq-publish -k a --unique 1h q key
		run_mq 1 mq-publish -k a --unique 1h q key
		own redis hset 'rmq::queue::[q]::locks' kold "$(printf %032d 1) 1 1" >/dev/null
		run_mq 0 mq-publish -k b --unique 1h q key
		run_mq 0 mq-publish -k c --unique queued -d 1h q key
		run_mq 0 mq-publish -k c --unique queued --coalesce q key
		run_mq 0 mq-publish -g a --max-length 100 q 1 2
		run_mq 0 mq-publish --from-tick 5 --until-tick 9 q tick
		run_mq 0 mq-publish --tick 6 q
		run_mq 75 mq-publish --wait=1s q answer
	else
		run_mq 0 mq-publish --vt 40 q 0
		run_mq 0 mq-publish --realtime -H 'A: b' q 1
	fi
	nothing_refused
	# When it has lost its connection and a reply; when it is a consumer, too.
	all_needed '+client|kill' '+client|list' +hgetall \
		"$(is rmq || printf '%s\n' '&__redis__:invalidate' '&mq::wake::*')" \
		"$(there +exists)"
}

@test "acl: users that begin with all channels, as those of Redis 6.2 do" {
	redis config set acl-pubsub-default allchannels >/dev/null
	for tool in publish consume lease stats clean return purge pause; do
		redis acl deluser fresh >/dev/null
		read -ra rules < <("$BUILD/mq-$tool" --print-acl)
		run redis acl setuser fresh on '>pw' "${rules[@]}"
		assert_output OK
	done
	# Those of several tools.
	redis acl deluser fresh >/dev/null
	read -ra rules < <(for tool in consume publish stats; do
		"$BUILD/mq-$tool" --print-acl a
	done | xargs -d '\n')
	run redis acl setuser fresh on '>pw' "${rules[@]}"
	assert_output OK
	run redis --raw acl getuser fresh
	# That server leaves out the sign.
	assert_output --regexp $'[&\n]__redis__:invalidate'
	redis config set acl-pubsub-default resetchannels >/dev/null
}

@test "acl: a publisher of attachments" {
	is rmq || return 0
	head -c 10 /dev/zero >"$T/file"
	may mq-publish --attach a=b -k a q
	run_mq 0 mq-publish --attach a="$T/file" -k a q x
	run_mq 1 mq-publish --attach a="$T/file" -k a q x
	nothing_refused
	for rule in '~mq::attach::*' +expire +persist +exists +srem +unlink; do
		grep -qF -- "$rule" "$T/rules"
	done
	run_mq 0 mq-publish --print-acl q
	refute_output --partial attach
}

@test "acl: what refuses an attachment leaves no key that stays" {
	is rmq || return 0
	head -c 10 /dev/zero >"$T/file"
	may mq-publish --attach a=b q
	redis acl setuser app -expire >/dev/null
	run_mq 77 mq-publish --attach a="$T/file" q x
	for key in $(redis keys 'mq::attach::*'); do
		refute [ "$(redis ttl "$key")" = -1 ]
	done
}

@test "acl: a pause" {
	own_mq mq-publish q 1
	may mq-pause --resume q
	run_mq 0 mq-pause q
	run_mq 0 mq-pause --for 1m q
	run_mq 0 mq-pause --resume q
}

@test "acl: mq-set changes all that was asked for, or nothing" {
	own_mq mq-set -q --create q attempts=3 max-length=9
	may mq-set q
	redis acl setuser app -hdel >/dev/null
	run_mq 77 mq-set q attempts=7 max-length=
	assert_equal "$(own "$BUILD/mq-set" q | grep -o 'attempts[= ]*[0-9]*' | tr -dc 0-9)" 3
}

@test "acl: mq-set" {
	may mq-set --create q
	run_mq 0 mq-set -q --create q attempts=3 max-length=9
	run_mq 0 mq-set q attempts=
	run_mq 0 mq-set q
	nothing_refused
	all_needed "$(there +exists)"
}

@test "acl: a publisher that waits until all is safe" {
	redis config set appendonly yes >/dev/null
	redis config set appendfsync always >/dev/null
	replica_beside
	may mq-publish --durable q
	# Servers before 7.2 would refuse a rule with that.
	[ -z "$(redis command docs waitaof 2>/dev/null)" ] ||
		redis acl setuser app +waitaof >/dev/null
	run_mq 0 mq-publish --durable q 1
	nothing_refused
	for rule in +info +wait '+config|get'; do
		grep -qF -- " $rule" "$T/rules"
	done
	redis config set appendonly no >/dev/null
}

# killed_with_notice: the only attempt of a message of q ends by a crash.
killed_with_notice() {
	script stays <<-'END'
		: >"$T/runs"
		exec sleep 600
	END
	export T
	MQ_URL=$(url_as) start_mq mq-consume -q --attempts 1 --notify ends q -- "$T/stays"
	eventually 10 test -e "$T/runs"
	stop_mq KILL
	redis eval 'for _, k in ipairs(redis.call("KEYS", "*::heartbeat")) do
		redis.call("DEL", k) end' 0 >/dev/null
}

@test "acl: --notify needs the rights for its queue, and is refused before anything" {
	is rmq || skip "the layout has no results"
	own_mq mq-publish q 1 2
	may mq-consume q
	run_mq 77 mq-consume -n 1 --notify ends q -- true
	assert_equal "$(own held q)" "2 0 0 0"
	may mq-consume q ends
	redis acl log reset >/dev/null
	run_mq 0 mq-consume -q --drain --notify ends q -- true
	nothing_refused
	assert_equal "$(own held ends)" "2 0 0 0"
}

@test "acl: a cleaner that may not notify leaves the message where it is" {
	is rmq || skip "the layout has no results"
	no_cluster "the keys of leases are on all nodes"
	own_mq mq-publish q 1
	killed_with_notice
	may mq-clean q
	run_mq 0 mq-clean
	assert_regex "$stderr" 'refused: no permission for the keys'
	assert_equal "$(own held q)" "0 0 1 0"
	may mq-clean q ends
	run_mq 0 mq-clean
	assert_equal "$(own held q) $(own held ends)" "0 0 0 1 1 0 0 0"
}

@test "acl: a consumer" {
	own_mq mq-publish push x
	if is rmq; then
		own_mq mq-publish -p 5 q 1 2
		own_mq mq-publish -g a -k key q 3
		own_mq mq-publish -k other --unique queued q 4
		own_mq mq-publish -g a q 5
		own_mq mq-publish -e 1s q late
	else
		own_mq mq-publish q 1 2 3 4 5
		seq 1500 | own_mq mq-publish -l -d 1h q
	fi
	own_mq mq-publish -d 1s q due
	grave 2
	may mq-consume q push
	# It cleans, retries, pushes, rejects, makes duplicates, and looks on.
	script judge <<-'END'
		case $MQ_PAYLOAD$(cat) in
		1) echo push >&3 ;;
		2) echo dup 0-x-push >&3; echo done >&3 ;;
		3) echo resend 0 >&3 ;;
		*) sleep 2; echo run here >&3; exit 0 ;;
		esac
	END
	run_mq 1 mq-consume -j 3 --drain --attempts 2 --rate-shared 100/s --push push \
		q -- "$T/judge"
	nothing_refused
	# Woken by a message, and paused by one.
	start_mq mq-consume -n 2 --prefetch 5 q -- sh -c 'echo pause 1 >&3; cat'
	eventually 10 own has_consumers
	own_mq mq-publish q 1 2 3
	wait "$pid" || [ $? = 75 ]
	own mq_resume
	own_mq mq-publish q 1
	run_mq 1 mq-consume -n 1 --attempts 1 q -- false
	# Given back at its end.
	own_mq mq-publish q 1 2 3
	start_mq mq-consume --no-clean --prefetch 3 --grace 0 q -- sleep 100
	eventually 10 unacked_are 4
	stop_mq TERM
	run_mq 0 mq-consume -l --drain q push
	# One that no script copies: delayed, then rejected.
	if is rmq; then
		printf %01100000d 0 | own_mq mq-publish push
		run_mq 75 mq-consume -n 1 push -- sh -c 'echo resend 1 >&3'
		run_mq 1 mq-consume -n 1 push -- false
		own_mq mq-publish --attach a="$T/judge" push x
		run_mq 0 mq-consume -n 1 push -- sh -c 'cat "$MQ_ATTACH_DIR/a"'
		eventually 10 no_attachments
	fi
	nothing_refused
	# A duplicate with a key, and a walk by what is too late; one that somebody
	# else has received, and what the pushed ones need to be rejected; messages
	# that nobody lists, and a connection that was lost.  No dead one of a cluster consumed the other queue.
	# No other consumer is idle, and none runs until its next heartbeat.
	if is rmq; then
		all_needed '+client|kill' '+client|list' +hrandfield +lset +type \
			+watch +zremrangebyscore +zscore '+pubsub|numsub' \
			'~rmq::connection::*::queue::{push}::*' \
			"$(there +hexists +hkeys +rename '~rmq::connection::*::queue::\[push]::*')"
	else
		all_needed '+client|kill' '+client|list' +sismember \
			+expire +hscan +zremrangebyscore '+pubsub|numsub' '~rsmq:push-rejected' '~rsmq:push-rejected:Q' '~rsmq:push-rejected:X*' \
			"$(there)"
	fi
}

no_attachments() {
	[ "$(own redis keys 'mq::attach::*')" = "" ]
}

mq_resume() {
	"$BUILD/mq-pause" --resume q 2>/dev/null || true
}

has_consumers() {
	[ -n "$(connections)" ]
}

# settle LINE ARGS...: by the receipt in that line of $T/leased.
settle() {
	run_mq 0 mq-lease "$2" \
		"$(sed -n "$1s/.*\"receipt\":\"\([^\"]*\)\".*/\1/p" "$T/leased")" "${@:3}" q
}

@test "acl: messages by receipt" {
	# A long one is removed in another way.
	own_mq mq-publish q "$(printf %05000d 1)" 2 3 4
	own_mq mq-publish -e 1ms q late
	own_mq mq-publish -d 1ms -p 5 q due
	if is rmq; then
		own_mq mq-publish -p 5 q 6
		own_mq mq-publish -g a -k key q 7
		own_mq mq-publish -g b -k other --unique queued q 8
		own_mq mq-publish -g a q 9
		own_mq mq-publish --from-tick 5 q 10
		own_mq mq-publish --tick 5 q
	fi
	may mq-lease q
	run_mq 0 mq-lease --for 1m -n 20 q
	printf '%s\n' "$output" >"$T/leased"
	settle 1 --extend --for 2m
	settle 1 --ack --text well
	settle 2 --reject --text bad
	settle 3 --extend --for 0
	for ((n = 4; n <= $(wc -l <"$T/leased"); n++)); do
		settle "$n" "$(if ((n % 3 == 0)); then echo --return; elif ((n % 3 == 1)); then echo --ack; else echo --reject; fi)"
	done
	assert_equal "$(own connections)" ""
	# Its reader is gone.
	status=0
	"$BUILD/mq-lease" --for 1m -n 9 q >/dev/full 2>"$T/err" || status=$?
	assert_equal "$status" 74
	is rmq || settle_by_id
	own redis flushdb >/dev/null
	own_mq mq-publish q x
	own_mq mq-consume -n 1 q
	run_mq 1 mq-lease --for 1m --idle 300ms q
	nothing_refused
	all_needed "$(there)"
}

settle_by_id() {
	run_mq 0 mq-lease --ack "$(own "$BUILD/mq-stats" --list ready --jsonl -n 1 q |
		sed 's/^{"id":"\([^"]*\)".*/\1/')" q
	# One that is known by a name, behind many.
	local key=rsmq:q
	[ "${TOPOLOGY-}" != cluster ] || key={rsmq}:q
	own_mq mq-publish -l q < <(seq 600)
	own redis zadd "$key" "$(date +%s%3N)" 'a b' >/dev/null
	own redis hset "$key:Q" 'a b' x >/dev/null
	run_mq 0 mq-lease --ack "$(printf 'a b' | sha1sum | head -c 32)" q
}

@test "acl: who looks" {
	own_mq mq-publish -H 'A: b' q 1 2
	own_mq mq-publish -d 1h q later
	is rsmq || own_mq mq-publish -p 5 q high high high high high
	seq 1500 | own_mq mq-publish -l -d 1h q
	grave 1
	own_mq mq-consume -n 1 --attempts 1 q -- sh -c 'exit 1' || [ $? = 1 ]
	own_mq mq-consume -n 1 q -- sh -c 'exit 75' || [ $? = 75 ]
	may mq-stats q
	run_mq 0 mq-stats q
	run_mq 0 mq-stats --json --connections q
	run_mq 0 mq-stats --prometheus q
	run_mq 0 mq-stats --html q
	run_mq 0 mq-stats --check ready=100 q
	for state in ready delayed unacked rejected; do
		"$BUILD/mq-stats" --list "$state" -n 1 --offset 0 --match . q >/dev/null || [ $? = 1 ]
	done
	id=$("$BUILD/mq-stats" --list rejected --jsonl q | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')
	run_mq 0 mq-stats --id "$id" q
	run_mq 1 mq-stats --id "${id:0:10}$(printf %022d 0)" q
	own start_own mq-consume q -- sleep 30
	eventually 10 "$BUILD/mq-stats" --running q 2>/dev/null
	nothing_refused
	# The names of all queues are for looking at all.
	if is rmq; then
		all_needed "$(there '~rmq::queue::\[q]::*' \
			'~rmq::connection::*::queue::\[q]::*')"
	else
		all_needed +smembers +sscan "$(there)"
	fi
}

start_own() {
	"$BUILD/$@" 3>&- >/dev/null 2>&1 &
}

# Of three sets, one is to expire, one not to, and one is gone.
attached() {
	local key keys n

	echo >"$T/file"

	for n in 1 2 3; do
		"$BUILD/mq-publish" --attach a="$T/file" q "$n"
	done
	mapfile -t keys < <(redis --raw keys 'mq::attach::*::refs')
	redis del "${keys[0]}" >/dev/null
	redis expire "${keys[1]}" 3600 >/dev/null
	key=$(redis --raw hkeys "${keys[2]}")
	redis hdel "${keys[2]}" "$key" >/dev/null
	redis hset "${keys[2]}" "$(printf %032d 1)" 1 >/dev/null
}

@test "acl: a cleaner" {
	if is rmq; then
		own_mq mq-publish -p 5 q 1 2 3
		own_mq mq-publish -g a -k key q 3
		own_mq mq-publish -g a q 5
		own "$BUILD/mq-publish" --wait=1ms -e 1ms q late || true
		own_mq mq-publish -e 1ms -p 7 q late
	else
		own_mq mq-publish -e 1ms q 1 2
	fi
	own_mq mq-publish q 4 4 4
	grave 3
	# One that no script copies.
	if is rmq; then
		printf %01100000d 0 | own_mq mq-publish -d 1ms q
	fi
	own_mq mq-publish -d 1ms q due
	if is rmq; then
		own attached
	fi
	may mq-clean q
	run_mq 0 mq-clean --dry-run
	run_mq 0 mq-clean --attempts 1
	run_mq 0 mq-clean --json
	# The rejected ones of RSMQ are a queue of their own, and none of it.
	if is rmq; then
		nothing_refused
		all_needed "$(there +hkeys +hrandfield)"
	fi
}

@test "acl: who returns messages" {
	own_mq mq-publish q 1 2 3
	is rsmq || own_mq mq-publish -g a -k b -p 3 q 4
	is rsmq || own_mq mq-publish -g a --from-tick 9 q 5
	own_mq mq-publish -d 1h q later
	own_mq mq-consume -n 3 --attempts 1 q -- sh -c 'exit 1' || [ $? = 1 ]
	own_mq mq-publish q 6
	is rsmq || own "$BUILD/mq-publish" --attach a=/etc/passwd q 7
	grave 1
	# One that no script copies.
	if is rmq; then
		printf %01100000d 0 |
			redis -x rpush 'rmq::queue::[q]::rejected' >/dev/null
	fi
	may mq-return --clone q other
	run_mq 0 mq-return --dry-run q
	run_mq 0 mq-return --match 2 q
	run_mq 0 mq-return --clone --from ready q
	run_mq 0 mq-return -n 1 --to other q
	run_mq 0 mq-return q
	run_mq 0 mq-return --match . --from delayed q
	# There they are anybody's again.
	is rsmq || run_mq 0 mq-return --from "unacked:$(own connections | grep grave)" q
	run_mq 1 mq-return q
	nothing_refused
	# Only its messages go there; somebody else at the end of the list; more
	# than 10,000 that stay; one whose end somebody waits for; and a copy that is
	# refused.
	is rsmq || all_needed +lmove +srem +lpos +set '~rmq::connection::*::queue::\[other]::*' '+client|kill' '+client|list' +hexists +hrandfield \
		'~rmq::connection::*::queue::{other}::*' "$(there +del '~rmq::connection::*::queue::\[q]::*')"
}

@test "acl: who purges" {
	own_mq mq-publish q 1 2 3 3
	own_mq mq-publish -d 1h q later later later
	may mq-purge q
	run_mq 0 mq-purge --force -n 1 --delayed q
	redis echo own >/dev/null
	if is rmq; then
		own_mq mq-publish -g a -k b -p 3 --attach "a=$BATS_TEST_FILENAME" q 4
		own_mq mq-publish -g a --from-tick 9 q 5
		own "$BUILD/mq-publish" --wait=1ms q answer || true
		own redis sadd rmq::connections c >/dev/null
		own redis sadd rmq::connection::c::queues q >/dev/null
	fi
	own_mq mq-consume -n 2 --attempts 1 q -- sh -c 'exit 1' || [ $? = 1 ]
	may mq-purge --delete-queue q
	python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' \
		"$BUILD/mq-purge" --ready q <<<n >/dev/null
	run_mq 0 mq-purge --force -n 1 --ready q
	run_mq 0 mq-purge --force --match 3 --ready q
	run_mq 0 mq-purge --force --match . -n 1 --delayed q
	run_mq 1 mq-purge --force --rejected --older-than 1h q
	run_mq 0 mq-purge --force --rejected --older-than 0s q
	is rsmq || own "$BUILD/mq-publish" --attach a=/etc/passwd q x
	run_mq 0 mq-purge --force --all q
	if is rmq; then
		own_mq mq-publish -g z q 7
		own_mq mq-publish -g z --from-tick 20 q 8
		run_mq 0 mq-purge --force --ready --match 7 q
	fi
	own_mq mq-publish q 1 2 3
	run_mq 1 mq-purge --force --ready --match none q
	run_mq 0 mq-purge --force --delete-queue --dry-run q
	run_mq 0 mq-purge --force --delete-queue q
	nothing_refused
	if is rmq; then
		# A long list, somebody else at its end, and a consumer that lives.
		all_needed +lmove +lpos +smembers "$(there +hrandfield +persist +sadd +set)"
	else
		# Of those that are in somebody's hands, and in a long walk.
		all_needed +hget +hkeys +zrank '~rsmq::connection:*' "$(there)"
	fi
}

@test "acl: a name is quoted, and tools name what is missing" {
	is rmq || return 0
	run_mq 0 mq-pause -u redis://host --print-acl 'a*b?c\d e'
	assert_output --partial '~rmq::queue::\[a\*b\?c\\d?e]::* '
	run_mq 0 mq-pause -u redis-cluster://host --print-acl 'a*b?c\d e'
	assert_output --partial '~rmq::queue::{a\*b\?c\\d?e}::* '
	run_mq 0 mq-pause -u "unix://$D/none.sock?db=3" --print-acl q
	assert_output --partial ' +select'
	may mq-publish 'a*b?c\d e' >/dev/null
	run_mq 0 mq-publish 'a*b?c\d e' 1
	run_mq 77 mq-publish 'axb?c\d e' 1
	grep -q 'NOPERM.*; --print-acl prints the rights needed$' <<<"$stderr"
}

@test "acl: what other queues have is left alone by a cleaner" {
	is rmq || return 0
	own_mq mq-publish other 1
	redis sadd rmq::connections c >/dev/null
	redis sadd rmq::connection::c::queues other q >/dev/null
	redis lpush 'rmq::connection::c::queue::[other]::unacked' x >/dev/null
	redis lpush 'rmq::connection::c::queue::[q]::unacked' y >/dev/null
	may mq-clean q
	run_mq 0 mq-clean
	assert_regex "$stderr" '^mq-clean: .* refused: no permission for the keys'
	own held_is q "1 0 0 0"
	own held_is other "1 0 1 0"
}
