package decode

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/mpa"
)

// dialectsAll are the dialects of Requests.
var dialectsAll = []mpa.Dialect{mpa.DialectRFC5044, mpa.DialectRFC6581, mpa.DialectRtr, mpa.DialectRevision0}

// judgeRequest judges a Request Frame with the Responder's machine, and returns the
// Offer that it makes; without a Dialect if there is none.
func (c *conn) judgeRequest(f *Startup) mpa.Offer {
	m := mpa.NewResponder(mpa.ResponderConfig{Timeout: -1, Dialects: dialectsAll})
	m.Start(f.Last.Time)
	if _, err := m.Input(f.Last.Time, f.padded()); err != nil {
		c.faulty(findRequest, f.Dir, f.Offset, f.Last, fault{frame: f}, err)
		return mpa.Offer{}
	}
	q := m.Request()
	if q == nil {
		return mpa.Offer{}
	}
	c.pub.Dialect = q.Dialect
	c.startupBits(f)
	o := mpa.Offer{
		Dialect: q.Dialect, Markers: q.Markers, NoCRC: !q.CRC, IRD: q.IRD, ORD: q.ORD, MaxIRD: mpa.NoNegotiation,
		PrivateData: q.PrivateData, Timeout: -1, ClientServer: !q.PeerToPeer, RTR: q.RTR,
	}
	if !q.Enhanced {
		o.IRD, o.ORD = 0, 0
		return o
	}
	if o.ClientServer && o.IRD == mpa.NoNegotiation && o.ORD == mpa.NoNegotiation {
		o.IRD = 0 // with all of them at rest an Offer means revision 1
	}
	if e, ok := f.Fields.Enhanced(); ok {
		c.judgeFlags(f, &e, true)
	}
	return o
}

// startupBits looks at the reserved bits of a frame.
func (c *conn) startupBits(f *Startup) {
	if f.Fields.Res() != 0 {
		c.report(findStartupBits, f.Dir, f.Offset+16, f.Last, fmt.Sprintf("reserved bits %#x are set", f.Fields.Res()),
			"they are sent as zero, and ignored on receipt; 0x8 is how Linux's siw once offered large FPDUs")
	}
}

// judgeFlags judges the flags A, B, C and D of a frame by itself.
func (c *conn) judgeFlags(f *Startup, e *mpa.Enhanced, request bool) {
	at := f.enhancedAt()
	switch {
	case !e.A && (e.B || e.C || e.D):
		c.report(findKindFlags, f.Dir, at, f.Last, "flags B, C or D are set with A=0",
			"without A they are sent as zero, and ignored on receipt")
	case e.A && e.RTR() == 0 && request:
		c.report(findNoKinds, f.Dir, at, f.Last, "A=1, but none of B, C and D: no RTR indication is offered",
			"a peer-to-peer Initiator names each kind that it can send; Linux's siw names none if it is built without RTR")
	case e.A && e.RTR() == 0:
		c.report(findAnswerKinds, f.Dir, at, f.Last, "A=1, but none of B, C and D: no RTR indication is answered",
			"the Responder names at least one kind that it supports, even if none matches")
	}
}

// judgeReply judges a Reply Frame against the Request.
func (c *conn) judgeReply(f *Startup) {
	if f.Fields == nil {
		return
	}
	q := c.start.request.Fields
	if res := f.Fields.Res(); res != 0 && res == q.Res() {
		c.report(findEcho, f.Dir, f.Offset+16, f.Last,
			fmt.Sprintf("the Reply repeats the Request's reserved bits %#x", res),
			"Linux's siw builds its Reply from the Request; nothing depends on them")
	} else {
		c.startupBits(f)
	}
	asked, ok := q.Enhanced()
	answer, enhanced := f.Fields.Enhanced()
	if enhanced {
		c.judgeFlags(f, &answer, false)
	}
	if !ok || !enhanced || f.Fields.R() {
		return
	}
	c.judgeDepths(f, &asked, &answer)
	c.judgeModel(f, &asked, &answer)
}

// judgeDepths judges the IRD and the ORD of a Reply.
func (c *conn) judgeDepths(f *Startup, asked, answer *mpa.Enhanced) {
	at := f.enhancedAt()
	c.judgeIRD(f, at, asked, answer)
	c.judgeORD(f, at+2, asked, answer)
}

