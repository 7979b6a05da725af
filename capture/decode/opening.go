package decode

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp/internal/wording"
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
// RFC 5044, section 7.1.2: "MPA Responder mode implementations MUST receive and
// validate at least one FPDU before sending any FPDUs or Markers." [Q11]
func (h *half) spokeFirst(f *FPDU) {
	o, p := h.publicHalf(), h.peer()
	first := o.FPDUs+o.Bad+o.Cut == 1
	if !first || h.c.pub.Midstream || h.unsure() || h.c.isDialect(mpa.DialectRtr) ||
		f.Op == rdmap.OpTerminate && f.HasSegment {
		return
	}
	if i := p.publicHalf(); p.mode == modeFull && i.FPDUs+i.Bad+i.Cut > 0 {
		return
	}
	k := findSpokeFirst
	advice := "the Initiator may close the connection: the Responder's consumer has to wait for the first message, or the connection must be peer-to-peer (an RTR indication)"
	if a := h.c.pub.Enhanced[h.dir]; a != nil && !a.A {
		k.severity = Warning
		advice += "; Linux's siw lets its consumer send without one"
	}
	h.reportAt(k, f, "the Responder sends an FPDU before it has received one", advice)
}

// firstOfInitiator judges the Initiator's first FPDU.
//
// RFC 6581, section 9.2: "Upon receiving the MPA Accept Frame with Control Flag A set to
// 1, the initiator MUST generate one of the negotiated RTR indications." [E09]
func (h *half) firstOfInitiator(f *FPDU) {
	r := &h.c.pub.RTR
	if f.HasSegment && f.Op == rdmap.OpTerminate {
		return
	}
	common := r.Offered & r.Answered
	switch {
	case !r.PeerToPeer:
		h.reportUnasked(f)
		return
	case f.RTR == 0:
		k := findNoRTR
		if r.Offered == 0 {
			k.severity = Warning // it said that it can send none
		}
		h.reportAt(k, f, fmt.Sprintf("the Initiator's first FPDU is %s, but an RTR indication is due: %v",
			kindOf(f), cmp.Or(common, r.Answered)),
			"a Responder that waits for the indication may end the connection")
		return
	case common&f.RTR == 0 && f.RTR == mpa.RTRSend:
		h.reportAt(findRTRKind, f, fmt.Sprintf("the RTR indication is a Send, but %v was agreed on", common),
			"it uses up a receive buffer of the Responder's consumer; Linux's siw accepts it")
	case common&f.RTR == 0:
		h.reportAt(findRTRKind, f, fmt.Sprintf("the RTR indication is a %v, but %v was agreed on", f.RTR, common),
			"the Responder may end the connection with code 7; Chelsio's cxgb4 sends a Read whatever was agreed on")
	}
	r.Sent = f.RTR
	h.rtrSTag(f)
}

// reportUnasked names an RTR indication that nobody asked for.
func (h *half) reportUnasked(f *FPDU) {
	if f.RTR != mpa.RTRWrite && f.RTR != mpa.RTRRead {
		return
	}
	h.c.pub.RTR.Sent = f.RTR
	h.reportAt(findRTRPlain, f, fmt.Sprintf("the first FPDU is an empty %v, like an RTR indication, but none was negotiated",
		f.RTR),
		"Chelsio's cxgb4 sends an empty Read in revision 1 when peer2peer is set: the Responder answers it as any other")
}

// rtrSTag looks at the STag of an RTR indication, which means nothing.
func (h *half) rtrSTag(f *FPDU) {
	stag, is := f.Segment.STag, f.RTR == mpa.RTRWrite
	if f.ReadRequest != nil {
		stag, is = f.ReadRequest.SrcSTag, true
	}
	if is && stag == 0 {
		h.reportAt(findRTRSTag, f, "the RTR indication has STag 0",
			"receivers must not look at it, but Chelsio's hardware refuses 0, which is why Linux's siw sends 1")
	}
}

// kindOf names what is in an FPDU.
func kindOf(f *FPDU) string {
	if !f.HasSegment {
		return "no DDP segment"
	}
	return fmt.Sprintf("a %v of %s", f.Op, wording.Bytes(len(f.Segment.Payload)))
}

// terminate reports a Terminate.
func (h *half) terminate(f *FPDU) {
	if f.Terminate == nil {
		h.reportAt(findTerminateForm, f, "a Terminate without its control field", "")
		return
	}
	t := f.Terminate
	if _, err := rdmap.ParseTerminate(f.Segment.Payload); err != nil {
		h.reportAt(findTerminateForm, f, "Terminate: "+err.Error(), "the headers that its HdrCt announces are cut short")
	}
	h.reportAt(findTerminate, f, "Terminate: "+t.String(), h.terminateAdvice(t.Code))
	if t.Layout == rdmap.LayoutSIW {
		h.reportAt(findTerminateSIW, f, "the Terminate is read with Layer and EType swapped, as Linux's siw sends it",
			"other receivers take it for a different error")
	}
}

// A due is a finding that its receiver answers with a Terminate.
type due struct {
	code   rdmap.Code
	name   string
	offset uint64
}

// maxDue bounds the findings of a direction that a Terminate may be the answer to.
const maxDue = 16

// expectTerminate takes note of a finding that a Terminate may be the answer to.
func (h *half) expectTerminate(k finding, offset uint64) {
	for _, code := range terminates[k.name] {
		if len(h.due) == maxDue {
			h.due = h.due[:copy(h.due, h.due[1:])]
		}
		h.due = append(h.due, due{code, k.name, offset})
	}
}

