package probe_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/probe"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// A mortal is a peer that accepts every Request of revisions 1 and 2 as it is, is silent to a Start Key by design,
// and closes on anything else; and which is not always there.
type mortal struct {
	asked int
	// there says what becomes of a connection, by its number from 0, and since when the peer runs.
	there func(number int, since time.Duration) presence
}

type presence int

const (
	alive   presence = iota
	silent           // takes the connection, and says nothing
	closing          // closes each connection, as a proxy does without its server
	web              // answers in another protocol, as a proxy does without its server
	refused          // nobody listens
)

// serve answers a Request.
func (*mortal) serve(c net.Conn) {
	b := make([]byte, 4096)
	n, err := c.Read(b)
	f, bad := mpa.ParseStartup(b[:n])
	switch {
	case err != nil, bad == nil && f.Rev() != 1 && f.Rev() != 2:
		return
	case bad == nil:
		fields := f.Fields()
		fields.Key = mpa.KeyReply
		_, _ = c.Write(startup(fields))
	}
	_, _ = io.Copy(io.Discard, c)
}

// probed asks the peer all questions.
func (m *mortal) probed(t *testing.T, cfg probe.Config) (r *probe.Report, err error) {
	synctest.Test(t, func(t *testing.T) {
		var playing sync.WaitGroup
		defer playing.Wait()
		began := time.Now()
		cfg.Dial = func(context.Context) (net.Conn, error) {
			is := m.there(m.asked, time.Since(began))
			if m.asked++; is == refused {
				return nil, syscall.ECONNREFUSED
			}
			ours, theirs := testrig.Pipe("probe", "peer")
			playing.Go(func() {
				defer theirs.Close()
				m.play(theirs, is)
			})
			return ours, nil
		}
		r, err = probe.Run(t.Context(), cfg)
	})
	return r, err
}

