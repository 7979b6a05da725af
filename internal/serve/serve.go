// Package serve has several services on one Listener, which are told apart by the private data of the requests, and
// ends them in order.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/admission"
	"github.com/goiwarp/iwarp/internal/sparse"
)

// A Service is one of those on the Listener.
type Service struct {
	Name string
	// Wants says what the private data of its requests are, for the log and for peers that have others.
	Wants string
	// Knows reports whether a request is for the service.
	Knows func(req *iwarp.Request) bool
	// Serve answers a request, and returns when its connection has ended. When the context ends it has to return soon.
	// A request that it has not answered is closed then. The error wraps a *admission.RejectedError if it has rejected
	// the request.
	Serve func(ctx context.Context, req *iwarp.Request) error
	// Off, if it is set, has its requests rejected, with this reason. It is not served then, and Serve is not needed.
	Off string
}

// Config configures a Server.
type Config struct {
	// Services are asked in this order.
	Services []Service
	// MaxConnections bounds the connections that are served at a time. One more takes the place of one on which nothing
	// moves, or is rejected. Three quarters of them may come from one address. Zero is no bound.
	MaxConnections int
	// Grace is how long connections may go on when the server ends.
	Grace time.Duration
	// Log gets a record of what becomes of each connection.
	Log *slog.Logger
	// Watch, if it is set, is told of each State that is entered.
	Watch func(State)
}

// After the grace services have lastWords to tell their peers that the server ends, and what is left then closeTime to
// close in order.
const (
	lastWords = time.Second
	closeTime = 5 * time.Second
)

// A Server serves connections until it is told to end.
type Server struct {
	cfg      Config
	requests sync.WaitGroup
	rejecter admission.Rejecter
	refusals *sparse.Handler // what is logged of requests that get no service
	failures *sparse.Handler // and of connections that fail: one client can cause many
	slots    *admission.Table

	mu      sync.Mutex
	stats   Stats
	clients map[*client]bool
}

// New makes a Server.
func New(cfg Config) *Server {
	s := &Server{
		cfg: cfg, refusals: sparse.New(cfg.Log.Handler()), failures: sparse.New(cfg.Log.Handler()),
		slots: admission.NewServerTable(cfg.MaxConnections, admission.Silence), clients: make(map[*client]bool),
	}
	s.stats.Services = make(map[string]ServiceStats)
	for _, service := range cfg.Services {
		if service.Off == "" {
			s.stats.Services[service.Name] = ServiceStats{}
		}
	}
	return s
}

// Run serves until the context ends, and then drains: nobody new is taken in, and those who are there may go on for the
// grace. It closes the Listener and its RNIC. The error is a *CutError if connections had not ended by then.
func (s *Server) Run(ctx context.Context, ln *iwarp.Listener) error {
	visiting, leave := context.WithCancelCause(context.WithoutCancel(ctx))
	defer leave(nil)
	if s.cfg.MaxConnections > 0 {
		go s.watch(visiting, ln.RNIC())
	}
	s.become(Serving)
	err := s.acceptAll(ctx, visiting, ln)
	s.become(Draining)
	return errors.Join(err, s.drain(ln, leave))
}

func (s *Server) acceptAll(ctx, visiting context.Context, ln *iwarp.Listener) error {
	for {
		req, err := ln.Accept(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		s.receive(visiting, req)
	}
}

// receive has the service serve that a request is for.
func (s *Server) receive(ctx context.Context, req *iwarp.Request) {
	service := s.find(req)
	switch {
	case service == nil:
		s.reject(req, func(c *Stats) { c.Unknown++ },
			"iwarp serve: these private data are of no service here: "+s.wanted())
	case service.Off != "":
		s.reject(req, func(c *Stats) { c.Off++ }, "iwarp serve: "+service.Off)
	default:
		s.admit(ctx, service, req)
	}
}

// admit has the service serve if there is a place for it.
func (s *Server) admit(ctx context.Context, service *Service, req *iwarp.Request) {
	ctx, leave := context.WithCancelCause(ctx)
	c, full := s.enter(service.Name, req, leave)
	if full != nil {
		leave(nil)
		s.reject(req, func(n *Stats) { n.Full++ }, "iwarp serve: "+full.Error())
		return
	}
	s.requests.Go(func() { s.serve(ctx, service, c, req) })
}

func (s *Server) find(req *iwarp.Request) *Service {
	for i := range s.cfg.Services {
		if s.cfg.Services[i].Knows(req) {
			return &s.cfg.Services[i]
		}
	}
	return nil
}

// wanted says which private data there are services for.
func (s *Server) wanted() string {
	var all []string
	for _, service := range s.cfg.Services {
		if service.Off == "" {
			all = append(all, service.Name+" ("+service.Wants+")")
		}
	}
	return strings.Join(all, ", ")
}

func (s *Server) serve(ctx context.Context, service *Service, c *client, req *iwarp.Request) {
	defer c.leave(nil)
	log := s.cfg.Log.With("service", service.Name, "remote", c.remote)
	log.Info("connection")
	began := time.Now()
	err := service.Serve(ctx, req)
	_ = req.Close() // if it was not answered
	if gaveWay := context.Cause(ctx); errors.Is(gaveWay, admission.ErrSilent) {
		err = fmt.Errorf("serve: %w", gaveWay)
	}
	s.left(c, err)
	after := time.Since(began).Round(time.Millisecond).String()
	log = log.With("after", after)
	rejected := (*admission.RejectedError)(nil)
	switch {
	case errors.As(err, &rejected):
		log.Warn("rejected", "reason", err.Error())
	case errors.Is(err, admission.ErrSilent):
		log.Warn("connection gave way", "reason", err.Error())
	case err != nil:
		slog.New(s.failures).Warn("connection failed", "service", service.Name, "remote", c.remote, "after", after,
			"error", err.Error())
	default:
		log.Info("connection ended")
	}
}

// drain ends the Listener, and waits for the connections.
func (s *Server) drain(ln *iwarp.Listener, leave context.CancelCauseFunc) error {
	s.cfg.Log.Info("draining", "connections", s.Stats().Connections(), "grace", s.cfg.Grace.String())
	err := ln.Close()
	if errors.Is(err, iwarp.ErrClosed) {
		err = nil // it has ended by itself
	}
	left := s.wait(s.cfg.Grace)
	if left > 0 {
		leave(&CutError{left, s.cfg.Grace})
		s.wait(lastWords)
		err = errors.Join(err, &CutError{left, s.cfg.Grace})
	}
	closing, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if cut := ln.RNIC().Shutdown(closing); left == 0 { // else it says no more
		err = errors.Join(err, cut)
	}
	s.requests.Wait()
	s.refusals.Flush()
	s.failures.Flush()
	s.cfg.Log.Info("ended", "cut", left)
	return err
}

// wait returns how many connections are left after a time, which it waits for at most.
func (s *Server) wait(most time.Duration) int {
	ended := make(chan struct{})
	go func() {
		s.requests.Wait()
		close(ended)
	}()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ended:
		return 0
	case <-timer.C:
		return s.Stats().Connections()
	}
}

// A CutError tells of connections that did not end within the grace.
type CutError struct {
	Connections int
	Grace       time.Duration
}

// Error tells how many.
func (e *CutError) Error() string {
	return fmt.Sprintf("serve: connections that were ended, as they still went on after the grace of %v: %d",
		e.Grace, e.Connections)
}
