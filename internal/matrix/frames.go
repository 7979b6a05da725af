package matrix

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// markerAndCRCRows: "When in a received MPA Request Frame or MPA Reply Frame and the
// value is '0', Markers MUST NOT be added", "When '1' Markers MUST be added", and of C:
// "When this bit is '1' in either [...] CRCs MUST be generated and checked by both
// endpoints." RFC 5044, 7.1.1, and CULLEY 8.1.1 alike.
func markerAndCRCRows() (rows []Row) {
	cases := []struct {
		i        mpa.Offer
		r        mpa.Answer
		demanded string
	}{
		{mpa.Offer{}, mpa.Answer{}, "CRC=1 M=0/0"},
		{mpa.Offer{}, mpa.Answer{NoCRC: true}, "CRC=1 M=0/0"},
		{mpa.Offer{NoCRC: true}, mpa.Answer{}, "CRC=1 M=0/0"},
		{mpa.Offer{NoCRC: true}, mpa.Answer{NoCRC: true}, "CRC=0 M=0/0"},
		{mpa.Offer{Markers: true}, mpa.Answer{}, "CRC=1 M=1/0"},
		{mpa.Offer{}, mpa.Answer{Markers: true}, "CRC=1 M=0/1"},
		{mpa.Offer{Markers: true}, mpa.Answer{Markers: true}, "CRC=1 M=1/1"},
		{mpa.Offer{Markers: true, NoCRC: true}, mpa.Answer{Markers: true, NoCRC: true}, "CRC=0 M=1/1"},
	}
	for _, d := range []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044, mpa.DialectRtr, mpa.DialectStartKey} {
		for _, c := range cases {
			c.i.Dialect = d
			if d == mpa.DialectRtr { // "Rtr frame adhere to C bit as specified in Rep frame"
				c.demanded += " rtrframe=" + wording.If(c.i.NoCRC && c.r.NoCRC, "-", "C")
			}
			rows = append(rows, Row{
				Name: fmt.Sprintf("%s: initiator M=%d C=%d, responder M=%d C=%d", short(d),
					wording.Bit(c.i.Markers), wording.Bit(!c.i.NoCRC), wording.Bit(c.r.Markers),
					wording.Bit(!c.r.NoCRC)),
				Requirement: "RFC 5044 7.1.1; CULLEY 8.1.1; RTR07 2 [F11] [F14] [Q04] [T05]",
				Initiator:   Initiator{Offer: c.i},
				Responder:   Responder{Dialects: []mpa.Dialect{d}, Answer: c.r},
				Demanded:    "up " + c.demanded + " dialect=" + short(d),
			})
		}
	}
	return rows
}

// request returns a Request Frame of a revision, and reply a Reply Frame, with changes.
func request(rev uint8, pd []byte, changes ...func(*mpa.StartupFields)) *mpa.StartupFields {
	f := &mpa.StartupFields{Key: mpa.KeyRequest, C: true, Rev: rev, PrivateData: pd}
	for _, change := range changes {
		change(f)
	}
	return f
}

func reply(rev uint8, pd []byte, changes ...func(*mpa.StartupFields)) *mpa.StartupFields {
	f := request(rev, pd, changes...)
	f.Key = mpa.KeyReply
	return f
}

func setS(f *mpa.StartupFields) { f.S = true }

var p2p = mpa.Enhanced{A: true, C: true, IRD: 8, ORD: 4}

