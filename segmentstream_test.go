package iwarp_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
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
			s := rig.Setup{Dialer: iwarp.Dialer{QP: rig.DeepQueues()}, Accept: iwarp.AcceptConfig{QP: rig.DeepQueues()}}
			ini, res := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
			iniErr, resErr := s.MeetShuffled(t, ini, res, func() { time.Sleep(rand.N(100 * time.Microsecond)) })
			rig.Must(t, errors.Join(iniErr, resErr))
			for range 5 {
				rig.Works(t, ini, res)
				rig.Works(t, res, ini)
			}
			rig.PostAll(ini, res)
			rig.Finish(t, ini, res)
			rig.WantAll(t, ini, res)
			if n := ini.Stats().Ahead; n.Placed == 0 || n.PlacedBytes == 0 || n.Repeated == 0 {
				t.Errorf("%+v", n)
			}
		})
	}
}

// TestSegmentStreamLost has the stream fail: both ends learn of it, and what was posted is flushed.
//
// Proves D34, D35.
func TestSegmentStreamLost(t *testing.T) {
	ini, res := rig.Setup{Over: &rig.Transport{Shuffled: true}}.Connect(t)
	res.MustPostRecv(1)
	ini.MustPostRecv(2)
	rig.Must(t, ini.Abort())
	res.WantReceived(1, iwarp.StatusFlushed)
	if err := res.WantEnd(); !errors.Is(err, iwarp.ErrConnectionLost) || !errors.Is(err, rig.ErrShuffledReset) {
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
		e := rig.NewEnd(t, iwarp.RNICConfig{CRC: iwarp.CRCAlways})
		qp, err := e.PD.CreateQP(iwarp.QPConfig{})
		rig.Must(t, err)
		a, _ := rig.NewShuffled(1, nil)
		if err := qp.ModifyRTSOver(a, n, nil); !errors.Is(err, want) || qp.State() != iwarp.StateIdle {
			t.Errorf("%v in state %v, want %v", err, qp.State(), want)
		}
		if _, err := a.Send([][]byte{{1}}); err != nil {
			t.Error("the stream is closed")
		}
		n = mpa.Negotiated{DDPVersion: 1, RDMAPVersion: 1, Role: mpa.RoleInitiator}
		rig.Must(t, qp.ModifyRTSOver(a, n, nil)) // the policy about CRCs is MPA's
		rig.Must(t, qp.Abort())
	}
}

// TestSegmentStreamOpens has nobody post anything: the Ready-to-Receive indication leaves all the
// same, by itself.
func TestSegmentStreamOpens(t *testing.T) {
	e := rig.NewEnd(t, iwarp.RNICConfig{})
	a, b := rig.NewShuffled(1, nil)
	e.QP = rig.NewQP(t, e.PD, iwarp.QPConfig{})
	n := mpa.Negotiated{DDPVersion: 1, RDMAPVersion: 1, Role: mpa.RoleInitiator, Enhanced: true,
		PeerToPeer: true, RTR: mpa.RTRWrite}
	rig.Must(t, e.ModifyRTSOver(a, n, nil))
	arrived := rig.DialInBackground(t, func() error { _, err := b.Recv(); return err })
	rig.Must(t, rig.Outcome(t, arrived))
	_ = e.Abort()
}

// TestSegmentStreamDepths leaves the depths to the consumer, who says nothing: they are the default,
// within the RNIC's limit, and not what the number for that would be.
func TestSegmentStreamDepths(t *testing.T) {
	for limit, want := range map[int]mpa.Depth{0: rig.ReadDepth, 3: 3} {
		e := rig.NewEnd(t, iwarp.RNICConfig{Limits: iwarp.Limits{IRD: limit}})
		a, _ := rig.NewShuffled(1, nil)
		e.QP = rig.NewQP(t, e.PD, iwarp.QPConfig{})
		n := mpa.Negotiated{
			DDPVersion: 1, RDMAPVersion: 1, Role: mpa.RoleInitiator,
			IRD: mpa.NoNegotiation, ORD: mpa.NoNegotiation, PeerIRD: mpa.NoNegotiation, PeerORD: mpa.NoNegotiation,
		}
		rig.Must(t, e.ModifyRTSOver(a, n, nil))
		if got := e.Negotiated(); got.IRD != want || got.ORD != rig.ReadDepth {
			t.Errorf("limit %d: IRD %v, ORD %v", limit, got.IRD, got.ORD)
		}
		_ = e.Abort()
	}
}

