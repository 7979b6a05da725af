package iwarp_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/emulation"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// A storm is one QP that many goroutines use all the time, while it is connected again and again. None of them knows of
// that.
type storm struct {
	*rig.End
	over   chan struct{} // closed when they are to stop
	users  sync.WaitGroup
	nextID atomic.Uint64
	posted [2]sync.Map // IDs of requests, and of receives, to true when they were completed
	strays atomic.Int64
}

// Those of posted.
const (
	ofSends = iota
	ofReceives
)

func newStorm(t *testing.T) *storm {
	s := &storm{End: rig.NewEnd(t, iwarp.RNICConfig{}), over: make(chan struct{})}
	var cqs [2]*iwarp.CQ
	for i := range cqs {
		cq, err := s.RNIC.CreateCQ(128)
		rig.Must(t, err)
		cqs[i] = cq
	}
	cfg := iwarp.QPConfig{SendCQ: cqs[0], RecvCQ: cqs[1], SendDepth: 64, RecvDepth: 64}
	cfg.RNR.Messages = 64
	s.QP = rig.NewQP(t, s.PD, cfg)
	return s
}

// run has a goroutine do something until the storm is over.
func (s *storm) run(f func()) {
	s.users.Go(func() {
		for {
			select {
			case <-s.over:
				return
			default:
				f()
				runtime.Gosched()
			}
		}
	})
}

// uses begins all that is done with the QP.
func (s *storm) uses() {
	for range 2 {
		s.run(func() { s.posts(ofSends, func(id uint64) error { return s.PostSend(&iwarp.SendWR{ID: id}) }) })
		s.run(func() { s.posts(ofReceives, func(id uint64) error { return s.PostRecv(&iwarp.RecvWR{ID: id}) }) })
		s.run(func() { s.polls(s.SendCQ(), ofSends) })
		s.run(func() { s.polls(s.RecvCQ(), ofReceives) })
	}
	s.run(func() {
		s.posts(ofSends, func(id uint64) error {
			n, err := s.PostSends([]iwarp.SendWR{{ID: id, Op: iwarp.OpWrite}, {Op: iwarp.OpWrite, Unsignaled: true}})
			if n > 0 {
				return nil
			}
			return err
		})
	})
	s.run(func() { s.waits(func(ctx context.Context) { _ = s.SendCQ().Wait(ctx) }) })
	s.run(func() { s.waits(func(ctx context.Context) { _ = s.RecvCQ().Wait(ctx) }) })
	s.run(func() {
		s.RecvCQ().Arm(true)
		_, _, _, _ = s.State(), s.Err(), s.Done(), s.RemoteAddr()
		_, _, _ = s.Query(), s.Stats(), s.Negotiated()
		_ = emulation.Deny(s.QP, 0)
		s.rest()
	})
}

// posts posts a request that has a number of its own. There may be no room, and no connection.
func (s *storm) posts(to int, post func(id uint64) error) {
	id := s.nextID.Add(1)
	s.posted[to].Store(id, false)
	if err := post(id); err != nil {
		s.posted[to].Delete(id)
		s.rest()
	}
}

// polls takes what has come. The second request of a list has no number, and a completion only if it fails.
func (s *storm) polls(cq *iwarp.CQ, of int) {
	var wc [8]iwarp.WC
	n := cq.Poll(wc[:])
	for i := range n {
		if wc[i].ID != 0 && !s.posted[of].CompareAndSwap(wc[i].ID, false, true) {
			s.strays.Add(1)
		}
	}
	if n == 0 {
		s.rest()
	}
}

// waits waits for a moment.
func (s *storm) waits(wait func(ctx context.Context)) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Millisecond)
	defer cancel()
	wait(ctx)
	s.rest()
}

// rest leaves the processor to others.
func (*storm) rest() { time.Sleep(100 * time.Microsecond) }

