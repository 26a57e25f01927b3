# baton.bash - completion for bash: verbs, options, their values, elections and candidates.
#
# What there is, the program says itself (`baton help`, `baton --list-options`), so this can't fall
# behind it. The names of elections come from the configuration and, where the store is a directory,
# from there: nothing here waits for a server.

# __baton_options COMMAND VERB: flag, kind, argument and values of each option, a line each.
__baton_options() {
	"$1" --list-options 2>/dev/null | while read -r flag _ _ kind arg values verbs _; do
		case ,$verbs, in *,"$2",*) echo "$flag $kind $arg $values" ;; esac
	done
}

# __baton_files: the configuration files that would be read.
__baton_files() {
	if [[ -n ${BATON_CONFIG-} ]]; then
		echo "$BATON_CONFIG"
	else
		printf '%s\n' /etc/baton.conf "${XDG_CONFIG_HOME:-$HOME/.config}/baton.conf"
	fi
}

# __baton_store WORDS...: the URL on the command line, or whatever else counts.
__baton_store() {
	local file state=${XDG_STATE_HOME:-$HOME/.local/state}/baton url=${BATON_STORE-}
	if [[ -z $url ]]; then
		while read -r file; do
			[[ ! -r $file ]] || url=$(sed -n '/^\[/q; s/^ *store *= *//p' "$file" |
				tail -n 1)
		done < <(__baton_files)
	fi
	[[ $EUID != 0 || -n ${XDG_STATE_HOME-} ]] || state=/var/lib/baton
	while (($# > 0)); do
		case $1 in
		--store=*) url=${1#*=} ;;
		--store) url=${2-} ;;
		esac
		shift
	done
	echo "${url:-file:$state}"
}

# __baton_elections WORDS...: names that are known here.
__baton_elections() {
	local file store
	while read -r file; do
		[[ ! -r $file ]] || sed -n 's/^ *\[ *\([^]]*[^] ]\) *\]/\1/p' "$file"
	done < <(__baton_files)
	store=$(__baton_store "$@")
	if [[ $store == file:* ]]; then
		store=${store#file:}
		# Names with other letters are written with % or + there.
		(cd "${store%%\?*}/elections" 2>/dev/null && printf '%s\n' *) | grep -v '[*%+]'
	fi
}

# __baton_values COMMAND VERB OPTION WORDS...: what can follow "OPTION="; partial is there already.
__baton_values() {
	local command=$1 verb=$2 option=$3 flag kind arg values word name=
	shift 3
	while read -r flag kind arg values; do
		[[ $flag == "$option" ]] || continue
		case $kind:$arg in
		word:* | yes:*) tr ',' '\n' <<<"${values#-}" ;;
		signal:*) printf '%s\n' TERM INT HUP QUIT USR1 USR2 ALRM KILL ;;
		text:FILE) compgen -f -- "$partial" ;;
		text:URL) compgen -P file: -d -- "${partial#file:}" ;;
		text:COMMAND) compgen -c -- "$partial" ;;
		text:ID)
			# The election is the first word that is no option.
			for word; do
				[[ $word == -* || -n $name ]] || name=$word
			done
			[[ $verb != transfer || -z $name ]] ||
				"$command" candidates --store="$(__baton_store "$@")" "$name" \
					2>/dev/null | sed -n '1d; s/ .*//p'
			;;
		esac
	done < <(__baton_options "$command" "$verb")
}

# __baton_stores COMMAND: the kinds of store, by the first scheme of each.
__baton_stores() { "$1" stores 2>/dev/null | sed -n 's/^\([a-z+]*\):.*/\1/p'; }

# __baton_place COMMAND WORDS...: sets verb, name, pending (an option that waits for its value) and
# offset (of the command of `run`).
__baton_place() {
	local command=$1 i=2 takes
	shift
	verb=$1 name='' pending='' offset=0
	takes=$(__baton_options "$command" "$verb" |
		while read -r flag kind _; do [[ $kind == yes ]] || echo "$flag"; done)
	while ((i < $#)); do
		case ${!i} in
		--)
			offset=$((i + 1))
			break
			;;
		--*=*) ;;
		--*)
			if [[ $'\n'$takes$'\n' == *$'\n'${!i}$'\n'* ]]; then
				((i + 1 < $#)) || pending=${!i}
				i=$((i + 1))
			fi
			;;
		*)
			if [[ -z $name ]]; then
				name=${!i}
			elif [[ $verb == run ]]; then
				offset=$i
				break
			fi
			;;
		esac
		i=$((i + 1))
	done
}

_baton() {
	local words before cur verb name pending offset partial prefix='' replies=() reply command=$1
	# By ourselves: bash splits at "=" and ":", too.
	read -ra words <<<"${COMP_LINE:0:COMP_POINT}"
	[[ ${COMP_LINE:0:COMP_POINT} != *[[:space:]] ]] || words+=('')
	words=("${words[@]:1}")
	cur=${words[-1]} partial=${words[-1]}
	before=("${words[@]:1:${#words[@]}-1}")
	__baton_place "$command" "${words[@]}"

	if ((${#words[@]} == 1)); then
		mapfile -t replies < <("$command" help 2>/dev/null |
			sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p')
		replies+=(help --help --version)
	elif [[ $verb == run && $offset -gt 0 ]]; then
		# The rest is another program's: its own completion, or any command and file.
		local program=${words[offset - 1]}
		if declare -F _command_offset >/dev/null; then
			# Counted as bash has split them.
			while ((offset < COMP_CWORD)) &&
				[[ ${COMP_WORDS[offset]} != "$program" ]]; do
				((offset++))
			done
			_command_offset "$offset"
			return
		elif ((offset == ${#words[@]})); then
			mapfile -t replies < <(compgen -c -- "$cur")
		else
			mapfile -t replies < <(compgen -f -- "$cur")
		fi
	elif [[ -n $pending ]]; then
		mapfile -t replies < <(__baton_values "$command" "$verb" "$pending" "${before[@]}")
	elif [[ $cur == --*=* ]]; then
		prefix=${cur%%=*}= partial=${cur#*=}
		mapfile -t replies < <(__baton_values "$command" "$verb" "${cur%%=*}" "${before[@]}")
	elif [[ $cur == -* ]]; then
		mapfile -t replies < <(__baton_options "$command" "$verb" |
			while read -r flag kind arg _; do
				[[ $kind == yes ]] && echo "$flag" || echo "$flag="
				[[ $kind != yes || $arg == - ]] || echo "--no${flag:1}"
			done)
	elif [[ $verb == help ]]; then
		mapfile -t replies < <("$command" help 2>/dev/null |
			sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p')
	elif [[ -z $name && $verb == schema ]]; then
		mapfile -t replies < <(__baton_stores "$command")
	elif [[ $verb == serve || (-z $name && $verb != stores && $verb != version &&
		$verb != doctor && $verb != simulate) ]]; then
		mapfile -t replies < <(__baton_elections "${before[@]}" | sort -u)
	fi

	# Of these, what begins alike; and of that, what bash takes for the word.
	local cut=${cur%"${cur##*[=:]}"}
	[[ $COMP_WORDBREAKS == *=* ]] || cut=''
	COMPREPLY=()
	for reply in "${replies[@]}"; do
		[[ -n $reply && $reply == "$partial"* ]] || continue
		reply=$prefix$reply
		COMPREPLY+=("${reply#"$cut"}")
	done
	[[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null
	return 0
}

complete -o bashdefault -o default -F _baton baton
