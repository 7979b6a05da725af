package matrix

import (
	"fmt"

	"github.com/goiwarp/iwarp/mpa"
)

// dialectPrivateData is how many bytes are sent where a dialect has private data.
const dialectPrivateData = 20

// initiatorDialects are the rows of the table of dialects.
var initiatorDialects = []struct {
	name  string
	offer mpa.Offer
}{
	{"rfc6581", mpa.Offer{Dialect: mpa.DialectRFC6581, PrivateData: privateData(dialectPrivateData)}},
	{"rfc5044", mpa.Offer{Dialect: mpa.DialectRFC5044, PrivateData: privateData(dialectPrivateData)}},
	{"rtr2007", mpa.Offer{Dialect: mpa.DialectRtr, PrivateData: privateData(dialectPrivateData)}},
	{"revision0", mpa.Offer{Dialect: mpa.DialectRevision0, PrivateData: privateData(dialectPrivateData)}},
	{"startkey", mpa.Offer{Dialect: mpa.DialectStartKey}},
	{"startkey+messages", mpa.Offer{Dialect: mpa.DialectStartKey, Messages: true,
		PrivateData: privateData(dialectPrivateData)}},
}

// responderDialects are its columns: what is served. The other dialects are switched
// off: the responder cannot "interoperate with the received version", and so "MUST close
// the connection and report an error locally": RFC 5044, 7.1.1.
var responderDialects = []struct {
	name     string
	dialects []mpa.Dialect
	messages bool
}{
	{"rfc6581", []mpa.Dialect{mpa.DialectRFC6581}, false},
	{"rfc5044", []mpa.Dialect{mpa.DialectRFC5044}, false},
	{"rtr2007", []mpa.Dialect{mpa.DialectRtr}, false},
	{"revision0", []mpa.Dialect{mpa.DialectRevision0}, false},
	{"startkey", []mpa.Dialect{mpa.DialectStartKey}, false},
	{"startkey+messages", []mpa.Dialect{mpa.DialectStartKey}, true},
	{"all", mpa.Dialects(), true},
	{"default", nil, false},
}

// dialectTable has a word of dialectOutcomes for each pair. An initiator whose revision
// 2 Request is refused tries again with revision 1, which succeeds where only RFC 5044
// is served. To a responder that does not know the dialect of 2007, its Request is one
// of revision 1 with a reserved bit set.
//
//	serving: rfc6581  rfc5044  rtr2007  revision0  startkey  +messages  all  default
var dialectTable = [][]string{
	{"6581", "fell", "close", "close", "close", "close", "6581", "6581"},           // rfc6581
	{"close", "5044", "close", "close", "close", "close", "5044", "5044"},          // rfc5044
	{"close", "plain", "rtr", "close", "close", "close", "rtr", "plain"},           // rtr2007
	{"close", "close", "close", "rdmac", "close", "close", "rdmac", "rdmac"},       // revision0
	{"close", "close", "close", "close", "key", "key", "key", "key"},               // startkey
	{"close", "close", "close", "close", "close", "messages", "messages", "close"}, // startkey+messages
}

// dialectOutcomes are what the words of dialectTable stand for. In revision 0 and
// with a Start Key DDP and RDMAP have version 0; the Initiator sends the first FPDU
// everywhere but after an Rtr frame.
var dialectOutcomes = map[string]struct{ demanded, requirement string }{
	"6581": {
		"up dialect=rfc6581 rev=2/2 asked=CS/CS V=1 M=0/0 CRC=1 p2p=1 pd=20/0 fellback=0 first=initiator",
		"RFC 6581 6, 10 [E01] [E02] [E09]",
	},
	"fell": {
		"up dialect=rfc5044 rev=1/1 asked=C/C V=1 M=0/0 CRC=1 p2p=0 rtr=write pd=20/0 fellback=1 first=initiator",
		"RFC 6581 10 [E13]",
	},
	"5044": {
		"up dialect=rfc5044 rev=1/1 asked=C/C V=1 M=0/0 CRC=1 p2p=0 rtr=none pd=20/0 first=initiator",
		"RFC 5044 7.1.2; RFC 6581 6 [Q09] [Q11] [E02]",
	},
	"plain": {
		"up dialect=rfc5044 rev=1/1 asked=CS/C V=1 M=0/0 CRC=1 p2p=0 rtr=none pd=20/0 first=initiator",
		"RTR07; RFC 5044 7.1.1 [T04] [Q06]",
	},
	"rtr": {
		"up dialect=rtr2007 rev=1/1 asked=CS/CS V=1 M=0/0 CRC=1 rtr=none pd=20/0 rtrframe=C first=responder",
		"RTR07 2, 4 [T01] [T02] [T03] [T05]",
	},
	"rdmac": {
		"up dialect=revision0 rev=0/0 asked=MC/MC V=0 M=1/1 CRC=1 p2p=0 rtr=none pd=20/0 first=initiator",
		"CARRIER 5.3.1 [N05] [N06]",
	},
	"key": {
		"up dialect=startkey rev=0/0 asked=C/C V=0 M=0/0 CRC=1 p2p=0 rtr=none pd=0/0 first=initiator",
		"CULLEY 8.1 [K01] [K02] [K03] [K05]",
	},
	"messages": {
		"up dialect=startkey rev=0/0 asked=C/C V=0 M=0/0 CRC=1 p2p=0 rtr=none pd=20/0 first=initiator",
		"CULLEY 13.3 [K07]",
	},
	"close": {"close", "RFC 5044 7.1.1; CULLEY 8.1 [Q02] [Q07] [K04]"},
}

