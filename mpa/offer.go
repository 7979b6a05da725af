package mpa

import (
	"fmt"
	"time"
)

// Default startup timeouts. The initiator's includes the time that the responder's
// consumer takes to decide, so it is the longer one. [Q12]
const (
	DefaultRequestTimeout = 5 * time.Second  // a responder's wait for a whole Request
	DefaultReplyTimeout   = 10 * time.Second // an initiator's wait for a whole Reply
)

// Role is which end of the startup we are.
type Role uint8

// The roles of RFC 5044, Section 7.1: the initiator is the one that sends first.
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

// Offer is what one end wants of a connection. The zero value is what interoperates
// best with RFC 6581 peers, with no RDMA Reads: set IRD and ORD.
type Offer struct {
	// Dialect of the initiator's Request. If zero, DialectRFC6581, or
	// DialectRevision0 of a KindRDMAC; DialectRFC6581 becomes DialectRFC5044 if
	// nothing of RFC 6581 is wanted: ClientServer, and IRD and ORD both
	// NoNegotiation [E02]. A responder answers in the Request's dialect and does
	// not look at it.
	Dialect Dialect

	// Kind of RNIC that we are. If zero, an initiator is a KindPermissive, and a
	// responder what its ResponderConfig says. [N01]
	Kind Kind

	// Messages, of a DialectStartKey initiator, sends PrivateData in a message of
	// the streaming mode, before the Start Keys, and waits for the responder's.
	// Without it there is no private data in that dialect. [K07]
	Messages bool

	// Markers asks the peer to insert markers into what it sends us. [Q04]
	Markers bool

	// NoCRC is the system administrator's wish to do without CRCs; it must never
	// be the ULP's. CRCs are used all the same if the peer wants them. [F13]
	NoCRC bool

	// IRD and ORD are our depths of inbound and outbound RDMA Reads, 0 to 0x3FFE,
	// or NoNegotiation, which leaves them to the ULP. [E06]
	IRD, ORD uint16

	// MaxIRD bounds by how much IRD may grow to meet the peer's ORD. If it is not
	// above IRD, IRD does not grow: a responder then answers with its IRD and
	// leaves it to the initiator to lower its ORD, and an initiator whose
	// responder insists on more ends with code 6. [E05] [E14]
	MaxIRD uint16

	// ClientServer, of an initiator, sets A=0: the initiator's first message
	// serves as RTR indication, and the responder must not send before it has
	// arrived. The default is peer-to-peer, where an RTR indication that the
	// consumers do not see opens the responder's direction. A responder follows
	// the Request and does not look at it. [E07] [E12]
	ClientServer bool

	// RTR is the set of RTR indications that an initiator offers to send and that
	// a responder supports. If zero, an initiator offers Write and Read, and a
	// responder supports all three kinds. [E07] [E08]
	RTR RTR

	// AllRTR has a responder answer with every kind that it supports. By default it
	// answers with those that were offered too, and does not name Send beside
	// another kind. [E08]
	AllRTR bool

	// PrivateData is the ULP's, at most 512 octets without, and 508 with the
	// enhanced data of RFC 6581. [E01]
	PrivateData []byte

	// Timeout bounds an initiator's wait for the whole Reply. If zero,
	// [DefaultReplyTimeout]; if negative, there is none. Of a responder
	// it is in [ResponderConfig]. [Q12]
	Timeout time.Duration
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
	// RFC 6581, Section 10: "The initiator MUST NOT use the enhanced RDMA connection
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
		return fmt.Errorf("%w: %v takes DDP and RDMAP version %d, which an RNIC of kind %v does not have", ErrOffer, o.Dialect, o.Dialect.row().version, o.Kind)
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
		return fmt.Errorf("%w: %d octets of private data: the Start Key has no room for any, only private data messages before it have (Messages)", ErrOffer, len(o.PrivateData))
	}
	return checkPrivateData(len(o.PrivateData), d)
}

func checkDepths(ird, ord uint16) error {
	if ird > NoNegotiation || ord > NoNegotiation {
		return fmt.Errorf("%w: IRD %d, ORD %d: at most %d each", ErrOffer, ird, ord, maxDepth)
	}
	return nil
}

func checkPrivateData(n int, d Dialect) error {
	if room := d.row().ulpData; n > room {
		return fmt.Errorf("%w: %d octets of private data: at most %d fit a frame of %v", ErrOffer, n, room, d)
	}
	return nil
}

func (o *Offer) maxIRD() uint16 { return min(max(o.IRD, o.MaxIRD), NoNegotiation) }

// rtr returns the kinds that a role can do.
func (o *Offer) rtr(role Role) RTR {
	switch {
	case o.RTR != 0:
		return o.RTR
	case role == RoleInitiator:
		return RTRWrite | RTRRead
	}
	return rtrAll
}

// timeout resolves a Timeout setting; zero is none.
func timeout(d, byDefault time.Duration) time.Duration {
	if d == 0 {
		return byDefault
	}
	return max(d, 0)
}
