package conform

import (
	"slices"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/rdmap"
)

const responseSection = "RFC 5040 5.2.2"

// badResponse are codes for a Read Response that was not asked for.
var badResponse = slices.Concat(badSTag, badBounds, badOpcode, []rdmap.Code{rdmap.CodeDDPLocalCatastrophic})

// rdmapResponses answers a server's Read in several ways.
func rdmapResponses() []Case {
	return slices.Concat(
		either("rdmap", "response-unasked", "P07 P28 D39", ddpChecks,
			"A Read Response that was not asked for, to an unknown STag, is refused.", func(d *dialogue) {
				d.SendTagged("Read Response", rdmap.OpReadResponse, d.strangeSTag(), 0, []byte("iwrp"))
				d.refuses("nothing was read, and the STag is not valid", badResponse...)
			}),
		rdmapGoodResponses(), rdmapMisplacedResponses(), rdmapOtherResponses(),
	)
}

// rdmapGoodResponses is a Read answered as it should be, in pieces and late.
func rdmapGoodResponses() []Case {
	return []Case{
		toServer("rdmap/responder-response-segments", "P28 D24", responseSection,
			"A Read Response of segments of one octet is taken.", func(d *dialogue) {
				h := d.readOfServer()
				for i := range PingText() {
					d.respond(h, i, i+1, i == len(PingText())-1)
				}
				d.restBehindRead()
			}),
		toServer("rdmap/responder-response-waits", "P28 P42", "RFC 5040 5.5",
			"A Read is not complete before its Response is, nor is a Send behind it sent.", func(d *dialogue) {
				h := d.readOfServer()
				d.ExpectNothing("the Read is not answered")
				d.respond(h, 0, 16, false)
				d.ExpectNothing("the Read is half answered")
				d.respond(h, 16, len(PingText()), true)
				d.restBehindRead()
			}),
	}
}

// rdmapMisplacedResponses answers a Read to another place than it asked for.
func rdmapMisplacedResponses() []Case {
	return []Case{
		toServer("rdmap/responder-response-stag", "P28 D39 Z12", ddpChecks,
			"A Read Response to another STag than the Request's is refused.", func(d *dialogue) {
				h := d.readOfServer()
				h.STag ^= 0x5bad5bad
				d.respond(h, 0, len(PingText()), true)
				d.refuses("the STag is not that of the Read, and not valid", badResponse...)
			}),
		toServer("rdmap/responder-response-far", "P28 D40 Z10", ddpChecks,
			"A Read Response far from the Request's TO is refused.", func(d *dialogue) {
				h := d.readOfServer()
				h.TO += 1 << 40
				d.respond(h, 0, len(PingText()), true)
				d.refuses("the TO is not in the range of the STag", badResponse...)
			}),
		toServer("rdmap/responder-response-in-front", "P28 D40 Z10", ddpChecks,
			"A Read Response that begins in front of the buffer is refused.", func(d *dialogue) {
				h := d.readOfServer()
				h.TO--
				d.respond(h, 0, len(PingText()), true)
				d.refuses("the TO is not in the range of the STag", badResponse...)
			}),
		toServer("rdmap/responder-response-beyond", "P28 D40 Z12", ddpChecks,
			"A Read Response that goes on far beyond the Request's size is refused before its last segment.", func(d *dialogue) {
				h := d.readOfServer()
				d.respond(h, 0, len(PingText()), false)
				h.TO += 1 << 20
				d.respond(h, 0, len(PingText()), false)
				d.refuses("the TO is not in the range of the STag", badResponse...)
			}).unsafe("Linux's siw wrote beyond the buffer before 2026"),
	}
}

// rdmapOtherResponses answers a Read by too little, by too much, and by a Write.
func rdmapOtherResponses() []Case {
	return []Case{
		toServer("rdmap/responder-response-short", "P28", responseSection,
			"A Read Response that is too short is refused, or taken as it is.", func(d *dialogue) {
				d.respond(d.readOfServer(), 0, 16, true)
				d.takenOr("The Data Sink MAY validate [...] length", badResponse, func() {
					d.PeerAdvert("the server's first go ahead")
				})
			}),
		toServer("rdmap/responder-response-twice", "P28 P07", responseSection,
			"A second Read Response to one Request is refused, or does nothing.", func(d *dialogue) {
				h := d.readOfServer()
				d.respond(h, 0, len(PingText()), true)
				d.respond(h, 0, len(PingText()), true)
				d.takenOr("only one Response was asked for", badResponse, func() {
					d.PeerAdvert("the server's first go ahead")
					if d.look(d.opts.Quiet) == sightOctets {
						d.refused(orCloses, "only one Response was asked for", badResponse...)
					}
				})
			}),
		toServer("rdmap/responder-write-for-response", "P28 P21", responseSection,
			"A Write to where a Read's data belong is not its Response.", func(d *dialogue) {
				h := d.readOfServer()
				d.SendTagged("Write of the text", rdmap.OpWrite, h.STag, h.TO, PingText())
				// The buffer may not be for Writes.
				d.takenOr("the buffer is not for Writes", append([]rdmap.Code{rdmap.CodeAccessRights}, badSTag...), func() {
					d.ExpectNothing("the Read is not answered")
					d.respond(h, 0, len(PingText()), true)
					d.restBehindRead()
				})
			}),
	}
}

// readOfServer has the server read, and returns the header of the whole Response.
func (d *dialogue) readOfServer() ddp.Header {
	b := d.serverBuffer()
	h := d.Header(rdmap.OpReadResponse)
	h.STag, h.TO = b.STag, b.TO
	return h
}

// respond sends octets of the text as a segment of a Read Response.
func (d *dialogue) respond(h ddp.Header, from, to int, last bool) {
	h.TO, h.Last = h.TO+uint64(from), last
	d.SendSegment("segment of a Read Response", h, PingText()[from:to])
}

// restBehindRead goes on with the ping where the server has its text.
func (d *dialogue) restBehindRead() {
	d.PeerAdvert("the server's first go ahead")
	d.SendAdvert("sink advert", SinkAdvert())
	d.PeerWrites()
	d.PeerAdvert("the server's second go ahead")
}
