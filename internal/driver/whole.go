package driver

import (
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/mpa"
)

// A Stream carries whole DDP Segments, each as one message: iwarp.SegmentStream, which describes it.
type Stream interface {
	Send(segments [][]byte) (n int, err error)
	Recv() (lowerlayer.Arrival, error)
	MULPDU() int
	CloseWrite() error
	Close() error
	Reset() error
}

// NewWhole returns a Conn over a stream of whole segments. It does not run before Start. Lower is what may have the
// optional methods of package lowerlayer.
func NewWhole(s Stream, lower any, cfg *Config) *Conn {
	l := &wholeLink{Stream: s, lower: lower}
	l.largest = l.mulpdu()
	c := newConn(cfg, l)
	c.whole = l
	return c
}

// A wholeLink is a Stream as the driver uses it: there is no sending without waiting, so that the sending goroutine
// does it all.
type wholeLink struct {
	Stream
	lower   any
	half    sync.Once
	largest int    // segment, as of the last Send, in bytes; the sender's
	held    int    // bytes, as the stream was told last; the receiver's
	moved   uint64 // bytes, as the stream told last; guarded by Conn.mu
}

// reportHeld says what is held, if the stream can do something about it.
func (l *wholeLink) reportHeld(held int) {
	if h, ok := l.lower.(lowerlayer.Held); ok && held != l.held {
		l.held = held
		h.Held(held)
	}
}

// Send sends, and asks how large the next segment may be: no lock is held here, as the stream may be the user's code.
func (l *wholeLink) Send(v [][]byte) (n int, err error) {
	n, err = l.Stream.Send(v)
	l.largest = l.mulpdu()
	return n, err
}

func (*wholeLink) TrySend([][]byte) (n int, wait bool, err error) { return 0, true, nil }
func (*wholeLink) HasHalves() bool                                { return true }
func (*wholeLink) Foreign() bool                                  { return true }

// mulpdu returns the largest segment now, which changes with the path.
//
// RFC 5041, section 3: "LLPs MUST expose MULPDU and MULPDU changes." [D01]
func (l *wholeLink) mulpdu() int { return max(l.MULPDU(), layout.MinMULPDU) }

// CloseWrite ends our half, once.
func (l *wholeLink) CloseWrite() (err error) {
	l.half.Do(func() { err = l.Stream.CloseWrite() })
	return err
}

// Close closes after CloseWrite, which runs in another goroutine or has yet to.
func (l *wholeLink) Close() error {
	_ = l.CloseWrite()
	return l.Stream.Close()
}

// PeerAcked is closed when the peer has the end of our half, if the stream can tell.
func (l *wholeLink) PeerAcked() <-chan struct{} {
	if s, ok := l.lower.(lowerlayer.PeerAcked); ok {
		return s.PeerAcked()
	}
	return nil
}

// AckProgress changes as the peer acknowledges more, if the stream can tell.
func (l *wholeLink) AckProgress() uint32 {
	if s, ok := l.lower.(lowerlayer.AckProgress); ok {
		return s.AckProgress()
	}
	return 0
}

// HasUnacked reports whether the peer has not acknowledged something in front of the end, if the stream can tell.
func (l *wholeLink) HasUnacked() bool {
	s, ok := l.lower.(lowerlayer.HasUnacked)
	return ok && s.HasUnacked()
}

// Path says what the stream has measured, and whether it has segments that it has not sent yet, if it can tell either.
func (l *wholeLink) Path() (tcp.Path, bool) { return tcp.PathOver(l.lower) }

// LossError says why the peer has not everything, if the stream can tell.
func (l *wholeLink) LossError() error {
	if s, ok := l.lower.(lowerlayer.LossError); ok {
		return s.LossError()
	}
	return nil
}

// Gone is LossError: a stream that has been lost says so, whether it is received from or not.
func (l *wholeLink) Gone() error { return l.LossError() }

// moves returns how many bytes the stream's path has moved, and zero if it cannot tell, or if there is no stream.
func (l *wholeLink) moves() uint64 {
	if l == nil {
		return 0
	}
	if s, ok := l.lower.(lowerlayer.Moved); ok {
		return s.Moved()
	}
	return 0
}

// noteMoved returns what the stream's path has moved since the last time, or since a close has begun, and notes it.
// Of two goroutines that have asked, the one that did so first may be the last to tell. Conn.mu guards it.
func (l *wholeLink) noteMoved(moved uint64) (more uint64) {
	if l == nil || moved <= l.moved {
		return 0
	}
	more, l.moved = moved-l.moved, moved
	return more
}

// A wholeReceiver receives whole segments.
type wholeReceiver struct {
	*Conn
	link *wholeLink
}

// run is the receiving goroutine.
func (r wholeReceiver) run() {
	r.turn(turn{receiving: true, now: r.now()})
	for {
		r.awaitRoom()
		a, err := r.link.Recv()
		held, more := r.arrived(&a, err)
		if !more {
			return
		}
		r.link.reportHeld(held)
	}
}

// arrived takes in what Recv brought, and reports what is held of it, and whether to go on.
func (r wholeReceiver) arrived(a *lowerlayer.Arrival, err error) (held int, more bool) {
	r.mu.Lock()
	if !r.listening() {
		r.mu.Unlock()
		return 0, false
	}
	now := time.Now()
	r.counts.ReceiveCalls++
	switch {
	case err != nil:
		r.machine.Failed(now, err)
	case a.End:
		r.machine.Ended(now, a.Number)
	case a.Err != nil:
		// RFC 6581, section 8, has "local catastrophic" for any error of the LLP without a code of its own.
		r.machine.Broken(now, a.Number, &mpa.Error{Code: mpa.CodeLocalCatastrophic, Reason: a.Err.Error(), Err: a.Err})
	default:
		r.learnRoundTrip(now)
		r.machine.Segment(now, a.Number, a.Number+1, a.Segment)
		r.noteInput(now)
	}
	held = r.machine.HeldAhead()
	return held, r.release(turn{receiving: true, now: now}) && err == nil
}
