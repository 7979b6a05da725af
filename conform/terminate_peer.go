package conform

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/rdmap"
)

// faulty is a segment that must be refused, and what the Terminate must say about it.
type faulty struct {
	header    ddp.Header
	payload   []byte
	codes     []rdmap.Code
	withRead  bool // the Terminate has the Read Request, too
	withoutIt bool // the Terminate does not have the segment
}

// faults are errors of every kind.
var faults = [...]struct {
	name, text string
	make       func(d *dialogue) faulty
}{
	{"tagged", "a tagged segment", func(d *dialogue) faulty {
		h := d.nextHeader(rdmap.OpWrite)
		h.STag, h.TO = d.strangeSTag(), 0x0102030405060708
		return faulty{header: h, payload: []byte("iwarp"), codes: badSTag}
	}},
	{"untagged", "an untagged segment", func(d *dialogue) faulty {
		h := d.nextHeader(rdmap.OpSend)
		h.QN, h.MSN = 7, 5
		return faulty{header: h, payload: []byte("iwarp"), codes: []rdmap.Code{rdmap.CodeDDPInvalidQN}}
	}},
	{"read", "a Read Request", func(d *dialogue) faulty {
		r := rdmap.ReadRequest{SinkSTag: probeSTag, SinkTO: 0x0102, Size: 4, SrcSTag: d.strangeSTag(), SrcTO: 0x0304}
		return faulty{header: d.nextHeader(rdmap.OpReadRequest), payload: r.Append(nil),
			codes: badSource, withRead: true}
	}},
	{"opcode", "a message with an opcode that does not exist", func(d *dialogue) faulty {
		h := d.nextHeader(rdmap.OpSend)
		h.RsvdULP = rdmap.Control(h.Version, 0x0d)
		return faulty{header: h, payload: []byte("iwarp"), codes: []rdmap.Code{rdmap.CodeUnexpectedOpcode}}
	}},
}

// terminatePeer has the peer send Terminates, and looks at them.
func terminatePeer() []Case {
	var cases []Case
	for _, f := range faults {
		cases = append(cases, either("terminate", "for-"+f.name, "P13 P15 P16 P53 P54 P36", "RFC 5040 4.8, 7.1",
			"The Terminate for "+f.text+" is well-formed, and returns its DDP header and length.", func(d *dialogue) {
				bad := f.make(d)
				d.sendSegment("faulty segment", bad.header, bad.payload)
				d.tellsOf(d.refuses("the segment is faulty", bad.codes...), &bad)
			})...)
	}
	return append(cases, slices.Concat(
		either("terminate", "for-crc", "P13 P15 P16 P50", "RFC 5040 4.8, 7.1",
			"The Terminate for a wrong CRC has no DDP header.", func(d *dialogue) {
				d.needsCRC()
				d.send("FPDU with a wrong CRC", script.SpoilCRC(d.framed(d.emptyRead())))
				if r := d.refused(orDrops, "the CRC is wrong", rdmap.CodeMPACRC); r != nil {
					d.tellsOf(r, &faulty{withoutIt: true})
				}
			}),
		either("terminate", "first-error", "P55 P39 D42", "RFC 5040 7.1; RFC 5041 7.1",
			"The Terminate is about the first of two errors, and there is no other Terminate.", func(d *dialogue) {
				bad := faults[0].make(d)
				second := faults[1].make(d)
				d.send("two faulty segments", d.framed(append(bad.header.Append(nil), bad.payload...)),
					d.framed(append(second.header.Append(nil), second.payload...)))
				d.isAbout(d.refuses("the Terminate is about the first error", bad.codes...), &bad)
			}),
		either("terminate", "then-silence", "P39 D42 D07", "RFC 5040 5.4; RFC 5041 7.1",
			"What follows an error is dropped: a Read Request is not answered.", func(d *dialogue) {
				bad := faults[0].make(d)
				d.send("faulty segment and zero-length Read Requests",
					d.framed(append(bad.header.Append(nil), bad.payload...)),
					d.framed(d.emptyRead()), d.framed(d.emptyRead()))
				d.refuses("DDP MUST silently drop any subsequent incoming DDP Segments", bad.codes...)
			}),
		either("terminate", "answers-first", "P23 P39 P55", "RFC 5040 5.4, 7.1",
			"A Read before an error is answered or not, but not after the Terminate.", func(d *dialogue) {
				bad := faults[0].make(d)
				d.send("zero-length Read Request and faulty segment", d.framed(d.emptyRead()),
					d.framed(append(bad.header.Append(nil), bad.payload...)))
				if !d.terminates() {
					d.answersRead()
				}
				d.isAbout(d.refuses("the second segment is faulty", bad.codes...), &bad)
			}),
		either("terminate", "answered", "P39 P48 P36", "RFC 5040 5.4",
			"A Terminate of ours that crosses the peer's changes nothing.", func(d *dialogue) {
				bad := faults[0].make(d)
				d.sendSegment("faulty segment", bad.header, bad.payload)
				d.sendTerminate(rdmap.Terminate{Code: rdmap.CodeCatastrophicStream})
				d.refuses("the segment is faulty", bad.codes...)
			}),
		either("terminate", "others-live", "Z08 P48", "RFC 5042 6.1.1",
			"An error ends its own connection, and others work.", func(d *dialogue) {
				bad := faults[0].make(d)
				d.sendSegment("faulty segment", bad.header, bad.payload)
				d.refuses("the segment is faulty", bad.codes...)
				d.afresh()
			}),
	)...)
}

