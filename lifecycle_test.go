package iwarp_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestReuse connects the same two QPs again and again, after orderly closes and
// after errors.
func TestReuse(t *testing.T) {
	t.Parallel()
	ini, res := rig.Connect(t)
	ln := rig.Listen(t, iwarp.ListenConfig{})
	for round := range 6 {
		rig.Works(t, ini, res)
		if round%2 == 0 {
			rig.EndInOrder(t, ini, res)
		} else {
			endInError(t, ini, res)
		}
		for _, e := range []*rig.End{ini, res} {
			rig.Must(t, e.Modify(iwarp.StateIdle))
			e.MustPostRecv(50, e.MR(8, iwarp.LocalWrite).Slice(0, 8))
		}
		accepted := rig.DialInBackground(t, func() error {
			req, err := ln.Accept(rig.Within(t))
			if err == nil {
				err = req.AcceptQP(rig.Within(t), res.QP, iwarp.AcceptConfig{})
			}
			return err
		})
		d := iwarp.Dialer{MPA: mpa.Offer{Markers: round%3 == 0}}
		rig.Must(t, d.DialQP(rig.Within(t), ini.QP, "tcp", ln.Addr().String()))
		rig.Must(t, <-accepted)
		rig.PostSmall(ini, 1)
		res.WantReceived(50, iwarp.StatusSuccess)
		rig.PostSmall(res, 1)
		ini.WantReceived(50, iwarp.StatusSuccess)
	}
	rig.Finish(t, ini, res)
}

// TestIdleAfterFlush makes a QP ready for another connection as soon as it has polled a flushed receive, without
// waiting for Done.
func TestIdleAfterFlush(t *testing.T) {
	t.Parallel()
	for range 400 {
		ini, res := rig.Connect(t)
		rig.Must(t, res.PostRecv(&iwarp.RecvWR{}))
		rig.Must(t, ini.Modify(iwarp.StateError))
		var wc [1]iwarp.WC
		for ctx := rig.Within(t); res.RecvCQ().Poll(wc[:]) == 0; { // without sleep: Done is closed soon
			rig.Must(t, ctx.Err())
		}
		rig.Must(t, res.Modify(iwarp.StateIdle))
		rig.Must(t, res.PostRecv(&iwarp.RecvWR{}))
		rig.Must(t, ini.Close())
		rig.Must(t, res.Close())
	}
}

// A stuck is a connection whose Write returns long after its Close.
type stuck struct {
	net.Conn
	writes, returns chan struct{}
	closed          chan struct{}
}

func (c *stuck) Write([]byte) (int, error) {
	close(c.writes)
	<-c.returns
	return 0, net.ErrClosed
}

func (c *stuck) Close() error {
	defer close(c.closed)
	return c.Conn.Close()
}

// TestIdleDuringWrite: to make a QP ready for another connection does not wait for a Write of the consumer's, which may
// be what asks for it.
func TestIdleDuringWrite(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer far.Close()
	c := &stuck{near, make(chan struct{}), make(chan struct{}), make(chan struct{})}
	e := rig.NewEnd(t, iwarp.RNICConfig{})
	e.Over(c, mpa.RoleInitiator)
	rig.PostSmall(e, 1)
	<-c.writes
	rig.Must(t, e.Modify(iwarp.StateError))
	<-c.closed
	answered := make(chan error)
	go func() {
		for range 1000 { // until it is known that Close has returned
			err := e.Modify(iwarp.StateIdle)
			if !errors.Is(err, iwarp.ErrBadState) || !strings.Contains(err.Error(), "wait for Done") {
				answered <- err
			}
			time.Sleep(50 * time.Microsecond)
		}
		close(answered)
	}()
	select {
	case err, wrong := <-answered:
		if wrong {
			t.Error(err)
		}
	case <-rig.Within(t).Done():
		t.Error("Modify does not return")
	}
	close(c.returns)
	rig.Wait(t, e.Done(), "the end of the connection")
	rig.Must(t, e.Modify(iwarp.StateIdle))
}

// A slow is a connection whose Read says only when it is told to that the connection
// has ended, and how.
type slow struct {
	net.Conn
	last chan error
}

func (c *slow) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil {
		return n, nil
	}
	if err = <-c.last; err == nil { // with bytes that are no FPDU
		return copy(b, "\xff\xff\xff\xff\xff\xff\xff\xff"), nil
	}
	return 0, err
}

