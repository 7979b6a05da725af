package conform

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// A presence tells a peer that breaks a rule by silence from one that is no longer there. What decides is a control
// question: an ordinary startup, which the peer has answered before.
//
// A result without a word of the peer's is doubtful. It is kept until the next word, which shows that the peer was
// there; or until a case fails in which the peer does not have the last word: then the control question is asked.
type presence struct {
	opts     *Options
	known    bool // the peer has said something
	last     string
	number   int      // of the case with the peer's last word, and its place in the list
	doubtful []Result // since then, in the order in which they were made
	first    int      // the place of the first of these
	missing  error    // why the control question had no connection, if so
	settled  func(*Result)
}

// recess is between two attempts to reach a peer that is away.
const recess = 500 * time.Millisecond

// addResult adds the result of the case at a place in the list, and reports whether that is in doubt and calls for the
// control question.
func (p *presence) addResult(place int, r *Result) (doubt bool) {
	failed := r.Verdict == Fail || r.Verdict == Inconclusive
	heard := r.heard(p.opts)
	if heard {
		p.flush()
		p.known = true
	}
	switch {
	case heard && (!failed || r.answered):
		p.last, p.number = r.Case.ID, place+1
		p.settled(r)
		return false
	case !p.known, len(r.Dialogue) == 0 && !r.absent && len(p.doubtful) == 0: // of one that was not run nothing is in doubt
		p.settled(r)
		return false
	case len(p.doubtful) == 0:
		p.first = place
	}
	p.doubtful = append(p.doubtful, *r)
	return failed
}

// flush settles what was in doubt: the peer is there.
func (p *presence) flush() {
	for i := range p.doubtful {
		p.settled(&p.doubtful[i])
	}
	p.doubtful = nil
}

// find asks the control question until it is answered, for a while, and returns how long that took.
func (p *presence) find(ctx context.Context) (away time.Duration, here bool) {
	began := time.Now()
	for limit := patience * p.opts.Timeout; ; {
		r := p.opts.run(ctx, p.opts.control())
		if r.heard(p.opts) {
			return away, true
		}
		p.missing = r.missing
		if ctx.Err() != nil || time.Since(began)+recess > limit {
			return 0, false
		}
		select {
		case <-time.After(recess):
		case <-ctx.Done():
		}
		away = time.Since(began)
	}
}

// stopped says after which case, and at which the peer did not answer any more.
func (p *presence) stopped() string {
	last := p.doubtful[len(p.doubtful)-1].Case.ID
	if p.number == 0 {
		return fmt.Sprintf("the peer stopped answering before the first case: %s got no answer, nor did another startup after it", last)
	}
	return fmt.Sprintf("the peer stopped answering after case %d, %s: %s got no answer, nor did another startup after it", p.number, p.last, last)
}

// lastWord reports whether the last bytes of a dialogue are the peer's.
func lastWord(log []Entry) bool {
	for _, e := range slices.Backward(log) {
		if e.Kind == Sent || e.Kind == Received {
			return e.Kind == Received
		}
	}
	return false
}

// heard reports whether the peer has said something of its protocol.
func (r *Result) heard(o *Options) bool {
	for _, e := range r.Dialogue {
		if e.Kind == Received && len(e.Bytes) > 0 {
			return o.overSCTP() || o.Streaming != nil || mpa.BeginsAsKey(e.Bytes)
		}
	}
	return false
}

// control is the control question.
func (o *Options) control() Case {
	c := Case{ID: "control", Role: o.Role, Section: "-", sctp: o.overSCTP()}
	switch {
	case o.overSCTP() && o.Role == mpa.RoleInitiator:
		c.run = func(s *session) {
			d, q := s.asked()
			d.accept(&q, 0)
		}
	case o.overSCTP():
		c.run = func(s *session) { s.openSession(0) }
	case o.Role == mpa.RoleInitiator:
		c.run = func(s *session) { s.bringUp() }
	default:
		c.run = probe
	}
	return c
}
