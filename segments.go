package iwarp

import (
	"net"
	"time"

	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/mpa/layout"
)

// FPDUs says how the FPDUs that a QP sends are placed in the segments of TCP. Receivers
// take them either way.
type FPDUs uint8

const (
	// FPDUsDefault is FPDUsAligned, with two exceptions. On loopback it is FPDUsUnaligned: there no network cuts
	// anything, and segments are as large as the largest FPDUs. The same holds while the EMSS is not a multiple of
	// four, as the length of each FPDU is: then no FPDU fills a segment, and TCP would send each as a packet of its
	// own, at a fraction of the usual rate. Dialer.Dial sees to it that the EMSS is a multiple of four, in both
	// directions, unless the MTU of a router on the path prevents that.
	FPDUsDefault FPDUs = iota
	// FPDUsAligned has each TCP segment begin with an FPDU and hold whole ones: Header
	// Alignment, which lets an RNIC place each segment by itself, whatever became of those
	// before it (RFC 5044, section 5.1 and Appendix A). It takes Linux and a TCP socket of
	// ours, not one under TLS; where that is missing, it is FPDUsUnaligned. It is also lost
	// where TCP sends less than it could to fill the peer's window, and when the path
	// MTU shrinks, for what TCP has in its buffer then. A Stack that is aware of MPA aligns
	// everywhere, and always.
	FPDUsAligned
	// FPDUsUnaligned has FPDUs that fit into a TCP segment and follow each other wherever
	// TCP cuts them. With many small messages TCP can send fewer segments.
	FPDUsUnaligned
	// FPDUsLarge has FPDUs of up to 64 KiB, whatever the size of TCP's segments: less
	// work for two ends in software. An RNIC at the other end has to hold what it
	// receives of an FPDU until that is whole.
	FPDUsLarge
)

// String names the choice, such as "aligned".
func (f FPDUs) String() string {
	switch f {
	case FPDUsDefault:
		return "default"
	case FPDUsAligned:
		return "aligned"
	case FPDUsUnaligned:
		return "unaligned"
	case FPDUsLarge:
		return "large"
	}
	return "unknown"
}

// settled is the choice for a connection.
func (f FPDUs) settled(c *tcp.Conn, remote net.Addr) FPDUs {
	if f == FPDUsDefault {
		f = FPDUsAligned
		if isLoopback(remote) && !c.Segmented() {
			f = FPDUsUnaligned
		}
	}
	if f == FPDUsAligned && !c.EndRecords(true) {
		f = FPDUsUnaligned
	}
	return f
}

// mayAlign reports whether the FPDUs of a connection that is not there yet may come to be
// aligned.
func (f FPDUs) mayAlign() bool { return f == FPDUsDefault || f == FPDUsAligned }

func isLoopback(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	return ok && t.IP.IsLoopback()
}

// mulpdu returns the MULPDU for an EMSS, both in octets.
func (f FPDUs) mulpdu(emss int, markers bool) int {
	if f == FPDUsLarge {
		return layout.MaxUnpadded
	}
	return layout.MULPDU(emss, markers)
}

// TCP is asked for the EMSS again after refreshFirst octets, as it raises it when it has
// come to know the path, and then at growing distances of up to refreshEvery octets; at the
// next write that is refreshAfter later, too, as the path may have changed.
const (
	refreshFirst = 64 << 10
	refreshEvery = 1 << 20
	refreshAfter = 100 * time.Millisecond
)

// segments is what a QP knows of the segments that TCP sends on its connection.
type segments struct {
	fpdus   FPDUs     // settled
	always  bool      // aligned with any EMSS
	emss    int       // octets
	record  int       // octets of a record of TCP
	refresh uint64    // octets sent at which to ask for the EMSS again
	asked   time.Time // when it was last asked for
}

// measured returns what is known of a new connection. The caller does not hold qp.mu, as TCP may be the consumer's code.
func (qp *QP) measured(c *tcp.Conn, e ends) (s segments) {
	s = segments{fpdus: qp.cfg.FPDUs.settled(c, e.remote), always: qp.cfg.FPDUs == FPDUsAligned || c.Segmented(), refresh: refreshFirst}
	if s.emss, s.record = c.Limits(); s.emss <= 0 {
		s.emss = layout.DefaultEMSS
	}
	s.asked = time.Now()
	return s
}

// aligned returns the EMSS and the octets of a record, if FPDUs are to be aligned.
func (s *segments) aligned() (emss, record int) {
	if s.fpdus != FPDUsAligned || s.emss%4 != 0 && !s.always {
		return 0, 0
	}
	return s.emss, s.record
}

// due reports whether it is time to ask for the EMSS, when so many octets were sent, and notes that it is asked for.
func (s *segments) due(now time.Time, sent uint64) bool {
	if sent < s.refresh && now.Sub(s.asked) < refreshAfter {
		return false
	}
	s.refresh, s.asked = sent+min(max(sent, refreshFirst), refreshEvery), now
	return true
}

// followEMSSUnlocking asks TCP for the EMSS, now and then: it changes with the path. n octets were just sent. The caller
// holds qp.mu, which is released meanwhile, as TCP may be the consumer's code.
//
// RFC 5044, section 4.5: "If the TCP implementation needs to adjust EMSS to support MTU
// changes or changing TCP options, the MULPDU value is changed accordingly." [S03]
func (qp *QP) followEMSSUnlocking(now time.Time, n int) {
	if l, ok := qp.link.(*segmentLink); ok {
		qp.eng.SetMULPDU(l.largest, 0, 0) // as of this write
		return
	}
	s, c := &qp.segments, qp.conn
	if !s.due(now, qp.eng.StreamSent()+uint64(n)) {
		return
	}
	qp.mu.Unlock()
	emss, record := c.Limits()
	qp.mu.Lock()
	if emss > 0 && (emss != s.emss || record != s.record) {
		s.emss, s.record = emss, record
		align, record := s.aligned()
		qp.eng.SetMULPDU(s.fpdus.mulpdu(emss, qp.neg.MarkersSend), align, record)
	}
}
