package rping

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
)

// maxClients is how many clients a persistent server serves at a time.
const maxClients = 256

// Serve serves one client, or with Persistent as many as come until the context
// ends. What ails one of many clients is printed, and does not end the server.
func Serve(ctx context.Context, ln *iwarp.Listener, cfg ServerConfig) error {
	s := &server{cfg: cfg, rnic: cfg.rnic(), places: make(chan struct{}, maxClients)}
	defer s.rnic.Close()
	if cfg.Persistent {
		return s.serveAll(ctx, ln)
	}
	req, err := ln.Accept(ctx)
	if err != nil {
		return err
	}
	return s.serve(ctx, req)
}

type server struct {
	cfg    ServerConfig
	rnic   *iwarp.RNIC
	places chan struct{}
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
		select {
		case s.places <- struct{}{}:
		default:
			if conn, err := req.Reject([]byte("too many clients")); err == nil {
				conn.Close()
			}
			continue
		}
		clients.Go(func() {
			defer func() { <-s.places }()
			if err := s.serve(ctx, req); err != nil && ctx.Err() == nil {
				s.cfg.Err.Printf("%v: %v", req.RemoteAddr(), err)
			}
		})
	}
}

// rejectWait is how long a rejected client has to close first.
const rejectWait = time.Second

// reject rejects a client and leaves it to the client to close: Linux's siw
// now and then loses the private data of a Reply behind which the stream ends.
func reject(req *iwarp.Request, reason string) error {
	conn, err := req.Reject([]byte(reason))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(rejectWait)); err != nil {
		return err
	}
	_, _ = conn.Read(make([]byte, 1)) // nothing comes but the end, or the deadline
	return nil
}

// serve serves the client of one request until it disconnects.
func (s *server) serve(ctx context.Context, req *iwarp.Request) error {
	s.cfg.privateData(req.PrivateData())
	if s.cfg.Reject != nil {
		return reject(req, *s.cfg.Reject)
	}
	c, err := s.accept(ctx, req)
	if err != nil {
		return err
	}
	defer c.qp.Close()
	ctx, cancel := c.whileConnected(ctx)
	defer cancel()
	for ping := 0; ; ping++ {
		err := c.serve(ctx, ping)
		switch {
		case errors.Is(err, errDisconnected):
			s.cfg.Err.Print("server DISCONNECT EVENT...")
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
		return nil, errors.Join(err, reject(req, "no memory"))
	}
	cfg := iwarp.AcceptConfig{PD: e.pd, QP: e.qpConfig(), Preset: s.cfg.Preset, MPA: e.offer(), Prepare: e.prepare}
	if e.qp, err = req.Accept(ctx, cfg); err != nil {
		return nil, err
	}
	e.connected(e.qp)
	return &attendant{endpoint: e, want: make([]byte, MaxSize)}, nil
}
