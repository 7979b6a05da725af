package association_test

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/association"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// wantGone expects nothing more of a session.
func wantGone(t *testing.T, s *association.Session, want error) {
	t.Helper()
	if _, err := s.Recv(); !errors.Is(err, want) {
		t.Errorf("received: %v, want %v", err, want)
	}
	if _, err := s.Send([][]byte{{1}}); !errors.Is(err, want) {
		t.Errorf("sent: %v, want %v", err, want)
	}
}

// TestResets: a session that is given up is over at once on this side, and the other learns that it has not ended in
// order, whether it was accepted or asked for there, and also where our half had ended before.
func TestResets(t *testing.T) {
	for name, c := range map[string]struct{ passive, halved bool }{
		"by the active side": {}, "by the passive side": {passive: true}, "after a half close": {halved: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				active, passive := pair(t, 6)
				a, b := connect(t, active, passive)
				if c.passive {
					a, b = b, a
				}
				if c.halved {
					testrig.Must(t, a.CloseWrite())
					if v, err := b.Recv(); err != nil || !v.End {
						t.Errorf("the peer got %+v (%v)", v, err)
					}
				}
				testrig.Must(t, a.Reset())
				wantGone(t, a, net.ErrClosed)
				wantGone(t, b, errAbort)
				<-active.Gone()
				<-passive.Gone()
			})
		})
	}
}

// TestResetAmongOthers: where others have the association too, it is left to them, and the last words tell the peer.
func TestResetAmongOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, passive := pair(t, 6) // whose last words are "T"
		a, b := connect(t, active, passive)
		other, _ := connect(t, active, passive)
		testrig.Must(t, a.Reset())
		wantGone(t, a, net.ErrClosed)
		ended := uint64(0)
		for range 2 { // in any order
			v, err := b.Recv()
			testrig.Must(t, err)
			if v.End {
				ended = v.Number
			} else if string(v.Segment) != "T" || v.Number != 1 {
				t.Errorf("the peer got %+v", v)
			}
		}
		if ended != 2 {
			t.Errorf("the peer's end is at %d", ended)
		}
		testrig.Must(t, b.Close())
		_, err := other.Send([][]byte{{1}})
		testrig.Must(t, err)
		testrig.Must(t, other.Reset())
	})
}

// TestCancelAnswered: a session that was established when it was canceled ends in order.
func TestCancelAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, passive := pair(t, 6)
		a, b := connect(t, active, passive)
		testrig.Must(t, a.Cancel())
		wantGone(t, a, net.ErrClosed)
		if v, err := b.Recv(); err != nil || !v.End || v.Number != 1 {
			t.Errorf("the peer got %+v (%v)", v, err)
		}
		testrig.Must(t, b.Close())
		<-active.Gone()
	})
}

// TestCancelUnread: not if the peer has sent something by then, which would be lost without a word.
func TestCancelUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, passive := pair(t, 6)
		a, b := connect(t, active, passive)
		_, err := b.Send([][]byte{{1}})
		testrig.Must(t, err)
		time.Sleep(time.Second) // it has arrived
		testrig.Must(t, a.Cancel())
		wantGone(t, b, errAbort)
	})
}

// TestCancelCrossed: nor is what is on its way then, or is sent before the peer knows, lost without a word.
func TestCancelCrossed(t *testing.T) {
	for name, when := range map[string]time.Duration{"on its way": 0, "sent later": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				active, passive := pair(t, 6)
				a, b := connect(t, active, passive)
				testrig.Must(t, a.Cancel())
				time.Sleep(when)
				_, err := b.Send([][]byte{{1}})
				testrig.Must(t, err)
				for err == nil { // our Terminate may come before
					_, err = b.Recv()
				}
				if !errors.Is(err, errAbort) {
					t.Errorf("received: %v", err)
				}
				<-active.Gone()
			})
		})
	}
}

// TestLostWhileWaiting: a lost association ends what waits.
func TestLostWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, passive := pair(t, 7)
		a, b := connect(t, active, passive)
		go active.Close("enough")
		wantGone(t, a, errAbort)
		wantGone(t, b, errAbort)
	})
}
