package mpa

import (
	"slices"
	"time"
)

// ResponderConfig says what a responder does before its consumer has seen a Request. The
// zero value is usable.
type ResponderConfig struct {
	// Timeout bounds the wait for the whole Request, and that for the frame that
	// follows our answer in some dialects. If zero, [DefaultRequestTimeout]; if
	// negative, there is none.
	Timeout time.Duration
	// Kind of RNIC that we are. If zero, KindPermissive.
	Kind Kind
	// Dialects are those served, as far as the Kind has them. If empty, all but
	// DialectRtr: its S is a reserved bit of revision 1, which peers that know
	// nothing of it may have set, and a responder would wait for their Rtr frame.
	Dialects []Dialect
	// Messages takes a private data message in place of the Start Key, or of a Request. It has
	// to be asked for, since such a message may begin with any bytes.
	Messages bool
	// Markers and NoCRC are what a KindNonPermissive says of itself in answer to a
	// revision 0 Request, before it closes the connection. In other answers
	// those of the Offer count.
	Markers, NoCRC bool
}

func (c *ResponderConfig) serves(d Dialect) bool {
	if !c.Kind.speaks(d) {
		return false
	}
	if len(c.Dialects) == 0 {
		return d != DialectRtr
	}
	return slices.Contains(c.Dialects, d)
}

// Request is an MPA Request Frame that has arrived, or what stands for it in another
// dialect. The consumer decides whether to accept it.
type Request struct {
	Dialect  Dialect
	Revision uint8
	// Markers and CRC are the initiator's M and C. They are not known yet after a
	// private data message.
	Markers, CRC bool
	// Enhanced says that there is enhanced data, and so IRD, ORD, PeerToPeer and
	// RTR. IRD and ORD are NoNegotiation otherwise.
	Enhanced   bool
	IRD, ORD   Depth
	PeerToPeer bool
	RTR        RTR
	// PrivateData is the ULP's.
	PrivateData []byte
	// Frame is the whole Request Frame, with its other bits. It is nil where a Start Key
	// or a private data message stands for it.
	Frame StartupFrame
}

// request returns what has arrived as a Request.
func (in *intake) request() *Request {
	q := &Request{Dialect: in.dialect, IRD: NoNegotiation, ORD: NoNegotiation}
	switch in.arrived {
	case arrivedMessage:
		q.Dialect, q.PrivateData = DialectStartKey, PrivateDataMessage(in.buf).PrivateData()
	case arrivedStartKey:
		k := StartKey(in.buf)
		q.Markers, q.CRC = k.M(), k.C()
	default:
		q.fill(in.frame())
	}
	return q
}

// fill fills in what a Request Frame says.
//
// R "is set to zero, and not checked on reception in the MPA Request Frame", and Res
// is "not checked on reception": RFC 5044, section 7.1.1. [Q05] [Q06]
func (q *Request) fill(f StartupFrame) {
	q.Revision, q.Markers, q.CRC, q.PrivateData, q.Frame = f.Rev(), f.M(), f.C(), f.PrivateData(), f
	if !q.Dialect.row().enhanced {
		return
	}
	e, _ := f.Enhanced()
	q.Ask(e)
	q.PrivateData = f.ULPData()
}
