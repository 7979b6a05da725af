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
				d.sendTagged("Read Response", rdmap.OpReadResponse, d.strangeSTag(), 0, []byte("iwrp"))
				d.refuses("nothing was read, and the STag is not valid", badResponse...)
			}),
		rdmapGoodResponses(), rdmapMisplacedResponses(), rdmapOtherResponses(),
	)
}

// rdmapGoodResponses is a Read answered as it should be, in pieces and late.
func rdmapGoodResponses() []Case {
	return []Case{
		toServer("rdmap/responder-response-segments", "P28 D24", responseSection,
			"A Read Response of segments of one byte is taken.", func(d *dialogue) {
				h := d.readOfServer()
				for i := range pingText() {
					d.sendPart(h, i, i+1, i == len(pingText())-1)
				}
				d.restAfterRead()
			}),
		responseInParts("any-order", "in another order of TO is taken", [3]int{8, 20, 0},
			[3]int{20, 32, 0}, [3]int{0, 8, 1}),
		responseInParts("overlap", "whose segments overlap is taken", [3]int{0, 20, 0}, [3]int{15, 32, 1}),
		responseInParts("empty-last", "whose last segment is empty is taken", [3]int{0, 32, 0}, [3]int{32, 32, 1}),
		toServer("rdmap/responder-response-gap", "P28 D27", "RFC 5041 5.4",
			"A Read is not complete while bytes of it have not come, though as many have.", func(d *dialogue) {
				h := d.readOfServer()
				half := len(pingText()) / 2
				d.sendPart(h, 0, half, false)
				d.sendPart(h, 0, half, true)
				d.mayRefuse("The Data Sink MAY validate [...] length", badResponse, func() {
					d.notef("the gap is not noticed: RFC 5041, section 5.2, does not require that")
				})
			}),
		toServer("rdmap/responder-response-waits", "P28 P42", "RFC 5040 5.5",
			"A Read is not complete before its Response is, and a Send after it is not sent before.",
			func(d *dialogue) {
				h := d.readOfServer()
				d.expectNothing("the Read is not answered")
				d.sendPart(h, 0, 16, false)
				d.expectNothing("the Read is half answered")
				d.sendPart(h, 16, len(pingText()), true)
				d.restAfterRead()
			}),
	}
}

// responseInParts is a case of a Response of parts, each from a byte of the text up to another, and with the L bit or
// not.
func responseInParts(name, text string, parts ...[3]int) Case {
	return toServer("rdmap/responder-response-"+name, "P28 D24", "RFC 5041 5.2, 5.3",
		"A Read Response "+text+".", func(d *dialogue) {
			h := d.readOfServer()
			for _, p := range parts {
				d.sendPart(h, p[0], p[1], p[2] == 1)
			}
			d.restAfterRead()
		})
}

// rdmapMisplacedResponses answers a Read to another place than it asked for.
func rdmapMisplacedResponses() []Case {
	const outOfRange = "the TO is not in the range of the STag"
	var cases []Case
	for _, c := range []struct {
		name, requirements, text, because string
		change                            func(h *ddp.Header)
	}{
		{"stag", "P28 D39 Z12", "to another STag than the Request's", "the STag is not that of the Read, and not valid",
			func(h *ddp.Header) { h.STag ^= 0x5bad5bad }},
		{"far", "P28 D40 Z10", "far from the Request's TO", outOfRange, func(h *ddp.Header) { h.TO += 1 << 40 }},
		{"in-front", "P28 D40 Z10", "that begins before the buffer", outOfRange, func(h *ddp.Header) { h.TO-- }},
	} {
		cases = append(cases, toServer("rdmap/responder-response-"+c.name, c.requirements, ddpChecks,
			"A Read Response "+c.text+" is refused.", func(d *dialogue) {
				h := d.readOfServer()
				c.change(&h)
				d.sendPart(h, 0, len(pingText()), true)
				d.refuses(c.because, badResponse...)
			}))
	}
	return append(cases,
		toServer("rdmap/responder-response-beyond", "P28 D40 Z12", ddpChecks,
			"A Read Response that goes on far beyond the Request's size is refused before its last segment.",
			func(d *dialogue) {
				h := d.readOfServer()
				d.sendPart(h, 0, len(pingText()), false)
				h.TO += 1 << 20
				d.sendPart(h, 0, len(pingText()), false)
				d.refuses(outOfRange, badResponse...)
			}).unsafe("Linux's siw wrote beyond the buffer before 2026"),
	)
}

// rdmapOtherResponses answers a Read by too little, by too much, and by a Write.
func rdmapOtherResponses() []Case {
	return []Case{
		toServer("rdmap/responder-response-short", "P28", responseSection,
			"A Read Response that is too short is refused, or taken as it is.", func(d *dialogue) {
				d.sendPart(d.readOfServer(), 0, 16, true)
				d.mayRefuse("The Data Sink MAY validate [...] length", badResponse, func() {
					d.peerAdvert("the server's first go ahead")
				})
			}),
		toServer("rdmap/responder-response-twice", "P28 P07", responseSection,
			"A second Read Response to one Request is refused, or does nothing.", func(d *dialogue) {
				h := d.readOfServer()
				d.sendPart(h, 0, len(pingText()), true)
				d.sendPart(h, 0, len(pingText()), true)
				d.mayRefuse("only one Response was asked for", badResponse, func() {
					d.peerAdvert("the server's first go ahead")
					if d.look(d.quietTime()) == sightBytes {
						d.refused(orCloses, "only one Response was asked for", badResponse...)
					}
				})
			}),
		toServer("rdmap/responder-write-for-response", "P28 P21", responseSection,
			"A Write to where a Read's data belong is not its Response.", func(d *dialogue) {
				h := d.readOfServer()
				d.sendTagged("Write of the text", rdmap.OpWrite, h.STag, h.TO, pingText())
				// The buffer may not be for Writes.
				d.mayRefuse("the buffer is not for Writes",
					append([]rdmap.Code{rdmap.CodeAccessRights}, badSTag...), func() {
						d.expectNothing("the Read is not answered")
						d.sendPart(h, 0, len(pingText()), true)
						d.restAfterRead()
					})
			}),
	}
}

// readOfServer has the server read, and returns the header of the whole Response.
func (d *dialogue) readOfServer() ddp.Header {
	b := d.serverBuffer()
	h := d.nextHeader(rdmap.OpReadResponse)
	h.STag, h.TO = b.STag, b.TO
	return h
}

// respond sends bytes of the text as a segment of a Read Response.
func (d *dialogue) sendPart(h ddp.Header, from, to int, last bool) {
	h.TO, h.Last = h.TO+uint64(from), last
	d.sendSegment("segment of a Read Response", h, pingText()[from:to])
}
