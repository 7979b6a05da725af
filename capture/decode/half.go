package decode

import (
	"bytes"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/recovery"
	"github.com/goiwarp/iwarp/mpa"
)

// A mode is what the next bytes of a direction are taken for.
type mode uint8

const (
	modeSearch mode = iota // anything: a startup frame is searched for
	modeAnswer             // the frame that answers the Initiator's, right here
	modeHold               // not known yet: kept
	modeRtr                // an Rtr frame
	modeFull               // FPDUs
	modeDead               // of no interest
)

// A half is one direction of a connection.
type half struct {
	c    *conn
	dir  capture.Dir
	mode mode
	at   uint64 // stream offset up to which bytes are worked off
	told uint64 // and up to which consumers were told of them
	// failedAt is the last FPDU in error. It may be found once more, in another mode.
	failedAt capture.Span
	buf      []byte // those after it, except in modeFull
	path     path
	in       chunks // where they, and those of FPDUs that are not whole, came from

	from   uint64           // where searching began
	head   []byte           // the first bytes from there on
	headIn [2]capture.Stamp // the packets of the first of them, and of the last
	first  []byte           // those of the direction, as many as a key has, if it is expected to be iWARP
	frame  *Startup
	broken bool // bytes are missing since then
	ended  bool
	end    capture.End
	gaps   []capture.Gap // that may matter yet

	guess    *recovery.Receiver // searches for FPDUs without a startup
	guessed  int                // bytes it was given
	hints    int                // how often it was begun for a segment that may begin with an FPDU
	combed   int                // bytes that were looked at for hints
	doubtful *doubtful
	anchor   anchor
	row      row
	full     full
	messages messages
	due      []due // findings that the peer may answer with a Terminate, the newest last

	origin   uint32 // sequence number of stream offset 0, if originOK
	originOK bool
	acked    uint64 // offset of the other direction up to which this one has received
	ack      uint32 // the last acknowledgment number
}

// acknowledges takes note of what a segment says that its sender has received.
func (h *half) acknowledges(s *capture.Segment) {
	if s.Length > 0 && s.Early == 0 {
		h.origin, h.originOK = s.Seq-uint32(s.Offset), true
	}
	p := h.peer()
	if t := &h.c.tcp.Halves[p.dir]; !p.originOK && t.SYN != 0 {
		p.origin, p.originOK = t.ISN+1, true
	}
	if !s.Flags.Has(capture.ACK) {
		return
	}
	if h.ack = s.Ack; !p.originOK {
		return
	}
	next := h.c.tcp.Halves[p.dir].Next()
	if at := int64(next) + int64(int32(s.Ack-p.origin-uint32(next))); at > int64(h.acked) {
		h.acked = uint64(at)
		p.messages.acknowledged(h.acked, capture.Stamp{Number: s.Packet.Number, Time: s.Packet.Time})
	}
}

// unsure reports whether the sender has received bytes that are not, or not yet, in the
// capture, so that what it does may be an answer to these.
func (h *half) unsure() bool {
	p := h.peer()
	return h.broken || p.broken || !p.originOK || h.missed()
}

// missed reports whether the sender has received bytes that did not come up until now, or may have, as nothing of the
// other direction did.
func (h *half) missed() bool {
	if x := h.c.over; x != nil {
		return x.missed(h.dir.Peer())
	}
	if h.peer().unseen() {
		return true
	}
	t := &h.c.tcp.Halves[h.dir.Peer()]
	fin := uint64(0)
	if t.Ended() {
		fin = 1 // which takes one number
	}
	return h.acked > t.Next()+fin
}

// publicHalf is the direction's part of what consumers see.
func (h *half) publicHalf() *Half { return &h.c.pub.Halves[h.dir] }

// peer is the other direction.
func (h *half) peer() *half { return &h.c.halves[h.dir.Peer()] }

// data takes the next bytes.
func (h *half) data(d *capture.Data) {
	if n := len(h.first); h.c.expected && n < mpa.KeyLen && d.Offset == uint64(n) {
		h.first = append(h.first, d.Bytes[:min(len(d.Bytes), mpa.KeyLen-n)]...)
	}
	if h.mode == modeDead {
		h.at = d.Offset + uint64(len(d.Bytes))
		return
	}
	if h.mode == modeHold && len(h.buf) == 0 {
		h.c.start.knew = h.missed()
	}
	h.in.push(d, h.cutOf(d.Packet.Number))
	h.consume(d.Bytes)
	h.c.meetAhead()
	if h.mode == modeSearch && h.mayMissStartup() && !h.anchored(d) {
		h.guessAt(d)
		if h.mode == modeSearch {
			h.inRow(d)
		}
	}
	if h.mode != modeFull && h.guess == nil && !h.anchor.open && h.row.segments == 0 {
		h.in.drop(h.at)
	}
}

// consume works off bytes in the direction's mode, and keeps those that need more bytes
// after them.
func (h *half) consume(b []byte) {
	if len(h.buf) > 0 {
		h.buf = append(h.buf, b...)
		b = h.buf
	}
	for len(b) > 0 {
		before := h.mode
		n := h.step(b)
		b = b[n:]
		if before != modeFull && h.mode != modeFull {
			h.at += uint64(n)
		}
		if n == 0 && h.mode == before {
			break
		}
	}
	if len(b) == 0 {
		h.buf = h.buf[:0]
		return
	}
	if len(b) > maxHeld {
		h.buf = b
		if h.unanswered() {
			return
		}
		h.at += uint64(len(b))
		h.buf, h.mode = nil, modeDead
		return
	}
	h.buf = append(h.buf[:0], b...)
}

