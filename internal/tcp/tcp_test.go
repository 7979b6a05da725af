package tcp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// pair returns both ends of a TCP connection.
func pair(t *testing.T) (a, b *Conn) {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	defer ln.Close()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", ln.Addr().String())
	testrig.Must(t, err)
	d, err := ln.Accept()
	testrig.Must(t, err)
	return own(t, c), own(t, d)
}

// piped returns both ends of a connection that is no socket.
func piped(t *testing.T) (a, b *Conn) {
	c, d := net.Pipe()
	return own(t, c), own(t, d)
}

func own(t *testing.T, c net.Conn) *Conn {
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(testrig.Soon))
	return New(c)
}

// recv receives once, takes n bytes off, and returns all that was there.
func recv(t *testing.T, c *Conn, n, need int) []byte {
	t.Helper()
	if err := c.Recv(); err != nil {
		c.Done()
		t.Fatal(err)
	}
	b := bytes.Clone(c.Unread())
	c.Consume(min(n, len(b)), need)
	c.Done()
	return b
}

func sendAll(t *testing.T, c *Conn, v ...[]byte) {
	t.Helper()
	for left := totalLen(v); left > 0; {
		n, err := c.Send(v)
		if err != nil {
			t.Error(err)
			return
		}
		left -= n
		v = drop(v, n)
	}
}

func totalLen(v [][]byte) (n int) {
	for _, b := range v {
		n += len(b)
	}
	return n
}

func drop(v [][]byte, n int) [][]byte {
	for len(v) > 0 && n >= len(v[0]) {
		n, v = n-len(v[0]), v[1:]
	}
	if n > 0 {
		v[0] = v[0][n:]
	}
	return v
}

// TestStream carries bytes in pieces of many sizes, and leaves a part of each
// unread.
func TestStream(t *testing.T) {
	for _, connect := range []func(*testing.T) (*Conn, *Conn){pair, piped} {
		a, b := connect(t)
		sent := make([]byte, 3<<20)
		for i := range sent {
			sent[i] = byte(i * 31 >> 3)
		}
		go func() {
			for rest, n := sent, 1; len(rest) > 0; n = n*3 + 1 {
				n = min(n, len(rest), 200000)
				sendAll(t, a, rest[:n/2+n%2], rest[n/2+n%2:n])
				rest = rest[n:]
			}
		}()
		got := received(t, b, nil, len(sent))
		if !bytes.Equal(got, sent) {
			t.Error("the bytes differ")
		}
	}
}

// TestIdle waits with nothing, and with a few bytes of an unfinished FPDU: no
// pooled buffer is held. With many, it is.
func TestIdle(t *testing.T) {
	for _, connect := range []func(*testing.T) (*Conn, *Conn){pair, piped} {
		for _, c := range []struct {
			sent, taken int
			held        bool
		}{{100, 100, false}, {5000, 4990, false}, {hold + 500, 500, false}, {hold + 501, 500, true}} {
			a, b := connect(t)
			var sender sync.WaitGroup
			sender.Go(func() { sendAll(t, a, make([]byte, c.sent)) })
			for have := 0; have < c.sent; {
				have = len(recv(t, b, 0, c.sent))
			}
			b.rx.mu.Lock()
			b.Consume(c.taken, c.sent)
			b.Done()
			if held := waitsHolding(t, b); held != c.held {
				t.Errorf("%d of %d bytes taken: a buffer held: %v", c.taken, c.sent, held)
			}
			waiting := make(chan error)
			go func() { waiting <- b.Recv(); b.Done() }()
			// A second piece is seen together with what was left of the first.
			sender.Wait()
			sender.Go(func() { sendAll(t, a, []byte("more")) })
			testrig.Must(t, <-waiting)
			b.rx.mu.Lock()
			if n := len(b.Unread()); n != c.sent-c.taken+4 {
				t.Errorf("%d bytes are unread, want %d", n, c.sent-c.taken+4)
			}
			b.Done()
			sender.Wait()
			b.Close()
		}
	}
}

// waitsHolding reports whether the connection would wait with a pooled buffer:
// what is done before a wait is done here without one.
func waitsHolding(t *testing.T, c *Conn) bool {
	t.Helper()
	if c.raw == nil {
		c.rx.shrink()
	} else if ok, err := c.TryRecv(); ok {
		t.Errorf("TryRecv read something (%v)", err)
	}
	return c.rx.big != nil
}

// TestTrySend fills the socket without waiting, and then waits.
func TestTrySend(t *testing.T) {
	a, b := pair(t)
	if a.raw == nil {
		t.Skip("every send waits here")
	}
	chunk := make([]byte, 1<<20)
	sent := 0
	for {
		n, wait, err := a.TrySend([][]byte{chunk[:10], chunk[10:]})
		testrig.Must(t, err)
		sent += n
		if wait {
			break
		}
	}
	go func() {
		sendAll(t, a, chunk)
		_ = a.CloseWrite()
	}()
	n, err := io.Copy(io.Discard, b.Conn)
	if err != nil || n != int64(sent+len(chunk)) {
		t.Errorf("%d bytes arrived (%v), want %d", n, err, sent+len(chunk))
	}
}

