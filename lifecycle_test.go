package iwarp_test

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestReuse connects the same two QPs again and again, after orderly closes and
// after errors.
func TestReuse(t *testing.T) {
	t.Parallel()
	ini, res := connect(t)
	ln := listen(t, iwarp.ListenConfig{})
	for round := range 6 {
		works(t, ini, res)
		if round%2 == 0 {
			endInOrder(t, ini, res)
		} else {
			endInError(t, ini, res)
		}
		for _, e := range []*end{ini, res} {
			must(t, e.Modify(iwarp.StateIdle))
			e.postRecv(50, e.mr(8, iwarp.LocalWrite).Slice(0, 8))
		}
		accepted := dialInBackground(t, func() error {
			req, err := ln.Accept(within(t))
			if err == nil {
				err = req.AcceptQP(within(t), res.QP, iwarp.AcceptConfig{})
			}
			return err
		})
		d := iwarp.Dialer{MPA: mpa.Offer{Markers: round%3 == 0}}
		must(t, d.DialQP(within(t), ini.QP, "tcp", ln.Addr().String()))
		must(t, <-accepted)
		sends(ini, 1)
		res.wantReceived(50, iwarp.StatusSuccess)
		sends(res, 1)
		ini.wantReceived(50, iwarp.StatusSuccess)
	}
	finish(t, ini, res)
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
	if err = <-c.last; err == nil { // with octets that are no FPDU
		return copy(b, "\xff\xff\xff\xff\xff\xff\xff\xff"), nil
	}
	return 0, err
}

// TestOldReceiver connects a QP again while the goroutine that receives from its first
// connection is still at it. Whatever that brings in then does not touch the second.
func TestOldReceiver(t *testing.T) {
	for _, last := range []error{io.EOF, syscall.ECONNRESET, nil} {
		old := &slow{last: make(chan error)}
		ini, res := setup{Dialer: iwarp.Dialer{Wrap: func(c net.Conn) (net.Conn, error) {
			old.Conn = c
			return old, nil
		}}}.connect(t)
		works(t, ini, res)
		must(t, ini.Modify(iwarp.StateError))
		wait(t, ini.Done(), "the end of the connection")
		must(t, ini.Modify(iwarp.StateIdle))
		before := goroutines()
		again := newEnd(t, iwarp.RNICConfig{})
		ln := listen(t, iwarp.ListenConfig{PD: again.pd})
		accepted := dialInBackground(t, func() error {
			req, err := ln.Accept(within(t))
			if err == nil {
				again.QP, err = req.Accept(within(t), iwarp.AcceptConfig{})
			}
			return err
		})
		must(t, new(iwarp.Dialer).DialQP(within(t), ini.QP, "tcp", ln.Addr().String()))
		must(t, <-accepted)
		works(t, ini, again)
		old.last <- last
		until(t, func() bool { return goroutines() <= before+3 }, "the old receiver, while the Listener and two others stay")
		select {
		case old.last <- io.EOF:
			t.Error("the old receiver reads again")
		default:
		}
		works(t, ini, again)
		finish(t, ini, again)
	}
}

// endInOrder closes from one side by a transition, which leaves the QPs Idle. No
// work is taken before they are made ready for another connection.
func endInOrder(t *testing.T, ini, res *end) {
	t.Helper()
	must(t, ini.Modify(iwarp.StateClosing))
	for _, e := range []*end{ini, res} {
		must(t, e.wantEnd())
		if s := e.State(); s != iwarp.StateClosed {
			t.Errorf("state %v after an orderly close", s)
		}
		if err := e.PostSend(&iwarp.SendWR{}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a Send: %v", err)
		}
		if _, err := e.Recv(t.Context(), iwarp.SGE{}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Recv: %v", err)
		}
	}
}

// endInError writes to an STag that names nothing.
func endInError(t *testing.T, ini, res *end) {
	t.Helper()
	ini.post(&iwarp.SendWR{Op: iwarp.OpWrite, Inline: []byte("x"), Remote: iwarp.Remote{STag: 7}, Unsignaled: true})
	for _, e := range []*end{ini, res} {
		var term *iwarp.TerminateError
		if err := e.wantEnd(); !errors.As(err, &term) || term.Code != rdmap.CodeDDPInvalidSTag || term.Remote != (e == ini) {
			t.Fatalf("ended with %v", err)
		}
		if a := e.Query(); a.State != iwarp.StateError || a.Terminate == nil || a.Terminate.Code != rdmap.CodeDDPInvalidSTag {
			t.Errorf("attributes %+v", a)
		}
	}
}

// TestModify asks for transitions that are not the consumer's to ask for.
func TestModify(t *testing.T) {
	ini, res := connect(t)
	for _, s := range []iwarp.State{iwarp.StateIdle, iwarp.StateRTS} {
		if err := ini.Modify(s); !errors.Is(err, iwarp.ErrBadState) {
			t.Errorf("RTS to %v: %v", s, err)
		}
	}
	should(t, ini.Modify(iwarp.StateTerminate))
	var term *iwarp.TerminateError
	if err := res.wantEnd(); !errors.As(err, &term) || !term.Remote || term.Code != rdmap.CodeLocalCatastrophic {
		t.Errorf("the peer: %v", err)
	}
	_ = ini.wantEnd()
	qp, err := ini.pd.CreateQP(iwarp.QPConfig{})
	must(t, err)
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
	if err := new(iwarp.Dialer).DialQP(within(t), qp, "tcp", "127.0.0.1:1"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Connect after Close: %v", err)
	}
}

