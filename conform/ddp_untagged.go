package conform

import (
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/rping/message"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// isServer reports whether the peer is rping -s.
func (d *dialogue) isServer() bool { return d.role() == mpa.RoleResponder }

// piece is one segment of an untagged message: bytes from to to of it.
type piece struct {
	mo       uint32
	from, to int
	last     bool
}

// sendPieces sends an advert in pieces, as one message.
func (d *dialogue) sendPieces(a []byte, pieces []piece) {
	h := d.nextHeader(rdmap.OpSend)
	for _, p := range pieces {
		h.MO, h.Last = p.mo, p.last
		d.sendSegment(fmt.Sprintf("bytes %d to %d of the advert", p.from, p.to), h, a[p.from:p.to])
	}
}

// advertInPieces makes the first Send of our part of a ping in pieces.
func (d *dialogue) advertInPieces(pieces ...piece) { d.sendPieces(d.firstAdvert().Append(nil), pieces) }

// firstAdvert is the first that we send in a ping: as client of the source, as
// server a go ahead.
func (d *dialogue) firstAdvert() message.Advert {
	if d.isServer() {
		return sourceAdvert()
	}
	return message.Advert{}
}

// sendFirst sends that advert with a changed DDP header.
func (d *dialogue) sendFirst(text string, change func(*ddp.Header)) {
	h := d.nextHeader(rdmap.OpSend)
	change(&h)
	d.sendSegment(text, h, d.firstAdvert().Append(nil))
}

// restOfPing goes on after a firstAdvert, which must have been delivered.
func (d *dialogue) restOfPing() {
	if d.isServer() {
		d.restOfServerPing()
		return
	}
	d.finish(d.peerAdvert("the client's sink advert"))
}

// ddpMO cuts Sends into segments, rightly and wrongly.
func ddpMO() []Case {
	var data []piece
	for i := range message.Len {
		data = append(data, piece{uint32(i), i, i + 1, i == message.Len-1})
	}
	var cases []Case
	for _, c := range []struct {
		name, text string
		pieces     []piece
	}{
		{"segments-2", "A Send of two segments is delivered as one message.",
			[]piece{{0, 0, 8, false}, {8, 8, 16, true}}},
		{"segments-16", "A Send of sixteen segments of one byte is delivered as one message.", data},
	} {
		cases = append(cases, eitherRping("ddp", c.name, "D18 D24 D28", "RFC 5041 5.2, 5.4", c.text, func(d *dialogue) {
			d.advertInPieces(c.pieces...)
			d.restOfPing()
		})...)
	}
	return slices.Concat(cases, ddpAnyMO(), ddpTooLong(), ddpMOErrors(), ddpBetween())
}

// ddpAnyMO sends segments of Sends in unusual orders of MO.
//
// RFC 5041, section 5.2: the Data Sink "MUST Place the ULP Payload contained in all valid incoming DDP Segments", and
// section 7.1, which says what is valid, asks for no order and no byte to come once.
func ddpAnyMO() []Case {
	cases := eitherRping("ddp", "mo-reversed", "D18 D24 D26", "RFC 5041 5.2, 5.3",
		"A Send whose segment with the L bit comes first is delivered whole, or refused.", func(d *dialogue) {
			d.advertInPieces(piece{8, 8, 16, true}, piece{0, 0, 8, false})
			d.mayRefuse("the last segment is not to be sent first", slices.Concat(badMO, badMSN), d.restOfPing)
		})
	for _, c := range []struct {
		name, text string
		pieces     []piece
	}{
		{"mo-overlap", "A Send whose segments overlap is delivered whole.",
			[]piece{{0, 0, 10, false}, {6, 6, 16, true}}},
		{"mo-twice", "A Send of which one segment comes twice is delivered whole.",
			[]piece{{0, 0, 8, false}, {0, 0, 8, false}, {8, 8, 16, true}}},
		{"mo-any-order", "A Send whose segments before the last come in another order is delivered whole.",
			[]piece{{6, 6, 10, false}, {0, 0, 6, false}, {10, 10, 16, true}}},
		{"mo-empty-last", "A Send whose last segment is empty is delivered whole.",
			[]piece{{0, 0, 16, false}, {16, 16, 16, true}}},
	} {
		cases = append(cases, eitherRping("ddp", c.name, "D18 D24 D26", "RFC 5041 5.2, 5.3", c.text, func(d *dialogue) {
			d.advertInPieces(c.pieces...)
			d.restOfPing()
		})...)
	}
	return cases
}

// ddpTooLong sends more than the peer's receives hold, which are of 16 bytes.
func ddpTooLong() []Case {
	var cases []Case
	for _, n := range []int{17, 64, 1400} {
		cases = append(cases, eitherRping("ddp", fmt.Sprintf("too-long-%d", n), "D38 P30", ddpCodes,
			fmt.Sprintf("A Send of %d bytes to a receive of 16 is refused: Terminate 0x1205.", n), func(d *dialogue) {
				d.sendMessage("Send that is too long", rdmap.OpSend, make([]byte, n))
				d.refuses("the message is too long for the buffer", rdmap.CodeDDPMessageTooLong)
			})...)
	}
	cases = append(cases, eitherRping("ddp", "too-long-by-segment", "D38 P30", ddpCodes,
		"A Send whose second segment goes beyond the receive is refused: Terminate 0x1205, or 0x1204 for its MO.",
		func(d *dialogue) {
			h := d.nextHeader(rdmap.OpSend)
			h.Last = false
			d.sendSegment("as many bytes as the receive has", h, d.firstAdvert().Append(nil))
			h.MO, h.Last = message.Len, true
			d.sendSegment("one byte more", h, []byte{1})
			d.refuses("the message is too long for the buffer", badMO...)
		})...)
	return cases
}

// ddpMOErrors send MOs that are not in the buffer.
func ddpMOErrors() []Case {
	var cases []Case
	for _, c := range []struct {
		name string
		mo   uint32
		text string
	}{
		{"mo-behind", 64, "beyond the receive"},
		{"mo-half", 0x80000000, "of half their range"},
		{"mo-last", 0xffffffff, "to which the payload adds up to 2^32 and more"},
	} {
		cases = append(cases, eitherRping("ddp", c.name, "D38", ddpChecks,
			"A Send with an MO "+c.text+" is refused: Terminate 0x1204, or 0x1205 for its end.", func(d *dialogue) {
				d.sendFirst("Send with an MO outside of the receive", func(h *ddp.Header) { h.MO = c.mo })
				d.refuses("the MO is not in the range of the buffer", badMO...)
			})...)
	}
	return append(cases, eitherRping("ddp", "mo-gap", "D18 D27", "RFC 5041 5.2, 5.4",
		"A Send with a gap between its segments is refused only for its MO.", func(d *dialogue) {
			h := d.nextHeader(rdmap.OpSend)
			h.Last = false
			d.sendSegment("four bytes", h, d.firstAdvert().Append(nil)[:4])
			h.MO, h.Last = 8, true
			d.sendSegment("eight bytes from MO 8 on", h, d.firstAdvert().Append(nil)[8:])
			// RFC 5041, section 5.2: "the Data Sink is not required to verify that
			// the entire ULP Message has been received".
			d.mayRefuse("the message has a gap", badMO, func() {
				d.notef("the gap is not noticed, or the message not delivered")
			})
		})...)
}

// ddpBetween sends other messages between the segments of a Send.
func ddpBetween() []Case {
	half := func(d *dialogue, between func()) {
		h := d.nextHeader(rdmap.OpSend)
		h.Last = false
		a := d.firstAdvert().Append(nil)
		d.sendSegment("first half of the advert", h, a[:8])
		between()
		h.MO, h.Last = 8, true
		d.sendSegment("second half of the advert", h, a[8:])
	}
	return slices.Concat(
		eitherRping("ddp", "incomplete", "D27 P31", "RFC 5041 5.4",
			"A Send is not delivered before its last segment.", func(d *dialogue) {
				half(d, func() { d.expectNothing("the Send has no last segment yet") })
				d.restOfPing()
			}),
		eitherRping("ddp", "between-write", "D05 D27", "RFC 5041 5.3",
			"An empty Write between the segments of a Send, where no peer needs to send one, is taken or refused.",
			func(d *dialogue) {
				half(d, func() { d.sendFPDU("empty Write", d.emptyWrite()) })
				d.mayRefuse("a message is not to begin within another", nil, d.restOfPing)
			}),
		eitherRping("ddp", "last-missing", "D11 D27 D17", "RFC 5041 4.1",
			"A Send that never has a last segment is not delivered, though another follows it.", func(d *dialogue) {
				d.sendFirst("advert without L", func(h *ddp.Header) { h.Last = false })
				d.sendAdvert("another advert", d.firstAdvert())
				d.undelivered()
				d.refused(orDrops, "the first message has no last segment", slices.Concat(badMSN, badMO)...)
			}),
		eitherRping("ddp", "no-buffer", "D37 P29", ddpChecks,
			"More Sends than the peer has receives for are taken in order, or refused: Terminate 0x1202 or 0x1203.",
			func(d *dialogue) {
				for range 64 {
					d.sendAdvert("advert that nobody waits for", d.firstAdvert())
				}
				d.floodEnds()
			}),
	)
}

// floodEnds sees that a flood of Sends ends in order, if it ends: the application may
// have had enough of it, or the peer no receives.
func (d *dialogue) floodEnds() {
	for d.look(d.opts.Timeout) == sightBytes {
		seg := d.segment("a message, Terminate 0x1202 or 0x1203, or the connection closed")
		if rdmap.OpcodeOf(&seg.Header) == rdmap.OpTerminate {
			d.refusal(seg, terminateText(badMSN), badMSN)
			return
		}
	}
}
