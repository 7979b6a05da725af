package iwarp

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/carrier"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/mpa/layout"
)

// ModifyRTSOver is ModifyRTS for a connection over a SegmentStream. n has the roles, what was
// agreed on about depths and Ready-to-Receive indications, and the DDP and RDMAP version, which
// is 1; of MPA there are neither markers nor CRCs, and either side may send first.
//
// Payload of Writes, Read Responses and Sends is placed as it arrives, and completions come in
// the order in which the peer has sent (RFC 5041, section 5.3). Sends to a Shared Receive
// Queue wait for those before them.
//
// From then on s belongs to the QP, which calls its Close or Reset in the end. After an error
// it still belongs to the caller.
func (qp *QP) ModifyRTSOver(s SegmentStream, n mpa.Negotiated, attr *StreamAttr) error {
	if s == nil {
		return &OpError{Op: "modify QP", Err: errNoConnGiven}
	}
	if err := qp.modifyRTSOver(s, n, attr); err != nil {
		return &OpError{Op: "modify QP", Addr: s.RemoteAddr(), Err: err}
	}
	return nil
}

func (qp *QP) modifyRTSOver(s SegmentStream, n mpa.Negotiated, attr *StreamAttr) error {
	if err := qp.claim(); err != nil {
		return err
	}
	defer qp.unclaim()
	n.SendFirst, n.MarkersSend, n.MarkersReceive, n.CRC = true, false, false, false
	n.Revision, n.PeerRevision = 0, 0
	if n.DDPVersion != 1 {
		return fmt.Errorf("%w: DDP version %d over a SegmentStream", ErrVersion, n.DDPVersion)
	}
	a, err := qp.checkModify(&n, attr)
	if err != nil {
		return err
	}
	qp.rnic.resolve(&n)
	return qp.startOver(s, &Negotiated{Negotiated: n}, a, lease{})
}

// startOver is start on a stream that carries whole segments.
func (qp *QP) startOver(s SegmentStream, n *Negotiated, a StreamAttr, l lease) error {
	c, b, e := &segmentLink{SegmentStream: s}, s.Bounds(), qp.endsOf(s)
	c.largest = c.mulpdu()
	qp.mu.Lock()
	defer qp.unlock()
	if err := qp.startable(n, a); err != nil {
		return err
	}
	n.MULPDU, n.noMPA = c.largest, true
	var p engine.Params
	agreed(&p, n)
	p.Layer, p.First = engine.LayerMessages, b.First
	p.Ahead = engine.Ahead{
		Segments: b.Segments, Octets: b.Octets,
		Budget: qp.rnic.held.share(e.remote, func(why error) { qp.holdsTooMuch(c, why) }),
	}
	p.Waiting = p.Ahead.Budget
	if err := qp.enter(&p, c, &e, n, a, l); err != nil {
		return err
	}
	qp.conn, qp.segments = nil, segments{}
	go qp.receiveSegments(c)
	qp.settle()
	return nil
}

// A segmentLink is a SegmentStream as the driver uses it: there is no sending without waiting, so
// that the sending goroutine does it all.
type segmentLink struct {
	SegmentStream
	half    sync.Once
	largest int    // segment, as of the last Send, in octets; the sender's
	held    int    // what the Stream was told last; the receiver's
	moved   uint64 // what the Stream told last; guarded by the QP's lock
}

// tell says what is held, if the Stream can do something about it.
func (l *segmentLink) tell(held int) {
	if h, ok := l.SegmentStream.(SegmentHolder); ok && held != l.held {
		l.held = held
		h.Held(held)
	}
}

// Send asks at once how large a segment may be, while no lock is held.
func (l *segmentLink) Send(v [][]byte) (n int, err error) {
	n, err = l.SegmentStream.Send(v)
	l.largest = l.mulpdu()
	return n, err
}

func (*segmentLink) TrySend([][]byte) (n int, wait bool, err error) { return 0, true, nil }
func (*segmentLink) HasHalves() bool                                { return true }
func (*segmentLink) Foreign() bool                                  { return true }

// mulpdu returns the largest segment now, which changes with the path (RFC 5041, section 3).
func (l *segmentLink) mulpdu() int { return max(l.MULPDU(), layout.MinMULPDU) } // [D01] [D02]

