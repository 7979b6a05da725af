package peers

import (
	"fmt"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/mpa"
)

const allRTR = mpa.RTRSend | mpa.RTRWrite | mpa.RTRRead

// noNudge turns nudges off, and what is said of a silent peer in their place.
const noNudge = -1

// Reasons that several RNICs share.
const (
	whyNoNudge   = "an RNIC does not miss the first FPDU as siw may, and its Reply of revision 1 does not show that it is none: the log would advise of siw"
	whyDepths    = "its own maximum, as revision 1 does not negotiate"
	whyRevision2 = "its default; an RNIC that is set to revision 1 resets the connection, and the Dialer tries that"
)

// depths are the reasons for an IRD and an ORD in both roles.
func depths(ird, ord string) []Reason {
	return []Reason{{"Initiate.IRD", ird}, {"Initiate.ORD", ord}, {"Accept.IRD", ird}, {"Accept.ORD", ord}}
}

func whyChelsioMaxPDLength() string {
	return fmt.Sprintf("it resets a connection with a PD_Length over %d", KernelMaxPDLength)
}

// chelsio is what Chelsio's drivers have in common.
func chelsio() Behavior {
	return Behavior{
		Revision: 2, FallsBack: true, PlainReply: Resets,
		// It looks for a Write in the Reply first, although it offers Read alone.
		PeerToPeer: true, OfferRTR: mpa.RTRRead, TakesRTR: []mpa.RTR{mpa.RTRWrite, mpa.RTRRead},
		FirstRead: true,

		Lowest: 0, Highest: 2, BadRevision: Resets,
		OtherwiseRTR: mpa.RTRRead, // whatever is offered

		AsksCRC: true,
		MaxIRD:  32, MaxORD: 32,
		MaxPDLength: KernelMaxPDLength, LongRequest: Resets, LongReply: Resets,
		ShortRequest: Resets, ShortReply: Resets,
		Glued: Resets, STag0: Resets,
		RequestTimeout: 60 * time.Second, ReplyTimeout: 60 * time.Second,
	}
}

// chelsioAssumed are fields that Chelsio's drivers do not show, or that a parameter
// changes.
func chelsioAssumed() []string {
	return []string{"PlainReply", "ShortReply", "NotPeerToPeer", "IgnoresS"}
}

func cxgb4() Peer {
	return Peer{
		Name: "cxgb4", Title: "cxgb4 (Chelsio, Linux)", Product: "Chelsio T4 to T6 (Linux iw_cxgb4)",
		Source:   "Chelsio's Linux driver, read",
		Behavior: chelsio(), Assumed: chelsioAssumed(),
		Advice: Advice{
			Initiate: mpa.Offer{Dialect: mpa.DialectRFC6581, RTR: mpa.RTRRead, IRD: 32, ORD: 32},
			Accept:   mpa.Answer{IRD: 32, ORD: 32},
			Dialects: []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044},
			Reasons: slices.Concat([]Reason{
				{"Initiate.Dialect", whyRevision2},
				{"Initiate.RTR", "it answers Read whatever was offered: an offer without Read ends in a Terminate. It refuses STag 0 in an RTR indication: this package sends 1"},
				{"Accept.AllRTR", "it offers Read alone, and sends a Terminate if the Reply names a Write too: leave it false"},
			}, depths(whyDepths, whyDepths), []Reason{
				{"Dialects", "revision 2, or 1 by a parameter: it then opens a peer-to-peer connection by a zero-length Read that nobody has negotiated, which we answer whatever our IRD is"},
				{"MaxPDLength", whyChelsioMaxPDLength()},
			}),
		},
	}
}

func freebsd() Peer {
	b := chelsio()
	b.Revision, b.Highest = 1, 1
	b.PeerToPeer, b.FirstRead = false, false
	b.MaxIRD, b.MaxORD = 8, 8
	return Peer{
		Name: "freebsd", Title: "iw_cxgbe (Chelsio, FreeBSD)", Product: "Chelsio T4 to T6 (FreeBSD iw_cxgbe)",
		Source:   "Chelsio's FreeBSD driver, read: it has one origin with the Linux driver",
		Behavior: b, Assumed: chelsioAssumed(),
		Advice: Advice{
			Initiate: mpa.Offer{Dialect: mpa.DialectRFC5044, IRD: b.MaxIRD, ORD: b.MaxORD},
			Accept:   mpa.Answer{IRD: b.MaxIRD, ORD: b.MaxORD},
			Dialects: []mpa.Dialect{mpa.DialectRFC5044, mpa.DialectRFC6581},
			Nudge:    noNudge,
			Reasons: slices.Concat([]Reason{
				{"Initiate.Dialect", "it runs with revision 1 and resets a connection of a higher one, which costs a second connection"},
			}, depths(whyDepths, fmt.Sprintf("revision 1 does not negotiate, and more than its %d inbound Reads end the connection", b.MaxIRD)), []Reason{
				{"Dialects", "revision 1, or 2 by a tunable"},
				{"Nudge", whyNoNudge},
				{"MaxPDLength", whyChelsioMaxPDLength()},
			}),
		},
	}
}

