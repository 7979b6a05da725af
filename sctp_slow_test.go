package iwarp_test

import (
	"errors"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/association"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/sctpudp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// A linkedSession is a session over SCTP whose time is virtual.
type linkedSession struct{ *association.Session }

func (s linkedSession) Recv() (iwarp.SegmentArrival, error) {
	a, err := s.Session.Recv()
	return iwarp.SegmentArrival(a), err
}

func (s linkedSession) Bounds() iwarp.SegmentBounds { return iwarp.SegmentBounds(s.Session.Bounds()) }

// A linkedPair is two ends of an association in user space, over a link in memory.
type linkedPair struct {
	*testing.T
	active, passive *association.Association
	sockets         [2]*testrig.Socket // of the two
}

func newLinkedPair(t *testing.T, l testrig.Link) *linkedPair {
	t.Helper()
	return newHushedPair(t, l, new(hush))
}

// newHushedPair is the same with a silence that may fall.
func newHushedPair(t *testing.T, l testrig.Link, h *hush) *linkedPair {
	t.Helper()
	a, b := l.Sockets()
	client, server := sctpudp.New(hushedSocket{a, h, 0}, false, sctpudp.Config{}), sctpudp.New(hushedSocket{b, h, 1}, true, sctpudp.Config{})
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	from, err := client.Dial(t.Context(), server.Addr().(interface{ AddrPort() netip.AddrPort }).AddrPort())
	must(t, err)
	to, err := server.Accept(t.Context())
	must(t, err)
	last := engine.AbortSegment()
	return &linkedPair{
		t, association.New(from, association.Config{Machine: sctp.Config{Active: true}, LastWords: last, CloseUnused: true}),
		association.New(to, association.Config{Machine: sctp.Config{Listening: true}, LastWords: last}),
		[2]*testrig.Socket{a, b},
	}
}

// connect brings up a session.
func (p *linkedPair) connect(cfg iwarp.QPConfig) (ini, res *end) {
	p.Helper()
	ini, res = newEnd(p.T, iwarp.RNICConfig{}), newEnd(p.T, iwarp.RNICConfig{})
	over := func(e *end, s *association.Session, n mpa.Negotiated, err error) {
		must(p.T, err)
		e.QP, err = e.pd.CreateQP(cfg)
		must(p.T, err)
		must(p.T, e.ModifyRTSOver(linkedSession{s}, n, nil))
	}
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		s, err := p.passive.Accept(p.Context())
		must(p.T, err)
		n, err := s.AcceptSession(mpa.Answer{IRD: 16, ORD: 16})
		over(res, s, n, err)
	}()
	s, err := p.active.Begin(mpa.Offer{IRD: 16, ORD: 16})
	must(p.T, err)
	n, err := s.Answer(p.Context())
	over(ini, s, n, err)
	<-accepted
	return ini, res
}

// TestSCTPSlowSessions: sessions share a slow path, on which each would wait for many seconds if all that the others have
// queued went first. Their ends close while they have much to say: all of them go on all the time, and nothing is lost.
//
// Proves D30.
func TestSCTPSlowSessions(t *testing.T) {
	const sends = 5
	for loss, sessions := range map[float64]int{0.03: 6, 0.01: 20} {
		synctest.Test(t, func(t *testing.T) {
			p := newLinkedPair(t, testrig.Link{Delay: 40 * time.Millisecond, Rate: 1 << 20, Lose: testrig.Lossy(loss, 1)})
			var ends []*end
			for range sessions {
				ini, res := p.connect(deep())
				ends = append(ends, ini, res)
			}
			for i := 0; i < len(ends); i += 2 {
				postSends(ends[i], ends[i+1], sends)
			}
			began := time.Now()
			var closes sync.WaitGroup
			for i, e := range ends {
				closes.Go(func() {
					if err := e.Close(); err != nil {
						t.Errorf("session %d of %d, after %v: %v", i/2, sessions, time.Since(began), err)
					}
				})
			}
			closes.Wait()
			t.Logf("%d sessions with a loss of %v: %v", sessions, loss, time.Since(began))
			wantSends(t, sends, ends...)
		})
	}
}

// TestSCTPSlowShare: three sessions share a path of 64 KiB a second, and close one after the other while each has data under way. What
// one side sends fills the path's queue, and what the other waits for, acknowledgements among it, takes seconds through it: no session
// gets the octets that count as progress, and the association is never idle.
//
// Proves D30.
func TestSCTPSlowShare(t *testing.T) {
	const sends = 3
	for seed := range uint64(12) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newLinkedPair(t, testrig.Link{Delay: 18 * time.Millisecond, Rate: 64 << 10, Lose: testrig.Lossy(0.01, seed)})
				var ends []*end
				for range 3 {
					ini, res := p.connect(deep())
					ends = append(ends, ini, res)
				}
				var closes sync.WaitGroup
				for i := 0; i < len(ends); i += 2 {
					postSends(ends[i], ends[i+1], sends)
					time.Sleep(time.Duration(seed) * 50 * time.Millisecond)
				}
				for i, e := range ends {
					closes.Go(func() {
						time.Sleep(time.Duration(i) * time.Duration(seed) * 50 * time.Millisecond)
						should(t, e.Close())
					})
				}
				closes.Wait()
				wantSends(t, sends, ends...)
			})
		})
	}
}

// TestSCTPCloseThenExit: a program that ends when Close has returned takes nothing along, on a path of 0.6 s there and back that
// loses 3 %: the other end has received all, and its Close returns too.
//
// Proves D30.
func TestSCTPCloseThenExit(t *testing.T) {
	const sends = 2
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			p := newLinkedPair(t, testrig.Link{Delay: 300 * time.Millisecond, Lose: testrig.Lossy(0.03, seed)})
			ini, res := p.connect(iwarp.QPConfig{SendDepth: 64, RecvDepth: 64, CloseTimeout: 20 * time.Second})
			postSends(ini, res, sends)
			must(t, p.closeThenExit(ini, res))
			wantSends(t, sends, ini, res)
		})
	}
}

// closeThenExit closes both ends at once, and has the program of each end then.
func (p *linkedPair) closeThenExit(ini, res *end) error {
	var errs [2]error
	var closes sync.WaitGroup
	for i, e := range []*end{ini, res} {
		closes.Go(func() {
			errs[i] = e.Close()
			_ = p.sockets[i].Close()
		})
	}
	closes.Wait()
	return errors.Join(errs[:]...)
}

// TestSCTPHalfClosed: what the peer says long after we have closed our half arrives, as over TCP.
//
// Proves D33.
func TestSCTPHalfClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newLinkedPair(t, testrig.Link{Delay: 40 * time.Millisecond})
		ini, res := p.connect(iwarp.QPConfig{HalfClose: true})
		must(t, ini.CloseWrite())
		time.Sleep(10 * time.Minute)
		sink, src := ini.mr(1000, iwarp.LocalWrite), res.filled(1000, 1, 0)
		ini.postRecv(1, sink.Slice(0, 1000))
		must(t, res.Send(t.Context(), src.Slice(0, 1000)))
		ini.wantReceived(1, iwarp.StatusSuccess)
		finish(t, ini, res)
	})
}
