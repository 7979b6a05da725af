package matrix

import (
	"fmt"
	"strings"

	"github.com/goiwarp/iwarp/mpa"
)

const (
	rtrS, rtrW, rtrR = mpa.RTRSend, mpa.RTRWrite, mpa.RTRRead
)

// rtrSets are the sets of RTR indications, in the order of rtrTable, and the answers
// that a responder which supports a set may give: any part of it that is not empty.
// "The responder is not required to specify all RTR indication options it supports",
// and "MUST set at least one": RFC 6581, 9.2.
var rtrSets = []struct {
	set    mpa.RTR
	answer string
}{
	{rtrS, "send"},
	{rtrW, "write"},
	{rtrR, "read"},
	{rtrS | rtrW, "send,write,send|write"},
	{rtrS | rtrR, "send,read,send|read"},
	{rtrW | rtrR, "write,read,write|read"},
	{rtrS | rtrW | rtrR, "send,write,read,send|write,send|read,write|read,send|write|read"},
}

// rtrTable has, for each set offered (rows) and supported (columns), the indications
// of which the initiator has to send one: "the initiator MUST generate one of the negotiated RTR
// indications", or "7", the error code of the Terminate: "If the initiator is not able
// to generate any of the responder-supported RTR indications, then it MUST send a TERM
// message".
//
//	supported:  S    W    R    SW    SR    WR    SWR
var rtrTable = [][]string{
	{"S", "7", "7", "S", "S", "7", "S"},           // offered: S
	{"7", "W", "7", "W", "7", "W", "W"},           // W
	{"7", "7", "R", "7", "R", "R", "R"},           // R
	{"S", "W", "7", "S W", "S", "W", "S W"},       // SW
	{"S", "7", "R", "S", "S R", "R", "S R"},       // SR
	{"7", "W", "R", "W", "R", "W R", "W R"},       // WR
	{"S", "W", "R", "S W", "S R", "W R", "S W R"}, // SWR
}

var rtrWords = strings.NewReplacer("S", "send", "W", "write", "R", "read", " ", ",")

// rtrRows are the rows of the RTR indications, whatever they run over.
func rtrRows() (rows []sharedRow) {
	for o, offered := range rtrSets {
		for s, supported := range rtrSets {
			c := sharedRow{
				section: "9.2", ids: "[E08] [E09]",
				demanded: fmt.Sprintf("up p2p=1 rtr=%s answer=%s", rtrWords.Replace(rtrTable[o][s]), supported.answer),
				mpa:      " first=initiator", sctp: " codes=5/6",
				name: fmt.Sprintf("offered %v, supported %v", offered.set, supported.set),
				i:    Initiator{Offer: mpa.Offer{RTR: offered.set}},
				r:    Responder{Answer: mpa.Answer{RTR: supported.set}},
			}
			if rtrTable[o][s] == "7" {
				c.ids, c.demanded, c.mpa = "[E08] [E10]", "terminate code=0x2007", " closed=fin"
			}
			rows = append(rows, c)
		}
	}
	return append(rows, allRTRRows...)
}

// allRTRRows have a responder that names all that it supports: it "MAY include
// additional RTR indication options".
var allRTRRows = []sharedRow{
	{
		name: "offered write, all answered", section: "9.2", ids: "[E08]", sctp: " codes=5/6",
		i: Initiator{Offer: mpa.Offer{RTR: rtrW}}, r: Responder{Answer: mpa.Answer{AllRTR: true}},
		demanded: "up p2p=1 rtr=write answer=send|write|read flags=AC/ABCD",
	},
	{
		name: "offered send, all answered", section: "9.2", ids: "[E08]", sctp: " codes=5/6",
		i: Initiator{Offer: mpa.Offer{RTR: rtrS}}, r: Responder{Answer: mpa.Answer{AllRTR: true}},
		demanded: "up p2p=1 rtr=send answer=send|write|read flags=AB/ABCD",
	},
}
