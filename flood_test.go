package iwarp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
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
	rnic := newRNIC(t, iwarp.RNICConfig{})
	ln := listen(t, iwarp.ListenConfig{RNIC: rnic, MaxHalfOpen: bound, RequestTimeout: -1})
	conns := make([]net.Conn, 0, n)
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for i := range n {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", ln.Addr().String())
		must(t, err)
		conns = append(conns, c)
		if i%100 == 0 {
			if half := ln.Stats().HalfOpen; half > bound {
				t.Fatalf("%d half-open connections, the bound is %d", half, bound)
			}
		}
	}
	served := serveOne(t, ln)
	qp, err := new(iwarp.Dialer).Dial(within(t), "tcp", ln.Addr().String())
	must(t, err)
	must(t, <-served)
	s := ln.Stats()
	if s.HalfOpen > bound || s.Evicted < uint64(n-bound) || s.Established != 1 || len(s.Failed) > 0 {
		t.Errorf("counted %+v", s)
	}
	_ = qp.Abort()
}

// serveOne accepts one connection.
func serveOne(t testing.TB, ln *iwarp.Listener) <-chan error {
	return (&end{t: t}).takes(ln, iwarp.AcceptConfig{})
}

// TestFloodOfRequests has nobody fetch the Requests that come: the first ones keep
// their places, and the next are turned away.
//
// Proves Z04, Z03.
func TestFloodOfRequests(t *testing.T) {
	const bound = 8
	ln := listen(t, iwarp.ListenConfig{MaxHalfOpen: bound})
	peers := make([]*peer, bound)
	for i := range peers {
		peers[i] = dialPeer(t, ln.Addr())
		peers[i].send(frame(request(2, byte(i))))
	}
	until(t, func() bool { return ln.Stats().Waiting == bound }, "the Requests")
	for range 3 {
		p := dialPeer(t, ln.Addr())
		p.wantClosed()
	}
	if s := ln.Stats(); s.Evicted != 3 || s.HalfOpen != bound {
		t.Errorf("counted %+v", s)
	}
	for range bound {
		req, err := ln.Accept(within(t))
		must(t, err)
		should(t, req.Close())
	}
}

// TestListenerClose closes a Listener with connections at every step of their
// startup. All of them end, but for the Request that was handed out.
func TestListenerClose(t *testing.T) {
	ln := listen(t, iwarp.ListenConfig{RequestTimeout: -1})
	mine, req := ask(t, ln, frame(request(2)))
	silent, half, waiting := dialPeer(t, ln.Addr()), dialPeer(t, ln.Addr()), dialPeer(t, ln.Addr())
	half.send(frame(request(2))[:10])
	waiting.send(frame(request(2)))
	blocked := dialInBackground(t, func() error {
		_, err := ln.Accept(context.WithoutCancel(t.Context()))
		for err == nil {
			_, err = ln.Accept(context.WithoutCancel(t.Context()))
		}
		return err
	})
	should(t, ln.Close())
	err := <-blocked
	if op := (*iwarp.OpError)(nil); !errors.Is(err, net.ErrClosed) || !errors.As(err, &op) || op.Op != "accept" {
		t.Errorf("Accept: %v", err)
	}
	silent.wantClosed()
	half.wantClosed()
	if _, err := req.Accept(within(t), iwarp.AcceptConfig{}); err != nil {
		t.Errorf("a Request from before: %v", err)
	}
	mine.wantFrame(mpa.KeyReply)
	if s := ln.Stats(); s.HalfOpen != 1 { // it owes its RTR indication
		t.Errorf("counted %+v", s)
	}
	mine.send(mine.write(1, 0, nil))
	until(t, func() bool { return ln.Stats().HalfOpen == 0 }, "the RTR indication")
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
	ln := iwarp.NewListener(&brokenListener{Listener: listenTCP(t), errs: []error{passing, passing}}, iwarp.ListenConfig{})
	defer ln.Close()
	served := serveOne(t, ln)
	qp, err := new(iwarp.Dialer).Dial(within(t), "tcp", ln.Addr().String())
	must(t, err)
	should(t, <-served)
	_ = qp.Abort()

	broken := errors.New("the interface is gone")
	ln = iwarp.NewListener(&brokenListener{Listener: listenTCP(t), errs: []error{broken}}, iwarp.ListenConfig{})
	defer ln.Close()
	if _, err := ln.Accept(within(t)); !errors.Is(err, broken) {
		t.Errorf("Accept: %v", err)
	}
}

// TestComesAtClose has a connection come while the Listener closes: it is closed too, and keeps no place.
func TestComesAtClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &acceptSteps{steps: make(chan func() (net.Conn, error)), closed: make(chan struct{})}
		ln := iwarp.NewListener(l, iwarp.ListenConfig{})
		a, b := testrig.Pipe("192.0.2.1", "here")
		closed := make(chan error, 1)
		l.steps <- func() (net.Conn, error) {
			go func() { closed <- ln.Close() }()
			synctest.Wait()
			return b, nil
		}
		should(t, <-closed)
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("read %v", err)
		}
		if s := ln.Stats(); s.HalfOpen != 0 || s.Evicted != 1 {
			t.Errorf("counted %+v", s)
		}
	})
}