// step works off the first bytes, and returns how many.
func (h *half) step(b []byte) int {
	switch h.mode {
	case modeSearch:
		return h.search(b)
	case modeAnswer:
		return h.answer(b)
	case modeRtr:
		return h.rtr(b)
	case modeFull:
		h.feed(h.at, b)
		return len(b)
	case modeDead:
		return len(b)
	}
	return 0
}

// gap takes note of bytes that are missing.
func (h *half) gap(g *capture.Gap) {
	if h.cutFrame(g) {
		return
	}
	end := g.Offset + g.Length
	h.broken = true
	h.noteGap(g)
	if h.c.pub != nil {
		h.missing(g)
	}
	switch h.mode {
	case modeFull:
		h.skip(end)
		h.account(g.Offset, end, g.Packet)
		return
	case modeAnswer, modeHold, modeRtr:
		h.lost()
	}
	h.account(g.Offset, end, g.Packet)
	h.buf, h.frame, h.anchor, h.row = nil, nil, anchor{}, row{}
	h.at, h.from, h.head = end, end, nil
	if h.guess != nil {
		h.guess.SkipTo(end)
		h.guesses()
	} else {
		h.in.drop(end)
	}
}

// finish takes note of the end of a direction.
func (h *half) finish(e *capture.End) {
	if len(h.buf) > 0 || h.peer().unseen() { // else the answer that it has had may be captured late
		h.unanswered()
	}
	if h.mode == modeSearch && h.guess != nil {
		h.guess.SkipTo(1 << 62)
		h.guesses()
	}
	if d := h.doubtful; h.mode == modeSearch && d != nil && d.whole {
		h.inError(d)
	}
	h.ended, h.end = true, *e
	if h.c.pub == nil {
		return
	}
	switch h.mode {
	case modeFull:
		h.flush(e)
	case modeSearch, modeAnswer, modeHold, modeRtr:
		h.c.unfinished(h, e)
	}
}

// search searches for a startup frame.
func (h *half) search(b []byte) int {
	if i := mpa.FindKey(b); i > 0 {
		h.stream(b[:i])
		return i
	}
	f, more := h.parse(b)
	switch {
	case more:
		return 0
	case f == nil:
		h.stream(b[:1])
		return 1
	}
	if !h.c.handleFrame(h, f) {
		candidate := h.frame
		h.stream(b[:f.Size])
		h.frame = candidate
	}
	return f.Size
}

// stream passes over streaming data. The beginning is kept: it may turn out to be a
// private data message.
func (h *half) stream(b []byte) {
	h.frame = nil
	const most = 2 + mpa.MaxPrivateData
	if h.at == h.from {
		h.head = nil
		if len(b) > 0 && b[0] > mpa.MaxPrivateData>>8 {
			return // no length of one
		}
	} else if h.head == nil {
		return
	}
	if len(h.head) > most {
		return
	}
	first, last := h.in.stamps(h.at, h.at+uint64(len(b)))
	if h.headIn[1] = last; len(h.head) == 0 {
		h.headIn[0] = first
	}
	h.head = append(h.head, b[:min(len(b), most+1-len(h.head))]...)
}

// parse returns the startup frame at the beginning of b; more tells that there may be
// one when more bytes are there.
func (h *half) parse(b []byte) (f *Startup, more bool) {
	kind, more := frameKind(b)
	if kind == 0 {
		return nil, more
	}
	size := mpa.StartKeyLen
	var fields mpa.StartupFrame
	if kind != FrameStartKey {
		var err error
		switch fields, err = mpa.ParseStartup(b); {
		case len(b) < mpa.StartupHeaderLen:
			return nil, true
		case mpa.StartupFrame(b).PDLength() > mpa.MaxPrivateData:
			fields = mpa.StartupFrame(b[:mpa.StartupHeaderLen]) // nobody takes what follows
		case err != nil:
			return nil, true
		}
		size = len(fields)
	}
	f = &Startup{Frame: kind, Dir: h.dir, Offset: h.at, Size: size, Bytes: bytes.Clone(b[:size])}
	f.First, f.Last = h.in.stamps(h.at, h.at+uint64(size))
	if fields != nil {
		f.Fields = mpa.StartupFrame(f.Bytes)
		f.PrivateData = privateData(f)
	}
	return f, false
}

// privateData returns the ULP's private data of a frame.
func privateData(f *Startup) []byte {
	if len(f.Fields) == mpa.StartupHeaderLen {
		return nil
	}
	return f.Fields.ULPData()
}

var keys = [...]struct {
	key  string
	kind Frame
}{
	{mpa.KeyRequest, FrameRequest}, {mpa.KeyReply, FrameReply}, {mpa.KeyRtr, FrameRtr},
	{mpa.KeyRtrInLetters, FrameRtr}, {mpa.KeyStart, FrameStartKey},
}

// frameKind tells a frame by its key.
func frameKind(b []byte) (kind Frame, more bool) {
	for _, k := range keys {
		n := min(len(b), len(k.key))
		if string(b[:n]) != k.key[:n] {
			continue
		}
		if len(b) < mpa.KeyLen {
			return 0, true
		}
		return k.kind, false
	}
	return 0, false
}

// wholeSegment reports whether a frame is all that its TCP segment holds.
func (h *half) wholeSegment(f *Startup) bool {
	c := h.in.at(f.Offset)
	return c != nil && c.segment.Offset == f.Offset && c.segment.Length == f.Size
}
