package decode

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// answer takes the first bytes of the direction that has to answer, and has sent
// nothing yet.
func (h *half) answer(b []byte) int {
	c := h.c
	if c.tcp.Halves[h.dir].Midstream { // these are not the first bytes
		h.mode = modeSearch
		return 0
	}
	f, more := h.parse(b)
	want := FrameReply
	if c.start.request.Frame == FrameStartKey {
		want = FrameStartKey
	}
	switch {
	case more:
		return 0
	case f != nil && f.Frame == want:
		c.answered(h, f)
		return f.Size
	case len(b) < mpa.KeyLen:
		return 0
	}
	c.wrongAnswer(h, b)
	h.mode = modeSearch // the answer may come all the same
	if f == nil {
		return 0
	}
	c.reportStartup(f)
	h.from = f.Offset + uint64(f.Size)
	return f.Size
}

// wrongAnswer reports bytes that are no answer.
func (c *conn) wrongAnswer(h *half, b []byte) {
	c.start.wrong = true
	if c.start.machine == nil {
		return // the Request was of no dialect, and is reported
	}
	_, last := h.in.stamps(h.at, h.at+uint64(min(len(b), mpa.KeyLen)))
	_, err := c.start.machine.Input(c.start.time, b[:min(len(b), mpa.KeyLen)])
	c.faulty(findWrongKey, h.dir, h.at, last, fault{request: c.start.request}, err)
	c.start.run() // for an answer that comes after it
}

// faulty reports why a startup fails, as a machine has found.
func (c *conn) faulty(k finding, dir capture.Dir, at uint64, p capture.Stamp, f fault, err error) {
	var s *mpa.StartupError
	if !errors.As(err, &s) {
		return
	}
	f.failure, f.reason, f.hint = s.Failure, s.Err.Reason, s.Err.Hint
	if f.frame != nil {
		at += s.Err.Offset
	}
	c.report(k, dir, at, p, f.String(), f.advice())
}

// answered takes the Responder's frame.
func (c *conn) answered(h *half, f *Startup) {
	if c.start.left != nil {
		c.gaveUp()
		c.lateAnswer(h, f)
		return
	}
	c.early(f)
	c.reportStartup(f)
	c.note(f)
	c.decide(h, f)
}

// decide decides by the Responder's frame what the startup leads to.
func (c *conn) decide(h *half, f *Startup) {
	c.start.pending, c.start.reply = false, f
	if f.Frame == FrameStartKey {
		c.pub.Revisions[f.Dir] = int(mpa.StartKey(f.Bytes).Rev())
		c.judgeStartKey(f)
	}
	h.from = f.Offset + uint64(f.Size)
	if c.start.machine == nil {
		c.backToStreaming(f)
		return
	}
	_, err := c.start.machine.Input(f.Last.Time, c.start.taken(f))
	switch {
	case err != nil:
		c.mismatch(f, err)
		c.backToStreaming(f)
	case c.start.machine.Rejected() != nil:
		c.pub.Rejected = true
		c.judgeReply(f)
		r := c.start.machine.Rejected()
		c.report(findRejected, f.Dir, f.Offset, f.Last,
			"the Responder has rejected the connection"+rejectedWith(f, r), r.Hint)
		c.backToStreaming(f)
	default:
		c.agree(f)
	}
}

// early looks for bytes of the Initiator that came before the answer: there is nothing
// that it may send then. Where it had acknowledged the answer already, only the capture has the two in another order. [Q09] [K03]
func (c *conn) early(f *Startup) {
	i := &c.halves[f.Dir.Peer()]
	first, _ := i.in.stamps(i.at, i.at+uint64(len(i.buf)))
	if len(i.buf) > 0 && first.Number < f.First.Number && !c.start.knew && !i.unsure() {
		c.report(findEarly, i.dir, i.at, first, wording.Bytes(len(i.buf))+
			" come after the Initiator's frame and before the answer",
			"the Initiator must wait for the answer: Linux's siw and Chelsio's cxgb4 end the connection on such bytes")
	}
}

