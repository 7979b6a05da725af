package iwarp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// sends submits messages, and waits for the last. It tries again where a Read before it is held back.
func sends(t *testing.T, e *rig.End, n, size int) <-chan error {
	mr := e.MR(size, 0)
	return rig.DialInBackground(t, func() (err error) {
		var last *iwarp.Pending
		for i := 0; i < n && err == nil; i++ {
			err = again(func() (err error) {
				last, err = e.Submit(rig.Within(t), &iwarp.SendWR{SGL: []iwarp.SGE{mr.Slice(0, size)}})
				return err
			})
		}
		if err != nil {
			return err
		}
		return again(func() error { _, err := last.Wait(rig.Within(t)); return err })
	})
}

// again makes a call until it is not held back.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, iwarp.ErrHeldBack) {
			return err
		}
	}
}

// takes receives so many messages.
func takes(t *testing.T, e *rig.End, n int) <-chan error {
	return rig.DialInBackground(t, func() error {
		for range n {
			m, err := e.Receive(rig.Within(t))
			if err != nil {
				return err
			}
			m.Done()
		}
		return nil
	})
}

// reads reads from the peer.
func reads(t *testing.T, e, peer *rig.End) <-chan error {
	from, to := peer.MR(8, iwarp.RemoteRead), e.MR(8, iwarp.LocalWrite)
	return rig.DialInBackground(t, func() error {
		_, err := e.Read(rig.Within(t), to.Slice(0, 8), from.Remote(0))
		return err
	})
}

// Both ends read from each other behind messages that neither receives. Both Reads end, also where TCP is full and the
// Read waits for room in the Send Queue. When the messages are received, all goes on.
func TestBothReadHeldBack(t *testing.T) {
	t.Parallel()
	for size, posted := range map[int]int{8: 0, 4096: 128} { // TCP has room for those of 8 bytes
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			ini, res := receiving(iwarp.Receives{Size: size, Timeout: 100 * time.Millisecond}).Connect(t)
			const n = 10_000
			each := func(do func(e, peer *rig.End) <-chan error) (a, b <-chan error) { return do(ini, res), do(res, ini) }
			sentA, sentB := each(func(e, _ *rig.End) <-chan error { return sends(t, e, n, size) })
			for _, e := range []*rig.End{ini, res} {
				rig.Until(t, func() bool { return e.Stats().ReceivedFPDUs >= 32 && e.Query().Sends >= posted }, "messages")
			}
			a, b := each(func(e, peer *rig.End) <-chan error { return reads(t, e, peer) })
			for _, failed := range []<-chan error{a, b} {
				if err := <-failed; !errors.Is(err, iwarp.ErrHeldBack) {
					t.Errorf("a Read behind messages: %v", err)
				}
			}
			takenA, takenB := each(func(e, _ *rig.End) <-chan error { return takes(t, e, n) })
			for _, done := range []<-chan error{takenA, takenB, sentA, sentB} {
				rig.Should(t, <-done)
			}
			a, b = each(func(e, peer *rig.End) <-chan error { return reads(t, e, peer) })
			rig.Should(t, <-a)
			rig.Should(t, <-b)
			rig.Finish(t, ini, res)
		})
	}
}

