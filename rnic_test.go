package iwarp_test

import (
	"errors"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/iwarpsctp"
)

// TestNothingOfClosedRNIC takes whatever there is from an RNIC that was closed, or shut down.
func TestNothingOfClosedRNIC(t *testing.T) {
	for how, end := range map[string]func(*iwarp.RNIC) error{
		"Close":    (*iwarp.RNIC).Close,
		"Shutdown": func(r *iwarp.RNIC) error { return r.Shutdown(rig.Within(t)) },
	} {
		rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
		pd := rig.NewPD(t, rnic)
		rig.Must(t, end(rnic))
		for what, take := range map[string]func() error{
			"AllocPD":      func() error { _, err := rnic.AllocPD(); return err },
			"CreateCQ":     func() error { _, err := rnic.CreateCQ(4); return err },
			"Register":     func() error { _, err := pd.Register(make([]byte, 4), 0); return err },
			"CreateSRQ":    func() error { _, err := pd.CreateSRQ(iwarp.SRQConfig{}); return err },
			"CreateQP":     func() error { _, err := pd.CreateQP(iwarp.QPConfig{}); return err },
			"Listen, RNIC": func() error { return listens(t, "tcp", iwarp.ListenConfig{RNIC: rnic}) },
			"Listen, PD":   func() error { return listens(t, "tcp", iwarp.ListenConfig{PD: pd}) },
			"Listen on SCTP": func() error {
				return listens(t, "sctp4",
					iwarp.ListenConfig{PD: pd, Network: new(iwarpsctp.Network)})
			},
			"Dial": func() error {
				_, err := (&iwarp.Dialer{PD: pd}).Dial(rig.Within(t), "tcp", "127.0.0.1:1")
				return err
			},
			"Respond": func() error {
				a, _ := rig.NewPipe(t)
				_, err := (&iwarp.ListenConfig{RNIC: rnic}).Respond(rig.Within(t), a, nil)
				return err
			},
		} {
			rig.WantSaid(t, what+" after "+how, take(), iwarp.ErrClosed, "the RNIC was closed")
		}
	}
}

// TestClosedRNICIsNamed has a QP, and a call that waits on it, told that the RNIC has ended it.
func TestClosedRNICIsNamed(t *testing.T) {
	ini, _ := connectPatient(t)
	received := rig.DialInBackground(t, func() error { _, err := ini.Recv(rig.Within(t), iwarp.SGE{}); return err })
	rig.Until(t, func() bool { return ini.Query().Receives == 1 }, "the receive")
	rig.Must(t, ini.RNIC.Close())
	rig.WantSaid(t, "Recv", <-received, iwarp.ErrClosed, "the RNIC was closed")
	rig.WantSaid(t, "Err", ini.Err(), iwarp.ErrClosed, "the RNIC was closed")
	rig.WantSaid(t, "Send", ini.Send(rig.Within(t), iwarp.SGE{}), iwarp.ErrClosed, "the RNIC was closed")
	if err := ini.QP.Close(); err != nil {
		t.Errorf("Close of a QP that ended with its RNIC: %v", err)
	}
	if ev, err := ini.RNIC.NextEvent(rig.Within(t)); err == nil && ev.Kind == iwarp.EventQPFatal {
		t.Errorf("told of what the program itself did: %v", ev)
	}
}

// listens returns the error of Listen.
func listens(t *testing.T, network string, cfg iwarp.ListenConfig) error {
	ln, err := cfg.Listen(t.Context(), network, "127.0.0.1:0")
	if err == nil {
		_ = ln.Close()
	}
	return err
}

// TestListenInClosedPD has connections created in a Protection Domain that is not there any more.
func TestListenInClosedPD(t *testing.T) {
	pd := rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{}))
	rig.Must(t, pd.Close())
	rig.WantSaid(t, "Listen", listens(t, "tcp", iwarp.ListenConfig{PD: pd}), iwarp.ErrClosed,
		"the Protection Domain was closed")
}

// TestCloseEndsListeners closes an RNIC that listens, over TCP and SCTP. A Listener on what is listened on already
// comes too late.
func TestCloseEndsListeners(t *testing.T) {
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	cfg := iwarp.ListenConfig{RNIC: rnic}
	overTCP := rig.Listen(t, cfg)
	cfg.Network = new(iwarpsctp.Network)
	overSCTP, err := cfg.Listen(t.Context(), "sctp4", "127.0.0.1:0")
	rig.Must(t, err)
	half := rig.DialTCP(t, overTCP.Addr().String())
	rig.Until(t, func() bool { return overTCP.Stats().HalfOpen == 1 }, "the connection")
	rig.Must(t, rnic.Close())
	for _, ln := range []*iwarp.Listener{overTCP, overSCTP} {
		_, err := ln.Accept(rig.Within(t))
		rig.WantSaid(t, "Accept", err, iwarp.ErrClosed, "the RNIC was closed")
	}
	rig.Must(t, half.SetReadDeadline(time.Now().Add(rig.Soon)))
	if _, err := half.Read(make([]byte, 1)); err == nil || errors.Is(err, net.ErrClosed) {
		t.Errorf("the half-open connection: %v", err)
	}
	if c, err := net.Dial("tcp", overTCP.Addr().String()); err == nil {
		c.Close()
		t.Error("TCP still connects")
	}
	on, err := net.Listen("tcp", "127.0.0.1:0")
	rig.Must(t, err)
	late := cfg.NewListener(on)
	_, err = late.Accept(rig.Within(t))
	rig.WantSaid(t, "Accept of a late Listener", err, iwarp.ErrClosed, "the RNIC was closed")
}

