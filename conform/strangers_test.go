package conform_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// serving is a server that says what it has to say on each connection, and then listens to its end. Its time is
// virtual.
func serving(say func(net.Conn)) *conform.DialPeer {
	return &conform.DialPeer{Dial: func(context.Context, string) (net.Conn, error) {
		near, far := testrig.Pipe("suite", "server")
		go func() {
			say(far)
			_, _ = io.Copy(io.Discard, far)
			_ = far.Close()
		}()
		return near, nil
	}}
}

// TestMute runs nothing against a server that never says a word.
func TestMute(t *testing.T) {
	for _, d := range []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044} {
		synctest.Test(t, func(t *testing.T) {
			all, sum := collect(t, conform.Options{Role: mpa.RoleResponder, Dialect: d,
				Peer: serving(func(net.Conn) {})})
			if len(all) > 0 || sum.NotMPA || sum.OK() || !strings.Contains(sum.Stopped, "answers no MPA Request") {
				t.Errorf("%v: %d cases, %+v", d, len(all), sum)
			}
		})
	}
}

// TestClosing runs nothing against a server that ends every connection without a word, as one of TLS does with a
// Request.
func TestClosing(t *testing.T) {
	for _, d := range []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			server := serving(func(c net.Conn) {
				asked++
				_, _ = c.Read(make([]byte, 100))
				_ = c.Close()
			})
			all, sum := collect(t, conform.Options{Role: mpa.RoleResponder, Dialect: d, Peer: server})
			if len(all) > 0 || sum.NotMPA || sum.OK() || asked != 2 ||
				!strings.Contains(sum.Stopped, "answers no MPA Request") || !strings.Contains(sum.Stopped, "TLS") {
				t.Errorf("%v: %d cases, %d asked, %+v", d, len(all), asked, sum)
			}
		})
	}
}

// TestIncomplete runs nothing against a server that begins its Reply, or Start Key, and does not end it, and shows what
// came: it is no echo of the Request, with which a Reply begins, and its silence then is not the path's.
func TestIncomplete(t *testing.T) {
	const reply = mpa.KeyReply + "\x40\x02\x00\x04"
	for _, c := range []struct {
		dialect mpa.Dialect
		sends   string
		want    string
	}{
		{mpa.DialectRFC6581, "M", `1 of at least 20 bytes of a Reply Frame: "M"`},
		{mpa.DialectRFC5044, "MPA ID Re", `9 of at least 20 bytes of a Reply Frame: "MPA ID Re"`},
		{mpa.DialectRFC6581, reply, `20 of 24 bytes of a Reply Frame: "MPA ID Rep Frame@\x02\x00\x04"`},
		{mpa.DialectStartKey, "MPA id", `6 of 16 bytes of a Start Key: "MPA id"`},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := serving(func(conn net.Conn) {
				_, _ = conn.Read(make([]byte, 100))
				_, _ = io.WriteString(conn, c.sends)
			})
			all, sum := collect(t, conform.Options{Role: mpa.RoleResponder, Dialect: c.dialect, Peer: server})
			if len(all) > 0 || sum.NotMPA || sum.RoundTrip > 0 ||
				!strings.Contains(sum.Stopped, "incomplete: "+c.want) || !strings.Contains(sum.Stopped, "within 2s") {
				t.Errorf("%q: %d cases, %+v", c.sends, len(all), sum)
			}
		})
	}
}

// TestNotMPA runs nothing against a server of another protocol, be it one that speaks first.
func TestNotMPA(t *testing.T) {
	for _, greets := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			server := serving(func(c net.Conn) {
				if !greets {
					_, _ = c.Read(make([]byte, 100))
				}
				_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			})
			all, sum := collect(t, conform.Options{Role: mpa.RoleResponder, Peer: server})
			if len(all) > 0 || !sum.NotMPA || sum.OK() || !strings.Contains(sum.Stopped, `"HTTP/1.1 400 Bad Request`) {
				t.Errorf("greets %t: %d cases, %+v", greets, len(all), sum)
			}
		})
	}
}

// TestNotMPALine runs nothing against a server that answers in its own protocol when what it takes for a line has
// ended.
func TestNotMPALine(t *testing.T) {
	for _, d := range []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044} {
		synctest.Test(t, func(t *testing.T) {
			server := serving(func(c net.Conn) {
				if _, err := bufio.NewReader(c).ReadString('\n'); err == io.EOF {
					_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
				}
			})
			all, sum := collect(t, conform.Options{Role: mpa.RoleResponder, Dialect: d, Peer: server})
			if len(all) > 0 || !sum.NotMPA || !strings.Contains(sum.Stopped, `"HTTP/1.1 400 Bad Request`) {
				t.Errorf("%v: %d cases, %+v", d, len(all), sum)
			}
		})
	}
}

// TestEcho runs nothing against a server that sends back what it gets.
func TestEcho(t *testing.T) {
	for _, d := range []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044, mpa.DialectStartKey} {
		synctest.Test(t, func(t *testing.T) {
			server := serving(func(c net.Conn) { _, _ = io.Copy(c, c) })
			all, sum := collect(t, conform.Options{Role: mpa.RoleResponder, Dialect: d, Peer: server})
			if len(all) > 0 || !sum.NotMPA || !strings.HasSuffix(sum.Stopped, "our own bytes") {
				t.Errorf("%v: %d cases, %+v", d, len(all), sum)
			}
		})
	}
}

// TestUnknownDialect has a Responder that closes on anything but revision 1.
func TestUnknownDialect(t *testing.T) {
	old := closeIf(func(f mpa.StartupFrame) bool { return f.Rev() != 1 || f.S() })
	for _, dialect := range mpa.Dialects() {
		s := setup{role: mpa.RoleResponder, dialect: mpa.DialectRFC5044, between: between(old, pass)}
		if dialect == mpa.DialectStartKey {
			s.between = between(shut, pass)
		}
		s.against(t, func(t *testing.T, o conform.Options) {
			o.Dialect = dialect
			all, sum := collect(t, o)
			r := all["startup/req-whole"]
			switch {
			case dialect == mpa.DialectRFC5044:
				if r.Verdict != conform.Pass {
					t.Errorf("%v: %v (%s)", dialect, r.Verdict, r.Why)
				}
			case sum.NotApplicable != len(all):
				t.Errorf("%v: %v", dialect, &sum)
			}
			for id, r := range all {
				if r.Case.Delayed || r.Case.App == conform.AppReject {
					continue
				}
				if dialect != mpa.DialectRFC5044 && !strings.Contains(r.Why, "does not know the dialect") {
					t.Errorf("%s: %v (%s)", id, r.Verdict, r.Why)
				}
			}
		})
	}
}

// TestOtherInitiator has an Initiator of another dialect than is tested.
func TestOtherInitiator(t *testing.T) {
	for _, dialect := range mpa.Dialects() {
		s := setup{role: mpa.RoleInitiator, dialect: mpa.DialectRFC5044}
		if dialect == mpa.DialectRFC5044 {
			s.dialect = mpa.DialectStartKey
		}
		s.against(t, func(t *testing.T, o conform.Options) {
			o.Dialect = dialect
			if all, sum := collect(t, o); sum.NotApplicable != len(all) || len(all) == 0 {
				t.Errorf("%v: %v", dialect, &sum)
			}
		})
	}
}

// notConnected is a peer that is not there.
type notConnected struct{ asked int }

func (n *notConnected) Connect(context.Context) (net.Conn, error) {
	n.asked++
	return nil, errors.New("refused")
}
func (*notConnected) Again(context.Context) (net.Conn, error) { return nil, errors.New("refused") }
func (*notConnected) Release()                                {}

// TestNobody stops when the peer cannot be connected: a Responder before the first case, and an Initiator, for which a
// case waits, after it.
func TestNobody(t *testing.T) {
	for _, role := range roles {
		n := new(notConnected)
		all, sum := collect(t, conform.Options{Role: role, Peer: n, App: conform.AppRping})
		if sum.OK() || sum.Stopped != "the peer cannot be connected: refused" || sum.PeerStopped || n.asked != 1 ||
			sum.Err == nil || sum.Inconclusive != len(all) {
			t.Errorf("%v: %v, stopped: %q", role, &sum, sum.Stopped)
		}
		for id, r := range all {
			if r.Verdict == conform.Inconclusive && !strings.Contains(r.Why, "refused") {
				t.Errorf("%s: %s", id, r.Why)
			}
		}
	}
}
