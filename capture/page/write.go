package page

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/htmlpage"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/rdmap"
)

// Write writes the page. Call it once the capture is at its end.
func (p *Page) Write(w io.Writer) error {
	b := bufio.NewWriterSize(w, 64<<10)
	if err := shared().html.ExecuteTemplate(b, "head", p.header()); err != nil {
		return err
	}
	for i, c := range p.connections {
		if err := p.writeConnection(b, c, i >= firstArticles); err != nil {
			return err
		}
	}
	if err := shared().html.ExecuteTemplate(b, "foot", p.foot()); err != nil {
		return err
	}
	return b.Flush()
}

// header is what the page begins with.
type header struct {
	Name    string
	Top     htmlpage.Top
	Totals  string
	Unshown int
	// First are the connections that are elements from the beginning, and More those that scripts make elements of when they
	// are seen.
	First, More []row
}

// Without scripts everything is there: what is folded is in noscript elements, which are one text for a browser with
// scripts. So a page of many connections has few elements.
const (
	firstRows     = 100 // of the list
	firstArticles = 20
)

// A row is a connection in the list of them.
type row struct {
	Number  string // see [decode.Connection.Label]
	Ends    [2]string
	Dialect string
	Outcome string
	Mode    string
	FPDUs   uint64
	Failed  string // how, if it has
	Cause   string // of that, if it is known
	counts
}

func (p *Page) header() header {
	h := header{Name: p.cfg.Name, Top: htmlpage.NewTop(p.cfg.Name+": iWARP connections", shared().script),
		Totals: p.totals.String(), Unshown: p.unshown}
	var rows []row
	for _, c := range p.connections {
		rows = append(rows, c.row())
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.badness(), a.badness()) })
	n := min(len(rows), firstRows)
	h.First, h.More = rows[:n], rows[n:]
	return h
}

// badness orders connections: the worst has the most.
func (r row) badness() int {
	return slices.Index([]string{"good", "note", "warning", "error"}, r.Worst())
}

func (c *connection) row() row {
	of := c.of
	return row{
		Number: of.Label(), Ends: ends(of), Dialect: dialect(of), Outcome: outcome(of), Mode: mode(of),
		FPDUs: uint64(c.fpdus.Count) + c.fpdus.Omitted, Failed: of.Failed(), Cause: c.cause(),
		counts: counts{
			Errors: of.Findings[decode.Error], Warnings: of.Findings[decode.Warning], Notes: of.Findings[decode.Note],
		},
	}
}

// told are the findings that say no more than how a connection has failed in Full Operation.
var told = map[string]string{"reset": "reset", "terminated": "terminate"}

// cause is what went wrong before a connection failed: its errors, or the first warning. It is empty if nothing is known.
func (c *connection) cause() string {
	own, ok := told[c.of.Failed()]
	if !ok {
		return ""
	}
	if n := c.of.Findings[decode.Error]; n > 0 {
		return wording.Count(n, "error")
	}
	for i := range c.findings {
		if f := &c.findings[i]; f.Severity == decode.Warning && f.Name != own {
			return f.Text
		}
	}
	return ""
}

// counts are those of findings.
type counts struct{ Errors, Warnings, Notes uint64 }

// Verdict is in a word or two what is to be known of the connection first, after its Cause if there is one.
func (r row) Verdict() string {
	switch {
	case r.Cause != "":
		return r.Failed
	case r.Errors > 0:
		return wording.Count(r.Errors, "error")
	case r.Failed != "":
		return r.Failed
	case r.Warnings > 0:
		return wording.Count(r.Warnings, "warning")
	case r.Notes > 0:
		return wording.Count(r.Notes, "note")
	}
	return "good"
}

// Worst names the worst severity, for the style.
func (r row) Worst() string {
	switch {
	case r.Errors > 0:
		return "error"
	case r.Failed != "", r.Warnings > 0:
		return "warning"
	case r.Notes > 0:
		return "note"
	}
	return "good"
}

// article is a connection on the page, without its data.
type article struct {
	row
	Folded   bool
	Summary  [][2]string
	Ladder   *htmlpage.Ladder
	Findings []found
	Remarks  []string
}

// Heading is that of the findings, with how many of them are not there.
func (a article) Heading() string {
	n := uint64(len(a.Findings))
	if n == 0 {
		return "Findings"
	}
	text := wording.Count(n, "finding")
	if all := a.Errors + a.Warnings + a.Notes; all > n {
		text += fmt.Sprintf(", %d more not shown", all-n)
	}
	return text
}

// found is a finding on the page.
type found struct {
	decode.Finding
	Number int
	Sender string // and an arrow
	Time   string
	After  int64 // the connection's first packet, in ns
}

// Last is the stream offset of the last byte of the evidence.
func (f found) Last() uint64 { return f.Evidence.Offset + uint64(len(f.Evidence.Bytes)) - 1 }

func (p *Page) writeConnection(w io.Writer, c *connection, folded bool) error {
	a := article{row: c.row(), Folded: folded, Summary: c.summary, Ladder: c.ladder.draw(c.of), Remarks: c.remarks()}
	worst := slices.Clone(c.findings)
	slices.SortStableFunc(worst, func(a, b decode.Finding) int { return cmp.Compare(b.Severity, a.Severity) })
	for i, f := range worst {
		a.Findings = append(a.Findings, found{Finding: f, Number: i, Sender: sender(c.of, f.Dir), Time: elapsed(c.of, f.Packet),
			After: int64(f.Packet.Time.Sub(c.of.TCP.First.Time))})
	}
	if err := shared().html.ExecuteTemplate(w, "connection", a); err != nil {
		return err
	}
	return writeData(w, fmt.Sprintf("c%s-data", c.of.Label()), c.data())
}

