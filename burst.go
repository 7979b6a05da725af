package iwarp

import (
	"time"

	"github.com/goiwarp/iwarp/internal/tcp"
)

// A post on an idle connection is sent at once, in the poster's goroutine: that has the
// shortest latency, and costs one system call, which is most of what a short message costs.
// Posts in quick succession are sent together instead: they are queued, and whoever comes
// first sends all that is there: the poster itself, when a batch that others are in already is worth a system call
// or when it polls for completions in vain; or the sending goroutine, which is started with
// the first post that is queued, and sends what it finds when it comes to run. So nothing
// that was posted depends on what its poster does next.
//
// What tells a burst is the time from the end of one write to the next post. In a burst
// it is that of the poster's loop, a tenth of a microsecond. A program that waits for an
// answer before it posts again cannot see that sooner than after a way through the
// kernel there and back, which takes several microseconds.
//
// A program with many messages under way waits too, for some of them to complete, and goes
// on with the next burst, whose first posts need not be sent one by one again. So a short
// pause halves what counts as the burst so far: after a long burst the next one
// is taken for its continuation, and after a few posts with a pause before each of them
// every post is sent at once again.
const (
	burstGap   = 2 * time.Microsecond
	burstPause = 100 * time.Microsecond // it is over
	burstFirst = 3                      // posts that are sent one by one before a burst is one
	burstMost  = 32                     // posts of a burst that count
	batchPosts = 256                    // queued posts that are worth a system call
	batchSize  = 32 << 10               // octets of them that are
)

// pushPostedUnlocking sends what was just posted, so many requests of size octets in all, or sees to it
// that it will be. The call began at a time; zero: now.
func (qp *QP) pushPostedUnlocking(posts, size int, began time.Time) {
	if qp.joins(posts, size) {
		return
	}
	if began.IsZero() {
		began = qp.now() // which takes as long as all that is done for a post that joins others
	}
	if qp.sender || !qp.begins(posts, size, began) {
		qp.batch, qp.batched = 0, 0
		qp.wrote = began
		qp.pushOwnUnlocking(began, qp.eng.Posted())
		qp.pushed = qp.wrote
	}
}

// joins reports whether what was just posted goes along with what others send, or waits
// for the rest of its batch.
func (qp *QP) joins(posts, size int) bool {
	switch {
	case qp.writing: // who writes goes on with what is queued
		qp.followed()
		return true
	case qp.sender:
		qp.followed()
		qp.batch += posts
		qp.batched += size
		return qp.batch < min(batchPosts, qp.cfg.SendDepth/2) && qp.batched < batchSize
	}
	return false
}

// begins reports whether what was just posted waits for more, as the first of a batch.
func (qp *QP) begins(posts, size int, began time.Time) bool {
	if !qp.burst(began.Sub(qp.pushed)) || qp.conn == nil || !qp.eng.Pending() {
		return false
	}
	qp.batch, qp.batched = posts, size
	qp.startSender()
	return true
}

// followed counts a post that belongs to the burst.
func (qp *QP) followed() { qp.streak = min(qp.streak+1, burstMost) }

// burst reports whether a post belongs to a burst of them, so long after the last write.
func (qp *QP) burst(pause time.Duration) bool {
	switch {
	case pause < burstGap:
		qp.followed()
	case pause < burstPause:
		qp.streak /= 2
	default:
		qp.streak = 0
	}
	return qp.streak >= burstFirst
}

// flush sends what is queued for a batch, on behalf of a consumer that waits and so adds
// nothing to it, and reports whether there was any. It returns the connection, if there is one from which something
// may be received.
func (qp *QP) flush() (c *tcp.Conn, did bool) {
	qp.mu.Lock()
	defer qp.unlock()
	did = qp.flushUnlocking()
	if qp.eng.HoldsBack() {
		return nil, did
	}
	return qp.conn, did
}

func (qp *QP) flushUnlocking() (did bool) {
	if did = qp.sender && !qp.writing; did {
		qp.pushUnlocking()
		qp.batch, qp.batched = 0, 0
	}
	return did
}

// startSender sees to it that there is a sending goroutine. It takes whatever is queued
// when it comes to run, and is never more than one.
func (qp *QP) startSender() {
	if !qp.sender {
		qp.sender = true
		if qp.sendFn == nil { // made once: `go qp.send()` allocates each time
			qp.sendFn = qp.send
		}
		go qp.sendFn()
	}
}

// send is the sending goroutine. It ends when nothing is left to send.
func (qp *QP) send() {
	qp.mu.Lock()
	defer qp.unlock()
	for again := true; again; again = qp.handed {
		if qp.handed {
			qp.sendRestUnlocking()
		}
		qp.pushUnlocking()
	}
	qp.sender = false
	qp.pushed = qp.now()
}
