package iwarp_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// from is an end in memory of a connection that comes from an address.
type from struct {
	*testrig.Conn
	addr net.Addr
}

func (c from) RemoteAddr() net.Addr { return c.addr }

// A crowd connects to a Listener from many addresses, in virtual time.
type crowd struct {
	t   *testing.T
	tcp *testrig.Listener
	ln  *iwarp.Listener
}

func newCrowd(t *testing.T, cfg iwarp.ListenConfig) *crowd {
	c := &crowd{t: t, tcp: testrig.NewListener("here")}
	c.ln = cfg.NewListener(c.tcp)
	t.Cleanup(func() { c.ln.Close() })
	return c
}

// come is one connection from an address.
func (c *crowd) come(ip string) *rig.Peer {
	c.t.Helper()
	a, b := testrig.Pipe(ip, "here")
	addr := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), 1024))
	rig.Must(c.t, c.tcp.Offer(c.t.Context(), from{b, addr}))
	synctest.Wait()
	return rig.NewPeer(c.t, a)
}

// serve accepts all that comes, until the Listener is closed.
func (c *crowd) serve(ctx context.Context) {
	for {
		req, err := c.ln.Accept(ctx)
		if err != nil {
			return
		}
		if qp, err := req.Accept(ctx, iwarp.AcceptConfig{}); err == nil {
			c.t.Cleanup(func() { _ = qp.Abort() })
		}
	}
}

// isOpen reports whether the Listener has kept a connection.
func (c *crowd) isOpen(p *rig.Peer) bool {
	c.t.Helper()
	return rig.IsTimeout(p.Link.Need(1, time.Now().Add(time.Millisecond)))
}

// TestOwedRTRIsHalfOpen: an accepted peer that owes its RTR indication is half-open, and may be closed to make room;
// once that is here it is not.
//
// Proves Z04.
func TestOwedRTRIsHalfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, iwarp.ListenConfig{MaxHalfOpen: 1})
		accept := func(p *rig.Peer) *iwarp.QP {
			t.Helper()
			p.Send(rig.Frame(rig.Request(2)))
			req, err := c.ln.Accept(t.Context())
			rig.Must(t, err)
			qp, err := req.Accept(t.Context(), iwarp.AcceptConfig{})
			rig.Must(t, err)
			p.WantFrame(mpa.KeyReply)
			return qp
		}
		first := c.come("192.0.2.1")
		ready := accept(first)
		if s := c.ln.Stats(); s.HalfOpen != 1 {
			t.Errorf("before its RTR indication: counted %+v", s)
		}
		first.Send(first.Write(1, 0, nil))
		synctest.Wait()
		if s := c.ln.Stats(); s.HalfOpen != 0 {
			t.Errorf("after its RTR indication: counted %+v", s)
		}
		second := c.come("192.0.2.2")
		owing := accept(second)
		c.come("192.0.2.3")
		<-owing.Done()
		if err := owing.Err(); !errors.Is(err, iwarp.ErrEvicted) || ready.State() != iwarp.StateRTS {
			t.Errorf("the QP that is owed an RTR indication: %v; the other is in %v", err, ready.State())
		}
		second.WantClosed()
		_, _ = ready.Abort(), owing.Abort()
		_ = c.ln.Close()
	})
}

// A logged is a log handler that is called with each message.
type logged func(msg string)

func (logged) Enabled(context.Context, slog.Level) bool { return true }
func (l logged) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l logged) WithGroup(string) slog.Handler          { return l }

func (l logged) Handle(_ context.Context, r slog.Record) error {
	l(r.Message)
	return nil
}

