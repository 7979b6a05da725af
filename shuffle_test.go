package iwarp_test

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

// A lane is one direction of a SegmentStream in memory, in which segments arrive in any order, and
// some of them more than once.
type lane struct {
	mu      sync.Mutex
	moved   *sync.Cond
	rand    *rand.Rand
	pending []iwarp.SegmentArrival
	sent    uint64
	ahead   uint64 // arrivals that others should have come before
	next    uint64
	ended   bool
	closed  error
}

func newLane(seed uint64) *lane {
	l := &lane{rand: rand.New(rand.NewPCG(seed, 0))}
	l.moved = sync.NewCond(&l.mu)
	return l
}

// A shuffled is one end of a SegmentStream in memory.
type shuffled struct {
	in, out *lane
	name    testAddr
	pause   func() // before each arrival
	last    []byte
}

type testAddr string

func (testAddr) Network() string  { return "memory" }
func (a testAddr) String() string { return string(a) }

var errShuffledReset = errors.New("reset")

func newShuffled(seed uint64, pause func()) (a, b *shuffled) {
	x, y := newLane(seed), newLane(seed+1)
	return &shuffled{in: x, out: y, name: "a", pause: pause}, &shuffled{in: y, out: x, name: "b", pause: pause}
}

func (s *shuffled) Send(segments [][]byte) (octets int, err error) {
	l := s.out
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.closed != nil {
		return 0, net.ErrClosed
	}
	for _, b := range segments[:1+l.rand.IntN(len(segments))] {
		l.pending = append(l.pending, iwarp.SegmentArrival{Number: 5 + l.sent, Segment: bytes.Clone(b)})
		l.sent++
		octets += len(b)
	}
	l.moved.Broadcast()
	return octets, nil
}

// Recv has any of what is pending arrive. What it gave before is overwritten.
func (s *shuffled) Recv() (a iwarp.SegmentArrival, err error) {
	clear(s.last)
	if s.pause != nil {
		s.pause()
	}
	l := s.in
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.pending) == 0 && l.closed == nil {
		l.moved.Wait()
	}
	if l.closed != nil {
		return a, l.closed
	}
	i := l.rand.IntN(len(l.pending))
	a = l.pending[i]
	if a.Number > l.next {
		l.ahead++
	}
	l.next = max(l.next, a.Number+1)
	if l.rand.IntN(8) > 0 || a.End {
		l.pending[i] = l.pending[0]
		l.pending = l.pending[1:]
	}
	a.Segment = bytes.Clone(a.Segment)
	s.last = a.Segment
	return a, nil
}

func (s *shuffled) CloseWrite() error {
	l := s.out
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.ended = true
		l.pending = append(l.pending, iwarp.SegmentArrival{Number: 5 + l.sent, End: true})
		l.moved.Broadcast()
	}
	return nil
}

func (l *lane) close(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed == nil {
		l.closed = err
	}
	l.moved.Broadcast()
}

func (s *shuffled) Close() error {
	s.in.close(net.ErrClosed)
	return nil
}

func (s *shuffled) Reset() error {
	s.in.close(net.ErrClosed)
	s.out.close(errShuffledReset)
	return nil
}

func (s *shuffled) MULPDU() int { return 1000 }
func (s *shuffled) Bounds() iwarp.SegmentBounds {
	return iwarp.SegmentBounds{First: 5, Segments: 1 << 15, Octets: 1 << 22}
}
func (s *shuffled) LocalAddr() net.Addr  { return s.name }
func (s *shuffled) RemoteAddr() net.Addr { return testAddr("the other") }

// meetShuffled connects two QPs over a SegmentStream.
func (s *setup) meetShuffled(t testing.TB, ini, res *end, pause func()) (iniErr, resErr error) {
	t.Helper()
	a, b := newShuffled(rand.Uint64(), pause)
	t.Cleanup(func() { _ = a.Reset(); _ = b.Reset() })
	over := func(e *end, cfg iwarp.QPConfig, prepare func(*iwarp.QP) error, c *shuffled, role mpa.Role) error {
		var err error
		if e.QP, err = e.pd.CreateQP(cfg); err != nil {
			return err
		}
		if prepare != nil {
			must(t, prepare(e.QP))
		}
		n := mpa.Negotiated{Role: role, DDPVersion: 1, RDMAPVersion: 1, Enhanced: true, IRD: 16, ORD: 16, PeerToPeer: true, RTR: mpa.RTRWrite}
		return e.ModifyRTSOver(c, n, nil)
	}
	resErr = over(res, s.accept.QP, s.accept.Prepare, b, mpa.RoleResponder)
	return over(ini, s.QP, s.Prepare, a, mpa.RoleInitiator), resErr
}
