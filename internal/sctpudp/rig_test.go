package sctpudp

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/sctp"
)

// patience bounds what a test waits for. Nothing depends on how long it takes.
const patience = time.Minute

func socket(t *testing.T) *net.UDPConn { return udpSocket(t) }

func udpSocket(t testing.TB) *net.UDPConn {
	t.Helper()
	pc, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testrig.Must(t, err)
	return pc
}

func listen(at netip.AddrPort) (*net.UDPConn, error) {
	return net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
}

func endpoint(t *testing.T, listening bool, c Config) *Endpoint {
	t.Helper()
	e := New(socket(t), listening, c)
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func (e *Endpoint) at() netip.AddrPort { return e.pc.LocalAddr().(*net.UDPAddr).AddrPort() }

// count returns how many associations there are, how many peers they have, and how many handshakes are under way.
func (e *Endpoint) count() (associations, peers, handshakes int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.tags), len(e.peers), len(e.handshakes)
}

// An end is what a test hears of a Conn.
type end struct {
	*Conn
	messages chan sctp.Message
	acks     chan [2]uint64
	lost     chan error
}

func run(c *Conn) *end {
	e := &end{Conn: c, messages: make(chan sctp.Message, 1<<16), acks: make(chan [2]uint64, 1<<16),
		lost: make(chan error, 1)}
	go c.Run(func(m sctp.Message) { e.messages <- m }, func(id uint16, n uint64) { e.acks <- [2]uint64{uint64(id), n} },
		func(err error) { e.lost <- err })
	return e
}

func within[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatal("nothing has come")
	}
	return v
}

// connect brings up an association between two Endpoints.
func connect(t *testing.T, c Config) (active, passive *end) {
	t.Helper()
	server, client := endpoint(t, true, c), endpoint(t, false, c)
	return dial(t, client, server)
}

func dial(t *testing.T, client, server *Endpoint) (active, passive *end) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	a, err := client.Dial(ctx, server.at())
	testrig.Must(t, err)
	b, err := server.Accept(ctx)
	testrig.Must(t, err)
	return run(a), run(b)
}
