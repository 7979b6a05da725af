package main

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// mistaken looks for what is wrong with the words of a command line, before kong does: kong names every option that
// is near to a wrong one, or none. It returns nil where it finds nothing, or leaves the rest to kong.
func mistaken(parser *kong.Kong, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if strings.HasPrefix(args[0], "-") {
		return wrongFirst(parser, args[0])
	}
	for _, node := range parser.Model.Children {
		if node.Name == args[0] {
			return (&reading{node: node}).words(args[1:])
		}
	}
	return noCommand(parser, args[0])
}

// noCommand is the error of a name that no command has.
func noCommand(parser *kong.Kong, name string) error {
	return wrongUse("there is no command %q%s; iwarp --help lists all", name, suggest(name, commands(parser)))
}

// wrongUse is usage of what no command has to do with.
func wrongUse(format string, args ...any) error {
	return &ending{fmt.Errorf(format, args...), statusUsage}
}

// wrongFirst judges an option in front of all commands.
func wrongFirst(parser *kong.Kong, word string) error {
	name, _, _ := strings.Cut(word, "=")
	var known []string
	for _, f := range parser.Model.Flags {
		known = append(known, "--"+f.Name)
		if f.Short != 0 {
			known = append(known, "-"+string(f.Short))
		}
	}
	if slices.Contains(known, name) || name == "--" {
		return nil
	}
	if strings.EqualFold(name, "-v") {
		return wrongUse("unknown flag %s: iwarp --version prints the version; -v of a command stands behind its name: iwarp COMMAND -v", name)
	}
	return wrongUse("unknown flag %s%s; the options of a command stand behind its name: iwarp COMMAND %[1]s",
		name, suggest(name, known))
}

// A reading goes through the words of one command.
type reading struct {
	node   *kong.Node
	others []string // arguments that belong to no option
}

func (r *reading) words(rest []string) error {
	for len(rest) > 0 {
		word := rest[0]
		rest = rest[1:]
		switch {
		case word == "--":
			r.others, rest = append(r.others, rest...), nil
		case word == "-" || !strings.HasPrefix(word, "-") || isNegative(word):
			r.others = append(r.others, word)
			if r.passes() {
				return nil // what follows is for others
			}
		default:
			if err := r.option(word); err != nil {
				return err
			}
			if takesNext(r.node, word) && len(rest) > 0 {
				rest = rest[1:]
			}
		}
		if word == "--help" || word == "-h" {
			return nil // which needs no arguments
		}
	}
	return r.count()
}

// passes reports whether the first argument ends the options.
func (r *reading) passes() bool {
	p := r.node.Positional
	return len(p) > 0 && p[0].Passthrough
}

// option judges a word that begins with a dash.
func (r *reading) option(word string) error {
	if name, long := strings.CutPrefix(word, "--"); long {
		name, _, _ = strings.Cut(name, "=")
		if r.long(name) {
			return nil
		}
		return usage("%s: unknown flag --%s%s; iwarp %[1]s --help lists all",
			r.node.Name, name, suggest("--"+name, r.names()))
	}
	for i, short := range word[1:] {
		flag := flagOf(r.node, func(f *kong.Flag) bool { return f.Short == short })
		switch {
		case flag == nil && i == 0:
			return usage("%s: unknown flag -%c%s; iwarp %[1]s --help lists all",
				r.node.Name, short, suggest(word, r.names()))
		case flag == nil:
			return usage("%s: %s: -%c takes no value, and there is no flag -%c; iwarp %[1]s --help lists all",
				r.node.Name, word, word[i], short)
		case hasValue(flag):
			return nil // the rest is its value
		}
	}
	return nil
}

// long reports whether the command has an option of that name, or one that turns it off.
func (r *reading) long(name string) bool {
	return flagOf(r.node, func(f *kong.Flag) bool {
		return f.Name == name || slices.Contains(f.Aliases, name) || f.Tag.Negatable != "" && "no-"+f.Name == name
	}) != nil
}

// names are those of all options that are shown.
func (r *reading) names() (all []string) {
	for _, group := range r.node.AllFlags(true) {
		for _, f := range group {
			all = append(all, "--"+f.Name)
		}
	}
	return all
}

// count compares the arguments with those that the command takes.
func (r *reading) count() error {
	p := r.node.Positional
	least, most := 0, len(p)
	for _, one := range p {
		if one.Required {
			least++
		}
		if one.Target.Kind() == reflect.Slice || one.Passthrough {
			most = len(r.others)
		}
	}
	switch n := len(r.others); {
	case n < least:
		return usage("%s: %s", r.node.Name, r.missing(p[n]))
	case n > most:
		return usage("%s: unexpected argument %s%s", r.node.Name, r.others[most], r.instead())
	}
	return nil
}

// missing says what to name.
func (r *reading) missing(p *kong.Positional) string {
	switch r.node.Name {
	case "cp":
		return "name what to copy: iwarp cp FROM... TO"
	case "completion":
		return "name a shell: iwarp completion bash, zsh or fish"
	}
	return fmt.Sprintf("%s is missing: iwarp %s", placeholder(p), r.node.Summary())
}

// placeholder is what stands for an argument in the synopsis, without its brackets.
func placeholder(p *kong.Positional) string {
	return strings.Trim(p.Summary(), "<>[] .")
}

// instead says how what is an argument too many may have been meant.
func (r *reading) instead() string {
	if r.node.Name == "decode" {
		return ": one capture at a time: join them with mergecap"
	}
	if len(r.node.Positional) > 0 {
		return fmt.Sprintf(": iwarp %s", r.node.Summary())
	}
	for _, way := range []string{"connect", "addr"} {
		if flag := flagOf(r.node, func(f *kong.Flag) bool { return f.Name == way }); flag != nil {
			return fmt.Sprintf(": did you mean --%s %s?", flag.Name, r.others[0])
		}
	}
	return fmt.Sprintf(": iwarp %s takes none; iwarp %[1]s --help tells more", r.node.Name)
}

// isNegative reports whether a word is a negative number: no flag of ours is a digit.
func isNegative(word string) bool { return strings.IndexAny(word[1:], "0123456789.") == 0 }

// suggest names what is nearest to a word, two at most: those that begin with it, or differ by a letter or two.
func suggest(word string, known []string) string {
	return suggestOf(word, len(strings.TrimLeft(word, "-")), known)
}

// suggestOf is suggest for a word of which so many letters tell it from others.
func suggestOf(word string, letters int, known []string) string {
	type near struct {
		name string
		far  int
	}
	var all []near
	word = strings.ToLower(word)
	for _, name := range known {
		far := distance(word, strings.ToLower(name))
		if strings.HasPrefix(strings.ToLower(name), word) && letters > 1 {
			far = min(far, 1)
		}
		if far <= 1 && far < letters || far == 2 && letters > 4 {
			all = append(all, near{name, far})
		}
	}
	slices.SortStableFunc(all, func(a, b near) int { return cmp.Compare(a.far, b.far) })
	switch {
	case len(all) == 0:
		return ""
	case len(all) == 1 || all[0].far < all[1].far:
		return fmt.Sprintf(" (did you mean %q?)", all[0].name)
	}
	return fmt.Sprintf(" (did you mean %q or %q?)", all[0].name, all[1].name)
}

// distance is how many letters have to be put in, left out, replaced or swapped to make one word of another.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			same := 1
			if a[i-1] == b[j-1] {
				same = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+same)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
