package rping

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rping/message"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// attend accepts one connection as a server does and leaves its serving to the
// test, which has the client misled.
func attend(t *testing.T, serve func(ctx context.Context, a *attendant) error) (addr string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // the client's end ends it, in the cleanup
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	cfg, _ := config()
	s := newServer(ServerConfig{Config: cfg}, ln.RNIC())
	done := make(chan error, 1)
	go func() {
		defer ln.Close()
		req, err := ln.Accept(ctx)
		if err != nil {
			done <- err
			return
		}
		a, err := s.accept(ctx, req)
		if err != nil {
			done <- err
			return
		}
		defer a.qp.Close()
		done <- serve(ctx, a)
	}()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Errorf("the misleading server: %v", err)
		}
		s.rnic.Close()
	})
	return ln.Addr().String()
}

func TestClientFindsOneWrongByte(t *testing.T) {
	addr := attend(t, func(ctx context.Context, a *attendant) error {
		source, err := a.receive(ctx)
		if err != nil {
			return err
		}
		data, err := a.read(ctx, 0, source)
		if err != nil {
			return err
		}
		data[40] ^= 1
		if err := a.advertise(message.Advert{}); err != nil {
			return err
		}
		sink, err := a.receive(ctx)
		if err != nil {
			return err
		}
		if err := a.write(ctx, data, sink); err != nil {
			return err
		}
		if err := a.advertise(message.Advert{}); err != nil {
			return err
		}
		_, err = a.receive(ctx) // the client leaves
		if !errors.Is(err, iwarp.ErrPeerClosed) {
			return err
		}
		return nil
	})
	cfg, _ := config()
	err := Client(t.Context(), addr, ClientConfig{Config: cfg, Count: 1})
	var wrong *MismatchError
	if !errors.As(err, &wrong) || wrong.Offset != 40 {
		t.Errorf("got %v, want a mismatch at offset 40", err)
	}
	if !strings.Contains(err.Error(), "data mismatch!") {
		t.Errorf("%v: not what rdma-core prints", err)
	}
}

func TestClientIsSentSomethingElse(t *testing.T) {
	addr := attend(t, func(ctx context.Context, a *attendant) error {
		if _, err := a.receive(ctx); err != nil {
			return err
		}
		return a.qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("HTTP/1.1")})
	})
	cfg, _ := config()
	err := Client(t.Context(), addr, ClientConfig{Config: cfg, Count: 1})
	if err == nil || !strings.Contains(err.Error(), "the peer sent a message of length 8") {
		t.Errorf("got %v", err)
	}
}

// aClient is a client whose adverts are the test's.
func aClient(t *testing.T, addr string, change ...func(*Config)) *client {
	t.Helper()
	cfg, _ := config()
	for _, c := range change {
		c(&cfg)
	}
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	t.Cleanup(func() { rnic.Close() })
	e, err := newEndpoint(&cfg, rnic, 64)
	testrig.Must(t, err)
	c := &client{endpoint: e}
	testrig.Must(t, c.connect(t.Context(), addr))
	return c
}

func TestServerRefusesAdverts(t *testing.T) {
	for _, test := range []struct {
		name   string
		advert func(*client) message.Advert
		want   string
	}{
		{"empty", func(c *client) message.Advert { return advertOf(c.data, 0) }, "has 0 bytes"},
		{"too long", func(c *client) message.Advert { return advertOf(c.data, MaxSize+1) }, "has 65536 bytes"},
		{"beyond its region", func(c *client) message.Advert { return advertOf(c.data, 65) }, ""},
		{"a text that is not a ping's", func(c *client) message.Advert { return advertOf(c.data, 64) },
			"data mismatch!"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, nil)
			c := aClient(t, s.addr)
			defer c.qp.Abort()
			testrig.Must(t, c.advertise(test.advert(c)))
			if err := s.wait(t); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the server: got %v, want an error with %q", err, test.want)
			}
		})
	}
}

// A client that does not take our Reply, as siw does not one that asks for markers.
func TestClientLeavesBeforeItsFirstPing(t *testing.T) {
	for _, c := range []struct {
		server, client mpa.Offer
		want           string
	}{
		{mpa.Offer{}, mpa.Offer{}, ""},
		{mpa.Offer{Markers: true}, mpa.Offer{}, "; we asked it for markers"},
		{mpa.Offer{}, mpa.Offer{NoCRC: true}, "; we asked it for CRCs and it did not"},
		{mpa.Offer{NoCRC: true}, mpa.Offer{NoCRC: true}, ""},
	} {
		s := start(t, func(cfg *ServerConfig) { cfg.MPA = c.server })
		client := aClient(t, s.addr, func(cfg *Config) { cfg.MPA = c.client })
		testrig.Should(t, client.qp.Close())
		const left = "rping: the client closed the connection before its first ping"
		if err := s.wait(t); err == nil || !strings.HasPrefix(err.Error(), left+c.want) ||
			c.want == "" && err.Error() != left {
			t.Errorf("%+v: the server: got %v, want %q", c, err, left+c.want)
		}
	}
}

// A server that leaves at once, as rdma-core's does in revision 1, which tells it no
// depth for its Read.
func TestServerLeavesBeforeTheFirstPing(t *testing.T) {
	for dialect, hint := range map[mpa.Dialect]bool{mpa.DialectRFC5044: true, mpa.DialectRFC6581: false} {
		addr := attend(t, func(ctx context.Context, a *attendant) error {
			_, err := a.receive(ctx)
			return err
		})
		cfg, _ := config()
		cfg.MPA.Dialect = dialect
		err := Client(t.Context(), addr, ClientConfig{Config: cfg, Count: 1})
		if !errors.Is(err, iwarp.ErrPeerClosed) || strings.Contains(err.Error(), "use revision 2") != hint {
			t.Errorf("%v: %v", dialect, err)
		}
	}
}

func TestClientLeavesWithinAPing(t *testing.T) {
	s := start(t, nil)
	c := aClient(t, s.addr)
	fill(c.data.Bytes(), 0)
	testrig.Must(t, c.exchange(t.Context(), c.data))
	testrig.Should(t, c.qp.Close())
	if err := s.wait(t); !errors.Is(err, errWithinPing) {
		t.Errorf("the server: got %v", err)
	}
}
