package conform

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/rping/message"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// operationCases returns the cases of Full Operation.
func operationCases() []Case {
	return slices.Concat(
		fpduCRC(), fpduPad(), fpduLength(), fpduStream(), fpduSizes(), fpduEnds(), fpduMarkers(), fpduMarked(),
		ddpHeader(), ddpQueues(), ddpMSN(), ddpMO(), ddpBounds(), ddpTagged(), ddpPlacement(),
		rdmapControl(), rdmapOpcodes(), rdmapReads(), rdmapReadErrors(), rdmapResponses(), rdmapSends(),
		rdmapPeer(), rdmapExtensions(),
		terminateSent(), terminateForms(), terminateTimes(), terminatePeer(),
	)
}

const crcSection = "RFC 5044 4.4, 8"

// spoiled frames a ULPDU, has edit change what stands before the CRC, without a
// leading marker, and seals it with a CRC that fits.
func (d *dialogue) spoiled(ulpdu []byte, edit func(fpdu []byte)) []byte {
	leading := 0
	if l := d.operating(); l.Terms().MarkersSend && l.SendOffset()%layout.MarkerInterval == 0 {
		leading = layout.MarkerLen
	}
	b := d.framed(ulpdu)
	edit(b[leading : len(b)-layout.CRCLen])
	return d.sealed(b)
}

// sealed computes an FPDU's CRC anew.
func (d *dialogue) sealed(b []byte) []byte {
	if d.terms().CRC {
		return script.Seal(b)
	}
	return b
}

// fpduCRC sends CRCs that are wrong.
func fpduCRC() []Case {
	var cases []Case
	for _, c := range []struct {
		name, text string
		spoil      func(b []byte)
	}{
		{"crc-wrong", "An FPDU with one bit of its CRC wrong", func(b []byte) { b[len(b)-1] ^= 0x10 }},
		{"crc-header", "An FPDU with one bit of its DDP header wrong",
			func(b []byte) { b[len(b)-layout.CRCLen-rdmap.ReadRequestLen-2] ^= 0x01 }},
		{"crc-payload", "An FPDU with one bit of its payload wrong",
			func(b []byte) { b[len(b)-layout.CRCLen-1] ^= 0x80 }},
		{"crc-big-endian", "An FPDU with its CRC in big-endian",
			func(b []byte) { slices.Reverse(b[len(b)-layout.CRCLen:]) }},
		{"crc-zero", "An FPDU with zeros in place of its CRC", func(b []byte) { clear(b[len(b)-layout.CRCLen:]) }},
	} {
		cases = append(cases, either("fpdu", c.name, "F04 R01 Q16 D06", crcSection,
			c.text+" is not taken, nor is what follows it: Terminate 0x2002, or the connection closed.",
			func(d *dialogue) {
				d.needsCRC()
				b := d.framed(d.emptyRead())
				c.spoil(b)
				d.send("zero-length Read Request, spoiled, and a good one", b, d.framed(d.emptyRead()))
				d.refused(orDrops, "Received MPA CRC does not match the calculated value", rdmap.CodeMPACRC)
			})...)
	}
	cases = append(cases, toResponder("fpdu/responder-crc-first", "Q11 R01 F04", crcSection,
		"A first FPDU with a wrong CRC does not let the Responder send: no Terminate either.",
		firstCRC).in(mpa.DialectRFC6581, mpa.DialectRFC5044,
		mpa.DialectRevision0).unsafe("kernels that want an RTR indication crash when the connection ends"))
	for _, role := range []struct {
		side  string
		build func(id, requirements, section, text string, run func(*session)) Case
	}{{"responder", toResponder}, {"initiator", toInitiator}} {
		c := role.build("fpdu/"+role.side+"-crc-off", "F05 F14", crcSection,
			"With C=0 from both sides the CRC field is not checked, whatever is in it.", func(s *session) {
				defer s.excuse()
				d := s.startDialogueWith(false, false)
				if d.terms().CRC {
					s.notApplicable("the peer wants CRCs")
				}
				b := d.framed(d.emptyWrite())
				copy(b[len(b)-layout.CRCLen:], "\xde\xad\xbe\xef")
				d.send("empty Write with anything as CRC", b)
				d.works()
			}).in(mpa.DialectRFC6581, mpa.DialectRFC5044, mpa.DialectRtr, mpa.DialectStartKey)
		if role.side == "initiator" {
			c = c.withRping()
		}
		cases = append(cases, c)
	}
	return cases
}

// needsCRC leaves the case where CRCs are off.
func (d *dialogue) needsCRC() {
	if !d.terms().CRC {
		d.notApplicable("CRCs are off")
	}
}

func firstCRC(s *session) {
	s.setup(func() { s.accepted(s.request()) })
	d := &dialogue{session: s}
	b := script.SpoilCRC(d.framed(d.emptyRead()))
	s.pause(settling)
	d.send("zero-length Read Request with a wrong CRC, as first FPDU", b)
	if s.look(s.opts.Timeout) == sightBytes {
		s.unexpected(s.link, "nothing, or the connection closed: Responders MUST receive and validate at least one FPDU before sending any FPDUs or Markers")
	}
}

