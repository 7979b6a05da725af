package mpa_test

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// patience is how long each of two ends waits for the other; negative: without end.
type patience struct{ initiator, responder time.Duration }

// patience returns that of the settings of a scenario.
func (s *scenario) patience() patience {
	return patience{limit(s.offer.Timeout, mpa.DefaultReplyTimeout), limit(s.cfg.Timeout, mpa.DefaultRequestTimeout)}
}

func limit(set, ifZero time.Duration) time.Duration {
	if set == 0 {
		return ifZero
	}
	return set
}

// of returns that of one end.
func (p patience) of(e *end) time.Duration {
	if _, responds := e.m.(*mpa.Responder); responds {
		return p.responder
	}
	return p.initiator
}

// broken says how an end that waits for the other breaks its limit, or "". An Initiator has one for all that
// it waits for, a Responder one for the Request, and another for what follows the answer.
func (p patience) broken(n *node, name string) string {
	most, since := p.of(n.ends()[name]), epoch
	if r, responds := n.ends()[name].m.(*mpa.Responder); responds && r.Request() != nil {
		since = n.answered
	}
	due := n.ends()[name].m.Deadline()
	switch {
	case !n.waits(name) || most < 0:
		return ""
	case due.IsZero():
		return fmt.Sprintf("the %s waits, and has no deadline", name)
	case due.After(since.Add(most)):
		return fmt.Sprintf("the %s waits for %v in all, and may for %v", name, due.Sub(since), most)
	}
	return ""
}
