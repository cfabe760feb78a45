# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Bash completion for the tools.  It needs nothing but bash 4; it asks a server
# for the names of queues only if one is set up, and never starts the private
# one.  table.sh prints the options, which are put here when this is made.
#
# As a script, it does the same for other shells: bash mq.bash TOOL [WORD...] prints what
# the last word can be, a line each, behind a tab what it is for.

declare -gA _mq_argument _mq_about _mq_all

# The words up to the cursor into words[], the last one of them also into
# cur: in COMP_WORDS, bash has torn them apart at ':' and '='.
_mq_words() {
	local line=${COMP_LINE-${COMP_WORDS[*]}} word rest i
	line=${line:0:${COMP_POINT:-${#line}}}
	words=()
	for ((i = 0; i <= COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		rest=${line#"${line%%[![:space:]]*}"}
		# The cursor may stand inside the word.
		((i < COMP_CWORD)) || word=${word:0:${#rest}}
		if ((i > 0)) && [[ $rest == "$line" ]]; then
			words[${#words[@]} - 1]+=$word
		else
			words+=("$word")
		fi
		line=${rest#"$word"}
	done
	cur=${words[${#words[@]} - 1]}
}

# Whether the option (with its dashes) takes an argument, which may be the next word.
_mq_takes_argument() {
	[[ -n ${_mq_argument[$tool:$1]-} ]]
}

# Goes through the words before the last one.  Sets option, if the last word
# is its argument; operands[]; url and layout, if one was given; behind, the number of
# words behind "--".
_mq_parse() {
	local i word last=$((${#words[@]} - 1))
	option='' url='' layout='' behind=-1
	operands=()
	for ((i = 1; i < last; i++)); do
		word=${words[i]}
		if ((behind >= 0)); then
			behind=$((behind + 1))
			[[ $tool == mq-consume ]] || operands+=("$word")
			continue
		fi
		option=
		case $word in
		--) behind=0 ;;
		--url=*) url=${word#*=} ;;
		--layout=*) layout=${word#*=} ;;
		--*=*) ;;
		--*) option=$word ;;
		-?*) _mq_cluster "${word#-}" ;;
		*) operands+=("$word") ;;
		esac
		[[ -n $option ]] || continue
		if ! _mq_takes_argument "$option"; then
			option=
		elif ((i + 1 < last)); then
			i=$((i + 1))
			case $option in
			-u | --url) url=${words[i]} ;;
			-L | --layout) layout=${words[i]} ;;
			esac
			option=
		fi
	done
}

# Short options in one word.  The argument of one may follow in it.
_mq_cluster() {
	local letters=$1
	while [[ -n $letters ]]; do
		option=-${letters:0:1}
		letters=${letters:1}
		if _mq_takes_argument "$option"; then
			[[ -n $letters ]] || return
			[[ $option != -u ]] || url=$letters
			[[ $option != -L ]] || layout=$letters
			break
		fi
	done
	option=
}

# Whether the private server in a directory listens.  Its socket may be a left
# over one, and to ask through a tool would start the server.
_mq_private_listens() {
	local dir=$1 sockets
	if [[ -z $dir && ${XDG_STATE_HOME-} == /* ]]; then
		dir=$XDG_STATE_HOME/mq
	elif [[ -z $dir ]]; then
		dir=${HOME-}/.local/state/mq
	fi
	while [[ $dir == */ && $dir != / ]]; do
		dir=${dir%/}
	done
	[[ -S $dir/redis.sock && -r /proc/net/unix ]] || return 1
	[[ $dir == /* ]] || dir=$(cd -- "$dir" && pwd -P) || return 1
	# Not line by line: the table changes while it is read.
	sockets=$(</proc/net/unix)$'\n'
	[[ $sockets == *" $dir/redis.sock"$'\n'* ]]
}

# Whether there is a server to ask.  The same order as in mq(7).
_mq_server() {
	local where=${url:-${MQ_URL-}} file line config=${XDG_CONFIG_HOME-}
	[[ $config == /* ]] || config=${HOME-}/.config
	for file in "$config/mq/env" /etc/mq/env; do
		[[ -z $where && -r $file ]] || continue
		while IFS= read -r line || [[ -n $line ]]; do
			line=${line#"${line%%[![:blank:]]*}"}
			[[ $line =~ ^(export[[:blank:]]+)?MQ_URL[[:blank:]]*=[[:blank:]]*(.*) ]] || continue
			where=${BASH_REMATCH[2]%%[[:blank:]]#*}
			where=${where%"${where##*[![:space:]]}"}
			where=${where#[\'\"]}
			where=${where%[\'\"]}
		done <"$file"
	done
	: "${where:=private:}"
	where=${where%%\?*}
	[[ $where != private:* ]] || _mq_private_listens "${where#private:}"
}

# The names of the queues, one a line: from the table, as that is what takes
# the least time.
_mq_queues() {
	local line name='' rows=0
	local row='^(.*[^ ])( +[0-9]+){5} +([0-9]+[smhd]|[-?])( +([0-9.]+|-)){2}( +(paused|all queues paused|[0-9]+ (dead|on) ).*)?$'
	{
		while IFS= read -r line; do
			[[ $line =~ $row ]] || continue
			# A backslash: a name that is not shown as it is.
			((rows == 0)) || [[ $name == *\\* ]] || printf '%s\n' "$name"
			name=${BASH_REMATCH[1]}
			rows=$((rows + 1))
		done
		# The last row of several is the total.
		((rows != 1)) || [[ $name == *\\* ]] || printf '%s\n' "$name"
	} < <(_mq_ask)
}

# Adds the lines of stdin that begin with cur.
_mq_add_lines() {
	local line plain=$cur quote=1
	case $cur in
	[\'\"]*) plain=${cur:1} quote= ;;
	*\\*) plain=${cur//\\/} ;;
	esac
	while IFS= read -r line; do
		[[ $line == "$plain"* ]] || continue
		[[ -z $quote || -n ${unquoted-} ]] || printf -v line %q "$line"
		COMPREPLY+=("$line")
	done
}

_mq_add_words() {
	local word IFS=$' \t\n'
	while IFS= read -r word; do
		COMPREPLY+=("$word")
	done < <(compgen -W "$*" -- "$cur")
}

# -f, -d or -c: files, directories or commands.
_mq_add_files() {
	local file
	[[ $1 == -c ]] || compopt -o filenames 2>/dev/null
	while IFS= read -r file; do
		COMPREPLY+=("$file")
	done < <(compgen "$1" -- "$cur" | sort -u)
}

_mq_nospace() {
	compopt -o nospace 2>/dev/null
}

_mq_add_argument() {
	local word
	case $1 in
	-u | --url)
		_mq_nospace
		if [[ $cur == unix:///* ]]; then
			while IFS= read -r word; do
				[[ ! -d $word ]] || word=$word/
				COMPREPLY+=("unix://$word")
			done < <(compgen -f -- "${cur#unix://}")
		else
			_mq_add_words redis:// rediss:// unix:/// private:
		fi
		;;
	-L | --layout) _mq_add_words rmq rsmq ;;
	-d | --delay | -e | --expires | --vt | --idle | --timeout | --batch-wait | --grace | --interval | --for | --since | --older-than)
		# A number has been typed: which unit?
		[[ ! $cur =~ ^[0-9.]+$ ]] ||
			_mq_add_words "$cur"ms "$cur"s "$cur"m "$cur"h "$cur"d
		;;
	--unique)
		_mq_add_words queued "done"
		[[ ! $cur =~ ^[0-9.]+$ ]] ||
			_mq_add_words "$cur"ms "$cur"s "$cur"m "$cur"h "$cur"d
		;;
	-P | --param)
		_mq_nospace
		_mq_add_words 1= 2= 3= 4=
		;;
	--id) _mq_add_lines < <(_mq_ids) ;;
	--push | --notify | --to) _mq_add_lines < <(_mq_queues) ;;
	--help) _mq_add_words all ;;
	--sort) _mq_add_words name ready delayed unacked rejected consumers age in out ;;
	--list) _mq_add_words ready delayed unacked rejected "done" ended ;;
	--backoff) _mq_add_words 1s..10m ;;
	--retry-on) _mq_add_words err ;;
	--output) [[ $tool == mq-stats ]] || _mq_add_words live lines runs ;;
	--result) [[ $tool == mq-stats ]] || _mq_add_words stdout stdout:1M ;;
	--output-keep) _mq_add_words 64K 1M 64K:7d ;;
	--check)
		_mq_nospace
		word=${cur##*,}
		[[ $word == *=* ]] || _mq_add_words "${cur%"$word"}"{ready,delayed,unacked,rejected,age,consumers,done-within,spool}=
		;;
	--watch)
		[[ ! $cur =~ ^[0-9.]+$ ]] ||
			_mq_add_words "$cur"ms "$cur"s "$cur"m "$cur"h "$cur"d
		;;
	-j | --slots) _mq_add_words "$(nproc 2>/dev/null)" ;;
	--log-dir | --work-dir) _mq_add_files -d ;;
	--joblog) _mq_add_files -f ;;
	--from)
		# The argument of the last one follows.
		_mq_add_words rejected ready delayed unacked:
		[[ ${COMPREPLY[*]} != unacked: ]] || _mq_nospace
		;;
	esac
}

# Asks the server by mq-stats, as the tool would be asked.
_mq_ask() {
	local limit=()
	_mq_server || return
	! type -P timeout >/dev/null || limit=(timeout 2)
	"${limit[@]}" "$tool_path" ${url:+-u "$url"} ${layout:+-L "$layout"} "$@" \
		2>/dev/null </dev/null
}

# The ids of the messages that run, which are named by --running; or of the newest ones of
# the queue that was named, in the state that was.
_mq_ids() {
	local id rest word state=rejected
	for word in "${words[@]}"; do
		case $word in
		--ready | ready | --delayed | delayed | --running | unacked | "done" | ended) state=${word#--} ;;
		esac
	done
	if [[ $state == running ]]; then
		rest=$(_mq_ask --running --json -- "${operands[@]//\\/}")
		while [[ $rest =~ \"id\":\"([^\"]*)\" ]]; do
			printf '%s\n' "${BASH_REMATCH[1]}"
			rest=${rest#*"${BASH_REMATCH[0]}"}
		done
		return
	fi
	((${#operands[@]} > 0)) || return
	while read -r id rest; do
		[[ ! $id =~ ^[A-Za-z0-9]{31,}$ ]] || printf '%s\n' "$id"
	done < <(_mq_ask --list "$state" --newest -n 50 -- "${operands[0]//\\/}")
}

_mq_add_queues() {
	local name taken
	case $tool in
	mq-clean) return ;;
	mq-set) ((${#operands[@]} == 0)) || return ;;
	# Behind its queue, mq-publish takes payloads; these take only one.
	mq-publish | mq-lease | mq-return | mq-purge) ((${#operands[@]} == 0)) || return ;;
	esac
	while IFS= read -r name; do
		for taken in "${operands[@]}"; do
			[[ $name != "${taken//\\/}" ]] || continue 2
		done
		printf '%s\n' "$name"
	done < <(_mq_queues)
}

# The command of mq-consume and its arguments.
_mq_add_command() {
	if ((behind == 0)) && [[ $cur != */* ]]; then
		_mq_add_files -c
	else
		_mq_add_files -f
	fi
}

# What bash replaces is only what follows the last ':' or '='.
_mq_cut_replies() {
	local breaks='' before i
	[[ ${COMP_WORDBREAKS-} != *:* ]] || breaks=:
	[[ ${COMP_WORDBREAKS-} != *=* ]] || breaks+='='
	[[ -n $breaks && $1 == *["$breaks"]* ]] || return
	before=${1%"${1##*["$breaks"]}"}
	for i in "${!COMPREPLY[@]}"; do
		COMPREPLY[i]=${COMPREPLY[i]#"$before"}
	done
}

_mq() {
	local tool=${1##*/} tool_path words cur option url behind operands
	local whole prefix='' i
	COMPREPLY=()
	_mq_words
	_mq_parse
	# The mq-stats that stands beside the tool, if a path was typed.
	tool_path=mq-stats
	[[ $1 != */* ]] || tool_path=${1%/*}/mq-stats
	whole=$cur
	if [[ $behind == -1 && -z $option && $cur == --*=* ]]; then
		option=${cur%%=*}
		prefix=$option=
		cur=${cur#*=}
	fi
	if [[ -n $option ]]; then
		_mq_add_argument "$option"
	elif ((behind >= 0)) && [[ $tool == mq-consume ]]; then
		_mq_add_command
	elif ((behind < 0)) && [[ $cur == -* ]]; then
		_mq_add_words "${_mq_all[$tool]}"
	elif [[ $tool == mq-set && ${#operands[@]} -gt 0 ]]; then
		_mq_nospace
		[[ $cur == *=* ]] || _mq_add_words {attempts,backoff,timeout,retry-on,rate-shared,slots,slots-shared,push,notify,keep,max-length,group-slots,keep-rejected,vt,delay,maxsize}=
	else
		_mq_add_lines < <(_mq_add_queues)
	fi
	for i in "${!COMPREPLY[@]}"; do
		COMPREPLY[i]=$prefix${COMPREPLY[i]}
	done
	_mq_cut_replies "$whole"
}

# For shells that quote what they insert themselves, and tear no words apart.
_mq_print() {
	local COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*"
	local COMP_POINT=${#COMP_LINE} COMP_WORDBREAKS='' COMPREPLY unquoted=1 line tool=${1##*/}
	_mq "$1" "${@: -1}" "${@: -2:1}"
	for line in "${COMPREPLY[@]}"; do
		printf '%s\t%s\n' "$line" "${_mq_about[$tool:$line]-}"
	done
}

# Called at the end, behind the table.
_mq_begin() {
	if [[ $0 == "${BASH_SOURCE[1]}" ]]; then
		_mq_print "$@"
	else
		complete -F _mq "${!_mq_all[@]}"
	fi
}
