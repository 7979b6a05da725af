package driver

import (
	"time"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/tcp"
)

// FPDUs says how FPDUs are placed in the segments of TCP: iwarp.FPDUs, which describes them.
type FPDUs uint8

// The ways to place them.
const (
	FPDUsDefault FPDUs = iota
	FPDUsAligned
	FPDUsUnaligned
	FPDUsLarge
)

// resolve makes the choice for a connection.
func (f FPDUs) resolve(c *tcp.Conn, loopback bool) FPDUs {
	if f == FPDUsDefault {
		f = FPDUsAligned
		if loopback && !c.Segmented() {
			f = FPDUsUnaligned
		}
	}
	if f == FPDUsAligned && !c.EndRecords(true) {
		f = FPDUsUnaligned
	}
	return f
}

// TCP is asked for the EMSS again after refreshFirst bytes, as it raises it when it has come to know the path, and then
// at growing distances of up to refreshEvery bytes; at the next write that is refreshAfter later, too, as the path may
// have changed.
const (
	refreshFirst = 64 << 10
	refreshEvery = 1 << 20
	refreshAfter = time.Second
)

// segments is what is known of the segments that TCP sends on a connection. Conn.mu guards it.
type segments struct {
	fpdus   FPDUs     // resolved
	always  bool      // aligned with any EMSS
	emss    int       // bytes
	record  int       // bytes of a record of TCP
	refresh uint64    // bytes sent at which to ask for the EMSS again
	asked   time.Time // when it was last asked for
}

// measured returns what is known of a new connection.
func measured(c *tcp.Conn, f FPDUs, loopback bool) (s segments) {
	s = segments{fpdus: f.resolve(c, loopback), always: f == FPDUsAligned || c.Segmented(), refresh: refreshFirst}
	if s.emss, s.record = c.Limits(); s.emss <= 0 {
		s.emss = layout.DefaultEMSS
	}
	s.asked = time.Now()
	return s
}

// mulpdu returns the MULPDU, in bytes.
func (s *segments) mulpdu(markers bool) int {
	if s.fpdus == FPDUsLarge {
		return layout.MaxUnpadded
	}
	return layout.MULPDU(s.emss, markers)
}

// aligned returns the EMSS and the bytes of a record, if FPDUs are to be aligned.
func (s *segments) aligned() (emss, record int) {
	if s.fpdus != FPDUsAligned || s.emss%4 != 0 && !s.always {
		return 0, 0
	}
	return s.emss, s.record
}

// Limits are what bounds the segments and FPDUs that are sent, in bytes.
type Limits struct {
	EMSS   int // TCP's, and 0 over whole segments
	MULPDU int
	// AlignedTo is the EMSS, and Record the size of a record, if FPDUs are to be aligned with the segments; else both
	// are 0.
	AlignedTo, Record int
}

// Limits returns those that are in force before Start; markers tells whether we send markers.
func (c *Conn) Limits(markers bool) (l Limits) {
	if c.whole != nil {
		return Limits{MULPDU: c.whole.largest}
	}
	s := &c.segments
	l = Limits{EMSS: s.emss, MULPDU: s.mulpdu(markers)}
	l.AlignedTo, l.Record = s.aligned()
	return l
}

// due reports whether it is time to ask for the EMSS, when so many bytes were sent, and notes that it is asked for.
func (s *segments) due(now time.Time, sent uint64) bool {
	if sent < s.refresh && now.Sub(s.asked) < refreshAfter {
		return false
	}
	s.refresh, s.asked = sent+min(max(sent, refreshFirst), refreshEvery), now
	return true
}

// followMULPDU takes over what a write has learned of the path.
//
// RFC 5044, section 4.5: "If the TCP implementation needs to adjust EMSS to support MTU changes or changing TCP
// options, the MULPDU value is changed accordingly." [S03]
func (c *Conn) followMULPDU(w *write) {
	s := &c.segments
	switch {
	case c.whole != nil:
		c.machine.SetMULPDU(c.whole.largest, 0, 0) // as of this write
	case w.emss > 0 && (w.emss != s.emss || w.record != s.record):
		s.emss, s.record = w.emss, w.record
		align, record := s.aligned()
		c.machine.SetMULPDU(s.mulpdu(c.params().MarkersSend), align, record)
	}
}
