package mpa

import (
	"fmt"
	"time"
)

// Default startup timeouts. The initiator's includes the time that the responder's
// consumer takes to decide, so it is the longer one.
const (
	DefaultRequestTimeout = 5 * time.Second  // a responder's wait for a whole Request
	DefaultReplyTimeout   = 10 * time.Second // an initiator's wait for a whole Reply
)

// Role is which end of the startup we are.
type Role uint8

// The roles of RFC 5044, section 7.1: the initiator is the one that sends first.
const (
	RoleInitiator Role = iota + 1
	RoleResponder
)

// String returns the RFC's name of the role.
func (r Role) String() string {
	switch r {
	case RoleInitiator:
		return "Initiator"
	case RoleResponder:
		return "Responder"
	}
	return fmt.Sprintf("role %d", uint8(r))
}

// Offer is what an initiator wants of a connection. The zero value is what interoperates
// best with RFC 6581 peers, with no RDMA Reads: set IRD and ORD.
type Offer struct {
	// Dialect of the Request. If zero, DialectRFC6581, or DialectRevision0 of a
	// KindRDMAC. DialectRFC6581 becomes DialectRFC5044 if nothing of RFC 6581 is
	// wanted: ClientServer, and IRD and ORD both NoNegotiation.
	Dialect Dialect

	// Kind of RNIC that we are. If zero, KindPermissive.
	Kind Kind

	// Messages has a DialectStartKey initiator send PrivateData in a message of the
	// streaming mode, before the Start Keys, and wait for the responder's. Without it
	// there is no private data in that dialect.
	Messages bool

	// Markers asks the peer to insert markers into what it sends us.
	Markers bool

	// NoCRC is the system administrator's wish to do without CRCs; it must never be the
	// ULP's: RFC 5044, section 4.4. CRCs are used all the same if the peer wants them.
	NoCRC bool

	// IRD and ORD are our depths of inbound and outbound RDMA Reads. NoNegotiation
	// leaves them to the ULP.
	IRD, ORD Depth

	// MaxIRD is what IRD may grow to where the peer's ORD is higher. If it is not above
	// IRD, IRD does not grow. An initiator whose responder insists on more than that
	// ends the connection with code 6.
	MaxIRD Depth

	// ClientServer sets A=0: our first message serves as RTR indication, and the
	// responder must not send before it has arrived. The default is peer-to-peer, where
	// an RTR indication that the consumers do not see opens the responder's direction.
	ClientServer bool

	// RTR is the set of RTR indications that we can send, all of which the Request names. If
	// zero, all three kinds. Of those that the Reply names too, the first of Write, Read and
	// Send is sent.
	RTR RTR

	// PrivateData is the ULP's, at most 512 bytes without, and 508 with the enhanced
	// data of RFC 6581.
	PrivateData []byte

	// Timeout bounds the wait for the whole Reply. If zero, [DefaultReplyTimeout]; if
	// negative, there is none.
	Timeout time.Duration
}

// Answer is what a responder wants of a connection that it accepts. The dialect is the
// Request's, and whether the connection is peer-to-peer is in the Request. The zero value
// suits any Request, with no RDMA Reads: set IRD and ORD.
type Answer struct {
	// Kind of RNIC that we are for this connection. If zero, that of the
	// ResponderConfig.
	Kind Kind

	// Markers and NoCRC are as in an Offer.
	Markers, NoCRC bool

	// IRD, ORD and MaxIRD are as in an Offer. If the IRD may not grow to the
	// initiator's ORD, the initiator has to lower its ORD.
	IRD, ORD, MaxIRD Depth

	// RTR is the set of RTR indications that we take. If zero, all three kinds.
	RTR RTR

	// AllRTR names every kind of RTR in the Reply that we take. By default the Reply names
	// those that the initiator offered too. Leave it off for Chelsio's RNICs: they send a
	// Terminate when the Reply names a Write that they did not offer.
	AllRTR bool

	// PrivateData is as in an Offer.
	PrivateData []byte
}

// Offer returns the same as an initiator's Offer, for code that serves both roles. An
// Offer has no AllRTR.
func (a Answer) Offer() Offer {
	return Offer{
		Kind: a.Kind, Markers: a.Markers, NoCRC: a.NoCRC, IRD: a.IRD, ORD: a.ORD, MaxIRD: a.MaxIRD,
		RTR: a.RTR, PrivateData: a.PrivateData,
	}
}

// Answer returns what an Offer and an Answer have in common.
func (o Offer) Answer() Answer {
	return Answer{
		Kind: o.Kind, Markers: o.Markers, NoCRC: o.NoCRC, IRD: o.IRD, ORD: o.ORD, MaxIRD: o.MaxIRD,
		RTR: o.RTR, PrivateData: o.PrivateData,
	}
}

// resolve settles the kind and the dialect of an initiator's Request.
func (o *Offer) resolve() error {
	o.Kind = o.Kind.or(KindPermissive)
	if o.Dialect == 0 {
		o.Dialect = DialectRFC6581
		if o.Kind == KindRDMAC {
			o.Dialect = DialectRevision0
		}
	}
	// RFC 6581, section 10: "The initiator MUST NOT use the enhanced RDMA connection
	// establishment formats or function codes when no enhanced functionality is
	// desired." [E02]
	if o.Dialect == DialectRFC6581 && o.ClientServer && o.IRD == NoNegotiation && o.ORD == NoNegotiation {
		o.Dialect = DialectRFC5044
	}
	switch {
	case !o.Kind.known():
		return fmt.Errorf("%w: there is no %v", ErrOffer, o.Kind)
	case !o.Dialect.known():
		return fmt.Errorf("%w: there is no %v", ErrOffer, o.Dialect)
	case !o.Kind.speaks(o.Dialect):
		return fmt.Errorf("%w: %v takes DDP and RDMAP version %d, which an RNIC of kind %v does not have",
			ErrOffer, o.Dialect, o.Dialect.row().version, o.Kind)
	}
	return nil
}

// check reports values that have no place in a frame of the dialect.
func (o *Offer) check(d Dialect) error {
	if err := checkDepths(o.IRD, o.ORD); err != nil {
		return err
	}
	if o.RTR&^rtrAll != 0 {
		return fmt.Errorf("%w: unknown RTR kinds 0x%02x", ErrOffer, uint8(o.RTR))
	}
	if d == DialectStartKey && !o.Messages && len(o.PrivateData) > 0 {
		return fmt.Errorf("%w: %d bytes of private data: the Start Key has no room for any, only private data messages before it have (Messages)", ErrOffer, len(o.PrivateData))
	}
	return checkPrivateData(len(o.PrivateData), d)
}

func checkDepths(ird, ord Depth) error {
	if ird > NoNegotiation || ord > NoNegotiation {
		return fmt.Errorf("%w: IRD %d, ORD %d: at most %d each", ErrOffer, ird, ord, MaxDepth)
	}
	return nil
}

func checkPrivateData(n int, d Dialect) error {
	if room := d.row().ulpData; n > room {
		return fmt.Errorf("%w: %d bytes of private data: at most %d fit a frame of %v", ErrOffer, n, room, d)
	}
	return nil
}

func maxIRD(ird, most Depth) Depth { return min(max(ird, most), NoNegotiation) }

// orAll returns the kinds that an end supports, by its setting: an initiator sends them, and
// a responder takes them.
func (r RTR) orAll() RTR {
	if r == 0 {
		return rtrAll
	}
	return r
}

// timeout resolves a Timeout setting; zero is none.
func timeout(d, byDefault time.Duration) time.Duration {
	if d == 0 {
		return byDefault
	}
	return max(d, 0)
}
