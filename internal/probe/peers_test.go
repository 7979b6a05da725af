package probe_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/peersim"
	"github.com/goiwarp/iwarp/internal/probe"
	"github.com/goiwarp/iwarp/mpa"
)

// A wire is one end of a pipe that can be reset. A write of the other end is one
// segment.
type wire struct {
	net.Conn
	broken *atomic.Bool // of both ends
	number int          // of the connection, from 0
}

func newWire() (a, b *wire) {
	broken := new(atomic.Bool)
	x, y := net.Pipe()
	return &wire{Conn: x, broken: broken}, &wire{Conn: y, broken: broken}
}

func (w *wire) Reset() error {
	w.broken.Store(true)
	return w.Close()
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	return n, w.cause(err)
}

func (w *wire) Write(b []byte) (int, error) {
	n, err := w.Conn.Write(b)
	return n, w.cause(err)
}

func (w *wire) cause(err error) error {
	if err != nil && w.broken.Load() {
		return &net.OpError{Op: "read", Net: "pipe", Err: syscall.ECONNRESET}
	}
	return err
}

// probing asks a peer whose end of each connection is played by a function, in virtual
// time.
func probing(t *testing.T, cfg probe.Config, play func(net.Conn)) (r *probe.Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var peers sync.WaitGroup
		defer peers.Wait()
		cfg.Addr = "peer:1"
		dialed := 0
		cfg.Dial = func(context.Context) (net.Conn, error) {
			ours, theirs := newWire()
			theirs.number = dialed
			dialed++
			peers.Go(func() {
				defer theirs.Close()
				play(theirs)
			})
			return ours, nil
		}
		var err error
		if r, err = probe.Run(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	})
	return r
}

// playing is what a peer does on a connection: it accepts what it can, and goes on
// until the other end has had enough. Each error is told to ended.
func playing(b peersim.Behaviour, c peersim.Consumer, ended func(error)) func(net.Conn) {
	return func(conn net.Conn) {
		s, err := b.Respond(conn, c)
		for err == nil {
			_, err = s.Receive()
		}
		ended(err)
	}
}

const (
	sendsMarkers = "asks for none, sends them if asked"
	insists      = "wants them (C=1) even if the Request does not"
)

// known is what each peer of peersim must be found to be.
var known = map[string]struct {
	findings
	glued, inTwo, patience string
	limits                 *probe.Limits
}{
	"siw": {
		findings: findings{
			Dialects: []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044}, Kind: mpa.KindNonPermissive,
			Markers: "asks for none, rejects a Request that does (M=1)", CRC: "does without if the Request wants none (C=0)",
			RTR:         []string{"write", "read", "write", "write", "write"},
			Depths:      []string{"128/0", "128/1", "128/16", "128/128", "128/128"},
			PrivateData: probe.PrivateData{Most: 252, Allowed: 508, Over: probe.Reset}, Preset: "siw",
		},
		glued: "reset", inTwo: "accepted", patience: "closed after 5s",
		limits: &probe.Limits{IRD: "128, whatever our ORD is", ORD: "our IRD, 128 at most", Unnegotiated: "0x3FFF is taken for a number"},
	},
	"cxgb4": {
		findings: findings{
			Dialects: []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044}, Kind: mpa.KindNonPermissive, Markers: sendsMarkers, CRC: insists,
			RTR:         []string{"read", "read", "read", "read", "read"},
			Depths:      []string{"32/0", "32/1", "32/16", "32/32", "32/32"},
			PrivateData: probe.PrivateData{Most: 252, Allowed: 508, Over: probe.Reset}, Preset: "cxgb4",
		},
		glued: "reset", inTwo: "accepted", patience: "closed after 1m0s",
		limits: &probe.Limits{IRD: "32, whatever our ORD is", ORD: "our IRD, 32 at most", Unnegotiated: "0x3FFF is taken for a number"},
	},
	"freebsd": {
		findings: findings{
			Dialects: []mpa.Dialect{mpa.DialectRFC5044}, Kind: mpa.KindNonPermissive, Markers: sendsMarkers, CRC: insists,
			PrivateData: probe.PrivateData{Most: 256, Allowed: 512, Over: probe.Reset}, Preset: "freebsd",
		},
		glued: "reset", inTwo: "accepted", patience: "closed after 1m0s",
	},
	"irdma": {
		findings: findings{
			Dialects: []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044}, Kind: mpa.KindNonPermissive, Markers: sendsMarkers, CRC: insists,
			RTR:         []string{"write", "read", "read", "read", "read"},
			Depths:      []string{"32/0", "32/1", "32/16", "32/32", none + "/" + none},
			PrivateData: probe.PrivateData{Most: 508, Allowed: 508}, Preset: "irdma",
		},
		glued: "accepted, answered", inTwo: "reset", patience: "silent after 1m30s",
		limits: &probe.Limits{IRD: "32, whatever our ORD is", ORD: "our IRD, 32 at most", Unnegotiated: "0x3FFF is answered with 0x3FFF"},
	},
	"qedr": {
		findings: findings{
			Dialects: []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044}, Kind: mpa.KindNonPermissive, Markers: sendsMarkers, CRC: insists,
			RTR:         []string{"write", "read", "send", "send|write|read", "send|write|read"},
			Depths:      []string{"32/0", "32/1", "32/16", "32/32", "32/32"},
			PrivateData: probe.PrivateData{Most: 508, Allowed: 508}, Preset: "qedr",
		},
		glued: "accepted, answered", inTwo: "accepted", patience: "closed after 1m0s",
		limits: &probe.Limits{IRD: "32, whatever our ORD is", ORD: "our IRD, 32 at most", Unnegotiated: "0x3FFF is taken for a number"},
	},
	"windows-v1": {
		findings: findings{
			Dialects: []mpa.Dialect{mpa.DialectRFC5044}, Kind: mpa.KindNonPermissive, Markers: sendsMarkers,
			CRC:         "ends the connection on a Request that wants none (C=0)",
			PrivateData: probe.PrivateData{Most: 248, Allowed: 504, Over: probe.Reset}, Preset: "windows-v1",
		},
		glued: "reset", inTwo: "accepted", patience: "closed after 1m0s",
		limits: &probe.Limits{IRD: "16, by the depths in its private data", ORD: "16, by the depths in its private data"},
	},
}