func rejectedWith(f *Startup, r *mpa.RejectError) string {
	if f.Cut > 0 {
		return ", with private data that was cut off"
	}
	if len(r.PrivateData) == 0 {
		return ", without private data"
	}
	return fmt.Sprintf(", with private data: %s", ulpdata.Describe(r.PrivateData))
}

// mismatch reports an answer that the Initiator cannot take.
func (c *conn) mismatch(f *Startup, err error) {
	if f.Frame == FrameStartKey {
		return // judgeStartKey has said so
	}
	kind := findReply
	var s *mpa.StartupError
	if errors.As(err, &s) && (s.Failure == mpa.FailureRevision ||
		s.Failure == mpa.FailureMismatch && f.Fields.Rev() == 0) {
		kind = findRevisions // both may keep to the rules: the kinds of RNIC do not fit [N04]
	}
	c.faulty(kind, f.Dir, f.Offset, f.Last, fault{frame: f, request: c.start.request}, err)
}

// backToStreaming goes back to streaming mode: the startup has not led to Full Operation.
func (c *conn) backToStreaming(f *Startup) {
	responder := &c.halves[f.Dir]
	initiator := responder.peer()
	for _, h := range []*half{initiator, responder} {
		h.mode, h.head, h.frame = modeSearch, nil, nil
	}
	initiator.from = initiator.at
	responder.from = f.Offset + uint64(f.Size)
	c.lenient = !c.pub.Rejected
	if c.lenient && !initiator.broken && !responder.broken {
		initiator.anchor.drop(initiator.at, initiator.buf)
		responder.anchor.drop(responder.from, nil)
		initiator.weigh()
	}
	initiator.consume(nil)
}

// agree enters Full Operation.
func (c *conn) agree(f *Startup) {
	n := c.start.machine.Negotiated()
	p, i, r := c.pub, c.pub.Initiator, c.pub.Responder()
	p.Agreed, p.Dialect, p.Version, p.CRC = true, n.Dialect, n.DDPVersion, n.CRC
	p.Markers[i], p.Markers[r] = n.MarkersSend, n.MarkersReceive
	c.plainRevision0(f)
	c.judgeReply(f)
	if q, a := p.Enhanced[i], p.Enhanced[r]; q != nil && a != nil && n.Enhanced {
		p.RTR.PeerToPeer = q.A || a.A
		p.RTR.Offered, p.RTR.Answered = q.RTR(), a.RTR()
	}
	responder := &c.halves[f.Dir]
	initiator := responder.peer()
	responder.operate(f.Offset + uint64(f.Size))
	if c.start.wrong {
		responder.uncertain() // it may have sent messages already
	}
	if n.Dialect == mpa.DialectRtr {
		initiator.mode = modeRtr
	} else {
		initiator.operate(initiator.at)
	}
	initiator.consume(nil)
}

// plain reports whether a Request and its Reply are of revision 0 and ask for neither
// markers nor CRCs.
func (s *startup) plain(reply *Startup) bool {
	q, a := s.request.Fields, reply.Fields
	return q != nil && a != nil && q.Rev() == 0 && a.Rev() == 0 && !q.M() && !q.C() && !a.M() && !a.C()
}

// taken returns the bytes of a Reply for the machine, which holds revision 0 to M=1 and
// C=1: the sender of a plain Request expects no such Reply.
func (s *startup) taken(reply *Startup) []byte {
	if !s.plain(reply) {
		return reply.padded()
	}
	fields := reply.Fields.Fields()
	fields.M, fields.C = true, true
	return mpa.AppendStartup(nil, &fields)
}

