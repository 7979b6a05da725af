// Package manual makes man pages and shell completion of a command from the definitions by which package kong reads its
// command line.
package manual

import (
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// A Tool is a program with commands.
type Tool struct {
	name, help string
	options    []option // without a command
	commands   []command
}

type command struct {
	name, help, detail string
	synopsis           string
	arguments          []argument
	options            []option
}

type argument struct {
	name, help string
	values     []string // the only ones that it has; empty if it has others
}

// An option is a flag.
type option struct {
	long    []string // without the dashes; the second one turns it off
	short   string   // without the dash; empty if there is none
	value   string   // what stands for its value; empty if it has none
	values  []string // the only ones that it has; empty if it has others
	help    string
	several bool // it has a list of them, with commas between
}

// Of reads the definitions.
func Of(app *kong.Application) *Tool {
	t := &Tool{name: app.Name, help: app.Help, options: optionsOf(app.Flags)}
	for _, n := range app.Children {
		if n.Hidden {
			continue
		}
		c := command{name: n.Name, help: n.Help, detail: n.Detail, synopsis: n.Summary(),
			options: append(optionsOf(n.Flags), t.options...)}
		for _, p := range n.Positional {
			c.arguments = append(c.arguments, argument{p.Summary(), p.Help, valuesOf(p, app)})
		}
		t.commands = append(t.commands, c)
	}
	return t
}

func optionsOf(flags []*kong.Flag) (all []option) {
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		o := option{long: []string{f.Name}, help: f.Help, several: f.IsSlice()}
		if f.Short != 0 {
			o.short = string(f.Short)
		}
		if f.Tag.Negatable != "" {
			o.long = append(o.long, "no-"+f.Name)
		}
		if !f.IsBool() && !f.IsCounter() {
			o.value = strings.Trim(f.FormatPlaceHolder(), `"`)
			o.values = only(f.Value)
		}
		all = append(all, o)
	}
	return all
}

// only are the values that are allowed, if others are not: an enumeration, or those that the type names of an option
// that takes them in more ways, such as in any case.
func only(v *kong.Value) []string {
	if v.Enum != "" {
		return v.EnumSlice()
	}
	t := v.Target.Type()
	if v.IsSlice() {
		t = t.Elem()
	}
	if named, ok := reflect.Zero(t).Interface().(interface{ Completions() []string }); ok {
		return named.Completions()
	}
	return nil
}

// valuesOf are the values that an argument has: with the tag complete:"commands" the names of the commands, of which
// the definition knows nothing while it is made.
func valuesOf(v *kong.Value, app *kong.Application) (all []string) {
	if v.Tag.Get("complete") != "commands" {
		return only(v)
	}
	for _, n := range app.Children {
		if !n.Hidden {
			all = append(all, n.Name)
		}
	}
	return all
}

// words are all ways to write the options.
func words(options []option) (all []string) {
	for _, o := range options {
		for _, long := range o.long {
			all = append(all, "--"+long)
		}
		if o.short != "" {
			all = append(all, "-"+o.short)
		}
	}
	return all
}

// names are those of the commands.
func (t *Tool) names() (all []string) {
	for _, c := range t.commands {
		all = append(all, c.name)
	}
	return all
}

// Commands returns the names of the commands that have a page.
func (t *Tool) Commands() []string { return slices.Clone(t.names()) }
