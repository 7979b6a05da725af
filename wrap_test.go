package iwarp_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/mpa"
)

// A tapped is a connection whose writes are counted.
type tapped struct {
	net.Conn
	mu     sync.Mutex
	writes int
	wrote  bytes.Buffer
	closed bool
}

func (c *tapped) Write(b []byte) (int, error) {
	c.note(b)
	return c.Conn.Write(b)
}

// WriteBuffers counts as one write.
func (c *tapped) WriteBuffers(v *net.Buffers) (int64, error) {
	c.note(bytes.Join(*v, nil))
	return v.WriteTo(c.Conn)
}

func (c *tapped) note(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes++
	c.wrote.Write(b)
}

func (c *tapped) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	return c.Conn.Close()
}

func (c *tapped) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

func (c *tapped) NetConn() net.Conn { return c.Conn }

// seen returns what was written, and by how many writes.
func (c *tapped) seen() ([]byte, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.wrote.Bytes()), c.writes
}

// TestWrap has every byte of a connection go through what Wrap has returned, the
// slices of one message in one call.
func TestWrap(t *testing.T) {
	var tap *tapped
	ini, res := rig.Setup{Dialer: iwarp.Dialer{Wrap: func(c net.Conn) (net.Conn, error) {
		tap = &tapped{Conn: c}
		return tap, nil
	}}}.Connect(t)
	request, n := tap.seen()
	if f, err := mpa.ParseStartup(request); err != nil || f.Key() != mpa.KeyRequest || n == 0 {
		t.Fatalf("%d writes, % x (%v)", n, request, err)
	}
	rig.Works(t, ini, res)
	_, before := tap.seen()
	big := ini.Filled(64_000, 1, iwarp.LocalWrite)
	sink := res.MR(64_000, iwarp.LocalWrite|iwarp.RemoteWrite)
	ini.MustPost(&iwarp.SendWR{Op: iwarp.OpWrite, ID: 77,
		SGL: []iwarp.SGE{big.Slice(0, big.Len())}, Remote: sink.Remote(0)})
	ini.WantSent(iwarp.OpWrite, 77, iwarp.StatusSuccess)
	if _, after := tap.seen(); after != before+1 {
		t.Errorf("a Write of %d bytes took %d writes", big.Len(), after-before)
	}
	if n := ini.Negotiated(); runtime.GOOS == "linux" && n.EMSS == layout.DefaultEMSS {
		t.Errorf("the EMSS is not that of the socket below: %d", n.EMSS)
	}
}

// TestWrapFallback wraps both connections of a Dial that falls back.
func TestWrapFallback(t *testing.T) {
	ln := rig.ListenTCP(t)
	var taps []*tapped
	d := iwarp.Dialer{Wrap: func(c net.Conn) (net.Conn, error) {
		taps = append(taps, &tapped{Conn: c})
		return taps[len(taps)-1], nil
	}}
	dialed := (&rig.End{T: t}).Dials(d, ln)
	p := rig.AcceptRequest(t, ln)
	p.Conn.Close()
	p = rig.AcceptRequest(t, ln)
	p.Send(rig.Frame(rig.Reply(1)))
	rig.Must(t, <-dialed)
	if len(taps) != 2 || !taps[0].closed {
		t.Fatalf("wrapped %d connections", len(taps))
	}
	for i, rev := range []byte{2, 1} {
		b, _ := taps[i].seen()
		if f, err := mpa.ParseStartup(b); err != nil || f.Rev() != rev {
			t.Errorf("connection %d: % x (%v)", i, b, err)
		}
	}
}

// TestWrapDistrusts dials a TLS server whose certificate the client does not trust: the error is TLS's, and there is no
// second connection.
func TestWrapDistrusts(t *testing.T) {
	var s rig.Setup
	ln := new(iwarp.ListenConfig).NewListener(tls.NewListener(rig.ListenTCP(t), (&rig.Transport{}).Encrypt(t, &s)))
	defer ln.Close()
	wrapped := 0
	s.Wrap = func(c net.Conn) (net.Conn, error) {
		wrapped++
		return tls.Client(c, &tls.Config{ServerName: "example.com"}), nil
	}
	_, err := s.Dial(rig.Within(t), "tcp", ln.Addr().String())
	if !errors.As(err, new(*tls.CertificateVerificationError)) || rig.Contains(err, "closed") || wrapped != 1 {
		t.Errorf("after %d connections: %v", wrapped, err)
	}
}