// TestOldReceiver connects a QP again while the goroutine that receives from its first
// connection is still at it. Whatever that brings in then does not touch the second.
func TestOldReceiver(t *testing.T) {
	for _, last := range []error{io.EOF, syscall.ECONNRESET, nil} {
		old := &slow{last: make(chan error)}
		ini, res := rig.Setup{Dialer: iwarp.Dialer{Wrap: func(c net.Conn) (net.Conn, error) {
			old.Conn = c
			return old, nil
		}}}.Connect(t)
		rig.Works(t, ini, res)
		rig.Must(t, ini.Modify(iwarp.StateError))
		rig.Wait(t, ini.Done(), "the end of the connection")
		rig.Must(t, ini.Modify(iwarp.StateIdle))
		before := goroutines()
		again := rig.NewEnd(t, iwarp.RNICConfig{})
		ln := rig.Listen(t, iwarp.ListenConfig{PD: again.PD})
		accepted := rig.DialInBackground(t, func() error {
			req, err := ln.Accept(rig.Within(t))
			if err == nil {
				again.QP, err = req.Accept(rig.Within(t), iwarp.AcceptConfig{})
			}
			return err
		})
		rig.Must(t, new(iwarp.Dialer).DialQP(rig.Within(t), ini.QP, "tcp", ln.Addr().String()))
		rig.Must(t, <-accepted)
		rig.Works(t, ini, again)
		old.last <- last
		rig.Until(t, func() bool { return goroutines() <= before+3 },
			"the old receiver, while the Listener and two others stay")
		select {
		case old.last <- io.EOF:
			t.Error("the old receiver reads again")
		default:
		}
		rig.Works(t, ini, again)
		rig.Finish(t, ini, again)
	}
}

// endInError writes to an STag that names nothing.
func endInError(t *testing.T, ini, res *rig.End) {
	t.Helper()
	ini.MustPost(&iwarp.SendWR{Op: iwarp.OpWrite, Inline: []byte("x"), Remote: iwarp.Remote{STag: 7}, Unsignaled: true})
	for _, e := range []*rig.End{ini, res} {
		var term *iwarp.TerminateError
		if err := e.WantEnd(); !errors.As(err, &term) || term.Code != rdmap.CodeDDPInvalidSTag ||
			term.Remote != (e == ini) {
			t.Fatalf("ended with %v", err)
		}
		if a := e.Query(); a.State != iwarp.StateError || a.Terminate == nil ||
			a.Terminate.Code != rdmap.CodeDDPInvalidSTag {
			t.Errorf("attributes %+v", a)
		}
	}
}

// TestModify asks for transitions that are not the consumer's to ask for.
func TestModify(t *testing.T) {
	ini, res := rig.Connect(t)
	for _, s := range []iwarp.State{iwarp.StateIdle, iwarp.StateRTS} {
		if err := ini.Modify(s); !errors.Is(err, iwarp.ErrBadState) {
			t.Errorf("RTS to %v: %v", s, err)
		}
	}
	rig.Should(t, ini.Modify(iwarp.StateTerminate))
	var term *iwarp.TerminateError
	if err := res.WantEnd(); !errors.As(err, &term) || !term.Remote || term.Code != rdmap.CodeLocalCatastrophic {
		t.Errorf("the peer: %v", err)
	}
	_ = ini.WantEnd()
	qp, err := ini.PD.CreateQP(iwarp.QPConfig{})
	rig.Must(t, err)
	for _, s := range []iwarp.State{iwarp.StateRTS, iwarp.StateClosing, iwarp.StateTerminate} {
		if err := qp.Modify(s); !errors.Is(err, iwarp.ErrBadState) {
			t.Errorf("Idle to %v: %v", s, err)
		}
	}
	for _, s := range []iwarp.State{iwarp.StateIdle, iwarp.StateError, iwarp.StateIdle} {
		if err := qp.Modify(s); err != nil || qp.State() != s {
			t.Errorf("to %v: %v, in state %v", s, err, qp.State())
		}
	}
	if err := qp.CloseWrite(); !errors.Is(err, iwarp.ErrBadState) {
		t.Errorf("CloseWrite without a connection: %v", err)
	}
	_ = qp.Close()
	if err := qp.Modify(iwarp.StateIdle); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := new(iwarp.Dialer).DialQP(rig.Within(t), qp, "tcp", "127.0.0.1:1"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Connect after Close: %v", err)
	}
}

// TestIdleAgain makes QPs whose connection has ended ready for another, and closes them without one: nothing is left
// of how the first has ended.
func TestIdleAgain(t *testing.T) {
	for how, end := range map[string]func(ini, res *rig.End) error{
		"Modify(StateError)": func(ini, _ *rig.End) error { return ini.Modify(iwarp.StateError) },
		"Abort by the peer":  func(_, res *rig.End) error { return res.Abort() },
		"Close by the peer":  func(_, res *rig.End) error { return res.Close() },
	} {
		ini, res := rig.Connect(t)
		rig.Must(t, end(ini, res))
		rig.Wait(t, ini.Done(), "the end")
		if ini.Err() == nil {
			t.Errorf("%s: no error", how)
		}
		rig.Must(t, ini.Modify(iwarp.StateIdle))
		if err := ini.Err(); err != nil {
			t.Errorf("%s, Idle again: %v", how, err)
		}
		rig.Must(t, ini.Close())
		if err := ini.Err(); err != nil {
			t.Errorf("%s, closed after that: %v", how, err)
		}
		rig.WantSaid(t, how, ini.PostSend(&iwarp.SendWR{}), iwarp.ErrClosed, "the QP was closed")
	}
}

