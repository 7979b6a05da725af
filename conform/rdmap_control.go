package conform

import (
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp/rdmap"
)

const (
	rdmapControlSection = "RFC 5040 4.1"
	rdmapChecks         = "RFC 5040 7.2"
)

// rdmapControl sends RDMAP control fields with anything but the opcode.
func rdmapControl() []Case {
	var cases []Case
	for _, off := range []uint8{1, 2, 3} {
		text := fmt.Sprintf("of the stream's RDMAP version plus %d, of two bits, is refused: Terminate 0x0205.", off)
		cases = append(cases, either("rdmap", fmt.Sprintf("version-plus-%d-read", off), "P05 P56", rdmapChecks,
			"A Read Request "+text, func(d *dialogue) {
				h := d.Header(rdmap.OpReadRequest)
				h.RsvdULP = rdmap.Control((h.Version+off)&3, rdmap.OpReadRequest)
				d.sendRead("zero-length Read Request of another RDMAP version", h)
				d.refuses("The RDMA Version MUST be valid", rdmap.CodeInvalidVersion)
			})...)
		cases = append(cases, either("rdmap", fmt.Sprintf("version-plus-%d-write", off), "P05 P56 D23", rdmapChecks,
			"A Write "+text, func(d *dialogue) {
				h := d.Header(rdmap.OpWrite)
				h.RsvdULP, h.STag = rdmap.Control((h.Version+off)&3, rdmap.OpWrite), rtrSTag
				d.SendSegment("empty Write of another RDMAP version", h, nil)
				d.refuses("The RDMA Version MUST be valid", rdmap.CodeInvalidVersion)
			})...)
	}
	cases = unsafely(oldHeaders, cases)
	return append(cases, slices.Concat(
		either("rdmap", "rsv-write", "P04", rdmapControlSection,
			"The reserved bits of a Write's control field are not checked.", func(d *dialogue) {
				for _, rsv := range []uint8{0x10, 0x20, 0x30} {
					h := d.Header(rdmap.OpWrite)
					h.RsvdULP, h.STag = h.RsvdULP|rsv, rtrSTag
					d.SendSegment("empty Write with reserved bits", h, nil)
				}
				d.works()
			}),
		either("rdmap", "rsv-read", "P04", rdmapControlSection,
			"The reserved bits of a Read Request's control field are not checked.", func(d *dialogue) {
				for _, rsv := range []uint8{0x10, 0x20, 0x30} {
					h := d.Header(rdmap.OpReadRequest)
					h.RsvdULP |= rsv
					d.sendRead("zero-length Read Request with reserved bits", h)
					d.answersRead()
				}
				d.works()
			}),
		either("rdmap", "invalidate-read", "P08", rdmapControlSection,
			"The Invalidate STag of a Read Request is not looked at.", func(d *dialogue) {
				h := d.Header(rdmap.OpReadRequest)
				h.ULP = 0xdeadbeef
				d.sendRead("zero-length Read Request with an Invalidate STag", h)
				d.answersRead()
				d.works()
			}),
		eitherRping("rdmap", "invalidate-send", "P08", rdmapControlSection,
			"The Invalidate STag of a Send is not looked at.", func(d *dialogue) {
				h := d.Header(rdmap.OpSend)
				h.ULP = 0xdeadbeef
				d.SendSegment("advert with an Invalidate STag", h, d.firstAdvert().Octets())
				d.restOfPing()
			}),
		eitherRping("rdmap", "rsv-send", "P04", rdmapControlSection,
			"The reserved bits of a Send's control field are not checked.", func(d *dialogue) {
				h := d.Header(rdmap.OpSend)
				h.RsvdULP |= 0x30
				d.SendSegment("advert with reserved bits", h, d.firstAdvert().Octets())
				d.restOfPing()
			}),
	)...)
}

// rdmapOpcodes sends opcodes that there are not, and such that are not to be sent so.
func rdmapOpcodes() []Case {
	var cases []Case
	for op := rdmap.Opcode(8); op < 16; op++ {
		why, codes := "an opcode that there is not", []rdmap.Code{rdmap.CodeUnexpectedOpcode}
		if op < 12 { // of RFC 7306: a peer that has it looks at its length, or for its request
			why, codes = "an opcode of RFC 7306, with a payload of four octets", slices.Concat(badOpcode, badMSN, []rdmap.Code{rdmap.CodeDDPInvalidQN})
		}
		cases = append(cases, either("rdmap", fmt.Sprintf("opcode-%x", uint8(op)), "P06 P07", rdmapChecks,
			fmt.Sprintf("A message with %s, 0x%X, is refused: Terminate 0x0206.", why, uint8(op)), func(d *dialogue) {
				h := rdmap.OpSend.Header(d.Terms().Version)
				if info, known := op.Info(); known {
					h.QN = info.QN
				}
				h.RsvdULP, h.Last, h.MSN = rdmap.Control(h.Version, op), true, 1+d.operating().msn[h.QN]
				d.SendSegment(fmt.Sprintf("message with opcode 0x%X", uint8(op)), h, make([]byte, 4))
				d.refuses("The RDMA OpCode MUST be valid", codes...)
			})...)
	}
	cases = append(cases, either("rdmap", "send-tagged", "P01 P07", rdmapControlSection,
		"A tagged segment with the opcode of a Send is refused.", func(d *dialogue) {
			h := d.Header(rdmap.OpWrite)
			h.RsvdULP, h.STag = rdmap.Control(h.Version, rdmap.OpSend), rtrSTag
			d.SendSegment("tagged Send", h, nil)
			d.refuses("Sends are untagged", badOpcode...)
		})...)
	cases = append(cases, either("rdmap", "read-tagged", "P01 P07", rdmapControlSection,
		"A tagged segment with the opcode of a Read Request is refused.", func(d *dialogue) {
			h := d.Header(rdmap.OpWrite)
			h.RsvdULP, h.STag = rdmap.Control(h.Version, rdmap.OpReadRequest), rtrSTag
			d.SendSegment("tagged Read Request", h, nil)
			d.refuses("Read Requests are untagged", badOpcode...)
		})...)
	cases = append(cases, either("rdmap", "write-untagged", "P01 P07", rdmapControlSection,
		"An untagged segment with the opcode of a Write is refused.", func(d *dialogue) {
			h := d.Header(rdmap.OpSend)
			h.RsvdULP = rdmap.Control(h.Version, rdmap.OpWrite)
			d.SendSegment("untagged Write", h, make([]byte, 4))
			d.refuses("Writes are tagged", badOpcode...)
		})...)
	cases = append(cases, either("rdmap", "response-untagged", "P01 P07", rdmapControlSection,
		"An untagged segment with the opcode of a Read Response is refused.", func(d *dialogue) {
			h := d.Header(rdmap.OpSend)
			h.RsvdULP = rdmap.Control(h.Version, rdmap.OpReadResponse)
			d.SendSegment("untagged Read Response", h, make([]byte, 4))
			d.refuses("Read Responses are tagged", badOpcode...)
		})...)
	return unsafely(oldHeaders, cases)
}
