package association_test

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/association"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

func pair(t *testing.T, seed uint64) (active, passive *association.Association) {
	a, b := wires(seed)
	active = association.New(a, association.Config{Machine: sctp.Config{Active: true},
		LastWords: []byte("T"), CloseUnused: true})
	passive = association.New(b, association.Config{Machine: sctp.Config{Listening: true}, LastWords: []byte("T")})
	t.Cleanup(func() { active.Close("the test is over"); <-passive.Gone() })
	return active, passive
}

// dial asks for a session, and waits for the answer.
func dial(ctx context.Context, a *association.Association, o mpa.Offer) (*association.Session, mpa.Negotiated, error) {
	s, err := a.Begin(o)
	if err != nil {
		return nil, mpa.Negotiated{}, err
	}
	n, err := s.Answer(ctx)
	return s, n, err
}

// connect brings up a session, whose private data goes both ways.
func connect(t *testing.T, active, passive *association.Association) (a, b *association.Session) {
	t.Helper()
	answered := make(chan *association.Session)
	go func() {
		s, err := passive.Accept(t.Context())
		if err == nil {
			_, err = s.Accept(mpa.Answer{PrivateData: s.Request().PrivateData})
		}
		if err != nil {
			t.Error(err)
		}
		answered <- s
	}()
	a, n, err := dial(t.Context(), active, mpa.Offer{PrivateData: []byte("hi")})
	testrig.Must(t, err)
	if string(n.PrivateData) != "hi" || n.Role != mpa.RoleInitiator {
		t.Errorf("agreed on %+v", n)
	}
	return a, <-answered
}

// pump sends numbered segments, and then the end.
func pump(t *testing.T, s *association.Session, n int) {
	var batch [][]byte
	for i := range n {
		batch = append(batch, binary.BigEndian.AppendUint32(make([]byte, 0, 100), uint32(i+1))[:4+i%90])
		for len(batch) > 20 || i == n-1 && len(batch) > 0 {
			taken, err := s.Send(batch)
			testrig.Must(t, err)
			for ; taken > 0; batch = batch[1:] {
				taken -= len(batch[0])
			}
		}
	}
	testrig.Must(t, s.CloseWrite())
}

// drain receives until all before the end has come, and returns in what order.
func drain(t *testing.T, s *association.Session) (order []uint64) {
	for last := uint64(1 << 62); uint64(len(order)) < last-1; {
		v, err := s.Recv()
		switch {
		case err != nil:
			t.Errorf("after %d segments: %v", len(order), err)
			return order
		case v.End:
			last = v.Number
		case uint64(binary.BigEndian.Uint32(v.Segment)) != v.Number:
			t.Errorf("segment %d begins with % x", v.Number, v.Segment[:4])
		default:
			order = append(order, v.Number)
		}
	}
	return order
}

// TestSessions: several sessions of one association at a time, both ways, over a carrier that keeps no order: all
// comes once, ahead of order too, and the association ends with its last session.
//
// Proves C04.
func TestSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, passive := pair(t, 1)
		const sessions, segments = 3, 500
		done := make(chan []uint64)
		for range sessions {
			a, b := connect(t, active, passive)
			for _, s := range []*association.Session{a, b} {
				go pump(t, s, segments)
				go func() { done <- drain(t, s) }()
			}
		}
		for range 2 * sessions {
			order := <-done
			if slices.IsSorted(order) {
				t.Error("nothing came ahead of its turn")
			}
			slices.Sort(order)
			if len(order) != segments || order[0] != 1 || order[segments-1] != segments ||
				len(slices.Compact(order)) != segments {
				t.Errorf("%d segments, %v", len(order), order)
			}
		}
		<-active.Gone()
		<-passive.Gone()
	})
}

// TestRefusal: a rejection, and a request that nobody takes.
//
// Proves C03.
func TestRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, passive := pair(t, 2)
		told := make(chan struct{})
		go func() {
			s, err := passive.Accept(t.Context())
			testrig.Must(t, err)
			testrig.Must(t, s.Reject([]byte("no"), 1, 2))
			if err := s.Reject(nil, 0, 0); !errors.Is(err, sctp.ErrState) {
				t.Errorf("again: %v", err)
			}
			<-s.PeerAcked()
			told <- struct{}{}
		}()
		s, _, err := dial(t.Context(), active, mpa.Offer{})
		<-s.PeerAcked() // there is nothing more to say
		var r *sctp.Refusal
		if !errors.As(err, &r) || string(r.PrivateData) != "no" || r.PeerIRD != 1 || r.PeerORD != 2 {
			t.Errorf("got %v", err)
		}
		<-active.Gone() // it was the only session
		<-told
	})
	synctest.Test(t, func(t *testing.T) {
		a, _ := wires(3)
		association.New(a.peer, association.Config{})
		active := association.New(a, association.Config{Machine: sctp.Config{Active: true}})
		_, _, err := dial(t.Context(), active, mpa.Offer{})
		var r *sctp.Refusal
		if !errors.As(err, &r) || !r.Provider {
			t.Errorf("got %v", err)
		}
		active.Close("over")
	})
}

