package conform

import (
	"slices"

	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/rdmap"
)

const (
	terminateSection = "RFC 5040 4.8, 5.4"
	// noAnswer is why a Terminate is not answered by another. RFC 5040 does not
	// say so, but there would be no end to it; the RDMA Consortium's verbs do.
	noAnswer = "a Terminate ceases all further communications, and is not answered by another"
)

// terminateGroups are all the codes, by layer and type.
var terminateGroups = [...]struct {
	name, text string
	codes      []rdmap.Code
}{
	{"rdmap-catastrophic", "RDMAP's local catastrophic error", []rdmap.Code{0x0000}},
	{"rdmap-protection", "RDMAP's remote protection errors",
		[]rdmap.Code{0x0100, 0x0101, 0x0102, 0x0103, 0x0104, 0x0109, 0x01ff}},
	{"rdmap-operation", "RDMAP's remote operation errors",
		[]rdmap.Code{0x0205, 0x0206, 0x0207, 0x0208, 0x0209, 0x02ff}},
	{"ddp-catastrophic", "DDP's local catastrophic error", []rdmap.Code{0x1000}},
	{"ddp-tagged", "DDP's tagged buffer errors", []rdmap.Code{0x1100, 0x1101, 0x1102, 0x1103, 0x1104}},
	{"ddp-untagged", "DDP's untagged buffer errors", []rdmap.Code{0x1201, 0x1202, 0x1203, 0x1204, 0x1205, 0x1206}},
	{"llp", "MPA's errors", []rdmap.Code{0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007}},
	{"unknown", "codes that do not exist", []rdmap.Code{0x0108, 0x0300, 0x1301, 0x2042, 0x3000, 0xffff}},
}

// terminateSent sends Terminates with every code.
func terminateSent() []Case {
	var cases []Case
	for _, g := range terminateGroups {
		cases = append(cases, either("terminate", g.name, "P14 P36 P39 D07", terminateSection,
			"A Terminate with "+g.text+" ends the connection, and is not answered by another.", func(d *dialogue) {
				for i, code := range g.codes {
					d = d.forNth(i)
					d.sendTerminate(rdmap.Terminate{Code: code})
					d.takesTerminate()
				}
			})...)
	}
	return cases
}

// forNth returns the dialogue for the first of some Terminates, and one on a connection of
// its own for each other.
func (d *dialogue) forNth(i int) *dialogue {
	if i == 0 {
		return d
	}
	d.reconnect()
	return d.startDialogue()
}

// sendTerminate sends a Terminate in the RFC's layout.
func (d *dialogue) sendTerminate(t rdmap.Terminate) {
	d.sendMessage("Terminate, "+t.Code.String(), rdmap.OpTerminate, t.Append(nil))
}

// takesTerminate sees that the connection ends, with whatever was under way before,
// but without a Terminate.
func (d *dialogue) takesTerminate() {
	expected := "the connection closed: " + noAnswer
	for range 2 {
		for d.look(d.quietTime()) == sightBytes {
			seg := d.segment(expected)
			if op := rdmap.OpcodeOf(&seg.Header); op == rdmap.OpTerminate || op == rdmap.OpReadResponse {
				d.failf(expected, "%s", script.DescribeSegment(&seg))
			}
		}
		if d.link.End() != script.Open {
			d.note(Checked, expected, nil)
			return
		}
		d.closeWrite() // it may wait for it
	}
	d.closes()
}

// closes waits for the end of the connection for longer than takesTerminate does.
func (d *dialogue) closes() {
	if d.look(d.opts.Timeout) != sightEnd {
		d.failf("the connection closed: "+noAnswer, "still open, or bytes, after %v", d.opts.Timeout)
	}
	d.note(Checked, "the connection is closed", nil)
}

