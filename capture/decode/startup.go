package decode

import (
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// startup is a startup under way. It runs the Initiator's machine on what the
// Responder has sent.
type startup struct {
	pending bool // the Initiator's frame was there, the answer was not
	wrong   bool // there was something else in place of the answer
	request *Startup
	reply   *Startup
	ahead   *Startup       // a Reply that was captured before the Request
	offer   mpa.Offer      // of the Request, without a Dialect if it is of none
	machine *mpa.Initiator // nil then
	time    time.Time
	ack     uint32   // what the Initiator had acknowledged when it sent its frame
	knew    bool     // it had acknowledged more than had come up when it sent the first bytes after its frame
	left    *half    // the end that has closed the connection before the startup was complete
	given   *givenUp // what is to be said of that yet, or nil
}

// run starts the machine.
func (s *startup) run() {
	if s.offer.Dialect == 0 {
		return
	}
	if m, err := mpa.NewInitiator(s.offer); err == nil {
		m.Start(s.time)
		s.machine = m
	}
}

// reportStartup reports a startup frame, or streaming data in front of one.
func (c *conn) reportStartup(s *Startup) {
	c.halves[s.Dir].account(s.Offset, s.Offset+uint64(s.Size), s.Last)
	c.d.to.Startup(c.pub, s)
}

// handleFrame takes a startup frame that was found where anything may be, and reports whether
// it is one: a key may stand in any text.
func (c *conn) handleFrame(h *half, f *Startup) bool {
	immediate := f.Offset == h.from && (f.Offset > 0 || !c.tcp.Halves[h.dir].Midstream)
	sure := immediate || h.wholeSegment(f)
	switch {
	case c.start.pending:
		return c.meetAnswer(h, f)
	case f.Frame == FrameStartKey:
		return c.meetStartKey(h, f, sure)
	case f.Frame == FrameRequest && sure:
		c.beginStartup(h, f)
		return true
	case f.Frame == FrameRequest:
		h.frame = f // and an answer makes it one
	case f.Frame == FrameReply:
		return c.meetReply(h, f, immediate)
	}
	return false
}

// meetAnswer takes a frame in place of the answer.
func (c *conn) meetAnswer(h *half, f *Startup) bool {
	if h.dir == c.pub.Initiator {
		return false
	}
	want := FrameReply
	if c.start.request.Frame == FrameStartKey {
		want = FrameStartKey
	}
	if f.Frame != want {
		return false
	}
	c.answered(h, f)
	return true
}

// meetStartKey takes a Start Key. One after a private data message is one.
func (c *conn) meetStartKey(h *half, f *Startup, sure bool) bool {
	m := h.opening(f)
	if sure || m != nil {
		c.messages(h, m)
		c.beginStartup(h, f)
		return true
	}
	if p := h.peer(); p.frame != nil && p.frame.Frame == FrameStartKey && p.at == p.frame.Offset+uint64(p.frame.Size) {
		c.beginStartup(p, p.frame)
		c.answered(h, f)
		return true
	}
	h.frame = f
	return false
}

// meetReply takes a Reply to a Request that could have been any text until now, or to
// none.
func (c *conn) meetReply(h *half, f *Startup, immediate bool) bool {
	p := h.peer()
	if q := p.frame; q != nil && q.Frame == FrameRequest && p.at == q.Offset+uint64(q.Size) {
		c.beginStartup(p, q)
		c.answered(h, f)
		return true
	}
	if !immediate || c.pub != nil && c.pub.Startups > 0 {
		return false
	}
	if c.pub == nil || c.pub.startupSeen() == 0 {
		c.found()
		c.pub.Initiator, c.pub.Midstream = h.dir.Peer(), p.broken || c.tcp.Halves[p.dir].Midstream
		c.lenient, c.pub.Version = true, versionUnknown
		if p.at == 0 && !c.pub.Midstream && !h.unsure() {
			defer c.report(findReplyFirst, h.dir, f.Offset, f.Last,
				"an MPA Reply Frame from an end that nothing was sent to",
				mpa.FailureResponderResponder.Hint())
		}
	}
	c.reportStartup(f)
	c.note(f)
	if h.missed() {
		h.from, c.start.ahead = f.Offset+uint64(f.Size), f
	}
	return true
}

// meetAhead takes a Reply that was captured before its Request: its sender had received the Request, so that only the
// capture has them in this order. If more was captured between the two, FPDUs are searched for.
func (c *conn) meetAhead() {
	f := c.start.ahead
	if f == nil || !c.start.pending {
		return
	}
	c.start.ahead = nil
	h := &c.halves[f.Dir]
	if h.mode == modeAnswer && h.at == h.from {
		c.decide(h, f)
		return
	}
	h.lost() // what came after the Reply was passed over
}

// opening returns the private data message in front of a Start Key, if all that was
// sent before is one.
func (h *half) opening(f *Startup) *Startup {
	m, err := mpa.ParsePrivateDataMessage(h.head)
	if err != nil || uint64(len(m)) != f.Offset-h.from || len(m) != len(h.head) {
		return nil
	}
	s := &Startup{Frame: FrameMessage, Dir: h.dir, Offset: h.from, Size: len(m), Bytes: m,
		PrivateData: m.PrivateData()}
	s.First, s.Last = h.headIn[0], h.headIn[1]
	return s
}

// messages reports the private data messages of both ends: the Responder's comes before
// the Initiator's Start Key.
func (c *conn) messages(h *half, m *Startup) {
	if m == nil {
		return
	}
	c.found()
	c.reportStartup(m)
	c.pub.PrivateData[h.dir] = m.PrivateData
	p := h.peer()
	if answer, err := mpa.ParsePrivateDataMessage(p.head); err == nil && uint64(len(answer)) == p.at-p.from {
		s := &Startup{
			Frame: FrameMessage, Dir: p.dir, Offset: p.from, Size: len(answer), First: p.headIn[0], Last: p.headIn[1],
			Bytes: answer, PrivateData: answer.PrivateData(),
		}
		c.reportStartup(s)
		c.pub.PrivateData[p.dir] = s.PrivateData
		p.from = p.at
	}
	h.from = h.at
}

// beginStartup begins a startup with the Initiator's frame.
func (c *conn) beginStartup(h *half, f *Startup) {
	c.found()
	p := h.peer()
	c.streaming(h, f)
	c.pub.Initiator, c.pub.Rejected, c.pub.Agreed = h.dir, false, false
	c.pub.Startups++
	c.start = startup{pending: true, request: f, time: f.Last.Time, ack: h.ack, ahead: c.start.ahead}
	c.reportStartup(f)
	c.note(f)
	var offer mpa.Offer
	if f.Frame == FrameStartKey {
		k := mpa.StartKey(f.Bytes)
		c.pub.Dialect, c.pub.Revisions[h.dir] = mpa.DialectStartKey, int(k.Rev())
		offer = mpa.Offer{Dialect: mpa.DialectStartKey, Markers: k.M(), NoCRC: !k.C(), Timeout: -1}
		c.judgeStartKey(f)
	} else {
		offer = c.judgeRequest(f)
	}
	c.start.offer = offer
	c.start.run()
	h.mode = modeHold
	if p.mode = modeSearch; p.at == p.from && !p.broken {
		p.mode = modeAnswer
	}
	h.guess, p.guess = nil, nil
}

// streaming reports what each end has sent before the startup.
func (c *conn) streaming(h *half, f *Startup) {
	for _, x := range []*half{h, h.peer()} {
		end := x.at
		if x == h {
			end = f.Offset
		}
		if end > x.from {
			c.reportStartup(&Startup{
				Frame: FrameStreaming, Dir: x.dir, Offset: x.from, Size: int(end - x.from),
				First: f.First, Last: f.Last,
			})
		}
	}
}

// note keeps what a frame says for the summary.
func (c *conn) note(f *Startup) {
	if len(f.PrivateData) > 0 {
		c.pub.PrivateData[f.Dir] = f.PrivateData
	}
	if f.Fields == nil {
		return
	}
	c.pub.Revisions[f.Dir] = int(f.Fields.Rev())
	if len(f.Fields) >= mpa.StartupHeaderLen+mpa.EnhancedLen {
		if e, ok := f.Fields.Enhanced(); ok {
			c.pub.Enhanced[f.Dir] = &e
		}
	}
}
