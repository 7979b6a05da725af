package engine

import (
	"bytes"
	"slices"
)

// A mail is one direction of an LLP that carries whole segments, without any order.
type mail struct {
	letters []letter        // sent, in order, and not arrived for the last time
	count   uint64          // sent in all
	window  int             // how many of the letters may overtake the first; 0: none
	pick    func(n int) int // which of n arrives next; nil: the first
	again   func() bool     // whether one that arrives will arrive once more; nil: never
	early   func() bool     // whether the end is told before all letters have arrived
}

// A letter is a segment with its number.
type letter struct {
	at uint64
	b  []byte
}

// messages puts both QPs on an LLP that carries whole segments; it goes last among the changes
// of a pair.
func messages(s *setup) {
	s.Layer, s.SendFirst, s.CRC, s.MarkersReceive, s.MarkersSend = LayerMessages, true, false, false, false
	s.EMSS, s.Record = 0, 0
}

// letters has the LLP take what the QP has to send, and returns it segment by segment.
func (h *host) letters() [][]byte {
	h.Helper()
	var out [][]byte
	for h.Machine.Pending() {
		v := h.Machine.Output(*h.now, h.g)
		if len(v) == 0 {
			break
		}
		for _, b := range v {
			if len(b) > h.Machine.MULPDU {
				h.Fatalf("a segment of %d bytes, and the LLP takes %d", len(b), h.Machine.MULPDU)
			}
			out = append(out, bytes.Clone(b))
			h.Machine.Sent(*h.now, h.g, len(b))
		}
	}
	h.checkQuiet()
	h.collectOutputs()
	return out
}

// segment hands a segment in, and clears it: the QP must not keep it.
func (h *host) segment(at uint64, b []byte) bool {
	h.Helper()
	b = bytes.Clone(b)
	same := bytes.Clone(b)
	taken := h.Machine.Segment(*h.now, at, at+1, b)
	if !bytes.Equal(b, same) {
		h.Fatal("a segment was written to")
	}
	clear(b)
	h.collectOutputs()
	return taken
}

// post takes over what a host has to send.
func (m *mail) post(h *host) {
	for _, b := range h.letters() {
		m.letters = append(m.letters, letter{m.count, b})
		m.count++
	}
}

// next has one letter arrive, and reports whether one did.
func (m *mail) next(to *host) bool {
	if len(m.letters) == 0 {
		return false
	}
	n, i := min(len(m.letters), m.window+1), 0
	if m.pick != nil {
		i = m.pick(n)
	}
	l := m.letters[i]
	taken := to.segment(l.at, l.b)
	if taken && (m.again == nil || !m.again()) || to.Machine.State() != RTS {
		m.letters = slices.Delete(m.letters, i, i+1)
	}
	return true
}

// carry moves what is on its way by mail in one direction of the pair, as move does with bytes.
func (p *pair) carry(from *host, way *pipe, to *host) bool {
	p.collect(from, way)
	m := way.mail
	switch {
	case way.lost:
		m.letters = nil
		return false
	case way.fin && !way.ended && (len(m.letters) == 0 || m.early != nil && m.early()):
		way.ended = true
		to.Machine.Ended(p.clock, m.count)
		to.collectOutputs()
		return true
	}
	return m.next(to)
}
