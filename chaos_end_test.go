package iwarp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
)

// A leaving is how an end of a conversation ends it.
type leaving uint8

const (
	leaveClose     leaving = iota // after all is posted
	leaveEarly                    // while it posts
	leaveWait                     // when the peer has, or has not for a while
	leaveAbort                    // by a reset
	leaveBadWrite                 // by a Write that the peer refuses
	leaveTerminate                // by Modify
	numLeavings
)

func (l leaving) String() string {
	return [numLeavings]string{"close", "close early", "wait", "abort", "bad write", "terminate"}[l]
}

// orderly tells whether the end does nothing but close.
func (l leaving) orderly() bool { return l <= leaveWait }

// A step is a Send, and what goes before it.
type step struct {
	size        int
	write, read bool
	inline      bool
	pause       time.Duration
}

// A script of an end, made before it begins.
type chaosScript struct {
	steps []step
	leave leaving
	early time.Duration // after which leaveEarly does
}

func (s *chaosScript) String() string { return fmt.Sprintf("%d steps, %v", len(s.steps), s.leave) }

func newChaosScript(r *rand.Rand, room int, reads bool) *chaosScript {
	s := &chaosScript{steps: make([]step, r.IntN(min(40, (1<<19)/room))),
		early: time.Duration(r.IntN(int(200 * time.Millisecond)))}
	if s.leave = leaving(r.IntN(int(numLeavings))); r.IntN(2) > 0 {
		s.leave = leaveClose
	}
	slow := r.IntN(3) == 0
	for i := range s.steps {
		p := step{size: r.IntN(1 + r.IntN(room)), write: r.IntN(3) == 0, read: reads && r.IntN(4) == 0}
		p.inline = p.size <= 256 && r.IntN(2) > 0
		if slow && r.IntN(4) == 0 {
			p.pause = time.Duration(r.IntN(int(10 * time.Millisecond)))
		}
		s.steps[i] = p
	}
	return s
}

// A chaosEnd is one end of a conversation, what it has done and what became of it.
type chaosEnd struct {
	*chaosScript
	qp   *iwarp.QP
	pd   *iwarp.PD
	peer *chaosEnd
	talk uint64 // the conversation's number
	dir  byte
	room int // bytes of a message

	src, inbox, target, shown, sink *iwarp.MR
	srq                             *chaosSRQ // or nil
	cq                              *iwarp.CQ // of its own, with an SRQ

	closed error // what Close has returned
	posted int   // Sends that were accepted

	sent, received, flushed int // flushed are Sends
	faults                  []error
}

// wrong notes what must not happen.
func (e *chaosEnd) wrong(format string, args ...any) {
	e.faults = append(e.faults, fmt.Errorf(format, args...))
}

// kinds of bytes.
const (
	kindSend byte = iota
	kindWrite
	kindShown
)

// fill writes the bytes of a message, which no other message has.
func (e *chaosEnd) fill(b []byte, kind byte, i int) []byte {
	g := rand.NewPCG(e.talk, uint64(e.dir)<<40|uint64(kind)<<32|uint64(i))
	for at := 0; at < len(b); at += 8 {
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], g.Uint64())
		copy(b[at:], w[:])
	}
	return b
}

// prepare registers the end's memory.
func (e *chaosEnd) prepare(pd *iwarp.PD) (err error) {
	e.pd = pd
	register := func(n int, a iwarp.Access) (mr *iwarp.MR) {
		if err == nil {
			mr, err = pd.Register(make([]byte, max(n, 1)*e.room), a)
		}
		return mr
	}
	own, others := len(e.steps), len(e.peer.steps)
	e.src, e.sink = register(2*own, 0), register(own, iwarp.LocalWrite)
	e.inbox, e.target = register(others, iwarp.LocalWrite), register(others, iwarp.RemoteWrite)
	e.shown = register(1, iwarp.RemoteRead)
	if err == nil {
		e.fill(e.shown.Bytes(), kindShown, 0)
	}
	return err
}

// receives posts a receive for every Send of the peer.
func (e *chaosEnd) receives(qp *iwarp.QP) error {
	if e.srq != nil {
		return nil
	}
	for i := range e.peer.steps {
		if err := qp.PostRecv(&iwarp.RecvWR{ID: uint64(i),
			SGL: []iwarp.SGE{e.inbox.Slice(i*e.room, e.room)}}); err != nil {
			return err
		}
	}
	return nil
}

// run has the conversation, and returns when the end is over.
func (e *chaosEnd) run(ctx context.Context) {
	var tasks sync.WaitGroup
	tasks.Go(func() { e.collect(ctx) })
	early := make(chan error, 1)
	if e.leave == leaveEarly {
		time.AfterFunc(e.early, func() { early <- e.qp.Close() })
	}
	e.work()
	switch e.leave {
	case leaveEarly:
		e.closed = <-early
	case leaveWait:
		select {
		case <-e.qp.Done():
		case <-time.After(400 * time.Millisecond):
		}
	case leaveAbort:
		_ = e.qp.Abort()
	case leaveBadWrite:
		_ = e.qp.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, Inline: []byte("x"), Unsignaled: true,
			Remote: iwarp.Remote{STag: 7}})
	case leaveTerminate:
		_ = e.qp.Modify(iwarp.StateTerminate)
	}
	if e.leave != leaveEarly {
		e.closed = e.qp.Close()
	}
	tasks.Wait()
	e.after()
}

