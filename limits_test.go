package iwarp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
)

// wantLimit checks a refusal by name.
func wantLimit(t *testing.T, err error, resource string) {
	t.Helper()
	var l *iwarp.LimitError
	if !errors.As(err, &l) || !errors.Is(err, iwarp.ErrLimit) || l.Resource != resource ||
		!strings.Contains(err.Error(), resource) {
		t.Errorf("got %v, want the limit on %s", err, resource)
	}
}

// TestLimits takes of an RNIC all that there is of each resource. One more is
// refused by name, and leaves everything as it was; what is given back can be
// taken again.
//
// Proves Z01, Z03, Z23.
func TestLimits(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{
		PDs: 2, QPs: 2, CQs: 3, SRQs: 1, MRs: 2, CQEntries: 100, WorkRequests: 60, Bytes: 1000, IRD: 4,
	}})
	pd, second := rig.NewPD(t, rnic), rig.NewPD(t, rnic)
	_, err := rnic.AllocPD()
	wantLimit(t, err, "Protection Domains")
	for range 2 { // and once more, when all was given back
		srq, err := pd.CreateSRQ(iwarp.SRQConfig{Depth: 20})
		rig.Must(t, err)
		_, err = pd.CreateSRQ(iwarp.SRQConfig{Depth: 1})
		wantLimit(t, err, "Shared Receive Queues")
		shared := rig.NewCQ(t, rnic, 60)
		_, err = rnic.CreateCQ(41)
		wantLimit(t, err, "Completion Queue entries")

		a := rig.NewQP(t, pd, iwarp.QPConfig{SendDepth: 10, RecvDepth: 10, SendCQ: shared})
		_, err = second.CreateQP(iwarp.QPConfig{SendDepth: 10, RecvDepth: 11, SendCQ: shared})
		wantLimit(t, err, "work request entries")
		_, err = second.CreateQP(iwarp.QPConfig{SendDepth: 10, SRQ: srq})
		if !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("an SRQ of another domain: %v", err)
		}
		b := rig.NewQP(t, second, iwarp.QPConfig{SendDepth: 10, RecvDepth: 10})
		_, err = second.CreateQP(iwarp.QPConfig{SendDepth: 1, RecvDepth: 1, SendCQ: shared})
		wantLimit(t, err, "Queue Pairs")
		third := rig.NewCQ(t, rnic, 20)
		_, err = rnic.CreateCQ(1)
		wantLimit(t, err, "Completion Queues")

		mr, err := pd.Register(make([]byte, 600), iwarp.RemoteRead)
		rig.Must(t, err)
		_, err = pd.Register(make([]byte, 401), 0)
		wantLimit(t, err, "bytes of registered memory")
		mr2, err := pd.Register(make([]byte, 400), 0)
		rig.Must(t, err)
		_, err = pd.Register(nil, 0)
		wantLimit(t, err, "Memory Regions")

		want := iwarp.Stats{PDs: 2, QPs: 2, CQs: 3, SRQs: 1, MRs: 2, CQEntries: 100,
			WorkRequests: 60, RegisteredBytes: 1000}
		if s := rnic.Stats(); !sameAmounts(s, want) {
			t.Errorf("in use: %+v", s)
		}
		if err := pd.Close(); !errors.Is(err, iwarp.ErrBadState) {
			t.Errorf("Close of a domain in use: %v", err)
		}
		for _, giveBack := range []func() error{a.Close, b.Close, srq.Close, shared.Close, third.Close,
			mr.Deregister, mr2.Deregister} {
			rig.Should(t, giveBack())
		}
		if s := rnic.Stats(); !sameAmounts(s, iwarp.Stats{PDs: 2}) {
			t.Errorf("left over: %+v", s)
		}
	}
	rig.Should(t, second.Close())
	if _, err := second.Register(nil, 0); !errors.Is(err, iwarp.ErrClosed) {
		t.Errorf("in a closed domain: %v", err)
	}
	rig.NewPD(t, rnic)
}

func sameAmounts(a, b iwarp.Stats) bool {
	return a.PDs == b.PDs && a.QPs == b.QPs && a.CQs == b.CQs && a.SRQs == b.SRQs && a.MRs == b.MRs &&
		a.CQEntries == b.CQEntries && a.WorkRequests == b.WorkRequests && a.RegisteredBytes == b.RegisteredBytes
}

