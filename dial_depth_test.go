package iwarp_test

import (
	"context"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// A sounding is a connection that notes which functions of the module are on the stack of its first Write,
// innermost first.
type sounding struct {
	net.Conn
	once  sync.Once
	stack []string
}

func (s *sounding) Write(b []byte) (int, error) {
	s.once.Do(func() {
		pcs := make([]uintptr, 100)
		frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
		for f, more := frames.Next(); more; f, more = frames.Next() {
			ours, test := strings.HasPrefix(f.Function, "github.com/goiwarp/iwarp"),
				strings.Contains(f.Function, "iwarp_test.")
			if ours && !test {
				s.stack = append(s.stack, f.Function)
			}
		}
	})
	return s.Conn.Write(b)
}

// A soundingStack is the system's TCP, whose connections are soundings.
type soundingStack struct {
	dialed *sounding
	net.ListenConfig
}

func (s *soundingStack) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	s.dialed.Conn = c
	return s.dialed, nil
}

// TestStartupIsShallow: from a call that connects, or accepts, to the write of its first startup frame, few
// functions of ours are on the stack. Dial alone has one more than a Dialer's: itself.
func TestStartupIsShallow(t *testing.T) {
	const most = 9
	wrap := func(s *sounding) func(net.Conn) (net.Conn, error) {
		return func(c net.Conn) (net.Conn, error) { s.Conn = c; return s, nil }
	}
	for _, c := range []struct {
		name string
		call func(s *sounding, addr string) (*iwarp.QP, error)
	}{
		{"Dialer.Dial", func(s *sounding, addr string) (*iwarp.QP, error) {
			return (&iwarp.Dialer{Wrap: wrap(s)}).Dial(rig.Within(t), "tcp", addr)
		}},
		{"Dialer.Dial over a Stack", func(s *sounding, addr string) (*iwarp.QP, error) {
			return (&iwarp.Dialer{Stack: &soundingStack{dialed: s}}).Dial(rig.Within(t), "tcp", addr)
		}},
		{"Dialer.DialQP", func(s *sounding, addr string) (*iwarp.QP, error) {
			qp := rig.NewQP(t, rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{})), iwarp.QPConfig{})
			return qp, (&iwarp.Dialer{Wrap: wrap(s)}).DialQP(rig.Within(t), qp, "tcp", addr)
		}},
		{"Dialer.Initiate", func(s *sounding, addr string) (*iwarp.QP, error) {
			s.Conn = rig.DialTCP(t, addr)
			return new(iwarp.Dialer).Initiate(rig.Within(t), s, nil)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			answers := new(sounding)
			ln := new(iwarp.ListenConfig).NewListener(wrapping{rig.ListenTCP(t), wrap(answers)})
			defer ln.Close()
			accepted := rig.DialInBackground(t, func() error {
				req, err := ln.Accept(rig.Within(t))
				if err != nil {
					return err
				}
				qp, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{})
				if err == nil {
					t.Cleanup(func() { _ = qp.Abort() })
				}
				return err
			})
			asks := new(sounding)
			qp, err := c.call(asks, ln.Addr().String())
			rig.Must(t, err)
			defer qp.Abort()
			rig.Must(t, <-accepted)
			for _, s := range []*sounding{asks, answers} {
				if n := len(s.stack); n == 0 || n >= most {
					t.Errorf("%d functions of ours, at most %d:\n%s", n, most-1, strings.Join(s.stack, "\n"))
				}
			}
		})
	}
}

// A wrapping Listener passes its connections through a function.
type wrapping struct {
	net.Listener
	wrap func(net.Conn) (net.Conn, error)
}

func (w wrapping) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return w.wrap(c)
}
