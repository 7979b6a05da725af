package sctpudp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/sctp"
)

// TestUnacked: what the peer has not acknowledged is known of each stream by itself, until it has.
func TestUnacked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := linked(t, testrig.Link{Delay: 10 * time.Millisecond}, Config{})
		run(from)
		run(to)
		const id, octets = 3, 100
		if n := from.Unacked(id); n != 0 {
			t.Errorf("%d octets before the first message", n)
		}
		testrig.Must(t, from.Send(sctp.Message{Stream: id, PPID: 16, Data: make([]byte, octets)}))
		if n, other := from.Unacked(id), from.Unacked(id+1); n != octets || other != 0 {
			t.Errorf("%d octets, and %d of another stream, want %d and none", n, other, octets)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := from.Unacked(id); n != 0 {
			t.Errorf("%d octets are not acknowledged after a second", n)
		}
		free := make(chan struct{})
		go func() { from.Unacked(id); close(free) }()
		<-free // it keeps no lock
	})
}
