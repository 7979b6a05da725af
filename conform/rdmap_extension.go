package conform

import (
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/rdmap"
)

const (
	atomicSection    = "RFC 7306 5.2, 8.2"
	immediateSection = "RFC 7306 6.3"
)

// rdmapExtensions sends messages of RFC 7306 that must be refused. A peer that does not know
// them has another reason to refuse them than one that does, and RFC 7306, section 1.1, the
// code for it: "A Remote Operation Error or Unexpected OpCode error will be reported". What
// such a peer must not do is to take them, or to say nothing. That it answers those that are
// right is no demand: nobody has to know them.
func rdmapExtensions() []Case {
	return unsafely(oldHeaders, slices.Concat(atomicTargets(), atomicForms(), immediateForms()))
}

// unknownExtension are the codes of a peer that does not know a message of RFC 7306.
var unknownExtension = []rdmap.Code{rdmap.CodeUnexpectedOpcode, rdmap.CodeRemoteOperationUnspecified}

// sendAtomic sends an Atomic Request with the next MSN of queue 1.
func (d *dialogue) sendAtomic(text string, r rdmap.AtomicRequest) {
	d.sendMessage(text, rdmap.OpAtomicRequest, r.Append(nil))
}

// refusesAtomic is refuses for an Atomic Request.
//
// RFC 7306, section 8.1: "the Error Type, Error Code, and Terminated DDP Header fields are
// included in the Terminate Message, but the Terminated RDMA Header field is set to zero."
func (d *dialogue) refusesAtomic(because string, codes ...rdmap.Code) {
	r := d.refuses(because, slices.Concat(codes, unknownExtension)...)
	d.want(r.RDMAPHeader == nil, "a Terminate without a Terminated RDMA Header: RFC 7306, section 8.1", "one with it")
}

// atomicTargets asks for Atomic Operations where the peer has offered none. FetchAdd of 0
// changes nothing where a peer carries it out nevertheless.
func atomicTargets() []Case {
	none := rdmap.FetchAdd(0, 0)
	cases := slices.Concat(
		either("rdmap", "atomic-stag-unknown", "X03", atomicSection,
			"A FetchAdd at an STag that the peer has not advertised is refused: Terminate 0x0100 or 0x0103, or 0x0206 by who does not know it.", func(d *dialogue) {
				r := none
				r.STag = d.strangeSTag()
				d.sendAtomic("FetchAdd of 0 at an unknown STag", r)
				d.refusesAtomic("the STag is not valid", badSource...)
			}),
		either("rdmap", "atomic-stag-0", "X03", atomicSection,
			"A CmpSwap at STag 0 is refused: Terminate 0x0100 or 0x0103, or 0x0206 by who does not know it.",
			func(d *dialogue) {
				d.sendAtomic("CmpSwap at STag 0", rdmap.CmpSwap(0, 0, 0, 0))
				d.refusesAtomic("the STag is not valid", badSource...)
			}),
	)
	return append(cases,
		toClient("rdmap/initiator-atomic-rights", "X03", atomicSection,
			"A FetchAdd in memory that a client has offered for Reads is refused: Terminate 0x0102, 0x0207 if it is not aligned, or 0x0206.", func(d *dialogue) {
				r := none
				r.STag, r.TO = d.source.STag, d.source.TO
				d.sendAtomic("FetchAdd of 0 in the source", r)
				d.refusesAtomic("the memory is offered for Reads",
					slices.Concat(badSource, []rdmap.Code{rdmap.CodeAccessRights, rdmap.CodeCatastrophicStream})...)
			}),
		toClient("rdmap/initiator-atomic-after-end", "X03", atomicSection,
			"A FetchAdd after the end of a client's source is refused: Terminate 0x0101, or for its rights, or 0x0206.",
			func(d *dialogue) {
				r := none
				r.STag, r.TO = d.source.STag, d.source.TO+uint64(d.source.Length)
				d.sendAtomic("FetchAdd of 0 after the end of the source", r)
				d.refusesAtomic("the word is not in the memory",
					slices.Concat(badSource, []rdmap.Code{rdmap.CodeBaseOrBounds, rdmap.CodeAccessRights,
						rdmap.CodeCatastrophicStream})...)
			}))
}

