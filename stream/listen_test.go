package stream_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/stream"
)

// crowd has many dial one Listener in memory.
type crowd struct {
	t     *testing.T
	under *testrig.Listener
	iwarp *iwarp.Listener
	ln    *stream.Listener
	came  chan *stream.Conn // those that were connected, as they dialed
}

var small = stream.Config{Ring: 1, Credits: 16}

func newCrowd(t *testing.T, a stream.Acceptor) *crowd {
	a.Config = small
	c := &crowd{t: t, under: testrig.NewListener("memory"), came: make(chan *stream.Conn, 2*stream.Backlog)}
	c.iwarp = iwarp.NewListener(c.under, iwarp.ListenConfig{})
	c.ln = stream.NewListener(c.iwarp, a)
	return c
}

// dial has so many more dial.
func (c *crowd) dial(n int, d stream.Dialer) {
	d.Config = small
	for range n {
		ours, others := newDuplex()
		go func() { _ = c.under.Offer(context.Background(), others) }()
		go func() {
			if conn, err := d.Initiate(context.Background(), ours); err == nil {
				c.came <- conn
			}
		}()
	}
}

func (c *crowd) wantCame(n int) {
	c.t.Helper()
	if synctest.Wait(); len(c.came) != n {
		c.t.Errorf("%d are connected, not %d", len(c.came), n)
	}
}

// TestBacklog has more dial than a Listener accepts ahead of its program: each that the program takes makes room for another one. When Close
// returns, nothing is left of those that it has not taken.
func TestBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pd, err := iwarp.NewRNIC(iwarp.RNICConfig{}).AllocPD()
		must(t, err)
		c := newCrowd(t, stream.Acceptor{RDMA: iwarp.AcceptConfig{PD: pd}})
		c.dial(stream.Backlog+2, stream.Dialer{})
		c.wantCame(stream.Backlog)
		taken, err := c.ln.Accept()
		must(t, err)
		c.wantCame(stream.Backlog + 1)
		must(t, c.ln.Close())
		if n := pd.RNIC().Stats().QPs; n != 1 {
			t.Errorf("of %d QPs one was taken", n)
		}
		go taken.Close()
		for len(c.came) > 0 {
			_ = (<-c.came).Close()
		}
	})
}

// TestListenerBelowCloses has the owner of what is listened with close it: Accept tells.
func TestListenerBelowCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, stream.Acceptor{})
		must(t, c.iwarp.Close())
		if _, err := c.ln.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

// TestAcceptsReads has a Listener without settings take Reads of a peer that wants to send some, and of no other; one that wants none takes none. It says
// that it sends some itself only to a peer that wants to send some.
func TestAcceptsReads(t *testing.T) {
	for _, tt := range []struct {
		none       bool
		ird, ord   mpa.Depth // of the peer
		takes, may mpa.Depth
	}{{false, 0, 0, 0, 0}, {false, 0, 3, 3, 0}, {true, 0, 3, 0, 0}, {false, 3, 0, 0, 0}, {false, 3, 2, 2, 3}} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, stream.Acceptor{RDMA: iwarp.AcceptConfig{NoReads: tt.none}})
			defer c.ln.Close()
			c.dial(1, stream.Dialer{RDMA: iwarp.Dialer{MPA: mpa.Offer{IRD: tt.ird, ORD: tt.ord}}})
			accepted, err := c.ln.Accept()
			must(t, err)
			dialed := <-c.came
			there, here := dialed.QP().Negotiated(), accepted.(*stream.Conn).QP().Negotiated()
			if there.ORD != tt.takes || here.ORD != tt.may {
				t.Errorf("%+v: %d Reads at a time are taken, and %d may be sent", tt, there.ORD, here.ORD)
			}
			closeInOrder(t, dialed, accepted.(*stream.Conn))
		})
	}
}

// TestListenErrors has the errors of Listen and Accept name the call and the address once, and be those that they wrap.
func TestListenErrors(t *testing.T) {
	ln, err := stream.Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	at := ln.Addr().String()
	_, listened := stream.Listen(t.Context(), "tcp", at)
	below, err := iwarp.Listen(t.Context(), "tcp", "127.0.0.1:0", iwarp.ListenConfig{})
	must(t, err)
	over := stream.NewListener(below, stream.Acceptor{})
	must(t, below.Close())
	_, closed := over.Accept()
	_, wrong := (&stream.ListenConfig{}).Listen(t.Context(), "udp", "127.0.0.1:1")
	for _, c := range []struct {
		err        error
		call, once string
		is         error
	}{
		{listened, "listen tcp " + at + ": ", at, nil},
		{closed, "accept tcp " + below.Addr().String() + ": ", below.Addr().String(), net.ErrClosed},
		{wrong, "listen udp 127.0.0.1:1: ", "127.0.0.1:1", iwarp.ErrInvalid},
	} {
		text := fmt.Sprint(c.err)
		op, _, _ := strings.Cut(c.call, "p ")
		if !strings.HasPrefix(text, c.call) || strings.Count(text, op) != 1 || strings.Count(text, c.once) != 1 || strings.Contains(text, "iwarp") || !errors.As(c.err, new(*iwarp.OpError)) || c.is != nil && !errors.Is(c.err, c.is) {
			t.Errorf("%v, wanted %s", c.err, c.call)
		}
	}
}

// TestAcceptErrors has that of a request which comes to nothing name the call and the peer once.
func TestAcceptErrors(t *testing.T) {
	ln, err := iwarp.Listen(t.Context(), "tcp", "127.0.0.1:0", iwarp.ListenConfig{})
	must(t, err)
	defer ln.Close()
	go func() { _, _ = stream.Dial(t.Context(), "tcp", ln.Addr().String()) }()
	req, err := ln.Accept(t.Context())
	must(t, err)
	over, end := context.WithCancel(t.Context())
	end()
	_, err = (&stream.Acceptor{Config: small}).Accept(over, req)
	if text := fmt.Sprint(err); !errors.Is(err, context.Canceled) || strings.Count(text, "accept") != 1 || strings.Count(text, req.RemoteAddr().String()) != 1 || strings.Contains(text, "iwarp") {
		t.Errorf("%v", err)
	}
}