// isAbout looks at the DDP header that a Terminate returns, if it has one.
func (d *dialogue) isAbout(r *refusal, bad *faulty) {
	h := bad.header.Append(nil)
	d.want(r.DDPHeader == nil || bytes.Equal(r.DDPHeader, h),
		fmt.Sprintf("the DDP header of the faulty segment: % x", h), fmt.Sprintf("% x", r.DDPHeader))
}

// tellsOf looks at a Terminate of the peer's: its own header, and what it returns.
func (d *dialogue) tellsOf(r *refusal, bad *faulty) {
	want := rdmap.OpTerminate.Header(d.terms().Version)
	want.MSN, want.Last = 1, true
	d.want(r.seg.Header == want, "the Terminate's DDP header: "+want.String(), r.seg.Header)
	d.want(r.Layout == rdmap.LayoutRFC, "the layout of RFC 5040: Layer, EType, Error Code, M, D, R",
		fmt.Sprintf("that of Linux's siw: % x", r.seg.Payload[:4]))
	d.want(r.seg.Payload[2]&0x1f == 0 && r.seg.Payload[3] == 0, "reserved bits of zero",
		fmt.Sprintf("% x", r.seg.Payload[:4]))
	d.want(r.seg.Payload[2] == hdrCt(&r.Terminate),
		fmt.Sprintf("HdrCt 0x%02x, by the parts that there are", hdrCt(&r.Terminate)),
		fmt.Sprintf("0x%02x", r.seg.Payload[2]))
	if bad.withoutIt {
		d.want(r.DDPHeader == nil && r.RDMAPHeader == nil, "neither DDP header nor Read Request", r.Terminate)
		return
	}
	h := bad.header.Append(nil)
	d.want(bytes.Equal(r.DDPHeader, h), fmt.Sprintf("the DDP header of the faulty segment: % x", h),
		fmt.Sprintf("% x", r.DDPHeader))
	d.want(r.HasLength && int(r.SegmentLength) == len(h)+len(bad.payload),
		fmt.Sprintf("DDP Segment Length %d", len(h)+len(bad.payload)), r.SegmentLength)
	if bad.withRead {
		d.want(bytes.Equal(r.RDMAPHeader, bad.payload), fmt.Sprintf("the Read Request: % x", bad.payload),
			fmt.Sprintf("% x", r.RDMAPHeader))
	} else {
		d.want(r.RDMAPHeader == nil, "no Read Request", r.RDMAPHeader)
	}
}

// hdrCt returns M, D and R of a Terminate by the parts that it has.
func hdrCt(t *rdmap.Terminate) byte {
	bare := rdmap.Terminate{Code: t.Code, HasLength: t.HasLength, DDPHeader: t.DDPHeader, RDMAPHeader: t.RDMAPHeader}
	return bare.Append(nil)[2]
}
