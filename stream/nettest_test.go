package stream_test

import (
	"net"
	"sync"
	"testing"

	"golang.org/x/net/nettest"

	"github.com/goiwarp/iwarp/stream"
)

// TestConn holds that a Conn is a net.Conn in all that golang.org/x/net/nettest asks, over every lower layer.
func TestConn(t *testing.T) {
	for _, l := range layers {
		t.Run(l.name, func(t *testing.T) {
			r := newRig(t, l, stream.Config{})
			nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
				dialed, accepted := r.pair(t)
				return dialed, accepted, func() { closeBoth(dialed, accepted) }, nil
			})
		})
	}
	t.Run("memory", func(t *testing.T) {
		nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
			dialed, accepted := memoryPair(t, stream.Config{})
			return dialed, accepted, func() { closeBoth(dialed, accepted) }, nil
		})
	})
}

// closeBoth closes both ends at the same time, as Close waits for the other side's.
func closeBoth(a, b net.Conn) {
	var both sync.WaitGroup
	for _, c := range []net.Conn{a, b} {
		both.Go(func() { _ = c.Close() })
	}
	both.Wait()
}
