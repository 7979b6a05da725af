package usertcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestConn says something in both directions and ends by two FINs.
func TestConn(t *testing.T) {
	for _, address := range []string{"192.0.2.2:7174", "[2001:db8::2]:7174"} {
		t.Run(address, func(t *testing.T) {
			a, b := stacks(t, Config{}, Path{}, Path{})
			c, s := connect(t, a, b, address)
			if c.RemoteAddr().String() != address || s.LocalAddr().String() != address ||
				c.LocalAddr().String() != s.RemoteAddr().String() {
				t.Errorf("from %s to %s, accepted at %s from %s",
					c.LocalAddr(), c.RemoteAddr(), s.LocalAddr(), s.RemoteAddr())
			}
			go func() {
				_, err := io.Copy(s, s)
				if err = errors.Join(err, s.CloseWrite()); err != nil {
					t.Error(err)
				}
			}()
			sent := bytes.Repeat([]byte("bytes. "), 100_000)
			go func() {
				_, err := c.Write(sent)
				if err = errors.Join(err, c.CloseWrite()); err != nil {
					t.Error(err)
				}
			}()
			got, err := io.ReadAll(c)
			must(t, err)
			if !bytes.Equal(got, sent) {
				t.Errorf("%d bytes came back of %d, or others", len(got), len(sent))
			}
		})
	}
}

// TestErrors holds that errors are those that package net has.
func TestErrors(t *testing.T) {
	ctx := context.Background()
	type end = func(c, s *Conn) error
	read := func(c *Conn) error { _, err := c.Read(make([]byte, 10)); return err }
	write := func(c *Conn) error { _, err := c.Write([]byte("x")); return err }
	for _, c := range []struct {
		name string
		do   end
		want error
	}{
		{"read deadline", func(c, _ *Conn) error {
			return errors.Join(c.SetReadDeadline(time.Now().Add(time.Millisecond)), read(c))
		}, os.ErrDeadlineExceeded},
		{"read deadline in the past", func(c, _ *Conn) error {
			return errors.Join(c.SetDeadline(time.Unix(1, 0)), read(c))
		}, os.ErrDeadlineExceeded},
		{"write deadline", func(c, _ *Conn) error {
			must(t, c.SetWriteDeadline(time.Now().Add(time.Millisecond)))
			_, err := c.Write(make([]byte, 64<<20))
			return err
		}, os.ErrDeadlineExceeded},
		{"read after Close", func(c, _ *Conn) error { return errors.Join(c.Close(), read(c)) }, net.ErrClosed},
		{"write after Close", func(c, _ *Conn) error { return errors.Join(c.Close(), write(c)) }, net.ErrClosed},
		{"CloseWrite after Close", func(c, _ *Conn) error { return errors.Join(c.Close(), c.CloseWrite()) },
			net.ErrClosed},
		{"read after Reset", func(c, _ *Conn) error { return errors.Join(c.Reset(), read(c)) }, net.ErrClosed},
		{"read while Close comes", func(c, _ *Conn) error {
			go c.Close()
			return read(c)
		}, net.ErrClosed},
		{"read while the stack ends", func(c, _ *Conn) error {
			go c.stack.Close()
			return read(c)
		}, net.ErrClosed},
		{"write after CloseWrite", func(c, _ *Conn) error { return errors.Join(c.CloseWrite(), write(c)) },
			syscall.EPIPE},
		{"the peer's FIN", func(c, s *Conn) error { return errors.Join(s.CloseWrite(), read(c)) }, io.EOF},
		{"the peer's reset", func(c, s *Conn) error { return errors.Join(s.Reset(), read(c)) }, syscall.ECONNRESET},
		{"read after a write has found the peer's reset", func(c, s *Conn) error {
			must(t, s.Reset())
			for {
				if err := write(c); err != nil {
					return errors.Join(read(c), read(c))
				}
			}
		}, syscall.ECONNRESET},
		{"the peer closes with bytes unread", func(c, s *Conn) error {
			must(t, write(c))
			<-s.readable
			return errors.Join(s.Close(), read(c))
		}, syscall.ECONNRESET},
		{"nobody listens", func(c, _ *Conn) error {
			_, err := c.stack.DialContext(ctx, "tcp", "192.0.2.2:1")
			return err
		}, syscall.ECONNREFUSED},
		{"dial with a context that has ended", func(c, _ *Conn) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			_, err := c.stack.DialContext(ctx, "tcp", "192.0.2.2:1")
			return err
		}, context.Canceled},
		{"dial after the stack's end", func(c, _ *Conn) error {
			must(t, c.stack.Close())
			_, err := c.stack.DialContext(ctx, "tcp", "192.0.2.2:1")
			return err
		}, net.ErrClosed},
		{"accept after Close", func(c, _ *Conn) error {
			l, err := c.stack.Listen(ctx, "tcp", ":0")
			must(t, errors.Join(err, l.Close()))
			_, err = l.Accept()
			return err
		}, net.ErrClosed},
		{"accept while Close comes", func(c, _ *Conn) error {
			l, err := c.stack.Listen(ctx, "tcp", ":0")
			must(t, err)
			go l.Close()
			_, err = l.Accept()
			return err
		}, net.ErrClosed},
		{"a port in use", func(c, _ *Conn) error {
			l, err := c.stack.Listen(ctx, "tcp", ":99")
			must(t, err)
			defer l.Close()
			_, err = c.stack.Listen(ctx, "tcp", ":99")
			return err
		}, syscall.EADDRINUSE},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, in := connection(t, Config{}, Path{}, Path{})
			err := c.do(out, in)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v", err)
			}
			if _, ok := err.(*net.OpError); !ok && err != io.EOF && !isJoined(err) {
				t.Errorf("got a %T", err)
			}
			if other := otherEnd(c.want); errors.Is(err, other) {
				t.Errorf("%v is %v, too", err, other)
			}
			if out.RemoteAddr() == nil || in.RemoteAddr() == nil {
				t.Error("the peer's address is gone")
			}
		})
	}
}

func isJoined(err error) bool {
	_, ok := err.(interface{ Unwrap() []error })
	return ok
}

// otherEnd is an end that another must not be taken for.
func otherEnd(err error) error {
	if err == io.EOF {
		return net.ErrClosed
	}
	return io.EOF
}

// TestTimeouts holds that what comes too late is a net.Error and can be tried again.
func TestTimeouts(t *testing.T) {
	c, s := connection(t, Config{}, Path{}, Path{})
	must(t, c.SetReadDeadline(time.Now().Add(time.Millisecond)))
	_, err := c.Read(make([]byte, 1))
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Fatalf("got %v", err)
	}
	must(t, c.SetReadDeadline(time.Time{}))
	_, err = s.Write([]byte("x"))
	must(t, err)
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
}

// TestRoundTrip: the estimate of TCP's own is no less than what the path takes, on both ends.
func TestRoundTrip(t *testing.T) {
	path := Path{Delay: 5 * time.Millisecond}
	out, in := connection(t, Config{}, path, path)
	for _, c := range []struct{ from, to *Conn }{{out, in}, {in, out}} {
		_, err := c.from.Write([]byte("memory"))
		must(t, err)
		_, err = c.to.Read(make([]byte, 10))
		must(t, err)
	}
	for in.HasUnacked() {
		time.Sleep(time.Millisecond)
	}
	if a, b := out.RoundTrip(), in.RoundTrip(); a < 10*time.Millisecond || b < 10*time.Millisecond {
		t.Errorf("%v and %v", a, b)
	}
}
