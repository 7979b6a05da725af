package manual

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goiwarp/iwarp/internal/wording"
)

// columns is the width of the source, before what is escaped.
const columns = 60

// Page writes the man page of a command, or with an empty name that of the tool, of which it is a part: section 1, in
// the macros of man(7).
func (t *Tool) Page(w io.Writer, name string, e Edition) error {
	p := &page{Edition: e}
	if name == "" {
		p.tool(t)
	} else {
		i := slices.IndexFunc(t.commands, func(c command) bool { return c.name == name })
		if i < 0 {
			return fmt.Errorf("there is no command %q; iwarp --help lists all", name)
		}
		p.command(t, &t.commands[i])
	}
	p.examples(e.Examples[name])
	p.section(e.Heading)
	p.text(e.After)
	p.also(t, name)
	_, err := io.WriteString(w, p.b.String())
	return err
}

// An Edition is what pages have in common.
type Edition struct {
	Version, Date  string              // of the tool; the date is year-month-day, or empty
	Heading, After string              // what each page has to say at its end, such as of exit statuses
	Examples       map[string][]string // command lines of each command, by its name
}

// A page is one that is being written.
type page struct {
	Edition
	b strings.Builder
}

func (p *page) line(format string, args ...any) { fmt.Fprintf(&p.b, format+"\n", args...) }

func (p *page) section(name string) { p.line(".SH %s", roff(strings.ToUpper(name))) }

func (p *page) head(t *Tool, title string) {
	p.line(`.TH %s 1 "%s" "%s %s" "%s"`, roff(strings.ToUpper(title)), p.Date, roff(t.name),
		roff(p.Version), roff(t.name))
}

func (p *page) tool(t *Tool) {
	p.head(t, t.name)
	p.section("name")
	p.line(`%s \- %s`, roff(t.name), roff(lowered(brief(t.help))))
	p.section("synopsis")
	p.line(`\fB%s\fR \fIcommand\fR [options]`, roff(t.name))
	p.section("commands")
	for _, c := range t.commands {
		p.line(".TP\n\\fB%s\\-%s\\fR(1)", roff(t.name), roff(c.name))
		p.text(c.help)
	}
	p.options(t.options)
}

func (p *page) command(t *Tool, c *command) {
	p.head(t, t.name+"-"+c.name)
	p.section("name")
	p.line(`%s\-%s \- %s`, roff(t.name), roff(c.name), roff(lowered(brief(c.help))))
	p.section("synopsis")
	p.line(`\fB%s\fR %s`, roff(t.name), roff(c.synopsis))
	p.section("description")
	p.text(c.help)
	if c.detail != "" {
		p.line(".PP")
		p.text(c.detail)
	}
	if len(c.arguments) > 0 {
		p.section("arguments")
	}
	for _, a := range c.arguments {
		p.line(".TP\n\\fI%s\\fR", roff(a.name))
		p.text(a.help)
	}
	p.options(c.options)
}

func (p *page) examples(lines []string) {
	if len(lines) == 0 {
		return
	}
	p.section("examples")
	p.line(".nf")
	for _, line := range lines {
		p.line("%s", roff(line))
	}
	p.line(".fi")
}

func (p *page) options(options []option) {
	p.section("options")
	for _, o := range options {
		var ways []string
		if o.short != "" {
			ways = append(ways, `\fB`+roff("-"+o.short)+`\fR`)
		}
		for _, long := range o.long {
			ways = append(ways, `\fB`+roff("--"+long)+`\fR`)
		}
		value := ""
		if o.value != "" {
			value = `=\fI` + roff(o.value) + `\fR`
		}
		p.line(".TP\n%s%s", strings.Join(ways, ", "), value)
		p.text(o.help)
	}
}

// text writes paragraphs, which empty lines divide. One whose lines are indented is a table, and keeps its lines.
func (p *page) text(text string) {
	for i, paragraph := range strings.Split(strings.TrimRight(text, " \n"), "\n\n") {
		if i > 0 {
			p.line(".PP")
		}
		if strings.HasPrefix(paragraph, " ") {
			p.table(paragraph)
			continue
		}
		for line := range wording.Lines(strings.Join(strings.Fields(paragraph), " "), columns) {
			p.line("%s", roff(line))
		}
	}
}

func (p *page) table(text string) {
	p.line(".nf")
	for line := range strings.Lines(text) {
		p.line("%s", roff(strings.TrimSuffix(line, "\n")))
	}
	p.line(".fi")
}

// also names the other pages.
func (p *page) also(t *Tool, name string) {
	var others []string
	if name != "" {
		others = append(others, fmt.Sprintf(`\fB%s\fR(1)`, roff(t.name)))
	}
	for _, c := range t.commands {
		if c.name != name {
			others = append(others, fmt.Sprintf(`\fB%s\-%s\fR(1)`, roff(t.name), roff(c.name)))
		}
	}
	p.section("see also")
	p.line("%s", strings.Join(others, ",\n"))
}

// roff escapes what has a meaning to roff. Dashes are those of options, which can be copied.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}

// lowered is a sentence as a part of one.
func lowered(text string) string {
	if len(text) > 1 && text[1] >= 'a' && text[1] <= 'z' {
		return strings.ToLower(text[:1]) + text[1:]
	}
	return text
}
