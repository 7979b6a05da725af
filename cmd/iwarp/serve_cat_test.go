package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stream"
)

// echoed connects to an echo, whose error comes when it has ended.
func echoed(ctx context.Context, t *testing.T, idle time.Duration) (*stream.Conn, <-chan error) {
	t.Helper()
	ln, err := iwarp.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	ended := make(chan error, 1)
	go func() {
		req, err := ln.Accept(t.Context())
		if err == nil {
			err = echo{ln.RNIC(), idle}.serve(ctx, req)
		}
		ended <- err
	}()
	conn, err := stream.Dial(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.QP().Abort() })
	return conn, ended
}

// wantCut has the peer see an end in order of the connection, which is not that of the stream.
func wantCut(t *testing.T, conn *stream.Conn) {
	t.Helper()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the peer has %v", err)
	}
	if err := conn.QP().Close(); err != nil {
		t.Error(err)
	}
}

// TestEchoIdle has a connection that stands still be ended, and the server's error name the option that says so.
func TestEchoIdle(t *testing.T) {
	conn, ended := echoed(t.Context(), t, 20*time.Millisecond)
	wantCut(t, conn)
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(err.Error(), "for 20ms (--idle)") {
		t.Errorf("the server has %v", err)
	}
}

// TestEchoEnds has the end of the server's grace end the connection in order, with the reason at the server.
func TestEchoEnds(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	conn, ended := echoed(ctx, t, time.Hour)
	if _, err := conn.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	why := errors.New("the grace is over")
	end(why)
	wantCut(t, conn)
	if err := <-ended; !errors.Is(err, why) {
		t.Errorf("the server has %v", err)
	}
}
