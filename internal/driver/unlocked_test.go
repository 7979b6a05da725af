package driver

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A watcher holds of each call of code that may be the user's that the connection's lock is free: what it calls there
// may take it.
type watcher struct {
	testing.TB
	conn  atomic.Pointer[Conn] // nil: it is not there yet
	then  func(c *Conn, what string)
	mu    sync.Mutex
	calls map[string]int
}

func newWatcher(t testing.TB) *watcher {
	return &watcher{TB: t, calls: make(map[string]int)}
}

// called is that of an Owner and of a lower layer.
func (w *watcher) called(what string) {
	w.mu.Lock()
	w.calls[what]++
	w.mu.Unlock()
	c := w.conn.Load()
	if c == nil {
		return
	}
	for ctx := testrig.Within(w); !c.mu.TryLock(); time.Sleep(time.Millisecond) { // others have it for a moment
		if ctx.Err() != nil {
			w.Errorf("%s is called under the lock", what)
			return
		}
	}
	c.mu.Unlock()
	if w.then != nil {
		w.then(c, what)
	}
}

// want waits until all of these were called.
func (w *watcher) want(calls ...string) {
	w.Helper()
	ctx := testrig.Within(w)
	for _, what := range calls {
		for ; w.count(what) == 0; time.Sleep(time.Millisecond) {
			if ctx.Err() != nil {
				w.Fatalf("%s is not called", what)
			}
		}
	}
}

func (w *watcher) count(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[what]
}

// TestOwnerCallsBack: what the QP is told, it is told without the lock. It posts, asks, closes and aborts from there.
func TestOwnerCallsBack(t *testing.T) {
	for _, ends := range []func(c *Conn){
		func(c *Conn) { c.BeginClose() },
		func(c *Conn) { c.Abort(engine.ErrAborted) },
		func(c *Conn) { _ = c.Modify(engine.Terminate) },
	} {
		a, b := sockets(t)
		s := newSetup(mpa.RoleResponder).peerToPeer()
		w := newWatcher(t)
		left := 20
		w.then = func(c *Conn, what string) {
			c.Status()
			c.Figures()
			c.Poll()
			_ = c.PostReceive(new(engine.RecvWork))
			_ = c.PostSend(&engine.SendWork{Op: engine.OpWrite}, 0, false)
			if what == "Completed" {
				if left--; left == 0 {
					ends(c)
				}
			}
			if what == "Ended" {
				c.Abort(errors.New("too late"))
			}
		}
		s.called = w.called
		e, m := s.prepared(t, a)
		w.conn.Store(e.Conn)
		e.run(m)
		peer := newSetup(mpa.RoleInitiator).peerToPeer().on(t, b)
		for range 5 {
			_ = peer.PostSend(&engine.SendWork{Op: engine.OpWrite}, 0, true)
		}
		e.await("enough completions", func() bool { return len(e.completions()) >= 20 })
		peer.BeginClose()
		e.awaitEnd()
		w.want("Heard", "Completed", "Noticed", "Ended", "Settled")
		if left > 0 || len(e.late) > 0 {
			t.Errorf("%d completions are missing; after its end the QP hears of %v", left, e.late)
		}
	}
}

// A watchedConn is a connection of the user's.
type watchedConn struct {
	*testrig.Conn
	*watcher
	asked atomic.Int32
}

func (c *watchedConn) Read(b []byte) (int, error)  { c.called("Read"); return c.Conn.Read(b) }
func (c *watchedConn) Write(b []byte) (int, error) { c.called("Write"); return c.Conn.Write(b) }
func (c *watchedConn) CloseWrite() error           { c.called("CloseWrite"); return c.Conn.CloseWrite() }
func (c *watchedConn) Close() error                { c.called("Close"); return c.Conn.Close() }
func (c *watchedConn) SetLinger(sec int) error     { c.called("SetLinger"); return c.Conn.SetLinger(sec) }
func (c *watchedConn) SetReadDeadline(t time.Time) error {
	c.called("SetReadDeadline")
	return c.Conn.SetReadDeadline(t)
}
func (c *watchedConn) LocalAddr() net.Addr      { c.called("LocalAddr"); return c.Conn.LocalAddr() }
func (c *watchedConn) RemoteAddr() net.Addr     { c.called("RemoteAddr"); return c.Conn.RemoteAddr() }
func (c *watchedConn) RoundTrip() time.Duration { c.called("RoundTrip"); return time.Millisecond }
func (c *watchedConn) Unsent() bool             { c.called("Unsent"); return c.asked.Add(1) < 3 } // which has it asked
func (c *watchedConn) PeerAcked() <-chan struct{} {
	c.called("PeerAcked")
	told := make(chan struct{})
	close(told)
	return told
}
func (c *watchedConn) AckProgress() uint32 { c.called("AckProgress"); return 0 }
func (c *watchedConn) HasUnacked() bool    { c.called("HasUnacked"); return true }
func (c *watchedConn) LossError() error    { c.called("LossError"); return nil }

