package sctp

import (
	"fmt"
	"time"
)

// Deadline returns when to call HandleTimeout; the zero time means never.
func (a *Association) Deadline() (at time.Time) {
	if a.end.How != NotYet {
		return at
	}
	for _, st := range a.streams {
		if s := st.session; s != nil && !s.deadline.IsZero() && (at.IsZero() || s.deadline.Before(at)) {
			at = s.deadline
		}
	}
	if a.live == 0 && a.cfg.UnusedTimeout > 0 {
		return a.unused.Add(a.cfg.UnusedTimeout)
	}
	return at
}

// HandleTimeout ends what has lasted for too long.
func (a *Association) HandleTimeout(now time.Time) {
	for id := range a.cfg.Streams {
		st := a.streams[uint16(id)]
		if st != nil && st.session != nil && !st.session.deadline.IsZero() && !now.Before(st.session.deadline) {
			a.handleTimeout(now, st.session)
		}
	}
	if a.live == 0 && a.cfg.UnusedTimeout > 0 && a.end.How == NotYet && !now.Before(a.unused.Add(a.cfg.UnusedTimeout)) {
		a.finishAll(End{Shutdown, ErrUnused})
	}
}

// handleTimeout acts on a session's deadline.
func (a *Association) handleTimeout(now time.Time, s *session) {
	switch s.state {
	case InitiateSent:
		a.emit(Event{Kind: EventRefused, Stream: s.on.id,
			Err: fmt.Errorf("%w: no answer to an Initiate within %v", ErrTimeout, a.cfg.AnswerTimeout)})
		a.giveUp(now, s, false)
	case Open: // failed, and the consumer has said nothing
		a.Close(now, s.on.id)
	default: // TerminateSent, Draining
		if s.on.acked < s.on.sent && s.progress() != s.moved && s.renewed < maxRenewed {
			s.renewed++
			a.setDeadline(now, s)
			return
		}
		a.overdue(now, s)
	}
}

// maxRenewed bounds how often a peer gets more time for an end, as our messages are still on their way to it.
const maxRenewed = 3

// overdue gives up a peer that does not play its part in the end of a session.
func (a *Association) overdue(now time.Time, s *session) {
	switch {
	case s.owed:
		// Without a Terminate the peer does not know that the session is over: only the association's end tells it.
		a.abort(fmt.Errorf("%w: our last session control message was not acknowledged within %v",
			ErrTimeout, a.cfg.CloseTimeout))
	case s.state == Draining:
		a.killStream(now, s, fmt.Errorf("%w: our Terminate was not acknowledged within %v", ErrTimeout, a.cfg.CloseTimeout))
	default:
		a.killStream(now, s, fmt.Errorf("%w: no Terminate from the peer within %v", ErrTimeout, a.cfg.CloseTimeout))
	}
}
