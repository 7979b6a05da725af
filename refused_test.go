package iwarp_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/emulation"
	"github.com/goiwarp/iwarp/rdmap"
)

// What is of one RNIC is of no use with another, although their Protection Domains
// have the same numbers.
//
// Proves Z02, Z05.
func TestAnotherRNIC(t *testing.T) {
	ini, res := rig.Connect(t) // each has an RNIC of its own, and is in its first domain
	strange := res.Filled(8, 1, iwarp.RemoteWrite)
	srq, err := res.PD.CreateSRQ(iwarp.SRQConfig{})
	rig.Must(t, err)
	for what, do := range map[string]func() error{
		"Send": func() error { return ini.PostSend(&iwarp.SendWR{SGL: []iwarp.SGE{strange.Slice(0, 8)}}) },
		"Send of nothing": func() error {
			return ini.PostSend(&iwarp.SendWR{SGL: []iwarp.SGE{strange.Slice(0, 0)}})
		},
		"Read": func() error {
			return ini.PostSend(&iwarp.SendWR{Op: iwarp.OpRead, SGL: []iwarp.SGE{strange.Slice(0, 8)}})
		},
		"Local Invalidate": func() error { return ini.PostSend(&iwarp.SendWR{Op: iwarp.OpLocalInvalidate, Target: strange}) },
		"receive":          func() error { return ini.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{strange.Slice(0, 8)}}) },
		"receive of an SRQ": func() error {
			return srq.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{ini.MR(8, iwarp.LocalWrite).Slice(0, 8)}})
		},
		"SRQ of a QP": func() error { _, err := ini.PD.CreateQP(iwarp.QPConfig{SRQ: srq}); return err },
		"CQ of a QP":  func() error { _, err := ini.PD.CreateQP(iwarp.QPConfig{SendCQ: res.SendCQ()}); return err },
		"QP of an MR": func() error {
			_, err := ini.PD.RegisterOptions(make([]byte, 8), iwarp.MROptions{QP: res.QP})
			return err
		},
		"PD of a Listener": func() error {
			_, err := (&iwarp.ListenConfig{RNIC: ini.RNIC, PD: res.PD}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			return err
		},
	} {
		if err := do(); !errors.Is(err, iwarp.ErrInvalid) || !rig.Contains(err, "another") {
			t.Errorf("%s: %v", what, err)
		}
	}
	ln := rig.Listen(t, iwarp.ListenConfig{PD: res.PD})
	dialed := rig.DialInBackground(t, func() error {
		qp, err := (&iwarp.Dialer{PD: ini.PD}).Dial(rig.Within(t), "tcp", ln.Addr().String())
		if err == nil {
			err = qp.Abort()
		}
		return err
	})
	req, err := ln.Accept(rig.Within(t))
	rig.Must(t, err)
	if _, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{PD: ini.PD}); !errors.Is(err, iwarp.ErrInvalid) || !rig.Contains(err, "another RNIC") {
		t.Errorf("PD of Accept: %v", err)
	}
	if _, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{}); err != nil { // it can still be answered
		t.Error(err)
	}
	rig.Should(t, <-dialed)
	rig.Works(t, ini, res)
}

