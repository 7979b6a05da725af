package decode

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/wording"
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

// extension describes a message of RFC 7306, and is empty for others.
func (f *FPDU) extension() string {
	switch {
	case f.AtomicRequest != nil:
		return " " + f.AtomicRequest.String()
	case f.AtomicResponse != nil:
		return " original " + f.AtomicResponse.String()
	case f.Immediate != nil:
		return fmt.Sprintf(" data %#x", *f.Immediate)
	}
	return ""
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
// RFC 7306, section 7: it comes in the order of the requests, Reads among them. [X03]
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

// extensionFields takes the fields of a message of RFC 7306, and returns how many octets they
// have.
func (c *cutter) extensionFields(f *FPDU) int {
	before := len(c.b)
	switch {
	case f.AtomicRequest != nil:
		r := f.AtomicRequest
		c.take(4, "AOpCode", "%v", r.Op)
		c.take(4, "Request Identifier", "%d", r.ID)
		c.take(4, "Remote STag", "%#08x", r.STag)
		c.take(8, "Remote TO", "%#x", r.TO)
		c.take(8, wording.If(r.Op == rdmap.AtomicFetchAdd, "Add Data", "Swap Data"), "%#x", r.Data)
		c.take(8, wording.If(r.Op == rdmap.AtomicFetchAdd, "Add Mask", "Swap Mask"), "%#x", r.Mask)
		c.take(8, "Compare Data", "%#x", r.Compare)
		c.take(8, "Compare Mask", "%#x", r.CompareMask)
	case f.AtomicResponse != nil:
		c.take(4, "Original Request ID", "%d", f.AtomicResponse.ID)
		c.take(8, "Original Value", "%#x", f.AtomicResponse.Value)
	case f.Immediate != nil:
		c.take(8, "Immediate Data", "%#x", *f.Immediate)
	}
	return before - len(c.b)
}

// jsonExtension is what of an FPDU is of RFC 7306.
type jsonExtension struct {
	AtomicRequest  *jsonAtomicRequest  `json:"atomic_request,omitempty"`
	AtomicResponse *jsonAtomicResponse `json:"atomic_response,omitempty"`
	Immediate      *uint64             `json:"immediate_data,omitempty"`
}

type jsonAtomicRequest struct {
	Operation   string `json:"operation"`
	ID          uint32 `json:"id"`
	STag        uint32 `json:"stag"`
	TO          uint64 `json:"to"`
	Data        uint64 `json:"data"`
	Mask        uint64 `json:"mask"`
	Compare     uint64 `json:"compare"`
	CompareMask uint64 `json:"compare_mask"`
}

type jsonAtomicResponse struct {
	ID    uint32 `json:"id"`
	Value uint64 `json:"value"`
}

func extensionOf(f *FPDU) *jsonExtension {
	e := jsonExtension{Immediate: f.Immediate}
	if r := f.AtomicRequest; r != nil {
		e.AtomicRequest = &jsonAtomicRequest{r.Op.String(), r.ID, r.STag, r.TO, r.Data, r.Mask, r.Compare, r.CompareMask}
	}
	if r := f.AtomicResponse; r != nil {
		e.AtomicResponse = &jsonAtomicResponse{r.ID, r.Value}
	}
	return &e
}
