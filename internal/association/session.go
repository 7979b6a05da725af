package association

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/deadline"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// A Session is a DDP stream session. Its methods may be called at any time, but Recv by one goroutine only.
type Session struct {
	a  *Association
	id uint16

	// Of an Initiate of ours; valid when answered is closed.
	answered   chan struct{}
	negotiated mpa.Negotiated
	refusal    error

	request *mpa.Request  // the peer's
	told    chan struct{} // see PeerAcked

	// Guarded by a.mu.
	changed sync.Cond
	inbox   []iwarp.SegmentArrival
	unread  int    // bytes in inbox
	taken   uint64 // from it
	lost    error  // why the peer is told nothing more: an answer has this error, and see LossError
	ended   bool
	err     error  // why, if not in order
	closed  bool   // from here
	held    int    // bytes ahead of what is missing
	came    uint64 // bytes, of all messages for it
	lacks   bool   // the peer did, when the session ended
}

var _ iwarp.SegmentRequest = (*Session)(nil)

func (a *Association) newSession(id uint16) *Session {
	s := &Session{a: a, id: id, answered: make(chan struct{}), told: make(chan struct{})}
	s.changed.L = &a.mu
	a.sessions[id], a.used = s, true
	a.wakeSessions() // there may have been only one
	return s
}

// over reports whether nothing is to be received any more.
func (s *Session) over() bool { return s.ended || s.closed }

// handleEvent acts on an event.
func (a *Association) handleEvent(e sctp.Event) {
	s := a.sessions[e.Stream]
	if e.Kind == sctp.EventRequest {
		s = a.newSession(e.Stream)
		s.request = e.Request
		a.requests = append(a.requests, s) // the machine bounds them
		a.announce()
		return
	}
	if s == nil {
		return
	}
	defer s.changed.Broadcast()
	switch e.Kind {
	case sctp.EventEstablished:
		s.negotiated = e.Negotiated
		close(s.answered)
	case sctp.EventRefused:
		s.refuse(e.Err)
	case sctp.EventWithdrawn:
		s.withdraw(e.Err)
	case sctp.EventEnded:
		s.onEnded(e.Err)
	default:
		s.enqueue(e)
	}
}

// refuse ends a session that never was. It may be we who refuse it, over a wrong answer.
func (s *Session) refuse(err error) {
	delete(s.a.sessions, s.id)
	s.a.leaving[s] = struct{}{}
	s.refusal, s.ended, s.err = err, true, err
	close(s.answered)
}

// withdraw takes back a request, which nobody may have looked at yet.
func (s *Session) withdraw(err error) {
	s.forget(err)
	close(s.told)
}

// forget takes the session out of the association.
func (s *Session) forget(err error) {
	s.lacks = s.lacking()
	s.setHeld(0)
	delete(s.a.sessions, s.id)
	if s.lost = err; !s.ended {
		s.ended, s.err = true, err
	}
	s.a.requests = slices.DeleteFunc(s.a.requests, func(r *Session) bool { return r == s })
}

// onEnded takes note that nothing is left of the session.
func (s *Session) onEnded(err error) {
	s.forget(err)
	if !s.isAnswered() {
		s.refusal = err
		close(s.answered)
	}
	c, ok := s.a.carrier.(lowerlayer.Assurer)
	if !ok || err != nil {
		close(s.told)
		return
	}
	s.a.assuring++
	go s.assure(c)
}

// assure has the peer know that all of its half has come, before who waits for PeerAcked ends the program.
func (s *Session) assure(c lowerlayer.Assurer) {
	c.Assure()
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	s.a.assuring--
	close(s.told)
	s.a.processOutputs()
}

func (s *Session) isAnswered() bool {
	select {
	case <-s.answered:
		return true
	default:
		return false
	}
}

// enqueue puts what has come into the inbox.
func (s *Session) enqueue(e sctp.Event) {
	if s.over() {
		return
	}
	v := iwarp.SegmentArrival{Number: e.Number, Segment: e.Segment, End: e.Kind == sctp.EventTerminate}
	if e.Kind == sctp.EventFailed {
		v.Err = e.Err
	}
	s.inbox = append(s.inbox, v)
	s.setUnread(s.unread + len(v.Segment) + unreadCost)
}

// Answer waits for the answer to a request of ours. The error wraps the context's, or is that of the
// sctp.EventRefused.
func (s *Session) Answer(ctx context.Context) (mpa.Negotiated, error) {
	select {
	case <-s.answered:
		return s.negotiated, s.refusal
	case <-ctx.Done():
		_ = s.Cancel()
		return mpa.Negotiated{}, fmt.Errorf("no answer to an Initiate: %w", deadline.ContextError(ctx))
	}
}

// Request returns the peer's request.
func (s *Session) Request() *mpa.Request { return s.request }

// Accept accepts the peer's request.
func (s *Session) Accept(answer mpa.Answer) (n mpa.Negotiated, err error) {
	err = s.answer(func() error {
		n, err = s.a.m.Accept(time.Now(), s.id, answer)
		return err
	})
	return n, err
}

