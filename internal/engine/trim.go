package engine

import "github.com/goiwarp/iwarp/rdmap"

// A batch is what has happened since it was last drained. Its memory is used again.
type batch[T any] struct {
	items []T
	most  int // entries drained at once since the last trim
}

func (b *batch[T]) add(v T) { *b.next() = v }

// next adds an entry that is zero, for the caller to fill in before the next is added: a large one is not copied so.
func (b *batch[T]) next() *T {
	var zero T
	b.items = append(b.items, zero)
	return &b.items[len(b.items)-1]
}

// drain hands over the entries, which are valid until the next is added.
func (b *batch[T]) drain() []T {
	v := b.items
	b.items, b.most = b.items[:0], max(b.most, len(v))
	return v
}

// swap hands over the entries, and has the next ones take the memory of to.
func (b *batch[T]) swap(to []T) []T {
	v := b.drain()
	b.items = to
	return v
}

// slack reports whether there is memory for more than keep entries.
func (b *batch[T]) slack(keep int) bool { return cap(b.items) > keep }

// trim gives the memory back if much less of it was used since the trim before.
func (b *batch[T]) trim(keep int) {
	if b.slack(keep) && len(b.items) == 0 && b.most <= cap(b.items)/4 {
		b.items = nil
	}
	b.most = 0
}

// Slack reports whether the QP has much more memory than its work takes, so that a Trim
// after some time may be worth it.
func (q *Machine) Slack() bool {
	return q.sq.Slack() || q.rq.Slack() || q.orq.Slack() || q.irrq.Slack() || q.done.slack(0) ||
		q.notices.slack(len(q.few)) || q.ahead.slack() ||
		q.queues[rdmap.QNSend].Slack() || q.current != nil && !q.taken
}

// Trim gives back memory that was not needed since the Trim before. Called at a distance
// that is long against the time that work takes, it does not take away what will be wanted
// again at once.
func (q *Machine) Trim() {
	q.sq.Trim()
	q.rq.Trim()
	q.orq.Trim()
	q.irrq.Trim()
	q.done.trim(0)
	q.notices.trim(len(q.few))
	q.ahead.trim()
	q.queues[rdmap.QNSend].Trim()
	q.trimCurrent()
}

// trimCurrent leaves the receive under way, and memory for the next one if there were some since the Trim before.
func (q *Machine) trimCurrent() {
	if !q.taken && !q.tookOne {
		q.current = nil
	}
	q.tookOne = false
}
