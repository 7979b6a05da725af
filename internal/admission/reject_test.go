package admission_test

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/admission"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// What a Rejecter promises: so long, for so many.
const (
	patience = time.Second
	farewell = 5 * time.Second
	most     = 64
)

func TestMain(m *testing.M) { testrig.Main(m) }

// A rig is a Listener, to whose requests the Rejecter says no.
type rig struct {
	*testing.T
	under *testrig.Listener
	ln    *iwarp.Listener
	door  admission.Rejecter
}

func newRig(t *testing.T) *rig {
	under := testrig.NewListener("server")
	r := &rig{T: t, under: under, ln: new(iwarp.ListenConfig).NewListener(under)}
	t.Cleanup(func() { testrig.Should(t, r.ln.Close()) })
	return r
}

// comes has a peer ask for a connection. What becomes of that is sent.
func (r *rig) comes(preset *iwarp.Preset) (*iwarp.Request, chan error) {
	r.Helper()
	ours, theirs := testrig.Pipe("peer", "server")
	testrig.Must(r, r.under.Offer(r.Context(), theirs))
	heard := make(chan error, 1)
	go func() {
		_, err := (&iwarp.Dialer{Preset: preset}).Initiate(r.Context(), ours, nil)
		heard <- err
	}()
	req, err := r.ln.Accept(r.Context())
	testrig.Must(r, err)
	return req, heard
}

// hears wants a peer to have been rejected with private data.
func (r *rig) hears(heard chan error, privateData string) *iwarp.RejectError {
	r.Helper()
	err := <-heard
	rejected := (*iwarp.RejectError)(nil)
	if !errors.As(err, &rejected) || string(rejected.PrivateData) != privateData {
		r.Fatalf("got %v, want %q", err, privateData)
	}
	return rejected
}

// TestWaits: the peer closes first, or has a second to do so, and five to close at all.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for _, closes := range []bool{true, false} {
			req, heard := r.comes(nil)
			began, done := time.Now(), make(chan error, 1)
			go func() { done <- r.door.RejectAndWait(req, []byte("not today")) }()
			rejected := r.hears(heard, "not today")
			synctest.Wait()
			if len(done) != 0 {
				t.Error("the peer was not waited for")
			}
			want := farewell
			if closes {
				want = patience / 4
				time.Sleep(want)
				testrig.Should(t, rejected.Conn.Close())
			} else if _, err := rejected.Conn.Read(make([]byte, 1)); err != io.EOF || time.Since(began) != patience {
				t.Errorf("our half was closed after %v: %v", time.Since(began), err)
			}
			testrig.Should(t, <-done)
			if got := time.Since(began); got != want {
				t.Errorf("closes %v: returned after %v, want %v", closes, got, want)
			}
			if _, err := rejected.Conn.Read(make([]byte, 1)); err == nil || time.Since(began) != want {
				t.Errorf("closes %v: the connection is open after %v: %v", closes, time.Since(began), err)
			}
			_ = rejected.Conn.Close()
		}
	})
}

// TestWaitsForSome: one more than are waited for at a time is rejected with the reason, and its connection closed at
// once; and so is who gets none.
func TestWaitsForSome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		began := time.Now()
		refuse := func(privateData string) {
			req, heard := r.comes(nil)
			testrig.Should(t, r.door.RejectAndWait(req, []byte(privateData)))
			_ = r.hears(heard, privateData).Conn.Close()
		}
		refuse("")
		var waited atomic.Int32
		for range most {
			req, heard := r.comes(nil)
			wait, err := r.door.BeginReject(req, []byte("not today"))
			testrig.Must(t, err)
			conn := r.hears(heard, "not today").Conn
			go func() { wait(); waited.Add(1); _ = conn.Close() }()
		}
		synctest.Wait()
		if n := waited.Load(); n != 0 {
			t.Errorf("%d of %d were not waited for", n, most)
		}
		refuse("nor you")
		if got := time.Since(began); got != 0 {
			t.Errorf("waited for %v", got)
		}
		time.Sleep(farewell)
		synctest.Wait()
		req, heard := r.comes(nil)
		go func() { time.Sleep(patience / 4); _ = r.hears(heard, "nor now").Conn.Close() }()
		testrig.Should(t, r.door.RejectAndWait(req, []byte("nor now")))
		if got := time.Since(began); got != farewell+patience/4 {
			t.Errorf("when all have gone, the next was waited for until %v", got)
		}
	})
}

// TestUntold: where there is no room for the reason, the peer is rejected without it; one that has gone is reported
// too.
func TestUntold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		long := []byte(strings.Repeat("a", 600))
		req, heard := r.comes(nil)
		err := r.door.RejectBecause(req, long, errors.New("full"))
		rejected := (*admission.RejectedError)(nil)
		if !errors.As(err, &rejected) || rejected.Untold == nil || !errors.Is(err, iwarp.ErrInvalid) ||
			!strings.HasPrefix(err.Error(), "full; the peer was not told: ") {
			t.Errorf("got %v", err)
		}
		testrig.Should(t, r.hears(heard, "").Conn.Close())
		req, heard = r.comes(nil)
		err = r.door.RejectBecause(req, nil, errors.New("full"))
		if !errors.As(err, &rejected) || rejected.Untold != nil || err.Error() != "full" {
			t.Errorf("got %v", err)
		}
		testrig.Should(t, r.hears(heard, "").Conn.Close())
		if err := r.door.RejectAndWait(req, []byte("again")); !errors.Is(err, iwarp.ErrBadState) {
			t.Errorf("one that has been answered: %v", err)
		}
	})
}

// TestFailuresHoldNoPlace: a peer that could not be rejected is not one of those that are waited for.
func TestFailuresHoldNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		answered, heard := r.comes(nil)
		testrig.Must(t, answered.Reject(nil))
		testrig.Should(t, r.hears(heard, "").Conn.Close())
		for range most {
			if err := r.door.RejectAndWait(answered, []byte("again")); !errors.Is(err, iwarp.ErrBadState) {
				t.Fatal(err)
			}
		}
		req, heard := r.comes(nil)
		began := time.Now()
		go func() { time.Sleep(patience / 4); _ = r.hears(heard, "not today").Conn.Close() }()
		testrig.Should(t, r.door.RejectAndWait(req, []byte("not today")))
		if got := time.Since(began); got != patience/4 {
			t.Errorf("the peer was waited for until %v", got)
		}
	})
}

// TestRejectLetsPeerCloseFirst: after private data our half is open for a second, and else it is closed at once.
func TestRejectLetsPeerCloseFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for data, want := range map[string]time.Duration{"": 0, "not today": patience} {
			req, heard := r.comes(nil)
			began := time.Now()
			testrig.Must(t, req.Reject([]byte(data)))
			conn := r.hears(heard, data).Conn
			if _, err := conn.Read(make([]byte, 1)); err != io.EOF || time.Since(began) != want {
				t.Errorf("%q: our half was closed after %v: %v", data, time.Since(began), err)
			}
			testrig.Should(t, conn.Close())
		}
	})
}
