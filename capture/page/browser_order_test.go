package page_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/capture/page"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/rdmap"
)

// around chooses an FPDU that was told of late, as the capture lacks bytes of it: in time it is before those in front of it.
func (w browser) around(t *testing.T) {
	p := page.New(page.Config{Name: "around"})
	s := newScript(p, 0)
	s.startup(nil)
	s.send(back, rdmap.OpSend, 10)
	late := s.fpdu(forth, rdmap.OpWrite, 1000) // in packet 6
	for range 30 {
		s.send(back, rdmap.OpSend, 10)
	}
	s.tell.FPDU(s.conn, late)
	s.finish()
	b := w.open(t, p, "#c0-p31")
	b.want(`[...document.querySelectorAll(".around .step")].map((e) => e.dataset.fpdu)`, "0,31,1,2,3,4,5,6,7,8,9,10,11,12,13")
	b.want(`document.querySelector(".around .step.current").dataset.fpdu`, "31")
	b.want(`[...document.querySelectorAll(".around .step line")].map((e) => +e.getAttribute("y1")).every((y, i, all) =>
		y > 20 && y < document.querySelector(".around svg").clientHeight && (i === 0 || y >= all[i - 1] + 24))`, "true")
	b.clickAt(6*7*time.Microsecond, forthLane)
	b.want(selected, "31,31")
	b.press("canvas.time", ".")
	b.want(selected, "1,1")
}

// unscrolled has ten findings be there without a box to scroll in.
func (w browser) unscrolled(t *testing.T) {
	p := page.New(page.Config{Name: "unscrolled"})
	for number, findings := range []int{10, 50} {
		s := newScript(p, number)
		for range findings {
			s.finding(decode.Note, forth, 3, "found")
		}
		s.finish()
	}
	b := w.open(t, p, "#c0")
	const cut = `((e) => e.scrollHeight > e.clientHeight)(document.querySelector("article:not([hidden]) .findings ol"))`
	b.want(cut, "false")
	b.eval(`location.hash = "#c1"`)
	b.frames()
	b.want(cut, "true")
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	testrig.Must(t, err)
	b.frames()
	b.want(cut, "false")
}

// underWay is what a page says of Reads under way.
const underWay = `[...texts].filter((t) => t.startsWith("at most"))`

// watchTexts has texts be what is written on canvases from now on.
func (b *tab) watchTexts() {
	b.eval(`globalThis.texts = new Set(), ((draw) => {
		CanvasRenderingContext2D.prototype.fillText = function (text, ...at) { texts.add(text); draw.call(this, text, ...at); };
	})(CanvasRenderingContext2D.prototype.fillText)`)
}

// faulty counts a Read whose Response is faulty up to that.
func (w browser) faulty(t *testing.T) {
	p := page.New(page.Config{Name: "faulty"})
	s := newScript(p, 0)
	s.startup(nil)
	s.read(0)
	f := s.send(back, rdmap.OpReadResponse, 4096)
	s.tell.Finding(s.conn, &decode.Finding{Severity: decode.Error, Name: "read-response", Dir: back, Offset: f.Offset, Packet: f.Last})
	s.answer(s.read(1), time.Millisecond)
	s.finish()
	b := w.open(t, p, "")
	b.watchTexts()
	b.press("canvas.time", "0")
	b.want(underWay, "at most 1")
}

// unanswered counts Reads whose Response is not in the capture: until a later one is answered, or to the end.
func (w browser) unanswered(t *testing.T) {
	p := page.New(page.Config{Name: "unanswered"})
	s := newScript(p, 0)
	s.startup(nil)
	s.read(0)
	s.read(1)
	s.answer(s.read(2), time.Millisecond)
	s.packet += 1000
	s.read(3)
	s.finish()
	b := w.open(t, p, "")
	b.watchTexts()
	b.press("canvas.time", "0")
	b.want(underWay, "at most 3")
	b.eval("texts.clear()")
	b.press("canvas.time", "+\u0303\u0303\u0303\u0303\u0303") // to the end
	b.want(`[...texts].filter((t) => t.startsWith("at most")).at(-1)`, "at most 1")
}

// covered has a note at the place of a warning: the warning is seen, and what a click goes to.
func (w browser) covered(t *testing.T) {
	p := page.New(page.Config{Name: "covered"})
	s := newScript(p, 0)
	s.startup(nil)
	s.send(forth, rdmap.OpSend, 10)
	s.finding(decode.Warning, forth, 30, "a warning")
	s.finding(decode.Note, forth, 30, "a note")
	s.finish()
	b := w.open(t, p, "")
	const colors = `[[276, ".time"], [146, "[data-dir='0']"]].map(([y, which]) => {
		const c = document.querySelector("canvas" + which), ratio = c.width / c.clientWidth;
		const line = c.getContext("2d").getImageData(0, y * ratio, c.width, 1).data, warning = [138, 90, 0], note = [53, 97, 142];
		const has = (color) => line.some((_, i) => i % 4 === 0 && color.every((v, k) => line[i + k] === v));
		return has(warning) + " " + has(note);
	})`
	b.want(colors, "true false,true false")
	if got := b.hoverAt(0, findingLane); !strings.Contains(got, "warning crc-wrong") {
		t.Errorf("hover says %q", got)
	}
}
