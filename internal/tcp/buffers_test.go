package tcp

import (
	"bufio"
	"net"
	"strings"
	"testing"
)

// A recorder notes what is written by one call.
type recorder struct {
	net.Conn
	calls []string
}

func (r *recorder) Write(b []byte) (int, error) {
	r.calls = append(r.calls, string(b))
	return len(b), nil
}

// A joiner takes several slices by one call, too.
type joiner struct{ recorder }

func (j *joiner) WriteBuffers(v *net.Buffers) (n int64, err error) {
	var all strings.Builder
	for _, b := range *v {
		all.Write(b)
	}
	*v = nil
	_, err = j.Write([]byte(all.String()))
	return int64(all.Len()), err
}

// TestWriteBuffers: slices stay together on a connection that can keep them so, also
// where bytes of it were read ahead.
func TestWriteBuffers(t *testing.T) {
	plain, joins := &recorder{}, &joiner{}
	for _, c := range []struct {
		name string
		conn net.Conn
		to   *recorder
		want string
	}{
		{"slice by slice", plain, plain, "one|two|three"},
		{"joined", joins, &joins.recorder, "onetwothree"},
		{"joined, after what was read ahead", NewBuffered(joins, bufio.NewReader(joins)),
			&joins.recorder, "onetwothree"},
	} {
		c.to.calls = nil
		v := net.Buffers{[]byte("one"), []byte("two"), []byte("three")}
		n, err := WriteBuffers(c.conn, &v)
		if got := strings.Join(c.to.calls, "|"); got != c.want || n != 11 || err != nil || len(v) != 0 {
			t.Errorf("%s: wrote %q, %d bytes (%v), %d slices left", c.name, got, n, err, len(v))
		}
		c.to.calls = nil
		if n, err := New(c.conn).Send([][]byte{[]byte("one"), []byte("two"), []byte("three")}); n != 11 || err != nil ||
			strings.Join(c.to.calls, "|") != c.want {
			t.Errorf("%s: Send wrote %q, %d bytes (%v)", c.name, c.to.calls, n, err)
		}
	}
}

// An embedder counts what is written to a socket that it embeds.
type embedder struct {
	*net.TCPConn
	written int
}

func (e *embedder) Write(b []byte) (int, error) {
	e.written += len(b)
	return e.TCPConn.Write(b)
}

// TestWriteEmbedded writes by the Write of a connection that embeds a socket, as it may change what is written.
func TestWriteEmbedded(t *testing.T) {
	a, b := pair(t)
	e := &embedder{TCPConn: a.Conn.(*net.TCPConn)}
	sendAll(t, New(e), []byte("one"), []byte("two"))
	if got := recv(t, b, 6, 0); string(got) != "onetwo" || e.written != 6 {
		t.Errorf("%d bytes by its Write, and %q came", e.written, got)
	}
}

// TestEMSSBelow asks the socket that a connection is built on.
func TestEMSSBelow(t *testing.T) {
	a, _ := pair(t)
	if got := emssOf(New(&onSocket{Conn: a.Conn})); got != emssOf(a) {
		t.Errorf("EMSS %d, the socket's is %d", got, emssOf(a))
	}
	if c := New(&recorder{}); emssOf(c) != 0 {
		t.Errorf("EMSS %d of no socket", emssOf(c))
	}
}

type onSocket struct{ net.Conn }

func (c *onSocket) NetConn() net.Conn { return c.Conn }

// emssOf asks TCP.
func emssOf(c *Conn) int {
	emss, _ := c.Limits()
	return emss
}