func irdma() Peer {
	return Peer{
		Name: "irdma", Title: "irdma (Intel)", Product: "Intel X722, E810 (Linux irdma, i40iw)",
		Source: "Intel's Linux driver, read",
		Behavior: Behavior{
			Revision: 2, FallsBack: true, PlainReply: Resets,
			PeerToPeer: true, OfferRTR: mpa.RTRWrite | mpa.RTRRead, TakesRTR: []mpa.RTR{mpa.RTRRead, mpa.RTRWrite},
			ReadNeedsIRD: true, HigherORD: Resets,

			Lowest: 1, Highest: 2, BadRevision: Resets, IgnoresS: true,
			AnswersRTR: []mpa.RTR{mpa.RTRRead, mpa.RTRWrite}, OtherwiseRTR: mpa.RTRRead,

			AsksCRC: true, NotPeerToPeer: Resets,
			MaxIRD: 32, MaxORD: 32, NoNegotiation: true,
			MaxPDLength: mpa.MaxPrivateData, LongRequest: Resets, LongReply: Resets,
			ShortRequest: Resets, ShortReply: Resets,
			Split: Resets,
		},
		Assumed: []string{"MaxIRD", "MaxORD", "RequestTimeout", "ReplyTimeout", "ShortReply", "Glued"},
		Advice: Advice{
			Initiate: mpa.Offer{Dialect: mpa.DialectRFC6581, RTR: mpa.RTRWrite | mpa.RTRRead},
			Accept:   mpa.Answer{RTR: mpa.RTRWrite | mpa.RTRRead},
			Dialects: []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044},
			Reasons: []Reason{
				{"Initiate.Dialect", whyRevision2},
				{"Initiate.ClientServer", "it resets a revision 2 connection whose Request or Reply has A=0: leave it false"},
				{"Initiate.RTR", "it answers Read if that is offered, or else Write, and has no Send"},
				{"Accept.RTR", "it offers Write and Read, and takes Read where it may. A Reply that names Read with IRD 0 is an error to it: our IRD is at least 1 there"},
				{"Dialects", "revision 2, or 1 by a parameter"},
				{"MaxPDLength", "it wants the whole frame in one TCP segment: the longest frame, 532 bytes, fits the smallest segment, and leaves in one write"},
			},
		},
	}
}

func qedr() Peer {
	return Peer{
		Name: "qedr", Title: "qedr (Marvell)", Product: "Marvell FastLinQ 41000, 45000 (Linux qedr)",
		Source: "Marvell's Linux driver, read; firmware does the startup, and what that does about bad input is assumed",
		Behavior: Behavior{
			Revision: 2, PlainReply: Resets,
			PeerToPeer: true, OfferRTR: allRTR, TakesRTR: []mpa.RTR{mpa.RTRRead, mpa.RTRWrite, mpa.RTRSend},

			Lowest: 1, Highest: 2, BadRevision: Resets,
			AnswersRTR: []mpa.RTR{mpa.RTRSend, mpa.RTRWrite, mpa.RTRRead}, AnswersAll: true, OtherwiseRTR: allRTR,

			AsksCRC: true,
			MaxIRD:  32, MaxORD: 32,
			MaxPDLength: mpa.MaxPrivateData, LongRequest: Resets, LongReply: Resets,
			ShortRequest: Resets, ShortReply: Resets,
			RequestTimeout: 60 * time.Second, ReplyTimeout: 60 * time.Second,
		},
		Assumed: []string{
			"FallsBack", "PlainReply", "Lowest", "BadRevision", "IgnoresS", "Markers", "NotPeerToPeer", "MaxPDLength",
			"LongRequest", "LongReply", "ShortRequest", "ShortReply", "Glued", "Split",
			"RequestTimeout", "ReplyTimeout",
		},
		Advice: Advice{
			Initiate: mpa.Offer{Dialect: mpa.DialectRFC6581, RTR: mpa.RTRWrite | mpa.RTRRead, IRD: 32, ORD: 32},
			Accept:   mpa.Answer{IRD: 32, ORD: 32},
			Dialects: []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044},
			Reasons: slices.Concat([]Reason{
				{"Initiate.Dialect", "its default"},
				{"Initiate.RTR", "it may name several kinds, and all that it has if none is common to both ends: we send the first that both know, and no Send, which would show on a queue"},
			}, depths(whyDepths, whyDepths), []Reason{
				{"Dialects", "revision 2; 1 is possible"},
			}),
		},
	}
}

func windows() Peer {
	return Peer{
		Name: "windows-v1", Title: "SMB Direct, revision 1 (Windows)",
		Product: "Windows SMB Direct over an RNIC of MPA revision 1 (Chelsio T404-BT)",
		Source:  "MS-SMBD, section 6.1, and what siw had to be set to for an RNIC of revision 1; the rest as Chelsio's",
		Behavior: Behavior{
			Revision: 1, FirstRead: true,
			Lowest: 1, Highest: 1, BadRevision: Resets,

			AsksCRC: true, NoCRC: Resets,
			MaxIRD: 16, MaxORD: 16,
			MaxPDLength: KernelMaxPDLength, LongRequest: Resets, LongReply: Resets,
			Glued: Resets, STag0: Resets, SMBDirect: true,
			RequestTimeout: 60 * time.Second, ReplyTimeout: 60 * time.Second,
		},
		Assumed: []string{"Lowest", "Markers", "MaxIRD", "MaxORD", "Split"},
		Advice: Advice{
			Initiate: mpa.Offer{Dialect: mpa.DialectRFC5044},
			Dialects: []mpa.Dialect{mpa.DialectRFC5044},
			Nudge:    noNudge,
			Reasons: []Reason{
				{"Initiate.Dialect", "the RNIC has no other"},
				{"Initiate.NoCRC", "it requires CRCs: leave it false. (As Initiator it asks for them, which settles it.)"},
				{"Dialects", "the RNIC has no other"},
				{"Nudge", whyNoNudge},
				{"MaxPDLength", fmt.Sprintf("the RNIC is Chelsio's, which resets a connection with a PD_Length over %d: there is room for %d bytes after the depths",
					KernelMaxPDLength, KernelMaxPDLength-ulpdata.SMBDirectLen)},
				{"SMBDirect", "MS-SMBD, section 6.1: in revision 1 the depths, above 0, stand at the head of the private data"},
			},
		},
	}
}
