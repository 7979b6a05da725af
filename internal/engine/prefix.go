package engine

import (
	"encoding/binary"
	"fmt"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/memory"
)

// Prefixes.
//
// Two consumers may agree that each of their Sends begins with 8 bytes that do not go into the memory of the
// receive. To DDP, RDMAP and the peer's RNIC they are payload like the rest; here they are taken from the request,
// and given with the completion. Lengths do not count them: a receive has to be as long as what follows them, and the
// message is 8 bytes longer.
//
// Sends that are Ready-to-Receive indications have no prefix, and neither have Immediate Data.

// prefixLen is how long a prefix is, in bytes.
const prefixLen = 8

// SetPrefix has Sends of the next connections begin with a prefix, or not. It is called while there is none.
func (q *Machine) SetPrefix(on bool) { q.prefixed = on }

// prefix is how many bytes of a Send are not for memory.
func (q *Machine) prefix() uint64 {
	if q.prefixed {
		return prefixLen
	}
	return 0
}

// roomOf returns the length of the longest message that a receive takes, in bytes.
func (q *Machine) roomOf(r *RecvWork) uint64 { return min(r.SGL.length(), MaxMessage) + q.prefix() }

// split takes the prefix out of a part of a Send that is for a receive, and returns what remains, with its offset in
// memory.
func (q *Machine) split(to *RecvWork, mo uint64, p layout.Content) (uint64, layout.Content) {
	if !q.prefixed {
		return mo, p
	}
	if mo >= prefixLen {
		return mo - prefixLen, p
	}
	front, rest := p.Cut(min(p.Len(), prefixLen-int(mo)))
	front.CopyTo(to.prefix[mo:])
	return 0, rest
}

// splitPlaced is split of n bytes that are in place: it returns where those in memory begin, and how many they are.
func (q *Machine) splitPlaced(mo uint64, n int) (uint64, int) {
	ahead := max(q.prefix(), mo) - mo
	return mo + ahead - q.prefix(), max(n-int(ahead), 0)
}

// withoutPrefix returns how long a Send is without its prefix, and that. One that a peer has sent without is told of
// as if the rest were zeros.
func (q *Machine) withoutPrefix(length uint32) (rest uint32, prefix uint64) {
	return length - uint32(min(uint64(length), q.prefix())), binary.BigEndian.Uint64(q.current.prefix[:])
}

// checkPrefix judges a Send of n bytes.
func (q *Machine) checkPrefix(w *SendWork, n uint64) (Status, error) {
	switch {
	case w.Op != OpSend:
	case w.Prefix != 0 && !q.prefixed:
		return StatusUnsupported, ErrNoPrefix
	case n+q.prefix() > MaxMessage:
		return StatusLocalLength, fmt.Errorf("with the prefix: %w", ErrTooLong)
	}
	return StatusSuccess, nil
}

// beginSegments has the message of an entry, which begins, be cut into segments.
func (q *Machine) beginSegments(e *sendEntry) {
	if e.Op == OpSend {
		e.ahead = uint8(q.prefix())
	}
	q.setMessage(e.seg.Begin(e.length+uint32(e.ahead)), e)
}

// loadPrefix has g take the prefix, or what is left of it, as far as it is of the next n bytes of a message, and
// returns how many bytes come after it.
func (q *Machine) loadPrefix(g *Gather, e *sendEntry, n int) int {
	if e.ahead == 0 {
		return n
	}
	p := binary.BigEndian.AppendUint64(g.scratch[:0], e.Prefix)[prefixLen-int(e.ahead):]
	p = p[:min(n, len(p))]
	g.Take(p)
	e.ahead -= uint8(len(p))
	return n - len(p)
}

// loadNext has g take the next n bytes of a message.
func (q *Machine) loadNext(g *Gather, e *sendEntry, n int) memory.Fault {
	return e.load(g, q.loadPrefix(g, e, n), q.cfg.Memory)
}