// CloseWrite ends our half, once.
func (l *segmentLink) CloseWrite() (err error) {
	l.half.Do(func() { err = l.SegmentStream.CloseWrite() })
	return err
}

// Close closes after CloseWrite, which runs in another goroutine or has yet to.
func (l *segmentLink) Close() error {
	_ = l.CloseWrite()
	return l.SegmentStream.Close()
}

// Told is an EndTeller's, if the stream is one.
func (l *segmentLink) Told() <-chan struct{} {
	if s, ok := l.SegmentStream.(EndTeller); ok {
		return s.Told()
	}
	return nil
}

// Acknowledged changes as the peer acknowledges more, if the stream can tell.
func (l *segmentLink) Acknowledged() uint32 {
	if s, ok := l.SegmentStream.(carrier.Acknowledged); ok {
		return s.Acknowledged()
	}
	return 0
}

// Lacks reports whether the peer has not acknowledged something in front of the end, if the stream can tell.
func (l *segmentLink) Lacks() bool {
	s, ok := l.SegmentStream.(carrier.Lacks)
	return ok && s.Lacks()
}

// Path says what the stream has measured, and whether it has segments that it has not sent yet, if it can tell either.
func (l *segmentLink) Path() (tcp.Path, bool) { return tcp.PathOver(l.SegmentStream) }

// Lost says why the peer has not everything, if the stream can tell.
func (l *segmentLink) Lost() error {
	if s, ok := l.SegmentStream.(carrier.Lost); ok {
		return s.Lost()
	}
	return nil
}

// Gone is Lost: a stream that has been lost says so, whether it is received from or not.
func (l *segmentLink) Gone() error { return l.Lost() }

// Moved returns how many octets the stream's path has moved, and zero if it cannot tell.
func (l *segmentLink) Moved() uint64 {
	if s, ok := l.SegmentStream.(carrier.Moved); ok {
		return s.Moved()
	}
	return 0
}

// moves asks the link what it has moved. The caller does not hold qp.mu, as that may be the consumer's code.
func (qp *QP) moves() (l *segmentLink, octets uint64) {
	qp.mu.Lock()
	l, ok := qp.link.(*segmentLink)
	qp.mu.Unlock()
	if ok {
		octets = l.Moved()
	}
	return l, octets
}

// moved tells the engine what a link has moved since the last time, or since a close has begun. Of two goroutines that have
// asked, the one that did so first may be the last to tell.
func (qp *QP) moved(now time.Time, l *segmentLink, octets uint64) {
	if l == nil || qp.link != link(l) || octets <= l.moved {
		return
	}
	qp.eng.Moved(now, int(min(octets-l.moved, math.MaxInt32)))
	l.moved = octets
}

// receiveSegments is the receiving goroutine.
func (qp *QP) receiveSegments(c *segmentLink) {
	qp.mu.Lock()
	qp.pushUnlocking() // such as an RTR indication
	qp.unlockReceiving()
	for {
		qp.awaitRoom(c)
		a, err := c.Recv()
		held, more := qp.arrived(c, &a, err)
		if !more {
			return
		}
		c.tell(held)
	}
}

// arrived takes in what Recv brought, and reports what is held of it, and whether to go on.
func (qp *QP) arrived(c *segmentLink, a *SegmentArrival, err error) (held int, more bool) {
	qp.mu.Lock()
	defer qp.unlockReceiving()
	if !qp.carries(c) {
		return 0, false
	}
	now := time.Now()
	qp.receiveCalls++
	switch {
	case err != nil:
		qp.eng.Failed(now, err)
	case a.End:
		qp.eng.Ended(now, a.Number)
	case a.Err != nil:
		// RFC 6581, section 8, has "local catastrophic" for any error of the LLP without a code of its own.
		qp.eng.Broken(now, a.Number, &mpa.Error{Code: mpa.CodeLocalCatastrophic, Reason: a.Err.Error(), Err: a.Err})
	default:
		qp.learnRoundTrip(now)
		qp.eng.Segment(now, a.Number, a.Number+1, a.Segment)
		qp.noteInput(now)
	}
	held = qp.eng.HeldAhead()
	qp.pushUnlocking()
	return held, err == nil && qp.carries(c)
}
