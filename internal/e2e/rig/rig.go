package rig

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

// Soon bounds what must not take long on a loaded machine; no test waits for it
// unless it fails.
const Soon = testrig.Soon

// ReadDepth is how many RDMA Reads and Atomic Operations a connection has where nobody says, in each direction.
const ReadDepth = 32

// Within returns a context that ends the test's waiting.
func Within(t testing.TB) context.Context { return testrig.Within(t) }

// Must ends the test if one of its steps has failed.
func Must(t testrig.Test, err error) {
	t.Helper()
	testrig.Must(t, err)
}

// Should reports a step that has failed, and lets the test go on.
func Should(t testrig.Test, err error) {
	t.Helper()
	testrig.Should(t, err)
}

// NewRNIC is an RNIC that is closed when the test ends.
func NewRNIC(t testing.TB, cfg iwarp.RNICConfig) *iwarp.RNIC {
	r := iwarp.NewRNIC(cfg)
	t.Cleanup(func() { r.Close() })
	return r
}

// NewPD allocates a PD.
func NewPD(t testing.TB, r *iwarp.RNIC) *iwarp.PD {
	t.Helper()
	pd, err := r.AllocPD()
	Must(t, err)
	return pd
}

// An End is one end of a connection, on an RNIC of its own.
type End struct {
	T    testing.TB
	RNIC *iwarp.RNIC
	PD   *iwarp.PD
	*iwarp.QP
}

// NewEnd is an end without a QP.
func NewEnd(t testing.TB, cfg iwarp.RNICConfig) *End {
	t.Helper()
	e := &End{T: t, RNIC: NewRNIC(t, cfg)}
	e.PD = NewPD(t, e.RNIC)
	return e
}

// Takes accepts a connection while the test goes on. Its QP is the end's.
func (e *End) Takes(ln *iwarp.Listener, cfg iwarp.AcceptConfig) <-chan error {
	cfg.QP = Unhurried(cfg.QP)
	return DialInBackground(e.T, func() error {
		req, err := ln.Accept(Within(e.T))
		if err == nil {
			e.QP, err = req.Accept(Within(e.T), cfg)
		}
		return err
	})
}

// Dials connects to a listener while the test goes on. The QP is the end's.
func (e *End) Dials(d iwarp.Dialer, ln interface{ Addr() net.Addr }) <-chan error {
	d.QP, d.MPA.Timeout = Unhurried(d.QP), cmp.Or(d.MPA.Timeout, Soon)
	return DialInBackground(e.T, func() (err error) {
		e.QP, err = d.Dial(Within(e.T), "tcp", ln.Addr().String())
		return err
	})
}

// A Setup says how two ends get connected. The zero value is the default in all
// respects, over TCP on the loopback interface.
type Setup struct {
	iwarp.Dialer
	Accept iwarp.AcceptConfig
	Listen iwarp.ListenConfig
	Pipe   bool          // connect the two by a pipe, for virtual time
	Path   time.Duration // and have bytes take so long on it
	Delay  bool          // start MPA on a TCP connection that is there already
	Over   *Transport    // if it is not TCP over IPv4
}

// Connect brings up a connection and returns its Initiator and its Responder.
func (s Setup) Connect(t testing.TB) (ini, res *End) {
	t.Helper()
	ini, res, err := s.Try(t)
	Must(t, err)
	return ini, res
}

// Try is connect where the connection may not come up.
func (s Setup) Try(t testing.TB) (ini, res *End, err error) {
	t.Helper()
	ini, res, iniErr, resErr := s.Meet(t)
	return ini, res, cmp.Or(iniErr, resErr)
}

// Meet has both sides start at once, and returns what came of it on either.
func (s Setup) Meet(t testing.TB) (ini, res *End, iniErr, resErr error) {
	t.Helper()
	if s.PD == nil {
		s.PD = NewPD(t, NewRNIC(t, iwarp.RNICConfig{}))
	}
	if s.Accept.PD == nil {
		s.Accept.PD = NewPD(t, NewRNIC(t, iwarp.RNICConfig{}))
	}
	ini, res = &End{T: t, RNIC: s.PD.RNIC(), PD: s.PD}, &End{T: t, RNIC: s.Accept.PD.RNIC(), PD: s.Accept.PD}
	s.Listen.PD = s.Accept.PD
	s.patient()
	if s.Over != nil && s.Over.Shuffled {
		iniErr, resErr = s.MeetShuffled(t, ini, res, nil)
		return ini, res, iniErr, resErr
	}
	dial, request := s.ways(t)
	accepted := DialInBackground(t, func() error {
		req, err := request()
		if err == nil {
			res.QP, err = req.Accept(Within(t), s.Accept)
		}
		return err
	})
	ini.QP, iniErr = dial()
	resErr = <-accepted
	return ini, res, iniErr, resErr
}

