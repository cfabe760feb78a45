# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Steps on the server by themselves, each with its keys and arguments.  Load it behind
# common.
#
#   step SCRIPT "KEY..." "ARG..."   its reply; $AS is the user, if not the default one
#   has LIST ELEMENT...             a list has these, from its left end
#   message HEADERS                 a message, as an argument of a step
#   timed CHARACTER ELEMENT         a member of delayed or priority
#
# $keys are those of queue q, of which each begins with $q; $u is what connection
# c-111111 holds of it.

q='rmq::queue::[q]::'
keys="${q}ready ${q}priority ${q}delayed ${q}locks ${q}clock ${q}result::"
u="rmq::connection::c-111111::queue::[q]::unacked"

teardown() {
	redis config set maxmemory 0 >/dev/null
	redis acl deluser weak >/dev/null
	common_teardown
}

# step SCRIPT "KEY..." "ARG...": its reply in one line; arguments are quoted as in
# redis-cli.  A script of both layouts is /NAME, one of RSMQ is rsmq/NAME.
step() {
	local path=rmq/lua/$1 sha=$D/${1//\//-} keys_of reply
	case $1 in
	/*) path=lua$1 ;;
	rsmq/*) path=rsmq/lua/${1#rsmq/} ;;
	esac
	[ -e "$sha" ] || redis script load "$(sh "$root/common/queue/embed.sh" -t \
		"$root/common/queue/$path.lua")" >"$sha"
	read -ra keys_of <<<"$2"
	reply=$(redis ${AS:+--no-auth-warning --user "$AS" --pass x} <<<"evalsha $(<"$sha") ${#keys_of[@]} $2 $3" | tr '\0\n' '. ')
	# What Redis 6.2 has around the error of a command.
	[[ $reply != "ERR Error running script "* ]] || reply=${reply#*@user_script:*: }
	[[ $reply != *"can't run this command"* ]] || reply="NOPERM $reply"
	printf '%s' "${reply%"${reply##*[! ]}"}"
}

has() {
	assert_equal "$(redis lrange "$1" 0 -1 | xargs)" "${*:2}"
}

message() {
	printf '"\\xff\\x00\\xbe\\xbe\\x4a{%s}\\n"' "${1//\"/\\\"}"
}

# timed CHARACTER ELEMENT: a member of delayed, so that its 32 bytes are 31 of these and x.
timed() {
	printf "%31sx%s" '' "$2" | tr ' ' "$1"
}
