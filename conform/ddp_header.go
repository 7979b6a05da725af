package conform

import (
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/rdmap"
)

const (
	ddpFormat = "RFC 5041 4.1"
	ddpChecks = "RFC 5041 7.1"
	ddpCodes  = "RFC 5041 7.2"
)

// oldHeaders is why headers that no peer sends are unsafe.
const oldHeaders = "Linux's siw crashed on some headers that no peer sends before 2026"

// ddpHeader sends versions and reserved bits.
func ddpHeader() []Case {
	var cases []Case
	for _, off := range []uint8{1, 2, 3} {
		name := fmt.Sprintf("version-plus-%d", off)
		text := fmt.Sprintf("segment with the stream's DDP version plus %d, in two bits, is refused", off)
		another := func(h *ddp.Header) { h.Version = (h.Version + off) & 3 }
		cases = append(cases, slices.Concat(
			either("ddp", name+"-tagged", "D13 D23", ddpCodes,
				"A tagged "+text+": Terminate 0x1104.", func(d *dialogue) {
					d.sendEmpty(rdmap.OpWrite, "of another DDP version", another)
					d.refuses("the DDP version is another", rdmap.CodeDDPTaggedInvalidVersion)
				}),
			either("ddp", name+"-untagged", "D13", ddpCodes,
				"An untagged "+text+": Terminate 0x1206.", func(d *dialogue) {
					d.sendEmpty(rdmap.OpReadRequest, "of another DDP version", another)
					d.refuses("the DDP version is another", rdmap.CodeDDPUntaggedInvalidVersion)
				}),
		)...)
	}
	var bits []func(*ddp.Header)
	for bit := range 4 {
		bits = append(bits, func(h *ddp.Header) { h.Rsvd = 1 << bit })
	}
	return append(unsafely(oldHeaders, cases), slices.Concat(
		either("ddp", "rsvd-tagged", "D12", ddpFormat,
			"The reserved bits of a tagged segment's control field are not checked.", func(d *dialogue) {
				d.takesEach(rdmap.OpWrite, "with a reserved bit", bits...)
			}),
		either("ddp", "rsvd-untagged", "D12", ddpFormat,
			"The reserved bits of an untagged segment's control field are not checked.", func(d *dialogue) {
				d.takesEach(rdmap.OpReadRequest, "with a reserved bit", bits...)
			}),
	)...)
}

// sendEmpty sends an empty Write or a zero-length Read Request with a changed DDP header,
// which text describes.
func (d *dialogue) sendEmpty(op rdmap.Opcode, text string, change func(*ddp.Header)) {
	h := d.nextHeader(op)
	change(&h)
	if op == rdmap.OpReadRequest {
		d.sendRead("zero-length Read Request "+text, h)
		return
	}
	h.STag = script.RTRSTag
	d.sendSegment("empty Write "+text, h, nil)
}

// takesEach sends one for each change, and sees that the peer takes all.
func (d *dialogue) takesEach(op rdmap.Opcode, text string, changes ...func(*ddp.Header)) {
	for _, change := range changes {
		d.sendEmpty(op, text, change)
		if op == rdmap.OpReadRequest {
			d.answersRead()
		}
	}
	d.works()
}

// sendRead sends a zero-length Read Request with any DDP header.
func (d *dialogue) sendRead(text string, h ddp.Header) {
	r := rdmap.ReadRequest{SinkSTag: probeSTag, SrcSTag: script.RTRSTag}
	d.sendSegment(text, h, r.Append(nil))
}

