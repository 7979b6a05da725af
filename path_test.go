package iwarp_test

import (
	"net"
	"testing"
	"time"
)

// newPath returns the two ends of a connection on which octets take some time each way,
// as many of them as there are. Without a delay it is newPipe.
func newPath(t testing.TB, delay time.Duration) (a, b net.Conn) {
	if delay == 0 {
		return newPipe(t)
	}
	a, near := newPipe(t)
	far, b := newPipe(t)
	go carry(near, far, delay)
	go carry(far, near, delay)
	return a, b
}

// carry brings octets, and the FIN after them, from one connection to another.
func carry(from, to net.Conn, delay time.Duration) {
	type piece struct {
		octets []byte
		due    time.Time
	}
	way := make(chan piece, 1<<12)
	go func() {
		defer close(way)
		for {
			b := make([]byte, 1<<16)
			n, err := from.Read(b)
			way <- piece{b[:n], time.Now().Add(delay)}
			if err != nil {
				return
			}
		}
	}()
	for p := range way {
		time.Sleep(time.Until(p.due))
		if len(p.octets) > 0 {
			_, _ = to.Write(p.octets)
		}
	}
	_ = to.(interface{ CloseWrite() error }).CloseWrite()
}
