package oooexperiment

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/recovery"
	"github.com/goiwarp/iwarp/usertcp"
)

// A receiver places what comes on one connection.
type receiver struct {
	run  *run
	conn *usertcp.Conn
	half *half // what has arrived of it

	mu      sync.Mutex
	rec     *recovery.Receiver
	held    int // by rec
	bytes   int // of ULPDUs
	ahead   int
	waiting []placed // for delivery, in order of placement
	times   durations
	failed  error
}

// placed is an FPDU that is in place.
type placed struct {
	end     uint64
	arrived time.Time // its last byte
	ahead   bool      // it was whole before all in front of it had come
}

func newReceiver(r *run, c *usertcp.Conn, h *half) *receiver {
	t := &receiver{run: r, conn: c, half: h}
	t.rec = recovery.New(recovery.Config{Markers: r.way.Markers, CRC: true, Buffer: usertcp.MaxReceiveBuffer})
	if r.way.Ahead {
		c.ShowAhead(func(at uint64, data []byte) { t.input(at, data, true) })
	}
	return t
}

// receive reads until the sender's FIN.
func (t *receiver) receive() error {
	b := make([]byte, min(256<<10, t.run.cfg.Bytes+batch))
	for read := uint64(0); ; {
		n, err := t.conn.Read(b)
		if n > 0 {
			t.input(read, b[:n], false)
			read += uint64(n)
			t.deliver()
		}
		switch {
		case errors.Is(err, io.EOF):
			return t.finish(read)
		case err != nil:
			return err
		}
	}
}

// input gives bytes to MPA, and places what that finds in them.
func (t *receiver) input(at uint64, data []byte, ahead bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rec.Segment(at, data)
	for {
		ev, ok := t.rec.Next()
		if !ok {
			break
		}
		if ev.Kind != recovery.Placed {
			t.failed = errors.Join(t.failed, fmt.Errorf("%v at %d: %w", ev.Kind, ev.Offset, ev.Err))
			continue
		}
		t.place(&ev, ahead)
	}
	held := t.rec.Stats().Held
	t.run.held.add(held - t.held)
	t.held = held
}

func (t *receiver) place(ev *recovery.Event, ahead bool) {
	t.failed = errors.Join(t.failed, check(ev.ULPDU))
	t.bytes += len(ev.ULPDU)
	if ahead {
		t.ahead += len(ev.ULPDU)
	}
	arrived, early := t.half.arrival(ev.Offset, ev.End)
	t.times.place(time.Since(arrived), early)
	t.waiting = append(t.waiting, placed{ev.End, arrived, early})
}

// deliver delivers what is placed, with all in front of it.
func (t *receiver) deliver() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, edge := time.Now(), t.rec.Delivered()
	later := t.waiting[:0]
	for _, p := range t.waiting {
		if p.end > edge {
			later = append(later, p)
			continue
		}
		t.times.deliver(now.Sub(p.arrived), p.ahead)
	}
	t.waiting = later
	t.half.forget(edge)
}

// finish is called at the sender's FIN: everything is in place by then.
func (t *receiver) finish(read uint64) error {
	t.conn.ShowAhead(nil)
	t.mu.Lock()
	defer t.mu.Unlock()
	if got := t.rec.Delivered(); got != read || len(t.waiting) > 0 {
		t.failed = errors.Join(t.failed, fmt.Errorf("%d of %d bytes delivered, %d FPDUs are left",
			got, read, len(t.waiting)))
	}
	return errors.Join(t.failed, t.conn.Close())
}

// A total is bytes of all connections, and the most that they were.
type total struct {
	mu        sync.Mutex
	now, most int
}

func (t *total) add(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now += n
	t.most = max(t.most, t.now)
}

// peak is the most that there was. Late packets may still come.
func (t *total) peak() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.most
}
