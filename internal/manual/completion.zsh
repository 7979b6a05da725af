#compdef <<.Name>>
# Completion of <<.Name>> for zsh, made by: <<.Name>> completion zsh
_<<function .Name>>() {
	local context state state_descr line
	typeset -A opt_args
	local -a commands
	commands=(
<<range .Commands>>		<<quote (printf "%s:%s" .Name (zsh (brief .Help)))>>
<<end>>	)
	_arguments -C \
<<range .Options>><<$o := .>><<range .Ways>>		<<quote (printf "%s[%s]" . (zsh (brief $o.Help)))>> \
<<end>><<end>>		'1: :->command' \
		'*:: :->arguments'
	case $state in
	command)
		_describe -t commands command commands
		;;
	arguments)
		case ${words[1]} in
<<range .Commands>>		<<.Name>>)
			_arguments \
<<range .Options>><<$o := .>><<range .Ways>>				<<if $o.Values>><<if $o.Several>><<quote (printf "*%s=[%s]:%s:_sequence compadd - %s" . (zsh (brief $o.Help)) (zsh $o.Value) (zvalue (join $o.Values " ")))>><<else>><<quote (printf "*%s=[%s]:%s:(%s)" . (zsh (brief $o.Help)) (zsh $o.Value) (zvalue (join $o.Values " ")))>><<end>><<else if $o.TakesValue>><<quote (printf "*%s=[%s]:%s:_files" . (zsh (brief $o.Help)) (zsh $o.Value))>><<else>><<quote (printf "%s[%s]" . (zsh (brief $o.Help)))>><<end>> \
<<end>><<end>>				'*::argument:<<if .Values>>(<<zvalue (join .Values " ")>>)<<else if .Files>>_files<<end>>'
			;;
<<end>>		esac
		;;
	esac
}
compdef _<<function .Name>> <<.Name>>
# Where zsh has found this file in its fpath, the file is the function, and this is its first call.
if [ "$funcstack[1]" = _<<function .Name>> ]; then _<<function .Name>> "$@"; fi
