package iwarp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
)

// openFiles counts the descriptors of the process.
func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	rig.Must(t, err)
	return len(all)
}

// TestFailedDialHoldsNoDescriptor has Dials fail in every way, while their errors are kept. It also holds for servers
// that reject and go on.
func TestFailedDialHoldsNoDescriptor(t *testing.T) {
	no := errors.New("no")
	accepts := iwarp.AcceptConfig{}
	for how, c := range map[string]struct {
		dialer iwarp.Dialer
		serve  func(*iwarp.Request) error // nil: the peer speaks no MPA
	}{
		"rejected": {iwarp.Dialer{}, func(r *iwarp.Request) error { return r.Reject([]byte("no")) }},
		"refused by Verify": {iwarp.Dialer{Verify: func(mpa.Negotiated) error { return no }},
			func(r *iwarp.Request) error {
				qp, err := r.Accept(t.Context(), accepts)
				if err == nil {
					err = qp.Abort()
				}
				return err
			}},
		"not answered":   {iwarp.Dialer{Timeout: 5 * time.Millisecond}, nil},
		"Prepare fails":  {iwarp.Dialer{Prepare: func(*iwarp.QP) error { return no }}, nil},
		"Wrap fails":     {iwarp.Dialer{Wrap: func(net.Conn) (net.Conn, error) { return nil, no }}, nil},
		"request closed": {iwarp.Dialer{}, (*iwarp.Request).Close},
	} {
		t.Run(how, func(t *testing.T) {
			deaf, err := net.Listen("tcp", "127.0.0.1:0")
			rig.Must(t, err)
			defer deaf.Close()
			go func() {
				for c, err := deaf.Accept(); err == nil; c, err = deaf.Accept() {
					go func() { _, _ = io.Copy(io.Discard, c); c.Close() }()
				}
			}()
			ln := rig.Listen(t, iwarp.ListenConfig{})
			go func() {
				for r, err := ln.Accept(context.Background()); err == nil; r, err = ln.Accept(context.Background()) {
					_ = c.serve(r)
				}
			}()
			addr := deaf.Addr()
			if c.serve != nil {
				addr = ln.Addr()
			}
			before := openFiles(t)
			var kept []error
			for range 30 {
				_, err := c.dialer.Dial(rig.Within(t), "tcp", addr.String())
				if err == nil {
					t.Fatal("it did not fail")
				}
				kept = append(kept, err)
			}
			rig.Until(t, func() bool { return openFiles(t) < before+len(kept)/2 }, "the descriptors")
		})
	}
}

// TestRejectWithoutReset: a peer that has sent more than its Request reads the Reply, and then a FIN.
func TestRejectWithoutReset(t *testing.T) {
	ln := rig.Listen(t, iwarp.ListenConfig{})
	for range 20 {
		p, req := rig.Ask(t, ln, append(rig.Frame(rig.Request(2)), make([]byte, 100<<10)...))
		rig.Must(t, req.Reject(nil))
		if f := p.WantFrame(mpa.KeyReply); !f.R() {
			t.Errorf("got %+v", f)
		}
		if b := p.WantFIN(); len(b) > 0 {
			t.Errorf("got %q", b)
		}
		rig.Must(t, p.Conn.Close())
	}
}