// ddpQueues sends to queues that do not exist, and to wrong ones.
func ddpQueues() []Case {
	var cases []Case
	for _, qn := range []uint32{3, 4, 0x00010000, 0xffffffff} {
		codes := []rdmap.Code{rdmap.CodeDDPInvalidQN}
		if qn == rdmap.QNAtomic { // RFC 7306 has such a queue, not for Sends
			codes = slices.Concat(codes, badMSN, badOpcode)
		}
		cases = append(cases, either("ddp", fmt.Sprintf("qn-%x", qn), "D36 P01", ddpChecks,
			fmt.Sprintf("A Send to queue 0x%x is refused: Terminate 0x1201.", qn), func(d *dialogue) {
				h := d.nextHeader(rdmap.OpSend)
				h.QN = qn
				d.sendSegment("Send to another queue", h, sourceAdvert().Append(nil))
				d.refuses("there is no such queue, or not for Sends", codes...)
			})...)
	}
	for _, c := range []struct {
		name string
		op   rdmap.Opcode
		qn   uint32
	}{
		{"send-to-1", rdmap.OpSend, rdmap.QNRead}, {"send-to-2", rdmap.OpSend, rdmap.QNTerminate},
		{"read-to-0", rdmap.OpReadRequest, rdmap.QNSend}, {"read-to-2", rdmap.OpReadRequest, rdmap.QNTerminate},
	} {
		cases = append(cases, either("ddp", c.name, "P01 P07", "RFC 5040 3.1, 4.1",
			fmt.Sprintf("Queue %d refuses %s.", c.qn, c.op.WithArticle()), func(d *dialogue) {
				h := d.nextHeader(c.op)
				h.QN, h.MSN = c.qn, d.operating().NextMSN(c.qn)
				if c.op == rdmap.OpReadRequest {
					d.sendRead("zero-length Read Request to another queue", h)
				} else {
					d.sendSegment("Send to another queue", h, sourceAdvert().Append(nil))
				}
				// A Read Request is longer than the receives of some.
				d.refuses("the queue is not for that message",
					slices.Concat(badOpcode, badMSN,
						[]rdmap.Code{rdmap.CodeDDPInvalidQN, rdmap.CodeDDPMessageTooLong})...)
			})...)
	}
	return unsafely(oldHeaders, cases)
}

// ddpMSN sends MSNs out of turn.
func ddpMSN() []Case {
	var cases []Case
	for _, c := range []struct {
		name, text string
		requires   string
		off        uint32
		lenience   lenience
	}{
		{"repeated", "A Read Request with the MSN of one before it is refused: Terminate 0x1202 or 0x1203.",
			"D26 D37", 0xffffffff, orCloses},
		{"skipped", "A Read Request that leaves out an MSN is not served.", "D17 D27 D37", 1, orDrops},
		{"far", "A Read Request with an MSN far ahead is not served.", "D37", 0x10000, orDrops},
		{"half", "A Read Request with an MSN ahead by half of their range is not served.", "D37", 0x80000000, orDrops},
	} {
		cases = append(cases, either("ddp", "msn-"+c.name, c.requires, ddpChecks, c.text, func(d *dialogue) {
			d.sendFPDU("zero-length Read Request", d.emptyRead())
			d.answersRead()
			h := d.nextHeader(rdmap.OpReadRequest)
			h.MSN += c.off
			d.sendRead("zero-length Read Request out of turn", h)
			d.refused(c.lenience, "the MSN is not in the range of the queue's buffers", badMSN...)
		})...)
	}
	for _, c := range []struct {
		name, text string
		msn        func(next uint32) uint32
	}{
		{"send-0", "A Send with MSN 0 in place of the next is not delivered.", func(uint32) uint32 { return 0 }},
		{"send-repeated", "A Send with the MSN before the next is not delivered.",
			func(next uint32) uint32 { return next - 1 }},
		{"send-far", "A Send with an MSN far ahead is not delivered.",
			func(next uint32) uint32 { return next + 0x10000 }},
	} {
		cases = append(cases, eitherRping("ddp", "msn-"+c.name, "D17 D37", ddpChecks, c.text, func(d *dialogue) {
			h := d.nextHeader(rdmap.OpSend)
			h.MSN = c.msn(h.MSN)
			d.sendSegment("advert out of turn", h, sourceAdvert().Append(nil))
			d.undelivered()
			d.refused(orDrops, "the MSN is not in the range of the queue's buffers", badMSN...)
		})...)
	}
	return append(cases, slices.Concat(
		either("ddp", "msn-read-0", "D17 D37", ddpChecks,
			"A Read Request with MSN 0 is not served: the first MSN is 1.", func(d *dialogue) {
				h := rdmap.OpReadRequest.Header(d.terms().Version)
				h.Last = true
				d.sendRead("zero-length Read Request with MSN 0", h)
				d.refused(orDrops, "The initial value for MSN MUST be one", badMSN...)
			}),
		either("ddp", "msn-by-queue", "D17", "RFC 5041 4.3",
			"Each queue counts its MSN by itself.", func(d *dialogue) {
				for range 3 {
					d.sendFPDU("zero-length Read Request", d.emptyRead())
					d.answersRead()
				}
				d.works()
			}),
	)...)
}

// undelivered looks whether a Send has been delivered: rping -c then advertises its
// sink, which refused does not notice.
func (d *dialogue) undelivered() {
	if d.look(d.opts.Timeout) != sightBytes || d.terminates() {
		return
	}
	seg := d.segment("no message: the advert must not be delivered")
	d.failf("no message: the advert must not be delivered", "%s", script.DescribeSegment(&seg))
}
