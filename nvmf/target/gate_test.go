package target_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/testrig"
	. "github.com/goiwarp/iwarp/nvmf/target"
)

// A gated connection writes nothing while its gate is shut.
type gated struct {
	conn
	gate *gate
}

type gate struct{ shut atomic.Pointer[chan struct{}] }

// close shuts the gate, until the function is called that it returns.
func (g *gate) close() (open func()) {
	wait := make(chan struct{})
	g.shut.Store(&wait)
	return func() { g.shut.Store(nil); close(wait) }
}

func (g gated) Write(b []byte) (int, error) {
	if wait := g.gate.shut.Load(); wait != nil {
		<-*wait
	}
	return g.conn.Write(b)
}

// newGate is a rig whose Target writes through a gate.
func newGate(t testing.TB) (*rig, *gate) {
	r, g := newRig(t, nil), new(gate)
	r.wrap = func(host, target *testrig.Conn) (a, b conn) { return host, gated{target, g} }
	return r, g
}

// TestRepliesWait has the network take nothing, and as many commands carried out as there are slots for: each is
// answered when it does.
func TestRepliesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g := newGate(t)
		w := r.io(r.admin(), 1, 8)
		synctest.Wait()
		open := g.close()
		var all []chan completion
		for range 2 {
			for range 8 {
				all = append(all, w.send(blocks(0, 1, w.keyed(0, 512)).Command(capsule.OpRead), nil))
			}
			synctest.Wait()
		}
		open()
		for i, c := range all {
			select {
			case got := <-c:
				if got.Status != capsule.Success {
					t.Errorf("command %d: %v", i, got)
				}
			case <-w.over:
				t.Fatalf("command %d: %v", i, w.qp.Err())
			}
		}
	})
}

// TestShutdownAmidAccept has a Target shut down while a host is being accepted: its connection is ended as the others
// are.
func TestShutdownAmidAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g := newGate(t)
		open := g.close()
		dialed := make(chan *wire, 1)
		go func() {
			w, _ := r.try(requestOf(0, 32), offer)
			dialed <- w
		}()
		synctest.Wait()
		down := make(chan error, 1)
		go func() { down <- r.target.Shutdown(context.Background()) }()
		synctest.Wait()
		if len(down) != 0 {
			t.Error("shut down with a host that is being accepted")
		}
		began := time.Now()
		open()
		must(t, <-down)
		if took := time.Since(began); took > time.Second { // not when a connection without a Connect is ended
			t.Errorf("shut down after %v", took)
		}
		if w := <-dialed; w != nil {
			<-w.over
		}
	})
}

// TestServeAnswers has Serve end while a host is being refused: it returns when the host has heard that, and has told
// of it.
func TestServeAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(testrig.Buffer)
		target, err := New(Config{NQN: nqn, Logger: slog.New(slog.NewTextHandler(j, nil))})
		must(t, err)
		under := testrig.NewListener("target")
		ln := new(iwarp.ListenConfig).NewListener(under)
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- target.Serve(ctx, ln) }()
		ours, theirs := testrig.Pipe("host", "target")
		must(t, under.Offer(t.Context(), theirs))
		o := offer
		o.PrivateData, o.ClientServer = requestOf(0, 33), true
		_, err = (&iwarp.Dialer{MPA: o}).Initiate(t.Context(), ours, nil)
		var rejected *iwarp.RejectError
		if !errors.As(err, &rejected) {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		early := len(served) != 0 && !strings.Contains(j.String(), "connection refused")
		_ = rejected.Conn.Close()
		if err := <-served; !errors.Is(err, context.Canceled) || early ||
			!strings.Contains(j.String(), "connection refused") {
			t.Errorf("%v, early: %t, logged %s", err, early, j)
		}
		must(t, errors.Join(target.Shutdown(t.Context()), ln.Close(), ln.RNIC().Close()))
	})
}
