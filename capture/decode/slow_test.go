package decode_test

import (
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestSlowRead has a Read be far slower than the others, and looks for what is said of it.
func TestSlowRead(t *testing.T) {
	const early = "TCP acknowledged its Request after 51ms (packet 48), and the Response began 101ms later"
	for name, c := range map[string]struct {
		others       int
		heard, after time.Duration // from the Request to a Send of the responder, and from there to the Response
		text         string
	}{
		"the responder waits": {20, 50 * time.Millisecond, 100 * time.Millisecond, early + " (the responder had"},
		"the Request is late": {20, 100 * time.Millisecond, 50 * time.Millisecond, "(the Request came late"},
		"nothing is heard":    {20, 0, 150 * time.Millisecond, "no earlier than with the Response"},
		"not so slow":         {20, 0, 90 * time.Millisecond, ""},
		"few Reads":           {18, 0, 150 * time.Millisecond, ""},
	} {
		s := newScript(t, 0)
		s.startup(false)
		for range c.others {
			s.ask()
			s.respond(bw, 9, 16, make([]byte, 300))
		}
		s.ask()
		if c.heard > 0 {
			s.now = s.now.Add(c.heard)
			s.message(bw, "wait")
		}
		s.now = s.now.Add(c.after)
		s.respond(bw, 9, 16, make([]byte, 300))
		r := run(t, s.close())
		if got := strings.Join(r.texts, "; "); !strings.Contains(got, c.text) || (got == "") != (c.text == "") {
			t.Errorf("%s: found %q, want %q", name, got, c.text)
		}
	}
}

// TestLongResponse has a Read be slow whose Response began at once: nobody is said to have waited.
func TestLongResponse(t *testing.T) {
	s := newScript(t, 0)
	s.startup(false)
	for range 20 {
		s.ask()
		s.respond(bw, 9, 16, make([]byte, 300))
	}
	s.ask()
	h := rdmap.OpReadResponse.Header(1)
	h.STag, h.TO = 9, 16
	s.segment(bw, h, make([]byte, 100))
	s.now = s.now.Add(150 * time.Millisecond)
	s.respond(bw, 9, 116, make([]byte, 200))
	r := run(t, s.close())
	if got := strings.Join(r.texts, "; "); !strings.Contains(got, "its Response of 300 bytes began after 1ms (it is large") {
		t.Error(got)
	}
}

// TestOutstandingReads counts Requests without a Response, also where a hole in front of the Responses has them be told of late.
func TestOutstandingReads(t *testing.T) {
	s := newScript(t, 0)
	s.startup(false)
	for range 5 {
		s.message(bw, "one of these is lost, and FPDUs are found again")
	}
	for range 5 {
		s.ask()
		s.respond(bw, 9, 16, make([]byte, 300))
	}
	one := s.close()
	for name, c := range map[string]struct {
		file []byte
		lost uint64
		want int
	}{
		"one at a time": {one, 0, 1}, "behind a hole": {one, 9, 1}, "several": {outstanding(t), 0, 4},
	} {
		r := lossy(t, c.file, func(p *capture.Packet) bool { return p.Number == c.lost })
		if got := r.conns[0].Halves[fw].OutstandingReads; got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// ask sends a Request of 300 bytes.
func (s *script) ask() {
	s.read(fw, rdmap.ReadRequest{SinkSTag: 9, SinkTO: 16, Size: 300, SrcSTag: 7, SrcTO: 4096})
}