// remarks says what is not shown.
func (c *connection) remarks() (all []string) {
	for _, l := range [...]struct {
		shown   int
		omitted uint64
		what    string
	}{
		{c.fpdus.Count, c.fpdus.Omitted, "FPDUs"}, {c.segments.Count, c.segments.Omitted, "TCP segments"},
		{c.markers.Count, c.markers.Omitted, "markers"}, {len(c.findings), c.omitted, "findings"},
		{c.said, c.unsaid, "lines on what the ULP says"},
		{len(c.spans), c.spanned, "stretches of the streams that are no FPDUs"},
	} {
		if l.omitted > 0 {
			all = append(all, fmt.Sprintf("Showing the first %d of %d %s. A page of this connection alone "+
				"(--filter) has room for more.", l.shown, uint64(l.shown)+l.omitted, l.what))
		}
	}
	return all
}

// data is what the scripts read of a connection.
type data struct {
	Number   string    `json:"number"`
	Session  bool      `json:"session"` // over SCTP
	Ends     [2]string `json:"ends"`
	Start    [2]uint64 `json:"start"`
	End      [2]uint64 `json:"end"` // of the streams
	FPDUs    *fpdus    `json:"fpdus"`
	Segments *segments `json:"segments"`
	Markers  *markers  `json:"markers"`
	Reads    *reads    `json:"reads"`
	Answers  *answers  `json:"answers"`
	Spans    []span    `json:"spans"`
	Closes   []closing `json:"closes"`
	// Last is the time from the first packet to the latest, in ns.
	Last time.Duration `json:"last"`
}

func (c *connection) data() data {
	return data{
		Number: c.of.Label(), Session: c.of.Session != nil, Ends: ends(c.of),
		Start: [2]uint64{c.of.Halves[0].Start, c.of.Halves[1].Start}, End: c.end,
		FPDUs: &c.fpdus, Segments: &c.segments, Markers: &c.markers, Reads: &c.reads, Answers: &c.answers, Spans: c.spans,
		Closes: c.closes, Last: c.last,
	}
}

// writeData writes a block of data. JSON of Go has no "<" in strings, and so nothing in
// it ends the element, or begins a comment.
func writeData(w io.Writer, id string, v any) error {
	if _, err := fmt.Fprintf(w, "<script type=\"application/json\" id=%q>", id); err != nil {
		return err
	}
	if err := json.NewEncoder(w).Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(w, "</script>\n")
	return err
}

// foot is what the page ends with.
type foot struct {
	Opcodes [16]string
	Script  template.JS
}

func (p *Page) foot() foot { return foot{Opcodes: opcodes(), Script: shared().script} }

// opcodes is the names of opcodes.
func opcodes() (names [16]string) {
	for i := range names {
		names[i] = rdmap.Opcode(i).String()
	}
	return names
}

func ends(c *decode.Connection) [2]string {
	return [2]string{c.TCP.Halves[capture.Forward].Addr.String(), c.TCP.Halves[capture.Backward].Addr.String()}
}

func dialect(c *decode.Connection) string {
	if c.Dialect == 0 {
		return "not known"
	}
	return c.Dialect.String()
}

// outcome says what became of a startup.
func outcome(c *decode.Connection) string {
	switch {
	case c.Session != nil:
		return c.Outcome()
	case c.Midstream:
		return fmt.Sprintf("found by the form of FPDUs, confidence: %v", c.Confidence)
	case c.Rejected:
		return "rejected"
	case !c.Agreed:
		return "startup not completed"
	}
	return fmt.Sprintf("agreed, revisions %d and %d", c.Revisions[c.Initiator], c.Revisions[c.Responder()])
}

// mode says what FPDUs have.
func mode(c *decode.Connection) string {
	if s := c.Session; s != nil {
		return fmt.Sprintf("DDP-SSNs, on stream %d of SCTP association %d", s.Stream, s.SCTP.Number)
	}
	if !c.Agreed && !c.Midstream {
		return ""
	}
	s := "CRC off"
	if c.CRC {
		s = "CRC on"
	}
	switch c.Markers {
	case [2]bool{true, true}:
		return s + ", markers both ways"
	case [2]bool{true, false}:
		return s + ", markers " + arrow(capture.Forward)
	case [2]bool{false, true}:
		return s + ", markers " + arrow(capture.Backward)
	}
	return s + ", no markers"
}

// sender names the end that a direction comes from, if that is known, with an arrow.
func sender(c *decode.Connection, d capture.Dir) string {
	if c.Midstream && !c.TCP.OpenerKnown() {
		return arrow(d)
	}
	return [...]string{"client ", "server "}[d&1] + arrow(d)
}

func arrow(d capture.Dir) string { return [...]string{"→", "←"}[d&1] }

// elapsed is the time since the connection's first packet.
func elapsed(c *decode.Connection, p capture.Stamp) string {
	return wording.Seconds(p.Time.Sub(c.TCP.First.Time), 6) + " s"
}
