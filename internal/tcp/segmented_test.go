package tcp

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
)

// A trickle is a connection that is no socket. It notes how much each Read had room for.
type trickle struct {
	net.Conn
	r     io.Reader
	rooms []int
}

func (c *trickle) Read(b []byte) (int, error) {
	c.rooms = append(c.rooms, len(b))
	return c.r.Read(b)
}

// recvAll receives until there is nothing more, and consumes what has come but for an unfinished FPDU of so
// many bytes.
func recvAll(c *Conn, keep int) (got []byte) {
	for {
		err := c.Recv()
		b := c.Unread()
		n := max(len(b)-keep, 0)
		if err != nil {
			n = len(b)
		}
		got = append(got, b[:n]...)
		c.Consume(n, keep)
		c.Done()
		if err != nil {
			return got
		}
	}
}

// Much is read in larger pieces, with and without some of it left for the next time; before
// that, and when all has come, a connection waits with a few bytes of memory.
func TestLanding(t *testing.T) {
	for _, keep := range []int{0, 100, hold + 1} {
		text := []byte(strings.Repeat("0123456789abcdef", 10_000))
		in := &trickle{r: io.MultiReader(bytes.NewReader(text[:100]), bytes.NewReader(text[100:]))}
		c := New(in)
		if got := recvAll(c, keep); !bytes.Equal(got, text) {
			t.Errorf("%d bytes left each time: %d of %d received, or others", keep, len(got), len(text))
		}
		if in.rooms[0] != smallSize || in.rooms[1] != smallSize || in.rooms[2] < hold ||
			len(in.rooms) > 2*len(text)/hold+4 {
			t.Errorf("%d bytes left each time: read in pieces of %v", keep, in.rooms)
		}
		c.Release()
		if c.rx.more != nil || c.rx.big != nil || c.rx.kept != nil {
			t.Error("memory is not given back")
		}
	}
}

// An awareConn is a connection of an MPA-aware TCP that notes what it is asked for.
type awareConn struct {
	trickle
	show    func(at uint64, data []byte)
	fpdus   int
	written int
	reset   bool
}

func (c *awareConn) CloseWrite() error                        { return nil }
func (c *awareConn) Reset() error                             { c.reset = true; return nil }
func (c *awareConn) ShowAhead(f func(at uint64, data []byte)) { c.show = f }
func (c *awareConn) EMSS() int                                { return 1000 }

func (c *awareConn) WriteFPDUs(fpdus [][]byte) (int, error) {
	c.fpdus++
	return len(fpdus[0]), nil
}

func (c *awareConn) Write(b []byte) (int, error) {
	c.written++
	return len(b), nil
}

// An MPA-aware TCP is asked for what it can do.
func TestSegmented(t *testing.T) {
	aware := &awareConn{trickle: trickle{r: strings.NewReader("stream")}}
	r := bufio.NewReader(strings.NewReader("in front"))
	_, _ = r.Peek(1)
	c := New(NewBuffered(aware, r))
	if emss, record := c.Limits(); !c.Segmented() || emss != 1000 || record != 1000 {
		t.Errorf("%t, EMSS %d, records of %d", c.Segmented(), emss, record)
	}
	at := uint64(0)
	c.ShowAhead(func(n uint64, _ []byte) { at = n })
	aware.show(5, nil)
	if want := uint64(5 + len("in front")); at != want {
		t.Errorf("shown at %d, want %d", at, want)
	}
	if got := recvAll(c, 0); string(got) != "in frontstream" {
		t.Errorf("received %q", got)
	}
	v := [][]byte{[]byte("one"), []byte("two")}
	for _, records := range []bool{true, false} {
		if n, err := c.Send(v); n != 3 || err != nil || c.EndRecords(records) != true {
			t.Errorf("%d bytes sent (%v)", n, err)
		}
	}
	if _, err := c.Send(v); err != nil || aware.fpdus != 1 || aware.written != 2 {
		t.Errorf("%d calls of WriteFPDUs and %d of Write (%v)", aware.fpdus, aware.written, err)
	}
	c.End()
	if aware.show != nil {
		t.Error("what arrives ahead is still shown")
	}
	if _ = c.Reset(); !aware.reset {
		t.Error("no reset")
	}
}

// What is built on an MPA-aware TCP has its EMSS, and nothing else of it.
func TestBuiltOnSegmented(t *testing.T) {
	c := New(encrypted{Conn: &awareConn{}})
	if emss, record := c.Limits(); emss != 1000 || record != 1000 || c.Segmented() || c.EndRecords(true) {
		t.Errorf("EMSS %d, %t", emss, c.Segmented())
	}
	c.ShowAhead(nil) // which does nothing
}

type encrypted struct{ net.Conn }

func (o encrypted) NetConn() net.Conn { return o.Conn }
