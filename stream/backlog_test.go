package stream_test

import (
	"io"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rsockets"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/stream"
)

// rtr has a Listener and a Dialer of the dialect whose Initiator owes a frame after the Reply.
func rtr(t *testing.T) (*dialers, stream.Dialer) {
	c := &dialers{t: t, under: testrig.NewListener("memory"), came: make(chan *stream.Conn, 2*stream.Backlog)}
	c.iwarp = (&iwarp.ListenConfig{Dialects: mpa.Dialects()}).NewListener(c.under)
	c.ln = (&stream.Acceptor{Config: small}).NewListener(c.iwarp)
	return c, stream.Dialer{RDMA: iwarp.Dialer{MPA: mpa.Offer{Dialect: mpa.DialectRtr}}}
}

// TestSilentAfterAnswer has peers that send a Request and never the RTR frame, more of them than the backlog. It
// checks that another peer gets in at once.
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
			go func() { _, _ = ours.Write(ask.Bytes()); _, _ = io.Copy(io.Discard, ours) }()
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

// TestLateBacklog checks that RTR connections count to the backlog once they are up. One that comes up while the
// backlog is full is closed.
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
