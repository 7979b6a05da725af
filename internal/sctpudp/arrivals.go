package sctpudp

import (
	"cmp"
	"sync"

	"github.com/goiwarp/iwarp/internal/chunk"
)

// maxDistance is how many TSNs from the first missing one on are taken. pion takes 2112 and more.
const maxDistance = 2000

// arrivals are the TSNs that were given to pion, and the room that the peer knows of. While the consumer holds much for
// which others are missing, nothing is taken that was sent after all that is there: SCTP brings it again. What is
// missing was sent before.
//
// RFC 9260, section 6.2: "When the receiver's advertised window is 0, the receiver MUST drop any new incoming DATA
// chunk with a TSN larger than the largest TSN received so far."
type arrivals struct {
	window int
	reopen chan struct{} // the peer is to know how much room there is, and what has come

	mu      sync.Mutex
	next    uint32              // the first that is missing
	highest uint32              // of those that have come
	ahead   map[uint32]struct{} // those beyond next
	unread  int                 // bytes of messages that pion was given, and has not handed out
	hold    bool
	offered int           // bytes that the peer may still send, by our last SACK
	said    uint32        // the Cumulative TSN Ack of that
	asked   bool          // for another, for the sake of the window
	left    chan struct{} // closed when the next has left; nil: nobody waits for it
}

func newArrivals(first uint32, window int) *arrivals {
	return &arrivals{window: window, reopen: make(chan struct{}, 1), next: first, highest: first - 1,
		offered: window, said: first - 1}
}

// admits reports whether a chunk with n bytes of a message is taken, and notes it then. pion gets none that it would
// drop itself for lack of room.
func (a *arrivals) admits(tsn uint32, n int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	distance := int32(tsn - a.next)
	_, again := a.ahead[tsn]
	switch latest := chunk.Before(a.highest, tsn); {
	case distance < 0 || again:
		return true // it is acknowledged again
	case distance >= maxDistance, latest && (a.holds() || a.isFull(n)):
		return false
	case latest:
		a.highest = tsn
	}
	a.unread += n
	a.offered -= n
	a.note(tsn)
	return true
}

// fills reports whether a chunk has come after others that were sent later: the peer waits to hear that. pion would
// tell it after 200 ms, if nothing else is missing.
//
// RFC 5681, section 4.2, as RFC 9260, section 6.2, has it: "a TCP receiver SHOULD send an immediate ACK when the
// incoming segment fills in all or part of a gap in the sequence space."
func (a *arrivals) fills(tsn uint32) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, again := a.ahead[tsn]
	return !again && !chunk.Before(tsn, a.next) && chunk.Before(tsn, a.highest)
}

// lag bounds the bytes of messages that pion has handed out, and announced the room of, and read does not know of yet.
// pion has so much more room than is announced.
const lag = 4 * maxPacket

// isFull reports whether there is no room for n bytes more, nor was any announced.
func (a *arrivals) isFull(n int) bool {
	return a.unread+n > a.window && (n > a.offered || a.unread+n > a.window+lag)
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

// read notes that pion has handed out n bytes.
func (a *arrivals) read(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unread -= n
	a.update()
}

// setHold says whether the consumer holds too much.
func (a *arrivals) setHold(on bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hold = on
	a.update()
}

// update has the peer know of the room that there is more than when it was told last. pion's own SACKs follow what
// arrives, and nothing does where the peer waits for room. The caller holds mu.
//
// RFC 9260, section 6.2: "When the window opens up, an SCTP receiver SHOULD send additional SACK chunks to update the
// window even if no new data is received." One way not to send many is to do so "only if the window can be increased by
// at least a quarter of the receive buffer size".
func (a *arrivals) update() {
	if a.asked || a.holds() || a.window-a.unread-max(a.offered, 0) < a.window/4 {
		return
	}
	a.ask()
}

// ask has pion send a SACK. The caller holds mu.
func (a *arrivals) ask() {
	a.asked = true
	select {
	case a.reopen <- struct{}{}:
	default:
	}
}

// again has pion say once more what has come. What it returns is closed when a SACK has left.
func (a *arrivals) again() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left == nil {
		a.left = make(chan struct{})
	}
	a.ask()
	return a.left
}

// flagImmediate of DATA asks for a SACK at once: RFC 7053.
const flagImmediate = 8

// known is a DATA chunk that pion has, and answers by a SACK at once. It says what pion has then.
func (a *arrivals) known() chunk.Chunk {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := chunk.Data{TSN: a.said, PPID: odd, Bytes: []byte{0}}
	return d.Chunk(plain | flagImmediate)
}

// announce has the SACKs of a packet of pion's say how much room there is, none while nothing new is taken: RFC 9260,
// section 3.3.4. It returns what is to be closed when the packet has left, or nil.
func (a *arrivals) announce(packet []byte) (left chan struct{}) {
	rest := chunk.Chunks{Bytes: packet[min(chunk.HeaderLen, len(packet)):]}
	rest.Sent = len(rest.Bytes)
	for c, ok := rest.Next(); ok; c, ok = rest.Next() {
		if c.Type == chunk.TypeSack {
			left = cmp.Or(left, a.announceSack(&c))
		}
	}
	return left
}

// announceSack is announce for one SACK.
func (a *arrivals) announceSack(sack *chunk.Chunk) (left chan struct{}) {
	tsn, window, ok := sack.Sack()
	if !ok {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.said, a.offered, a.asked = tsn, 0, false
	left, a.left = a.left, nil
	if !a.holds() {
		a.offered = max(int(window)-lag, 0)
	}
	sack.SetWindow(uint32(a.offered))
	return left
}
