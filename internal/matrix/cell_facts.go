package matrix

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// addNegotiated says what a QP knows of its connection.
func (c *cell) addNegotiated(who string, n *iwarp.Negotiated) {
	f := &c.facts
	toI, toR := n.MarkersReceive, n.MarkersSend
	request, reply := n.Revision, n.PeerRevision
	peers := "reply"
	if n.Role == mpa.RoleResponder {
		toI, toR, request, reply = toR, toI, reply, request
		peers = "request"
	}
	f.sayf(who, "V", "%d", n.DDPVersion)
	f.sayf(who, "V", "%d", n.RDMAPVersion)
	if c.over.Streams {
		f.sayf(who, "M", "%d/%d", wording.Bit(toI), wording.Bit(toR))
		f.sayf(who, "CRC", "%d", wording.Bit(n.CRC))
		f.sayf(who, "rev", "%d/%d", request, reply)
	}
	f.say(who, "dialect", short(n.Dialect))
	f.sayf(who, "p2p", "%d", wording.Bit(n.PeerToPeer))
	if n.Enhanced {
		f.sayf(who, peers, "%d/%d", n.PeerIRD, n.PeerORD)
	}
}

// addInitiator says what the initiator's QP knows, if the other end has no QP.
func (c *cell) addInitiator() {
	n := c.i.qp.Negotiated()
	c.addNegotiated(byInitiator, &n)
	c.facts.say(byInitiator, "rtr", (n.RTR | n.Opener).String())
	c.facts.say(byInitiator, "fellback", bits(n.FellBack))
	ird, ord := inForce(c.i.qp, &n)
	c.facts.say(byInitiator, "ird", ird+"/unknown")
	c.facts.say(byInitiator, "ord", ord+"/unknown")
	c.facts.say(byInitiator, "pd", "unknown/"+received(n.PrivateData))
}

// addBoth says what the QPs of both ends know.
func (c *cell) addBoth(a *answer) {
	i, r := c.i.qp.Negotiated(), a.qp.Negotiated()
	c.addNegotiated(byInitiator, &i)
	c.addNegotiated(byResponder, &r)
	f := &c.facts
	f.say(byInitiator, "fellback", bits(i.FellBack))
	f.say(byInitiator, "rtr", (i.RTR | i.Opener).String())
	if i.RTR&r.RTR != i.RTR { // what is sent must be one of what was answered
		f.say(byResponder, "rtr", r.RTR.String())
	}
	f.say(byResponder, "answer", r.RTR.String())
	irdI, ordI := inForce(c.i.qp, &i)
	irdR, ordR := inForce(a.qp, &r)
	f.say("both", "ird", irdI+"/"+irdR)
	f.say("both", "ord", ordI+"/"+ordR)
	f.say("both", "pd", received(a.request.PrivateData)+"/"+received(i.PrivateData))
}

// inForce returns a QP's depths: negotiated, and in use.
func inForce(qp *iwarp.QP, n *iwarp.Negotiated) (ird, ord string) {
	attr := qp.Query()
	return depth(int(n.IRD), attr.IRD), depth(int(n.ORD), attr.ORD)
}

func depth(negotiated, used int) string {
	if negotiated != used {
		return fmt.Sprintf("%d(used:%d)", negotiated, used)
	}
	return strconv.Itoa(used)
}

// received returns how many bytes of private data have arrived, and whether they are
// as they were sent.
func received(pd []byte) string {
	if !bytes.Equal(pd, privateData(len(pd))) {
		return fmt.Sprintf("%d(wrong)", len(pd))
	}
	return strconv.Itoa(len(pd))
}

func bits(set bool) string { return strconv.Itoa(wording.Bit(set)) }

// addRejected says what the initiator knows of a rejection.
func (c *cell) addRejected(e *mpa.RejectError) {
	if e.Enhanced {
		c.facts.sayf(byInitiator, "reply", "%d/%d", e.PeerIRD, e.PeerORD)
	}
	if c.r == nil {
		c.facts.say(byInitiator, "pd", "unknown/"+received(e.PrivateData))
	}
}

