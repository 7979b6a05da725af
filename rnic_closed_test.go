package iwarp_test

import (
	"errors"
	"log/slog"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/goiwarp/iwarp"
)

// TestNothingOfClosedRNIC takes whatever there is from an RNIC that was closed, or shut down.
func TestNothingOfClosedRNIC(t *testing.T) {
	for how, end := range map[string]func(*iwarp.RNIC) error{
		"Close":    (*iwarp.RNIC).Close,
		"Shutdown": func(r *iwarp.RNIC) error { return r.Shutdown(within(t)) },
	} {
		rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
		pd := newPD(t, rnic)
		must(t, end(rnic))
		for what, take := range map[string]func() error{
			"AllocPD":        func() error { _, err := rnic.AllocPD(); return err },
			"CreateCQ":       func() error { _, err := rnic.CreateCQ(4); return err },
			"Register":       func() error { _, err := pd.Register(make([]byte, 4), 0); return err },
			"CreateSRQ":      func() error { _, err := pd.CreateSRQ(iwarp.SRQConfig{}); return err },
			"CreateQP":       func() error { _, err := pd.CreateQP(iwarp.QPConfig{}); return err },
			"Listen, RNIC":   func() error { return listens(t, "tcp", iwarp.ListenConfig{RNIC: rnic}) },
			"Listen, PD":     func() error { return listens(t, "tcp", iwarp.ListenConfig{PD: pd}) },
			"Listen on SCTP": func() error { return listens(t, "sctp4", iwarp.ListenConfig{PD: pd}) },
			"Dial": func() error {
				_, err := (&iwarp.Dialer{PD: pd}).Dial(within(t), "tcp", "127.0.0.1:1")
				return err
			},
			"Respond": func() error {
				a, _ := newPipe(t)
				_, err := iwarp.Respond(within(t), a, nil, iwarp.ListenConfig{RNIC: rnic})
				return err
			},
		} {
			wantSaid(t, what+" after "+how, take(), iwarp.ErrClosed, "the RNIC was closed")
		}
	}
}

// TestClosedRNICIsNamed has a QP, and a call that waits on it, told that the RNIC has ended it.
func TestClosedRNICIsNamed(t *testing.T) {
	ini, _ := connect(t)
	received := dialInBackground(t, func() error { _, err := ini.Recv(within(t), iwarp.SGE{}); return err })
	until(t, func() bool { return ini.Query().Receives == 1 }, "the receive")
	must(t, ini.rnic.Close())
	wantSaid(t, "Recv", <-received, iwarp.ErrClosed, "the RNIC was closed")
	wantSaid(t, "Err", ini.Err(), iwarp.ErrClosed, "the RNIC was closed")
	wantSaid(t, "Send", ini.Send(within(t), iwarp.SGE{}), iwarp.ErrClosed, "the RNIC was closed")
	if err := ini.QP.Close(); err != nil {
		t.Errorf("Close of a QP that ended with its RNIC: %v", err)
	}
	if ev, err := ini.rnic.NextEvent(within(t)); err == nil && ev.Kind == iwarp.EventQPFatal {
		t.Errorf("told of what the program itself did: %v", ev)
	}
}

// listens returns the error of Listen.
func listens(t *testing.T, network string, cfg iwarp.ListenConfig) error {
	ln, err := iwarp.Listen(t.Context(), network, "127.0.0.1:0", cfg)
	if err == nil {
		_ = ln.Close()
	}
	return err
}

// TestListenInClosedPD has connections created in a Protection Domain that is not there any more.
func TestListenInClosedPD(t *testing.T) {
	pd := newPD(t, newRNIC(t, iwarp.RNICConfig{}))
	must(t, pd.Close())
	wantSaid(t, "Listen", listens(t, "tcp", iwarp.ListenConfig{PD: pd}), iwarp.ErrClosed, "the Protection Domain was closed")
}

// TestCloseEndsListeners closes an RNIC that listens, over TCP and SCTP. A Listener on what is listened on already
// comes too late.
func TestCloseEndsListeners(t *testing.T) {
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	cfg := iwarp.ListenConfig{RNIC: rnic}
	overTCP := listen(t, cfg)
	overSCTP, err := iwarp.Listen(t.Context(), "sctp4", "127.0.0.1:0", cfg)
	must(t, err)
	half := dialTCP(t, overTCP.Addr().String())
	until(t, func() bool { return overTCP.Stats().HalfOpen == 1 }, "the connection")
	must(t, rnic.Close())
	for _, ln := range []*iwarp.Listener{overTCP, overSCTP} {
		_, err := ln.Accept(within(t))
		wantSaid(t, "Accept", err, iwarp.ErrClosed, "the RNIC was closed")
	}
	must(t, half.SetReadDeadline(time.Now().Add(soon)))
	if _, err := half.Read(make([]byte, 1)); err == nil || errors.Is(err, net.ErrClosed) {
		t.Errorf("the half-open connection: %v", err)
	}
	if c, err := net.Dial("tcp", overTCP.Addr().String()); err == nil {
		c.Close()
		t.Error("TCP still connects")
	}
	on, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	late := iwarp.NewListener(on, cfg)
	_, err = late.Accept(within(t))
	wantSaid(t, "Accept of a late Listener", err, iwarp.ErrClosed, "the RNIC was closed")
}

// TestClosedListenerIsForgotten: an RNIC keeps nothing of a Listener that was closed.
func TestClosedListenerIsForgotten(t *testing.T) {
	rnic := newRNIC(t, iwarp.RNICConfig{})
	open := func() weak.Pointer[iwarp.Listener] {
		ln, err := iwarp.Listen(t.Context(), "tcp", "127.0.0.1:0", iwarp.ListenConfig{RNIC: rnic})
		must(t, err)
		must(t, ln.Close())
		return weak.Make(ln)
	}
	ln := open()
	until(t, func() bool { runtime.GC(); return ln.Value() == nil }, "the end of the Listener")
}

// TestReleasedBeforeAdopted releases a QP just when its connection has come up: the Listener keeps nothing of it.
func TestReleasedBeforeAdopted(t *testing.T) {
	var up atomic.Pointer[iwarp.QP]
	rnic := newRNIC(t, iwarp.RNICConfig{Logger: slog.New(logged(func(msg string) {
		if qp := up.Load(); msg == "iwarp: connection established" && qp != nil {
			_ = qp.Abort()
		}
	}))})
	pd := newPD(t, rnic)
	ln := listen(t, iwarp.ListenConfig{PD: pd})
	released := func() weak.Pointer[iwarp.QP] {
		dialed := dialInBackground(t, func() error {
			qp, err := new(iwarp.Dialer).Dial(within(t), "tcp", ln.Addr().String())
			if err == nil {
				err = qp.Close()
			}
			return err
		})
		req, err := ln.Accept(within(t))
		must(t, err)
		qp, err := pd.CreateQP(iwarp.QPConfig{})
		must(t, err)
		up.Store(qp)
		_ = req.AcceptQP(within(t), qp, iwarp.AcceptConfig{})
		<-dialed // with whatever came of it
		up.Store(nil)
		return weak.Make(qp)
	}()
	until(t, func() bool { runtime.GC(); return released.Value() == nil }, "the end of the QP")
	runtime.KeepAlive(ln)
}
