package page_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/capture/page"
	"github.com/goiwarp/iwarp/rdmap"
)

// odd tells of a connection with all that a map tells apart: streaming data, bytes that
// are missing, segments out of order and with other bytes, a marker that is wrong.
func odd(p *page.Page) {
	s := newScript(p, 4)
	s.tell.Startup(s.conn, &decode.Startup{Frame: decode.FrameStreaming, Size: 100, First: s.stamp(), Last: s.stamp()})
	s.ends[forth] = 100
	s.startup(nil)
	s.send(forth, rdmap.OpWrite, 980) // to 1120
	s.tell.Missing(s.conn, &decode.Missing{Offset: 1120, End: 3120, Cause: capture.CauseLost})
	s.finding(decode.Note, forth, 1125, "2000 bytes are missing")
	s.ends[forth] = 3120
	f := s.fpdu(forth, rdmap.OpReadResponse, 980) // to 4120
	again := &decode.Segment{Packet: s.stamp(), Offset: f.Offset, Length: f.Size(), Order: capture.OrderRepeat,
		Repeated: f.Size(), Match: capture.MatchDiffers}
	s.tell.Segment(s.conn, again)
	s.tell.Segment(s.conn, &decode.Segment{Packet: s.stamp(), Offset: 5120, Length: 1000, Order: capture.OrderAhead})
	s.tell.Segment(s.conn, &decode.Segment{Packet: s.stamp(), Offset: 4120, Length: 1000, Order: capture.OrderFills})
	s.tell.FPDU(s.conn, f)
	f = s.fpdu(forth, rdmap.OpTerminate, 1976)
	f.Markers[0].Valid, f.Cut = false, 3
	s.tell.FPDU(s.conn, f)
	s.finding(decode.Error, forth, f.Offset, "a marker is wrong")
	s.finish()
}

// hover moves the pointer over the map of a direction, to a row of it and a byte of a
// stream that is shown from 0 to an end, and returns what is said there.
func (b *tab) hover(dir, y int, data, end float64) string {
	b.t.Helper()
	const place = `((c) => { c.scrollIntoView({ block: "center" }); const r = c.getBoundingClientRect(); return [r.left, r.top, r.width]; })(
		document.querySelector("canvas[data-dir='%d']"))`
	at, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]float64](fmt.Sprintf(place, dir)))
	if err != nil || len(at) != 3 {
		b.t.Fatal(at, err)
	}
	const labels = 96
	x := at[0] + labels + data/end*(at[2]-labels)
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, at[1]+float64(y)))
	b.frames()
	return b.eval(fmt.Sprintf(`document.querySelectorAll(".under")[%d].textContent`, dir+1))
}

// odd points at what is odd on a map, and asks what it is.
func (w browser) odd(t *testing.T) {
	p := page.New(page.Config{Name: "odd"})
	odd(p)
	b := w.open(t, p, "#c4")
	const segments, fpdus, end = 30, 84, 6120
	for _, c := range []struct {
		y    int
		byte float64
		want string
	}{
		{fpdus, 50, "100 bytes of streaming data"},
		{fpdus, 110, "start-req"},
		{fpdus, 600, "FPDU at 120, size 1000, packet 7: RDMA Write stag 0xabcd0001 to 0x7fff00000078 payload 980 last"},
		{fpdus, 2000, "lost by the capture"},
		{fpdus, 5000, "FPDU at 4\u202f120, size 2000, packet 12: Terminate qn 0 msn 1 mo 0 payload 1973 last, 3 bytes are missing"},
		{segments, 3600, "bytes 3\u202f120 to 4\u202f120 (1000), sent again, with OTHER bytes than before"},
		{segments, 4600, "(1000), fills a hole: late, or sent again"},
		{segments, 5600, "(1000), ahead of a hole"},
		{140, 4120, "error crc-wrong [F04]"},
	} {
		if got := b.hover(0, c.y, c.byte, end); !strings.Contains(got, c.want) {
			t.Errorf("byte %v, height %d: %q, want %q", c.byte, c.y, got, c.want)
		}
	}

	b.click("#c4-f1 a") // bytes that are missing: the FPDU in front of them
	b.want(selected, "0,0")
	b.click("#c4-f0 a")
	b.want(selected, "2,2")
	b.want(`document.querySelector(".detail").textContent.includes("at 4\u202f608 FPDUPTR 488 WRONG")`, "true")
}
