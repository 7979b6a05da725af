package capture_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// A tapped is a connection between two sockets, one of which is tapped.
type tapped struct {
	file       *bytes.Buffer
	w          *capture.Writer
	ours, peer net.Conn
}

// newTapped connects a tapped dialer and a listener over loopback.
func newTapped(t *testing.T) *tapped {
	t.Helper()
	ln := listen(t)
	conn, err := net.Dial("tcp", ln.Addr().String())
	testrig.Must(t, err)
	peer, err := ln.Accept()
	testrig.Must(t, err)
	p := &tapped{file: new(bytes.Buffer), peer: peer}
	p.w = newWriter(t, p.file, capture.WriterConfig{Now: func() time.Time { return epoch }})
	if p.ours, err = capture.Tap(conn, p.w, forth); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = p.ours.Close(), p.peer.Close() })
	return p
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	return ln
}

// wantRecord checks what was recorded, but for the first line with the addresses.
func (p *tapped) wantRecord(t *testing.T, want string) {
	t.Helper()
	testrig.Must(t, p.w.Flush())
	b := newBook(t)
	track(t, bytes.NewReader(p.file.Bytes()), b)
	if got, want := strings.Join(b.lines[1:], "\n"), strings.Join(unindent(want), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func write(t *testing.T, to io.Writer, data string) {
	t.Helper()
	if _, err := io.WriteString(to, data); err != nil {
		t.Fatal(err)
	}
}

func wantRead(t *testing.T, from io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(from, got); err != nil || string(got) != want {
		t.Fatalf("read %q (%v), want %q", got, err, want)
	}
}

// TestTap records both directions, up to both FINs.
func TestTap(t *testing.T) {
	p := newTapped(t)
	write(t, p.ours, "ask")
	wantRead(t, p.peer, "ask")
	write(t, p.peer, "answer")
	wantRead(t, p.ours, "answer")
	v := net.Buffers{[]byte("one "), []byte("two"), []byte(" three")}
	if n, err := p.ours.(interface {
		WriteBuffers(*net.Buffers) (int64, error)
	}).WriteBuffers(&v); n != 13 || err != nil || len(v) != 0 {
		t.Fatalf("wrote %d (%v), and left %q", n, err, v)
	}
	wantRead(t, p.peer, "one two three")
	testrig.Must(t, p.ours.(interface{ CloseWrite() error }).CloseWrite())
	if n, err := p.peer.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("after CloseWrite the peer reads %d (%v)", n, err)
	}
	_ = p.peer.Close()
	if _, err := p.ours.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("got %v, want EOF", err)
	}
	_ = p.ours.Close()
	p.wantRecord(t, `
		0 #4 -> data 0 "ask"
		0 #5 <- data 0 "answer"
		0 #6 -> data 3 "one two three"
		0 #7 -> end 16 FIN
		0 #9 <- end 6 FIN
		0 forgotten`)
}

// TestTapReadsAhead picks a frame up in pieces that came in one, and reads much at once.
func TestTapReadsAhead(t *testing.T) {
	p := newTapped(t)
	write(t, p.peer, "head and tail")
	wantRead(t, p.ours, "head")
	write(t, p.ours, "answer")
	wantRead(t, p.ours, " and ")
	if n, err := p.ours.Read(make([]byte, 100_000)); n != len("tail") || err != nil {
		t.Errorf("read %d (%v)", n, err)
	}
	write(t, p.peer, "more")
	if n, err := p.ours.Read(make([]byte, 100_000)); n != len("more") || err != nil {
		t.Errorf("read %d (%v)", n, err)
	}
	_ = p.ours.Close()
	p.wantRecord(t, `
		0 #4 <- data 0 "head and tail"
		0 #5 -> data 0 "answer"
		0 #6 <- data 13 "more"
		0 #7 -> end 6 FIN
		0 #8 <- end 17 end of capture
		0 forgotten`)
}

// TestTapReset records a RST, by either end.
func TestTapReset(t *testing.T) {
	const ours = `
		0 #4 -> data 0 "ask"
		0 #5 -> end 3 RST
		0 #5 <- end 0 RST of the peer
		0 forgotten`
	const peers = `
		0 #4 -> data 0 "ask"
		0 #5 -> end 3 RST of the peer
		0 #5 <- end 0 RST
		0 forgotten`
	p := newTapped(t)
	write(t, p.ours, "ask")
	testrig.Must(t, p.ours.(interface{ SetLinger(int) error }).SetLinger(0))
	_ = p.ours.Close()
	p.wantRecord(t, ours)

	p = newTapped(t)
	write(t, p.ours, "ask")
	wantRead(t, p.peer, "ask")
	testrig.Must(t, p.peer.(*net.TCPConn).SetLinger(0))
	_ = p.peer.Close()
	if _, err := p.ours.Read(make([]byte, 1)); err == nil {
		t.Error("no error after a RST")
	}
	p.wantRecord(t, peers)
}

