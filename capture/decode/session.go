package decode

import (
	"container/list"
	"fmt"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/sctp"
)

// A Session is what a Connection over SCTP has: it is a DDP Stream Session (RFC 5043).
type Session struct {
	// Number counts the sessions of a capture from 0, in the order of their first messages.
	Number int
	// SCTP is the association below.
	SCTP *capture.Association
	// Stream is the identifier of the pair of SCTP streams.
	Stream uint16
	// None tells that the association ended without a session, and this stands for it.
	None bool
	// Refused tells that the passive end has answered with a Terminate.
	Refused bool
	// Terminated tells for each direction whether its sender has ended the session.
	Terminated [2]bool
	// Ahead counts for each direction the messages that came ahead of others, and Repeated
	// the DDP-SSNs that were used twice.
	Ahead, Repeated [2]uint64
}

// A session is a Session in the making.
type session struct {
	c     *conn
	on    *association
	id    uint16
	sides [2]side

	active capture.Dir
	begun  bool             // by an Initiate, or what is in its place
	unfit  bool             // that is malformed
	asked  *capture.Message // that one, without its bytes
	answer bool             // the passive end has answered
	over   bool             // its last message has come
	ended  bool             // the consumer knows of its end
	told   Session
	doubts []doubted
	sure   bool // while suspicions are told of
	place  *list.Element
	kept   int // bytes of all messages that wait
}

// A side is what one end has said.
type side struct {
	sure   bool   // next is known
	next   uint64 // the number of the message that is due: the DDP-SSN is its low 16 bits
	tsn    uint32 // the lowest that may be that of the next message
	offset uint64 // bytes of all messages before
	ahead  map[uint64]*capture.Message
	start  uint64 // the first number, where the beginning was not captured
	odd    uint64 // messages in no form of DDP, which may have taken a DDP-SSN

	last capture.Stamp // the packet of its Terminate or Reject, if it has sent one
}

// Bounds of what waits for a message before it.
const (
	maxAhead = 1 << 20 // bytes of a session
	heldCost = 192     // of one message, beside its own bytes
)

// pub is what consumers see.
func (x *session) pub() *Connection { return x.c.pub }

// session returns the session that a message is of. It may be a new one; nil if the message
// is of none.
func (a *association) session(m *capture.Message) *session {
	x := a.streams[m.Stream]
	if x != nil && x.restarted(m) {
		x.finish(capture.Finish{Reason: capture.EndSession, Packet: m.First})
		x = nil
	}
	if x != nil {
		return x
	}
	if function(m) == sctp.FunctionTerminate && a.used[m.Stream] {
		return nil // the two ends have ended a session at the same time
	}
	x = a.startSession(Session{SCTP: a.of, Stream: m.Stream}, m.First)
	x.midstream(m)
	return x
}

// function returns the Function Code of a legal session control message, without what RFC
// 6581 adds to it; 0 if it is none.
func function(m *capture.Message) sctp.Function {
	if m.PPID != sctp.PPIDControl {
		return 0
	}
	c, err := sctp.ParseControl(m.Data)
	if err != nil {
		return 0
	}
	return c.Function.Plain()
}

// restarted reports whether a message begins a session after one that one of the ends has
// terminated: that much is enough (RFC 5043, section 6.2).
func (x *session) restarted(m *capture.Message) bool {
	ended := x.pub().Session.Terminated
	return function(m) == sctp.FunctionInitiate && ssnOf(m) == 0 && (ended[0] || ended[1])
}

// newSession makes a session. Of one that nobody wants it is known all the same when it ends.
func (a *association) newSession(told Session, first capture.Stamp) *session {
	told.Number = a.d.sessions
	x := &session{on: a, id: told.Stream, told: told}
	below := &capture.Connection{Number: told.Number, First: first, Last: first}
	x.c = &conn{d: a.d, tcp: below, over: x}
	if want := a.d.cfg.WantSCTP; want != nil && !want(&x.told) {
		x.c.d = &Decoder{cfg: a.d.cfg, to: Ignore{}}
	}
	for i := range x.c.halves {
		h := &x.c.halves[i]
		h.c, h.dir, h.mode = x.c, capture.Dir(i), modeDead
		below.Halves[i].Addr = a.of.Ends[i].Addr
		if a.of.Ends[i].Setup.Seen() {
			x.sides[i].tsn = a.of.Ends[i].Setup.TSN
		}
	}
	return x
}

// startSession starts a session.
func (a *association) startSession(told Session, first capture.Stamp) *session {
	d := a.d
	x := a.newSession(told, first)
	d.makeRoom()
	d.sessions++
	if !told.None {
		x.c.d.totals.Sessions++
	}
	a.begun++
	a.streams[told.Stream], a.used[told.Stream] = x, true
	x.place = d.live.PushBack(x)
	x.c.found()
	x.pub().Version = 1 // RFC 5043, section 5.2.2
	for _, f := range a.early {
		x.c.report(f.kind, f.dir, 0, f.packet, f.text, f.advice)
	}
	a.early = nil
	return x
}

// makeRoom ends the session that is open for the longest time, if there are too many.
func (d *Decoder) makeRoom() {
	most := d.cfg.Capture.MaxConnections
	if most <= 0 {
		most = capture.DefaultMaxConnections
	}
	for d.live.Len() >= most {
		x := d.live.Front().Value.(*session)
		x.finish(capture.Finish{Reason: capture.EndEvicted, Packet: x.c.tcp.Last})
	}
}

