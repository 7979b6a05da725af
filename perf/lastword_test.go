package perf

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// aSlice is one that nothing comes for in these tests.
const aSlice = `{"slice":{"transport":"iwarp","op":"Send","quantity":"bandwidth","size":64,"count":8,"slots":4,"depth":4}}`

// interruptedAt is which end an error says was interrupted, or "".
func interruptedAt(err error) string {
	var at *InterruptedError
	if !errors.As(err, &at) {
		return ""
	}
	return at.Side
}

// TestInitiatorInterrupted: an initiator that is interrupted says so, whatever the responder does then: it waits for
// what is to be measured, for connections, for the next slice, or for the messages of one.
func TestInitiatorInterrupted(t *testing.T) {
	for name, until := range map[string]func(*stranger){
		"at once":    func(*stranger) {},
		"connecting": func(s *stranger) { s.says(`{"open":{"sizes":[64],"no_baseline":true}}`) },
		"connected":  (*stranger).open,
		"in a slice": func(s *stranger) { s.open(); s.says(aSlice) },
		"having asked": func(s *stranger) {
			s.open()
			s.says(aSlice)
			testrig.Must(s.t, s.d.ctl.send(s.t.Context(), request{Check: true}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			addr, ended := Responds(t, idleLimit)
			s := visits(t, addr)
			until(s)
			s.d.leave()
			if v := <-ended; interruptedAt(v.Err) != "initiator" {
				t.Errorf("the responder reports %v", v.Err)
			}
			measures(t, addr)
		})
	}
}

// TestInitiatorKilled: of an initiator that has gone in a slice without a word it is said that it has gone, and not
// what that did to the connections which the slice is on.
func TestInitiatorKilled(t *testing.T) {
	addr, ended := Responds(t, idleLimit)
	s := visits(t, addr)
	s.open()
	s.says(aSlice)
	s.d.abort()
	testrig.Must(t, s.d.ctl.qp.Abort())
	v := <-ended
	if v.Err == nil || !strings.HasPrefix(v.Err.Error(),
		"perf: the initiator has gone without a word: iwarp: connection lost: ") ||
		strings.Contains(v.Err.Error(), "\n") {
		t.Errorf("the responder reports %v", v.Err)
	}
}

// TestResponderInterrupted: the responder is interrupted in the midst of a measurement. Both ends say which end that
// was.
func TestResponderInterrupted(t *testing.T) {
	ln, err := Listen(t.Context(), "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	defer ln.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	ended, served := make(chan Visit, 1), make(chan error, 1)
	go func() { served <- Serve(ctx, ln, func(v Visit) { ended <- v }) }()
	_, err = Connect(t.Context(), ln.Addr().String(), Options{Duration: time.Hour},
		Observer{Progress: func(Progress) { interrupt() }})
	if interruptedAt(err) != "responder" {
		t.Errorf("the initiator: %v", err)
	}
	if v := <-ended; interruptedAt(v.Err) != "responder" {
		t.Errorf("the responder reports %v", v.Err)
	}
	testrig.Must(t, <-served)
}

// responderEnds are ways in which a responder ends, by the reason that the initiator has for it then.
var responderEnds = map[string]func(*control){
	"perf: the responder was interrupted":           saysLast,
	"perf: the responder has gone without a word: ": func(c *control) { _ = c.qp.Abort() },
}

// TestLatencyResponderEnds: the responder for latency ends while bandwidth is measured with another one. How it has
// ended is the reason, and not what that did to the slice.
func TestLatencyResponderEnds(t *testing.T) {
	for want, end := range responderEnds {
		synctest.Test(t, func(t *testing.T) {
			busy, _ := answers(t)
			idle, peer := answers(t)
			m := &measurement{bandwidth: busy.session, latency: idle.session}
			cut := errors.New("perf: Send of 64 bytes (bandwidth): cut")
			if err := m.orEnd(cut); err != cut {
				t.Errorf("with both there: %v", err)
			}
			go end(peer)
			<-idle.ctl.qp.Done()
			if err := m.orEnd(cut); !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
			for _, found := range []error{nil, &PeerError{Text: "no"}, &CorruptionError{}} {
				if err := m.orEnd(found); err != found {
					t.Errorf("%v has become %v", found, err)
				}
			}
		})
	}
}

// TestLatencyResponderInterrupted has that in a measurement.
func TestLatencyResponderInterrupted(t *testing.T) {
	ln, err := Listen(t.Context(), "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	defer ln.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- ServeOwner(ctx, ln) }()
	_, err = RunTwo(t.Context(), ln.Addr().String(), Options{Duration: time.Hour},
		Observer{Progress: func(Progress) { interrupt() }})
	if interruptedAt(err) != "responder" {
		t.Errorf("the initiator: %v", err)
	}
	testrig.Must(t, <-served)
}

// TestResponderEnds: a responder ends while the initiator waits for its answer. If it says that it was interrupted that
// is the reason, and else that it has gone, also where it went before it was asked.
func TestResponderEnds(t *testing.T) {
	for name, test := range map[string]struct {
		asked bool
		end   func(*control)
		want  string
	}{
		"interrupted":              {true, saysLast, "perf: the responder was interrupted"},
		"interrupted before asked": {false, saysLast, "perf: the responder was interrupted"},
		"in order": {true, func(c *control) { _ = c.qp.Close() },
			"perf: the responder has gone without a word: iwarp: the peer closed the connection in order"},
		"killed": {false, func(c *control) { _ = c.qp.Abort() },
			"perf: the responder has gone without a word: iwarp: connection lost"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, peer := answers(t)
				go func() {
					if test.asked {
						_, _ = peer.next(t.Context())
					}
					test.end(peer)
				}()
				if !test.asked {
					synctest.Wait()
				}
				if err := d.open(t.Context(), Options{}); err == nil || !strings.HasPrefix(err.Error(), test.want) {
					t.Errorf("got %v, want %s", err, test.want)
				}
			})
		})
	}
}

// TestResponderEndsInSlice: a slice that fails at the initiator does so because of how the responder ended, and not
// because of what that did to the connections of the slice.
func TestResponderEndsInSlice(t *testing.T) {
	for want, end := range responderEnds {
		synctest.Test(t, func(t *testing.T) {
			d, peer := answers(t)
			go end(peer)
			if err := d.reason(t.Context(), io.EOF); !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

// saysLast is the interrupt of an end that has a control connection alone.
func saysLast(c *control) { (&session{ctl: c}).leave() }

// TestLastWordUnread: an end that is interrupted waits a second for one that keeps its half of the connection open.
func TestLastWordUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, peer := answers(t, func(c *iwarp.QPConfig) { c.HalfClose = true })
		began := time.Now()
		d.leave()
		if took := time.Since(began); took != lastWordWait {
			t.Errorf("it took %v", took)
		}
		if _, err := peer.next(t.Context()); interruptedAt(err) != "initiator" {
			t.Errorf("the other end reads %v", err)
		}
	})
}