// plainRevision0 looks for frames of revision 0 that ask for neither markers nor CRCs,
// which are from no RNIC of the RDMA Consortium. [N05]
func (c *conn) plainRevision0(f *Startup) {
	if !c.start.plain(f) {
		return
	}
	c.pub.CRC, c.pub.Markers, c.pub.Version = false, [2]bool{}, versionUnknown
	c.report(findPlain0, f.Dir, f.Offset+16, f.Last,
		"both ends send revision 0 with M=0 and C=0: the connection is read without markers and CRCs",
		"RNICs of the RDMA Consortium set both; Linux's siw treats revision 0 like revision 1")
}

// rtr takes the Rtr frame.
func (h *half) rtr(b []byte) int {
	f, more := h.parse(b)
	if more {
		return 0
	}
	if f == nil || f.Frame != FrameRtr {
		_, last := h.in.stamps(h.at, h.at+1)
		h.c.report(findNoRtrFrame, h.dir, h.at, last,
			"no Rtr frame follows an accepting Reply with S=1: the connection is read as plain revision 1, in which S is a reserved bit",
			"a Responder that only echoes reserved bits, as Linux's siw does, gives no sign of the 2007 proposal")
		h.c.pub.Dialect = mpa.DialectRFC5044
		h.operate(h.at)
		return 0
	}
	h.c.reportStartup(f)
	h.c.judgeRtr(f)
	h.operate(f.Offset + uint64(f.Size))
	return f.Size
}

// lost gives up a startup of which bytes are missing.
func (h *half) lost() {
	c := h.c
	c.start.pending = false
	for i := range c.halves {
		x := &c.halves[i]
		if x.mode == modeFull {
			continue
		}
		x.mode, x.broken = modeSearch, true
		x.from, x.head, x.frame = x.at, nil, nil
		x.at += uint64(len(x.buf))
		x.buf = nil
	}
}

// unanswered goes on after a Request whose answer is not in the capture, though its sender
// has received one, or nothing of the other end is: what was sent since is searched for FPDUs. It
// reports whether that was done.
func (h *half) unanswered() bool {
	if h.mode != modeHold || !h.c.start.pending || !h.missed() {
		return false
	}
	held := h.buf
	h.buf = nil
	h.lost()
	h.anchor.drop(h.at, held)
	if h.weigh() {
		return true
	}
	h.anchor = anchor{}
	h.guess = h.newGuess()
	for len(held) > 0 {
		part := held[:min(len(held), maxGuess/2)]
		held = held[len(part):]
		h.consumeHeld(part)
	}
	return true
}

// consumeHeld takes bytes that were held.
func (h *half) consumeHeld(b []byte) {
	if h.mode == modeFull {
		h.feed(h.at, b)
		return
	}
	at := h.at
	if h.at += uint64(len(b)); h.guess != nil {
		h.guess.Segment(at, b)
		h.guesses()
	}
}

// unexpected reports what a connection begins with that is expected to be iWARP, and is
// not.
func (c *conn) unexpected() {
	if !c.expected && !c.keyed || c.pub.Startups > 0 || c.pub.Midstream || c.pub.startupSeen() > 0 {
		return
	}
	h := &c.halves[capture.Forward]
	if h.end.Offset+h.peer().end.Offset == 0 {
		c.empty()
		return
	}
	text := fmt.Sprintf("no startup frame, in %s", wording.Bytes(h.end.Offset))
	m := mpa.NewResponder(mpa.ResponderConfig{Timeout: -1, Dialects: dialectsAll})
	m.Start(c.tcp.First.Time)
	var s *mpa.StartupError
	_, err := m.Input(c.tcp.First.Time, h.first)
	other := errors.As(err, &s)
	if c.pub.Unseen && (c.tcp.Halves[h.dir].Midstream || !other) {
		c.notCaptured()
		return
	}
	if other {
		text += ": " + s.Err.Reason
	}
	c.report(findWrongKey, h.dir, 0, c.tcp.First, text,
		"the port serves something else, the two ends speak TLS, or the connection has never come to its startup")
}
