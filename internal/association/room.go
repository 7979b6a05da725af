package association

import (
	"time"

	"github.com/goiwarp/iwarp/internal/lowerlayer"
)

// What waits to be received is bounded. The bound of an association's only session is low: beyond it nothing more is
// read, and the peer waits. That would hold back other sessions, too. Where there are any, more is kept, and when
// that is too much, a session that nobody receives from ends: a QP that is merely slow goes on.
const (
	maxInbox   = 64              // segments of a session
	maxUnread  = 1 << 20         // bytes of several sessions beyond that, with unreadCost for each segment
	unreadCost = 128             // memory of an inbox
	patience   = 5 * time.Second // without anything being received
)

// dropInbox forgets what was not received.
func (s *Session) dropInbox() {
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	s.inbox = nil
	s.setUnread(0)
}

// inboxFull reports whether nothing more is kept.
func (s *Session) inboxFull() bool {
	return !s.over() && len(s.inbox) >= maxInbox && (s.a.m.Sessions() == 1 || s.a.unread > maxUnread)
}

// setUnread notes how many bytes wait to be received. With fewer there may be room for other sessions.
func (s *Session) setUnread(n int) {
	before := s.a.unread
	s.a.unread += n - s.unread
	s.unread = n
	if before > maxUnread && s.a.unread <= maxUnread {
		s.a.wakeSessions()
	}
}

// wakeSessions has all sessions see what has changed.
func (a *Association) wakeSessions() {
	for _, s := range a.sessions {
		s.changed.Broadcast()
	}
}

// waitForRoom waits until more is kept.
func (s *Session) waitForRoom() {
	taken, by := s.taken, time.Now().Add(patience)
	for s.inboxFull() {
		alone := s.a.m.Sessions() == 1
		if !alone && !time.Now().Before(by) {
			s.overrun()
			return
		}
		s.wait(alone, by)
		if alone || s.taken != taken {
			taken, by = s.taken, time.Now().Add(patience)
		}
	}
}

// wait waits for a change; if there are other sessions, not for ever.
func (s *Session) wait(alone bool, by time.Time) {
	if !alone {
		defer time.AfterFunc(time.Until(by), func() {
			s.a.mu.Lock()
			defer s.a.mu.Unlock()
			s.changed.Broadcast()
		}).Stop()
	}
	s.changed.Wait()
}

// overrun ends the session.
func (s *Session) overrun() {
	s.ended, s.err = true, lowerlayer.ErrOverrun
	s.setHeld(0)
	s.a.m.Reset(time.Now(), s.id, s.a.cfg.LastWords)
	s.a.processOutputs()
}