// TestRNICClose ends what is left on an RNIC, and refuses anything new.
func TestRNICClose(t *testing.T) {
	ini, res := rig.Connect(t)
	events := rig.DialInBackground(t, func() error {
		_, err := res.RNIC.NextEvent(rig.Within(t))
		for err == nil {
			_, err = res.RNIC.NextEvent(rig.Within(t))
		}
		return err
	})
	rig.Should(t, res.RNIC.Close())
	if err := <-events; !errors.Is(err, net.ErrClosed) {
		t.Errorf("NextEvent: %v", err)
	}
	if err := ini.WantEnd(); !errors.Is(err, iwarp.ErrConnectionLost) {
		t.Errorf("the peer: %v", err)
	}
	if _, err := res.PD.CreateQP(iwarp.QPConfig{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("CreateQP: %v", err)
	}
	if _, err := res.RNIC.AllocPD(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("AllocPD: %v", err)
	}
	if qps := res.RNIC.QPs(); len(qps) != 0 {
		t.Errorf("%d QPs are left", len(qps))
	}
}

// TestPrepareFails has the consumer change its mind.
func TestPrepareFails(t *testing.T) {
	changed := errors.New("changed my mind")
	no := func(*iwarp.QP) error { return changed }
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	ln := rig.Listen(t, iwarp.ListenConfig{RNIC: rnic})
	d := iwarp.Dialer{PD: rig.NewPD(t, rnic), Prepare: no}
	if _, err := d.Dial(rig.Within(t), "tcp", ln.Addr().String()); !errors.Is(err, changed) {
		t.Errorf("Dial: %v", err)
	}
	_, req := rig.Ask(t, ln, rig.Frame(rig.Request(2)))
	if _, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{Prepare: no}); !errors.Is(err, changed) {
		t.Errorf("Accept: %v", err)
	}
	if s := rnic.Stats(); s.QPs != 0 || s.PDs != 1 {
		t.Errorf("left over: %+v", s)
	}
	qp, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{}) // it can still be answered
	rig.Must(t, err)
	_ = qp.Abort()
}

// TestPrepareConnects has Prepare connect the QP itself, and then change its mind, or not: there is nothing to be
// connected any more, and nothing is left of the connection.
func TestPrepareConnects(t *testing.T) {
	for _, changed := range []error{errors.New("changed my mind"), nil} {
		res, rnic := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewRNIC(t, iwarp.RNICConfig{})
		ln := rig.Listen(t, iwarp.ListenConfig{PD: res.PD})
		d := iwarp.Dialer{PD: rig.NewPD(t, rnic), Prepare: func(qp *iwarp.QP) error {
			accepted := res.Takes(ln, iwarp.AcceptConfig{})
			rig.Must(t, (&iwarp.Dialer{}).DialQP(rig.Within(t), qp, "tcp", ln.Addr().String()))
			rig.Must(t, <-accepted)
			return changed
		}}
		if _, err := d.Dial(rig.Within(t), "tcp", ln.Addr().String()); changed != nil && !errors.Is(err, changed) ||
			changed == nil && !errors.Is(err, iwarp.ErrBadState) {
			t.Errorf("Dial: %v", err)
		}
		rig.Wait(t, res.Done(), "the end")
		if s := rnic.Stats(); s.QPs != 0 {
			t.Errorf("left over: %+v", s)
		}
		_ = res.Abort()
	}
}

// TestQPConfig refuses configurations that make no sense.
func TestQPConfig(t *testing.T) {
	pd := rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{}))
	for _, cfg := range []iwarp.QPConfig{
		{SendDepth: -1}, {RecvDepth: -1}, {SendDepth: iwarp.MaxQueueDepth + 1}, {RecvDepth: iwarp.MaxQueueDepth + 1},
		{MaxInline: iwarp.MaxInline + 1},
	} {
		if _, err := pd.CreateQP(cfg); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	rig.Must(t, rig.NewQP(t, pd, iwarp.QPConfig{SendDepth: iwarp.MaxQueueDepth, RecvDepth: iwarp.MaxQueueDepth,
		MaxInline: iwarp.MaxInline}).Close())
	qp, err := pd.CreateQP(iwarp.QPConfig{MaxInline: -1})
	rig.Must(t, err)
	if err := qp.PostSend(&iwarp.SendWR{Inline: []byte("x")}); err == nil {
		t.Error("inline data on a QP without any")
	}
	if a := qp.Query(); a.State != iwarp.StateIdle || a.IRD != 0 || a.Terminate != nil {
		t.Errorf("attributes %+v", a)
	}
	_ = qp.Close()
}
