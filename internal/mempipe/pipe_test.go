package mempipe_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/mempipe"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestPipeEnds has one end leave in every way there is, with what the other end
// then reads and writes.
func TestPipeEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		leave  func(a *mempipe.Conn)
		unread string // written by the other end before
		reads  string // by the other end, before its error
		want   error  // of its read
		writes error  // of its write after that
	}{
		{"FIN", func(a *mempipe.Conn) { a.CloseWrite() }, "", "abc", io.EOF, nil},
		{"close", func(a *mempipe.Conn) { a.Close() }, "", "abc", io.EOF, syscall.ECONNRESET},
		{"close with bytes unread", func(a *mempipe.Conn) { a.Close() }, "xyz", "abc",
			syscall.ECONNRESET, syscall.ECONNRESET},
		{"RST", func(a *mempipe.Conn) { a.SetLinger(0); a.Close() }, "", "abc", syscall.ECONNRESET, syscall.ECONNRESET},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := mempipe.Pipe("a", "b")
			io.WriteString(b, c.unread)
			io.WriteString(a, "abc")
			c.leave(a)
			got, err := io.ReadAll(eofless{b})
			if string(got) != c.reads || !errors.Is(err, c.want) {
				t.Errorf("read %q (%v), want %q (%v)", got, err, c.reads, c.want)
			}
			if _, err := b.Write([]byte{1}); !errors.Is(err, c.writes) {
				t.Errorf("write: %v, want %v", err, c.writes)
			}
			if end := script.EndOf(err); (end == script.FIN) != (c.want == io.EOF) {
				t.Errorf("EndOf(%v): %v", err, end)
			}
		})
	}
}

// eofless keeps io.ReadAll from swallowing io.EOF.
type eofless struct{ io.Reader }

func (r eofless) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err == io.EOF {
		err = &net.OpError{Op: "read", Err: io.EOF}
	}
	return n, err
}

// TestPipeWriteAfterClose resets a connection of which the other end is closed.
func TestPipeWriteAfterClose(t *testing.T) {
	a, b := mempipe.Pipe("a", "b")
	b.Close()
	if _, err := a.Write([]byte("abc")); script.EndOf(err) != script.RST {
		t.Errorf("write: %v", err)
	}
	if _, err := a.Read(make([]byte, 1)); script.EndOf(err) != script.RST {
		t.Errorf("read: %v", err)
	}
	if _, err := b.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read of what is closed: %v", err)
	}
}

// TestPipeDeadlines waits in virtual time: to read where nothing comes, and to write
// where there is no room.
func TestPipeDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := mempipe.Pipe("a", "b")
		a.SetWriteBuffer(4)
		begun := time.Now()
		a.SetDeadline(begun.Add(time.Hour))
		if n, err := a.Write([]byte("abcdef")); n != 4 || !errors.Is(err, os.ErrDeadlineExceeded) ||
			script.EndOf(err) != script.Open {
			t.Errorf("write: %d, %v", n, err)
		}
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		if d := time.Since(begun); d != time.Hour {
			t.Errorf("waited %v", d)
		}
		a.SetDeadline(time.Time{})
		go a.Write([]byte("efghij"))
		got := make([]byte, 10)
		if _, err := io.ReadFull(b, got); err != nil || string(got) != "abcdefghij" {
			t.Errorf("read %q: %v", got, err)
		}
	})
}

// TestListener hands a connection over, and ends.
func TestListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := testrig.NewListener("server")
		near, far := mempipe.Pipe("client", "server")
		go ln.Offer(t.Context(), far)
		c, err := ln.Accept()
		if err != nil || c.RemoteAddr().String() != "client" || near.RemoteAddr().String() != ln.Addr().String() {
			t.Fatalf("%v, %v", c, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := ln.Offer(ctx, far); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nobody accepts: %v", err)
		}
		ln.Close()
		if err := ln.Offer(t.Context(), far); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// TestCarry passes a connection on, with both ends of it as they were.
func TestCarry(t *testing.T) {
	for _, reset := range []bool{false, true} {
		a, x := mempipe.Pipe("a", "relay")
		y, b := mempipe.Pipe("relay", "b")
		var kept []byte
		io.WriteString(a, "memory")
		if reset {
			script.NewLink(a).Reset()
		} else {
			a.CloseWrite()
		}
		want := map[bool]script.End{false: script.FIN, true: script.RST}[reset]
		if end := script.EndOf(script.NewLink(x).CarryTo(y,
			func(p []byte) { kept = append(kept, p...) })); end != want {
			t.Errorf("carried to %v, want %v", end, want)
		}
		l := script.NewLink(b)
		got, err := l.Rest(time.Time{})
		if err != nil || l.End() != want || !bytes.Equal(got, []byte("memory")) || !bytes.Equal(kept, got) {
			t.Errorf("got %q, %v (%v), want %v", got, l.End(), err, want)
		}
	}
}

// TestTCP has the same ends over TCP.
func TestTCP(t *testing.T) {
	for _, want := range []script.End{script.FIN, script.RST} {
		a, b, err := testrig.TCPPair(t.Context())
		testrig.Must(t, err)
		l, other := script.NewLink(a), script.NewLink(b)
		testrig.Must(t, l.SendSplit(time.Microsecond, script.Split([]byte("memory"), 4)...))
		if got, err := other.Bytes(6, time.Now().Add(time.Minute)); err != nil || string(got) != "memory" {
			t.Fatalf("%q, %v", got, err)
		}
		if want == script.RST {
			l.Reset()
		} else {
			go l.Leave(time.Minute)
		}
		if _, err := other.Rest(time.Now().Add(time.Minute)); err != nil || other.End() != want {
			t.Errorf("%v (%v), want %v", other.End(), err, want)
		}
		other.Close()
	}
}

// TestUnbuffered: a Write waits for its readers, a Read returns bytes of one Write, and
// what was not read by the deadline, or by the end, is taken back.
func TestUnbuffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := mempipe.Pipe("a", "b")
		a.SetWriteBuffer(-1)
		begun := time.Now()
		go func() {
			time.Sleep(time.Second)
			var buf [8]byte
			for _, want := range []string{"oneoneon", "e", "two"} {
				if n, err := b.Read(buf[:]); string(buf[:n]) != want || err != nil {
					t.Errorf("read %q (%v), want %q", buf[:n], err, want)
				}
			}
		}()
		for _, s := range []string{"oneoneone", "two"} {
			if n, err := a.Write([]byte(s)); n != len(s) || err != nil {
				t.Errorf("wrote %d bytes of %q (%v)", n, s, err)
			}
		}
		if took := time.Since(begun); took != time.Second {
			t.Errorf("took %v", took)
		}
		a.SetWriteDeadline(begun.Add(2 * time.Second))
		if n, err := a.Write([]byte("late")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) ||
			time.Since(begun) != 2*time.Second {
			t.Errorf("wrote %d bytes (%v) after %v", n, err, time.Since(begun))
		}
		a.SetWriteDeadline(time.Time{})
		go b.Close()
		if n, err := a.Write([]byte("gone")); n != 0 || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("wrote %d bytes (%v)", n, err)
		}
	})
}