// terminateForms sends Terminates of every form.
func terminateForms() []Case {
	tagged := rdmap.OpWrite.Header(1)
	untagged := rdmap.OpReadRequest.Header(1)
	untagged.MSN, untagged.Last = 1, true
	read := rdmap.ReadRequest{SinkSTag: sinkSTag, SinkTO: sinkTO, Size: 32, SrcSTag: sourceSTag, SrcTO: sourceTO}
	forms := []struct {
		name, requirements, text string
		invalid                  bool
		payloads                 [][]byte
	}{
		{"parts", "P13 P15", "with a DDP header, tagged or untagged, with and without a length, and with a Read Request,", false, [][]byte{
			(&rdmap.Terminate{Code: 0x1100, DDPHeader: tagged.Append(nil), SegmentLength: 18,
				HasLength: true}).Append(nil),
			(&rdmap.Terminate{Code: 0x1100, DDPHeader: tagged.Append(nil)}).Append(nil),
			(&rdmap.Terminate{Code: 0x1202, SegmentLength: 46, HasLength: true}).Append(nil),
			(&rdmap.Terminate{Code: 0x1202, DDPHeader: untagged.Append(nil), SegmentLength: 46,
				HasLength: true}).Append(nil),
			(&rdmap.Terminate{Code: 0x0100, DDPHeader: untagged.Append(nil), SegmentLength: 46, HasLength: true,
				RDMAPHeader: read.Append(nil)}).Append(nil),
		}},
		{"reserved", "P13", "whose reserved bits are set", false, [][]byte{{0x00, 0x00, 0x1f, 0xff}}},
		{"zeros", "P15", "whose absent parts are sent as zeros", false, [][]byte{make([]byte, 4+2+18+28)}},
		{"hdrct", "P13 P15 P36", "with M, D and R in any combination, and nothing after them,", true, headerControls()},
		{"truncated", "P36 P15", "that is cut short", true, [][]byte{
			{}, {0x10}, {0x11, 0x00, 0xc0}, {0x11, 0x00, 0xc0, 0x00, 0x00},
			append([]byte{0x11, 0x00, 0xc0, 0x00, 0x00, 18}, tagged.Append(nil)[:13]...),
			append([]byte{0x12, 0x02, 0xc0, 0x00, 0x00, 46}, untagged.Append(nil)[:17]...),
			append(append([]byte{0x01, 0x00, 0xe0, 0x00, 0x00, 46}, untagged.Append(nil)...), read.Append(nil)[:27]...),
		}},
		{"siw", "P13 P36", "in the layout of Linux's siw", false, [][]byte{
			{0x02, 0x02, 0x00, 0x00}, append([]byte{0x11, 0x00, 0x03, 0x00, 0x00, 4}, tagged.Append(nil)...),
		}},
		{"long", "P36 P09", "that is longer than any", true, [][]byte{make([]byte, 64), make([]byte, 512)}},
	}
	// RFC 5040, section 5.4: of "an invalid Terminate Message [...] an error is
	// surfaced", and no document says that it is not answered.
	ending := map[bool]string{false: " ends the connection, and is not answered by another.",
		true: " ends the connection."}
	var cases []Case
	for _, f := range forms {
		cases = append(cases, either("terminate", f.name, f.requirements, terminateSection,
			"A Terminate "+f.text+ending[f.invalid], func(d *dialogue) {
				for i, p := range f.payloads {
					d = d.forNth(i)
					d.sendMessage("Terminate "+f.text, rdmap.OpTerminate, p)
					if !f.invalid {
						d.takesTerminate()
						continue
					}
					d.closeWrite()
					d.refused(orCloses, "a Terminate, however faulty, is the last that there is")
				}
			})...)
	}
	return append(cases, terminateHeaders()...)
}

// headerControls returns Terminates with every value of HdrCt, and nothing else.
func headerControls() (payloads [][]byte) {
	for ct := range 8 {
		payloads = append(payloads, []byte{0x02, 0x07, byte(ct << 5), 0x00})
	}
	return payloads
}

