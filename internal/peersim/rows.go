package peersim

import (
	"slices"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

const allRTR = mpa.RTRSend | mpa.RTRWrite | mpa.RTRRead

// Rows returns the implementations that are known.
func Rows() []Behaviour {
	return []Behaviour{siw(), cxgb4(), freebsd(), irdma(), qedr(), windows()}
}

// Row returns the row of a name, and false if there is none.
func Row(name string) (Behaviour, bool) {
	rows := Rows()
	i := slices.IndexFunc(rows, func(b Behaviour) bool { return b.Name == name })
	if i < 0 {
		return Behaviour{}, false
	}
	return rows[i], true
}

func siw() Behaviour {
	return Behaviour{
		Name:   "siw",
		Source: "the driver of Linux 6.1, measured; the crashes as read in its source",

		Revision: 2, PlainReply: Closes,
		TakesRTR: []mpa.RTR{mpa.RTRWrite, mpa.RTRRead},
		// Relaxed: it sends a Terminate only above 128.
		HigherORD: Tolerates,

		Lowest: 0, Highest: 2, BadRevision: Closes,
		AnswersRTR: []mpa.RTR{mpa.RTRWrite, mpa.RTRRead}, OtherwiseRTR: mpa.RTRWrite,
		EchoesBits: true, AnyFirst: true, SendsEarly: true,

		Markers: Rejects,
		MaxIRD:  128, MaxORD: 128,
		MaxPDLength: 256, LongRequest: Resets, LongReply: Crashes,
		ShortRequest: Rejects, ShortReply: Crashes,
		Glued:          Resets,
		SwapsTerminate: true,
		RequestTimeout: 5 * time.Second, ReplyTimeout: 10 * time.Second,
	}
}

func cxgb4() Behaviour {
	return Behaviour{
		Name:   "cxgb4",
		Source: "Chelsio's Linux driver, read; PlainReply and ShortReply assumed",

		Revision: 2, FallsBack: true, PlainReply: Resets,
		PeerToPeer: true, OfferRTR: mpa.RTRRead, TakesRTR: []mpa.RTR{mpa.RTRRead},
		FirstRead: true,

		Lowest: 0, Highest: 2, BadRevision: Resets,
		OtherwiseRTR: mpa.RTRRead, // whatever is offered

		AsksCRC: true,
		MaxIRD:  32, MaxORD: 32,
		MaxPDLength: 256, LongRequest: Resets, LongReply: Resets,
		ShortRequest: Resets, ShortReply: Resets,
		Glued: Resets, STag0: Resets,
		RequestTimeout: 60 * time.Second, ReplyTimeout: 60 * time.Second,
	}
}

func freebsd() Behaviour {
	b := cxgb4()
	b.Name, b.Source = "freebsd", "Chelsio's FreeBSD driver, read: of one origin with the Linux one"
	b.Revision, b.Highest = 1, 1
	b.PeerToPeer, b.FirstRead = false, false
	b.MaxIRD, b.MaxORD = 8, 8
	return b
}

func irdma() Behaviour {
	return Behaviour{
		Name:   "irdma",
		Source: "Intel's Linux driver, read; the depths, the timers and ShortReply assumed",

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
	}
}

func qedr() Behaviour {
	return Behaviour{
		Name:   "qedr",
		Source: "Marvell's Linux driver, read; what its firmware does about bad input is assumed",

		Revision: 2, PlainReply: Resets,
		PeerToPeer: true, OfferRTR: allRTR, TakesRTR: []mpa.RTR{mpa.RTRRead, mpa.RTRWrite, mpa.RTRSend},

		Lowest: 1, Highest: 2, BadRevision: Resets,
		AnswersRTR: []mpa.RTR{mpa.RTRSend, mpa.RTRWrite, mpa.RTRRead}, AnswersAll: true, OtherwiseRTR: allRTR,

		AsksCRC: true,
		MaxIRD:  32, MaxORD: 32,
		MaxPDLength: mpa.MaxPrivateData, LongRequest: Resets, LongReply: Resets,
		ShortRequest: Resets, ShortReply: Resets,
		RequestTimeout: 60 * time.Second, ReplyTimeout: 60 * time.Second,
	}
}

func windows() Behaviour {
	return Behaviour{
		Name:   "windows-v1",
		Source: "MS-SMBD, section 6.1, and what siw had to be set to for an RNIC of revision 1; the rest assumed as cxgb4's",

		Revision: 1, FirstRead: true,
		Lowest: 1, Highest: 1, BadRevision: Resets,

		AsksCRC: true, NoCRC: Resets,
		MaxIRD: 16, MaxORD: 16,
		MaxPDLength: 256, LongRequest: Resets, LongReply: Resets,
		Glued: Resets, STag0: Resets, SMBDirect: true,
		RequestTimeout: 60 * time.Second, ReplyTimeout: 60 * time.Second,
	}
}
