package conform

import (
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/script"
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
		for _, c := range []struct {
			name, requirements, what string
			op                       rdmap.Opcode
		}{
			{"read", "P05 P56", "A Read Request", rdmap.OpReadRequest},
			{"write", "P05 P56 D23", "A Write", rdmap.OpWrite},
		} {
			cases = append(cases, either("rdmap", fmt.Sprintf("version-plus-%d-%s", off, c.name),
				c.requirements, rdmapChecks,
				fmt.Sprintf("%s with the stream's RDMAP version plus %d, in two bits, is refused: Terminate 0x0205.",
					c.what, off), func(d *dialogue) {
					d.sendEmpty(c.op, "of another RDMAP version",
						func(h *ddp.Header) { h.RsvdULP = rdmap.Control((h.Version+off)&3, c.op) })
					d.refuses("The RDMA Version MUST be valid", rdmap.CodeInvalidVersion)
				})...)
		}
	}
	var bits []func(*ddp.Header)
	for _, rsv := range []uint8{0x10, 0x20, 0x30} {
		bits = append(bits, func(h *ddp.Header) { h.RsvdULP |= rsv })
	}
	invalidate := func(h *ddp.Header) { h.ULP = 0xdeadbeef }
	return append(unsafely(oldHeaders, cases), slices.Concat(
		either("rdmap", "rsv-write", "P04", rdmapControlSection,
			"The reserved bits of a Write's control field are not checked.", func(d *dialogue) {
				d.takesEach(rdmap.OpWrite, "with reserved bits", bits...)
			}),
		either("rdmap", "rsv-read", "P04", rdmapControlSection,
			"The reserved bits of a Read Request's control field are not checked.", func(d *dialogue) {
				d.takesEach(rdmap.OpReadRequest, "with reserved bits", bits...)
			}),
		either("rdmap", "invalidate-read", "P08", rdmapControlSection,
			"The Invalidate STag of a Read Request is not checked.", func(d *dialogue) {
				d.takesEach(rdmap.OpReadRequest, "with an Invalidate STag", invalidate)
			}),
		eitherRping("rdmap", "invalidate-send", "P08", rdmapControlSection,
			"The Invalidate STag of a Send is not checked.", func(d *dialogue) {
				d.sendFirst("advert with an Invalidate STag", invalidate)
				d.restOfPing()
			}),
		eitherRping("rdmap", "rsv-send", "P04", rdmapControlSection,
			"The reserved bits of a Send's control field are not checked.", func(d *dialogue) {
				d.sendFirst("advert with reserved bits", bits[2])
				d.restOfPing()
			}),
	)...)
}

// rdmapOpcodes sends opcodes that do not exist, and segments of the wrong model.
func rdmapOpcodes() []Case {
	var cases []Case
	for op := rdmap.Opcode(8); op < 16; op++ {
		why, codes := "an opcode that does not exist", []rdmap.Code{rdmap.CodeUnexpectedOpcode}
		if _, known := op.Info(); known { // of RFC 7306: a peer that has it looks at its length, or for its request
			why, codes = "an opcode of RFC 7306, with a payload of four bytes",
				slices.Concat(badOpcode, badMSN, []rdmap.Code{rdmap.CodeDDPInvalidQN})
		}
		cases = append(cases, either("rdmap", fmt.Sprintf("opcode-%x", uint8(op)), "P06 P07", rdmapChecks,
			fmt.Sprintf("A message with %s, 0x%X, is refused: Terminate 0x0206.", why, uint8(op)), func(d *dialogue) {
				h := rdmap.OpSend.Header(d.terms().Version)
				if info, known := op.Info(); known {
					h.QN = info.QN
				}
				h.RsvdULP, h.Last, h.MSN = rdmap.Control(h.Version, op), true, d.operating().NextMSN(h.QN)
				d.sendSegment(fmt.Sprintf("message with opcode 0x%X", uint8(op)), h, make([]byte, 4))
				d.refuses("The RDMA OpCode MUST be valid", codes...)
			})...)
	}
	for _, c := range []struct {
		name, text string
		model      rdmap.Opcode // whose header is sent
		op         rdmap.Opcode // with this opcode
	}{
		{"send-tagged", "A tagged", rdmap.OpWrite, rdmap.OpSend},
		{"read-tagged", "A tagged", rdmap.OpWrite, rdmap.OpReadRequest},
		{"write-untagged", "An untagged", rdmap.OpSend, rdmap.OpWrite},
		{"response-untagged", "An untagged", rdmap.OpSend, rdmap.OpReadResponse},
	} {
		cases = append(cases, either("rdmap", c.name, "P01 P07", rdmapControlSection,
			fmt.Sprintf("%s segment with the opcode of %s is refused.", c.text, c.op.WithArticle()), func(d *dialogue) {
				h := d.nextHeader(c.model)
				h.RsvdULP = rdmap.Control(h.Version, c.op)
				var payload []byte
				if h.Tagged {
					h.STag = script.RTRSTag
				} else {
					payload = make([]byte, 4)
				}
				d.sendSegment("segment of the other model with the opcode of "+c.op.WithArticle(), h, payload)
				d.refuses("the opcode is of the other model", badOpcode...)
			})...)
	}
	return unsafely(oldHeaders, cases)
}
