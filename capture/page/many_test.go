package page_test

import (
	"bytes"
	"fmt"
	"testing"

	"golang.org/x/net/html"

	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/capture/page"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/rdmap"
)

// crowd makes a page of n connections, of which one has a finding.
func crowd(n, bad int) *page.Page {
	p := page.New(page.Config{Name: "crowd"})
	for i := range n {
		s := newScript(p, i)
		s.startup(nil)
		f := s.send(forth, rdmap.OpSend, 10+i)
		s.send(back, rdmap.OpSend, 20)
		if i == bad {
			s.finding(decode.Error, forth, f.Offset, "only here")
		}
		s.finish()
	}
	return p
}

// TestCrowdWithoutScripts: a browser without scripts has all connections, however many there are.
func TestCrowdWithoutScripts(t *testing.T) {
	doc, err := html.ParseWithOptions(bytes.NewReader(written(t, crowd(300, 250))), html.ParseOptionEnableScripting(false))
	testrig.Must(t, err)
	byID(t, doc, "c250-f0")
	if n := len(elements(doc, "article")); n != 300 {
		t.Errorf("%d connections", n)
	}
	rows := 0
	for _, n := range elements(doc, "tr") {
		if _, ok := attribute(n, "data-connection"); ok {
			rows++
		}
	}
	if rows != 300 {
		t.Errorf("%d rows in the list", rows)
	}
}

// many opens a page of 300 connections: few of them are elements, and all can be found.
func (w browser) many(t *testing.T) {
	b := w.open(t, crowd(300, 250), "")
	b.want(`document.querySelector("article:not([hidden])").id`, "c250") // the worst
	b.want(`document.querySelectorAll("#c250-f0, #c250 .ladder svg .step").length > 3`, "true")
	const nodes, rows = `document.querySelectorAll("*").length`, `document.querySelectorAll("#connections tr[data-connection]").length`
	b.want(nodes+" < 5000", "true")
	b.want(rows+" < 100", "true")
	b.want(`document.querySelector("#connections tr[data-connection]").dataset.connection`, "250")
	b.eval(`document.getElementById("connections").scrollTop = 1e9`)
	b.frames()
	b.want(`[...document.querySelectorAll("#connections tr[data-connection]")].pop().dataset.connection`, "299")
	b.want(rows+" < 100", "true")
	b.click("#connections a[href='#c298']")
	b.want(`document.querySelector("article:not([hidden])").id`, "c298")
	b.want(`document.querySelector("#connections tr[aria-current=true]").dataset.connection`, "298")

	set := func(id, text string) {
		b.eval(fmt.Sprintf(`((f) => { f.value = %q; f.dispatchEvent(new Event("input")); f.form?.requestSubmit(); })(document.getElementById(%q))`, text, id))
	}
	set("only", "1 error")
	b.want(rows, "1")
	set("only", "")
	b.eval(`location.hash = "#c150"`)
	b.frames()
	b.want(`((row, nav) => row.top >= nav.top && row.bottom <= nav.bottom)(document.querySelector("#connections tr[aria-current=true]").getBoundingClientRect(),
		document.getElementById("connections").getBoundingClientRect())`, "true")
	set("find", "payload 287 ") // in a connection that was no element yet
	b.frames()
	b.want("location.hash", "#c277-p0")
	b.want(selected, "0,0")
}