// A Send whose completion needs an answer ends as a Read does, when the answer is behind messages that nobody receives:
// it is to be confirmed, or comes after a Read. Nothing is lost: it completes when the messages are received.
func TestSendHeldBack(t *testing.T) {
	t.Parallel()
	for _, confirm := range []bool{true, false} {
		s := receiving(iwarp.Receives{Count: 2, Size: 8, Timeout: 50 * time.Millisecond})
		s.Dialer.QP.Confirm, s.Dialer.QP.SendDepth = confirm, 2
		ini, res := s.Connect(t)
		for range 6 {
			sendText(t, res, "unread")
		}
		rig.Until(t, func() bool { return ini.Stats().ReceivedFPDUs >= 4 }, "messages")
		if !confirm {
			if err := <-reads(t, ini, res); !errors.Is(err, iwarp.ErrHeldBack) {
				t.Fatalf("a Read behind messages: %v", err)
			}
		}
		mr := ini.MR(8, 0)
		err := ini.Send(rig.Within(t), mr.Slice(0, 8))
		var pending *iwarp.PendingError
		if !errors.Is(err, iwarp.ErrHeldBack) || !errors.As(err, &pending) {
			t.Fatalf("confirm %v: a Send behind messages: %v", confirm, err)
		}
		if p, err := ini.Submit(rig.Within(t), &iwarp.SendWR{}); !confirm {
			if !errors.Is(err, iwarp.ErrHeldBack) {
				t.Errorf("a Submit that waits for room: %v", err)
			}
		} else if _, err := p.Wait(rig.Within(t)); !errors.Is(err, iwarp.ErrHeldBack) {
			t.Errorf("a Submit behind messages: %v", err)
		}
		for range 6 {
			wantMessage(t, ini, "unread")
		}
		rig.Wait(t, pending.Free, "the completion")
	}
}

// sendsFull sends more than there is room for, and returns when that is noticed.
func sendsFull(t *testing.T, e, peer *rig.End) <-chan error {
	t.Helper()
	sent := sends(t, e, 1<<20, 4096)
	rig.Until(t, func() bool { return peer.Stats().ReceivedFPDUs >= 32 }, "messages")
	mr := e.MR(8, 0)
	for err := error(nil); !errors.Is(err, context.DeadlineExceeded); err = e.Send(soon(t), mr.Slice(0, 8)) {
		rig.Must(t, err)
	}
	return sent
}

// Two ends that only send both wait, and hold no more than they were told. Contexts end that, and then a Close.
func TestBothSend(t *testing.T) {
	t.Parallel()
	ini, res := receiving(iwarp.Receives{Size: 4096, Timeout: time.Millisecond}).Connect(t)
	sent := []<-chan error{sendsFull(t, ini, res), sendsFull(t, res, ini)}
	for _, e := range []*rig.End{ini, res} {
		held := e.Stats().ReceivedStream
		if most := uint64(32*4200 + 256<<10); held > most { // what came in one piece may be beyond the bound
			t.Errorf("%d bytes were received, and %d are the most", held, most)
		}
		if e.Err() != nil {
			t.Errorf("it has ended: %v", e.Err())
		}
	}
	rig.Finish(t, ini, res)
	for _, sent := range sent {
		if err := <-sent; !errors.Is(err, net.ErrClosed) {
			t.Errorf("a Submit that waits, and the QP is closed: %v", err)
		}
	}
}

// A Close ends although the peer receives nothing, and the peer learns of it though it is held back.
func TestCloseHeldBack(t *testing.T) {
	t.Parallel()
	s := receiving(iwarp.Receives{Size: 4096})
	s.Dialer.QP.CloseTimeout = 50 * time.Millisecond
	ini, res := s.Connect(t)
	a := sendsFull(t, ini, res)
	b := reads(t, res, ini)
	if err := ini.Close(); !errors.Is(err, iwarp.ErrConnectionLost) {
		t.Errorf("a Close whose requests the peer does not take: %v", err)
	}
	if err := <-a; !errors.Is(err, net.ErrClosed) {
		t.Errorf("its Submit: %v", err)
	}
	wantReset(t, res, b)
}

// A peer that resets is noticed by who is held back: calls that wait for it end, and Receive returns the messages that
// have a receive before it says so.
func TestResetHeldBack(t *testing.T) {
	t.Parallel()
	ini, res := receiving(iwarp.Receives{Size: 4096}).Connect(t)
	a := sendsFull(t, ini, res)
	b := reads(t, res, ini)
	rig.Should(t, ini.Abort())
	if err := <-a; !errors.Is(err, net.ErrClosed) {
		t.Errorf("its Submit: %v", err)
	}
	wantReset(t, res, b)
}

