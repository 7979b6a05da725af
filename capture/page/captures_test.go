package page_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/capture/page"
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
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	a := newTally(page.New(page.Config{Name: filepath.Base(path)}))
	totals, err := decode.Run(f, decode.Config{}, a)
	if err != nil {
		t.Fatal(err)
	}
	a.Totals(totals)
	return a
}

func captures(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("../../interop/testdata/captures/*.pcap")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d captures (%v)", len(paths), err)
	}
	return paths
}

// TestCaptures makes pages of real connections, and looks whether all is there.
func TestCaptures(t *testing.T) {
	for _, path := range captures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			a := capturePage(t, path)
			doc := document(t, written(t, a.Page))
			for n, fpdus := range a.fpdus {
				d := dataOf(t, doc, n)
				got := [...]int{d.FPDUs.count, d.Segments.count, d.Markers.count, len(d.Spans)}
				if want := [...]int{fpdus, a.segments[n], a.markers[n], a.spans[n]}; got != want {
					t.Errorf("connection %d: FPDUs, segments, markers, spans are %v, want %v", n, got, want)
				}
				for i := range a.findings[n] {
					byID(t, doc, fmt.Sprintf("c%d-f%d", n, i))
				}
			}
		})
	}
}

// TestBrowserCaptures opens the pages of real connections with findings, and goes to each.
func TestBrowserCaptures(t *testing.T) {
	chrome := newBrowser(t)
	for _, path := range captures(t) {
		a := capturePage(t, path)
		if len(a.findings) == 0 {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			b := chrome.open(t, a.Page, "")
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
