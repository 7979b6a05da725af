package endings

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
)

// acks is what an end hears of acknowledgements: that all have come, when it is closed, and a count of those before.
type acks struct {
	all  chan struct{}
	some atomic.Uint32
	lost error // why not all have come; valid when all is closed
	few  bool  // those that have come are not of all in front of the end
}

func (a *acks) PeerAcked() <-chan struct{} { return a.all }
func (a *acks) AckProgress() uint32        { return a.some.Load() }
func (a *acks) LossError() error           { return a.lost }
func (a *acks) HasUnacked() bool           { return a.few }

// tellers are connections that can tell when their peer has the end, as those of SCTP and of a TCP in user space can.
// The first end hears of acks.
var tellers = map[string]func(t *testing.T, ini, res *rig.End, a *acks){
	"a SegmentStream": func(t *testing.T, ini, res *rig.End, acked *acks) {
		a, b := rig.NewShuffled(1, nil)
		rig.Must(t, ini.ModifyRTSOver(toldStream{a, acked}, rig.Negotiated(mpa.RoleInitiator), nil))
		rig.Must(t, res.ModifyRTSOver(b, rig.Negotiated(mpa.RoleResponder), nil))
	},
	"a connection of a Stack": func(t *testing.T, ini, res *rig.End, acked *acks) {
		a, b := rig.AwarePair(rig.AwareLink{EMSS: 1420})
		rig.Must(t, ini.ModifyRTS(toldConn{a, acked}, rig.Negotiated(mpa.RoleInitiator), nil))
		rig.Must(t, res.ModifyRTS(b, rig.Negotiated(mpa.RoleResponder), nil))
	},
	"a connection on one of a Stack": func(t *testing.T, ini, res *rig.End, acked *acks) {
		a, b := rig.AwarePair(rig.AwareLink{EMSS: 1420})
		rig.Must(t, ini.ModifyRTS(onConn{a, toldConn{a, acked}}, rig.Negotiated(mpa.RoleInitiator), nil))
		rig.Must(t, res.ModifyRTS(b, rig.Negotiated(mpa.RoleResponder), nil))
	},
}

type (
	toldStream struct {
		iwarp.SegmentStream
		*acks
	}
	toldConn struct {
		*rig.AwareConn
		*acks
	}
	// An onConn is built on another, as that of TLS is.
	onConn struct {
		closer
		below net.Conn
	}
	closer interface {
		net.Conn
		CloseWrite() error
	}
)

func (c onConn) NetConn() net.Conn { return c.below }

// withLateAcks has two QPs connected by each of the tellers, in virtual time.
func withLateAcks(t *testing.T, do func(t *testing.T, ini, res *rig.End, a *acks)) {
	for name, connect := range tellers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ini, res, a := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{}),
					&acks{all: make(chan struct{})}
				ini.QP, res.QP = rig.NewQP(t, ini.PD,
					iwarp.QPConfig{CloseTimeout: 3 * time.Second, CloseLimit: 20 * time.Second}),
					rig.NewQP(t, res.PD, iwarp.QPConfig{})
				connect(t, ini, res, a)
				do(t, ini, res, a)
			})
		})
	}
}

// closesWithin returns how long a Close takes, while the peer closes too.
func closesWithin(t *testing.T, a, b *rig.End) time.Duration {
	began := time.Now()
	rig.Finish(t, a, b)
	return time.Since(began)
}

// TestCloseAwaitsAcknowledgement: Close returns when the peer has the end of our half: a program that ends then would
// take along what is not sent yet.
func TestCloseAwaitsAcknowledgement(t *testing.T) {
	withLateAcks(t, func(t *testing.T, ini, res *rig.End, a *acks) {
		time.AfterFunc(time.Second, func() { close(a.all) })
		if took := closesWithin(t, ini, res); took < time.Second || took > 2*time.Second {
			t.Errorf("Close took %v, and the acknowledgement one second", took)
		}
	})
}

// TestCloseAfterThePeer: so it is where the peer has closed before, and everything of ours is with the lower layer.
func TestCloseAfterThePeer(t *testing.T) {
	withLateAcks(t, func(t *testing.T, ini, res *rig.End, a *acks) {
		rig.Must(t, res.CloseWrite())
		time.Sleep(50 * time.Millisecond)
		began := time.Now()
		time.AfterFunc(time.Second, func() { close(a.all) })
		rig.Must(t, ini.Close())
		if took := time.Since(began); took != time.Second {
			t.Errorf("Close took %v, and the acknowledgement one second", took)
		}
		rig.Must(t, res.Close())
	})
}