// patient has both ends, where time is real, start and close without hurry.
func (s *Setup) patient() {
	if s.Pipe {
		return
	}
	s.Dialer.QP, s.Accept.QP = Unhurried(s.Dialer.QP), Unhurried(s.Accept.QP)
	s.Dialer.MPA.Timeout, s.Listen.RequestTimeout = cmp.Or(s.Dialer.MPA.Timeout, Soon),
		cmp.Or(s.Listen.RequestTimeout, Soon)
}

// Unhurried has a QP, where time is real, wait in Close for as long as any test may, unless the test says how long.
func Unhurried(cfg iwarp.QPConfig) iwarp.QPConfig {
	if cfg.CloseTimeout == 0 {
		cfg.CloseTimeout, cfg.CloseLimit = Soon, cmp.Or(cfg.CloseLimit, 2*Soon)
	}
	return cfg
}

// ways returns how the two sides start.
func (s *Setup) ways(t testing.TB) (func() (*iwarp.QP, error), func() (*iwarp.Request, error)) {
	ctx := Within(t)
	var a, b net.Conn
	switch {
	case s.Pipe:
		ctx = t.Context()
		a, b = newPath(t, s.Path)
	case s.Delay:
		a, b = TCPPair(t)
	case s.Over != nil:
		return s.Over.ways(t, s)
	default:
		ln := Listen(t, s.Listen)
		return func() (*iwarp.QP, error) { return s.Dial(ctx, "tcp", ln.Addr().String()) },
			func() (*iwarp.Request, error) { return ln.Accept(ctx) }
	}
	return func() (*iwarp.QP, error) { return s.Initiate(ctx, a, nil) },
		func() (*iwarp.Request, error) { return s.Listen.Respond(ctx, b, nil) }
}

// Connect is the default setup.
func Connect(t testing.TB) (ini, res *End) {
	t.Helper()
	return Setup{}.Connect(t)
}

// Listen listens for TCP on the loopback interface until the test ends.
func Listen(t testing.TB, cfg iwarp.ListenConfig) *iwarp.Listener {
	t.Helper()
	cfg.RequestTimeout = cmp.Or(cfg.RequestTimeout, Soon)
	ln, err := cfg.Listen(t.Context(), "tcp", "127.0.0.1:0")
	Must(t, err)
	t.Cleanup(func() { ln.Close() })
	return ln
}

// MR registers n bytes.
func (e *End) MR(n int, a iwarp.Access) *iwarp.MR {
	e.T.Helper()
	mr, err := e.PD.Register(make([]byte, n), a)
	Must(e.T, err)
	return mr
}

// Filled registers n bytes of a pattern.
func (e *End) Filled(n int, seed byte, a iwarp.Access) *iwarp.MR {
	e.T.Helper()
	mr := e.MR(n, a)
	copy(mr.Bytes(), Pattern(n, seed))
	return mr
}

// Pattern is n bytes that differ from their neighbors.
func Pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7) + byte(i>>8) + seed
	}
	return b
}

// MustPost is a step of a dialogue that must succeed.
func (e *End) MustPost(wr *iwarp.SendWR) {
	e.T.Helper()
	Must(e.T, e.PostSend(wr))
}

// MustPostRecv posts a receive, which must succeed.
func (e *End) MustPostRecv(id uint64, s ...iwarp.SGE) {
	e.T.Helper()
	Must(e.T, e.PostRecv(&iwarp.RecvWR{ID: id, SGL: s}))
}

// Next waits for one completion of a CQ.
func Next(t testing.TB, cq *iwarp.CQ) iwarp.WC {
	t.Helper()
	wc, err := cq.Next(Within(t))
	Must(t, err)
	return wc
}

// want waits for one completion and compares it.
func (e *End) want(cq *iwarp.CQ, op iwarp.Op, id uint64, status iwarp.Status) iwarp.WC {
	e.T.Helper()
	wc := Next(e.T, cq)
	if wc.Op != op || wc.ID != id || wc.Status != status {
		e.T.Fatalf("completion of %v %d: %v, want %v %d: %v", wc.Op, wc.ID, wc.Err(), op, id, status)
	}
	return wc
}

