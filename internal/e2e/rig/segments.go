package rig

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// Over puts the QP, or a new one, on a connection whose startup is over, with markers and CRCs.
func (e *End) Over(c net.Conn, role mpa.Role, change ...func(*mpa.Negotiated)) {
	e.T.Helper()
	n := mpa.Negotiated{
		Role: role, DDPVersion: 1, RDMAPVersion: 1, SendFirst: role == mpa.RoleInitiator, CRC: true,
		MarkersSend: true, MarkersReceive: true, IRD: 4, ORD: 4,
	}
	for _, f := range change {
		f(&n)
	}
	if e.QP == nil {
		e.QP = NewQP(e.T, e.PD, iwarp.QPConfig{})
	}
	Must(e.T, e.ModifyRTS(c, n, nil))
}

// A lane is one direction of a SegmentStream in memory, in which segments arrive in any order, and
// some of them more than once.
type lane struct {
	Mu      sync.Mutex
	Moved   *sync.Cond
	rand    *rand.Rand
	Pending []iwarp.SegmentArrival
	sent    uint64
	ahead   uint64 // arrivals that others should have come before
	next    uint64
	ended   bool
	closed  error
}

func newLane(seed uint64) *lane {
	l := &lane{rand: rand.New(rand.NewPCG(seed, 0))}
	l.Moved = sync.NewCond(&l.Mu)
	return l
}

// A Shuffled is one end of a SegmentStream in memory.
type Shuffled struct {
	In, out *lane
	name    testAddr
	pause   func() // before each arrival
	last    []byte
}

type testAddr string

func (testAddr) Network() string { return "memory" }

func (a testAddr) String() string { return string(a) }

// ErrShuffledReset is how a Shuffled ends that was reset.
var ErrShuffledReset = errors.New("reset")

// NewShuffled returns both ends. The arrivals follow from the seed.
func NewShuffled(seed uint64, pause func()) (a, b *Shuffled) {
	x, y := newLane(seed), newLane(seed+1)
	return &Shuffled{In: x, out: y, name: "a", pause: pause}, &Shuffled{In: y, out: x, name: "b", pause: pause}
}

// Send puts segments on their way.
func (s *Shuffled) Send(segments [][]byte) (n int, err error) {
	l := s.out
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.ended || l.closed != nil {
		return 0, net.ErrClosed
	}
	for _, b := range segments[:1+l.rand.IntN(len(segments))] {
		l.Pending = append(l.Pending, iwarp.SegmentArrival{Number: 5 + l.sent, Segment: bytes.Clone(b)})
		l.sent++
		n += len(b)
	}
	l.Moved.Broadcast()
	return n, nil
}

// Recv has any of what is pending arrive. What it gave before is overwritten.
func (s *Shuffled) Recv() (a iwarp.SegmentArrival, err error) {
	clear(s.last)
	if s.pause != nil {
		s.pause()
	}
	l := s.In
	l.Mu.Lock()
	defer l.Mu.Unlock()
	for len(l.Pending) == 0 && l.closed == nil {
		l.Moved.Wait()
	}
	if l.closed != nil {
		return a, l.closed
	}
	i := l.rand.IntN(len(l.Pending))
	a = l.Pending[i]
	if a.Number > l.next {
		l.ahead++
	}
	l.next = max(l.next, a.Number+1)
	if l.rand.IntN(8) > 0 || a.End {
		l.Pending[i] = l.Pending[0]
		l.Pending = l.Pending[1:]
	}
	a.Segment = bytes.Clone(a.Segment)
	s.last = a.Segment
	return a, nil
}

// CloseWrite ends the direction to the peer.
func (s *Shuffled) CloseWrite() error {
	l := s.out
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if !l.ended {
		l.ended = true
		l.Pending = append(l.Pending, iwarp.SegmentArrival{Number: 5 + l.sent, End: true})
		l.Moved.Broadcast()
	}
	return nil
}

func (l *lane) close(err error) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.closed == nil {
		l.closed = err
	}
	l.Moved.Broadcast()
}

// Close gives up both directions.
func (s *Shuffled) Close() error {
	s.In.close(net.ErrClosed)
	return nil
}

// Reset has the peer see the end at once.
func (s *Shuffled) Reset() error {
	s.In.close(net.ErrClosed)
	s.out.close(ErrShuffledReset)
	return nil
}

// MULPDU is what a segment carries, in bytes.
func (s *Shuffled) MULPDU() int { return 1000 }

// Bounds are those of the segments ahead of order.
func (s *Shuffled) Bounds() iwarp.SegmentBounds {
	return iwarp.SegmentBounds{First: 5, Segments: 1 << 15, Bytes: 1 << 22}
}

// LocalAddr is a name.
func (s *Shuffled) LocalAddr() net.Addr { return s.name }

// RemoteAddr is a name, too.
func (s *Shuffled) RemoteAddr() net.Addr { return testAddr("the other") }

// MeetShuffled connects two QPs over a SegmentStream.
func (s *Setup) MeetShuffled(t testing.TB, ini, res *End, pause func()) (iniErr, resErr error) {
	t.Helper()
	a, b := NewShuffled(rand.Uint64(), pause)
	t.Cleanup(func() { _ = a.Reset(); _ = b.Reset() })
	over := func(e *End, cfg iwarp.QPConfig, prepare func(*iwarp.QP) error, c *Shuffled, role mpa.Role) error {
		var err error
		if e.QP, err = e.PD.CreateQP(cfg); err != nil {
			return err
		}
		if prepare != nil {
			Must(t, prepare(e.QP))
		}
		n := mpa.Negotiated{Role: role, DDPVersion: 1, RDMAPVersion: 1, Enhanced: true, IRD: 16, ORD: 16,
			PeerToPeer: true, RTR: mpa.RTRWrite}
		return e.ModifyRTSOver(c, n, nil)
	}
	resErr = over(res, s.Accept.QP, s.Accept.Prepare, b, mpa.RoleResponder)
	return over(ini, s.QP, s.Prepare, a, mpa.RoleInitiator), resErr
}

// Negotiated is what an end of this role agrees on when it may send first.
func Negotiated(r mpa.Role) mpa.Negotiated {
	return mpa.Negotiated{DDPVersion: 1, RDMAPVersion: 1, Role: r, SendFirst: true}
}

// WantUndelivered expects that Close has told of a loss.
func WantUndelivered(t *testing.T, e *End, closed error) {
	t.Helper()
	for _, err := range []error{closed, e.Err()} {
		if !errors.Is(err, iwarp.ErrConnectionLost) || errors.Is(err, iwarp.ErrPeerClosed) {
			t.Errorf("ended with %v", err)
		}
	}
	if s := e.State(); s != iwarp.StateError {
		t.Errorf("the state is %v", s)
	}
}
