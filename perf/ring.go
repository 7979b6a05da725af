package perf

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/wording"
)

// A ring is a buffer cut into slots of one message each. Message i of a slice
// leaves from slot i modulo the number of slots, and arrives there.
type ring struct {
	mem         []byte
	size, slots int
}

func newRing(mem []byte, size, slots int) ring {
	return ring{mem[:size*slots], size, slots}
}

// offset returns where the slot of message i begins.
func (r ring) offset(i int) int { return i % r.slots * r.size }

// message returns the slot of message i.
func (r ring) message(i int) []byte {
	off := r.offset(i)
	return r.mem[off : off+r.size]
}

// stamped returns the slot of message i with its sequence number in it.
func (r ring) stamped(j *job, i int) []byte {
	msg := r.message(i)
	stamp(msg, uint64(i))
	if j.Corrupt && i+1 == j.Count {
		spoil(msg)
	}
	return msg
}

// spoil changes one bit of a message.
func spoil(msg []byte) { msg[len(msg)-1] ^= 0x01 }

// source returns which slot Read i takes its bytes from. It moves on by one
// in each lap, so that what an earlier lap left in a sink is not mistaken for
// what the last one should have.
func (r ring) source(i int) int { return (i + i/r.slots) % r.slots }

// A CorruptionError is a byte that is not what was sent.
type CorruptionError struct {
	Transport Transport
	Op        Op
	Quantity  Quantity
	Side      string // whose memory it was found in: "initiator" or "responder"
	QP        int    // index of the connection
	Size      int    // message length in bytes
	Message   int    // sequence number, -1 if no message was sent to this place
	Offset    int    // within the message, in bytes
	Got, Want byte
}

func (e *CorruptionError) Error() string {
	msg := fmt.Sprintf("message %d", e.Message)
	if e.Message < 0 {
		msg = "a slot that nothing was sent to"
	}
	return fmt.Sprintf("perf: wrong data: %s %v of %s (%s), connection %d, %s's memory: %s, offset %d: got 0x%02x, want 0x%02x",
		e.Transport, e.Op, wording.Bytes(e.Size), e.Quantity, e.QP, e.Side, msg, e.Offset, e.Got, e.Want)
}

// check compares a sink with what the last messages of the slice must have
// left in each slot, and unused slots with what was there before.
func (r ring) check(j job) *CorruptionError {
	want := make([]byte, r.size)
	for slot := range r.slots {
		last := lastMessage(slot, r.slots, j.Count)
		got := r.message(slot)
		if r.holdsEarlier(got, want, j, slot, last) {
			continue
		}
		r.expect(want, j, slot, last)
		if j.Op.size() != 0 && reversed(got, want) {
			continue
		}
		if at := firstDifference(got, want); at >= 0 {
			return &CorruptionError{Transport: j.Transport, Op: j.Op, Quantity: j.Quantity,
				Size: r.size, Message: last, Offset: at, Got: got[at], Want: want[at]}
		}
	}
	return nil
}

// reversed reports whether one has the bytes of the other in the opposite order: the result of
// an Atomic Operation is an integer, which each end has in the byte order of its machine.
func reversed(got, want []byte) bool {
	for i := range got {
		if got[i] != want[len(want)-1-i] {
			return false
		}
	}
	return true
}

// holdsEarlier reports whether a slot holds one of the messages before the last one, where those may take effect after
// it: see Options.overtaken.
//
// RFC 5040, section 5.5, rule 3: Writes that overlap have no order where segments are placed as they come.
func (r ring) holdsEarlier(got, want []byte, j job, slot, last int) bool {
	if !j.AnyLap || !j.Op.untold() {
		return false
	}
	for m := last - r.slots; m >= 0; m -= r.slots {
		if r.expect(want, j, slot, m); firstDifference(got, want) < 0 {
			return true
		}
	}
	return false
}

// expect writes what slot must hold after message last, or none if negative.
func (r ring) expect(want []byte, j job, slot, last int) {
	p := pattern{j.Salt}
	switch {
	case last < 0:
		p.poison(want, slot*r.size)
	case j.Op.Fetches():
		p.fill(want, r.source(last)*r.size)
	default:
		p.fill(want, slot*r.size)
		stamp(want, uint64(last))
	}
}

// lastMessage returns the highest sequence number below count that falls into
// the slot, -1 if there is none.
func lastMessage(slot, slots, count int) int {
	if slot >= count {
		return -1
	}
	return slot + (count-1-slot)/slots*slots
}
