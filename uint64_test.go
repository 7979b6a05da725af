package iwarp_test

import (
	"encoding/binary"
	"errors"
	"net"
	"runtime"
	"sync"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// A word of memory is one for the program and its peers, as an integer of this machine's.
func TestUint64(t *testing.T) {
	ini, res := rig.Connect(t)
	mr := res.MR(24, iwarp.RemoteAtomic)
	w, err := mr.Uint64(8)
	rig.Must(t, err)
	rig.Must(t, w.Store(5))
	if old, err := ini.FetchAdd(rig.Within(t), mr.Remote(8), 2); err != nil || old != 5 {
		t.Errorf("the peer has found %d: %v", old, err)
	}
	if sum, err := w.Add(1<<32 - 1); err != nil || sum != 1<<32+6 {
		t.Errorf("the sum is %d: %v", sum, err)
	}
	if swapped, err := w.CompareAndSwap(7, 1); err != nil || swapped {
		t.Errorf("swapped %v: %v", swapped, err)
	}
	if swapped, err := w.CompareAndSwap(1<<32+6, 1<<40); err != nil || !swapped {
		t.Errorf("swapped %v: %v", swapped, err)
	}
	if v, err := w.Load(); err != nil || v != 1<<40 || binary.NativeEndian.Uint64(mr.Bytes()[8:]) != v {
		t.Errorf("%d, memory % x: %v", v, mr.Bytes(), err)
	}
	if v, err := w.Add(^uint64(0) - 1<<40 + 1); err != nil || v != 0 {
		t.Errorf("it does not wrap: %d, %v", v, err)
	}
}

// uses are the methods of a word.
func uses(w iwarp.Uint64) map[string]error {
	_, load := w.Load()
	_, add := w.Add(1)
	_, swap := w.CompareAndSwap(0, 1)
	return map[string]error{"Load": load, "Store": w.Store(1), "Add": add, "CompareAndSwap": swap}
}

func wantEach(t *testing.T, got map[string]error, want error, text string) {
	t.Helper()
	for name, err := range got {
		if !errors.Is(err, want) || !rig.Contains(err, text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A word that is not there, or no more, is an error, and no memory is touched.
func TestUint64Mistakes(t *testing.T) {
	e := rig.NewEnd(t, iwarp.RNICConfig{})
	mr := e.MR(24, 0)
	for off, text := range map[int]string{
		-8: "8 bytes at offset -8 of a region of 24", 17: "at offset 17", 24: "at offset 24", 4: "no multiple of 8",
	} {
		if _, err := mr.Uint64(off); !errors.Is(err, iwarp.ErrInvalid) || !rig.Contains(err, text) {
			t.Errorf("at %d: %v", off, err)
		}
	}
	wantEach(t, uses(iwarp.Uint64{}), iwarp.ErrInvalid, "MR")
	_, err := new(iwarp.MR).Uint64(0)
	wantEach(t, map[string]error{"of no MR": err}, iwarp.ErrInvalid, "MR")
	w, err := mr.Uint64(16)
	rig.Must(t, err)
	rig.Must(t, mr.Deregister())
	wantEach(t, uses(w), net.ErrClosed, "deregistered")
	if _, err := mr.Uint64(16); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Deregister: %v", err)
	}
	_, err = allocFast(e, 1, 64).Uint64(0)
	wantEach(t, map[string]error{"without memory": err}, iwarp.ErrBadState, "nothing is registered")
	for _, b := range mr.Bytes() {
		if b != 0 {
			t.Fatalf("memory % x", mr.Bytes())
		}
	}
}

// A word is that of the region, also where that has got other memory.
func TestUint64Detached(t *testing.T) {
	e := rig.NewEnd(t, iwarp.RNICConfig{})
	mr := e.MR(16, 0)
	w, err := mr.Uint64(8)
	rig.Must(t, err)
	rig.Must(t, w.Store(3))
	rig.Must(t, mr.Detach())
	clear(mr.Bytes())
	if v, err := w.Add(1); err != nil || v != 4 {
		t.Errorf("%d: %v", v, err)
	}
}

// Peers and the program change one word, through two regions: nothing is lost, and it is no race.
func TestUint64Together(t *testing.T) {
	const each = 200
	server := rig.NewEnd(t, iwarp.RNICConfig{})
	one := server.MR(16, iwarp.RemoteAtomic)
	two, err := server.PD.Register(one.Bytes(), iwarp.RemoteAtomic)
	rig.Must(t, err)
	w, err := two.Uint64(8)
	rig.Must(t, err)
	s := rig.Setup{Accept: iwarp.AcceptConfig{PD: server.PD}}
	adds, _ := s.Connect(t)
	swaps, _ := s.Connect(t)
	var all sync.WaitGroup
	all.Go(func() {
		for range each {
			_, err := adds.FetchAdd(rig.Within(t), one.Remote(8), 1)
			rig.Should(t, err)
		}
	})
	all.Go(func() {
		was, seen := uint64(0), error(nil)
		for done := 0; done < each && seen == nil; {
			var old uint64
			if old, seen = swaps.CompareSwap(rig.Within(t), two.Remote(8), was, was+1); old == was {
				done++
			}
			was = old
		}
		rig.Should(t, seen)
	})
	all.Go(func() {
		for range each {
			_, err := w.Add(1)
			rig.Should(t, err)
		}
	})
	all.Go(func() {
		for done := 0; done < each; {
			was, err := w.Load()
			rig.Should(t, err)
			if swapped, err := w.CompareAndSwap(was, was+1); err != nil || swapped {
				rig.Should(t, err)
				done++
			}
			runtime.Gosched()
		}
	})
	all.Wait()
	if v, err := w.Load(); err != nil || v != 4*each {
		t.Errorf("%d of %d: %v", v, 4*each, err)
	}
}

// A peer's Writes and Reads of the word meet it whole, too, and are no race.
func TestUint64BesideWrites(t *testing.T) {
	const turns = 300
	ini, res := rig.Connect(t)
	mr, from := res.MR(8, iwarp.RemoteWrite|iwarp.RemoteRead), ini.MR(8, iwarp.LocalWrite)
	w, err := mr.Uint64(0)
	rig.Must(t, err)
	whole := func(v uint64) {
		if v%0x01010101_01010101 != 0 {
			t.Errorf("a part of two words: %#x", v)
		}
	}
	var all sync.WaitGroup
	all.Go(func() {
		for i := range turns {
			for j := range from.Bytes() {
				from.Bytes()[j] = byte(i)
			}
			_, err := ini.Write(rig.Within(t), from.Slice(0, 8), mr.Remote(0))
			rig.Should(t, err)
			_, err = ini.Read(rig.Within(t), from.Slice(0, 8), mr.Remote(0))
			rig.Should(t, err)
			whole(binary.NativeEndian.Uint64(from.Bytes()))
		}
	})
	all.Go(func() {
		for i := range uint64(turns) {
			v, err := w.Load()
			rig.Should(t, err)
			whole(v)
			rig.Should(t, w.Store(i%256*0x01010101_01010101))
		}
	})
	all.Wait()
}
