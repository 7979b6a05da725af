package decode

import (
	"errors"
	"fmt"
	"io"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// unfinished reports a startup that the end of a direction leaves open. The end that has closed or
// reset the connection first is the one that has given up: what the other one does after that is
// no answer.
func (c *conn) unfinished(h *half, e *capture.End) {
	s, responder := &c.start, &c.halves[c.pub.Responder()]
	if s.left != nil {
		c.gaveUp()
		c.crossed(h, e)
		return
	}
	if !s.pending || s.machine == nil || s.wrong || responder.broken {
		return
	}
	switch {
	case e.Reason == capture.EndFIN:
		if !responder.peer().knowsMore() {
			c.reportLeft(h, e)
		}
	case h != responder && !responder.ended: // whose bytes may still come
	case e.Reason == capture.EndRST:
		c.reportLeft(h.resetBy(e), e)
	default:
		c.reportOpen(responder, e)
	}
}

// resetBy is the direction of the RST that has ended this one.
func (h *half) resetBy(e *capture.End) *half {
	if e.Peer {
		return h.peer()
	}
	return h
}

// knowsMore reports whether the Initiator has received something since its frame that has not come up.
func (h *half) knowsMore() bool {
	if h.peer().originOK {
		return h.missed()
	}
	return h.ack != h.c.start.ack
}

// reportLeft reports the end that has left the startup.
//
// RFC 5044, section 8: code 1 "includes lost by timeout, too many retries, RST received, or FIN received." [Q16]
func (c *conn) reportLeft(by *half, e *capture.End) {
	s, responder := &c.start, &c.halves[c.pub.Responder()]
	s.left = by
	_, _ = s.machine.Input(e.Packet.Time, responder.buf)
	f := fault{request: s.request, arrived: len(responder.buf), waited: e.Packet.Time.Sub(s.time), act: endVerb(e)}
	if by == responder {
		f.unheard = c.unheard()
		c.closedOn(by, e, f)
		return
	}
	s.given = &givenUp{e, f}
	if e.Reason == capture.EndRST || !c.unheard() {
		c.gaveUp()
	}
}

// closedOn reports that the Responder has left.
func (c *conn) closedOn(responder *half, e *capture.End, f fault) {
	err := c.start.machine.PeerClosed(io.EOF)
	var reject *mpa.RejectError
	if errors.As(err, &reject) {
		c.report(findClosed, responder.dir, responder.at, e.Packet,
			"the Responder closed the connection, which is how it rejects one", reject.Hint)
		return
	}
	c.faulty(findClosed, responder.dir, responder.at, e.Packet, f, err)
}

// givenUp is how the Initiator has left.
type givenUp struct {
	end *capture.End
	fault
}

// gaveUp reports that the Initiator has left, once. While its frame is not acknowledged that waits, up to the
// end of the Responder's direction: the acknowledgment may be late. After a RST there is none.
func (c *conn) gaveUp() {
	g := c.start.given
	if g == nil {
		return
	}
	c.start.given = nil
	initiator, e, f := c.start.left, g.end, g.fault
	switch {
	case c.unheard():
		c.unacknowledged(e)
	case f.waited < 0:
		c.report(findClosed, initiator.dir, initiator.at, e.Packet,
			fmt.Sprintf("the Initiator has %s the connection before it had an answer", f.act),
			"the times of the packets go backwards, so that they do not tell how long it has waited")
	default:
		c.faulty(findClosed, initiator.dir, initiator.at, e.Packet, f, c.start.machine.GiveUp(e.Packet.Time, nil))
	}
}

// endVerb says what an end has done to a connection.
func endVerb(e *capture.End) string { return wording.If(e.Reason == capture.EndRST, "reset", "closed") }

// unheard reports whether the Initiator's frame was sent again and never acknowledged. One
// transmission alone proves nothing: a record of a socket's bytes has no acknowledgments.
func (c *conn) unheard() bool {
	r := c.start.request
	i, responder := &c.tcp.Halves[r.Dir], &c.halves[r.Dir.Peer()]
	return responder.acked <= r.Offset && i.Count.Repeated > 0
}

// unacknowledged reports that the Initiator's frame did not get through.
func (c *conn) unacknowledged(e *capture.End) {
	r := c.start.request
	text := "TCP never acknowledged the Initiator's frame, though it was sent again: " +
		wording.Count(c.tcp.Halves[r.Dir].Count.Repeated, "byte")
	if waited := e.Packet.Time.Sub(c.start.time); waited > 0 {
		text += " in " + wording.Elapsed(waited)
	}
	c.report(findUnheard, r.Dir, r.Offset, e.Packet, text, adviceUnheard)
}

const adviceUnheard = "nobody has refused the startup: the path or the other host has died, " +
	"or a firewall drops packets with data in them"

// crossed reports that the other end has given up as well, if it did not know that the first one had.
func (c *conn) crossed(h *half, e *capture.End) {
	left := c.start.left
	c.start.pending = false
	both := h != left && e.Reason == capture.EndFIN && left.end.Reason == capture.EndFIN
	if !both || !left.originOK || h.acked > left.end.Offset {
		return
	}
	c.report(findClosed, h.dir, h.at, e.Packet,
		fmt.Sprintf("the %s has closed the connection too, before it knew that the other end had", c.role(h)),
		"both have given up: neither FIN is the answer to the other")
}

func (c *conn) role(h *half) string {
	return wording.If(h.dir == c.pub.Initiator, "Initiator", "Responder")
}

// lateAnswer takes an answer to an Initiator that is gone.
func (c *conn) lateAnswer(h *half, f *Startup) {
	c.start.pending = false
	c.reportStartup(f)
	c.note(f)
	h.from = f.Offset + uint64(f.Size)
	text := "the answer comes after the Initiator has closed the connection"
	if waited := f.Last.Time.Sub(c.start.time); waited > 0 {
		text += ", " + wording.Elapsed(waited) + " after its frame"
	}
	c.report(findLate, h.dir, f.Offset, f.Last, text, "let the Responder answer sooner, or the Initiator wait longer")
	c.backToStreaming(f)
}

// reportOpen reports that the capture does not show how a startup has ended.
func (c *conn) reportOpen(h *half, e *capture.End) {
	c.start.pending = false
	if c.unheard() {
		c.unacknowledged(e)
		return
	}
	text := "the capture ends before the startup is complete"
	if e.Reason == capture.EndReplaced {
		text = "another connection between the same ends begins before the startup is complete"
	}
	if waited := e.Packet.Time.Sub(c.start.time); waited > 0 {
		text += ", " + wording.Elapsed(waited) + " after the Initiator's frame"
	}
	c.report(findOpen, h.dir, h.at, e.Packet, text, "")
}
