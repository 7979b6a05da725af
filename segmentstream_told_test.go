package iwarp_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// An acknowledged is a SegmentStream that can tell when its peer has the end, as SCTP's can.
type acknowledged struct {
	iwarp.SegmentStream
	acks chan struct{}
}

func (a acknowledged) Told() <-chan struct{} { return a.acks }

// withLateAcks has two QPs connected over a stream whose first end hears of acknowledgements when acks is closed.
func withLateAcks(t *testing.T, do func(ini, res *end, acks chan struct{})) {
	synctest.Test(t, func(t *testing.T) {
		ini, res, acks := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{}), make(chan struct{})
		ini.QP, res.QP = create(t, ini.pd, iwarp.QPConfig{CloseTimeout: 3 * time.Second}), create(t, res.pd, iwarp.QPConfig{})
		a, b := newShuffled(1, nil)
		n := mpa.Negotiated{DDPVersion: 1, RDMAPVersion: 1, Role: mpa.RoleInitiator}
		must(t, ini.ModifyRTSOver(acknowledged{a, acks}, n, nil))
		n.Role = mpa.RoleResponder
		must(t, res.ModifyRTSOver(b, n, nil))
		do(ini, res, acks)
	})
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
	withLateAcks(t, func(ini, res *end, acks chan struct{}) {
		time.AfterFunc(time.Second, func() { close(acks) })
		if took := closesWithin(t, ini, res); took < time.Second || took > 2*time.Second {
			t.Errorf("Close took %v, and the acknowledgement one second", took)
		}
	})
}

// TestCloseWithoutAcknowledgement: a peer that does not acknowledge is waited for until CloseTimeout.
func TestCloseWithoutAcknowledgement(t *testing.T) {
	withLateAcks(t, func(ini, res *end, _ chan struct{}) {
		if took := closesWithin(t, ini, res); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("Close took %v, and CloseTimeout is 3 s", took)
		}
	})
}

// TestAbortAwaitsNoAcknowledgement: Abort, and a Shutdown that is given up, do not wait, nor does a Close then that has waited.
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
			withLateAcks(t, func(ini, res *end, _ chan struct{}) {
				closed := make(chan time.Duration)
				go func() { closed <- closesWithin(t, ini, res) }()
				time.Sleep(time.Second)
				give(ini)
				if took := <-closed; took != time.Second {
					t.Errorf("Close took %v, and was cut short after 1s", took)
				}
			})
		})
	}
}
