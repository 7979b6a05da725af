package association_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/association"
	"github.com/goiwarp/iwarp/sctp"
)

// A wire is one side of an SCTP association in memory, which delivers messages in any order and acknowledges late.
type wire struct {
	peer *wire
	room chan struct{} // messages under way
	slow time.Duration // more, until an acknowledgement is here

	mu      sync.Mutex
	random  *rand.Rand
	sent    map[uint16]uint64
	arrived map[uint16]map[uint64]bool
	acked   map[uint16]uint64
	begun   chan struct{}
	over    chan struct{}
	err     error

	receive func(sctp.Message)
	settled func(uint16, uint64)
}

// wires returns two ends.
func wires(seed uint64) (a, b *wire) {
	a, b = newWire(seed), newWire(seed+1)
	a.peer, b.peer = b, a
	return a, b
}

func newWire(seed uint64) *wire {
	return &wire{
		room: make(chan struct{}, 32), random: rand.New(rand.NewPCG(seed, 7)), sent: map[uint16]uint64{},
		arrived: map[uint16]map[uint64]bool{}, acked: map[uint16]uint64{}, begun: make(chan struct{}),
		over: make(chan struct{}),
	}
}

func (w *wire) Streams() int         { return 8 }
func (w *wire) MaxMessage() int      { return 1444 }
func (w *wire) Ahead() int           { return 1 << 20 }
func (w *wire) LocalAddr() net.Addr  { return &net.UDPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1} }
func (w *wire) RemoteAddr() net.Addr { return &net.UDPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 2} }

// Send has a message arrive at some time, and its acknowledgement some time later.
func (w *wire) Send(m sctp.Message) error {
	select {
	case w.room <- struct{}{}:
	case <-w.over:
		return net.ErrClosed
	}
	w.mu.Lock()
	n := w.sent[m.Stream]
	w.sent[m.Stream]++
	there, back := time.Duration(w.random.IntN(1000))*time.Microsecond,
		time.Duration(w.random.IntN(1000))*time.Microsecond
	w.mu.Unlock()
	time.AfterFunc(there, func() {
		<-w.room
		<-w.peer.begun
		w.peer.receive(m)
		time.AfterFunc(w.slow+back, func() { w.acknowledge(m.Stream, n) })
	})
	return nil
}

func (w *wire) acknowledge(id uint16, n uint64) {
	w.mu.Lock()
	if w.arrived[id] == nil {
		w.arrived[id] = map[uint64]bool{}
	}
	w.arrived[id][n] = true
	for w.arrived[id][w.acked[id]] {
		w.acked[id]++
	}
	all := w.acked[id]
	w.mu.Unlock()
	<-w.begun
	w.settled(id, all)
}

func (w *wire) Run(receive func(sctp.Message), acked func(uint16, uint64), lost func(error)) {
	w.receive, w.settled = receive, acked
	close(w.begun)
	<-w.over
	lost(w.err)
}

var (
	errShutdown = errors.New("SHUTDOWN")
	errAbort    = errors.New("ABORT")
)

// shutdownTakes is how long a SHUTDOWN takes.
const shutdownTakes = 5 * time.Millisecond

// Shutdown waits for what is under way.
func (w *wire) Shutdown(context.Context) error {
	time.Sleep(shutdownTakes)
	w.closeBoth(errShutdown)
	return nil
}

func (w *wire) Abort(string) { w.closeBoth(errAbort) }

func (w *wire) closeBoth(err error) {
	for _, side := range []*wire{w, w.peer} {
		side.mu.Lock()
		if side.err == nil {
			side.err = err
			close(side.over)
		}
		side.mu.Unlock()
	}
}

var _ association.Carrier = (*wire)(nil)
