package engine

import (
	"errors"

	"github.com/goiwarp/iwarp/ddp"
)

// Errors of a post; the queue is as it was before.
var (
	ErrQueueFull = errors.New("queue is full")
	ErrBadState  = errors.New("not allowed in this state of the QP")
	ErrTooLong   = errors.New("message longer than 4294967295 octets")
	ErrInline    = errors.New("inline data longer than the QP's MaxInline")
	ErrManySinks = errors.New("an RDMA Read into more than one range of memory")
)

// sendEntry is a slot of the Send Queue: the request and how far it has come.
type sendEntry struct {
	SendWork
	inline []byte // the slot's own memory, reused
	length uint32
	seg    ddp.Segmenter
	sge    int    // the element that the next segment begins in
	off    int    // and the offset there
	end    uint64 // stream offset behind its last FPDU, once built
	msn    uint32 // of a Read's request
	phase  sendPhase
	status Status
}

type sendPhase uint8

const (
	phasePosted  sendPhase = iota // not begun
	phaseSending                  // some of its segments are built
	phaseBuilt                    // all are; waits for the LLP to take them
	phaseReading                  // Read Request built; waits for the response
	phaseDone                     // complete; waits for the ones before it
)

// sendQueue is a ring of slots. Positions count up for ever; slot i of the
// ring holds the positions congruent to i.
type sendQueue struct {
	slots []sendEntry
	head  uint64 // oldest not completed
	next  uint64 // next to be begun
	tail  uint64 // next free
}

func (s *sendQueue) at(pos uint64) *sendEntry { return &s.slots[pos%uint64(len(s.slots))] }
func (s *sendQueue) full() bool               { return s.tail-s.head == uint64(len(s.slots)) }
func (s *sendQueue) empty() bool              { return s.tail == s.head }

// push copies the work, inline data included, into the next slot.
func (s *sendQueue) push(w *SendWork) {
	e := s.at(s.tail)
	inline := append(e.inline[:0], w.Inline...)
	*e = sendEntry{SendWork: *w, inline: inline}
	e.Inline = nil
	e.length = uint32(sglLength(w.SGL[:w.NumSGE]))
	if w.NumSGE == 0 {
		e.length = uint32(len(inline))
	}
	s.tail++
}

// recvQueue is the ring of a QP's own Receive Queue.
type recvQueue struct {
	slots []RecvWork
	head  uint64
	tail  uint64
}

func (r *recvQueue) full() bool { return r.tail-r.head == uint64(len(r.slots)) }

func (r *recvQueue) push(w *RecvWork) {
	r.slots[r.tail%uint64(len(r.slots))] = *w
	r.tail++
}

// Take moves the oldest entry to dst.
func (r *recvQueue) Take(dst *RecvWork) bool {
	if r.head == r.tail {
		return false
	}
	e := &r.slots[r.head%uint64(len(r.slots))]
	*dst, *e = *e, RecvWork{}
	r.head++
	return true
}