// ends stops all of it, and expects that each request was completed once.
func (s *storm) ends() {
	close(s.over)
	s.users.Wait()
	rig.Should(s.T, s.Close())
	for emulation.Waiting(s.SendCQ())+emulation.Waiting(s.RecvCQ()) > 0 {
		s.polls(s.SendCQ(), ofSends)
		s.polls(s.RecvCQ(), ofReceives)
	}
	var lost [2]int
	for to := range s.posted {
		s.posted[to].Range(func(_, done any) bool {
			if !done.(bool) {
				lost[to]++
			}
			return true
		})
	}
	if n := s.strays.Load(); n > 0 || lost != [2]int{} {
		s.T.Errorf("%d completions of nothing; %d requests and %d receives were never completed", n, lost[0], lost[1])
	}
}

// An outlived is a connection whose Read does not end with it: it comes back when it is told to, long after that.
type outlived struct {
	net.Conn
	closed atomic.Bool
	back   <-chan struct{}
	last   error // nil: with bytes that are no FPDU
}

func (c *outlived) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

// CloseWrite has the connection have halves.
func (c *outlived) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

func (c *outlived) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil || !c.closed.Load() {
		return n, err
	}
	if <-c.back; c.last == nil {
		return copy(b, "\xff\xff\xff\xff\xff\xff\xff\xff"), nil
	}
	return 0, c.last
}

// TestReconnectInAStorm connects one QP again and again, in each way in which a connection ends, while many goroutines
// post, poll, wait and ask, and while the goroutines of the connections before are still there and come back one after
// another. What is written in each round arrives at the peer of that round, and no request is lost, or completed twice.
func TestReconnectInAStorm(t *testing.T) {
	s := newStorm(t)
	s.uses()
	value, sink := s.MR(8, 0), s.MR(8, iwarp.LocalWrite)
	var old []chan struct{}
	for round := range 60 {
		back := make(chan struct{})
		if old = append(old, back); len(old) > 3 {
			close(old[0]) // in the middle of this round
			old = old[1:]
		}
		near, far := rig.TCPPair(t)
		switch lasts := []error{io.EOF, io.ErrUnexpectedEOF, nil}; round % 4 {
		case 0, 1, 2:
			near = &outlived{Conn: near, back: back, last: lasts[round%4]}
		}
		p := s.meets(near, far)
		away := p.MR(8, iwarp.RemoteWrite|iwarp.RemoteRead)
		binary.BigEndian.PutUint64(value.Bytes(), uint64(round)+1)
		s.calls(func() (int, error) { return s.Write(rig.Within(t), value.Slice(0, 8), away.Remote(0)) })
		s.calls(func() (int, error) { return s.Read(rig.Within(t), sink.Slice(0, 8), away.Remote(0)) })
		if got := binary.BigEndian.Uint64(sink.Bytes()); got != uint64(round)+1 {
			t.Errorf("round %d: the peer has %d", round, got)
		}
		ends := []func() error{
			func() error { return s.Modify(iwarp.StateError) },
			p.Abort,
			far.Close,
			func() error { return s.Modify(iwarp.StateTerminate) },
			func() error { defer p.CloseWrite(); return s.CloseWrite() },
		}
		rig.Should(t, ends[round%len(ends)]())
		rig.Wait(t, s.Done(), "the end of the connection")
		_ = p.Abort()
		rig.Must(t, s.Modify(iwarp.StateIdle))
	}
	for _, back := range old {
		close(back)
	}
	s.ends()
}

// calls calls until there is room in the Send Queue.
func (s *storm) calls(call func() (int, error)) {
	s.T.Helper()
	rig.Until(s.T, func() bool {
		_, err := call()
		if err != nil && !errors.Is(err, iwarp.ErrQueueFull) {
			s.T.Fatal(err)
		}
		return err == nil
	}, "room in the Send Queue")
}

