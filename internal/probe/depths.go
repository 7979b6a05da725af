package probe

import (
	"fmt"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/mpa/ulpdata"
)

// askDepths asks for depths of RDMA Reads: none, few, more than anybody has, and
// 0x3FFF.
func (p *prober) askDepths() error {
	f, e, ok := p.base()
	if !ok || e == nil {
		return nil
	}
	for _, depth := range []mpa.Depth{0, 1, usualDepth, mpa.MaxDepth, mpa.NoNegotiation} {
		asked := *e
		asked.IRD, asked.ORD = depth, depth
		q, err := p.ask("IRD and ORD "+depth.String(), p.request(f, &asked))
		if err != nil {
			return err
		}
		d := DepthAnswer{Asked: depth.String(), Outcome: q.Outcome}
		if e, ok := q.enhanced(); ok {
			d.IRD, d.ORD = e.IRD.String(), e.ORD.String()
			d.depths = &depths{depth, e.IRD, e.ORD}
		}
		p.report.Depths = append(p.report.Depths, d)
	}
	return nil
}

// depths are those of a Reply to a Request that asked for the same IRD and ORD.
type depths struct{ asked, ird, ord mpa.Depth }

// Limits say in words how the peer arrives at its depths.
type Limits struct {
	// IRD is about the Reads that the peer takes from us at once, and ORD about those
	// that it sends at once.
	IRD string `json:"ird"`
	ORD string `json:"ord"`
	// Unnegotiated says how it answers 0x3FFF.
	Unnegotiated string `json:"unnegotiated,omitempty"`
}

// limits finds rules that fit all answers, or returns nil if there are no answers.
func (r *Report) limits() *Limits {
	if q := r.Revisions.OneSMBDirect; q.replied() && len(r.Depths) == 0 {
		d, _, err := ulpdata.ParseSMBDirect(q.reply.PrivateData())
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
	l.IRD = rule(numbers, func(d depths) mpa.Depth { return d.ird }, "our ORD")
	l.ORD = rule(numbers, func(d depths) mpa.Depth { return d.ord }, "our IRD")
	return l
}

// rule says how an answered depth follows from ours: by RFC 6581, section 9.1, the
// Responder lowers its ORD to the Initiator's IRD, and may raise its IRD. all is in the
// order of what was asked.
func rule(all []depths, answered func(depths) mpa.Depth, ours string) string {
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
