package mpa

// What RFC 6581 negotiates is the same whatever carries it: MPA's frames, or the session control messages of
// package sctp. The methods here are what the machines of both have in common.

// Resolved returns the Offer with the choices made that it leaves open: its Kind, its Dialect and the RTR
// indications. The error wraps [ErrOffer].
func (o Offer) Resolved() (Offer, error) {
	if err := o.resolve(); err != nil {
		return o, err
	}
	o.RTR = o.RTR.orAll()
	return o, o.check(o.Dialect)
}

// Enhanced returns the enhanced data that an Offer makes.
func (o *Offer) Enhanced() Enhanced {
	e := Enhanced{IRD: o.IRD, ORD: o.ORD}
	// RFC 6581, section 9.2: "The initiator MUST set Control Flag A to 1 for the
	// peer-to-peer model. The initiator MUST set each Control Flag B, C, and D to 1
	// for each of the options it supports, if Control Flag A is set to 1." "If
	// Control Flag A is set to 0, then Control Flags B, C, and D MUST also be set
	// to 0." [E07] [E16]
	if !o.ClientServer {
		e = e.WithRTR(o.RTR.orAll())
	}
	return e
}

// Conclude puts the enhanced data of an accepting answer into effect for the initiator that made the Offer.
func (o *Offer) Conclude(n *Negotiated, answered Enhanced) {
	e, able := answered, o.RTR.orAll()
	n.Enhanced, n.PeerIRD, n.PeerORD, n.AnsweredRTR = true, e.IRD, e.ORD, e.RTR()
	n.ORD = initiatorORD(o.ORD, e.IRD)
	ird, enough := initiatorIRD(o.IRD, maxIRD(o.IRD, o.MaxIRD), e.ORD)
	n.IRD = ird
	if !o.ClientServer {
		n.OfferedRTR = able
	}
	// A=1 in the answer to A=0 breaks the rule that the responder follows. It waits
	// for an RTR indication then, and we can send one, so we do: it serves both
	// models. A=0 in the answer to A=1 leaves our consumers without the model they
	// asked for, and no RTR indication that the responder supports (B, C and D do
	// not count): code 7, the "failure to negotiate a mutually compatible
	// connection model or RTR option" of RFC 6581, section 9.2. [E08] [E10]
	n.PeerToPeer = e.A || !o.ClientServer
	if n.PeerToPeer {
		n.RTR = chooseRTR(able & e.RTR())
	}
	switch {
	case n.PeerToPeer && n.RTR == 0:
		n.TerminateCode = CodeNoMatchingRTR // [E10]
	case !enough:
		n.TerminateCode = CodeInsufficientIRD // [E05]
	}
}

// Check reports values of an Answer that have no place in an answer of the dialect. The error wraps [ErrOffer].
func (a Answer) Check(d Dialect) error {
	o := a.Offer()
	return o.check(d)
}

// Conclude negotiates for the responder that accepts an enhanced Request, and returns the enhanced data of its
// answer.
func (a *Answer) Conclude(n *Negotiated, q *Request) (e Enhanced) {
	n.Enhanced, n.PeerIRD, n.PeerORD = true, q.IRD, q.ORD
	n.IRD, e.IRD = responderIRD(a.IRD, maxIRD(a.IRD, a.MaxIRD), q.ORD)
	n.ORD, e.ORD = responderORD(a.ORD, q.IRD)
	// RFC 6581, section 9.2: "The responder MUST set Control Flag A to 0 if Control
	// Flag A is 0 in the request. If Control Flag A is set to 0, then Control Flags
	// B, C, and D MUST also be set to 0." [E07]
	if !q.PeerToPeer {
		return e
	}
	// "If Control Flag A is 1 in the MPA Request message, then the responder MUST
	// set Control Flag A to 1 in the MPA reply message." [E08]
	n.PeerToPeer, n.OfferedRTR = true, q.RTR
	n.RTR = answerRTR(q.RTR, a.RTR.orAll(), a.AllRTR)
	n.AnsweredRTR = n.RTR
	// Section 9.1: "if the initiator ORD is 0 [...] and the responder supports use
	// of a zero-length RDMA Read RTR indication, then the responder IRD can be set
	// to 1." [E04] It stays as it is where e.IRD is NoNegotiation. [E06]
	if n.RTR&RTRRead != 0 && e.IRD == 0 {
		n.IRD, e.IRD = 1, 1
	}
	return e.WithRTR(n.RTR)
}

// Ask fills in what the enhanced data of a Request says.
func (q *Request) Ask(e Enhanced) {
	q.Enhanced, q.IRD, q.ORD, q.PeerToPeer, q.RTR = true, e.IRD, e.ORD, e.A, e.RTR()
}

// Rejection returns the enhanced data of an answer that rejects an enhanced Request, with the depths that would
// have been acceptable, and the kinds of RTR indication that are supported. The rules for 0x3FFF and for A hold
// for every "reply message".
func (q *Request) Rejection(ird, ord Depth, supported RTR) Enhanced {
	e := Enhanced{IRD: ird, ORD: ord}
	if q.ORD == NoNegotiation {
		e.IRD = NoNegotiation
	}
	if q.IRD == NoNegotiation {
		e.ORD = NoNegotiation
	}
	if q.PeerToPeer {
		e = e.WithRTR(answerRTR(q.RTR, supported, false))
	}
	return e
}
