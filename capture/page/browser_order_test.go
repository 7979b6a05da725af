package page_test

import (
	"testing"
	"time"

	"github.com/goiwarp/iwarp/capture/page"
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
