package page_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/capture/page"
	"github.com/goiwarp/iwarp/rdmap"
)

// timed makes a connection of a page in which a Read of 3 ms is under way beside Writes, and one of 1 ms after it.
func timed(p *page.Page) {
	s := newScript(p, 6)
	s.startup(nil)
	slow := s.read(0)
	for range 100 {
		s.send(forth, rdmap.OpWrite, 1400)
	}
	s.answer(slow, 3*time.Millisecond)
	s.packet += 1000
	s.answer(s.read(1), time.Millisecond)
	s.finding(decode.Warning, forth, s.ends[forth]-10, "late")
	s.finish()
}

// read sends a Read Request, which is told from others by where its data is wanted.
func (s *script) read(sink uint64) *decode.FPDU {
	f := s.fpdu(forth, rdmap.OpReadRequest, 28)
	f.ReadRequest = &rdmap.ReadRequest{SinkSTag: 7, SinkTO: sink, Size: 4096, SrcSTag: 9}
	s.tell.FPDU(s.conn, f)
	return f
}

// answer answers a Read after a time.
func (s *script) answer(f *decode.FPDU, after time.Duration) {
	s.send(back, rdmap.OpReadResponse, 4096)
	last := capture.Stamp{Number: s.packet, Time: f.Last.Time.Add(after)}
	acked := capture.Stamp{Number: 50, Time: f.Last.Time.Add(2 * time.Millisecond)}
	s.tell.Read(s.conn, &decode.Read{Dir: forth, Request: f.Last, Acked: acked, First: last, Last: last, ReadRequest: *f.ReadRequest})
}

// at is where the timeline has a time, from the connection's first packet on, in a row of it.
const at = `((c, ns, y) => { c.scrollIntoView({ block: "center" }); const r = c.getBoundingClientRect();
	const part = (ns - c.dataset.from) / (c.dataset.to - c.dataset.from);
	return [r.left + 96 + part * (r.width - 96), r.top + y]; })(document.querySelector("article:not([hidden]) canvas.time"), %d, %d)`

// clickAt clicks on the timeline.
func (b *tab) clickAt(after time.Duration, y int) {
	b.t.Helper()
	p, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]float64](fmt.Sprintf(at, after, y)))
	if err != nil || len(p) != 2 {
		b.t.Fatal(p, err)
	}
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, p[0], p[1]), chromedp.MouseClickXY(p[0], p[1]))
	b.frames()
}

// hoverAt moves the pointer over the timeline, and returns what is said there.
func (b *tab) hoverAt(after time.Duration, y int) string {
	b.t.Helper()
	p, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]float64](fmt.Sprintf(at, after, y)))
	if err != nil || len(p) != 2 {
		b.t.Fatal(p, err)
	}
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, p[0], p[1]))
	b.frames()
	return b.eval(`document.querySelector("article:not([hidden]) .under").textContent`)
}

// Places of the lanes of the timeline.
const (
	forthLane, backLane, findingLane = 50, 120, 276
	slowDot                          = 196 // at the top, for the slowest Read
)

