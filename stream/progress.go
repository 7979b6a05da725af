package stream

import (
	"context"
	"errors"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rsockets"
)

// batch is how many completions are polled at a time.
const batch = 32

// A poller says whether one of the calls that wait polls for words of the peer, on behalf of all. Conn.mu guards it.
type poller struct {
	active  bool
	stopped chan struct{} // closed when that call stops polling; nil: no other call waits for that
}

// done returns a channel that is closed when the call that polls stops. It is nil if no call polls.
func (p *poller) done() <-chan struct{} {
	if p.active && p.stopped == nil {
		p.stopped = make(chan struct{})
	}
	return p.stopped
}

// stop wakes the other calls: each tries again, and the first that still has to wait polls next.
func (p *poller) stop() {
	p.active = false
	if p.stopped != nil {
		close(p.stopped)
		p.stopped = nil
	}
}

// await calls try with c.mu locked, until try reports that its work is done. In between it waits for words of the
// peer with c.mu unlocked: it polls for all calls that wait, or waits until the call that does so stops. The error is
// that of the deadline or of Close, or says why nothing more comes. The caller must not hold c.mu.
func (c *Conn) await(d *direction, try func() bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		ctx := d.context()
		if done, err := c.attempt(ctx, try); done {
			return err
		}
		other := c.poller.done()
		c.poller.active = true // this call polls, if no other does
		c.mu.Unlock()
		err := c.sleep(ctx, other)
		c.mu.Lock()
		if other == nil {
			c.stopPolling(ctx, err)
		}
	}
}

// attempt reports whether a call need not wait any longer, and with which error. The caller holds c.mu.
func (c *Conn) attempt(ctx context.Context, try func() bool) (done bool, err error) {
	switch {
	case c.closed:
		return true, errClosed
	case ctx.Err() != nil:
		return true, errDeadline
	case try():
		return true, nil
	}
	c.pollWords()
	if try() {
		return true, nil
	}
	return c.fault != nil, c.fault
}

// sleep waits for words of the peer. If another call polls, it waits until that call stops.
func (c *Conn) sleep(ctx context.Context, other <-chan struct{}) error {
	if other == nil {
		return c.recvCQ.Wait(ctx)
	}
	select {
	case <-other:
	case <-ctx.Done():
	}
	return nil
}

// stopPolling ends the polling of a call whose wait has returned err. The caller holds c.mu.
func (c *Conn) stopPolling(ctx context.Context, err error) {
	c.poller.stop()
	if err != nil && ctx.Err() == nil {
		c.fail(c.qp.Cause(err))
	}
}

// awaitPoller waits until no call polls, or until done is closed. The caller must not hold c.mu.
func (c *Conn) awaitPoller(done <-chan struct{}) {
	for {
		c.mu.Lock()
		stopped := c.poller.done()
		c.mu.Unlock()
		if stopped == nil {
			return
		}
		select {
		case <-stopped:
		case <-done:
			return
		}
	}
}

// fail notes why no more words come. The first reason counts. The caller holds c.mu.
func (c *Conn) fail(err error) {
	if c.fault == nil {
		c.fault = unexpectedEnd(err)
	}
}

// pollWords handles the words that have arrived, and posts their receives again. While a call waits for words it does
// nothing: that call would not wake up if another took them. The caller holds c.mu.
func (c *Conn) pollWords() {
	if c.poller.active {
		return
	}
	for n := len(c.wc); n == len(c.wc); {
		n = c.recvCQ.Poll(c.wc)
		for i := range c.wc[:n] {
			c.receive(&c.wc[i])
		}
		if n > 0 {
			c.repost()
			c.announce()
		}
	}
}

// receive handles one word. If it breaks the protocol, the connection ends with a Terminate.
func (c *Conn) receive(wc *iwarp.WC) {
	if wc.Status != iwarp.StatusSuccess {
		c.fail(c.qp.Cause(wc.Err()))
		return
	}
	c.again = append(c.again, c.words.WR(wc.ID))
	if c.fault != nil {
		return
	}
	if err := c.ep.Deliver(c.words.Bytes(wc), c.table); err != nil {
		c.fail(err)
		_ = c.qp.Modify(iwarp.StateTerminate)
	}
}

// repost posts receives again. If that fails, the peer sends nothing more, and they are not needed.
func (c *Conn) repost() {
	_, _ = c.qp.PostRecvs(c.again)
	c.again = c.again[:0]
}

// announce sends the notices that are due: of free parts of the ring, and of credits. A peer that sends no more needs
// none, and may have no receives for them.
func (c *Conn) announce() {
	for !c.ep.PeerEnded() {
		n, due := c.ep.Due()
		if !due {
			return
		}
		c.checkNotice(c.postNotice(n))
	}
}

// checkNotice ends the connection if a notice does not fit into the Send Queue. The Send Queue has room for all
// notices that a peer can wait for. So the peer receives none of them, and sends without the credits. After any other
// error the connection has ended already, and a completion says so.
func (c *Conn) checkNotice(err error) {
	if errors.Is(err, iwarp.ErrQueueFull) {
		c.fail(errOverrun)
		_ = c.qp.Modify(iwarp.StateTerminate)
	}
}

func (c *Conn) postNotice(n rsockets.Notice) error {
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

// sendWord posts a word alone.
func (c *Conn) sendWord(w rsockets.Word) error {
	var raw [rsockets.WordLen]byte
	wr := iwarp.SendWR{Op: iwarp.OpSend, Inline: w.Append(raw[:0], c.ep.Peer().Big), Unsignaled: true}
	return c.qp.PostSend(&wr)
}
