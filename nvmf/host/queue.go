package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/deadline"
	"github.com/goiwarp/iwarp/internal/inbox"
)

// tagBits of a command's id are the number of its slot; those above count its uses, so that a completion that comes
// late is not taken for that of another command.
const tagBits = 12

// receiveLen is what there is room for in a receive. A completion may be longer than it has to be (IORCSZ), and the
// rest is not read.
const receiveLen = 64

// A queue is a submission queue and its completion queue: one connection.
type queue struct {
	id       uint16
	keepKeys bool
	// inline is how many bytes of data a capsule has room for, after the command.
	inline int
	qp     *iwarp.QP
	// capsules and answers are what is sent from and received into, capsuleLen and receiveLen bytes for each entry.
	capsules *iwarp.MR
	answers  *inbox.Inbox

	free chan *slot
	// fail ends the session, and dead is closed when it has ended.
	fail func(error)
	dead <-chan struct{}
	// served is closed when nothing is received any more.
	served chan struct{}

	mu    sync.Mutex // of slots
	slots []slot
}

// A slot is the place of a command that is under way.
type slot struct {
	tag, turn uint16
	name      string
	since     time.Time // zero: it is complete, or there is none
	abandoned bool      // nobody waits for the completion
	mr        *iwarp.MR // of the data; nil: there are none, or they are in the capsule
	reply     chan capsule.Completion
}

func (s *slot) id() uint16 { return s.turn<<tagBits | s.tag }

// A task is a command and its data.
type task struct {
	cmd  capsule.Command // its id and its SGL are the queue's business
	data []byte
	// receives tells that the data come from the controller.
	receives bool
}

func newQueue(id uint16, depth, inline int, s *session) *queue {
	q := &queue{
		id: id, keepKeys: s.d.KeepKeys, inline: inline, fail: s.fail, dead: s.dead,
		free: make(chan *slot, depth-1), served: make(chan struct{}), slots: make([]slot, depth-1),
	}
	for i := range q.slots {
		q.slots[i] = slot{tag: uint16(i), reply: make(chan capsule.Completion, 1)}
		q.free <- &q.slots[i]
	}
	return q
}

// prepare registers what the QP sends from and receives into, and posts the receives: as many as there can be commands.
func (q *queue) prepare(qp *iwarp.QP) (err error) {
	q.qp = qp
	n := len(q.slots)
	if q.capsules, err = qp.PD().Register(make([]byte, n*q.capsuleLen()), 0); err != nil {
		return err
	}
	q.answers, err = inbox.Open(qp, n, receiveLen)
	return err
}

func (q *queue) capsuleLen() int { return capsule.CommandLen + q.inline }

// do carries a command out, and returns its completion. The error says why there is none: the context's, or that of the
// session.
func (q *queue) do(ctx context.Context, t *task) (capsule.Completion, error) {
	s, err := q.acquireSlot(ctx, t)
	if err != nil {
		return capsule.Completion{}, err
	}
	sge, err := q.describe(s, t)
	if err != nil { // there is no memory to be had, say, and nothing was sent
		q.release(s)
		return capsule.Completion{}, q.cause(err)
	}
	if err := q.qp.PostSend(&iwarp.SendWR{ID: uint64(s.tag), SGL: []iwarp.SGE{sge}, Unsignaled: true}); err != nil {
		q.fail(q.qp.Cause(err))
	}
	select {
	case c := <-s.reply:
		q.release(s)
		return c, nil
	case <-ctx.Done():
		q.abandon(s)
		return capsule.Completion{}, deadline.ContextError(ctx)
	case <-q.dead:
		q.release(s)
		return capsule.Completion{}, errDead
	}
}

// cause is that of an error: what a session has registered is gone when it has ended, and nothing is registered for a
// connection that has.
func (q *queue) cause(err error) error {
	if errors.Is(err, iwarp.ErrClosed) {
		q.fail(q.qp.Cause(err))
	}
	select {
	case <-q.dead:
		return errDead
	default:
		return err
	}
}