// TestEvictedAtLast has another connection come when an accepted one, which is owed its RTR indication, has just
// come up: it is closed to make room all the same, and its QP has ended when Accept returns.
//
// Proves Z04.
func TestEvictedAtLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *crowd
		rnic := iwarp.NewRNIC(iwarp.RNICConfig{Logger: slog.New(logged(func(msg string) {
			if msg == "iwarp: connection established" {
				c.come("192.0.2.2")
			}
		}))})
		pd := rig.NewPD(t, rnic)
		c = newCrowd(t, iwarp.ListenConfig{PD: pd, MaxHalfOpen: 1})
		p := c.come("192.0.2.1")
		p.Send(rig.Frame(rig.Request(2)))
		req, err := c.ln.Accept(t.Context())
		rig.Must(t, err)
		p.Meanwhile(func() { p.WantFrame(mpa.KeyReply) })
		qp := rig.NewQP(t, pd, iwarp.QPConfig{})
		if err := req.AcceptQP(t.Context(), qp, iwarp.AcceptConfig{}); !errors.Is(err, iwarp.ErrEvicted) {
			t.Errorf("AcceptQP: %v", err)
		}
		select {
		case <-qp.Done():
		default:
			t.Error("the QP has not ended")
		}
		if s := c.ln.Stats(); s.Evicted != 1 || s.Established != 0 || s.HalfOpen != 1 {
			t.Errorf("counted %+v", s)
		}
		_ = qp.Close()
		_ = c.ln.Close()
	})
}

// TestPerSource bounds what comes from one address, half-open and altogether, and nothing that comes from others.
//
// Proves Z04.
func TestPerSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, iwarp.ListenConfig{MaxHalfOpenPerSource: 2, MaxPerSource: 3})
		go c.serve(t.Context())
		one, two := c.come("2001:db8::1"), c.come("2001:db8::2") // the same 64 bits
		other := c.come("2001:db8:0:1::1")
		three := c.come("2001:db8::3") // which closes the oldest of its source
		if c.isOpen(one) || !c.isOpen(two) || !c.isOpen(three) || !c.isOpen(other) {
			t.Error("MaxHalfOpenPerSource has closed another than the oldest of the source")
		}
		establish := func(p *rig.Peer) {
			_ = p.Conn.SetReadDeadline(time.Time{})
			p.Send(rig.Frame(rig.Request(1)))
			p.WantFrame(mpa.KeyReply)
		}
		establish(two)
		establish(three)
		establish(c.come("2001:db8::4"))
		if five := c.come("2001:db8::5"); c.isOpen(five) {
			t.Error("MaxPerSource has let another in")
		}
		if !c.isOpen(other) || !c.isOpen(two) {
			t.Error("others were closed for it")
		}
		_ = two.Link.Close()
		synctest.Wait()
		if six := c.come("2001:db8::6"); !c.isOpen(six) {
			t.Error("there is no room though a connection has ended")
		}
		_ = c.ln.Close()
	})
}

// TestPlacesComeBack ends Requests in every way: the one place that there is for their source is free for the
// next, and what has failed is counted.
//
// Proves Z04.
func TestPlacesComeBack(t *testing.T) {
	gone := func(p *rig.Peer, answer func() error) error {
		_ = p.Link.Reset()
		synctest.Wait()
		if err := answer(); err == nil {
			return errors.New("no error")
		}
		return nil
	}
	for name, c := range map[string]struct {
		end            func(ctx context.Context, p *rig.Peer, req *iwarp.Request) error
		failed, denied int
	}{
		"close": {func(_ context.Context, _ *rig.Peer, req *iwarp.Request) error { return req.Close() }, 0, 0},
		"reject": {func(_ context.Context, p *rig.Peer, req *iwarp.Request) error {
			p.Meanwhile(func() { p.WantFrame(mpa.KeyReply) })
			err := req.Reject(nil)
			return err
		}, 0, 1},
		"reject, and the peer is gone": {func(_ context.Context, p *rig.Peer, req *iwarp.Request) error {
			return gone(p, func() error { err := req.Reject(nil); return err })
		}, 1, 0},
		"accept, and the peer is gone": {func(ctx context.Context, p *rig.Peer, req *iwarp.Request) error {
			return gone(p, func() error { _, err := req.Accept(ctx, iwarp.AcceptConfig{}); return err })
		}, 1, 0},
		"accept and abort": {func(ctx context.Context, p *rig.Peer, req *iwarp.Request) error {
			p.Meanwhile(func() { p.WantFrame(mpa.KeyReply) })
			qp, err := req.Accept(ctx, iwarp.AcceptConfig{})
			if err == nil {
				err = qp.Abort()
			}
			return err
		}, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			crowd := newCrowd(t, iwarp.ListenConfig{MaxPerSource: 1})
			p := crowd.come("192.0.2.1")
			p.Send(rig.Frame(rig.Request(2)))
			req, err := crowd.ln.Accept(t.Context())
			rig.Must(t, err)
			if second := crowd.come("192.0.2.1"); crowd.isOpen(second) {
				t.Errorf("%s: there are two places", name)
			}
			if err := c.end(t.Context(), p, req); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			synctest.Wait()
			if next := crowd.come("192.0.2.1"); !crowd.isOpen(next) {
				t.Errorf("%s: the place is not free", name)
			}
			if s := crowd.ln.Stats(); len(s.Failed) != c.failed || s.Rejected != uint64(c.denied) {
				t.Errorf("%s: counted %+v", name, s)
			}
			_ = crowd.ln.Close()
		})
	}
}

