package capture_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// trackPackets gives packets to a Tracker, and returns it with its book.
func trackPackets(t *testing.T, cfg capture.Config, packets ...*capture.Packet) (*capture.Tracker, *book) {
	t.Helper()
	b := newBook(t)
	tracker := capture.NewTracker(cfg, b)
	for _, p := range packets {
		tracker.Packet(p)
	}
	return tracker, b
}

// TestHalf has what the ends declare, and what is counted.
func TestHalf(t *testing.T) {
	w := newWire()
	packets := append(w.handshake(), w.data(forth, 0, 0, "abc"), w.data(forth, 0, 0, "abc"),
		cut(w.data(back, 5, 3, "xyz"), 1),
		w.packet(back, fin, 8, 3, "", 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2), w.packet(forth, rst, 3, 9, ""))
	tracker, b := trackPackets(t, capture.Config{}, packets...)
	tracker.Flush()
	c := b.only().c
	a, z := &c.Halves[forth], &c.Halves[back]
	if !c.Handshake() || !c.OpenerKnown() || !c.Over() || c.First.Number != 1 || c.Last.Number != 8 {
		t.Errorf("connection %+v", c)
	}
	for _, v := range []struct{ got, want any }{
		{fmt.Sprint(a.Addr, z.Addr), "10.0.0.1:40000 10.0.0.2:4791"},
		{fmt.Sprint(a.SYN, a.FIN, a.RST, a.ISN), "1 0 8 1000"},
		{fmt.Sprint(z.SYN, z.FIN, z.RST, z.ISN), "2 7 0 5000"},
		{fmt.Sprint(a.MSS, a.WindowScale, a.SACK, a.Timestamps, a.Midstream), "1440 7 true false false"},
		{fmt.Sprint(z.MSS, z.WindowScale, z.SACK, z.Timestamps, z.Midstream), "8960 -1 false true false"},
		{a.Count, capture.Count{Packets: 5, Segments: 2, Bytes: 3, Repeated: 3}},
		{z.Count, capture.Count{Packets: 3, Segments: 1, Bytes: 2, Missing: 6, Gaps: 2}},
		{a.Next(), uint64(3)}, {z.Next(), uint64(8)},
		{a.Ended() && z.Ended(), true},
	} {
		if v.got != v.want {
			t.Errorf("got %+v, want %+v", v.got, v.want)
		}
	}
}

// TestMidstream has a connection without a SYN.
func TestMidstream(t *testing.T) {
	w := newWire()
	_, b := trackPackets(t, capture.Config{}, w.data(forth, 77, 99, "abc"))
	for c := range b.known {
		if c.Handshake() || c.OpenerKnown() || !c.Halves[forth].Midstream || c.Halves[forth].WindowScale != -1 {
			t.Errorf("connection %+v", c)
		}
	}
}

