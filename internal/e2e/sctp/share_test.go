package sctp

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/internal/sctpudp"
	"github.com/goiwarp/iwarp/iwarpsctp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// sharers are QPs that were dialed over one Network, and those of the Listener.
type sharers struct {
	*testing.T
	rnic   *iwarp.RNIC
	ln     *iwarp.Listener
	over   *iwarpsctp.Network // of dialer
	dialer iwarp.Dialer
}

func newSharers(t *testing.T) *sharers {
	t.Helper()
	c := &sharers{T: t, rnic: iwarp.NewRNIC(iwarp.RNICConfig{}), over: &iwarpsctp.Network{ShareAssociations: true}}
	t.Cleanup(func() { c.rnic.Close() })
	pd, err := c.rnic.AllocPD()
	rig.Must(t, err)
	c.dialer = iwarp.Dialer{PD: pd, Network: c.over, Timeout: time.Minute, QP: rig.Unhurried(iwarp.QPConfig{})}
	c.ln, err = (&iwarp.ListenConfig{Network: new(iwarpsctp.Network), RequestTimeout: -1}).Listen(
		rig.Within(t), "sctp4", "127.0.0.1:0")
	rig.Must(t, err)
	t.Cleanup(func() { c.ln.Close() })
	return c
}

// dial brings up a connection; the two QPs belong together.
func (c *sharers) dial() (ini, res *iwarp.QP) {
	c.Helper()
	accepted := make(chan *iwarp.QP, 1)
	go func() {
		req, err := c.ln.Accept(rig.Within(c.T))
		rig.Must(c.T, err)
		qp, err := req.Accept(rig.Within(c.T), iwarp.AcceptConfig{QP: rig.Unhurried(iwarp.QPConfig{})})
		rig.Must(c.T, err)
		accepted <- qp
	}()
	ini, err := c.dialer.Dial(rig.Within(c.T), "sctp4", c.ln.Addr().String())
	rig.Must(c.T, err)
	return ini, <-accepted
}

// says has a QP say something to its peer.
func (c *sharers) says(from, to *iwarp.QP, text string) {
	c.Helper()
	inbox, err := to.PD().Register(make([]byte, len(text)), iwarp.LocalWrite)
	rig.Must(c.T, err)
	rig.Must(c.T, to.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{inbox.Slice(0, len(text))}}))
	mr, err := from.PD().Register([]byte(text), 0)
	rig.Must(c.T, err)
	rig.Must(c.T, from.Send(rig.Within(c.T), mr.Slice(0, len(text))))
	wc, err := to.RecvCQ().Next(rig.Within(c.T))
	rig.Must(c.T, err)
	rig.Must(c.T, wc.Err())
	if got := string(inbox.Bytes()); wc.Length != len(text) || got != text {
		c.Errorf("got %q, want %q", got, text)
	}
}

// associations tells apart from which addresses QPs are connected: each association has its own.
func associations(qps []*iwarp.QP) map[string]int {
	n := make(map[string]int)
	for _, qp := range qps {
		n[qp.RemoteAddr().String()]++
	}
	return n
}

// TestSCTPShared: Dials that share an association are sessions of one, each with its own beginning and end, and those
// that are over have their streams used again.
//
// Proves C04.
func TestSCTPShared(t *testing.T) {
	t.Parallel()
	c := newSharers(t)
	var inis, ress []*iwarp.QP
	for range 5 {
		ini, res := c.dial()
		inis, ress = append(inis, ini), append(ress, res)
	}
	if n := associations(ress); len(n) != 1 {
		t.Errorf("five Dials by %v", n)
	}
	for i := range inis[:4] {
		rig.CloseBoth(t, inis[i], ress[i])
	}
	c.says(inis[4], ress[4], "still up") // the others' ends are theirs
	again, res := c.dial()
	if n := associations([]*iwarp.QP{res, ress[4]}); len(n) != 1 {
		t.Errorf("a stream that is free again was not used: %v", n)
	}
	c.over.ShareAssociations = false
	_, own := c.dial()
	if n := associations([]*iwarp.QP{res, own}); len(n) != 2 {
		t.Errorf("a Dial that shares nothing is by the same: %v", n)
	}
	rig.CloseBoth(t, inis[4], ress[4])
	rig.CloseBoth(t, again, res)
}

// TestSCTPSharedEnds: a shared association is shut down with its last session and not before, and the next Dial opens
// another.
func TestSCTPSharedEnds(t *testing.T) {
	t.Parallel()
	c, server := newSharers(t), newSCTPServer(t)
	c.dialer.MPA.Dialect = mpa.DialectRFC5044
	dial := func() *iwarp.QP {
		qp, err := c.dialer.Dial(rig.Within(t), "sctp4", server.addr)
		rig.Must(t, err)
		return qp
	}
	first, second := dial(), dial()
	rig.Must(t, first.Close())
	third := dial()
	if n := len(server.conns); n != 1 {
		t.Errorf("%d associations for three Dials", n)
	}
	rig.Must(t, second.Close())
	rig.Must(t, third.Close())
	if err := <-server.lost; !errors.Is(err, lowerlayer.ErrShutdown) {
		t.Errorf("lost: %v", err)
	}
	rig.Must(t, dial().Close())
	if n := len(server.conns); n != 2 {
		t.Errorf("%d associations", n)
	}
}

