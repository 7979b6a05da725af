package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/inbox"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// Bounds of a connection.
const (
	window    = 8            // blocks that are granted at a time
	recvDepth = 2*window + 8 // messages that the other end may have sent: answers to grants, and few more
	sendDepth = 4*window + 8 // a block is a Write, or several, and a Send
)

// DefaultSilence is how long the other end may do nothing.
const DefaultSilence = time.Minute

// slowest is how long a block, or a message, may be on its way while bytes move: at 1 KiB/s, the least that a sender
// may be bounded to, a block takes 17 minutes.
const slowest = 20 * time.Minute

// looks is how often within the silence it is seen whether anything has moved: so much more than that may pass at most.
const looks = 6

// ErrSilent is wrapped by the error of a transfer whose other end does nothing.
var ErrSilent = errors.New("transfer: the other end is silent")

// A link is one end of a connection, of which one goroutine makes use.
type link struct {
	qp       *iwarp.QP
	arrived  *inbox.Inbox
	blocks   []*block // memory for blocks, as far as it was needed
	inbox    []message.Message
	posted   int // Sends that are not complete
	answered int // grants that the other end has answered
	silence  time.Duration
	moved    uint64 // bytes of the connection, when that was looked at last
	asks     bool   // the other end owes an answer, and may say that it is working
	share    *share // of a server's memory; nil: this end has no others
	give     func() // gives back what is reserved; nil: nothing is
}

// A block is memory for one.
type block struct {
	mr   *iwarp.MR // nil: it has none
	busy bool      // a Write from it is under way, or a grant of it
}

// newLink returns a link whose prepare is to be called by who connects it.
func newLink(silence time.Duration) *link {
	if silence <= 0 {
		silence = DefaultSilence
	}
	return &link{silence: silence}
}

// config is how the QP is made.
func (l *link) config() iwarp.QPConfig {
	cfg := iwarp.QPConfig{
		SendDepth: sendDepth, RecvDepth: recvDepth, MaxInline: message.MaxLen,
		UserTimeout: l.silence, CloseTimeout: closeTime,
	}
	cfg.KeepAlive.Enable, cfg.KeepAlive.Idle, cfg.KeepAlive.Interval, cfg.KeepAlive.Count = true,
		l.silence/2, l.silence/8, 4
	return cfg
}

// closeTime bounds a close that makes no progress.
const closeTime = 5 * time.Second

// reserved is how many bytes a connection never lacks: its receives, and a block of any length. With those it can go
// on, however slowly.
const reserved = recvDepth*message.MaxLen + message.MaxBlock

// prepare reserves memory, and posts all receives of the QP that is going to be connected, which is another one if that
// is tried again.
func (l *link) prepare(qp *iwarp.QP) (err error) {
	l.release()
	l.qp = qp
	if err = l.share.keep(message.MaxBlock); err != nil {
		return err
	}
	if l.give, err = qp.PD().Reserve(reserved); err != nil {
		return err
	}
	l.arrived, err = inbox.Open(qp, recvDepth, message.MaxLen)
	return err
}

// close ends the connection, in order if nothing has gone wrong, and gives back all that the link has.
func (l *link) close(err error) error {
	if err == nil {
		err = l.qp.Close()
	} else {
		_ = l.qp.Abort()
	}
	l.release()
	return err
}

// release gives back memory, of a connection that has ended or has not come up.
func (l *link) release() {
	for _, b := range l.blocks {
		l.giveUp(b)
	}
	l.arrived.Close()
	if l.give != nil {
		l.give()
	}
	_ = l.share.keep(0) // less is never too much
}

// send posts a message, after Writes that belong to it.
func (l *link) send(ctx context.Context, m message.Message, writes ...iwarp.SendWR) error {
	return l.post(ctx, append(writes, iwarp.SendWR{ID: noBlock, Inline: m.Append(nil)})...)
}

// post posts requests when there is room for them.
func (l *link) post(ctx context.Context, wrs ...iwarp.SendWR) error {
	for l.posted+len(wrs) > sendDepth {
		if err := l.step(ctx); err != nil {
			return err
		}
	}
	l.posted += len(wrs)
	_, err := l.qp.PostSends(wrs)
	return l.cause(err)
}

// noBlock is the ID of a request without a block's memory.
const noBlock = ^uint64(0)

// receive waits for a message.
func (l *link) receive(ctx context.Context) (message.Message, error) {
	for len(l.inbox) == 0 {
		if err := l.step(ctx); err != nil {
			return nil, err
		}
	}
	m := l.inbox[0]
	l.inbox = l.inbox[1:]
	return m, nil
}

// step takes one completion.
func (l *link) step(ctx context.Context) error {
	wc, err := l.next(ctx)
	if err != nil {
		return err
	}
	if wc.Op != iwarp.OpRecv {
		l.posted--
		if wc.ID != noBlock {
			l.blocks[wc.ID].busy = false
		}
		return nil
	}
	m, err := message.Parse(l.arrived.Bytes(&wc))
	if err != nil {
		return err
	}
	if err := l.keep(m); err != nil {
		return err
	}
	// what it has sent before is still to be read
	if err := l.arrived.Post(wc.ID); !errors.Is(err, iwarp.ErrPeerClosed) {
		return l.cause(err)
	}
	return nil
}

