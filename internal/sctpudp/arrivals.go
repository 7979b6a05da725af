package sctpudp

import (
	"sync"

	"github.com/goiwarp/iwarp/sctp/chunk"
)

// maxDistance is how many TSNs from the first missing one on are taken. pion takes 2112 and more.
const maxDistance = 2000

// arrivals are the TSNs that were given to pion. While the consumer holds much for which others are missing, nothing is
// taken that was sent after all that is there: SCTP brings it again. What is missing was sent before.
//
// RFC 9260, section 6.2: "When the receiver's advertised window is 0, the receiver MUST drop any new incoming DATA chunk
// with a TSN larger than the largest TSN received so far."
type arrivals struct {
	window int

	mu      sync.Mutex
	next    uint32              // the first that is missing
	highest uint32              // of those that have come
	ahead   map[uint32]struct{} // those beyond next
	unread  int                 // octets of messages that pion was given, and has not handed out
	hold    bool
}

func newArrivals(first uint32, window int) *arrivals {
	return &arrivals{window: window, next: first, highest: first - 1}
}

// admits reports whether a chunk with n octets of a message is taken, and notes it then. pion gets none that it would
// drop itself for lack of room.
func (a *arrivals) admits(tsn uint32, n int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	distance := int32(tsn - a.next)
	_, again := a.ahead[tsn]
	switch latest := int32(tsn-a.highest) > 0; {
	case distance < 0 || again:
		return true // it is acknowledged again
	case distance >= maxDistance, latest && (a.holds() || a.unread+n > a.window):
		return false
	case latest:
		a.highest = tsn
	}
	a.unread += n
	a.note(tsn)
	return true
}

// holds reports whether nothing new is taken: with nothing missing there is nothing to wait for.
func (a *arrivals) holds() bool { return a.hold && len(a.ahead) > 0 }

// note notes a TSN from next on.
func (a *arrivals) note(tsn uint32) {
	if tsn != a.next {
		if a.ahead == nil {
			a.ahead = make(map[uint32]struct{})
		}
		a.ahead[tsn] = struct{}{}
		return
	}
	for there := true; there; _, there = a.ahead[a.next] {
		delete(a.ahead, a.next)
		a.next++
	}
	if len(a.ahead) == 0 {
		a.ahead = nil
	}
}

// read notes that pion has handed out n octets.
func (a *arrivals) read(n int) {
	a.mu.Lock()
	a.unread -= n
	a.mu.Unlock()
}

// setHold says whether the consumer holds too much.
func (a *arrivals) setHold(on bool) {
	a.mu.Lock()
	a.hold = on
	a.mu.Unlock()
}

// closeWindow has the SACKs of a packet of pion's say that there is no room, where that is so: RFC 9260, section 3.3.4.
func (a *arrivals) closeWindow(packet []byte) {
	a.mu.Lock()
	closed := a.holds()
	a.mu.Unlock()
	if !closed {
		return
	}
	all, _ := chunk.In(packet)
	for _, c := range all {
		if c.Type == chunk.TypeSack && len(c.Value) >= 8 {
			clear(c.Value[4:8])
		}
	}
}
