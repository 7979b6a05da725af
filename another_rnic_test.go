package iwarp_test

import (
	"net"
	"testing"

	"github.com/goiwarp/iwarp"
)

// TestListenConfigOfTwoRNICs gives a PD of another RNIC to whatever takes a ListenConfig.
//
// Proves Z02.
func TestListenConfigOfTwoRNICs(t *testing.T) {
	a, b := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
	cfg := iwarp.ListenConfig{RNIC: a.rnic, PD: b.pd}

	on, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ln := iwarp.NewListener(on, cfg)
	_, err = ln.Accept(within(t))
	wantSaid(t, "NewListener", err, iwarp.ErrInvalid, "ListenConfig.PD is of another RNIC")
	_ = ln.Close()

	here, there := newPipe(t)
	_, err = iwarp.Respond(within(t), here, nil, cfg)
	wantSaid(t, "Respond", err, iwarp.ErrInvalid, "ListenConfig.PD is of another RNIC")
	if _, err := there.Read(make([]byte, 1)); err == nil {
		t.Error("Respond has left the connection open")
	}
}

// TestRequestOfAnotherRNIC accepts Requests of a Listener that has an RNIC with what belongs to another one. The
// Requests can still be answered.
//
// Proves Z02.
func TestRequestOfAnotherRNIC(t *testing.T) {
	a, b := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
	own := create(t, a.pd, iwarp.QPConfig{})
	ln := listen(t, iwarp.ListenConfig{RNIC: a.rnic})
	c := newEnd(t, iwarp.RNICConfig{})
	dialed := c.dials(iwarp.Dialer{PD: c.pd}, ln)
	req, err := ln.Accept(within(t))
	must(t, err)
	_, err = req.Accept(within(t), iwarp.AcceptConfig{PD: b.pd})
	wantSaid(t, "Accept", err, iwarp.ErrInvalid, "AcceptConfig.PD is of another RNIC")
	err = req.AcceptQP(within(t), create(t, b.pd, iwarp.QPConfig{}), iwarp.AcceptConfig{})
	wantSaid(t, "AcceptQP", err, iwarp.ErrInvalid, "the QP is of another RNIC")
	must(t, req.AcceptQP(within(t), own, iwarp.AcceptConfig{}))
	must(t, <-dialed)
	works(t, c, &end{t: t, rnic: a.rnic, pd: a.pd, QP: own})
}

// TestRequestOfAnyRNIC accepts a Request of a Listener that was given no RNIC: whoever accepts chooses.
func TestRequestOfAnyRNIC(t *testing.T) {
	ln := listen(t, iwarp.ListenConfig{})
	c, s := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
	dialed := c.dials(iwarp.Dialer{PD: c.pd}, ln)
	must(t, <-s.takes(ln, iwarp.AcceptConfig{PD: s.pd}))
	must(t, <-dialed)
	works(t, c, s)
}
