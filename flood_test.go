package iwarp_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// TestFlood opens thousands of connections that say nothing. The Listener holds
// on to a bounded number of them, and serves who does say something.
//
// Proves Z04.
func TestFlood(t *testing.T) {
	const bound = 64
	silent := 1000
	if testrig.Everything() {
		silent = 10000
	}
	n := silent
	// The peers' ends are in this process too; the Listener keeps few of its own.
	if room := descriptors(); room < silent+1000 {
		n = max(min(n, room-1000), bound+1)
		t.Logf("%d silent connections instead of %d: the system allows %d open descriptors", n, silent, room)
	}
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	ln := rig.Listen(t, iwarp.ListenConfig{RNIC: rnic, MaxHalfOpen: bound, RequestTimeout: -1})
	conns := make([]net.Conn, 0, n)
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for i := range n {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", ln.Addr().String())
		rig.Must(t, err)
		conns = append(conns, c)
		if i%100 == 0 {
			if half := ln.Stats().HalfOpen; half > bound {
				t.Fatalf("%d half-open connections, the bound is %d", half, bound)
			}
		}
	}
	served := serveOne(t, ln)
	qp, err := new(iwarp.Dialer).Dial(rig.Within(t), "tcp", ln.Addr().String())
	rig.Must(t, err)
	rig.Must(t, <-served)
	s := ln.Stats()
	if s.HalfOpen > bound || s.Evicted < uint64(n-bound) || s.Established != 1 || len(s.Failed) > 0 {
		t.Errorf("counted %+v", s)
	}
	_ = qp.Abort()
}

// serveOne accepts one connection.
func serveOne(t testing.TB, ln *iwarp.Listener) <-chan error {
	return (&rig.End{T: t}).Takes(ln, iwarp.AcceptConfig{})
}

// TestFloodOfRequests has nobody fetch the Requests that come: the first ones keep
// their places, and the next are turned away.
//
// Proves Z04, Z03.
func TestFloodOfRequests(t *testing.T) {
	const bound = 8
	ln := rig.Listen(t, iwarp.ListenConfig{MaxHalfOpen: bound})
	peers := make([]*rig.Peer, bound)
	for i := range peers {
		peers[i] = rig.DialPeer(t, ln.Addr())
		peers[i].Send(rig.Frame(rig.Request(2, byte(i))))
	}
	rig.Until(t, func() bool { return ln.Stats().Waiting == bound }, "the Requests")
	for range 3 {
		p := rig.DialPeer(t, ln.Addr())
		p.WantClosed()
	}
	if s := ln.Stats(); s.Evicted != 3 || s.HalfOpen != bound {
		t.Errorf("counted %+v", s)
	}
	for range bound {
		req, err := ln.Accept(rig.Within(t))
		rig.Must(t, err)
		rig.Should(t, req.Close())
	}
}

// TestListenerClose closes a Listener with connections at every step of their
// startup. All of them end, but for the Request that was handed out.
func TestListenerClose(t *testing.T) {
	ln := rig.Listen(t, iwarp.ListenConfig{RequestTimeout: -1})
	mine, req := rig.Ask(t, ln, rig.Frame(rig.Request(2)))
	silent, half, waiting := rig.DialPeer(t, ln.Addr()), rig.DialPeer(t, ln.Addr()), rig.DialPeer(t, ln.Addr())
	half.Send(rig.Frame(rig.Request(2))[:10])
	waiting.Send(rig.Frame(rig.Request(2)))
	blocked := rig.DialInBackground(t, func() error {
		_, err := ln.Accept(context.WithoutCancel(t.Context()))
		for err == nil {
			_, err = ln.Accept(context.WithoutCancel(t.Context()))
		}
		return err
	})
	rig.Should(t, ln.Close())
	err := <-blocked
	if op := (*iwarp.OpError)(nil); !errors.Is(err, net.ErrClosed) || !errors.As(err, &op) || op.Op != "accept" {
		t.Errorf("Accept: %v", err)
	}
	silent.WantClosed()
	half.WantClosed()
	if _, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{}); err != nil {
		t.Errorf("a Request from before: %v", err)
	}
	mine.WantFrame(mpa.KeyReply)
	if s := ln.Stats(); s.HalfOpen != 1 { // it owes its RTR indication
		t.Errorf("counted %+v", s)
	}
	mine.Send(mine.Write(1, 0, nil))
	rig.Until(t, func() bool { return ln.Stats().HalfOpen == 0 }, "the RTR indication")
	if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed again: %v", err)
	}
}