// work goes through the steps until the connection takes no more.
func (e *chaosEnd) work() {
	for i, s := range e.steps {
		time.Sleep(s.pause)
		for _, wr := range e.requests(i, s) {
			if err := e.qp.PostSend(wr); err != nil {
				if !errors.Is(err, iwarp.ErrClosed) {
					e.wrong("post of %v %d: %w", wr.Op, i, err)
				}
				return
			}
		}
		e.posted++
	}
}

// requests are what a step posts; the Send is the last.
func (e *chaosEnd) requests(i int, s step) (wrs []*iwarp.SendWR) {
	if s.write {
		at := (len(e.steps) + i) * e.room
		e.fill(e.src.Bytes()[at:at+s.size], kindWrite, i)
		wrs = append(wrs, &iwarp.SendWR{Op: iwarp.OpWrite, SGL: []iwarp.SGE{e.src.Slice(at, s.size)},
			Remote: e.peer.target.Remote(i * e.room), Unsignaled: true})
	}
	if s.read {
		wrs = append(wrs, &iwarp.SendWR{ID: uint64(i), Op: iwarp.OpRead,
			SGL: []iwarp.SGE{e.sink.Slice(i*e.room, s.size)}, Remote: e.peer.shown.Remote(0)})
	}
	send := &iwarp.SendWR{ID: uint64(i), Op: iwarp.OpSend}
	at := i * e.room
	if b := e.fill(e.src.Bytes()[at:at+s.size], kindSend, i); s.inline {
		send.Inline = b
	} else {
		send.SGL = []iwarp.SGE{e.src.Slice(at, s.size)}
	}
	return append(wrs, send)
}

// collect takes every completion until there can be no more.
func (e *chaosEnd) collect(ctx context.Context) {
	for {
		wc, err := e.qp.SendCQ().Next(ctx)
		if err != nil {
			if !errors.Is(err, iwarp.ErrClosed) {
				e.wrong("waiting for completions: %w", err)
			}
			return
		}
		e.completed(&wc)
	}
}

func (e *chaosEnd) completed(wc *iwarp.WC) {
	err := wc.Err()
	switch {
	case err != nil:
		if !errors.Is(err, iwarp.ErrClosed) && wc.Status == iwarp.StatusFlushed {
			e.wrong("%v %d was flushed: %w", wc.Op, wc.ID, err)
		}
		if wc.Op == iwarp.OpSend {
			e.flushed++
		}
	case wc.Op == iwarp.OpSend:
		if wc.ID != uint64(e.sent) {
			e.wrong("Send %d completed after %d others", wc.ID, e.sent)
		}
		e.sent++
	case wc.Op == iwarp.OpRead:
		e.hasRead(int(wc.ID), wc.Length)
	case wc.Op == iwarp.OpRecv:
		e.hasReceived(wc)
	}
	if wc.Op == iwarp.OpRecv && e.srq != nil {
		if err := e.srq.post(wc.ID); err != nil {
			e.wrong("a receive for the SRQ: %w", err)
		}
	}
}

func (e *chaosEnd) hasRead(i, n int) {
	var want, got = make([]byte, e.steps[i].size), make([]byte, n)
	if _, err := e.sink.ReadAt(got, int64(i*e.room)); err != nil {
		e.wrong("sink: %w", err)
	}
	if !bytes.Equal(got, e.peer.fill(want, kindShown, 0)) {
		e.wrong("Read %d: the bytes differ", i)
	}
}

// hasReceived compares a message with the one that must be next: none is missing, none
// comes twice, and the Write before it is in place.
func (e *chaosEnd) hasReceived(wc *iwarp.WC) {
	i := e.received
	if e.received++; i >= len(e.peer.steps) {
		e.wrong("received %d messages, there were %d", e.received, len(e.peer.steps))
		return
	}
	s, from, at := e.peer.steps[i], e.inbox, int64(wc.ID)*int64(e.room)
	if e.srq != nil {
		from, at = e.srq.mr, int64(wc.ID)*chaosRoom
	} else if wc.ID != uint64(i) {
		e.wrong("receive %d completed after %d others", wc.ID, i)
	}
	if wc.Length != s.size {
		e.wrong("message %d has %d bytes, want %d", i, wc.Length, s.size)
	}
	e.compare(from, at, s.size, kindSend, i)
	if s.write {
		e.compare(e.target, int64(i*e.room), s.size, kindWrite, i)
	}
}

func (e *chaosEnd) compare(mr *iwarp.MR, at int64, n int, kind byte, i int) {
	got := make([]byte, n)
	if _, err := mr.ReadAt(got, at); err != nil {
		e.wrong("memory: %w", err)
	}
	if !bytes.Equal(got, e.peer.fill(make([]byte, n), kind, i)) {
		e.wrong("message %d, kind %d: the bytes differ", i, kind)
	}
}

// after looks at what an end says that is over, and gives back what it had.
func (e *chaosEnd) after() {
	select {
	case <-e.qp.Done():
	default:
		e.wrong("Close has returned, and the connection is there")
	}
	for what, err := range map[string]error{"Err": e.qp.Err(),
		"PostSend": e.qp.PostSend(&iwarp.SendWR{}), "Close": e.closed} {
		if !errors.Is(err, iwarp.ErrClosed) && (err != nil || what != "Close") {
			e.wrong("%s: not ErrClosed: %w", what, err)
		}
	}
}

// release gives back what the end has taken, when its peer is over, too.
func (e *chaosEnd) release() error {
	for _, mr := range []*iwarp.MR{e.src, e.inbox, e.target, e.shown, e.sink} {
		if mr != nil {
			if err := mr.Deregister(); err != nil {
				return err
			}
		}
	}
	if e.srq != nil { // the domain is the SRQ's
		return e.cq.Close()
	}
	return e.pd.Close()
}
