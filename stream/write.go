package stream

import (
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rsockets"
)

// An output is what Writes have under way. Only the call that is in wr uses it.
type output struct {
	failed       error  // why bytes of a Write were not sent, or may not have been
	posted, done uint64 // numbers of pieces: the last one posted, and the last one known to be complete
	signaled     uint64 // the last piece of which a completion will tell
	wc           []iwarp.WC
	lent         []loan
}

// A loan is memory that a Write has registered, and that the Send Queue still needs after the Write has returned.
type loan struct {
	mr   *iwarp.MR
	last uint64 // the last piece of it
}

// Write sends p, and returns when the lower layer has taken it: p is the caller's then. It waits while the peer's
// ring is full. With an error, n is how many bytes were sent or are on their way. After the error of a deadline the
// stream goes on behind those. After any other error, bytes on their way may be lost: CloseWrite and Close fail then,
// unless the peer has closed the connection in order. Errors are *net.OpError.
func (c *Conn) Write(p []byte) (n int, err error) {
	if !c.made() {
		return 0, c.opError("write", errNoConn)
	}
	n, err = c.write(p)
	return n, c.opError("write", err)
}

func (c *Conn) write(p []byte) (n int, err error) {
	if err := c.enter(&c.wr); err != nil {
		return 0, err
	}
	defer c.wr.gate.leave()
	if c.out.signaled != c.out.done {
		_ = c.pollSends() // If one has failed, the next post or wait says so.
	}
	for n < len(p) && err == nil {
		var m int
		m, err = c.writeSome(p[n:])
		n += m
	}
	return n, err
}

// writeSome sends as much of p as can be registered at once.
func (c *Conn) writeSome(p []byte) (n int, err error) {
	var mr *iwarp.MR
	if len(p) > inlineLimit {
		if mr, p, err = c.register(p); err != nil {
			return 0, err
		}
	}
	first := c.out.posted
	for n < len(p) && err == nil {
		var m int
		m, err = c.writePiece(p, n, mr)
		n += m
	}
	if mr != nil {
		err = c.unregister(mr, first, err)
	}
	return n, err
}

// register registers p, or as much of it as the connection has reserved memory for. If that is in use, too, it
// registers nothing, and returns no more than can be copied into the Send Queue.
func (c *Conn) register(p []byte) (*iwarp.MR, []byte, error) {
	for _, n := range [...]int{len(p), min(len(p), transferLen)} {
		mr, err := c.pd.Register(p[:n], 0)
		if !errors.Is(err, iwarp.ErrLimit) {
			return mr, p[:n], err
		}
	}
	return nil, p[:min(len(p), inlineLimit)], nil
}

// unregister gives the caller of a Write its memory back. The pieces after the piece first are of it. If they are
// complete, or complete before the deadline, the MR goes. After an error the MR takes a copy of the memory, and stays
// until they are complete.
func (c *Conn) unregister(mr *iwarp.MR, first uint64, err error) error {
	if err == nil {
		err = c.drain(0)
	}
	if err == nil || c.out.posted == max(c.out.done, first) {
		_ = mr.Deregister()
		return err
	}
	_ = mr.Detach()
	c.out.lent = append(c.out.lent, loan{mr, c.out.posted})
	return err
}

// writePiece sends as much of p from n on as the peer has room for in one place, and waits until there is room.
func (c *Conn) writePiece(p []byte, n int, mr *iwarp.MR) (int, error) {
	if err := c.drain(maxPending - 1); err != nil {
		return 0, err
	}
	to, err := c.awaitRoom(len(p) - n)
	if err != nil {
		return 0, err
	}
	m := int(to.Length)
	wr := iwarp.SendWR{Op: iwarp.OpWrite, Remote: remote(to.Place), Unsignaled: true}
	if m <= inlineLimit {
		wr.Inline = p[n : n+m]
	} else {
		sgl := [1]iwarp.SGE{mr.Slice(n, m)}
		wr.SGL = sgl[:]
	}
	if err := c.post(wr, mr != nil, rsockets.NewWord(rsockets.OpData, to.Length)); err != nil {
		return 0, err // The peer ignores bytes without their word.
	}
	return m, nil
}