// terminateHeaders sends Terminates whose DDP header is not as it must be. That they
// are not answered by Terminates for that is not what any document says: they may be.
func terminateHeaders() []Case {
	var cases []Case
	for _, c := range []struct {
		name, text string
		msn, mo    uint32
	}{
		{"msn-2", "with MSN 2 in place of 1", 2, 0}, {"msn-0", "with MSN 0 in place of 1", 0, 0},
		{"mo-4", "with MO 4 in place of 0", 1, 4},
	} {
		cases = append(cases, either("terminate", c.name, "P36 P56 D37 D38", rdmapChecks,
			"A Terminate "+c.text+" ends the connection.", func(d *dialogue) {
				h := d.nextHeader(rdmap.OpTerminate)
				h.MSN, h.MO = c.msn, c.mo
				d.sendSegment("Terminate "+c.text, h, []byte{0x02, 0x07, 0, 0})
				d.closeWrite()
				d.refused(orCloses, "a Terminate, however faulty, is the last that there is",
					slices.Concat(badMSN, badMO)...)
			})...)
	}
	return cases
}

// terminateTimes sends Terminates at other times than between messages.
func terminateTimes() []Case {
	last := rdmap.Terminate{Code: rdmap.CodeCatastrophicStream}
	cases := slices.Concat(
		either("terminate", "then-read", "P39 D07", terminateSection,
			"What follows a Terminate has no effect: a Read Request is not answered.", func(d *dialogue) {
				h := d.nextHeader(rdmap.OpTerminate)
				d.send("Terminate and zero-length Read Request",
					d.framed(append(h.Append(nil), last.Append(nil)...)), d.framed(d.emptyRead()))
				d.takesTerminate()
			}),
		either("terminate", "twice", "P36 P37", terminateSection,
			"Two Terminates end the connection as one does.", func(d *dialogue) {
				d.sendTerminate(last)
				d.sendTerminate(last)
				d.takesTerminate()
			}),
		eitherRping("terminate", "within-send", "P36 P37 D27", terminateSection,
			"A Terminate between the segments of a Send ends the connection, and the Send is not delivered.",
			func(d *dialogue) {
				h := d.nextHeader(rdmap.OpSend)
				h.Last = false
				d.sendSegment("first half of the advert", h, d.firstAdvert().Append(nil)[:8])
				d.sendTerminate(last)
				d.takesTerminate()
			}),
		either("terminate", "alone", "P36 P48 D07", terminateSection,
			"A connection whose peer has sent a Terminate is closed, and others work.", func(d *dialogue) {
				d.sendTerminate(last)
				d.takesTerminate()
				d.afresh()
			}),
	)
	return append(cases,
		toServer("terminate/responder-within-response", "P36 P38 D27", terminateSection,
			"A Terminate between the segments of a Read Response ends the connection, and the server does not go on.",
			func(d *dialogue) {
				d.sendPart(d.readOfServer(), 0, 16, false)
				d.sendTerminate(last)
				d.takesTerminate()
			}),
		toServer("terminate/responder-for-response", "P36 P38 P28", terminateSection,
			"A Terminate in place of a Read Response ends the connection, and the server does not go on.",
			func(d *dialogue) {
				b := d.serverBuffer()
				h := rdmap.OpReadRequest.Header(d.terms().Version)
				h.Last, h.MSN = true, d.operating().received[rdmap.QNRead]
				r := rdmap.ReadRequest{SinkSTag: b.STag, SinkTO: b.TO, Size: b.Length,
					SrcSTag: sourceSTag, SrcTO: sourceTO}
				d.sendTerminate(rdmap.Terminate{Code: rdmap.CodeInvalidSTag, DDPHeader: h.Append(nil),
					SegmentLength: 46, HasLength: true, RDMAPHeader: r.Append(nil)})
				d.takesTerminate()
			}),
		toResponder("terminate/responder-first", "P36 E09", terminateSection,
			"A Terminate as first FPDU, in place of an RTR indication, ends the connection.", func(s *session) {
				s.setup(func() { s.accepted(s.request()) })
				d := &dialogue{session: s}
				s.pause(settling)
				d.sendTerminate(rdmap.Terminate{Code: rdmap.CodeMPANoMatchingRTR})
				d.takesTerminate()
			}).in(enhanced()...).unsafe("kernels may want an RTR indication before anything else"),
	)
}
