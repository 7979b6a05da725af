package main

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// gathered moves the arguments of a command that takes any number of them behind its options, as in cp FILE -f HOST: by
// getopt: kong takes those that stand together, and wonders at the next. Where it has something else to say it gets
// them as they are.
func gathered(parser *kong.Kong, args []string) []string {
	of := takesMany(parser, args)
	if of == nil {
		return args
	}
	var options, others []string
	for rest := args[1:]; len(rest) > 0; {
		n := 1
		switch arg := rest[0]; {
		case arg == "--":
			others = append(others, rest[1:]...)
			n = len(rest)
		case arg == "-" || !strings.HasPrefix(arg, "-"):
			others = append(others, arg)
		default:
			if takesNext(of, arg) {
				n = 2
			}
			if n > len(rest) {
				return args
			}
			options = append(options, rest[:n]...)
		}
		rest = rest[n:]
	}
	return slices.Concat(args[:1], options, []string{"--"}, others)
}

// takesMany returns the command, if it takes any number of arguments and none of them ends its options.
func takesMany(parser *kong.Kong, args []string) *kong.Node {
	for _, node := range parser.Model.Children {
		if n := len(node.Positional); len(args) > 0 && node.Name == args[0] && n > 0 &&
			node.Positional[n-1].IsSlice() && !node.Positional[n-1].Passthrough {
			return node
		}
	}
	return nil
}

// takesNext reports whether the value of an option is the argument after it. Of short ones in one argument only the
// last may have one there.
func takesNext(node *kong.Node, arg string) bool {
	if name, long := strings.CutPrefix(arg, "--"); long {
		flag := flagOf(node, func(f *kong.Flag) bool { return f.Name == name || slices.Contains(f.Aliases, name) })
		return flag != nil && hasValue(flag)
	}
	for i, short := range arg[1:] {
		flag := flagOf(node, func(f *kong.Flag) bool { return f.Short == short })
		if flag == nil || hasValue(flag) {
			return flag != nil && arg[1+i:] == string(short)
		}
	}
	return false
}

func hasValue(f *kong.Flag) bool { return !f.IsBool() && !f.IsCounter() }

// flagOf returns the flag of a command for which is holds, or nil.
func flagOf(node *kong.Node, is func(*kong.Flag) bool) *kong.Flag {
	for _, group := range node.AllFlags(false) {
		if i := slices.IndexFunc(group, is); i >= 0 {
			return group[i]
		}
	}
	return nil
}
