//go:build linux && (amd64 || arm64)

package verbs

import (
	"net/netip"
	"sync"
	"time"
)

// turn is how long a connection waits at most for the one before it to the same peer: longer than one takes whose listener answers at once, and little
// beside what a program has to do for as many that are not answered.
const turn = 20 * time.Millisecond

// lines have the connections to a peer begin one after the other, so that they come there in the order in which they were asked for. Linux's siw dials within
// rdma_connect, and programs count on the order: perftest's with several QPs (-q) says by it which QP is whose.
type lines struct {
	mu   sync.Mutex
	last map[netip.AddrPort]chan struct{} // closed when the connection that was begun last has come to an answer, or to its end
}

// join has a connection be the next to a peer. It may begin when what comes before it is closed, if there is something, and is to leave when
// there is an answer.
func (l *lines) join(peer netip.AddrPort) (before <-chan struct{}, leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = make(map[netip.AddrPort]chan struct{})
	}
	before, mine := l.last[peer], make(chan struct{})
	l.last[peer] = mine
	return before, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		close(mine)
		if l.last[peer] == mine {
			delete(l.last, peer)
		}
	}
}

// await waits for the turn of a connection, but not for long.
func (id *ID) await(before <-chan struct{}) {
	if before == nil {
		return
	}
	late := time.NewTimer(turn)
	defer late.Stop()
	select {
	case <-before:
	case <-late.C:
	case <-id.ctx.Done():
	}
}
