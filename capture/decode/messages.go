package decode

import (
	"fmt"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// messages is what is known of a direction's DDP and RDMAP messages.
type messages struct {
	queues  [rdmap.QNAtomic + 1]queue
	all     uint32    // messages of all queues together
	someAll bool      // there may have been more
	orq     rdmap.ORQ // Read Requests of this direction without a whole Response
	asked   map[uint64]*asked
	sinks   map[uint32]int // how many of them go to an STag
	others  map[other]int  // and how many other requests of a kind have an identifier
	nextID  uint64
	ackID   uint64 // the first one that the other end's TCP has not acknowledged
	slowest slowest
	most    int // of them that were outstanding at a time, but for those that are now
	stags   map[uint32]struct{}
	lenient bool   // there may be Reads without a known Request
	sure    uint64 // the Requests from this one on are all known, if lenient
	ended   bool   // by a Terminate
	tagged  struct {
		open bool
		stag uint32
		op   rdmap.Opcode
	}
}

// other is a request with a Request Identifier, by what answers it.
type other struct {
	answer rdmap.Opcode
	id     uint32
}

// asked is a Read Request without a whole Response.
type asked struct {
	request     rdmap.ReadRequest
	offset, end uint64 // of its FPDU
	msn         uint32
	// acked is the first packet by which the other end's TCP has acknowledged the Request.
	sent, acked, first capture.Stamp
}

// queue is the sequence of an untagged queue.
type queue struct {
	seen, unknown bool
	msn           uint32
	due           uint64       // the MO after the last segment
	cover         ddp.Coverage // what has come of the message
	top           uint32       // the highest MO of it, but for empty segments
	began         bool         // a segment of it has come
}

// resume goes on with a segment whose message may have others before it.
func (q *queue) resume(s *ddp.Segment) {
	q.restart(s.MSN)
	q.due = uint64(s.MO)
	q.cover.Add(0, q.due)
}

func (q *queue) restart(msn uint32) {
	q.msn, q.due, q.top, q.began = msn, 0, 0, false
	q.cover.Clear()
}

// addSegment takes note of a segment, and returns what is wrong with it as the last one of its message.
func (q *queue) addSegment(s *ddp.Segment) (wrong string) {
	mo, n := uint64(s.MO), uint64(len(s.Payload))
	if s.Last {
		wrong = q.checkLast(mo, mo+n)
		q.restart(q.msn + 1)
		return wrong
	}
	if q.unknown = q.cover.Full(mo, n); !q.unknown {
		q.cover.Add(mo, n)
	}
	q.began = true
	if q.due = mo + n; n > 0 {
		q.top = max(q.top, s.MO)
	}
	return ""
}

// checkLast judges the last segment of a message.
func (q *queue) checkLast(mo, end uint64) (wrong string) {
	const all = 1 << 32
	switch missing := q.cover.Fresh(0, mo); {
	case missing > 0:
		return fmt.Sprintf("%s of the message have not come before its last segment at MO %d",
			wording.Bytes(missing), mo)
	case mo < uint64(q.top):
		return fmt.Sprintf("the last segment has MO %d, and one before it %d", mo, q.top)
	case end < all && q.cover.Fresh(end, all-end) < all-end:
		return fmt.Sprintf("the message ends at %d, and bytes after that have come", end)
	case end == 0 && q.began:
		// RFC 5041, section 5.2: "A zero-length DDP Message is allowed and MUST consume exactly one DDP Segment." [D22]
		return "the message is empty, and has another segment before its last"
	}
	return ""
}

// uncertain forgets what has to come next, as bytes are missing. Among them may have
// been Read Requests, and Responses to those of the other end.
func (h *half) uncertain() {
	m := &h.messages
	for i := range m.queues {
		m.queues[i].unknown = true
	}
	m.someAll = true
	m.tagged.open = false
	m.doubt()
	h.peer().messages.doubt()
}

// doubt takes note that Requests, or Responses to them, may be missing.
func (m *messages) doubt() { m.lenient, m.sure = true, m.nextID }

// message looks at an FPDU before consumers see it: it fills in what depends on those
// before.
func (h *half) message(f *FPDU) {
	p := h.c.pub
	if !f.HasSegment {
		return
	}
	if p.Version == versionUnknown {
		p.Version = f.Segment.Version
	}
	if f.Terminate != nil {
		h.readTerminate(f.Terminate)
	}
	if h.rtrPlace() && f.Length == f.Segment.Len()+len(f.Segment.Payload) {
		f.RTR = mpa.RTROf(rdmap.ZeroLength(&f.Segment))
	}
}

// rtrPlace reports whether the next FPDU is the first one of the Initiator.
func (h *half) rtrPlace() bool {
	o := h.publicHalf()
	return !h.c.pub.Midstream && h.dir == h.c.pub.Initiator && o.FPDUs == 1 && o.Bad+o.Cut == 0 && !h.broken
}

// judge judges an FPDU's contents, and keeps account of them.
func (h *half) judge(f *FPDU) {
	h.openers(f)
	if f.Cut > 0 || f.ULPDU == nil && !f.HasSegment {
		h.uncertain()
		return
	}
	if !f.HasSegment {
		h.countMalformed(f)
		h.reportAt(findShort, f, fmt.Sprintf("a ULPDU of %s holds no DDP header", wording.Bytes(f.Length)),
			"the sender's MPA and DDP do not agree on what a ULPDU is, or the stream is not iWARP from here on")
		return
	}
	if !h.form(f) {
		h.countMalformed(f)
		h.malformed(f)
		return
	}
	h.wellFormed(f)
}

// malformed keeps account of a segment that is of no well-formed message. If its DDP header
// names the queue of its opcode, it takes a number there all the same.
//
// RFC 5041, section 4.3, has DDP number the messages of a queue, whatever is in them. [D17]
func (h *half) malformed(f *FPDU) {
	s := &f.Segment
	info, known := f.Op.Info()
	if s.Tagged || s.Version != h.c.pub.Version || s.QN > rdmap.QNAtomic || known && (info.Tagged || info.QN != s.QN) {
		h.uncertain()
		return
	}
	h.sequence(f)
	h.messages.doubt()        // it may be a request that the other end answers
	h.peer().messages.doubt() // or an answer
}

// wellFormed counts a segment, and judges its place among the others.
func (h *half) wellFormed(f *FPDU) {
	if h.messages.ended {
		h.reportAt(findAfterTerminate, f, fmt.Sprintf("%v after the Terminate of the same sender", f.Op),
			"nothing may follow a Terminate, but the sender's stack goes on after an error")
	}
	if f.right() {
		h.count(f)
		h.hear(f)
	}
	if f.Segment.Tagged {
		h.taggedMessage(f)
	} else {
		h.sequence(f)
	}
	switch {
	case f.ReadRequest != nil:
		h.readRequest(f)
	case f.Op == rdmap.OpReadResponse:
		h.readResponse(f)
	case f.Op == rdmap.OpTerminate:
		h.messages.ended = true
		h.terminate(f)
	case f.Op.Extension():
		h.extension(f)
	}
}

// reportAt reports a finding at an FPDU.
func (h *half) reportAt(k finding, f *FPDU, text, advice string) {
	h.c.reportBytes(k, h.dir, f.Offset, f.Last, h.evidence(k, f), text, advice)
}

// form judges version, opcode and what has to agree with it.
func (h *half) form(f *FPDU) bool {
	s, version := &f.Segment, h.c.pub.Version
	if err := ddp.CheckVersion(&s.Header, version); err != nil {
		h.reportAt(findVersion, f, "DDP: "+err.Reason, fmt.Sprintf(
			"the startup agreed on version %d for both layers and both directions", version))
		return false
	}
	err := rdmap.CheckSegment(s, version)
	if err == nil {
		h.reserved(f)
		return true
	}
	switch {
	case err.Code == rdmap.CodeInvalidVersion:
		h.reportAt(findVersion, f, "RDMAP: "+err.Reason,
			fmt.Sprintf("the startup agreed on version %d for both layers and both directions", version))
	case err.Code == rdmap.CodeDDPInvalidQN:
		h.reportAt(findQueue, f, fmt.Sprintf("%v on queue %d: %s", err.Op, s.QN, err.Reason), rdmap.Queues)
	case err.Code == rdmap.CodeUnexpectedOpcode:
		h.reportAt(findOpcode, f, fmt.Sprintf("%v: %s %s", err.Op, err.Field, err.Reason),
			"the receiver ends the stream with Terminate 0x0206")
	case f.Op == rdmap.OpReadRequest && len(s.Payload) == alignedReadLen:
		h.reportAt(findRead32, f, fmt.Sprintf("RDMA Read Request of %d bytes, where it has %d: as many as a C struct takes whose 64-bit fields are aligned", alignedReadLen, rdmap.ReadRequestLen),
			"the sender must pack the fields: SinkSTag, SinkTO, RDMARDSZ, SrcSTag, SrcTO follow each other without a gap")
	default:
		h.reportAt(findForm, f, fmt.Sprintf("%v: %s %s", err.Op, err.Field, err.Reason),
			"the segment is not a well-formed message")
	}
	return false
}

// reserved looks at bits that are sent as zero.
func (h *half) reserved(f *FPDU) {
	if f.Segment.Rsvd != 0 || f.Segment.RsvdULP&0x30 != 0 {
		h.reportAt(findReserved, f, fmt.Sprintf("reserved bits are set: %#x in DDP's control byte, %#x in RDMAP's",
			f.Segment.Rsvd, f.Segment.RsvdULP>>4&3),
			"they are sent as zero, and ignored on receipt")
	}
}

// right reports whether nothing is wrong with a whole FPDU, whatever is in it.
func (f *FPDU) right() bool { return f.Err == nil && !f.mispadded() }

// countMalformed counts an FPDU without a well-formed message.
func (h *half) countMalformed(f *FPDU) {
	if f.right() {
		h.publicHalf().Malformed++
	}
}

// count counts messages and payload.
func (h *half) count(f *FPDU) {
	o := &h.publicHalf().Ops[f.Op&0xf]
	o.Segments++
	n := uint64(len(f.Segment.Payload))
	if info, _ := f.Op.Info(); !info.Payload && !f.immediate() {
		n = 0 // it is the RDMAP header
	}
	o.Bytes += n
	if f.Segment.Last {
		o.Messages++
		if n == 0 && (f.Segment.Tagged || f.Segment.MO == 0) {
			o.Empty++
		}
	}
}

// taggedMessage judges a Write or a Read Response among its segments.
func (h *half) taggedMessage(f *FPDU) {
	m, s := &h.messages, &f.Segment
	if t := &m.tagged; t.open && (t.op != f.Op || t.stag != s.STag) {
		// RFC 5040, section 5.1: a Write names "exactly one" Tagged Buffer. [P18]
		h.reportAt(findTagged, f, fmt.Sprintf("%v to STag %#08x interrupts a %v to STag %#08x", f.Op, s.STag, t.op, t.stag),
			"a message goes to one STag, and ends with the L bit before the next tagged one")
	}
	m.tagged.open, m.tagged.stag, m.tagged.op = !s.Last, s.STag, f.Op
	if f.Op != rdmap.OpWrite || len(s.Payload) == 0 || len(m.stags) >= MaxSTags {
		return
	}
	if m.stags == nil {
		m.stags = map[uint32]struct{}{}
	}
	m.stags[s.STag] = struct{}{}
}

// sequence judges MSN and MO.
func (h *half) sequence(f *FPDU) {
	s := &f.Segment
	q := &h.messages.queues[s.QN]
	if !q.seen && !q.unknown {
		q.msn = ddp.FirstMSN
	}
	switch {
	case q.unknown:
		q.resume(s)
	case s.MSN != q.msn:
		text := fmt.Sprintf("%v: MSN %d on queue %d, where %d is due", f.Op, s.MSN, s.QN, q.msn)
		advice := "messages of a queue are numbered one by one from 1: the sender left one out or numbers them differently"
		if m := &h.messages; !m.someAll && s.MSN == m.all+1 {
			text += ": it is the number of the message if all queues are counted together"
			advice = "the sender has one counter for all queues: each queue numbers its messages from 1"
		}
		h.reportAt(findMSN, f, text, advice)
		q.resume(s)
	}
	q.seen, q.unknown = true, false
	due := q.due
	switch wrong := q.addSegment(s); {
	case wrong != "":
		h.reportAt(findMO, f, fmt.Sprintf("%v: message %d on queue %d: %s", f.Op, s.MSN, s.QN, wrong),
			"a segment of the message is left out, or the one with the L bit is not its last")
	case uint64(s.MO) != due:
		h.reportAt(findSegmentOrder, f, fmt.Sprintf("%v: MO %d on queue %d in message %d, where %d would be next",
			f.Op, s.MO, s.QN, s.MSN, due), adviceOrder)
	}
	if s.Last {
		h.messages.all++
	}
}

// adviceOrder is about segments that are legal.
//
// RFC 5041, section 5.3: DDP "SHOULD transmit DDP Segments within a DDP Message in increasing MO order for Untagged DDP
// Messages, and in increasing TO order for Tagged DDP Messages." [D25]
const adviceOrder = "another order, and bytes that come twice, are legal, but some receivers refuse them, Linux's siw for one"