// dialectRows is the table of dialects as rows. If either side may send first, the
// responder does.
func dialectRows() (rows []Row) {
	for i, in := range initiatorDialects {
		for r, re := range responderDialects {
			is := dialectOutcomes[dialectTable[i][r]]
			rows = append(rows, Row{
				Name:           fmt.Sprintf("%s -> serving %s", in.name, re.name),
				Requirement:    is.requirement,
				Initiator:      Initiator{Offer: in.offer},
				Responder:      Responder{Dialects: re.dialects, Messages: re.messages},
				ResponderFirst: dialectTable[i][r] == "6581" || dialectTable[i][r] == "rtr",
				Demanded:       is.demanded,
			})
		}
	}
	return rows
}

// kindRows are RNICs of the three kinds that do not start as in the figures.
var kindRows = []Row{
	{"permissive, revision 2 -> RDMAC", "CARRIER 5.3.2, RFC 6581 10 [N05] [E13]",
		Initiator{Offer: mpa.Offer{Dialect: mpa.DialectRFC6581}}, Responder{Kind: mpa.KindRDMAC}, false,
		"up V=0 M=1/1 CRC=1 dialect=revision0 rev=1/0 asked=C/MC fellback=1"},
	{"permissive, revision 2, no fallback -> RDMAC", "RFC 6581 10 [E02] [E13]",
		Initiator{Offer: mpa.Offer{Dialect: mpa.DialectRFC6581}, NoFallback: true},
		Responder{Kind: mpa.KindRDMAC}, false,
		"close rev=2/0 named=yes closed=fin"},
	{"non-permissive, revision 2 -> RDMAC", "CARRIER 5.2.2 [N04]",
		Initiator{Offer: mpa.Offer{Kind: mpa.KindNonPermissive, Dialect: mpa.DialectRFC6581}},
		Responder{Kind: mpa.KindRDMAC}, false,
		"close rev=2/0,1/0 named=yes closed=fin"},
	{"non-permissive, revision 2 -> non-permissive", "RFC 6581 10 [E02]",
		Initiator{Offer: mpa.Offer{Kind: mpa.KindNonPermissive, Dialect: mpa.DialectRFC6581}},
		Responder{Kind: mpa.KindNonPermissive}, false,
		"up V=1 M=0/0 CRC=1 dialect=rfc6581 rev=2/2"},
	{"non-permissive, revision 2, M=1 -> permissive", "RFC 6581 10 [E02] [Q04]",
		Initiator{Offer: mpa.Offer{Kind: mpa.KindNonPermissive, Dialect: mpa.DialectRFC6581, Markers: true}},
		Responder{}, false,
		"up V=1 M=1/0 CRC=1 dialect=rfc6581 rev=2/2 asked=MCS/CS"},
	{"permissive, 2007 Rtr frame -> RDMAC", "CARRIER 5.3.2, RTR07 [N05] [T04]",
		Initiator{Offer: mpa.Offer{Dialect: mpa.DialectRtr}}, Responder{Kind: mpa.KindRDMAC}, false,
		"up V=0 M=1/1 CRC=1 dialect=revision0 rev=1/0 asked=CS/MC"},
	{"non-permissive, 2007 Rtr frame -> RDMAC", "CARRIER 5.2.2 [N04]",
		Initiator{Offer: mpa.Offer{Kind: mpa.KindNonPermissive, Dialect: mpa.DialectRtr}},
		Responder{Kind: mpa.KindRDMAC}, false,
		"close rev=1/0 named=yes closed=fin"},
	{"permissive without CRC and markers -> RDMAC", "CARRIER 5.3.2 [N05]",
		Initiator{Offer: mpa.Offer{Dialect: mpa.DialectRFC5044, NoCRC: true}}, Responder{Kind: mpa.KindRDMAC}, false,
		"up V=0 M=1/1 CRC=1 dialect=revision0 rev=1/0 asked=-/MC"},
	{"RDMAC -> permissive without CRC and markers", "CARRIER 5.3.1 [N05]",
		Initiator{Offer: mpa.Offer{Kind: mpa.KindRDMAC}}, Responder{Answer: mpa.Answer{NoCRC: true}}, false,
		"up V=0 M=1/1 CRC=1 dialect=revision0 rev=0/0 asked=MC/MC"},
	{"RDMAC told to do without -> RDMAC told the same", "CARRIER figure 1, 5.2.1 [N01]",
		Initiator{Offer: mpa.Offer{Kind: mpa.KindRDMAC, NoCRC: true}},
		Responder{Kind: mpa.KindRDMAC, Answer: mpa.Answer{NoCRC: true}}, false,
		"up V=0 M=1/1 CRC=1 dialect=revision0 rev=0/0 asked=MC/MC"},
	{"permissive, revision 0 -> RDMAC", "CARRIER 5.1 [N01]",
		Initiator{Offer: mpa.Offer{Dialect: mpa.DialectRevision0}}, Responder{Kind: mpa.KindRDMAC}, false,
		"up V=0 M=1/1 CRC=1 dialect=revision0 rev=0/0 asked=MC/MC"},
	{"permissive, revision 0 -> non-permissive without CRC", "CARRIER 5.2.1 [N04]",
		Initiator{Offer: mpa.Offer{Dialect: mpa.DialectRevision0}},
		Responder{Kind: mpa.KindNonPermissive, Answer: mpa.Answer{NoCRC: true}}, false,
		"close rev=0/1 asked=MC/- named=yes closed=fin"},
	{"non-permissive asked for revision 0", "CARRIER figure 1 [N01]",
		Initiator{Offer: mpa.Offer{Kind: mpa.KindNonPermissive, Dialect: mpa.DialectRevision0}}, Responder{}, false,
		"invalid"},
	{"RDMAC asked for revision 1", "CARRIER figure 1 [N01]",
		Initiator{Offer: mpa.Offer{Kind: mpa.KindRDMAC, Dialect: mpa.DialectRFC5044}}, Responder{}, false,
		"invalid"},
	{"RDMAC, Start Key, told to do without -> RDMAC told the same", "CARRIER figure 1 [N01]",
		Initiator{Offer: mpa.Offer{Kind: mpa.KindRDMAC, Dialect: mpa.DialectStartKey, NoCRC: true}},
		Responder{Kind: mpa.KindRDMAC, Answer: mpa.Answer{NoCRC: true}}, false,
		"up V=0 M=1/1 CRC=1 dialect=startkey rev=0/0 asked=MC/MC"},
	{"RDMAC, Start Key -> permissive", "CULLEY 8.1 [K02] [N02]",
		Initiator{Offer: mpa.Offer{Kind: mpa.KindRDMAC, Dialect: mpa.DialectStartKey, Markers: true}},
		Responder{Answer: mpa.Answer{Markers: true}}, false,
		"up V=0 M=1/1 CRC=1 dialect=startkey rev=0/0 asked=MC/MC"},
	{"permissive, Start Key -> RDMAC", "CULLEY 8.1 [K02] [N02]",
		Initiator{Offer: mpa.Offer{Dialect: mpa.DialectStartKey, Markers: true}},
		Responder{Kind: mpa.KindRDMAC, Answer: mpa.Answer{Markers: true}}, false,
		"up V=0 M=1/1 CRC=1 dialect=startkey rev=0/0 asked=MC/MC"},
	{"permissive, Start Key -> non-permissive", "CARRIER figure 1 [N01] [K04]",
		Initiator{Offer: mpa.Offer{Dialect: mpa.DialectStartKey}}, Responder{Kind: mpa.KindNonPermissive}, false,
		"close"},
}