// addRequest says what the responder knows of a Request that it rejects.
func (c *cell) addRequest(a *answer) {
	var e *mpa.RejectError
	if errors.As(c.failed, &e) {
		c.facts.say("both", "pd", received(a.request.PrivateData)+"/"+received(e.PrivateData))
	}
	if a.request.Enhanced {
		c.facts.sayf(byResponder, "request", "%d/%d", a.request.IRD, a.request.ORD)
	}
}

// addEnd says what the responder knows when all is over, and how the connection ended
// if the initiator is played by hand.
func (c *cell) addEnd() {
	if c.r == nil {
		return
	}
	if c.r.qp != nil {
		c.addDisorder(c.i)
		c.addDisorder(c.r.endpoint)
	}
	end := "close"
	for _, a := range c.r.seen {
		switch {
		case a.qp != nil:
			end = "up"
			c.addTerminated(a.qp)
			if c.row.Initiator.byHand() {
				n := a.qp.Negotiated()
				c.addNegotiated(byResponder, &n)
				c.facts.say(byResponder, "answer", n.RTR.String())
			}
		case a.conn != nil:
			end = "reject"
		}
	}
	if c.row.Initiator.byHand() {
		c.facts.say(byResponder, outcome, end)
	}
}

// addDisorder notes an error of a connection that should have closed in order.
func (c *cell) addDisorder(e *endpoint) {
	if err := e.qp.Err(); e.qp.State() != iwarp.StateClosed {
		c.facts.say(e.who, "data", err.Error())
	}
}

func (c *cell) addTerminated(qp *iwarp.QP) {
	var e *iwarp.TerminateError
	if errors.As(qp.Err(), &e) {
		c.facts.sayf(byResponder, "code", "0x%04x", uint16(e.Code))
	}
}

// addFacts says what the wires show: how the connections ended, and what was sent on
// the last one.
func (r *relay) addFacts(c *cell) {
	wires := r.all()
	closed := "fin"
	for _, w := range wires {
		if end := w.ending(); end != "fin" {
			closed = end
		}
	}
	last := r.last(c)
	c.facts.say(onWire, "closed", closed)
	if c.row.Initiator.Request == nil && c.facts.up() {
		c.facts.say(onWire, "fellback", bits(len(wires) > 1))
	}
	last.addFacts(&c.facts)
	c.addNamed(&last)
}

// describe returns a line for each startup frame.
func (r *relay) describe(c *cell) (lines []string) {
	for _, w := range r.all() {
		t := w.read(c.row.Initiator.Offer.Messages)
		lines = append(lines, t.describe()...)
	}
	return lines
}

// last returns the last connection's bytes.
func (r *relay) last(c *cell) (t transcript) {
	if wires := r.all(); len(wires) > 0 {
		t = wires[len(wires)-1].read(c.row.Initiator.Offer.Messages)
	}
	return t
}

// addNamed says whether the error texts of a refused startup name the revisions of the
// Request and of the Reply, if the row demands it. It judges the texts themselves: the
// demand is that a person who reads them learns the revisions.
func (c *cell) addNamed(t *transcript) {
	q, p := t.terms(toResponder), t.terms(toInitiator)
	if !c.row.demandsFact("named") || !q.found || !p.found {
		return
	}
	tell := func(who, text string) {
		c.facts.say(who, "named", wording.If(names(text, q.rev) && names(text, p.rev), "yes", "no"))
	}
	tell(byInitiator, c.i.causes.String())
	if c.r != nil && len(c.r.seen) == 0 { // it refused the Request
		tell(byResponder, c.r.causes.String())
	}
}

var revisions = regexp.MustCompile(`[Rr]evisions?((?:,| and| or| \d+)+)`)

// names reports whether a text names a revision.
func names(text string, rev uint8) bool {
	number := regexp.MustCompile(fmt.Sprintf(`\b%d\b`, rev))
	for _, m := range revisions.FindAllStringSubmatch(text, -1) {
		if number.MatchString(m[1]) {
			return true
		}
	}
	return false
}