// TestTold: a session that both sides have closed is over when the peer's acknowledgement of our Terminate is here, or
// when the association is lost.
func TestTold(t *testing.T) {
	for _, lost := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			x, y := wires(30)
			active := association.New(x, association.Config{Machine: sctp.Config{Active: true}})
			passive := association.New(y, association.Config{Machine: sctp.Config{Listening: true}})
			t.Cleanup(func() { active.Close("the test is over"); <-passive.Gone() })
			a, b := connect(t, active, passive)
			time.Sleep(time.Second) // the Initiate is acknowledged
			x.slow = time.Second
			testrig.Must(t, b.CloseWrite())
			drain(t, a)
			began := time.Now()
			testrig.Must(t, a.Close())
			time.Sleep(x.slow - time.Millisecond)
			select {
			case <-a.PeerAcked():
				t.Error("told before the acknowledgement")
			default:
			}
			if lost {
				y.closeBoth(errAbort)
			}
			<-a.PeerAcked()
			if took := time.Since(began); lost == (took >= x.slow) || took > 2*x.slow {
				t.Errorf("told after %v; lost: %t", took, lost)
			}
			if err := a.LossError(); lost != errors.Is(err, errAbort) || !lost && err != nil {
				t.Errorf("lost: %t, and told %v", lost, err)
			}
		})
	}
}

// TestCanceled: a context that ends takes the request back, and the other side does not get it any more.
func TestCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, passive := pair(t, 4)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := dial(ctx, active, mpa.Offer{}); !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "Initiate") {
			t.Errorf("got %v", err)
		}
		<-active.Gone()
		if _, err := passive.Accept(t.Context()); !errors.Is(err, errShutdown) {
			t.Errorf("got %v", err)
		}
	})
}

// TestWithdrawnRequest: a request that was accepted too late.
func TestWithdrawnRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, passive := pair(t, 5)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _, _ = dial(ctx, active, mpa.Offer{}) }()
		s, err := passive.Accept(t.Context())
		testrig.Must(t, err)
		cancel()
		time.Sleep(time.Second)
		if _, err := s.Accept(mpa.Answer{}); !errors.Is(err, sctp.ErrCanceled) {
			t.Errorf("got %v", err)
		}
	})
}

// TestFailure: a violation reaches the consumer among the segments, who may still send its last words.
func TestFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := wires(9)
		a := association.New(w, association.Config{Machine: sctp.Config{Listening: true}})
		heard := make(chan sctp.Message, 10)
		go other.Run(func(m sctp.Message) { heard <- m }, func(uint16, uint64) {}, func(error) {})
		say := func(ppid uint32, data ...byte) { testrig.Must(t, other.Send(sctp.Message{PPID: ppid, Data: data})) }
		say(17, 0, 0, 0, 1)
		s, err := a.Accept(t.Context())
		testrig.Must(t, err)
		_, err = s.Accept(mpa.Answer{})
		testrig.Must(t, err)
		<-heard // Accept
		say(16, 0, 1, 'A')
		if v, err := s.Recv(); err != nil || string(v.Segment) != "A" {
			t.Errorf("got %+v (%v)", v, err)
		}
		say(17, 0, 2, 0, 2) // a second Accept
		v, err := s.Recv()
		var violation *sctp.Violation
		if err != nil || !errors.As(v.Err, &violation) || violation.Rule != sctp.RuleSequence || v.Number != 2 {
			t.Errorf("got %+v (%v)", v, err)
		}
		_, err = s.Send([][]byte{[]byte("T")})
		testrig.Must(t, err)
		testrig.Must(t, s.CloseWrite())
		for range 2 {
			m := <-heard
			if want := map[uint32]string{16: "\x00\x01T", 17: "\x00\x02\x00\x04"}[m.PPID]; string(m.Data) != want {
				t.Errorf("said % x", m.Data)
			}
		}
		a.Close("over")
	})
}

// TestStopListening: a request that waits for Accept is refused by the provider, and so is each that comes afterwards;
// the session that shares the association goes on.
//
// Proves C07.
func TestStopListening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, passive := pair(t, 3)
		a, b := connect(t, active, passive)
		refused := make(chan error)
		ask := func() {
			_, _, err := dial(t.Context(), active, mpa.Offer{})
			refused <- err
		}
		go ask()
		time.Sleep(time.Second) // the request waits for Accept
		passive.StopListening()
		go ask()
		for range 2 {
			var r *sctp.Refusal
			if err := <-refused; !errors.As(err, &r) || !r.Provider {
				t.Errorf("refused with %v", err)
			}
		}
		for _, s := range []*association.Session{a, b} {
			go pump(t, s, 10)
		}
		if n := len(drain(t, a)) + len(drain(t, b)); n != 20 {
			t.Errorf("%d segments have come", n)
		}
	})
}

// TestMoved: what a session sends has moved, and what others of its association send and receive; what comes for it has
// not, as its peer could go on sending for ever.
func TestMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, passive := inOrder(t)
		a, b := connect(t, active, passive)
		c, d := connect(t, active, passive)
		synctest.Wait()
		all := []*association.Session{a, b, c, d}
		for from, to := range map[*association.Session]*association.Session{a: b, b: a} {
			var before [4]uint64
			for i, s := range all {
				before[i] = s.Moved()
			}
			_, err := flood(from, 1)
			testrig.Must(t, err)
			receives(t, to, 1, 1)
			synctest.Wait()
			for i, s := range all {
				grown := s.Moved() - before[i]
				// with what stands in front of a segment
				if s == to && grown != 0 || s != to && (grown < fair || grown > fair+100) {
					t.Errorf("session %d has moved %d bytes more, of %d that came for it: %t", i, grown, fair, s == to)
				}
			}
		}
	})
}