// WantSent waits for the completion of a request.
func (e *End) WantSent(op iwarp.Op, id uint64, status iwarp.Status) iwarp.WC {
	e.T.Helper()
	return e.want(e.SendCQ(), op, id, status)
}

// WantReceived waits for the completion of a receive.
func (e *End) WantReceived(id uint64, status iwarp.Status) iwarp.WC {
	e.T.Helper()
	return e.want(e.RecvCQ(), iwarp.OpRecv, id, status)
}

// WantEvent waits for an event of a kind, and passes over others.
func (e *End) WantEvent(kind iwarp.EventKind) iwarp.Event {
	e.T.Helper()
	for {
		ev, err := e.RNIC.NextEvent(Within(e.T))
		if err != nil {
			e.T.Fatalf("waiting for event %q: %v", kind, err)
		}
		if ev.Kind == kind {
			return ev
		}
	}
}

// WantEnd waits for the end of the connection, and returns how it ended unless that was
// in order.
func (e *End) WantEnd() error {
	e.T.Helper()
	Wait(e.T, e.Done(), "the end of the connection")
	err := e.Err()
	if !errors.Is(err, iwarp.ErrClosed) {
		e.T.Errorf("ended, and the error is %v", err)
	}
	if e.State() == iwarp.StateClosed {
		return nil
	}
	return err
}

// Wait waits until a channel is closed.
func Wait(t testing.TB, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-Within(t).Done():
		t.Fatalf("waited for %s in vain", what)
	}
}

// Finish closes both ends in order.
func Finish(t testing.TB, a, b *End) {
	t.Helper()
	closed := make(chan error, 1)
	go func() { closed <- b.Close() }()
	Should(t, a.Close())
	Should(t, <-closed)
}

// Works has a Send go each way, and a Write and a Read from the Initiator if it
// may read, and compares every byte.
func Works(t testing.TB, ini, res *End) {
	t.Helper()
	const n = 3000
	ctx := Within(t)
	src, dst := ini.Filled(n, 1, iwarp.LocalWrite|iwarp.RemoteRead), res.MR(n, iwarp.RemoteWrite|iwarp.RemoteRead)
	res.MustPostRecv(7, dst.Slice(0, n))
	Must(t, ini.Send(ctx, src.Slice(0, n)))
	if wc := res.WantReceived(7, iwarp.StatusSuccess); wc.Length != n {
		t.Fatalf("received %d bytes, want %d", wc.Length, n)
	}
	Same(t, "Send", dst, src)
	back, away := ini.MR(n, iwarp.LocalWrite), res.Filled(n, 99, 0)
	ini.MustPostRecv(8, back.Slice(0, n))
	Must(t, res.Send(ctx, away.Slice(0, n)))
	ini.WantReceived(8, iwarp.StatusSuccess)
	Same(t, "Send back", back, away)
	if ini.Query().ORD > 0 {
		WriteAndRead(t, ini, src, back, res.MR(n, iwarp.RemoteWrite|iwarp.RemoteRead))
	}
}

// WriteAndRead writes src to away, which is remote, and reads it back.
func WriteAndRead(t testing.TB, e *End, src, back, away *iwarp.MR) {
	t.Helper()
	ctx := Within(t)
	if _, err := e.Write(ctx, src.Slice(0, src.Len()), away.Remote(0)); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Read(ctx, back.Slice(0, back.Len()), away.Remote(0)); err != nil {
		t.Fatal(err)
	}
	Same(t, "Write and Read", back, src)
}

// Look is called before a test looks at memory that a peer has written to: the two
// ends share a process here, and the race detector wants to see a lock taken.
func (e *End) Look() { e.Query() }

// Same expects two regions to hold the same bytes.
func Same(t testing.TB, what string, got, want *iwarp.MR) {
	t.Helper()
	if !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Fatalf("%s: the bytes differ", what)
	}
}

// Until waits for something that gives no notice of itself.
func Until(t testing.TB, there func() bool, what string) {
	t.Helper()
	for ctx := Within(t); !there(); time.Sleep(100 * time.Microsecond) { // who yields only keeps a core busy
		if ctx.Err() != nil {
			t.Fatalf("waited for %s in vain", what)
		}
	}
}

// DialectOf returns the dialect of a revision, and the default one for 0.
func DialectOf(t *testing.T, revision uint8) mpa.Dialect {
	t.Helper()
	if revision == 0 {
		return 0
	}
	d, err := mpa.OfRevision(revision)
	Must(t, err)
	return d
}

// Contains reports whether an error says something.
//
//housecheck:texts A test may look.
func Contains(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }
