package engine

import (
	"errors"
	"fmt"
	"time"
)

// ErrMute is why a Responder's requests are not sent.
//
// RFC 5044, section 7.1.2: "MPA Responder mode implementations MUST receive and
// validate at least one FPDU before sending any FPDUs or Markers."
var ErrMute = errors.New("waiting for the Initiator's first FPDU, before which a Responder may send nothing: let it send first, or have it ask for peer-to-peer and then send its RTR indication") // [Q11]

// Mute reports whether nothing is sent before the Initiator's first FPDU. With
// peer-to-peer (A=1) the Initiator owes us one, otherwise it may never come.
func (q *Machine) Mute() bool { return q.state == RTS && q.awaiting() }

// awaiting reports whether only an FPDU of the Initiator can let us send.
func (q *Machine) awaiting() bool { return !q.SendFirst && !q.heard && q.SendFrom.IsZero() }

// sendEarly has a Responder send although it has heard nothing. The consumer has asked
// for that, against RFC 5044, as its peer takes it.
func (q *Machine) sendEarly() { q.SendFirst, q.SendFrom = true, time.Time{} }

// abandonMute gives up requests of a connection that is to be closed, which wait for an
// FPDU that the Initiator does not owe us: it may wait for them in turn. The close goes on
// without them, as what the Initiator has under way is still to be delivered.
func (q *Machine) abandonMute() {
	if !q.Mute() || q.PeerToPeer || q.sq.Len() == 0 {
		return
	}
	q.cause = fmt.Errorf("closed: %w", q.neverSent())
	q.flushSends()
}

// blame notes why the connection is aborted. A failure that was found before stays the cause. Requests that the close
// has given up are none: what the Initiator had under way may be lost now, too.
func (q *Machine) blame(cause error) {
	switch {
	case q.cause == nil:
		q.cause = cause
	case q.state != Terminate && !errors.Is(q.cause, cause): // what failed here is the cause before it aborts
		q.cause = fmt.Errorf("%w; it was %w", cause, q.cause)
	}
}

// neverSent says how many requests have waited in vain, if any, and for what.
func (q *Machine) neverSent() error {
	if q.sq.Len() == 0 {
		return ErrMute
	}
	return fmt.Errorf("requests that were never sent: %d: %w", q.sq.Len(), ErrMute)
}
