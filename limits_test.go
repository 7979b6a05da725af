package iwarp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// wantLimit checks a refusal by name.
func wantLimit(t *testing.T, err error, resource string) {
	t.Helper()
	var l *iwarp.LimitError
	if !errors.As(err, &l) || !errors.Is(err, iwarp.ErrLimit) || l.Resource != resource || !strings.Contains(err.Error(), resource) {
		t.Errorf("got %v, want the limit on %s", err, resource)
	}
}

// TestLimits takes of an RNIC all that there is of each resource. One more is
// refused by name, and leaves everything as it was; what is given back can be
// taken again.
//
// Proves Z01, Z03, Z23.
func TestLimits(t *testing.T) {
	rnic := newRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{
		PDs: 2, QPs: 2, CQs: 3, SRQs: 1, MRs: 2, CQEntries: 100, WorkRequests: 60, Octets: 1000, IRD: 4,
	}})
	pd, second := newPD(t, rnic), newPD(t, rnic)
	_, err := rnic.AllocPD()
	wantLimit(t, err, "Protection Domains")
	for range 2 { // and once more, when all was given back
		srq, err := pd.CreateSRQ(iwarp.SRQConfig{Depth: 20})
		must(t, err)
		_, err = pd.CreateSRQ(iwarp.SRQConfig{Depth: 1})
		wantLimit(t, err, "Shared Receive Queues")
		shared := newCQ(t, rnic, 60)
		_, err = rnic.CreateCQ(41)
		wantLimit(t, err, "Completion Queue entries")

		a := create(t, pd, iwarp.QPConfig{SendDepth: 10, RecvDepth: 10, SendCQ: shared})
		_, err = second.CreateQP(iwarp.QPConfig{SendDepth: 10, RecvDepth: 11, SendCQ: shared})
		wantLimit(t, err, "work request entries")
		_, err = second.CreateQP(iwarp.QPConfig{SendDepth: 10, SRQ: srq})
		if !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("an SRQ of another domain: %v", err)
		}
		b := create(t, second, iwarp.QPConfig{SendDepth: 10, RecvDepth: 10})
		_, err = second.CreateQP(iwarp.QPConfig{SendDepth: 1, RecvDepth: 1, SendCQ: shared})
		wantLimit(t, err, "Queue Pairs")
		third := newCQ(t, rnic, 20)
		_, err = rnic.CreateCQ(1)
		wantLimit(t, err, "Completion Queues")

		mr, err := pd.Register(make([]byte, 600), iwarp.RemoteRead)
		must(t, err)
		_, err = pd.Register(make([]byte, 401), 0)
		wantLimit(t, err, "octets of registered memory")
		mr2, err := pd.Register(make([]byte, 400), 0)
		must(t, err)
		_, err = pd.Register(nil, 0)
		wantLimit(t, err, "Memory Regions")

		want := iwarp.Stats{PDs: 2, QPs: 2, CQs: 3, SRQs: 1, MRs: 2, CQEntries: 100, WorkRequests: 60, RegisteredOctets: 1000}
		if s := rnic.Stats(); !sameAmounts(s, want) {
			t.Errorf("in use: %+v", s)
		}
		if err := pd.Close(); !errors.Is(err, iwarp.ErrBadState) {
			t.Errorf("Close of a domain in use: %v", err)
		}
		for _, giveBack := range []func() error{a.Close, b.Close, srq.Close, shared.Close, third.Close, mr.Deregister, mr2.Deregister} {
			should(t, giveBack())
		}
		if s := rnic.Stats(); !sameAmounts(s, iwarp.Stats{PDs: 2}) {
			t.Errorf("left over: %+v", s)
		}
	}
	should(t, second.Close())
	if _, err := second.Register(nil, 0); !errors.Is(err, iwarp.ErrClosed) {
		t.Errorf("in a closed domain: %v", err)
	}
	newPD(t, rnic)
}