// brokenListener is a TCP listener whose Accept fails in ways that it can recover
// from, and then for good.
type brokenListener struct {
	net.Listener
	errs []error
}

type temporaryError struct{ error }

func (temporaryError) Temporary() bool { return true }

func (l *brokenListener) Accept() (net.Conn, error) {
	if len(l.errs) == 0 {
		return l.Listener.Accept()
	}
	err := l.errs[0]
	l.errs = l.errs[1:]
	return nil, err
}

// TestAcceptErrors goes on after errors that pass, and ends with one that does not.
func TestAcceptErrors(t *testing.T) {
	passing := temporaryError{errors.New("too many open files")}
	ln := new(iwarp.ListenConfig).NewListener(&brokenListener{Listener: rig.ListenTCP(t),
		errs: []error{passing, passing}})
	defer ln.Close()
	served := serveOne(t, ln)
	qp, err := new(iwarp.Dialer).Dial(rig.Within(t), "tcp", ln.Addr().String())
	rig.Must(t, err)
	rig.Should(t, <-served)
	_ = qp.Abort()

	broken := errors.New("the interface is gone")
	ln = new(iwarp.ListenConfig).NewListener(&brokenListener{Listener: rig.ListenTCP(t), errs: []error{broken}})
	defer ln.Close()
	if _, err := ln.Accept(rig.Within(t)); !errors.Is(err, broken) {
		t.Errorf("Accept: %v", err)
	}
}

// TestComesAtClose has a connection come while the Listener closes: it is closed too, and keeps no place.
func TestComesAtClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &acceptSteps{steps: make(chan func() (net.Conn, error)), closed: make(chan struct{})}
		ln := new(iwarp.ListenConfig).NewListener(l)
		a, b := testrig.Pipe("192.0.2.1", "here")
		closed := make(chan error, 1)
		l.steps <- func() (net.Conn, error) {
			go func() { closed <- ln.Close() }()
			synctest.Wait()
			return b, nil
		}
		rig.Should(t, <-closed)
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("read %v", err)
		}
		if s := ln.Stats(); s.HalfOpen != 0 || s.Evicted != 1 {
			t.Errorf("counted %+v", s)
		}
	})
}

// The flood of the tests below.
const (
	floodRate   = 11000 // connections from one address, in a second
	farClients  = 12    // from addresses of their own, in the same second
	farDelay    = 300 * time.Millisecond
	floodSource = "192.0.2.1"
)

// flood has one address open connections, each of which says something, or nothing. Meanwhile others connect, whose
// Requests take their time. They are returned when these are on their way.
func (c *crowd) flood(says []byte) (far []*rig.Peer) {
	for i := range floodRate {
		p := c.come(floodSource)
		if len(says) > 0 {
			_ = p.Link.Send(says)
		}
		time.Sleep(time.Second / floodRate) // of virtual time
		if i%(floodRate/farClients) == floodRate/farClients-1 {
			p := c.come(net.IPv4(198, 51, 100, byte(i/(floodRate/farClients))).String())
			far = append(far, p)
			time.AfterFunc(farDelay, func() { _ = p.Link.Send(rig.Frame(rig.Request(2))) })
		}
	}
	return far
}

