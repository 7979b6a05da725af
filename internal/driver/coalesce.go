package driver

import "time"

// A post on an idle connection is sent at once, in the poster's goroutine: that has the shortest latency, and costs one
// system call, which is most of what a short message costs. Posts in quick succession are sent together instead: they
// are queued, and whoever comes first sends all that is there. That is the poster itself, when a batch that others are
// in already is worth a system call, or when it polls for completions in vain. Or it is the sending goroutine, which is
// started with the first post that is queued, and sends what it finds when it comes to run. So nothing that was posted
// depends on what its poster does next.
//
// What tells a burst is the time from the end of one write to the next post. In a burst it is that of the poster's
// loop, a tenth of a microsecond. A program that waits for an answer before it posts again cannot see that sooner
// than after a way through the kernel there and back, which takes several microseconds.
//
// A program with many messages under way waits too, for some of them to complete, and goes on with the next burst,
// whose first posts need not be sent one by one again. So a short pause halves what counts as the burst so far: after
// a long burst the next one is taken for its continuation. After a few posts with a pause before each, every post is
// sent at once again.
const (
	burstGap   = 2 * time.Microsecond
	burstPause = 100 * time.Microsecond // after which a burst is over
	burstFirst = 3                      // posts that are sent one by one before a burst is one
	burstMost  = 32                     // posts of a burst that count
	batchPosts = 256                    // queued posts that are worth a system call
	batchSize  = 32 << 10               // bytes of them that are
)

// burst is what is known of posts in quick succession. Conn.mu guards it.
type burst struct {
	pushed time.Time // when the last post was sent
	wrote  time.Time // when the last write was over
	streak int       // posts that followed each other quickly
	batch  int       // posts that are queued until there are more
	bytes  int       // that those posts send
}

// releasePosted ends a call that has posted requests of size bytes in all, as release does. The call began at a time;
// zero: now. Where another goroutine sends the requests, that one does all the rest too.
func (c *Conn) releasePosted(posts, size int, began time.Time) {
	joins := c.joins(posts, size)
	if !joins {
		if began.IsZero() {
			began = c.now() // which takes as long as all that is done for a post that joins others
		}
		joins = c.sender.state == noSender && c.begins(posts, size, began)
	}
	if joins {
		c.mu.Unlock()
		return
	}
	c.burst.batch, c.burst.bytes, c.burst.wrote = 0, 0, began
	c.release(turn{mode: sendOwn, now: began, own: c.machine.Posted(), paced: true})
}

// joins reports whether what was just posted goes along with what others send, or waits for the rest of its batch.
func (c *Conn) joins(posts, size int) bool {
	b := &c.burst
	switch {
	case c.sender.writing: // who writes goes on with what is queued
		b.followed()
		return true
	case c.sender.state != noSender:
		b.followed()
		b.batch += posts
		b.bytes += size
		return b.batch < min(batchPosts, c.cfg.SendDepth/2) && b.bytes < batchSize
	}
	return false
}

// begins reports whether what was just posted waits for more, as the first of a batch.
func (c *Conn) begins(posts, size int, began time.Time) bool {
	b := &c.burst
	if !b.goesOn(began.Sub(b.pushed)) || c.tcp == nil || !c.machine.Pending() {
		return false
	}
	b.batch, b.bytes = posts, size
	c.sender.start()
	return true
}

// paced notes when a poster, or the sending goroutine, has sent all it had to.
func (c *Conn) paced(t *turn) {
	switch {
	case t.mode == sendWaiting:
		c.sender.state = noSender
		c.burst.pushed = c.now()
	case t.paced:
		c.burst.pushed = c.burst.wrote
	}
}

// followed counts a post that belongs to the burst.
func (b *burst) followed() { b.streak = min(b.streak+1, burstMost) }

// goesOn reports whether a post belongs to a burst, so long after the last write.
func (b *burst) goesOn(pause time.Duration) bool {
	switch {
	case pause < burstGap:
		b.followed()
	case pause < burstPause:
		b.streak /= 2
	default:
		b.streak = 0
	}
	return b.streak >= burstFirst
}

// flush sends what is queued for a batch, on behalf of a consumer that waits and so adds nothing to it. It reports
// whether there was any, and whether something may be received.
func (c *Conn) flush() (did, mayReceive bool) {
	c.mu.Lock()
	mayReceive = c.tcp != nil && !c.machine.HoldsBack()
	if c.sender.state == noSender || c.sender.writing {
		c.mu.Unlock()
		return false, mayReceive
	}
	c.burst.batch, c.burst.bytes = 0, 0
	c.release(turn{now: c.now()})
	return true, mayReceive
}
