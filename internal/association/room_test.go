package association_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/association"
	"github.com/goiwarp/iwarp/internal/carrier"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// A queue is one side of an SCTP association in memory that delivers in order, one message after the other, as the kernel's does:
// with one that is not taken, all others wait, and so does the sender, when the window is full.
type queue struct {
	*wire
	in   chan sctp.Message
	peer *queue
}

func queues() (a, b *queue) {
	a, b = &queue{wire: newWire(1), in: make(chan sctp.Message, 32)}, &queue{wire: newWire(2), in: make(chan sctp.Message, 32)}
	a.peer, b.peer = b, a
	a.wire.peer, b.wire.peer = b.wire, a.wire
	return a, b
}

func (q *queue) Send(m sctp.Message) error {
	q.mu.Lock()
	n := q.sent[m.Stream]
	q.sent[m.Stream]++
	q.mu.Unlock()
	select {
	case q.peer.in <- m:
		go q.acknowledge(m.Stream, n)
		return nil
	case <-q.over:
		return net.ErrClosed
	}
}

func (q *queue) Run(receive func(sctp.Message), acked func(uint16, uint64), lost func(error)) {
	var tasks sync.WaitGroup
	tasks.Go(func() {
		for {
			select {
			case m := <-q.in:
				receive(m)
			case <-q.over:
				return
			}
		}
	})
	q.wire.Run(receive, acked, lost)
}

func inOrder(t *testing.T) (active, passive *association.Association) {
	x, y := queues()
	active = association.New(x, association.Config{Machine: sctp.Config{Active: true}})
	passive = association.New(y, association.Config{Machine: sctp.Config{Listening: true}, LastWords: []byte("last words")})
	t.Cleanup(func() { active.Close("the test is over"); <-passive.Gone() })
	return active, passive
}

// flood sends segments of 1000 octets until that fails, and returns how many went.
func flood(s *association.Session, n int) (sent int, err error) {
	for sent < n && err == nil {
		if _, err = s.Send([][]byte{binary.BigEndian.AppendUint32(make([]byte, 0, 1000), uint32(sent+1))[:1000]}); err == nil {
			sent++
		}
	}
	return sent, err
}

// TestSlowAlone: the only session holds its peer back, for as long as it takes, and loses nothing.
func TestSlowAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, passive := inOrder(t)
		a, b := connect(t, active, passive)
		done := make(chan int, 1)
		go func() { n, _ := flood(a, 5000); done <- n }()
		time.Sleep(time.Hour)
		select {
		case n := <-done:
			t.Errorf("%d segments are not held back", n)
		default:
		}
		for i := range 5000 {
			if v, err := b.Recv(); err != nil || v.Number != uint64(i+1) {
				t.Fatalf("segment %d: %+v (%v)", i, v.Number, err)
			}
		}
		if n := <-done; n != 5000 {
			t.Errorf("%d segments", n)
		}
	})
}

// TestUnreceived: of several sessions, one that nobody receives from ends when it has kept others waiting, with an error
// that says so on this side and the last words on the other. The others go on.
func TestUnreceived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, passive := inOrder(t)
		a1, b1 := connect(t, active, passive)
		a2, b2 := connect(t, active, passive)
		go func() { _, _ = flood(a1, 5000) }()
		time.Sleep(time.Second)
		go pump(t, a2, 500)
		if got := drain(t, b2); len(got) != 500 {
			t.Errorf("the other: %d segments", len(got))
		}
		var err error
		n := 0
		for ; err == nil; n++ {
			_, err = b1.Recv()
		}
		if !errors.Is(err, carrier.ErrOverrun) || n < 900 || n > 1100 {
			t.Errorf("after %d segments: %v", n, err)
		}
		if v, err := a1.Recv(); err != nil || string(v.Segment) != "last words" {
			t.Errorf("the peer got %q (%v)", v.Segment, err)
		}
		testrig.Must(t, b1.Close())
		go pump(t, b2, 500)
		if got := drain(t, a2); len(got) != 500 {
			t.Errorf("back: %d segments", len(got))
		}
	})
}

// TestSlowAmongOthers: a session that is slow, and keeps others waiting, is not one that nobody receives from.
func TestSlowAmongOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, passive := inOrder(t)
		a, b := connect(t, active, passive)
		connect(t, active, passive)
		go func() { _, _ = flood(a, 1500) }()
		for i := range 1500 {
			time.Sleep(4 * time.Second)
			if v, err := b.Recv(); err != nil || v.Number != uint64(i+1) {
				t.Fatalf("segment %d: %+v (%v)", i, v.Number, err)
			}
		}
	})
}

// TestNoLongerAlone: a session that holds its peer back gives way to another.
func TestNoLongerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, passive := inOrder(t)
		a, b := connect(t, active, passive)
		go func() { _, _ = flood(b, 500) }()
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() {
			s, err := passive.Accept(ctx)
			testrig.Must(t, err)
			testrig.Must(t, s.RejectSession(nil, 0, 0))
		}()
		_, _, err := dial(ctx, active, mpa.Offer{})
		var refused *sctp.Refusal
		if !errors.As(err, &refused) {
			t.Errorf("dialled: %v", err)
		}
		for i := range 500 {
			if v, err := a.Recv(); err != nil || v.Number != uint64(i+1) {
				t.Fatalf("segment %d: %+v (%v)", i, v.Number, err)
			}
		}
	})
}