// TestIdleAgain makes QPs whose connection has ended ready for another, and closes them without one: nothing is left
// of how the first has ended.
func TestIdleAgain(t *testing.T) {
	for how, end := range map[string]func(ini, res *end) error{
		"Modify(StateError)": func(ini, _ *end) error { return ini.Modify(iwarp.StateError) },
		"Abort by the peer":  func(_, res *end) error { return res.Abort() },
		"Close by the peer":  func(_, res *end) error { return res.Close() },
	} {
		ini, res := connect(t)
		must(t, end(ini, res))
		wait(t, ini.Done(), "the end")
		if ini.Err() == nil {
			t.Errorf("%s: no error", how)
		}
		must(t, ini.Modify(iwarp.StateIdle))
		if err := ini.Err(); err != nil {
			t.Errorf("%s, Idle again: %v", how, err)
		}
		must(t, ini.Close())
		if err := ini.Err(); err != nil {
			t.Errorf("%s, closed after that: %v", how, err)
		}
		wantSaid(t, how, ini.PostSend(&iwarp.SendWR{}), iwarp.ErrClosed, "the QP was closed")
	}
}

// TestRNICClose ends what is left on an RNIC, and refuses anything new.
func TestRNICClose(t *testing.T) {
	ini, res := connect(t)
	events := dialInBackground(t, func() error {
		_, err := res.rnic.NextEvent(within(t))
		for err == nil {
			_, err = res.rnic.NextEvent(within(t))
		}
		return err
	})
	should(t, res.rnic.Close())
	if err := <-events; !errors.Is(err, net.ErrClosed) {
		t.Errorf("NextEvent: %v", err)
	}
	if err := ini.wantEnd(); !errors.Is(err, iwarp.ErrConnectionLost) {
		t.Errorf("the peer: %v", err)
	}
	if _, err := res.pd.CreateQP(iwarp.QPConfig{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("CreateQP: %v", err)
	}
	if _, err := res.rnic.AllocPD(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("AllocPD: %v", err)
	}
	if qps := res.rnic.QPs(); len(qps) != 0 {
		t.Errorf("%d QPs are left", len(qps))
	}
}

// TestPrepareFails has the consumer change its mind.
func TestPrepareFails(t *testing.T) {
	changed := errors.New("changed my mind")
	no := func(*iwarp.QP) error { return changed }
	rnic := newRNIC(t, iwarp.RNICConfig{})
	ln := listen(t, iwarp.ListenConfig{RNIC: rnic})
	d := iwarp.Dialer{PD: newPD(t, rnic), Prepare: no}
	if _, err := d.Dial(within(t), "tcp", ln.Addr().String()); !errors.Is(err, changed) {
		t.Errorf("Dial: %v", err)
	}
	_, req := ask(t, ln, frame(request(2)))
	if _, err := req.Accept(within(t), iwarp.AcceptConfig{Prepare: no}); !errors.Is(err, changed) {
		t.Errorf("Accept: %v", err)
	}
	if s := rnic.Stats(); s.QPs != 0 || s.PDs != 1 {
		t.Errorf("left over: %+v", s)
	}
	qp, err := req.Accept(within(t), iwarp.AcceptConfig{}) // it can still be answered
	must(t, err)
	_ = qp.Abort()
}

// TestPrepareConnects has Prepare connect the QP itself, and then change its mind, or not: there is nothing to be connected any
// more, and nothing is left of the connection.
func TestPrepareConnects(t *testing.T) {
	for _, changed := range []error{errors.New("changed my mind"), nil} {
		res, rnic := newEnd(t, iwarp.RNICConfig{}), newRNIC(t, iwarp.RNICConfig{})
		ln := listen(t, iwarp.ListenConfig{PD: res.pd})
		d := iwarp.Dialer{PD: newPD(t, rnic), Prepare: func(qp *iwarp.QP) error {
			accepted := res.takes(ln, iwarp.AcceptConfig{})
			must(t, (&iwarp.Dialer{}).DialQP(within(t), qp, "tcp", ln.Addr().String()))
			must(t, <-accepted)
			return changed
		}}
		if _, err := d.Dial(within(t), "tcp", ln.Addr().String()); changed != nil && !errors.Is(err, changed) || changed == nil && !errors.Is(err, iwarp.ErrBadState) {
			t.Errorf("Dial: %v", err)
		}
		wait(t, res.Done(), "the end")
		if s := rnic.Stats(); s.QPs != 0 {
			t.Errorf("left over: %+v", s)
		}
		_ = res.Abort()
	}
}

// TestQPConfig refuses configurations that make no sense.
func TestQPConfig(t *testing.T) {
	pd := newPD(t, newRNIC(t, iwarp.RNICConfig{}))
	for _, cfg := range []iwarp.QPConfig{
		{SendDepth: -1}, {RecvDepth: -1}, {SendDepth: iwarp.MaxQueueDepth + 1}, {RecvDepth: iwarp.MaxQueueDepth + 1},
		{MaxInline: iwarp.MaxInline + 1},
	} {
		if _, err := pd.CreateQP(cfg); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	must(t, create(t, pd, iwarp.QPConfig{SendDepth: iwarp.MaxQueueDepth, RecvDepth: iwarp.MaxQueueDepth, MaxInline: iwarp.MaxInline}).Close())
	qp, err := pd.CreateQP(iwarp.QPConfig{MaxInline: -1})
	must(t, err)
	if err := qp.PostSend(&iwarp.SendWR{Inline: []byte("x")}); err == nil {
		t.Error("inline data on a QP without any")
	}
	if a := qp.Query(); a.State != iwarp.StateIdle || a.IRD != 0 || a.Terminate != nil {
		t.Errorf("attributes %+v", a)
	}
	_ = qp.Close()
}
