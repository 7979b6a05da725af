package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/deadline"
)

// A Controller is a subsystem that we are connected to. Any goroutine may call its methods, and those of its
// namespaces.
type Controller struct {
	d  Dialer
	to subsystem
	// open ends with Close.
	open   context.Context
	cancel context.CancelFunc
	// ended is closed when there are no connections any more, and none will be.
	ended chan struct{}

	mu         sync.Mutex
	current    *session      // nil while there is none
	changed    chan struct{} // closed when current or err changes
	err        error         // it has given up, or was closed
	closed     error         // what Close has met
	namespaces map[uint32]*Namespace
}

func newController(d Dialer, to subsystem) *Controller {
	c := &Controller{d: d, to: to, ended: make(chan struct{}), changed: make(chan struct{}),
		namespaces: make(map[uint32]*Namespace)}
	c.open, c.cancel = context.WithCancel(context.Background())
	return c
}

func (c *Controller) start(s *session) {
	c.set(s, nil)
	go c.run(s)
}

// set has the callers use a session, or fail.
func (c *Controller) set(s *session, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current, c.err = s, err
	close(c.changed)
	c.changed = make(chan struct{})
}

// run sees to it that there is a session, until Close.
func (c *Controller) run(s *session) {
	defer close(c.ended)
	for {
		select {
		case <-s.dead:
		case <-c.open.Done():
			c.set(nil, ErrClosed)
			c.shutdown(s)
			return
		}
		c.set(nil, nil)
		s.release()
		next, err := c.again(c.open, s.err)
		if err != nil {
			c.set(nil, err)
			return
		}
		s = next
		c.set(s, nil)
	}
}

// shutdown ends the last session in order, which may take no longer than a command.
func (c *Controller) shutdown(s *session) {
	ctx, cancel := context.WithTimeout(context.Background(), c.d.Timeout)
	defer cancel()
	err := s.shutdown(ctx)
	s.release()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = err
}

// again connects anew, for as long as there is patience, and unless the target says that this is of no use. It tells of
// the loss and of the new session.
func (c *Controller) again(ctx context.Context, cause error) (*session, error) {
	c.d.Logger.Info("nvme: the controller is lost", "target", c.to.address, "subsystem", c.to.nqn, "error", cause)
	if c.d.Patience < 0 {
		return nil, &LostError{Cause: cause}
	}
	c.d.Lost(cause)
	s, err := c.attempts(ctx, cause)
	if err == nil {
		c.d.Logger.Info("nvme: the controller is back", "target", c.to.address, "subsystem", c.to.nqn)
		c.d.Lost(nil)
	}
	return s, err
}

// attempts connects until there is a session.
func (c *Controller) attempts(ctx context.Context, cause error) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, c.d.Patience)
	defer cancel()
	var last error
	for {
		s, err := c.d.establish(ctx, c.to)
		if err == nil {
			err = c.recognize(ctx, s)
		}
		if err == nil {
			return s, nil
		}
		if last == nil || ctx.Err() == nil { // which is the reason, and not the end of the patience
			last = err
		}
		if status, ok := errors.AsType[*StatusError](err); ok && !status.Status.Retryable() {
			return nil, &LostError{cause, err}
		}
		select {
		case <-time.After(c.d.Delay):
		case <-ctx.Done():
		}
		switch {
		case c.open.Err() != nil:
			return nil, ErrClosed
		case ctx.Err() != nil:
			return nil, &LostError{cause, last}
		}
	}
}

// recognize holds that the namespaces are what they were.
func (c *Controller) recognize(ctx context.Context, s *session) error {
	c.mu.Lock()
	known := make([]*Namespace, 0, len(c.namespaces))
	for _, n := range c.namespaces {
		known = append(known, n)
	}
	c.mu.Unlock()
	for _, n := range known {
		if err := n.recognize(ctx, s); err != nil {
			s.release()
			return err
		}
	}
	return nil
}

// session returns the present session, and waits for one.
func (c *Controller) session(ctx context.Context) (*session, error) {
	for {
		c.mu.Lock()
		s, err, changed := c.current, c.err, c.changed
		c.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if s != nil {
			select {
			case <-s.dead: // which run has not seen yet
			default:
				return s, nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, deadline.ContextError(ctx)
		}
	}
}

// asking has a session asked for something, and the next one if the controller was lost before it has answered.
func (c *Controller) asking(ctx context.Context, ask func(*session) error) error {
	for turn := 0; ; turn++ {
		s, err := c.session(ctx)
		if err != nil {
			return err
		}
		err = ask(s)
		select {
		case <-s.dead:
			if err == nil || turn == retries {
				return err
			}
		default:
			return err
		}
	}
}

// An IdentifyController is a page about the controller.
type IdentifyController = capsule.IdentifyController

// Identity is what the controller says of itself, as of the latest connection; zero while there is none.
func (c *Controller) Identity() IdentifyController {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return IdentifyController{}
	}
	return c.current.identity
}

// Queues is how many I/O queues there are, 0 while there is no connection.
func (c *Controller) Queues() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return 0
	}
	return len(c.current.io)
}

// Close tells the target, and closes the connections in order. Calls that are under way fail with ErrClosed. What had
// completed is durable only if a Flush said so. The error tells of an end that was not in order.
func (c *Controller) Close() error {
	c.cancel()
	<-c.ended
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}