// A mistake in a request is refused when the request is posted, in words of its own;
// the connection goes on.
func TestMistakes(t *testing.T) {
	ini, res := rig.Connect(t)
	mr, own, other := ini.MR(10, 0), ini.MR(10, iwarp.LocalWrite), rig.NewPD(t, ini.RNIC)
	gone := ini.MR(10, 0)
	rig.Must(t, gone.Deregister())
	apart, err := other.Register(make([]byte, 10), iwarp.LocalWrite)
	rig.Must(t, err)
	void := ini.MR(10, iwarp.LocalWrite)
	ini.MustPost(&iwarp.SendWR{ID: 1, Op: iwarp.OpLocalInvalidate, Target: void})
	ini.WantSent(iwarp.OpLocalInvalidate, 1, iwarp.StatusSuccess)
	one := func(op iwarp.Op, s iwarp.SGE) *iwarp.SendWR { return &iwarp.SendWR{Op: op, SGL: []iwarp.SGE{s}} }
	for _, c := range []struct {
		text string
		wr   *iwarp.SendWR
	}{
		{"no request", nil},
		{"without an MR", one(iwarp.OpSend, iwarp.SGE{Length: 1})},
		{"element of -1 bytes at offset 0", one(iwarp.OpSend, mr.Slice(0, -1))},
		{"element of 1 byte at offset -1", one(iwarp.OpSend, mr.Slice(-1, 1))},
		{"a Read with a Target, which takes 1 at most", &iwarp.SendWR{Op: iwarp.OpRead, Target: own,
			SGL: []iwarp.SGE{own.Slice(0, 1), own.Slice(1, 1)}}},
		{fmt.Sprintf("of which Send takes %d at most", iwarp.MaxSGE), &iwarp.SendWR{SGL: make([]iwarp.SGE, iwarp.MaxSGE+1)}},
		{"2 bytes at offset 9 of an MR of 10 bytes", one(iwarp.OpSend, mr.Slice(9, 2))},
		{"1 byte at offset 10 of an MR of 10 bytes", one(iwarp.OpWrite, mr.Slice(10, 1))},
		{"without LocalWrite", one(iwarp.OpRead, mr.Slice(0, 1))},
		{"another Protection Domain", one(iwarp.OpSend, apart.Slice(0, 1))},
		{"an MR of another RNIC", one(iwarp.OpSend, res.MR(1, 0).Slice(0, 1))},
		{"was deregistered", one(iwarp.OpSend, gone.Slice(0, 1))},
		{"has been invalidated", one(iwarp.OpSend, void.Slice(0, 1))},
		{"Remote, which is for OpWrite", &iwarp.SendWR{Remote: iwarp.Remote{STag: 5}}}, // a Send, as there is no Op
		{"Remote, which is for OpWrite", &iwarp.SendWR{Op: iwarp.OpLocalInvalidate, Remote: iwarp.Remote{TO: 1}}},
		{"Invalidate, which is for OpSend and OpLocalInvalidate", &iwarp.SendWR{Op: iwarp.OpWrite, Invalidate: 5}},
		{"Solicited, which is for OpSend, OpWriteImm and OpImmediate, on Read", &iwarp.SendWR{Op: iwarp.OpRead, Solicited: true}},
		{"Target, which is for OpRead, OpLocalInvalidate and OpFastRegister, on Write", &iwarp.SendWR{Op: iwarp.OpWrite, Target: mr}},
		{"not its sink", &iwarp.SendWR{Op: iwarp.OpRead, SGL: []iwarp.SGE{own.Slice(0, 1)}, Target: mr}},
		{"operation 99", &iwarp.SendWR{Op: 99}},
	} {
		if err := ini.PostSend(c.wr); !errors.Is(err, iwarp.ErrInvalid) || !rig.Contains(err, c.text) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
	for text, wr := range map[string]*iwarp.RecvWR{
		"no request":           nil,
		"without an MR":        {SGL: []iwarp.SGE{{Length: 1}}},
		"without LocalWrite":   {SGL: []iwarp.SGE{mr.Slice(0, 1)}},
		"of an MR of 10":       {SGL: []iwarp.SGE{own.Slice(0, 11)}},
		"another Protection D": {SGL: []iwarp.SGE{apart.Slice(0, 1)}},
		"another RNIC":         {SGL: []iwarp.SGE{res.MR(1, iwarp.LocalWrite).Slice(0, 1)}},
	} {
		if err := ini.PostRecv(wr); !errors.Is(err, iwarp.ErrInvalid) || !rig.Contains(err, text) {
			t.Errorf("receive: %s: %v", text, err)
		}
	}
	for text, o := range map[string]iwarp.MROptions{
		"rights 0x80 do not exist":  {Access: 0x80 | iwarp.RemoteRead},
		"another Protection Domain": {QP: rig.NewQP(t, other, iwarp.QPConfig{})},
	} {
		if _, err := ini.PD.RegisterOptions(make([]byte, 8), o); !errors.Is(err, iwarp.ErrInvalid) || !rig.Contains(err, text) {
			t.Errorf("register: %s: %v", text, err)
		}
	}
	if _, err := ini.PD.CreateQP(iwarp.QPConfig{CloseTimeout: -1}); !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("a negative CloseTimeout: %v", err)
	}
	if _, err := (&iwarp.Dialer{Timeout: -time.Second}).Dial(t.Context(), "tcp", "127.0.0.1:1"); !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("a negative Timeout: %v", err)
	}
	for _, network := range []string{"udp", "unix", "unixgram", "ip", ""} {
		if _, err := iwarp.Dial(t.Context(), network, "127.0.0.1:1"); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("dial %q: %v", network, err)
		}
		if _, err := iwarp.Listen(t.Context(), network, "127.0.0.1:0"); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("listen %q: %v", network, err)
		}
	}
	rig.Works(t, ini, res)
}

