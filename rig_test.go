package iwarp_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// soon bounds what must not take long on a loaded machine; no test waits for it
// unless it fails.
const soon = testrig.Soon

// within returns a context that ends the test's waiting.
func within(t testing.TB) context.Context { return testrig.Within(t) }

// must ends the test, and should reports, if a step of the test has failed.
var must, should = testrig.Must, testrig.Should

func newRNIC(t testing.TB, cfg iwarp.RNICConfig) *iwarp.RNIC {
	r := iwarp.NewRNIC(cfg)
	t.Cleanup(func() { r.Close() })
	return r
}

func newPD(t testing.TB, r *iwarp.RNIC) *iwarp.PD {
	t.Helper()
	pd, err := r.AllocPD()
	must(t, err)
	return pd
}

// An end is one end of a connection, on an RNIC of its own.
type end struct {
	t    testing.TB
	rnic *iwarp.RNIC
	pd   *iwarp.PD
	*iwarp.QP
}

// newEnd is an end without a QP.
func newEnd(t testing.TB, cfg iwarp.RNICConfig) *end {
	t.Helper()
	e := &end{t: t, rnic: newRNIC(t, cfg)}
	e.pd = newPD(t, e.rnic)
	return e
}

// takes accepts a connection while the test goes on. Its QP is the end's.
func (e *end) takes(ln *iwarp.Listener, cfg iwarp.AcceptConfig) <-chan error {
	cfg.QP = unhurried(cfg.QP)
	return dialInBackground(e.t, func() error {
		req, err := ln.Accept(within(e.t))
		if err == nil {
			e.QP, err = req.Accept(within(e.t), cfg)
		}
		return err
	})
}

// dials connects to a listener while the test goes on. The QP is the end's.
func (e *end) dials(d iwarp.Dialer, ln interface{ Addr() net.Addr }) <-chan error {
	d.QP, d.MPA.Timeout = unhurried(d.QP), cmp.Or(d.MPA.Timeout, soon)
	return dialInBackground(e.t, func() (err error) {
		e.QP, err = d.Dial(within(e.t), "tcp", ln.Addr().String())
		return err
	})
}

// A setup says how two ends get connected. The zero value is the default in all
// respects, over TCP on the loopback interface.
type setup struct {
	iwarp.Dialer
	accept iwarp.AcceptConfig
	listen iwarp.ListenConfig
	pipe   bool          // connect the two by a pipe, for virtual time
	path   time.Duration // and have octets take so long on it
	delay  bool          // start MPA on a TCP connection that is there already
	over   *transport    // if it is not TCP over IPv4
}

// connect brings up a connection and returns its Initiator and its Responder.
func (s setup) connect(t testing.TB) (ini, res *end) {
	t.Helper()
	ini, res, err := s.try(t)
	must(t, err)
	return ini, res
}

// try is connect where the connection may not come up.
func (s setup) try(t testing.TB) (ini, res *end, err error) {
	t.Helper()
	ini, res, iniErr, resErr := s.meet(t)
	return ini, res, cmp.Or(iniErr, resErr)
}

// meet has both sides start at once, and returns what came of it on either.
func (s setup) meet(t testing.TB) (ini, res *end, iniErr, resErr error) {
	t.Helper()
	if s.PD == nil {
		s.PD = newPD(t, newRNIC(t, iwarp.RNICConfig{}))
	}
	if s.accept.PD == nil {
		s.accept.PD = newPD(t, newRNIC(t, iwarp.RNICConfig{}))
	}
	ini, res = &end{t: t, rnic: s.PD.RNIC(), pd: s.PD}, &end{t: t, rnic: s.accept.PD.RNIC(), pd: s.accept.PD}
	s.listen.PD = s.accept.PD
	s.patient()
	if s.over != nil && s.over.shuffled {
		iniErr, resErr = s.meetShuffled(t, ini, res, nil)
		return ini, res, iniErr, resErr
	}
	dial, request := s.ways(t)
	accepted := dialInBackground(t, func() error {
		req, err := request()
		if err == nil {
			res.QP, err = req.Accept(within(t), s.accept)
		}
		return err
	})
	ini.QP, iniErr = dial()
	resErr = <-accepted
	return ini, res, iniErr, resErr
}

