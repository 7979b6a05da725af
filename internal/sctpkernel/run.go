package sctpkernel

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/sctp"
)

// Run reports what happens, from the goroutine that calls it, until the association has ended and lost was called.
// receive gets a message, whose Data is its own; acked hears that the peer has the first n messages of a stream.
func (c *Conn) Run(receive func(sctp.Message), acked func(stream uint16, n uint64), lost func(error)) {
	for {
		m, err := c.s.recv()
		if err != nil {
			c.noteCause(err)
			break
		}
		if !c.handle(m, receive, acked) {
			break
		}
	}
	c.closeDescriptor()
	lost(*c.cause.Load())
}

// handle does what follows from one inbound. It reports false at the end of the association.
func (c *Conn) handle(m *inbound, receive func(sctp.Message), acked func(uint16, uint64)) bool {
	if m.flags&msgNotification != 0 {
		goesOn := c.notified(m.notification(), acked)
		m.release()
		return goesOn
	}
	if m.n == 0 { // the end of what can be read
		m.release()
		c.noteCause(lowerlayer.ErrShutdown)
		return false
	}
	message, whole := c.assemble(m)
	m.release()
	switch {
	case whole:
		receive(message)
	case len(c.partial) > lowerlayer.MaxMessage:
		c.noteCause(lowerlayer.ErrViolated)
		c.Abort("a message that is longer than any DDP Segment")
		return false
	}
	return true
}

// assemble returns a message when it is whole: the kernel may hand it out in pieces, which it does not mix with others.
func (c *Conn) assemble(m *inbound) (v sctp.Message, whole bool) {
	c.partial = append(c.partial, m.data...)
	if m.flags&msgEOR == 0 {
		return v, false
	}
	info, _ := parseControl(m.control[:m.controlLen])
	v = sctp.Message{Stream: info.stream, PPID: info.ppid, Ordered: info.flags&flagUnordered == 0, Data: c.partial}
	c.partial = nil
	return v, true
}

// notified acts on a notification. It reports false at the end of the association. An order to end that has come from
// us is why it ends, whatever the kernel calls it.
func (c *Conn) notified(n notification, acked func(uint16, uint64)) bool {
	switch n.kind {
	case eventSenderDry:
		for id, n := range c.settled() {
			acked(id, n)
		}
	case eventShutdown:
		c.noteCause(lowerlayer.ErrShutdown)
	case eventAssocChange:
		return c.changed(n)
	}
	return true
}

func (c *Conn) changed(n notification) bool {
	switch n.state {
	case commLost:
		c.noteCause(c.lost(n))
		return false
	case shutdownComplete:
		c.noteCause(lowerlayer.ErrShutdown)
		return false
	case restart:
		c.noteCause(lowerlayer.ErrRestarted)
		c.Abort(lowerlayer.ErrRestarted.Error())
		return false
	}
	return true
}

// lost tells an ABORT from a peer that has fallen silent, and from one that our kernel has aborted: of those it has no
// causes.
func (c *Conn) lost(n notification) (err error) {
	_ = c.s.do(func(fd int) error {
		err = lastError(fd)
		return nil
	})
	switch {
	case len(n.info) > 0:
	case timedOut(err):
		return lowerlayer.ErrSilent
	case n.cause == chunk.CauseProtocolViolation:
		return fmt.Errorf("%w: our kernel has ended the association", lowerlayer.ErrViolated)
	}
	return aborted(n.cause, n.info)
}
