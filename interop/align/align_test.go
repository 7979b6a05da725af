//go:build interop && linux

package align_test

import (
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/wording"
)

const (
	// least is the share of segments that must be aligned.
	least = 0.999
	// attempts is in how many runs in succession fewer must have been aligned for it to be a
	// failure: with a load of 48 on two processors, a row had 98.3 % once. What aligns
	// wrongly does so each time.
	attempts = 3
)

// TestWire counts, in captures, the TCP segments that begin with an FPDU and hold whole
// ones.
//
// Proves S04.
func TestWire(t *testing.T) {
	t.Logf("%5s %-8s %-7s %-20s %8s %8s %10s %10s",
		"MTU", "offloads", "markers", "work", "EMSS", "MULPDU", "segments", "aligned")
	for _, c := range []struct {
		mtu      int
		offloads bool
	}{{1500, true}, {1500, false}, {9000, true}, {9000, false}, {1450, true}} {
		t.Run(fmt.Sprintf("MTU %d, offloads %s", c.mtu, wording.OnOff(c.offloads)), func(t *testing.T) {
			l := newLink(t, c.mtu, c.offloads)
			var rows []row
			for _, markers := range []bool{false, true} {
				for _, w := range workloads {
					rows = append(rows, row{w, markers})
				}
			}
			for attempt := 1; len(rows) > 0; attempt++ {
				if attempt > attempts {
					t.Fatalf("%d rows had fewer than %g %% of segments aligned, %d times",
						len(rows), 100*least, attempts)
				}
				rows = l.count(t, rows, c.mtu, c.offloads)
			}
		})
	}
}

// A row is a workload with or without markers.
type row struct {
	workload
	markers bool
}

// count runs each row while it is captured, and returns those with too few aligned segments.
func (l *link) count(t *testing.T, rows []row, mtu int, offloads bool) (again []row) {
	t.Helper()
	r := l.record(t, false)
	var runs []run
	for _, row := range rows {
		runs = append(runs, l.try(t, row, 8<<20))
	}
	r.stop()
	for _, run := range runs {
		if !run.judge(t, r.conns[run.port], mtu, offloads) {
			again = append(again, run.row)
		}
	}
	return again
}

// A run is a workload on a connection that is over.
type run struct {
	row
	port uint16
	sent iwarp.Stats // by the end with most to send
}

// try runs a workload on a connection of its own.
func (l *link) try(t *testing.T, w row, n int) run {
	t.Helper()
	a, b := l.connect(t, w.markers, iwarp.FPDUsDefault, n)
	from, to := a, b
	if w.back {
		from, to = b, a
	}
	from.fill(uint64(n))
	w.run(a, b)
	same(from, to)
	out := run{w, a.port(), from.Stats()}
	closeBoth(a, b)
	return out
}

// judge looks at both directions of a connection, and reports whether enough segments are
// aligned. Whatever else is wrong is an error.
func (r *run) judge(t *testing.T, c *decode.Connection, mtu int, offloads bool) (enough bool) {
	t.Helper()
	if c == nil {
		t.Fatalf("%s: the connection is not in the capture", r.name)
	}
	main := &c.Halves[capture.Forward].Wire
	if r.back {
		main = &c.Halves[capture.Backward].Wire
	}
	t.Logf("%5d %-8s %-7s %-20s %8d %8d %10d %9.3f%%",
		mtu, wording.OnOff(offloads), wording.OnOff(r.markers), r.name, main.MSS, r.sent.MULPDU,
		main.Segments, 100*main.Share())
	enough = true
	for d := range c.Halves {
		h, tcp := &c.Halves[d], c.TCP.Halves[d].Count
		switch {
		case tcp.Missing > 0:
			t.Errorf("%s %v: the capture lacks %d bytes", r.name, capture.Dir(d), tcp.Missing)
		case h.Wire.Share() < least:
			t.Logf("%s %v: %d of %d segments are aligned", r.name, capture.Dir(d), h.Wire.Aligned, h.Wire.Segments)
			enough = false
		case h.Wire.Cut > 0 && !offloads:
			t.Errorf("%s %v: %d packets are larger than the MSS of %d", r.name, capture.Dir(d), h.Wire.Cut, h.Wire.MSS)
		}
	}
	if r.sent.EMSS != main.MSS {
		t.Errorf("%s: an EMSS of %d, in the capture it is %d", r.name, r.sent.EMSS, main.MSS)
	}
	if s := &r.sent; s.SocketWrites == 0 || s.AlignedWrites != s.SocketWrites {
		t.Errorf("%s: %d of %d writes are said to be aligned", r.name, s.AlignedWrites, s.SocketWrites)
	}
	if main.Segments < 900 {
		t.Errorf("%s: %d segments", r.name, main.Segments)
	}
	return enough
}
