package iwarp

import (
	"time"
)

// Unready bounds what a QP keeps of Sends and Immediate Data that have come and find no receive, and of what the peer
// has asked for after them: see QPConfig.Unready. They wait until receives are posted; Writes, Reads and Atomic
// Operations after them wait with them, so that everything is carried out in the order in which the peer has sent it
// (RFC 5041, sections 5.3 and 5.4; RFC 5040, section 5.5, rule 12). Only answers to requests of this side overtake
// them, as they do on RoCE: a Read completes before the receives are posted. That departs from section 5.3 of RFC 5041,
// "MUST Deliver DDP Messages to the ULP in the order they were sent". A Terminate overtakes them, too.
//
// When the peer closes its half, the program learns of it when all that waits has been received; receives can be posted
// until then. What waits is never dropped in silence, as it is complete for the peer: QP.Close and Shutdown, while
// something waits, end the connection as without Unready, by a TerminateError 0x1202 at both ends.
//
// When that much waits, nothing more is received, and the lower layer holds the peer back, until receives are posted.
// Then responses and the peer's close wait too: two programs that both wait for one of these may wait for ever, so make
// the bound larger than what the peer has under way. QPConfig.IdleTimeout bounds how long a QP waits for receives, as
// for anything else; without it a peer waits as long as the consumer takes, as it does on RoCE with an RNR retry count
// of 7. A reset is noticed meanwhile on Linux, also below TLS, and over SCTP and a Stack whose connections tell
// (EndTeller); elsewhere when receiving goes on. Over SCTP, a session that is held back while it keeps others of its
// association waiting is given up after 5 s (docs/endings.md).
//
// The bound is exceeded by what was received in one piece, up to 256 KiB over TCP. All of it counts in
// Limits.HeldOctets, and none of it in RNICAttr.MaxHeld.
//
// By default, and as the RFCs have it, a Send without a receive ends the connection (RFC 5041, section 7.1). A Send
// does so in any case if the QP holds its share of a Shared Receive Queue already (SRQConfig.PerQP).
type Unready struct {
	// Octets bounds the octets that wait, counting for each segment its header and 200 more. If zero, and Messages is
	// not, 1 MiB.
	Octets int
	// Messages bounds the messages, Writes among them. If zero, and Octets is not, 1024.
	Messages int
}

func (u *Unready) fill() {
	if *u != (Unready{}) {
		u.Octets = orDefault(u.Octets, 1<<20)
		u.Messages = orDefault(u.Messages, 1024)
	}
}

// lookEvery is how often a connection that is held back is looked at: nobody receives from it, who would learn of a reset.
const lookEvery = 250 * time.Millisecond

// awaitRoom waits until the engine may take something in, or c is the QP's no more.
func (qp *QP) awaitRoom(c link) {
	if qp.cfg.Unready == (Unready{}) {
		return
	}
	qp.mu.Lock()
	defer qp.unlockReceiving()
	for qp.holdsBack(c) {
		look := time.AfterFunc(lookEvery, qp.look)
		qp.room.Wait()
		look.Stop()
		if qp.holdsBack(c) {
			qp.lookUnlocking(c)
		}
	}
}

// holdsBack reports whether c is the QP's, and nothing is to be received from it for now.
func (qp *QP) holdsBack(c link) bool { return qp.eng.HoldsBack() && qp.carries(c) }

// look wakes who waits for room. It takes the lock so that nobody misses that who has looked, and does not wait yet.
func (qp *QP) look() {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	qp.room.Broadcast()
}

// lookUnlocking ends the QP if c was lost.
func (qp *QP) lookUnlocking(c link) {
	qp.mu.Unlock()
	err := c.Gone()
	qp.mu.Lock()
	if err != nil && qp.carries(c) {
		qp.eng.Failed(time.Now(), err)
		qp.pushUnlocking()
	}
}

// tellRoom wakes who waits for room, if there is some.
func (qp *QP) tellRoom() {
	if qp.cfg.Unready != (Unready{}) && (!qp.eng.HoldsBack() || qp.closingLLP || qp.closedLLP) {
		qp.room.Broadcast()
	}
}

// readyUnlocking has what waits received, when a receive was posted. A consumer that takes its time is no idle connection.
func (qp *QP) readyUnlocking() {
	if !qp.eng.Unready() {
		return
	}
	now := time.Now()
	if qp.eng.Ready(now) {
		qp.watch.moved = now
	}
	qp.pushUnlocking()
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
