package iwarp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/internal/driver"
	"github.com/goiwarp/iwarp/internal/engine"
)

// Receives has a QP post its receives by itself: take the messages with [QP.Receive] or [QP.Messages]. The receives are
// posted before the connection is up, and again when their messages are done with.
//
// A peer that sends faster than the program receives waits. Count messages lie in receives, and about as many again
// wait behind them; then TCP holds the peer back. So the QP has an [RNRPolicy], which says what else waits with them.
// It has a Receive Queue and a CQ of its own for the receives: QPConfig.RecvDepth, RecvCQ and SRQ must not be set, and
// PostRecv and Recv are refused.
//
// A program may close the connection while messages are left that it has not received. They are discarded: the peer
// sees an orderly end, and [QP.Err] is an [UnreadError]. Stats.Discarded counts them.
type Receives struct {
	// Count is how many receives are posted, 1 to MaxQueueDepth. If only another field is set, 16.
	Count int
	// Size is how many bytes each has. A message that is longer ends the connection. Count times Size is at most 1 GiB.
	// If only another field is set, 4096.
	Size int
	// Timeout bounds how long a call waits for an answer of the peer that is behind unread messages: a Read, an Atomic
	// Operation, any call with QPConfig.Confirm, and those posted after one of them. If zero, 5 s; if negative, there is
	// no bound.
	Timeout time.Duration
}

// maxReceives bounds the memory of a QP's own receives, in bytes.
const maxReceives = 1 << 30

// riskyRecv returns an error if a call of Recv counts on it that no message has come yet.
func riskyRecv(qp *QP) error {
	c := qp.conn.Load()
	if c == nil || qp.cfg.RNR != (RNRPolicy{}) || qp.cfg.SRQ != nil || qp.inbox != nil {
		return nil
	}
	if f := c.Figures(); f.Recvs-f.ArrivingRecvs > 0 {
		return nil
	}
	return qp.firstEnded(ErrRiskyRecv)
}

// fill fills in what is not set, and sets what the QP needs for it.
func (r *Receives) fill(c *QPConfig) error {
	if *r == (Receives{}) {
		return nil
	}
	r.Count, r.Size = orDefault(r.Count, 16), orDefault(r.Size, 4096)
	r.Timeout = orDefault(r.Timeout, 5*time.Second)
	switch {
	case r.Count < 0 || r.Count > MaxQueueDepth:
		return fmt.Errorf("%w: QPConfig.Receives.Count is %d, and must be 1 to %d", ErrInvalid, r.Count, MaxQueueDepth)
	case r.Size < 0:
		return fmt.Errorf("%w: QPConfig.Receives.Size is %d, and must not be negative", ErrInvalid, r.Size)
	case uint64(r.Count)*uint64(r.Size) > maxReceives:
		return fmt.Errorf("%w: QPConfig.Receives needs %d bytes (Count %d, Size %d), and may have %d at most", ErrInvalid,
			uint64(r.Count)*uint64(r.Size), r.Count, r.Size, maxReceives)
	case c.SRQ != nil || c.RecvCQ != nil:
		return fmt.Errorf("%w: QPConfig.Receives with an SRQ or a RecvCQ: the QP has a queue of its own for them",
			ErrInvalid)
	case c.RecvDepth != 0:
		return fmt.Errorf("%w: QPConfig.RecvDepth with Receives: leave it zero, as Receives.Count says how many there are",
			ErrInvalid)
	}
	c.RecvDepth = r.Count
	if c.RNR == (RNRPolicy{}) {
		c.RNR = RNRPolicy{Messages: r.Count, Bytes: r.Count * (r.Size + engine.AheadCost)}
	}
	return nil
}

// An UnreadError is that of QP.Err after the program has closed the connection with messages left unread.
type UnreadError struct {
	Messages int   // how many
	Err      error // how the connection has ended
}

// Error says how many there were.
func (e *UnreadError) Error() string { return "iwarp: " + e.text() }

func (e *UnreadError) text() string {
	return fmt.Sprintf("%s; messages that were not received: %d", text(e.Err), e.Messages)
}

// Unwrap returns how the connection has ended.
func (e *UnreadError) Unwrap() error { return e.Err }