// time clicks on what is on the timeline, zooms, and goes on.
func (w browser) time(t *testing.T) {
	p := page.New(page.Config{Name: "time"})
	timed(p)
	b := w.open(t, p, "#c6")
	const micro = 7 * time.Microsecond // between two packets
	for _, c := range []struct {
		after time.Duration
		lane  int
		want  string
	}{
		{8 * micro, slowDot, "0.000035 s, packet 5: → RDMA Read Request "}, // at the left of what is there
		{1105 * micro, backLane, "s, packet 1108: ← RDMA Read Response "},
		{0, findingLane, "0.000000 s, packet 1108: warning crc-wrong"},
		{1108 * micro, forthLane, "0.007763 s, packet 1109: → TCP FIN"},
		{600 * micro, backLane, "4200 µs"},
	} {
		if got := b.hoverAt(c.after, c.lane); !strings.Contains(got, c.want) {
			t.Errorf("after %v: %q, want %q", c.after, got, c.want)
		}
	}
	b.clickAt(4*micro, slowDot)
	b.want(inView, "true")
	b.want(selected, "0,0")
	b.want(`document.querySelector(".detail").textContent.includes("after 3 ms; the first bytes came after 3 ms")`, "true")
	b.want(`document.querySelector(".around .step.current").dataset.fpdu`, "0")
	b.want(`document.querySelector(".around .step.current").textContent.includes(
		"RDMA Read Request msn 1, 4\u202f096 bytes, answered after 3 ms")`, "true")
	b.want(`document.querySelector(".detail").textContent.includes(
		"after 2 ms (packet 50): the responder had the Request, and answered 1 ms later")`, "true")
	b.want(`[...document.querySelectorAll(".slow a")].map((a) => a.textContent)`, "3 ms,1 ms")
	b.click(".slow li:nth-child(2) a")
	b.want(selected, "102,102")
	b.clickAt(1105*micro, backLane) // the last Response
	b.want(selected, "103,103")
	b.clickAt(54*micro, forthLane)
	if got := b.eval(selected); !strings.HasPrefix(got, "4") && !strings.HasPrefix(got, "5") {
		t.Errorf("a click in the middle of the Writes chose %s", got)
	}
	b.click(".around .step:last-of-type")
	b.want(`document.querySelector(".around .step.current").dataset.fpdu == document.querySelector(".detail").dataset.fpdu`, "true")

	const timeline = "article:not([hidden]) canvas.time"
	window := fmt.Sprintf("(document.querySelector(%q).dataset.to - document.querySelector(%[1]q).dataset.from)", timeline)
	b.press(timeline, "+++")
	b.want(window+" < 2e6", "true")
	b.want(`document.querySelector("canvas[data-dir='0']").dataset.from > 0 ||
		document.querySelector("canvas[data-dir='0']").dataset.to < 100000`, "true") // the map follows
	b.press(timeline, "0")
	b.clickAt(0, findingLane) // its time is that of the connection's beginning
	b.want("location.hash", "#c6-f0")
}

// inView tells whether the details of what is chosen are on the screen.
const inView = `((d) => d.top >= 0 && d.height > 0 && d.bottom <= innerHeight + 1)(
	document.querySelector("article:not([hidden]) .detail").getBoundingClientRect())`

// find searches two connections for texts, from the one that is shown on, and around.
func (w browser) find(t *testing.T) {
	p := page.New(page.Config{Name: "find"})
	newScript(p, 0).long(100)
	timed(p)
	b := w.open(t, p, "#c0")
	look := func(text, address string) {
		t.Helper()
		b.eval(fmt.Sprintf(`(() => { const f = document.getElementById("find"); f.value = %q; f.form.requestSubmit(); })()`, text))
		b.frames()
		b.want("location.hash", address)
	}
	look("read request", "#c0-p7")
	look("READ REQUEST", "#c0-p17")
	look("size 4096 source 0x00000009 0x0", "#c6-p0")
	look("size 4096 source 0x00000009 0x0", "#c6-p102")
	look("size 4096 source 0x00000009 0x0", "#c6-p0")
	look("slow", "#c6-p102")
	b.want(inView, "true")
	look("slow", "#c6-p0")
	look("late", "#c6-f0")
	look("#12 ", "#c0-p7") // of the next connection, as this one is searched from the finding on
	look("no such thing", "#c0-p7")
	b.want(`document.querySelector("header [role=status]").textContent`, "Nothing has this text.")
	b.press("canvas.time", "/")
	b.want("document.activeElement.id", "find")
}

// worst opens a page of many connections at the worst of them, and leaves some.
func (w browser) worst(t *testing.T) {
	p := page.New(page.Config{Name: "worst"})
	for i := range 12 {
		s := newScript(p, i)
		s.startup(nil)
		if i == 8 {
			s.finding(decode.Error, forth, 0, "bad")
		}
		s.finish()
	}
	b := w.open(t, p, "")
	b.want(`document.querySelector("article:not([hidden])").id`, "c8")
	b.want(`document.querySelector("#connections tr[data-connection]").dataset.connection`, "8")
	b.eval(`(() => { const f = document.getElementById("only"); f.value = "1 error"; f.dispatchEvent(new Event("input")); })()`)
	b.want(`document.querySelectorAll("#connections tr[data-connection]:not([hidden])").length`, "1")
}