// TestClosedListenerIsForgotten: an RNIC keeps nothing of a Listener that was closed.
func TestClosedListenerIsForgotten(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	open := func() weak.Pointer[iwarp.Listener] {
		ln, err := (&iwarp.ListenConfig{RNIC: rnic}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		rig.Must(t, err)
		rig.Must(t, ln.Close())
		return weak.Make(ln)
	}
	ln := open()
	rig.Until(t, func() bool { runtime.GC(); return ln.Value() == nil }, "the end of the Listener")
}

// TestReleasedBeforeAdopted releases a QP just when its connection has come up: the Listener keeps nothing of it.
func TestReleasedBeforeAdopted(t *testing.T) {
	var up atomic.Pointer[iwarp.QP]
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{Logger: slog.New(logged(func(msg string) {
		if qp := up.Load(); msg == "iwarp: connection established" && qp != nil {
			_ = qp.Abort()
		}
	}))})
	pd := rig.NewPD(t, rnic)
	ln := rig.Listen(t, iwarp.ListenConfig{PD: pd})
	released := func() weak.Pointer[iwarp.QP] {
		dialed := rig.DialInBackground(t, func() error {
			qp, err := new(iwarp.Dialer).Dial(rig.Within(t), "tcp", ln.Addr().String())
			if err == nil {
				err = qp.Close()
			}
			return err
		})
		req, err := ln.Accept(rig.Within(t))
		rig.Must(t, err)
		qp, err := pd.CreateQP(iwarp.QPConfig{})
		rig.Must(t, err)
		up.Store(qp)
		_ = req.AcceptQP(rig.Within(t), qp, iwarp.AcceptConfig{})
		<-dialed // with whatever came of it
		up.Store(nil)
		return weak.Make(qp)
	}()
	rig.Until(t, func() bool { runtime.GC(); return released.Value() == nil }, "the end of the QP")
	runtime.KeepAlive(ln)
}

// TestQPsInOrder: an RNIC lists its QPs in the order in which they were created.
func TestQPsInOrder(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	pd := rig.NewPD(t, rnic)
	var created []*iwarp.QP
	for range 20 {
		created = append(created, rig.NewQP(t, pd, iwarp.QPConfig{}))
	}
	if !slices.Equal(rnic.QPs(), created) {
		t.Error("they are in another order")
	}
}

// TestListenConfigOfTwoRNICs gives a PD of another RNIC to whatever takes a ListenConfig.
//
// Proves Z02.
func TestListenConfigOfTwoRNICs(t *testing.T) {
	a, b := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
	cfg := iwarp.ListenConfig{RNIC: a.RNIC, PD: b.PD}

	on, err := net.Listen("tcp", "127.0.0.1:0")
	rig.Must(t, err)
	ln := cfg.NewListener(on)
	_, err = ln.Accept(rig.Within(t))
	rig.WantSaid(t, "NewListener", err, iwarp.ErrInvalid, "ListenConfig.PD is of another RNIC")
	_ = ln.Close()

	here, there := rig.NewPipe(t)
	_, err = cfg.Respond(rig.Within(t), here, nil)
	rig.WantSaid(t, "Respond", err, iwarp.ErrInvalid, "ListenConfig.PD is of another RNIC")
	if _, err := there.Read(make([]byte, 1)); err == nil {
		t.Error("Respond has left the connection open")
	}
}

// TestRequestOfAnotherRNIC accepts Requests of a Listener that has an RNIC with what belongs to another one. The
// Requests can still be answered.
//
// Proves Z02.
func TestRequestOfAnotherRNIC(t *testing.T) {
	a, b := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
	own := rig.NewQP(t, a.PD, iwarp.QPConfig{})
	ln := rig.Listen(t, iwarp.ListenConfig{RNIC: a.RNIC})
	c := rig.NewEnd(t, iwarp.RNICConfig{})
	dialed := c.Dials(iwarp.Dialer{PD: c.PD}, ln)
	req, err := ln.Accept(rig.Within(t))
	rig.Must(t, err)
	_, err = req.Accept(rig.Within(t), iwarp.AcceptConfig{PD: b.PD})
	rig.WantSaid(t, "Accept", err, iwarp.ErrInvalid, "AcceptConfig.PD is of another RNIC")
	err = req.AcceptQP(rig.Within(t), rig.NewQP(t, b.PD, iwarp.QPConfig{}), iwarp.AcceptConfig{})
	rig.WantSaid(t, "AcceptQP", err, iwarp.ErrInvalid, "the QP is of another RNIC")
	rig.Must(t, req.AcceptQP(rig.Within(t), own, iwarp.AcceptConfig{}))
	rig.Must(t, <-dialed)
	rig.Works(t, c, &rig.End{T: t, RNIC: a.RNIC, PD: a.PD, QP: own})
}

// TestRequestOfAnyRNIC accepts a Request of a Listener that was given no RNIC: whoever accepts chooses.
func TestRequestOfAnyRNIC(t *testing.T) {
	ln := rig.Listen(t, iwarp.ListenConfig{})
	c, s := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
	dialed := c.Dials(iwarp.Dialer{PD: c.PD}, ln)
	rig.Must(t, <-s.Takes(ln, iwarp.AcceptConfig{PD: s.PD}))
	rig.Must(t, <-dialed)
	rig.Works(t, c, s)
}
