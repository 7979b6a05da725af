package report

import (
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/htmlpage"
	"github.com/goiwarp/iwarp/internal/wording"
)

//go:embed report.html
var files embed.FS

// page is read for the first report, as most runs of a command write none.
var page = sync.OnceValue(func() *template.Template { return htmlpage.Parse(files, "report.html") })

// WriteHTML writes a page: the result, what failed with its dialogues as ladders, and all checks, folded.
func (d *Document) WriteHTML(w io.Writer) error {
	return page().ExecuteTemplate(w, "report", d.view())
}

// A view is a document as the page shows it.
type view struct {
	Top           htmlpage.Top
	Title         string
	Class, Result string // of its badge
	Totals        string
	About         []Line
	Failed        []*checkView
	Sections      []Section
	Groups        []*groupView
}

func (d *Document) view() *view {
	v := &view{Top: htmlpage.NewTop("iwarp "+d.Tool+": "+d.Title, ""), Title: d.Title, About: d.about()}
	v.sections(d)
	for _, c := range d.checks() {
		v.check(d.viewOf(c))
	}
	for _, g := range v.Groups {
		g.count()
	}
	switch {
	case len(v.Failed) > 0:
		v.Class, v.Result = "error", fmt.Sprintf("%d failed", len(v.Failed))
	case d.Stopped != "":
		v.Class, v.Result = "warning", "not complete"
	default:
		v.Class, v.Result = "good", "nothing failed"
	}
	return v
}

// sections takes those that are a line at most for the totals.
func (v *view) sections(d *Document) {
	var totals []string
	if d.Stopped != "" {
		totals = append(totals, d.stopped())
	}
	for _, s := range d.Sections {
		switch {
		case len(s.Lines)+len(s.Table)+len(s.Rows) > 0:
			v.Sections = append(v.Sections, s)
		case s.Head != "":
			totals = append(totals, s.Head)
		}
	}
	v.Totals = strings.Join(totals, ". ")
}

// check adds a check to its group, and to what failed.
func (v *view) check(c *checkView) {
	if c.Status == Failed {
		v.Failed = append(v.Failed, c)
		c.Anchor = fmt.Sprintf("f%d", len(v.Failed))
	}
	i := slices.IndexFunc(v.Groups, func(g *groupView) bool { return g.Name == c.Group })
	if i < 0 {
		i, v.Groups = len(v.Groups), append(v.Groups, &groupView{Name: c.Group})
	}
	v.Groups[i].Checks = append(v.Groups[i].Checks, c)
}

// about says what was looked at, by what, and when.
func (d *Document) about() (lines []Line) {
	took := d.took()
	for _, l := range []Line{
		{"Peer", d.Peer},
		{"Version", d.Version},
		{"Time", wording.If(d.Began.IsZero(), "", d.Began.UTC().Format("2006-01-02 15:04:05 UTC"))},
		{"Took", wording.If(took == 0, "", took.Round(time.Millisecond).String())},
	} {
		if l.Text != "" {
			lines = append(lines, l)
		}
	}
	return append(lines, d.Notes...)
}

// A groupView is checks of one group.
type groupView struct {
	Name   string
	Counts string // how many came to each verdict
	Checks []*checkView
}

// count sets Counts.
func (g *groupView) count() {
	var verdicts []string
	of := make(map[string]int)
	for _, c := range g.Checks {
		if of[c.Verdict]++; of[c.Verdict] == 1 {
			verdicts = append(verdicts, c.Verdict)
		}
	}
	for i, v := range verdicts {
		verdicts[i] = fmt.Sprintf("%d %s", of[v], v)
	}
	g.Counts = strings.Join(verdicts, ", ")
}

// A checkView is a check as the page shows it.
type checkView struct {
	Check
	Anchor string // of one that failed
	Class  string // of its badge
	Lines  []Line // its details that say something
	Ladder *htmlpage.Ladder
	Bytes  string // the dialogue as text, if it has bytes and the check failed
	Folds  bool   // there is something below its line. What failed is shown elsewhere
}

func (d *Document) viewOf(c Check) *checkView {
	v := &checkView{Check: c}
	for _, l := range c.Details {
		if l.Text != "" {
			v.Lines = append(v.Lines, l)
		}
	}
	if len(c.Dialogue) > 0 {
		v.Ladder = htmlpage.NewLadder([2]string{"iwarp", cmp.Or(d.Peer, "the peer")}, c.steps())
	}
	switch {
	case c.Status == Failed:
		v.Class, v.Bytes = "error", c.bytes()
		return v
	case c.Verdict == "pass":
		v.Class = "good"
	}
	v.Folds = len(c.Dialogue)+len(v.Lines) > 0
	return v
}

// steps are the dialogue for a ladder.
func (c *Check) steps() (steps []htmlpage.Step) {
	for _, s := range c.Dialogue {
		step := htmlpage.Step{Kind: cmp.Or(s.Kind, "rest"), ToLeft: s.Mark == Received || s.Mark == Saw,
			When: fmt.Sprintf("%.3f ms", Milliseconds(s.At)), Text: s.Text}
		if s.Mark == Checked {
			step.Kind, step.Text = "checked", "✓ "+s.Text
		}
		steps = append(steps, step)
	}
	return steps
}

// bytes is the dialogue as text, if it has bytes.
func (c *Check) bytes() string {
	var b strings.Builder
	bytes := 0
	for i := range c.Dialogue {
		fmt.Fprintln(&b, c.Dialogue[i].String())
		bytes += len(c.Dialogue[i].Bytes)
	}
	return wording.If(bytes > 0, b.String(), "")
}
