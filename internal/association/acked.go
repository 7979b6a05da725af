package association

import (
	"errors"
	"time"

	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/sctp"
)

// PeerAcked is closed when the peer has all that we had to say, be it our rejection or the Terminate that ends the
// session, or never will. Of a session that has ended in order, the peer was told then, too, that we have all of its
// half, as well as that can be: its SCTP would wait for that in vain if the program ended here.
func (s *Session) PeerAcked() <-chan struct{} { return s.told }

// LossError says, when PeerAcked is closed, why the peer has not acknowledged everything. It is nil if it has, or all
// but our Terminate, and where that is not known: a peer that is silent may have got everything, and ended then. So may
// one that has shut the association down; it has said no more by that than that all of its own was acknowledged, and
// may abort the association or fall silent before it has ours.
//
// RFC 9260, section 9.2: "If there are still outstanding DATA chunks left, the SHUTDOWN chunk receiver MUST continue
// to follow normal data transmission procedures".
func (s *Session) LossError() error {
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	for _, orderly := range []error{sctp.ErrTimeout, lowerlayer.ErrSilent, lowerlayer.ErrShutdown} {
		if errors.Is(s.lost, orderly) && !s.lacks {
			return nil
		}
	}
	return s.lost
}

// HasUnacked reports whether the peer has not acknowledged something in front of our Terminate, where the Carrier can
// tell.
func (s *Session) HasUnacked() bool {
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	select {
	case <-s.told:
		return s.lacks
	default:
		return s.lacking()
	}
}

// lacking is the same while there is the session. What the Carrier has not, or would not take, it does not count.
func (s *Session) lacking() bool {
	c, ok := s.a.carrier.(lowerlayer.Unacked)
	return ok && (s.unsent() || c.Unacked(s.id) > sctp.TerminateLen)
}

// unsent reports whether the Carrier has not taken all segments.
func (s *Session) unsent() bool {
	m := &s.a.handed
	return s.a.m.Unsent(s.id) > 0 || m.Stream == s.id && m.PPID == sctp.PPIDSegment
}

// Unsent reports whether a segment has not been sent yet, as far as the Carrier tells.
func (s *Session) Unsent() bool {
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	c, ok := s.a.carrier.(lowerlayer.StreamUnsent)
	return s.unsent() || ok && c.Unsent(s.id)
}

// RoundTrip returns what the Carrier has measured of the way there and back, zero if that is nothing.
func (s *Session) RoundTrip() time.Duration {
	if c, ok := s.a.carrier.(lowerlayer.RoundTrip); ok {
		return c.RoundTrip()
	}
	return 0
}

// AckProgress changes whenever the peer has acknowledged more, if the Carrier can tell.
func (s *Session) AckProgress() uint32 {
	if c, ok := s.a.carrier.(lowerlayer.AckProgress); ok {
		return c.AckProgress()
	}
	return 0
}
