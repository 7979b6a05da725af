package iwarp

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// A CompChannel collects the notices of several Completion Queues, so that one goroutine waits for all
// of them (RDMA verbs 8: a handler serves several CQs). CompChannel.CreateCQ makes CQs for it. Its methods may be called
// by any goroutine.
type CompChannel struct {
	rnic *RNIC

	mu     sync.Mutex
	due    []*CQ // that have a notice, the first that had one first; each once
	cqs    int   // made for the channel, and not closed
	closed bool

	gate chan struct{} // a token wakes one of Next
}

// NewCompChannel returns a CompChannel without CQs. It fails only if the RNIC is closed.
func (r *RNIC) NewCompChannel() (*CompChannel, error) {
	if err := r.checkOpen(); err != nil {
		return nil, &OpError{Op: "create completion channel", Err: err}
	}
	return &CompChannel{rnic: r, gate: make(chan struct{}, 1)}, nil
}

// CreateCQ is RNIC.CreateCQ for a CQ whose notices, which CQ.Arm asks for, go to the channel, and not to
// CQ.Events.
func (c *CompChannel) CreateCQ(depth int) (*CQ, error) {
	if err := c.attach(); err != nil {
		return nil, &OpError{Op: "create CQ", Err: err}
	}
	cq, err := c.rnic.createCQ(depth, c)
	if err != nil {
		c.detach(nil)
	}
	return cq, err
}

// Next waits for a CQ that has a notice, and takes that. As with CQ.Arm, poll the CQ, arm it, and poll again: a CQ that
// has got several notices by the time Next takes them is returned once. There is nothing to acknowledge. The error is
// an *OpError that wraps the context's, or ErrClosed after Close.
func (c *CompChannel) Next(ctx context.Context) (*CQ, error) {
	for {
		cq, err := c.take()
		if cq != nil || err != nil {
			return cq, err
		}
		select {
		case <-c.gate:
		case <-ctx.Done():
			return nil, waitFailed(ctx.Err())
		}
	}
}

// take returns the first CQ that has a notice, nil if none has, and wakes the next waiter if there are
// more.
func (c *CompChannel) take() (cq *CQ, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		wake(c.gate)
		return nil, waitFailed(errChannelClosed)
	}
	if len(c.due) == 0 {
		return nil, nil
	}
	cq = c.due[0]
	c.due = append(c.due[:0], c.due[1:]...)
	cq.due = false
	if len(c.due) > 0 {
		wake(c.gate)
	}
	return cq, nil
}

// note has Next return a CQ.
func (c *CompChannel) note(cq *CQ) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !cq.due {
		cq.due = true
		c.due = append(c.due, cq)
		wake(c.gate)
	}
}

// Close ends the channel and wakes those who wait for it. It fails with ErrBadState while CQs that were
// made for it are open, and with ErrClosed if it was closed before.
func (c *CompChannel) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.cqs > 0:
		return &OpError{Op: "close completion channel", Err: fmt.Errorf("%w: CQs that use it: %d; close them first", ErrBadState, c.cqs)}
	case c.closed:
		return &OpError{Op: "close completion channel", Err: errChannelClosed}
	}
	c.closed = true
	wake(c.gate)
	return nil
}

func (c *CompChannel) attach() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errChannelClosed
	}
	c.cqs++
	return nil
}

// detach drops a CQ, with its notice if it has one.
func (c *CompChannel) detach(cq *CQ) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cqs--
	c.due = slices.DeleteFunc(c.due, func(due *CQ) bool { return due == cq })
}
