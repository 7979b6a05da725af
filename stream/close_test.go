package stream_test

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp/stream"
	"github.com/goiwarp/iwarp/stream/rsockets"
)

// TestEndsLast has a peer end its direction while nobody reads: CloseWrite knows of it, and ends both. The peer, which has nothing more to
// say, ends the connection without a word, and all is in order.
func TestEndsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, others := newDuplex()
		p, conn := byHandOver(t, stream.Config{}, ours, others)
		p.want(rsockets.NewWord(rsockets.OpCredit, stream.DefaultCredits))
		p.word(rsockets.OpControl, uint32(rsockets.Shutdown))
		synctest.Wait()
		must(t, conn.CloseWrite())
		p.want(rsockets.NewWord(rsockets.OpControl, uint32(rsockets.Disconnect)))
		must(t, p.qp.Close())
		<-conn.QP().Done()
		must(t, conn.Close())
	})
}

// TestCloseEndsCalls has calls wait, each by itself and both at once: Close ends them.
func TestCloseEndsCalls(t *testing.T) {
	read := func(c *stream.Conn) error { _, err := c.Read(make([]byte, 1)); return err }
	write := func(c *stream.Conn) error { _, err := c.Write(make([]byte, 3*stream.DefaultRing)); return err }
	for name, calls := range map[string][]func(*stream.Conn) error{"Read": {read}, "Write": {write}, "both": {read, write}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := memoryPair(t, stream.Config{})
				defer b.Close()
				ended := make(chan error, len(calls))
				for _, call := range calls {
					go func() { ended <- call(a) }()
					synctest.Wait()
				}
				go a.Close()
				synctest.Wait()
				if len(ended) != len(calls) {
					t.Fatalf("%d of %d calls have ended", len(ended), len(calls))
				}
				for range calls {
					if err := <-ended; !errors.Is(err, net.ErrClosed) {
						t.Error(err)
					}
				}
			})
		})
	}
}
