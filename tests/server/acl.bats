# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# layouts: rmq rsmq
# What --print-acl prints as rules, and what becomes of what they refuse.  That they are
# enough for each option, and none of them too much, is in rights.bats.

load ../helpers/server

: "${LAYOUT:=rmq}"

setup() {
	load "../helpers/layout-$LAYOUT"
	export MQ_LAYOUT=$LAYOUT
	common_setup
	redis acl log reset >/dev/null
	redis acl deluser app >/dev/null
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
	export MQ_URL=$(url_as app:pw)
}

# own COMMAND...: not by the user.
own() {
	MQ_URL=$(url_as) "$@"
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

is() {
	[ "$LAYOUT" = "$1" ]
}

# The commands whose rights scripts ask for, by themselves or by the words of a probe.
asked_for() {
	local queue=$root/common/queue

	find "$queue" -name '*.lua' -exec cat {} + | tr '\n' ' ' |
		grep -o 'need([^()]*)' | grep -o "'[A-Z]\+'" | tr -d "'"
	find "$queue" -name '*.lua' -exec sed -n '/^-- NEEDS/{:a;s/^--[ A-Z]*/&/p;n;/^--      [A-Z]/ba}' {} + |
		sed 's/^-- *\(NEEDS\)\{0,1\}//' | xargs -n 1
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
	[[ ${commands[*]} == *PEXPIRE*PUBLISH*SCARD*ZSCORE* ]]
	run with_rights '
		local server, asked = redis
		local redis = { acl_check_cmd = function(...) asked = { ... } end }' '
		local wrong = {}
		for i = 1, #ARGV do
			pcall(need, "key", ARGV[i])
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

@test "acl: a server that cannot tell of rights refuses before the first message moves" {
	is rmq || return 0
	local right keys=(ready priority delayed locks clock result::)
	keys=("${keys[@]/#/rmq::queue::[q]::}")
	"$BUILD/mq-publish" -q -g g q x
	run_mq 1 mq-consume -n 1 q -- false
	for right in hget set; do
		redis acl setuser six reset on nopass '~*' '&*' +@all "-$right" >/dev/null
		run redis --user six --pass x eval "
			local ARGV = { 'rejected', 'move', 1000, 1048576 }
			$(sh "$root/common/queue/embed.sh" -t "$root/common/queue/rmq/lua/move.lua" |
			sed 's/redis.acl_check_cmd/nil/')" 14 "${keys[@]}" "${keys[@]}" rmq::queues \
			'rmq::queue::[q]::rejected'
		assert_output --regexp "ACL failure in script|run this command"
		assert_equal "$(held q)" "0 0 0 1"
	done
}

@test "acl: users that begin with all channels, as those of Redis 6.2 do" {
	redis config set acl-pubsub-default allchannels >/dev/null
	for tool in publish consume lease stats clean return purge pause; do
		redis acl deluser fresh >/dev/null
		read -ra rules < <("$BUILD/mq-$tool" --print-acl)
		assert_equal "$(redis acl setuser fresh on '>pw' "${rules[@]}")" OK
	done
	# Those of several tools.
	redis acl deluser fresh >/dev/null
	read -ra rules < <(for tool in consume publish stats; do
		"$BUILD/mq-$tool" --print-acl a
	done | xargs -d '\n')
	assert_equal "$(redis acl setuser fresh on '>pw' "${rules[@]}")" OK
	run redis --raw acl getuser fresh
	# That server leaves out the sign.
	assert_output --regexp $'[&\n]__redis__:invalidate'
	redis config set acl-pubsub-default resetchannels >/dev/null
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

@test "acl: a follower whose consumer may not push it is rejected, and stops nothing else" {
	is rmq || return 0
	run_mq 0 mq-publish -l --batch b q </dev/null
	run_mq 0 mq-publish --after b --to secret q follower
	run_mq 0 mq-publish q other
	may mq-consume q
	run_mq 1 mq-consume --drain q -- true
	own_mq mq-publish --after b --to secret q follower
	may mq-lease --for 1m q
	run_mq 1 mq-lease --for 1m q
	export MQ_URL=$(url_as)
	assert_equal "$(held q) $(held secret)" "0 0 0 2 0 0 0 0"
	run_mq 0 mq-stats --reasons q
	assert_output --partial "push: secret: "
}

@test "acl: a user whose databases are limited, as on Valkey 9.1" {
	[[ $(redis acl getuser default) == *databases* ]] || skip "this server has no such rules"
	own_mq mq-publish q x
	may mq-consume q
	redis acl setuser app resetdbs db=1 >/dev/null
	run_mq 77 mq-consume --drain q
	assert_regex "$stderr" ": NOPERM No permissions to access database; its user needs the rule db=N$"
	redis acl setuser app resetdbs db=0 >/dev/null
	run_mq 0 mq-consume --drain q
	assert_output x
}

@test "acl: mq-set changes all that was asked for, or nothing" {
	own_mq mq-set -q --create q attempts=3 max-length=9
	may mq-set q
	redis acl setuser app -hdel >/dev/null
	run_mq 77 mq-set q attempts=7 max-length=
	assert_equal "$(own "$BUILD/mq-set" q | grep -o 'attempts[= ]*[0-9]*' | tr -dc 0-9)" 3
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

# as_app COMMAND: NOPERM, if it is refused.
as_app() {
	# shellcheck disable=SC2086 # words
	redis --user app --pass pw --no-auth-warning $1 2>&1 | grep -o NOPERM || true
}

@test "acl: what a user who may consume can do beside its work is on the page, and no more" {
	is rmq || return 0
	no_cluster "one server has all keys"
	may mq-consume q
	while IFS='|' read -r command refused; do
		assert_equal "$command $(as_app "$command")" "$command $refused"
	done <<-'END'
	SCAN 0|
	GET rmq::connection::x::running|
	HGETALL rmq::connection::x::info|
	DEL rmq::queues|
	DEL rmq::connections|
	DEL rmq::connection::x::heartbeat|
	SET rmq::connection::x::heartbeat 1|
	SET rmq::paused 0|
	GET mq::attach::{x}::0|
	SET mq::attach::{x}::0 x|
	DEL mq::attach::{x}::0|
	CLIENT KILL ID 1000000|
	LRANGE rmq::queue::[other]::ready 0 -1|NOPERM
	LRANGE rmq::connection::x::queue::[other]::unacked 0 -1|NOPERM
	DEL rmq::queue::[other]::ready|NOPERM
	GET something|NOPERM
	DEL something|NOPERM
	CONFIG GET requirepass|NOPERM
	FLUSHALL|NOPERM
	END
}