// TestZones: an address with a zone has a source like any other.
//
// Proves Z04.
func TestZones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, iwarp.ListenConfig{MaxHalfOpenPerSource: 1})
		one, other := c.come("fe80::1%eth0"), c.come("2001:db8::1")
		two := c.come("fe80::2%eth1")
		if c.isOpen(one) || !c.isOpen(two) || !c.isOpen(other) {
			t.Error("MaxHalfOpenPerSource does not hold for addresses with a zone")
		}
		_ = c.ln.Close()
	})
}

// acceptSteps is a Listener whose Accept does one step after the other, and then waits
// until it is closed.
type acceptSteps struct {
	steps  chan func() (net.Conn, error)
	closed chan struct{}
}

func (l *acceptSteps) Accept() (net.Conn, error) {
	select {
	case step := <-l.steps:
		return step()
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *acceptSteps) Close() error {
	close(l.closed)
	return nil
}

func (l *acceptSteps) Addr() net.Addr { return &net.TCPAddr{} }

// TestNoDescriptors: where the system has no descriptor for one more connection, the oldest
// that is half-open and silent is closed; a Request that waits for Accept is not. With
// none to close, the Listener tries again a little later.
//
// Proves Z04.
func TestNoDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &acceptSteps{steps: make(chan func() (net.Conn, error)), closed: make(chan struct{})}
		told := 0
		rnic := rig.NewRNIC(t, iwarp.RNICConfig{Logger: slog.New(logged(func(msg string) {
			if msg == "iwarp: cannot accept a TCP connection now" {
				told++
			}
		}))})
		ln := (&iwarp.ListenConfig{RNIC: rnic}).NewListener(l)
		come := func(ip string) *rig.Peer {
			a, b := testrig.Pipe(ip, "here")
			addr := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), 1024))
			l.steps <- func() (net.Conn, error) { return from{b, addr}, nil }
			synctest.Wait()
			return rig.NewPeer(t, a)
		}
		fail := func() {
			l.steps <- func() (net.Conn, error) { return nil, temporaryError{errors.New("too many open files")} }
			synctest.Wait()
		}
		c := &crowd{t: t}
		waiting, silent, later := come("192.0.2.1"), come("192.0.2.2"), come("192.0.2.3")
		waiting.Send(rig.Frame(rig.Request(2)))
		synctest.Wait()
		fail()
		if !c.isOpen(waiting) || c.isOpen(silent) || !c.isOpen(later) {
			t.Error("closed another than the oldest that is silent")
		}
		fail()
		if !c.isOpen(waiting) || c.isOpen(later) {
			t.Error("closed another than the only one that is silent")
		}
		fail() // nothing is left to close
		failed := time.Now()
		if !c.isOpen(waiting) {
			t.Error("a Request that waits for Accept was closed")
		}
		if s := ln.Stats(); s.Evicted != 2 || s.HalfOpen != 1 || s.Waiting != 1 {
			t.Errorf("counted %+v", s)
		}
		again := come("192.0.2.4")
		if paused := time.Since(failed); paused != 5*time.Millisecond {
			t.Errorf("tried again after %v", paused)
		}
		if !c.isOpen(again) {
			t.Error("a connection was closed though there is room")
		}
		if told != 3 {
			t.Errorf("of three times the log tells %d", told)
		}
		_ = ln.Close()
	})
}
