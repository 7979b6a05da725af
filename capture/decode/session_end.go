package decode

import (
	"fmt"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/wording"
)

// giveUp passes over the messages in front of the first that waits: the sender has left
// their DDP-SSNs out, or the capture lacks them.
//
// RFC 5043, section 6: "The DDP-SSNs assigned to the Data Chunks for a session MUST NOT have
// any gaps."
func (x *session) giveUp(d capture.Dir) {
	m := x.lowest(d)
	if m == nil {
		return
	}
	h, s := &x.c.halves[d], &x.sides[d]
	ssn := ssnOf(m)
	n := uint64(ssn - uint16(s.next))
	switch e := &x.on.of.Ends[d]; {
	case n <= s.odd:
		s.odd -= n // they were reported
	case e.Setup.Seen() && e.Complete(s.tsn, m.TSN):
		x.c.report(findSSNSkipped, d, s.offset, m.Last,
			fmt.Sprintf("%s left out: DDP-SSN %d comes, where %d is due",
				wording.Count(n, "DDP-SSN"), ssn, uint16(s.next)),
			"the receiver waits for them until the association ends: each message of a session takes the next DDP-SSN")
	default:
		x.c.report(findGap, d, s.offset, m.Last, "not judged: "+wording.Count(n, "message")+" that the capture lacks",
			gapAdvice(capture.CauseLost))
		if s.next == 0 {
			x.unknown(d, m.Last)
		}
	}
	h.broken = true
	h.uncertain()
	s.next += n
	x.drain(d)
}

// flush brings out what waits.
func (x *session) flush() {
	for d := range x.sides {
		for x.lowest(capture.Dir(d)) != nil && !x.over {
			x.giveUp(capture.Dir(d))
		}
	}
}

// finish ends a session, and tells the consumer so, once.
func (x *session) finish(f capture.Finish) {
	if x.ended {
		return
	}
	x.ended = true
	x.flush()
	x.resolve(true)
	if !x.over {
		x.unterminated(f)
	}
	x.over = true
	for d := range x.sides {
		s, h := &x.sides[d], &x.c.halves[d]
		for _, m := range s.ahead {
			x.release(m)
		}
		s.ahead = nil
		h.ended, h.end = true, x.endOf(h.dir, &f)
	}
	if x.on.streams[x.id] == x {
		delete(x.on.streams, x.id)
	}
	d := x.on.d
	d.live.Remove(x.place)
	x.c.summarize()
	x.c.heard.leave()
	x.c.d.totals.count(x.pub())
	x.c.d.to.Ended(x.pub())
}

// endOf returns the end of a direction of a session that is finished: the message by which its
// sender has ended it, if there is one, and else what has ended it for both ends.
func (x *session) endOf(d capture.Dir, f *capture.Finish) capture.End {
	s, peer := &x.sides[d], &x.sides[d.Peer()]
	e := capture.End{Dir: d, Offset: s.offset, Reason: f.Reason, Packet: f.Packet}
	switch {
	case s.last.Number != 0:
		e.Reason, e.Packet = capture.EndSession, s.last
	case x.pub().Rejected || x.pub().Session.Refused:
		e.Reason, e.Packet, e.Peer = capture.EndSession, peer.last, true
	case f.Reason == capture.EndShutdown || f.Reason == capture.EndAbort:
		e.Peer = d != f.Dir
	}
	return e
}

// unterminated judges a session that its association's end has ended.
//
// RFC 5043, section 6.2: "At least one side MUST send a DDP Stream Terminate." [C04]
func (x *session) unterminated(f capture.Finish) {
	p := x.pub()
	none := !p.Session.Terminated[0] && !p.Session.Terminated[1]
	switch {
	case x.pending() && x.unheard():
		x.unacknowledged(f)
	case f.Reason == capture.EndAbort:
		text := "the association is aborted"
		if x.pending() {
			text += " by the " + x.role(f.Dir) + " end" + x.since(f.Packet)
		}
		if f.Text != "" {
			text += fmt.Sprintf(": %q", f.Text)
		}
		x.c.report(findAborted, f.Dir, x.sides[f.Dir].offset, f.Packet, text, abortAdvice(p))
	case p.Session.None, p.Midstream, !x.on.of.Ends[0].Whole(), !x.on.of.Ends[1].Whole():
	case x.pending() && f.Reason == capture.EndShutdown:
		x.c.report(findClosed, f.Dir, x.sides[f.Dir].offset, f.Packet,
			"the "+x.role(f.Dir)+" end has shut the association down"+x.since(f.Packet), "")
	case x.pending():
		x.c.report(findOpen, x.active.Peer(), 0, f.Packet, f.Reason.String()+x.since(f.Packet), "")
	case f.Reason == capture.EndShutdown && p.Agreed && none:
		x.c.report(findNoTerminate, f.Dir, x.sides[f.Dir].offset, f.Packet,
			"the association is shut down, and neither end has terminated the session",
			"an end that is done sends a DDP Stream Session Terminate, so that the other knows what was its last message")
	}
}

// pending reports whether an Initiate waits for its answer.
func (x *session) pending() bool { return x.asked != nil && !x.answer && !x.pub().Midstream }

// unheard reports whether the Initiate was sent again and never acknowledged.
func (x *session) unheard() bool {
	end, other := &x.on.of.Ends[x.active], &x.on.of.Ends[x.active.Peer()]
	return other.Count.Packets > 0 && !end.Acknowledged(x.asked.TSN) && end.Count.Repeated > 0
}

// unacknowledged reports that the Initiate did not get through.
func (x *session) unacknowledged(f capture.Finish) {
	x.c.report(findUnheard, x.active, 0, f.Packet,
		"SCTP never acknowledged the Initiate, though it was sent again: "+
			f.Reason.String()+x.since(f.Packet), adviceUnheard)
}

// since says how long an Initiate has waited in vain.
func (x *session) since(p capture.Stamp) string {
	text := ", and the Initiate has no answer"
	if waited := p.Time.Sub(x.asked.Last.Time); waited > 0 {
		text = ", " + wording.Elapsed(waited) + " after the Initiate, which has no answer"
	}
	return text
}

// abortAdvice says why an association may have been aborted.
func abortAdvice(p *Connection) string {
	switch {
	case p.Session.None:
		return "it had no session yet: nobody listens on the port, or the listener does not speak DDP"
	case p.Findings[Error] > 0:
		return "a rule was broken before: see the findings above"
	}
	return "all sessions of the association end with it"
}
