package rping

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// told collects what a watcher is told.
type told struct {
	mu     sync.Mutex
	events []Event
	more   chan struct{} // closed, and made anew, with each event
}

func (w *told) watch(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := e.(Pinged); ok {
		p.Text = bytes.Clone(p.Text)
		e = p
	}
	w.events = append(w.events, e)
	close(w.more)
	w.more = make(chan struct{})
}

// of returns the events of one type, in order.
func of[E Event](w *told) (all []E) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e, ok := e.(E); ok {
			all = append(all, e)
		}
	}
	return all
}

// pinged waits until a text with so many pings before it has come.
func (w *told) pinged(n int) {
	for {
		w.mu.Lock()
		more := w.more
		w.mu.Unlock()
		if len(of[Pinged](w)) > n {
			return
		}
		<-more
	}
}

// config returns a configuration whose events are collected.
func config() (Config, *told) {
	w := &told{more: make(chan struct{})}
	return Config{Validate: true, Watch: w.watch}, w
}

// A testServer is a server that runs for the length of a test.
type testServer struct {
	addr  string
	told  *told
	stop  context.CancelFunc
	ended chan error
}

func start(t *testing.T, adjust func(*ServerConfig), change ...func(*server)) *testServer {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	s := &testServer{addr: ln.Addr().String(), stop: stop, ended: make(chan error, 1)}
	var cfg ServerConfig
	cfg.Config, s.told = config()
	if adjust != nil {
		adjust(&cfg)
	}
	made := newServer(cfg, ln.RNIC())
	for _, c := range change {
		c(made)
	}
	go func() {
		defer ln.Close()
		s.ended <- made.run(ctx, ln)
	}()
	t.Cleanup(stop)
	return s
}

// wait returns how the server ended.
func (s *testServer) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-s.ended:
		return err
	case <-time.After(testrig.Soon):
		t.Fatal("the server does not end")
		return nil
	}
}

func TestPings(t *testing.T) {
	for _, size := range []int{1, 3, 64, 100, 1001, 4096, 65000, MaxSize} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			s := start(t, nil)
			cfg, client := config()
			testrig.Must(t, Client(t.Context(), s.addr, ClientConfig{Config: cfg, Size: size, Count: 3}))
			testrig.Must(t, s.wait(t))
			for i, p := range append(of[Pinged](client), of[Pinged](s.told)...) {
				want := make([]byte, size)
				fill(want, i%3)
				if p.Server != (i >= 3) || !bytes.Equal(p.Text, text(want)) {
					t.Errorf("ping %d: server %v, text %q", i%3, p.Server, p.Text)
				}
			}
			if got := of[Disconnected](s.told); len(got) != 1 || !got[0].Server {
				t.Errorf("the server was told of ends: %v", got)
			}
		})
	}
}

func TestStartups(t *testing.T) {
	for _, test := range []struct {
		name           string
		client, server mpa.Offer
	}{
		{"revision 1", mpa.Offer{Dialect: mpa.DialectRFC5044}, mpa.Offer{}},
		{"client-server", mpa.Offer{ClientServer: true}, mpa.Offer{}},
		{"no CRC", mpa.Offer{NoCRC: true}, mpa.Offer{NoCRC: true}},
		{"markers wanted by the client", mpa.Offer{Markers: true}, mpa.Offer{}},
		{"markers wanted by the server", mpa.Offer{}, mpa.Offer{Markers: true}},
		{"RTR by Read", mpa.Offer{RTR: mpa.RTRRead}, mpa.Offer{}},
		{"RTR by Send", mpa.Offer{RTR: mpa.RTRSend}, mpa.Offer{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, func(c *ServerConfig) { c.MPA = test.server })
			cfg, _ := config()
			cfg.MPA = test.client
			testrig.Should(t, Client(t.Context(), s.addr, ClientConfig{Config: cfg, Size: 1001, Count: 5}))
			testrig.Should(t, s.wait(t))
		})
	}
}

func TestPrivateDataBothWays(t *testing.T) {
	s := start(t, func(c *ServerConfig) { c.MPA.PrivateData = []byte("from the server") })
	cfg, client := config()
	cfg.MPA.PrivateData = []byte("from the client")
	testrig.Must(t, Client(t.Context(), s.addr, ClientConfig{Config: cfg, Count: 1}))
	testrig.Must(t, s.wait(t))
	if got := of[Connected](client); len(got) != 1 || got[0].Negotiated.IRD != 1 ||
		string(got[0].Negotiated.PrivateData) != "from the server" {
		t.Errorf("the client was told what was negotiated: %+v", got)
	}
	if got := of[PrivateData](client); len(got) != 1 || string(got[0]) != "from the server" {
		t.Errorf("the client was told: %q", got)
	}
	if got := of[PrivateData](s.told); len(got) != 1 || string(got[0]) != "from the client" {
		t.Errorf("the server was told: %q", got)
	}
}

func TestReject(t *testing.T) {
	reason := "not today"
	s := start(t, func(c *ServerConfig) { c.Reject = &reason })
	cfg, client := config()
	err := Client(t.Context(), s.addr, ClientConfig{Config: cfg, Count: 1})
	var rejected *iwarp.RejectError
	if !errors.As(err, &rejected) || string(rejected.PrivateData) != reason {
		t.Errorf("got %v, want a rejection that says %q", err, reason)
	}
	if got := of[PrivateData](client); len(got) != 1 || string(got[0]) != reason {
		t.Errorf("the client was told: %q", got)
	}
	testrig.Should(t, s.wait(t))
}

func TestPersistentServer(t *testing.T) {
	s := start(t, func(c *ServerConfig) { c.Persistent = true })
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			cfg, _ := config()
			if err := Client(t.Context(), s.addr, ClientConfig{Config: cfg, Size: 100 + i, Count: 20}); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	clients.Wait()
	s.stop()
	testrig.Should(t, s.wait(t))
}

// A server that stops ends a client in error, but an endless one that takes it for the end.
func TestServerStops(t *testing.T) {
	for _, c := range []ClientConfig{{}, {MayClose: true}, {Count: 1 << 30, MayClose: true}} {
		s := start(t, func(c *ServerConfig) { c.Persistent = true })
		c.Config, _ = config()
		ended := make(chan error, 1)
		go func() { ended <- Client(t.Context(), s.addr, c) }()
		s.told.pinged(3)
		s.stop()
		if err := <-ended; (err == nil) != (c.Count == 0 && c.MayClose) {
			t.Errorf("client of %d pings: %v", c.Count, err)
		}
		if err := s.wait(t); err != nil {
			t.Errorf("server: %v", err)
		}
	}
}

func TestClientInterrupted(t *testing.T) {
	for _, count := range []int{0, 1 << 30} {
		s := start(t, nil)
		ctx, interrupt := context.WithCancel(t.Context())
		cfg, client := config()
		ended := make(chan error, 1)
		go func() { ended <- Client(ctx, s.addr, ClientConfig{Config: cfg, Count: count}) }()
		client.pinged(3)
		interrupt()
		if err := <-ended; (err != nil) != (count > 0) {
			t.Errorf("client of %d pings: %v", count, err)
		}
		if err := s.wait(t); err != nil {
			t.Errorf("the ping under way was not finished: %v", err)
		}
	}
}

func TestInvalidSize(t *testing.T) {
	for _, size := range []int{-1, MaxSize + 1} {
		if err := Client(t.Context(), "127.0.0.1:1", ClientConfig{Size: size}); err == nil ||
			!strings.Contains(err.Error(), "invalid size") {
			t.Errorf("size %d: got %v", size, err)
		}
	}
}

// TestNoRoomForReason: a client is rejected without a reason where the Reply has no room for that, and not left without
// an answer.
func TestNoRoomForReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		siw, err := iwarp.LookupPreset("siw")
		testrig.Must(t, err)
		long := strings.Repeat("a", 300) // siw takes 252 bytes
		s := newServer(ServerConfig{Config: Config{Preset: &siw}, Persistent: true, Reject: &long},
			iwarp.NewRNIC(iwarp.RNICConfig{}))
		under := testrig.NewListener("server")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		ln := (&iwarp.ListenConfig{Preset: &siw}).NewListener(under)
		go func() { ended <- s.run(ctx, ln) }()
		ours, theirs := testrig.Pipe("client", "server")
		testrig.Must(t, under.Offer(t.Context(), theirs))
		_, err = (&iwarp.Dialer{Preset: &siw}).Initiate(t.Context(), ours, nil)
		refused := (*iwarp.RejectError)(nil)
		if !errors.As(err, &refused) || len(refused.PrivateData) != 0 {
			t.Errorf("got %v", err)
		} else {
			testrig.Should(t, refused.Conn.Close())
		}
		stop()
		testrig.Should(t, <-ended)
		testrig.Should(t, ln.Close())
	})
}
