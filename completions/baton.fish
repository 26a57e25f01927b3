# baton.fish - completion for fish: verbs, options, their values, elections and candidates.
#
# What there is, the program says itself (`baton help`, `baton --list-options`), so this can't fall
# behind it. The names of elections come from the configuration and, where the store is a directory,
# from there: nothing here waits for a server.

function __baton_verbs
	baton help 2>/dev/null | string replace -rf '^  ([a-z]+)  +(.*)' '$1\t$2'
end

# The configuration files that would be read.
function __baton_files
	set -l config $HOME/.config
	set -q XDG_CONFIG_HOME; and set config $XDG_CONFIG_HOME
	set -l files /etc/baton.conf $config/baton.conf
	test -n "$BATON_CONFIG"; and set files $BATON_CONFIG
	for file in $files
		test -r $file; and echo $file
	end
end

# The URL on the command line, or whatever else counts.
function __baton_store
	set -l url $BATON_STORE
	if test -z "$url"
		for file in (__baton_files)
			set -l own (sed -n '/^\[/q; s/^ *store *= *//p' $file)
			test -n "$own"; and set url $own[-1]
		end
	end
	set -l words (commandline -opc)
	for i in (seq (count $words))
		string match -q -- '--store=*' $words[$i]
		and set url (string replace -- '--store=' '' $words[$i])
		test $words[$i] = --store; and set url $words[(math $i + 1)]
	end
	if test -z "$url"
		set url file:$HOME/.local/state/baton
		test (id -u) = 0; and set url file:/var/lib/baton
		set -q XDG_STATE_HOME; and set url file:$XDG_STATE_HOME/baton
	end
	echo $url
end

# The election's name and, of run, the command with its arguments; without what is being written.
function __baton_operands
	set -l words (commandline -opc)
	set -l takes (baton --list-options 2>/dev/null | string match -rv '^\S+ \S+ \S+ yes ' |
		string replace -r ' .*' '')
	set -l skip no
	for i in (seq 3 (count $words))
		if test $skip = yes
			set skip no
		else if test "$words[$i]" = --
			string join \n -- $words[(math $i + 1)..-1]
			return
		else if contains -- $words[$i] $takes
			set skip yes
		else if not string match -q -- '-*' $words[$i]
			echo $words[$i]
		end
	end
end

function __baton_elections
	for file in (__baton_files)
		sed -n 's/^ *\[ *\([^]]*[^] ]\) *\]/\1/p' $file
	end
	set -l store (__baton_store)
	if string match -q 'file:*' $store
		set -l folder (string replace -r '^file:([^?]*).*' '$1' $store)
		# Names with other letters are written with % or + there.
		for path in $folder/elections/*/
			set -l name (basename $path)
			string match -qr '[%+]' $name; or echo $name
		end
	end
end

function __baton_candidates
	set -l name (__baton_operands)
	test -n "$name[1]"
	and baton candidates --store=(__baton_store) $name[1] 2>/dev/null |
		sed -n '1d; s/ .*//p'
end

function __baton_urls
	__fish_complete_directories (string replace -r '^.*file:' '' -- (commandline -ct)) |
		string replace -r '^' file:
end

# Where the name of an election belongs; and where the command of run does.
function __baton_wants_election
	set -l words (commandline -opc)
	not __fish_seen_subcommand_from doctor simulate stores schema version help
	and not contains -- -- $words
	and test (count $words) -gt 1
	and begin
		test $words[2] = serve # takes several
		or test (count (__baton_operands)) = 0
	end
end

# The kinds of store, by the first scheme of each; and where one belongs.
function __baton_stores
	baton stores 2>/dev/null | string replace -rf '^([a-z+]+):.*' '$1'
end

function __baton_wants_store
	__fish_seen_subcommand_from schema; and test (count (__baton_operands)) = 0
end

function __baton_wants_command
	set -l words (commandline -opc)
	test "$words[2]" = run; and test (count (__baton_operands)) -gt 0
end

# The rest is another program's: as if it stood there alone.
function __baton_command
	set -l words (__baton_operands)[2..-1] (commandline -ct)
	complete -C (string join ' ' -- (string escape -- $words[1..-2]) $words[-1])
end

complete -c baton -f
complete -c baton -n __fish_use_subcommand -xa '(__baton_verbs)'
complete -c baton -n __fish_use_subcommand -xa help -d 'What there is'
complete -c baton -n '__fish_seen_subcommand_from help' -xa '(__baton_verbs)'
complete -c baton -n __baton_wants_election -xa '(__baton_elections)'
complete -c baton -n __baton_wants_store -xa '(__baton_stores)'
complete -c baton -n __baton_wants_command -xa '(__baton_command)'

baton --list-options 2>/dev/null | while read -l -d ' ' flag variable key kind arg values verbs help
	set -l name (string sub -s 3 -- $flag)
	set -l when "__fish_seen_subcommand_from "(string replace -a , ' ' $verbs)
	switch $kind:$arg:$flag
		case 'yes:-:*'
			complete -c baton -n $when -l $name -f -d $help
		case 'yes:*'
			complete -c baton -n $when -l $name -fa 'yes no' -d $help
			complete -c baton -n $when -l no-$name -f -d "not: $help"
		case 'word:*'
			complete -c baton -n $when -l $name -xa (string replace -a , ' ' $values) -d $help
		case 'signal:*'
			complete -c baton -n $when -l $name -xa 'TERM INT HUP QUIT USR1 USR2 ALRM KILL' -d $help
		case 'text:FILE:*'
			complete -c baton -n $when -l $name -rF -d $help
		case 'text:URL:*'
			complete -c baton -n $when -l $name -xa '(__baton_urls)' -d $help
		case 'text:COMMAND:*'
			complete -c baton -n $when -l $name -xa '(__fish_complete_command)' -d $help
		case text:ID:--to
			complete -c baton -n $when -l $name -xa '(__baton_candidates)' -d $help
		case '*'
			complete -c baton -n $when -l $name -x -d $help
	end
end
