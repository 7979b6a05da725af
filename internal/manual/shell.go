package manual

import (
	_ "embed" // for the templates
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/template"
)

// Shells are those that there is completion for.
func Shells() []string { return []string{"bash", "zsh", "fish"} }

var (
	//go:embed completion.bash
	bash string
	//go:embed completion.zsh
	zsh string
	//go:embed completion.fish
	fish string
)

// Complete writes the script that has a shell complete the tool's command line. The shell is one of Shells.
func (t *Tool) Complete(w io.Writer, shell string) error {
	text, ok := map[string]string{"bash": bash, "zsh": zsh, "fish": fish}[shell]
	if !ok {
		return fmt.Errorf("there is no completion for %q: the shells are %s", shell, strings.Join(Shells(), ", "))
	}
	made, err := template.New(shell).Delims("<<", ">>").Funcs(template.FuncMap{
		"join": strings.Join, "words": words, "quote": quote, "brief": brief, "zsh": zshWord,
		"zvalue": zshValue, "function": function,
	}).Parse(text)
	if err != nil {
		return err
	}
	return made.Execute(w, t.view())
}

// A view is what a template sees.
type view struct {
	Name     string
	Names    []string
	Options  []optionView
	Words    []string
	Commands []commandView
}

type commandView struct {
	Name, Help string
	Words      []string
	Options    []optionView
	Values     []string // of its arguments; empty if there are others
	Files      bool     // there are arguments
}

type optionView struct {
	Long                []string
	Short, Value, Help  string
	Values, Ways        []string
	Several, TakesValue bool
}

func (t *Tool) view() view {
	v := view{Name: t.name, Names: t.names(), Words: words(t.options), Options: viewOf(t.options)}
	for _, c := range t.commands {
		one := commandView{Name: c.name, Help: c.help, Words: words(c.options), Options: viewOf(c.options),
			Files: len(c.arguments) > 0}
		for _, a := range c.arguments {
			one.Values = append(one.Values, a.values...)
		}
		v.Commands = append(v.Commands, one)
	}
	return v
}

func viewOf(options []option) (all []optionView) {
	for _, o := range options {
		all = append(all, optionView{o.long, o.short, o.value, o.help, o.values, words([]option{o}),
			o.several, o.value != ""})
	}
	return all
}

// quote is a text in single quotes, as every shell takes it.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

var sentence = regexp.MustCompile(`(?s)^.*?[^.]\.\s`)

// brief is the first sentence of a help text.
func brief(text string) string {
	if first := sentence.FindString(text + " "); first != "" {
		text = first
	}
	return strings.TrimSuffix(strings.TrimSpace(text), ".")
}

// zshWord escapes what has a meaning in the words of zsh's _arguments.
func zshWord(text string) string {
	return strings.NewReplacer(`\`, `\\`, ":", `\:`, "[", `\[`, "]", `\]`).Replace(text)
}

// zshValue is one of a list of values.
func zshValue(text string) string { return strings.ReplaceAll(text, ":", `\:`) }

// function is a name that a function of a shell can have.
func function(name string) string { return strings.ReplaceAll(name, "-", "_") }