// Reject rejects the peer's request.
func (s *Session) Reject(privateData []byte, ird, ord mpa.Depth) error {
	return s.answer(func() error {
		err := s.a.m.Reject(time.Now(), s.id, privateData, ird, ord)
		if err == nil {
			s.closed = true
			delete(s.a.sessions, s.id)
			s.a.leaving[s] = struct{}{}
		}
		return err
	})
}

// Moved returns how many bytes the association has moved, except for those that have come for the session: while it
// grows, who waits for the session may be waiting for its turn.
func (s *Session) Moved() uint64 {
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	return s.a.moved - s.came
}

func (s *Session) answer(how func() error) error {
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	if s.lost != nil {
		return s.lost
	}
	if err := how(); err != nil {
		return err
	}
	s.a.processOutputs()
	return nil
}

// closedError is the error of a call on a session that is over.
func (s *Session) closedError() error {
	if s.err != nil && !s.closed {
		return s.err
	}
	return net.ErrClosed
}

// Send sends whole segments, in order. It waits until it has taken at least one, and returns how many bytes are of
// those that it has.
func (s *Session) Send(v [][]byte) (n int, err error) {
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	for s.a.m.Room(s.id) == 0 && !s.over() && s.a.m.State(s.id) == sctp.Open {
		s.changed.Wait()
	}
	for _, segment := range v {
		if s.over() {
			return n, s.closedError()
		}
		switch err := s.a.m.Send(s.id, segment); {
		case errors.Is(err, sctp.ErrFull): // not with the first
			return n, nil
		case err != nil:
			return n, err
		}
		n += len(segment)
		s.a.work.Signal()
	}
	return n, nil
}

// Recv returns what has arrived next. Its error is why the session, or the whole association, was lost.
func (s *Session) Recv() (iwarp.SegmentArrival, error) {
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	for len(s.inbox) == 0 && !s.over() {
		s.changed.Wait()
	}
	if s.closed || len(s.inbox) == 0 {
		return iwarp.SegmentArrival{}, s.closedError()
	}
	v := s.inbox[0]
	s.inbox[0] = iwarp.SegmentArrival{}
	s.setUnread(s.unread - len(v.Segment) - unreadCost)
	s.taken++
	if s.inbox = s.inbox[1:]; len(s.inbox) == 0 {
		s.inbox = nil
	}
	s.changed.Broadcast()
	return v, nil
}

// CloseWrite ends our half in order, after what Send has taken.
func (s *Session) CloseWrite() error {
	s.finish(s.a.m.Close)
	return nil
}

// Close gives the session up, when both halves have ended.
func (s *Session) Close() error {
	s.leave(s.a.m.Close)
	return nil
}

// Cancel takes back a request of ours, or turns down the peer's, or ends a session that nothing has been done with,
// in order. What the peer still sends is dropped, of which it is told: sctp.Association.Abort. If something has come
// that was not received, it is a Reset.
func (s *Session) Cancel() error {
	return s.giveUp(func(now time.Time, id uint16) {
		if s.hasUnread() {
			s.a.m.Reset(now, id, s.a.cfg.LastWords)
		} else {
			s.a.m.Abort(now, id)
		}
	})
}

func (s *Session) hasUnread() bool {
	return slices.ContainsFunc(s.inbox, func(v iwarp.SegmentArrival) bool { return v.Segment != nil })
}

// Reset ends an established session at once, and not in order, of which the peer is told: sctp.Association.Reset. It
// returns when that is under way, so that a program may end with it.
func (s *Session) Reset() error {
	return s.giveUp(func(now time.Time, id uint16) { s.a.m.Reset(now, id, s.a.cfg.LastWords) })
}

func (s *Session) giveUp(how func(now time.Time, id uint16)) error {
	aborted := false
	s.leave(func(now time.Time, id uint16) {
		how(now, id)
		aborted = s.a.m.End().How == sctp.Abort
	})
	if aborted {
		<-s.a.said
	}
	return nil
}

// finish does something to a session that is not over.
func (s *Session) finish(how func(now time.Time, id uint16)) {
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	if s.over() {
		return
	}
	how(time.Now(), s.id)
	s.a.processOutputs()
	s.changed.Broadcast()
}

// leave ends a session for its consumer, who receives no more of it.
func (s *Session) leave(how func(now time.Time, id uint16)) {
	s.finish(func(now time.Time, id uint16) {
		how(now, id)
		s.closed = true
		s.setHeld(0)
	})
	s.dropInbox()
}

// MULPDU returns the largest segment, in bytes.
func (s *Session) MULPDU() int { return sctp.MULPDU(s.a.carrier.MaxMessage()) }

// LocalAddr returns our address.
func (s *Session) LocalAddr() net.Addr { return s.a.carrier.LocalAddr() }

// RemoteAddr returns the peer's address.
func (s *Session) RemoteAddr() net.Addr { return s.a.carrier.RemoteAddr() }

// String names the association and the stream.
func (s *Session) String() string { return fmt.Sprintf("%v stream %d", s.RemoteAddr(), s.id) }