// TestEviction has more connections than there may be: those that are over go
// first, and then those that were silent for the longest.
func TestEviction(t *testing.T) {
	w := newWire()
	from := func(port uint16, flags capture.Flags) *capture.Packet {
		w.ends[forth] = client(port)
		return w.packet(forth, flags, 0, 0, "x")
	}
	_, b := trackPackets(t, capture.Config{MaxConnections: 2},
		from(1, capture.ACK), from(2, capture.ACK), from(2, capture.RST), from(1, capture.ACK), from(3, capture.ACK),
		from(1, capture.ACK), from(4, capture.ACK))
	var got []string
	for _, line := range b.lines {
		if strings.Contains(line, "open") || strings.Contains(line, "-> end") || strings.Contains(line, "forgotten") {
			got = append(got, line)
		}
	}
	const want = `
		0 open 10.0.0.1:1 -> 10.0.0.2:4791
		1 open 10.0.0.1:2 -> 10.0.0.2:4791
		1 #3 -> end 1 RST
		1 forgotten
		2 open 10.0.0.1:3 -> 10.0.0.2:4791
		2 #7 -> end 1 evicted
		2 forgotten
		3 open 10.0.0.1:4 -> 10.0.0.2:4791`
	if got, want := strings.Join(got, "\n"), strings.Join(unindent(want), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestForgotten has connections that take turns, more than there may be: each is counted once, and what comes of one that
// was forgotten is skipped, until a SYN begins another.
func TestForgotten(t *testing.T) {
	w := newWire()
	from := func(port uint16, flags capture.Flags) *capture.Packet {
		w.ends[forth] = client(port)
		return w.packet(forth, flags, 0, 0, "")
	}
	var packets []*capture.Packet
	for range 3 {
		for port := range uint16(4) {
			packets = append(packets, from(1+port, capture.ACK))
		}
	}
	packets = append(packets, from(1, capture.SYN), from(1, capture.ACK))
	_, b := trackPackets(t, capture.Config{MaxConnections: 3}, packets...)
	var got []string
	for _, line := range b.lines {
		if !strings.Contains(line, "end") {
			got = append(got, line)
		}
	}
	const want = `
		0 open 10.0.0.1:1 -> 10.0.0.2:4791
		1 open 10.0.0.1:2 -> 10.0.0.2:4791
		2 open 10.0.0.1:3 -> 10.0.0.2:4791
		0 forgotten
		3 open 10.0.0.1:4 -> 10.0.0.2:4791
		#5 skipped: of a forgotten connection
		#9 skipped: of a forgotten connection
		1 forgotten
		4 open 10.0.0.1:1 -> 10.0.0.2:4791`
	if got, want := strings.Join(got, "\n"), strings.Join(unindent(want), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestEvictionOver has many connections that are over: a quarter of those that there may be are kept, so that what
// comes late finds them.
func TestEvictionOver(t *testing.T) {
	w := newWire()
	var packets []*capture.Packet
	for port := range uint16(5) {
		w.ends[forth] = client(1 + port)
		packets = append(packets, w.packet(forth, capture.SYN, -1, 0, ""),
			w.packet(back, capture.RST|capture.ACK, 0, 0, ""))
	}
	packets = append(packets, w.packet(forth, capture.ACK, 0, 0, ""))
	_, b := trackPackets(t, capture.Config{MaxConnections: 8}, packets...)
	var got []string
	for _, line := range b.lines {
		if strings.Contains(line, "open") || strings.Contains(line, "forgotten") {
			got = append(got, strings.Join(strings.Fields(line)[:2], " "))
		}
	}
	if got, want := strings.Join(got, ", "), "0 open, 1 open, 2 open, 0 forgotten, 3 open, 1 forgotten, 4 open, 2 forgotten"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestLongStream goes past 4 GiB, through sequence numbers that wrap around, in
// large segments of which the capture has only the first byte.
func TestLongStream(t *testing.T) {
	w := newWire()
	s := &lastConnection{}
	tracker := capture.NewTracker(capture.Config{}, s)
	for _, p := range w.handshake() {
		tracker.Packet(p)
	}
	const step, steps = 1 << 20, 5 << 10
	for i := range int64(steps) {
		p := w.data(forth, i*step, 0, "x")
		p.Data[2], p.Data[3] = 0, 0 // total length: all there is
		p.OrigLen = 40 + step
		tracker.Packet(p)
	}
	if s.bytes != steps || s.gaps != steps {
		t.Errorf("%d bytes and %d gaps, want %d of each", s.bytes, s.gaps, steps)
	}
	if got, want := s.c.Halves[forth].Next(), uint64(steps*step); got != want {
		t.Errorf("the stream goes on at %d, want %d", got, want)
	}
}

// A lastConnection is a sink that knows the last connection.
type lastConnection struct {
	idle
	c *capture.Connection
}

func (l *lastConnection) Opened(c *capture.Connection) { l.c = c }

// TestMemory has more ahead of a hole than may be held back, in all directions
// together.
func TestMemory(t *testing.T) {
	w := newWire()
	b := newBook(t)
	tracker := capture.NewTracker(capture.Config{MaxBufferedTotal: 10000}, b)
	for port := range uint16(100) {
		w.ends[forth] = client(port + 1)
		tracker.Packet(w.packet(forth, syn, -1, 0, ""))
		tracker.Packet(w.packet(forth, 0, 10, 0, strings.Repeat("x", 1000)))
	}
	waiting := 0
	for c := range b.known {
		if c.Halves[forth].Next() == 0 {
			waiting++
		}
	}
	if waiting < 5 || waiting > 10 {
		t.Errorf("%d segments of 1000 bytes are held back, want what 10000 bytes have room for", waiting)
	}
	tracker.Flush()
}

// TestAllocs tracks segments in order without allocating.
func TestAllocs(t *testing.T) {
	w := newWire()
	tracker := capture.NewTracker(capture.Config{}, &idle{})
	for _, p := range w.handshake() {
		tracker.Packet(p)
	}
	p := w.data(forth, 0, 0, strings.Repeat("x", 1000))
	next := w.isn[forth] + 1
	n := testing.AllocsPerRun(100_000, func() { // more than the history has room for
		binary.BigEndian.PutUint32(p.Data[24:], next)
		next += 1000
		tracker.Packet(p)
	})
	if n != 0 {
		t.Errorf("%v allocations for a segment in order, want none", n)
	}
}

// TestCaptures tracks captures of siw and iwarp, which have all bytes of
// connections from SYN to FIN.
func TestCaptures(t *testing.T) {
	for _, path := range testrig.Captures(t, "../interop/testdata/captures") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			file, err := os.Open(path)
			testrig.Must(t, err)
			defer file.Close()
			b := newBook(t)
			track(t, file, b)
			for c, e := range b.known {
				if !c.Handshake() || len(e.gaps[forth])+len(e.gaps[back]) != 0 {
					t.Errorf("%v: handshake %t, gaps %v", c, c.Handshake(), e.gaps)
				}
			}
		})
	}
}
