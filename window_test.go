package iwarp_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/rdmap"
)

// mw allocates a Memory Window.
func allocMW(e *rig.End, kind iwarp.MWType) *iwarp.MW {
	e.T.Helper()
	w, err := e.PD.AllocMW(kind)
	rig.Must(e.T, err)
	return w
}

// binds posts an OpBindMW and waits until it is carried out.
func binds(e *rig.End, w *iwarp.MW, b iwarp.Binding) {
	e.T.Helper()
	e.MustPost(&iwarp.SendWR{ID: 50, Op: iwarp.OpBindMW, Window: w, Bind: &b})
	e.WantSent(iwarp.OpBindMW, 50, iwarp.StatusSuccess)
}

// invalidates posts an OpLocalInvalidate and waits until it is carried out.
func invalidates(e *rig.End, wr iwarp.SendWR) {
	e.T.Helper()
	wr.ID, wr.Op = 51, iwarp.OpLocalInvalidate
	e.MustPost(&wr)
	e.WantSent(iwarp.OpLocalInvalidate, 51, iwarp.StatusSuccess)
}

// writesTo has text written to the peer, and a Send after it received there: then it is in place.
func writesTo(t *testing.T, from, to *rig.End, text string, at iwarp.Remote, invalidate uint32) {
	t.Helper()
	to.MustPostRecv(60)
	from.MustPost(&iwarp.SendWR{ID: 61, Op: iwarp.OpWrite, Inline: []byte(text), Remote: at})
	from.MustPost(&iwarp.SendWR{ID: 62, Op: iwarp.OpSend, Invalidate: invalidate})
	from.WantSent(iwarp.OpWrite, 61, iwarp.StatusSuccess)
	from.WantSent(iwarp.OpSend, 62, iwarp.StatusSuccess)
	if wc := to.WantReceived(60, iwarp.StatusSuccess); wc.Invalidated != invalidate {
		t.Errorf("invalidated %#x, want %#x", wc.Invalidated, invalidate)
	}
}

// endsSoon has ends not wait for long, after a Terminate, for a peer that may wait too; where
// time is virtual, that is.
func endsSoon(s rig.Setup) rig.Setup {
	if s.Over != nil && s.Over.Shuffled {
		s.Dialer.QP.CloseTimeout, s.Accept.QP.CloseTimeout = time.Second, time.Second
	}
	return s
}

// refusedWrite has the peer refuse a Write, and end the connection with a code.
func refusedWrite(t *testing.T, from, to *rig.End, at iwarp.Remote, code rdmap.Code) {
	t.Helper()
	from.MustPost(&iwarp.SendWR{Op: iwarp.OpWrite, Inline: []byte("no"), Remote: at, Unsignaled: true})
	var end *iwarp.TerminateError
	if err := to.WantEnd(); !errors.As(err, &end) || end.Code != code || end.Remote {
		t.Errorf("ended: %v, want %v", err, code)
	}
	if err := from.WantEnd(); !errors.As(err, &end) || end.Code != code || !end.Remote {
		t.Errorf("the peer: %v, want %v", err, code)
	}
}

