package conform

import (
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/rdmap"
)

// emptyWriteLen is the length of an FPDU with an empty Write in it, without markers.
const emptyWriteLen = 20

const alignment = "RFC 5044 5.1, 6"

// fpduStream cuts the stream of FPDUs into TCP segments in other ways.
func fpduStream() []Case {
	return slices.Concat(
		either("fpdu", "split-each", "R02 R04", alignment,
			"An FPDU may be split between TCP segments after each byte before its CRC.", func(d *dialogue) {
				for at := 1; at <= emptyWriteLen-layout.CRCLen; at++ {
					b := d.framed(d.emptyWrite())
					d.sendSplit("empty Write", b[:at], b[at:])
				}
				d.works()
			}),
		eitherRping("fpdu", "split-pad", "R04 F01", alignment,
			"An FPDU that is split before, within and after its pad of three bytes is taken.",
			func(d *dialogue) { d.splitEnd(13, 8, layout.CRCLen) }),
		eitherRping("fpdu", "split-crc", "R04 F04", alignment,
			"An FPDU that is split before and within its CRC is taken.", func(d *dialogue) { d.splitEnd(16, 5, 0) }),
		eitherRping("fpdu", "bytes", "R02 R04", alignment,
			"FPDUs that come byte by byte are taken.", func(d *dialogue) {
				d.exchange(13, func(text string, op rdmap.Opcode, stag uint32, to uint64, payload []byte) {
					h := d.nextHeader(op)
					h.STag, h.TO = stag, to
					d.sendEach(text, d.framed(append(h.Append(nil), payload...)))
				})
			}),
		either("fpdu", "packed", "R02 R04 F02", alignment,
			"Several FPDUs in one TCP segment are taken, each by itself.", func(d *dialogue) {
				d.send("an empty Write, a zero-length Read Request, an empty Write",
					d.framed(d.emptyWrite()), d.framed(d.emptyRead()), d.framed(d.emptyWrite()))
				d.answersRead()
				d.works()
			}),
		either("fpdu", "packed-unaligned", "R04", alignment,
			"TCP segments that hold the end of one FPDU and the beginning of another are taken.", func(d *dialogue) {
				var all []byte
				for range 8 {
					all = append(all, d.framed(d.emptyWrite())...)
				}
				d.sendSplit("eight FPDUs, in segments of 27 bytes", script.Split(all, 27)...)
				d.works()
			}),
	)
}

// splitEnd splits the FPDU of a tagged segment of n bytes of payload into single bytes
// between two places, which are counted from its end.
func (d *dialogue) splitEnd(n, first, last int) {
	d.exchange(n, func(text string, op rdmap.Opcode, stag uint32, to uint64, payload []byte) {
		h := d.nextHeader(op)
		h.STag, h.TO = stag, to
		b := d.framed(append(h.Append(nil), payload...))
		from, end := len(b)-first, len(b)-last
		pieces := slices.Concat([][]byte{b[:from]}, script.Split(b[from:end], 1), script.Split(b[end:], layout.CRCLen))
		d.sendSplit(text, pieces...)
	})
}

// fpduSizes sends large FPDUs, with what the peer must refuse once it has understood
// it: its Terminate shows that it has.
func fpduSizes() []Case {
	var cases []Case
	for _, n := range []int{128, 516, 1442} {
		cases = append(cases, either("fpdu", fmt.Sprintf("size-%d", n), "F01 F12 R07", fpduFormat,
			fmt.Sprintf("A ULPDU of %d bytes is understood: as a Write to an unknown STag it is refused for its STag.",
				n), func(d *dialogue) {
				d.sendLarge(n)
				r := d.refuses("the FPDU is in order, and its STag is not", badSTag...)
				d.want(!r.HasLength || r.Layout != rdmap.LayoutRFC ||
					int(r.SegmentLength) == n, fmt.Sprintf("DDP Segment Length %d", n), r)
			})...)
	}
	for _, n := range []int{4114, 16 << 10, layout.MaxMULPDU} {
		cases = append(cases, either("fpdu", fmt.Sprintf("size-%d", n), "F01 F12 S02", "RFC 5044 4.1, 4.5",
			fmt.Sprintf("A ULPDU of %d bytes, which may be larger than this path allows, is understood, or ends the connection in order.", n), func(d *dialogue) {
				d.sendLarge(n)
				d.refused(orCloses, "the FPDU is in order but for its size, and its STag is not",
					slices.Concat(badSTag, []rdmap.Code{
						rdmap.CodeMPACRC, rdmap.CodeMPAMarker, rdmap.CodeMPALocalCatastrophic,
						rdmap.CodeDDPLocalCatastrophic,
					})...)
			})...)
	}
	return cases
}