// TestWrapFails: the error is Wrap's, and the connection is closed without a word.
func TestWrapFails(t *testing.T) {
	ln := rig.ListenTCP(t)
	broken := errors.New("no tap today")
	d := iwarp.Dialer{Wrap: func(net.Conn) (net.Conn, error) { return nil, broken }}
	_, err := d.Dial(rig.Within(t), "tcp", ln.Addr().String())
	var op *iwarp.OpError
	if !errors.Is(err, broken) || !rig.Contains(err, "Dialer.Wrap: no tap today") ||
		!errors.As(err, &op) || op.Op != "dial" {
		t.Errorf("got %v", err)
	}
	p := rig.AcceptPeer(t, ln)
	_ = p.Conn.SetReadDeadline(time.Now().Add(rig.Soon))
	if b, err := io.ReadAll(p.Conn); len(b) > 0 || err != nil {
		t.Errorf("the peer got % x (%v)", b, err)
	}
}

// A callback is a connection whose Close and CloseWrite call the QP that uses it.
type callback struct {
	net.Conn
	qp    atomic.Pointer[iwarp.QP]
	calls atomic.Int32
}

func (c *callback) call() {
	if qp := c.qp.Load(); qp != nil {
		_, _, _ = qp.State(), qp.Stats(), qp.Err()
		c.calls.Add(1)
	}
}

func (c *callback) CloseWrite() error {
	c.call()
	return c.Conn.(*net.TCPConn).CloseWrite()
}

func (c *callback) Close() error {
	c.call()
	return c.Conn.Close()
}

// TestWrapCallsQP: what Wrap has returned may call the QP when it is closed, however that
// comes about: none of the consumer's code runs with a lock held.
func TestWrapCallsQP(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(ini, res *iwarp.QP) error{
		"close":          func(ini, _ *iwarp.QP) error { return ini.Close() },
		"peer's close":   func(ini, res *iwarp.QP) error { return errors.Join(res.Close(), ini.Close()) },
		"abort":          func(ini, _ *iwarp.QP) error { return ini.Abort() },
		"peer's abort":   func(ini, res *iwarp.QP) error { err := res.Abort(); <-ini.Done(); return err },
		"modify":         func(ini, _ *iwarp.QP) error { return ini.Modify(iwarp.StateClosing) },
		"modify, error":  func(ini, _ *iwarp.QP) error { return ini.Modify(iwarp.StateError) },
		"close of write": func(ini, _ *iwarp.QP) error { return errors.Join(ini.CloseWrite(), ini.Close()) },
	} {
		var wrapped *callback
		ini, res := rig.Setup{Dialer: iwarp.Dialer{Wrap: func(c net.Conn) (net.Conn, error) {
			wrapped = &callback{Conn: c}
			return wrapped, nil
		}}}.Connect(t)
		wrapped.qp.Store(ini.QP)
		if err := end(ini.QP, res.QP); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		<-ini.Done()
		if wrapped.calls.Load() == 0 {
			t.Errorf("%s: the connection was not closed when Done was", name)
		}
	}
}

// TestReconnectWhileClosing: a QP whose last connection is still being closed by its own
// Close takes no other one before that has returned.
func TestReconnectWhileClosing(t *testing.T) {
	t.Parallel()
	began, goOn := make(chan struct{}), make(chan struct{})
	slow := func(c net.Conn) (net.Conn, error) { return &slowClose{Conn: c, began: began, goOn: goOn}, nil }
	ini, res := rig.Setup{Dialer: iwarp.Dialer{Wrap: slow}}.Connect(t)
	closed := make(chan error, 1)
	go func() { closed <- res.Close() }()
	<-began
	d := iwarp.Dialer{}
	if err := d.DialQP(t.Context(), ini.QP, "tcp", "127.0.0.1:1"); !errors.Is(err, iwarp.ErrBadState) ||
		!rig.Contains(err, "wait for Done") {
		t.Errorf("DialQP: %v", err)
	}
	if err := ini.Modify(iwarp.StateIdle); !errors.Is(err, iwarp.ErrBadState) {
		t.Errorf("Modify: %v", err)
	}
	select {
	case <-ini.Done():
		t.Error("Done is closed before the connection is")
	default:
	}
	close(goOn)
	<-ini.Done()
	rig.Should(t, ini.Modify(iwarp.StateIdle))
	<-closed
}

// A slowClose waits in Close until it may go on.
type slowClose struct {
	net.Conn
	began, goOn chan struct{}
	once        sync.Once
}

func (c *slowClose) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

func (c *slowClose) Close() error {
	c.once.Do(func() { close(c.began) })
	<-c.goOn
	return c.Conn.Close()
}
