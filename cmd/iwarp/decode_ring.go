package main

import "github.com/goiwarp/iwarp/capture"

const (
	defaultRing = 64 << 20
	minRing     = 1 << 20
	ringParts   = 16  // of which the oldest is forgotten as a whole
	packetCost  = 104 // bytes of a packet in memory beside its data, about
)

// A packetRing has the last packets of a capture, of about so many bytes with what they cost.
type packetRing struct {
	size  int
	parts []ringPart // the oldest first
}

// A ringPart is some of the packets, one behind the other.
type ringPart struct {
	packets []capture.Packet
	data    []byte
	used    int
}

// add copies a packet.
func (r *packetRing) add(p *capture.Packet) {
	cost := packetCost + len(p.Data)
	if n := len(r.parts); n == 0 || r.parts[n-1].used+cost > r.size/ringParts {
		r.begin(len(p.Data))
	}
	part := &r.parts[len(r.parts)-1]
	at := len(part.data)
	part.data = append(part.data, p.Data...)
	kept := *p
	kept.Data = part.data[at:len(part.data):len(part.data)]
	part.packets = append(part.packets, kept)
	part.used += cost
}

// begin begins a part, in the place of the oldest if there are enough. It has room for its data, so that these stay
// where they are.
func (r *packetRing) begin(least int) {
	var part ringPart
	if len(r.parts) == ringParts {
		part = ringPart{packets: r.parts[0].packets[:0], data: r.parts[0].data[:0]}
		r.parts = r.parts[:copy(r.parts, r.parts[1:])]
	}
	if room := max(r.size/ringParts, least); cap(part.data) < room {
		part.data = make([]byte, 0, room)
	}
	r.parts = append(r.parts, part)
}

// each calls take for the packets in their order, and forgets them.
func (r *packetRing) each(take func(*capture.Packet)) {
	for i := range r.parts {
		for k := range r.parts[i].packets {
			take(&r.parts[i].packets[k])
		}
	}
	r.parts = nil
}
