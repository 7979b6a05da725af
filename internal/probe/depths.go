package probe

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/mpa"
)

// depthsAsked are the depths of RDMA Reads to ask for: none, few, more than anybody has, and
// 0x3FFF.
var depthsAsked = [...]mpa.Depth{0, 1, usualDepth, mpa.MaxDepth, mpa.NoNegotiation}

// aboutDepths is the name of the question.
func aboutDepths(asked mpa.Depth) string { return "IRD and ORD " + asked.String() }

// depthAnswer is the answer to it, with the enhanced data of that, or nil.
func depthAnswer(asked mpa.Depth, outcome Outcome, e *mpa.Enhanced) DepthAnswer {
	a := DepthAnswer{Asked: asked, Outcome: outcome}
	if e != nil {
		a.Depths = &Depths{e.IRD, e.ORD}
	}
	return a
}

// askDepths asks for depths of RDMA Reads.
func (p *prober) askDepths() error {
	f, e, ok := p.base()
	if !ok || e == nil {
		return nil
	}
	for _, depth := range depthsAsked {
		asked := *e
		asked.IRD, asked.ORD = depth, depth
		q, err := p.ask(aboutDepths(depth), p.request(f, &asked))
		if q == nil {
			if err != nil {
				return err
			}
			continue
		}
		p.report.Depths = append(p.report.Depths, depthAnswer(depth, q.Outcome, q.answered()))
	}
	return nil
}

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
	var numbers []DepthAnswer
	l := &Limits{}
	for _, a := range r.Depths {
		switch {
		case a.Depths == nil:
		case a.Asked != mpa.NoNegotiation:
			numbers = append(numbers, a)
		case a.IRD == mpa.NoNegotiation && a.ORD == mpa.NoNegotiation:
			l.Unnegotiated = "0x3FFF is answered with 0x3FFF"
		default:
			l.Unnegotiated = "0x3FFF is taken for a number"
		}
	}
	if len(numbers) == 0 || len(r.Depths) < len(depthsAsked) {
		return nil // no rule follows from some of the answers
	}
	l.IRD = rule(numbers, func(d Depths) mpa.Depth { return d.IRD }, "our ORD")
	l.ORD = rule(numbers, func(d Depths) mpa.Depth { return d.ORD }, "our IRD")
	return l
}

// rule says how an answered depth follows from ours: by RFC 6581, section 9.1, the
// Responder lowers its ORD to the Initiator's IRD, and may raise its IRD. all is in the
// order of what was asked.
func rule(all []DepthAnswer, answered func(Depths) mpa.Depth, ours string) string {
	least, most := answered(*all[0].Depths), answered(*all[len(all)-1].Depths)
	fits := true
	for _, d := range all {
		fits = fits && answered(*d.Depths) == min(max(least, d.Asked), most)
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
