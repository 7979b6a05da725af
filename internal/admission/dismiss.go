package admission

import (
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/tcp"
)

const (
	closeFirst = time.Second     // how long a rejected peer has to close first
	closeLimit = 5 * time.Second // and to close at all
	maxDropped = 1 << 20         // bytes that it may send meanwhile
	maxWaiting = 64              // of the peers that are waited for at a time
)

// dismiss sends a FIN on the connection of a peer that was rejected, and drops what the peer sends until its own: a RST
// might overtake the Reply. A peer that was told something closes first, or has a second to: Linux's siw now and then
// loses the private data of a Reply after which the stream ends. It is over when stop is closed, too.
func dismiss(conn net.Conn, told bool, stop <-chan struct{}) {
	defer conn.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.CopyN(io.Discard, conn, maxDropped)
	}()
	left := closeLimit
	if told {
		left -= closeFirst
		if await(ended, stop, closeFirst) {
			return
		}
	}
	if tcp.CloseWrite(conn) == nil {
		await(ended, stop, left)
	}
}

// await waits for either, and reports false if neither has come in time.
func await(a, b <-chan struct{}, limit time.Duration) bool {
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-a:
	case <-b:
	case <-late.C:
		return false
	}
	return true
}

// Dismissals are the peers that were rejected and have not closed yet. The zero value is usable.
type Dismissals struct {
	mu      sync.Mutex
	ended   bool
	waiting []*dismissed // who has had most time is the first
}

type dismissed struct {
	stop, over chan struct{}
	once       sync.Once // closes stop
}

func (p *dismissed) endWait() { p.once.Do(func() { close(p.stop) }) }

// Add dismisses a peer, in a goroutine. If others wait that are too many, the one that has had most time is waited for
// no longer. The channel is closed when the connection is. After End it is nil, and Add does nothing.
func (d *Dismissals) Add(conn net.Conn, told bool) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return nil
	}
	if len(d.waiting) >= maxWaiting {
		d.waiting[0].endWait()
		d.waiting = d.waiting[1:]
	}
	p := &dismissed{stop: make(chan struct{}), over: make(chan struct{})}
	d.waiting = append(d.waiting, p)
	go func() {
		defer close(p.over)
		dismiss(conn, told, p.stop)
		d.remove(p)
	}()
	return p.over
}

func (d *Dismissals) remove(p *dismissed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = slices.DeleteFunc(d.waiting, func(o *dismissed) bool { return o == p })
}

// End waits for the peers until the context ends or stop is closed, and closes the connections of those that are left.
// Several may call it: the first whose wait ends so ends that of all.
func (d *Dismissals) End(ctx context.Context, stop <-chan struct{}) {
	d.mu.Lock()
	left := slices.Clone(d.waiting)
	d.ended = true
	d.mu.Unlock()
	for _, p := range left {
		select {
		case <-p.over:
			continue
		case <-ctx.Done():
		case <-stop:
		}
		p.endWait()
		<-p.over
	}
}
