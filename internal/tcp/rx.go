package tcp

import (
	"sync"
	"sync/atomic"
)

// hold is how many bytes of an unfinished FPDU an idle connection keeps beside
// the pool. More than that and it keeps the pooled buffer: a peer has to send
// that much to make us hold one.
const hold = 8 << 10

var keeps = sync.Pool{New: func() any { return new([hold]byte) }}

// smallSize is the size of the buffer that a connection that is no socket waits with, in bytes.
const smallSize = 256

// rx is the receive buffer: from r to w of big, or, while the connection waits
// with little unread, a copy of that in view.
type rx struct {
	mu       sync.Mutex // held by who reads, until what came is consumed
	released bool
	full     bool        // where there is no socket, the last read has filled its buffer: more may be there
	polls    uint32      // how often a consumer has looked
	due      atomic.Bool // it is time to suppress wake-ups: see wakeups.go

	big  *[BufferSize]byte
	r, w int
	need int
	view []byte      // unread bytes while big is nil
	kept *[hold]byte // memory that view lies in, from a pool too
	// Where there is no socket, which can be waited for without a buffer:
	small []byte      // what is read to
	more  *[hold]byte // from a pool, in place of small while reads fill that
}

// wait waits until whoever reads is done.
func (x *rx) wait() {
	x.mu.Lock()
	defer x.mu.Unlock()
}

func (x *rx) bytes() []byte {
	if x.big == nil {
		return x.view
	}
	return x.big[x.r:x.w]
}

func (x *rx) consume(n, need int) {
	x.need = need
	if x.big == nil {
		x.view = x.view[n:]
		return
	}
	if x.r += n; x.r == x.w {
		x.r, x.w = 0, 0
	}
}

// room returns where to read to: after what is unread, with space for the rest
// of the FPDU under way at least.
func (x *rx) room() []byte {
	if x.big == nil {
		x.big = buffers.Get().(*[BufferSize]byte)
		x.r, x.w = 0, copy(x.big[:], x.view)
		x.drop()
	}
	if x.r > 0 && BufferSize-x.r < max(x.need, BufferSize/2) || x.w == BufferSize {
		x.w = copy(x.big[:], x.big[x.r:x.w])
		x.r = 0
	}
	return x.big[x.w:]
}

// shrink is called before a read that may wait: little that is unread goes to
// kept, so that small is free and big given back.
func (x *rx) shrink() {
	if x.big == nil && len(x.view) > 0 {
		x.room()
	}
	x.idle()
}

// landing returns what to read to where there is no socket to wait for without a buffer.
func (x *rx) landing() []byte {
	if !x.full {
		x.lessen()
		return x.small
	}
	if x.more == nil {
		x.more = keeps.Get().(*[hold]byte)
	}
	return x.more[:]
}

// add takes in n bytes that were read to b, which landing has returned.
func (x *rx) add(b []byte, n int) {
	x.full = n == len(b)
	if len(x.view) == 0 {
		x.view = b[:n]
		return
	}
	x.w += copy(x.room(), b[:n])
}

// lessen gives back the memory that landing has taken. Nothing in it is unread.
func (x *rx) lessen() {
	if x.more != nil {
		keeps.Put(x.more)
		x.more = nil
	}
}

// idle is called before waiting: it gives the buffer back if little is in it.
func (x *rx) idle() {
	n := x.w - x.r
	if x.big == nil || n > hold {
		return
	}
	if n > 0 {
		x.kept = keeps.Get().(*[hold]byte)
		x.view = x.kept[:copy(x.kept[:], x.big[x.r:x.w])]
	}
	x.put()
}

func (x *rx) put() {
	buffers.Put(x.big)
	x.big, x.r, x.w = nil, 0, 0
}

func (x *rx) release() {
	x.released = true
	if x.big != nil {
		x.put()
	}
	x.drop()
	x.lessen()
}

// drop empties view.
func (x *rx) drop() {
	if x.kept != nil {
		keeps.Put(x.kept)
	}
	x.view, x.kept = nil, nil
}
