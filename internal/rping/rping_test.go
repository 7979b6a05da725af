package rping

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// printed collects what a role prints.
type printed struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.Write(b)
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.String()
}

// config returns a configuration whose prints are collected.
func config() (cfg Config, out, err *printed) {
	out, err = new(printed), new(printed)
	return Config{Verbose: true, Validate: true, Out: log.New(out, "", 0), Err: log.New(err, "", 0)}, out, err
}

// A testServer is a server that runs for the length of a test.
type testServer struct {
	addr     string
	out, err *printed
	stop     context.CancelFunc
	ended    chan error
}

func start(t *testing.T, adjust func(*ServerConfig)) *testServer {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0", iwarp.ListenConfig{})
	if err != nil {
		t.Fatal(err)
	}
	s := &testServer{addr: ln.Addr().String(), stop: stop, ended: make(chan error, 1)}
	var cfg ServerConfig
	cfg.Config, s.out, s.err = config()
	if adjust != nil {
		adjust(&cfg)
	}
	go func() {
		defer ln.Close()
		s.ended <- Serve(ctx, ln, cfg)
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
	case <-time.After(20 * time.Second):
		t.Fatal("the server does not end")
		return nil
	}
}

func TestPings(t *testing.T) {
	for _, size := range []int{1, 3, 64, 100, 1001, 4096, 65000, MaxSize} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			s := start(t, nil)
			cfg, out, _ := config()
			if err := Client(t.Context(), s.addr, ClientConfig{Config: cfg, Size: size, Count: 3}); err != nil {
				t.Fatal(err)
			}
			if err := s.wait(t); err != nil {
				t.Fatal(err)
			}
			var client, server strings.Builder
			for ping := range 3 {
				buf := make([]byte, size)
				fill(buf, ping)
				fmt.Fprintf(&client, "ping data: %s\n", text(buf))
				fmt.Fprintf(&server, "server ping data: %s\n", text(buf))
			}
			if got := out.String(); got != client.String() {
				t.Errorf("the client printed:\n%s", got)
			}
			if got := s.out.String(); got != server.String() {
				t.Errorf("the server printed:\n%s", got)
			}
			if got := s.err.String(); got != "server DISCONNECT EVENT...\n" {
				t.Errorf("the server printed on stderr:\n%s", got)
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
			cfg, _, _ := config()
			cfg.MPA = test.client
			if err := Client(t.Context(), s.addr, ClientConfig{Config: cfg, Size: 1001, Count: 5}); err != nil {
				t.Error(err)
			}
			if err := s.wait(t); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPrivateDataBothWays(t *testing.T) {
	s := start(t, func(c *ServerConfig) { c.MPA.PrivateData = []byte("from the server") })
	cfg, out, err := config()
	cfg.MPA.PrivateData, cfg.Debug = []byte("from the client"), true
	if err := Client(t.Context(), s.addr, ClientConfig{Config: cfg, Count: 1}); err != nil {
		t.Fatal(err)
	}
	if err := s.wait(t); err != nil {
		t.Fatal(err)
	}
	const negotiated = `negotiated: revision=2 dialect="RFC 6581" crc=on markers=none/none ird=1 ord=1 rtr=write private-data="from the server"`
	if got := err.String(); !strings.Contains(got, negotiated) {
		t.Errorf("the client did not print what was negotiated:\n%s", got)
	}
	if got := out.String(); !strings.Contains(got, `private data received: "from the server"`) {
		t.Errorf("the client printed:\n%s", got)
	}
	if got := s.out.String(); !strings.Contains(got, `private data received: "from the client"`) {
		t.Errorf("the server printed:\n%s", got)
	}
}

func TestReject(t *testing.T) {
	reason := "not today"
	s := start(t, func(c *ServerConfig) { c.Reject = &reason })
	cfg, out, _ := config()
	err := Client(t.Context(), s.addr, ClientConfig{Config: cfg, Count: 1})
	var rejected *iwarp.RejectError
	if !errors.As(err, &rejected) || string(rejected.PrivateData) != reason {
		t.Errorf("got %v, want a rejection that says %q", err, reason)
	}
	if got := out.String(); got != "private data received: \"not today\"\n" {
		t.Errorf("the client printed:\n%s", got)
	}
	if err := s.wait(t); err != nil {
		t.Error(err)
	}
}

func TestPersistentServer(t *testing.T) {
	s := start(t, func(c *ServerConfig) { c.Persistent, c.Verbose = true, false })
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			cfg, _, _ := config()
			if err := Client(t.Context(), s.addr, ClientConfig{Config: cfg, Size: 100 + i, Count: 20}); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	clients.Wait()
	s.stop()
	if err := s.wait(t); err != nil {
		t.Error(err)
	}
}

// A server that stops ends an endless client in order, and one that has pings
// left to make in error.
func TestServerStops(t *testing.T) {
	for _, count := range []int{0, 1 << 30} {
		s := start(t, func(c *ServerConfig) { c.Persistent = true })
		cfg, _, _ := config()
		ended := make(chan error, 1)
		go func() { ended <- Client(t.Context(), s.addr, ClientConfig{Config: cfg, Count: count}) }()
		for !strings.Contains(s.out.String(), "rdma-ping-3") {
			time.Sleep(time.Millisecond)
		}
		s.stop()
		if err := <-ended; (err != nil) != (count > 0) {
			t.Errorf("client of %d pings: %v", count, err)
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
		cfg, out, _ := config()
		ended := make(chan error, 1)
		go func() { ended <- Client(ctx, s.addr, ClientConfig{Config: cfg, Count: count}) }()
		for !strings.Contains(out.String(), "rdma-ping-3") {
			time.Sleep(time.Millisecond)
		}
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
		if err := Client(t.Context(), "127.0.0.1:1", ClientConfig{Size: size}); err == nil || !strings.Contains(err.Error(), "invalid size") {
			t.Errorf("size %d: got %v", size, err)
		}
	}
}