// terminates are the codes by which findings are answered.
var terminates = map[string][]rdmap.Code{
	findCRC.name:      {rdmap.CodeMPACRC},
	findPad.name:      {rdmap.CodeMPACRC},
	findMarker.name:   {rdmap.CodeMPAMarker},
	findORDAbove.name: {rdmap.CodeMPAInsufficientIRD},
	findNoMatch.name:  {rdmap.CodeMPANoMatchingRTR},
	findModel.name:    {rdmap.CodeMPANoMatchingRTR},
	findRTRKind.name:  {rdmap.CodeMPANoMatchingRTR},
	findNoRTR.name:    {rdmap.CodeMPANoMatchingRTR},
	findVersion.name: {rdmap.CodeInvalidVersion, rdmap.CodeDDPTaggedInvalidVersion,
		rdmap.CodeDDPUntaggedInvalidVersion},
	findOpcode.name:       {rdmap.CodeUnexpectedOpcode},
	findForm.name:         {rdmap.CodeUnexpectedOpcode},
	findQueue.name:        {rdmap.CodeDDPInvalidQN},
	findMSN.name:          {rdmap.CodeDDPInvalidMSNRange, rdmap.CodeDDPInvalidMSNNoBuffer},
	findMO.name:           {rdmap.CodeDDPInvalidMO},
	findSegmentOrder.name: {rdmap.CodeDDPInvalidMO, rdmap.CodeDDPBaseOrBounds},
	findResponse.name:     {rdmap.CodeDDPInvalidSTag, rdmap.CodeDDPBaseOrBounds},
}

// readTerminate decides how a Terminate is laid out whose code there is in both layouts:
// it means what was just found in the other direction.
func (h *half) readTerminate(t *rdmap.Terminate) {
	swapped := t.Code&0xff | t.Code>>4&0x0f00 | t.Code<<4&0xf000
	if t.Layout != rdmap.LayoutRFC || swapped == t.Code || !swapped.Known() {
		return
	}
	for _, d := range slices.Backward(h.peer().due) {
		switch d.code {
		case t.Code:
			return
		case swapped:
			t.Code, t.Layout = swapped, rdmap.LayoutSIW
			return
		}
	}
}

// extended reports whether the end has sent something of RFC 7306 that is no answer.
func (h *Half) extended() bool {
	for op := range h.Ops {
		if o := rdmap.Opcode(op); o.Extension() && !o.Answers() && h.Ops[op].Messages > 0 {
			return true
		}
	}
	return false
}

// terminateAdvice says what a Terminate is about, and what to do about it.
func (h *half) terminateAdvice(c rdmap.Code) string {
	advice := codeAdvice(c)
	if c == rdmap.CodeUnexpectedOpcode && h.peer().publicHalf().extended() {
		advice = "the sender of the Terminate does not know the messages of RFC 7306, which the other end has sent: do without them"
	}
	i := slices.IndexFunc(h.peer().due, func(d due) bool { return d.code == c })
	switch {
	case i < 0 && c == rdmap.CodeMPACRC:
		return "the sender of the Terminate has received an FPDU with a wrong CRC, and there is none in the capture: it was damaged after the place of the capture"
	case i < 0 && c == rdmap.CodeMPAMarker:
		return "the sender of the Terminate has received a wrong marker, and there is none in the capture"
	case i < 0:
		return advice
	}
	cause := fmt.Sprintf("it is the answer to %s at %d in the other direction",
		h.peer().due[i].name, h.peer().due[i].offset)
	if advice == "" {
		return cause
	}
	return cause + ": " + advice
}

// codeAdvice says what to do about some codes.
func codeAdvice(c rdmap.Code) string {
	switch c {
	case rdmap.CodeMPAInsufficientIRD:
		return "the Responder's ORD is more than the Initiator can take: lower it, or raise the Initiator's IRD"
	case rdmap.CodeMPANoMatchingRTR:
		return "let both ends support one kind of RTR indication"
	case rdmap.CodeInvalidSTag, rdmap.CodeDDPInvalidSTag, rdmap.CodeSTagNotAssociated, rdmap.CodeDDPSTagNotAssociated:
		return "the STag is not, or no longer, registered at the receiver, or belongs to another connection"
	case rdmap.CodeBaseOrBounds, rdmap.CodeDDPBaseOrBounds:
		return "the access goes beyond the registered memory: compare address and length with what was advertised"
	case rdmap.CodeAccessRights:
		return "register the memory with the access that is needed (remote read, remote write or remote atomic)"
	case rdmap.CodeDDPInvalidMSNNoBuffer:
		return "more messages came than receives were posted: post more, or send less"
	case rdmap.CodeDDPMessageTooLong:
		return "a message is longer than the receive that it meets: post larger ones"
	}
	return ""
}

// summarize completes what is known of a connection.
func (c *conn) summarize() {
	for i := range c.halves {
		h := &c.halves[i]
		o := &c.pub.Halves[i]
		o.Ended, o.End = h.ended, h.end
		o.STags = len(h.messages.stags)
		o.OutstandingReads = max(h.messages.most, h.messages.orq.Len())
		h.slowRead()
		h.pathAtEnd(&o.Wire)
		h.account(h.end.Offset, h.end.Offset, h.end.Packet)
		if h.mode == modeFull && o.Bad+o.Cut+o.Lost == 0 {
			o.Memory = h.full.memory.result(o.LargestSegment)
		}
	}
}
