package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/admission"
	"github.com/goiwarp/iwarp/internal/rsockets"
	"github.com/goiwarp/iwarp/stream"
)

// An echo sends those who speak the protocol of rsockets back what they send.
type echo struct {
	rnic *iwarp.RNIC
	idle time.Duration // how long a connection may stand still
}

func (echo) knows(req *iwarp.Request) bool {
	_, err := rsockets.ParseHello(req.PrivateData())
	return err == nil
}

func (e echo) serve(ctx context.Context, req *iwarp.Request) error {
	pd, err := e.rnic.AllocPD()
	if err != nil {
		return err
	}
	defer pd.Close()
	conn, err := (&stream.Acceptor{RDMA: iwarp.AcceptConfig{PD: pd}}).Accept(ctx, req)
	switch {
	case errors.Is(err, iwarp.ErrLimit):
		return &admission.RejectedError{Why: err}
	case err != nil:
		return err
	}
	return attend(ctx, conn, (*iwarp.QP).Close, func() error {
		_, err := conn.ReadFrom(patient{conn, e.idle})
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			_ = conn.QP().Close() // the peer sees that this is not the end of the stream
			return fmt.Errorf("nothing has moved for %v (--idle): %w", e.idle, err)
		case err != nil:
			return err
		}
		return conn.CloseWrite()
	})
}

// patient reads from a connection, which may stand still for so long, for reading and for writing.
type patient struct {
	conn *stream.Conn
	idle time.Duration
}

// Read reads, and has the time begin.
func (p patient) Read(b []byte) (int, error) {
	if err := p.conn.SetDeadline(time.Now().Add(p.idle)); err != nil {
		return 0, err
	}
	return p.conn.Read(b)
}
