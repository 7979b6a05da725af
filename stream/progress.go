package stream

import (
	"errors"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stream/rsockets"
)

// batch is how many completions are taken at a time.
const batch = 32

// awaitUnlocking waits until something is ready. It is called with c.mu held, and releases it while it waits. One of those who wait leads: it waits for
// completions, and wakes the others when there are some, and when it leaves. The error is that of the deadline or
// of Close, or why nothing more comes.
func (c *Conn) awaitUnlocking(d *deadline, ready func(*Conn) bool) error {
	for {
		ctx := d.context()
		if c.closed {
			return errClosed
		}
		if ctx.Err() != nil {
			return errDeadline
		}
		if ready(c) {
			return nil
		}
		if c.advance(); ready(c) {
			return nil
		}
		switch {
		case c.fault != nil:
			return c.fault
		case c.leading:
			c.followUnlocking(ctx.Done())
		default:
			c.leadUnlocking(d)
		}
	}
}

// leadUnlocking waits for completions, for all who wait. It is called with c.mu held, and releases it meanwhile.
func (c *Conn) leadUnlocking(d *deadline) {
	ctx := d.context()
	c.leading = true
	c.mu.Unlock()
	err := c.recvCQ.Wait(ctx)
	c.mu.Lock()
	c.leading = false
	if err != nil && ctx.Err() == nil {
		c.fail(c.qp.Cause(err))
	}
	c.wakeAll()
}

// followUnlocking waits for whoever leads, or for the end of a context. It is called with c.mu held, and releases it meanwhile.
func (c *Conn) followUnlocking(done <-chan struct{}) {
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	changed := c.changed
	c.mu.Unlock()
	defer c.mu.Lock()
	select {
	case <-changed:
	case <-done:
	}
}

func (c *Conn) wakeAll() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// ledUnlocking waits until nobody leads. It is called with c.mu held, and releases it meanwhile.
func (c *Conn) ledUnlocking(done <-chan struct{}) {
	for c.leading {
		c.followUnlocking(done)
		select {
		case <-done:
			return
		default:
		}
	}
}

// fail takes note of why nothing more comes; the first reason counts.
func (c *Conn) fail(err error) {
	if c.fault == nil {
		c.fault = lost(err)
	}
}

// advance takes the words that have arrived, and posts their receives again. It leaves them to whoever leads, if someone does: that one waits for
// completions, and would not learn of what another has taken.
func (c *Conn) advance() {
	if c.leading {
		return
	}
	for n := len(c.wc); n == len(c.wc); {
		n = c.recvCQ.Poll(c.wc)
		for i := range c.wc[:n] {
			c.arrived(&c.wc[i])
		}
		if n > 0 {
			c.repost()
			c.announce()
			c.wakeAll()
		}
	}
}

// arrived takes one word. A peer that breaks the protocol has a Terminate, and the connection ends.
func (c *Conn) arrived(wc *iwarp.WC) {
	if wc.Status != iwarp.StatusSuccess {
		c.fail(c.qp.Cause(wc.Err()))
		return
	}
	c.again = append(c.again, c.words.WR(wc.ID))
	if c.fault != nil {
		return
	}
	if err := c.ep.Deliver(c.words.Octets(wc), c.table); err != nil {
		c.fail(err)
		_ = c.qp.Modify(iwarp.StateTerminate)
	}
}

// repost posts receives again. Where that fails, because the peer sends nothing more, they are not needed.
func (c *Conn) repost() {
	_, _ = c.qp.PostRecvs(c.again)
	c.again = c.again[:0]
}

// announce tells the peer what is due: octets that are free, and credits. One that sends nothing more needs neither, and may take nothing more.
func (c *Conn) announce() {
	for !c.ep.PeerEnded() {
		n, due := c.ep.Due()
		if !due {
			return
		}
		c.told(c.tell(n))
	}
}

// told ends a connection whose peer was not told what it has to know. The Send Queue has room for all that a peer is told that waits for it; one that takes none
// of that, and sends all the same, is not to be waited for. Any other failure is the end of the connection already, of which a completion tells.
func (c *Conn) told(err error) {
	if errors.Is(err, iwarp.ErrQueueFull) {
		c.fail(errDeaf)
		_ = c.qp.Modify(iwarp.StateTerminate)
	}
}

func (c *Conn) tell(n rsockets.Notice) error {
	peer := c.ep.Peer()
	var raw [rsockets.EntryLen + rsockets.WordLen]byte
	word := n.Word.Append(raw[:0], peer.Big)
	wrs := [2]iwarp.SendWR{{Op: iwarp.OpWrite, Unsignaled: true}, {Op: iwarp.OpSend, Inline: word, Unsignaled: true}}
	if n.Length == 0 {
		_, err := c.qp.PostSends(wrs[1:])
		return err
	}
	entry := rsockets.Entry{Place: place(c.ring.Remote(n.Offset)), Length: uint32(n.Length)}
	wrs[0].Inline = entry.Append(raw[rsockets.WordLen:rsockets.WordLen], peer.Big)
	wrs[0].Remote = remote(peer.Slot(n.Slot))
	_, err := c.qp.PostSends(wrs[:])
	return err
}

// sendWord posts a word alone. The caller has c.mu.
func (c *Conn) sendWord(w rsockets.Word) error {
	return c.qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: w.Append(c.word[:0], c.ep.Peer().Big), Unsignaled: true})
}
