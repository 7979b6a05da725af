package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/stream"
)

// catEnds connects two ends in this process. cat is the command's.
func catEnds(t *testing.T) (cat, peer *stream.Conn) {
	t.Helper()
	ln, came := catListener(t)
	cat, err := stream.Dial(t.Context(), "tcp", ln)
	if err != nil {
		t.Fatal(err)
	}
	peer = <-came
	t.Cleanup(func() { _ = cat.QP().Abort(); _ = peer.QP().Abort() })
	return cat, peer
}

// catListener takes one connection.
func catListener(t *testing.T) (addr string, came <-chan *stream.Conn) {
	t.Helper()
	ln, err := stream.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	accepted := make(chan *stream.Conn, 1)
	go func() {
		if c, err := ln.Accept(); err == nil {
			accepted <- c.(*stream.Conn)
		}
	}()
	return ln.Addr().String(), accepted
}

// large is a file that does not fit into a peer's ring.
func large(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(path, make([]byte, 2*stream.DefaultRing), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// startCat sends a large file. The status comes when the command has ended.
func startCat(ctx context.Context, t *testing.T, errs io.Writer) (peer *stream.Conn, status <-chan int) {
	t.Helper()
	addr, came := catListener(t)
	args := []string{"cat", "--connect", addr, "--in", large(t), "--out", filepath.Join(t.TempDir(), "out")}
	ended := make(chan int, 1)
	go func() {
		err := execute(ctx, args, streams{io.Discard, errs})
		ended <- statusOf(ctx, err)
	}()
	peer = <-came
	t.Cleanup(func() { _ = peer.QP().Abort() })
	if _, err := io.ReadFull(peer, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return peer, ended
}

// TestCatInterrupted has the other end see that the copy is cut: an interrupt is not the end of the stream.
func TestCatInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	peer, status := startCat(ctx, t, io.Discard)
	interrupt()
	if got := <-status; got != statusFailed {
		t.Errorf("status %d of the one that was interrupted", got)
	}
	if n, err := io.Copy(io.Discard, peer); err == nil {
		t.Errorf("the peer has %d bytes, and the end of the stream", n)
	}
}

// TestCatNotTaken fails where the peer closes the connection, although in order, before it has everything.
func TestCatNotTaken(t *testing.T) {
	peer, status := startCat(t.Context(), t, io.Discard)
	if err := peer.Close(); err != nil {
		t.Log(err)
	}
	if got := <-status; got != statusFailed {
		t.Errorf("status %d", got)
	}
}

// TestCatIdle tells a peer that has closed the connection from one that was killed, after it had ended its own
// direction. The input says nothing.
func TestCatIdle(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(peer *stream.Conn) error
		want error
	}{
		"closed":           {(*stream.Conn).Close, nil},
		"ended and closed": {func(p *stream.Conn) error { return errors.Join(p.CloseWrite(), p.Close()) }, nil},
		"ended and killed": {func(p *stream.Conn) error { return errors.Join(p.CloseWrite(), p.QP().Close()) },
			io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cat, peer := catEnds(t)
			in, says := io.Pipe()
			defer says.Close()
			ended := make(chan error, 1)
			go func() { ended <- exchange(cat, in, io.Discard) }()
			if _, err := says.Write([]byte("something")); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(peer, make([]byte, 9)); err != nil {
				t.Fatal(err)
			}
			if err := c.end(peer); err != nil {
				t.Error(err)
			}
			if err := <-ended; !errors.Is(err, c.want) || c.want != nil &&
				!strings.HasPrefix(err.Error(), "cat: the other end has left before all was there, as a server does that is shut down, or after its --idle") {
				t.Errorf("%v, wanted %v", err, c.want)
			}
		})
	}
}

// TestCatFails has the peer see a cut also where this end could not go on: it would take its copy for whole.
func TestCatFails(t *testing.T) {
	cat, peer := catEnds(t)
	if _, err := peer.Write([]byte("more than there is room for")); err != nil {
		t.Fatal(err)
	}
	err := exchange(cat, bytes.NewReader(nil), full{})
	if err == nil {
		t.Errorf("%v", err)
	}
	if err := leave(cat, err); err != nil {
		t.Error(err)
	}
	<-peer.QP().Done()
	if _, err := peer.Write([]byte("x")); err == nil || errors.Is(err, stream.ErrPeerGone) {
		t.Errorf("Write: %v", err)
	}
}

// TestCatErrors names the program, the call and the address once.
func TestCatErrors(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	// The standard output would be closed, and what other tests say be lost.
	out := filepath.Join(t.TempDir(), "out")
	if status := run([]string{"cat", "--connect", addr, "--in", os.DevNull, "--out", out},
		streams{io.Discard, &errs}); status != statusFailed {
		t.Errorf("status %d", status)
	}
	for _, word := range []string{"iwarp: cat: ", "dial tcp", addr} {
		if bytes.Count(errs.Bytes(), []byte(word)) != 1 {
			t.Errorf("%q is not there once: %s", word, errs.Bytes())
		}
	}
}
