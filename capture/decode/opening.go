package decode

import (
	"cmp"
	"fmt"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// openers judges the first FPDU of each end.
func (h *half) openers(f *FPDU) {
	if h.dir == h.c.pub.Responder() {
		h.spokeFirst(f)
	} else if h.rtrPlace() {
		h.firstOfInitiator(f)
	}
}

// spokeFirst judges the Responder's first FPDU.
//
// RFC 5044, Section 7.1.2: "MPA Responder mode implementations MUST receive and
// validate at least one FPDU before sending any FPDUs or Markers." [Q11]
func (h *half) spokeFirst(f *FPDU) {
	o, p := h.out(), h.peer()
	first := o.FPDUs+o.Bad+o.Cut == 1
	if !first || h.c.pub.Midstream || h.unsure() || h.c.isDialect(mpa.DialectRtr) || f.Op == rdmap.OpTerminate && f.HasSegment {
		return
	}
	if i := p.out(); p.mode == modeFull && i.FPDUs+i.Bad+i.Cut > 0 {
		return
	}
	k := findSpokeFirst
	advice := "the Initiator may close the connection: the Responder's consumer has to wait for the first message, or the connection must be peer-to-peer (an RTR indication)"
	if a := h.c.pub.Enhanced[h.dir]; a != nil && !a.A {
		k.severity = Warning
		advice += "; Linux's siw lets its consumer send without one"
	}
	h.at1(k, f, "the Responder sends an FPDU before it has received one", advice)
}

// firstOfInitiator judges the Initiator's first FPDU.
//
// RFC 6581, Section 9.2: "Upon receiving the MPA Accept Frame with Control Flag A set to
// 1, the initiator MUST generate one of the negotiated RTR indications." [E09]
func (h *half) firstOfInitiator(f *FPDU) {
	r := &h.c.pub.RTR
	if f.HasSegment && f.Op == rdmap.OpTerminate {
		return
	}
	common := r.Offered & r.Answered
	switch {
	case !r.PeerToPeer:
		h.unasked(f)
		return
	case f.RTR == 0:
		k := findNoRTR
		if r.Offered == 0 {
			k.severity = Warning // it said that it can send none
		}
		h.at1(k, f, fmt.Sprintf("the Initiator's first FPDU is %s, and an RTR indication is due: %v", kindOf(f), cmp.Or(common, r.Answered)),
			"a Responder that waits for the indication may end the connection")
		return
	case common&f.RTR == 0 && f.RTR == mpa.RTRSend:
		h.at1(findRTRKind, f, fmt.Sprintf("the RTR indication is a Send, and %v was agreed on", common), "it takes a receive buffer of the Responder's consumer; Linux's siw takes it")
	case common&f.RTR == 0:
		h.at1(findRTRKind, f, fmt.Sprintf("the RTR indication is a %v, and %v was agreed on", f.RTR, common),
			"the Responder may end the connection with code 7; Chelsio's cxgb4 sends a Read whatever was agreed on")
	}
	r.Sent = f.RTR
	h.rtrSTag(f)
}

// unasked names an RTR indication that nobody asked for.
func (h *half) unasked(f *FPDU) {
	if f.RTR != mpa.RTRWrite && f.RTR != mpa.RTRRead {
		return
	}
	h.c.pub.RTR.Sent = f.RTR
	h.at1(findRTRPlain, f, fmt.Sprintf("the first FPDU is an empty %v, as an RTR indication is, and none was negotiated", f.RTR),
		"Chelsio's cxgb4 sends an empty Read in revision 1 when peer2peer is set: the Responder answers it as any other")
}

// rtrSTag looks at the STag of an RTR indication, which means nothing.
func (h *half) rtrSTag(f *FPDU) {
	stag, is := f.Segment.STag, f.RTR == mpa.RTRWrite
	if f.ReadRequest != nil {
		stag, is = f.ReadRequest.SrcSTag, true
	}
	if is && stag == 0 {
		h.at1(findRTRSTag, f, "the RTR indication has STag 0", "nobody may look at it, and yet Chelsio's hardware refuses 0: Linux's siw sends 1 for that")
	}
}

// kindOf names what is in an FPDU.
func kindOf(f *FPDU) string {
	if !f.HasSegment {
		return "no DDP segment"
	}
	return fmt.Sprintf("a %v of %d octets", f.Op, len(f.Segment.Payload))
}

// terminate reports a Terminate.
func (h *half) terminate(f *FPDU) {
	if f.Terminate == nil {
		h.at1(findTerminateForm, f, "a Terminate without its control field", "")
		return
	}
	t := f.Terminate
	if _, err := rdmap.ParseTerminate(f.Segment.Payload); err != nil {
		h.at1(findTerminateForm, f, "Terminate: "+err.Error(), "the headers that its HdrCt announces are cut short")
	}
	h.at1(findTerminate, f, "Terminate: "+t.String(), terminateAdvice(t.Code))
	if t.Layout == rdmap.LayoutSIW {
		h.at1(findTerminateSIW, f, "the Terminate has Layer and EType swapped, as Linux's siw sends it: read so", "other receivers take it for another error")
	}
}

// terminateAdvice says what to do about some codes.
func terminateAdvice(c rdmap.Code) string {
	switch c {
	case rdmap.CodeMPACRC:
		return "the sender of the Terminate has received an FPDU with a wrong CRC: look for one in the other direction; if there is none, it was damaged behind the place of the capture"
	case rdmap.CodeMPAMarker:
		return "look for a wrong marker in the other direction"
	case rdmap.CodeMPAInsufficientIRD:
		return "the Responder's ORD is more than the Initiator can take: lower it, or raise the Initiator's IRD"
	case rdmap.CodeMPANoMatchingRTR:
		return "let both ends support one kind of RTR indication"
	case rdmap.CodeInvalidSTag, rdmap.CodeDDPInvalidSTag, rdmap.CodeSTagNotAssociated, rdmap.CodeDDPSTagNotAssociated:
		return "the STag is not, or no longer, registered at the receiver, or belongs to another connection"
	case rdmap.CodeBaseOrBounds, rdmap.CodeDDPBaseOrBounds:
		return "the access goes beyond the registered memory: compare address and length with what was advertised"
	case rdmap.CodeAccessRights:
		return "register the memory with the access that is needed (remote read or remote write)"
	case rdmap.CodeDDPInvalidMSNNoBuffer:
		return "more messages came than receives were posted: post more, or send less"
	case rdmap.CodeDDPMessageTooLong:
		return "a message is longer than the receive that it meets: post larger ones"
	}
	return ""
}

// firstCRC looks at the CRC field of the first FPDU where CRC is off.
func (h *half) firstCRC(f *FPDU) {
	if !h.full.empty || f.CRC != CRCOff || f.Err != nil {
		return
	}
	b := h.octets(f.Offset, f.End)
	if len(b) < 4 {
		return
	}
	field := b[len(b)-4:]
	switch {
	case [4]byte(field) == [4]byte{}:
		h.at1(findCRCField, f, "CRC is off, and the field is zero", "it may hold anything; Linux's siw sends zeros")
	case [4]byte(mpa.AppendCRC(nil, mpa.CRC32C(0, b[:len(b)-4]))) == [4]byte(field):
		h.at1(findCRCField, f, "CRC is off, and the field holds the right CRC", "the sender generates CRCs though neither end asked for them")
	}
}

// summarize completes what is known of a connection.
func (c *conn) summarize() {
	for i := range c.halves {
		h := &c.halves[i]
		o := &c.pub.Halves[i]
		o.STags = len(h.messages.stags)
		if h.mode == modeFull {
			o.Memory = h.full.memory.result(o.LargestSegment)
		}
	}
}