// eventsOf returns the kinds of the events that nobody has fetched.
func eventsOf(e *rig.End) (kinds []iwarp.EventKind) {
	for ev, err := e.RNIC.NextEvent(rig.Canceled(e.T)); err == nil; ev, err = e.RNIC.NextEvent(rig.Canceled(e.T)) {
		kinds = append(kinds, ev.Kind)
	}
	return kinds
}

// TestCloseCompletes: while the peer is waited for the close is not complete, in state and events; it is when the peer
// has everything.
func TestCloseCompletes(t *testing.T) {
	withLateAcks(t, func(t *testing.T, ini, res *rig.End, a *acks) {
		rig.Must(t, res.CloseWrite())
		time.Sleep(50 * time.Millisecond)
		closed := rig.DialInBackground(t, ini.Close)
		synctest.Wait()
		if s, events := ini.State(), eventsOf(ini); s != iwarp.StateClosing ||
			!slices.Equal(events, []iwarp.EventKind{iwarp.EventHalfClosed}) {
			t.Errorf("while the peer is waited for: %v, %v", s, events)
		}
		close(a.all)
		rig.Must(t, <-closed)
		if s, events := ini.State(), eventsOf(ini); s != iwarp.StateClosed ||
			!slices.Equal(events, []iwarp.EventKind{iwarp.EventCloseComplete}) {
			t.Errorf("after it: %v, %v", s, events)
		}
		rig.Must(t, res.Close())
	})
}

// TestPostAfterThePeer: whoever posts a receive after the peer's FIN is told that the peer was the first to close:
// before our half ends, while the peer is waited for, which may take its time, and when that is over.
func TestPostAfterThePeer(t *testing.T) {
	withLateAcks(t, func(t *testing.T, ini, res *rig.End, a *acks) {
		posts := func(s iwarp.State) {
			t.Helper()
			if err := ini.PostRecv(&iwarp.RecvWR{}); ini.State() != s || !errors.Is(err, iwarp.ErrPeerClosed) {
				t.Errorf("in the state %v, want %v: %v", ini.State(), s, err)
			}
		}
		eventsOf(ini) // so that our half stays open
		rig.Must(t, res.CloseWrite())
		time.Sleep(50 * time.Millisecond)
		posts(iwarp.StateRTS)
		time.Sleep(time.Second) // longer than Linger
		posts(iwarp.StateClosing)
		close(a.all)
		synctest.Wait()
		posts(iwarp.StateClosed)
		rig.Must(t, errors.Join(ini.Close(), res.Close()))
	})
}

// TestCloseUndelivered: a connection that is lost while the peer has not everything did not end in order, although both
// ends have closed.
func TestCloseUndelivered(t *testing.T) {
	withLateAcks(t, func(t *testing.T, ini, res *rig.End, a *acks) {
		rig.Must(t, res.CloseWrite())
		time.Sleep(50 * time.Millisecond)
		a.lost = syscall.ECONNRESET
		time.AfterFunc(time.Second, func() { close(a.all) })
		rig.WantUndelivered(t, ini, ini.Close())
		if err := ini.Err(); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("ended with %v", err)
		}
		if got := eventsOf(ini); !slices.Equal(got,
			[]iwarp.EventKind{iwarp.EventHalfClosed, iwarp.EventConnectionLost}) {
			t.Errorf("events: %v", got)
		}
		rig.Must(t, res.Close())
	})
}

// TestCloseWithoutAcknowledgement: a peer that does not acknowledge is waited for until CloseTimeout.
func TestCloseWithoutAcknowledgement(t *testing.T) {
	withLateAcks(t, func(t *testing.T, ini, res *rig.End, _ *acks) {
		if took := closesWithin(t, ini, res); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("Close took %v, and CloseTimeout is 3 s", took)
		}
	})
}

// TestCloseLacking: so it is of one that lacks not the end alone, whether it is silent or too slow; then the connection
// is lost.
func TestCloseLacking(t *testing.T) {
	for _, c := range []struct {
		acks int // one every 2 s
		text string
	}{{0, "nothing more of ours within 3s"}, {20, "not acknowledged all of ours within 20s"}} {
		withLateAcks(t, func(t *testing.T, ini, res *rig.End, a *acks) {
			a.few = true
			rig.Must(t, res.CloseWrite())
			time.Sleep(50 * time.Millisecond)
			go func() {
				for range c.acks {
					time.Sleep(2 * time.Second)
					a.some.Add(1)
				}
			}()
			err := ini.Close()
			rig.WantUndelivered(t, ini, err)
			if err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("Close: %v, want %q", err, c.text)
			}
			rig.Must(t, res.Close())
			time.Sleep(time.Minute)
		})
	}
}

