package matrix

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// The functions that an initiator and a responder use.
const (
	enhancedCodes = "codes=5/6"
	plainCodes    = "codes=1/2"
)

// unsaid is demanded of a Dial that is refused before there is an INIT.
const unsaid = "invalid indication=unknown chunks=unknown ssn=unknown"

// sctpStartupRows are the two kinds of Initiate, and what there is not over SCTP.
func sctpStartupRows() (rows []Row) {
	const both = "RFC 5043 6.2; RFC 6581 7 "
	for _, first := range []bool{false, true} {
		who, demanded := "either side", ""
		if first {
			who, demanded = "the responder", " first=responder"
		}
		rows = append(rows,
			Row{
				Name:        "enhanced, " + who + " sends first",
				Requirement: both + "[C01] [C02] [C04]", ResponderFirst: first,
				Demanded: "up dialect=rfc6581 " + enhancedCodes + " V=1 p2p=1 fellback=0 pd=0/0",
			},
			Row{
				Name: "plain, " + who + " sends first", Requirement: both + "[C01] [C04]", ResponderFirst: first,
				Initiator: Initiator{Offer: mpa.Offer{Dialect: mpa.DialectRFC5044}},
				Demanded:  "up dialect=rfc5044 " + plainCodes + " V=1 p2p=0 rtr=none fellback=0 pd=0/0" + demanded,
			})
	}
	rows = append(rows,
		Row{
			Name: "A=0, the responder sends first", Requirement: "RFC 6581 7, 9.2 [C04] [E07]", ResponderFirst: true,
			Initiator: Initiator{Offer: mpa.Offer{ClientServer: true}},
			Demanded:  "up " + enhancedCodes + " p2p=0 rtr=none answer=none flags=-/- first=responder",
		},
		Row{
			Name: "nothing enhanced is wanted", Requirement: "RFC 6581 10 [C01] [E02]",
			Initiator: Initiator{Offer: mpa.Offer{ClientServer: true, IRD: off, ORD: off}},
			Demanded:  "up dialect=rfc5044 " + plainCodes + " p2p=0 rtr=none",
		})
	for _, d := range []mpa.Dialect{mpa.DialectRtr, mpa.DialectRevision0, mpa.DialectStartKey} {
		rows = append(rows, Row{
			Name: short(d) + " is MPA's", Requirement: "RFC 5043 5.2.2 [C01]",
			Initiator: Initiator{Offer: mpa.Offer{Dialect: d}}, Demanded: unsaid,
		})
	}
	return rows
}

// sctpDepthRows are those of IRD and ORD.
func sctpDepthRows() (rows []Row) {
	for _, c := range depthRows {
		rows = append(rows, Row{
			Name: c.name, Requirement: "RFC 6581 7, 9.1 " + c.requirement,
			Demanded:  "up " + c.demanded + " " + enhancedCodes,
			Initiator: Initiator{Offer: c.i.offer(c.rtr), NoReads: c.i.ird == 0},
			Responder: Responder{Answer: c.r.offer(0).Answer(), NoReads: c.r.ird == 0},
		})
	}
	for _, c := range depthReplyRows {
		e := mpa.Enhanced{A: true, C: true, IRD: c.ird, ORD: c.ord}
		rows = append(rows, Row{
			Name: c.name, Requirement: "RFC 6581 7, 9.1 " + c.requirement, Demanded: c.demanded,
			Initiator: Initiator{Offer: c.i.offer(0)},
			Responder: Responder{Say: [][]Message{{control(sctp.FunctionEnhancedAccept, enhanced(e))}}},
		})
	}
	return rows
}

// sctpKinds are the two kinds of Initiate: the dialect that stands for each, and how much private data its messages
// have room for.
var sctpKinds = []struct {
	name    string
	dialect mpa.Dialect
	most    int
	first   int // of its Function Codes
}{
	{"enhanced", mpa.DialectRFC6581, 508, 5},
	{"plain", mpa.DialectRFC5044, 512, 1},
}

