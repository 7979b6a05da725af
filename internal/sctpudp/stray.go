package sctpudp

import (
	"net/netip"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/internal/chunk"
)

// strays is how many packets that belong to no association are answered at once, and how many a second. The answer has
// 16 bytes, no more than the shortest packet that gets one: nobody gains by having us send it to others.
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
// once. The answer has the packet's own tag, and the T bit.
func (e *Endpoint) stray(from netip.AddrPort, p *packet) {
	if answer, ok := answerTo(from, p); ok && e.answers.spend(time.Now()) {
		h := chunk.Header{Source: e.port, Destination: p.Source, Tag: p.Tag}
		e.send(from, h.Packet(chunk.Chunk{Type: answer, Flags: chunk.FlagT}))
	}
}

// answerTo judges by the rules of RFC 9260, section 8.4, in their order. The third and fourth, on INIT and COOKIE ECHO,
// are dispatch's. What may itself be an answer gets none, so that no two ends go on for ever.
func answerTo(from netip.AddrPort, p *packet) (answer chunk.Type, ok bool) {
	switch {
	case from.Addr().IsMulticast(): // rule 1
	case p.Tag == 0:
		// Section 8.5.1, A: "it SHOULD verify that the packet contains only an INIT chunk. Otherwise, the receiver MUST
		// silently discard the packet."
	case p.has(chunk.TypeAbort) != nil: // rule 2
	case p.has(chunk.TypeShutdownAck) != nil: // rule 5: its SHUTDOWN COMPLETE was lost
		return chunk.TypeShutdownComplete, true
	case p.has(chunk.TypeShutdownComplete) != nil: // rule 6
	case p.has(chunk.TypeCookieAck) != nil || isStaleCookie(p.has(chunk.TypeError)): // rule 7
	default: // rule 8
		return chunk.TypeAbort, true
	}
	return 0, false
}

// isStaleCookie reports whether there is an ERROR, with the cause "Stale Cookie".
func isStaleCookie(c *chunk.Chunk) bool {
	if c == nil {
		return false
	}
	causes, _ := chunk.Parameters(c.Value)
	return slices.ContainsFunc(causes, func(p chunk.Parameter) bool { return p.Type == chunk.CauseStaleCookie })
}

// turnAway answers an INIT that begins nothing with ABORT, which has the tag of the INIT: RFC 9260, section 8.4, rule
// 3.
func (e *Endpoint) turnAway(from netip.AddrPort, p *packet, tag uint32) {
	if e.answers.spend(time.Now()) {
		e.say(from, p.Source, tag, chunk.TypeAbort, nil)
	}
}