// wantReset expects that an end notices that its peer has reset the connection.
func wantReset(t *testing.T, e *rig.End, read <-chan error) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells who does not receive")
	}
	if err := <-read; !errors.Is(err, iwarp.ErrConnectionLost) {
		t.Errorf("a Read whose peer resets: %v", err)
	}
	rig.Should(t, <-takes(t, e, 16))
	if _, err := e.Receive(rig.Within(t)); !errors.Is(err, iwarp.ErrConnectionLost) || errors.Is(err, io.EOF) {
		t.Errorf("Receive after the reset: %v", err)
	}
	if err := e.Close(); !errors.Is(err, iwarp.ErrConnectionLost) {
		t.Errorf("Close after the reset: %v", err)
	}
}

// A QP that is connected again has all its receives, and no message of the connection before.
func TestReceivesOfNextConnection(t *testing.T) {
	t.Parallel()
	for _, modify := range []bool{false, true} {
		ln := rig.Listen(t, iwarp.ListenConfig{})
		e := rig.NewEnd(t, iwarp.RNICConfig{})
		cfg := iwarp.QPConfig{Receives: iwarp.Receives{Count: 4, Size: 8}}
		e.QP = rig.NewQP(t, e.PD, cfg)
		for _, text := range []string{"one", "two", "three"} {
			peer := rig.NewEnd(t, iwarp.RNICConfig{})
			accepted := peer.Takes(ln, iwarp.AcceptConfig{PD: peer.PD, QP: cfg})
			rig.Must(t, new(iwarp.Dialer).DialQP(rig.Within(t), e.QP, "tcp", ln.Addr().String()))
			rig.Must(t, <-accepted)
			if n := e.Query().Receives; n != 4 {
				t.Fatalf("%q: %d receives are posted", text, n)
			}
			sendText(t, e, "go")
			sendText(t, peer, text)
			wantMessage(t, e, text)
			sendText(t, peer, "unread")
			rig.Must(t, peer.Close())
			rig.Wait(t, e.Done(), "the end")
			if err := e.Err(); errors.As(err, new(*iwarp.UnreadError)) {
				t.Errorf("%q: the last message can still be received: %v", text, err)
			}
			if modify {
				rig.Must(t, e.Modify(iwarp.StateIdle))
			}
		}
		if n := e.RNIC.Stats().Discarded; modify && n != 3 || !modify && n != 2 {
			t.Errorf("%d messages were discarded", n)
		}
	}
}

// The memory of the receives ends with the QP.
func TestReceivesGiveMemoryBack(t *testing.T) {
	e := rig.NewEnd(t, iwarp.RNICConfig{})
	qp := rig.NewQP(t, e.PD, iwarp.QPConfig{Receives: iwarp.Receives{Count: 4, Size: 8}})
	if n := e.RNIC.Stats().MRs; n != 1 {
		t.Errorf("%d MRs", n)
	}
	rig.Must(t, qp.Close())
	if n := e.RNIC.Stats().MRs; n != 0 {
		t.Errorf("%d MRs are left", n)
	}
}

// A late Done of a message does nothing to the one that lies there by now.
func TestLateDone(t *testing.T) {
	t.Parallel()
	ini, res := receiving(iwarp.Receives{Count: 1, Size: 8}).Connect(t)
	var old []iwarp.Message
	for _, text := range []string{"one", "two", "three"} {
		sendText(t, ini, text)
		m, err := res.Receive(rig.Within(t))
		rig.Must(t, err)
		for _, done := range old {
			done.Done()
		}
		if n := res.Query().Receives; n != 0 || string(m.Bytes()) != text {
			t.Fatalf("%d receives are posted while %q is out", n, m.Bytes())
		}
		m.Done()
		old = append(old, m)
	}
	rig.Finish(t, ini, res)
}
