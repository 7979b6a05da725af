package conform

import (
	"fmt"
	"math"
	"slices"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/rping/message"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/rdmap"
)

// badInvalidate are the codes for an STag that cannot be invalidated.
var badInvalidate = slices.Concat(badSource, []rdmap.Code{
	rdmap.CodeAccessRights, rdmap.CodeProtectionCannotInvalidate, rdmap.CodeRemoteProtectionUnspecified,
	rdmap.CodeOperationCannotInvalidate, rdmap.CodeRemoteOperationUnspecified,
})

// rdmapSends sends the other kinds of Sends.
func rdmapSends() []Case {
	cases := eitherRping("rdmap", "send-se", "P06 P33", "RFC 5040 5.3",
		"A Send with Solicited Event is delivered as a Send is.", func(d *dialogue) {
			a := d.firstAdvert()
			d.sendMessage("advert, with Solicited Event", rdmap.OpSendSE, a.Append(nil))
			d.restOfPing()
		})
	for _, c := range []struct {
		name string
		op   rdmap.Opcode
		stag uint32
	}{
		{"invalidate-unknown", rdmap.OpSendInvalidate, 0x5bad5bad}, {"invalidate-0", rdmap.OpSendInvalidate, 0},
		{"invalidate-all-ones", rdmap.OpSendInvalidate, math.MaxUint32},
		{"invalidate-se-unknown", rdmap.OpSendSEInvalidate, 0x5bad5bad},
	} {
		cases = append(cases, eitherRping("rdmap", c.name, "P35 P56", rdmapChecks,
			fmt.Sprintf("A %v of STag 0x%x, which the peer has not advertised, is refused.",
				c.op, c.stag), func(d *dialogue) {
				h := d.nextHeader(c.op)
				h.ULP = c.stag
				d.sendSegment("advert that invalidates", h, d.firstAdvert().Append(nil))
				d.refusesInvalidate()
			})...)
	}
	return append(cases, toClient("rdmap/initiator-invalidate", "P34 P35 P24", "RFC 5040 5.3",
		"A Send with Invalidate of the client's source ends its use for Reads, or is refused.", func(d *dialogue) {
			d.readSourceAll()
			h := d.nextHeader(rdmap.OpSendInvalidate)
			h.ULP = d.source.STag
			d.sendSegment("go ahead that invalidates", h, message.Advert{}.Append(nil))
			d.mayRefuse("the STag may be one that cannot be invalidated", badInvalidate, func() {
				d.peerAdvert("the client's sink advert")
				d.sendFPDU("Read Request of the source",
					d.readULPDU(rdmap.ReadRequest{SinkSTag: probeSTag, Size: 1,
						SrcSTag: d.source.STag, SrcTO: d.source.TO}))
				d.refuses("the STag is invalidated", append([]rdmap.Code{rdmap.CodeAccessRights}, badSource...)...)
			})
		}))
}

// refusesInvalidate waits for the refusal of a Send with Invalidate. The message may
// have been handed up before the STag was looked at.
func (d *dialogue) refusesInvalidate() {
	d.undelivered()
	d.refuses("The Invalidate STag MUST be valid", badInvalidate...)
}

