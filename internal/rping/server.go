package rping

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/refuse"
)

// maxClients is how many clients a persistent server serves at a time. One more takes the
// place of the one that has been silent longest, if that has been for minSilence.
const (
	maxClients = 256
	minSilence = time.Second
)

// errSilent is why a client had to go.
var errSilent = errors.New("rping: the client was silent, and another needed its place")

// Serve serves one client, or with Persistent as many as come until the context
// ends. What goes wrong with one of many clients is told to the watcher, and does not end the server. A client that
// has gone leaves nothing. What it creates is of the Listener's RNIC, which is closed in the end.
func Serve(ctx context.Context, ln *iwarp.Listener, cfg ServerConfig) error {
	return newServer(cfg, ln.RNIC()).run(ctx, ln)
}

// Start serves in a goroutine. stop ends that, closes the Listener, and returns Serve's error.
func Start(ctx context.Context, ln *iwarp.Listener, cfg ServerConfig) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, ln, cfg) }()
	return func() error {
		cancel()
		_ = ln.Close()
		return <-ended
	}
}

func (s *server) run(ctx context.Context, ln *iwarp.Listener) error {
	defer s.rnic.Close()
	if s.cfg.Persistent {
		return s.serveAll(ctx, ln)
	}
	req, err := ln.Accept(ctx)
	if err != nil {
		return err
	}
	return s.serve(ctx, req, new(guest))
}

type server struct {
	cfg     ServerConfig
	rnic    *iwarp.RNIC
	silence time.Duration // how long a client is silent that may lose its place
	places  int

	watching sync.Mutex

	mu     sync.Mutex
	guests []*guest
}

func newServer(cfg ServerConfig, rnic *iwarp.RNIC) *server {
	s := &server{cfg: cfg, rnic: rnic, silence: minSilence, places: maxClients}
	if watch := cfg.Watch; watch != nil {
		s.cfg.Watch = func(e Event) {
			s.watching.Lock()
			defer s.watching.Unlock()
			watch(e)
		}
	}
	return s
}

// A guest is a client that has a place.
type guest struct {
	came  time.Time
	heard atomic.Pointer[atomic.Int64] // of its endpoint, once there is one
	leave context.CancelCauseFunc
}

// last is when the guest was heard of last.
func (g *guest) last() time.Time {
	if heard := g.heard.Load(); heard != nil && heard.Load() != 0 {
		return time.Unix(0, heard.Load())
	}
	return g.came
}

func (s *server) serveAll(ctx context.Context, ln *iwarp.Listener) error {
	var clients sync.WaitGroup
	defer clients.Wait()
	for {
		req, err := ln.Accept(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		clients.Go(func() {
			if err := s.receive(ctx, req); err != nil && ctx.Err() == nil {
				s.cfg.tell(ClientFailed{req.RemoteAddr(), err})
			}
		})
	}
}

// receive serves one of many clients, if there is a place for it.
func (s *server) receive(ctx context.Context, req *iwarp.Request) error {
	client, leave := context.WithCancelCause(ctx)
	g := &guest{came: time.Now(), leave: leave}
	if !s.enter(g) {
		leave(nil)
		_ = refuse.Politely(req, "too many clients")
		return nil
	}
	defer s.left(g)
	return s.serve(client, req, g)
}

// A Server is one of many clients, whose connections come by a Listener that has other connections too.
type Server struct{ server *server }

// NewServer makes one that takes what it needs of an RNIC, and leaves it open.
func NewServer(rnic *iwarp.RNIC, cfg Config) *Server {
	return &Server{newServer(ServerConfig{Config: cfg, Persistent: true}, rnic)}
}

// Knows reports whether a request is one of a client's, rdma-core's included: those have no private data.
func (*Server) Knows(req *iwarp.Request) bool { return len(req.PrivateData()) == 0 }

// Serve serves one client until it disconnects, or the context ends.
func (s *Server) Serve(ctx context.Context, req *iwarp.Request) error {
	return s.server.receive(ctx, req)
}

// enter gives a guest a place, if need be that of the most silent one.
func (s *server) enter(g *guest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.guests) == s.places {
		most := slices.MinFunc(s.guests, func(a, b *guest) int { return a.last().Compare(b.last()) })
		if time.Since(most.last()) < s.silence {
			return false
		}
		most.leave(errSilent)
		s.forget(most)
	}
	s.guests = append(s.guests, g)
	return true
}

func (s *server) left(g *guest) {
	g.leave(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(g)
}

func (s *server) forget(g *guest) {
	s.guests = slices.DeleteFunc(s.guests, func(h *guest) bool { return h == g })
}

// serve serves the client of one request until it disconnects.
func (s *server) serve(ctx context.Context, req *iwarp.Request, g *guest) error {
	s.cfg.privateData(req.PrivateData())
	if s.cfg.Reject != nil {
		return refuse.Politely(req, *s.cfg.Reject)
	}
	c, err := s.accept(ctx, req)
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	defer c.close()
	g.heard.Store(&c.heard)
	for ping := 0; ; ping++ {
		err := c.serve(ctx, ping)
		switch {
		case errors.Is(context.Cause(ctx), errSilent):
			_ = c.qp.Abort()
			return errSilent
		case errors.Is(err, iwarp.ErrPeerClosed):
			s.cfg.tell(Disconnected{Server: true})
			return left(c.qp, req, ping)
		case err != nil:
			return fmt.Errorf("rping: serving ping %d: %w", ping, err)
		}
	}
}

// left judges a client's orderly close after so many pings.
func left(qp *iwarp.QP, req *iwarp.Request, pings int) error {
	n := qp.Negotiated()
	switch {
	case pings > 0:
		return nil
	case n.MarkersReceive:
		return errors.New("rping: the client closed the connection before its first ping; we asked it for markers, which not every peer has: Linux's siw refuses them")
	case n.CRC && !req.MPA().CRC:
		return errors.New("rping: the client closed the connection before its first ping; we asked it for CRCs and it did not, which Linux's siw refuses if told so (mpa_crc_strict): do without")
	}
	return errors.New("rping: the client closed the connection before its first ping")
}

func (s *server) accept(ctx context.Context, req *iwarp.Request) (*attendant, error) {
	e, err := newEndpoint(&s.cfg.Config, s.rnic, MaxSize)
	if err != nil {
		return nil, errors.Join(err, refuse.Politely(req, "no memory"))
	}
	cfg := iwarp.AcceptConfig{PD: e.pd, QP: e.qpConfig(), Preset: s.cfg.Preset, MPA: e.offer().Answer(), Prepare: e.prepare}
	if e.qp, err = req.Accept(ctx, cfg); err != nil {
		e.qp = nil
		e.close()
		return nil, err
	}
	e.tell(Connected{e.qp.RemoteAddr(), e.qp.Negotiated()})
	return &attendant{endpoint: e, want: make([]byte, MaxSize)}, nil
}
