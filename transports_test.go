package iwarp_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/usertcp"
)

// A transport is what a connection runs over.
type transport struct {
	name          string
	network, host string // of TCP; or
	unix          bool
	tls           bool
	sctp          bool
	shuffled      bool  // a SegmentStream in memory
	aware         *link // an MPA-aware TCP in memory
	user          bool  // TCP in user space, over
	path          usertcp.Path
	unmarked      bool // without markers
	wrap          func(end int, l usertcp.Link) usertcp.Link
	stack         usertcp.Config // of those whose links are wrapped
}

// transports are those that dialogues are led over. A zone belongs to link-local
// addresses; that of the loopback interface is ignored by the system, and must not be in
// anybody's way.
func transports() []*transport {
	all := []*transport{
		{name: "IPv4", network: "tcp4", host: "127.0.0.1"},
		{name: "IPv6", network: "tcp6", host: "::1"},
		{name: "TLS", network: "tcp", host: "127.0.0.1", tls: true},
		{name: "Unix socket", unix: true},
		{name: "SCTP", network: "sctp4", host: "127.0.0.1", sctp: true},
		{name: "SCTP of the kernel", network: "sctp4:kernel", host: "127.0.0.1", sctp: true},
		{name: "segments in any order", shuffled: true},
		{name: "TCP in user space", user: true},
		{name: "MPA-aware TCP", aware: &link{emss: 1420}},
		{name: "MPA-aware TCP in any order", aware: &link{emss: 1420, disorder: 8, recut: true}},
	}
	if name := loopback(); name != "" {
		all = append(all, &transport{name: "IPv6 with a zone", network: "tcp", host: "::1%" + name})
	}
	return all
}

// loopback returns the name of the loopback interface.
func loopback() string {
	all, _ := net.Interfaces()
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 && i.Flags&net.FlagUp != 0 {
			return i.Name
		}
	}
	return ""
}

// overAll leads a dialogue over each transport that the system has, and overStreams over those
// that MPA is on: in others either side may send first.
func overAll(t *testing.T, dialogue func(t *testing.T, s setup)) {
	t.Helper()
	overEach(t, transports(), dialogue)
}

// overStreams is described with overAll.
func overStreams(t *testing.T, dialogue func(t *testing.T, s setup)) {
	t.Helper()
	overEach(t, slices.DeleteFunc(transports(), func(o *transport) bool { return o.shuffled || o.sctp }), dialogue)
}

func overEach(t *testing.T, all []*transport, dialogue func(t *testing.T, s setup)) {
	t.Helper()
	for _, over := range all {
		t.Run(over.name, func(t *testing.T) {
			if over.shuffled {
				synctest.Test(t, func(t *testing.T) { dialogue(t, setup{over: over}) })
				return
			}
			t.Parallel()
			over.needed(t)
			dialogue(t, setup{over: over})
		})
	}
}

// needed skips a test over what is not there.
func (o *transport) needed(t testing.TB) {
	t.Helper()
	switch {
	case o.shuffled, o.aware != nil, o.user:
	case o.sctp:
		ln, err := iwarp.Listen(t.Context(), o.network, net.JoinHostPort(o.host, "0"), iwarp.ListenConfig{})
		if errors.Is(err, errors.ErrUnsupported) {
			t.Skipf("not on this system: %v", err)
		}
		must(t, err)
		must(t, ln.Close())
	default:
		must(t, o.listen(t).Close())
	}
}