// atomicForms sends Atomic Requests and Responses that no RFC has.
func atomicForms() []Case {
	var cases []Case
	for _, op := range []rdmap.AtomicOp{1, 3, 15} {
		cases = append(cases, either("rdmap", fmt.Sprintf("atomic-aopcode-%d", op), "X03", "RFC 7306 5.2.1, 10.1",
			fmt.Sprintf("An Atomic Request with AOpCode %d, which is not assigned, is refused.", op),
			func(d *dialogue) {
				d.sendAtomic("Atomic Request with another AOpCode", rdmap.AtomicRequest{Op: op, STag: d.strangeSTag()})
				d.refusesAtomic("an error MUST be surfaced [...] with an Atomic Operation Code that the RNIC does not support", append(badOpcode, badSource...)...)
			})...)
	}
	for _, n := range []int{0, 51, 53} {
		cases = append(cases, either("rdmap", fmt.Sprintf("atomic-length-%d", n), "X03", "RFC 7306 5.2.1",
			fmt.Sprintf("An Atomic Request of %s in place of 52 is refused.", wording.Bytes(n)), func(d *dialogue) {
				r := rdmap.FetchAdd(0, 0)
				r.STag = d.strangeSTag()
				d.sendMessage("Atomic Request of another length", rdmap.OpAtomicRequest, append(r.Append(nil), 0)[:n])
				d.refused(orCloses, "an Atomic Request has 52 bytes, and no payload")
			})...)
	}
	return append(cases, either("rdmap", "atomic-response-unasked", "X03", "RFC 7306 5.2.2",
		"An Atomic Response that was not asked for is refused.", func(d *dialogue) {
			r := rdmap.AtomicResponse{ID: 1}
			d.sendMessage("Atomic Response", rdmap.OpAtomicResponse, r.Append(nil))
			d.refuses("when an invalid Atomic Operation Response Message is delivered [...] an error is surfaced",
				slices.Concat(badOpcode, badMSN, []rdmap.Code{rdmap.CodeDDPInvalidQN})...)
		})...)
}

// immediateForms sends Immediate Data of other lengths than 8 bytes, and out of their turn.
func immediateForms() []Case {
	var cases []Case
	for _, n := range []int{0, 7, 9} {
		for _, op := range []rdmap.Opcode{rdmap.OpImmediateData, rdmap.OpImmediateDataSE} {
			name := fmt.Sprintf("immediate-length-%d", n)
			if op == rdmap.OpImmediateDataSE {
				name = fmt.Sprintf("immediate-se-length-%d", n)
			}
			cases = append(cases, either("rdmap", name, "X03", immediateSection,
				fmt.Sprintf("%v of %s is refused.", op, wording.Bytes(n)), func(d *dialogue) {
					d.sendMessage(fmt.Sprintf("%v of %s", op, wording.Bytes(n)), op, make([]byte, n))
					d.refused(orCloses, "MUST check that Immediate Data and Immediate Data with SE Messages include exactly 8 bytes of data")
				})...)
		}
	}
	return append(cases, either("rdmap", "immediate-msn", "X03", immediateSection,
		"Immediate Data whose MSN is not the next one of queue 0 are refused: Terminate 0x1202 or 0x1203, or 0x0206 by who does not know them.", func(d *dialogue) {
			h := d.nextHeader(rdmap.OpImmediateData)
			h.MSN += 1000
			d.sendSegment("Immediate Data with a later MSN", h, make([]byte, rdmap.ImmediateDataLen))
			d.refuses("MUST be Delivered to the Remote Peer's ULP in the order they were sent",
				slices.Concat(badMSN, unknownExtension)...)
		})...)
}
