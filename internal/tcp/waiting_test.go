package tcp

import (
	"bufio"
	"errors"
	"io"
	"net"
	"runtime"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestWaiting: bytes that nobody has read are seen, and on a socket or in front of one they stay.
func TestWaiting(t *testing.T) {
	x, y := pair(t)
	a, b := x.Conn, y.Conn
	if Waiting(b) {
		t.Error("bytes before any were sent")
	}
	write(t, a, "xy")
	var first [1]byte
	if _, err := b.Read(first[:]); err != nil { // until they have arrived
		t.Fatal(err)
	}
	if !Waiting(b) {
		t.Error("none seen")
	}
	r := bufio.NewReader(b)
	if y, err := r.ReadByte(); err != nil || y != 'y' {
		t.Errorf("read %q, %v", y, err)
	}
	if Waiting(b) {
		t.Error("bytes after all were read")
	}
	if Waiting(NewBuffered(b, r)) {
		t.Error("bytes where none were read ahead")
	}
	write(t, a, "z")
	if _, err := r.Peek(1); err != nil {
		t.Fatal(err)
	}
	if c := NewBuffered(b, r); !Waiting(c) || !Waiting(NewBuffered(c, bufio.NewReader(c))) {
		t.Error("what was read ahead is not seen")
	}
}

// TestFINIsNoByte: where the peer has closed its half, there is nothing that anybody could read.
func TestFINIsNoByte(t *testing.T) {
	a, b := pair(t)
	testrig.Must(t, a.CloseWrite())
	if err := b.Recv(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	b.Done()
	if Waiting(b.Conn) {
		t.Error("bytes after the FIN")
	}
}

// TestWaitingEmbedded: what a socket has is not what a connection has that embeds it, and may put frames of its own
// around.
func TestWaitingEmbedded(t *testing.T) {
	x, y := pair(t)
	write(t, x.Conn, "xy")
	var first [1]byte
	if _, err := y.Conn.Read(first[:]); err != nil {
		t.Fatal(err)
	}
	if !Waiting(y.Conn) || Waiting(&embedder{TCPConn: y.Conn.(*net.TCPConn)}) {
		t.Error("bytes of the socket's are not told from those of the connection")
	}
}

// TestWaitingWithoutSocket: of a connection of another kind nothing can be told.
func TestWaitingWithoutSocket(t *testing.T) {
	_, b := piped(t)
	if Waiting(b.Conn) {
		t.Error("bytes where nobody can tell")
	}
}

func write(t *testing.T, c net.Conn, s string) {
	t.Helper()
	if _, err := c.Write([]byte(s)); err != nil {
		t.Error(err)
	}
}

// TestKnocks: a connection that waits to be accepted is seen, and that there is none.
func TestKnocks(t *testing.T) {
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	if Knocks(ln) != (runtime.GOOS == "windows") {
		t.Error("a connection before any was made")
	}
	if !Knocks(struct{ net.Listener }{ln}) {
		t.Error("told of a listener of another kind")
	}
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", ln.Addr().String())
	testrig.Must(t, err)
	defer c.Close()
	for ctx := testrig.Within(t); !Knocks(ln); {
		testrig.Must(t, ctx.Err())
	}
	d, err := ln.Accept()
	testrig.Must(t, err)
	defer d.Close()
	if Knocks(ln) != (runtime.GOOS == "windows") {
		t.Error("a connection that was accepted")
	}
	testrig.Must(t, ln.Close())
	if !Knocks(ln) {
		t.Error("a listener that is closed keeps nobody from trying")
	}
}