// TestPeers asks every peer that is known, and finds what its row says; it is told by
// name, with all that is known of it, and nobody else comes near that. Slow or not, no
// peer is left waiting for the RTR indication.
func TestPeers(t *testing.T) {
	for _, b := range peersim.Rows() {
		want, ok := known[b.Name]
		if !ok {
			t.Errorf("%s: nobody says what to find", b.Name)
		}
		r := probing(t, probe.Config{Slow: true}, playing(b, peersim.Consumer{}, func(err error) {
			if strings.Contains(err.Error(), "waiting for the RTR indication") {
				t.Errorf("%s: %v", b.Name, err)
			}
		}))
		if diff := cmp.Diff(want.findings, found(r)) + cmp.Diff(want.limits, r.Limits); diff != "" {
			t.Errorf("%s: %s\n%s", b.Name, diff, text(t, r))
		}
		patience := time.Duration(r.NoRequest.Milliseconds * float64(time.Millisecond))
		if got := fmt.Sprintf("%s after %v", r.NoRequest.Outcome, patience); got != want.patience {
			t.Errorf("%s: no Request: %s, want %s", b.Name, got, want.patience)
		}
		if g := outcome(r.Glued); g != want.glued || outcome(r.InTwo) != want.inTwo {
			t.Errorf("%s: an FPDU behind the Request: %s, want %s; in two parts: %s, want %s", b.Name, g, want.glued, outcome(r.InTwo), want.inTwo)
		}
		if a := r.FirstFPDUs.Plain; a.Outcome != "response" || a.CRC != "right" {
			t.Errorf("%s: %+v", b.Name, a)
		}
		wantResembled(t, b.Name, r)
	}
}

func outcome(q *probe.Question) string {
	if q.Then != "" {
		return fmt.Sprintf("%s, %s", q.Outcome, q.Then)
	}
	return string(q.Outcome)
}

// wantResembled looks at what a peer is said to be like.
func wantResembled(t *testing.T, name string, r *probe.Report) {
	t.Helper()
	first, second := r.Resembles[0], r.Resembles[1]
	if first.Preset != name || first.Same != first.Compared || len(second.Differences) == 0 {
		t.Errorf("%s: resembles %+v, and then %+v", name, first, second)
	}
	if !strings.Contains(text(t, r), "\nUse --peer "+name+"\n") {
		t.Errorf("%s: %s", name, text(t, r))
	}
}

// TestPeersReject: a consumer that rejects all Requests does not hide what is below it.
func TestPeersReject(t *testing.T) {
	for _, b := range peersim.Rows() {
		r := probing(t, probe.Config{}, playing(b, peersim.Consumer{Reject: true, PrivateData: []byte("no")}, func(error) {}))
		if !slices.Equal(r.Dialects, known[b.Name].Dialects) {
			t.Errorf("%s: %v", b.Name, r.Dialects)
		}
		wantResembled(t, b.Name, r)
	}
}

// TestPresetNames: what is recommended exists, and everything that exists can be.
func TestPresetNames(t *testing.T) {
	r := probing(t, probe.Config{}, func(net.Conn) {})
	var names []string
	for _, m := range r.Resembles {
		if m.Preset == "" {
			continue // of iwarp
		}
		if _, err := iwarp.LookupPreset(m.Preset); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		names = append(names, m.Preset)
	}
	if r.Preset != "" || len(names) != len(iwarp.Presets()) {
		t.Errorf("a peer that closes at once is like %q; of %d presets there are %q", r.Preset, len(iwarp.Presets()), names)
	}
}

// TestGoneMidway: a peer that takes a few connections only leaves half a report.
func TestGoneMidway(t *testing.T) {
	b, _ := peersim.Row("siw")
	left := 3
	gone := errors.New("gone")
	synctest.Test(t, func(t *testing.T) {
		r, err := probe.Run(t.Context(), probe.Config{Dial: func(context.Context) (net.Conn, error) {
			if left--; left < 0 {
				return nil, gone
			}
			ours, theirs := newWire()
			go playing(b, peersim.Consumer{}, func(error) {})(theirs)
			return ours, nil
		}})
		if !errors.Is(err, probe.ErrUnreachable) || !errors.Is(err, gone) || r == nil || !r.Incomplete || len(r.Questions) != 3 {
			t.Fatalf("%+v (%v)", r, err)
		}
		if s := text(t, r); !strings.Contains(s, "3 questions asked, and then nobody was there") || !strings.Contains(s, "RFC 6581, RFC 5044") {
			t.Error(s)
		}
	})
}
