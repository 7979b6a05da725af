package stream_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/iwarpsctp"
	"github.com/goiwarp/iwarp/stream"
	"github.com/goiwarp/iwarp/usertcp"
)

var must = testrig.Must

// A layer is a lower layer of the connections.
type layer struct {
	name    string
	network string
	stacks  bool // a TCP in user space
}

var layers = []layer{{"tcp", "tcp", false}, {"usertcp", "tcp", true}, {"sctp", "sctp", false}}

// A rig is a Listener, and how to dial it.
type rig struct {
	ln     *stream.Listener
	dialer stream.Dialer
	to     string
	net    string
}

// newRig listens over a layer.
func newRig(tb testing.TB, l layer, cfg stream.Config) *rig {
	tb.Helper()
	r := &rig{dialer: stream.Dialer{Config: cfg}, net: l.network}
	lc := stream.ListenConfig{Acceptor: stream.Acceptor{Config: cfg}}
	at := "127.0.0.1:0"
	if l.stacks {
		here, there, err := usertcp.Pair(usertcp.Config{}, usertcp.Path{}, usertcp.Path{})
		must(tb, err)
		tb.Cleanup(func() { _ = here.Close(); _ = there.Close() })
		r.dialer.RDMA.Stack, lc.RDMA.Stack = here, there
		at = "192.0.2.2:0"
	}
	if l.network == "sctp" {
		r.dialer.RDMA.Network, lc.RDMA.Network = new(iwarpsctp.Network), new(iwarpsctp.Network)
	}
	ln, err := lc.Listen(tb.Context(), l.network, at)
	must(tb, err)
	tb.Cleanup(func() { _ = ln.Close() })
	r.ln, r.to = ln, ln.Addr().String()
	return r
}

// pair connects two ends.
func (r *rig) pair(tb testing.TB) (dialed, accepted *stream.Conn) {
	tb.Helper()
	came := make(chan net.Conn, 1)
	go func() {
		c, _ := r.ln.Accept()
		came <- c
	}()
	dialed, err := r.dialer.Dial(tb.Context(), r.net, r.to)
	must(tb, err)
	accepted = (<-came).(*stream.Conn)
	tb.Cleanup(func() { go dialed.Close(); _ = accepted.Close() })
	return dialed, accepted
}

// A duplex is a connection in memory whose directions end by themselves.
type duplex struct {
	net.Conn // to read from
	w        net.Conn
}

func newDuplex() (a, b *duplex) {
	ar, bw := net.Pipe()
	br, aw := net.Pipe()
	return &duplex{ar, aw}, &duplex{br, bw}
}

func (d *duplex) Write(p []byte) (int, error) { return d.w.Write(p) }
func (d *duplex) CloseWrite() error           { return d.w.Close() }
func (d *duplex) Close() error                { return errors.Join(d.w.Close(), d.Conn.Close()) }

// SetDeadline sets those of both pipes.
func (d *duplex) SetDeadline(t time.Time) error {
	return errors.Join(d.Conn.SetDeadline(t), d.w.SetDeadline(t))
}
func (d *duplex) SetWriteDeadline(t time.Time) error { return d.w.SetWriteDeadline(t) }

// memoryPair connects two ends over a connection in memory, which may be in a synctest bubble.
func memoryPair(tb testing.TB, cfg stream.Config) (dialed, accepted *stream.Conn) {
	tb.Helper()
	a, b := newDuplex()
	return pairOver(tb, cfg, a, b)
}

// pairOver connects two ends over a connection.
func pairOver(tb testing.TB, cfg stream.Config, a, b net.Conn) (dialed, accepted *stream.Conn) {
	tb.Helper()
	under := testrig.NewListener("memory")
	ln := (&stream.ListenConfig{Acceptor: stream.Acceptor{Config: cfg}}).NewListener(under)
	defer ln.Close()
	offered := make(chan error, 1)
	go func() { offered <- under.Offer(context.Background(), b) }()
	came := make(chan net.Conn, 1)
	go func() {
		c, _ := ln.Accept()
		came <- c
	}()
	dialed, err := (&stream.Dialer{Config: cfg}).Initiate(context.Background(), a)
	must(tb, err)
	must(tb, <-offered)
	return dialed, (<-came).(*stream.Conn)
}