func sameAmounts(a, b iwarp.Stats) bool {
	return a.PDs == b.PDs && a.QPs == b.QPs && a.CQs == b.CQs && a.SRQs == b.SRQs && a.MRs == b.MRs &&
		a.CQEntries == b.CQEntries && a.WorkRequests == b.WorkRequests && a.RegisteredOctets == b.RegisteredOctets
}

func create(t testing.TB, pd *iwarp.PD, cfg iwarp.QPConfig) *iwarp.QP {
	t.Helper()
	qp, err := pd.CreateQP(cfg)
	must(t, err)
	return qp
}

// TestReadLimit bounds the queue of inbound Reads: what the consumer asks for is
// refused by name, and what a peer asks for is not granted.
//
// Proves Z29, Z28, Z27, E14.
func TestReadLimit(t *testing.T) {
	rnic := newRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{IRD: 4}})
	d := iwarp.Dialer{PD: newPD(t, rnic), MPA: mpa.Offer{IRD: 5}}
	_, err := d.Dial(within(t), "tcp", "127.0.0.1:1")
	wantLimit(t, err, "IRD of a connection")
	for _, offer := range []mpa.Answer{{}, {IRD: 4, ORD: 4}, {IRD: 1, MaxIRD: 100, ORD: 4}, {IRD: mpa.NoNegotiation, ORD: mpa.NoNegotiation}} {
		ini, res := setup{
			Dialer: iwarp.Dialer{MPA: mpa.Offer{IRD: 50, ORD: 50}},
			accept: iwarp.AcceptConfig{PD: newPD(t, rnic), MPA: offer},
		}.connect(t)
		if a := res.Query(); a.IRD > 4 {
			t.Errorf("%+v: an IRD of %d", offer, a.IRD)
		}
		if offer.IRD != mpa.NoNegotiation {
			works(t, ini, res)
		}
		finish(t, ini, res)
	}
}

// TestLimitedAccept has no room for a connection: the Request can still be
// rejected, so that the peer learns of it.
//
// Proves Z01, Z04.
func TestLimitedAccept(t *testing.T) {
	rnic := newRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{QPs: 1}})
	ln := listen(t, iwarp.ListenConfig{RNIC: rnic})
	served := serveOne(t, ln)
	first, err := new(iwarp.Dialer).Dial(within(t), "tcp", ln.Addr().String())
	must(t, err)
	must(t, <-served)
	refused := dialInBackground(t, func() error {
		req, err := ln.Accept(within(t))
		if err != nil {
			return err
		}
		_, err = req.Accept(within(t), iwarp.AcceptConfig{})
		wantLimit(t, err, "Queue Pairs")
		c, err := req.Reject([]byte("full"))
		if err == nil {
			err = c.Close()
		}
		return err
	})
	_, err = new(iwarp.Dialer).Dial(within(t), "tcp", ln.Addr().String())
	var rejected *iwarp.RejectError
	if !errors.As(err, &rejected) || string(rejected.PrivateData) != "full" {
		t.Errorf("the second connection: %v", err)
	}
	should(t, <-refused)
	if s := rnic.Stats(); s.PDs != 1 || s.QPs != 1 {
		t.Errorf("in use: %+v", s)
	}
	_ = first.Abort()
}

// TestInvalidQPLeavesNoPD accepts a Request with a QP that cannot be: the PD that was made for it is gone.
func TestInvalidQPLeavesNoPD(t *testing.T) {
	rnic := newRNIC(t, iwarp.RNICConfig{})
	_, req := ask(t, listen(t, iwarp.ListenConfig{RNIC: rnic}), frame(request(2)))
	if _, err := req.Accept(within(t), iwarp.AcceptConfig{QP: iwarp.QPConfig{SendDepth: -1}}); !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("%v", err)
	}
	if s := rnic.Stats(); s.PDs != 0 || s.QPs != 0 {
		t.Errorf("in use: %+v", s)
	}
}