// TestReadLimit bounds the queue of inbound Reads: what the consumer asks for is
// refused by name, and what a peer asks for is not granted.
//
// Proves Z29, Z28, Z27, E14.
func TestReadLimit(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{IRD: 4}})
	d := iwarp.Dialer{PD: rig.NewPD(t, rnic), MPA: mpa.Offer{IRD: 5}}
	_, err := d.Dial(rig.Within(t), "tcp", "127.0.0.1:1")
	wantLimit(t, err, "IRD of a connection")
	for _, offer := range []mpa.Answer{{}, {IRD: 4, ORD: 4}, {IRD: 1, MaxIRD: 100, ORD: 4},
		{IRD: mpa.NoNegotiation, ORD: mpa.NoNegotiation}} {
		ini, res := rig.Setup{
			Dialer: iwarp.Dialer{MPA: mpa.Offer{IRD: 50, ORD: 50}},
			Accept: iwarp.AcceptConfig{PD: rig.NewPD(t, rnic), MPA: offer},
		}.Connect(t)
		if a := res.Query(); a.IRD > 4 {
			t.Errorf("%+v: an IRD of %d", offer, a.IRD)
		}
		if offer.IRD != mpa.NoNegotiation {
			rig.Works(t, ini, res)
		}
		rig.Finish(t, ini, res)
	}
}

// TestLimitedAccept has no room for a connection: the Request can still be
// rejected, so that the peer learns of it.
//
// Proves Z01, Z04.
func TestLimitedAccept(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{QPs: 1}})
	ln := rig.Listen(t, iwarp.ListenConfig{RNIC: rnic})
	served := serveOne(t, ln)
	first, err := new(iwarp.Dialer).Dial(rig.Within(t), "tcp", ln.Addr().String())
	rig.Must(t, err)
	rig.Must(t, <-served)
	refused := rig.DialInBackground(t, func() error {
		req, err := ln.Accept(rig.Within(t))
		if err != nil {
			return err
		}
		_, err = req.Accept(rig.Within(t), iwarp.AcceptConfig{})
		wantLimit(t, err, "Queue Pairs")
		return req.Reject([]byte("full"))
	})
	_, err = new(iwarp.Dialer).Dial(rig.Within(t), "tcp", ln.Addr().String())
	var rejected *iwarp.RejectError
	if !errors.As(err, &rejected) || string(rejected.PrivateData) != "full" {
		t.Errorf("the second connection: %v", err)
	}
	rig.Should(t, <-refused)
	if s := rnic.Stats(); s.PDs != 1 || s.QPs != 1 {
		t.Errorf("in use: %+v", s)
	}
	_ = first.Abort()
}

// TestInvalidQPLeavesNoPD accepts a Request with a QP that cannot be: the PD that was made for it is gone.
func TestInvalidQPLeavesNoPD(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	_, req := rig.Ask(t, rig.Listen(t, iwarp.ListenConfig{RNIC: rnic}), rig.Frame(rig.Request(2)))
	if _, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{QP: iwarp.QPConfig{SendDepth: -1}}); !errors.Is(err,
		iwarp.ErrInvalid) {
		t.Errorf("%v", err)
	}
	if s := rnic.Stats(); s.PDs != 0 || s.QPs != 0 {
		t.Errorf("in use: %+v", s)
	}
}

// TestResizeBounds goes to each bound of a Resize, and one step beyond. A refused Resize leaves the depth as it was.
func TestResizeBounds(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	cq := rig.NewCQ(t, rnic, 4)
	wantBounds(t, "CQ", cq, 1, rnic.Query().MaxCQDepth)

	rig.Must(t, cq.Resize(4))
	ini, _ := rig.Setup{Dialer: iwarp.Dialer{PD: rig.NewPD(t, rnic),
		QP: iwarp.QPConfig{RecvCQ: cq, RecvDepth: 3}}}.Connect(t)
	for id := range uint64(3) {
		ini.MustPostRecv(id)
	}
	rig.Must(t, ini.Abort())
	rig.Wait(t, ini.Done(), "the receives' completions")
	wantBounds(t, "CQ with 3 completions", cq, 3, rnic.Query().MaxCQDepth)

	pd := rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{}))
	srq, err := pd.CreateSRQ(iwarp.SRQConfig{Depth: 20, PerQP: 8})
	rig.Must(t, err)
	wantBounds(t, "SRQ with a share of 8", anSRQ{srq}, 8, iwarp.MaxQueueDepth)
	rig.Must(t, srq.Resize(20))
	rig.Must(t, srq.Arm(12))
	wantBounds(t, "SRQ with a limit of 12", anSRQ{srq}, 12, iwarp.MaxQueueDepth)
	rig.Must(t, srq.Resize(20))
	_, err = srq.PostRecvs(make([]iwarp.RecvWR, 15))
	rig.Must(t, err)
	wantBounds(t, "SRQ with 15 receives", anSRQ{srq}, 15, iwarp.MaxQueueDepth)

	srq, err = pd.CreateSRQ(iwarp.SRQConfig{Depth: 20, PerQP: 1})
	rig.Must(t, err)
	wantBounds(t, "SRQ", anSRQ{srq}, 1, iwarp.MaxQueueDepth)
}