// TestSegmentStreamIsNotIdle has one end only listen: what arrives keeps the connection, and is counted.
func TestSegmentStreamIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rig.Setup{Over: &rig.Transport{Shuffled: true},
			Accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{IdleTimeout: time.Second}}}
		ini, res := s.Connect(t)
		for range 4 {
			time.Sleep(600 * time.Millisecond)
			ini.MustPost(&iwarp.SendWR{Op: iwarp.OpWrite, Unsignaled: true})
			synctest.Wait()
		}
		if st := res.Stats(); res.State() != iwarp.StateRTS ||
			st.ReceiveCalls < st.ReceivedFPDUs || st.ReceiveCalls > 1000 {
			t.Errorf("%v in state %v, %d segments in %d calls",
				res.Err(), res.State(), st.ReceivedFPDUs, st.ReceiveCalls)
		}
		_, _ = ini.Abort(), res.Abort()
	})
}

// A heldStream is told what is held of what it has brought, and looks at the QP then.
type heldStream struct {
	*rig.Shuffled
	qp   *iwarp.QP
	told chan int
}

func (s heldStream) Held(n int) {
	_ = s.qp.State()
	s.told <- n
}

// hears returns what it is told next.
func (s heldStream) hears(t *testing.T) (n int) {
	t.Helper()
	select {
	case n = <-s.told:
	case <-rig.Within(t).Done():
		t.Fatal("the stream is told nothing")
	}
	return n
}

// brings has a segment arrive: a Send of a thousand bytes with its header.
func (s heldStream) brings(number uint64, msn uint32) {
	l := s.In
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.Pending = append(l.Pending, iwarp.SegmentArrival{Number: number, Segment: []byte(rig.SendAhead(0, msn)[2:])})
	l.Moved.Broadcast()
}

// TestHeldIsTold: a stream hears how much is held whenever that has changed.
func TestHeldIsTold(t *testing.T) {
	e := rig.NewEnd(t, iwarp.RNICConfig{})
	qp, err := e.PD.CreateQP(iwarp.QPConfig{})
	rig.Must(t, err)
	e.QP = qp
	a, _ := rig.NewShuffled(1, nil)
	s := heldStream{a, qp, make(chan int, 10)}
	rig.Must(t, qp.ModifyRTSOver(s, mpa.Negotiated{DDPVersion: 1, RDMAPVersion: 1, Role: mpa.RoleInitiator}, nil))
	for i, msn := range []uint32{2, 3} { // the first is missing
		s.brings(5+uint64(msn)-1, msn)
		if got := s.hears(t); got < 1000*(i+1) || got > 1200*(i+1) {
			t.Errorf("%d bytes are held with segment %d", got, msn)
		}
	}
	inbox := e.MR(3000, iwarp.LocalWrite)
	for i := range 4 {
		e.MustPostRecv(uint64(i), inbox.Slice(0, 1000))
	}
	s.brings(5, 1)
	if got := s.hears(t); got != 0 {
		t.Errorf("%d bytes are held in the end", got)
	}
	s.brings(8, 4)
	for i := range 4 {
		e.WantReceived(uint64(i), iwarp.StatusSuccess)
	}
	if len(s.told) > 0 {
		t.Errorf("told of %d once more", <-s.told)
	}
	rig.Must(t, qp.Abort())
}

// A belated is a SegmentStream whose last Recv brings something in when the test says so, after the
// end of the connection.
type belated struct {
	iwarp.SegmentStream
	last chan segmentResult
}

type segmentResult struct {
	iwarp.SegmentArrival
	error
}

func (b *belated) Recv() (iwarp.SegmentArrival, error) {
	a, err := b.SegmentStream.Recv()
	if err != nil {
		last := <-b.last
		return last.SegmentArrival, last.error
	}
	return a, nil
}

