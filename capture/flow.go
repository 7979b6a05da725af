package capture

import (
	"errors"
	"net/netip"
	"time"
)

const (
	// flowScale is the shift of the windows in a Flow, and flowWindow what they say.
	flowScale  = 7
	flowWindow = 0xffff

	// ackEvery is after how many bytes the other end acknowledges them by a packet of
	// its own: well below the window.
	ackEvery = 64 << 10
)

// ErrFlowEnded is what a Flow says of bytes after a FIN or RST.
var ErrFlowEnded = errors.New("capture: bytes after the end of a flow")

// A Flow is one connection in the file of a Writer. Forward is from the client.
// It may be used concurrently.
type Flow struct {
	w      *Writer
	ends   [2]netip.AddrPort // by Dir of what they send
	halves [2]flowHalf
	reset  bool
	bytes  [][]byte // of Send
}

// A flowHalf is what was sent in one direction.
type flowHalf struct {
	seq     uint32 // of the next byte
	unacked int    // bytes that the other end has not acknowledged
	closed  bool
	packets uint16 // identification of IPv4
}

// Send adds bytes, in segments of at most the MSS. The segments of one call bear
// the same time; a zero time is now, as for [Writer.Packet]. The error is ErrFlowEnded, or comes from below.
func (f *Flow) Send(d Dir, at time.Time, data ...[]byte) error {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	if f.halves[d].closed || f.reset {
		return ErrFlowEnded
	}
	f.bytes = append(f.bytes[:0], data...)
	f.send(d, f.w.time(at))
	clear(f.bytes)
	return f.w.err
}

// send adds the bytes of f.bytes.
func (f *Flow) send(d Dir, at time.Time) {
	left := 0
	for _, b := range f.bytes {
		left += len(b)
	}
	for rest := f.bytes; left > 0 && f.w.err == nil; {
		n := min(left, f.w.cfg.MSS)
		left -= n
		flags := ACK
		if left == 0 {
			flags |= PSH
		}
		rest = f.segment(d, at, flags, rest, n)
		if f.halves[d].unacked >= ackEvery {
			f.segment(d.Peer(), at, ACK, nil, 0)
		}
	}
}

// Close adds a FIN, unless the direction has one, and its acknowledgment. A zero time is now.
func (f *Flow) Close(d Dir, at time.Time) error {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	if h := &f.halves[d]; !h.closed && !f.reset {
		at = f.w.time(at)
		f.segment(d, at, FIN|ACK, nil, 0)
		h.closed = true
		h.seq++
		f.segment(d.Peer(), at, ACK, nil, 0)
	}
	return f.w.err
}

// Reset adds a RST, unless there is one, or both directions are closed. A zero time is now.
func (f *Flow) Reset(d Dir, at time.Time) error {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	if !f.reset && !(f.halves[Forward].closed && f.halves[Backward].closed) {
		f.segment(d, f.w.time(at), RST|ACK, nil, 0)
		f.reset = true
	}
	return f.w.err
}

// handshake adds SYN, its answer and the acknowledgment of that.
func (f *Flow) handshake(at time.Time) {
	f.segment(Forward, at, SYN, nil, 0)
	f.halves[Forward].seq++
	f.segment(Backward, at, SYN|ACK, nil, 0)
	f.halves[Backward].seq++
	f.segment(Forward, at, ACK, nil, 0)
}

// segment adds a packet with the first n bytes, and returns the bytes after
// them. The slices are shortened in place.
func (f *Flow) segment(d Dir, at time.Time, flags Flags, data [][]byte, n int) [][]byte {
	rest := f.frame(d, flags, data, n)
	f.w.write(at)
	h := &f.halves[d]
	h.seq += uint32(n)
	h.unacked += n
	if flags.Has(ACK) {
		f.halves[d.Peer()].unacked = 0
	}
	return rest
}