// TestSCTPSharedCrowd: many Dials at the same time take two associations, of 32 streams each, and none is lost.
func TestSCTPSharedCrowd(t *testing.T) {
	c := newSharers(t)
	const many = 40
	ress := make(chan *iwarp.QP, many)
	go func() {
		for range many {
			req, err := c.ln.Accept(rig.Within(t))
			rig.Must(t, err)
			qp, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{})
			rig.Must(t, err)
			ress <- qp
		}
	}()
	var dials sync.WaitGroup
	for range many {
		dials.Go(func() {
			_, err := c.dialer.Dial(rig.Within(t), "sctp4", c.ln.Addr().String())
			rig.Must(t, err)
		})
	}
	dials.Wait()
	var qps []*iwarp.QP
	for range many {
		qps = append(qps, <-ress)
	}
	n := associations(qps)
	for at, sessions := range n {
		if sessions != 32 && sessions != many-32 {
			t.Errorf("%d sessions from %s", sessions, at)
		}
	}
	if len(n) != 2 {
		t.Errorf("%d associations", len(n))
	}
}

// TestSCTPSharedHostile: what a peer refuses, or does not answer, is the business of that Dial; when it ends the
// association all QPs learn of it, and the next Dial opens another.
//
// Proves C03, C04.
func TestSCTPSharedHostile(t *testing.T) {
	c := newSharers(t)
	ini, res := c.dial()
	go func() {
		req, err := c.ln.Accept(rig.Within(t))
		rig.Must(t, err)
		err = req.Reject([]byte("no"))
		rig.Must(t, err)
	}()
	var rejected *iwarp.RejectError
	if _, err := c.dialer.Dial(rig.Within(t), "sctp4", c.ln.Addr().String()); !errors.As(err, &rejected) {
		t.Errorf("rejected: %v", err)
	}
	d := c.dialer
	d.MPA = mpa.Offer{PrivateData: make([]byte, 600)}
	if _, err := d.Dial(rig.Within(t), "sctp4", c.ln.Addr().String()); !errors.Is(err, mpa.ErrOffer) {
		t.Errorf("too much private data: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := c.ln.Accept(rig.Within(t))
		rig.Must(t, err)
		cancel()
	}()
	if _, err := c.dialer.Dial(ctx, "sctp4", c.ln.Addr().String()); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	c.says(ini, res, "unharmed")

	server := newSCTPServer(t)
	c.dialer.MPA.Dialect = mpa.DialectRFC5044
	var qps []*iwarp.QP
	for range 3 {
		qp, err := c.dialer.Dial(rig.Within(t), "sctp4", server.addr)
		rig.Must(t, err)
		qps = append(qps, qp)
	}
	(<-server.conns).Abort("enough")
	for _, qp := range qps {
		<-qp.Done()
		if err := qp.Err(); !errors.Is(err, lowerlayer.ErrAborted) || !errors.Is(err, iwarp.ErrConnectionLost) {
			t.Errorf("ended with %v", err)
		}
	}
	<-server.lost
	_, err := c.dialer.Dial(rig.Within(t), "sctp4", server.addr)
	rig.Must(t, err)
	<-server.conns
	c.says(ini, res, "still unharmed")
}

// TestSCTPSharedAborted: a peer that gives up its only session aborts the association, in which another is being asked
// for: that Dial opens one of its own. A peer that aborts that one, too, has the Dial fail.
func TestSCTPSharedAborted(t *testing.T) {
	c, server := newSharers(t), newSCTPServer(t)
	c.dialer.MPA.Dialect = mpa.DialectRFC5044
	first, err := c.dialer.Dial(rig.Within(t), "sctp4", server.addr)
	rig.Must(t, err)
	server.aborts.Store(true)
	second, err := c.dialer.Dial(rig.Within(t), "sctp4", server.addr)
	rig.Must(t, err)
	<-first.Done()
	if err := first.Err(); !errors.Is(err, iwarp.ErrConnectionLost) || len(server.conns) != 2 {
		t.Errorf("ended with %v; %d associations", err, len(server.conns))
	}
	rig.Must(t, second.Close())
	<-server.lost
	<-server.lost
	server.aborts.Store(true)
	if _, err := c.dialer.Dial(rig.Within(t), "sctp4", server.addr); !errors.Is(err, lowerlayer.ErrAborted) {
		t.Errorf("dialed: %v", err)
	}
}

// A sctpServer takes every session that it is asked for, and ends it when its peer does.
type sctpServer struct {
	addr  string
	conns chan *sctpudp.Conn // one for each association
	lost  chan error         // why each has ended
	// aborts has the next Initiate answered by ABORT.
	aborts atomic.Bool
}

func newSCTPServer(t *testing.T) *sctpServer {
	t.Helper()
	pc, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	rig.Must(t, err)
	e := sctpudp.New(pc, true, sctpudp.Config{})
	t.Cleanup(func() { e.Close() })
	s := &sctpServer{addr: pc.LocalAddr().String(), conns: make(chan *sctpudp.Conn, 10), lost: make(chan error, 10)}
	go func() {
		for {
			c, err := e.Accept(t.Context())
			if err != nil {
				return
			}
			s.conns <- c
			// Accept, Terminate
			says := map[string]string{"\x00\x01": "\x00\x00\x00\x02", "\x00\x04": "\x00\x01\x00\x04"}
			answer := func(m sctp.Message) {
				if s.aborts.Swap(false) {
					c.Abort("given up")
				} else if text := says[string(m.Data[2:4])]; m.PPID == sctp.PPIDControl && text != "" {
					_ = c.Send(sctp.Message{Stream: m.Stream, PPID: sctp.PPIDControl, Data: []byte(text)})
				}
			}
			go c.Run(answer, func(uint16, uint64) {}, func(err error) { s.lost <- err })
		}
	}()
	return s
}
