package peers

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/internal/ulpdata"
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
	// Rejects: as Responder it sends a Reply with R=1, and then FIN; as Initiator it
	// sends FIN.
	Rejects
	// Crashes: the system of the peer goes down.
	Crashes
)

// String returns what the peer does, as a verb.
func (e End) String() string {
	names := [...]string{"tolerates it", "closes the connection", "resets the connection",
		"rejects the connection", "crashes"}
	if int(e) < len(names) {
		return names[e]
	}
	return fmt.Sprintf("end %d", uint8(e))
}

// A Behavior is what one implementation does. The zero value is a peer that takes
// frames of RFC 5044 with revision 0 only, and asks for nothing.
type Behavior struct {
	// Revision of its Requests. 2 is RFC 6581 with S=1.
	Revision uint8
	// FallsBack: if its revision 2 Request is answered by RST, it tries again with
	// revision 1.
	FallsBack bool
	// PlainReply is what it does about a Reply without enhanced data to a Request
	// with such.
	PlainReply End
	// PeerToPeer sets A=1 in its Requests, with OfferRTR.
	PeerToPeer bool
	OfferRTR   mpa.RTR
	// TakesRTR are the RTR indications of which it chooses the first that the Reply
	// names. If it has not offered that one, it sends a Terminate with code 7.
	TakesRTR []mpa.RTR
	// ReadNeedsIRD: a Reply that names Read, with IRD 0, makes it reset.
	ReadNeedsIRD bool
	// HigherORD is what it does about a Reply whose ORD is above its own IRD. If it
	// Tolerates that, its IRD grows up to MaxIRD; beyond, it sends a Terminate with
	// code 6.
	HigherORD End
	// FirstRead: with revision 1 its first FPDU is a zero-length Read, which nobody
	// has negotiated, and it waits for the answer.
	FirstRead bool

	// Lowest and Highest are the revisions that it takes as Responder; BadRevision is
	// what it does about others.
	Lowest, Highest uint8
	BadRevision     End
	// IgnoresS: revision 2 is enhanced, whatever S says.
	IgnoresS bool
	// AnswersRTR are the RTR indications of which a Reply names the first that was
	// offered, or, with AnswersAll, all that were. It names OtherwiseRTR if none was.
	AnswersRTR   []mpa.RTR
	AnswersAll   bool
	OtherwiseRTR mpa.RTR
	// EchoesBits: the Reply has the reserved bits of the Request, and its S and R.
	EchoesBits bool
	// AnyFirst: any first FPDU will do where an RTR indication was agreed on.
	AnyFirst bool
	// SendsEarly: with A=0 it may send before the Initiator's first FPDU.
	SendsEarly bool

	// The rest holds in both roles.

	// AsksCRC sets C=1. NoCRC is what it does about C=0 in the frame of its peer.
	AsksCRC bool
	NoCRC   End
	// Markers is what it does about M=1: if it Tolerates that, it inserts them. No
	// peer here asks for markers.
	Markers End
	// NotPeerToPeer is what it does about A=0 in an enhanced frame.
	NotPeerToPeer End
	// MaxIRD and MaxORD are its depths, unless its consumer asks for less.
	MaxIRD, MaxORD mpa.Depth
	// NoNegotiation: it knows 0x3FFF, which is a very large depth to others.
	NoNegotiation bool
	// MaxPDLength is the highest PD_Length that it takes: bytes, the enhanced data
	// included. LongRequest and LongReply are what it does about more.
	MaxPDLength            int
	LongRequest, LongReply End
	// ShortRequest and ShortReply are what it does about enhanced frames without
	// room for the enhanced data.
	ShortRequest, ShortReply End
	// Glued is what it does about bytes that arrive together with a startup frame
	// and follow it.
	Glued End
	// Split is what it does about a startup frame that does not arrive in one
	// segment.
	Split End
	// STag0 is what it does about an RTR indication with STag 0.
	STag0 End
	// SMBDirect: private data of revision 1 begins with IRD and ORD as in MS-SMBD, or
	// the connection is reset.
	SMBDirect bool
	// SwapsTerminate: the nibbles of the first byte of a Terminate are swapped.
	SwapsTerminate bool
	// RequestTimeout and ReplyTimeout bound its waits; it closes the connection then.
	// Zero is no bound.
	RequestTimeout, ReplyTimeout time.Duration
}

// AnswerRTR returns the RTR indications that a Reply of the peer names, where the
// Request offers some.
func (b *Behavior) AnswerRTR(offered mpa.RTR) (kinds mpa.RTR) {
	for _, kind := range b.AnswersRTR {
		if offered&kind != 0 {
			kinds |= kind
			if !b.AnswersAll {
				break
			}
		}
	}
	if kinds == 0 {
		return b.OtherwiseRTR
	}
	return kinds
}

// AnswerDepths returns the IRD and ORD of a Reply of the peer, whose consumer has
// depths of ird and ord, to a Request with the given ones.
func (b *Behavior) AnswerDepths(ird, ord, requestIRD, requestORD mpa.Depth) (replyIRD, replyORD mpa.Depth) {
	replyIRD, replyORD = min(max(ird, requestORD), b.MaxIRD), min(ord, requestIRD)
	if b.NoNegotiation && requestORD == mpa.NoNegotiation {
		replyIRD = mpa.NoNegotiation
	}
	if b.NoNegotiation && requestIRD == mpa.NoNegotiation {
		replyORD = mpa.NoNegotiation
	}
	return replyIRD, replyORD
}

// MaxPrivateData returns how many bytes of a consumer's private data the peer takes
// in a frame, which in revision 2 is an enhanced one.
func (b *Behavior) MaxPrivateData(revision uint8) int {
	switch {
	case revision >= 2:
		return b.MaxPDLength - mpa.EnhancedLen
	case b.SMBDirect:
		return b.MaxPDLength - ulpdata.SMBDirectLen
	}
	return b.MaxPDLength
}
