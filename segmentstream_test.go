package iwarp_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// TestSegmentStream leads dialogues while segments come in any order, again, and late. Both ends
// close at once, and nothing is lost.
//
// Proves D26, D30, P31, P32.
func TestSegmentStream(t *testing.T) {
	rounds := 2
	if testrig.Everything() {
		rounds = 20
	}
	for range rounds {
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

// TestSegmentStreamOpens has nobody post anything: the Ready-to-Receive indication leaves all the
// same, by itself.
func TestSegmentStreamOpens(t *testing.T) {
	e := newEnd(t, iwarp.RNICConfig{})
	a, b := newShuffled(1, nil)
	e.QP = create(t, e.pd, iwarp.QPConfig{})
	n := mpa.Negotiated{DDPVersion: 1, RDMAPVersion: 1, Role: mpa.RoleInitiator, Enhanced: true, PeerToPeer: true, RTR: mpa.RTRWrite}
	must(t, e.ModifyRTSOver(a, n, nil))
	arrived := dialInBackground(t, func() error { _, err := b.Recv(); return err })
	must(t, over(t, arrived))
	_ = e.Abort()
}

// TestSegmentStreamDepths leaves the depths to the consumer, who says nothing: they are the default,
// within the RNIC's limit, and not what the number for that would be.
func TestSegmentStreamDepths(t *testing.T) {
	for limit, want := range map[int]mpa.Depth{0: iwarp.DefaultReadDepth, 3: 3} {
		e := newEnd(t, iwarp.RNICConfig{Limits: iwarp.Limits{IRD: limit}})
		a, _ := newShuffled(1, nil)
		e.QP = create(t, e.pd, iwarp.QPConfig{})
		n := mpa.Negotiated{
			DDPVersion: 1, RDMAPVersion: 1, Role: mpa.RoleInitiator,
			IRD: mpa.NoNegotiation, ORD: mpa.NoNegotiation, PeerIRD: mpa.NoNegotiation, PeerORD: mpa.NoNegotiation,
		}
		must(t, e.ModifyRTSOver(a, n, nil))
		if got := e.Negotiated(); got.IRD != want || got.ORD != iwarp.DefaultReadDepth {
			t.Errorf("limit %d: IRD %v, ORD %v", limit, got.IRD, got.ORD)
		}
		_ = e.Abort()
	}
}

// TestSegmentStreamIsNotIdle has one end only listen: what arrives keeps the connection, and is counted.
func TestSegmentStreamIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setup{over: &transport{shuffled: true}, accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{IdleTimeout: time.Second}}}
		ini, res := s.connect(t)
		for range 4 {
			time.Sleep(600 * time.Millisecond)
			ini.post(&iwarp.SendWR{Op: iwarp.OpWrite, Unsignaled: true})
			synctest.Wait()
		}
		if st := res.Stats(); res.State() != iwarp.StateRTS || st.ReceiveCalls < st.ReceivedFPDUs || st.ReceiveCalls > 1000 {
			t.Errorf("%v in state %v, %d segments in %d calls", res.Err(), res.State(), st.ReceivedFPDUs, st.ReceiveCalls)
		}
		_, _ = ini.Abort(), res.Abort()
	})
}

// A heldStream is told what is held of what it has brought, and looks at the QP then.
type heldStream struct {
	*shuffled
	qp   *iwarp.QP
	told chan int
}

func (s heldStream) Held(octets int) {
	_ = s.qp.State()
	s.told <- octets
}

// hears returns what it is told next.
func (s heldStream) hears(t *testing.T) (octets int) {
	t.Helper()
	select {
	case octets = <-s.told:
	case <-within(t).Done():
		t.Fatal("the stream is told nothing")
	}
	return octets
}

// brings has a segment arrive: a Send of a thousand octets with its header.
func (s heldStream) brings(number uint64, msn uint32) {
	l := s.in
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, iwarp.SegmentArrival{Number: number, Segment: []byte(sendAhead(0, msn)[2:])})
	l.moved.Broadcast()
}

// TestSegmentHolder: a stream hears how much is held whenever that has changed.
func TestSegmentHolder(t *testing.T) {
	e := newEnd(t, iwarp.RNICConfig{})
	qp, err := e.pd.CreateQP(iwarp.QPConfig{})
	must(t, err)
	e.QP = qp
	a, _ := newShuffled(1, nil)
	s := heldStream{a, qp, make(chan int, 10)}
	must(t, qp.ModifyRTSOver(s, mpa.Negotiated{DDPVersion: 1, RDMAPVersion: 1, Role: mpa.RoleInitiator}, nil))
	for i, msn := range []uint32{2, 3} { // the first is missing
		s.brings(5+uint64(msn)-1, msn)
		if got := s.hears(t); got < 1000*(i+1) || got > 1200*(i+1) {
			t.Errorf("%d octets are held with segment %d", got, msn)
		}
	}
	inbox := e.mr(3000, iwarp.LocalWrite)
	for i := range 4 {
		e.postRecv(uint64(i), inbox.Slice(0, 1000))
	}
	s.brings(5, 1)
	if got := s.hears(t); got != 0 {
		t.Errorf("%d octets are held in the end", got)
	}
	s.brings(8, 4)
	for i := range 4 {
		e.wantReceived(uint64(i), iwarp.StatusSuccess)
	}
	if len(s.told) > 0 {
		t.Errorf("told of %d once more", <-s.told)
	}
	must(t, qp.Abort())
}
