package stream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stream"
)

// scarceRig starts a Listener whose RNIC has so many bytes, in one Protection Domain.
func scarceRig(t *testing.T, limit int64, cfg stream.Config) (*rig, *iwarp.PD) {
	t.Helper()
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{Limits: iwarp.Limits{Bytes: limit}})
	pd, err := rnic.AllocPD()
	must(t, err)
	under, err := (&iwarp.ListenConfig{RNIC: rnic, PD: pd}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	ln := (&stream.Acceptor{RDMA: iwarp.AcceptConfig{PD: pd}, Config: cfg}).NewListener(under)
	t.Cleanup(func() { _, _ = ln.Close(), rnic.Close() })
	return &rig{ln: ln, dialer: stream.Dialer{Config: cfg}, to: ln.Addr().String(), net: "tcp"}, pd
}

// registerRest registers all memory that is free.
func registerRest(t *testing.T, pd *iwarp.PD) (all []*iwarp.MR) {
	t.Helper()
	for n := 1 << 30; n > 0; n /= 2 {
		if mr, err := pd.Register(make([]byte, n), 0); err == nil {
			all = append(all, mr)
		}
	}
	return all
}

// wantTransfer sends n bytes from one end to the other, and compares them.
func wantTransfer(t *testing.T, from io.Writer, to net.Conn, n int) {
	t.Helper()
	want := bytes.Repeat([]byte{1, 2, 3, 5, 7, 11, 13}, n/7+1)[:n]
	sent := make(chan error, 1)
	go func() {
		m, err := from.Write(want)
		if err == nil && m != n {
			err = io.ErrShortWrite
		}
		sent <- err
	}()
	got := make([]byte, n)
	_, err := io.ReadFull(to, got)
	must(t, err)
	must(t, <-sent)
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes that came are not those that were sent", n)
	}
}

// TestWriteWithoutMemory has an RNIC without a free byte. It checks that Writes of all lengths go on, by the memory
// that the connection has reserved. If that is in use, too, they go through the Send Queue.
func TestWriteWithoutMemory(t *testing.T) {
	cfg := stream.Config{Maps: 4}
	r, pd := scarceRig(t, 8<<20, cfg)
	dialed, accepted := r.pair(t)
	other, err := pd.RNIC().AllocPD()
	must(t, err)
	ours := make([]byte, 3<<20)
	m, err := dialed.Map(ours, 0)
	must(t, err)
	for _, taken := range []*iwarp.PD{other, pd} {
		mrs := registerRest(t, taken)
		for _, n := range []int{1, 1024, 1025, 5000, 1 << 18, 1<<18 + 1, 3<<20 + 17} {
			wantTransfer(t, accepted, dialed, n)
		}
		wantTransfer(t, dialed, accepted, 1<<20)
		p := bytes.Repeat([]byte{byte(len(mrs))}, 3<<20)
		if n, err := accepted.WriteAt(p, 0); n != len(p) || err != nil {
			t.Errorf("WriteAt: %d, %v", n, err)
		}
		wantTransfer(t, accepted, dialed, 1)
		got := make([]byte, len(p))
		if _, err := m.ReadAt(got, 0); err != nil || !bytes.Equal(got, p) {
			t.Errorf("WriteAt: other bytes have come, %v", err)
		}
		for _, mr := range mrs {
			must(t, mr.Deregister())
		}
	}
}

// TestReservationEnds has connections come and go on an RNIC with memory for one. It checks that each frees all of
// it, however it ends, and so does a Dial that fails.
func TestReservationEnds(t *testing.T) {
	r, pd := scarceRig(t, 3<<20, stream.Config{})
	for _, end := range []func(*stream.Conn) error{(*stream.Conn).Close, func(c *stream.Conn) error {
		_ = c.QP().Abort()
		_ = c.Close()
		return nil
	}} {
		dialed, accepted := r.pair(t)
		if _, err := pd.Reserve(1 << 20); err == nil {
			t.Error("nothing is reserved")
		}
		closed := make(chan error, 1)
		go func() { closed <- end(dialed) }()
		must(t, end(accepted))
		must(t, <-closed)
		release, err := pd.Reserve(3 << 20)
		must(t, err)
		if _, err := r.dialer.Dial(t.Context(), r.net, r.to); err == nil {
			t.Error("a connection has come up without memory")
		}
		release()
	}
	release, err := pd.Reserve(3 << 20)
	must(t, err)
	release()
}

// TestBusy has a server without free memory. It checks that the rejection says so, and that a client is accepted once
// memory is free again.
func TestBusy(t *testing.T) {
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{Limits: iwarp.Limits{Bytes: 1 << 20}})
	pd, err := rnic.AllocPD()
	must(t, err)
	taken, err := pd.Register(make([]byte, 1<<20), 0)
	must(t, err)
	ln, err := (&iwarp.ListenConfig{RNIC: rnic}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer rnic.Close()
	accepted := make(chan error)
	accept := func() {
		req, err := ln.Accept(context.Background())
		if err == nil {
			a := stream.Acceptor{RDMA: iwarp.AcceptConfig{PD: pd}, Config: stream.Config{Ring: 4096}}
			_, err = a.Accept(context.Background(), req)
		}
		accepted <- err
	}
	go accept()
	_, err = stream.Dial(t.Context(), "tcp", ln.Addr().String())
	var rejected *iwarp.RejectError
	if !errors.As(err, &rejected) || !strings.Contains(string(rejected.PrivateData), "is left here: try again later") {
		t.Fatal(err)
	}
	_ = rejected.Conn.Close()
	if err := <-accepted; !errors.Is(err, iwarp.ErrLimit) {
		t.Errorf("who listens has %v", err)
	}
	must(t, taken.Deregister())
	go accept()
	conn, err := stream.Dial(t.Context(), "tcp", ln.Addr().String())
	must(t, err)
	must(t, <-accepted)
	_ = conn.QP().Abort()
}
