package iwarp_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// acks is what an end hears of acknowledgements: that all have come, when it is closed, and a count of those before.
type acks struct {
	all  chan struct{}
	some atomic.Uint32
	lost error // why not all have come; valid when all is closed
	few  bool  // those that have come are not of all in front of the end
}

func (a *acks) Told() <-chan struct{} { return a.all }
func (a *acks) Acknowledged() uint32  { return a.some.Load() }
func (a *acks) Lost() error           { return a.lost }
func (a *acks) Lacks() bool           { return a.few }

// tellers are connections that can tell when their peer has the end, as those of SCTP and of a TCP in user space can. The first
// end hears of acks.
var tellers = map[string]func(t *testing.T, ini, res *end, a *acks){
	"a SegmentStream": func(t *testing.T, ini, res *end, acked *acks) {
		a, b := newShuffled(1, nil)
		must(t, ini.ModifyRTSOver(toldStream{a, acked}, negotiated(mpa.RoleInitiator), nil))
		must(t, res.ModifyRTSOver(b, negotiated(mpa.RoleResponder), nil))
	},
	"a connection of a Stack": func(t *testing.T, ini, res *end, acked *acks) {
		a, b := awarePair(link{emss: 1420})
		must(t, ini.ModifyRTS(toldConn{a, acked}, negotiated(mpa.RoleInitiator), nil))
		must(t, res.ModifyRTS(b, negotiated(mpa.RoleResponder), nil))
	},
	"a connection on one of a Stack": func(t *testing.T, ini, res *end, acked *acks) {
		a, b := awarePair(link{emss: 1420})
		must(t, ini.ModifyRTS(onConn{a, toldConn{a, acked}}, negotiated(mpa.RoleInitiator), nil))
		must(t, res.ModifyRTS(b, negotiated(mpa.RoleResponder), nil))
	},
}

type (
	toldStream struct {
		iwarp.SegmentStream
		*acks
	}
	toldConn struct {
		*awareConn
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

func negotiated(r mpa.Role) mpa.Negotiated {
	return mpa.Negotiated{DDPVersion: 1, RDMAPVersion: 1, Role: r, SendFirst: true}
}

// withLateAcks has two QPs connected by each of the tellers, in virtual time.
func withLateAcks(t *testing.T, do func(t *testing.T, ini, res *end, a *acks)) {
	for name, connect := range tellers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ini, res, a := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{}), &acks{all: make(chan struct{})}
				ini.QP, res.QP = create(t, ini.pd, iwarp.QPConfig{CloseTimeout: 3 * time.Second, CloseLimit: 20 * time.Second}), create(t, res.pd, iwarp.QPConfig{})
				connect(t, ini, res, a)
				do(t, ini, res, a)
			})
		})
	}
}

// closesWithin returns how long a Close takes, while the peer closes too.
func closesWithin(t *testing.T, a, b *end) time.Duration {
	began := time.Now()
	finish(t, a, b)
	return time.Since(began)
}

// TestCloseAwaitsAcknowledgement: Close returns when the peer has the end of our half: a program that ends then would take
// along what is not sent yet.
func TestCloseAwaitsAcknowledgement(t *testing.T) {
	withLateAcks(t, func(t *testing.T, ini, res *end, a *acks) {
		time.AfterFunc(time.Second, func() { close(a.all) })
		if took := closesWithin(t, ini, res); took < time.Second || took > 2*time.Second {
			t.Errorf("Close took %v, and the acknowledgement one second", took)
		}
	})
}

// TestCloseAfterThePeer: so it is where the peer has closed before, and everything of ours is with the lower layer.
func TestCloseAfterThePeer(t *testing.T) {
	withLateAcks(t, func(t *testing.T, ini, res *end, a *acks) {
		must(t, res.CloseWrite())
		time.Sleep(50 * time.Millisecond)
		began := time.Now()
		time.AfterFunc(time.Second, func() { close(a.all) })
		must(t, ini.Close())
		if took := time.Since(began); took != time.Second {
			t.Errorf("Close took %v, and the acknowledgement one second", took)
		}
		must(t, res.Close())
	})
}

// eventsOf returns the kinds of the events that nobody has fetched.
func eventsOf(e *end) (kinds []iwarp.EventKind) {
	for ev, err := e.rnic.NextEvent(gone(e.t)); err == nil; ev, err = e.rnic.NextEvent(gone(e.t)) {
		kinds = append(kinds, ev.Kind)
	}
	return kinds
}

// TestCloseCompletes: while the peer is waited for the close is not complete, in state and events; it is when the peer
// has everything.
func TestCloseCompletes(t *testing.T) {
	withLateAcks(t, func(t *testing.T, ini, res *end, a *acks) {
		must(t, res.CloseWrite())
		time.Sleep(50 * time.Millisecond)
		closed := dialInBackground(t, ini.Close)
		synctest.Wait()
		if s, events := ini.State(), eventsOf(ini); s != iwarp.StateClosing || !slices.Equal(events, []iwarp.EventKind{iwarp.EventHalfClosed}) {
			t.Errorf("while the peer is waited for: %v, %v", s, events)
		}
		close(a.all)
		must(t, <-closed)
		if s, events := ini.State(), eventsOf(ini); s != iwarp.StateClosed || !slices.Equal(events, []iwarp.EventKind{iwarp.EventCloseComplete}) {
			t.Errorf("after it: %v, %v", s, events)
		}
		must(t, res.Close())
	})
}

// TestPostAfterThePeer: whoever posts a receive after the peer's FIN is told that the peer was the first to close: before our half ends, while the peer is
// waited for, which may take its time, and when that is over.
func TestPostAfterThePeer(t *testing.T) {
	withLateAcks(t, func(t *testing.T, ini, res *end, a *acks) {
		posts := func(s iwarp.State) {
			t.Helper()
			if err := ini.PostRecv(&iwarp.RecvWR{}); ini.State() != s || !errors.Is(err, iwarp.ErrPeerClosed) {
				t.Errorf("in the state %v, want %v: %v", ini.State(), s, err)
			}
		}
		must(t, res.CloseWrite())
		time.Sleep(50 * time.Millisecond)
		posts(iwarp.StateRTS)
		time.Sleep(time.Second) // longer than Linger
		posts(iwarp.StateClosing)
		close(a.all)
		synctest.Wait()
		posts(iwarp.StateClosed)
		must(t, errors.Join(ini.Close(), res.Close()))
	})
}

// TestCloseUndelivered: a connection that is lost while the peer has not everything did not end in order, although both ends have
// closed.
func TestCloseUndelivered(t *testing.T) {
	withLateAcks(t, func(t *testing.T, ini, res *end, a *acks) {
		must(t, res.CloseWrite())
		time.Sleep(50 * time.Millisecond)
		a.lost = syscall.ECONNRESET
		time.AfterFunc(time.Second, func() { close(a.all) })
		wantUndelivered(t, ini, ini.Close())
		if err := ini.Err(); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("ended with %v", err)
		}
		if got := eventsOf(ini); !slices.Equal(got, []iwarp.EventKind{iwarp.EventHalfClosed, iwarp.EventConnectionLost}) {
			t.Errorf("events: %v", got)
		}
		must(t, res.Close())
	})
}

// wantUndelivered expects that Close has told of a loss.
func wantUndelivered(t *testing.T, e *end, closed error) {
	t.Helper()
	for _, err := range []error{closed, e.Err()} {
		if !errors.Is(err, iwarp.ErrConnectionLost) || errors.Is(err, iwarp.ErrPeerClosed) {
			t.Errorf("ended with %v", err)
		}
	}
	if s := e.State(); s != iwarp.StateError {
		t.Errorf("the state is %v", s)
	}
}

// TestCloseWithoutAcknowledgement: a peer that does not acknowledge is waited for until CloseTimeout.
func TestCloseWithoutAcknowledgement(t *testing.T) {
	withLateAcks(t, func(t *testing.T, ini, res *end, _ *acks) {
		if took := closesWithin(t, ini, res); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("Close took %v, and CloseTimeout is 3 s", took)
		}
	})
}

// TestCloseLacking: so it is of one that lacks not the end alone, whether it is silent or too slow; then the connection is lost.
func TestCloseLacking(t *testing.T) {
	for _, c := range []struct {
		acks int // one every 2 s
		text string
	}{{0, "nothing more of ours within 3s"}, {20, "not acknowledged all of ours within 20s"}} {
		withLateAcks(t, func(t *testing.T, ini, res *end, a *acks) {
			a.few = true
			must(t, res.CloseWrite())
			time.Sleep(50 * time.Millisecond)
			go func() {
				for range c.acks {
					time.Sleep(2 * time.Second)
					a.some.Add(1)
				}
			}()
			err := ini.Close()
			wantUndelivered(t, ini, err)
			if err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("Close: %v, want %q", err, c.text)
			}
			must(t, res.Close())
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
		withLateAcks(t, func(t *testing.T, ini, res *end, a *acks) {
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
	for name, give := range map[string]func(*end){
		"Abort": func(e *end) { _ = e.Abort() },
		"Shutdown": func(e *end) {
			over, cancel := context.WithCancel(e.t.Context())
			cancel()
			if err := e.rnic.Shutdown(over); err != nil && !errors.Is(err, context.Canceled) {
				e.t.Errorf("Shutdown: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			withLateAcks(t, func(t *testing.T, ini, res *end, _ *acks) {
				began := time.Now()
				closed, closedToo := dialInBackground(t, ini.Close), dialInBackground(t, res.Close)
				time.Sleep(time.Second)
				give(ini)
				err := <-closed
				if took := time.Since(began); took != time.Second {
					t.Errorf("Close took %v, and was cut short after 1s", took)
				}
				if errors.Is(err, context.Canceled) != (name == "Shutdown") || (err == nil) != (name == "Abort") {
					t.Errorf("Close: %v", err)
				}
				if s, events := ini.State(), eventsOf(ini); s != iwarp.StateError || slices.Contains(events, iwarp.EventCloseComplete) {
					t.Errorf("ended in %v, with %v", s, events)
				}
				must(t, <-closedToo)
			})
		})
	}
}