func (m *mortal) play(c net.Conn, is presence) {
	switch is {
	case alive:
		m.serve(c)
	case silent:
		_, _ = io.Copy(io.Discard, c)
	case closing:
		_, _ = c.Read(make([]byte, 4096))
	case web:
		_, _ = c.Read(make([]byte, 4096))
		_, _ = io.WriteString(c, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
	}
}

// after is a peer that is in a state from a connection on.
func after(n int, is presence) *mortal {
	return &mortal{there: func(number int, _ time.Duration) presence {
		if number < n {
			return alive
		}
		return is
	}}
}

// TestStops asks peers that stop answering, in each way, after some connections. What they answered before stands,
// and nothing is concluded from the silence.
func TestStops(t *testing.T) {
	for _, is := range []presence{silent, closing, web, refused} {
		for n := 1; n < 30; n++ {
			wantStopped(t, n, is)
		}
	}
}

func wantStopped(t *testing.T, n int, is presence) {
	t.Helper()
	r, err := after(n, is).probed(t, probe.Config{})
	if !errors.Is(err, probe.ErrStopped) || errors.Is(err, probe.ErrUnreachable) != (is == refused) ||
		r == nil || r.Stopped == nil {
		t.Fatalf("%d, %d: %v\n%v", n, is, err, r)
	}
	s := r.Stopped
	if s.Number != len(r.Questions) || s.Last != r.Questions[s.Number-1].Name || slices.Contains(names(r), s.At) ||
		slices.Contains(r.NotAsked, s.At) || s.Number > n {
		t.Errorf("%d, %d: stopped %+v: asked %q, not %q", n, is, s, names(r), r.NotAsked)
	}
	for _, q := range r.Questions {
		if (q.Outcome == probe.Silent || q.Outcome.Refused() ||
			q.Outcome == probe.Foreign) != q.StillThere && q.Then == probe.None {
			t.Errorf("%d, %d: %+v is settled", n, is, q)
		}
	}
	if r.Limits != nil && len(r.Depths) < 5 || r.Preset != "" {
		t.Errorf("%d, %d: concludes %+v, %q", n, is, r.Limits, r.Preset)
	}
	words := text(t, r)
	for _, wrong := range []string{"Use --peer", "known features", "at most 0 bytes", "no Request was answered"} {
		if strings.Contains(words, wrong) {
			t.Errorf("%d, %d: says %q:\n%s", n, is, wrong, words)
		}
	}
	if !strings.Contains(words, "stopped: the peer stopped answering after question ") ||
		len(r.NotAsked) == 0 && n < 20 {
		t.Errorf("%d, %d:\n%s", n, is, words)
	}
}

// TestStopsForms has the JSON and the JUnit of such a run say it: the run is an error, and what was not asked is
// skipped.
func TestStopsForms(t *testing.T) {
	r, _ := after(2, silent).probed(t, probe.Config{})
	b, err := json.Marshal(r)
	var got struct {
		Stopped  struct{ Number int }
		NotAsked []string `json:"not_asked"`
	}
	var junit strings.Builder
	testrig.Must(t, errors.Join(err, json.Unmarshal(b, &got), r.Report().WriteJUnit(&junit)))
	if got.Stopped.Number != 2 || len(got.NotAsked) < 20 {
		t.Errorf("%s", b)
	}
	if s := junit.String(); !strings.Contains(s, `errors="1"`) || !strings.Contains(s, `failures="0"`) ||
		strings.Count(s, "not asked: the peer stopped answering") != len(got.NotAsked) {
		t.Error(s)
	}
}

// TestComesBack has a peer restart: for a while nobody listens, or connections are taken and not answered. It is
// asked again, and found to be what it is.
func TestComesBack(t *testing.T) {
	whole, err := after(1000, alive).probed(t, probe.Config{})
	testrig.Must(t, err)
	for _, is := range []presence{silent, closing, web, refused} {
		for from := range 30 {
			var gone time.Duration
			m := &mortal{}
			m.there = func(number int, since time.Duration) presence {
				if number == from+1 {
					gone = since
				}
				if number > from && since < gone+4*time.Second {
					return is
				}
				return alive
			}
			r, err := m.probed(t, probe.Config{})
			if err != nil || r.Stopped != nil || len(r.Away) != 1 || r.Away[0].Milliseconds < 1000 {
				t.Fatalf("%d from %d: %v, %+v", is, from, err, r.Away)
			}
			if a, b := answersOf(whole), answersOf(r); !slices.Equal(a, b) {
				t.Errorf("%d from %d: %q, want %q", is, from, b, a)
			}
			if s := text(t, r); !strings.Contains(s, "Away ") {
				t.Error(s)
			}
		}
	}
}

// answersOf are the questions of a report, with their outcomes.
func answersOf(r *probe.Report) (all []string) {
	for _, q := range r.Questions {
		all = append(all, q.Name+": "+outcome(q))
	}
	return all
}

// TestSilentByDesign: a peer that is silent to some questions, and answers others after them, is there.
func TestSilentByDesign(t *testing.T) {
	r, err := after(1000, alive).probed(t, probe.Config{})
	if err != nil || r.Stopped != nil || len(r.Away) > 0 || r.Incomplete || len(r.NotAsked) > 0 {
		t.Fatalf("%v: %+v", err, r)
	}
	if q := r.Revisions.StartKey; q.Outcome != probe.Silent || !q.StillThere {
		t.Errorf("%+v", q)
	}
}

// TestOneAtATime asks a server that serves one connection after the other, and is in no hurry to see that one has
// ended: it is late, and there.
func TestOneAtATime(t *testing.T) {
	var once sync.Once
	var turn chan struct{} // of the time that is virtual
	r := probing(t, probe.Config{}, func(c net.Conn) {
		once.Do(func() { turn = make(chan struct{}, 1) })
		turn <- struct{}{}
		defer func() { <-turn }()
		began := time.Now()
		new(mortal).serve(c)
		if time.Since(began) > 3*time.Second {
			time.Sleep(4 * time.Second)
		}
	})
	if r.Stopped != nil || len(r.Away) == 0 || r.InTwo == nil || r.Revisions.StartKey.Outcome != probe.Silent {
		t.Errorf("%s", text(t, r))
	}
}

// TestGivesUp bounds how long a peer that stopped answering is waited for.
func TestGivesUp(t *testing.T) {
	for _, giveUp := range []time.Duration{2 * time.Second, 30 * time.Second} {
		var gone, last time.Duration
		m := &mortal{}
		m.there = func(number int, since time.Duration) presence {
			if number < 3 {
				return alive
			}
			if last = since; number == 3 {
				gone = since
			}
			return refused
		}
		_, err := m.probed(t, probe.Config{GiveUp: giveUp})
		if spent := last - gone; !errors.Is(err, probe.ErrStopped) || spent > giveUp || spent < giveUp-time.Second {
			t.Errorf("%v: waited %v: %v", giveUp, spent, err)
		}
	}
}
