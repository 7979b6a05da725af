# Completion of <<.Name>> for bash, made by: <<.Name>> completion bash
_<<function .Name>>() {
	local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command='' i
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		<<join .Names "|">>)
			command=${COMP_WORDS[i]}
			break
			;;
		esac
	done
	if [[ $current == = ]]; then
		current=''
	elif [[ $before == = ]]; then
		before=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	local list='' # what is in front of the last comma
	[[ $current != *,* ]] || list=${current%,*},
	COMPREPLY=()
	case "$command $before" in
<<range .Commands>><<$c := .>><<range .Options>><<if .Values>>	<<range $i, $w := .Ways>><<if $i>> | <<end>>'<<$c.Name>> <<$w>>'<<end>>)
		COMPREPLY=($(compgen<<if .Several>> -P "$list"<<end>> -W '<<join .Values " ">>' -- "<<if .Several>>${current#"$list"}<<else>>$current<<end>>"))
		return
		;;
<<else if .TakesValue>>	<<range $i, $w := .Ways>><<if $i>> | <<end>>'<<$c.Name>> <<$w>>'<<end>>)
		return # and have file names completed
		;;
<<end>><<end>><<end>>	esac
	case $command in
	'') COMPREPLY=($(compgen -W '<<join .Names " ">> <<join .Words " ">>' -- "$current")) ;;
<<range .Commands>>	<<.Name>>)
		if [[ $current == -* ]]; then
			COMPREPLY=($(compgen -W '<<join .Words " ">>' -- "$current"))<<if .Values>>
		else
			COMPREPLY=($(compgen -W '<<join .Values " ">>' -- "$current"))<<end>>
		fi
		;;
<<end>>	esac
}
complete -o default -F _<<function .Name>> <<.Name>>