// A Message is one that a QP with QPConfig.Receives has received.
type Message struct {
	from *inbox
	wc   WC
	turn uint32 // of its receive
}

// Bytes returns the message. It lies in the memory of its receive: do not use it after Done.
func (m Message) Bytes() []byte {
	if m.from == nil || m.wc.HasImmediate {
		return nil
	}
	return m.from.memory(m.wc.ID)[:m.wc.Length:m.wc.Length]
}

// WC returns the completion of its receive, which has the Immediate Data if the message was those.
func (m Message) WC() WC { return m.wc }

// Done gives the memory of the message back, for another. Every message that Receive has returned needs it once; more
// calls do nothing. Any goroutine may call it.
func (m Message) Done() {
	if m.from != nil {
		m.from.repost(m.wc.ID, m.turn)
	}
}

// Receive returns the next message, and waits for it if there is none. Call Done when you are done with it: while all
// messages are out, nothing is received.
//
// After the peer has closed the connection in order, and all its messages have been received, the error wraps [io.EOF].
// A context that ends takes no message with it, and one that is over gets none. Several goroutines may call Receive:
// each gets messages of its own.
func (qp *QP) Receive(ctx context.Context) (Message, error) {
	if err := qp.made(); err != nil {
		return Message{}, err
	}
	in := qp.inbox
	if in == nil {
		return Message{}, &OpError{Op: "receive", Err: errNoInbox}
	}
	if err := contextError(ctx); err != nil {
		return Message{}, in.failed(in.waited(err))
	}
	for {
		wc, err := qp.recvCQ.Next(ctx)
		switch {
		case err == nil && wc.Status == StatusSuccess:
			return Message{from: in, wc: wc, turn: in.taken(wc.ID)}, nil
		case err == nil:
			in.post(wc.ID) // for the next connection, if the QP is ready for that already
		case errors.Is(err, ErrNoQP), errors.Is(err, ErrClosed):
			return Message{}, in.failed(in.whyNoMore())
		default:
			return Message{}, in.failed(in.waited(errors.Unwrap(err)))
		}
	}
}

func (in *inbox) failed(err error) error {
	return &OpError{Op: "receive", Addr: in.qp.RemoteAddr(), Err: err}
}

// waited says why no message has come when a context ends, if that is known here.
func (in *inbox) waited(err error) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	for i := range in.slots {
		if in.slots[i].state != slotOut {
			return err
		}
	}
	return fmt.Errorf("%w: the program has all %d messages, and has called Done for none", err, len(in.slots))
}

var errNoInbox = fmt.Errorf("%w: the QP posts no receives: set QPConfig.Receives, or use PostRecv and the CQ",
	ErrInvalid)

// Messages returns the messages, one after the other. Each is given back when the body of the loop has ended for it,
// or before, by Done. The loop ends when the peer has closed the connection in order. Any other error comes as the last
// element: also an ErrClosed, if this end closes the QP.
func (qp *QP) Messages(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for {
			m, err := qp.Receive(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			more := yield(m, err)
			m.Done()
			if err != nil || !more {
				return
			}
		}
	}
}

// whyNoMore says why no message comes any more.
func (in *inbox) whyNoMore() error {
	qp := in.qp
	err := qp.Err()
	if in.half.Load() && (err == nil || errors.Is(err, engine.ErrClosedHere)) {
		return errPeerAfterUs
	}
	if err != nil {
		return err
	}
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if err := qp.endedError(); err != nil {
		return err
	}
	return publicError(engine.ErrPeerClosed) // whose half has ended, and ours has not
}

// errPeerAfterUs is the end of the messages where our half was the first to end.
var errPeerAfterUs = &ConnectionError{Err: fmt.Errorf("the peer, too, has closed its half in order: %w", io.EOF)}

// setHalf notes whether the program has closed its half, and not the QP.
func (in *inbox) setHalf(half bool) (was bool) {
	return in != nil && in.half.Swap(half)
}