// TestWindows binds a window of type 2 to parts of an MR without remote rights, of which the peer
// may use one after the other.
//
// RDMA verbs 7 and 8: the bind is carried out before a Send that tells of it; the peer invalidates
// the window, and has no way to anything of the MR then.
func TestWindows(t *testing.T) {
	overAll(t, func(t *testing.T, s rig.Setup) {
		ini, res := endsSoon(s).Connect(t)
		mr, w := res.MR(64, iwarp.LocalWrite), allocMW(res, iwarp.MWType2)
		if w.Valid() || !strings.HasPrefix(w.String(), "MW (type 2, ") {
			t.Errorf("valid: %t, %v", w.Valid(), w)
		}
		writesTo(t, ini, res, "", iwarp.Remote{STag: w.STag()}, 0) // a Responder may send after that
		ini.MustPostRecv(1)
		res.MustPost(&iwarp.SendWR{ID: 2, Op: iwarp.OpBindMW, Window: w,
			Bind: &iwarp.Binding{Memory: mr.Slice(8, 4), Access: iwarp.RemoteWrite, Base: 1 << 40, Key: 7}})
		res.MustPost(&iwarp.SendWR{ID: 3, Op: iwarp.OpSend})
		res.WantSent(iwarp.OpBindMW, 2, iwarp.StatusSuccess)
		res.WantSent(iwarp.OpSend, 3, iwarp.StatusSuccess)
		ini.WantReceived(1, iwarp.StatusSuccess)
		if at := w.Remote(1); at.STag != w.STagWithKey(7) || at.TO != 1<<40+1 || at.STag&0xff != 7 || !w.Valid() {
			t.Errorf("%v", at)
		}
		if err := mr.Deregister(); !errors.Is(err, iwarp.ErrBadState) ||
			!rig.Contains(err, "Memory Windows are bound") {
			t.Errorf("deregistered: %v", err)
		}
		writesTo(t, ini, res, "ab", w.Remote(1), w.STag())
		if w.Valid() {
			t.Error("valid after the peer has invalidated it")
		}
		binds(res, w, iwarp.Binding{Memory: mr.Slice(32, 8), Access: iwarp.RemoteWrite | iwarp.RemoteRead, Key: 8})
		writesTo(t, ini, res, "cd", w.Remote(0), 0)
		got := ini.MR(2, iwarp.LocalWrite)
		if _, err := ini.Read(rig.Within(t), got.Slice(0, 2), w.Remote(0)); err != nil || string(got.Bytes()) != "cd" {
			t.Errorf("%q: %v", got.Bytes(), err)
		}
		invalidates(res, iwarp.SendWR{Window: w})
		old := w.Remote(0)
		binds(res, w, iwarp.Binding{Memory: mr.Slice(0, 8), Access: iwarp.RemoteWrite, Key: 9})
		refusedWrite(t, ini, res, old, 0x1100)
		res.Look()
		want := make([]byte, 64)
		copy(want[9:], "ab")
		copy(want[32:], "cd")
		if string(mr.Bytes()) != string(want) {
			t.Errorf("%q", mr.Bytes())
		}
		if w.Valid() { // RDMA verbs 6.2: nothing is bound to a QP whose connection has ended
			t.Error("bound after the connection's end")
		}
		rig.Should(t, mr.Deregister())
		rig.Should(t, w.Dealloc())
		if err := w.Dealloc(); !errors.Is(err, iwarp.ErrClosed) {
			t.Error(err)
		}
	})
}

// TestWindowOfAnotherQP has a peer use a window that was bound on another connection.
//
// RDMA verbs 7: a window that is bound belongs to the QP; one of type 1, which the verbs do not have, to all of
// its Protection Domain.
func TestWindowOfAnotherQP(t *testing.T) {
	ini, res := rig.Connect(t)
	other, _ := rig.Setup{Accept: iwarp.AcceptConfig{PD: res.PD}}.Connect(t)
	mr, one, two := res.MR(8, iwarp.LocalWrite), allocMW(res, iwarp.MWType1), allocMW(res, iwarp.MWType2)
	rig.Must(t, one.Bind(iwarp.Binding{Memory: mr.Slice(0, 4), Access: iwarp.RemoteWrite, Key: 1}))
	writesTo(t, ini, res, "ab", one.Remote(0), 0)
	binds(res, two, iwarp.Binding{Memory: mr.Slice(4, 4), Access: iwarp.RemoteWrite})
	if _, err := other.Write(rig.Within(t), other.Filled(2, 'x', 0).Slice(0, 2), one.Remote(2)); err != nil {
		t.Error(err)
	}
	writesTo(t, ini, res, "cd", two.Remote(0), 0)
	other.MustPost(&iwarp.SendWR{Op: iwarp.OpWrite, Inline: []byte("no"), Remote: two.Remote(2), Unsignaled: true})
	var end *iwarp.TerminateError
	if err := other.WantEnd(); !errors.As(err, &end) || end.Code != 0x1102 {
		t.Error(err)
	}
	if !two.Valid() {
		t.Error("another QP's end has ended the binding")
	}
	rig.Must(t, one.Bind(iwarp.Binding{Key: 2}))
	if one.Valid() || one.STag()&0xff != 2 {
		t.Errorf("bound to nothing: %#x", one.STag())
	}
	res.Look()
	if string(mr.Bytes()) != "abx\x7fcd\x00\x00" {
		t.Errorf("%q", mr.Bytes())
	}
	refusedWrite(t, ini, res, one.Remote(0), 0x1100)
}

