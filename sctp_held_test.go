package iwarp_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
)

// sendAhead is a Send of 1000 octets, header and all, with the DDP-SSN and MSN given.
func sendAhead(ssn uint16, msn uint32) string {
	b := binary.BigEndian.AppendUint16(nil, ssn)
	b = append(b, 0x41, 0x43, 0, 0, 0, 0) // L, DV 1; RV 1, Send
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, msn)
	b = binary.BigEndian.AppendUint32(b, 0)
	return string(append(b, make([]byte, 1000-18)...))
}

// TestHeldOctets: what peers have us hold ahead of its turn is bounded for all of them together. The one that has most of it
// loses its connection, whoever exceeds the bound, with what it had us hold; others keep theirs, and have the room.
//
// Proves Z01.
func TestHeldOctets(t *testing.T) {
	res := newEnd(t, iwarp.RNICConfig{Limits: iwarp.Limits{HeldOctets: 3600}})
	ln, err := iwarp.Listen(within(t), "sctp4", "127.0.0.1:0", iwarp.ListenConfig{PD: res.pd, RNIC: res.rnic, RequestTimeout: -1})
	must(t, err)
	defer ln.Close()
	join := func() (*sctpPeer, *iwarp.QP) {
		accepted := res.takes(ln, iwarp.AcceptConfig{})
		p := newSCTPPeer(t, ln)
		p.says(17, "\x00\x00\x00\x01")
		p.hears()
		must(t, <-accepted)
		return p, res.QP
	}
	held := func(qp *iwarp.QP, segments uint64) {
		t.Helper()
		until(t, func() bool { return qp.Stats().Ahead.Held == segments }, "segments are held")
	}
	hostile, its := join()
	modest, other := join()
	for i := range 3 { // after a gap
		hostile.says(16, sendAhead(uint16(2+i), uint32(2+i)))
	}
	held(its, 3)
	modest.says(16, sendAhead(2, 2))
	held(other, 1)
	hostile.wantLost(its, "what all connections together may hold")
	hostile, its = join()
	for i := range 3 {
		hostile.says(16, sendAhead(uint16(2+i), uint32(2+i)))
	}
	hostile.wantLost(its, "what all connections together may hold")
	for i := range 2 { // there is room again, to the octet
		modest.says(16, sendAhead(uint16(3+i), uint32(3+i)))
	}
	held(other, 3)
	for id := range 4 {
		mr, err := other.PD().Register(make([]byte, 1000), iwarp.LocalWrite)
		must(t, err)
		must(t, other.PostRecv(&iwarp.RecvWR{ID: uint64(id), SGL: []iwarp.SGE{mr.Slice(0, 1000)}}))
	}
	modest.says(16, sendAhead(1, 1))
	for range 4 {
		wc, err := other.RecvCQ().Next(within(t))
		must(t, err)
		must(t, wc.Err())
	}
}

// wantLost waits for a QP to end for a reason of ours, of which its peer is told.
func (p *sctpPeer) wantLost(qp *iwarp.QP, reason string) {
	p.Helper()
	p.wantTerminated()
	until(p.T, func() bool { return qp.Err() != nil }, "the end of the connection")
	if err := qp.Err(); !strings.Contains(err.Error(), reason) || !errors.Is(err, iwarp.ErrLimit) {
		p.Errorf("ended with %v", err)
	}
}