// TestFloodSparesOthers has one address open 11,000 connections a second, of which none says anything, and twelve
// others connect over lines of 300 ms each way: all of them come up.
//
// Proves Z04.
func TestFloodSparesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, iwarp.ListenConfig{RNIC: iwarp.NewRNIC(iwarp.RNICConfig{})})
		go c.serve(t.Context())
		far := c.flood(nil)
		time.Sleep(farDelay) // of virtual time
		for i, p := range far {
			p.WantFrame(mpa.KeyReply)
			p.Send(p.Write(1, 0, nil))
			synctest.Wait()
			if !c.isOpen(p) {
				t.Errorf("client %d was closed", i)
			}
		}
		if s := c.ln.Stats(); s.Established != farClients || s.HalfOpen > 1024 || s.Evicted < floodRate-1024 {
			t.Errorf("counted %+v", s)
		}
		_ = c.ln.Close()
	})
}

// TestFloodOfRequestsSparesOthers is the same with a whole Request on each connection, and a server that is not as
// fast as they come: those of the others reach Accept.
//
// Proves Z04.
func TestFloodOfRequestsSparesOthers(t *testing.T) {
	for _, busy := range []time.Duration{50 * time.Microsecond, 200 * time.Microsecond, time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, iwarp.ListenConfig{RNIC: iwarp.NewRNIC(iwarp.RNICConfig{})})
			served := map[string]int{}
			go func() {
				for {
					req, err := c.ln.Accept(t.Context())
					if err != nil {
						return
					}
					ip, _, _ := net.SplitHostPort(req.RemoteAddr().String())
					served[ip]++
					time.Sleep(busy) // of virtual time
					_ = req.Close()
				}
			}()
			c.flood(rig.Frame(rig.Request(2)))
			time.Sleep(10 * time.Second) // of virtual time
			_ = c.ln.Close()
			synctest.Wait()
			if len(served) != farClients+1 || served[floodSource] == 0 {
				t.Errorf("%v for each Request: Accept returned some from %d of %d other addresses, %d of the flood's",
					busy, len(served)-1, farClients, served[floodSource])
			}
		})
	}
}

// TestWaitingRequestMakesRoom: where all places are taken by the Requests of one address that wait for Accept, the
// oldest of them is closed for a connection from another, and Accept returns the rest. The address itself gets no more.
//
// Proves Z04.
func TestWaitingRequestMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int32
		log := slog.New(rig.LogHandler(func(r slog.Record) {
			r.Attrs(func(a slog.Attr) bool {
				told.Add(int32(wording.Bit(a.Key == "cause" && a.Value.String() == iwarp.ErrEvicted.Error())))
				return true
			})
		}))
		c := newCrowd(t, iwarp.ListenConfig{MaxHalfOpen: 3, RNIC: rig.NewRNIC(t, iwarp.RNICConfig{Logger: log})})
		come := func(ip string) *rig.Peer {
			p := c.come(ip)
			_ = p.Link.Send(rig.Frame(rig.Request(2)))
			synctest.Wait()
			return p
		}
		first, second, third := come(floodSource), come(floodSource), come(floodSource)
		if more := c.come(floodSource); c.isOpen(more) {
			t.Error("there is a place for a fourth of one address")
		}
		other := come("198.51.100.1")
		if c.isOpen(first) || !c.isOpen(second) || !c.isOpen(third) || !c.isOpen(other) {
			t.Error("closed another than the oldest Request of the address that has most")
		}
		if more := come("198.51.100.2"); !c.isOpen(more) || c.isOpen(second) {
			t.Error("a third address got no place")
		}
		if more := come("198.51.100.3"); c.isOpen(more) {
			t.Error("a Request was closed though no address has more than another would have")
		}
		for _, want := range []string{floodSource, "198.51.100.1", "198.51.100.2"} {
			req, err := c.ln.Accept(t.Context())
			rig.Must(t, err)
			if ip, _, _ := net.SplitHostPort(req.RemoteAddr().String()); ip != want {
				t.Errorf("Accept returned a Request from %s, want %s", ip, want)
			}
			rig.Should(t, req.Close())
		}
		if told.Load() != 4 {
			t.Errorf("%d records of connections that were closed to make room", told.Load())
		}
		if s := c.ln.Stats(); s.Evicted != 4 || s.HalfOpen != 0 || s.Waiting != 0 {
			t.Errorf("counted %+v", s)
		}
		_ = c.ln.Close()
	})
}