// listen listens without knowing anything of MPA.
func (o *transport) listen(t testing.TB) net.Listener {
	t.Helper()
	network, addr := o.network, net.JoinHostPort(o.host, "0")
	if o.unix {
		network, addr = "unix", filepath.Join(t.TempDir(), "iwarp")
	}
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), network, addr)
	if err != nil {
		t.Skipf("not on this system: %v", err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

// ways returns how the two sides start.
func (o *transport) ways(t testing.TB, s *setup) (func() (*iwarp.QP, error), func() (*iwarp.Request, error)) {
	t.Helper()
	ctx := within(t)
	network, addr := o.network, net.JoinHostPort(o.host, "0")
	switch {
	case o.aware != nil:
		network, addr = "tcp", "stack"
		s.awarely(*o.aware)
	case o.user:
		network, addr = "tcp", s.inUserSpace(t, o)
	}
	if o.sctp || o.aware != nil || o.user {
		ln, err := iwarp.Listen(ctx, network, addr, s.listen)
		must(t, err)
		t.Cleanup(func() { ln.Close() })
		return func() (*iwarp.QP, error) { return s.Dial(ctx, network, ln.Addr().String()) },
			func() (*iwarp.Request, error) { return ln.Accept(ctx) }
	}
	tcp := o.listen(t)
	var server *tls.Config
	if o.tls {
		server = o.encrypt(t, s)
		tcp = tls.NewListener(tcp, server)
	}
	ln := iwarp.NewListener(tcp, s.listen)
	t.Cleanup(func() { ln.Close() })
	return func() (*iwarp.QP, error) { return o.dial(ctx, s, ln.Addr()) },
		func() (*iwarp.Request, error) { return ln.Accept(ctx) }
}

func (o *transport) dial(ctx context.Context, s *setup, addr net.Addr) (*iwarp.QP, error) {
	if !o.unix {
		return s.Dial(ctx, o.network, addr.String())
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", addr.String())
	if err != nil {
		return nil, err
	}
	return s.Initiate(ctx, c, nil)
}

// encrypt has the Dialer do the client's part of TLS, and returns the server's.
func (o *transport) encrypt(t testing.TB, s *setup) *tls.Config {
	t.Helper()
	web := httptest.NewTLSServer(nil) // it has a certificate that its client knows
	t.Cleanup(web.Close)
	client := web.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	client.ServerName = "example.com"
	s.Wrap = func(c net.Conn) (net.Conn, error) { return tls.Client(c, client), nil }
	return &tls.Config{Certificates: web.TLS.Certificates}
}

// TestTransports leads the dialogues about the end of a connection over each transport;
// those of verbs_test.go are led over each, too.
func TestTransports(t *testing.T) {
	overAll(t, func(t *testing.T, s setup) {
		ini, res := s.connect(t)
		works(t, ini, res)
		finish(t, ini, res)
		if res.State() != iwarp.StateClosed || ini.State() != iwarp.StateClosed {
			t.Errorf("states %v and %v", ini.State(), res.State())
		}
	})
}

// TestTransportsLoseNothing has two ends post Sends and close at once over each transport.
//
// Proves D30, D33.
func TestTransportsLoseNothing(t *testing.T) {
	overAll(t, func(t *testing.T, s setup) {
		s.Dialer, s.accept = iwarp.Dialer{QP: deep()}, iwarp.AcceptConfig{QP: deep()}
		ini, res := s.connect(t)
		postAll(ini, res)
		finish(t, ini, res)
		wantAll(t, ini, res)
	})
}

// TestTransportsTerminate has a Write refused right before a close over each transport.
//
// Proves P38.
func TestTransportsTerminate(t *testing.T) {
	overAll(t, func(t *testing.T, s setup) {
		ini, res := s.connect(t)
		writeNowhere(ini)
		var told *iwarp.TerminateError
		if err := ini.Close(); !errors.As(err, &told) || !told.Remote || told.Code != rdmap.CodeDDPInvalidSTag {
			t.Errorf("Close: %v", err)
		}
		_ = res.Close()
	})
}

// TestTransportsAbort ends connections at once over each transport. Only a Unix socket has no reset.
func TestTransportsAbort(t *testing.T) {
	overAll(t, func(t *testing.T, s setup) {
		ini, res := s.connect(t)
		res.postRecv(1)
		if err := ini.Abort(); err != nil {
			t.Error(err)
		}
		if wc := res.wantReceived(1, iwarp.StatusFlushed); !errors.Is(wc.Err(), iwarp.ErrClosed) {
			t.Errorf("flushed: %v", wc.Err())
		}
		if err := res.wantEnd(); !errors.Is(err, iwarp.ErrConnectionLost) && (err != nil || !s.over.unix) {
			t.Errorf("ended: %v", err)
		}
	})
}
