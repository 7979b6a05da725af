package decode

import (
	"fmt"

	"github.com/goiwarp/iwarp/rdmap"
)

// immediate reports whether it is Immediate Data, with SE or without: then its RDMAP header is the ULP's data.
func (f *FPDU) immediate() bool {
	return (f.Op == rdmap.OpImmediateData || f.Op == rdmap.OpImmediateDataSE) && !f.Segment.Tagged &&
		len(f.Segment.Payload) >= rdmap.ImmediateDataLen
}

// extension judges a message with a Request Identifier. Which those are, and what answers which, says the table of
// opcodes.
func (h *half) extension(f *FPDU) {
	id, ok := f.Op.RequestID(f.Segment.Payload)
	info, _ := f.Op.Info()
	switch {
	case f.Segment.Tagged || !ok:
	case info.Answer:
		h.otherResponse(f, id)
	case info.Response != 0:
		h.otherRequest(f, rdmap.Read{Response: info.Response, Request: id})
	}
}

// otherRequest takes note of a request that is no Read. It is outstanding as a Read is.
func (h *half) otherRequest(f *FPDU, r rdmap.Read) {
	if f.Op == rdmap.OpAtomicRequest {
		h.atomicOp(f)
	}
	m := &h.messages
	r.ID = m.nextID
	if !m.ask(r, &asked{sent: f.Last}) {
		return
	}
	m.others[other{r.Response, r.Request}]++
	h.depth(f)
}

// atomicOp judges which operation an Atomic Request asks for.
func (h *half) atomicOp(f *FPDU) {
	if r, err := rdmap.ParseAtomicRequest(f.Segment.Payload); err == nil && !r.Op.Known() {
		h.reportAt(findOpcode, f, fmt.Sprintf("Atomic Request with %v, which is not assigned", r.Op),
			"FetchAdd is 0 and CmpSwap 2; 1 is reserved, and some take it for CmpSwap: the receiver ends the stream")
	}
}

// otherResponse takes the response to another request than a Read.
//
// RFC 7306, section 7: it comes in the order of the requests, Reads among them. [A30]
func (h *half) otherResponse(f *FPDU, id uint32) {
	m := &h.peer().messages
	if h.missed() {
		m.doubt()
	}
	if !m.catchUpAnswer(f, id) {
		return
	}
	err := m.orq.CheckAnswer(f.Op, id)
	if err != nil {
		h.reportAt(findResponse, f, f.Op.String()+": "+err.Field+": "+err.Reason,
			"Responses come in the order of the Requests, and repeat their Request Identifiers")
		m.doubt()
	}
	if m.orq.Len() == 0 || err != nil && err.Code == rdmap.CodeUnexpectedOpcode {
		return
	}
	r, _ := m.orq.Pop()
	m.forget(r, f)
	m.lenient = m.lenient && (err != nil || r.ID < m.sure)
}

// catchUpAnswer is catchUp for a response with a Request Identifier.
func (m *messages) catchUpAnswer(f *FPDU, id uint32) bool {
	for m.lenient && m.orq.CheckAnswer(f.Op, id) != nil {
		if m.others[other{f.Op, id}] == 0 {
			return false
		}
		r, _ := m.orq.Pop()
		m.forget(r, f)
	}
	return true
}
