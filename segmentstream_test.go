package iwarp_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// TestSegmentStream leads dialogues while segments come in any order, again, and late. Both ends
// close at once, and nothing is lost.
//
// Proves D26, D30, P31, P32.
func TestSegmentStream(t *testing.T) {
	for range 5 {
		synctest.Test(t, func(t *testing.T) {
			s := setup{Dialer: iwarp.Dialer{QP: deep()}, accept: iwarp.AcceptConfig{QP: deep()}}
			ini, res := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
			iniErr, resErr := s.meetShuffled(t, ini, res, func() { time.Sleep(rand.N(100 * time.Microsecond)) })
			must(t, errors.Join(iniErr, resErr))
			for range 5 {
				works(t, ini, res)
				works(t, res, ini)
			}
			postAll(ini, res)
			finish(t, ini, res)
			wantAll(t, ini, res)
			if n := ini.Stats().Ahead; n.Placed == 0 || n.PlacedOctets == 0 || n.Repeated == 0 {
				t.Errorf("%+v", n)
			}
		})
	}
}

// TestSegmentStreamLost has the stream fail: both ends learn of it, and what was posted is flushed.
//
// Proves D34, D35.
func TestSegmentStreamLost(t *testing.T) {
	ini, res := setup{over: &transport{shuffled: true}}.connect(t)
	res.postRecv(1)
	ini.postRecv(2)
	must(t, ini.Abort())
	res.wantReceived(1, iwarp.StatusFlushed)
	if err := res.wantEnd(); !errors.Is(err, iwarp.ErrConnectionLost) || !errors.Is(err, errShuffledReset) {
		t.Errorf("ended: %v", err)
	}
}

// TestSegmentStreamRefused asks for connections that cannot be: the stream stays the caller's.
//
// Proves N02.
func TestSegmentStreamRefused(t *testing.T) {
	for want, n := range map[error]mpa.Negotiated{
		iwarp.ErrVersion: {Role: mpa.RoleInitiator},
		iwarp.ErrInvalid: {DDPVersion: 1, RDMAPVersion: 1, Role: mpa.RoleInitiator, PeerToPeer: true},
	} {
		e := newEnd(t, iwarp.RNICConfig{CRC: iwarp.CRCAlways})
		qp, err := e.pd.CreateQP(iwarp.QPConfig{})
		must(t, err)
		a, _ := newShuffled(1, nil)
		if err := qp.ModifyRTSOver(a, n, nil); !errors.Is(err, want) || qp.State() != iwarp.StateIdle {
			t.Errorf("%v in state %v, want %v", err, qp.State(), want)
		}
		if _, err := a.Send([][]byte{{1}}); err != nil {
			t.Error("the stream is closed")
		}
		n = mpa.Negotiated{DDPVersion: 1, RDMAPVersion: 1, Role: mpa.RoleInitiator}
		must(t, qp.ModifyRTSOver(a, n, nil)) // the policy about CRCs is MPA's
		must(t, qp.Abort())
	}
}
