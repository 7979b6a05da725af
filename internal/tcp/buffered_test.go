package tcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// ahead returns a connection of which a reader has read n bytes of sent ahead, and the
// rest of which follows.
func ahead(t *testing.T, connect func(*testing.T) (*Conn, *Conn), sent []byte, n int) (*Buffered, *bufio.Reader) {
	t.Helper()
	a, b := connect(t)
	go func() {
		for rest, k := sent, n; len(rest) > 0; k = len(rest) {
			sendAll(t, a, rest[:k])
			rest = rest[k:]
		}
	}()
	r := bufio.NewReaderSize(b.Conn, max(n, 16))
	if _, err := r.Peek(n); err != nil {
		t.Fatal(err)
	}
	return NewBuffered(b.Conn, r), r
}

// TestBuffered receives what was read ahead, more than there is room for at once too, and
// what follows. A part of each piece is left unread.
func TestBuffered(t *testing.T) {
	sent := make([]byte, 1<<20)
	for i := range sent {
		sent[i] = byte(i * 31 >> 3)
	}
	for _, connect := range []func(*testing.T) (*Conn, *Conn){pair, piped} {
		for _, n := range []int{0, 1, 255, 256, 257, 9000, BufferSize - 1, BufferSize,
			BufferSize + 1, 3*BufferSize + 5} {
			b, _ := ahead(t, connect, sent, n)
			if n > 0 { // by an owner of the connection, before it is a Conn
				p := make([]byte, min(n, 7))
				if k, err := b.Read(p); k != len(p) || err != nil || !bytes.Equal(p, sent[:k]) {
					t.Fatalf("%d read ahead: read %d (%v)", n, k, err)
				}
			}
			c := New(b)
			got := received(t, c, bytes.Clone(sent[:min(n, 7)]), len(sent))
			if !bytes.Equal(got, sent) {
				t.Errorf("%d read ahead: the bytes differ", n)
			}
			if (c.raw != nil) != (New(b.Conn).raw != nil) {
				t.Errorf("%d read ahead: the socket is not used directly", n)
			}
		}
	}
}

// TestBufferedTwice has two readers read ahead of one connection.
func TestBufferedTwice(t *testing.T) {
	b, _ := ahead(t, pair, []byte("first second third"), 13)
	r := bufio.NewReaderSize(b, 16)
	if _, err := r.Peek(6); err != nil {
		t.Fatal(err)
	}
	c := New(NewBuffered(b, r))
	if ok, _ := c.TryRecv(); ok {
		t.Error("TryRecv has read while bytes wait that were read ahead")
	}
	var got []byte
	for len(got) < 18 {
		got = append(got, recv(t, c, BufferSize, 0)...)
	}
	if string(got) != "first second third" {
		t.Errorf("got %q", got)
	}
}

// TestBufferedShared reads by turns through the reader and the connection.
func TestBufferedShared(t *testing.T) {
	b, r := ahead(t, pair, []byte("one two three four"), 8)
	p := make([]byte, 4)
	for i, from := range []io.Reader{b, r, b} {
		want := []string{"one ", "two ", "thre"}[i]
		if _, err := io.ReadFull(from, p); err != nil || string(p) != want {
			t.Errorf("got %q (%v), want %q", p, err, want)
		}
	}
	if b.NetConn() != b.Conn {
		t.Error("another connection")
	}
	testrig.Should(t, b.CloseWrite())
	c, _ := net.Pipe()
	if err := NewBuffered(c, r).CloseWrite(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("CloseWrite of a connection without halves: %v", err)
	}
}
