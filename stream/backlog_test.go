package stream_test

import (
	"io"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/stream"
	"github.com/goiwarp/iwarp/stream/rsockets"
)

// rtr has Listener and Dialer of the dialect whose Initiator owes a frame after the answer.
func rtr(t *testing.T) (*crowd, stream.Dialer) {
	c := &crowd{t: t, under: testrig.NewListener("memory"), came: make(chan *stream.Conn, 2*stream.Backlog)}
	c.iwarp = iwarp.NewListener(c.under, iwarp.ListenConfig{Dialects: mpa.Dialects()})
	c.ln = stream.NewListener(c.iwarp, stream.Acceptor{Config: small})
	return c, stream.Dialer{RDMA: iwarp.Dialer{MPA: mpa.Offer{Dialect: mpa.DialectRtr}}}
}

// TestSilentAfterAnswer has more peers than the backlog has room for ask, and say nothing more, in a dialect in which they owe a frame: another one gets in at once.
func TestSilentAfterAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := rtr(t)
		defer c.ln.Close()
		hello, err := rsockets.Hello{Credits: 16, Entries: 2}.AppendBinary(nil)
		must(t, err)
		ask := script.Request(mpa.DialectRtr, 1)
		ask.ULP = hello
		for range 2 * stream.Backlog {
			ours, others := newDuplex()
			defer ours.Close()
			go func() { _, _ = ours.Write(ask.Octets()); _, _ = io.Copy(io.Discard, ours) }()
			must(t, c.under.Offer(t.Context(), others))
		}
		synctest.Wait()
		c.dial(1, stream.Dialer{})
		c.wantCame(1)
		accepted, err := c.ln.Accept()
		must(t, err)
		closeInOrder(t, <-c.came, accepted.(*stream.Conn))
	})
}

// TestLateBacklog has connections of that dialect count to the backlog when they are up, and one for which there is no room then be closed.
func TestLateBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, late := rtr(t)
		c.dial(stream.Backlog, late)
		c.wantCame(stream.Backlog)
		c.dial(1, stream.Dialer{})
		c.wantCame(stream.Backlog)
		taken, err := c.ln.Accept()
		must(t, err)
		c.wantCame(stream.Backlog + 1)
		go taken.Close()
		must(t, c.ln.Close())
		for len(c.came) > 0 {
			_ = (<-c.came).Close()
		}
	})
}
