package sctp

import (
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// Connect asks the peer for a session on a stream that is free, and returns the stream. What comes of it is an
// EventEstablished or an EventRefused. Markers and NoCRC of the Offer have no effect: see CheckOffer. The error is
// ErrLimit, or wraps mpa.ErrOffer.
func (a *Association) Connect(now time.Time, o mpa.Offer) (id uint16, err error) {
	if o, err = resolved(o); err != nil {
		return 0, err
	}
	id, ok := a.freeStream()
	if !ok || a.busy >= a.cfg.MaxSessions || a.end.How != NotYet {
		return 0, ErrLimit
	}
	enhanced := o.Dialect == mpa.DialectRFC6581
	s := a.startSession(id, InitiateSent, session{enhanced: enhanced, offer: o, known: true})
	s.deadline = now.Add(a.cfg.AnswerTimeout)
	a.sendControl(s, initiate(&o, enhanced))
	return id, nil
}

// initiate returns the Initiate that an Offer makes. [C01] [C02]
func initiate(o *mpa.Offer, enhanced bool) Control {
	c := Control{Function: FunctionInitiate.as(enhanced), PrivateData: o.PrivateData}
	if enhanced {
		c.Enhanced = o.Enhanced()
	}
	return c
}

// resolved settles what of an Offer is open. DDP over SCTP is version 1: RFC 5043, section 5.2.2.
//
// RFC 6581, section 10: "The initiator MUST NOT use the enhanced RDMA connection establishment formats or function
// codes when no enhanced functionality is desired."
func resolved(o mpa.Offer) (mpa.Offer, error) {
	o, err := o.Resolved()
	if err == nil {
		err = checkDialect(o.Dialect)
	}
	return o, err
}

// freeStream returns the lowest stream that is free and ours to choose.
func (a *Association) freeStream() (id uint16, ok bool) {
	for i := one(!a.cfg.Active); i < a.cfg.Streams; i += 2 {
		if a.State(uint16(i)) == Idle {
			return uint16(i), true
		}
	}
	return 0, false
}

// answered acts on the first message of the peer, while ours waits for it.
func (a *Association) answered(now time.Time, s *session, c Control) {
	if c.Function.Plain() != FunctionInitiate {
		s.opened()
	}
	switch c.Function {
	case FunctionAccept, FunctionEnhancedAccept:
		a.accepted(now, s, c)
	case FunctionReject, FunctionEnhancedReject:
		a.refused(now, s, &Refusal{
			Dialect: dialectOf(c.Function), PrivateData: clone(c.PrivateData), Enhanced: c.HasEnhanced(),
			PeerIRD: c.Enhanced.IRD, PeerORD: c.Enhanced.ORD, RTR: c.Enhanced.RTR(),
		})
	case FunctionTerminate:
		a.refused(now, s, &Refusal{Provider: true, Fallback: s.enhanced})
	default:
		// RFC 5043, section 6.2: "one DDP Endpoint assumes the active role". [C04]
		a.violate(now, s, 0, violation(RuleSequence, "an %v in answer to ours", c.Function))
	}
}

// accepted opens the session.
//
// RFC 6581, section 10: an enhanced responder "MUST respond with an enhanced" answer to an enhanced request, and
// "issue unenhanced RDMA connection establishment responses in response to unenhanced" ones. [C01]
func (a *Association) accepted(now time.Time, s *session, c Control) {
	if c.Function.IsEnhanced() != s.enhanced {
		a.violate(now, s, 0, violation(RuleKind, "%v to %v", c.Function, FunctionInitiate.as(s.enhanced)))
		return
	}
	n := agreed(mpa.RoleInitiator, s.offer.Dialect)
	n.IRD, n.ORD, n.PrivateData = s.offer.IRD, s.offer.ORD, clone(c.PrivateData)
	if s.enhanced {
		s.offer.Conclude(&n, c.Enhanced)
	}
	a.enter(s, Open)
	s.deadline = time.Time{}
	a.emit(Event{Kind: EventEstablished, Stream: s.on.id, Negotiated: n})
	a.events = append(a.events, s.early...)
	a.forget(s)
}

// agreed is what holds for all sessions.
//
// RFC 5043, section 6.2: "Each side may then send zero or more DDP Segments"; RFC 6581, section 7: RFC 5043 "already
// supports either side sending the first DDP Message". [C04]
func agreed(role mpa.Role, d mpa.Dialect) mpa.Negotiated {
	return mpa.Negotiated{
		Role: role, Dialect: d, DDPVersion: 1, RDMAPVersion: 1,
		PeerIRD: mpa.NoNegotiation, PeerORD: mpa.NoNegotiation, SendFirst: true,
	}
}

// dialectOf is the dialect whose function f is.
func dialectOf(f Function) mpa.Dialect {
	if f.IsEnhanced() {
		return mpa.DialectRFC6581
	}
	return mpa.DialectRFC5044
}

// refused ends a session that never was.
func (a *Association) refused(now time.Time, s *session, r *Refusal) {
	a.emit(Event{Kind: EventRefused, Stream: s.on.id, Err: r})
	s.known = false
	a.endSession(now, s, nil)
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }

// An OfferError names a setting of an Offer that only MPA has. It is an mpa.ErrOffer.
type OfferError struct {
	Field  string // of mpa.Offer
	Reason string
}

func (e *OfferError) Error() string { return "sctp: " + e.Field + ": " + e.Reason }

// Unwrap returns mpa.ErrOffer.
func (e *OfferError) Unwrap() error { return mpa.ErrOffer }

// CheckOffer refuses what no session has: markers, no CRCs, the dialects that are MPA's, and what only RDMAC RNICs
// do. The error is an *OfferError. Connect has no use for Markers and NoCRC: they may be defaults of an RNIC that is
// for MPA, too.
func CheckOffer(o mpa.Offer) error {
	switch {
	case o.Markers:
		return &OfferError{"Markers", "over SCTP there are no markers"}
	case o.NoCRC:
		return &OfferError{"NoCRC", "SCTP has a checksum of its own, which is always on"}
	case o.Kind == mpa.KindRDMAC:
		return &OfferError{"Kind", "RDMAC RNICs have TCP only"}
	case o.Dialect != 0:
		return checkDialect(o.Dialect)
	}
	return nil
}

// checkDialect wants the enhanced startup of RFC 6581, or the plain one of RFC 5043, which go by the dialects' names.
func checkDialect(d mpa.Dialect) error {
	if d == mpa.DialectRFC6581 || d == mpa.DialectRFC5044 {
		return nil
	}
	return &OfferError{"Dialect", "over SCTP there are rfc6581, which is the enhanced startup, and rfc5044"}
}