// midstream finds out whether the beginning of a session is in the capture.
func (x *session) midstream(m *capture.Message) {
	whole := x.on.of.Ends[0].Whole() && x.on.of.Ends[1].Whole()
	if whole || function(m) == sctp.FunctionInitiate {
		x.sides[0].sure, x.sides[1].sure = true, true
		return
	}
	x.unknown(m.Dir, m.First)
}

// unknown takes note that the beginning is not in the capture.
func (x *session) unknown(d capture.Dir, p capture.Stamp) {
	if x.pub().Midstream {
		return
	}
	x.pub().Midstream = true
	for i := range x.c.halves {
		x.c.halves[i].broken = true
		x.c.halves[i].uncertain()
	}
	x.c.report(findMidstream, d, x.sides[d].offset, p, "the beginning of the session is not in the capture",
		"begin the capture before the association is opened, to see what was agreed on")
}

// arrive takes a message, in the order of the capture.
func (x *session) arrive(m *capture.Message) {
	h, s := &x.c.halves[m.Dir], &x.sides[m.Dir]
	defer x.done(m.Last)
	x.count(m)
	if !x.form(h, m) {
		s.odd++
		return
	}
	ssn := ssnOf(m)
	if !s.sure {
		*s = side{sure: true, next: uint64(ssn) + 1<<16, start: uint64(ssn) + 1<<16, tsn: m.TSN}
	}
	distance := ssn - uint16(s.next)
	number := s.next + uint64(distance)
	switch _, known := s.ahead[number]; {
	case known:
		x.reportDuplicate(h, m, ssn)
	case distance >= 1<<15:
		if number-1<<16 >= s.start { // else it was on its way when the capture began
			x.reportDuplicate(h, m, ssn)
		}
	case distance > 0:
		x.hold(s, number, m)
	default:
		x.handleMessage(m, false)
		x.drain(m.Dir)
	}
}

// count counts a message.
func (x *session) count(m *capture.Message) {
	x.c.tcp.Last = m.Last
	count := &x.c.tcp.Halves[m.Dir].Count
	count.Packets++
	count.Segments++
	count.Bytes += uint64(m.Length)
}

// reportDuplicate reports a DDP-SSN that was used before.
//
// RFC 5043, section 10: SCTP does not duplicate: "An invalid DDP-SSN MAY result in
// termination of the DDP stream."
func (x *session) reportDuplicate(h *half, m *capture.Message, ssn uint16) {
	x.pub().Session.Repeated[m.Dir]++
	kind, advice := findSSNTwice, "each message of a session takes the next DDP-SSN: the sender has sent one twice, or counts wrongly"
	if function(m) == sctp.FunctionInitiate {
		kind, advice = findInUse, adviceInUse
	}
	x.c.report(kind, m.Dir, h.told, m.Last, fmt.Sprintf("%v with DDP-SSN %d, where %d is due",
		messageName(m), ssn, uint16(x.sides[m.Dir].next)), advice)
}

// hold keeps a message that is ahead of others.
func (x *session) hold(s *side, number uint64, m *capture.Message) {
	if s.ahead == nil {
		s.ahead = map[uint64]*capture.Message{}
	}
	own := *m
	own.Data = append([]byte(nil), m.Data...)
	s.ahead[number] = &own
	x.kept += heldCost + len(own.Data)
	x.on.d.kept += heldCost + len(own.Data)
	x.pub().Session.Ahead[m.Dir]++
	if x.kept > maxAhead || x.on.d.kept > x.on.d.maxKept() {
		x.giveUp(m.Dir)
	}
}

// maxKept bounds the bytes that wait in all sessions.
func (d *Decoder) maxKept() int {
	if n := d.cfg.Capture.MaxBufferedTotal; n > 0 {
		return n
	}
	return capture.DefaultMaxBufferedTotal
}

// drain takes what has waited, as far as it is due.
func (x *session) drain(d capture.Dir) {
	s := &x.sides[d]
	for !x.over {
		m, ok := s.ahead[s.next]
		if !ok {
			return
		}
		delete(s.ahead, s.next)
		x.release(m)
		x.handleMessage(m, true)
	}
}

func (x *session) release(m *capture.Message) {
	x.kept -= heldCost + len(m.Data)
	x.on.d.kept -= heldCost + len(m.Data)
}

// giveUpThrough gives up on the messages up to a TSN that have not come.
func (x *session) giveUpThrough(d capture.Dir, tsn uint32) {
	for m := x.lowest(d); m != nil && !capture.Before(tsn, m.TSN) && !x.over; m = x.lowest(d) {
		x.giveUp(d)
		x.done(m.Last)
	}
}

// done ends a session whose last message has come.
func (x *session) done(p capture.Stamp) {
	if x.over {
		x.finish(capture.Finish{Reason: capture.EndSession, Packet: p})
	}
}

// lowest returns the first message that waits.
func (x *session) lowest(d capture.Dir) (m *capture.Message) {
	least := ^uint64(0)
	for number, held := range x.sides[d].ahead {
		if number < least {
			least, m = number, held
		}
	}
	return m
}