// post sends a Write and the word that tells of it. The piece is signaled if the caller waits for its memory. Of the
// pieces that were copied, one in signalEvery is signaled: its completion stands for all earlier ones.
func (c *Conn) post(wr iwarp.SendWR, awaited bool, w rsockets.Word) error {
	o := &c.out
	o.posted++
	var raw [rsockets.WordLen]byte
	wrs := [2]iwarp.SendWR{wr, {ID: o.posted, Op: iwarp.OpSend, Inline: w.Append(raw[:0], c.ep.Peer().Big)}}
	if wrs[1].Unsignaled = !awaited && o.posted%signalEvery != 0; !wrs[1].Unsignaled {
		o.signaled = o.posted
	}
	_, err := c.qp.PostSends(wrs[:])
	if err != nil {
		err = c.broken(err)
	}
	return err
}

// broken says why a post of a Write has failed, or its completion. CloseWrite and Close fail with it from now on. The
// caller is in wr, and must not hold c.mu.
func (c *Conn) broken(err error) error {
	c.out.failed = cmp.Or(c.out.failed, c.whyBroken(err))
	return c.out.failed
}

// whyBroken says why a post has failed: what the peer has said last, if it has, or the error of the QP. The caller
// must not hold c.mu.
func (c *Conn) whyBroken(err error) error {
	if errors.Is(err, iwarp.ErrClosed) {
		c.awaitPoller(c.wr.context().Done()) // The end wakes the call that polls, and it reads the last words.
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pollWords()
	if c.ep.Disconnected() {
		return ErrPeerGone
	}
	if c.fault != nil {
		return c.fault
	}
	return unexpectedEnd(c.qp.Cause(err))
}

// awaitRoom waits for room in the peer's ring, and takes at most limit bytes of it.
func (c *Conn) awaitRoom(limit int) (to rsockets.Entry, err error) {
	waited := c.await(&c.wr, func() (done bool) {
		to, done, err = c.tryRoom(limit)
		return done
	})
	if waited != nil {
		c.noteFault()
		return to, waited
	}
	return to, err
}

// tryRoom is awaitRoom without a wait: done reports that none is needed. The caller holds c.mu.
func (c *Conn) tryRoom(limit int) (to rsockets.Entry, done bool, err error) {
	if err := c.unwritable(); err != nil {
		if !c.ep.Ended() {
			c.out.failed = cmp.Or(c.out.failed, err)
		}
		return to, true, err
	}
	if !c.ep.Ready() {
		return to, false, nil
	}
	c.alive.sent()
	return c.ep.Next(min(limit, maxPiece)), true, nil
}

// noteFault has CloseWrite and Close fail after a Write that has failed because the connection is over.
func (c *Conn) noteFault() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.failed = cmp.Or(c.out.failed, c.fault)
}

// unwritable says why nothing more may be written, if either end has said so. The caller holds c.mu.
func (c *Conn) unwritable() error {
	switch {
	case c.ep.Ended():
		return ErrWriteEnded
	case c.ep.Disconnected():
		return ErrPeerGone
	}
	return nil
}

// pollSends takes completions of sends, and deregisters the loans that are over.
func (c *Conn) pollSends() (err error) {
	o := &c.out
	for n := batch; n == batch; {
		n = c.sendCQ.Poll(o.wc)
		for i := range o.wc[:n] {
			if failed := o.wc[i].Err(); failed != nil {
				err = failed
				continue
			}
			o.done = o.wc[i].ID
		}
	}
	open := o.lent[:0]
	for _, l := range o.lent {
		if l.last <= o.done {
			_ = l.mr.Deregister()
			continue
		}
		open = append(open, l)
	}
	clear(o.lent[len(open):])
	o.lent = open
	return err
}

// drain waits until at most limit pieces are not known to be complete.
func (c *Conn) drain(limit uint64) error {
	o := &c.out
	for o.posted-o.done > limit {
		if err := c.pollSends(); err != nil {
			return c.broken(err)
		}
		if o.posted-o.done <= limit {
			return nil
		}
		ctx := c.wr.context()
		if err := c.sendCQ.Wait(ctx); err != nil {
			return c.drainError(ctx, err)
		}
	}
	return nil
}

// drainError says why a wait for completions has failed.
func (c *Conn) drainError(ctx context.Context, err error) error {
	switch {
	case c.isClosed():
		return errClosed
	case ctx.Err() != nil:
		return errDeadline
	}
	return c.broken(err)
}

// ReadFrom sends what it reads from r until r ends. It implements io.ReaderFrom. The error is that of r except
// io.EOF, or that of Write.
func (c *Conn) ReadFrom(r io.Reader) (n int64, err error) {
	if !c.made() {
		return 0, c.opError("write", errNoConn)
	}
	buf := make([]byte, transferLen)
	for {
		m, err := r.Read(buf)
		if m > 0 {
			sent, failed := c.Write(buf[:m])
			n += int64(sent)
			if failed != nil {
				return n, failed
			}
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}
