package iwarp_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// fast allocates an MR for an OpFastRegister.
func allocFast(e *rig.End, pieces, n int) *iwarp.MR {
	e.T.Helper()
	mr, err := e.PD.AllocMR(pieces, n)
	rig.Must(e.T, err)
	return mr
}

// registers posts an OpFastRegister and waits until it is carried out.
func registers(e *rig.End, mr *iwarp.MR, r iwarp.Registration) {
	e.T.Helper()
	e.MustPost(&iwarp.SendWR{ID: 52, Op: iwarp.OpFastRegister, Target: mr, Register: &r})
	e.WantSent(iwarp.OpFastRegister, 52, iwarp.StatusSuccess)
}

// TestFastRegister registers memory of several pieces by a request, reads a peer's memory into it
// with requests that are posted directly after, and has the peer use it, and end that.
//
// RDMA verbs 8: the registration is carried out before any later request starts, an invalidation
// with a fence after all earlier ones.
func TestFastRegister(t *testing.T) {
	overAll(t, func(t *testing.T, s rig.Setup) {
		ini, res := endsSoon(s).Connect(t)
		mr, src := allocFast(ini, 2, 64), res.Filled(8, 'a', iwarp.RemoteRead)
		res.Look() // after it was filled
		if mr.Valid() || mr.Len() != 0 || mr.Bytes() != nil {
			t.Errorf("valid: %t, %d bytes", mr.Valid(), mr.Len())
		}
		all := make([]byte, 20)
		pieces := [][]byte{all[:3], all[10:20]}
		ini.MustPost(&iwarp.SendWR{ID: 1, Op: iwarp.OpFastRegister, Target: mr,
			Register: &iwarp.Registration{Memory: pieces, Access: iwarp.LocalWrite, Key: 1}})
		ini.MustPost(&iwarp.SendWR{ID: 2, Op: iwarp.OpRead, SGL: []iwarp.SGE{mr.Slice(1, 8)}, Remote: src.Remote(0)})
		ini.MustPost(&iwarp.SendWR{ID: 3, Op: iwarp.OpLocalInvalidate, Target: mr, Fence: true})
		ini.MustPost(&iwarp.SendWR{ID: 4, Op: iwarp.OpFastRegister, Target: mr,
			Register: &iwarp.Registration{Memory: pieces, Access: iwarp.RemoteWrite, Key: 2,
				Base: 1 << 50, Private: true}})
		for id, op := range []iwarp.Op{iwarp.OpFastRegister, iwarp.OpRead,
			iwarp.OpLocalInvalidate, iwarp.OpFastRegister} {
			ini.WantSent(op, uint64(id+1), iwarp.StatusSuccess)
		}
		ini.Look()
		if want := append(append([]byte{0}, src.Bytes()...),
			make([]byte, 4)...); string(all[:3])+string(all[10:]) != string(want) {
			t.Errorf("%q, want %q", all, want)
		}
		if mr.STag() != mr.STagWithKey(2) || mr.STag()&0xff != 2 || !mr.Valid() || mr.Len() != 13 ||
			!strings.Contains(mr.String(), fmt.Sprint(iwarp.RemoteWrite|iwarp.LocalWrite)) {
			t.Errorf("STag %#x, %d bytes, %v", mr.STag(), mr.Len(), mr)
		}
		writesTo(t, ini, res, "", iwarp.Remote{STag: 1}, 0) // a Responder may send after that
		writesTo(t, res, ini, "xyz", iwarp.Remote{STag: mr.STag(), TO: 1<<50 + 1}, mr.STag())
		if mr.Valid() || string(all[1:3])+string(all[10:11]) != "xyz" {
			t.Errorf("valid: %t after the peer has invalidated it; %q", mr.Valid(), all)
		}
		wantNoMemory(t, mr)
		refusedWrite(t, res, ini, iwarp.Remote{STag: mr.STag(), TO: 1 << 50}, 0x1100)
		rig.Should(t, mr.Deregister())
	})
}

