package engine

import (
	"errors"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/ring"
)

// Errors of a post; the queue is as it was before.
var (
	ErrQueueFull = errors.New("queue is full: poll its completions, wait until what is unsignaled was sent, create it deeper, or wait for room with Submit")
	ErrBadState  = errors.New("not allowed in this state")
	ErrTooLong   = errors.New("message longer than 4294967295 bytes")
	// ErrInlineRead and ErrTwoPayloads are errors of a Shape.
	ErrInlineRead  = errors.New("a Read has inline data: it reads into registered memory, which its SGL names")
	ErrTwoPayloads = errors.New("inline data and scatter/gather elements: a request takes one or the other")
	// ErrNoReads is the error of an RDMA Read where the ORD is 0.
	ErrNoReads = errors.New("the connection carries no RDMA Reads and no Atomic Operations from this side, as its ORD is 0: this side has to offer an ORD, and the peer an IRD")
	// ErrNoPrefix is the error of a Send with a prefix where Sends have none.
	ErrNoPrefix = errors.New("a Send with a prefix, which those of this QP do not have")
	// ErrNoExtensions is the error of an operation of RFC 7306 on a stream of version 0.
	ErrNoExtensions = errors.New("the connection runs RDMAP version 0, which has no Atomic Operations and no Immediate Data (RFC 7306)")
)

// sendEntry is a slot of the Send Queue: the request and how far it has come.
type sendEntry struct {
	SendWork
	inline []byte     // the slot's own memory, reused
	local  *localWork // and that, once it had a request with such
	length uint32
	seg    ddp.Segmenter
	placed bool   // of an OpWriteImm the Write is built, and the Immediate Data are not
	sge    int    // the element that the next segment begins in
	off    int    // and the offset there
	end    uint64 // stream offset after its last FPDU, once built
	ahead  uint8  // bytes of the prefix that are still to be sent
	msn    uint32 // of a Read's request, and of a Send once built
	phase  sendPhase
	status Status
}

// localWork is what a request of a local operation refers to.
type localWork struct {
	bind     Bind
	register Register
}

type sendPhase uint8

const (
	phasePosted  sendPhase = iota // not begun
	phaseSending                  // some of its segments are built
	phaseBuilt                    // all are; waits for the LLP to take them
	phaseReading                  // Read Request built; waits for the response
	phaseDone                     // complete; waits for the ones before it
)

// sendQueue holds the requests of the Send Queue that are not complete.
type sendQueue struct {
	ring.Ring[sendEntry]
	next uint64 // position of the next to be begun
}

// push copies the work, inline data included, into the next slot.
func (s *sendQueue) push(w *SendWork) {
	e := s.Add() // as release has left it
	e.SendWork = *w
	e.inline, e.Inline = append(e.inline, w.Inline...), nil
	if w.Bind != nil || w.Register != nil {
		e.keep(w)
	}
	e.length = uint32(w.SGL.length())
	if w.SGL.Len() == 0 {
		e.length = uint32(len(e.inline))
	}
}

// keep copies what the work of a local operation refers to.
func (e *sendEntry) keep(w *SendWork) {
	if e.local == nil {
		e.local = new(localWork)
	}
	if w.Bind != nil {
		e.local.bind = *w.Bind
		e.Bind = &e.local.bind
		return
	}
	r := &e.local.register
	pieces := append(r.Memory[:0], w.Register.Memory...)
	*r = *w.Register
	r.Memory = pieces
	r.Region.Announce(&r.Registration)
	e.Register = r
}

// forget drops what the last request referred to.
func (l *localWork) forget() {
	pieces := l.register.Memory
	clear(pieces)
	*l = localWork{}
	if cap(pieces) <= memory.KeptPieces {
		l.register.Memory = pieces[:0]
	}
}

// pull takes the youngest request out, as if push had not been called.
func (s *sendQueue) pull() {
	if r := s.At(s.Tail() - 1).Register; r != nil {
		r.Region.Withdraw(&r.Registration)
	}
	s.Remove(s.Tail() - 1)
}

// recvQueue is a QP's own Receive Queue.
type recvQueue struct{ ring.Ring[RecvWork] }

// Refusal says why Take found none.
func (r *recvQueue) Refusal() string {
	return "no receive is posted; set QPConfig.Receives, or post one for each Send that the peer may have under way, before it may send"
}

// Awaits reports that a receive may be posted later.
func (r *recvQueue) Awaits() bool { return true }

// remove takes out the entry with a cookie, and closes the gap. The first entries, so many as
// are settled, stay where they are.
func (r *recvQueue) remove(cookie any, settled int) bool {
	for pos := r.Head() + uint64(settled); pos < r.Tail(); pos++ {
		if r.At(pos).Cookie == cookie {
			r.Remove(pos)
			return true
		}
	}
	return false
}

// Take moves the oldest entry to dst.
func (r *recvQueue) Take(dst *RecvWork) bool {
	if r.Len() == 0 {
		return false
	}
	r.Ring.Take(dst)
	return true
}