// TestTapListener records the other end, which is the server.
func TestTapListener(t *testing.T) {
	var file bytes.Buffer
	w := newWriter(t, &file, capture.WriterConfig{})
	ln := capture.TapListener(listen(t), w)
	conn, err := net.Dial("tcp", ln.Addr().String())
	testrig.Must(t, err)
	defer conn.Close()
	accepted, err := ln.Accept()
	testrig.Must(t, err)
	write(t, conn, "ask")
	wantRead(t, accepted, "ask")
	_, _ = accepted.Close(), w.Flush()
	b := newBook(t)
	track(t, &file, b)
	e := b.only()
	e.wantStream(t, forth, []byte("ask"))
	if got, want := e.c.Halves[forth].Addr.String(), conn.LocalAddr().String(); got != want {
		t.Errorf("the client is %s, want %s", got, want)
	}
	_ = ln.Close()
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want %v", err, net.ErrClosed)
	}
}

// TestTapBothEnds records a connection once of which both ends are tapped, whichever is the first, and what the same
// ends do later.
func TestTapBothEnds(t *testing.T) {
	for _, first := range []capture.Dir{forth, back} {
		w := newWriter(t, io.Discard, capture.WriterConfig{})
		ends := map[capture.Dir]*peered{forth: {}, back: {}}
		ends[forth].Conn, ends[back].Conn = net.Pipe()
		for d, e := range ends {
			e.local, e.remote = net.TCPAddrFromAddrPort(client(7)), net.TCPAddrFromAddrPort(server)
			if d == back {
				e.local, e.remote = e.remote, e.local
			}
		}
		one, err := capture.Tap(ends[first], w, first)
		testrig.Must(t, err)
		if two, err := capture.Tap(ends[first.Peer()], w, first.Peer()); err != nil || two != ends[first.Peer()] {
			t.Errorf("the other end is %v (%v)", two, err)
		}
		_ = one.Close()
		if again, err := capture.Tap(ends[first.Peer()], w, first.Peer()); err != nil || again == ends[first.Peer()] {
			t.Errorf("the other end of one that is closed is %v (%v)", again, err)
		}
	}
}

// A peered connection has addresses.
type peered struct {
	net.Conn
	local, remote net.Addr
}

func (p *peered) LocalAddr() net.Addr  { return p.local }
func (p *peered) RemoteAddr() net.Addr { return p.remote }

// A meager connection takes two bytes at a time, and has an error for the rest.
type meager struct {
	net.Conn // nil
	got      []byte
}

var errMeager = errors.New("no more")

func (m *meager) LocalAddr() net.Addr  { return net.TCPAddrFromAddrPort(client(1)) }
func (m *meager) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(server) }
func (m *meager) Write(b []byte) (int, error) {
	n := min(2, len(b))
	m.got = append(m.got, b[:n]...)
	if n < len(b) {
		return n, errMeager
	}
	return n, nil
}

// TestTapShortWrite records once what is written in several goes.
func TestTapShortWrite(t *testing.T) {
	p := &tapped{file: new(bytes.Buffer)}
	p.w = newWriter(t, p.file, capture.WriterConfig{})
	conn, err := capture.Tap(&meager{}, p.w, forth)
	testrig.Must(t, err)
	if _, ok := conn.(interface{ CloseWrite() error }); ok {
		t.Error("there is a CloseWrite that the connection does not have")
	}
	if err := conn.(interface{ SetLinger(int) error }).SetLinger(0); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("SetLinger: got %v, want %v", err, errors.ErrUnsupported)
	}
	for b := []byte("abcdefg"); len(b) > 0; {
		n, err := conn.Write(b)
		if err != nil && err != errMeager {
			t.Fatal(err)
		}
		b = b[n:]
	}
	write(t, conn, "h")
	p.wantRecord(t, `
		0 #4 -> data 0 "abcdefg"
		0 #5 -> data 7 "h"
		0 #5 -> end 8 end of capture
		0 #5 <- end 0 end of capture
		0 forgotten`)
}

// TestTapErrors has a connection that is not TCP.
func TestTapErrors(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if conn, err := capture.Tap(a, newWriter(t, io.Discard, capture.WriterConfig{}), forth); err == nil || conn != nil {
		t.Errorf("got %v (%v), want an error", conn, err)
	}
}
