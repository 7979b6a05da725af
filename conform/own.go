package conform

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/conform/peer"
)

// dialogue returns the dialogue of a case, and nil if it has none.
func (c *Case) dialogue() func(*session) {
	if c.Play == nil {
		return c.run
	}
	return func(s *session) { s.play(c.Play) }
}

// play plays the dialogue of a case of the program's own.
func (s *session) play(play func(context.Context, *peer.Conn) error) {
	conn := s.use().Conn()
	stop := context.AfterFunc(s.ctx, func() { _ = conn.Close() })
	defer stop()
	c := peer.New(conn)
	c.Timeout, c.Trace = s.opts.Timeout, s.trace
	err := play(s.ctx, c)
	var u *unjudged
	var p *peer.Error
	switch err = cmp.Or(err, c.Err()); {
	case err == nil:
	case s.ctx.Err() != nil:
		s.inconclusive("interrupted")
	case errors.As(err, &u) && (u.verdict == NotApplicable || u.verdict == Inconclusive):
		panic(outcome{verdict: u.verdict, why: u.why})
	case errors.As(err, &p):
		s.failf(p.Expected, "at offset %d of what it sent: %s", p.Offset, p.Got)
	default:
		s.failf("no error", "%v", err)
	}
}

// trace records a step.
func (s *session) trace(step peer.Step) {
	switch {
	case step.Sent != nil:
		s.note(Sent, step.Text, step.Sent)
	case step.Received != nil:
		s.note(Received, step.Text, step.Received)
	default:
		s.note(Did, step.Text, nil)
	}
}

// checkOwn refuses cases that cannot be run.
func (o *Options) checkOwn() error {
	for i := range o.Cases {
		if c := &o.Cases[i]; c.dialogue() == nil || c.ID == "" {
			return fmt.Errorf("conform: Options.Cases: the case %q needs an ID, and a Play", c.ID)
		}
	}
	return nil
}
