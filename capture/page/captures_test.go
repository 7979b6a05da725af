package page_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/capture/page"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// A tally counts what a page is told.
type tally struct {
	*page.Page

	fpdus, segments, markers, findings, spans map[int]int
}

func newTally(p *page.Page) tally {
	return tally{p, map[int]int{}, map[int]int{}, map[int]int{}, map[int]int{}, map[int]int{}}
}

func (a tally) FPDU(c *decode.Connection, f *decode.FPDU) {
	a.fpdus[c.TCP.Number]++
	a.markers[c.TCP.Number] += len(f.Markers)
	a.Page.FPDU(c, f)
}

func (a tally) Segment(c *decode.Connection, s *decode.Segment) {
	if s.Length > 0 {
		a.segments[c.TCP.Number]++
	}
	a.Page.Segment(c, s)
}

func (a tally) Finding(c *decode.Connection, f *decode.Finding) {
	a.findings[c.TCP.Number]++
	a.Page.Finding(c, f)
}

func (a tally) Startup(c *decode.Connection, s *decode.Startup) {
	a.spans[c.TCP.Number]++
	a.Page.Startup(c, s)
}

func (a tally) Missing(c *decode.Connection, m *decode.Missing) {
	a.spans[c.TCP.Number]++
	a.Page.Missing(c, m)
}

// capturePage returns the page of a capture in the repository.
func capturePage(t *testing.T, path string) tally {
	t.Helper()
	f, err := os.Open(path)
	testrig.Must(t, err)
	defer func() { _ = f.Close() }()
	a := newTally(page.New(page.Config{Name: filepath.Base(path)}))
	totals, err := decode.Run(f, decode.Config{}, a)
	testrig.Must(t, err)
	a.Totals(totals)
	return a
}

// TestCaptures makes pages of real connections, and looks whether all is there.
func TestCaptures(t *testing.T) {
	for _, path := range testrig.Captures(t, testrig.Stored) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			a := capturePage(t, path)
			doc := document(t, written(t, a.Page))
			for n, fpdus := range a.fpdus {
				d := dataOf(t, doc, n)
				got := [...]int{d.FPDUs.count, d.Segments.count, d.Markers.count, len(d.Spans)}
				if want := [...]int{fpdus, a.segments[n], a.markers[n], a.spans[n]}; got != want {
					t.Errorf("connection %d: FPDUs, segments, markers, spans are %v, want %v", n, got, want)
				}
				if got := listed(doc, n); got != fmt.Sprint(fpdus) {
					t.Errorf("connection %d: %d FPDUs, and %s in the list", n, fpdus, got)
				}
				for i := range a.findings[n] {
					byID(t, doc, fmt.Sprintf("c%d-f%d", n, i))
				}
			}
		})
	}
}

// listed returns how many FPDUs a connection has by the list.
func listed(doc *html.Node, number int) string {
	for _, row := range elements(doc, "tr") {
		if v, _ := attribute(row, "data-connection"); v != fmt.Sprint(number) {
			continue
		}
		for _, cell := range elements(row, "td") {
			if class, _ := attribute(cell, "class"); class == "number" {
				return text(cell)
			}
		}
	}
	return "none"
}

// TestSCTP makes the page of a session over SCTP.
func TestSCTP(t *testing.T) {
	a := capturePage(t, testrig.Stored+"sctp/iwarp-udp.pcap")
	html := string(written(t, a.Page))
	for _, want := range []string{
		`<article id="cs0" data-connection="s0"`, "1 SCTP association, 1 DDP session", "enhanced, accepted",
		"DDP-SSNs, on stream 0 of SCTP association 0",
		"sctp: Enhanced Initiate ssn 0", "sctp: Terminate ssn 11", `id="cs0-data">{"number":"s0","session":true`,
	} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q in the page", want)
		}
	}
}

// captures opens the pages of real connections with findings, and goes to each. Without
// IWARP_ALL it opens a quarter of them: TestCaptures looks into all.
func (w browser) captures(t *testing.T) {
	b := w.open(t, small(), "")
	for i, path := range testrig.Captures(t, testrig.Stored) {
		if i%4 != 0 && !testrig.Everything() {
			continue
		}
		a := capturePage(t, path)
		if len(a.findings) == 0 {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			b.show(t, a.Page, "")
			for n, findings := range a.findings {
				for i := range findings {
					b.eval(fmt.Sprintf("location.hash = '#c%d-f%d'", n, i))
					b.frames()
					b.want(`document.querySelector("li.current").id`, fmt.Sprintf("c%d-f%d", n, i))
					b.want(placed, "true")
				}
			}
		})
	}
}

// placed tells whether a place is chosen, be it an FPDU or a step of the ladder.
const placed = `document.querySelector("article:not([hidden]) [aria-selected=true], article:not([hidden]) .step.current") !== null`

// TestVerdict: a connection that was rejected or terminated is not called good, though
// nobody has broken a rule.
func TestVerdict(t *testing.T) {
	for name, want := range map[string]string{
		"iwarp-reject": "rejected", "siw-rping-crc-refused": "rejected",
		"iwarp-terminate": "no common RTR indication: offered write, answered read, then terminated", "siw-rping-crc": "good",
	} {
		doc := document(t, written(t, capturePage(t, testrig.Stored+name+".pcap").Page))
		for _, badge := range elements(byID(t, doc, "connections"), "span") {
			class, _ := attribute(badge, "class")
			if got := text(badge); got != want || (class == "badge good") != (want == "good") {
				t.Errorf("%s: %q in %q, want %q", name, got, class, want)
			}
		}
	}
}

// TestCause: the badge of a connection that failed says what went wrong before.
func TestCause(t *testing.T) {
	for want, severity := range map[string]decode.Severity{
		"NVMe reports capacity exceeded (0x081) of Write, then reset": decode.Warning, "1 error, then reset": decode.Error, "reset": decode.Note,
	} {
		p := page.New(page.Config{Name: "cause"})
		s := newScript(p, 0)
		s.startup(nil)
		s.finding(severity, back, 20, "NVMe reports capacity exceeded (0x081) of Write")
		s.segment(back, capture.RST, 0)
		s.conn.Halves[back].End = capture.End{Reason: capture.EndRST}
		s.finish()
		for _, badge := range elements(byID(t, document(t, written(t, p)), "connections"), "span") {
			if got := text(badge); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
	}
}

// TestLadderGoesOn: a ladder has what a connection ends with, too, and says that there is
// more between.
func TestLadderGoesOn(t *testing.T) {
	got := text(document(t, written(t, capturePage(t, testrig.Stored+"siw-rping-4096.pcap").Page)))
	at := 0
	for _, want := range []string{"start-req", "start-rep", "fpdu 1 ", "and so on", "fpdu 17 ", "fpdu 18 ", "TCP FIN"} {
		i := strings.Index(got[at:], want)
		if i < 0 {
			t.Fatalf("no %q after %d bytes of %s", want, at, got)
		}
		at += i
	}
}