// judgeIRD judges the IRD of a Reply, which stands at an offset.
func (c *conn) judgeIRD(f *Startup, at uint64, asked, answer *mpa.Enhanced) {
	say := func(k finding, text, advice string) { c.report(k, f.Dir, at, f.Last, text, advice) }
	// RFC 6581, section 9.1: "The responder MUST respond to an initiator ORD value of
	// 0x3FFF by leaving its local endpoint IRD value unchanged and setting the IRD to
	// 0x3FFF in its reply message." [E06]
	switch {
	case asked.ORD == mpa.NoNegotiation && answer.IRD != mpa.NoNegotiation:
		say(findNoNego, fmt.Sprintf("the Reply has IRD %d where the Request's ORD of 0x3FFF asks for 0x3FFF",
			answer.IRD), siwDepths(answer.IRD))
	case asked.ORD != mpa.NoNegotiation && answer.IRD == mpa.NoNegotiation:
		say(findNegoAlone, "the Reply has IRD 0x3FFF, but the Request asked for negotiation",
			"the Initiator leaves its ORD as it is")
	case answer.IRD < asked.ORD:
		say(findIRDBelow, fmt.Sprintf("the Responder takes %d Reads (IRD), but the Initiator asked for %d (ORD): it must make do with fewer", answer.IRD, asked.ORD), "")
	}
}

// judgeORD judges the ORD.
func (c *conn) judgeORD(f *Startup, at uint64, asked, answer *mpa.Enhanced) {
	say := func(k finding, text, advice string) { c.report(k, f.Dir, at, f.Last, text, advice) }
	switch {
	case asked.IRD == mpa.NoNegotiation && answer.ORD != mpa.NoNegotiation:
		say(findNoNego, fmt.Sprintf("the Reply has ORD %d where the Request's IRD of 0x3FFF asks for 0x3FFF",
			answer.ORD), siwDepths(answer.ORD))
	case answer.ORD == mpa.NoNegotiation:
		if asked.IRD != mpa.NoNegotiation {
			say(findNegoAlone, "the Reply has ORD 0x3FFF, but the Request asked for negotiation",
				"the Initiator leaves its IRD as it is")
		}
	case answer.ORD > asked.IRD:
		// "The responder MUST set its ORD at most to the initiator IRD." [E04]
		k := findORDAbove
		if answer.ORD == peers.SIWDepth {
			k.severity = Warning
		}
		say(k, fmt.Sprintf("the Reply has ORD %d, above the Request's IRD of %d", answer.ORD, asked.IRD),
			"the Initiator ends the connection with code 6 unless it can raise its IRD: lower the Responder's ORD. "+
				siwDepths(answer.ORD))
	}
}

// siwDepths names a peer that is known for a depth.
func siwDepths(depth mpa.Depth) string {
	if depth == peers.SIWDepth {
		return fmt.Sprintf("Linux's siw answers %v whatever it is asked for", depth)
	}
	return ""
}

// judgeModel judges the connection model and the RTR kinds of a Reply.
func (c *conn) judgeModel(f *Startup, asked, answer *mpa.Enhanced) {
	say := func(k finding, text, advice string) { c.report(k, f.Dir, f.enhancedAt(), f.Last, text, advice) }
	switch {
	case asked.A && !answer.A:
		say(findModel, "the Reply has A=0, but the Request asked for peer-to-peer (A=1)",
			"the Initiator may end the connection with code 7: the Responder must answer A=1")
	case !asked.A && answer.A:
		say(findModel, "the Reply has A=1, but the Request asked for client-server (A=0)",
			"the Responder must answer A=0")
	case asked.A && asked.RTR()&answer.RTR() == 0 && answer.RTR() != 0:
		say(findNoMatch, fmt.Sprintf("no common RTR indication: offered %v, answered %v", asked.RTR(), answer.RTR()),
			"the Initiator ends the connection with code 7: let one end support a kind of the other")
	}
}

// judgeStartKey judges the last byte of a Start Key.
func (c *conn) judgeStartKey(f *Startup) {
	k := mpa.StartKey(f.Bytes)
	if k.Rev() != 0 {
		c.report(findStartKey, f.Dir, f.Offset+15, f.Last,
			fmt.Sprintf("Start Key of revision %d, but there is only revision 0", k.Rev()),
			"the receiver closes the connection: revisions 1 and 2 begin with a Request Frame")
	}
	if k.Res() != 0 {
		c.report(findStartupBits, f.Dir, f.Offset+15, f.Last, fmt.Sprintf("reserved bits %#x are set", k.Res()),
			"they are sent as zero, and ignored on receipt")
	}
}

// judgeRtr judges an Rtr frame.
//
// The 2007 proposal: "Rtr frame adhere to C bit as specified in Rep frame". [T05]
func (c *conn) judgeRtr(f *Startup) {
	reply := c.start.reply.Fields
	switch {
	case f.Fields.Rev() != 1:
		c.report(findRtrFrame, f.Dir, f.Offset+17, f.Last,
			fmt.Sprintf("Rtr frame of revision %d, but there is only revision 1", f.Fields.Rev()), "")
	case f.Fields.C() != reply.C():
		c.report(findRtrFrame, f.Dir, f.Offset+16, f.Last, "the Rtr frame's C differs from the Reply's",
			"the two ends do not agree on CRCs: the Initiator must repeat the Reply's C")
	}
}
