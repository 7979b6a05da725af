package conform_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/conform/peer"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// own is a case of one's own, beyond the startup.
func own(play func(*peer.Conn) error) conform.Case {
	return conform.Case{ID: "ddp/own", Play: func(_ context.Context, c *peer.Conn) error { return play(c) }}
}

// TestOwnCases has cases of one's own end in every way, against our endpoint in both roles.
func TestOwnCases(t *testing.T) {
	establish := map[mpa.Role]func(*peer.Conn){
		mpa.RoleResponder: func(c *peer.Conn) { c.Initiate(mpa.DialectRFC6581) },
		mpa.RoleInitiator: func(c *peer.Conn) { c.Respond(mpa.DialectRFC6581) },
	}
	for name, m := range map[string]struct {
		play    func(*peer.Conn) error
		verdict conform.Verdict
		text    string // Expected and Got, or Why
	}{
		"pass": {func(c *peer.Conn) error {
			h := c.Header(rdmap.OpWrite)
			h.STag = 0xdead
			c.Send(c.Segment(h, []byte("hello")))
			c.ExpectTerminate(rdmap.CodeDDPInvalidSTag)
			return nil
		}, conform.Pass, ""},
		"unexpected": {func(c *peer.Conn) error { c.ExpectSegment(rdmap.OpTerminate); return nil }, conform.Fail,
			"an FPDU of a Terminate"},
		"another error": {func(*peer.Conn) error { return errors.New("no luck") }, conform.Fail, "no luck"},
		"not applicable": {func(*peer.Conn) error { return conform.NotApplicable.Because("no SRQ") },
			conform.NotApplicable, "no SRQ"},
		"inconclusive": {func(*peer.Conn) error { return conform.Inconclusive.Because("no luck") },
			conform.Inconclusive, "no luck"},
		"not because": {func(*peer.Conn) error { return conform.Pass.Because("so") }, conform.Fail, "pass: so"},
	} {
		for role, up := range establish {
			t.Run(name+"/"+role.String(), func(t *testing.T) {
				setup{role: role, dialect: mpa.DialectRFC6581}.against(t, func(t *testing.T, o conform.Options) {
					res := runOwn(t, o, own(func(c *peer.Conn) error { up(c); return m.play(c) }))
					if text := res.Expected + " " + res.Got + " " + res.Why; res.Verdict != m.verdict ||
						!strings.Contains(text, m.text) || len(res.Dialogue) < 4 || res.Case.Role != role {
						t.Errorf("%v %s: want %v, %q", res.Verdict, text, m.verdict, m.text)
					}
				})
			})
		}
	}
}

// runOwn runs a case with its own Options.App unset, and wants one Result.
func runOwn(t *testing.T, o conform.Options, c conform.Case) (res conform.Result) {
	o.App, o.Cases = conform.AppNone, []conform.Case{c}
	if _, err := conform.Run(t.Context(), o, func(r *conform.Result) { res = *r }); err != nil {
		t.Error(err)
	}
	return res
}

// TestOwnAsSubtests runs cases of one's own as a test of a driver would.
func TestOwnAsSubtests(t *testing.T) {
	opts := conform.Options{Role: mpa.RoleResponder, Peer: &conform.DialPeer{Addr: serve()}}
	opts.Cases = []conform.Case{own(func(c *peer.Conn) error { c.Initiate(0); return c.Err() })}
	var pcap bytes.Buffer
	record, err := capture.NewWriter(&pcap, capture.WriterConfig{})
	testrig.Must(t, err)
	opts.Record = record
	sum, err := conform.Run(t.Context(), opts, func(r *conform.Result) {
		t.Run(r.Case.ID, func(t *testing.T) {
			switch r.Verdict {
			case conform.Fail:
				t.Errorf("expected %s, got %s\n%v", r.Expected, r.Got, r.Dialogue)
			case conform.NotApplicable, conform.Inconclusive, conform.NotAsked:
				t.Skip(r.Why)
			}
		})
	})
	testrig.Must(t, err)
	testrig.Must(t, record.Flush())
	if requests := bytes.Count(pcap.Bytes(), []byte(mpa.KeyRequest)); sum.Passed != 1 || requests != 2 {
		t.Errorf("%v, and %d requests in the capture, with that before the first case", &sum, requests)
	}
}

// TestOwnInterrupted ends the context while the script of a case waits.
func TestOwnInterrupted(t *testing.T) {
	setup{role: mpa.RoleResponder, dialect: mpa.DialectRFC6581}.against(t, func(t *testing.T, o conform.Options) {
		ctx, cancel := context.WithCancel(t.Context())
		o.Cases = []conform.Case{own(func(c *peer.Conn) error {
			c.Initiate(0)
			time.AfterFunc(time.Second, cancel)
			c.ExpectSilence(time.Hour)
			return c.Err()
		})}
		began := time.Now()
		sum, err := conform.Run(ctx, o, nil)
		if took := time.Since(began); err != nil || !sum.Interrupted || took > time.Minute {
			t.Errorf("%v, %v after %v", &sum, err, took)
		}
	})
}

// TestOwnRefused has cases that cannot be run.
func TestOwnRefused(t *testing.T) {
	play := own(func(*peer.Conn) error { return nil })
	play.ID = ""
	for _, c := range []conform.Case{play, {ID: "ddp/own"}} {
		o := conform.Options{Role: mpa.RoleResponder, Peer: new(conform.DialPeer), Cases: []conform.Case{c}}
		if _, err := conform.Run(t.Context(), o, nil); err == nil {
			t.Errorf("%q was run", c.ID)
		}
	}
}