// TestConnectionCallsBack: what a connection of the user's is asked, it is asked without the lock.
func TestConnectionCallsBack(t *testing.T) {
	for _, inOrder := range []bool{true, false} {
		a, b := testrig.Pipe("ini", "res")
		w := newWatcher(t)
		s := newSetup(mpa.RoleInitiator).peerToPeer()
		s.machine.RNR = engine.RNR{Bytes: 1 << 10, Messages: 1}
		e, m := s.prepared(t, &watchedConn{Conn: a, watcher: w})
		w.conn.Store(e.Conn)
		e.run(m)
		peer := newSetup(mpa.RoleResponder).peerToPeer().on(t, b)
		for range 3 {
			e.post(engine.SendWork{Op: engine.OpWrite})
			peer.post(engine.SendWork{Op: engine.OpSend})
		}
		e.awaitCompletions(3)
		for range 3 {
			e.receive(0)
		}
		e.awaitCompletions(6)
		e.Poll()
		if inOrder {
			e.BeginClose()
			w.want("CloseWrite") // before the peer closes its half, after which Close is enough
			peer.BeginClose()
		} else {
			e.Abort(engine.ErrAborted)
		}
		if end := e.awaitEnd(); (end.State == engine.Idle) != inOrder {
			t.Errorf("ended in %v with %v", end.State, end.Cause)
		}
		w.want("Read", "Write", "Close")
		if inOrder {
			w.want("RoundTrip", "Unsent", "PeerAcked", "AckProgress", "LossError")
			if n := w.count("Unsent"); n < 3 {
				t.Errorf("asked %d times for what is not sent", n)
			}
		} else {
			w.want("SetLinger")
		}
	}
}

// A watchedStream is a stream of whole segments of the user's, with all that one may tell.
type watchedStream struct {
	*segmentStream
	*watcher
}

func (s *watchedStream) Held(int)                 { s.called("Held") }
func (s *watchedStream) RoundTrip() time.Duration { s.called("RoundTrip"); return time.Millisecond }
func (s *watchedStream) Unsent() bool             { s.called("Unsent"); return false }
func (s *watchedStream) Moved() uint64            { s.called("Moved"); return 1 }
func (s *watchedStream) PeerAcked() <-chan struct{} {
	s.called("PeerAcked")
	told := make(chan struct{})
	close(told)
	return told
}
func (s *watchedStream) AckProgress() uint32 { s.called("AckProgress"); return 0 }
func (s *watchedStream) HasUnacked() bool    { s.called("HasUnacked"); return true }
func (s *watchedStream) LossError() error    { s.called("LossError"); return nil }

// TestStreamCallsBack is the same of a stream of whole segments.
func TestStreamCallsBack(t *testing.T) {
	for _, inOrder := range []bool{true, false} {
		w := newWatcher(t)
		stream := &watchedStream{newSegments(), w}
		stream.each = w.called
		e := newSetup(mpa.RoleInitiator).over(t, stream)
		w.conn.Store(e.Conn)
		for range 3 {
			e.post(engine.SendWork{Op: engine.OpWrite})
		}
		e.awaitCompletions(3)
		stream.in <- lowerlayer.Arrival{Number: 3, Segment: sendSegment(3)} // ahead of its turn
		stream.in <- lowerlayer.Arrival{Number: 2, Segment: sendSegment(2)}
		if inOrder {
			for id := range uint64(3) {
				e.receive(id)
			}
			stream.in <- lowerlayer.Arrival{Number: 1, Segment: sendSegment(1)}
			e.awaitCompletions(6)
			e.BeginClose()
			w.want("CloseWrite")
			stream.in <- lowerlayer.Arrival{Number: 4, End: true}
		} else {
			e.Abort(engine.ErrAborted)
		}
		if end := e.awaitEnd(); (end.State == engine.Idle) != inOrder {
			t.Errorf("ended in %v with %v", end.State, end.Cause)
		}
		w.want("Send", "Recv", "MULPDU")
		if inOrder {
			w.want("Held", "RoundTrip", "Unsent", "Moved", "Close", "PeerAcked", "AckProgress", "LossError")
		} else {
			w.want("Reset")
		}
	}
}

// sendSegment is a Send of nothing.
func sendSegment(msn uint32) []byte {
	h := rdmap.OpSend.Header(1)
	h.Last, h.MSN = true, msn
	return h.Append(nil)
}
