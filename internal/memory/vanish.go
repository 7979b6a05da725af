package memory

import (
	"runtime/debug"
	"sync/atomic"
	"unsafe"

	"github.com/goiwarp/iwarp/internal/layout"
)

// Memory that may vanish is not the Go runtime's: somebody may unmap or protect it while it is registered, or cut the
// file short that is mapped there. The processor's fault is a panic then, which is made a Fault here. All that
// reaches the bytes of an extent is in copyIn, copyOut, copyTo, swap and load.

// copyIn copies p to offset off. The caller holds the locks of these bytes.
func (x *extent) copyIn(off int, p layout.Content) Fault {
	if x.vanishes {
		return x.tryIn(off, p)
	}
	x.place(off, p)
	return None
}

func (x *extent) tryIn(off int, p layout.Content) (f Fault) {
	defer x.faulted(&f, debug.SetPanicOnFault(true))
	x.place(off, p)
	return None
}

// A Careful Taker wants to know that the bytes which it is about to take may turn out to have vanished while it
// takes them: then Take does not return.
type Careful interface {
	Taker
	BeCareful()
}

// copyOut has t take n bytes from offset off on. The caller holds a lock of them.
func (x *extent) copyOut(t Taker, off, n int) Fault {
	if x.vanishes {
		return x.tryOut(t, off, n)
	}
	x.give(t, off, n)
	return None
}

func (x *extent) tryOut(t Taker, off, n int) (f Fault) {
	if c, ok := t.(Careful); ok {
		c.BeCareful()
	}
	defer x.faulted(&f, debug.SetPanicOnFault(true))
	x.give(t, off, n)
	return None
}

// copyTo copies to dst what is at offset off. The caller holds a lock of these bytes.
func (x *extent) copyTo(dst []byte, off int) (f Fault) {
	if x.vanishes {
		defer x.faulted(&f, debug.SetPanicOnFault(true))
	}
	for len(dst) > 0 {
		n := copy(dst, x.piece(off, len(dst)))
		dst, off = dst[n:], off+n
	}
	return None
}

// swap replaces the word at offset off by what change makes of it. The caller holds the lock of its bytes.
func (x *extent) swap(off int, change func(old uint64) uint64) (old uint64, f Fault) {
	word, f := x.word(off)
	if f != None {
		return 0, f
	}
	if x.vanishes {
		defer x.faulted(&f, debug.SetPanicOnFault(true))
	}
	return swap(word, change), None
}

// load loads the word at offset off. The caller holds a lock of its bytes.
func (x *extent) load(off int) (word uint64, f Fault) {
	at, f := x.word(off)
	if f != None {
		return 0, f
	}
	if x.vanishes {
		defer x.faulted(&f, debug.SetPanicOnFault(true))
	}
	return atomic.LoadUint64(at), None
}

// faulted is deferred. It makes a Fault of the panic of an access to the extent's memory, and has faults of the
// goroutine mean what they did before.
func (x *extent) faulted(f *Fault, before bool) {
	debug.SetPanicOnFault(before)
	why := recover()
	if why == nil {
		return
	}
	if at, ok := why.(interface{ Addr() uintptr }); !ok || !x.has(at.Addr()) {
		panic(why)
	}
	*f = Vanished
}

// has reports whether an address is one of the memory's.
func (x *extent) has(at uintptr) bool {
	for off := 0; off < x.size; {
		b := x.piece(off, x.size-off)
		if from := uintptr(unsafe.Pointer(unsafe.SliceData(b))); at >= from && at-from < uintptr(len(b)) {
			return true
		}
		off += len(b)
	}
	return false
}
