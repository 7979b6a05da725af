package peersim

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// An End is what a peer does about something.
type End uint8

const (
	// Tolerates: it goes on.
	Tolerates End = iota
	// Closes: it closes the connection in order, by FIN.
	Closes
	// Resets: it closes the connection by RST.
	Resets
	// Rejects: as Responder it sends a Reply with R=1, and then FIN; as Initiator
	// FIN.
	Rejects
	// Crashes: the peer's system goes down. Here that is a RST, and a Refusal that
	// says so.
	Crashes
)

// String returns a word for it.
func (e End) String() string {
	names := [...]string{"tolerates it", "closes the connection", "resets the connection", "rejects the connection", "crashes"}
	if int(e) < len(names) {
		return names[e]
	}
	return fmt.Sprintf("end %d", uint8(e))
}

// A Behaviour is what one implementation does. The zero value is a peer that takes
// what RFC 5044 has, of revision 0 only, and asks for nothing.
type Behaviour struct {
	Name   string // as the preset's, see iwarp.Presets
	Source string // what the row rests on

	// Revision of its Requests. 2 is RFC 6581 with S=1.
	Revision uint8
	// FallsBack: reset on a revision 2 Request, it tries again with revision 1.
	FallsBack bool
	// PlainReply is what it does about a Reply without enhanced data to a Request
	// with such.
	PlainReply End
	// PeerToPeer sets A=1, with OfferRTR.
	PeerToPeer bool
	OfferRTR   mpa.RTR
	// TakesRTR are the RTR indications it sends; the first that the Reply names.
	TakesRTR []mpa.RTR
	// ReadNeedsIRD: a Reply that names Read, with IRD 0, makes it reset.
	ReadNeedsIRD bool
	// HigherORD is what it does about a Reply whose ORD is above its own IRD. If it
	// Tolerates that, its IRD grows up to MaxIRD; beyond, it sends a Terminate with
	// code 6.
	HigherORD End
	// FirstRead: in revision 1 it sends a zero-length Read as its first FPDU, which
	// nobody has negotiated, and waits for the answer.
	FirstRead bool

	// Lowest and Highest are the revisions it takes as Responder; BadRevision is what
	// it does about others.
	Lowest, Highest uint8
	BadRevision     End
	// IgnoresS: revision 2 is enhanced, whatever S says.
	IgnoresS bool
	// AnswersRTR are the RTR indications of which a Reply names the first that was
	// offered, or, with AnswersAll, all that were. OtherwiseRTR is named where none
	// was.
	AnswersRTR   []mpa.RTR
	AnswersAll   bool
	OtherwiseRTR mpa.RTR
	// EchoesBits: the Reply has the reserved bits of the Request, and its S and R.
	EchoesBits bool
	// AnyFirst: any FPDU does where an RTR indication was agreed on.
	AnyFirst bool
	// SendsEarly: with A=0 it may send before the Initiator's first FPDU.
	SendsEarly bool

	// The rest holds in both roles.

	// AsksCRC sets C=1. NoCRC is what it does about C=0 in the peer's frame.
	AsksCRC bool
	NoCRC   End
	// Markers is what it does about M=1: if it Tolerates that, it inserts them. It
	// never asks for any itself.
	Markers End
	// NotPeerToPeer is what it does about A=0 in an enhanced frame.
	NotPeerToPeer End
	// MaxIRD and MaxORD are its depths, unless its consumer has less.
	MaxIRD, MaxORD uint16
	// NoNegotiation: it knows 0x3FFF, which is a very large depth to others.
	NoNegotiation bool
	// MaxPDLength is the longest private data it takes, in octets. LongRequest and
	// LongReply are what it does about more.
	MaxPDLength            int
	LongRequest, LongReply End
	// ShortRequest and ShortReply are what it does about enhanced frames without
	// room for the enhanced data.
	ShortRequest, ShortReply End
	// Glued is what it does about octets behind a startup frame that arrive together
	// with it.
	Glued End
	// Split is what it does about a startup frame that does not arrive in one
	// segment.
	Split End
	// STag0 is what it does about an RTR indication with STag 0.
	STag0 End
	// SMBDirect: private data of revision 1 begins with IRD and ORD, 32 bits each,
	// above 0 and big-endian, or the connection is reset.
	SMBDirect bool
	// SwapsTerminate: the nibbles of the first octet of a Terminate are swapped.
	SwapsTerminate bool
	// RequestTimeout and ReplyTimeout bound its waits; it closes the connection then.
	// Zero is no bound.
	RequestTimeout, ReplyTimeout time.Duration
}

// A Consumer is what runs on top of a peer.
type Consumer struct {
	PrivateData []byte
	// IRD and ORD are its depths, within those of the peer. If both are zero, the
	// peer's. NoReads leaves them zero.
	IRD, ORD uint16
	NoReads  bool
	// Reject has a Responder reject what it could accept, with the private data.
	Reject bool
}

// depths returns those of the consumer on this peer.
func (b *Behaviour) depths(c *Consumer) (ird, ord uint16) {
	if c.IRD == 0 && c.ORD == 0 && !c.NoReads {
		return b.MaxIRD, b.MaxORD
	}
	return min(c.IRD, b.MaxIRD), min(c.ORD, b.MaxORD)
}

// A Refusal is a connection that the peer does not want.
type Refusal struct {
	Peer string   // its name
	Role mpa.Role // the peer's
	Why  string
	End  End
	Err  error // of the connection, if that is the reason
}

// Error says who did what, and why.
func (r *Refusal) Error() string {
	s := fmt.Sprintf("peersim: %s as %v %v: %s", r.Peer, r.Role, r.End, r.Why)
	if r.Err != nil {
		s += ": " + r.Err.Error()
	}
	return s
}

// Unwrap returns the connection's error.
func (r *Refusal) Unwrap() error { return r.Err }