// requestRows are Requests by hand, which no Dialer would send.
var requestRows = []struct {
	name, requirement, demanded string
	request                     *mpa.StartupFields
}{
	{"revision 3, S=1", "RFC 6581 6 [E02]", "up V=1 dialect=rfc6581 rev=3/2 asked=CS/CS p2p=1",
		request(3, enhanced(p2p), setS)},
	{"revision 255, S=1", "RFC 6581 6 [E02]", "up V=1 dialect=rfc6581 rev=255/2 asked=CS/CS p2p=1",
		request(255, enhanced(p2p), setS)},
	{"revision 2, S=0", "RFC 6581 6, 10 [E02]", "up V=1 dialect=rfc5044 asked=C/C p2p=0", request(2, nil)},
	{"revision 3, S=0", "RFC 5044 7.1.1 [Q07]", "close", request(3, nil)},
	{"revision 1, S=1, where the Rtr frame is not served", "RFC 5044 7.1.1; RTR07 [Q06] [T04]",
		"up V=1 dialect=rfc5044 rev=1/1 asked=CS/C",
		request(1, nil, setS)},
	{"R=1", "RFC 5044 7.1.1 [Q05]", "up V=1 dialect=rfc5044 rev=1/1 asked=CR/C",
		request(1, nil, func(f *mpa.StartupFields) { f.R = true })},
	{"all of Res", "RFC 5044 7.1.1 [Q06]", "up V=1 dialect=rfc5044 rev=1/1",
		request(1, nil, func(f *mpa.StartupFields) { f.Res = 0xf })},
	{"a Reply in place of the Request", "RFC 5044 7.1.2 [Q02] [Q03]", "close", reply(1, nil)},
	{"PD_Length of 513", "RFC 5044 7.1.1 [Q08]", "close", request(1, privateData(513))},
	{"S=1 and three bytes of private data", "RFC 6581 6 [E01]", "close", request(2, privateData(3), setS)},
	{"A=0 with B, C and D", "RFC 6581 9.2 [E07]", "up p2p=0 answer=none flags=BCD/-",
		request(2, enhanced(mpa.Enhanced{B: true, C: true, D: true, IRD: 8, ORD: 4}), setS)},
	{"A=1 without B, C and D", "RFC 6581 9.2 [E08]", "up p2p=1 flags=A/AB,A/AC,A/AD,A/ABC,A/ABD,A/ACD,A/ABCD",
		request(2, enhanced(mpa.Enhanced{A: true, IRD: 8, ORD: 4}), setS)},
}

// replyRows are Replies by hand, one on each connection; nil is no Reply.
var replyRows = []struct {
	name, requirement, demanded string
	in                          Initiator
	replies                     []*mpa.StartupFields
}{
	{"closes on revision 2, takes revision 1", "RFC 6581 10 [E13]", "up V=1 dialect=rfc5044 rev=1/1 fellback=1",
		Initiator{}, []*mpa.StartupFields{nil, reply(1, nil)}},
	{"closes on revision 2, no fallback", "RFC 6581 10 [E13]", "close failure=* closed=fin",
		Initiator{NoFallback: true}, []*mpa.StartupFields{nil}},
	{"closes on revisions 2 and 1", "RFC 6581 10 [E13]", "close failure=* closed=fin", Initiator{},
		[]*mpa.StartupFields{nil, nil}},
	{"answers revision 2 in revision 1, takes revision 1", "RFC 6581 10 [E02] [E13]",
		"up V=1 dialect=rfc5044 rev=1/1 fellback=1",
		Initiator{}, []*mpa.StartupFields{reply(1, nil), reply(1, nil)}},
	{"enhanced Reply to revision 1", "RFC 6581 10 [E02]", "close",
		Initiator{Offer: mpa.Offer{Dialect: mpa.DialectRFC5044}}, []*mpa.StartupFields{reply(2, enhanced(p2p), setS)}},
	{"S=1 echoed in revision 1", "RFC 5044 7.1.1 [Q06]", "up V=1 dialect=rfc5044 rev=1/1",
		Initiator{Offer: mpa.Offer{Dialect: mpa.DialectRFC5044}}, []*mpa.StartupFields{reply(1, nil, setS)}},
	{"a Request in place of the Reply", "RFC 5044 7.1.2 [Q02] [Q03]", "close",
		Initiator{Offer: mpa.Offer{Dialect: mpa.DialectRFC5044}}, []*mpa.StartupFields{request(1, nil)}},
	{"PD_Length of 513", "RFC 5044 7.1.1 [Q08]", "close",
		Initiator{Offer: mpa.Offer{Dialect: mpa.DialectRFC5044}}, []*mpa.StartupFields{reply(1, privateData(513))}},
	{"A=0 to A=1", "RFC 6581 9.2 [E08] [E10]", "terminate code=0x2007 closed=fin",
		Initiator{}, []*mpa.StartupFields{reply(2, enhanced(mpa.Enhanced{C: true, IRD: 8, ORD: 8}), setS)}},
	{"A=1 and no RTR indication", "RFC 6581 9.2 [E10]", "terminate code=0x2007 closed=fin",
		Initiator{}, []*mpa.StartupFields{reply(2, enhanced(mpa.Enhanced{A: true, IRD: 8, ORD: 8}), setS)}},
}

// framesByHand returns requestRows and replyRows as rows.
func framesByHand() (rows []Row) {
	for _, c := range requestRows {
		rows = append(rows, Row{
			Name: "Request: " + c.name, Requirement: c.requirement, Demanded: c.demanded,
			Initiator: Initiator{Request: c.request},
		})
	}
	for _, c := range replyRows {
		rows = append(rows, Row{
			Name: "Reply: " + c.name, Requirement: c.requirement, Demanded: c.demanded,
			Initiator: c.in, Responder: Responder{Replies: c.replies},
		})
	}
	return rows
}
