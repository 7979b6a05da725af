package matrix

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/script"
)

// direction of bytes.
type direction uint8

const (
	toResponder direction = iota
	toInitiator
)

func (d direction) String() string { return [...]string{"->", "<-"}[d] }

// A relay stands between two ends and keeps what they send each other.
type relay struct {
	over  *network.Network
	ln    net.Listener
	to    string
	tasks sync.WaitGroup

	mu    sync.Mutex
	wires []*wire
	ended bool
}

// newRelay passes connections on to an address.
func newRelay(ctx context.Context, over *network.Network, to string) (*relay, error) {
	ln, err := over.ListenStream(ctx, over.Here)
	if err != nil {
		return nil, err
	}
	r := &relay{over: over, ln: ln, to: to}
	r.tasks.Go(r.accept)
	return r, nil
}

func (r *relay) addr() string { return r.ln.Addr().String() }

// peer is the address of the last connection to the responder.
func (r *relay) peer() string {
	wires := r.all()
	if len(wires) == 0 {
		return ""
	}
	return wires[len(wires)-1].ends[1].LocalAddr().String()
}

func (r *relay) accept() {
	for {
		near, err := r.ln.Accept()
		if err != nil {
			return
		}
		far, err := r.over.DialStream(context.Background(), r.to)
		if err != nil {
			_ = script.NewLink(near).Reset()
			continue
		}
		r.connect(&wire{ends: [2]net.Conn{near, far}})
	}
}

// connect begins to pass bytes on.
func (r *relay) connect(w *wire) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		w.abort()
		return
	}
	r.wires = append(r.wires, w)
	r.tasks.Go(w.run)
}

// drain waits for the connections to end. There will be no further ones.
func (r *relay) drain(ctx context.Context) error {
	_ = r.ln.Close()
	done := make(chan struct{})
	go func() {
		r.tasks.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close ends the connections that are left, and waits.
func (r *relay) close() {
	_ = r.ln.Close()
	r.mu.Lock()
	r.ended = true
	for _, w := range r.wires {
		w.abort()
	}
	r.mu.Unlock()
	r.tasks.Wait()
}

// all returns the connections so far.
func (r *relay) all() []*wire {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wires
}

// A wire is one connection and what has gone over it.
type wire struct {
	ends [2]net.Conn // initiator's, responder's

	mu     sync.Mutex
	bytes  [2][]byte // by direction
	turns  []turn
	closed [2]error // how each direction ended: io.EOF is a FIN
}

// A turn is how much had been sent in both directions when bytes arrived in one of
// them.
type turn struct {
	dir  direction
	sent [2]int
}

func (w *wire) run() {
	var pumps sync.WaitGroup
	pumps.Go(func() { w.pump(toResponder) })
	pumps.Go(func() { w.pump(toInitiator) })
	pumps.Wait()
	w.abort()
}

// pump passes one direction on. Bytes are kept before they are passed on, so that
// what they cause is found after them.
func (w *wire) pump(dir direction) {
	err := script.NewLink(w.ends[dir]).CarryTo(w.ends[1-dir], func(b []byte) { w.keep(dir, b) })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed[dir] = err
}

func (w *wire) keep(dir direction, b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes[dir] = append(w.bytes[dir], b...)
	w.turns = append(w.turns, turn{dir, [2]int{len(w.bytes[0]), len(w.bytes[1])}})
}

// abort ends the connection, if it has not ended.
func (w *wire) abort() {
	for _, c := range w.ends {
		_ = c.Close()
	}
}

// ending says how the two ends closed: "fin" if both closed in order. A direction that
// the relay itself has cut off ends with net.ErrClosed, because the other end wanted no
// more.
func (w *wire) ending() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	who := [2]string{byInitiator, byResponder}
	for dir, err := range w.closed {
		switch {
		case errors.Is(err, io.EOF):
		case errors.Is(err, net.ErrClosed):
			return "rst-by-" + who[1-dir]
		default:
			return "rst-by-" + who[dir]
		}
	}
	return "fin"
}
