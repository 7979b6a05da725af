package usertcp

import (
	"bytes"
	"io"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestJammed: a congestion window of nothing is one that stays so where nothing is to be acknowledged, and until TCP
// believes that the peer has closed its window.
func TestJammed(t *testing.T) {
	open := tcp.TCPSenderState{SndUna: 7, SndNxt: 7, SndWnd: 1}
	if !jammed(&open) {
		t.Error("nothing is wrong with a window of nothing")
	}
	for name, change := range map[string]func(s *tcp.TCPSenderState){
		"a segment":       func(s *tcp.TCPSenderState) { s.SndCwnd = 1 },
		"outstanding":     func(s *tcp.TCPSenderState) { s.SndNxt++ },
		"a closed window": func(s *tcp.TCPSenderState) { s.SndWnd = 0 },
	} {
		s := open
		if change(&s); jammed(&s) {
			t.Errorf("%s: jammed", name)
		}
	}
}

// shut has TCP believe that the peer has closed its window, and returns when it has looked at the segment: each that it
// processes tells of the round trip.
func shut(t *testing.T, c *Conn) {
	t.Helper()
	c.flow.smooth.Store(-1)
	c.unjam()
	for over := testrig.Within(t); c.flow.smooth.Load() < 0; must(t, over.Err()) {
		time.Sleep(time.Millisecond)
	}
}

// TestUnjam: TCP goes through a time-out, and by that out of the jam, and on: what is written arrives.
func TestUnjam(t *testing.T) {
	a, b := stacks(t, Config{}, Path{}, Path{})
	c, s := connect(t, a, b, "192.0.2.2:7174")
	if packet := new(lastPacket).shut(1); packet != nil {
		t.Errorf("of a TCP that has sent nothing: %x", packet)
	}
	stats := a.net.Stats().TCP
	// an acknowledgement may open the window before
	for over := testrig.Within(t); stats.Timeouts.Value() == 0; must(t, over.Err()) {
		shut(t, c)
		_, err := c.Write([]byte("memory"))
		must(t, err)
		_, err = io.ReadFull(s, make([]byte, 6))
		must(t, err)
	}
}

// TestUnjamAligned: what TCP asks by on its way out of the jam is the one segment that is no FPDU. The peer has
// acknowledged its byte before, and Read does not return it.
func TestUnjamAligned(t *testing.T) {
	a, b, w := watch(t, Config{}, Path{}, Path{})
	out, in := connect(t, a, b, "192.0.2.2:7174")
	fpdu := []byte("an FPDU.")
	var all int
	for over := testrig.Within(t); w.asked() == 0; must(t, over.Err()) {
		shut(t, out)
		writeAll(t, out, [][]byte{fpdu})
		all += len(fpdu)
		got := make([]byte, len(fpdu))
		_, err := io.ReadFull(in, got)
		must(t, err)
		if !bytes.Equal(got, fpdu) {
			t.Fatalf("%q is not what was sent", got)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.segments {
		if s.from%len(fpdu) != 0 || s.to%len(fpdu) != 0 || s.to > all {
			t.Errorf("a segment from %d to %d is not aligned", s.from, s.to)
		}
	}
}

// asked returns how many window probes were sent.
func (w *watched) asked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.probes
}
