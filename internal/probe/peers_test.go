package probe_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/internal/peersim"
	"github.com/goiwarp/iwarp/internal/probe"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/mpa"
)

// probing asks a peer whose end of each connection is played by a function, in virtual
// time.
func probing(t *testing.T, cfg probe.Config, play func(net.Conn)) *probe.Report {
	t.Helper()
	r, err := tried(t, cfg, play)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tried is probing of a peer that may be too slow for all questions.
func tried(t *testing.T, cfg probe.Config, play func(net.Conn)) (r *probe.Report, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var playing sync.WaitGroup
		defer playing.Wait()
		cfg.Addr = "peer:1"
		dialed := 0
		cfg.Dial = func(context.Context) (net.Conn, error) {
			ours, theirs := testrig.Pipe("probe", strconv.Itoa(dialed))
			_ = theirs.SetWriteBuffer(64 << 10)
			dialed++
			playing.Go(func() {
				defer theirs.Close()
				play(theirs)
			})
			return ours, nil
		}
		r, err = probe.Run(t.Context(), cfg)
	})
	return r, err
}

// playing is what a peer does on a connection: it accepts what it can, and goes on
// until the other end has had enough. Each error is told to ended.
func playing(b peers.Peer, c peersim.Consumer, ended func(error)) func(net.Conn) {
	return func(conn net.Conn) {
		s, err := peersim.Respond(&b, conn, c)
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

// toBeFound is what a peer of the table must be found to be.
func toBeFound(p *peers.Peer) findings {
	f := findings{
		Dialects: []mpa.Dialect{mpa.DialectRFC5044}, Kind: mpa.KindNonPermissive, Markers: sendsMarkers,
		CRC: insists, Preset: p.Name,
		PrivateData: probe.PrivateData{Most: p.MaxPrivateData(p.Highest), Allowed: mpa.MaxPrivateData},
	}
	if p.Markers == peers.Rejects {
		f.Markers = "asks for none, rejects a Request that does (M=1)"
	}
	switch {
	case p.NoCRC == peers.Resets:
		f.CRC = "ends the connection on a Request that wants none (C=0)"
	case !p.AsksCRC:
		f.CRC = "does without if the Request wants none (C=0)"
	}
	switch {
	case p.Highest >= 2:
		f.Dialects = append([]mpa.Dialect{mpa.DialectRFC6581}, f.Dialects...)
		f.PrivateData.Allowed = mpa.MaxEnhancedPrivateData
		for _, offered := range []mpa.RTR{mpa.RTRWrite, mpa.RTRRead, mpa.RTRSend, allRTR, 0} {
			f.RTR = append(f.RTR, p.AnswerRTR(offered).String())
		}
		for _, ord := range []mpa.Depth{0, 1, 16, p.MaxORD} {
			f.Depths = append(f.Depths, fmt.Sprintf("%d/%d", p.MaxIRD, ord))
		}
		f.Depths = append(f.Depths, map[bool]string{true: none + "/" + none, false: f.Depths[3]}[p.NoNegotiation])
	case p.SMBDirect:
		f.PrivateData.Allowed -= ulpdata.SMBDirectLen
	}
	if f.PrivateData.Most < f.PrivateData.Allowed {
		f.PrivateData.Over = probe.Reset
	}
	return f
}

const allRTR = mpa.RTRSend | mpa.RTRWrite | mpa.RTRRead

// limits are the rules that a peer's depths must be found to follow.
func limits(p *peers.Peer) *probe.Limits {
	switch {
	case p.SMBDirect:
		by := fmt.Sprintf("%d, by the depths in its private data", p.MaxIRD)
		return &probe.Limits{IRD: by, ORD: by}
	case p.Highest < 2:
		return nil
	}
	l := &probe.Limits{
		IRD: fmt.Sprintf("%d, whatever our ORD is", p.MaxIRD), ORD: fmt.Sprintf("our IRD, %d at most", p.MaxORD),
		Unnegotiated: "0x3FFF is taken for a number",
	}
	if p.NoNegotiation {
		l.Unnegotiated = "0x3FFF is answered with 0x3FFF"
	}
	return l
}

// patienceOf is how long a peer must be found to wait for a Request.
func patienceOf(p *peers.Peer) string {
	if p.RequestTimeout == 0 {
		return fmt.Sprintf("silent after %v", probe.SlowTimeout)
	}
	return fmt.Sprintf("closed after %v", p.RequestTimeout)
}

// TestPeers asks every peer that is known, and finds what its row says; it is told by
// name, with all that is known of it, and nobody else comes near that. Slow or not, no
// peer is left waiting for the RTR indication.
func TestPeers(t *testing.T) {
	for _, b := range peers.All() {
		r := probing(t, probe.Config{Slow: true}, playing(b, peersim.Consumer{}, func(err error) {
			if strings.Contains(err.Error(), "waiting for the RTR indication") {
				t.Errorf("%s: %v", b.Name, err)
			}
		}))
		if diff := cmp.Diff(toBeFound(&b), found(r)) + cmp.Diff(limits(&b), r.Limits); diff != "" {
			t.Errorf("%s: %s\n%s", b.Name, diff, text(t, r))
		}
		patience := time.Duration(r.NoRequest.Milliseconds * float64(time.Millisecond))
		if got := fmt.Sprintf("%s after %v", r.NoRequest.Outcome, patience); got != patienceOf(&b) {
			t.Errorf("%s: no Request: %s, want %s", b.Name, got, patienceOf(&b))
		}
		wantEnd(t, &b, "an FPDU glued to the Request", r.Glued, b.Glued, "accepted, answered")
		wantEnd(t, &b, "a Request in two parts", r.InTwo, b.Split, "accepted")
		if a := r.FirstFPDUs.Plain; a.Outcome != probe.Response || a.CRC != "right" {
			t.Errorf("%s: %+v", b.Name, a)
		}
		wantResembled(t, b.Name, r)
	}
}

// wantEnd wants a question to have ended as a peer's row says.
func wantEnd(t *testing.T, p *peers.Peer, name string, q *probe.Question, end peers.End, tolerated string) {
	t.Helper()
	want := map[peers.End]string{peers.Tolerates: tolerated, peers.Resets: "reset"}[end]
	if got := outcome(q); got != want {
		t.Errorf("%s: %s: %s, want %s", p.Name, name, got, want)
	}
}

func outcome(q *probe.Question) string {
	if q.Then != probe.None {
		return fmt.Sprintf("%v, %v", q.Outcome, q.Then)
	}
	return q.Outcome.String()
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
	for _, b := range peers.All() {
		r := probing(t, probe.Config{}, playing(b,
			peersim.Consumer{Reject: true, PrivateData: []byte("no")}, func(error) {}))
		if !slices.Equal(r.Dialects, toBeFound(&b).Dialects) {
			t.Errorf("%s: %v", b.Name, r.Dialects)
		}
		wantResembled(t, b.Name, r)
	}
}

// TestPresetNames: what is recommended exists, and everything that exists can be.
func TestPresetNames(t *testing.T) {
	b, _ := peers.Lookup("siw")
	r := probing(t, probe.Config{}, playing(b, peersim.Consumer{}, func(error) {}))
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
	if len(names) != len(iwarp.Presets()) {
		t.Errorf("of %d presets there are %q", len(iwarp.Presets()), names)
	}
}

// TestGoneMidway: a peer that takes a few connections only leaves half a report.
func TestGoneMidway(t *testing.T) {
	b, _ := peers.Lookup("siw")
	left := 3
	gone := errors.New("gone")
	synctest.Test(t, func(t *testing.T) {
		r, err := probe.Run(t.Context(), probe.Config{Dial: func(context.Context) (net.Conn, error) {
			if left--; left < 0 {
				return nil, gone
			}
			ours, theirs := testrig.Pipe("probe", "peer")
			go playing(b, peersim.Consumer{}, func(error) {})(theirs)
			return ours, nil
		}})
		if !errors.Is(err, probe.ErrStopped) || !errors.Is(err, probe.ErrUnreachable) || !errors.Is(err, gone) ||
			r == nil || !r.Incomplete || len(r.Questions) != 3 {
			t.Fatalf("%+v (%v)", r, err)
		}
		if s := text(t, r); !strings.Contains(s, "stopped: the peer stopped answering after question 3, revision 2, client-server (A=0)\n") || !strings.Contains(s, "3 questions asked\n") || !strings.Contains(s, "RFC 6581, RFC 5044") {
			t.Error(s)
		}
	})
}
