package peer

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// depth is the IRD and ORD of legal frames.
const depth = 4

// Request returns the fields of a Request that any peer takes: with CRCs, and without markers but in revision 0. In
// RFC 6581 it asks for the peer-to-peer model, an RTR indication by a Write or Read, and an IRD and ORD of 4. If d is
// zero, it is mpa.DialectRFC6581. The Start Key of CULLEY is no Request: mpa.AppendStartKey writes it.
func Request(d mpa.Dialect) mpa.StartupFields {
	return script.Request(cmp.Or(d, mpa.DialectRFC6581), depth).Fields()
}

// Reply returns the fields of a Reply that accepts a Request in the Request's dialect, and asks for no more than the
// Request offers.
func Reply(q mpa.StartupFrame) mpa.StartupFields { return script.Reply(q.Dialect(), q, depth).Fields() }

// SendStartup sends a Request, Reply or Rtr Frame with any values.
func (c *Conn) SendStartup(f mpa.StartupFields) { c.Send(mpa.AppendStartup(nil, &f)) }

// Initiate plays a legal startup as the Initiator, which the other end must accept, with the RTR indication or the Rtr
// Frame that its Reply asks for. If d is zero, it is mpa.DialectRFC6581; any other that is none of mpa.Dialects is an
// error. It returns the Reply, which is empty after an exchange of Start Keys.
func (c *Conn) Initiate(d mpa.Dialect) mpa.StartupFrame {
	if d == mpa.DialectStartKey {
		ours := c.sendKey()
		c.operateByKeys(ours, c.expectKey())
		return nil
	}
	d = cmp.Or(d, mpa.DialectRFC6581)
	if c.ok() && !slices.Contains(mpa.Dialects(), d) {
		c.err = fmt.Errorf("peer: no startup is known of dialect %d: use one of mpa.Dialects, or zero", d)
	}
	c.SendStartup(Request(d))
	r := c.ExpectStartup(mpa.KeyReply)
	if r.R() {
		c.failTaken("an accepting Reply", r.String(), r)
	}
	if d == mpa.DialectRtr && r.S() {
		c.SendStartup(script.RtrFrame(r).Fields())
	}
	if e, enhanced := r.Enhanced(); enhanced && e.A && c.operating() {
		c.sendRTR(e.RTR())
	}
	return r
}

// sendRTR sends the RTR indication of RFC 6581, section 9.2, and takes the Read Response if it is a Read.
func (c *Conn) sendRTR(kinds mpa.RTR) {
	fpdu, kind := c.link.Ready(kinds)
	if kind == 0 {
		c.failTaken("a Reply that names an RTR indication", c.reply.String(), c.reply)
		return
	}
	c.framed = "RTR indication: " + kind.String()
	c.Send(fpdu)
	if kind == mpa.RTRRead {
		c.ExpectSegment(rdmap.OpReadResponse)
	}
}

// Respond plays a legal startup as the Responder, and takes the RTR indication or the Rtr Frame of the Initiator. Its
// Request must be of dialect d; if d is zero, any dialect but mpa.DialectStartKey will do. It returns the Request,
// which is empty after an exchange of Start Keys.
func (c *Conn) Respond(d mpa.Dialect) mpa.StartupFrame {
	if d == mpa.DialectStartKey {
		theirs := c.expectKey()
		c.operateByKeys(c.sendKey(), theirs)
		return nil
	}
	q := c.ExpectStartup(mpa.KeyRequest)
	if d != 0 && q.Dialect() != d {
		c.failTaken("a Request of "+d.String(), q.String(), q)
	}
	fields := Reply(q)
	r := mpa.StartupFrame(mpa.AppendStartup(nil, &fields))
	c.Send(r)
	if r.S() && q.Dialect() == mpa.DialectRtr {
		c.ExpectStartup(mpa.KeyRtr)
	}
	if e, enhanced := r.Enhanced(); enhanced && e.A {
		c.expectRTR(e.RTR())
	}
	return q
}

// expectRTR takes an RTR indication of one of the kinds, and answers it if it is a Read.
func (c *Conn) expectRTR(kinds mpa.RTR) {
	expected := "an RTR indication: " + kinds.String()
	seg, fpdu := c.segment(expected)
	kind := mpa.RTROf(rdmap.ZeroLength(&seg))
	if kinds&kind == 0 {
		c.failTaken(expected, script.DescribeSegment(&seg), fpdu)
		return
	}
	if kind == mpa.RTRRead {
		r, _ := rdmap.ParseReadRequest(seg.Payload)
		h := c.Header(rdmap.OpReadResponse)
		h.STag, h.TO = r.SinkSTag, r.SinkTO
		c.Send(c.Segment(h, nil))
	}
}

func (c *Conn) sendKey() mpa.StartKey {
	key := mpa.AppendStartKey(nil, &mpa.StartKeyFields{C: true})
	c.Send(key)
	return key
}

func (c *Conn) expectKey() mpa.StartKey {
	key := mpa.StartKey(c.ExpectBytes(mpa.StartKeyLen))
	if key.Key() != mpa.KeyStart {
		c.failTaken("a Start Key", fmt.Sprintf("%q", key.Key()), key)
	}
	return key
}

func (c *Conn) operateByKeys(ours, theirs mpa.StartKey) {
	if c.ok() {
		c.link.Operate(script.TermsOfKeys(ours, theirs))
	}
}
