package iwarp_test

import (
	"errors"
	"io"
	"math"
	"testing"

	"github.com/goiwarp/iwarp"
)

// fast allocates an MR for an OpFastRegister.
func (e *end) fast(pieces, octets int) *iwarp.MR {
	e.t.Helper()
	mr, err := e.pd.AllocMR(pieces, octets)
	must(e.t, err)
	return mr
}

// registers posts an OpFastRegister and waits until it is carried out.
func (e *end) registers(mr *iwarp.MR, r iwarp.Registration) {
	e.t.Helper()
	e.post(&iwarp.SendWR{ID: 52, Op: iwarp.OpFastRegister, Target: mr, Register: &r})
	e.wantSent(iwarp.OpFastRegister, 52, iwarp.StatusSuccess)
}

// TestFastRegister registers memory of several pieces by a request, reads a peer's memory into it
// with requests that are posted directly after, and has the peer use it, and end that.
//
// RDMA verbs 8: the registration is carried out before any later request starts, an invalidation
// with a fence after all earlier ones.
func TestFastRegister(t *testing.T) {
	overAll(t, func(t *testing.T, s setup) {
		ini, res := s.endsSoon().connect(t)
		mr, src := ini.fast(2, 64), res.filled(8, 'a', iwarp.RemoteRead)
		res.look() // after it was filled
		if mr.Valid() || mr.Len() != 0 || mr.Bytes() != nil {
			t.Errorf("valid: %t, %d octets", mr.Valid(), mr.Len())
		}
		all := make([]byte, 20)
		pieces := [][]byte{all[:3], all[10:20]}
		ini.post(&iwarp.SendWR{ID: 1, Op: iwarp.OpFastRegister, Target: mr, Register: &iwarp.Registration{Memory: pieces, Access: iwarp.LocalWrite, Key: 1}})
		ini.post(&iwarp.SendWR{ID: 2, Op: iwarp.OpRead, SGL: []iwarp.SGE{mr.Slice(1, 8)}, Remote: src.Remote(0)})
		ini.post(&iwarp.SendWR{ID: 3, Op: iwarp.OpLocalInvalidate, Target: mr, Fence: true})
		ini.post(&iwarp.SendWR{ID: 4, Op: iwarp.OpFastRegister, Target: mr, Register: &iwarp.Registration{Memory: pieces, Access: iwarp.RemoteWrite, Key: 2, Base: 1 << 50, Private: true}})
		for id, op := range []iwarp.Op{iwarp.OpFastRegister, iwarp.OpRead, iwarp.OpLocalInvalidate, iwarp.OpFastRegister} {
			ini.wantSent(op, uint64(id+1), iwarp.StatusSuccess)
		}
		ini.look()
		if want := append(append([]byte{0}, src.Bytes()...), make([]byte, 4)...); string(all[:3])+string(all[10:]) != string(want) {
			t.Errorf("%q, want %q", all, want)
		}
		if mr.STag() != mr.STagWithKey(2) || mr.STag()&0xff != 2 || !mr.Valid() || mr.Len() != 13 || mr.Access() != iwarp.RemoteWrite|iwarp.LocalWrite {
			t.Errorf("STag %#x, %d octets, %#x", mr.STag(), mr.Len(), mr.Access())
		}
		writesTo(t, ini, res, "", iwarp.Remote{STag: 1}, 0) // a Responder may send after that
		writesTo(t, res, ini, "xyz", iwarp.Remote{STag: mr.STag(), TO: 1<<50 + 1}, mr.STag())
		if mr.Valid() || string(all[1:3])+string(all[10:11]) != "xyz" {
			t.Errorf("valid: %t after the peer has invalidated it; %q", mr.Valid(), all)
		}
		wantNoMemory(t, mr)
		refusedWrite(t, res, ini, iwarp.Remote{STag: mr.STag(), TO: 1 << 50}, 0x1100)
		should(t, mr.Deregister())
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
		if !errors.Is(err, iwarp.ErrBadState) || !contains(err, "nothing is registered in the MR at present") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestFastOwnAccess reads and writes what was registered, of two pieces as of one, as far as it goes.
func TestFastOwnAccess(t *testing.T) {
	ini, _ := connect(t)
	mr, one, two := ini.fast(2, 64), []byte("abc"), []byte("defg")
	wantNoMemory(t, mr)
	ini.registers(mr, iwarp.Registration{Memory: [][]byte{one, two}})
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
	ini, res := connect(t)
	apart, gone := &end{t: t, pd: newPD(t, ini.rnic)}, ini.fast(1, 8)
	must(t, gone.Deregister())
	mr, plain := ini.fast(2, 8), ini.mr(8, 0)
	reg := func(m *iwarp.MR, r iwarp.Registration) iwarp.SendWR {
		return iwarp.SendWR{Op: iwarp.OpFastRegister, Target: m, Register: &r}
	}
	eight := make([]byte, 8)
	for text, wr := range map[string]iwarp.SendWR{
		"without a Target and":       {Op: iwarp.OpFastRegister, Register: &iwarp.Registration{}},
		"name the MR":                {Op: iwarp.OpFastRegister, Target: mr},
		"which is for OpFastRegist":  {Op: iwarp.OpSend, Register: &iwarp.Registration{}},
		"of which Fast Register ta":  {Op: iwarp.OpFastRegister, Target: mr, Register: &iwarp.Registration{}, SGL: []iwarp.SGE{plain.Slice(0, 1)}},
		"inline data on Fast Regis":  {Op: iwarp.OpFastRegister, Target: mr, Register: &iwarp.Registration{}, Inline: eight},
		"that PD.Register made":      reg(plain, iwarp.Registration{}),
		"of another Protection":      reg(apart.fast(1, 8), iwarp.Registration{}),
		"was deregistered":           reg(gone, iwarp.Registration{}),
		"3 pieces of memory with 3":  reg(mr, iwarp.Registration{Memory: [][]byte{eight[:1], eight[1:2], eight[2:3]}}),
		"2 pieces of memory with 9":  reg(mr, iwarp.Registration{Memory: [][]byte{eight, eight[:1]}}),
		"exceed 64 bits":             reg(mr, iwarp.Registration{Memory: [][]byte{eight}, Base: math.MaxUint64}),
		"rights 0x80 do not":         reg(mr, iwarp.Registration{Access: 0x80}),
		"9 octets at offset 0 of":    {SGL: []iwarp.SGE{mr.Slice(0, 9)}},
		"an MR of another Protectio": {SGL: []iwarp.SGE{apart.fast(1, 8).Slice(0, 8)}},
	} {
		if err := ini.PostSend(&wr); !errors.Is(err, iwarp.ErrInvalid) || !contains(err, text) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, n := range [][2]int{{0, 8}, {1, 0}, {-1, 8}} {
		if _, err := ini.pd.AllocMR(n[0], n[1]); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%v: %v", n, err)
		}
	}
	should(t, ini.fast(1, 1).Deregister()) // the least there can be
	works(t, ini, res)
}

// TestFastRegisterFails registers in an MR whose STag is valid, and uses one whose STag is not.
//
// RDMA verbs 8.3: the request completes in error, and so ends the connection.
func TestFastRegisterFails(t *testing.T) {
	ini, _ := connect(t)
	mr, r := ini.fast(1, 8), iwarp.Registration{Memory: [][]byte{make([]byte, 8)}}
	ini.registers(mr, r)
	ini.post(&iwarp.SendWR{ID: 1, Op: iwarp.OpFastRegister, Target: mr, Register: &r})
	if wc := ini.wantSent(iwarp.OpFastRegister, 1, iwarp.StatusRegisterFailed); !contains(wc.Err(), "invalidate it first") {
		t.Error(wc.Err())
	}
	ini, _ = connect(t)
	ini.post(&iwarp.SendWR{ID: 2, SGL: []iwarp.SGE{ini.fast(1, 8).Slice(0, 8)}})
	if wc := ini.wantSent(iwarp.OpSend, 2, iwarp.StatusLocalProtection); !contains(wc.Err(), "invalidated") {
		t.Error(wc.Err())
	}
}

// TestAllocLimit has all that may be registered count.
func TestAllocLimit(t *testing.T) {
	e := newEnd(t, iwarp.RNICConfig{Limits: iwarp.Limits{Octets: 100}})
	mr := e.fast(3, 100)
	if _, err := e.pd.Register(make([]byte, 1), 0); !errors.Is(err, iwarp.ErrLimit) {
		t.Error(err)
	}
	must(t, mr.Deregister())
	should(t, e.mr(100, 0).Deregister())
	should(t, e.pd.Close())
}
