package rping

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/admission"
)

// maxClients is how many clients a persistent server serves at a time. One more takes the
// place of one that is silent, as package admission has it.
const maxClients = 256

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
	return s.serve(ctx, req, nil)
}

type server struct {
	cfg      ServerConfig
	rnic     *iwarp.RNIC
	slots    *admission.Table
	rejecter admission.Rejecter

	watching sync.Mutex
}

func newServer(cfg ServerConfig, rnic *iwarp.RNIC) *server {
	s := &server{cfg: cfg, rnic: rnic, slots: admission.NewServerTable(maxClients, admission.Silence)}
	if watch := cfg.Watch; watch != nil {
		s.cfg.Watch = func(e Event) {
			s.watching.Lock()
			defer s.watching.Unlock()
			watch(e)
		}
	}
	return s
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
			err := s.receive(ctx, req)
			if rejected := (*admission.RejectedError)(nil); errors.As(err, &rejected) {
				err = rejected.Untold
			}
			if err != nil && ctx.Err() == nil {
				s.cfg.report(ClientFailed{req.RemoteAddr(), err})
			}
		})
	}
}

// receive serves one of many clients, if there is a place for it.
func (s *server) receive(ctx context.Context, req *iwarp.Request) error {
	client, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	g, full := s.slots.Enter(req.RemoteAddr(), leave)
	if full != nil {
		return s.rejecter.RejectBecause(req, []byte("iwarp rping: "+full.Error()), full)
	}
	defer g.Leave()
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

// Serve serves one client until it disconnects, or the context ends. The error is a *admission.RejectedError for one
// who was rejected because there is no place; for one who was rejected as ServerConfig.Reject has it, there is none.
func (s *Server) Serve(ctx context.Context, req *iwarp.Request) error {
	return s.server.receive(ctx, req)
}

// serve serves the client of one request until it disconnects. It has a place where there are many.
func (s *server) serve(ctx context.Context, req *iwarp.Request, slot *admission.Slot) error {
	s.cfg.privateData(req.PrivateData())
	if s.cfg.Reject != nil {
		return s.rejecter.RejectAndWait(req, []byte(*s.cfg.Reject))
	}
	c, err := s.accept(ctx, req)
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	defer c.close()
	c.slot = slot
	for ping := 0; ; ping++ {
		err := c.serve(ctx, ping)
		switch {
		case errors.Is(context.Cause(ctx), admission.ErrSilent):
			_ = c.qp.Abort()
			return fmt.Errorf("rping: %w", admission.ErrSilent)
		case errors.Is(err, iwarp.ErrPeerClosed):
			s.cfg.report(Disconnected{Server: true})
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
		return nil, s.rejecter.RejectBecause(req, []byte("iwarp rping: no memory left: try again later"), err)
	}
	cfg := iwarp.AcceptConfig{PD: e.pd, QP: e.qpConfig(), Preset: s.cfg.Preset,
		MPA: e.offer().Answer(), Prepare: e.prepare}
	if e.qp, err = req.Accept(ctx, cfg); err != nil {
		e.qp = nil
		e.close()
		return nil, err
	}
	e.report(Connected{e.qp.RemoteAddr(), e.qp.Negotiated()})
	return &attendant{endpoint: e, want: make([]byte, MaxSize)}, nil
}
