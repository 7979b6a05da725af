package probe

import (
	"fmt"

	"github.com/goiwarp/iwarp/mpa"
)

// askDepths asks for read depths: none, few, more than anybody has, and not
// negotiated.
func (p *prober) askDepths() error {
	f, e, ok := p.base()
	if !ok || e == nil {
		return nil
	}
	for _, depth := range []uint16{0, 1, usualDepth, mpa.NoNegotiation - 1, mpa.NoNegotiation} {
		asked := *e
		asked.IRD, asked.ORD = depth, depth
		q, err := p.ask("IRD and ORD "+depthName(depth), p.request(f, &asked))
		if err != nil {
			return err
		}
		d := DepthAnswer{Asked: depthName(depth), Outcome: q.Outcome}
		if e, ok := q.enhanced(); ok {
			d.IRD, d.ORD = depthName(e.IRD), depthName(e.ORD)
			d.depths = &depths{depth, e.IRD, e.ORD}
		}
		p.report.Depths = append(p.report.Depths, d)
	}
	return nil
}

func depthName(n uint16) string {
	if n == mpa.NoNegotiation {
		return "not negotiated"
	}
	return fmt.Sprint(n)
}

// depths are those of a Reply to a Request with the same IRD and ORD.
type depths struct{ asked, ird, ord uint16 }

// Limits say in words how the peer comes by its depths.
type Limits struct {
	// IRD is the Reads that the peer takes from us at once, and ORD those that it may
	// send.
	IRD string `json:"ird"`
	ORD string `json:"ord"`
	// Unnegotiated is what it makes of 0x3FFF.
	Unnegotiated string `json:"unnegotiated,omitempty"`
}

// limits finds rules that fit all answers, or returns nil if there are no answers.
func (r *Report) limits() *Limits {
	if q := r.Revisions.OneSMBDirect; q.replied() && len(r.Depths) == 0 {
		d, _, err := mpa.ParseSMBDirect(q.reply.PrivateData())
		if err != nil {
			return nil
		}
		const by = "%d, by the depths in its private data"
		return &Limits{IRD: fmt.Sprintf(by, d.IRD), ORD: fmt.Sprintf(by, d.ORD)}
	}
	var numbers []depths
	l := &Limits{}
	for _, a := range r.Depths {
		switch {
		case a.depths == nil:
		case a.depths.asked != mpa.NoNegotiation:
			numbers = append(numbers, *a.depths)
		case a.depths.ird == mpa.NoNegotiation && a.depths.ord == mpa.NoNegotiation:
			l.Unnegotiated = "0x3FFF is answered with 0x3FFF"
		default:
			l.Unnegotiated = "0x3FFF is taken for a number"
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	l.IRD = rule(numbers, func(d depths) uint16 { return d.ird }, "our ORD")
	l.ORD = rule(numbers, func(d depths) uint16 { return d.ord }, "our IRD")
	return l
}

// rule says how an answered depth follows from ours: RFC 6581, section 9.1, has the
// Responder's ORD lowered to the Initiator's IRD, and lets its IRD be raised. all are in
// the order of what was asked.
func rule(all []depths, answered func(depths) uint16, ours string) string {
	least, most := answered(all[0]), answered(all[len(all)-1])
	fits := true
	for _, d := range all {
		fits = fits && answered(d) == min(max(least, d.asked), most)
	}
	switch {
	case !fits:
		return "by no rule that is known here"
	case least == most:
		return fmt.Sprintf("%d, whatever %s is", most, ours)
	case least == 0:
		return fmt.Sprintf("%s, %d at most", ours, most)
	}
	return fmt.Sprintf("%d, raised to %s, %d at most", least, ours, most)
}