// A lone client cannot end the use of what the server has registered for all that
// come later, unless the server has offered that; what is bound to its QP it can, once.
//
// Proves P35, P51, Z06.
func TestInvalidateByPeer(t *testing.T) {
	for name, c := range map[string]struct {
		access iwarp.Access
		bound  bool
		shared bool       // with another QP of the Protection Domain
		code   rdmap.Code // 0: it may
	}{
		"the server's":          {iwarp.RemoteRead, false, false, rdmap.CodeProtectionCannotInvalidate},
		"offered":               {iwarp.RemoteRead | iwarp.RemoteInvalidate, false, false, 0},
		"offered to several":    {iwarp.RemoteRead | iwarp.RemoteInvalidate, false, true, rdmap.CodeProtectionCannotInvalidate},
		"bound":                 {iwarp.RemoteRead, true, false, 0},
		"bound, beside another": {iwarp.RemoteRead, true, true, 0},
		"bound, for itself":     {iwarp.LocalWrite, true, false, rdmap.CodeAccessRights},
		"offered, not for data": {iwarp.RemoteInvalidate, false, false, 0},
	} {
		res, p := rig.RespondToPeer(t, iwarp.QPConfig{})
		o := iwarp.MROptions{Access: c.access}
		if c.bound {
			o.QP = res.QP
		}
		mr, err := res.PD.RegisterOptions(make([]byte, 8), o)
		rig.Must(t, err)
		if other := rig.NewQP(t, res.PD, iwarp.QPConfig{}); !c.shared { // it shared what is offered, and is gone
			rig.Must(t, other.Close())
		}
		res.MustPostRecv(1)
		res.MustPostRecv(2)
		invalidate := func(msn uint32) {
			h := rdmap.OpSendInvalidate.Header(1)
			h.Last, h.MSN, h.ULP = true, msn, mr.STag()
			p.Send(p.FPDU(h, nil))
		}
		invalidate(1)
		if c.code != 0 {
			p.WantTerminate(c.code)
			if !mr.Valid() {
				t.Errorf("%s: invalidated", name)
			}
			continue
		}
		if wc := res.WantReceived(1, iwarp.StatusSuccess); wc.Invalidated != mr.STag() || mr.Valid() {
			t.Errorf("%s: %+v", name, wc)
		}
		invalidate(2)
		p.WantTerminate(rdmap.CodeInvalidSTag)
	}
}

// A region that is bound to a QP serves the connection that the QP has, or is to
// have, and none after that.
//
// Proves Z06.
func TestBoundToConnection(t *testing.T) {
	ln := rig.ListenTCP(t)
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	e := &rig.End{T: t, RNIC: rnic, PD: rig.NewPD(t, rnic)}
	e.QP = rig.NewQP(t, e.PD, iwarp.QPConfig{})
	bound := func() *iwarp.MR {
		mr, err := e.PD.RegisterOptions(make([]byte, 8), iwarp.MROptions{QP: e.QP, Access: iwarp.RemoteWrite})
		rig.Must(t, err)
		return mr
	}
	dial := func() *rig.Peer {
		dialed := rig.DialInBackground(t, func() error {
			return (&iwarp.Dialer{}).DialQP(rig.Within(t), e.QP, "tcp", ln.Addr().String())
		})
		p := rig.AcceptRequest(t, ln)
		p.Send(rig.Frame(rig.Reply(2)))
		rig.Must(t, <-dialed)
		p.Want(rdmap.OpWrite) // RTR
		return p
	}
	before := bound()
	p := dial()
	during := bound()
	for _, mr := range []*iwarp.MR{before, during} {
		p.Send(p.Write(mr.STag(), 0, []byte("x")))
	}
	rig.Until(t, func() bool { return e.Stats().Received[rdmap.OpWrite].Messages == 2 }, "two Writes")
	_ = p.Link.Reset()
	_ = e.WantEnd()
	after := bound()
	rig.Must(t, e.Modify(iwarp.StateIdle))
	p = dial()
	p.Send(p.Write(after.STag(), 0, []byte("x")))
	p.Send(p.Write(during.STag(), 0, []byte("y")))
	p.WantTerminate(rdmap.CodeDDPSTagNotAssociated)
	if after.Bytes()[0] != 'x' || during.Bytes()[0] != 'x' {
		t.Error("not written as it should be")
	}
}

