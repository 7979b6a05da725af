package association_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/association"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// A queue is one side of an SCTP association in memory that delivers in order, one message after the other, as the
// kernel's does: with one that is not taken, all others wait, and so does the sender, when the window is full.
type queue struct {
	*wire
	in    chan sctp.Message
	peer  *queue
	taken atomic.Int64 // messages that were handed over
}

func queues() (a, b *queue) {
	a, b = &queue{wire: newWire(1), in: make(chan sctp.Message, 32)},
		&queue{wire: newWire(2), in: make(chan sctp.Message, 32)}
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
				q.taken.Add(1)
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
	return over(t, x, y)
}

func over(t *testing.T, x, y association.Carrier) (active, passive *association.Association) {
	active = association.New(x, association.Config{Machine: sctp.Config{Active: true}})
	passive = association.New(y, association.Config{Machine: sctp.Config{Listening: true},
		LastWords: []byte("last words")})
	t.Cleanup(func() { active.Close("the test is over"); <-passive.Gone() })
	return active, passive
}

// Segments of fair bytes take a KiB of what may wait to be received: of those, several sessions have 1024 at most, if
// one of them has 64, which is also what an only session has.
const fair, atMost, alone = 1024 - 128, 1024, 64

// flood sends segments of that size until that fails, and returns how many went.
func flood(s *association.Session, n int) (sent int, err error) { return floodOf(s, n, fair) }

func floodOf(s *association.Session, n, size int) (sent int, err error) {
	for sent < n && err == nil {
		if _, err = s.Send([][]byte{binary.BigEndian.AppendUint32(make([]byte, 0, size),
			uint32(sent+1))[:size]}); err == nil {
			sent++
		}
	}
	return sent, err
}

// receives expects the segments up to one, from the one given on.
func receives(t *testing.T, s *association.Session, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		if v, err := s.Recv(); err != nil || v.Number != uint64(i) || v.End {
			t.Fatalf("segment %d: %+v (%v)", i, v.Number, err)
		}
	}
}

// TestSlowAlone: the only session holds its peer back, for as long as it takes, and loses nothing.
func TestSlowAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := queues()
		active, passive := over(t, x, y)
		a, b := connect(t, active, passive)
		done := make(chan int, 1)
		go func() { n, _ := flood(a, 5000); done <- n }()
		time.Sleep(time.Hour)
		select {
		case n := <-done:
			t.Errorf("%d segments are not held back", n)
		default:
		}
		if n := y.taken.Load() - 1; n != alone { // without the Initiate
			t.Errorf("%d segments are kept", n)
		}
		receives(t, b, 1, 5000)
		if n := <-done; n != 5000 {
			t.Errorf("%d segments", n)
		}
	})
}

// TestUnreceived: of several sessions, one that nobody receives from ends when it has kept others waiting, with an
// error that says so on this side and the last words on the other. The others go on.
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
		if n--; !errors.Is(err, lowerlayer.ErrOverrun) || n != atMost+1 {
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

// TestSlowAmongOthers: a session that is slow, and keeps others waiting, is not one that nobody receives from, even if
// it has to receive many small segments before there is room for a large one.
func TestSlowAmongOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, passive := inOrder(t)
		a, b := connect(t, active, passive)
		connect(t, active, passive)
		go func() {
			_, _ = floodOf(a, 100, 4)
			_, _ = flood(a, 1500)
		}()
		for i := range 1600 {
			time.Sleep(4 * time.Second)
			receives(t, b, i+1, i+1)
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
			testrig.Must(t, s.Reject(nil, 0, 0))
		}()
		_, _, err := dial(ctx, active, mpa.Offer{})
		var refused *sctp.Refusal
		if !errors.As(err, &refused) {
			t.Errorf("dialed: %v", err)
		}
		receives(t, a, 1, 500)
	})
}

// wantTaken expects how many messages were handed over.
func (q *queue) wantTaken(t *testing.T, want int64) {
	t.Helper()
	synctest.Wait()
	if got := q.taken.Load(); got != want {
		t.Errorf("%d messages were taken, want %d", got, want)
	}
}

// TestRoomForOthers: what one session receives makes room for another at once, and so does one that is given up.
func TestRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := queues()
		active, passive := over(t, x, y)
		a1, b1 := connect(t, active, passive)
		a2, b2 := connect(t, active, passive)
		const initiates = 2
		_, err := flood(a2, 900)
		testrig.Must(t, err)
		go func() { _, _ = flood(a1, 200) }()
		time.Sleep(time.Second)
		for i := range 10 {
			y.wantTaken(t, initiates+atMost+1+int64(i))
			receives(t, b2, i+1, i+1)
		}
		receives(t, b1, 1, 1)
		y.wantTaken(t, initiates+atMost+1+11)
		testrig.Must(t, b2.Reset())
		y.wantTaken(t, initiates+900+200)
	})
}

// TestOverrun: a session that keeps others waiting for 5 s ends there and then. What it has not received is in the way
// of others until it is closed.
func TestOverrun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := queues()
		w := &heldWire{Carrier: y}
		active, passive := over(t, x, w)
		a1, b1 := connect(t, active, passive)
		a2, _ := connect(t, active, passive)
		const initiates = 2
		b1.Held(2000)
		_, err := flood(a1, atMost+1)
		testrig.Must(t, err)
		began := time.Now()
		v, err := a1.Recv()
		if string(v.Segment) != "last words" {
			t.Errorf("the peer got %q (%v)", v.Segment, err)
		}
		wantTook(t, began, 5*time.Second)
		w.wantHolds(t, true, false)

		go func() { _, _ = flood(a2, 100) }()
		y.wantTaken(t, initiates+atMost+1+alone)
		testrig.Must(t, b1.Close())
		wantGone(t, b1, lowerlayer.ErrOverrun)
		y.wantTaken(t, initiates+atMost+1+100)
	})
}

// TestAloneForAWhile: a session that held its peer back while it was alone has as long as any when there is another.
func TestAloneForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, passive := inOrder(t)
		a1, b1 := connect(t, active, passive)
		a2, b2 := connect(t, active, passive)
		testrig.Must(t, a2.CloseWrite())
		time.Sleep(time.Second)
		go func() { _, _ = flood(a1, 1500) }()
		time.Sleep(time.Second)
		testrig.Must(t, b2.CloseWrite())
		time.Sleep(time.Hour)
		_, err := passive.Begin(mpa.Offer{})
		testrig.Must(t, err)
		for i := range 1500 {
			time.Sleep(4 * time.Second)
			receives(t, b1, i+1, i+1)
		}
	})
}