// keep keeps a message until it is received.
func (l *link) keep(m message.Message) error {
	if _, working := m.(message.Working); working {
		return l.releaseBlocks()
	}
	l.inbox = append(l.inbox, m)
	if len(l.inbox) > recvDepth {
		return errors.New("transfer: the other end sends without waiting for an answer")
	}
	return nil
}

// releaseBlocks gives back the memory of all blocks, as the other end is working. It may say so again and again, and
// has no memory by that: only who is asked has a reason to, when all blocks have come.
func (l *link) releaseBlocks() error {
	if !l.asks || slices.ContainsFunc(l.blocks, func(b *block) bool { return b.busy }) {
		return errors.New("transfer: the other end says that it is working, and was not asked for anything")
	}
	for _, b := range l.blocks {
		l.giveUp(b)
	}
	return nil
}

// next waits for a completion as long as anything moves, but not for ever: a block that comes byte by byte keeps
// memory from others.
func (l *link) next(ctx context.Context) (iwarp.WC, error) {
	began := time.Now()
	for moved := began; ; {
		wc, err := l.nextWithin(ctx)
		switch {
		case err == nil:
			return wc, l.cause(wc.Err())
		case ctx.Err() != nil:
			return wc, ctx.Err()
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return wc, l.cause(err)
		case l.moves():
			moved = time.Now()
		case time.Since(moved) >= l.silence:
			return wc, fmt.Errorf("%w: nothing has come for %v", ErrSilent, l.silence)
		}
		if time.Since(began) >= max(slowest, l.silence) {
			return wc, fmt.Errorf("%w: bytes have come for %v, and nothing whole", ErrSilent, time.Since(began))
		}
	}
}

func (l *link) nextWithin(ctx context.Context) (iwarp.WC, error) {
	var wc [1]iwarp.WC
	if l.qp.SendCQ().Poll(wc[:]) == 1 {
		return wc[0], nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.silence/looks)
	defer cancel()
	return l.qp.SendCQ().Next(ctx)
}

// moves reports whether bytes went either way since it was called last.
func (l *link) moves() bool {
	s := l.qp.Stats()
	before := l.moved
	l.moved = s.SentStream + s.ReceivedStream
	return l.moved != before
}

// cause is why the connection has ended, if that is why err is.
func (l *link) cause(err error) error {
	if err == nil {
		return nil
	}
	return l.qp.Cause(err)
}

// acquireBlock returns the memory of a block that nothing is under way with, of at least n bytes. There is one as soon
// as a request is complete.
func (l *link) acquireBlock(ctx context.Context, n int, access iwarp.Access) (*block, uint64, error) {
	for {
		for i, b := range l.blocks {
			if !b.busy && b.len() >= n {
				b.busy = true
				return b, uint64(i), nil
			}
		}
		b, i, err := l.grow(n, access)
		if waits := errors.Is(err, iwarp.ErrLimit) && l.posted > 0; b != nil || err != nil && !waits {
			return b, i, err
		}
		if err := l.step(ctx); err != nil {
			return nil, 0, err
		}
	}
}

// grow makes memory for a block, in place of what is too small if there are as many as may be; nil: nothing is free.
func (l *link) grow(n int, access iwarp.Access) (*block, uint64, error) {
	i := l.emptyBlock()
	if i < 0 {
		return nil, 0, nil
	}
	mr, err := l.register(n, access)
	for at := l.tooSmallBlock(); errors.Is(err, iwarp.ErrLimit) && at >= 0; at = l.tooSmallBlock() {
		l.giveUp(l.blocks[at])
		mr, err = l.register(n, access)
	}
	if err != nil {
		return nil, 0, err
	}
	b := l.blocks[i]
	b.mr, b.busy = mr, true
	return b, uint64(i), nil
}

// emptyBlock returns a block without memory. -1: all have some that is in use.
func (l *link) emptyBlock() int {
	if i := slices.IndexFunc(l.blocks, func(b *block) bool { return b.mr == nil }); i >= 0 {
		return i
	}
	if len(l.blocks) < window {
		l.blocks = append(l.blocks, &block{})
		return len(l.blocks) - 1
	}
	i := l.tooSmallBlock()
	if i >= 0 {
		l.giveUp(l.blocks[i])
	}
	return i
}

// register has memory that no other connection reaches.
func (l *link) register(n int, access iwarp.Access) (*iwarp.MR, error) {
	if err := l.share.reserve(n); err != nil {
		return nil, err
	}
	mr, err := l.qp.PD().RegisterOptions(make([]byte, n), iwarp.MROptions{Access: access, QP: l.qp})
	if err != nil {
		l.share.give(n)
	}
	return mr, err
}

// tooSmallBlock returns a block whose memory nothing is under way with, which is too small: it makes room for another.
// -1: there is none.
func (l *link) tooSmallBlock() int {
	return slices.IndexFunc(l.blocks, func(b *block) bool { return !b.busy && b.mr != nil })
}

// len is how many bytes of memory a block has.
func (b *block) len() int {
	if b.mr == nil {
		return 0
	}
	return b.mr.Len()
}

// giveUp gives back the memory of a block, which may have other.
func (l *link) giveUp(b *block) {
	if b.mr == nil {
		return
	}
	l.share.give(b.mr.Len())
	_ = b.mr.Deregister()
	b.mr = nil
}

// window is how many blocks are granted at a time: one more for each that was answered, so that whoever says nothing
// more has the memory of one.
func (l *link) window() int { return min(window, 1+l.answered) }
