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

// dialers are many peers that dial one Listener in memory.
type dialers struct {
	t     *testing.T
	under *testrig.Listener
	iwarp *iwarp.Listener
	ln    *stream.Listener
	came  chan *stream.Conn // those that were connected, as they dialed
}

var small = stream.Config{Ring: 1, Credits: 16}

func newDialers(t *testing.T, a stream.Acceptor) *dialers {
	a.Config = small
	c := &dialers{t: t, under: testrig.NewListener("memory"), came: make(chan *stream.Conn, 2*stream.Backlog)}
	c.iwarp = new(iwarp.ListenConfig).NewListener(c.under)
	c.ln = a.NewListener(c.iwarp)
	return c
}

// dial has n more peers dial.
func (c *dialers) dial(n int, d stream.Dialer) {
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

func (c *dialers) wantCame(n int) {
	c.t.Helper()
	if synctest.Wait(); len(c.came) != n {
		c.t.Errorf("%d are connected, not %d", len(c.came), n)
	}
}

// TestBacklog has more peers dial than the backlog holds. It checks that each Accept makes room for one more, and
// that Close leaves nothing of the connections that Accept has not returned.
func TestBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pd, err := iwarp.NewRNIC(iwarp.RNICConfig{}).AllocPD()
		must(t, err)
		c := newDialers(t, stream.Acceptor{RDMA: iwarp.AcceptConfig{PD: pd}})
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

// TestListenerBelowCloses checks that Accept fails when the owner of the iwarp.Listener closes that.
func TestListenerBelowCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDialers(t, stream.Acceptor{})
		must(t, c.iwarp.Close())
		if _, err := c.ln.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

// TestAcceptsReads checks that a Listener without settings takes RDMA Reads only of a peer that wants to send some,
// unless NoReads is set. It offers to send some itself only to such a peer, too.
func TestAcceptsReads(t *testing.T) {
	for _, tt := range []struct {
		none       bool
		ird, ord   mpa.Depth // of the peer
		takes, may mpa.Depth
	}{{false, 0, 0, 0, 0}, {false, 0, 3, 3, 0}, {true, 0, 3, 0, 0}, {false, 3, 0, 0, 0}, {false, 3, 2, 2, 3}} {
		synctest.Test(t, func(t *testing.T) {
			c := newDialers(t, stream.Acceptor{RDMA: iwarp.AcceptConfig{NoReads: tt.none}})
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

// TestListenErrors checks that errors of Listen and Accept name the call and the address once, and wrap the right
// ones.
func TestListenErrors(t *testing.T) {
	ln, err := stream.Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	at := ln.Addr().String()
	_, listened := stream.Listen(t.Context(), "tcp", at)
	below, err := iwarp.Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	over := new(stream.Acceptor).NewListener(below)
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
		once := strings.Count(text, op) == 1 && strings.Count(text, c.once) == 1
		if !strings.HasPrefix(text, c.call) || !once || strings.Contains(text, "iwarp") ||
			!errors.As(c.err, new(*iwarp.OpError)) || c.is != nil && !errors.Is(c.err, c.is) {
			t.Errorf("%v, wanted %s", c.err, c.call)
		}
	}
}

// TestAcceptErrors checks that the error of Acceptor.Accept names the call and the peer once.
func TestAcceptErrors(t *testing.T) {
	ln, err := iwarp.Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	go func() { _, _ = stream.Dial(t.Context(), "tcp", ln.Addr().String()) }()
	req, err := ln.Accept(t.Context())
	must(t, err)
	over, end := context.WithCancel(t.Context())
	end()
	_, err = (&stream.Acceptor{Config: small}).Accept(over, req)
	text := fmt.Sprint(err)
	once := strings.Count(text, "accept") == 1 && strings.Count(text, req.RemoteAddr().String()) == 1
	if !errors.Is(err, context.Canceled) || !once || strings.Contains(text, "iwarp") {
		t.Errorf("%v", err)
	}
}

// TestListenersRNIC has a Listener with an RNIC or a PD, and an Acceptor without a PD. It checks that the connection is
// of these, by each way to a Listener, and that nothing is left of it.
func TestListenersRNIC(t *testing.T) {
	for _, ofPD := range []bool{false, true} {
		rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
		lc := stream.ListenConfig{RDMA: iwarp.ListenConfig{RNIC: rnic}}
		if ofPD {
			pd, err := rnic.AllocPD()
			must(t, err)
			lc.RDMA.PD = pd
		}
		ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
		must(t, err)
		r := &rig{ln: ln, to: ln.Addr().String(), net: "tcp"}
		wantOf(t, r, &lc.RDMA)
		must(t, ln.Close())
		under, err := lc.RDMA.Listen(t.Context(), "tcp", "127.0.0.1:0")
		must(t, err)
		r.ln, r.to = new(stream.Acceptor).NewListener(under), under.Addr().String()
		wantOf(t, r, &lc.RDMA)
		must(t, r.ln.Close())
	}
}

// wantOf connects two ends. It checks that the accepted one is of the Listener's RNIC, and of its PD if it has one.
func wantOf(t *testing.T, r *rig, lc *iwarp.ListenConfig) {
	t.Helper()
	before := lc.RNIC.Stats().PDs
	a, b := r.pair(t)
	if pd := b.QP().PD(); pd.RNIC() != lc.RNIC || lc.PD != nil && pd != lc.PD {
		t.Errorf("the connection is of %v of %v, and not of %v of %v", pd, pd.RNIC(), lc.PD, lc.RNIC)
	}
	closeInOrder(t, a, b)
	if left := lc.RNIC.Stats(); left.PDs != before || left.QPs+left.CQs+left.MRs != 0 {
		t.Errorf("%d PDs, %d QPs, %d CQs and %d MRs are left", left.PDs, left.QPs, left.CQs, left.MRs)
	}
}

// TestAcceptsNobody has Acceptors that could accept no peer. It checks that the Listener says so, and does not reject
// all.
func TestAcceptsNobody(t *testing.T) {
	receives := iwarp.AcceptConfig{QP: iwarp.QPConfig{Receives: iwarp.Receives{Count: 1}}}
	for _, a := range []stream.Acceptor{{RDMA: receives}, {Config: stream.Config{Credits: 1}}} {
		lc := stream.ListenConfig{Acceptor: a}
		if _, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0"); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("Listen: %v", err)
		}
		ln := lc.NewListener(testrig.NewListener("memory"))
		if _, err := ln.Accept(); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("Accept: %v", err)
		}
	}
	d := stream.Dialer{RDMA: iwarp.Dialer{QP: receives.QP}}
	_, err := d.Dial(t.Context(), "tcp", "127.0.0.1:1")
	if !errors.Is(err, iwarp.ErrInvalid) || !strings.Contains(err.Error(), "Receives is set") {
		t.Errorf("Dial: %v", err)
	}
}
