package driver

import (
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/mpa"
)

// TestEndsLater: how a connection ends after the peer's FIN is news while it is still there.
func TestEndsLater(t *testing.T) {
	e, _ := pair(t)
	e.fail(syscall.ECONNRESET)
	if end := e.awaitEnd(); end.State != engine.Error || !errors.Is(end.Cause, syscall.ECONNRESET) {
		t.Errorf("%v, %v", end.State, end.Cause)
	}
}

// TestEndsTooLate: and it is none once the connection was given up.
func TestEndsTooLate(t *testing.T) {
	gaveUp := errors.New("given up")
	for _, err := range []error{nil, syscall.ECONNRESET} {
		e, _ := pair(t)
		e.Abort(gaveUp)
		e.awaitEnd()
		if err != nil {
			e.fail(err)
		} else {
			e.receiver().finAcked()
		}
		s := e.Status()
		if s.State != engine.Error || !errors.Is(s.Cause, gaveUp) || errors.Is(s.Cause, syscall.ECONNRESET) {
			t.Errorf("after %v: %v, %v", err, s.State, s.Cause)
		}
		if len(e.late) > 0 {
			t.Errorf("after %v, and after its end, the QP hears of %v", err, e.late)
		}
	}
}

// A halfLink cannot end its half.
type halfLink struct{ link }

func (halfLink) CloseWrite() error { return syscall.ENOTCONN }

// TestFINAckFails: a half that cannot be ended after the peer's is a connection that was lost, and no end in order.
func TestFINAckFails(t *testing.T) {
	e, _ := pair(t)
	e.settled()
	e.Conn.mu.Lock()
	e.link = halfLink{e.link}
	e.endAfterPeer()
	e.release(turn{receiving: true, now: e.now()})
	if end := e.awaitEnd(); end.State != engine.Error || !errors.Is(end.Cause, syscall.ENOTCONN) {
		t.Errorf("%v, %v", end.State, end.Cause)
	}
}

// A toldStream is a stream whose peer acknowledges something every 4 s until it falls silent, and tells when it has
// everything.
type toldStream struct {
	*segmentStream
	told   chan struct{}
	began  time.Time
	silent time.Duration // from when on
	lacks  bool
	lost   error
}

func (s *toldStream) PeerAcked() <-chan struct{} { return s.told }
func (s *toldStream) AckProgress() uint32 {
	return uint32(min(time.Since(s.began), s.silent) / (4 * time.Second))
}
func (s *toldStream) HasUnacked() bool { return s.lacks }
func (s *toldStream) LossError() error { return s.lost }

// TestCloseUntilTold: a close waits for a peer to have our end as long as it acknowledges something within
// CloseTimeout, and for CloseLimit at most; one that is stopped waits for nothing.
func TestCloseUntilTold(t *testing.T) {
	never, lost := 10*time.Hour, errors.New("lost")
	for name, c := range map[string]struct {
		silent, told, stopped, limit, least, most time.Duration
		timesOut                                  bool // where the peer lacks something
	}{
		"told at last":     {never, 42 * time.Second, never, time.Minute, 42 * time.Second, 42 * time.Second, false},
		"silent from 20 s": {20 * time.Second, never, never, time.Minute, 25 * time.Second, 30 * time.Second, true},
		"silent":           {0, never, never, time.Minute, 5 * time.Second, 5 * time.Second, true},
		"endless":          {never, never, never, time.Minute, time.Minute, 65 * time.Second, true},
		"without a limit":  {never, time.Hour, never, -1, time.Hour, time.Hour, false},
		"stopped":          {never, never, 7 * time.Second, time.Minute, 7 * time.Second, 7 * time.Second, false},
	} {
		for _, lacks := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s := &toldStream{segmentStream: newSegments(), told: make(chan struct{}),
					began: time.Now(), silent: c.silent}
				s.lacks, s.lost = lacks, lost
				set := newSetup(mpa.RoleInitiator)
				set.machine.CloseLimit = c.limit
				_, cfg := set.config(t)
				conn := NewWhole(s, s, cfg)
				stopped := conn.fin.startWait()
				told := time.AfterFunc(c.told, func() { close(s.told) })
				stop := time.AfterFunc(c.stopped, conn.fin.stopWait)
				defer func() { told.Stop(); stop.Stop() }()
				err := awaitPeerAcked(conn.link, cfg, stopped)
				if took := time.Since(s.began); took < c.least || took > c.most {
					t.Errorf("%s: after %v, want %v to %v", name, took, c.least, c.most)
				}
				if timedOut := errors.Is(err, engine.ErrTimeout); timedOut != (c.timesOut && lacks) {
					t.Errorf("%s, the peer lacks something: %t: %v", name, lacks, err)
				}
				if errors.Is(err, lost) != (c.told < never) {
					t.Errorf("%s: %v where the stream tells that it was lost", name, err)
				}
			})
		}
	}
}

// TestResetUntold: after a reset nobody waits for the peer, which never has the end of our half.
func TestResetUntold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &toldStream{segmentStream: newSegments(), told: make(chan struct{}), began: time.Now()}
		e := newSetup(mpa.RoleInitiator).over(t, s)
		e.Abort(engine.ErrAborted)
		synctest.Wait()
		if e.ended() == nil {
			t.Error("the peer is waited for")
		}
	})
}