// anSRQ is an SRQ with a depth, as a CQ has it.
type anSRQ struct{ *iwarp.SRQ }

func (s anSRQ) Depth() int { return s.Query().Depth }

// wantBounds makes a queue as short and as deep as it may be.
func wantBounds(t *testing.T, what string, q interface {
	Resize(depth int) error
	Depth() int
}, least, most int) {
	t.Helper()
	for _, depth := range []int{least, most, least} {
		if err := q.Resize(depth); err != nil || q.Depth() != depth {
			t.Errorf("%s: depth %d: %v, it is %d", what, depth, err, q.Depth())
		}
	}
	for _, depth := range []int{least - 1, most + 1} {
		if err := q.Resize(depth); !errors.Is(err, iwarp.ErrInvalid) || q.Depth() != least {
			t.Errorf("%s: depth %d: %v, it is %d", what, depth, err, q.Depth())
		}
	}
}

// TestResizeUnpolled has receives in a Shared Receive Queue, and others that messages have taken and whose completions
// nobody has polled: all of them need their places.
func TestResizeUnpolled(t *testing.T) {
	s := rig.NewSRQRig(t, iwarp.SRQConfig{Depth: 4})
	ini, _ := s.Connect(t)
	postShared(s, t, 2)
	rig.PostSmall(ini, 2)
	rig.Until(t, func() bool { return s.SRQ.Query().Receives == 0 }, "both messages")
	postShared(s, t, 1)
	wantBounds(t, "SRQ", anSRQ{s.SRQ}, 3, iwarp.MaxQueueDepth)
}

// TestReserve reserves memory for the regions of a domain: others leave it that, and all is given back, once, by the
// release or the end of the domain.
//
// Proves Z01, Z03.
func TestReserve(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{Bytes: 1000}})
	pd, other := rig.NewPD(t, rnic), rig.NewPD(t, rnic)
	register := func(pd *iwarp.PD, n int) *iwarp.MR {
		t.Helper()
		mr, err := pd.Register(make([]byte, n), 0)
		rig.Must(t, err)
		return mr
	}
	full := func(pd *iwarp.PD, n int) {
		t.Helper()
		_, err := pd.Register(make([]byte, n), 0)
		wantLimit(t, err, "bytes of registered memory")
	}
	early := register(pd, 100) // counts toward what is reserved next
	release, err := pd.Reserve(600)
	rig.Must(t, err)
	_, err = other.Reserve(401)
	wantLimit(t, err, "bytes of registered memory")
	taken := register(other, 400)
	full(other, 1)
	if n := rnic.Stats().RegisteredBytes; n != 500 {
		t.Errorf("%d bytes are registered, of 500", n)
	}
	for range 2 { // what is deregistered stays reserved
		mr := register(pd, 500)
		full(pd, 1)
		rig.Must(t, mr.Deregister())
		full(other, 1)
	}
	late := register(pd, 300)
	release()
	release()
	rest := register(other, 200) // 400 of pd's are registered, not reserved
	full(other, 1)
	for _, mr := range []*iwarp.MR{early, taken, late, rest} {
		rig.Must(t, mr.Deregister())
	}
	wantFree(t, rnic, other, 1000)
}

// wantFree has so many bytes be neither registered nor reserved.
func wantFree(t *testing.T, rnic *iwarp.RNIC, pd *iwarp.PD, size int) {
	t.Helper()
	if n := rnic.Stats().RegisteredBytes; n != 0 {
		t.Errorf("%d bytes are still registered", n)
	}
	release, err := pd.Reserve(size)
	rig.Must(t, err)
	_, err = pd.Reserve(1)
	wantLimit(t, err, "bytes of registered memory")
	release()
}

// TestReserveEnds has a domain end whose memory is reserved, and the reservation with it.
//
// Proves Z03.
func TestReserveEnds(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{Bytes: 1000}})
	pd, other := rig.NewPD(t, rnic), rig.NewPD(t, rnic)
	release, err := pd.Reserve(600)
	rig.Must(t, err)
	rig.Must(t, pd.Close())
	wantFree(t, rnic, other, 1000)
	again, err := other.Reserve(1000)
	rig.Must(t, err)
	release() // of a domain that has ended: it gives nothing back again
	_, err = other.Reserve(1)
	wantLimit(t, err, "bytes of registered memory")
	again()
	if _, err := pd.Reserve(1); !errors.Is(err, iwarp.ErrClosed) {
		t.Errorf("in a domain that has ended: %v", err)
	}
	if _, err := other.Reserve(-1); !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("-1 bytes: %v", err)
	}
}
