package iwarp_test

import (
	"errors"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp"
)

// TestQuerySRQ asks a Shared Receive Queue for its attributes, as they change.
func TestQuerySRQ(t *testing.T) {
	s := newShared(t, iwarp.SRQConfig{Depth: 8, Limit: 2, PerQP: 5})
	want := func(receives, taken, limit, qps int) {
		t.Helper()
		if diff := cmp.Diff(iwarp.SRQAttr{Depth: 8, MaxSGE: iwarp.MaxSGE, PerQP: 5, Receives: receives, Taken: taken, Limit: limit, QPs: qps}, s.srq.Query()); diff != "" {
			t.Error(diff)
		}
	}
	want(0, 0, 2, 0)
	ini, res := s.connect(t)
	s.post(t, 3)
	want(3, 0, 2, 1)
	sends(ini, 2)
	until(t, func() bool { return s.srq.Len() == 1 }, "two messages")
	want(1, 2, 0, 1) // the limit was reached, once
	next(t, s.cq)
	next(t, s.cq)
	want(1, 0, 0, 1)
	if a := res.Query(); a.SRQ != s.srq || a.RecvDepth != 0 {
		t.Errorf("QP: %+v", a)
	}
	finish(t, ini, res)
	want(1, 0, 0, 0)
}

// TestQueryQueues asks a QP for what it was created with.
func TestQueryQueues(t *testing.T) {
	e := newEnd(t, iwarp.RNICConfig{})
	a := create(t, e.pd, iwarp.QPConfig{SendDepth: 5, MaxInline: -1}).Query()
	if a.SendDepth != 5 || a.RecvDepth != 128 || a.MaxInline != 0 || a.MaxSGE != iwarp.MaxSGE || a.SRQ != nil || a.Num == 0 {
		t.Errorf("%+v", a)
	}
	if s := e.rnic.Stats(); s.MWs != 0 || s.QPs != 1 {
		t.Errorf("%d windows, %d QPs", s.MWs, s.QPs)
	}
	e.mw(iwarp.MWType1)
	if s := e.rnic.Stats(); s.MWs != 1 {
		t.Errorf("%d windows", s.MWs)
	}
}

// TestQueryPorts finds the interfaces of this machine, the loopback interface among them.
func TestQueryPorts(t *testing.T) {
	ports, err := newRNIC(t, iwarp.RNICConfig{}).QueryPorts()
	must(t, err)
	all, err := net.Interfaces()
	must(t, err)
	if len(ports) != len(all) {
		t.Fatalf("%d ports of %d interfaces", len(ports), len(all))
	}
	for i, p := range ports {
		if p.Name != all[i].Name || p.Index != all[i].Index || p.MTU != all[i].MTU || p.HardwareAddr.String() != all[i].HardwareAddr.String() {
			t.Errorf("%+v, of %+v", p, all[i])
		}
		if p.Up != (all[i].Flags&net.FlagUp != 0) || p.Loopback != (all[i].Flags&net.FlagLoopback != 0) {
			t.Errorf("%+v, of %v", p, all[i].Flags)
		}
		for _, a := range p.Addrs {
			if p.Loopback != a.Addr().IsLoopback() || a.Bits() <= 0 {
				t.Errorf("%s has %v", p.Name, a)
			}
		}
		if p.Loopback && p.Up && len(p.Addrs) == 0 {
			t.Errorf("%s has no address", p.Name)
		}
	}
}

// TestEstablished tells a Responder when the Initiator's first FPDU is there, and the Initiator nothing.
func TestEstablished(t *testing.T) {
	overAll(t, func(t *testing.T, s setup) {
		ini, res := s.connect(t)
		if ev := res.wantEvent(iwarp.EventEstablished); ev.QP != res.QP || ev.QPNum != res.Num() || ev.Count != 1 || ev.RemoteAddr == nil {
			t.Errorf("%v", ev)
		}
		works(t, ini, res)
		finish(t, ini, res)
		for _, e := range []*end{ini, res} {
			must(t, e.rnic.Close())
			for {
				ev, err := e.rnic.NextEvent(within(t))
				if err != nil {
					break
				}
				if ev.Kind == iwarp.EventEstablished || ev.Kind == iwarp.EventQPFatal {
					t.Errorf("%v", ev)
				}
			}
		}
	})
}

// TestQPFatal ends a QP by an error that is not the connection's.
//
// RDMA verbs 8.3: a CQ overflow is an asynchronous event of the QP, too, which is in Error then.
func TestQPFatal(t *testing.T) {
	res := newEnd(t, iwarp.RNICConfig{})
	small, large := newCQ(t, res.rnic, 1), newCQ(t, res.rnic, 200)
	ini, res := setup{accept: iwarp.AcceptConfig{PD: res.pd, QP: iwarp.QPConfig{RecvCQ: small, SendCQ: large}}}.connect(t)
	for id := range uint64(3) {
		res.postRecv(id)
	}
	for range 2 {
		ini.post(&iwarp.SendWR{Op: iwarp.OpSend, Unsignaled: true})
	}
	if ev := res.wantEvent(iwarp.EventQPFatal); ev.QP != res.QP || !errors.Is(ev.Err, iwarp.ErrCQOverflow) {
		t.Errorf("%v", ev)
	}
	if a := res.Query(); a.State != iwarp.StateError || a.Receives != 0 {
		t.Errorf("%+v", a)
	}
}