const fpduFormat = "RFC 5044 4.1"

// fpduPad sends and looks at pads.
func fpduPad() []Case {
	var cases []Case
	for pad := range 4 {
		// 14 bytes of DDP header and 2 of ULPDU_Length leave the payload to decide.
		n := 16 - pad
		cases = append(cases, eitherRping("fpdu", fmt.Sprintf("pad-%d", pad), "F01 F03", fpduFormat,
			fmt.Sprintf("A pad of %s is taken, and sent as zeros.", wording.Bytes(pad)), func(d *dialogue) {
				d.looksAtPad = true
				d.exchange(n, d.sendTagged)
			})...)
	}
	cases = append(cases, eitherRping("fpdu", "pad-not-zero", "F03", fpduFormat,
		"The bytes of a pad are not checked, except by the CRC.", func(d *dialogue) {
			d.exchange(13, func(text string, op rdmap.Opcode, stag uint32, to uint64, payload []byte) {
				h := d.nextHeader(op)
				h.STag, h.TO = stag, to
				b := d.spoiled(append(h.Append(nil), payload...), func(fpdu []byte) { copy(fpdu[len(fpdu)-3:], "pad") })
				d.send(text+" with a pad of other bytes than zeros", b)
			})
		})...)
	return cases
}

// tagger is sendTagged, or a way to spoil it.
type tagger func(text string, op rdmap.Opcode, stag uint32, to uint64, payload []byte)

// shortText is a text of n bytes to ping with.
func shortText(n int) []byte { return append([]byte("rdma-ping-0: ABCDEF")[:n-1], 0) }

// exchange has n bytes go either way in one tagged segment, and looks at the peer's
// pad if it is to.
func (d *dialogue) exchange(n int, send tagger) {
	if d.role() == mpa.RoleResponder {
		d.exchangeWithServer(shortText(n), send)
		return
	}
	d.readSource(message.Advert{TO: d.source.TO, STag: d.source.STag, Length: uint32(n)})
	d.padIsZero(n)
	sink := d.goAhead()
	send("Write", rdmap.OpWrite, sink.STag, sink.TO, shortText(n))
	d.sendAdvert("go ahead", message.Advert{})
	d.content()
}

func (d *dialogue) exchangeWithServer(text []byte, send tagger) {
	d.sendAdvert("source advert", message.Advert{TO: sourceTO, STag: sourceSTag, Length: uint32(len(text))})
	m := d.message(rdmap.OpReadRequest, "a Read Request of the source")
	r, err := rdmap.ParseReadRequest(m.Payload)
	d.want(err == nil && int(r.Size) == len(text), fmt.Sprintf("a Read Request of %d bytes", len(text)), r)
	send("Read Response", rdmap.OpReadResponse, r.SinkSTag, r.SinkTO, text)
	d.peerAdvert("the server's first go ahead")
	d.sendAdvert("sink advert", sinkAdvert())
	w := d.message(rdmap.OpWrite, "a Write of the text")
	d.want(slices.Equal(w.Payload, text), "a Write of "+strconv.Quote(string(text)), strconv.Quote(string(w.Payload)))
	d.padIsZero(len(text))
	d.peerAdvert("the server's second go ahead")
}

// padIsZero looks at the pad of the tagged segment that came last.
func (d *dialogue) padIsZero(n int) {
	b := d.link.last.Bytes
	pad := -(2 + 14 + n) & 3
	if !d.looksAtPad {
		return
	}
	end := len(b) - layout.CRCLen
	d.want(pad == 0 || binary.BigEndian.Uint32(append(make([]byte, 4-pad), b[end-pad:end]...)) == 0,
		fmt.Sprintf("a pad of %s of zero", wording.Bytes(pad)), fmt.Sprintf("% x", b[end-pad:end]))
}

// fpduLength sends ULPDUs that are shorter than a DDP header.
func fpduLength() []Case {
	var cases []Case
	for _, c := range []struct {
		n    int
		text string
	}{
		{0, "An FPDU without a ULPDU"}, {1, "A ULPDU of 1 byte"},
		{13, "A tagged ULPDU of 13 bytes"}, {17, "An untagged ULPDU of 17 bytes"},
	} {
		cases = append(cases, either("fpdu", fmt.Sprintf("length-%d", c.n), "D10 R02", "RFC 5041 4.2, 4.3",
			c.text+", which has no whole DDP header, ends the connection.", func(d *dialogue) {
				whole := d.emptyWrite()
				if c.n > 14 {
					whole = d.emptyRead()
				}
				d.sendFPDU("ULPDU cut short", whole[:c.n])
				d.sendFPDU("zero-length Read Request", d.emptyRead())
				d.refused(orCloses, "there is no DDP Segment without a DDP header")
			})...)
	}
	return unsafely("Linux's siw took the length for a huge one before 2026", cases)
}
