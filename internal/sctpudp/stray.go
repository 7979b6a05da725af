package sctpudp

import (
	"net/netip"
	"time"
)

// strays is how many packets that belong to no association are answered at once, and how many a second. The answer has
// 16 octets, no more than the shortest packet that gets one: nobody gains by having us send it to others.
const strays = 64

// A budget is how many may be answered; it grows with time. The goroutine that receives uses it.
type budget struct {
	left float64
	at   time.Time
}

// spend takes one, if there is one.
func (b *budget) spend(now time.Time) bool {
	b.left = min(b.left+now.Sub(b.at).Seconds()*strays, strays)
	b.at = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// stray answers a packet that belongs to no association, so that a peer whose association is gone here learns it at
// once: with ABORT, and where it is a SHUTDOWN ACK, whose SHUTDOWN COMPLETE was lost, with that. Both have the
// packet's own tag, and the T bit. What may itself be such an answer gets none, so that no two ends go on for ever:
// RFC 9260, section 8.4.
func (e *Endpoint) stray(from netip.AddrPort, p packet, chunks []chunk) {
	answer := byte(chunkAbort)
	for _, c := range chunks {
		switch c.kind() {
		case chunkAbort, chunkShutdownComplete, chunkCookieAck, chunkError, chunkInitAck:
			return
		case chunkShutdownAck:
			answer = chunkShutdownComplete
		}
	}
	if e.answers.spend(time.Now()) {
		e.send(from, seal(appendChunk(start(e.port, p.source(), p.tag()), answer, flagT, nil)))
	}
}

// turnAway answers an INIT that begins nothing with ABORT, which has the tag of the INIT: RFC 9260, section 8.4, rule 3.
func (e *Endpoint) turnAway(from netip.AddrPort, p packet, tag uint32) {
	if e.answers.spend(time.Now()) {
		e.send(from, control(e.port, p.source(), tag, chunkAbort, nil))
	}
}
