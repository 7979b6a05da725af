package admission_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// untilGone returns how long the connection of a rejected peer is open, which sends for as long.
func untilGone(t *testing.T, rejected *iwarp.RejectError) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		if _, err := rejected.Conn.Write(make([]byte, 100)); err != nil {
			return time.Since(began).Round(10 * time.Millisecond) // it sends each millisecond
		}
		time.Sleep(time.Millisecond)
	}
}

// TestRejectDismisses: Reject does not wait. Our half is closed then, what the peer sends is dropped, and the
// connection is closed when the peer has closed its half, or has had the time to.
func TestRejectDismisses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for _, data := range []string{"", "not today"} {
			req, heard := r.comes(nil)
			began := time.Now()
			testrig.Must(t, req.Reject([]byte(data)))
			if took := time.Since(began); took != 0 {
				t.Errorf("Reject took %v", took)
			}
			rejected := r.hears(heard, data)
			if took := untilGone(t, rejected); took != farewell {
				t.Errorf("private data %q: the peer had %v", data, took)
			}
			if _, err := io.Copy(io.Discard, rejected.Conn); err == nil {
				t.Error("no RST for who does not close")
			}
		}
		req, heard := r.comes(nil)
		testrig.Must(t, req.Reject(nil))
		rejected := r.hears(heard, "")
		began := time.Now()
		if b, err := io.ReadAll(rejected.Conn); len(b) > 0 || err != nil || time.Since(began) != 0 {
			t.Errorf("got %q, %v after %v, want a FIN", b, err, time.Since(began))
		}
		testrig.Must(t, rejected.Conn.Close())
	})
}

// TestRejectDropsSoMuch: a peer that sends without end is not read for 5 s.
func TestRejectDropsSoMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		req, heard := r.comes(nil)
		testrig.Must(t, req.Reject(nil))
		conn := r.hears(heard, "").Conn
		if _, err := conn.Write(make([]byte, 2<<20)); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if _, err := conn.Write([]byte("more")); err == nil {
			t.Error("the connection is open after 2 MiB")
		}
	})
}

// TestDismissalsEnd: the end of the Listener ends what Reject has begun; Shutdown lets it go on within its context.
// After the end of the Listener the RNIC's holds in the same way.
func TestDismissalsEnd(t *testing.T) {
	for what, c := range map[string]struct {
		end  func(r *rig, ctx context.Context) error
		want time.Duration
	}{
		"Close":         {func(r *rig, _ context.Context) error { return r.ln.Close() }, 0},
		"RNIC.Close":    {func(r *rig, _ context.Context) error { return r.ln.RNIC().Close() }, 0},
		"Shutdown":      {func(r *rig, ctx context.Context) error { return r.ln.Shutdown(ctx) }, 2 * time.Second},
		"RNIC.Shutdown": {func(r *rig, ctx context.Context) error { return r.ln.RNIC().Shutdown(ctx) }, 2 * time.Second},
		"none":          {func(*rig, context.Context) error { return nil }, farewell},
		"RNIC.Shutdown after Close": {func(r *rig, ctx context.Context) error {
			return errors.Join(r.ln.Close(), r.ln.RNIC().Shutdown(ctx))
		}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			under := testrig.NewListener("server")
			r := &rig{T: t, under: under, ln: new(iwarp.ListenConfig).NewListener(under)}
			req, heard := r.comes(nil)
			testrig.Must(t, req.Reject([]byte("not today")))
			rejected := r.hears(heard, "not today")
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- c.end(r, ctx) }()
			if took := untilGone(t, rejected); took != c.want {
				t.Errorf("%s: the peer had %v, want %v", what, took, c.want)
			}
			testrig.Should(t, <-ended)
			_ = r.ln.Close()
		})
	}
}

// TestRejectAfterClose: a Request that Accept has returned can be rejected when the Listener has ended.
func TestRejectAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		req, heard := r.comes(nil)
		rnic := r.ln.RNIC()
		testrig.Must(t, r.ln.Close())
		testrig.Must(t, req.Reject(nil))
		rejected := r.hears(heard, "")
		time.AfterFunc(time.Second, func() { _ = rnic.Close() })
		if took := untilGone(t, rejected); took != time.Second {
			t.Errorf("the peer had %v", took)
		}
		r.ln = new(iwarp.ListenConfig).NewListener(testrig.NewListener("other")) // for the end of the test
	})
}

// TestRejectAfterCloseEnds: RNIC.Shutdown waits for a peer that was rejected when the Listener had ended, until its
// context ends, or RNIC.Close is called.
func TestRejectAfterCloseEnds(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, rnic *iwarp.RNIC) error{
		"the context": func(ctx context.Context, rnic *iwarp.RNIC) error { return rnic.Shutdown(ctx) },
		"RNIC.Close": func(ctx context.Context, rnic *iwarp.RNIC) error {
			context.AfterFunc(ctx, func() { _ = rnic.Close() })
			return rnic.Shutdown(context.Background())
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			under := testrig.NewListener("server")
			r := &rig{T: t, under: under, ln: new(iwarp.ListenConfig).NewListener(under)}
			req, heard := r.comes(nil)
			testrig.Must(t, r.ln.Close())
			testrig.Must(t, req.Reject(nil))
			rejected := r.hears(heard, "")
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- end(ctx, r.ln.RNIC()) }()
			if took := untilGone(t, rejected); took != 2*time.Second {
				t.Errorf("%s: the peer had %v", name, took)
			}
			testrig.Should(t, <-ended)
		})
	}
}

// TestManyDismissals: when more are rejected than are waited for, the first of them goes.
func TestManyDismissals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var all []net.Conn
		for range most + 1 {
			req, heard := r.comes(nil)
			testrig.Must(t, req.Reject(nil))
			all = append(all, r.hears(heard, "").Conn)
		}
		synctest.Wait()
		for i, conn := range all {
			if _, err := conn.Write([]byte("x")); (err == nil) != (i > 0) {
				t.Errorf("connection %d: %v", i, err)
			}
			_ = conn.Close()
		}
	})
}

// TestCloseDuringShutdown: RNIC.Close ends the waits of a Shutdown, and of a Rejecter, which nothing else bounds.
func TestCloseDuringShutdown(t *testing.T) {
	for name, wait := range map[string]func(r *rig, req *iwarp.Request) error{
		"Listener.Shutdown": func(r *rig, req *iwarp.Request) error {
			return errors.Join(req.Reject([]byte("not today")), r.ln.Shutdown(context.Background()))
		},
		"RNIC.Shutdown": func(r *rig, req *iwarp.Request) error {
			return errors.Join(req.Reject([]byte("not today")), r.ln.RNIC().Shutdown(context.Background()))
		},
		"RejectAndWait": func(r *rig, req *iwarp.Request) error { return r.door.RejectAndWait(req, []byte("not today")) },
	} {
		synctest.Test(t, func(t *testing.T) {
			under := testrig.NewListener("server")
			r := &rig{T: t, under: under, ln: new(iwarp.ListenConfig).NewListener(under)}
			req, heard := r.comes(nil)
			began, ended := time.Now(), make(chan error, 1)
			go func() { ended <- wait(r, req) }()
			conn := r.hears(heard, "not today").Conn
			time.Sleep(2 * time.Second)
			testrig.Must(t, r.ln.RNIC().Close())
			testrig.Should(t, <-ended)
			if took := time.Since(began); took != 2*time.Second {
				t.Errorf("%s: the peer had %v", name, took)
			}
			_ = conn.Close()
			_ = r.ln.Close()
		})
	}
}
