package engine

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// What a request registers or binds is copied when it is posted, however long it waits; when it is complete nothing of
// it is referred to any more, and the next request in its slot takes no memory.
func TestLocalWorkIsCopied(t *testing.T) {
	p := initiator(t)
	r, err := p.table.Allocate(testPD, memory.Most{Pieces: 1, Bytes: 8})
	testrig.Must(t, err)
	w := p.windowOf(false)
	what := &Register{r, memory.Registration{Memory: [][]byte{make([]byte, 8)}, Access: memory.LocalWrite, Key: 1}}
	to := bind(2, w, r, memory.RemoteWrite)
	to.Bind.Length = 8
	p.post(work(7, OpSend))
	p.post(SendWork{ID: 1, Op: OpFastRegister, Fence: true, Register: what}) // waits until the Send is sent
	p.post(to)
	what.Memory[0], what.Key, to.Bind.Length = nil, 9, 99
	p.next()
	p.completion(success(7, OpSend, 0), success(1, OpFastRegister, 0), success(2, OpBind, 0))
	if r.Size() != 8 || uint8(r.STag()) != 1 || w.Size() != 8 {
		t.Errorf("%d bytes with key %d, %d of a window", r.Size(), uint8(r.STag()), w.Size())
	}

	used := 0
	for range 32 { // all slots, and each again
		e := p.Machine.sq.At(p.Machine.sq.Tail())
		if l := e.local; l != nil {
			used++
			if l.bind != (Bind{}) || l.register.Region != nil || len(l.register.Memory) != 0 ||
				cap(l.register.Memory) > 0 && l.register.Memory[:1][0] != nil {
				t.Errorf("kept: %+v", *l)
			}
		}
		p.post(SendWork{ID: 3, Op: OpLocalInvalidate, Target: w})
		p.wantNothing()
		p.completion(success(3, OpLocalInvalidate, 0))
	}
	if used < 2 {
		t.Errorf("%d slots have memory of their own", used)
	}
}

// A local operation that was carried out says so, also where the Send before it was built and never sent: programs have
// to know what an STag stands for.
func TestLocalWorkBehindFlushed(t *testing.T) {
	p := initiator(t)
	w := p.windowOf(false)
	p.post(work(7, OpSend))
	p.post(SendWork{ID: 1, Op: OpLocalInvalidate, Target: w})
	p.post(work(8, OpSend))
	if v := p.Machine.Output(p.clock, p.g); len(v) == 0 {
		t.Fatal("nothing is built")
	}
	p.Machine.Abandon(p.clock, p.g)
	p.Machine.Failed(p.clock, errReset)
	p.collectOutputs()
	p.completion(flushed(7, OpSend), success(1, OpLocalInvalidate, 0), flushed(8, OpSend))
}

// The slot of a registration of many pieces keeps no room for so many.
func TestLocalWorkOfMany(t *testing.T) {
	for _, pieces := range []int{memory.KeptPieces, memory.KeptPieces + 1} {
		p := initiator(t)
		r, err := p.table.Allocate(testPD, memory.Most{Pieces: pieces, Bytes: 99})
		testrig.Must(t, err)
		list := make([][]byte, pieces)
		for i := range list {
			list[i] = make([]byte, 1)
		}
		p.post(SendWork{ID: 1, Op: OpFastRegister, Register: &Register{r, memory.Registration{Memory: list}}})
		p.wantNothing()
		p.completion(success(1, OpFastRegister, 0))
		if kept := cap(p.Machine.sq.At(p.Machine.sq.Tail()).local.register.Memory); kept > memory.KeptPieces ||
			kept > 0 != (pieces == memory.KeptPieces) {
			t.Errorf("%d pieces: room for %d", pieces, kept)
		}
	}
}