// TestManySlices sends more slices at once than one system call takes.
func TestManySlices(t *testing.T) {
	a, b := pair(t)
	var v [][]byte
	for i := range 3000 {
		v = append(v, []byte{byte(i), byte(i >> 8)})
	}
	want := bytes.Join(v, nil)
	go func() {
		sendAll(t, a, v...)
		_ = a.CloseWrite()
	}()
	if got, err := io.ReadAll(b.Conn); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes (%v)", len(got), err)
	}
}

// TestTryRecv reads beside a goroutine that waits in Recv: what comes is seen by
// one of them, and the end by the one that waits.
func TestTryRecv(t *testing.T) {
	a, b := pair(t)
	if b.raw == nil {
		t.Skip("only Recv receives here")
	}
	const n = 20000
	got := make(chan int, 1<<20)
	take := func() {
		u := b.Unread()
		got <- len(u)
		b.Consume(len(u), 0)
		b.Done()
	}
	ended := make(chan error, 1)
	go func() {
		err := b.Recv()
		for err == nil {
			take()
			err = b.Recv()
		}
		b.Release()
		b.Done()
		ended <- err
	}()
	go func() {
		for range n {
			sendAll(t, a, []byte("memory"))
		}
		_ = a.CloseWrite()
	}()
	var err error
	for err == nil {
		if ok, failed := b.TryRecv(); ok {
			if failed != nil {
				t.Fatal(failed)
			}
			take()
		}
		select {
		case err = <-ended:
		default:
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	close(got)
	sum := 0
	for k := range got {
		sum += k
	}
	if sum != 6*n {
		t.Errorf("%d bytes of %d", sum, 6*n)
	}
	if ok, _ := b.TryRecv(); ok {
		t.Error("something was read after Release")
	}
}

// TestCloseWhileReading closes the socket while one goroutine waits in Recv and
// another has the receive buffer: neither waits for the other.
func TestCloseWhileReading(t *testing.T) {
	for range 50 {
		a, b := pair(t)
		if b.raw == nil {
			t.Skip("only Recv receives here")
		}
		ended := make(chan struct{})
		go func() {
			for b.Recv() == nil {
				b.Consume(len(b.Unread()), 0)
				b.Done()
			}
			b.Done()
			close(ended)
		}()
		b.rx.mu.Lock() // as after a TryRecv
		sendAll(t, a, []byte("wake up the one in Recv"))
		testrig.Should(t, b.Reset())
		b.rx.mu.Unlock()
		<-ended
	}
}

// TestEnds tells a FIN, a reset and a close of our own apart.
func TestEnds(t *testing.T) {
	for _, connect := range []func(*testing.T) (*Conn, *Conn){pair, piped} {
		a, b := connect(t)
		_ = a.Close()
		err := b.Recv()
		b.Done()
		if !errors.Is(err, io.EOF) {
			t.Errorf("after a FIN: %v", err)
		}
		a, b = connect(t)
		_ = b.Close()
		err = b.Recv()
		b.Done()
		if err == nil || errors.Is(err, io.EOF) {
			t.Errorf("after our Close: %v", err)
		}
		if _, err := b.Send([][]byte{{1}}); err == nil {
			t.Error("sent after Close")
		}
		_ = a.Close()
	}
	a, b := pair(t)
	_ = a.Reset()
	err := b.Recv()
	b.Done()
	var op *net.OpError
	if errors.Is(err, io.EOF) || !errors.As(err, &op) {
		t.Errorf("after a RST: %v", err)
	}
}

// TestHalves knows which connections can be closed by halves.
func TestHalves(t *testing.T) {
	a, b := pair(t)
	if !a.HasHalves() || a.CloseWrite() != nil {
		t.Error("TCP has halves")
	}
	sendAll(t, b, []byte("still open"))
	if got := recv(t, a, 100, 0); string(got) != "still open" {
		t.Errorf("got %q", got)
	}
	p, _ := piped(t)
	if p.HasHalves() || !errors.Is(p.CloseWrite(), errors.ErrUnsupported) {
		t.Error("a pipe has no halves")
	}
	if emssOf(p) != 0 {
		t.Error("a pipe has no EMSS")
	}
}

// silent is a connection whose reads bring nothing.
type silent struct{ net.Conn }

func (silent) Read([]byte) (int, error) { return 0, nil }

// TestNoProgress gives up on a connection that reads nothing, and no error either.
func TestNoProgress(t *testing.T) {
	c := New(silent{})
	err := c.Recv()
	c.Done()
	if !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
}

// received reads bytes after others until there are n. It leaves some of them unread each time, as of an FPDU that is
// not whole.
func received(t *testing.T, c *Conn, got []byte, n int) []byte {
	t.Helper()
	for i := 0; len(got) < n; i++ {
		testrig.Must(t, c.Recv())
		u := c.Unread()
		keep := min(len(u), i%7*1000)
		if len(got)+len(u) == n {
			keep = 0
		}
		got = append(got, u[:len(u)-keep]...)
		c.Consume(len(u)-keep, keep+1000)
		c.Done()
	}
	return got
}
