package usertcp

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestLost: whoever has closed learns whether the peer has everything, or why not, after the peer's FIN too.
func TestLost(t *testing.T) {
	for name, c := range map[string]struct {
		after bool // the peer's FIN
		end   func(a *Stack, s *Conn) error
		want  error
	}{
		"everything":                  {false, readAll, nil},
		"everything, after a FIN":     {true, readAll, nil},
		"RST":                         {false, func(_ *Stack, s *Conn) error { return s.Reset() }, syscall.ECONNRESET},
		"RST after a FIN":             {true, func(_ *Stack, s *Conn) error { return s.Reset() }, syscall.ECONNRESET},
		"the Stack ends":              {false, func(a *Stack, _ *Conn) error { return a.Close() }, net.ErrClosed},
		"the Stack ends, after a FIN": {true, func(a *Stack, _ *Conn) error { return a.Close() }, net.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := Path{Delay: 5 * time.Millisecond}
			a, b := stacks(t, Config{}, path, path)
			out, in := connect(t, a, b, "192.0.2.2:7174")
			if c.after {
				must(t, in.CloseWrite())
				_, err := io.Copy(io.Discard, out)
				must(t, err)
			}
			sent := make([]byte, 1<<20) // more than the peer's window has room for, while it does not read
			go func() { _, _ = out.Write(sent) }()
			before := out.AckProgress()
			for out.AckProgress() == before {
				time.Sleep(time.Millisecond)
			}
			if err := out.LossError(); err != nil {
				t.Errorf("before its end: %v", err)
			}
			if !out.HasUnacked() {
				t.Error("the peer lacks nothing of what it has no room for")
			}
			must(t, out.Close())
			must(t, c.end(a, in))
			<-out.PeerAcked()
			if lacks := out.HasUnacked(); lacks != (c.want != nil) {
				t.Errorf("the peer lacks something: %t", lacks)
			}
			for range 2 {
				if err := out.LossError(); !errors.Is(err, c.want) || c.want == nil && err != nil {
					t.Errorf("got %v, want %v", err, c.want)
				}
			}
		})
	}
}

// TestLostInSilence: a peer that acknowledges nothing more for CloseTimeout is lost by that, unless it has acknowledged
// everything but our FIN, as it may have ended then. Of a connection that the Stack has lost sight of nobody knows
// that.
func TestLostInSilence(t *testing.T) {
	for name, c := range map[string]struct {
		unacked []byte
		blank   bool
		want    error
	}{
		"a byte":  {[]byte("x"), false, syscall.ETIMEDOUT},
		"our FIN": {nil, false, nil},
		"unknown": {nil, true, syscall.ETIMEDOUT},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b, link := watchedStacks(t, Config{CloseTimeout: time.Millisecond,
				MaxRTO: 200 * time.Millisecond}, Path{}, Path{})
			out, in := connect(t, a, b, "192.0.2.2:7174")
			_, err := out.Write([]byte("y"))
			must(t, err)
			_, err = in.Read(make([]byte, 1))
			must(t, err)
			for ctx := testrig.Within(t); out.HasUnacked(); time.Sleep(time.Millisecond) {
				must(t, ctx.Err())
			}
			link.deaf.Store(true)
			out.flow.mu.Lock()
			out.flow.blank = c.blank
			out.flow.mu.Unlock()
			_, err = out.Write(c.unacked)
			must(t, errors.Join(err, out.Close()))
			<-out.PeerAcked()
			for range 2 {
				if err := out.LossError(); !errors.Is(err, c.want) || c.want == nil && err != nil ||
					out.HasUnacked() != (c.want != nil) {
					t.Errorf("got %v, lacks something: %t", err, out.HasUnacked())
				}
			}
		})
	}
}

// A broken is an endpoint that tells why it has ended.
type broken struct {
	tcpip.Endpoint
	why tcpip.Error
}

func (e broken) LastError() tcpip.Error { return e.why }

// TestWhyLost: gVisor tells once why a connection was lost, and it may have told another call.
func TestWhyLost(t *testing.T) {
	for _, tt := range []struct {
		why  tcpip.Error
		want error
	}{
		{&tcpip.ErrTimeout{}, syscall.ETIMEDOUT}, {&tcpip.ErrHostUnreachable{}, syscall.EHOSTUNREACH},
		{nil, syscall.ECONNRESET},
	} {
		c := &Conn{stack: &Stack{closed: make(chan struct{})}, ep: broken{why: tt.why}}
		c.end.last = tcp.StateError
		for range 2 {
			if err := c.whyLost(); !errors.Is(err, tt.want) {
				t.Errorf("%v: %v, want %v", tt.why, err, tt.want)
			}
			c.ep = broken{}
		}
	}
}

func readAll(_ *Stack, s *Conn) error {
	_, err := io.Copy(io.Discard, s)
	_ = s.CloseWrite() // it may have before
	return err
}

// TestLacks: what the peer lacks of what was written is known to the byte, and our FIN is none of it.
func TestLacks(t *testing.T) {
	p, c, _ := play(t)
	first, written := p.ack, 100
	_, err := c.Write(make([]byte, written))
	must(t, err)
	must(t, c.CloseWrite())
	for s := p.next(); !s.has(header.TCPFlagFin); s = p.next() {
	}
	for _, acked := range []int{0, written - 1, written, written + 1} {
		p.ack = first + uint32(acked)
		p.sends(nil)
		for ctx := testrig.Within(t); c.AckProgress() != p.ack; time.Sleep(time.Millisecond) {
			must(t, ctx.Err())
		}
		if lacks := c.HasUnacked(); lacks != (acked < written) {
			t.Errorf("%d of %d bytes are acknowledged, and the peer lacks something: %t", acked, written, lacks)
		}
	}
}

// TestLacksUnknown: of a connection that the Stack has lost sight of, nothing is known to be lacking, or unsent.
func TestLacksUnknown(t *testing.T) {
	for _, f := range []*flow{nil, blankFlow(ends{})} {
		c := &Conn{flow: f}
		c.end.init()
		c.written.Store(100)
		if c.HasUnacked() || c.Unsent() {
			t.Errorf("something, with %+v", f)
		}
	}
}