func (d *dialogue) sendLarge(n int) {
	d.sendTagged("Write to an unknown STag", rdmap.OpWrite, d.strangeSTag(), 0, make([]byte, n-14))
}

// strangeSTag is an STag that the peer has not advertised.
func (d *dialogue) strangeSTag() uint32 { return d.source.STag ^ 0x5bad5bad }

const fpduClose = "RFC 5044 7.2, 8"

// fpduEnds ends the connection in the middle of something.
func fpduEnds() []Case {
	half := func(d *dialogue) {
		b := d.framed(d.emptyRead())
		d.send("half an FPDU", b[:len(b)/2])
	}
	return slices.Concat(
		either("fpdu", "fin-within", "Q15 Q16 R08", fpduClose,
			"A FIN in the middle of an FPDU ends the connection, and the FPDU is not taken.", func(d *dialogue) {
				half(d)
				d.closeWrite()
				d.refused(orCloses, "the FPDU cannot become whole")
			}),
		either("fpdu", "fin-behind-crc", "Q15 Q16 R01", fpduClose,
			"A FIN after an FPDU without its CRC ends the connection, and the FPDU is not taken.", func(d *dialogue) {
				b := d.framed(d.emptyRead())
				d.send("FPDU without its CRC", b[:len(b)-layout.CRCLen])
				d.closeWrite()
				d.refused(orCloses, "the FPDU cannot become whole")
			}),
		either("fpdu", "reset-within", "Q16 Z08", fpduClose,
			"A RST in the middle of an FPDU ends this connection, and no other.", func(d *dialogue) {
				half(d)
				d.reset()
				d.afresh()
			}),
		either("fpdu", "fin-after-read", "Q15 D32", "RFC 5044 7.2; RFC 5041 6.2.1",
			"A Read Request directly before a FIN is answered or not, and the connection ends in order: neither by a RST nor after a Terminate.", func(d *dialogue) {
				d.sendFPDU("zero-length Read Request", d.emptyRead())
				d.closeWrite()
				d.gracefully()
			}),
		either("fpdu", "fin", "Q15 R08 D32", fpduClose,
			"A FIN between FPDUs is answered by a FIN, and not by a Terminate.", func(d *dialogue) {
				d.works()
				d.closeWrite()
				d.gracefully()
			}),
		[]Case{toClient("fpdu/initiator-drains", "D33 Q15", "RFC 5041 6.2.1",
			"After its own FIN a client still receives what comes before ours: it does not reset the connection.",
			drains)},
	)
}

// drains goes on sending after a client's FIN. That the client receives is a SHOULD.
func drains(d *dialogue) {
	d.works()
	if d.look(d.quietTime()) != sightEnd || d.link.End() != script.FIN {
		d.notApplicable("the client does not close the connection after its ping")
	}
	for range 3 { // a RST for the first is seen when the next is sent
		d.sendFPDU("empty Write", d.emptyWrite())
		d.pause(settling)
	}
	if d.link.refused {
		d.notApplicable("the client resets the connection where DDP SHOULD keep data reception enabled")
	}
	d.note(Checked, "the connection is not reset", nil)
}

// gracefully sees that the peer closes its half, and reports no error.
func (d *dialogue) gracefully() {
	const expected = "a FIN: half connections close as TCP does"
	for d.look(d.opts.Timeout) == sightBytes {
		if seg := d.segment(expected); rdmap.OpcodeOf(&seg.Header) == rdmap.OpTerminate {
			d.failf(expected, "%s", script.DescribeSegment(&seg))
		}
	}
	d.want(d.link.End() == script.FIN, expected, d.link.End())
}

// afresh sees that another connection works.
func (d *dialogue) afresh() {
	d.reconnect()
	d.startDialogue().works()
}
