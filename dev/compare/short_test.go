package main

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestShortConnections has a few of each way.
func TestShortConnections(t *testing.T) {
	all, err := shortConnections(t.Context(), 2, 10)
	testrig.Must(t, err)
	if len(all) != len(shortWays()) {
		t.Fatalf("%d ways, want %d", len(all), len(shortWays()))
	}
	for i, s := range all {
		if s.Rate.Median <= 0 || i == 0 && s.Rate.Plain.Median != 1 || i == 1 && s.CPU.Same.Median != 1 {
			t.Errorf("%+v", s)
		}
	}
}

// BenchmarkShortConnection has connections of each way for a profile; which is the quicker, their turns tell.
func BenchmarkShortConnection(b *testing.B) {
	for _, w := range shortWays() {
		b.Run(w.name, func(b *testing.B) {
			b.ReportAllocs()
			run, end, err := w.open(b.Context())
			testrig.Must(b, err)
			defer end()
			_, cpu, err := shortTurn(b.N, run)
			testrig.Must(b, err)
			b.ReportMetric(cpu, "us-cpu/op")
		})
	}
}

// TestShortTurnFails tells why a turn came to nothing.
func TestShortTurnFails(t *testing.T) {
	for _, w := range shortWays() {
		run, end, err := w.open(t.Context())
		testrig.Must(t, err)
		end()
		if _, _, err := shortTurn(10, run); err == nil {
			t.Errorf("%s: no error, and nobody listens", w.name)
		}
	}
}

// counted counts the bytes that one end writes.
type counted struct {
	net.Conn
	wrote *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.wrote.Add(int64(len(b)))
	return c.Conn.Write(b)
}

func (c counted) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

// countedListener counts those of the other.
type countedListener struct {
	net.Listener
	wrote *atomic.Int64
}

func (l countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return counted{c, l.wrote}, err
}

// TestSameExchange: TCP with iwarp's exchange has as many bytes as a connection of iwarp, each way.
func TestSameExchange(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ln, err := net.Listen("tcp", loopback+":0")
	testrig.Must(t, err)
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	defer rnic.Close()
	var from, to atomic.Int64
	s := &shortPeers{ctx: ctx, wrap: func(c net.Conn) (net.Conn, error) { return counted{c, &from}, nil }}
	s.from, err = newShortEnd(rnic)
	testrig.Must(t, err)
	s.to, err = newShortEnd(rnic)
	testrig.Must(t, err)
	s.ln = (&iwarp.ListenConfig{PD: s.to.pd}).NewListener(countedListener{ln, &to})
	defer s.ln.Close()
	go s.serve()
	testrig.Must(t, s.run())
	var want [2]int64
	for i, n := range sameExchange.turns {
		want[i%2] += int64(n)
	}
	if got := [2]int64{from.Load(), to.Load()}; got != want {
		t.Errorf("iwarp sends %d bytes, and the exchange has %d", got, want)
	}
}
