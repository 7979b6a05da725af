package sctp

import (
	"errors"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/iwarpsctp"
)

// TestHeldBytes: what peers have us hold ahead of its turn is bounded for all of them together. The one that has most
// of it loses its connection, whoever exceeds the bound, with what it had us hold; others keep theirs, and have the
// room.
//
// Proves Z01.
func TestHeldBytes(t *testing.T) {
	res := rig.NewEnd(t, iwarp.RNICConfig{Limits: iwarp.Limits{HeldBytes: 3600}})
	ln, err := (&iwarp.ListenConfig{
		Network: new(iwarpsctp.Network), PD: res.PD, RNIC: res.RNIC, RequestTimeout: -1,
	}).Listen(
		rig.Within(t), "sctp4", "127.0.0.1:0")
	rig.Must(t, err)
	defer ln.Close()
	join := func() (*rig.SCTPPeer, *iwarp.QP) {
		accepted := res.Takes(ln, iwarp.AcceptConfig{})
		p := rig.NewSCTPPeer(t, ln)
		p.Says(17, "\x00\x00\x00\x01")
		p.Hears()
		rig.Must(t, <-accepted)
		return p, res.QP
	}
	held := func(qp *iwarp.QP, segments uint64) {
		t.Helper()
		rig.Until(t, func() bool { return qp.Stats().Ahead.Held == segments }, "segments are held")
	}
	hostile, its := join()
	modest, other := join()
	for i := range 3 { // after a gap
		hostile.Says(16, rig.SendAhead(uint16(2+i), uint32(2+i)))
	}
	held(its, 3)
	modest.Says(16, rig.SendAhead(2, 2))
	held(other, 1)
	wantPeerLost(hostile, its, "what all connections together may hold")
	hostile, its = join()
	for i := range 3 {
		hostile.Says(16, rig.SendAhead(uint16(2+i), uint32(2+i)))
	}
	wantPeerLost(hostile, its, "what all connections together may hold")
	for i := range 2 { // there is room again, to the byte
		modest.Says(16, rig.SendAhead(uint16(3+i), uint32(3+i)))
	}
	held(other, 3)
	for id := range 4 {
		mr, err := other.PD().Register(make([]byte, 1000), iwarp.LocalWrite)
		rig.Must(t, err)
		rig.Must(t, other.PostRecv(&iwarp.RecvWR{ID: uint64(id), SGL: []iwarp.SGE{mr.Slice(0, 1000)}}))
	}
	modest.Says(16, rig.SendAhead(1, 1))
	for range 4 {
		wc, err := other.RecvCQ().Next(rig.Within(t))
		rig.Must(t, err)
		rig.Must(t, wc.Err())
	}
}

// wantLost waits for a QP to end for a reason of ours, of which its peer is told.
func wantPeerLost(p *rig.SCTPPeer, qp *iwarp.QP, reason string) {
	p.Helper()
	p.WantTerminated()
	rig.Until(p.T, func() bool { return qp.Err() != nil }, "the end of the connection")
	if err := qp.Err(); !strings.Contains(err.Error(), reason) || !errors.Is(err, iwarp.ErrLimit) {
		p.Errorf("ended with %v", err)
	}
}
