package iwarp_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
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

// TestWrap has every octet of a connection go through what Wrap has returned, the
// slices of one message in one call.
func TestWrap(t *testing.T) {
	var tap *tapped
	ini, res := setup{Dialer: iwarp.Dialer{Wrap: func(c net.Conn) (net.Conn, error) {
		tap = &tapped{Conn: c}
		return tap, nil
	}}}.connect(t)
	request, n := tap.seen()
	if f, err := mpa.ParseStartup(request); err != nil || f.Key() != mpa.KeyRequest || n == 0 {
		t.Fatalf("%d writes, % x (%v)", n, request, err)
	}
	works(t, ini, res)
	_, before := tap.seen()
	big := ini.filled(100_000, 1, iwarp.LocalWrite)
	sink := res.mr(100_000, iwarp.LocalWrite|iwarp.RemoteWrite)
	ini.post(&iwarp.SendWR{Op: iwarp.OpWrite, ID: 77, SGL: []iwarp.SGE{big.Slice(0, big.Len())}, Remote: sink.Remote(0)})
	ini.wantSent(iwarp.OpWrite, 77, iwarp.StatusSuccess)
	if _, after := tap.seen(); after != before+1 {
		t.Errorf("a Write of %d octets took %d writes", big.Len(), after-before)
	}
	if n := ini.Negotiated(); runtime.GOOS == "linux" && n.EMSS == mpa.DefaultEMSS {
		t.Errorf("the EMSS is not that of the socket below: %d", n.EMSS)
	}
}

// TestWrapFallback wraps both connections of a Dial that falls back.
func TestWrapFallback(t *testing.T) {
	ln := listenTCP(t)
	var taps []*tapped
	d := iwarp.Dialer{Wrap: func(c net.Conn) (net.Conn, error) {
		taps = append(taps, &tapped{Conn: c})
		return taps[len(taps)-1], nil
	}}
	dialed := dialInBackground(t, func() error {
		_, err := d.Dial(within(t), "tcp", ln.Addr().String())
		return err
	})
	p := acceptPeer(t, ln)
	p.wantFrame(mpa.KeyRequest)
	p.conn.Close()
	p = acceptPeer(t, ln)
	p.wantFrame(mpa.KeyRequest)
	p.send(frame(reply(1)))
	if err := <-dialed; err != nil {
		t.Fatal(err)
	}
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

// TestWrapFails: the error is Wrap's, and the connection is closed without a word.
func TestWrapFails(t *testing.T) {
	ln := listenTCP(t)
	broken := errors.New("no tap today")
	d := iwarp.Dialer{Wrap: func(net.Conn) (net.Conn, error) { return nil, broken }}
	_, err := d.Dial(within(t), "tcp", ln.Addr().String())
	var op *iwarp.OpError
	if !errors.Is(err, broken) || !errors.As(err, &op) || op.Op != "dial" {
		t.Errorf("got %v", err)
	}
	p := acceptPeer(t, ln)
	_ = p.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	if b, err := io.ReadAll(p.conn); len(b) > 0 || err != nil {
		t.Errorf("the peer got % x (%v)", b, err)
	}
}