// meets gives the QP a connection, and returns its peer, which takes and sends messages as they come.
func (s *storm) meets(near, far net.Conn) *rig.End {
	s.T.Helper()
	p := rig.NewEnd(s.T, iwarp.RNICConfig{})
	cfg := iwarp.QPConfig{Linger: -1, CloseTimeout: testrig.Soon, CloseLimit: -1}
	cfg.RNR.Messages = 64
	p.QP = rig.NewQP(s.T, p.PD, cfg)
	n := mpa.Negotiated{Role: mpa.RoleInitiator, DDPVersion: 1, RDMAPVersion: 1, SendFirst: true, CRC: true}
	n.IRD, n.ORD = 4, 4
	rig.Must(s.T, p.ModifyRTS(far, n, nil))
	rig.Must(s.T, s.ModifyRTS(near, n, nil))
	go func() {
		var wc [16]iwarp.WC
		for {
			select {
			case <-p.Done():
				return
			default:
			}
			for p.PostRecv(&iwarp.RecvWR{}) == nil {
			}
			_ = p.PostSend(&iwarp.SendWR{})
			if p.SendCQ().Poll(wc[:]) == 0 {
				s.rest()
			}
		}
	}()
	return p
}

// TestPostsWhileReconnecting: a post that meets a connection which has just ended says how it has ended, or goes to the
// QP's next one. It never fails because of the state of that.
func TestPostsWhileReconnecting(t *testing.T) {
	s := newStorm(t)
	for range 4 {
		s.run(func() { s.postsUntilEnded(func() error { return s.PostRecv(&iwarp.RecvWR{}) }) })
		s.run(func() { s.postsUntilEnded(func() error { return s.PostSend(&iwarp.SendWR{Unsignaled: true}) }) })
		s.run(func() {
			s.postsUntilEnded(func() error {
				_, err := s.PostSends([]iwarp.SendWR{{Unsignaled: true}})
				return err
			})
		})
	}
	for _, cq := range []*iwarp.CQ{s.SendCQ(), s.RecvCQ()} {
		s.run(func() { cq.Poll(make([]iwarp.WC, 64)) })
	}
	for range 400 {
		near, far := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, far) }()
		s.Over(near, mpa.RoleInitiator)
		rig.Must(t, s.Modify(iwarp.StateError))
		rig.Wait(t, s.Done(), "the end of the connection")
		rig.Must(t, s.Modify(iwarp.StateIdle))
	}
	close(s.over)
	s.users.Wait()
}

// postsUntilEnded posts as long as a connection takes that.
func (s *storm) postsUntilEnded(post func() error) {
	for range 64 {
		switch err := post(); {
		case err == nil:
		case errors.Is(err, iwarp.ErrQueueFull):
			return
		case !errors.Is(err, iwarp.ErrClosed):
			s.T.Errorf("a post: %v", err)
			return
		}
	}
}

// TestCloseWhileReconnecting: a QP that gets another connection just when the last has been closed is closed all the
// same, and holds no connection.
func TestCloseWhileReconnecting(t *testing.T) {
	for name, end := range map[string]func(e *rig.End) error{
		"Close": func(e *rig.End) error { return e.Close() }, "Abort": func(e *rig.End) error { return e.Abort() },
		"RNIC.Close": func(e *rig.End) error { return e.RNIC.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			for range 100 {
				e := rig.NewEnd(t, iwarp.RNICConfig{})
				near, far := net.Pipe()
				e.Over(near, mpa.RoleInitiator)
				var again sync.WaitGroup
				again.Go(func() { reconnects(e) })
				go func() { _, _ = io.Copy(io.Discard, far) }()
				rig.Should(t, end(e))
				if s := e.State(); s == iwarp.StateRTS {
					t.Fatalf("closed, and in state %v", s)
				}
				again.Wait()
			}
		})
	}
}

// reconnects gives a QP another connection as soon as the last has ended, as long as it takes one.
func reconnects(e *rig.End) {
	for {
		<-e.Done()
		near, far := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, far) }()
		n := rig.Negotiated(mpa.RoleInitiator)
		for e.Modify(iwarp.StateIdle) == nil {
			if e.ModifyRTS(near, n, nil) == nil {
				break
			}
		}
		if e.State() != iwarp.StateRTS {
			_, _ = near.Close(), far.Close()
			return
		}
	}
}