// A mistake with a peer's memory is named at both ends: by whoever refuses the access in
// full, and by whoever is told of it as far as a Terminate can say it.
func TestMistakesAtBothEnds(t *testing.T) {
	for name, c := range map[string]struct {
		do         func(t *testing.T, ini, res *rig.End)
		here, away []string // what the errors say of it where it is found, and at the other end
	}{
		"no RemoteWrite": {
			func(t *testing.T, ini, res *rig.End) { writeTo(t, ini, res.MR(8, iwarp.RemoteRead).Remote(0)) },
			[]string{"registered without RemoteWrite"}, []string{"RemoteWrite", "TO 0x0"},
		},
		"no RemoteRead": {
			func(t *testing.T, ini, res *rig.End) { readFrom(t, ini, res.MR(8, iwarp.RemoteWrite).Remote(0)) },
			[]string{"registered without RemoteRead"}, []string{"RemoteRead"},
		},
		"a QP that lets no peer write": {
			func(t *testing.T, ini, res *rig.End) {
				rig.Must(t, emulation.Deny(res.QP, uint8(iwarp.RemoteWrite)))
				writeTo(t, ini, res.MR(8, iwarp.RemoteWrite).Remote(0))
			},
			[]string{"QPConfig.Deny", "0x1102"}, []string{"0x1102"},
		},
		"a QP that lets no peer read": {
			func(t *testing.T, ini, res *rig.End) {
				rig.Must(t, emulation.Deny(res.QP, uint8(iwarp.RemoteWrite|iwarp.RemoteRead)))
				rig.Must(t, emulation.Deny(res.QP, uint8(iwarp.RemoteRead)))
				writeTo(t, ini, res.MR(8, iwarp.RemoteWrite).Remote(0))
				readFrom(t, ini, res.MR(8, iwarp.RemoteRead).Remote(0))
			},
			[]string{"QPConfig.Deny", "0x1201"}, []string{"0x1201"},
		},
		"another Protection Domain": {
			func(t *testing.T, ini, res *rig.End) {
				mr, err := rig.NewPD(t, res.RNIC).Register(make([]byte, 8), iwarp.RemoteWrite)
				rig.Must(t, err)
				writeTo(t, ini, mr.Remote(0))
			},
			[]string{"another Protection Domain", "register it"}, []string{"another Protection Domain"},
		},
		"another QP": {
			func(t *testing.T, ini, res *rig.End) {
				mr, err := res.PD.RegisterOptions(make([]byte, 8), iwarp.MROptions{QP: rig.NewQP(t, res.PD, iwarp.QPConfig{}), Access: iwarp.RemoteRead})
				rig.Must(t, err)
				readFrom(t, ini, mr.Remote(0))
			},
			[]string{"bound to another QP"}, []string{"another Protection Domain or QP"},
		},
		"too far": {
			func(t *testing.T, ini, res *rig.End) { writeTo(t, ini, res.MR(8, iwarp.RemoteWrite).Remote(1)) },
			[]string{"leaves the registered memory", "8 bytes at 0x1"}, []string{"leaves the memory that the peer has registered", "TO 0x1"},
		},
		"deregistered": {
			func(t *testing.T, ini, res *rig.End) {
				mr := res.MR(8, iwarp.RemoteWrite)
				to := mr.Remote(0)
				rig.Must(t, mr.Deregister())
				writeTo(t, ini, to)
			},
			[]string{"nothing is registered under it"}, []string{"deregistered or invalidated"},
		},
		"no receive": {
			func(t *testing.T, ini, res *rig.End) { ini.MustPost(&iwarp.SendWR{Inline: []byte("x")}) },
			[]string{"no receive is posted"}, []string{"no receive posted", "earlier"},
		},
		"too long": {
			func(t *testing.T, ini, res *rig.End) {
				res.MustPostRecv(1, res.MR(1, iwarp.LocalWrite).Slice(0, 1))
				ini.MustPost(&iwarp.SendWR{Inline: []byte("xy")})
			},
			[]string{"length 2", "length of 1"}, []string{"longer than the receive"},
		},
		"not offered for invalidation": {
			func(t *testing.T, ini, res *rig.End) {
				res.MustPostRecv(1)
				ini.MustPost(&iwarp.SendWR{Invalidate: res.MR(8, iwarp.RemoteRead).STag()})
			},
			[]string{"RemoteInvalidate"}, []string{"RemoteInvalidate"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ini, res := rig.Connect(t)
			c.do(t, ini, res)
			for _, text := range c.here {
				if err := res.WantEnd(); !rig.Contains(err, text) || !rig.Contains(err, "found here") {
					t.Errorf("where it is found: no %q in %v", text, err)
				}
			}
			for _, text := range c.away {
				if err := ini.WantEnd(); !rig.Contains(err, text) || !rig.Contains(err, "reported by the peer") {
					t.Errorf("at the other end: no %q in %v", text, err)
				}
			}
		})
	}
}