// patient has both ends, where time is real, start and close without hurry.
func (s *setup) patient() {
	if s.pipe {
		return
	}
	s.Dialer.QP, s.accept.QP = unhurried(s.Dialer.QP), unhurried(s.accept.QP)
	s.Dialer.MPA.Timeout, s.listen.RequestTimeout = cmp.Or(s.Dialer.MPA.Timeout, soon), cmp.Or(s.listen.RequestTimeout, soon)
}

// unhurried has a QP, where time is real, wait in Close for as long as any test may, unless the test says how long.
func unhurried(cfg iwarp.QPConfig) iwarp.QPConfig {
	if cfg.CloseTimeout == 0 {
		cfg.CloseTimeout, cfg.CloseLimit = soon, cmp.Or(cfg.CloseLimit, 2*soon)
	}
	return cfg
}

// ways returns how the two sides start.
func (s *setup) ways(t testing.TB) (func() (*iwarp.QP, error), func() (*iwarp.Request, error)) {
	ctx := within(t)
	var a, b net.Conn
	switch {
	case s.pipe:
		ctx = t.Context()
		a, b = newPath(t, s.path)
	case s.delay:
		a, b = tcpPair(t)
	case s.over != nil:
		return s.over.ways(t, s)
	default:
		ln := listen(t, s.listen)
		return func() (*iwarp.QP, error) { return s.Dial(ctx, "tcp", ln.Addr().String()) },
			func() (*iwarp.Request, error) { return ln.Accept(ctx) }
	}
	return func() (*iwarp.QP, error) { return s.Initiate(ctx, a, nil) },
		func() (*iwarp.Request, error) { return iwarp.Respond(ctx, b, nil, s.listen) }
}

// connect is the default setup.
func connect(t testing.TB) (ini, res *end) {
	t.Helper()
	return setup{}.connect(t)
}

func listen(t testing.TB, cfg iwarp.ListenConfig) *iwarp.Listener {
	t.Helper()
	cfg.RequestTimeout = cmp.Or(cfg.RequestTimeout, soon)
	ln, err := iwarp.Listen(t.Context(), "tcp", "127.0.0.1:0", cfg)
	must(t, err)
	t.Cleanup(func() { ln.Close() })
	return ln
}

// mr registers n octets.
func (e *end) mr(n int, a iwarp.Access) *iwarp.MR {
	e.t.Helper()
	mr, err := e.pd.Register(make([]byte, n), a)
	must(e.t, err)
	return mr
}

// filled registers n octets of a pattern.
func (e *end) filled(n int, seed byte, a iwarp.Access) *iwarp.MR {
	e.t.Helper()
	mr := e.mr(n, a)
	copy(mr.Bytes(), pattern(n, seed))
	return mr
}

func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7) + byte(i>>8) + seed
	}
	return b
}

// post is a step of a dialogue that must succeed.
func (e *end) post(wr *iwarp.SendWR) {
	e.t.Helper()
	must(e.t, e.PostSend(wr))
}

func (e *end) postRecv(id uint64, s ...iwarp.SGE) {
	e.t.Helper()
	must(e.t, e.PostRecv(&iwarp.RecvWR{ID: id, SGL: s}))
}

// next waits for one completion of a CQ.
func next(t testing.TB, cq *iwarp.CQ) iwarp.WC {
	t.Helper()
	wc, err := cq.Next(within(t))
	must(t, err)
	return wc
}

// want waits for one completion and compares it.
func (e *end) want(cq *iwarp.CQ, op iwarp.Op, id uint64, status iwarp.Status) iwarp.WC {
	e.t.Helper()
	wc := next(e.t, cq)
	if wc.Op != op || wc.ID != id || wc.Status != status {
		e.t.Fatalf("completion of %v %d: %v, want %v %d: %v", wc.Op, wc.ID, wc.Err(), op, id, status)
	}
	return wc
}

func (e *end) wantSent(op iwarp.Op, id uint64, status iwarp.Status) iwarp.WC {
	e.t.Helper()
	return e.want(e.SendCQ(), op, id, status)
}

