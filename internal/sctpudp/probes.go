package sctpudp

import (
	"bytes"
	"sync"

	"github.com/goiwarp/iwarp/internal/chunk"
)

// probes are pion's zero window probes. It sends the first at once, and is idle then until its retransmission timer
// runs out, even if the peer says before that there is room again. So a probe is held back here, and sent when there
// is.
//
// RFC 9260, section 6.1: "The sender SHOULD send the first zero window probe after 1 RTO when it detects that the
// receiver has closed its window".
type probes struct {
	first  uint32 // TSN
	mu     sync.Mutex
	sent   uint32 // the highest TSN that pion has sent
	acked  uint32 // the Cumulative TSN Ack of the peer's last SACK
	window uint32 // its a_rwnd
	opened bool   // which only that has changed by it
	held   []byte // a packet with the last probe, until that is acknowledged
	tsn    uint32 // of the probe
	size   uint32 // bytes of its message
}

func newProbes(first, window uint32) *probes {
	return &probes{first: first, sent: first - 1, acked: first - 1, window: window}
}

// passes reports whether a packet of pion's is to be sent now. A probe asks for a SACK at once, as pion waits for that.
// So does one that is under way alone where there is no room for another like it: news of room that overtakes its SACK
// has pion send nothing, and the peer may wait with that for 200 ms.
//
// RFC 9260, section 3.3.1: the I bit "MAY be set by the sender whenever the sender of a DATA chunk can benefit from the
// corresponding SACK chunk being sent back without delay."
func (p *probes) passes(packet []byte) bool {
	first, last, n, ok := dataIn(packet)
	if !ok {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	again := p.held != nil && first.TSN == p.tsn // pion's timer has run out
	alone := !again && p.sent == p.acked && first.TSN == p.sent+1
	probe := alone && uint32(first.Length) > p.window
	full := uint64(n+first.Length) > uint64(p.window)
	if again || probe || alone && p.opened || alone && full { // to pion it may be a probe still
		packet[chunk.HeaderLen+1] |= flagImmediate
	}
	if probe {
		p.held, p.tsn, p.size = bytes.Clone(packet), first.TSN, uint32(first.Length)
	}
	if chunk.Before(p.sent, last) {
		p.sent = last
	}
	return !probe
}

// dataIn returns the DATA chunk that begins a packet of pion's, the TSN of the last, and how many bytes of messages
// all have. pion puts nothing else beside them.
func dataIn(packet []byte) (first chunk.Data, last uint32, n int, ok bool) {
	rest := chunk.Chunks{Bytes: packet[min(chunk.HeaderLen, len(packet)):]}
	rest.Sent = len(rest.Bytes)
	for c, more := rest.Next(); more && c.Type == chunk.TypeData; c, more = rest.Next() {
		d, whole := c.Data()
		if !whole {
			break
		}
		n += d.Length
		if last = d.TSN; !ok {
			first, ok = d, true
		}
	}
	return first, last, n, ok
}

// acknowledged takes note of a SACK of the peer's. If that says that there is room for the probe now, it returns it.
func (p *probes) acknowledged(sack *chunk.Chunk) (probe []byte) {
	tsn, window, ok := sack.Sack()
	if !ok {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if chunk.Before(tsn, p.acked) || chunk.Before(p.sent, tsn) {
		return nil // it is old, or acknowledges what was not sent
	}
	if !chunk.Before(tsn, p.tsn) {
		p.held = nil
	}
	if p.held != nil && p.window < p.size && p.size <= window {
		probe = bytes.Clone(p.held)
	}
	p.opened = tsn == p.acked && window > p.window
	p.acked, p.window = tsn, window
	return probe
}

// messages returns how many messages pion has sent, modulo 2^32.
func (p *probes) messages() uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent - p.first + 1
}

// reached returns the Cumulative TSN Ack of the peer's last SACK.
func (p *probes) reached() uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.acked
}
