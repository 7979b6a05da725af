package rdmap

import (
	"testing"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
)

// empty is a segment of the opcode that moves no data, with changes.
func empty(op Opcode, change func(*ddp.Segment)) *ddp.Segment {
	s := &ddp.Segment{Header: op.Header(1)}
	s.Last = true
	if op == OpReadRequest {
		s.Payload = (&ReadRequest{SinkSTag: 1, SrcSTag: 2}).Append(nil)
	}
	if change != nil {
		change(s)
	}
	return s
}

// What is an RTR indication: one of three messages of zero length, whole in one segment,
// with any STag and MSN.
//
// Proves E09.
func TestZeroLength(t *testing.T) {
	oneByte := func(s *ddp.Segment) { s.Payload = append(s.Payload, 0) }
	for _, c := range []struct {
		name string
		seg  *ddp.Segment
		want mpa.RTR
	}{
		{"Write", empty(OpWrite, nil), mpa.RTRWrite},
		{"Write with an STag and a TO", empty(OpWrite, func(s *ddp.Segment) { s.STag, s.TO = 7, 8 }), mpa.RTRWrite},
		{"Write without L", empty(OpWrite, func(s *ddp.Segment) { s.Last = false }), 0},
		{"Write with a byte", empty(OpWrite, oneByte), 0},
		{"Write in an untagged segment", empty(OpWrite, func(s *ddp.Segment) { s.Tagged = false }), 0},
		{"Send", empty(OpSend, nil), mpa.RTRSend},
		{"Send with MSN 5", empty(OpSend, func(s *ddp.Segment) { s.MSN = 5 }), mpa.RTRSend},
		{"Send without L", empty(OpSend, func(s *ddp.Segment) { s.Last = false }), 0},
		{"end of a longer Send", empty(OpSend, func(s *ddp.Segment) { s.MO = 4 }), 0},
		{"Send with a byte", empty(OpSend, oneByte), 0},
		{"Send of another queue", empty(OpSend, func(s *ddp.Segment) { s.QN = 1 }), 0},
		{"Send with SE", empty(OpSendSE, nil), 0},
		{"Send with Invalidate", empty(OpSendInvalidate, nil), 0},
		{"Read Request", empty(OpReadRequest, nil), mpa.RTRRead},
		{"Read Request without L", empty(OpReadRequest, func(s *ddp.Segment) { s.Last = false }), 0},
		{"Read Request with MO 4", empty(OpReadRequest, func(s *ddp.Segment) { s.MO = 4 }), 0},
		{"Read Request of a byte", empty(OpReadRequest,
			func(s *ddp.Segment) { s.Payload = (&ReadRequest{Size: 1}).Append(nil) }), 0},
		{"Read Request cut short", empty(OpReadRequest, func(s *ddp.Segment) { s.Payload = s.Payload[:27] }), 0},
		{"Read Response", empty(OpReadResponse, nil), 0},
		{"Immediate Data", empty(OpImmediateData, nil), 0},
		{"no opcode", empty(Opcode(13), nil), 0},
	} {
		if got := mpa.RTROf(ZeroLength(c.seg)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
