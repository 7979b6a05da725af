package matrix

import (
	"fmt"

	"github.com/goiwarp/iwarp/mpa"
)

const (
	off  = mpa.NoNegotiation // 0x3fff: "automatic negotiation of the IRD or ORD is not desired"
	most = off - 1
)

// depths are the IRD and ORD of an end, and the limit to which its IRD may grow.
type depths struct{ ird, ord, maxIRD mpa.Depth }

func (d depths) offer(rtr mpa.RTR) mpa.Offer {
	return mpa.Offer{IRD: d.ird, ORD: d.ord, MaxIRD: d.maxIRD, RTR: rtr}
}

// depthRows are the rules of RFC 6581, 9.1, with both ends ours. No Read is sent in a
// direction in which neither end has Reads.
var depthRows = []struct {
	name, requirement string
	i, r              depths
	rtr               mpa.RTR // offered, if not the usual
	demanded          string
}{
	{"each has enough", "[E03] [E04]", depths{8, 4, 8}, depths{16, 2, 16}, 0,
		"request=8/4 reply=16/2 ird=8/16 ord=4/2"},
	{"the responder sets its ORD at most to the initiator's IRD", "[E04]", depths{3, 4, 3}, depths{16, 9, 16}, 0,
		"request=3/4 reply=16/3 ird=3/16 ord=4/3"},
	{"the initiator sets its ORD at most to the responder's IRD", "[E04]", depths{8, 20, 8}, depths{5, 2, 5}, 0,
		"request=8/20 reply=5/2 ird=8/5 ord=5/2"},
	{"the responder raises its IRD", "[E04] [E14]", depths{8, 20, 8}, depths{5, 2, 64}, 0,
		"request=8/20 reply=20/2 ird=8/20 ord=20/2"},
	{"the responder raises its IRD as far as it can", "[E04] [E14]", depths{8, 20, 8}, depths{5, 2, 12}, 0,
		"request=8/20 reply=12/2 ird=8/12 ord=12/2"},
	{"no Reads of the initiator's, nor to it", "[E04]", depths{0, 0, 0}, depths{16, 16, 16}, 0,
		"request=0/0 reply=16/0 ird=0/16 ord=0/0 data=sw/sw"},
	{"no Reads to the responder, nor of its", "[E04]", depths{8, 4, 8}, depths{0, 0, 0}, mpa.RTRWrite,
		"request=8/4 reply=0/0 ird=8/0 ord=0/0 data=sw/sw"},
	{"no Reads to the responder but the RTR indication that it names", "[E04]", depths{8, 4, 8},
		depths{0, 0, 0}, mpa.RTRRead,
		"request=8/4 reply=1/0 ird=8/1 ord=1/0 rtr=read data=swr/sw"},
	{"no Reads but the RTR indication", "[E04]", depths{0, 0, 0}, depths{0, 0, 0}, mpa.RTRRead,
		"request=0/0 reply=1/0 ird=0/1 ord=0/0 rtr=read data=sw/sw"},
	{"the largest values", "[E06]", depths{most, most, most}, depths{most, most, most}, 0,
		fmt.Sprintf("request=%d/%[1]d reply=%[1]d/%[1]d ird=%[1]d/%[1]d ord=%[1]d/%[1]d", most)},
	{"initiator's ORD is 0x3FFF", "[E06]", depths{8, off, 8}, depths{7, 5, 64}, 0,
		"request=8/16383 reply=16383/5 ird=8/7 ord=*/5"},
	{"initiator's IRD is 0x3FFF", "[E06]", depths{off, 4, 8}, depths{7, 5, 64}, 0,
		"request=16383/4 reply=7/16383 ird=*/7 ord=4/5"},
	{"initiator's IRD and ORD are 0x3FFF", "[E06]", depths{off, off, 8}, depths{7, 5, 64}, 0,
		"request=16383/16383 reply=16383/16383 ird=*/7 ord=*/5"},
}

// depthReplyRows are those rules for the initiator that no Reply of our responder calls
// for.
var depthReplyRows = []struct {
	name, requirement string
	i                 depths
	ird, ord          mpa.Depth // of the Reply
	demanded          string
	mpa               string // demanded over MPA besides
}{
	{"Reply's IRD is 0x3FFF", "[E06]", depths{8, 4, 8}, off, 3, "up reply=16383/3 ird=8/* ord=4/*", ""},
	{"Reply's ORD is 0x3FFF", "[E06]", depths{8, 4, 64}, 9, off, "up reply=9/16383 ird=8/* ord=4/*", ""},
	{"Reply's ORD needs a higher IRD", "[E04] [E14]", depths{8, 4, 64}, 9, 20, "up reply=9/20 ird=20/* ord=4/*", ""},
	{"Reply's ORD needs a higher IRD than there is", "[E05]", depths{8, 4, 8}, 9, 100,
		"terminate reply=9/100 code=0x2006", " closed=fin"},
}

// clientServerRows are the model A=0.
var clientServerRows = []Row{
	{
		Name: "A=0: the first message opens the connection", Requirement: "RFC 6581 9.2 [E07] [E12]",
		Initiator: Initiator{Offer: mpa.Offer{ClientServer: true}},
		Demanded:  "up dialect=rfc6581 p2p=0 rtr=none answer=none flags=-/- first=initiator",
	},
	{
		Name: "A=0 and no IRD, no ORD: nothing enhanced is wanted", Requirement: "RFC 6581 10 [E02]",
		Initiator: Initiator{Offer: mpa.Offer{ClientServer: true, IRD: off, ORD: off}},
		Demanded:  "up dialect=rfc5044 rev=1/1 p2p=0 rtr=none first=initiator",
	},
}

// allDepthRows returns the tables of this file as rows.
func allDepthRows() (rows []Row) {
	const section = "RFC 6581 9.1 "
	for _, c := range depthRows {
		rows = append(rows, Row{
			Name: c.name, Requirement: section + c.requirement, Demanded: "up " + c.demanded,
			Initiator: Initiator{Offer: c.i.offer(c.rtr), NoReads: c.i.ird == 0},
			Responder: Responder{Answer: c.r.offer(0).Answer(), NoReads: c.r.ird == 0},
		})
	}
	for _, c := range depthReplyRows {
		e := mpa.Enhanced{A: true, C: true, IRD: c.ird, ORD: c.ord}
		rows = append(rows, Row{
			Name: c.name, Requirement: section + c.requirement, Demanded: c.demanded + c.mpa,
			Initiator: Initiator{Offer: c.i.offer(0)},
			Responder: Responder{Replies: []*mpa.StartupFields{reply(2, enhanced(e), setS)}},
		})
	}
	return append(rows, clientServerRows...)
}
