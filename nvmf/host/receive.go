package host

import (
	"context"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/inbox"
)

// serve takes completions until the connection ends.
func (q *queue) serve(ctx context.Context) {
	defer close(q.served)
	q.fail(q.qp.Cause(inbox.Each(ctx, q.qp.RecvCQ(), q.completed)))
}

// completed is told of a request of ours. Sends have completions only if they fail.
func (q *queue) completed(wc *iwarp.WC) error {
	if err := wc.Err(); err != nil {
		return q.qp.Cause(err)
	}
	if wc.Op != iwarp.OpRecv {
		return nil
	}
	if wc.Length < capsule.CompletionLen {
		return protocolError("sent a completion of %d bytes, which has %d", wc.Length, capsule.CompletionLen)
	}
	c, err := capsule.ParseCompletion(q.answers.Bytes(wc)[:capsule.CompletionLen])
	if err != nil {
		return err
	}
	if err := q.answers.Post(wc.ID); err != nil { // before the slot has another command, whose completion needs it
		return err
	}
	return q.deliver(c, wc.Invalidated)
}

// deliver hands a completion to who waits for it.
func (q *queue) deliver(c capsule.Completion, invalidated uint32) error {
	s, err := q.completes(c, invalidated)
	if err != nil || s == nil {
		return err
	}
	q.release(s)
	return nil
}

// completes finds the command of a completion. It returns the slot if nobody waits for it any more.
func (q *queue) completes(c capsule.Completion, invalidated uint32) (*slot, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	tag := int(c.ID & (1<<tagBits - 1))
	if tag >= len(q.slots) || q.slots[tag].since.IsZero() || q.slots[tag].id() != c.ID {
		return nil, protocolError("completed command %#04x, which is not under way", c.ID)
	}
	s := &q.slots[tag]
	if invalidated != 0 && (q.keepKeys || s.mr == nil || s.mr.STag() != invalidated) {
		return nil, protocolError("invalidated a key by the completion of %s, which did not ask for that", s.name)
	}
	s.since = time.Time{}
	if s.abandoned {
		return s, nil
	}
	s.reply <- c
	return nil, nil
}
