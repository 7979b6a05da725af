package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/internal/capsule"
)

// errDead ends the commands of a session that has ended; session.err says why.
var errDead = errors.New("nvme: the controller's connections have ended")

// A session is one controller, as the target counts them: an admin queue, and I/O queues.
type session struct {
	d     *Dialer
	admin *queue
	io    []*queue
	next  atomic.Uint32 // of io

	controller uint16
	identity   capsule.IdentifyController
	// maxData is how many bytes a command may move.
	maxData int

	dead chan struct{}
	once sync.Once
	err  error // when dead is closed
	// serving ends with the session.
	serving context.Context
	end     context.CancelFunc
}

func (d *Dialer) newSession() *session {
	s := &session{d: d, dead: make(chan struct{}), maxData: maxData}
	s.serving, s.end = context.WithCancel(context.Background())
	return s
}

// fail ends the session, unless it has ended: nobody waits for a completion any more, and no connection is used.
func (s *session) fail(err error) {
	s.once.Do(func() {
		s.err = err
		close(s.dead)
	})
}

// queues are all that there are.
func (s *session) queues() []*queue {
	if s.admin == nil {
		return s.io
	}
	return append([]*queue{s.admin}, s.io...)
}

// pick returns the I/O queue for the next command. A discovery controller has none, and what was a controller with
// namespaces may be one when it comes back.
func (s *session) pick() (*queue, error) {
	if len(s.io) == 0 {
		return nil, protocolError("is a discovery controller, which has no queues for I/O")
	}
	return s.io[s.next.Add(1)%uint32(len(s.io))], nil
}

// release ends the connections of a session that has ended, by a reset, and gives up what they take.
func (s *session) release() {
	s.fail(ErrClosed)
	for _, q := range s.queues() {
		_ = q.qp.Abort()
	}
	s.end()
	for _, q := range s.queues() {
		q.retire()
	}
}

// retire gives up what a queue has registered, when its connection has ended.
func (q *queue) retire() {
	<-q.served
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.slots {
		if s := &q.slots[i]; s.abandoned && s.mr != nil {
			_ = s.mr.Deregister()
		}
	}
	q.giveBack()
}

func (q *queue) giveBack() {
	if q.capsules != nil {
		_ = q.capsules.Deregister()
	}
	q.answers.Close()
}

// watch looks after commands that are not answered.
func (s *session) watch() {
	late := time.NewTicker(max(s.d.Timeout/4, time.Millisecond))
	defer late.Stop()
	for {
		select {
		case <-s.dead:
			return
		case now := <-late.C:
			s.reap(now)
		}
	}
}

// keepAlives keeps the controller alive.
func (s *session) keepAlives() {
	if s.d.KeepAlive == 0 {
		return
	}
	beat := time.NewTicker(max(s.d.KeepAlive/2, time.Millisecond))
	defer beat.Stop()
	for {
		select {
		case <-s.dead:
			return
		case <-beat.C:
			go s.keepAlive()
		}
	}
}

// keepAlive tells the controller that we are there, and ends the session if the controller is not.
func (s *session) keepAlive() {
	ctx, cancel := context.WithTimeout(s.serving, s.d.KeepAlive)
	defer cancel()
	t := task{cmd: capsule.NewCommand(capsule.OpKeepAlive, 0)}
	if _, err := s.admin.do(ctx, &t); err != nil && ctx.Err() == context.DeadlineExceeded {
		s.fail(&TimeoutError{t.cmd.Name(true), s.d.KeepAlive})
	}
}

// reap ends the session if a command has not been answered for Dialer.Timeout.
func (s *session) reap(now time.Time) {
	for _, q := range s.queues() {
		if name := q.overdue(now.Add(-s.d.Timeout)); name != "" {
			s.fail(&TimeoutError{name, s.d.Timeout})
			return
		}
	}
}

// command carries out a command on a queue whose success is a must.
func (s *session) command(ctx context.Context, q *queue, t *task) (capsule.Completion, error) {
	c, err := q.do(ctx, t)
	switch {
	case errors.Is(err, errDead):
		return c, s.err
	case err != nil:
		return c, fmt.Errorf("nvme: %s: %w", t.cmd.Name(q.id == 0), err)
	}
	if c.Status.Code() != capsule.Success {
		return c, &StatusError{t.cmd.Name(q.id == 0), c.Status, c.Result}
	}
	return c, nil
}

// shutdown ends the controller in order: the target is told, and then the connections are closed.
func (s *session) shutdown(ctx context.Context) error {
	err := s.setProperty(ctx, capsule.PropertyCC, uint64(
		capsule.ConfigurationEnabled.WithShutdown(capsule.ShutdownNormal)))
	if err == nil {
		err = s.awaitStatus(ctx, capsule.StatusShutdownDone)
	}
	s.fail(ErrClosed) // before the connections end, which is no failure then
	var closing sync.WaitGroup
	for _, q := range s.queues() {
		closing.Go(func() { _ = q.qp.Close() }) // nothing is under way that the target could lose
	}
	closing.Wait()
	return err
}