// sctpPrivateDataRows: "Private Data length MUST NOT exceed 512 bytes in any message, including enhanced RDMA
// connection establishment data." RFC 6581, section 7.
func sctpPrivateDataRows() (rows []Row) {
	for _, k := range sctpKinds {
		add := func(what string, toR, toI int, demanded string) {
			rows = append(rows, Row{
				Name: k.name + ": " + what, Requirement: "RFC 5043 5.2.3; RFC 6581 7 [C02]", Demanded: demanded,
				Initiator: Initiator{Offer: mpa.Offer{Dialect: k.dialect,
					PrivateData: privateData(toR)}, NoFallback: true},
				Responder: Responder{Answer: mpa.Answer{PrivateData: privateData(toI)}},
			})
		}
		for _, n := range []int{0, 1, k.most} {
			add(wording.Bytes(n), n, n, fmt.Sprintf("up pd=%d/%[1]d codes=%[2]d/%d", n, k.first, k.first+1))
		}
		add("one byte too many in the Initiate", k.most+1, 0, unsaid)
		add("one byte too many in the Accept", 0, k.most+1, fmt.Sprintf("refuse codes=%d/4", k.first))
	}
	return rows
}

// sctpRejectRows: "The Enhanced Reject function code MUST be used to indicate rejection of enhanced DDP stream
// session".
func sctpRejectRows() (rows []Row) {
	for _, k := range sctpKinds {
		for _, n := range []int{0, k.most} {
			rows = append(rows, Row{
				Name:        fmt.Sprintf("%s, %s of private data", k.name, wording.Bytes(n)),
				Requirement: "RFC 5043 6.3; RFC 6581 7 [C01] [C02] [C03]",
				Initiator:   Initiator{Offer: mpa.Offer{Dialect: k.dialect, PrivateData: privateData(n)}},
				Responder:   Responder{Reject: &Rejection{PrivateData: privateData(n)}},
				Demanded:    fmt.Sprintf("reject pd=%d/%[1]d codes=%[2]d/%d", n, k.first, k.first+2),
			})
		}
	}
	return append(rows, overSCTP("[C01] ", depthRejectRows)...)
}

// sctpAnswerRows are answers by hand, those of one association in each list.
var sctpAnswerRows = []struct {
	name, requirement, demanded string
	in                          Initiator
	say                         [][]Message
}{
	{"knows no enhanced Initiate, and takes a plain one", "RFC 5043 6.4; RFC 6581 10 [C03] [E13]",
		"up V=1 dialect=rfc5044 codes=1/2 fellback=1",
		Initiator{}, [][]Message{{terminate}, {accept(nil)}}},
	{"knows no enhanced Initiate, no fallback", "RFC 5043 6.4 [C03]", "refuse codes=5/4", Initiator{NoFallback: true},
		[][]Message{{terminate}}},
	{"takes none", "RFC 5043 6.4; RFC 6581 10 [C03] [E13]", "refuse codes=1/4", Initiator{},
		[][]Message{{terminate}, {terminate}}},
	{"Accept to an Enhanced Initiate", "RFC 6581 7, 10 [C01]", "violate codes=5/2", Initiator{},
		[][]Message{{accept(nil)}}},
	{"Enhanced Accept to an Initiate", "RFC 6581 7, 10 [C01]", "violate codes=1/6", plainInitiator,
		[][]Message{{enhancedAccept(p2p)}}},
	{"Initiate in answer", "RFC 5043 6.2 [C04]", "violate codes=5/1", Initiator{},
		[][]Message{{control(sctp.FunctionInitiate, nil)}}},
	{"a Function Code that does not exist", "RFC 5043 5.2.3 [C01]", "violate codes=5/8", Initiator{},
		[][]Message{{control(8, nil)}}},
	{"513 bytes of private data", "RFC 5043 5.2.3 [C02]", "violate codes=1/2", plainInitiator,
		[][]Message{{accept(privateData(513))}}},
	{"no room for IRD and ORD", "RFC 6581 7 [C02]", "violate codes=5/6", Initiator{},
		[][]Message{{control(sctp.FunctionEnhancedAccept, privateData(3))}}},
	{"a DDP Segment in place of an answer", "RFC 5043 6.3 [C04]", "violate", Initiator{},
		[][]Message{{{sctp.PPIDSegment, make([]byte, 20)}}}},
	{"Reject to an Enhanced Initiate", "RFC 5043 6.3 [C03]", "reject codes=5/3 pd=unknown/9", Initiator{},
		[][]Message{{control(sctp.FunctionReject, privateData(9))}}},
	{"A=0 to A=1", "RFC 6581 7, 9.2 [E08] [E10]", "terminate code=0x2007 codes=5/6", Initiator{},
		[][]Message{{enhancedAccept(mpa.Enhanced{C: true, IRD: 8, ORD: 8})}}},
	{"A=1 and no RTR indication", "RFC 6581 7, 9.2 [E10]", "terminate code=0x2007 codes=5/6", Initiator{},
		[][]Message{{enhancedAccept(mpa.Enhanced{A: true, IRD: 8, ORD: 8})}}},
}

