package conform_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// A distant peer is a Responder at the end of a path with a delay each way, which does on each connection what serve
// does.
type distant struct {
	conform.DialPeer
	delay time.Duration
	serve func(l *script.Link)
	tasks sync.WaitGroup
}

func answering(delay time.Duration, serve func(l *script.Link)) *distant {
	d := &distant{delay: delay, serve: serve}
	d.Dial = d.connect
	return d
}

func (d *distant) connect(context.Context, string) (net.Conn, error) {
	suite, near := testrig.Pipe("suite", "server")
	far, server := testrig.Pipe("suite", "server")
	for _, c := range []*testrig.Conn{near, server} { // who floods is to wait
		_ = c.SetWriteBuffer(64 << 10)
	}
	slow := func(_ *wire, src *script.Link, dst *testrig.Conn) {
		_ = src.CarryTo(dst, func([]byte) { time.Sleep(d.delay) })
	}
	d.tasks.Go(func() { (&wire{suite: near, endpoint: far}).run(slow, slow) })
	d.tasks.Go(func() {
		d.serve(script.NewLink(server))
		_, _ = io.Copy(io.Discard, server)
		_ = server.Close()
	})
	return suite, nil
}

// accepting answers a Request with 4 for all depths.
func accepting(l *script.Link, q mpa.StartupFrame) {
	_ = l.Send(script.Reply(mpa.DialectRFC6581, q, 4).Bytes())
}

// runOne runs the cases that match against a peer, without its application.
func runOne(t *testing.T, peer *distant, filter string, app conform.App) (conform.Result, conform.Summary) {
	t.Helper()
	all, sum := collect(t, conform.Options{
		Role: mpa.RoleResponder, App: app, Peer: peer, Unsafe: true, Timeout: time.Second,
		Filter: regexp.MustCompile("^" + filter + "$"),
	})
	peer.tasks.Wait()
	return all[filter], sum
}

// TestLongPath has a Responder that answers the first bytes of a Request, over paths of which one has a round trip
// longer than the quiet time: it fails in either case, and one that waits passes.
func TestLongPath(t *testing.T) {
	for _, c := range []struct {
		delay time.Duration
		early bool
		want  conform.Verdict
		told  bool
	}{{0, true, conform.Fail, false}, {150 * time.Millisecond, true, conform.Fail, true},
		{150 * time.Millisecond, false, conform.Pass, true}} {
		synctest.Test(t, func(t *testing.T) {
			r, sum := runOne(t, answering(c.delay, func(l *script.Link) {
				if !c.early {
					if q, err := l.Frame(time.Time{}); err == nil {
						accepting(l, q)
					}
				} else if l.Need(mpa.StartupHeaderLen+4, time.Time{}) == nil {
					accepting(l, l.Received())
				}
			}), "startup/req-pd-waits", conform.AppNone)
			if r.Verdict != c.want {
				t.Errorf("%+v: %v: %s, expected %q, got %q", c, r.Verdict, r.Why, r.Expected, r.Got)
			}
			var text, js bytes.Buffer
			testrig.Must(t, errors.Join(conform.NewPrinter(&text, false).Summary(&sum),
				conform.NewJSONPrinter(&js).Summary(&sum)))
			if got := strings.Contains(text.String(), "300ms is longer than the quiet time"); got != c.told ||
				sum.RoundTrip > 0 != c.told {
				t.Errorf("%+v: %v, %s", c, sum.RoundTrip, &text)
			}
			text.Reset()
			told := &conform.Report{Results: []conform.Result{r}, RoundTrip: sum.RoundTrip}
			if testrig.Must(t, told.WriteJUnit(&text)); strings.Contains(text.String(),
				"300ms is longer than the quiet time") != c.told {
				t.Errorf("%+v: %s", c, &text)
			}
			var fields map[string]any
			if testrig.Must(t, json.Unmarshal(js.Bytes(), &fields)); c.told && fields["round_trip_ms"] != 300.0 ||
				fields["passed"] == nil {
				t.Errorf("%+v: %s", c, &js)
			}
		})
	}
}

// TestRequestInParts sends a Request in two parts to a Responder that answers no Read, so that the startup is done once
// more: with the same Request.
func TestRequestInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := runOne(t, answering(0, func(l *script.Link) {
			if q, err := l.Frame(time.Time{}); err == nil {
				accepting(l, q)
			}
		}), "startup/req-pd-waits", conform.AppNone)
		again := 0
		for _, e := range r.Dialogue {
			if e.Kind == conform.Sent && strings.HasPrefix(e.Text, "Request again") {
				again += len(e.Bytes)
			}
		}
		if r.Verdict != conform.Pass || again != mpa.StartupHeaderLen+4+8 {
			t.Errorf("%v, %d bytes again: expected %q, got %q", r.Verdict, again, r.Expected, r.Got)
		}
	})
}

// TestFlood has a Responder that never stops sending: in streaming mode after its rejection, and valid FPDUs after its
// Reply. What a case keeps of it has a bound.
func TestFlood(t *testing.T) {
	for _, c := range []struct {
		filter string
		app    conform.App
		want   conform.Verdict
	}{{"reject/req-fin", conform.AppReject, conform.Fail},
		{"ddp/responder-no-buffer", conform.AppRping, conform.Inconclusive}} {
		synctest.Test(t, func(t *testing.T) {
			r, _ := runOne(t, answering(0, func(l *script.Link) {
				if q, err := l.Frame(time.Time{}); err == nil {
					flood(l, q, c.app == conform.AppReject)
				}
			}), c.filter, c.app)
			kept := 0
			for _, e := range r.Dialogue {
				kept += len(e.Bytes) + len(e.Text)
			}
			if r.Verdict != c.want || kept > 5<<20 || len(r.Dialogue) > 20000 {
				t.Errorf("%s: %v (%s), %d bytes in %d steps: expected %q, got %q",
					c.filter, r.Verdict, r.Why, kept, len(r.Dialogue), r.Expected, r.Got)
			}
		})
	}
}

// flood rejects or accepts a Request, and then sends until the suite has left.
func flood(l *script.Link, q mpa.StartupFrame, reject bool) {
	r := script.Reply(mpa.DialectRFC6581, q, 4)
	r.R = reject
	_ = l.Send(r.Bytes())
	piece := make([]byte, 64<<10)
	if !reject {
		l.Operate(script.TermsOf(mpa.RoleResponder, q, r.Bytes()))
		if _, err := l.NextFPDU(time.Time{}); err != nil {
			return
		}
		piece = bytes.Repeat(l.EmptyWrite(), 1000)
	}
	for l.Send(piece) == nil {
	}
}