// wantNoMemory has an MR without a registration refuse the program's accesses: the memory is its own.
func wantNoMemory(t *testing.T, mr *iwarp.MR) {
	t.Helper()
	_, read := mr.ReadAt(make([]byte, 1), 0)
	_, written := mr.WriteAt([]byte("1"), 0)
	for what, err := range map[string]error{
		"ReadAt": read, "WriteAt": written, "Detach": mr.Detach(),
		"Update": mr.Update(func(b []byte) { t.Errorf("called with %q", b) }),
	} {
		if !errors.Is(err, iwarp.ErrBadState) || !rig.Contains(err, "nothing is registered in the MR at present") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestFastOwnAccess reads and writes what was registered, of two pieces as of one, as far as it goes.
func TestFastOwnAccess(t *testing.T) {
	ini, _ := rig.Connect(t)
	mr, one, two := allocFast(ini, 2, 64), []byte("abc"), []byte("defg")
	wantNoMemory(t, mr)
	registers(ini, mr, iwarp.Registration{Memory: [][]byte{one, two}})
	got := make([]byte, 8)
	if n, err := mr.ReadAt(got, 1); n != 6 || err != io.EOF || string(got[:6]) != "bcdefg" {
		t.Errorf("%q: %v", got[:n], err)
	}
	if n, err := mr.WriteAt([]byte("12"), 2); n != 2 || err != nil || string(one)+string(two) != "ab12efg" {
		t.Errorf("%q, %q: %v", one, two, err)
	}
	for _, off := range []int64{6, -1, math.MinInt64, math.MaxInt64} {
		if _, err := mr.WriteAt([]byte("12"), off); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("at %d: %v", off, err)
		}
	}
}

// TestFastRegisterMistakes posts what cannot be: it is refused in words of its own, and the connection
// goes on.
func TestFastRegisterMistakes(t *testing.T) {
	ini, res := rig.Connect(t)
	apart, gone := &rig.End{T: t, PD: rig.NewPD(t, ini.RNIC)}, allocFast(ini, 1, 8)
	rig.Must(t, gone.Deregister())
	mr, plain := allocFast(ini, 2, 8), ini.MR(8, 0)
	reg := func(m *iwarp.MR, r iwarp.Registration) iwarp.SendWR {
		return iwarp.SendWR{Op: iwarp.OpFastRegister, Target: m, Register: &r}
	}
	eight := make([]byte, 8)
	for text, wr := range map[string]iwarp.SendWR{
		"without a Target and":      {Op: iwarp.OpFastRegister, Register: &iwarp.Registration{}},
		"name the MR":               {Op: iwarp.OpFastRegister, Target: mr},
		"which is for OpFastRegist": {Op: iwarp.OpSend, Register: &iwarp.Registration{}},
		"of which Fast Register ta": {Op: iwarp.OpFastRegister, Target: mr, Register: &iwarp.Registration{},
			SGL: []iwarp.SGE{plain.Slice(0, 1)}},
		"inline data on Fast Regis": {Op: iwarp.OpFastRegister, Target: mr,
			Register: &iwarp.Registration{}, Inline: eight},
		"that PD.Register made":      reg(plain, iwarp.Registration{}),
		"of another Protection":      reg(allocFast(apart, 1, 8), iwarp.Registration{}),
		"was deregistered":           reg(gone, iwarp.Registration{}),
		"3 pieces of memory with 3":  reg(mr, iwarp.Registration{Memory: [][]byte{eight[:1], eight[1:2], eight[2:3]}}),
		"2 pieces of memory with 9":  reg(mr, iwarp.Registration{Memory: [][]byte{eight, eight[:1]}}),
		"exceed 64 bits":             reg(mr, iwarp.Registration{Memory: [][]byte{eight}, Base: math.MaxUint64}),
		"rights 0x80 do not":         reg(mr, iwarp.Registration{Access: 0x80}),
		"9 bytes at offset 0 of":     {SGL: []iwarp.SGE{mr.Slice(0, 9)}},
		"an MR of another Protectio": {SGL: []iwarp.SGE{allocFast(apart, 1, 8).Slice(0, 8)}},
	} {
		if err := ini.PostSend(&wr); !errors.Is(err, iwarp.ErrInvalid) || !rig.Contains(err, text) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, n := range [][2]int{{0, 8}, {1, 0}, {-1, 8}} {
		if _, err := ini.PD.AllocMR(n[0], n[1]); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%v: %v", n, err)
		}
	}
	rig.Should(t, allocFast(ini, 1, 1).Deregister()) // the least there can be
	rig.Works(t, ini, res)
}

// TestFastRegisterFails registers in an MR whose STag is valid, and uses one whose STag is not.
//
// RDMA verbs 8.3: the request completes in error, and so ends the connection.
func TestFastRegisterFails(t *testing.T) {
	ini, _ := rig.Connect(t)
	mr, r := allocFast(ini, 1, 8), iwarp.Registration{Memory: [][]byte{make([]byte, 8)}}
	registers(ini, mr, r)
	ini.MustPost(&iwarp.SendWR{ID: 1, Op: iwarp.OpFastRegister, Target: mr, Register: &r})
	if wc := ini.WantSent(iwarp.OpFastRegister, 1,
		iwarp.StatusRegisterFailed); !rig.Contains(wc.Err(), "invalidate it first") {
		t.Error(wc.Err())
	}
	ini, _ = rig.Connect(t)
	ini.MustPost(&iwarp.SendWR{ID: 2, SGL: []iwarp.SGE{allocFast(ini, 1, 8).Slice(0, 8)}})
	if wc := ini.WantSent(iwarp.OpSend, 2, iwarp.StatusLocalProtection); !rig.Contains(wc.Err(), "invalidated") {
		t.Error(wc.Err())
	}
}

// TestAllocLimit has all that may be registered count.
func TestAllocLimit(t *testing.T) {
	e := rig.NewEnd(t, iwarp.RNICConfig{Limits: iwarp.Limits{Bytes: 100}})
	mr := allocFast(e, 3, 100)
	if _, err := e.PD.Register(make([]byte, 1), 0); !errors.Is(err, iwarp.ErrLimit) {
		t.Error(err)
	}
	rig.Must(t, mr.Deregister())
	rig.Should(t, e.MR(100, 0).Deregister())
	rig.Should(t, e.PD.Close())
}

// Memory that a request has registered belongs to the program alone again when it is invalid: nothing keeps it from the
// garbage collector, however the request ended and whatever the QP does afterwards.
func TestRegisteredMemoryIsLetGo(t *testing.T) {
	r := newOpRig(t)
	for name, end := range map[string]func(mr *iwarp.MR){
		"invalidated":  func(mr *iwarp.MR) { r.done(&iwarp.SendWR{Op: iwarp.OpLocalInvalidate, Target: mr}) },
		"deregistered": func(mr *iwarp.MR) { rig.Must(r, mr.Deregister()) },
	} {
		for _, pieces := range []int{1, 2, 100} {
			mr := allocFast(r.ini, pieces, 100*opBytes)
			list, first := registerable(pieces)
			r.done(&iwarp.SendWR{Op: iwarp.OpFastRegister, Target: mr,
				Register: &iwarp.Registration{Memory: list, Access: iwarp.LocalWrite}})
			if runtime.GC(); first.Value() == nil {
				t.Fatalf("%s, %d pieces: gone while it is registered", name, pieces)
			}
			clear(list)
			end(mr)
			if runtime.GC(); first.Value() != nil {
				t.Errorf("%s, %d pieces: it is kept", name, pieces)
			}
		}
	}
}

// registerable returns memory in pieces, and by what to tell whether the first is there still.
func registerable(pieces int) ([][]byte, weak.Pointer[byte]) {
	list := make([][]byte, pieces)
	for i := range list {
		list[i] = make([]byte, opBytes)
	}
	return list, weak.Make(&list[0][0])
}