// TestSegmentStreamOldReceiver connects a QP again while the goroutine that receives from its first
// stream is still at it. Whatever that brings in then does not touch the second.
func TestSegmentStreamOldReceiver(t *testing.T) {
	h := rdmap.OpSend.Header(1)
	h.Last, h.MSN = true, ddp.FirstMSN
	n := mpa.Negotiated{DDPVersion: 1, RDMAPVersion: 1, Role: mpa.RoleInitiator}
	for _, last := range []segmentResult{
		{SegmentArrival: iwarp.SegmentArrival{Number: 5, Segment: h.Append(nil)}},
		{SegmentArrival: iwarp.SegmentArrival{Number: 5, End: true}},
		{SegmentArrival: iwarp.SegmentArrival{Number: 5, Err: errors.New("a broken rule")}},
		{error: io.ErrUnexpectedEOF},
	} {
		e := rig.NewEnd(t, iwarp.RNICConfig{})
		e.QP = rig.NewQP(t, e.PD, iwarp.QPConfig{})
		first, _ := rig.NewShuffled(1, nil)
		old := &belated{first, make(chan segmentResult)}
		rig.Must(t, e.ModifyRTSOver(old, n, nil))
		rig.Must(t, e.Modify(iwarp.StateError))
		rig.Wait(t, e.Done(), "the end of the connection")
		rig.Must(t, e.Modify(iwarp.StateIdle))
		second, _ := rig.NewShuffled(1, nil)
		rig.Must(t, e.ModifyRTSOver(second, n, nil))
		e.MustPostRecv(1)
		calls := e.Stats().ReceiveCalls
		old.last <- last
		rig.Until(t, func() bool { return strings.Count(rig.Stacks(), ".wholeReceiver.run(") == 1 }, "the old receiver")
		var wc [1]iwarp.WC
		if e.State() != iwarp.StateRTS || e.RecvCQ().Poll(wc[:]) > 0 || e.Stats().ReceiveCalls != calls {
			t.Errorf("%+v: state %v, %v, %d calls", last, e.State(), wc[0], e.Stats().ReceiveCalls-calls)
		}
		rig.Must(t, e.Abort())
	}
}

// A narrowing is a SegmentStream on whose path segments become shorter.
type narrowing struct {
	iwarp.SegmentStream
	bytes atomic.Int64
}

func (n *narrowing) MULPDU() int { return int(n.bytes.Load()) }

// TestSegmentStreamMULPDU: segments are as long as the path takes them, which changes.
//
// Proves D01.
func TestSegmentStreamMULPDU(t *testing.T) {
	e := rig.NewEnd(t, iwarp.RNICConfig{})
	e.QP = rig.NewQP(t, e.PD, iwarp.QPConfig{})
	a, b := rig.NewShuffled(1, nil)
	s := &narrowing{SegmentStream: a}
	s.bytes.Store(1000)
	rig.Must(t, e.ModifyRTSOver(s, mpa.Negotiated{DDPVersion: 1, RDMAPVersion: 1, Role: mpa.RoleInitiator}, nil))
	for _, n := range []int{1000, 500} {
		s.bytes.Store(int64(n))
		for range 2 { // the first may have been built before
			e.MustPost(&iwarp.SendWR{Op: iwarp.OpWrite, Unsignaled: true})
			got, err := b.Recv()
			if err != nil || len(got.Segment) == 0 {
				t.Errorf("%+v, %v", got, err)
			}
		}
		rig.Until(t, func() bool { return e.Query().MULPDU == n }, "the MULPDU to follow")
	}
	rig.Must(t, e.Abort())
}

// A movedStream shares its path with others, and tells how much that has carried.
type movedStream struct {
	iwarp.SegmentStream
	bytes atomic.Uint64
}

func (s *movedStream) Moved() uint64 { return s.bytes.Load() }

// TestMovedSince: what a shared path carries while a Close waits gives that more time. What it had carried before the
// Close began does not. A second Close looks too.
func TestMovedSince(t *testing.T) {
	for _, c := range []struct {
		before, since uint64        // bytes
		again         time.Duration // when the second Close begins
		want          time.Duration
	}{
		{0, 0, time.Hour, 3 * time.Second},
		{1 << 20, 0, time.Hour, 3 * time.Second},
		{1 << 20, 16<<10 - 1, time.Hour, 3 * time.Second},
		{1 << 20, 16 << 10, time.Hour, 6 * time.Second},
		{1 << 20, 16 << 10, 2 * time.Second, 5 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			ini, res := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
			ini.QP = rig.NewQP(t, ini.PD, iwarp.QPConfig{CloseTimeout: 3 * time.Second})
			res.QP = rig.NewQP(t, res.PD, iwarp.QPConfig{HalfClose: true}) // which does not close
			a, b := rig.NewShuffled(1, nil)
			path := &movedStream{SegmentStream: a}
			rig.Must(t, ini.ModifyRTSOver(path, rig.Negotiated(mpa.RoleInitiator), nil))
			rig.Must(t, res.ModifyRTSOver(b, rig.Negotiated(mpa.RoleResponder), nil))
			path.bytes.Add(c.before)
			began := time.Now()
			time.AfterFunc(time.Second, func() { path.bytes.Add(c.since) })
			again := time.AfterFunc(c.again, func() { _ = ini.Close() })
			defer again.Stop()
			err := ini.Close()
			if took := time.Since(began); took != c.want || !errors.Is(err, iwarp.ErrConnectionLost) {
				t.Errorf("%d bytes before, %d since: Close took %v, want %v: %v", c.before, c.since, took, c.want, err)
			}
			_ = res.Abort()
		})
	}
}
