package decode

import (
	"fmt"
	"math/bits"
	"sort"

	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// readRequest takes note of a Read Request.
func (h *half) readRequest(f *FPDU) {
	m := &h.messages
	r := rdmap.Read{SinkSTag: f.ReadRequest.SinkSTag, SinkTO: f.ReadRequest.SinkTO,
		Size: f.ReadRequest.Size, ID: m.nextID}
	if !m.ask(r, &asked{request: *f.ReadRequest, offset: f.Offset, end: f.End, msn: f.Segment.MSN, sent: f.Last}) {
		return
	}
	m.sinks[r.SinkSTag]++
	if h.peer().acked >= f.End { // it is captured late, and its Response may have been captured before it
		m.doubt()
	}
	h.byteOrder(f)
	h.depth(f)
}

// ask takes note of a request, if not too many are outstanding.
func (m *messages) ask(r rdmap.Read, a *asked) bool {
	if m.asked == nil {
		m.asked, m.sinks, m.others, m.orq = map[uint64]*asked{}, map[uint32]int{},
			map[other]int{}, rdmap.NewORQ(maxReads)
	}
	if !m.orq.Push(r) {
		m.doubt()
		return false
	}
	m.asked[m.nextID] = a
	m.nextID++
	return true
}

// alignedReadLen is the bytes of a Read Request in a C struct whose 64-bit fields are
// aligned to eight bytes.
const alignedReadLen = 32

// byteOrder looks for a Read Request in the byte order of a little-endian host: every
// field of it is a small number then if its bytes are read backwards.
func (h *half) byteOrder(f *FPDU) {
	r := f.ReadRequest
	small := r.Size&0xff == 0 && r.SinkSTag&0xff == 0 && r.SrcSTag&0xff == 0 &&
		r.SinkTO&0xffff == 0 && r.SrcTO&0xffff == 0
	if n := bits.ReverseBytes32(r.Size); small && r.Size != 0 && n < 1<<16 {
		h.reportAt(findReadOrder, f, fmt.Sprintf("RDMA Read Request of %s: it would be %d in the other byte order, and all its fields small numbers", wording.Bytes(r.Size), n),
			"the sender writes the fields in its host's byte order: they are big-endian on the wire")
	}
}

// answersSwapped looks for a Response to the STag of a Request read backwards.
func (h *half) answersSwapped(f *FPDU) {
	if r, _, ok := h.peer().messages.orq.Front(); ok && f.Segment.STag == bits.ReverseBytes32(r.SinkSTag) &&
		r.SinkSTag != f.Segment.STag {
		h.reportAt(findReadOrder, f, fmt.Sprintf("the Response goes to STag %#08x, which is the Request's SinkSTag in the other byte order", f.Segment.STag),
			"the Request's sender writes the fields in its host's byte order, and the Response's reads them so: they are big-endian on the wire")
	}
}

// depth holds the Reads that are outstanding against what was agreed on. An RTR
// indication does not count: it is answered whatever the IRD.
func (h *half) depth(f *FPDU) {
	if h.missed() {
		h.messages.doubt()
	}
	limit, of, ok := h.depthLimit()
	if n := h.messages.orq.Len(); ok && n > limit && f.RTR == 0 && !h.messages.lenient {
		h.reportAt(findDepth, f, fmt.Sprintf("%d requests of Reads, or Atomic Operations, are outstanding, but the other end takes %d (%s)", n, limit, of),
			"the receiver may end the stream: lower the depth of Reads (max_rd_atomic, initiator_depth) of the end that asks")
	}
}

// depthLimit returns how many Reads of this direction the other end takes.
func (h *half) depthLimit() (limit int, of string, ok bool) {
	e := h.c.pub.Enhanced[h.dir.Peer()]
	if e == nil || h.c.pub.Dialect != mpa.DialectRFC6581 || e.IRD == mpa.NoNegotiation {
		return 0, "", false
	}
	return int(e.IRD), fmt.Sprintf("its frame has IRD %d", e.IRD), true
}

// readResponse takes a segment of a Read Response.
func (h *half) readResponse(f *FPDU) {
	m := &h.peer().messages
	if h.missed() || h.peer().mode == modeSearch { // where the Requests are, and were not found yet
		m.doubt()
	}
	if !m.catchUp(f) {
		return
	}
	if err := m.orq.Check(&f.Segment); err != nil {
		h.answersSwapped(f)
		h.reportAt(findResponse, f, "RDMA Read Response: "+err.Field+": "+err.Reason,
			"Responses come in the order of the Requests, whole, to the sink STag and the bytes that were asked for")
		if m.orq.Len() > 0 && f.Segment.Last {
			r, _ := m.orq.Pop()
			m.forget(r, f)
		}
		m.doubt()
		return
	}
	if r, got, _ := m.orq.Front(); !m.lenient && len(f.Segment.Payload) > 0 && f.Segment.TO-r.SinkTO != uint64(got) {
		h.reportAt(findSegmentOrder, f, fmt.Sprintf("RDMA Read Response: TO %#x, where %#x would be next",
			f.Segment.TO, r.SinkTO+uint64(got)), adviceOrder)
	}
	r, done := m.orq.Advance(&f.Segment)
	a := m.asked[r.ID]
	if a.first.Number == 0 {
		a.first = f.First
	}
	if done {
		h.complete(f, r, a)
	}
}

// catchUp passes over Requests whose Response is not in the capture. It reports false if
// the Request of this one is not.
func (m *messages) catchUp(f *FPDU) bool {
	for m.lenient && (m.orq.Len() == 0 || m.orq.Check(&f.Segment) != nil) {
		if m.sinks[f.Segment.STag] == 0 {
			return false // nor is it one of those after the oldest
		}
		r, _ := m.orq.Pop()
		m.forget(r, f)
	}
	return true
}

// complete reports a Read whose Response is complete.
func (h *half) complete(f *FPDU, r rdmap.Read, a *asked) {
	m := &h.peer().messages
	m.forget(r, f)
	m.lenient = m.lenient && r.ID < m.sure // Responses come in order
	read := Read{Dir: h.dir.Peer(), Request: a.sent, Acked: a.acked, First: a.first, Last: f.Last, ReadRequest: a.request}
	if l := read.Latency(); l >= 0 {
		h.peer().publicHalf().Reads.Add(uint64(l))
		if l > m.slowest.Latency() {
			m.slowest = slowest{read, a.offset, a.msn}
		}
	}
	h.c.d.to.Read(h.c.pub, &read)
}

// forget drops what is known of a Read, which was outstanding up to an FPDU: with those of the later ones that were sent
// before it. A Response that fills a hole is told of late, and more may have been sent meanwhile.
func (m *messages) forget(r rdmap.Read, f *FPDU) {
	m.most = max(m.most, 1+sort.Search(int(m.nextID-r.ID-1), func(i int) bool {
		return m.asked[r.ID+1+uint64(i)].sent.Number > f.Last.Number
	}))
	delete(m.asked, r.ID)
	if r.Response != 0 {
		forgetOne(m.others, other{r.Response, r.Request})
		return
	}
	forgetOne(m.sinks, r.SinkSTag)
}

func forgetOne[K comparable](n map[K]int, key K) {
	if n[key]--; n[key] == 0 {
		delete(n, key)
	}
}
