//go:build unix

package tcp

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// A suppressed connection has a goroutine in Recv, which bytes do not wake.
type suppressed struct {
	t       *testing.T
	c, peer *Conn
	got     chan string // what Recv brings, and the error in its place
}

func hushPair(t *testing.T, every time.Duration) *suppressed {
	t.Helper()
	if !canSuppress {
		t.Skip("bytes wake their reader here, however few")
	}
	c, peer := pair(t)
	h := &suppressed{t: t, c: c, peer: peer, got: make(chan string, 1)}
	go func() {
		err := c.Recv()
		if err == nil {
			h.got <- string(c.Unread())
		} else {
			h.got <- err.Error()
		}
		c.Done()
	}()
	h.idle()
	if every != suppressTime {
		c.role.suppression = &suppression{every: every}
	}
	c.SuppressWakeUps()
	return h
}

// idle waits until the goroutine waits for the socket: it has a reader then that holds no lock, and found nothing.
func (h *suppressed) idle() {
	h.t.Helper()
	comesTrue(h.t, &h.c.rx.mu, func() bool { return h.c.raw.readErr != nil })
}

// quiet sends bytes that wake nobody: they are there, and the system does not say so to who waits.
func (h *suppressed) quiet(b string) {
	h.t.Helper()
	sendAll(h.t, h.peer, []byte(b))
	arrived(h.t, h.c)
	if readable(h.c.Conn.(*net.TCPConn)) {
		h.t.Fatalf("%.20q wakes who waits", b)
	}
}

func (h *suppressed) wants(want string) {
	h.t.Helper()
	select {
	case got := <-h.got:
		if got != want {
			h.t.Errorf("the reader got %.20q, want %.20q", got, want)
		}
	case <-testrig.Within(h.t).Done():
		h.t.Fatal("nothing wakes the reader")
	}
}

// What is there when a hush ends wakes the reader, whoever ends it.
func TestHushEnds(t *testing.T) {
	for name, end := range map[string]func(*Conn){
		"one who waits":    (*Conn).RearmReads,
		"no poll any more": (*Conn).pollsOn,
	} {
		t.Run(name, func(t *testing.T) {
			h := hushPair(t, time.Hour)
			h.quiet("few")
			end(h.c)
			h.wants("few")
			for range 2 * suppressPolls {
				h.c.poll(t)
			}
			h.c.pollsOn() // by a timer that could not be stopped any more
			if h.c.role.suppression.timer.Stop() {
				t.Error("the timer runs on")
			}
		})
	}
}

// While somebody polls often enough, the hush goes on.
func TestHushGoesOn(t *testing.T) {
	h := hushPair(t, time.Hour)
	polls := func(n int) {
		for range n {
			h.c.poll(t)
		}
	}
	for range 2 {
		polls(suppressPolls / 2)
		h.c.SuppressWakeUps() // once more: it goes on as it was
		polls(suppressPolls / 2)
		h.c.pollsOn()
	}
	polls(suppressPolls - 1)
	h.quiet("few")
	h.c.rx.mu.Lock()
	h.c.pollsOn() // somebody reads at that moment
	h.c.rx.mu.Unlock()
	h.quiet(" more")
	h.c.pollsOn()
	h.wants("few more")
}

// The timer ends a hush by itself, and one that it has let go on.
func TestHushByTimer(t *testing.T) {
	h := hushPair(t, suppressTime)
	h.c.role.suppression.timer.Stop()
	for range suppressPolls {
		h.c.poll(t)
	}
	h.c.pollsOn()
	sendAll(t, h.peer, []byte("few"))
	h.wants("few")
}

// Many bytes, and the end of a connection, wake the reader of one that is suppressed.
func TestHushWakes(t *testing.T) {
	for name, c := range map[string]struct {
		come func(*suppressed)
		want string
	}{
		"FIN": {func(h *suppressed) { testrig.Must(t, h.peer.CloseWrite()) }, io.EOF.Error()},
		"bytes and FIN": {func(h *suppressed) {
			sendAll(t, h.peer, []byte("last"))
			testrig.Must(t, h.peer.CloseWrite())
		}, "last"},
		"RST": {func(h *suppressed) { testrig.Must(t, h.peer.Reset()) }, "read tcp"},
		"many": {func(h *suppressed) {
			h.quiet(string(make([]byte, suppressBytes-1)))
			sendAll(t, h.peer, []byte{0})
		}, string(make([]byte, suppressBytes))},
	} {
		t.Run(name, func(t *testing.T) {
			h := hushPair(t, time.Hour)
			c.come(h)
			select {
			case got := <-h.got:
				if name == "RST" {
					got = got[:len(c.want)]
				}
				if got != c.want {
					t.Errorf("got %.20q, want %.20q", got, c.want)
				}
			case <-testrig.Within(t).Done():
				t.Fatal("the reader sleeps on")
			}
		})
	}
}

// Where a consumer waits in the place of the receiving goroutine, nobody hushes the connection, and it ends a hush.
func TestHushAndTake(t *testing.T) {
	s := standBack(t)
	if !canSuppress {
		t.Skip("bytes wake their reader here, however few")
	}
	s.free()
	s.c.role.suppression = &suppression{every: time.Hour}
	s.wantSuppressed(true, "with nobody who waits")
	s.acquire()
	if s.suppressed() {
		t.Error("still suppressed with a consumer that waits")
	}
	s.wantSuppressed(false, "while a consumer waits")
	s.c.ReleaseRole(false, false)
	s.c.SuppressWakeUps()
	s.c.End()
	if s.suppressed() {
		t.Error("suppressed beyond the end")
	}
	s.wantSuppressed(false, "after the end")
	s.wantBack(-1)
}

// wantSuppressed suppresses wake-ups, and looks whether they are.
func (s *standby) wantSuppressed(want bool, when string) {
	s.t.Helper()
	if s.c.SuppressWakeUps(); s.suppressed() != want {
		s.t.Errorf("suppressed %s: %t", when, !want)
	}
}

func (s *standby) suppressed() bool {
	s.c.role.mu.Lock()
	defer s.c.role.mu.Unlock()
	return s.c.role.suppressed
}

// Every so often a poll asks for a hush. A connection that is no socket has none.
func TestHushDue(t *testing.T) {
	c, _ := pair(t)
	p, _ := piped(t)
	for n := 1; n <= 3*suppressAfter; n++ {
		c.poll(t)
		p.poll(t)
		if got := c.SuppressDue(); got != (canSuppress && n%suppressAfter == 0) {
			t.Fatalf("poll %d: %t", n, got)
		}
		if c.SuppressDue() {
			t.Fatalf("poll %d: due twice", n)
		}
		if p.SuppressDue() {
			t.Fatalf("poll %d of a pipe", n)
		}
	}
}

// poll finds nothing.
func (c *Conn) poll(t *testing.T) {
	t.Helper()
	if ok, err := c.TryRecv(); ok || err != nil {
		t.Fatal(ok, err)
	}
}

// To hush a connection and to end that allocates once.
func TestHushAllocatesOnce(t *testing.T) {
	c, _ := pair(t)
	turn := func() {
		c.SuppressWakeUps()
		c.RearmReads()
	}
	turn()
	if n := testing.AllocsPerRun(100, turn); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
