package matrix

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// room is how much private data of the ULP fits into a startup of each dialect.
var room = []struct {
	dialect     mpa.Dialect
	messages    bool
	most        int
	requirement string
}{
	{mpa.DialectRFC6581, false, 508, "RFC 6581 9 [E01]"},
	{mpa.DialectRFC5044, false, 512, "RFC 5044 7.1.1 [Q08]"},
	{mpa.DialectRtr, false, 512, "RFC 5044 7.1.1 [Q08]"},
	{mpa.DialectRevision0, false, 512, "RFC 5044 7.1.1 [Q08]"},
	{mpa.DialectStartKey, true, 512, "CULLEY 13.3 [K07]"},
	{mpa.DialectStartKey, false, 0, "CULLEY 8.1.1 [K01]"},
}

// privateDataRows have each side send none, the most, and one byte too many.
func privateDataRows() (rows []Row) {
	for _, d := range room {
		name := short(d.dialect) + wording.If(d.messages, "+messages", "")
		add := func(what string, toR, toI int, demanded string) {
			rows = append(rows, Row{
				Name: name + ": " + what, Requirement: d.requirement, Demanded: demanded,
				Initiator: Initiator{Offer: mpa.Offer{Dialect: d.dialect, Messages: d.messages,
					PrivateData: privateData(toR)}},
				Responder: Responder{
					Dialects: []mpa.Dialect{d.dialect}, Messages: d.messages,
					Answer: mpa.Answer{PrivateData: privateData(toI)},
				},
			})
		}
		add("none", 0, 0, "up pd=0/0")
		if d.most > 0 {
			add("the most", d.most, d.most, fmt.Sprintf("up pd=%d/%[1]d", d.most))
		}
		add("one byte too many in the Request", d.most+1, 0, "invalid")
		add("one byte too many in the Reply", 0, d.most+1, "close")
	}
	return rows
}

// rejectRows are rejections with and without private data: "the MPA Reply Frame MAY
// include ULP-supplied Private Data; the implementation MUST exit MPA, leaving the TCP
// connection open." RFC 5044, 7.1.2. With Start Keys the responder rejects by closing
// TCP; an initiator that sends after its private data message may find TCP closed.
func rejectRows() (rows []Row) {
	for _, d := range room {
		for _, n := range []int{0, d.most} {
			row := Row{
				Name: fmt.Sprintf("%s%s, %s of private data",
					short(d.dialect), wording.If(d.messages, "+messages", ""), wording.Bytes(n)),
				Requirement: "RFC 5044 7.1.2 [Q10]",
				Initiator: Initiator{Offer: mpa.Offer{Dialect: d.dialect, Messages: d.messages,
					PrivateData: privateData(n)}},
				Responder: Responder{
					Dialects: []mpa.Dialect{d.dialect}, Messages: d.messages,
					Reject: &Rejection{PrivateData: privateData(n)},
				},
				Demanded: fmt.Sprintf("reject pd=%d/%[1]d stream=open closed=fin", n),
			}
			if d.dialect == mpa.DialectStartKey {
				row.Requirement = "CULLEY 13.3.1 [K07]"
				row.Demanded = wording.If(d.messages,
					fmt.Sprintf("reject pd=%d/%[1]d stream=closed", n), "close closed=fin")
			}
			rows = append(rows, row)
			if d.most == 0 {
				break
			}
		}
	}
	return append(rows, overMPA(depthRejectRows)...)
}

// depthRejectRows are rejections for the depths: "The responder MAY reject the
// connection request if the initiator IRD is not sufficient for the ULP-required ORD
// and specify the required ORD in the MPA Reject Frame responder ORD." RFC 6581, 9.1.
var depthRejectRows = []sharedRow{
	{
		name: "the responder says which ORD it needs", section: "9.1", ids: "[E03] [E05]",
		i:        Initiator{Offer: mpa.Offer{IRD: 4, ORD: 2}},
		r:        Responder{Reject: &Rejection{IRD: 5, ORD: 9}},
		demanded: "reject request=4/2 reply=5/9", mpa: " asked=CS/CRS stream=open closed=fin", sctp: " codes=5/7",
	},
	{
		name: "rejection of an IRD of 0x3FFF", section: "9.1", ids: "[E06]",
		i:        Initiator{Offer: mpa.Offer{IRD: off, ORD: 2}},
		r:        Responder{Reject: &Rejection{IRD: 5, ORD: 9}},
		demanded: "reject request=16383/2 reply=5/16383", mpa: " stream=open closed=fin", sctp: " codes=5/7",
	},
	{
		name: "rejection of an ORD of 0x3FFF", section: "9.1", ids: "[E06]",
		i:        Initiator{Offer: mpa.Offer{IRD: 4, ORD: off}},
		r:        Responder{Reject: &Rejection{IRD: 5, ORD: 9}},
		demanded: "reject request=4/16383 reply=16383/9", mpa: " stream=open closed=fin", sctp: " codes=5/7",
	},
}

// Groups returns the wider matrix.
func Groups() []Group {
	return []Group{
		{"dialects", dialectRows()},
		{"kinds", kindRows},
		{"markers and CRC", markerAndCRCRows()},
		{"RTR indications", overMPA(rtrRows())},
		{"IRD and ORD", allDepthRows()},
		{"private data", privateDataRows()},
		{"rejections", rejectRows()},
		{"frames by hand", framesByHand()},
	}
}
