package transfer

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"time"

	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// has returns the digest of the block that is there, and whether it is there in what has the name already.
func (v *receiving) has(buf []byte, offset int64) (d message.Digest, old, ok bool) {
	var from io.ReaderAt
	switch {
	case v.part != nil && v.part.had >= offset+int64(len(buf)):
		from = v.part
	case v.old != nil:
		from, old = v.old, true
	default:
		return d, false, false
	}
	if _, err := from.ReadAt(buf, offset); err != nil {
		return d, false, false
	}
	return sha256.Sum256(buf), old, true
}

// completeGrant completes the oldest grant by its answer.
func (v *receiving) completeGrant(ctx context.Context) error {
	m, err := v.receive(ctx)
	if err != nil {
		return broken(err)
	}
	w, ok := m.(message.Wrote)
	if !ok {
		return broken(unexpected(m, "Wrote"))
	}
	if len(v.granted) == 0 || w.Offset != v.granted[0].Offset || w.Length != v.granted[0].Length {
		return broken(fmt.Errorf("transfer: the other end wrote %d bytes at %d, which were not granted next",
			w.Length, w.Offset))
	}
	g := v.granted[0]
	v.granted, v.settled = v.granted[1:], v.settled+int64(w.Length)
	v.answered++
	err = v.block(g, w)
	if g.b != nil {
		g.b.busy = false
	}
	if v.failed == nil {
		v.failed = err
	}
	return nil
}

// block judges a block, and writes it if it is new.
func (v *receiving) block(g granted, w message.Wrote) error {
	before := message.Digest(v.blocks.Sum(nil))
	v.blocks.Write(w.Digest[:])
	v.report(Moved(w.Length))
	v.over = v.over || w.State == message.Lost || w.State == message.Differs
	switch {
	case v.failed != nil:
		return nil
	case w.State == message.Lost:
		return fail(message.Changed, w.Text)
	case w.State == message.Differs:
		return fail(message.Unlike, "")
	case w.State == message.Same && g.Have && w.Digest == g.Digest:
		return v.keep(g, w)
	case w.State != message.Written || g.b == nil:
		return fail(message.Corrupt, "")
	}
	data := g.b.mr.Bytes()[:w.Length]
	if sha256.Sum256(data) != w.Digest {
		return fail(message.Corrupt, "")
	}
	if err := v.differs(int64(w.Offset), before); err != nil {
		return err
	}
	_, err := v.part.WriteAt(data, int64(w.Offset))
	return err
}

// finish has the file named when the sender says that it is whole.
func (v *receiving) finish(ctx context.Context) error {
	m, err := v.receive(ctx)
	if err != nil {
		return broken(err)
	}
	done, ok := m.(message.Done)
	switch {
	case !ok:
		return broken(unexpected(m, "Done"))
	case v.failed != nil:
		return v.failed
	case done.Changed:
		return fail(message.Changed, "")
	case done.Digest != message.Digest(v.blocks.Sum(nil)):
		return fail(message.Corrupt, "")
	case v.part == nil:
		_ = v.sink.sweep(v.at) // unless another copy is at it; nobody else would ever take it away
		return fail(message.Already, "")
	}
	v.closeOld() // or else some systems do not replace it
	return v.working(ctx, v.complete)
}

// stillWorking is how often the sender is told that something takes its time.
const stillWorking = 10 * time.Second

// working tells the sender as long as something takes its time.
func (v *receiving) working(ctx context.Context, f func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	again := time.NewTicker(stillWorking)
	defer again.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-again.C:
			_ = v.send(ctx, message.Working{}) // whether it was heard shows later
		}
	}
}
