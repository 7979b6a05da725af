package decode

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/mpa"
)

// answer takes the first octets of the direction that has to answer, and has sent
// nothing yet.
func (h *half) answer(b []byte) int {
	c := h.c
	if c.tcp.Halves[h.dir].Midstream { // these are not the first octets
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
	c.start.pending = false
	h.mode, h.peer().mode = modeDead, modeDead // the Initiator has to close it
	return 0
}

// wrongAnswer reports octets that are no answer.
func (c *conn) wrongAnswer(h *half, b []byte) {
	_, last := h.in.stamps(h.at, h.at+uint64(min(len(b), mpa.KeyLen)))
	text, advice := "what comes in place of the answer is none", ""
	if c.start.machine != nil {
		_, err := c.start.machine.Input(c.start.time, b[:min(len(b), mpa.KeyLen)])
		if e := mpaError(err); e != nil {
			text, advice = "no answer to the "+c.start.request.Frame.String()+": "+neutral(e.Reason, theResponder), neutral(e.Hint, theResponder)
		}
	}
	c.report(findWrongKey, h.dir, h.at, last, text, advice)
}

// neutral returns what a machine says of its peer without its point of view.
func neutral(text, peer string) string {
	return strings.NewReplacer(" our ", " the ", "the peer", peer).Replace(text)
}

const theInitiator, theResponder = "the Initiator", "the Responder"

// mpaError returns the error of MPA in err, nil if there is none.
func mpaError(err error) *mpa.Error {
	var e *mpa.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// answered takes the Responder's frame.
func (c *conn) answered(h *half, f *Startup) {
	c.early(f)
	c.start.pending, c.start.reply = false, f
	c.d.to.Startup(c.pub, f)
	c.note(f)
	if f.Frame == FrameStartKey {
		c.pub.Revisions[f.Dir] = int(mpa.StartKey(f.Octets).Rev())
		c.judgeStartKey(f)
	}
	h.from = f.Offset + uint64(f.Size)
	if c.start.machine == nil {
		c.leave(f)
		return
	}
	_, err := c.start.machine.Input(f.Last.Time, f.Octets)
	switch {
	case err != nil:
		c.mismatch(f, err)
		c.leave(f)
	case c.start.machine.Rejected() != nil:
		c.pub.Rejected = true
		c.judgeReply(f)
		r := c.start.machine.Rejected()
		c.report(findRejected, f.Dir, f.Offset, f.Last, "the Responder has rejected the connection"+rejectedWith(r), r.Hint)
		c.leave(f)
	default:
		c.agree(f)
	}
}

// early looks for octets of the Initiator that came before the answer: there is nothing
// that it may send then. [Q09] [K03]
func (c *conn) early(f *Startup) {
	i := &c.halves[f.Dir.Peer()]
	first, _ := i.in.stamps(i.at, i.at+uint64(len(i.buf)))
	if len(i.buf) > 0 && first.Number < f.First.Number && !i.unsure() {
		c.report(findEarly, i.dir, i.at, first, octets(uint64(len(i.buf)))+" behind the Initiator's frame, before the answer",
			"the Initiator must wait for the answer: Linux's siw and Chelsio's cxgb4 end the connection on such octets")
	}
}

func rejectedWith(r *mpa.RejectError) string {
	if len(r.PrivateData) == 0 {
		return ", without private data"
	}
	return fmt.Sprintf(", with private data: %s", mpa.DescribePrivateData(r.PrivateData))
}

// mismatch reports an answer that the Initiator cannot take.
func (c *conn) mismatch(f *Startup, err error) {
	e := mpaError(err)
	kind := findReply
	var s *mpa.StartupError
	if errors.As(err, &s) {
		switch {
		case s.Failure == mpa.FailureRevision:
			kind = findRevisions // both may keep to the rules: the kinds of RNIC do not fit [N04]
		case s.Failure == mpa.FailureMismatch && f.Fields != nil && f.Fields.Rev() == 0:
			kind = findRevisions
		}
	}
	c.report(kind, f.Dir, f.Offset+e.Offset, f.Last, neutral(e.Reason, theResponder), neutral(e.Hint, theResponder))
}

// leave goes back to streaming mode: the startup has not led to Full Operation.
func (c *conn) leave(f *Startup) {
	responder := &c.halves[f.Dir]
	initiator := responder.peer()
	for _, h := range []*half{initiator, responder} {
		h.mode, h.head, h.frame = modeSearch, nil, nil
	}
	initiator.from = initiator.at
	responder.from = f.Offset + uint64(f.Size)
	c.lenient = !c.pub.Rejected
	initiator.take(nil)
}

// agree enters Full Operation.
func (c *conn) agree(f *Startup) {
	n := c.start.machine.Negotiated()
	c.start.neg = n
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
	if n.Dialect == mpa.DialectRtr {
		initiator.mode = modeRtr
	} else {
		initiator.operate(initiator.at)
	}
	initiator.take(nil)
}

// plainRevision0 looks for frames of revision 0 that ask for neither markers nor CRCs,
// which are from no RNIC of the RDMA Consortium. [N05]
func (c *conn) plainRevision0(f *Startup) {
	q := c.start.request.Fields
	if c.pub.Dialect != mpa.DialectRevision0 || q.M() || q.C() || f.Fields.M() || f.Fields.C() {
		return
	}
	c.pub.CRC, c.pub.Markers, c.pub.Version = false, [2]bool{}, versionUnknown
	c.report(findPlain0, f.Dir, f.Offset+16, f.Last, "revision 0 with M=0 and C=0 from both ends: read as the bits say",
		"RNICs of the RDMA Consortium set both; Linux's siw takes revision 0 for revision 1")
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
			"no Rtr frame behind an accepting Reply with S=1: taken for plain revision 1, in which S is a reserved bit",
			"a Responder that only echoes reserved bits, as Linux's siw does, gives no sign of the 2007 proposal")
		h.c.pub.Dialect = mpa.DialectRFC5044
		h.operate(h.at)
		return 0
	}
	h.c.d.to.Startup(h.c.pub, f)
	h.c.judgeRtr(f)
	h.operate(f.Offset + uint64(f.Size))
	return f.Size
}

// lost gives up a startup of which octets are missing.
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

// unfinished reports a startup that the end of a direction leaves open.
func (c *conn) unfinished(h *half, e *capture.End) {
	if !c.start.pending || c.start.machine == nil || h.dir == c.pub.Initiator || h.broken {
		return
	}
	c.start.pending = false
	if e.Reason == capture.EndCapture || e.Reason == capture.EndEvicted {
		c.report(findOpen, h.dir, h.at, e.Packet, "the capture ends before the startup is complete", "")
		return
	}
	_, _ = c.start.machine.Input(e.Packet.Time, h.buf)
	err := c.start.machine.PeerClosed(io.EOF)
	text, advice := "the connection was closed on the Initiator's frame", ""
	var reject *mpa.RejectError
	if s := mpaError(err); s != nil {
		text, advice = neutral(s.Reason, theResponder), neutral(s.Hint, theResponder)
	} else if errors.As(err, &reject) {
		text, advice = "the Responder has closed the connection, which is how it rejects", reject.Hint
	}
	c.report(findClosed, h.dir, h.at, e.Packet, text, advice)
}