func writeTo(t *testing.T, e *rig.End, to iwarp.Remote) {
	t.Helper()
	e.MustPost(&iwarp.SendWR{Op: iwarp.OpWrite, Inline: []byte("01234567"), Remote: to})
}

func readFrom(t *testing.T, e *rig.End, from iwarp.Remote) {
	t.Helper()
	e.MustPost(&iwarp.SendWR{Op: iwarp.OpRead, SGL: []iwarp.SGE{e.MR(8, iwarp.LocalWrite).Slice(0, 8)}, Remote: from})
}

// A Protection Domain that is in use says what by, and goes when that is gone.
func TestPDInUse(t *testing.T) {
	pd := rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{}))
	qp := rig.NewQP(t, pd, iwarp.QPConfig{})
	srq, err := pd.CreateSRQ(iwarp.SRQConfig{})
	rig.Must(t, err)
	mr, err := pd.Register(make([]byte, 1), 0)
	rig.Must(t, err)
	mw, err := pd.AllocMW(iwarp.MWType2)
	rig.Must(t, err)
	for _, c := range []struct {
		text string
		end  func() error
	}{
		{"QPs (1) and SRQs (1), deregister its MRs (1) and deallocate its MWs (1)", qp.Close},
		{"QPs (0) and SRQs (1), deregister its MRs (1) and deallocate its MWs (1)", srq.Close},
		{"QPs (0) and SRQs (0), deregister its MRs (1) and deallocate its MWs (1)", mr.Deregister},
		{"deregister its MRs (0) and deallocate its MWs (1)", mw.Dealloc},
	} {
		if err := pd.Close(); !errors.Is(err, iwarp.ErrBadState) || !rig.Contains(err, "in use") || !rig.Contains(err, c.text) {
			t.Error(err)
		}
		rig.Must(t, c.end())
	}
	rig.Should(t, pd.Close())
}

// What is no right of a peer's cannot be denied to one, and a QP can be created so that it denies all.
func TestDeny(t *testing.T) {
	ini, res := rig.Setup{Accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{Deny: iwarp.RemoteWrite | iwarp.RemoteRead | iwarp.RemoteAtomic}}}.Connect(t)
	_, err := ini.PD.CreateQP(iwarp.QPConfig{SendCQ: ini.SendCQ(), RecvCQ: ini.RecvCQ(), Deny: iwarp.LocalWrite})
	for _, err := range []error{err, emulation.Deny(res.QP, uint8(iwarp.RemoteInvalidate))} {
		if !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%v", err)
		}
	}
	writeTo(t, ini, res.MR(8, iwarp.RemoteWrite).Remote(0))
	if err := res.WantEnd(); !rig.Contains(err, "QPConfig.Deny") {
		t.Errorf("%v", err)
	}
}
