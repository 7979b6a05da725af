package decode

import (
	"fmt"

	"github.com/goiwarp/iwarp/rdmap"
)

// parseExtension fills in a message of RFC 7306.
func (f *FPDU) parseExtension() {
	if f.Segment.Tagged {
		return
	}
	p := f.Segment.Payload
	switch f.Op {
	case rdmap.OpAtomicRequest:
		if r, err := rdmap.ParseAtomicRequest(p); err == nil {
			f.AtomicRequest = &r
		}
	case rdmap.OpAtomicResponse:
		if r, err := rdmap.ParseAtomicResponse(p); err == nil {
			f.AtomicResponse = &r
		}
	case rdmap.OpImmediateData, rdmap.OpImmediateDataSE:
		if v, err := rdmap.ParseImmediateData(p); err == nil {
			f.Immediate = &v
		}
	}
}

// extension judges a message of RFC 7306 that asks, or answers.
func (h *half) extension(f *FPDU) {
	switch {
	case f.AtomicRequest != nil:
		h.atomicRequest(f)
	case f.AtomicResponse != nil:
		h.atomicResponse(f)
	}
}

// atomicRequest takes note of an Atomic Request. It is outstanding as a Read is.
func (h *half) atomicRequest(f *FPDU) {
	if op := f.AtomicRequest.Op; !op.Known() {
		h.at1(findOpcode, f, fmt.Sprintf("Atomic Request with %v, which is not assigned", op),
			"FetchAdd is 0 and CmpSwap 2; 1 is reserved, and some take it for CmpSwap: the receiver ends the stream")
	}
	m := &h.messages
	r := rdmap.Read{Atomic: true, Request: f.AtomicRequest.ID, ID: m.nextID}
	if !m.ask(r, &asked{sent: f.Last}) {
		return
	}
	m.atomics[r.Request]++
	h.outstanding(f)
}

// atomicResponse takes an Atomic Response.
//
// RFC 7306, section 7: it comes in the order of the requests, Reads among them. [A30]
func (h *half) atomicResponse(f *FPDU) {
	m := &h.peer().messages
	if h.missed() {
		m.doubt()
	}
	if !m.catchUpAtomic(f.AtomicResponse) {
		return
	}
	err := m.orq.CheckAtomic(f.AtomicResponse)
	if err != nil {
		h.at1(findResponse, f, "Atomic Response: "+err.Field+": "+err.Reason,
			"Responses come in the order of the Requests, and repeat their Request Identifiers")
		m.doubt()
	}
	if m.orq.Len() == 0 || err != nil && err.Code == rdmap.CodeUnexpectedOpcode {
		return
	}
	r, _ := m.orq.Pop()
	m.forget(r)
	m.lenient = m.lenient && (err != nil || r.ID < m.sure)
}

// catchUpAtomic is catchUp for an Atomic Response.
func (m *messages) catchUpAtomic(resp *rdmap.AtomicResponse) bool {
	for m.lenient && m.orq.CheckAtomic(resp) != nil {
		if m.atomics[resp.ID] == 0 {
			return false
		}
		r, _ := m.orq.Pop()
		m.forget(r)
	}
	return true
}
