package iwarp

import (
	"time"
)

// Unready bounds what a QP keeps of Sends and Immediate Data that have come and find no receive: see QPConfig.Unready. They wait,
// in order, until receives are posted. Everything else goes on: RDMA Writes behind them are placed, Reads are answered, and
// what the peer answers completes requests. When the peer closes its half, that is not told, and receives can still be posted, until
// all of them are received; with Close they are dropped.
//
// When so much waits nothing more is received, and the lower layer holds the peer back, until receives are posted. Then
// responses and the peer's close wait too: two programs of which each waits for such may wait for ever, so that the bound is to be more
// than what the peer has under way. Over SCTP, a session that is held back while it keeps others of its association waiting is given
// up after 5 s (docs/endings.md). The bound is exceeded by what was received in one piece, up to 256 KiB over TCP; RNICAttr.MaxHeld has neither.
//
// By default, and as the RFCs have it, a Send without a receive ends the connection (RFC 5041, section 7.1). A Send to a Shared Receive
// Queue of which the QP holds its share (SRQConfig.PerQP) does in any case.
type Unready struct {
	// Octets bounds the octets that wait, of which each segment has its header and 200 more. If zero, and Messages is
	// not, 1 MiB.
	Octets int
	// Messages bounds the messages. If zero, and Octets is not, 1024.
	Messages int
}

func (u *Unready) fill() {
	if *u != (Unready{}) {
		u.Octets = orDefault(u.Octets, 1<<20)
		u.Messages = orDefault(u.Messages, 1024)
	}
}

// awaitRoom waits until the engine may take something in, or c is the QP's no more.
func (qp *QP) awaitRoom(c link) {
	if qp.cfg.Unready == (Unready{}) {
		return
	}
	qp.mu.Lock()
	defer qp.mu.Unlock()
	for qp.eng.HoldsBack() && qp.carries(c) {
		qp.room.Wait()
	}
}

// tellRoom wakes who waits for room, if there is some.
func (qp *QP) tellRoom() {
	if qp.cfg.Unready != (Unready{}) && (!qp.eng.HoldsBack() || qp.closingLLP || qp.closedLLP) {
		qp.room.Broadcast()
	}
}

// readyUnlocking has what waits received, when a receive was posted.
func (qp *QP) readyUnlocking() {
	if qp.eng.Unready() {
		qp.eng.Ready(time.Now())
		qp.pushUnlocking()
	}
}

// ready is readyUnlocking for who has posted to a Shared Receive Queue.
func (qp *QP) ready() {
	qp.mu.Lock()
	defer qp.unlock()
	qp.readyUnlocking()
}

// serve has QPs take what was posted that wait for it.
func (s *SRQ) serve() {
	for _, qp := range s.waiters() {
		qp.ready()
	}
}

// waiters returns the QPs that wait. Those that go on waiting say so again.
func (s *SRQ) waiters() (all []*QP) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for qp := range s.waiting {
		all = append(all, qp)
	}
	clear(s.waiting)
	return all
}

// Awaits notes that the QP waits for a receive. One that holds its share of the queue does not.
func (s srqSource) Awaits() bool {
	srq := s.srq
	srq.mu.Lock()
	defer srq.mu.Unlock()
	if srq.perQP > 0 && s.qp.srqHeld.count() >= int64(srq.perQP) {
		return false
	}
	if srq.waiting == nil {
		srq.waiting = make(map[*QP]struct{})
	}
	srq.waiting[s.qp] = struct{}{}
	return true
}