var plainInitiator = Initiator{Offer: mpa.Offer{Dialect: mpa.DialectRFC5044}}

var terminate = control(sctp.FunctionTerminate, nil)

func accept(pd []byte) Message { return control(sctp.FunctionAccept, pd) }

func enhancedAccept(e mpa.Enhanced) Message {
	return control(sctp.FunctionEnhancedAccept, enhanced(e))
}

func enhancedInitiate(e mpa.Enhanced) []Message {
	return []Message{control(sctp.FunctionEnhancedInitiate, enhanced(e))}
}

// sctpRequestRows are Initiates by hand, and what is said when there is an answer.
var sctpRequestRows = []struct {
	name, requirement, demanded string
	say, then                   []Message
}{
	{"A=0 with B, C and D", "RFC 6581 7, 9.2 [E07]", "up p2p=0 answer=none flags=BCD/- codes=5/6",
		enhancedInitiate(mpa.Enhanced{B: true, C: true, D: true, IRD: 8, ORD: 4}), nil},
	{"A=1 without B, C and D", "RFC 6581 7, 9.2 [C01] [E08]",
		"close codes=5/7 flags=A/AB,A/AC,A/AD,A/ABC,A/ABD,A/ACD,A/ABCD",
		enhancedInitiate(mpa.Enhanced{A: true, IRD: 8, ORD: 4}), nil},
	{"ends at once", "RFC 5043 6.2 [C03]", "up codes=1/2",
		[]Message{control(sctp.FunctionInitiate, nil)}, []Message{terminate}},
	{"an Accept in an open session", "RFC 5043 6.1 [C04]", "up code=0x2005 codes=1/2",
		[]Message{control(sctp.FunctionInitiate, nil)}, []Message{accept(nil)}},
	{"a Terminate with private data", "RFC 5043 5.2.3; RFC 6581 7 [C02]", "up code=0x2005",
		[]Message{control(sctp.FunctionInitiate, nil)},
		[]Message{control(sctp.FunctionTerminate, []byte("no"))}},
	{"a message with PPID 18", "RFC 5043 5.1 [C09]", "up code=0x2005 chunks=PPID-18",
		[]Message{control(sctp.FunctionInitiate, nil)},
		[]Message{{18, []byte("text")}}},
}

// sctpByHand returns sctpAnswerRows and sctpRequestRows as rows.
func sctpByHand() (rows []Row) {
	for _, c := range sctpRequestRows {
		rows = append(rows, Row{
			Name: "Initiate: " + c.name, Requirement: c.requirement, Demanded: c.demanded,
			Initiator: Initiator{Say: c.say, Then: c.then},
		})
	}
	for _, c := range sctpAnswerRows {
		rows = append(rows, Row{
			Name: "answer: " + c.name, Requirement: c.requirement, Demanded: c.demanded, Initiator: c.in,
			Responder: Responder{Say: c.say},
		})
	}
	return rows
}

// overSCTP reports whether the row runs over SCTP.
func (r *Row) overSCTP() bool { return r.Initiator.Network == network.SCTP }

// SCTPGroups returns the cells of RFC 6581, section 7.
func SCTPGroups() []Group {
	groups := []Group{
		{"SCTP startup", sctpStartupRows()},
		{"SCTP RTR indications", overSCTP("", rtrRows())},
		{"SCTP IRD and ORD", sctpDepthRows()},
		{"SCTP private data", sctpPrivateDataRows()},
		{"SCTP rejections", sctpRejectRows()},
		{"SCTP messages by hand", sctpByHand()},
	}
	for _, g := range groups {
		for n := range g.Rows {
			g.Rows[n].Initiator.Network = network.SCTP
		}
	}
	return groups
}
