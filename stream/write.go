package stream

import (
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stream/rsockets"
)

// An output is what a Write has under way. Whoever has the gate of the direction uses it.
type output struct {
	failed       error  // why octets of a Write were not sent, or may not have been
	posted, done uint64 // pieces: the last that was posted, and the last that is complete, as far as is known
	asked        uint64 // the last of which a completion tells
	wc           []iwarp.WC
	word         []byte
	left         []leftover
}

// A leftover is memory of its own of a Write that did not wait for its completion.
type leftover struct {
	mr   *iwarp.MR
	last uint64 // the piece with which it ends
}

func (o *output) init() {
	o.wc, o.word = make([]iwarp.WC, batch), make([]byte, 0, rsockets.WordLen)
}

// Write sends p, and returns when what is below has taken it: p is the caller's then. It waits while the peer's ring is full. With an error n is how
// many octets were sent, or are on their way: the stream goes on after them if the error is that of a deadline. After any other error CloseWrite
// fails, and so does Close, unless the peer has closed the connection in order: octets that were on their way may be lost. Errors are *net.OpError.
func (c *Conn) Write(p []byte) (n int, err error) {
	n, err = c.write(p)
	return n, c.opError("write", err)
}

func (c *Conn) write(p []byte) (n int, err error) {
	if err := c.enter(&c.wr, c.writing); err != nil {
		return 0, err
	}
	defer c.writing.leave()
	if c.out.asked != c.out.done {
		_ = c.collect() // of what has failed, the next post or wait tells
	}
	first := c.out.posted
	var mr *iwarp.MR
	for n < len(p) && err == nil {
		if mr == nil && len(p)-n > inlineMost {
			if mr, err = c.pd.Register(p, 0); err != nil {
				break
			}
		}
		var m int
		m, err = c.piece(p, n, mr)
		n += m
	}
	if mr != nil {
		err = c.finish(mr, first, err)
	}
	return n, err
}

// piece waits for a place in the peer's ring, and sends as much as there is room for of p from n on.
func (c *Conn) piece(p []byte, n int, mr *iwarp.MR) (int, error) {
	if err := c.drain(maxUnsent - 1); err != nil {
		return 0, err
	}
	to, err := c.place(len(p) - n)
	if err != nil {
		return 0, err
	}
	m := int(to.Length)
	wr := iwarp.SendWR{Op: iwarp.OpWrite, Remote: remote(to.Place), Unsignaled: true}
	if m <= inlineMost {
		wr.Inline = p[n : n+m]
	} else {
		sgl := [1]iwarp.SGE{mr.Slice(n, m)}
		wr.SGL = sgl[:]
	}
	if err := c.post(wr, mr != nil, rsockets.NewWord(rsockets.OpData, to.Length)); err != nil {
		return 0, err // without its word nobody reads it
	}
	return m, nil
}

// post sends a Write and the word that tells of it. Somebody waits for its completion if the memory is the caller's; of pieces that were copied
// one in so many completes, for all before it.
func (c *Conn) post(wr iwarp.SendWR, awaited bool, w rsockets.Word) error {
	o := &c.out
	o.posted++
	wrs := [2]iwarp.SendWR{wr, {ID: o.posted, Op: iwarp.OpSend, Inline: w.Append(o.word[:0], c.ep.Peer().Big)}}
	if wrs[1].Unsignaled = !awaited && o.posted%signalEvery != 0; !wrs[1].Unsignaled {
		o.asked = o.posted
	}
	_, err := c.qp.PostSends(wrs[:])
	if err != nil {
		err = c.broken(err)
	}
	return err
}

// broken is why nothing can be posted: what the peer has said last, if it has.
func (c *Conn) broken(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.brokenLocked(err)
}

// brokenLocked is broken for a caller that has c.mu.
func (c *Conn) brokenLocked(err error) error {
	c.out.failed = cmp.Or(c.out.failed, c.whyBroken(err))
	return c.out.failed
}

func (c *Conn) whyBroken(err error) error {
	if errors.Is(err, iwarp.ErrClosed) {
		c.ledUnlocking(c.wr.context().Done()) // who leads learns of the end, too
	}
	c.advance()
	if c.ep.Disconnected() {
		return ErrPeerGone
	}
	if c.fault != nil {
		return c.fault
	}
	return lost(c.qp.Cause(err))
}

// hasRoom reports whether a Write need not wait.
func hasRoom(c *Conn) bool { return c.ep.Ready() || hasEnded(c) }

// place waits for room in the peer's ring, and takes it.
func (c *Conn) place(most int) (to rsockets.Entry, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.awaitUnlocking(&c.wr, hasRoom); err != nil {
		if c.fault != nil {
			c.out.failed = cmp.Or(c.out.failed, c.fault)
		}
		return to, err
	}
	if err := c.unwritable(); err != nil {
		if !c.ep.Ended() {
			c.out.failed = cmp.Or(c.out.failed, err)
		}
		return to, err
	}
	c.alive.sent()
	return c.ep.Next(min(most, maxPiece)), nil
}

// unwritable is why nothing more may be written, if either end has said so. The caller has c.mu.
func (c *Conn) unwritable() error {
	switch {
	case c.ep.Ended():
		return ErrWriteEnded
	case c.ep.Disconnected():
		return ErrPeerGone
	}
	return nil
}

// collect takes completions that are there.
func (c *Conn) collect() (err error) {
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
	kept := o.left[:0]
	for _, l := range o.left {
		if l.last <= o.done {
			_ = l.mr.Deregister()
			continue
		}
		kept = append(kept, l)
	}
	clear(o.left[len(kept):])
	o.left = kept
	return err
}

// drain waits until no more than so many pieces are not complete, as far as completions have told.
func (c *Conn) drain(most uint64) error {
	o := &c.out
	for o.posted-o.done > most {
		if err := c.collect(); err != nil {
			return c.broken(err)
		}
		if o.posted-o.done <= most {
			return nil
		}
		ctx := c.wr.context()
		if err := c.sendCQ.Wait(ctx); err != nil {
			return c.unsent(ctx, err)
		}
	}
	return nil
}

// unsent is the error of a wait for completions.
func (c *Conn) unsent(ctx context.Context, err error) error {
	switch {
	case c.isClosed():
		return errClosed
	case ctx.Err() != nil:
		return errDeadline
	}
	return c.broken(err)
}

// finish gives the caller its memory back: when what was posted of it, after the piece first, is complete, or, after an error, by a copy of what is not.
func (c *Conn) finish(mr *iwarp.MR, first uint64, err error) error {
	if err == nil {
		err = c.drain(0)
	}
	if err == nil || c.out.posted == max(c.out.done, first) {
		_ = mr.Deregister()
		return err
	}
	_ = mr.Detach()
	c.out.left = append(c.out.left, leftover{mr, c.out.posted})
	return err
}

// ReadFrom sends what it reads from r until r ends. It implements io.ReaderFrom; the error is that of r, except io.EOF,
// or that of Write.
func (c *Conn) ReadFrom(r io.Reader) (n int64, err error) {
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
