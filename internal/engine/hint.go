package engine

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/rdmap"
)

// hints say what mistake of ours a peer's Terminate may be about, as far as its code
// tells, and what the peer's side can do about it.
var hints = map[rdmap.Code]string{
	rdmap.CodeDDPInvalidSTag:             "the peer has no memory of that STag, or no longer: it was deregistered or invalidated, or the STag is not the one that it told us",
	rdmap.CodeDDPBaseOrBounds:            "the Write leaves the memory that the peer has registered",
	rdmap.CodeDDPSTagNotAssociated:       "the peer's memory is registered without the right to be written by us (RemoteWrite), or for another Protection Domain or QP than that of this connection",
	rdmap.CodeDDPTOWrap:                  "the tagged offset and the length of the Write exceed 64 bits",
	rdmap.CodeInvalidSTag:                "the peer has no memory of that STag, or no longer: it was deregistered or invalidated, or the STag is not the one that it told us",
	rdmap.CodeBaseOrBounds:               "the Read leaves the memory that the peer has registered",
	rdmap.CodeAccessRights:               "the peer's memory is registered without the right to be read by us (RemoteRead)",
	rdmap.CodeSTagNotAssociated:          "the peer's memory is registered for another Protection Domain or QP than that of this connection",
	rdmap.CodeTOWrap:                     "the tagged offset and the length of the Read exceed 64 bits",
	rdmap.CodeProtectionCannotInvalidate: "the peer's memory is neither bound to its QP nor offered for invalidation (RemoteInvalidate), or several QPs share it",
	rdmap.CodeDDPInvalidMSNNoBuffer:      "the peer had no receive posted for the Send: let it post them earlier, or more of them",
	rdmap.CodeDDPMessageTooLong:          "the Send is longer than the receive that the peer has posted for it: send less, or let it post longer ones",
	rdmap.CodeCatastrophicStream:         "the peer gave this connection up for a reason that no other code tells, such as our FIN in the middle of a message or before we had answered its Reads, or a message that did not end in time: its errors tell which",
	rdmap.CodeCatastrophicGlobal:         "the peer gave up all its connections, for a reason of its own: its errors tell which",
	rdmap.CodeLocalCatastrophic:          "the peer ended the connection for a reason of its own, such as memory that it had deregistered before its own work (a Send, a Write or a receive) was complete: its errors tell which",
}

// atomicHints are those for a Terminate that names an Atomic Request.
var atomicHints = map[rdmap.Code]string{
	rdmap.CodeBaseOrBounds:       "the word of the Atomic Operation is not in the memory that the peer has registered",
	rdmap.CodeAccessRights:       "the peer's memory is registered without the right to be changed by our Atomic Operations (RemoteAtomic)",
	rdmap.CodeTOWrap:             "the tagged offset of the Atomic Operation and its 8 bytes exceed 64 bits",
	rdmap.CodeCatastrophicStream: "the word of the Atomic Operation is at an address of the peer's that is no multiple of 8, or the peer gave up for a reason of its own",
}

// unknownExtension is the hint where the peer may not know RFC 7306. Its section 1.1: "reported
// errors can be used to determine a remote peer's capabilities", and it is "RECOMMENDED that
// RDMA applications and/or ULPs negotiate at the application or ULP level the usage of these
// extensions".
const unknownExtension = "the peer does not seem to know the Atomic Operations and Immediate Data of RFC 7306, as most RNICs and Linux's siw: " +
	"use Reads, Writes and Sends with it, and have the application agree on the others beforehand"

// extended reports whether something of RFC 7306 was sent that is no answer.
func (s *Stats) extended() bool {
	for op, t := range s.Sent {
		if op := rdmap.Opcode(op); t.Messages > 0 && op.Extension() && !op.Answers() {
			return true
		}
	}
	return false
}

// hint says what a peer's Terminate may be about, and names the memory if the Terminate
// does. extended says that we have sent something of RFC 7306.
func hint(t *rdmap.Terminate, extended bool) string {
	s := hints[t.Code]
	h, ok := terminatedHeader(t)
	if a := atomicHints[t.Code]; a != "" && ok && rdmap.OpcodeOf(&h) == rdmap.OpAtomicRequest {
		return a
	}
	// Linux's siw swaps Layer and EType: what it sends for 0x0206 reads as 0x2006, which is of the startup.
	if extended && (t.Code == rdmap.CodeUnexpectedOpcode || t.Code == rdmap.CodeMPAInsufficientIRD) {
		return unknownExtension
	}
	if ok && h.Tagged && s != "" {
		s += fmt.Sprintf(" (STag %#08x, TO %#x)", h.STag, h.TO)
	}
	if r, err := rdmap.ParseReadRequest(t.RDMAPHeader); err == nil && s != "" {
		s += fmt.Sprintf(" (STag %#08x, TO %#x, %s)", r.SrcSTag, r.SrcTO, wording.Bytes(r.Size))
	}
	return s
}

// advised is a reason with advice after it, either of which may be missing.
func advised(reason, advice string) string {
	if reason == "" || advice == "" {
		return reason + advice
	}
	return reason + "; " + advice
}