func (e *end) wantReceived(id uint64, status iwarp.Status) iwarp.WC {
	e.t.Helper()
	return e.want(e.RecvCQ(), iwarp.OpRecv, id, status)
}

// wantEvent waits for an event of a kind, and passes over others.
func (e *end) wantEvent(kind iwarp.EventKind) iwarp.Event {
	e.t.Helper()
	for {
		ev, err := e.rnic.NextEvent(within(e.t))
		if err != nil {
			e.t.Fatalf("waiting for event %q: %v", kind, err)
		}
		if ev.Kind == kind {
			return ev
		}
	}
}

// wantEnd waits for the end of the connection, and returns how it ended unless that was
// in order.
func (e *end) wantEnd() error {
	e.t.Helper()
	wait(e.t, e.Done(), "the end of the connection")
	err := e.Err()
	if !errors.Is(err, iwarp.ErrClosed) {
		e.t.Errorf("ended, and the error is %v", err)
	}
	if e.State() == iwarp.StateClosed {
		return nil
	}
	return err
}

func wait(t testing.TB, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-within(t).Done():
		t.Fatalf("waited for %s in vain", what)
	}
}

// finish closes both ends in order.
func finish(t testing.TB, a, b *end) {
	t.Helper()
	closed := make(chan error, 1)
	go func() { closed <- b.Close() }()
	should(t, a.Close())
	should(t, <-closed)
}

// works has a Send go each way, and a Write and a Read from the Initiator if it
// may read, and compares every octet.
func works(t testing.TB, ini, res *end) {
	t.Helper()
	const n = 3000
	ctx := within(t)
	src, dst := ini.filled(n, 1, iwarp.LocalWrite|iwarp.RemoteRead), res.mr(n, iwarp.RemoteWrite|iwarp.RemoteRead)
	res.postRecv(7, dst.Slice(0, n))
	must(t, ini.Send(ctx, src.Slice(0, n)))
	if wc := res.wantReceived(7, iwarp.StatusSuccess); wc.Length != n {
		t.Fatalf("received %d octets, want %d", wc.Length, n)
	}
	same(t, "Send", dst, src)
	back, away := ini.mr(n, iwarp.LocalWrite), res.filled(n, 99, 0)
	ini.postRecv(8, back.Slice(0, n))
	must(t, res.Send(ctx, away.Slice(0, n)))
	ini.wantReceived(8, iwarp.StatusSuccess)
	same(t, "Send back", back, away)
	if ini.Query().ORD > 0 {
		writeAndRead(t, ini, src, back, res.mr(n, iwarp.RemoteWrite|iwarp.RemoteRead))
	}
}

// writeAndRead writes src to away, which is remote, and reads it back.
func writeAndRead(t testing.TB, e *end, src, back, away *iwarp.MR) {
	t.Helper()
	ctx := within(t)
	if _, err := e.Write(ctx, src.Slice(0, src.Len()), away.Remote(0)); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Read(ctx, back.Slice(0, back.Len()), away.Remote(0)); err != nil {
		t.Fatal(err)
	}
	same(t, "Write and Read", back, src)
}

// look is called before a test looks at memory that a peer has written to: the two
// ends share a process here, and the race detector wants to see a lock taken.
func (e *end) look() { e.Query() }

func same(t testing.TB, what string, got, want *iwarp.MR) {
	t.Helper()
	if !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Fatalf("%s: the octets differ", what)
	}
}

// until waits for something that gives no notice of itself.
func until(t testing.TB, there func() bool, what string) {
	t.Helper()
	for ctx := within(t); !there(); time.Sleep(100 * time.Microsecond) { // who yields only keeps a core busy
		if ctx.Err() != nil {
			t.Fatalf("waited for %s in vain", what)
		}
	}
}

// dialectOf returns the dialect of a revision, and the default one for 0.
func dialectOf(t *testing.T, revision uint8) mpa.Dialect {
	t.Helper()
	if revision == 0 {
		return 0
	}
	d, err := mpa.OfRevision(revision)
	must(t, err)
	return d
}

// contains reports whether an error says something.
func contains(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }
