package matrix

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// A cell is one row while it is run.
type cell struct {
	row   *Row
	over  *network.Network
	facts facts
	i     *endpoint
	r     *responder // or
	hand  byHand     // this
	tap   tap
	lines []string // startup frames

	failed  error // of the initiator
	closing sync.WaitGroup
}

// run brings the two ends together and finds out what becomes of them. Its error says
// that the row could not be run; errors of the ends are facts.
func (c *cell) run(ctx context.Context) error {
	defer c.closeAll()
	if err := c.open(ctx); err != nil {
		return err
	}
	err := c.connect(ctx)
	if err == nil {
		err = c.tap.drain(ctx)
	}
	if err == nil && c.r != nil {
		err = c.r.finish(ctx)
	}
	c.lines = c.tap.describe(c)
	if err != nil {
		return err
	}
	c.closing.Wait()
	c.addEnd()
	c.tap.addFacts(c)
	return nil
}

// A tap stands between the two ends and keeps what they send each other.
type tap interface {
	addr() string                    // what the initiator connects to
	peer() string                    // the address by which the responder knows the last initiator
	drain(ctx context.Context) error // waits for the ends to have no connection any more
	describe(c *cell) []string       // lines for all startups
	addFacts(c *cell)                // notes the facts that it shows
	close()
}

// newTap returns one in front of an address.
func (c *cell) newTap(ctx context.Context, to string) (tap, error) {
	if c.row.overSCTP() {
		return newSCTPTap(to)
	}
	return newRelay(ctx, c.over, to)
}

// A byHand is a responder that is played by hand.
type byHand interface {
	addr() string
	close()
}

// listenByHand has a responder say what the row has for it.
func (c *cell) listenByHand(ctx context.Context) (byHand, error) {
	r := &c.row.Responder
	if r.Say != nil {
		return listenOverSCTP(ctx, r.Say)
	}
	return listenByHand(ctx, c.over, r.Replies)
}

// open makes the two ends and the relay between them.
func (c *cell) open(ctx context.Context) (err error) {
	var to string
	if c.over, err = network.Open(c.row.Initiator.Network); err != nil {
		return err
	}
	if c.row.Responder.byHand() {
		hand, err := c.listenByHand(ctx)
		if err != nil {
			return err // and no hand: one that is nil would not be equal to nil
		}
		c.hand = hand
		to = c.hand.addr()
	} else {
		if c.r, err = listen(ctx, c.over, &c.row.Responder); err != nil {
			return err
		}
		to = c.r.ln.Addr().String()
	}
	tap, err := c.newTap(ctx, to)
	if err != nil {
		return err
	}
	c.tap = tap
	c.i, err = newEndpoint(byInitiator, c.row.Initiator.Offer.Kind, 0xcc)
	return err
}

// closeAll ends what is left. Nothing is, unless the row hangs.
func (c *cell) closeAll() {
	if c.tap != nil {
		c.tap.close()
	}
	if c.i != nil {
		_ = c.i.rnic.Close()
	}
	if c.r != nil {
		_ = c.r.ln.Close()
		_ = c.r.rnic.Close()
		c.r.loop.Wait()
	}
	if c.hand != nil {
		c.hand.close()
	}
	c.closing.Wait()
	if c.over != nil {
		_ = c.over.Close()
	}
}

// connect is the initiator's part, up to the end of the connection.
func (c *cell) connect(ctx context.Context) error {
	in := &c.row.Initiator
	switch {
	case in.Request != nil:
		return askByHand(ctx, c.over, c.tap.addr(), in.Request)
	case in.Say != nil:
		return askOverSCTP(ctx, c.tap.addr(), in)
	}
	offer := in.Offer
	offer.Timeout = beyondTimeLeft(ctx)
	d := iwarp.Dialer{
		KeepRejected: true,
		PD:           c.i.pd, QP: c.i.qpConfig(ctx), MPA: offer, NoReads: in.NoReads,
		NoFallback: in.NoFallback, Prepare: c.i.prepare,
	}
	c.i.qp, c.failed = c.over.Dial(ctx, &d, c.tap.addr())
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), c.failed)
	}
	if c.failed == nil {
		return c.up(ctx)
	}
	c.i.causes.add(c.failed.Error())
	return c.refused(ctx)
}

// up is a connection that has come up, for the initiator.
func (c *cell) up(ctx context.Context) error {
	c.facts.say(byInitiator, outcome, "up")
	var r *iwarp.QP
	if c.r != nil {
		a, err := c.r.answerTo(ctx, c.tap.peer())
		if err != nil {
			return err
		}
		r, c.r.qp = a.qp, a.qp
		if r == nil {
			return errors.New("the connection is up for the initiator, and the responder has rejected it")
		}
		c.addBoth(&a)
		verified, err := exchange(ctx, c.i, c.r.endpoint, c.row.ResponderFirst)
		if err != nil {
			verified = err.Error()
		}
		c.facts.say("exchange", "data", verified)
	} else {
		c.addInitiator()
	}
	for _, qp := range []*iwarp.QP{c.i.qp, r} {
		if qp != nil {
			c.closing.Go(func() { _ = qp.Close() })
		}
	}
	return nil
}

// refused is a connection that has not come up.
func (c *cell) refused(ctx context.Context) error {
	var (
		startup    *mpa.StartupError
		terminated *iwarp.TerminateError
		rejected   *mpa.RejectError
		provider   *sctp.Refusal
		violation  *sctp.Violation
	)
	switch err := c.failed; {
	case errors.As(err, &rejected):
		c.facts.say(byInitiator, outcome, "reject")
		c.addRejected(rejected)
		return c.rejected(ctx)
	case errors.As(err, &terminated):
		c.facts.say(byInitiator, outcome, "terminate")
		c.facts.sayf(byInitiator, "code", "0x%04x", uint16(terminated.Code))
	case errors.Is(err, mpa.ErrOffer):
		c.facts.say(byInitiator, outcome, "invalid")
	case errors.As(err, &startup):
		c.facts.say(byInitiator, outcome, "close")
		c.facts.say(byInitiator, "failure", startup.Failure.String())
	case errors.As(err, &provider):
		c.facts.say(byInitiator, outcome, "refuse")
	case errors.As(err, &violation):
		c.facts.say(byInitiator, outcome, "violate")
	default:
		return fmt.Errorf("the initiator's error is none of a startup: %w", err)
	}
	return nil
}

// rejected uses TCP as a byte stream, if it was left open.
func (c *cell) rejected(ctx context.Context) error {
	var open *iwarp.RejectError
	var conns []net.Conn
	if errors.As(c.failed, &open) {
		conns = append(conns, open.Conn)
	}
	if c.r != nil {
		a, err := c.r.answerTo(ctx, c.tap.peer())
		if err != nil {
			return err
		}
		c.addRequest(&a)
		if a.conn != nil {
			conns = append(conns, a.conn)
		}
		c.facts.say("exchange", "stream", wording.If(len(conns) == 2 &&
			converse(ctx, conns[0], conns[1]), "open", "closed"))
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
	return nil
}
