package driver

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
)

// fin is our FIN, and the wait for its acknowledgement. Conn.mu guards it.
//
// Where the lower layer ends with the program, the Machine's connection has ended in order before the peer has the end
// of our half. To the consumer it has when the wait for that is over: until then the state is Closing, and the notices
// that tell of the end are kept.
type fin struct {
	sent   bool          // on a plain socket
	polled bool          // somebody is about to call PollFIN, or is in it
	stop   chan struct{} // closed to end the wait early; nil: there is none, or it has ended
	kept   []engine.Notice
}

// keeps reports whether a notice is one of an orderly end that is still to be waited for, and keeps it.
func (f *fin) keeps(n *engine.Notice, l link) bool {
	closed := n.Kind == engine.NoticeState && n.To == engine.Idle
	orderly := closed || n.Kind == engine.NoticeCloseComplete
	if !orderly || !l.Foreign() {
		return false
	}
	f.kept = append(f.kept, *n)
	return true
}

// startWait returns what is closed when the wait is to end.
func (f *fin) startWait() <-chan struct{} {
	f.stop = make(chan struct{})
	return f.stop
}

// stopWait has the connection end without waiting for the peer.
func (f *fin) stopWait() {
	if f.stop != nil {
		close(f.stop)
		f.stop = nil
	}
}

// finAckOver ends the wait: the lower layer is closed, and lost if there is an error. An end that the consumer has
// brought about meanwhile is another already.
func (c *Conn) finAckOver(lost error) {
	if lost != nil {
		c.machine.Undelivered(lost)
	}
	c.collect()
	c.enter(Closed)
	if c.machine.State() == engine.Idle {
		c.up.notices = append(c.up.notices, c.fin.kept...)
	}
}

// awaitPeerAcked waits until the peer has the end of our half, if the link can tell: where that is in user space, a
// program that ends before takes it along. It gives up when the peer has acknowledged nothing for CloseTimeout, or
// after CloseLimit. Its error is why the peer will never have it, if the link knows.
func awaitPeerAcked(l link, cfg *Config, stopped <-chan struct{}) error {
	told := l.PeerAcked()
	if told == nil {
		return nil
	}
	patience := time.NewTicker(cfg.CloseTimeout)
	defer patience.Stop()
	var limit <-chan time.Time
	if cfg.CloseLimit > 0 {
		limit = time.After(cfg.CloseLimit)
	}
	for acked := l.AckProgress(); ; {
		select {
		case <-told:
			return l.LossError()
		case <-stopped:
			return nil
		case <-limit:
			return lacking(l, "has not acknowledged all of ours", cfg.CloseLimit)
		case <-patience.C:
		}
		now := l.AckProgress()
		if now == acked {
			return lacking(l, "has acknowledged nothing more of ours", cfg.CloseTimeout)
		}
		acked = now
	}
}

// lacking is the error of a peer that is not waited for any more, and nil if it lacks nothing but the end itself.
func lacking(l link, what string, within time.Duration) error {
	if !l.HasUnacked() {
		return nil
	}
	return fmt.Errorf("both halves have ended, and the peer %s within %v: %w", what, within, engine.ErrTimeout)
}

// endAfterPeer ends our half after the peer's. Nobody receives any more, so a reset shows in what the socket says only.
// Where something of ours is not acknowledged, awaitFINAck waits for that.
func (c *Conn) endAfterPeer() {
	now := time.Now()
	unacked, err := c.tcp.Unacked()
	data := unacked
	if c.fin.sent {
		data = max(unacked-1, 0)
	} else if err == nil {
		err = c.link.CloseWrite()
	}
	switch {
	case err != nil:
		c.machine.Failed(now, err)
	case unacked == 0:
		c.machine.FINAcked(now)
	default:
		c.machine.Unacked(now, data)
	}
}

// noteUnacked tells the Machine what the peer has not acknowledged after its FIN and ours.
func (c *Conn) noteUnacked(now time.Time) {
	if unacked, err := c.tcp.Unacked(); err != nil {
		c.machine.Failed(now, err)
	} else {
		c.machine.Unacked(now, max(unacked-1, 0))
	}
}
