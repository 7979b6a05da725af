package tcp

import "github.com/goiwarp/iwarp/internal/lowerlayer"

// Segmented reports whether TCP is aware of MPA: it shows what arrives ahead of order, and sends records
// as segments of its own.
func (c *Conn) Segmented() bool { return c.segments != nil }

// ShowAhead has f called with bytes that have arrived ahead of others, if TCP is aware of MPA. at is their
// place, counted from the first byte that Recv brings. It is called before the first Recv; End ends
// it. f is called by a goroutine of TCP's, and never twice at once; it may take locks, but not those of
// who calls ShowAhead or End.
func (c *Conn) ShowAhead(f func(at uint64, data []byte)) {
	if c.segments == nil {
		return
	}
	first := uint64(0) // bytes that were read ahead come before those that TCP counts
	for _, r := range c.ahead {
		first += uint64(r.Buffered())
	}
	c.segments.ShowAhead(func(at uint64, data []byte) { f(first+at, data) })
}

// sendSegments sends records, each of which begins a segment, or a stream that TCP cuts as it likes.
func (c *Conn) sendSegments(v [][]byte) (n int, err error) {
	if c.records {
		return c.segments.WriteFPDUs(v)
	}
	return c.segments.Write(v[0])
}

// segmented returns a connection of an MPA-aware TCP, nil if it is none.
func segmented(c any) lowerlayer.SegmentedConn {
	s, _ := c.(lowerlayer.SegmentedConn)
	return s
}

// PeerAcked returns a channel that is closed when the peer has acknowledged our FIN, or never will; nil if the
// connection goes on by itself, as a socket of the system's does. Of a connection with a method NetConn, as tls.Conn
// has, the one below tells.
func (c *Conn) PeerAcked() <-chan struct{} {
	if t, ok := basis(c.Conn).(lowerlayer.PeerAcked); ok {
		return t.PeerAcked()
	}
	return nil
}

// AckProgress changes as the peer acknowledges more, where that is known.
func (c *Conn) AckProgress() uint32 {
	if a, ok := basis(c.Conn).(lowerlayer.AckProgress); ok {
		return a.AckProgress()
	}
	return 0
}

// HasUnacked reports whether the peer has not acknowledged something in front of our FIN, where that is known.
func (c *Conn) HasUnacked() bool {
	l, ok := basis(c.Conn).(lowerlayer.HasUnacked)
	return ok && l.HasUnacked()
}

// LossError says, when PeerAcked's channel is closed, why the peer has not everything, where that is known.
func (c *Conn) LossError() error {
	if l, ok := basis(c.Conn).(lowerlayer.LossError); ok {
		return l.LossError()
	}
	return nil
}
