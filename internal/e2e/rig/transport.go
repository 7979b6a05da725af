package rig

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/iwarpsctp"
	"github.com/goiwarp/iwarp/usertcp"
)

// A Transport is what a connection runs over.
type Transport struct {
	Name          string
	Network, Host string // of TCP; or
	Unix          bool
	Tls           bool
	Sctp          bool
	Shuffled      bool       // a SegmentStream in memory
	Aware         *AwareLink // an MPA-aware TCP in memory
	User          bool       // TCP in user space, over
	Path          usertcp.Path
	Unmarked      bool // without markers
	Wrap          func(end int, l usertcp.Link) usertcp.Link
	Stack         usertcp.Config // of those whose links are wrapped
}

// Needed skips a test over what is not there.
func (o *Transport) Needed(t testing.TB) {
	t.Helper()
	switch {
	case o.Shuffled, o.Aware != nil, o.User:
	case o.Sctp:
		ln, err := (&iwarp.ListenConfig{Network: new(iwarpsctp.Network)}).Listen(
			t.Context(), o.Network, net.JoinHostPort(o.Host, "0"))
		if errors.Is(err, errors.ErrUnsupported) {
			t.Skipf("not on this system: %v", err)
		}
		Must(t, err)
		Must(t, ln.Close())
	default:
		Must(t, o.listen(t).Close())
	}
}

// listen listens without knowing anything of MPA.
func (o *Transport) listen(t testing.TB) net.Listener {
	t.Helper()
	network, addr := o.Network, net.JoinHostPort(o.Host, "0")
	if o.Unix {
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
func (o *Transport) ways(t testing.TB, s *Setup) (func() (*iwarp.QP, error), func() (*iwarp.Request, error)) {
	t.Helper()
	ctx := Within(t)
	network, addr := o.Network, net.JoinHostPort(o.Host, "0")
	switch {
	case o.Aware != nil:
		network, addr = "tcp", "stack"
		s.awarely(*o.Aware)
	case o.User:
		network, addr = "tcp", s.inUserSpace(t, o)
	case o.Sctp:
		s.Network, s.Listen.Network = new(iwarpsctp.Network), new(iwarpsctp.Network)
	}
	if o.Sctp || o.Aware != nil || o.User {
		ln, err := s.Listen.Listen(ctx, network, addr)
		Must(t, err)
		t.Cleanup(func() { ln.Close() })
		return func() (*iwarp.QP, error) { return s.Dial(ctx, network, ln.Addr().String()) },
			func() (*iwarp.Request, error) { return ln.Accept(ctx) }
	}
	tcp := o.listen(t)
	var server *tls.Config
	if o.Tls {
		server = o.Encrypt(t, s)
		tcp = tls.NewListener(tcp, server)
	}
	ln := s.Listen.NewListener(tcp)
	t.Cleanup(func() { ln.Close() })
	return func() (*iwarp.QP, error) { return o.dial(ctx, s, ln.Addr()) },
		func() (*iwarp.Request, error) { return ln.Accept(ctx) }
}

func (o *Transport) dial(ctx context.Context, s *Setup, addr net.Addr) (*iwarp.QP, error) {
	if !o.Unix {
		return s.Dial(ctx, o.Network, addr.String())
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", addr.String())
	if err != nil {
		return nil, err
	}
	return s.Initiate(ctx, c, nil)
}

// Encrypt has the Dialer do the client's part of TLS, and returns the server's.
func (o *Transport) Encrypt(t testing.TB, s *Setup) *tls.Config {
	t.Helper()
	web := httptest.NewTLSServer(nil) // it has a certificate that its client knows
	t.Cleanup(web.Close)
	client := web.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	client.ServerName = "example.com"
	s.Wrap = func(c net.Conn) (net.Conn, error) { return tls.Client(c, client), nil }
	return &tls.Config{Certificates: web.TLS.Certificates}
}

// UserStacks returns two TCPs in user space, and a link between them.
func UserStacks(t testing.TB, path usertcp.Path) (a, b *usertcp.Stack) {
	t.Helper()
	back := path
	back.Seed++
	a, b, err := usertcp.Pair(usertcp.Config{MaxRTO: time.Second}, path, back) // the machine may be busy
	Must(t, err)
	t.Cleanup(func() { Should(t, errors.Join(a.Close(), b.Close())) })
	return a, b
}

// userStacks returns those that a transport is about.
func (o *Transport) userStacks(t testing.TB) (a, b *usertcp.Stack) {
	t.Helper()
	if o.Wrap == nil {
		return UserStacks(t, o.Path)
	}
	one, other := usertcp.Pipe(1500, o.Path, o.Path)
	var stacks []*usertcp.Stack
	for i, l := range []usertcp.Link{one, other} {
		cfg := o.Stack
		cfg.Link, cfg.Addresses = o.Wrap(i, l), []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(1 + i)})}
		s, err := usertcp.New(cfg)
		Must(t, err)
		t.Cleanup(func() { Should(t, s.Close()) })
		stacks = append(stacks, s)
	}
	return stacks[0], stacks[1]
}

// inUserSpace connects by such stacks.
func (s *Setup) inUserSpace(t testing.TB, o *Transport) (addr string) {
	t.Helper()
	a, b := o.userStacks(t)
	s.Stack, s.Listen.Stack = a, b
	s.MPA.Markers, s.Accept.MPA.Markers = !o.Unmarked, !o.Unmarked
	return "192.0.2.2:0"
}
