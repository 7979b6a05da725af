//go:build unix

// Package notify shows events of package iwarp by a descriptor, for programs with a loop of their own around poll(2),
// epoll(7) or kqueue(2). The descriptor is readable while there is something to get.
//
//	q, err := notify.CQs(cq)
//	cq.Arm(false)
//	// Wait until q.Fd() is readable.
//	cq, ok := q.Get()
//	// Arm cq again, and then poll it.
//
// It is what ibv_comp_channel and the async_fd of an ibv_context are to libibverbs. Its CQs are those that it was made
// with. Programs without such a loop need none of it: see iwarp.CQ.Next, iwarp.CQ.Events and iwarp.RNIC.NextEvent.
//
// The package exists on Unix-like systems only.
package notify

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"github.com/goiwarp/iwarp"
)

// A Queue has events that the program has not got yet. Several goroutines may use it.
type Queue[T any] struct {
	r, w   *os.File // a pipe, with a byte for each of events
	fd     int
	events chan T
	ctx    context.Context
	stop   context.CancelFunc
	tasks  sync.WaitGroup
	closed atomic.Bool
}

// CQs returns a Queue with the notices that Arm asks for. Nobody else may receive from the Events of the CQs. The error
// wraps iwarp.ErrInvalid if there is no CQ.
func CQs(cqs ...*iwarp.CQ) (*Queue[*iwarp.CQ], error) {
	if len(cqs) == 0 {
		return nil, fmt.Errorf("notify: %w: no CQ is named, so no notice would come", iwarp.ErrInvalid)
	}
	for i, cq := range cqs {
		if cq.Events() == nil {
			return nil, fmt.Errorf("notify: %w: CQ %d is nil or a zero value; RNIC.CreateCQ makes one", iwarp.ErrInvalid, i)
		}
	}
	q, err := newQueue[*iwarp.CQ](len(cqs))
	if err != nil {
		return nil, err
	}
	for _, cq := range cqs {
		q.tasks.Go(func() { serve(q, cq) })
	}
	return q, nil
}

// Events returns a Queue with the events of an RNIC, in place of its NextEvent. Those that the program does not get
// wait in the RNIC, which keeps RNICConfig.EventDepth of them. After the RNIC was closed no more come, and nothing
// tells of that.
func Events(rnic *iwarp.RNIC) (*Queue[iwarp.Event], error) {
	if rnic.Query().Versions == nil {
		return nil, fmt.Errorf("notify: %w: the RNIC is nil or a zero value; NewRNIC makes one", iwarp.ErrInvalid)
	}
	q, err := newQueue[iwarp.Event](1)
	if err != nil {
		return nil, err
	}
	q.tasks.Go(func() {
		for {
			e, err := rnic.NextEvent(q.ctx)
			if err != nil || !q.put(e) {
				return
			}
		}
	})
	return q, nil
}

func newQueue[T any](depth int) (*Queue[T], error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	q := &Queue[T]{r: r, w: w, events: make(chan T, depth)}
	q.ctx, q.stop = context.WithCancel(context.Background())
	c, err := r.SyscallConn()
	if err == nil {
		err = c.Control(func(fd uintptr) { q.fd = int(fd) }) // which File.Fd would make block
	}
	if err != nil {
		_ = q.Close()
		return nil, err
	}
	return q, nil
}

func serve(q *Queue[*iwarp.CQ], cq *iwarp.CQ) {
	for {
		select {
		case <-cq.Events():
			if !q.put(cq) {
				return
			}
		case <-q.ctx.Done():
			return
		}
	}
}

// put waits for room. It reports false if the Queue was closed.
func (q *Queue[T]) put(e T) bool {
	select {
	case q.events <- e:
		_, err := q.w.Write([]byte{0}) // which has room: there are few events
		return err == nil
	case <-q.ctx.Done():
		return false
	}
}

// isMade reports whether CQs or Events has made the Queue.
func (q *Queue[T]) isMade() bool { return q != nil && q.r != nil }

// Fd returns the descriptor. It is the Queue's: do not read from it or close it. It is -1 after Close, and if q is nil
// or a zero value.
func (q *Queue[T]) Fd() int {
	if !q.isMade() || q.closed.Load() {
		return -1
	}
	return q.fd
}

// Get returns the oldest event, and false if there is none. It does not wait for one.
func (q *Queue[T]) Get() (e T, ok bool) {
	if !q.isMade() {
		return e, false
	}
	select {
	case e = <-q.events:
		_, err := q.r.Read(make([]byte, 1)) // put has written it, or is about to
		return e, err == nil
	default:
		return e, false
	}
}

// Close closes the descriptor. Events that nobody has got are dropped. A second Close returns an error that wraps
// net.ErrClosed.
func (q *Queue[T]) Close() error {
	if !q.isMade() {
		return fmt.Errorf("notify: %w: the Queue is nil or a zero value; CQs and Events make one", iwarp.ErrInvalid)
	}
	if q.closed.Swap(true) {
		return fmt.Errorf("notify: %w: the Queue was closed before", net.ErrClosed)
	}
	q.stop()
	q.tasks.Wait()
	_ = q.w.Close()
	return q.r.Close()
}
