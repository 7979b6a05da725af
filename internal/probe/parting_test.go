package probe_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/internal/peersim"
	"github.com/goiwarp/iwarp/internal/probe"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// A watched connection is the peer's, and remembers what came and left, in order.
type watched struct {
	*testrig.Conn
	moments []moment
}

// A moment is when bytes came or left, or a FIN, which has none.
type moment struct {
	at    time.Time
	left  bool
	bytes []byte
}

func (w *watched) note(left bool, data []byte) {
	w.moments = append(w.moments, moment{time.Now(), left, bytes.Clone(data)})
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if n > 0 || errors.Is(err, io.EOF) {
		w.note(false, b[:n])
	}
	return n, err
}

func (w *watched) Write(b []byte) (int, error) {
	w.note(true, b)
	return w.Conn.Write(b)
}

func (w *watched) CloseWrite() error {
	w.note(true, nil)
	return w.Conn.CloseWrite()
}

func (w *watched) Close() error {
	w.note(true, nil)
	return w.Conn.Close()
}

// peerToPeer reports whether a startup frame agrees to the peer-to-peer model.
func peerToPeer(b []byte) bool {
	f, err := mpa.ParseStartup(b)
	if err != nil {
		return false
	}
	e, ok := f.Enhanced()
	return ok && e.A
}

// agreed returns what passed from the Reply on, if the peer has answered a Request in the peer-to-peer model.
func (w *watched) agreed() []moment {
	i := slices.IndexFunc(w.moments, func(m moment) bool { return m.left })
	if i < 0 || !peerToPeer(w.moments[i].bytes) {
		return nil
	}
	return w.moments[i:]
}

// aWhile is how long docs/interop.md has the probe wait around the RTR indication.
const aWhile = 50 * time.Millisecond

// wantWaits wants the probe to have waited before each FPDU and before its FIN, except after an answer to an FPDU;
// and no FIN right after the Reply.
func wantWaits(t *testing.T, who string, agreed []moment) {
	t.Helper()
	for i, m := range agreed[1:] {
		before := agreed[i]
		switch gap := m.at.Sub(before.at); {
		case m.left, before.left && i > 0:
		case len(m.bytes) == 0 && i == 0:
			t.Errorf("%s: a FIN %v after the Reply, and no RTR indication", who, gap)
		case gap < aWhile:
			t.Errorf("%s: %d bytes came %v after what was before them", who, len(m.bytes), gap)
		}
	}
}

// watching asks a peer, and returns its connections.
func watching(t *testing.T, play func(c net.Conn, interrupt func())) (all []*watched, err error) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		var playing sync.WaitGroup
		defer playing.Wait()
		_, err = probe.Run(ctx, probe.Config{Extensions: true, Dial: func(context.Context) (net.Conn, error) {
			ours, theirs := testrig.Pipe("probe", "peer")
			w := &watched{Conn: theirs}
			all = append(all, w)
			playing.Go(func() {
				defer w.Close()
				play(w, interrupt)
			})
			return ours, nil
		}})
	})
	return all, err
}

// TestWaitsAroundRTR: each question in the peer-to-peer model waits before the RTR indication and after it, whatever
// the peer's consumer answers. Without that a FIN may overtake what siw does at the indication.
func TestWaitsAroundRTR(t *testing.T) {
	for _, b := range peers.All() {
		for _, consumer := range []peersim.Consumer{{}, {Reject: true}, {NoReads: true}} {
			all, err := watching(t, func(c net.Conn, _ func()) { playing(b, consumer, func(error) {})(c) })
			testrig.Must(t, err)
			n := 0
			for _, w := range all {
				if agreed := w.agreed(); agreed != nil {
					n++
					wantWaits(t, b.Name, agreed)
				}
			}
			if want := b.Highest >= 2; want != (n > 10) {
				t.Errorf("%s: %d questions in the peer-to-peer model", b.Name, n)
			}
		}
	}
}

// TestWaitsAroundRTRMute: so it is where the peer takes what comes, and never answers an FPDU, or speaks before it may.
func TestWaitsAroundRTRMute(t *testing.T) {
	for _, early := range [][]byte{nil, make([]byte, 24)} {
		all, err := watching(t, func(c net.Conn, _ func()) { mute(c, early) })
		testrig.Must(t, err)
		n := 0
		for _, w := range all {
			if agreed := w.agreed(); agreed != nil {
				n++
				wantFIN(t, agreed)
			}
		}
		if n < 10 {
			t.Errorf("%d questions in the peer-to-peer model", n)
		}
	}
}

// wantFIN wants an RTR indication, and a FIN a while after it, of a peer that has answered no FPDU.
func wantFIN(t *testing.T, agreed []moment) {
	t.Helper()
	came := slices.DeleteFunc(slices.Clone(agreed), func(m moment) bool { return m.left })
	if n := len(came); n < 2 || len(came[n-1].bytes) > 0 || came[n-1].at.Sub(came[n-2].at) < aWhile {
		t.Errorf("after the Reply at %v: %v", agreed[0].at, came)
	}
}

// mute accepts a Request as it is, says what it may not say then, and listens. It resets a connection whose Request
// has an FPDU behind it.
func mute(c net.Conn, early []byte) {
	b := make([]byte, 4096)
	n, err := c.Read(b)
	if f, bad := mpa.ParseStartup(b[:n]); err == nil && bad == nil {
		if len(f) < n {
			return
		}
		fields := f.Fields()
		fields.Key = mpa.KeyReply
		_, _ = c.Write(startup(fields))
		if len(early) > 0 {
			_, _ = c.Write(early)
		}
	}
	for err == nil {
		_, err = c.Read(b)
	}
}

// TestWaitsAroundRTRInterrupted: nor does an interrupt leave out the RTR indication, be it before the Reply or after
// it.
func TestWaitsAroundRTRInterrupted(t *testing.T) {
	for _, before := range []bool{true, false} {
		all, err := watching(t, func(c net.Conn, interrupt func()) {
			b := make([]byte, 4096)
			n, err := c.Read(b)
			asked := peerToPeer(b[:n])
			if asked && before {
				interrupt()
				time.Sleep(aWhile)
			}
			if f, bad := mpa.ParseStartup(b[:n]); err == nil && bad == nil {
				fields := f.Fields()
				fields.Key = mpa.KeyReply
				_, _ = c.Write(startup(fields))
			}
			if asked && !before {
				interrupt()
			}
			for err == nil {
				_, err = c.Read(b)
			}
		})
		agreed := all[len(all)-1].agreed()
		if !errors.Is(err, context.Canceled) || agreed == nil {
			t.Fatalf("%v, %d connections", err, len(all))
		}
		wantFIN(t, agreed)
	}
}