// An inbox has the receives of a QP that posts them by itself.
type inbox struct {
	qp     *QP
	mr     *MR
	size   int
	half   atomic.Bool   // the program has closed its half, and not the QP
	unread atomic.Int64  // messages that were there when the QP was closed
	ever   atomic.Uint64 // and those of the connections before
	begun  atomic.Uint64 // how often the QP was made ready for another connection

	mu    sync.Mutex // taken last, and not held while a receive is posted
	slots []slot
}

// A slot is one receive, by the ID of its requests.
type slot struct {
	state slotState
	turn  uint32 // how many messages it has had
}

type slotState uint8

const (
	slotFree   slotState = iota
	slotPosted           // or its completion is in the CQ
	slotOut              // the program has its message
)

// withUnread adds to the orderly end of a connection how many messages were left unread. The caller holds QP.mu.
func (in *inbox) withUnread(err error, ended *driver.End) error {
	if in == nil || ended == nil || !orderly(err) {
		return err
	}
	n := int(in.unread.Load()) + int(ended.Stats.Discarded)
	if n == 0 {
		return err
	}
	return &UnreadError{Messages: n, Err: err}
}

// newInbox registers the memory of the receives, and posts them.
func newInbox(qp *QP) (*inbox, error) {
	r := &qp.cfg.Receives
	mr, err := qp.pd.Register(make([]byte, r.Count*r.Size), LocalWrite)
	if err != nil {
		return nil, err
	}
	in := &inbox{qp: qp, mr: mr, size: r.Size, slots: make([]slot, r.Count)}
	in.refill()
	return in, nil
}

func (in *inbox) memory(id uint64) []byte {
	return in.mr.Bytes()[int(id)*in.size:][:in.size]
}

// refill posts all receives that are free.
func (in *inbox) refill() {
	for id := range in.slots {
		if in.move(uint64(id), slotFree, slotPosted) {
			in.post(uint64(id))
		}
	}
}

// move changes the state of a receive, and reports whether it was the one expected.
func (in *inbox) move(id uint64, from, to slotState) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	s := &in.slots[id]
	if s.state != from {
		return false
	}
	s.state = to
	return true
}

func (in *inbox) setFree(id uint64) { in.move(id, slotPosted, slotFree) }

// taken notes that the program has the message of a receive.
func (in *inbox) taken(id uint64) (turn uint32) {
	in.mu.Lock()
	defer in.mu.Unlock()
	s := &in.slots[id]
	s.state = slotOut
	s.turn++
	return s.turn
}

// repost posts a receive again whose message is done with.
func (in *inbox) repost(id uint64, turn uint32) {
	in.mu.Lock()
	s := &in.slots[id]
	due := s.state == slotOut && s.turn == turn
	if due {
		s.state = slotPosted
	}
	in.mu.Unlock()
	if due {
		in.post(id)
	}
}

// post posts a receive. Where the QP takes none any more, the next connection will have it: refill posts it, or post
// does if refill has come by just before the receive was free.
func (in *inbox) post(id uint64) {
	w := engine.RecvWork{ID: id}
	sge := SGE{MR: in.mr, Offset: int(id) * in.size, Length: in.size}
	w.SGL.Make(1)[0] = sge.engine()
	for again := true; again; {
		begun := in.begun.Load()
		if in.qp.postReceive(&w) == nil {
			return
		}
		in.setFree(id)
		again = in.begun.Load() != begun && in.move(id, slotFree, slotPosted)
	}
}

// drop empties the CQ, and counts the messages that were in it.
func (in *inbox) drop() {
	if in == nil {
		return
	}
	var wc [16]WC
	for n := in.qp.recvCQ.Poll(wc[:]); n > 0; n = in.qp.recvCQ.Poll(wc[:]) {
		for i := range wc[:n] {
			if wc[i].Status == StatusSuccess {
				in.unread.Add(1)
				in.ever.Add(1)
			}
			in.setFree(wc[i].ID)
		}
	}
}

// restart readies the receives for another connection. Messages of the one before are dropped.
func (in *inbox) restart() {
	if in != nil {
		in.drop()
		in.setHalf(false)
		in.unread.Store(0)
		in.begun.Add(1)
		in.refill()
	}
}

// close gives the memory back.
func (in *inbox) close() {
	in.drop()
	_ = in.mr.Deregister()
}
