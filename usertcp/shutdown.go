package usertcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
)

// Close ends all connections and Listeners, closes the Link, and returns when all goroutines of the Stack have ended.
// What connections that were closed before have not delivered yet is lost, as it is where the program ends: unlike the
// system's TCP, nothing goes on then. [Stack.Shutdown] waits for it.
func (s *Stack) Close() error {
	s.closing.Do(func() {
		s.stopAccepting()
		close(s.closed)
		s.taps.silent.Store(true)
		s.net.Close()
		_ = s.cfg.Link.Close()
		<-s.nic.done
		s.net.Wait()
	})
	return nil
}

// Shutdown ends the Stack in order. It closes the Listeners, with the connections that nobody has accepted, and opens
// no more connections. Then it waits until the program has closed all connections that are left, and their peers have
// acknowledged everything that was written and the FIN. In the end it closes the Stack. A connection that is lost, as
// when its peer acknowledges nothing for [Config].CloseTimeout, is waited for no longer. When the context ends, the
// connections that are left are reset, and the context's error is returned.
//
// Shutdown closes no connection: that is up to those who use it. It waits for a connection that nobody has closed until
// the context ends, even if the peer has gone: as with the system's TCP, only [Config].KeepAlive notices this while
// nothing is sent. The last lines of a program that uses the Stack with an RNIC are
//
//	err := errors.Join(rnic.Shutdown(ctx), stack.Shutdown(ctx))
func (s *Stack) Shutdown(ctx context.Context) error {
	for _, l := range s.stopAccepting() {
		_ = l.Close()
	}
	err := s.await(ctx)
	return errors.Join(err, s.Close())
}

// await waits until no connection is left, or the Stack is closed by others.
func (s *Stack) await(ctx context.Context) error {
	for left := s.openConns(); len(left) > 0; left = s.openConns() {
		select {
		case <-left[0].end.assured:
		case <-s.closed:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("usertcp: connections that had not ended: %d: %w", len(left), context.Cause(ctx))
		}
	}
	return nil
}

// stopAccepting has the Stack take nothing new. It returns the Listeners.
func (s *Stack) stopAccepting() []*listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving = true
	return slices.Collect(maps.Keys(s.listeners))
}

// ending reports whether nothing new is taken.
func (s *Stack) ending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaving
}

// ended reports whether Close was called.
func (s *Stack) ended() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// listens takes note of a Listener that the Stack's end is to end. It reports false if that has begun.
func (s *Stack) listens(l *listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.leaving {
		s.listeners[l] = struct{}{}
	}
	return !s.leaving
}

func (s *Stack) listensNoMore(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

// addConn takes note of a connection that is established.
func (s *Stack) addConn(c *Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving {
		return net.ErrClosed
	}
	s.conns[c] = struct{}{}
	return nil
}

func (s *Stack) removeConn(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// openConns returns the connections that are not over.
func (s *Stack) openConns() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.conns))
}
