package peers

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// SIWDepth is the IRD and the ORD that siw answers with, whatever it is asked for.
const SIWDepth = 128

// Nudge is after how long siw is nudged if it is silent.
const Nudge = 10 * time.Millisecond

// LikeSIW reports whether the Reply to a Request of ours is one that siw gives, and no other
// peer here: where RTR indications by Write and Read were offered it names Write alone.
func LikeSIW(n *mpa.Negotiated) bool {
	const both = mpa.RTRWrite | mpa.RTRRead
	return MayBeSIW(n) && n.PeerToPeer && n.OfferedRTR&both == both && n.AnsweredRTR == mpa.RTRWrite
}

// MayBeSIW reports whether siw may have given the Reply to a Request of ours: it names one RTR
// indication, if any. It asks for no markers and sends none, and its depths are at most
// SIWDepth.
func MayBeSIW(n *mpa.Negotiated) bool {
	one := n.AnsweredRTR == mpa.RTRWrite || n.AnsweredRTR == mpa.RTRRead
	deep := n.Enhanced && (n.PeerIRD > SIWDepth || n.PeerORD > SIWDepth)
	spoken := n.Dialect == mpa.DialectRFC6581 || n.Dialect == mpa.DialectRFC5044
	return spoken && n.Role == mpa.RoleInitiator && !n.MarkersSend && !n.MarkersReceive &&
		n.Revision == n.PeerRevision &&
		(one || !n.PeerToPeer) && !deep
}

func siw() Peer {
	return Peer{
		Name: "siw", Title: "siw (Linux)", Product: "Linux siw (software, kernel)",
		Source: "the driver of Linux 6.1, measured; the crashes as read in its source",
		Behavior: Behavior{
			Revision: 2, PlainReply: Closes,
			TakesRTR: []mpa.RTR{mpa.RTRWrite, mpa.RTRRead},
			// Relaxed: it sends a Terminate only above SIWDepth.
			HigherORD: Tolerates,

			Lowest: 0, Highest: 2, BadRevision: Closes,
			AnswersRTR: []mpa.RTR{mpa.RTRWrite, mpa.RTRRead}, OtherwiseRTR: mpa.RTRWrite,
			EchoesBits: true, AnyFirst: true, SendsEarly: true,

			Markers: Rejects,
			MaxIRD:  SIWDepth, MaxORD: SIWDepth,
			MaxPDLength: KernelMaxPDLength, LongRequest: Resets, LongReply: Crashes,
			ShortRequest: Rejects, ShortReply: Crashes,
			Glued:          Resets,
			SwapsTerminate: true,
			RequestTimeout: 5 * time.Second, ReplyTimeout: 10 * time.Second,
		},
		Advice: Advice{
			Initiate:   mpa.Offer{Dialect: mpa.DialectRFC6581, RTR: mpa.RTRWrite | mpa.RTRRead},
			Dialects:   []mpa.Dialect{mpa.DialectRFC6581},
			NoFallback: true,
			Nudge:      Nudge,
			SendEarly:  100 * time.Millisecond,
			Reasons: []Reason{
				{"Initiate.Dialect", "siw takes revision 1 too, but then no IRD and ORD are exchanged, and servers such as rping's fail to post their Reads"},
				{"Initiate.RTR", "siw answers Write if that is offered, or else Read, and Write even if neither is: offering Send alone ends in a Terminate"},
				{"Initiate.Markers", "siw has no markers: it rejects a Request with M=1"},
				{"Accept.Markers", "siw has no markers: it closes the connection after a Reply with M=1"},
				{"Initiate.ClientServer", "both models work; with A=0 siw may send before our first FPDU"},
				{"Dialects", "siw starts with revision 2 only; and it echoes reserved bits, so its S=1 in revision 1 does not announce an Rtr frame"},
				{"NoFallback", "siw takes revision 2: if it closes or resets the connection, that has another cause"},
				{"SendEarly", "siw's programs start with A=0 and may wait for the Responder to speak first, as siw lets it: nothing would ever be sent; siw takes what comes together with the Reply for an error"},
				{"Nudge", "siw may miss the first FPDU if it arrives soon after siw's Reply. The default nudges only where the Reply shows that the peer is siw, which it does not with A=0, or before revision 2"},
				{"MaxPDLength", fmt.Sprintf("siw resets a connection with a PD_Length over %d, and crashes on such a Reply: revision 2 leaves %d bytes",
					KernelMaxPDLength, KernelMaxPDLength-mpa.EnhancedLen)},
			},
		},
	}
}