// TestWindowWithoutRights binds windows that let the peer do nothing, whatever the MR does.
func TestWindowWithoutRights(t *testing.T) {
	for _, kind := range []iwarp.MWType{iwarp.MWType1, iwarp.MWType2} {
		ini, res := rig.Connect(t)
		mr, w := res.MR(8, iwarp.RemoteWrite|iwarp.RemoteRead), allocMW(res, kind)
		binds(res, w, iwarp.Binding{Memory: mr.Slice(0, 8)})
		refusedWrite(t, ini, res, w.Remote(0), rdmap.CodeDDPSTagNotAssociated)
		rig.Should(t, w.Dealloc())
	}
}

// TestWindowMistakes posts and calls what cannot be: it is refused in words of its own, and the
// connection goes on.
func TestWindowMistakes(t *testing.T) {
	ini, res := rig.Connect(t)
	mr, ro, other := ini.MR(8, iwarp.LocalWrite), ini.MR(8, 0), rig.NewEnd(t, iwarp.RNICConfig{})
	apart := &rig.End{T: t, PD: rig.NewPD(t, ini.RNIC)}
	one, two, gone := allocMW(ini, iwarp.MWType1), allocMW(ini, iwarp.MWType2), allocMW(ini, iwarp.MWType1)
	rig.Must(t, gone.Dealloc())
	all := iwarp.Binding{Memory: mr.Slice(0, 8), Access: iwarp.RemoteRead}
	bind := func(w *iwarp.MW, b iwarp.Binding) iwarp.SendWR {
		return iwarp.SendWR{Op: iwarp.OpBindMW, Window: w, Bind: &b}
	}
	for text, wr := range map[string]iwarp.SendWR{
		"without a Window and a Bind":  {Op: iwarp.OpBindMW, Window: two},
		"name what is bound":           {Op: iwarp.OpBindMW, Bind: &all},
		"Bind, which is for OpBindMW":  {Op: iwarp.OpSend, Bind: &all},
		"Window, which is for OpLocal": {Op: iwarp.OpSend, Window: two},
		"of which Bind Memory Wind":    {Op: iwarp.OpBindMW, Window: two, Bind: &all, SGL: []iwarp.SGE{mr.Slice(0, 1)}},
		"inline data on Bind Memory":   {Op: iwarp.OpBindMW, Window: two, Bind: &all, Inline: []byte("x")},
		"of a Target, or of a Window":  {Op: iwarp.OpLocalInvalidate, Window: two, Target: mr},
		"Memory Window of type 1 to":   {Op: iwarp.OpLocalInvalidate, Window: one},
		"Window to invalidate is of":   {Op: iwarp.OpLocalInvalidate, Window: allocMW(apart, iwarp.MWType2)},
		"of another Protection Doma":   bind(allocMW(apart, iwarp.MWType2), all),
		"Window of another Protecti":   bind(allocMW(other, iwarp.MWType2), all),
		"an MR of another RNIC": bind(two, iwarp.Binding{Memory: other.MR(8, 0).Slice(0, 8),
			Access: iwarp.RemoteRead}),
		"an MR of another Protection": bind(two, iwarp.Binding{Memory: apart.MR(8, 0).Slice(0, 8),
			Access: iwarp.RemoteRead}),
		"a binding of no bytes": bind(two, iwarp.Binding{Memory: mr.Slice(0, 0), Access: iwarp.RemoteRead}),
		"9 bytes at offset 0":   bind(two, iwarp.Binding{Memory: mr.Slice(0, 9), Access: iwarp.RemoteRead}),
		"element of -1 bytes":   bind(two, iwarp.Binding{Memory: mr.Slice(0, -1), Access: iwarp.RemoteRead}),
		"access rights 0x1":     bind(two, iwarp.Binding{Memory: mr.Slice(0, 8), Access: iwarp.LocalWrite}),
		"without LocalWrite":    bind(two, iwarp.Binding{Memory: ro.Slice(0, 8), Access: iwarp.RemoteWrite}),
		"exceed 64 bits": bind(two, iwarp.Binding{Memory: mr.Slice(0, 8),
			Access: iwarp.RemoteRead, Base: math.MaxUint64}),
	} {
		if err := ini.PostSend(&wr); !errors.Is(err, iwarp.ErrInvalid) || !rig.Contains(err, text) {
			t.Errorf("%s: %v", text, err)
		}
	}
	binds(ini, two, iwarp.Binding{Memory: ro.Slice(0, 8), Access: iwarp.RemoteRead}) // which needs no LocalWrite
	for text, err := range map[string]error{
		"bound by an OpBindMW":  two.Bind(all),
		"an MR of another RNIC": one.Bind(iwarp.Binding{Memory: other.MR(8, 0).Slice(0, 8), Access: iwarp.RemoteRead}),
		"access rights 0x8":     one.Bind(iwarp.Binding{Memory: mr.Slice(0, 8), Access: iwarp.RemoteInvalidate}),
	} {
		if !errors.Is(err, iwarp.ErrInvalid) || !rig.Contains(err, text) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := gone.Bind(all); !errors.Is(err, iwarp.ErrClosed) {
		t.Error(err)
	}
	for _, kind := range []iwarp.MWType{0, 3} {
		if _, err := ini.PD.AllocMW(kind); !errors.Is(err, iwarp.ErrInvalid) ||
			!rig.Contains(err, fmt.Sprintf("type %d", kind)) {
			t.Error(err)
		}
	}
	rig.Works(t, ini, res)
}

// TestWindowLimit allocates one more than Limits allows, and one in a domain that is closed.
func TestWindowLimit(t *testing.T) {
	e := rig.NewEnd(t, iwarp.RNICConfig{Limits: iwarp.Limits{MWs: 1}})
	w := allocMW(e, iwarp.MWType1)
	if _, err := e.PD.AllocMW(iwarp.MWType1); !errors.Is(err, iwarp.ErrLimit) || !rig.Contains(err, "Memory Windows") {
		t.Error(err)
	}
	rig.Must(t, w.Dealloc())
	rig.Should(t, allocMW(e, iwarp.MWType2).Dealloc())
	rig.Must(t, e.PD.Close())
	if _, err := e.PD.AllocMW(iwarp.MWType1); !errors.Is(err, iwarp.ErrClosed) {
		t.Error(err)
	}
}

// TestBindFails binds a window that is bound already.
//
// RDMA verbs 8.3: the request completes in error, and so ends the connection.
func TestBindFails(t *testing.T) {
	ini, res := rig.Connect(t)
	mr, w := ini.MR(8, iwarp.LocalWrite), allocMW(ini, iwarp.MWType2)
	b := iwarp.Binding{Memory: mr.Slice(0, 8), Access: iwarp.RemoteRead}
	binds(ini, w, b)
	ini.MustPost(&iwarp.SendWR{ID: 1, Op: iwarp.OpBindMW, Window: w, Bind: &b})
	if wc := ini.WantSent(iwarp.OpBindMW, 1, iwarp.StatusBindFailed); !rig.Contains(wc.Err(), "invalidate it first") {
		t.Error(wc.Err())
	}
	var end *iwarp.TerminateError
	if err := res.WantEnd(); !errors.As(err, &end) || end.Code != 0 {
		t.Error(err)
	}
}