// acquireSlot waits for a slot.
func (q *queue) acquireSlot(ctx context.Context, t *task) (*slot, error) {
	select {
	case s := <-q.free:
		return q.use(s, t)
	case <-ctx.Done():
		return nil, deadline.ContextError(ctx)
	case <-q.dead:
		return nil, errDead
	}
}

// use has a slot be that of a command, unless the session has ended: the slot may have been freed by that, while the
// capsule of the command before is still to be sent from it.
func (q *queue) use(s *slot, t *task) (*slot, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-q.dead:
		q.free <- s
		return nil, errDead
	default:
	}
	s.name, s.since, s.turn = t.cmd.Name(q.id == 0), time.Now(), s.turn+1
	return s, nil
}

// describe builds the capsule, and registers the data if they are not in it.
func (q *queue) describe(s *slot, t *task) (capsuleAt iwarp.SGE, err error) {
	at, length := int(s.tag)*q.capsuleLen(), capsule.CommandLen
	t.cmd.ID, t.cmd.SGL = s.id(), capsule.SGL{Type: capsule.SGLKeyed}
	switch {
	case len(t.data) == 0:
	case !t.receives && len(t.data) <= q.inline:
		t.cmd.SGL = capsule.SGL{Type: capsule.SGLOffset, Length: uint32(len(t.data))}
		length += len(t.data)
		_, err = q.capsules.WriteAt(t.data, int64(at+capsule.CommandLen))
	default:
		err = q.offer(s, t)
	}
	if err != nil {
		return capsuleAt, err
	}
	var room [capsule.CommandLen]byte
	_, err = q.capsules.WriteAt(t.cmd.Append(room[:0]), int64(at))
	return q.capsules.Slice(at, length), err
}

// offer registers the data for this command, and for the peer of this QP.
func (q *queue) offer(s *slot, t *task) error {
	o := iwarp.MROptions{QP: q.qp, Access: iwarp.RemoteRead}
	if t.receives {
		o.Access = iwarp.RemoteWrite
	}
	mr, err := q.qp.PD().RegisterOptions(t.data, o)
	if err != nil {
		return err
	}
	q.mu.Lock()
	s.mr = mr
	q.mu.Unlock()
	t.cmd.SGL = capsule.SGL{Type: capsule.SGLKeyedInvalidate, Length: uint32(len(t.data)), Key: mr.STag()}
	if q.keepKeys {
		t.cmd.SGL.Type = capsule.SGLKeyed
	}
	return nil
}

// release takes the memory back and frees the slot of a command that has ended. A completion that nobody has taken, as
// the session ended just then, goes: it would be that of the next command in the slot, which was not carried out.
func (q *queue) release(s *slot) {
	q.mu.Lock()
	mr := s.mr
	s.mr, s.since, s.abandoned = nil, time.Time{}, false
	select {
	case <-s.reply:
	default:
	}
	q.mu.Unlock()
	if mr != nil {
		_ = mr.Deregister() // it is registered, and has no windows
	}
	q.free <- s
}

// abandon leaves the command to itself: it goes on with a copy of the data, and its slot is freed when its completion
// comes. There may be none any more: one that has come was that of the command, and after the end of the session
// nothing comes that would free the copy.
func (q *queue) abandon(s *slot) {
	q.mu.Lock()
	select {
	case <-s.reply:
		q.mu.Unlock()
		q.release(s)
		return
	case <-q.dead:
		q.mu.Unlock()
		q.release(s)
		return
	default:
	}
	defer q.mu.Unlock()
	s.abandoned = true
	if s.mr != nil {
		_ = s.mr.Detach() // it is registered, and has memory
	}
}

// overdue returns the name of a command that has been under way since before a time, and "" if there is none.
func (q *queue) overdue(before time.Time) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.slots {
		if s := &q.slots[i]; !s.since.IsZero() && s.since.Before(before) {
			return s.name
		}
	}
	return ""
}
