package conform_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// A mortal is a peer that is not always there.
type mortal struct {
	conform.Peer
	asked int
	began time.Time
	// there says what becomes of a connection, by its number from 0, and since when the run goes on.
	there func(number int, since time.Duration) being
}

type being int

const (
	alive   being = iota
	silent        // takes the connection, and says nothing
	closing       // closes each connection, as a proxy does without its server
	web           // answers in another protocol, as a proxy does without its server
	refused       // nobody listens
	absent        // nobody comes, or there is no answer to a SYN
	halfway       // accepts a Request, and dies
)

func (m *mortal) Connect(ctx context.Context) (net.Conn, error) {
	is := m.there(m.asked, time.Since(m.began))
	m.asked++
	switch is {
	case alive:
		return m.Peer.Connect(ctx)
	case refused:
		return nil, syscall.ECONNREFUSED
	case absent:
		time.Sleep(2 * time.Second)
		return nil, errors.New("nobody is there")
	}
	near, far := testrig.Pipe("suite", "peer")
	go func() {
		defer far.Close()
		if is == halfway {
			q, _ := script.NewLink(far).Frame(time.Time{})
			_, _ = far.Write(script.Reply(mpa.DialectRFC6581, q, 4).Bytes())
		}
		if is == silent || is == halfway {
			_, _ = io.Copy(io.Discard, far)
			return
		}
		_, _ = far.Read(make([]byte, 4096))
		if is == web {
			_, _ = io.WriteString(far, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		}
	}()
	return near, nil
}

// since has the peer be in a state from a connection on.
func since(n int, is being) func(int, time.Duration) being {
	return func(number int, _ time.Duration) being {
		if number < n {
			return alive
		}
		return is
	}
}

// some are cases of both roles: those that pass by an answer, by silence, and by a close.
const some = `^startup/re[qp]-(whole|waits|bytes|split|key-.*|rev-.*|res-.*)$`

// mortally runs cases against an endpoint that is not always there, and returns the results in order.
func mortally(t *testing.T, role mpa.Role, there func(int,
	time.Duration) being) (all []conform.Result, sum conform.Summary) {
	t.Helper()
	return mortallyOf(t, some, role, there)
}

func mortallyOf(t *testing.T, filter string, role mpa.Role,
	there func(int, time.Duration) being) (all []conform.Result, sum conform.Summary) {
	t.Helper()
	setup{role: role, dialect: mpa.DialectRFC6581}.against(t, func(t *testing.T, o conform.Options) {
		o.Peer, o.Filter = &mortal{Peer: o.Peer, began: time.Now(), there: there}, regexp.MustCompile(filter)
		var err error
		sum, err = conform.Run(t.Context(), o, func(r *conform.Result) { all = append(all, *r) })
		testrig.Must(t, err)
	})
	return all, sum
}

// TestPeerStops runs cases against peers that stop answering, in each way, after some connections: no case is failed
// for it, each has a result, and the summary says after which case that was.
func TestPeerStops(t *testing.T) {
	for _, role := range roles {
		whole, sum := mortally(t, role, since(1000, alive))
		if sum.Passed < 15 || sum.Failed+sum.Inconclusive+sum.NotAsked > 0 || len(sum.Away) > 0 {
			t.Fatalf("%v: %+v", role, sum)
		}
		for _, is := range []being{silent, closing, web, refused, absent} {
			for n := 2; n < len(whole)-2; n++ {
				all, sum := mortally(t, role, since(n, is))
				passed := 0
				for i, r := range all {
					if r.Verdict == conform.Pass {
						passed = i + 1
					}
				}
				if !sum.PeerStopped || sum.OK() || sum.Failed+sum.Inconclusive > 0 || sum.NotAsked == 0 ||
					len(all) != len(whole) || sum.NotAsked != len(all)-passed {
					t.Errorf("%v, %d after %d: %+v", role, is, n, sum)
				}
				if want := all[passed-1].Case.ID +
					": "; !strings.Contains(sum.Stopped, "the peer stopped answering after case ") ||
					!strings.Contains(sum.Stopped, want) {
					t.Errorf("%v, %d after %d: %s, want %q", role, is, n, sum.Stopped, want)
				}
			}
		}
	}
}

// TestPeerStopsAtOnce: it has answered what precedes the cases, and no case.
func TestPeerStopsAtOnce(t *testing.T) {
	all, sum := mortally(t, mpa.RoleResponder, since(1, silent))
	if !sum.PeerStopped || sum.NotAsked != len(all) ||
		!strings.Contains(sum.Stopped, "before the first case: startup/req-whole got no answer") {
		t.Errorf("%+v", sum)
	}
}

// TestPeerStopsHalfway dies in the middle of a case, after its Reply: no case is failed for that.
func TestPeerStopsHalfway(t *testing.T) {
	_, sum := mortally(t, mpa.RoleResponder, func(number int,
		_ time.Duration) being {
		return [...]being{alive, halfway, silent}[min(number, 2)]
	})
	if !sum.PeerStopped || sum.Failed+sum.Passed+sum.Inconclusive > 0 {
		t.Errorf("%+v", sum)
	}
}

// TestPeerStopsLast has a peer of which nothing is left but a proxy that closes each connection, and cases that pass
// by a close: they prove nothing, up to the last one.
func TestPeerStopsLast(t *testing.T) {
	const filter = "^startup/req-(whole|key-.*)$"
	all, sum := mortallyOf(t, filter, mpa.RoleResponder, since(1000, alive))
	if sum.Passed != len(all) || sum.Stopped != "" {
		t.Fatalf("%+v", sum)
	}
	if _, sum = mortallyOf(t, filter, mpa.RoleResponder, since(4, closing)); !sum.PeerStopped || sum.Passed != 1 ||
		sum.NotAsked != len(all)-1 {
		t.Errorf("%+v", sum)
	}
}

// TestPeerComesBack has a peer restart: what was in doubt is run again, and comes to what it comes to otherwise.
func TestPeerComesBack(t *testing.T) {
	for _, role := range roles {
		whole, _ := mortally(t, role, since(1000, alive))
		for _, is := range []being{silent, closing, web, refused} {
			for from := 2; from < len(whole)-2; from++ {
				var gone time.Duration
				all, sum := mortally(t, role, func(number int, now time.Duration) being {
					if number == from {
						gone = now
					}
					if number >= from && now < gone+5*time.Second {
						return is
					}
					return alive
				})
				if !sum.OK() || len(all) != len(whole) || sum.Passed != len(all) || len(sum.Away) > 1 {
					t.Errorf("%v, %d from %d: %+v", role, is, from, sum)
				}
			}
		}
	}
}

// TestCrashingCase has a case that a peer does not survive, and a peer that is started again each time: the run goes
// on, and says it.
func TestCrashingCase(t *testing.T) {
	var gone time.Duration
	at := 12
	_, sum := mortally(t, mpa.RoleResponder, func(number int, now time.Duration) being {
		if number == at {
			if gone = now; at < 20 {
				at += 4
			}
		}
		if gone > 0 && now < gone+5*time.Second {
			return silent
		}
		return alive
	})
	if sum.PeerStopped || sum.Stopped != "" || len(sum.Away) == 0 {
		t.Errorf("%+v", sum)
	}
}

// TestPeerStopsForms has text, JSON and JUnit say it.
func TestPeerStopsForms(t *testing.T) {
	all, sum := mortally(t, mpa.RoleResponder, since(6, silent))
	r := conform.Report{Results: all, Stopped: sum.Stopped, PeerStopped: sum.PeerStopped}
	var text, verbose, lines, junit strings.Builder
	testrig.Must(t, errors.Join(r.WriteText(&text, false), r.WriteText(&verbose, true),
		r.WriteJSON(&lines), r.WriteJUnit(&junit)))
	if s := text.String(); strings.Contains(s, "not asked  ") ||
		!strings.Contains(s, "stopped: the peer stopped answering after case ") ||
		!strings.Contains(s, " not asked\n") {
		t.Error(s)
	}
	if n := strings.Count(verbose.String(), "not asked      startup/"); n != sum.NotAsked {
		t.Errorf("%d in %s", n, &verbose)
	}
	if s := junit.String(); !strings.Contains(s, `errors="1"`) || !strings.Contains(s, `failures="0"`) ||
		strings.Count(s, "not asked: the peer had stopped answering") != sum.NotAsked {
		t.Error(s)
	}
	split := strings.Split(strings.TrimSpace(lines.String()), "\n")
	var last struct {
		NotAsked    int  `json:"not_asked"`
		PeerStopped bool `json:"peer_stopped"`
	}
	testrig.Must(t, json.Unmarshal([]byte(split[len(split)-1]), &last))
	if !last.PeerStopped || last.NotAsked != sum.NotAsked || len(split) != len(all)+1 {
		t.Errorf("%s", split[len(split)-1])
	}
}
