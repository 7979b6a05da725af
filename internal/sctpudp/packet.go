package sctpudp

import (
	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/sctp"
)

// A packet is one of SCTP whose form was checked.
type packet struct {
	chunk.Header
	chunks []chunk.Chunk // one at least
}

// parse takes a packet apart. It reports false if its form or its checksum is wrong.
//
// RFC 9260, section 6.10: "An endpoint MUST NOT bundle INIT, INIT ACK, or SHUTDOWN COMPLETE chunks with any other
// chunks."
func parse(b []byte) (p packet, ok bool) {
	if !chunk.Sealed(b) {
		return p, false
	}
	p.Header, _ = chunk.ParseHeader(b)
	all, whole := chunk.In(b)
	if p.chunks = all; !whole || len(all) == 0 || p.Source == 0 || p.Destination == 0 {
		return p, false
	}
	for _, c := range all {
		if alone(c.Type) && len(all) > 1 {
			return p, false
		}
	}
	return p, true
}

func alone(t chunk.Type) bool {
	return t == chunk.TypeInit || t == chunk.TypeInitAck || t == chunk.TypeShutdownComplete
}

// has returns the first chunk of a type, or nil.
func (p *packet) has(t chunk.Type) *chunk.Chunk {
	for i := range p.chunks {
		if p.chunks[i].Type == t {
			return &p.chunks[i]
		}
	}
	return nil
}

// minWindow is the least that an INIT may offer: RFC 9260, section 3.3.2.
const minWindow = 1500

// parseSetup reads the value of an INIT or INIT ACK. It reports false for one that may not be answered but by ABORT.
func parseSetup(b []byte) (s chunk.Setup, ok bool) {
	s, err := chunk.ParseSetup(b)
	return s, err == nil && s.Tag != 0 && s.Out != 0 && s.In != 0 && s.Window >= minWindow
}

// isDDP reports whether the peer supports DDP.
//
// RFC 5043, section 11.1: "an endpoint MUST verify and inspect the Adaptation Indication"; with none, or any other,
// "DDP procedures MUST NOT be performed upon this association."
func isDDP(s *chunk.Setup) bool { return s.Indicates(sctp.AdaptationDDP) }

// setup is what we say in an INIT or INIT ACK.
//
// RFC 5043, section 11.1: "a DDP/SCTP adaptation layer MUST include an adaptation layer indication in its INIT or
// INIT-ACK". Section 8: "The adaptation MUST initialize all of its SCTP associations with the same number of inbound
// and outbound streams."
func (e *Endpoint) setup() chunk.Setup {
	n := uint16(e.cfg.Streams)
	return chunk.Setup{
		Tag: random(), Window: uint32(e.cfg.Window), Out: n, In: n, TSN: random(),
		Adaptation: sctp.AdaptationDDP, HasAdaptation: true,
	}
}
