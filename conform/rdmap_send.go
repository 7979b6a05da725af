package conform

import (
	"fmt"
	"math"
	"slices"

	"github.com/goiwarp/iwarp/ddp"
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
			d.SendMessage("advert, with Solicited Event", rdmap.OpSendSE, a.Octets())
			d.restOfPing()
		})
	for _, c := range []struct {
		name string
		op   rdmap.Opcode
		stag uint32
	}{
		{"invalidate-unknown", rdmap.OpSendInvalidate, 0x5bad5bad}, {"invalidate-0", rdmap.OpSendInvalidate, 0},
		{"invalidate-all-ones", rdmap.OpSendInvalidate, math.MaxUint32}, {"invalidate-se-unknown", rdmap.OpSendSEInvalidate, 0x5bad5bad},
	} {
		cases = append(cases, eitherRping("rdmap", c.name, "P35 P56", rdmapChecks,
			fmt.Sprintf("A %v of STag 0x%x, which the peer has not told of, is refused.", c.op, c.stag), func(d *dialogue) {
				h := d.Header(c.op)
				h.ULP = c.stag
				d.SendSegment("advert that invalidates", h, d.firstAdvert().Octets())
				d.refusesInvalidate()
			})...)
	}
	return append(cases, toClient("rdmap/initiator-invalidate", "P34 P35 P24", "RFC 5040 5.3",
		"A Send with Invalidate of the client's source ends its use for Reads, or is refused.", func(d *dialogue) {
			d.ReadSourceAll()
			h := d.Header(rdmap.OpSendInvalidate)
			h.ULP = d.source.STag
			d.SendSegment("go ahead that invalidates", h, Advert{}.Octets())
			d.takenOr("the STag may be one that cannot be invalidated", badInvalidate, func() {
				d.PeerAdvert("the client's sink advert")
				d.SendFPDU("Read Request of the source", d.readULPDU(rdmap.ReadRequest{SinkSTag: probeSTag, Size: 1, SrcSTag: d.source.STag, SrcTO: d.source.TO}))
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
			"A server's Sends have reserved bits and Invalidate STag of zero, and MSN, MO, QN and L as they must be.", func(s *Session) {
				d := s.untouched()
				for range 2 {
					d.advertise()
					d.SendResponse(d.PeerReads(), PingText())
					d.header(rdmap.OpSend)
					d.SendAdvert("sink advert", SinkAdvert())
					d.PeerWrites()
					d.header(rdmap.OpSend)
				}
			}).withRping(),
		toResponder("rdmap/responder-reads", "P01 P04 P08 P09 P10 P18 P21 D17", "RFC 5040 4.1, 4.4",
			"A server's Read Requests have 28 octets, reserved bits of zero, and MSN, MO, QN and L as they must be.", func(s *Session) {
				d := s.untouched()
				for range 2 {
					d.advertise()
					seg := d.header(rdmap.OpReadRequest)
					r, err := rdmap.ParseReadRequest(seg.Payload)
					d.Want(err == nil && len(seg.Payload) == rdmap.ReadRequestLen, "28 octets of Read Request", count(len(seg.Payload)))
					d.Want(r.SrcSTag == sourceSTag && r.SrcTO == sourceTO, fmt.Sprintf("source STag 0x%x and TO 0x%x", sourceSTag, sourceTO), r)
					d.SendResponse(r, PingText())
					d.restBehindRead()
				}
			}).withRping(),
		toResponder("rdmap/responder-writes", "P18 P20 D12 D15 D19 P04", "RFC 5041 4.2, 5.2; RFC 5040 5.5",
			"A server's Write has reserved bits of zero, the STag and TO that it was told, and comes before the Send behind it.", func(s *Session) {
				d := s.untouched()
				d.advertise()
				d.SendResponse(d.PeerReads(), PingText())
				d.PeerAdvert("the server's first go ahead")
				sink := SinkAdvert()
				sink.TO = math.MaxUint64 - uint64(sink.Length) // as far up as it goes
				d.SendAdvert("sink advert", sink)
				seg := d.Segment("a Write into the sink")
				want := rdmap.OpWrite.Header(d.Terms().Version)
				want.STag, want.TO, want.Last = sink.STag, sink.TO, seg.Last
				d.Want(seg.Header == want, want.String(), seg.Header)
				for !seg.Last {
					seg = d.Segment("the rest of the Write")
				}
				d.PeerAdvert("the server's second go ahead")
			}).withRping(),
		toResponder("rdmap/responder-ord-0", "P46 E04", "RFC 5040 6.1",
			"A server that was granted no Reads does not read.", noReads).in(enhanced()...).withRping(),
		toInitiator("rdmap/initiator-sends", "P02 P04 P08 D11 D12 D13 D14 D17 D18", rdmapControlSection,
			"A client's Sends have reserved bits and Invalidate STag of zero, and MSN, MO, QN and L as they must be.", func(s *Session) {
				d := s.untouched()
				seg := d.header(rdmap.OpSend)
				d.Want(len(seg.Payload) == advertLen, "an advert of 16 octets", count(len(seg.Payload)))
				d.ReadSource(parseAdvert(seg.Payload))
				d.SendAdvert("go ahead", Advert{})
				d.header(rdmap.OpSend)
			}).withRping(),
		toClient("rdmap/initiator-responses", "P11 P21 D12 D15 D19 P04", "RFC 5040 4.1, 5.2.1",
			"A client's Read Responses have reserved bits of zero, and the STag and TO of the Request.", func(d *dialogue) {
				r := rdmap.ReadRequest{SinkSTag: probeSTag, SinkTO: math.MaxUint64 - 64, Size: min(16, d.source.Length), SrcSTag: d.source.STag, SrcTO: d.source.TO}
				d.SendFPDU("Read Request of the source", d.readULPDU(r))
				got := 0
				for last := false; !last; {
					seg := d.Segment("a segment of the Read Response")
					want := rdmap.OpReadResponse.Header(d.Terms().Version)
					want.STag, want.TO, want.Last = r.SinkSTag, r.SinkTO+uint64(got), got+len(seg.Payload) >= int(r.Size)
					d.Want(seg.Header == want, want.String(), seg.Header)
					got, last = got+len(seg.Payload), seg.Last
				}
				d.Want(got == int(r.Size), count(int(r.Size)), count(got))
				d.works()
			}),
	}
}

// untouched establishes the connection, and leaves the peer's first messages to be
// looked at.
func (s *Session) untouched() *dialogue {
	s.Establish()
	return &dialogue{Session: s}
}

// advertise tells a server of our source, which it must read if it can: that it can is
// known only where the startup agrees on Reads.
func (d *dialogue) advertise() {
	d.SendAdvert("source advert", SourceAdvert())
	if d.look(d.opts.Timeout) != sightOctets && !d.agreedReads() {
		d.Inconclusive("the server does not read: no depths are agreed on in this dialect")
	}
}

// header waits for an untagged message of one segment, and compares the whole of its
// header.
func (d *dialogue) header(op rdmap.Opcode) ddp.Segment {
	want := op.Header(d.Terms().Version)
	o := d.operating()
	o.received[want.QN]++
	want.MSN, want.Last = o.received[want.QN], true
	seg := d.Segment(fmt.Sprintf("a %v", op))
	d.Want(seg.Header == want, want.String(), seg.Header)
	return seg
}

// noReads grants the server no Reads, by our IRD.
func noReads(s *Session) {
	s.Setup(func() {
		q := s.Request()
		q.Enhanced.IRD = 0
		s.Initiate(q)
	})
	s.SendAdvert("source advert", SourceAdvert())
	for s.look(s.opts.Timeout) == sightOctets {
		seg := s.Segment("anything but a Read Request")
		op := rdmap.OpcodeOf(&seg.Header)
		s.Want(op != rdmap.OpReadRequest, "no Read Request: our IRD is 0, and it MUST NOT exceed it", op)
		if op == rdmap.OpTerminate {
			return
		}
	}
}