// rdmapPeer looks at what the peer's messages are made of.
func rdmapPeer() []Case {
	return []Case{
		toResponder("rdmap/responder-sends", "P02 P04 P08 D11 D12 D13 D14 D17 D18", rdmapControlSection,
			"A server's Sends have reserved bits and Invalidate STag of zero, and MSN, MO, QN and L as they must be.",
			func(s *session) {
				d := s.untouched()
				for range 2 {
					d.advertise()
					d.sendResponse(d.peerReads(), pingText())
					d.expectHeader(rdmap.OpSend)
					d.sendAdvert("sink advert", sinkAdvert())
					d.peerWrites()
					d.expectHeader(rdmap.OpSend)
				}
			}).withRping(),
		toResponder("rdmap/responder-reads", "P01 P04 P08 P09 P10 P18 P21 D17", "RFC 5040 4.1, 4.4",
			"A server's Read Requests have 28 bytes, reserved bits of zero, and MSN, MO, QN and L as they must be.",
			func(s *session) {
				d := s.untouched()
				for range 2 {
					d.advertise()
					seg := d.expectHeader(rdmap.OpReadRequest)
					r, err := rdmap.ParseReadRequest(seg.Payload)
					d.want(err == nil && len(seg.Payload) == rdmap.ReadRequestLen, "28 bytes of Read Request",
						wording.Bytes(len(seg.Payload)))
					d.want(r.SrcSTag == sourceSTag &&
						r.SrcTO == sourceTO, fmt.Sprintf("source STag 0x%x and TO 0x%x", sourceSTag, sourceTO), r)
					d.sendResponse(r, pingText())
					d.restAfterRead()
				}
			}).withRping(),
		toResponder("rdmap/responder-writes", "P18 P20 D12 D15 D19 P04", "RFC 5041 4.2, 5.2; RFC 5040 5.5",
			"A server's Write has reserved bits of zero, the advertised STag and TO, and comes before the Send after it.", func(s *session) {
				d := s.untouched()
				d.advertise()
				d.sendResponse(d.peerReads(), pingText())
				d.peerAdvert("the server's first go ahead")
				sink := sinkAdvert()
				sink.TO = math.MaxUint64 - uint64(sink.Length) // as far up as it goes
				d.sendAdvert("sink advert", sink)
				seg := d.segment("a Write into the sink")
				want := rdmap.OpWrite.Header(d.terms().Version)
				want.STag, want.TO, want.Last = sink.STag, sink.TO, seg.Last
				d.want(seg.Header == want, want.String(), seg.Header)
				for !seg.Last {
					seg = d.segment("the rest of the Write")
				}
				d.peerAdvert("the server's second go ahead")
			}).withRping(),
		toResponder("rdmap/responder-ord-0", "P46 E04", "RFC 5040 6.1",
			"A server that was granted no Reads does not read.", noReads).in(enhanced()...).withRping(),
		toInitiator("rdmap/initiator-sends", "P02 P04 P08 D11 D12 D13 D14 D17 D18", rdmapControlSection,
			"A client's Sends have reserved bits and Invalidate STag of zero, and MSN, MO, QN and L as they must be.",
			func(s *session) {
				d := s.untouched()
				seg := d.expectHeader(rdmap.OpSend)
				d.readSource(d.advert(seg.Payload, "an advert"))
				d.sendAdvert("go ahead", message.Advert{})
				d.expectHeader(rdmap.OpSend)
			}).withRping(),
		toClient("rdmap/initiator-responses", "P11 P21 D12 D15 D19 P04", "RFC 5040 4.1, 5.2.1",
			"A client's Read Responses have reserved bits of zero, and the STag and TO of the Request.",
			func(d *dialogue) {
				r := rdmap.ReadRequest{SinkSTag: probeSTag, SinkTO: math.MaxUint64 - 64, Size: min(16, d.source.Length),
					SrcSTag: d.source.STag, SrcTO: d.source.TO}
				d.sendFPDU("Read Request of the source", d.readULPDU(r))
				got := 0
				for last := false; !last; {
					seg := d.segment("a segment of the Read Response")
					want := rdmap.OpReadResponse.Header(d.terms().Version)
					want.STag, want.TO, want.Last = r.SinkSTag, r.SinkTO+uint64(got),
						got+len(seg.Payload) >= int(r.Size)
					d.want(seg.Header == want, want.String(), seg.Header)
					got, last = got+len(seg.Payload), seg.Last
				}
				d.want(got == int(r.Size), wording.Bytes(int(r.Size)), wording.Bytes(got))
				d.works()
			}),
	}
}

// untouched establishes the connection, and leaves the peer's first messages to be
// looked at.
func (s *session) untouched() *dialogue {
	s.establish()
	return &dialogue{session: s}
}

// advertise advertises our source to a server, which must read it if it can: only a startup
// that agrees on Reads tells whether it can.
func (d *dialogue) advertise() {
	d.sendAdvert("source advert", sourceAdvert())
	if d.look(d.opts.Timeout) != sightBytes && !d.agreedReads() {
		d.inconclusive("the server does not read: no depths are agreed on in this dialect")
	}
}

// header waits for an untagged message of one segment, and compares the whole of its
// header.
func (d *dialogue) expectHeader(op rdmap.Opcode) ddp.Segment {
	want := op.Header(d.terms().Version)
	o := d.operating()
	o.received[want.QN]++
	want.MSN, want.Last = o.received[want.QN], true
	seg := d.segment(fmt.Sprintf("a %v", op))
	d.want(seg.Header == want, want.String(), seg.Header)
	return seg
}

// noReads grants the server no Reads, by our IRD.
func noReads(s *session) {
	s.setup(func() {
		q := s.request()
		q.Enhanced.IRD = 0
		s.initiate(q)
	})
	s.sendAdvert("source advert", sourceAdvert())
	for s.look(s.opts.Timeout) == sightBytes {
		seg := s.segment("anything but a Read Request")
		op := rdmap.OpcodeOf(&seg.Header)
		s.want(op != rdmap.OpReadRequest, "no Read Request: our IRD is 0, and it MUST NOT exceed it", op)
		if op == rdmap.OpTerminate {
			return
		}
	}
}
