# Completion of <<.Name>> for fish, made by: <<.Name>> completion fish
complete -c <<.Name>> -f
<<range .Options>>complete -c <<$.Name>><<range .Long>> -l <<.>><<end>><<if .Short>> -s <<.Short>><<end>> -d <<quote (brief .Help)>>
<<end>><<range .Commands>><<$c := .>>complete -c <<$.Name>> -n '__fish_use_subcommand' -a <<.Name>> -d <<quote (brief .Help)>>
<<if .Values>>complete -c <<$.Name>> -n '__fish_seen_subcommand_from <<.Name>>' -a '<<join .Values " ">>'
<<else if .Files>>complete -c <<$.Name>> -n '__fish_seen_subcommand_from <<.Name>>' -F
<<end>><<range .Options>><<$o := .>><<range $i, $long := .Long>>complete -c <<$.Name>> -n '__fish_seen_subcommand_from <<$c.Name>>' -l <<$long>><<if and $o.Short (not $i)>> -s <<$o.Short>><<end>><<if $o.Values>> -x -a '<<if $o.Several>>(__fish_append , <<join $o.Values " ">>)<<else>><<join $o.Values " ">><<end>>'<<else if $o.TakesValue>> -r -F<<end>> -d <<quote (brief $o.Help)>>
<<end>><<end>><<end>>