// TestCloseWhileAcknowledged: a peer that acknowledges some of it again and again is waited for, until CloseLimit.
func TestCloseWhileAcknowledged(t *testing.T) {
	for _, c := range []struct{ all, want time.Duration }{
		{10 * time.Second, 10 * time.Second},
		{time.Hour, 20 * time.Second},
	} {
		withLateAcks(t, func(t *testing.T, ini, res *rig.End, a *acks) {
			began := time.Now()
			go func() {
				for time.Since(began) < min(c.all, time.Minute) {
					time.Sleep(2 * time.Second)
					a.some.Add(1)
				}
				close(a.all)
			}()
			if took := closesWithin(t, ini, res); took < c.want || took > c.want+time.Second {
				t.Errorf("Close took %v, want %v", took, c.want)
			}
			<-a.all
		})
	}
}

// TestAbortAwaitsNoAcknowledgement: Abort, and a Shutdown that is given up, do not wait, nor does a Close then that has
// waited. The connection did not end in order then, which Close says where it was not Abort.
func TestAbortAwaitsNoAcknowledgement(t *testing.T) {
	for name, give := range map[string]func(*rig.End){
		"Abort": func(e *rig.End) { _ = e.Abort() },
		"Shutdown": func(e *rig.End) {
			over, cancel := context.WithCancel(e.T.Context())
			cancel()
			if err := e.RNIC.Shutdown(over); err != nil && !errors.Is(err, context.Canceled) {
				e.T.Errorf("Shutdown: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			withLateAcks(t, func(t *testing.T, ini, res *rig.End, _ *acks) {
				began := time.Now()
				closed, closedToo := rig.DialInBackground(t, ini.Close), rig.DialInBackground(t, res.Close)
				time.Sleep(time.Second)
				give(ini)
				err := <-closed
				if took := time.Since(began); took != time.Second {
					t.Errorf("Close took %v, and was cut short after 1s", took)
				}
				if errors.Is(err, context.Canceled) != (name == "Shutdown") || (err == nil) != (name == "Abort") {
					t.Errorf("Close: %v", err)
				}
				if s, events := ini.State(), eventsOf(ini); s != iwarp.StateError ||
					slices.Contains(events, iwarp.EventCloseComplete) {
					t.Errorf("ended in %v, with %v", s, events)
				}
				rig.Must(t, <-closedToo)
			})
		})
	}
}

// TestFarewellLogged: while the peer is waited for the log tells of no end. Then it tells of the one there is: in
// order, or of a connection that was lost from Closing.
func TestFarewellLogged(t *testing.T) {
	for end, lost := range map[string]error{"Closing to Idle": nil, "Closing to Error": syscall.ECONNRESET} {
		synctest.Test(t, func(t *testing.T) {
			var states []string
			ini, res := rig.NewEnd(t, iwarp.RNICConfig{Logger: slog.New(rig.LogHandler(func(r slog.Record) {
				states = append(states, changeOf(&r)...)
			}))}), rig.NewEnd(t, iwarp.RNICConfig{})
			ini.QP, res.QP = rig.NewQP(t, ini.PD, iwarp.QPConfig{}), rig.NewQP(t, res.PD, iwarp.QPConfig{})
			x, y := rig.NewShuffled(1, nil)
			a := &acks{all: make(chan struct{}), lost: lost}
			rig.Must(t, ini.ModifyRTSOver(toldStream{x, a}, rig.Negotiated(mpa.RoleInitiator), nil))
			rig.Must(t, res.ModifyRTSOver(y, rig.Negotiated(mpa.RoleResponder), nil))
			rig.Must(t, res.CloseWrite())
			time.Sleep(50 * time.Millisecond)
			closed := rig.DialInBackground(t, ini.Close)
			want := []string{"Idle to RTS", "RTS to Closing"}
			if synctest.Wait(); !slices.Equal(states, want) {
				t.Errorf("while the peer is waited for: %q", states)
			}
			close(a.all)
			if err := <-closed; (err == nil) != (lost == nil) {
				t.Errorf("Close: %v", err)
			}
			if synctest.Wait(); !slices.Equal(states, append(want, end)) {
				t.Errorf("after it: %q, want %q last", states, end)
			}
			rig.Must(t, res.Close())
		})
	}
}

// changeOf returns the change of state that a log record tells of.
func changeOf(r *slog.Record) []string {
	if r.Message != "iwarp: state" {
		return nil
	}
	told := map[string]string{}
	r.Attrs(func(a slog.Attr) bool { told[a.Key] = a.Value.String(); return true })
	return []string{told["from"] + " to " + told["to"]}
}
